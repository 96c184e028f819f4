"""zarr-python with its own codec pipelines, with that of zarrs, and with that of zcore: the same calls, the same files.

Each reads and writes arrays of zarr-python; the pipeline is the only difference. They take turns in a random order in
each round, on two cores with two threads each, and every read is compared with the data. `lost` counts what is lost
when threads write parts of one chunk.
"""
import random
import statistics
import tempfile
import threading
import time
from collections import namedtuple

import numpy as np

from benchmarks.harness import machine

Row = namedtuple("Row", ("workload", "times"))     # times: {pipeline: [seconds]}

_THREADS = 2

_PIPELINES = {
    "zcore": "zcore.zarr.ZcoreCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "batched": "zarr.core.codec_pipeline.BatchedCodecPipeline",
}
_LAYOUTS = {"16 KB": ((64, 64), None), "1 MB": ((512, 512), None), "shards": ((64, 64), (1024, 1024))}


def available():
    """Return the pipelines that are installed, by their short names."""
    import zarrs
    from zarr.core import codec_pipeline

    import zcore.zarr

    assert zarrs and zcore.zarr
    return {name: path for name, path in _PIPELINES.items()
            if name != "fused" or hasattr(codec_pipeline, "FusedCodecPipeline")}


def _workloads(data, points):
    """Return {name: (layout, function of a zarr array, what it returns or None)}."""
    middle = data.shape[0] // 2
    found = {}
    for layout in _LAYOUTS:
        found[f"read all, {layout}"] = layout, lambda z: z[...], data
        found[f"write all, {layout}"] = layout, lambda z: z.__setitem__(..., data), None
    part = np.s_[10:middle, 10:middle]
    rows = np.s_[middle:middle + 10]
    found["read rows, 16 KB"] = "16 KB", lambda z: z[rows], data[rows]
    found["read 50 tiles, 16 KB"] = "16 KB", lambda z: [z[i:i + 64, i:i + 64] for i in range(0, 1000, 20)], None
    found["write a part, 16 KB"] = "16 KB", lambda z: z.__setitem__(part, data[part]), None
    found["read 1000 points, 16 KB"] = "16 KB", lambda z: z.vindex[points], data[points]
    return found


def measure(repeats=7, quick=False):
    """Return a list of `Row`.

    Raises : ValueError, if a pipeline returns other elements than were written.
    """
    with machine.kept_to_cores(_THREADS):
        return _measured(repeats, quick)


def _measured(repeats, quick):
    import zarr
    from zarr.codecs import BloscCodec

    pipelines = available()
    # zarrs hands on what it cannot do.
    settings = {"threading.max_workers": _THREADS, "codec_pipeline.strict": False}
    n = 1024 if quick else 4096
    rng = np.random.default_rng(0)
    data = (np.arange(n * 2048).reshape(n, 2048) // 7 + rng.integers(0, 9, (n, 2048))).astype("i4")
    points = tuple(rng.integers(0, n, (2, 1000)) % 2048)
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top, zarr.config.set(settings):
        arrays = {}
        for layout, (chunks, shards) in _LAYOUTS.items():
            made = zarr.create_array(f"{top}/{layout}", shape=data.shape, chunks=chunks, shards=shards, dtype="i4",
                                     compressors=BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"))
            made[...] = data
            for name, path in pipelines.items():
                with zarr.config.set({"codec_pipeline.path": path}):
                    arrays[name, layout] = zarr.open_array(f"{top}/{layout}", mode="r+")
        for workload, (layout, work, expected) in _workloads(data, points).items():
            times = {name: [] for name in pipelines}
            for _ in range(repeats):
                for name in random.sample(list(pipelines), len(pipelines)):
                    with zarr.config.set({"codec_pipeline.path": pipelines[name]}):
                        start = time.perf_counter()
                        result = work(arrays[name, layout])
                        times[name].append(time.perf_counter() - start)
                    if expected is not None and not np.array_equal(result, expected):
                        raise ValueError(f"{workload}: {name} returned other elements")
            rows.append(Row(workload, times))
    return rows


def lost(n_threads=8, n=1_000_000, chunk=7001, piece=1000):
    """Return how many of `n` elements each pipeline loses when threads write pieces that share chunks."""
    import zarr

    found = {}
    for name, path in available().items():
        with tempfile.TemporaryDirectory(dir="/dev/shm") as place, zarr.config.set({"codec_pipeline.path": path}):
            array = zarr.create_array(place, shape=(n,), chunks=(chunk,), dtype="i8")

            def write(first, array=array):
                for start in range(first * piece, n, n_threads * piece):
                    array[start:start + piece] = np.arange(start, start + piece) + 1

            threads = [threading.Thread(target=write, args=(i,)) for i in range(n_threads)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            found[name] = int((array[...] != np.arange(n) + 1).sum())
    return found


def render(rows, losses):
    """Return the rows as Markdown: the median of each, and how many times zcore's that is."""
    names = list(rows[0].times)
    lines = ["| median, ms (times zcore's) | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for row in rows:
        own = statistics.median(row.times["zcore"])
        cells = [f"{statistics.median(row.times[name]) * 1e3:.2f} ({statistics.median(row.times[name]) / own:.2f})"
                 for name in names]
        lines.append(f"| {row.workload} | " + " | ".join(cells) + " |")
    lines.append("| elements lost of 10^6, 8 threads | " + " | ".join(str(losses[name]) for name in names) + " |")
    return "\n".join(lines)
