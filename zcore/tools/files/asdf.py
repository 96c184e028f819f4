"""ASDF files as destinations of copies (extra "asdf"); as sources they are stores, see `zcore.stores.asdf.store`.

The tree of a file is written before its blocks and gives their places. So arrays are written to files of their own
first, and the ASDF file is made from these, mapped.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from zcore.asdf.tree.dump import dump
from zcore.errors import UnsupportedError
from zcore.stores.asdf.nodes import key_of, name_of
from zcore.stores.keys import TEMPORARY
from zcore.tools.files.numpy import NpySink, dtype_of

if TYPE_CHECKING:
    from zcore.tools.copy.sources import SourceArray, SourceGroup
    from zcore.tools.copy.translate import CopyRequest, Losses
    from zcore.tools.files.numpy import NumpyTarget


class AsdfSink(NpySink):
    """A new ASDF file: groups are mappings of its tree with attributes and members, arrays are blocks."""

    def __init__(self, path: str, name: str, losses: Losses) -> None:
        super().__init__(path, "", losses)
        self._path = path
        self._name = name
        self._tree = {}
        self._groups = []
        self._arrays = []
        self._taken = set()    # keys of nodes, with those above them

    def _put(self, name, value):
        """Put a node into the tree."""
        parts = [part for part in (*self._name.split("/"), *name.split("/")) if part] or ["data"]
        keys = [key_of(part) if name_of(key_of(part)) == part else part for part in parts]
        if name_of(keys[-1]) != parts[-1]:
            self._losses.note("the name as it is, but escaped", name)
        members, above = self._tree, ()
        for key in keys[:-1]:
            members = members.setdefault(key, {})
            above = *above, key
        if (*above, keys[-1]) in self._taken:
            raise UnsupportedError(f"{name}: another member of the group has this name in an ASDF file",
                                   feature="names that differ in escapes alone")
        self._taken.add((*above, keys[-1]))
        if keys[-1] in members:
            self._losses.note(f"the attribute {keys[-1]!r:.60}, as a member of the group has its name",
                              name.rpartition("/")[0])
        members[keys[-1]] = value

    def group(self, name: str, source: SourceGroup) -> None:
        """Make a mapping of a group; see `zcore.tools.copy.destinations`."""
        attributes = {}
        for label, value in source.attributes.items():
            try:
                dump({label: value}, None)
            except (TypeError, ValueError):
                self._losses.note(f"the attribute {label!r:.60}, which ASDF cannot express", name)
            else:
                attributes[label] = value
        if name or self._name:
            self._put(name, attributes)
        else:
            self._tree.update(attributes)
        self._groups.append(name)

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> NumpyTarget:
        """Return the target of the elements of a new array, a file of its own."""
        dtype = dtype_of(source, wanted)
        if dtype.kind in "mMV" and dtype.names is None:
            raise UnsupportedError(f"{name or 'the array'}: ASDF has no type for {dtype}", feature=f"{dtype} in ASDF")
        self._file = os.path.join(os.path.dirname(self._path), f"{TEMPORARY}{len(self._arrays)}.npy")
        return super().array(name, source, wanted)

    def end(self, name: str) -> None:
        """Put the array that was made last into the tree."""
        try:
            elements = np.load(self._file, mmap_mode="r", allow_pickle=False)
        except ValueError:      # no elements, nothing to map
            elements = np.load(self._file, allow_pickle=False)
        self._put(name, elements)
        self._arrays.append(name)

    def close(self) -> None:
        """Write the file."""
        from zcore import asdf

        for name in self._groups:
            if name and not any([array.startswith(f"{name}/") for array in self._arrays]):
                self._losses.note("groups without arrays", name)
        asdf.write(self._path, self._tree)

    def discard(self) -> None:
        """Release the files of arrays."""
        self._tree = {}
