"""A PATH of the command line: a store, and the path of a node in it.

A path goes into a store as into a folder: ``data.zarr/2016/t2m``, ``archive.zip/2016/t2m``. A directory that lies in a
hierarchy is opened from the top of that, so that a change reaches the consolidated metadata of the groups above it.
"""
from __future__ import annotations

import contextlib
import os
from itertools import islice

import zcore
from zcore.errors import NodeNotFoundError, noted, warn
from zcore.formats import DOCUMENTS
from zcore.stores import openers

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from zcore.typing import Mode

METAVAR = "PATH"
HELP = "array or group: a directory, URL or file, or a node in it, such as a.zip/2016/t2m"


def opened(text: str, mode: Mode = "r", *, with_files: bool = True, **keywords: Any) -> zcore.Array | zcore.Group:
    """Return the array or group that a PATH names; `mode` and `keywords` are those of `zcore.open`.

    `with_files`: also one of a file that is no store, for reading.
    """
    store, path = located(text)
    if with_files and mode == "r" and (kind := openers.kind_of(store)) is not None and kind.opener is None:
        # A file that is no store, such as one of HDF5.
        from zcore.tools.copy.sources import open_source
        from zcore.tools.files.store import SourceStore

        with noted() as notes:
            source = open_source(store, path, None, None)
        if notes:
            warn(notes[0] + (f"; {len(notes) - 1} more of its kind" if len(notes) > 1 else ""))
        store = SourceStore(source, store, kind.name, path)
    try:
        return zcore.open(store, mode, path=path, **keywords)
    except NodeNotFoundError:
        if "://" not in text and isinstance(store, str) and not os.path.isfile(store) and not os.path.lexists(text):
            raise FileNotFoundError(f"{text} does not exist") from None
        raise


def opened_array(text: str, **keywords: Any) -> zcore.Array:
    """Return the array that a PATH names.

    Raises : NodeNotFoundError, if it is a group.
    """
    found = opened(text, **keywords)
    if isinstance(found, zcore.Group):
        arrays = (path for path, node in islice(found.walk(), 50) if isinstance(node, zcore.Array))
        names = ", ".join([f"{text.rstrip('/')}/{path}" for path in islice(arrays, 5)])
        raise NodeNotFoundError(f"{text!r} is a group; expected an array{f', such as {names}' if names else ''}",
                                path=found.path)
    return found


def located(text: str) -> tuple[str, str]:
    """Return the store of a PATH, as `zcore.open` takes it, and the path of the node in it."""
    if openers.kind_of(text) is openers.MEMORY:
        raise ValueError(f"{text}: a store in memory ends with the command")
    if "://" in text or text.startswith("file:"):
        return text, ""
    head, names = text, []
    while head and not os.path.lexists(head):
        # Behind a file the path goes on in it. If nothing exists, the store raises the error.
        above, name = os.path.split(head.rstrip(os.sep))
        if above == head:
            break
        names.insert(0, name)
        head = above
        if os.path.isfile(head):
            return head, "/".join(names)
    if os.path.basename(text) in DOCUMENTS and os.path.isfile(text):
        # A shell's completion leaves the document of a node.
        text = os.path.dirname(text) or os.curdir
    if os.path.isfile(text):
        return text, ""
    return _in_a_set(text) or _from_the_top(text)


def _in_a_set(text):
    """Return the reference set in Parquet above a path, and the rest of the path; None where there is none.

    Its directories hold records instead of documents.
    """
    head, names = text.rstrip(os.sep), []
    while head:
        if os.path.isfile(os.path.join(head, openers.PARQUET_DOCUMENT)) and not _is_node(head):
            return head, "/".join(names)
        head, name = os.path.split(head)
        if not name:
            break
        names.insert(0, name)
    return None


@contextlib.contextmanager
def replaced(path: str) -> Iterator[BinaryIO]:
    """Return a context manager of a file, which gets its name when it is complete; a pipe is written directly.

    So a file of the name is always complete.
    """
    from zcore.asdf.writing import replacing

    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:
            yield file
    else:
        with replacing(path) as fd, open(fd, "wb", closefd=False) as file:
            yield file


def _from_the_top(directory):
    """Return the topmost group above a directory, and the path from there.

    Of directories that are not there yet, one named ``.zarr`` will be a group.
    """
    # Links in the path stay as they are, unless a .. follows.
    absolute = (os.path.realpath if os.pardir in directory.split(os.sep) else os.path.abspath)(directory)
    above, top = os.path.dirname(absolute), absolute
    while not os.path.lexists(above):
        if above.endswith(".zarr"):
            top = above
        above = os.path.dirname(above)
    while above != top and _is_node(above):
        top, above = above, os.path.dirname(above)
    if top == absolute:
        return directory, ""
    return top, os.path.relpath(absolute, top).replace(os.sep, "/")


def _is_node(directory):
    return any(os.path.isfile(os.path.join(directory, document)) for document in DOCUMENTS)
