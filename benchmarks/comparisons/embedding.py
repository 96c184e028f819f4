"""Reads by `zcore.h`, as a program in C has them, beside a bare loop in C, HDF5's C library, Python and tensorstore.

All take turns in a random order in each round, in one process. HDF5 takes part where its headers are installed
(``pkg-config hdf5``).
"""
import ctypes
import os
import random
import shlex
import statistics
import subprocess
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import numpy as np

from benchmarks.harness import native

Row = namedtuple("Row", ("workload", "times"))     # times: {who: [seconds]}

_SOURCE = Path(__file__).with_name("embedding.c")


def _hdf5_flags():
    """Return what the compiler needs for HDF5; empty where it is missing."""
    for name in ("hdf5-serial", "hdf5"):
        try:
            done = subprocess.run(["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True,
                                  check=False)
        except OSError:
            return []
        if done.returncode == 0:
            return ["-DWITH_HDF5", *shlex.split(done.stdout)]
    return []


def library():
    """Return the loaded C code, and whether it has HDF5; ImportError where it cannot be compiled."""
    import zcore
    import zcore.embed

    hdf5 = _hdf5_flags()
    loaded = ctypes.PyDLL(native.compiled(_SOURCE, ["-fopenmp", f"-I{zcore.get_include()}"], hdf5))
    if loaded.import_zcore() != 0:
        raise ImportError("zcore.h does not find zcore")
    without_gil = ctypes.CDLL(loaded._name)
    starts, path = ctypes.POINTER(ctypes.c_int64), ctypes.c_char_p
    without_gil.by_zcore.argtypes = [ctypes.c_void_p, starts, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
    without_gil.by_bare_loop.argtypes = [path, ctypes.c_int64, starts, ctypes.c_int64, ctypes.c_int64, ctypes.c_int]
    without_gil.by_hdf5.argtypes = [path, starts, ctypes.c_int64, ctypes.c_int64]
    for name in ("by_zcore", "by_bare_loop", "by_hdf5"):
        getattr(without_gil, name).restype = ctypes.c_double
    return without_gil, bool(hdf5)


# Name, keywords of h5py, keywords of zcore.create_array.
_CODECS = (
    ("deflate", {"compression": "gzip", "compression_opts": 5, "shuffle": True},
     {"compressors": [{"id": "zlib", "level": 5}], "filters": [{"id": "shuffle", "elementsize": 4}]}),
    ("no codec", {}, {"compressors": None}),
    ("lz4", {"compression": 32004, "shuffle": True},
     {"compressors": [{"id": "lz4"}], "filters": [{"id": "shuffle", "elementsize": 4}]}),
)


def _lz4_of_hdf5():
    """Return whether HDF5 has a filter for LZ4, which the package hdf5plugin brings."""
    try:
        import hdf5plugin
    except ImportError:
        return False
    os.environ["HDF5_PLUGIN_PATH"] = hdf5plugin.PLUGIN_PATH
    return True


def _ways_of_chunks(loaded, has_hdf5, top, codec, data, starts_of, from_object, n):
    """Return {who: function that reads `n` whole chunks and returns seconds}, and the handles to close."""
    import h5py

    import zcore

    name, filters, keywords = codec
    chunk = 16384
    z = zcore.create_array(f"{top}/{name}", shape=data.shape, chunks=(chunk,), dtype="f4", zarr_format=2, **keywords)
    z[...] = data
    with h5py.File(f"{top}/{name}.h5", "w") as file:
        file.create_dataset("data", data=data, chunks=(chunk,), **filters)
    handles = [from_object(z, None)]
    starts, address = starts_of(chunk, chunk, len(data))
    ways = {"zcore.h": lambda: loaded.by_zcore(handles[0], address, len(starts), chunk, 1)}
    if name == "no codec":
        # Many chunks in a file, as HDF5 has them.
        shards = zcore.create_array(f"{top}/shards", shape=data.shape, chunks=(chunk,), shards=(chunk * 256,),
                                    dtype="f4", compressors=None, checksum=False)
        shards[...] = data
        handles.append(from_object(shards, None))
        ways["zcore.h, shards"] = lambda: loaded.by_zcore(handles[1], address, len(starts), chunk, 1)
    if has_hdf5:
        ways["HDF5 in C"] = lambda: loaded.by_hdf5(f"{top}/{name}.h5".encode(), address, len(starts), chunk)
    time.sleep(2.1)
    return ways, handles


def measure(repeats=9, n=2000, length=1 << 24):
    """Return a list of `Row`: seconds for `n` reads each, of arrays of `length` elements and of a quarter of them.

    Raises : ValueError, if a read fails.
    """
    import tensorstore

    import zcore
    import zcore.embed

    loaded, has_hdf5 = library()
    rng = np.random.default_rng(0)
    data = rng.random(length, "f4").round(2)
    rows = []

    def add(workload, ways):
        times = {who: [] for who in ways}
        for _ in range(repeats):
            for who in random.sample(list(ways), len(ways)):
                seconds = ways[who]()
                if seconds < 0:
                    raise ValueError(f"{workload}: {who} failed")
                times[who].append(seconds)
        rows.append(Row(workload, times))

    def timed(read):
        def run():
            begun = time.perf_counter()
            for start in starts:
                read(int(start))
            return time.perf_counter() - begun
        return run

    def starts_of(count, chunk, size):
        chosen = rng.integers(0, size // chunk, n) * chunk + (rng.integers(0, chunk - count, n) if count < chunk else 0)
        return chosen, chosen.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))

    from_object = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        zcore.embed.addresses["zcore_from_object"])
    close = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(zcore.embed.addresses["zcore_close"])
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top:
        chunk = 4096
        small = zcore.create_array(f"{top}/small", shape=(length // 4,), chunks=(chunk,), dtype="f4", zarr_format=2)
        small[...] = data[:length // 4]
        peer = tensorstore.open({"driver": "zarr", "kvstore": {"driver": "file", "path": f"{top}/small"}}).result()
        place = f"{top}/small".encode()
        handle = from_object(small, None)
        time.sleep(2.1)     # a younger document is looked at more often
        starts, address = starts_of(10, chunk, length // 4)
        add("10 elements of a chunk of 16 KB", {
            "zcore.h": lambda: loaded.by_zcore(handle, address, n, 10, 1),
            "bare loop": lambda: loaded.by_bare_loop(place, chunk, address, n, 10, 1),
            "zcore, Python": timed(lambda start: small[start:start + 10]),
            "tensorstore": timed(lambda start: peer[start:start + 10].read().result()),
        })
        add("the same, 2 threads", {
            "zcore.h": lambda: loaded.by_zcore(handle, address, n, 10, 2),
            "bare loop": lambda: loaded.by_bare_loop(place, chunk, address, n, 10, 2),
        })
        close(handle)
        for codec in _CODECS if _lz4_of_hdf5() else _CODECS[:2]:
            ways, done = _ways_of_chunks(loaded, has_hdf5, top, codec, data, starts_of, from_object, n)
            add(f"a chunk of 64 KB, {codec[0]}", ways)
            for handle in done:
                close(handle)
    return rows


def render(rows, n=2000):
    """Return the rows as Markdown: microseconds of one read, the median and (the minimum), and how often zcore.h's."""
    lines = ["| workload | | one read, us | times zcore.h's |", "|---|---|---:|---:|"]
    for row in rows:
        own = statistics.median(row.times["zcore.h"])
        for who, times in row.times.items():
            lines.append(f"| {row.workload} | {who} | {statistics.median(times) / n * 1e6:.2f} "
                         f"({min(times) / n * 1e6:.2f}) | {statistics.median(times) / own:.2f} |")
    return "\n".join(lines)
