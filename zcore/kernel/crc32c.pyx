# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""CRC-32C, the checksum of the `crc32c` codec.

Compiled because it covers every byte that is read or written. The C is in `crc32c.h`; the tables are made at import.
"""
cdef extern from "crc32c.h" nogil:
    const char *zc_crc_init()
    uint32_t zc_crc32c(uint32_t crc, const uint8_t *data, int64_t n_bytes)
    uint32_t zc_crc_by_table(uint32_t crc, const uint8_t *data, int64_t n_bytes)

cdef str _implementation = zc_crc_init().decode()


cdef uint32_t crc32c(const uint8_t *data, int64_t n_bytes, uint32_t seed) noexcept nogil:
    return zc_crc32c(seed, data, n_bytes)


def checksum(const uint8_t[::1] data not None, uint32_t seed=0):
    """Return the CRC-32C of bytes, an int.

    Parameters
    ----------
    data : bytes-like
    seed : int
        Checksum of what came before; 0 at the beginning.

    >>> hex(checksum(b"123456789"))
    '0xe3069283'
    >>> checksum(b"6789", checksum(b"12345")) == checksum(b"123456789")
    True
    """
    cdef uint8_t empty = 0
    cdef const uint8_t *start = &data[0] if data.shape[0] else &empty
    cdef uint32_t crc
    with nogil:
        crc = zc_crc32c(seed, start, data.shape[0])
    return crc


def checksum_by_table(const uint8_t[::1] data not None, uint32_t seed=0):
    """Return what `checksum` does, by the code for CPUs without an instruction for it."""
    cdef uint8_t empty = 0
    cdef const uint8_t *start = &data[0] if data.shape[0] else &empty
    return <uint32_t>~zc_crc_by_table(~seed, start, data.shape[0])


def implementation():
    """Return what computes the checksums on this machine: ``"sse4.2"``, ``"armv8"`` or ``"table"``."""
    return _implementation
