/* Memory for c-blosc, which does not check whether its requests succeed.

   This header defines the functions that its archive calls for memory, in the only module that links the archive; they
   are not visible outside. In one thread, c-blosc asks once a call, and holds nothing else then: if that fails,
   `longjmp` leaves it.

   The other libraries of the archive check their memory, but report a failure like damaged data. So a failed request
   is recorded. A library of the system has its own functions, and none of this applies. */
#ifndef ZCORE_PROVIDED_H
#define ZCORE_PROVIDED_H

#include <blosc.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>

enum { ZC_NO_MEMORY = -1000 };       /* c-blosc never returns this */

#ifndef ZCORE_BUNDLED

static inline int zc_provide(void) { return 0; }
static inline void zc_forget_failures(void) { }
static inline int zc_has_failed(void) { return 0; }
#define ZC_CALL_BLOSC(call) return call

#else

enum { ZC_ALIGNMENT = 32 };

/* A new thread has its copies of these at once. Otherwise the system makes them at their first use, and ends the process
   if there is no memory for them. */
#ifdef __GLIBC__
#define ZC_THREAD static __thread __attribute__((tls_model("initial-exec")))
#else
#define ZC_THREAD static __thread
#endif
ZC_THREAD jmp_buf *zc_failed;        /* leaves the call of c-blosc that this thread is in */
ZC_THREAD int zc_n_failed;
static void *(*zc_malloc)(size_t);
static void *(*zc_calloc)(size_t, size_t);
static int (*zc_memalign)(void **, size_t, size_t);

/* At import: -1 if the system's functions cannot be found. */
static int zc_provide(void)
{
    *(void **)&zc_malloc = dlsym(RTLD_DEFAULT, "malloc");
    *(void **)&zc_calloc = dlsym(RTLD_DEFAULT, "calloc");
    *(void **)&zc_memalign = dlsym(RTLD_DEFAULT, "posix_memalign");
    return zc_malloc && zc_calloc && zc_memalign ? 0 : -1;
}
static void zc_forget_failures(void) { zc_n_failed = 0; }
static int zc_has_failed(void) { return zc_n_failed != 0; }

static void *zc_noted(void *memory) { zc_n_failed += memory == NULL; return memory; }

__attribute__((visibility("hidden"))) void *malloc(size_t n_bytes) { return zc_noted(zc_malloc(n_bytes)); }
__attribute__((visibility("hidden"))) void *calloc(size_t n, size_t size) { return zc_noted(zc_calloc(n, size)); }
__attribute__((visibility("hidden"))) int posix_memalign(void **memory, size_t alignment, size_t n_bytes)
{
    (void)alignment;
    *memory = NULL;
    if (zc_noted(zc_memalign(memory, ZC_ALIGNMENT, n_bytes) ? NULL : *memory)) return 0;
    if (zc_failed) longjmp(*zc_failed, 1);
    return ENOMEM;
}

#define ZC_CALL_BLOSC(call) do { \
    jmp_buf failed; \
    volatile int result = ZC_NO_MEMORY; \
    zc_failed = &failed; \
    if (setjmp(failed) == 0) result = call; \
    zc_failed = NULL; \
    return result; \
} while (0)

#endif

/* Like c-blosc's functions in one thread, or ZC_NO_MEMORY. */
static int zc_blosc_compress(int level, int shuffle, size_t typesize, size_t n_bytes, const void *src, void *dst,
                             size_t capacity, const char *compressor, size_t blocksize)
{
    ZC_CALL_BLOSC(blosc_compress_ctx(level, shuffle, typesize, n_bytes, src, dst, capacity, compressor, blocksize, 1));
}

static int zc_blosc_decompress(const void *src, void *dst, size_t n_bytes)
{
    ZC_CALL_BLOSC(blosc_decompress_ctx(src, dst, n_bytes, 1));
}

#endif
