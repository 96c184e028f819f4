"""Where everything meets: the metadata of an array, bound to the store that holds it.

A `Binding` resolves once, when an array is opened, what depends on the metadata alone: the codec chain, the pattern of
the chunk keys, the directory. A read or write then makes one plan and runs it: in the kernel when the objects are
files and the chain has a C form, in Python otherwise. Both runs take the same tasks under the same locks.
"""
import os
import time
from functools import lru_cache

import numpy as np

from zcore import config, workers
from zcore.codecs.chain import CodecChain
from zcore.errors import ChunkError, LockError, NodeNotFoundError, ReadOnlyError, SelectionError, StoreError
from zcore.kernel.copy import is_filled
from zcore.kernel.read import ReadPlan
from zcore.kernel.write import WritePlan

# A plan of fewer decoded bytes than this is done before a second thread would have woken up.
MIN_SHARED_NBYTES = 1 << 17
# A document younger than this when it was read may be replaced by one of the same inode, size and times.
TRUSTED_AGE_NS = 2_000_000_000


class Options:
    """How a handle reads and writes; each is a keyword of `zcore.open`.

    Attributes
    ----------
    lock : bool
        Lock objects while they are replaced.
    missing : {"fill", "raise"}
        What an absent object is. With "raise", objects that hold only the fill value are stored as well.
    threads : int or None
        Threads of a read or write; None for `zcore.config.threads`.
    strict : bool
        Refuse what the formats forbid and real files have nonetheless: chunks cut off at the border of the array,
        blosc chunks of a foreign item size.
    write_empty_chunks : bool
        Store objects that hold only the fill value.
    read_only : bool
        Refuse every change.
    """

    __slots__ = ("lock", "missing", "threads", "strict", "write_empty_chunks", "read_only")

    def __init__(self, lock=True, missing="fill", threads=None, strict=True, write_empty_chunks=False,
                 read_only=False):
        if missing not in ("fill", "raise"):
            raise ValueError(f"missing is {missing!r}, expected 'fill' or 'raise'")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ValueError(f"threads is {threads!r}, expected an integer of at least 1")
        self.lock = bool(lock)
        self.missing = missing
        self.threads = threads
        self.strict = bool(strict)
        self.write_empty_chunks = bool(write_empty_chunks)
        self.read_only = bool(read_only)

    @property
    def keeps_filled(self):
        """Whether objects that hold only the fill value are stored."""
        return self.write_empty_chunks or self.missing == "raise"

    def as_keywords(self):
        """Return a dict that makes the same options again."""
        return {name: getattr(self, name) for name in self.__slots__}


@lru_cache(maxsize=64)
def _resolve(format, raw, path, strict):
    """Return (metadata, codec chain, key template) of a document: what depends on nothing else.

    All three are immutable and shared by the handles of equal documents. A task scheduler that opens an array for
    every task finds it here.
    """
    metadata = format.parse_array(raw, path)
    chain = CodecChain(metadata.codecs, metadata.dtype, metadata.chunk_shape, strict)
    return metadata, chain, metadata.chunk_keys.template(len(metadata.shape))


class Binding:
    """One array in one store.

    Parameters
    ----------
    store : Store
    path : str
        Of the array in the store, ``""`` for the root.
    format : module
        Of `zcore.formats`.
    options : Options

    Attributes
    ----------
    metadata : ArrayMetadata
        As the document said when it was read last.
    document : str
        Key of the metadata document.

    Raises
    ------
    NodeNotFoundError
        There is no such document.
    MetadataError, UnsupportedError
        The document is damaged, or needs what zcore does not have.
    """

    __slots__ = ("store", "path", "prefix", "format", "options", "document", "directory", "metadata", "chain",
                 "template", "_raw", "_identity", "_trusted")

    def __init__(self, store, path, format, options):
        self.store = store
        self.path = path
        self.prefix = path + "/" if path else ""
        self.format = format
        self.options = options
        self.document = self.prefix + format.array_document
        base = store.native_path
        self.directory = None if base is None else os.fsencode(os.path.join(base, path) if path else base)
        self.metadata = None
        self.reload()

    # metadata

    def reload(self):
        """Read the document again and take it over if it has changed."""
        found = self.store.get_with_identity(self.document)
        if found is None:
            raise NodeNotFoundError(f"no array at {self.describe()}: {self.document} does not exist", path=self.path,
                                    format=self.format.name)
        raw, identity = found
        self.adopt(raw, identity)

    def adopt(self, raw, identity):
        """Take over the document `raw` of the object `identity`."""
        if self.metadata is None or raw != self._raw:
            self.metadata, self.chain, self.template = _resolve(self.format, raw, self.path, self.options.strict)
            self._raw = raw
        self._identity = identity
        self._trusted = identity is None or time.time_ns() - max(identity[3:]) > TRUSTED_AGE_NS

    def describe(self):
        """Return where the array is, for messages."""
        return f"{self.store!r}/{self.path}" if self.path else repr(self.store)

    def check_writable(self):
        """Raise ReadOnlyError when this handle or its store is for reading."""
        if self.options.read_only or self.store.read_only:
            raise ReadOnlyError(f"{self.describe()} is open for reading; mode='r+' opens it for writing",
                                key=self.document)

    def locks(self):
        """Return the `ObjectLocks` of the array."""
        return self.store.locks(self.path, self.format.array_document)

    # reading

    def read(self, box, out):
        """Read the elements of a box into `out`, an ndarray of the box's counts and the stored type.

        Raises
        ------
        ChunkError
            An object is damaged, or absent with ``missing="raise"``.
        StoreError
            An object may be there and could not be read.
        NodeNotFoundError
            The array is gone.
        """
        metadata, options = self.metadata, self.options
        native = self._is_native()
        n_threads = options.threads or config.threads
        plan = ReadPlan(
            metadata.shape, metadata.chunk_shape, box.starts, box.steps, box.counts, program=self.chain.program,
            fill=metadata.fill_bytes, array=out, template=self.template,
            directory=self.directory if native else None, n_threads=n_threads, lenient=not options.strict,
            missing_raises=options.missing == "raise")

        def read_task(task):
            self._read_task(plan, task, out)

        self._run(plan, native, n_threads, read_task)
        if plan.has_missing:
            self._check_unreplaced()

    def _is_native(self):
        return self.directory is not None and self.chain.program is not None and not config.force_python

    def _run(self, plan, native, n_threads, python_task):
        """Run a plan to its end; raises what stopped it, but for a stale document."""
        n_tasks = plan.n_left
        if n_tasks * self.metadata.chunk_nbytes < MIN_SHARED_NBYTES:
            n_threads = 1
        n_threads = min(n_threads, n_tasks)
        if native:
            workers.run(plan.run, n_threads, plan.cancel)
            if plan.exception is not None:
                raise plan.exception
            error = plan.error(self.chain.step_names)
            if error is not None:
                raise error
            if not plan.stale:
                for task in plan.deferred:
                    python_task(task)
        else:
            def work(main):
                while (task := plan.take()) >= 0:
                    python_task(task)

            workers.run(work, n_threads, plan.cancel)

    def _check_unreplaced(self):
        """An absent object is a fill value only while the array that was opened is still the one that stands here."""
        identity = self.store.identity(self.document)
        if identity is not None and identity == self._identity:
            return
        found = self.store.get(self.document)
        if found == self._raw:
            return
        if found is None:
            raise NodeNotFoundError(f"no array at {self.describe()}: it was deleted since it was opened",
                                    path=self.path, format=self.format.name)
        if not _same_chunks(self.metadata, self.format.parse_array(found, self.path)):
            raise StoreError(f"{self.document}: the array was replaced by another one since it was opened; open it "
                             "again", key=self.document)

    def _read_task(self, plan, task, out):
        key, coords, inside, outside, _ = plan.task(task)
        chunk = self._load(key, coords)
        if chunk is None:
            plan.note_missing()
            out[outside] = self._fill()
        else:
            out[outside] = chunk[inside]

    def _fill(self):
        return np.frombuffer(self.metadata.fill_bytes, dtype=self.metadata.dtype)[0]

    def _load(self, key, coords):
        """Return one decoded chunk, or None when its object is absent."""
        raw = self.store.get(self.prefix + key)
        if raw is None:
            if self.options.missing == "raise":
                raise ChunkError(f"{key}: object is absent and the array was opened with missing='raise'", key=key,
                                 chunk_coords=coords, direction="decode")
            return None
        try:
            return self.chain.decode(raw)
        except ChunkError as error:
            trimmed = None if self.options.strict else self._load_trimmed(raw, coords, error)
            if trimmed is not None:
                return trimmed
            fields = {name: getattr(error, name) for name in error.fields}
            fields.update(key=key, chunk_coords=coords)
            raise type(error)(f"{key}: {error.message}", **fields) from error

    def _load_trimmed(self, raw, coords, error):
        """Return a border chunk that was stored without its overhang, as early 2016 code did; None if it was not."""
        metadata = self.metadata
        shape = tuple([min(chunk, length - i * chunk) for i, chunk, length
                       in zip(coords, metadata.chunk_shape, metadata.shape, strict=True)])
        if error.found is None or error.found != metadata.itemsize * int(np.prod(shape)):
            return None
        chunk = np.full(metadata.chunk_shape, self._fill(), dtype=metadata.dtype)
        chunk[tuple([slice(n) for n in shape])] = self.chain.decode(raw, shape)
        return chunk

    # writing

    def write(self, box, values):
        """Write `values`, an ndarray of the box's counts and the stored type, to the elements of a box.

        Every object is replaced under its lock, and only while the document that the plan was made from stands. If
        it changed, it is read again and what is left is planned anew.

        Raises
        ------
        SelectionError
            Another writer shrank the array and the box lies outside now.
        ChunkError, StoreError, LockError
            An object could not be read, encoded or stored.
        """
        if not self._trusted:
            self.reload()
        resume = None
        while True:
            before = self.metadata
            if not box.fits(before.shape):
                raise SelectionError(f"the array was shrunk to {before.shape} and the selection lies outside now")
            plan = self.write_once(box, values, resume=resume)
            if not plan.stale:
                return
            self.reload()
            resume = plan if _same_chunks(before, self.metadata) else None
            if self.metadata.dtype != before.dtype:
                raise StoreError(f"{self.document}: the array was replaced by one of another data type",
                                 key=self.document)

    def write_once(self, box, values, *, metadata=None, old_shape=None, exclusive=False, tasks=None, resume=None):
        """Write as far as the document stays the same, and return the plan.

        Parameters
        ----------
        box : Box
        values : ndarray or None
            None: only reset what lies outside `old_shape` in existing objects.
        metadata : ArrayMetadata, optional
            Instead of the binding's: of an array that grows with this write.
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
        metadata = metadata or self.metadata
        native = self._is_native()
        n_threads = options.threads or config.threads
        locks = self.locks() if options.lock and not exclusive else None
        plan = WritePlan(
            metadata.shape, metadata.chunk_shape, box.starts, box.steps, box.counts, program=self.chain.program,
            fill=metadata.fill_bytes, array=values, template=self.template,
            directory=self.directory if native else None, n_threads=n_threads, lenient=not options.strict,
            token=int.from_bytes(os.urandom(8)), locks=locks, identity=self._identity if locks is not None else None,
            old_shape=old_shape, keep_filled=options.keeps_filled, missing_raises=options.missing == "raise",
            fsync=self.store.fsync, resume=resume, tasks=tasks)

        def write_task(task):
            self._write_task(plan, task, values, locks, old_shape or metadata.shape)

        self._run(plan, native, n_threads, write_task)
        return plan

    def _write_task(self, plan, task, values, locks, old_shape):
        key, coords, inside, outside, covered = plan.task(task)
        if locks is None:
            self._write_object(key, coords, inside, outside, covered, values, old_shape)
            return
        try:
            with locks.object(key):
                if self.store.identity(self.document) == self._identity:
                    self._write_object(key, coords, inside, outside, covered, values, old_shape)
                else:
                    plan.leave_stale(task)
        except FileNotFoundError:
            plan.leave_stale(task)

    def _write_object(self, key, coords, inside, outside, covered, values, old_shape):
        metadata = self.metadata
        chunk = None
        if values is None or not covered:
            chunk = self._load(key, coords)
            if chunk is None and values is None:
                return
        if chunk is None:
            chunk = np.full(metadata.chunk_shape, self._fill(), dtype=metadata.dtype)
        else:
            chunk = np.array(chunk)
            for d, (i, length) in enumerate(zip(coords, metadata.chunk_shape, strict=True)):
                kept = max(0, old_shape[d] - i * length)
                chunk[(slice(None),) * d + (slice(kept, None),)] = self._fill()
        if values is not None:
            chunk[inside] = values[outside]
        if not self.options.keeps_filled and is_filled(chunk.view(np.uint8).reshape(-1), metadata.fill_bytes):
            self.store.erase(self.prefix + key)
        else:
            self.store.set(self.prefix + key, self._encode(chunk, key, coords))

    def _encode(self, chunk, key, coords):
        try:
            return self.chain.encode(chunk)
        except ChunkError as error:
            raise type(error)(f"{key}: {error.message}", key=key, chunk_coords=coords, codec=error.codec,
                              direction="encode") from error

    # objects

    def stored_chunks(self):
        """Iterate over (key, chunk coordinates) of the objects that exist, inside the grid or not.

        `key` is relative to the store; other keys below the chunk directory are left out.
        """
        keys = self.metadata.chunk_keys
        ndim = len(self.metadata.shape)
        n = len(self.prefix)
        directory = self.prefix + self.format.chunk_directory + "/" if self.format.chunk_directory else self.prefix
        for key in self.store.list_prefix(directory):
            coords = keys.decode(key[n:], ndim)
            if coords is not None:
                yield key, coords

    def exclusive(self):
        """Return a context manager that keeps all other writers of this array out, with the metadata read anew."""
        return _Exclusive(self)


class _Exclusive:
    """The whole range of a binding's document, held; what `Binding.exclusive` returns."""

    def __init__(self, binding):
        self._binding = binding
        self._hold = None

    def __enter__(self):
        binding = self._binding
        if binding.options.lock:
            hold = binding.locks().whole()
            try:
                hold.__enter__()
            except FileNotFoundError as exc:
                if isinstance(exc, LockError):
                    raise
                raise NodeNotFoundError(f"no array at {binding.describe()}", path=binding.path,
                                        format=binding.format.name) from exc
            self._hold = hold
        try:
            binding.reload()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info):
        if self._hold is not None:
            hold, self._hold = self._hold, None
            hold.__exit__(*exc_info)

    def replace_metadata(self, metadata):
        """Write a new document and go on holding the array, under the new one."""
        binding = self._binding
        raw = binding.format.render_array(metadata)
        if self._hold is not None and binding.directory is not None:
            identity = self._hold.replace(raw, token=int.from_bytes(os.urandom(8)), fsync=binding.store.fsync)
        else:
            binding.store.set(binding.document, raw)
            identity = binding.store.identity(binding.document)
        binding.adopt(raw, identity)


def _same_chunks(a, b):
    """Whether two metadata describe the same stored objects, whatever the shape."""
    return (a.chunk_shape == b.chunk_shape and a.dtype == b.dtype and a.codecs == b.codecs
            and a.chunk_keys == b.chunk_keys and a.fill_bytes == b.fill_bytes)
