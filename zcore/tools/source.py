"""What a copy reads, whatever it lies in: nodes, groups before what they hold, as `SourceGroup` and `SourceArray`.

Each array says what a new one could take over from it, and reads boxes of its elements.
"""
import contextlib

from zcore.errors import SelectionError
from zcore.kernel.select.box import Box, basic, whole
from zcore.tools.stored import Stored


class SourceGroup:
    """A group: its attributes, and whether a copy of all metadata below it is kept with it."""

    def __init__(self, attributes, zarr_format=None, is_consolidated=False):
        self.attributes = attributes
        self.zarr_format = zarr_format
        self.is_consolidated = is_consolidated


class SourceArray:
    """An array, or what is selected of it.

    Attributes
    ----------
    shape, dtype, attributes, dimension_names, fill_value
        As of an array that holds just these elements; None for what there is not.
    zarr_format : {3, 2, "zmeta"} or None
    metadata : ArrayMetadata or None
        As it is stored, of all of it.
    is_whole : bool
        There are metadata, and nothing is selected.
    keeps_dimensions : bool
        No dimension was dropped.
    chunk_shape : tuple, "auto" or list
        Of the smallest parts that have codecs, to ask a format for; a list where they differ in length.
    object_shape : tuple of int
        Of what is read at once, the longest.
    shard_shape : tuple of int or None
        Of objects, where these are shards.
    chunks_of_objects : tuple or list
        Of objects, be they shards or chunks, to ask a format for.
    codecs, inner_codecs : tuple of CodecSpec, or None
        The chain of objects, and of the chunks in them; None where nothing says it.
    order : {"C", "F"}
    """

    fill_value = dimension_names = zarr_format = metadata = shard_shape = codecs = inner_codecs = binding = None
    chunks_of_objects = chunk_shape = "auto"
    order = "C"
    is_whole = False
    keeps_dimensions = True

    def __init__(self, shape, dtype, attributes, selection=None):
        self.attributes = attributes
        self.dtype = dtype
        self.box = whole(shape) if selection is None else basic(selection, shape)
        if self.box is None:
            raise SelectionError("a copy takes integers, slices and ... as its selection")
        self.shape = self.box.shape
        # Which dimensions of what is stored those of the elements are.
        self.dimensions = [d for d, kept in enumerate(self.box.expand or (slice(None),) * len(shape))
                           if kept is not None]
        self.keeps_dimensions = len(self.dimensions) == len(shape)

    def kept(self, lengths):
        """Return what belongs to each dimension, without those that are dropped."""
        return None if lengths is None else tuple([lengths[d] for d in self.dimensions])

    @property
    def object_shape(self):
        return (1,) * len(self.shape)

    def read(self, starts, out):
        """Read the elements from `starts` on into `out`, a C-contiguous ndarray of the type."""
        box = self.box
        first, steps, counts = list(box.starts), box.steps, [1] * len(box.starts)
        for d, start, n in zip(self.dimensions, starts, out.shape, strict=True):
            first[d] += start * steps[d]
            counts[d] = n
        self._read(Box(tuple(first), steps, tuple(counts)), out.reshape(counts))

    def stored(self):
        """Return what there is of it, a `Stored`; None where only reading tells."""
        return None if self.binding is None else Stored(self.binding, self.box, self.dimensions)

    def _read(self, box, out):
        """Read a box of what is stored into `out`, which has its counts."""
        raise NotImplementedError

    def watched(self):
        """Return a context manager in which `check` tells whether the array has been the same since the beginning."""
        return contextlib.nullcontext()

    def check(self):
        """Raise ZcoreError unless what was read counts: the array is still the one that was opened."""


class Source:
    """A node with all below it, a context manager.

    Attributes
    ----------
    nodes : list of (str, SourceGroup or SourceArray)
        By their paths relative to the node, whose own is empty; groups before what they hold.
    identity : str
        Text that is the same only for what has the same documents at the same place.
    lost : list of (str, str)
        What of nodes cannot be copied to any destination, and the names of these.
    left_out : list of (str, str)
        The same of members that are not among the nodes, as no destination can hold them.
    """

    lost = left_out = ()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def check(self):
        """Raise ZcoreError unless the groups that were opened are there still; arrays are asked one by one."""

    def close(self):
        """Close what was opened."""
