"""Plans of one array that are made beforehand, for calls that make no plan of their own."""
from libc.stdint cimport int64_t

from zcore.kernel.plan.plan cimport Plan
from zcore.kernel.select.tasks cimport Selected


cdef enum:
    MAX_PLANS = 64             # of a pool

cdef class PlanPool:
    cdef object make           # returns a new plan, of a selection of nothing
    cdef int n_slots
    cdef void *plans[MAX_PLANS]            # the plan of each slot, NULL until one is needed
    cdef int64_t is_used[MAX_PLANS]

    # Returns an idle plan, which only the caller uses until `give_back`; NULL, if all are used or none can be made. It
    # takes the GIL only to make one.
    cdef void *borrow(self) noexcept nogil
    cdef void give_back(self, void *plan) noexcept nogil


# Runs a plan for another box, with the caller's elements at `data`; returns whether all of it was done. If not, the
# caller does all of it again in the general way, which raises the error. `is_shared`: other threads may be started for
# several chunks; otherwise a box that is worth them is left undone.
cdef bint run_anew(Plan plan, const Selected *box, char *data, const int64_t *strides, int n_threads,
                   bint is_shared) noexcept nogil
