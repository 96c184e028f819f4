"""Documents made to hurt: an array that opens may be looked at and read, or an error of zcore says why not."""
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from tests.examples import examples
from tests.unit.formats.conformance import look_at
from tests.unit.formats.hostile_zmeta import VALID

integers = st.sampled_from(
    [0, 1, 2, 3, 255, 2**31 - 17, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, -1, 10**400])
lengths = st.lists(integers, max_size=4) | st.just([1] * 64) | st.just([2] * 62) | st.just([1] * 65)
members = {
    "shape": lengths,
    "chunks": lengths,
    "dtype": st.sampled_from([
        "<i4", ">f8", "|b1", "<c16", "|S1", "|S16777216", "|S16777217", "<U4194304", "|V1", "<M8[ns]", "<m8", "|O",
        "<f16", "i4", "|S0", "<M8[1000000000000ns]", [["a", "<i4"], ["b", "|S3"]], [["a", [["b", "<f8", [3, 2]]]]],
        [["a", "|V16777216", [2]]]]),
    "fill_value": integers | st.sampled_from(
        [None, True, "", "0", "NaN", "NaT", 1.5, 1e300, [0, 0], [1.5, "NaN"], {}, "é" * 100]),
    "cname": st.sampled_from(["lz4", "snappy", "zstd", "LZ4", "", None]),
    "clevel": integers,
    "shuffle": integers,
    "extra": st.recursive(st.none() | integers, lambda inner: st.lists(inner, max_size=3), max_leaves=5),
}
grids = st.integers(0, 3).flatmap(
    lambda n: st.fixed_dictionaries({name: st.lists(integers, min_size=n, max_size=n) for name in ("shape", "chunks")})
) | st.sampled_from([{"shape": shape, "chunks": chunks} for shape, chunks in (
    ([1] * 64, [1] * 64), ([2] * 62, [1] * 62), ([2] * 62, [2] * 62), ([2**62, 0], [1, 2**62]),
    ([2**40, 2**20], [2**14, 2**14]), ([2**63 - 1], [1]))])
documents = st.builds(lambda grid, changes: {**VALID, **grid, **changes},
                      grids | st.just({}), st.fixed_dictionaries({}, optional=members) | st.just({}))


@given(documents)
@examples(400)
def test_any_document_with_the_right_names(tmp_path_factory, document):
    raw = json.dumps(document).encode()
    outcomes = []
    path = tmp_path_factory.mktemp("array")
    (path / "__zmeta__").write_bytes(raw)
    for store in (*[directory(path, way) for way in WAYS], zcore.MemoryStore({"__zmeta__": raw})):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of byte orders that are not said
                outcomes.append(look_at(store).metadata)
        except zcore.ZcoreError as error:
            outcomes.append((type(error), error.message))
    assert len(set(map(str, outcomes))) == 1


@each("raw", [b"[]", b"1", b'"x"', b"null", b"\xff\xfe", b'{"foo": 1', b'{"a":1,"a":2}', b"[" * 10000, b""])
def test_attributes_that_are_none(tmp_path, raw):
    a = zcore.open(str(tmp_path), mode="w", shape=4, chunks=2, dtype="i4", cname="lz4")
    (tmp_path / "__zattr__").write_bytes(raw)
    for call in (a.attrs.asdict, lambda: a.attrs["foo"], lambda: a.attrs.update(x=1), lambda: len(a.attrs),
                 a.attrs.clear):
        with pytest.raises(zcore.MetadataError, match="__zattr__"):
            call()
    assert (tmp_path / "__zattr__").read_bytes() == raw
    assert a[0] == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("place", "read"), [
    ("__zmeta__", lambda store: zcore.open(store)),
    ("__zattr__", lambda store: zcore.open(store).attrs.asdict()),
    ("__zdata__", lambda store: zcore.open(store)[...]),
    ("__zdata__/0.blosc", lambda store: zcore.open(store)[...]),
])
def test_what_cannot_be_read_is_not_absent(tmp_path, way, place, read):
    """A link that leads to itself: an error of the store, not a fill value."""
    store = directory(tmp_path, way)
    a = zcore.open(store, mode="w", shape=4, chunks=2, dtype="i4", cname="lz4", fill_value=7)
    a[...] = 1
    a.attrs["x"] = 1
    (tmp_path / place).rename(tmp_path / "moved")
    (tmp_path / place).symlink_to(place.rpartition("/")[2])
    with pytest.raises(zcore.StoreError):
        read(store)
