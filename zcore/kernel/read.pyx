# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading: each task brings the selected elements of one chunk into the caller's array.

A chunk that lies in the array as it lies in its object is decoded straight into place. Any other is decoded into the
worker's scratch and its elements are copied from there.
"""
cimport cython
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.blosc_blocks cimport Runs
from zcore.kernel.copy cimport MAX_NDIM, Copy, copy_run, copy_simplify, fill_run
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport MAX_KEY, Plan, Worker
from zcore.kernel.status cimport MISSING, OK, fail


@cython.final
cdef class ReadPlan(Plan):
    """A `Plan` that reads; same parameters."""

    def _direction(self):
        return "decode"

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef Copy spec
        cdef char *out
        cdef int code
        cdef bint whole
        cdef bint in_place
        cdef Runs runs
        cdef Runs *blockwise = NULL
        self.spans_of(task, spans)
        self.key_of(spans, key)
        out = self.data + self.data_offset(spans)
        whole = self.is_whole(spans)
        in_place = whole and self.in_place
        if in_place:
            code = self.load(key, worker, <uint8_t *>out, NULL, NULL)
        else:
            if whole and self.runs_of(&runs):
                blockwise = &runs
            code = self.load(key, worker, NULL, blockwise, <uint8_t *>out)
        if code == MISSING:
            if self.missing_raises:
                return fail(&worker.status, MISSING, 0, 0, 0)
            self.copy_spec(spans, False, &spec)
            copy_simplify(&spec)
            fill_run(&spec, self.shown_fill_value, out)
            return OK
        if code != OK or in_place or worker.placed:
            return code
        self.copy_spec(spans, False, &spec)
        copy_simplify(&spec)
        copy_run(&spec, <const char *>worker.decoded.data + self.chunk_offset(spans), out)
        return OK
