"""Reference sets in Parquet: what their columns say, which files are read, and what is refused."""
import itertools
import json
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import zcore
from tests.both_ways import brought
from zcore.errors import ReferenceFormatError, ReferenceTargetError, UnsupportedError
from zcore.stores.reference.parquet import ParquetTable
from zcore.stores.reference.store import ReferenceStore

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ARRAY = {"zarr_format": 2, "shape": [50], "chunks": [10], "dtype": "|u1", "compressor": None, "filters": None,
         "fill_value": 7, "order": "C"}
GROUP = {"zarr_format": 2}


def write_set(folder, documents, record_size, **more):
    """Write the metadata of a set and return its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"metadata": documents, "record_size": record_size, **more}
    (folder / ".zmetadata").write_text(json.dumps(document))
    return folder


def write_file(folder, name, *, types=None, **columns):
    """Write a file of references."""
    made = {column: pyarrow.array(values, (types or {}).get(column)) for column, values in columns.items()}
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(made), folder / name, compression="zstd")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(range(200)))
    return tmp_path


def small_set(folder, record_size=2, **columns):
    """A set of one array of five chunks, of which the columns of the first file are given."""
    refs = write_set(folder / "refs.parq", {".zgroup": GROUP, "x/.zarray": ARRAY}, record_size)
    write_file(refs, "x/refs.0.parq", **columns)
    return refs


def test_rows(folder):
    """RF-DOC-04, RF-PQ-01 to RF-PQ-06, RF-PQ-08, RF-PQ-09: data, a part, nothing, a whole file, no bytes."""
    refs = write_set(folder / "refs.parq", {".zgroup": GROUP, "x/.zarray": {**ARRAY, "shape": [70]},
                                            "x/.zattrs": {"a": float("nan")}}, 3)
    (folder / "whole.bin").write_bytes(b"whole file")
    write_file(refs, "x/refs.0.parq", path=["data.bin", None, "data.bin"], offset=[20, 0, 5], size=[10, 0, 0],
               raw=[None, b"base64:AAA", None])
    write_file(refs, "x/refs.1.parq", path=["whole.bin", None], offset=[0, 3], size=[0, 4])
    for store in (ReferenceStore(refs), ReferenceStore(str(refs) + "/"), ReferenceStore(refs, read_only=False)):
        found = {f"x/{i}": store.get(f"x/{i}") for i in range(8)}
        assert found == {"x/0": bytes(range(20, 30)), "x/1": b"base64:AAA", "x/2": b"", "x/3": b"whole file",
                         "x/4": None, "x/5": None, "x/6": None, "x/7": None}
        assert store.get("x/.zattrs") == b'{"a":NaN}' and store.getsize("x/0") == 10 and store.getsize("x/9") is None
        assert store.get("x/0", (8, 5)) == bytes([28, 29]) and store.getsize("x/3") == 10 and not store.exists("x/5")
        assert list(store.list()) == [".zgroup", "x/.zarray", "x/.zattrs", "x/0", "x/1", "x/2", "x/3"]
        assert store.list_dir("")[:2] == ([".zgroup"], ["x/"])
        assert store.list_dir("y/")[:2] == store.list_dir("x/1/")[:2] == ([], [])
        assert store.to_v0() == {
            ".zgroup": '{"zarr_format":2}', "x/.zarray": store.get("x/.zarray").decode(), "x/.zattrs": '{"a":NaN}',
            "x/0": ["data.bin", 20, 10], "x/1": "base64:YmFzZTY0OkFBQQ==", "x/2": ["data.bin", 5, 0],
            "x/3": ["whole.bin"]}
        for key in ("x/00", "x/0.0", "x/-1", "x/a", "x", "x/0/0", "y/0", "x/10", "x/99999999999999999999"):
            assert store.get(key) is None
    assert repr(ReferenceStore(refs)).endswith("in Parquet)") and "7 references" in repr(store)
    group = zcore.open(refs)
    with pytest.raises(zcore.ChunkError):           # no bytes are no chunk
        group["x"][20:30]
    (folder / "whole.bin").write_bytes(b"w" * 10)
    for missing in ("fill", "raise"):
        array = zcore.open(refs, path="x", missing=missing)
        assert array[:10].tolist() == list(range(20, 30)) and bytes(array[10:20]) == b"base64:AAA"
        assert bytes(array[30:40]) == b"w" * 10
        if missing == "fill":
            assert (array[40:] == 7).all() and array.nchunks_initialized == 4
        else:
            with pytest.raises(zcore.ChunkError):
                array[40:]


@pytest.mark.thinned(3, "separator", "path", "record_size")
@pytest.mark.parametrize("separator", [".", "/", None])
@pytest.mark.parametrize("path", ["", "x/", "deep/er/x/"])
@pytest.mark.parametrize("record_size", [1, 5, 7, 1000])
def test_keys_and_order(folder, separator, path, record_size):
    """RF-PQ-03, RF-PQ-06, RF-PQ-07, RF-STO-01: numbers are those of the grid in C order, however keys are joined."""
    values = np.arange(3 * 4 * 2, dtype="|u1").reshape(3, 4, 2)
    document = {**ARRAY, "shape": [3, 4, 2], "chunks": [1, 1, 1]}
    if separator is not None:
        document["dimension_separator"] = separator
    refs = write_set(folder / "set", {path + ".zarray": document, path + ".zattrs": {}}, record_size)
    for file in range(-(-24 // record_size)):
        numbers = list(range(file * record_size, min(24, (file + 1) * record_size)))
        if 12 in numbers and record_size == 1:
            continue                                # a file that is missing
        write_file(refs, f"{path}refs.{file}.parq", path=[None if n == 12 else "data.bin" for n in numbers],
                   offset=numbers, size=[1] * len(numbers))
    store = ReferenceStore(refs)
    expected = values.copy()
    expected[np.unravel_index(12, values.shape)] = 7
    for opened in (refs, brought(ReferenceStore)(refs)):
        array = zcore.open(opened, path=path.strip("/"))
        np.testing.assert_array_equal(array[...], expected)
        np.testing.assert_array_equal(array[::-2, 1:, 1], expected[::-2, 1:, 1])
        np.testing.assert_array_equal(array.oindex[[2, 0], [3, 1, 1], :], expected[np.ix_([2, 0], [3, 1, 1], [0, 1])])
        np.testing.assert_array_equal(array[[2, 0, 1], :, [1, 0, 1]], expected[[2, 0, 1], :, [1, 0, 1]])
    sign = separator or "."
    keys = {path + sign.join(map(str, coords)) for coords in itertools.product(range(3), range(4), range(2))}
    keys.remove(path + sign.join("120") if separator != "/" else path + "1/2/0")
    assert list(store.list()) == sorted([*keys, path + ".zarray", path + ".zattrs"])
    assert {key: store.get(key) for key in keys} == {
        key: bytes([int(np.ravel_multi_index(tuple(map(int, key[len(path):].split(sign))), values.shape))])
        for key in keys}
    assert array.nchunks_initialized == 23
    if separator == "/":
        assert store.list_dir(path + "1/")[:2] == ([], [f"{path}1/{i}/" for i in range(4)])
        assert store.list_dir(path + "1/2/")[:2] == ([f"{path}1/2/1"], [])
        for nowhere in ("01/", "3/", "1/2/1/", "a/"):
            assert store.list_dir(path + nowhere)[:2] == ([], [])
    written = json.loads(json.dumps(store.to_v0()))
    np.testing.assert_array_equal(zcore.open(ReferenceStore(written, base=folder), path=path.strip("/"))[...], expected)


def test_no_dimensions_and_none_to_count(folder):
    """RF-PQ-07: of no dimensions is one chunk; of a dimension without elements is none."""
    refs = write_set(folder / "refs.parquet", {"a/.zarray": {**ARRAY, "shape": [], "chunks": []},
                                               "b/.zarray": {**ARRAY, "shape": [0, 3], "chunks": [1, 1]}}, 10**9)
    for name in "ab":
        write_file(refs, f"{name}/refs.0.parq", path=["data.bin"] * 2, offset=[42, 43], size=[1, 1])
    assert zcore.open(refs, path="a")[()] == 42 and zcore.open(refs, path="b")[...].shape == (0, 3)
    assert list(ReferenceStore(refs).list()) == ["a/.zarray", "a/0", "b/.zarray"]
    assert ReferenceStore(refs).get("b/0.0") is None


@pytest.mark.parametrize("kind", ["plain", "large", "dictionary", "nulls", "pandas", "narrow"])
def test_columns_as_writers_have_them(folder, kind):
    """RF-PQ-04, RF-PQ-05, RF-PQ-09: texts plain or by dictionary, columns of nothing, NaN for null."""
    path, raw, whole = ["data.bin", None], [None, b"\0\xff\n"], {"offset": pyarrow.int64(), "size": pyarrow.int64()}
    types = {
        "plain": {"path": pyarrow.string(), "raw": pyarrow.binary(), **whole},
        "large": {"path": pyarrow.large_string(), "raw": pyarrow.large_binary(), **whole},
        "dictionary": {"path": pyarrow.dictionary(pyarrow.int8(), pyarrow.string()),
                       "raw": pyarrow.dictionary(pyarrow.int32(), pyarrow.binary()), **whole},
        "nulls": {"path": pyarrow.string(), "raw": pyarrow.null(), **whole},
        "pandas": {"path": pyarrow.string(), "raw": pyarrow.float64(), **whole},
        "narrow": {"path": pyarrow.string(), "raw": pyarrow.binary(), "offset": pyarrow.uint8(),
                   "size": pyarrow.uint32()},
    }[kind]
    if kind in ("nulls", "pandas"):
        raw = [None, None] if kind == "nulls" else [float("nan"), None]
    refs = small_set(folder, types=types, path=path, offset=[1, 0], size=[2, 0], raw=raw)
    store = ReferenceStore(refs)
    assert store.get("x/0") == b"\1\2"
    assert store.get("x/1") == (None if kind in ("nulls", "pandas") else b"\0\xff\n")


def test_columns_that_are_not_there(folder):
    """RF-PQ-04: a column that is absent is null, or 0; what is beside the four is not looked at."""
    small_set(folder, raw=[b"a", None], other=["text", "text"])
    assert ReferenceStore(folder / "refs.parq").get("x/0") == b"a"
    small_set(folder, path=["data.bin", None])
    assert ReferenceStore(folder / "refs.parq").getsize("x/0") == 200
    small_set(folder, types={"offset": pyarrow.int64()}, path=["data.bin", None], offset=[3, None], size=[4, None])
    assert ReferenceStore(folder / "refs.parq").get("x/0") == bytes(range(3, 7))
    small_set(folder, other=[1, 2])
    with pytest.raises(ReferenceFormatError, match="expected columns"):
        ReferenceStore(folder / "refs.parq").get("x/0")
    for columns in ({"url": ["data.bin"], "offset": [3], "size": [4]}, {"raw": [b"a", None], "size": [1, 0]}):
        small_set(folder, **columns)
        with pytest.raises(ReferenceFormatError, match="expected a column 'path'"):
            zcore.open(folder / "refs.parq", path="x")[...]


def test_several_row_groups(folder):
    """RF-PQ-03: rows are counted through the file, and each group has a dictionary of its own."""
    refs = small_set(folder, 10, path=["data.bin"], offset=[0], size=[1])
    table = pyarrow.table({"path": ["data.bin", "other.bin", None, "data.bin", None], "offset": [1, 2, 0, 4, 0],
                           "size": [1, 1, 0, 1, 0], "raw": [None, None, b"raw", None, b"other"]})
    (folder / "other.bin").write_bytes(b"abc")
    parquet.write_table(table, refs / "x/refs.0.parq", row_group_size=2)
    store = ReferenceStore(refs)
    assert [store.get(f"x/{i}") for i in range(5)] == [b"\1", b"c", b"raw", b"\4", b"other"]


@pytest.mark.parametrize(("columns", "message"), [
    ({"path": ["a", "a"], "offset": [-5, 0], "size": [1, 1]}, "offset from 0 on, found -5"),
    ({"path": ["a", "a"], "offset": [0, 0], "size": [1, -1]}, "row 1: expected a size from 0 on, found -1"),
    ({"path": ["a", None], "offset": [2**63 - 1, 0], "size": [1, 0]}, r"before byte 2\*\*63"),
    ({"path": ["a", "a"], "offset": [0.0, 1.0], "size": [1, 1]}, "expected int64, found double"),
    ({"path": ["a", "a"], "offset": ["0", "1"], "size": [1, 1]}, "expected int64, found string"),
    ({"path": ["a", "a"], "offset": [True, False], "size": [1, 1]}, "expected int64, found bool"),
    ({"path": ["a", "a"], "offset": [None, 1], "size": [1, 1]}, "row 0: expected an offset beside"),
    ({"path": ["a", "a"], "offset": [0, 1], "size": [None, 1]}, "row 0: expected a size beside"),
    ({"path": [1, 2], "offset": [0, 1], "size": [1, 1]}, "'path': expected texts, found int64"),
    ({"path": [b"a", b"b"], "offset": [0, 1], "size": [1, 1]}, "'path': expected texts"),
    ({"path": [["a"], ["b"]], "offset": [0, 1], "size": [1, 1]}, "'path': expected texts"),
    ({"path": [1.5, None], "offset": [0, 1], "size": [1, 1]}, "'path': expected texts, found double"),
    ({"raw": ["text", None]}, "'raw': expected bytes"),
    ({"raw": [b"a"] * 3}, "expected 2 rows at the most, found 3"),
])
def test_columns_that_are_wrong(folder, columns, message):
    """RF-PQ-03, RF-PQ-04, RF-PQ-05, RF-PQ-09: and the file is named."""
    refs = small_set(folder, **columns)
    for read in (lambda: ReferenceStore(refs).get("x/0"), lambda: zcore.open(refs, path="x")[...],
                 lambda: ReferenceStore(refs).to_v0(), lambda: list(ReferenceStore(refs).list())):
        with pytest.raises(ReferenceFormatError, match=message) as caught:
            read()
        assert "x/refs.0.parq" in str(caught.value) and caught.value.document == "x/refs.0.parq"


def test_numbers_beyond_int64(folder):
    """RF-PQ-04"""
    refs = small_set(folder, types={"offset": pyarrow.uint64()}, path=["a", "a"], offset=[2**63, 0], size=[1, 1])
    with pytest.raises(ReferenceFormatError, match="refs.0.parq"):
        ReferenceStore(refs).get("x/0")


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + bytes(100) + b"PAR1", b"\0" * 1000])
def test_files_that_are_no_parquet(folder, raw):
    """RF-PQ-01"""
    refs = small_set(folder, raw=[b"a"])
    (refs / "x/refs.0.parq").write_bytes(raw)
    with pytest.raises(ReferenceFormatError, match="x/refs.0.parq"):
        ReferenceStore(refs).get("x/0")


def test_truncated_files(folder):
    """RF-PQ-01"""
    refs = small_set(folder, path=["data.bin", None], offset=[1, 0], size=[2, 0], raw=[None, b"abc"])
    whole = (refs / "x/refs.0.parq").read_bytes()
    for n in range(0, len(whole), 97):
        (refs / "x/refs.0.parq").write_bytes(whole[:n])
        with pytest.raises(ReferenceFormatError):
            ReferenceStore(refs).get("x/0")


@pytest.mark.parametrize(("document", "message"), [
    ("", "JSON"), ("[]", "an object"), ("{}", "'metadata'"), ('{"metadata": [], "record_size": 1}', "'metadata'"),
    ('{"metadata": {}}', "found None"), ('{"metadata": {}, "record_size": 0}', "found 0"),
    ('{"metadata": {}, "record_size": -1}', "found -1"), ('{"metadata": {}, "record_size": 1.0}', "found 1.0"),
    ('{"metadata": {}, "record_size": true}', "found True"), ('{"metadata": {}, "record_size": "1"}', "found '1'"),
    ('{"metadata": {}, "record_size": 9223372036854775808}', "below 2"),
    ('{"metadata": {}, "metadata": {}, "record_size": 1}', "twice"),
    ('{"metadata": {".zgroup": "{}"}, "record_size": 1}', "expected an object, found '{}'"),
    ('{"metadata": {"../.zgroup": {}}, "record_size": 1}', "is not a key"),
    ('{"metadata": {"/etc/.zarray": {}}, "record_size": 1}', "is not a key"),
    ('{"metadata": {"a//.zarray": {}}, "record_size": 1}', "is not a key"),
    ('{"metadata": {"\\ud800/.zarray": {}}, "record_size": 1}', "is not a key"),
    ('{"metadata": ' + '{"a": ' * 10**5, "nested"),
])
def test_metadata_that_are_none(tmp_path, document, message):
    """RF-PQ-01, RF-PQ-02, RF-PQ-08"""
    (tmp_path / "refs.parq").mkdir()
    (tmp_path / "refs.parq/.zmetadata").write_text(document)
    with pytest.raises(ReferenceFormatError, match=message) as caught:
        ReferenceStore(tmp_path / "refs.parq")
    assert ".zmetadata" in str(caught.value)


@pytest.mark.parametrize(("changes", "message"), [
    ({"zarr_format": 3}, "zarr_format"), ({"shape": None}, "'shape'"), ({"shape": [-1]}, "'shape'"),
    ({"shape": [1.0]}, "'shape'"), ({"shape": [True]}, "'shape'"), ({"shape": [2**63]}, "'shape'"),
    ({"chunks": [0]}, "'chunks'"), ({"chunks": [1, 1]}, "dimensions"), ({"chunks": "1"}, "'chunks'"),
    ({"shape": [2**40, 2**40], "chunks": [1, 1]}, "chunks or more"), ({"dimension_separator": "-"}, "separator"),
    ({"dimension_separator": ["."]}, "separator"),
    ({"shape": [1] * 65, "chunks": [1] * 65}, "'shape'"),
])
def test_arrays_that_are_none(folder, changes, message):
    """RF-PQ-02, RF-PQ-03: the others of the set can be read all the same."""
    refs = write_set(folder / "refs.parq", {"x/.zarray": {**ARRAY, **changes}, "y/.zarray": ARRAY}, 2)
    write_file(refs, "y/refs.0.parq", raw=[b"0123456789"])
    with pytest.raises(ReferenceFormatError, match=message):
        ReferenceStore(refs).get("x/0")
    assert bytes(zcore.open(refs, path="y")[:10]) == b"0123456789"


def test_documents_of_other_kinds(folder):
    """RF-PQ-02: of Zarr v3 are refused by name, others are ignored with a warning."""
    refs = write_set(folder / "refs.parq", {"zarr.json": {"zarr_format": 3, "node_type": "group"}}, 2)
    with pytest.raises(UnsupportedError, match="Zarr v2"):
        ReferenceStore(refs)
    refs = write_set(folder / "refs.parq", {".zgroup": GROUP, "x/0": {"a": 1}}, 2)
    with pytest.warns(UserWarning, match="'x/0'"):
        store = ReferenceStore(refs)
    assert list(store.list()) == [".zgroup"]


def test_a_directory_without_metadata(tmp_path):
    """RF-DOC-04"""
    for name in ("", "gone.parq", "gone.parquet", "gone/"):
        with pytest.raises(ReferenceFormatError, match=r"\.zmetadata"):
            ReferenceStore(f"{tmp_path}/{name}")
    (tmp_path / "file.parq").write_bytes(b"PAR1")
    with pytest.raises(zcore.StoreError):
        ReferenceStore(tmp_path / "file.parq")
    with pytest.raises(ValueError, match="in Parquet"):
        ReferenceStore(tmp_path, target="data.bin")


def test_any_directory_may_be_a_set(folder):
    """RF-DOC-04: one without a suffix is found by its metadata; consolidated metadata of Zarr v2 are no set."""
    refs = write_set(folder / "some.data", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", raw=[b"0123456789"])
    for opened in (zcore.open(refs), zcore.open(f"file://{refs}"), zcore.open_group(refs)):
        assert isinstance(opened.store, ReferenceStore) and bytes(opened["x"][:10]) == b"0123456789"
    assert zcore.open(refs, path="x").shape == (50,)
    zcore.create_array(folder / "real", shape=3, dtype="u1")[:] = 1
    os.rename(folder / "real", folder / "real.parq")
    assert zcore.open(folder / "real.parq")[:].tolist() == [1] * 3
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open(refs, mode="r+")
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open(refs, path="y")
    for content in ('{"zarr_consolidated_format": 1, "metadata": {}}', '{"a": "\\"record_size\\""', "[" * 10**5,
                    '["record_size"]'):
        (refs / ".zmetadata").write_text(content)
        with pytest.raises(zcore.NodeNotFoundError):
            zcore.open(refs)


def test_a_set_without_a_suffix_is_verified(folder):
    refs = write_set(folder / "some.data", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", raw=[b"0123456789"])
    report = zcore.verify(refs)
    assert report.ok and (report.n_arrays, report.n_objects) == (1, 1)
    with pytest.raises(zcore.ReadOnlyError):
        zcore.verify(refs, repair=True)
    write_file(refs, "x/refs.0.parq", path=["data.bin"], offset=[199], size=[10])
    assert {problem.key for problem in zcore.verify(refs).problems} == {"x/0"}
    (refs / ".zmetadata").write_text('{"record_size": 0, "metadata": {}}')
    with pytest.raises(ReferenceFormatError):
        zcore.verify(refs)


CREATIONS = {
    "open": lambda place, **format: zcore.open(place, "a", **format),
    "open_group": lambda place, **format: zcore.open_group(place, "a", **format),
    "open_array": lambda place, **format: zcore.open_array(place, "w-", shape=3, dtype="u1", **format),
    "x": lambda place, **format: zcore.open_group(place, "x", **format),
    "create_group": lambda place, **format: zcore.create_group(place, **format),
    "create_array": lambda place, **format: zcore.create_array(place, shape=3, dtype="u1", **format),
    "below": lambda place, **format: zcore.create_array(
        place, name="y/z", shape=3, dtype="u1", overwrite=True, **format),
    "hierarchy": lambda place, **format: zcore.create_hierarchy(
        store=place, nodes={"y": zcore.group(**format).metadata}),
    "save": lambda place, **format: zcore.save(place, np.arange(3), **format),
}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["some.data", "refs.parq"])
@pytest.mark.parametrize("creation", CREATIONS)
def test_no_node_is_made_in_front_of_a_set(folder, creation, name, zarr_format):
    """A document beside that of the set would have hidden it."""
    refs = write_set(folder / name, {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", raw=[b"0123456789"])
    before = sorted(refs.rglob("*"))
    with pytest.raises(zcore.StoreError, match="holds a reference set in Parquet, which a node would hide"):
        CREATIONS[creation](refs, zarr_format=zarr_format)
    with pytest.raises(zcore.StoreError, match="a reference set in Parquet"):
        zcore.open_group(folder, "a").create_group(name)
    assert sorted(refs.rglob("*")) == before and bytes(zcore.open(refs)["x"][:10]) == b"0123456789"


def test_overwriting_leaves_a_set(folder):
    refs = write_set(folder / "some.data", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", raw=[b"0123456789"])
    assert list(zcore.open_group(refs, "w")) == []
    (refs / "zarr.json").unlink()
    assert bytes(zcore.open(refs)["x"][:10]) == b"0123456789"


REPLACED = {
    "group": lambda store, zarr_format: zcore.create_group(store, path="g", zarr_format=zarr_format, overwrite=True),
    "array": lambda store, zarr_format: zcore.create_array(store, name="g", data=[1], zarr_format=zarr_format,
                                                           overwrite=True),
    "copy": lambda store, zarr_format: zcore.copy(zcore.group(zcore.MemoryStore(), zarr_format=zarr_format).store,
                                                  store, destination_path="g", overwrite=True),
    "delete": lambda store, zarr_format: zcore.open_group(store, "r+").__delitem__("g"),
}


@pytest.mark.parametrize("kind", ["memory", "directory"])
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("old", ["group", "array"])
@pytest.mark.parametrize("change", REPLACED)
def test_what_replaces_a_node_in_front_of_a_set_leaves_the_set(folder, kind, old, change, zarr_format):
    """Its document was taken for the copy of metadata of the old node, or of the new one."""
    store = zcore.MemoryStore() if kind == "memory" else zcore.DirectoryStore(folder / "s")
    zcore.create_group(store, zarr_format=zarr_format)
    REPLACED[old](store, 2)
    refs = write_set(folder / "set", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    document = (refs / ".zmetadata").read_bytes()
    store.set("g/.zmetadata", document)
    REPLACED[change](store, zarr_format)
    assert store.get("g/.zmetadata") == document
    if change == "group":
        assert list(zcore.open(store, path="g")) == [], "nor is it a copy of the new group's metadata"


def test_nodes_are_made_in_a_set_that_changes(folder):
    refs = write_set(folder / "some.data", {"x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", raw=[b"0123456789"])
    store = ReferenceStore(refs, read_only=False)
    zcore.create_array(store, name="y", shape=3, dtype="u1", zarr_format=2)[...] = 1
    assert zcore.open(store)["y"][...].tolist() == [1] * 3


class Counted(zcore.MemoryStore):
    """A store that notes which files of references are read."""

    def __init__(self, items):
        super().__init__(items)
        self.read = []

    def get(self, key, byte_range=None):
        if key.endswith(".parq"):
            self.read.append(key)
        return super().get(key, byte_range)


def counted_set(folder, record_size=5, n=40):
    """A table over a set of `n` chunks of one byte, and the store that counts."""
    document = {**ARRAY, "shape": [n // 4, 4], "chunks": [1, 1]}
    refs = write_set(folder / "refs.parq", {"x/.zarray": document}, record_size)
    for file in range(n // record_size):
        write_file(refs, f"x/refs.{file}.parq", path=["data.bin"] * record_size,
                   offset=list(range(file * record_size, (file + 1) * record_size)), size=[1] * record_size)
    return Counted({path.relative_to(refs).as_posix(): path.read_bytes() for path in refs.rglob("*") if path.is_file()})


def test_files_are_read_when_they_are_needed(folder, monkeypatch):
    """RF-PQ-01, RF-PQ-03: none by opening and listing nodes, those of the selection by a read, each once."""
    counted = counted_set(folder)
    monkeypatch.setattr("zcore.stores.reference.store._parquet_table", lambda path, read_only: ParquetTable(counted))
    store = ReferenceStore(folder / "refs.parq")
    array = zcore.open(store, path="x")
    assert store.list_dir("")[:2] == ([], ["x/"]) and store.get("x/.zarray") is not None and counted.read == []
    assert array[2, 1] == 9 and array[2, 0] == 8 and counted.read == ["x/refs.1.parq"]
    assert array[::9, 0].tolist() == [0, 36] and counted.read[1:] == ["x/refs.0.parq", "x/refs.7.parq"]
    assert (array[...].ravel() == np.arange(40)).all()
    assert sorted(counted.read) == [f"x/refs.{i}.parq" for i in range(8)]


def test_what_is_kept_is_bounded(folder, monkeypatch):
    """RF-PQ-01: files that were used long ago are read again."""
    counted = counted_set(folder)
    monkeypatch.setattr("zcore.stores.reference.parquet.MAX_KEPT_NBYTES", 250)
    table = ParquetTable(counted)
    for i in (0, 1, 0, 2, 0, 1):
        assert table.find(b"x/%d.3" % (5 * i // 4)) is not None
        assert table.nbytes < 10**5
    assert [name[-6] for name in counted.read] == ["0", "1", "2", "1"]


def test_rows_beyond_the_array(folder):
    """RF-PQ-06: files are padded to `record_size`, or go on behind the last chunk of the array."""
    small_set(folder, 10**6, path=["data.bin"] * 1000, offset=list(range(1000)), size=[1] * 1000)
    store = ReferenceStore(folder / "refs.parq")
    assert list(store.list()) == [".zgroup", "x/.zarray", "x/0", "x/1", "x/2", "x/3", "x/4"]
    assert store.get("x/4") == b"\4" and store.get("x/5") is None


@pytest.mark.parametrize("n", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("group", [1, 2, 3, 100])
def test_rows_beyond_the_array_are_not_looked_at(folder, n, group):
    """As kerchunk pads a file; each row group has values of its own, and later rows have what is no reference."""
    refs = write_set(folder / "refs.parq", {"x/.zarray": {**ARRAY, "shape": [10 * n]}}, 100)
    (refs / "x").mkdir()
    raw = [b"%d" % i if i % 3 == 0 else None for i in range(n)] + [None] * 20
    table = {"path": [None if i % 3 == 0 else f"t{i % 2}" for i in range(n)] + ["u"] * 20,
             "offset": [5 * i for i in range(n)] + [-1] * 20, "size": [0 if i % 3 == 0 else i + 1 for i in range(n)] +
             [-1] * 20, "raw": raw}
    parquet.write_table(pyarrow.table(table), refs / "x/refs.0.parq", row_group_size=group)
    found = dict(ReferenceStore(refs).to_v0())
    del found["x/.zarray"]
    assert found == {f"x/{i}": str(i) if i % 3 == 0 else [f"t{i % 2}", 5 * i, i + 1] for i in range(n)}


def test_targets_are_judged_as_those_of_json(folder, tmp_path_factory):
    """RF-URL-05, RF-URL-07, RF-URL-08"""
    other = tmp_path_factory.mktemp("other")
    (other / "private.bin").write_bytes(b"0123456789" * 3)
    (folder / "link.bin").symlink_to(other / "private.bin")
    paths = ["gone.bin", "data.bin", f"{other}/private.bin", "../x.bin", "link.bin"]
    small_set(folder, 10, path=paths, offset=[1, 195, 1, 1, 1], size=[10] * 5)
    array = zcore.open(folder / "refs.parq", path="x")
    for i, message in enumerate(["No such file", "has 200", "would permit", "would permit", "would permit"]):
        with pytest.raises(ReferenceTargetError, match=message):
            array[10 * i:10 * i + 10]
    store = ReferenceStore(folder / "refs.parq", allowed=[other])
    assert bytes(zcore.open(store, path="x")[20:30]) == b"1234567890"
    assert bytes(zcore.open(pickle.loads(pickle.dumps(store)), path="x")[40:]) == b"1234567890"
    with pytest.raises(ReferenceTargetError, match="not allowed|would permit"):
        ReferenceStore(folder / "refs.parq", allowed=[]).get("x/1")


def test_files_of_references_lie_in_the_set(folder, tmp_path_factory):
    """RF-PQ-01, RF-URL-08: a link that leads out of it is no way to have another file read."""
    other = small_set(tmp_path_factory.mktemp("other"), raw=[b"0123456789"])
    refs = write_set(folder / "refs.parq", {"x/.zarray": ARRAY, "y/.zarray": ARRAY}, 2)
    (refs / "x").mkdir()
    (refs / "x/refs.0.parq").symlink_to(other / "x/refs.0.parq")
    (refs / "y").symlink_to(other / "x")
    for name in "xy":
        with pytest.raises(zcore.ZcoreError, match="link"):
            zcore.open(refs, path=name)[...]


def test_threads_share_a_set(folder):
    """RF-PQ-01: files are read while others are, and columns stay where they are."""
    refs = write_set(folder / "refs.parq", {"x/.zarray": {**ARRAY, "shape": [200], "chunks": [1]}}, 4)
    for file in range(50):
        write_file(refs, f"x/refs.{file}.parq", path=["data.bin"] * 4, offset=list(range(4 * file, 4 * file + 4)),
                   size=[1] * 4)
    array, wrong = zcore.open(refs, path="x"), []

    def read(start):
        for i in range(start, 200, 7):
            if not (array[i:] == np.arange(i, 200)).all():
                wrong.append(i)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_saved_it_is_a_document_of_json(folder):
    """RF-STO-02, RF-GEN-11"""
    refs = small_set(folder / "sub", path=["../data.bin", None], offset=[1, 0], size=[10, 0], raw=[None, b"\xff" * 10])
    store = ReferenceStore(refs, allowed=[folder], read_only=False)
    store.set("x/4", b"changed...")
    store.erase("x/1")
    store.save(folder / "saved.json")
    array = zcore.open(folder / "saved.json", path="x")
    assert array[:10].tolist() == list(range(1, 11)) and (array[10:40] == 7).all()
    assert bytes(array[40:]) == b"changed..."
    ReferenceStore(refs).save(folder / "again.json")
    assert (zcore.open(folder / "again.json", path="x")[10:20] == 255).all()


def test_sizes_that_a_footer_declares(folder, monkeypatch):
    """RF-PQ-01: they are compared with limits before anything is decoded; repeated data are there once."""
    raw = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(10**4, "i4")), pyarrow.array([bytes(10**6)]))
    refs = small_set(folder, 10**5, raw=raw)
    assert (refs / "x/refs.0.parq").stat().st_size < 10**5
    store = ReferenceStore(refs)
    assert store.get("x/4") == bytes(10**6)
    assert store._table.nbytes < 2 * 10**6
    monkeypatch.setattr("zcore.stores.reference.parquet.MAX_DECODED_NBYTES", 10**5)
    with pytest.raises(ReferenceFormatError, match="bytes at the most"):
        ReferenceStore(refs).get("x/4")
    monkeypatch.setattr("zcore.stores.reference.parquet.MAX_ROWS", 100)
    with pytest.raises(ReferenceFormatError, match="100 rows at the most, found 10000"):
        ReferenceStore(refs).get("x/4")
    monkeypatch.setattr("zcore.stores.reference.parquet.MAX_FILE_NBYTES", 100)
    with pytest.raises(ReferenceFormatError, match="100 bytes at the most"):
        ReferenceStore(refs).get("x/4")


def test_sizes_of_all_row_groups_count(folder, monkeypatch):
    """RF-PQ-01: they are decoded one after the other, and then all of them are there."""
    refs = small_set(folder, 5, raw=[b""])
    parquet.write_table(pyarrow.table({"raw": [bytes([i]) * 10**5 for i in range(5)]}), refs / "x/refs.0.parq",
                        row_group_size=1, compression="zstd")
    assert ReferenceStore(refs).get("x/4") == b"\x04" * 10**5
    monkeypatch.setattr("zcore.stores.reference.parquet.MAX_DECODED_NBYTES", 4 * 10**5)
    with pytest.raises(ReferenceFormatError, match="expected columns of 400000 bytes at the most"):
        ReferenceStore(refs).get("x/4")


def test_columns_whose_metadata_contradict_the_schema(folder):
    """RF-PQ-01: an error, and not the end of the process, as where pyarrow is asked for these metadata."""
    refs = small_set(folder, raw=[b"a"])
    path = refs / "x/refs.0.parq"
    raw = path.read_bytes()
    optional, required = b"\x25\x02\x18\x03raw", b"\x25\x00\x18\x03raw"     # Thrift, of the element of a schema
    assert raw.count(optional) == 1
    path.write_bytes(raw.replace(optional, required))
    with pytest.raises(ReferenceFormatError, match="found a mistake"):
        ReferenceStore(refs).get("x/0")


def test_without_pyarrow(folder, monkeypatch):
    """RF-PQ-09: the extra that brings it is named."""
    refs = small_set(folder, raw=[b"a"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(UnsupportedError, match='"zcore-array.parquet."'):
        ReferenceStore(refs).get("x/0")


@pytest.mark.slow
def test_a_million_references_open_at_once(folder):
    """RF-PQ-01, RF-PQ-03: what is read of them is 20 bytes each."""
    n = 10**6
    refs = write_set(folder / "refs.parq", {"x/.zarray": {**ARRAY, "shape": [n], "chunks": [1]}}, 10**5)
    for file in range(10):
        write_file(refs, f"x/refs.{file}.parq", path=["data.bin"] * 10**5,
                   offset=np.arange(10**5) % 200, size=np.ones(10**5, int))
    store = ReferenceStore(refs)
    array = zcore.open(store, path="x")
    assert store._table.nbytes < 10**5
    assert array[10**5 + 3] == 3 and store._table.nbytes < 3 * 10**6
    assert (array[...] == np.arange(n) % 10**5 % 200).all() and store._table.nbytes < 21 * 10**6


def test_remote_targets(folder, site):
    """RF-URL-01, RF-URL-09: neighbours are asked for together, as soon as the files say where they are."""
    site.files["dir/data.bin"] = bytes(range(200))
    refs = write_set(folder / "refs.parq", {"x/.zarray": {**ARRAY, "shape": [100]}}, 4)
    for file in range(3):
        write_file(refs, f"x/refs.{file}.parq", path=[site.url + "dir/data.bin"] * 4,
                   offset=[40 * file + 10 * i for i in range(4)], size=[10] * 4)
    store = ReferenceStore(refs)
    array = zcore.open(store, path="x")
    assert store.n_requests == 0 and array[:].tolist() == list(range(100)) and store.n_requests > 0
    assert site.data() == [("dir/data.bin", "bytes=0-99")]
    with pytest.raises(ReferenceTargetError, match="not allowed"):
        zcore.open(ReferenceStore(refs, allowed=["s3://other/"]), path="x")[:]


def test_a_set_that_a_server_has(folder, site):
    """RF-DOC-04, RF-URL-02, RF-URL-08: it is read by the names of its files, and points to neither files nor this
    machine."""
    refs = write_set(folder / "refs.parq", {".zgroup": GROUP, "x/.zarray": ARRAY}, 2)
    write_file(refs, "x/refs.0.parq", path=["../data.bin", f"{folder}/data.bin"], offset=[20, 20], size=[10, 10])
    write_file(refs, "x/refs.1.parq", path=["data.bin", None], offset=[30, 0], size=[10, 0])
    for path in refs.rglob("*"):
        if path.is_file():
            site.files["dir/refs.parq/" + path.relative_to(refs).as_posix()] = path.read_bytes()
    site.files["dir/data.bin"] = site.files["data.bin"] = bytes(range(100))
    url = site.url + "dir/refs.parq"
    array = zcore.open(ReferenceStore(url, allowed=[site.url]), path="x")
    assert array[:10].tolist() == list(range(20, 30)) and array[20:30].tolist() == list(range(30, 40))
    assert (array[30:] == 7).all()
    with pytest.raises(ReferenceTargetError, match="not allowed|a file here"):
        array[10:20]
    with pytest.raises(ReferenceTargetError, match="would permit"):
        zcore.open(url, path="x")[20:30]
