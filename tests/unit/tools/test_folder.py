"""What a file system can do: what is found where it can, and where it cannot."""
import contextlib
import errno
import fcntl
import os
import threading

import pytest

from tests.at_once import at_once
from zcore.errors import LockError, StoreError
from zcore.tools import folder


def states(found):
    return {name: state for name, state, _ in found}


def test_a_file_system_that_can_do_all(tmp_path):
    found = folder.examine(tmp_path)
    assert set(states(found).values()) == {"ok"}
    assert set(states(found)) >= {"replaces files at once", "fsync", "locks of ranges", "locks of directories",
                                  "lock files", "room"}
    assert os.listdir(tmp_path) == []


def refuse(number):
    def call(*_):
        raise OSError(number, os.strerror(number))
    return call


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", refuse(errno.ENOLCK))
    monkeypatch.setattr(folder, "exchange", refuse(errno.EINVAL))
    monkeypatch.setattr(os, "fsync", refuse(errno.EINVAL))

    class Locks:
        def __init__(self, *_):
            pass

        def object(self, *_):
            raise LockError("no locks", errno=errno.ENOLCK)

    monkeypatch.setattr(folder, "ObjectLocks", Locks)
    found = folder.examine(tmp_path)
    wrong = {name: what for name, state, what in found if state != "ok"}
    assert wrong.keys() == {"exchanges directories", "fsync", "locks of ranges", "locks of directories"}
    assert all(["No locks available" in wrong[name] and "ZCORE_LOCK=file" in wrong[name]
                for name in ("locks of ranges", "locks of directories")])
    assert os.listdir(tmp_path) == []


def test_locks_that_do_not_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_flocked", lambda _: contextlib.nullcontext())
    [found] = [one for one in folder.examine(tmp_path) if one.state != "ok"]
    assert found.name == "locks of directories" and "do NOT hold among the processes of this host" in found.what


@pytest.mark.parametrize("place", ["none", "file"])
def test_a_folder_that_is_none(tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=place):
        folder.examine(tmp_path / place)


def met(tmp_path):
    """Return what two threads find, which have descriptors of their own as two hosts have."""
    found = []
    at_once(threading.Thread(target=lambda: found.append(folder.meet(tmp_path, 20))) for _ in range(2))
    return found


def test_two_hosts(tmp_path):
    (one, found), (two, same) = met(tmp_path)
    assert "process" in one and "process" in two and found == same
    assert states(found) == dict.fromkeys(["locks of ranges", "locks of directories", "lock files"], "ok")
    assert os.listdir(tmp_path) == []


def test_hosts_whose_locks_do_not_reach_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_flocked", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(folder, "ObjectLocks", lambda *_: type("Locks", (), {"object": refuse(errno.ENOLCK)}))
    (_, found), (_, same) = met(tmp_path)
    assert found == same
    assert [one.state for one in found] == ["missing", "missing", "ok"]
    assert "No locks available" in found[0].what and "do NOT hold among these hosts" in found[1].what


def test_nobody_comes(tmp_path):
    with pytest.raises(StoreError, match="no answer from the other host in 0 seconds"):
        folder.meet(tmp_path, 0.1)
    assert os.listdir(tmp_path) == []


def test_locks_of_a_process_that_has_ended_are_no_answer(tmp_path):
    (tmp_path / ".__zc_tmp.doctor" / "first").mkdir(parents=True)
    (tmp_path / ".__zc_tmp.doctor" / "first" / "results").write_text('["process 1 of a host", {"ranges": "held"}]')
    with pytest.raises(StoreError, match="no answer from the other host"):
        folder.meet(tmp_path, 0.1)
    assert os.listdir(tmp_path) == []


def test_a_third_one_comes(tmp_path):
    for side in ("first", "second"):
        (tmp_path / ".__zc_tmp.doctor" / side).mkdir(parents=True)
    with pytest.raises(StoreError, match="two processes have met in .* already"):
        folder.meet(tmp_path, 0.1)
    assert os.listdir(tmp_path) == [".__zc_tmp.doctor"]
