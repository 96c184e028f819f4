"""Dimensions that are selected by lists of indices: which chunks hold which points.

Dimensions whose lists go together, index by index, are a group with a point for each index; a dimension with a list of
its own is a group of one. What a group selects is sorted by chunks once, and then known by the chunk's number::

    index     7 1 5 1 6        chunks of 4 elements
    order     1 3 0 2 4        points as chunks hold them
    bounds    0 2 5            of the run of each touched chunk

Where objects are shards, a dimension is cut several times: into objects, into the chunks of these, and so on where they
are shards themselves. Points are then sorted by the coarsest cut first, and each cut has `bounds` of its own.
"""
from libc.stdint cimport int64_t

from zcore.kernel.copy cimport MAX_NDIM
from zcore.kernel.edges cimport Run
from zcore.kernel.grid cimport Axis, Span
from zcore.kernel.status cimport MAX_SHARD_LEVELS

cdef enum:
    MAX_CUTS = MAX_SHARD_LEVELS + 1        # into objects, and of those into the chunks of each level

cdef struct Group:
    int n_dims
    int dims[MAX_NDIM]         # ascending; the first one leads
    int64_t n                  # points
    int64_t *order             # NULL: as they are
    int64_t n_runs[MAX_CUTS]   # touched chunks; where several dimensions are cut: combinations of these
    int64_t *bounds[MAX_CUTS]  # n_runs + 1 each

cdef struct Cut:               # of a dimension into chunks
    int64_t chunk
    const Run *runs            # NULL: all have one length
    int64_t n_runs


cdef class Points:
    cdef int ndim
    cdef int n_groups
    cdef Group *groups
    cdef int group_of[MAX_NDIM]            # -1: a slice
    cdef const int64_t *index_of[MAX_NDIM]
    cdef int64_t length_of[MAX_NDIM]
    cdef int n_cuts
    cdef Cut cuts[MAX_CUTS][MAX_NDIM]      # the first one into objects, the last one into chunks that are no shards
    cdef dict vectors          # of each dimension of a group; and the edges: what these point to
    cdef tuple edges

    cdef int _add(self, int g, dims, vectors) except -1
    cdef int _sort(self, Group *group) except -1
    cdef int64_t _ratio(self, int cut, int d) noexcept nogil
    cdef bint _lies_in(self, const Group *group, int64_t point, const int64_t *origin,
                       const int64_t *end) noexcept nogil
    cdef int64_t _key(self, const Group *group, int64_t point, const int64_t *lowest, const int64_t *extent,
                      int64_t *origin, int64_t *end) noexcept nogil
    cdef void set_axis(self, int d, int cut, Axis *axis) noexcept nogil
    cdef void spans_of(self, const Axis *objects, int64_t task, Span *spans) noexcept nogil
    # The touched chunks of a cut in one of a coarser cut, as numbers for `chunk_span`: the first one, and how many; of
    # the dimension of a group that does not lead, one.
    cdef void chunks_of(self, int d, int cut, const Span *object, int64_t *first, int64_t *count) noexcept nogil
    cdef void chunk_span(self, int d, int cut, int64_t k, Span *spans) noexcept nogil
    cdef void _group_span(self, const Group *group, int cut, int64_t k, Span *spans) noexcept nogil
    cdef bint covers(self, const Span *spans) noexcept nogil
    cdef bint _covers_group(self, const Group *group, const Span *spans) noexcept nogil
    cdef object mesh(self, const Axis *axes, const Span *spans)
