/* The least work that reads or writes an array of blosc chunks in a directory, as the limit in comparisons.
 *
 * Threads take chunk numbers from one atomic counter. Reading: openat, fstat, pread, header check, decode - into the
 * result where the chunk is contiguous there, else into scratch and row by row into the result. Writing: rows
 * into scratch where needed, encode, a temporary file, rename. No metadata, no locks, no fill values, no edge chunks.
 *
 * Below that: what the harness measures of the machine (spinning threads) and the loop around kernel functions.
 */
#include <blosc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NDIM = 8, MAX_THREADS = 64, HEADER_NBYTES = 16, NAME_NBYTES = 256 };
enum { BAD_ARGUMENT = -1, BAD_OPEN = -2, BAD_READ = -3, BAD_HEADER = -4, BAD_DECODE = -5, NO_MEMORY = -6,
       BAD_ENCODE = -7, BAD_WRITE = -8, BAD_RENAME = -9, BAD_THREAD = -10 };

typedef struct {
    int directory;
    int ndim;
    int64_t grid_shape[MAX_NDIM];
    int64_t chunk_shape[MAX_NDIM];
    int64_t strides[MAX_NDIM];          /* of the result, in bytes */
    int64_t n_chunks, chunk_nbytes, row_nbytes, n_rows, itemsize;
    int contiguous;                     /* a chunk is one run of bytes in the result */
    char *array;
    atomic_llong next;
    atomic_int failure;
    int (*work)(void *plan, int64_t chunk, char **scratch, size_t *scratch_nbytes);
} Plan;

static int grow(char **scratch, size_t *have, size_t want)
{
    if (want <= *have) return 0;
    free(*scratch);
    *scratch = malloc(want);
    *have = *scratch ? want : 0;
    return *scratch ? 0 : NO_MEMORY;
}

/* Name of the chunk file, and where the chunk's first element lies in the array. */
static int64_t locate(const Plan *plan, int64_t chunk, char *name)
{
    int64_t coords[MAX_NDIM], offset = 0;
    int used = 0;
    for (int d = plan->ndim - 1; d >= 0; d--) {
        coords[d] = chunk % plan->grid_shape[d];
        chunk /= plan->grid_shape[d];
        offset += coords[d] * plan->chunk_shape[d] * plan->strides[d];
    }
    for (int d = 0; d < plan->ndim; d++)
        used += snprintf(name + used, NAME_NBYTES - used, d ? ".%lld" : "%lld", (long long)coords[d]);
    return offset;
}

static void copy_rows(const Plan *plan, char *array, char *chunk, int to_array)
{
    int64_t index[MAX_NDIM] = {0};
    for (int64_t row = 0; row < plan->n_rows; row++) {
        int64_t offset = 0;
        for (int d = 0; d < plan->ndim - 1; d++) offset += index[d] * plan->strides[d];
        char *there = array + offset, *here = chunk + row * plan->row_nbytes;
        memcpy(to_array ? there : here, to_array ? here : there, plan->row_nbytes);
        for (int d = plan->ndim - 2; d >= 0 && ++index[d] == plan->chunk_shape[d]; d--) index[d] = 0;
    }
}

static int read_chunk(void *context, int64_t chunk, char **scratch, size_t *scratch_nbytes)
{
    Plan *plan = context;
    char name[NAME_NBYTES];
    struct stat info;
    char *target = plan->array + locate(plan, chunk, name);
    int fd = openat(plan->directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return BAD_OPEN;
    if (fstat(fd, &info) || info.st_size < HEADER_NBYTES) { close(fd); return BAD_READ; }
    if (grow(scratch, scratch_nbytes, info.st_size + plan->chunk_nbytes)) { close(fd); return NO_MEMORY; }
    for (off_t have = 0; have < info.st_size;) {
        ssize_t n = pread(fd, *scratch + have, info.st_size - have, have);
        if (n <= 0 && !(n < 0 && errno == EINTR)) { close(fd); return BAD_READ; }
        if (n > 0) have += n;
    }
    close(fd);
    uint32_t nbytes, cbytes;
    memcpy(&nbytes, *scratch + 4, 4);
    memcpy(&cbytes, *scratch + 12, 4);
    if ((*scratch)[0] != 2 || ((*scratch)[2] & 0x08) || cbytes != (uint64_t)info.st_size
        || nbytes != (uint64_t)plan->chunk_nbytes) return BAD_HEADER;
    char *decoded = plan->contiguous ? target : *scratch + info.st_size;
    if (blosc_decompress_ctx(*scratch, decoded, plan->chunk_nbytes, 1) != plan->chunk_nbytes) return BAD_DECODE;
    if (!plan->contiguous) copy_rows(plan, target, decoded, 1);
    return 0;
}

static int write_chunk(void *context, int64_t chunk, char **scratch, size_t *scratch_nbytes)
{
    Plan *plan = context;
    char name[NAME_NBYTES], temporary[NAME_NBYTES + 8];
    char *source = plan->array + locate(plan, chunk, name);
    size_t limit = plan->chunk_nbytes + BLOSC_MAX_OVERHEAD;
    if (grow(scratch, scratch_nbytes, limit + plan->chunk_nbytes)) return NO_MEMORY;
    char *decoded = source;
    if (!plan->contiguous) {
        decoded = *scratch + limit;
        copy_rows(plan, source, decoded, 0);
    }
    int encoded = blosc_compress_ctx(5, BLOSC_SHUFFLE, plan->itemsize, plan->chunk_nbytes, decoded, *scratch,
                                     limit, "lz4", 0, 1);
    if (encoded <= 0) return BAD_ENCODE;
    snprintf(temporary, sizeof temporary, "%s.tmp", name);
    int fd = openat(plan->directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return BAD_OPEN;
    for (int have = 0; have < encoded;) {
        ssize_t n = write(fd, *scratch + have, encoded - have);
        if (n < 0 && errno != EINTR) { close(fd); return BAD_WRITE; }
        if (n > 0) have += n;
    }
    if (close(fd)) return BAD_WRITE;
    return renameat(plan->directory, temporary, plan->directory, name) ? BAD_RENAME : 0;
}

static void *worker(void *context)
{
    Plan *plan = context;
    char *scratch = NULL;
    size_t scratch_nbytes = 0;
    while (!atomic_load(&plan->failure)) {
        int64_t chunk = atomic_fetch_add(&plan->next, 1);
        if (chunk >= plan->n_chunks) break;
        int code = plan->work(plan, chunk, &scratch, &scratch_nbytes);
        if (code) atomic_store(&plan->failure, code);
    }
    free(scratch);
    return NULL;
}

/* Reads (or writes) the whole array; 0 or one of the codes above. The chunks divide the shape. */
static int run(int write, const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape,
               int64_t itemsize, char *array, int n_threads)
{
    Plan plan = {.ndim = ndim, .itemsize = itemsize, .array = array, .n_chunks = 1, .chunk_nbytes = itemsize,
                 .contiguous = 1, .work = write ? write_chunk : read_chunk};
    pthread_t threads[MAX_THREADS];
    int started = 0, inner_whole = 1;
    int64_t stride = itemsize;
    if (ndim < 1 || ndim > MAX_NDIM || n_threads < 1 || n_threads > MAX_THREADS) return BAD_ARGUMENT;
    for (int d = ndim - 1; d >= 0; d--) {
        plan.grid_shape[d] = shape[d] / chunk_shape[d];
        plan.chunk_shape[d] = chunk_shape[d];
        plan.strides[d] = stride;
        stride *= shape[d];
        plan.n_chunks *= plan.grid_shape[d];
        plan.chunk_nbytes *= chunk_shape[d];
        /* contiguous: below the first dimension that is cut, no other may be cut or longer than one */
        if (!inner_whole && chunk_shape[d] != 1) plan.contiguous = 0;
        if (chunk_shape[d] != shape[d]) inner_whole = 0;
    }
    plan.row_nbytes = itemsize * chunk_shape[ndim - 1];
    plan.n_rows = plan.chunk_nbytes / plan.row_nbytes;
    plan.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (plan.directory < 0) return BAD_OPEN;
    for (; started < n_threads - 1; started++)
        if (pthread_create(&threads[started], NULL, worker, &plan)) { plan.failure = BAD_THREAD; break; }
    worker(&plan);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    close(plan.directory);
    return plan.failure;
}

int read_array(const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape, int64_t itemsize,
               char *array, int n_threads)
{
    return run(0, directory, ndim, shape, chunk_shape, itemsize, array, n_threads);
}

int write_array(const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape, int64_t itemsize,
                char *array, int n_threads)
{
    return run(1, directory, ndim, shape, chunk_shape, itemsize, array, n_threads);
}

static void *spin(void *context)
{
    volatile uint64_t state = 1;
    for (int64_t i = *(int64_t *)context; i > 0; i--) state = state * 6364136223846793005u + 1442695040888963407u;
    return NULL;
}

/* Runs `count` steps of arithmetic in each of `n_threads` threads at once. */
int spin_threads(int n_threads, int64_t count)
{
    pthread_t threads[MAX_THREADS];
    int started = 0;
    if (n_threads < 1 || n_threads > MAX_THREADS) return BAD_ARGUMENT;
    for (; started < n_threads - 1; started++)
        if (pthread_create(&threads[started], NULL, spin, &count)) break;
    spin(&count);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    return started == n_threads - 1 ? 0 : BAD_THREAD;
}

/* Calls a kernel function of the signature of blosc_header.check_header `count` times; the last result. */
typedef int (*CheckHeader)(const uint8_t *, int64_t, int64_t, int64_t, void *, void *);

int repeat_check_header(CheckHeader check, const uint8_t *data, int64_t n_bytes, int64_t expected_nbytes,
                        int64_t itemsize, void *header, void *status, int64_t count)
{
    int code = 0;
    for (int64_t i = 0; i < count; i++) code = check(data, n_bytes, expected_nbytes, itemsize, header, status);
    return code;
}
