"""Files written whole, beside erasures that prune the directories they go to."""
import functools
import os

from zcore.stores.directory import atomic


def test_pruned_directory_needs_no_sync(tmp_path):
    atomic.sync_directory(str(tmp_path / "gone"))


def test_parent_pruned_right_after_a_durable_mkdir_is_made_anew(tmp_path, monkeypatch):
    sync, pruned = atomic.sync_directory, []

    def prune_then_sync(directory):
        # What an erasure does between our mkdir in `directory` and our sync of it.
        if directory == str(tmp_path / "p") and not pruned:
            pruned.append(directory)
            os.rmdir(tmp_path / "p" / "q")
            os.rmdir(tmp_path / "p")
        sync(directory)

    monkeypatch.setattr(atomic, "sync_directory", prune_then_sync)
    assert atomic.write_file(str(tmp_path / "p" / "q" / "0"), memoryview(b"new"), fsync=True)
    assert (tmp_path / "p" / "q" / "0").read_bytes() == b"new"
    assert pruned


def test_a_directory_that_is_pruned_and_made_anew_at_any_look(tmp_path, monkeypatch):
    """It was there, is gone, and is there again: between any two looks, no look says that it is no directory."""
    directory = tmp_path / "d"
    for n_absent in range(3):
        directory.mkdir(exist_ok=True)
        left = iter([True] * n_absent)

        def look(path, real, left=left):
            if path == str(directory) and next(left, False):
                raise FileNotFoundError(2, "gone", path)
            return real(path)

        with monkeypatch.context() as patch:
            for name in ("stat", "lstat"):
                patch.setattr(atomic.os, name, functools.partial(look, real=getattr(os, name)))
            atomic.make_directories(str(directory))
