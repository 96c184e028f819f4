"""Write real data in every format zcore has, read them back, check every bit, and draw them.

Without PATH the data are the digital elevation model that matplotlib ships. All results stay in one folder, where only
results of earlier runs are replaced. For a format that cannot hold the data the reason is shown, and the others
continue.

Examples:
  zcore demo
  zcore demo my-data.npy --chunks 100,100 --out results
"""
from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli import location
from zcore.cli.option_values import grid_of
from zcore.cli.selection import parse_selection
from zcore.cli.show import machine
from zcore.cli.show.levels import levels_of, obstacle
from zcore.cli.show.plane import plane_of
from zcore.cli.show.printed import (
    N_REPEATS,
    ProgressLine,
    best_of,
    duration,
    lengths,
    megabytes_per_second,
    plural,
    table,
)
from zcore.errors import Needing
from zcore.model.auto_chunks import TARGET_NBYTES
from zcore.stores.directory.store import DirectoryStore
from zcore.tools.source import SourceArray

if TYPE_CHECKING:
    import argparse
    from typing import Any

    import numpy.typing as npt

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Zarr v3", ".zarr", {"zarr_format": 3}),
    ("Zarr v3 in shards", ".shard.zarr", {"zarr_format": 3, "shards": "auto"}),
    ("Zarr v2", ".v2.zarr", {"zarr_format": 2}),
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)
# Files that an array of Zarr v3 is copied into: name, ending, and the path of the array in the file.
COPIES = (
    ("zip archive", ".zip", ""),
    ("reference set", ".refs.json", ""),
    ("ASDF", ".asdf", "data"),
)
ELEVATION = "jacksboro_fault_dem.npz"
HEADER = ("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "read back")
FEW_CHUNKS = 8                 # the fewest automatic chunks of small data
PICTURE = "zcore-demo.png"
LIST = "zcore-demo.json"       # names of what earlier runs wrote to the folder


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", metavar="PATH",
                        help="your own data: an array, or a .npy or HDF5 file, or a name in an .npz file, as in "
                             "a.npz/name (default: matplotlib's elevation model)")
    parser.add_argument("--chunks", default="auto", metavar="CHUNKS",
                        help="elements per dimension such as 100,100, a size such as '64 KiB', or auto (the default)")
    parser.add_argument("--out", default="zcore-demo", metavar="DIR", help="folder for the results "
                                                                         "(default: %(default)s)")
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}")
    machine.add_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; returns 0, or 1 when something came back different.

    Raises : ValueError, if no format can hold the data.
    """
    data, title = load(arguments.path)
    chunks = grid_of(arguments.chunks, "--chunks")
    if chunks == "auto":
        chunks = f"{max(1, min(TARGET_NBYTES, data.nbytes // FEW_CHUNKS))} B"
    if not arguments.no_picture:
        # Imported before the long write: a missing matplotlib is found at once.
        with Needing("the picture (--no-picture goes without) needs", "matplotlib", "demo", "pictures"):
            from zcore.cli.show import figure
    refusals = {name: reason for name, _, keywords in FORMATS if (reason := _refusal(data, chunks, **keywords))}
    if len(refusals) == len(FORMATS):
        raise ValueError(f"the data are {data.ndim}-d {data.dtype}, which no format can write: "
                         + "; ".join(f"{reason} ({name})" for name, reason in refusals.items()))
    stem = os.path.splitext(title)[0].replace(os.sep, "_")
    paths = {name: os.path.join(arguments.out, stem + ending) for name, ending, _ in (*FORMATS, *COPIES)}
    picture = os.path.join(arguments.out, PICTURE)
    _prepare(arguments.out, [*map(os.path.basename, paths.values()), PICTURE])
    say = (lambda text: None) if arguments.json else print
    say(f"zcore {zcore.__version__}: {title}\n{lengths(data.shape)} {data.dtype}, {data.nbytes:,} bytes\n")
    rows: list[dict[str, Any]] = []
    with ProgressLine("writing and reading") as progress:
        for name, _, keywords in FORMATS:
            if name not in refusals:
                progress.to(len(rows) + 1, len(paths) + 1)
                rows.append(_trip(name, paths[name], data, lambda path, keywords=keywords: zcore.create_array(
                    path, data=data, chunks=chunks, overwrite=True, **keywords)))
        first = rows[0]["path"]
        for name, _, inside in COPIES:
            progress.to(len(rows) + 1, len(paths) + 1)
            try:
                rows.append(_trip(name, paths[name], data, lambda path, name=name: (
                    zcore.references(first).save(path) if name == "reference set" else
                    zcore.copy(first, path, overwrite=True)), inside))
            except (ValueError, zcore.UnsupportedError) as exc:
                refusals[name] = str(exc)
    if not arguments.json:
        print(table(HEADER, [*map(_cells, rows), *((name, f"not written: {why}") for name, why in refusals.items())]))
        print(f"\nfiles in the system's cache, {plural(zcore.config.threads, 'thread')}, best of {N_REPEATS}")
    for i, row in enumerate(rows):
        say(f"{'' if i else 'arrays  :':9} {row['path']}")
        for part in row["differences"]:
            print(f"zcore demo: {row['format']}: {row['path']} differs from the data at [{part}]", file=sys.stderr)
    reason = "--no-picture" if arguments.no_picture else obstacle(data.dtype, data.shape)
    if reason is None:
        array = zcore.open_array(rows[0]["path"])
        values, box, quantity = plane_of(array, None, *figure.MAX_DOTS)
        figure.save(figure.plane(array, values, box, *levels_of(values), quantity, title), picture)
    say(f"no picture: {reason}" if reason else f"picture : {picture}")
    if arguments.json:
        machine.show({"name": title, "shape": data.shape, "dtype": data.dtype, "nbytes": data.nbytes, "formats": rows,
                      "refused": refusals, "picture": None if reason else picture})
    return 1 if any(row["differences"] for row in rows) else 0


def load(path: str | None) -> tuple[npt.NDArray[Any], str]:
    """Return the data of the array at a path, or of the elevation model without one, and a title.

    Of a group, and of an ``.npz`` file, it is the first array.
    """
    from zcore.tools.copy.sources import open_source

    if path is None:
        with Needing("the elevation model needs", "matplotlib", "demo", "the elevation model"):
            from matplotlib import cbook
        try:
            store, inside = str(cbook.get_sample_data(ELEVATION, asfileobj=False)), "elevation"
        except OSError as exc:
            raise FileNotFoundError(f"this matplotlib comes without {ELEVATION}; "
                                    "`zcore demo PATH` takes data of your own") from exc
    else:
        store, inside = location.located(path)
    with open_source(store, inside, None, None) as source:
        found = next((node for _, node in source.nodes if isinstance(node, SourceArray)), None)
        if found is None or found.dtype.hasobject or found.dtype.kind == "T":
            raise ValueError(f"{path} has no array whose elements have a fixed length")
        data = np.empty(found.shape, found.dtype)
        found.read((0,) * data.ndim, data)
    return data, os.path.basename(path or ELEVATION)


def _refusal(data, chunks, **keywords):
    """Return why a format cannot hold the data; None if it can. Tried in memory: nothing is left."""
    try:
        draft = zcore.create_array(zcore.MemoryStore(), shape=data.shape, dtype=data.dtype, chunks=chunks, **keywords)
    except (ValueError, zcore.UnsupportedError) as exc:
        return str(exc)
    # Fields of Zarr v3 lie without gaps, in one byte order: the same values, not the same bytes.
    return None if draft.dtype == data.dtype else f"its elements would be {draft.dtype}"


def _prepare(folder, names):
    """Make the folder of the results, and note their names in it.

    Raises : FileExistsError, if a file is in the way that no earlier run has written.
    """
    store = DirectoryStore(folder)
    document = store.get(LIST)
    made = json.loads(document) if document is not None else []
    if document is None and any(store.list_dir("")):
        raise FileExistsError(f"{folder} is not empty and was not made by zcore demo; choose another folder by --out")
    for name in names:
        if name not in made and os.path.lexists(os.path.join(folder, name)):
            raise FileExistsError(f"{os.path.join(folder, name)} was not made by zcore demo; choose another folder by "
                                  "--out")
    # Before the results: a run that is killed leaves nothing that the next one would refuse.
    store.set(LIST, json.dumps(sorted({*made, *names})).encode())
    # The picture of an earlier run is not one of this run.
    store.erase(PICTURE)


def _trip(name, path, data, make, inside=""):
    """Write the data by ``make(path)``, read them back whole and in part, and return what came of it: a dict."""
    write_seconds = best_of(make, path)
    found: Any = zcore.open(path)
    array = found[inside] if inside else found
    if array.dtype != data.dtype:
        raise ValueError(f"its elements would be {array.dtype}")
    read_seconds = best_of(array.__getitem__, ...)
    differences = [part for part in _parts(data.shape)
                   if not is_equal(array[parse_selection(part)], data[parse_selection(part)])]
    files = [path] if os.path.isfile(path) else [
        os.path.join(folder, file) for folder, _, names in os.walk(path) for file in names]
    nbytes = sum(map(os.path.getsize, files))
    return {"format": name, "path": path, "chunks": array.chunks, "files": len(files), "bytes": nbytes,
            "ratio": data.nbytes / nbytes, "write_seconds": write_seconds, "read_seconds": read_seconds,
            "differences": differences}


def _parts(shape):
    """Return selections to compare, as they are typed: the whole, one element, a half, and steps backwards."""
    return ["...", *(", ".join(part.format(n // 2, n // 2 + 1) for n in shape) or "..."
                     for part in ("{0}:{1}", "{0}:", "::-3"))]


def is_equal(found: npt.ArrayLike, expected: npt.ArrayLike) -> bool:
    """Return whether two arrays have the same type, shape and bits: NaN is equal to itself, -0.0 is not 0.0."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    if found.dtype.names is not None:
        # Field by field: the bytes between them are no data, and NumPy's own copies leave them out.
        return all(is_equal(found[name], expected[name]) for name in found.dtype.names)
    return found.tobytes() == expected.tobytes()


def _cells(row):
    """Return the cells of the table for one format."""
    verdict = f"DIFFERENT in {plural(len(row['differences']), 'part')}" if row["differences"] else "equal"
    times = [text for seconds in (row["write_seconds"], row["read_seconds"])
             for text in (duration(seconds), megabytes_per_second(row["ratio"] * row["bytes"], seconds))]
    return row["format"], str(row["files"]), f"{row['bytes']:,}", f"{row['ratio']:.2f}", *times, verdict
