"""What the functions of `zcore.h` do in Python: everything but plain reads and writes of arrays in directories.

`zcore.kernel.embed.table` calls this with the GIL, and turns each exception into a code and a sentence.
"""
from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from zcore import config, create_array, open_array
from zcore.engine.array_binding import ArrayBinding
from zcore.errors import ArrayMismatchError, SelectionError, UnsupportedError
from zcore.formats.zarr_v3.dtypes import render_data_type
from zcore.hierarchy.lookup import check_is_asked_for
from zcore.kernel.io.files import sync_files
from zcore.kernel.select.box import Box
from zcore.model.metadata import has_varying_items
from zcore.nodes.array import Array

if TYPE_CHECKING:
    from typing import TypeAlias

    from zcore.engine.views import View
    from zcore.kernel.embed.transfers import Transfers
    from zcore.nodes.writer import Writer
    from zcore.typing import Mode

    Described: TypeAlias = tuple[View, tuple[int, ...], tuple[int, ...], tuple[int, ...], str, str, int, bytes,
                                 Transfers | None]

# Threads that a program calls from at once, for which a handle has plans from the beginning.
_MAX_CALLERS = 64


def open(place: str, mode: Mode, options: str | None) -> Array:
    """Open an array; `options` is a JSON object of keywords, or None."""
    return adopted(open_array(place, mode=mode, **_keywords(options)))


def create(place: str, shape: tuple[int, ...], chunks: tuple[int, ...] | None, dtype: str,
           options: str | None) -> Array:
    """Create an array; the arguments are those of `zcore.create_array`, of which `options` has the rest."""
    keywords = _keywords(options)
    if chunks is not None:
        keywords["chunks"] = chunks
    return adopted(create_array(place, shape=shape, dtype=dtype, **keywords))


def adopted(array: object) -> Array:
    """Return `array` if a handle may stand for it."""
    if not isinstance(array, Array):
        raise ArrayMismatchError(f"{array!r:.200} is no array", asked={"node": "array"},
                                 found={"node": type(array).__name__})
    dtype = array.dtype
    if has_varying_items(dtype) or dtype.hasobject:
        raise UnsupportedError(f"{array!r:.200}: elements of varying length have no type in C",
                               feature="elements of varying length in C")
    return array


def _keywords(options):
    try:
        keywords = {} if options is None else json.loads(options)
    except json.JSONDecodeError as exc:
        raise ValueError(f"options are {options!r:.60}, expected a JSON object: {exc}") from exc
    if type(keywords) is not dict:
        raise ValueError(f"options are {options!r:.60}, expected a JSON object")
    # JSON has no tuples, and what is a shape here may be compared with one.
    return {name: tuple(value) if type(value) is list and all(type(n) is int for n in value) else value
            for name, value in keywords.items()}


def described(array: Array, seen: View | None) -> Described | None:
    """Return what a handle keeps of an array, or None if it has all of this `seen` already.

    Returns
    -------
    tuple
        What to give as `seen` the next time; the shape, that of chunks, and that of stored objects; kind and byte order
        of the type as NumPy's letters, its item size, its name in Zarr v3 as bytes; the `Transfers`, or None.
    """
    binding = array._binding
    view = binding.view
    if view is seen:
        return None
    dtype = array.dtype
    metadata = view.metadata
    chunks = metadata.chunk_shape if view.chain.shards is None else view.chain.inner_shape
    return (view, array.shape, chunks, metadata.chunk_shape, dtype.kind, dtype.str[0], dtype.itemsize, _name_of(dtype),
            binding.transfers(min(_MAX_CALLERS, config.available_cpus())))


def _name_of(dtype):
    """Return the name of a data type in Zarr v3, as bytes; empty if it has none that fits into the header's field."""
    try:
        name = render_data_type(dtype)
    except (UnsupportedError, ValueError, TypeError):
        return b""
    name = name.encode() if isinstance(name, str) else b""
    return name if len(name) < 32 else b""


def read(array: Array, starts: tuple[int, ...], steps: tuple[int, ...], counts: tuple[int, ...], memory: memoryview,
         offset: int, strides: tuple[int, ...], threads: int | None) -> None:
    """Read a box into the caller's memory; `offset` in bytes is where its first element lies there."""
    with _bound(array, threads) as binding:
        binding.read(*_box(array, starts, steps, counts, memory, offset, strides))


def write(array: Array, starts: tuple[int, ...], steps: tuple[int, ...], counts: tuple[int, ...], memory: memoryview,
          offset: int, strides: tuple[int, ...], threads: int | None) -> None:
    """Write a box from the caller's memory."""
    with _bound(array, threads) as binding:
        binding.check_writable()
        binding.write(*_box(array, starts, steps, counts, memory, offset, strides))


@contextmanager
def _bound(array, threads):
    """Context manager: the binding of an array, or one of the same array with another number of threads."""
    binding = array._binding
    if threads is None:
        yield binding
        return
    same = ArrayBinding(binding.store, binding.path, binding.format, binding.options.changed({"threads": threads}),
                        binding.view)
    yield same
    binding.adopt(same.view)


def _box(array, starts, steps, counts, memory, offset, strides):
    box = Box(starts, steps, counts)
    if not box.fits(array.shape):
        raise SelectionError(f"start {starts}, step {steps}, count {counts} do not lie in an array of shape "
                             f"{array.shape}; zcore_refresh takes over another shape")
    return box, np.ndarray(counts, array.dtype, memory, offset, strides)


def writer(array: Array, shape: tuple[int, ...], axis: int, options: str | None) -> Writer:
    """Open a writer. `shape` is that of the handle of the array, by which the caller has memory for frames."""
    opened = array.writer(axis, **_keywords(options))
    axis, metadata = opened.axis, opened._binding.metadata
    if metadata.dtype != array.dtype or metadata.shape != shape[:axis] + (metadata.shape[axis],) + shape[axis + 1:]:
        raise SelectionError(f"the array has shape {metadata.shape}, type {metadata.dtype}; the handle shape {shape}, "
                             f"type {array.dtype}; zcore_refresh takes over another shape")
    return opened


def append(writer: Writer, starts: tuple[int, ...], steps: tuple[int, ...], counts: tuple[int, ...],
           memory: memoryview, offset: int, strides: tuple[int, ...], threads: int | None) -> None:
    """Give frames to a writer, from the caller's memory; the other arguments have no meaning."""
    writer.append(np.ndarray(counts, writer._ring.dtype, memory, offset, strides))


def write_box(writer: Writer, starts: tuple[int, ...], steps: tuple[int, ...], counts: tuple[int, ...],
              memory: memoryview, offset: int, strides: tuple[int, ...], threads: int | None) -> None:
    """Give a box to a writer, from the caller's memory."""
    writer.write_box(Box(starts, steps, counts), np.ndarray(counts, writer._ring.dtype, memory, offset, strides))


def resize(array: Array, shape: tuple[int, ...]) -> None:
    """Change the shape."""
    array.resize(shape)


def refresh(array: Array) -> None:
    """Take over what others have changed."""
    array.refresh()


def attributes(array: Array) -> bytes:
    """Return the attributes as JSON, in UTF-8."""
    # Half a surrogate pair, which other programs may have stored, stays the escape that it is in the document.
    return json.dumps(dict(array.attrs), ensure_ascii=False).encode(errors="backslashreplace")


def set_attribute(array: Array, name: str, value: str | None) -> None:
    """Set an attribute to what a JSON text says; None deletes it."""
    if value is None:
        del array.attrs[name]
    else:
        array.attrs[name] = json.loads(value)


def expect(array: Array, dtype: str, ndim: int) -> None:
    """Raise ArrayMismatchError unless the caller's memory, and its lists of `ndim` numbers, fit the array."""
    binding = array._binding
    check_is_asked_for(binding, None, None, dtype, ...)
    if array.ndim != ndim:
        raise ArrayMismatchError(f"{binding.describe()} has {array.ndim} dimensions, {ndim} were asked for",
                                 path=binding.path, asked={"ndim": ndim}, found={"ndim": array.ndim})


def sync(array: Array) -> None:
    """Return when what was written is on the disk; a store without files has it when a write returns."""
    directory = array._binding.locks().directory
    if directory is not None:
        sync_files(directory)
