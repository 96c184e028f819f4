"""ASDF files as destinations of copies (extra "asdf"); as sources they are stores, see `zcore.stores.asdf.store`.

The tree of a file is written before its blocks, and says where these are. So arrays are written to files of their own
first, and the ASDF file is made of these, mapped.
"""
import os

import numpy as np

from zcore.asdf.tree.dump import dump
from zcore.errors import UnsupportedError
from zcore.model.metadata import has_varying_items
from zcore.stores.asdf.nodes import key_of, name_of
from zcore.stores.keys import TEMPORARY
from zcore.tools.files.numpy import NumpyTarget, note_losses


class AsdfSink:
    """A new ASDF file: groups are mappings of its tree with attributes and members, arrays are blocks."""

    def __init__(self, path, name, losses):
        self._path = path
        self._name = name
        self._losses = losses
        self._tree = {}
        self._groups = []
        self._arrays = []
        self._taken = set()    # keys of nodes, with those above them
        self._folder = os.path.dirname(path)
        self._files = []

    def _put(self, name, value):
        """Put a node into the tree."""
        parts = [part for part in (*self._name.split("/"), *name.split("/")) if part] or ["data"]
        keys = [key_of(part) if name_of(key_of(part)) == part else part for part in parts]
        if name_of(keys[-1]) != parts[-1]:
            self._losses.note("the name as it is, but escaped", name)
        place, above = self._tree, ()
        for key in keys[:-1]:
            place = place.setdefault(key, {})
            above = *above, key
        if (*above, keys[-1]) in self._taken:
            raise UnsupportedError(f"{name}: another member of the group has this name in an ASDF file",
                                   feature="names that differ in escapes alone")
        self._taken.add((*above, keys[-1]))
        if keys[-1] in place:
            self._losses.note(f"the attribute {keys[-1]!r:.60}, as a member of the group has its name",
                              name.rpartition("/")[0])
        place[keys[-1]] = value

    def group(self, name, source):
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

    def array(self, name, source, wanted):
        """Make a file for an array, and return it as what is written to."""
        dtype = source.dtype if wanted.dtype is None else np.dtype(wanted.dtype)
        if has_varying_items(dtype) or dtype.kind in "mMV" and dtype.names is None:
            raise UnsupportedError(f"{name or 'the array'}: ASDF has no type for {dtype}", feature=f"{dtype} in ASDF")
        note_losses(name, source, self._losses)
        self._files.append(os.path.join(self._folder, f"{TEMPORARY}{len(self._files)}.npy"))
        return NumpyTarget(self._files[-1], source.shape, dtype, wanted.order or source.order)

    def end(self, name):
        """Put the array that was made last into the tree."""
        try:
            elements = np.load(self._files[-1], mmap_mode="r", allow_pickle=False)
        except ValueError:      # nothing is there to be mapped
            elements = np.load(self._files[-1], allow_pickle=False)
        self._put(name, elements)
        self._arrays.append(name)

    def close(self):
        """Write the file."""
        from zcore import asdf

        for name in self._groups:
            if name and not any([array.startswith(f"{name}/") for array in self._arrays]):
                self._losses.note("groups in which no array is", name)
        asdf.write(self._path, self._tree)

    def discard(self):
        """Let go of the files of arrays."""
        self._tree = {}
