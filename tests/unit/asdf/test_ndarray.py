"""Arrays of an ASDF tree: what a node says, and what is read of its block."""
import sys

import numpy as np
import pytest

pytest.importorskip("yaml")

from tests.each import each
from tests.unit.asdf.made_blocks import MadeBlock  # noqa: E402
from zcore.asdf.tree.datatypes import datatype_of, dtype_of  # noqa: E402
from zcore.asdf.tree.inline import array_of, lists_of  # noqa: E402
from zcore.asdf.tree.load import load  # noqa: E402
from zcore.errors import AsdfFormatError, UnsupportedError  # noqa: E402


def tree_of(body, *blocks):
    blocks = [block if isinstance(block, MadeBlock) else MadeBlock(block) for block in blocks]
    return load(f"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n---\n{body}\n...\n".encode(), blocks)


def node_of(members, *blocks, version="1.1.0"):
    return tree_of(f"a: !core/ndarray-{version} {members}", *blocks)["a"]


COUNT = np.arange(24, dtype="<i2").tobytes()


def test_a_block_as_an_array():
    """AS-ND-03, AS-ND-11"""
    node = node_of("{source: 0, datatype: int16, byteorder: little, shape: [2, 3], offset: 4}", COUNT)
    assert (node.shape, node.dtype, node.ndim, node.size, node.nbytes, len(node)) == ((2, 3), "<i2", 2, 6, 12, 2)
    assert (node.source, node.offset, node.strides, node.mask) == (0, 4, (6, 2), None)
    assert node.read().tolist() == [[2, 3, 4], [5, 6, 7]]
    assert node.block.ranges == [(4, 12)]
    assert np.array_equal(np.asarray(node), node.read()) and np.asarray(node, dtype="f8").dtype == "f8"
    with pytest.raises(ValueError, match="copy"):
        np.asarray(node, dtype="f8", copy=False)
    assert repr(node) == f"<NDArrayNode shape=(2, 3), dtype={np.dtype('<i2')}, source=0>"
    assert node.read().flags.writeable


def test_nothing_is_read_before_it_is_asked_for():
    tree = tree_of("a: !core/ndarray-1.0.0 {source: 5, datatype: nonsense, byteorder: little, shape: [1]}\nb: 1")
    assert tree["b"] == 1
    with pytest.raises(UnsupportedError, match="nonsense"):
        _ = tree["a"].dtype
    assert "nonsense" in repr(tree["a"])


@each("members", [
    "{source: 0, datatype: int8, byteorder: little}", "{source: 0, shape: [1], byteorder: little}",
    "{source: 0, data: [1], shape: [1], datatype: int8, byteorder: big}", "{shape: [1], datatype: int8}",
    "{source: 0, datatype: int16, shape: [1]}", "{source: 0, datatype: int16, shape: [1], byteorder: middle}",
    "{source: 0, datatype: int16, shape: [1], byteorder: [big]}", "{source: 1.5, datatype: int8, shape: [1]}",
    "{source: true, datatype: int8, shape: [1]}", "{source: ~, datatype: int8, shape: [1]}",
    "{source: 0, datatype: int8, shape: 3}", "{source: 0, datatype: int8, shape: [-1]}",
    "{source: 0, datatype: int8, shape: [1.0]}", "{source: 0, datatype: int8, shape: [2, '*']}",
    "{source: 0, datatype: int8, shape: [true]}", "{source: 0, datatype: int8, shape: ['x']}",
    "{source: 0, datatype: int8, shape: [1], offset: -1}", "{source: 0, datatype: int8, shape: [1], offset: '0'}",
    "{source: 0, datatype: int8, shape: [2], strides: [0]}", "{source: 0, datatype: int8, shape: [2], strides: 1}",
    "{source: 0, datatype: int8, shape: [2], strides: [1, 1]}",
    "{source: 0, datatype: int8, shape: [2], strides: [1.5]}",
    "{source: 0, datatype: int8, shape: [9223372036854775808]}",
    "{source: 0, datatype: int64, byteorder: big, shape: [4611686018427387904]}",
    "{source: 0, datatype: int8, byteorder: big, shape: [4294967296, 4294967296, 0]}",
    "{source: 0, datatype: int8, shape: [1], mask: true}", "{source: 0, datatype: int8, shape: [1], mask: [true]}",
    "{source: 0, datatype: int8, shape: [1], mask: x}", "{source: 0, datatype: [ascii, 2], shape: [1], mask: 3}",
    "{source: 0, datatype: int8, shape: [2], mask: !core/ndarray-1.0.0 [1, 0, 1]}",
    "&a {source: 0, datatype: int8, shape: [2], mask: *a}",
    # Numbers that no machine integer holds, though they reach no byte; and those of too many digits to be shown.
    f"{{source: 0, datatype: int8, shape: [1], strides: [{2**70}]}}",
    f"{{source: 0, datatype: int8, shape: [1], strides: [-{2**63}]}}",
    f"{{source: 0, datatype: int8, shape: [3], strides: [{'9' * 4300}]}}",
    f"{{source: 0, datatype: int8, shape: [1], offset: {'9' * 4300}}}",
    f"{{source: 0, datatype: float32, byteorder: little, shape: [1], mask: {10**400}}}",
    "{source: 0, datatype: int8, shape: [1], mask: !core/ndarray-1.0.0 [a]}",
    "{source: 0, datatype: int8, shape: [1], mask: !core/ndarray-1.0.0 {data: [[1]], shape: [1], datatype: [int8]}}",
])
def test_members_that_break_a_rule(members):
    """AS-ND-02, AS-ND-03, AS-ND-06, AS-ND-11, AS-ND-12, AS-ND-16"""
    with pytest.raises(AsdfFormatError):
        node_of(members, COUNT).read()


def test_bytes_have_no_order():
    """AS-ND-03, AS-ND-10"""
    for datatype in ("int8", "uint8", "bool8", "[ascii, 1]"):
        assert node_of(f"{{source: 0, datatype: {datatype}, shape: [2]}}", b"\1\1").read().tolist() in (
            [1, 1], [True, True], [b"\1", b"\1"])


def test_block_numbers():
    """AS-ND-04, AS-BLK-10"""
    rest = "datatype: uint8, byteorder: big, shape: [1]}"
    for source, value in ((0, 1), (1, 2), (2, 3), (-1, 3), (-3, 1)):
        assert node_of(f"{{source: {source}, {rest}", b"\1", b"\2", b"\3").read().tolist() == [value]
    for source in (3, -4, 2**70):
        with pytest.raises(AsdfFormatError, match="no block"):
            node_of(f"{{source: {source}, {rest}", b"\1", b"\2", b"\3").read()


def test_shapes():
    """AS-ND-06, AS-BLK-09, AS-ND-13"""
    assert node_of("{source: 0, datatype: int16, byteorder: little, shape: []}", COUNT[2:]).read() == 1
    with pytest.raises(TypeError):
        len(node_of("{source: 0, datatype: int16, byteorder: little, shape: []}", COUNT))
    for shape in ("[0, 3]", "[3, 0]", "[0]", "[5, 0, 1000000]"):
        node = node_of(f"{{source: 0, datatype: int16, byteorder: little, shape: {shape}, offset: 100}}", b"")
        assert node.read().size == 0 and node.read().shape == node.shape
    with pytest.raises(UnsupportedError, match="65 dimensions"):
        node_of(f"{{source: 0, datatype: int8, shape: {[1] * 65}}}", b"1").read()
    assert node_of(f"{{source: 0, datatype: int8, shape: {[1] * 64}}}", b"1").read().ndim == 64


@each("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
                                  "float32", "float64", "complex64", "complex128", "bool8"])
def test_datatypes(name):
    """AS-ND-07, AS-ND-10"""
    for byteorder, sign in (("big", ">"), ("little", "<")):
        dtype = dtype_of(name, byteorder)
        values = np.array([0, 1, 1], dtype)
        assert dtype == np.dtype({"bool8": "?"}.get(name, name)).newbyteorder(sign)
        for version in ("1.0.0", "1.1.0"):
            node = node_of(f"{{source: 0, datatype: {name}, byteorder: {byteorder}, shape: [3]}}", values.tobytes(),
                           version=version)
            assert node.read().dtype == dtype and node.read().tolist() == values.tolist()
        assert datatype_of(dtype)[0] == name
        assert dtype.itemsize == 1 or datatype_of(dtype)[1] == byteorder


def test_texts():
    """AS-ND-08"""
    node = node_of("{source: 0, datatype: [ascii, 4], byteorder: big, shape: [2]}", b"ab\0\0cdef")
    assert node.dtype == "S4" and node.read().tolist() == [b"ab", b"cdef"]
    for byteorder, codec in (("big", "utf-32-be"), ("little", "utf-32-le")):
        node = node_of(f"{{source: 0, datatype: [ucs4, 2], byteorder: {byteorder}, shape: [2]}}",
                       "aü😀\0".encode(codec))
        assert node.read().tolist() == ["aü", "😀"]
    assert dtype_of(["ascii", 0]).itemsize == 0
    assert node_of("{source: 0, datatype: [ascii, 0], shape: [2]}", b"").read().tolist() == [b"", b""]
    # Two fields, not a length: the second one is no integer.
    assert dtype_of([["ascii", 2], ["ascii", 3]]) == np.dtype([("f0", "S2"), ("f1", "S3")])
    assert dtype_of(["int8", "int16"], "big") == np.dtype([("f0", "i1"), ("f1", ">i2")])


def test_structures():
    """AS-ND-09"""
    datatype = [{"name": "a", "datatype": "int8"}, {"datatype": "float32", "byteorder": "little", "shape": [2, 1]},
                {"name": "n", "datatype": [{"name": "x", "datatype": "int16"}, "bool8"]}, ["ascii", 3]]
    expected = np.dtype([("a", "i1"), ("f1", "<f4", (2, 1)), ("n", [("x", ">i2"), ("f1", "?")]), ("f3", "S3")])
    assert dtype_of(datatype, "big") == expected
    assert dtype_of(datatype_of(expected)[0], "little") == expected
    assert expected.itemsize == 1 + 8 + 3 + 3
    values = np.zeros(2, expected)
    values["n"]["x"] = 258
    node = node_of(f"{{source: 0, datatype: {datatype}, byteorder: big, shape: [2]}}", values.tobytes())
    assert node.read()["n"]["x"].tolist() == [258, 258]
    assert dtype_of([{"name": "a", "datatype": "int8", "shape": 3}]) == np.dtype([("a", "i1", (3,))])


@each("datatype", [
    None, 5, {}, {"datatype": "int8"}, [], [{}], ["ascii", -1], ["ucs4", 2**31], ["ascii", 2**40], "ascii",
    [{"name": 5, "datatype": "int8"}], [{"name": "a", "datatype": "int8"}, {"name": "a", "datatype": "int8"}],
    [{"name": "a", "datatype": "int8", "shape": [-1]}], [{"name": "a", "datatype": "int8", "shape": [2**31]}],
    [{"name": "a", "datatype": "int64", "shape": [2**30, 2**30]}], [{"name": "a", "datatype": "int8", "shape": "x"}],
    [{"name": "a", "datatype": "int8", "byteorder": "x"}], [True], ["int8"] * 10_001,
])
def test_datatypes_that_are_none(datatype):
    """AS-ND-07, AS-ND-08, AS-ND-09"""
    with pytest.raises(AsdfFormatError):
        dtype_of(datatype)


def test_datatypes_that_are_not_known():
    """AS-ND-07"""
    for datatype in ("float128", "ASCII", "int7", [{"name": "a", "datatype": "x"}]):
        with pytest.raises(UnsupportedError, match="datatype"):
            dtype_of(datatype)
    nested = "int8"
    for _ in range(40):
        nested = [nested]
    with pytest.raises(AsdfFormatError, match="levels"):
        dtype_of(nested)
    bomb = "int64"
    for _ in range(20):
        bomb = [bomb, bomb, bomb, bomb]
    with pytest.raises(AsdfFormatError):
        dtype_of(bomb)


def test_types_that_asdf_does_not_have():
    for dtype in ("M8[s]", "O", "V5", "longdouble"):
        with pytest.raises(UnsupportedError):
            datatype_of(np.dtype(dtype))
    with pytest.raises(UnsupportedError, match="one behind the other"):
        datatype_of(np.dtype({"names": ["a"], "formats": ["i1"], "itemsize": 4}))


def test_strides():
    """AS-ND-12, AS-ND-14, AS-ND-15"""
    rest = "source: 0, datatype: float64, byteorder: little"
    columns = np.arange(6, dtype="<f8").reshape(2, 3)
    node = node_of(f"{{{rest}, shape: [2, 3], strides: [8, 16]}}", columns.tobytes("F"))
    assert np.array_equal(node.read(), columns)
    node = node_of(f"{{{rest}, shape: [3], strides: [-8], offset: 16}}", columns.tobytes())
    assert node.read().tolist() == [2, 1, 0]
    image = np.arange(1024 * 1024, dtype="<f8").reshape(1024, 1024)
    block = MadeBlock(image.tobytes())
    node = node_of(f"{{{rest}, shape: [256, 256], strides: [8192, 8], offset: 2099200}}", block)
    assert np.array_equal(node.read(), image[256:512, 256:512])
    assert block.ranges == [(2099200, 255 * 8192 + 256 * 8)]


@each(("shape", "strides", "offset", "fits"), [
    ([24], [2], 0, True), ([25], [2], 0, False), ([24], [2], 1, False), ([24], [-2], 46, True), ([24], [-2], 44, False),
    ([24], [-2], 47, False), ([2, 3], [24, 8], 0, True), ([2, 3], [24, -8], 16, True), ([2, 3], [24, -8], 14, False),
    ([2, 3], [-24, 8], 24, True), ([2, 3], [-24, 8], 22, False), ([2], [2**62], 0, False), ([2], [-2**62], 0, False),
    ([3], [2**63], 0, False), ([1], [2**62], 46, sys.maxsize > 2**32), ([1], [2], 47, False), ([1], [2], 2**64, False),
    ([0], [2**70], 2**70, True), ([2**40, 2**20], [1, 1], 0, False), ([3, 3], [2, 2], 0, True),
    ([47], [1], 0, True), ([48], [1], 0, False),
])
def test_every_byte_lies_in_the_block(shape, strides, offset, fits):
    """AS-ND-13"""
    for is_compressed in (False, True):
        node = node_of(f"{{source: 0, datatype: int16, byteorder: little, shape: {shape}, strides: {strides}, "
                       f"offset: {offset}}}", MadeBlock(COUNT, is_compressed))
        if not fits:
            with pytest.raises(AsdfFormatError, match="lie at bytes|more than"):
                node.read()
            continue
        array = node.read()
        for index in np.ndindex(*shape):
            at = offset + sum(i * stride for i, stride in zip(index, strides, strict=True))
            assert array[index] == np.frombuffer(COUNT[at:at + 2], "<i2")[0]
        assert array.flags.writeable == (shape not in ([3, 3], [47]))


def test_streams():
    """AS-STR-04, AS-ND-06"""
    rest = "datatype: int16, byteorder: little"
    block = MadeBlock(COUNT, is_streamed=True)
    node = node_of(f"{{source: -1, {rest}, shape: ['*', 5]}}", b"x", block)
    assert node.shape == (4, 5) and node.read()[3].tolist() == [15, 16, 17, 18, 19] and node.is_streamed
    block.data += bytes(10)
    block.data_size += 10
    assert node.shape == (5, 5)
    assert node_of(f"{{source: 0, {rest}, shape: ['*'], offset: 44}}", block).shape == (7,)
    assert node_of(f"{{source: 0, {rest}, shape: ['*'], offset: 99}}", block).shape == (0,)
    assert node_of(f"{{source: 0, {rest}, shape: ['*', 0]}}", block).read().shape == (0, 0)
    node = node_of(f"{{source: 0, {rest}, shape: ['*', 2], strides: [12, 2]}}", MadeBlock(COUNT[:40]))
    assert node.read().tolist() == [[0, 1], [6, 7], [12, 13], [18, 19]]
    assert node_of(f"{{source: 0, {rest}, shape: ['*', 2], strides: [-4, 2]}}", block).shape == (0, 2)


def test_arrays_of_one_block_share_its_memory():
    """AS-ND-22"""
    for is_compressed in (False, True):
        rest = "source: 0, datatype: int16, byteorder: little"
        tree = tree_of(f"a: !core/ndarray-1.0.0 {{{rest}, shape: [24]}}\n"
                       f"b: !core/ndarray-1.0.0 {{{rest}, shape: [4], offset: 8}}\nc: !core/ndarray-1.0.0 [1]",
                       MadeBlock(COUNT, is_compressed))
        whole, part = tree["a"].read(), tree["b"].read()
        assert np.shares_memory(whole, part)
        whole[4] = 100
        assert part[0] == 100 and len(tree["a"].block.ranges) == 1


def test_truth_values_of_any_byte():
    """AS-ND-07: NumPy computes wrong values of others than 0 and 1."""
    node = node_of("{source: 0, datatype: bool8, byteorder: big, shape: [4]}", b"\0\1\2\xff")
    assert node.read().sum() == 3
    node = node_of("{source: 0, datatype: [bool8, int8], byteorder: big, shape: [2]}", b"\2\2\0\2")
    assert node.read()["f0"].view("u1").tolist() == [1, 0] and node.read()["f1"].tolist() == [2, 2]


def test_masks():
    """AS-ND-16"""
    rest = "source: 0, datatype: int16, byteorder: little, shape: [2, 2]"
    assert node_of(f"{{{rest}, mask: 2}}", COUNT).read().tolist() == [[0, 1], [None, 3]]
    assert node_of(f"{{{rest}, mask: 2.0}}", COUNT).read().tolist() == [[0, 1], [None, 3]]
    assert node_of(f"{{{rest}, mask: !core/ndarray-1.0.0 [[0, 5], [0, 0]]}}", COUNT).read().tolist() == [
        [0, None], [2, 3]]
    assert node_of(f"{{{rest}, mask: !core/ndarray-1.0.0 [true, false]}}", COUNT).read().tolist() == [
        [None, 1], [None, 3]]
    mask = "!core/ndarray-1.0.0 {source: 1, datatype: bool8, byteorder: big, shape: [2, 2]}"
    node = node_of(f"{{{rest}, mask: {mask}}}", COUNT, b"\0\1\1\0")
    assert node.read().tolist() == [[0, None], [None, 3]] and np.asarray(node).tolist() == [[0, 1], [2, 3]]
    values = np.array([1, np.nan, 3], "<f4")
    node = node_of("{source: 0, datatype: float32, byteorder: little, shape: [3], mask: .nan}", values.tobytes())
    assert node.read().mask.tolist() == [False, True, False]
    values = np.array([1, 2 + 1j], "<c8")
    node = node_of("{source: 0, datatype: complex64, byteorder: little, shape: [2], mask: !core/complex-1.0.0 2+1i}",
                   values.tobytes())
    assert node.read().tolist() == [1, None]
    tree = tree_of(f"a: !core/ndarray-1.0.0 {{{rest}, mask: {{$ref: '#/m'}}}}\nm: !core/ndarray-1.0.0 [[1, 0], [0, 0]]",
                   COUNT)
    assert tree["a"].read().tolist() == [[None, 1], [2, 3]]


# elements in the tree

@each(("text", "dtype", "values"), [
    ("[1, 2]", "i8", [1, 2]), ("[[1, 2], [3, 4.5]]", "f8", [[1.0, 2.0], [3.0, 4.5]]),
    ("[true, false]", "?", [True, False]),
    ("[true, 2]", "i8", [1, 2]), ("[a, bcd]", "U3", ["a", "bcd"]), ("['']", "U1", [""]), ("[]", "f8", []),
    ("[[], []]", "f8", [[], []]), ("[1, ~]", "i8", [1, None]), ("[~, b]", "U1", [None, "b"]), ("[~]", "f8", [None]),
    ("[1, !core/complex-1.0.0 2i]", "c16", [1 + 0j, 2j]), ("[.nan, .inf]", "f8", [np.nan, np.inf]),
    ("[[[1]]]", "i8", [[[1]]]), ("[-9223372036854775808]", "i8", [-2**63]),
])
def test_types_of_inline_data(text, dtype, values):
    """AS-ND-01, AS-ND-17"""
    for form in (text, f"{{data: {text}}}"):
        node = node_of(form)
        assert node.dtype == dtype and node.source is node.block is node.strides is node.offset is None
        assert repr(node.read().tolist()) == repr(values)


@each("text", [
    "[[1], 2]", "[1, [2]]", "[[1, 2], [3]]", "[a, 1]", "[a, true]", "[{}]", "[1, {a: 1}]", "[2020-01-02]",
    "[9223372036854775808]", "[!!binary YWJj]", "{data: {a: 1}}",
    "{data: [1, 2], shape: [3]}", "{data: [1, 2], shape: [2, 1]}", "{data: [[1, 2]], shape: ['*', 3]}",
    "{data: [300], datatype: uint8}", "{data: [-1], datatype: uint8}", "{data: [1.5], datatype: int8}",
    "{data: [abc], datatype: [ascii, 2]}", "{data: [ü], datatype: [ascii, 2]}", "{data: [abc], datatype: [ucs4, 2]}",
    "{data: [1], datatype: [ascii, 2]}", "{data: [a], datatype: int8}", "{data: [2], datatype: bool8}",
    "{data: [[1, 2]], datatype: [int8]}", "{data: [[1, a]], datatype: [int8, int8]}",
    "{data: [[1, ~]], datatype: [int8, int8]}", "{data: [[1, 2], ~], datatype: [int8, int8]}",
    "[[1, 2], &a [*a, *a]]",
])
def test_inline_data_that_break_a_rule(text):
    """AS-ND-17, AS-ND-18, AS-ND-19"""
    with pytest.raises(AsdfFormatError):
        node_of(text).read()


@each(("text", "dtype", "values"), [
    ("{data: [1, 2], datatype: float32}", "<f4", [1, 2]), ("{data: [1, 2], shape: [2], datatype: uint8}", "u1", [1, 2]),
    ("{data: [[1], [2]], shape: ['*', 1]}", "i8", [[1], [2]]), ("{data: [], shape: [0, 3]}", "f8", None),
    ("{data: [ab, c], datatype: [ascii, 4]}", "S4", [b"ab", b"c"]), ("{data: [1, ~], datatype: int8}", "i1", [1, None]),
    ("{data: [ab], datatype: [ucs4, 2], byteorder: big, strides: [0], offset: -1}", ">U2", ["ab"]),
    ("{data: [[1, a], [2, b]], datatype: [{name: x, datatype: int8}, [ascii, 1]]}", "i1,S1", [(1, b"a"), (2, b"b")]),
    ("{data: [[[1, [2, 3]]]], datatype: [int8, {datatype: int16, shape: [2]}], shape: [1, 1]}", None, None),
    ("{data: [[1, [2, x]]], datatype: [int8, {datatype: [int8, [ascii, 1]]}]}", None, [(1, (2, b"x"))]),
    ("{data: 5}", "i8", 5), ("{data: 5, shape: [], datatype: int8}", "i1", 5),
])
def test_inline_data_with_a_type(text, dtype, values):
    """AS-ND-18, AS-ND-19"""
    array = node_of(text).read()
    if dtype not in (None, "i1,S1"):
        assert array.dtype == dtype
    assert values is None or array.tolist() == values
    assert "shape: [0, 3]" not in text or array.shape == (0, 3)
    assert "shape: [1, 1]" not in text or (array.shape == (1, 1) and array["f1"].tolist() == [[[2, 3]]])


def test_inline_data_do_not_multiply():
    rows = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 8)}]\n" for i in range(1, 20))
    with pytest.raises(AsdfFormatError, match="more elements than the tree has bytes"):
        tree_of(rows + "x: !core/ndarray-1.0.0 *a19".replace("*a19", "[*a19]"))["x"].read()
    empty = rows.replace("1, 1, 1, 1, 1, 1, 1, 1", "")
    with pytest.raises(AsdfFormatError, match="more elements than the tree has bytes"):
        tree_of(empty + "x: !core/ndarray-1.0.0 [*a19]")["x"].read()
    deep = "[" * 100 + "1" + "]" * 100
    with pytest.raises(AsdfFormatError, match="dimensions"):
        node_of(deep).read()


def test_lists_of_an_array():
    for array in (np.arange(6).reshape(2, 3), np.array(["a", "bc"]), np.array([b"x"]), np.array([1j, 2]),
                  np.ma.array([1, 2], mask=[0, 1]), np.array([True])):
        again = array_of(lists_of(array), array.dtype, array.shape, 100)
        assert np.ma.allequal(again, array) if array.dtype.kind not in "SU" else again.tolist() == array.tolist()
        assert again.dtype == array.dtype and sys.getsizeof(again)


def test_inline_data_take_no_more_memory_than_their_text_lets_expect():
    """Each text of an array takes as much as the longest; an alias of a record stands for all of its values."""
    with pytest.raises(AsdfFormatError, match="at most"):
        array_of(["x" * 20000, *["b"] * 20000], None, None, 10**6)
    texts = np.dtype([(f"f{i}", "U8000000") for i in range(8)])
    with pytest.raises(AsdfFormatError, match="at most 201326592 bytes of memory, found some 288000[0-9]+"):
        array_of([["a"] * 8], texts, None, 1000)
    with pytest.raises(AsdfFormatError, match="at most 201326592 bytes of memory, found some 240000000"):
        array_of([[1.5] * 1000] * 10000, None, None, 10**7)
    record = [[0] * 100]
    dtype = np.dtype([("a", "i1", (100,))])
    assert array_of([record] * 10, dtype, (10,), 1000)["a"].shape == (10, 100)
    with pytest.raises(AsdfFormatError, match="more elements"):
        array_of([record] * 11, dtype, (11,), 1000)
    with pytest.raises(AsdfFormatError, match="more elements"):
        array_of([[record]] * 11, np.dtype([("b", dtype)]), (11,), 1000)
