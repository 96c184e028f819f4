/* A checkpoint of fields of float64 by the ranks of an MPI program: to arrays by zcore.h, and to parallel HDF5.

   checkpoint FOLDER N_FIELDS N_ROWS N_COLUMNS CHUNK_ROWS N_ROUNDS SHIFT OPTIONS CREATES

   Each rank writes its rows of each field, the first SHIFT rows of which are in a chunk of the rank before. OPTIONS are
   those of zcore_create. A checkpoint begins with opening what is there, or creating it anew if CREATES is 1, and ends
   when all ranks have closed it. Both take turns in a random order.
   Rank 0 prints "zcore SECONDS" and "HDF5 SECONDS" for each checkpoint, and "wrong N" for the elements that differ. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "zcore.h"

static int rank, n_ranks, n_fields, creates;
static int64_t rows, columns, chunk_rows, first, n_own;
static double *values;
static const char *folder, *options;

/* An element of the rank's rows: a wave, as fields are, and not the same in any two rounds or ranks. */
static double value(int round, int64_t i) { return round * 100 + rank + sin(1e-3 * (double)i); }

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void name_of(char *place, size_t size, int field) { snprintf(place, size, "%s/field%d", folder, field); }

static void create_all(void)
{
    char place[4096];
    zcore_error error;
    int64_t shape[2] = {rows, columns}, chunks[2] = {chunk_rows, columns};
    if (rank == 0)
        for (int field = 0; field < n_fields; field++) {
            name_of(place, sizeof place, field);
            zcore_array *array = zcore_create(place, 2, shape, chunks, "float64", options, &error);
            if (array == NULL) stop("zcore_create", error.message);
            zcore_close(array);
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void by_zcore(void)
{
    char place[4096];
    zcore_error error;
    int64_t start[2] = {first, 0}, count[2] = {n_own, columns};
    if (creates) create_all();
    for (int field = 0; field < n_fields; field++) {
        name_of(place, sizeof place, field);
        zcore_array *array = zcore_open(place, "r+", NULL, &error);
        if (array == NULL) stop("zcore_open", error.message);
        if (zcore_write(array, start, count, NULL, values, NULL, 1, &error) != 0) stop("zcore_write", error.message);
        zcore_close(array);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void by_hdf5(void)
{
    char place[4096], name[64];
    hsize_t shape[2] = {(hsize_t)rows, (hsize_t)columns}, chunks[2] = {(hsize_t)chunk_rows, (hsize_t)columns};
    hsize_t start[2] = {(hsize_t)first, 0}, count[2] = {(hsize_t)n_own, (hsize_t)columns};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER), file;
    hid_t space = H5Screate_simple(2, shape, NULL), own = H5Screate_simple(2, count, NULL);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    snprintf(place, sizeof place, "%s/fields.h5", folder);
    file = creates ? H5Fcreate(place, H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(place, H5F_ACC_RDWR, access);
    if (file < 0) stop("HDF5", "cannot open the file");
    for (int field = 0; field < n_fields; field++) {
        hid_t set;
        snprintf(name, sizeof name, "field%d", field);
        if (creates) {
            hid_t how = H5Pcreate(H5P_DATASET_CREATE);
            H5Pset_chunk(how, 2, chunks);
            H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
            set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
            H5Pclose(how);
        } else
            set = H5Dopen2(file, name, H5P_DEFAULT);
        if (H5Dwrite(set, H5T_NATIVE_DOUBLE, own, space, transfer, values) < 0) stop("HDF5", "cannot write");
        H5Dclose(set);
    }
    H5Fclose(file);
    H5Sclose(space);
    H5Sclose(own);
    H5Pclose(access);
    H5Pclose(transfer);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Elements of all fields that are not what the rank that has them wrote last. */
static long wrong(void)
{
    char place[4096];
    zcore_error error;
    long n = 0;
    int64_t start[2] = {first, 0}, count[2] = {n_own, columns};
    double *found = malloc((size_t)(n_own * columns) * sizeof(double));
    for (int field = 0; field < n_fields; field++) {
        name_of(place, sizeof place, field);
        zcore_array *array = zcore_open(place, "r", NULL, &error);
        if (array == NULL || zcore_read(array, start, count, NULL, found, NULL, 1, &error) != 0)
            stop("zcore_read", error.message);
        for (int64_t i = 0; i < n_own * columns; i++) n += found[i] != values[i];
        zcore_close(array);
    }
    free(found);
    return n;
}

int main(int n_arguments, char **arguments)
{
    zcore_error error;
    long n_wrong = 0, all_wrong;
    int n_rounds;
    int64_t shift;
    MPI_Init(&n_arguments, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (n_arguments != 10)
        stop("arguments", "FOLDER N_FIELDS N_ROWS N_COLUMNS CHUNK_ROWS N_ROUNDS SHIFT OPTIONS CREATES");
    folder = arguments[1];
    n_fields = atoi(arguments[2]);
    rows = atoll(arguments[3]);
    columns = atoll(arguments[4]);
    chunk_rows = atoll(arguments[5]);
    n_rounds = atoi(arguments[6]);
    shift = atoll(arguments[7]);
    options = arguments[8];
    first = rank == 0 ? 0 : rows * rank / n_ranks - shift;
    n_own = (rank == n_ranks - 1 ? rows : rows * (rank + 1) / n_ranks - shift) - first;
    values = malloc((size_t)(n_own * columns) * sizeof(double));
    if (zcore_start(&error) != 0) stop("zcore_start", error.message);
    for (int round = 0; round <= n_rounds; round++) {
        int zcore_begins = rand() % 2;          /* the same numbers on all ranks */
        for (int64_t i = 0; i < n_own * columns; i++) values[i] = value(round, i);
        for (int turn = 0; turn < 2; turn++) {
            int is_zcore = (turn == 0) == zcore_begins;
            creates = round == 0 || atoi(arguments[9]);
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            if (is_zcore) by_zcore();
            else by_hdf5();
            /* The first round warms up, and makes the files. */
            if (rank == 0 && round > 0) printf("%s %.6f\n", is_zcore ? "zcore" : "HDF5", MPI_Wtime() - begun);
        }
        n_wrong += wrong();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Reduce(&n_wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("wrong %ld\n", all_wrong);
    free(values);
    MPI_Finalize();
    return 0;
}
