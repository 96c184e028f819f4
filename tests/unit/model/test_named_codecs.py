"""What callers name codecs by: the codecs of three packages, dicts, and what is none of these."""
import numpy as np
import pytest

import zcore
from zcore.codecs import GzipCodec
from zcore.model.metadata import CodecSpec
from zcore.model.named_codecs import named_codec


def test_objects_dicts_and_specs_name_a_codec():
    assert named_codec(GzipCodec(level=3)) == CodecSpec("gzip", {"level": 3})
    assert named_codec(CodecSpec("gzip", {"level": 3})) == CodecSpec("gzip", {"level": 3})
    assert named_codec({"name": "gzip", "configuration": {"level": 3}}) == CodecSpec("gzip", {"level": 3})
    assert named_codec("gzip") == named_codec({"name": "gzip"}) == CodecSpec("gzip", {})


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_name_alone_is_a_codec(zarr_format):
    """As `compressors` of any format; where a format has another name for a codec, the error tells it."""
    values = np.arange(1000, dtype="i4")
    for given, names in (("zstd", ["zstd"]), (["blosc", "gzip"], ["blosc", "gzip"]),
                         ("numcodecs.zlib", ["numcodecs.zlib"])):
        a = zcore.create_array(zcore.MemoryStore(), data=values, zarr_format=zarr_format, compressors=given,
                               checksum=False)
        assert [codec.name for codec in a.compressors] == names and np.array_equal(a[...], values)
    for name in ("lz4", "delta", "fixedscaleoffset"):
        with pytest.raises(zcore.UnknownCodecError, match=f"no codec is named '{name}'.*such as 'numcodecs.{name}'"):
            zcore.create_array(zcore.MemoryStore(), data=values, compressors=name)


@pytest.mark.parametrize("codec", [3, None, b"gzip", ["gzip"], object()])
def test_what_names_no_codec_is_a_type_error(codec):
    with pytest.raises(TypeError, match="expected a codec, such as"):
        named_codec(codec)


def test_a_member_beside_the_configuration_is_not_passed_over():
    with pytest.raises(TypeError, match="'level' is no member of a codec; its parameters are those of 'configuration'"):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors={"name": "zstd", "level": 4})


def test_a_class_of_codecs_is_no_codec():
    with pytest.raises(TypeError, match="found the class GzipCodec"):
        named_codec(GzipCodec)


def test_a_dict_of_zarr_v2_gets_the_name_that_v3_has():
    assert named_codec({"id": "zlib", "level": 1}) == CodecSpec("numcodecs.zlib", {"level": 1})
    assert named_codec({"id": "gzip", "level": 1}) == CodecSpec("gzip", {"level": 1})


@pytest.mark.parametrize("keyword", ["compressors", "filters"])
@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_every_format_refuses_what_names_no_codec(keyword, zarr_format):
    if (keyword, zarr_format) != ("filters", "zmeta"):
        with pytest.raises(TypeError, match="expected a codec, such as"):
            zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", zarr_format=zarr_format, **{keyword: 3})


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3 specification")
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_codecs_of_zarr_python(zarr_format):
    theirs = pytest.importorskip("zarr.codecs")
    numcodecs = pytest.importorskip("zarr.codecs.numcodecs")
    values = np.arange(1000, dtype="i4")
    a = zcore.create_array(zcore.MemoryStore(), data=values, zarr_format=zarr_format,
                           filters=[numcodecs.Delta(dtype="<i4")], compressors=theirs.GzipCodec(level=2))
    assert a.codecs[0].name == "numcodecs.delta"
    assert a.compressors[0].level == 2
    assert np.array_equal(a[...], values)


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_codecs_of_numcodecs(zarr_format):
    numcodecs = pytest.importorskip("numcodecs")
    values = np.arange(999, dtype="i4")
    for given, name, configuration in (
        (numcodecs.Zlib(level=2), "numcodecs.zlib", {"level": 2}),
        (numcodecs.Zstd(level=2), "zstd", {"level": 2, "checksum": False}),
        (numcodecs.GZip(level=2), "gzip", {"level": 2}),
        (numcodecs.Blosc(cname="zstd", clevel=2, shuffle=numcodecs.Blosc.BITSHUFFLE), "blosc",
         {"cname": "zstd", "clevel": 2, "shuffle": "bitshuffle", "typesize": 4, "blocksize": 0}),
    ):
        a = zcore.create_array(zcore.MemoryStore(), data=values, zarr_format=zarr_format, compressors=given,
                               filters=[numcodecs.Delta(dtype="<i4")])
        assert [codec.name for codec in a.codecs[:2]] == ["numcodecs.delta", name]
        assert a.compressors[0].configuration() == configuration and np.array_equal(a[...], values)
    with pytest.raises(TypeError, match="found the class Zstd"):
        zcore.create_array(zcore.MemoryStore(), data=values, zarr_format=zarr_format, compressors=numcodecs.Zstd)


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize(("codec", "message"), [
    ({"name": "gzip", "configuration": {"depth": 3}}, "codec 'gzip' has no parameter 'depth'; "),
    ({"name": "blosc", "configuration": {"a": 1}}, "codec 'blosc' has no parameter 'a'; "),
    ({"id": "zstd", "configuration": {"level": 1}}, "codec 'zstd' has no parameter 'configuration'; "),
    ({}, "expected a dict with the codec's name, found the name None"),
    ({"name": ["gzip"]}, r"expected a dict with the codec's name, found the name \['gzip'\]"),
    ({"name": "zstd", "configuration": [1]}, r"expected the configuration of 'zstd' as a dict, found \[1\]"),
])
def test_errors_speak_of_the_codec(zarr_format, codec, message):
    with pytest.raises(TypeError, match=message):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors=codec, zarr_format=zarr_format)


def test_a_parameter_that_is_needed_is_named():
    with pytest.raises(TypeError, match="codec 'transpose' needs the parameter 'order'"):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors="transpose")
    with pytest.raises(TypeError, match="codec 'numcodecs.bitround' needs the parameter 'keepbits'"):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors="numcodecs.bitround")


def test_a_parameter_that_is_ignored_may_have_any_name():
    with pytest.warns(UserWarning, match="codec 'numcodecs.zlib' has no parameter 1, a; ignored"):
        zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", compressors={
            "name": "numcodecs.zlib", "configuration": {"a": 2, 1: 3}})
