#!/usr/bin/env python3
"""Measures how good the model is at the deadline: data sets x budgets x contenders x seeds.

    bench/accuracy.py --data photos=DIR --weights resnet18.safetensors --model resnet18 --budget 60s
    bench/accuracy.py --data plantdoc=plantdoc-224.tar --data caltech=caltech101-128.tar --data demo \\
        --weights FILE --model NAME --budget 20s,60s --seeds 3 --times 1,5 --out bench/results/accuracy-gpu.json
    bench/accuracy.py --out bench/results/accuracy-gpu.json      # only the report of what is in the file

Contenders:

default  `stoker train` with data, model, weights, budget, run folder and seed, and no other flag
grid     Stoker with up to six recipes that a person would try (the tables below). Each has the whole budget and
         holds out a fifth of the training pictures. The best accuracy on these picks a recipe, which then
         trains with all pictures in the same budget: that is `grid`. The run that was picked is kept too, as
         `grid-pick`. A grid takes seven times the budget.
torch    bench/torch_finetune.py, an ordinary fine-tuning with PyTorch and timm in the same wall time; `torch x5`
         with --times 5 has five times the budget

A data set is a tar or a folder. With train/CLASS/ and test/CLASS/ these parts are used; class folders alone are
divided: a fifth of every class is the test part, 40 % in a set called photos, the same pictures every time.
`--data demo` is what `stoker sample` makes; it is trained from scratch. Test pictures are copied without class
folders and with names that say nothing, so that no contender can see a label. Without --weights everything
is trained from scratch, and Stoker chooses its model.

Accuracies are in percent of the test pictures, from the predictions that the contender has written in time. A
picture without a prediction counts as wrong. The standard error is that of a bootstrap over test pictures, of
their correctness averaged over seeds; for `default minus other` it is paired. It does not contain the spread
between seeds, which the single figures show. Wall seconds are those from the start of the process to its end. A
run is called late when they exceed the budget, and disturbed when other programs had more than a tenth of the cores
meanwhile: such a run says little.

Results are written to --out after every run and merged with what is there: a run with the same settings on the same
machine replaces the earlier one. `correct` has a 0 or 1 for every test picture, so that files can be combined.
The torch contender needs torch, torchvision and timm (in another Python: --python). Nothing is downloaded.
"""
import argparse
import collections
import csv
import datetime
import json
import math
import os
import platform
import random
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from pathlib import Path, PurePosixPath

from vs_torch import Failed, add_common_options, processor

CONTENDERS = ("default", "grid", "torch")
FINE_TUNING = {  # recipes of `grid` where training starts from weights
    "adamw": "--optimizer adamw --lr 0.001 --batch 64 --label-smoothing 0.1 --crop-scale 0.35",
    "adamw-gentle": "--optimizer adamw --lr 0.0005 --batch 64 --label-smoothing 0.1 --crop-scale 0.35",
    "sgd": "--optimizer sgd --lr 0.03 --batch 32 --label-smoothing 0.1 --crop-scale 0.35",
    "small-pictures": "--optimizer adamw --lr 0.001 --batch 64 --label-smoothing 0.1 --crop-scale 0.35 --img-size 160",
    "augmented": "--optimizer adamw --lr 0.001 --batch 64 --label-smoothing 0.1 --crop-scale 0.35 "
                 "--augment randaugment --mixup 0.2",
    "few-epochs": "--optimizer adamw --lr 0.002 --batch 32 --label-smoothing 0.1 --crop-scale 0.5",
}
FROM_SCRATCH = {  # recipes of `grid` without weights
    "sgd": "--optimizer sgd --lr 0.1 --batch 64 --label-smoothing 0.1 --crop-scale 0.35",
    "sgd-small-batch": "--optimizer sgd --lr 0.05 --batch 32 --label-smoothing 0.1 --crop-scale 0.7",
    "adamw": "--optimizer adamw --lr 0.002 --batch 64 --label-smoothing 0.1 --crop-scale 0.35",
    "augmented": "--optimizer sgd --lr 0.1 --batch 64 --label-smoothing 0.1 --crop-scale 0.35 "
                 "--augment trivialaugment",
}
HELD_OUT = "--val-fraction 0.2 --folds 1"
ALL_PICTURES = "--val-fraction 0 --folds 1"
USUAL_PX = 224  # the size for which the recipes are written; another --img-size scales the one of a recipe
PICTURES = {".jpg", ".jpeg", ".png", ".webp"}
TEST_SHARE = {"photos": 0.4}
USUAL_TEST_SHARE = 0.2
SCRATCH_MODEL = "resnet18"  # PyTorch's model without weights
LEAST_CHANCE = 1e-15  # log loss counts no probability as smaller
RESAMPLES = 1000
DISTURBED = 0.1  # share of the cores that other programs may have during a run
# Two results that agree in these are the same measurement; the newer one counts.
SAME = ("set", "test_set", "budget_s", "times", "contender", "seed", "model", "weights", "img_size",
        "train_per_class", "device", "machine")
GROUP = ("machine", "model", "set", "test_set", "train_per_class", "budget_s")


def note(text):
    print(text, file=sys.stderr, flush=True)


# Data sets

def pictures_of_tar(path):
    """Yields the path within the tar and a function that reads the picture."""
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile():
                    yield PurePosixPath(member.name), archive.extractfile(member).read
    except tarfile.TarError as error:
        raise Failed(f"{path} is neither a folder nor a tar that can be read") from error


def pictures_of_folder(path):
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield PurePosixPath(file.relative_to(path)), file.read_bytes


def pictures_of(path):
    """Yields part (train, test or None), class, name and a reading function of every picture of a tar or folder."""
    for name, read in pictures_of_tar(path) if path.is_file() else pictures_of_folder(path):
        if name.suffix.lower() not in PICTURES or name.name.startswith("."):
            continue
        parts = list(name.parts)
        part = {"train": "train", "val": "train", "test": "test"}.get(parts[0])
        if part:
            parts.pop(0)
        if len(parts) < 2:
            raise Failed(f"{path}: {name} does not lie in a class folder")
        yield part, parts[0], str(name), read


def pictures_of_demo(options, scratch):
    """The same for what `stoker sample` makes: a competition with its solution."""
    folder = scratch / "sample"
    if not folder.exists():
        words = [options.stoker, "sample", folder, "--layout", "kaggle"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"stoker sample failed: {done.stderr.strip()[-300:]}")
    for part, table in (("train", "train.csv"), ("test", "solution.csv")):
        with open(folder / table, newline="", encoding="utf-8") as lines:
            labels = {row["id"]: row["label"] for row in csv.DictReader(lines)}
        for file in sorted((folder / part).iterdir()):
            yield part, labels[file.stem], f"{part}/{file.name}", file.read_bytes


class DataSet:
    """A data set laid out in `folder`. Only this object knows the labels of the test pictures.

    `truth` has the class of every test picture by its new name; its order is that of `correct` in the results.
    """

    def __init__(self, name, source, options, scratch):
        self.name = name
        self.scratch = scratch
        self.from_scratch = name == "demo" or options.weights is None
        self.folder = scratch / "data"
        listed = [(part, label, path) for part, label, path, _ in self.pictures(source, options)]
        parts = {part for part, _, _ in listed}
        if None in parts and len(parts) > 1:
            raise Failed(f"{source}: there are class folders beside train and test")
        if parts == {None}:
            listed = self.divided(listed, TEST_SHARE.get(name, USUAL_TEST_SHARE))
        elif parts != {"train", "test"}:
            raise Failed(f"{source} needs train/CLASS/ and test/CLASS/, or class folders alone")
        train = self.limited([entry for entry in listed if entry[0] == "train"], options.train_per_class)
        test = sorted(entry for entry in listed if entry[0] == "test")
        self.classes = sorted({label for _, label, _ in train})
        if len(self.classes) < 2:
            raise Failed(f"{source} has fewer than two classes with pictures")
        self.train_pictures = len(train)
        self.smallest_class = min(collections.Counter(label for _, label, _ in train).values())
        self.test_set = f"{zlib.crc32(repr([(label, path) for _, label, path in test]).encode()):08x}"
        random.Random(f"names of {name}").shuffle(test)
        names = {path: f"t{number:05}" for number, (_, _, path) in enumerate(test)}
        self.truth = {names[path]: label for _, label, path in test}
        self.copy(self.pictures(source, options), {path for _, _, path in train}, names)
        shutil.rmtree(scratch / "sample", ignore_errors=True)

    def pictures(self, source, options):
        return pictures_of_demo(options, self.scratch) if source is None else pictures_of(source)

    def divided(self, listed, share):
        """Class folders alone: a fixed share of every class becomes the test part."""
        result = []
        for name in sorted({label for _, label, _ in listed}):
            paths = sorted(path for _, label, path in listed if label == name)
            random.Random(f"test part of {self.name}/{name}").shuffle(paths)
            count = round(share * len(paths))
            result += [("test" if number < count else "train", name, path) for number, path in enumerate(paths)]
        return result

    def limited(self, listed, most):
        if not most:
            return listed
        chosen = []
        for name in sorted({label for _, label, _ in listed}):
            entries = sorted(entry for entry in listed if entry[1] == name)
            random.Random(f"training part of {self.name}/{name}").shuffle(entries)
            chosen += entries[:most]
        return chosen

    def copy(self, pictures, train, names):
        """Copies, rather than links: a link would tell where a test picture comes from."""
        (self.folder / "test").mkdir(parents=True)
        numbers = {}
        for _, label, path, read in pictures:
            suffix = PurePosixPath(path).suffix.lower()
            if path in names:
                target = self.folder / "test" / (names[path] + suffix)
            elif path in train:
                numbers[label] = numbers.get(label, 0) + 1
                target = self.folder / "train" / label / f"{numbers[label]:05}{suffix}"
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read())


# Contenders

def busy_seconds():
    """Processor time of all programs on the cores of this script, and that of the commands that it has run."""
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
    ticks = [[int(word) for word in words[1:9]] for words in lines if words[0] in names]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = sum(sum(core) - core[3] - core[4] for core in ticks)
    return busy / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def run_timed(words, limit_s):
    """Runs a command; returns its exit code, the two texts that it printed, and how long it took.

    `others` is the share of the cores that other programs had meanwhile.
    """
    began, before = time.monotonic(), busy_seconds()
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=limit_s,
                              check=False)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = None, "", f"killed after {limit_s:.0f} s"
    wall_s, after = time.monotonic() - began, busy_seconds()
    others = (after[0] - before[0] - (after[1] - before[1])) / wall_s / len(os.sched_getaffinity(0))
    return code, out, err, {"wall_s": round(wall_s, 2), "others": round(max(0, others), 3)}


def scored(path, data):
    """Accuracy, log loss and correctness of a file of predictions: id, label, a probability for each class."""
    chances, labels = {}, {}
    if path.exists():
        with open(path, newline="", encoding="utf-8") as file:
            table = csv.reader(file)
            head = next(table, [])
            columns = {name: number for number, name in enumerate(head[2:], 2)}
            prefix = "p_" if {"id", "label"} & set(data.classes) else ""
            for row in table:
                labels[row[0]] = row[1]
                column = columns.get(prefix + data.truth.get(row[0], ""))
                if column is not None:
                    chances[row[0]] = float(row[column])
    correct = [labels.get(name) == label for name, label in data.truth.items()]
    logloss = None
    if chances:
        logloss = -sum(math.log(max(chances.get(name, 0), LEAST_CHANCE)) for name in data.truth) / len(data.truth)
    return {"accuracy": 100 * sum(correct) / len(correct), "logloss": logloss,
            "correct": "".join("01"[right] for right in correct)}


def known_flags(stoker):
    """The flags of `stoker train`, with the part of the help that describes each."""
    text = subprocess.run([str(stoker), "train", "--help"], capture_output=True, text=True, check=False).stdout
    parts = re.split(r"^  --(?:\[no-\])?([a-z0-9-]+)", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def grid_flags(options, recipe, more):
    """The flags of a recipe as a list. Flags that this build of Stoker does not know are left out."""
    words = f"{recipe} {more}".split()
    pairs = dict(zip(words[::2], words[1::2]))
    if options.img_size:
        own = int(pairs.get("--img-size", USUAL_PX))
        pairs["--img-size"] = str(max(32, round(options.img_size * own / USUAL_PX / 32) * 32)) \
            if "--img-size" in pairs else str(options.img_size)
    if "plain" in options.flags.get("recipe", ""):
        pairs["--recipe"] = "plain"
    return [word for flag, value in pairs.items() if flag[2:] in options.flags for word in (flag, value)]


def run_stoker(options, data, budget, seed, flags):
    """One training; returns what it reached. `flags` are those beyond the default."""
    with tempfile.TemporaryDirectory(prefix="run-", dir=data.scratch) as folder:
        run = Path(folder) / "run"
        words = [options.stoker, "train", "--data", data.folder]
        if not data.from_scratch:
            words += ["--model", options.model, "--pretrained", options.weights]
        words += ["--budget", budget, "--out", run, "--seed", seed]
        if data.smallest_class < 3:
            words += ["--rare-class", "train"]
        if options.device != "auto":
            words += ["--device", options.device]
        code, _, err, took = run_timed(words + flags, 2 * budget + 60)
        if code in (2, 3):
            raise Failed(f"stoker train: exit code {code}: {err.strip()[-600:]}")
        if code != 0:
            note(f"stoker train: exit code {code}: {err.strip()[-300:]}")
        try:
            summary = json.loads((run / "summary.json").read_text())
        except (OSError, ValueError):
            summary = {}
        return {**took, **scored(run / "submission.csv", data),
                "status": summary.get("status", "failed"), "epochs": summary.get("epochs_done"),
                "val_acc1": summary.get("best_acc1"), "used_device": summary.get("device")}


def run_default(options, data, budget, seed):
    yield {"contender": "default", "recipe": None, **run_stoker(options, data, budget, seed, [])}


def run_grid(options, data, budget, seed):
    """Every recipe with a part held out, then the picked one with all pictures."""
    table = FROM_SCRATCH if data.from_scratch else FINE_TUNING
    tried = {}
    for name, recipe in table.items():
        tried[name] = run_stoker(options, data, budget, seed, grid_flags(options, recipe, HELD_OUT))
        note(f"  {name}: {tried[name]['val_acc1'] or 0:.2f} % of the pictures held out, "
             f"{tried[name]['accuracy']:.2f} % of the test pictures")
        yield {"contender": f"grid:{name}", "recipe": name, **tried[name]}
    picked = max(tried, key=lambda name: tried[name]["val_acc1"] or 0)
    yield {"contender": "grid-pick", "recipe": picked, **tried[picked]}
    again = run_stoker(options, data, budget, seed, grid_flags(options, table[picked], ALL_PICTURES))
    yield {"contender": "grid", "recipe": picked, **again}


def run_torch(options, data, budget, seed, times):
    with tempfile.TemporaryDirectory(prefix="run-", dir=data.scratch) as folder:
        out = Path(folder) / "predictions.csv"
        model = SCRATCH_MODEL if data.from_scratch and options.weights else options.model or SCRATCH_MODEL
        words = [options.python, Path(__file__).with_name("torch_finetune.py"), "--data", data.folder,
                 "--model", model, "--budget", budget * times, "--out", out, "--seed", seed,
                 "--device", options.device]
        if not data.from_scratch:
            words += ["--weights", options.weights]
        if options.img_size:
            words += ["--img-size", options.img_size]
        code, text, err, took = run_timed(words, 2 * budget * times + 120)
        if code != 0 and not out.exists():
            raise Failed(f"torch_finetune.py: {err.strip()[-600:]}")
        done = json.loads(text.strip().splitlines()[-1]) if code == 0 else {}
        yield {"contender": "torch" if times == 1 else f"torch x{times}", "recipe": None, **took,
               **scored(out, data), "status": "complete" if code == 0 else "failed", "torch_model": model,
               **{key: done.get(key) for key in ("epochs", "steps", "step_s", "predict_s", "predict_planned_s")}}


def runs(options):
    """Yields the function that runs a contender, with its arguments, in the order of --contenders."""
    for name in options.contenders:
        if name == "torch":
            for times in options.times:
                yield "torch" if times == 1 else f"torch x{times}", times, \
                    lambda *words, times=times: run_torch(options, *words, times)
        else:
            function = run_default if name == "default" else run_grid
            yield name, 1, lambda *words, function=function: function(options, *words)


# Results

def machine(options):
    text = f"{processor()}, {len(os.sched_getaffinity(0))} cores"
    if options.device != "cpu":
        try:
            done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                                  text=True, check=False)
            text = ", ".join(done.stdout.strip().splitlines()[:1] + [text]) if done.returncode == 0 else text
        except FileNotFoundError:
            pass
    return text


def versions(options):
    """Versions of Stoker and, where it takes part, of PyTorch; without PyTorch the torch contender fails here."""
    done = subprocess.run([str(options.stoker), "--version"], capture_output=True, text=True, check=False)
    result = {"stoker": done.stdout.strip().removeprefix("stoker "), "python": platform.python_version()}
    if "torch" in options.contenders:
        code = "import json, timm, torch, torchvision as v, safetensors, PIL; " \
               "print(json.dumps({m.__name__: m.__version__ for m in (torch, v, timm)}))"
        try:
            done = subprocess.run([str(options.python), "-c", code], capture_output=True, text=True, check=False)
        except OSError as error:
            raise Failed(f"{options.python} cannot be run: {error.strerror}") from error
        if done.returncode != 0:
            why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise Failed("the torch contender needs torch, torchvision and timm: name a Python that has them with "
                         f"--python, or leave the contender out with --contenders ({why})")
        result.update(json.loads(done.stdout))
    return result


def read_results(path):
    if path is None or not path.exists():
        return []
    try:
        results = json.loads(path.read_text())
    except ValueError as error:
        raise Failed(f"{path} is not JSON: {error}") from error
    if not isinstance(results, list) or not all(isinstance(r, dict) and r.get("bench") == "accuracy" for r in results):
        raise Failed(f"{path} has results of another benchmark")
    return results


def merged(results, new):
    same = [new.get(key) for key in SAME]
    return [entry for entry in results if [entry.get(key) for key in SAME] != same] + [new]


def write_results(path, results):
    partial = path.with_name(path.name + ".tmp")
    partial.write_text(json.dumps(results, indent=1) + "\n")
    partial.replace(path)


def measure(options):
    """Runs everything; returns the results together with those that --out had."""
    results = read_results(options.out)
    if not options.data:
        return results
    constant = {"bench": "accuracy", "date": datetime.date.today().isoformat(), "machine": machine(options),
                "versions": versions(options)}
    for name, source in options.data.items():
        with tempfile.TemporaryDirectory(prefix="stoker-accuracy-") as folder:
            data = DataSet(name, source, options, Path(folder))
            note(f"{name}: {data.train_pictures} pictures to train with, {len(data.truth)} to test, "
                 f"{len(data.classes)} classes")
            for budget in options.budget:
                for seed in range(options.first_seed, options.first_seed + options.seeds):
                    for contender, times, run in runs(options):
                        for row in run(data, budget, seed):
                            default = contender == "default"
                            row = {**constant, "set": name, "test_set": data.test_set, "budget_s": budget,
                                   "times": times, "seed": seed,
                                   "model": None if data.from_scratch else options.model,
                                   "weights": None if data.from_scratch else options.weights.name,
                                   "img_size": None if default else options.img_size, "device": options.device,
                                   "train_per_class": options.train_per_class, "train": data.train_pictures,
                                   "test": len(data.truth), "classes": len(data.classes), **row}
                            results = merged(results, row)
                            if options.out:
                                write_results(options.out, results)
                        note(f"{name}, {budget} s, seed {seed}, {contender}: {row['accuracy']:.2f} % after "
                             f"{row['wall_s']:.1f} s")
    return results


# Report

def shares(rows):
    """Of every test picture, the share of the seeds that are right."""
    return [sum(digits.count("1") for digits in picture) / len(picture)
            for picture in zip(*(row["correct"] for row in rows))]


def standard_error(values):
    """The spread of the mean of `values` over resamples of them, in points."""
    draw = random.Random(0)
    means = [100 * sum(draw.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES)]
    centre = sum(means) / RESAMPLES
    return math.sqrt(sum((mean - centre) ** 2 for mean in means) / (RESAMPLES - 1))


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def contender_of(row):
    return row["contender"] + (f" {row['img_size']} px" if row["img_size"] else "")


def report(results):
    """The figures of every group of comparable runs, and over sets `default` minus every other contender."""
    groups = {}
    for row in results:
        if not row["contender"].startswith("grid:"):
            group = groups.setdefault(tuple(row[key] for key in GROUP), {})
            group.setdefault(contender_of(row), []).append(row)
    tables, differences = [], {}
    for key, contenders in groups.items():
        entries = []
        first = next(iter(contenders.values()))[0]
        own = shares(contenders["default"]) if "default" in contenders else None
        for name, rows in contenders.items():
            rows.sort(key=lambda row: row["seed"])
            entry = {"contender": name, "accuracy": mean([row["accuracy"] for row in rows]),
                     "seeds": [row["accuracy"] for row in rows], "standard_error": standard_error(shares(rows)),
                     "logloss": mean([row["logloss"] for row in rows]),
                     "wall_s": [row["wall_s"] for row in rows],
                     "late": sum(row["wall_s"] > row["budget_s"] * row["times"] for row in rows),
                     "disturbed": sum(row["others"] > DISTURBED for row in rows),
                     "recipes": [row["recipe"] for row in rows if row["recipe"]],
                     "unfinished": [row["status"] for row in rows if row["status"] != "complete"]}
            if own and name != "default":
                pairs = [a - b for a, b in zip(own, shares(rows))]
                entry["default_minus"] = 100 * mean(pairs)
                entry["default_minus_error"] = standard_error(pairs)
                differences.setdefault((first["machine"], first["model"], first["budget_s"], name), []).append(
                    (first["set"], entry["default_minus"], entry["default_minus_error"],
                     sum(row["others"] > DISTURBED for row in contenders["default"] + rows)))
            entries.append(entry)
        tables.append({**dict(zip(GROUP, key)), **{part: first[part] for part in ("train", "test", "classes")},
                       "contenders": entries})
    summary = [{"machine": where, "model": model, "budget_s": budget, "other": name,
                "sets": [part[0] for part in parts],
                "default_minus": mean([part[1] for part in parts]),
                "standard_error": math.sqrt(sum(part[2] ** 2 for part in parts)) / len(parts),
                "lower_sets": [part[0] for part in parts if part[1] < -2 * part[2]],
                "disturbed": sum(part[3] for part in parts)}
               for (where, model, budget, name), parts in differences.items()]
    return {"tables": tables, "summary": summary}


def print_report(figures):
    for table in figures["tables"]:
        limit = f", at most {table['train_per_class']} a class" if table["train_per_class"] else ""
        print(f"{table['set']}, {table['budget_s']} s: {table['train']} pictures to train with{limit}, {table['test']} "
              f"to test, {table['classes']} classes ({table['model'] or 'from scratch'}; {table['machine']})")
        print(f"  {'contender':18} {'accuracy':>9} {'error':>6} {'log loss':>9} {'wall s':>7}  default minus it  seeds")
        for entry in table["contenders"]:
            other = f"{entry['default_minus']:+.2f} +- {entry['default_minus_error']:.2f}" \
                if "default_minus" in entry else ""
            loss = f"{entry['logloss']:.4f}" if entry["logloss"] is not None else ""
            more = " ".join(f"{value:.2f}" for value in entry["seeds"])
            for words in (", ".join(entry["recipes"]), f"{entry['late']} late" if entry["late"] else "",
                          f"{entry['disturbed']} disturbed" if entry["disturbed"] else "",
                          ", ".join(entry["unfinished"])):
                more += f"; {words}" if words else ""
            print(f"  {entry['contender']:18} {entry['accuracy']:7.2f} % {entry['standard_error']:6.2f} {loss:>9} "
                  f"{max(entry['wall_s']):7.1f}  {other:16}  {more}")
        print()
    for line in figures["summary"]:
        lower = ", ".join(line["lower_sets"]) or "none"
        lower += f"; {line['disturbed']} of the runs disturbed" if line["disturbed"] else ""
        print(f"{line['model'] or 'from scratch'}, {line['budget_s']} s, default minus {line['other']}: "
              f"{line['default_minus']:+.2f} points, mean over {', '.join(line['sets'])} "
              f"(standard error {line['standard_error']:.2f}); lower by more than two standard errors: {lower}")


# Options

def seconds(text):
    found = re.fullmatch(r"(\d+)(s|m|h)?", text.strip())
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text} is no time such as 20s, 2m or 90")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def list_of(kind):
    def convert(text):
        return [kind(word) for word in text.split(",")]
    convert.__name__ = "list"
    return convert


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return int(text)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", action="append", default=[], metavar="NAME=PATH",
                        help="a tar or a folder and its name in the results, or `demo`; may be repeated")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="safetensors file to start from (default: none)")
    parser.add_argument("--model", metavar="NAME", help="timm's name (default: the name of the weights)")
    parser.add_argument("--budget", type=list_of(seconds), default=[60], metavar="LIST",
                        help="times such as 20s,2m (default: 60s)")
    parser.add_argument("--seeds", type=positive, default=1, metavar="N", help="how many seeds (default: 1)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="the first of them (default: 0)")
    parser.add_argument("--contenders", type=list_of(str), default=list(CONTENDERS), metavar="LIST",
                        help=f"(default: {','.join(CONTENDERS)})")
    parser.add_argument("--times", type=list_of(positive), default=[1], metavar="LIST",
                        help="torch gets so many times the budget: 5, or 1,5 for both (default: 1)")
    parser.add_argument("--img-size", type=positive, metavar="PX",
                        help="size for torch and the recipes of grid (default: the model's)")
    parser.add_argument("--train-per-class", type=positive, metavar="N",
                        help="use at most so many training pictures of a class (default: all)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--python", default=sys.executable, metavar="FILE",
                        help="the Python that has torch (default: the one that runs this script)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="JSON file that collects the results")
    add_common_options(parser)
    options = parser.parse_args(arguments)
    if not options.data and not (options.out and options.out.is_file()):
        parser.error("--data is missing: NAME=PATH of a tar or a folder with class folders, or demo")
    if not set(options.contenders) <= set(CONTENDERS):
        parser.error(f"--contenders is a list of {', '.join(CONTENDERS)}")
    sources = {}
    for text in options.data:
        name, _, path = text.partition("=")
        if not path and name != "demo":
            parser.error(f"--data {text}: write NAME=PATH, or demo")
        if path and not Path(path).exists():
            parser.error(f"--data {text}: {path} is not there")
        sources[name] = Path(path) if path else None
    options.data = sources
    if options.weights:
        if not options.weights.is_file():
            parser.error(f"--weights {options.weights} is not there")
        options.model = options.model or options.weights.stem
    if options.out and not options.out.absolute().parent.is_dir():
        parser.error(f"--out {options.out}: the folder is not there")
    if options.data and not os.access(options.stoker, os.X_OK):
        parser.error(f"{options.stoker} is not there: run `make`, or give --stoker")
    return options


def main():
    options = options_of(sys.argv[1:])
    if options.data:
        options.flags = known_flags(options.stoker)
    results = measure(options)
    figures = report(results)
    if options.json:
        print(json.dumps({"results": results, **figures}, indent=1))
    else:
        print_report(figures)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"accuracy.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
