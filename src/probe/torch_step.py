"""Measures a training step, or an inference, of PyTorch as `stoker bench step` measures Stoker's.

    python3 torch_step.py '{"model": "resnet50", "batch": 256, "modes": ["eager", "compile"], ...}'

Prints one JSON object a line and mode: images_per_second, ms_per_step, warmup_s, bytes, or what went
wrong as "error". Without torch or timm the only line names what is "missing". The network is timm's, in
the channels-last layout, on pictures that are in memory already: forward, loss, backward and SGD with
Nesterov momentum. Nothing is downloaded.
"""
import contextlib
import json
import resource
import statistics
import sys
import time

LEAST_WINDOWS = 5
WINDOWS = 10
MOST_WARM_STEPS = 6
ABOUT = 1.25


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cast_for(torch, device, precision):
    """Makes the context of mixed precision, anew for each step."""
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
    return lambda: torch.autocast(device.type, half) if half else contextlib.nullcontext()


def normalised(torch, pixels, device):
    """Bytes cross to the device; everything else happens there."""
    moved = pixels.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
    return (moved.float() / 255 - 0.45) / 0.225


def make_model(torch, timm, settings, device, mode):
    """The network and what computes its forward pass."""
    model = timm.create_model(settings["model"], num_classes=settings["classes"])
    model = model.to(device=device, memory_format=torch.channels_last)
    model.train(not settings["inference"])
    if mode == "eager":
        return model, model
    return model, torch.compile(model, mode=None if mode == "compile" else mode)


def make_trainer(torch, timm, settings, device, mode):
    """One step of training as a function of a batch, which is in the host's memory."""
    model, forward = make_model(torch, timm, settings, device, mode)
    cast = cast_for(torch, device, settings["precision"])
    scaler = torch.amp.GradScaler(device.type, enabled=settings["precision"] == "fp16")
    decayed = [p for p in model.parameters() if p.ndim > 1]
    undecayed = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": 5e-4}, {"params": undecayed, "weight_decay": 0}],
        lr=1e-3, momentum=0.9, nesterov=True, fused=device.type == "cuda" or None)
    criterion = torch.nn.CrossEntropyLoss()

    def step(pixels, labels):
        optimizer.zero_grad(set_to_none=True)
        with cast():
            loss = criterion(forward(normalised(torch, pixels, device)),
                             labels.to(device, non_blocking=True))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def make_work(torch, timm, settings, device, mode):
    """A step, or an inference, on pictures that are there already."""
    batch, size = settings["batch"], settings["img_size"]
    pixels = torch.randint(0, 256, (batch, 3, size, size), dtype=torch.uint8)
    pixels = pixels.to(memory_format=torch.channels_last)
    labels = torch.randint(0, settings["classes"], (batch,))
    if device.type == "cuda":
        pixels, labels = pixels.pin_memory(), labels.pin_memory()
    if settings["inference"]:
        _, forward = make_model(torch, timm, settings, device, mode)
        cast = cast_for(torch, device, settings["precision"])

        def infer():
            with torch.inference_mode(), cast():
                return forward(normalised(torch, pixels, device)).float()
        return infer

    step = make_trainer(torch, timm, settings, device, mode)
    return lambda: step(pixels, labels)


def measure(torch, timm, settings, mode, start):
    device = torch.device(settings["device"])
    cuda = device.type == "cuda"
    strict = settings["precision"] == "fp32-strict"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = not strict
    torch.backends.cudnn.benchmark = True
    if cuda:
        torch.cuda.set_device(device)
        torch.cuda.reset_peak_memory_stats()
    wait = torch.cuda.synchronize if cuda else lambda: None
    work = make_work(torch, timm, settings, device, mode)

    def window(steps):
        before = time.perf_counter()
        for _ in range(steps):
            work()
        wait()
        return (time.perf_counter() - before) / steps

    warm = []
    while len(warm) < MOST_WARM_STEPS and not (
            len(warm) >= 2 and max(warm[-2:]) <= ABOUT * min(warm[-2:])):
        warm.append(window(1))
    warmed = time.perf_counter()
    steps = max(1, round(settings["seconds"] / WINDOWS / warm[-1]))
    times = []
    while len(times) < LEAST_WINDOWS or time.perf_counter() - warmed < settings["seconds"]:
        times.append(window(steps))
    median = statistics.median(times)
    return {"mode": mode, "images_per_second": settings["batch"] / median, "ms_per_step": median * 1e3,
            "warmup_s": warmed - start, "steps": steps * len(times), "rss_bytes": peak_bytes(),
            "bytes": torch.cuda.max_memory_allocated() if cuda else None}


def main():
    settings = json.loads(sys.argv[1])
    start = time.perf_counter()
    try:
        import timm
        import torch
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    torch.set_num_threads(settings["threads"])
    idle = peak_bytes()
    for mode in settings["modes"]:
        try:
            result = measure(torch, timm, settings, mode, start)
        except Exception as error:  # pylint: disable=broad-exception-caught  # whatever torch says is told
            sentence = str(error).strip() or type(error).__name__
            result = {"mode": mode, "error": sentence.splitlines()[0][:300]}
        print(json.dumps(result | {"version": torch.__version__, "idle_rss_bytes": idle}), flush=True)
        start = time.perf_counter()


if __name__ == "__main__":
    main()
