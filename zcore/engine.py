"""Where everything meets: the metadata of an array, bound to the store that holds it.

A `Binding` resolves once, when an array is opened, what depends on the metadata alone: the codec chain, the pattern of
the chunk keys, the directory. A read or write then makes one plan and runs it: in the kernel when the objects are
files and the chain has a C form, in Python otherwise. Both runs take the same tasks under the same locks.
"""
import os
from functools import partial
from itertools import count

import numpy as np

from zcore import config, objects, workers
from zcore.binding import NodeBinding
from zcore.errors import ChunkError, SelectionError, StoreError
from zcore.fields import part_of
from zcore.gathered import Gathered
from zcore.kernel.elements import Elements
from zcore.kernel.holds import Stopped
from zcore.kernel.read import ReadPlan
from zcore.kernel.write import WritePlan
from zcore.model.metadata import ArrayMetadata
from zcore.views import form_of, same_chunks

# What all values may have, decoded, that are asked for at a time; those of as many threads as compute may have more.
MAX_ASKED_NBYTES = 1 << 28
# A plan of fewer decoded bytes than this is done before a second thread would have woken up.
MIN_SHARED_NBYTES = 1 << 17
# However many are asked for: each takes a stack, and more wait for each other than work.
MAX_THREADS = 1024
# Objects that are written after a look at the document, where no lock keeps that as it is in other processes anyhow.
N_UNSEEN = 32
# A write that has found its document replaced so often keeps the others out, or it might never come to an end.
MAX_STALE = 8


class Binding(NodeBinding):
    """One array in one store; see `NodeBinding`."""

    __slots__ = ("directory", "elements", "_elements_of")

    kind = ArrayMetadata
    what = "array"

    def __init__(self, store, path, format, options, view=None):
        base = store.native_path
        self.directory = None if base is None else os.fsencode(os.path.join(base, path) if path else base)
        self.elements = self._elements_of = None
        super().__init__(store, path, format, options, view)

    @staticmethod
    def name_of_document(format):
        return format.array_document

    @staticmethod
    def render(format, metadata):
        return format.render_array(metadata)

    @property
    def chain(self):
        """The `CodecChain` of the metadata."""
        return self.view.chain

    # reading

    def read(self, box, out, field=None):
        """Read the selected elements into `out`, an ndarray of the selection's counts and the stored type.

        Parameters
        ----------
        box : Box or Product
        out : ndarray
        field : Part, optional
            Only this part of the elements; `out` has its type.

        Raises
        ------
        ChunkError
            An object is damaged, or absent with ``missing="raise"``.
        StoreError
            An object may be there and could not be read.
        NodeNotFoundError
            The array is gone.
        """
        view, options = self.view, self.options
        metadata = view.metadata
        self._check_same_kind(metadata, out, field)
        native = self._is_native(view, field)
        layout = None if native else self._layout(view, field)
        extents = None if native or layout is not None else self._extents(view, field)
        native = native or layout is not None or extents is not None
        n_threads = min(options.threads or config.threads, MAX_THREADS)
        make_plan = layout or (_shard_plans()[0] if native and view.chain.shards is not None else ReadPlan)
        plan = make_plan(
            metadata.shape, metadata.chunk_shape, box.starts, box.steps, box.counts,
            program=view.chain.program if native else None, fill=metadata.fill_bytes,
            array=out if native else None, template=view.template, directory=self.directory if native else None,
            extents=extents, swap=view.chain.swap, order=view.chain.order, n_threads=n_threads,
            lenient=not options.strict, missing_raises=options.missing == "raise",
            edges=metadata.edges, groups=box.groups, part=None if field is None else (field.offset, field.nbytes))
        chunks = options.chunks if native and extents is layout is None else None
        if chunks is not None:
            plan.keep(chunks, form_of(view, options.strict))

        def read_task(task, source=None):
            objects.read_object(self, view, plan, task, out, field, source)

        try:
            self._run(view, plan, native, n_threads, read_task)
        except ChunkError:
            # Whoever reads chunks of another array by this one's document finds damage that is none.
            self.check_unreplaced(view, box, plan)
            raise
        self.check_unreplaced(view, box, plan)
        _make_true_one(out)
        if chunks is not None and out.size == 1:
            self._expect_elements(view, chunks)

    def _expect_elements(self, view, chunks):
        """Prepare for reads of single elements: after the first one there will be more."""
        metadata, chain = view.metadata, view.chain
        if self._elements_of == (view.ticket, chunks) or not view.trusted or view.identity is None or (
                chain.shards is not None or metadata.edges is not None or metadata.dtype.names is not None):
            return
        shape = metadata.shape
        tasks = ReadPlan(shape, metadata.chunk_shape, (0,) * len(shape), (1,) * len(shape), shape,
                         program=chain.program, fill=metadata.fill_bytes, array=None, template=view.template,
                         swap=chain.swap, order=chain.order)
        try:
            self.elements = Elements(tasks, metadata.dtype, self.directory, os.fsencode(self.document_name),
                                     view.identity, chunks, form_of(view, self.options.strict))
        except ValueError:
            self.elements = None
        self._elements_of = view.ticket, chunks

    def _layout(self, view, field):
        """Return what makes a plan that reads elements where they lie as they are; None where they do not."""
        if config.force_python or (field is not None and view.chain.swap):
            return None
        # Decoded bytes that are wanted again are kept as chunks are.
        found = self.store.layout(self.path, self.options.chunks is None)
        if found is None:
            return None
        from zcore.kernel.layout_read import LayoutReadPlan

        return partial(LayoutReadPlan, source=found.source, offset=found.offset, strides=found.strides,
                       name=self.prefix + (".".join("0" * len(found.strides)) or "0"))

    def _extents(self, view, field):
        """Return the `Extents` of objects that are parts of other files; None where they are not, or Python has to."""
        references = self.store.references_of(self.prefix)
        if references is None or not _has_c_form(view, field):
            return None
        from zcore.kernel.extents import Extents

        return Extents(references.table, self.prefix.encode(), references.open)

    def _is_native(self, view, field):
        return self.directory is not None and _has_c_form(view, field)

    def _run(self, view, plan, native, n_threads, python_task):
        """Run a plan to its end; raises what stopped it, but for a stale document."""
        n_tasks = plan.n_left
        n_cpus = n_threads
        if n_tasks * plan.task_nbytes < MIN_SHARED_NBYTES:
            n_threads = 1
        n_threads = min(n_threads, n_tasks * plan.task_threads)
        if not native:
            self._run_in_python(view, plan, plan.take, n_tasks, python_task, n_threads, n_cpus)
            return
        workers.run(plan.run, n_threads, plan.cancel)
        plan.raise_failure(view.chain.step_names)
        if plan.deferred and not plan.stale:
            left = iter(plan.deferred)
            self._run_in_python(view, plan, lambda: -1 if plan.stopped else next(left, -1), len(plan.deferred),
                                python_task, 1, n_cpus)

    def _run_in_python(self, view, plan, take, n_tasks, python_task, n_threads, n_cpus):
        """Run tasks, of which `take` gives one after the other and then -1."""
        store = self.store
        if store.n_requests:
            # They wait for most of the time, and what they wait for has to fit into memory.
            n_threads = min(n_tasks, max(n_cpus, min(store.n_requests, MAX_ASKED_NBYTES // max(1, plan.task_nbytes))))
        gathered = Gathered(store, self.prefix, plan, take, view.chain.max_encoded)

        def work(main):
            while (task := take()) >= 0:
                python_task(task)

        def work_together(main):
            while batch := gathered.take():
                tasks, source = batch[0], batch[1]()
                for task in tasks:
                    if plan.stopped:
                        return
                    python_task(task, source)

        workers.run(work_together if gathered.helps else work, n_threads, plan.cancel)

    def check_unreplaced(self, view, box, plan=None):
        """Raise unless what was read counts: the array that was opened is still the one that stands here.

        Parameters
        ----------
        view : View
            By which it was read.
        box : Box or Product
            What was read of it; another shape has to hold that still.
        plan : ReadPlan, optional
            Which has the directory open.

        Raises
        ------
        NodeNotFoundError
            The array is gone.
        StoreError
            An array of other chunks stands here.
        SelectionError
            It was shrunk.
        """
        if view.trusted and view.identity is not None:
            if (plan.finds(self.format.array_document, view.identity) if plan is not None and plan.directory is not None
                    else self.store.identity(self.document) == view.identity):
                return
        now = self.look()
        if now.raw == view.raw:
            self.adopt(now)
            return
        if not same_chunks(view.metadata, now.metadata):
            raise self._replaced()
        self._check_inside(box, now.metadata)
        if now.metadata.shape == view.metadata.shape:
            # Only what is read afresh anyway has changed, attributes for one: it need not be found out again.
            self.adopt(now)

    def _check_same_kind(self, metadata, elements, field):
        """The caller's elements were made for the array as he knew it."""
        dtype = elements.dtype
        if field is not None and (metadata.dtype.names is None or field.name not in metadata.dtype.names
                                  or part_of(field.name, metadata.dtype) != field):
            raise self._replaced()
        if metadata.ndim != elements.ndim or (metadata.dtype != dtype if field is None else
                                              field.nbytes != dtype.itemsize):
            raise self._replaced()

    def _replaced(self):
        return StoreError(f"{self.document}: the array was replaced by another one since it was opened; open it again",
                          key=self.document)

    def _check_inside(self, box, metadata):
        if not box.fits(metadata.shape):
            raise SelectionError(f"the array was shrunk to {metadata.shape} and the selection lies outside now; "
                                 "refresh() takes over the new shape")

    # writing

    def write(self, box, values, field=None):
        """Write `values`, an ndarray of the selection's counts and the stored type, to the selected elements.

        Of a `field`, a `Part`, only that part of the elements, of which `values` has the type.

        Every object is replaced under its lock, and only while the document that the plan was made from stands. If
        it changed, it is read again and what is left is planned anew.

        Raises
        ------
        SelectionError
            Another writer shrank the array and the box lies outside now.
        ChunkError, StoreError, LockError
            An object could not be read, encoded or stored.
        """
        view = self.view
        if not self.options.lock and self.store.identity(self.document) != view.identity:
            # Nothing stops this write later, so this is the time to see what this or another handle has changed.
            view = self._look_for_write(box, values, field)
        self._check_same_kind(view.metadata, values, field)
        self._check_inside(box, view.metadata)
        resume = None
        for _ in range(MAX_STALE):
            plan = self.write_once(view, box, values, field=field, resume=resume)
            if not plan.stale and (not self.store.swaps or not self.options.lock or self._stands(view)):
                return
            before, view = view, self._look_for_write(box, values, field)
            resume = plan if same_chunks(before.metadata, view.metadata) else None
            if resume is plan and plan.n_left == 0 and not plan.stale:
                return
        with self.exclusive() as exclusive:
            before, view = view, exclusive.view
            self._check_same_kind(view.metadata, values, field)
            self._check_inside(box, view.metadata)
            self.write_once(view, box, values, field=field, exclusive=True,
                            resume=resume if same_chunks(before.metadata, view.metadata) else None)

    def _look_for_write(self, box, values, field):
        view = self.look()
        self._check_same_kind(view.metadata, values, field)
        self.adopt(view)
        self._check_inside(box, view.metadata)
        return view

    def write_once(self, view, box, values, *, field=None, metadata=None, old_shape=None, exclusive=False, tasks=None,
                   resume=None):
        """Write as far as the document stays the same, and return the plan.

        Parameters
        ----------
        view : View
            What the plan is made from.
        box : Box or Product
        values : ndarray or None
            None: only reset what lies outside `old_shape` in existing objects.
        field : Part, optional
            See `write`.
        metadata : ArrayMetadata, optional
            Instead of the view's: of an array that grows with this write.
        old_shape : tuple of int, optional
            What existing objects hold; anything outside of it is reset to the fill value.
        exclusive : bool
            The caller holds the whole range: objects are not locked.
        tasks : list of int, optional
            Only these.
        resume : WritePlan, optional
            Go on where this one stopped.
        """
        options = self.options
        metadata = metadata or view.metadata
        native = self._is_native(view, field)
        n_threads = min(options.threads or config.threads, MAX_THREADS)
        locks = self.locks() if options.lock and not exclusive else None
        make_plan = _shard_plans()[1] if native and view.chain.shards is not None else WritePlan
        plan = make_plan(
            metadata.shape, metadata.chunk_shape, box.starts, box.steps, box.counts,
            program=view.chain.program if native else None, fill=metadata.fill_bytes,
            array=values if native else None, template=view.template, directory=self.directory if native else None,
            swap=view.chain.swap, order=view.chain.order, n_threads=n_threads, lenient=not options.strict,
            token=int.from_bytes(os.urandom(8)), locks=locks,
            identity=view.identity if locks is not None else None,
            content=None if view.trusted else view.raw, old_shape=old_shape,
            # Where the fill value is undefined, so are the elements of absent chunks: no elements are equal to them.
            keep_filled=options.keeps_filled or metadata.fill_value is None,
            missing_raises=options.missing == "raise", fsync=self.store.fsync, resume=resume, tasks=tasks,
            edges=metadata.edges, groups=box.groups,
            part=None if field is None else (field.offset, field.nbytes))

        numbers = count()

        def write_task(task):
            # Where a look at the document costs as much as the object, it is for many, and once more at the end.
            is_sure = self.store.swaps and next(numbers) % N_UNSEEN != 0
            self._write_task(view, plan, task, values, locks, old_shape or metadata.shape, field, is_sure)

        self._run(view, plan, native, n_threads, write_task)
        return plan

    def _write_task(self, view, plan, task, values, locks, old_shape, field, is_sure):
        if locks is None:
            objects.write_object(self, view, plan, task, values, old_shape, field)
            return
        try:
            with locks.object(plan.task(task)[0], plan):
                if is_sure or self._stands(view):
                    objects.write_object(self, view, plan, task, values, old_shape, field)
                else:
                    plan.leave_stale(task)
        except (FileNotFoundError, Stopped):
            plan.leave_stale(task)

    def _stands(self, view):
        """Whether the document is the one of `view`; asked while an object is held, so it stays so."""
        if view.trusted:
            return self.store.identity(self.document) == view.identity
        return self.store.get(self.document) == view.raw

    # objects

    def stored_chunks(self):
        """Iterate over (key, chunk coordinates) of the objects that exist, inside the grid or not.

        `key` is relative to the store; other keys are left out. An object that is unreachable exists: it is for the
        caller to read it, or to leave it alone.

        Raises
        ------
        StoreError
            Where a directory of objects would be, something is unreachable: nobody can tell which objects exist.
        """
        return stored_chunks(self.store, self.prefix, self.metadata)


def _has_c_form(view, field):
    """Whether the kernel can move these elements between objects and memory."""
    chain = view.chain
    return chain.is_native and not config.force_python and (field is None or not chain.swap)


def stored_chunks(store, prefix, metadata):
    """Iterate over (key, chunk coordinates) of the objects below `prefix` that an array may have; see `Binding`."""
    keys, ndim = metadata.chunk_keys, len(metadata.shape)
    n = len(prefix)
    for key in store.list_prefix(prefix + keys.folder(ndim)):
        coords = keys.decode(key[n:], ndim)
        if coords is not None:
            yield key, coords
        elif keys.leads_to_chunks(key[n:], ndim):
            # A file, below which there is nothing; else an error.
            store.exists(key)


def names_of_chunks(store, prefix, metadata):
    """Iterate over the keys that are erased when all objects below `prefix` are that an array may have.

    These are the keys of objects, and links to nowhere in the place of directories of objects.
    """
    keys, ndim = metadata.chunk_keys, len(metadata.shape)
    n, folder = len(prefix), keys.folder(ndim)
    if folder and not _is_reachable(store.check_reachable, prefix + folder):
        yield prefix + folder[:-1]
        return
    for key in store.list_prefix(prefix + folder):
        if keys.decode(key[n:], ndim) is not None or (
                keys.leads_to_chunks(key[n:], ndim) and not _is_reachable(store.exists, key)):
            yield key


def _is_reachable(ask, name):
    try:
        ask(name)
    except StoreError:
        return False
    return True


def _make_true_one(out):
    """Make 1 of every byte but 0 in the booleans of `out`.

    Zarr v3 data types, "bool": a byte of 0 or 1. Others are stored by programs that took any of them for true, as NumPy
    does when it looks at one element; but what it computes from an array of them is wrong.
    """
    if out.dtype.kind == "b":
        np.not_equal(out.view(np.uint8), 0, out=out)
    elif out.dtype.names is not None:
        for name in out.dtype.names:
            _make_true_one(out[name])


def _shard_plans():
    """Return the plans that read and write shards; an import that arrays without shards do not need."""
    from zcore.kernel.shard_read import ShardReadPlan
    from zcore.kernel.shard_write import ShardWritePlan

    return ShardReadPlan, ShardWritePlan
