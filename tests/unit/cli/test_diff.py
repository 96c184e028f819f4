"""`zcore diff`: what differs, by how much, and the exit code."""
import json

import numpy as np
import pytest

import zcore
from zcore.cli.verbs.elements import differences

NAN = float("nan")


def saved(name, data, **keywords):
    """Store data under a name, which is returned."""
    zcore.create_array(name, data=np.asarray(data), overwrite=True, **keywords)
    return name


def compared(run, first, second, *arguments):
    """Return the exit code and the lines of a comparison of two arrays of data."""
    code, out, err = run("diff", saved("a.zarr", first), saved("b.zarr", second), *arguments)
    assert err == ""
    return code, out.splitlines()


def test_equal_whatever_the_form(run):
    data = np.arange(60, dtype="<i4").reshape(10, 6)
    saved("a.zarr", data, chunks=(3, 6))
    for keywords in ({"chunks": (10, 2), "shards": (10, 6)}, {"zarr_format": 2}, {"zarr_format": "zmeta"}):
        assert run("diff", "a.zarr", saved("b.zarr", data, **keywords)) == (0, "", "")
    assert run("diff", "a.zarr", saved("b.zarr", data.astype(">i4"), zarr_format=2)) == (0, "", "")


def test_names_of_dimensions_are_compared_whatever_the_format(run):
    """In Zarr v2 they are an attribute."""
    saved("a.zarr", np.zeros((2, 3)), dimension_names=("y", "x"))
    saved("b.zarr", np.zeros((2, 3)), zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
    assert run("diff", "a.zarr", "b.zarr") == (0, "", "")
    saved("b.zarr", np.zeros((2, 3)), zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["x", "y"]})
    assert run("diff", "a.zarr", "b.zarr") == (1, "/: dimension names ('y', 'x') and ('x', 'y')\n", "")
    saved("b.zarr", np.zeros((2, 3)), zarr_format=2, attributes={"_ARRAY_DIMENSIONS": "yx"})
    assert "attribute _ARRAY_DIMENSIONS" in run("diff", "a.zarr", "b.zarr")[1]


def test_hierarchies(run, weather):
    assert run("diff", weather, weather) == (0, "", "")
    zcore.create_group("o.zarr", attributes={"title": "other", "years": [2016, 2017]})
    top = zcore.open("o.zarr", "r+")
    top.create_array("2016/t2m", shape=(6, 4, 6), dtype="f8", attributes={"units": "K"})
    top.create_array("more", shape=3, dtype="i4")
    assert run("diff", weather, "o.zarr") == (1, "\n".join([
        '/: attribute title: "weather" and "other"',
        "2016/t2m: shape (6, 4, 5) and (6, 4, 6)",
        "2016/t2m: dtype float32 and float64",
        "2016/t2m: dimension names ('time', 'lat', 'lon') and None",
        "height: array of the first alone",
        "more: array of the second alone", ""]), "")
    rows = json.loads(run("diff", "--json", "--no-attributes", weather, "o.zarr")[1])
    assert rows["equal"] is False
    assert [row["what"] for row in rows["differences"]] == ["shape", "dtype", "dimension_names", "member", "member"]
    assert rows["differences"][0] | {"text": ""} == {
        "path": "2016/t2m", "what": "shape", "first": [6, 4, 5], "second": [6, 4, 6], "text": ""}
    assert run("diff", "--quiet", weather, "o.zarr") == (1, "", "")


def test_data_alone(run):
    data = np.arange(6.0).reshape(2, 3)
    saved("a.zarr", data, dimension_names=("y", "x"), attributes={"units": "K"})
    assert run("diff", "--data", "a.zarr", saved("b.zarr", data.astype("i2"), zarr_format=2)) == (0, "", "")
    assert run("diff", "a.zarr", "b.zarr")[0] == 1
    data[1, 2] += 1
    assert run("diff", "--data", "a.zarr", saved("b.zarr", data, dtype="f4")) == (
        1, "/: 1 of 6 values differ, by 1 at the most; the first at [1, 2]: 5.0 and 6.0\n", "")
    assert run("diff", "--data", "a.zarr", saved("b.zarr", data[:1])) == (1, "/: shape (2, 3) and (1, 3)\n", "")
    assert run("diff", "--data", "a.zarr", saved("b.zarr", [["a", "b", "c"]] * 2)) == (
        1, "/: dtype float64 and <U1\n", "")


def test_values(run):
    first = np.zeros((100, 3))
    second = first.copy()
    second[70, 1], second[99, 2] = 2.5, -3
    assert compared(run, first, second) == (1, [
        "/: 2 of 300 values differ, by 3 at the most; the first at [70, 1]: 0.0 and 2.5"])


def test_slabs_are_compared_one_by_one(run, monkeypatch):
    monkeypatch.setattr(differences, "SLAB_NBYTES", 100)
    first = np.arange(300, dtype="<i4").reshape(10, 30)
    second = first.copy()
    second[4:, 17] += 1
    saved("a.zarr", first, chunks=(3, 7))
    saved("b.zarr", second, chunks=(2, 2))
    assert run("diff", "a.zarr", "b.zarr")[1] == ("/: 6 of 300 values differ, by 1 at the most; the first at [4, 17]: "
                                                  "137 and 138\n")


def test_memory_is_bounded_by_slabs(monkeypatch):
    monkeypatch.setattr(differences, "SLAB_NBYTES", 1000)
    array = zcore.create_array(zcore.MemoryStore(), data=np.zeros((50, 60), "u1"), chunks=(10, 10))
    sizes = []
    read = type(array).__getitem__
    monkeypatch.setattr(type(array), "__getitem__",
                        lambda self, at: sizes.append(read(self, at).size) or read(self, at))
    assert list(differences.differences(array, array)) == []
    assert max(sizes) <= 1000 and sum(sizes) == 2 * 3000


@pytest.mark.parametrize(("first", "second", "arguments", "code"), [
    ([NAN, 1], [NAN, 1], [], 0),
    ([NAN, 1], [1, NAN], [], 1),
    ([NAN, 1], [1, 1], ["--atol", "9"], 1),
    ([1 + NAN * 1j], [1 + NAN * 1j], [], 0),
    (np.array(["NaT", "2016"], "M8[D]"), np.array(["NaT", "2016"], "M8[D]"), [], 0),
    (np.array(["NaT", "2016"], "M8[D]"), np.array(["NaT", "2017"], "M8[D]"), [], 1),
    ([0.0], [-0.0], [], 0),
    ([1.0], [1.1], ["--atol", "0.2"], 0),
    ([1.0], [1.1], ["--rtol", "0.05"], 1),
    ([100.0], [104.0], ["--rtol", "0.04"], 0),
    ([np.inf, 1], [np.inf, 1.1], ["--atol", "0.2"], 0),
    ([np.inf], [1.1], ["--atol", "0.2"], 1),
    (np.array([1, 255], "u1"), np.array([2, 0], "u1"), ["--atol", "1"], 1),
    (np.array([2**63, 0], "u8"), np.array([2**63 + 2, 0], "u8"), ["--atol", "1"], 1),
    (np.array([2**63, 0], "u8"), np.array([2**63 + 1, 0], "u8"), ["--atol", "1"], 0),
    (["a", "b"], ["a", "b"], [], 0),
    (["a", "b"], ["a", "c"], ["--atol", "9"], 1),
    (np.array([(1, NAN)], [("a", "i4"), ("b", "f8")]), np.array([(1, NAN)], [("a", "i4"), ("b", "f8")]), [], 0),
    (np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.array([(1, 3)], [("a", "i4"), ("b", "f8")]), [], 1),
    (np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]), np.array([(1, 3)], [("a", "i4"), ("b", "f8")]),
     ["--atol", "1"], 0),
    (3.5, 3.5, [], 0),
    (3.5, 4.5, [], 1),
    (np.zeros((0, 3)), np.zeros((0, 3)), [], 0),
    (np.array([True]), np.array([False]), [], 1),
    (np.array(["a", "bc"], np.dtypes.StringDType()), np.array(["a", "b"], np.dtypes.StringDType()), [], 1),
])
def test_what_is_equal(run, first, second, arguments, code):
    assert compared(run, np.asarray(first), np.asarray(second), *arguments)[0] == code


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--atol", "1"], 0)])
def test_fields_that_are_arrays(run, arguments, code):
    for name, value in (("a.zarr", 2), ("b.zarr", 3)):
        saved(name, np.array([(1, [1, value])], [("a", "i4"), ("b", "f8", 2)]), zarr_format=2)
    assert run("diff", "a.zarr", "b.zarr", *arguments)[0] == code


def test_types_that_are_numbers_are_compared_all_the_same(run):
    assert compared(run, np.array([1, 2], "i4"), np.array([1, 2.5])) == (1, [
        "/: dtype int32 and float64", "/: 1 of 2 values differ, by 0.5 at the most; the first at [1]: 2 and 2.5"])
    assert compared(run, np.array([1, 2], "i8"), np.array(["a", "b"]))[1] == ["/: dtype int64 and <U1"]


def test_attributes_are_compared_as_json(run):
    for name, value in (("a.zarr", {"x": 1, "y": NAN}), ("b.zarr", {"x": True, "y": NAN})):
        saved(name, [1], zarr_format=2, attributes=value)
    assert run("diff", "a.zarr", "b.zarr")[:2] == (1, "/: attribute x: 1 and true\n")


def test_a_group_and_an_array(run, weather):
    assert run("diff", weather, "weather.zarr/height")[:2] == (1, "/: group and array\n")


def test_what_cannot_be_compared_ends_in_2(run, weather):
    assert run("diff", weather, "none.zarr") == (2, "", "zcore diff: none.zarr does not exist\n")
    assert run("diff", weather, weather, "--atol", "-1")[0] == 2
    with open("weather.zarr/2016/zarr.json", "w") as file:
        file.write("{")
    code, _, err = run("diff", weather, weather)
    assert code == 2 and "ends at byte 1" in err


def test_a_damaged_chunk_ends_in_2(run, weather):
    with open("weather.zarr/height/c/2/0", "r+b") as file:
        file.truncate(20)
    code, _, err = run("diff", weather, weather)
    assert code == 2 and "c/2/0" in err


@pytest.mark.slow
def test_what_exists_bounds_a_comparison(tmp_path, run):
    """Two arrays of 2**60 elements: what neither has is compared once."""
    first = zcore.create_array(tmp_path / "a", shape=(2**30, 2**30), chunks=(64, 64), dtype="i4", fill_value=7)
    second = zcore.create_array(tmp_path / "b", shape=(2**30, 2**30), chunks=(32, 64), dtype="i4", fill_value=7)
    other = zcore.create_array(tmp_path / "c", shape=(2**30, 2**30), chunks=(32, 64), dtype="i4", fill_value=9)
    for array in (first, second, other):
        array[:64, :64] = 1
    a, b, c = (str(tmp_path / name) for name in "abc")
    assert run("diff", a, b)[0] == 0
    first[2**29, 5] = 2
    assert run("diff", a, b)[:2] == (
        1, f"/: 1 of {2**60} values differ, by 5 at the most; the first at [536870912, 5]: 2 and 7\n")
    assert run("diff", a, c)[:2] == (
        1, f"/: {2**60 - 64 * 64} of {2**60} values differ, by 7 at the most; the first at [0, 64]: 7 and 9\n")


@pytest.mark.parametrize("fills", [(0, 0), (0, 5)])
@pytest.mark.parametrize("shape", [(7,), (13, 11), (1, 1), ()])
def test_sparse_arrays_are_compared_as_they_read(tmp_path, monkeypatch, fills, shape):
    monkeypatch.setattr("zcore.tools.stored.MAX_UNLISTED", 0)
    monkeypatch.setattr("zcore.cli.verbs.elements.differences.SLAB_NBYTES", 16)
    rng = np.random.default_rng(1)
    for n in (0, 1, 3):
        pair = [zcore.create_array(zcore.MemoryStore(), shape=shape, chunks=(2,) * len(shape), dtype="i2",
                                   fill_value=fill) for fill in fills]
        for array in pair:
            for _ in range(n):
                array[tuple([int(rng.integers(length)) for length in shape])] = int(rng.integers(1, 9))
        one, other = (array[...] for array in pair)
        found = [item for item in differences.differences(*pair) if item["what"] == "values"]
        where = np.argwhere(np.asarray(one != other))
        assert bool(found) == bool(len(where))
        if found:
            assert found[0]["count"] == len(where) and list(found[0]["at"]) == where[0].tolist()
            assert found[0]["largest"] == np.abs(one.astype(float) - other).max()
