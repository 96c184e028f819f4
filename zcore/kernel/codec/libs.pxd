"""Prototypes of the C libraries inside the kernel: c-blosc and the libraries that its archive contains.

Only `compress.pyx` links them. zstd, LZ4 and zlib are declared by hand: the archive defines their functions, but the
blosc distribution does not ship their headers. Cython makes the prototypes of these declarations. libdeflate is linked
only where it was found.
"""
from libc.stdint cimport int64_t, uint8_t


cdef extern from "blosc.h" nogil:
    const char *blosc_list_compressors()
    const char *blosc_get_version_string()

# `blosc_compress_ctx` and `blosc_decompress_ctx` in one thread, with memory that is checked; see provided.h.
cdef extern from "codec/provided.h" nogil:
    enum:
        ZC_NO_MEMORY
    int zc_provide()
    void zc_forget_failures()
    int zc_has_failed()
    int zc_blosc_compress(int level, int shuffle, size_t typesize, size_t n_bytes, const void *src, void *dst,
                          size_t capacity, const char *compressor, size_t blocksize)
    int zc_blosc_decompress(const void *src, void *dst, size_t n_bytes)

# libdeflate, if it is linked; see libdeflate_calls.h.
cdef extern from "codec/libdeflate_calls.h" nogil:
    const char *ZC_LIBDEFLATE_VERSION          # "" without it
    int64_t zc_inflate(void **decoder, bint is_gzip, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit)
    int64_t zc_deflate(void **encoder, int level, bint is_gzip, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                       int64_t capacity)
    void zc_deflate_free(void *decoder, void *encoder)


cdef struct z_stream:          # as zlib.h lays it out
    const unsigned char *next_in
    unsigned avail_in
    unsigned long total_in
    unsigned char *next_out
    unsigned avail_out
    unsigned long total_out
    const char *msg
    void *state
    void *(*zalloc)(void *, unsigned, unsigned)
    void (*zfree)(void *, void *)
    void *opaque
    int data_type
    unsigned long adler
    unsigned long reserved

cdef extern nogil:
    unsigned ZSTD_versionNumber()
    size_t ZSTD_decompress(void *dst, size_t dst_capacity, const void *src, size_t src_size)
    void *ZSTD_createDCtx()
    size_t ZSTD_freeDCtx(void *decoder)
    size_t ZSTD_decompressDCtx(void *decoder, void *dst, size_t dst_capacity, const void *src, size_t src_size)
    void *ZSTD_createCCtx()
    size_t ZSTD_freeCCtx(void *encoder)
    size_t ZSTD_CCtx_reset(void *encoder, int directive)
    size_t ZSTD_CCtx_setParameter(void *encoder, int parameter, int value)
    size_t ZSTD_compress2(void *encoder, void *dst, size_t dst_capacity, const void *src, size_t src_size)
    unsigned ZSTD_isError(size_t code)
    int ZSTD_getErrorCode(size_t code)
    int ZSTD_minCLevel()
    int ZSTD_maxCLevel()
    const char *LZ4_versionString()
    int LZ4_decompress_safe(const char *src, char *dst, int compressed_size, int dst_capacity)
    int LZ4_compress_fast(const char *src, char *dst, int src_size, int dst_capacity, int acceleration)
    const char *zlibVersion()
    int uncompress(unsigned char *dest, unsigned long *dest_len, const unsigned char *source, unsigned long source_len)
    unsigned long crc32(unsigned long sum, const unsigned char *data, unsigned n_bytes)
    unsigned long adler32(unsigned long sum, const unsigned char *data, unsigned n_bytes)
    int inflateInit2_(z_stream *stream, int window_bits, const char *version, int stream_size)
    int inflate(z_stream *stream, int flush)
    int inflateReset(z_stream *stream)
    int inflateEnd(z_stream *stream)
    int deflateInit2_(z_stream *stream, int level, int method, int window_bits, int memory_level, int strategy,
                      const char *version, int stream_size)
    int deflate(z_stream *stream, int flush)
    int deflateEnd(z_stream *stream)
