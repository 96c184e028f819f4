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

#include "transpose.h"

#define ZC_TILE_NBYTES 128

typedef struct {
    uint64_t low, high;
} zc_pair;

#define ZC_SAME(x) (x)

static inline zc_pair zc_turn_pair(zc_pair x)
{
    zc_pair turned = {__builtin_bswap64(x.high), __builtin_bswap64(x.low)};
    return turned;
}

/* Items of one machine type, each passed through TURN (ZC_SAME or a byte swap). The branches on the strides leave the
 * compiler loops with constant distances, which it vectorises. */
#define ZC_DEFINE_PLANE(NAME, TYPE, TURN)                                                                       \
    static void NAME(const char *src, char *dst, int64_t n1, int64_t src1, int64_t dst1,                        \
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

ZC_DEFINE_PLANE(zc_plane_1, uint8_t, ZC_SAME)
ZC_DEFINE_PLANE(zc_plane_2, uint16_t, ZC_SAME)
ZC_DEFINE_PLANE(zc_plane_4, uint32_t, ZC_SAME)
ZC_DEFINE_PLANE(zc_plane_8, uint64_t, ZC_SAME)
ZC_DEFINE_PLANE(zc_plane_16, zc_pair, ZC_SAME)
ZC_DEFINE_PLANE(zc_plane_turn_2, uint16_t, __builtin_bswap16)
ZC_DEFINE_PLANE(zc_plane_turn_4, uint32_t, __builtin_bswap32)
ZC_DEFINE_PLANE(zc_plane_turn_8, uint64_t, __builtin_bswap64)
ZC_DEFINE_PLANE(zc_plane_turn_16, zc_pair, zc_turn_pair)

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

static inline zc_plane_function zc_plane(int64_t itemsize, int swap)
{
    switch (itemsize) {
    case 1: return zc_plane_1;
    case 2: return swap ? zc_plane_turn_2 : zc_plane_2;
    case 4: return swap ? zc_plane_turn_4 : zc_plane_4;
    case 8: return swap ? zc_plane_turn_8 : zc_plane_8;
    case 16: return swap ? zc_plane_turn_16 : zc_plane_16;
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

/* A plane whose source is densest along n1 and whose target along n0. It is moved in tiles of a few cache lines
 * squared, so that a line is fetched once although one side is always visited across its rows. `rectangle` moves what
 * is dense on both sides in vectors; NULL where that does not hold. */
static void zc_tiled(zc_plane_function plane, zc_rectangle_function rectangle, const char *src, char *dst, int64_t n1,
                     int64_t src1, int64_t dst1, int64_t n0, int64_t src0, int64_t dst0, int64_t itemsize)
{
    const int64_t side = itemsize < ZC_TILE_NBYTES / 8 ? ZC_TILE_NBYTES / itemsize : 8;
    for (int64_t i = 0; i < n1; i += side) {
        const int64_t rows = n1 - i < side ? n1 - i : side;
        const int64_t full_rows = rectangle ? rows & -(16 / itemsize) : 0;
        for (int64_t j = 0; j < n0; j += side) {
            const int64_t columns = n0 - j < side ? n0 - j : side;
            const int64_t full_columns = full_rows ? columns & -(16 / itemsize) : 0;
            const char *s = src + i * src1 + j * src0;
            char *t = dst + i * dst1 + j * dst0;
            if (full_columns > 0)
                rectangle(s, src0, t, dst1, full_rows, full_columns);
            if (full_columns < columns)
                plane(s + full_columns * src0, t + full_columns * dst0, full_rows, src1, dst1, columns - full_columns,
                      src0, dst0, itemsize);
            if (full_rows < rows)
                plane(s + full_rows * src1, t + full_rows * dst1, rows - full_rows, src1, dst1, columns, src0, dst0,
                      itemsize);
        }
    }
}

#endif
