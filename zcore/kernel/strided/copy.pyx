# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Strided copy and fill: moves decoded elements to the caller's array, and back.

Byte order, Fortran order, a transpose and the position in the output are only byte strides on two sides, so one
function handles all of them while it moves the elements::

    for every index:   dst[sum(index * dst_strides)] = swap(src[sum(index * src_strides)])

`copy_simplify` simplifies the description once per plan: dimensions of length 1 are dropped, the target's densest
dimension becomes innermost, and dimensions that continue each other on both sides are merged. `copy_run` then moves
planes of the two innermost dimensions with the loops of `copy.h`; runs that are contiguous on both sides are `memcpy`.

Compiled, because it visits every element of every read and write. It checks nothing: shapes and strides come from
checked metadata. `copy_strided` is the same for Python, for tests.
"""
from cpython.buffer cimport PyBUF_STRIDED, PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy, memset


cdef extern from "strided/copy.h" nogil:
    ctypedef void (*zc_plane_function)(const char *, char *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                                       int64_t) noexcept nogil
    ctypedef void (*zc_rectangle_function)(const char *, int64_t, char *, int64_t, int64_t, int64_t) noexcept nogil
    void zc_choose_vectors() noexcept
    void zc_move(char *dst, const char *src, int64_t n) noexcept
    zc_plane_function zc_plane(int64_t itemsize, int swap, int dense) noexcept
    zc_rectangle_function zc_rectangle(int64_t itemsize) noexcept
    void zc_tiled(zc_plane_function plane, zc_rectangle_function rectangle, zc_plane_function leave, const char *src,
                  char *dst, int64_t n1, int64_t src1, int64_t dst1, int64_t n0, int64_t src0, int64_t dst0,
                  int64_t itemsize) noexcept


zc_choose_vectors()


cdef enum:
    # Doubling stops here: from then on the value is repeated from the L1 cache.
    FILL_NBYTES = 8192
    # Shorter sides, and items that fill much of a cache line, are moved row by row: a tile gains nothing.
    MIN_TILE = 4
    MAX_TILED_NBYTES = 32


cdef inline int64_t distance(int64_t stride) noexcept nogil:
    return stride if stride >= 0 else -stride


cdef void copy_sort(Copy *spec, bint by_source) noexcept nogil:
    cdef int64_t *strides = spec.dst_strides
    cdef int64_t *others = spec.src_strides
    cdef int64_t length, stride, other
    cdef int d, e, kept = 0
    if by_source:
        strides, others = others, strides
    # Insertion sort. Dimensions of length 1 are dropped.
    for d in range(spec.ndim):
        length, stride, other = spec.shape[d], strides[d], others[d]
        if length == 1:
            continue
        e = kept
        while e > 0 and (distance(strides[e - 1]) < distance(stride)
                         or (distance(strides[e - 1]) == distance(stride)
                             and distance(others[e - 1]) < distance(other))):
            spec.shape[e] = spec.shape[e - 1]
            strides[e] = strides[e - 1]
            others[e] = others[e - 1]
            e -= 1
        spec.shape[e], strides[e], others[e] = length, stride, other
        kept += 1
    spec.ndim = kept


cdef void copy_merge(Copy *spec) noexcept nogil:
    cdef int d, e = 0
    for d in range(1, spec.ndim):
        if (spec.src_strides[e] == spec.src_strides[d] * spec.shape[d]
                and spec.dst_strides[e] == spec.dst_strides[d] * spec.shape[d]):
            spec.shape[e] *= spec.shape[d]
        else:
            e += 1
            spec.shape[e] = spec.shape[d]
        spec.src_strides[e] = spec.src_strides[d]
        spec.dst_strides[e] = spec.dst_strides[d]
    spec.ndim = min(spec.ndim, e + 1)


cdef void copy_simplify(Copy *spec) noexcept nogil:
    cdef int d, kept, dense
    cdef int64_t length, src, dst
    for d in range(spec.ndim):
        if spec.shape[d] == 0:
            spec.ndim = 1
            spec.shape[0] = 0
            spec.src_strides[0] = spec.dst_strides[0] = spec.itemsize
            return
    copy_sort(spec, False)
    copy_merge(spec)
    # The source's densest dimension goes next to the innermost, so that both lie in one plane. A run that is contiguous
    # on both sides is moved as one item and is not sorted.
    kept = spec.ndim
    if kept > 0 and spec.src_strides[kept - 1] == spec.itemsize and spec.dst_strides[kept - 1] == spec.itemsize:
        kept -= 1
    if kept < 3:
        return
    dense = kept - 1
    for d in range(kept - 1):
        if spec.src_strides[d] != 0 and distance(spec.src_strides[d]) < distance(spec.src_strides[dense]):
            dense = d
    if dense < kept - 2:
        length, src, dst = spec.shape[dense], spec.src_strides[dense], spec.dst_strides[dense]
        for d in range(dense, kept - 2):
            spec.shape[d] = spec.shape[d + 1]
            spec.src_strides[d] = spec.src_strides[d + 1]
            spec.dst_strides[d] = spec.dst_strides[d + 1]
        spec.shape[kept - 2], spec.src_strides[kept - 2], spec.dst_strides[kept - 2] = length, src, dst


cdef void copy_by_source(Copy *spec) noexcept nogil:
    copy_sort(spec, True)
    copy_merge(spec)
    if spec.ndim == 0:
        spec.ndim = 1
        spec.shape[0] = 1
        spec.src_strides[0] = spec.dst_strides[0] = spec.itemsize


cdef void copy_run(const Copy *spec, const char *src, char *dst) noexcept nogil:
    cdef int64_t shape[MAX_NDIM + 2]
    cdef int64_t src_strides[MAX_NDIM + 2]
    cdef int64_t dst_strides[MAX_NDIM + 2]
    cdef int64_t index[MAX_NDIM + 2]
    cdef int64_t itemsize = spec.itemsize, length, along_src, along_dst
    cdef int d, e, ndim = spec.ndim
    cdef bint swap = spec.swap > 1, tiled
    cdef zc_plane_function plane, leave = NULL
    cdef zc_rectangle_function rectangle = NULL
    for d in range(ndim):
        length = spec.shape[d]
        if length == 0:
            return
        shape[d] = length
        src_strides[d] = spec.src_strides[d]
        dst_strides[d] = spec.dst_strides[d]
        if dst_strides[d] < 0:
            # Run upwards in the target: this halves the cases of the loops, and two reversed sides become contiguous.
            src += (length - 1) * src_strides[d]
            dst += (length - 1) * dst_strides[d]
            src_strides[d] = -src_strides[d]
            dst_strides[d] = -dst_strides[d]
        index[d] = 0
    if swap and spec.swap < itemsize:
        # Items of several units (complex numbers, text): the unit becomes the item, and the item a dimension.
        length = itemsize // spec.swap
        if ndim > 0 and src_strides[ndim - 1] == itemsize and dst_strides[ndim - 1] == itemsize:
            ndim -= 1
            length *= shape[ndim]
        itemsize = spec.swap
        shape[ndim], src_strides[ndim], dst_strides[ndim] = length, itemsize, itemsize
        ndim += 1
    elif not swap and ndim > 0 and src_strides[ndim - 1] == itemsize and dst_strides[ndim - 1] == itemsize:
        ndim -= 1
        itemsize *= shape[ndim]
    # A plane has two dimensions; missing ones get length 1.
    if ndim < 2:
        if ndim == 1:
            shape[1], src_strides[1], dst_strides[1] = shape[0], src_strides[0], dst_strides[0]
        elif not swap:
            zc_move(dst, src, itemsize)
            return
        else:
            shape[1], src_strides[1], dst_strides[1] = 1, itemsize, itemsize
        shape[0], src_strides[0], dst_strides[0] = 1, 0, 0
        ndim = 2
    d = ndim - 2
    e = ndim - 1
    tiled = (distance(src_strides[d]) < distance(src_strides[e]) and shape[d] >= MIN_TILE and shape[e] >= MIN_TILE
             and itemsize <= MAX_TILED_NBYTES)
    if tiled:
        if src_strides[d] == -itemsize:
            src += (shape[d] - 1) * src_strides[d]
            dst += (shape[d] - 1) * dst_strides[d]
            src_strides[d] = -src_strides[d]
            dst_strides[d] = -dst_strides[d]
        if dst_strides[e] == itemsize:
            if swap:
                leave = zc_plane(itemsize, True, True)
                swap = False
            if src_strides[d] == itemsize:
                rectangle = zc_rectangle(itemsize)
    elif shape[e] < MIN_TILE and shape[d] > shape[e]:
        # The inner loop should be the long one.
        shape[d], shape[e] = shape[e], shape[d]
        src_strides[d], src_strides[e] = src_strides[e], src_strides[d]
        dst_strides[d], dst_strides[e] = dst_strides[e], dst_strides[d]
    length, along_src, along_dst = shape[e], src_strides[e], dst_strides[e]
    plane = zc_plane(itemsize, swap, along_dst == itemsize and (distance(along_src) == itemsize or along_src == 0))
    while True:
        if tiled:
            zc_tiled(plane, rectangle, leave, src, dst, shape[d], src_strides[d], dst_strides[d], length, along_src,
                     along_dst, itemsize)
        else:
            plane(src, dst, shape[d], src_strides[d], dst_strides[d], length, along_src, along_dst, itemsize)
        e = d - 1
        while e >= 0:
            index[e] += 1
            if index[e] < shape[e]:
                src += src_strides[e]
                dst += dst_strides[e]
                break
            src -= (shape[e] - 1) * src_strides[e]
            dst -= (shape[e] - 1) * dst_strides[e]
            index[e] = 0
            e -= 1
        if e < 0:
            return


cdef void fill_run(const Copy *spec, const char *value, char *dst) noexcept nogil:
    # A copy from a source with stride zero; its dimensions merge wherever the target's do.
    cdef Copy fill
    cdef int d
    fill.ndim = spec.ndim
    fill.itemsize = spec.itemsize
    fill.swap = 0
    for d in range(spec.ndim):
        fill.shape[d] = spec.shape[d]
        fill.src_strides[d] = 0
        fill.dst_strides[d] = spec.dst_strides[d]
        if fill.dst_strides[d] < 0 and fill.shape[d] > 0:
            dst += (fill.shape[d] - 1) * fill.dst_strides[d]
            fill.dst_strides[d] = -fill.dst_strides[d]
    copy_simplify(&fill)
    if fill.ndim == 1 and fill.dst_strides[0] == fill.itemsize:
        fill_bytes(dst, fill.shape[0], value, fill.itemsize)
        return
    copy_run(&fill, value, dst)


cdef void fill_bytes(char *dst, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil:
    cdef int64_t n_bytes = n_items * itemsize, done, block
    if n_bytes <= 0:
        return
    if itemsize == 1 or memcmp(value, value + 1, itemsize - 1) == 0:
        memset(dst, value[0], n_bytes)
        return
    memcpy(dst, value, itemsize)
    done = itemsize
    while done < n_bytes:
        # `done` stays a multiple of the item size, because each block is one.
        block = min(done, n_bytes - done)
        if done > FILL_NBYTES:
            block = min(FILL_NBYTES // itemsize * itemsize if itemsize < FILL_NBYTES else itemsize, n_bytes - done)
        memcpy(dst + done, dst, block)
        done += block


cdef bint is_filled(const char *data, int64_t n_items, const char *value, int64_t itemsize) noexcept nogil:
    if n_items <= 0 or itemsize <= 0:
        return True
    # Each item is compared with the next one, so the first item decides for all. memcmp stops at the first difference.
    return memcmp(data, value, itemsize) == 0 and memcmp(data, data + itemsize, (n_items - 1) * itemsize) == 0


cdef void runs_init(Runs *runs, int ndim, const int64_t *shape, const int64_t *strides,
                    int64_t itemsize) noexcept nogil:
    cdef int d = ndim - 1
    cdef int k
    runs.itemsize = itemsize
    runs.n_items = 1
    while d >= 0 and (shape[d] == 1 or strides[d] == itemsize * runs.n_items):
        runs.n_items *= shape[d]
        d -= 1
    runs.ndim = d + 1
    for k in range(runs.ndim):
        runs.shape[k] = shape[k]
        runs.strides[k] = strides[k]


cdef bint runs_are_filled(const uint8_t *src, const Runs *runs, int64_t n_items, const char *value) noexcept nogil:
    cdef int64_t run
    for run in range(n_items // runs.n_items):
        if not is_filled(<const char *>src + run_offset(runs, run), runs.n_items, value, runs.itemsize):
            return False
    return True


def copy_strided(src, dst, int64_t swap=0):
    """Copy the elements of one buffer into another of the same shape, which lies elsewhere in memory.

    Parameters
    ----------
    src : buffer
        Any strides, also zero (broadcast) and negative.
    dst : writable buffer
        The same shape and item size, any strides.
    swap : int, optional
        As in `Copy`: 0, or the unit in bytes whose byte order is reversed.

    Examples
    --------
    >>> out = bytearray(4)
    >>> copy_strided(memoryview(b"abcdefgh")[::-2], out)
    >>> out
    bytearray(b'hfdb')
    """
    cdef Py_buffer source, target
    cdef Copy spec
    cdef int d
    PyObject_GetBuffer(src, &source, PyBUF_STRIDED_RO)
    try:
        PyObject_GetBuffer(dst, &target, PyBUF_STRIDED)
        try:
            spec.ndim, spec.itemsize, spec.swap = source.ndim, source.itemsize, swap
            assert (target.ndim, target.itemsize) == (spec.ndim, spec.itemsize)
            for d in range(spec.ndim):
                assert source.shape[d] == target.shape[d]
                spec.shape[d] = source.shape[d]
                spec.src_strides[d], spec.dst_strides[d] = source.strides[d], target.strides[d]
            with nogil:
                copy_simplify(&spec)
                copy_run(&spec, <const char *>source.buf, <char *>target.buf)
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
