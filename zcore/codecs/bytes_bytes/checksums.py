"""Checksums behind, or before, their bytes: 4 bytes, little-endian.

`crc32c` (Zarr v3, codec "crc32c") follows them. Of numcodecs' four, `crc32` and `adler32` precede them, `crc32c` and
`fletcher32` (HDF5's) behind; `location` changes that, except for `fletcher32`. Most flipped bits in a compressed chunk
decode without an error; only a checksum finds them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.codecs.base import Codec, Lenient
from zcore.errors import ChecksumError
from zcore.kernel.codec.checksums import crc32c, fletcher32

if TYPE_CHECKING:
    from typing import Any, Literal

    from zcore.typing import Buffer

NBYTES = 4


def _crc32(data):
    from zlib import crc32

    return crc32(data)


def _adler32(data):
    from zlib import adler32

    return adler32(data)


_SUMS = {"crc32c": crc32c, "crc32": _crc32, "adler32": _adler32, "fletcher32": fletcher32}


class Crc32cCodec(Codec):
    """CRC-32C behind the bytes."""

    name = "crc32c"
    kind = "bytes_bytes"
    is_fixed: bool = True
    sum_name: str = "crc32c"
    location: str = "end"

    def max_encoded(self, n_bytes: int) -> int:
        """Return the size of `n_bytes` bytes with their checksum."""
        return n_bytes + NBYTES

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return (self.sum_name, self.location == "start")

    def encode(self, data: Buffer) -> bytes:
        """Return `data` with its checksum."""
        checksum = _SUMS[self.sum_name](data).to_bytes(NBYTES, "little")
        return checksum + bytes(data) if self.location == "start" else bytes(data) + checksum

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> memoryview:
        """Return the bytes that the checksum covers, of any number.

        Raises
        ------
        ChecksumError
            The checksum does not match.
        CodecError
            `data` is shorter than a checksum.
        """
        if len(data) < NBYTES:
            raise self.damage(f"object has {len(data)} bytes, its checksum alone needs {NBYTES}", 0, NBYTES, len(data))
        view = memoryview(data)
        if self.location == "start":
            at, stored, covered = 0, view[:NBYTES], view[NBYTES:]
        else:
            at, stored, covered = len(data) - NBYTES, view[-NBYTES:], view[:-NBYTES]
        stored, computed = int.from_bytes(stored, "little"), _SUMS[self.sum_name](covered)
        if stored != computed:
            raise ChecksumError(f"checksum 0x{stored:08x} is stored, the bytes have 0x{computed:08x}",
                                codec=self.name, direction="decode", offset=at, expected=stored, found=computed)
        return covered


class NumcodecsFletcher32(Lenient, Crc32cCodec):
    """HDF5's Fletcher-32 behind the bytes."""

    name = "numcodecs.fletcher32"
    sum_name = "fletcher32"


class NumcodecsCrc32(NumcodecsFletcher32):
    """CRC-32 before the bytes.

    Parameters
    ----------
    location : {"start", "end", None}
        None is numcodecs' position of this checksum.
    """

    name = "numcodecs.crc32"
    sum_name = "crc32"
    usual_location = "start"
    _parameters = ("location",)

    def __init__(self, *, location: Literal["start", "end"] | None = None) -> None:
        if location not in ("start", "end", None):
            raise ValueError(f"location is {location!r}, expected 'start' or 'end'")
        self.location: str = location or self.usual_location

    def configuration(self) -> dict[str, Any]:
        """Return what documents record, a dict."""
        return {} if self.location == self.usual_location else {"location": self.location}


class NumcodecsAdler32(NumcodecsCrc32):
    """Adler-32 before the bytes; same parameters as `NumcodecsCrc32`."""

    name = "numcodecs.adler32"
    sum_name = "adler32"


class NumcodecsCrc32c(NumcodecsCrc32):
    """CRC-32C behind the bytes; same parameters as `NumcodecsCrc32`."""

    name = "numcodecs.crc32c"
    sum_name = "crc32c"
    usual_location = "end"
