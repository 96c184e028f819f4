/* Byte shuffle, bit shuffle and their inverses, of n items.
 *
  * Shuffled, byte j of item i lies at j * plane + i: a transposition of n rows of `typesize` bytes. Item sizes 2, 4, 8
  * and 16 use the network of transpose.h with as many vectors as an item has bytes: log2(typesize) steps turn planes
  * into items, four steps turn items into planes, without a copy in between. Other sizes are transposed in squares.
  * For the items left over at the end, the last step is repeated further back, over items that are already done.
  */
#ifndef ZCORE_SHUFFLE_H
#define ZCORE_SHUFFLE_H

#include <stdint.h>
#include <string.h>

#include "strided/transpose.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void zc_planes_to_items_slow(const char *src, int64_t plane, char *dst, int64_t n, int64_t typesize)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < typesize; j++)
            dst[i * typesize + j] = src[j * plane + i];
}

static void zc_items_to_planes_slow(const char *src, char *dst, int64_t plane, int64_t n, int64_t typesize)
{
    for (int64_t j = 0; j < typesize; j++)
        for (int64_t i = 0; i < n; i++)
            dst[j * plane + i] = src[i * typesize + j];
}

/* The loop over n >= STEP items around `move`, which handles STEP of them. */
#define ZC_DEFINE_SHUFFLE_LOOPS(T, STEP, TARGET, NAME)                                                          \
    TARGET static void zc_planes_to_items_##NAME(const char *src, int64_t plane, char *dst, int64_t n)          \
    {                                                                                                           \
        int64_t i = 0;                                                                                          \
        for (; i + STEP <= n; i += STEP)                                                                        \
            zc_gather_##NAME(src + i, plane, dst + i * T);                                                      \
        if (i < n)                                                                                              \
            zc_gather_##NAME(src + n - STEP, plane, dst + (n - STEP) * T);                                      \
    }                                                                                                           \
    TARGET static void zc_items_to_planes_##NAME(const char *src, char *dst, int64_t plane, int64_t n)          \
    {                                                                                                           \
        int64_t i = 0;                                                                                          \
        for (; i + STEP <= n; i += STEP)                                                                        \
            zc_spread_##NAME(src + i * T, dst + i, plane);                                                      \
        if (i < n)                                                                                              \
            zc_spread_##NAME(src + (n - STEP) * T, dst + n - STEP, plane);                                      \
    }

/* 16 items, T vectors of 16 bytes. */
#define ZC_DEFINE_SHUFFLE(T, STEPS)                                                                             \
    static inline void zc_gather_##T(const char *src, int64_t plane, char *dst)                                 \
    {                                                                                                           \
        zc_v1 a[T];                                                                                             \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            memcpy(&a[j], src + j * plane, 16);                                                                 \
        _Pragma("GCC unroll 4")                                                                                 \
        for (int step = 0; step < STEPS; step++)                                                                \
            ZC_INTERLEAVE(zc_v1, T, ZC_LOW_1, ZC_HIGH_1, a);                                                    \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            memcpy(dst + 16 * j, &a[j], 16);                                                                    \
    }                                                                                                           \
    static inline void zc_spread_##T(const char *src, char *dst, int64_t plane)                                 \
    {                                                                                                           \
        zc_v1 a[T];                                                                                             \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            memcpy(&a[j], src + 16 * j, 16);                                                                    \
        _Pragma("GCC unroll 4")                                                                                 \
        for (int step = 0; step < 4; step++)                                                                    \
            ZC_INTERLEAVE(zc_v1, T, ZC_LOW_1, ZC_HIGH_1, a);                                                    \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            memcpy(dst + j * plane, &a[j], 16);                                                                 \
    }                                                                                                           \
    ZC_DEFINE_SHUFFLE_LOOPS(T, 16, , T)

ZC_DEFINE_SHUFFLE(2, 1)
ZC_DEFINE_SHUFFLE(4, 2)
ZC_DEFINE_SHUFFLE(8, 3)
ZC_DEFINE_SHUFFLE(16, 4)

#if defined(__x86_64__)

#define ZC_AVX2 __attribute__((target("avx2")))

/* 32 items. A 32-byte vector is two of 16 bytes that take the same steps: the first half holds items 0-15, the second
 * items 16-31. The halves are moved to, or from, their places in memory on the items' side. */
#define ZC_DEFINE_SHUFFLE_AVX2(T, STEPS)                                                                        \
    ZC_AVX2 static inline void zc_gather_avx2_##T(const char *src, int64_t plane, char *dst)                    \
    {                                                                                                           \
        __m256i a[T];                                                                                           \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            a[j] = _mm256_loadu_si256((const __m256i *)(src + j * plane));                                      \
        _Pragma("GCC unroll 4")                                                                                 \
        for (int step = 0; step < STEPS; step++)                                                                \
            ZC_INTERLEAVE(__m256i, T, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8, a);                           \
        _Pragma("GCC unroll 8")                                                                                 \
        for (int j = 0; j < T; j += 2) {                                                                        \
            const __m256i first = _mm256_permute2x128_si256(a[j], a[j + 1], 0x20);                              \
            const __m256i second = _mm256_permute2x128_si256(a[j], a[j + 1], 0x31);                             \
            _mm256_storeu_si256((__m256i *)(dst + 16 * j), first);                                              \
            _mm256_storeu_si256((__m256i *)(dst + 16 * (T + j)), second);                                       \
        }                                                                                                       \
    }                                                                                                           \
    ZC_AVX2 static inline void zc_spread_avx2_##T(const char *src, char *dst, int64_t plane)                    \
    {                                                                                                           \
        __m256i a[T];                                                                                           \
        _Pragma("GCC unroll 8")                                                                                 \
        for (int j = 0; j < T; j += 2) {                                                                        \
            const __m256i first = _mm256_loadu_si256((const __m256i *)(src + 16 * j));                          \
            const __m256i second = _mm256_loadu_si256((const __m256i *)(src + 16 * (T + j)));                   \
            a[j] = _mm256_permute2x128_si256(first, second, 0x20);                                              \
            a[j + 1] = _mm256_permute2x128_si256(first, second, 0x31);                                          \
        }                                                                                                       \
        _Pragma("GCC unroll 4")                                                                                 \
        for (int step = 0; step < 4; step++)                                                                    \
            ZC_INTERLEAVE(__m256i, T, _mm256_unpacklo_epi8, _mm256_unpackhi_epi8, a);                           \
        _Pragma("GCC unroll 16")                                                                                \
        for (int j = 0; j < T; j++)                                                                             \
            _mm256_storeu_si256((__m256i *)(dst + j * plane), a[j]);                                            \
    }                                                                                                           \
    ZC_DEFINE_SHUFFLE_LOOPS(T, 32, ZC_AVX2, avx2_##T)

ZC_DEFINE_SHUFFLE_AVX2(2, 1)
ZC_DEFINE_SHUFFLE_AVX2(4, 2)
ZC_DEFINE_SHUFFLE_AVX2(8, 3)
ZC_DEFINE_SHUFFLE_AVX2(16, 4)

#define ZC_SHUFFLE_CASE(DIRECTION, T, ...)                                                                      \
    case T:                                                                                                     \
        if (zc_has_avx2 && n >= 32)                                                                             \
            DIRECTION##_avx2_##T(__VA_ARGS__);                                                                  \
        else                                                                                                    \
            DIRECTION##_##T(__VA_ARGS__);                                                                       \
        return

#else
#define ZC_SHUFFLE_CASE(DIRECTION, T, ...)                                                                      \
    case T:                                                                                                     \
        DIRECTION##_##T(__VA_ARGS__);                                                                           \
        return
#endif

static void zc_planes_to_items(const char *src, int64_t plane, char *dst, int64_t n, int64_t typesize)
{
    int64_t i = 0;
    if (typesize == 1) {
        memcpy(dst, src, (size_t)n);
        return;
    }
    if (n >= 16)
        switch (typesize) {
        ZC_SHUFFLE_CASE(zc_planes_to_items, 2, src, plane, dst, n);
        ZC_SHUFFLE_CASE(zc_planes_to_items, 4, src, plane, dst, n);
        ZC_SHUFFLE_CASE(zc_planes_to_items, 8, src, plane, dst, n);
        ZC_SHUFFLE_CASE(zc_planes_to_items, 16, src, plane, dst, n);
        }
    if (typesize > 16 && n >= 16) {
        for (; i < n; i += 16)
            for (int64_t j = 0; j < typesize; j += 16) {
                const int64_t at = i + 16 <= n ? i : n - 16, byte = j + 16 <= typesize ? j : typesize - 16;
                zc_square_1(src + byte * plane + at, plane, dst + at * typesize + byte, typesize);
            }
        return;
    }
    /* The 16 - typesize bytes behind an item belong to the next ones, which are written later. */
    for (; (i + 15) * typesize + 16 <= n * typesize; i += 16)
        zc_part_square_1(src + i, plane, (int)typesize, dst + i * typesize, typesize, 16);
    zc_planes_to_items_slow(src + i, plane, dst + i * typesize, n - i, typesize);
}

static void zc_items_to_planes(const char *src, char *dst, int64_t plane, int64_t n, int64_t typesize)
{
    int64_t i = 0;
    if (typesize == 1) {
        memcpy(dst, src, (size_t)n);
        return;
    }
    if (n >= 16)
        switch (typesize) {
        ZC_SHUFFLE_CASE(zc_items_to_planes, 2, src, dst, plane, n);
        ZC_SHUFFLE_CASE(zc_items_to_planes, 4, src, dst, plane, n);
        ZC_SHUFFLE_CASE(zc_items_to_planes, 8, src, dst, plane, n);
        ZC_SHUFFLE_CASE(zc_items_to_planes, 16, src, dst, plane, n);
        }
    if (typesize > 16 && n >= 16) {
        for (; i < n; i += 16)
            for (int64_t j = 0; j < typesize; j += 16) {
                const int64_t at = i + 16 <= n ? i : n - 16, byte = j + 16 <= typesize ? j : typesize - 16;
                zc_square_1(src + at * typesize + byte, typesize, dst + byte * plane + at, plane);
            }
        return;
    }
    for (; (i + 15) * typesize + 16 <= n * typesize; i += 16)
        zc_part_square_1(src + i * typesize, typesize, 16, dst + i, plane, (int)typesize);
    zc_items_to_planes_slow(src + i * typesize, dst + i, plane, n - i, typesize);
}

/* Bit shuffle: row 8 * j + b, of n / 8 bytes, holds bit b of byte j of all items, item 0 in the lowest bit. The bytes
 * at one index of eight rows are an 8 x 8 matrix of bits. It is transposed by exchanging off-diagonal blocks of 4, 2
 * and 1 bits between rows. Then row e holds the bytes of item e of each group of eight, and the network puts them in
 * order. That makes byte planes, for one strip of items at a time, so that they stay in the cache. The other way takes
 * the same steps from the end; the network's seven steps make one circle, so its other four undo these three. */
#define ZC_EXCHANGE(a, distance, mask)                                                                          \
    do {                                                                                                        \
        _Pragma("GCC unroll 8")                                                                                 \
        for (int b_ = 0; b_ < 8; b_++)                                                                          \
            if (!(b_ & (distance))) {                                                                           \
                const __typeof__((a)[0]) t_ = ((a)[b_] >> (distance) ^ (a)[b_ + (distance)]) & (mask);          \
                (a)[b_ + (distance)] ^= t_;                                                                     \
                (a)[b_] ^= t_ << (distance);                                                                    \
            }                                                                                                   \
    } while (0)

#define ZC_TRANSPOSE_BITS(a)                                                                                    \
    do {                                                                                                        \
        ZC_EXCHANGE(a, 4, 0x0f0f0f0f0f0f0f0fULL);                                                               \
        ZC_EXCHANGE(a, 2, 0x3333333333333333ULL);                                                               \
        ZC_EXCHANGE(a, 1, 0x5555555555555555ULL);                                                               \
    } while (0)

/* Moves the bytes at one index of eight rows to byte j of eight items. */
static void zc_rows_to_bytes(const char *src, int64_t row, char *dst, int64_t typesize)
{
    uint64_t a[8];
    for (int b = 0; b < 8; b++)
        a[b] = (uint8_t)src[b * row];
    ZC_TRANSPOSE_BITS(a);
    for (int e = 0; e < 8; e++)
        dst[e * typesize] = (char)a[e];
}

/* Moves byte j of eight items to one index of eight rows. */
static void zc_bytes_to_rows(const char *src, int64_t typesize, char *dst, int64_t row)
{
    uint64_t a[8];
    for (int e = 0; e < 8; e++)
        a[e] = (uint8_t)src[e * typesize];
    ZC_TRANSPOSE_BITS(a);
    for (int b = 0; b < 8; b++)
        dst[b * row] = (char)a[b];
}

/* Moves eight rows to `groups` times eight items of one byte plane. */
static void zc_rows_to_plane(const char *src, int64_t row, char *dst, int64_t groups)
{
    int64_t g = 0;
    for (; g + 16 <= groups; g += 16) {
        zc_v8 a[8];
        zc_v1 c[8];
        _Pragma("GCC unroll 8")
        for (int b = 0; b < 8; b++)
            memcpy(&a[b], src + b * row + g, 16);
        ZC_TRANSPOSE_BITS(a);
        _Pragma("GCC unroll 8")
        for (int e = 0; e < 8; e++)
            c[e] = (zc_v1)a[e];
        _Pragma("GCC unroll 3")
        for (int step = 0; step < 3; step++)
            ZC_INTERLEAVE(zc_v1, 8, ZC_LOW_1, ZC_HIGH_1, c);
        _Pragma("GCC unroll 8")
        for (int k = 0; k < 8; k++)
            memcpy(dst + 8 * g + 16 * k, &c[k], 16);
    }
    for (; g < groups; g++)
        zc_rows_to_bytes(src + g, row, dst + 8 * g, 1);
}

/* Moves `groups` times eight items of one byte plane to eight rows. */
static void zc_plane_to_rows(const char *src, char *dst, int64_t row, int64_t groups)
{
    int64_t g = 0;
    for (; g + 16 <= groups; g += 16) {
        zc_v1 c[8];
        zc_v8 a[8];
        _Pragma("GCC unroll 8")
        for (int k = 0; k < 8; k++)
            memcpy(&c[k], src + 8 * g + 16 * k, 16);
        _Pragma("GCC unroll 4")
        for (int step = 0; step < 4; step++)
            ZC_INTERLEAVE(zc_v1, 8, ZC_LOW_1, ZC_HIGH_1, c);
        _Pragma("GCC unroll 8")
        for (int e = 0; e < 8; e++)
            a[e] = (zc_v8)c[e];
        ZC_TRANSPOSE_BITS(a);
        _Pragma("GCC unroll 8")
        for (int b = 0; b < 8; b++)
            memcpy(dst + b * row + g, &a[b], 16);
    }
    for (; g < groups; g++)
        zc_bytes_to_rows(src + 8 * g, 1, dst + g, row);
}

/* 512 items use whole cache lines of every row; 128 are enough for sizes up to 255, the largest of Blosc. */
enum { ZC_STRIP_NBYTES = 32768 };

static int64_t zc_strip_items(int64_t n, int64_t typesize)
{
    return typesize == 1 ? n : typesize <= ZC_STRIP_NBYTES / 512 ? 512 : 128;
}

/* n is a multiple of 8. */
static void zc_rows_to_items(const char *src, char *dst, int64_t n, int64_t typesize)
{
    char strip[ZC_STRIP_NBYTES];
    const int64_t most = zc_strip_items(n, typesize);
    if (typesize > ZC_STRIP_NBYTES / 128) {
        for (int64_t j = 0; j < typesize; j++)
            for (int64_t i = 0; i < n; i += 8)
                zc_rows_to_bytes(src + j * n + i / 8, n / 8, dst + i * typesize + j, typesize);
        return;
    }
    for (int64_t i = 0; i < n; i += most) {
        const int64_t items = n - i < most ? n - i : most;
        char *planes = typesize == 1 ? dst : strip;
        for (int64_t j = 0; j < typesize; j++)
            zc_rows_to_plane(src + j * n + i / 8, n / 8, planes + j * items, items / 8);
        if (typesize > 1)
            zc_planes_to_items(strip, items, dst + i * typesize, items, typesize);
    }
}

/* The inverse. */
static void zc_items_to_rows(const char *src, char *dst, int64_t n, int64_t typesize)
{
    char strip[ZC_STRIP_NBYTES];
    const int64_t most = zc_strip_items(n, typesize);
    if (typesize > ZC_STRIP_NBYTES / 128) {
        for (int64_t j = 0; j < typesize; j++)
            for (int64_t i = 0; i < n; i += 8)
                zc_bytes_to_rows(src + i * typesize + j, typesize, dst + j * n + i / 8, n / 8);
        return;
    }
    for (int64_t i = 0; i < n; i += most) {
        const int64_t items = n - i < most ? n - i : most;
        const char *planes = typesize == 1 ? src : strip;
        if (typesize > 1)
            zc_items_to_planes(src + i * typesize, strip, items, items, typesize);
        for (int64_t j = 0; j < typesize; j++)
            zc_plane_to_rows(planes + j * items, dst + j * n + i / 8, n / 8, items / 8);
    }
}

#endif
