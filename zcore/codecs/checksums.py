"""Checksums behind the bytes they cover.

`crc32c` (Zarr v3, codec "crc32c"): the encoded bytes followed by their CRC-32C as a little-endian 32-bit number. Of
the flipped bits in a compressed chunk most decode without an error; only a checksum finds them.
"""
from zcore.errors import ChecksumError, CodecError
from zcore.kernel.crc32c import crc32c
from zcore.model.metadata import CodecSpec


class Crc32cCodec:
    """CRC-32C at the end; 4 bytes."""

    name = "crc32c"
    overhead = 4  # bytes that an object may be longer than its content

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec; it has no configuration."""
        return cls(**configuration)

    def spec(self):
        """Return the `CodecSpec` that documents record."""
        return CodecSpec(self.name, {})

    def step(self):
        """Return the step of a `Program`."""
        return ("crc32c",)

    def encode(self, data):
        """Return `data` with its checksum."""
        return bytes(data) + crc32c(data).to_bytes(4, "little")

    def decode(self, data, n_bytes):
        """Return the bytes before the checksum.

        Raises
        ------
        ChecksumError
            They have another one.
        CodecError
            `data` is shorter than a checksum.
        """
        if len(data) < 4:
            raise CodecError(f"object has {len(data)} bytes, its checksum alone needs 4", codec=self.name,
                             direction="decode", offset=0, expected=4, found=len(data))
        covered = memoryview(data)[:-4]
        stored, computed = int.from_bytes(data[-4:], "little"), crc32c(covered)
        if stored != computed:
            raise ChecksumError(f"checksum 0x{stored:08x} is stored, the bytes have 0x{computed:08x}",
                                codec=self.name, direction="decode", offset=len(covered), expected=stored,
                                found=computed)
        return covered

    def __repr__(self):
        return "Crc32cCodec()"
