"""Trees and arrays to the text and the blocks of an ASDF file."""
import datetime
import math
import re

import numpy as np
import pytest

yaml = pytest.importorskip("yaml")

from tests.each import each  # noqa: E402
from tests.unit.asdf.made_blocks import MadeBlock, MadeFile  # noqa: E402
from zcore.asdf.tree.dump import Inline, Stream  # noqa: E402
from zcore.asdf.tree.load import dump, load  # noqa: E402
from zcore.asdf.tree.origin import Reference  # noqa: E402
from zcore.asdf.tree.sharing import pieces_of  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping, TaggedScalar, TaggedSequence  # noqa: E402
from zcore.errors import AsdfFormatError, UnsupportedError  # noqa: E402


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def emitter(request, monkeypatch):
    """Each of the emitters that PyYAML has."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeDumper", raising=False)
    elif not hasattr(yaml, "CSafeDumper"):
        pytest.skip("PyYAML was built without libyaml")


def written(tree, **options):
    file = MadeFile()
    return dump(tree, file.add_block, **options), file


def again(tree, **options):
    text, file = written(tree, **options)
    return load(text, file.blocks)


def test_the_text():
    """AS-TREE-01, AS-TREE-02, AS-TREE-03, AS-TREE-07"""
    text, _ = written({"a": 1})
    assert text.startswith(b"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\nasdf_library: !core/")
    assert text.endswith(b"a: 1\n...\n")


VALUES = [
    None, True, False, 0, -1, 2**63 - 1, -2**63 + 2, 0.0, -0.0, 1e300, 1e16, 1.5e-7, math.inf, -math.inf, 1.0, 1j,
    1 - 2.5j, "", "a", "yes", "No", "12", "1e5", "1.5", "~", "null", "0x1f", "1:30", "2020-01-02", "=", "<<", " a ",
    "a: b", "- a", "#", "a #b", "é", "😀", "a\nb", "a\n\nb\n", "\n", "\t", "\r\n", "\x00", "\x7f",
    "\x85", "\u2028", "\ufeff",
    "...", "x\n...\ny", "\n...\n", "---", "%YAML", "!a", "&a", "*a", "@", "`", "'", '"', "\\", "{", "[", "?", ":",
    "a" * 500, "1" * 5000, "1" + ":00" * 5000, "1" + ":00" * 5000 + ".5",
    "word " * 100, "!", "|", ">", b"", b"\x00\xff", datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
    [], {}, [1, 2], [[]],
    {"a": {}}, {1: 2, False: 3}, {"x": [{"y": [1, {"z": None}]}]}, ["a", "b", 1.5],
]


@each("value", VALUES, ids=lambda value: ascii(value)[:20])
def test_values_come_back(value):
    """AS-TREE-10, AS-TREE-11, AS-TREE-04, AS-ND-20"""
    text, file = written({"a": value, "b": [value], "c": {"d": value}})
    assert len(re.findall(rb"\r?\n\.\.\.(?:\r?\n|$)", text)) == 1
    tree = load(text, file.blocks)
    assert repr(tree["a"]) == repr(tree["b"][0]) == repr(tree["c"]["d"]) == repr(value)
    if isinstance(value, str):
        assert again({value: 1})[value] == 1


def test_values_of_numpy():
    tree = again({"a": np.int16(5), "b": np.float32(1.5), "c": np.bool_(True), "d": np.str_("x"), "e": np.complex64(1j),
                  "t": (1, (2,)), "s": np.array([(1, 2.5)], "i2,f4")[0]})
    assert [tree[name] for name in "abcd"] == [5, 1.5, True, "x"] and tree["e"] == 1j and tree["t"] == [1, [2]]
    assert tree["s"].read().tolist() == (1, 2.5)


def test_what_a_tree_cannot_hold():
    """AS-TREE-05, AS-TREE-06"""
    for value in (2**63, -2**63, np.uint64(2**63)):
        with pytest.raises(ValueError, match="IntegerNode"):
            written({"a": value})
    assert int(again({"a": IntegerNode.of(2**63)})["a"]) == 2**63
    for key in (1.5, None, (1, 2), b"a"):
        with pytest.raises(TypeError, match="/x/0: the keys"):
            written({"x": [{key: 1}]})
    for value in (object(), {1, 2}, np.datetime64("2020-01-01"), range(3)):
        with pytest.raises((TypeError, UnsupportedError), match="/x/0"):
            written({"x": [value]})
    for array in (np.array([None]), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "V3"), np.longdouble(1)):
        with pytest.raises((TypeError, UnsupportedError), match="/y"):
            written({"y": array})
    with pytest.raises(TypeError, match="root"):
        written([1])


def test_tags_come_back():
    """AS-TREE-08, AS-ND-21"""
    tree = again({"m": TaggedMapping("asdf://x.org/m-1.0.0", {"a": 1}),
                  "s": TaggedSequence("tag:stsci.edu:asdf/s-1", [1]),
                  "t": TaggedScalar("x", "12"), "p": TaggedMapping("tag:yaml.org,2002:python/object:a.b", {}),
                  "r": Reference({"$ref": "#/m"}, None),
                  "history": TaggedMapping("tag:stsci.edu:asdf/core/history-1.0.0", {"entries": []})})
    assert [tree[name].tag for name in "mstp"] == [
        "asdf://x.org/m-1.0.0", "tag:stsci.edu:asdf/s-1", "x", "tag:yaml.org,2002:python/object:a.b"]
    assert tree["m"] == {"a": 1} and tree["s"] == [1] and tree["t"] == "12" and tree["r"].resolve() is tree["m"]
    assert tree["history"].tag.endswith("history-1.0.0")


def test_the_root():
    tree = again(TaggedMapping("tag:stsci.edu:asdf/core/asdf-1.0.0", {"asdf_library": {"name": "other"}, "a": 1}))
    assert tree.tag.endswith("core/asdf-1.0.0") and tree["asdf_library"]["name"] == "zcore" and tree["a"] == 1
    assert list(tree) == ["asdf_library", "a"]
    for standard, root, array in (("1.0.0", "1.0.0", "1.0.0"), ("1.5.0", "1.1.0", "1.0.0"),
                                  ("1.6.0", "1.1.0", "1.1.0")):
        tree = again({"a": np.zeros(2)}, standard=standard)
        assert tree.tag.endswith(root) and tree["a"].tag.endswith(array)


def test_what_is_shared_is_written_once():
    """AS-TREE-09"""
    shared, array = [1, {"x": 2}], np.arange(3)
    tree = {"a": shared, "b": [shared, shared], "c": array, "d": array, "e": (), "f": ()}
    tree["self"] = tree
    shared.append(shared)
    text, file = written(tree)
    tree = load(text, file.blocks)
    assert tree["self"] is tree and tree["a"] is tree["b"][0] is tree["b"][1] is tree["a"][2]
    assert tree["c"] is tree["d"] and len(file.blocks) == 1
    bomb = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    assert len(written({"a": bomb})[0]) < 10_000
    deep = []
    for _ in range(900):
        deep = [deep]
    assert repr(again({"a": deep})["a"]) == repr(deep)
    for _ in range(100):
        deep = [deep]
    with pytest.raises(ValueError, match="more than 1000 levels"):
        written({"a": deep})


@each("dtype", [[("x", "f4")], [("x", "f4", (2,)), ("y", "S3")], [("x", [("y", "i2")])],
                [("x", "f4", (0,))], "S3", "f8", "?"])
@each("shape", [(0,), (1,), (3,), (0, 2), (2, 0), (2, 3)])
def test_inline_arrays_of_any_shape_come_back(shape, dtype):
    """AS-ND-08"""
    array = np.zeros(shape, dtype)
    text, file = written({"a": Inline(array)})
    found = load(text, file.blocks)["a"].read()
    assert found.shape == shape and found.dtype == array.dtype.newbyteorder("<") and np.array_equal(found, array)


def test_inline_text_takes_no_more_than_its_characters_allow():
    """A long text and many short ones: each would take as much as the long one."""
    long, many = "x" * 10_000, ", ".join(["y"] * 10_000)
    for body in (f"a: !core/ndarray-1.0.0 [{long}, {many}]",
                 f"a: !core/ndarray-1.0.0 {{data: [{many}], datatype: [ucs4, 10000]}}"):
        with pytest.raises(AsdfFormatError, match="bytes, expected at most"):
            load(f"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n---\n{body}\n...\n".encode())["a"].read()


DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", ">c8", "<c16", "S5", "<U3", ">U3",
          [("a", "i1"), ("b", ">f4", (2,)), ("c", [("d", "<i2")])]]


@each("dtype", DTYPES, ids=str)
@each("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 2, 1)])
def test_arrays_come_back(dtype, shape):
    """AS-ND-03, AS-ND-07, AS-ND-08, AS-ND-09, AS-ND-10, AS-BLK-09"""
    dtype = np.dtype(dtype)
    size = math.prod(shape)
    raw = np.arange(size * dtype.itemsize, dtype="u1") % 2
    array = np.zeros(shape, dtype) if dtype.kind in "U" else raw.view(dtype).reshape(shape)
    for made in (array, array.T, array[..., ::-1] if shape else array, np.asfortranarray(array)):
        node = again({"a": made})["a"]
        assert node.dtype == dtype and node.shape == made.shape
        assert node.read().tobytes() == np.ascontiguousarray(made).tobytes()


def test_views_share_a_block():
    """AS-ND-12, AS-ND-22, AS-ND-15"""
    base = np.arange(24, dtype=">f4").reshape(4, 6)
    tree = {"a": base, "b": base[1:3, ::2], "c": base[::-1, ::-1], "d": base.T, "e": base[2], "f": base[:, 5],
            "g": base[1:2, 1:2], "h": base.view(">u4"), "other": np.zeros(2)}
    text, file = written(tree)
    assert [block.data_size for block in file.blocks] == [96, 16]
    found = load(text, file.blocks)
    for name, array in tree.items():
        assert np.array_equal(found[name].read(), array), name
        assert found[name].source == (name == "other")
    assert np.shares_memory(found["a"].read(), found["b"].read())


def test_a_block_is_as_large_as_it_must_be():
    base = np.arange(10_000, dtype="i8")
    for array, n_bytes in ((base[:10], 80), (base[::100], 800), (np.broadcast_to(base[:1], (5, 7)), 280),
                           (base[5:7][::-1], 16), (base.reshape(100, 100).T, 80_000),
                           (base.reshape(100, 100)[:2], 1600)):
        text, file = written({"a": array})
        assert [block.data_size for block in file.blocks] == [n_bytes]
        assert np.array_equal(load(text, file.blocks)["a"].read(), array)
    text, file = written({"a": base[2:5], "b": base[4:8], "c": base[8:9]})
    assert [block.data_size for block in file.blocks] == [48, 8]


def test_pieces_of_padded_types_are_packed():
    dtype = np.dtype({"names": ["a", "b"], "formats": ["i1", "<i4"], "offsets": [0, 4], "itemsize": 12})
    array = np.zeros(3, dtype)
    array["b"] = [1, 2, 3]
    (piece,) = pieces_of([array])
    assert len(piece.memory) == 15 and again({"a": array})["a"].read()["b"].tolist() == [1, 2, 3]


def test_masked_arrays():
    """AS-ND-16"""
    node = again({"a": np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype="i2")})["a"]
    assert node.read().tolist() == [1, None, 3] and node.mask.dtype == "?"
    assert "mask" not in again({"a": np.ma.array([1, 2])})["a"].members
    with pytest.raises(UnsupportedError, match="masks of fields"):
        written({"a": np.ma.array([(1, 2)], dtype="i1,i1", mask=[(True, False)])})


def test_inline_arrays():
    """AS-ND-01, AS-ND-17, AS-ND-18, AS-ND-19"""
    for array in (np.arange(6).reshape(2, 3), np.array(["a", "12"]), np.array([b"ab", b""]), np.array([1j, 2]),
                  np.array([(1, b"x")], [("a", ">i2"), ("b", "S1")]), np.ma.array([1.5, 2], mask=[0, 1]),
                  np.array([True, False]), np.zeros((0, 3)), np.array([1, 2], "u1")):
        text, file = written({"a": Inline(array)})
        found = load(text)["a"]
        assert file.blocks == [] and found.source is None and found.shape == array.shape
        assert found.read().tolist() == array.tolist() or array.dtype.kind == "c"
        assert found.dtype == array.dtype.newbyteorder("<")
        assert again({"a": found})["a"].members == found.members
    assert again({"a": Inline(5)})["a"].source == 0
    assert again({"a": load(b"%YAML 1.1\n---\na: !<tag:stsci.edu:asdf/core/ndarray-1.0.0> [1, 2]\n...")["a"]})[
        "a"].read().tolist() == [1, 2]


def test_a_stream():
    """AS-STR-02, AS-STR-04"""
    text, file = written({"s": Stream((2,), "<i2"), "a": np.zeros(3)})
    assert [(block.is_streamed, block.data_size) for block in file.blocks] == [(False, 24), (True, 0)]
    node = load(text, file.blocks)["s"]
    assert node.members["source"] == -1 and node.members["shape"] == ["*", 2] and node.shape == (0, 2)
    with pytest.raises(ValueError, match="one stream"):
        written({"a": Stream((), "i1"), "b": Stream((), "i1")})


def test_nodes_of_another_file():
    """AS-ND-22, AS-STR-04"""
    text = (b"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n---\n"
            b"a: !core/ndarray-1.0.0 {source: 1, datatype: uint8, byteorder: big, shape: [2, 2], strides: [1, 2]}\n"
            b"b: !core/ndarray-1.1.0 {source: -1, datatype: uint8, byteorder: big, shape: ['*'], mask: 3, unit: x}\n"
            b"c: !core/ndarray-1.1.0 {source: other.asdf, datatype: uint8, byteorder: big, shape: [1]}\n...\n")
    blocks = [MadeBlock(b"unused"), MadeBlock(bytes(range(4)))]
    tree = load(text, blocks)
    text, file = written({"new": np.zeros(1), **tree})
    found = load(text, file.blocks)
    assert len(file.blocks) == 2
    assert found["a"].read().tolist() == [[0, 2], [1, 3]] and found["a"].tag.endswith("1.0.0")
    assert found["b"].read().tolist() == [0, 1, 2, None] and found["b"].members["unit"] == "x"
    assert found["b"].members["shape"] == [4] and found["a"].source == found["b"].source == 1
    assert found["c"].source == "other.asdf"


def test_blocks_may_be_other_files():
    """AS-EXP-01, AS-EXP-02"""
    base = np.arange(4, dtype="i8")
    text = dump({"a": base, "b": base[1:]}, lambda memory: "x0000.asdf")
    tree = load(text)
    assert tree["a"].source == tree["b"].source == "x0000.asdf" and tree["b"].members["offset"] == 8
