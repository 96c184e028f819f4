# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codecs of four 32-bit checksums, which follow or precede the bytes of an object.

Compiled because they run over every byte of the chunks. CRC-32C, also of shard indexes, has the Castagnoli polynomial
with reflected bits, initial value and final inversion of all ones (RFC 3720, appendix B.4). It uses the CPU's
instruction if there is one, checked when the module is imported, and otherwise a table (eight bytes at a time). CRC-32
and Adler-32 are zlib's. Fletcher-32 is HDF5's variant (HDF5 file format specification, filter 3): two sums modulo 65535
over big-endian words of 16 bits. An odd last byte is the high half of a word.
"""
from libc.stdint cimport int64_t, uint32_t, uint8_t

from zcore.kernel.codec.compress cimport adler32, crc32
from zcore.kernel.codec.table cimport CodecFunctions, Step, add_codec
from zcore.kernel.memory cimport Bytes

cdef enum:
    # After this many words the second 32-bit sum may overflow, unless it is folded.
    FOLD_WORDS = 360


cdef inline uint32_t _fold(uint32_t v) noexcept nogil:
    return (v & 0xffff) + (v >> 16)


cdef uint32_t _fletcher32(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    cdef uint32_t low = 0
    cdef uint32_t high = 0
    cdef int64_t n_words = n_bytes // 2
    cdef int64_t done = 0
    cdef int64_t stop
    while done < n_words:
        stop = min(done + FOLD_WORDS, n_words)
        while done < stop:
            low += (<uint32_t>data[2 * done] << 8) | data[2 * done + 1]
            high += low
            done += 1
        low = _fold(low)
        high = _fold(high)
    if n_bytes % 2:
        low = _fold(low + (<uint32_t>data[n_bytes - 1] << 8))
        high = _fold(high + low)
    return (_fold(high) << 16) | _fold(low)


cdef uint32_t _crc32c(const uint8_t *data, int64_t n_bytes) noexcept nogil:
    return crc32c_of(data, n_bytes, 0)


cdef int _configure(Step *step, tuple parameters) except -1:
    step.at_start = len(parameters) > 0 and parameters[0]
    return 0


cdef CodecFunctions _rows[4]
_rows[0].sum = _crc32c
_rows[1].sum = crc32
_rows[2].sum = adler32
_rows[3].sum = _fletcher32
cdef int _i
for _i, _name in enumerate(("crc32c", "crc32", "adler32", "fletcher32")):
    _rows[_i].configure = _configure
    add_codec(_name, &_rows[_i])


# CRC-32C

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
    cdef Bytes view = Bytes(data)
    cdef uint32_t result
    with nogil:
        result = ~function(~seed, view.data, view.n)
    return result
