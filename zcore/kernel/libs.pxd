"""Prototypes of the C libraries inside the kernel: c-blosc and what its archive carries.

Only `compress.pyx` links them. zstd, LZ4 and zlib are declared by hand: the archive defines their functions, but the
blosc distribution ships no headers of theirs.
"""


cdef extern from "blosc.h" nogil:
    int blosc_compress_ctx(int clevel, int doshuffle, size_t typesize, size_t nbytes, const void *src, void *dest,
                           size_t destsize, const char *compressor, size_t blocksize, int numinternalthreads)
    int blosc_decompress_ctx(const void *src, void *dest, size_t destsize, int numinternalthreads)
    const char *blosc_list_compressors()
    const char *blosc_get_version_string()


cdef extern from * nogil:
    """
    extern unsigned ZSTD_versionNumber(void);
    extern const char *LZ4_versionString(void);
    extern const char *zlibVersion(void);
    """
    unsigned ZSTD_versionNumber()
    const char *LZ4_versionString()
    const char *zlibVersion()
