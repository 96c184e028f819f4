"""Print elements of an array, or write them to a file.

A selection is written as between NumPy's brackets. Text has a line for each row, the last dimension, with blanks
between the elements; an array of one dimension has a line for each element. A terminal gets the ends of a large array
alone, as NumPy shows them, unless --all is given. Some 64 MB of an array of any size are in
memory at a time, unless the selection has lists of indices. A selection that begins with a minus and has no blanks
comes behind --, as in the last example.

Examples:
  zcore cat data.zarr/2016/t2m "0, 10:20, ::2"
  zcore cat data.zarr/2016/t2m --format npy --out t2m.npy
  zcore cat data.zarr/2016/t2m --format raw | md5sum
  zcore cat data.zarr/2016/t2m -- -1,::-1
"""
from __future__ import annotations

import argparse
import math
import sys

from zcore.cli import location
from zcore.cli.show.colours import painted
from zcore.cli.show.printed import lengths

MAX_SHOWN = 1000               # elements that a terminal gets at once, as of NumPy
# Of each format its name, and the ending of a file of it.
FORMATS = {"text": ("text", ".txt"), "npy": ("a .npy file", ".npy"), "raw": ("raw bytes", ".bin"),
           "json": ("JSON", ".json")}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("selection", nargs="?", default="...", metavar="SELECTION",
                        help="as between NumPy's brackets (default: all)")
    parser.add_argument("--format", choices=("text", "npy", "raw"), help="text; a .npy file; or the bytes of the "
                        "elements in C order (default: by the name of the file, else text)")
    parser.add_argument("--all", action="store_true", help="print all elements of a large array to a terminal, too")
    parser.add_argument("--out", metavar="FILE", help="where to (default: the standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Write the elements."""
    from zcore.cli.selection import parse_selection, selected
    from zcore.stores import openers

    if arguments.json and arguments.format not in (None, "text"):
        raise ValueError("--json and --format exclude each other")
    by_name = "npy" if arguments.out and openers.named_kind(arguments.out) is openers.NPY else "text"
    form = "json" if arguments.json else arguments.format or by_name
    if arguments.out:
        openers.check_file(arguments.out, *FORMATS[form])
    array = location.opened_array(arguments.path)
    if form in ("npy", "raw") and not arguments.out and sys.stdout.isatty():
        raise ValueError(f"--format {form} cannot go to a terminal: name a file by --out, or send it to another "
                         "program")
    view = selected(array, parse_selection(arguments.selection))
    if arguments.out:
        with location.replaced(arguments.out) as file:
            _write(file, form, view)
    elif form == "text" and sys.stdout.isatty() and not arguments.all and math.prod(view.shape) > MAX_SHOWN:
        from zcore.cli.show.elements import shortened

        print(shortened(view))
        print(painted(f"{lengths(view.shape)} elements, --all prints them", "dim"))
    else:
        sys.stdout.flush()
        _write(sys.stdout.buffer, form, view)
        sys.stdout.buffer.flush()
    return 0


def _write(file, form, view):
    from zcore.cli.selection import pieces_of
    from zcore.cli.show import elements

    shape, pieces = view.shape, pieces_of(view)
    if form == "text":
        elements.write_text(file, shape, pieces)
    elif form == "json":
        elements.write_json(file, shape, pieces)
    else:
        elements.write_bytes(file, shape, pieces, view.dtype, with_header=form == "npy")
