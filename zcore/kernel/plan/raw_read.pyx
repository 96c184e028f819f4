# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading arrays whose elements lie uncompressed in a file or in memory, at an offset and with strides.

Nothing is decoded, so a task needs no chunk. The array is cut into parts of some megabytes, and of each part only the
bytes that the selection needs are read (`zcore.kernel.plan.fetch`).
"""
cimport cython
from libc.stdint cimport int64_t
from posix.unistd cimport close

from zcore.kernel.strided.copy cimport MAX_NDIM, Copy
from zcore.kernel.io.files cimport Content, buffer_reserve
from zcore.kernel.memory cimport Bytes
from zcore.kernel.select.points cimport Boxes
from zcore.kernel.select.gather cimport Sides, piece_of
from zcore.kernel.select.grid cimport Span
from zcore.kernel.plan.plan cimport PlanOptions, Worker
from zcore.kernel.plan.fetch cimport copy_raw
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.status cimport OK
from zcore.kernel.select.open_array cimport OpenArray
from zcore.kernel.select.tasks cimport Layout

cdef enum:
    PART_NBYTES = 1 << 22      # of the file, spanned by a task
    POINTS_NBYTES = 1 << 16    # the same for selections by lists, which read all of a part


def parts_of(shape, strides, int64_t n_bytes):
    """Return the shape of parts that span about `n_bytes` of a file, and are long along its densest dimensions.

    >>> parts_of((100, 1000, 1000), (8000000, 8000, 8), 1 << 22)
    (1, 524, 1000)
    """
    lengths = [1] * len(shape)
    for d in sorted(range(len(shape)), key=lambda d: abs(strides[d])):
        stride = max(1, abs(strides[d]))
        lengths[d] = max(1, min(shape[d], n_bytes // stride))
        if lengths[d] < shape[d]:
            break
    return tuple(lengths)


@cython.final
cdef class LayoutReadPlan(ReadPlan):
    """A `ReadPlan` of an array whose elements lie at an offset and with strides.

    Parameters
    ----------
    array, selection, elements, options
        As for `Plan`. The chunk shape and the program of the array are not used.
    source : callable
        Returns a new descriptor, which the plan closes, or the bytes. It is called here, so no signal comes between.
    offset : int
        Offset of the element (0, ..., 0) in the source.
    strides : tuple of int
        In bytes, one for each dimension. Every element must lie in the source.
    name : str
        Name of the object, for messages.
    """

    cdef Bytes source
    cdef Content content
    cdef int64_t offset
    cdef Layout placed
    cdef str name

    def __cinit__(self):
        self.content.fd = -1
        self.content.data = NULL

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None, *, source,
                 int64_t offset, tuple strides not None, str name not None):
        cdef int64_t n_bytes
        cdef int d
        opened = source()
        if isinstance(opened, int):
            self.content.fd = opened
        else:
            self.source = Bytes(opened)
            self.content.data = self.source.data
            self.content.size = self.source.n
        n_bytes = POINTS_NBYTES if selection.groups and not isinstance(selection, Boxes) else PART_NBYTES
        ReadPlan.__init__(self, array.cut(parts_of(array.shape, strides, n_bytes)), selection, elements, options)
        assert len(strides) == self.ndim
        self.offset = offset
        self.name = name
        for d in range(self.ndim):
            self.placed.strides[d] = strides[d]

    def __dealloc__(self):
        if self.content.fd >= 0:
            close(self.content.fd)

    def task(self, int64_t task):
        """Return a description of a task, see `Tasks.task`; its object is the only object of the array."""
        return (self.name, (0,) * self.ndim, *ReadPlan.task(self, task)[2:])

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef Copy spec
        cdef int64_t offset = self.offset
        cdef int d, code
        self.spans_of(task, spans)
        for d in range(self.ndim):
            offset += spans[d].origin * self.placed.strides[d]
        if self.points is None:
            self.copy_spec(spans, &self.placed, False, &spec)
            offset += self.item_offset + self.chunk_offset(spans, &self.placed)
            return copy_raw(self, &self.content, &spec, offset, self.data + self.data_offset(spans), worker)
        if self.points.boxes is not None:
            return _read_pieces(self, spans, offset, worker)
        if buffer_reserve(&worker.batch, worker.layout.n_bytes, &worker.status) != OK:
            return worker.status.code
        spec.ndim = self.ndim
        spec.itemsize = self.opened.itemsize
        spec.swap = 0
        for d in range(self.ndim):
            spec.shape[d] = spans[d].valid
            spec.src_strides[d] = self.placed.strides[d]
            spec.dst_strides[d] = worker.layout.strides[d]
        code = copy_raw(self, &self.content, &spec, offset, <char *>worker.batch.data, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.batch.data)
        return code


cdef int _read_pieces(LayoutReadPlan plan, const Span *spans, int64_t offset, Worker *worker) noexcept nogil:
    """Read the boxes selected in a part that begins at `offset`, one by one, as nothing is decoded."""
    cdef int64_t chunk_offset, data_offset, i
    cdef Copy spec
    cdef Sides sides
    cdef int code
    plan._describe(&plan.placed, &sides)
    for i in range(spans[0].first, spans[0].first + spans[0].count):
        piece_of(plan.points, i, spans, &sides, &spec, &chunk_offset, &data_offset)
        chunk_offset += offset + plan.item_offset
        code = copy_raw(plan, &plan.content, &spec, chunk_offset, plan.data + data_offset, worker)
        if code != OK:
            return code
    return OK
