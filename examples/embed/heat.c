/* A heat solver that writes a checkpoint every few steps, and goes on from the last one when it is started again, bit by
   bit as if it had never stopped.

       heat PLACE STEPS EVERY

   With OpenMP:  cc -O2 -fopenmp $(python -m zcore.embed --cflags) heat.c $(python -m zcore.embed --libs) -lm -o heat
   With MPI:     mpicc -O2 -DUSE_MPI ... and then mpirun -n 4 heat ...; each rank has some rows and writes these. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zcore.h"

#ifdef USE_MPI
#include <mpi.h>
#endif

enum { N = 256, CHUNK = 64 };

static int rank = 0, n_ranks = 1;

static void stop(const char *what, const zcore_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->message);
#ifdef USE_MPI
    MPI_Abort(MPI_COMM_WORLD, 1);
#endif
    exit(1);
}

static void wait_for_all(void)
{
#ifdef USE_MPI
    MPI_Barrier(MPI_COMM_WORLD);
#endif
}

/* `field` has `rows` rows, and one more before and behind them: those of the neighbours, around the edge. */
static void exchange(double *field, int rows)
{
    double *before = field, *first = field + N, *last = field + rows * N, *behind = field + (rows + 1) * N;
#ifdef USE_MPI
    int up = (rank + n_ranks - 1) % n_ranks, down = (rank + 1) % n_ranks;
    MPI_Sendrecv(first, N, MPI_DOUBLE, up, 0, behind, N, MPI_DOUBLE, down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, N, MPI_DOUBLE, down, 1, before, N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
    memcpy(before, last, N * sizeof(double));
    memcpy(behind, first, N * sizeof(double));
#endif
}

static void step(const double *old, double *new, int rows)
{
#pragma omp parallel for
    for (int i = 1; i <= rows; i++)
        for (int j = 0; j < N; j++) {
            int left = (j + N - 1) % N, right = (j + 1) % N;
            new[i * N + j] = old[i * N + j] + 0.1 * (old[(i - 1) * N + j] + old[(i + 1) * N + j] + old[i * N + left]
                                                      + old[i * N + right] - 4 * old[i * N + j]);
        }
}

/* Threads write whole chunks where they can, and none then waits for another. Where rows are no multiple of a chunk, two
   ranks write parts of one: its lock sees to it that nothing is lost. */
static void checkpoint(zcore_array *array, const double *field, int first, int rows)
{
#pragma omp parallel for
    for (int row = 0; row < rows; row += CHUNK) {
        const int64_t start[2] = {first + row, 0}, count[2] = {rows - row < CHUNK ? rows - row : CHUNK, N};
        zcore_error error;
        if (zcore_write(array, start, count, NULL, field + (row + 1) * N, NULL, 1, &error) != 0)
            stop("cannot write", &error);
    }
}

int main(int n_arguments, char **arguments)
{
    const char *place = n_arguments > 1 ? arguments[1] : "heat.zarr";
    int steps = n_arguments > 2 ? atoi(arguments[2]) : 100, every = n_arguments > 3 ? atoi(arguments[3]) : 10;
    const int64_t shape[2] = {N, N}, chunks[2] = {CHUNK, N};
    double *field, *next, *swap;
    zcore_array *array;
    zcore_error error;
    char text[64];
    const char *colon;
    int done = 0, first, rows;

#ifdef USE_MPI
    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#endif
    first = N * rank / n_ranks;
    rows = N * (rank + 1) / n_ranks - first;
    field = malloc(2 * (rows + 2) * N * sizeof(double));
    next = field + (rows + 2) * N;
    if (field == NULL) return 1;
    if (zcore_start(&error) != 0) stop("cannot start", &error);

    /* One rank looks whether there is an array, and creates it; then all open it. */
    if (rank == 0) {
        array = zcore_open(place, "r+", NULL, &error);
        if (array == NULL && error.code == ZCORE_NODE_NOT_FOUND)
            array = zcore_create(place, 2, shape, chunks, "float64", "{\"attributes\": {\"step\": 0}}", &error);
        if (array == NULL) stop("cannot open", &error);
        zcore_close(array);
    }
    wait_for_all();
    array = zcore_open(place, "r+", NULL, &error);
    if (array == NULL) stop("cannot open", &error);
    if (zcore_expect(array, "float64", 2, &error) != 0) stop("another array", &error);
    if (zcore_get_attrs(array, text, sizeof text, &error) < 0) stop("cannot read", &error);
    colon = strchr(text, ':');
    done = colon != NULL ? atoi(colon + 1) : 0;
    if (done > 0) {
        const int64_t start[2] = {first, 0}, count[2] = {rows, N};
        if (zcore_read(array, start, count, NULL, field + N, NULL, 0, &error) != 0) stop("cannot read", &error);
    } else {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < N; j++) {
                double y = first + i - 99., x = j - 99.;
                field[(i + 1) * N + j] = exp(-0.01 * (x * x + y * y));
            }
    }
    while (done < steps) {
        exchange(field, rows);
        step(field, next, rows);
        swap = field, field = next, next = swap;
        if (++done % every && done < steps) continue;
        checkpoint(array, field, first, rows);
        wait_for_all();
        snprintf(text, sizeof text, "%d", done);
        if (rank == 0 && zcore_set_attr(array, "step", text, &error) != 0) stop("cannot write", &error);
        wait_for_all();
    }
    if (zcore_sync(array, &error) != 0) stop("cannot write", &error);
    if (first <= N / 2 && N / 2 < first + rows)
        printf("%d steps, the middle is %.17g\n", done, field[(N / 2 - first + 1) * N + N / 2]);
    zcore_close(array);
    free(field < next ? field : next);
#ifdef USE_MPI
    MPI_Finalize();
#endif
    return 0;
}
