"""Codecs of the numcodecs package, and what is refused."""
import sys

import numcodecs
import numpy as np
import pytest

from tests.each import each
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import CodecError, MetadataError, UnknownCodecError, UnsupportedError
from zcore.model.metadata import CodecSpec

BYTES = CodecSpec("bytes", {"endian": "little"})


def chain_of(name, configuration, dtype, shape, endian="little"):
    spec = CodecSpec(f"numcodecs.{name}", configuration)
    bytes_codec = CodecSpec("bytes", {"endian": endian})
    is_array = name in ("quantize", "astype", "packbits", "categorize")
    return CodecChain((spec, bytes_codec) if is_array else (bytes_codec, spec), np.dtype(dtype), shape)


@pytest.mark.parametrize(("name", "configuration", "dtype", "exact"), [
    ("quantize", {"digits": 2, "dtype": "<f8", "astype": "<f4"}, "<f8", False),
    ("astype", {"encode_dtype": "<i2", "decode_dtype": "<i4"}, "<i4", True),
    ("packbits", {}, "|b1", True),
    ("base64", {}, "<i4", True),
    ("jenkins_lookup3", {"initval": 3}, "<i4", True),
])
def test_what_only_numcodecs_has(name, configuration, dtype, exact):
    """V3-XC-10, V3-XC-11, V2-COD-08 to V2-COD-12"""
    chunk = (np.arange(35) % 2 if dtype == "|b1" else np.arange(35) * 3).astype(dtype).reshape(5, 7)
    chain = chain_of(name, configuration, dtype, (5, 7))
    assert not chain.program.is_native
    encoded = chain.encode(chunk)
    theirs = numcodecs.get_codec({"id": name, **configuration}).encode(np.ascontiguousarray(chunk))
    assert bytes(encoded) == (theirs.tobytes() if isinstance(theirs, np.ndarray) else bytes(theirs))
    decoded = chain.decode(encoded)
    assert (decoded.dtype, decoded.shape) == (chunk.dtype, chunk.shape)
    assert np.array_equal(decoded, chunk) if exact else np.allclose(decoded, chunk, atol=0.01)
    spec = chain.codecs[0].spec()
    assert spec == CodecSpec(f"numcodecs.{name}", configuration) and name in repr(chain.codecs[0])
    with pytest.raises(CodecError):
        chain.decode(encoded[: len(encoded) // 2])


def test_packed_booleans_are_counted():
    """V2-COD-10: nine bits in two bytes behind the number of bits that fill up."""
    chain = chain_of("packbits", {}, "?", (9,))
    assert chain.encode(np.array([1, 0, 0, 0, 0, 0, 0, 0, 1], bool)) == bytes.fromhex("07 80 80")
    with pytest.raises(CodecError, match="10 items, expected 9"):
        chain.decode(bytes.fromhex("06 80 80"))


@pytest.mark.parametrize("endian", ["little", "big"])
def test_byte_order_is_that_of_the_chain(endian):
    chain = chain_of("astype", {"encode_dtype": "<i2", "decode_dtype": "<i4"}, ">i4", (3,), endian)
    encoded = chain.encode(np.array([1, 2, 300], ">i4"))
    assert encoded == np.array([1, 2, 300], "<i2" if endian == "little" else ">i2").tobytes()
    assert chain.decode(encoded).tolist() == [1, 2, 300] and chain.decode(encoded).dtype == np.dtype(">i4")


def test_text_by_labels():
    """V2-COD-11"""
    labels = CodecSpec("numcodecs.categorize", {"labels": ["x", "yy"], "dtype": "<U2", "astype": "|u1"})
    chain = CodecChain((labels, CodecSpec("bytes")), np.dtype("<U2"), (4,))
    assert chain.encode(np.array(["x", "yy", "", "x"])) == b"\1\2\0\1"
    assert chain.decode(b"\1\2\0\1").tolist() == ["x", "yy", "", "x"]


def test_objects_by_msgpack():
    pytest.importorskip("msgpack")
    chunk = np.array(["a", 1, None], object)
    chain = CodecChain((CodecSpec("numcodecs.msgpack2"),), np.dtype(object), (3,))
    assert chain.decode(chain.encode(chunk)).tolist() == ["a", 1, None]


@pytest.mark.parametrize("name", ["pickle", "dill"])
@pytest.mark.parametrize("is_installed", [True, False])
def test_codecs_that_run_code_are_never_made(name, is_installed, monkeypatch):
    """V2-OBJ-02, V2-COD-13"""
    if not is_installed:
        monkeypatch.setitem(sys.modules, "numcodecs", None)
    with pytest.raises(UnsupportedError, match=f"'{name}' is never run") as caught:
        CodecChain((CodecSpec(f"numcodecs.{name}"),), np.dtype(object), (3,))
    assert caught.value.feature == f"codec {name}"


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numcodecs", None)
    with pytest.raises(UnsupportedError, match='needs numcodecs, .* "zcore-array.numcodecs."') as caught:
        codec_of("numcodecs.quantize", {"digits": 2, "dtype": "f8"})
    assert caught.value.feature == "numcodecs"
    for name in ("zlib", "lz4", "shuffle", "bz2", "json2", "fletcher32"):
        assert codec_of(f"numcodecs.{name}", {}).name == f"numcodecs.{name}"


@pytest.mark.parametrize("name", [
    "numcodecs.imagecodecs_jpeg2k", "imagecodecs_delta", "numcodecs.wavpack", "numcodecs.", "zarrs.gdeflate",
])
def test_unknown_names(name):
    """V2-COD-14, V3-TIER-4"""
    with pytest.raises(UnknownCodecError, match=name) as caught:
        codec_of(name, {})
    assert caught.value.codec == name


def test_a_codec_that_somebody_has_registered():
    """V2-COD-14"""
    class Reversed(numcodecs.abc.Codec):
        codec_id = "zcore_test_reversed"

        def encode(self, buf):
            return bytes(buf)[::-1]

        def decode(self, buf, out=None):
            return bytes(buf)[::-1]

    numcodecs.register_codec(Reversed)
    try:
        reverse = CodecSpec("numcodecs.zcore_test_reversed")
        chain = CodecChain((BYTES, reverse, CodecSpec("crc32c")), np.dtype("u1"), (3,))
        encoded = chain.encode(np.array([1, 2, 3], "u1"))
        assert bytes(encoded[:3]) == b"\3\2\1" and chain.decode(encoded).tolist() == [1, 2, 3]
        assert chain.max_encoded is None
    finally:
        del numcodecs.registry.codec_registry["zcore_test_reversed"]


def test_numbers_by_pcodec_in_either_order(monkeypatch):
    """V2-COD-13: it stores no shape, so the order of the elements is that of the transposed chunk."""
    class Flat(numcodecs.abc.Codec):
        codec_id = "pcodec"

        def encode(self, buf):
            return numcodecs.compat.ensure_contiguous_ndarray(buf).tobytes()

        def decode(self, buf, out=None):
            return np.frombuffer(buf, "f8")

    monkeypatch.setitem(numcodecs.registry.codec_registry, "pcodec", Flat)
    chunk = np.arange(12.0).reshape(3, 4)
    pcodec, transpose = CodecSpec("numcodecs.pcodec"), CodecSpec("transpose", {"order": [1, 0]})
    for specs, expected in (((pcodec,), chunk), ((transpose, pcodec), chunk.T)):
        chain = CodecChain(specs, np.dtype("<f8"), (3, 4))
        encoded = chain.encode(chunk)
        assert bytes(encoded) == expected.tobytes() and np.array_equal(chain.decode(encoded), chunk)


@each(("name", "configuration", "dtype"), [
    ("quantize", {"digits": 2}, "f8"), ("quantize", {"digits": 2, "dtype": "i4"}, "i4"),
    ("quantize", {"digits": 2, "dtype": "f4"}, "f8"), ("packbits", {}, "i4"),
    ("astype", {"encode_dtype": "i2", "decode_dtype": "i8"}, "i4"), ("base64", {"level": 3}, "i4"),
])
def test_what_does_not_fit(name, configuration, dtype):
    with pytest.raises(MetadataError):
        chain_of(name, configuration, dtype, (4,))


def test_packbits_keeps_no_number_beside_0_and_1():
    chain = chain_of("packbits", {}, "u1", (9,))
    bits = np.array([0, 1, 1, 0, 0, 1, 0, 1, 1], "u1")
    assert np.array_equal(chain.decode(chain.encode(bits)), bits)
    with pytest.raises(CodecError, match="keeps one bit of each item"):
        chain.encode(bits * 2)
