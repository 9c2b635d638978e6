#!/usr/bin/env python3
"""Prints what scikit-learn makes of the numbers that test_metrics.c and test_metrics_tasks.c use
(needs scikit-learn). What it does not have is written here as a formula.

Logit c of sample i is ((7 i + 5 c (i mod 3) + c c) mod 9) / 2 - 2, its label (3 i + i / 5) mod 6,
for 40 samples; halves tie often. The seventh class of the second set, which no label names, is
left out of the mean of the AUC. Several labels: four of these logits, target c of sample i is
((3 i + 2 c + i c c) mod 5) < 2. Numbers: output c is the logit, target c is its neighbour's.
"""
import numpy as np
from sklearn import metrics


def logits_of(classes):
    i, c = np.mgrid[0:40, 0:classes]
    return ((7 * i + 5 * c * (i % 3) + c * c) % 9) / 2 - 2


def softmax(logits):
    return np.exp(logits) / np.exp(logits).sum(1, keepdims=True)


def weighted_auc(y, score):
    """The area between the levels 0..0.4 counts twice; each piece of the curve is integrated with
    many points, since it may cross the level."""
    fpr, tpr, _ = metrics.roc_curve(y, score, drop_intermediate=False)
    area = 0
    for k in range(len(fpr) - 1):
        t = tpr[k] + (tpr[k + 1] - tpr[k]) * (np.arange(100000) + 0.5) / 100000
        area += (fpr[k + 1] - fpr[k]) * np.mean(t + np.minimum(t, 0.4))
    return area / 1.4


def pf1(y, p):
    precision = p[y == 1].sum() / p.sum()
    recall = p[y == 1].sum() / (y == 1).sum()
    return 2 * precision * recall / (precision + recall)


def mapk(y, logits, k):
    """Ties count against the label."""
    place = 1 + ((logits >= logits[np.arange(len(y)), y][:, None]).sum(1) - 1)
    return np.mean(np.where(place <= k, 1 / place, 0))


i40 = np.arange(40)
labels = (3 * i40 + i40 // 5) % 6
for classes in (6, 7):
    logits = logits_of(classes)
    probs = softmax(logits)
    said = logits.argmax(1)
    # Equal probabilities must be equal in their last bits, too, to be ties.
    ranked = probs.round(9)
    aucs = [metrics.roc_auc_score(labels == k, ranked[:, k]) for k in range(classes)
            if 0 < (labels == k).sum() < 40]
    print("%d classes: logloss %.12g, macro_f1 %.12g, micro_f1 %.12g, auc %.12g, qwk %.12g, "
          "mapk %.12g, balanced_acc %.12g, mcc %.12g" % (
              classes, metrics.log_loss(labels, probs, labels=list(range(classes))),
              metrics.f1_score(labels, said, average="macro"),
              metrics.f1_score(labels, said, average="micro"), np.mean(aucs),
              metrics.cohen_kappa_score(labels, said, weights="quadratic"),
              mapk(labels, logits, 5), metrics.balanced_accuracy_score(labels, said),
              metrics.matthews_corrcoef(labels, said)))
    # Ties count against the label, as nowhere in scikit-learn; without them both agree.
    clear = logits + 1e-3 * np.arange(classes)
    print("  clear: acc1 %.12g, acc5 %.12g" % (
        100 * metrics.accuracy_score(labels, clear.argmax(1)),
        100 * metrics.top_k_accuracy_score(labels, clear, k=5, labels=list(range(classes)))))

two = labels % 2
logits = logits_of(2)
p = softmax(logits)[:, 1]
ranked = logits[:, 1] - logits[:, 0]
print("two classes: auc %.12g, weighted_auc %.9g, pf1 %.12g, hard %.12g, mcc %.12g" % (
    metrics.roc_auc_score(two, ranked), weighted_auc(two, ranked), pf1(two, p),
    metrics.f1_score(two, p >= 0.5), metrics.matthews_corrcoef(two, logits.argmax(1))))

i, c = np.mgrid[0:40, 0:4]
targets = ((3 * i + 2 * c + i * c * c) % 5 < 2).astype(int)
logits = logits_of(4)
probs = 1 / (1 + np.exp(-logits))
chosen = (logits > 0).astype(int)
print("labels: logloss %.12g, micro_f1 %.12g, macro_f1 %.12g, samples_f1 %.12g, acc1 %.12g, "
      "auc %.12g" % (
          np.mean([metrics.log_loss(targets[:, k], probs[:, k]) for k in range(4)]),
          metrics.f1_score(targets, chosen, average="micro"),
          metrics.f1_score(targets, chosen, average="macro"),
          metrics.f1_score(targets, chosen, average="samples", zero_division=0),
          100 * metrics.accuracy_score(targets, chosen),
          metrics.roc_auc_score(targets, logits, average="macro")))

outputs = logits_of(4)
numbers = np.roll(outputs, 1, axis=1)
print("numbers: rmse %.12g, mae %.12g, r2 %.12g" % (
    metrics.root_mean_squared_error(numbers, outputs),
    metrics.mean_absolute_error(numbers, outputs), metrics.r2_score(numbers, outputs)))
