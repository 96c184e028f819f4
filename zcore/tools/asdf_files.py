"""ASDF files as destinations of copies (extra "asdf"); as sources they are stores, see `zcore.stores.asdf_file`.

The tree of a file is written before its blocks, and says where these are. So arrays are written to files of their own
first, and the ASDF file is made of these, mapped.
"""
import os
import tempfile

import numpy as np

from zcore.errors import UnsupportedError
from zcore.model.metadata import has_varying_items
from zcore.stores.keys import TEMPORARY
from zcore.tools.numpy_files import NumpyTarget, mapped, note_losses


class AsdfSink:
    """A new ASDF file: groups are mappings of its tree with attributes and members, arrays are blocks."""

    def __init__(self, path, name, losses):
        self._path = path
        self._name = name
        self._losses = losses
        self._tree = {}
        self._folder = tempfile.TemporaryDirectory(prefix=f"{TEMPORARY}copy.", dir=os.path.dirname(path))
        self._files = []

    def _place(self, name):
        """Return the mapping that holds a node, and the node's name in it; no name at the root."""
        parts = [part for part in (*self._name.split("/"), *name.split("/")) if part]
        place = self._tree
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        return place, parts[-1] if parts else None

    def group(self, name, source):
        """Make a mapping of a group; see `zcore.tools.destinations`."""
        place, own = self._place(name)
        (place if own is None else place.setdefault(own, {})).update(source.attributes)

    def array(self, name, source, wanted):
        """Make a file for an array, and return it as what is written to."""
        dtype = source.dtype if wanted.dtype is None else np.dtype(wanted.dtype)
        if has_varying_items(dtype) or dtype.kind in "mMV" and dtype.names is None:
            raise UnsupportedError(f"{name or 'the array'}: ASDF has no type for {dtype}", feature=f"{dtype} in ASDF")
        note_losses(name, source, self._losses)
        self._files.append(os.path.join(self._folder.name, f"{len(self._files)}.npy"))
        return NumpyTarget(self._files[-1], source.shape, dtype, wanted.order or source.order)

    def end(self, name):
        """Put the array that was made last into the tree."""
        place, own = self._place(name)
        place["data" if own is None else own] = mapped(self._files[-1])

    def close(self):
        """Write the file."""
        from zcore import asdf

        asdf.write(self._path, self._tree)

    def discard(self):
        """Remove the files of arrays."""
        self._tree = {}
        self._folder.cleanup()
