#!/usr/bin/env python3
"""Stoker's loader from Python, with nothing but ctypes: shows a few batches and how fast they come.

    feed.py DATA_DIR [NAME=VALUE ...]

NAME=VALUE are options of the loader, as in `stoker bench loader --help`: batch=64 img-size=160. The
library is found as libstoker.so, or where STOKER_LIBRARY says.
"""
import ctypes as c
import os
import sys
import time


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("line", c.c_int), ("file", c.c_char_p),
                ("message", c.c_char * 1024)]


class Batch(c.Structure):
    _fields_ = [("images", c.POINTER(c.c_uint8)), ("labels", c.POINTER(c.c_int)),
                ("samples", c.POINTER(c.c_size_t)), ("bad", c.POINTER(c.c_bool)),
                ("count", c.c_size_t), ("epoch", c.c_uint64), ("index", c.c_size_t),
                ("targets", c.POINTER(c.c_float)), ("features", c.POINTER(c.c_float))]


class Info(c.Structure):
    _fields_ = [("size", c.c_size_t), ("samples", c.c_size_t), ("batches_per_epoch", c.c_size_t),
                ("batch", c.c_size_t), ("img_size", c.c_int), ("classes", c.c_int),
                ("channels", c.c_int)]


class Loader:
    """Iterates over batches; each is (images, labels) and valid until the next one is asked for."""

    def __init__(self, data, **options):
        self.lib = c.CDLL(os.environ.get("STOKER_LIBRARY", "libstoker.so"))
        self.lib.stk_loader_path.restype = c.c_char_p
        self.lib.stk_loader_class.restype = c.c_char_p
        self.handle = c.c_void_p()
        error, settings = Error(), c.c_void_p()
        try:
            self.check(self.lib.stk_options_for_loader(c.byref(settings), c.byref(error)), error)
            for name, value in {"data": data, **options}.items():
                self.check(self.lib.stk_options_set(settings, name.encode(), str(value).encode(),
                                                    c.byref(error)), error)
            self.check(self.lib.stk_loader_open(c.byref(self.handle), settings, c.byref(error)),
                       error)
        finally:
            self.lib.stk_options_free(settings)
        self.info = Info(size=c.sizeof(Info))
        self.check(self.lib.stk_loader_describe(self.handle, c.byref(self.info), c.byref(error)),
                   error)

    @staticmethod
    def check(status, error):
        if status != 0:
            raise RuntimeError(error.message.decode())

    def __iter__(self):
        batch, error = c.POINTER(Batch)(), Error()
        while True:
            self.check(self.lib.stk_loader_next(self.handle, c.byref(batch), c.byref(error)), error)
            if not batch:
                return
            b = batch.contents
            bytes_each = self.info.img_size ** 2 * 3
            # numpy.ctypeslib.as_array(b.images, (b.count, size, size, 3)) makes an array of this.
            images = c.cast(b.images, c.POINTER(c.c_uint8 * (b.count * bytes_each))).contents
            try:
                yield images, [b.labels[i] for i in range(b.count)]
            finally:  # also when the loop over the batches is left early
                self.lib.stk_loader_release(self.handle, batch)

    def class_name(self, label):
        return self.lib.stk_loader_class(self.handle, label).decode()

    def close(self):
        self.lib.stk_loader_close(self.handle)
        self.handle = c.c_void_p()


def main():
    if len(sys.argv) < 2 or any("=" not in setting for setting in sys.argv[2:]):
        sys.exit(__doc__)
    options = dict(setting.split("=", 1) for setting in sys.argv[2:])
    loader = Loader(sys.argv[1], **{"batch": 32, "img-size": 64, "epochs": 1, **options})
    start, count = time.monotonic(), 0
    for images, labels in loader:
        count += len(labels)
        names = sorted({loader.class_name(label) for label in labels if label >= 0})
        print(f"{len(labels)} pictures, {len(images)} bytes, classes: {' '.join(names)}")
    loader.close()
    print(f"{count} pictures in {time.monotonic() - start:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
