# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""CRC-32C, the checksum of the Zarr v3 `crc32c` codec and of shard indexes.

The Castagnoli polynomial with reflected bits, initial value and final inversion of all ones (RFC 3720, appendix B.4).
The sum of "123456789" is 0xe3069283.

Compiled, because it runs over every byte of a chunk with this codec. It uses the CPU's instruction if there is one,
checked when the module is imported, and otherwise a table (eight bytes at a time).
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef extern from "codec/crc32c.h" nogil:
    ctypedef uint32_t (*zc_crc32c_function)(uint32_t crc, const uint8_t *data, int64_t n) noexcept nogil
    zc_crc32c_function zc_crc32c_choose(const char **name) noexcept
    uint32_t zc_crc32c_by_table(uint32_t crc, const uint8_t *data, int64_t n) noexcept


cdef const char *chosen_name = NULL
cdef zc_crc32c_function update = zc_crc32c_choose(&chosen_name)


cdef uint32_t crc32c_of(const uint8_t *data, int64_t n_bytes, uint32_t seed) noexcept nogil:
    return ~update(~seed, data, n_bytes)


def implementation():
    """Return how this process computes the sum: ``"sse4.2"``, ``"armv8"`` or ``"table"``.

    >>> implementation() in ("sse4.2", "armv8", "table")
    True
    """
    return chosen_name.decode("ascii")


def crc32c(data, uint32_t seed=0):
    """Return the CRC-32C of some bytes.

    Parameters
    ----------
    data : bytes-like
        Contiguous bytes. The GIL is released.
    seed : int, optional
        The sum of the preceding bytes: the sums of parts chain to the sum of the whole.

    Returns
    -------
    int
        0 to 2**32 - 1; for no bytes, the seed.

    Notes
    -----
    RFC 3720, appendix B.4; Zarr v3 `crc32c` codec.

    Examples
    --------
    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    >>> hex(crc32c(b"6789", crc32c(b"12345")))
    '0xe3069283'
    """
    return _sum(update, data, seed)


def crc32c_table(data, uint32_t seed=0):
    """Return the same sum, computed by the table on any CPU.

    >>> hex(crc32c_table(b"123456789"))
    '0xe3069283'
    """
    return _sum(zc_crc32c_by_table, data, seed)


cdef _sum(zc_crc32c_function function, data, uint32_t seed):
    cdef Py_buffer view
    cdef uint32_t result
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        result = ~function(~seed, <const uint8_t *>view.buf, view.len)
    PyBuffer_Release(&view)
    return result
