"""Archives that `zcore.open` and its kin make: there when the handle is closed, and never before."""
import os
import warnings
import zipfile

import numpy as np
import pytest

import zcore
from zcore import replacing
from zcore.__main__ import main
from zcore.errors import (
    NodeExistsError,
    NodeNotFoundError,
    NotADirectoryStoreError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
)

NEW = {"shape": (4, 6), "chunks": (2, 3), "dtype": "i4"}
ELEMENTS = np.arange(24, dtype="i4").reshape(4, 6)


@pytest.fixture(params=["x.zip", "X.ZIP", "x.ozx"])
def path(request, tmp_path):
    return str(tmp_path / request.param)


@pytest.mark.parametrize("mode", ["w", "w-", "x", "a"])
def test_an_array_in_a_new_archive(path, mode):
    with zcore.open(path, mode=mode, **NEW) as a:
        a[...] = ELEMENTS
        a.attrs["unit"] = "K"
        assert not os.path.exists(path) and a[1, 1] == 7
    assert zipfile.is_zipfile(path) and zcore.open(path)[:].tolist() == ELEMENTS.tolist()
    assert zcore.open(path).attrs["unit"] == "K" and zcore.verify(path).ok
    with pytest.raises(StoreError, match="closed"):
        a[0]


def test_only_the_handle_that_was_returned_closes_the_archive(path):
    root = zcore.open_group(path, mode="w")
    with root.create_array("t", data=ELEMENTS) as member:
        member.close()
    with root["t"]:
        pass
    root.create_array("u", data=ELEMENTS)
    assert not os.path.exists(path)
    root.close()
    root.close()
    assert sorted(zcore.open(path).array_keys()) == ["t", "u"]


def test_an_error_in_the_block_leaves_the_old_archive(path, tmp_path):
    zcore.save(path, ELEMENTS)
    with pytest.raises(KeyError), zcore.open(path, mode="w", **NEW):
        raise KeyError
    with pytest.raises(TypeError):
        zcore.open(path, mode="w", shape=3)
    assert zcore.open(path)[:].tolist() == ELEMENTS.tolist() and os.listdir(tmp_path) == [os.path.basename(path)]


def test_a_handle_that_is_forgotten_warns(path, tmp_path):
    a = zcore.create_array(path, data=ELEMENTS)
    with pytest.warns(UserWarning, match="was not closed: there is no archive"):
        del a
    assert os.listdir(tmp_path) == []


def test_an_existing_archive_is_read_or_replaced(path):
    zcore.save(path, ELEMENTS)
    for mode in ("w-", "x"):
        with pytest.raises(NodeExistsError):
            zcore.open(path, mode=mode, **NEW)
    with pytest.raises(NodeExistsError):
        zcore.create_array(path, data=ELEMENTS)
    with pytest.raises(NodeExistsError):
        zcore.create_group(path)
    for mode in ("a", "r+"):
        with pytest.raises(NotADirectoryStoreError, match="made as a whole by mode 'w'"):
            zcore.open(path, mode=mode)
    with pytest.raises(UnsupportedError, match="all in it"):
        zcore.open(path, mode="w", path="b", **NEW)
    with pytest.raises(ReadOnlyError):
        zcore.open(path)[0] = 1
    zcore.save(path, ELEMENTS + 1, overwrite=True)
    with zcore.create_array(path, data=ELEMENTS + 2, overwrite=True):
        assert zcore.open(path)[0, 0] == 1     # until the new one is closed
    assert zcore.open(path)[0, 0] == 2


def test_without_a_file_nothing_is_opened(path):
    for mode in ("r", "r+"):
        with pytest.raises(NodeNotFoundError):
            zcore.open(path, mode=mode)
    assert not os.path.exists(path)


def test_a_directory_of_that_name_is_opened_as_one(path):
    zcore.create_array(zcore.DirectoryStore(path), data=ELEMENTS)
    zcore.open(path, mode="r+")[0, 0] = 5
    assert zcore.open(path, mode="a")[0, 0] == 5
    with zcore.open(path, mode="w", **NEW) as a:
        a[0, 0] = 9
    assert os.path.isdir(path) and zcore.open(path)[0, 0] == 9


def test_several_arrays_are_saved_in_an_archive(path):
    zcore.save(path, ELEMENTS, weights=np.ones(2))
    assert sorted(zcore.load(path)) == ["arr_0", "weights"]
    source = zcore.group()
    source.create_array("a/b", data=ELEMENTS)
    made = dict(zcore.create_hierarchy(store=path, nodes={name: node.metadata for name, node in source.members(None)},
                                       overwrite=True))
    assert made["a/b"].shape == (4, 6) and zipfile.is_zipfile(path)


@pytest.mark.parametrize("by", ["keyword", "config"])
def test_a_durable_archive(path, monkeypatch, by):
    calls = []
    monkeypatch.setattr(replacing, "write_out", lambda fd: calls.append(("write_out", os.path.exists(path))))
    monkeypatch.setattr(replacing, "barrier", lambda fd: calls.append(("barrier", os.path.exists(path))))
    monkeypatch.setattr(zcore.config, "fsync", by == "config")
    zcore.save_array(path, np.arange(24).reshape(4, 6), **{"fsync": True} if by == "keyword" else {})
    assert calls == [("write_out", False), ("barrier", True)] and zcore.load(path).sum() == 276


def test_other_stores_have_nothing_to_close(tmp_path):
    store = zcore.ZipStore(tmp_path / "mine.zip", mode="w")
    with zcore.create_array(store, data=ELEMENTS) as a:
        a.close()
    store.set("k", b"1")
    store.close()
    with zcore.create_array(tmp_path / "d.zarr", data=ELEMENTS) as a:
        a.close()
    a[0] = 1
    assert a[0, 0] == 1


def test_the_command_makes_an_archive(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["create", "x.zip", "--shape", "4,6", "--dtype", "i4"]) == 0
        assert main(["cp", "x.zip", "y.zarr"]) == main(["cp", "y.zarr", "z.ozx"]) == 0
    assert zipfile.is_zipfile("x.zip") and zcore.open("z.ozx").shape == (4, 6)


@pytest.mark.parametrize("folder", ["", "a/b/"])
@pytest.mark.parametrize("open", [zcore.open, zcore.open_array, zcore.open_group])
def test_an_archive_of_the_folder_above_says_where_the_node_is(tmp_path, folder, open):
    """``zip -r x.zip image.zarr``: each name begins with that of the folder."""
    zcore.create_array(tmp_path / "image.zarr", data=ELEMENTS)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for file in sorted((tmp_path / "image.zarr").rglob("*")):
            archive.write(file, folder + str(file.relative_to(tmp_path)))
    with pytest.raises(NodeNotFoundError, match=rf"holds no (node|group); path='{folder}image.zarr' is a node$"):
        open(tmp_path / "x.zip")
    np.testing.assert_array_equal(zcore.open(tmp_path / "x.zip", path=f"{folder}image.zarr")[...], ELEMENTS)


def test_an_archive_without_a_node_says_only_that(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/b.txt", "x")
        archive.writestr("c/d.txt", "x")
    with pytest.raises(NodeNotFoundError, match="holds no node$"):
        zcore.open(tmp_path / "x.zip")


@pytest.mark.parametrize("fsync", ["no", 0, []])
@pytest.mark.parametrize("name", ["a.zip", "a.npy", "a.asdf", "a"])
def test_fsync_of_a_copy_is_true_or_false(tmp_path, name, fsync):
    with pytest.raises(TypeError, match="fsync is"):
        zcore.copy(zcore.array([1]), tmp_path / name, fsync=fsync)
    assert os.listdir(tmp_path) == []
