"""Reading: each task brings the selected elements of one object into the caller's array."""
from zcore.kernel.grid cimport Span
from zcore.kernel.plan cimport Plan


cdef class ReadPlan(Plan):
    cdef void fill_in(self, const Span *spans) noexcept nogil
