"""HDF5 files as sources and destinations: what is damaged, what is left out, what HDF5 cannot hold."""
import time

import numpy as np
import pytest

import zcore
from zcore.errors import IncompleteCopyWarning
from zcore.tools.files.hdf5 import Hdf5Source

h5py = pytest.importorskip("h5py")
VALUES = np.arange(60).reshape(6, 10)


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/d", data=VALUES, chunks=(3, 5), compression="gzip", fletcher32=True)
        file["g"].attrs["unit"] = "m"
        file["text"] = np.array(["a", "bc"], object)
        file["time"] = np.arange(6)
        file["time"].make_scale("time")
        file["g/d"].dims[0].attach_scale(file["time"])
    return tmp_path / "a.h5"


# damage

@pytest.mark.parametrize("call", [zcore.copy, lambda path, _: zcore.references_from_hdf5(path)])
def test_files_that_are_cut_off(path, call):
    data = path.read_bytes()
    for n in range(0, len(data), 97):
        path.write_bytes(data[:n])
        with pytest.raises(zcore.StoreError, match=r"a\.h5"):
            call(path, zcore.MemoryStore())


@pytest.mark.parametrize("raised", [RuntimeError("x"), KeyError("x"), ValueError("x"), TypeError("x"), OSError(5, "x"),
                                    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), MemoryError(), OverflowError("x")])
@pytest.mark.parametrize("place", ["Dataset.__getitem__", "Dataset.shape", "Dataset.fillvalue", "Group.__iter__",
                                   "Group.get"])
def test_whatever_h5py_raises_is_an_error_of_the_store(path, raised, place, monkeypatch):
    kind, name = place.split(".")

    def fail(*_, **__):
        raise raised

    fault = fail if callable(getattr(getattr(h5py, kind), name)) else property(fail)
    monkeypatch.setattr(getattr(h5py, kind), name, fault)
    with pytest.raises(zcore.StoreError, match=r"a\.h5") as told:
        zcore.copy(path, zcore.MemoryStore(), path="g" if place == "Dataset.__getitem__" else "")
    assert told.value.errno == getattr(raised, "errno", None) and told.value.__cause__ is raised


def test_an_object_that_is_damaged_is_not_left_out(path):
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["g/d"].id).addr
    data = bytearray(path.read_bytes())
    data[address] ^= 0xff
    path.write_bytes(data)
    for name in ("", "g/d"):
        with pytest.raises(zcore.StoreError, match=r"a\.h5"):
            zcore.copy(path, zcore.MemoryStore(), path=name)


def test_a_chunk_that_is_damaged(path):
    with h5py.File(path) as file:
        place = file["g/d"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[place.byte_offset + 5] ^= 0xff
    path.write_bytes(data)
    with pytest.raises(zcore.StoreError, match=r"a\.h5"):
        zcore.copy(path, zcore.MemoryStore())


# what is left out

def test_what_no_array_can_show_is_left_out_by_name(path):
    with h5py.File(path, "a") as file:
        file["empty"] = h5py.Empty("f4")
        file.create_dataset("g/refs", (2,), h5py.ref_dtype)
        file["g/nowhere"] = h5py.SoftLink("/no/such")
        file["g/far"] = h5py.ExternalLink("no.h5", "/x")
        file.id.links.create_hard(b"..", file.id, b"text")
        file["named"] = np.dtype("i4")
    with pytest.warns() as told:
        new = zcore.copy(path, zcore.MemoryStore())
    assert sorted(name for name, _ in new.members(None)) == ["g", "g/d", "text", "time"]
    texts = sorted(str(warning.message) for warning in told if warning.category is IncompleteCopyWarning)
    assert len(texts) == 4 and len(told) == 5
    for part in ("null dataspaces: empty", "sequences of HDF5: g/refs", "lead nowhere: g/far, g/nowhere",
                 "names that no node can have: '..'"):
        assert any(part in text for text in texts), texts
    for name in ("empty", "g/refs"):
        with pytest.raises(zcore.UnsupportedError):
            zcore.copy(path, zcore.MemoryStore(), path=name)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(path, zcore.MemoryStore(), path="g/nowhere")


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_command_fails_where_something_is_left_out(path, is_whole, tmp_path, capsys):
    from zcore.__main__ import main

    if not is_whole:
        with h5py.File(path, "a") as file:
            file["empty"] = h5py.Empty("f4")
    assert main(["cp", str(path), str(tmp_path / "new")]) == (0 if is_whole else 1)
    assert ("null dataspaces: empty" in capsys.readouterr().err) == (not is_whole)
    assert sorted(zcore.open(tmp_path / "new")) == ["g", "text", "time"]


# what HDF5 cannot hold

@pytest.mark.parametrize("text", ["a\0b", "\0", "end\0"])
def test_a_text_with_nul_is_refused_by_name(text, tmp_path):
    group = zcore.create_group(zcore.MemoryStore())
    group["fine"] = np.array(["a"], np.dtypes.StringDType())
    group["wrong"] = np.array(["a", text], np.dtypes.StringDType())
    with pytest.raises(zcore.UnsupportedError, match="wrong.* NUL"):
        zcore.copy(group, tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []
    group["bytes"] = np.array([b"a\0b", b"\0\0c"])
    del group["wrong"]
    zcore.copy(group, tmp_path / "a.h5")
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())["bytes"][...].tolist() == [b"a\0b", b"\0\0c"]


# the cost of many

def make_variables(path, n, n_scales):
    with h5py.File(path, "w") as file:
        for i in range(n_scales):
            file[f"s{i}"] = np.arange(4)
            file[f"s{i}"].make_scale(f"s{i}")
        for i in range(n):
            file[f"v{i}"] = np.zeros((4, 4), "i1")
            file[f"v{i}"].dims[0].attach_scale(file[f"s{i % n_scales}"])
            file[f"v{i}"].dims[1].attach_scale(file[f"s{-i % n_scales}"])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("are_shared", [True, False])
def test_many_variables_with_dimension_scales(are_shared, tmp_path):
    """HDF5 looks for the name of an object in all of the file: once for each variable was quadratic."""
    def seconds(call):
        start = time.process_time()
        call()
        return time.process_time() - start

    durations = {}
    for n in (400, 1600):
        path = make_variables(tmp_path / f"{n}.h5", n, 3 if are_shared else n)
        durations[n] = (min(seconds(lambda: zcore.references_from_hdf5(path)) for _ in range(2)),
                        min(seconds(lambda: Hdf5Source(str(path), "", None).close()) for _ in range(2)))
    for few, many in zip(durations[400], durations[1600], strict=True):
        assert many < 9 * few, durations


def test_names_of_dimension_scales(tmp_path):
    path = make_variables(tmp_path / "a.h5", 5, 3)
    with h5py.File(path, "a") as file:
        file.create_group("deep")
        file["deep/s"] = np.arange(4)
        file["deep/s"].make_scale("another name")
        file["deep/v"] = np.zeros((4, 4))
        file["deep/v"].dims[0].attach_scale(file["deep/s"])
        file["deep/v"].dims[1].attach_scale(file["s1"])
    new = zcore.copy(path, zcore.MemoryStore())
    assert new["v1"].dimension_names == ("s1", "s2") and new["deep/v"].dimension_names == ("s", "s1")
    assert zcore.copy(path, zcore.MemoryStore(), path="deep")["v"].dimension_names == ("s", "s1")
    assert zcore.open(zcore.references_from_hdf5(path))["deep/v"].attrs["_ARRAY_DIMENSIONS"] == ["s", "s1"]
    with h5py.File(path, "a") as file:
        del file["s1"]      # lives on as a scale without a name
    assert zcore.copy(path, zcore.MemoryStore())["v1"].dimension_names == (None, "s2")
