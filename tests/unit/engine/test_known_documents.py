"""Arrays whose documents differ in shape, chunk shape and attributes alone share their parts, and nothing else."""
import json
import warnings

import numpy as np
import pytest

import zcore
from zcore.engine import known_documents, views
from zcore.engine.options import Options
from zcore.formats import format_of

V3 = {"zarr_format": 3, "node_type": "array", "shape": [4, 5], "data_type": "int32",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
      "chunk_key_encoding": {"name": "default"}, "fill_value": 1, "codecs": [{"name": "bytes", "configuration": {
          "endian": "little"}}, {"name": "zstd", "configuration": {"level": 1, "checksum": False}}], "attributes": {}}
V2 = {"zarr_format": 2, "shape": [4, 5], "chunks": [2, 2], "dtype": "<i4", "compressor": None, "fill_value": 1,
      "order": "C", "filters": None}


def parsed(text, n=3):
    name = ".zarray" if n == 2 else "zarr.json"
    return views.view_of(format_of(n), name, text.encode(), None, "", Options(), 0).metadata


def parse(members):
    return parsed(json.dumps(members), members["zarr_format"])


@pytest.fixture(autouse=True)
def _nothing_is_kept():
    forget()
    yield
    forget()


def forget():
    views._parse.cache_clear()
    views._resolve.cache_clear()
    known_documents._kept.clear()


@pytest.mark.parametrize("members", [V3, V2], ids=["v3", "v2"])
def test_shape_and_attributes_are_their_own(members):
    first = parse(members)
    other = parse({**members, "shape": [7, 0]} | ({"attributes": {"a": 1}} if members is V3 else {}))
    assert len(known_documents._kept) == 1 and other.codecs is first.codecs
    assert (first.shape, other.shape) == ((4, 5), (7, 0))
    if members is V3:
        assert (first.attributes, other.attributes, parse(members).attributes) == ({}, {"a": 1}, {})
    forget()
    assert parse({**members, "shape": [7, 0]}) == other.replace(attributes=first.attributes)


@pytest.mark.parametrize("members", [V3, V2], ids=["v3", "v2"])
@pytest.mark.parametrize("shape", [[4], [4, 5, 6], [-1, 5], [4.0, 5], [True, 5], ["4", 5], [2**63, 1], None, {},
                                   [None, 1]])
def test_a_shape_that_is_wrong_is_an_error_all_the_same(members, shape):
    def fault():
        with pytest.raises(zcore.MetadataError) as found:
            parse({**members, "shape": shape})
        return str(found.value), found.value.member

    alone = fault()
    parse(members)
    assert len(known_documents._kept) == 1 and fault() == alone


def cut(members, chunk_shape):
    if members["zarr_format"] == 2:
        return {**members, "chunks": chunk_shape}
    return {**members, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk_shape}}}


def resolved(members):
    name = ".zarray" if members["zarr_format"] == 2 else "zarr.json"
    return views.view_of(format_of(members["zarr_format"]), name, json.dumps(members).encode(), None, "", Options(), 0)


TRANSPOSED = {**V3, "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, *V3["codecs"],
                               {"name": "gzip", "configuration": {"level": 1}}, {"name": "crc32c"}]}
BLOSC = {**V2, "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}, "order": "F"}
TEXT = {**V3, "data_type": "string", "fill_value": "", "codecs": [{"name": "vlen-utf8"}, V3["codecs"][1]]}


@pytest.mark.parametrize("members", [V3, V2, TRANSPOSED, BLOSC, TEXT],
                         ids=["v3", "v2", "transposed", "blosc", "text"])
def test_a_chunk_shape_is_its_own(members):
    other = cut({**members, "shape": [70, 50]}, [20, 30])
    alone = resolved(other)
    forget()
    first, second = resolved(members), resolved(other)
    assert len(known_documents._kept) == 1 and second.metadata.codecs is first.metadata.codecs
    assert second.metadata == alone.metadata and second.template == alone.template
    for name in ("chunk_shape", "array_types", "sizes", "max_encoded", "order", "swap", "step_names", "dtype"):
        assert getattr(second.chain, name) == getattr(alone.chain, name), name
    elements = np.arange(600).astype(alone.metadata.dtype).reshape(20, 30)
    raw = bytes(second.chain.encode(elements))
    assert raw == bytes(alone.chain.encode(elements))
    assert (second.chain.decode(raw) == elements).all()
    assert first.chain.chunk_shape == (2, 2) and first.chain.max_encoded != second.chain.max_encoded or members is TEXT


@pytest.mark.parametrize("members", [V3, V2], ids=["v3", "v2"])
@pytest.mark.parametrize("chunk_shape", [[4], [4, 5, 6], [0, 5], [-1, 5], [4.0, 5], [True, 5], ["4", 5], [2**63, 1],
                                         [2**31, 2**31], None, {}, 4, [None, 1]])
def test_a_chunk_shape_that_is_wrong_is_an_error_all_the_same(members, chunk_shape):
    def outcome():
        try:
            return parse(cut(members, chunk_shape))
        except zcore.ZcoreError as error:
            return type(error), str(error)

    alone = outcome()
    forget()
    parse(members)
    assert len(known_documents._kept) == 1 and outcome() == alone
    assert isinstance(alone, tuple)


def test_chunks_that_are_too_large_for_a_format_are_an_error_all_the_same():
    zmeta = format_of("zmeta")

    def resolve(*chunk_shape):
        array = zmeta.new_array((10**6, 10**6), "f8", (2, 2))
        raw = zmeta.render_array(array)
        raw = raw.replace(b'"chunks": [\n        2,\n        2\n', b'"chunks": [%d, %d' % chunk_shape)
        return views.view_of(zmeta, "__zmeta__", raw, None, "", Options(), 0).metadata.chunk_shape

    assert resolve(2, 2) == (2, 2) and resolve(20, 30) == (20, 30) and len(known_documents._kept) == 1
    with pytest.raises(zcore.MetadataError, match="chunks"):
        resolve(2**15, 2**15)


def test_shards_are_recalled_with_their_own_shape_alone():
    inner = {"chunk_shape": [2, 1], "codecs": V3["codecs"], "index_codecs": V3["codecs"][:1]}
    shards = cut({**V3, "codecs": [{"name": "sharding_indexed", "configuration": inner}]}, [4, 2])
    first = resolved(shards)
    assert resolved({**shards, "shape": [9, 9]}).chain is first.chain
    other = resolved(cut(shards, [8, 8]))
    assert other.chain.shards.shard_shape == (8, 8) and other.chain.inner_shape == (2, 1)
    with pytest.raises(zcore.MetadataError):
        resolved(cut(shards, [3, 2]))
    # The first chunk shape of this text is that of the inner chunks.
    turned = {name: shards[name] for name in reversed(shards)}
    known_documents._kept.clear()
    assert resolved(turned).metadata == first.metadata
    assert resolved(cut({**turned, "shape": [9, 9]}, [8, 4])).chain.inner_shape == (2, 1)


def test_another_grid_in_a_document_of_zarr_v2_is_not_its_own():
    text = json.dumps({**V2, "chunk_grid": cut(V3, [2, 2])["chunk_grid"]})
    for escaped in (text, text.replace('"chunks"', '"\\u0063hunks"')):
        assert parsed(escaped, 2).chunk_shape == (2, 2)
        other = parsed(escaped.replace('"chunk_shape": [2, 2]', '"chunk_shape": [4, 4]'), 2)
        assert other.chunk_shape == (2, 2) and other.extra["chunk_grid"]["configuration"] == {"chunk_shape": [4, 4]}


def test_a_chunk_shape_that_zarr_v2_does_not_know_is_kept_as_it_is():
    found = [parse({**V2, "shape": [4, 5 + n], "chunk_shape": [2, 2 + n]}).extra["chunk_shape"] for n in range(3)]
    assert found == [[2, 2], [2, 3], [2, 4]]


@pytest.mark.parametrize("change", [{"fill_value": True}, {"data_type": "uint32"}, {"unknown": {}}, {"codecs": []}])
def test_values_that_python_calls_equal_are_not(change):
    def outcome():
        try:
            return parse({**V3, **change})
        except zcore.ZcoreError as error:
            return str(error)

    alone = outcome()
    forget()
    first = parse(V3)
    assert outcome() == alone != first


def test_a_zero_has_its_sign():
    floats = {**V3, "data_type": "float64"}
    signs = [np.signbit(parse({**floats, "fill_value": value}).fill_value) for value in (0.0, -0.0, 0.0)]
    assert signs == [False, True, False]


def test_lengths_of_chunks_that_follow_the_shape():
    """Old programs wrote chunks of length 0 for arrays of length 0."""
    empty = {**V2, "shape": [0, 5], "chunks": [0, 2]}
    assert parse(empty).chunk_shape == (1, 2)
    with pytest.raises(zcore.MetadataError):
        parse({**empty, "shape": [4, 5]})


def test_attributes_in_a_document_of_their_own_or_in_a_copy(tmp_path):
    g = zcore.create_group(tmp_path, zarr_format=2)
    for name in ("a", "b"):
        g.create_array(name, shape=3, dtype="i4", attributes={"name": name})
    zcore.consolidate_metadata(tmp_path)
    for use in (True, False, True):
        g = zcore.open_group(tmp_path, use_consolidated=use)
        assert [a.attrs.asdict() for a in g.array_values()] == [{"name": "a"}, {"name": "b"}]


def test_each_array_is_warned_of(tmp_path):
    g = zcore.create_group(tmp_path, zarr_format=2)
    for name in ("a", "b"):
        g.create_array(name, shape=3, dtype="i4")
        document = tmp_path / name / ".zarray"
        members = json.loads(document.read_bytes())
        del members["filters"]
        document.write_text(json.dumps(members))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert len(list(g.arrays())) == 2
    assert [[str(tmp_path / name) in str(one.message) for name in "ab"] for one in found] == [[True, False],
                                                                                              [False, True]]


def test_text_in_front_or_within():
    """Members in another order, spaces, and members of these names in other objects."""
    attributes = {"shape": [9], "attributes": {"shape": 1}, "text": '"shape": [8]'}
    turned = dict(reversed({**V3, "attributes": attributes}.items()))
    for text in (json.dumps(turned), json.dumps(turned, indent=3), json.dumps(V3 | {"attributes": attributes})):
        forget()
        assert parsed(text).shape == (4, 5) and len(known_documents._kept) == 1
        other = parsed(text.replace("[4,", "[6,").replace("   4,", "   6,").replace("[9]", "[7]"))
        assert len(known_documents._kept) == 1 and other.shape == (6, 5)
        assert other.attributes in (attributes, attributes | {"shape": [7]})


@pytest.mark.parametrize("before", [
    '"x": {"must_understand": false, "shape": [1]}, ', '"x": {"must_understand": false, "attributes": {}}, ',
    '"x": {"must_understand": false, "shape": [1], "attributes": {}}, ',
])
def test_members_of_other_objects_are_not_taken_for_its_own(before):
    def text(members):
        return "{" + before + json.dumps(members)[1:].replace("attributes", r"\u0061ttributes")

    for members in (V3, {**V3, "attributes": {"a": 1}}, {**V3, "shape": [6, 5]}):
        metadata = parsed(text(members))
        assert (metadata.shape, metadata.attributes) == (tuple(members["shape"]), members["attributes"])
    parsed(text(V3).replace("[1]", "[2]"))
    assert not any(of_first is None and resolved is not None for resolved, of_first in known_documents._kept.values())


def test_attributes_that_are_none():
    parse(V3)
    parse({**V3, "attributes": {"a": 1}})
    for text, attributes in (('"attributes": null', {}), ('"attributes": {"a": NaN}', None), ('"attributes": {}', {})):
        found = parsed(json.dumps(V3).replace('"attributes": {}', text)).attributes
        assert np.isnan(found["a"]) if attributes is None else found == attributes
    for value in ("[]", "1", '"a"', '{"a": 1, "a": 2}', "{,}", "{", '{"a": Infinite}'):
        with pytest.raises(zcore.MetadataError):
            parsed(json.dumps(V3).replace('"attributes": {}', f'"attributes": {value}'))


def test_documents_that_all_differ():
    for level in range(1, 100):
        members = {**V3, "extra": {"must_understand": False, "n": level}}
        assert parse(members).extra["extra"]["n"] == level
    assert 0 < len(known_documents._kept) <= 64


def test_a_long_document_is_not_kept():
    assert parse({**V3, "extra": {"must_understand": False, "text": "a" * (1 << 16)}}).shape == (4, 5)
    assert known_documents._kept == {}
