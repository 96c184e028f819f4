"""HDF5 files as sources and destinations of copies, by h5py (extra "hdf5").

Groups, datasets, attributes and labels of dimensions are those of the file; a dataset's chunks and its compression,
gzip, take the place of chunks and codecs. Attributes that HDF5 cannot express, such as mappings, are lost, and types
that it does not have, such as dates, are refused, both by name.

The codecs of a dataset are its filters, where Zarr has them. Chunks of filters that this HDF5 does not have are read
where they lie, by zcore, if it has them.
"""
from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import numpy as np

from zcore import api
from zcore.codecs import GzipCodec
from zcore.descriptors import identity_of
from zcore.errors import SelectionError, UnsupportedError, warn
from zcore.kernel.io.steady_file import SteadyFile
from zcore.model.auto_chunks import normalize_chunks
from zcore.model.metadata import has_varying_items
from zcore.stores.keys import above, check_key
from zcore.stores.reference.store import ReferenceStore
from zcore.tools.copy.sources import Source, SourceArray, SourceGroup
from zcore.tools.copy.transfer import Sink, Target
from zcore.tools.copy.translate import MISSING_ATTRIBUTE, missing_number
from zcore.tools.files.numpy import dtype_of
from zcore.tools.hdf5.dataset import (
    Texts,
    absent_sources,
    check_virtual,
    codecs_of,
    has_wrong_places,
    is_stored,
    missing_filters,
    references_of,
    stored_chunks,
    stored_coords,
)
from zcore.tools.hdf5.walk import (
    HIDDEN,
    NAMES,
    NO_COORDINATE,
    NOT_A_VARIABLE,
    UNREADABLE,
    ScaleNames,
    attributes_of,
    dimension_names,
    fill_of_attribute,
    fill_value_of,
    h5py,
    has_enum,
    open_file,
    reading,
    text_of,
    type_of,
    walk,
)
from zcore.tools.stored import Stored

if TYPE_CHECKING:
    from typing import Any

    from zcore.tools.copy.translate import CopyRequest, Losses
    from zcore.typing import Selection

_GZIP_LEVEL = 4
_MAX_NAME_NBYTES = 256     # of a dimension of NetCDF


class Hdf5Source(Source):
    """A group or a dataset of an HDF5 file; see `zcore.tools.copy.sources`."""

    leaves_out = True

    def __init__(self, path: str, name: str, selection: Selection, threads: int | None = None) -> None:
        with reading(path):
            status = os.stat(path)
        self.identity: str = repr((os.path.abspath(path), name, identity_of(status)[1:]))
        self.lost: list[tuple[str, str]] = []
        self.left_out: list[tuple[str, str]] = []
        self.nodes: list[tuple[str, SourceGroup | SourceArray]] = []
        self._file = None
        try:
            self._file = open_file(path)
            with reading(path):
                self._find(path, name, selection)
        except BaseException:
            self.close()
            raise

    def _find(self, path, top, selection):
        """Find all nodes below a name."""
        scales = ScaleNames(self._file)
        for name, node in walk(self._file, top):
            if isinstance(node, UnsupportedError):
                self.left_out.append((node.feature, repr(name) if node.feature == NAMES else name))
            elif isinstance(node, h5py.Dataset):
                try:
                    self.nodes.append((name, _Dataset(path, node, attributes_of(node), scales, selection)))
                except UnsupportedError as exc:
                    if not name:
                        raise
                    self.left_out.append((f"datasets with {exc.feature}", name))
            elif not isinstance(node, h5py.Group):
                self.lost.append(("named types", name))
            elif selection is not None:
                raise SelectionError("a selection needs an array, the source is a group")
            else:
                self.nodes.append((name, SourceGroup(attributes_of(node))))

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(Exception):     # of a damaged file; nothing was written
                self._file.close()


class _Dataset(SourceArray):
    """A dataset; see `SourceArray`."""

    def __init__(self, path, dataset, attributes, scales, selection):
        if dataset.shape is None:
            raise UnsupportedError(f"{dataset.name} is an empty dataset, without a shape", feature="null dataspaces")
        dtype = type_of(dataset)
        self.place = path
        self._dataset = dataset
        self._texts = None
        if dtype.subdtype is not None:
            raise UnsupportedError(f"{dataset.name} has elements that are arrays, {dtype}",
                                   feature="elements that are arrays")
        check_virtual(dataset)
        if absent := absent_sources(dataset):
            warn(f"{dataset.name!r} is made of other files; HDF5 has the fill value for elements of those that do not "
                 f"exist, such as {absent[0]!r}")
        self._zcore = _read_by_zcore(dataset, scales, dtype)
        if dtype.hasobject:
            if h5py.check_string_dtype(dtype) is None:
                raise UnsupportedError(f"{dataset.name} has items of a type that no array has, {dtype}",
                                       feature="references and sequences of HDF5")
            self._texts = Texts(dataset)
            dtype = np.dtypes.StringDType()
        super().__init__(dataset.shape, dtype, attributes, selection)
        self.has_enum = has_enum(dataset.dtype)
        self._objects = dataset.chunks
        if self.keeps_dimensions and dataset.chunks is not None:
            self.chunk_shape = self.chunks_of_objects = dataset.chunks
            if dtype.kind != "T":
                self.codecs = self.inner_codecs = codecs_of(dataset, dtype)
        if dtype.kind != "T":
            self.missing_value = fill_of_attribute(dataset, dtype)
            fill_value = fill_value_of(dataset)
            # Zero is the default of any format. In Zarr v2 it would hide zeros, as missing data.
            if fill_value is not None and any(np.asarray(fill_value, dtype).tobytes()):
                self.fill_value = fill_value
                self.fill_is_needed = self.missing_value is not None or not is_stored(dataset)
        # In new arrays, elements of chunks that the file lacks would be empty texts, NaT, or the fill value.
        self._is_told = not has_wrong_places(dataset)
        self._is_alike = self._is_told and (not fill_value_of(dataset) if dtype.kind == "T"
                                            else dtype.kind not in "mM" or self.fill_value is not None)
        names = dimension_names(dataset, scales)
        if any(names):
            self.dimension_names = self.kept(names)

    @property
    def object_shape(self):
        return super().object_shape if self._objects is None else self.kept(self._objects)

    def sizes(self):
        if not self._is_alike:
            return None
        if self._objects is None:
            return None if self._dataset.is_virtual or self._dataset.id.get_storage_size() else {}
        with reading(self.place, self._dataset.name):
            return {coords: nbytes for coords, (_, nbytes, _) in stored_chunks(self._dataset)[0].items()}

    def stored(self):
        is_known = self._texts is None and self._is_told and (self._objects is not None or self.sizes() == {})
        return _StoredChunks(self) if is_known else None

    def lacks(self, coords):
        if self._objects is None or not self._is_alike:
            return False
        starts = tuple([i * n for i, n in zip(coords, self._objects, strict=True)])
        with reading(self.place, self._dataset.name):
            return self._dataset.id.get_chunk_info_by_coord(starts).byte_offset is None

    def _read(self, box, out):
        if any([step < 0 for step in box.steps]):
            raise UnsupportedError("a selection of a dataset of HDF5 has no negative steps",
                                   feature="negative steps in HDF5")
        index = _slices_of(box) if out.ndim else ()
        if self._zcore is not None:
            out[...] = self._zcore[index]
            return
        with reading(self.place, self._dataset.name):
            if self._texts is None:
                out[...] = self._dataset[index]
                return
            try:
                out[...] = self._texts.read(index)
            except UnicodeDecodeError:
                texts, guesses = self._texts.read(index, decoded=False), []
                out[...] = np.array([text_of(text, guesses) for text in texts.ravel()], object).reshape(out.shape)
                warn(f"texts of {self._dataset.name!r} are not UTF-8; they are read as Latin-1, the first is "
                     f"{guesses[0]!r:.60}")


class _StoredChunks(Stored):
    """The chunks of a dataset that the file has."""

    def __init__(self, array):
        self._array = array
        self._dataset = array._dataset
        self._chunks = self._dataset.chunks or self._dataset.shape
        self._select(array.box, [-(-n // max(1, chunk)) for n, chunk in zip(
            self._dataset.shape, self._chunks, strict=True)], array.dimensions)

    def _boxes(self):
        with reading(self._array.place, self._dataset.name):
            found = stored_coords(self._dataset) if self._dataset.chunks else ()
        return (([i * n for i, n in zip(coords, self._chunks, strict=True)], self._chunks) for coords in found)

    def is_known(self):
        return True

    def fill(self):
        with reading(self._array.place, self._dataset.name):
            value = fill_value_of(self._dataset)
            return np.zeros(1, self._array.dtype) if value is None else np.asarray([value], self._array.dtype)


def _read_by_zcore(dataset, scales, dtype):
    """Return an array of zcore with the elements of a dataset whose filters this HDF5 does not have, else None."""
    missing = missing_filters(dataset)
    if not missing:
        return None
    path = os.path.abspath(dataset.file.filename)
    try:
        if dtype.hasobject:
            raise UnsupportedError(f"number {missing[0]}, of texts", feature=f"the filter {missing[0]} of HDF5")
        found = references_of(dataset, "", scales, f"./{os.path.basename(path)}", 0, sys.maxsize)
    except UnsupportedError as exc:
        raise UnsupportedError(f"{dataset.name} has a filter that this HDF5 does not have, nor zcore: {exc.message}; "
                               "hdf5plugin has some", feature=exc.feature) from exc
    return api.open(ReferenceStore.of(found, base=os.path.dirname(path)))


def _slices_of(box):
    """Return the index that selects a box of a dataset."""
    return tuple([slice(start, start + step * n, step) if n else slice(0, 0)
                  for start, step, n in zip(box.starts, box.steps, box.counts, strict=True)])


def _level(source, compressors):
    """Return the level of gzip for a dataset; None for no compression."""
    if compressors is None:
        compressors = "auto" if source.inner_codecs is None or len(source.inner_codecs) > 1 else ()
    if isinstance(compressors, GzipCodec):
        return compressors.level
    if compressors not in ("auto", "gzip", (), []):
        raise ValueError(f"compressors is {compressors!r:.60}, expected for HDF5 'gzip', a GzipCodec, 'auto', or () "
                         "for no compression")
    return _GZIP_LEVEL if compressors else None


class Hdf5Sink(Sink):
    """A new HDF5 file. HDF5 is told that every write has succeeded, as it does not survive a failed one."""

    keeps_enums = True
    takes: tuple[str, ...] = ("dtype", "chunks", "compressors")

    def __init__(self, path: str, name: str, losses: Losses) -> None:
        self._steady = SteadyFile(path)
        self._file = h5py.File(path, "w", driver="fileobj", fileobj=self._steady)
        self._is_netcdf = os.path.splitext(path)[1].lower() in (".nc", ".nc4")
        self._name = name
        self._losses = losses
        self._named = []     # (name, reference, names of dimensions) of datasets; open ones would keep their chunks
        self._scales = {}    # by the path of the group and the name of the dimension

    def _path(self, name):
        return "/".join(part for part in (self._name, name) if part)

    def group(self, name: str, source: SourceGroup) -> None:
        """Make a group."""
        path = self._path(name)
        self._set_attributes(self._file.require_group(path) if path else self._file, name, source)

    def array(self, name: str, source: SourceArray, wanted: CopyRequest) -> Target:
        """Make a dataset, and return the target of its elements."""
        dtype = dtype_of(source, wanted)
        if dtype.kind == "U":
            dtype = np.dtypes.StringDType()
            self._losses.note("the fixed length of texts, of any length in HDF5", name)
        # HDF5 has no dates: they are opaque, with the tag that h5py gives them.
        stored: Any = (h5py.string_dtype() if dtype.kind == "T" else
                       h5py.opaque_dtype(dtype) if dtype.kind in "mM" else dtype)
        settings: dict[str, Any] = {}
        chunks: Any = (source.chunk_shape if wanted.chunks is None else
                       normalize_chunks(wanted.chunks, source.shape, dtype.itemsize))
        if source.shape and 0 not in source.shape:
            if isinstance(chunks, (tuple, list)) and all([isinstance(chunk, int) for chunk in chunks]):
                settings["chunks"] = tuple([min(chunk, n) for chunk, n in zip(chunks, source.shape, strict=True)])
            else:
                settings["chunks"] = True
            if (level := _level(source, wanted.compressors)) is not None:
                settings |= {"compression": "gzip", "compression_opts": level, "shuffle": True}
        if source.fill_value is not None and dtype.kind != "T" and dtype.names is None:
            settings["fillvalue"] = np.asarray(source.fill_value).astype(stored)
        try:
            dataset = self._file.create_dataset(self._path(name) or "data", source.shape, stored, **settings)
        except TypeError as exc:
            raise UnsupportedError(f"{name or 'the array'}: HDF5 has no type for {dtype}: {exc}",
                                   feature=f"{dtype} in HDF5") from exc
        self._set_attributes(dataset, name, source)
        if source.dimension_names is not None:
            self._named.append((name, dataset.ref, source.dimension_names))
        self._steady.check()
        return _DatasetTarget(dataset, dtype, self._steady, name or "the array")

    def _set_attributes(self, node, name, source):
        for label, value in source.attributes.items():
            try:
                if label in HIDDEN and isinstance(source, SourceArray):
                    raise ValueError(label)     # HDF5's own, of dimension scales
                if label == MISSING_ATTRIBUTE and isinstance(source, SourceArray):
                    value = _missing_value(value, node.dtype)
                node.attrs[label] = _as_hdf5(value)
                if type(value) is list and len(value) == 1:
                    self._losses.note(f"that {label!r:.60} is a list", name)     # see `attributes_of`
            except (TypeError, ValueError, OverflowError, RuntimeError, OSError):
                self._losses.note(f"the attribute {label!r:.60}, which HDF5 cannot express", name)

    def _name_dimensions(self):
        """Attach dimension scales to the datasets: to all dimensions of one, else all get labels.

        Notes
        -----
        HDF5 Dimension Scale Specification; NetCDF-4 format, "Dimensions without variables". A scale is a coordinate, of
        the group of the dataset or of the nearest one above. For NetCDF there is a placeholder where there is none.
        netcdf-c does not read a file in which only some dimensions of a dataset have scales.
        """
        named = [(*(self._path(name) or "data").rpartition("/")[::2], *rest, name) for name, *rest in self._named]
        for group, own, dataset, names, _ in named:
            if names == (own,):
                self._scales[group, own] = self._file[dataset]
                self._scales[group, own].make_scale(own)
        for group, own, dataset, names, place in sorted(named, key=lambda item: item[0].count("/") + bool(item[0])):
            if names == (own,):
                continue
            node = self._file[dataset]
            try:
                scales = [self._scale_of(group, name, n) for name, n in zip(names, node.shape, strict=True)]
                for dimension, scale in zip(node.dims, scales, strict=True):
                    dimension.attach_scale(scale)
            except UNREADABLE:     # also where HDF5 has no room for the list of some 4000 datasets of one scale
                node.attrs.pop("DIMENSION_LIST", None)
                for dimension, name in zip(node.dims, names, strict=True):
                    if name is not None:
                        dimension.label = name
                if self._is_netcdf and any(names):
                    self._losses.note("names of dimensions as dimensions of NetCDF, only as labels", place)

    def _scale_of(self, group, name, length):
        """Return the scale of a dimension of a dataset in a group, else raise one of `UNREADABLE`."""
        scale = next((self._scales[one, name] for one in (group, *above(group)) if (one, name) in self._scales), None)
        if scale is not None and scale.shape == (length,):
            return scale
        parent = self._file[group or "/"]
        if not self._is_netcdf or (group, name) in self._scales or not name or "/" in check_key(name) or (
                len(name.encode()) > _MAX_NAME_NBYTES or isinstance(parent.get(name), h5py.Group)):
            raise KeyError(name)
        if name in parent:     # a variable that is no coordinate: as netcdf-c names it
            parent.move(name, NO_COORDINATE + name)
        scale = self._scales[group, name] = parent.create_dataset(name, (length,), ">f4")
        scale.make_scale(f"{NOT_A_VARIABLE.decode()}.{length:10}")
        return scale

    def close(self) -> None:
        """Finish the file."""
        self._name_dimensions()
        self._close()

    def _close(self):
        self._scales.clear()
        self._file.close()
        self._steady.close()

    def discard(self) -> None:
        """Release a file that is not finished."""
        with contextlib.suppress(OSError, RuntimeError):
            self._close()


def _missing_value(value, dtype):
    """Return the attribute ``_FillValue`` in the type of the elements, as NetCDF has it, if it can be."""
    value = missing_number(value, dtype)
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        if dtype.kind in "iuf" and not isinstance(value, (list, bool)):
            return np.array([value], dtype)
    return value


def _as_hdf5(value):
    """Return the value of an attribute in a form that HDF5 returns as it is."""
    if isinstance(value, (np.ndarray, str, bool, int, float)):
        return value
    if isinstance(value, list) and len({type(item) for item in value}) <= 1:
        kind = type(value[0]) if value else float
        if kind is str:
            return value
        if kind in (bool, int, float):
            return np.array(value, kind)
    raise TypeError(f"{value!r:.60} is not a value of HDF5")


class _DatasetTarget(Target):
    """A dataset to be written to; see `zcore.tools.copy.transfer.StoredTarget`."""

    def __init__(self, dataset, dtype, file, name):
        self._dataset = dataset
        self._file = file
        self._name = name
        self.shape = dataset.shape
        self.dtype = dtype
        self.object_shape: tuple[int, ...] = dataset.chunks or (1,) * len(dataset.shape)

    def fill(self):
        """Return the value of elements that are not written, an ndarray of one; None where all are to be written."""
        if has_varying_items(self.dtype) or self._dataset.chunks is None:
            return None
        return np.asarray([self._dataset.fillvalue], self.dtype)

    def write(self, starts, values):
        region = tuple([slice(start, start + n) for start, n in zip(starts, values.shape, strict=True)])
        if has_varying_items(values.dtype):
            values = values.astype(object)
            if any(["\0" in text for text in values.flat]):
                raise UnsupportedError(f"{self._name}: a text of it holds a NUL character, where a text of HDF5 ends",
                                       feature="NUL in texts of HDF5")
        self._dataset[region] = values.astype(self._dataset.dtype) if values.dtype.kind in "mM" else values
        self._file.check()
