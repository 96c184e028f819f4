"""Delete arrays and groups.

The members of a group are deleted before the group: the same command finishes a run that was stopped. The document of
an array is deleted before its chunks. Files that belong to no node stay. If a path is a symbolic link, the link is
deleted, also with a slash behind it, and its target stays.

Examples:
  zcore rm data.zarr/2016/t2m
  zcore rm -r data.zarr/2016
"""
from __future__ import annotations

import argparse
import contextlib
import os

import zcore
from zcore.cli import location
from zcore.cli.show import machine


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("paths", nargs="+", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("-r", "--recursive", action="store_true", help="delete groups with all their members, too")
    # Nothing is asked, so there is nothing to force.
    parser.add_argument("-rf", "-fr", dest="recursive", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Delete the nodes; nothing is deleted unless all of them can be."""
    from zcore.engine.options import Options
    from zcore.hierarchy import deletion
    from zcore.stores.base import directory_at

    found = [_found(text, arguments.recursive) for text in arguments.paths]
    for store, path in found:
        deletion.delete(store, path, Options())
        if not path and (directory := directory_at(store)) is not None:
            with contextlib.suppress(OSError):
                # A store leaves its empty root; a directory with other files stays.
                os.rmdir(directory)
    if arguments.json:
        machine.show({"deleted": arguments.paths})
    return 0


def _found(text, recursive):
    """Return the store and the path of a node to delete; a link is a member of the directory it lies in."""
    from zcore.formats import DOCUMENTS
    from zcore.hierarchy import deletion, lookup
    from zcore.stores.base import directory_at
    from zcore.stores.openers import store_of

    if os.path.basename(text) in DOCUMENTS and os.path.isfile(text):
        # Other verbs take it for its node.
        raise ValueError(f"{text} is the document of a node; {os.path.dirname(text) or os.curdir} is the node")
    store, path = location.located(_as_it_lies(text))
    store = store_of(store, False)
    if not path and (directory := directory_at(store)) is not None and os.path.islink(directory):
        directory, path = os.path.split(directory)
        store = zcore.DirectoryStore(directory, check_base=False)
    is_link = store.folders.is_link(f"{path}/" if path else "")
    # Not opened: a damaged node can go, too.
    if not lookup.node_exists(store, path):
        raise zcore.NodeNotFoundError(deletion.no_node(store, path), path=path)
    if not recursive and not is_link and deletion.has_members(store, path):
        raise ValueError(f"{text} is a group that is not empty; -r deletes it with all its members")
    return store, path


def _as_it_lies(text):
    """Return a path that names a link itself: without a slash or a step up behind it."""
    bare = text.rstrip(os.sep)
    if not os.path.islink(bare):
        return text
    if os.pardir not in bare.split(os.sep):
        return bare
    return os.path.join(os.path.realpath(os.path.dirname(bare)), os.path.basename(bare))
