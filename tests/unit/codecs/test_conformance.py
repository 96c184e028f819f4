"""What every codec from bytes to bytes does; a new one is a subclass of `CodecConformance` that says how it is made."""
import pickle

import numcodecs
import numpy as np
import pytest

from tests.each import each
from zcore.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import ChunkError, CodecError
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec

SIZES = (0, 1, 4, 16, 100, 4096, 70_000)


def content(n):
    return ((np.arange(n) // 11) ^ (np.arange(n) % 5)).astype("u1").tobytes()


class CodecConformance:
    """Subclasses define `make()`, which returns a codec with nothing left to choose; their names begin with Test."""

    is_blamed = True  # if the content has another size; a checksum covers what it finds
    says_more = False  # what a foreign library says stands in the message instead of a number
    itemsize = 1

    def make(self):
        raise NotImplementedError

    def damage(self, encoded):
        """Return objects that must be refused; by default every shorter one and a longer one."""
        return [encoded[:n] for n in range(len(encoded))] + [encoded + b"\0"]

    @each("n", SIZES)
    def test_decode_is_the_inverse_of_encode(self, n):
        """D3-CON-12, D3-COD-02"""
        codec, n = self.make(), n // self.itemsize * self.itemsize
        for buffer in (content(n), bytearray(content(n)), memoryview(content(n))):
            encoded = codec.encode(buffer)
            assert len(encoded) <= codec.max_encoded(n)
            assert bytes(codec.decode(encoded, n)) == content(n)
            assert bytes(codec.decode(bytearray(encoded), n)) == content(n)
            assert bytes(codec.decode(encoded, n + 7, at_most=True)) == content(n)

    def test_content_of_another_size_is_refused(self):
        codec = self.make()
        encoded = codec.encode(content(100))
        for n_bytes, at_most in ((99, False), (0, False), (99, True), (0, True), (101, False), (10**6, False)):
            with pytest.raises(CodecError) as caught:
                codec.decode(encoded, n_bytes, at_most)
            blamed = codec.name if self.is_blamed else None
            assert (caught.value.codec, caught.value.expected) == (blamed, n_bytes)

    def test_damage_is_an_error_with_its_place(self):
        codec = self.make()
        for damaged in self.damage(bytes(codec.encode(content(100)))):
            with pytest.raises(ChunkError) as caught:
                codec.decode(damaged, 100)
            error = caught.value
            assert (error.codec, error.direction) == (codec.name, "decode")
            assert None not in (error.offset, error.expected, error.found)
            assert str(error.found) in error.message or f"{error.found:08x}" in error.message or self.says_more

    @each("n", SIZES)
    def test_the_kernel_does_the_same(self, n):
        codec, n = self.make(), n // self.itemsize * self.itemsize
        if codec.step() is None:
            return
        program = Program([codec.step()])
        out = bytearray(n)
        program.decode_bytes(codec.encode(content(n)), out)
        assert out == content(n)
        assert bytes(codec.decode(program.encode_bytes(content(n)), n)) == content(n)

    def test_the_kernel_complains_the_same(self):
        codec = self.make()
        if codec.step() is None:
            return
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
        assert chain.step_names == (codec.name,) and chain.program.is_native == (codec.step() is not None)


class TestCrc32c(CodecConformance):
    is_blamed = False

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


class TestZstd(CodecConformance):
    def make(self):
        return ZstdCodec(level=3)


class TestZstdWithChecksum(CodecConformance):
    def make(self):
        return ZstdCodec(level=-7, checksum=True)


class TestGzip(CodecConformance):
    def make(self):
        return GzipCodec(level=6)


class TestGzipStored(CodecConformance):
    def make(self):
        return GzipCodec(level=0)


class NumcodecsConformance(CodecConformance):
    """A codec of numcodecs, which is the judge of it; subclasses give `id` and `configuration`."""

    id = None
    configuration = {}

    def make(self):
        return codec_of(f"numcodecs.{self.id}", self.configuration)

    @each("n", SIZES[1:])
    def test_numcodecs_reads_and_writes_the_same(self, n):
        """V3-XC-10, V2-COD-01 to V2-COD-12"""
        theirs, ours = numcodecs.get_codec({"id": self.id, **self.configuration}), self.make()
        n = n // self.itemsize * self.itemsize
        assert bytes(theirs.decode(bytes(ours.encode(content(n))))) == content(n)
        assert bytes(ours.decode(bytes(theirs.encode(content(n))), n)) == content(n)

    def test_parameters_that_are_unknown_are_ignored(self):
        """V2-COD-16"""
        with pytest.warns(UserWarning, match="no parameter foo; ignored"):
            codec = codec_of(f"numcodecs.{self.id}", {**self.configuration, "foo": 1})
        assert repr(codec) == repr(codec_of(f"numcodecs.{self.id}", self.configuration))

    def test_what_numcodecs_records_makes_the_codec(self):
        config = numcodecs.get_codec({"id": self.id, **self.configuration}).get_config()
        del config["id"]
        recorded = codec_of(f"numcodecs.{self.id}", config).spec().configuration
        assert recorded.items() >= self.configuration.items()


class TestNumcodecsBlosc(NumcodecsConformance):
    id = "blosc"
    configuration = {"cname": "zstd", "clevel": 2, "shuffle": 2, "blocksize": 0}

    def make(self):
        return super().make().resolve(4)

    def test_what_is_left_open_stays_open(self):
        codec = codec_of("numcodecs.blosc", {"shuffle": -1})
        assert codec.spec().configuration == {"cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
        assert codec.resolve(1).spec().configuration["shuffle"] == 2
        assert codec.resolve(4).spec().configuration == {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0,
                                                         "typesize": 4}


class TestNumcodecsZstd(NumcodecsConformance):
    id = "zstd"
    configuration = {"level": 5}


class TestNumcodecsGzip(NumcodecsConformance):
    id = "gzip"
    configuration = {"level": 1}


class TestNumcodecsZlib(NumcodecsConformance):
    id = "zlib"
    configuration = {"level": 9}


class TestNumcodecsLz4(NumcodecsConformance):
    id = "lz4"
    configuration = {"acceleration": 3}


class TestNumcodecsBz2(NumcodecsConformance):
    id = "bz2"
    configuration = {"level": 2}
    says_more = True


class TestNumcodecsLzma(NumcodecsConformance):
    id = "lzma"
    configuration = {"format": 1, "check": 4, "preset": 1}
    says_more = True


class TestNumcodecsLzmaRaw(NumcodecsConformance):
    id = "lzma"
    configuration = {"format": 3, "check": -1, "filters": [{"id": 3, "dist": 4}, {"id": 0x21, "preset": 1}]}
    says_more = True


class TestNumcodecsLzmaAlone(NumcodecsConformance):
    id = "lzma"
    configuration = {"format": 2, "preset": 0}
    says_more = True


class TestNumcodecsShuffle(NumcodecsConformance):
    id = "shuffle"
    configuration = {"elementsize": 4}
    itemsize = 4

    def test_a_part_of_an_item(self):
        """V2-COD-05"""
        for n in (1, 2, 3, 101):
            for direction in (self.make().encode, lambda data: self.make().decode(data, len(data))):
                with pytest.raises(CodecError, match=f"{n} bytes are no whole number of items of 4 bytes"):
                    direction(content(n))

    def damage(self, encoded):
        return [encoded[:n] for n in range(len(encoded))]


class TestNumcodecsCrc32(NumcodecsConformance):
    id = "crc32"
    is_blamed = False


class TestNumcodecsCrc32AtTheEnd(NumcodecsConformance):
    id = "crc32"
    configuration = {"location": "end"}
    is_blamed = False


class TestNumcodecsAdler32(NumcodecsConformance):
    id = "adler32"
    is_blamed = False


class TestNumcodecsFletcher32(NumcodecsConformance):
    id = "fletcher32"
    is_blamed = False
