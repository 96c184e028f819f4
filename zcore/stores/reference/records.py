"""One file of references in Parquet, read by pyarrow (extra "parquet") and checked, as columns for compiled code.

Paths and data are read as dictionaries, each value once, however many rows have it. So the sizes in the footer bound
the memory, and they are compared with limits before anything is decoded.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import Needing, ReferenceFormatError
from zcore.kernel.refs.table import Records
from zcore.stores.base import AtMost

if TYPE_CHECKING:
    from collections.abc import Callable

    from zcore.stores.base import Store

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
    pyarrow = _pyarrow()
    if len(raw) > MAX_FILE_NBYTES:
        raise _wrong(key, f"expected {MAX_FILE_NBYTES} bytes at the most, found more")
    try:
        columns, n = _columns(pyarrow, raw, key, record_size, max(n_rows, 0))
        return Records(*_rows(pyarrow, columns, n, key, numbers_of), MAX_TARGETS)
    except ReferenceFormatError as error:
        if error.document is None:
            raise _wrong(key, error.message) from None
        raise
    except (pyarrow.ArrowException, ValueError, KeyError, OSError) as exc:
        raise _wrong(key, f"expected a Parquet file of references, found a mistake: {exc!s:.300}") from exc


def _pyarrow():
    with Needing("reference sets in Parquet need", "pyarrow", "parquet", "reference sets in Parquet"):
        import pyarrow.parquet
    return pyarrow


def _columns(pyarrow, raw, key, record_size, n_rows):
    """Return the columns, a dict of ChunkedArray, and the number of their rows, at most `n_rows`."""
    options = {"thrift_string_size_limit": MAX_FOOTER_NBYTES, "thrift_container_size_limit": MAX_FOOTER_NBYTES}
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw), **options)
    metadata, schema = file.metadata, file.schema_arrow
    names = schema.names
    n = metadata.num_rows
    if not 0 <= n <= min(record_size, MAX_ROWS):
        raise _wrong(key, f"expected {min(record_size, MAX_ROWS)} rows at the most, found {n}")
    present = [name for name in COLUMNS if name in names]
    if len(set(names)) < len(names):
        raise _wrong(key, "two columns have one name")
    n_bytes = 0
    for group in range(metadata.num_row_groups):
        # Not the sizes of its columns: pyarrow ends the process if the metadata of one are damaged.
        of_group = metadata.row_group(group).total_byte_size
        n_bytes += of_group
        if of_group < 0 or n_bytes > MAX_DECODED_NBYTES:
            raise _wrong(key, f"expected columns of {MAX_DECODED_NBYTES} bytes at the most, found {n_bytes}")
    if not present:
        raise _wrong(key, f"expected columns {', '.join(COLUMNS)}, found {', '.join(names)!r:.200}")
    if "path" not in present and ("offset" in present or "size" in present):
        # Without it every row would be a missing chunk, whatever its offset says.
        raise _wrong(key, f"expected a column 'path' beside offset and size, found {', '.join(names)!r:.200}")
    values = [name for name in present if name in ("path", "raw") and _is_of_bytes(pyarrow, schema.field(name).type)]
    file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw), metadata=metadata, read_dictionary=values,
                                       page_checksum_verification=True, **options)
    # In this thread: a page may have 2 GiB whatever the footer says, so only one is decoded at a time.
    if n_rows < n:
        # kerchunk fills a file up to the size of a record, even if the array has a single chunk.
        table = _first_rows(pyarrow, file, present, n_rows)
        n = n_rows
    else:
        table = file.read(columns=present, use_threads=False)
    found = 0 if table is None else table.num_rows
    if found != n:
        raise _wrong(key, f"expected {n} rows, as it declares, found {found}")
    table.validate(full=True)
    return {name: table.column(name) for name in present}, n


def _first_rows(pyarrow, file, names, n):
    """Return the columns of the first n rows, a pyarrow.Table; None if there are no rows."""
    batches, n_left = [], n
    for batch in file.iter_batches(batch_size=max(n, 1), columns=names, use_threads=False):
        batches.append(batch.slice(0, n_left))
        n_left -= len(batches[-1])
        if n_left == 0:
            break
    return pyarrow.Table.from_batches(batches) if batches else None


def _is_of_bytes(pyarrow, kind):
    types = pyarrow.types
    return (types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)
            or types.is_large_binary(kind))


def _rows(pyarrow, columns, n, key, numbers_of):
    """Return four columns: numbers of targets, offsets, lengths, and the data inside the file."""
    targets = np.full(n, MISSING, np.int32)
    offsets, has_offset = _integers(pyarrow, columns.get("offset"), n, key, "offset")
    lengths, has_length = _integers(pyarrow, columns.get("size"), n, key, "size")
    for numbers, what in ((offsets, "an offset"), (lengths, "a size")):
        if n and numbers.min() < 0:
            i = int(numbers.argmin())
            raise _wrong(key, f"row {i}: expected {what} from 0 on, found {numbers[i]}")
    for start, rows, urls, chosen in _texts(pyarrow, columns.get("path"), key, "path"):
        urls = np.array(numbers_of(urls.to_pylist()), np.int32)
        targets[start + rows] = urls[chosen]
    is_part = targets >= 0
    # In the text, a size of 0 is the whole file; kerchunk writes 0 for offset and size.
    lengths[is_part & (offsets == 0) & (lengths == 0)] = WHOLE
    data = []
    n_data = 0
    for start, rows, values, chosen in _texts(pyarrow, columns.get("raw"), key, "raw"):
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
            raise _wrong(key, f"row {lost[0]}: expected {what} beside its path, found none")
    return targets, offsets, lengths, b"".join(data)


def _integers(pyarrow, column, n, key, name):
    """Return a column of integers as int64, 0 for missing values, and which are present; None: all."""
    if column is None or pyarrow.types.is_null(column.type):
        return np.zeros(n, np.int64), None if column is None else np.zeros(n, np.bool)
    if not pyarrow.types.is_integer(column.type):
        raise _wrong(key, f"column {name!r}: expected int64, found {column.type}")
    has = None if column.null_count == 0 else column.is_valid().to_numpy()
    numbers = column.fill_null(0).cast(pyarrow.int64()).to_numpy()
    return numbers.copy(), has


def _texts(pyarrow, column, key, name):
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
            raise _wrong(key, f"column {name!r}: expected {'texts' if name == 'path' else 'bytes'}, found {kind}")
        rows = np.flatnonzero(part.is_valid().to_numpy(zero_copy_only=False))
        values, chosen = np.unique(part.indices.drop_null().to_numpy(zero_copy_only=False), return_inverse=True)
        values = part.dictionary.take(pyarrow.array(values))
        if values.null_count:
            raise _wrong(key, f"column {name!r}: a value of its dictionary is null")
        if len(rows):
            yield start, rows, values, chosen


def _has_numbers(part):
    return not np.isnan(part.fill_null(float("nan")).to_numpy(zero_copy_only=False)).all()


def _wrong(key, sentence):
    return ReferenceFormatError(f"{key}: {sentence}", document=key)
