/* gzip and zlib by libdeflate, if `setup.py` has found it. It is faster than zlib, and works on whole chunks only.

   libdeflate writes at most `limit` bytes, and verifies sizes and checksums. It does not say what is wrong with a
   stream. So zlib decodes again every stream that libdeflate does not decode whole, and names the error. */
#ifndef ZCORE_LIBDEFLATE_CALLS_H
#define ZCORE_LIBDEFLATE_CALLS_H

#include <stdint.h>

#ifndef ZCORE_LIBDEFLATE

#define ZC_LIBDEFLATE_VERSION ""

static inline int64_t zc_inflate(void **decoder, int is_gzip, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                                 int64_t limit) { return -1; }
static inline int64_t zc_deflate(void **encoder, int level, int is_gzip, const uint8_t *src, int64_t n_bytes,
                                 uint8_t *dst, int64_t capacity) { return -1; }
static inline void zc_deflate_free(void *decoder, void *encoder) { }

#else

#include <libdeflate.h>
#include <stdlib.h>

#define ZC_LIBDEFLATE_VERSION LIBDEFLATE_VERSION_STRING

enum {
    ZC_N_LEVELS = 10,                /* those of zlib; libdeflate has three more */
    ZC_DEFAULT_LEVEL = 6,
    ZC_GZIP_FLAGS = 3,               /* RFC 1952, 2.3: position of the flags in a header */
    ZC_GZIP_HEADER_CRC = 2           /* libdeflate does not verify it */
};

/* Returns the size of the content of a stream, or of all its gzip members; -1 if zlib has to decode it. */
static int64_t zc_inflate(void **decoder, int is_gzip, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                          int64_t limit)
{
    const uint8_t *end = src + n_bytes;
    int64_t n_written = 0;
    size_t n_in, n_out;
    if (!*decoder && !(*decoder = libdeflate_alloc_decompressor())) return -1;
    do {
        size_t n_src = (size_t)(end - src), room = (size_t)(limit - n_written);
        if (is_gzip && n_src > ZC_GZIP_FLAGS && (src[ZC_GZIP_FLAGS] & ZC_GZIP_HEADER_CRC)) return -1;
        if ((is_gzip ? libdeflate_gzip_decompress_ex : libdeflate_zlib_decompress_ex)(
                *decoder, src, n_src, dst + n_written, room, &n_in, &n_out) != LIBDEFLATE_SUCCESS) return -1;
        src += n_in;
        n_written += (int64_t)n_out;
    } while (is_gzip && src != end);
    return src == end ? n_written : -1;
}

/* Returns the size of the stream, 0 if it does not fit or there is no such level, or -1 without memory. `encoder` keeps
   a compressor for each level. */
static int64_t zc_deflate(void **encoder, int level, int is_gzip, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                          int64_t capacity)
{
    struct libdeflate_compressor **of_level = *encoder;
    if (level == -1) level = ZC_DEFAULT_LEVEL;
    if (level < 0 || level >= ZC_N_LEVELS) return 0;
    if (!of_level && !(of_level = *encoder = calloc(ZC_N_LEVELS, sizeof *of_level))) return -1;
    of_level += level;
    if (!*of_level && !(*of_level = libdeflate_alloc_compressor(level))) return -1;
    return (int64_t)(is_gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress)(
        *of_level, src, (size_t)n_bytes, dst, (size_t)capacity);
}

static void zc_deflate_free(void *decoder, void *encoder)
{
    struct libdeflate_compressor **of_level = encoder;
    if (decoder) libdeflate_free_decompressor(decoder);
    for (int i = 0; of_level && i < ZC_N_LEVELS; i++)
        if (of_level[i]) libdeflate_free_compressor(of_level[i]);
    free(of_level);
}

#endif
#endif
