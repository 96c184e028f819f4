"""Chains of codecs: Zarr v3 core, "Chunk encoding", in Python and lowered to C."""

import numpy as np
import pytest

from zcore.codecs import BytesCodec
from zcore.codecs.chain import CodecChain
from zcore.errors import CodecError, UnknownCodecError
from zcore.model.metadata import CodecSpec

BYTES = CodecSpec("bytes", {"endian": "little"})
BLOSC = CodecSpec("blosc", {"cname": "zlib", "clevel": 4, "shuffle": "shuffle", "typesize": 2, "blocksize": 0})
CRC = CodecSpec("crc32c")


@pytest.mark.parametrize("specs", [(BYTES,), (BYTES, BLOSC), (BYTES, CRC), (BYTES, BLOSC, CRC), (BYTES, CRC, CRC)])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (1, 2, 3, 4)])
def test_kernel_and_python_agree(specs, shape):
    chunk = (np.arange(np.prod(shape, dtype=int), dtype="<i2") // 3).reshape(shape)
    chain = CodecChain(specs, chunk.dtype, shape)
    by_python, by_kernel = bytes(chain.encode(chunk)), chain.program.encode_bytes(chunk.tobytes())
    assert by_python == by_kernel
    assert len(by_kernel) <= chain.max_encoded
    out = bytearray(chunk.nbytes)
    chain.program.decode_bytes(by_python, out)
    decoded = chain.decode(by_kernel)
    assert out == chunk.tobytes() == decoded.tobytes()
    assert (decoded.shape, decoded.dtype) == (chunk.shape, chunk.dtype)


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda a: a[::-1, ::-1].copy()[::-1, ::-1], lambda a: np.repeat(a, 2, 1)[:, ::2]]
)
def test_chunks_of_any_layout_are_encoded_in_c_order(layout):
    chunk = np.arange(12, dtype="<i2").reshape(3, 4)
    chain = CodecChain((BYTES,), chunk.dtype, chunk.shape)
    assert chain.encode(layout(chunk)) == chunk.tobytes()


def test_big_endian_stays_big_endian():
    """ZM-CHK-10"""
    chain = CodecChain((CodecSpec("bytes", {"endian": "big"}),), np.dtype(">i2"), (2,))
    assert chain.encode(np.array([1, 258], ">i2")) == b"\0\1\1\2"
    assert chain.decode(b"\0\1\1\2").tolist() == [1, 258]


@pytest.mark.parametrize("n", [0, 1, 11, 13, 1000])
def test_a_chunk_of_another_size(n):
    chain = CodecChain((BYTES,), np.dtype("<i2"), (2, 3))
    with pytest.raises(CodecError) as caught:
        chain.decode(bytes(n))
    assert (caught.value.expected, caught.value.found, caught.value.codec) == (12, n, None)
    with pytest.raises(CodecError) as kernel:
        chain.program.decode_bytes(bytes(n), bytearray(12))
    assert kernel.value.message == caught.value.message


def test_another_shape():
    """Of a chunk that was cut off at the border."""
    chain = CodecChain((BYTES, BLOSC), np.dtype("<i2"), (4, 4))
    cut = CodecChain((BYTES, BLOSC), np.dtype("<i2"), (2, 3))
    chunk = np.arange(6, dtype="<i2").reshape(2, 3)
    assert chain.decode(cut.encode(chunk), (2, 3)).tolist() == chunk.tolist()


def test_unknown_codec():
    with pytest.raises(UnknownCodecError, match="'lzw'") as caught:
        CodecChain((BYTES, CodecSpec("lzw")), np.dtype("i1"), (1,))
    assert caught.value.codec == "lzw"


@pytest.mark.parametrize("endian", ["little", "big", None])
def test_bytes_codec(endian):
    codec = BytesCodec(endian=endian)
    assert BytesCodec.from_configuration(codec.spec().configuration).endian == endian
    assert repr(codec) == f"BytesCodec(endian={endian!r})"


@pytest.mark.parametrize("endian", ["native", "<", 1])
def test_no_byte_order(endian):
    with pytest.raises(ValueError, match="endian"):
        BytesCodec(endian=endian)
