"""Compressors: bytes to fewer bytes.

`blosc` (Zarr v3, codec "blosc"; storage_spec (2016), "Array data"), `zstd` (registered extension), `gzip` (Zarr v3,
codec "gzip"), and the codecs of numcodecs from Zarr v2: `numcodecs.zlib`, `numcodecs.lz4`, and the first three with
their older parameters. An object itself contains all parameters for decoding; the configuration is for writing.

`numcodecs.bz2` and `numcodecs.lzma` use Python's standard library. Both decode in pieces and never decode more than the
maximum content of a chunk.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore import blosc, deflate
from zcore.codecs.base import Codec, Lenient, StepCodec, check_integer, check_size
from zcore.errors import CodecError
from zcore.kernel.codec.compress import COMPRESSORS, LIBDEFLATE, zstd_levels
from zcore.kernel.codec.program import Program
from zcore.text.arguments import integer_of

if TYPE_CHECKING:
    from typing import Any, Literal, Self

    from zcore.typing import Buffer, Cname

SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")


class Unlinked:
    """A segment of a chain that decodes blosc chunks of a compressor that is rarely built into c-blosc."""

    def decode(self, data: Buffer, n_bytes: int, at_most: bool, shape: tuple[int, ...] | None) -> Buffer:
        """Return the content of `data`, whose header the kernel has checked."""
        return blosc.decompress(data)


class BloscCodec(StepCodec):
    """Blosc 1.

    Parameters
    ----------
    typesize : int, optional
        Item size for shuffling; by default that of the array.
    cname : str
        ``"blosclz"``, ``"lz4"``, ``"lz4hc"``, ``"snappy"``, ``"zlib"`` or ``"zstd"``.
    clevel : int
        0 (stored) to 9.
    shuffle : str or int, optional
        ``"noshuffle"``, ``"shuffle"``, ``"bitshuffle"``, or 0, 1, 2. By default, and for -1: bit shuffle for items of
        one byte, byte shuffle for others.
    blocksize : int
        Bytes of a block. 0: chosen as `zcore.blosc.compress` does.
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
    max_content: int = 2**31 - 17     # blosc.h, BLOSC_MAX_BUFFERSIZE
    _parameters = ("typesize", "cname", "clevel", "shuffle", "blocksize")

    def __init__(self, *, typesize: int | None = None, cname: Cname = "zstd", clevel: int = 5,
                 shuffle: Literal["noshuffle", "shuffle", "bitshuffle", -1, 0, 1, 2] | None = None, blocksize: int = 0,
                 strict: bool = True) -> None:
        if not isinstance(cname, str) or cname not in COMPRESSORS:
            raise ValueError(f"cname is {cname!r:.60}, expected one of {', '.join(COMPRESSORS)}")
        number = integer_of(shuffle)
        if number is not None and -1 <= number <= 2:
            shuffle = None if number == -1 else SHUFFLES[number]
        elif shuffle is not None and (not isinstance(shuffle, str) or shuffle not in SHUFFLES):
            raise ValueError(f"shuffle is {shuffle!r:.60}, expected one of {', '.join(SHUFFLES)}, 0, 1 or 2")
        self.typesize: int | None = None if typesize is None else check_integer("typesize", typesize, 1, 2**31 - 1)
        self.cname = cname
        self.clevel: int = check_integer("clevel", clevel, 0, 9)
        self.shuffle: str | None = shuffle
        self.blocksize: int = check_integer("blocksize", blocksize, 0, self.max_content)
        self.strict = strict

    def resolve(self, itemsize: int) -> Self:
        """Return the codec for items of `itemsize` bytes, with all parameters set."""
        shuffle = self.shuffle or ("bitshuffle" if itemsize == 1 else "shuffle")
        # c-blosc records item sizes above 255 as 1.
        typesize = self.typesize or (itemsize if itemsize < 256 else 1)
        return type(self)(typesize=typesize, cname=self.cname, clevel=self.clevel, shuffle=shuffle,
                          blocksize=self.blocksize, strict=self.strict)

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return ("blosc", self.cname, self.clevel, SHUFFLES.index(self.shuffle), self.typesize, self.blocksize)

    def max_encoded(self, n_bytes: int) -> int:
        """Return the maximum encoded size of `n_bytes` bytes, as other writers have it; see `blosc_blocks.pyx`."""
        return n_bytes + n_bytes // 8 + 32      # without a program: each new array asks

    def _program(self, n_bytes=None):
        itemsize = self.typesize or 0 if self.strict else 0
        return Program((self.resolve(1).step(),), itemsize, Unlinked())


class NumcodecsBlosc(Lenient, BloscCodec):
    """Blosc 1 with numcodecs' parameters: `shuffle` is a number, and lz4 is the default."""

    name = "numcodecs.blosc"

    def __init__(self, *, cname: Cname = "lz4", clevel: int = 5,
                 shuffle: Literal["noshuffle", "shuffle", "bitshuffle", -1, 0, 1, 2] | None = 1,
                 **others: Any) -> None:
        super().__init__(cname=cname, clevel=clevel, shuffle=shuffle, **others)

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        shuffle = -1 if self.shuffle is None else SHUFFLES.index(self.shuffle)
        recorded = {"cname": self.cname, "clevel": self.clevel, "shuffle": shuffle, "blocksize": self.blocksize}
        return recorded if self.typesize is None else {**recorded, "typesize": self.typesize}


class ZstdCodec(StepCodec):
    """Zstandard: writes one frame, reads any number of frames.

    Parameters
    ----------
    level : int
        -131072 (fastest) to 22; 0 is the library's default, 3.
    checksum : bool
        Whether the frame has a checksum of its content; an existing checksum is always verified.
    """

    name = "zstd"
    _parameters = ("level", "checksum")

    def __init__(self, *, level: int = 0, checksum: bool = False) -> None:
        self.level: int = check_integer("level", level, *zstd_levels())
        if type(checksum) is not bool:
            raise ValueError(f"checksum is {checksum!r}, expected True or False")
        self.checksum = checksum

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return ("zstd", self.level, self.checksum)


class NumcodecsZstd(Lenient, ZstdCodec):
    """Zstandard with numcodecs' name. A level out of range becomes the nearest one."""

    name = "numcodecs.zstd"

    def __init__(self, *, level: int = 0, checksum: bool = False) -> None:
        level = check_integer("level", level, -2**31, 2**31 - 1)
        lowest, highest = zstd_levels()
        super().__init__(level=max(lowest, min(level, highest)), checksum=checksum)


class GzipCodec(StepCodec):
    """Deflate in the frame of RFC 1952: writes one member, without name and time; reads any number of members.

    Parameters
    ----------
    level : int
        0 (stored) to 9; -1 is zlib's default, 6.
    """

    name = "gzip"
    is_sized = True
    _parameters = ("level",)
    _wbits = deflate.GZIP_WBITS

    def __init__(self, *, level: int = 5) -> None:
        self.level: int = check_integer("level", level, -1, 9)

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return (self.name.removeprefix("numcodecs."), self.level)

    def step_for(self, n_bytes: int | None) -> tuple[Any, ...]:
        """Return the step, which may use faster libraries; see `zcore.deflate`."""
        functions = deflate.functions(n_bytes, self.level, self._wbits, bool(LIBDEFLATE))
        return (*self.step(), *functions) if any(functions) else self.step()


class NumcodecsGzip(Lenient, GzipCodec):
    """Gzip with numcodecs' name."""

    name = "numcodecs.gzip"

    def __init__(self, *, level: int = 1) -> None:
        super().__init__(level=level)


class NumcodecsZlib(NumcodecsGzip):
    """Deflate in the frame of RFC 1950; same parameters as `NumcodecsGzip`."""

    name = "numcodecs.zlib"
    _wbits = deflate.ZLIB_WBITS


class NumcodecsLz4(Lenient, StepCodec):
    """One LZ4 block behind its decoded size, 4 bytes, little-endian.

    Parameters
    ----------
    acceleration : int
        Values of 1 or less compress most; larger values are faster.
    """

    name = "numcodecs.lz4"
    max_content: int = 0x7E000000     # lz4.h, LZ4_MAX_INPUT_SIZE
    _parameters = ("acceleration",)

    def __init__(self, *, acceleration: int = 1) -> None:
        self.acceleration: int = check_integer("acceleration", acceleration, -2**31, 2**31 - 1)

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return ("lz4", self.acceleration)


# More than the strongest preset needs (65 MiB). The header of a stream may demand a dictionary of up to 4 GiB.
MAX_LZMA_MEMORY = 1 << 28
_PIECE_NBYTES = 1 << 16     # input per decoder call: after each stream the decoder copies the rest of its input


class _Archiver(Lenient, Codec):
    """A compressor of the standard library. Subclasses define `_decoder` and `encode`."""

    kind = "bytes_bytes"
    is_fixed = False
    several = True  # an object may hold several streams

    def max_encoded(self, n_bytes: int) -> int:
        """Return the maximum encoded size of `n_bytes` bytes, with room for headers of other writers."""
        return 2 * n_bytes + (1 << 16)

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> bytes:
        """Return the content: exactly `n_bytes` bytes, or at most that with `at_most`.

        Raises
        ------
        CodecError
            `data` is damaged, or its content has another size.
        """
        raw, at = memoryview(data), 0
        parts, found = [], 0
        try:
            while at < len(raw) and (self.several or at == 0) or not parts:
                decoder = self._decoder()
                while not decoder.eof:
                    piece = raw[at:at + _PIECE_NBYTES] if decoder.needs_input else b""
                    if decoder.needs_input and not piece:
                        raise self.damage(f"compressed stream of {len(raw)} bytes ends before it has given {n_bytes}",
                                          len(raw), n_bytes, len(raw))
                    at += len(piece)
                    part = decoder.decompress(piece, max(0, n_bytes - found) + 1)
                    if part or not parts:
                        parts.append(part)      # not one for each of a million empty streams
                    found += len(part)
                    check_size(self.name, found, n_bytes, at_most=True)
                at -= len(decoder.unused_data)
        except (CodecError, MemoryError):
            raise
        except Exception as exc:     # any, as `_call` has it
            raise self.damage(f"compressed stream is damaged: {exc}", at, n_bytes, found) from exc
        if at < len(raw):
            raise self.damage(f"compressed stream ends at byte {at}, the object at {len(raw)}", at, at, len(raw))
        check_size(self.name, found, n_bytes, at_most)
        return b"".join(parts)


class NumcodecsBz2(_Archiver):
    """bzip2.

    Parameters
    ----------
    level : int
        1 to 9.
    """

    name = "numcodecs.bz2"
    _parameters = ("level",)

    def __init__(self, *, level: int = 1) -> None:
        self.level: int = check_integer("level", level, 1, 9)

    def _decoder(self):
        from bz2 import BZ2Decompressor

        return BZ2Decompressor()

    def encode(self, data: Buffer) -> bytes:
        """Return `data` compressed."""
        from bz2 import compress

        return compress(data, self.level)


class NumcodecsLzma(_Archiver):
    """LZMA.

    Parameters
    ----------
    format : int
        1 xz, 2 alone, 3 raw: the constants of the `lzma` module.
    check : int
        Checksum of the xz format: a constant of that module, -1 for its default.
    preset : int, optional
        0 to 9.
    filters : list of dict, optional
        Instead of a preset; the raw format needs them.
    """

    name = "numcodecs.lzma"
    _parameters = ("format", "check", "preset", "filters")

    def __init__(self, *, format: int = 1, check: int = -1, preset: int | None = None,
                 filters: list[dict[str, Any]] | None = None) -> None:
        self.format: int = check_integer("format", format, 1, 3)
        self.check: int = check_integer("check", check, -1, 15)
        self.preset: int | None = None if preset is None else check_integer("preset", preset, 0, 2**32 - 1)
        if filters is not None and (type(filters) is not list or not all(type(f) is dict for f in filters)):
            raise ValueError(f"filters is {filters!r:.60}, expected a list of objects")
        if format == 3 and filters is None:
            raise ValueError("the raw format of lzma needs filters")
        self.filters = filters
        self.several: bool = format == 1

    def _decoder(self):
        from lzma import LZMADecompressor

        if self.format == 3:
            return LZMADecompressor(self.format, filters=self.filters)
        return LZMADecompressor(self.format, memlimit=MAX_LZMA_MEMORY)

    def encode(self, data: Buffer) -> bytes:
        """Return `data` compressed.

        Raises
        ------
        CodecError
            The parameters contradict each other.
        """
        from lzma import compress

        return self._call("lzma", "encode", compress, data, self.format, self.check, self.preset, self.filters)


CODECS: dict[str, type[Codec]] = {codec.name: codec for codec in (
    BloscCodec, ZstdCodec, GzipCodec, NumcodecsBlosc, NumcodecsZstd, NumcodecsGzip, NumcodecsZlib, NumcodecsLz4,
    NumcodecsBz2, NumcodecsLzma,
)}
