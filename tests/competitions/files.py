"""The files of a data folder: tables, JSON, archives, BSON. A Folder knows the seed, the scale and the two places."""

import csv
import json
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from pictures import encoded

SCALES = {"tiny": 0.2, "small": 1.0, "large": 5.0}
KINDS = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG", ".tif": "TIFF"}


def factor_of(text):
    """What --scale says: a name of SCALES or a number above zero."""
    factor = SCALES[text] if text in SCALES else float(text)
    if not 0 < factor <= 1000:
        raise ValueError(text)
    return factor


class Folder:
    """A data folder that is being made, and the file of its answers beside it."""

    def __init__(self, path, answers, seed, factor):
        self.path = Path(path)
        self.answers_path = Path(answers)
        self.rng = np.random.default_rng(seed)
        self.factor = factor
        self.path.mkdir(parents=True)

    def count(self, number, least=1):
        """A number of things, scaled. Below `least` there would be too few to tell anything."""
        return max(least, round(number * self.factor))

    def file(self, name):
        """The path of a file, whose folders exist."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, name, content):
        """Writes bytes or text."""
        self.file(name).write_bytes(content.encode() if isinstance(content, str) else content)

    def picture(self, name, pixels, **options):
        """Writes a picture in the format that its name says."""
        self.write(name, encoded(pixels, KINDS[Path(name).suffix.lower()], **options))

    def table(self, name, header, rows, delimiter=","):
        """Writes a table."""
        write_table(self.file(name), header, rows, delimiter)

    def answers(self, header, rows):
        """Writes the answers that the data folder withholds."""
        write_table(self.answers_path, header, rows, ",")

    def json(self, name, value, **options):
        """Writes a JSON file."""
        self.write(name, json.dumps(value, **options))

    def shuffled(self, things):
        """The things in random order."""
        return [things[i] for i in self.rng.permutation(len(things))]

    def hex(self, digits):
        """A random name of hexadecimal digits."""
        return self.rng.bytes((digits + 1) // 2).hex()[:digits]

    def uuid(self):
        """A random name as cameras' pictures have: 8-4-4-4-12 hexadecimal digits."""
        text = self.hex(32)
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def numbers(self, count, below):
        """Different whole numbers, in random order."""
        return [int(n) for n in self.rng.choice(below, count, replace=False)]

    def split(self, groups, test_share):
        """Divides lists of things: from each list its share is for the test, none from a list of one or two. Returns
        the two parts in random order."""
        train, test = [], []
        for group in groups:
            held = round(len(group) * test_share) if len(group) > 2 else 0
            test += group[:held]
            train += group[held:]
        return self.shuffled(train), self.shuffled(test)


def write_table(path, header, rows, delimiter):
    """Writes a table with line breaks as Unix has them."""
    with open(path, "w", newline="", encoding="utf-8") as target:
        writer = csv.writer(target, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def zip_files(path, files):
    """Writes a zip archive of (name, bytes) pairs. Pictures are stored as they are, as zip programs decide too."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files:
            archive.writestr(name, content)


def tar_files(path, files):
    """Writes a plain tar archive of (name, bytes) pairs, whatever the path's ending says."""
    import io

    with tarfile.open(path, "w") as archive:
        for name, content in files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def seven_zip(path, name, content):
    """Writes a 7z archive of one file, with the fastest LZMA2."""
    import py7zr

    with py7zr.SevenZipFile(path, "w", filters=[{"id": py7zr.FILTER_LZMA2, "preset": 1}]) as archive:
        archive.writestr(content, name)


def bson(document):
    """The bytes of a BSON document: whole numbers, bytes, lists and documents."""
    body = b"".join(bson_element(str(name).encode(), value) for name, value in document.items())
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def bson_element(name, value):
    """One field of a BSON document: its type, its name, its value."""
    if isinstance(value, int):
        return b"\x10" + name + b"\0" + struct.pack("<i", value)
    if isinstance(value, bytes):
        return b"\x05" + name + b"\0" + struct.pack("<i", len(value)) + b"\0" + value
    if isinstance(value, list):
        return b"\x04" + name + b"\0" + bson(dict(enumerate(value)))
    return b"\x03" + name + b"\0" + bson(value)
