"""torch_train.py - a training as people and programs write it, with a batch that is too small.

PyTorch, a small convolutional network, pictures made up in memory; it says of itself what such
scripts say. BATCH_SIZE and NUM_WORKERS are taken from the environment. When it is asked to stop (or
done) it leaves model.pt, from which torch_predict.py makes submission.csv.
"""
import os
import signal
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH_SIZE = int(os.environ.get("BATCH_SIZE", 32))
NUM_WORKERS = int(os.environ.get("NUM_WORKERS", 2))
EPOCHS = int(os.environ.get("EPOCHS", 30))
SIDE = int(os.environ.get("IMG_SIZE", 64))
IMAGES = int(os.environ.get("IMAGES", 20000))
WIDTH = int(os.environ.get("WIDTH", 32))
device = "cuda" if torch.cuda.is_available() else "cpu"


class Pictures(Dataset):
    """Noise with a bright quarter: which one is the label."""

    def __init__(self, count):
        self.count = count
        self.noise = torch.randint(0, 128, (64, 3, SIDE, SIDE), dtype=torch.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        label = index % 4
        picture = self.noise[index % 64].clone()
        half = SIDE // 2
        picture[:, label // 2 * half:(label // 2 + 1) * half, label % 2 * half:(label % 2 + 1) * half] += 100
        return picture, label


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                         nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def network():
    return nn.Sequential(block(3, WIDTH), block(WIDTH, 2 * WIDTH), block(2 * WIDTH, 4 * WIDTH),
                         block(4 * WIDTH, 8 * WIDTH), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(8 * WIDTH, 4))


def main():
    model = network().to(device)

    def stop(*_):
        torch.save(model.state_dict(), "model.pt")
        print("saved model.pt", flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    loader = DataLoader(Pictures(IMAGES), batch_size=BATCH_SIZE, shuffle=True, num_workers=NUM_WORKERS,
                        drop_last=True, persistent_workers=NUM_WORKERS > 0, pin_memory=device == "cuda")
    name = torch.cuda.get_device_name(0) if device == "cuda" else "none"
    print(f"RESOURCES: {os.cpu_count()} CPU cores, batch={BATCH_SIZE}, GPU={name}, Mixed Precision=ON")
    print(f"DataLoader: num_workers={NUM_WORKERS}, prefetch_factor=2, persistent_workers=True")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    for epoch in range(1, EPOCHS + 1):
        began = time.time()
        for step, (pictures, labels) in enumerate(loader, 1):
            pictures = pictures.to(device, non_blocking=True).float().div_(255)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = loss_of(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step == 1 and epoch == 1 and device == "cuda":
                used = torch.cuda.memory_allocated() / 2**30
                total = torch.cuda.get_device_properties(0).total_memory / 2**30
                print(f"GPU Memory Used: {used:.2f} GB / {total:.1f} GB ({100 * used / total:.1f}%)", flush=True)
            if step % 10 == 0 or step == len(loader):
                rate = step / (time.time() - began)
                print(f"\rEpoch {epoch}/{EPOCHS}: {100 * step // len(loader)}%|###   | {step}/{len(loader)} "
                      f"[00:01<00:01, {rate:.2f}it/s, loss={loss.item():.3f}]", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        print(f"Epoch {epoch}/{EPOCHS} loss: {loss.item():.4f} ({time.time() - began:.1f} s)", flush=True)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
