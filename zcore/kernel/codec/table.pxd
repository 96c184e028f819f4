"""The table of native codecs: one row of C functions per codec. A `Step` is a codec with its parameters in a chain.

A codec is a `.pyx` that fills a `CodecFunctions` and adds it with `add_codec`, under the name that the Python class
uses; `program.pyx` imports it. No other module lists the codecs.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from zcore.kernel.io.files cimport Buffer
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport Copy, Runs


cdef enum:
    MAX_CODECS = 32
    SUM_NBYTES = 4             # size of a checksum, stored little-endian
    NOT_BLOCKWISE = -1         # the chunk must be decoded, or encoded, as a whole

cdef extern from * nogil:
    """
    #define ZC_MAX_ENCODED ((int64_t)1 << 62)
    """
    # Longer than any object. Sums of sizes stop here instead of overflowing.
    const int64_t MAX_ENCODED "ZC_MAX_ENCODED"

cdef struct CodecFunctions     # a row of the table, below

cdef struct Step:              # a codec with its parameters, in a program
    const CodecFunctions *codec
    void *parameters           # the codec's own struct, in memory of the program, zero before `configure`
    int64_t unit               # bytes of an item; 0: the codec knows no items. Others get whole items only
    int64_t itemsize           # item size of the chunk's elements, 0: unknown
    bint at_start              # the checksum precedes the bytes
    bint encodes_in_python     # set by `configure`; such a step takes the GIL
    bint decodes_in_python

cdef struct Contexts:          # state of a codec's library between calls; all NULL at first
    void *decoder
    void *encoder

cdef struct Workspace:         # memory of a thread between chunks; all zero at first
    Buffer between             # content between two steps
    Contexts contexts[32]      # by the number of the codec
    int n_threads              # maximum threads inside a chunk
    const int64_t *lengths     # shape of the chunk, if chunks differ in shape; else NULL
    int ndim
    void *held                 # output of a codec in Python, while its bytes are in use
    void *exception            # exception of a codec in Python

# Output size of a step for `n_bytes` bytes. If it is only a maximum, `is_exact` becomes False.
ctypedef int64_t (*bound_function)(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil
# Encodes into `dst` of `capacity` bytes, the bound: returns the size, or -1 with `status` filled.
ctypedef int64_t (*encode_function)(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                                    int64_t capacity, Workspace *work, Status *status) noexcept nogil
# The same, but the bytes stay in the codec's memory until the workspace is used again.
ctypedef int64_t (*make_function)(const Step *step, const uint8_t *src, int64_t n_bytes, const uint8_t **made,
                                  Workspace *work, Status *status) noexcept nogil
# Decodes into `dst`: returns the number of bytes, or -1 with `status` filled. Never writes more than `limit` bytes,
# whatever the stream says. With `is_exact`, `limit` bytes are expected; the program compares.
ctypedef int64_t (*decode_function)(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                                    bint is_exact, Workspace *work, Status *status) noexcept nogil
ctypedef uint32_t (*sum_function)(const uint8_t *data, int64_t n_bytes) noexcept nogil
# Fills a step with the parameters from Python. ValueError, if they have no C form.
ctypedef int (*configure_function)(Step *step, tuple parameters) except -1
ctypedef void (*release_function)(Contexts *contexts) noexcept nogil
# Decoded bytes of a chunk that are worth a thread inside it.
ctypedef int64_t (*threads_function)(const Step *step, bint encodes) noexcept nogil

cdef struct BlockFunctions:    # functions of a codec whose chunks are blocks that can be decoded alone; see `Program`
    # Whether decoding a chunk, or that part of it, block by block is worth it. Reads only the header, which is not yet
    # verified; a damaged header is left to the decoder.
    bint (*is_blockwise)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t n_item,
                         const Copy *part, int64_t offset, bint only_few) noexcept nogil
    int (*scatter)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs,
                   uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
    int (*select)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                  int64_t offset, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil
    bint (*can_gather)(const Step *step, const Runs *runs, int64_t n_bytes) noexcept nogil
    int64_t (*gather)(const Step *step, const uint8_t *src, const Runs *runs, int64_t n_bytes, uint8_t *dst,
                      uint8_t *scratch, Workspace *work) noexcept nogil
    # Bytes of scratch memory that `merge` needs; 0 if merging by blocks is impossible or not worth it.
    int64_t (*merge_room)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                          int64_t offset, bint only_few) noexcept nogil
    int64_t (*merge)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                     int64_t offset, const uint8_t *elements, const uint8_t *fill, uint8_t *dst, uint8_t *scratch,
                     Status *status) noexcept nogil

cdef struct CodecFunctions:
    int number                 # index of the row
    size_t parameters_nbytes
    configure_function configure
    # A checksum has `sum` and nothing else: the program verifies or writes it in place.
    sum_function sum
    bound_function bound       # NULL: the output has the size of the input
    encode_function encode
    decode_function decode
    make_function make         # or NULL
    const BlockFunctions *blocks    # or NULL
    release_function release   # frees its contexts, or NULL if it has none
    threads_function thread_nbytes          # or NULL: the codec has no threads inside a chunk


# Returns a row with these functions and no others.
cdef CodecFunctions codec_row(size_t parameters_nbytes, configure_function configure, bound_function bound,
                              encode_function encode, decode_function decode) noexcept
# Adds a row. The pointer stays valid.
cdef int add_codec(str name, CodecFunctions *row) except -1
# Returns the row of a name: ValueError, if there is none.
cdef const CodecFunctions *find_codec(str name) except NULL
# Bound of compressors that make no more than twice as much.
cdef int64_t stream_bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil

cdef void workspace_free(Workspace *work) noexcept nogil
# Copies a bytes-like object to `dst` if it has at most `limit` bytes; returns its size.
cdef int64_t copy_bytes(object made, uint8_t *dst, int64_t limit) except -1
# Holds a bytes-like object until the workspace is used again. Sets `data` to its bytes and returns their number.
cdef int64_t hold_bytes(Workspace *work, object made, const uint8_t **data) except -1
# Releases the held object and the exception.
cdef void let_go(Workspace *work) noexcept with gil
# Records an exception and returns a code.
cdef int raised_in(Workspace *work, object exception, Status *status) noexcept
# Returns the exception of a codec in Python and forgets it, or None.
cdef object workspace_exception(Workspace *work)
