"""What callers name codecs by: the codecs of three packages, dicts, and what is none of these."""
import numpy as np
import pytest

import zcore
from zcore.codecs import GzipCodec
from zcore.model.metadata import CodecSpec
from zcore.model.named_codecs import named_codec


def test_objects_dicts_and_specs_name_a_codec():
    document = {"name": "gzip", "configuration": {"level": 3}}
    assert named_codec(GzipCodec(level=3)) == CodecSpec("gzip", {"level": 3})
    assert named_codec(CodecSpec("gzip", {"level": 3})) == CodecSpec("gzip", {"level": 3})
    assert named_codec(document) == document


@pytest.mark.parametrize("codec", [3, None, "gzip", b"gzip", ["gzip"], object()])
def test_what_names_no_codec_is_a_type_error(codec):
    with pytest.raises(TypeError, match="expected a codec, such as"):
        named_codec(codec)


def test_a_class_of_codecs_is_no_codec():
    with pytest.raises(TypeError, match="found the class GzipCodec"):
        named_codec(GzipCodec)


def test_a_dict_of_zarr_v2_is_told_how_v3_has_it():
    with pytest.raises(ValueError, match=r"'name': 'numcodecs.zlib', 'configuration': \{'level': 1\}"):
        named_codec({"id": "zlib", "level": 1})


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


def test_codecs_of_numcodecs_name_those_of_v2():
    numcodecs = pytest.importorskip("numcodecs")
    a = zcore.create_array(zcore.MemoryStore(), data=np.arange(9), zarr_format=2, compressors=numcodecs.Zlib(level=1))
    assert a.codecs[0].name == "numcodecs.zlib"
    with pytest.raises(ValueError, match=r"Zarr v3 names a codec by 'name'.*numcodecs\.zlib"):
        zcore.create_array(zcore.MemoryStore(), data=np.arange(9), compressors=numcodecs.Zlib(level=1))
