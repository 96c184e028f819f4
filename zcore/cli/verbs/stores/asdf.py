"""List the parts of ASDF files, extract arrays, explode and implode them.

info lists the parts of a file, blocks lists its blocks. extract writes an array without its mask to an .npy file, or
the decoded bytes of a block to any file. explode writes a file of text and one file for each block, implode makes one
file of them again; without a TARGET they choose names beside FILE, and print the name of each file. `zcore verify`
reads every block and compares the checksums.

Examples:
  zcore asdf blocks image.asdf
  zcore asdf extract image.asdf /roman/data data.npy
  zcore asdf extract image.asdf 0 block.bin
"""
from __future__ import annotations

import argparse

from zcore import asdf
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.printed import table
from zcore.errors import ZcoreError
from zcore.text.printable import plural, printable

COLUMNS = ("block", "offset", "allocated", "used", "decoded", "md5", "compression")
MAX_NAMED = 5                  # arrays that an error names


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, act, summary in (
            ("info", _info, "list the parts of a file"), ("blocks", _blocks, "list the blocks of a file"),
            ("extract", _extract, "write an array, or a block, to a file"),
            ("explode", _explode, "write a file of text, and one for each block"),
            ("implode", _implode, "write one file again")):
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        action.add_argument("path", metavar="FILE", help="an ASDF file")
        if name == "extract":
            action.add_argument("what", metavar="WHAT",
                                help="path of an array in the tree, such as /a/b, or the number of a block, from the "
                                     "last one if it is negative")
        if name in ("extract", "explode", "implode"):
            action.add_argument("target", metavar="TARGET", nargs=None if name == "extract" else "?",
                                help="the file that is written")
        if name in ("explode", "implode"):
            action.add_argument("--overwrite", action="store_true", help="replace existing files")
        action.set_defaults(act=act)


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    from zcore.stores.openers import check_file

    is_block = arguments.action == "extract" and arguments.what.removeprefix("-").isdecimal()
    if getattr(arguments, "target", None) is not None and not is_block:
        check_file(arguments.target, *(("a .npy file", ".npy") if arguments.action == "extract" else
                                       ("an ASDF file", ".asdf")))
    arguments.act(arguments)
    return 0


def _info(arguments):
    with asdf.open(arguments.path) as file:
        blocks = file.blocks
        n_blocks = len(blocks.found.offsets)
        if not arguments.json:
            print(f"header   : ASDF {file.header}, standard {file.standard}")
            for comment in file.comments:
                print(f"comment  : {printable(comment)}")
            print(f"tree     : {plural(len(file.tree_text), 'byte')}")
            print(f"blocks   : {n_blocks}{', found by the index' if blocks.found.is_indexed else ''}")
        if blocks.fault is not None:
            raise blocks.fault
        arrays = list(_arrays_of(file.tree))
        if arguments.json:
            machine.show({"header": file.header, "standard": file.standard, "comments": file.comments,
                          "tree_nbytes": len(file.tree_text), "n_blocks": n_blocks,
                          "is_indexed": blocks.found.is_indexed,
                          "arrays": [_facts(name, array) for name, array in arrays]})
        else:
            for name, array in arrays:
                print(f"array    : {printable(name)} {printable(repr(array))}")


def _facts(name, array):
    """Return the facts of an array for JSON; for a damaged one the fault."""
    try:
        return {"path": name, "shape": array.shape, "dtype": str(array.dtype), "source": array.source}
    except ZcoreError as error:
        return {"path": name, "fault": str(error)}


def _arrays_of(tree):
    """Yield (path, NDArrayNode) of the arrays of a tree, each object once."""
    pending, seen = [("", tree)], set()
    while pending:
        name, value = pending.pop()
        if id(value) in seen:
            continue
        if isinstance(value, asdf.NDArrayNode):
            yield name, value
        elif isinstance(value, dict | list):
            seen.add(id(value))
            members = value.items() if isinstance(value, dict) else enumerate(value)
            pending += [(f"{name}/{str(key).replace('~', '~0').replace('/', '~1')}", member)
                        for key, member in reversed(list(members))]


def _blocks(arguments):
    with asdf.open(arguments.path) as file:
        blocks = [file.blocks[number] for number in range(len(file.blocks.found.offsets))]
        if arguments.json:
            machine.show([{"block": block.number, "offset": block.offset, "allocated": block.allocated,
                           "used": block.used, "decoded": block.data_size,
                           "md5": block.checksum and block.checksum.hex(), "compression": block.compression,
                           "is_streamed": block.is_streamed} for block in blocks])
        elif blocks:
            print(table(COLUMNS, [_row(block) for block in blocks]))
        if file.blocks.fault is not None:
            raise file.blocks.fault


def _row(block):
    sizes = map(str, (block.number, block.offset, block.allocated, block.used, block.data_size))
    return [*sizes, "yes" if block.checksum else "no",
            "streamed" if block.is_streamed else printable(block.compression or "none")]


def _extract(arguments):
    import numpy as np

    with asdf.open(arguments.path) as file:
        if arguments.what.removeprefix("-").isdecimal():
            data = file.blocks[int(arguments.what)].read()
            with location.replaced(arguments.target) as target:
                target.write(data)
        else:
            elements = _array_called(file, arguments.what).elements()
            # To the file, and not its name, which would get an ending.
            with location.replaced(arguments.target) as target:
                np.save(target, elements, allow_pickle=False)
    _tell_of(arguments, [arguments.target])


def _array_called(file, name):
    """Return an array by its path, with or without the ``/`` before it."""
    found = dict(_arrays_of(file.tree))
    array = found.get(f"/{name.removeprefix('/')}", found.get(name))
    if array is None:
        names = ", ".join(list(found)[:MAX_NAMED]) or "none"
        rest = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise ValueError(f"{file.path} has no array {name!r}; its arrays are {names}{rest}")
    return array


def _explode(arguments):
    _tell_of(arguments, asdf.explode(arguments.path, arguments.target, overwrite=arguments.overwrite), printed=True)


def _implode(arguments):
    _tell_of(arguments, [asdf.implode(arguments.path, arguments.target, overwrite=arguments.overwrite)], printed=True)


def _tell_of(arguments, paths, printed=False):
    """Print which files were written: as JSON, or as text where the command chose the names."""
    if arguments.json:
        machine.show({"written": paths})
    elif printed:
        print("\n".join(map(printable, paths)))
