"""Pictures that can be learnt, but not from one pixel.

A picture is a backdrop (muted colours, blotches, noise) with marks on it. A mark is a flower-like shape with a hue, a
number of lobes and a texture; where it lies, how large it is and how it is turned are random. Small pale lures
lie beside the marks. What is asked for decides which marks there are or how they look, so it survives a change of size.
How classes look depends on their number alone: every seed is equally hard.
"""

import colorsys
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

TEXTURES = ("plain", "stripes", "rings", "checks")
LOBES = (0, 3, 5, 8, 2)
HUES = 6


@dataclass(frozen=True)
class Look:
    """How the mark of a class looks. A hue of None is grey."""

    hue: float | None
    lobes: int
    texture: str
    value: float = 0.95


def look(index, count):
    """The look of class `index` of `count`: few classes differ by hue, more by texture too, many by shape as well."""
    hues = min(count, HUES)
    rest = index // hues
    return Look((index % hues) / hues, LOBES[rest // len(TEXTURES) % len(LOBES)], TEXTURES[rest % len(TEXTURES)])


def grey_look(index):
    """The look of class `index` where pictures have no colours: shape, texture and brightness, 16 in all."""
    return Look(None, LOBES[index % 4], TEXTURES[index // 4 % 4], 0.98 if index % 2 == 0 else 0.75)


def smooth(rng, width, height, cells):
    """Blotches between -1 and 1: a few random numbers, drawn out over the whole picture."""
    small = rng.uniform(-1, 1, (cells, cells)).astype(np.float32)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def backdrop(rng, width, height, tint=None, rough=0.08):
    """A canvas, (height, width, 3) from 0 to 1, of a muted random colour or of `tint`."""
    base = np.asarray(tint if tint is not None else 0.42 + rng.uniform(-0.1, 0.1, 3), dtype=np.float32)
    canvas = np.empty((height, width, 3), dtype=np.float32)
    canvas[:] = base
    canvas += (rough * smooth(rng, width, height, 5) + rough / 2 * smooth(rng, width, height, 13))[..., None]
    return canvas


def pattern(texture, x, y, radius, angle):
    """The brightness of a texture, 0.35 to 1."""
    turned = (x * np.cos(angle) + y * np.sin(angle)) * (9.0 / radius)
    if texture == "stripes":
        wave = np.sin(turned)
    elif texture == "rings":
        wave = np.sin(np.hypot(x, y) * (11.0 / radius))
    elif texture == "checks":
        wave = 1.5 * np.sin(turned) * np.sin((y * np.cos(angle) - x * np.sin(angle)) * (9.0 / radius))
    else:
        return np.float32(0.9)
    return (0.65 + 0.35 * np.clip(3 * wave, -1, 1)).astype(np.float32)


def draw(canvas, rng, what, radius=None, centre=None, opacity=1.0):
    """Draws a mark with the Look `what`. Radius and centre are shares of the shorter side and of both sides."""
    height, width = canvas.shape[:2]
    size = (radius or rng.uniform(0.2, 0.3)) * min(width, height)
    cx, cy = centre if centre is not None else rng.uniform(0.25, 0.75, 2)
    cx, cy = cx * width, cy * height
    left, right = max(0, int(cx - 1.4 * size)), min(width, int(cx + 1.4 * size) + 2)
    top, bottom = max(0, int(cy - 1.4 * size)), min(height, int(cy + 1.4 * size) + 2)
    y, x = np.mgrid[top:bottom, left:right].astype(np.float32)
    x, y = x - cx, y - cy
    angle = rng.uniform(0, 2 * np.pi)
    reach = size * (1 + 0.32 * np.cos(what.lobes * (np.arctan2(y, x) - angle))) if what.lobes else size
    mask = opacity * np.clip((reach - np.hypot(x, y)) / 1.5 + 0.5, 0, 1)
    hue = None if what.hue is None else (what.hue + rng.normal(0, 0.03)) % 1
    paint = colorsys.hsv_to_rgb(
        hue or 0, 0 if hue is None else rng.uniform(0.4, 0.85), what.value * rng.uniform(0.8, 1)
    )
    shade = pattern(what.texture, x, y, size, angle)
    colours = np.asarray(paint, dtype=np.float32) * np.broadcast_to(shade, mask.shape)[..., None]
    part = canvas[top:bottom, left:right]
    part += mask[..., None] * (colours - part)


def lure(canvas, rng, coloured=True):
    """Draws a small pale mark that means nothing."""
    what = Look(
        rng.uniform(0, 1) if coloured else None,
        int(rng.choice(LOBES)),
        str(rng.choice(TEXTURES)),
        rng.uniform(0.2, 0.7),
    )
    draw(canvas, rng, what, rng.uniform(0.05, 0.11), rng.uniform(0.1, 0.9, 2), 0.6)


def finish(canvas, rng, noise=0.06):
    """The canvas as whole numbers, (height, width, 3) from 0 to 255, with noise."""
    height, width = canvas.shape[:2]
    grain = rng.standard_normal((height, width, 1), dtype=np.float32) * noise
    return (np.clip(canvas + grain, 0, 1) * 255 + 0.5).astype(np.uint8)


def scene(rng, looks, size=None, tint=None, lures=3, radius=None):
    """A colour picture with one mark for each Look. The marks keep apart where there are several."""
    width, height = rng.integers(96, 200, 2) if size is None else size
    canvas = backdrop(rng, int(width), int(height), tint)
    for _ in range(lures):
        lure(canvas, rng)
    places = apart(rng, len(looks))
    bounds = (0.16, 0.28) if len(looks) == 1 else (0.11, 0.16)
    for what, place in zip(looks, places):
        draw(canvas, rng, what, radius or rng.uniform(*bounds), place)
    return finish(canvas, rng)


def apart(rng, count):
    """Places for marks: anywhere in the middle for one, different cells of a grid for several."""
    if count <= 1:
        return rng.uniform(0.3, 0.7, (count, 2))
    side = int(np.ceil(np.sqrt(count)))
    cells = rng.permutation(side * side)[:count]
    places = np.stack([cells % side, cells // side], axis=1) + rng.uniform(0.35, 0.65, (count, 2))
    return 0.08 + 0.84 * places / side


def class_scene(rng, index, count, **how):
    """A picture of class `index` of `count`."""
    return scene(rng, [look(index, count)], **how)


def gauge_scene(rng, share, size=None):
    """A picture of a number from 0 to 1: the larger it is, the larger the mark and the nearer its hue to red."""
    what = Look(0.66 * (1 - share), 5, "plain")
    return scene(rng, [what], size, radius=0.12 + 0.22 * share)


def grey(picture):
    """A colour picture without its colours, (height, width)."""
    return np.asarray(Image.fromarray(picture).convert("L"))


def encoded(picture, kind="JPEG", **options):
    """The bytes of a picture file."""
    if kind == "JPEG":
        options = {"quality": 90, **options}
    target = io.BytesIO()
    Image.fromarray(picture).save(target, kind, **options)
    return target.getvalue()
