"""Dimensions that are selected by lists of indices: which points lie in which chunks.

Dimensions whose lists are paired, index by index, are a group with a point per index; a dimension with a list of its
own is a group of one. The points of a group are sorted by chunk once, and then found by the chunk's number::

    index     7 1 5 1 6        chunks of 4 elements
    order     1 3 0 2 4        points as chunks hold them
    bounds    0 2 5            of the run of each touched chunk

If objects are shards, a dimension is cut several times: into objects, into their chunks, and so on for nested shards.
Points are then sorted by the coarsest cut first, and each cut has its own `bounds`.

A mask that is true for many elements stays a mask, because indices would take many times the memory. The points of a
row, which has a segment in each chunk, are consecutive; so the number of points before each segment is enough::

    mask      1 0 1 1 | 0 0 0 1        rows of two segments
              0 0 0 0 | 1 1 0 0
    ranks     0         3
              4         4         6

For boxes, see `Boxes`, a point is a piece: the part of one box in one chunk. Its index is that of its lowest element.
"""
from libc.stdint cimport int64_t, uint32_t, uint8_t

from zcore.kernel.select.grid cimport Axis, Run, Span
from zcore.kernel.status cimport MAX_SHARD_LEVELS
from zcore.kernel.strided.copy cimport MAX_NDIM


cdef enum:
    MAX_CUTS = MAX_SHARD_LEVELS + 1        # into objects, and into the chunks of each level

cdef struct Group:
    int n_dims
    int dims[MAX_NDIM]         # ascending; the first one leads
    int64_t n                  # points
    int64_t *order             # NULL: as given
    uint32_t *within           # of each point in this order, its element in its chunk, in C order; NULL: not noted
    int64_t n_runs[MAX_CUTS]   # touched chunks; for several dimensions: touched combinations
    int64_t *bounds[MAX_CUTS]  # n_runs + 1 each
    const uint8_t *mask        # of the dimensions, in C order; NULL: indices
    int64_t mask_shape[MAX_NDIM]
    int64_t n_segments         # per row
    int64_t *ranks             # points before each segment of each row, and in all
    int64_t *samples           # an element of each touched chunk of the last cut, an index per dimension

cdef struct Cut:               # of a dimension into chunks
    int64_t chunk
    const Run *runs            # NULL: all have one length
    int64_t n_runs


cdef struct Side:              # one dimension of the array in one box
    int64_t low                # lowest element
    int64_t step               # as given: negative if the box runs downwards
    int64_t count
    int64_t axis               # the box's dimension for it; -1 if an integer indexes it


cdef class Boxes:
    cdef readonly int64_t n
    cdef readonly tuple shape
    cdef int ndim              # of the array
    cdef object held           # an array, whose memory these are:
    cdef Side *sides           # for each box, one per dimension
    cdef tuple highest         # largest selected index of all boxes in each dimension

    # Returns how many elements of a dimension a box selects from `low` to `high`, the lowest of them in `first`, and
    # its index in the box in `out`. There must be at least one.
    cdef int64_t part_of(self, int64_t box, int d, int64_t low, int64_t high, int64_t *first,
                         int64_t *out) noexcept nogil


cdef class Points:
    cdef int ndim
    cdef int n_groups
    cdef Group *groups
    cdef int group_of[MAX_NDIM]            # -1: a slice
    cdef const int64_t *index_of[MAX_NDIM]
    cdef int64_t length_of[MAX_NDIM]
    cdef int n_cuts
    cdef Cut cuts[MAX_CUTS][MAX_NDIM]      # the first one into objects, the last one into chunks that are no shards
    # Keep alive what the pointers lead to: index vectors and masks (by dimension); what groups point to, and the boxes
    # of pieces; edges.
    cdef dict vectors
    cdef list held
    cdef tuple edges
    cdef Boxes boxes           # None: the points are elements
    cdef const int64_t *box_of  # of each piece

    cdef void set_axis(self, int d, int cut, Axis *axis) noexcept nogil
    # The touched chunks of a cut inside one chunk of a coarser cut, as numbers for `chunk_span`: the first, and how
    # many. For a dimension that is not the first of its group, one.
    cdef void chunks_of(self, int d, int cut, const Span *object, int64_t *first, int64_t *count) noexcept nogil
    cdef void chunk_span(self, int d, int cut, int64_t k, Span *spans) noexcept nogil
    cdef int64_t chunk_at(self, int d, int64_t index) noexcept nogil
    # Returns the end of the chunk of the last cut that holds an element, along a dimension.
    cdef int64_t chunk_end(self, int d, int64_t index) noexcept nogil
    cdef bint covers(self, const Span *spans) noexcept nogil
    cdef object mesh(self, const Axis *axes, const Span *spans)
