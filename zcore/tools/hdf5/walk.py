"""The walk through a file of HDF5: its groups and datasets, with names and attributes as NetCDF and kerchunk see them.

h5py raises any error of Python for a damaged file; `reading` makes a StoreError of it.

netcdf-c stores a dimension without a variable as a dataset without elements, whose name as a scale says so. A variable
that has the name of a dimension, but is no coordinate of it, is stored with a prefix. A coordinate of two dimensions is
a scale, which HDF5 attaches to nothing: its dimensions are in an attribute, by their numbers.
"""
from __future__ import annotations

import contextlib
from collections import Counter
from itertools import chain, count
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import InvalidKeyError, Needing, NodeNotFoundError, UnsupportedError, ZcoreError, cannot, warn
from zcore.stores.keys import check_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

class _Library:
    """The package h5py, which is imported when it is first used."""

    def __getattr__(self, name: str) -> Any:
        with Needing("HDF5 files need", "h5py", "hdf5", "hdf5"):
            import h5py
        return getattr(h5py, name)


h5py: Any = _Library()
MAX_NAMES = 1000     # of one group: links could multiply groups without end
MAX_ATTRIBUTE_NBYTES = 1 << 21     # as JSON some four times as much, far less than a document may have
LINKS, NAMES = "links by name", "members with names that no node can have"     # that are left out
_PHONY = "phony_dim_"     # the beginning of the names that dimensions without a name get, as in netcdf-c
NOT_A_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
NO_COORDINATE = "_nc4_non_coord_"
_SCALES, _LABELS = "DIMENSION_LIST", "DIMENSION_LABELS"
_COORDINATES, _NUMBER = "_Netcdf4Coordinates", "_Netcdf4Dimid"
# Attributes that the libraries for dimension scales and NetCDF-4 use for themselves.
HIDDEN = frozenset((
    "CLASS", "NAME", _LABELS, _SCALES, "REFERENCE_LIST", _NUMBER, _COORDINATES, "_NCProperties", "_nc3_strict"))
# Errors of h5py for an attribute of a type that NumPy does not have, or that is damaged.
UNREADABLE = (TypeError, ValueError, OSError, KeyError, RuntimeError)


# First bytes of files that are named like those of HDF5, and are none.
_OTHERS = {b"CDF\1": "NetCDF-3", b"CDF\2": "NetCDF-3 (64-bit offset)", b"CDF\5": "NetCDF-3 (64-bit data)",
           b"\x0e\x03\x13\x01": "HDF4"}


def open_file(path: str) -> Any:
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
            advice = "" if other == "HDF4" else "; nccopy -k nc4 converts it to NetCDF-4"
            raise UnsupportedError(f"{path} is a file of {other}, not of HDF5{advice}", feature=other)
        return h5py.File(path, "r")


def walk(file: Any, name: str = "", *, follows_links: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield what a name leads to and all below it, groups before their members, by paths relative to it.

    Yields groups, datasets, and named types of h5py; or an UnsupportedError for a member that cannot be a node. Links
    by name may lead to other files; unless the walk `follows_links`, they are left out, too.
    """
    if name and (name not in file or _object_at(file, name) is None):
        raise NodeNotFoundError(f"{file.filename} holds no {name!r}", path=name)
    n_names = Counter()
    pending = [("", file[stored_name(file, name) or "/"], ())]
    while pending:
        path, node, above = pending.pop()
        if is_placeholder(node):
            if not path:
                raise UnsupportedError(f"{node.name} is a dimension of NetCDF without a variable, so it has no "
                                       "elements", feature="dimensions without a variable")
            continue
        if isinstance(node, h5py.Group):
            if node.id in above:     # links may lead in circles
                continue
            n_names[node.id] += 1
            if n_names[node.id] > MAX_NAMES:
                node = _left_out(f"groups that have {MAX_NAMES} other names")
            else:
                below = *above, node.id
                pending += [(*member, below) for member in _members(path, node, follows_links)]
        yield path, node


def _members(path, group, follows_links):
    """Return pairs of path and object of the members of a group, the last one first."""
    found = []
    # h5py returns bytes for names that are not UTF-8. As texts with lone surrogates they are no keys.
    texts = [name if isinstance(name, str) else name.decode("utf-8", "surrogateescape") for name in group]
    for member in sorted(texts, reverse=True):
        name = f"{path}/{member}" if path else member
        try:
            check_key(name)
        except InvalidKeyError:
            found.append((name, _left_out(NAMES)))
            continue
        name = name.removesuffix(member) + shown_name(group, member)
        if not follows_links and not _is_hard_link(group, member):
            found.append((name, _left_out(LINKS)))
        else:
            node = _object_at(group, member)
            found.append((name, _left_out("links that lead nowhere") if node is None else node))
    return found


def _left_out(what):
    return UnsupportedError(f"it is one of the {what}", feature=what)


def _object_at(group, name):
    """Return the object that a name leads to; None if a link by name leads nowhere, or in circles."""
    try:
        return group[name]
    except Exception:
        if _is_hard_link(group, name):
            raise
        return None


def _is_hard_link(group, name):
    """Return whether a name is that of an object itself, and not of a link by name."""
    return group.id.links.get_info(name.encode()).type == h5py.h5l.TYPE_HARD


@contextlib.contextmanager
def reading(path: str, name: str = "") -> Iterator[None]:
    """Turn any error of h5py into a StoreError that names the file, and the object in it if that is known."""
    try:
        yield
    except (ZcoreError, Warning):
        raise
    except Exception as exc:
        what = f"{name} of " if name else ""
        raise cannot(f"read {what}the HDF5 file", path, exc) from exc


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a group or dataset, a dict of JSON values; an array of one element is that element.

    A value that JSON does not have is left out with a warning. NaN and infinities stay, as Python's json writes them.
    Texts that are not UTF-8 are read as Latin-1, with a warning.
    """
    found = {}
    for name in node.attrs:
        if name in HIDDEN:
            continue
        guesses = []
        try:
            stored = node.attrs.get_id(name)
            n_bytes = stored.get_space().get_select_npoints() * stored.get_type().get_size()
            if n_bytes > MAX_ATTRIBUTE_NBYTES:
                raise ValueError(f"it has {n_bytes} bytes, at most {MAX_ATTRIBUTE_NBYTES} are kept")
            value = _as_json(node.attrs[name], guesses)
        except UNREADABLE as exc:
            warn(f"attribute {name!r} of {node.name!r} is left out: {exc}")
        else:
            found[text_of(name, guesses)] = value
        if guesses:
            warn(f"attribute {name!a} of {node.name!r} is not UTF-8; it is read as Latin-1")
    return found


def _as_json(value, guesses):
    if isinstance(value, h5py.Empty):
        return "" if value.dtype.kind in "SO" else None
    if isinstance(value, (str, bytes)):
        return text_of(value, guesses)
    value = np.asarray(value)
    if value.dtype.kind not in "biufSUO":
        raise TypeError(f"{value.dtype} is not a type of JSON")
    return _plain(value.item() if value.size == 1 else value.tolist(), guesses)


def _plain(value, guesses):
    if isinstance(value, list):
        return [_plain(part, guesses) for part in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), guesses)
    if isinstance(value, (str, bytes)):
        return text_of(value, guesses)
    if isinstance(value, (bool, int, float)):
        return value
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def text_of(value: str | bytes, guesses: list[str]) -> str:
    """Return a text: of UTF-8, else of Latin-1, which is added to `guesses`."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    try:
        return raw.decode()
    except UnicodeDecodeError:
        guesses.append(raw.decode("latin-1"))
        return guesses[-1]


def type_of(dataset: Any) -> np.dtype[Any]:
    """Return the type of the elements of a dataset.

    Raises : UnsupportedError, if NumPy has none, or HDF5 does not convert elements to it.
    """
    try:
        dtype = dataset.dtype
        if h5py.h5t.find(dataset.id.get_type(), h5py.h5t.py_create(dtype)) is None:
            raise TypeError(f"HDF5 does not convert its type to {dtype}")
        return dtype
    except (TypeError, ValueError) as exc:
        raise UnsupportedError(f"{dataset.name}: {exc}", feature="types that NumPy does not have") from exc


def has_enum(dtype: np.dtype[Any]) -> bool:
    """Return whether a type, or a field of it, has names for numbers."""
    if dtype.names is not None:
        return any([has_enum(dtype[name]) for name in dtype.names])
    return h5py.check_enum_dtype(dtype if dtype.subdtype is None else dtype.subdtype[0]) is not None


def fill_value_of(dataset: Any) -> Any:
    """Return the fill value of a dataset, None if it is undefined."""
    is_defined = dataset.id.get_create_plist().fill_value_defined() != h5py.h5d.FILL_VALUE_UNDEFINED
    return dataset.fillvalue if is_defined else None


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


def is_placeholder(dataset: Any) -> bool:
    """Return whether a dataset stands for a dimension of NetCDF that has no variable."""
    return isinstance(dataset, h5py.Dataset) and h5py.h5ds.is_scale(dataset.id) and (
        h5py.h5ds.get_scale_name(dataset.id).startswith(NOT_A_VARIABLE))


def shown_name(group: Any, name: str) -> str:
    """Return the name of a member of a group, without the prefix that netcdf-c adds to some."""
    plain = name.removeprefix(NO_COORDINATE)
    if plain == name or not plain or not (plain not in group or is_placeholder(_object_at(group, plain))):
        return name
    return plain


def stored_name(file: Any, name: str) -> str:
    """Return the path of the variable that a path means, which netcdf-c may have stored with a prefix."""
    above, slash, last = name.rpartition("/")
    stored = above + slash + NO_COORDINATE + last
    return stored if last and is_placeholder(file.get(name)) and stored in file else name


class ScaleNames:
    """The names of dimension scales. HDF5 would search the file for each; here it is walked once, if there are any."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._names = None
        self._numbered = None
        self._phony = {}

    def name_at(self, reference: Any, dataset: Any) -> str | None:
        """Return the name of the dataset that a reference leads to, without those of its groups; None if it has none.

        h5copy of one variable of NetCDF leaves references to dimensions that are not in the new file.
        """
        try:
            scale = h5py.h5r.dereference(reference, dataset.id)
        except UNREADABLE as exc:
            warn(f"a dimension scale of {dataset.name!r} is left out: {exc.args[0]}")
            return None
        return self._walked().get(h5py.h5o.get_info(scale).addr)

    def numbered(self, numbers: Any) -> list[str | None]:
        """Return the names of the dimensions that netcdf-c has numbered."""
        if self._numbered is None:
            self._numbered = {}
            self._file.visititems(self._note_number)
        return [self._numbered.get(int(number)) for number in numbers]

    def phony(self, names: list[str | None], lengths: tuple[int, ...]) -> list[str]:
        """Return the names, with a new one for each that is None: the same for all dimensions of one length.

        In one dataset two dimensions never share such a name. The number is that of the dimension, if it is free.
        """
        found, n_of = [], {}
        for d, (name, length) in enumerate(zip(names, lengths, strict=True)):
            if name is None:
                n_of[length] = n_of.get(length, 0) + 1
                name = self._phony.get((length, n_of[length]))
            if name is None:
                taken = {*self._walked().values(), *self._phony.values()}
                name = next(new for i in chain((d,), count()) if (new := f"{_PHONY}{i}") not in taken)
                self._phony[length, n_of[length]] = name
            found.append(name)
        return found

    def _walked(self):
        if self._names is None:
            self._names = {}
            h5py.h5o.visit(self._file.id, self._note, info=True)
        return self._names

    def _note(self, path, info):
        if info.type == h5py.h5o.TYPE_DATASET:
            self._names.setdefault(info.addr, path.decode("utf-8", "surrogateescape").rpartition("/")[2])

    def _note_number(self, path, node):
        if isinstance(node, h5py.Dataset) and _NUMBER in node.attrs and h5py.h5ds.is_scale(node.id):
            number = node.attrs[_NUMBER]
            if isinstance(number, np.integer):
                self._numbered[int(number)] = path.rpartition("/")[2]


def dimension_names(dataset: Any, scales: ScaleNames) -> list[str | None]:
    """Return the names of the dimensions: of their scales, else of their labels, else None."""
    names = []
    is_scale = h5py.h5ds.is_scale(dataset.id)
    if is_scale and dataset.ndim > 1:
        numbers = _of_dimensions(dataset, _COORDINATES)
        if numbers is not None and numbers.dtype.kind in "iu":
            return scales.numbered(numbers)
    references, labels = (_of_dimensions(dataset, label) for label in (_SCALES, _LABELS))
    for d in range(dataset.ndim):
        reference = None if references is None else next(iter(np.ravel(references[d])), None)
        is_there = isinstance(reference, h5py.Reference) and bool(reference)
        name = scales.name_at(reference, dataset) if is_there else None
        if name is None and is_scale and dataset.ndim == 1:
            name = dataset.name.rpartition("/")[2]
        label = None if labels is None else labels[d]
        names.append(name or (text_of(label, []) if isinstance(label, (str, bytes)) else None) or None)
    return names


def _of_dimensions(dataset, label):
    """Return an attribute that has a value for each dimension, an ndarray; None if there is none of this form.

    HDF5's own functions for dimension scales take its type for granted, and end the process if it is another one.
    """
    try:
        value = dataset.attrs.get(label)
    except UNREADABLE as exc:
        warn(f"attribute {label!r} of {dataset.name!r} is left out: {exc}")
        return None
    return value if isinstance(value, np.ndarray) and value.shape == (dataset.ndim,) else None
