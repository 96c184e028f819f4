/* zcore: chunked N-dimensional arrays for C and C++.

   Every function here may be called from any thread, with or without the GIL of Python. None prints, raises or exits:
   what fails returns -1 (or NULL) and says why in `zcore_error`, which may be NULL.

   A module in a Python process calls `zcore_import` once; a program that is not Python calls `zcore_start` and links
   the small library that `python -m zcore.embed --libs` names. All files of a program share what was found then.

   Sizes are 64-bit. Shapes and counts are in elements, strides in bytes. Elements are in C order unless strides say
   otherwise: the last dimension is the fastest. */
#ifndef ZCORE_H
#define ZCORE_H

#include <stddef.h>
#include <stdint.h>

/* Grows when functions are added at the end of the table. A newer library serves an older header. */
#define ZCORE_ABI_VERSION 2
#define ZCORE_MAX_NDIM 32

#ifdef __cplusplus
extern "C" {
#endif

/* What `zcore_error.code` says: the classes of zcore.errors, and what only happens here. */
enum {
    ZCORE_OK = 0,
    ZCORE_ERROR = 1,                     /* ZcoreError of no other class */
    ZCORE_NODE_NOT_FOUND = 2,
    ZCORE_NODE_EXISTS = 3,
    ZCORE_ARRAY_MISMATCH = 4,
    ZCORE_OUT_OF_MEMORY = 5,
    ZCORE_METADATA = 6,                  /* the document is damaged */
    ZCORE_UNSUPPORTED = 7,
    ZCORE_UNKNOWN_CODEC = 8,
    ZCORE_SELECTION = 9,                 /* outside of the array */
    ZCORE_HUGE_INDEX = 10,
    ZCORE_STORE = 11,                    /* an object could not be read or written: see sys_errno */
    ZCORE_INVALID_KEY = 12,
    ZCORE_KEY_CONFLICT = 13,
    ZCORE_READ_ONLY = 14,
    ZCORE_NOT_A_DIRECTORY_STORE = 15,
    ZCORE_LOCK = 16,
    ZCORE_REFERENCE_TARGET = 17,
    ZCORE_REFERENCE_FORMAT = 18,
    ZCORE_ASDF_FORMAT = 19,
    ZCORE_CHUNK = 20,                    /* a chunk is damaged or absent */
    ZCORE_CHUNK_MEMORY = 21,
    ZCORE_CODEC = 22,
    ZCORE_CHECKSUM = 23,
    ZCORE_SHARD_INDEX = 24,
    ZCORE_TRUNCATED = 25,
    ZCORE_WRITER = 26,                   /* what a writer was given is not stored yet */
    ZCORE_ARGUMENT = 40,                 /* a NULL pointer, a negative count, a wrong keyword */
    ZCORE_CLOSED = 41,                   /* the handle was closed, or never was one */
    ZCORE_NOT_STARTED = 42,              /* neither zcore_import nor zcore_start was called with success */
    ZCORE_ABI = 43,                      /* the library is older than this header */
    ZCORE_NO_PYTHON = 44,                /* no interpreter could be started */
    ZCORE_INTERRUPTED = 45,              /* a signal handler of Python raised */
    ZCORE_PYTHON = 46                    /* another exception of Python */
};

typedef struct zcore_array zcore_array;  /* an open array; may be shared by threads */
typedef struct zcore_writer zcore_writer; /* stores frames in the background; may be shared by threads */

typedef struct {
    int code;                            /* 0: all is well */
    int sys_errno;                       /* of the system call that failed, or 0 */
    char message[1000];                  /* a sentence, in UTF-8 */
} zcore_error;

typedef struct {
    char kind;                           /* NumPy's letters: b i u f c S U V M m */
    char byte_order;                     /* '<', '>', or '|' where there is none */
    int64_t itemsize;                    /* bytes */
    char name[32];                       /* as in Zarr v3, such as "float32"; empty where it has no name */
} zcore_dtype;

/* The table of functions. Only the functions below look into it. */
typedef struct {
    int64_t abi_version;
    int64_t n_bytes;
    zcore_array *(*open)(const char *, const char *, const char *, zcore_error *);
    zcore_array *(*create)(const char *, int, const int64_t *, const int64_t *, const char *, const char *,
                           zcore_error *);
    zcore_array *(*from_object)(void *, zcore_error *);
    void (*close)(zcore_array *);
    int (*ndim)(const zcore_array *);
    void (*shape)(const zcore_array *, int64_t *);
    void (*chunk_shape)(const zcore_array *, int64_t *);
    void (*object_shape)(const zcore_array *, int64_t *);
    void (*get_dtype)(const zcore_array *, zcore_dtype *);
    int (*read)(zcore_array *, const int64_t *, const int64_t *, const int64_t *, void *, const int64_t *, int,
                zcore_error *);
    int (*write)(zcore_array *, const int64_t *, const int64_t *, const int64_t *, const void *, const int64_t *, int,
                 zcore_error *);
    int (*resize)(zcore_array *, const int64_t *, zcore_error *);
    int (*refresh)(zcore_array *, zcore_error *);
    int64_t (*get_attrs)(zcore_array *, char *, int64_t, zcore_error *);
    int (*set_attr)(zcore_array *, const char *, const char *, zcore_error *);
    int (*sync)(zcore_array *, zcore_error *);
    zcore_writer *(*writer_open)(zcore_array *, int, const char *, zcore_error *);
    int (*writer_append)(zcore_writer *, const void *, int64_t, const int64_t *, zcore_error *);
    int (*writer_write)(zcore_writer *, const int64_t *, const int64_t *, const void *, const int64_t *, zcore_error *);
    int (*writer_flush)(zcore_writer *, zcore_error *);
    int (*writer_close)(zcore_writer *, zcore_error *);
    int (*writer_abort)(zcore_writer *, zcore_error *);
    int64_t (*writer_n_given)(const zcore_writer *);
    int (*expect)(zcore_array *, const char *, int, zcore_error *);
} zcore_api;

/* One for all files of a program or module, whichever of them is linked first. */
#if defined(_MSC_VER)
__declspec(selectany) const zcore_api *zcore_table = NULL;
#else
extern const zcore_api *zcore_table;
__attribute__((weak, visibility("hidden"))) const zcore_api *zcore_table = NULL;
#endif

/* Of Python, for modules that have it anyway; a program without Python never calls these. */
#ifndef Py_PYTHON_H
extern void *PyCapsule_Import(const char *name, int no_block);
extern struct _object *PyImport_ImportModule(const char *name);
extern void Py_DecRef(struct _object *object);
extern struct _object *PyExc_ImportError;
extern void PyErr_SetString(struct _object *type, const char *message);
#endif

/* In a Python process, with the GIL: finds the library. 0, or -1 with a Python error. */
static inline int zcore_import(void)
{
    struct _object *module = PyImport_ImportModule("zcore.embed");
    const zcore_api *table;
    if (module == NULL) return -1;
    Py_DecRef(module);
    table = (const zcore_api *)PyCapsule_Import("zcore.embed._C_API", 0);
    if (table == NULL) return -1;
    if (table->abi_version < ZCORE_ABI_VERSION) {
        PyErr_SetString(PyExc_ImportError, "the installed zcore is older than the zcore.h that this was built with");
        return -1;
    }
    zcore_table = table;
    return 0;
}

/* Of the library that a program without Python links: see zcore_start.c. `header` is the path of this file, from which
   follows the interpreter that it was installed for. */
extern const zcore_api *zcore_find(const char *header, zcore_error *error);

static inline int zcore_fail(zcore_error *error, int code, const char *message)
{
    size_t i = 0;
    if (error != NULL) {
        error->code = code;
        error->sys_errno = 0;
        while (message[i] && i < sizeof(error->message) - 1) {
            error->message[i] = message[i];
            i++;
        }
        error->message[i] = 0;
    }
    return -1;
}

/* In a program that is not Python: starts an interpreter once, and finds the library. 0 or -1. */
static inline int zcore_start(zcore_error *error)
{
    const zcore_api *table = zcore_find(__FILE__, error);
    if (table == NULL) return -1;
    if (table->abi_version < ZCORE_ABI_VERSION)
        return zcore_fail(error, ZCORE_ABI, "the installed zcore is older than the zcore.h that this was built with");
    zcore_table = table;
    if (error != NULL) zcore_fail(error, ZCORE_OK, "");
    return 0;
}

static inline int zcore_is_started(zcore_error *error)
{
    if (zcore_table != NULL) return 1;
    zcore_fail(error, ZCORE_NOT_STARTED, "zcore was not started: call zcore_import or zcore_start first");
    return 0;
}

/* Opens an array. `mode`: "r", "r+", "a", "w", "w-". `options`: a JSON object of keywords of zcore.open, or NULL. */
static inline zcore_array *zcore_open(const char *place, const char *mode, const char *options, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->open(place, mode, options, error) : NULL;
}

/* Creates an array. `chunks`: NULL for what zcore chooses. `dtype`: NumPy's or Zarr's name, such as "<f4" or
   "float32". `options`: a JSON object of keywords of zcore.create_array, or NULL. */
static inline zcore_array *zcore_create(const char *place, int ndim, const int64_t *shape, const int64_t *chunks,
                                        const char *dtype, const char *options, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->create(place, ndim, shape, chunks, dtype, options, error) : NULL;
}

/* A handle of a zcore.Array, a PyObject *, with the GIL held. */
static inline zcore_array *zcore_from_object(void *array, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->from_object(array, error) : NULL;
}

/* Closes a handle; waits for calls of other threads that use it. NULL, or one that is closed, is no error. */
static inline void zcore_close(zcore_array *array)
{
    if (zcore_table != NULL) zcore_table->close(array);
}

/* Number of dimensions, at most ZCORE_MAX_NDIM; -1 of a handle that was closed. */
static inline int zcore_ndim(const zcore_array *array)
{
    return zcore_table != NULL ? zcore_table->ndim(array) : -1;
}

/* The shape when this handle saw the array last. Each fills `ndim` numbers, and none if the handle was closed. */
static inline void zcore_shape(const zcore_array *array, int64_t *shape)
{
    if (zcore_table != NULL) zcore_table->shape(array, shape);
}

/* Of what is read one by one; of the longest chunks, where they differ. */
static inline void zcore_chunk_shape(const zcore_array *array, int64_t *chunks)
{
    if (zcore_table != NULL) zcore_table->chunk_shape(array, chunks);
}

/* Of what is written one by one: the shard, where there are shards. Writers whose boxes are whole objects never wait
   for each other and never read. */
static inline void zcore_object_shape(const zcore_array *array, int64_t *chunks)
{
    if (zcore_table != NULL) zcore_table->object_shape(array, chunks);
}

static inline void zcore_get_dtype(const zcore_array *array, zcore_dtype *dtype)
{
    if (zcore_table != NULL) zcore_table->get_dtype(array, dtype);
}

/* Checks that the array is what the program's memory is made for. `dtype`: NumPy's or Zarr's name, such as "f8" or
   "float64", in the machine's byte order unless it says another. `ndim`: how many numbers `start` and `count` have. A handle
   keeps both, so one check is enough. 0, or -1 with ZCORE_ARRAY_MISMATCH. */
static inline int zcore_expect(zcore_array *array, const char *dtype, int ndim, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->expect(array, dtype, ndim, error) : -1;
}

/* Read a box into `data`, or write it from there. They trust `data` to hold elements of the array's type: call
   `zcore_expect` once before. `start` and `count` in elements; `step` NULL for 1, negative steps
   allowed: `start` is then the highest element. `strides` in bytes of the memory, for each dimension, NULL for C order.
   `n_threads`: 0 for the setting, 1 for none but the caller's. 0 or -1. After an error of a read, `data` may be filled
   in part; after an error of a write, each chunk is either old or new. */
static inline int zcore_read(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step,
                             void *data, const int64_t *strides, int n_threads, zcore_error *error)
{
    if (!zcore_is_started(error)) return -1;
    return zcore_table->read(array, start, count, step, data, strides, n_threads, error);
}

static inline int zcore_write(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step,
                              const void *data, const int64_t *strides, int n_threads, zcore_error *error)
{
    if (!zcore_is_started(error)) return -1;
    return zcore_table->write(array, start, count, step, data, strides, n_threads, error);
}

/* Changes the shape. Other handles, of other processes too, take it over by `zcore_refresh`. 0 or -1. */
static inline int zcore_resize(zcore_array *array, const int64_t *shape, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->resize(array, shape, error) : -1;
}

static inline int zcore_refresh(zcore_array *array, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->refresh(array, error) : -1;
}

/* Writes the attributes as a JSON object with a final zero, as much of it as `size` bytes hold. Returns the bytes that
   the whole needs without the final zero, as snprintf does; -1 for an error. */
static inline int64_t zcore_get_attrs(zcore_array *array, char *json, int64_t size, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->get_attrs(array, json, size, error) : -1;
}

/* Sets one attribute to a JSON value; NULL deletes it. 0 or -1. */
static inline int zcore_set_attr(zcore_array *array, const char *name, const char *json, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->set_attr(array, name, json, error) : -1;
}

/* Returns when what was written is on the disk. 0 or -1. */
static inline int zcore_sync(zcore_array *array, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->sync(array, error) : -1;
}

/* Opens a writer, which takes frames one by one and stores whole chunks or shards in the background, while the caller
   computes. The frames follow each other along `axis`; -1 is the last one. `options`: a JSON object of keywords of
   zcore.Array.writer, such as "{\"queue\": \"1 GiB\"}", or NULL. The writer needs the handle of the array no longer. */
static inline zcore_writer *zcore_writer_open(zcore_array *array, int axis, const char *options, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->writer_open(array, axis, options, error) : NULL;
}

/* Takes `n_frames` frames for the end of the array. They are copied, and a call waits only while the queue is full. Along
   the other dimensions a frame is as long as `zcore_shape` said when the writer was opened. `strides`: in bytes of the
   memory, for each dimension of the array, NULL for C order. 0 or -1.

   ZCORE_WRITER, here and below: something that was given could not be stored, and waits in the writer; the sentence has
   the numbers of these frames. The next call tries again. Then one frame is not taken, of several maybe some: see
   `zcore_writer_n_given`. */
static inline int zcore_writer_append(zcore_writer *writer, const void *data, int64_t n_frames, const int64_t *strides,
                                      zcore_error *error)
{
    if (!zcore_is_started(error)) return -1;
    return zcore_table->writer_append(writer, data, n_frames, strides, error);
}

/* Takes a box, which lies in the array with the frames that were appended so far. A chunk or shard is stored when all of
   it was given; the rest by `zcore_writer_flush`. 0 or -1. */
static inline int zcore_writer_write(zcore_writer *writer, const int64_t *start, const int64_t *count, const void *data,
                                     const int64_t *strides, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->writer_write(writer, start, count, data, strides, error) : -1;
}

/* Stores all that was given. When it returns, all can be read, and the handle of the array has the new shape. 0 or -1. */
static inline int zcore_writer_flush(zcore_writer *writer, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->writer_flush(writer, error) : -1;
}

/* The same, and closes the writer; NULL, or one that is closed, is no error. After an error, it stays open with all that
   could not be stored: close it again, or abort. What waits in a writer that is never closed is lost. 0 or -1. */
static inline int zcore_writer_close(zcore_writer *writer, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->writer_close(writer, error) : -1;
}

/* Closes a writer, and drops what waits. NULL, or one that is closed, is no error. 0 or -1. */
static inline int zcore_writer_abort(zcore_writer *writer, zcore_error *error)
{
    return zcore_is_started(error) ? zcore_table->writer_abort(writer, error) : -1;
}

/* Number of frames that `zcore_writer_append` has taken so far; -1 of a writer that was closed. */
static inline int64_t zcore_writer_n_given(const zcore_writer *writer)
{
    return zcore_table != NULL ? zcore_table->writer_n_given(writer) : -1;
}

#ifdef __cplusplus
}
#endif

#endif
