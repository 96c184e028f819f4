"""Reference sets made of HDF5 files, and so of NetCDF-4: h5py (extra "hdf5") says where chunks lie, nothing is decoded.

Groups become Zarr v2 groups, datasets become arrays whose codecs are the dataset's filters, dimension scales become the
attribute ``_ARRAY_DIMENSIONS``, as in the sets of kerchunk. Filters without a codec are refused by name; no other
file is read.
"""
from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from zcore.errors import IncompleteCopyWarning, UnsupportedError, warn
from zcore.formats import format_of
from zcore.stores.keys import prefix_of
from zcore.stores.reference.store import ReferenceStore
from zcore.tools.copy.translate import ENUMS, Losses
from zcore.tools.hdf5.dataset import references_of
from zcore.tools.hdf5.walk import LINKS, NAMES, ScaleNames, attributes_of, h5py, has_enum, open_file, reading, walk
from zcore.tools.references.references import MAX_INLINED
from zcore.trust.base_path import file_path
from zcore.trust.urls import is_remote

if TYPE_CHECKING:
    from typing import Literal

    from zcore.typing import StrPath

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
    without elements of any shape is left out with a warning, and so are links by name, to other files above all,
    and members with names that no node can have. A group that lies below itself by a hard link is not entered again;
    one with very many names is left out below most.
    """
    if unsupported not in ("raise", "skip"):
        raise ValueError(f"unsupported={unsupported!r}: expected 'raise' or 'skip'")
    path = file_path(path)
    if is_remote(path):
        raise UnsupportedError(f"{path!r:.200}: reference sets are made of HDF5 files that lie here",
                               feature="reference sets of remote HDF5 files")
    path = os.path.abspath(path)
    url, found, losses = os.path.basename(path), {}, Losses()
    with reading(path), open_file(path) as file:
        # The beginning tells a name that looks like a URL from a URL.
        how = ScaleNames(file), f"./{url}" if ":" in url else url, inline_threshold, max_inlined
        for name, node in walk(file, follows_links=False):
            if isinstance(node, h5py.Dataset) and node.shape is None:
                warn(f"{name!r} is a dataset without elements, and left out of the set")
                continue
            try:
                found.update(_references_to(name, node, how))
                if isinstance(node, h5py.Dataset) and has_enum(node.dtype):
                    losses.note(ENUMS, name)
            except UnsupportedError as exc:
                if unsupported == "raise" and exc.feature not in (LINKS, NAMES):
                    raise UnsupportedError(f"{name!r}: {exc.message}; unsupported='skip' leaves such members out",
                                           feature=exc.feature) from exc
                warn(f"{name!r} is left out of the set: {exc.message}", IncompleteCopyWarning)
    losses.warn("the set")
    made = ReferenceStore.of(found, base=os.path.dirname(path))
    made.made_of = path
    return made


def _references_to(name, node, how):
    """Return the references of what the walk has found."""
    if isinstance(node, UnsupportedError):
        raise node
    for part in name.split("/") if name else ():
        if fault := _ZARR_V2.names.fault(part):
            raise UnsupportedError(f"an array or group cannot have this name: {fault}", feature="names of HDF5")
    prefix = prefix_of(name)
    if isinstance(node, h5py.Dataset):
        with reading(node.file.filename, node.name):
            return references_of(node, prefix, *how)
    if not isinstance(node, h5py.Group):
        return {}     # a named type
    found = {prefix + _ZARR_V2.group_document: b'{"zarr_format":2}'}
    if attributes := attributes_of(node):
        found[prefix + _ZARR_V2.attributes_document] = json.dumps(attributes).encode()
    return found
