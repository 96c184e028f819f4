# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Rows of items of varying length: the number of items, then the size and the bytes of each.

All numbers are little-endian uint32.

zarr-extensions, codecs "vlen-utf8" and "vlen-bytes". Compiled because they visit every item. Text in NumPy's
`StringDType` is moved between its own memory and the row without the GIL and without an object per item. Every size is
compared with the rest of the row before anything is allocated for it.
"""
from zcore.errors import CodecError

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_AsUTF8String, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

cdef extern from *:
    """
    #define NPY_TARGET_VERSION NPY_2_0_API_VERSION
    """

cimport numpy as cnp

from zcore.kernel.memory cimport MAX_NBYTES, Bytes, zc_new
from zcore.kernel.numbers cimport load_u32, store_u32

cdef extern from "numpy/arrayobject.h":
    ctypedef struct npy_string_allocator:
        pass
    ctypedef struct npy_packed_static_string:
        pass
    ctypedef struct npy_static_string:
        size_t size
        const char *buf
    ctypedef struct PyArray_StringDTypeObject:
        pass
    const int NPY_VSTRING
    npy_string_allocator *NpyString_acquire_allocator(const PyArray_StringDTypeObject *descr) nogil
    void NpyString_release_allocator(npy_string_allocator *allocator) nogil
    void NpyString_acquire_allocators(size_t n, cnp.PyArray_Descr **descrs,
                                      npy_string_allocator **allocators) nogil
    void NpyString_release_allocators(size_t n, npy_string_allocator **allocators) nogil
    int NpyString_load(npy_string_allocator *allocator, const npy_packed_static_string *packed,
                       npy_static_string *unpacked) nogil
    int NpyString_pack(npy_string_allocator *allocator, npy_packed_static_string *packed, const char *buf,
                       size_t size) nogil

cnp.import_array()

cdef extern from *:
    """
    static inline int is_ascii_text(PyObject *text) { return PyUnicode_IS_COMPACT_ASCII(text); }
    """
    bint is_ascii_text(object text)

cdef enum:
    SIZE_NBYTES = 4
    # Results of a walk along the row.
    DONE = 0
    OVERRUN = 1
    NOT_TEXT = 2
    NO_MEMORY = 3
    MISSING = 4
    TOO_LONG = 5

cdef int64_t MAX_SIZE = 0xffffffff


cdef inline int64_t _item_end(const uint8_t *src, int64_t start, int64_t n_bytes) noexcept nogil:
    """Return the end of the item whose size lies at `start`; n_bytes + 1 if not even the size fits."""
    if start > n_bytes - SIZE_NBYTES:
        return n_bytes + 1
    return start + SIZE_NBYTES + load_u32(src + start)


cdef bint _is_utf8(const uint8_t *src, int64_t n) noexcept nogil:
    """Return whether bytes are UTF-8 by Python's rules: shortest forms, no surrogates, nothing past U+10FFFF."""
    cdef int64_t i = 0
    cdef int64_t k, n_more
    cdef uint64_t word
    cdef uint8_t low, high
    while i < n:
        if n - i >= 8:
            memcpy(&word, src + i, 8)
            if word & <uint64_t>0x8080808080808080 == 0:
                i += 8
                continue
        if src[i] < 0x80:
            i += 1
            continue
        low, high = 0x80, 0xbf
        if 0xc2 <= src[i] <= 0xdf:
            n_more = 1
        elif 0xe0 <= src[i] <= 0xef:
            n_more = 2
            if src[i] == 0xe0:
                low = 0xa0
            elif src[i] == 0xed:
                high = 0x9f
        elif 0xf0 <= src[i] <= 0xf4:
            n_more = 3
            if src[i] == 0xf0:
                low = 0x90
            elif src[i] == 0xf4:
                high = 0x8f
        else:
            return False
        if n - i <= n_more or not low <= src[i + 1] <= high:
            return False
        for k in range(2, n_more + 1):
            if src[i + k] & 0xc0 != 0x80:
                return False
        i += n_more + 1
    return True


def _fail(str codec, int code, int64_t start, int64_t stop, int64_t n_bytes, cause=None):
    """Raise the failure of a walk along a row of `n_bytes`, at the item that begins at `start`."""
    if code == OVERRUN:
        raise CodecError(f"item ends at byte {stop}, the chunk at {n_bytes}", codec=codec, direction="decode",
                         offset=start, expected=n_bytes, found=stop)
    if code == NOT_TEXT:
        raise CodecError(f"item is damaged: {cause}", codec=codec, direction="decode",
                         offset=start + SIZE_NBYTES) from cause
    if code == NO_MEMORY:
        raise MemoryError
    if start != n_bytes:
        raise CodecError(f"items end at byte {start}, the chunk at {n_bytes}", codec=codec, direction="decode",
                         offset=start, expected=start, found=n_bytes)


def unpack_items(data, cnp.ndarray items not None, from_bytes, str codec not None):
    """Fill `items` from a row.

    Parameters
    ----------
    data : bytes-like
        The row. It has as many items as `items`: the caller has compared their number.
    items : ndarray of object, shape (n,)
    from_bytes : callable, `str` or `bytes`
        Makes an item from its bytes. `str` means text in UTF-8, `bytes` the bytes themselves.
    codec : str
        Name for errors.

    Raises
    ------
    CodecError
        An item reaches beyond the end, `from_bytes` raises ValueError, or bytes follow.
    """
    cdef Bytes row = Bytes(data)
    cdef int64_t n_bytes = row.n
    cdef const uint8_t *src = row.data
    cdef int64_t start = SIZE_NBYTES
    cdef int64_t i, stop
    cdef const char *first
    cdef bint is_text = from_bytes is str
    cdef bint is_bytes = from_bytes is bytes
    for i in range(cnp.PyArray_SIZE(items)):
        stop = _item_end(src, start, n_bytes)
        if stop > n_bytes:
            _fail(codec, OVERRUN, start, stop, n_bytes)
        first = <const char *>src + start + SIZE_NBYTES
        try:
            if is_text:
                items[i] = PyUnicode_DecodeUTF8(first, stop - start - SIZE_NBYTES, NULL)
            elif is_bytes:
                items[i] = PyBytes_FromStringAndSize(first, stop - start - SIZE_NBYTES)
            else:
                items[i] = from_bytes(PyBytes_FromStringAndSize(first, stop - start - SIZE_NBYTES))
        except ValueError as exc:
            _fail(codec, NOT_TEXT, start, stop, n_bytes, exc)
        start = stop
    _fail(codec, DONE, start, start, n_bytes)


def unpack_text(data, cnp.ndarray items not None, str codec not None):
    """Fill `items`, a contiguous array of `StringDType`, as `unpack_items` does."""
    cdef int64_t n_items = _check_text(items)
    cdef Bytes row = Bytes(data)
    cdef int64_t n_bytes = row.n
    cdef const uint8_t *src = row.data
    cdef char *dst = <char *>cnp.PyArray_DATA(items)
    cdef int64_t itemsize = cnp.PyArray_ITEMSIZE(items)
    cdef int64_t start = SIZE_NBYTES
    cdef int64_t stop = start
    cdef int64_t i
    cdef int code = DONE
    cdef npy_string_allocator *allocator
    with nogil:
        allocator = NpyString_acquire_allocator(<const PyArray_StringDTypeObject *>cnp.PyArray_DESCR(items))
        for i in range(n_items):
            stop = _item_end(src, start, n_bytes)
            if stop > n_bytes:
                code = OVERRUN
            elif not _is_utf8(src + start + SIZE_NBYTES, stop - start - SIZE_NBYTES):
                code = NOT_TEXT
            elif NpyString_pack(allocator, <npy_packed_static_string *>(dst + i * itemsize),
                                <const char *>src + start + SIZE_NBYTES, stop - start - SIZE_NBYTES) < 0:
                code = NO_MEMORY
            if code != DONE:
                break
            start = stop
        NpyString_release_allocator(allocator)
    cause = None
    if code == NOT_TEXT:
        try:
            PyUnicode_DecodeUTF8(<const char *>src + start + SIZE_NBYTES, stop - start - SIZE_NBYTES, NULL)
        except ValueError as exc:
            cause = exc
    _fail(codec, code, start, stop, n_bytes, cause)


def pack_items(list items not None, exact, to_bytes, str codec not None):
    """Return the row of some items, as bytes.

    Parameters
    ----------
    items : list
        None becomes an item without bytes.
    exact : `str`, `bytes` or None
        Items of exactly this type are stored directly, text in UTF-8.
    to_bytes : callable
        Returns the bytes of any other item.
    codec : str
        Name for errors.

    Raises
    ------
    CodecError
        `to_bytes` raises TypeError, ValueError or AttributeError; an item is text that has no UTF-8 form; or a number
        is too large.
    """
    cdef int64_t n_items = len(items)
    cdef int64_t n_bytes = SIZE_NBYTES
    cdef Py_ssize_t size = 0
    cdef const char *src
    cdef uint8_t *dst
    cdef bint is_text = exact is str
    # Objects in this list cannot change while they are copied; the items might.
    cdef list encoded = []
    _check_number(codec, n_items, "items")
    for item in items:
        try:
            if item is None:
                item = b""
            elif type(item) is not exact:
                item = to_bytes(item)
            elif is_text and not is_ascii_text(item):
                item = PyUnicode_AsUTF8String(item)
        except (TypeError, ValueError, AttributeError) as exc:
            raise CodecError(f"{codec!r} cannot encode {item!r:.60}: {exc}", codec=codec, direction="encode") from exc
        size = len(<str>item) if type(item) is str else len(<bytes?>item)
        _check_number(codec, size, "bytes of an item")
        n_bytes += SIZE_NBYTES + size
        encoded.append(item)
    # One item may be there many times, so all of them may be more than the memory.
    if n_bytes > MAX_NBYTES:
        raise MemoryError
    row = PyBytes_FromStringAndSize(NULL, n_bytes)
    dst = <uint8_t *>PyBytes_AS_STRING(row)
    store_u32(dst, n_items)
    dst += SIZE_NBYTES
    for item in encoded:
        if type(item) is str:
            # ASCII text is stored as it is, so Python caches no UTF-8 copy with the string.
            src = PyUnicode_AsUTF8AndSize(item, &size)
        else:
            src, size = PyBytes_AS_STRING(item), len(<bytes>item)
        store_u32(dst, size)
        memcpy(dst + SIZE_NBYTES, src, size)
        dst += SIZE_NBYTES + size
    return row


def pack_text(cnp.ndarray items not None, str codec not None):
    """Return the row of `items`, a contiguous array of `StringDType` without missing values."""
    cdef int64_t n_items = _check_text(items)
    cdef const char *src = <const char *>cnp.PyArray_DATA(items)
    cdef int64_t itemsize = cnp.PyArray_ITEMSIZE(items)
    cdef int64_t n_bytes = SIZE_NBYTES
    cdef int64_t i
    cdef int code = DONE
    cdef npy_static_string item
    cdef npy_string_allocator *allocator
    cdef uint8_t *row = NULL
    cdef uint8_t *dst
    _check_number(codec, n_items, "items")
    with nogil:
        # Held from the first look at an item to the last, so that the sizes are still right when the items are copied.
        allocator = NpyString_acquire_allocator(<const PyArray_StringDTypeObject *>cnp.PyArray_DESCR(items))
        for i in range(n_items):
            if NpyString_load(allocator, <const npy_packed_static_string *>(src + i * itemsize), &item) != 0:
                code = MISSING
                break
            if <uint64_t>item.size > <uint64_t>MAX_SIZE:
                code = TOO_LONG
                break
            n_bytes += SIZE_NBYTES + item.size
        if code == DONE:
            row = <uint8_t *>zc_new(n_bytes, 1)
            if row == NULL:
                code = NO_MEMORY
            else:
                store_u32(row, n_items)
                dst = row + SIZE_NBYTES
                for i in range(n_items):
                    NpyString_load(allocator, <const npy_packed_static_string *>(src + i * itemsize), &item)
                    store_u32(dst, item.size)
                    if item.size:
                        memcpy(dst + SIZE_NBYTES, item.buf, item.size)
                    dst += SIZE_NBYTES + item.size
        NpyString_release_allocator(allocator)
    if code == NO_MEMORY:
        raise MemoryError
    if code == TOO_LONG:
        _check_number(codec, item.size, "bytes of an item")
    if code == MISSING:
        raise CodecError(f"{codec!r} cannot encode text that is missing", codec=codec, direction="encode")
    try:
        return PyBytes_FromStringAndSize(<const char *>row, n_bytes)
    finally:
        free(row)


def move_text(cnp.ndarray items not None, cnp.ndarray to not None, cnp.ndarray source not None,
              cnp.ndarray places not None):
    """Assign items of `source` to some of `items`, which are other memory; both are of `StringDType`.

    Parameters
    ----------
    to, places : contiguous arrays of int64, one number for each item that is moved
        Where it is in `items` and in `source`, in bytes from the first element. Neither is checked.

    Notes
    -----
    NumPy's own indexing by several arrays looks for text of 16 bytes and more in the memory of the wrong array: up to
    2.3.1 when it reads, and in 2.4 still when it assigns one item to many places.
    """
    cdef cnp.PyArray_Descr *descrs[2]
    cdef npy_string_allocator *allocators[2]
    cdef char *dst = <char *>cnp.PyArray_DATA(items)
    cdef const char *src = <const char *>cnp.PyArray_DATA(source)
    cdef const int64_t *to_at = <const int64_t *>cnp.PyArray_DATA(to)
    cdef const int64_t *from_at = <const int64_t *>cnp.PyArray_DATA(places)
    cdef int64_t n = cnp.PyArray_SIZE(to)
    cdef npy_static_string item
    cdef int64_t i
    cdef int code = DONE
    descrs[0], descrs[1] = cnp.PyArray_DESCR(items), cnp.PyArray_DESCR(source)
    # With one memory for both, assignment could move the text that is assigned.
    if (cnp.PyArray_TYPE(items) != NPY_VSTRING or cnp.PyArray_TYPE(source) != NPY_VSTRING or descrs[0] == descrs[1]
            or n != cnp.PyArray_SIZE(places)):
        raise TypeError("expected two arrays of StringDType with memory of their own, and as many places in each")
    with nogil:
        NpyString_acquire_allocators(2, descrs, allocators)
        for i in range(n):
            if (NpyString_load(allocators[1], <const npy_packed_static_string *>(src + from_at[i]), &item) < 0
                    or NpyString_pack(allocators[0], <npy_packed_static_string *>(dst + to_at[i]), item.buf,
                                      item.size) < 0):
                code = NO_MEMORY
                break
        NpyString_release_allocators(2, allocators)
    if code == NO_MEMORY:
        raise MemoryError


cdef int64_t _check_text(cnp.ndarray items) except -1:
    if cnp.PyArray_TYPE(items) != NPY_VSTRING or not cnp.PyArray_IS_C_CONTIGUOUS(items):
        raise TypeError("expected a contiguous array of StringDType")
    return cnp.PyArray_SIZE(items)


cdef int _check_number(str codec, int64_t value, str what) except -1:
    if value > MAX_SIZE:
        raise CodecError(f"{value} {what} are more than {codec!r} stores", codec=codec, direction="encode",
                         expected=MAX_SIZE, found=value)
    return 0
