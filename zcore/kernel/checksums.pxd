"""The checksums that stand behind or before the bytes of an object."""
from libc.stdint cimport int64_t, uint8_t, uint32_t


cdef enum Sum:
    SUM_CRC32C = 0             # RFC 3720
    SUM_CRC32 = 1              # of zlib
    SUM_ADLER32 = 2            # of zlib
    SUM_FLETCHER32 = 3         # of HDF5

cdef enum:
    SUM_NBYTES = 4             # of each of them, stored little-endian

cdef uint32_t checksum(int kind, const uint8_t *data, int64_t n_bytes) noexcept nogil
cdef uint32_t load_u32(const uint8_t *p) noexcept nogil
cdef void store_u32(uint8_t *p, uint32_t v) noexcept nogil
