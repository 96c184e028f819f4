"""List the arrays and groups at a path.

Of a folder that is not a group the arrays and groups in it are listed, and HDF5, NumPy, ASDF and zip files. For a
member that cannot be opened the error is shown, and the exit code is 1 then.

Examples:
  zcore ls data.zarr
  zcore ls -rl data.zarr/2016
  zcore ls --json data.zarr
"""
from __future__ import annotations

import argparse
import os

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.cli.show.printed import lengths, nbytes_text, table
from zcore.cli.words import translated
from zcore.text.printable import printable

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = ("format", "type", "shape", "chunks", "stored", "name")
COLOUR: dict[str, str | None] = {"group": "blue", "array": None, "error": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", default=os.curdir, metavar=location.METAVAR,
                        help=f"{location.HELP} (default: the current directory)")
    parser.add_argument("-r", "--recursive", action="store_true", help="list all levels, not only the first one")
    parser.add_argument("-l", "--long", action="store_true", help="a table with types, shapes, chunks and sizes")
    # Nothing is hidden.
    parser.add_argument("-a", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """List the nodes; returns 1 if one cannot be opened."""
    from zcore.cli.show.facts import short

    pairs = listed(arguments.path, None if arguments.recursive else 0)
    is_whole = True
    if arguments.json or arguments.long:
        rows = []
        for path, node in pairs:
            rows.append(short(path, node))
            if rows[-1]["kind"] == "array" and arguments.long:
                try:
                    rows[-1]["nbytes_stored"] = node.nbytes_stored() if node.store.lists else None
                except zcore.StoreError:
                    # An object is unreachable.
                    rows[-1]["nbytes_stored"] = None
        is_whole = all(row["kind"] != "error" for row in rows)
        if arguments.json:
            machine.show(rows)
        elif rows:
            print(table(HEADER, map(_cells, rows)))
    else:
        for path, node in pairs:
            row = short(path, node)
            print(_name_of(row) + (f"  {printable(translated(row['message']))}" if row["kind"] == "error" else ""))
            is_whole = is_whole and row["kind"] != "error"
    return 0 if is_whole else 1


def listed(text: str, max_depth: int | None) -> Iterator[tuple[str, zcore.Array | zcore.Group | zcore.ZcoreError]]:
    """Iterate over (path, node) for a PATH: the members of a group, an array, or the nodes in a folder."""
    from zcore.hierarchy import lookup
    from zcore.stores import openers

    try:
        found = location.opened(text)
    except zcore.NodeNotFoundError:
        if not os.path.isdir(text):
            raise
        store = zcore.DirectoryStore(os.path.abspath(text), read_only=True)
        kinds = (openers.HDF5, openers.NPY, openers.NPZ, openers.ZIP, openers.ASDF)
        files = {name for name in os.listdir(text)
                 if openers.named_kind(name) in kinds and os.path.isfile(os.path.join(text, name))}
        for name in sorted(files.union(lookup.members(store, ""))):
            try:
                node = location.opened(os.path.join(text, name)) if name in files else zcore.open(store, path=name)
            except zcore.ZcoreError as error:
                if name in files and isinstance(error, zcore.NodeNotFoundError):
                    continue     # an archive of something else
                if not (name in files or lookup.is_damage(error)):
                    raise
                node = error
            yield name, node
            if isinstance(node, zcore.Group) and max_depth is None:
                yield from ((f"{name}/{path}", member) for path, member in node.walk())
        return
    if isinstance(found, zcore.Array):
        yield text, found
    else:
        yield from found.walk(max_depth)


def _name_of(row):
    colour = COLOUR[row["kind"]]
    name = printable(row["path"]) + ("/" if row["kind"] == "group" else "")
    return painted(name, colour) if colour else name


def _cells(row):
    if row["kind"] != "array":
        kind = row["kind"] if row["kind"] == "group" else row["error"]
        return str(row.get("format", "")), kind, "", "", "", _name_of(row)
    shards = f" in shards of {lengths(row['shards'])}" if row["shards"] else ""
    return (str(row["format"]), printable(row["dtype"]), lengths(row["shape"]),
            "-" if row["chunks"] is None else f"{lengths(row['chunks'])}{shards}",
            "?" if row["nbytes_stored"] is None else nbytes_text(row["nbytes_stored"]), _name_of(row))
