#!/usr/bin/env python3
"""Makes a folder of JPEGs of one size and weight out of a folder of photographs.

    bench/make_jpegs.py PHOTOS OUT --count 480
    bench/make_jpegs.py PHOTOS OUT --count 10000 --distinct 480 --classes 10

Loaders are compared on pictures like ImageNet's: 500x375 pixels, about 108 kB, in class folders.
Photographs that were scaled down and stored well compressed weigh less, and light files decode
faster than their pixels suggest. So each picture is a part of a photograph scaled to the size, with
film grain on its brightness; the quality is fixed and the grain (or, for photographs that are heavy
already, the quality) is chosen so that the mean file has the weight asked for. The same arguments
make the same files. With --distinct only so many pictures are made and the others are hard links to
them: what a loader does for many files without the disk space.

Needs Pillow and numpy.
"""
import argparse
import io
import os
import sys
from pathlib import Path

try:
    import numpy as np
    from PIL import Image, ImageOps
except ImportError as missing:
    sys.exit(f"make_jpegs.py: {missing}: pip install pillow numpy")

SAMPLES = 24  # pictures that are encoded to find the grain
SUFFIXES = {".jpg", ".jpeg", ".png"}


def part_of(photo, index, size):
    """A part of the photograph with the shape of the result, another one for each index."""
    rng = np.random.default_rng([1, index])
    with Image.open(photo) as opened:
        picture = ImageOps.exif_transpose(opened).convert("RGB")
    if (picture.width < picture.height) != (size[0] < size[1]):
        picture = picture.transpose(Image.Transpose.ROTATE_90)
    scale = min(picture.width / size[0], picture.height / size[1]) * rng.uniform(0.9, 1)
    width, height = size[0] * scale, size[1] * scale
    x = rng.uniform(0, picture.width - width)
    y = rng.uniform(0, picture.height - height)
    return picture.resize(size, Image.Resampling.BICUBIC, box=(x, y, x + width, y + height))


def with_grain(picture, index, strength):
    """Grain of two sizes, the same on all three channels, weakest where it is black or white."""
    if strength == 0:
        return picture
    rng = np.random.default_rng([2, index])
    fine = rng.standard_normal((picture.height, picture.width), dtype=np.float32)
    coarse = rng.standard_normal((picture.height // 2 + 1, picture.width // 2 + 1),
                                 dtype=np.float32)
    coarse = coarse.repeat(2, axis=0).repeat(2, axis=1)[:picture.height, :picture.width]
    pixels = np.asarray(picture, dtype=np.float32)
    brightness = pixels.mean(axis=2) / 255
    grain = strength * (0.8 * fine + 0.6 * coarse) * (0.4 + 2.4 * brightness * (1 - brightness))
    return Image.fromarray(np.clip(pixels + grain[..., None] + 0.5, 0, 255).astype(np.uint8))


def encode(picture, quality):
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
    return buffer.getvalue()


def choose(photos, size, quality, target_bytes):
    """The grain and quality at which the mean of some pictures has the target's weight."""
    step = max(1, len(photos) // SAMPLES)
    indices = range(0, len(photos), step)
    parts = [(i, part_of(photos[i], i, size)) for i in indices]

    def mean_bytes(strength, quality):
        return sum(len(encode(with_grain(p, i, strength), quality)) for i, p in parts) / len(parts)

    if mean_bytes(0, quality) >= target_bytes:
        while quality > 1 and mean_bytes(0, quality) > target_bytes:
            quality -= 1
        return 0, quality
    low, high = 0.0, 64.0
    for _ in range(10):
        middle = (low + high) / 2
        if mean_bytes(middle, quality) < target_bytes:
            low = middle
        else:
            high = middle
    return low, quality


def parse(arguments):
    description, _, details = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=description, epilog=details,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path, help="folder that is searched for photographs")
    parser.add_argument("out", type=Path, help="folder to make; must not exist or be empty")
    parser.add_argument("--count", type=int, default=480, help="files (default: 480)")
    parser.add_argument("--distinct", type=int,
                        help="different pictures; the others are hard links (default: all)")
    parser.add_argument("--classes", type=int, default=6, help="class folders (default: 6)")
    parser.add_argument("--size", default="500x375", help="in pixels (default: 500x375)")
    parser.add_argument("--kbytes", type=float, default=108,
                        help="mean weight in units of 1000 bytes (default: 108)")
    parser.add_argument("--quality", type=int, default=96, help="of JPEG, at most (default: 96)")
    options = parser.parse_args(arguments)
    try:
        options.size = tuple(int(side) for side in options.size.split("x"))
        if len(options.size) != 2 or min(options.size) < 1:
            raise ValueError
    except ValueError:
        parser.error("--size is two numbers such as 500x375")
    options.distinct = min(options.distinct or options.count, options.count)
    if min(options.count, options.distinct, options.classes) < 1:
        parser.error("--count, --distinct and --classes are at least 1")
    if not 1 <= options.quality <= 100:
        parser.error("--quality is 1 to 100")
    return options


def main(arguments=None):
    options = parse(arguments)
    photos = sorted(p for p in options.photos.rglob("*") if p.suffix.lower() in SUFFIXES)
    if not photos:
        sys.exit(f"make_jpegs.py: no photographs in {options.photos}")
    if options.out.exists() and any(options.out.iterdir()):
        sys.exit(f"make_jpegs.py: {options.out} is not empty")

    grain, quality = choose(photos, options.size, options.quality, options.kbytes * 1000)
    names = [options.out / f"class{i % options.classes:02d}" / f"{i:06d}.jpg"
             for i in range(options.count)]
    for name in names[:options.classes]:
        name.parent.mkdir(parents=True, exist_ok=True)
    total = 0
    for i, name in enumerate(names):
        if i < options.distinct:
            # Neighbours in the list of photographs are alike: spread each class over all of it.
            photo = photos[i % len(photos)]
            name.write_bytes(encode(with_grain(part_of(photo, i, options.size), i, grain), quality))
        else:
            os.link(names[i % options.distinct], name)
        total += name.stat().st_size
    print(f"{options.out}: {options.count} JPEGs ({options.distinct} different) of "
          f"{options.size[0]}x{options.size[1]}, mean {total / options.count / 1000:.1f} kB, "
          f"quality {quality}, grain {grain:.1f}")


if __name__ == "__main__":
    main()
