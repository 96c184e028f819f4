"""One dataset of HDF5 as references: the documents of a Zarr v2 array, and where its chunks lie.

Types and filters that Zarr v2 does not have with the same bytes are refused by name.
"""
from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zcore import api
from zcore.blosc import COMPRESSORS
from zcore.errors import ChunkError, UnsupportedError
from zcore.formats import format_of
from zcore.formats.zarr_v2.fill import render_fill
from zcore.model.chunk_grid import number_of
from zcore.model.dtypes import to_descr
from zcore.stores.memory import MemoryStore
from zcore.tools.hdf5.walk import attributes_of, dimension_names, fill_of_attribute, fill_value_of, h5py, type_of

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from zcore.model.metadata import CodecSpec
    from zcore.tools.hdf5.walk import ScaleNames

    References: TypeAlias = dict[str, bytes | tuple[str, int, int]]

PART_NBYTES = 1 << 24      # of a contiguous dataset, which is divided into parts
MIN_TEXT_NBYTES = 4        # vlen-utf8: of an empty one
_MAX_VIRTUAL = 64          # virtual datasets that are made of each other
MAX_TEXTS_NBYTES = 1 << 28  # that texts read at once may have, if each of them were all of the file
_ZARR_V2 = format_of(2)


def references_of(dataset: Any, prefix: str, scales: ScaleNames, url: str, inline_threshold: int,
                  max_inlined: int) -> References:
    """Return the references of a dataset: a dict of keys to bytes or (url, offset, length).

    Parameters
    ----------
    dataset : h5py.Dataset
    prefix : str
        Of the keys.
    scales : ScaleNames
        Of the file.
    url : str
        Of the file.
    inline_threshold, max_inlined : int
        See `zcore.references_from_hdf5`.

    Raises
    ------
    UnsupportedError
        It cannot be an array of Zarr v2, or needs more data in the set than allowed.
    """
    properties = dataset.id.get_create_plist()
    if properties.get_external_count():
        raise UnsupportedError("its elements lie in other files", feature="external storage of HDF5")
    if dataset.is_virtual:
        raise UnsupportedError("it is made of other datasets", feature="virtual datasets of HDF5")
    names = scales.phony(dimension_names(dataset, scales), dataset.shape)
    attributes = {**attributes_of(dataset), "_ARRAY_DIMENSIONS": names}
    kind = dataset.id.get_type()
    if is_text(kind):
        return _copied(attributes, dataset, prefix, _chunks_of(dataset), np.dtype(object), max_inlined)
    dtype = type_of(dataset)
    if dtype.subdtype is not None:
        raise UnsupportedError(f"its elements are arrays, {dtype}", feature="types of HDF5")
    check_type(kind, dtype)
    dtype = _bare(dtype)
    if properties.get_layout() == h5py.h5d.COMPACT:
        return _copied(attributes, dataset, prefix, _chunks_of(dataset), dtype, max(max_inlined, dataset.nbytes))
    if properties.get_layout() == h5py.h5d.CHUNKED:
        chunks = dataset.chunks
        extents, mask = stored_chunks(dataset)
        filters, compressor = filters_of(properties, mask)
    else:
        chunks = _parts(dataset.shape, dtype.itemsize)
        extents, mask = _parts_of(dataset, chunks, dtype.itemsize), 0
        filters = compressor = None
    is_whole = len(extents) == math.prod(_grid(dataset.shape, chunks))
    found = _documents(attributes, dataset, prefix, chunks, dtype, filters, compressor, is_whole)
    to_copy = []
    n_bytes = math.prod(chunks) * dtype.itemsize if filters or compressor else None
    with open(dataset.file.filename, "rb") as file:
        for coords, (offset, length, is_other) in extents.items():
            read = partial(_read, file, offset, length)
            if is_other or (length == n_bytes and _is_bare(dataset, prefix, chunks, found, coords, read)):
                to_copy.append(coords)
            elif length <= inline_threshold and len(value := read()) == length:
                found[prefix + _key(coords)] = value
            else:     # if the file is too short, readers of the set say so
                found[prefix + _key(coords)] = url, offset, length
    _copy(dataset, prefix, chunks, found, to_copy, max_inlined)
    return found


def codecs_of(dataset: Any, dtype: np.dtype[Any]) -> tuple[CodecSpec, ...] | None:
    """Return the codec chain of the filters of a dataset; None if there are none, or Zarr does not have them.

    Checksums come behind the other filters: numcodecs does not shuffle items of 8 bytes and a checksum of 4.
    """
    with contextlib.suppress(UnsupportedError, ValueError):
        filters, compressor = filters_of(dataset.id.get_create_plist(), 0)
        filters = filters and sorted(filters, key=lambda one: one["id"] == "fletcher32")
        if filters or compressor:
            return _ZARR_V2.new_array(dataset.shape, dtype, dataset.chunks, filters=filters,
                                      compressors=compressor).codecs
    return None


def is_stored(dataset: Any) -> bool:
    """Return whether all elements of a dataset are stored, so that none is its fill value for lack of another."""
    if dataset.chunks is None:
        return dataset.id.get_storage_size() >= dataset.nbytes
    return dataset.id.get_num_chunks() >= math.prod(_grid(dataset.shape, dataset.chunks))


def missing_filters(dataset: Any) -> list[int]:
    """Return the numbers of the filters of a dataset that this HDF5 does not have; none if there is nothing to read."""
    properties = dataset.id.get_create_plist()
    codes = [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]
    missing = [code for code in codes if not h5py.h5z.filter_avail(code)]
    return missing if missing and dataset.id.get_storage_size() else []


def check_virtual(dataset: Any) -> None:
    """Raise UnsupportedError if a virtual dataset is made of itself, which ends the process when HDF5 reads it."""
    if dataset.is_virtual and _is_made_of(dataset, set(), set()):
        raise UnsupportedError(f"{dataset.name} is made of itself, or of more than {_MAX_VIRTUAL} datasets behind each "
                               "other", feature="virtual datasets made of themselves")


def _is_made_of(node, on_the_way, done):
    """Return whether a dataset leads to one `on_the_way` to it, or too far."""
    status = os.stat(node.file.filename)
    place = status.st_dev, status.st_ino, node.name
    if place in on_the_way or len(on_the_way) == _MAX_VIRTUAL:
        return True
    on_the_way.add(place)
    sources = node.virtual_sources() if node.is_virtual and place not in done else ()
    for file_name, name in {(source.file_name, source.dset_name) for source in sources}:
        for path in _sources_at(node, file_name):
            with contextlib.suppress(OSError), h5py.File(path, "r") as file:
                found = file.get(name)
                if isinstance(found, h5py.Dataset) and _is_made_of(found, on_the_way, done):
                    return True
    on_the_way.remove(place)
    done.add(place)
    return False


def _sources_at(dataset, name):
    """Return the paths of the files of a name that a virtual dataset may be made of, sought as HDF5 does it."""
    if name == ".":
        return [dataset.file.filename]
    places = os.environ.get("HDF5_VDS_PREFIX", ""), os.path.dirname(dataset.file.filename), ""
    paths = [os.path.join(place, each) for place in places for each in (name, os.path.basename(name))]
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def absent_sources(dataset: Any) -> list[str]:
    """Return the names of the files that a virtual dataset is made of and that do not exist: HDF5 reads fill values.

    Names of which a number is a part are left out.
    """
    names = {source.file_name for source in dataset.virtual_sources()} if dataset.is_virtual else ()
    return sorted(name for name in names if "%" not in name and not _sources_at(dataset, name))


def _bare(dtype):
    """Return a type without the metadata of h5py."""
    return np.dtype(dtype.str) if dtype.names is None else dtype


def _chunks_of(dataset):
    return dataset.chunks or tuple([max(length, 1) for length in dataset.shape])


def _grid(shape, chunks):
    return tuple([-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)])


def _key(coords):
    return ".".join(map(str, coords)) or "0"

# Places of the chunks

def stored_chunks(dataset: Any) -> tuple[dict[tuple[int, ...], tuple[int, int, bool]], int]:
    """Return the chunks that are stored, {coords: (offset, length, whether the mask is another)}, and their mask."""
    if has_wrong_places(dataset):
        raise UnsupportedError("HDF5 does not say where its chunks lie, as a dimension without limit is not the first; "
                               "zcore.copy copies its elements", feature="datasets with wrong places of chunks")
    grid = _grid(dataset.shape, dataset.chunks)
    stored = []
    dataset.id.chunk_iter(stored.append)
    masks = {chunk.filter_mask for chunk in stored}
    mask = masks.pop() if len(masks) == 1 else 0
    extents, shift = {}, _shift(dataset, stored)
    for chunk in stored:
        coords = _coords(chunk, dataset.chunks)
        if number_of(coords, grid) is not None:
            extents[coords] = shift + chunk.byte_offset, chunk.size, chunk.filter_mask != mask
    return extents, mask


def has_wrong_places(dataset: Any) -> bool:
    """Return whether HDF5 may say wrong coordinates of chunks.

    With ``libver="latest"``, if one dimension has no limit and is not the first, HDF5 (2.0 at least) says 0 for all
    dimensions before it, and counts on along it.
    """
    free = [d for d, length in enumerate(dataset.maxshape) if length is None]
    if dataset.chunks is None or len(free) != 1 or all(
            [most <= n for most, n in zip(dataset.maxshape[:free[0]], dataset.chunks, strict=False)]):
        return False
    coords = stored_coords(dataset)
    return any(map(any, coords)) and not any([any(one[:free[0]]) for one in coords])


def stored_coords(dataset: Any) -> set[tuple[int, ...]]:
    """Return the coordinates of the chunks that are stored."""
    stored = []
    dataset.id.chunk_iter(stored.append)
    return {_coords(chunk, dataset.chunks) for chunk in stored}


def _coords(chunk, chunks):
    return tuple([start // length for start, length in zip(chunk.chunk_offset, chunks, strict=True)])


def _shift(dataset, stored):
    """Return the number to add to offsets: some versions of HDF5 count from the end of a user block."""
    n_before = dataset.file.userblock_size
    if not (n_before and stored):
        return 0
    chunk = stored[0]
    with open(dataset.file.filename, "rb") as file:
        value = _read(file, chunk.byte_offset, chunk.size)
    return 0 if value == dataset.id.read_direct_chunk(chunk.chunk_offset)[1] else n_before


def _read(file, offset, n_bytes):
    file.seek(offset)
    return file.read(n_bytes)


def _parts(shape, itemsize):
    """Return the shape of chunks that follow each other in a contiguous dataset, each of some 16 MiB or less.

    Where a dimension has no number of parts that divides it, and is not much larger than needed, it is not cut.

    >>> _parts((1000, 1000, 10), 8), _parts((7, 11), 1), _parts((2, 3 << 24), 4), _parts((), 8)
    ((200, 1000, 10), (7, 11), (1, 4194304), ())
    """
    chunks = [max(length, 1) for length in shape]
    n_bytes = math.prod(chunks) * itemsize
    for d, length in enumerate(chunks):
        n_parts = -(-n_bytes // PART_NBYTES)
        if n_parts < length:
            for n in range(n_parts, min(length, 8 * n_parts) + 1):
                if length % n == 0:
                    chunks[d] = length // n
                    break
            break
        chunks[d] = 1
        n_bytes //= length
    return tuple(chunks)


def _parts_of(dataset, chunks, itemsize):
    offset = dataset.id.get_offset()
    # With a user block in front of the file, HDF5 returns an offset for elements never written, too.
    if offset is None or dataset.id.get_storage_size() < dataset.nbytes or dataset.size == 0:
        return {}
    n_bytes = math.prod(chunks) * itemsize
    return {coords: (offset + i * n_bytes, n_bytes, False)
            for i, coords in enumerate(np.ndindex(*_grid(dataset.shape, chunks)))}

# The documents

def _documents(attributes, dataset, prefix, chunks, dtype, filters, compressor, is_whole) -> References:
    """Return the documents of the array; see `zcore.formats.zarr_v2.format`."""
    if dtype.hasobject:
        descr, fill_value = "|O", None
    else:
        descr = to_descr(dtype)
        raw = fill_value_of(dataset)
        raw = None if raw is None else np.asarray(raw, dtype).tobytes()
        said = fill_of_attribute(dataset, dtype)
        # Readers of Zarr v2 take the fill value for missing data. Null reads as zero, and hides nothing.
        if is_whole or raw is None or not any(raw):
            raw = None if said is None or (any(said.tobytes()) and not is_whole) else said.tobytes()
        if said is not None and said.tobytes() == raw and dtype.kind not in "iuf":
            del attributes["_FillValue"]     # numbers stay, for copies to other formats
        fill_value = None if raw is None else render_fill(dtype, raw)
    document = json.dumps({
        "zarr_format": 2, "shape": dataset.shape, "chunks": chunks, "dtype": descr, "fill_value": fill_value,
        "order": "C", "filters": filters, "compressor": compressor}).encode()
    _ZARR_V2.parse_array(document, prefix)
    return {prefix + _ZARR_V2.array_document: document,
            prefix + _ZARR_V2.attributes_document: json.dumps(attributes).encode()}

# Copied chunks

def _copied(attributes, dataset, prefix, chunks, dtype, max_inlined) -> References:
    """Return the references of a dataset whose elements are all copied."""
    of_text = dtype.hasobject
    filters = [{"id": "vlen-utf8"}] if of_text else None
    found = _documents(attributes, dataset, prefix, chunks, dtype, filters, None, True)
    n_least = dataset.size * (MIN_TEXT_NBYTES if of_text else dtype.itemsize)
    _check_size(n_least, max_inlined)
    _copy(dataset, prefix, chunks, found, np.ndindex(*_grid(dataset.shape, chunks)), max_inlined,
          Texts(dataset) if of_text else None)
    return found


def _region(coords, chunks, shape):
    return tuple([slice(i * n, min((i + 1) * n, length)) for i, n, length in zip(coords, chunks, shape, strict=True)])


def _is_bare(dataset, prefix, chunks, found, coords, read):
    """Return whether a chunk as long as its elements is one that no filter was applied to, against its mask.

    HDF5 stores chunks at the border so on request (``H5Pset_chunk_opts``), and h5py does not tell.
    """
    region = _region(coords, chunks, dataset.shape)
    if all([part.stop - part.start == n for part, n in zip(region, chunks, strict=True)]):
        return False
    array = api.open(MemoryStore({".zarray": found[prefix + _ZARR_V2.array_document], _key(coords): read()}))
    try:
        decoded = array[region]
    except ChunkError:
        return True
    # Only a shuffle decodes any bytes; to others, bytes that no filter was applied to are damage.
    return [codec.name for codec in array.metadata.codecs[1:]] == ["numcodecs.shuffle"] and (
        decoded.tobytes() != dataset[region].tobytes())


class Texts:
    """The texts of a dataset. HDF5 2.0 reads those that were never written in files open for writing alone.

    So the chunks that are stored are read, and the others are the fill value.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self._decoded = dataset.asstr("utf-8")     # some files say ASCII and hold UTF-8
        self._stored = None
        if dataset.chunks is not None and not is_stored(dataset) and not has_wrong_places(dataset):
            self._stored = stored_coords(dataset)
            fill = fill_value_of(dataset)
            self._fill = fill if isinstance(fill, bytes) else b"" if not isinstance(fill, str) else fill.encode()

    def read(self, region: tuple[slice, ...], decoded: bool = True) -> Any:
        """Return the texts in a region, an array of objects: str, or bytes if not `decoded`.

        Raises : UnicodeDecodeError, if a text is not UTF-8.
        """
        source = self._decoded if decoded else self.dataset
        if self._stored is None:
            return np.asarray(source[region if region else ()], object)
        selected = [range(*part.indices(length)) for part, length in zip(region, self.dataset.shape, strict=True)]
        texts = np.full([len(part) for part in selected], self._fill.decode() if decoded else self._fill, object)
        of_chunks = [_of_chunks(part, n) for part, n in zip(selected, self.dataset.chunks, strict=True)]
        for parts in itertools.product(*[part.items() for part in of_chunks]):
            if tuple([i for i, _ in parts]) in self._stored:
                where = tuple([slice(*bounds) for _, bounds in parts])
                found = [part[within] for part, within in zip(selected, where, strict=True)]
                texts[where] = source[tuple([slice(part.start, part.stop, part.step) for part in found])]
        return texts


def _of_chunks(selected, length):
    """Return for each chunk of one dimension, by its index, the first and the last position in `selected` within it.

    >>> _of_chunks(range(1, 9, 3), 4)
    {0: (0, 1), 1: (1, 3)}
    """
    found = {}
    for position, index in enumerate(selected):
        first, _ = found.get(index // length, (position, None))
        found[index // length] = first, position + 1
    return found


def _copy(dataset, prefix, chunks, found, to_copy, max_inlined, texts=None):
    """Add chunks with these coordinates as the array's codecs encode them; `texts` are the dataset's, if it has any."""
    if to_copy and (missing := missing_filters(dataset)):
        raise UnsupportedError(f"chunks of it must be copied, and this HDF5 does not have the filter {missing[0]}; "
                               "hdf5plugin has some", feature=f"the filter {missing[0]} of HDF5")
    store = MemoryStore({".zarray": found[prefix + _ZARR_V2.array_document]})
    array = api.open(store, "r+", write_empty_chunks=True)
    n_bytes = 0
    for coords in to_copy:
        region = _region(coords, chunks, dataset.shape)
        n_bytes += 0 if texts else math.prod(chunks) * array.itemsize
        _check_size(n_bytes, max_inlined)
        array[region] = _texts(texts, region, max_inlined) if texts else dataset[region]
        value = found[prefix + _key(coords)] = store.get(_key(coords))
        n_bytes += len(value) if texts else 0
        _check_size(n_bytes, max_inlined)


def _texts(texts, region, max_inlined):
    """Return texts of a dataset, an array of objects.

    Many elements may share one text of the file: they are read one by one where all might be too many.
    """
    shape = tuple([part.stop - part.start for part in region])
    try:
        if math.prod(shape) * os.path.getsize(texts.dataset.file.filename) <= MAX_TEXTS_NBYTES:
            return texts.read(region)
        found = np.empty(shape, object)
        n_bytes = 0
        for index in np.ndindex(*shape):
            starts = [part.start + i for part, i in zip(region, index, strict=True)]
            found[index] = texts.read(tuple([slice(start, start + 1) for start in starts])).item()
            n_bytes += len(found[index]) + MIN_TEXT_NBYTES
            _check_size(n_bytes, max_inlined)
        return found
    except UnicodeDecodeError as exc:
        raise UnsupportedError(f"a text of it is not UTF-8: {exc.reason}", feature="texts that are not UTF-8") from exc


def _check_size(n_bytes, max_inlined):
    if n_bytes > max_inlined:
        raise UnsupportedError(f"{n_bytes} bytes or more of it would have to be copied into the set; max_inlined= "
                               f"permits more than {max_inlined}", feature="much data in reference sets")

_NAMES = {4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp"}
DEFLATE, SHUFFLE, FLETCHER32, BLOSC, ZSTD = 1, 2, 3, 32001, 32015
_COMPRESSORS = ("zlib", "blosc", "zstd")


def is_text(kind: Any) -> bool:
    """Return whether a type is text of varying length."""
    return kind.get_class() == h5py.h5t.STRING and kind.is_variable_str()


def check_type(kind: Any, dtype: np.dtype[Any]) -> None:
    """Raise UnsupportedError unless elements of an HDF5 type are, byte for byte, those of a NumPy type."""
    h5t = h5py.h5t
    family = kind.get_class()
    if family == h5t.BITFIELD:     # h5py does not have its precision
        is_same = any([kind == getattr(h5t, f"STD_B{8 * kind.get_size()}{order}", None) for order in ("LE", "BE")])
    elif family == h5t.INTEGER:
        is_same = kind.get_precision() == 8 * kind.get_size() and kind.get_offset() == 0
    elif family == h5t.FLOAT:
        is_same = dtype.kind == "f" and h5t.py_create(dtype) == kind
    elif family == h5t.STRING:
        # HDF5 drops the blanks of texts that are padded with blanks; those padded with NUL end at the first NUL.
        is_same = not kind.is_variable_str() and kind.get_strpad() != h5t.STR_SPACEPAD
    elif family == h5t.ENUM or (family == h5t.ARRAY and dtype.subdtype is not None):
        check_type(kind.get_super(), dtype.base)
        is_same = True
    elif family == h5t.COMPOUND:
        n_bytes, is_same = 0, True
        for i in range(kind.get_nmembers()):
            part = kind.get_member_type(i)
            check_type(part, _real(dtype) if dtype.names is None else dtype[i])
            is_same = is_same and kind.get_member_offset(i) == n_bytes
            n_bytes += part.get_size()
        is_same = is_same and n_bytes == kind.get_size()
    else:
        is_same = False
    if not is_same or kind.get_size() != dtype.itemsize:
        raise UnsupportedError(f"elements of the HDF5 type {type(kind).__name__}, which h5py reads as {dtype}, are not "
                               "stored as Zarr v2 stores those of any type", feature="types of HDF5")


def _real(dtype):
    """Return the type of the parts of complex numbers, which are compounds in HDF5."""
    if dtype.kind != "c":
        raise UnsupportedError(f"a compound type that h5py reads as {dtype}", feature="types of HDF5")
    return dtype.type(0).real.dtype.newbyteorder(dtype.byteorder)


def filters_of(properties: Any, mask: int) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Return the filters and the compressor, as Zarr v2 documents have them, of chunks with a mask.

    Parameters
    ----------
    properties : h5py.h5p.PropDCID
        Of a chunked dataset.
    mask : int
        Its bits are set for filters that these chunks were stored without.
    """
    configs = []
    for i in range(properties.get_nfilters()):
        code, _, values, name = properties.get_filter(i)
        if mask >> i & 1:
            continue
        config = _config(code, values)
        if config is None or (code == SHUFFLE and {one["id"] for one in configs} - {"shuffle", "fletcher32"}):
            name = _NAMES.get(code) or name.decode(errors="replace") or f"number {code}"
            raise UnsupportedError(f"the filter {name!r:.60} of HDF5 has no counterpart in Zarr v2"
                                   + (" at its place" if config else ""), feature=f"the filter {name} of HDF5")
        configs.append(config)
    compressor = configs.pop() if configs and configs[-1]["id"] in _COMPRESSORS else None
    return configs or None, compressor


def _config(code, values):
    if code == DEFLATE:
        return {"id": "zlib", "level": values[0] if values else 1}
    if code == SHUFFLE and values:
        return {"id": "shuffle", "elementsize": values[0]}
    if code == FLETCHER32:
        return {"id": "fletcher32"}
    if code == ZSTD:
        return {"id": "zstd", "level": values[0] if values else 3}
    if code == BLOSC and len(values) >= 7 and values[6] < len(COMPRESSORS):
        return {"id": "blosc", "cname": COMPRESSORS[values[6]], "clevel": values[4], "shuffle": values[5],
                "blocksize": 0}
    return None
