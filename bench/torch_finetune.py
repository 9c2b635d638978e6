#!/usr/bin/env python3
"""Fine-tunes a timm model within a time budget, as an ordinary PyTorch script does it.

    bench/torch_finetune.py --data DIR --model resnet18 --weights resnet18.safetensors --budget 60 --out FILE.csv

This is the peer of Stoker in bench/accuracy.py. DIR has train/CLASS/ and test/, the latter without classes.
All training pictures train; nothing validates. The recipe: RandomResizedCrop that keeps at least 35 % of a
picture, horizontal flips, label smoothing 0.1, AdamW with rate 0.001 and weight decay 0.05, batch 64, a
warm-up over 5 % of the training and half a cosine down to zero, channels-last, on a GPU mixed precision
(bf16, or fp16 where the GPU has no bf16), on a CPU float32, a DataLoader with as many workers as cores.

The budget is wall time from the start of the process to the written predictions, so imports count. The
learning rate follows the clock: progress is the share of the time for training that has passed. The time
that predicting will need is estimated from the first training steps and kept free.

The predictions have the columns of Stoker's submission: id, label, and the probability of every class. The
last line on standard output is a JSON object with what was done. Nothing is downloaded.
"""
import time

START = time.monotonic()  # before the imports, which take seconds

import argparse
import csv
import json
import math
import os
import sys
from pathlib import Path

try:
    import safetensors.torch
    import timm
    import torch
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset
    from torchvision import datasets, transforms
except ImportError as missing:
    sys.exit(f"PyTorch, torchvision, timm, safetensors and Pillow are needed: {missing}")

WARM_UP = 0.05
CROP_SCALE = 0.35
SMOOTHING = 0.1
WEIGHT_DECAY = 0.05
UNTIMED_STEPS = 2  # the first ones also choose algorithms and allocate memory
EXIT_S = 1.2  # for writing the predictions and for the end of the process


class TestPictures(Dataset):
    """The pictures of one folder, in the order of their names."""

    def __init__(self, folder, transform):
        self.paths = sorted(path for path in folder.iterdir() if path.is_file())
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with Image.open(self.paths[index]) as picture:
            return self.transform(picture.convert("RGB"))


def elapsed():
    return time.monotonic() - START


def make_model(name, weights, classes):
    """The network; a head for another number of classes starts anew."""
    model = timm.create_model(name, num_classes=classes)
    if weights is not None:
        own = model.state_dict()
        head = model.pretrained_cfg["classifier"] + "."
        loaded = {key: value.float() for key, value in safetensors.torch.load_file(weights).items()
                  if not (key.startswith(head) and (key not in own or own[key].shape != value.shape))}
        missing, unknown = model.load_state_dict(loaded, strict=False)
        missing = [key for key in missing if not key.startswith(head) and not key.endswith("num_batches_tracked")]
        if missing or unknown:
            sys.exit(f"{weights} does not fit {name}: {', '.join((missing + unknown)[:4])}")
    return model


def make_data(options, model, cuda):
    """Loaders of the training and the test pictures."""
    config = timm.data.resolve_data_config({}, model=model)
    size = options.img_size or config["input_size"][-1]
    norm = transforms.Normalize(config["mean"], config["std"])
    filters = transforms.InterpolationMode(config["interpolation"])
    train = datasets.ImageFolder(options.data / "train", transforms.Compose([
        transforms.RandomResizedCrop(size, scale=(CROP_SCALE, 1)), transforms.RandomHorizontalFlip(),
        transforms.ToTensor(), norm]))
    test = TestPictures(options.data / "test", transforms.Compose([
        transforms.Resize(math.floor(size / config["crop_pct"]), interpolation=filters),
        transforms.CenterCrop(size), transforms.ToTensor(), norm]))
    workers = len(os.sched_getaffinity(0))
    batch = min(options.batch, len(train))
    return (DataLoader(train, batch_size=batch, shuffle=True, drop_last=True, num_workers=workers,
                       persistent_workers=True, pin_memory=cuda),
            DataLoader(test, batch_size=options.batch, num_workers=workers, pin_memory=cuda))


def rate_factor(progress):
    if progress < WARM_UP:
        return max(progress / WARM_UP, 0.02)
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def forward_seconds(model, images, device, precision):
    """How long a batch takes when it is predicted."""
    began = elapsed()
    model.eval()
    with torch.inference_mode(), torch.autocast(device.type, precision, enabled=device.type == "cuda"):
        model(images).float().softmax(1).cpu()
    model.train()
    return elapsed() - began


def train_until(options, model, loader, test_batches, device, precision):
    """Trains until only the time for predicting is left; returns what was done."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": WEIGHT_DECAY},
                                   {"params": others, "weight_decay": 0}], lr=options.lr)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == torch.float16)
    began = elapsed()
    end = began + 0.6 * (options.budget - began)  # a guess, until steps were timed
    start_up = timed_from = planned = None
    step_s = forward_s = 0
    steps = 0
    model.train()
    while True:
        for images, labels in loader:
            now = elapsed()
            if steps == 0:
                start_up = now - began
            elif steps == UNTIMED_STEPS:
                timed_from = now
            elif steps > UNTIMED_STEPS:
                # Each worker has read a batch during the start-up. Predicting is never slower than training.
                step_s = (now - timed_from) / (steps - UNTIMED_STEPS)
                planned = start_up + test_batches * min(step_s, forward_s + start_up / loader.num_workers)
                end = options.budget - EXIT_S - planned
            if now + step_s >= end:
                return {"steps": steps, "epochs": round(steps / len(loader), 2), "step_s": step_s,
                        "train_s": now - began, "before_training_s": began, "predict_planned_s": planned}
            for group in optimizer.param_groups:
                group["lr"] = options.lr * rate_factor((now - began) / (end - began))
            optimizer.zero_grad(set_to_none=True)
            images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
            with torch.autocast(device.type, precision, enabled=device.type == "cuda"):
                loss = criterion(model(images), labels.to(device, non_blocking=True))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            steps += 1
            if steps % 8 == 0:
                loss.item()  # waits for the GPU, so that the clock counts steps that are done
            if steps == UNTIMED_STEPS:
                forward_s = forward_seconds(model, images, device, precision)


def predict(model, loader, device, precision):
    """The probabilities of all test pictures."""
    model.eval()
    torch.backends.cudnn.benchmark = False  # the last batch has a shape of its own
    rows = []
    with torch.inference_mode(), torch.autocast(device.type, precision, enabled=device.type == "cuda"):
        for images in loader:
            images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
            rows.append(model(images).float().softmax(1).cpu())
    return torch.cat(rows).tolist()


def write(path, test, classes, rows):
    prefix = "p_" if {"id", "label"} & set(classes) else ""
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "label", *(prefix + name for name in classes)])
        for picture, row in zip(test.paths, rows):
            table.writerow([picture.stem, classes[row.index(max(row))], *(f"{value:.6g}" for value in row)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with train/CLASS/ and test/")
    parser.add_argument("--model", required=True, help="timm's name")
    parser.add_argument("--weights", type=Path, help="safetensors file with timm's names (default: random weights)")
    parser.add_argument("--budget", type=float, required=True, help="seconds")
    parser.add_argument("--out", type=Path, required=True, help="CSV file of the predictions")
    parser.add_argument("--img-size", type=int, help="(default: the model's)")
    parser.add_argument("--batch", type=int, default=64, help="(default: 64)")
    parser.add_argument("--lr", type=float, default=1e-3, help="(default: 0.001)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    cuda = options.device != "cpu" and torch.cuda.is_available()
    if options.device == "cuda" and not cuda:
        sys.exit("PyTorch finds no GPU")
    device = torch.device("cuda" if cuda else "cpu")
    precision = torch.bfloat16 if not cuda or torch.cuda.is_bf16_supported() else torch.float16
    torch.backends.cudnn.benchmark = cuda
    classes = sorted(entry.name for entry in (options.data / "train").iterdir() if entry.is_dir())
    model = make_model(options.model, options.weights, len(classes))
    train, test = make_data(options, model, cuda)
    model = model.to(device, memory_format=torch.channels_last)
    done = train_until(options, model, train, len(test), device, precision)
    train = None  # ends its workers
    began = elapsed()
    write(options.out, test.dataset, classes, predict(model, test, device, precision))
    print(json.dumps({**done, "predict_s": elapsed() - began, "wall_s": elapsed()}))


if __name__ == "__main__":
    main()
