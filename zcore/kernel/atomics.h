/* Atomic integers and a wait with back-off, for nogil code that must not touch Python. GCC and Clang builtins.

   The order of memory: a load acquires and a store releases. So a thread that loads a value sees all that the other one
   did before it stored that. An addition and an exchange do both. Where less is enough, it costs the same on x86. */
#ifndef ZCORE_ATOMICS_H
#define ZCORE_ATOMICS_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

#ifdef __i386__
/* Members of structures lie at multiples of 4 there. A plain load or store of 8 bytes that crosses a line of the cache
   is two; only locked instructions are one then. */
static inline int64_t zc_load(const int64_t *p) { return __atomic_fetch_add((int64_t *)p, 0, __ATOMIC_ACQ_REL); }
static inline void zc_store(int64_t *p, int64_t v) { __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
#else
static inline int64_t zc_load(const int64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void zc_store(int64_t *p, int64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
#endif
/* Returns the previous value. */
static inline int64_t zc_add(int64_t *p, int64_t v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
static inline int zc_swap_if(int64_t *p, int64_t expected, int64_t desired)
{
    return __atomic_compare_exchange_n(p, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* A positive number of the calling thread. It is unique while the thread lives. */
static inline int64_t zc_this_thread(void) { return (int64_t)(uintptr_t)pthread_self(); }

/* Tells the processor that this thread waits in a loop: it gives its other thread room, and saves power. `yield` does
   nothing on most processors of ARM; `isb` takes some tens of cycles, as `pause` does. */
static inline void zc_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#elif defined(__arm__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

/* How all waits for another thread or process go on: so many times they spin, then they yield, then they sleep, twice as
   long each time up to 1 ms. The first sleeps are short because an object is held for some microseconds only. The limit
   bounds the number of wake-ups that a busy lock costs. */
enum { ZC_SPINS = 16, ZC_YIELDS = 16, ZC_FIRST_SLEEP_NS = 31250, ZC_DOUBLINGS = 5 };

/* Wait, for the n-th time. */
static inline void zc_back_off(int64_t n)
{
    if (n < ZC_SPINS) {
        for (int64_t i = 0; i < 8 * (n + 1); i++) zc_pause();
        return;
    }
    n -= ZC_SPINS;
    if (n < ZC_YIELDS) { sched_yield(); return; }
    n -= ZC_YIELDS;
    struct timespec pause = {0, (int64_t)ZC_FIRST_SLEEP_NS << (n < ZC_DOUBLINGS ? n : ZC_DOUBLINGS)};
    nanosleep(&pause, 0);
}

static inline int64_t zc_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Wall-clock time, as file systems record it. */
static inline int64_t zc_wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
