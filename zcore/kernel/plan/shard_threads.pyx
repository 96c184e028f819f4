# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Threads that share the encoding of one object: parts in any order, added in the right order.

A task of a write is an object. One thread, its owner, locks and replaces it. A shard can be as large as the whole
array, so a thread without a task helps the owners that are still at work: it takes the next part of an object, encodes
it into a slot, and takes another. The owner does the same, except for the part that is next in order, which it adds at
once. From the slots it adds those that are ready. So the bytes of the object do not depend on which thread encoded
which part.

At most `n_slots` parts are taken before they are added. With half as many slots as parts, all encoders and their slots
together need less memory than the object, decoded and encoded.
"""
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store, zc_swap_if
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.io.files cimport FAILED, buffer_free, buffer_reserve
from zcore.kernel.codec.table cimport Workspace, workspace_free
from zcore.kernel.status cimport INTERRUPTED, NO_MEMORY, OK, status_clear

cdef enum:
    SLOTS_PER_THREAD = 4


cdef class Crews:
    """The threads that run a plan. Each owns an object or helps another owner.

    Parameters
    ----------
    n_threads : int
        Maximum number of threads.
    """

    def __cinit__(self):
        self.crews = NULL

    def __init__(self, int n_threads):
        if self.admit(n_threads) != OK:
            raise MemoryError

    def __dealloc__(self):
        free(self.crews)

    cdef int admit(self, int n_threads) noexcept nogil:
        cdef Crew **crews
        if n_threads != self.n_crew:
            crews = <Crew **>calloc(n_threads, sizeof(Crew *))
            if crews == NULL:
                return NO_MEMORY
            free(self.crews)
            self.crews = crews
            self.n_crew = n_threads
        return OK

    cdef void begin(self) noexcept nogil:
        zc_add(&self.n_open, 1)

    cdef void end(self) noexcept nogil:
        zc_add(&self.n_open, -1)

    # overridden by subclasses

    cdef int64_t encode_part(self, Plan plan, void *job, int64_t i, Worker *worker,
                             const uint8_t **encoded) noexcept nogil:
        return SKIPPED

    cdef int add_part(self, Plan plan, void *job, int64_t i, const uint8_t *encoded, int64_t n_bytes,
                      Worker *worker) noexcept nogil:
        return OK

    # the owner

    cdef int run_parts(self, Plan plan, void *job, int64_t n_parts, Worker *worker) noexcept nogil:
        cdef Crew crew
        cdef Workspace left
        cdef int64_t i
        cdef int64_t n_waits = 0
        cdef int code
        memset(&crew, 0, sizeof(Crew))
        crew.job = job
        crew.n_parts = n_parts
        crew.n_slots = min(SLOTS_PER_THREAD * self.n_crew, n_parts // 2)
        if self.n_crew > 1 and crew.n_slots > 1 and self.parts_are_encoded:
            crew.slots = <Slot *>calloc(crew.n_slots, sizeof(Slot))
        if crew.slots == NULL or not _show(self, &crew):
            free(crew.slots)
            return self._run_alone(plan, job, n_parts, worker)
        code = _lead(self, plan, &crew, worker)
        _hide(self, &crew)
        while zc_load(&crew.n_helpers):
            if plan.is_cut_off():
                return INTERRUPTED     # what the helpers had in hand, in the parent, stays as it is
            zc_back_off(n_waits)
            n_waits += 1
        for i in range(crew.n_slots):
            buffer_free(&crew.slots[i].encoded)
        free(crew.slots)
        # A helper's exception, if both the helper and the owner failed.
        memset(&left, 0, sizeof(Workspace))
        left.exception = crew.exception
        workspace_free(&left)
        return code

    cdef int _run_alone(self, Plan plan, void *job, int64_t n_parts, Worker *worker) noexcept nogil:
        cdef const uint8_t *encoded = NULL
        cdef int64_t i, n
        cdef int code = OK
        for i in range(n_parts):
            if plan.poll(worker):
                return INTERRUPTED
            n = self.encode_part(plan, job, i, worker, &encoded)
            code = worker.status.code if n == FAILED else self.add_part(plan, job, i, encoded, n, worker)
            if code != OK:
                return code
        return OK

    # helpers

    cdef void help(self, Plan plan, Worker *worker) noexcept nogil:
        cdef Crew *crew
        cdef bint found
        cdef int64_t i
        cdef int64_t n_waits = 0
        while not plan.poll(worker):
            found = False
            for i in range(self.n_crew):
                crew = _join(self, i)
                if crew == NULL:
                    continue
                # A signal handler that wants this crew's object would wait for its owner, and the owner waits for
                # helpers.
                worker.joined = True
                while not plan.poll(worker) and not plan.is_poll_due(worker) and _help_once(self, plan, crew, worker):
                    found = True
                worker.joined = False
                zc_add(&crew.n_helpers, -1)
            if found:
                n_waits = 0
                continue
            if zc_load(&self.n_open) == 0:
                return
            zc_back_off(n_waits)
            n_waits += 1


cdef int _lead(Crews self, Plan plan, Crew *crew, Worker *worker) noexcept nogil:
    cdef const uint8_t *encoded = NULL
    cdef Slot *slot
    cdef int64_t n
    cdef int64_t n_waits = 0
    cdef int code = OK
    while crew.n_added < crew.n_parts and code == OK:
        if plan.poll(worker):
            return INTERRUPTED
        if zc_load(&crew.failure):
            while zc_load(&crew.failure) != 2:
                if plan.is_cut_off():
                    return INTERRUPTED
                zc_back_off(n_waits)
                n_waits += 1
            worker.status = crew.status
            worker.work.exception, crew.exception = crew.exception, worker.work.exception
            return worker.status.code
        slot = &crew.slots[crew.n_added % crew.n_slots]
        if zc_load(&slot.ready):
            code = self.add_part(plan, crew.job, crew.n_added, slot.encoded.data, slot.n_bytes, worker)
            zc_store(&slot.ready, 0)
            zc_add(&crew.n_added, 1)
        elif zc_swap_if(&crew.n_begun, crew.n_added, crew.n_added + 1):
            n = self.encode_part(plan, crew.job, crew.n_added, worker, &encoded)
            code = (worker.status.code if n == FAILED else
                    self.add_part(plan, crew.job, crew.n_added, encoded, n, worker))
            zc_add(&crew.n_added, 1)
        elif not _help_once(self, plan, crew, worker):
            # Another thread encodes the part that is next in order.
            zc_back_off(n_waits)
            n_waits += 1
            continue
        n_waits = 0
    return code


cdef bint _help_once(Crews self, Plan plan, Crew *crew, Worker *worker) noexcept nogil:
    """Encode the next part into its slot; return False if none may be taken now."""
    cdef const uint8_t *encoded = NULL
    cdef Slot *slot
    cdef int64_t n
    cdef int64_t i = zc_load(&crew.n_begun)
    if i >= crew.n_parts or i >= zc_load(&crew.n_added) + crew.n_slots or zc_load(&crew.failure):
        return False
    if not zc_swap_if(&crew.n_begun, i, i + 1):
        return True
    slot = &crew.slots[i % crew.n_slots]
    n = self.encode_part(plan, crew.job, i, worker, &encoded)
    if n > 0:
        if buffer_reserve(&slot.encoded, n, &worker.status) == OK:
            memcpy(slot.encoded.data, encoded, n)
        else:
            n = FAILED
    if n == FAILED:
        if zc_swap_if(&crew.failure, 0, 1):
            crew.status = worker.status
            crew.exception, worker.work.exception = worker.work.exception, NULL
            zc_store(&crew.failure, 2)
        status_clear(&worker.status)
        return False
    slot.n_bytes = n
    zc_store(&slot.ready, 1)
    return True


# list of crews

cdef bint _show(Crews self, Crew *crew) noexcept nogil:
    """Let other threads help; return False if there are more owners than announced threads."""
    cdef int64_t i
    cdef bint shown = False
    section_enter(&self.guard)
    for i in range(self.n_crew):
        if self.crews[i] == NULL:
            self.crews[i] = crew
            shown = True
            break
    zc_store(&self.guard, 0)
    return shown


cdef void _hide(Crews self, Crew *crew) noexcept nogil:
    cdef int64_t i
    section_enter(&self.guard)
    for i in range(self.n_crew):
        if self.crews[i] == crew:
            self.crews[i] = NULL
    zc_store(&self.guard, 0)


cdef Crew *_join(Crews self, int64_t i) noexcept nogil:
    """Return the crew at a slot, which stays until `n_helpers` is counted down again, or NULL."""
    cdef Crew *crew
    section_enter(&self.guard)
    crew = self.crews[i]
    if crew != NULL:
        zc_add(&crew.n_helpers, 1)
    zc_store(&self.guard, 0)
    return crew
