"""Arrays on disk made, and read back, without any library under test: independent codecs, JSON and hard links.

One directory a fixture, in it one a view::

    fixture-0/zmeta/__zmeta__  __zattr__  __zdata__/0.0.blosc  0.1.blosc …     what zcore opens
    fixture-0/v2/.zarray  0.0  0.1 …                                            what the others open
    fixture-1/v3/zarr.json  c/0/0  c/0/1 …                                      what all open
    fixture-2/references/refs.json  chunks.bin                                  what reads reference sets

`v2/0.0` is a hard link to `zmeta/__zdata__/0.0.blosc`: the same inode, the same bytes, the same pages in the cache.
"""
import itertools
import json
import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inputs import encodings, reference_sets
from benchmarks.inputs.encodings import DOCUMENTS, ENCODINGS, REFERENCES, V3, ZMETA


@dataclass(frozen=True)
class Layout:
    """An array without its elements: float32, fill value 0.

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
    encoding: str = "lz4"

    @property
    def views(self):
        """The formats in which its chunk files can be seen."""
        return ENCODINGS[self.encoding].views

    @property
    def objects(self):
        """Elements of a stored object."""
        return self.shards or self.chunks


@dataclass(frozen=True)
class Fixture:
    """An array in all its views.

    Attributes
    ----------
    root : str
        Directory that holds a directory for each view.
    layout : Layout
    stored_nbytes : int
        Bytes of all chunk files.
    """

    root: str
    layout: Layout
    stored_nbytes: int

    def path(self, view):
        """Return the path of the array's directory in one of the views."""
        return os.path.join(self.root, view)


def grid_coords(shape, chunks):
    """Iterate over the coordinates of all chunks in C order; the chunks divide the shape."""
    return itertools.product(*(range(n // c) for n, c in zip(shape, chunks, strict=True)))


def chunk_path(array_path, view, coords):
    """Return the path of one chunk file: ``__zdata__/i.j.blosc``, ``i.j`` or ``c/i/j``."""
    if view == V3:
        return os.path.join(array_path, "c", *map(str, coords))
    name = ".".join(map(str, coords))
    return os.path.join(array_path, "__zdata__", name + ".blosc") if view == ZMETA else os.path.join(array_path, name)


def box(coords, chunks):
    """Return the slices of one chunk."""
    return tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, chunks, strict=True))


def create(path, view, layout):
    """Make a new directory at `path` into an array without chunks, in one view."""
    Path(path).mkdir(parents=True)
    text = encodings.document(view, ENCODINGS[layout.encoding], layout.shape, layout.chunks, layout.shards)
    Path(path, DOCUMENTS[view]).write_text(text, "utf-8")
    if view == ZMETA:
        Path(path, "__zattr__").write_text("{}", "utf-8")
        Path(path, "__zdata__").mkdir()


def write(root, data, layout):
    """Write `data` below the new directory `root` in all views of the layout.

    Raises : ValueError, if the chunks do not divide the shards, or these the shape.
    """
    import blosc

    for outer, inner in ((data.shape, layout.objects), (layout.objects, layout.chunks)):
        if any(n % c for n, c in zip(outer, inner, strict=True)):
            raise ValueError(f"chunks {inner} do not divide the shape {outer}")
    if layout.views == (REFERENCES,):
        return _write_in_references(root, data, layout)
    first, *others = layout.views
    for view in layout.views:
        create(os.path.join(root, view), view, layout)
    blosc.set_nthreads(1)
    stored_nbytes = 0
    for coords in grid_coords(data.shape, layout.objects):
        encoded = _encode_object(data[box(coords, layout.objects)], layout)
        stored_nbytes += len(encoded)
        path = Path(chunk_path(os.path.join(root, first), first, coords))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded)
        for view in others:
            os.link(path, chunk_path(os.path.join(root, view), view, coords))
    return Fixture(str(root), layout, stored_nbytes)


def _write_in_references(root, data, layout):
    encoding = ENCODINGS[layout.encoding]
    chunks = ((".".join(map(str, coords)), encodings.encode(encoding, data[box(coords, layout.chunks)]))
              for coords in grid_coords(data.shape, layout.chunks))
    document = encodings.document(REFERENCES, encoding, layout.shape, layout.chunks)
    return Fixture(str(root), layout, reference_sets.write(os.path.join(root, REFERENCES), document, chunks))


def _encode_object(values, layout):
    encoding = ENCODINGS[layout.encoding]
    if layout.shards is None:
        return encodings.encode(encoding, values)
    return encodings.pack_shard([encodings.encode(encoding, values[box(coords, layout.chunks)])
                                 for coords in grid_coords(layout.shards, layout.chunks)])


def shape_of(array_path, view):
    """Return the shape that the document of an array says."""
    return tuple(json.loads(Path(array_path, DOCUMENTS[view]).read_text("utf-8"))["shape"])


def written_correctly(array_path, view, data, layout):
    """Return whether the files below `array_path` hold `data`, in the encoding and layout that was asked for.

    A chunk that is absent holds the fill value, 0.
    """
    import blosc

    blosc.set_nthreads(1)
    for coords in grid_coords(data.shape, layout.objects):
        expected = data[box(coords, layout.objects)]
        try:
            stored = Path(chunk_path(array_path, view, coords)).read_bytes()
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


def array_name(i):
    """Return the name of the array number `i` of a group of many."""
    return f"array-{i:04}"


def shape_of_array(i, shape):
    """Return the shape of the array number `i` of a group whose arrays differ."""
    return (shape[0] + i, *shape[1:])


def write_group(root, n_arrays, layout, differ=False):
    """Make a Zarr v3 group of arrays without chunks at the new directory `root`.

    With `differ`, each array has a shape and attributes of its own, as in real groups.
    """
    Path(root).mkdir(parents=True)
    text = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})
    Path(root, DOCUMENTS[V3]).write_text(text, "utf-8")
    for i in range(n_arrays):
        create(os.path.join(root, array_name(i)), V3, layout)
        if differ:
            document = Path(root, array_name(i), DOCUMENTS[V3])
            members = json.loads(document.read_text("utf-8"))
            members["shape"] = list(shape_of_array(i, layout.shape))
            members["attributes"] = {"units": "K", "long_name": f"temperature of sensor {i}"}
            document.write_text(json.dumps(members), "utf-8")


def group_holds(root, n_arrays, layout):
    """Return whether a Zarr v3 group of exactly these arrays stands at `root`."""
    names = {array_name(i) for i in range(n_arrays)}
    if {entry.name for entry in os.scandir(root) if entry.is_dir()} != names:
        return False
    expected = encodings.document(V3, ENCODINGS[layout.encoding], layout.shape, layout.chunks)
    wanted = {name: value for name, value in json.loads(expected).items() if name in (
        "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "fill_value")}
    for name in names:
        members = json.loads(Path(root, name, DOCUMENTS[V3]).read_text("utf-8"))
        if any(members.get(key) != value for key, value in wanted.items()):
            return False
    return True
