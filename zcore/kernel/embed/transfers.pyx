# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Boxes of one open array, read and written without the GIL, for callers that are not Python.

Compiled because it needs no Python: plans are made beforehand, and each call borrows an idle one and sets its box. In
all other cases (a replaced document, a damaged chunk, a full disk) the call only returns that it is not done. The
caller then does everything again through the engine, which finds the reason and raises the error. Reading twice is
harmless, and so is writing the same elements twice.
"""
import os
from array import array as array_of
from functools import partial

cimport cython
from libc.stdint cimport int64_t
from posix.fcntl cimport O_CLOEXEC, O_DIRECTORY, O_RDONLY, open
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_load, zc_store
from zcore.kernel.plan.cache cimport ChunkCache
from zcore.kernel.io.files cimport Identity, identify_fd, same_identity
from zcore.kernel.io.locks cimport ObjectLocks
from zcore.kernel.select.open_array cimport OpenArray, document_hold, document_is_old, document_stands
from zcore.kernel.plan.plan cimport Plan, PlanOptions, PlanPool, run_anew
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.plan.write cimport WritePlan
from zcore.kernel.status cimport OK
from zcore.kernel.select.box import whole
from zcore.kernel.select.tasks cimport Selected


def _new_reader(make_reader, OpenArray array not None, int n_threads, ChunkCache chunks, int64_t form):
    cdef ReadPlan plan = make_reader(array, whole((0,) * array.opened.ndim), None,
                                     PlanOptions(opens_files=False, n_threads=n_threads))
    if chunks is not None:
        plan.keep(chunks, form)
    return plan


def _new_writer(OpenArray array not None, int n_threads, ObjectLocks locks):
    return WritePlan(array, whole((0,) * array.opened.ndim), None,
                     PlanOptions(opens_files=False, n_threads=n_threads, locks=locks,
                                 token=int.from_bytes(os.urandom(8))))


@cython.final
@cython.no_gc_clear
cdef class Transfers:
    """Reads and writes boxes of one array, whose objects are files, or whose elements lie uncompressed in a file.

    Parameters
    ----------
    array : OpenArray
        Its program must decode without Python. If its objects are files, it must have a document and its identity.
    n_threads : int
        For calls without a number of threads.
    n_callers : int
        Number of threads for which plans are made now. If more threads call at the same time than ever before, a new
        plan is made with the GIL.
    bools : tuple of int
        Offsets in bytes of the booleans in an element. Some programs store other bytes than 0 and 1 for these.
    writes : bool
        If False, every write is left undone. If True, the program must encode without Python, too.
    locks : ObjectLocks or None
        None: write without locks.
    chunks : ChunkCache or None
        Cache for decoded chunks.
    form : int
        See `ReadPlan.keep`.
    make_reader : callable
        Returns a `ReadPlan`; its arguments are those of `ReadPlan`.
    open_file : callable or None
        Returns a descriptor of the file that the elements lie in, which stays open and which this closes, or the bytes
        instead. A file that has changed since is left to the caller. Called here, because Ctrl-C in Python code could
        lose the descriptor. None: objects are files.
    """

    def __cinit__(self):
        self.dirfd = self.file = -1

    def __init__(self, OpenArray array not None, int n_threads, int n_callers, tuple bools not None, *,
                 bint writes=False, ObjectLocks locks=None, ChunkCache chunks=None, int64_t form=0,
                 make_reader=ReadPlan, open_file=None):
        self.array = array
        self.opened = array.opened
        self.is_locked = locks is not None
        self.n_threads = n_threads
        self.bools = Bytes(array_of("q", bools))
        self.n_bools = len(bools)
        self.is_trusted = self.opened.n_content < 0
        if open_file is None:
            assert self.opened.directory != NULL and self.opened.document != NULL and self.opened.has_identity
            # A directory that cannot be opened is found out by the call that misses it.
            self.dirfd = open(self.opened.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        else:
            opened = open_file()
            self.file = opened if isinstance(opened, int) else -1
            if self.file >= 0 and identify_fd(self.file, &self.identity) != 0:
                raise OSError(f"cannot look at descriptor {self.file}")
        self.readers = PlanPool(partial(_new_reader, make_reader, array, n_threads, chunks, form), n_made=n_callers)
        if writes:
            self.writers = PlanPool(partial(_new_writer, array, n_threads, locks), n_made=n_callers)

    def __dealloc__(self):
        if self.dirfd >= 0:
            close(self.dirfd)
        if self.file >= 0:
            close(self.file)

    def is_of(self, tuple identity not None):
        """Return whether there is a file, with the inode and the times of an identity: a document is in it."""
        return self.file >= 0 and (self.identity.inode, self.identity.mtime_ns, self.identity.ctime_ns) == (
            identity[1], identity[3], identity[4])

    cdef bint read(self, const Selected *box, char *data, const int64_t *strides, int n_threads) noexcept nogil:
        cdef void *plan
        cdef int held = -1
        cdef bint done
        cdef int64_t i
        n_threads = n_threads or self.n_threads
        if self.file < 0 and not _may_read(self, &held):
            return False
        plan = self.readers.borrow()
        done = plan != NULL
        if done:
            (<Plan>plan).dirfd = self.dirfd
            done = run_anew(<Plan>plan, box, data, strides, n_threads, True)
            (<Plan>plan).dirfd = -1
            self.readers.give_back(plan)
        done = done and _stands(self)
        if held >= 0:
            close(held)
        if done:
            for i in range(self.n_bools):
                _make_true_one(data + (<int64_t *>self.bools.data)[i], self.opened.ndim, box.counts, strides)
        return done

    cdef bint write(self, const Selected *box, const char *data, const int64_t *strides,
                    int n_threads) noexcept nogil:
        cdef void *plan
        cdef bint done
        # Without locks nothing stops this write later.
        if self.writers is None or not (self.is_locked or document_stands(self.opened)):
            return False
        plan = self.writers.borrow()
        if plan == NULL:
            return False
        done = ((<Plan>plan).open_directory(-1) == 0
                and run_anew(<Plan>plan, box, <char *>data, strides, n_threads or self.n_threads, True)
                and (<WritePlan>plan).write_out(&(<Plan>plan).status) == OK)
        (<Plan>plan).close_directory()
        self.writers.give_back(plan)
        return done


cdef bint _may_read(Transfers transfers, int *held) noexcept nogil:
    """Whether objects may be read; `held` may become a descriptor that stays open until they are."""
    cdef bint is_old
    if transfers.dirfd < 0:
        return False
    if not zc_load(&transfers.is_trusted):
        # While the document is held open, no other one can have its identity. Before the content is compared: a
        # later write in place might already be old enough when checked afterwards.
        is_old = document_is_old(transfers.opened)
        held[0] = document_hold(transfers.opened)
        if held[0] < 0:
            return False
        zc_store(&transfers.is_trusted, is_old)
    return True


cdef bint _stands(Transfers transfers) noexcept nogil:
    """Whether what was read is of this array."""
    cdef Identity now
    if transfers.file < 0:
        return document_stands(transfers.opened)
    return identify_fd(transfers.file, &now) == 0 and same_identity(&now, &transfers.identity)


cdef void _make_true_one(char *data, int ndim, const int64_t *counts, const int64_t *strides) noexcept nogil:
    """Replace every byte except 0 by 1, as the engine does with booleans."""
    cdef int64_t i
    if ndim == 0:
        data[0] = data[0] != 0
        return
    for i in range(counts[0]):
        _make_true_one(data + i * strides[0], ndim - 1, counts + 1, strides + 1)
