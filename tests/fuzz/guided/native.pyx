# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Fuzzing targets that call the kernel's functions, with next to no Python.

Each target takes any bytes: first parameters, then what a file would hold. It returns NULL, or the expectation that
failed. Memory errors are for the sanitizers to find, so each buffer has exactly the size that the kernel is told.

The tests build this module with the plain compiler, and replay the corpus by `run`. `tests.fuzz.run` builds it with
clang's sanitizers and coverage, and libFuzzer calls the function at `address`.
"""
import traceback
import warnings

from zcore.errors import ZcoreError
from zcore.stores.reference.document import read_document

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from zcore.kernel.codec.checksums cimport crc32c_of
from zcore.kernel.codec.program cimport Program
from zcore.kernel.codec.table cimport NOT_BLOCKWISE, Workspace
from zcore.kernel.io.files cimport Block, Buffer, Content
from zcore.kernel.plan.shard_index cimport Extent, IndexForm, ShardProgram, sort_extents
from zcore.kernel.status cimport (
    BLOSC_DECODE, CHUNK_LONG, OK, SHARD_END, SHARD_MARK, SHARD_START, WANTED, Status, status_clear,
)
from zcore.kernel.strided.copy cimport Copy, Runs, copy_by_source, runs_init

ctypedef const char *(*target_function)(const uint8_t *data, size_t n) noexcept

cdef enum:
    MAX_NBYTES = 1 << 13       # of decoded content
    LONG_NBYTES = 1 << 24      # the same, and of what is decoded, for targets whose input is in run-length form
    UNTOUCHED = 0xEE           # in memory that a target gives to the kernel

EMPTY = 2**64 - 1     # both words of a chunk that is not stored

# The sequences are part of the corpus: its files choose from them by number.
cdef tuple SIZES = (1, 2, 3, 4, 7, 8, 16, 40)
cdef list chunks = [Program((("blosc", "lz4", 5, 1, size, 0),), itemsize=size) for size in SIZES]
cdef list streams = [Program(steps) for steps in (
    (("gzip", 1),), (("zlib", 1),), (("zstd", 1, False),), (("lz4", 1),), (("crc32c",),), (("fletcher32",),),
    (("shuffle", 4), ("zstd", 1, False)), (("gzip", 1), ("crc32c",)))]
cdef list shards = [
    ShardProgram((n,), (1,), Program(()), steps, turned=turned, at_start=at_start)
    for n in (1, 4, 33) for steps in ((), (("crc32c",),)) for turned in (False, True) for at_start in (False, True)]

# The library's contexts are kept from one input to the next, as a thread of a plan keeps them.
cdef Workspace work
cdef Buffer scratch
memset(&work, 0, sizeof(work))
memset(&scratch, 0, sizeof(scratch))


@cython.final
cdef class Memory:
    cdef uint8_t *data

    def __dealloc__(self):
        free(self.data)


cdef Memory memory(int64_t n_bytes):
    cdef Memory self = Memory.__new__(Memory)
    self.data = <uint8_t *>malloc(n_bytes)
    if self.data == NULL:
        raise MemoryError
    memset(self.data, UNTOUCHED, n_bytes)
    return self


cdef Memory copied(const uint8_t *data, int64_t n_bytes):
    cdef Memory self = memory(n_bytes)
    memcpy(self.data, data, n_bytes)
    return self


cdef void store_u32(uint8_t *to, int64_t value):
    cdef int i
    for i in range(4):
        to[i] = value >> 8 * i & 0xff


# Blosc chunks. Byte 0: item size, and which sizes of the header are made right; 1 and 2: decoded size in items; 3: the
# columns of the chunk, and the part of it that is selected.

cdef const char *blosc(const uint8_t *data, size_t size) noexcept:
    if size < 4:
        return NULL
    return blosc_chunk(data, (data[1] | data[2] << 8), MAX_NBYTES, copied(data + 4, size - 4), size - 4)


cdef const char *blosc_chunk(const uint8_t *data, int64_t n_items, int64_t max_nbytes, Memory stored, int64_t n):
    cdef Program program = chunks[data[0] & 7]
    cdef int64_t itemsize = program.itemsize
    cdef int64_t n_columns = 1 + (data[3] & 7)
    cdef int64_t n_rows, expected, n_found
    cdef Memory whole, other
    cdef Status status, second
    cdef int code
    n_rows = n_items % (max_nbytes // itemsize + 1) // n_columns
    n_items = n_rows * n_columns
    expected = n_items * itemsize
    if n >= 16 and data[0] & 8:
        store_u32(stored.data + 12, n)
    if n >= 16 and data[0] & 16:
        store_u32(stored.data + 4, expected)
    whole = memory(expected)
    status_clear(&status)
    code = program.decode(stored.data, n, whole.data, expected, 1, &work, &status)
    if code != status.code:
        return "the code of a whole chunk is not that of its status"
    other = memory(expected)
    status_clear(&second)
    n_found = program.decode_within(stored.data, n, other.data, expected, False, 1, &work, &second)
    if n_found > expected or (n_found < 0) != (second.code != OK):
        return "decode_within: number of bytes"
    if (n_found == expected) != (code == OK) or (code == OK and memcmp(whole.data, other.data, expected)):
        return "decode_within: not what decode finds"
    if n_items == 0:
        return NULL
    return (scattered(program, stored, n, whole, n_rows, n_columns, data[3] >> 3 & 3, &status)
            or selected(program, stored, n, whole, n_rows, n_columns, data[3], &status))


cdef const char *scattered(Program program, Memory stored, int64_t n, Memory whole, int64_t n_rows, int64_t n_columns,
                           int64_t gap, const Status *status):
    """Expect each row at its place, with a gap behind it that nobody touches, and the same failure."""
    cdef int64_t row = n_columns * program.itemsize
    cdef int64_t stride = row + gap * program.itemsize
    cdef int64_t[2] shape = [n_rows, n_columns]
    cdef int64_t[2] strides = [stride, program.itemsize]
    cdef Memory found = memory(n_rows * stride)
    cdef Memory room = memory(n_rows * row)
    cdef Runs runs
    cdef Status second
    cdef int64_t i, k
    cdef int code
    status_clear(&second)
    runs_init(&runs, 2, shape, strides, program.itemsize)
    code = program.scatter(stored.data, n, n_rows * row, &runs, found.data, room.data, &second)
    if code == NOT_BLOCKWISE:
        return NULL
    if code != status.code or code != second.code:
        return "scatter: not the code of decode"
    if (second.offset, second.expected, second.found) != (status.offset, status.expected, status.found):
        return "scatter: not the failure of decode"
    for i in range(n_rows):
        if code == OK and memcmp(found.data + i * stride, whole.data + i * row, row):
            return "scatter: not the elements of decode"
        for k in range(row, stride):
            if found.data[i * stride + k] != UNTOUCHED:
                return "scatter: wrote beside its runs"
    return NULL


cdef const char *selected(Program program, Memory stored, int64_t n, Memory whole, int64_t n_rows, int64_t n_columns,
                          int chosen, const Status *status):
    """Expect the elements of some rows and columns. Damage of a payload may lie in a block that they do not need."""
    cdef int64_t itemsize = program.itemsize
    cdef int64_t first_row = (chosen >> 2) % n_rows
    cdef int64_t row_step = 1 + (chosen >> 3 & 7)
    cdef int64_t first_column = (chosen >> 5) % n_columns
    cdef int64_t column_step = 1 + (chosen >> 6 & 1)
    cdef int64_t rows = (n_rows - first_row + row_step - 1) // row_step
    cdef int64_t columns = (n_columns - first_column + column_step - 1) // column_step
    cdef int64_t offset = (first_row * n_columns + first_column) * itemsize
    cdef Memory found = memory(rows * columns * itemsize)
    cdef Copy part
    cdef Status second
    cdef int64_t i, k
    cdef int code
    part.ndim, part.itemsize, part.swap = 2, itemsize, 0
    part.shape[0], part.shape[1] = rows, columns
    part.src_strides[0], part.src_strides[1] = row_step * n_columns * itemsize, column_step * itemsize
    part.dst_strides[0], part.dst_strides[1] = columns * itemsize, itemsize
    copy_by_source(&part)
    status_clear(&second)
    code = program.select(stored.data, n, n_rows * n_columns * itemsize, &part, offset, chosen & 128, found.data,
                          &scratch, &second)
    if code == NOT_BLOCKWISE:
        return NULL
    if code != second.code or (code != status.code and not (code == OK and status.code == BLOSC_DECODE)):
        return "select: not the code of decode"
    if code == OK and status.code == OK:
        for i in range(rows):
            for k in range(columns):
                if memcmp(found.data + (i * columns + k) * itemsize, whole.data + offset + (
                        i * row_step * n_columns + k * column_step) * itemsize, itemsize):
                    return "select: not the elements of decode"
    return NULL


# Streams of the other codecs. Byte 0: the chain; 1 and 2: the most that may be decoded.

cdef const char *stream(const uint8_t *data, size_t size) noexcept:
    if size < 3:
        return NULL
    return stream_of(data[0], (data[1] | data[2] << 8) % MAX_NBYTES, copied(data + 3, size - 3), size - 3)


cdef const char *stream_of(int chain, int64_t limit, Memory stored, int64_t n):
    cdef Program program = streams[chain % len(streams)]
    cdef Memory found = memory(limit)
    cdef Memory again
    cdef Status status
    cdef int64_t n_found
    cdef int code
    status_clear(&status)
    n_found = program.decode_within(stored.data, n, found.data, limit, False, 1, &work, &status)
    if n_found > limit or (n_found < 0) != (status.code != OK):
        return "decode_within: number of bytes"
    if n_found >= 0:
        again = memory(n_found)
        status_clear(&status)
        code = program.decode(stored.data, n, again.data, n_found, 1, &work, &status)
        if code != OK or memcmp(again.data, found.data, n_found):
            return "decode: not what decode_within finds"
        again = memory(n_found + 4)
        status_clear(&status)
        if program.decode(stored.data, n, again.data, n_found + 4, 1, &work, &status) == OK:
            return "decode: more bytes than decode_within finds"
    return NULL


# The same with megabytes, in run-length form. The number of items, or of bytes, has a third byte.

cdef const char *long_blosc(const uint8_t *data, size_t size) noexcept:
    cdef int64_t n
    cdef Memory stored
    if size < 5:
        return NULL
    stored = expanded(data + 5, size - 5, &n)
    return blosc_chunk(data, data[1] | data[2] << 8 | data[4] << 16, LONG_NBYTES, stored, n)


cdef const char *long_stream(const uint8_t *data, size_t size) noexcept:
    cdef int64_t n
    cdef Memory stored
    if size < 4:
        return NULL
    stored = expanded(data + 4, size - 4, &n)
    return stream_of(data[0], data[1] | data[2] << 8 | data[3] << 16, stored, n)


cdef Memory expanded(const uint8_t *data, int64_t size, int64_t *n_bytes):
    """Return what `corpus.shortened` has made short. Byte k < 128: k + 1 bytes follow; else the next is repeated."""
    cdef Memory self = memory(LONG_NBYTES)
    cdef int64_t n = 0, i = 0, k
    while i + 1 < size and n < LONG_NBYTES:
        k = data[i]
        i += 1
        if k < 128:
            k = min(min(k + 1, size - i), LONG_NBYTES - n)
            memcpy(self.data + n, data + i, k)
            i += k
        else:
            k = min(<int64_t>1 << (k & 31), LONG_NBYTES - n)
            memset(self.data + n, data[i], k)
            i += 1
        n += k
    n_bytes[0] = n
    return copied(self.data, n)


# Indices of shards. Byte 0: the form; 1: whether the checksum is made right, how the content is brought, and where the
# shard begins in it.

cdef const char *shard_index(const uint8_t *data, size_t size) noexcept:
    cdef int64_t n = <int64_t>size - 2
    if n < 0:
        return NULL
    cdef ShardProgram program = shards[data[0] % len(shards)]
    cdef bint has_sum = program.index_nbytes % 16
    cdef int64_t base = min(<int64_t>(data[1] >> 2 & 15), n)
    cdef Memory stored = copied(data + 2, n)
    cdef Memory words = memory(16 * program.n_chunks)
    cdef Memory extents = memory(program.n_chunks * sizeof(Extent))
    cdef uint8_t *index
    cdef IndexForm form
    cdef Content content
    cdef Block[2] blocks
    cdef Status status
    cdef Extent *extent
    cdef uint64_t last = 0
    cdef int64_t i
    cdef int code
    cdef bint is_right
    program.form_of(program.n_chunks, base, &form)
    if form.n_bytes != program.index_nbytes:
        return "form_of: size of the index"
    index = stored.data + (base if program.at_start else n - form.n_bytes)
    is_right = n - base >= form.n_bytes
    if is_right and has_sum:
        if data[1] & 1:
            store_u32(index + form.n_bytes - 4, crc32c_of(index, form.n_bytes - 4, 0))
        is_right = crc32c_of(index, form.n_bytes - 4, 0) == (
            index[form.n_bytes - 4] | index[form.n_bytes - 3] << 8 | index[form.n_bytes - 2] << 16
            | <uint64_t>index[form.n_bytes - 1] << 24)
    memset(&content, 0, sizeof(content))
    content.fd, content.data, content.size = -1, stored.data, n
    if data[1] & 2:
        # The first half is there, and the second.
        content.data = NULL
        blocks[0] = Block(stored.data, 0, n // 2)
        blocks[1] = Block(stored.data + n // 2, n // 2, n)
        content.blocks, content.n_blocks = blocks, 2
    status_clear(&status)
    code = program.read_index(&form, &content, n - base, <uint64_t *>words.data, &scratch, &work, &status)
    if code != status.code:
        return "read_index: code"
    if code == WANTED and data[1] & 2:
        return NULL
    if (code == OK) != is_right:
        return "read_index: takes what it should refuse, or the other way round"
    if code != OK:
        return NULL
    for i in range(program.n_chunks):
        extent = <Extent *>extents.data + i
        extent.i = i
        status_clear(&status)
        code = program.extent_of(&form, <uint64_t *>words.data, i, n - base, 1 + data[1], extent, &status)
        if code != status.code or code != expected_extent(program, &form, index, i, n - base, 1 + data[1]):
            return "extent_of: not by the format"
        if code != OK:
            extent.offset, extent.n_bytes = UINT64_MAX, 0
        elif extent.n_bytes:
            if extent.offset < <uint64_t>base:
                return "extent_of: before the shard"
            # Both ends are there.
            stored.data[extent.offset] ^= 1
            stored.data[extent.offset + extent.n_bytes - 1] ^= 1
    sort_extents(<Extent *>extents.data, program.n_chunks)
    for i in range(program.n_chunks):
        extent = <Extent *>extents.data + i
        if extent.offset < last:
            return "sort_extents: order"
        last = extent.offset
    return NULL


cdef uint64_t load_word(const uint8_t *at, bint turned):
    cdef uint64_t word = 0
    cdef int i
    for i in range(8):
        word |= <uint64_t>at[i] << 8 * (7 - i if turned else i)
    return word


cdef int expected_extent(ShardProgram program, const IndexForm *form, const uint8_t *index, int64_t i, int64_t size,
                         uint64_t limit):
    """Return the code of an entry by Python's integers: Zarr v3, "sharding_indexed", "Binary shard format"."""
    cdef object offset = load_word(index + 16 * i, program.turned)
    cdef object n_bytes = load_word(index + 16 * i + 8, program.turned)
    cdef object low = form.n_bytes if program.at_start else 0
    cdef object high = size if program.at_start else size - form.n_bytes
    if offset == n_bytes == EMPTY:
        return OK
    if EMPTY in (offset, n_bytes):
        return SHARD_MARK
    if offset + n_bytes > high:
        return SHARD_END
    if n_bytes and offset < low:
        return SHARD_START
    return CHUNK_LONG if n_bytes > limit else OK


# Documents of reference sets. Python's allocator would hide reads beyond a bytes object, so PYTHONMALLOC is malloc.

cdef const char *reference_set(const uint8_t *data, size_t size) noexcept:
    try:
        raw = PyBytes_FromStringAndSize(<const char *>data, size)
        for key, _value in read_document(raw, target="t" if size % 2 else None, max_generated=1000).items():
            if type(key) is not bytes:
                return "a key that is no bytes"
    except ZcoreError:
        pass
    except BaseException:
        traceback.print_exc()
        return "another exception than zcore's"
    return NULL


cdef target_function function_of(name) except NULL:
    if name == "blosc":
        return blosc
    if name == "stream":
        return stream
    if name == "long_blosc":
        return long_blosc
    if name == "long_stream":
        return long_stream
    if name == "shard_index":
        return shard_index
    if name == "reference_set":
        return reference_set
    raise KeyError(name)


def address(str name not None):
    """Return where the function of a target is, for a process that does nothing else than call it."""
    warnings.simplefilter("ignore")
    return <uintptr_t>function_of(name)


def run(str name not None, bytes data not None):
    """Call a target with these bytes.

    Raises : AssertionError, with the expectation that failed.
    """
    # A copy without the byte 0 that CPython keeps behind a bytes object.
    cdef Memory given = copied(<const uint8_t *>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    cdef const char *failed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed = function_of(name)(given.data, PyBytes_GET_SIZE(data))
    if failed != NULL:
        raise AssertionError(failed.decode())
