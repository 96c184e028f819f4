/* Memory for `n` items of `size` bytes. NULL if that is more than any object can have, also where size_t has 32 bits and
   a larger number would be cut off. So a size that is read from a file needs no other check. */
#ifndef ZCORE_MEMORY_H
#define ZCORE_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

static inline int zc_fits(int64_t n, int64_t size)
{
    int64_t n_bytes;
    return n >= 0 && !__builtin_mul_overflow(n, size, &n_bytes) && n_bytes <= PTRDIFF_MAX;
}
static inline void *zc_new(int64_t n, int64_t size) { return zc_fits(n, size) ? malloc((size_t)(n * size)) : 0; }
static inline void *zc_new_zeros(int64_t n, int64_t size) { return zc_fits(n, size) ? calloc((size_t)n, (size_t)size) : 0; }
static inline void *zc_resized(void *data, int64_t n, int64_t size)
{
    return zc_fits(n, size) ? realloc(data, (size_t)(n * size)) : 0;
}

#endif
