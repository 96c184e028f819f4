"""`zcore.copy` of ASDF files to Zarr and back: elements, names, attributes, and what is told of those that are lost."""
import os
import warnings

import numpy as np
import pytest

import zcore

pytest.importorskip("yaml")

A = np.arange(48.0).reshape(6, 8)
TREE = {"title": "t", "x": {"a/b": A, ".c": A[1:, ::2], "of": {"name": "M 31", "n": [1, None, 0.5]}},
        "list": [A.T, "text"], "F": np.asfortranarray(A.astype(">i2")), "flags": A > 3, "100%": A,
        "text": np.array(["ab", "ç"]), "records": np.array([(1, 2.5)], [("i", "<i4"), ("f", ">f8")]), "a/b": "c"}


def copied(*args, **keywords):
    """Copy; returns the node, and the warnings."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        node = zcore.copy(*args, **keywords)
    return node, [str(one.message) for one in told if "does not keep" in str(one.message)]


def check_same(first, second):
    ours, others = ({"": group, **dict(group.members(None))} for group in (first, second))
    assert sorted(ours) == sorted(others)
    for name, node in ours.items():
        other = others[name]
        assert dict(node.attrs) == dict(other.attrs), name
        if isinstance(node, zcore.Array):
            assert node.shape == other.shape and node.dtype.newbyteorder("=") == other.dtype.newbyteorder("="), name
            assert np.array_equal(node[...], other[...]), name


@pytest.mark.parametrize("compression", [None, "zlib", "lz4"])
@pytest.mark.parametrize("there", ["v2", "v3", "zip", "memory"])
def test_to_zarr_and_back(there, compression, tmp_path):
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, TREE, compression=compression)
    place = zcore.MemoryStore() if there == "memory" else tmp_path / ("z.zip" if there == "zip" else "z")
    node, told = copied(path, place, zarr_format={"v2": 2, "v3": 3}.get(there))
    check_same(zcore.open(path), node)
    assert told in ([], ["fill values"]) and zcore.verify(place).ok
    back, told = copied(place, tmp_path / "back.asdf")
    assert told == [] and back is None
    check_same(zcore.open(path), zcore.open(tmp_path / "back.asdf"))
    assert zcore.verify(tmp_path / "back.asdf").ok
    with zcore.asdf.open(path) as old, zcore.asdf.open(tmp_path / "back.asdf") as new:
        assert sorted(new.tree) == sorted(old.tree) and sorted(new.tree["x"]) == sorted(old.tree["x"])
        assert new.tree["x"][".c"].read().tobytes() == A[1:, ::2].tobytes() and new.tree["a/b"] == "c"
    assert [name for name in os.listdir(tmp_path) if name[0] == "."] == []


def test_parts_and_selections(tmp_path):
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, TREE)
    node, _ = copied(path, tmp_path / "n", path="x/a%2Fb", selection=np.s_[1:, ::-3], chunks=(2, 2), zarr_format=3)
    assert np.array_equal(node[...], A[1:, ::-3]) and node.chunks == (2, 2)
    copied(tmp_path / "n", tmp_path / "b.asdf", destination_path="deep/er")
    with zcore.asdf.open(tmp_path / "b.asdf") as file:
        assert np.array_equal(file.tree["deep"]["er"], A[1:, ::-3])


def group_with(names=("a",), **keywords):
    group = zcore.create_group(zcore.MemoryStore(), zarr_format=2, **keywords)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, name in enumerate(names):
            group.create_array(name, data=A + i)
    return group


@pytest.mark.parametrize("attributes, lost", [
    ({"big": 2**70, "n": 1}, "the attribute 'big', which ASDF cannot express: the root"),
    ({"a": 5, "n": 1}, "the attribute 'a', as a member of the group has its name: the root"),
    ({"nan": float("inf"), "": 1, "yes": "no", "1": [{}], "\x07": "\x1b", "n": 1}, None)], ids=["big", "name", "kept"])
def test_attributes_are_kept_or_named(attributes, lost, tmp_path):
    _, told = copied(group_with(attributes=attributes), tmp_path / "a.asdf")
    assert [text.partition("does not keep ")[2] for text in told] == ([] if lost is None else [lost])
    found = zcore.open(tmp_path / "a.asdf").attrs
    for name in attributes:
        assert name in found if lost is None or name == "n" else name not in found
    assert np.array_equal(zcore.open(tmp_path / "a.asdf")["a"][...], A)


def test_names_are_kept_or_told(tmp_path):
    names = ["a%2Fb", "%2Ec", "c%25", "-", "0", "true", "100%", "a%2f"]
    _, told = copied(group_with(names), tmp_path / "a.asdf")
    assert len(told) == 1 and told[0].endswith("the name as it is, but escaped: 100%, a%2f")
    group = zcore.open(tmp_path / "a.asdf")
    assert sorted(group) == sorted([*names[:-2], "100%25", "a%252f"])
    for i, name in enumerate(names[:-2]):
        assert np.array_equal(group[name][...], A + i), name
    with pytest.raises(zcore.UnsupportedError, match="another member"):
        copied(group_with(["a%", "a%25"]), tmp_path / "b.asdf")
    assert os.listdir(tmp_path) == ["a.asdf"]
