"""Reference sets made of HDF5 files, and so of NetCDF-4: h5py (extra "hdf5") says where chunks lie, nothing is decoded.

Groups become Zarr v2 groups, datasets become arrays whose codecs are the dataset's filters, dimension scales become the
attribute ``_ARRAY_DIMENSIONS``, as in the sets of kerchunk. Filters without a codec are refused by name; no other
file is read.
"""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from zcore.errors import IncompleteCopyWarning, Needing, UnsupportedError, warn
from zcore.formats import format_of
from zcore.stores.reference.store import ReferenceStore
from zcore.tools.references.hdf5_attributes import (
    ScaleNames,
    attributes_of,
    is_placeholder,
    open_file,
    reading,
    shown_name,
)
from zcore.tools.references.hdf5_dataset import references_of
from zcore.trust.urls import is_remote

if TYPE_CHECKING:
    from typing import Literal

    from zcore.typing import StrPath

MAX_INLINED = 1 << 20
_ZARR_V2 = format_of(2)


def references_from_hdf5(path: StrPath, *, inline_threshold: int = 500, max_inlined: int = MAX_INLINED,
                         unsupported: Literal["raise", "skip"] = "raise") -> ReferenceStore:
    """Return a reference set for an HDF5 file.

    Parameters
    ----------
    path : str or os.PathLike
    inline_threshold : int
        Bytes up to which a chunk is copied into the set instead, 0 for none.
    max_inlined : int
        Bytes that may be copied for each dataset because no reference is possible: texts of varying length, chunks that
        were stored without the filters of the others. Compact datasets are always copied.
    unsupported : {"raise", "skip"}
        For a dataset that cannot be an array: an error, or a warning and nothing in the set.

    Returns
    -------
    ReferenceStore
        For reading. `save` writes it as a document, with relative URLs where it lies in the directory of the file or
        above; `to_v0` has it as a dict.

    Raises
    ------
    StoreError
        The file cannot be read.
    UnsupportedError
        h5py is not installed; or a dataset has a filter or a type without a counterpart in Zarr v2, or its elements lie
        in other files.

    Notes
    -----
    A contiguous dataset becomes chunks of some 16 MiB where its length has a divisor for it, else one. A dataset
    without elements of any shape is left out with a warning, and so are links by name, to other files above all.
    """
    if unsupported not in ("raise", "skip"):
        raise ValueError(f"unsupported={unsupported!r}: expected 'raise' or 'skip'")
    with Needing("reference sets of HDF5 files need", "h5py", "hdf5", "reference sets of HDF5 files"):
        import h5py
    path = os.fspath(path)
    if is_remote(path):
        raise UnsupportedError(f"{path!r:.200}: reference sets are made of HDF5 files that lie here",
                               feature="reference sets of remote HDF5 files")
    path = os.path.abspath(path)
    url = os.path.basename(path)
    with reading(path), open_file(h5py, path) as file:
        # The beginning tells a name that looks like a URL from a URL.
        walk = _Walk(h5py, f"./{url}" if ":" in url else url, inline_threshold, max_inlined, unsupported == "skip",
                     ScaleNames(h5py, file))
        walk.add_group("", file, ())
    made = ReferenceStore.of(walk.references, base=os.path.dirname(path))
    made.made_of = path
    return made


class _Walk:
    """The walk through a file, and the references found so far."""

    def __init__(self, h5py, url, inline_threshold, max_inlined, skips, scales):
        self.references = {}
        self._h5py, self._skips = h5py, skips
        self._how = scales, url, inline_threshold, max_inlined

    def add_group(self, prefix, group, above):
        """Add a group and all below it; `above` are the addresses of the groups that hold it."""
        h5py = self._h5py
        above = *above, h5py.h5o.get_info(group.id).addr
        self.references[prefix + _ZARR_V2.group_document] = b'{"zarr_format":2}'
        attributes = attributes_of(h5py, group)
        if attributes:
            self.references[prefix + _ZARR_V2.attributes_document] = json.dumps(attributes).encode()
        for name in group:
            key = prefix + shown_name(h5py, group, name)
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                warn(f"{key!r} is a link by name, and left out of the set")
                continue
            member = group[name]
            if fault := _ZARR_V2.names.fault(name):
                self._leave_out(key, f"an array or group cannot have this name: {fault}", "names of HDF5")
            elif isinstance(member, h5py.Dataset):
                self._add_dataset(key, member)
            elif isinstance(member, h5py.Group):
                if h5py.h5o.get_info(member.id).addr in above:
                    warn(f"{key!r} is a group that holds itself, and left out of the set")
                else:
                    self.add_group(key + "/", member, above)

    def _add_dataset(self, key, dataset):
        if dataset.shape is None:
            warn(f"{key!r} is a dataset without elements, and left out of the set")
            return
        if is_placeholder(self._h5py, dataset):
            return
        try:
            with reading(dataset.file.filename, dataset.name):
                found = references_of(self._h5py, dataset, key + "/", *self._how)
        except UnsupportedError as exc:
            self._leave_out(key, exc.message, exc.feature)
        else:
            self.references.update(found)

    def _leave_out(self, key, reason, feature):
        if not self._skips:
            raise UnsupportedError(f"{key!r}: {reason}; unsupported='skip' leaves such members out", feature=feature)
        warn(f"{key!r} is left out of the set: {reason}", IncompleteCopyWarning)
