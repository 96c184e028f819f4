"""`GroupWriter`: all arrays of a dimension get the same rows, and its coordinate gets them last."""
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import zcore
from zcore.hierarchy import resizing


def group(store=None, n=0, zarr_format=3):
    g = zcore.create_group(zcore.MemoryStore() if store is None else store, zarr_format=zarr_format)
    for name, shape, chunks, dims in (("time", (n,), (100,), ["time"]), ("x", (n, 3), (10, 3), ["time", "x"]),
                                      ("y", (2, n), (2, 4), ["y", "time"]), ("step", (n,), (7,), ["time"]),
                                      ("area", (3,), (3,), ["x"])):
        named = {"dimension_names": dims} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": dims}}
        g.create_array(name, shape=shape, chunks=chunks, dtype="f4", **named)
    return g


def row(i):
    return {"time": i, "x": np.full(3, i, "f4"), "y": np.full(2, i, "f4"), "step": np.float32(i)}


def check(g, n):
    for name in ("time", "x", "y", "step"):
        array = zcore.open(g.store, path=name)
        axis = 1 if name == "y" else 0
        assert array.shape[axis] == n
        assert (np.moveaxis(array[...], axis, -1) == np.arange(n)).all()


def test_one_thing_is_not_many():
    store = {}
    group = zcore.create_group(store)
    group.create_array("x", shape=(0,), chunks=(1,), dtype="u1", dimension_names=["t"])
    with group.writer("t") as w:
        w.append({"x": [1]})
        assert "1 array along 't', 1 row given" in repr(w)
    assert "1 group, 1 array, 1 object, 1 byte decoded" in repr(zcore.verify(store))
    assert "of 3 keys" in repr(group.store) and store.popitem() and store.popitem() and "of 1 key>" in repr(group.store)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("queue", [None, 40, 5000])
def test_rows_of_all_arrays(zarr_format, queue):
    g = group(zarr_format=zarr_format)
    with g.writer("time", queue=queue) as w:
        assert list(w.arrays) == ["x", "y", "step", "time"] and "4 arrays along 'time'" in repr(w)
        for i in range(0, 150, 3):
            w.append(row(i))
            w.append({name: np.stack([values, np.asarray(row(i + 2)[name], "f4")], 1 if name == "y" else 0)
                      for name, values in ((name, np.asarray(values, "f4")) for name, values in row(i + 1).items())})
            if i == 60:
                w.flush()
                check(g, 63)
                assert w.n_given == w.n_stored == 63
    check(g, 150)
    assert g["area"].shape == (3,) and zcore.verify(g.store).ok


def test_the_coordinate_is_never_ahead(tmp_path):
    g, seen = group(tmp_path / "g"), []
    append = resizing.append

    def looked(*args):
        result = append(*args)
        seen.append([zcore.open(tmp_path / "g", path=name).shape[axis]
                     for name, axis in (("x", 0), ("y", 1), ("time", 0))])
        return result

    resizing.append = looked
    try:
        with g.writer("time") as w:
            for i in range(35):
                w.append(row(i))
                if i % 8 == 7:
                    w.flush()
    finally:
        resizing.append = append
    assert all(time <= min(x, y) for x, y, time in seen) and len(seen) >= 8
    check(g, 35)


def test_wrong_values():
    g = group()
    with g.writer("time") as w:
        for wrong in ({**row(0), "area": 1}, {"time": 0}, {**row(0), "x": np.ones((2, 3), "f4")},
                      {**row(0), "x": np.ones(2, "f4")}):
            with pytest.raises(ValueError):
                w.append(wrong)
        with pytest.raises(TypeError, match="^x: values of type complex128 do not cast safely"):
            w.append({**row(0), "x": np.ones(3, complex)})
        with pytest.raises(ValueError, match=r"^y: a frame has shape \(2,\), cannot append values of shape"):
            w.append({**row(0), "y": np.ones(3, "f4")})
        w.append(row(0))
    check(g, 1)
    with pytest.raises(zcore.NodeNotFoundError, match="dimension 'z'"):
        g.writer("z")
    g["x"].resize(5, 3)
    with pytest.raises(ValueError, match="different lengths"):
        g.writer("time")
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open_group(g.store, "r").writer("time")


def test_an_error_leaves_all_arrays_as_they_were(monkeypatch):
    g = group()
    w = g.writer("time")
    append = resizing.append

    def fail(binding, *args):
        if binding.path == "step":
            raise zcore.StoreError("no room")
        return append(binding, *args)

    for i in range(12):
        w.append(row(i))
    w.flush()
    with monkeypatch.context() as patch:
        patch.setattr(resizing, "append", fail)
        w.append(row(12))
        with pytest.raises(zcore.WriterError, match="rows 12 to 12 are not stored"):
            w.flush()
        check(g, 12)
    w.close()
    check(g, 13)


@pytest.mark.parametrize("name", ["time", "x", "y"])
def test_an_array_of_other_dimensions_takes_the_place(name):
    g = group()
    with g.writer("time") as w:
        for i in range(7):
            w.append(row(i))
        w.flush()
        g.create_array(name, shape=(), dtype="f4", overwrite=True)
        for n in (8, 9):
            w.append(row(n))
            with pytest.raises(zcore.WriterError, match="rows 7 to .* replaced"):
                w.flush()
            assert w.n_given == n
        w.abort()
    for other in {"time", "x", "y", "step"} - {name}:
        assert zcore.open(g.store, path=other).shape[other == "y"] == 7


def test_a_kill_between_two_arrays(tmp_path):
    g = group(tmp_path / "g")
    with g.writer("time") as w:
        for i in range(12):
            w.append(row(i))
    subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import os, sys, zcore
        from zcore.hierarchy import resizing
        append = resizing.append
        resizing.append = lambda binding, *args: os._exit(0) if binding.path == "step" else append(binding, *args)
        g = zcore.open_group(sys.argv[1], "r+")
        w = g.writer("time")
        w.append({"time": [7], "x": [[7, 7, 7]], "y": [[7], [7]], "step": [7]})
        w.flush()
    """), tmp_path / "g"], check=True)
    assert zcore.open(tmp_path / "g", path="x").shape == (13, 3)
    assert zcore.open(tmp_path / "g", path="time").shape == (12,)
    with zcore.open_group(tmp_path / "g", "r+").writer("time") as w:
        w.append(row(12))
    check(g, 13)
    assert zcore.verify(tmp_path / "g").ok


def test_a_writer_that_is_made_while_another_one_appends(tmp_path, monkeypatch):
    """Between the looks at two arrays, an append goes through; and once one array is longer for good."""
    g, refresh, looks = group(tmp_path / "g"), zcore.Array.refresh, []

    def refresh_and_append(array):
        looks.append(array)
        if len(looks) == 2:
            with zcore.open_group(tmp_path / "g", "r+").writer("time") as w:
                w.append(row(0))
        return refresh(array)

    monkeypatch.setattr(zcore.Array, "refresh", refresh_and_append)
    with zcore.open_group(tmp_path / "g", "r+").writer("time") as w:
        w.append(row(1))
    check(g, 2)
    g["x"].resize((3, 3))
    with pytest.raises(ValueError, match="different lengths"):
        zcore.open_group(tmp_path / "g", "r+").writer("time")


def test_two_writers_of_one_group(tmp_path):
    g = group(tmp_path / "g")

    def work(me):
        with zcore.open_group(tmp_path / "g", "r+").writer("time", queue=500) as w:
            for i in range(40):
                w.append(row(100 * me + i))

    threads = [threading.Thread(target=work, args=(me,)) for me in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    time = g["time"][...]
    assert sorted(time.tolist()) == [100 * me + i for me in range(3) for i in range(40)]
    assert (g["x"][...] == time[:, None]).all() and (g["y"][...] == time).all() and (g["step"][...] == time).all()
