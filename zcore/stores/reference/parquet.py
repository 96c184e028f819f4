"""Reference sets in Parquet: a directory of documents, and for each array files of references in columns.

References specification, "Parquet references". ``.zmetadata`` has the documents, which are those of Zarr v2, and the
number of references in a file; ``<array>/refs.<n>.parq`` has the rows of the chunks from number ``n * record_size`` on,
in C order. A file is read by pyarrow (extra "parquet") when one of its chunks is needed, and its columns are checked
and cached. So a set of millions of chunks opens at once.

Paths and data of a file are read as dictionaries, each value once, however many rows have it. So the sizes in the
footer bound the memory, and they are compared with limits before anything is decoded.
"""
from __future__ import annotations

import json
import math
import re
from _thread import RLock  # of threading, without its import time
from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.errors import Needing, ReferenceFormatError, UnsupportedError, ZcoreError, warn
from zcore.kernel.refs.table import Records, RecordTable, ReferenceTable
from zcore.model.chunk_grid import coords_at
from zcore.stores.base import AtMost, renew_in_children, right_below
from zcore.stores.keys import check_key
from zcore.stores.openers import PARQUET_DOCUMENT
from zcore.text.object_memory import excess_of_json
from zcore.text.strict_json import WITH_CONSTANTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zcore.stores.base import Store

METADATA = PARQUET_DOCUMENT
MAX_METADATA_NBYTES = 1 << 28
MAX_KEPT_NBYTES = 1 << 28  # of cached columns
MAX_KEPT_FILES = 1 << 12
MAX_DEPTH = 64             # of lists and objects in the documents
_DOCUMENTS = (".zarray", ".zgroup", ".zattrs")
_FILE = re.compile(r"refs\.(0|[1-9][0-9]{0,18})\.parq")


def is_parquet_set(store: Store, prefix: str = "", *, beside_group: bool = False) -> bool:
    """Return whether there is a reference set in Parquet at a prefix: its consolidated metadata have `record_size`.

    `beside_group`: they may be those of a group, to which a program has given that member. These have a version.
    """
    raw = store.get(prefix + METADATA, AtMost(MAX_METADATA_NBYTES))
    if raw is None or b'"record_size"' not in raw:
        return False
    if excess_of_json(raw):
        return True     # whatever it is, opening it tells the reason
    try:
        metadata = WITH_CONSTANTS.decode(raw.decode())
    except (ValueError, RecursionError):
        return False
    return (isinstance(metadata, dict) and "record_size" in metadata
            and not (beside_group and "zarr_consolidated_format" in metadata))


class ParquetTable:
    """The references of a Parquet set, with the methods of a `ReferenceTable`.

    Parameters
    ----------
    store : Store
        Has ``.zmetadata`` and the files of references.

    Raises
    ------
    ReferenceFormatError
        The metadata are not those of a set.
    UnsupportedError
        They are of another Zarr version than 2.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._renew_locks()
        renew_in_children(self)
        self._documents = ReferenceTable()
        self._arrays = {}          # prefix: RecordTable, of the arrays in use
        self._kept = {}            # LRU cache, (prefix, number of a file): Records or None
        self._kept_nbytes = 0
        raw = store.get(METADATA, AtMost(MAX_METADATA_NBYTES + 1))
        if raw is None:
            raise ReferenceFormatError(f"expected the directory of a reference set with {METADATA}, found none",
                                       document=METADATA)
        try:
            self._read_metadata(raw)
        except ZcoreError as error:
            error.locate(METADATA)
            raise

    def _renew_locks(self):
        self._lock = RLock()

    def _read_metadata(self, raw):
        if len(raw) > MAX_METADATA_NBYTES:
            raise _wrong(f"expected {MAX_METADATA_NBYTES} bytes at the most, found more")
        if reason := excess_of_json(raw):
            raise _wrong(reason)
        try:
            # Attributes may have NaN, because Python's json writes it.
            outer = WITH_CONSTANTS.decode(raw.decode())
        except RecursionError:
            raise _wrong(f"expected at most {MAX_DEPTH} nested lists and objects, found more") from None
        except ValueError as exc:
            raise _wrong(f"expected JSON, found a mistake: {exc}") from None
        if not isinstance(outer, dict) or not isinstance(outer.get("metadata"), dict):
            raise _wrong("expected an object with the member 'metadata', an object", "metadata")
        size = outer.get("record_size")
        if type(size) is not int or not 1 <= size < 1 << 63:
            raise _wrong(f"member 'record_size': expected an integer from 1 on, below 2**63, found {size!r:.60}",
                         "record_size")
        self.record_size: int = size
        for key, value in outer["metadata"].items():
            name = key.rpartition("/")[2]
            if name == "zarr.json":
                raise UnsupportedError(f"{key!r:.200}: the Parquet layout of reference sets is of Zarr v2",
                                       feature="Parquet reference sets of Zarr v3")
            if name not in _DOCUMENTS:
                warn(f"{METADATA} has {key!r:.200}, which is no document of Zarr v2 and is ignored")
                continue
            if not isinstance(value, dict):
                raise _wrong(f"{key!r:.200}: expected an object, found {value!r:.60}", key)
            try:
                raw = json.dumps(value, separators=(",", ":")).encode()
                self._documents.put_data(check_key(key).encode(), raw)
            except (RecursionError, UnicodeEncodeError) as exc:
                raise _wrong(f"{key!r:.200}: {exc}", key) from None
            except ZcoreError as exc:
                raise _wrong(f"{exc.message}", key) from None

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use."""
        return self._documents.nbytes + self._kept_nbytes

    @property
    def targets(self) -> list[str | None]:
        """The URLs of the targets in the files that were read, a list of str."""
        return self._documents.targets

    @property
    def n_targets(self) -> int:
        """The number of `targets`."""
        return self._documents.n_targets

    # The methods of a `ReferenceTable`

    def find(self, key: bytes) -> bytes | tuple[str | None, int, int | None] | None:
        """Return the value of a key, bytes, as `ReferenceTable.find` does."""
        found = self._documents.find(key)
        if found is not None:
            return found
        array = self._array_of(key)
        number = -1 if array is None else array.number_of(key)
        if number < 0:
            return None
        file, row = divmod(number, array.record_size)
        records = self._load(array.prefix, file)
        return None if records is None or row >= len(records) else self._value(records, row)

    def _value(self, records, row):
        target, offset, length = records.targets[row], int(records.offsets[row]), int(records.lengths[row])
        if target < 0:
            return records.data[offset:offset + length] if target == -1 else None
        return self._documents.target(target), offset, None if length < 0 else length

    def table_of(self, prefix: bytes) -> ReferenceTable:
        """Return the table for compiled code, with the keys of the array with this prefix, bytes."""
        array = self._array_at(prefix)
        return self._documents if array is None else array

    def list_dir(self, prefix: bytes) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and prefixes right below a prefix, two sorted lists of bytes."""
        keys, prefixes = self._documents.list_dir(prefix)
        array = self._array_of(prefix + b"0")
        if array is not None:
            found = right_below(prefix.decode(), [key.decode() for key, _, _ in self._references(array)
                                                  if key.startswith(prefix)])
            keys = sorted({*keys, *[key.encode() for key in found.keys]})
            prefixes = sorted({*prefixes, *[below.encode() for below in found.prefixes]})
        return keys, prefixes

    def keys(self, prefix: bytes) -> list[bytes]:
        """Return all keys below a prefix, sorted."""
        found = [key for key, _ in self._documents.items() if key.startswith(prefix)]
        for array in self._arrays_of_set():
            if array.prefix.startswith(prefix) or prefix.startswith(array.prefix):
                found += [key for key, _, _ in self._references(array) if key.startswith(prefix)]
        return sorted(found)

    def items(self) -> Iterator[tuple[bytes, bytes | tuple[str | None, int, int | None]]]:
        """Iterate over (key, value): documents first, then chunks, array by array."""
        yield from self._documents.items()
        for array in self._arrays_of_set():
            for key, records, row in self._references(array):
                yield key, self._value(records, row)

    def _references(self, array):
        """Iterate over the chunks of an array that have a reference: the key, the `Records`, and the row in these."""
        grid, sign, size = array.grid_shape, array.separator.decode(), array.record_size
        for file in self._files_of(array):
            records = self._load(array.prefix, file)
            for row in np.flatnonzero(records.targets != -2).tolist() if records is not None else ():
                coords = coords_at(file * size + row, grid) or (0,)
                yield array.prefix + sign.join(map(str, coords)).encode(), records, row

    def _files_of(self, array):
        """Return the numbers of the existing files of an array, ascending."""
        numbers = []
        found = self._store.list_dir(array.prefix.decode())
        # Loading an unreachable file is an error: its chunks are not absent.
        for key in (*found.keys, *found.unreachable):
            name = _FILE.fullmatch(key[len(array.prefix):])
            if name and int(name[1]) * array.record_size < math.prod(array.grid_shape):
                numbers.append(int(name[1]))
        return sorted(numbers)

    # Arrays, and their files

    def _arrays_of_set(self):
        """Iterate over the `RecordTable` of each array."""
        for key in sorted(key for key, _ in self._documents.items()):
            if key.endswith(b".zarray") and (array := self._array_at(key[:-7])) is not None:
                yield array

    def _array_of(self, key):
        """Return the `RecordTable` of the array for the key of a chunk, or None."""
        end = len(key)
        for _ in range(MAX_NDIM + 1):
            end = key.rfind(b"/", 0, end)
            array = self._array_at(key[:end + 1])
            if array is not None or end < 0:
                return array
        return None

    def _array_at(self, prefix):
        """Return the `RecordTable` of the array with a prefix, or None."""
        with self._lock:
            if prefix not in self._arrays:
                raw = self._documents.find(prefix + b".zarray")
                if raw is None:
                    return None
                self._arrays[prefix] = self._describe(prefix, raw)
            return self._arrays[prefix]

    def _describe(self, prefix, raw):
        name = prefix.decode() + ".zarray"
        members = WITH_CONSTANTS.decode(raw.decode())
        shape, chunks = members.get("shape"), members.get("chunks")
        if members.get("zarr_format") != 2:
            raise _wrong(f"{name!r:.200}: expected zarr_format 2, found {members.get('zarr_format')!r:.60}", name)
        for member, values, low in (("shape", shape, 0), ("chunks", chunks, 1)):
            if not isinstance(values, list) or len(values) > MAX_NDIM or not all(
                    type(value) is int and low <= value < 1 << 63 for value in values):
                raise _wrong(f"{name!r:.200}: member {member!r}: expected a list of integers from {low} on, found "
                             f"{values!r:.60}", name)
        if len(shape) != len(chunks):
            raise _wrong(f"{name!r:.200}: {len(shape)} dimensions, and {len(chunks)} of chunks", name)
        grid = tuple([-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)])
        if math.prod([length or 1 for length in grid]) >= 1 << 63:
            raise _wrong(f"{name!r:.200}: 2**63 chunks or more", name)
        separator = members.get("dimension_separator", ".")
        if separator not in (".", "/"):
            raise _wrong(f"{name!r:.200}: member 'dimension_separator': expected '.' or '/', found {separator!r:.60}",
                         name)

        def load(file):
            return self._load(prefix, file)

        return RecordTable(self._documents, prefix, grid, separator.encode(), self.record_size, load)

    def _load(self, prefix, file):
        """Return the `Records` of a file, or None for a missing file."""
        entry = prefix, file
        with self._lock:
            if entry in self._kept:
                self._kept[entry] = records = self._kept.pop(entry)
                return records
            n_rows = math.prod(self._arrays[prefix].grid_shape) - file * self.record_size
            key = f"{prefix.decode()}refs.{file}.parq"
            self._kept[entry] = records = read_records(self._store, key, self.record_size, n_rows,
                                                        self._documents.numbers_of)
            self._kept_nbytes += 0 if records is None else records.nbytes
            while len(self._kept) > MAX_KEPT_FILES or (self._kept_nbytes > MAX_KEPT_NBYTES and len(self._kept) > 1):
                oldest = self._kept.pop(next(iter(self._kept)))
                self._kept_nbytes -= 0 if oldest is None else oldest.nbytes
            return records


def _wrong(sentence, member=None):
    return ReferenceFormatError(f"{METADATA}: {sentence}", document=METADATA, member=member)

MAX_FILE_NBYTES = 1 << 29
MAX_DECODED_NBYTES = 1 << 30   # of the columns of a file, as its footer declares them
MAX_ROWS = 1 << 24
MAX_FOOTER_NBYTES = 1 << 24    # of a text or a list in it
MAX_TARGETS = (1 << 31) - 1
INLINE, MISSING, WHOLE = -1, -2, -1
COLUMNS = ("path", "offset", "size", "raw")


def read_records(store: Store, key: str, record_size: int, n_rows: int,
                 numbers_of: Callable[[list[str | None]], list[int]]) -> Records | None:
    """Return the `Records` of a file, or None for a missing file.

    Parameters
    ----------
    store : Store
    key : str
    record_size : int
        Maximum number of rows.
    n_rows : int
        Rows for which the array has chunks; later ones are ignored.
    numbers_of : callable
        Returns the numbers of a list of URLs.

    Raises
    ------
    ReferenceFormatError
        The file is invalid, or a row is no reference.
    UnsupportedError
        pyarrow is not installed.
    """
    raw = store.get(key, AtMost(MAX_FILE_NBYTES + 1))
    if raw is None:
        return None
    with Needing("reference sets in Parquet need", "pyarrow", "parquet", "reference sets in Parquet"):
        import pyarrow.parquet
    try:
        if len(raw) > MAX_FILE_NBYTES:
            raise ReferenceFormatError(f"expected {MAX_FILE_NBYTES} bytes at the most, found more")
        columns, n = _columns(pyarrow, raw, record_size, max(n_rows, 0))
        return Records(*_rows(pyarrow, columns, n, numbers_of), MAX_TARGETS)
    except ReferenceFormatError as error:
        raise ReferenceFormatError(f"{key}: {error.message}", document=key) from None
    except (pyarrow.ArrowException, ValueError, KeyError, OSError) as exc:
        raise ReferenceFormatError(f"{key}: expected a Parquet file of references, found a mistake: {exc!s:.300}",
                                   document=key) from exc


def _columns(pyarrow, raw, record_size, n_rows):
    """Return the columns, a dict of ChunkedArray, and the number of their rows, at most `n_rows`."""
    options = {"thrift_string_size_limit": MAX_FOOTER_NBYTES, "thrift_container_size_limit": MAX_FOOTER_NBYTES}
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw), **options)
    metadata, schema = file.metadata, file.schema_arrow
    names = schema.names
    n = metadata.num_rows
    if not 0 <= n <= min(record_size, MAX_ROWS):
        raise ReferenceFormatError(f"expected {min(record_size, MAX_ROWS)} rows at the most, found {n}")
    present = [name for name in COLUMNS if name in names]
    if len(set(names)) < len(names):
        raise ReferenceFormatError("two columns have one name")
    n_bytes = 0
    for group in range(metadata.num_row_groups):
        # Not the sizes of its columns: pyarrow ends the process if the metadata of one are damaged.
        of_group = metadata.row_group(group).total_byte_size
        n_bytes += of_group
        if of_group < 0 or n_bytes > MAX_DECODED_NBYTES:
            raise ReferenceFormatError(f"expected columns of {MAX_DECODED_NBYTES} bytes at the most, found {n_bytes}")
    if not present:
        raise ReferenceFormatError(f"expected columns {', '.join(COLUMNS)}, found {', '.join(names)!r:.200}")
    if "path" not in present and ("offset" in present or "size" in present):
        # Without it every row would be a missing chunk, whatever its offset says.
        raise ReferenceFormatError(f"expected a column 'path' beside offset and size, found {', '.join(names)!r:.200}")
    values = [name for name in present if name in ("path", "raw") and _is_of_bytes(pyarrow, schema.field(name).type)]
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw), metadata=metadata, read_dictionary=values,
                                       page_checksum_verification=True, **options)
    # In this thread: a page may have 2 GiB whatever the footer says, so only one is decoded at a time.
    table = file.read(columns=present, use_threads=False)
    if table.num_rows != n:
        raise ReferenceFormatError(f"expected {n} rows, as it declares, found {table.num_rows}")
    # kerchunk fills a file up to the size of a record, even if the array has a single chunk.
    n = min(n, n_rows)
    table = table.slice(0, n)
    table.validate(full=True)
    return {name: table.column(name) for name in present}, n


def _is_of_bytes(pyarrow, kind):
    types = pyarrow.types
    return (types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)
            or types.is_large_binary(kind))


def _rows(pyarrow, columns, n, numbers_of):
    """Return four columns: numbers of targets, offsets, lengths, and the data inside the file."""
    targets = np.full(n, MISSING, np.int32)
    offsets, has_offset = _integers(pyarrow, columns.get("offset"), n, "offset")
    lengths, has_length = _integers(pyarrow, columns.get("size"), n, "size")
    for numbers, what in ((offsets, "an offset"), (lengths, "a size")):
        if n and numbers.min() < 0:
            i = int(numbers.argmin())
            raise ReferenceFormatError(f"row {i}: expected {what} from 0 on, found {numbers[i]}")
    for start, rows, urls, chosen in _texts(pyarrow, columns.get("path"), "path"):
        urls = np.array(numbers_of(urls.to_pylist()), np.int32)
        targets[start + rows] = urls[chosen]
    is_part = targets >= 0
    # In the text, a size of 0 is the whole file; kerchunk writes 0 for offset and size.
    lengths[is_part & (offsets == 0) & (lengths == 0)] = WHOLE
    data = []
    n_data = 0
    for start, rows, values, chosen in _texts(pyarrow, columns.get("raw"), "raw"):
        values = values.cast(pyarrow.large_binary())
        _, ends, bytes_of = values.buffers()
        ends = np.frombuffer(ends, np.int64)[values.offset:values.offset + len(values) + 1]
        data.append(b"" if bytes_of is None else bytes_of[int(ends[0]):int(ends[-1])].to_pybytes())
        targets[start + rows] = INLINE
        offsets[start + rows] = (ends[:-1] - ends[0] + n_data)[chosen]
        lengths[start + rows] = np.diff(ends)[chosen]
        n_data += len(data[-1])
    for has, what in ((has_offset, "an offset"), (has_length, "a size")):
        if has is not None and (lost := np.flatnonzero((targets >= 0) & ~has)).size:
            raise ReferenceFormatError(f"row {lost[0]}: expected {what} beside its path, found none")
    return targets, offsets, lengths, b"".join(data)


def _integers(pyarrow, column, n, name):
    """Return a column of integers as int64, 0 for missing values, and which are present; None: all."""
    if column is None or pyarrow.types.is_null(column.type):
        return np.zeros(n, np.int64), None if column is None else np.zeros(n, np.bool)
    if not pyarrow.types.is_integer(column.type):
        raise ReferenceFormatError(f"column {name!r}: expected int64, found {column.type}")
    has = None if column.null_count == 0 else column.is_valid().to_numpy()
    numbers = column.fill_null(0).cast(pyarrow.int64()).to_numpy()
    return numbers.copy(), has


def _texts(pyarrow, column, name):
    """Iterate over the chunks of a column: first row, rows with a value, distinct values, and their indices."""
    is_text = pyarrow.types.is_string if name == "path" else pyarrow.types.is_binary
    is_large = pyarrow.types.is_large_string if name == "path" else pyarrow.types.is_large_binary
    stop = 0
    for part in column.chunks if column is not None else ():
        start, stop, kind = stop, stop + len(part), part.type
        if pyarrow.types.is_null(kind) or (pyarrow.types.is_floating(kind) and not _has_numbers(part)):
            continue           # pandas writes a column without values like this
        if not pyarrow.types.is_dictionary(kind):
            part = part.dictionary_encode() if is_text(kind) or is_large(kind) else part
        if not pyarrow.types.is_dictionary(part.type) or not (
                is_text(part.type.value_type) or is_large(part.type.value_type)):
            what = "texts" if name == "path" else "bytes"
            raise ReferenceFormatError(f"column {name!r}: expected {what}, found {kind}")
        rows = np.flatnonzero(part.is_valid().to_numpy(zero_copy_only=False))
        values, chosen = np.unique(part.indices.drop_null().to_numpy(zero_copy_only=False), return_inverse=True)
        values = part.dictionary.take(pyarrow.array(values))
        if values.null_count:
            raise ReferenceFormatError(f"column {name!r}: a value of its dictionary is null")
        if len(rows):
            yield start, rows, values, chosen


def _has_numbers(part):
    return not np.isnan(part.fill_null(float("nan")).to_numpy(zero_copy_only=False)).all()
