#!/usr/bin/env python3
"""Trains one network from JPEG files with Stoker and with PyTorch and compares how fast epochs go.

    bench/make_jpegs.py PHOTOS /tmp/jpegs --count 20480 --distinct 480
    bench/train_vs_torch.py --data /tmp/jpegs
    bench/train_vs_torch.py --data DIR --steps resnet50:256,efficientnet_b4:128 --epochs 3 --json

Both read the same class folders, of which every fifth picture is Stoker's validation set, crop at
random, flip, and train in mixed precision with SGD. PyTorch reads as its own examples do (ImageFolder,
Pillow, as many persistent workers as there are cores, pinned memory, channels-last) and computes with
timm's network, eagerly or through torch.compile (--torch-mode); it does not validate.

Told are images/s of each epoch, for Stoker from results.csv, for PyTorch from the first batch that is
asked for to the last step that has ended; compiling counts where it happens. Beside them the seconds
from the launch of the process to the end of the first epoch, in which Stoker's validation is. Each
runs in a process of its own.

Needs torch, torchvision, timm and Pillow; nothing is downloaded.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from accuracy_vs_torch import lay_out, versions
from loader_vs_torch import torch_loader
from vs_torch import Failed, ROOT, add_common_options, compared

LIMIT_S = 900  # a training that takes longer is stuck


def measure_torch(settings):
    """Runs in a process of its own."""
    import timm
    import torch

    sys.path.insert(0, str(ROOT / "src" / "probe"))
    from torch_step import make_trainer

    device = torch.device(settings["device"])
    torch.backends.cudnn.benchmark = True
    loader = torch_loader(settings, drop_last=True, pin_memory=device.type == "cuda")
    step = make_trainer(torch, timm, settings, device, settings["torch_mode"])
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    rates = []
    first_epoch_at = None
    for _ in range(settings["epochs"]):
        images, started = 0, time.perf_counter()
        for pixels, labels in loader:
            step(pixels, labels)
            images += len(labels)
        wait()
        rates.append(images / (time.perf_counter() - started))
        first_epoch_at = first_epoch_at or time.time()
    print(json.dumps({"epochs": rates, "first_epoch_s": first_epoch_at - settings["launched"]}),
          flush=True)
    os._exit(0)  # Workers end with their parent; an orderly end takes seconds.


def run(command):
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} was not done after {LIMIT_S} s") from None
    if done.returncode != 0:
        raise Failed(f"{command[0]} ended with exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return done.stdout


def train_torch(settings):
    settings = settings | {"launched": time.time()}
    out = run([sys.executable, Path(__file__).resolve(), "--measure", json.dumps(settings)])
    return json.loads(out.strip().splitlines()[-1])


def train_stoker(options, settings, folder):
    out = folder / f"stoker-{settings['model']}"
    run([options.stoker, "train", "--data", folder / "data", "--model", settings["model"],
         "--img-size", settings["img_size"], "--batch", settings["batch"], "--epochs",
         settings["epochs"], "--crop-scale", settings["crop_scale"], "--patience", 0, "--precision",
         settings["precision"], "--device", settings["device"], "--out", out, "--quiet"])
    with open(out / "results.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    return {"epochs": [float(row["images_per_second"]) for row in rows],
            "wait_fraction": [float(row["wait_fraction"]) for row in rows],
            "first_epoch_s": next(e["t"] for e in events if e["event"] == "epoch")}


def machine(device):
    if not device.startswith("cuda"):
        return f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores"
    import torch

    return f"{torch.cuda.get_device_name(device)}, {len(os.sched_getaffinity(0))} cores"


def told(figures):
    return (", ".join(f"{rate:.0f}" for rate in figures["epochs"])
            + f" images/s by epoch, {figures['first_epoch_s']:.1f} s to the end of the first")


def compare(options, model, batch, folder, counts, note):
    classes = sum(1 for entry in (folder / "data" / "train").iterdir() if entry.is_dir())
    settings = {"model": model, "batch": batch, "img_size": options.img_size, "classes": classes,
                "precision": options.precision, "device": options.device, "epochs": options.epochs,
                "crop_scale": options.crop_scale, "workers": len(os.sched_getaffinity(0)),
                "data": str(folder / "data" / "train"), "torch_mode": options.torch_mode,
                "inference": False}
    stoker = train_stoker(options, settings, folder)
    note(f"{model}, batch {batch}, Stoker: {told(stoker)}")
    torch = train_torch(settings)
    note(f"{model}, batch {batch}, PyTorch, {options.torch_mode}: {told(torch)}")
    return {"bench": "train_vs_torch", "date": datetime.date.today().isoformat(),
            "machine": machine(options.device), "versions": versions(), "model": model,
            "batch": batch, "img_size": options.img_size, "precision": options.precision,
            "torch_mode": options.torch_mode, **counts, "stoker": stoker, "torch": torch,
            "first_ratio": stoker["epochs"][0] / torch["epochs"][0],
            "last_ratio": stoker["epochs"][-1] / torch["epochs"][-1]}


def print_table(results):
    print(f"{'model':20} {'batch':>5} {'':8} {'first epoch':>11} {'last':>7} {'s to the end of the first':>26}")
    for r in results:
        for name in ("stoker", "torch"):
            figures = r[name]
            print(f"{r['model']:20} {r['batch']:5} {name:8} {figures['epochs'][0]:11.0f}"
                  f" {figures['epochs'][-1]:7.0f} {figures['first_epoch_s']:26.1f}")
        print(f"{'':35} {r['first_ratio']:11.2f} {r['last_ratio']:7.2f}"
              f" {r['torch']['first_epoch_s'] / r['stoker']['first_epoch_s']:26.2f}  times")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="class folders with pictures")
    parser.add_argument("--steps", default="resnet50:256,efficientnet_b4:128",
                        help="MODEL:BATCH, several with commas")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--img-size", type=int, default=224)
    parser.add_argument("--crop-scale", type=float, default=0.25)
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--torch-mode", default="compile",
                        choices=("eager", "compile", "reduce-overhead"))
    add_common_options(parser)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def compare_all(options):
    def note(text):
        print(text, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="stoker-train-vs-torch-") as scratch:
        counts = lay_out(options.data, Path(scratch))
        steps = [step.partition(":") for step in options.steps.split(",")]
        return [compare(options, model, int(batch), Path(scratch), counts, note)
                for model, _, batch in steps]


def main():
    options = options_of(sys.argv[1:])
    if options.measure:
        measure_torch(json.loads(options.measure))
    if options.data is None or not options.data.exists():
        print(f"--data {options.data or ''}: give a folder of class folders", file=sys.stderr)
        return 2
    return compared(options, "PyTorch, torchvision and timm", lambda: compare_all(options),
                    print_table)


if __name__ == "__main__":
    sys.exit(main())
