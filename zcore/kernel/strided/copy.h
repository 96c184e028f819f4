/* Moves of elements in the two innermost dimensions of a strided copy.
 *
 * A plane is n1 rows of n0 elements. All distances are in bytes, may be negative, and need no alignment: elements
 * pass through a local variable by memcpy, which compilers turn into one load and one store. Source and target never
 * overlap. Planes are chosen once per copy (zc_plane) and called for every position of the outer dimensions.
 */
#ifndef ZCORE_COPY_H
#define ZCORE_COPY_H

#include <stdint.h>
#include <string.h>

#include "strided/transpose.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#define ZC_STREAMS 1
#else
#define ZC_STREAMS 0
#endif

typedef struct {
    uint64_t low, high;
} zc_pair;

#define ZC_SAME(x) (x)

/* Items of one machine type, each passed through TURN (ZC_SAME or a byte swap). Branching on the strides gives the
 * compiler loops with constant distances, which it vectorises. */
#define ZC_DEFINE_PLANE(TARGET, NAME, TYPE, TURN)                                                               \
    TARGET static void NAME(const char *src, char *dst, int64_t n1, int64_t src1, int64_t dst1,                        \
                     int64_t n0, int64_t src0, int64_t dst0, int64_t itemsize)                                  \
    {                                                                                                           \
        const int64_t size = (int64_t)sizeof(TYPE);                                                             \
        (void)itemsize;                                                                                         \
        for (int64_t i = 0; i < n1; i++) {                                                                      \
            const char *s = src + i * src1;                                                                     \
            char *t = dst + i * dst1;                                                                           \
            TYPE x;                                                                                             \
            if (dst0 == size && src0 == size) {                                                                 \
                for (int64_t j = 0; j < n0; j++) {                                                              \
                    memcpy(&x, s + j * size, sizeof x);                                                         \
                    x = TURN(x);                                                                                \
                    memcpy(t + j * size, &x, sizeof x);                                                         \
                }                                                                                               \
            } else if (dst0 == size && src0 == -size) {                                                         \
                for (int64_t j = 0; j < n0; j++) {                                                              \
                    memcpy(&x, s - j * size, sizeof x);                                                         \
                    x = TURN(x);                                                                                \
                    memcpy(t + j * size, &x, sizeof x);                                                         \
                }                                                                                               \
            } else if (src0 == 0) {                                                                             \
                memcpy(&x, s, sizeof x);                                                                        \
                x = TURN(x);                                                                                    \
                if (dst0 == size)                                                                               \
                    for (int64_t j = 0; j < n0; j++)                                                            \
                        memcpy(t + j * size, &x, sizeof x);                                                     \
                else                                                                                            \
                    for (int64_t j = 0; j < n0; j++)                                                            \
                        memcpy(t + j * dst0, &x, sizeof x);                                                     \
            } else if (dst0 == size) {                                                                          \
                for (int64_t j = 0; j < n0; j++) {                                                              \
                    memcpy(&x, s + j * src0, sizeof x);                                                         \
                    x = TURN(x);                                                                                \
                    memcpy(t + j * size, &x, sizeof x);                                                         \
                }                                                                                               \
            } else {                                                                                            \
                for (int64_t j = 0; j < n0; j++) {                                                              \
                    memcpy(&x, s + j * src0, sizeof x);                                                         \
                    x = TURN(x);                                                                                \
                    memcpy(t + j * dst0, &x, sizeof x);                                                         \
                }                                                                                               \
            }                                                                                                   \
        }                                                                                                       \
    }

#define ZC_DEFINE_PLANES(TARGET, SUFFIX)                                                                        \
    ZC_DEFINE_PLANE(TARGET, zc_plane_1##SUFFIX, uint8_t, ZC_SAME)                                               \
    ZC_DEFINE_PLANE(TARGET, zc_plane_2##SUFFIX, uint16_t, ZC_SAME)                                              \
    ZC_DEFINE_PLANE(TARGET, zc_plane_4##SUFFIX, uint32_t, ZC_SAME)                                              \
    ZC_DEFINE_PLANE(TARGET, zc_plane_8##SUFFIX, uint64_t, ZC_SAME)                                              \
    ZC_DEFINE_PLANE(TARGET, zc_plane_16##SUFFIX, zc_pair, ZC_SAME)                                              \
    ZC_DEFINE_PLANE(TARGET, zc_plane_turn_2##SUFFIX, uint16_t, __builtin_bswap16)                               \
    ZC_DEFINE_PLANE(TARGET, zc_plane_turn_4##SUFFIX, uint32_t, __builtin_bswap32)                               \
    ZC_DEFINE_PLANE(TARGET, zc_plane_turn_8##SUFFIX, uint64_t, __builtin_bswap64)

ZC_DEFINE_PLANES(, _any)

/* The same loops with AVX2, which can shuffle the bytes of a vector. Swaps and reversals of dense rows get three to ten
 * times as fast. Loops with other distances would get slower, because compilers then gather vectors item by item. */
#if defined(__x86_64__)
ZC_DEFINE_PLANES(__attribute__((target("avx2"))), _avx2)
#define ZC_CHOOSE(NAME) (dense && zc_has_avx2 ? NAME##_avx2 : NAME##_any)
#else
#define ZC_CHOOSE(NAME) NAME##_any
#endif

/* n bytes; short moves without a call, as two loads that may overlap. */
static inline void zc_move(char *dst, const char *src, int64_t n)
{
    if (n > 32 || n < 4) {
        memcpy(dst, src, (size_t)n);
    } else if (n >= 16) {
        zc_pair a, b;
        memcpy(&a, src, 16);
        memcpy(&b, src + n - 16, 16);
        memcpy(dst, &a, 16);
        memcpy(dst + n - 16, &b, 16);
    } else if (n >= 8) {
        uint64_t a, b;
        memcpy(&a, src, 8);
        memcpy(&b, src + n - 8, 8);
        memcpy(dst, &a, 8);
        memcpy(dst + n - 8, &b, 8);
    } else {
        uint32_t a, b;
        memcpy(&a, src, 4);
        memcpy(&b, src + n - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + n - 4, &b, 4);
    }
}

/* Items of any size. */
static void zc_plane_n(const char *src, char *dst, int64_t n1, int64_t src1, int64_t dst1,
                       int64_t n0, int64_t src0, int64_t dst0, int64_t itemsize)
{
    for (int64_t i = 0; i < n1; i++)
        for (int64_t j = 0; j < n0; j++)
            zc_move(dst + i * dst1 + j * dst0, src + i * src1 + j * src0, itemsize);
}

typedef void (*zc_plane_function)(const char *, char *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t);
typedef void (*zc_rectangle_function)(const char *, int64_t, char *, int64_t, int64_t, int64_t);

/* `dense`: rows are contiguous in the target, and contiguous, reversed or constant in the source. */
static inline zc_plane_function zc_plane(int64_t itemsize, int swap, int dense)
{
    (void)dense;
    switch (itemsize) {
    case 1: return ZC_CHOOSE(zc_plane_1);
    case 2: return swap ? ZC_CHOOSE(zc_plane_turn_2) : ZC_CHOOSE(zc_plane_2);
    case 4: return swap ? ZC_CHOOSE(zc_plane_turn_4) : ZC_CHOOSE(zc_plane_4);
    case 8: return swap ? ZC_CHOOSE(zc_plane_turn_8) : ZC_CHOOSE(zc_plane_8);
    case 16: return ZC_CHOOSE(zc_plane_16);
    default: return zc_plane_n;
    }
}

static inline zc_rectangle_function zc_rectangle(int64_t itemsize)
{
    switch (itemsize) {
    case 1: return zc_rectangle_1;
    case 2: return zc_rectangle_2;
    case 4: return zc_rectangle_4;
    case 8: return zc_rectangle_8;
    default: return NULL;
    }
}

static inline void zc_prefetch_rows(const char *at, int64_t stride, int64_t n, int64_t n_bytes, int write)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t byte = 0; byte < n_bytes; byte += 64)
            if (write)
                __builtin_prefetch(at + i * stride + byte, 1);
            else
                __builtin_prefetch(at + i * stride + byte, 0);
}

/* 128 bytes to two cache lines, which are not fetched first and do not stay in the cache. Other threads may see them
 * only after zc_stream_end. */
static inline void zc_stream(char *dst, const char *src)
{
#if defined(__x86_64__)
    for (int byte = 0; byte < 128; byte += 16)
        _mm_stream_si128((__m128i *)(dst + byte), _mm_loadu_si128((const __m128i *)(src + byte)));
#else
    memcpy(dst, src, 128);
#endif
}

static inline void zc_stream_end(void)
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

/* A plane of items of up to 32 bytes, densest along n1 in the source and along n0 in the target: a transposition. It
 * is done in square tiles of two cache lines, so that each line is fetched once although both sides are visited across
 * their rows. A tile is built in a buffer and leaves it in whole rows. Otherwise rows with a power of two between them
 * would share few cache sets and evict each other between their parts. The lines of the target, and of the next tile of
 * the source, are prefetched, because the hardware does not predict strides of that length. `rectangle` moves what is
 * dense on both sides in vectors, and is NULL if nothing is. `leave` moves the rows out of the buffer if they need more
 * than a copy; the other functions then do not change the byte order.
 *
 * Rows that lie in a larger array, and reach over more than the caches near a core hold, bypass them: that halves the
 * traffic to memory. Tiles then begin at a cache line of the target, since a line that is not written as a whole costs
 * more than it saves. */
static void zc_tiled(zc_plane_function plane, zc_rectangle_function rectangle, zc_plane_function leave, const char *src,
                     char *dst, int64_t n1, int64_t src1, int64_t dst1, int64_t n0, int64_t src0, int64_t dst0,
                     int64_t itemsize)
{
    enum { SIDE = 128, LINE = 64, STREAMED = 1 << 22 };
    char tile[SIDE * SIDE];
    const int64_t side = SIDE / itemsize, whole = rectangle ? -(16 / itemsize) : 0;
    const int buffered = dst0 == itemsize;
    const int64_t before = (int64_t)(-(uintptr_t)dst % LINE);
    const int streamed = ZC_STREAMS && buffered && !leave && SIDE % itemsize == 0 && dst1 % LINE == 0
                         && dst1 > n0 * itemsize && n1 >= STREAMED / dst1 && before % itemsize == 0;
    int64_t columns;
    for (int64_t j = 0; j < n0; j += columns) {
        columns = streamed && j == 0 && before > 0 ? before / itemsize : side;
        columns = n0 - j < columns ? n0 - j : columns;
        for (int64_t i = 0; i < n1; i += side) {
            const int64_t rows = n1 - i < side ? n1 - i : side;
            const int64_t full_rows = rows & whole, full_columns = columns & whole;
            const char *s = src + i * src1 + j * src0;
            char *to = dst + i * dst1 + j * dst0, *t = buffered ? tile : to;
            const int64_t t1 = buffered ? SIDE : dst1;
            if (buffered && !(streamed && columns == side))
                zc_prefetch_rows(to, dst1, rows, columns * itemsize, 1);
            if (src1 == itemsize && i + side < n1)
                zc_prefetch_rows(s + SIDE, src0, columns, SIDE, 0);
            if (full_rows > 0 && full_columns > 0)
                rectangle(s, src0, t, t1, full_rows, full_columns);
            if (full_columns < columns)
                plane(s + full_columns * src0, t + full_columns * dst0, full_rows, src1, t1, columns - full_columns,
                      src0, dst0, itemsize);
            if (full_rows < rows)
                plane(s + full_rows * src1, t + full_rows * t1, rows - full_rows, src1, t1, columns, src0, dst0,
                      itemsize);
            if (leave)
                leave(tile, to, rows, SIDE, dst1, columns, itemsize, itemsize, itemsize);
            else if (streamed && columns == side)
                for (int64_t k = 0; k < rows; k++)
                    zc_stream(to + k * dst1, tile + k * SIDE);
            else if (buffered && columns * itemsize == SIDE)
                for (int64_t k = 0; k < rows; k++)
                    memcpy(to + k * dst1, tile + k * SIDE, SIDE);
            else if (buffered)
                for (int64_t k = 0; k < rows; k++)
                    zc_move(to + k * dst1, tile + k * SIDE, columns * itemsize);
        }
    }
    if (streamed)
        zc_stream_end();
}

#endif
