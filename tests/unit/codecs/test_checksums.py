"""The `crc32c` codec: published values, and every flipped bit is found."""
import numpy as np
import pytest

from zcore.codecs import Crc32cCodec
from zcore.codecs.bytes_bytes.checksums import NumcodecsFletcher32
from zcore.codecs.chain import CodecChain
from zcore.errors import ChecksumError, CodecError
from zcore.model.metadata import CodecSpec


def test_value_is_little_endian_at_the_end():
    """V3-CRC-01"""
    assert Crc32cCodec().encode(b"123456789") == b"123456789" + 0xE3069283.to_bytes(4, "little")


def test_the_published_value_of_fletcher32():
    assert NumcodecsFletcher32().encode(b"abcde") == b"abcde" + 0x4ff029c7.to_bytes(4, "little")


@pytest.mark.parametrize("n", range(4))
def test_too_short(n):
    """V3-CRC-01"""
    with pytest.raises(CodecError) as caught:
        Crc32cCodec().decode(bytes(n), 0)
    assert (caught.value.expected, caught.value.found, caught.value.offset) == (4, n, 0)


def test_every_flipped_bit_is_found_wherever_the_checksum_stands():
    """V3-CRC-01, V3-CRC-02, D3-COD-04"""
    chunk = (np.arange(64).reshape(8, 8) // 3).astype("<u4")
    blosc = CodecSpec("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0})
    for codecs in ((CodecSpec("crc32c"),), (blosc, CodecSpec("crc32c")), (CodecSpec("crc32c"), CodecSpec("crc32c"))):
        chain = CodecChain((CodecSpec("bytes", {"endian": "little"}), *codecs), chunk.dtype, chunk.shape)
        encoded = bytes(chain.encode(chunk))
        assert chain.program.encode_bytes(chunk.tobytes()) == encoded
        for bit in range(8 * len(encoded)):
            flipped = bytearray(encoded)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(ChecksumError) as caught:
                chain.decode(flipped)
            assert caught.value.codec == "crc32c" and caught.value.expected != caught.value.found
            with pytest.raises(ChecksumError) as kernel:
                chain.program.decode_bytes(flipped, bytearray(chunk.nbytes))
            assert (kernel.value.message, kernel.value.offset) == (caught.value.message, caught.value.offset)


def test_no_configuration():
    """V3-CRC-01"""
    with pytest.raises(TypeError):
        Crc32cCodec.from_configuration({"level": 1})
