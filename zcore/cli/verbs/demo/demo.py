"""Write real data in every format zcore has, read them back, check every bit, and draw them.

Without PATH the data are the digital elevation model that matplotlib ships. All results stay in one folder, where only
results of earlier runs are replaced. For a format that cannot hold the data the reason is shown, and the others
continue.

Examples:
  zcore demo
  zcore demo my-data.npy --chunks 100,100 --out results
"""
from __future__ import annotations

import contextlib
import io
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import zcore
from zcore.cli.option_values import grid_of
from zcore.cli.show import machine
from zcore.cli.show.levels import levels_of, obstacle
from zcore.cli.show.plane import plane_of
from zcore.cli.show.printed import duration, lengths, megabytes_per_second, plural, table
from zcore.cli.verbs.demo.output import Output
from zcore.cli.verbs.demo.round_trip import N_REPEATS, RoundTrip, is_repeated, written
from zcore.cli.verbs.demo.source import KINDS, DemoData, load
from zcore.errors import Needing
from zcore.model.auto_chunks import TARGET_NBYTES
from zcore.stores.memory import MemoryStore

if TYPE_CHECKING:
    import argparse
    from typing import Any

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Zarr v3", ".zarr", {"zarr_format": 3}),
    ("Zarr v3 in shards", ".shard.zarr", {"zarr_format": 3, "shards": "auto"}),
    ("Zarr v2", ".v2.zarr", {"zarr_format": 2}),
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)
# Files that the first of these arrays is copied into: name, ending, and the path of the array in the file.
COPIES = (
    ("zip archive", ".zip", ""),
    ("reference set", ".refs.json", ""),
    ("ASDF", ".asdf", "data"),
)
REFERENCES = COPIES[1][0]
HEADER = ("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "read back")
PICTURE = "zcore-demo.png"
FEW_CHUNKS = 8                 # the fewest automatic chunks of small data


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", metavar="PATH",
                        help=f"your own data: {KINDS} (default: matplotlib's elevation model)")
    parser.add_argument("--array", metavar="NAME", help="array of an .npz file (default: the first)")
    parser.add_argument("--chunks", default="auto", metavar="CHUNKS",
                        help="elements per dimension such as 100,100, a size such as '64 KiB', or auto (the default): "
                             f"1 MiB, less where that would make fewer than {FEW_CHUNKS} chunks")
    parser.add_argument("--out", default="zcore-demo", metavar="DIR", help="folder for the results "
                                                                         "(default: %(default)s)")
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}")
    machine.add_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; returns 0, or 1 when something came back different.

    Raises : ValueError, if no format can hold the data.
    """
    source = load(arguments.path, arguments.array)
    data = source.data
    chunks = grid_of(arguments.chunks, "--chunks")
    if chunks == "auto":
        chunks = f"{max(1, min(TARGET_NBYTES, data.nbytes // FEW_CHUNKS))} B"
    if not arguments.no_picture:
        # Imported before the long write: a missing matplotlib is found at once.
        with Needing("the picture (--no-picture goes without) needs", "matplotlib", "demo", "pictures"):
            import matplotlib  # noqa: F401
    # In memory first, and without elements: a format refuses data before there is a folder.
    drafts, refusals = _drafts(source, chunks)
    draft = next(iter(drafts.values()))
    stem = os.path.splitext(source.name)[0]
    copies = [stem + ending for _, ending, _ in COPIES]
    pictures = [] if arguments.no_picture else [PICTURE]
    output = Output(arguments.out, [*(stem + ending for name, ending, _ in FORMATS if name in drafts), *copies,
                                    *pictures], stale=[*copies, PICTURE])

    described = (f"{lengths(data.shape)} {data.dtype}, {data.nbytes:,} bytes, in {plural(draft.nchunks, 'chunk')} of "
                 f"{lengths(draft.chunks)}")
    say = (lambda text: None) if arguments.json else print
    say(f"zcore {zcore.__version__}: {source.title}{f' ({source.note})' if source.note else ''}\n{described}\n")
    trips = [_trip(output.path(stem + ending), data, name, partial(written, data=data, label=name, chunks=chunks,
                                                                  **keywords))
             for name, ending, keywords in FORMATS if name in drafts]
    last, first = trips[-1], trips[0].path
    for name, ending, inside in COPIES:
        path = output.path(stem + ending)
        try:
            if name == REFERENCES:
                trips.append(RoundTrip(path, data, name, partial(_refer, first), inside, first))
            else:
                trips.append(RoundTrip(path, data, name, partial(_copy, first), inside))
        except (ValueError, zcore.UnsupportedError) as exc:
            refusals[name] = str(exc)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
    facts = [_facts(trip) for trip in trips]
    rows = {row["format"]: _row(row, data.nbytes) for row in facts} | {
        name: (name, f"not written: {why}") for name, why in refusals.items()}
    rows = [rows[name] for name, _, _ in (*FORMATS, *COPIES)]
    if not arguments.json:
        _print_trips(trips, rows, source.name)
    drawn = None
    if not arguments.no_picture:
        reason = obstacle(data.dtype, data.shape)
        if reason is None:
            drawn = output.path(PICTURE)
            output.write(PICTURE, picture_of(last.array, source))
        say(f"no picture: {reason}" if drawn is None else f"picture : {drawn}")
    if arguments.json:
        machine.show({"name": source.name, "shape": data.shape, "dtype": data.dtype, "nbytes": data.nbytes,
                      "formats": facts, "refused": refusals, "picture": drawn})
    return 1 if any(trip.differences for trip in trips) else 0


def _drafts(source, chunks):
    """Return arrays like the data, without elements, and reasons why there are no others: by the name of the format."""
    data = source.data
    drafts, refusals = {}, {}
    for name, _, keywords in FORMATS:
        try:
            draft = zcore.create_array(MemoryStore(), shape=data.shape, dtype=data.dtype, chunks=chunks, **keywords)
        except (ValueError, zcore.UnsupportedError) as exc:
            refusals[name] = str(exc)
            continue
        if draft.dtype == data.dtype:
            drafts[name] = draft
        else:
            # Fields of Zarr v3 lie without gaps, in one byte order: the same values, not the same bytes.
            refusals[name] = f"its elements would be {draft.dtype}"
    if not drafts:
        # Formats with the same reason share it.
        reasons = {reason: [name for name in refusals if refusals[name] == reason] for reason in refusals.values()}
        raise ValueError(f"{source.name}: the data are {data.ndim}-d {data.dtype}, which no format can write: "
                         + "; ".join(f"{reason} ({', '.join(names)})" for reason, names in reasons.items()))
    return drafts, refusals


def picture_of(array: zcore.Array, source: DemoData) -> bytes:
    """Return the picture of an array that was read back, as `zcore plot` draws it: the bytes of a PNG file."""
    from zcore.cli.show import drawing, figure

    # Of an image the first colour is drawn.
    selection = (slice(None), slice(None), *[0] * (array.ndim - 2)) if source.is_image else None
    values, box, quantity = plane_of(array, selection, *figure.MAX_DOTS, quantity=source.quantity)
    png = io.BytesIO()
    drawing.save(figure.plane(array, values, box, *levels_of(values), quantity, source.title), png, "png")
    return png.getvalue()


def _trip(path, data, name, make):
    """Return the round trip through one format; an error begins with the name of the format."""
    try:
        return RoundTrip(path, data, name, make)
    except Exception as exc:
        exc.add_note(name)
        raise


def _copy(source, path):
    zcore.copy(source, path, overwrite=True)


def _refer(source, path):
    zcore.references(source).save(path)


def _print_trips(trips, rows, name):
    """Print the table, the paths, and the differences from the data of a file."""
    print(table(HEADER, rows))
    print(f"\nfiles in the system's cache, {plural(zcore.config.threads, 'thread')}"
          f"{f', best of {N_REPEATS}' if is_repeated(trips[0].nbytes) else ''}")
    for i, trip in enumerate(trips):
        print(f"{'' if i else 'arrays  :':9} {trip.path}")
    for trip in trips:
        if trip.differences:
            first, *others = trip.differences
            more = f" and {plural(len(others), 'other place')}" if others else ""
            print(f"zcore demo: {trip.label}: {trip.path} differs from {name} at [{first}]{more}", file=sys.stderr)


def _facts(trip):
    """Return the results of one format, for programs."""
    n_files, n_bytes = map(sum, zip(*map(files_and_bytes, trip.paths), strict=True))
    return {"format": trip.label, "path": trip.path, "chunks": trip.array.chunks, "files": n_files, "bytes": n_bytes,
            "ratio": trip.nbytes / n_bytes, "write_seconds": trip.write_seconds, "read_seconds": trip.read_seconds,
            "parts": trip.n_windows, "differences": trip.differences}


def _row(facts, nbytes):
    """Return the cells of the table for one format."""
    verdict = f"equal, whole and {plural(facts['parts'], 'part')}"
    if facts["differences"]:
        verdict = f"DIFFERENT in {plural(len(facts['differences']), 'place')}"
    times = [text for seconds in (facts["write_seconds"], facts["read_seconds"])
             for text in (duration(seconds), megabytes_per_second(nbytes, seconds))]
    return facts["format"], str(facts["files"]), f"{facts['bytes']:,}", f"{facts['ratio']:.2f}", *times, verdict


def files_and_bytes(path: str) -> tuple[int, int]:
    """Return the number of files at `path`, a file or directory, and their bytes."""
    if os.path.isfile(path):
        return 1, os.path.getsize(path)
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return len(sizes), sum(sizes)
