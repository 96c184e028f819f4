"""Checksums behind, or before, their bytes: 4 bytes, little-endian.

`crc32c` (Zarr v3, codec "crc32c") follows them. Of numcodecs' four, `crc32` and `adler32` precede them, `crc32c` and
`fletcher32` (HDF5's) behind; `location` changes that, except for `fletcher32`. Most flipped bits in a compressed chunk
decode without an error; only a checksum finds them.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.codecs.base import Lenient, StepCodec

if TYPE_CHECKING:
    from typing import Any, Literal

NBYTES = 4


class Crc32cCodec(StepCodec):
    """CRC-32C behind the bytes."""

    name = "crc32c"
    is_fixed: bool = True
    sum_name: str = "crc32c"
    location: str = "end"

    def max_encoded(self, n_bytes: int) -> int:
        """Return the encoded size of `n_bytes` bytes."""
        return n_bytes + NBYTES

    def step(self, dtype: Any = None) -> tuple[Any, ...]:
        """Return the step of a `Program`."""
        return (self.sum_name, self.location == "start")


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


CODECS: dict[str, type[StepCodec]] = {codec.name: codec for codec in (
    Crc32cCodec, NumcodecsFletcher32, NumcodecsCrc32, NumcodecsAdler32, NumcodecsCrc32c,
)}
