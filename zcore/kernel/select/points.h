/* Moves n items, each from one offset to another.
 *
 * Offsets are in bytes and need no alignment: items pass through a local variable by memcpy, which compilers turn into
 * one load and one store. Source and target never overlap. If several items go to one target, the last one stays.
 */
#ifndef ZCORE_POINTS_H
#define ZCORE_POINTS_H

#include <stdint.h>
#include <string.h>

#define ZC_POINTS_SAME(x) (x)

#define ZC_MOVE_POINTS(TYPE, TURN)                                      \
    for (int64_t i = 0; i < n; i++) {                                   \
        TYPE x;                                                         \
        memcpy(&x, src + src_at[i], sizeof x);                          \
        x = TURN(x);                                                    \
        memcpy(dst + dst_at[i], &x, sizeof x);                          \
    }

typedef struct {
    uint64_t low, high;
} zc_point16;

/* Moves items and reverses the byte order of their units of `swap` bytes; 0 reverses nothing. */
static inline void zc_move_points(const char *src, const int64_t *src_at, char *dst, const int64_t *dst_at, int64_t n,
                                  int64_t itemsize, int64_t swap)
{
    if (swap > 1) {
        if (itemsize == 2 && swap == 2) {
            ZC_MOVE_POINTS(uint16_t, __builtin_bswap16)
        } else if (itemsize == 4 && swap == 4) {
            ZC_MOVE_POINTS(uint32_t, __builtin_bswap32)
        } else if (itemsize == 8 && swap == 8) {
            ZC_MOVE_POINTS(uint64_t, __builtin_bswap64)
        } else {
            for (int64_t i = 0; i < n; i++)
                for (int64_t unit = 0; unit < itemsize; unit += swap)
                    for (int64_t j = 0; j < swap; j++)
                        dst[dst_at[i] + unit + j] = src[src_at[i] + unit + swap - 1 - j];
        }
        return;
    }
    switch (itemsize) {
    case 1: ZC_MOVE_POINTS(uint8_t, ZC_POINTS_SAME) break;
    case 2: ZC_MOVE_POINTS(uint16_t, ZC_POINTS_SAME) break;
    case 4: ZC_MOVE_POINTS(uint32_t, ZC_POINTS_SAME) break;
    case 8: ZC_MOVE_POINTS(uint64_t, ZC_POINTS_SAME) break;
    case 16: ZC_MOVE_POINTS(zc_point16, ZC_POINTS_SAME) break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(dst + dst_at[i], src + src_at[i], (size_t)itemsize);
    }
}

#endif
