"""Keywords that are True or False take nothing else: of any text Python would make True."""
import pickle

import numpy as np
import pytest

import zcore
import zcore.config

WRONG = ("no", "", 1.5, 0.0, 1, 0, [], [True], b"", np.int8(1), np.array([True, False]), object)


def make(**keywords):
    return zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", zarr_format="zmeta", **keywords)


@pytest.mark.parametrize("value", [*WRONG, None], ids=repr)
@pytest.mark.parametrize("keyword", ["lock", "strict", "fsync", "overwrite", "write_empty_chunks"])
def test_what_is_neither_true_nor_false_is_refused(tmp_path, keyword, value):
    if value is None and keyword in ("lock", "fsync", "write_empty_chunks"):
        assert make(lock=None, fsync=None, write_empty_chunks=None).lock is False
        return
    allowed = "True, False, None, 'on', 'off' or 'file'" if keyword == "lock" else "True or False"
    error = ValueError if keyword == "lock" and isinstance(value, str) else TypeError
    for call in (lambda: make(**{keyword: value}),
                 lambda: zcore.create_array(tmp_path / "a", shape=4, dtype="i4", zarr_format="zmeta",
                                            **{keyword: value})):
        with pytest.raises(error, match=f"{keyword} is .*, expected {allowed}$"):
            call()
    if keyword != "overwrite":
        for mode in ("r", "a", "w"):
            with pytest.raises(error, match=keyword):
                zcore.open(tmp_path / "a", mode, shape=4, dtype="i4", cname="lz4", **{keyword: value})
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_stores_refuse_it_as_well(tmp_path, value):
    for keyword in ("read_only", "fsync", "confined", "allow_aliases"):
        with pytest.raises(TypeError, match=f"{keyword} is .*, expected True or False"):
            zcore.DirectoryStore(tmp_path, **{keyword: value})
    with pytest.raises(TypeError, match="read_only is"):
        zcore.MemoryStore(read_only=value)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_true_and_false_of_numpy_are_taken(tmp_path, value):
    a = make(lock=value, strict=value, write_empty_chunks=value, fsync=False, overwrite=value)
    assert a.lock is bool(value) is a.strict
    a[...] = 0
    assert a.nchunks_initialized == bool(value)
    store = zcore.create_array(tmp_path, shape=4, dtype="i4", zarr_format="zmeta", fsync=value).store
    assert store.fsync is bool(value)
    assert zcore.DirectoryStore(tmp_path, read_only=value).read_only is bool(value)


def test_fsync_is_the_stores_own(tmp_path):
    """A store that somebody made keeps its promise; another one cannot be asked of it afterwards."""
    for store in (zcore.DirectoryStore(tmp_path), zcore.MemoryStore()):
        with pytest.raises(ValueError, match=r"DirectoryStore\(path, fsync=True\)"):
            zcore.open(store, "w", shape=4, dtype="i4", cname="lz4", fsync=True)
    durable = zcore.DirectoryStore(tmp_path, fsync=True)
    for fsync in (True, False):
        assert zcore.open(durable, "w", shape=4, dtype="i4", cname="lz4", fsync=fsync).store is durable


def test_how_a_handle_locks(tmp_path, monkeypatch):
    """True is what `zcore.config.lock` says when the handle is made; a pickle carries that, wherever it goes."""
    monkeypatch.setattr(zcore.config, "_lock", None)
    monkeypatch.setenv("ZCORE_LOCK", " file ")
    assert zcore.config.lock == "file" and zcore.config.show_config(mode="dicts")["settings"]["lock"] == "file"
    kinds = {True: "file", None: None, False: None, "on": "on", "off": None, "file": "file"}
    for lock, kind in kinds.items():
        array = zcore.create_array(tmp_path / "a", shape=4, dtype="i4", overwrite=True, lock=lock)
        assert array._binding.options.lock == kind and array.lock is (kind is not None)
    array = zcore.open(tmp_path / "a", mode="r+")
    text = pickle.dumps(array)
    zcore.config.lock = "off"
    assert zcore.open(tmp_path / "a", mode="r+").lock is False
    assert pickle.loads(text)._binding.options.lock == array._binding.options.lock == "file"
    for wrong, error in (("of", ValueError), (True, TypeError), (None, TypeError)):
        with pytest.raises(error, match="lock must be"):
            zcore.config.lock = wrong
    assert zcore.config.lock == "off"


def test_a_wrong_environment_is_told_when_it_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(zcore.config, "_lock", None)
    monkeypatch.setenv("ZCORE_LOCK", "flock")
    with pytest.raises(ValueError, match="ZCORE_LOCK must be 'on', 'off' or 'file', not 'flock'"):
        zcore.create_array(tmp_path / "a", shape=4, dtype="i4")
    assert not (tmp_path / "a").exists()
    assert zcore.create_array(tmp_path / "a", shape=4, dtype="i4", lock="on").lock is True
