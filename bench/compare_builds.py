#!/usr/bin/env python3
"""Compares two builds of Stoker on this machine: did a change make anything slower?

    bench/compare_builds.py OLD_BUILD NEW_BUILD --data photos
    bench/compare_builds.py OLD_BUILD NEW_BUILD --parts step,loader --rounds 5 --json

The machine's speed drifts, so the builds take turns: each round measures both once, in fresh
processes, the order alternating. A ratio is new over old of the medians; beside it stand the lowest and
highest ratio of a round. Above 1 the new build is faster (or smaller). Parts:

step    `bench step`: images/s of training steps, on the GPU where there is one, and on the CPU
cold    `bench step` with an empty cache folder: seconds to the first step (GPU only)
loader  `bench loader`: images/s from the pictures of --data
remote  whole epochs from the object server of the tests, which waits 30 ms before every answer
train   a short training on sample pictures: images/s
size    bytes of the stripped command
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from vs_torch import Failed, processor

PARTS = ("step", "cold", "loader", "remote", "train", "size")
GPU_STEPS = (("resnet50", 256), ("resnet50", 32), ("efficientnet_b4", 128))
CPU_STEPS = (("resnet18", 16), ("resnet50", 8), ("efficientnet_b0", 8))
LIMIT_S = 900  # a run that takes longer is stuck


def stoker(build, *words, env=None):
    """What a call of the build's command prints, as JSON; the last object where there are several."""
    done = subprocess.run([str(build / "stoker"), *map(str, words)], capture_output=True, text=True,
                          timeout=LIMIT_S, env={**os.environ, **(env or {})}, check=False)
    if done.returncode != 0:
        raise Failed(f"{build}/stoker {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def has_gpu(build):
    try:
        stoker(build, "bench", "step", "--model", "resnet18", "--img-size", 32, "--batch", 2, "--seconds", 0,
               "--device", "cuda", "--json")
    except Failed:
        return False
    return True


def step_cases(options, gpu):
    """Name and measuring function of every network that is timed."""
    for device, cases in (("cuda", GPU_STEPS if gpu else ()), ("cpu", CPU_STEPS)):
        for model, batch in cases:
            def measure(build, _, device=device, model=model, batch=batch):
                return stoker(build, "bench", "step", "--model", model, "--batch", batch, "--device", device,
                              "--seconds", options.seconds, "--json")["images_per_second"]
            yield f"step {model} {batch} {device}, img/s", measure


def cold_cases(gpu):
    for model, batch in GPU_STEPS[1:] if gpu else ():
        def measure(build, scratch, model=model, batch=batch):
            # The driver keeps compiled kernels of its own below the home folder.
            env = {"XDG_CACHE_HOME": scratch, "HOME": scratch, "CUDA_CACHE_DISABLE": "1"}
            return 1 / stoker(build, "bench", "step", "--model", model, "--batch", batch, "--device", "cuda",
                              "--seconds", 0, "--json", env=env)["warmup_s"]
        yield f"cold start {model} {batch}, 1/s", measure


def loader_cases(options):
    for name, more in (("", ()), (" trivialaugment", ("--augment", "trivialaugment"))):
        def measure(build, _, more=more):
            return stoker(build, "bench", "loader", "--data", options.data, "--seconds", options.seconds, "--json",
                          *more)["images_per_second"]
        yield f"loader{name}, img/s", measure


def remote_cases(options):
    def measure(build, scratch):
        server = options.new / "tests" / "object_server"
        done = subprocess.run([sys.executable, Path(__file__).with_name("remote_vs_torch.py"), "--data", options.data,
                               "--stoker", build / "stoker", "--server", server, "--parts", "memory",
                               "--rounds", "1", "--json"], capture_output=True, text=True, timeout=LIMIT_S,
                              env={**os.environ, "TMPDIR": scratch}, check=False)
        if done.returncode != 0:
            raise Failed(f"remote_vs_torch.py: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)["memory"]["images_per_second"]
    yield "remote, img/s", measure


def train_cases(scratch):
    data = Path(scratch) / "sample"

    def measure(build, folder):
        if not data.exists():
            stoker(build, "sample", data, "--layout", "kaggle", "--json")
        run = Path(folder) / "run"
        stoker(build, "train", "--data", data, "--out", run, "--device", "cpu", "--epochs", 3, "--json")
        return json.loads((run / "summary.json").read_text())["images_per_second"]
    yield "train convnet_s cpu, img/s", measure


def size_cases():
    def measure(build, folder):
        copy = Path(folder) / "stoker"
        subprocess.run(["strip", "-o", copy, build / "stoker"], check=True)
        return 1 / copy.stat().st_size
    yield "command, 1/bytes", measure


def compared(options, name, measure):
    """One row: both builds, in turns."""
    rounds = 1 if name.startswith("command") else options.rounds
    figures = {"old": [], "new": []}
    for turn in range(rounds):
        for which in ("old", "new") if turn % 2 == 0 else ("new", "old"):
            with tempfile.TemporaryDirectory(prefix="stoker-bench-") as folder:
                figures[which].append(measure(getattr(options, which), folder))
    ratios = [new / old for new, old in zip(figures["new"], figures["old"])]
    old, new = (statistics.median(figures[which]) for which in ("old", "new"))
    return {"case": name, "old": old, "new": new, "ratio": new / old, "lowest": min(ratios),
            "highest": max(ratios)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD_BUILD")
    parser.add_argument("new", type=Path, metavar="NEW_BUILD")
    parser.add_argument("--data", type=Path, metavar="DIR", help="pictures for loader and remote")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="LIST", help="(default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--seconds", type=float, default=4, help="length of one measurement (default: 4)")
    parser.add_argument("--json", action="store_true", help="results instead of a table")
    options = parser.parse_args()
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts is a list of {', '.join(PARTS)}")
    if {"loader", "remote"} & set(parts) and options.data is None:
        parser.error("--data is missing: a folder of class folders, for the parts loader and remote")
    options.old, options.new = options.old.resolve(), options.new.resolve()
    for build in (options.old, options.new):
        if not os.access(build / "stoker", os.X_OK):
            parser.error(f"{build}/stoker is not there")
    gpu = {"step", "cold"} & set(parts) and has_gpu(options.new)
    results = []
    scratch = tempfile.mkdtemp(prefix="stoker-bench-")
    try:
        cases = {"step": lambda: step_cases(options, gpu), "cold": lambda: cold_cases(gpu),
                 "loader": lambda: loader_cases(options), "remote": lambda: remote_cases(options),
                 "train": lambda: train_cases(scratch), "size": size_cases}
        if not options.json:
            print(f"{processor()}, {len(os.sched_getaffinity(0))} cores; ratios above 1: the new build is better")
        for part in parts:
            for name, measure in cases[part]():
                row = compared(options, name, measure)
                results.append(row)
                if not options.json:
                    print(f"{name:40} {row['old']:12.6g} {row['new']:12.6g}  {row['ratio']:.3f}"
                          f" ({row['lowest']:.3f} to {row['highest']:.3f})", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"compare_builds.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
