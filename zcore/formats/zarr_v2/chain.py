"""`order`, `filters` and `compressor` of Zarr v2 documents ↔ a codec chain in Zarr v3's terms.

v2.0, "Metadata" and "Filters": a chunk in C or F order goes through the filters in their order, then through the
compressor. As a chain::

    order     filters                                                    compressor
    F      |  delta …         |  vlen-utf8 … or, behind them, nothing  |  shuffle, crc32 …  |  zlib
    transpose, array to array,   array to bytes, or `bytes`,              bytes to bytes

- F order is a leading `transpose` of all dimensions. numcodecs' filters take elements in memory order, so their input
  for an F chunk is the transposed one in C order.
- If elements are still numbers before the first codec of bytes, `bytes` converts them, in the byte order of the last
  filter's output.
- An array of objects needs one codec from objects to bytes, among the filters or as the compressor.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import UnsupportedError
from zcore.formats.codec_specs import bytes_spec
from zcore.formats.zarr_v2.codecs import (
    BYTES,
    COMPRESSOR_IDS,
    OBJECT_CODECS,
    SERIALIZER,
    from_spec,
    kind_of,
    read_config,
    to_spec,
)
from zcore.model.metadata import CodecSpec, has_varying_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from zcore.typing import Order


_POINTER_NBYTES = 8


class _Elements:
    """The state of a chunk between two codecs: elements of a `dtype`, or bytes (None), in items of `itemsize` bytes.

    `element_nbytes` is the item size of the last elements, 1 if a codec has serialized them.
    """

    __slots__ = ("dtype", "element_nbytes", "itemsize", "kind")

    def __init__(self, dtype):
        self.dtype = dtype
        self.itemsize = self.element_nbytes = dtype.itemsize
        self.kind = dtype.kind

    def bytes_codec(self) -> CodecSpec:
        """Return the codec that converts the elements to bytes.

        Raises : ValueError, if they are objects.
        """
        if has_varying_items(self.dtype):
            raise ValueError("objects need a codec that encodes them: "
                             f"{', '.join(sorted(OBJECT_CODECS))}, json2 or msgpack2")
        return bytes_spec(self.dtype)

    def become_bytes(self) -> None:
        """Change the state to single bytes."""
        self.dtype = None
        self.itemsize = 1

    def pass_codec(self, kind: str, id: str, parameters: Mapping[str, Any]) -> None:
        """Change the state to the output of a codec from array to array or bytes.

        Raises : ValueError, UnsupportedError, if the codec does not take the elements.
        """
        if self.dtype is None:
            raise UnsupportedError(f"the codec {id!r} takes elements, but an earlier codec has converted them to bytes",
                                   feature=f"filter {id} behind a filter of bytes")
        is_object = has_varying_items(self.dtype)
        if kind == SERIALIZER:
            if id in OBJECT_CODECS and not is_object:
                raise ValueError(f"the codec {id!r} takes objects, not {self.dtype.str}")
            self.become_bytes()
            self.element_nbytes = 1
            return
        if is_object and id != "categorize":
            raise ValueError(f"the codec {id!r} does not take objects")
        taken = np.dtype(parameters.get("decode_dtype" if id == "astype" else "dtype", self.dtype))
        if not is_object and taken.isnative != self.dtype.isnative and 1 not in (taken.itemsize, self.itemsize):
            # numcodecs sees the same bytes as other numbers.
            raise ValueError(f"the codec {id!r} takes items of type {taken.str}, its input has the byte order of "
                             f"{self.dtype.str}")
        if id == "packbits":
            self.dtype = np.dtype("u1")
        elif id != "bitround":
            self.dtype = np.dtype(parameters["encode_dtype" if id == "astype" else "astype"])
        self.itemsize = self.element_nbytes = self.dtype.itemsize


class ChainBuilder:
    """Builds a chain from a document's `order`, then its filters, then its compressor.

    >>> builder = ChainBuilder("F", np.dtype(">i2"), 2)
    >>> builder.add({"id": "zlib", "level": 1})
    >>> for codec in builder.finished():
    ...     print(codec.name, codec.configuration)
    transpose {'order': [1, 0]}
    bytes {'endian': 'big'}
    numcodecs.zlib {'level': 1}
    """

    __slots__ = ("_codecs", "_elements")

    def __init__(self, order: str, dtype: np.dtype[Any], ndim: int) -> None:
        self._codecs = []
        self._elements = _Elements(dtype)
        if order == "F" and ndim > 1:
            self._codecs.append(CodecSpec("transpose", {"order": list(range(ndim - 1, -1, -1))}))

    def add(self, config: object) -> None:
        """Append a filter, or the compressor.

        Raises
        ------
        ValueError
            If it is malformed, or does not take the output of the previous codec.
        UnsupportedError
            If it is never run, or takes elements after a codec of bytes, which no chain expresses.
        """
        id, parameters = read_config(config)
        kind = kind_of(id)
        elements = self._elements
        if kind == BYTES and elements.dtype is not None:
            self._codecs.append(elements.bytes_codec())
        if id == "shuffle" and not parameters["elementsize"]:
            # netcdf-c 4.10 writes 0. It shuffles texts by the size of a pointer to them.
            is_text = elements.kind == "S" and elements.element_nbytes > 1
            parameters["elementsize"] = _POINTER_NBYTES if is_text else elements.element_nbytes
        self._codecs.append(to_spec(id, parameters, elements.itemsize))
        if kind == BYTES:
            elements.become_bytes()
        else:
            elements.pass_codec(kind, id, parameters)

    def finished(self) -> tuple[CodecSpec, ...]:
        """Return the chain as a tuple of `CodecSpec`.

        Raises : ValueError, if no codec encodes objects.
        """
        if self._elements.dtype is not None:
            self._codecs.append(self._elements.bytes_codec())
        return tuple(self._codecs)


def to_chain(order: str, filters: Iterable[object] | None, compressor: object, dtype: np.dtype[Any],
             ndim: int) -> tuple[CodecSpec, ...]:
    """Return the chain of a document; `filters` and `compressor` may be None.

    Raises : ValueError, UnsupportedError as `ChainBuilder`.
    """
    builder = ChainBuilder(order, dtype, ndim)
    for config in filters or ():
        builder.add(config)
    if compressor is not None:
        builder.add(compressor)
    return builder.finished()


def from_chain(codecs: Iterable[CodecSpec], dtype: np.dtype[Any],
               ndim: int) -> tuple[Order, list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Return `(order, filters, compressor)` of a chain as zarr-python 2 writes them; no filters are None.

    Raises
    ------
    ValueError, UnsupportedError
        If they cannot express it: a transpose that does not reverse all dimensions, codecs that v2 does not have.
    """
    codecs = list(codecs)
    order = "C"
    if codecs and codecs[0].name == "transpose":
        permutation = list(codecs.pop(0).configuration.get("order", ()))
        if permutation != list(range(ndim)):
            order = "F"
        if permutation not in (list(range(ndim)), list(range(ndim - 1, -1, -1))):
            raise ValueError(f"a Zarr v2 array is stored in C or F order, not transposed by {permutation}")
    elements = _Elements(dtype)
    configs = []
    for codec in codecs:
        if codec.name == "bytes" and elements.dtype is not None:
            endian = elements.bytes_codec().configuration.get("endian")
            if endian is not None and codec.configuration.get("endian") != endian:
                raise ValueError(f"the bytes of {elements.dtype.str} have its byte order, but {codec.configuration} "
                                 "has another one")
            elements.dtype = None
            continue
        config = from_spec(codec, elements.itemsize)
        kind = kind_of(config["id"])
        if kind != BYTES:
            elements.pass_codec(kind, config["id"], config)
        elif elements.dtype is None:
            elements.become_bytes()
        else:
            raise ValueError(f"expected 'bytes' or another codec from array to bytes before {codec.name!r}")
        configs.append(config)
    if elements.dtype is not None:
        raise ValueError("expected a chain with a codec from array to bytes, found none")
    compressor = configs.pop() if configs and configs[-1]["id"] in COMPRESSOR_IDS else None
    return order, configs or None, compressor
