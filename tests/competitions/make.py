#!/usr/bin/env python3
"""Makes a small copy of a competition's data folder.

make.py NAME DIR [--seed N] [--scale tiny|small|large|FACTOR] [--answers PATH]
make.py --list
"""

import argparse
import shutil
import sys

from catalogue import COMPETITIONS
from files import Folder, factor_of


def arguments():
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Makes a small copy of a competition's data folder.")
    parser.add_argument("name", nargs="?", help="the competition")
    parser.add_argument("folder", nargs="?", help="the folder to make; it must not exist")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--scale", type=factor_of, default="small", help="tiny, small, large or a factor; default small"
    )
    parser.add_argument("--answers", help="where the answers go; default DIR.answers.csv")
    parser.add_argument("--list", action="store_true", help="print the names")
    return parser, parser.parse_args()


def main():
    parser, told = arguments()
    if told.list:
        print("\n".join(COMPETITIONS))
        return 0
    if told.folder is None:
        parser.error("say which competition and which folder")
    if told.name not in COMPETITIONS:
        parser.error(f"there is no competition {told.name!r}; --list prints the names")
    path = told.folder.rstrip("/")
    try:
        folder = Folder(path, told.answers or f"{path}.answers.csv", told.seed, told.scale)
    except OSError as trouble:
        parser.error(f"the folder cannot be made: {trouble}")
    try:
        COMPETITIONS[told.name].make(folder)
    except BaseException:
        shutil.rmtree(path)
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
