# cython: language_level=3, cdivision=True, freethreading_compatible=True
"""Codes and numbers of a failed kernel call. Only this module turns them into exceptions.

Compiled because nogil code sets the values; the messages are made here, with the GIL, after the loop has ended.
"""
import errno as _errno
import os

from zcore import errors

from libc.string cimport memset

# Code -> (exception, message). `{e}` and `{f}` are the expected and the found number.
_SENTENCES = {
    BLOSC_SHORT: (errors.CodecError, "blosc chunk has {f} bytes, its header alone needs {e}"),
    BLOSC_VERSION: (errors.CodecError, "unsupported blosc chunk format version {f}, expected {e}"),
    BLOSC_FLAGS: (errors.CodecError, "blosc header sets a reserved flag (flags 0x{f:02x})"),
    BLOSC2: (errors.UnsupportedError, "chunk is of Blosc 2 (version {f}), zcore reads Blosc 1"),
    BLOSC_CBYTES: (errors.CodecError, "blosc header says {f} bytes stored, the object has {e}"),
    BLOSC_NBYTES: (errors.CodecError, "blosc header says {f} bytes decoded, chunk needs {e}"),
    BLOSC_TYPESIZE: (errors.CodecError, "blosc header says item size {f}, expected {e} or 1"),
    BLOSC_BLOCKSIZE: (errors.CodecError, "blosc header says block size {f}, expected 1 to {e}"),
    BLOSC_COMPRESSOR: (errors.CodecError, "blosc header names undefined compressor format {f}"),
    BLOSC_VERSIONLZ: (errors.CodecError, "blosc header says compressor format version {f}, expected {e}"),
    BLOSC_MEMCPY: (errors.CodecError, "blosc chunk stored as is has {f} bytes, expected {e}"),
    BLOSC_TABLE: (errors.CodecError, "blosc block table ends at byte {e}, the chunk at {f}"),
    BLOSC_BSTART: (errors.CodecError, "blosc block starts at byte {f}, expected between the block table and byte {e}"),
    BLOSC_STREAM: (errors.CodecError, "blosc stream says {f} bytes, expected 1 to {e}"),
    BLOSC_DECODE: (errors.CodecError, "blosc payload is damaged: expected {e} bytes, the decoder gave {f}"),
    BLOSC_SNAPPY: (errors.UnsupportedError, "chunk is compressed by snappy, which the linked c-blosc lacks"),
    BLOSC_LACKS: (errors.UnsupportedError, "the linked c-blosc has no compressor snappy"),
    BLOSC_ENCODE: (errors.CodecError, "blosc could not compress {e} bytes, it takes at most 2147483631 (result {f})"),
    CHUNK_SIZE: (errors.CodecError, "chunk decodes to {f} bytes, expected {e}"),
    CHUNK_LONG: (errors.CodecError, "stored object has {f} bytes, its chunk encodes to at most {e}"),
    CHECKSUM: (errors.ChecksumError, "checksum 0x{e:08x} is stored, the bytes have 0x{f:08x}"),
    CHECKSUM_SHORT: (errors.CodecError, "object has {f} bytes, its checksum alone needs {e}"),
    MISSING: (errors.ChunkNotFoundError, "object is absent and the array was opened with missing='raise'"),
    STREAM_DAMAGED: (errors.CodecError, "compressed stream is damaged: expected {e} bytes, the decoder gave {f}"),
    STREAM_SHORT: (errors.CodecError, "compressed stream of {f} bytes ends before it has given {e}"),
    STREAM_LONG: (errors.CodecError, "content has at least {f} bytes, expected {e}"),
    STREAM_TRAILING: (errors.CodecError, "compressed stream ends at byte {e}, the object at {f}"),
    STREAM_ENCODE: (errors.CodecError, "the compressor could not encode {e} bytes (result {f})"),
    ITEMS: (errors.CodecError, "{f} bytes are no whole number of items of {e} bytes"),
    SHARD_SHORT: (errors.ShardIndexError, "shard has {f} bytes, its index alone needs {e}"),
    SHARD_MARK: (errors.ShardIndexError,
                 "one half of the index entry marks an empty chunk, the other half is {f}"),
    SHARD_END: (errors.ShardIndexError, "index entry ends at byte {f}, expected at most {e}"),
    SHARD_START: (errors.ShardIndexError, "index entry starts at byte {f}, inside the index, which ends at byte {e}"),
    SHARD_CUT: (errors.TruncatedError, "shard ended at byte {f} while it was read, expected {e}"),
    FILE_CUT: (errors.TruncatedError, "the file ended at byte {f} while it was read, expected {e}"),
    WANTED: (errors.TruncatedError, "{e} bytes from byte {o} on were asked for and did not come"),
    NO_MEMORY: (errors.ChunkMemoryError, "no memory for {e} bytes"),
}
# Codes that stop a plan. The caller that runs the plan handles them; otherwise they become an exception.
_STOPS = {
    STALE: "the metadata document was deleted or replaced meanwhile",
    INTERRUPTED: "a signal has stopped the call",
    STOPPED: "another thread has stopped the call",
}
# What `compress` has found instead of a result of zlib: a stream of gzip for the codec zlib, or the other way round.
cdef enum:
    OTHER_FRAME = -100
_OPERATIONS = {
    IO_OPEN: "open", IO_READ: "read", IO_WRITE: "write", IO_RENAME: "rename", IO_UNLINK: "remove", IO_MKDIR: "mkdir",
}


cdef void status_clear(Status *status) noexcept nogil:
    memset(status, 0, sizeof(Status))
    status.step = -1
    status.inner = INNER_NONE
    status.task = -1


cdef int fail(Status *status, int code, int64_t offset, int64_t expected, int64_t found) noexcept nogil:
    """Record a failure of the data and return its code."""
    status.code = code
    status.offset = offset
    status.expected = expected
    status.found = found
    return code


cdef int fail_errno(Status *status, int code, int sys_errno) noexcept nogil:
    """Record a failure of a system call and return its code."""
    status.code = code
    status.sys_errno = sys_errno
    return code


cdef object make_error(const Status *status, str key, object chunk_coords, str codec, str direction,
                       tuple inner_coords):
    """Return the exception of a failure. `key`, `codec` and `direction` may be None, coordinates None or a tuple.

    `inner_coords` are those of the chunk in its shard; for nested shards, from the outermost to the innermost.
    """
    where = _where(status, key, inner_coords)
    number = status.sys_errno
    if status.code == LOCK_FAILED:
        # Without the permission to write to the file, another kind of lock is of no help.
        advice = "lock='file' makes lock files, lock=None writes without locks"
        if number in (_errno.EACCES, _errno.EPERM, _errno.EROFS):
            advice = "you may not write to it; lock=None needs only the permission to write to its directory"
        return errors.LockError(
            f"{where}cannot lock: {os.strerror(number)} ({_errno.errorcode.get(number, number)}); {advice}",
            key=key, errno=number)
    if status.code == LOCK_OWN:
        return errors.LockError(
            f"{where}this thread holds the lock already, in a call that has not ended: a signal handler, or other code "
            "that runs inside that call, would wait for ever", key=key, errno=_errno.EDEADLK)
    if status.code in _OPERATIONS:
        return errors.StoreError(
            f"{where}cannot {_OPERATIONS[status.code]}: {os.strerror(number)} ({_errno.errorcode.get(number, number)})",
            key=key, errno=number)
    if status.code in _STOPS:
        return errors.StoreError(where + _STOPS[status.code], key=key, errno=number or None)
    cls, sentence = _SENTENCES[status.code]
    if status.code == STREAM_DAMAGED and status.found == OTHER_FRAME:
        sentence = "the stream is " + ("zlib, expected gzip" if "gzip" in str(codec) else "gzip, expected zlib")
    message = where + sentence.format(e=status.expected, f=status.found, o=status.offset)
    if cls is errors.UnsupportedError:
        return cls(message, feature="blosc2" if status.code == BLOSC2 else "snappy")
    if status.code == MISSING:
        return cls(message, key=key, chunk_coords=chunk_coords, direction=direction)
    return cls(message, key=key, chunk_coords=chunk_coords, offset=status.offset, codec=codec, direction=direction,
               inner_coords=inner_coords[0] if inner_coords else None, expected=status.expected, found=status.found)


cdef str _where(const Status *status, str key, tuple inner_coords):
    where = f"{key}: " if key else ""
    for coords in inner_coords:
        where += f"inner chunk {coords}: "
    return where + "shard index: " if status.inner == INNER_INDEX else where


cdef object locate_error(object error, const Status *status, str key, object chunk_coords, str direction,
                         tuple inner_coords):
    where = _where(status, key, inner_coords)
    if isinstance(error, MemoryError):
        located = errors.ChunkMemoryError(f"{where}no memory for the chunk", key=key, chunk_coords=chunk_coords,
                                          direction=direction)
    elif isinstance(error, (errors.ChunkError, errors.UnsupportedError)):
        fields = {name: getattr(error, name) for name in error.fields}
        if isinstance(error, errors.ChunkError):
            fields.update(key=key, chunk_coords=chunk_coords)
            if inner_coords:
                fields["inner_coords"] = inner_coords[0]
            if fields["offset"] is not None and fields["direction"] != "encode":
                fields["offset"] += status.offset
        located = type(error)(where + error.message, **fields)
    else:
        return error
    located.__cause__ = error
    return located


cdef int check(const Status *status) except -1:
    """Raise the failure that `status` records, if there is one."""
    if status.code != OK:
        raise make_error(status, None, None, None, None, ())
    return 0
