"""One Blosc 1 chunk, seen from Python.

>>> from zcore import blosc
>>> chunk = blosc.compress(bytes(1000), cname="lz4", clevel=5, shuffle=1, typesize=4)
>>> header = blosc.header(chunk)
>>> header.nbytes, header.typesize, header.cbytes == len(chunk)
(1000, 4, True)
>>> blosc.decompress(chunk) == bytes(1000)
True
"""
from zcore.kernel.blosc_header import parse as header
from zcore.kernel.compress import COMPRESSORS, can_compress
from zcore.kernel.compress import blosc_compress as compress
from zcore.kernel.compress import blosc_decompress as decompress

__all__ = ["COMPRESSORS", "can_compress", "compress", "decompress", "header"]
