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
    extern size_t ZSTD_decompress(void *dst, size_t dst_capacity, const void *src, size_t src_size);
    extern const char *LZ4_versionString(void);
    extern int LZ4_decompress_safe(const char *src, char *dst, int compressed_size, int dst_capacity);
    extern int LZ4_compress_fast(const char *src, char *dst, int src_size, int dst_capacity, int acceleration);
    extern const char *zlibVersion(void);
    extern int uncompress(unsigned char *dest, unsigned long *dest_len, const unsigned char *source,
                          unsigned long source_len);
    """
    unsigned ZSTD_versionNumber()
    size_t ZSTD_decompress(void *dst, size_t dst_capacity, const void *src, size_t src_size)
    const char *LZ4_versionString()
    int LZ4_decompress_safe(const char *src, char *dst, int compressed_size, int dst_capacity)
    int LZ4_compress_fast(const char *src, char *dst, int src_size, int dst_capacity, int acceleration)
    const char *zlibVersion()
    int uncompress(unsigned char *dest, unsigned long *dest_len, const unsigned char *source, unsigned long source_len)
