"""Compressors: bytes to fewer bytes.

`blosc` (Zarr v3, codec "blosc"; storage_spec (2016), "Array data"). What a chunk is compressed with stands in its own
header, which decides when it is decoded; the configuration is for writing.
"""
from zcore.codecs.snappy import decompress_snappy
from zcore.kernel.blosc_header import validate
from zcore.kernel.compress import COMPRESSORS, blosc_compress, blosc_decompress, can_compress
from zcore.model.metadata import CodecSpec

SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


class BloscCodec:
    """Blosc 1.

    Parameters
    ----------
    typesize : int, optional
        Item size that shuffling goes by; that of the array by default.
    cname : str
        ``"blosclz"``, ``"lz4"``, ``"lz4hc"``, ``"snappy"``, ``"zlib"`` or ``"zstd"``.
    clevel : int
        0 (stored) to 9.
    shuffle : str or int, optional
        ``"noshuffle"``, ``"shuffle"``, ``"bitshuffle"``, or 0, 1, 2; by default (and for -1) bits for items of one
        byte and bytes for others.
    blocksize : int
        Bytes of a block, 0 lets Blosc choose.
    strict : bool
        Refuse chunks whose header names an item size other than that of the array or 1.

    Raises
    ------
    ValueError
        A parameter is out of its range.

    >>> BloscCodec(cname="lz4", clevel=3, shuffle=1).resolve(4)
    BloscCodec(typesize=4, cname='lz4', clevel=3, shuffle='shuffle', blocksize=0)
    """

    name = "blosc"
    overhead = 16  # bytes that an object may be longer than its content: the header, where nothing could be compressed

    def __init__(self, *, typesize=None, cname="zstd", clevel=5, shuffle=None, blocksize=0, strict=True):
        if cname not in COMPRESSORS:
            raise ValueError(f"cname is {cname!r}, expected one of {', '.join(COMPRESSORS)}")
        if type(clevel) is not int or not 0 <= clevel <= 9:
            raise ValueError(f"clevel is {clevel!r}, expected 0 to 9")
        if shuffle in (0, 1, 2) and type(shuffle) is int:
            shuffle = SHUFFLES[shuffle]
        elif shuffle == -1:
            shuffle = None
        elif shuffle is not None and shuffle not in SHUFFLES:
            raise ValueError(f"shuffle is {shuffle!r}, expected one of {', '.join(SHUFFLES)}, 0, 1 or 2")
        if typesize is not None and (type(typesize) is not int or typesize < 1):
            raise ValueError(f"typesize is {typesize!r}, expected an integer of at least 1")
        if type(blocksize) is not int or not 0 <= blocksize < 2**31 - 16:
            raise ValueError(f"blocksize is {blocksize!r}, expected an integer from 0 to 2**31 - 17")
        self.typesize = typesize
        self.cname = cname
        self.clevel = clevel
        self.shuffle = shuffle
        self.blocksize = blocksize
        self.strict = strict

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration."""
        return cls(**configuration)

    def resolve(self, itemsize):
        """Return the codec for items of `itemsize` bytes, nothing left to choose."""
        shuffle = self.shuffle or ("bitshuffle" if itemsize == 1 else "shuffle")
        # c-blosc records item sizes above 255 as 1.
        typesize = self.typesize or (itemsize if itemsize < 256 else 1)
        return BloscCodec(typesize=typesize, cname=self.cname, clevel=self.clevel, shuffle=shuffle,
                          blocksize=self.blocksize, strict=self.strict)

    def spec(self):
        """Return the `CodecSpec` that documents record."""
        return CodecSpec(self.name, {"typesize": self.typesize, "cname": self.cname, "clevel": self.clevel,
                                     "shuffle": self.shuffle, "blocksize": self.blocksize})

    def step(self):
        """Return the step of a `Program`."""
        return ("blosc", self.cname, self.clevel, SHUFFLES.index(self.shuffle), self.typesize, self.blocksize)

    def encode(self, data):
        """Return `data` as one chunk.

        Raises
        ------
        UnsupportedError
            The linked c-blosc lacks the compressor.
        """
        return blosc_compress(data, cname=self.cname, clevel=self.clevel, shuffle=SHUFFLES.index(self.shuffle),
                              typesize=self.typesize, blocksize=self.blocksize)

    def decode(self, data, n_bytes):
        """Return the `n_bytes` bytes of content of one chunk.

        Raises
        ------
        CodecError
            The chunk is damaged, or has another size.
        """
        header = validate(data, n_bytes, self.typesize if self.strict else None)
        if header.compressor == "snappy" and not header.memcpyed and not can_compress("snappy"):
            return decompress_snappy(data, header)
        return blosc_decompress(data)

    def __repr__(self):
        return (f"BloscCodec(typesize={self.typesize}, cname={self.cname!r}, clevel={self.clevel}, "
                f"shuffle={self.shuffle!r}, blocksize={self.blocksize})")
