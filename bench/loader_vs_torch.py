#!/usr/bin/env python3
"""Compares Stoker's loader with PyTorch's DataLoader on one folder of class folders.

    bench/loader_vs_torch.py --data DIR
    bench/loader_vs_torch.py --data DIR --cores 2 --rounds 5 --json

Both make the same batches: RandomResizedCrop (antialiased bilinear) and a horizontal flip, uint8,
no normalising. PyTorch reads them the way its own examples do, with torchvision's ImageFolder and
Pillow in persistent worker processes. DALI on the CPU and FFCV are measured too where they are
installed; FFCV twice, with the JPEG files as they are and with raw pixels, both from a file in its
own format that is written first and not timed.

The machine's speed drifts, so the loaders take turns: each round measures every loader once, in a
fresh process on the same cores, and the ratio is that of the medians, with the lowest and highest
ratio of a round beside it. Before that, each runs once for a moment, so that all find the files in
the page cache. Only steady work is timed: DataLoader and FFCV see the folder repeated without end,
which spares them their pause between epochs; --real-epochs lets epochs end.

Columns: images per second (median, lowest and highest round); images per second of CPU time, which
other work on the machine disturbs less; workers; pictures that one core decodes in full in a
second, nothing else done; memory of all processes of the loader, where shared pages count once and
files that FFCV maps are included (for Stoker: resident); milliseconds from opening the folder to
the first batch, not counting the start of Python and its imports, but the compiling that FFCV
does. Empty: not known for that loader.

Needs torch, torchvision and Pillow; nothing is downloaded.
"""
import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from vs_torch import Failed, ROOT, processor

PHOTOS = ROOT.parent / "shared" / "data" / "photos"
KEYS = ("images_per_second", "workers", "decode_only_per_second_per_core", "rss_bytes",
        "first_batch_ms")
CPU_KEY = "images_per_cpu_second"
LOADERS = {  # name: modules it needs
    "stoker": (),
    "torch": ("torch", "torchvision", "PIL"),
    "dali": ("nvidia.dali",),
    "ffcv-jpeg": ("ffcv", "torchvision"),
    "ffcv-raw": ("ffcv", "torchvision"),
}
PREFETCH = 2  # batches ahead for each worker, PyTorch's default
DECODE_S = 1  # how long the decode-only rate is measured
WARM_UP_S = 1
LIMIT_S = 300  # a round that takes longer is stuck; FFCV compiles for tens of seconds
RAW_LIMIT_BYTES = 8e9  # raw pixels that are written for FFCV at most
PICTURE_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp"}


# Measuring one loader: everything here runs in a process of its own.


def family():
    """This process and all below it: id to the fields of /proc/ID/stat behind the name."""
    stats = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path("/proc", entry, "stat").read_text()
                stats[int(entry)] = text.rpartition(")")[2].split()
            except OSError:
                pass  # it ended while we looked
    members = {os.getpid()}
    while True:
        more = {pid for pid, fields in stats.items() if int(fields[1]) in members} - members
        if not more:
            return {pid: stats[pid] for pid in members}
        members |= more


def cpu_seconds():
    """What the family has used of the cores so far."""
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in family().values())
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes():
    """What the family holds, pages that they share counted once."""
    total = 0
    for pid in family():
        try:
            lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total or None


def steady(settings, opened_at, batches):
    """
    Times an iterator that gives the number of images of each batch and never ends. Parallel workers
    deliver in bursts of as many batches as there are workers, so the clock starts and stops behind
    a whole burst.
    """
    workers = settings["workers"]
    next(batches)
    first_batch_ms = 1000 * (time.perf_counter() - opened_at)
    for _ in range(workers * PREFETCH - 1):
        next(batches)
    images = 0
    bursts = 0
    cpu_before = cpu_seconds()
    started = now = time.perf_counter()
    while now - started < settings["seconds"] or bursts % workers != 0:
        images += next(batches)
        bursts += 1
        now = time.perf_counter()
    return {"images_per_second": images / (now - started), "workers": workers,
            "decode_only_per_second_per_core": None, "rss_bytes": memory_bytes(),
            "first_batch_ms": first_batch_ms,
            CPU_KEY: images / (cpu_seconds() - cpu_before)}


def endless(loader):
    """The images of each batch, epoch after epoch."""
    while True:
        for batch in loader:
            yield len(batch[0])


def samples_per_epoch(settings, files):
    """The folder once, or so often that no loader comes to the end."""
    return files if settings["real_epochs"] else files * (1_000_000 // files + 1)


def pil_decodes_per_second(samples):
    """Full decodes on one core, as ImageFolder does them."""
    from torchvision.datasets.folder import pil_loader

    started = time.perf_counter()
    decoded = 0
    while time.perf_counter() - started < DECODE_S:
        pil_loader(samples[decoded * 7919 % len(samples)][0])
        decoded += 1
    return decoded / (time.perf_counter() - started)


def torch_loader(settings, samples=None, **more):
    """PyTorch's own loader over the folder, once or as many samples as asked for."""
    import torch
    from torchvision import datasets, transforms

    transform = transforms.Compose([
        transforms.RandomResizedCrop(settings["img_size"], scale=(settings["crop_scale"], 1),
                                     antialias=True),
        transforms.RandomHorizontalFlip(),
        transforms.PILToTensor(),
    ])
    dataset = datasets.ImageFolder(settings["data"], transform)
    sampler = torch.utils.data.RandomSampler(dataset, num_samples=samples)
    return torch.utils.data.DataLoader(
        dataset, batch_size=settings["batch"], sampler=sampler, num_workers=settings["workers"],
        persistent_workers=True, prefetch_factor=PREFETCH, **more)


def measure_torch(settings):
    from torchvision import datasets

    files = datasets.ImageFolder(settings["data"]).samples
    rate = pil_decodes_per_second(files)
    opened_at = time.perf_counter()
    loader = torch_loader(settings, samples_per_epoch(settings, len(files)))
    figures = steady(settings, opened_at, endless(loader))
    figures["decode_only_per_second_per_core"] = rate
    return figures


def measure_dali(settings):
    """DALI decodes only the part of a JPEG that it keeps; no GPU takes part."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=settings["batch"], num_threads=settings["workers"], device_id=None,
                  prefetch_queue_depth=PREFETCH)
    def pictures():
        encoded, _ = fn.readers.file(file_root=settings["data"], random_shuffle=True)
        part = fn.decoders.image_random_crop(
            encoded, device="cpu", output_type=types.RGB, random_aspect_ratio=[3 / 4, 4 / 3],
            random_area=[settings["crop_scale"], 1], num_attempts=10)
        part = fn.resize(part, size=[settings["img_size"]] * 2, interp_type=types.INTERP_LINEAR,
                         antialias=True)
        return fn.flip(part, horizontal=fn.random.coin_flip())

    def batches():
        while True:
            yield len(pipeline.run()[0])

    opened_at = time.perf_counter()
    pipeline = pictures()
    pipeline.build()
    return steady(settings, opened_at, batches())


def write_beton(settings, path, raw):
    """The folder in FFCV's own format. Its JPEG mode would encode again, so it gets the bytes."""
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from PIL import Image
    from torchvision import datasets

    import numpy as np

    def keep_bytes(destination, picture, malloc):
        destination["mode"] = 0  # JPEG
        destination["width"], destination["height"] = picture.size
        picture.fp.seek(0)
        encoded = np.frombuffer(picture.fp.read(), dtype=np.uint8)
        destination["data_ptr"], storage = malloc(encoded.nbytes)
        storage[:] = encoded

    field = RGBImageField(write_mode="raw")
    if not raw:
        field.encode = keep_bytes
    load = (lambda name: Image.open(name).convert("RGB")) if raw else Image.open
    dataset = datasets.ImageFolder(settings["data"], loader=load)
    writer = DatasetWriter(str(path), {"image": field, "label": IntField()}, num_workers=1)
    writer.from_indexed_dataset(dataset)


def measure_ffcv(settings):
    import numpy as np
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.reader import Reader
    from ffcv.transforms import RandomHorizontalFlip, ToTensor

    raw = settings["name"] == "ffcv-raw"
    path = Path(settings["scratch"], settings["name"] + ".beton")
    if not path.exists():
        write_beton(settings, path, raw)
    opened_at = time.perf_counter()
    files = Reader(str(path)).num_samples
    indices = np.arange(samples_per_epoch(settings, files), dtype=np.uint64) % np.uint64(files)
    side = settings["img_size"]
    decoder = RandomResizedCropRGBImageDecoder((side, side), scale=(settings["crop_scale"], 1))
    loader = Loader(str(path), batch_size=settings["batch"], num_workers=settings["workers"],
                    order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    indices=indices,
                    pipelines={"image": [decoder, RandomHorizontalFlip(), ToTensor()],
                               "label": None})
    return steady(settings, opened_at, endless(loader))


def measure(settings):
    measures = {"torch": measure_torch, "dali": measure_dali, "ffcv-jpeg": measure_ffcv,
                "ffcv-raw": measure_ffcv}
    print(json.dumps(measures[settings["name"]](settings)), flush=True)
    # Workers end with their parent. An orderly end can hang in some releases of these loaders.
    os._exit(0)


# Comparing: the process that a person starts.


def installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def command_of(name, options, settings):
    if name != "stoker":
        return [sys.executable, str(Path(__file__).resolve()), "--measure",
                json.dumps({**settings, "name": name})]
    command = [str(options.stoker), "bench", "loader", "--data", settings["data"],
               "--img-size", str(settings["img_size"]), "--batch", str(settings["batch"]),
               "--crop-scale", str(settings["crop_scale"]),
               "--seconds", str(settings["seconds"]), "--json"]
    return command + (["--workers", str(options.workers)] if options.workers else [])


def run_once(name, options, settings):
    """One round of one loader: the contract's keys."""
    try:
        done = subprocess.run(command_of(name, options, settings), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name} was not done after {LIMIT_S} s") from None
    lines = done.stdout.strip().splitlines()
    try:
        if done.returncode != 0:
            raise ValueError
        figures = json.loads(done.stdout if name == "stoker" else lines[-1])
        return {**{key: figures[key] for key in KEYS}, CPU_KEY: figures.get(CPU_KEY)}
    except (ValueError, KeyError, IndexError, TypeError):
        last = (done.stderr.strip().splitlines() or lines or ["it printed nothing"])[-1]
        raise Failed(f"{name} ended with exit code {done.returncode}: {last}") from None


def usable_loaders(options, pictures, note):
    """The names to measure; a line for each one that cannot be."""
    names = []
    for name in options.loaders:
        missing = [module for module in LOADERS[name] if not installed(module)]
        if name == "torch" and missing:
            raise Failed(f"{missing[0]} is missing: pip install torch torchvision pillow")
        if missing:
            note(f"{name}: {missing[0]} is not installed")
        elif name == "ffcv-raw" and sum(p.stat().st_size for p in pictures) * 5 > RAW_LIMIT_BYTES:
            note(f"{name}: not measured, the folder is large and its raw pixels would be written")
        else:
            names.append(name)
    return names


def medians(rounds):
    """One loader's figures over its rounds; the rounds themselves show the spread."""
    figures = {}
    for key in (*KEYS, CPU_KEY):
        values = [figure[key] for figure in rounds if figure[key] is not None]
        figures[key] = statistics.median(values) if values else None
    figures["workers"] = rounds[-1]["workers"]
    figures["rounds"] = [figure["images_per_second"] for figure in rounds]
    return figures


def warm_up(names, options, settings, note):
    """Runs each once for a moment. A loader that is not asked for by name may fail."""
    working = []
    for name in names:
        try:
            run_once(name, options, {**settings, "seconds": WARM_UP_S})
            working.append(name)
        except Failed as failure:
            if name in ("stoker", "torch"):
                raise
            note(str(failure))
    return working


def compare(options, settings, pictures, note):
    names = warm_up(usable_loaders(options, pictures, note), options, settings, note)
    rounds = {name: [] for name in names}
    for i in range(options.rounds):
        for name in names:
            rounds[name].append(run_once(name, options, settings))
            note(f"round {i + 1} of {options.rounds}: {name:10}"
                 f"{rounds[name][-1]['images_per_second']:8.0f} images/s")
    result = {name: None for name in LOADERS}
    result.update({name: medians(rounds[name]) for name in names})
    result.update(ratio=None, ratio_low=None, ratio_high=None, cpu_ratio=None)
    if "stoker" in names and "torch" in names:
        ours, theirs = result["stoker"], result["torch"]
        each = [a / b for a, b in zip(ours["rounds"], theirs["rounds"])]
        result.update(ratio=ours["images_per_second"] / theirs["images_per_second"],
                      ratio_low=min(each), ratio_high=max(each))
        if ours[CPU_KEY] is not None:
            result["cpu_ratio"] = ours[CPU_KEY] / theirs[CPU_KEY]
    return result


def cell(value, width, factor=1):
    return " " * width if value is None else f"{value * factor:{width}.0f}"


def print_table(result):
    print(f"{'loader':10} {'images/s':>8} {'lowest':>7} {'highest':>7} {'per CPU s':>9} "
          f"{'workers':>7} {'decode/s/core':>13} {'memory MB':>9} {'first batch ms':>14}")
    for name in LOADERS:
        row = result[name]
        if row is None:
            continue
        print(f"{name:10} {cell(row['images_per_second'], 8)} {cell(min(row['rounds']), 7)} "
              f"{cell(max(row['rounds']), 7)} {cell(row[CPU_KEY], 9)} "
              f"{cell(row['workers'], 7)} "
              f"{cell(row['decode_only_per_second_per_core'], 13)} "
              f"{cell(row['rss_bytes'], 9, 1e-6)} {cell(row['first_batch_ms'], 14)}")
    if result["ratio"] is not None:
        print(f"Stoker is {result['ratio']:.2f} times as fast as DataLoader "
              f"({result['ratio_low']:.2f} to {result['ratio_high']:.2f} by round).")
    if result["cpu_ratio"] is not None:
        print(f"For the same CPU time it makes {result['cpu_ratio']:.2f} times the images.")


def versions():
    from importlib import metadata

    found = {"python": platform.python_version()}
    for module in ("torch", "torchvision", "pillow", "ffcv"):
        try:
            found[module] = metadata.version(module)
        except metadata.PackageNotFoundError:
            pass
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"] or ""
        if name.startswith("nvidia-dali-cuda"):
            found[name] = distribution.version
    return found


def sample_folder(options, scratch):
    """The photographs beside the repository, or drawn pictures where there are none."""
    if PHOTOS.is_dir():
        return PHOTOS
    folder = Path(scratch, "sample")
    done = subprocess.run([str(options.stoker), "sample", str(folder), "--quiet"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"no --data, and stoker sample failed: {done.stderr.strip()}")
    train = folder / "train"
    return train if train.is_dir() else folder


def pictures_in(folder):
    """All pictures; reading them once fills the page cache."""
    found = sorted(p for p in folder.glob("*/**/*") if p.suffix.lower() in PICTURE_SUFFIXES)
    if not found:
        raise Failed(f"{folder} has no class folders with pictures")
    for picture in found:
        picture.read_bytes()
    return found


def parse(arguments):
    description, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=description, epilog=details,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR",
                        help="folder of class folders (default: the photographs in "
                             "../shared/data/photos, or pictures drawn by stoker sample)")
    parser.add_argument("--stoker", type=Path, default=ROOT / "build" / "stoker", metavar="PATH",
                        help="the program (default: build/stoker)")
    parser.add_argument("--loaders", default=",".join(LOADERS), metavar="LIST",
                        help="which to measure (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--seconds", type=float, default=8,
                        help="timed in each round (default: 8)")
    parser.add_argument("--cores", type=int, help="cores that all may use (default: all)")
    parser.add_argument("--workers", type=int,
                        help="(default: as many as cores; Stoker chooses its own)")
    parser.add_argument("--batch", type=int, default=128, help="(default: 128)")
    parser.add_argument("--img-size", type=int, default=224, help="(default: 224)")
    parser.add_argument("--crop-scale", type=float, default=0.08,
                        help="least share of a picture that is kept (default: 0.08)")
    parser.add_argument("--real-epochs", action="store_true",
                        help="epochs end with the folder: shows the pause between them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.loaders = [name for name in options.loaders.split(",") if name]
    unknown = [name for name in options.loaders if name not in LOADERS]
    if unknown:
        parser.error(f"there is no loader {unknown[0]}; it can be {', '.join(LOADERS)}")
    if min(options.rounds, options.batch, options.img_size, options.cores or 1,
           options.workers or 1) < 1 or options.seconds <= 0 or not 0 < options.crop_scale <= 1:
        parser.error("numbers are at least 1, and --crop-scale lies between 0 and 1")
    return options


def main(arguments=None):
    options = parse(arguments)
    if options.measure:
        measure(json.loads(options.measure))

    def note(text):
        print(text, file=sys.stderr, flush=True)

    allowed = sorted(os.sched_getaffinity(0))
    cores = options.cores or len(allowed)
    if cores > len(allowed):
        raise Failed(f"--cores {cores}: this process may use {len(allowed)}")
    os.sched_setaffinity(0, allowed[:cores])
    if "stoker" in options.loaders and not os.access(options.stoker, os.X_OK):
        raise Failed(f"{options.stoker} is not there: build Stoker, or name it with --stoker")

    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch:
        data = options.data or sample_folder(options, scratch)
        pictures = pictures_in(data)
        settings = {"data": str(data), "scratch": scratch, "seconds": options.seconds,
                    "workers": options.workers or cores, "batch": options.batch,
                    "img_size": options.img_size, "crop_scale": options.crop_scale,
                    "real_epochs": options.real_epochs}
        result = {"date": datetime.date.today().isoformat(), "machine": processor(),
                  "versions": versions(), "cores": cores, "files": len(pictures),
                  "mean_bytes": sum(p.stat().st_size for p in pictures) / len(pictures),
                  **{key: settings[key] for key in ("batch", "img_size", "crop_scale", "seconds",
                                                    "real_epochs")},
                  **compare(options, settings, pictures, note)}
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        print_table(result)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"loader_vs_torch.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
