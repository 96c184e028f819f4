"""The table of native codecs: a row of C functions for each, and what a chain keeps of a codec, a step.

A codec is a `.pyx` that fills a `CodecFunctions` and adds it by `add_codec`, under the name by which the Python class
asks for it; `program.pyx` imports it. No other module knows which codecs there are.
"""
from libc.stdint cimport int64_t, uint8_t, uint32_t

from zcore.kernel.io.files cimport Buffer
from zcore.kernel.status cimport Status
from zcore.kernel.strided.copy cimport Copy, Runs


cdef enum:
    MAX_CODECS = 32
    SUM_NBYTES = 4             # of a checksum, stored little-endian
    NOT_BLOCKWISE = -1         # the chunk has to be decoded, or encoded, as a whole

cdef extern from * nogil:
    """
    #define ZC_MAX_ENCODED ((int64_t)1 << 62)
    """
    # Longer than any object: sums of sizes stop here instead of overflowing.
    const int64_t MAX_ENCODED "ZC_MAX_ENCODED"

cdef struct CodecFunctions     # a row of the table, below

cdef struct Step:              # a codec with its parameters, in a program
    const CodecFunctions *codec
    void *parameters           # a struct of the codec's own; the program's memory, zero before `configure`
    int64_t unit               # bytes of an item before it is encoded, and behind; 0: the codec knows no items.
    int64_t as_unit            # Of codecs that know them only whole items come here.
    int64_t itemsize           # of the chunk's elements, 0: not known
    bint at_start              # the checksum stands before the bytes

cdef struct Contexts:          # what a codec's library keeps between calls; all NULL at first
    void *decoder
    void *encoder

cdef struct Workspace:         # what a thread keeps between chunks; all zero at first
    Buffer between             # content between two steps
    Contexts contexts[32]      # by the number of the codec
    int n_threads              # that a codec may use inside a chunk
    const int64_t *lengths     # of the chunk, where chunks differ in shape; else NULL
    int ndim
    void *held                 # what a codec in Python has made, as long as its bytes are used
    void *exception            # what one has raised

# The size of what a step makes of `n_bytes` bytes; where it is the most that it can be, `is_exact` becomes False.
ctypedef int64_t (*bound_function)(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil
# Encodes into `dst`, which has room for `capacity` bytes, the bound: how many there are, or -1 with `status` filled.
ctypedef int64_t (*encode_function)(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst,
                                    int64_t capacity, Workspace *work, Status *status) noexcept nogil
# The same; the bytes stay where the codec has made them, until the workspace is used again.
ctypedef int64_t (*make_function)(const Step *step, const uint8_t *src, int64_t n_bytes, const uint8_t **made,
                                  Workspace *work, Status *status) noexcept nogil
# Decodes into `dst`: how many bytes, or -1 with `status` filled. Never more than `limit` bytes are written, whatever
# the stream says. With `is_exact` there should be `limit` bytes; the program compares.
ctypedef int64_t (*decode_function)(const Step *step, const uint8_t *src, int64_t n_bytes, uint8_t *dst, int64_t limit,
                                    bint is_exact, Workspace *work, Status *status) noexcept nogil
ctypedef uint32_t (*sum_function)(const uint8_t *data, int64_t n_bytes) noexcept nogil
# Fills a step by the parameters that Python gives. ValueError, if there is no C form for them.
ctypedef int (*configure_function)(Step *step, tuple parameters) except -1
ctypedef void (*release_function)(Contexts *contexts) noexcept nogil

cdef struct BlockFunctions:    # of a codec whose chunks consist of blocks that are decoded alone; see `Program`
    # Whether it is worth while to decode a chunk, or that part of it, block by block. Only its header is looked at,
    # before it was verified; a damaged one is left to the decoder.
    bint (*is_blockwise)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, int64_t n_item,
                         const Copy *part, int64_t offset, bint only_few) noexcept nogil
    int (*scatter)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Runs *runs,
                   uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
    int (*select)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes, const Copy *part,
                  int64_t offset, uint8_t *dst, Buffer *scratch, Status *status) noexcept nogil
    int64_t (*block_nbytes)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes,
                            int64_t n_item) noexcept nogil
    int (*decode_blocks)(const Step *step, const uint8_t *src, int64_t n_bytes, int64_t dst_nbytes,
                         const uint8_t *needed, uint8_t *dst, uint8_t *scratch, Status *status) noexcept nogil
    bint (*can_gather)(const Step *step, const Runs *runs, int64_t n_bytes) noexcept nogil
    int64_t (*gather)(const Step *step, const uint8_t *src, const Runs *runs, int64_t n_bytes, uint8_t *dst,
                      uint8_t *scratch) noexcept nogil

cdef struct CodecFunctions:
    int number                 # of the row
    size_t parameters_nbytes
    configure_function configure
    # A checksum has `sum` and nothing else: the program takes it off, or writes it, where the bytes lie.
    sum_function sum
    bound_function bound       # NULL: as many bytes as there were
    encode_function encode
    decode_function decode
    make_function make         # or NULL
    const BlockFunctions *blocks    # or NULL
    release_function release   # of its contexts, or NULL: it has none


# Adds a row, which stays where it is.
cdef int add_codec(str name, CodecFunctions *row) except -1
# The row of a name: ValueError, if there is none.
cdef const CodecFunctions *find_codec(str name) except NULL
# A bound of filters that make an item of an item, and of compressors that make no more than twice as much.
cdef int64_t items_bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil
cdef int64_t stream_bound(const Step *step, int64_t n_bytes, bint *is_exact) noexcept nogil

cdef void workspace_free(Workspace *work) noexcept nogil
# Keeps a bytes-like object, and gives the place of its bytes, until the workspace is used again: their number.
cdef int64_t hold_bytes(Workspace *work, object made, const uint8_t **data) except -1
# Lets go of it, and of an exception.
cdef void let_go(Workspace *work) noexcept with gil
# Notes an exception: a code.
cdef int raised_in(Workspace *work, object exception, Status *status) noexcept
# The exception of a codec in Python, which is the caller's from now on, or None.
cdef object workspace_exception(Workspace *work)
