"""The options and the work of `cp`, `convert` and `rechunk`: one engine, `zcore.copy`."""
from __future__ import annotations

import argparse
import contextlib
import os
import warnings

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.errors import IncompleteCopyWarning
from zcore.formats import NAMES, name_from
from zcore.stores import openers

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from typing import Any

SOURCE = ("array or group: a directory, a zip archive or reference set or a node in it, or a .npy, .npz, ASDF, "
          "HDF5 or TIFF file")
DESTINATION = "a new directory, or one in a group, or a new .zip, .ozx, .npy, .npz, ASDF or HDF5 file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the three verbs, which are the same."""
    parser.add_argument("source", metavar="SOURCE", nargs="+", help=SOURCE)
    parser.add_argument("destination", metavar="DESTINATION", help=DESTINATION)
    parser.add_argument("--selection", metavar="SELECTION", help="integers and slices of an array (default: all)")
    parser.add_argument("--stack", action="store_true", help="stack the arrays of all sources along a new first "
                                                             "dimension")
    parser.add_argument("--along", metavar="NAME", help="join the arrays of all sources along the dimension of "
                                                        "that name")
    parser.add_argument("--chunks", metavar="LENGTHS", help="elements of a chunk per dimension, a size such as '4 MB', "
                                                            "or auto (default: as they are); in a group for "
                                                            "the arrays with as many dimensions")
    parser.add_argument("--shards", metavar="LENGTHS", help="the same of shards, or none, which cuts them up (default: "
                                                            "as they are)")
    parser.add_argument("--zarr-format", choices=tuple(map(str, NAMES)), help="Zarr v3, Zarr v2, or __zmeta__ of 2016 "
                                                                           "(default: as it is)")
    parser.add_argument("--compressor", metavar="CODEC", help="none, auto, zstd:LEVEL, blosc:CNAME:LEVEL, … as for "
                                                              "zcore create (default: as it is)")
    parser.add_argument("--checksum", action="store_true", help="append crc32c to the codecs of new Zarr v3 arrays")
    parser.add_argument("--dtype", metavar="TYPE", help="new type of the elements")
    parser.add_argument("--order", choices=("C", "F"), help="memory order of the elements in a chunk")
    parser.add_argument("--overwrite", action="store_true", help="replace an old destination")
    parser.add_argument("--memory", default="1 GB", metavar="SIZE", help="memory for elements (default: "
                                                                         "%(default)s)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that work (default: one for each CPU)")


def keywords_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that say how the copy differs, as keywords of `zcore.copy`: None is as the source has it."""
    from zcore.cli.option_values import compressor_of, grid_of
    from zcore.cli.selection import parse_selection

    compressor, shards = arguments.compressor, arguments.shards
    return {"selection": None if arguments.selection is None else parse_selection(arguments.selection),
            "chunks": None if arguments.chunks is None else grid_of(arguments.chunks, "--chunks"),
            "shards": None if shards is None else False if shards == "none" else grid_of(shards, "--shards"),
            "compressors": None if compressor is None else () if compressor == "none" else compressor_of(compressor),
            "zarr_format": None if arguments.zarr_format is None else name_from(arguments.zarr_format),
            "dtype": arguments.dtype, "order": arguments.order, "checksum": arguments.checksum}


def run(arguments: argparse.Namespace) -> int:
    """Copy, show the result, and return the exit code: 1 if members were left out.

    Raises : ValueError, if `rechunk` is given neither chunks nor shards, or several sources are not joined.
    """
    from zcore.cli.show import facts
    from zcore.cli.show.printed import ProgressLine

    if arguments.verb == "rechunk" and arguments.chunks is arguments.shards is None:
        raise ValueError("expected --chunks or --shards")
    is_many = arguments.stack or arguments.along is not None
    if len(arguments.source) > 1 and not is_many:
        raise ValueError(f"{len(arguments.source)} sources are stacked by --stack, or joined by --along NAME")
    sources, paths = zip(*map(_located, arguments.source), strict=True)
    source, path = (list(sources), list(paths)) if is_many else (sources[0], paths[0])
    destination, destination_path = _located(arguments.destination)
    with _left_out() as left_out, ProgressLine(f"copying to {arguments.destination}") as progress:
        made = zcore.copy(source, destination, path=path, destination_path=destination_path, along=arguments.along,
                          overwrite=arguments.overwrite, memory=arguments.memory, threads=arguments.threads,
                          progress=progress.to, **keywords_of(arguments))
    if arguments.json:
        machine.show(facts.full(made) if made is not None else {"path": arguments.destination})
    return 1 if left_out else 0


@contextlib.contextmanager
def _left_out():
    """Return a context manager of a list, which gets the warnings of members that are left out."""
    found = []
    show = warnings.showwarning

    def note(message, category, *where):
        if issubclass(category, IncompleteCopyWarning):
            found.append(message)
        show(message, category, *where)

    warnings.showwarning = note
    try:
        yield found
    finally:
        warnings.showwarning = show


def _located(text):
    """Return a store as `zcore.copy` takes it, and the path in it; a file of another kind is one itself."""
    # Also in the directory of a group.
    is_file = openers.named_kind(text) is not None and not os.path.isdir(text)
    return (text, "") if is_file else location.located(text)
