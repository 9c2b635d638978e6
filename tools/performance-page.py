#!/usr/bin/env python3
"""Writes the tables of docs/performance.md anew from the files in bench/results.

    tools/performance-page.py            # writes
    tools/performance-page.py --check    # fails when the page is not what the files say

Only what stands between the two marks is written; everything else on the page is by hand. Of several
measurements of the same thing the latest counts.
"""
import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "bench" / "results"
BEGIN = "<!-- tables: made by tools/performance-page.py from bench/results -->"
END = "<!-- end of the tables -->"


def entries():
    """Every object of every file, the oldest first."""
    found = []
    for path in sorted(RESULTS.glob("*.json")):
        content = json.loads(path.read_text())
        found += content if isinstance(content, list) else [content]
    return sorted(found, key=lambda entry: entry["date"])


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def share(value):
    return "" if value is None else f"{100 * value:.0f} %"


def key_of(entry):
    return tuple(entry[key] for key in ("machine", "mode", "model", "precision", "batch"))


def gpu_tables(found):
    """Per machine what one GPU does, PyTorch beside it where it was measured."""
    steps, torch = {}, {}
    for entry in found:
        if entry.get("bench") != "step":
            continue
        if entry.get("compare") == "torch":
            if entry["images_per_second"]:
                torch.setdefault(key_of(entry), {})[entry["torch_mode"]] = entry["images_per_second"]
        else:
            steps[key_of(entry)] = entry
    lines = []
    for machine, mode in sorted({(key[0], key[1]) for key in steps}, reverse=True):
        rows = []
        for key, step in sorted(steps.items()):
            if key[:2] != (machine, mode):
                continue
            beside = torch.get(key, {})
            rows.append([step["model"], f"{step['batch']}", step["precision"],
                         f"{step['images_per_second']:,.0f}", f"{step['ms_per_step']:.2f}",
                         f"{step['bytes'] / 2**30:.2f} GiB", f"{step['warmup_s']:.1f} s",
                         share(step.get("traffic_fraction"))]
                        + [f"{beside[m]:,.0f}" if m in beside else "" for m in ("eager", "compile", "reduce-overhead")])
        date = max(step["date"] for key, step in steps.items() if key[:2] == (machine, mode))
        lines += [f"### {machine}: {mode} ({date})", ""]
        lines += table(["model", "batch", "precision", "images/s", "ms per step", "memory",
                        "warm-up", "of the bandwidth", "PyTorch eager", "torch.compile", "with CUDA graphs"], rows) + [""]
    return lines or ["No GPU was measured yet: `make gpu-test` does it.", ""]


def train_table(found):
    """Whole epochs from JPEG files; empty before the first measurement."""
    latest = {(e["machine"], e["model"], e["batch"]): e for e in found
              if e.get("bench") == "train_vs_torch"}
    rows = []
    for _, e in sorted(latest.items()):
        for name, shown in (("stoker", "Stoker"), ("torch", f"PyTorch, {e['torch_mode']}")):
            rates = [f"{rate:,.0f}" for rate in e[name]["epochs"]]
            rows.append([e["machine"], e["model"], f"{e['batch']}", shown, rates[0],
                         ", ".join(rates[1:]), f"{e[name]['first_epoch_s']:.1f} s"])
    return ["## From JPEG files to a trained step", ""] + table(
        ["machine", "model", "batch", "", "first epoch", "later epochs", "launch to the end of the first"],
        rows) + [""] if rows else []


def cpu_table(found):
    latest = {(e["machine"], e["mode"], e["model"], e["batch"]): e for e in found
              if e.get("bench") == "step_vs_torch"}
    rows = [[e["machine"], e["mode"], e["model"], f"{e['batch']}",
             f"{e['stoker']['images_per_second']:.1f}", f"{e['torch']['images_per_second']:.1f}",
             f"{e['ratio']:.2f} ({e['ratio_low']:.2f} to {e['ratio_high']:.2f})",
             f"{e['stoker']['rss_bytes'] / 1e9:.2f} GB against {e['torch']['rss_bytes'] / 1e9:.2f} GB"]
            for _, e in sorted(latest.items())]
    return table(["machine", "mode", "model", "batch", "images/s", "PyTorch", "ratio (of rounds)",
                  "memory of the process"], rows) + [""]


def made(found):
    return "\n".join(["", "## On a GPU", ""] + gpu_tables(found) + train_table(found)
                     + ["## On a CPU, beside PyTorch", ""] + cpu_table(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text()
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        print(f"{PAGE} lacks one of its marks: {BEGIN} or {END}", file=sys.stderr)
        return 1
    new = before + BEGIN + "\n" + made(entries()) + END + after
    if options.check:
        if new != page:
            print(f"{PAGE} is not what bench/results says; run tools/performance-page.py",
                  file=sys.stderr)
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
