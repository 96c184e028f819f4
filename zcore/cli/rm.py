"""Delete arrays and groups.

The document of a node goes first, then its chunks: a run that is stopped leaves no array with holes. Files that belong
to no node stay where they are.

Examples:
  zcore rm data.zarr/2016/t2m
  zcore rm -r data.zarr/2016
"""
import contextlib
import os

from zcore.cli import machine, place


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("paths", nargs="+", metavar=place.METAVAR, help=place.HELP)
    parser.add_argument("-r", "--recursive", action="store_true", help="groups with all that is in them, too")
    machine.add_option(parser)


def run(arguments):
    """Delete the nodes; nothing is deleted unless all of them can be."""
    from zcore import lifecycle, nodes
    from zcore.errors import NodeNotFoundError
    from zcore.options import Options

    found = []
    for text in arguments.paths:
        store, path = place.located(text)
        store = nodes.store_of(store, False, False)
        # Not opened: a damaged node can go, too.
        if not nodes.stands(store, path):
            raise NodeNotFoundError(f"{store.describe(path)} holds no node", path=path)
        if not arguments.recursive and next(nodes.children(store, path), None) is not None:
            raise ValueError(f"{text} is a group that is not empty; -r deletes it with all that is in it")
        found.append((store, path))
    for store, path in found:
        lifecycle.delete(store, path, Options())
        if not path and store.native_path is not None:
            with contextlib.suppress(OSError):
                # Left by a store at its root; one with other people's files stays.
                os.rmdir(store.native_path)
    if arguments.json:
        machine.show({"deleted": arguments.paths})
    return 0
