# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Plans of one array that are made beforehand, for small reads from Python and for callers that are not Python.

Compiled because a call borrows an idle plan, sets its box and runs it without Python. A slot is taken by one atomic
exchange, not under a lock: in a forked child the slots of the parent's other threads stay used, and nothing waits.
"""
cimport cython
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

from zcore.kernel.atomics cimport zc_load, zc_store, zc_swap_if
from zcore.kernel.status cimport OK

cdef extern from "threads.h" nogil:
    void zc_run_together(int n, void (*work)(void *) noexcept nogil, void *context)

cdef enum:
    MIN_SHARED_NBYTES = 1 << 17            # as in the engine: a smaller plan is done before a second thread wakes up


@cython.final
cdef class PlanPool:
    """Plans of one array.

    Parameters
    ----------
    make : callable
        Returns a new plan, of a selection of nothing. It must not lead to the owner of the pool.
    n_slots : int
        Maximum number of plans, and so of calls at the same time.
    n_made : int
        Plans that are made now, so that the first calls do not take the GIL.
    """

    def __init__(self, make, int n_slots=MAX_PLANS, int n_made=0):
        cdef int i
        self.make = make
        self.n_slots = n_slots
        for i in range(min(n_made, n_slots)):
            _make(self, i)

    def __dealloc__(self):
        cdef int i
        for i in range(MAX_PLANS):
            Py_XDECREF(<PyObject *>self.plans[i])

    cdef void *borrow(self) noexcept nogil:
        cdef int i
        for i in range(self.n_slots):
            if zc_load(&self.is_used[i]) == 0 and zc_swap_if(&self.is_used[i], 0, 1):
                if self.plans[i] != NULL or _made(self, i):
                    return self.plans[i]
                zc_store(&self.is_used[i], 0)
                break
        return NULL

    cdef void give_back(self, void *plan) noexcept nogil:
        cdef int i = 0
        while self.plans[i] != plan:
            i += 1
        zc_store(&self.is_used[i], 0)


cdef int _make(PlanPool pool, int i) except -1:
    cdef Plan plan = pool.make()
    Py_INCREF(plan)
    pool.plans[i] = <void *>plan
    return 0


cdef bint _made(PlanPool pool, int i) noexcept with gil:
    try:
        try:
            _make(pool, i)
            return True
        except BaseException:
            pass
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return False


cdef void _work(void *plan) noexcept nogil:
    (<Plan>plan).work(False)


cdef bint run_anew(Plan plan, const Selected *box, char *data, const int64_t *strides, int n_threads,
                   bint is_shared) noexcept nogil:
    cdef int64_t n
    if plan.begin_anew(box, data, strides, n_threads) != OK:
        return False
    if not is_shared and plan.n_chunks > 1 and plan.n_chunks * plan.layout.n_bytes >= MIN_SHARED_NBYTES:
        return False
    n = min(<int64_t>n_threads, plan.n_tasks * plan.task_threads) if is_shared else 1
    if plan.n_tasks * plan.task_nbytes < MIN_SHARED_NBYTES:
        n = 1
    if plan.n_tasks:
        zc_run_together(<int>n, _work, <void *>plan)
    return zc_load(&plan.stop) == 0 and plan.status.code == OK and plan.n_deferred == 0
