"""CRC-32C (Castagnoli), by the CPU's instruction if it has one, chosen at run time."""
from libc.stdint cimport int64_t, uint8_t, uint32_t


# `seed` is 0, or the sum of the preceding bytes.
cdef uint32_t crc32c_of(const uint8_t *data, int64_t n_bytes, uint32_t seed) noexcept nogil
