"""`zcore.copy` of a list: arrays are stacked, or joined along a dimension."""
import os
import sys

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.__main__ import main
from zcore.tools.copy import stacked


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    """Run every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def numpy_files(arrays):
    names = [f"{i:03}.npy" for i in range(len(arrays))]
    for name, array in zip(names, arrays, strict=True):
        np.save(name, array)
    return names


@each("dtype", ["<f4", ">i2", "S3", "?", "M8[s]"])
@each("shape", [(), (5,), (3, 4), (0, 2)])
def test_arrays_are_stacked_in_the_order_of_the_list(shape, dtype):
    arrays = [np.arange(i, i + np.prod(shape, dtype=int)).astype("i8").astype(dtype).reshape(shape) for i in range(5)]
    made = zcore.copy(numpy_files(arrays), zcore.MemoryStore(), chunks=2)
    np.testing.assert_array_equal(made[...], np.stack(arrays))
    assert made.dtype == arrays[0].dtype and made.shape == (5, *shape)


def test_few_sources_are_open_and_little_is_in_memory(monkeypatch):
    import tracemalloc

    arrays = [np.full((64, 64), i, "i4") for i in range(100)]
    names = numpy_files(arrays)
    monkeypatch.setattr(stacked, "MAX_OPEN", 3)
    files, most = {os.path.realpath(name) for name in names}, 0     # what other tests have left open is not counted

    def note(done, total):
        nonlocal most
        most = max(most, len([fd for fd in os.listdir("/dev/fd") if os.path.realpath(f"/dev/fd/{fd}") in files]))

    tracemalloc.start()
    made = zcore.copy(names, "a.zarr", chunks=(10, 64, 64), memory="500 kB", progress=note)
    assert tracemalloc.get_traced_memory()[1] < 1_200_000 < made.nbytes
    tracemalloc.stop()
    assert (0 if sys.platform == "darwin" else 1) <= most <= 3 and (made[:, 5, 5] == np.arange(100)).all()


def groups(lengths, **attributes):
    """Return groups as files of one variable with coordinates; each is as long as `lengths` says."""
    made, start = [], 0
    for n in lengths:
        group = zcore.group(attributes={"title": "weather"})
        group.create_array("time", data=np.arange(start, start + n), dimension_names=["time"],
                           attributes={"units": "days since 2000-01-01", **attributes})
        group.create_array("lat", data=np.arange(3.0), dimension_names=["lat"])
        group.create_array("in/t2m", data=np.arange(start * 3, (start + n) * 3).reshape(3, n), chunks=(2, 4),
                           dimension_names=["lat", "time"], compressors="zstd", fill_value=7)
        group.create_array("crs", data=np.int8(4))
        made.append(group)
        start += n
    return made


def test_arrays_are_joined_along_a_dimension_and_the_others_are_there_once():
    parts = groups([5, 1, 0, 8])
    made = zcore.copy(parts, zcore.MemoryStore(), along="time")
    assert made["time"][:].tolist() == list(range(14)) and made["lat"].shape == (3,) and made["crs"][()] == 4
    np.testing.assert_array_equal(made["in/t2m"][:], np.concatenate([part["in/t2m"][:] for part in parts], axis=1))
    assert made["in/t2m"].chunks == (2, 4) and made["in/t2m"].compressors[0].name == "zstd"
    assert made["in/t2m"].fill_value == 7 and made.attrs["title"] == "weather"
    assert made["in/t2m"].dimension_names == ("lat", "time")
    assert zcore.copy(parts, zcore.MemoryStore(), path="in/t2m", along="time").shape == (3, 14)
    made = zcore.copy(parts, zcore.MemoryStore(), along="time", chunks=(1, 7))
    assert made["in/t2m"].chunks == (1, 7) and made["lat"].chunks == (3,) and made["in/t2m"].compressors
    with pytest.raises(ValueError, match=r"expected one length for each dimension of the shape .*, found 3"):
        zcore.copy(parts, zcore.MemoryStore(), along="time", chunks=(1, 7, 7))


def test_stacked_groups_have_their_coordinates_once():
    one, other = groups([5])[0], groups([5])[0]
    made = zcore.copy([one, other], zcore.MemoryStore())
    assert made["in/t2m"].shape == (2, 3, 5) and made["in/t2m"].dimension_names == (None, "lat", "time")
    assert made["time"].shape == (5,) and made["crs"].shape == (2,) and made["in/t2m"].chunks == (1, 2, 4)


@pytest.mark.parametrize(("wrong", "words"), [
    (np.zeros((3, 5), "f4"), r"shape \(3, 5\), expected \(3, 4\)"), (np.zeros((3, 4)), "type <f8, expected <f4"),
    (np.zeros((3, 4), ">f4"), "type >f4, expected <f4"),
])
def test_an_array_that_does_not_agree_is_named(wrong, words):
    names = numpy_files([np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4"), wrong])
    with pytest.raises(ValueError, match=f"002.npy.*{words} as in 000.npy"):
        zcore.copy(names, "a.zarr")
    assert not os.path.exists("a.zarr")


def test_groups_that_do_not_agree():
    one, other = groups([2, 2])
    later = groups([2], units="days since 2001-01-01")[0]
    for parts, along, words in (
            ([one, later], "time", "time has the units days since 2001-01-01"),
            ([one, other], None, "elements of 'time'"),
            ([one, other["in"]], "time", "same members"), ([one, one["time"]], "time", "lacks 'crs'"),
            ([one, other], "depth", "no array with a dimension 'depth'"), ([], "time", "at least one")):
        with pytest.raises(ValueError, match=words):
            zcore.copy(parts, "a.zarr", along=along)
    other["lat"][1] = 9
    with pytest.raises(ValueError, match="elements of 'lat' differ"):
        zcore.copy([one, other], "a.zarr", along="time")
    with pytest.raises(ValueError, match="one source"):
        zcore.copy(one, "a.zarr", along="time")
    assert os.listdir() == []


def test_a_source_that_changes_meanwhile_is_noticed(monkeypatch):
    monkeypatch.setattr(stacked, "MAX_OPEN", 1)
    names = numpy_files([np.zeros(4)] * 3)

    def change(done, total):
        if done < total:
            np.save("002.npy", np.ones(5))

    with pytest.raises(zcore.StoreError, match="002.npy was changed while"):
        zcore.copy(names, "a.zarr", chunks=(1, 4), memory=1, progress=change)
    assert not os.path.exists("a.zarr")


def test_sources_of_different_kinds():
    names = numpy_files([np.full((3, 4), i) for i in range(2)])
    zcore.create_group("g.zarr").create_array("in/a", data=np.full((3, 4), 2))
    made = zcore.copy([*names, "g.zarr"], zcore.MemoryStore(), path=["", "", "in/a"])
    assert made[:, 0, 0].tolist() == [0, 1, 2]
    assert main(["cp", "g.zarr/in/a", *names, "a.zarr", "--stack"]) == 0
    assert zcore.open("a.zarr")[:, 0, 0].tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="a path for each of 2 sources, found 1"):
        zcore.copy(names, zcore.MemoryStore(), path=["a"])


def test_a_damaged_source_is_named():
    for i in range(2):
        zcore.create_array(f"{i}.zarr", data=np.arange(64, dtype="i4").reshape(8, 8), chunks=4,
                           dimension_names=["x", "y"])
    with open("1.zarr/c/1/1", "r+b") as file:
        file.truncate(20)
    for more in ({"along": "x"}, {}, {"chunks": 2}):
        with pytest.raises(zcore.ChunkError) as told:
            zcore.copy(["0.zarr", "1.zarr"] if "chunks" not in more else "1.zarr", "new", **more)
        assert told.value.place == os.path.realpath("1.zarr")
        assert str(told.value).startswith(f"{told.value.place}: c/1/1")


def test_attributes_that_differ_are_named_once():
    for i in range(2):
        group = zcore.create_group(f"{i}.zarr", attributes={"title": "t", "history": f"day {i}"})
        group.create_array("x", data=np.arange(4) + i, chunks=2, dimension_names=["t"], attributes={"units": "m"} | (
            {"made": 1} if i else {}))
        zcore.consolidate_metadata(f"{i}.zarr")
    told = r"not the same in all sources are those of .*0\.zarr: history, made of x$"
    with pytest.warns(UserWarning, match=told):
        made = zcore.copy(["0.zarr", "1.zarr"], "a.zarr", along="t")
    with pytest.warns(UserWarning, match=told):
        zcore.references(["0.zarr", "1.zarr"], along="t").save("a.json")
    for group in (made, zcore.open("a.json")):     # the consolidated metadata of a source have another shape
        assert group["x"][:].tolist() == [0, 1, 2, 3, 1, 2, 3, 4] and dict(group.attrs)["history"] == "day 0"
        assert [node.shape for _, node in group.members()] == [(8,)] and "made" not in group["x"].attrs
    assert main(["diff", "a.zarr", "a.json"]) == 0


def test_the_command(capsys):
    numpy_files([np.full((3, 4), i) for i in range(3)])
    names = sorted(os.listdir())
    assert main(["cp", *names, "a.zarr"]) == 1 and "--stack" in capsys.readouterr().err
    assert main(["cp", *names, "a.zarr", "--stack"]) == 0
    assert zcore.open("a.zarr")[:, 0, 0].tolist() == [0, 1, 2]
    for i, group in enumerate(groups([2, 3])):
        zcore.copy(group, f"{i}.zarr")
    assert main(["cp", "0.zarr", "1.zarr", "b.zip", "--along", "time"]) == 0
    assert zcore.open("b.zip")["time"][:].tolist() == list(range(5))
    assert main(["rechunk", "0.zarr/time", "1.zarr/in/t2m", "c.zarr", "--along", "time", "--chunks", "1"]) == 1
    assert main(["cp", "0.zarr/time", "1.zarr/time", "c.zarr", "--along", "time"]) == 0
    assert zcore.open("c.zarr")[:].tolist() == list(range(5))
