"""Codecs that change the values of numbers: `scale_offset` and `cast_value`, zarr-extensions.

Together they replace `numcodecs.fixedscaleoffset`, with two differences: a number that cannot be stored is an error
instead of an arbitrary number, and the fill value changes with the elements.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.array_array.casting import (
    OUT_OF_RANGE,
    ROUNDINGS,
    cast,
    integer_range,
    is_integer,
    is_number_type,
    number_type,
    widened,
)
from zcore.codecs.base import Codec
from zcore.errors import CodecError
from zcore.model.fill_value import fill_bytes, real_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, Self

    import numpy.typing as npt

# Wider copies of this many numbers, one per step of a cast, stay in the CPU's cache.
_PIECE_ITEMS = 1 << 13


class ScaleOffset(Codec):
    """``(x - offset) * scale``, in the arithmetic of the array's type.

    Parameters
    ----------
    offset, scale : int, float or str
        In the form of a fill value of the array's type in documents; 0 and 1 by default.

    Notes
    -----
    An intermediate or final integer that the type does not hold is an error, and so is an integer that `scale` does not
    divide when decoding. Floats overflow to infinity, as in their arithmetic.
    """

    name = "scale_offset"
    kind = "array_array"

    def __init__(self, *, offset: float | str = 0, scale: float | str = 1) -> None:
        for name, value in (("offset", offset), ("scale", scale)):
            if type(value) not in (int, float, str):
                raise ValueError(f"{name} is {value!r:.60}, expected a number or how a fill value is written")
        self.offset = offset
        self.scale = scale

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict without defaults."""
        return {name: value for name, value, default in (("offset", self.offset, 0), ("scale", self.scale, 1))
                if value != default}

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk.

        Raises
        ------
        ValueError
            The array's items are no real numbers, offset or scale are not of the array's type, or scale is zero.
        """
        self._scalars(dtype)
        return dtype, shape

    def _scalars(self, dtype):
        if not is_number_type(dtype):
            raise ValueError(f"{self.name!r} takes integers and floats, not {dtype}")
        dtype = dtype.newbyteorder("=")
        offset, scale = _scalar(dtype, self.offset, "offset"), _scalar(dtype, self.scale, "scale")
        if scale == 0:
            raise ValueError("scale is zero")
        return offset, scale

    def step(self, dtype: np.dtype[Any]) -> tuple[Any, ...] | None:
        """Return the step of a `Program` for an array of type `dtype`; None for integers, which need range checks."""
        if dtype.str[1:] not in ("f4", "f8"):
            return None
        return (self.name, dtype.str[1:], *map(float, self._scalars(dtype)))

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded chunk.

        Raises
        ------
        CodecError
            The type does not hold an encoded element.
        """
        offset, scale = self._scalars(chunk.dtype)
        numbers = _numbers(chunk)
        if is_integer(chunk.dtype):
            self._check("encode", chunk.dtype, numbers, lambda x: x - int(offset))
            numbers = numbers - numbers.dtype.type(int(offset))
            self._check("encode", chunk.dtype, numbers, lambda x: x * int(scale))
            numbers = numbers * numbers.dtype.type(int(scale))
            return numbers.astype(chunk.dtype.newbyteorder("="))
        with np.errstate(all="ignore"):
            return ((numbers - offset) * scale).astype(numbers.dtype, copy=False)

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the decoded chunk, in the machine's byte order.

        Raises
        ------
        CodecError
            As for `encode`, or an integer is no multiple of `scale`.
        """
        offset, scale = self._scalars(dtype)
        numbers = _numbers(chunk)
        if is_integer(dtype):
            # The quotient of the least integer and -1 is out of range. Remainders are found below.
            self._check("decode", dtype, numbers, lambda x: x // int(scale))
            step = numbers.dtype.type(int(scale))
            if int(scale) not in (1, -1) and (numbers % step).any():
                wrong = numbers[numbers % step != 0][0]
                raise CodecError(f"{wrong} is no multiple of the scale {int(scale)}", codec=self.name,
                                 direction="decode", expected=int(scale), found=int(wrong))
            numbers = numbers // step
            self._check("decode", dtype, numbers, lambda x: x + int(offset))
            return (numbers + numbers.dtype.type(int(offset))).astype(dtype.newbyteorder("="))
        with np.errstate(all="ignore"):
            return (numbers / scale + offset).astype(numbers.dtype, copy=False)

    def _check(self, direction, dtype, numbers, function):
        """Raise CodecError unless the type holds the results of a monotonic function of integers."""
        if not numbers.size:
            return
        low, high = integer_range(dtype)
        for number in (numbers.min(), numbers.max()):
            found = function(int(number))
            if not low <= found <= high:
                raise CodecError(f"{int(number)} gives {found}, which is out of range for {dtype.name}",
                                 codec=self.name, direction=direction, expected=high if found > high else low,
                                 found=found)


class CastValue(Codec):
    """Casts numbers to another type, as far as it can hold them.

    Parameters
    ----------
    data_type : str or dict
        As in documents.
    rounding : {"nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"}
    out_of_range : {None, "clamp", "wrap"}
        Rule for numbers out of the type's range: None is an error; "clamp" takes the end of the range (infinity, if the
        type has it); "wrap", only for integers, takes the number with the same lowest bits.
    scalar_map : dict, optional
        ``"encode"`` and ``"decode"``: lists of pairs of numbers, from and to; they apply before everything else.
        Numbers have the form of fill values in documents.

    Notes
    -----
    NaN and infinity cast to integers are an error, also with `clamp`, unless `scalar_map` maps them.
    """

    name = "cast_value"
    kind = "array_array"
    checks_fill = True
    _parameters = ("data_type", "rounding", "out_of_range", "scalar_map")

    def __init__(self, *, data_type: str | dict[str, Any], rounding: str = "nearest-even",
                 out_of_range: Literal["clamp", "wrap"] | None = None,
                 scalar_map: dict[str, Any] | None = None) -> None:
        if isinstance(data_type, dict) and data_type.keys() <= {"name", "configuration"} and not data_type.get(
                "configuration"):
            data_type = data_type.get("name")
        found = number_type(data_type) if isinstance(data_type, str) else None
        if found is None:
            raise ValueError(f"data_type is {data_type!r:.60}, expected one of integers or floats")
        self._type = found
        if rounding not in ROUNDINGS:
            raise ValueError(f"rounding is {rounding!r:.60}, expected one of {', '.join(ROUNDINGS)}")
        if out_of_range not in OUT_OF_RANGE:
            raise ValueError(f"out_of_range is {out_of_range!r:.60}, expected 'clamp' or 'wrap'")
        if out_of_range == "wrap" and not is_integer(self._type):
            raise ValueError(f"out_of_range is 'wrap', but {data_type} is a type of floats, which do not wrap")
        _check_map(scalar_map)
        self.data_type: str | dict[str, Any] = data_type
        self.rounding: str = rounding
        self.out_of_range: Literal["clamp", "wrap"] | None = out_of_range
        self.scalar_map: dict[str, Any] | None = scalar_map

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the codec of a document's configuration, which must not contain null."""
        if None in configuration.values():
            raise ValueError("expected no member that is null")
        return cls(**configuration)

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {name: value for name, value in super().configuration().items()
                if value is not None and (name, value) != ("rounding", "nearest-even")}

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk.

        Raises
        ------
        ValueError
            The array's items are no real numbers; `scalar_map` has numbers that the types do not hold; or decoded
            floats would have to wrap.
        """
        if not is_number_type(dtype):
            raise ValueError(f"{self.name!r} takes integers and floats, not {dtype}")
        for direction in ("encode", "decode"):
            self._pairs(direction, dtype.newbyteorder("="))
        return self._type, shape

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded chunk.

        Raises
        ------
        CodecError
            The type does not hold an element, and there is no rule for it.
        """
        return self._cast(chunk, chunk.dtype.newbyteorder("="), self._type, "encode")

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the decoded chunk, in the machine's byte order.

        Raises
        ------
        CodecError
            As for `encode`.
        """
        return self._cast(chunk, dtype.newbyteorder("="), dtype.newbyteorder("="), "decode")

    def encode_fill(self, fill: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded fill value; refuse one that does not decode to itself, as the codec's text demands."""
        encoded = super().encode_fill(fill)
        try:
            back = self.decode(encoded, fill.dtype, fill.shape)
        except CodecError as exc:
            raise ValueError(f"the fill value cannot be stored by {self.name!r}: {exc.message}") from exc
        before, after = widened(fill), widened(back)
        if not ((before == after) | ((before != before) & (after != after))).all():
            raise ValueError(f"the fill value {before.item()} becomes {after.item()} when {self.name!r} stores it")
        return encoded

    def _out_of_range(self, dtype):
        # Floats do not wrap. Integers cast to floats exceed their range only by rounding.
        return None if self.out_of_range == "wrap" and not is_integer(dtype) else self.out_of_range

    def _cast(self, chunk, array_type, dtype, direction):
        found = self._map(direction, array_type)
        numbers = np.ascontiguousarray(chunk).reshape(-1)
        out = np.empty(numbers.shape, dtype)
        for start in range(0, numbers.size, _PIECE_ITEMS):
            piece = slice(start, start + _PIECE_ITEMS)
            try:
                out[piece] = self._cast_piece(widened(numbers[piece]), found, dtype)
            except CodecError as exc:
                exc.codec, exc.direction, exc.offset = self.name, direction, (start + exc.offset) * numbers.itemsize
                raise
        return out.reshape(chunk.shape)

    def _cast_piece(self, numbers, found, dtype):
        if found is None:
            return cast(numbers, dtype, self.rounding, self._out_of_range(dtype))
        keys, values = found
        i = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
        mapped = (keys[i] == numbers) | ((keys[i] != keys[i]) & (numbers != numbers))
        out = cast(np.where(mapped, numbers.dtype.type(0), numbers), dtype, self.rounding, self._out_of_range(dtype))
        out[mapped] = values[i[mapped]]
        return out

    def _pairs(self, direction, array_type):
        """Return the mapped numbers and their values, as arrays without dimensions."""
        source, target = (array_type, self._type) if direction == "encode" else (self._type, array_type)
        return [(_scalar(source, key, "scalar_map"), _scalar(target, value, "scalar_map"))
                for key, value in (self.scalar_map or {}).get(direction) or ()]

    def _map(self, direction, array_type):
        """Return the mapped numbers, ascending, and their values; None if there are none."""
        pairs = self._pairs(direction, array_type)
        if not pairs:
            return None
        keys, values = map(np.array, zip(*pairs, strict=True))
        # Of repeated numbers the first one counts.
        keys, first = np.unique(widened(keys), return_index=True)
        return keys, values[first]


def _check_map(scalar_map):
    if scalar_map is None:
        return
    if not isinstance(scalar_map, dict) or not scalar_map.keys() <= {"encode", "decode"}:
        raise ValueError(f"scalar_map is {scalar_map!r:.60}, expected an object of 'encode' and 'decode'")
    for pairs in scalar_map.values():
        if not isinstance(pairs, (list, tuple)) or not all(
                [isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in pairs]):
            raise ValueError(f"scalar_map has {pairs!r:.60}, expected a list of pairs")


def _scalar(dtype, value, name):
    """Return a number of a type as an array without dimensions, from its JSON form."""
    try:
        if is_integer(dtype):
            if type(value) is not int:
                raise ValueError(f"expected an integer, found {value!r:.60}")
            raw = fill_bytes(dtype, value)
        else:
            # The codec's text uses this spelling in an example.
            raw = real_bytes(dtype, "Infinity" if value == "+Infinity" else value)
    except ValueError as exc:
        raise ValueError(f"{name}: {exc}") from exc
    return np.frombuffer(raw, dtype).reshape(())


def _numbers(chunk):
    """Return the elements of a chunk in the machine's byte order; integer types that NumPy lacks are widened."""
    if is_integer(chunk.dtype) and chunk.dtype.kind not in "iu":
        return widened(chunk)
    return chunk.astype(chunk.dtype.newbyteorder("="), copy=False)


CODECS: dict[str, type[Codec]] = {codec.name: codec for codec in (ScaleOffset, CastValue)}
