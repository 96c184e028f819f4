"""Write real data in every format zcore has, read them back, check every bit, and draw them.

Without PATH the data are the digital elevation model that matplotlib ships. What is written lies below one folder
afterwards, to be looked at; nothing there is replaced that an earlier run did not make. A format that cannot hold the
data says why, and the others go on.

Examples:
  zcore demo
  zcore demo my-data.npy --chunks 100,100 --out results
"""
import contextlib
import os
import sys

import zcore
from zcore.cli.show import machine
from zcore.cli.show.levels import obstacle
from zcore.cli.show.printed import duration, lengths, megabytes_per_second, plural, table
from zcore.cli.verbs.demo.output import Output
from zcore.cli.verbs.demo.page import page
from zcore.cli.verbs.demo.round_trip import N_REPEATS, CopyTrip, RoundTrip, is_repeated
from zcore.cli.verbs.demo.source import KINDS, load
from zcore.model.auto_chunks import TARGET_NBYTES
from zcore.stores.memory import MemoryStore
from zcore.text.sizes import parse_nbytes

# Name in the table, ending of the file or directory, keywords of `zcore.create_array`.
FORMATS = (
    ("Zarr v3", ".zarr", {"zarr_format": 3}),
    ("Zarr v3 in shards", ".shard.zarr", {"zarr_format": 3, "shards": "auto"}),
    ("Zarr v2", ".v2.zarr", {"zarr_format": 2}),
    ("__zmeta__", ".zmeta", {"zarr_format": "zmeta"}),
)
# Of files that the first of these arrays is brought into: the same, and the path of the array in the file.
COPIES = (
    ("zip archive", ".zip", ""),
    ("reference set", ".refs.json", ""),
    ("ASDF", ".asdf", "data"),
)
REFERENCES = COPIES[1][0]
HEADER = ("format", "files", "bytes", "ratio", "write", "MB/s", "read", "MB/s", "read back")
PICTURE = "zcore-demo.png"
PAGE = "zcore-demo.html"
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
    parser.add_argument("--no-picture", action="store_true", help=f"do not draw {PICTURE}; {PAGE} is "
                        "without the relief then")
    machine.add_option(parser)


def run(arguments):
    """Run the demo; returns 0, or 1 when something came back different.

    Raises : ValueError, if no format can hold the data.
    """
    source = load(arguments.path, arguments.array)
    data = source.data
    chunks = _chunks(arguments.chunks, data)
    if not arguments.no_picture:
        # Asked for now: who lacks it should not learn so after a long write.
        from zcore.cli.verbs.demo import picture
    # In memory first, and without elements: what a format refuses is refused before there is a folder.
    drafts, refusals = _drafts(source, chunks)
    stem = os.path.splitext(source.name)[0]
    names = [stem + ending for name, ending, _ in FORMATS if name in drafts]
    copies = [stem + ending for _, ending, _ in COPIES]
    pictures = [] if arguments.no_picture else [PICTURE]
    output = Output(arguments.out, [*names, *copies, *pictures, PAGE], stale=[*copies, PICTURE, PAGE])

    if not arguments.json:
        _print_source(source, next(iter(drafts.values())))
    trips = [_trip(output.path(stem + ending), data, name, chunks=chunks, **keywords)
             for name, ending, keywords in FORMATS if name in drafts]
    last = trips[-1]
    for name, ending, inside in COPIES:
        try:
            trips.append(_copy_trip(output.path(stem + ending), data, name, trips[0].path, inside))
        except (ValueError, zcore.UnsupportedError) as exc:
            refusals[name] = str(exc)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(output.path(stem + ending))
    if not arguments.json:
        _print_trips(trips, refusals, source.name)
    drawn = png = None
    if not arguments.no_picture:
        reason = obstacle(data.dtype, data.shape)
        if reason is None:
            drawn = output.path(PICTURE)
            png = picture.draw(last.array, source)
            output.write(PICTURE, png)
        if not arguments.json:
            print(f"no picture: {reason}" if drawn is None else f"picture : {drawn}")
    draft = next(iter(drafts.values()))
    output.write(PAGE, page(source, _described(data, draft), HEADER, _rows(trips, refusals), trips, png).encode())
    if arguments.json:
        machine.show({"name": source.name, "shape": data.shape, "dtype": data.dtype, "nbytes": data.nbytes,
                      "formats": [_facts(trip) for trip in trips], "refused": refusals, "picture": drawn,
                      "page": output.path(PAGE)})
    else:
        print(f"page    : {output.path(PAGE)}")
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


def _drafts(source, chunks):
    """Return arrays like the data, without elements, and why there are no others: both by the name of the format."""
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


def _trip(path, data, name, **keywords):
    """Return the round trip through one format; its name is a note of whatever is raised, and begins the sentence."""
    try:
        return RoundTrip(path, data, name, **keywords)
    except Exception as exc:
        exc.add_note(name)
        raise


def _copy_trip(path, data, name, source, inside):
    """Return the round trip through a file that the array at `source` is brought into."""
    if name == REFERENCES:
        return CopyTrip(path, data, name, lambda path: zcore.references(source).save(path), inside, source)
    return CopyTrip(path, data, name, lambda path: zcore.copy(source, path, overwrite=True), inside)


def _print_source(source, draft):
    """Print what the data are and how an array divides them."""
    data = source.data
    print(f"zcore {zcore.__version__}: {source.title}{f' ({source.note})' if source.note else ''}\n"
          f"{_described(data, draft)}\n")


def _described(data, draft):
    return (f"{lengths(data.shape)} {data.dtype}, {data.nbytes:,} bytes, in {plural(draft.nchunks, 'chunk')} of "
            f"{lengths(draft.chunks)}")


def _rows(trips, refusals):
    """Return the rows of the table, in the order of the formats."""
    rows = {trip.label: _row(trip) for trip in trips} | {
        label: (label, f"not written: {why}") for label, why in refusals.items()}
    return [rows[label] for label, _, _ in (*FORMATS, *COPIES)]


def _print_trips(trips, refusals, name):
    """Print what came of the data of a file in each format."""
    print(table(HEADER, _rows(trips, refusals)))
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
    """Return what came of the data in one format, for programs."""
    n_files, n_bytes = map(sum, zip(*map(files_and_bytes, trip.paths), strict=True))
    return {"format": trip.label, "path": trip.path, "chunks": trip.array.chunks, "files": n_files, "bytes": n_bytes,
            "ratio": trip.nbytes / n_bytes, "write_seconds": trip.write_seconds, "read_seconds": trip.read_seconds,
            "parts": trip.n_windows, "differences": trip.differences}


def _row(trip):
    """Return the cells of the table for one format."""
    n_files, n_bytes = map(sum, zip(*map(files_and_bytes, trip.paths), strict=True))
    verdict = f"equal, whole and {plural(trip.n_windows, 'part')}"
    if trip.differences:
        verdict = f"DIFFERENT in {plural(len(trip.differences), 'place')}"
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
