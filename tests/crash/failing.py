"""Run in a process of its own with `failing.c` preloaded: a call, again and again, each time with another failure.

Prints, as JSON, what each verb met that it should not have, and how many failures there were in all.
"""
import ctypes
import errno
import gc
import json
import os
import shutil
import sys

import numpy as np

import zcore

library, base, kind, names = ctypes.CDLL(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
library.disarm.restype = ctypes.c_long
library.arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int]
SYSTEM, MEMORY, SHORT = range(3)
RAW = np.arange(8 * 256.0).reshape(8, 256)


def create(path, cname="lz4", shuffle="shuffle", **options):
    compressors = zcore.codecs.BloscCodec(cname=cname, shuffle=shuffle)
    return zcore.create_array(path, shape=(16, 8), chunks=(4, 8), dtype="f8", fill_value=-1, overwrite=True,
                              compressors=compressors, **options)


def prepare():
    global synced
    shutil.rmtree(base, ignore_errors=True)
    zcore.create_group(base + "/g")
    create(base + "/g/x")[...] = np.arange(128).reshape(16, 8)
    synced = zcore.DirectoryStore(base + "/g/x", fsync=True)
    create(base + "/g/shards", shards=(8, 8))[...] = np.arange(128).reshape(16, 8)
    # Rows of a chunk that are long enough to be read into place.
    zcore.create_array(base + "/g/raw", shape=RAW.shape, chunks=(4, 128), dtype="f8", compressors=None,
                       checksum=False)[...] = RAW
    with zcore.ZipStore(base + "/old.zip", mode="w") as store:
        create(store)[...] = np.arange(128).reshape(16, 8)
    zcore.asdf.write(base + "/old.asdf", {"a": np.arange(4)})


def opened(name="x"):
    return zcore.open(f"{base}/g/{name}", mode="r+")


def read_raw():
    assert (opened("raw")[...] == RAW).all()


def write_zip():
    with zcore.ZipStore(base + "/new.zip", mode="w") as store:
        create(store)[...] = 5


VERBS = {
    "read": lambda: opened()[...],
    "read_raw": read_raw,
    "write": lambda: opened().__setitem__(..., 6),
    "merge": lambda: opened().__setitem__((1, 1), 6),
    "fill": lambda: opened().__setitem__(..., -1),
    "fsync": lambda: zcore.open(synced, mode="r+").__setitem__(..., 9),
    "read_shards": lambda: opened("shards")[3:9, 1:5],
    "write_shards": lambda: opened("shards").__setitem__((slice(3, 9), slice(1, 5)), 6),
    "shrink": lambda: opened().resize((5, 3)),
    "grow": lambda: opened().resize((20, 9)),
    "append": lambda: opened().append(np.ones((3, 8))),
    "attributes": lambda: opened().attrs.__setitem__("a", 1),
    "create": lambda: create(base + "/g/new/one"),
    "create_beside": lambda: zcore.open_group(base + "/g", "r+").create_array("y", shape=4, dtype="i4"),
    "overwrite": lambda: create(base + "/g/x"),
    "delete": lambda: zcore.open_group(base + "/g", mode="r+").__delitem__("x"),
    "move": lambda: zcore.open_group(base + "/g", mode="r+").move("x", "y"),
    "members": lambda: list(zcore.open_group(base + "/g").members(None)),
    "consolidate": lambda: zcore.consolidate_metadata(base + "/g"),
    "verify": lambda: zcore.verify(base + "/g"),
    "copy": lambda: zcore.copy(base + "/g/x", base + "/g/copied"),
    "read_zip": lambda: zcore.open(zcore.ZipStore(base + "/old.zip"))[...],
    "write_zip": write_zip,
    "read_asdf": lambda: zcore.asdf.open(base + "/old.asdf").tree["a"].read(),
    "write_asdf": lambda: zcore.asdf.write(base + "/new.asdf", {"a": np.arange(4)}),
}


def outcome(verb):
    """Return the error of a verb, or None."""
    try:
        verb()
    except Exception as error:
        return error
    return None


def is_named(error):
    """Whether an error is one of zcore's, and names a path, a key or an object."""
    return isinstance(error, zcore.ZcoreError) and any(word in str(error) for word in (base, ".zip", "/0", "zarr.json"))


def failures(name, number, is_fine):
    """Let each system call of a verb fail; returns what came that is not fine, and how many failed."""
    found, n = [], 0
    while True:
        prepare()
        gc.collect()
        library.arm(SYSTEM, n, number)
        error = outcome(VERBS[name])
        n_calls = library.disarm()
        if error is not None and not is_fine(error):
            found.append(f"{name} {n}: {error!r}")
        if n_calls <= n:
            return found, n
        n += 1


def without_memory(name):
    """Let each of the kernel's requests for memory fail; returns what came that is no MemoryError, and how many."""
    verb, cname, shuffle, threads = name.split(",")
    values = np.random.default_rng(0).integers(0, 50, 1 << 16).astype("f8")
    alone = {"gzip": zcore.codecs.GzipCodec(), "only zstd": zcore.codecs.ZstdCodec()}
    compressors = alone.get(cname) or zcore.codecs.BloscCodec(cname=cname, shuffle=shuffle)
    array = zcore.create_array(base, shape=values.shape, chunks=values.shape, dtype="f8", compressors=compressors,
                               overwrite=True)
    array[...] = values
    array = zcore.open(base, mode="r+", threads=int(threads))
    assert (array[...] == values).all()
    found, n = [], 0
    while True:
        library.arm(MEMORY, n, errno.ENOMEM)
        error = outcome((lambda: array[...]) if verb == "read" else (lambda: array.__setitem__(..., values)))
        n_calls = library.disarm()
        # Of the document, which a store reads, it is an error of the store.
        if error is not None and not (isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM):
            found.append(f"{name} {n}: {error!r}")
        if not (array[...] == values).all():
            found.append(f"{name} {n}: other values")
        if n_calls <= n:
            return found, n
        n += 1


def short(name):
    """Let each read and write move one byte at a time; returns what came."""
    prepare()
    library.arm(SHORT, 1 << 40, 0)
    error = outcome(VERBS[name])
    n_calls = library.disarm()
    return ([] if error is None else [f"{name}: {error!r}"]), n_calls


if __name__ == "__main__":
    results = []
    for name in names:
        if kind == "memory":
            results.append(without_memory(name))
            continue
        prepare()
        assert (error := outcome(VERBS[name])) is None, (name, error)
        n_open = len(os.listdir("/proc/self/fd"))
        if kind == "short":
            results.append(short(name))
        elif kind == "again":
            results.append(failures(name, errno.EINTR, lambda error: False))
        else:
            results.append(failures(name, getattr(errno, kind), is_named))
        gc.collect()
        if len(os.listdir("/proc/self/fd")) > n_open:
            results[-1][0].append(f"{name}: a descriptor is left open")
    # Some chains run in Python, where nothing is asked for here.
    least = (max if kind == "memory" else min)(n for _, n in results)
    print(json.dumps([sum([found for found, _ in results], []), least]))
