"""An open array: it reads and writes by what its metadata say.

When an array is opened, its `ArrayBinding` resolves all that depends on the metadata alone: the codec chain, the
pattern of the chunk keys, the directory. Each read and each write then makes one plan, which the kernel runs. The
kernel opens the objects that are files; all others are passed to it, see `zcore.engine.requests`.
"""
from __future__ import annotations

import contextlib
import errno
import os
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from zcore import workers
from zcore.buffers import bools_of, make_true_one
from zcore.engine.freshness import MAX_STALE, Freshness
from zcore.engine.node_binding import Exclusive, NodeBinding
from zcore.engine.views import fill_of, form_of, same_objects
from zcore.errors import ChunkError, LockError, SelectionError, StoreError
from zcore.indexing.fields import part_of
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.small_read import SMALL_NBYTES, SmallReads
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select.open_array import OpenArray
from zcore.model.chunk_grid import number_of
from zcore.model.metadata import ArrayMetadata, has_varying_items
from zcore.stores.base import OBJECTS, Directory, FileParts, Strided
from zcore.text.characters import fault_of_text, has_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    import numpy.typing as npt

    from zcore.codecs.chain import CodecChain
    from zcore.engine.freshness import LastLook
    from zcore.engine.options import Options
    from zcore.engine.views import ArrayView, View
    from zcore.formats.base import Format
    from zcore.indexing.fields import Part
    from zcore.indexing.product import Product
    from zcore.kernel.embed.transfers import Transfers
    from zcore.kernel.io.locks import Held
    from zcore.kernel.select.box import Box
    from zcore.kernel.select.points import Boxes
    from zcore.stores.base import Store

    Selected: TypeAlias = Box | Product | Boxes


# Maximum decoded bytes of requests in flight. There are at least as many requests as threads that compute.
MAX_ASKED_NBYTES = 1 << 28
# A plan of fewer decoded bytes is done before a second thread would have woken up.
MIN_SHARED_NBYTES = 1 << 17
# Larger elements are not searched for booleans.
MAX_SEARCHED = 1 << 16


class ArrayBinding(NodeBinding):
    """One array in one store; see `NodeBinding`."""

    __slots__ = ("directory", "found", "small", "_located", "_n_small", "_opened", "_small_of")

    kind: type[ArrayMetadata] = ArrayMetadata
    what = "array"
    # A shape that is stored after a write must not be on the disk before the elements.
    writes_out = False

    if TYPE_CHECKING:
        view: ArrayView

        @property
        def metadata(self) -> ArrayMetadata: ...

        def look(self) -> ArrayView: ...

    def __init__(self, store: Store, path: str, format: Format, options: Options, view: View | None = None) -> None:
        self.directory: bytes | None = None
        self.small: SmallReads | None = None
        self._small_of = None
        self._n_small = 0
        self._located = None     # not known, or asked each time
        self._opened = None, None
        self.found: LastLook | None = None
        super().__init__(store, path, format, options, view)

    @property
    def chain(self) -> CodecChain:
        """The `CodecChain` of the metadata."""
        return self.view.chain

    def opened(self, view: ArrayView, metadata: ArrayMetadata | None = None) -> OpenArray:
        """Return the `OpenArray` of a view, the kernel's form of the array; it is made once and kept with the view.

        `metadata` replaces the view's metadata, for an array that grows with a write.
        """
        known, made = self._opened
        if metadata is not None and metadata is not view.metadata:
            return self._open(view, metadata)
        if known is not view:
            made = self._open(view, view.metadata)
            self._opened = view, made
        return made

    def _open(self, view, metadata):
        self._locate()      # also tells whether there is a directory
        options, chain, native = self.options, view.chain, self.directory is not None
        return OpenArray(
            metadata.shape, metadata.chunk_shape, program=chain.program, fill=metadata.fill_bytes,
            template=view.template, directory=self.directory,
            document=self.document_name.encode() if native else None, identity=view.identity if native else None,
            content=None if view.trusted or not native else view.raw,     # by these the document is recognised
            swap=chain.swap, order=chain.order, edges=metadata.edges, lenient=not options.strict,
            missing_raises=options.missing == "raise",
            # If the fill value is undefined, absent chunks have undefined elements, which equal no written element.
            keep_filled=options.write_empty_chunks or options.missing == "raise" or metadata.fill_value is None,
            fsync=self.store.fsync)

    # reading

    def read(self, box: Selected, out: npt.NDArray[Any], field: Part | None = None, *,
             holds_zeros: bool = False) -> None:
        """Read the selected elements into `out`, an ndarray of the selection's counts and the stored type.

        Parameters
        ----------
        box : Box, Product or Boxes
        out : ndarray
            For boxes, with a first dimension for the boxes.
        field : Part, optional
            Only this part of the elements; `out` has its type.
        holds_zeros : bool
            All bytes of `out` are 0, so that a fill value of 0 need not be set.

        Raises
        ------
        ChunkError
            An object is damaged, or absent with ``missing="raise"``.
        StoreError
            An object may exist but could not be read.
        NodeNotFoundError
            The array was deleted.
        """
        freshness = Freshness(self, box)
        for i in range(MAX_STALE):
            if i:
                freshness.look()
            if self.read_once(freshness.view, box, out, field, freshness.ends, freshness.begins,
                              holds_zeros=holds_zeros):
                return
            holds_zeros = False
        self._read_alone(box, out, field)

    def read_once(self, view: ArrayView, box: Selected, out: npt.NDArray[Any], field: Part | None,
                  ends: Callable[[ReadPlan], bool], begins: Callable[[ReadPlan], bool] | None = None,
                  holds_zeros: bool = False) -> bool:
        """Read by a view; return whether the result is valid. If it is not, elements of `out` may have changed.

        ``begins(plan)`` and ``ends(plan)`` decide that before and after the read; see `Freshness`. A damaged chunk is
        an error only if the result is valid, since a replaced array looks damaged.
        """
        options = self.options
        metadata = view.metadata
        self._check_elements(metadata, box, out, field)
        located = self._locate()
        native = type(located) is Directory
        layout = self._layout(located, view, field) if type(located) is Strided else None
        extents = self._extents(located) if type(located) is FileParts else None
        n_threads = options.n_threads()
        elements = _moved_by(view, out)
        plan = (layout or ReadPlan)(self.opened(view), box, elements, PlanOptions(
            n_threads=n_threads, opens_files=native, extents=extents, holds_zeros=holds_zeros,
            part=None if field is None else (field.offset, field.nbytes)))
        if begins is not None and not begins(plan):
            return False
        chunks = options.chunks if extents is layout is None and elements is out else None
        if chunks is not None:
            plan.keep(chunks, form_of(view, options.strict))
        reader = None if native or layout is not None or extents is not None else self._reader(view, plan, chunks)
        if begins is not None and reader is not None and self.store.n_requests > 1 and view.identity is not None:
            reader.look_at(partial(self.is_current, view))
            ends = partial(ends, saw_current=reader.saw_current)
        try:
            self._run(view, plan, n_threads, reader)
        except ChunkError:
            if ends(plan):
                raise
            return False
        if not ends(plan):
            return False
        make_true_one(out)
        if fault := fault_of_text(out):
            raise ChunkError(fault)
        if native and view.trusted and out.nbytes <= SMALL_NBYTES and view is self.view:
            self._expect_small(view)
        return True

    def _read_alone(self, box, out, field):
        """Read while the document is held, so that other writers of zcore wait."""
        error = self.replaced_often(MAX_STALE)
        if not self.options.lock:
            raise error
        try:
            with self.exclusive() as exclusive:
                view = exclusive.view
                self._check_inside(box, view.metadata)
                # A copy may still replace this directory by another one.
                if self.read_once(view, box, out, field,
                                  lambda plan: self.store.identity(self.document) == view.identity):
                    return
        except LockError as exc:
            raise error from exc
        raise error

    def _expect_small(self, view):
        """Prepare small reads by a view: after the second one, more will follow."""
        if self._small_of is not view:
            self._small_of, self._n_small, self.small = view, 0, None
        n = self._n_small = self._n_small + 1
        dtype, options = view.metadata.dtype, self.options
        if n == 2 and view.identity is not None and view.chain.program.decodes_natively and dtype.names is None and (
                not has_varying_items(dtype)):
            with contextlib.suppress(ValueError):
                self.small = SmallReads(self.opened(view), dtype, options.chunks_to_come,
                                        form_of(view, options.strict), options.n_threads)
            if self._small_of is not view:
                # Another thread reads by another view: these would never be right, so the next read begins again.
                self._small_of = None

    def _locate(self):
        """Return the answer of `Store.locate`: where compiled code finds the objects, or to ask the store."""
        found = self._located
        if found is None:
            found = self.store.locate(self.prefix)
            if type(found) is Directory:
                self.directory = os.fsencode(found.path)
            # Parts of files are located again in each call: an open file may be closed, or grow.
            self._located = found if type(found) is Directory or found is OBJECTS else None
        return found

    def _layout(self, located, view, field):
        """Return the factory of a plan that reads `Strided` elements; None if they are read as objects."""
        # Decoded bytes go through the cache of chunks.
        if (field is not None and view.chain.swap) or (located.is_decoded and self.options.chunks is not None):
            return None
        from zcore.kernel.plan.read import LayoutReadPlan

        return partial(LayoutReadPlan, source=located.open, offset=located.offset, strides=located.strides,
                       name=self.prefix + (".".join("0" * len(located.strides)) or "0"))

    def _extents(self, located):
        """Return the kernel's `Extents`: objects that are parts of other files."""
        from zcore.kernel.refs.table import Extents

        return Extents(located.table, self.prefix.encode(), located.open)

    def _run(self, view, plan, n_threads, work):
        """Run a plan to its end. Raise the error that stopped it, unless that is a stale document.

        `work(main)` is what a thread does that asks the store for objects; None if compiled code opens them.
        """
        n_tasks = plan.n_left
        n_cpus = n_threads
        if n_tasks * plan.task_nbytes < MIN_SHARED_NBYTES:
            n_threads = 1
        n_threads = max(1, min(n_threads, n_tasks * plan.task_threads))     # an empty array has no task
        n_requests = self.store.n_requests
        if work is not None and n_requests:
            # The values that threads wait for must fit into memory, and as many that are decoded meanwhile.
            n_requests = min(n_requests, MAX_ASKED_NBYTES // max(1, plan.task_nbytes))
            # Threads wait most of the time.
            n_threads = min(n_tasks, max(n_cpus, n_requests))
            plan.spread(n_threads)
        workers.run(work or plan.run, n_threads, plan.cancel)
        plan.raise_failure(view.chain.step_names)
        if plan.deferred and not plan.stale:
            # Targets of references that are remote, damaged or missing: Python reads them or raises the error.
            work = self._reader(view, plan, None, plan.deferred)
            workers.run(work, min(len(plan.deferred), max(1, n_requests)), plan.cancel)
            plan.raise_failure(view.chain.step_names)

    def _reader(self, view, plan, chunks, tasks=None):
        """Return the `PlanReader` of a plan: for its next tasks, or for `tasks`."""
        from zcore.engine.requests import PlanReader

        return PlanReader(self.store, self.prefix, view, plan, chunks, tasks)

    def look_again(self, view: ArrayView, box: Selected) -> ArrayView:
        """Read the document again and return its `View`.

        Parameters
        ----------
        view : View
            View with which the array is read.
        box : Box or Product
            The selection that is read. It must lie in the new shape as well.

        Raises
        ------
        NodeNotFoundError
            The array was deleted.
        StoreError
            An array with other chunks is at this path.
        SelectionError
            The array was shrunk.
        """
        now = self.look()
        if now.raw != view.raw and not same_objects(view, now):
            raise self.replaced()
        self._check_inside(box, now.metadata)
        return now

    def _check_elements(self, metadata, box, elements, field):
        """Raise StoreError unless the caller's elements fit the metadata; another array may have replaced this one."""
        if field is not None and (metadata.dtype.names is None or field.name not in metadata.dtype.names
                                  or part_of(field.name, metadata.dtype) != field):
            raise self.replaced()
        if len(metadata.shape) != len(box.counts) or (metadata.dtype != elements.dtype if field is None else
                                                      field.nbytes != elements.dtype.itemsize):
            raise self.replaced()

    def replaced(self) -> StoreError:
        """Return the error for an array in whose place there is another one now."""
        return StoreError(f"{self.document}: the array was replaced by another one since it was opened; open it again",
                          key=self.document, errno=errno.ESTALE)

    def replaced_often(self, n: int) -> StoreError:
        """Return the error of an array whose document changed during each of `n` reads."""
        return StoreError(f"{self.document}: the document was replaced during each of {n} reads, so the elements "
                          "may be from several arrays; read again", key=self.document)

    def _check_inside(self, box, metadata):
        if not box.fits(metadata.shape):
            raise SelectionError(f"the array was shrunk to {metadata.shape} and the selection lies outside now; "
                                 "refresh() takes over the new shape")

    # writing

    def write(self, box: Selected, values: npt.NDArray[Any], field: Part | None = None) -> None:
        """Write `values`, an ndarray of the selection's counts and the stored type, to the selected elements.

        If `field`, a `Part`, is given, only that part of the elements is written, and `values` has its type.

        Every object is replaced under its lock, and only while the document that the plan was made from is in
        place. If it was replaced, it is read again and the rest is planned anew.

        Raises
        ------
        SelectionError
            Another writer shrank the array and the box lies outside now.
        ChunkError, StoreError, LockError
            An object could not be read, encoded or stored.
        """
        view = self.view
        if not self.options.lock and (view.identity is None or self.store.identity(self.document) != view.identity):
            # Without locks nothing stops this write later, so changes by other handles are looked for now.
            view = self._look_for_write(box, values, field)
        self._check_elements(view.metadata, box, values, field)
        self._check_inside(box, view.metadata)
        tasks = None
        for _ in range(MAX_STALE):
            plan = self.write_once(view, box, values, field=field, tasks=tasks, metadata=self._padded(view))
            if not plan.stale and (not self.store.swaps or not self.options.lock or self.is_current(view)):
                return
            before, view = view, self._look_for_write(box, values, field)
            is_same = same_objects(before, view)
            if is_same and plan.n_left == 0 and not plan.stale:
                return
            tasks = plan.undone() if is_same else None
        with self.exclusive() as exclusive:
            before, view = view, exclusive.view
            self._check_elements(view.metadata, box, values, field)
            self._check_inside(box, view.metadata)
            self.write_once(view, box, values, field=field, holder=exclusive, metadata=self._padded(view),
                            tasks=tasks if same_objects(before, view) else None)

    def _padded(self, view):
        """Return metadata of which no object extends beyond the shape, for a write at a service.

        The objects at the end are merged then: others may append to them at any time.
        """
        metadata = view.metadata
        if not self.store.swaps or not self.options.lock or self.options.missing == "raise":
            return None
        shape = tuple([end_of_objects(metadata, axis) for axis in range(metadata.ndim)])
        return metadata.resized(shape) if shape != metadata.shape and self.store.can_swap() else None

    def _look_for_write(self, box, values, field):
        view = self.look()
        self._check_elements(view.metadata, box, values, field)
        self.adopt(view)
        self._check_inside(box, view.metadata)
        return view

    def write_once(self, view: ArrayView, box: Selected, values: npt.NDArray[Any] | None, *, field: Part | None = None,
                   metadata: ArrayMetadata | None = None, old_shape: tuple[int, ...] | None = None,
                   holder: Held | None = None, is_reserved: bool = False,
                   tasks: list[int] | None = None, check: Callable[[], None] | None = None) -> WritePlan:
        """Write as far as the document stays the same, and return the plan.

        Parameters
        ----------
        view : View
            View from which the plan is made.
        box : Box or Product
        values : ndarray or None
            None: only reset elements outside `old_shape` in existing objects.
        field : Part, optional
            See `write`.
        metadata : ArrayMetadata, optional
            Replaces the view's metadata, for an array that grows with this write.
        old_shape : tuple of int, optional
            Existing objects are kept inside this shape. Outside they are reset to the fill value.
        holder : Held, optional
            With which the caller holds the whole range, or the place of a new array: objects are not locked.
        is_reserved : bool
            The elements lie in rows of a service that were reserved for them; see `PlanWriter`.
        tasks : list of int, optional
            Only these tasks.
        check : callable, optional
            Called after an object was read and before it is replaced by a compare-and-swap. If it raises, the write
            ends and the object is not changed.
        """
        if values is not None and (fault := fault_of_text(values)):
            raise ValueError(fault)
        options = self.options
        metadata = metadata or view.metadata
        native = type(self._locate()) is Directory
        n_threads = options.n_threads()
        locks = self.locks() if options.lock and holder is None else None
        plan = WritePlan(self.opened(view, metadata), box, _moved_by(view, values), PlanOptions(
            n_threads=n_threads, opens_files=native, token=int.from_bytes(os.urandom(8)), locks=locks,
            old_shape=old_shape, tasks=tasks,
            writes_out=self.writes_out or old_shape is not None or metadata is not view.metadata,
            dir_fd=holder.dir_fd if native and holder is not None else -1,
            part=None if field is None else (field.offset, field.nbytes)))

        work = None
        if not native:
            from zcore.engine.requests import PlanWriter

            work = PlanWriter(self, view, plan, locks, check, is_reserved)
        file_lock = None if locks is None else locks.file
        try:
            if file_lock is None:
                self._run(view, plan, n_threads, work)
                return plan
            with file_lock.hold() as held:
                self._run(view, plan, n_threads, work)
                held.check()
        except FileNotFoundError as exc:
            if file_lock is None:
                raise
            raise self.not_found("its directory is gone") from exc
        except StoreError as exc:
            # A copy over a group above may remove an array that was made after its locks were taken.
            if exc.errno == errno.ENOENT and isinstance(holder, Exclusive) and holder.is_gone():
                raise self.not_found("it was removed meanwhile") from exc
            raise
        return plan

    def is_current(self, view: View) -> bool:
        """Return whether the stored document is that of `view`. The caller holds an object's lock, so it stays so."""
        if view.trusted and view.identity is not None:
            return self.store.identity(self.document) == view.identity
        return self.store.get(self.document) == view.raw

    # without Python

    def transfers(self, n_callers: int) -> Transfers | None:
        """Return the kernel's `Transfers` of this array as of the last look, or None if a read or write needs Python.

        `n_callers`: expected number of threads that read or write at once.
        """
        from zcore.kernel.embed.transfers import Transfers

        view, options, located = self.view, self.options, self._locate()
        dtype = view.metadata.dtype
        # Compiled code does not check text.
        if view.identity is None or has_varying_items(dtype) or has_text(dtype) or dtype.itemsize > MAX_SEARCHED:
            return None
        threads = options.n_threads()
        marked = np.zeros(1, dtype)
        for raw in bools_of(marked):
            raw[...] = 1
        bools = tuple(np.flatnonzero(marked.view("u1")).tolist())     # offsets in bytes
        if type(located) is Strided and view.trusted and not located.is_decoded:
            made = Transfers(self.opened(view), threads, n_callers, bools, open_file=located.open,
                             make_reader=lambda *arguments: self._layout(located, view, None)(*arguments))
            return made if made.is_of(view.identity) else None
        if type(located) is not Directory or not view.chain.program.decodes_natively:
            return None
        locks = self.locks() if options.lock else None
        if locks is not None and locks.file is not None:
            return None
        return Transfers(self.opened(view), threads, n_callers, bools, locks=locks, chunks=options.chunks,
                         form=form_of(view, options.strict),
                         writes=view.chain.program.is_native and not options.read_only)

    # objects

    def stored_chunks(self, outside: bool = False) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Iterate over (key, chunk coordinates) of the objects that exist in the grid, or also outside of it.

        A resize that was killed may have left objects outside. `key` is relative to the store; other keys are left out.
        An unreachable object counts as existing: the caller may read it or leave it alone.

        Raises
        ------
        StoreError
            Something unreachable has the name of a directory of objects, so the existing objects are unknown.
        """
        store, prefix, metadata = self.store, self.prefix, self.metadata
        if not store.lists:
            raise StoreError(f"{store!r} has no listing, so it is unknown which chunks exist", key=prefix)
        keys, grid, n = metadata.chunk_keys, metadata.grid_shape, len(prefix)
        for key in store.list_prefix(prefix + keys.folder(len(grid))):
            coords = keys.decode(key[n:], len(grid))
            if coords is None:
                if keys.leads_to_chunks(key[n:], len(grid)):
                    store.exists(key)   # a file has nothing below it; anything else raises
            elif outside or number_of(coords, grid) is not None:
                yield key, coords


def end_of_objects(metadata: ArrayMetadata, axis: int) -> int:
    """Return the end of the last object along an axis, beyond the shape or not."""
    length = metadata.shape[axis]
    return sum(metadata.span_of(axis, length - 1)) if length else 0


def _moved_by(view, elements):
    """Return the elements for a plan: the caller's, or `Items`, which move elements of varying length."""
    metadata = view.metadata
    if not has_varying_items(metadata.dtype):
        return elements
    from zcore.codecs.items import Items

    return Items(view.chain, fill_of(metadata).reshape(()), elements)
