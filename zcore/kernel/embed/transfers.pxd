"""Boxes of one open array, read and written without the GIL."""
from libc.stdint cimport int64_t

from zcore.kernel.cache.chunks cimport ChunkCache
from zcore.kernel.io.object_locks cimport ObjectLocks
from zcore.kernel.plan.plan cimport Plan, PlanOptions
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.select.open_array cimport OpenArray, Opened
from zcore.kernel.select.tasks cimport Selected


cdef struct Idle:              # a plan that waits for its next box
    void *plan
    Idle *next


cdef class Transfers:
    cdef OpenArray array
    cdef const Opened *opened
    cdef ObjectLocks locks
    cdef ChunkCache chunks
    cdef int64_t form
    cdef int64_t n_bools
    cdef int64_t *bools        # where in an element booleans lie
    cdef bint writes
    cdef int n_threads         # for calls without a number of threads
    cdef int dirfd             # directory of the objects, for reading
    cdef int64_t is_trusted    # no other document can have the document's identity
    cdef list plans            # all of them, idle or not
    cdef Idle *readers
    cdef Idle *writers
    cdef int64_t guard         # spin lock of `readers` and `writers`
    cdef int64_t n_inside      # calls that use this; the caller counts them

    # Both return whether everything was done. If not, the caller must do all of it again in another way, which raises
    # the error. `data` and `strides` are those of the caller's elements; `n_threads` 0 means the setting.
    cdef bint read(self, const Selected *box, char *data, const int64_t *strides, int n_threads) noexcept nogil
    cdef bint write(self, const Selected *box, const char *data, const int64_t *strides,
                    int n_threads) noexcept nogil

    cdef void forget_calls(self) noexcept nogil      # in a forked child: those of its parent's threads

    # What differs between kinds of arrays.
    cdef object _open(self)
    cdef ReadPlan _reader(self, object nothing, PlanOptions options)
    cdef bint _begin(self, int *held) noexcept nogil
    cdef bint _stands(self) noexcept nogil

    cdef object _add(self, bint writes)
    cdef Idle *_take(self, Idle **idle) noexcept nogil
    cdef bint _run(self, Plan plan, int n_threads) noexcept nogil
