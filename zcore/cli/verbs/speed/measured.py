"""Measurements of `zcore bench`: a sample of an array is read from its store, and written and read in other forms.

All times are of files in the system's cache, the best of several, without the time of the disk.
"""
from __future__ import annotations

import itertools
import math
import random
import shlex
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.facts import shards_of, stored_sizes
from zcore.cli.slabs import slab_of
from zcore.formats import format_of
from zcore.stores.base import outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.cli.show.facts import Coords
    from zcore.cli.show.printed import ProgressLine

N_REPEATS = 3
N_ELEMENTS = 10
SMALL_CHUNK = 2**18            # bytes decoded: below, the fixed costs of a chunk matter
LARGE_CHUNK = 2**22            # bytes decoded: above, a selection decodes much that it does not want
SHARD_NBYTES = 2**24           # decoded, of the shards that are tried
FASTER = 1.25                  # times as fast is worth a change
BIGGER = 1.1                   # times as many bytes are acceptable for it


class Sample:
    """A box of whole objects of an array.

    Parameters
    ----------
    array : zcore.Array
    nbytes : int
        Decoded, roughly the most; a single object is the least.

    Attributes
    ----------
    array : zcore.Array
    region : tuple of slice
    values : ndarray
    keys : list of str
        Of the objects that are stored in it.
    nbytes, nbytes_stored, n_objects : int
        Decoded, stored, and how many.
    n_absent : int
        Objects in it that are not stored.
    object_shape : tuple of int
        Elements of the first of them per dimension.
    """

    def __init__(self, array: zcore.Array, nbytes: int) -> None:
        self.array = array
        metadata = array.metadata
        if metadata.itemsize == 0 or metadata.dtype.hasobject or metadata.dtype.kind == "T":
            raise ValueError(f"elements of type {metadata.dtype} have no fixed length, which this needs")
        sizes = stored_sizes(array) if array.store.lists else None
        if sizes == {} or metadata.n_chunks == 0:
            raise ValueError("the array has no stored chunk, there is nothing to measure")
        first = (0,) * array.ndim if sizes is None else min(sizes)
        self.region: tuple[slice, ...] = _region(metadata, first, nbytes)
        places = itertools.product(*[
            range(i, i + 1) if metadata.edges is not None else range(part.start // chunk, -(-part.stop // chunk))
            for i, part, chunk in zip(first, self.region, metadata.chunk_shape, strict=True)])
        keys = {one: array._binding.prefix + metadata.chunk_keys.encode(one) for one in places}
        found = {one: sizes.get(one) for one in keys} if sizes is not None else dict(
            zip(keys, self._fetched(list(keys.values())), strict=True))
        stored = {one: size for one, size in found.items() if size is not None}
        if not stored:
            raise ValueError("the store has no listing, and the first chunks of the array are absent: there is nothing "
                             "to measure; a larger --sample may reach further")
        self.values: npt.NDArray[Any] = np.asarray(array[self.region])
        self.keys: list[str] = [keys[one] for one in stored]
        self.nbytes: int = self.values.nbytes
        self.nbytes_stored: int = sum(stored.values())
        self.n_objects: int = len(stored)
        self.n_absent: int = len(keys) - len(stored)
        self._first: Coords = min(stored)
        self.object_shape: tuple[int, ...] = metadata.place_of(self._first)[1]

    def _fetched(self, keys):
        """Yield how many bytes each object has, None if it is absent; they are read as many at a time as reads do."""
        for data in outcomes(self.array.store, self.array.store.get, keys):
            if isinstance(data, zcore.ZcoreError):
                raise data
            yield None if data is None else len(data)

    def read(self, threads: int | None) -> float:
        """Return the seconds that it takes to read the sample."""
        array = zcore.open_array(self.array.store, path=self.array.path, threads=threads)
        out = np.empty(self.values.shape, self.values.dtype)
        return best_of(lambda: array.read(self.region, out=out))

    def element(self) -> float:
        """Return the seconds of one of a few random elements of a chunk, read one by one."""
        array = self.array
        chosen = random.Random(0)
        starts, lengths = array.metadata.place_of(self._first)
        places = [tuple(chosen.randrange(start, min(start + length, end)) for start, length, end
                        in zip(starts, lengths, array.shape, strict=True)) for _ in range(N_ELEMENTS)]
        return best_of(lambda: [array[place] for place in places]) / N_ELEMENTS

    def fetch(self) -> float:
        """Return the seconds that it takes to read the bytes of the objects, without decoding them."""
        return best_of(lambda: sum(self._fetched(self.keys)))


def _region(metadata, first, nbytes):
    """Return the slab of whole objects that the first one is in, of unequal objects that one alone."""
    starts, lengths = metadata.place_of(first)
    if metadata.edges is None:
        lengths = slab_of(metadata.shape, metadata.chunk_shape, metadata.itemsize, nbytes)
        starts = [start // length * length for start, length in zip(starts, lengths, strict=True)]
    return tuple([slice(start, min(start + length, end)) for start, length, end
                  in zip(starts, lengths, metadata.shape, strict=True)])


def best_of(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs."""
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)


def forms_of(sample: Sample) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Yield names and keywords of `zcore.create_array`: the form of the array, and others.

    The last item of each is the option of `zcore convert` that makes it.
    """
    from zcore import codecs

    array = sample.array
    unequal, own = array.metadata.edges is not None, format_of(array.zarr_format)
    own_shards = None if shards_of(array) is None else sample.object_shape
    chunks = sample.values.shape if unequal and own_shards is None else array.chunks
    shape = array.shape
    compressors = [codec for codec in array.compressors if codec.name != "crc32c"] if own.has_checksum else (
        array.compressors)
    checked = len(compressors) < len(array.compressors)
    of_format = {3: {"checksum": checked} | ({"filters": array.filters} if array.filters else {}), 2: {
        "order": array.order or "C",
        "filters": [codec for codec in array.filters if codec.name != "transpose"] or None}}

    def form(chunks=chunks, shards=own_shards, **keywords):
        # `zcore convert` keeps shards that the chunks divide.
        if shards is not None and any(shard % chunk for shard, chunk in zip(shards, chunks, strict=True)):
            shards = None
        keywords = {"zarr_format": array.zarr_format, "chunks": chunks, "shards": shards,
                    "compressors": compressors or None, **keywords}
        return of_format.get(keywords["zarr_format"], {}) | keywords

    yield "as it is", form(), None
    for name, option, codec in (("blosc, lz4", "blosc:lz4:5", codecs.BloscCodec(cname="lz4", clevel=5)),
                                ("blosc, zstd", "blosc:zstd:3", codecs.BloscCodec(cname="zstd", clevel=3))):
        yield name, form(compressors=codec), f"--compressor {option}"
    if unequal:
        return
    larger = tuple(min(2 * chunk, max(1, length)) for chunk, length in zip(chunks, shape, strict=True))
    smaller = tuple(-(-chunk // 2) for chunk in chunks)
    for name, other in (("larger chunks", larger), ("smaller chunks", smaller)):
        if other != chunks:
            yield name, form(chunks=other), f"--chunks {','.join(map(str, other))}"
    if own_shards is None and array.metadata.n_chunks > 1:
        n = max(2, math.ceil((SHARD_NBYTES / (math.prod(chunks) * array.itemsize)) ** (1 / max(1, len(chunks)))))
        shards = tuple(min(n, -(-max(1, length) // chunk)) * chunk for chunk, length in zip(chunks, shape, strict=True))
        option = f"--chunks {','.join(map(str, chunks))} --shards {','.join(map(str, shards))}"
        yield "in shards", form(zarr_format=3, shards=shards), (
            option if own.has_shards else f"--zarr-format 3 {option}")


def measure_forms(sample: Sample, folder: str, progress: ProgressLine) -> list[dict[str, Any]]:
    """Return a list of dicts, one for each form: ``name``, ``option``, bytes, seconds of a write and of a read, and of
    a single chunk.

    They are written to `folder`, a scratch folder.
    """
    rows: list[dict[str, Any]] = []
    forms = list(forms_of(sample))
    for i, (name, keywords, option) in enumerate(forms):
        progress.to(i + 1, len(forms) + 1)
        # The array's format, type or shape may not have a form.
        with suppress(ValueError, TypeError, zcore.UnsupportedError):
            rows.append(_measured(f"{folder}/{i}", sample.values, keywords) | {"name": name, "option": option})
    return rows


def _measured(path, values, keywords):
    array = zcore.create_array(path, shape=values.shape, dtype=values.dtype, **keywords)
    write = best_of(lambda: array.__setitem__(..., values))
    out = np.empty(values.shape, values.dtype)
    read = best_of(lambda: array.read(out=out))
    if not np.array_equal(out.reshape(-1).view(np.uint8), np.ascontiguousarray(values).reshape(-1).view(np.uint8)):
        raise AssertionError("the elements that were read differ from those written")
    one = next(iter(array.iter_chunks())) if values.ndim else ()
    chunk = best_of(lambda: array[one])
    sizes = stored_sizes(array)
    return {"nbytes_stored": sum(sizes.values()), "objects": len(sizes), "write_seconds": write, "read_seconds": read,
            "chunk_seconds": chunk}


def advice_of(path: str, sample: Sample, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield advice, a sentence each. `path` is the array's, for the commands; `rows` are those of `measure_forms`."""
    from zcore.cli.show.printed import nbytes_text

    array = sample.array
    chunk_nbytes = math.prod(array.chunks if array.metadata.edges is None else array.metadata.chunk_shape) * (
        array.itemsize)
    if chunk_nbytes < SMALL_CHUNK < array.size * array.itemsize and shards_of(array) is None:
        yield (f"chunks of {nbytes_text(chunk_nbytes)} are small, and each chunk has a fixed cost; some 256 kB to "
               "4 MB suit most uses, and a shard holds many chunks in one object")
    if chunk_nbytes > LARGE_CHUNK:
        yield (f"chunks of {nbytes_text(chunk_nbytes)} are large: a read of a part decodes much that it does not want, "
               "and threads have few chunks to share; some 256 kB to 4 MB suit most uses")
    # A name that begins with a dash would be an option.
    command = f"zcore convert {shlex.quote(f'./{path}' if path.startswith('-') else path)} DESTINATION"
    for row in rows[1:]:
        own = rows[0]
        gains = [f"{what} {own[key] / row[key]:.1f} times as fast" for what, key in (
            ("is read", "read_seconds"), ("is written", "write_seconds")) if own[key] / row[key] >= FASTER]
        size = row["nbytes_stored"] / own["nbytes_stored"]
        slower = max(row["read_seconds"] / own["read_seconds"], row["write_seconds"] / own["write_seconds"])
        if size == 1 and row["objects"] == own["objects"] or slower >= FASTER:
            continue     # the same form by another name, or no better one
        if gains and size <= BIGGER:
            yield (f"{row['name']}: the sample {' and '.join(gains)}, at {size:.2f} of the bytes: {command} "
                   f"{row['option']}")
        elif size < 1 / FASTER:
            yield f"{row['name']}: the sample has {size:.2f} of the bytes, about as fast: {command} {row['option']}"
