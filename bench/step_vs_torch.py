#!/usr/bin/env python3
"""Compares a training step of Stoker with PyTorch's on this machine's cores.

    bench/step_vs_torch.py
    bench/step_vs_torch.py --models resnet18,resnet50 --batch 16 --cores 2 --rounds 3
    bench/step_vs_torch.py --json >>bench/results/step.json

Both train the same network (timm's definition on PyTorch's side) in float32 on pictures that are in
memory already: forward, loss, backward and SGD with Nesterov momentum. PyTorch runs eagerly, in the
channels-last layout, with as many threads as there are cores. Each round measures both once, in a
fresh process on the same cores, so that drifts of the machine meet both; the ratio is that of the
medians, with the lowest and highest ratio of a round beside it.

Memory is the most that each process had resident. For PyTorch what was resident after the imports is
told beside it, since Python itself needs some.

Needs torch and timm; nothing is downloaded.
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys

from vs_torch import Failed, ROOT, add_common_options, compared, processor

LIMIT_S = 900  # a measurement that takes longer is stuck
TORCH_STEP = ROOT / "src" / "probe" / "torch_step.py"


def run(command, cores):
    """The last line of a command's output, which is JSON."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              preexec_fn=lambda: os.sched_setaffinity(0, cores))
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} did not end within {LIMIT_S} s") from error
    if done.returncode != 0 or not done.stdout.strip():
        raise Failed(f"{' '.join(command)} failed: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_stoker(options, settings, cores):
    command = [str(options.stoker), "bench", "step", "--model", settings["model"], "--batch",
               str(settings["batch"]), "--img-size", str(settings["img_size"]), "--classes",
               str(settings["classes"]), "--device", "cpu", "--threads", str(settings["threads"]),
               "--seconds", str(settings["seconds"]), "--json"]
    return run(command + (["--inference"] if settings["inference"] else []), cores)


def run_torch(settings, cores):
    wanted = settings | {"device": "cpu", "precision": "fp32", "modes": ["eager"]}
    result = run([sys.executable, str(TORCH_STEP), json.dumps(wanted)], cores)
    trouble = result.get("missing") or result.get("error")
    if trouble:
        raise Failed(f"PyTorch cannot be measured: {trouble}")
    return result


def medians(rounds):
    keys = [key for key, value in rounds[0].items() if isinstance(value, (int, float))]
    result = dict(rounds[0])
    for key in keys:
        result[key] = statistics.median(r[key] for r in rounds)
    result["rounds"] = [r["images_per_second"] for r in rounds]
    return result


def compare(options, model, cores):
    settings = {"model": model, "batch": options.batch, "img_size": options.img_size,
                "classes": options.classes, "threads": len(cores), "seconds": options.seconds,
                "inference": options.inference}
    ours, theirs = [], []
    for number in range(options.rounds):
        print(f"{model}: round {number + 1} of {options.rounds}", file=sys.stderr)
        ours.append(run_stoker(options, settings, cores))
        theirs.append(run_torch(settings, cores))
    ratios = [a["images_per_second"] / b["images_per_second"] for a, b in zip(ours, theirs)]
    stoker, torch = medians(ours), medians(theirs)
    return {"bench": "step_vs_torch", "mode": "inference" if options.inference else "training",
            "model": model, "batch": options.batch, "img_size": options.img_size,
            "cores": len(cores), "stoker": stoker, "torch": torch,
            "ratio": stoker["images_per_second"] / torch["images_per_second"],
            "ratio_low": min(ratios), "ratio_high": max(ratios),
            "memory_ratio": stoker["rss_bytes"] / torch["rss_bytes"]}


def versions():
    import timm
    import torch

    return {"python": platform.python_version(), "torch": torch.__version__,
            "timm": timm.__version__}


def print_table(results):
    print(f"{'model':24} {'stoker':>9} {'torch':>9} {'ratio':>6} {'(low to high)':>15}"
          f" {'memory MB':>10} {'torch':>7} {'idle':>6}")
    for r in results:
        spread = f"({r['ratio_low']:.2f} to {r['ratio_high']:.2f})"
        print(f"{r['model']:24} {r['stoker']['images_per_second']:9.2f}"
              f" {r['torch']['images_per_second']:9.2f} {r['ratio']:6.2f} {spread:>15}"
              f" {r['stoker']['rss_bytes'] / 1e6:10.0f} {r['torch']['rss_bytes'] / 1e6:7.0f}"
              f" {r['torch']['idle_rss_bytes'] / 1e6:6.0f}")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--models", default="resnet18,resnet50")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10, help="per measurement")
    parser.add_argument("--inference", action="store_true")
    add_common_options(parser)
    return parser.parse_args(arguments)


def compare_all(options):
    cores = set(sorted(os.sched_getaffinity(0))[:options.cores])
    about = {"date": datetime.date.today().isoformat(), "machine": processor(),
             "versions": versions()}
    return [about | compare(options, model, cores) for model in options.models.split(",")]


def main():
    options = options_of(sys.argv[1:])
    return compared(options, "PyTorch and timm", lambda: compare_all(options), print_table)


if __name__ == "__main__":
    sys.exit(main())
