# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Elements at points, moved between a chunk and the caller's array.

Compiled because every selected element passes through here. Dimensions selected by slices are a strided copy; if that
ends in a contiguous run, the run is one item. Items at the points of the innermost group are moved by a table of some
hundred offsets, so that one table serves all points of the outer groups and stays in the cache.

Points keep their order, group by group, so if two values go to one element, the last one stays. Points of a mask are
found in the mask on the way, row by row, without data-dependent branches. Each piece of a box is a strided copy.
"""
from libc.stdint cimport uint8_t
from libc.string cimport memset

from zcore.kernel.strided.copy cimport MAX_NDIM, copy_run, copy_simplify, fill_run
from zcore.kernel.select.points cimport Group, Side


cdef extern from "select/points.h" nogil:
    void zc_move_points(const char *src, const int64_t *src_at, char *dst, const int64_t *dst_at, int64_t n,
                        int64_t itemsize, int64_t swap) noexcept


cdef enum:
    TABLE = 512                # points in one table of offsets
    FEW_POINTS = 8             # fewer points than this are moved one by one, if each moves much


cdef struct Walk:              # walk through the rows of a mask in a chunk
    const uint8_t *row         # first element of the row in the chunk, in the mask
    const int64_t *rank        # number of points before it
    int64_t n_segments         # per row: more than one if chunks are parts of an object
    int64_t column             # next column to look at
    int64_t left               # points left in the row
    int64_t index[MAX_NDIM]    # of the row


cdef void move_points(Points points, const Span *spans, const Sides *sides) noexcept nogil:
    cdef int64_t chunk_at[TABLE]
    cdef int64_t data_at[TABLE]
    cdef int64_t index[MAX_NDIM]
    cdef Copy slices
    cdef const Group *inner
    cdef Walk walk
    cdef char *chunk = sides.chunk
    cdef char *data = sides.data
    cdef int64_t first, n, end, i, chunk_offset, data_offset
    cdef int g, innermost, last
    cdef bint is_linear
    if points.boxes is not None:
        _move_pieces(points, spans, sides)
        return
    _describe_slices(points, spans, sides, &slices, &chunk, &data)
    _merge_runs(&slices)
    innermost = _innermost(points, spans)
    inner = &points.groups[innermost]
    first = spans[inner.dims[0]].first
    end = first + spans[inner.dims[0]].count
    memset(&walk, 0, sizeof(Walk))
    if inner.mask != NULL:
        _enter_mask(points, inner, spans, &walk)
    last = inner.dims[inner.n_dims - 1]
    is_linear = sides.value == NULL and _is_linear(points, inner, sides)
    while first < end:
        n = min(end - first, <int64_t>TABLE)
        if inner.mask != NULL:
            _walk_mask(inner, spans, sides, &walk, chunk_at, data_at, n)
        elif is_linear:
            for i in range(n):
                chunk_at[i] = inner.within[first + i] * sides.chunk_strides[last]
                data_at[i] = inner.order[first + i] * sides.data_strides[inner.dims[0]]
        else:
            for i in range(n):
                _offsets(points, inner, first + i, spans, sides, &chunk_at[i], &data_at[i])
        for g in range(points.n_groups):
            index[g] = 0
        while True:
            chunk_offset = data_offset = 0
            for g in range(points.n_groups):
                if g != innermost:
                    _add_offsets(points, &points.groups[g], index[g], spans, sides, &chunk_offset, &data_offset)
            _move_block(&slices, sides, chunk + chunk_offset, chunk_at, data + data_offset, data_at, n)
            if not _next_points(points, spans, innermost, index):
                break
        first += n


cdef bint _is_linear(Points points, const Group *group, const Sides *sides) noexcept nogil:
    """Return whether the dimensions of a group have the elements of a chunk at equal distances, in C order."""
    cdef int64_t distance = sides.chunk_strides[group.dims[group.n_dims - 1]]
    cdef int e
    if group.within == NULL:
        return False
    for e in range(group.n_dims - 1, -1, -1):
        if sides.chunk_strides[group.dims[e]] != distance:
            return False
        distance *= points.cuts[points.n_cuts - 1][group.dims[e]].chunk
    return True


cdef inline bint _next_points(Points points, const Span *spans, int skipped, int64_t *index) noexcept nogil:
    """Advance `index`, one point of each group except `skipped`; return False behind the last combination."""
    cdef int g = points.n_groups - 1
    while g >= 0:
        if g != skipped:
            index[g] += 1
            if index[g] < spans[points.groups[g].dims[0]].count:
                return True
            index[g] = 0
        g -= 1
    return False


cdef int _innermost(Points points, const Span *spans) noexcept nogil:
    """Return the group whose points are moved by a table: the last one, unless it has few points here."""
    cdef int innermost = points.n_groups - 1
    cdef int64_t most = spans[points.groups[innermost].dims[0]].count
    cdef int g
    if most < FEW_POINTS:
        for g in range(points.n_groups):
            if spans[points.groups[g].dims[0]].count > most:
                innermost = g
                most = spans[points.groups[g].dims[0]].count
    return innermost


cdef bint single_part(Points points, const Span *spans, const Sides *sides, Copy *spec, int64_t *chunk_offset,
                      int64_t *data_offset) noexcept nogil:
    cdef char *chunk = NULL
    cdef char *data = NULL
    cdef int g
    for g in range(points.n_groups):
        if points.groups[g].mask != NULL or spans[points.groups[g].dims[0]].count != 1:
            return False
    if points.boxes is not None:
        piece_of(points, spans[0].first, spans, sides, spec, chunk_offset, data_offset)
        return True
    _describe_slices(points, spans, sides, spec, &chunk, &data)
    chunk_offset[0], data_offset[0] = <int64_t>chunk, <int64_t>data
    for g in range(points.n_groups):
        _add_offsets(points, &points.groups[g], 0, spans, sides, chunk_offset, data_offset)
    return True


cdef void _enter_mask(Points points, const Group *group, const Span *spans, Walk *walk) noexcept nogil:
    """Start at the first row of a mask in a chunk."""
    cdef int last = group.n_dims - 1
    cdef int inner = group.dims[last]
    cdef int64_t row = 0
    cdef int64_t segment
    cdef int e
    for e in range(last):
        walk.index[e] = 0
        row = row * group.mask_shape[e] + spans[group.dims[e]].origin
    walk.row = group.mask + row * group.mask_shape[last] + spans[inner].origin
    segment = points.chunk_at(inner, spans[inner].origin)
    walk.n_segments = 1 - segment + points.chunk_at(
        inner, min(spans[inner].origin + spans[inner].length, group.mask_shape[last]) - 1)
    walk.rank = group.ranks + row * group.n_segments + segment
    walk.column = 0
    walk.left = walk.rank[walk.n_segments] - walk.rank[0]


cdef void _walk_mask(const Group *group, const Span *spans, const Sides *sides, Walk *walk, int64_t *chunk_at,
                     int64_t *data_at, int64_t n) noexcept nogil:
    """Find the next n points and their offsets on both sides. At least n points must be left."""
    cdef int last = group.n_dims - 1
    cdef int64_t chunk_stride = sides.chunk_strides[group.dims[last]]
    cdef int64_t data_stride = sides.data_strides[group.dims[0]]
    cdef int64_t found = 0
    cdef int64_t inside, outside, column, i, end
    cdef int e
    while found < n:
        if walk.left == 0:
            _next_row(group, spans, walk)
            continue
        inside = 0
        for e in range(last):
            inside += walk.index[e] * sides.chunk_strides[group.dims[e]]
        outside = walk.rank[walk.n_segments] - walk.left
        end = min(n, found + walk.left)
        column = walk.column
        i = found
        while i < end:
            # Each element is noted; the next one overwrites it if it is no point.
            chunk_at[i] = inside + column * chunk_stride
            i += walk.row[column] != 0
            column += 1
        for i in range(found, end):
            data_at[i] = (outside + i - found) * data_stride
        walk.column = column
        walk.left -= end - found
        found = end
    if sides.value != NULL:
        for i in range(n):
            chunk_at[i] = 0


cdef void _next_row(const Group *group, const Span *spans, Walk *walk) noexcept nogil:
    cdef int64_t step = 1      # in rows of the mask
    cdef int64_t length
    cdef int e = group.n_dims - 2
    while e >= 0:
        walk.index[e] += 1
        walk.row += step * group.mask_shape[group.n_dims - 1]
        walk.rank += step * group.n_segments
        length = min(spans[group.dims[e]].length, group.mask_shape[e] - spans[group.dims[e]].origin)
        if walk.index[e] < length:
            break
        walk.row -= length * step * group.mask_shape[group.n_dims - 1]
        walk.rank -= length * step * group.n_segments
        walk.index[e] = 0
        step *= group.mask_shape[e]
        e -= 1
    walk.column = 0
    walk.left = walk.rank[walk.n_segments] - walk.rank[0]


cdef void _describe_slices(Points points, const Span *spans, const Sides *sides, Copy *slices, char **chunk,
                           char **data) noexcept nogil:
    """Describe the copy of the slices at each point, and move both sides to the begin of the slices."""
    cdef int64_t inside, outside
    cdef int d
    cdef int n = 0
    slices.itemsize = sides.itemsize
    slices.swap = sides.swap if sides.value == NULL else 0
    for d in range(points.ndim):
        if points.group_of[d] >= 0:
            continue
        if sides.value == NULL:
            chunk[0] += spans[d].start * sides.chunk_strides[d]
        data[0] += spans[d].out * sides.data_strides[d]
        # With one element the step does not matter, and its bytes may exceed 64 bits.
        inside = sides.chunk_strides[d] * sides.axes[d].step if spans[d].count > 1 and sides.value == NULL else 0
        outside = sides.data_strides[d] * sides.axes[d].out_step
        slices.shape[n] = spans[d].count
        slices.src_strides[n] = outside if sides.to_chunk else inside
        slices.dst_strides[n] = inside if sides.to_chunk else outside
        n += 1
    slices.ndim = n


cdef void _merge_runs(Copy *slices) noexcept nogil:
    """Make items of the runs that are contiguous on both sides."""
    cdef int n
    copy_simplify(slices)
    n = slices.ndim - 1
    if (n >= 0 and slices.swap < 2 and slices.src_strides[n] == slices.itemsize
            and slices.dst_strides[n] == slices.itemsize):
        slices.itemsize *= slices.shape[n]
        slices.ndim = n


cdef inline void _offsets(Points points, const Group *group, int64_t i, const Span *spans, const Sides *sides,
                          int64_t *chunk_offset, int64_t *data_offset) noexcept nogil:
    """Return the offsets on both sides of the i-th point of a group, in sorted order."""
    cdef int64_t point = i if group.order == NULL else group.order[i]
    cdef int64_t inside = 0
    cdef int e, d
    if sides.value == NULL:
        for e in range(group.n_dims):
            d = group.dims[e]
            inside += (points.index_of[d][point] - spans[d].origin) * sides.chunk_strides[d]
    chunk_offset[0] = inside
    data_offset[0] = point * sides.data_strides[group.dims[0]]


cdef inline void _add_offsets(Points points, const Group *group, int64_t i, const Span *spans, const Sides *sides,
                              int64_t *chunk_offset, int64_t *data_offset) noexcept nogil:
    cdef int64_t inside, outside
    _offsets(points, group, spans[group.dims[0]].first + i, spans, sides, &inside, &outside)
    chunk_offset[0] += inside
    data_offset[0] += outside


cdef void _move_block(const Copy *slices, const Sides *sides, char *chunk, const int64_t *chunk_at, char *data,
                      const int64_t *data_at, int64_t n) noexcept nogil:
    """Move the elements of the slices at n points."""
    cdef int64_t index[MAX_NDIM]
    cdef const char *src = sides.value if sides.value != NULL else <const char *>(data if sides.to_chunk else chunk)
    cdef char *dst = chunk if sides.to_chunk else data
    cdef const int64_t *src_at = data_at if sides.to_chunk else chunk_at
    cdef const int64_t *dst_at = chunk_at if sides.to_chunk else data_at
    cdef int64_t i
    cdef int d
    if n < FEW_POINTS and slices.ndim > 0:
        for i in range(n):
            copy_run(slices, src + src_at[i], dst + dst_at[i])
        return
    for d in range(slices.ndim):
        if slices.shape[d] == 0:
            return
        index[d] = 0
    while True:
        zc_move_points(src, src_at, dst, dst_at, n, slices.itemsize, slices.swap)
        d = slices.ndim - 1
        while d >= 0:
            index[d] += 1
            src += slices.src_strides[d]
            dst += slices.dst_strides[d]
            if index[d] < slices.shape[d]:
                break
            src -= slices.shape[d] * slices.src_strides[d]
            dst -= slices.shape[d] * slices.dst_strides[d]
            index[d] = 0
            d -= 1
        if d < 0:
            return


cdef void piece_of(Points points, int64_t i, const Span *spans, const Sides *sides, Copy *spec, int64_t *chunk_offset,
                   int64_t *data_offset) noexcept nogil:
    cdef int64_t piece = i if points.groups[0].order == NULL else points.groups[0].order[i]
    cdef int64_t box = points.box_of[piece]
    cdef const Side *side
    cdef int64_t low, first, out
    cdef int d
    chunk_offset[0] = 0
    data_offset[0] = box * sides.box_stride
    spec.ndim = points.ndim
    spec.itemsize = sides.itemsize
    spec.swap = sides.swap
    for d in range(points.ndim):
        side = &points.boxes.sides[box * points.ndim + d]
        low = points.index_of[d][piece]
        spec.shape[d] = points.boxes.part_of(box, d, low, points.chunk_end(d, low), &first, &out)
        spec.src_strides[d] = spec.dst_strides[d] = 0
        if sides.value == NULL:
            chunk_offset[0] += (first - spans[d].origin) * sides.chunk_strides[d]
            # With one element the step does not matter, and its bytes may exceed 64 bits.
            if spec.shape[d] > 1:
                spec.src_strides[d] = (side.step if side.step > 0 else -side.step) * sides.chunk_strides[d]
        if side.axis >= 0:
            data_offset[0] += out * sides.data_strides[side.axis]
            spec.dst_strides[d] = sides.data_strides[side.axis] if side.step > 0 else -sides.data_strides[side.axis]


cdef void _move_pieces(Points points, const Span *spans, const Sides *sides) noexcept nogil:
    """Move the selected elements of boxes from a chunk, or set them to the fill value."""
    cdef Copy spec
    cdef int64_t chunk_offset, data_offset, i
    for i in range(spans[0].first, spans[0].first + spans[0].count):
        piece_of(points, i, spans, sides, &spec, &chunk_offset, &data_offset)
        copy_simplify(&spec)
        if sides.value != NULL:
            fill_run(&spec, sides.value, sides.data + data_offset)
        else:
            copy_run(&spec, sides.chunk + chunk_offset, sides.data + data_offset)
