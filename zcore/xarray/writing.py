"""Writing datasets: what xarray's `Dataset.to_zarr` does, by zcore and under its locks.

The decisions are xarray's: its Zarr backend says how variables are encoded, and checks names, sizes, regions and
chunks. It talks to a draft, which notes the arrays to create, to lengthen and to write. Nothing in the store changes
until everything is checked; then the draft is carried out.
"""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from xarray import Dataset, DataTree, conventions
from xarray.backends import ZarrStore
from xarray.backends.common import ArrayWriter
from xarray.backends.writers import _validate_dataset_names, dump_to_store
from xarray.backends.zarr import (
    _choose_default_mode,
    _validate_and_transpose_existing_dims,
    _validate_datatypes_for_zarr_append,
)
from xarray.coding.strings import check_vlen_dtype

import zcore
from zcore.engine.options import Options
from zcore.errors import warn
from zcore.formats import check_format
from zcore.formats.json_documents import has_constants, taking_constants
from zcore.formats.zarr_v2.chain import to_chain
from zcore.hierarchy import consolidated as copies
from zcore.hierarchy import creation, resizing
from zcore.hierarchy.lookup import path_of
from zcore.model.value import check_kind
from zcore.nodes.appending import PendingAppend, appending, home_of, undo_append
from zcore.nodes.group_writer import GroupWriter
from zcore.stores.base import SMALL_NBYTES, run_together
from zcore.stores.keys import prefix_of
from zcore.stores.openers import store_of
from zcore.text.arguments import as_bool, as_optional_bool
from zcore.xarray.backend import members_of, place_of
from zcore.xarray.faithful import checked
from zcore.xarray.still_read import Write, check_not_deleted, check_not_overwritten
from zcore.xarray.variables import Dimensions, dims_of, variable_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    from zcore.storage import StoreLike
    from zcore.typing import CacheSize


def to_zarr(ds: Dataset | DataTree, store: StoreLike,
            mode: Literal["w", "w-", "a", "a-", "r+"] | None = None, *, group: str | None = None,
            encoding: Mapping[str, Any] | None = None, compute: bool = True, consolidated: bool | None = None,
            append_dim: str | None = None, region: Mapping[str, slice] | Literal["auto"] | None = None,
            safe_chunks: bool = False, align_chunks: bool = False, zarr_format: Literal[3, 2] | None = None,
            write_empty_chunks: bool | None = None, storage_options: Mapping[str, Any] | None = None,
            chunkmanager_store_kwargs: Mapping[str, Any] | None = None, write_inherited_coords: bool = False) -> Any:
    """Write a dataset or a tree of datasets to groups of Zarr, as `to_zarr` of xarray does, by zcore.

    Every stored object is replaced under its lock. So chunks of dask may lie anywhere in the chunks or shards of the
    store: parts of one object that several threads, processes or workers write are all kept.

    Parameters
    ----------
    ds : xarray.Dataset or xarray.DataTree
    store : object
        What `zcore.open` takes for writing: a directory, a URL, a store.
    mode : {"w", "w-", "a", "a-", "r+"}, optional
        As in xarray. ``"w"`` replaces a group with all nodes below it, ``"w-"`` creates one, ``"a"`` adds and
        overwrites variables, ``"a-"`` overwrites only those with `append_dim`, ``"r+"`` changes values alone. In a
        directory, ``"w"`` replaces the group when all is written, unless `compute` is false.
    group : str, optional
        Path of the group, the root by default. The root of a tree becomes this group.
    encoding : dict, optional
        By variable: ``chunks``, ``shards``, ``compressors``, ``filters``, ``serializer`` and more, as in xarray. Of a
        tree: such dicts by the paths of its groups, ``"/"`` for its root.
    compute : bool
        Write chunks of dask now; otherwise return something to compute. All else is written now, and arrays that are
        appended to have their new shapes at once.
    consolidated : bool, optional
        Consolidate the metadata of the store in the end. None does it too, unless the mode is ``"r+"`` or the store
        holds what cannot be consolidated.
    append_dim : str, optional
        The dimension along which variables of a dataset are appended, all of them or none. One writer at a time.
    region : dict or "auto", optional
        The part of a dataset that is written: a slice for each dimension. See xarray.
    safe_chunks : bool
        Refuse chunks of dask that share a chunk or shard of the store. They are safe, but the shared one is written
        several times.
    align_chunks : bool
        Rechunk those of dask so that they share none.
    zarr_format : {3, 2}, optional
        Of a new group, 3 by default.
    write_empty_chunks : bool, optional
        See `zcore.open`.
    storage_options : dict, optional
        Options of `zcore.RemoteStore`.
    chunkmanager_store_kwargs : dict, optional
        Keywords of `dask.array.store`.
    write_inherited_coords : bool
        Write coordinates that a group of a tree has from a group above it into each group.

    Returns
    -------
    zcore.Group or dask.delayed.Delayed
        Of a path that ends with ``.zip`` or ``.ozx``, the new archive, which is complete then and can only be read.

    Raises
    ------
    zcore.NodeExistsError
        The mode is ``"w-"``, and there is a node.
    ValueError, TypeError, KeyError
        What xarray raises for names, sizes, regions and encodings that do not fit; values that an array which is there
        cannot store; coordinates that differ in an append; values that dask would read from what is replaced. Nothing
        was changed, unless dask has computed the values.
    zcore.StoreError
        Another writer has changed the shape of an array meanwhile.
    """
    check_kind(mode, "mode", (str,), "'w', 'w-', 'a', 'a-' or 'r+'")
    check_kind(encoding, "encoding", (Mapping,), "a mapping of names to mappings")
    check_kind(append_dim, "append_dim", (Hashable,), "the name of a dimension")
    consolidated = as_optional_bool(consolidated, "consolidated")
    write_empty_chunks = as_optional_bool(write_empty_chunks, "write_empty_chunks")
    compute = as_bool(compute, "compute")
    safe_chunks, align_chunks = as_bool(safe_chunks, "safe_chunks"), as_bool(align_chunks, "align_chunks")
    check_format(zarr_format)
    parts = _datasets_of(ds, encoding or {}, append_dim, region,
                         as_bool(write_inherited_coords, "write_inherited_coords"))
    mode = _choose_default_mode(mode=mode, append_dim=append_dim, region=region)
    place = place_of(store, storage_options, read_only=False)
    top = path_of(group)
    drafts = []
    for below, part, encodings in parts:
        path = f"{top}/{below}".strip("/")
        _validate_dataset_names(part)
        if mode == "w":
            check_not_deleted(place, top, part)
            old = None
        else:
            old = _existing(place, path, mode, zarr_format, append_dim)
        draft = _Draft(path, old, zarr_format or 3, mode, append_dim, region, safe_chunks, align_chunks,
                       write_empty_chunks)
        part = draft._validate_and_autodetect_region(part)
        draft._validate_encoding(encodings)
        draft.coords = frozenset(part.coords)
        dump_to_store(part, draft, draft.writer, encoding=encodings)
        drafts.append(draft)
    if constants := [text for draft in drafts for text in draft.constants()]:
        warn(f"NaN or infinity in {', '.join(constants)}: JSON has no such numbers, so other libraries than "
             "zarr-python may refuse the documents, such as tensorstore and zarrs")
    if any([draft.overwrites for draft in drafts]):
        check_not_overwritten(place, [write for draft in drafts for write in draft.writes()])
    with ExitStack() as stack:
        inner = stack.enter_context(_replacing(place, top)) if mode == "w" and compute else None
        # Groups before those in them.
        made = []
        for draft in drafts:
            to = (place, draft.path) if inner is None else (inner, draft.path[len(prefix_of(top)):])
            made.append(taking_constants(draft.carry_out, *to, stack, compute))
            if _makes_archive(made[0]):
                place = made[0].store
        # Copies of the metadata are in the root of the store.
        is_first = append_dim is None and (inner is None or not top)
        if is_first:
            _finish(drafts, made, consolidated)
        written = [draft.writer.written(compute, chunkmanager_store_kwargs) for draft in drafts]
        if append_dim is not None:
            _finish(drafts, made, consolidated)
    if inner is not None:
        made = [draft.opened(place, "r+", draft.path) for draft in drafts]
        if not is_first:
            _finish(drafts, made, consolidated)
    if compute:
        return _finished(None, made[0])
    import dask

    return dask.delayed(_finished)(written, made[0])


def encoder(group: zcore.Group, append_dim: str) -> Callable[[Dataset], dict[str, Any]]:
    """Return a function that encodes a dataset for an append to the variables of a group; see `_Draft.encoded`."""
    return _Draft(group.path, group, group.zarr_format, "a-", append_dim, None, False, False, None).encoded


def _replacing(place, path):
    """Return `creation.replacing` of the group at a path; it gives None where there is none in a directory."""
    try:
        if isinstance(zcore.open(place, path=path).store, zcore.DirectoryStore):
            return creation.replacing(store_of(place, False), path, Options())
    except zcore.ZcoreError:
        pass
    return nullcontext()


def _finish(drafts, made, consolidated):
    """Let documents say what was written, and renew or drop the copies of them."""
    for draft, group in zip(drafts, made, strict=True):
        draft.finish(group)
    if consolidated is False or draft._mode == "r+":
        if draft.grows:
            copies.drop(group.store, group.path)
        return
    try:
        zcore.consolidate_metadata(group.store, zarr_format=group.zarr_format)
    except zcore.UnsupportedError:
        if draft.grows:
            copies.drop(group.store, group.path)
        if consolidated:
            raise


def _datasets_of(ds, encoding, append_dim, region, write_inherited_coords):
    """Return (path, dataset, its encoding) for a dataset, or for each group of a tree."""
    if isinstance(ds, Dataset):
        return [("", ds, encoding)]
    if not isinstance(ds, DataTree):
        raise TypeError(f"expected an xarray.Dataset or xarray.DataTree, found {type(ds).__name__}; see "
                        "DataArray.to_dataset")
    if append_dim is not None or region is not None:
        raise ValueError("append_dim= and region= are of datasets; write the groups of a tree one by one, with group=")
    nodes = {"" if node.path == ds.path else node.relative_to(ds): node for node in ds.subtree}
    encodings = {path.strip("/"): found for path, found in encoding.items()}
    if unknown := sorted(encodings.keys() - nodes.keys()):
        raise ValueError(f"encoding= names groups that the tree does not have: {unknown}")
    return [(path, node.to_dataset(inherit=write_inherited_coords or not path), encodings.get(path, {}))
            for path, node in nodes.items()]


class _Draft(ZarrStore):
    """xarray's writer of Zarr over a group that is not there yet: it decides, and notes what is to be done.

    Parameters
    ----------
    path : str
        Of the group.
    old : zcore.Group or None
        The group that is added to.
    zarr_format : {3, 2}
        Of a new group.
    mode, append_dim, region, safe_chunks, align_chunks, write_empty_chunks
        As `to_zarr` has them.
    """

    def __init__(self, path, old, zarr_format, mode, append_dim, region, safe_chunks, align_chunks,
                 write_empty_chunks):
        if old is not None:
            zarr_format = old.zarr_format
        self.path = path
        self._tried = zcore.create_group(zcore.MemoryStore(), path=path, zarr_format=zarr_format)
        # What xarray asks a group for (2026.7 and older for the synchronizer, too).
        asked = SimpleNamespace(read_only=False, path="", synchronizer=None, metadata=self._tried.metadata)
        super().__init__(
            asked, mode, append_dim=append_dim, write_region=region, safe_chunks=safe_chunks,
            write_empty=write_empty_chunks, align_chunks=align_chunks, cache_members=False,
            use_zarr_fill_value_as_mask=zarr_format == 2)
        self._format = zarr_format
        self._sources = {} if old is None else members_of(old)[0]
        self._dimensions = Dimensions(self._sources.items())
        self._attributes = {}
        self._known = {} if old is None else old.attrs.asdict()
        self._grids = {}
        self._targets = []
        self._asked = frozenset()
        self._given = {}
        self.coords = frozenset()
        self.writer = _NotingWriter()

    # What xarray asks of the group that is there.

    def array_keys(self):
        return tuple(self._sources)

    def open_store_variable(self, name):
        source = self._sources[name]
        return variable_of(source, self._dimensions.of(source.array))

    def get_dimensions(self):
        return {name: length for source in self._sources.values()
                for name, length in zip(self._dimensions.of(source.array), source.array.shape, strict=True)}

    def encode_variable(self, variable, name=None):
        # Text of any length stays what it is, in Zarr v2 too.
        if variable.dtype.kind == "T" or variable.dtype.kind == "O" and _is_text(variable.encoding.get("dtype")):
            return conventions.encode_cf_variable(_without_nulls(variable), name=name)
        return super().encode_variable(variable, name=name)

    # What it wants to be done.

    def set_attributes(self, attributes):
        self._attributes = attributes

    def _open_existing_array(self, *, name):
        target = _Target(name, self._sources[name].array.shape)
        self._targets.append(target)
        return target

    def _create_new_array(self, *, name, shape, dtype, fill_value, encoding, attrs):
        if check_vlen_dtype(dtype) is str:
            dtype = np.dtypes.StringDType()
        keywords = {**encoding, **self._grids.get(name, {}), "shape": shape, "dtype": dtype, "attributes": attrs}
        for key in ("overwrite", "cache_metadata"):
            keywords.pop(key, None)
        if not shape:
            keywords.pop("dimension_names", None)
        if isinstance(keywords.get("chunks"), tuple) and 0 in shape:
            # Chunks of dask have no length where the dimension has none.
            keywords["chunks"] = tuple([chunk if chunk or length else 1
                                        for chunk, length in zip(keywords["chunks"], shape, strict=True)])
        if self._format == 2 or fill_value is not None:
            keywords["fill_value"] = fill_value
        if "compressors" in keywords:
            # All of them are named, a checksum as well.
            keywords["checksum"] = False
        if name not in self._asked:
            keywords = _in_terms_of(self._format, keywords)
        # Whatever is wrong with them shows here, before the store is touched.
        taking_constants(self._tried.create_array, name, **keywords)
        target = _Target(name, shape, keywords)
        self._targets.append(target)
        return target

    def store(self, variables, attributes, check_encoding_set=frozenset(), writer=None, unlimited_dims=None):
        """Decide how variables are stored; `xarray.backends.ZarrStore.store` without zarr-python."""
        self._asked = check_encoding_set
        self._given = {name: variable._data for name, variable in variables.items()
                      if name in self._sources and hasattr(variable._data, "__dask_graph__")
                      and variable.dims == self._dimensions.of(self._sources[name].array)}
        existing = [name for name in variables if name in self._sources]
        new = [name for name in variables if name not in self._sources]
        if new and self._mode == "r+":
            raise ValueError(f"the variables {new!r} are not in the store; mode 'r+' adds none, mode 'a' does")
        if self._append_dim is not None and self._append_dim not in self.get_dimensions():
            raise ValueError(f"append_dim={self._append_dim!r} is no dimension of the store, which has "
                             f"{self.get_dimensions()}")
        if self._mode == "a-" and self._append_dim is not None:
            # The others stay, but coordinates must be those that are stored.
            existing = [name for name in existing if name in self.coords or self._append_dim in variables[name].dims]
        encoded, attributes = self.encode({name: variables[name] for name in new}, attributes)
        encoded.update(self._encoded_as_stored({name: variables[name] for name in existing}))
        if self._append_dim is not None:
            self._check_appended_lengths(encoded)
            encoded = self._without_same_coords(encoded)
        if self._mode != "r+":
            self.set_attributes(attributes)
            self.set_dimensions(encoded, unlimited_dims=unlimited_dims)
        for name, variable in encoded.items():
            self._set_aside_unequal_chunks(name, variable.encoding)
        self.set_variables(encoded, check_encoding_set, writer, unlimited_dims=unlimited_dims)

    def _encoded_as_stored(self, variables):
        """Return variables encoded exactly as the arrays that are there: type, scale, units of time."""
        if not variables:
            return {}
        as_stored = {name: self.open_store_variable(name) for name, source in self._sources.items()
                     if name in variables or source.attributes.get("bounds") in variables}
        # The units of bounds are those of their coordinate.
        stored, _, _ = conventions.decode_cf_variables(as_stored, {}, decode_timedelta={
            name: variable.dtype.kind == "m" for name, variable in variables.items()})
        alike = {}
        for name, variable in variables.items():
            _validate_datatypes_for_zarr_append(name, stored[name], variable)
            alike[name] = variable.copy(deep=False)
            alike[name].encoding = stored[name].encoding
        encoded, _ = self.encode(alike, {})
        encoded = {name: checked(name, variables[name], variable, as_stored[name], stored[name].encoding)
                   for name, variable in encoded.items()}
        return {name: _validate_and_transpose_existing_dims(name, variable, stored[name], self._write_region,
                                                            self._append_dim)
                for name, variable in encoded.items()}

    def _without_same_coords(self, encoded):
        """Return variables without the coordinates that stay as they are in an append.

        Raises : ValueError, if one differs from the stored one: the elements that are there would get its labels.
        """
        changed = {}
        for name, variable in encoded.items():
            if name not in self._sources or name not in self.coords or self._append_dim in variable.dims:
                changed[name] = variable
                continue
            stored = self.open_store_variable(name)
            if not variable.equals(stored):
                by = ""
                if variable.shape == stored.shape and {variable.dtype.kind, stored.dtype.kind} <= set("fiu"):
                    by = abs(variable.values.astype("f8") - stored.values)
                    by = f" by up to {np.fmax.reduce(by, axis=None):.3g}"
                raise ValueError(f"coordinate {name!r} differs from the stored one{by}, and has no dimension "
                                 f"{self._append_dim!r}: what is appended would have other labels than what is stored; "
                                 f"stored are {stored.values!s:.200}, given {variable.values!s:.200}. If they mean the "
                                 f"same, leave them out: ds.drop_vars({name!r})")
        return changed

    def _check_appended_lengths(self, encoded):
        """Raise ValueError if variables would have other lengths along the dimension, so that xarray opens none."""
        lengths = {}
        for name, source in self._sources.items():
            sizes = dict(zip(self._dimensions.of(source.array), source.array.shape, strict=True))
            if self._append_dim in sizes:
                lengths[name] = sizes[self._append_dim]
        for name, variable in encoded.items():
            if self._append_dim in variable.dims:
                lengths[name] = lengths.get(name, 0) + variable.sizes[self._append_dim]
        if len(set(lengths.values())) > 1:
            raise ValueError(f"after the append, variables would have different lengths along {self._append_dim!r}, "
                             f"and the store could not be opened: {lengths}; append all variables with this dimension")

    def _set_aside_unequal_chunks(self, name, encoding):
        """Keep lengths of chunks that differ, which xarray refuses to write, and show it the longest ones."""
        for key in ("chunks", "shards"):
            value = encoding.get(key)
            if isinstance(value, (tuple, list)) and any([isinstance(part, (tuple, list)) for part in value]):
                self._grids.setdefault(name, {})[key] = [
                    list(part) if isinstance(part, (tuple, list)) else part for part in value]
                encoding[key] = tuple([max(part) if isinstance(part, (tuple, list)) else part for part in value])

    def encoded(self, ds):
        """Return by name the elements of the variables of a dataset that would be appended; notes nothing."""
        self._targets, self.writer = [], _NotingWriter()
        _validate_dataset_names(ds)
        self.coords = frozenset(ds.coords)
        dump_to_store(ds, self, self.writer)
        grown = {target for target in self._targets if target.shape != target._found}
        return {target.name: np.asarray(source) for source, target, _ in self.writer.noted if target in grown}

    def writes(self):
        """Return all that is to be written, a list of `Write`."""
        return [Write(source, self._given.get(target.name, source), prefix_of(self.path) + target.name,
                      target.starts_of(region)) for source, target, region in self.writer.noted]

    def constants(self):
        """Return where new attributes have numbers that JSON does not have, and Zarr v3 neither, for a warning."""
        new = {label: value for label, value in self._attributes.items() if repr(value) != repr(self._known.get(label))}
        nodes = [("", new), *[target.attributes for target in self._targets]]
        return [f"{label!r} of {f'{self.path}/{name}'.strip('/') or '/'!r}" for name, attributes in nodes
                for label, value in attributes.items() if self._format == 3 and has_constants(value)]

    # Which is done now.

    @property
    def overwrites(self):
        """Whether elements are replaced that are there."""
        return any([target.is_overwritten for target in self._targets])

    @property
    def grows(self):
        """Whether arrays that are there get longer."""
        return any([target.pending is not None for target in self._targets])

    def opened(self, place, mode, path, **keywords):
        """Return the group at a path."""
        return zcore.open_group(place, mode, path=path, write_empty_chunks=bool(self._write_empty), **keywords)

    def carry_out(self, place, path, stack, compute):
        """Create the arrays, write what is in memory, and return the group, which is at a path.

        Elements that are appended are not in the documents before `finish`, unless they are computed later, or at a
        service, or in a session of Icechunk, which takes no chunks beyond a shape. The `stack` keeps other appends out.

        Raises : StoreError, if an array has another shape by now than the draft was made for.
        """
        mode = "a" if self._mode == "a-" else self._mode
        new = {} if mode == "r+" else {"zarr_format": self._format, "attributes": self._attributes}
        group = self.opened(place, mode, path, **new)
        for target in self._targets:
            target.find(group)
        if self.grows:
            home = group[home_of(dims_of(self._sources), self._append_dim)]
            stack.enter_context(appending(home, self._append_dim, self.get_dimensions()[self._append_dim],
                                          [target.pending for target in self._targets if target.pending is not None]))
        is_first = not compute or group.store.swaps or group.store.is_transaction
        new = [target for target in self._targets if target.is_new and not self.grows]
        run_together(lambda target: target.carry_out(group, is_first), new, group.store.n_requests)
        for target in self._targets:
            if target not in new:
                target.carry_out(group, is_first)
        self.writer.carry_out(group.store)
        return group

    def finish(self, group):
        """Give arrays their new shapes, and the group its attributes."""
        for target in self._targets:
            target.finish()
        if self._mode in ("a", "a-") and group.attrs.asdict() != self._attributes:
            group.attrs.put(self._attributes)


def _is_text(dtype):
    return isinstance(dtype, np.dtype) and dtype.kind == "T"


def _without_nulls(variable):
    """Return a variable of text with empty text for nulls, as xarray writes them; NumPy would write their names."""
    if variable.dtype.kind == "T" and isinstance(getattr(variable.dtype, "na_object", ""), str):
        return variable
    text = np.dtypes.StringDType()

    def filled(values):
        flat = [value if isinstance(value, str) else "" for value in values.ravel().tolist()]
        return np.array(flat, text).reshape(values.shape)

    data = filled(variable.values) if variable.chunks is None else variable.data.map_blocks(filled, dtype=text)
    return variable.copy(data=data)


class _Target:
    """An array that variables are to be written to: `array`, as soon as it is there.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of the array that is there, or of the new one.
    keywords : dict, optional
        Of `zcore.Group.create_array`, for a new one.
    """

    def __init__(self, name, shape, keywords=None):
        self.name = name
        self.shape = shape
        self.array = None
        self.pending = None
        self._keywords = keywords
        self._found = shape

    @property
    def is_new(self):
        return self._keywords is not None

    @property
    def is_overwritten(self):
        return not self.is_new and self.shape == self._found

    @property
    def attributes(self):
        """The name, and the attributes of a new array."""
        return self.name, self._keywords["attributes"] if self.is_new else {}

    def starts_of(self, region):
        """Return where the box of a region begins, of which xarray has None for all of a new array."""
        return tuple([part.indices(length)[0] for part, length in zip(region or (slice(None),) * len(self.shape),
                                                                      self.shape, strict=True)])

    def resize(self, shape):
        self.shape = shape

    def find(self, group):
        """Open the array that is there, and check that its shape is still the one that was drafted for."""
        if self.is_new:
            return
        self.array = group[self.name]
        if self.array.shape != self._found:
            raise resizing.another_writer(self.array._binding, self.array.shape, self._found)
        if self.shape != self._found:
            self.pending = PendingAppend(self.array, self._found, self.shape)

    def carry_out(self, group, is_first):
        """Create the array, or make one longer; its document says so now if `is_first`, else in the end."""
        if self.is_new:
            self.array = group.create_array(self.name, **self._keywords)
        elif self.pending is not None and is_first:
            self.pending.reserve()
        elif self.pending is not None:
            self.pending.make_room()
            self.array = self.pending

    def finish(self):
        if self.array is self.pending:
            self.pending.lengthen()


class _NotingWriter(ArrayWriter):
    """Keeps what is to be written until its arrays are there."""

    __slots__ = ("noted",)

    def __init__(self):
        super().__init__()
        self.noted = []

    def add(self, source, target, region=None):
        self.noted.append((source, target, region))

    def carry_out(self, store):
        """Write arrays in memory, the small ones together; those of dask wait for `written`."""
        add, small, others = super().add, [], []
        for source, target, region in self.noted:
            is_small = isinstance(source, np.ndarray) and source.nbytes <= SMALL_NBYTES
            (small if is_small else others).append((source, target.array, region))
        run_together(lambda one: add(*one), small, store.n_requests)
        for one in others:
            add(*one)
        self.noted = []

    def written(self, compute, keywords):
        return self.sync(compute=compute, chunkmanager_store_kwargs=keywords)


def _existing(place, path, mode, zarr_format, append_dim):
    """Return the group that a mode adds to, None where it makes one."""
    try:
        # Without consolidated metadata: what is written depends on what the store holds now.
        node = zcore.open(place, path=path).refresh()
    except zcore.NodeNotFoundError:
        if mode == "r+":
            raise
        return None
    if mode == "w-":
        raise zcore.NodeExistsError(f"{node.store.describe(path)}: there is a node; mode 'w' replaces it", path=path)
    if not isinstance(node, zcore.Group):
        raise zcore.NodeExistsError(f"{node.store.describe(path)} holds an array, not a group", path=path)
    if zarr_format is not None and node.zarr_format != zarr_format:
        raise ValueError(f"{node.store.describe(path)} has the format {node.zarr_format}, not {zarr_format}")
    if append_dim is not None:
        undo_append(zcore.open_group(place, "r+", path=path, use_consolidated=False),
                  lambda: zcore.open_group(place, path=path), append_dim, dims_of(members_of(node)[0]))
    return node


def _in_terms_of(zarr_format, keywords):
    """Return keywords of an array with an encoding that came from a file of whichever format."""
    keywords = dict(keywords)
    if zarr_format == 2:
        keywords.pop("shards", None)
        keywords.pop("serializer", None)
        encoding = keywords.get("chunk_key_encoding")
        if isinstance(encoding, dict) and encoding.get("name") != "v2":
            del keywords["chunk_key_encoding"]
        return keywords
    configs = [_config(codec) for key in ("filters", "compressors") for codec in _several(keywords.get(key))]
    if any([config is not None for config in configs]) and None not in configs:
        dtype = np.dtype(object) if keywords["dtype"].kind == "T" else keywords["dtype"]
        keywords["codecs"] = to_chain("C", configs, None, dtype, len(keywords["shape"]))
        for key in ("filters", "compressors", "serializer", "checksum"):
            keywords.pop(key, None)
    return keywords


def _several(codecs):
    return codecs if isinstance(codecs, (tuple, list)) else ()


def _config(codec):
    """Return what a document of Zarr v2 has of a codec that is named as there, None of others."""
    if isinstance(codec, dict):
        return codec if "id" in codec else None
    is_of_v3 = hasattr(codec, "to_dict") or hasattr(codec, "spec")
    return codec.get_config() if hasattr(codec, "get_config") and not is_of_v3 else None


def _finished(_, group):
    """Return a group when all is written. An archive that was made for it is closed, and opened for reading."""
    if not _makes_archive(group):
        return group
    group.close()
    return zcore.open_group(group.store.path, path=group.path)


def _makes_archive(group):
    """Return whether there will be an archive, which was made for a group, when that is closed."""
    return getattr(group.store, "opened_for", None) is not None


class DatasetWriter(GroupWriter):
    """Appends datasets along a dimension; made by `zcore.xarray.writer`. See `zcore.GroupWriter`.

    Metadata that were consolidated are so again after `flush` and `close`.
    """

    def __init__(self, group: zcore.Group, dim: str, queue: CacheSize | None) -> None:
        self._is_consolidated = group.metadata.consolidated is not None
        group.refresh()
        self._encoded = encoder(group, dim)
        super().__init__(group, dim, queue)

    def append(self, ds: Dataset) -> None:  # type: ignore[override]
        """Take a dataset with one or several steps of the dimension. It is encoded as the stored variables are.

        Parameters
        ----------
        ds : xarray.Dataset
            All stored variables with the dimension. Others are left out; coordinates must be those that are stored.

        Raises
        ------
        ValueError, TypeError, KeyError
            As `to_zarr` with ``append_dim``.
        WriterError
            See `zcore.GroupWriter.append`.
        """
        super().append(self._encoded(ds))

    def _refresh(self):
        super()._refresh()
        if self._is_consolidated and self.group.refresh().metadata.consolidated is None:
            zcore.consolidate_metadata(self.group.store, path=self.group.path)


def writer(store: StoreLike, dim: str, *, group: str | None = None, queue: CacheSize | None = None,
           storage_options: Mapping[str, Any] | None = None) -> DatasetWriter:
    """Return a `DatasetWriter`, which appends to the variables of a dataset that is there.

    Parameters
    ----------
    store : object
        What `zcore.open` takes for writing.
    dim : str
        Datasets follow each other along this dimension.
    group : str, optional
        Path of the group, the root by default.
    queue : int or str, optional
        See `zcore.Array.writer`; for all variables together.
    storage_options : dict, optional
        Options of `zcore.RemoteStore`.

    Raises
    ------
    NodeNotFoundError
        There is no such group, or no variable with the dimension.

    Examples
    --------
    >>> import numpy as np, xarray, zcore.xarray
    >>> def step(i):
    ...     return xarray.Dataset({"t2m": (("time", "x"), np.full((1, 3), i, "f4"))}, {"time": [i]})
    >>> store = zcore.MemoryStore()
    >>> _ = zcore.xarray.to_zarr(step(0), store, encoding={"t2m": {"chunks": (10, 3)}, "time": {"chunks": (100,)}})
    >>> with zcore.xarray.writer(store, "time") as w:
    ...     for i in range(1, 25):
    ...         w.append(step(i))
    >>> xarray.open_dataset(store, engine="zcore").sizes["time"]
    25
    """
    place = place_of(store, storage_options, read_only=False)
    return DatasetWriter(zcore.open_group(place, "r+", path=group), dim, queue)
