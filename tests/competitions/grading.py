"""Reads submissions as the competitions' graders do: what they refuse is refused, with the reason.

How strict a grader is follows the kind of its answers (Rules.kind):

    class     any text, compared as it is
    whole     a class that is a whole number, written as one: `3`, not `3.0`
    grade     a whole number between `low` and `high`
    share     one probability from 0 to 1
    shares    a probability per class; a row sums to 1 within 1e-5
    chances   a probability per column, each for itself
    number    numbers between `low` and `high`
    labels    several labels with `separator` between; the cell may be empty
    ranked    one to five classes, blanks between, the best first

Ids are compared as text. Chance is the best that an answer without a look at the pictures gets: the most frequent
class, the shares of the classes, the mean. A submission is better than chance where it beats that by `margin`, and
where the metric has bounds also by two standard deviations of what its own answers get in a random order.
"""

import csv
import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

import metrics

SHUFFLES = 100
# Metrics that a random order of the answers says nothing about: wrong answers have no limit there.
UNBOUNDED = {"log_loss", "binary_log_loss", "rmse", "mae"}
NUMERIC = ("share", "shares", "chances", "number")


class Refused(Exception):
    """A submission that the grader does not take."""


@dataclass(frozen=True)
class Rules:
    """What a competition takes as an answer and how it counts it."""

    kind: str
    metric: str
    exact: bool = False  # no columns but the asked ones
    low: float = 0.0
    high: float = 1.0
    separator: str = " "
    margin: float = 0.05  # in the metric's units; for UNBOUNDED ones a share of chance


@dataclass(frozen=True)
class Verdict:
    """What a valid submission got."""

    metric: float
    chance: float
    better: bool


def read_table(path):
    """Header and rows of a table with commas."""
    try:
        with open(path, newline="", encoding="utf-8") as source:
            lines = list(csv.reader(source, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as trouble:
        raise Refused(f"the file cannot be read: {trouble}") from trouble
    if not lines or not lines[0]:
        raise Refused("the file is empty")
    return lines[0], lines[1:]


def take_columns(header, rows, wanted, exact):
    """The wanted columns of a submission, in the wanted order: (id, cells) for every row."""
    twice = [name for name, times in Counter(header).items() if times > 1]
    if twice:
        raise Refused(f"the column {twice[0]!r} is there twice")
    missing = [name for name in wanted if name not in header]
    if missing:
        raise Refused(f"the column {missing[0]!r} is missing")
    extra = [name for name in header if name not in wanted]
    if exact and extra:
        raise Refused(f"there is a column {extra[0]!r} that was not asked for")
    places = [header.index(name) for name in wanted]
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise Refused(f"row {number} has {len(row)} cells, the header {len(header)}")
    return [(row[places[0]], [row[i] for i in places[1:]]) for row in rows]


def in_order(rows, ids):
    """The cells of every id, in the order of `ids`."""
    wanted, found = set(ids), {}
    for name, cells in rows:
        if name not in wanted:
            raise Refused(f"the id {name!r} is not one of the test's")
        if name in found:
            raise Refused(f"the id {name!r} is there twice")
        found[name] = cells
    for name in ids:
        if name not in found:
            raise Refused(f"the row of the id {name!r} is missing")
    return [found[name] for name in ids]


def number_of(text, low, high):
    """A number between two bounds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in text:
        raise Refused(f"{text!r} is not a number")
    if not low <= value <= high:
        raise Refused(f"{text} is not between {low:g} and {high:g}")
    return value


def whole_of(text, rules):
    """A whole number, and for a grade one that exists."""
    if not re.fullmatch(r"-?[0-9]+", text):
        raise Refused(f"{text!r} is not a whole number")
    if rules.kind == "grade" and not rules.low <= int(text) <= rules.high:
        raise Refused(f"the grade {text} does not exist")
    return int(text)


def list_of(text):
    """A ranked list."""
    if re.search(r"[,;|\[\]]", text):
        raise Refused(f"the list {text!r} has other things than blanks between its classes")
    names = text.split()
    if not names:
        raise Refused("a list is empty")
    if len(names) > 5:
        raise Refused(f"the list {text!r} has more than five classes")
    return names


def labels_of(text, separator):
    """A set of labels."""
    if re.search(r"[,;|\[\]]".replace(separator, ""), text):
        raise Refused(f"the labels {text!r} have something else than {separator!r} between them")
    return {name.strip() for name in text.split(separator) if name.strip()}


def parse(cells, rules):
    """The answers as the metric takes them."""
    if rules.kind in NUMERIC:
        values = np.array([[number_of(text, rules.low, rules.high) for text in row] for row in cells])
        sums = values.sum(axis=1)
        if rules.kind == "shares" and np.abs(sums - 1).max() > 1e-5:
            raise Refused(f"a row sums to {sums[np.abs(sums - 1).argmax()]:.7g}, not to 1")
        return values
    texts = [row[0] for row in cells]
    if rules.kind in ("whole", "grade"):
        return [whole_of(text, rules) for text in texts]
    if rules.kind == "labels":
        return [labels_of(text, rules.separator) for text in texts]
    if rules.kind == "ranked":
        return [list_of(text) for text in texts]
    if "" in texts:
        raise Refused("an answer is empty")
    return texts


def truth_of(cells, rules):
    """The answers withheld, as the metric takes them."""
    return [row[0] for row in cells] if rules.kind == "ranked" else parse(cells, rules)


def trivial(cells, rules):
    """Cells of one row that every row could have without a look at the pictures; the best such row is among them."""
    if rules.kind in ("shares", "chances", "share"):
        means = np.array([[float(text) for text in row] for row in cells]).mean(axis=0)
        return [[repr(float(value)) for value in means]] + ([["1"]] if rules.metric == "pf1" else [])
    if rules.kind == "number":
        values = np.array([[float(text) for text in row] for row in cells])
        return [[repr(float(value)) for value in middle] for middle in (values.mean(axis=0), np.median(values, axis=0))]
    if rules.kind == "labels":
        counts = Counter(name for row in cells for name in labels_of(row[0], rules.separator))
        names = [name for name, _ in counts.most_common()]
        return [[rules.separator.join(names[:most])] for most in range(1, min(len(names), 40) + 1)]
    names = [name for name, _ in Counter(row[0] for row in cells).most_common()]
    return [[" ".join(names[:5])]] if rules.kind == "ranked" else [[name] for name in names]


def best_trivial(cells, rules):
    """The best of the trivial rows and what it gets."""
    metric, truth = getattr(metrics, rules.metric), truth_of(cells, rules)
    pick = min if rules.metric in metrics.LOWER else max
    scored = [(metric(truth, parse([row] * len(cells), rules)), row) for row in trivial(cells, rules)]
    return pick(scored)


def shuffled_scores(metric, truth, answers):
    """What the answers get in random orders, so without any relation to their rows."""
    rng = np.random.default_rng(0)
    orders = (rng.permutation(len(truth)) for _ in range(SHUFFLES))
    if isinstance(answers, np.ndarray):
        return np.array([metric(truth, answers[order]) for order in orders])
    return np.array([metric(truth, [answers[i] for i in order]) for order in orders])


def is_better(score, chance, truth, answers, rules):
    """Whether a score is clearly above chance."""
    if rules.metric in UNBOUNDED:
        return score < chance * (1 - rules.margin)
    sign = -1 if rules.metric in metrics.LOWER else 1
    luck = sign * shuffled_scores(getattr(metrics, rules.metric), truth, answers)
    margin = max(rules.margin, 2 * luck.std())
    return bool(sign * score > max(sign * chance, luck.mean()) + margin)


def grade(rules, answers_path, submission_path):
    """The verdict on a submission; Refused where it is invalid."""
    header, rows = read_table(answers_path)
    ids, cells = [row[0] for row in rows], [row[1:] for row in rows]
    got_header, got_rows = read_table(submission_path)
    taken = take_columns(got_header, got_rows, header, rules.exact)
    answers, truth = parse(in_order(taken, ids), rules), truth_of(cells, rules)
    score, chance = getattr(metrics, rules.metric)(truth, answers), best_trivial(cells, rules)[0]
    return Verdict(score, chance, bool(is_better(score, chance, truth, answers, rules)))
