"""Arrays on disk made, and read back, without any library under test: python-blosc, JSON and hard links.

One directory a workload::

    read_tiles/zmeta/__zmeta__  __zattr__  __zdata__/0.0.blosc  0.1.blosc …     what zcore opens
    read_tiles/v2/.zarray  0.0  0.1 …                                            what the others open

`v2/0.0` is a hard link to `zmeta/__zdata__/0.0.blosc`: the same inode, the same bytes, the same pages in the cache.
"""
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

CNAME, CLEVEL, SHUFFLE = "lz4", 5, 1

ZMETA, V2 = "zmeta", "v2"
_ARRAY_DOCUMENT = {ZMETA: "__zmeta__", V2: ".zarray"}


@dataclass(frozen=True)
class Fixture:
    """An array in both views.

    Attributes
    ----------
    root : str
        Directory that holds the views ``zmeta`` and ``v2``.
    shape, chunks : tuple of int
    stored_nbytes : int
        Bytes of all chunk files.
    """

    root: str
    shape: tuple
    chunks: tuple
    stored_nbytes: int

    def path(self, view):
        """Return the path of the array's directory in the view ``"zmeta"`` or ``"v2"``."""
        return os.path.join(self.root, view)


def grid_coords(shape, chunks):
    """Iterate over the coordinates of all chunks in C order; the chunks divide the shape."""
    return itertools.product(*(range(n // c) for n, c in zip(shape, chunks, strict=True)))


def chunk_path(array_path, view, coords):
    """Return the path of one chunk file: ``__zdata__/i.j.blosc`` or ``i.j``."""
    name = ".".join(map(str, coords))
    return os.path.join(array_path, "__zdata__", name + ".blosc") if view == ZMETA else os.path.join(array_path, name)


def _box(coords, chunks):
    return tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, chunks, strict=True))


def document(view, shape, chunks):
    """Return the array's metadata document as the other libraries of its time would have written it."""
    members = {"shape": list(shape), "chunks": list(chunks), "dtype": "<f4", "fill_value": 0.0}
    codec = {"cname": CNAME, "clevel": CLEVEL, "shuffle": SHUFFLE}
    if view == ZMETA:
        members |= codec
    else:
        members |= {"zarr_format": 2, "order": "C", "filters": None, "dimension_separator": ".",
                    "compressor": {"id": "blosc", "blocksize": 0, **codec}}
    return json.dumps(members, indent=4, sort_keys=True)


def write(root, data, chunks):
    """Write `data` below the new directory `root` in both views.

    Raises : ValueError, if the chunks do not divide the shape.
    """
    import blosc

    if any(n % c for n, c in zip(data.shape, chunks, strict=True)):
        raise ValueError(f"chunks {chunks} do not divide the shape {data.shape}")
    for view in (ZMETA, V2):
        Path(root, view).mkdir(parents=True)
        Path(root, view, _ARRAY_DOCUMENT[view]).write_text(document(view, data.shape, chunks), "utf-8")
    Path(root, ZMETA, "__zattr__").write_text("{}", "utf-8")
    Path(root, ZMETA, "__zdata__").mkdir()
    blosc.set_nthreads(1)
    stored_nbytes = 0
    for coords in grid_coords(data.shape, chunks):
        chunk = np.ascontiguousarray(data[_box(coords, chunks)]).tobytes()
        encoded = blosc.compress(chunk, data.itemsize, CLEVEL, SHUFFLE, CNAME)
        stored_nbytes += len(encoded)
        path = chunk_path(os.path.join(root, ZMETA), ZMETA, coords)
        Path(path).write_bytes(encoded)
        os.link(path, chunk_path(os.path.join(root, V2), V2, coords))
    return Fixture(str(root), tuple(data.shape), tuple(chunks), stored_nbytes)


def written_correctly(array_path, view, data, chunks):
    """Return whether the chunk files below `array_path` hold `data`, each as one blosc chunk of lz4 and shuffle.

    A chunk that is absent holds the fill value, 0.
    """
    import blosc

    blosc.set_nthreads(1)
    for coords in grid_coords(data.shape, chunks):
        expected = np.ascontiguousarray(data[_box(coords, chunks)])
        try:
            encoded = Path(chunk_path(array_path, view, coords)).read_bytes()
        except FileNotFoundError:
            if expected.any():
                return False
            continue
        if not _is_codec(encoded) or blosc.decompress(encoded) != expected.tobytes():
            return False
    return True


def _is_codec(encoded):
    # Byte 2 of a blosc header: the compressor's format in the bits 5-7 (1 is lz4), bit 0 byte shuffle, bit 1 a plain
    # copy, which the library itself chooses for what does not compress.
    return len(encoded) >= 16 and encoded[2] >> 5 == 1 and bool(encoded[2] & 0b11)
