"""Describe an array or a group, and how much of it is stored.

The map of --chunks has a sign for each object of the grid, a chunk or a shard: a dot for one that is absent, else a
bar, whose height is the size of the object relative to the largest one. In a large grid one sign stands for a square of
objects.

Examples:
  zcore info data.zarr/2016/t2m
  zcore info --chunks data.zarr/2016/t2m
  zcore info --json data.zarr/2016/t2m
"""
from __future__ import annotations

import argparse
import json

from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.cli.show.printed import lengths, nbytes_text
from zcore.text.printable import plural, printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("--chunks", action="store_true", help="show a map of the stored objects and their sizes")


def run(arguments: argparse.Namespace) -> int:
    """Describe the node."""
    from zcore.cli.show import facts

    if arguments.chunks:
        node = location.opened_array(arguments.path)
        if (source := facts.source_of(node)) is not None and source.chunks_of_objects == "auto":
            raise ValueError(f"{arguments.path} has no chunks: its elements are one block of the file")
        sizes = facts.stored_sizes(node)
    else:
        node, sizes = location.opened(arguments.path), None
    rows = facts.full(node, sizes)
    if arguments.json:
        if sizes is not None:
            rows["stored"] = [{"coords": coords, "nbytes": nbytes} for coords, nbytes in sorted(sizes.items())]
        machine.show(rows)
        return 0
    for name, value in _for_people(rows, node):
        print(f"{painted(f'{name:11}', 'dim')} {value}")
    if sizes is not None:
        print("", *facts.chunk_map(rows["object_grid"], sizes), sep="\n")
    return 0


def _for_people(rows, node):
    """Yield names and texts of the rows."""
    from zcore.formats import FORMAT_OF, format_of
    from zcore.model.value import text_of

    yield "path", printable(f"{rows['store']}/{rows['path']}".rstrip("/"))
    is_file = rows["format"] not in FORMAT_OF.values()
    yield "format", f"{rows['format'] + ',' if is_file else format_of(rows['format']).title} {rows['kind']}"
    if rows["kind"] == "group":
        yield "below", f"{plural(rows['arrays'], 'array')}, {plural(rows['groups'], 'group')}"
        if rows["errors"]:
            yield "errors", painted(f"{plural(rows['errors'], 'member')} that cannot be opened", "red")
    else:
        yield "shape", lengths(rows["shape"])
        if rows["dimension_names"]:
            yield "dimensions", printable(", ".join(name or "-" for name in rows["dimension_names"]))
        yield "type", printable(rows["dtype"])
        yield "fill value", printable(text_of(rows["fill_value"], str))
        if rows["chunks"] is not None:
            yield "chunks", lengths(rows["chunks"])
        if rows["shards"]:
            yield "shards", lengths(rows["shards"])
        codecs = [f"{codec['name']}({', '.join(f'{name}={value}' for name, value in codec['configuration'].items())})"
                  for codec in rows["codecs"]] if is_file else map(repr, node._chunk_chain.codecs)
        yield "codecs", printable(", ".join(codecs) or "none")
        yield "decoded", nbytes_text(rows["nbytes"])
        ratio = f" (ratio {rows['ratio']:.2f})" if rows["ratio"] else ""
        yield "stored", ("not known: the store has no listing, or an object is unreachable"
                         if rows["nbytes_stored"] is None else f"{nbytes_text(rows['nbytes_stored'])}{ratio}")
        if rows["chunks"] is not None:
            objects = plural(rows["objects"], "shard" if rows["shards"] else "chunk")
            known = "" if rows["objects_stored"] is None else f"{rows['objects_stored']} of "
            yield "present" if known else "objects", f"{known}{objects}, in a grid of {lengths(rows['object_grid'])}"
    for i, (name, value) in enumerate(rows["attributes"].items()):
        shown = json.dumps(value, ensure_ascii=False)
        yield "" if i else "attributes", printable(f"{name} = {shown if len(shown) <= 200 else shown[:199] + '…'}")
