"""How the kernel reports a failure: a code and three numbers, no Python object.

A nogil function returns 0 or a `Code` and has filled the `Status` it was given. The loop above it stops, and the
exception is made once, outside, with the GIL (`make_error`).
"""
from libc.stdint cimport int64_t


cdef enum Code:
    OK = 0
    # blosc chunks (blosc_header.pyx)
    BLOSC_SHORT = 1            # fewer bytes than a header                    expected 16, found length
    BLOSC_VERSION = 2          # chunk format version                         expected 2, found version
    BLOSC_FLAGS = 3            # reserved flag bit                            found flags
    BLOSC2 = 4                 # a chunk of Blosc 2 (version 3-5, or extended header)      unsupported
    BLOSC_CBYTES = 5           # stored size                                  expected length, found cbytes
    BLOSC_NBYTES = 6           # decoded size                                 expected by the metadata, found nbytes
    BLOSC_TYPESIZE = 7         # item size                                    expected item size, found typesize
    BLOSC_BLOCKSIZE = 8        # block size out of range                      expected nbytes (limit), found blocksize
    BLOSC_COMPRESSOR = 9       # undefined compressor format                  found format
    BLOSC_VERSIONLZ = 10       # version of the inner format                  expected 1, found versionlz
    BLOSC_MEMCPY = 11          # stored chunk of a wrong size                 expected nbytes + 16, found cbytes
    BLOSC_TABLE = 12           # block table does not fit                     expected its end, found cbytes
    BLOSC_BSTART = 13          # a block starts outside the chunk             expected limit, found bstart
    BLOSC_STREAM = 14          # a stream of a block has a wrong size         expected limit, found csize
    BLOSC_DECODE = 15          # the payload does not decode                  expected nbytes, found decoder's result
    BLOSC_SNAPPY = 16          # needs a snappy library                       deferred to Python
    BLOSC_ENCODE = 17          # the compressor failed                        found its result
    BLOSC_LACKS = 18           # the compressor is not linked
    # chunks in general
    CHUNK_SIZE = 20            # decoded size is not the chunk's              expected, found
    CHUNK_LONG = 21            # stored object longer than any encoding of the chunk       expected limit, found size
    CHECKSUM = 22              # stored and computed sums differ              expected stored, found computed
    CHECKSUM_SHORT = 23        # shorter than the checksum                    expected 4, found length
    MISSING = 24               # the object is absent, and the handle raises for missing objects
    # compressed streams, checksums and filters (compress.pyx, program.pyx)
    STREAM_DAMAGED = 60        # the stream does not decode                   expected size, found decoder's result
    STREAM_SHORT = 61          # the object ends before the stream            expected size, found length of the object
    STREAM_LONG = 62           # more content than there may be               expected size, found size (at least)
    STREAM_TRAILING = 63       # bytes behind the stream                      expected its end, found the object's
    STREAM_ENCODE = 64         # the compressor failed                        expected size, found its result
    ITEMS = 65                 # no whole number of items                     expected item size, found length
    # shards (shard.pyx)
    SHARD_SHORT = 70           # fewer bytes than the index                   expected size of the index, found size
    SHARD_MARK = 71            # one word of an entry says empty              found the other word
    SHARD_END = 72             # a chunk ends behind the data                 expected limit, found its end
    SHARD_START = 73           # a chunk starts in the index                  expected the index's end, found its start
    SHARD_CUT = 74             # the object ended while it was read            expected the end of the read, found
    # uncompressed elements in a file (`LayoutReadPlan`)
    FILE_CUT = 75              # the file ended while it was read              expected the end of the read, found
    # the machine
    NO_MEMORY = 30             # malloc failed                                expected bytes
    IO_OPEN = 31               # open failed                                  errno in sys_errno
    IO_READ = 32
    IO_WRITE = 33
    IO_RENAME = 34
    IO_UNLINK = 35
    IO_MKDIR = 36
    LOCK_FAILED = 37           # the file system or the permissions refuse locks
    LOCK_OWN = 38              # the thread would wait for itself
    RAISED = 80                # a codec in Python has raised: the exception is in the Workspace
    # control flow of a plan, never an error of the data
    STALE = 50                 # the metadata document is not the one the plan was made from
    INTERRUPTED = 51           # a signal handler raised
    STOPPED = 52               # another worker stopped the plan
    WANTED = 53                # bytes that were not passed yet                expected their number


cdef enum:
    INNER_NONE = -1            # no inner chunk failed
    INNER_INDEX = -2           # the index of the shard failed
    MAX_SHARD_LEVELS = 3       # maximum levels of nested shards

cdef struct Status:
    int code                   # a Code
    int sys_errno
    int step                   # number of the failed step in the program, -1: no step
    bint is_encode             # the step failed while encoding: `offset` is a byte of its input
    int64_t inner              # position of the inner chunk in its shard, in C order; INNER_NONE, INNER_INDEX
    int n_outer                # number of shards around that shard: 0 if it is the object,
    int64_t outer[2]           # else positions of the shards that are chunks: outermost first, its own last
    int64_t task               # task of the plan
    int64_t offset             # byte of the stored object
    int64_t expected
    int64_t found


cdef void status_clear(Status *status) noexcept nogil
cdef int fail(Status *status, int code, int64_t offset, int64_t expected, int64_t found) noexcept nogil
cdef int fail_errno(Status *status, int code, int sys_errno) noexcept nogil
cdef object make_error(const Status *status, str key, object chunk_coords, str codec, str direction,
                       tuple inner_coords)
# Adds the place of the failure to an exception of a codec in Python.
cdef object locate_error(object error, const Status *status, str key, object chunk_coords, str direction,
                         tuple inner_coords)
cdef int check(const Status *status) except -1
