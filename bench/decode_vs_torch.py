#!/usr/bin/env python3
"""Measures what decoding on the GPU is worth, beside PyTorch's ways to feed it.

    bench/make_jpegs.py PHOTOS /tmp/jpegs --count 20480 --distinct 480
    bench/decode_vs_torch.py --data /tmp/jpegs
    bench/decode_vs_torch.py --data DIR --cores 8,4 --steps resnet50:256 --without-torch --json

For each number of cores (taskset): images/s of Stoker's loader with --decode cpu, gpu and both; whole
trainings from the files, as a share of the training step alone; torchvision's decoding by nvJPEG
(whole pictures, nothing else) and PyTorch's DataLoader (decoded and cropped by Pillow), both without a
training. All in one run. Needs a GPU; for PyTorch torch, torchvision and Pillow; nothing is downloaded.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from loader_vs_torch import torch_loader
from vs_torch import Failed, add_common_options, compared, processor

LIMIT_S = 600  # a command that takes longer is stuck
TORCH_BATCH = 64


def on_cores(cores, command):
    """Runs a command on the first so many cores and returns what it printed."""
    whole = ["taskset", "-c", f"0-{cores - 1}", *map(str, command)]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(whole)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def measure_loader(options, cores, decode):
    told = objects(on_cores(cores, [
        options.stoker, "bench", "loader", "--data", options.data, "--img-size", options.img_size,
        "--batch", 256, "--device", options.device, "--decode", decode, "--seconds",
        options.seconds, "--json"]))
    keys = ("images_per_second", "device_share", "cpu_seconds_per_image")
    return next({key: one.get(key) for key in keys} for one in told if "images_per_second" in one)


def measure_step(options, model, batch):
    told = objects(on_cores(os.cpu_count(), [
        options.stoker, "bench", "step", "--model", model, "--batch", batch, "--img-size",
        options.img_size, "--device", options.device, "--seconds", options.seconds, "--json"]))
    return next(one["images_per_second"] for one in told if "images_per_second" in one)


def measure_training(options, cores, model, batch, scratch):
    folder = scratch / f"{model}-{cores}"
    on_cores(cores, [options.stoker, "train", "--data", options.data, "--model", model, "--batch",
                     batch, "--img-size", options.img_size, "--epochs", options.epochs,
                     "--val-fraction", 0.05, "--device", options.device, "--out", folder])
    with (folder / "results.csv").open() as rows:
        epochs = list(csv.DictReader(rows))
    return {"images_per_second": [float(row["images_per_second"]) for row in epochs],
            "wait_fraction": [float(row["wait_fraction"]) for row in epochs]}


def torch_rates(settings):
    """Runs in a process of its own: images/s of torchvision's nvJPEG and of the DataLoader."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    files = sorted(Path(settings["data"]).rglob("*.jpg"))[:4 * TORCH_BATCH]
    encoded = [read_file(str(file)) for file in files]
    count, began = 0, None
    while began is None or time.perf_counter() - began < settings["seconds"]:
        for at in range(0, len(encoded), TORCH_BATCH):
            decode_jpeg(encoded[at:at + TORCH_BATCH], mode=ImageReadMode.RGB,
                        device=settings["device"])
            count += TORCH_BATCH
        torch.cuda.synchronize()
        if began is None:
            count, began = 0, time.perf_counter()
    nvjpeg = count / (time.perf_counter() - began)
    loader = torch_loader(settings, 64 * settings["batch"], pin_memory=True)
    batches = iter(loader)
    for _ in range(settings["workers"]):
        next(batches)
    count, began = 0, time.perf_counter()
    for _, labels in batches:
        count += len(labels)
        if time.perf_counter() - began > settings["seconds"]:
            break
    print(json.dumps({"nvjpeg": nvjpeg,
                      "data_loader": count / (time.perf_counter() - began)}))


def measure_torch(options, cores):
    settings = {"data": str(options.data), "device": options.device, "batch": 256, "workers": cores,
                "img_size": options.img_size, "crop_scale": 0.7, "seconds": options.seconds}
    return objects(on_cores(cores, [sys.executable, __file__, "--measure",
                                    json.dumps(settings)]))[-1]


def compare(options, scratch):
    steps = [step.partition(":")[::2] for step in options.steps.split(",") if step]
    alone = {model: measure_step(options, model, batch) for model, batch in steps}
    rows = []
    for cores in (int(number) for number in options.cores.split(",")):
        row = {"cores": cores, "step_alone": alone,
               "loader": {decode: measure_loader(options, cores, decode)
                          for decode in ("cpu", "gpu", "both")},
               "training": {model: measure_training(options, cores, model, batch, scratch)
                            for model, batch in steps}}
        if not options.without_torch:
            row["torch"] = measure_torch(options, cores)
        rows.append(row)
    return {"processor": processor(), "rows": rows}


def print_table(results):
    for row in results["rows"]:
        rates = {decode: one["images_per_second"] for decode, one in row["loader"].items()}
        together = rates["both"] / (rates["cpu"] + rates["gpu"])
        print(f"{row['cores']} cores")
        for decode, one in row["loader"].items():
            share = one["device_share"]
            print(f"  loader, {decode:4} {one['images_per_second']:9.0f} images/s, "
                  f"{1e6 * one['cpu_seconds_per_image']:6.0f} us of a core per image"
                  + (f", {100 * share:.0f} % by the GPU" if share is not None else ""))
        print(f"  both: {100 * together:.0f} % of the sum of cpu and gpu")
        for model, one in row["training"].items():
            first, *others = one["images_per_second"]
            rate = statistics.median(others or [first])
            print(f"  {model:16} {rate:9.0f} images/s, {100 * rate / row['step_alone'][model]:.0f} "
                  f"% of the step alone, the GPU waits {100 * one['wait_fraction'][-1]:.1f} %, "
                  f"first epoch {100 * first / rate:.0f} % of the others")
        for name, rate in row.get("torch", {}).items():
            print(f"  torch, {name:11} {rate:7.0f} images/s")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of class folders")
    parser.add_argument("--cores", default="16,8,4")
    parser.add_argument("--steps", default="resnet50:256,efficientnet_b4:128")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--without-torch", action="store_true")
    add_common_options(parser)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main():
    options = options_of(sys.argv[1:])
    if options.measure:
        torch_rates(json.loads(options.measure))
        return 0
    if options.data is None or not options.data.exists():
        print(f"--data {options.data or ''}: give a folder of class folders", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="stoker-decode-vs-torch-") as scratch:
        return compared(options, "torch and torchvision",
                        lambda: compare(options, Path(scratch)), print_table)


if __name__ == "__main__":
    sys.exit(main())
