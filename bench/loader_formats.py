#!/usr/bin/env python3
"""Compares Stoker's loader with pydicom, tifffile and numpy, each with Pillow, on drawn pictures.

    bench/loader_formats.py BUILD_DIR
    bench/loader_formats.py BUILD_DIR --workers 1 --rounds 3 --count 60

Both sides take a file from the page cache, decode it, cut RandomResizedCrop's part out of it and
scale it to 224 px, 8 bits, with the same number of workers: threads in Stoker, processes in Python.
The peers take the percentiles of each picture that is not of 8 bits. The two take turns; a line has
the medians of the rounds and their ratio.

Kinds: dicom-raw (1024 x 1024, 12 bits), dicom-jpeg2000 and dicom-lossless (the same), tiff-rgb
(96 x 96, not compressed), tiff-lzw (512 x 512), npy (3 x 273 x 256, float16).

Needs numpy, Pillow, tifffile, imagecodecs and pydicom with pylibjpeg and its two plug-ins.
"""
import argparse
import json
import multiprocessing
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import imagecodecs
import numpy as np
import pydicom
import tifffile
from PIL import Image
from pydicom import uid
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate

SIZE = 224
SECONDS = 3


def scene(number, channels, width, height):
    y, x = np.mgrid[0:height, 0:width] / 40.0
    rng = np.random.default_rng(number)
    planes = [np.sin(x * rng.uniform(0.5, 2)) * np.cos(y * rng.uniform(0.5, 2)) for _ in range(channels)]
    return np.clip(np.stack(planes, -1) * 0.4 + 0.5 + rng.normal(0, 0.01, (height, width, channels)), 0, 1)


def write_dicom(path, values, syntax, data):
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = syntax
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID = uid.SecondaryCaptureImageStorage
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID = "1.2.3"
    ds.Rows, ds.Columns = values.shape
    ds.SamplesPerPixel = 1
    ds.PhotometricInterpretation = "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    ds.PixelData = encapsulate([data]) if data else values.tobytes()
    ds["PixelData"].VR = "OB" if data else "OW"
    ds.save_as(path, enforce_file_format=True)


def write(kind, path, number):
    if kind.startswith("dicom"):
        values = (scene(number, 1, 1024, 1024)[:, :, 0] * 4095).astype("<u2")
        if kind == "dicom-jpeg2000":
            write_dicom(path, values, uid.JPEG2000Lossless, imagecodecs.jpeg2k_encode(
                values, level=0, codecformat="j2k", reversible=True, bitspersample=12))
        elif kind == "dicom-lossless":
            write_dicom(path, values, uid.JPEGLosslessSV1, imagecodecs.jpeg_encode(
                values, lossless=True, predictor=1, bitspersample=12))
        else:
            write_dicom(path, values, uid.ExplicitVRLittleEndian, None)
    elif kind.startswith("tiff"):
        side, how = (96, {}) if kind == "tiff-rgb" else (512, dict(compression="lzw"))
        tifffile.imwrite(path, (scene(number, 3, side, side) * 255).astype(np.uint8), photometric="rgb", **how)
    else:
        np.save(path, scene(number, 3, 256, 273).astype("<f2").transpose(2, 0, 1))


def to_levels(values):
    if values.dtype != np.uint8:
        values = values.astype(np.float32)
        lo, hi = np.percentile(values, (0.1, 99.9))
        values = np.clip((values - lo) * (255 / max(hi - lo, 1e-9)), 0, 255).astype(np.uint8)
    return values if values.ndim == 3 else np.repeat(values[:, :, None], 3, 2)


def read(path):
    if path.suffix == ".dcm":
        return pydicom.dcmread(path).pixel_array
    return tifffile.imread(path) if path.suffix == ".tif" else np.load(path).transpose(1, 2, 0)


def square(path):
    image = Image.fromarray(to_levels(read(path)))
    rng = np.random.default_rng()
    side = int(min(image.size) * np.sqrt(rng.uniform(0.08, 1)))
    x, y = (int(rng.integers(0, most - side + 1)) for most in image.size)
    return np.asarray(image.resize((SIZE, SIZE), Image.BILINEAR, (x, y, x + side, y + side)))


def python_rate(files, pool, workers):
    """Pictures per second; without a pool in this process."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        if workers == 1:
            done += sum(1 for path in files if square(path) is not None)
        else:
            done += sum(1 for _ in pool.imap_unordered(square, files, 8))
    return done / (time.perf_counter() - start)


def stoker_rate(build, folder, workers):
    out = subprocess.run([build / "stoker", "bench", "loader", "--data", folder, "--workers", str(workers),
                          "--img-size", str(SIZE), "--batch", "16", "--json"], check=True,
                         capture_output=True, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])["images_per_second"]


def main():
    kinds = ("dicom-raw", "dicom-jpeg2000", "dicom-lossless", "tiff-rgb", "tiff-lzw", "npy")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=40, help="pictures of each kind")
    parser.add_argument("--kinds", nargs="*", default=kinds, choices=kinds)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, multiprocessing.Pool(a.workers) as pool:
        for kind in a.kinds:
            ending = {"d": "dcm", "t": "tif", "n": "npy"}[kind[0]]
            folder = pathlib.Path(scratch, kind)
            files = [folder / ("ab"[i % 2]) / ("%d.%s" % (i, ending)) for i in range(a.count)]
            for number, path in enumerate(files):
                path.parent.mkdir(parents=True, exist_ok=True)
                write(kind, path, number)
            rates = [(stoker_rate(a.build.resolve(), folder, a.workers), python_rate(files, pool, a.workers))
                     for _ in range(a.rounds)]
            own, peer = (statistics.median(side) for side in zip(*rates))
            print("%-15s stoker %8.1f  python %8.1f images/s  ratio %.2f (%d workers)" % (
                kind, own, peer, own / peer, a.workers), flush=True)


if __name__ == "__main__":
    sys.exit(main())
