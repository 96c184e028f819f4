"""The order of a chunk's elements: `transpose` (Zarr v3, codec "transpose") and `reshape` (zarr-extensions).

`transpose` sets the order of dimensions. It is no pass over the data in the kernel, but byte strides of the copy that
moves elements between the chunk and the caller's array. `reshape` gives the elements of a chunk another shape in the
same C order, so it costs nothing either.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.codecs.base import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt


class TransposeCodec(Codec):
    """The dimensions of a chunk in another order.

    Parameters
    ----------
    order : sequence of int
        A permutation: dimension ``i`` of the encoded chunk is dimension ``order[i]`` of the chunk. All dimensions
        reversed is Fortran order.

    Raises
    ------
    ValueError
        `order` is no permutation. ``"C"`` and ``"F"`` of early drafts are refused.

    Examples
    --------
    >>> TransposeCodec(order=(2, 0, 1)).encoded_type(np.dtype("i4"), (2, 3, 4))
    (dtype('int32'), (4, 2, 3))
    """

    name = "transpose"
    kind = "array_array"
    is_move = True

    def __init__(self, *, order: Sequence[int]) -> None:
        if (not isinstance(order, (list, tuple)) or not all(type(d) is int for d in order)
                or sorted(order) != [*range(len(order))]):
            raise ValueError(f"order is {order!r}, expected a permutation of the dimensions")
        self.order: tuple[int, ...] = tuple(order)

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {"order": list(self.order)}

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk.

        Raises
        ------
        ValueError
            The chunk has another number of dimensions.
        """
        if len(self.order) != len(shape):
            raise ValueError(f"'transpose' is of {len(self.order)} dimensions, expected {len(shape)}")
        return dtype, tuple([shape[d] for d in self.order])

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a view of the chunk."""
        return chunk.transpose(self.order)

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return a view of the encoded chunk."""
        return chunk.transpose(np.argsort(self.order))


class ReshapeCodec(Codec):
    """Gives the elements of a chunk, in C order, another shape.

    Parameters
    ----------
    shape : sequence of (int or sequence of int)
        Each part is a length; a list of the chunk's dimensions, whose lengths are multiplied; or, once, -1 for the
        rest. Dimensions must ascend through all parts.

    Raises
    ------
    ValueError
        A part of `shape` is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> ReshapeCodec(shape=[[0, 1], 3, -1]).encoded_type(np.dtype("i4"), (2, 5, 12))
    (dtype('int32'), (10, 3, 4))
    """

    name = "reshape"
    kind = "array_array"
    is_move = True

    def __init__(self, *, shape: Sequence[int | Sequence[int]]) -> None:
        if not isinstance(shape, (list, tuple)) or len(shape) > MAX_NDIM:
            raise ValueError(f"shape is {shape!r:.60}, expected a list of at most {MAX_NDIM} parts")
        parts: list[Any] = [tuple(part) if isinstance(part, (list, tuple)) else part for part in shape]
        dimensions = []
        for part in parts:
            if isinstance(part, tuple):
                dimensions += part
            elif type(part) is not int or (part < 1 and part != -1):
                raise ValueError(f"shape has {part!r:.60}, expected an integer >= 1, -1, or a list of dimensions")
        if not all([type(d) is int and d >= 0 for d in dimensions]) or any(
                [a >= b for a, b in zip(dimensions, dimensions[1:], strict=False)]):
            raise ValueError(f"shape lists the dimensions {dimensions!r:.60}, expected ascending integers >= 0")
        if parts.count(-1) > 1:
            raise ValueError("shape has -1 more than once")
        self.shape: tuple[int | tuple[int, ...], ...] = tuple(parts)

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {"shape": [list(part) if isinstance(part, tuple) else part for part in self.shape]}

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk.

        Raises
        ------
        ValueError
            The chunk has another number of elements, or `shape` lists dimensions at the wrong positions.
        """
        if max([part[-1] for part in self.shape if isinstance(part, tuple) and part], default=-1) >= len(shape):
            raise ValueError(f"'reshape' to {self.configuration()['shape']} needs more than {len(shape)} dimensions")
        lengths = [math.prod([shape[d] for d in part]) if isinstance(part, tuple) else part for part in self.shape]
        n_items = math.prod(shape)
        if -1 in lengths:
            i = lengths.index(-1)
            lengths[i] = n_items // math.prod(lengths[:i] + lengths[i + 1:])
        if math.prod(lengths) != n_items or 0 in lengths:
            raise ValueError(f"'reshape' to {self.configuration()['shape']} does not take chunks of shape {shape}")
        for i, part in enumerate(self.shape):
            if isinstance(part, tuple) and part and (
                    math.prod(lengths[:i]) != math.prod(shape[:part[0]])
                    or math.prod(lengths[i + 1:]) != math.prod(shape[part[-1] + 1:])):
                raise ValueError(f"'reshape' to {self.configuration()['shape']}: dimension {i} of it is not "
                                 f"{list(part)} of chunks of shape {shape}")
        return dtype, tuple(lengths)

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the chunk in the new shape."""
        return chunk.reshape(self.encoded_type(chunk.dtype, chunk.shape)[1])

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the encoded chunk in its old shape."""
        return chunk.reshape(shape)
