"""Where a tree comes from: its blocks, its file, and the other files that it names.

Another file is opened only when the caller reads from it, and only where a reference set might point as well
(`zcore.trust`): below the directory of the file that names it, or where the caller allows it.
"""
from __future__ import annotations

import os
import re
import weakref
from _thread import RLock  # of threading, without its import time
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.tagged import TaggedMapping
from zcore.errors import AsdfFormatError, NodeNotFoundError, ReferenceTargetError, UnsupportedError
from zcore.trust.targets import AllowedTargets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from zcore.asdf.tree.ndarray import NDArrayNode
    from zcore.typing import StrPath

MAX_HOPS = 64       # references that lead to references
MAX_OPEN = 16       # other files that are held

_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):").match


class Origin:
    """The file around the nodes of a tree.

    Parameters
    ----------
    blocks : sequence of Block
    n_text : int
        Bytes of the tree's text.
    path : str, optional
        Of the file; without one there are no other files.
    allowed : sequence of str, optional
        Directories besides that of the file where others may lie, see `ReferenceStore`; an empty list allows no other
        file.
    opener : callable, optional
        ``opener(path, allowed=allowed)`` returns another file, an `AsdfFile`; a tree with a path has it.
    standard : str, optional
        The version of the ASDF standard that the file names.
    """

    __slots__ = ("blocks", "n_text", "path", "allowed", "standard", "root", "arrays", "_opener", "_others", "_buffers",
                 "_counts", "_lock")

    def __init__(self, blocks: Sequence[Any] = (), n_text: int = 0, path: str | None = None,
                 allowed: Sequence[StrPath] | None = None, opener: Callable[..., Any] | None = None,
                 standard: str | None = None) -> None:
        self.blocks: Sequence[Any] = blocks
        self.n_text: int = n_text
        self.path: str | None = path
        self.allowed: Sequence[StrPath] | None = allowed
        self.standard: str | None = standard
        # The tree, if it has references. Nodes hold their origin, and what holds itself is let go late, with its file.
        self.root: Any = None
        self.arrays: list[Any] = []       # weak references to all nodes of arrays
        self._opener = opener
        self._others = {}
        self._buffers = None   # the decoded blocks that are in use, by their numbers
        self._counts = None
        # Reentrant: a signal handler may read.
        self._lock = RLock()

    # blocks

    def number_of(self, source: int) -> int:
        """Return the number of a block of this file, counted from the first one."""
        # Their number is asked for only where it is needed: the file may be damaged behind the block.
        return source if source >= 0 else source + len(self.blocks)

    def block_of(self, source: int | str) -> Any:
        """Return the block that a number or a URI means; a URI means the first block of its file."""
        if isinstance(source, str):
            other = self.other(source)
            blocks, number = other.blocks, 0
        else:
            blocks, number = self.blocks, self.number_of(source)
        try:
            if number < 0:
                raise IndexError
            return blocks[number]
        except IndexError as exc:
            raise AsdfFormatError(f"ndarray: there is no block {source!r:.200}, the file has {len(blocks)}",
                                  member="source", block=source) from exc

    def bytes_of(self, source: int | str, start: int, stop: int) -> tuple[Any, int]:
        """Return bytes of a decoded block, and the offset of the first of them.

        A block of several arrays is read as a whole, once as long as one of them is held: they share its memory.
        """
        block = self.block_of(source)
        key = source if isinstance(source, str) else self.number_of(source)
        is_whole = start == 0 and stop == block.data_size
        if not (block.is_compressed or is_whole or self._is_shared(key)):
            return np.frombuffer(block.read_range(start, stop - start), np.uint8), start
        if self._buffers is None:
            self._buffers = weakref.WeakValueDictionary()
        data = self._buffers.get(key)
        if data is None:
            self._buffers[key] = data = np.frombuffer(block.read(), np.uint8)
        return data, 0

    def _is_shared(self, key):
        if self._counts is None:
            self._counts = counts = {}
            for node in self.nodes():
                source = node.members.get("source")
                if isinstance(source, int):
                    source = self.number_of(source)
                if isinstance(source, int | str):
                    counts[source] = counts.get(source, 0) + 1
        return self._counts.get(key, 0) > 1

    def nodes(self) -> list[NDArrayNode]:
        """Return all nodes of arrays that are still held."""
        return [node for node in [array() for array in self.arrays] if node is not None]

    # other files

    def other(self, uri: str) -> Any:
        """Return the `AsdfFile` that a URI names, without its fragment; or this origin.

        Raises
        ------
        UnsupportedError
            It is remote.
        ReferenceTargetError
            It may not be read, or cannot be.
        """
        uri = uri.partition("#")[0]
        if not uri:
            return self
        path = self.path_of(uri)
        if self.path is not None and path == os.path.realpath(self.path):
            return self
        with self._lock:
            file = self._others.pop(path, None)
            if file is None:
                try:
                    file = self._opener(path, allowed=self.allowed)
                except NodeNotFoundError as exc:
                    raise ReferenceTargetError(f"the tree names {uri!r:.200}, which does not exist", key=uri,
                                               url=uri) from exc
            self._others[path] = file
            while len(self._others) > MAX_OPEN:
                # Not closed: a block that the caller holds is read from it.
                self._others.pop(next(iter(self._others)))
        return file

    @property
    def directory(self) -> str | None:
        """The directory that relative URIs count from, None without a file here."""
        return None if self.path is None else os.path.dirname(os.path.realpath(self.path))

    def check_reach(self, uri: str, directory: str | None) -> None:
        """Raise ValueError if a file in another directory cannot name by a URI of this tree what that means here."""
        uri = uri.partition("#")[0]
        if uri and _scheme(uri) is None and directory not in (None, self.directory):
            raise ValueError(f"the tree names {uri!r:.200} in {self.directory or 'a service'}, and the file goes "
                             f"to {directory}; embed=True brings arrays of other files along, and `resolve` returns "
                             "the value of a reference")

    def path_of(self, uri: str) -> str:
        """Return the path of a file that a URI names, if it may be read."""
        from urllib.parse import unquote

        found = _scheme(uri)
        if found is not None and found[1].lower() != "file":
            raise UnsupportedError(f"{uri!r:.200} is remote, and only local ASDF files are read",
                                   feature="remote ASDF files")
        return AllowedTargets(self.directory, self.allowed).path_of(uri, uri if found is not None else unquote(uri))

    def find(self, root: Any, pointer: str, seen: Any) -> Any:
        """Return (value, origin) of a JSON pointer into the tree `root`, unconverted.

        `seen` are the references that lead here, so that one that leads to itself is found.
        """
        value, origin = root, self
        for part in parts_of(pointer):
            while isinstance(value, Reference):
                value, origin = value.follow(seen)
            if isinstance(value, dict):
                key = part if part in value else _other_key(part)
                if key not in value:
                    raise AsdfFormatError(f"$ref: there is no {pointer!r:.200}", member="$ref")
                value = value[key]
            elif isinstance(value, list) and part.isascii() and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            else:
                raise AsdfFormatError(f"$ref: there is no {pointer!r:.200}", member="$ref")
        return value, origin


class Reference(TaggedMapping):
    """A ``{$ref: uri}`` of a tree: the value lies elsewhere, in this file or in another one.

    It is written as it was read. `resolve` returns the value.
    """

    __slots__ = ("_origin",)

    def __init__(self, members: Any, origin: Origin) -> None:
        super().__init__(None, members)
        self._origin = origin

    def __repr__(self) -> str:
        return f"Reference({self['$ref']!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def copy(self) -> Self:
        """Return another reference to the same value."""
        return Reference(self, self._origin)

    def resolve(self) -> Any:
        """Return the value that the reference leads to.

        Raises
        ------
        AsdfFormatError
            It leads nowhere, or to itself.
        UnsupportedError, ReferenceTargetError
            It leads to a file that is remote, may not be read, or cannot be.
        """
        value, seen = self, set()
        while isinstance(value, Reference):
            value, _ = value.follow(seen)
        return value

    def check_reach(self, directory: str | None) -> None:
        """Raise ValueError if the reference means another value in a file in `directory`; see `Origin.check_reach`."""
        self._origin.check_reach(self["$ref"], directory)

    def follow(self, seen: Any) -> Any:
        """Return (value, origin); the value may be another reference."""
        from urllib.parse import unquote

        uri, _, pointer = self["$ref"].partition("#")
        other = self._origin.other(uri)
        origin = other if isinstance(other, Origin) else other.origin
        step = id(origin) if origin.path is None else os.path.realpath(origin.path), pointer
        if step in seen or len(seen) >= MAX_HOPS:
            raise AsdfFormatError(f"$ref: {self['$ref']!r:.200} leads to itself, or over more than {MAX_HOPS} others",
                                  member="$ref")
        seen.add(step)
        return origin.find(other.root, unquote(pointer), seen)


def parts_of(pointer: str) -> list[str]:
    """Return the parts of a JSON pointer (RFC 6901), which files of the `asdf` package begin without a ``/``.

    >>> parts_of("/a~1b/0"), parts_of("a~1b/0")
    (['a/b', '0'], ['a/b', '0'])
    """
    if not pointer:
        return []
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")]


def _other_key(part):
    """Return the key that a part of a pointer means in a mapping whose keys are not texts."""
    if part in ("true", "false"):
        return part == "true"
    return int(part) if part.lstrip("-").isdecimal() and part.isascii() and len(part) < 20 else part
