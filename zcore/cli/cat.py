"""Print elements of an array, or write them out.

A selection is what stands between NumPy's brackets. Text has a line for each row, the last dimension, with blanks
between the elements; an array of one dimension has a line for each element. Whatever the size of the array, only some
64 MB of it are in memory at a time, unless lists of indices select. One that begins with a minus and has no blanks
stands behind two more, as in the last example.

Examples:
  zcore cat data.zarr/2016/t2m "0, 10:20, ::2"
  zcore cat data.zarr/2016/t2m --format npy --out t2m.npy
  zcore cat data.zarr/2016/t2m --format raw | md5sum
  zcore cat data.zarr/2016/t2m -- -1,::-1
"""
import sys

from zcore.cli import machine, place

FORMATS = ("text", "npy", "raw")


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=place.METAVAR, help=place.HELP)
    parser.add_argument("selection", nargs="?", default="...", metavar="SELECTION",
                        help="what of the array (default: all)")
    parser.add_argument("--format", choices=FORMATS, help="text; a .npy file; or the bytes of the elements in C order "
                        "(default: by the name of the file, else text)")
    parser.add_argument("--out", metavar="FILE", help="where to (default: the standard output)")
    machine.add_option(parser)


def run(arguments):
    """Write the elements."""
    from zcore.cli.selection import parse_selection, pieces_of

    if arguments.json and arguments.format not in (None, "text"):
        raise ValueError("--json is a format of its own; --format cannot name another one")
    by_name = "npy" if (arguments.out or "").endswith(".npy") else "text"
    form = "json" if arguments.json else arguments.format or by_name
    array = place.opened_array(arguments.path)
    if form in ("npy", "raw") and not arguments.out and sys.stdout.isatty():
        raise ValueError(f"--format {form} is no text for a terminal: name a file by --out, or send it to another "
                         "program")
    shape, pieces = pieces_of(array, parse_selection(arguments.selection))
    if arguments.out:
        with open(arguments.out, "wb") as file:
            _write(file, form, array, shape, pieces)
    else:
        sys.stdout.flush()
        _write(sys.stdout.buffer, form, array, shape, pieces)
        sys.stdout.buffer.flush()
    return 0


def _write(file, form, array, shape, pieces):
    from zcore.cli import elements

    if form == "text":
        elements.write_text(file, shape, pieces)
    elif form == "json":
        elements.write_json(file, shape, pieces)
    else:
        elements.write_bytes(file, shape, pieces, array.dtype, with_header=form == "npy")
