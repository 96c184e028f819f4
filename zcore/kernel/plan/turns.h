/* Turns to decode, for all calls of the process: as many at a time as there are cores, or threads in a call.
   Threads beyond that drive each other's chunks out of the caches, and each holds memory. A thread waits before it reads
   chunks of a shard, or when it has read an object, so requests to services are not limited. The first plan goes
   first. After ZC_TURNS_NBYTES decoded bytes it goes to the end of the queue. */
#ifndef ZCORE_TURNS_H
#define ZCORE_TURNS_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { ZC_TURNS_NBYTES = 1 << 26, ZC_TURN_WAIT_NS = 50000000 };

struct zc_waiter { struct zc_waiter *next; int64_t number, limit; int is_called; pthread_cond_t call; };

static pthread_mutex_t zc_turns_mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t zc_n_turns, zc_n_places;           /* threads that decode; plans that have queued */
static struct zc_waiter *zc_waiters;              /* in the order of their numbers */

static inline int zc_wait_for_call(struct zc_waiter *waiter)
{
#ifdef __APPLE__
    struct timespec wait = {0, ZC_TURN_WAIT_NS};
    return pthread_cond_timedwait_relative_np(&waiter->call, &zc_turns_mutex, &wait);
#else
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ZC_TURN_WAIT_NS;
    if (until.tv_nsec >= 1000000000) { until.tv_nsec -= 1000000000; until.tv_sec++; }
    return pthread_cond_timedwait(&waiter->call, &zc_turns_mutex, &until);
#endif
}

static inline int zc_queue(int64_t number, int64_t limit)
{
    struct zc_waiter waiter = {0, number, limit, 0}, **at = &zc_waiters;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
#ifndef __APPLE__
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
#endif
    pthread_cond_init(&waiter.call, &attributes);
    pthread_condattr_destroy(&attributes);
    while (*at && (*at)->number <= number) at = &(*at)->next;
    waiter.next = *at;
    *at = &waiter;
    while (!waiter.is_called && zc_wait_for_call(&waiter) == 0) {}
    if (!waiter.is_called) {
        for (at = &zc_waiters; *at != &waiter; at = &(*at)->next) {}
        *at = waiter.next;
    }
    pthread_cond_destroy(&waiter.call);
    return waiter.is_called;
}

/* Takes a turn to decode `n_bytes`, if others have fewer than `limit` turns. `number` and `done` are the plan's place
   in the queue, and what it has decoded since it got that; both are 0 for a new plan. Returns how many turns are taken
   now. Or 0, if there was no turn for some time: the caller looks whether it has to stop, and asks again. */
static inline int64_t zc_begin_turn(int64_t *number, int64_t *done, int64_t n_bytes, int64_t limit)
{
    int64_t n_turns = 0;
    pthread_mutex_lock(&zc_turns_mutex);
    if (*number == 0 || *done >= ZC_TURNS_NBYTES) {
        *number = ++zc_n_places;
        *done = 0;
    }
    if (zc_n_turns < limit) n_turns = ++zc_n_turns;
    else if (zc_queue(*number, limit)) n_turns = zc_n_turns;
    if (n_turns) *done += n_bytes;
    pthread_mutex_unlock(&zc_turns_mutex);
    return n_turns;
}

static inline void zc_end_turn(void)
{
    struct zc_waiter **at = &zc_waiters, *next;
    pthread_mutex_lock(&zc_turns_mutex);
    while (*at && (*at)->limit < zc_n_turns) at = &(*at)->next;
    next = *at;
    if (next) {
        /* It has the turn from now on. */
        *at = next->next;
        next->is_called = 1;
        pthread_cond_signal(&next->call);
    }
    else if (zc_n_turns > 0) zc_n_turns--;
    pthread_mutex_unlock(&zc_turns_mutex);
}

static inline void zc_count_turns(int64_t *taken, int64_t *waiting)
{
    pthread_mutex_lock(&zc_turns_mutex);
    *taken = zc_n_turns;
    *waiting = 0;
    for (struct zc_waiter *at = zc_waiters; at; at = at->next) (*waiting)++;
    pthread_mutex_unlock(&zc_turns_mutex);
}

/* In a forked child, where no thread decodes. */
static inline void zc_forget_turns(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    zc_turns_mutex = fresh;
    zc_n_turns = 0;
    zc_waiters = 0;
}

#endif
