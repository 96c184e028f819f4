/* The least work that reads or writes an array of blosc chunks in a directory, as the limit in comparisons.
 *
 * Threads take chunk numbers from one atomic counter. Reading: openat, fstat, pread, header check, decode - into the
 * result where the chunk is contiguous there, else into scratch and row by row into the result. Writing: rows
 * into scratch where needed, encode, a temporary file, rename. No metadata, no locks, no fill values, no edge chunks.
 *
 * Reading elements at points, or the product of lists of indices: the lists sorted by chunks, each chunk that has any
 * of them decoded into scratch, its elements moved one by one. Items of 4 bytes.
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

typedef struct {                        /* numbers sorted by the chunks that they belong to */
    int64_t n;
    int64_t *order;
    int64_t *bounds;                    /* of each chunk, and the end */
} Sorted;

typedef struct Plan Plan;

struct Plan {
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
    /* What is read of a chunk, where that is not all of it: how many elements, and their move. */
    int64_t (*count)(const Plan *plan, int64_t chunk);
    void (*take)(const Plan *plan, int64_t chunk, const uint32_t *decoded);
    const int64_t *indices[MAX_NDIM];
    Sorted sorted[MAX_NDIM];            /* of points the first one alone */
};

static int grow(char **scratch, size_t *have, size_t want)
{
    if (want <= *have) return 0;
    free(*scratch);
    *scratch = malloc(want);
    *have = *scratch ? want : 0;
    return *scratch ? 0 : NO_MEMORY;
}

/* Name of the chunk file, c/i/j as in Zarr v3, and where the chunk's first element lies in the array. */
static int64_t locate(const Plan *plan, int64_t chunk, char *name)
{
    int64_t coords[MAX_NDIM], offset = 0;
    int used = snprintf(name, NAME_NBYTES, "c");
    for (int d = plan->ndim - 1; d >= 0; d--) {
        coords[d] = chunk % plan->grid_shape[d];
        chunk /= plan->grid_shape[d];
        offset += coords[d] * plan->chunk_shape[d] * plan->strides[d];
    }
    for (int d = 0; d < plan->ndim; d++)
        used += snprintf(name + used, NAME_NBYTES - used, "/%lld", (long long)coords[d]);
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
    int64_t offset = locate(plan, chunk, name);
    if (plan->take && plan->count(plan, chunk) == 0) return 0;
    int fd = openat(plan->directory, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return BAD_OPEN;
    if (fstat(fd, &info) || info.st_size < HEADER_NBYTES) { close(fd); return BAD_READ; }
    if (grow(scratch, scratch_nbytes, info.st_size + 8 + plan->chunk_nbytes)) { close(fd); return NO_MEMORY; }
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
    char *target = plan->array + offset;
    int in_place = plan->contiguous && !plan->take;
    /* Behind the encoded bytes, at a place for items. */
    char *decoded = in_place ? target : *scratch + (info.st_size + 7) / 8 * 8;
    if (blosc_decompress_ctx(*scratch, decoded, plan->chunk_nbytes, 1) != plan->chunk_nbytes) return BAD_DECODE;
    if (plan->take) plan->take(plan, chunk, (const uint32_t *)decoded);
    else if (!in_place) copy_rows(plan, target, decoded, 1);
    return 0;
}

/* Makes the folders of a name. */
static void make_folders(const Plan *plan, char *name)
{
    for (char *slash = name; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdirat(plan->directory, name, 0777);
    }
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
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, fd = openat(plan->directory, temporary, flags, 0666);
    if (fd < 0 && errno == ENOENT) {
        make_folders(plan, temporary);
        fd = openat(plan->directory, temporary, flags, 0666);
    }
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

static int describe(Plan *plan, int ndim, const int64_t *shape, const int64_t *chunk_shape, int64_t itemsize,
                    char *array)
{
    int inner_whole = 1;
    int64_t stride = itemsize;
    if (ndim < 1 || ndim > MAX_NDIM) return BAD_ARGUMENT;
    *plan = (Plan){.ndim = ndim, .itemsize = itemsize, .array = array, .n_chunks = 1, .chunk_nbytes = itemsize,
                   .contiguous = 1, .work = read_chunk};
    for (int d = ndim - 1; d >= 0; d--) {
        plan->grid_shape[d] = shape[d] / chunk_shape[d];
        plan->chunk_shape[d] = chunk_shape[d];
        plan->strides[d] = stride;
        stride *= shape[d];
        plan->n_chunks *= plan->grid_shape[d];
        plan->chunk_nbytes *= chunk_shape[d];
        /* contiguous: below the first dimension that is cut, no other may be cut or longer than one */
        if (!inner_whole && chunk_shape[d] != 1) plan->contiguous = 0;
        if (chunk_shape[d] != shape[d]) inner_whole = 0;
    }
    plan->row_nbytes = itemsize * chunk_shape[ndim - 1];
    plan->n_rows = plan->chunk_nbytes / plan->row_nbytes;
    return 0;
}

static int run(Plan *plan, const char *directory, int n_threads)
{
    pthread_t threads[MAX_THREADS];
    int started = 0;
    if (n_threads < 1 || n_threads > MAX_THREADS) return BAD_ARGUMENT;
    plan->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (plan->directory < 0) return BAD_OPEN;
    for (; started < n_threads - 1; started++)
        if (pthread_create(&threads[started], NULL, worker, plan)) { plan->failure = BAD_THREAD; break; }
    worker(plan);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    close(plan->directory);
    return plan->failure;
}

/* Reads the whole array; 0 or one of the codes above. The chunks divide the shape. */
int read_array(const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape, int64_t itemsize,
               char *array, int n_threads)
{
    Plan plan;
    int code = describe(&plan, ndim, shape, chunk_shape, itemsize, array);
    return code ? code : run(&plan, directory, n_threads);
}

/* Writes it. */
int write_array(const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape, int64_t itemsize,
                char *array, int n_threads)
{
    Plan plan;
    int code = describe(&plan, ndim, shape, chunk_shape, itemsize, array);
    plan.work = write_chunk;
    return code ? code : run(&plan, directory, n_threads);
}

/* Sorts 0 … n - 1 by their keys, all below n_keys. */
static int sort_by(Sorted *sorted, const int64_t *keys, int64_t n, int64_t n_keys)
{
    sorted->n = n;
    sorted->order = malloc((n + 1) * sizeof(int64_t));
    sorted->bounds = calloc(n_keys + 2, sizeof(int64_t));
    if (!sorted->order || !sorted->bounds) return NO_MEMORY;
    int64_t *next = sorted->bounds + 1;
    for (int64_t i = 0; i < n; i++) next[keys[i] + 1]++;
    for (int64_t k = 0; k < n_keys; k++) next[k + 1] += next[k];
    for (int64_t i = 0; i < n; i++) sorted->order[next[keys[i]]++] = i;
    return 0;
}

static int64_t count_points(const Plan *plan, int64_t chunk)
{
    return plan->sorted[0].bounds[chunk + 1] - plan->sorted[0].bounds[chunk];
}

static void take_points(const Plan *plan, int64_t chunk, const uint32_t *decoded)
{
    const Sorted *sorted = &plan->sorted[0];
    uint32_t *out = (uint32_t *)plan->array;
    for (int64_t i = sorted->bounds[chunk]; i < sorted->bounds[chunk + 1]; i++) {
        int64_t point = sorted->order[i], at = 0;
        for (int d = 0; d < plan->ndim; d++)
            at = at * plan->chunk_shape[d] + plan->indices[d][point] % plan->chunk_shape[d];
        out[point] = decoded[at];
    }
}

/* Of each dimension the first of the chunk's indices, as they are sorted, and how many. */
static int64_t lists_of(const Plan *plan, int64_t chunk, int64_t *first, int64_t *count)
{
    int64_t n = 1;
    for (int d = plan->ndim - 1; d >= 0; d--) {
        const int64_t *bounds = plan->sorted[d].bounds + chunk % plan->grid_shape[d];
        chunk /= plan->grid_shape[d];
        first[d] = bounds[0];
        n *= count[d] = bounds[1] - bounds[0];
    }
    return n;
}

static int64_t count_product(const Plan *plan, int64_t chunk)
{
    int64_t first[MAX_NDIM], count[MAX_NDIM];
    return lists_of(plan, chunk, first, count);
}

static void take_product(const Plan *plan, int64_t chunk, const uint32_t *decoded)
{
    int64_t first[MAX_NDIM], count[MAX_NDIM], index[MAX_NDIM] = {0};
    int last = plan->ndim - 1;
    lists_of(plan, chunk, first, count);
    for (;;) {
        uint32_t *out = (uint32_t *)plan->array;
        const uint32_t *row = decoded;
        int64_t inside = 0, outside = 0;
        for (int d = 0; d < last; d++) {
            int64_t i = plan->sorted[d].order[first[d] + index[d]];
            inside = (inside + plan->indices[d][i] % plan->chunk_shape[d]) * plan->chunk_shape[d + 1];
            outside = (outside + i) * plan->sorted[d + 1].n;
        }
        row += inside;
        out += outside;
        for (int64_t k = first[last]; k < first[last] + count[last]; k++) {
            int64_t i = plan->sorted[last].order[k];
            out[i] = row[plan->indices[last][i] % plan->chunk_shape[last]];
        }
        int d = last - 1;
        while (d >= 0 && ++index[d] == count[d]) index[d--] = 0;
        if (d < 0) return;
    }
}

/* Reads elements: at `counts[0]` points, of which `indices` has a list for each dimension, or the product of lists.
 * The array of the result is in C order. */
int read_lists(const char *directory, int ndim, const int64_t *shape, const int64_t *chunk_shape,
               const int64_t *const *indices, const int64_t *counts, int are_points, char *out, int n_threads)
{
    Plan plan;
    int code = describe(&plan, ndim, shape, chunk_shape, 4, out);
    int64_t longest = 1;
    if (code) return code;
    for (int d = 0; d < ndim; d++) {
        plan.indices[d] = indices[d];
        if (counts[d] > longest) longest = counts[d];
    }
    plan.count = are_points ? count_points : count_product;
    plan.take = are_points ? take_points : take_product;
    int64_t *keys = malloc(longest * sizeof(int64_t));
    if (!keys) return NO_MEMORY;
    if (are_points) {
        for (int64_t i = 0; i < counts[0]; i++) {
            keys[i] = 0;
            for (int d = 0; d < ndim; d++) keys[i] = keys[i] * plan.grid_shape[d] + indices[d][i] / chunk_shape[d];
        }
        code = sort_by(&plan.sorted[0], keys, counts[0], plan.n_chunks);
    }
    for (int d = 0; d < ndim && !are_points && !code; d++) {
        for (int64_t i = 0; i < counts[d]; i++) keys[i] = indices[d][i] / chunk_shape[d];
        code = sort_by(&plan.sorted[d], keys, counts[d], plan.grid_shape[d]);
    }
    free(keys);
    if (!code) code = run(&plan, directory, n_threads);
    for (int d = 0; d < ndim; d++) {
        free(plan.sorted[d].order);
        free(plan.sorted[d].bounds);
    }
    return code;
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
