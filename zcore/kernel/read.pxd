"""Reading: each task brings the selected elements of one object into the caller's array."""
from zcore.kernel.plan cimport Plan


cdef class ReadPlan(Plan):
    pass
