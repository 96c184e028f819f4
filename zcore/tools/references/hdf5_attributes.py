"""Attributes of HDF5 as JSON has them, and the names of dimensions: as NetCDF and kerchunk see them.

h5py raises any error of Python for a damaged file; `reading` makes a StoreError of it.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import StoreError, UnsupportedError, ZcoreError, warn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

PHONY = "phony_dim_"     # the beginning of the names that dimensions without a name get
# Attributes that the libraries for dimension scales and NetCDF-4 use for themselves.
_HIDDEN = frozenset((
    "CLASS", "NAME", "DIMENSION_LABELS", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates",
    "_NCProperties", "_nc3_strict"))


# First bytes of files that are named like those of HDF5, and are none.
_OTHERS = {b"CDF\1": "NetCDF-3", b"CDF\2": "NetCDF-3 (64-bit offset)", b"CDF\5": "NetCDF-3 (64-bit data)",
           b"\x0e\x03\x13\x01": "HDF4"}


def open_file(h5py: ModuleType, path: str) -> Any:
    """Return the open file, an h5py.File.

    Raises
    ------
    StoreError
        It is no file of HDF5.
    UnsupportedError
        It is one of an older format.
    """
    with reading(path):
        with open(path, "rb") as file:
            other = _OTHERS.get(file.read(4))
        if other is not None:
            raise UnsupportedError(f"{path} is a file of {other}, not of HDF5; nccopy -k nc4 makes one of NetCDF-4 of it"
                                   if other != "HDF4" else f"{path} is a file of HDF4, not of HDF5", feature=other)
        return h5py.File(path, "r")


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn any error of h5py into a StoreError that names the file."""
    try:
        yield
    except (ZcoreError, Warning):
        raise
    except Exception as exc:
        raise StoreError(f"cannot read the HDF5 file {path}: {exc}", key=path,
                         errno=getattr(exc, "errno", None)) from exc


def attributes_of(h5py: ModuleType, node: Any) -> dict[str, Any]:
    """Return the attributes of a group or dataset, a dict of JSON values; an array of one element is that element.

    A value that JSON does not have is left out with a warning. NaN and infinities stay, as Python's json writes them.
    """
    found = {}
    for name in node.attrs:
        if name in _HIDDEN:
            continue
        try:
            found[name] = _as_json(h5py, node.attrs[name])
        except (TypeError, ValueError, OSError, KeyError) as exc:
            warn(f"attribute {name!r} of {node.name!r} is left out: {exc}")
    return found


def _as_json(h5py, value):
    if isinstance(value, h5py.Empty):
        return "" if value.dtype.kind in "SO" else None
    if isinstance(value, (str, bytes)):
        return _text(value)
    value = np.asarray(value)
    if value.dtype.kind not in "biufSUO":
        raise TypeError(f"{value.dtype} is not a type of JSON")
    listed = value.ravel().tolist() if value.size == 1 else value.tolist()
    return _plain(listed[0] if value.size == 1 else listed)


def _plain(value):
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (str, bytes)):
        return _text(value)
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def _text(value):
    text = value.decode("utf-8", errors="replace") if isinstance(value, bytes) else value
    return text.encode("utf-8", errors="replace").decode()


def fill_of_attribute(dataset: Any, dtype: np.dtype[Any]) -> np.generic | None:
    """Return the attribute ``_FillValue`` as an element of `dtype`; None if it is absent or not one element."""
    value = dataset.attrs.get("_FillValue")
    if value is None:
        return None
    try:
        value = np.asarray(value).astype(dtype).ravel()
    except (TypeError, ValueError):
        return None
    return value[0] if value.size == 1 else None


class ScaleNames:
    """The names of dimension scales. HDF5 would search the file for each; here it is walked once, if there are any."""

    def __init__(self, h5py: ModuleType, file: Any) -> None:
        self._h5py = h5py
        self._file = file
        self._names = None

    def name_of(self, scale: Any) -> str | None:
        """Return the name of a dataset without those of its groups; None where no group has it."""
        if self._names is None:
            self._names = {}
            self._h5py.h5o.visit(self._file.id, self._note, info=True)
        return self._names.get(self._h5py.h5o.get_info(scale.id).addr)

    def _note(self, path, info):
        if info.type == self._h5py.h5o.TYPE_DATASET:
            self._names.setdefault(info.addr, path.decode("utf-8", "surrogateescape").rpartition("/")[2])


def dimension_names(h5py: ModuleType, dataset: Any, scales: ScaleNames) -> list[str]:
    """Return the names of the dimensions, a list of str: of their scales, else of their labels, else phony ones."""
    names = []
    for d in range(dataset.ndim):
        dimension = dataset.dims[d]
        name = scales.name_of(dimension[0]) if len(dimension) else None
        if name is None and h5py.h5ds.is_scale(dataset.id) and dataset.ndim == 1:
            name = dataset.name.rpartition("/")[2]
        names.append(name or dimension.label or f"{PHONY}{d}")
    return names
