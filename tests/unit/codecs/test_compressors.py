"""The `blosc` codec."""

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs import BloscCodec, GzipCodec, ZstdCodec
from zcore.kernel.codec.blosc_header import parse


def content(n):
    return (np.arange(n) // 11 % 256).astype("u1").tobytes()


@each(
    ("given", "itemsize", "typesize", "shuffle"),
    [
        ({}, 1, 1, "bitshuffle"),
        ({}, 2, 2, "shuffle"),
        ({}, 255, 255, "shuffle"),
        ({}, 256, 1, "shuffle"),
        ({"shuffle": -1}, 1, 1, "bitshuffle"),
        ({"shuffle": 0}, 1, 1, "noshuffle"),
        ({"shuffle": 1}, 8, 8, "shuffle"),
        ({"shuffle": 2}, 8, 8, "bitshuffle"),
        ({"typesize": 2}, 8, 2, "shuffle"),
        ({"shuffle": "noshuffle"}, 8, 8, "noshuffle"),
    ],
)
def test_what_is_left_open_is_chosen_by_the_item_size(given, itemsize, typesize, shuffle):
    """BL-ENC-02, BL-ENC-05"""
    codec = BloscCodec(**given).resolve(itemsize)
    assert (codec.typesize, codec.shuffle) == (typesize, shuffle)


@each(
    "keywords",
    [
        {"cname": "gzip"},
        {"cname": None},
        {"clevel": -1},
        {"clevel": 10},
        {"clevel": 5.0},
        {"clevel": True},
        {"shuffle": 3},
        {"shuffle": "bits"},
        {"shuffle": True},
        {"shuffle": 1.0},
        {"typesize": 0},
        {"typesize": 2.0},
        {"blocksize": -1},
        {"blocksize": 2**31},
        {"blocksize": None},
    ],
)
def test_parameters_out_of_range(keywords):
    """V3-BLOSC-01"""
    with pytest.raises(ValueError, match=next(iter(keywords))):
        BloscCodec(**keywords)


def test_parameters_that_are_none():
    with pytest.raises(TypeError):
        BloscCodec(level=3)
    with pytest.raises(TypeError):
        BloscCodec("lz4")


@pytest.mark.parametrize("strict", [True, False])
def test_foreign_item_sizes(strict):
    """ZM-CHK-07: they change what shuffle means; by the header, not by the configuration, is unshuffled."""
    writer = BloscCodec(cname="lz4", shuffle=1, typesize=8)
    reader = BloscCodec(cname="zstd", shuffle=2, typesize=4, strict=strict)
    encoded = writer.encode(content(4096))
    if strict:
        with pytest.raises(zcore.CodecError) as caught:
            reader.decode(encoded, 4096)
        assert (caught.value.expected, caught.value.found) == (4, 8)
    else:
        assert reader.decode(encoded, 4096) == content(4096)
    assert reader.decode(BloscCodec(cname="lz4", typesize=1, shuffle=0).encode(content(4096)), 4096) == content(4096)


def test_the_chunk_names_its_compressor():
    """V3-BLOSC-02, ZM-CHK-08"""
    reader = BloscCodec(cname="lz4", typesize=4, shuffle=1)
    for cname in ("blosclz", "lz4hc", "zlib", "zstd"):
        encoded = BloscCodec(cname=cname, typesize=4, shuffle=2).encode(content(1000))
        assert parse(encoded).compressor == {"lz4hc": "lz4"}.get(cname, cname)
        assert reader.decode(encoded, 1000) == content(1000)


@pytest.mark.parametrize("n", [0, 99, 101, 2**31])
def test_another_decoded_size(n):
    codec = BloscCodec(cname="lz4", typesize=1, shuffle=0)
    with pytest.raises(zcore.CodecError, match="100 bytes decoded") as caught:
        codec.decode(codec.encode(content(100)), n)
    assert (caught.value.expected, caught.value.found, caught.value.offset) == (n, 100, 4)


def test_content_longer_than_a_chunk_of_blosc():
    with pytest.raises(zcore.CodecError, match=f"not compress {2**31 - 16} bytes, it takes at most {2**31 - 17} "):
        BloscCodec(typesize=4).encode(np.zeros(2**31 - 16, "u1"))


def test_parameters_may_be_integers_of_numpy():
    three = np.int16(3)
    for codec, same in ((GzipCodec(level=three), GzipCodec(level=3)), (
            BloscCodec(clevel=three, typesize=three, shuffle=three - 1), BloscCodec(clevel=3, typesize=3, shuffle=2))):
        assert codec.configuration() == same.configuration()
        assert {type(value) for value in codec.configuration().values()} <= {int, str}
    for zarr_format, given in (3, {"name": "zstd", "configuration": {"level": three, "checksum": False}}), (
            2, {"id": "zstd", "level": three}):
        a = zcore.create_array(zcore.MemoryStore(), data=[7], compressors=given, zarr_format=zarr_format)
        assert zcore.open(a.store).compressor.level == 3 and a[0] == 7
    with pytest.raises(ValueError, match="level is True, expected an integer from"):
        ZstdCodec(level=True)
