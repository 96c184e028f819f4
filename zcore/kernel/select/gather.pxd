"""Elements at points, moved between a chunk and the caller's array."""
from libc.stdint cimport int64_t, uint8_t

from zcore.kernel.strided.copy cimport Copy
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.select.points cimport Points


cdef struct Sides:             # where the elements of one chunk lie on both sides, distances in bytes
    char *chunk
    const int64_t *chunk_strides
    char *data                 # the caller's
    const int64_t *data_strides    # of the dimensions of the array; of boxes, of their own dimensions
    int64_t box_stride         # from one box to the next
    const Axis *axes
    int64_t itemsize
    int64_t swap
    bint to_chunk
    const char *value          # NULL, or what the caller's elements get instead of those of the chunk


cdef void move_points(Points points, const Span *spans, const Sides *sides) noexcept nogil
# Describes the copy of the i-th piece of boxes, as they are sorted, out of its chunk, or out of nothing where there is
# a value instead; with the offsets of both sides, in bytes.
cdef void piece_of(Points points, int64_t i, const Span *spans, const Sides *sides, Copy *spec, int64_t *chunk_offset,
                   int64_t *data_offset) noexcept nogil
# Marks the blocks of a chunk in which selected elements lie, or may lie; how many there are, all if it takes too long
# to tell. `needed` has a flag for each of the `n_blocks`, none of which is set.
cdef int64_t mark_blocks(Points points, const Span *spans, const Sides *sides, int64_t blocksize, int64_t n_blocks,
                         uint8_t *needed) noexcept nogil
