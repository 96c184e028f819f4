"""Elements that lie in a file, or in memory, as they are, copied to the caller's array: reads only needed bytes."""
from libc.stdint cimport int64_t

from zcore.kernel.io.files cimport Content
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.strided.copy cimport Copy


# Copies elements that begin at `offset` of `content` to `dst`: OK; FILE_CUT, another code with the worker's status; or
# STOPPED. `spec` is changed.
cdef int copy_raw(Plan plan, const Content *content, Copy *spec, int64_t offset, char *dst,
                  Worker *worker) noexcept nogil
# Whether this reads no more than the `n_bytes` bytes of the whole content, if separate reads count as some bytes more.
cdef bint is_cheaper(const Copy *spec, int64_t n_bytes) noexcept nogil
