"""What every codec from bytes to bytes does; a new one is a subclass of `CodecConformance` that says how it is made."""
import pickle

import numpy as np
import pytest

from zcore.codecs import BloscCodec, Crc32cCodec
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import ChunkError
from zcore.kernel.program import Program
from zcore.model.metadata import CodecSpec

SIZES = (0, 1, 4, 16, 100, 4096, 70_000)


def content(n):
    return ((np.arange(n) // 11) ^ (np.arange(n) % 5)).astype("u1").tobytes()


class CodecConformance:
    """Subclasses define `make()`, which returns a codec with nothing left to choose; their names begin with Test."""

    def make(self):
        raise NotImplementedError

    def damage(self, encoded):
        """Return objects that must be refused; by default every shorter one and a longer one."""
        return [encoded[:n] for n in range(len(encoded))] + [encoded + b"\0"]

    @pytest.mark.parametrize("n", SIZES)
    def test_decode_is_the_inverse_of_encode(self, n):
        codec = self.make()
        for buffer in (content(n), bytearray(content(n)), memoryview(content(n))):
            encoded = codec.encode(buffer)
            assert len(encoded) <= codec.max_encoded(n)
            assert bytes(codec.decode(encoded, n)) == content(n)
            assert bytes(codec.decode(bytearray(encoded), n)) == content(n)

    def test_damage_is_an_error_with_its_place(self):
        codec = self.make()
        for damaged in self.damage(bytes(codec.encode(content(100)))):
            with pytest.raises(ChunkError) as caught:
                codec.decode(damaged, 100)
            error = caught.value
            assert (error.codec, error.direction) == (codec.name, "decode")
            assert None not in (error.offset, error.expected, error.found)
            assert str(error.found) in error.message or f"{error.found:08x}" in error.message

    @pytest.mark.parametrize("n", SIZES)
    def test_the_kernel_does_the_same(self, n):
        codec = self.make()
        program = Program([codec.step()])
        out = bytearray(n)
        program.decode_bytes(codec.encode(content(n)), out)
        assert out == content(n)
        assert bytes(codec.decode(program.encode_bytes(content(n)), n)) == content(n)

    def test_the_kernel_complains_the_same(self):
        codec = self.make()
        program = Program([codec.step()])
        for damaged in self.damage(bytes(codec.encode(content(100)))):
            with pytest.raises(ChunkError) as theirs:
                codec.decode(damaged, 100)
            with pytest.raises(type(theirs.value)) as caught:
                program.decode_bytes(damaged, bytearray(100))
            for name in ("message", "offset", "expected", "found"):
                assert getattr(caught.value, name) == getattr(theirs.value, name)

    def test_its_document_makes_it_again(self):
        codec = self.make()
        spec = codec.spec()
        assert spec.name == codec.name and type(codec_of(spec.name, spec.configuration)) is type(codec)
        again = type(codec).from_configuration(spec.configuration)
        assert again.spec() == spec and repr(again) == repr(codec)
        assert pickle.loads(pickle.dumps(codec)).spec() == spec

    def test_in_a_chain(self):
        codec = self.make()
        chain = CodecChain((CodecSpec("bytes", {"endian": "big"}), codec.spec()), np.dtype(">i2"), (3, 4))
        chunk = np.arange(12, dtype=">i2").reshape(3, 4)
        encoded = chain.encode(chunk)
        assert len(encoded) <= chain.max_encoded
        decoded = chain.decode(encoded)
        assert decoded.dtype == chunk.dtype and decoded.tobytes() == chunk.tobytes()
        assert chain.step_names == (codec.name,)


class TestCrc32c(CodecConformance):
    def make(self):
        return Crc32cCodec()


class TestBloscLz4(CodecConformance):
    def make(self):
        return BloscCodec(cname="lz4", clevel=5, shuffle=1).resolve(4)


class TestBloscZstdBits(CodecConformance):
    def make(self):
        return BloscCodec(cname="zstd", clevel=1, shuffle="bitshuffle", typesize=2)


class TestBloscStored(CodecConformance):
    def make(self):
        return BloscCodec(cname="zlib", clevel=0, shuffle=0, typesize=1)


class TestBloscBlocks(CodecConformance):
    def make(self):
        return BloscCodec(cname="blosclz", clevel=9, shuffle=1, typesize=3, blocksize=384)
