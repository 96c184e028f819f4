"""Run in a process of its own with `failing.c` preloaded: each of the kernel's requests for memory fails once.

`memory.py library folder verb,cname,shuffle,threads …` reads or writes one large chunk of blosc, gzip or zstd, or with
the verb "columns" writes two chunks that lie scattered in the array. It prints as JSON what came that is no error of
memory, and how many requests failed.
"""
import errno
import json
import sys

import numpy as np

import zcore
from tests.crash.failing.rounds import Library

VALUES = np.random.default_rng(0).integers(0, 50, (1 << 8, 1 << 8)).astype("f8")
ALONE = {"gzip": zcore.codecs.GzipCodec(), "only zstd": zcore.codecs.ZstdCodec()}


def failures(library, base, name):
    """Return what came that is no error of memory, and how many requests failed."""
    verb, cname, shuffle, threads = name.split(",")
    compressors = ALONE.get(cname) or zcore.codecs.BloscCodec(cname=cname, clevel=2, shuffle=shuffle)
    zcore.create_array(base, data=VALUES, chunks=(256, 128 if verb == "columns" else 256), compressors=compressors,
                       overwrite=True)
    array = zcore.open(base, mode="r+", threads=int(threads))
    assert (array[...] == VALUES).all()
    found, n, n_calls = [], 0, 1
    while n_calls > n:
        change = (lambda: array[...]) if verb == "read" else (lambda: array.__setitem__(..., VALUES))
        _, error, n_calls = library.run(change, "MEMORY", n, errno.ENOMEM)
        # Of the document, which a store reads, it is an error of the store.
        if error is not None and not (isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM):
            found.append(f"{name} {n}: {error!r}")
        if not (array[...] == VALUES).all():
            found.append(f"{name} {n}: other values")
        n += 1
    return found, n - 1


def main():
    library = Library(sys.argv[1])
    results = [failures(library, sys.argv[2], name) for name in sys.argv[3:]]
    # Some chains run in Python, where nothing is asked for here.
    print(json.dumps([sum([found for found, _ in results], []), sum(n for _, n in results)]))


if __name__ == "__main__":
    main()
