# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Reading arrays whose elements lie uncompressed in a file or in memory, at an offset and with strides.

Nothing is decoded, so a task needs no chunk. The array is cut into parts of some megabytes, and of each part only the
bytes that the selection needs are read. Runs of elements that have the same order in the caller's array and in the file
are read into place. Others are read into scratch memory, and a strided copy moves them. Small gaps are read as well,
because another system call costs as much.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy
from posix.unistd cimport close

from zcore.kernel.strided.copy cimport MAX_NDIM, Copy, copy_run, copy_simplify, copy_sort
from zcore.kernel.io.files cimport Content, buffer_reserve, content_at, object_read_at
from zcore.kernel.select.boxes cimport Boxes
from zcore.kernel.select.gather cimport Sides, piece_of
from zcore.kernel.select.grid cimport Span
from zcore.kernel.plan.plan cimport PlanOptions, Worker
from zcore.kernel.plan.read cimport ReadPlan
from zcore.kernel.status cimport FILE_CUT, OK, SHARD_CUT, STOPPED, fail
from zcore.kernel.select.open_array cimport OpenArray
from zcore.kernel.select.tasks cimport Layout

cdef enum:
    PART_NBYTES = 1 << 22      # of the file, spanned by a task
    POINTS_NBYTES = 1 << 16    # the same for selections by lists, which read all of a part
    MAX_GAP = 4096             # largest gap in bytes that is read along: a page, which the system reads anyway
    LONG_RUN = 1 << 14         # runs of so many bytes are read into place, however small the gaps between them
    MAX_SCRATCH = 1 << 23
    POLLED = 1024              # runs between two polls of signals


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
    source : int or bytes-like
        A descriptor, which the plan closes, or the bytes.
    offset : int
        Offset of the element (0, ..., 0) in the source.
    strides : tuple of int
        In bytes, one for each dimension. Every element must lie in the source.
    name : str
        Name of the object, for messages.
    """

    cdef Py_buffer buffer
    cdef bint has_buffer
    cdef Content content
    cdef int64_t offset
    cdef Layout placed
    cdef str name

    def __cinit__(self):
        self.has_buffer = False
        self.content.fd = -1
        self.content.data = NULL

    def __init__(self, OpenArray array not None, selection, elements=None, PlanOptions options=None, *, source,
                 int64_t offset, tuple strides not None, str name not None):
        cdef int64_t n_bytes
        cdef int d
        if isinstance(source, int):
            self.content.fd = source
        else:
            PyObject_GetBuffer(source, &self.buffer, PyBUF_SIMPLE)
            self.has_buffer = True
            self.content.data = <const uint8_t *>self.buffer.buf
            self.content.size = self.buffer.len
        n_bytes = POINTS_NBYTES if selection.groups and not isinstance(selection, Boxes) else PART_NBYTES
        ReadPlan.__init__(self, array.cut(parts_of(array.shape, strides, n_bytes)), selection, elements, options)
        assert len(strides) == self.ndim
        self.offset = offset
        self.name = name
        for d in range(self.ndim):
            self.placed.strides[d] = strides[d]

    def __dealloc__(self):
        if self.has_buffer:
            PyBuffer_Release(&self.buffer)
        elif self.content.fd >= 0:
            close(self.content.fd)

    def task(self, int64_t task):
        """Return a description of a task, see `Tasks.task`; its object is the only object of the array."""
        return (self.name, (0,) * self.ndim, *ReadPlan.task(self, task)[2:])

    cdef int run_task(self, int64_t task, Worker *worker) noexcept nogil:
        cdef Span spans[MAX_NDIM]
        cdef Copy spec
        cdef int64_t offset = self.offset
        cdef int d
        cdef int code
        self.spans_of(task, spans)
        for d in range(self.ndim):
            offset += spans[d].origin * self.placed.strides[d]
        if self.points is None:
            self.copy_spec(spans, &self.placed, False, &spec)
            return self._read(&spec, offset + self.item_offset + self.chunk_offset(spans, &self.placed),
                              self.data + self.data_offset(spans), worker)
        if self.points.boxes is not None:
            return self._read_pieces(spans, offset, worker)
        if buffer_reserve(&worker.batch, worker.layout.n_bytes, &worker.status) != OK:
            return worker.status.code
        spec.ndim = self.ndim
        spec.itemsize = self.opened.itemsize
        spec.swap = 0
        for d in range(self.ndim):
            spec.shape[d] = spans[d].valid
            spec.src_strides[d] = self.placed.strides[d]
            spec.dst_strides[d] = worker.layout.strides[d]
        code = self._read(&spec, offset, <char *>worker.batch.data, worker)
        if code == OK:
            self.move(spans, &worker.layout, False, <char *>worker.batch.data)
        return code

    cdef int _read_pieces(self, const Span *spans, int64_t offset, Worker *worker) noexcept nogil:
        """Read the boxes selected in a part that begins at `offset`, one by one, as nothing is decoded."""
        cdef int64_t chunk_offset, data_offset, i
        cdef Copy spec
        cdef Sides sides
        cdef int code
        self._describe(&self.placed, &sides)
        for i in range(spans[0].first, spans[0].first + spans[0].count):
            piece_of(self.points, i, spans, &sides, &spec, &chunk_offset, &data_offset)
            code = self._read(&spec, offset + self.item_offset + chunk_offset, self.data + data_offset, worker)
            if code != OK:
                return code
        return OK

    cdef int _read(self, Copy *spec, int64_t offset, char *dst, Worker *worker) noexcept nogil:
        """Read elements at `offset` of the source to `dst`."""
        cdef int64_t index[MAX_NDIM]
        cdef int64_t extent = spec.itemsize
        cdef int64_t n = 0
        cdef int n_outer
        cdef int d
        cdef bint in_place = spec.swap == 0
        cdef int code
        cdef Copy inner
        _run_upwards(spec, &offset, &dst)
        # Dimensions that could be merged stay separate: the gaps inside may be short enough to be read along.
        copy_sort(spec, True)
        n_outer = spec.ndim
        while n_outer > 0 and in_place and spec.src_strides[n_outer - 1] == extent == spec.dst_strides[n_outer - 1]:
            n_outer -= 1
            extent *= spec.shape[n_outer]
        if n_outer > 0 and extent < LONG_RUN and _reach(spec, n_outer - 1, extent) >= 0:
            in_place = False
        if not in_place:
            n_outer = spec.ndim
            extent = spec.itemsize
            while n_outer > 0 and _reach(spec, n_outer - 1, extent) >= 0:
                n_outer -= 1
                extent = _reach(spec, n_outer, extent)
            inner.ndim = spec.ndim - n_outer
            inner.itemsize = spec.itemsize
            inner.swap = spec.swap
            for d in range(inner.ndim):
                inner.shape[d] = spec.shape[n_outer + d]
                inner.src_strides[d] = spec.src_strides[n_outer + d]
                inner.dst_strides[d] = spec.dst_strides[n_outer + d]
            copy_simplify(&inner)
        for d in range(n_outer):
            index[d] = 0
        while True:
            code = self._bring(offset, extent, dst, worker) if in_place else self._move(&inner, offset, extent, dst,
                                                                                        worker)
            if code != OK:
                return code
            d = n_outer - 1
            while d >= 0:
                index[d] += 1
                if index[d] < spec.shape[d]:
                    offset += spec.src_strides[d]
                    dst += spec.dst_strides[d]
                    break
                offset -= (spec.shape[d] - 1) * spec.src_strides[d]
                dst -= (spec.shape[d] - 1) * spec.dst_strides[d]
                index[d] = 0
                d -= 1
            if d < 0:
                return OK
            n += 1
            if n % POLLED == 0 and self.poll(worker):
                return STOPPED

    cdef int _bring(self, int64_t offset, int64_t n_bytes, char *dst, Worker *worker) noexcept nogil:
        """Read bytes directly to `dst`."""
        if self.content.data != NULL:
            if offset < 0 or n_bytes > self.content.size - offset:
                return fail(&worker.status, FILE_CUT, offset, offset + n_bytes, self.content.size)
            memcpy(dst, self.content.data + offset, n_bytes)
            return OK
        return self._checked(object_read_at(self.content.fd, offset, n_bytes, <uint8_t *>dst, &worker.status), worker)

    cdef int _move(self, const Copy *spec, int64_t offset, int64_t n_bytes, char *dst, Worker *worker) noexcept nogil:
        """Read bytes that have gaps, or another order than in `dst`, and move the elements."""
        cdef const uint8_t *data
        if self.content.data != NULL and (offset < 0 or n_bytes > self.content.size - offset):
            return fail(&worker.status, FILE_CUT, offset, offset + n_bytes, self.content.size)
        data = content_at(&self.content, offset, n_bytes, &worker.encoded, &worker.status)
        if data == NULL:
            return self._checked(worker.status.code, worker)
        copy_run(spec, <const char *>data, dst)
        return OK

    cdef int _checked(self, int code, Worker *worker) noexcept nogil:
        if code == SHARD_CUT:
            worker.status.code = code = FILE_CUT
        return code


cdef void _run_upwards(Copy *spec, int64_t *offset, char **dst) noexcept nogil:
    """Reverse the dimensions with negative strides in the source."""
    cdef int d
    for d in range(spec.ndim):
        if spec.src_strides[d] < 0:
            offset[0] += (spec.shape[d] - 1) * spec.src_strides[d]
            dst[0] += (spec.shape[d] - 1) * spec.dst_strides[d]
            spec.src_strides[d], spec.dst_strides[d] = -spec.src_strides[d], -spec.dst_strides[d]


cdef int64_t _reach(const Copy *spec, int d, int64_t extent) noexcept nogil:
    """Return the bytes that a dimension of runs of `extent` bytes spans; -1 if the runs are better read one by one."""
    cdef int64_t reach
    if spec.src_strides[d] - extent > MAX_GAP:
        return -1
    reach = (spec.shape[d] - 1) * spec.src_strides[d] + extent
    return reach if reach <= MAX_SCRATCH else -1
