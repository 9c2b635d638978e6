#!/usr/bin/env python3
"""Grades a submission as the competition does.

    check.py NAME DIR SUBMISSION [--answers PATH]

Prints one line, `NAME valid metric=0.91 chance=0.50 better=yes` or `NAME invalid: REASON`. The exit code is 0 where the
submission is valid and clearly better than chance, 1 where it is valid only, 2 where it is invalid.
"""

import argparse
import sys

from catalogue import COMPETITIONS
from grading import Refused, grade


def main():
    parser = argparse.ArgumentParser(description="Grades a submission as the competition does.")
    parser.add_argument("name")
    parser.add_argument("folder")
    parser.add_argument("submission")
    parser.add_argument("--answers", help="default DIR.answers.csv")
    told = parser.parse_args()
    if told.name not in COMPETITIONS:
        parser.error(f"there is no competition {told.name!r}; make.py --list prints the names")
    try:
        verdict = grade(
            COMPETITIONS[told.name].rules, told.answers or f"{told.folder.rstrip('/')}.answers.csv", told.submission
        )
    except Refused as reason:
        print(f"{told.name} invalid: {reason}")
        return 2
    better = "yes" if verdict.better else "no"
    print(f"{told.name} valid metric={verdict.metric:.4f} chance={verdict.chance:.4f} better={better}")
    return 0 if verdict.better else 1


if __name__ == "__main__":
    sys.exit(main())
