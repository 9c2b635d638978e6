#!/usr/bin/env python3
"""Prints what scikit-learn makes of the numbers that test_metrics.c uses (needs scikit-learn).

Logit c of sample i is ((7 i + 5 c (i mod 3) + c c) mod 9) / 2 - 2, its label (3 i + i / 5) mod 6,
for 40 samples; halves tie often. The seventh class of the second set, which no label names, is
left out of the mean of the AUC.
"""
import numpy as np
from sklearn import metrics

for classes in (6, 7):
    i, c = np.mgrid[0:40, 0:classes]
    logits = ((7 * i + 5 * c * (i % 3) + c * c) % 9) / 2 - 2
    labels = (3 * i[:, 0] + i[:, 0] // 5) % 6
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    said = logits.argmax(1)
    # Equal probabilities must be equal in their last bits, too, to be ties.
    ranked = probs.round(9)
    aucs = [metrics.roc_auc_score(labels == k, ranked[:, k]) for k in range(classes)
            if 0 < (labels == k).sum() < 40]
    print("%d classes, labels %s: logloss %.12g, macro_f1 %.12g, auc %.12g, qwk %.12g" % (
        classes, sorted(set(labels.tolist())),
        metrics.log_loss(labels, probs, labels=list(range(classes))),
        metrics.f1_score(labels, said, average="macro"), np.mean(aucs),
        metrics.cohen_kappa_score(labels, said, weights="quadratic")))
    two = labels % 2
    print("  two classes: auc %.12g" % metrics.roc_auc_score(two, logits[:, 1] - logits[:, 0]))
    # Ties count against the label, as nowhere in scikit-learn; without them both agree.
    clear = logits + 1e-3 * c
    print("  clear: acc1 %.12g, acc5 %.12g" % (
        100 * metrics.accuracy_score(labels, clear.argmax(1)),
        100 * metrics.top_k_accuracy_score(labels, clear, k=5, labels=list(range(classes)))))
