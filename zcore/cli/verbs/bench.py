"""Measure how fast an array is read and written here, and how fast it would be in other forms.

A sample is read from the store, with one thread and with several. It is then copied in its own form and in others to a
hidden folder beside the store, written and read there, and removed again. `zcore convert` makes a form by the options
in its row. Times are of files in the system's cache, the best of three.

Examples:
  zcore bench data.zarr/2016/t2m
  zcore bench data.zarr/2016/t2m --sample "256 MB" --threads 1,2,8
  zcore bench archive.zip/t2m --folder /scratch
"""
from __future__ import annotations

import argparse
import math
import os

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.printed import ProgressLine, best_of, duration, megabytes_per_second, nbytes_text, table
from zcore.text.printable import plural

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy.typing as npt

    from zcore.cli.show.facts import Sizes
    from zcore.model.metadata import ArrayMetadata

SHARD_NBYTES = 2**24           # decoded, of the shards that are tried


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("--sample", default="64 MB", metavar="SIZE", help="decoded bytes to read and write "
                                                                          "(default: %(default)s)")
    parser.add_argument("--threads", metavar="NUMBERS", help="threads to read with, such as 1,2,8 (default: 1 and one "
                                                             "for each CPU)")
    parser.add_argument("--no-write", action="store_true", help="write nothing: measure only reading")
    parser.add_argument("--folder", metavar="DIR", help="where to write (default: beside the store)")


def run(arguments: argparse.Namespace) -> int:
    """Measure."""
    from tempfile import TemporaryDirectory

    import numpy as np

    from zcore.cli.option_values import lengths_of
    from zcore.cli.show import facts
    from zcore.text.arguments import parse_nbytes

    try:
        nbytes = parse_nbytes(arguments.sample)
        threads = {1, zcore.config.threads} if arguments.threads is None else {*lengths_of(arguments.threads, 1)}
    except ValueError as exc:
        raise ValueError(f"--sample, --threads: {exc}") from None
    array = location.opened_array(arguments.path)
    folder = None if arguments.no_write else _folder(arguments.folder, array.store)
    if array.itemsize == 0 or array.dtype.hasobject or array.dtype.kind == "T":
        raise ValueError(f"elements of type {array.dtype} have no fixed length, which this needs")
    sizes = facts.stored_sizes(array) if array.store.lists else None
    if sizes == {} or array.metadata.n_chunks == 0:
        raise ValueError("the array has no stored chunk, there is nothing to measure")
    region = region_of(array.metadata, sizes, nbytes)
    values, forms = np.asarray(array[region]), []
    with ProgressLine(f"measuring {arguments.path}") as progress:
        read_seconds = {n: best_of(zcore.open_array(array.store, path=array.path, threads=n).read, region)
                        for n in sorted(threads)}
        if folder is not None:
            with TemporaryDirectory(prefix=".zcore-bench-", dir=folder) as made:
                # Of a file that is no store, with the codecs of the file.
                source = array if facts.source_of(array) is None else array.store.uri
                own = zcore.copy(source, f"{made}/own", selection=region, path="" if source is array else array.path)
                forms = measure_forms(own, values, made, progress)
    if arguments.json:
        machine.show({"path": arguments.path, "nbytes": values.nbytes, "forms": forms,
                      "read": [{"threads": n, "seconds": seconds} for n, seconds in read_seconds.items()]})
        return 0
    print(f"sample: {nbytes_text(values.nbytes)}, in the system's cache")
    for n, seconds in read_seconds.items():
        print(f"{'read, ' + plural(n, 'thread'):17} {duration(seconds):>9}"
              f"  {megabytes_per_second(values.nbytes, seconds):>6} MB/s")
    if forms:
        print()
        print(table(("form", "files", "bytes", "ratio", "write MB/s", "read MB/s", "one chunk", "options"), [
            (row["name"], str(row["objects"]), f"{row['nbytes_stored']:,}",
             f"{values.nbytes / max(1, row['nbytes_stored']):.2f}",
             megabytes_per_second(values.nbytes, row["write_seconds"]),
             megabytes_per_second(values.nbytes, row["read_seconds"]), duration(row["chunk_seconds"]), row["option"])
            for row in forms]))
    return 0


def _folder(given, store):
    """Return where to write: beside the store, if it is a directory."""
    from zcore.stores.base import directory_at

    if given is not None:
        return given
    directory = directory_at(store)
    if directory is None:
        raise ValueError("the store is not a directory, so there is no folder beside it: name a --folder, or "
                         "measure only reading by --no-write")
    return os.path.dirname(os.path.abspath(directory))


def region_of(metadata: ArrayMetadata, sizes: Sizes | None, nbytes: int) -> tuple[slice, ...]:
    """Return the slab of whole objects that the first stored one is in; of unequal objects that one alone.

    Parameters
    ----------
    metadata : ArrayMetadata
    sizes : dict or None
        Of the stored objects; None where the store has no listing.
    nbytes : int
        Decoded, roughly the most; a single object is the least.
    """
    from zcore.tools.rechunk import slab_of

    starts, lengths = metadata.place_of(min(sizes) if sizes else (0,) * metadata.ndim)
    if metadata.edges is None:
        lengths = slab_of(metadata.shape, metadata.chunk_shape, metadata.itemsize, nbytes)
        starts = [start // length * length for start, length in zip(starts, lengths, strict=True)]
    return tuple([slice(start, min(start + length, end)) for start, length, end
                  in zip(starts, lengths, metadata.shape, strict=True)])


def forms_of(own: zcore.Array) -> Iterator[tuple[str, str]]:
    """Yield names of forms, and the options of `zcore convert` that make them of an array."""
    yield "as it is", ""
    yield "blosc, lz4", "--compressor blosc:lz4:5"
    yield "blosc, zstd", "--compressor blosc:zstd:3"
    if own.metadata.edges is not None:
        return
    chunks, shape = own.chunks, own.shape
    for name, other in (("larger chunks", [min(2 * chunk, max(1, n)) for chunk, n in zip(chunks, shape, strict=True)]),
                        ("smaller chunks", [-(-chunk // 2) for chunk in chunks])):
        if (*other,) != chunks:
            yield name, f"--chunks {_text(other)}"
    if own.shards is None and own.metadata.n_chunks > 1:
        n = max(2, math.ceil((SHARD_NBYTES / (math.prod(chunks) * own.itemsize)) ** (1 / len(chunks))))
        shards = [min(n, -(-length // chunk)) * chunk for chunk, length in zip(chunks, shape, strict=True)]
        yield "in shards", f"--zarr-format 3 --chunks {_text(chunks)} --shards {_text(shards)}"


def _text(lengths):
    return ",".join(map(str, lengths))


def measure_forms(own: zcore.Array, values: npt.NDArray[Any], folder: str,
                  progress: ProgressLine) -> list[dict[str, Any]]:
    """Return what comes of each form, a list of dicts: ``name``, ``option``, bytes, seconds, and those of one chunk.

    They are copies of `own`, the sample in its own form with the given values, in a scratch folder.
    """
    import numpy as np

    from zcore.cli.parser import parser_of
    from zcore.cli.show.facts import stored_sizes
    from zcore.cli.verbs.copying.options import keywords_of

    rows: list[dict[str, Any]] = []
    forms = list(forms_of(own))
    for i, (name, option) in enumerate(forms):
        progress.to(i + 1, len(forms) + 1)
        convert = parser_of("convert").parse_args(["convert", "own", "form", *option.split()])
        try:
            zcore.copy(own, f"{folder}/{i}", **keywords_of(convert))
        except (ValueError, TypeError, zcore.UnsupportedError):
            continue     # the array's format, type or shape does not have this form
        array = zcore.open_array(f"{folder}/{i}", mode="r+")
        write_seconds = best_of(array.__setitem__, ..., values)
        if array[...].tobytes() != values.tobytes():
            raise AssertionError("the elements that were read differ from those written")
        one = next(iter(array.iter_chunks())) if values.ndim else ()
        sizes = stored_sizes(array)
        rows.append({"name": name, "option": option, "nbytes_stored": sum(sizes.values()), "objects": len(sizes),
                     "write_seconds": write_seconds, "read_seconds": best_of(array.read, out=np.empty_like(values)),
                     "chunk_seconds": best_of(array.__getitem__, one)})
    return rows
