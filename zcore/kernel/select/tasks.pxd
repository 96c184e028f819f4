"""The tasks of one selection: their objects, the selected elements of these, and their layout.

Tasks are numbered in C order of the objects that the selection touches, so spans and key are computed from the number
of a task.
"""
from libc.stdint cimport int64_t

from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, Runs
from zcore.kernel.select.grid cimport Axis, Span
from zcore.kernel.select.gather cimport Sides
from zcore.kernel.select.open_array cimport OpenArray, Opened
from zcore.kernel.select.points cimport Points


cdef enum:
    MIN_RUN_NBYTES = 64        # shorter runs move faster by a blocked copy of the whole chunk

cdef struct Selected:          # a box, see `Box`; in a dimension of a group only the count is used
    int64_t starts[MAX_NDIM]
    int64_t steps[MAX_NDIM]
    int64_t counts[MAX_NDIM]

cdef struct Layout:            # layout of the elements of a chunk in its decoded bytes
    int64_t n_items
    int64_t n_bytes
    int64_t lengths[MAX_NDIM]
    int64_t strides[MAX_NDIM]
    bint in_place              # a whole chunk has the same layout in the caller's array


cdef class Tasks:
    cdef const Opened *opened  # the array, held
    cdef readonly int ndim
    cdef readonly int64_t n_tasks
    cdef readonly int64_t task_nbytes      # maximum bytes that a task decodes or encodes
    cdef int64_t n_parts       # tasks per object, if threads share it; `n_tasks` counts all
    cdef int64_t n_chunks      # touched chunks
    cdef Axis axes[MAX_NDIM]   # of the chunks
    cdef Axis *objects         # of the stored objects: the same axes, or those of shards of many chunks
    cdef Points points         # None: the selection is a box
    cdef Layout layout         # of a chunk's bytes: of every chunk, or of the longest edges
    # the caller's elements
    cdef object array
    cdef char *data            # NULL: the plan moves no elements itself
    cdef object items          # moves elements of varying length, see `zcore.codecs.items`; else None
    cdef bint has_elements     # there are elements to move
    cdef int64_t data_strides[MAX_NDIM]    # for boxes, by dimensions of a box
    cdef int64_t box_stride    # from one box to the next
    cdef int64_t item_offset   # offset in each element of the bytes that are moved: a field, or all
    cdef int64_t item_nbytes

    # Sets the selected elements, dimension by dimension: OK, NO_MEMORY, or -1 - d if they do not fit into dimension d.
    # `points` must be set before.
    cdef int project(self, const Opened *opened, const Selected *selected) noexcept nogil
    # The same for another box of the same array, with the caller's elements at `data`.
    cdef int project_anew(self, const Selected *selected, char *data, const int64_t *strides) noexcept nogil
    # The same from Python values, with the caller's elements: an ndarray, `Items` or None.
    cdef int select(self, OpenArray array, selection, elements, part) except -1
    cdef void measure(self, const int64_t *lengths, Layout *layout) noexcept nogil
    cdef void spans_of(self, int64_t object, Span *spans) noexcept nogil
    # Returns the object that a task is, or is a part of.
    cdef int64_t object_of(self, int64_t task) noexcept nogil
    cdef void measure_chunk(self, const Span *spans, Layout *layout) noexcept nogil
    cdef int64_t chunks_of(self, const Axis *axes, const Span *object, int64_t *first, int64_t *count) noexcept nogil
    cdef int64_t n_chunks_of(self, const Axis *axes, const Span *object) noexcept nogil
    cdef int64_t chunk_of(self, const Axis *axes, const int *order, const Span *object, const int64_t *first,
                          const int64_t *count, int64_t i, Span *spans) noexcept nogil
    cdef int key_of(self, const Span *spans, char *key) noexcept nogil
    cdef bint is_covered(self, const Span *spans) noexcept nogil
    cdef bint is_whole(self, const Span *spans) noexcept nogil
    cdef int64_t data_offset(self, const Span *spans) noexcept nogil
    cdef void copy_spec(self, const Span *spans, const Layout *layout, bint to_chunk, Copy *spec) noexcept nogil
    # Moves the selected elements from the decoded bytes of a chunk to the caller's array, or back. fill_in sets them to
    # the fill value in the caller's array.
    cdef void move(self, const Span *spans, const Layout *layout, bint to_chunk, char *chunk) noexcept nogil
    cdef void fill_in(self, const Span *spans) noexcept nogil
    cdef void _describe(self, const Layout *layout, Sides *sides) noexcept nogil
    # The selection of an object or a chunk, and its place in the caller's array: slices or arrays, see `task`.
    cdef tuple lengths_of(self, const Span *spans)
    cdef tuple selections(self, const Axis *axes, const Span *spans)
    cdef bint runs_of(self, const Span *spans, Runs *runs) noexcept nogil
    cdef int64_t chunk_offset(self, const Span *spans, const Layout *layout) noexcept nogil
