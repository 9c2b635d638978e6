#!/usr/bin/env python3
"""Measures quadratic kappa on grades: photographs with drawn damage, `stoker train` with one way to learn after another.

    bench/grades.py --photos DIR --weights FILE.safetensors --budget 25s --seeds 3 \
        [--learn mse,ce,single,regression] [--out FILE]

Grades 0 to 4, as unevenly distributed as in sets of retinas, come from two kinds of damage: `spots` cover a share
of the picture, `haze` is the weight of a grey veil beside random brightness and noise. A grade is the amount plus a
little chance, so that neighbours are confused as people confuse them. Of the photographs below DIR, whatever their
folders, two thirds train (a fifth of them in the column `split` validates), the rest is the test part. Its grades
are nowhere in the data set. `mse` and `ce` are --loss of the task that is found, `single` is --task single with one
output per grade, `regression` is --task regression, whose numbers are rounded here. Kappa is that of the submission
that the run has written in time. Needs numpy and Pillow.
"""
import argparse
import csv
import datetime
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

from vs_torch import processor

SHARES = (0.49, 0.10, 0.27, 0.05, 0.09)
SIDE = 144
CHANCE = 0.06  # standard deviation of what a grade adds to the amount


def kappa(truth, said):
    grades = len(SHARES)
    table = numpy.zeros((grades, grades))
    for t, s in zip(truth, said):
        table[t, s] += 1
    weights = numpy.subtract.outer(numpy.arange(grades), numpy.arange(grades)) ** 2
    by_chance = numpy.outer(table.sum(1), table.sum(0)) / table.sum()
    return 1 - (weights * table).sum() / (weights * by_chance).sum()


def square(path):
    picture = Image.open(path).convert("RGB")
    scale = SIDE / min(picture.size)
    size = [max(SIDE, round(s * scale)) for s in picture.size]
    left, top = (size[0] - SIDE) // 2, (size[1] - SIDE) // 2
    return picture.resize(size, Image.BICUBIC).crop((left, top, left + SIDE, top + SIDE))


def spots(picture, amount, rng):
    draw, covered = ImageDraw.Draw(picture), 0.0
    while covered < 0.16 * amount * amount * SIDE * SIDE:
        radius, x, y = rng.uniform(2, 7), rng.uniform(0, SIDE), rng.uniform(0, SIDE)
        corners = [(x + radius * rng.uniform(0.6, 1.3) * math.cos(a), y + radius * rng.uniform(0.6, 1.3) * math.sin(a))
                   for a in (k * math.pi / 4 for k in range(8))]
        draw.polygon(corners, fill=(rng.randint(90, 140), rng.randint(50, 85), rng.randint(20, 50)))
        covered += 2.7 * radius * radius
    return picture


def haze(picture, amount, rng):
    weight = 0.15 + 0.5 * amount
    noise = numpy.random.RandomState(rng.randrange(1 << 30)).normal(0, 6, (SIDE, SIDE, 3))
    pixels = numpy.asarray(picture, dtype=float) * rng.uniform(0.75, 1.2)
    pixels = pixels * (1 - weight) + rng.uniform(150, 235) * weight + noise
    return Image.fromarray(pixels.clip(0, 255).astype("uint8"))


def make(folder, photos, damage, rng):
    """Writes the data set and returns the grades of its test pictures."""
    steps = numpy.cumsum(SHARES)[:-1]
    order = sorted(photos)
    rng.shuffle(order)
    rows, truth = [], {}
    for part in ("train", "test"):
        (folder / part).mkdir(parents=True)
    for number, path in enumerate(order):
        amount = rng.random()
        grade = int(numpy.searchsorted(steps, amount + rng.gauss(0, CHANCE)))
        name = f"{rng.randrange(1 << 40):010x}"
        part = "train" if 3 * number < 2 * len(order) else "test"
        damage(square(path), amount, rng).save(folder / part / f"{name}.jpg", quality=85)
        if part == "train":
            rows.append((name, grade, "val" if number % 5 == 0 else "train"))
        else:
            truth[name] = grade
    with open(folder / "train.csv", "w", newline="") as file:
        csv.writer(file).writerows([("id_code", "diagnosis", "split"), *rows])
    with open(folder / "sample_submission.csv", "w", newline="") as file:
        csv.writer(file).writerows([("id_code", "diagnosis"), *((name, 0) for name in truth)])
    (folder / "description.md").write_text("Submissions are scored with the quadratic weighted kappa.\n")
    return truth


def measure(options, data, learn, seed, truth, run):
    flags = ["--task", learn] if learn in ("regression", "single") else ["--loss", learn]
    start = time.monotonic()
    done = subprocess.run([options.stoker, "train", "--data", data, "--pretrained", options.weights, "--budget",
                           options.budget, "--seed", str(seed), "--out", run, *flags],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"stoker train with {' '.join(flags)} ended with {done.returncode}: {done.stderr.strip()}")
    with open(run / "submission.csv", newline="") as file:
        said = {row["id_code"]: float(row["diagnosis"]) for row in csv.DictReader(file)}
    graded = [min(max(round(said[name]), 0), len(SHARES) - 1) for name in truth]
    summary = json.loads((run / "summary.json").read_text())
    return {"bench": "grades", "date": datetime.date.today().isoformat(), "machine": processor(),
            "data": data.name, "learn": learn, "seed": seed, "budget": options.budget,
            "kappa": round(float(kappa(list(truth.values()), graded)), 4), "status": summary["status"],
            "epochs": summary["epochs_done"], "device": summary["device"], "test_pictures": len(truth),
            "seconds": round(time.monotonic() - start, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stoker", default="build/stoker")
    parser.add_argument("--photos", type=Path, required=True, help="folder with photographs, at any depth")
    parser.add_argument("--weights", required=True, help="pretrained weights, a safetensors file")
    parser.add_argument("--budget", default="25s")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--learn", default="mse,ce,single,regression")
    parser.add_argument("--out", type=Path, help="file for a JSON list of all runs")
    options = parser.parse_args()
    photos = [p for p in options.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png")]
    if len(photos) < 30:
        parser.error(f"{options.photos} has {len(photos)} photographs; 30 are the least")
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for number, damage in enumerate((spots, haze)):
            data = Path(scratch) / damage.__name__
            truth = make(data, photos, damage, random.Random(number))
            for learn in options.learn.split(","):
                for seed in range(1, options.seeds + 1):
                    run = Path(scratch) / f"{data.name}-{learn}-{seed}"
                    results.append(measure(options, data, learn, seed, truth, run))
                figures = [r["kappa"] for r in results[-options.seeds:]]
                print(f"{data.name:6} {learn:10} kappa {sum(figures) / len(figures):.4f}  "
                      f"({' '.join(f'{k:.4f}' for k in figures)})", flush=True)
    if options.out:
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
