"""Elements at points, moved between a chunk and the caller's array."""
from libc.stdint cimport int64_t

from zcore.kernel.strided.copy cimport Copy
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.select.points cimport Points


cdef struct Sides:             # layout of the elements of one chunk on both sides, in bytes
    char *chunk
    const int64_t *chunk_strides
    char *data                 # of the caller
    const int64_t *data_strides    # by dimensions of the array; for boxes, by dimensions of a box
    int64_t box_stride         # from one box to the next
    const Axis *axes
    int64_t itemsize
    int64_t swap
    bint to_chunk
    const char *value          # NULL, or the value to set instead of copying elements of the chunk


cdef void move_points(Points points, const Span *spans, const Sides *sides) noexcept nogil
# Describes the copy of the i-th piece of boxes (in sorted order) from its chunk, with the offsets on both sides in
# bytes. If there is a value instead, the source is not used.
cdef void piece_of(Points points, int64_t i, const Span *spans, const Sides *sides, Copy *spec, int64_t *chunk_offset,
                   int64_t *data_offset) noexcept nogil
# The same for the elements of one point, or of one piece, if a chunk holds no more of them; else returns False.
cdef bint single_part(Points points, const Span *spans, const Sides *sides, Copy *spec, int64_t *chunk_offset,
                      int64_t *data_offset) noexcept nogil
