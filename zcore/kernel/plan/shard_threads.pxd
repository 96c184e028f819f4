"""Threads that share the encoding of one object: parts in any order, added in the right order."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.io.files cimport Buffer
from zcore.kernel.plan.plan cimport Plan, Worker
from zcore.kernel.status cimport Status


cdef enum:
    SKIPPED = -4               # instead of a size, beside FILLED and FAILED: the part stays as it is

cdef struct Slot:              # a part that is encoded and not yet added
    int64_t ready
    int64_t n_bytes
    Buffer encoded

cdef struct Crew:              # an object whose parts are being encoded, on its owner's stack
    void *job
    int64_t n_parts
    int64_t n_slots
    int64_t n_begun
    int64_t n_added
    int64_t n_helpers          # threads beside the owner that use it
    int64_t failure            # 0; 1 while `status` is being filled; then 2
    Status status
    void *exception            # exception of a codec in Python, if that failed
    Slot *slots


cdef class Crews:
    cdef int64_t n_crew        # maximum threads that run the plan
    cdef Crew **crews          # slots for as many, NULL for a free one
    cdef int64_t guard         # spin lock of the slots
    cdef int64_t n_open        # tasks in progress
    cdef bint parts_are_encoded    # False: parts without any codec are only copied, so helpers would not help

    # Sets another number of threads that run the plan: OK or NO_MEMORY.
    cdef int admit(self, int n_threads) noexcept nogil
    # Begin and end a task. A thread that looks between the taking of a task and its beginning may leave without
    # helping.
    cdef void begin(self) noexcept nogil
    cdef void end(self) noexcept nogil
    # Encodes parts of other threads' objects until these are done.
    cdef void help(self, Plan plan, Worker *worker) noexcept nogil

    # Encodes the i-th part of a job, on any thread: returns its size, FILLED, SKIPPED or FAILED.
    cdef int64_t encode_part(self, Plan plan, void *job, int64_t i, Worker *worker,
                             const uint8_t **encoded) noexcept nogil
    # Adds the i-th part, on the owner's thread and in order: OK or a code.
    cdef int add_part(self, Plan plan, void *job, int64_t i, const uint8_t *encoded, int64_t n_bytes,
                      Worker *worker) noexcept nogil
    # Encodes and adds all parts of a job. The calling thread is its owner: OK or a code.
    cdef int run_parts(self, Plan plan, void *job, int64_t n_parts, Worker *worker) noexcept nogil
    cdef int _run_alone(self, Plan plan, void *job, int64_t n_parts, Worker *worker) noexcept nogil
