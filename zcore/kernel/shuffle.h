/* Byte and bit shuffle of one block. Plain C: with the item size known the compiler makes vector code of the loops. */
#ifndef ZCORE_SHUFFLE_H
#define ZCORE_SHUFFLE_H

#include <stdint.h>
#include <string.h>

#define ZC_UNSHUFFLE(SIZE)                                                                      \
    case SIZE:                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                         \
            for (int j = 0; j < SIZE; j++) dst[i * SIZE + j] = src[j * n + i];                  \
        break;
#define ZC_SHUFFLE(SIZE)                                                                        \
    case SIZE:                                                                                  \
        for (int j = 0; j < SIZE; j++)                                                          \
            for (int64_t i = 0; i < n; i++) dst[j * n + i] = src[i * SIZE + j];                 \
        break;

static void zc_unshuffle(const uint8_t *restrict src, uint8_t *restrict dst, int64_t n_bytes, int64_t typesize)
{
    int64_t n = n_bytes / typesize;
    switch (typesize) {
        ZC_UNSHUFFLE(2) ZC_UNSHUFFLE(4) ZC_UNSHUFFLE(8) ZC_UNSHUFFLE(16)
    default:
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < typesize; j++) dst[i * typesize + j] = src[j * n + i];
    }
    memcpy(dst + n * typesize, src + n * typesize, (size_t)(n_bytes - n * typesize));
}

static void zc_shuffle(const uint8_t *restrict src, uint8_t *restrict dst, int64_t n_bytes, int64_t typesize)
{
    int64_t n = n_bytes / typesize;
    switch (typesize) {
        ZC_SHUFFLE(2) ZC_SHUFFLE(4) ZC_SHUFFLE(8) ZC_SHUFFLE(16)
    default:
        for (int64_t j = 0; j < typesize; j++)
            for (int64_t i = 0; i < n; i++) dst[j * n + i] = src[i * typesize + j];
    }
    memcpy(dst + n * typesize, src + n * typesize, (size_t)(n_bytes - n * typesize));
}

/* The 8 x 8 bit matrix with byte r as row r, transposed: swap the off-diagonal halves of 2, 4 and 8 bits. */
static inline uint64_t zc_transpose_bits(uint64_t x)
{
    uint64_t t;
    t = (x ^ x >> 7) & 0x00AA00AA00AA00AAu;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCCu;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0u;
    return x ^ t ^ t << 28;
}

/* Row 8j + b of the stored block holds bit b of byte j of all elements, the first element in the lowest bit. */
static void zc_unbitshuffle(const uint8_t *restrict src, uint8_t *restrict dst, int64_t n_bytes, int64_t typesize)
{
    int64_t n = n_bytes / typesize;
    if (n % 8) {
        memcpy(dst, src, (size_t)n_bytes);
        return;
    }
    int64_t row = n / 8;
    for (int64_t j = 0; j < typesize; j++)
        for (int64_t g = 0; g < row; g++) {
            uint64_t bits = 0;
            for (int b = 0; b < 8; b++) bits |= (uint64_t)src[(8 * j + b) * row + g] << 8 * b;
            bits = zc_transpose_bits(bits);
            for (int e = 0; e < 8; e++) dst[(8 * g + e) * typesize + j] = (uint8_t)(bits >> 8 * e);
        }
    memcpy(dst + n * typesize, src + n * typesize, (size_t)(n_bytes - n * typesize));
}

#endif
