"""`packbits`: stores items of a few bits without unused bits.

zarr-extensions, "packbits". Items follow each other in C order, each with its least significant bit first. The bits of
a byte are counted from the least significant one. `numcodecs.packbits` is another codec, which counts from the most
significant one.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec, check_integer
from zcore.model.foreign_dtypes import is_complex

if TYPE_CHECKING:
    from typing import Any, Literal

    import numpy.typing as npt

    from zcore.typing import Buffer

# Bits of types that use only some bits of a byte, by NumPy name.
_BITS = {"bool": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6,
         "float6_e3m2fn": 6}


class PackbitsCodec(Codec):
    """Items of a few bits.

    Parameters
    ----------
    padding_encoding : {"none", "first_byte", "last_byte"}
        Where to store the number of padding bits in the last byte.
    first_bit, last_bit : int, optional
        The range of bits of an item (of both parts of a complex one) to store, counted from the least significant bit;
        by default all. Decoding fills the other high bits of integers with the sign, all others with 0.
    """

    name = "packbits"
    kind = "array_bytes"
    _parameters = ("padding_encoding", "first_bit", "last_bit")
    _left_out = ("first_bit", "last_bit")

    def __init__(self, *, padding_encoding: Literal["none", "first_byte", "last_byte"] = "none",
                 first_bit: int | None = None, last_bit: int | None = None) -> None:
        if padding_encoding not in ("none", "first_byte", "last_byte"):
            raise ValueError(f"padding_encoding is {padding_encoding!r}, expected 'none', 'first_byte' or 'last_byte'")
        self.padding_encoding = padding_encoding
        self.first_bit: int | None = None if first_bit is None else check_integer("first_bit", first_bit, 0, 2**31 - 1)
        self.last_bit: int | None = None if last_bit is None else check_integer("last_bit", last_bit, 0, 2**31 - 1)

    def _layout(self, dtype):
        """Return (number of components, bytes of a component, first bit, number of stored bits)."""
        if dtype.hasobject or dtype.names is not None or dtype.kind in "SUT" or (
                dtype.kind == "V" and dtype.name not in _BITS and dtype.isbuiltin != 2):
            raise ValueError(f"{self.name!r} stores numbers, not {dtype}")
        n = 2 if is_complex(dtype) else 1
        n_bits = _BITS.get(dtype.name, 8 * dtype.itemsize // n)
        first = self.first_bit or 0
        last = n_bits - 1 if self.last_bit is None else self.last_bit
        if not first <= last < n_bits:
            raise ValueError(f"bits {first} to {last} are outside of an item of {n_bits} bits")
        return n, dtype.itemsize // n, first, last - first + 1

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
        """Return the size of a chunk's bytes.

        Raises
        ------
        ValueError
            The items are no numbers, or do not have these bits.
        """
        n_components, _, _, n_bits = self._layout(dtype)
        return -(-n_components * n_bits * math.prod(shape) // 8) + (self.padding_encoding != "none")

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the bytes of a chunk."""
        _, itemsize, first, n_bits = self._layout(chunk.dtype)
        items = np.ascontiguousarray(chunk, _little(chunk.dtype)).reshape(-1).view("u1").reshape(-1, itemsize)
        padding = bytes([-len(items) * n_bits % 8])
        if itemsize == 1 and 8 % n_bits == 0:
            packed = _pack_parts(items.reshape(-1), first, n_bits).tobytes()
        else:
            bits = np.unpackbits(items, axis=1, bitorder="little")[:, first:first + n_bits].reshape(-1)
            packed = np.packbits(bits, bitorder="little").tobytes()
        if self.padding_encoding == "none":
            return packed
        return padding + packed if self.padding_encoding == "first_byte" else packed + padding

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk.

        Raises
        ------
        CodecError
            `data` has another size, or states a wrong number of padding bits.
        """
        n_bytes = self.encoded_nbytes(dtype, shape)
        if len(data) != n_bytes:
            raise self.damage(f"chunk has {len(data)} bytes of packed bits, expected {n_bytes}", 0, n_bytes, len(data))
        n_components, itemsize, first, n_bits = self._layout(dtype)
        n_items = n_components * math.prod(shape)
        packed = np.frombuffer(data, "u1")
        if self.padding_encoding != "none":
            at = 0 if self.padding_encoding == "first_byte" else n_bytes - 1
            padding = int(packed[at])
            packed = packed[1:] if at == 0 else packed[:at]
            if padding != -n_items * n_bits % 8:
                raise self.damage(f"chunk states {padding} padding bits, expected {-n_items * n_bits % 8}", at,
                                  -n_items * n_bits % 8, padding)
        is_signed = dtype.kind == "i" or dtype.name in ("int2", "int4")
        if itemsize == 1 and 8 % n_bits == 0:
            return _unpack_parts(packed, n_items, first, n_bits, is_signed).view(dtype).reshape(shape)
        bits = np.zeros((n_items, 8 * itemsize), "u1")
        bits[:, first:first + n_bits] = np.unpackbits(packed, count=n_items * n_bits, bitorder="little").reshape(
            n_items, n_bits)
        if is_signed:
            bits[:, first + n_bits:] = bits[:, first + n_bits - 1:first + n_bits]
        items = np.packbits(bits, axis=1, bitorder="little").reshape(-1)
        return items.view(_little(dtype)).reshape(shape)


# If the number of bits divides 8, all parts at one position in their bytes are moved at once, not bit by bit.

def _pack_parts(items, first, n_bits):
    """Return bytes packed from `n_bits` bits each, from bit `first` on; `n_bits` divides 8."""
    if n_bits == 1:
        return np.packbits(items if first == 0 and items.max(initial=0) <= 1 else items >> first & 1, bitorder="little")
    n_parts = 8 // n_bits
    parts = items >> first & (2**n_bits - 1)
    packed = parts[::n_parts].copy()
    for k in range(1, n_parts):
        others = parts[k::n_parts]
        packed[:len(others)] |= others << (k * n_bits)
    return packed


def _unpack_parts(packed, n_items, first, n_bits, is_signed):
    """Undo `_pack_parts`; the bits it dropped become the sign or 0."""
    if n_bits == 1:
        items = np.unpackbits(packed, count=n_items, bitorder="little")
    else:
        n_parts = 8 // n_bits
        items = np.empty(n_items, "u1")
        for k in range(n_parts):
            place = items[k::n_parts]
            place[...] = packed[:len(place)] >> (k * n_bits)
        items &= 2**n_bits - 1
    if is_signed:
        sign = np.uint8(2**(n_bits - 1))
        items = (items ^ sign) - sign
    return items << first if first else items


def _little(dtype):
    return dtype.newbyteorder("<") if dtype.kind in "iufcmM" else dtype


CODECS: dict[str, type[Codec]] = {PackbitsCodec.name: PackbitsCodec}
