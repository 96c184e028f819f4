"""Chunks of one dimension with different lengths: runs of equal chunks, found by bisection.

A dimension with chunks of 2, 2, 2 and 5 elements has two runs, and an entry that ends them::

    edge  2  5  -              elements of a chunk
    origin  0  6  11           first element of the run
    first   0  3  4            first chunk of the run
"""
from libc.stdint cimport int64_t


cdef struct Run:               # consecutive chunks of one length
    int64_t edge               # elements of a chunk, >= 1
    int64_t origin             # first element
    int64_t first              # first chunk


# Returns the run that holds an element, or with is_chunk a chunk. It must lie in the n runs.
cdef int64_t run_of(const Run *runs, int64_t n, int64_t i, bint is_chunk) noexcept nogil


cdef class Edges:
    cdef Run *table            # n_runs, and the entry that ends them
    cdef readonly int64_t n_runs
    cdef readonly int64_t longest
