#!/usr/bin/env python3
"""Measures Stoker on pictures behind an object server that is far away, beside PyTorch.

    bench/remote_vs_torch.py --data DIR
    bench/remote_vs_torch.py --data DIR --delay-ms 30 --rate 300 --rounds 3 --json

The server of the tests (build/tests/object_server) serves the folder from this machine and waits
before every answer. Five parts, each of them alone with --parts:

paced   a consumer that takes --rate images/s, three epochs, with an empty cache: the share of epoch
        0 that it waited, the opening and listing of the bucket included, and epoch 0 over epoch 2
torch   no limit, no cache: Stoker's second epoch against a DataLoader with as many workers as cores
        that gets the same URLs, each worker over a connection that it keeps, decodes with Pillow
        and makes the same crops
cache   no limit: epochs from a cache that is full against epochs from the folder itself
memory  no limit, no cache, --loader-memory 128M: the most that was resident
storage what `stoker bench storage` says of the server

The machine's speed drifts, so whatever is compared takes turns: each round measures both once, in
fresh processes on the same cores, which the server shares. Ratios are those of the medians, with
the lowest and highest of a round beside them; cpu_ratio compares images per second of the loaders'
own processor time, which neighbours and the server disturb less. Whatever else runs on the machine
spoils the figures: others_busy_cores is what it took of the cores while Stoker ran, by round, and
with --patience each measurement waits until it takes next to nothing.

torch needs torch, torchvision and Pillow and is left out without them; nothing is downloaded.
"""
import argparse
import datetime
import http.client
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import loader_vs_torch as local
from loader_vs_torch import CPU_KEY, Failed, PREFETCH

PARTS = ("paced", "torch", "cache", "memory", "storage")
BUCKET = "bucket"
MEMORY = 128 << 20
LIMIT_S = 900  # a run that takes longer is stuck
TORCH_S = 8  # timed in each round
CALM_CORES = 0.15  # what others may take of the cores in a calm moment
CALM_S = 3  # how long it has to last


# PyTorch: everything here runs in a process of its own.


class Objects:
    """A dataset of URLs. Each worker process has one connection, which it keeps."""

    def __init__(self, server, paths, transform):
        self.server = server
        self.paths = paths
        self.transform = transform
        self.connection = None

    def __len__(self):
        return len(self.paths)

    def get(self, path):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.server)
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise OSError(f"{path}: status {answer.status}")
        return body

    def __getitem__(self, index):
        from PIL import Image

        path, label = self.paths[index]
        with Image.open(io.BytesIO(self.get(path))) as picture:
            return self.transform(picture.convert("RGB")), label


def measure_torch(settings):
    import torch
    from torchvision import transforms

    opened_at = time.perf_counter()
    transform = transforms.Compose([
        transforms.RandomResizedCrop(settings["img_size"], scale=(settings["crop_scale"], 1),
                                     antialias=True),
        transforms.RandomHorizontalFlip(),
        transforms.PILToTensor(),
    ])
    dataset = Objects(settings["server"], settings["paths"], transform)
    sampler = torch.utils.data.RandomSampler(
        dataset, num_samples=len(dataset) * (1_000_000 // len(dataset) + 1))
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=settings["batch"], sampler=sampler, num_workers=settings["workers"],
        persistent_workers=True, prefetch_factor=PREFETCH)
    print(json.dumps(local.steady(settings, opened_at, local.endless(loader))), flush=True)
    os._exit(0)


# Comparing: the process that a person starts.


class Server:
    """The object server, for as long as the with block lasts."""

    def __init__(self, options):
        self.command = [str(options.server), "--root", str(options.data), "--delay-ms",
                        f"{options.delay_ms:g}", "--warm", "--until-eof"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise Failed(f"the object server did not start: {line.strip()}")
        self.url = line.split()[-1]
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def run(command, environment=None):
    """The JSON object that a program prints in its last line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=LIMIT_S, env=environment)
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} was not done after {LIMIT_S} s") from None
    lines = done.stdout.strip().splitlines()
    try:
        if done.returncode != 0:
            raise ValueError
        return json.loads(lines[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or lines or ["it printed nothing"])[-1]
        raise Failed(f"{Path(command[0]).name} ended with exit code {done.returncode}: "
                     f"{last}") from None


def machine_seconds():
    """What all programs together have used of the cores."""
    fields = [int(f) for f in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _, _, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds(server):
    """What the server and the programs that were started and have ended used of them."""
    times = os.times()
    fields = Path("/proc", str(server), "stat").read_text().rpartition(")")[2].split()
    served = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return times.user + times.system + times.children_user + times.children_system + served


class Bench:
    """What all parts share."""

    def __init__(self, options, server, scratch, cores, note):
        self.options = options
        self.note = note
        self.cores = cores
        self.server = server
        self.scratch = scratch
        self.made = 0
        self.patience_ends = time.monotonic() + options.patience
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AWS_")},
            "AWS_ENDPOINT_URL": server.url, "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench",
            "HOME": scratch, "XDG_CACHE_HOME": str(Path(scratch, "kept"))}

    def folder(self):
        """A new one, for a cache."""
        self.made += 1
        return str(Path(self.scratch, f"cache{self.made}"))

    def others(self, work):
        """What work() returns, and what others took of the cores meanwhile."""
        started = time.monotonic()
        before = machine_seconds() - own_seconds(self.server.process.pid)
        result = work()
        spent = machine_seconds() - own_seconds(self.server.process.pid) - before
        return result, max(0, spent / (time.monotonic() - started))

    def wait_for_calm(self):
        while (time.monotonic() < self.patience_ends and
               self.others(lambda: time.sleep(CALM_S))[1] > CALM_CORES):
            pass

    def stoker(self, *arguments):
        figures, others = self.others(
            lambda: run([str(self.options.stoker), "bench", *arguments, "--json"],
                        self.environment))
        figures["others_busy_cores"] = others
        return figures

    def loader(self, data, *arguments):
        options = self.options
        self.wait_for_calm()
        return self.stoker("loader", "--data", data, "--batch", str(options.batch), "--img-size",
                           str(options.img_size), "--crop-scale", str(options.crop_scale),
                           *arguments)


def later_rate(figures):
    """Images per second of all epochs but the first."""
    epochs = figures["epochs"][1:]
    return sum(e["images"] for e in epochs) / sum(e["seconds"] for e in epochs)


def compared(ours, theirs, their_name):
    """
    Two lists by round: images per second, images per second of CPU time, and what others took of
    the cores.
    """
    each = [a[0] / b[0] for a, b in zip(ours, theirs)]
    result = {}
    for name, rounds in (("stoker", ours), (their_name, theirs)):
        result[name] = {"images_per_second": statistics.median(r[0] for r in rounds),
                        CPU_KEY: statistics.median(r[1] for r in rounds),
                        "rounds": [r[0] for r in rounds],
                        "others_busy_cores": [r[2] for r in rounds]}
    mine, other = result["stoker"], result[their_name]
    result.update(ratio=mine["images_per_second"] / other["images_per_second"],
                  ratio_low=min(each), ratio_high=max(each),
                  cpu_ratio=mine[CPU_KEY] / other[CPU_KEY])
    return result


def measure_paced(bench):
    rounds = []
    for i in range(bench.options.rounds):
        figures = bench.loader(f"s3://{BUCKET}", "--rate", f"{bench.options.rate:g}",
                               "--epochs", "3", "--cache", bench.folder())
        epochs = figures["epochs"]
        rounds.append({"wait_fraction": epochs[0]["wait_fraction"],
                       "epoch_ratio": epochs[0]["seconds"] / epochs[2]["seconds"],
                       "first_batch_ms": figures["first_batch_ms"],
                       "rss_bytes": figures["rss_bytes"],
                       "others_busy_cores": figures["others_busy_cores"], "epochs": epochs})
        bench.note(f"paced {i + 1}: waited {100 * rounds[-1]['wait_fraction']:.1f} % of epoch 0, "
                   f"which took {rounds[-1]['epoch_ratio']:.3f} times epoch 2; others used "
                   f"{rounds[-1]['others_busy_cores']:.2f} cores")
    return {**{key: statistics.median(r[key] for r in rounds)
               for key in ("wait_fraction", "epoch_ratio", "first_batch_ms", "rss_bytes")},
            "wait_fraction_low": min(r["wait_fraction"] for r in rounds),
            "wait_fraction_high": max(r["wait_fraction"] for r in rounds),
            "epoch_ratio_low": min(r["epoch_ratio"] for r in rounds),
            "epoch_ratio_high": max(r["epoch_ratio"] for r in rounds), "rounds": rounds}


def measure_against_torch(bench):
    missing = [m for m in ("torch", "torchvision", "PIL") if not local.installed(m)]
    if missing:
        bench.note(f"torch: {missing[0]} is not installed")
        return None
    options = bench.options
    folders = sorted({p.parent for p in bench.pictures})
    address = urllib.parse.urlsplit(bench.server.url).netloc
    paths = [(f"/{BUCKET}/{urllib.parse.quote(str(p.relative_to(options.data)))}",
              folders.index(p.parent)) for p in bench.pictures]
    settings = {"server": address, "paths": paths, "img_size": options.img_size,
                "crop_scale": options.crop_scale, "batch": options.batch, "workers": bench.cores,
                "seconds": TORCH_S}
    # The list of URLs is long: it goes through a file.
    file = Path(bench.scratch, "torch.json")
    file.write_text(json.dumps(settings))
    ours, theirs, first = [], [], []
    for i in range(options.rounds):
        figures = bench.loader(f"s3://{BUCKET}", "--epochs", "2", "--cache", "off")
        bench.wait_for_calm()
        other = run([sys.executable, str(Path(__file__).resolve()), "--measure", str(file)])
        ours.append((later_rate(figures), figures[CPU_KEY], figures["others_busy_cores"]))
        theirs.append((other["images_per_second"], other[CPU_KEY], None))
        first.append((figures["first_batch_ms"], other["first_batch_ms"]))
        bench.note(f"torch {i + 1}: Stoker {ours[-1][0]:.0f} images/s, "
                   f"DataLoader {theirs[-1][0]:.0f}; others used {ours[-1][2]:.2f} cores")
    result = compared(ours, theirs, "torch")
    result["stoker"]["first_batch_ms"] = statistics.median(f[0] for f in first)
    result["torch"]["first_batch_ms"] = statistics.median(f[1] for f in first)
    result["torch"]["workers"] = bench.cores
    return result


def measure_cache(bench):
    folder = bench.folder()
    full = bench.loader(f"s3://{BUCKET}", "--epochs", "3", "--cache", folder, "--no-drop-last")
    bench.note(f"cache: filled, the last epoch had {full['epochs'][2]['cache_misses']} misses")
    ours, theirs, misses = [], [], 0
    for i in range(bench.options.rounds):
        figures = bench.loader(f"s3://{BUCKET}", "--epochs", "3", "--cache", folder)
        other = bench.loader(str(bench.options.data), "--epochs", "3")
        ours.append((later_rate(figures), figures[CPU_KEY], figures["others_busy_cores"]))
        theirs.append((later_rate(other), other[CPU_KEY], other["others_busy_cores"]))
        misses += sum(e["cache_misses"] for e in figures["epochs"])
        bench.note(f"cache {i + 1}: hits {ours[-1][0]:.0f} images/s, "
                   f"the folder {theirs[-1][0]:.0f}; others used {ours[-1][2]:.2f} and "
                   f"{theirs[-1][2]:.2f} cores")
    return {**compared(ours, theirs, "folder"), "cache_misses": misses}


def measure_memory(bench):
    figures = bench.loader(f"s3://{BUCKET}", "--epochs", "2", "--cache", "off", "--loader-memory",
                           str(MEMORY))
    bench.note(f"memory: {figures['rss_bytes'] / 1e6:.0f} MB resident at most")
    return {"loader_memory_bytes": MEMORY, "rss_bytes": figures["rss_bytes"],
            "images_per_second": later_rate(figures), "slots": figures["slots"],
            "others_busy_cores": figures["others_busy_cores"]}


def measure_storage(bench):
    figures = bench.stoker("storage", "--data", f"s3://{BUCKET}", "--rate",
                           str(bench.options.rate))
    bench.note(f"storage: {bench.options.rate:g} images/s need {figures['enough_in_flight']}")
    return figures


def compare(options, cores, pictures, note):
    measures = {"paced": measure_paced, "torch": measure_against_torch, "cache": measure_cache,
                "memory": measure_memory, "storage": measure_storage}
    result = {part: None for part in PARTS}
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as scratch, Server(options) as server:
        bench = Bench(options, server, scratch, cores, note)
        bench.pictures = pictures
        for part in PARTS:
            if part in options.parts:
                result[part] = measures[part](bench)
    return result


def print_table(result, out):
    paced, torch, cache = result["paced"], result["torch"], result["cache"]
    memory, storage = result["memory"], result["storage"]
    rows = []
    if paced:
        rows.append(("waited in epoch 0", f"{100 * paced['wait_fraction']:.1f} %",
                     f"{100 * paced['wait_fraction_low']:.1f} to "
                     f"{100 * paced['wait_fraction_high']:.1f} % by round"))
        rows.append(("epoch 0 over epoch 2", f"{paced['epoch_ratio']:.3f}",
                     f"{paced['epoch_ratio_low']:.3f} to {paced['epoch_ratio_high']:.3f} by round"))
        rows.append(("first batch", f"{paced['first_batch_ms']:.0f} ms", ""))
    for name, part, what in (("DataLoader", torch, "torch"), ("the folder", cache, "folder")):
        if part:
            rows.append((f"Stoker over {name}", f"{part['ratio']:.2f}",
                         f"{part['ratio_low']:.2f} to {part['ratio_high']:.2f} by round; "
                         f"{part['stoker']['images_per_second']:.0f} against "
                         f"{part[what]['images_per_second']:.0f} images/s; "
                         f"by CPU time {part['cpu_ratio']:.2f}"))
    if memory:
        rows.append(("resident at most", f"{memory['rss_bytes'] / 1e6:.0f} MB",
                     f"with --loader-memory {memory['loader_memory_bytes'] / 1e6:.0f} MB"))
    if storage:
        rows.append(("in flight", f"{storage['enough_in_flight']}",
                     f"for {result['rate']:g} images/s; at most "
                     f"{storage['best_objects_per_second']:.0f} objects/s, with "
                     f"{storage['best_in_flight']}"))
    for row in rows:
        print(f"{row[0]:24} {row[1]:>10}  {row[2]}".rstrip(), file=out)


def parse(arguments):
    description, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=description, epilog=details,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    build = local.ROOT / "build"
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of class folders")
    parser.add_argument("--stoker", type=Path, default=build / "stoker", metavar="PATH",
                        help="the program (default: build/stoker)")
    parser.add_argument("--server", type=Path, default=build / "tests" / "object_server",
                        metavar="PATH", help="(default: build/tests/object_server)")
    parser.add_argument("--parts", default=",".join(PARTS), metavar="LIST",
                        help="what to measure (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument("--delay-ms", type=float, default=30,
                        help="before every answer of the server (default: 30)")
    parser.add_argument("--rate", type=float, default=300,
                        help="images/s of the consumer (default: 300)")
    parser.add_argument("--batch", type=int, default=128, help="(default: 128)")
    parser.add_argument("--img-size", type=int, default=224, help="(default: 224)")
    parser.add_argument("--crop-scale", type=float, default=0.08,
                        help="least share of a picture that is kept (default: 0.08)")
    parser.add_argument("--patience", type=float, default=0, metavar="SECONDS",
                        help="wait up to so long, in all, until nothing else runs (default: 0)")
    parser.add_argument("--note", default="", help="words that go into the JSON object")
    parser.add_argument("--json", action="store_true",
                        help="print one JSON object; the table goes to standard error")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.parts = [name for name in options.parts.split(",") if name]
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}; it can be {', '.join(PARTS)}")
    if not options.measure and options.data is None:
        parser.error("--data is missing: a folder of class folders")
    if min(options.rounds, options.batch, options.img_size) < 1 or options.rate <= 0:
        parser.error("numbers are at least 1")
    return options


def main(arguments=None):
    options = parse(arguments)
    if options.measure:
        measure_torch(json.loads(Path(options.measure).read_text()))

    def note(text):
        print(text, file=sys.stderr, flush=True)

    for program in (options.stoker, options.server):
        if not os.access(program, os.X_OK):
            raise Failed(f"{program} is not there: build Stoker with -DSTK_TESTS=ON")
    cores = len(os.sched_getaffinity(0))
    options.data = options.data.resolve()
    pictures = local.pictures_in(options.data)
    result = {"bench": "remote", "date": datetime.date.today().isoformat(),
              "machine": local.processor(), "versions": local.versions(), "cores": cores,
              "files": len(pictures),
              "mean_bytes": sum(p.stat().st_size for p in pictures) / len(pictures),
              "delay_ms": options.delay_ms, "rate": options.rate, "batch": options.batch,
              "img_size": options.img_size, "crop_scale": options.crop_scale,
              "note": options.note, **compare(options, cores, pictures, note)}
    print_table(result, sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"remote_vs_torch.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
