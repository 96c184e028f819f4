# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Boxes of one open array, read and written without the GIL, for callers that are not Python.

Compiled because it needs no Python: plans are made beforehand, and each call takes an idle one and sets its box. In all
other cases (a replaced document, a damaged chunk, a full disk) the call only returns that it is not done. The caller
then does everything again through the engine, which finds the reason and raises the error. Reading twice is harmless,
and so is writing the same elements twice.
"""
import os

cimport cython
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from posix.fcntl cimport O_CLOEXEC, O_DIRECTORY, O_RDONLY, open
from posix.unistd cimport close

from zcore.kernel.atomics cimport zc_load, zc_store, zc_swap_if
from zcore.kernel.cache.chunks cimport ChunkCache
from zcore.kernel.io.files cimport Identity, identify_fd, same_identity
from zcore.kernel.io.object_locks cimport ObjectLocks
from zcore.kernel.plan.document cimport document_hold, document_is_old, document_stands
from zcore.kernel.plan.plan cimport Plan, PlanOptions
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.plan.write cimport WritePlan
from zcore.kernel.select.box import whole
from zcore.kernel.select.open_array cimport OpenArray
from zcore.kernel.select.tasks cimport Selected
from zcore.kernel.status cimport OK

cdef extern from "threads.h" nogil:
    void zc_run_together(int n, void (*work)(void *) noexcept nogil, void *context)

cdef enum:
    MIN_SHARED_NBYTES = 1 << 17            # as in the engine: a smaller plan is done before a second thread wakes up


cdef void _work(void *plan) noexcept nogil:
    (<Plan>plan).work(False)


@cython.no_gc_clear
cdef class Transfers:
    """Reads and writes boxes of one array in a directory.

    Parameters
    ----------
    array : OpenArray
        Must have a directory, a document and its identity; its program must decode without Python.
    locks : ObjectLocks or None
        None: write without locks.
    chunks : ChunkCache or None
        Cache for decoded chunks.
    form : int
        See `ReadPlan.keep`.
    n_threads : int
        For calls without a number of threads.
    n_callers : int
        Number of threads for which plans are made now. If more threads call at the same time than ever before, a new
        plan is made with the GIL.
    bools : tuple of int
        Offsets in bytes of the booleans in an element. Some programs store other bytes than 0 and 1 for these.
    writes : bool
        If False, every write is left undone. If True, the program must encode without Python, too.
    """

    def __cinit__(self):
        self.dirfd = -1
        self.readers = self.writers = NULL
        self.bools = NULL

    def __init__(self, OpenArray array not None, ObjectLocks locks, ChunkCache chunks, int64_t form, int n_threads,
                 int n_callers, tuple bools not None, bint writes):
        cdef int64_t i
        self.array = array
        self.opened = array.opened
        self.locks = locks
        self.chunks = chunks
        self.form = form
        self.n_threads = n_threads
        self.n_bools = len(bools)
        if bools:
            self.bools = <int64_t *>malloc(self.n_bools * sizeof(int64_t))
            if self.bools == NULL:
                raise MemoryError
            for i in range(self.n_bools):
                self.bools[i] = bools[i]
        self.writes = writes
        self.is_trusted = self.opened.n_content < 0
        self.plans = []
        self._open()
        for _ in range(n_callers):
            _give(self, &self.readers, _grow(self, False))
            if writes:
                _give(self, &self.writers, _grow(self, True))

    def __dealloc__(self):
        cdef Idle *idle
        while self.readers != NULL:
            idle, self.readers = self.readers, self.readers.next
            free(idle)
        while self.writers != NULL:
            idle, self.writers = self.writers, self.writers.next
            free(idle)
        free(self.bools)
        if self.dirfd >= 0:
            close(self.dirfd)

    cdef void forget_calls(self) noexcept nogil:
        # The parent's other threads may have been in the middle of a plan. Such plans are dropped, so that none is used
        # twice.
        self.guard = 0
        self.readers = self.writers = NULL
        self.n_inside = 0

    cdef object _open(self):
        """Open what stays open as long as this exists."""
        assert self.opened.directory != NULL and self.opened.document != NULL and self.opened.has_identity
        # A directory that cannot be opened is found out by the call that misses it.
        self.dirfd = open(self.opened.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)

    cdef ReadPlan _reader(self, object nothing, PlanOptions options):
        """Return a plan that reads, of a selection of nothing."""
        cdef ReadPlan plan = ReadPlan(self.array, nothing, None, options)
        if self.chunks is not None:
            plan.keep(self.chunks, self.form)
        return plan

    cdef object _add(self, bint writes):
        nothing = whole((0,) * self.opened.ndim)
        options = PlanOptions(opens_files=False, n_threads=self.n_threads, locks=self.locks if writes else None,
                              token=int.from_bytes(os.urandom(8)))
        plan = WritePlan(self.array, nothing, None, options) if writes else self._reader(nothing, options)
        self.plans.append(plan)
        return plan

    cdef Idle *_take(self, Idle **list_of_idle) noexcept nogil:
        cdef Idle *idle
        while not zc_swap_if(&self.guard, 0, 1):
            pass
        idle = list_of_idle[0]
        if idle != NULL:
            list_of_idle[0] = idle.next
        zc_store(&self.guard, 0)
        if idle == NULL:
            idle = _grow(self, list_of_idle == &self.writers)
        return idle

    cdef bint _run(self, Plan plan, int n_threads) noexcept nogil:
        """Run a plan that was begun anew, and return whether all of its tasks are done."""
        cdef int64_t n = min(<int64_t>n_threads, plan.n_tasks * plan.task_threads)
        if plan.n_tasks * plan.task_nbytes < MIN_SHARED_NBYTES:
            n = 1
        if plan.n_tasks:
            zc_run_together(<int>n, _work, <void *>plan)
        return zc_load(&plan.stop) == 0 and plan.status.code == OK and plan.n_deferred == 0

    cdef bint _begin(self, int *held) noexcept nogil:
        """Whether a read may begin; `held` may become a descriptor that stays open until it is over."""
        cdef bint is_old
        if self.dirfd < 0:
            return False
        if not zc_load(&self.is_trusted):
            # While the document is held open, no other one can have its identity. Before the content is compared: a
            # later write in place might already be old enough when checked afterwards.
            is_old = document_is_old(self.opened)
            held[0] = document_hold(self.opened)
            if held[0] < 0:
                return False
            zc_store(&self.is_trusted, is_old)
        return True

    cdef bint _stands(self) noexcept nogil:
        """Whether what was read is of this array."""
        return document_stands(self.opened)

    cdef bint read(self, const Selected *box, char *data, const int64_t *strides, int n_threads) noexcept nogil:
        cdef Idle *idle
        cdef int held = -1
        cdef bint done
        cdef int64_t i
        n_threads = n_threads or self.n_threads
        if not self._begin(&held):
            return False
        idle = self._take(&self.readers)
        done = idle != NULL
        if done:
            (<Plan>idle.plan).dirfd = self.dirfd
            done = ((<Plan>idle.plan).begin_anew(box, data, strides, n_threads) == OK
                    and self._run(<Plan>idle.plan, n_threads))
            (<Plan>idle.plan).dirfd = -1
            _give(self, &self.readers, idle)
        done = done and self._stands()
        if held >= 0:
            close(held)
        if done:
            for i in range(self.n_bools):
                _make_true_one(data + self.bools[i], self.opened.ndim, box.counts, strides)
        return done

    cdef bint write(self, const Selected *box, const char *data, const int64_t *strides,
                    int n_threads) noexcept nogil:
        cdef Idle *idle
        cdef bint done
        n_threads = n_threads or self.n_threads
        if not self.writes:
            return False
        if self.locks is None and not document_stands(self.opened):
            # Without locks nothing stops this write later.
            return False
        idle = self._take(&self.writers)
        if idle == NULL:
            return False
        done = ((<Plan>idle.plan).open_directory(-1) == 0
                and (<Plan>idle.plan).begin_anew(box, <char *>data, strides, n_threads) == OK
                and self._run(<Plan>idle.plan, n_threads))
        (<Plan>idle.plan).close_directory()
        _give(self, &self.writers, idle)
        return done


cdef Idle *_grow(Transfers self, bint writes) noexcept with gil:
    """Make one more plan; NULL if that fails."""
    cdef Idle *idle = <Idle *>malloc(sizeof(Idle))
    if idle == NULL:
        return NULL
    try:
        try:
            plan = self._add(writes)
            idle.plan = <void *>plan
            return idle
        except BaseException:
            pass
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    free(idle)
    return NULL


cdef void _give(Transfers self, Idle **list_of_idle, Idle *idle) noexcept nogil:
    if idle == NULL:
        return
    while not zc_swap_if(&self.guard, 0, 1):
        pass
    idle.next = list_of_idle[0]
    list_of_idle[0] = idle
    zc_store(&self.guard, 0)


@cython.no_gc_clear
@cython.final
cdef class LayoutTransfers(Transfers):
    """Reads boxes of one array whose elements lie uncompressed in a file, which stays open. Never writes.

    Parameters
    ----------
    array : OpenArray
    make_reader : callable
        Returns a `LayoutReadPlan`; the arguments are those of `ReadPlan`.
    open_file : callable
        Returns a descriptor of the file, which this closes, or the bytes instead. A file that has changed since is left
        to the caller. Called here, because Ctrl-C in Python code could lose the descriptor.
    n_threads, n_callers, bools
        See `Transfers`.
    """

    cdef object make_reader
    cdef int file
    cdef Identity identity

    def __cinit__(self):
        self.file = -1

    def __init__(self, OpenArray array not None, make_reader, open_file, int n_threads, int n_callers,
                 tuple bools not None):
        file = open_file()
        if isinstance(file, int):
            self.file = file
        self.make_reader = make_reader
        if self.file >= 0 and identify_fd(self.file, &self.identity) != 0:
            raise OSError(f"cannot look at descriptor {self.file}")
        Transfers.__init__(self, array, None, None, 0, n_threads, n_callers, bools, False)

    def __dealloc__(self):
        if self.file >= 0:
            close(self.file)

    def is_of(self, tuple identity not None):
        """Return whether there is a file, with the inode and the times of an identity: a document is in it."""
        return self.file >= 0 and (self.identity.inode, self.identity.mtime_ns, self.identity.ctime_ns) == (
            identity[1], identity[3], identity[4])

    cdef object _open(self):
        return None

    cdef ReadPlan _reader(self, object nothing, PlanOptions options):
        return self.make_reader(self.array, nothing, None, options)

    cdef bint _begin(self, int *held) noexcept nogil:
        return True

    cdef bint _stands(self) noexcept nogil:
        cdef Identity now
        return identify_fd(self.file, &now) == 0 and same_identity(&now, &self.identity)


cdef void _make_true_one(char *data, int ndim, const int64_t *counts, const int64_t *strides) noexcept nogil:
    """Replace every byte except 0 by 1, as the engine does with booleans."""
    cdef int64_t i
    if ndim == 0:
        data[0] = data[0] != 0
        return
    for i in range(counts[0]):
        _make_true_one(data + i * strides[0], ndim - 1, counts + 1, strides + 1)
