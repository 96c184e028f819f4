"""Frames that come one by one, stored in a growing array: writers that buffer, and plain appends.

256 frames of 256 x 256 uint16 to files in memory. All get the same frames, one in a call; the libraries take turns in a
random order. What was stored is compared with the frames. tensorstore keeps all of it in one transaction, and its array
has its final shape from the beginning; acquire-zarr makes a group around the array.
"""
import os
import random
import shutil
import statistics
import tempfile
import time
from collections import namedtuple

import numpy as np

import zcore

# `times`: {library: [seconds]}
Row = namedtuple("Row", ("workload", "times"))

# Of chunks and shards, in frames and pixels.
LAYOUTS = {"a frame a chunk": ((1, 256, 256), None), "chunks of 32 frames": ((32, 256, 256), None),
           "shards of 64 frames, chunks of 16 x 64 x 64": ((16, 64, 64), (64, 256, 256))}
ENCODINGS = {"raw": None, "blosc-lz4": "lz4", "zstd": "zstd"}


def _chain(encoding):
    if encoding == "lz4":
        return [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2,
                                                    "blocksize": 0}}]
    return [] if encoding is None else [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]


def _made(place, frames, layout, encoding):
    chunks, shards = layout
    return zcore.create_array(place, shape=(0, *frames.shape[1:]), dtype=frames.dtype, chunks=chunks, shards=shards,
                              compressors=_chain(encoding))


def _zcore_writer(place, frames, layout, encoding):
    array = _made(place, frames, layout, encoding)

    def store():
        with array.writer() as writer:
            for frame in frames:
                writer.append(frame)
    return store


def _zcore_append(place, frames, layout, encoding):
    array = _made(place, frames, layout, encoding)

    def store():
        for frame in frames:
            array.append(frame[None])
    return store


def _zarr(place, frames, layout, encoding):
    import zarr

    _made(place, frames, layout, encoding)
    array = zarr.open_array(place, mode="r+")

    def store():
        for frame in frames:
            array.append(frame[None])
    return store


def _tensorstore(place, frames, layout, encoding):
    import tensorstore

    _made(place, frames, layout, encoding).resize(frames.shape)
    array = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": place,
                                                             "file_io_sync": False}}).result()

    def store():
        transaction = tensorstore.Transaction()
        in_transaction = array.with_transaction(transaction)
        for i, frame in enumerate(frames):
            in_transaction[i].write(frame).result()
        transaction.commit_async().result()
    return store


def _acquire(place, frames, layout, encoding):
    import acquire_zarr as aqz

    chunks, shards = layout
    dimensions = [aqz.Dimension(
        name=name, kind=kind, array_size_px=length, chunk_size_px=chunk,
        shard_size_chunks=1 if shards is None else shards[d] // chunk)
        for d, (name, kind, length, chunk) in enumerate(zip(
            "tyx", (aqz.DimensionType.TIME, aqz.DimensionType.SPACE, aqz.DimensionType.SPACE),
            (0, *frames.shape[1:]), chunks, strict=True))]
    settings = aqz.ArraySettings(dimensions=dimensions, data_type=aqz.DataType.UINT16)
    if encoding is not None:
        settings.compression = aqz.CompressionSettings(
            compressor=aqz.Compressor.BLOSC1 if encoding == "lz4" else aqz.Compressor.ZSTD,
            codec=aqz.CompressionCodec.BLOSC_LZ4 if encoding == "lz4" else aqz.CompressionCodec.ZSTD,
            level=5 if encoding == "lz4" else 1, shuffle=1 if encoding == "lz4" else 0)
    stream = aqz.ZarrStream(aqz.StreamSettings(arrays=[settings], store_path=place, overwrite=True))

    def store():
        for frame in frames:
            stream.append(frame)
        stream.close()
    return store


LIBRARIES = {"zcore, writer": _zcore_writer, "zcore, append": _zcore_append, "tensorstore": _tensorstore,
             "acquire-zarr": _acquire, "zarr": _zarr}
_MODULES = {"tensorstore": "tensorstore", "acquire-zarr": "acquire_zarr", "zarr": "zarr"}


def _is_there(library):
    from importlib.util import find_spec

    return library not in _MODULES or find_spec(_MODULES[library]) is not None


def measure(repeats=9, quick=False):
    """Return a list of `Row`.

    Raises : ValueError, if a library has stored other values.
    """
    rows = []
    frames = np.random.default_rng(0).integers(0, 4000, (64 if quick else 256, 256, 256), "u2")
    names = [name for name in LIBRARIES if _is_there(name)]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as top:
        for encoding in ENCODINGS:
            for layout in LAYOUTS:
                times = {name: [] for name in names}
                for i in range(repeats):
                    for name in random.sample(names, len(names)):
                        if i % 4 and name in ("zarr", "zcore, append"):
                            continue     # these take seconds
                        place = f"{top}/{len(rows)}.{i}.{name}"
                        store = LIBRARIES[name](place, frames, LAYOUTS[layout], ENCODINGS[encoding])
                        start = time.perf_counter()
                        store()
                        times[name].append(time.perf_counter() - start)
                        _check(place, frames, name)
                rows.append(Row(f"{encoding}, {layout}", times))
    return rows


def _check(place, frames, name):
    node = zcore.open(place)
    array = next(iter(dict(node.arrays()).values())) if isinstance(node, zcore.Group) else node
    if not np.array_equal(array[...], frames):
        raise ValueError(f"{name} has stored other values")
    shutil.rmtree(place)


def render(rows):
    """Return the rows as a table of Markdown: min (median) in ms, and how often faster zcore's writer is."""
    names = list(rows[0].times)
    lines = ["| frames | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for workload, times in rows:
        best = min(times["zcore, writer"])
        cells = [f"{min(taken) * 1e3:.0f} ({statistics.median(taken) * 1e3:.0f})"
                 + ("" if name == "zcore, writer" else f", {min(taken) / best:.1f} x") for name, taken in times.items()]
        lines.append(f"| {workload} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
