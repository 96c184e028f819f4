/* A thread without the GIL that reads, and maybe writes, while another one holds the GIL and waits for it. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "zcore.h"

struct work { zcore_array *array; double *data; int64_t n; int writes; int code; volatile int is_done; };

static void *transfer(void *context)
{
    struct work *work = context;
    int64_t start[1] = {0}, count[1] = {work->n};
    zcore_error error;
    work->code = 0;
    for (int k = 0; k < 20 && work->code == 0; k++) {
        work->code = zcore_read(work->array, start, count, NULL, work->data, NULL, k % 3, &error);
        if (!work->writes) continue;
        for (int64_t i = 0; i < work->n; i++) work->data[i] += 1;
        if (work->code == 0)
            work->code = zcore_write(work->array, start, count, NULL, work->data, NULL, k % 3, &error);
    }
    work->is_done = 1;
    return 0;
}

/* Called with the GIL, which it keeps: 0 if the thread came to its end meanwhile; -1 if it did not within `seconds`. */
int while_the_gil_is_held(void *object, int64_t n, int writes, double seconds)
{
    struct work work = {0};
    struct timespec pause = {0, 1000000};
    zcore_error error;
    pthread_t thread;
    int result = -1;
    if (zcore_import() != 0) return -2;
    work.array = zcore_from_object(object, &error);
    work.data = malloc(n * sizeof(double));
    work.n = n;
    work.writes = writes;
    if (work.array == NULL || work.data == NULL || pthread_create(&thread, 0, transfer, &work) != 0) return -3;
    for (int k = 0; k < seconds * 1000 && !work.is_done; k++) nanosleep(&pause, 0);
    if (work.is_done) {
        result = work.code;
        pthread_join(thread, 0);
        zcore_close(work.array);
        free(work.data);
    } else {
        pthread_detach(thread);
    }
    return result;
}
