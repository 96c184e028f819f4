"""`zcore.h` for Cython: ``from zcore.capi cimport zcore_import, zcore_open, …``.

A module calls `zcore_import()` when it is imported. It is built with the folder of `zcore.get_include()` among its
`include_dirs`. What each function does is said in the header.
"""
from libc.stdint cimport int64_t


cdef extern from "zcore.h" nogil:
    int64_t ZCORE_ABI_VERSION
    int ZCORE_MAX_NDIM
    int ZCORE_OK, ZCORE_ERROR, ZCORE_NODE_NOT_FOUND, ZCORE_NODE_EXISTS, ZCORE_ARRAY_MISMATCH, ZCORE_OUT_OF_MEMORY
    int ZCORE_METADATA, ZCORE_UNSUPPORTED, ZCORE_UNKNOWN_CODEC, ZCORE_SELECTION, ZCORE_HUGE_INDEX, ZCORE_STORE
    int ZCORE_INVALID_KEY, ZCORE_KEY_CONFLICT, ZCORE_READ_ONLY, ZCORE_NOT_A_DIRECTORY_STORE, ZCORE_LOCK
    int ZCORE_REFERENCE_TARGET, ZCORE_REFERENCE_FORMAT, ZCORE_ASDF_FORMAT, ZCORE_CHUNK, ZCORE_CHUNK_MEMORY
    int ZCORE_CODEC, ZCORE_CHECKSUM, ZCORE_SHARD_INDEX, ZCORE_TRUNCATED, ZCORE_WRITER
    int ZCORE_ARGUMENT, ZCORE_CLOSED, ZCORE_NOT_STARTED, ZCORE_ABI, ZCORE_NO_PYTHON, ZCORE_INTERRUPTED, ZCORE_PYTHON

    ctypedef struct zcore_array:
        pass

    ctypedef struct zcore_writer:
        pass

    ctypedef struct zcore_error:
        int code
        int sys_errno
        char message[1000]

    ctypedef struct zcore_dtype:
        char kind
        char byte_order
        int64_t itemsize
        char name[32]

    ctypedef struct zcore_api:
        int64_t abi_version
        int64_t n_bytes
        zcore_array *(*open)(const char *, const char *, const char *, zcore_error *) noexcept
        zcore_array *(*create)(const char *, int, const int64_t *, const int64_t *, const char *, const char *,
                               zcore_error *) noexcept
        zcore_array *(*from_object)(void *, zcore_error *) noexcept
        void (*close)(zcore_array *) noexcept
        int (*ndim)(const zcore_array *) noexcept
        void (*shape)(const zcore_array *, int64_t *) noexcept
        void (*chunk_shape)(const zcore_array *, int64_t *) noexcept
        void (*object_shape)(const zcore_array *, int64_t *) noexcept
        void (*get_dtype)(const zcore_array *, zcore_dtype *) noexcept
        int (*read)(zcore_array *, const int64_t *, const int64_t *, const int64_t *, void *, const int64_t *, int,
                    zcore_error *) noexcept
        int (*write)(zcore_array *, const int64_t *, const int64_t *, const int64_t *, const void *, const int64_t *,
                     int, zcore_error *) noexcept
        int (*resize)(zcore_array *, const int64_t *, zcore_error *) noexcept
        int (*refresh)(zcore_array *, zcore_error *) noexcept
        int64_t (*get_attrs)(zcore_array *, char *, int64_t, zcore_error *) noexcept
        int (*set_attr)(zcore_array *, const char *, const char *, zcore_error *) noexcept
        int (*sync)(zcore_array *, zcore_error *) noexcept
        zcore_writer *(*writer_open)(zcore_array *, int, const char *, zcore_error *) noexcept
        int (*writer_append)(zcore_writer *, const void *, int64_t, const int64_t *, zcore_error *) noexcept
        int (*writer_write)(zcore_writer *, const int64_t *, const int64_t *, const void *, const int64_t *,
                            zcore_error *) noexcept
        int (*writer_flush)(zcore_writer *, zcore_error *) noexcept
        int (*writer_close)(zcore_writer *, zcore_error *) noexcept
        int (*writer_abort)(zcore_writer *, zcore_error *) noexcept
        int64_t (*writer_n_given)(const zcore_writer *) noexcept
        int (*expect)(zcore_array *, const char *, int, zcore_error *) noexcept

    int zcore_start(zcore_error *error)
    zcore_array *zcore_open(const char *place, const char *mode, const char *options, zcore_error *error)
    zcore_array *zcore_create(const char *place, int ndim, const int64_t *shape, const int64_t *chunks,
                              const char *dtype, const char *options, zcore_error *error)
    void zcore_close(zcore_array *array)
    int zcore_ndim(const zcore_array *array)
    void zcore_shape(const zcore_array *array, int64_t *shape)
    void zcore_chunk_shape(const zcore_array *array, int64_t *chunks)
    void zcore_object_shape(const zcore_array *array, int64_t *chunks)
    void zcore_get_dtype(const zcore_array *array, zcore_dtype *dtype)
    int zcore_expect(zcore_array *array, const char *dtype, int ndim, zcore_error *error)
    int zcore_read(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step, void *data,
                   const int64_t *strides, int n_threads, zcore_error *error)
    int zcore_write(zcore_array *array, const int64_t *start, const int64_t *count, const int64_t *step,
                    const void *data, const int64_t *strides, int n_threads, zcore_error *error)
    int zcore_resize(zcore_array *array, const int64_t *shape, zcore_error *error)
    int zcore_refresh(zcore_array *array, zcore_error *error)
    int64_t zcore_get_attrs(zcore_array *array, char *json, int64_t size, zcore_error *error)
    int zcore_set_attr(zcore_array *array, const char *name, const char *json, zcore_error *error)
    int zcore_sync(zcore_array *array, zcore_error *error)
    zcore_writer *zcore_writer_open(zcore_array *array, int axis, const char *options, zcore_error *error)
    int zcore_writer_append(zcore_writer *writer, const void *data, int64_t n_frames, const int64_t *strides,
                            zcore_error *error)
    int zcore_writer_write(zcore_writer *writer, const int64_t *start, const int64_t *count, const void *data,
                           const int64_t *strides, zcore_error *error)
    int zcore_writer_flush(zcore_writer *writer, zcore_error *error)
    int zcore_writer_close(zcore_writer *writer, zcore_error *error)
    int zcore_writer_abort(zcore_writer *writer, zcore_error *error)
    int64_t zcore_writer_n_given(const zcore_writer *writer)


cdef extern from "zcore.h":
    # Both with the GIL. `zcore_import` raises what the import of zcore raises.
    int zcore_import() except -1
    zcore_array *zcore_from_object(void *array, zcore_error *error)
