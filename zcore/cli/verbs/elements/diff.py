"""Compare two arrays, or two hierarchies.

Shapes, types, dimension names, attributes and values are compared, in groups those of all members. Formats, chunks,
codecs and the byte order are not. With --data, values alone are compared, and what they cannot be compared without:
members, kinds, shapes. NaN is equal to NaN. The exit code is 0 without a difference, 1 with one, and 2 when
the comparison fails.

Examples:
  zcore diff a.zarr b.zarr
  zcore diff --rtol 1e-6 a.zarr/t2m b.zarr/t2m
  zcore diff --data --rtol 1e-6 float32.zarr float64.zarr
  zcore diff --quiet --no-attributes a.zarr b.zip && echo equal
"""
from __future__ import annotations

import argparse

from zcore.cli import location
from zcore.cli.show import machine
from zcore.text.printable import printable

FAILURE = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("first", metavar="FIRST", help=location.HELP)
    parser.add_argument("second", metavar="SECOND", help="the other array or group")
    parser.add_argument("--atol", type=float, default=0.0, metavar="X",
                        help="values are equal if they differ by no more than X (default: 0)")
    parser.add_argument("--rtol", type=float, default=0.0, metavar="R",
                        help="or by no more than R times the second value (default: 0)")
    parser.add_argument("--no-attributes", action="store_true", help="do not compare attributes")
    parser.add_argument("--data", action="store_true",
                        help="compare values alone, of any numeric types; not types, dimension names and attributes")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing, and stop at the first difference")


def run(arguments: argparse.Namespace) -> int:
    """Compare; returns 0, or 1 when there is a difference."""
    from zcore.cli.verbs.elements.differences import differences

    if not (arguments.atol >= 0 and arguments.rtol >= 0):
        raise ValueError("a tolerance is a number that is not negative")
    found = []
    for difference in differences(location.opened(arguments.first), location.opened(arguments.second), arguments.rtol,
                                  arguments.atol, with_attributes=not (arguments.no_attributes or arguments.data),
                                  with_types=not arguments.data):
        found.append(difference)
        if arguments.quiet:
            break
        if not arguments.json:
            print(f"{printable(difference['path'] or '/')}: {printable(difference['text'])}", flush=True)
    if arguments.json:
        machine.show({"equal": not found, "differences": found})
    return 1 if found else 0
