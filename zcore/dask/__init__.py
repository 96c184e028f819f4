"""Bridges to dask: arrays of zcore as arrays of dask, and arrays of dask written to arrays of zcore.

zcore locks every object that a write changes, so tasks may write regions that share chunks, in threads, processes and
on the workers of a cluster that see the same files. No lock of dask's is needed.
"""
from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

import zcore
from zcore.errors import Needing
from zcore.kernel.select.box import slice_in
from zcore.text.arguments import as_bool

with Needing("zcore.dask needs", "dask", "dask", "zcore.dask"):
    import dask.array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias, Unpack

    from zcore.nodes.keywords import PathlessKeywords
    from zcore.storage import StoreLike

    # What dask takes: the length of all chunks or of each dimension, "auto", a size, or the lengths one by one.
    _Lengths: TypeAlias = int | str | None
    DaskChunks: TypeAlias = _Lengths | Sequence[_Lengths | Sequence[int]] | Mapping[int, _Lengths | Sequence[int]]

__all__ = ["from_zcore", "store"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


def from_zcore(source: zcore.Array | StoreLike, path: str = "", chunks: DaskChunks = None, *, name: str | None = None,
               inline_array: bool = True, **keywords: Unpack[PathlessKeywords]) -> dask.array.Array:
    """Return a `dask.array.Array` of an array of zcore.

    Parameters
    ----------
    source : zcore.Array or object
        An array, or what `zcore.open_array` takes.
    path : str
        Of the array in `source`.
    chunks : object, optional
        What dask takes. By default the array's stored objects: its shards, or chunks that differ in length.
    name : str, optional
        Of the array in graphs; by default it follows from the place and the document, so equal arrays share tasks.
    inline_array : bool
        Whether each task holds the array. Its pickle is small: the place and the document.
    **keywords
        For `zcore.open_array`.

    Raises
    ------
    NodeNotFoundError, MetadataError, StoreError
        As `zcore.open_array`.

    Examples
    --------
    >>> a = zcore.create_array(zcore.MemoryStore(), shape=(5,), chunks=[[2, 3]], dtype="i4", fill_value=1)
    >>> x = from_zcore(a)
    >>> x.chunks, int(x.sum().compute())
    (((2, 3),), 5)
    """
    if isinstance(source, zcore.Array):
        if path or keywords:
            raise TypeError("path and keywords cannot be given with an open array; they are for a store or a path")
        # A handle of its own: the caller's handle may take over another shape, and slices would be cut.
        array = copy(source)
    else:
        array = zcore.open_array(source, path=path, **keywords)
    if chunks is None:
        chunks = [lengths or (0,) for lengths in array.write_chunk_sizes]
    return dask.array.from_array(array, chunks=chunks, name=name, inline_array=as_bool(inline_array, "inline_array"),
                                 meta=np.empty((0,) * array.ndim, array.dtype))


def store(source: dask.array.Array, target: zcore.Array, region: slice | tuple[slice, ...] | None = None, *,
          compute: bool = True) -> Any:
    """Write an array of dask to an array of zcore, and wait until it is done.

    Chunks of dask may share chunks of the target: zcore locks each object while a task changes it. Tasks may run again
    on another worker; the elements are the same then.

    Parameters
    ----------
    source : dask.array.Array
    target : zcore.Array
        Open for writing. Workers must see its store.
    region : slice or tuple of slices, optional
        The part of `target` that gets `source`; by default all of it.
    compute : bool
        Return a `dask.delayed.Delayed` that writes, if false.

    Raises
    ------
    ValueError
        The shape of `source` is not that of the region, or is not known.
    TypeError
        `target` is no array of zcore.
    ReadOnlyError
        `target` is open for reading, or lies in this process's memory and the workers in others.

    Examples
    --------
    >>> target = zcore.zeros((4, 4), chunks=(3, 3), dtype="i4")
    >>> store(dask.array.ones((4, 2), chunks=(1, 1), dtype="i4"), target, np.s_[:, 1:3])
    >>> target[0]
    array([0, 1, 1, 0], dtype=int32)
    """
    if not isinstance(target, zcore.Array):
        raise TypeError(f"target is {target!r:.60}, expected an array of zcore, which zcore.create_array makes: "
                        "shape=x.shape, chunks=x.chunksize, dtype=x.dtype")
    compute = as_bool(compute, "compute")
    box = _checked_region(region, target.shape)
    expected = tuple([slice_in(part, length)[2] for part, length in zip(box, target.shape, strict=True)])
    if source.shape != expected:
        raise ValueError(f"the source has shape {source.shape}, the region {expected} of an array of {target.shape}")
    target._binding.check_writable()
    written = dask.array.store(source, target, regions=box, lock=False, compute=compute, return_stored=False)
    return None if compute else written


def _checked_region(region, shape):
    """Return a slice with step 1 for each dimension."""
    parts = () if region is None else region if isinstance(region, tuple) else (region,)
    if len(parts) > len(shape) or not all(isinstance(part, slice) and part.step in (None, 1) for part in parts):
        raise ValueError(f"the region is {region!r}, expected at most {len(shape)} slices of step 1")
    return (*parts, *[slice(None)] * (len(shape) - len(parts)))
