"""Look into ASDF files, take arrays out of them, explode and implode them.

`info` tells the parts of a file, `blocks` lists its blocks, `verify` walks along it, reads every block and compares the
checksums, `extract` writes an array to an .npy file, or the decoded bytes of a block to any. `explode` writes a file of
text and one for each block, `implode` makes one of them again.

Examples:
  zcore asdf blocks image.asdf
  zcore asdf extract image.asdf /roman/data data.npy
  zcore asdf extract image.asdf 0 block.bin
"""
from zcore.cli import machine
from zcore.cli.printed import plural, table
from zcore.letters import printable

HEADER = ("block", "offset", "allocated", "used", "decoded", "md5", "compression")


def configure(parser):
    """Add the arguments of the verb."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, act, summary in (
            ("info", _info, "tell the parts of a file"), ("blocks", _blocks, "list the blocks of a file"),
            ("verify", _verify, "read all blocks and compare their checksums"),
            ("extract", _extract, "write an array, or a block, to a file"),
            ("explode", _explode, "write a file of text, and one for each block"),
            ("implode", _implode, "write one file again")):
        action = actions.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        action.add_argument("path", metavar="FILE")
        if name == "extract":
            action.add_argument("what", metavar="WHAT",
                                help="path of an array in the tree, such as /a/b, or the number of a block")
        if name in ("extract", "explode", "implode"):
            action.add_argument("target", metavar="TARGET", nargs=None if name == "extract" else "?",
                                help="the file that is written")
        machine.add_option(action)
        action.set_defaults(act=act)


def run(arguments):
    """Do what was asked for; returns 0, or 1 when a file is damaged."""
    return arguments.act(arguments) or 0


def _info(arguments):
    from zcore import asdf

    with asdf.open(arguments.path) as file:
        n_blocks = len(file.blocks.found.offsets)
        if arguments.json:
            if file.blocks.fault is not None:
                raise file.blocks.fault
            machine.show({
                "version": str(file.header), "standard": str(file.standard), "comments": list(map(str, file.comments)),
                "tree_nbytes": len(file.tree_text), "blocks": n_blocks, "indexed": file.blocks.found.is_indexed,
                "arrays": [name for name, _ in _arrays_of(file.tree)]})
            return
        print(f"header   : ASDF {file.header}, standard {file.standard}")
        for comment in file.comments:
            print(f"comment  : {printable(comment)}")
        print(f"tree     : {plural(len(file.tree_text), 'byte')}")
        print(f"blocks   : {n_blocks}{', found by the index' if file.blocks.found.is_indexed else ''}")
        if file.blocks.fault is not None:
            raise file.blocks.fault
        for name, array in _arrays_of(file.tree):
            print(f"array    : {printable(name)} {printable(repr(array))}")


def _arrays_of(tree):
    """Yield (path, NDArrayNode) of the arrays of a tree, each object once."""
    from zcore.asdf import NDArrayNode

    pending, seen = [("", tree)], set()
    while pending:
        name, value = pending.pop()
        if id(value) in seen:
            continue
        if isinstance(value, NDArrayNode):
            yield name, value
        elif isinstance(value, dict | list):
            seen.add(id(value))
            members = value.items() if isinstance(value, dict) else enumerate(value)
            pending += [(f"{name}/{_escaped(key)}", member) for key, member in reversed(list(members))]


def _escaped(key):
    return str(key).replace("~", "~0").replace("/", "~1")


def _blocks(arguments):
    from zcore import asdf

    with asdf.open(arguments.path) as file:
        rows = [[str(number) for number in (block.number, block.offset, block.allocated, block.used, block.data_size)]
                + ["yes" if block.checksum else "no", "streamed" if block.is_streamed else block.compression or "none"]
                for block in map(file.blocks.__getitem__, range(len(file.blocks.found.offsets)))]
        if arguments.json:
            machine.show([dict(zip(HEADER, row, strict=True)) for row in rows])
        elif rows:
            print(table(HEADER, rows))
        if file.blocks.fault is not None:
            raise file.blocks.fault


def _verify(arguments):
    from zcore import asdf
    from zcore.errors import ZcoreError

    faults, n_checked = [], 0
    with asdf.open(arguments.path) as file:
        blocks = file.blocks
        for number in range(len(blocks.found.offsets)):
            try:
                n_checked += blocks[number].verify()
                if blocks[number].checksum is None:
                    blocks[number].read()
            except ZcoreError as exc:
                faults.append(str(exc))
        if blocks.fault is not None:
            faults.append(str(blocks.fault))
    n_blocks = len(blocks.found.offsets)
    if arguments.json:
        machine.show({"path": arguments.path, "ok": not faults, "blocks": n_blocks, "checked": n_checked,
                      "faults": faults})
        return 1 if faults else 0
    for fault in faults:
        print(printable(fault))
    verdict = "ok" if not faults else plural(len(faults), "fault")
    print(f"{printable(arguments.path)}: {verdict}; {plural(n_blocks, 'block')}, {n_checked} with a checksum")
    return 1 if faults else 0


def _extract(arguments):
    import numpy as np

    from zcore import asdf

    with asdf.open(arguments.path) as file:
        if arguments.what.lstrip("-").isdecimal():
            data = file.blocks[int(arguments.what)].read()
            with open(arguments.target, "wb") as target:
                target.write(data)
        else:
            found = dict(_arrays_of(file.tree))
            name = f"/{arguments.what.lstrip('/')}"
            if name not in found:
                raise ValueError(f"{arguments.path} has no array {name}; its arrays are {', '.join(found) or 'none'}")
            array = found[name].read()
            # To the file, and not its name, which would get an ending.
            with open(arguments.target, "wb") as target:
                np.save(target, np.ma.filled(array), allow_pickle=False)
    if arguments.json:
        machine.show({"written": [arguments.target]})


def _explode(arguments):
    from zcore import asdf

    _print_written(arguments, asdf.explode(arguments.path, arguments.target))


def _implode(arguments):
    from zcore import asdf

    _print_written(arguments, [asdf.implode(arguments.path, arguments.target)])


def _print_written(arguments, paths):
    if arguments.json:
        machine.show({"written": list(paths)})
    else:
        print("\n".join(map(printable, paths)))
