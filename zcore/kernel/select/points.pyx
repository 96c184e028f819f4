# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Lists of indices, sorted by chunks.

Compiled because every index is visited: checked, counted into its chunk, and found there again. Sorting keeps the order
of points in one chunk, so if two values go to one element, the last one stays, as in NumPy. Of many boxes of one shape,
which are selected together, the part of a box in one chunk is handled as one point.
"""
import numpy as np

from zcore.errors import SelectionError, UnsupportedError

cimport cython
cimport numpy as cnp
from libc.stdint cimport INT64_MAX, UINT32_MAX
from libc.stdlib cimport free
from libc.string cimport memset

from zcore.kernel.memory cimport zc_new_zeros
from zcore.kernel.select.grid cimport Edges, last_at_most, run_of

cnp.import_array()

cdef enum:
    FEW_POINTS = 16            # per chunk on average: a mask with fewer points is kept as indices


def checked(indices, int64_t length, int dimension):
    """Return a copy of a list of indices of one dimension, with negative ones resolved.

    Parameters
    ----------
    indices : ndarray of int64
        Negative indices count from the end.
    length : int
        Length of the dimension.
    dimension : int
        Number of the dimension, for the error.

    Returns
    -------
    (ndarray of int64, step)
        `step`: the distance between consecutive indices if it is constant and not 0; else None. It is 1 for one index.

    Raises
    ------
    SelectionError
        An index is out of bounds.

    >>> indices, step = checked(np.array([4, -3, 0]), 5, 0)
    >>> indices.tolist(), step
    ([4, 2, 0], -2)
    """
    cdef cnp.ndarray vector = np.array(indices, np.int64).reshape(-1)
    cdef int64_t *index = <int64_t *>cnp.PyArray_DATA(vector)
    cdef int64_t n = cnp.PyArray_SIZE(vector)
    cdef int64_t i
    cdef int64_t step = 1
    cdef int64_t wrong = -1
    cdef bint even = n > 0
    with nogil:
        for i in range(n):
            if index[i] < 0:
                index[i] += length
                if index[i] < 0:
                    index[i] -= length
                    wrong = i
                    break
            elif index[i] >= length:
                wrong = i
                break
            if i == 1:
                step = index[1] - index[0]
                even = step != 0
            elif i > 1 and index[i] - index[i - 1] != step:
                even = False
    if wrong >= 0:
        raise SelectionError(f"index {index[wrong]} is out of bounds for axis {dimension} with size {length}",
                             dimension=dimension)
    return vector, (step if even else None)


cdef class Points:
    """The groups of a selection.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array, in elements.
    shapes : sequence of tuple of int
        Shapes of its cuts: the stored objects; if these are shards, their chunks; and so on for nested shards.
    groups : sequence of (dims, selected)
        Ascending dimensions, and for each a vector of int64; the vectors of a group have one length, 1 or more. Or one
        mask of these dimensions, an ndarray of bool in C order. Or `Boxes` of all dimensions, as the only group. No
        other code may change them.
    edges : tuple of (Edges or None), or None
        As in `Plan`.

    Raises
    ------
    SelectionError
        An index lies outside the array.
    """

    def __init__(self, shape, shapes, groups, tuple edges=None):
        cdef int d, g, k
        cdef Edges unequal
        self.ndim = len(shape)
        self.edges = edges
        assert 0 < len(shapes) <= MAX_CUTS
        self.n_cuts = len(shapes)
        self.vectors = {}
        self.held = []
        for d in range(self.ndim):
            self.group_of[d] = -1
            self.length_of[d] = shape[d]
            for k in range(self.n_cuts):
                self.cuts[k][d].chunk = shapes[k][d]
                self.cuts[k][d].runs = NULL
            # Shards may differ in length, but their chunks form one regular grid.
            unequal = None if edges is None else edges[d]
            if unequal is not None:
                self.cuts[0][d].runs = unequal.table
                self.cuts[0][d].n_runs = unequal.n_runs
        self.groups = <Group *>_hold(self, np.zeros(len(groups) * sizeof(Group), np.uint8))
        self.n_groups = len(groups)
        for g, (dims, selected) in enumerate(groups):
            _add(self, g, dims, selected)

    # geometry

    cdef void set_axis(self, int d, int cut, Axis *axis) noexcept nogil:
        """Describe a dimension of a group as an axis, as far as possible for a list: its number of chunks of a cut."""
        cdef const Group *group = &self.groups[self.group_of[d]]
        cdef bint leads = group.dims[0] == d
        memset(axis, 0, sizeof(Axis))
        axis.length = self.length_of[d]
        axis.chunk = self.cuts[cut][d].chunk
        axis.cut = cut
        axis.step = axis.out_step = 1
        axis.count = group.n if leads else 1
        axis.n_chunks = group.n_runs[cut] if leads else 1

    cdef void chunks_of(self, int d, int cut, const Span *object, int64_t *first, int64_t *count) noexcept nogil:
        cdef const Group *group = &self.groups[self.group_of[d]]
        first[0] = 0
        count[0] = 1
        if group.dims[0] == d:
            first[0] = _run_at(group, cut, object.first)
            count[0] = _run_at(group, cut, object.first + object.count) - first[0]

    cdef void chunk_span(self, int d, int cut, int64_t k, Span *spans) noexcept nogil:
        """Set the k-th touched chunk of a group if d is its first dimension; do nothing for its other dimensions."""
        cdef const Group *group = &self.groups[self.group_of[d]]
        if group.dims[0] == d:
            _group_span(self, group, cut, k, spans)

    cdef int64_t chunk_at(self, int d, int64_t index) noexcept nogil:
        """Return the number of the chunk of the last cut that holds an element, along a dimension."""
        return _number_at(&self.cuts[self.n_cuts - 1][d], index)

    cdef int64_t chunk_end(self, int d, int64_t index) noexcept nogil:
        cdef const Cut *cut = &self.cuts[self.n_cuts - 1][d]
        cdef int64_t origin, length
        _place_of(cut, _number_at(cut, index), &origin, &length)
        return origin + length

    cdef bint covers(self, const Span *spans) noexcept nogil:
        """Whether all elements of a chunk inside the array are selected; False if that cannot be determined."""
        cdef int d, g
        for d in range(self.ndim):
            if self.group_of[d] < 0 and spans[d].count != spans[d].valid:
                return False
        for g in range(self.n_groups):
            if not _covers_group(self, &self.groups[g], spans):
                return False
        return True

    # for Python

    cdef object mesh(self, const Axis *axes, const Span *spans):
        """Return (chunk_selection, array_selection) of a task: arrays for each dimension that broadcast together."""
        cdef const Group *group
        cdef int d, e
        if self.boxes is not None:
            return _mesh_boxes(self, spans)
        inside, outside = [None] * self.ndim, [None] * self.ndim
        for d in range(self.ndim):
            shape = [1] * self.ndim
            shape[d] = spans[d].count
            if self.group_of[d] < 0:
                places = np.arange(spans[d].count, dtype=np.int64)
                inside[d] = (spans[d].start + places * axes[d].step).reshape(shape)
                outside[d] = (spans[d].out + places * axes[d].out_step).reshape(shape)
                continue
            group = &self.groups[self.group_of[d]]
            if group.dims[0] != d:
                continue
            places, indices = _found(self, group, spans) if group.mask == NULL else _found_in_mask(self, group, spans)
            for e in range(group.n_dims):
                inside[group.dims[e]] = indices[e].reshape(shape)
                outside[group.dims[e]] = places.reshape(shape) if e == 0 else np.zeros([1] * self.ndim, np.int64)
        return tuple(inside), tuple(outside)


cdef int _add(Points self, int g, dims, selected) except -1:
    cdef Group *group = &self.groups[g]
    cdef int d
    for d in dims:
        assert self.group_of[d] < 0
        self.group_of[d] = g
        group.dims[group.n_dims] = d
        group.n_dims += 1
    if isinstance(selected, Boxes):
        assert self.n_groups == 1 and group.n_dims == self.ndim
        return _add_boxes(self, group, selected)
    if isinstance(selected, np.ndarray):
        assert self.n_groups == 1 and selected.flags.c_contiguous and selected.dtype == np.bool_
        if not _add_mask(self, group, selected):
            return _add_vectors(self, group, [vector.astype(np.int64, copy=False)
                                              for vector in np.asarray(selected).nonzero()])
        return 0
    return _add_vectors(self, group, selected)


cdef int _touch(Points self, Group *group, const int64_t *counts, int64_t *firsts, int64_t n_keys, int64_t n) except -1:
    """Note the n chunks with points, for each cut."""
    cdef int last = self.n_cuts - 1
    cdef int64_t unit = 1
    cdef int64_t *keys = firsts
    cdef int64_t *bounds = _room(self, n + 1)
    cdef int64_t key, position, i
    cdef int e, k
    group.bounds[last] = bounds
    group.samples = _room(self, n * group.n_dims)
    group.n_runs[last] = n
    bounds[0] = n = 0
    for key in range(n_keys):
        if counts[key] == 0:
            continue
        position = firsts[key]
        for e in range(group.n_dims - 1, -1, -1):
            group.samples[n * group.n_dims + e] = position % group.mask_shape[e]
            position //= group.mask_shape[e]
        bounds[n + 1] = bounds[n] + counts[key]
        # Overwrites entries that were already visited.
        keys[n] = key
        n += 1
    for k in range(last - 1, -1, -1):
        for e in range(group.n_dims):
            unit *= _ratio(self, k + 1, group.dims[e])
        _set_bounds(self, group, k, keys, NULL, NULL, n, unit)
        for i in range(group.n_runs[k] + 1):
            group.bounds[k][i] = bounds[group.bounds[k][i]]
    return 0


cdef int _sort(Points self, Group *group) except -1:
    """Sort the points of a group by object, and by the chunks in each object."""
    cdef int64_t lowest[MAX_NDIM]
    cdef int64_t extent[MAX_NDIM]
    cdef int64_t origin[MAX_NDIM]
    cdef int64_t end[MAX_NDIM]
    cdef int64_t at[MAX_NDIM]
    cdef const int64_t *index
    cdef int64_t low, high, i, n_keys, key
    cdef int64_t weight[MAX_NDIM]
    cdef int64_t unit = 1
    cdef int64_t last = 0
    cdef int64_t *keys
    cdef cnp.ndarray held
    cdef bint is_sorted = True
    cdef bint is_joined
    cdef int shift
    cdef int e, d, k
    product = 1
    for e in range(group.n_dims):
        d = group.dims[e]
        index = self.index_of[d]
        low = high = index[0]
        for i in range(1, group.n):
            low = min(low, index[i])
            high = max(high, index[i])
        if low < 0 or high >= self.length_of[d]:
            raise SelectionError(f"index {low if low < 0 else high} is out of bounds for axis {d} with size "
                                 f"{self.length_of[d]}", dimension=d)
        origin[e] = end[e] = 0
        lowest[e] = _number_at(&self.cuts[0][d], low)
        extent[e] = _number_at(&self.cuts[0][d], high) - lowest[e] + 1
        product *= extent[e]
        for k in range(1, self.n_cuts):
            product *= _ratio(self, k, d)
    if product > INT64_MAX:
        raise UnsupportedError("points in shards that have more than 2**63 chunks between them",
                               feature="points in so many chunks")
    n_keys = product
    # The number of a chunk and that of an element in it are sorted as one key, if there are few chunks. So later
    # nothing is looked up in the points as they were given, where each look misses the cache.
    elements = 1
    for e in range(group.n_dims - 1, -1, -1):
        weight[e] = min(elements, UINT32_MAX)
        elements *= self.cuts[self.n_cuts - 1][group.dims[e]].chunk
    is_joined = n_keys <= MAX_UPPER and elements <= UINT32_MAX
    shift = 32 if is_joined else 0
    held = np.empty(group.n, np.int64)
    keys = <int64_t *>cnp.PyArray_DATA(held)
    with nogil:
        for i in range(group.n):
            # Mostly in the chunk of the previous point (as for a mask): then no division is needed.
            if not _lies_in(self, group, i, origin, end):
                for e in range(group.n_dims):
                    at[e] = self.index_of[group.dims[e]][i]
                key = _key(self, group, at, lowest, extent, origin, end) << shift
                if key < last:
                    is_sorted = False
                last = key
            keys[i] = last
            if is_joined:
                for e in range(group.n_dims):
                    keys[i] += (self.index_of[group.dims[e]][i] - origin[e]) * weight[e]
    k = self.n_cuts - 1
    if is_joined and not is_sorted:
        group.order = _room(self, group.n)
        group.within = <uint32_t *>_hold(self, np.empty(group.n, np.uint32))
        group.bounds[k] = _hold(self, np.zeros(n_keys + 1, np.int64))
        with nogil:
            group.n_runs[k] = order_within(keys, group.n, n_keys, group.order, group.within, group.bounds[k])
    elif not is_sorted:
        group.order = _hold(self, held.argsort(kind="stable").astype(np.int64, copy=False))
    for k in reversed(range(self.n_cuts)):
        if k < self.n_cuts - 1:
            _set_bounds(self, group, k, keys, group.order, group.bounds[k + 1], group.n_runs[k + 1], unit << shift)
        elif group.bounds[k] == NULL:
            _set_bounds(self, group, k, keys, group.order, NULL, group.n, unit << shift)
        for e in range(group.n_dims if k else 0):
            unit *= _ratio(self, k, group.dims[e])
    return 0


cdef int _set_bounds(Points self, Group *group, int k, const int64_t *keys, const int64_t *order, const int64_t *finer,
                     int64_t n, int64_t unit) except -1:
    """Note the runs of a cut; the arguments are those of `bounds_of`."""
    with nogil:
        group.n_runs[k] = bounds_of(keys, order, finer, n, unit, NULL)
    group.bounds[k] = _room(self, group.n_runs[k] + 1)
    with nogil:
        bounds_of(keys, order, finer, n, unit, group.bounds[k])
    return 0


cdef int64_t *_room(Points self, int64_t n) except NULL:
    return _hold(self, np.empty(n, np.int64))


cdef int64_t *_hold(Points self, array) except NULL:
    self.held.append(array)
    return <int64_t *>cnp.PyArray_DATA(<cnp.ndarray>array)


cdef int64_t _key(Points self, const Group *group, const int64_t *at, const int64_t *lowest, const int64_t *extent,
                  int64_t *origin, int64_t *end) noexcept nogil:
    """Return a number for an element's chunk, in C order of the objects and the chunks in each; set its range."""
    cdef int64_t key = 0
    cdef int64_t number, length
    cdef int e, d, k
    for e in range(group.n_dims):
        d = group.dims[e]
        number = _number_at(&self.cuts[0][d], at[e])
        key = key * extent[e] + number - lowest[e]
        _place_of(&self.cuts[0][d], number, &origin[e], &length)
        end[e] = origin[e] + length
    for k in range(1, self.n_cuts):
        for e in range(group.n_dims):
            d = group.dims[e]
            length = self.cuts[k][d].chunk
            number = (at[e] - origin[e]) // length
            key = key * _ratio(self, k, d) + number
            origin[e] += number * length
            end[e] = origin[e] + length
    return key


cdef int _add_vectors(Points self, Group *group, vectors) except -1:
    cdef cnp.ndarray vector
    cdef int e
    for e, vector in enumerate(vectors):
        vector = np.ascontiguousarray(vector)
        assert vector.dtype == np.int64 and (e == 0 or group.n == cnp.PyArray_SIZE(vector))
        self.index_of[group.dims[e]] = <const int64_t *>cnp.PyArray_DATA(vector)
        self.vectors[group.dims[e]] = vector
        group.n = cnp.PyArray_SIZE(vector)
    assert group.n > 0
    return _sort(self, group)


# boxes

cdef int _add_boxes(Points self, Group *group, Boxes boxes) except -1:
    """Cut boxes into pieces, which are then sorted by chunk like points."""
    cdef int64_t *pointers[MAX_NDIM]
    cdef cnp.ndarray vector
    cdef int64_t *numbers
    cdef int64_t n
    cdef int d
    shape = tuple([self.length_of[d] for d in range(self.ndim)])
    if not boxes.fits(shape):
        raise SelectionError(f"{boxes} do not lie in an array of shape {shape}")
    self.boxes = boxes
    with nogil:
        n = _cut_boxes(self, NULL, NULL)
    self.box_of = numbers = _room(self, n)
    vectors = [np.empty(n, np.int64) for _ in range(self.ndim)]
    for d, vector in enumerate(vectors):
        pointers[d] = <int64_t *>cnp.PyArray_DATA(vector)
    with nogil:
        _cut_boxes(self, pointers, numbers)
    return _add_vectors(self, group, vectors)


cdef int64_t _cut_boxes(Points self, int64_t **vectors, int64_t *numbers) noexcept nogil:
    """Note the lowest element and the box number of each piece, unless NULL; return the number of pieces."""
    cdef int64_t at[MAX_NDIM]
    cdef int64_t n = 0
    cdef int64_t box
    cdef int d
    for box in range(self.boxes.n):
        for d in range(self.ndim):
            at[d] = _next_from(self.boxes, box, d, 0)
        d = 0
        while d >= 0:
            if numbers != NULL:
                numbers[n] = box
                for d in range(self.ndim):
                    vectors[d][n] = at[d]
            n += 1
            d = self.ndim - 1
            while d >= 0:
                at[d] = _next_from(self.boxes, box, d, self.chunk_end(d, at[d]))
                if at[d] >= 0:
                    break
                at[d] = _next_from(self.boxes, box, d, 0)
                d -= 1
    return n


# masks

cdef bint _add_mask(Points self, Group *group, mask) except -1:
    """Count the points of each segment and of each chunk; return False if indices would take less memory."""
    cdef int64_t extent[MAX_NDIM]
    cdef cnp.ndarray counted
    cdef cnp.ndarray first
    cdef int64_t *counts
    cdef int64_t *firsts
    cdef int64_t n_ranks = 1
    cdef int e, d, k
    # The array may have shrunk since the mask was made.
    inside = np.ascontiguousarray(mask[tuple([slice(self.length_of[d]) for d in group.dims[:group.n_dims]])])
    group.n = np.count_nonzero(inside)
    if inside.size != mask.size and group.n != np.count_nonzero(mask):
        raise SelectionError("a mask is true for elements out of bounds")
    product = 1
    for e in range(group.n_dims):
        d = group.dims[e]
        group.mask_shape[e] = inside.shape[e]
        extent[e] = _number_at(&self.cuts[0][d], group.mask_shape[e] - 1) + 1
        product *= extent[e]
        for k in range(1, self.n_cuts):
            product *= _ratio(self, k, d)
        if e + 1 < group.n_dims:
            n_ranks *= group.mask_shape[e]
    e = group.n_dims - 1
    group.n_segments = self.chunk_at(group.dims[e], group.mask_shape[e] - 1) + 1
    n_ranks *= group.n_segments
    if n_ranks > group.n or product * FEW_POINTS > group.n:
        return False
    group.ranks = _room(self, n_ranks + 1)
    counted, first = np.zeros(product, np.int64), np.empty(product, np.int64)
    counts, firsts = <int64_t *>cnp.PyArray_DATA(counted), <int64_t *>cnp.PyArray_DATA(first)
    self.vectors[group.dims[0]] = inside
    group.mask = <const uint8_t *>cnp.PyArray_DATA(inside)
    with nogil:
        _count_mask(self, group, extent, counts, firsts)
    _touch(self, group, counts, firsts, product, np.count_nonzero(counted))
    assert group.ranks[n_ranks] == group.n
    return True


cdef void _count_mask(Points self, Group *group, const int64_t *extent, int64_t *counts,
                      int64_t *firsts) noexcept nogil:
    """Count points before each segment, and in each chunk. `firsts` notes the first segment of each chunk."""
    cdef int64_t at[MAX_NDIM]
    cdef int64_t lowest[MAX_NDIM]
    cdef int64_t origin[MAX_NDIM]
    cdef int64_t end[MAX_NDIM]
    cdef const uint8_t *mask = group.mask
    cdef int64_t *ranks = group.ranks
    cdef int64_t rank = 0
    cdef int64_t key, n, i, stop
    cdef int last = group.n_dims - 1
    cdef int e
    for e in range(group.n_dims):
        at[e] = lowest[e] = 0
    while True:
        at[last] = 0
        while at[last] < group.mask_shape[last]:
            key = _key(self, group, at, lowest, extent, origin, end)
            stop = min(end[last], group.mask_shape[last])
            n = 0
            for i in range(at[last], stop):
                n += mask[i] != 0
            if counts[key] == 0:
                firsts[key] = mask - group.mask + at[last]
            counts[key] += n
            ranks[0] = rank
            ranks += 1
            rank += n
            at[last] = stop
        mask += group.mask_shape[last]
        e = last - 1
        while e >= 0:
            at[e] += 1
            if at[e] < group.mask_shape[e]:
                break
            at[e] = 0
            e -= 1
        if e < 0:
            ranks[0] = rank
            return


cdef int64_t _ratio(Points self, int cut, int d) noexcept nogil:
    """Return the maximum number of chunks of a cut in one chunk of the cut before."""
    return self.cuts[cut - 1][d].chunk // self.cuts[cut][d].chunk


cdef bint _lies_in(Points self, const Group *group, int64_t point, const int64_t *origin,
                   const int64_t *end) noexcept nogil:
    cdef int64_t index
    cdef int e
    for e in range(group.n_dims):
        index = self.index_of[group.dims[e]][point]
        if index < origin[e] or index >= end[e]:
            return False
    return True


cdef void _group_span(Points self, const Group *group, int cut, int64_t k, Span *spans) noexcept nogil:
    cdef int64_t first = group.bounds[cut][k]
    cdef int64_t point = first if group.order == NULL else group.order[first]
    cdef int64_t index
    cdef const int64_t *sample = NULL
    cdef Span *span
    cdef int e, d
    if group.mask != NULL:
        sample = &group.samples[_run_at(group, self.n_cuts - 1, first) * group.n_dims]
    for e in range(group.n_dims):
        d = group.dims[e]
        span = &spans[d]
        index = self.index_of[d][point] if sample == NULL else sample[e]
        span.chunk = _number_at(&self.cuts[cut][d], index)
        _place_of(&self.cuts[cut][d], span.chunk, &span.origin, &span.length)
        span.valid = min(span.length, self.length_of[d] - span.origin)
        # The positions are in the points.
        span.start = span.out = 0
        span.count = group.bounds[cut][k + 1] - first if e == 0 else 1
        span.first = first


cdef bint _covers_group(Points self, const Group *group, const Span *spans) noexcept nogil:
    cdef int64_t n = spans[group.dims[0]].count
    cdef int64_t first = spans[group.dims[0]].first
    cdef int64_t n_valid = 1
    cdef int64_t n_found = 0
    cdef int64_t i, point, position
    cdef uint8_t *found
    cdef int e, d
    for e in range(group.n_dims):
        n_valid *= spans[group.dims[e]].valid
    if n < n_valid or group.mask != NULL:
        return n == n_valid
    found = <uint8_t *>zc_new_zeros(n_valid // 8 + 1, 1)
    if found == NULL:
        return False
    for i in range(first, first + n):
        point = i if group.order == NULL else group.order[i]
        position = 0
        for e in range(group.n_dims):
            d = group.dims[e]
            position = position * spans[d].valid + self.index_of[d][point] - spans[d].origin
        if not (found[position >> 3] >> (position & 7)) & 1:
            found[position >> 3] |= <uint8_t>(1 << (position & 7))
            n_found += 1
    free(found)
    return n_found == n_valid


cdef object _found(Points self, const Group *group, const Span *spans):
    """Return the points of a group in a chunk: their numbers, and their positions in it for each dimension."""
    cdef const Span *leading = &spans[group.dims[0]]
    cdef cnp.npy_intp n = leading.count
    cdef int e
    if group.order == NULL:
        places = np.arange(leading.first, leading.first + n, dtype=np.int64)
    else:
        places = cnp.PyArray_SimpleNewFromData(1, &n, cnp.NPY_INT64, &group.order[leading.first]).copy()
    return places, [self.vectors[group.dims[e]][places] - spans[group.dims[e]].origin
                    for e in range(group.n_dims)]


cdef tuple _mesh_boxes(Points self, const Span *spans):
    """Return the same for pieces, with all their elements in one list. The caller's first dimension is the box."""
    cdef Boxes boxes = self.boxes
    cdef const Side *side
    cdef int64_t piece, box, low, first, out
    cdef int d
    inside = [[] for _ in range(self.ndim)]
    outside = [[] for _ in range(1 + len(boxes.shape))]
    for piece in _found(self, &self.groups[0], spans)[0]:
        box = self.box_of[piece]
        firsts, outs, counts = [], [], []
        for d in range(self.ndim):
            low = self.index_of[d][piece]
            counts.append(boxes.part_of(box, d, low, self.chunk_end(d, low), &first, &out))
            firsts.append(first - spans[d].origin)
            outs.append(out)
        places = np.indices(counts, np.int64).reshape(self.ndim, -1)
        outside[0].append(np.full(places.shape[1], box))
        for d in range(self.ndim):
            side = &boxes.sides[box * self.ndim + d]
            inside[d].append(firsts[d] + places[d] * abs(side.step))
            if side.axis >= 0:
                outside[1 + side.axis].append(outs[d] + places[d] * (1 if side.step > 0 else -1))
    return tuple(map(np.concatenate, inside)), tuple(map(np.concatenate, outside))


cdef object _found_in_mask(Points self, const Group *group, const Span *spans):
    cdef int last = group.dims[group.n_dims - 1]
    cdef cnp.npy_intp n = 1
    cdef int e
    box = []
    lengths = []
    for e in range(group.n_dims):
        box.append(slice(spans[group.dims[e]].origin, spans[group.dims[e]].origin + spans[group.dims[e]].length))
        lengths.append(group.mask_shape[e] if group.dims[e] != last else group.n_segments)
        n *= lengths[e]
    part = self.vectors[group.dims[0]][tuple(box)]
    box[group.n_dims - 1] = self.chunk_at(last, spans[last].origin)
    firsts = cnp.PyArray_SimpleNewFromData(1, &n, cnp.NPY_INT64, group.ranks).reshape(lengths)[tuple(box)]
    counts = np.count_nonzero(part, axis=group.n_dims - 1).reshape(-1)
    # Points of a row are consecutive, from the rank of its first segment in the chunk on.
    places = (np.repeat(firsts.reshape(-1) - np.cumsum(counts) + counts, counts)
              + np.arange(spans[group.dims[0]].count))
    return places, part.nonzero()


cdef int64_t _number_at(const Cut *cut, int64_t index) noexcept nogil:
    """Return the number of the chunk that holds an element."""
    cdef const Run *run
    if cut.runs == NULL:
        return index // cut.chunk
    run = &cut.runs[run_of(cut.runs, cut.n_runs, index, False)]
    return run.first + (index - run.origin) // run.edge


cdef void _place_of(const Cut *cut, int64_t number, int64_t *origin, int64_t *length) noexcept nogil:
    cdef const Run *run
    length[0] = cut.chunk
    origin[0] = number * cut.chunk
    if cut.runs != NULL:
        run = &cut.runs[run_of(cut.runs, cut.n_runs, number, True)]
        length[0] = run.edge
        origin[0] = run.origin + (number - run.first) * run.edge


cdef int64_t _run_at(const Group *group, int cut, int64_t first) noexcept nogil:
    """Return the number of the run that begins with a point, in sorted order; the number of runs for the end."""
    return last_at_most(group.bounds[cut], 1, group.n_runs[cut] + 1, first)


# boxes

@cython.final
cdef class Boxes:
    """The selection by a list of boxes; the result has one dimension for the boxes, followed by those of a box.

    Parameters
    ----------
    boxes : list of Box
        At least one, of one shape, none of them empty. The array must have at least one dimension.

    Attributes
    ----------
    n : int
        Number of boxes.
    shape : tuple of int
        Shape of a box in the result: without the dimensions that an integer indexes.
    starts, steps, counts, groups
        The interface of a selection for a plan, see `Plan`.

    >>> from zcore.kernel.select.box import basic
    >>> import numpy as np
    >>> Boxes([basic(np.s_[1:3, 5], (4, 9)), basic(np.s_[0, 8:4:-2], (4, 9))])
    Boxes(2, (2,))
    """

    def __init__(self, list boxes not None):
        cdef Py_ssize_t b
        cdef int axis, d
        cdef Side *side
        cdef tuple shape = boxes[0].shape
        cdef int ndim = len(boxes[0].counts)
        _make(self, len(boxes), shape, ndim)
        highest = [0] * self.ndim
        for b in range(len(boxes)):
            box = boxes[b]
            assert box.shape == self.shape and len(box.counts) == self.ndim
            expand = box.expand
            axis = 0
            for d in range(self.ndim):
                side = &self.sides[b * self.ndim + d]
                first, step, count = box.starts[d], box.steps[d], box.counts[d]
                last = first + (count - 1) * step
                assert count > 0
                side.low = min(first, last)
                side.step = step
                side.count = count
                side.axis = -1
                if expand is None or expand[d] is not None:
                    side.axis = axis
                    axis += 1
                highest[d] = max(highest[d], first, last)
        self.highest = tuple(highest)

    @classmethod
    def at(cls, cnp.ndarray starts not None, tuple counts not None):
        """Return the boxes of `counts` elements, each 1 or more, that begin at one row of `starts` each.

        `starts` is a contiguous array of int64 of two dimensions.

        >>> import numpy as np
        >>> Boxes.at(np.array([[1, 5], [0, 4]], np.int64), (2, 3))
        Boxes(2, (2, 3))
        """
        cdef Boxes self = cls.__new__(cls)
        cdef Py_ssize_t b
        cdef int d
        cdef int64_t count
        cdef Side *side
        cdef int ndim = len(counts)
        cdef const int64_t *first = <const int64_t *>cnp.PyArray_DATA(starts)
        _make(self, len(starts), counts, ndim)
        assert starts.dtype == np.int64 and starts.flags.c_contiguous and starts.size == self.n * ndim > 0
        for d in range(self.ndim):
            count = counts[d]
            for b in range(self.n):
                side = &self.sides[b * self.ndim + d]
                side.low = first[b * ndim + d]
                side.step = 1
                side.count = count
                side.axis = d
        self.highest = tuple([int(low) + count - 1 for low, count in zip(np.max(starts, axis=0), counts, strict=True)])
        return self

    def __repr__(self):
        return f"Boxes({self.n}, {self.shape})"

    @property
    def starts(self):
        return (0,) * self.ndim

    @property
    def steps(self):
        return (1,) * self.ndim

    @property
    def counts(self):
        return (self.n,) + (1,) * (self.ndim - 1)

    @property
    def groups(self):
        return ((tuple(range(self.ndim)), self),)

    def fits(self, shape):
        """Whether all elements lie in an array of `shape`."""
        return all([last < length for last, length in zip(self.highest, shape, strict=True)])

    cdef int64_t part_of(self, int64_t box, int d, int64_t low, int64_t high, int64_t *first,
                         int64_t *out) noexcept nogil:
        cdef const Side *side = &self.sides[box * self.ndim + d]
        cdef int64_t number = _number_from(side, low)
        cdef int64_t last = min((high - 1 - side.low) // _distance(side), side.count - 1)
        first[0] = side.low + number * _distance(side)
        out[0] = number if side.step > 0 else side.count - 1 - number
        return last - number + 1


cdef int _make(Boxes self, int64_t n, tuple shape, int ndim) except -1:
    assert 0 < ndim <= MAX_NDIM and self.sides == NULL
    self.n, self.shape, self.ndim = n, shape, ndim
    self.held = np.zeros((n, ndim * sizeof(Side)), np.uint8)
    self.sides = <Side *>cnp.PyArray_DATA(<cnp.ndarray>self.held)
    return 0


cdef int64_t _next_from(Boxes self, int64_t box, int d, int64_t low) noexcept nogil:
    """Return the lowest selected index from `low` on, or -1."""
    cdef const Side *side = &self.sides[box * self.ndim + d]
    cdef int64_t number = _number_from(side, low)
    return side.low + number * _distance(side) if number < side.count else -1


cdef inline int64_t _distance(const Side *side) noexcept nogil:
    return side.step if side.step > 0 else -side.step


cdef inline int64_t _number_from(const Side *side, int64_t low) noexcept nogil:
    """Return how many elements lie below `low`."""
    return 0 if low <= side.low else (low - side.low - 1) // _distance(side) + 1


# sorting

cdef enum:
    MAX_UPPER = 1 << 16        # keys to count; above, NumPy sorts


cdef int64_t bounds_of(const int64_t *keys, const int64_t *order, const int64_t *finer, int64_t n, int64_t unit,
                       int64_t *bounds) noexcept nogil:
    """Return the number of runs of keys with the same quotient by `unit`; note where they begin, and the last one ends.

    Uses the n sorted keys, or n runs of them with the bounds `finer`. `bounds` may be NULL.
    """
    cdef int64_t n_runs = 0
    cdef int64_t last = 0
    cdef int64_t i, key, place
    for i in range(n):
        place = i if finer == NULL else finer[i]
        key = _at(keys, order, place) // unit
        if i == 0 or key != last:
            if bounds != NULL:
                bounds[n_runs] = place
            n_runs += 1
        last = key
    if bounds != NULL:
        bounds[n_runs] = n if finer == NULL else finer[n]
    return n_runs


cdef inline int64_t _at(const int64_t *keys, const int64_t *order, int64_t i) noexcept nogil:
    return keys[i] if order == NULL else keys[order[i]]


cdef int64_t order_within(const int64_t *keys, int64_t n, int64_t n_keys, int64_t *order, uint32_t *low,
                          int64_t *starts) noexcept nogil:
    """Set the order that sorts the upper halves of keys, at most `MAX_UPPER` of them; the lower halves in this order.

    `starts`: n_keys + 1 zeros, set to the bounds of the runs. Return the number of runs.
    """
    cdef int64_t i, at, end
    cdef int64_t total = 0
    cdef int64_t n_runs = 0
    for i in range(n):
        starts[keys[i] >> 32] += 1
    for i in range(n_keys):
        end = total + starts[i]
        starts[i] = total
        total = end
    for i in range(n):
        at = starts[keys[i] >> 32]
        starts[keys[i] >> 32] = at + 1
        order[at] = i
        low[at] = <uint32_t>keys[i]
    # Where a run began, the one before has ended. Runs without keys are left out.
    total = 0
    for i in range(n_keys):
        end = starts[i]
        if end > total:
            starts[n_runs] = total
            n_runs += 1
            total = end
    starts[n_runs] = n
    return n_runs
