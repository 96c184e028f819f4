# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading: each task brings the selected elements of one chunk into the caller's array.

A chunk that lies in the array as it lies in its object is decoded straight into place. Any other is decoded into the
worker's scratch and its elements are copied from there.
"""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.blosc_blocks cimport NOT_BLOCKWISE, Runs
from zcore.kernel.copy cimport MAX_NDIM
from zcore.kernel.fileio cimport buffer_reserve
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport Plan, Worker
from zcore.kernel.status cimport MISSING, OK, fail
from zcore.kernel.tasks cimport MAX_KEY


cdef class ReadPlan(Plan):
    """A `Plan` that reads; same parameters."""

    def _direction(self):
        return "decode"

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int code
        self.spans_of(task, spans)
        self.measure_chunk(spans, &worker.layout)
        self.key_of(spans, key)
        code = self.load(key, spans, worker)
        if code != MISSING:
            return code
        if self.missing_raises:
            return fail(&worker.status, MISSING, 0, 0, 0)
        self.fill_in(spans)
        return OK

    cdef int take_in(self, const uint8_t *encoded, int64_t n_bytes, const Span *spans, Worker *worker) noexcept nogil:
        """Decode a chunk and bring its selected elements to their places."""
        cdef char *out = self.data + self.data_offset(spans)
        cdef bint whole = self.is_whole(spans)
        cdef Runs runs
        cdef int code
        if whole and worker.layout.in_place:
            return self.program.decode(encoded, n_bytes, <uint8_t *>out, worker.layout.n_bytes, self.n_inner_threads,
                                       &worker.work, &worker.status)
        if whole and self.n_inner_threads == 1 and self.runs_of(spans, &runs):
            code = buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status)
            if code == OK:
                code = self.program.scatter(encoded, n_bytes, worker.layout.n_bytes, &runs, <uint8_t *>out,
                                            worker.decoded.data, &worker.status)
            if code != NOT_BLOCKWISE:
                return code
        code = Plan.take_in(self, encoded, n_bytes, spans, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.decoded.data)
        return code
