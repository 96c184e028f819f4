"""`numcodecs.bz2` and `numcodecs.lzma`, by Python's standard library.

Both decode by pieces, so what a stream holds beyond the content that there may be is never decoded.
"""
from zcore.codecs.base import Codec, Lenient, check_integer, check_size
from zcore.errors import CodecError

# Above what the strongest preset takes (65 MiB): a dictionary of up to 4 GiB is what the header of a stream asks for.
MAX_LZMA_MEMORY = 1 << 28
_PIECE_NBYTES = 1 << 16     # that a decoder is given: behind each stream it copies what is left of them


class _Archiver(Lenient, Codec):
    """A compressor of the standard library; subclasses give `_decoder` and `encode`."""

    kind = "bytes_bytes"
    is_fixed = False
    several = True  # streams may follow each other

    def max_encoded(self, n_bytes):
        """Return the most bytes that `n_bytes` bytes of content take, with headers of others allowed for."""
        return 2 * n_bytes + (1 << 16)

    def step(self):
        """Return None: there is no C form."""
        return None

    def decode(self, data, n_bytes, at_most=False):
        """Return the content, `n_bytes` bytes, or at most so many.

        Raises
        ------
        CodecError
            `data` are damaged, or have another size of content.
        """
        raw, at = memoryview(data), 0
        parts, found = [], 0
        try:
            while at < len(raw) and (self.several or at == 0) or not parts:
                decoder = self._decoder()
                while not decoder.eof:
                    piece = raw[at:at + _PIECE_NBYTES] if decoder.needs_input else b""
                    if decoder.needs_input and not piece:
                        raise CodecError(f"compressed stream of {len(raw)} bytes ends before it has given {n_bytes}",
                                         codec=self.name, direction="decode", offset=len(raw), expected=n_bytes,
                                         found=len(raw))
                    at += len(piece)
                    parts.append(decoder.decompress(piece, max(0, n_bytes - found) + 1))
                    found += len(parts[-1])
                    check_size(self.name, found, n_bytes, at_most=True)
                at -= len(decoder.unused_data)
        except (OSError, EOFError, ValueError, *self._errors()) as exc:
            if isinstance(exc, CodecError):
                raise
            raise CodecError(f"compressed stream is damaged: {exc}", codec=self.name, direction="decode", offset=at,
                             expected=n_bytes, found=found) from exc
        if at < len(raw):
            raise CodecError(f"compressed stream ends at byte {at}, the object at {len(raw)}", codec=self.name,
                             direction="decode", offset=at, expected=at, found=len(raw))
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

    def __init__(self, *, level=1):
        check_integer("level", level, 1, 9)
        self.level = level

    def _decoder(self):
        from bz2 import BZ2Decompressor

        return BZ2Decompressor()

    def _errors(self):
        return ()

    def encode(self, data):
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
        Of the xz format: a constant of that module, -1 its default.
    preset : int, optional
        0 to 9.
    filters : list of dict, optional
        Instead of a preset; needed by the raw format.
    """

    name = "numcodecs.lzma"
    _parameters = ("format", "check", "preset", "filters")

    def __init__(self, *, format=1, check=-1, preset=None, filters=None):
        check_integer("format", format, 1, 3)
        check_integer("check", check, -1, 15)
        if preset is not None:
            check_integer("preset", preset, 0, 2**32 - 1)
        if filters is not None and (type(filters) is not list or not all(type(f) is dict for f in filters)):
            raise ValueError(f"filters is {filters!r:.60}, expected a list of objects")
        if format == 3 and filters is None:
            raise ValueError("the raw format of lzma needs filters")
        self.format = format
        self.check = check
        self.preset = preset
        self.filters = filters
        self.several = format == 1

    def _decoder(self):
        from lzma import LZMADecompressor

        if self.format == 3:
            return LZMADecompressor(self.format, filters=self.filters)
        return LZMADecompressor(self.format, memlimit=MAX_LZMA_MEMORY)

    def _errors(self):
        from lzma import LZMAError

        return (LZMAError, TypeError, KeyError, OverflowError)

    def encode(self, data):
        """Return `data` compressed.

        Raises
        ------
        CodecError
            The parameters do not fit together.
        """
        from lzma import compress

        try:
            return compress(data, self.format, self.check, self.preset, self.filters)
        except (ValueError, *self._errors()) as exc:
            raise CodecError(f"lzma cannot encode: {exc}", codec=self.name, direction="encode") from exc


CODECS = {codec.name: codec for codec in (NumcodecsBz2, NumcodecsLzma)}
