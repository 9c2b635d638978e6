#!/usr/bin/env python3
"""Tests the makers and the graders: self_test.py [NAME...] (all).

Of each competition a tiny folder is made. The grader must find the true answers valid and better than chance, also in
another order and, where that is allowed, with one more column; the sample and the best answer without a look at the
pictures valid and no better; and must refuse every broken submission for the right reason. Prints a line per trouble
and the total; the exit code is 1 where there was trouble.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import metrics
from catalogue import COMPETITIONS
from files import Folder, write_table
from grading import NUMERIC, Refused, best_trivial, grade, read_table


def changed(rows, place, text, column=1):
    """The rows with another cell."""
    rows = [list(row) for row in rows]
    rows[place][column] = text
    return rows


def broken_rows(header, rows):
    """What every grader refuses: (what it is, header, rows, a pattern of the reason)."""
    first = rows[0]
    yield "a row missing", header, rows[1:], "row of the id .* is missing"
    yield "a row twice", header, rows + [first], "is there twice"
    yield "a row too many", header, rows + [["nobody", *first[1:]]], "is not one of the test's"
    yield "an id spelled otherwise", header, changed(rows, 0, first[0] + ".0", 0), "is not one of the test's"
    yield "an id with a zero before it", header, changed(rows, 0, "0" + first[0], 0), "is not one of the test's"
    yield "an id with a blank", header, changed(rows, 0, " " + first[0], 0), "is not one of the test's"
    yield "no column of ids", ["row", *header[1:]], rows, "column .* is missing"
    yield "no column of answers", [*header[:-1], "answer"], rows, "column .* is missing|not asked for"
    yield "a row too short", header, [first[:-1], *rows[1:]], "cells, the header"
    yield "a column twice", [*header, header[-1]], [[*row, row[-1]] for row in rows], "is there twice"
    yield "no rows", header, [], "is missing"


def broken_answers(header, rows, rules):
    """What graders of this kind refuse in the cells."""
    cell = lambda text: (header, changed(rows, 0, text))
    more = (header + ["extra"], [row + ["1"] for row in rows])
    if rules.exact:
        yield "a column that nobody asked for", *more, "not asked for"
    if rules.kind in NUMERIC:
        for what, text, reason in (
            ("a word", "likely", "not a number"),
            ("nothing", "", "not a number"),
            ("nan", "nan", "not a number"),
            ("a number too low", str(rules.low - 0.01), "not between"),
            ("a number too high", str(rules.high + 0.01), "not between"),
        ):
            yield what, *cell(text), reason
    if rules.kind == "shares":
        yield "a row that does not sum to 1", header, [[rows[0][0]] + ["0.3"] * (len(header) - 1), *rows[1:]], "sums to"
        place = rows[0].index("1")
        yield "a sum that is 0.0001 short", header, changed(rows, 0, "0.9999", place), "sums to"
    if rules.kind in ("whole", "grade"):
        for text in ("1.5", "3.0", "", "one"):
            yield f"{text!r} for a whole number", *cell(text), "not a whole number"
    if rules.kind == "grade":
        yield "a grade too high", *cell(str(int(rules.high) + 1)), "does not exist"
    if rules.kind == "class":
        yield "an empty answer", *cell(""), "is empty"
    if rules.kind == "ranked":
        yield "six classes", *cell("a b c d e f"), "more than five"
        yield "commas in a list", *cell("a,b,c"), "other things than blanks"
        yield "an empty list", *cell(""), "is empty"
    if rules.kind == "labels":
        other = ";" if rules.separator != ";" else "|"
        yield "another separator", *cell(f"a{other}b"), "something else"


class Trial:
    """The cases of one competition in a folder of its own."""

    def __init__(self, name, place):
        self.name, self.rules = name, COMPETITIONS[name].rules
        self.data, self.path = place / "data", place / "submission.csv"
        self.answers = place / "data.answers.csv"
        self.cases, self.troubles = 0, []
        COMPETITIONS[name].make(Folder(self.data, self.answers, 3, 0.25))
        self.header, self.rows = read_table(self.answers)

    def note(self, good, text):
        """Counts a case; says what was wrong."""
        self.cases += 1
        if not good:
            self.troubles.append(f"{self.name}: {text}")

    def outcome(self, header, rows):
        """What the grader says of a submission: a verdict or a reason."""
        write_table(self.path, header, rows, ",")
        try:
            return grade(self.rules, self.answers, self.path)
        except Refused as reason:
            return str(reason)

    def expect(self, what, better, header, rows):
        """A valid submission that is or is not better than chance."""
        got = self.outcome(header, rows)
        self.note(not isinstance(got, str) and got.better == better, f"{what}: {got}")

    def good(self):
        """What must be taken."""
        self.expect("true answers", True, self.header, self.rows)
        self.expect("true answers in another order", True, self.header, self.rows[::-1])
        if not self.rules.exact:
            self.expect(
                "one more column", True, ["", *self.header], [[str(i), *row] for i, row in enumerate(self.rows)]
            )
        _, row = best_trivial([one[1:] for one in self.rows], self.rules)
        self.expect("the best without a look", False, self.header, [[one[0], *row] for one in self.rows])
        for sample in sorted(self.data.glob("*sample*submission*.csv")):
            self.expect("the sample", False, *read_table(sample))
        if self.rules.kind == "labels":
            self.expect("an empty list of labels", True, self.header, changed(self.rows, 0, ""))

    def bad(self):
        """What must be refused."""
        for what, header, rows, reason in (
            *broken_rows(self.header, self.rows),
            *broken_answers(self.header, self.rows, self.rules),
        ):
            got = self.outcome(header, rows)
            self.note(isinstance(got, str) and re.search(reason, got), f"{what}: expected {reason!r}, got {got}")
        self.path.write_bytes(b"")
        self.note(self.refused("empty"), "an empty file is taken")
        self.path.unlink()
        self.note(self.refused("cannot be read"), "an absent file is taken")

    def refused(self, reason):
        """Whether the file as it is is refused for the reason."""
        try:
            grade(self.rules, self.answers, self.path)
        except Refused as text:
            return reason in str(text)
        return False

    def folder(self):
        """What every data folder has."""
        self.note((self.data / "description.md").stat().st_size > 600, "description.md is missing or short")
        asked = [path for path in self.data.rglob("*") if path.name == self.answers.name]
        self.note(not asked, "the answers lie in the data folder")


def known_values():
    """Metrics of a few rows, worked out by hand."""
    numbers = lambda *values: np.array(values, dtype=float).reshape(len(values), -1)
    truth, scores = numbers(1, 0, 1, 0), numbers(0.9, 0.4, 0.4, 0.1)
    known = {
        "auc": (truth, scores, 0.875),
        "weighted_auc": (truth, scores, (2 * 0.4 + 0.1 + 0.5 * (0.25 + 0.5)) / 1.4),
        "log_loss": (numbers([1, 0], [0, 1]), numbers([0.5, 0.5], [0.75, 0.25]), 1.5 * np.log(2)),
        "binary_log_loss": (numbers(1, 0), numbers(0.5, 0.75), 1.5 * np.log(2)),
        "accuracy": ([1, 2, 3, 4], [1, 2, 3, 3], 0.75),
        "error": ([1, 2, 3, 4], [1, 2, 3, 3], 0.25),
        "macro_f1": (["a", "a", "b"], ["a", "b", "b"], 2 / 3),
        "micro_f1": ([{"a", "b"}, {"c"}, set()], [{"a"}, {"c", "b"}, set()], 2 / 3),
        "kappa": ([0, 1, 2, 2], [0, 1, 2, 0], 5 / 13),
        "map5": (["a", "b", "c"], [["b", "a"], ["b"], ["x"]], 0.5),
        "pf1": (numbers(1, 0), numbers(0.5, 0.5), 0.5),
        "rmse": (numbers([0, 1], [0, 1]), numbers([3, 1], [3, 1]), 1.5),
        "mae": (numbers(1, 2), numbers(2, 4), 1.5),
    }
    for name, (real, said, value) in known.items():
        got = getattr(metrics, name)(real, said)
        if abs(got - value) > 1e-3:
            yield f"metric {name}: {got}, expected {value}"


def command_says(place):
    """The exit codes and lines of check.py itself, on the last folder."""
    script = Path(__file__).parent
    name = "aerial-cactus-identification"
    make = [sys.executable, script / "make.py", name, place / "c", "--scale", "tiny"]
    subprocess.run(make, check=True)
    ends = [
        (place / "c.answers.csv", 0, "valid metric=1.0000 chance=0.5000 better=yes"),
        (place / "c/sample_submission.csv", 1, "valid metric=0.5000 chance=0.5000 better=no"),
        (place / "c/train.csv", 2, "invalid: the id "),
    ]
    for path, code, text in ends:
        ended = subprocess.run(
            [sys.executable, script / "check.py", name, place / "c", path], capture_output=True, text=True, check=False
        )
        if ended.returncode != code or not ended.stdout.startswith(f"{name} {text}"):
            yield f"check.py of {path.name}: exit code {ended.returncode}, {ended.stdout}{ended.stderr}"
    if subprocess.run(make, capture_output=True, check=False).returncode == 0:
        yield "make.py writes into a folder that exists"


def same_again(name, place):
    """Whether two folders of one seed have the same answers, and another seed has others."""
    texts = []
    for number, seed in enumerate((1, 1, 2)):
        answers = place / f"again{number}.csv"
        COMPETITIONS[name].make(Folder(place / f"again{number}", answers, seed, 0.2))
        texts.append(answers.read_bytes())
    return texts[0] == texts[1] != texts[2]


def main():
    cases, troubles = 0, []
    for name in sys.argv[1:] or COMPETITIONS:
        with tempfile.TemporaryDirectory() as place:
            trial = Trial(name, Path(place))
            trial.good()
            trial.bad()
            trial.folder()
        cases += trial.cases
        troubles += trial.troubles
    with tempfile.TemporaryDirectory() as place:
        said = [*known_values(), *command_says(Path(place))]
        if not same_again("aerial-cactus-identification", Path(place)):
            said.append("seeds: a seed does not make the same answers again, or every seed makes the same")
        cases += 18
        troubles += said
    print("\n".join([*troubles, f"{cases - len(troubles)} right, {len(troubles)} wrong"]))
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
