"""The competitions' metrics, as their formulas say. Truth and answers are what grading.py has read: lists of texts,
lists of sets or lists of texts, or arrays of numbers, (rows, columns)."""

import numpy as np

LOWER = {"log_loss", "binary_log_loss", "error", "rmse", "mae"}


def ranks(values):
    """The ranks of numbers from 1; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def column_auc(truth, answers):
    """The area under the ROC curve; nothing where a class is absent."""
    positive = truth > 0.5
    many, few = positive.sum(), (~positive).sum()
    if many == 0 or few == 0:
        return None
    return (ranks(answers)[positive].sum() - many * (many + 1) / 2) / (many * few)


def auc(truth, answers):
    """The mean over the columns that have both classes."""
    columns = [column_auc(truth[:, i], answers[:, i]) for i in range(truth.shape[1])]
    return float(np.mean([one for one in columns if one is not None]))


def weighted_auc(truth, answers):
    """The area to the right of the ROC curve, counted twice where the true positive rate is below 0.4."""
    positive = truth[:, 0] > 0.5
    values = answers[:, 0]
    cuts = np.concatenate([[np.inf], np.unique(values)[::-1]])
    hits = np.array([(values[positive] >= cut).mean() for cut in cuts])
    alarms = np.array([(values[~positive] >= cut).mean() for cut in cuts])
    heights = np.unique(np.concatenate([np.linspace(0, 1, 2001), hits]))
    right = 1 - np.interp(heights, hits, alarms)
    middle, step = (right[1:] + right[:-1]) / 2, np.diff(heights)
    weight = np.where(heights[1:] <= 0.4, 2.0, 1.0)
    return float((middle * step * weight).sum() / 1.4)


def log_loss(truth, answers):
    """Of the true column, cut off where the logarithm would be infinite. Rows are brought to a sum of 1."""
    shares = np.clip(answers, 1e-15, 1)
    shares = shares / shares.sum(axis=1, keepdims=True)
    return float(-np.log(shares[truth > 0.5]).mean())


def binary_log_loss(truth, answers):
    """The mean over rows and columns."""
    shares = np.clip(answers, 1e-15, 1 - 1e-15)
    return float(-np.where(truth > 0.5, np.log(shares), np.log1p(-shares)).mean())


def accuracy(truth, answers):
    """The share of rows that are right."""
    return float(np.mean([a == b for a, b in zip(truth, answers)]))


def error(truth, answers):
    """The share of rows that are wrong."""
    return 1 - accuracy(truth, answers)


def macro_f1(truth, answers):
    """The mean over all classes that occur in the truth or in the answers."""
    names, codes = np.unique(np.array(list(truth) + list(answers)), return_inverse=True)
    real, said = codes[: len(truth)], codes[len(truth) :]
    hits = np.bincount(real[real == said], minlength=len(names))
    return float(
        (2 * hits / (np.bincount(real, minlength=len(names)) + np.bincount(said, minlength=len(names)))).mean()
    )


def micro_f1(truth, answers):
    """Over all labels of all rows together."""
    hits = sum(len(a & b) for a, b in zip(truth, answers))
    every = sum(len(a) + len(b) for a, b in zip(truth, answers))
    return 2 * hits / every if every else 0.0


def kappa(truth, answers):
    """Cohen's kappa with squared distances as weights."""
    real, said = np.array(truth, dtype=int), np.array(answers, dtype=int)
    seen = ((real - said) ** 2).mean()
    by_chance = ((real[:, None] - said[None, :]) ** 2).mean()
    return float(1 - seen / by_chance) if by_chance else 0.0


def map5(truth, answers):
    """One over the place of the right class among the first five, 0 where it is not there."""
    return float(np.mean([1 / (said.index(real) + 1) if real in said[:5] else 0 for real, said in zip(truth, answers)]))


def pf1(truth, answers):
    """F1 with probabilities in place of hits."""
    real, said = truth[:, 0], np.clip(answers[:, 0], 0, 1)
    hits = (real * said).sum()
    if hits == 0:
        return 0.0
    precision, recall = hits / said.sum(), hits / real.sum()
    return float(2 * precision * recall / (precision + recall))


def rmse(truth, answers):
    """The root of the mean square, and the mean of that over the columns."""
    return float(np.sqrt(((truth - answers) ** 2).mean(axis=0)).mean())


def mae(truth, answers):
    """The mean distance."""
    return float(np.abs(truth - answers).mean())
