# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""The functions behind `zcore.h`: handles of open arrays and their writers, for callers that hold no GIL.

Compiled because these callers are C. A read or write of an array in a directory goes to its `Transfers` and needs no
Python. Everything else, and everything that `Transfers` leaves undone, goes to the callables from `install`, with the
GIL.

A handle is not an address but a number: the index of a slot, and how often the slot was used. So a closed handle is
always distinguished from an open one, and no freed memory is accessed.
"""
from contextlib import suppress

from zcore import errors

cimport cython
from cpython.bytes cimport PyBytes_AsString, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.math cimport fabs
from libc.stdint cimport INT64_MAX, int64_t, intptr_t, uintptr_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, llabs
from libc.string cimport memcpy

from zcore.capi cimport *
from zcore.kernel.atomics cimport zc_add, zc_back_off, zc_load, zc_store
from zcore.kernel.embed.transfers cimport Transfers
from zcore.kernel.io.locks cimport section_enter
from zcore.kernel.memory cimport MAX_NBYTES
from zcore.kernel.select.tasks cimport Selected
from zcore.kernel.strided.copy cimport MAX_NDIM

cdef extern from "Python.h" nogil:
    ctypedef struct PyThreadState:
        pass
    int PyGILState_Check()
    PyThreadState *PyEval_SaveThread()
    void PyEval_RestoreThread(PyThreadState *state)
    int PyBUF_READ, PyBUF_WRITE

cdef extern from "pthread.h" nogil:
    int pthread_atfork(void (*before)() noexcept nogil, void (*in_parent)() noexcept nogil,
                       void (*in_child)() noexcept nogil)

cdef extern from *:
    """static _Thread_local void *zc_innermost;"""
    void *zc_innermost         # the `Call` that this thread is in; a signal handler may make calls inside of another

cdef enum:
    MAX_THREADS = 64           # per call
    BLOCK = 1024               # slots that are allocated at once and never freed
    MAX_BLOCKS = 1024
    INDEX_BITS = 20

cdef int64_t LAST_GENERATION = (<uintptr_t>-1 >> 1) >> INDEX_BITS      # a handle has no more bits, and is positive

cdef enum Made:
    OPENED
    CREATED
    ADOPTED

cdef enum Asked:               # the first ones may change the array, and the handle takes that over
    RESIZE
    REFRESH
    SET_ATTRIBUTE
    SYNC
    EXPECT
    ATTRIBUTES
    OPEN_WRITER
    N_GIVEN
    FLUSH
    CLOSE
    ABORT

cdef enum Kind:                # what a handle stands for
    NOTHING                    # it was closed
    AN_ARRAY
    A_WRITER

cdef enum Moved:
    READ
    WRITE
    APPEND                     # to a writer, as the next one
    WRITE_BOX

cdef struct Slot:
    int64_t generation         # how often the slot was used; the open handle, if any, has this number
    int64_t n_inside           # calls that are using it; 0 acquires what they did, before the handle is freed
    int64_t kind               # a Kind, which releases the generation and the handle
    void *handle               # a Handle
    int64_t next_free          # index + 1; 0: none

cdef struct Call:              # one call that is using a slot, on the stack of its thread
    const void *number         # the handle
    Slot *slot
    void *transfers            # what it has borrowed, or NULL
    bint closes                # the handle was closed inside of it, so it frees the handle when it leaves
    Call *outer

cdef Slot *_blocks[MAX_BLOCKS]
cdef int64_t _n_slots = 0      # releases a new block
cdef int64_t _first_free = 0
cdef int64_t _guard = 0        # of the slots, for `section_enter`

_calls = None
_CODES = {
    errors.ZcoreError: ZCORE_ERROR, errors.NodeNotFoundError: ZCORE_NODE_NOT_FOUND,
    errors.NodeExistsError: ZCORE_NODE_EXISTS, errors.ArrayMismatchError: ZCORE_ARRAY_MISMATCH,
    errors.OutOfMemoryError: ZCORE_OUT_OF_MEMORY, errors.MetadataError: ZCORE_METADATA,
    errors.UnsupportedError: ZCORE_UNSUPPORTED, errors.UnknownCodecError: ZCORE_UNKNOWN_CODEC,
    errors.SelectionError: ZCORE_SELECTION, errors.HugeIndexError: ZCORE_HUGE_INDEX, errors.StoreError: ZCORE_STORE,
    errors.InvalidKeyError: ZCORE_INVALID_KEY, errors.KeyConflictError: ZCORE_KEY_CONFLICT,
    errors.ReadOnlyError: ZCORE_READ_ONLY, errors.NotADirectoryStoreError: ZCORE_NOT_A_DIRECTORY_STORE,
    errors.LockError: ZCORE_LOCK, errors.ReferenceTargetError: ZCORE_REFERENCE_TARGET,
    errors.ReferenceFormatError: ZCORE_REFERENCE_FORMAT, errors.AsdfFormatError: ZCORE_ASDF_FORMAT,
    errors.ChunkError: ZCORE_CHUNK, errors.ChunkMemoryError: ZCORE_CHUNK_MEMORY, errors.CodecError: ZCORE_CODEC,
    errors.ChecksumError: ZCORE_CHECKSUM, errors.ShardIndexError: ZCORE_SHARD_INDEX,
    errors.TruncatedError: ZCORE_TRUNCATED, errors.WriterError: ZCORE_WRITER,
    KeyboardInterrupt: ZCORE_INTERRUPTED, MemoryError: ZCORE_OUT_OF_MEMORY, ValueError: ZCORE_ARGUMENT,
    TypeError: ZCORE_ARGUMENT, BaseException: ZCORE_PYTHON,
}


def install(calls):
    """Set the functions that need Python.

    Parameters
    ----------
    calls : module or object
        With ``open(place, mode, options)`` and ``create(place, shape, chunks, dtype, options)``, which return an array;
        ``described(array)``, see `Handle`; ``read(array, box, memory, offset, strides)``, ``write``, ``resize``,
        ``refresh``, ``attributes``, ``set_attribute``, ``sync``, ``expect``; ``writer(array, shape, axis, options)``,
        which returns a writer; ``append(writer, box, memory, offset, strides)``, ``write_box``.
    """
    global _calls
    _calls = calls


cdef class Handle:
    """The array behind a handle, or the writer: that has `of`, and keeps the lengths and the type it was opened with.

    The lengths, the type and the `Transfers` are those of the array as of the handle's last look. They are changed
    in a critical section (with a GIL, under the GIL) and under `guard`, and read under `guard`.
    """

    cdef object array          # or a Writer
    cdef Handle of             # of the array that a writer writes
    cdef object seen           # `update` compares it to find changes
    cdef Transfers transfers   # None: each call takes the GIL
    cdef void *current         # the same, for calls without the GIL
    cdef list retired          # `Transfers` that calls may still be using
    cdef int64_t guard
    cdef int ndim
    cdef int64_t shape[MAX_NDIM]
    cdef int64_t chunks[MAX_NDIM]
    cdef int64_t objects[MAX_NDIM]
    cdef zcore_dtype dtype

    cdef int update(self) except -1:
        """Take over the array's current state."""
        # Without a GIL, another thread may come to the same place meanwhile.
        with cython.critical_section(self):
            before = self.seen
        described = _calls.described(self.array, before)
        if described is not None:
            with cython.critical_section(self):
                _adopt(self, described)
        return 0

    cdef void *borrow(self, Call *call) noexcept nogil:
        """Return the current `Transfers`, which stay valid until `give_back`; or NULL."""
        section_enter(&self.guard)
        call.transfers = self.current
        if call.transfers != NULL:
            zc_add(&(<Transfers>call.transfers).n_inside, 1)
        zc_store(&self.guard, 0)
        return call.transfers


cdef int _adopt(Handle self, tuple described) except -1:
    """Replace the former state, within the critical section of this handle."""
    cdef Transfers old
    cdef bytes name
    cdef int d
    seen, shape, chunks, objects, kind, byte_order, itemsize, name, transfers = described
    if self.seen is not None and (len(shape), ord(kind), ord(byte_order), itemsize) != (
            self.ndim, self.dtype.kind, self.dtype.byte_order, self.dtype.itemsize):
        # The caller's memory fits the old number of lengths and the old elements.
        raise errors.StoreError("the array was replaced by one of another type or number of dimensions; open it "
                                "again")
    if len(shape) > ZCORE_MAX_NDIM:
        raise errors.UnsupportedError(f"an array of {len(shape)} dimensions", feature="more dimensions than in C")
    section_enter(&self.guard)
    self.ndim = <int>len(shape)
    for d in range(self.ndim):
        self.shape[d], self.chunks[d], self.objects[d] = shape[d], chunks[d], objects[d]
    self.dtype.kind, self.dtype.byte_order, self.dtype.itemsize = ord(kind), ord(byte_order), itemsize
    memcpy(self.dtype.name, PyBytes_AsString(name), PyBytes_GET_SIZE(name) + 1)
    old, self.transfers = self.transfers, transfers
    self.current = NULL if transfers is None else <void *>transfers
    zc_store(&self.guard, 0)
    self.seen = seen
    self.retired = [retired for retired in self.retired if _is_used(retired)]
    if old is not None and _is_used(old):
        self.retired.append(old)
    return 0


cdef void give_back(Call *call) noexcept nogil:
    zc_add(&(<Transfers>call.transfers).n_inside, -1)
    call.transfers = NULL


cdef bint _is_used(Transfers transfers):
    return zc_load(&transfers.n_inside) != 0


# handles

cdef Slot *_slot_of(const void *number) noexcept nogil:
    """Return the slot of a handle, open or not; NULL if the number never was a handle."""
    cdef int64_t index = (<int64_t><intptr_t>number & ((1 << INDEX_BITS) - 1)) - 1
    if <int64_t><intptr_t>number <= 0 or index < 0 or index >= zc_load(&_n_slots):
        return NULL
    return &_blocks[index // BLOCK][index % BLOCK]


cdef Slot *_enter(Kind kind, const void *number, Call *call, zcore_error *error) noexcept nogil:
    """Begin a call: return the slot of an open handle, which is there until `_leave`; else NULL, with the error."""
    cdef Slot *slot = _slot_of(number)
    cdef const char *message
    global zc_innermost
    if slot != NULL:
        call.number, call.slot, call.transfers, call.closes = number, slot, NULL, False
        call.outer = <Call *>zc_innermost
        zc_innermost = <void *>call
        zc_add(&slot.n_inside, 1)
        if zc_load(&slot.generation) == <int64_t><intptr_t>number >> INDEX_BITS and zc_load(&slot.kind) == kind:
            return slot
        _leave(call)
    if number == NULL:
        message = "the array is NULL" if kind == AN_ARRAY else "the writer is NULL"
        _fail(error, ZCORE_ARGUMENT, message)
    else:
        message = "the array was closed, or never was one" if kind == AN_ARRAY else (
            "the writer was closed, or never was one")
        _fail(error, ZCORE_CLOSED, message)
    return NULL


cdef void _leave(Call *call) noexcept nogil:
    global zc_innermost
    zc_innermost = <void *>call.outer
    zc_add(&call.slot.n_inside, -1)
    if call.closes:
        _free(call.number)


cdef zcore_array *_new_handle(object array) except NULL:
    cdef Handle handle = Handle.__new__(Handle)
    handle.array = array
    handle.retired = []
    handle.update()
    return <zcore_array *>_number_of(handle, AN_ARRAY)


cdef zcore_writer *_new_writer(Handle of, int axis, str options) except NULL:
    cdef Handle handle = Handle.__new__(Handle)
    of.update()
    section_enter(&of.guard)
    handle.ndim, handle.shape, handle.dtype = of.ndim, of.shape, of.dtype
    zc_store(&of.guard, 0)
    handle.of = of
    handle.array = _calls.writer(of.array, tuple([handle.shape[d] for d in range(handle.ndim)]), axis, options)
    # Any number of frames.
    handle.shape[<int>handle.array.axis] = INT64_MAX
    return <zcore_writer *>_number_of(handle, A_WRITER)


cdef void *_number_of(Handle handle, Kind kind) except NULL:
    """Give a slot to a new handle; return the number."""
    cdef Slot *slot
    cdef Slot *block
    cdef int64_t index
    section_enter(&_guard)
    global _first_free, _n_slots
    if _first_free == 0:
        block = NULL
        if _n_slots < MAX_BLOCKS * BLOCK - 1:
            if _n_slots % BLOCK == 0:
                _blocks[_n_slots // BLOCK] = <Slot *>calloc(BLOCK, sizeof(Slot))
            block = _blocks[_n_slots // BLOCK]
        if block == NULL:
            zc_store(&_guard, 0)
            raise errors.OutOfMemoryError("no memory for one more handle")
        zc_add(&_n_slots, 1)
        index = _n_slots - 1
    else:
        index = _first_free - 1
        _first_free = _blocks[index // BLOCK][index % BLOCK].next_free
    zc_store(&_guard, 0)
    slot = &_blocks[index // BLOCK][index % BLOCK]
    Py_INCREF(handle)
    slot.handle = <void *>handle
    zc_store(&slot.generation, slot.generation + 1)
    zc_store(&slot.kind, kind)
    return <void *><intptr_t>(slot.generation << INDEX_BITS | (index + 1))


cdef void _close(zcore_array *array) noexcept nogil:
    _close_as(AN_ARRAY, array)


cdef void _close_as(Kind kind, const void *number) noexcept nogil:
    cdef Slot *slot = _slot_of(number)
    cdef int64_t generation = <int64_t><intptr_t>number >> INDEX_BITS
    cdef Call *call = <Call *>zc_innermost
    cdef Call *outermost = NULL
    cdef bint closes = False
    if slot == NULL:
        return
    section_enter(&_guard)
    if slot.kind == kind and slot.generation == generation:
        zc_store(&slot.kind, NOTHING)
        closes = True
    zc_store(&_guard, 0)
    if not closes:
        return
    while call != NULL:
        if call.slot == slot:
            outermost = call
        call = call.outer
    if outermost != NULL:
        # A signal handler closes what its own thread is using.
        outermost.closes = True
    else:
        _free(number)


cdef void _free(const void *number) noexcept nogil:
    """Wait until no call uses a handle that was closed, and free its slot."""
    cdef Slot *slot = _slot_of(number)
    cdef PyThreadState *python = _leave_python()
    cdef void *handle
    cdef int64_t n_waits = 0
    # An atomic addition, not only a load: either the other call is counted here, or it sees that the handle is closed.
    while zc_add(&slot.n_inside, 0):
        zc_back_off(n_waits)
        n_waits += 1
    _enter_python(python)
    with gil:
        handle, slot.handle = slot.handle, NULL
        Py_DECREF(<object>handle)
    section_enter(&_guard)
    global _first_free
    if slot.generation < LAST_GENERATION:
        slot.next_free = _first_free
        _first_free = <int64_t><intptr_t>number & ((1 << INDEX_BITS) - 1)
    zc_store(&_guard, 0)


cdef void _after_fork_in_child() noexcept nogil:
    """Count again: calls of this thread go on, those of the parent's other threads do not exist in this process."""
    cdef Call *call = <Call *>zc_innermost
    cdef Slot *slot
    cdef int64_t i
    global _guard
    _guard = 0
    for i in range(_n_slots):
        slot = &_blocks[i // BLOCK][i % BLOCK]
        slot.n_inside = 0
        if slot.handle != NULL:
            (<Handle>slot.handle).guard = 0
            if (<Handle>slot.handle).current != NULL:
                (<Transfers>(<Handle>slot.handle).current).n_inside = 0
    while call != NULL:
        call.slot.n_inside += 1
        # Those of `retired` were not forgotten.
        if call.transfers != NULL and call.transfers == (<Handle>call.slot.handle).current:
            zc_add(&(<Transfers>call.transfers).n_inside, 1)
        call = call.outer


# Not `os.register_at_fork`: a program may fork without Python.
pthread_atfork(NULL, NULL, _after_fork_in_child)


# A caller that holds the GIL must not keep it while it waits for other threads, which may need it to continue.

cdef PyThreadState *_leave_python() noexcept nogil:
    return PyEval_SaveThread() if PyGILState_Check() else NULL


cdef void _enter_python(PyThreadState *python) noexcept nogil:
    if python != NULL:
        PyEval_RestoreThread(python)


# errors

cdef int _fail(zcore_error *error, int code, const char *message) noexcept nogil:
    cdef size_t i = 0
    if error != NULL:
        error.code = code
        error.sys_errno = 0
        while message[i] != 0 and i < sizeof(error.message) - 1:
            error.message[i] = message[i]
            i += 1
        error.message[i] = 0
    return -1


cdef int _fail_at(zcore_error *error, int code, const char *sentence, int d, int64_t found,
                  int64_t expected) noexcept nogil:
    _fail(error, code, "")
    if error != NULL:
        snprintf(error.message, sizeof(error.message), sentence, d, <long long>found, <long long>expected)
    return -1


cdef int _raised(zcore_error *error, object exception) noexcept:
    """Record a Python exception in `error`; return -1."""
    cdef bytes message
    cdef Py_ssize_t n
    try:
        try:
            text = exception.message if isinstance(exception, errors.ZcoreError) else str(exception)
            code = next(_CODES[cls] for cls in type(exception).__mro__ if cls in _CODES)
            if not isinstance(exception, errors.ZcoreError):
                text = f"{type(exception).__name__}: {text}"
            # Cut between characters.
            message = text.encode("utf-8", "replace").replace(b"\0", b"?")[:sizeof(error.message) - 1].decode(
                "utf-8", "ignore").encode()
            number = getattr(exception, "errno", None)
            if error != NULL:
                error.code = code
                error.sys_errno = number if isinstance(number, int) else 0
                n = PyBytes_GET_SIZE(message)
                memcpy(error.message, PyBytes_AsString(message), n + 1)
            return -1
        except BaseException:
            pass
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return _fail(error, ZCORE_PYTHON, "an exception that has no words")


cdef int _refused(Handle handle, zcore_error *error, object exception) noexcept:
    """`_raised`, of a call that was in the writer when another one closed it."""
    _raised(error, exception)
    try:
        if error != NULL and error.code == ZCORE_ARGUMENT and handle.of is not None and handle.array._is_closed:
            _fail(error, ZCORE_CLOSED, "the writer was closed")
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return -1


cdef str _text(const char *text, str name):
    if text == NULL:
        raise ValueError(f"{name} is NULL")
    return text.decode()


# the functions of the table

cdef zcore_array *_made(Made how, const char *place, const char *text, int ndim, const int64_t *shape,
                        const int64_t *chunks, const char *options, void *found, zcore_error *error) noexcept with gil:
    """Make a handle. `text` is the mode, or the type of a new array; `found` is an array of Python."""
    cdef int d
    try:
        try:
            keywords = None if options == NULL else options.decode()
            if how == OPENED:
                array = _calls.open(_text(place, "place"), "r" if text == NULL else text.decode(), keywords)
            elif how == CREATED:
                if not 0 <= ndim <= ZCORE_MAX_NDIM:
                    raise ValueError(f"ndim is {ndim}, expected 0 to {ZCORE_MAX_NDIM}")
                if shape == NULL and ndim > 0:
                    raise ValueError("shape is NULL")
                lengths = tuple([shape[d] for d in range(ndim)])
                cut = None if chunks == NULL else tuple([chunks[d] for d in range(ndim)])
                array = _calls.create(_text(place, "place"), lengths, cut, _text(text, "dtype"), keywords)
            elif found == NULL:
                raise ValueError("array is NULL")
            else:
                array = _calls.adopted(<object>found)
            handle = _new_handle(array)
            _fail(error, ZCORE_OK, "")
            return handle
        except BaseException as exception:
            _raised(error, exception)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return NULL


cdef zcore_array *_open(const char *place, const char *mode, const char *options, zcore_error *error) noexcept nogil:
    return _made(OPENED, place, mode, 0, NULL, NULL, options, NULL, error)


cdef zcore_array *_create(const char *place, int ndim, const int64_t *shape, const int64_t *chunks, const char *dtype,
                          const char *options, zcore_error *error) noexcept nogil:
    return _made(CREATED, place, dtype, ndim, shape, chunks, options, NULL, error)


cdef zcore_array *_from_object(void *array, zcore_error *error) noexcept nogil:
    return _made(ADOPTED, NULL, NULL, 0, NULL, NULL, NULL, array, error)


cdef int _ndim(const zcore_array *array) noexcept nogil:
    cdef Call call
    cdef Slot *slot = _enter(AN_ARRAY, array, &call, NULL)
    cdef int ndim
    if slot == NULL:
        return -1
    ndim = (<Handle>slot.handle).ndim
    _leave(&call)
    return ndim


cdef void _lengths(const zcore_array *array, int which, int64_t *lengths) noexcept nogil:
    cdef Call call
    cdef Slot *slot = _enter(AN_ARRAY, array, &call, NULL)
    cdef const int64_t *found
    if slot == NULL:
        return
    if lengths != NULL:
        section_enter(&(<Handle>slot.handle).guard)
        found = (<Handle>slot.handle).shape
        if which == 1:
            found = (<Handle>slot.handle).chunks
        elif which == 2:
            found = (<Handle>slot.handle).objects
        memcpy(lengths, found, (<Handle>slot.handle).ndim * sizeof(int64_t))
        zc_store(&(<Handle>slot.handle).guard, 0)
    _leave(&call)


cdef void _shape(const zcore_array *array, int64_t *shape) noexcept nogil:
    _lengths(array, 0, shape)


cdef void _chunk_shape(const zcore_array *array, int64_t *chunks) noexcept nogil:
    _lengths(array, 1, chunks)


cdef void _object_shape(const zcore_array *array, int64_t *chunks) noexcept nogil:
    _lengths(array, 2, chunks)


cdef void _get_dtype(const zcore_array *array, zcore_dtype *dtype) noexcept nogil:
    cdef Call call
    cdef Slot *slot = _enter(AN_ARRAY, array, &call, NULL)
    if slot == NULL:
        return
    if dtype != NULL:
        dtype[0] = (<Handle>slot.handle).dtype
    _leave(&call)


cdef int _select(Handle handle, const int64_t *start, const int64_t *count, const int64_t *step, const void *data,
                 const int64_t *strides, int n_threads, Selected *box, int64_t *all_strides, int64_t *n_items,
                 zcore_error *error) noexcept nogil:
    """Check a caller's request; return 0, or -1 with the error."""
    cdef int64_t stride = handle.dtype.itemsize
    cdef int d = handle.ndim - 1
    n_items[0] = 1
    if handle.ndim and (start == NULL or count == NULL):
        return _fail(error, ZCORE_ARGUMENT, "start or count is NULL")
    if n_threads < 0:
        return _fail(error, ZCORE_ARGUMENT, "n_threads is negative")
    while d >= 0:
        box.starts[d] = start[d]
        box.counts[d] = count[d]
        box.steps[d] = 1 if step == NULL else step[d]
        if count[d] < 0:
            return _fail_at(error, ZCORE_ARGUMENT, "dimension %d: the count is %lld, expected at least %lld", d,
                            count[d], 0)
        if box.steps[d] == 0:
            return _fail_at(error, ZCORE_ARGUMENT, "dimension %d: the step is %lld, expected another than %lld", d, 0,
                            0)
        all_strides[d] = stride if strides == NULL else strides[d]
        if count[d] > handle.shape[d]:
            return _fail_at(error, ZCORE_SELECTION, "dimension %d: the count is %lld, the array has %lld elements "
                            "there; zcore_refresh takes over another shape", d, count[d], handle.shape[d])
        if count[d] and (n_items[0] > INT64_MAX // count[d] or llabs(stride) > INT64_MAX // count[d]):
            return _fail(error, ZCORE_ARGUMENT, "the box has more bytes than there can be in memory")
        stride *= count[d]
        n_items[0] *= count[d]
        d -= 1
    if data == NULL and n_items[0]:
        return _fail(error, ZCORE_ARGUMENT, "data is NULL")
    return 0


cdef bint _overlaps(Handle handle, const Selected *box, const int64_t *strides) noexcept nogil:
    """Return whether the caller's elements may overlap, as `zcore.buffers.may_overlap`, or reach beyond any memory."""
    cdef double stride, other, reach      # they are exact as far as memory goes
    cdef int d, e
    for d in range(handle.ndim):
        if box.counts[d] > 1:
            stride, reach = fabs(<double>strides[d]), handle.dtype.itemsize
            for e in range(handle.ndim):
                other = fabs(<double>strides[e])
                if box.counts[e] > 1 and (other < stride or (other == stride and e < d)):
                    reach += other * (box.counts[e] - 1)
            if stride < reach or stride * (box.counts[d] - 1) + reach >= <double>INT64_MAX:
                return True
    return False


cdef int _move(Slot *slot, const Selected *box, char *data, const int64_t *strides, Moved what, int n_threads,
               zcore_error *error) noexcept with gil:
    """Give elements to a writer; or read or write with the GIL, if `Transfers` does not support it or has failed."""
    cdef Handle handle = <Handle>slot.handle
    cdef int64_t low = 0
    cdef int64_t high = handle.dtype.itemsize
    cdef int d
    try:
        try:
            for d in range(handle.ndim):
                if strides[d] < 0:
                    low += strides[d] * (box.counts[d] - 1)
                else:
                    high += strides[d] * (box.counts[d] - 1)
            if high - low > MAX_NBYTES:
                raise ValueError("the box has more bytes than there can be in memory")
            flags = PyBUF_WRITE if what == READ else PyBUF_READ
            memory = PyMemoryView_FromMemory(data + low, high - low, flags)
            call = (_calls.read, _calls.write, _calls.append, _calls.write_box)[<int>what]
            starts = tuple([box.starts[d] for d in range(handle.ndim)])
            steps = tuple([box.steps[d] for d in range(handle.ndim)])
            counts = tuple([box.counts[d] for d in range(handle.ndim)])
            all_strides = tuple([strides[d] for d in range(handle.ndim)])
            call(handle.array, starts, steps, counts, memory, -low, all_strides, n_threads or None)
            if handle.of is None:
                handle.update()
            return 0
        except BaseException as exception:
            return _refused(handle, error, exception)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    return -1


cdef int _transfer(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step, char *data,
                   const int64_t *strides, Moved what, int n_threads, zcore_error *error) noexcept nogil:
    cdef Call call
    cdef Slot *slot = _enter(AN_ARRAY, array, &call, error)
    cdef PyThreadState *python
    cdef Selected box
    cdef int64_t all_strides[MAX_NDIM]
    cdef int64_t n_items
    cdef void *transfers
    cdef int code = 0
    cdef bint done = False
    if slot == NULL:
        return -1
    if _select(<Handle>slot.handle, start, count, step, data, strides, n_threads, &box, all_strides, &n_items,
               error) != 0:
        code = -1
    elif n_items and what == READ and _overlaps(<Handle>slot.handle, &box, all_strides):
        code = _fail(error, ZCORE_ARGUMENT, "the strides let elements overlap in memory")
    elif n_items:
        n_threads = min(n_threads, MAX_THREADS)
        python = _leave_python()
        transfers = (<Handle>slot.handle).borrow(&call)
        if transfers != NULL:
            if what == READ:
                done = (<Transfers>transfers).read(&box, data, all_strides, n_threads)
            else:
                done = (<Transfers>transfers).write(&box, data, all_strides, n_threads)
            give_back(&call)
        _enter_python(python)
        if not done:
            code = _move(slot, &box, data, all_strides, what, n_threads, error)
    if code == 0:
        _fail(error, ZCORE_OK, "")
    _leave(&call)
    return code


cdef int _read(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step, void *data,
               const int64_t *strides, int n_threads, zcore_error *error) noexcept nogil:
    return _transfer(array, start, count, step, <char *>data, strides, READ, n_threads, error)


cdef int _write(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step, const void *data,
                const int64_t *strides, int n_threads, zcore_error *error) noexcept nogil:
    return _transfer(array, start, count, step, <char *>data, strides, WRITE, n_threads, error)


cdef int64_t _ask(Kind kind, const void *number, Asked what, const int64_t *numbers, const char *name,
                  const char *json, void *found, zcore_error *error) noexcept with gil:
    """Make a call that needs Python; return its number, mostly 0, or -1 for an error.

    `numbers` (a shape, `ndim`, an axis or a size), `name` and `json` are its arguments, `found` is for its result.
    """
    cdef Call call
    cdef Slot *slot = _enter(kind, number, &call, error)
    cdef int64_t n = -1
    if slot == NULL:
        # To end a writer again is no error.
        return _fail(error, ZCORE_OK, "") + 1 if what == CLOSE or what == ABORT else -1
    try:
        try:
            n = _done(<Handle>slot.handle, what, numbers, name, None if json == NULL else json.decode(), found)
            _fail(error, ZCORE_OK, "")
        except BaseException as exception:
            n = _refused(<Handle>slot.handle, error, exception)
    except:  # noqa: E722 (the only clause that cannot raise itself)
        pass
    _leave(&call)
    return n


cdef int64_t _done(Handle handle, Asked what, const int64_t *numbers, const char *name, str json,
                   void *found) except? -1:
    cdef bytes text
    cdef int64_t n = 0
    cdef int64_t n_copied
    cdef int d
    if what == RESIZE:
        if numbers == NULL and handle.ndim:
            raise ValueError("shape is NULL")
        _calls.resize(handle.array, tuple([numbers[d] for d in range(handle.ndim)]))
    elif what == REFRESH:
        _calls.refresh(handle.array)
    elif what == SET_ATTRIBUTE:
        _calls.set_attribute(handle.array, _text(name, "name"), json)
    elif what == SYNC:
        _calls.sync(handle.array)
    elif what == EXPECT:
        _calls.expect(handle.array, _text(name, "dtype"), numbers[0])
    elif what == ATTRIBUTES:
        if numbers[0] < 0:
            raise ValueError("size is negative")
        if found == NULL and numbers[0]:
            raise ValueError("json is NULL")
        text = _calls.attributes(handle.array)
        n = PyBytes_GET_SIZE(text)
        if numbers[0]:
            n_copied = min(n, numbers[0] - 1)
            memcpy(found, PyBytes_AsString(text), n_copied)
            (<char *>found)[n_copied] = 0
    elif what == OPEN_WRITER:
        (<zcore_writer **>found)[0] = _new_writer(handle, <int>numbers[0], json)
    elif what == N_GIVEN:
        n = handle.array.n_given
    else:
        (handle.array.flush, handle.array.close, handle.array.abort)[<int>what - <int>FLUSH]()
        # If the array was replaced, its own handle says so.
        with suppress(errors.ZcoreError):
            handle.of.update()
    if what <= EXPECT:
        handle.update()
    return n


cdef int64_t _get_attrs(zcore_array *array, char *json, int64_t size, zcore_error *error) noexcept nogil:
    return _ask(AN_ARRAY, array, ATTRIBUTES, &size, NULL, NULL, json, error)


cdef int _resize(zcore_array *array, const int64_t *shape, zcore_error *error) noexcept nogil:
    return <int>_ask(AN_ARRAY, array, RESIZE, shape, NULL, NULL, NULL, error)


cdef int _refresh(zcore_array *array, zcore_error *error) noexcept nogil:
    return <int>_ask(AN_ARRAY, array, REFRESH, NULL, NULL, NULL, NULL, error)


cdef int _set_attr(zcore_array *array, const char *name, const char *json, zcore_error *error) noexcept nogil:
    return <int>_ask(AN_ARRAY, array, SET_ATTRIBUTE, NULL, name, json, NULL, error)


cdef int _sync(zcore_array *array, zcore_error *error) noexcept nogil:
    return <int>_ask(AN_ARRAY, array, SYNC, NULL, NULL, NULL, NULL, error)


cdef int _expect(zcore_array *array, const char *dtype, int ndim, zcore_error *error) noexcept nogil:
    cdef int64_t number = ndim
    return <int>_ask(AN_ARRAY, array, EXPECT, &number, dtype, NULL, NULL, error)


cdef zcore_writer *_writer_open(zcore_array *array, int axis, const char *options, zcore_error *error) noexcept nogil:
    cdef int64_t number = axis
    cdef zcore_writer *writer = NULL
    _ask(AN_ARRAY, array, OPEN_WRITER, &number, NULL, options, &writer, error)
    return writer


cdef int _writer_append(zcore_writer *writer, const void *data, int64_t n_frames, const int64_t *strides,
                        zcore_error *error) noexcept nogil:
    return _give(writer, APPEND, NULL, NULL, n_frames, data, strides, error)


cdef int _writer_write(zcore_writer *writer, const int64_t *start, const int64_t *count, const void *data,
                       const int64_t *strides, zcore_error *error) noexcept nogil:
    return _give(writer, WRITE_BOX, start, count, 0, data, strides, error)


cdef int _give(zcore_writer *writer, Moved what, const int64_t *start, const int64_t *count, int64_t n_frames,
               const void *data, const int64_t *strides, zcore_error *error) noexcept nogil:
    """Give a writer a box, or frames, whose number stands for `start` and `count`."""
    cdef Call call
    cdef Slot *slot = _enter(A_WRITER, writer, &call, error)
    cdef Selected box
    cdef int64_t starts[MAX_NDIM]
    cdef int64_t counts[MAX_NDIM]
    cdef int64_t all_strides[MAX_NDIM]
    cdef int64_t n_items
    cdef int d
    cdef int code
    if slot == NULL:
        return -1
    if what == APPEND:
        for d in range((<Handle>slot.handle).ndim):
            starts[d], counts[d] = 0, (<Handle>slot.handle).shape[d]
            if counts[d] == INT64_MAX:
                counts[d] = n_frames
        start, count = starts, counts
    code = _select(<Handle>slot.handle, start, count, NULL, data, strides, 0, &box, all_strides, &n_items, error)
    if code == 0 and n_items == 0:
        # No byte is looked at, but frames without elements are frames.
        data = <const void *>&box
        for d in range((<Handle>slot.handle).ndim):
            all_strides[d] = 0
    if code == 0:
        code = _move(slot, &box, <char *>data, all_strides, what, 0, error)
    if code == 0:
        _fail(error, ZCORE_OK, "")
    _leave(&call)
    return code


cdef int _writer_flush(zcore_writer *writer, zcore_error *error) noexcept nogil:
    return <int>_ask(A_WRITER, writer, FLUSH, NULL, NULL, NULL, NULL, error)


cdef int _writer_close(zcore_writer *writer, zcore_error *error) noexcept nogil:
    return _end(writer, CLOSE, error)


cdef int _writer_abort(zcore_writer *writer, zcore_error *error) noexcept nogil:
    return _end(writer, ABORT, error)


cdef int _end(zcore_writer *writer, Asked how, zcore_error *error) noexcept nogil:
    cdef int code = <int>_ask(A_WRITER, writer, how, NULL, NULL, NULL, NULL, error)
    if code == 0:
        _close_as(A_WRITER, writer)
    return code


cdef int64_t _writer_n_given(const zcore_writer *writer) noexcept nogil:
    return _ask(A_WRITER, writer, N_GIVEN, NULL, NULL, NULL, NULL, NULL)


cdef zcore_api _table = zcore_api(
    abi_version=ZCORE_ABI_VERSION, n_bytes=sizeof(zcore_api), open=_open, create=_create, from_object=_from_object,
    close=_close, ndim=_ndim, shape=_shape, chunk_shape=_chunk_shape, object_shape=_object_shape, get_dtype=_get_dtype,
    read=_read, write=_write, resize=_resize, refresh=_refresh, get_attrs=_get_attrs, set_attr=_set_attr, sync=_sync,
    writer_open=_writer_open, writer_append=_writer_append, writer_write=_writer_write, writer_flush=_writer_flush,
    writer_close=_writer_close, writer_abort=_writer_abort, writer_n_given=_writer_n_given, expect=_expect)

CAPSULE = PyCapsule_New(<void *>&_table, "zcore.embed._C_API", NULL)
# Address of each function by its name in `zcore.h`, for numba, cffi and ctypes.
ADDRESSES = {}
cdef int _i
for _i, _name in enumerate((
        "open", "create", "from_object", "close", "ndim", "shape", "chunk_shape", "object_shape", "get_dtype", "read",
        "write", "resize", "refresh", "get_attrs", "set_attr", "sync", "writer_open", "writer_append", "writer_write",
        "writer_flush", "writer_close", "writer_abort", "writer_n_given", "expect")):
    # They follow each other in the table, as in the header.
    ADDRESSES["zcore_" + _name] = <uintptr_t>(<void **>&_table.open)[_i]
