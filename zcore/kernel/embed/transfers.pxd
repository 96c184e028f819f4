"""Boxes of one open array, read and written without the GIL."""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Identity
from zcore.kernel.memory cimport Bytes
from zcore.kernel.plan.plan cimport PlanPool
from zcore.kernel.select.open_array cimport OpenArray, Opened
from zcore.kernel.select.tasks cimport Selected


cdef class Transfers:
    cdef OpenArray array
    cdef const Opened *opened
    cdef bint is_locked
    cdef int64_t n_bools
    cdef Bytes bools           # numbers: where in an element booleans lie
    cdef int n_threads         # for calls without a number of threads
    cdef int dirfd             # directory of the objects, for reading; -1: there are none
    cdef int file              # that the elements lie in, or -1
    cdef Identity identity     # of that file
    cdef int64_t is_trusted    # no other document can have the document's identity; no order: it becomes true once
    cdef PlanPool readers
    cdef PlanPool writers      # None: every write is left undone
    cdef int64_t n_inside      # calls that use this; the caller counts them

    # Both return whether everything was done. If not, the caller must do all of it again in another way, which raises
    # the error. `data` and `strides` are those of the caller's elements; `n_threads` 0 means the setting.
    cdef bint read(self, const Selected *box, char *data, const int64_t *strides, int n_threads) noexcept nogil
    cdef bint write(self, const Selected *box, const char *data, const int64_t *strides,
                    int n_threads) noexcept nogil
