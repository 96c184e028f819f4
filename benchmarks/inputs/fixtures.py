"""Arrays on disk made, and read back, without any library under test: independent codecs and JSON.

One directory a fixture, which all libraries open::

    fixture-0/zarr.json  c/0/0  c/0/1 …
    fixture-1/.zarray  0.0  0.1 …
    fixture-2/refs.json  chunks.bin
"""
import itertools
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from benchmarks.inputs import encodings, reference_sets
from benchmarks.inputs.encodings import DOCUMENTS, ENCODINGS, REFERENCES, V3

DTYPES = ("float32", "int16", "float64", "uint8")   # of a group's arrays, in turn


@dataclass(frozen=True)
class Layout:
    """An array without its elements; the fill value is 0.

    Attributes
    ----------
    shape, chunks : tuple of int
    shards : tuple of int or None
        Elements of a stored object that holds many chunks.
    encoding : str
        Of `encodings.ENCODINGS`.
    """

    shape: tuple
    chunks: tuple
    shards: tuple | None = None
    encoding: str = "v3"

    @property
    def view(self):
        """The format."""
        return ENCODINGS[self.encoding].view

    @property
    def objects(self):
        """Elements of a stored object."""
        return self.shards or self.chunks


@dataclass(frozen=True)
class Fixture:
    """An array that is stored.

    Attributes
    ----------
    path : str
        The array's directory.
    layout : Layout
    stored_nbytes : int
        Bytes of all chunk files.
    """

    path: str
    layout: Layout
    stored_nbytes: int


def grid_coords(shape, chunks):
    """Iterate over the coordinates of all chunks in C order; the chunks divide the shape."""
    return itertools.product(*(range(n // c) for n, c in zip(shape, chunks, strict=True)))


def chunk_path(array_path, view, coords):
    """Return the path of one chunk file: ``i.j`` or ``c/i/j``."""
    return os.path.join(array_path, *(["c", *map(str, coords)] if view == V3 else [".".join(map(str, coords))]))


def box(coords, chunks):
    """Return the slices of one chunk."""
    return box_at([i * c for i, c in zip(coords, chunks, strict=True)], chunks)


def box_at(start, lengths):
    """Return the slices of a box by its first element and its lengths."""
    return tuple(slice(at, at + length) for at, length in zip(start, lengths, strict=True))


def create(path, layout):
    """Make a new directory at `path` into an array without chunks."""
    Path(path).mkdir(parents=True)
    text = encodings.document(ENCODINGS[layout.encoding], layout.shape, layout.chunks, layout.shards)
    Path(path, DOCUMENTS[layout.view]).write_text(text, "utf-8")


def write(root, data, layout):
    """Write `data` to the new directory `root` and return its `Fixture`.

    Raises : ValueError, if the chunks do not divide the shards, or these the shape.
    """
    import blosc

    for outer, inner in ((data.shape, layout.objects), (layout.objects, layout.chunks)):
        if any(n % c for n, c in zip(outer, inner, strict=True)):
            raise ValueError(f"chunks {inner} do not divide the shape {outer}")
    if layout.view == REFERENCES:
        return _write_in_references(root, data, layout)
    create(root, layout)
    blosc.set_nthreads(1)
    stored_nbytes = 0
    for coords in grid_coords(data.shape, layout.objects):
        encoded = _encode_object(data[box(coords, layout.objects)], layout)
        stored_nbytes += len(encoded)
        path = Path(chunk_path(root, layout.view, coords))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded)
    return Fixture(str(root), layout, stored_nbytes)


def _write_in_references(root, data, layout):
    encoding = ENCODINGS[layout.encoding]
    chunks = ((".".join(map(str, coords)), encodings.encode(encoding, data[box(coords, layout.chunks)]))
              for coords in grid_coords(data.shape, layout.chunks))
    document = encodings.document(encoding, layout.shape, layout.chunks)
    return Fixture(str(root), layout, reference_sets.write(root, document, chunks))


def _encode_object(values, layout):
    encoding = ENCODINGS[layout.encoding]
    if layout.shards is None:
        return encodings.encode(encoding, values)
    return encodings.pack_shard([encodings.encode(encoding, values[box(coords, layout.chunks)])
                                 for coords in grid_coords(layout.shards, layout.chunks)])


def shape_of(array_path, layout):
    """Return the shape that the document of an array says."""
    return tuple(json.loads(Path(array_path, DOCUMENTS[layout.view]).read_text("utf-8"))["shape"])


def written_correctly(array_path, data, layout):
    """Return whether the files below `array_path` hold `data`, in the encoding and layout that was asked for.

    A chunk that is absent holds the fill value, 0.
    """
    import blosc

    blosc.set_nthreads(1)
    for coords in grid_coords(data.shape, layout.objects):
        expected = data[box(coords, layout.objects)]
        try:
            stored = Path(chunk_path(array_path, layout.view, coords)).read_bytes()
        except FileNotFoundError:
            if expected.any():
                return False
            continue
        if not _object_holds(stored, expected, layout):
            return False
    return True


def _object_holds(stored, expected, layout):
    encoding = ENCODINGS[layout.encoding]
    coords = list(grid_coords(layout.objects, layout.chunks))
    try:
        parts = [stored] if layout.shards is None else encodings.unpack_shard(stored, len(coords))
    except ValueError:
        return False
    for part, at in zip(parts, coords, strict=True):
        chunk = expected[box(at, layout.chunks)]
        if part is None:
            if chunk.any():
                return False
            continue
        found = encodings.decode(encoding, part, layout.chunks)
        if found is None or found.tobytes() != chunk.tobytes():
            return False
    return True


class Member(NamedTuple):
    """An array of a group."""

    name: str
    shape: tuple
    chunks: tuple
    dtype: str
    attributes: dict


def members(n, shape, chunks, alike=False):
    """Return `n` members: the first has this shape and these chunks, the others are longer.

    If they are `alike`, they differ in length and attributes alone.
    """
    return [Member(f"array-{i:05}", (shape[0] + i, *shape[1:]), chunks if alike else (chunks[0] + i, *chunks[1:]),
                   DTYPES[0 if alike else i % len(DTYPES)],
                   {"units": "K", "long_name": f"temperature of sensor {i}"}) for i in range(n)]


def write_group(root, arrays, data=None):
    """Make a Zarr v3 group of these `Member` at the new directory `root`.

    Without `data` they have no chunks. Else the first chunk of each holds the first elements of `data`, as its type.
    """
    Path(root).mkdir(parents=True)
    text = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})
    Path(root, DOCUMENTS[V3]).write_text(text, "utf-8")
    for one in arrays:
        path = os.path.join(root, one.name)
        os.mkdir(path)
        encoding = replace(ENCODINGS["v3"], dtype=one.dtype)
        text = encodings.document(encoding, one.shape, one.chunks, attributes=one.attributes)
        Path(path, DOCUMENTS[V3]).write_text(text, "utf-8")
        if data is not None:
            chunk = Path(chunk_path(path, V3, (0,) * len(one.shape)))
            chunk.parent.mkdir(parents=True)
            chunk.write_bytes(encodings.encode(encoding, first_chunk(data, one)))


def first_chunk(data, one):
    """Return the elements of a member's first chunk, which are those of `data`, as its type."""
    return data[tuple(map(slice, one.chunks))].astype(one.dtype)


def group_holds(root, arrays):
    """Return whether a Zarr v3 group of exactly these `Member` stands at `root`, whatever their codecs."""
    if {entry.name for entry in os.scandir(root) if entry.is_dir()} != {one.name for one in arrays}:
        return False
    for one in arrays:
        wanted = encodings.v3_members(replace(ENCODINGS["v3"], dtype=one.dtype), one.shape, one.chunks,
                                      attributes=one.attributes)
        found = json.loads(Path(root, one.name, DOCUMENTS[V3]).read_text("utf-8"))
        if any(found.get(key) != wanted[key] for key in (
                "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "fill_value", "attributes")):
            return False
    return True
