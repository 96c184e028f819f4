"""Items of varying length: text, bytes, arrays and JSON values.

`vlen-utf8` and `vlen-bytes` (registered extensions, also of numcodecs) store the number of items, then the size and the
bytes of each; all numbers are 32-bit little-endian. `numcodecs.vlen-array` does the same for arrays of one dimension.
`numcodecs.json2` is a JSON list: the items, the typestr of the chunk and its shape. None is stored as an empty item,
except in JSON.

Such items have no fixed size, so the encoded size of a chunk is unbounded. Its content is limited by the size of the
object and by the limits of `CodecChain`.
"""
from __future__ import annotations

import json
import math
from operator import index as exact_index
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec, Lenient
from zcore.errors import CodecError
from zcore.kernel.codec.varying import pack_items, pack_text, unpack_items, unpack_text
from zcore.model.dtypes import from_typestr
from zcore.text.strict_json import checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.typing import Buffer

_COUNT_NBYTES = 4
# For JSON: allowed values per chunk, plus a number for each item.
MAX_VALUES = 1 << 23
MAX_VALUES_EACH = 64


class _ObjectCodec(Codec):
    """An array-to-bytes codec of objects."""

    kind = "array_bytes"
    kinds: tuple[str, ...] = ("O",)  # kinds of array types that it accepts
    is_bound_to_order = False  # the shape is stored, too, so a transpose before it would change the meaning

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Return None: the size depends on the items.

        Raises
        ------
        ValueError
            The items have another type.
        """
        if dtype.kind not in self.kinds:
            raise ValueError(f"{self.name!r} stores items of varying length, not {dtype}")
        return None


class _VlenCodec(_ObjectCodec):
    """Items as size and bytes.

    Subclasses define `_to_bytes`, which encodes items not of the type `_exact` (the kernel encodes those itself), and
    `_from_bytes`, which decodes items; the kernel also handles `str` and `bytes` for it.
    """

    _exact = None

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the bytes of a chunk.

        Raises
        ------
        CodecError
            An item is of another type.
        """
        items = np.ascontiguousarray(chunk).reshape(-1)
        if _is_text(items.dtype):
            return pack_text(items, self.name)
        return pack_items(items.tolist(), self._exact, self._to_bytes, self.name)

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk.

        Raises
        ------
        CodecError
            The number of items is wrong, an item reaches beyond the end or is damaged, or bytes follow the last item.
        """
        n_items = _n_items(shape)
        n_bytes = len(data)
        found = int.from_bytes(data[:_COUNT_NBYTES], "little")
        if n_bytes < _COUNT_NBYTES or found != n_items:
            raise self.damage(f"chunk says {found} items, expected {n_items}", 0, n_items, found)
        if n_bytes < _COUNT_NBYTES * (1 + n_items):
            raise self.damage(f"{n_items} items do not fit into {n_bytes} bytes", n_bytes,
                              _COUNT_NBYTES * (1 + n_items), n_bytes)
        if _is_text(dtype):
            items = np.empty(n_items, dtype)
            unpack_text(data, items, self.name)
            return items.reshape(shape)
        items = np.empty(n_items, object)
        unpack_items(data, items, self._from_bytes, self.name)
        return items.astype(dtype, copy=False).reshape(shape)


class VlenUtf8Codec(_VlenCodec):
    """Text."""

    name = "vlen-utf8"
    kinds: tuple[str, ...] = ("O", "T")
    _exact = _from_bytes = str

    def _to_bytes(self, item):
        return item.encode()


class VlenBytesCodec(_VlenCodec):
    """Bytes."""

    name = "vlen-bytes"
    _exact = _from_bytes = bytes

    def _to_bytes(self, item):
        view = memoryview(item)
        if "O" in view.format:
            raise TypeError("it holds objects, whose bytes are places in memory")
        return bytes(view)


class NumcodecsVlenArray(Lenient, _VlenCodec):
    """Arrays of one dimension.

    Parameters
    ----------
    dtype : str or numpy.dtype
        Type of the arrays' items.
    """

    name = "numcodecs.vlen-array"
    _parameters = ("dtype",)

    def __init__(self, *, dtype: npt.DTypeLike) -> None:
        self.dtype: np.dtype[Any] = from_typestr(dtype, "<") if isinstance(dtype, str) else np.dtype(dtype)

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {"dtype": self.dtype.str}

    def _to_bytes(self, item):
        array = np.ascontiguousarray(item, self.dtype)
        if array.ndim != 1:
            raise ValueError(f"it has {array.ndim} dimensions, expected 1")
        return array.tobytes()

    def _from_bytes(self, data):
        return np.frombuffer(data, self.dtype)


class NumcodecsJson2(Lenient, _ObjectCodec):
    """JSON values. Parameters as in numcodecs; decoding depends on `encoding` and `strict`."""

    name = "numcodecs.json2"
    is_bound_to_order = True
    _defaults = {"encoding": "utf-8", "skipkeys": False, "ensure_ascii": True, "check_circular": True,
                 "allow_nan": True, "sort_keys": True, "indent": None, "separators": None, "strict": True}
    _parameters = tuple(_defaults)

    def __init__(self, **parameters: Any) -> None:
        if unknown := parameters.keys() - self._defaults.keys():
            raise TypeError(f"json2 has no parameter {', '.join(sorted(unknown))}")
        self.__dict__.update({**self._defaults, **parameters})
        if self.encoding not in ("utf-8", "utf8", "UTF-8", "ascii", "latin-1"):
            raise ValueError(f"encoding is {self.encoding!r:.60}, expected 'utf-8'")
        if self.separators is None:
            self.separators: Sequence[str] = [",", ":"] if self.indent is None else [", ", ": "]
        if type(self.separators) not in (list, tuple) or len(self.separators) != 2:
            raise ValueError(f"separators is {self.separators!r:.60}, expected two strings")

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the bytes of a chunk.

        Raises
        ------
        CodecError
            An item is no JSON value.
        """
        items = np.atleast_1d(chunk).tolist() + [chunk.dtype.str, list(chunk.shape)]
        try:
            encoder = json.JSONEncoder(skipkeys=self.skipkeys, ensure_ascii=self.ensure_ascii, allow_nan=self.allow_nan,
                                       sort_keys=self.sort_keys, indent=self.indent, separators=tuple(self.separators))
            return checked(encoder.encode, items).encode(self.encoding)
        except (TypeError, ValueError, RecursionError) as exc:
            raise CodecError(f"items are no JSON: {exc}", codec=self.name, direction="encode") from exc

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk.

        Raises
        ------
        CodecError
            `data` is no such list, or has another shape.
        """
        try:
            text = str(data, self.encoding)
            n_values, most = sum(map(text.count, ",[{")), MAX_VALUES + MAX_VALUES_EACH * _n_items(shape)
            if n_values > most:
                # Each value takes many times the memory of its text.
                raise self.damage(f"chunk has {n_values} commas and brackets, expected at most {most}", 0, most,
                                  n_values)
            members = checked(json.JSONDecoder(strict=self.strict).decode, text)
        except (ValueError, RecursionError) as exc:
            raise self.damage(f"chunk is no JSON: {exc}") from exc
        if type(members) is not list or len(members) < 2 or members[-1] != list(shape):
            raise self.damage(f"expected a JSON list that ends with the shape {list(shape)}")
        items = members[:-2]
        for d, length in enumerate(shape or (1,)):
            # Flatten one dimension: the items of its lists are the items of the next dimension.
            if len(items) != length * _n_items(shape[:d]):
                raise self.damage(f"expected {length * _n_items(shape[:d])} items, found {len(items)}", 0,
                                  length * _n_items(shape[:d]), len(items))
            if d + 1 < len(shape):
                if not all(type(item) is list and len(item) == shape[d + 1] for item in items):
                    raise self.damage(f"expected lists of {shape[d + 1]} items in dimension {d + 1}")
                items = [inner for item in items for inner in item]
        return _array_of(items, dtype, shape)


def _is_text(dtype):
    """Return whether items are NumPy's text without missing values, which the kernel's codec supports."""
    return dtype.kind == "T" and not hasattr(dtype, "na_object")


def _n_items(shape):
    return math.prod(map(exact_index, shape))


def _array_of(items, dtype, shape):
    """Return an array of `items` in C order. NumPy must not treat items as sequences."""
    if dtype.kind == "T":
        return np.array(items, dtype).reshape(shape)
    chunk = np.empty(len(items), dtype)
    for i, item in enumerate(items):
        chunk[i] = item
    return chunk.reshape(shape)


CODECS: dict[str, type[Codec]] = {codec.name: codec for codec in (
    VlenUtf8Codec, VlenBytesCodec, NumcodecsVlenArray, NumcodecsJson2)}
# zarr 2 and its object codecs, with their names in numcodecs.
CODECS.update({f"numcodecs.{name}": CODECS[name] for name in ("vlen-utf8", "vlen-bytes")})
