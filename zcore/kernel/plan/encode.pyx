# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Merging the elements to be written with a stored chunk, and encoding a chunk.

A chunk of which all elements inside the array are written is encoded from the caller's elements. A blosc chunk is
merged block by block, so that only changed blocks are encoded anew; any other chunk is decoded and changed.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize

from zcore.kernel.codec.table cimport NOT_BLOCKWISE, hold_bytes, raised_in
from zcore.kernel.io.files cimport FAILED, buffer_reserve
from zcore.kernel.plan.decode cimport decode_whole
from zcore.kernel.plan.plan cimport FILLED
from zcore.kernel.select.tasks cimport Layout
from zcore.kernel.status cimport OK
from zcore.kernel.strided.copy cimport (
    Copy, Runs, copy_by_source, copy_simplify, fill_bytes, fill_run, is_filled, runs_are_filled,
)


cdef int merge_chunk(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                     Worker *worker) noexcept nogil:
    if plan.items is not None:
        # `_encode_items` decodes it.
        worker.content.data = encoded
        worker.content.size = n_bytes
        return OK
    worker.n_merged = _merge_blocks(plan, encoded, n_bytes, spans, worker)
    if worker.n_merged == FAILED:
        return worker.status.code
    return OK if worker.n_merged > 0 else decode_whole(plan, encoded, n_bytes, spans, worker)


cdef int64_t _merge_blocks(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil:
    """Change the selected elements of a chunk block by block: see `Program.merge`."""
    cdef Copy part
    cdef int64_t offset
    cdef const uint8_t *elements
    cdef const uint8_t *fill = NULL if worker.keeps_filled else <const uint8_t *>plan.opened.stored_fill
    if (not plan.has_elements or plan.points is not None or plan.item_nbytes != plan.opened.itemsize
            or is_inside(plan, spans) != 1):
        return NOT_BLOCKWISE
    plan.copy_spec(spans, &worker.layout, False, &part)
    copy_by_source(&part)
    offset = plan.chunk_offset(spans, &worker.layout)
    elements = <const uint8_t *>plan.data + plan.data_offset(spans)
    return plan.program.merge(encoded, n_bytes, worker.layout.n_bytes, &part, offset, plan.n_inner_threads > 1,
                              elements, fill, &worker.decoded, &worker.status)


cdef int64_t encode_merged_chunk(Plan plan, const Span *spans, bint found, Worker *worker,
                                 const uint8_t **encoded) noexcept nogil:
    cdef char *chunk = <char *>worker.decoded.data
    if plan.items is not None:
        return _encode_items(plan, spans, found, worker, encoded)
    if found and worker.n_merged > 0:
        encoded[0] = worker.decoded.data
        return worker.n_merged
    if found:
        _reset_outside(plan, spans, &worker.layout, chunk)
    else:
        fill_bytes(chunk, worker.layout.n_items, plan.opened.stored_fill, plan.opened.itemsize)
    if plan.has_elements:
        plan.move(spans, &worker.layout, True, chunk)
    return _encode(plan, <const uint8_t *>chunk, worker, encoded)


cdef int64_t encode_covered_chunk(Plan plan, const Span *spans, Worker *worker, const uint8_t **encoded) noexcept nogil:
    cdef const uint8_t *chunk = <const uint8_t *>plan.data + plan.data_offset(spans)
    cdef bint whole = plan.is_whole(spans)
    cdef Runs runs
    cdef int64_t n
    if plan.items is not None:
        return _encode_items(plan, spans, False, worker, encoded)
    if not (whole and worker.layout.in_place):
        if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
            return FAILED
        if whole and worker.n_inner_threads == 1 and plan.runs_of(spans, &runs):
            if not worker.keeps_filled and runs_are_filled(chunk, &runs, worker.layout.n_items,
                                                           plan.opened.stored_fill):
                return FILLED
            n = plan.program.gather(chunk, &runs, worker.layout.n_bytes, &worker.encoded, worker.decoded.data,
                                    &worker.work, &worker.status)
            if n != NOT_BLOCKWISE:
                encoded[0] = worker.encoded.data
                return n
        chunk = worker.decoded.data
        if not whole:
            fill_bytes(<char *>chunk, worker.layout.n_items, plan.opened.stored_fill, plan.opened.itemsize)
        plan.move(spans, &worker.layout, True, <char *>chunk)
    return _encode(plan, chunk, worker, encoded)


cdef int64_t _encode(Plan plan, const uint8_t *chunk, Worker *worker, const uint8_t **encoded) noexcept nogil:
    """Encode a chunk of contiguous elements: return its size, FILLED or FAILED."""
    cdef int64_t n
    if not worker.keeps_filled and is_filled(<const char *>chunk, worker.layout.n_items, plan.opened.stored_fill,
                                             plan.opened.itemsize):
        return FILLED
    n = plan.program.encode(chunk, worker.layout.n_bytes, &worker.encoded, encoded, worker.n_inner_threads,
                            &worker.work, &worker.status)
    return FAILED if n < 0 else n


cdef void _reset_outside(Plan plan, const Span *spans, const Layout *layout, char *chunk) noexcept nogil:
    """Set the elements of a chunk outside `old_shape` to the fill value."""
    cdef Copy spec
    cdef int64_t kept
    cdef int d, e
    for d in range(plan.ndim):
        kept = max(0, min(plan.old_shape[d] - spans[d].origin, spans[d].length))
        if kept == spans[d].length:
            continue
        spec.ndim = plan.ndim
        spec.itemsize = plan.opened.itemsize
        spec.swap = 0
        for e in range(plan.ndim):
            spec.shape[e] = spans[e].length
            spec.src_strides[e] = 0
            spec.dst_strides[e] = layout.strides[e]
        spec.shape[d] = spans[d].length - kept
        copy_simplify(&spec)
        fill_run(&spec, plan.opened.stored_fill, chunk + kept * layout.strides[d])


cdef int64_t _encode_items(Plan plan, const Span *spans, bint found, Worker *worker,
                           const uint8_t **encoded) noexcept with gil:
    """Change the chunk that was `found`, or a new one, and encode it: see `encode_merged_chunk`."""
    cdef int d
    cdef int64_t n
    try:
        try:
            old = None
            if found:
                old = PyBytes_FromStringAndSize(<const char *>worker.content.data, worker.content.size)
            inside, outside = plan.selections(plan.axes, spans) if plan.has_elements else (None, None)
            kept = tuple([max(0, min(plan.old_shape[d] - spans[d].origin, spans[d].length))
                          for d in range(plan.ndim)])
            new = plan.items.write(old, plan.lengths_of(spans), kept, inside, outside, bool(worker.keeps_filled))
            n = FILLED if new is None else hold_bytes(&worker.work, new, encoded)
            return n
        except BaseException as exception:
            raised_in(&worker.work, exception, &worker.status)
            worker.status.is_encode = not found
            return FAILED
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return FAILED


cdef int is_inside(Plan plan, const Span *chunk) noexcept nogil:
    cdef int d
    cdef int inside = 1
    for d in range(plan.ndim):
        if chunk[d].origin >= plan.old_shape[d]:
            return 0
        if chunk[d].origin > plan.old_shape[d] - chunk[d].length:
            inside = -1
    return inside
