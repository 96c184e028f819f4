"""Items of varying length between chunks and a caller's array: text, bytes and objects, which NumPy assigns.

The kernel moves elements as runs of bytes, and these have none. It finds, opens and locks their objects, takes shards
apart and puts them together, and hands over what a chunk is stored as.
"""
import numpy as np

from zcore.model.metadata import MAX_NDIM


class Items:
    """What a plan asks for the elements of one selection.

    Parameters
    ----------
    chain : CodecChain
        Of the array; of chunks in shards the one that is theirs is found here.
    fill : ndarray
        The fill value, without dimensions.
    elements : ndarray or None
        The caller's; None where nothing is written but existing chunks are reset.

    Attributes
    ----------
    has_elements : bool
    """

    def __init__(self, chain, fill, elements):
        # Which dimensions of the array those of a chunk are.
        self._axes = tuple(range(len(chain.chunk_shape))) if chain.order is None else chain.order
        for _ in range(getattr(chain.program, "n_levels", 0)):
            chain = chain.shards.chain
        self._chain = chain
        self._fill = fill
        self._elements = elements
        self.has_elements = elements is not None

    def read(self, raw, shape, inside, outside):
        """Bring the elements that lie `inside` of a chunk to where they belong `outside`, both selections.

        `raw` is what the chunk of that `shape` is stored as.
        """
        _put(self._elements, outside, _taken(self._decode(raw, shape), inside))

    def fill(self, outside):
        """Give these elements the fill value."""
        _put(self._elements, outside, self._fill)

    def write(self, raw, shape, kept, inside, outside, keeps_filled):
        """Return what a chunk is stored as after a change, or None: it holds nothing but the fill value.

        Parameters
        ----------
        raw : bytes or None
            What it was.
        shape, kept : tuple of int
            Of the chunk, and how much of the old one is kept, in each dimension.
        inside, outside : tuple
            See `read`; None where nothing is written.
        keeps_filled : bool
            Never None.
        """
        chunk = np.empty(shape, self._elements.dtype if self.has_elements else self._chain.dtype)
        chunk[...] = self._fill
        if raw is not None:
            stays = (*[slice(n) for n in kept], ...)
            chunk[stays] = self._decode(raw, shape)[stays]
        if self.has_elements:
            _put(chunk, inside, _taken(self._elements, outside))
        if not keeps_filled and self._is_filled(chunk):
            return None
        return self._chain.encode(chunk.transpose(self._axes))

    def _decode(self, raw, shape):
        chunk = self._chain.decode(raw, tuple([shape[d] for d in self._axes]))
        return chunk.transpose(np.argsort(self._axes))

    def _is_filled(self, chunk):
        fill = self._fill.item()
        # Other values may be equal and not the same: numbers, arrays, containers of these.
        return (fill is None or isinstance(fill, (str, bytes))) and all(
            type(item) is type(fill) and item == fill for item in chunk.reshape(-1))  # most differ at their first item


def _taken(array, selection):
    """Return the elements of a selection, slices or arrays of indices that broadcast together."""
    array, index = _indexed(array, selection)
    return array[index]


def _put(array, selection, values):
    """Assign to the elements of such a selection."""
    array, index = _indexed(array, selection)
    array[index] = values


def _indexed(array, selection):
    """Return a view of an array and the index that selects there: an array, not an item, also without dimensions."""
    if array.ndim == MAX_NDIM and isinstance(selection[0], np.ndarray):
        # Of so many dimensions one has the length 1, and NumPy takes one list less.
        d = array.shape.index(1)
        array = array[(slice(None),) * d + (0,)]
        selection = selection[:d] + selection[d + 1:]
    return array, (*selection, ...)
