# cython: language_level=3
"""An extension outside zcore that uses private headers: it reads and decodes a blosc chunk, without the GIL."""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from posix.unistd cimport close

from zcore.kernel.codec.blosc_header cimport BloscHeader, check_header
from zcore.kernel.codec.compress cimport blosc_decode
from zcore.kernel.codec.checksums cimport crc32c_of
from zcore.kernel.io.files cimport ABSENT, Buffer, buffer_free, object_open, object_read
from zcore.kernel.select.grid cimport Axis, Span, axis_init, axis_span
from zcore.kernel.status cimport Status, check, status_clear


def checksum(const uint8_t[::1] data not None):
    """Return the CRC-32C of `data`, which is not empty."""
    cdef uint32_t found
    with nogil:
        found = crc32c_of(&data[0], data.shape[0], 0)
    return found


def spans(int64_t length, int64_t chunk, int64_t start, int64_t step, int64_t count):
    """Return (chunk, start in it, count) of each chunk that a box of one dimension touches."""
    cdef Axis axis
    cdef Span span
    cdef int64_t k
    found = []
    if axis_init(&axis, length, chunk, start, step, count) != 0:
        raise ValueError("the box does not fit the axis")
    for k in range(axis.n_chunks):
        axis_span(&axis, k, &span)
        found.append((span.chunk, span.start, span.count))
    return found


def decode(const uint8_t[::1] stored not None, int64_t itemsize):
    """Return the content of a chunk that is not empty: no object, no GIL from its header to its last byte."""
    cdef const uint8_t *src = &stored[0]
    cdef int64_t n_bytes = stored.shape[0]
    cdef uint8_t *content = NULL
    cdef BloscHeader header
    cdef Status status
    status_clear(&status)
    with nogil:
        if check_header(src, n_bytes, -1, itemsize, &header, &status) == 0:
            content = <uint8_t *>malloc(header.nbytes)
            if content != NULL:
                blosc_decode(src, n_bytes, content, header.nbytes, itemsize, 1, &status)
    try:
        check(&status)
        if content == NULL:
            raise MemoryError
        return content[:header.nbytes]
    finally:
        free(content)


def read(int directory, const char *name, uint8_t[::1] out not None, int64_t itemsize):
    """Read a chunk's file into `out`, which is not empty; return its stored size, or None when there is no such file.

    `directory` is a descriptor, `name` relative to it. From the open of the file to the last element there is no object
    and no GIL.
    """
    cdef uint8_t *dst = &out[0]
    cdef int64_t dst_nbytes = out.shape[0]
    cdef int64_t n_stored = 0
    cdef Buffer buffer = Buffer(NULL, 0)
    cdef Status status
    cdef int fd
    status_clear(&status)
    with nogil:
        fd = object_open(directory, name, &status)
        if fd >= 0:
            n_stored = object_read(fd, dst_nbytes + 16, &buffer, &status)
            close(fd)
            if n_stored >= 0:
                blosc_decode(buffer.data, n_stored, dst, dst_nbytes, itemsize, 1, &status)
        buffer_free(&buffer)
    check(&status)
    return None if fd == ABSENT else n_stored
