"""Workloads that others have published, with their parameters: arrays of uint16 in Zarr v3, made by zarr-python.

``heftie`` is the benchmark of the HEFTIE project for images of three dimensions: a volume is written and read with
each compressor, level and shuffle. ``zarr_benchmarks`` is the one by which zarrs is presented: all at once, chunks by
a number of callers at a time, and a round trip, uncompressed, compressed and with shards. Their data are not here: one
volume is made with the statistics of an image, the other by the formula that its authors give.
What differs: arrays are created before the clock starts, files are in the page cache, and the libraries take turns.
"""
import functools
import itertools
import math
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.harness import runner
from benchmarks.harness.timing import timed
from benchmarks.inputs.encodings import V3
from benchmarks.suites.workloads import FASTEST, Target

LIBRARIES = ("zcore", "zarr", "zarr_fused", "zarrs", "tensorstore")
LEVELS = range(1, 10)
CALLERS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes
    ----------
    name, title : str
    kind : {"read", "write", "chunks", "round_trip"}
        ``chunks`` reads each object by a call of its own.
    image : str
        Of `IMAGES`.
    shape, chunks : tuple of int
    shards : tuple of int or None
    codec : dict or None
        Of the document.
    callers : int
        Threads that call the library at a time.
    targets : tuple of Target
    """

    name: str
    title: str
    kind: str
    image: str
    shape: tuple
    chunks: tuple
    shards: tuple | None = None
    codec: dict | None = None
    callers: int = 1
    targets: tuple = ()
    blocked = False
    samples_per_repeat = 1
    max_repeats = None


def _blosc(cname, level, shuffle):
    return {"name": "blosc", "configuration": {"cname": cname, "clevel": level, "shuffle": shuffle, "typesize": 2,
                                               "blocksize": 0}}


def _heftie():
    codecs = {f"blosc-{cname} {level}; {shuffle}": _blosc(cname, level, shuffle)
              for cname in ("lz4", "zstd") for shuffle in ("noshuffle", "shuffle") for level in LEVELS}
    codecs |= {f"zstd {level}": {"name": "zstd", "configuration": {"level": level, "checksum": False}}
               for level in LEVELS}
    codecs |= {f"gzip {level}": {"name": "gzip", "configuration": {"level": level}} for level in LEVELS}
    return tuple(Case(f"{kind} {name}", "a volume", kind, "volume", (806, 629, 629), (128, 128, 128),
                      codec=codec, targets=(Target(FASTEST, at_least=1.0 if kind == "read" else 0.95),))
                 for name, codec in codecs.items() for kind in ("read", "write"))


def _zarr_benchmarks():
    blosclz = _blosc("blosclz", 9, "bitshuffle")
    layouts = {"uncompressed": ((256,) * 3, None, None), "compressed": ((256,) * 3, None, blosclz),
               "compressed; shards": ((32,) * 3, (256,) * 3, blosclz)}
    for layout, (chunks, shards, codec) in layouts.items():
        case = Case("", "", "read", "formula", (1024, 2048, 2048), chunks, shards, codec,
                    targets=(Target(FASTEST, at_least=1.0),))
        yield replace(case, name=f"read all; {layout}", title="all at once")
        for callers in CALLERS:
            yield replace(case, name=f"read objects by {callers}; {layout}", kind="chunks", callers=callers,
                          title="each object by a call of its own")
        yield replace(case, name=f"round trip; {layout}", title="read all and write it", kind="round_trip")


SUITES = {"heftie": _heftie(), "zarr_benchmarks": tuple(_zarr_benchmarks())}


def _volume(shape):
    """An image of a scanner: a smooth body with edges, and noise; blosc-zstd with shuffle makes half of it."""
    rng = np.random.default_rng(0)
    out = np.empty(shape, "u2")
    y, x = np.ogrid[:shape[1], :shape[2]]
    for z in range(shape[0]):
        waves = np.sin(x / 37 + z / 53) * np.cos(y / 41 - z / 67) + 0.4 * np.sin(x / 9) * np.sin(y / 11 + z / 13)
        plane = 21000 + 2500 * (waves > 0.2) + 600 * waves
        plane = plane + 80 * rng.standard_normal(shape[1:], np.float32)
        out[z] = plane
    return out


def _formula(shape):
    """x + y² / 32 + z³ modulo 65536, as LDeakin/zarr_benchmarks, scripts/generate_benchmark_array.py, defines it."""
    z, y, x = (np.arange(length, dtype=np.float64) for length in shape)
    out = np.empty(shape, "u2")
    for plane, height in zip(out, z**3, strict=True):
        plane[...] = (x + y[:, None]**2 / 32 + height) % 65536
    return out


IMAGES = {"volume": _volume, "formula": _formula}


def scaled(case, planes=None, quick=False):
    """Return the case with fewer planes, or with so few elements that its times mean nothing.

    Without `planes`, their number is halved until five copies of the image fit into memory: it, its files, what is
    read, and what a round trip writes.
    """
    if quick:
        return replace(case, shape=(40, 30, 20), chunks=tuple(min(c, 8) for c in case.chunks),
                       shards=case.shards and (16,) * 3)
    if planes is not None:
        # The other two lengths of the formula's image are twice the first.
        others = case.shape[1:] if case.image == "volume" else (2 * planes,) * 2
        return replace(case, shape=(planes, *others))
    if 5 * 2 * math.prod(case.shape) > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        return scaled(scaled(case, case.shape[0] // 2))
    return case


def run(cases, names, options, planes=None, report=None):
    """Measure cases and return one run, ready for JSON, as `runner.run` does."""
    with runner.session([name for name in names if name in LIBRARIES], options, report) as (bench, libraries, facts):
        image = functools.lru_cache(maxsize=1)(lambda name, shape: IMAGES[name](shape))
        for case in cases:
            case = scaled(case, planes, options.quick)
            facts["workloads"].append(_measure(bench, case, libraries, image(case.image, case.shape)))
        return facts


def _measure(bench, case, libraries, source):
    top = os.path.join(bench.places["tmpfs"], "published")
    try:
        _create(f"{top}/source", case)[...] = source
        stored_nbytes = sum(entry.stat().st_size for folder, _, _ in os.walk(top)
                            for entry in os.scandir(folder) if entry.is_file())
        taken = runner.take(bench, case, libraries, functools.partial(_KINDS[case.kind], case, top, source))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    objects = case.shards or case.chunks
    return {"name": case.name, "title": case.title, "kind": case.kind, "shape": case.shape, "chunks": case.chunks,
            "shards": case.shards, "codec": case.codec, "callers": case.callers, "unit": "seconds", "cannot": {},
            "nbytes": source.nbytes, "chunk_nbytes": 2 * int(np.prod(objects)), "stored_nbytes": stored_nbytes,
            "targets": [vars(target) for target in case.targets]} | taken.facts()


def _create(path, case):
    import zarr

    zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"})
    return zarr.create_array(path, shape=case.shape, chunks=case.chunks, shards=case.shards, dtype="u2", fill_value=0,
                             compressors=case.codec, zarr_format=3)


def _checked(result, source):
    if not (isinstance(result, np.ndarray) and result.dtype == source.dtype and np.array_equal(result, source)):
        raise runner.WrongResult("what was read differs from what was written")


def _read(case, top, source, name, library, i):
    library.activate()
    elapsed, result = timed(lambda: library.read(library.open(f"{top}/source", V3)))
    _checked(result, source)
    return elapsed


def _write(case, top, source, name, library, i):
    path = f"{top}/{name}"
    written = _create(path, case)
    library.activate()
    elapsed, _ = timed(lambda: library.write(library.open_to_write(path, V3), source))
    return _compared(path, written, source, elapsed)


def _compared(path, written, source, elapsed):
    import zarr

    zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"})
    _checked(zarr.open_array(path, mode="r")[...], source)
    shutil.rmtree(path)
    return elapsed


def _chunks(case, top, source, name, library, i):
    objects = case.shards or case.chunks
    boxes = list(itertools.product(*([slice(at, min(at + length, n)) for at in range(0, n, length)]
                                     for n, length in zip(source.shape, objects, strict=True))))
    library.activate()
    handle = library.open(f"{top}/source", V3)

    def one(box):
        # Compared at once: together the parts are the array once more. It costs all libraries the same.
        _checked(library.read_box(handle, box), source[box])

    def work():
        with ThreadPoolExecutor(case.callers) as callers:
            for _ in callers.map(one, boxes):
                pass

    return timed(work)[0]


def _round_trip(case, top, source, name, library, i):
    path = f"{top}/{name}"
    written = _create(path, case)
    library.activate()
    elapsed, _ = timed(lambda: library.round_trip(library.open(f"{top}/source", V3), library.open_to_write(path, V3)))
    return _compared(path, written, source, elapsed)


_KINDS = {"read": _read, "write": _write, "chunks": _chunks, "round_trip": _round_trip}
