"""Trees and arrays that zcore and the `asdf` package read and write: the same values, in both directions."""
import zipfile
from pathlib import Path

import numpy as np
import pytest

asdf = pytest.importorskip("asdf")
pytest.importorskip("yaml")

import zcore  # noqa: E402
from zcore.asdf.tree.dump import Inline, Stream  # noqa: E402
from zcore.asdf.tree.ndarray import NDArrayNode  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping  # noqa: E402

REFERENCE_FILES = Path(__file__).parents[1] / "fixtures" / "asdf_reference_files.zip"
with zipfile.ZipFile(REFERENCE_FILES) as _archive:
    # The oldest and the newest version each time; those between are slow by their number.
    NAMES = [pytest.param(name, marks=() if name.startswith(("1.0.0", "1.6.0")) else pytest.mark.slow)
             for name in sorted(_archive.namelist()) if name.endswith(".asdf")]


@pytest.fixture(scope="module")
def reference_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference_files")
    with zipfile.ZipFile(REFERENCE_FILES) as archive:
        archive.extractall(folder)
    return folder


def check_same(found, expected, where=""):
    """Compare a tree of zcore with one of the `asdf` package; returns how many arrays there are."""
    if isinstance(found, NDArrayNode):
        array, other = found.read(), expected[...]
        assert (array.shape, array.dtype) == (other.shape, other.dtype), where
        assert np.array_equal(np.ma.getdata(array), np.ma.getdata(other), equal_nan=array.dtype.kind in "fc"), where
        assert np.array_equal(np.ma.getmaskarray(array), np.ma.getmaskarray(other)), where
        return 1
    if isinstance(found, dict):
        assert found.keys() == set(expected) or where == "/history", where
        return sum(check_same(value, expected[name], f"{where}/{name}") for name, value in found.items()
                   if name not in ("history", "asdf_library"))
    if isinstance(found, list):
        assert len(found) == len(expected), where
        return sum(check_same(value, expected[i], f"{where}/{i}") for i, value in enumerate(found))
    assert found == expected or found != found, where
    return 0


@pytest.mark.parametrize("name", NAMES)
def test_reference_files_of_the_standard(reference_files, name):
    """AS-TREE-01 to AS-TREE-10, AS-ND-01 to AS-ND-12, AS-STR-04, AS-CHK-02, AS-EXP-01, AS-COM-02: all versions."""
    path = reference_files / name
    with zcore.asdf.open(path) as file, asdf.open(path) as peer:
        assert file.standard == name.partition("/")[0]
        n_arrays = check_same(file.tree, peer.tree)
        assert n_arrays > 0 or "scalars" in name or "anchor" in name or "exploded0" in name
        if "anchor" in name:
            assert file.tree["a"] is file.tree["b"]
        if "shared" in name:
            assert np.shares_memory(file.tree["data"].read(), file.tree["subset"].read())
        text = path.with_suffix(".yaml")
        if text.exists():
            with zcore.asdf.open(text) as same:
                for key, node in file.tree.items():
                    if isinstance(node, NDArrayNode):
                        assert np.array_equal(node.read(), same.tree[key].read(), equal_nan=node.dtype.kind == "f")
        group = zcore.open(path)
        for key, array in group.arrays():
            assert array[...].tobytes() == file.tree[key].read().tobytes()
            assert array[...].dtype == file.tree[key].dtype


DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<f2", ">f4", "<f8", ">c8", "<c16", "S5", "<U3", ">U3",
          [("a", "i1"), ("b", ">f4", (2,)), ("c", "<i2")]]


def array_of(dtype, shape=(3, 4)):
    dtype = np.dtype(dtype)
    if dtype.kind in "US":
        return np.array(["a", "bc", "ü" if dtype.kind == "U" else "d", ""], dtype)
    return (np.arange(np.prod(shape) * dtype.itemsize) % 2).astype("u1").view(dtype).reshape(shape)


@pytest.mark.parametrize("compression", [None, "zlib", "bzp2"])
def test_arrays_of_zcore_are_read_by_the_peer(tmp_path, compression):
    """AS-ND-07 to AS-ND-15, AS-ND-22"""
    base = np.arange(60, dtype=">f4").reshape(6, 10)
    tree = {f"a{i}": array_of(dtype) for i, dtype in enumerate(DTYPES)}
    tree |= {"base": base, "view": base[1:5:2, ::3], "back": base[::-1, ::-1], "columns": np.asfortranarray(base),
             "empty": np.zeros((0, 3)), "one": np.array(1.5), "wide": np.broadcast_to(base[0], (3, 10))}
    path = tmp_path / "x.asdf"
    zcore.asdf.write(path, tree, compression=compression)
    with asdf.open(path, validate_checksums=True) as peer:
        peer.validate()
        for name, array in tree.items():
            found = peer[name][...]
            assert found.dtype == array.dtype and np.array_equal(found, array), name
        assert np.shares_memory(peer["base"][...], peer["view"][...])
    group = zcore.open(path)
    for name, array in tree.items():
        assert group[name][...].dtype == array.dtype and np.array_equal(group[name][...], array), name


def test_trees_of_zcore_are_read_by_the_peer(tmp_path):
    """AS-TREE-05 to AS-TREE-11, AS-ND-16, AS-ND-17, AS-ND-20"""
    shared = [1, 2]
    tree = {"text": ["yes", "12", "1e5", "a\nb", "é😀", "", " x "], "numbers": [1, -1.5, 1e300, 2**62, True, None],
            "z": 1 - 2.5j, "shared": {"a": shared, "b": shared}, "big": IntegerNode.of(-2**100),
            "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "inline": Inline([[1, 2], [3, 4]]),
            "complex": Inline([1j, 2]), "texts": Inline(["a", "b"]), 2: "two", True: "x",
            "records": Inline(np.array([(1, 2.5)], [("a", "i2"), ("b", "f8")])),
            "gaps": Inline(np.ma.array([1.5, 2], mask=[0, 1])),
            "history": {"entries": [TaggedMapping("tag:stsci.edu:asdf/core/history_entry-1.0.0",
                                                  {"description": "made"})]}}
    path = tmp_path / "x.asdf"
    zcore.asdf.write(path, tree)
    with asdf.open(path) as peer:
        peer.validate()
        assert list(peer["text"]) == tree["text"] and list(peer["numbers"]) == tree["numbers"]
        assert peer["z"] == 1 - 2.5j and peer["shared"]["a"] is peer["shared"]["b"] and int(peer["big"]) == -2**100
        assert peer["masked"][...].tolist() == [1, None, 3] and peer["inline"][...].tolist() == [[1, 2], [3, 4]]
        assert peer["complex"][...].tolist() == [1j, 2] and peer["texts"][...].tolist() == ["a", "b"]
        assert peer["records"][...].tolist() == [(1, 2.5)] and peer["gaps"][...].tolist() == [1.5, None]
        assert peer.get_history_entries()[0]["description"] == "made"


def test_a_stream_of_zcore_is_read_by_the_peer(tmp_path):
    """AS-STR-04"""
    path = tmp_path / "x.asdf"
    zcore.asdf.write(path, {"s": Stream((2,), "<i2"), "a": np.arange(3)})
    with open(path, "ab") as file:
        file.write(np.arange(6, dtype="<i2").tobytes())
    with asdf.open(path) as peer:
        assert peer["s"][...].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert zcore.open(path)["s"][1:].tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize("storage", ["internal", "inline", "compressed", "external"])
def test_arrays_of_the_peer(tmp_path, storage):
    """AS-ND-01, AS-ND-05, AS-ND-07 to AS-ND-22"""
    base = np.arange(60, dtype="<f8").reshape(6, 10)
    tree = {f"a{i}": array_of(dtype) for i, dtype in enumerate(DTYPES)}
    tree |= {"base": base, "view": base[1:5:2, ::3], "back": base[::-1], "columns": np.asfortranarray(base),
             "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "nan": np.array([np.nan, np.inf, -0.0])}
    if storage == "inline":
        # The peer writes no complex numbers that it would take for valid in a list of lists.
        tree = {name: array for name, array in tree.items() if array.dtype.kind not in "cV"}
    path = tmp_path / "x y.asdf"
    file = asdf.AsdfFile(tree)
    if storage == "compressed":
        file.write_to(path, all_array_compression="zlib")
    else:
        file.write_to(path, all_array_storage=storage)
    with zcore.asdf.open(path) as read, asdf.open(path) as peer:
        assert check_same(read.tree, peer.tree) >= len(tree)
        if storage == "external":
            assert isinstance(read.tree["base"].source, str) and len(read.blocks) == 0
    group = zcore.open(path)
    for name, array in tree.items():
        # What is under a mask is not written in a list.
        assert np.array_equal(group[name][...], np.ma.getdata(array), equal_nan=array.dtype.kind in "fc") or (
            (name, storage) == ("masked", "inline")), name
    assert np.array_equal(group["view"][1:, 1:3], base[1:5:2, ::3][1:, 1:3])


def test_trees_of_the_peer(tmp_path):
    """AS-TREE-05 to AS-TREE-11, AS-ND-16, AS-ND-20"""
    shared = {"k": [1]}
    tree = {"z": 1j, "shared": [shared, shared], "big": asdf.IntegerType(2**70), "s": "1:30", "n": None,
            "t": [True, 1.0], "data": np.arange(4), "text": "line\n...\nline"}
    file = asdf.AsdfFile(tree, uri=(tmp_path / "x.asdf").as_uri())
    file["link"] = file.make_reference(["data"])
    file.add_history_entry("made by a test")
    file.write_to(tmp_path / "x.asdf")
    with zcore.asdf.open(tmp_path / "x.asdf") as read:
        found = read.tree
        assert found["z"] == 1j and found["shared"][0] is found["shared"][1] and int(found["big"]) == 2**70
        assert (found["s"], found["t"], found["text"]) == ("1:30", [True, 1.0], tree["text"])
        assert found["link"].resolve() is found["data"]
        assert found["history"]["entries"][0]["description"] == "made by a test"
        zcore.asdf.write(tmp_path / "y.asdf", found)
    with asdf.open(tmp_path / "y.asdf") as peer:
        peer.validate()
        assert peer.get_history_entries()[0]["description"] == "made by a test"
        assert peer["data"][...].tolist() == [0, 1, 2, 3]
    group = zcore.open(tmp_path / "x.asdf")
    assert group["link"][1:3].tolist() == [1, 2] and group.attrs["big"] == 2**70


def test_a_stream_of_the_peer(tmp_path):
    """AS-STR-04"""
    with open(tmp_path / "x.asdf", "wb") as target:
        asdf.AsdfFile({"s": asdf.tags.core.Stream([3], np.float64)}).write_to(target)
        target.write(np.arange(9.0).tobytes())
    assert zcore.open(tmp_path / "x.asdf")["s"][:].tolist() == np.arange(9.0).reshape(3, 3).tolist()
