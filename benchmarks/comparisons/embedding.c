/* What a program in C waits for: reads of boxes by zcore.h, by a bare loop, and by the C library of HDF5. */
#define _GNU_SOURCE
#include <blosc.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "zcore.h"

#ifdef WITH_HDF5
#include <hdf5.h>
#endif

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int import_zcore(void) { return zcore_import(); }

/* Reads `count` elements of float32 from each of the `n` starts, on `threads` threads; seconds, or -1. */
double by_zcore(zcore_array *array, const int64_t *starts, int64_t n, int64_t count, int threads)
{
    int failed = 0;
    double begun = now();
#pragma omp parallel num_threads(threads) reduction(+ : failed)
    {
        float *box = malloc((size_t)count * sizeof(float));
#pragma omp for
        for (int64_t i = 0; i < n; i++) failed += zcore_read(array, &starts[i], &count, NULL, box, NULL, 1, NULL) != 0;
        free(box);
    }
    return failed ? -1 : now() - begun;
}

/* The same by open, read and decode, for blosc chunks in files `place`/<number>. */
double by_bare_loop(const char *place, int64_t chunk, const int64_t *starts, int64_t n, int64_t count, int threads)
{
    int failed = 0;
    double begun = now();
#pragma omp parallel num_threads(threads) reduction(+ : failed)
    {
        size_t size = (size_t)chunk * sizeof(float);
        float *decoded = malloc(size), *box = malloc((size_t)count * sizeof(float));
        void *encoded = malloc(size + 64);
        char name[4096];
#pragma omp for
        for (int64_t i = 0; i < n; i++) {
            int fd;
            snprintf(name, sizeof name, "%s/%lld", place, (long long)(starts[i] / chunk));
            fd = open(name, O_RDONLY | O_CLOEXEC);
            failed += fd < 0 || read(fd, encoded, size + 64) < 16;
            close(fd);
            failed += blosc_decompress_ctx(encoded, decoded, size, 1) != (int)size;
            for (int64_t k = 0; k < count; k++) ((volatile float *)box)[k] = decoded[starts[i] % chunk + k];
        }
        free(decoded);
        free(encoded);
        free(box);
    }
    return failed ? -1 : now() - begun;
}

/* The same of a dataset "data" in an open HDF5 file, by one thread: its library lets in one at a time. */
double by_hdf5(const char *file, const int64_t *starts, int64_t n, int64_t count)
{
#ifdef WITH_HDF5
    hid_t opened = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(opened, "data", H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t first, length = (hsize_t)count;
    hid_t memory = H5Screate_simple(1, &length, NULL);
    float *box = malloc((size_t)count * sizeof(float));
    int failed = set < 0;
    double begun = now(), ended;
    for (int64_t i = 0; i < n && !failed; i++) {
        first = (hsize_t)starts[i];
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &length, NULL);
        failed += H5Dread(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, box) < 0;
    }
    ended = now();
    free(box);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(opened);
    return failed ? -1 : ended - begun;
#else
    (void)file, (void)starts, (void)n, (void)count;
    return -1;
#endif
}
