"""Elements of arrays written out: as text, as JSON, as bytes. They come in pieces, in C order, and go as they come."""
from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show.machine import plain
from zcore.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, BinaryIO

    import numpy.typing as npt

N_AT_ONCE = 1 << 14            # elements that are text in memory at a time
N_ENDS = 3                     # elements at each end of a dimension that is shortened
# Kinds whose elements NumPy writes with as many digits as it takes to tell them apart.
NUMBERS = "biufcmM"


def texts_of(values: npt.NDArray[Any]) -> list[str]:
    """Return the elements of a flat array as a list of texts, which cannot control a terminal.

    >>> texts_of(np.array([0.1, 2], "f4")), texts_of(np.array([(1, b"a")], "i4,S1"))
    (['0.1', '2.0'], ["(1, b'a')"])
    """
    if values.dtype.kind in NUMBERS:
        return values.astype(str).tolist()
    return [printable(value) for value in values.tolist()]


def write_text(file: BinaryIO, shape: tuple[int, ...], pieces: Iterable[npt.NDArray[Any]]) -> None:
    """Write text: a line for each row, a blank line between planes; of one dimension a line for each element."""
    row = shape[-1] if len(shape) > 1 else 1
    plane = row * shape[-2] if len(shape) > 2 else 0
    done = 0
    for values in _batches(pieces):
        texts, start = texts_of(values), 0
        while start < len(texts):
            if plane and done and done % plane == 0:
                file.write(b"\n")
            stop = min(len(texts), start + row - done % row)
            done += stop - start
            ends_row = done % row == 0
            file.write(" ".join(texts[start:stop]).encode() + (b"\n" if ends_row else b" "))
            start = stop


def shortened(view: Any) -> str:
    """Return the ends of a large array or view as NumPy prints them; only these are read."""
    # One more than is shown, so that NumPy leaves something out.
    values = _ends(view, view.ndim)
    texts = {} if values.dtype.kind in NUMBERS else {"formatter": {"all": printable}}
    if texts:
        values = values.astype(object)
    return np.array2string(values, threshold=0, edgeitems=N_ENDS, **texts)


def _ends(view, ndim):
    """Return the ends of the first dimensions of a view."""
    if ndim == 0:
        return np.asarray(view)
    before = (slice(None),) * (ndim - 1)
    if view.shape[ndim - 1] <= 2 * N_ENDS + 1:
        return _ends(view, ndim - 1)
    return np.concatenate([_ends(view[(*before, part)], ndim - 1)
                           for part in (slice(N_ENDS + 1), slice(-N_ENDS, None))], axis=ndim - 1)


def write_json(file: BinaryIO, shape: tuple[int, ...], pieces: Iterable[npt.NDArray[Any]]) -> None:
    """Write nested lists, as `numpy.ndarray.tolist` makes them; a single element has none around it."""
    if 0 in shape:
        file.write(json.dumps(np.empty(shape).tolist()).encode() + b"\n")
        return
    blocks = [1]
    for length in reversed(shape):
        blocks.append(blocks[-1] * length)
    done = 0
    for values in _batches(pieces):
        found = values.tolist() if values.dtype.kind in "biufcU" else texts_of(values)
        texts = [json.dumps(plain(value), allow_nan=False) for value in found]
        for text in texts:
            n_begun = sum(done % block == 0 for block in blocks[1:])
            done += 1
            n_ended = sum(done % block == 0 for block in blocks[1:])
            comma = "" if n_ended == len(shape) else ", "
            file.write(f"{'[' * n_begun}{text}{']' * n_ended}{comma}".encode())
    file.write(b"\n")


def write_bytes(file: BinaryIO, shape: tuple[int, ...], pieces: Iterable[npt.NDArray[Any]], dtype: np.dtype[Any], *,
                with_header: bool) -> None:
    """Write the bytes of the elements in C order, behind the header of a ``.npy`` file where that is asked for.

    Raises : ValueError, for elements of no fixed length.
    Notes : NEP 1, "Format Specification, Version 1.0" and 2.0; a newer NumPy writes the header that is due.
    """
    if dtype.hasobject or dtype.kind == "T":
        raise ValueError(f"elements of type {dtype} have no fixed length: --format text or --json writes them")
    if with_header:
        np.lib.format.write_array_header_2_0(file, {
            "descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    for values in pieces:
        file.write(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)


def _batches(pieces):
    """Yield the elements of pieces as flat arrays of moderate length."""
    for piece in pieces:
        flat = piece.reshape(-1)
        for start in range(0, flat.size, N_AT_ONCE):
            yield flat[start:start + N_AT_ONCE]
