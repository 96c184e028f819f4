/* Memory and threads for c-blosc, reserved before it uses them.

   c-blosc does not check whether it got the memory it asked for, and leaks threads when it cannot start all of them.
   This header defines the functions that its archive calls for memory and threads, in the only module that links the
   archive; they are not visible outside. When c-blosc asks for the memory of its first thread, the memory of all
   threads is reserved, and all threads are started, before any gets work. If that fails, `longjmp` leaves c-blosc
   while nothing runs.

   The other libraries of the archive check their memory, but report a failure like damaged data. So a failed request
   is recorded. A library of the system has its own functions, and none of this applies. */
#ifndef ZCORE_PROVIDED_H
#define ZCORE_PROVIDED_H

#include <blosc.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#include "atomics.h"

enum { ZC_NO_MEMORY = -1000 };       /* c-blosc never returns this */

#ifndef ZCORE_BUNDLED

static inline int zc_provide(void) { return 0; }
static inline void zc_forget_failures(void) { }
static inline int zc_has_failed(void) { return 0; }
#define zc_blosc_compress blosc_compress_ctx
#define zc_blosc_decompress blosc_decompress_ctx

#else

enum { ZC_MAX_THREADS = BLOSC_MAX_THREADS, ZC_ALIGNMENT = 32 };
/* Why c-blosc was left. */
enum { ZC_WITHOUT_MEMORY = 1, ZC_WITHOUT_THREADS = 2 };

typedef struct zc_provided zc_provided;

typedef struct {                     /* a thread that waits for work, or for the end of the call */
    zc_provided *of;
    pthread_t id;
    void *(*work)(void *);
    void *argument;
} zc_thread;

struct zc_provided {                 /* memory and threads of one call of c-blosc */
    jmp_buf failed;
    int n_threads;                   /* 1: c-blosc starts none */
    int n_started;
    int n_asked;                     /* requests for memory so far */
    size_t n_first, n_rest;          /* bytes of the first and the second request; each thread makes one of both */
    void *first[ZC_MAX_THREADS], *rest[ZC_MAX_THREADS];
    int n_begun;                     /* threads that have got their work */
    int n_failed;                    /* failed requests for memory of the threads */
    int is_over;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    zc_thread threads[ZC_MAX_THREADS];
};

static __thread zc_provided *zc_here;
static __thread int zc_n_failed;
static void *(*zc_malloc)(size_t);
static void *(*zc_calloc)(size_t, size_t);
static int (*zc_memalign)(void **, size_t, size_t);
static int (*zc_start)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* At import: -1 if the system's functions cannot be found. */
static int zc_provide(void)
{
    *(void **)&zc_malloc = dlsym(RTLD_DEFAULT, "malloc");
    *(void **)&zc_calloc = dlsym(RTLD_DEFAULT, "calloc");
    *(void **)&zc_memalign = dlsym(RTLD_DEFAULT, "posix_memalign");
    *(void **)&zc_start = dlsym(RTLD_DEFAULT, "pthread_create");
    return zc_malloc && zc_calloc && zc_memalign && zc_start ? 0 : -1;
}
static void zc_forget_failures(void) { zc_n_failed = 0; }
static int zc_has_failed(void) { return zc_n_failed != 0; }

static void *zc_noted(void *memory) { zc_n_failed += memory == NULL; return memory; }

static void *zc_aligned(size_t n_bytes)
{
    void *memory = NULL;
    return zc_noted(zc_memalign(&memory, ZC_ALIGNMENT, n_bytes) ? NULL : memory);
}

static void *zc_wait_for_work(void *argument)
{
    zc_thread *thread = argument;
    zc_provided *all = thread->of;
    /* Work comes as soon as the last thread is started: to sleep and be woken would cost more than to spin. */
    for (int64_t n = 0; n < 32 && !__atomic_load_n(&thread->work, __ATOMIC_ACQUIRE); n++) zc_back_off(n);
    pthread_mutex_lock(&all->mutex);
    while (!thread->work && !all->is_over) pthread_cond_wait(&all->changed, &all->mutex);
    pthread_mutex_unlock(&all->mutex);
    /* If there is work, c-blosc waits for the end of this thread, and `all` lives until then. */
    if (thread->work) thread->work(thread->argument);
    __atomic_add_fetch(&all->n_failed, zc_n_failed, __ATOMIC_ACQ_REL);
    return NULL;
}

/* Reserves memory and threads for all threads; the first memory of the first thread is there. 0, or the reason. */
static int zc_reserve(zc_provided *all, size_t n_bytes)
{
    all->n_rest = n_bytes;
    for (int i = 0; i < all->n_threads; i++) {
        if (i > 0 && !(all->first[i] = zc_aligned(all->n_first))) return ZC_WITHOUT_MEMORY;
        if (!(all->rest[i] = zc_aligned(n_bytes))) return ZC_WITHOUT_MEMORY;
    }
    for (; all->n_threads > 1 && all->n_started < all->n_threads; all->n_started++) {
        zc_thread *thread = &all->threads[all->n_started];
        thread->of = all;
        thread->work = NULL;
        if (zc_start(&thread->id, NULL, zc_wait_for_work, thread)) return ZC_WITHOUT_THREADS;
    }
    return 0;
}

__attribute__((visibility("hidden"))) int posix_memalign(void **memory, size_t alignment, size_t n_bytes)
{
    zc_provided *all = zc_here;
    int i = all ? all->n_asked++ : 0;
    int why = 0;
    (void)alignment;
    *memory = NULL;
    if (all && i == 0) {
        all->n_first = n_bytes;
        all->first[0] = zc_aligned(n_bytes);
        why = all->first[0] ? 0 : ZC_WITHOUT_MEMORY;
    }
    if (all && i == 1) why = zc_reserve(all, n_bytes);
    if (why) longjmp(all->failed, why);
    if (all && i / 2 < all->n_threads && n_bytes <= (i % 2 ? all->n_rest : all->n_first)) {
        void **kept = i % 2 ? &all->rest[i / 2] : &all->first[i / 2];
        *memory = *kept;
        *kept = NULL;
    }
    if (!*memory) *memory = zc_aligned(n_bytes);
    return *memory ? 0 : ENOMEM;
}

__attribute__((visibility("hidden"))) int pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                                         void *(*work)(void *), void *argument)
{
    zc_provided *all = zc_here;
    if (!all || all->n_begun == all->n_started) return zc_start(id, attributes, work, argument);
    zc_thread *thread = &all->threads[all->n_begun++];
    *id = thread->id;
    pthread_mutex_lock(&all->mutex);
    thread->argument = argument;
    __atomic_store_n(&thread->work, work, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->mutex);
    return 0;
}

__attribute__((visibility("hidden"))) void *malloc(size_t n_bytes) { return zc_noted(zc_malloc(n_bytes)); }
__attribute__((visibility("hidden"))) void *calloc(size_t n, size_t size) { return zc_noted(zc_calloc(n, size)); }

static void zc_begin(zc_provided *all, int n_threads)
{
    all->n_threads = n_threads > ZC_MAX_THREADS ? ZC_MAX_THREADS : n_threads < 1 ? 1 : n_threads;
    all->n_asked = all->n_started = all->n_begun = all->n_failed = all->is_over = 0;
    for (int i = 0; i < all->n_threads; i++) all->first[i] = all->rest[i] = NULL;
    if (all->n_threads > 1) {
        pthread_mutex_init(&all->mutex, NULL);
        pthread_cond_init(&all->changed, NULL);
    }
    zc_here = all;
}

/* Frees the memory that c-blosc has not taken. c-blosc has freed the rest. */
static void zc_end(zc_provided *all)
{
    zc_here = NULL;
    if (all->n_threads > 1) {
        pthread_mutex_lock(&all->mutex);
        all->is_over = 1;
        pthread_cond_broadcast(&all->changed);
        pthread_mutex_unlock(&all->mutex);
        for (int i = all->n_begun; i < all->n_started; i++) pthread_join(all->threads[i].id, NULL);
        pthread_cond_destroy(&all->changed);
        pthread_mutex_destroy(&all->mutex);
    }
    zc_n_failed += all->n_failed;
    for (int i = 0; i < all->n_threads; i++) {
        free(all->first[i]);
        free(all->rest[i]);
    }
}

/* Like c-blosc's functions, or ZC_NO_MEMORY. If threads cannot be started, it works without them. */
static int zc_blosc_compress(int level, int shuffle, size_t typesize, size_t n_bytes, const void *src, void *dst,
                             size_t capacity, const char *compressor, size_t blocksize, int n_threads)
{
    zc_provided all;
    volatile int result = ZC_NO_MEMORY, once_more = 0;
    zc_begin(&all, n_threads);
    switch (setjmp(all.failed)) {
    case 0:
        result = blosc_compress_ctx(level, shuffle, typesize, n_bytes, src, dst, capacity, compressor, blocksize,
                                    all.n_threads);
        break;
    case ZC_WITHOUT_THREADS:
        once_more = 1;
    }
    zc_end(&all);
    return !once_more ? result
        : zc_blosc_compress(level, shuffle, typesize, n_bytes, src, dst, capacity, compressor, blocksize, 1);
}

static int zc_blosc_decompress(const void *src, void *dst, size_t n_bytes, int n_threads)
{
    zc_provided all;
    volatile int result = ZC_NO_MEMORY, once_more = 0;
    zc_begin(&all, n_threads);
    switch (setjmp(all.failed)) {
    case 0:
        result = blosc_decompress_ctx(src, dst, n_bytes, all.n_threads);
        break;
    case ZC_WITHOUT_THREADS:
        once_more = 1;
    }
    zc_end(&all);
    return !once_more ? result : zc_blosc_decompress(src, dst, n_bytes, 1);
}

#endif
#endif
