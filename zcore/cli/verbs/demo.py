"""Write real data in every format zcore has, read them back, check every bit, and draw them.

The data are the digital elevation model that matplotlib ships. All results stay in one new folder.

Examples:
  zcore demo
  zcore demo --out results
"""
from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.plane import levels_of, plane_of
from zcore.cli.show.printed import N_REPEATS, ProgressLine, best_of, duration, lengths, megabytes_per_second, table
from zcore.errors import Needing
from zcore.stores.openers import check_directory
from zcore.text.printable import plural

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Zarr v3", ".zarr", {"zarr_format": 3}),
    ("Zarr v3 in shards", ".shard.zarr", {"zarr_format": 3, "shards": "auto"}),
    ("Zarr v2", ".v2.zarr", {"zarr_format": 2}),
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)
# Files that the first array is copied into: name, ending, and the path of the array in the file.
COPIES = (("zip archive", ".zip", ""), ("reference set", ".refs.json", ""), ("ASDF", ".asdf", "data"))
ELEVATION = "jacksboro_fault_dem"
HEADER = ("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "read back")
CHUNKS = (87, 101)             # sixteen of them
PARTS = (np.s_[...], np.s_[172:173, 201], np.s_[172:, 201:], np.s_[::-3, ::-3])     # that are compared
PICTURE = "zcore-demo.png"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("--out", default="zcore-demo", metavar="DIR", help="folder for the results, which is made "
                                                                         "(default: %(default)s)")
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; returns 0, or 1 when something came back different."""
    data, stem = load(), os.path.join(arguments.out, ELEVATION)
    if not arguments.no_picture:
        # Imported before the long write: a missing matplotlib is found at once.
        with Needing("the picture (--no-picture goes without) needs", "matplotlib", "demo", "pictures"):
            from zcore.cli.show import figure
    check_directory(arguments.out)
    if os.path.lexists(arguments.out):
        raise FileExistsError(f"{arguments.out} is there already; --out names another folder")
    os.mkdir(arguments.out)
    print(f"zcore {zcore.__version__}: {ELEVATION}\n{lengths(data.shape)} {data.dtype}, {data.nbytes:,} bytes\n")
    first, rows = stem + FORMATS[0][1], []
    with ProgressLine("writing and reading") as progress:
        for name, ending, keywords in FORMATS:
            progress.to(len(rows) + 1, len(FORMATS) + len(COPIES) + 1)
            rows.append(_trip(name, stem + ending, data, lambda path, keywords=keywords: zcore.create_array(
                path, data=data, chunks=CHUNKS, overwrite=True, **keywords)))
        for name, ending, inside in COPIES:
            progress.to(len(rows) + 1, len(FORMATS) + len(COPIES) + 1)
            rows.append(_trip(name, stem + ending, data, lambda path, name=name: (
                zcore.references(first).save(path) if name == "reference set" else
                zcore.copy(first, path, overwrite=True)), inside))
    print(table(HEADER, rows))
    print(f"\nfiles in the system's cache, {plural(zcore.config.threads, 'thread')}, best of {N_REPEATS}; "
          f"the reference set points to the chunks of {FORMATS[0][0]}")
    print(f"arrays  : {arguments.out}")
    if not arguments.no_picture:
        array = zcore.open_array(first)
        values, box, quantity = plane_of(array, None, *figure.MAX_DOTS)
        picture = os.path.join(arguments.out, PICTURE)
        figure.save(figure.plane(array, values, box, *levels_of(values), quantity, ELEVATION), picture)
        print(f"picture : {picture}")
    return 1 if any(row[-1] != "equal" for row in rows) else 0


def load() -> npt.NDArray[Any]:
    """Return the elevation model."""
    with Needing("the elevation model needs", "matplotlib", "demo", "the elevation model"):
        from matplotlib import cbook
    try:
        with cbook.get_sample_data(f"{ELEVATION}.npz") as file:
            return file["elevation"]
    except OSError as exc:
        raise FileNotFoundError(f"this matplotlib comes without {ELEVATION}.npz") from exc


def _trip(name, path, data, make, inside=""):
    """Write the data by ``make(path)``, read them back whole and in part, and return the row of the table."""
    write_seconds = best_of(make, path)
    array: Any = zcore.open(path, path=inside)
    read_seconds = best_of(array.__getitem__, ...)
    n_different = sum(array[part].tobytes() != data[part].tobytes() for part in PARTS)
    if n_different:
        print(f"zcore demo: {path} differs from the data", file=sys.stderr)
    files = [path] if os.path.isfile(path) else [
        os.path.join(folder, file) for folder, _, names in os.walk(path) for file in names]
    nbytes = sum(map(os.path.getsize, files))
    times = [text for seconds in (write_seconds, read_seconds)
             for text in (duration(seconds), megabytes_per_second(data.nbytes, seconds))]
    return [name, str(len(files)), f"{nbytes:,}", f"{data.nbytes / nbytes:.2f}", *times,
            f"DIFFERENT in {plural(n_different, 'part')}" if n_different else "equal"]
