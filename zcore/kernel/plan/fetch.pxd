"""The first step of a task: the bytes of an object, from a file, a part of a file, memory or the caller.

Or its elements, if they lie in a file as they are: only the needed bytes are read.
"""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Content
from zcore.kernel.plan.plan cimport Object, Plan, Worker
from zcore.kernel.select.grid cimport Span
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport Copy


ctypedef int (*Use)(Plan plan, const uint8_t *data, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil

# Finds where the bytes of an object lie: OK, MISSING, or another code. After OK the object has to be closed.
cdef int fetch_open(Plan plan, const char *key, Object *object, Worker *worker) noexcept nogil
# Learns the size and the identity of an object's file: OK, MISSING, or another code.
cdef int fetch_identity(Object *object, Status *status) noexcept nogil
# Fetches an object whole, and calls `use` with its bytes: OK, MISSING, or another code. If `use` fails, and
# the read had ended before the end of the file, it is called again with more bytes.
cdef int fetch_whole(Plan plan, Object *object, const Span *spans, Use use, Worker *worker) noexcept nogil
# Closes an object that was fetched whole; returns `code`, or why its file cannot be read at all.
cdef int fetch_end(Plan plan, Object *object, int code, Worker *worker) noexcept nogil
cdef void fetch_close(Object *object) noexcept nogil
# Returns the maximum size of the worker's current object, if it is fetched whole.
cdef int64_t stored_limit(Plan plan, const Span *spans, Worker *worker) noexcept nogil


# Copies elements that begin at `offset` of `content` to `dst`: OK; FILE_CUT, another code with the worker's status; or
# STOPPED. `spec` is changed.
cdef int copy_raw(Plan plan, const Content *content, Copy *spec, int64_t offset, char *dst,
                  Worker *worker) noexcept nogil
# Whether this reads no more than the `n_bytes` bytes of the whole content, if separate reads count as some bytes more.
cdef bint is_cheaper(const Copy *spec, int64_t n_bytes) noexcept nogil
