"""Show a hierarchy as a tree.

For a member that cannot be opened the error is shown, and the exit code is 1 then.

Examples:
  zcore tree data.zarr
  zcore tree --depth 1 archive.zip
"""
from __future__ import annotations

import argparse
import os

from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.cli.show.printed import lengths
from zcore.text.printable import printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", default=os.curdir, metavar=location.METAVAR,
                        help=f"{location.HELP} (default: the current directory)")
    parser.add_argument("--depth", type=int, metavar="LEVELS", help="levels to show (default: all)")


def run(arguments: argparse.Namespace) -> int:
    """Show the tree; returns 1 where a part of it cannot be opened."""
    from zcore.cli.verbs.nodes.ls import listed
    from zcore.nodes.info import drawn

    if arguments.depth is not None and arguments.depth < 1:
        raise ValueError(f"--depth: expected at least 1, found {arguments.depth}")
    top = {"name": arguments.path, "members": {}}
    lines, is_whole = [], True
    for path, node in listed(arguments.path, None if arguments.depth is None else arguments.depth - 1):
        if path == arguments.path:
            top |= _branch(path, node)
            break
        *above, name = path.split("/")
        group = top
        for part in above:
            group = group["members"][part]
        group["members"][name] = _branch(name, node)
        lines.append((path, _line(group["members"][name])))
        is_whole = is_whole and "error" not in group["members"][name]
    if arguments.json:
        machine.show(top)
    else:
        print("\n".join([_line(top) if "kind" in top else painted(printable(top["name"]), "blue"), *drawn(lines)]))
    return 0 if is_whole else 1


def _branch(name, node):
    from zcore.cli.show.facts import short

    rows = short(name, node)
    del rows["path"]
    return {"name": name, **rows, **({"members": {}} if rows["kind"] == "group" else {})}


def _line(branch):
    name = printable(branch["name"])
    if branch["kind"] == "group":
        return painted(name, "blue")
    if branch["kind"] == "error":
        return f"{painted(name, 'red')}  {branch['error']}"
    return f"{name}  {lengths(branch['shape'])} {printable(branch['dtype'])}"
