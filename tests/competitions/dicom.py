"""DICOM files with a compressed picture inside, and the lossless JPEG that some of them have.

No package writes lossless JPEG (process 14, selection value 1), so it is written here: the difference of each sample
to its left neighbour, its number of bits as a Huffman code, then those bits.
"""

import io
import struct

import numpy as np
from PIL import Image

JPEG_BASELINE = "1.2.840.10008.1.2.4.50"
JPEG_LOSSLESS = "1.2.840.10008.1.2.4.70"
JPEG_2000 = "1.2.840.10008.1.2.4.90"
LONG_KINDS = (b"OB", b"OW", b"SQ", b"UN", b"UT")
# How many codes have 1, 2, 3 ... bits. There are 17, one for each number of bits that a difference can have.
CODE_COUNTS = (0, 1, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)


def huffman_codes():
    """The codes of the categories 0..16 and their numbers of bits, in the canonical order that JPEG prescribes."""
    codes, lengths, code = [], [], 0
    for bits, count in enumerate(CODE_COUNTS, 1):
        for _ in range(count):
            codes.append(code)
            lengths.append(bits)
            code += 1
        code <<= 1
    return np.array(codes, dtype=np.uint64), np.array(lengths)


def differences(samples, precision):
    """What each sample is more than its prediction: the left neighbour; in the first column the one above."""
    values = samples.astype(np.int64)
    predicted = np.empty_like(values)
    predicted[:, 1:] = values[:, :-1]
    predicted[1:, 0] = values[:-1, 0]
    predicted[0, 0] = 1 << (precision - 1)
    return (values - predicted + 32768) % 65536 - 32768


def entropy_coded(difference):
    """The scan's bytes: for every difference its category's code, then as many bits as the category says."""
    codes, lengths = huffman_codes()
    size = np.abs(difference)
    category = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1))).astype(np.int64) + 1, 0)
    extra = np.where(category == 16, 0, category)
    low = np.where(difference < 0, difference + (1 << extra) - 1, difference) & ((1 << extra) - 1)
    word = (codes[category].astype(np.int64) << extra) | low
    total = lengths[category] + extra
    place = np.arange(int(total.max()) - 1, -1, -1)
    bits = (word[:, None] >> place) & 1
    stream = bits[place[None, :] < total[:, None]].astype(np.uint8)
    stream = np.concatenate([stream, np.ones(-len(stream) % 8, dtype=np.uint8)])
    return np.packbits(stream).tobytes().replace(b"\xff", b"\xff\x00")


def lossless_jpeg(samples, precision):
    """The bytes of a lossless JPEG of one channel, (height, width) of at most 16 bits."""
    height, width = samples.shape
    frame = struct.pack(">BHHB3B", precision, height, width, 1, 1, 0x11, 0)
    table = bytes([0x00, *CODE_COUNTS, *range(17)])
    scan = bytes([1, 1, 0x00, 1, 0, 0])
    parts = [b"\xff\xd8"]
    for marker, content in ((0xC3, frame), (0xC4, table), (0xDA, scan)):
        parts.append(struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content)
    parts += [entropy_coded(differences(samples, precision).ravel()), b"\xff\xd9"]
    return b"".join(parts)


def jpeg_2000(samples):
    """The bytes of a lossless JPEG 2000 codestream of one channel of 16 bits."""
    target = io.BytesIO()
    Image.fromarray(samples.astype(np.uint16)).save(target, "JPEG2000", no_jp2=True, irreversible=False)
    return target.getvalue()


def element(group, number, kind, value):
    """One element in explicit little endian. Text gets a blank, a UID a zero, where its length is odd."""
    if isinstance(value, str):
        value = value.encode()
    elif isinstance(value, int):
        value = struct.pack("<H" if kind == b"US" else "<I", value)
    if len(value) % 2:
        value += b"\0" if kind in (b"UI", b"OB") else b" "
    head = struct.pack("<HH", group, number) + kind
    if kind in LONG_KINDS:
        return head + b"\0\0" + struct.pack("<I", len(value)) + value
    return head + struct.pack("<H", len(value)) + value


def encapsulated(frame):
    """The pixel data of one compressed picture: an empty table of offsets, the picture, the end."""
    if len(frame) % 2:
        frame += b"\0"
    item = struct.pack("<HHI", 0xFFFE, 0xE000, 0) + struct.pack("<HHI", 0xFFFE, 0xE000, len(frame)) + frame
    end = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    return struct.pack("<HH", 0x7FE0, 0x0010) + b"OB\0\0" + b"\xff\xff\xff\xff" + item + end


def dicom(frame, syntax, size, channels, bits, photometric, more=()):
    """The bytes of a DICOM file around a compressed picture. Bits are (allocated, stored); `more` are elements above
    group 0x0028's first ones, in order."""
    width, height = size
    allocated, stored = bits
    meta = b"".join(
        (
            element(2, 0x0001, b"OB", b"\0\1"),
            element(2, 0x0002, b"UI", "1.2.840.10008.5.1.4.1.1.1.2"),
            element(2, 0x0003, b"UI", "1.2.826.0.1.3680043.8.498.1"),
            element(2, 0x0010, b"UI", syntax),
        )
    )
    body = [
        element(8, 0x0060, b"CS", "MG" if channels == 1 else "XC"),
        element(0x10, 0x0020, b"LO", "anonymous"),
        element(0x28, 0x0002, b"US", channels),
        element(0x28, 0x0004, b"CS", photometric),
    ]
    if channels > 1:
        body.append(element(0x28, 0x0006, b"US", 0))
    for number, value in (
        (0x10, height),
        (0x11, width),
        (0x100, allocated),
        (0x101, stored),
        (0x102, stored - 1),
        (0x103, 0),
    ):
        body.append(element(0x28, number, b"US", value))
    body += [element(*one) for one in more]
    return b"\0" * 128 + b"DICM" + element(2, 0, b"UL", len(meta)) + meta + b"".join(body) + encapsulated(frame)


def mammogram(samples, lossless, inverted):
    """A DICOM file of 16 bits: lossless JPEG with 12 of them in use, or JPEG 2000 with all. `samples` is bright where
    tissue is, from 0 to 1."""
    stored = 12 if lossless else 16
    top = (1 << stored) - 1
    values = np.rint(samples * top).astype(np.int64)
    values = (top - values if inverted else values).astype(np.uint16)
    frame = lossless_jpeg(values, stored) if lossless else jpeg_2000(values)
    more = (
        (0x28, 0x1050, b"DS", str(top // 2)),
        (0x28, 0x1051, b"DS", str(top)),
        (0x28, 0x1052, b"DS", "0"),
        (0x28, 0x1053, b"DS", "1"),
        (0x28, 0x1056, b"CS", "LINEAR"),
    )
    kind = "MONOCHROME1" if inverted else "MONOCHROME2"
    syntax = JPEG_LOSSLESS if lossless else JPEG_2000
    return dicom(frame, syntax, samples.shape[::-1], 1, (16, stored), kind, more)


def photograph(jpeg, size):
    """A DICOM file around a colour JPEG."""
    return dicom(jpeg, JPEG_BASELINE, size, 3, (8, 8), "YBR_FULL_422")
