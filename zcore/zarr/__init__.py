"""Bridges to zarr-python: its arrays read and written by zcore's kernel, and its stores opened by zcore.

One line of configuration makes zarr-python, and all that build on it, use the kernel and its locks, which no other
pipeline has::

    zarr.config.set({"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"})

or ``ZARR_CODEC_PIPELINE__PATH=zcore.zarr.ZcoreCodecPipeline`` in the environment.
"""
from __future__ import annotations

import asyncio
import contextlib
import json
from collections import namedtuple
from functools import cached_property, partial
from operator import attrgetter, ge
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.engine.array_binding import ArrayBinding
from zcore.engine.options import Options
from zcore.engine.views import same_objects
from zcore.errors import Needing, noted
from zcore.hierarchy import lookup
from zcore.indexing import oindex_vindex
from zcore.kernel.select.batches import coords_of
from zcore.kernel.select.box import basic
from zcore.nodes.array import Array
from zcore.nodes.awaited import awaited
from zcore.stores.zarr_python import N_REQUESTS, ZarrPythonStore, store_of_zarr
from zcore.text.tried_names import no_attribute
from zcore.zarr.handed import array, group
from zcore.zarr.selection import request_of
from zcore.zarr.small_read import MAX_NBYTES, is_read
from zcore.zarr.store import Store

with Needing("zcore.zarr needs", "zarr", "zarr", "zcore.zarr"):
    from zarr.abc.codec import CodecPipeline
    from zarr.codecs import ShardingCodec
    from zarr.codecs._v2 import V2Codec
    from zarr.core.codec_pipeline import BatchedCodecPipeline
    from zarr.core.metadata import ArrayV2Metadata
    from zarr.registry import register_pipeline
    from zarr.storage import StorePath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, Self

    from zarr.abc.codec import Codec
    from zarr.core.buffer import NDBuffer
    from zarr.core.metadata import ArrayV3Metadata

__all__ = ["Store", "ZcoreCodecPipeline", "array", "group"]


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


class ZcoreCodecPipeline(CodecPipeline):
    """A codec pipeline of zarr-python that reads and writes by zcore.

    The chunks of a call are put together to the selection that they were cut from, and the kernel reads or writes it
    with one plan: the files of a `LocalStore` are opened by the kernel, the values of other stores are brought to it.
    A write locks each object, also one that it replaces as a whole, against all other writers by this pipeline and by
    zcore, in threads and processes. If zcore lacks something (a codec, a type, memory of a GPU), zarr-python's own
    pipeline does the work, and its writes hold the lock of the array.

    Made by zarr-python, for each array that it opens.

    Notes : `zarr.abc.codec.CodecPipeline`, as of zarr-python 3.1 to 3.4.
    """

    def __init__(self, metadata: ArrayV2Metadata | ArrayV3Metadata, store: Any) -> None:
        self.metadata: ArrayV2Metadata | ArrayV3Metadata = metadata
        self.store: Any = store
        self._form = _form_of(metadata)
        self._arrays = {}
        codecs = [] if isinstance(metadata, ArrayV2Metadata) else metadata.codecs
        if len(codecs) > 1 and any([isinstance(codec, ShardingCodec) for codec in codecs]):
            _ = self._fallback     # zarr-python warns of such a chain

    @cached_property
    def _fallback(self):
        """zarr-python's own pipeline for the array. Most arrays need none."""
        metadata = self.metadata
        return BatchedCodecPipeline.from_codecs(
            [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
            if isinstance(metadata, ArrayV2Metadata) else metadata.codecs)

    def __reduce__(self) -> tuple[Any, ...]:
        return ZcoreCodecPipeline, (self.metadata, self.store)

    def __repr__(self) -> str:
        return f"<ZcoreCodecPipeline of {self.store!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZcoreCodecPipeline):
            return NotImplemented
        return self.metadata == other.metadata and self.store == other.store

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: Any, store: Any) -> Self:
        """Return the pipeline of an array."""
        return cls(array_metadata, store)

    @classmethod
    def from_codecs(cls, codecs: Iterable[Codec]) -> Any:
        """Return zarr-python's own pipeline: one without an array, as its codec for shards has inside."""
        return BatchedCodecPipeline.from_codecs(codecs)

    def evolve_from_array_spec(self, array_spec: Any) -> Self:
        """Return this pipeline; its array is known already."""
        return self

    # What is done to chunks that have no place in a store, and questions about codecs: zarr-python's answers.

    def __iter__(self) -> Iterator[Codec]:
        return iter(self._fallback)

    supports_partial_decode: Any = property(attrgetter("_fallback.supports_partial_decode"))
    supports_partial_encode: Any = property(attrgetter("_fallback.supports_partial_encode"))
    validate: Any = property(attrgetter("_fallback.validate"))
    compute_encoded_size: Any = property(attrgetter("_fallback.compute_encoded_size"))
    decode: Any = property(attrgetter("_fallback.decode"))
    encode: Any = property(attrgetter("_fallback.encode"))

    async def read(self, batch_info: Iterable[Any], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> tuple[Any, ...]:
        """Read chunks into `out`; return for each whether its object is present.

        That is looked up where the array's configuration has ``read_missing_chunks=False``: only then zarr-python asks.
        """
        batch = list(batch_info)
        if not batch:
            return ()
        refused = None
        loop = asyncio.get_running_loop()
        try:
            done = (await self._read_small(batch, out, drop_axes, loop)
                    or await awaited(partial(self._read, batch, out, drop_axes, loop)))
            if done is not None:
                return done
        except _RefusedError as error:
            refused = error.args[0]
        with _or(refused):
            return await self._fallback.read(batch, out, drop_axes)

    async def write(self, batch_info: Iterable[Any], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """Write a value to chunks, each under its lock."""
        batch = list(batch_info)
        if self.store.read_only:
            await self._fallback.write(batch, value, drop_axes)     # which refuses it
        elif batch:
            await awaited(partial(self._write, batch, value, drop_axes, asyncio.get_running_loop()))

    # In a thread of their own, as a store of zarr-python answers on the loop that waits for them.

    async def _read_small(self, batch, out, drop_axes, loop):
        """Read a few small chunks on the loop and return their statuses; None if that is left to a thread."""
        getter, spec = batch[0][:2]
        values = out.as_ndarray_like()
        if (type(getter) is not StorePath or not isinstance(values, np.ndarray) or values.nbytes > MAX_NBYTES
                or len(batch) > N_REQUESTS or not getattr(spec.config, "read_missing_chunks", True)):
            return None
        path, prefix = _split(self._form, getter.path)
        array = self._arrays.get(_key_of(path, spec, loop))
        if array is None or type(array.store) is not ZarrPythonStore:
            return None
        try:
            found = self._selected(array, batch, prefix, drop_axes)
        except zcore.SelectionError:
            return None     # a thread looks for the new shape
        if found is None or not await is_read(self.store, array._binding, partial(
                _read_into, values, *found, drop_axes)):
            return None
        return ({"status": "present"},) * len(batch)

    def _read(self, batch, out, drop_axes, loop):
        """Read a batch and return its statuses, or None if that is left to zarr-python."""
        array, request, selected, values = self._request(batch, out, drop_axes, loop)
        if request is None:
            return None
        with _refusing(array):
            _read_into(values, request, selected, drop_axes, array)
        if getattr(batch[0][1].config, "read_missing_chunks", True):
            return ({"status": "present"},) * len(batch)
        keys = [item[0].path for item in batch]
        present = set(array.store.existing("", keys))
        return tuple([{"status": "present" if key in present else "missing"} for key in keys])

    def _write(self, batch, value, drop_axes, loop):
        """Write a batch, by zarr-python under the lock of the whole array if zcore cannot."""
        array, request, selected, values = self._request(batch, value, drop_axes, loop)
        refused = None
        if request is not None:
            # A value of another shape is broadcast, or refused, as NumPy does.
            if values.ndim and values.shape == request.result_shape:
                values = values[_index_of(request)]
                if drop_axes:
                    values = np.expand_dims(values, drop_axes)
            try:
                with _refusing(array):
                    array._set(selected, values)
                return
            except _RefusedError as error:
                refused = error.args[0]

        def by_zarr():
            if array is not None:
                array.refresh()     # an error if another array is in its place
            with _or(refused):
                asyncio.run_coroutine_threadsafe(self._fallback.write(batch, value, drop_axes), loop).result()

        locks = self._locks_of(batch, loop)
        if locks is None:
            by_zarr()
        else:
            with locks.whole():
                by_zarr()

    def _request(self, batch, buffer, drop_axes, loop):
        """Return (array, request, selected, ndarray) for a batch; the request is None if zcore cannot do it.

        `selected` is the request as a selection of the array, which has one grid as long as the handle is open.
        """
        getter, spec = batch[0][:2]
        values = buffer.as_ndarray_like()
        if type(getter) is not StorePath or not isinstance(values, np.ndarray):
            return None, None, None, None
        path, prefix = _split(self._form, getter.path)
        array = self._array(path, spec, loop, batch)
        if array is None:
            return None, None, None, None
        try:
            found = self._selected(array, batch, prefix, drop_axes)
        except zcore.SelectionError:
            # Another handle, zarr-python's for one, has resized the array.
            array.refresh()
            found = None
            with contextlib.suppress(zcore.SelectionError):
                found = self._selected(array, batch, prefix, drop_axes)
        return array, *(found or (None, None)), values

    def _selected(self, array, batch, prefix, drop_axes):
        """Return the request of a batch and what it selects of the array; None if zcore cannot do it.

        Raises : SelectionError, if the request lies outside the shape that is known.
        """
        form, metadata = self._form, array._binding.metadata
        coords = coords_of(batch, prefix, form.separator, form.ndim)
        # A grid of chunks that differ in shape ends with the array.
        request = None if coords is None else request_of(batch, coords, _grid(metadata), drop_axes)
        if request is None:
            return None
        if not all(map(ge, metadata.shape, request.stops)):
            raise zcore.SelectionError(f"chunks were asked for that lie outside an array of shape {metadata.shape}")
        return request, _SELECT[request.way](request.selection, metadata.shape)

    def _array(self, path, spec, loop, batch):
        """Return the array of zcore at a path of the store, or None if zcore cannot open it as zarr-python has.

        Raises
        ------
        NodeNotFoundError
            There is no document, and none of the chunks of the batch.
        StoreError
            Another array is in the place of the one that zarr-python has opened.
        """
        key = _key_of(path, spec, loop)
        if key not in self._arrays:
            store = store_of_zarr(self.store, loop=loop)
            array = None
            try:
                # What zcore warns of at a document, zarr-python has read without a word.
                with noted():
                    # With less around it than `zcore.open_array`, as some write hundreds of tiny arrays.
                    zarr_format = self.metadata.zarr_format
                    options = Options(strict=False, write_empty_chunks=key[1], read_only=self.store.read_only)
                    opened = lookup.find(store, path, zarr_format, options)
                    if type(opened) is not ArrayBinding:
                        raise lookup.not_found(store, path, zarr_format, options, "array")
            except zcore.NodeNotFoundError:
                # Its document may be known from a consolidated copy alone. Without chunks it is gone.
                if not store.existing("", [item[0].path for item in batch]):
                    raise
            except zcore.ZcoreError:
                pass
            else:
                if _agrees(opened, self.metadata, self._form):
                    array = Array(_SameObjects(store, path, opened.format, opened.options, opened.view))
            self._arrays[key] = array
        return self._arrays[key]

    def _locks_of(self, batch, loop):
        """Return the locks of the array that a batch belongs to, or None if it has no store of its own, or no locks."""
        getter = batch[0][0]
        if type(getter) is not StorePath or zcore.config.lock == "off":
            return None
        store = store_of_zarr(self.store, loop=loop)
        path = _split(self._form, getter.path)[0]
        return store.locks(path, self._form.document, zcore.config.lock == "file")


def _key_of(path, spec, loop):
    """Return what a handle on an array depends on: its path, whether empty chunks are written, and the loop."""
    return path, bool(spec.config.write_empty_chunks), id(loop)


def _read_into(values, request, selected, drop_axes, array):
    """Read what a request selects into the values of zarr-python's buffer."""
    if request.way == "basic" and values.dtype == array.dtype:
        array._get(selected, None, values[(*request.where, ...)])
    else:
        found = array._get(selected)
        values[_index_of(request)] = found.squeeze(drop_axes) if drop_axes else found


class _RefusedError(Exception):
    """What zcore has refused, its argument, and zarr-python may be able to do."""


@contextlib.contextmanager
def _refusing(array):
    """Raise `_RefusedError` for a feature that zcore lacks, and a chunk that it does not decode.

    numcodecs passes chunks of blosc to its library unchecked, which some damaged ones crash.
    """
    try:
        yield
    except (zcore.UnsupportedError, zcore.CodecError) as error:
        if isinstance(error, zcore.CodecError) and (
                error.direction != "decode" or "blosc" in repr(array._binding.metadata.codecs)):
            raise
        raise _RefusedError(error) from None


@contextlib.contextmanager
def _or(refused):
    """Raise the error of zcore, if there is one, where zarr-python cannot do it either."""
    try:
        yield
    except Exception:
        if refused is None:
            raise
        raise refused from None


def _split(form, key):
    """Return the path of the array that has a chunk with a key, and what precedes the coordinates in its keys."""
    n_last = form.ndim + form.n_extra if form.separator == "/" else 1
    path = "/".join(key.split("/")[:-max(n_last, 1)])
    if not form.ndim:
        return path, key
    return path, (path + "/" if path else "") + ("c" + form.separator) * form.n_extra


class _SameObjects(ArrayBinding):
    """An array that is cut by its first grid: a document of other objects, a group, or no document is an error."""

    __slots__ = ()

    def view_of(self, raw, identity, ticket=None):
        view = super().view_of(raw, identity, ticket)
        if not same_objects(self.view, view):
            raise self.replaced()
        return view

    def look_again(self, view, box):
        now = super().look_again(view, box)
        # So that the next read finds the document that it has seen. Of a smaller array, elements that zarr-python
        # selects are lost.
        if all(map(ge, now.metadata.shape, view.metadata.shape)):
            self.adopt(now)
        return now


# The functions that select what a request asks for, given its selection and the array's shape.
_SELECT = {"basic": basic, "orthogonal": oindex_vindex.orthogonal, "coordinate": oindex_vindex.coordinates}


def _grid(metadata):
    """Return for each dimension how its chunks lie, see `request_of`."""
    if metadata.edges is None:
        return metadata.chunk_shape
    return tuple([length if unequal is None else unequal.place
                  for length, unequal in zip(metadata.chunk_shape, metadata.edges, strict=True)])


def _index_of(request):
    """Return the index into the result that NumPy takes for a request."""
    return np.ix_(*request.where) if request.way == "orthogonal" else request.where


# What zarr-python says of an array: `chunks` is None for a grid of chunks that differ in shape. `n_extra` parts of a
# chunk's key, ``c`` for one, precede the coordinates.
_Form = namedtuple("_Form", ("ndim", "dtype", "chunks", "document", "separator", "n_extra"))


def _form_of(metadata):
    """Return the `_Form` of an array."""
    ndim = len(metadata.shape)
    if isinstance(metadata, ArrayV2Metadata):
        return _Form(ndim, metadata.dtype.to_native_dtype(), metadata.chunks, ".zarray",
                     metadata.dimension_separator, 0)
    encoding = metadata.chunk_key_encoding
    chunks = getattr(metadata.chunk_grid, "chunk_shape", None)
    return _Form(ndim, metadata.data_type.to_native_dtype(), chunks, "zarr.json", encoding.separator,
                 int(encoding.name == "default"))


# Documents that agree with what zarr-python has made of them: programs write many small arrays that are alike.
_agreed = {}
_MOST_AGREED = 64


def _agrees(binding, metadata, form):
    """Return whether zcore reads the objects of an array as zarr-python does, which has opened it with `metadata`.

    Raises : StoreError, if the document is by now that of another array.
    """
    # The fill value by its text, as NaN does not equal itself.
    members = {**vars(metadata), "attributes": None, "fill_value": repr(metadata.fill_value)}
    if _agreed.get(binding.view.raw) != members:
        if not _is_agreed(binding, metadata, form):
            return False
        if len(_agreed) >= _MOST_AGREED:
            _agreed.clear()
        _agreed[binding.view.raw] = members
    return True


def _is_agreed(binding, metadata, form):
    view = binding.view
    document = _document_of(metadata)
    if json.loads(document) != json.loads(view.raw):
        try:
            with noted():
                is_same = same_objects(binding.view_of(document, None), view)
        except zcore.ZcoreError:
            is_same = False
        if not is_same:
            # zcore may read one document in another way than zarr-python does.
            if _as_zarr_reads(metadata, document) != _as_zarr_reads(metadata, view.raw):
                raise binding.replaced()
            return False
    # In documents of v3 byte order is a codec's; text of varying length is shown as one type or the other.
    dtype = view.metadata.dtype
    texts = {dtype.kind, form.dtype.kind} <= {"O", "T"}
    return ((texts or dtype.newbyteorder("=") == form.dtype.newbyteorder("="))
            and (view.metadata.edges is not None or view.metadata.chunk_shape == tuple(form.chunks or ())))


def _document_of(metadata):
    """Return the document of an array that zarr-python has opened."""
    # Not by `to_buffer_dict`: it refuses unequal chunks while its flag ``array.rectilinear_chunks`` is off, and its
    # indentation takes as long as to write a small chunk.
    members = metadata.to_dict()
    if isinstance(metadata, ArrayV2Metadata):
        members.pop("attributes", None)
    return json.dumps(members).encode()


def _as_zarr_reads(metadata, document):
    """Return the members of a document that describe stored objects, as zarr-python writes them; None if it cannot."""
    try:
        found = type(metadata).from_dict(json.loads(document))
        members = json.loads(_document_of(found))
    except (AttributeError, KeyError, NotImplementedError, TypeError, ValueError):
        return None
    return {name: value for name, value in members.items() if name not in ("shape", "attributes", "dimension_names")}


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name, zcore.__all__, "zcore")


register_pipeline(ZcoreCodecPipeline)
