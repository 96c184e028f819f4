# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The tasks of a selection: objects, keys and layouts are computed from the number of a task.

Compiled because every task of a read or write needs them. Nothing is stored per task, however many there are.
"""
from zcore import errors

cimport numpy as cnp
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from zcore.kernel.strided.copy cimport copy_run, copy_simplify, fill_run, runs_init
from zcore.kernel.select.grid cimport axis_free, axis_init, axis_init_runs, axis_span
from zcore.kernel.select.gather cimport move_points
from zcore.kernel.select.open_array cimport MAX_DIGITS, MAX_KEY, opened_hold, opened_release
from zcore.kernel.status cimport NO_MEMORY, OK

cnp.import_array()


cdef class Tasks:
    """The tasks of one selection, one stored object each; for the parameters see `Plan`."""

    def __cinit__(self):
        self.opened = NULL
        self.data = NULL
        self.objects = self.axes

    def __dealloc__(self):
        _free_axes(self)
        if self.objects != self.axes:
            free(self.objects)
        opened_release(self.opened)

    # set from the arguments of a plan

    cdef int project(self, const Opened *opened, const Selected *selected) noexcept nogil:
        cdef int d, code
        if self.opened == NULL:
            self.opened = opened_hold(opened)
            self.ndim = opened.ndim
        self.n_tasks = 1
        self.n_parts = 1
        self.n_chunks = 1
        self.task_nbytes = opened.itemsize
        if opened.n_levels and self.objects == self.axes:
            self.objects = <Axis *>calloc(MAX_NDIM, sizeof(Axis))
            if self.objects == NULL:
                self.objects = self.axes
                return NO_MEMORY
        for d in range(self.ndim):
            if self.points is not None and self.points.group_of[d] >= 0:
                self.points.set_axis(d, opened.n_levels, &self.axes[d])
                self.points.set_axis(d, 0, &self.objects[d])
            else:
                code = _set_axis(self, d, selected)
                if code != OK:
                    return code
            # No overflow: the metadata checks have bounded all these products.
            self.n_chunks *= self.axes[d].n_chunks
            self.n_tasks *= self.objects[d].n_chunks
            self.task_nbytes *= self.objects[d].chunk
        return OK

    cdef int select(self, OpenArray array, selection, elements, part) except -1:
        cdef Selected selected
        cdef const Opened *opened = array.opened
        cdef tuple starts = selection.starts
        cdef tuple steps = selection.steps
        cdef tuple counts = selection.counts
        cdef int code, d
        groups = selection.groups
        if not len(starts) == len(steps) == len(counts) == opened.ndim:
            raise ValueError(f"the selection has {len(starts)} dimensions, the array {opened.ndim}")
        for d in range(opened.ndim):
            selected.counts[d] = counts[d]
            selected.starts[d] = starts[d]
            selected.steps[d] = steps[d]
        if groups:
            self.points = Points(array.shape, (*array.shard_shapes, array.chunk_shape), groups, array.edges)
        code = self.project(opened, &selected)
        if code == NO_MEMORY:
            raise MemoryError
        if code < 0:
            d = -1 - code
            raise errors.SelectionError(f"selection {starts[d]}:{steps[d]}:{counts[d]} does not fit dimension {d} of "
                                        f"{array.shape}", dimension=d)
        self.item_offset, self.item_nbytes = (0, opened.itemsize) if part is None else part
        assert part is None or (opened.swap == 0 and 0 <= self.item_offset <= opened.itemsize - self.item_nbytes)
        if isinstance(elements, cnp.ndarray):
            _set_array(self, elements)
            self.has_elements = True
        elif elements is not None:
            self.items = elements
            self.has_elements = elements.has_elements
        self.measure(self.opened.chunk_shape, &self.layout)
        return 0

    cdef int project_anew(self, const Selected *selected, char *data, const int64_t *strides) noexcept nogil:
        cdef int code, d
        _free_axes(self)
        code = self.project(self.opened, selected)
        self.data = data
        self.has_elements = True
        for d in range(self.ndim):
            self.data_strides[d] = strides[d]
        self.measure(self.opened.chunk_shape, &self.layout)
        return code

    cdef void measure(self, const int64_t *lengths, Layout *layout) noexcept nogil:
        """Compute the layout of the elements in a chunk of these lengths."""
        cdef int i = self.ndim - 1
        cdef int d
        layout.n_items = 1
        layout.in_place = self.opened.swap == 0 and self.item_nbytes == self.opened.itemsize
        while i >= 0:
            d = self.opened.order[i]
            layout.lengths[d] = lengths[d]
            layout.strides[d] = layout.n_items * self.opened.itemsize
            if lengths[d] > 1 and self.data_strides[d] != layout.strides[d]:
                layout.in_place = False
            layout.n_items *= lengths[d]
            i -= 1
        layout.n_bytes = layout.n_items * self.opened.itemsize

    # geometry

    cdef int64_t object_of(self, int64_t task) noexcept nogil:
        return task // self.n_parts

    cdef void spans_of(self, int64_t object, Span *spans) noexcept nogil:
        """Set the part of the selection that lies in an object."""
        cdef int d = self.ndim - 1
        cdef int64_t rest
        while d >= 0:
            rest = object // self.objects[d].n_chunks
            _set_span(self, self.objects, d, object - rest * self.objects[d].n_chunks, spans)
            object = rest
            d -= 1

    cdef void measure_chunk(self, const Span *spans, Layout *layout) noexcept nogil:
        """Compute the layout of the elements in a task's chunk, if it is not known yet."""
        cdef int64_t lengths[MAX_NDIM]
        cdef int d
        if self.opened.is_irregular:
            for d in range(self.ndim):
                lengths[d] = spans[d].length
            self.measure(lengths, layout)

    cdef int64_t chunks_of(self, const Axis *axes, const Span *object, int64_t *first, int64_t *count) noexcept nogil:
        """Set the touched chunks of an object, as positions on `axes`; return their number."""
        cdef const Axis *axis
        cdef int64_t low
        cdef int64_t n = 1
        cdef int d
        for d in range(self.ndim):
            axis = &axes[d]
            low = object[d].origin + object[d].start
            if self.points is not None and self.points.group_of[d] >= 0:
                self.points.chunks_of(d, axis.cut, &object[d], &first[d], &count[d])
            elif axis.step >= axis.chunk:
                first[d] = (low - axis.start) // axis.step
                count[d] = object[d].count
            else:
                first[d] = low // axis.chunk - axis.first_chunk
                count[d] = (low + (object[d].count - 1) * axis.step) // axis.chunk - low // axis.chunk + 1
            n *= count[d]
        return n

    cdef int64_t n_chunks_of(self, const Axis *axes, const Span *object) noexcept nogil:
        """Return how many chunks an object is cut into."""
        cdef int64_t n = 1
        cdef int d
        for d in range(self.ndim):
            n *= object[d].length // axes[d].chunk
        return n

    cdef int64_t chunk_of(self, const Axis *axes, const int *order, const Span *object, const int64_t *first,
                          const int64_t *count, int64_t i, Span *spans) noexcept nogil:
        """Set the spans of the i-th chunk found by `chunks_of`, and return its position in the object.

        Positions count in C order, or in the order of dimensions in `order` if it is not NULL.
        """
        cdef int d = self.ndim - 1
        cdef int k = d
        cdef int64_t rest
        cdef int64_t stride = 1
        cdef int64_t position = 0
        while d >= 0:
            rest = i // count[d]
            _set_span(self, axes, d, first[d] + i - rest * count[d], spans)
            i = rest
            d -= 1
        while k >= 0:
            d = k if order == NULL else order[k]
            position += (spans[d].chunk - object[d].origin // axes[d].chunk) * stride
            stride *= object[d].length // axes[d].chunk
            k -= 1
        return position

    cdef int key_of(self, const Span *spans, char *key) noexcept nogil:
        """Write the key of a task's chunk, with a final zero; return its length. See `zcore.model.chunk_keys`."""
        cdef char digits[MAX_DIGITS]
        cdef int n = self.opened.n_head
        cdef int n_digits, d
        cdef int64_t number
        memcpy(key, self.opened.head, n)
        for d in range(self.ndim):
            if d:
                memcpy(key + n, self.opened.separator, self.opened.n_separator)
                n += self.opened.n_separator
            number = spans[d].chunk
            n_digits = 0
            while True:
                digits[n_digits] = c'0' + <char>(number % 10)
                n_digits += 1
                number //= 10
                if number == 0:
                    break
            while n_digits:
                n_digits -= 1
                key[n] = digits[n_digits]
                n += 1
        memcpy(key + n, self.opened.tail, self.opened.n_tail + 1)
        return n + self.opened.n_tail

    cdef bint is_covered(self, const Span *spans) noexcept nogil:
        """Whether the selection covers all elements of an object that are inside the array."""
        cdef int d
        if self.item_nbytes != self.opened.itemsize:
            return False
        if self.points is not None:
            return self.points.covers(spans)
        for d in range(self.ndim):
            if spans[d].count != spans[d].valid:
                return False
        return True

    cdef bint is_whole(self, const Span *spans) noexcept nogil:
        """Whether the task takes every element of its chunk, in order."""
        cdef int d
        if self.points is not None or self.item_nbytes != self.opened.itemsize:
            return False
        for d in range(self.ndim):
            if spans[d].count != spans[d].length or (spans[d].count > 1 and self.axes[d].out_step != 1):
                return False
        return True

    cdef int64_t data_offset(self, const Span *spans) noexcept nogil:
        cdef int64_t offset = 0
        cdef int d
        for d in range(self.ndim):
            offset += spans[d].out * self.data_strides[d]
        return offset

    cdef bint runs_of(self, const Span *spans, Runs *runs) noexcept nogil:
        """Describe the layout of a whole chunk in the caller's array; return whether to go block by block."""
        cdef int64_t shape[MAX_NDIM]
        cdef int d
        if not self.opened.is_c_order:
            return False
        for d in range(self.ndim):
            shape[d] = spans[d].length
        runs_init(runs, self.ndim, shape, self.data_strides, self.opened.itemsize)
        return runs.n_items * runs.itemsize >= MIN_RUN_NBYTES

    cdef int64_t chunk_offset(self, const Span *spans, const Layout *layout) noexcept nogil:
        cdef int64_t offset = 0
        cdef int d
        for d in range(self.ndim):
            offset += spans[d].start * layout.strides[d]
        return offset

    cdef void copy_spec(self, const Span *spans, const Layout *layout, bint to_chunk, Copy *spec) noexcept nogil:
        """Describe the copy between the selected elements of a chunk and their places in the caller's array."""
        cdef int64_t *chunk_side = &spec.dst_strides[0] if to_chunk else &spec.src_strides[0]
        cdef int64_t *data_side = &spec.src_strides[0] if to_chunk else &spec.dst_strides[0]
        cdef int d
        spec.ndim = self.ndim
        spec.itemsize = self.item_nbytes
        spec.swap = self.opened.swap
        for d in range(self.ndim):
            spec.shape[d] = spans[d].count
            # With one element the step does not matter, and its bytes may exceed 64 bits.
            chunk_side[d] = layout.strides[d] * self.axes[d].step if spans[d].count > 1 else 0
            data_side[d] = self.data_strides[d] * self.axes[d].out_step

    cdef void move(self, const Span *spans, const Layout *layout, bint to_chunk, char *chunk) noexcept nogil:
        cdef char *data
        cdef Copy spec
        cdef Sides sides
        chunk += self.item_offset
        if self.points is not None:
            self._describe(layout, &sides)
            sides.chunk = chunk
            sides.to_chunk = to_chunk
            move_points(self.points, spans, &sides)
            return
        chunk += self.chunk_offset(spans, layout)
        data = self.data + self.data_offset(spans)
        self.copy_spec(spans, layout, to_chunk, &spec)
        copy_simplify(&spec)
        if to_chunk:
            copy_run(&spec, data, chunk)
        else:
            copy_run(&spec, chunk, data)

    cdef void fill_in(self, const Span *spans) noexcept nogil:
        cdef const char *value = self.opened.fill + self.item_offset
        cdef Copy spec
        cdef Sides sides
        # The chunk's strides do not matter, because no element is read from a chunk.
        if self.points is not None:
            self._describe(&self.layout, &sides)
            sides.value = value
            move_points(self.points, spans, &sides)
            return
        self.copy_spec(spans, &self.layout, False, &spec)
        copy_simplify(&spec)
        fill_run(&spec, value, self.data + self.data_offset(spans))

    cdef void _describe(self, const Layout *layout, Sides *sides) noexcept nogil:
        sides.chunk = NULL
        sides.chunk_strides = layout.strides
        sides.data = self.data
        sides.data_strides = self.data_strides
        sides.box_stride = self.box_stride
        sides.axes = self.axes
        sides.itemsize = self.item_nbytes
        sides.swap = self.opened.swap
        sides.to_chunk = False
        sides.value = NULL

    # for Python

    cdef tuple lengths_of(self, const Span *spans):
        cdef int d
        return tuple([spans[d].length for d in range(self.ndim)])

    cdef tuple selections(self, const Axis *axes, const Span *spans):
        cdef int d
        cdef int64_t last
        if self.points is not None:
            return self.points.mesh(axes, spans)
        inside, outside = [], []
        for d in range(self.ndim):
            step = axes[d].step
            inside.append(slice(spans[d].start, spans[d].start + (spans[d].count - 1) * step + 1, step))
            last = spans[d].out + spans[d].count * axes[d].out_step
            outside.append(slice(spans[d].out, last if last >= 0 else None, axes[d].out_step))
        return tuple(inside), tuple(outside)

    def task(self, int64_t task):
        """Return a description of a task, for code that runs it in Python.

        Returns
        -------
        (key, chunk_coords, chunk_selection, array_selection, covered)
            Key and coordinates of the stored object. The selections are slices, or arrays for all dimensions that
            broadcast together. `covered`: all elements of the object inside the array are selected.
        """
        cdef Span spans[MAX_NDIM]
        cdef char key[MAX_KEY]
        cdef int d
        self.spans_of(self.object_of(task), spans)
        cdef int n = self.key_of(spans, key)
        coords = tuple([spans[d].chunk for d in range(self.ndim)])
        inside, outside = self.selections(self.objects, spans)
        return key[:n].decode(), coords, inside, outside, bool(self.is_covered(spans))

    def place(self, int64_t task):
        """Return the first element and the shape of a task's object, in elements: two tuples of int."""
        cdef Span spans[MAX_NDIM]
        self.spans_of(self.object_of(task), spans)
        return (tuple([spans[d].origin for d in range(self.ndim)]), tuple([spans[d].length for d in range(self.ndim)]))


cdef inline void _set_span(Tasks self, const Axis *axes, int d, int64_t k, Span *spans) noexcept nogil:
    """Set the span of the k-th chunk of an axis; nothing for a dimension that is not the first of its group."""
    if self.points is not None and self.points.group_of[d] >= 0:
        self.points.chunk_span(d, axes[d].cut, k, spans)
    else:
        axis_span(&axes[d], k, &spans[d])


cdef void _free_axes(Tasks self) noexcept nogil:
    cdef int d
    for d in range(self.ndim):
        axis_free(&self.axes[d])
        if self.objects != self.axes:
            axis_free(&self.objects[d])


cdef int _set_axis(Tasks self, int d, const Selected *selected) noexcept nogil:
    cdef const Opened *opened = self.opened
    cdef int64_t start = selected.starts[d]
    cdef int64_t step = selected.steps[d]
    cdef int64_t count = selected.counts[d]
    cdef int code = 0
    if self.objects != self.axes and axis_init(&self.axes[d], opened.shape[d], opened.chunk_shape[d], start, step,
                                               count):
        return -1 - d
    if opened.runs[d] == NULL:
        code = axis_init(&self.objects[d], opened.shape[d], opened.object_shape[d], start, step, count)
    else:
        code = axis_init_runs(&self.objects[d], opened.runs[d], opened.n_runs[d], opened.shape[d],
                              opened.object_shape[d], start, step, count)
    if code < 0:
        return NO_MEMORY
    return -1 - d if code else OK


cdef int _set_array(Tasks self, cnp.ndarray array) except -1:
    cdef int d
    self.array = array
    if self.points is not None and self.points.boxes is not None:
        return _set_boxes(self, array)
    assert cnp.PyArray_NDIM(array) == self.ndim and cnp.PyArray_ITEMSIZE(array) == self.item_nbytes
    self.data = <char *>cnp.PyArray_DATA(array)
    for d in range(self.ndim):
        assert cnp.PyArray_DIM(array, d) == self.axes[d].count
        self.data_strides[d] = cnp.PyArray_STRIDE(array, d)
    return 0


cdef int _set_boxes(Tasks self, object elements) except -1:
    """Note the layout of the boxes in the caller's array."""
    cdef cnp.ndarray array = elements
    cdef int d
    assert cnp.PyArray_ITEMSIZE(array) == self.item_nbytes
    assert elements.shape == (self.points.boxes.n, *self.points.boxes.shape)
    self.data = <char *>cnp.PyArray_DATA(array)
    self.box_stride = cnp.PyArray_STRIDE(array, 0)
    for d in range(1, cnp.PyArray_NDIM(array)):
        self.data_strides[d - 1] = cnp.PyArray_STRIDE(array, d)
    return 0
