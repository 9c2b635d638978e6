#!/usr/bin/env python3
"""Writes what PyTorch and timm compute with Stoker's models, for tests/unit/test_models_golden.c.

    tests/golden/make_model_golden.py [FOLDER [MODEL...]]

models.csv has a row per model: its tensors (how many, a sum of hashes of their names and shapes,
the trainable numbers in them) and timm's default mean, std, interpolation, crop and image size.

model_NAME.txt holds, for one model of each family: logits in evaluation mode, the loss and the
gradient of every parameter of one training step (norm and three projections), the running
statistics behind that step, and the losses of 30 steps of SGD.

No weights are stored: both sides compute weights, pictures, labels and the vectors to project on
from uniform(), a hash of a name and an index. All but the 30 steps is computed in float64, so what
differs is what float32 cannot do. Run it again only to add cases, and commit all that changes.
Needs torch and timm.
"""
import csv
import math
import sys
from pathlib import Path

import numpy as np
import timm
import torch
import torch.nn as nn
import torch.nn.functional as F

FNV_START, FNV_PRIME, MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
CLASSES, PICTURES, BATCH, STEPS, PROJECTIONS, SEEDS = 5, 8, 4, 30, 3, 24
MOMENTUM, DECAY = 0.9, 1e-3
CIFAR_BLOCKS = {"cifar_resnet20": 3, "cifar_resnet32": 5, "cifar_resnet44": 7, "cifar_resnet56": 9}

# Model: image size, what running variances are near (so that signals keep their size in
# evaluation), what weights of bn3 and biases of norms are near, learning rate. Weights of bn3 below
# 1 keep the sum of many blocks from multiplying rounding errors; biases above 0 keep most numbers
# away from the kinks of ReLU and ReLU6. Without both PyTorch's float32 is itself far from float64.
CASES = {
    "resnet18": (48, 1.5, 1.0, 1.5, 1e-5),
    "resnet50": (40, 1.5, 0.25, 1.5, 3e-5),
    "cifar_resnet20": (32, 0.8, 1.0, 1.5, 1e-4),
    "efficientnet_b0": (64, 0.8, 1.0, 0.0, 2e-4),
    "tf_efficientnet_b0": (64, 0.8, 1.0, 0.0, 2e-4),
    "tf_efficientnet_lite0": (64, 1.0, 1.0, 1.5, 5e-5),
    "mobilenetv2_100": (64, 1.0, 1.0, 1.5, 5e-5),
}

TIMM_MODELS = [
    *(f"resnet{n}" for n in (18, 34, 50, 101, 152)),
    "resnet34.ra4_e3600_r224_in1k",
    *(f"efficientnet_b{n}" for n in range(8)),
    "efficientnet_b0.ra4_e3600_r224_in1k", "efficientnet_b1.ft_in1k",
    *(f"tf_efficientnet_b{n}{tag}" for n in range(8) for tag in ("", "_ns", ".ap_in1k")),
    *(f"tf_efficientnet_lite{n}" for n in range(5)),
    "mobilenetv2_100",
]


def fnv(text):
    value = FNV_START
    for byte in text.encode():
        value = ((value ^ byte) * FNV_PRIME) & MASK
    return value


def uniform(name, count):
    """Numbers in [-1, 1) with 24 bits, from the name and 0 .. count-1 (SplitMix64's mixing)."""
    with np.errstate(over="ignore"):
        x = np.uint64(fnv(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float64) * 2.0 ** -23 - 1


plain_conv2d = F.conv2d


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """F.conv2d, whose float64 depthwise convolutions are very slow: these as sums over taps."""
    if groups == 1 or x.dtype != torch.float64:
        return plain_conv2d(x, weight, bias, stride, padding, dilation, groups)
    (down, across), kernel = stride, weight.shape[-1]
    x = F.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    high, wide = (x.shape[2] - kernel) // down + 1, (x.shape[3] - kernel) // across + 1
    return sum(x[:, :, i:i + high * down:down, j:j + wide * across:across]
               * weight[:, 0, i, j][None, :, None, None]
               for i in range(kernel) for j in range(kernel))


class CifarBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.stride, self.added = stride, (outputs - inputs) // 2

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:  # option A: every second pixel, zeros as further channels
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.added, self.added))
        return self.relu(x + y)


class CifarResnet(nn.Module):
    """He et al. 2015, section 4.2."""

    def __init__(self, blocks, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.relu = nn.ReLU()
        inputs = 16
        for stage, outputs in enumerate((16, 32, 64)):
            layers = []
            for i in range(blocks):
                layers.append(CifarBlock(inputs, outputs, 2 if stage > 0 and i == 0 else 1))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.linear = nn.Linear(64, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def make(name, classes):
    """The network and its preprocessing as (size, crop, interpolation, mean, std)."""
    if name in CIFAR_BLOCKS:
        return CifarResnet(CIFAR_BLOCKS[name], classes), (
            32, 1.0, "bilinear", (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    full = name.replace("_ns", ".ns_jft_in1k")
    model = timm.create_model(full, pretrained=False, num_classes=classes)
    cfg = timm.get_pretrained_cfg(full)
    return model, (cfg.input_size[1], cfg.crop_pct, cfg.interpolation, cfg.mean, cfg.std)


def tensors(model):
    return [(n, t) for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")]


def set_weights(model, variance, last, shift):
    with torch.no_grad():
        for name, tensor in tensors(model):
            u = uniform(name, tensor.numel()).reshape(tuple(tensor.shape))
            if tensor.dim() > 1:
                u *= math.sqrt(6 / np.prod(tensor.shape[1:]))
            elif name.endswith("running_var"):
                u = variance * (1 + 0.5 * u)
            elif name.endswith("weight"):
                u = (last if name.endswith("bn3.weight") else 1) * (1 + 0.2 * u)
            else:  # biases and running means
                u = (shift if "bn" in name and name.endswith("bias") else 0) + 0.1 * u
            tensor.copy_(torch.from_numpy(u))


def pictures(seed, size, mean, std):
    """PICTURES uint8 pictures of coloured squares with noise, normalised; (N, 3, size, size)."""
    base = uniform(f"squares {seed}", PICTURES * 4 * 4 * 3).reshape(PICTURES, 4, 4, 3)
    noise = uniform(f"noise {seed}", PICTURES * size * size * 3).reshape(PICTURES, size, size, 3)
    square = np.arange(size) * 4 // size
    levels = np.floor(128 + 80 * base[:, square][:, :, square] + 40 * noise)
    x = (levels / 255 - np.array(mean)) / np.array(std)
    return torch.from_numpy(x.transpose(0, 3, 1, 2).copy())


def labels():
    return torch.from_numpy(((uniform("labels", PICTURES) + 1) / 2 * CLASSES).astype(np.int64))


def numbers(values):
    return " ".join(f"{float(v):.8g}" for v in values)


def summary(name, tensor):
    """The norm and the projections."""
    flat = tensor.detach().numpy().reshape(-1)
    return [np.linalg.norm(flat)] + [
        flat @ uniform(f"{name}#{k}", flat.size) for k in range(PROJECTIONS)]


def losses(model, x, y, lr):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    undecayed = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": DECAY}, {"params": undecayed}],
                                lr=lr, momentum=MOMENTUM, nesterov=True)
    found = []
    for step in range(STEPS):
        part = slice(step % 2 * BATCH, step % 2 * BATCH + BATCH)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def kink_distance(model, x):
    """How near any number comes to where ReLU or ReLU6 bend, in training."""
    nearest = [math.inf]

    def look(module, inputs):
        nearest.append(inputs[0].abs().min().item())
        if isinstance(module, nn.ReLU6):
            nearest.append((inputs[0] - 6).abs().min().item())

    hooks = [m.register_forward_pre_hook(look) for m in model.modules()
             if isinstance(m, (nn.ReLU, nn.ReLU6))]
    with torch.no_grad():
        model.train()(x)
    for hook in hooks:
        hook.remove()
    return min(nearest)


def choose_seed(model, weights, draw):
    """Pictures whose gradient does not depend on which side of a kink float32 falls."""
    distances = []
    for seed in range(SEEDS):
        set_weights(model, *weights)
        distances.append(kink_distance(model, draw(seed)[:BATCH]))
    return int(np.argmax(distances)), max(distances)


def write_case(folder, name, size, variance, last, shift, lr):
    model, (_, _, _, mean, std) = make(name, CLASSES)
    model.double()
    weights = (variance, last, shift)
    seed, distance = choose_seed(model, weights, lambda k: pictures(k, size, mean, std))
    set_weights(model, *weights)
    x, y = pictures(seed, size, mean, std), labels()
    model.eval()
    with torch.no_grad():
        logits = model(x[:BATCH])
    model.train()
    first = F.cross_entropy(model(x[:BATCH]), y[:BATCH])
    first.backward()
    lines = [f"seed {seed}", f"size {size}", f"variance {variance}", f"last {last}",
             f"shift {shift}", f"lr {lr}", "logits " + numbers(logits.reshape(-1))]
    lines += [f"grad {n} " + numbers(summary(n, p.grad)) for n, p in model.named_parameters()]
    lines += [f"running {n} " + numbers(summary(n, b)) for n, b in model.named_buffers()
              if not n.endswith("num_batches_tracked")]
    model.float()
    set_weights(model, *weights)
    curve = losses(model, x.float(), y, lr)
    lines.append("losses " + numbers(curve))
    (folder / f"model_{name}.txt").write_text("\n".join(lines) + "\n")
    spread = (logits - logits.mean(0)).std() / logits.std()
    print(f"{name}: seed {seed}, {distance:.1e} from kinks; "
          f"logits {logits.abs().max():.3g}, of which by picture {spread:.2f}; "
          f"loss {curve[0]:.3f} {curve[10]:.3f} {curve[20]:.3f} {curve[29]:.3f}")


def write_table(folder):
    with open(folder / "models.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "tensors", "hash", "trainable", "img_size", "crop",
                         "interpolation", "mean0", "mean1", "mean2", "std0", "std1", "std2"))
        for name in [*TIMM_MODELS, *CIFAR_BLOCKS]:
            model, (size, crop, interpolation, mean, std) = make(name, 10 if name in CIFAR_BLOCKS
                                                                 else 1000)
            every = tensors(model)
            total = sum(fnv(f"{n} {' '.join(map(str, t.shape))}") for n, t in every) & MASK
            writer.writerow((name, len(every), f"{total:016x}",
                             sum(p.numel() for p in model.parameters()), size, crop, interpolation,
                             *mean, *std))


def main():
    torch.set_num_threads(1)  # more would mostly wait for each other on a busy machine
    F.conv2d = conv2d
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    if len(sys.argv) < 3:
        write_table(folder)
    for name, (size, variance, last, shift, lr) in CASES.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        write_case(folder, name, size, variance, last, shift, lr)


if __name__ == "__main__":
    main()
