#!/usr/bin/env python3
"""Trains one network with Stoker and with PyTorch by the same recipe and compares the accuracies.

    bench/accuracy_vs_torch.py --data caltech101-128.tar
    bench/accuracy_vs_torch.py --data DIR --model resnet18 --epochs 8 --seeds 3 --torch-device cuda

The data are class folders, in a tar or unpacked. Every fifth picture of a class goes to the
validation set, which both use. The recipe: SGD with Nesterov momentum 0.9, a linear warm-up over the
first 5 % of the steps and half a cosine down to zero, weight decay 5e-4 that spares norms and biases,
random crops of at least the given share of a picture, horizontal flips, float32. Seeds differ between
the two on purpose: only the spread over seeds can tell whether the accuracies agree.

Printed are the accuracies of the last epoch per seed, their means, and the difference beside its
standard error. Needs torch, torchvision, timm and Pillow; nothing is downloaded.
"""
import argparse
import csv
import datetime
import math
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from vs_torch import Failed, ROOT, add_common_options, compared

PICTURES = {".jpg", ".jpeg", ".png"}
WARM_UP = 0.05
VALIDATE_EVERY = 5


def lay_out(source, folder):
    """Class folders below train/ and val/ of `folder`; returns the number of pictures of each."""
    if source.is_file():
        with tarfile.open(source) as archive:
            archive.extractall(folder / "all", filter="data")
        source = folder / "all"
    classes = sorted({path.parent for path in source.rglob("*") if path.suffix.lower() in PICTURES})
    if len(classes) < 2:
        raise Failed(f"{source} has no class folders with pictures")
    counts = {"train": 0, "val": 0}
    for directory in classes:
        files = sorted(p for p in directory.iterdir() if p.suffix.lower() in PICTURES)
        for number, path in enumerate(files):
            part = "val" if number % VALIDATE_EVERY == VALIDATE_EVERY - 1 else "train"
            target = folder / "data" / part / directory.name
            target.mkdir(parents=True, exist_ok=True)
            os.symlink(path.resolve(), target / path.name)
            counts[part] += 1
    return counts


def train_stoker(options, folder, seed):
    run = folder / f"stoker-{seed}"
    command = [options.stoker, "train", "--data", folder / "data", "--model", options.model,
               "--img-size", options.img_size, "--batch", options.batch, "--epochs", options.epochs,
               "--lr", options.lr, "--momentum", 0.9, "--weight-decay", 5e-4, "--warmup", WARM_UP,
               "--crop-scale", options.crop_scale, "--patience", 0, "--device", "cpu", "--seed", seed,
               "--out", run, "--quiet"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"stoker failed: {done.stderr.strip()[-600:]}")
    with open(run / "results.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [float(row["val/acc1"]) for row in rows]


def schedule(progress):
    if progress < WARM_UP:
        return max(progress / WARM_UP, 0.02)
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def torch_data(options, folder, preprocessing):
    import torch
    from torchvision import datasets, transforms

    _, crop, interpolation, mean, std = preprocessing
    filters = transforms.InterpolationMode
    norm = transforms.Normalize(mean, std)
    size = options.img_size
    train = transforms.Compose([
        transforms.RandomResizedCrop(size, scale=(options.crop_scale, 1)),
        transforms.RandomHorizontalFlip(), transforms.ToTensor(), norm])
    val = transforms.Compose([
        transforms.Resize(math.floor(size / crop), interpolation=filters(interpolation)),
        transforms.CenterCrop(size), transforms.ToTensor(), norm])
    workers = min(16, os.cpu_count() or 1)
    sets = (datasets.ImageFolder(folder / "data" / "train", train),
            datasets.ImageFolder(folder / "data" / "val", val))
    return tuple(
        torch.utils.data.DataLoader(data, batch_size=options.batch, shuffle=training,
                                    drop_last=training, num_workers=workers,
                                    persistent_workers=True)
        for data, training in zip(sets, (True, False)))


def accuracy(model, loader, device):
    import torch

    model.eval()
    right = total = 0
    with torch.inference_mode():
        for images, labels in loader:
            predicted = model(images.to(device)).argmax(1).cpu()
            right += (predicted == labels).sum().item()
            total += len(labels)
    return 100 * right / total


def torch_model(name, classes):
    """The network and its preprocessing, as the golden values of the tests have them."""
    sys.path.insert(0, str(ROOT / "tests" / "golden"))
    from make_model_golden import make

    return make(name, classes)


def train_torch(options, folder, seed):
    import torch

    torch.manual_seed(1000 + seed)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = torch.device(options.torch_device)
    classes = sum(1 for entry in (folder / "data" / "train").iterdir() if entry.is_dir())
    model, preprocessing = torch_model(options.model, classes)
    train, val = torch_data(options, folder, preprocessing)
    model = model.to(device)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    undecayed = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": 5e-4}, {"params": undecayed, "weight_decay": 0}],
        lr=options.lr, momentum=0.9, nesterov=True)
    criterion = torch.nn.CrossEntropyLoss()
    total = len(train) * options.epochs
    done = 0
    reached = []
    for _ in range(options.epochs):
        model.train()
        for images, labels in train:
            for group in optimizer.param_groups:
                group["lr"] = options.lr * schedule(done / total)
            optimizer.zero_grad(set_to_none=True)
            criterion(model(images.to(device)), labels.to(device)).backward()
            optimizer.step()
            done += 1
        reached.append(accuracy(model, val, device))
    return reached


def compare(options, folder, note):
    counts = lay_out(options.data, folder)
    note(f"{counts['train']} pictures to train with, {counts['val']} to validate")
    runs = {"stoker": [], "torch": []}
    for seed in range(options.seeds):
        for name, train in (("stoker", train_stoker), ("torch", train_torch)):
            start = time.monotonic()
            runs[name].append(train(options, folder, seed))
            note(f"seed {seed}, {name}: {runs[name][-1][-1]:.2f} % after "
                 f"{time.monotonic() - start:.0f} s")
    last = {name: [curve[-1] for curve in curves] for name, curves in runs.items()}
    means = {name: statistics.mean(values) for name, values in last.items()}
    error = math.sqrt(sum(statistics.variance(v) / len(v) for v in last.values())) \
        if options.seeds > 1 else None
    return {"bench": "accuracy_vs_torch", "date": datetime.date.today().isoformat(),
            "machine": platform.machine(), "versions": versions(), "model": options.model,
            "img_size": options.img_size, "batch": options.batch, "epochs": options.epochs,
            "lr": options.lr, "crop_scale": options.crop_scale, **counts,
            "stoker": {"acc1": means["stoker"], "seeds": last["stoker"], "curves": runs["stoker"]},
            "torch": {"acc1": means["torch"], "seeds": last["torch"], "curves": runs["torch"]},
            "difference": means["stoker"] - means["torch"], "standard_error": error}


def versions():
    import timm
    import torch
    import torchvision

    return {"python": platform.python_version(), "torch": torch.__version__,
            "torchvision": torchvision.__version__, "timm": timm.__version__}


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path,
                        default=ROOT.parent / "shared" / "data" / "caltech101-128.tar")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--img-size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--crop-scale", type=float, default=0.35)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--torch-device", default="cpu")
    add_common_options(parser)
    return parser.parse_args(arguments)


def compare_in_scratch(options):
    with tempfile.TemporaryDirectory(prefix="stoker-accuracy-") as folder:
        return compare(options, Path(folder), lambda text: print(text, file=sys.stderr))


def print_table(result):
    for name in ("stoker", "torch"):
        seeds = " ".join(f"{value:.2f}" for value in result[name]["seeds"])
        print(f"{name:8} {result[name]['acc1']:6.2f} %  ({seeds})")
    error = result["standard_error"]
    print(f"difference {result['difference']:+.2f}" +
          (f" (standard error {error:.2f})" if error is not None else ""))


def main():
    options = options_of(sys.argv[1:])
    if not options.data.exists():
        print(f"{options.data} is not there: give class folders with --data", file=sys.stderr)
        return 2
    return compared(options, "PyTorch, torchvision and timm", lambda: compare_in_scratch(options),
                    print_table)


if __name__ == "__main__":
    sys.exit(main())
