"""`order`, `filters` and `compressor` of Zarr v2 documents as codec chains, and back."""
import json

import pytest

from tests.each import each
from zcore.errors import MetadataError, UnsupportedError
from zcore.formats import format_of
from zcore.model.metadata import CodecSpec

zarr_v2 = format_of(2)

PLAIN = {
    "zarr_format": 2, "shape": [4, 6], "chunks": [2, 3], "dtype": "<i4", "fill_value": None, "order": "C",
    "filters": None, "compressor": None,
}
LITTLE = CodecSpec("bytes", {"endian": "little"})
BYTES = CodecSpec("bytes", {})


def parse(**changes):
    return zarr_v2.parse_array(json.dumps({**PLAIN, **changes}).encode(), "a")


def compressor(config, **changes):
    """Return what a compressor alone, on integers of 4 bytes, becomes."""
    bytes_codec, codec = parse(compressor=config, **changes).codecs
    assert bytes_codec.name == "bytes"
    return codec.name, codec.configuration


def rewritten(array):
    members = json.loads(zarr_v2.render_array(array))
    return members["order"], members["filters"], members["compressor"]


def test_chunk_without_codecs_is_raw_bytes():
    """V2-CHK-06"""
    assert parse().codecs == (LITTLE,)
    assert parse(dtype=">i4").codecs == (CodecSpec("bytes", {"endian": "big"}),)


@each(("config", "name", "configuration"), [
    # V2-COD-01
    ({"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0}, "blosc",
     {"typesize": 4, "cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "blocksize": 0}),
    ({"id": "blosc", "cname": "lz4", "clevel": 0, "shuffle": 0, "blocksize": 4096, "typesize": 2}, "blosc",
     {"typesize": 2, "cname": "lz4", "clevel": 0, "shuffle": "noshuffle", "blocksize": 4096}),
    # V2-COD-02
    ({"id": "zlib", "level": 9}, "numcodecs.zlib", {"level": 9}), ({"id": "gzip", "level": 0}, "gzip", {"level": 0}),
    ({"id": "bz2", "level": 1}, "numcodecs.bz2", {"level": 1}),
    ({"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}, "numcodecs.lzma",
     {"format": 1, "check": -1, "preset": None, "filters": None}),
    # V2-COD-03, V2-COD-04
    ({"id": "lz4", "acceleration": 1}, "numcodecs.lz4", {"acceleration": 1}),
    ({"id": "zstd", "level": -5}, "zstd", {"level": -5, "checksum": False}),
    ({"id": "zstd", "level": 22, "checksum": True}, "zstd", {"level": 22, "checksum": True}),
])
def test_compressor_is_read_and_rewritten(config, name, configuration):
    """V2-COD-01, V2-COD-02, V2-COD-03, V2-COD-04, V2-CHK-07"""
    assert compressor(config) == (name, configuration)
    array = parse(compressor=config)
    assert rewritten(array) == ("C", None, config)
    assert rewritten(array.replace(extra={})) == ("C", None, config)


@each(("config", "name", "configuration"), [
    ({"id": "blosc"}, "blosc", {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}),
    ({"id": "blosc", "shuffle": -1}, "blosc",
     {"typesize": 4, "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}),
    ({"id": "zlib"}, "numcodecs.zlib", {"level": 1}), ({"id": "gzip"}, "gzip", {"level": 1}),
    ({"id": "gzip", "level": -1}, "gzip", {"level": 6}), ({"id": "bz2"}, "numcodecs.bz2", {"level": 1}),
    ({"id": "zstd", "level": 3, "checksum": False}, "zstd", {"level": 3, "checksum": False}),
    ({"id": "zstd"}, "zstd", {"level": 0, "checksum": False}), ({"id": "lz4"}, "numcodecs.lz4", {"acceleration": 1}),
])
def test_parameter_that_is_left_out_is_numcodecs_default(config, name, configuration):
    """V2-COD-01, V2-COD-02, V2-COD-03, V2-COD-04: and the document keeps its spelling."""
    assert compressor(config) == (name, configuration)
    array = parse(compressor=config)
    assert rewritten(array) == ("C", None, config)
    assert parse(compressor=rewritten(array.replace(extra={}))[2]).codecs == array.codecs


def test_checksum_records_its_place_where_it_is_not_the_usual():
    """V2-COD-12"""
    usual = parse(filters=[{"id": "crc32", "location": "start"}, {"id": "crc32c", "location": "end"}])
    assert usual.codecs == (LITTLE, CodecSpec("numcodecs.crc32"), CodecSpec("crc32c"))
    assert rewritten(usual.replace(extra={}))[1] == [{"id": "crc32"}, {"id": "crc32c"}]
    assert rewritten(usual)[1][0]["location"] == "start"


@pytest.mark.parametrize(("dtype", "shuffle"), [("|u1", "bitshuffle"), ("|S1", "bitshuffle"), ("<i2", "shuffle")])
def test_automatic_shuffle_goes_by_the_item_size(dtype, shuffle):
    """V2-COD-01"""
    assert compressor({"id": "blosc", "shuffle": -1}, dtype=dtype)[1]["shuffle"] == shuffle


@pytest.mark.parametrize(("config", "same"), [
    ({"id": "blosc", "shuffle": "NONE"}, {"id": "blosc", "shuffle": 0}),
    ({"id": "blosc", "shuffle": "BYTE"}, {"id": "blosc", "shuffle": 1}),
    ({"id": "blosc", "shuffle": "BIT"}, {"id": "blosc", "shuffle": 2}),
    ({"id": "zstd", "level": 3, "checksum": "NO"}, {"id": "zstd", "level": 3, "checksum": False}),
    ({"id": "zstd", "level": 3, "checksum": "YES"}, {"id": "zstd", "level": 3, "checksum": True}),
])
def test_words_of_gdal(config, same):
    """V2-COD-01: GDAL writes the words of its options."""
    assert compressor(config) == compressor(same)
    assert rewritten(parse(compressor=config).replace(extra={})) == rewritten(parse(compressor=same).replace(extra={}))


@each(("dtype", "filters", "size"), [
    ("<i2", [{"elementsize": 0}], 2), (">f8", [{"elementsize": 0}], 8), ("|u1", [{"elementsize": 0}], 1),
    ([["a", "<i4"], ["b", "|u1"]], [{"elementsize": 0}], 5), ("<i4", [{"id": "fletcher32"}, {"elementsize": 0}], 4),
    ("<i4", [{"id": "delta", "dtype": "<i4", "astype": "<i2"}, {"elementsize": 0}], 2),
    ("|O", [{"id": "vlen-utf8"}, {"elementsize": 0}], 1), ("<i4", [{"elementsize": "0"}], 4),
    ("<f8", [{"elementsize": "8"}], 8), ("<f8", [{"elementsize": 2}], 2), ("|S1", [{"elementsize": 0}], 1),
    ("|S128", [{"elementsize": 0}], 8),
])
def test_items_of_0_bytes_are_those_of_the_array(dtype, filters, size):
    """V2-COD-05: as netcdf-c 4.10 writes them, and texts as older ones do; numcodecs would take 0 for no shuffle."""
    filters = [{"id": "shuffle", **config} for config in filters]
    array = parse(dtype=dtype, filters=filters, compressor={"id": "zlib", "level": 1})
    assert array.codecs[-2] == CodecSpec("numcodecs.shuffle", {"elementsize": size})
    if filters[-1]["elementsize"] in (0, "0"):
        assert rewritten(array)[1][-1] == {"id": "shuffle", "elementsize": size}
    array = parse(dtype=dtype, filters=filters[:-1] or None, compressor=filters[-1])
    assert array.codecs[-1] == CodecSpec("numcodecs.shuffle", {"elementsize": size})


@each(("dtype", "filters"), [
    ("<i4", [{"id": "delta", "dtype": ">i4"}]), (">i4", [{"id": "delta", "dtype": "<f4"}]),
    ("<f4", [{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": ">f4", "astype": "|u1"}]),
    (">f8", [{"id": "quantize", "digits": 2, "dtype": "<f8"}]), ("<i4", [{"id": "delta", "dtype": "<i2"}]),
    ("<f8", [{"id": "astype", "encode_dtype": "<f4", "decode_dtype": ">f8"}]),
    ("<i4", [{"id": "delta", "dtype": "<i4", "astype": ">i2"}, {"id": "delta", "dtype": "<i2"}]),
])
def test_a_filter_of_another_type_than_it_is_given(dtype, filters):
    """V2-COD-15: numcodecs sees the bytes as other numbers, so they would be misread."""
    import zcore

    document = json.dumps({**PLAIN, "dtype": dtype, "filters": filters}).encode()
    with pytest.raises(MetadataError, match=f"{filters[-1]['id']}' takes"):
        zcore.open(zcore.MemoryStore({".zarray": document}))


@each(("dtype", "filters", "typesize"), [
    ("<f8", None, 8), ("|S255", None, 255), ("|S256", None, 1), ([["a", "<i4"], ["b", "|u1"]], None, 5),
    ("<f8", [{"id": "delta", "dtype": "<f8", "astype": "<f4"}], 4), ("<i4", [{"id": "shuffle"}], 1),
    ("|O", [{"id": "vlen-utf8"}], 1),
])
def test_blosc_takes_the_item_size_of_what_it_is_given(dtype, filters, typesize):
    """V2-COD-01, V2-CHK-07"""
    array = parse(dtype=dtype, filters=filters, compressor={"id": "blosc"})
    assert array.codecs[-1].configuration["typesize"] == typesize
    assert "typesize" not in rewritten(array.replace(extra={}))[2]


@each(("filters", "dtype", "chain"), [
    # V2-COD-05
    ([{"id": "shuffle", "elementsize": 4}], "<i4", (LITTLE, CodecSpec("numcodecs.shuffle", {"elementsize": 4}))),
    # V2-COD-06, V2-COD-15
    ([{"id": "delta", "dtype": "<i4", "astype": ">i2"}], "<i4",
     (CodecSpec("numcodecs.delta", {"dtype": "<i4", "astype": ">i2"}), CodecSpec("bytes", {"endian": "big"}))),
    # V2-COD-07
    ([{"id": "fixedscaleoffset", "offset": 1, "scale": 0.5, "dtype": "<f8", "astype": "|u1"}], "<f8",
     (CodecSpec("numcodecs.fixedscaleoffset", {"offset": 1, "scale": 0.5, "dtype": "<f8", "astype": "|u1"}), BYTES)),
    # V2-COD-08
    ([{"id": "quantize", "digits": 2, "dtype": "<f8", "astype": "<f4"}], "<f8",
     (CodecSpec("numcodecs.quantize", {"digits": 2, "dtype": "<f8", "astype": "<f4"}), LITTLE)),
    ([{"id": "bitround", "keepbits": 3}], ">f4", (CodecSpec("bitround", {"keepbits": 3}),
                                                  CodecSpec("bytes", {"endian": "big"}))),
    # V2-COD-09
    ([{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f8"}], "<f8",
     (CodecSpec("numcodecs.astype", {"encode_dtype": "<f4", "decode_dtype": "<f8"}), LITTLE)),
    # V2-COD-10
    ([{"id": "packbits"}], "|b1", (CodecSpec("numcodecs.packbits", {}), BYTES)),
    # V2-COD-11
    ([{"id": "categorize", "labels": ["a", "b"], "dtype": "|O", "astype": "|u1"}], "|O",
     (CodecSpec("numcodecs.categorize", {"labels": ["a", "b"], "dtype": "|O", "astype": "|u1"}), BYTES)),
    ([{"id": "categorize", "labels": ["a"], "dtype": "<U2", "astype": "<u2"}], "<U2",
     (CodecSpec("numcodecs.categorize", {"labels": ["a"], "dtype": "<U2", "astype": "<u2"}), LITTLE)),
    # V2-COD-12
    ([{"id": "crc32"}, {"id": "adler32"}, {"id": "crc32c"}, {"id": "fletcher32"}], "<i4",
     (LITTLE, CodecSpec("numcodecs.crc32"), CodecSpec("numcodecs.adler32"), CodecSpec("crc32c"),
      CodecSpec("numcodecs.fletcher32"))),
    ([{"id": "crc32", "location": "end"}, {"id": "crc32c", "location": "start"},
      {"id": "jenkins_lookup3", "initval": 0, "prefix": None}], "<i4",
     (LITTLE, CodecSpec("numcodecs.crc32", {"location": "end"}), CodecSpec("numcodecs.crc32c", {"location": "start"}),
      CodecSpec("numcodecs.jenkins_lookup3", {"initval": 0, "prefix": None}))),
    # V2-COD-13
    ([{"id": "base64"}], "<i4", (LITTLE, CodecSpec("numcodecs.base64"))),
    # V2-CHK-03
    ([{"id": "delta", "dtype": "<i4", "astype": "<i2"}, {"id": "delta", "dtype": "<i2", "astype": "<i2"},
      {"id": "shuffle", "elementsize": 2}, {"id": "crc32"}], "<i4",
     (CodecSpec("numcodecs.delta", {"dtype": "<i4", "astype": "<i2"}),
      CodecSpec("numcodecs.delta", {"dtype": "<i2", "astype": "<i2"}), LITTLE,
      CodecSpec("numcodecs.shuffle", {"elementsize": 2}), CodecSpec("numcodecs.crc32"))),
])
def test_filters_become_codecs_in_their_order(filters, dtype, chain):
    """V2-COD-05 to V2-COD-13, V2-COD-15, V2-CHK-03"""
    zlib = {"id": "zlib", "level": 1}
    array = parse(dtype=dtype, filters=filters, compressor=zlib)
    assert array.codecs == (*chain, CodecSpec("numcodecs.zlib", {"level": 1}))
    assert array.extra == {} and rewritten(array) == ("C", filters, zlib)
    alone = parse(dtype=dtype, filters=filters)
    assert alone.codecs == chain and rewritten(alone) == ("C", filters, None)


def test_stored_type_is_the_decoded_one_by_default():
    """V2-COD-15"""
    for filter_ in ({"id": "delta", "dtype": "<i2"}, {"id": "quantize", "digits": 1, "dtype": "<f4"},
                    {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": ">f8"},
                    {"id": "delta", "dtype": "<i2", "astype": None}):
        array = parse(dtype=filter_["dtype"], filters=[filter_])
        assert array.codecs[0].configuration["astype"] == filter_["dtype"]
        assert rewritten(array)[1] == [filter_]


def test_byte_order_of_a_codecs_type_may_be_missing():
    """V2-COD-15: little-endian then."""
    with pytest.warns(UserWarning, match="byte order"):
        array = parse(filters=[{"id": "delta", "dtype": "i4"}])
    assert array.codecs[0].configuration == {"dtype": "<i4", "astype": "<i4"}


@pytest.mark.parametrize(("shape", "chunks", "order", "permutation"), [
    ([4, 6], [2, 3], "F", [1, 0]), ([4, 6, 2], [2, 3, 2], "F", [2, 1, 0]), ([4], [2], "F", None), ([], [], "F", None),
    ([4, 6], [2, 3], "C", None),
])
def test_f_order_is_a_transpose_in_front(shape, chunks, order, permutation):
    """V2-ARR-05, V2-CHK-04"""
    delta = {"id": "delta", "dtype": "<i4", "astype": "<i4"}
    array = parse(shape=shape, chunks=chunks, order=order, filters=[delta])
    expected = [] if permutation is None else [CodecSpec("transpose", {"order": permutation})]
    assert list(array.codecs[:-2]) == expected
    assert rewritten(array) == (order, [delta], None)


@each("order", ["A", "c", "", None, 1, ["C"]])
def test_other_orders_are_refused(order):
    """V2-ARR-05"""
    with pytest.raises(MetadataError, match="member 'order'"):
        parse(order=order)


def test_empty_list_of_filters_is_null():
    """V2-ARR-06"""
    with pytest.warns(UserWarning, match="empty list"):
        array = parse(filters=[])
    assert array == parse() and rewritten(array) == ("C", None, None)


@each(("member", "value"), [
    ("filters", {}), ("filters", "zlib"), ("filters", ["zlib"]), ("filters", [None]), ("filters", [{"level": 1}]),
    ("filters", [[]]), ("filters", 0), ("filters", [{"id": 1}]), ("filters", [{"id": ""}]),
    ("compressor", []), ("compressor", "zlib"), ("compressor", {}), ("compressor", {"level": 1}), ("compressor", 0),
    ("compressor", {"id": None}), ("compressor", False),
])
def test_codecs_are_objects_with_an_id(member, value):
    """V2-ARR-06"""
    with pytest.raises(MetadataError, match=f"a/.zarray: member '{member}'") as caught:
        parse(**{member: value})
    assert caught.value.member == member


@each("config", [
    {"id": "blosc", "cname": "gzip"}, {"id": "blosc", "cname": 1}, {"id": "blosc", "clevel": 10},
    {"id": "blosc", "clevel": True}, {"id": "blosc", "clevel": 5.0}, {"id": "blosc", "shuffle": 3},
    {"id": "blosc", "shuffle": "shuffle"}, {"id": "blosc", "blocksize": -1}, {"id": "blosc", "blocksize": 2**31},
    {"id": "blosc", "typesize": 0}, {"id": "zlib", "level": 10}, {"id": "zlib", "level": "1"},
    {"id": "gzip", "level": -2}, {"id": "bz2", "level": 0}, {"id": "zstd", "level": 2**31},
    {"id": "zstd", "checksum": 1},
    {"id": "lz4", "acceleration": 1.5}, {"id": "shuffle", "elementsize": -1}, {"id": "crc32", "location": "middle"},
    {"id": "bitround"}, {"id": "bitround", "keepbits": -1}, {"id": "delta"}, {"id": "delta", "dtype": "<M8"},
    {"id": "delta", "dtype": 4}, {"id": "delta", "dtype": [["a", "<i4"]]}, {"id": "astype", "encode_dtype": "<f4"},
    {"id": "fixedscaleoffset", "dtype": "<f8", "scale": 1}, {"id": "quantize", "digits": 1.5, "dtype": "<f8"},
    {"id": "fixedscaleoffset", "dtype": "<f8", "scale": "1", "offset": 0},
    {"id": "categorize", "labels": ["a", 1], "dtype": "|O"}, {"id": "categorize", "labels": "ab", "dtype": "|O"},
    {"id": "vlen-array"},
])
def test_parameter_out_of_its_range_is_named(config):
    """V2-COD-01 to V2-COD-12, V2-COD-15"""
    with pytest.raises(MetadataError, match="a/.zarray: member 'filters': .*codec") as caught:
        parse(filters=[config])
    assert repr(config["id"]) in str(caught.value) and len(str(caught.value)) < 400


def test_unknown_parameters_are_ignored_with_a_warning_and_kept():
    """V2-COD-16"""
    config = {"id": "zlib", "level": 2, "threads": 4}
    with pytest.warns(UserWarning, match="codec 'zlib' has no parameter threads"):
        array = parse(compressor=config)
    assert array.codecs[-1] == CodecSpec("numcodecs.zlib", {"level": 2})
    assert rewritten(array) == ("C", None, config)


@pytest.mark.parametrize(("level", "meant"), [(23, 22), (1000, 22), (-2**31, -131072)])
def test_levels_that_zstd_does_not_have_are_the_nearest(level, meant):
    """V2-COD-04: numcodecs leaves them to the library; the document keeps what it says."""
    array = parse(compressor={"id": "zstd", "level": level})
    assert array.codecs[-1] == CodecSpec("zstd", {"level": meant, "checksum": False})
    assert rewritten(array)[2] == {"id": "zstd", "level": level}


@pytest.mark.parametrize("config", [
    {"id": "imagecodecs_jpeg2k", "level": 3}, {"id": "wavpack"}, {"id": "grib", "var": "t"}, {"id": "fits"},
])
def test_codec_that_nothing_is_known_of_is_handed_on(config):
    """V2-COD-14: whoever makes codecs of the chain says that he has none of that name."""
    expected = CodecSpec(f"numcodecs.{config['id']}", {key: value for key, value in config.items() if key != "id"})
    for member, value in (("filters", [config]), ("compressor", config)):
        array = parse(**{member: value})
        assert array.codecs == (LITTLE, expected)
        assert rewritten(array)[1:] == (([config], None) if member == "filters" else (None, config))


@pytest.mark.parametrize("id", ["zfpy", "pcodec"])
def test_compressor_of_elements_takes_the_place_of_bytes(id):
    """V2-COD-13: they, too, are for the codecs to refuse or to run."""
    array = parse(dtype="<f8", compressor={"id": id, "level": 3})
    assert array.codecs == (CodecSpec(f"numcodecs.{id}", {"level": 3}),)
    assert rewritten(array) == ("C", None, {"id": id, "level": 3})


@pytest.mark.parametrize(("id", "reason"), [("pickle", "runs any code"), ("json", "older"), ("msgpack", "older")])
@pytest.mark.parametrize("member", ["filters", "compressor"])
def test_codecs_that_are_never_run_are_refused_by_name(id, reason, member):
    """V2-OBJ-02, V2-OBJ-06, V2-COD-13"""
    with pytest.raises(UnsupportedError, match=f"member '{member}': the codec '{id}' is never run.*{reason}") as caught:
        parse(dtype="|O", **{member: [{"id": id}] if member == "filters" else {"id": id}})
    assert caught.value.feature == f"codec {id}"


@pytest.mark.parametrize(("id", "parameters"), [
    ("vlen-utf8", {}), ("vlen-bytes", {}), ("vlen-array", {"dtype": "<i4"}),
    ("json2", {"encoding": "utf-8", "strict": True, "separators": [",", ":"]}), ("msgpack2", {"raw": False}),
])
def test_objects_have_a_codec_that_makes_bytes_of_them(id, parameters):
    """V2-OBJ-01, V2-OBJ-03, V2-OBJ-04, V2-OBJ-05, V2-OBJ-06"""
    config = {"id": id, **parameters}
    name = id if id in ("vlen-utf8", "vlen-bytes") else f"numcodecs.{id}"
    checked = parse(dtype="|O", filters=[config, {"id": "crc32"}], compressor={"id": "blosc"})
    assert [codec.name for codec in checked.codecs] == [name, "numcodecs.crc32", "blosc"]
    assert checked.codecs[0].configuration == parameters
    assert rewritten(checked)[1] == [config, {"id": "crc32"}]
    as_compressor = parse(dtype="|O", compressor=config)
    assert [codec.name for codec in as_compressor.codecs] == [name]
    assert rewritten(as_compressor) == ("C", None, config)
    in_f_order = parse(dtype="|O", order="F", filters=[config])
    assert [codec.name for codec in in_f_order.codecs] == ["transpose", name]
    assert in_f_order.dtype == checked.dtype


@each(("dtype", "filters", "compressor", "member"), [
    ("|O", None, None, "filters"), ("|O", None, {"id": "zlib"}, "compressor"),
    ("|O", [{"id": "packbits"}], None, "filters"), ("|O", [{"id": "delta", "dtype": "<i4"}], None, "filters"),
    ("|O", [{"id": "crc32"}, {"id": "vlen-utf8"}], None, "filters"),
    ("<U5", [{"id": "vlen-utf8"}], None, "filters"), ("|S5", [{"id": "vlen-bytes"}], None, "filters"),
])
def test_objects_and_their_codecs_belong_together(dtype, filters, compressor, member):
    """V2-OBJ-01"""
    with pytest.raises(MetadataError, match=f"member '{member}': .*objects") as caught:
        parse(dtype=dtype, filters=filters, compressor=compressor)
    assert caught.value.member == member


@pytest.mark.parametrize("filters", [
    [{"id": "shuffle"}, {"id": "delta", "dtype": "<i4"}], [{"id": "json2"}, {"id": "json2"}],
    [{"id": "crc32"}, {"id": "packbits"}],
])
def test_filter_of_elements_behind_one_of_bytes_is_unsupported(filters):
    """V2-CHK-03: no chain has that order; numcodecs would take the bytes for elements."""
    with pytest.raises(UnsupportedError, match="takes elements"):
        parse(filters=filters)


def test_empty_filters_do_not_hide_what_the_compressor_is():
    """V2-ARR-06"""
    with pytest.warns(UserWarning, match="empty list"):
        array = parse(filters=[], compressor={"id": "crc32"})
    assert rewritten(array) == ("C", None, {"id": "crc32"})
    assert rewritten(array.replace(dtype=">f8", codecs=(CodecSpec("bytes", {"endian": "big"}),))) == ("C", None, None)


def test_place_of_a_codec_is_kept():
    """V2-ARR-06: what zarr-python would have made the compressor may be a filter, and the other way round."""
    zlib, crc32 = {"id": "zlib", "level": 1}, {"id": "crc32"}
    for filters, compressor in (([zlib], None), (None, crc32), ([zlib], crc32), ([zlib], zlib)):
        array = parse(filters=filters, compressor=compressor)
        assert rewritten(array) == ("C", filters, compressor)


@each("codecs", [
    (), (LITTLE, LITTLE), (CodecSpec("zstd", {"level": 1, "checksum": False}),), (BYTES,),
    (CodecSpec("bytes", {"endian": "big"}),), (CodecSpec("transpose", {"order": [0, 2, 1]}), LITTLE),
    (CodecSpec("transpose", {}), LITTLE),
    (LITTLE, CodecSpec("transpose", {"order": [1, 0]})), (CodecSpec("sharding_indexed", {}),),
    (LITTLE, CodecSpec("zlib", {"level": 1})), (CodecSpec("packbits", {}),),
    (LITTLE, CodecSpec("blosc", {"cname": "x"})),
    (CodecSpec("cast_value", {}), LITTLE),
])
def test_chain_that_the_document_cannot_express_is_refused(codecs):
    with pytest.raises(ValueError):
        zarr_v2.render_array(parse().replace(codecs=codecs))


def test_chain_of_v3_is_written_in_v2s_terms():
    codecs = (
        CodecSpec("transpose", {"order": [1, 0]}), CodecSpec("bitround", {"keepbits": 4}), LITTLE, CodecSpec("crc32c"),
        CodecSpec("blosc", {"cname": "lz4", "clevel": 1, "shuffle": "bitshuffle", "typesize": 8, "blocksize": 0}),
    )
    array = parse(dtype="<f8").replace(codecs=codecs)
    assert rewritten(array) == ("F", [{"id": "bitround", "keepbits": 4}, {"id": "crc32c"}], {
        "id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 2, "blocksize": 0, "typesize": 8,
    })
    assert zarr_v2.parse_array(zarr_v2.render_array(array), "a").codecs == codecs
    for array, order in ((parse(), [0, 1]), (parse(shape=[4], chunks=[2]), [0]), (parse(shape=[], chunks=[]), [])):
        unchanged = array.replace(codecs=(CodecSpec("transpose", {"order": order}), LITTLE))
        assert rewritten(unchanged) == ("C", None, None)
