/* Threads for one call, without Python. */
#ifndef ZCORE_THREADS_H
#define ZCORE_THREADS_H

#include <pthread.h>
#include <signal.h>

/* The calls need up to 110 KB of stack. musl gives 128 KB, of which its thread-local variables take a part. */
enum { ZC_MAX_THREADS = 64, ZC_STACK_NBYTES = 1 << 19 };

struct zc_thread_call { void (*work)(void *); void *context; };

static inline void *zc_thread_main(void *call)
{
    ((struct zc_thread_call *)call)->work(((struct zc_thread_call *)call)->context);
    return 0;
}

/* Calls `work(context)` on this thread and on `n - 1` others (fewer if the system cannot start them), and waits for
   all. The others block all signals, which belong to the threads of the program. */
static inline void zc_run_together(int n, void (*work)(void *), void *context)
{
    pthread_t threads[ZC_MAX_THREADS];
    struct zc_thread_call call = {work, context};
    pthread_attr_t attributes;
    size_t stack_nbytes;
    sigset_t all, before;
    int started = 0;
    if (n > ZC_MAX_THREADS) n = ZC_MAX_THREADS;
    if (n > 1 && pthread_attr_init(&attributes) == 0) {
        if (pthread_attr_getstacksize(&attributes, &stack_nbytes) == 0 && stack_nbytes < ZC_STACK_NBYTES)
            pthread_attr_setstacksize(&attributes, ZC_STACK_NBYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (started < n - 1 && pthread_create(&threads[started], &attributes, zc_thread_main, &call) == 0) started++;
        pthread_sigmask(SIG_SETMASK, &before, 0);
        pthread_attr_destroy(&attributes);
    }
    work(context);
    while (started > 0) pthread_join(threads[--started], 0);
}

#endif
