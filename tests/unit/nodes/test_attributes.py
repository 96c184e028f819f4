"""User attributes: a mapping on the store, whose every change is one atomic write."""

import math
import os
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once


@pytest.fixture(params=["directory", "memory"])
def array(request, tmp_path):
    store = str(tmp_path) if request.param == "directory" else zcore.MemoryStore()
    return zcore.open(store, mode="w", shape=(4,), chunks=(2,), dtype="i4", cname="lz4", path="a/b")


def document(array):
    raw = array.store.get("a/b/__zattr__")
    return None if raw is None else raw.decode()


def test_golden_document(array):
    """ZM-ATTR-03, byte for byte; the order of setting does not matter."""
    array.attrs["foo"] = 42
    array.attrs["bar"] = 4.2
    array.attrs["baz"] = "quux"
    assert document(array) == '{\n    "bar": 4.2,\n    "baz": "quux",\n    "foo": 42\n}'


def test_absent_document_is_empty(array):
    """ZM-ATTR-02"""
    assert document(array) is None
    assert dict(array.attrs) == {} and len(array.attrs) == 0 and "x" not in array.attrs
    with pytest.raises(KeyError):
        array.attrs["x"]


def test_mapping(array):
    attrs = array.attrs
    attrs.update({"a": 1, "b": [1, {"c": None}]}, d=True)
    assert attrs.asdict() == dict(attrs) == {"a": 1, "b": [1, {"c": None}], "d": True}
    assert sorted(attrs) == ["a", "b", "d"] and len(attrs) == 3 and "a" in attrs and attrs.get("x", 5) == 5
    assert attrs.pop("a") == 1 and attrs.pop("a", None) is None
    assert attrs.setdefault("e", 7) == 7 and attrs.setdefault("e", 8) == 7
    del attrs["e"]
    with pytest.raises(KeyError):
        del attrs["e"]
    with pytest.raises(KeyError):
        attrs.pop("e")
    assert attrs == {"b": [1, {"c": None}], "d": True}
    name, value = attrs.popitem()
    assert {name: value, **attrs.asdict()} == {"b": [1, {"c": None}], "d": True}
    attrs.put({"only": 1})
    assert repr(attrs) == "Attributes({'only': 1})"
    attrs.clear()
    assert document(array) == "{}"
    with pytest.raises(KeyError):
        attrs.popitem()


def test_what_comes_back_is_a_copy(array):
    array.attrs["x"] = [1]
    array.attrs["x"].append(2)
    assert array.attrs["x"] == [1]


def test_every_access_reads_what_is_stored(array):
    other = zcore.open(array.store, mode="r+", path="a/b")
    other.attrs["x"] = 1
    assert array.attrs["x"] == 1


@pytest.mark.parametrize("name", [1, None, ("a",), b"x"])
def test_names_are_strings(array, name):
    with pytest.raises(TypeError):
        array.attrs[name] = 1
    assert document(array) is None


@pytest.mark.parametrize("value", [b"x", {1}, object(), {"a": {1: 2}}, 1j])
def test_values_are_json(array, value):
    array.attrs["keep"] = 1
    with pytest.raises(TypeError):
        array.attrs["x"] = value
    with pytest.raises(TypeError):
        array.attrs.update(y=1, x=value)
    assert array.attrs == {"keep": 1}


def test_values_too_deep_or_too_long_to_be_read_again(array):
    deep = []
    for _ in range(100):
        deep = [deep]
    for value in (deep, "x" * 2**27):
        with pytest.raises(ValueError):
            array.attrs["x"] = value
    assert array.attrs == {}


def test_numbers_beyond_json(array):
    """As Python's json of 2016 wrote them."""
    array.attrs.update(nan=math.nan, inf=math.inf, big=2**70, small=5e-324)
    assert '"inf": Infinity' in document(array)
    back = array.attrs.asdict()
    assert math.isnan(back["nan"]) and back["inf"] == math.inf and back["big"] == 2**70 and back["small"] == 5e-324


@pytest.fixture(params=["array", "group"])
def with_constants(request, tmp_path):
    """A Zarr v3 node in a group, with attributes that its writer should not have written, and its document."""
    group = zcore.create_group(tmp_path)
    if request.param == "array":
        node = group.create_array("n", shape=(3,), chunks=(2,), dtype="i2", attributes={"range": ["?"], "n": 1})
        node[...] = 5
    else:
        node = group.create_group("n", attributes={"range": ["?"], "n": 1})
    file = tmp_path / "n" / "zarr.json"
    file.write_text(file.read_text().replace('["?"]', '[{"low": -Infinity}, NaN]'))
    return node.refresh(), file


def test_constants_of_others_are_kept(with_constants, tmp_path):
    """V3-DOC-05: nothing is blocked by them, and none is lost."""
    node, file = with_constants
    changes = [
        lambda: node.attrs.update(n=2), lambda: node.attrs.pop("n"), lambda: node.attrs.setdefault("m", [1.5]),
        lambda: node.attrs.update(node.attrs.asdict()), lambda: node.attrs.put({"o": 1, **node.attrs}),
        lambda: zcore.consolidate_metadata(tmp_path),
    ]
    if isinstance(node, zcore.Array):
        changes += [lambda: node.resize(5), lambda: node.append([1, 2])]
    else:
        changes += [lambda: node.create_group("below"), lambda: zcore.consolidate_metadata(tmp_path, path="n")]
    for change in changes:
        change()
        assert '"range": [{"low": -Infinity}, NaN]' in file.read_text()
        found = zcore.open(tmp_path, path="n").attrs["range"]
        assert found[0] == {"low": -math.inf} and math.isnan(found[1])
    if isinstance(node, zcore.Array):
        assert node[...].tolist() == [5, 5, 5, 0, 0, 1, 2]
    zcore.consolidate_metadata(tmp_path)
    assert '"range": [{"low": -Infinity}, NaN]' in (tmp_path / "zarr.json").read_text()
    copy = zcore.open_group(tmp_path, use_consolidated=True).metadata.consolidated["n"]
    assert str(copy.attributes["range"]) == "[{'low': -inf}, nan]"
    zcore.open_group(tmp_path, "r+").attrs["title"] = "the copy goes on, too"
    assert '"range": [{"low": -Infinity}, NaN]' in (tmp_path / "zarr.json").read_text()


def test_constants_are_not_written_anew(with_constants, tmp_path):
    """V3-DOC-05"""
    node, file = with_constants
    before = file.read_text()
    for change in (
        lambda: node.attrs.update(other=math.nan), lambda: node.attrs.update(range=[math.inf]),
        lambda: node.attrs.update(other=node.attrs["range"]), lambda: node.attrs.put({"a": [np.float32("nan")]}),
    ):
        with pytest.raises(ValueError, match="attribute '(other|range|a)': NaN and infinities are not JSON; as text"):
            change()
        assert file.read_text() == before
    root = zcore.open_group(tmp_path, "r+")
    for create in (root.create_group, lambda *args, **keywords: root.create_array(
            *args, shape=1, dtype="i1", **keywords)):
        with pytest.raises(ValueError, match="attribute 'range'"):
            create("new", attributes=node.attrs.asdict())
    assert list(root) == ["n"]
    node.attrs["range"] = ["-Infinity", "NaN"]
    assert '"range": ["-Infinity", "NaN"]' in file.read_text()


def test_unicode_is_escaped(array):
    array.attrs["é"] = "\U0001f600\\ud800\uffff"
    assert document(array).isascii()
    assert array.attrs["é"] == "\U0001f600\\ud800\uffff"


NO_UTF8 = os.fsdecode(b"caf\xe9.tif")     # a name of a file, as `os.listdir` returns it
HALVES = [{"file": NO_UTF8}, {NO_UTF8: 1}, {"a": 1, "b": [{"c": (NO_UTF8,)}]}, {"a": {NO_UTF8: 1}}, {"a": "\\\ud83d"},
          {"a": "\ud83d\U0001f600"}]


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
@pytest.mark.parametrize("attributes", HALVES, ids=ascii)
def test_half_a_surrogate_pair_is_refused(tmp_path, zarr_format, attributes):
    """No UTF-8 has it: tensorstore and zarrs could not open the array."""
    settings = {"shape": 2, "dtype": "i4", "zarr_format": zarr_format}
    with pytest.raises(ValueError, match="attribute .*half a surrogate pair"):
        zcore.create_array(tmp_path / "new", **settings, attributes=attributes)
    assert not (tmp_path / "new").exists()
    nodes = [zcore.create_array(tmp_path / "a", **settings, attributes={"x": 1})]
    if zarr_format != "zmeta":
        nodes.append(zcore.create_group(tmp_path / "g", zarr_format=zarr_format, attributes={"x": 1}))
        with pytest.raises(ValueError, match="half a surrogate pair"):
            nodes[1].create_group("below", attributes=attributes)
    for node in nodes:
        for change in (node.attrs.update, node.attrs.put):
            with pytest.raises(ValueError, match="attribute .*half a surrogate pair"):
                change(attributes)
        assert node.attrs == {"x": 1}


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
@pytest.mark.parametrize("settings", [
    {"dtype": "U9", "fill_value": NO_UTF8}, {"dtype": str, "fill_value": NO_UTF8}, {"dtype": [(NO_UTF8, "i4")]},
    {"dtype": "i4", "dimension_names": (NO_UTF8,)}, {"dtype": "i4", "name": NO_UTF8}], ids=ascii)
def test_half_a_surrogate_pair_in_other_members_is_refused(zarr_format, settings):
    with pytest.raises(ValueError):
        zcore.create_array(store := zcore.MemoryStore(), shape=2, zarr_format=zarr_format, **settings)
    assert not list(store.list_prefix(""))


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_half_a_surrogate_pair_of_others_is_kept(tmp_path, zarr_format):
    """As NaN: nothing is blocked by it, and it is not written anew."""
    a = zcore.create_array(tmp_path, shape=2, dtype="i4", zarr_format=zarr_format, attributes={"file": "?", "n": 1})
    file = tmp_path / ("zarr.json" if zarr_format == 3 else ".zattrs")
    file.write_text(file.read_text().replace('"?"', r'"caf\udce9.tif"'))
    a.refresh()
    a.attrs["n"] = 2
    a.append([1])
    assert a.attrs == {"file": NO_UTF8, "n": 2} and r"caf\udce9.tif" in file.read_text()
    with pytest.raises(ValueError, match="attribute 'other'"):
        a.attrs["other"] = NO_UTF8


def test_read_only(array):
    array.attrs["x"] = 1
    reader = zcore.open(array.store, path="a/b")
    for change in (
        lambda: reader.attrs.update(x=2),
        reader.attrs.clear,
        lambda: reader.attrs.pop("x"),
        lambda: reader.attrs.__delitem__("x"),
        lambda: reader.attrs.setdefault("x", 3),
    ):
        with pytest.raises(zcore.ReadOnlyError):
            change()
    assert reader.attrs == {"x": 1}


def test_given_when_the_array_is_made(tmp_path):
    a = zcore.create_array(str(tmp_path), shape=4, chunks=2, dtype="i4", zarr_format="zmeta", attributes={"x": 1})
    assert a.attrs == {"x": 1}
    with pytest.raises(TypeError):
        zcore.create_array(
            str(tmp_path / "b"), shape=4, chunks=2, dtype="i4", zarr_format="zmeta", attributes={"x": b""}
        )
    assert not (tmp_path / "b" / "__zmeta__").exists()
    a = zcore.create_array(str(tmp_path), shape=4, chunks=2, dtype="i4", zarr_format="zmeta", overwrite=True)
    assert a.attrs == {}, "those of the old array are gone with it"


def test_gone_with_the_array(tmp_path):
    a = zcore.open(str(tmp_path / "x"), mode="w", shape=4, chunks=2, dtype="i4", cname="lz4")
    (tmp_path / "x" / "__zmeta__").unlink()
    with pytest.raises(zcore.NodeNotFoundError):
        a.attrs["x"] = 1
    assert not (tmp_path / "x" / "__zattr__").exists()


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("kind", ["array", "group"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_node_that_is_gone_has_none(tmp_path, zarr_format, kind, stored):
    group = zcore.create_group(tmp_path if stored else zcore.MemoryStore(), zarr_format=zarr_format)
    node = group.create_array("n", shape=2, dtype="i1") if kind == "array" else group.create_group("n")
    node.attrs["a"] = 1
    del group["n"]
    attributes = node.attrs
    for call in (attributes.asdict, lambda: attributes["a"], lambda: attributes.get("a", 2), lambda: "a" in attributes,
                 lambda: list(attributes), lambda: len(attributes), lambda: attributes.update(b=2), attributes.clear):
        with pytest.raises(zcore.NodeNotFoundError, match="no (array|group) at"):
            call()


def test_threads_that_set_different_attributes_lose_none(array):
    def work(k):
        for i in range(10):
            array.attrs[f"{k}.{i}"] = i

    at_once(threading.Thread(target=work, args=(k,)) for k in range(4))
    assert len(array.attrs) == 40


@pytest.mark.parametrize(("value", "stored"), [
    (np.arange(3), [0, 1, 2]), (np.ones((1, 2), ">f4"), [[1.0, 1.0]]), (np.array(["a", "bc"]), ["a", "bc"]),
    (np.array(3), 3), ({"a": [np.array([True])]}, {"a": [[True]]}), (np.datetime64("2016-02-29T12"), "2016-02-29T12"),
    (np.array(["2016-02-29"], "M8[D]"), ["2016-02-29"])])
@pytest.mark.parametrize("zarr_format", [2, 3, "zmeta"])
def test_arrays_of_numpy_are_stored_as_lists(value, stored, zarr_format):
    array = zcore.create_array(zcore.MemoryStore(), shape=1, dtype="i1", zarr_format=zarr_format)
    array.attrs["a"] = value
    assert array.attrs["a"] == stored
    with pytest.raises(TypeError, match="no JSON value"):
        array.attrs["a"] = np.array([1j])
