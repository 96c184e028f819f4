"""Moves items of varying length between chunks and the caller's array: text, bytes and objects.

NumPy assigns them, but for text that is selected by arrays of indices, which it moves wrongly (see `move_text`). The
kernel's plans move elements as bytes of fixed size, so they cannot move these. It still finds, opens and locks their
objects, and reads and writes shards; this module encodes and decodes the chunks.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.buffers import MAX_NDIM
from zcore.kernel.codec.varying import move_text

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.codecs.chain import CodecChain
    from zcore.typing import Buffer

    Places: TypeAlias = tuple[slice | npt.NDArray[Any], ...]


class Items:
    """Moves the elements of one selection for a plan.

    Parameters
    ----------
    chain : CodecChain
        Chain of the array. For shards, the chain of the innermost chunks is looked up in it.
    fill : ndarray
        The fill value, without dimensions.
    elements : ndarray or None
        The caller's elements; None if nothing is written and existing chunks are only reset.

    Attributes
    ----------
    has_elements : bool
    """

    def __init__(self, chain: CodecChain, fill: npt.NDArray[Any], elements: npt.NDArray[Any] | None) -> None:
        # The array's dimension for each dimension of a chunk.
        self._axes = tuple(range(len(chain.chunk_shape))) if chain.order is None else chain.order
        for _ in range(getattr(chain.program, "n_levels", 0)):
            chain = chain.shards.chain
        self._chain = chain
        self._fill = fill
        self._elements = elements
        self.has_elements: bool = elements is not None

    @property
    def is_fill(self) -> bool:
        """Whether all elements are one in memory, the fill value."""
        elements = self._elements
        return (elements is not None and elements.size > 0 and not any(
            [n > 1 and stride for n, stride in zip(elements.shape, elements.strides, strict=True)])
            and self._is_filled(elements[(*[slice(1)] * elements.ndim, ...)]))

    def read(self, raw: Buffer, shape: tuple[int, ...], inside: Places, outside: Places) -> None:
        """Move the elements `inside` of a chunk to `outside`; both are selections.

        `raw` is the encoded chunk, of shape `shape`.
        """
        _move(self._elements, outside, self._decode(raw, shape), inside)

    def fill(self, outside: Places) -> None:
        """Set these elements to the fill value."""
        _move(self._elements, outside, self._fill, ())

    def write(self, raw: Buffer | None, shape: tuple[int, ...], kept: tuple[int, ...], inside: Places | None,
              outside: Places | None, keeps_filled: bool) -> Buffer | None:
        """Return a chunk encoded after a change, or None if it holds only the fill value.

        Parameters
        ----------
        raw : bytes or None
            The old encoded chunk.
        shape, kept : tuple of int
            Shape of the chunk, and how much of the old chunk is kept, in each dimension.
        inside, outside : tuple
            See `read`; None if nothing is written.
        keeps_filled : bool
            Never return None.
        """
        chunk = np.empty(shape, self._elements.dtype if self.has_elements else self._chain.dtype)
        chunk[...] = self._fill
        if raw is not None:
            stays = (*[slice(n) for n in kept], ...)
            chunk[stays] = self._decode(raw, shape)[stays]
        if self.has_elements:
            _move(chunk, inside, self._elements, outside)
        if not keeps_filled and self._is_filled(chunk):
            return None
        return self._chain.encode(chunk.transpose(self._axes))

    def _decode(self, raw, shape):
        chunk = self._chain.decode(raw, tuple([shape[d] for d in self._axes]))
        return chunk.transpose(np.argsort(self._axes))

    def _is_filled(self, chunk):
        fill = self._fill.item()
        # Other types may be equal without being the same value: numbers, arrays, containers of these.
        return (fill is None or isinstance(fill, (str, bytes))) and all(
            type(item) is type(fill) and item == fill for item in chunk.reshape(-1))  # most differ at their first item


def _move(array, to, source, places):
    """Assign to the elements of one selection those of another.

    `to` and `places` are slices, or arrays of indices that broadcast together. `places` is () for a 0-d `source`, which
    goes to all elements.
    """
    if array.dtype.kind == source.dtype.kind == "T" and to and isinstance(to[0], np.ndarray):
        offsets = _offsets(array, to)
        move_text(array, offsets.reshape(-1), source, (_offsets(source, places) + np.zeros_like(offsets)).reshape(-1))
        return
    source, places = _indexed(source, places)
    array, to = _indexed(array, to)
    array[to] = source[places]


def _offsets(array, indices):
    """Return where elements are, in bytes from the first one."""
    return sum([index * stride for index, stride in zip(indices, array.strides, strict=True)])


def _indexed(array, selection):
    """Return a view of an array and an index into it that selects an array, not an item, even for 0-d results."""
    if array.ndim == MAX_NDIM and isinstance(selection[0], np.ndarray):
        # NumPy accepts one list fewer than this array has dimensions. One of these must have length 1.
        d = array.shape.index(1)
        array = array[(slice(None),) * d + (0,)]
        selection = selection[:d] + selection[d + 1:]
    return array, (*selection, ...)
