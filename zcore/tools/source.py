"""The source of a copy: its nodes, groups before their members, as `SourceGroup` and `SourceArray`.

Each array has the properties that a new one may take over, and reads boxes of its elements.
"""
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, overload

from zcore.errors import SelectionError
from zcore.kernel.select.box import Box, basic, whole
from zcore.tools.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self, TypeAlias, TypeVar

    import numpy as np
    import numpy.typing as npt

    from zcore.engine.binding import ArrayBinding
    from zcore.kernel.select.rectilinear import Edges
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.typing import Chunks, Format, Order, Selection

    Lengths: TypeAlias = Chunks | list[int | Edges]
    _T = TypeVar("_T")


class SourceGroup:
    """A group: its attributes, and whether it has consolidated metadata."""

    def __init__(self, attributes: dict[str, Any], zarr_format: Format | None = None,
                 is_consolidated: bool = False) -> None:
        self.attributes = attributes
        self.zarr_format: Format | None = zarr_format
        self.is_consolidated = is_consolidated


class SourceArray:
    """An array, or a selection of it.

    Attributes
    ----------
    shape, dtype, attributes, dimension_names, fill_value
        As of an array of these elements alone; None where there is none.
    missing_value : object
        The attribute ``_FillValue`` of a file, as an element; None where there is none.
    fill_is_needed : bool
        Elements may be absent, or be missing data if they are the fill value.
    has_enum : bool
        Numbers have names, which only HDF5 keeps.
    zarr_format : {3, 2, "zmeta"} or None
    metadata : ArrayMetadata or None
        Of the whole array, as it is stored.
    is_whole : bool
        There are metadata, and nothing is selected.
    keeps_dimensions : bool
        No dimension was dropped.
    chunk_shape : tuple, "auto" or list
        Of the smallest parts that have codecs, as a format takes it; a list where they differ in length.
    object_shape : tuple of int
        Of the stored objects, the longest one.
    shard_shape : tuple of int or None
        Of objects, where these are shards.
    chunks_of_objects : tuple or list
        Of objects, shards or chunks, as a format takes it.
    codecs, inner_codecs : tuple of CodecSpec, or None
        The chain of objects, and of the chunks in them; None where it is unknown.
    order : {"C", "F"}
    nbytes_stored : int or None
        Of elements that the file compresses as a whole.
    """

    fill_value: Any = None
    missing_value: Any = None
    fill_is_needed: bool = True
    has_enum: bool = False
    dimension_names: tuple[str | None, ...] | None = None
    zarr_format: Format | None = None
    metadata: ArrayMetadata | None = None
    shard_shape: Lengths = None
    codecs: tuple[CodecSpec, ...] | None = None
    inner_codecs: tuple[CodecSpec, ...] | None = None
    binding: ArrayBinding | None = None
    chunks_of_objects: Lengths = "auto"
    chunk_shape: Lengths = "auto"
    order: Order = "C"
    is_whole: bool = False
    keeps_dimensions: bool = True
    nbytes_stored: int | None = None

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], attributes: dict[str, Any],
                 selection: Selection = None) -> None:
        self.attributes = attributes
        self.dtype = dtype
        box = whole(shape) if selection is None else basic(selection, shape)
        if box is None:
            raise SelectionError("a copy takes integers, slices and ... as its selection")
        self.box: Box = box
        self.shape: tuple[int, ...] = box.shape
        # The dimensions of the stored array that the selection keeps.
        self.dimensions: list[int] = [d for d, kept in enumerate(box.expand or (slice(None),) * len(shape))
                                      if kept is not None]
        self.keeps_dimensions = len(self.dimensions) == len(shape)

    @overload
    def kept(self, lengths: Sequence[_T]) -> tuple[_T, ...]: ...

    @overload
    def kept(self, lengths: Sequence[_T] | None) -> tuple[_T, ...] | None: ...

    def kept(self, lengths):
        """Return the values of the dimensions that the selection keeps."""
        return None if lengths is None else tuple([lengths[d] for d in self.dimensions])

    @property
    def object_shape(self) -> tuple[int, ...]:
        return (1,) * len(self.shape)

    def read(self, starts: tuple[int, ...], out: npt.NDArray[Any]) -> None:
        """Read the elements from `starts` on into `out`, a C-contiguous ndarray of the type."""
        box = self.box
        first, steps, counts = list(box.starts), box.steps, [1] * len(box.starts)
        for d, start, n in zip(self.dimensions, starts, out.shape, strict=True):
            first[d] += start * steps[d]
            counts[d] = n
        self._read(Box(tuple(first), steps, tuple(counts)), out.reshape(counts))

    def stored(self) -> Stored | None:
        """Return a `Stored`, which tells what exists; None where only reading tells."""
        return None if self.binding is None else Stored(self.binding, self.box, self.dimensions)

    def sizes(self) -> dict[tuple[int, ...], int] | None:
        """Return the bytes of each chunk that the file has, by its coordinates; None where it has no chunks."""
        return None

    def _read(self, box, out):
        """Read a box of the stored array into `out`, which has its counts."""
        raise NotImplementedError

    def watched(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager in which `check` tells whether the array has been the same since the beginning."""
        return contextlib.nullcontext()

    def check(self) -> None:
        """Raise ZcoreError unless the array is still the one that was opened."""


class Source:
    """A node with all below it, a context manager.

    Attributes
    ----------
    nodes : list of (str, SourceGroup or SourceArray)
        By their paths relative to the node, whose own is empty; groups before their members.
    identity : str
        Text that is the same only for the same documents at the same path.
    lost : list of (str, str)
        Parts of nodes that cannot be copied to any destination, and the names of the nodes.
    left_out : list of (str, str)
        The same for members that are not among the nodes, as no destination can hold them.
    leaves_out : bool
        A node that the destination cannot hold is left out as well, unless it is the only one.
    """

    nodes: list[tuple[str, SourceGroup | SourceArray]]
    identity: str
    lost: Sequence[tuple[str, str]] = ()
    left_out: Sequence[tuple[str, str]] = ()
    leaves_out: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def check(self) -> None:
        """Raise ZcoreError unless the groups that were opened still exist; arrays are checked one by one."""

    def close(self) -> None:
        """Close the files."""
