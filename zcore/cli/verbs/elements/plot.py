"""Draw a slice of an array.

Without a selection the last two dimensions are drawn, in the middle of the others; the two before the last one, if its
length of 3 or 4 is that of colours. A selection has integers and slices.
Colours go from the 1st to the 99th percentile, or between --levels; what is missing is grey. Labels are the names of
dimensions, `long_name` and `units`, ticks are the coordinates beside the array; those of time, such as
"hours since 2000-01-01", are shown as dates. Large arrays are read in steps, which touch 65536 chunks at most.
The picture goes to a file, to an HTML page, or it is drawn in the terminal with letters.

Examples:
  zcore plot data.zarr/2016/t2m
  zcore plot data.zarr/2016/t2m "0, :, 10:90" --out t2m.png
  zcore plot data.zarr/2016/t2m --levels 250,310 --out t2m.svg
  zcore plot data.zarr/2016/t2m --html t2m.html
"""
from __future__ import annotations

import argparse
import math
import sys

from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import has_colours


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("selection", nargs="?", metavar="SELECTION", help="integers and slices")
    parser.add_argument("--levels", metavar="LOW,HIGH", help="values of the first and the last colour")
    parser.add_argument("--out", metavar="FILE", help="a .png, .svg or .pdf file, which needs matplotlib (extra "
                                                      "\"plot\"; default: the terminal)")
    parser.add_argument("--html", metavar="FILE", help="a page with the picture and a description of the array")


def run(arguments: argparse.Namespace) -> int:
    """Draw."""
    from zcore.cli.selection import parse_selection
    from zcore.cli.show.plane import levels_of, plane_of
    from zcore.stores.openers import check_file

    in_file = arguments.out or arguments.html
    if in_file:
        # Before a long read: a missing matplotlib and a wrong name are found at once.
        from zcore.cli.show import figure

        if arguments.out:
            check_file(arguments.out, "a picture", *figure.ENDINGS, needs_ending=True)
        if arguments.html:
            check_file(arguments.html, "an HTML page", ".html", ".htm")
    array = location.opened_array(arguments.path)
    selection = None if arguments.selection is None else parse_selection(arguments.selection)
    if in_file:
        values, box, quantity = plane_of(array, selection, *figure.MAX_DOTS)
    else:
        in_colours = has_colours(sys.stdout)
        room = *_rooms(in_colours), 1 if in_colours else 2
        values, box, quantity = plane_of(array, selection, *room)
    low, high = levels_of(values) if arguments.levels is None else _levels(arguments.levels)
    if in_file:
        drawn = figure.plane(array, values, box, low, high, quantity, arguments.path)
        if arguments.out:
            figure.save(drawn, arguments.out)
        if arguments.html:
            with location.replaced(arguments.html) as file:
                file.write(figure.page(array, drawn, arguments.path).encode())
    elif not arguments.json:
        from zcore.cli.show import plane

        print("\n".join(plane.drawn(plane.enlarged(values, *room), low, high, in_colours=in_colours)))
        shown = f"  {plane.selected(box)}" if len(box) > 2 else ""     # which of several planes
        print(plane.scale(low, high, in_colours=in_colours) + shown)
    if arguments.json:
        machine.show({"path": arguments.path, "out": arguments.out, "levels": [low, high], "quantity": quantity,
                      "selection": [[one.start, one.stop, one.step] if isinstance(one, range) else one for one in box]})
    return 0


def _rooms(in_colours):
    """Return how many rows and columns of values fit into a terminal; a letter is as high as two are wide."""
    import shutil

    size = shutil.get_terminal_size()
    rows = max(1, size.lines - 3)
    return (2 * rows if in_colours else rows), size.columns


def _levels(text):
    try:
        low, high = map(float, text.split(","))
        if not -math.inf < low < high < math.inf:
            raise ValueError
    except ValueError:
        raise ValueError(f"--levels: expected two numbers, the lower one first, such as 250,310, found {text!r}"
                         ) from None
    return low, high
