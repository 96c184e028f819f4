"""Atomic integers and a wait with back-off, for nogil code."""
from libc.stdint cimport int64_t


cdef extern from "atomics.h" nogil:
    int64_t zc_load(const int64_t *p)
    void zc_store(int64_t *p, int64_t v)
    int64_t zc_add(int64_t *p, int64_t v)
    int zc_swap_if(int64_t *p, int64_t expected, int64_t desired)
    int64_t zc_this_thread()
    void zc_pause()
    void zc_back_off(int64_t n)
    int64_t zc_now_ns()
    int64_t zc_wall_ns()
