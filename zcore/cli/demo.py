"""Write real data in every format zcore has, read them back, check every bit, and draw them.

Without PATH the data are the digital elevation model that matplotlib ships. What is written lies below one folder
afterwards, to be looked at; nothing there is replaced that an earlier run did not make.
"""
import os
import sys

import zcore
from zcore.cli.output import Output
from zcore.cli.printed import duration, lengths, megabytes_per_second, plural, table
from zcore.cli.round_trip import N_REPEATS, RoundTrip, is_repeated
from zcore.cli.source import KINDS, load
from zcore.model.auto_chunks import TARGET_NBYTES, parse_nbytes
from zcore.stores.memory import MemoryStore

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS = (
    ("Zarr v3", ".zarr", {"zarr_format": 3}),
    ("Zarr v3, one shard", ".shard.zarr", {"zarr_format": 3, "shards": "auto"}),
    ("Zarr v2", ".v2.zarr", {"zarr_format": 2}),
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)
HEADER = ("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "read back")
PICTURE = "zcore-demo.png"
FEW_CHUNKS = 8                 # that the automatic chunks of small data come to, at least


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", metavar="PATH",
                        help=f"your own data: {KINDS} (default: matplotlib's elevation model)")
    parser.add_argument("--array", metavar="NAME", help="array of an .npz file (default: the first)")
    parser.add_argument("--chunks", default="auto", metavar="CHUNKS",
                        help="elements per dimension such as 100,100, a size such as '64 KiB', or auto (the default): "
                             f"1 MiB, less where that would make fewer than {FEW_CHUNKS} chunks")
    parser.add_argument("--out", default="zcore-demo", metavar="DIR", help="folder for what is written "
                                                                         "(default: %(default)s)")
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}")


def run(arguments):
    """Run the demo; returns 0, or 1 when something came back different."""
    source = load(arguments.path, arguments.array)
    data = source.data
    chunks = _chunks(arguments.chunks, data)
    if not arguments.no_picture:
        # Asked for now: who lacks it should not learn so after a long write.
        from zcore.cli import picture
    # In memory first, and without elements: what a format refuses is refused before there is a folder.
    drafts = [_draft(source, chunks, name, keywords) for name, _, keywords in FORMATS]
    stem = os.path.splitext(source.name)[0]
    pictures = [] if arguments.no_picture else [PICTURE]
    output = Output(arguments.out, [*(stem + ending for _, ending, _ in FORMATS), *pictures], stale=[PICTURE])

    _print_source(source, drafts[0])
    trips = [RoundTrip(output.path(stem + ending), data, name, chunks=chunks, **keywords)
             for name, ending, keywords in FORMATS]
    _print_trips(trips, source.name)
    if not arguments.no_picture:
        reason = picture.obstacle(data)
        if reason is None:
            output.write(PICTURE, picture.draw(trips[-1].array, source))
        print(f"picture : {output.path(PICTURE)}" if reason is None else f"no picture: {reason}")
    return 1 if any(trip.differences for trip in trips) else 0


def _chunks(text, data):
    """Return the `chunks` of `create_array` that the option `text` stands for."""
    if text == "auto":
        return f"{max(1, min(TARGET_NBYTES, data.nbytes // FEW_CHUNKS))} B"
    try:
        if text[-1:].isalpha():
            # A size has its unit here: a bare number is a length.
            parse_nbytes(text)
            return text
        chunks = tuple(map(int, text.split(",")))
        if min(chunks) < 1:
            raise ValueError("a length is at least 1")
    except ValueError as exc:
        raise ValueError("--chunks: expected lengths of at least 1 such as 100,100, a size such as '64 KiB', or auto, "
                         f"found {text!r}") from exc
    if len(chunks) > data.ndim:
        raise ValueError(f"--chunks: expected at most {plural(data.ndim, 'length')}, one for each dimension, "
                         f"found {len(chunks)}")
    return chunks


def _draft(source, chunks, name, keywords):
    """Return an array like the data, without elements, in one of the formats."""
    data = source.data
    try:
        return zcore.create_array(MemoryStore(), shape=data.shape, dtype=data.dtype, chunks=chunks, **keywords)
    except (ValueError, zcore.UnsupportedError) as exc:
        raise ValueError(f"{source.name}: the data are {data.ndim}-d {data.dtype}, which cannot be written as {name}: "
                         f"{exc}") from exc


def _print_source(source, draft):
    """Print what the data are and how an array divides them."""
    data = source.data
    print(f"zcore {zcore.__version__}: {source.title}{f' ({source.note})' if source.note else ''}\n"
          f"{lengths(data.shape)} {data.dtype}, {data.nbytes:,} bytes, in {plural(draft.nchunks, 'chunk')} of "
          f"{lengths(draft.chunks)}\n")


def _print_trips(trips, name):
    """Print what came of the data of a file in each format."""
    print(table(HEADER, map(_row, trips)))
    print(f"\nfiles in the system's cache, {plural(zcore.config.threads, 'thread')}"
          f"{f', best of {N_REPEATS}' if is_repeated(trips[0].nbytes) else ''}")
    print(f"arrays  : {', '.join(trip.path for trip in trips)}")
    for trip in trips:
        if trip.differences:
            first, *others = trip.differences
            more = f" and {plural(len(others), 'other place')}" if others else ""
            print(f"zcore demo: {trip.path} differs from {name} at [{first}]{more}", file=sys.stderr)


def _row(trip):
    """Return the cells of the table for one format."""
    n_files, n_bytes = files_and_bytes(trip.path)
    verdict = f"equal, whole and {plural(trip.n_windows, 'part')}"
    if trip.differences:
        verdict = f"DIFFERENT at [{trip.differences[0]}]"
    return (
        trip.label, str(n_files), f"{n_bytes:,}", f"{trip.nbytes / n_bytes:.2f}",
        duration(trip.write_seconds), megabytes_per_second(trip.nbytes, trip.write_seconds),
        duration(trip.read_seconds), megabytes_per_second(trip.nbytes, trip.read_seconds),
        verdict,
    )


def files_and_bytes(path):
    """Return the number of files at `path`, a file or directory, and their bytes."""
    if os.path.isfile(path):
        return 1, os.path.getsize(path)
    sizes = [os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    return len(sizes), sum(sizes)
