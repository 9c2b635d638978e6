#!/usr/bin/env python3
"""Draws the pictures in this folder and writes what Pillow makes of them.

    tests/golden/make_golden.py [FOLDER]

A case is one part of one picture scaled to a square; cases.csv lists them: file, the part in whole
pixels of the upright picture (x, y, w, h), the side of the square, the PNG with the expected
pixels, and the filter. Expected is what torchvision's RandomResizedCrop does with a PIL picture:
apply the EXIF orientation, convert to RGB, crop(), and only then resize() with BILINEAR or BICUBIC,
which Pillow antialiases.
So the filter does not see the neighbours outside of the part, which resize(box=...) on the whole
picture would let it see.

The pictures are drawn with fixed seeds. The same release of Pillow writes the same bytes; run this
again only to add cases, and commit everything that changes. Needs Pillow and numpy.
"""
import csv
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

ORIENTATION = 0x0112  # EXIF's tag
TURNED = 6            # its value for a picture whose top lies on the right side
LIMIT_BYTES = 900_000


def grid(width, height):
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    return x / width, y / height


def smooth(width, height):
    """Slow gradients in three directions: where rounding would show as a shift."""
    x, y = grid(width, height)
    return np.stack([255 * x, 127 + 120 * np.sin(5 * (x + y)), 255 * (1 - y) * (0.3 + 0.7 * x)], 2)


def edges(width, height):
    """Discs, bars and slanted lines without soft borders: where a shift of a pixel would show."""
    x, y = grid(width, height)
    picture = smooth(width, height) * 0.4 + 60
    picture[(x - 0.3) ** 2 + (y - 0.4) ** 2 < 0.05] = (250, 240, 20)
    picture[(x - 0.72) ** 2 + (y - 0.7) ** 2 < 0.03] = (10, 30, 160)
    picture[np.abs(x - y) < 0.02] = (255, 255, 255)
    picture[(y > 0.85) & ((x * 40).astype(int) % 2 == 0)] = (0, 0, 0)
    return picture


def writing(width, height):
    """Dark strokes in lines on bright paper, like a page of small print."""
    rng = np.random.default_rng(3)
    picture = np.full((height, width, 3), (238.0, 232.0, 218.0))
    for top in range(8, height - 20, 48):
        left = 8
        while left < width - 20:
            letter = rng.integers(0, 2, (5, 3)).repeat(3, axis=0).repeat(3, axis=1) == 1
            part = picture[top:top + 15, left:left + 9]
            part[letter] = (30, 30, 48) if rng.random() < 0.9 else (190, 20, 20)
            left += 14 if rng.random() < 0.8 else 28
    return picture


def grain(width, height):
    """Colour noise over a gradient: the hardest case for JPEG and for the filter."""
    rng = np.random.default_rng(4)
    return smooth(width, height) * 0.6 + 50 + rng.normal(0, 30, (height, width, 3))


def scene(width, height):
    """A bit of everything, one kind in each quarter."""
    picture = smooth(width, height)
    half_w, half_h = width // 2, height // 2
    picture[:half_h, half_w:] = writing(width - half_w, half_h)
    picture[half_h:, :half_w] = edges(half_w, height - half_h)
    picture[half_h:, half_w:] = grain(width - half_w, height - half_h)
    return picture


def drawn(draw, width, height):
    return Image.fromarray(np.clip(draw(width, height) + 0.5, 0, 255).astype(np.uint8))


def turned_exif():
    exif = Image.Exif()
    exif[ORIENTATION] = TURNED
    return exif


def write_pictures(folder):
    """Stores the pictures in the ways that decoders must cope with; gives their names."""
    drawn(smooth, 512, 384).save(folder / "smooth_420.jpg", quality=90, subsampling="4:2:0")
    drawn(edges, 333, 251).save(folder / "edges_444.jpg", quality=95, subsampling="4:4:4")
    drawn(writing, 640, 480).save(folder / "writing_422.jpg", quality=75, subsampling="4:2:2")
    drawn(grain, 97, 61).save(folder / "grain_420.jpg", quality=75, subsampling="4:2:0")
    drawn(scene, 333, 251).convert("L").save(folder / "scene_grey.jpg", quality=85)
    drawn(scene, 512, 384).save(folder / "scene_progressive.jpg", quality=80,
                                subsampling="4:2:0", progressive=True)
    upright = drawn(edges, 251, 333)
    upright.transpose(Image.Transpose.ROTATE_90).save(
        folder / "edges_turned.jpg", quality=90, subsampling="4:2:0", exif=turned_exif())
    drawn(scene, 97, 61).save(folder / "scene.png", optimize=True)
    return ("smooth_420.jpg", "edges_444.jpg", "writing_422.jpg", "grain_420.jpg",
            "scene_grey.jpg", "scene_progressive.jpg", "edges_turned.jpg", "scene.png")


def parts(width, height):
    """Parts (x, y, w, h) of a picture, each with the side of the square it is scaled to."""
    third_w, third_h = width // 3, height // 3
    return (
        (0, 0, width, height, 96),
        (0, 0, third_w, 2 * third_h, 64),                              # left and top edge
        (width - third_w - 7, height - third_h, third_w + 7, third_h, 64),  # right and bottom edge
        (third_w + 1, third_h - 2, third_w + 10, third_h + 3, 64),     # inside, odd corner
        (3, third_h, width - 5, 21, 64),                               # flat: both scales at once
        (width - 19, height - 13, 19, 13, 64),                         # tiny, in the corner
        (third_w + 3, third_h + 2, 7, 9, 64),                          # tiny, inside
    )


# Pictures that are scaled with the cubic as well.
CUBIC = ("edges_444.jpg", "smooth_420.jpg", "writing_422.jpg", "scene.png")
FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def expected(picture, x, y, w, h, size, name):
    return picture.crop((x, y, x + w, y + h)).resize((size, size), FILTERS[name])


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    for old in folder.glob("expected_*.png"):
        old.unlink()
    rows = []
    for name in write_pictures(folder):
        with Image.open(folder / name) as opened:
            picture = ImageOps.exif_transpose(opened).convert("RGB")
        for i, (x, y, w, h, size) in enumerate(parts(*picture.size)):
            for kind in FILTERS if name in CUBIC else ("bilinear",):
                cubic = "_cubic" if kind == "bicubic" else ""
                result = f"expected_{Path(name).stem}_{i}{cubic}.png"
                expected(picture, x, y, w, h, size, kind).save(folder / result, optimize=True)
                rows.append((name, x, y, w, h, size, result, kind))
    with open(folder / "cases.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "x", "y", "w", "h", "size", "expected", "filter"))
        writer.writerows(rows)
    total = sum(path.stat().st_size for path in folder.iterdir()
                if path.name == "cases.csv" or path.suffix in (".png", ".jpg"))
    print(f"{len(rows)} cases, {total / 1000:.0f} kB")
    if total > LIMIT_BYTES:
        sys.exit(f"make_golden.py: over {LIMIT_BYTES / 1000:.0f} kB: use fewer or smaller cases")


if __name__ == "__main__":
    main()
