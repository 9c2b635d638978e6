"""train.py - a training that trains nothing, for tests of `stoker run`.

It counts steps, says what trainings say, and misbehaves as it is told to. With FAKE_NVML set, the
GPU that Stoker sees is one that this script draws: the larger the batch, the more memory and the
busier it is (tests/fakes/fake_nvml.c reads the file at every look).
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=None)
parser.add_argument("--num-workers", type=int, default=None)
parser.add_argument("--config", help="YAML of `key: number` lines, or JSON")
parser.add_argument("--epochs", type=int, default=1000)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--step-s", type=float, default=0.02, help="that a step takes with any batch")
parser.add_argument("--image-s", type=float, default=0.0, help="that each image adds to it")
parser.add_argument("--best-batch", type=int, default=None, help="in a larger one each image takes twice as long")
parser.add_argument("--memory-per-image", type=float, default=1e8)
parser.add_argument("--memory", type=float, default=24e9, help="of the GPU")
parser.add_argument("--oom-above", type=int, default=None, help="batches that there is no memory for")
parser.add_argument("--util", type=float, default=None, help="percent; by default it follows the batch")
parser.add_argument("--say", choices=["epochs", "tqdm", "nothing"], default="tqdm")
parser.add_argument("--feeders", type=int, default=0, help="busy processes, as a loader's workers")
parser.add_argument("--crash-after", type=float, default=None)
parser.add_argument("--exit-after", type=float, default=None)
parser.add_argument("--exit-code", type=int, default=0)
parser.add_argument("--hang-after", type=float, default=None)
parser.add_argument("--hang-above", type=int, default=None, help="batches with which it never begins")
parser.add_argument("--hang-printing", action="store_true")
parser.add_argument("--ignore-term", action="store_true")
parser.add_argument("--away", help="leave a process behind that hides; its number goes to this file")
parser.add_argument("--model", help="file to write when asked to stop, and at the end")
args = parser.parse_args()


def from_config(key):
    if not args.config:
        return None
    text = open(args.config).read()
    if args.config.endswith(".json"):
        return json.loads(text).get(key)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return int(value.split("#")[0])
    return None


def first(*values):
    return next((int(value) for value in values if value is not None), None)


batch = first(args.batch_size, from_config("batch_size"), os.environ.get("BATCH_SIZE"), 32)
workers = first(args.num_workers, from_config("num_workers"), os.environ.get("NUM_WORKERS"), 0)
began = time.monotonic()


def save(*_):
    if args.model:
        with open(args.model, "w") as out:
            out.write(f"batch {batch}\n")


def stop(*_):
    save()
    print("stopping as I was asked to", flush=True)
    draw(0, 0)
    sys.exit(0)


def draw(memory, util):
    path = os.environ.get("FAKE_NVML")
    if not path:
        return
    lines = ["bus 0000:19:00.0", f"util {int(util)}", f"memory_used {int(1e9 + memory)}",
             f"memory_total {int(args.memory)}", "power 300000"]
    if memory > 0:
        lines.append(f"process {os.getpid()} {int(memory)}")
    with open(path + ".new", "w") as out:
        out.write("\n".join(lines) + "\n")
    os.rename(path + ".new", path)


def hide():
    """A grandchild that called setsid, whose parent is gone, and that ignores SIGTERM."""
    if os.fork() > 0:
        return
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open(args.away, "w") as out:
        out.write(f"{os.getpid()}\n")
    time.sleep(600)
    os._exit(0)


signal.signal(signal.SIGTERM, signal.SIG_IGN if args.ignore_term else stop)
signal.signal(signal.SIGINT, signal.SIG_IGN if args.ignore_term else stop)
if args.away:
    hide()
feeders = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.feeders)]
memory = batch * args.memory_per_image
if memory > args.memory - 1e9 or (args.oom_above and batch > args.oom_above):
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr,
          flush=True)
    sys.exit(1)
if args.hang_above and batch > args.hang_above:
    draw(memory, 0)
    time.sleep(600)
image_s = args.image_s * (2 if args.best_batch and batch > args.best_batch else 1)
step_s = args.step_s + image_s * batch
util = args.util if args.util is not None else min(95, 100 * image_s * batch / step_s)
draw(memory, util)
if args.say != "nothing":
    print(f"RESOURCES: {os.cpu_count()} CPU cores, batch={batch}", flush=True)
    print(f"DataLoader: num_workers={workers}, prefetch_factor=2", flush=True)
for epoch in range(1, args.epochs + 1):
    epoch_began = time.monotonic()
    for step in range(1, args.steps + 1):
        time.sleep(step_s)
        now = time.monotonic() - began
        if args.hang_after is not None and now > args.hang_after:
            draw(memory, 0)
            while True:
                time.sleep(0.2)
                if args.hang_printing:
                    print("waiting for the other ranks", flush=True)
        if args.crash_after is not None and now > args.crash_after:
            raise RuntimeError("the loss became a pumpkin")
        if args.exit_after is not None and now > args.exit_after:
            save()
            draw(0, 0)
            sys.exit(args.exit_code)
        if args.say == "tqdm" and step % 5 == 0:
            rate = step / max(time.monotonic() - epoch_began, 1e-9)
            print(f"\rEpoch {epoch}/{args.epochs}: {100 * step // args.steps:3d}%|##  | "
                  f"{step}/{args.steps} [00:01<00:02, {rate:.2f}it/s, loss={2 / (epoch + step):.4f}]",
                  end="", file=sys.stderr, flush=True)
    if args.say == "tqdm":
        print(file=sys.stderr, flush=True)
    if args.say != "nothing":
        print(f"Epoch {epoch}/{args.epochs} loss: {1 / epoch:.4f}", flush=True)
save()
draw(0, 0)
