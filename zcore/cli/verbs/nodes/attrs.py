"""Show attributes, set them, or delete them.

A VALUE is JSON; anything else is text. All changes of one call are one write. Without a change all attributes are
shown, or the one called NAME.

Examples:
  zcore attrs data.zarr/2016/t2m
  zcore attrs data.zarr/2016/t2m units
  zcore attrs data.zarr/2016/t2m --set units K --set valid_range "[150, 350]" --delete title
"""
from __future__ import annotations

import argparse
import json

from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.text.printable import printable

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("name", nargs="?", metavar="NAME", help="the attribute to show (default: all)")
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="set an attribute; may be given several times")
    parser.add_argument("--delete", action="append", default=[], metavar="NAME",
                        help="delete an attribute; may be given several times")


def run(arguments: argparse.Namespace) -> int:
    """Show the attributes, or change them."""
    changes = dict(parsed(pair) for pair in arguments.set)
    if changes or arguments.delete:
        if arguments.name is not None:
            raise ValueError(f"expected an attribute to show, such as {arguments.name!r}, or changes, not both")
        attributes = location.opened(arguments.path, "r+").attrs
        if missing := [name for name in arguments.delete if name not in attributes]:
            raise ValueError(f"{arguments.path} has no attribute {missing[0]!r}")
        attributes.change(changes, arguments.delete)
        return 0
    attributes = location.opened(arguments.path).attrs.asdict()
    if arguments.name is not None and arguments.name not in attributes:
        raise ValueError(f"{arguments.path} has no attribute {arguments.name!r}; --set NAME VALUE sets one")
    if arguments.json:
        machine.show(attributes if arguments.name is None else attributes[arguments.name])
    elif arguments.name is not None:
        value = attributes[arguments.name]
        print(printable(value) if isinstance(value, str) else json.dumps(value))
    else:
        for name, value in attributes.items():
            print(f"{painted(printable(name), 'cyan')} = {printable(json.dumps(value, ensure_ascii=False))}")
    return 0


def parsed(pair: Sequence[str]) -> tuple[str, Any]:
    """Return the name and the value of an attribute that are given as two texts."""
    from zcore.text.strict_json import TooManyDigitsError, checked

    name, text = pair
    try:
        return name, checked(json.loads, text)
    except TooManyDigitsError:
        raise
    except (ValueError, RecursionError):
        return name, text
