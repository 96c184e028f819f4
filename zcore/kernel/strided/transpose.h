/* Transposition of small squares in 16-byte vectors: the heart of the transposing copy and of the byte shuffle.
 *
 * w rows of 16 bytes hold w elements each (w = 16 / size). Interleaving row i with row i + w/2, for all i, and doing so
 * log2(w) times leaves column k in vector k. The vector extension of GCC and Clang is used, not the intrinsics of one
 * CPU: it becomes SSE2 `punpck…` on x86-64 and `zip1`/`zip2` on ARMv8, which every such CPU has.
 */
#ifndef ZCORE_TRANSPOSE_H
#define ZCORE_TRANSPOSE_H

#include <stdint.h>
#include <string.h>

typedef uint8_t zc_v1 __attribute__((vector_size(16)));
typedef uint16_t zc_v2 __attribute__((vector_size(16)));
typedef uint32_t zc_v4 __attribute__((vector_size(16)));
typedef uint64_t zc_v8 __attribute__((vector_size(16)));

#if defined(__clang__) || __GNUC__ >= 12
#define ZC_PICK(TYPE, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ZC_PICK(TYPE, a, b, ...) __builtin_shuffle(a, b, (TYPE){__VA_ARGS__})
#endif

static int zc_has_avx2;

static inline void zc_choose_vectors(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    zc_has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif
}

#define ZC_LOW_1(a, b) ZC_PICK(zc_v1, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZC_HIGH_1(a, b) ZC_PICK(zc_v1, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define ZC_LOW_2(a, b) ZC_PICK(zc_v2, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZC_HIGH_2(a, b) ZC_PICK(zc_v2, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define ZC_LOW_4(a, b) ZC_PICK(zc_v4, a, b, 0, 4, 1, 5)
#define ZC_HIGH_4(a, b) ZC_PICK(zc_v4, a, b, 2, 6, 3, 7)
#define ZC_LOW_8(a, b) ZC_PICK(zc_v8, a, b, 0, 2)
#define ZC_HIGH_8(a, b) ZC_PICK(zc_v8, a, b, 1, 3)

/* One step of the network on W vectors, W a constant: interleaves a[i] with a[i + W/2]. If the position of an element
is
 * a bit string (vector, index in the vector), every step rotates that string by one bit to the left. */
#define ZC_INTERLEAVE(VECTOR, W, LOW, HIGH, a)                                                                  \
    do {                                                                                                        \
        VECTOR mixed_[W];                                                                                       \
        _Pragma("GCC unroll 8")                                                                                 \
        for (int i_ = 0; i_ < (W) / 2; i_++) {                                                                  \
            mixed_[2 * i_] = LOW((a)[i_], (a)[i_ + (W) / 2]);                                                   \
            mixed_[2 * i_ + 1] = HIGH((a)[i_], (a)[i_ + (W) / 2]);                                              \
        }                                                                                                       \
        _Pragma("GCC unroll 16")                                                                                \
        for (int i_ = 0; i_ < (W); i_++)                                                                        \
            (a)[i_] = mixed_[i_];                                                                               \
    } while (0)

/* Rows of the source are src_row bytes apart and become columns of the target, whose rows are dst_row bytes apart.
n_src
 * rows of the source are read (the last one is used for missing rows), n_dst rows of the target are written, upwards.
 */
#define ZC_DEFINE_SQUARE(SIZE, STEPS)                                                                           \
    static inline __attribute__((always_inline)) void                                                           \
    zc_part_square_##SIZE(const char *src, int64_t src_row, int n_src, char *dst, int64_t dst_row, int n_dst)   \
    {                                                                                                           \
        enum { W = 16 / SIZE };                                                                                 \
        zc_v##SIZE a[W];                                                                                        \
        _Pragma("GCC unroll 16")                                                                                \
        for (int i = 0; i < W; i++)                                                                             \
            memcpy(&a[i], src + (i < n_src ? i : n_src - 1) * src_row, 16);                                     \
        _Pragma("GCC unroll 4")                                                                                 \
        for (int step = 0; step < STEPS; step++)                                                                \
            ZC_INTERLEAVE(zc_v##SIZE, W, ZC_LOW_##SIZE, ZC_HIGH_##SIZE, a);                                     \
        _Pragma("GCC unroll 16")                                                                                \
        for (int i = 0; i < W; i++)                                                                             \
            if (i < n_dst)                                                                                      \
                memcpy(dst + i * dst_row, &a[i], 16);                                                           \
    }                                                                                                           \
    static inline void zc_square_##SIZE(const char *src, int64_t src_row, char *dst, int64_t dst_row)           \
    {                                                                                                           \
        zc_part_square_##SIZE(src, src_row, 16 / SIZE, dst, dst_row, 16 / SIZE);                                \
    }

/* A rectangle of rows x columns elements of the target; both are multiples of 16 / size. */
#define ZC_DEFINE_RECTANGLE(SIZE)                                                                               \
    static void zc_rectangle_##SIZE(const char *src, int64_t src_row, char *dst, int64_t dst_row, int64_t rows, \
                                    int64_t columns)                                                            \
    {                                                                                                           \
        for (int64_t j = 0; j < columns; j += 16 / SIZE)                                                        \
            for (int64_t i = 0; i < rows; i += 16 / SIZE)                                                       \
                zc_square_##SIZE(src + i * SIZE + j * src_row, src_row, dst + i * dst_row + j * SIZE, dst_row); \
    }

ZC_DEFINE_SQUARE(1, 4)
ZC_DEFINE_SQUARE(2, 3)
ZC_DEFINE_SQUARE(4, 2)
ZC_DEFINE_SQUARE(8, 1)
ZC_DEFINE_RECTANGLE(1)
ZC_DEFINE_RECTANGLE(2)
ZC_DEFINE_RECTANGLE(4)
ZC_DEFINE_RECTANGLE(8)

#endif
