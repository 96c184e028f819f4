"""Filters of numcodecs, which make chunks easier to compress.

`numcodecs.delta` and `numcodecs.fixedscaleoffset` change numbers and may change their
type. `bitround` (registered extension, also of numcodecs) sets the last bits of numbers to zero.

A filter treats its input as numbers of its `dtype`: arrays of other types, such as dates, are seen as numbers of the
same size, and complex numbers also as twice as many reals. The byte order of `dtype` has no meaning: the first filter
gets the array's byte order, and the output of the last one is stored in the byte order of `bytes`.
"""
from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec, Lenient, check_integer
from zcore.errors import UnsupportedError
from zcore.kernel.codec.filters import DELTA_TYPES

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt


_NUMBER_TYPE = re.compile(r"[<>|=]?[biufcmM][0-9]{1,2}(\[[0-9]*[a-zA-Z]+\])?|bool|(u?int|float|complex)[0-9]{1,3}")
# Bits of the mantissa by item size.
_MANTISSA_BITS = {2: 10, 4: 23, 8: 52}


class _NumberFilter(Lenient, Codec):
    """A filter of numbers: of type `dtype` before it, of type `astype` after it.

    Parameters
    ----------
    dtype : str or numpy.dtype, optional
        By default the type of the array.
    astype : str or numpy.dtype, optional
        By default `dtype`.
    """

    kind = "array_array"
    kinds = "iuf"  # kinds of NumPy types that it accepts
    _parameters = ("dtype", "astype")

    def __init__(self, *, dtype: npt.DTypeLike | None = None, astype: npt.DTypeLike | None = None) -> None:
        self.dtype: np.dtype[Any] | None = None if dtype is None else self._number_type(dtype)
        self.astype: np.dtype[Any] | None = None if astype is None else self._number_type(astype)

    def _number_type(self, dtype):
        if isinstance(dtype, str) and not _NUMBER_TYPE.fullmatch(dtype):
            raise ValueError(f"{self.name!r} does not know the data type {dtype!r:.60}")
        try:
            dtype = np.dtype(dtype)
        except TypeError as exc:
            raise ValueError(f"{self.name!r} does not know the data type {dtype!r:.60}") from exc
        if dtype.kind not in self.kinds:
            raise ValueError(f"{self.name!r} does not take numbers of type {dtype.str}")
        return dtype

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {name: value.str if isinstance(value, np.dtype) else value
                for name, value in super().configuration().items() if value is not None}

    def _types(self, dtype):
        """Return the decoded and the encoded type of the numbers, for an array of type `dtype`."""
        numbers = self.dtype or dtype
        return numbers.newbyteorder("="), (self.astype or numbers).newbyteorder("=")

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk.

        Raises
        ------
        ValueError
            The array's items are not numbers of the filter's type.
        """
        numbers, encoded = self._types(dtype)
        if _has_parts(dtype, numbers):
            return encoded, (*shape, 2)
        if dtype.itemsize != numbers.itemsize or dtype.kind not in "biufmM" + self.kinds:
            raise ValueError(f"{self.name!r} takes numbers of type {numbers.str}, not {dtype}")
        return self._number_type(numbers) and encoded, shape

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded chunk."""
        numbers, encoded = self._types(chunk.dtype)
        taken = np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("=")).reshape(-1).view(numbers)
        with np.errstate(all="ignore"):
            return self._encoded(taken, encoded).reshape(self.encoded_type(chunk.dtype, chunk.shape)[1])

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the decoded chunk, in the machine's byte order."""
        numbers, encoded = self._types(dtype)
        with np.errstate(all="ignore"):
            given = self._decoded(np.ascontiguousarray(chunk, encoded).reshape(-1), numbers)
        return given.view(dtype.newbyteorder("=")).reshape(shape)


def _has_parts(dtype, numbers):
    """Whether a filter takes complex numbers as twice as many reals, as GDAL's delta does."""
    return dtype.kind == "c" and numbers.kind == "f" and dtype.itemsize == 2 * numbers.itemsize


class NumcodecsDelta(_NumberFilter):
    """The first number, then the differences of neighbours in C order. Integer differences wrap.

    For booleans the difference is whether they differ. numcodecs stores the same, but decodes all values from the first
    true on as true.
    """

    name = "numcodecs.delta"
    kinds = "biufc"

    def step(self, dtype: np.dtype[Any]) -> tuple[Any, ...] | None:
        """Return the step of a `Program` for an array of type `dtype`, or None if it has no C form."""
        numbers, encoded = self._types(dtype)
        stored = numbers.str[1:].replace("i", "u")
        return ("delta", stored) if numbers == encoded and stored in DELTA_TYPES and dtype.kind != "c" else None

    def _encoded(self, numbers, astype):
        encoded = np.empty(numbers.shape, astype)
        encoded[:1] = numbers[:1]
        encoded[1:] = np.diff(numbers)
        return encoded

    def _decoded(self, encoded, dtype):
        restore = np.logical_xor if dtype.kind == "b" else np.add
        return restore.accumulate(encoded.astype(dtype), dtype=dtype)


class NumcodecsFixedScaleOffset(_NumberFilter):
    """``round((x - offset) * scale)``, decoded as ``x / scale + offset``.

    Parameters
    ----------
    offset, scale : number
        `scale` is not 0.
    dtype, astype : str or numpy.dtype, optional
        Types of the decoded and the encoded numbers.

    Notes
    -----
    Computes in the precision of the numbers, for integers in double precision. Integers of 8 bytes, such as dates, are
    encoded exactly, and wrap, if offset and scale are integers; numcodecs does the same. As in numcodecs, an encoded
    number that `astype` does not hold keeps its lowest bytes. A number that no 64-bit integer holds, such as NaN,
    becomes 0; in numcodecs the result depends on the machine.
    """

    name = "numcodecs.fixedscaleoffset"
    _parameters = ("offset", "scale", "dtype", "astype")

    def __init__(self, *, offset: float, scale: float, dtype: npt.DTypeLike | None = None,
                 astype: npt.DTypeLike | None = None) -> None:
        for parameter, value in (("offset", offset), ("scale", scale)):
            if type(value) not in (int, float) or value - value != 0 or (parameter == "scale" and value == 0):
                raise ValueError(f"{parameter} is {value!r}, expected a finite number"
                                 + (" other than 0" if parameter == "scale" else ""))
        super().__init__(dtype=dtype, astype=astype)
        self.offset = offset
        self.scale = scale

    def _encoded(self, numbers, astype):
        if numbers.dtype.kind in "iu" and numbers.itemsize == 8 and type(self.offset) is type(self.scale) is int:
            with contextlib.suppress(OverflowError):     # of an offset or a scale that the type does not hold
                return ((numbers - self.offset) * self.scale).astype(astype)
        numbers = numbers if numbers.dtype.kind == "f" else numbers.astype("f8")
        return _cast(np.rint((numbers - float(self.offset)) * float(self.scale)), astype)

    def _decoded(self, encoded, dtype):
        encoded = encoded if encoded.dtype.kind == "f" else encoded.astype("f8")
        return _cast(encoded / float(self.scale) + float(self.offset), dtype)


def _cast(numbers, dtype):
    """Return floating point numbers as `dtype`."""
    if dtype.kind == "f":
        return numbers.astype(dtype)
    if dtype.str[1:] == "u8":
        return np.where((numbers >= 0) & (numbers < 2.0**64), numbers, 0).astype(dtype)
    # Compared in double precision: half precision has no 2**63.
    numbers = numbers.astype("f8")
    return np.where((numbers >= -2.0**63) & (numbers < 2.0**63), numbers, 0).astype("i8").astype(dtype)


class BitroundCodec(Codec):
    """Rounds the mantissa of numbers to its first bits, half to even; decoding changes nothing.

    Parameters
    ----------
    keepbits : int
        Number of mantissa bits to keep.

    Notes
    -----
    zarr-extensions, "bitround". Infinities and NaN stay the same. Arrays of integers can be read, not written.
    """

    name = "bitround"
    kind = "array_array"
    _parameters = ("keepbits",)

    def __init__(self, *, keepbits: int) -> None:
        self.keepbits: int = check_integer("keepbits", keepbits, 0, 64)

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk, which are those of the chunk.

        Raises
        ------
        ValueError
            The items are no numbers, or have fewer mantissa bits.
        """
        if dtype.kind not in "fciumM":
            raise ValueError(f"{self.name!r} takes numbers, not {dtype}")
        if dtype.kind in "fc" and self.keepbits > _MANTISSA_BITS[_real(dtype).itemsize]:
            raise ValueError(f"keepbits is {self.keepbits}, {dtype} has {_MANTISSA_BITS[_real(dtype).itemsize]}")
        return dtype, shape

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rounded chunk, in the machine's byte order.

        Raises
        ------
        UnsupportedError
            The numbers are integers.
        """
        if chunk.dtype.kind not in "fc":
            raise UnsupportedError(f"{self.name!r} of integers is read, not written", feature="bitround of integers")
        real = _real(chunk.dtype)
        numbers = np.array(chunk, chunk.dtype.newbyteorder("="), order="C").reshape(-1).view(real)
        n_dropped = _MANTISSA_BITS[real.itemsize] - self.keepbits
        if n_dropped:
            bits = numbers.view(f"u{real.itemsize}")
            integer = bits.dtype.type
            last_kept = (bits >> integer(n_dropped)) & integer(1)
            rounded = bits + (last_kept + integer(2**(n_dropped - 1) - 1))
            rounded &= ~integer(2**n_dropped - 1)
            np.copyto(bits, rounded, where=np.isfinite(numbers))
        return numbers.view(chunk.dtype.newbyteorder("=")).reshape(chunk.shape)

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk."""
        return chunk


class NumcodecsBitround(Lenient, BitroundCodec):
    """Bitround with numcodecs' name."""

    name = "numcodecs.bitround"


def _real(dtype):
    """Return the type of the components of floating point or complex numbers, in the machine's byte order."""
    return np.dtype(f"f{dtype.itemsize // (2 if dtype.kind == 'c' else 1)}")


CODECS: dict[str, type[Codec]] = {codec.name: codec for codec in (
    NumcodecsDelta, NumcodecsFixedScaleOffset, BitroundCodec, NumcodecsBitround,
)}
