"""One Blosc 1 chunk, seen from Python.

>>> from zcore import blosc
>>> chunk = blosc.compress(bytes(1000), cname="lz4", clevel=5, shuffle=1, typesize=4)
>>> header = blosc.header(chunk)
>>> header.nbytes, header.typesize, header.cbytes == len(chunk)
(1000, 4, True)
>>> blosc.decompress(chunk) == bytes(1000)
True
"""
from zcore.buffers import flat_view
from zcore.kernel.blosc_header import parse
from zcore.kernel.compress import COMPRESSORS, blosc_compress, blosc_decompress, can_compress

__all__ = ["COMPRESSORS", "can_compress", "compress", "decompress", "header"]


def __dir__():
    """Return the public names, for completion at a prompt."""
    return __all__


def compress(content, *, cname="lz4", clevel=5, shuffle=1, typesize=1, blocksize=0, n_threads=1):
    """Return the bytes of `content` as one chunk, a `bytes`.

    Parameters
    ----------
    content : bytes-like
        Any C-contiguous buffer, a NumPy array among them; at most 2**31 - 17 bytes.
    cname : str
        One of `COMPRESSORS`.
    clevel : int
        0 (stored as is) to 9.
    shuffle : int
        0, 1 or 2 for no, byte or bit shuffle.
    typesize : int
        Bytes of an item, which shuffling goes by; above 255 it is stored as 1.
    blocksize : int
        Bytes of a block, 0 lets Blosc choose.
    n_threads : int
        Threads that c-blosc may use inside the chunk.

    Raises
    ------
    TypeError
        `content` is not bytes-like, or not C-contiguous.
    ValueError
        A parameter is out of range, or `content` is too long.
    UnsupportedError
        The linked c-blosc lacks the compressor.

    >>> import numpy as np
    >>> header(compress(np.arange(10, dtype="i4"), typesize=4)).nbytes
    40
    """
    return blosc_compress(flat_view(content, "content"), cname=cname, clevel=clevel, shuffle=shuffle,
                          typesize=typesize, blocksize=blocksize, n_threads=n_threads)


def decompress(chunk, out=None, *, itemsize=0, n_threads=1):
    """Return the content of one chunk.

    Parameters
    ----------
    chunk : bytes-like
        Exactly one chunk.
    out : writable bytes-like, optional
        Where the content goes, any C-contiguous buffer of as many bytes. A new `bytearray` otherwise.
    itemsize : int
        If positive, the header's item size must be this or 1.
    n_threads : int
        Threads that c-blosc may use inside the chunk.

    Raises
    ------
    TypeError
        `chunk` or `out` is not bytes-like, or not C-contiguous, or `out` cannot be written to.
    CodecError
        The header, the block table or the payload is damaged, or the content is not as long as `out`.
    UnsupportedError
        A chunk of Blosc 2, or of a compressor that the linked c-blosc lacks.
    """
    chunk = flat_view(chunk, "chunk")
    if out is None:
        return blosc_decompress(chunk, itemsize=itemsize, n_threads=n_threads)
    blosc_decompress(chunk, flat_view(out, "out", writable=True), itemsize=itemsize, n_threads=n_threads)
    return out


def header(chunk):
    """Return the header of a chunk, a `BloscHeaderInfo`, as it stands there, without judging it.

    Parameters
    ----------
    chunk : bytes-like
        At least the 16 bytes of the header.

    Raises
    ------
    TypeError
        `chunk` is not bytes-like, or not C-contiguous.
    CodecError
        It is shorter than a header.
    """
    return parse(flat_view(chunk, "chunk"))
