# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""One chunk: decoded, and its selected elements placed in the caller's array; or merged with elements, and encoded.

A chunk whose elements have the same layout in the caller's array is decoded straight into place. Any other chunk is
decoded into the worker's scratch and its elements are copied from there. If all chunks of the plan fit into the cache,
they are decoded into memory of their own, which is cached.

A chunk of which all elements inside the array are written is encoded from the caller's elements. A blosc chunk is
merged block by block, so that only changed blocks are encoded anew; any other chunk is decoded and changed.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize

from zcore.kernel.atomics cimport zc_load
from zcore.kernel.codec.table cimport NOT_BLOCKWISE, hold_bytes, raised_in
from zcore.kernel.io.files cimport FAILED, buffer_reserve
from zcore.kernel.plan.cache cimport Kept, kept_new, kept_release
from zcore.kernel.plan.plan cimport FILLED
from zcore.kernel.select.gather cimport Sides, single_part
from zcore.kernel.select.tasks cimport Layout
from zcore.kernel.status cimport BLOSC_NBYTES, CHUNK_SIZE, OK, RAISED, status_clear
from zcore.kernel.strided.copy cimport (
    MAX_NDIM, Copy, Runs, copy_by_source, copy_run, copy_simplify, fill_bytes, fill_run, is_filled, runs_are_filled,
)


cdef int decode_chunk(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                      Worker *worker) noexcept nogil:
    cdef int code = _decode_and_place(plan, encoded, n_bytes, spans, worker)
    if not _is_cut(plan, code, spans, worker):
        return code
    if worker.kept != NULL:
        kept_release(worker.kept)
        worker.kept = NULL
    code = _decode_cut(plan, encoded, n_bytes, spans, worker)
    if code == OK:
        plan.move(spans, &worker.layout, False, <char *>worker.decoded.data)
    return code


cdef int _decode_whole(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                       Worker *worker) noexcept nogil:
    """Decode a chunk to `worker.decoded`."""
    # The scratch is reserved only here: an absent chunk needs no memory.
    if buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK:
        return worker.status.code
    cdef int code = plan.program.decode(encoded, n_bytes, worker.decoded.data, worker.layout.n_bytes,
                                        worker.n_inner_threads, &worker.work, &worker.status)
    return _decode_cut(plan, encoded, n_bytes, spans, worker) if _is_cut(plan, code, spans, worker) else code


cdef int _decode_and_place(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                           Worker *worker) noexcept nogil:
    cdef char *out = plan.data + plan.data_offset(spans)
    cdef bint whole = plan.is_whole(spans)
    cdef uint8_t *chunk
    cdef Runs runs
    cdef Copy part
    cdef int64_t chunk_at, data_at
    cdef int code
    if plan.items is not None:
        return _move_items(plan, encoded, n_bytes, plan.axes, spans, worker)
    if worker.kept != NULL:
        chunk = <uint8_t *>worker.kept.words
        code = plan.program.decode(encoded, n_bytes, chunk, worker.layout.n_bytes, worker.n_inner_threads,
                                   &worker.work, &worker.status)
        if code == OK:
            plan.move(spans, &worker.layout, False, <char *>chunk)
        return code
    if plan.program.n_steps == 0 and n_bytes == worker.layout.n_bytes and not (whole and worker.layout.in_place):
        # Stored as it is: the elements are moved from there.
        plan.move(spans, &worker.layout, False, <char *>encoded)
        return OK
    if whole and worker.layout.in_place:
        return plan.program.decode(encoded, n_bytes, <uint8_t *>out, worker.layout.n_bytes, worker.n_inner_threads,
                                   &worker.work, &worker.status)
    if whole and worker.n_inner_threads == 1 and plan.runs_of(spans, &runs):
        code = buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status)
        if code == OK:
            code = plan.program.scatter(encoded, n_bytes, worker.layout.n_bytes, &runs, <uint8_t *>out,
                                        worker.decoded.data, &worker.status)
        if code != NOT_BLOCKWISE:
            return code
    if not whole and plan.item_nbytes == plan.opened.itemsize and _describe_part(plan, spans, worker, &part, &chunk_at,
                                                                                 &data_at):
        copy_by_source(&part)
        code = plan.program.select(encoded, n_bytes, worker.layout.n_bytes, &part, chunk_at,
                                   worker.n_inner_threads > 1, <uint8_t *>plan.data + data_at, &worker.decoded,
                                   &worker.status)
        if code != NOT_BLOCKWISE:
            return code
    code = _decode_whole(plan, encoded, n_bytes, spans, worker)
    if code == OK:
        plan.move(spans, &worker.layout, False, <char *>worker.decoded.data)
    return code


cdef bint _describe_part(Plan plan, const Span *spans, Worker *worker, Copy *part, int64_t *chunk_at,
                         int64_t *data_at) noexcept nogil:
    """Describe the copy of the selected elements of a chunk, if they are a box; else return False."""
    cdef Sides sides
    if plan.points is not None:
        plan._describe(&worker.layout, &sides)
        return single_part(plan.points, spans, &sides, part, chunk_at, data_at)
    plan.copy_spec(spans, &worker.layout, False, part)
    chunk_at[0], data_at[0] = plan.chunk_offset(spans, &worker.layout), plan.data_offset(spans)
    return True


cdef int _move_items(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Axis *axes, const Span *spans,
                     Worker *worker) noexcept with gil:
    """Read elements of varying length from a chunk, or set them to the fill value if `n_bytes` is -1."""
    try:
        try:
            inside, outside = plan.selections(axes, spans)
            if n_bytes < 0:
                plan.items.fill(outside)
            else:
                raw = PyBytes_FromStringAndSize(<const char *>encoded, n_bytes)
                plan.items.read(raw, plan.lengths_of(spans), inside, outside)
            return OK
        except BaseException as exception:
            return raised_in(&worker.work, exception, &worker.status)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return RAISED


cdef bint _is_cut(Plan plan, int code, const Span *spans, Worker *worker) noexcept nogil:
    """Whether a chunk that does not decode is a border chunk, stored without the elements outside the array."""
    cdef int64_t n_bytes = plan.opened.itemsize
    cdef int d
    if not plan.opened.lenient or plan.objects != plan.axes or (code != BLOSC_NBYTES and code != CHUNK_SIZE):
        return False
    for d in range(plan.ndim):
        n_bytes *= spans[d].valid
    return worker.status.found == n_bytes


cdef int _decode_cut(Plan plan, const uint8_t *encoded, int64_t n_bytes, const Span *spans,
                     Worker *worker) noexcept nogil:
    """Decode such a chunk to the scratch, with the fill value outside. Early 2016 code stored such chunks."""
    cdef int64_t lengths[MAX_NDIM]
    cdef Layout cut
    cdef Copy spec
    cdef int d, code
    status_clear(&worker.status)
    for d in range(plan.ndim):
        lengths[d] = spans[d].valid
    plan.measure(lengths, &cut)
    if (buffer_reserve(&worker.batch, cut.n_bytes, &worker.status) != OK
            or buffer_reserve(&worker.decoded, worker.layout.n_bytes, &worker.status) != OK):
        return worker.status.code
    code = plan.program.decode(encoded, n_bytes, worker.batch.data, cut.n_bytes, 1, &worker.work, &worker.status)
    if code != OK:
        return code
    fill_bytes(<char *>worker.decoded.data, worker.layout.n_items, plan.opened.stored_fill, plan.opened.itemsize)
    spec.ndim = plan.ndim
    spec.itemsize = plan.opened.itemsize
    spec.swap = 0
    for d in range(plan.ndim):
        spec.shape[d] = lengths[d]
        spec.src_strides[d] = cut.strides[d]
        spec.dst_strides[d] = worker.layout.strides[d]
    copy_simplify(&spec)
    copy_run(&spec, <const char *>worker.batch.data, <char *>worker.decoded.data)
    return OK


cdef int place_fill(Plan plan, const Axis *axes, const Span *spans, Worker *worker) noexcept nogil:
    if plan.items is not None:
        return _move_items(plan, NULL, -1, axes, spans, worker)
    plan.fill_in(spans)
    return OK


# cached chunks

cdef bint place_kept(Plan plan, const Identity *identity, int64_t base, int64_t size, const Span *spans,
                     Worker *worker) noexcept nogil:
    cdef Kept *kept = plan.chunks.find(identity, base, size, plan.form, worker.layout.n_bytes, False)
    if kept == NULL:
        return False
    plan.move(spans, &worker.layout, False, <char *>kept.words)
    kept_release(kept)
    return True


cdef void begin_kept(Plan plan, const Identity *identity, int64_t base, int64_t size, Worker *worker) noexcept nogil:
    if worker.layout.n_bytes <= zc_load(&plan.chunks.max_nbytes):
        worker.kept = kept_new(identity, base, size, plan.form, worker.layout.n_bytes)


cdef void end_kept(Plan plan, int code, Worker *worker) noexcept nogil:
    if worker.kept == NULL:
        return
    if code == OK:
        plan.chunks.put(worker.kept)
    kept_release(worker.kept)
    worker.kept = NULL


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
    return OK if worker.n_merged > 0 else _decode_whole(plan, encoded, n_bytes, spans, worker)


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
