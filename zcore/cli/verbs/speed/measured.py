"""Measurements of `zcore bench`: a sample of an array is read from its store, and written and read in other forms.

All times are of files in the system's cache, the best of several, without the time of the disk.
"""
from __future__ import annotations

import math
import random
import shlex
import shutil
import tempfile
import time
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.facts import stored_sizes
from zcore.cli.slabs import slab_of
from zcore.formats import format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.cli.show.facts import Coords
    from zcore.cli.show.printed import Progress

N_REPEATS = 3
N_ELEMENTS = 10
KEPT_NBYTES = 2**28            # of a cache of chunks
KEPT_FASTER = 4                # times as fast is worth a cache
SMALL_CHUNK = 2**18            # bytes decoded: below, the fixed costs of a chunk matter
LARGE_CHUNK = 2**22            # bytes decoded: above, a selection decodes much that it does not want
SHARD_NBYTES = 2**24           # decoded, of the shards that are tried
MANY_OBJECTS = 10_000          # as files in a directory
FASTER = 1.25                  # times as fast is worth a change
NOISE = 1.1                    # times as fast may be the machine's
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
    sizes : dict
        Of all objects of the array, by their coordinates.
    """

    def __init__(self, array: zcore.Array, nbytes: int) -> None:
        self.array = array
        self.sizes: dict[Coords, int] = stored_sizes(array)
        if not self.sizes:
            raise ValueError("the array has no stored chunk, there is nothing to measure")
        metadata = array.metadata
        if metadata.itemsize == 0 or metadata.dtype.hasobject or metadata.dtype.kind == "T":
            raise ValueError(f"elements of type {metadata.dtype} have no fixed length, which this needs")
        self.region: tuple[slice, ...]
        self.region, coords = self._region(metadata, nbytes)
        self.values: npt.NDArray[Any] = np.asarray(array[self.region])
        self.keys: list[str] = [array._binding.prefix + metadata.chunk_keys.encode(one) for one in coords]
        self.nbytes: int = self.values.nbytes
        self.nbytes_stored: int = sum(self.sizes[one] for one in coords)
        self.n_objects: int = len(coords)

    def _region(self, metadata, nbytes):
        """Return the first slab with stored objects, and their coordinates."""
        first = min(self.sizes)
        starts, lengths = metadata.place_of(first)
        if metadata.edges is not None:
            return tuple(slice(start, min(start + length, end)) for start, length, end
                         in zip(starts, lengths, metadata.shape, strict=True)), [first]
        slab = tuple(
            slice(start // length * length, min(start // length * length + length, end)) for start, length, end
            in zip(starts, slab_of(metadata.shape, metadata.chunk_shape, metadata.itemsize, nbytes), metadata.shape,
                   strict=True))
        return slab, sorted([coords for coords in self.sizes
                             if all(part.start <= i * chunk < part.stop
                                    for i, chunk, part in zip(coords, metadata.chunk_shape, slab, strict=True))])

    def read(self, threads: int | None) -> float:
        """Return the seconds that it takes to read the sample."""
        array = zcore.open_array(self.array.store, path=self.array.path, threads=threads)
        out = np.empty(self.values.shape, self.values.dtype)
        return best_of(lambda: array.read(self.region, out=out))

    def element(self, cache: int | None = None) -> float:
        """Return the seconds of one of a few random elements of a chunk, read one by one.

        Parameters
        ----------
        cache : int or None
            Bytes of decoded chunks that are kept.
        """
        array = zcore.open_array(self.array.store, path=self.array.path, cache=cache)
        chosen = random.Random(0)
        starts, lengths = array.metadata.place_of(min(self.sizes))
        places = [tuple(chosen.randrange(start, min(start + length, end)) for start, length, end
                        in zip(starts, lengths, array.shape, strict=True)) for _ in range(N_ELEMENTS)]
        return best_of(lambda: [array[place] for place in places]) / N_ELEMENTS

    def fetch(self) -> float:
        """Return the seconds that it takes to read the bytes of the objects, without decoding them."""
        get = self.array.store.get
        return best_of(lambda: [get(key) for key in self.keys])


def best_of(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of several runs."""
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)


def forms_of(array: zcore.Array) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """Yield names and keywords of `zcore.create_array`: the form of the array, and others.

    The last item of each is the option of `zcore convert` that makes it.
    """
    from zcore import codecs

    chunks = array.chunks if array.metadata.edges is None else array.metadata.chunk_shape
    shape = array.shape
    yield "as it is", {"chunks": chunks, "codecs": None}, None
    for name, option, codec in (("blosc, lz4", "blosc:lz4:5", codecs.BloscCodec(cname="lz4", clevel=5)),
                                ("blosc, zstd", "blosc:zstd:3", codecs.BloscCodec(cname="zstd", clevel=3))):
        yield name, {"chunks": chunks, "compressors": codec}, f"--compressor {option}"
    larger = tuple(min(2 * chunk, max(1, length)) for chunk, length in zip(chunks, shape, strict=True))
    smaller = tuple(-(-chunk // 2) for chunk in chunks)
    for name, other in (("larger chunks", larger), ("smaller chunks", smaller)):
        if other != chunks:
            yield name, {"chunks": other, "compressors": "same"}, f"--chunks {','.join(map(str, other))}"
    if array.shards is None and array.metadata.n_chunks > 1:
        n = max(2, math.ceil((SHARD_NBYTES / (math.prod(chunks) * array.itemsize)) ** (1 / max(1, len(chunks)))))
        shards = tuple(min(n, -(-max(1, length) // chunk)) * chunk for chunk, length in zip(chunks, shape, strict=True))
        form = "" if format_of(array.zarr_format).has_shards else "--zarr-format 3 "
        yield "in shards", {"chunks": chunks, "shards": shards, "compressors": "same"}, (
            f"{form}--chunks {','.join(map(str, chunks))} --shards {','.join(map(str, shards))}")


def measure_forms(sample: Sample, folder: str, progress: Progress) -> list[dict[str, Any]]:
    """Return a list of dicts, one for each form: ``name``, ``option``, bytes, seconds of a write and of a read, and of
    a single chunk.

    They are written to a folder of their own in `folder`, which is removed.
    """
    array, rows = sample.array, []
    compressors = [codec for codec in array.compressors if codec.name != "crc32c"] if (
        format_of(array.zarr_format).has_checksum) else array.compressors
    filters = {} if not array.filters else {"filters": array.filters}
    of_format = {3: filters, 2: {"order": array.order or "C", "filters": [
        codec for codec in array.filters if codec.name != "transpose"] or None}}
    made = tempfile.mkdtemp(prefix=".zcore-bench-", dir=folder)
    try:
        forms = list(forms_of(array))
        # The array's own form is measured again at the end: the first measurement also takes time for new memory.
        for i, (name, keywords, option) in enumerate([*forms, forms[0]]):
            progress.to(i + 1, len(forms) + 2)
            keywords = {"zarr_format": 3 if "shards" in keywords else array.zarr_format, **keywords}
            if keywords.get("compressors") == "same":
                keywords["compressors"] = compressors or None
            if keywords.pop("codecs", "") is None:
                keywords |= {"compressors": compressors or None, "shards": array.shards}
            keywords |= of_format.get(keywords["zarr_format"], {})
            try:
                row = _measured(f"{made}/{i}", sample.values, keywords) | {"name": name, "option": option}
                if i < len(forms):
                    rows.append(row)
                else:
                    rows[0] = {key: value if key in ("name", "option") else min(value, row[key])
                               for key, value in rows[0].items()}
            except (ValueError, TypeError, zcore.UnsupportedError):
                # A form that the array's format, type or shape does not have.
                continue
    finally:
        shutil.rmtree(made, ignore_errors=True)
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


def advice_of(path: str, sample: Sample, rows: list[dict[str, Any]], read_seconds: dict[int, float],
              element_seconds: tuple[float, float]) -> Iterator[str]:
    """Yield advice, a sentence each.

    `path` is the array's, for the commands. `rows` are those of `measure_forms`, `read_seconds` a dict of seconds by
    the number of threads, `element_seconds` a pair: of an element, and of one through a cache of chunks.
    """
    from zcore.cli.show.printed import duration, nbytes_text

    array = sample.array
    chunk_nbytes = math.prod(array.chunks if array.metadata.edges is None else array.metadata.chunk_shape) * (
        array.itemsize)
    if chunk_nbytes < SMALL_CHUNK < array.size * array.itemsize and array.shards is None:
        yield (f"chunks of {nbytes_text(chunk_nbytes)} are small, and each chunk has a fixed cost; some 256 kB to "
               "4 MB suit most uses")
    if chunk_nbytes > LARGE_CHUNK:
        yield (f"chunks of {nbytes_text(chunk_nbytes)} are large: a read of a part decodes much that it does not want, "
               "and threads have few chunks to share; some 256 kB to 4 MB suit most uses")
    if len(sample.sizes) > MANY_OBJECTS and array.shards is None:
        yield f"{len(sample.sizes)} objects are many to list, copy and delete: a shard holds many chunks in one object"
    if len(read_seconds) > 1:
        one, *_, most = sorted(read_seconds)
        if read_seconds[one] * NOISE < read_seconds[most]:
            yield f"one thread reads this sample faster than {most}"
    alone, kept = element_seconds
    if alone >= KEPT_FASTER * kept:
        yield (f"an element takes {duration(alone)}, as its chunk is decoded each time, and {duration(kept)} through a "
               f'cache of chunks: zcore.open(..., cache="{nbytes_text(KEPT_NBYTES)}")')
    if not rows:
        return
    own, command = rows[0], f"zcore convert {shlex.quote(path)} DESTINATION"
    for row in rows[1:]:
        if (row["nbytes_stored"], row["objects"]) == (own["nbytes_stored"], own["objects"]):
            continue     # the same form by another name
        gains = [f"{what} {own[key] / row[key]:.1f} times as fast" for what, key in (
            ("is read", "read_seconds"), ("is written", "write_seconds")) if own[key] / row[key] >= FASTER]
        size = row["nbytes_stored"] / own["nbytes_stored"]
        slower = max(row["read_seconds"] / own["read_seconds"], row["write_seconds"] / own["write_seconds"])
        if gains and size <= BIGGER and slower < FASTER:
            yield (f"{row['name']}: the sample {' and '.join(gains)}, at {size:.2f} of the bytes: {command} "
                   f"{row['option']}")
        elif size < 1 / FASTER and slower < FASTER:
            yield f"{row['name']}: the sample has {size:.2f} of the bytes, about as fast: {command} {row['option']}"
