"""What the comparisons with PyTorch have in common: two options, how they end, and on what they ran."""
import json
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A sentence for the person who started the script."""


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def add_common_options(parser):
    parser.add_argument("--stoker", type=Path, default=ROOT / "build" / "stoker")
    parser.add_argument("--json", action="store_true", help="results instead of a table")


def compared(options, needed, compare, print_table):
    """Prints what compare() returns as the options say; returns the script's exit code."""
    if not options.stoker.is_file():
        print(f"{options.stoker} is not there: run `make`, or give --stoker", file=sys.stderr)
        return 2
    try:
        results = compare()
    except ImportError as error:
        print(f"{needed} are needed: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        print_table(results)
    return 0
