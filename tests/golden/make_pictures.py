#!/usr/bin/env python3
"""Makes the small files of tests/golden/pictures and what they must become (needs numpy, Pillow,
tifffile with imagecodecs, pydicom with pylibjpeg, pylibjpeg-libjpeg and pylibjpeg-openjpeg).

Each file has a line in pictures.csv: file, the picture that it must become, how much a level may
differ, why it is there. The pictures come from the arrays that went into the files, from windows
computed here and, for lossy formats, from what the peers decode.
"""
import csv
import io
import pathlib
import struct

import imagecodecs
import numpy as np
import tifffile
from PIL import Image
from pydicom import uid
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.pixels import convert_color_space

HERE = pathlib.Path(__file__).parent / "pictures"
W, H = 23, 17
rows = []
rng = np.random.default_rng(1)


def scene(channels=3, width=W, height=H):
    """A smooth picture of 0 to 1 with a little noise, different in each channel."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [(np.sin(x / (3 + c) + c) * np.cos(y / (4 - c % 3)) + 1) / 2 for c in range(channels)]
    return np.clip(np.stack(planes, -1) * 0.9 + rng.random((height, width, channels)) * 0.1, 0, 1)


def levels(values, lo, hi):
    return np.floor(np.clip((values.astype(np.float64) - lo) * 255 / (hi - lo), 0, 255) + 0.5).astype(np.uint8)


def percentiles(values):
    """The window that Stoker gives values that are no small whole numbers."""
    flat = np.sort(np.asarray(values, np.float32)[np.isfinite(values)].ravel())
    k = len(flat) // 1000
    return float(flat[k]), float(flat[len(flat) - 1 - k])


def rgb(picture):
    return np.repeat(picture[:, :, None], 3, 2) if picture.ndim == 2 else picture


def needs(name):
    """The optional part of Stoker without which the file is refused."""
    plain = "rgb rgb_strips rgb_big_endian rgba rgba_done grey grey_white u16 u16_12bit f32 u16_big_endian turned"
    if name.startswith("j2k"):
        return "JPEG2000"
    return "TIFF" if name.endswith(".tif") and name[:-4] not in plain.split() else ""


def expect(name, picture, why, tolerance=0):
    out = name.replace(".", "_") + ".png"
    Image.fromarray(rgb(picture)).save(HERE / out, optimize=True)
    rows.append((name, out, tolerance, needs(name), why))


def over_white(rgba):
    alpha = rgba[:, :, 3:].astype(int)
    return ((rgba[:, :, :3].astype(int) * alpha + 255 * (255 - alpha) + 127) // 255).astype(np.uint8)


def npy():
    grey = scene(1)[:, :, 0]
    colour = scene(3)

    def save(name, array, picture, why, version=None, tolerance=0):
        with open(HERE / name, "wb") as f:
            np.lib.format.write_array(f, array, version)
        expect(name, picture, why, tolerance)

    u8 = levels(colour, 0, 1)
    save("u8_hwc.npy", u8, u8, "bytes stay as they are")
    save("u8_chw.npy", np.ascontiguousarray(u8.transpose(2, 0, 1)), u8, "channels first")
    save("u8_fortran.npy", np.asfortranarray(u8), u8, "columns first")
    save("u8_fortran_chw.npy", np.asfortranarray(u8.transpose(2, 0, 1)), u8, "both")
    save("u8_v2.npy", u8[:, :, 0], u8[:, :, 0], "version 2", (2, 0))
    save("u8_v3.npy", u8[:, :, :1], u8[:, :, 0], "version 3, one channel", (3, 0))
    rgba = np.concatenate([u8, levels(scene(1), 0, 1)], 2)
    save("u8_alpha.npy", rgba, over_white(rgba), "alpha over white")
    save("bool.npy", grey > 0.5, ((grey > 0.5) * 255).astype(np.uint8), "true is white")
    for kind in ("<u2", ">u2"):
        full = (colour * 65535).astype(kind)
        save("%s.npy" % kind.translate({60: "le_", 62: "be_"}), full, levels(full, 0, 65535), "16 bits")
    twelve = (grey * 4095).astype("<u2")
    save("u16_12bit.npy", twelve, levels(twelve, 0, 4095), "12 bits of 16")
    for kind in ("<i1", "<i2", ">i4", "<i8", "<u4", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8"):
        array = ((grey - 0.4) * 100).astype(kind) if "u" not in kind else (grey * 1e6).astype(kind)
        name = "%s.npy" % kind.translate({60: "le_", 62: "be_"})
        save(name, array, levels(array.astype(np.float32), *percentiles(array)), "its own range", None, 1)
    odd = ((grey - 0.4) * 1e3).astype("<f4")
    odd[0, :3] = np.nan, np.inf, -np.inf
    lo, hi = percentiles(odd)
    picture = levels(np.nan_to_num(odd, nan=lo, posinf=hi, neginf=lo), lo, hi)
    save("odd_floats.npy", odd, picture, "what is no number is black", None, 1)
    large = scene(1, 140, 133)[:, :, 0].astype("<f4")
    y = (2 * np.arange(128) + 1) * 133 // 256
    x = (2 * np.arange(128) + 1) * 140 // 256
    save("grid.npy", large, levels(large, *percentiles(large[y][:, x])), "a grid of values", None, 1)
    shared = scene(3).astype("<f4") * [1, 2, 3]
    save("f32_chw.npy", shared.transpose(2, 0, 1).astype("<f4"), levels(shared, *percentiles(shared)),
         "colours share a window", None, 1)
    with open(HERE / "six.npy", "wb") as f:
        np.save(f, (scene(6) * 50 - 20).astype("<f2").transpose(2, 0, 1))


def tiff():
    grey = levels(scene(1)[:, :, 0], 0, 1)
    colour = levels(scene(3), 0, 1)
    rgba = np.concatenate([colour, levels(scene(1), 0, 1)], 2)

    def save(name, array, picture, why, tolerance=0, **how):
        tifffile.imwrite(HERE / name, array, metadata=None, software=False, **how)
        expect(name, picture, why, tolerance)

    rgb_kind = dict(photometric="rgb")
    save("rgb.tif", colour, colour, "plain", **rgb_kind)
    save("rgb_strips.tif", colour, colour, "strips", rowsperstrip=5, **rgb_kind)
    save("rgb_big_endian.tif", colour, colour, "Motorola's order", byteorder=">", **rgb_kind)
    save("rgb_big.tif", colour, colour, "64-bit offsets", bigtiff=True, **rgb_kind)
    save("rgb_planes.tif", colour.transpose(2, 0, 1), colour, "planes", planarconfig="separate", **rgb_kind)
    save("rgb_tiles.tif", colour, colour, "tiles", tile=(16, 16), **rgb_kind)
    save("rgb_lzw.tif", colour, colour, "LZW", compression="lzw", predictor=True, **rgb_kind)
    save("rgb_deflate_tiles.tif", colour, colour, "Deflate", compression="zlib", tile=(16, 16), **rgb_kind)
    save("rgb_packbits.tif", colour, colour, "PackBits", compression="packbits", **rgb_kind)
    save("rgba.tif", rgba, over_white(rgba), "alpha", extrasamples=["unassalpha"], **rgb_kind)
    save("rgba_lzw.tif", rgba, over_white(rgba), "alpha, compressed", compression="lzw",
         extrasamples=["unassalpha"], **rgb_kind)
    done = rgba.copy()
    done[:, :, :3] = rgba[:, :, :3].astype(int) * rgba[:, :, 3:] // 255
    save("rgba_done.tif", done, done[:, :, :3] + 255 - done[:, :, 3:], "alpha that is applied",
         extrasamples=["assocalpha"], **rgb_kind)
    save("grey.tif", grey, grey, "grey", photometric="minisblack")
    save("grey_white.tif", 255 - grey, grey, "0 is white", photometric="miniswhite")
    for compression in (None, "zlib"):
        ending = "_deflate" if compression else ""
        kind = dict(compression=compression, photometric="minisblack")
        full = (scene(1)[:, :, 0] * 65535).astype("<u2")
        full[0, 0] = 65535
        save("u16%s.tif" % ending, full, levels(full, 0, 65535), "16 bits", **kind)
        save("u16_12bit%s.tif" % ending, full >> 4, levels(full >> 4, 0, 4095), "12 bits of 16", **kind)
        floats = scene(1)[:, :, 0].astype("f4") * 7 - 3
        save("f32%s.tif" % ending, floats, levels(floats, *percentiles(floats)), "floats", 1, **kind)
    save("u16_big_endian.tif", full, levels(full, 0, 65535), "16 bits, Motorola's", byteorder=">",
         photometric="minisblack")
    tifffile.imwrite(HERE / "six.tif", levels(scene(6), 0, 1), photometric="minisblack", metadata=None,
                     planarconfig="contig")

    def pillow(name, image, picture, why, tolerance=0, **how):
        image.save(HERE / name, **how)
        expect(name, picture, why, tolerance)

    small = Image.fromarray(colour).quantize(16)
    pillow("palette.tif", small, np.asarray(small.convert("RGB")), "palette")
    pillow("palette_lzw.tif", small, np.asarray(small.convert("RGB")), "palette, LZW", compression="tiff_lzw")
    bits = Image.fromarray(grey).convert("1")
    pillow("bits.tif", bits, np.asarray(bits.convert("L")), "1 bit")
    pillow("bits_fax.tif", bits, np.asarray(bits.convert("L")), "1 bit, fax", compression="group4")
    smooth = Image.fromarray(colour).resize((64, 48), Image.BICUBIC)
    smooth.save(HERE / "jpeg.tif", compression="jpeg", quality=95)
    expect("jpeg.tif", np.asarray(Image.open(HERE / "jpeg.tif").convert("RGB")), "JPEG inside", 3)
    turned = Image.fromarray(np.asarray(Image.fromarray(colour).transpose(Image.ROTATE_90)))
    pillow("turned.tif", turned, colour, "orientation 6", tiffinfo={274: 6})
    pillow("turned_lzw.tif", turned, colour, "orientation 6", tiffinfo={274: 6}, compression="tiff_lzw")
    ink = Image.fromarray(colour).convert("CMYK")
    pillow("cmyk.tif", ink, np.asarray(ink.convert("RGB")), "CMYK", 2)


def png():
    deep = (scene(1)[:, :, 0] * 4095).astype("<u2")
    Image.fromarray(deep).save(HERE / "u16_12bit.png")
    expect("u16_12bit.png", levels(deep, 0, 4095), "12 bits of 16")
    full = (scene(1)[:, :, 0] * 65535).astype("<u2")
    Image.fromarray(full).save(HERE / "u16.png")
    expect("u16.png", levels(full, 0, 65535), "16 bits")


def bmp():
    colour = Image.fromarray(levels(scene(3), 0, 1))
    grey = colour.convert("L")
    palette = colour.quantize(16)
    for name, image in (("rgb", colour), ("grey", grey), ("palette", palette), ("bits", grey.convert("1"))):
        image.save(HERE / (name + ".bmp"))
        expect(name + ".bmp", np.asarray(image.convert("RGB")), "%s from Pillow" % image.mode)
    indices = np.asarray(palette)
    colours = np.array(palette.getpalette()[:48], np.uint8).reshape(16, 3)
    table = b"".join(bytes((b, g, r, 0)) for r, g, b in colours)

    def write(name, bits, compression, data, picture, why, height=-H, head=40, extra=b"", entries=b""):
        info = struct.pack("<IiiHHIIiiII", head, W, height, 1, bits, compression, len(data), 0, 0,
                           len(entries) // 4, 0) + extra
        at = 14 + len(info) + len(entries)
        with open(HERE / name, "wb") as f:
            f.write(b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + info + entries + data)
        expect(name, picture, why)

    def runs(rows, pack):
        out = b""
        for row in rows:
            for x in range(0, W, 7):
                out += pack(row[x:x + 7])
            out += b"\0\0"
        return out + b"\0\1"

    def rle8(part):
        if len(set(part)) == 1 or len(part) < 3:
            return b"".join(bytes((1, v)) for v in part)
        return bytes((0, len(part))) + bytes(part) + b"\0" * (len(part) % 2)

    def rle4(part):
        nibbles = list(part) + [0] * (len(part) % 2)
        packed = bytes(a << 4 | b for a, b in zip(nibbles[::2], nibbles[1::2]))
        if len(part) < 3:
            return b"".join(bytes((1, v << 4)) for v in part)
        return bytes((0, len(part))) + packed + b"\0" * (len(packed) % 2)

    picture = colours[indices]
    write("rle8.bmp", 8, 1, runs(indices[::-1].tolist(), rle8), picture, "RLE8", H, entries=table)
    write("rle4.bmp", 4, 2, runs(indices[::-1].tolist(), rle4), picture, "RLE4", H, entries=table)
    nibbles = np.pad(indices, ((0, 0), (0, 1)))
    rows4 = np.pad((nibbles[:, ::2] << 4 | nibbles[:, 1::2]).astype(np.uint8), ((0, 0), (0, 0)))
    rows4 = np.pad(rows4, ((0, 0), (0, -rows4.shape[1] % 4)))
    write("palette4.bmp", 4, 0, rows4.tobytes(), picture, "4 bits, top down", entries=table)
    rgb8 = np.asarray(colour).astype(np.uint32)
    r5, g6, b5 = rgb8[:, :, 0] >> 3, rgb8[:, :, 1] >> 2, rgb8[:, :, 2] >> 3
    pad = ((0, 0), (0, W % 2))
    wide = lambda v, most: (v * 255 + most // 2) // most
    write("rgb565.bmp", 16, 3, np.pad((r5 << 11 | g6 << 5 | b5).astype("<u2"), pad).tobytes(),
          np.stack([wide(r5, 31), wide(g6, 63), wide(b5, 31)], -1).astype(np.uint8), "565",
          extra=struct.pack("<III", 0xf800, 0x7e0, 0x1f))
    g5 = rgb8[:, :, 1] >> 3
    write("rgb555.bmp", 16, 0, np.pad((r5 << 10 | g5 << 5 | b5).astype("<u2"), pad).tobytes(),
          np.stack([wide(r5, 31), wide(g5, 31), wide(b5, 31)], -1).astype(np.uint8), "555")
    alpha = levels(scene(1), 0, 1)[:, :, 0].astype(np.uint32)
    bgra = (rgb8[:, :, 0] << 16 | rgb8[:, :, 1] << 8 | rgb8[:, :, 2] | alpha << 24).astype("<u4")
    write("bgrx.bmp", 32, 0, bgra.tobytes(), np.asarray(colour), "32 bits without alpha")
    write("bgra.bmp", 32, 3, bgra.tobytes(),
          over_white(np.dstack([np.asarray(colour), alpha.astype(np.uint8)])), "alpha, version 4",
          head=108, extra=struct.pack("<IIII", 0xff0000, 0xff00, 0xff, 0xff000000) + b"\0" * 52)
    core = b"BM" + struct.pack("<IHHIIHHHH", 0, 0, 0, 26, 12, W, H, 1, 24)
    (HERE / "core.bmp").write_bytes(core + np.pad(np.asarray(colour)[::-1, :, ::-1].reshape(H, -1),
                                                  ((0, 0), (0, -3 * W % 4))).tobytes())
    expect("core.bmp", np.asarray(colour), "OS/2")


def gif():
    colour = Image.fromarray(levels(scene(3, 50, 41), 0, 1)).quantize(200)
    picture = np.asarray(colour.convert("RGB"))
    colour.save(HERE / "plain.gif", interlace=0)
    expect("plain.gif", picture, "no interlacing")
    colour.save(HERE / "interlaced.gif", interlace=1)
    expect("interlaced.gif", picture, "interlaced")
    noisy = Image.fromarray(rng.integers(0, 256, (90, 90), dtype=np.uint8))
    noisy.save(HERE / "noise.gif", interlace=1)
    expect("noise.gif", np.asarray(noisy), "more than 4096 codes")
    hidden = np.asarray(colour) == np.asarray(colour)[5, 5]
    colour.save(HERE / "transparent.gif", transparency=int(np.asarray(colour)[5, 5]))
    expect("transparent.gif", np.where(hidden[:, :, None], 255, picture).astype(np.uint8), "one colour is none")
    moving = [colour, colour.transpose(Image.ROTATE_180)]
    moving[0].save(HERE / "two.gif", save_all=True, append_images=moving[1:])
    expect("two.gif", picture, "the first of two frames")
    data = bytearray((HERE / "plain.gif").read_bytes())
    data[6:10] = struct.pack("<HH", 60, 44)
    at = data.index(b",\0\0\0\0" + struct.pack("<HH", 50, 41))
    data[at + 1:at + 5] = struct.pack("<HH", 7, 2)
    (HERE / "placed.gif").write_bytes(data)
    screen = np.full((44, 60, 3), 255, np.uint8)
    screen[2:43, 7:57] = picture
    expect("placed.gif", screen, "a frame that does not fill the screen")


def dicom_of(array, bits, interpretation="MONOCHROME2", signed=False, **elements):
    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.file_meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    ds.file_meta.MediaStorageSOPClassUID = uid.SecondaryCaptureImageStorage
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID = "1.2.3"
    ds.SOPClassUID = uid.SecondaryCaptureImageStorage
    ds.PatientName = "Nobody"
    ds.Rows, ds.Columns = array.shape[:2]
    ds.SamplesPerPixel = array.shape[2] if array.ndim == 3 else 1
    if ds.SamplesPerPixel == 3:
        ds.PlanarConfiguration = 0
    ds.PhotometricInterpretation = interpretation
    ds.BitsAllocated = 8 * array.dtype.itemsize
    ds.BitsStored = bits
    ds.HighBit = bits - 1
    ds.PixelRepresentation = int(signed)
    ds.PixelData = array.tobytes() + b"\0" * (array.nbytes % 2)
    for name, value in elements.items():
        setattr(ds, name, value)
    return ds


def linear(values, centre, width):
    return levels(values, centre - 0.5 - (width - 1) / 2, centre - 0.5 + (width - 1) / 2)


def dicom():
    grey = scene(1)[:, :, 0]
    colour = levels(scene(3), 0, 1)
    u8 = levels(grey, 0, 1)
    twelve = (grey * 4095).astype("<u2")
    ranged = levels(twelve, *percentiles(twelve))

    def save(name, ds, picture, why, tolerance=0, **how):
        ds.save_as(HERE / name, **(how or dict(enforce_file_format=True)))
        expect(name, picture, why, tolerance)

    def bare(ds, implicit, little):
        del ds.file_meta
        return dict(implicit_vr=implicit, little_endian=little)

    save("grey8.dcm", dicom_of(u8, 8), u8, "bytes stay as they are")
    save("inverted8.dcm", dicom_of(u8, 8, "MONOCHROME1"), 255 - u8, "MONOCHROME1")
    save("grey12.dcm", dicom_of(twelve, 12), ranged, "12 bits, no window", 1)
    save("inverted12.dcm", dicom_of(twelve, 12, "MONOCHROME1"), 255 - ranged, "MONOCHROME1, no window", 1)
    windowed = dicom_of(twelve, 12, WindowCenter=[1500, 40], WindowWidth=[2000, 400])
    save("window.dcm", windowed, linear(twelve, 1500, 2000), "the first window", 1)
    save("mad_window.dcm", dicom_of(twelve, 12, WindowCenter=90000, WindowWidth=10), ranged,
         "a window beside the values", 1)
    signed = (grey * 2000 - 1000).astype("<i2")
    save("signed.dcm", dicom_of(signed, 16, signed=True, RescaleSlope=2, RescaleIntercept=-24,
                                WindowCenter=100, WindowWidth=900),
         linear(signed * 2.0 - 24, 100, 900), "sign, slope, intercept", 1)
    save("falling.dcm", dicom_of(twelve, 12, RescaleSlope=-1, RescaleIntercept=4095), 255 - ranged,
         "a falling slope", 1)
    masked = twelve | 0xa000
    save("overlay_bits.dcm", dicom_of(masked, 12), ranged, "bits above those that count", 1)
    shifted = dicom_of((twelve << 4).astype("<u2"), 12)
    shifted.HighBit = 15
    save("high_bits.dcm", shifted, ranged, "the upper 12 bits", 1)
    padded = signed.copy()
    padded[:, :6] = -2000
    ds = dicom_of(padded, 16, signed=True)
    ds.add_new(0x00280120, "SS", -2000)
    save("padding.dcm", ds, levels(padded, *percentiles(padded[:, 6:])), "values that do not count", 1)
    wide = (grey * 3e6).astype("<u4")
    save("grey32.dcm", dicom_of(wide, 32), levels(wide.astype("f4"), *percentiles(wide)), "32 bits", 1)
    frames = dicom_of(u8, 8, NumberOfFrames=2)
    frames.PixelData = u8.tobytes() + (255 - u8).tobytes()
    save("frames.dcm", frames, u8, "the first of two frames")
    save("rgb.dcm", dicom_of(colour, 8, "RGB"), colour, "RGB")
    planes = dicom_of(colour, 8, "RGB", PlanarConfiguration=1)
    planes.PixelData = colour.transpose(2, 0, 1).tobytes() + b"\0"
    save("rgb_planes.dcm", planes, colour, "planes")
    even = colour[:, :22]
    ybr = convert_color_space(even, "RGB", "YBR_FULL")
    save("ybr.dcm", dicom_of(ybr, 8, "YBR_FULL"), convert_color_space(ybr, "YBR_FULL", "RGB"), "YBR", 1)
    halved = ybr.copy()
    halved[:, 1::2, 1:] = halved[:, ::2, 1:]
    ds = dicom_of(halved, 8, "YBR_FULL_422")
    ds.PixelData = np.stack([halved[:, ::2, 0], halved[:, 1::2, 0], halved[:, ::2, 1], halved[:, ::2, 2]], -1).tobytes()
    save("ybr_422.dcm", ds, convert_color_space(halved, "YBR_FULL", "RGB"), "YBR 4:2:2", 1)
    small = Image.fromarray(colour).quantize(16)
    table = np.array(small.getpalette()[:48], np.uint16).reshape(16, 3) * 257
    ds = dicom_of(np.asarray(small), 8, "PALETTE COLOR")
    for c, name in enumerate(("Red", "Green", "Blue")):
        setattr(ds, name + "PaletteColorLookupTableDescriptor", [16, 0, 16])
        setattr(ds, name + "PaletteColorLookupTableData", table[:, c].astype("<u2").tobytes())
    save("palette.dcm", ds, np.asarray(small.convert("RGB")), "a palette")

    # Ways to store elements. Sequences of unknown length hold elements that must not count.
    nested = Dataset()
    nested.Rows = 7
    nested.add_new(0x00880200, "SQ", [dicom_of(u8[:3, :4], 8)])
    nested[0x00880200].is_undefined_length = True
    nested[0x00880200].value[0].is_undefined_length_sequence_item = True
    for ending, implicit, little in (("implicit", True, True), ("big", False, False)):
        ds = dicom_of(twelve, 12)
        ds.ReferencedImageSequence = [nested]
        ds["ReferencedImageSequence"].is_undefined_length = True
        nested.is_undefined_length_sequence_item = True
        ds.file_meta.TransferSyntaxUID = uid.ImplicitVRLittleEndian if implicit else uid.ExplicitVRBigEndian
        if not little:
            ds.PixelData = twelve.astype(">u2").tobytes()
            ds["PixelData"].VR = "OW"
        save("%s.dcm" % ending, ds, ranged, "%s, sequences" % ending, 1)
    for ending, implicit in (("bare_explicit", False), ("bare_implicit", True)):
        ds = dicom_of(twelve, 12)
        save("%s.dcm" % ending, ds, ranged, "no preamble", 1, **bare(ds, implicit, True))

    # What is compressed.
    def compressed(name, ds, syntax, frames, picture, why, tolerance=0):
        ds.file_meta.TransferSyntaxUID = syntax
        ds.PixelData = encapsulate(frames, has_bot=len(frames) > 1)
        ds["PixelData"].is_undefined_length = True
        ds["PixelData"].VR = "OB"
        save(name, ds, picture, why, tolerance)

    for name, array, bits, kind, picture in (("rle8", u8, 8, "MONOCHROME2", u8),
                                             ("rle12", twelve, 12, "MONOCHROME2", ranged),
                                             ("rle_rgb", colour, 8, "RGB", colour)):
        ds = dicom_of(array, bits, kind)
        ds.compress(uid.RLELossless)
        save(name + ".dcm", ds, picture, "run lengths", 1 if bits > 8 else 0)
    for predictor in range(1, 8):
        data = imagecodecs.jpeg_encode(twelve, lossless=True, predictor=predictor, bitspersample=12)
        compressed("lossless%d.dcm" % predictor, dicom_of(twelve, 12), uid.JPEGLossless, [data], ranged,
                   "lossless JPEG, predictor %d" % predictor, 1)
    full = (grey * 65535).astype("<u2")
    compressed("lossless16.dcm", dicom_of(full, 16), uid.JPEGLosslessSV1, [imagecodecs.ljpeg_encode(full)],
               levels(full, *percentiles(full)), "lossless JPEG of 16 bits", 1)
    compressed("lossless_rgb.dcm", dicom_of(colour, 8, "RGB"), uid.JPEGLosslessSV1,
               [imagecodecs.jpeg_encode(colour, lossless=True, predictor=1, colorspace="RGB",
                                        outcolorspace="RGB")], colour, "lossless JPEG, colours")
    both = [imagecodecs.jpeg_encode(u8, lossless=True, predictor=1),
            imagecodecs.jpeg_encode(255 - u8, lossless=True, predictor=1)]
    compressed("lossless_frames.dcm", dicom_of(u8, 8, NumberOfFrames=2), uid.JPEGLosslessSV1, both, u8,
               "two frames")
    for name, array, bits, kind, picture in (("j2k8", u8, 8, "MONOCHROME2", u8),
                                             ("j2k12", twelve, 12, "MONOCHROME2", ranged),
                                             ("j2k_rgb", colour, 8, "RGB", colour)):
        data = imagecodecs.jpeg2k_encode(array, level=0, codecformat="j2k", mct=kind == "RGB",
                                         bitspersample=bits, reversible=True)
        compressed(name + ".dcm", dicom_of(array, bits, "YBR_RCT" if kind == "RGB" else kind),
                   uid.JPEG2000Lossless, [data], picture, "JPEG 2000", 1 if bits > 8 else 0)
    y, x = np.mgrid[0:66, 0:90]
    large = levels(np.sin(x / 60) * np.cos(y / 50), -1, 1)
    data = imagecodecs.jpeg2k_encode(large, level=0, codecformat="j2k", resolutions=5, reversible=True)
    compressed("j2k_large.dcm", dicom_of(large, 8), uid.JPEG2000Lossless, [data], large, "five resolutions")
    save("large8.dcm", dicom_of(large, 8), large, "the same without them")
    below = (grey * 2000 - 1000).astype("<i2")
    data = imagecodecs.jpeg2k_encode(below, level=0, codecformat="j2k", reversible=True)
    compressed("j2k_signed.dcm", dicom_of(below, 16, signed=True), uid.JPEG2000Lossless, [data],
               levels(below, *percentiles(below)), "JPEG 2000 with sign", 1)
    smooth = np.asarray(Image.fromarray(colour).resize((48, 40), Image.BICUBIC))
    out = io.BytesIO()
    Image.fromarray(smooth).save(out, "jpeg", quality=95)
    compressed("jpeg.dcm", dicom_of(smooth, 8, "YBR_FULL_422"), uid.JPEGBaseline8Bit, [out.getvalue()],
               np.asarray(Image.open(out).convert("RGB")), "baseline JPEG", 4)
    out = io.BytesIO()
    Image.fromarray(smooth).convert("L").save(out, "jpeg", quality=95)
    plain = np.asarray(Image.open(out))
    compressed("jpeg_inverted.dcm", dicom_of(plain, 8, "MONOCHROME1"), uid.JPEGBaseline8Bit,
               [out.getvalue()], 255 - plain, "baseline JPEG, MONOCHROME1", 2)
    data = imagecodecs.jpegls_encode(u8)
    ds = dicom_of(u8, 8)
    ds.file_meta.TransferSyntaxUID = uid.JPEGLSLossless
    ds.PixelData = encapsulate([data])
    ds["PixelData"].VR = "OB"
    ds.save_as(HERE / "jpegls_refused.dcm", enforce_file_format=True)


def write_list():
    with open(HERE / "pictures.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(("file", "expected", "tolerance", "needs", "why"))
        out.writerows(sorted(rows))


HERE.mkdir(exist_ok=True)
npy()
tiff()
png()
bmp()
gif()
dicom()
write_list()
