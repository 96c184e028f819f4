"""Lock files: who holds one, who waits, what is stale, and what is left behind."""
import contextlib
import errno
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.each import each
from zcore.errors import LockError
from zcore.kernel.io.documents import Descriptor
from zcore.stores.directory import lock_file
from zcore.stores.directory.lock_file import NODE, LockFile

SAID = "process 7 of the host elsewhere, since 2020-01-01 00:00:00 +0000"


def put(directory, said=SAID, *, name="f" * 32, machine=None, lock=NODE):
    """Make the lock file of another process, which has ended unless it has a `machine` of its own.

    `name` is that of its socket.
    """
    machine = machine or lock_file._end_of_ids().rpartition(".")[2]
    (directory / lock).mkdir()
    file = directory / lock / f"{'0' * 32}.{name}.{machine}"
    file.write_text(said)
    return file


def times_out(function, seconds=0.3):
    """Return whether a call takes longer; it goes on in a thread, which is returned as well."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(seconds)
    return thread.is_alive(), thread


@pytest.fixture
def quick(monkeypatch):
    """Locks that are stale within a second."""
    monkeypatch.setattr(lock_file, "STALE_SECONDS", 0.6)
    monkeypatch.setattr(lock_file, "RENEWED_SECONDS", 0.1)
    monkeypatch.setattr(lock_file, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(lock_file, "_renewers", [])     # one that runs already sleeps for longer


def test_nothing_is_left(tmp_path):
    with LockFile(str(tmp_path), NODE).hold() as file:
        assert os.listdir(tmp_path) == [NODE]
        [name] = os.listdir(tmp_path / NODE)
        said = (tmp_path / NODE / name).read_text()
        assert said.startswith(f"process {os.getpid()} of the host {os.uname().nodename}, since 2")
        file.check()
    assert os.listdir(tmp_path) == []


def test_one_at_a_time(tmp_path):
    """Two `LockFile` of one directory do not know of each other, as in two processes."""
    one, two = LockFile(str(tmp_path), NODE), LockFile(str(tmp_path), NODE)
    with one.hold():
        waits, thread = times_out(lambda: two.hold().__enter__())
        assert waits
    thread.join()
    assert os.listdir(tmp_path) in ([], [NODE])


def test_numbers_that_are_read_and_written_back(tmp_path):
    total = [0]

    def work():
        file = LockFile(str(tmp_path), NODE)
        for _ in range(30):
            with file.hold():
                n = total[0]
                time.sleep(0.0002)
                total[0] = n + 1

    at_once(threading.Thread(target=work) for _ in range(8))
    assert total == [240] and os.listdir(tmp_path) == []


def test_threads_share_it_and_others_get_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(lock_file, "MAX_TURN_SECONDS", 0.1)
    file, other, stop, n_turns = LockFile(str(tmp_path), NODE), LockFile(str(tmp_path), NODE), threading.Event(), [0]

    def work():
        while not stop.is_set():
            with file.hold(), file.hold():      # a thread that holds it need not wait for itself
                n_turns[0] += 1
                time.sleep(0.005)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            waits, taker = times_out(lambda: _take_and_give_back(other), 60)
            assert not waits
        until = time.monotonic() + 60       # a busy machine gives threads few turns meanwhile
        while n_turns[0] <= 10 and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert n_turns[0] > 10 and os.listdir(tmp_path) == []


def _take_and_give_back(file):
    with file.hold():
        pass


def test_what_a_process_that_has_ended_held(tmp_path):
    put(tmp_path)
    with pytest.warns(UserWarning, match="was held by process 7 of the host elsewhere.*which has ended"), \
            LockFile(str(tmp_path), NODE).hold():
        assert len(os.listdir(tmp_path / NODE)) == 1
    assert os.listdir(tmp_path) == []


@pytest.fixture
def child(tmp_path):
    """Another process of this machine, and its lock file."""
    code = "import sys, zcore.stores.directory.lock_file as f; print(f._end_of_ids(), flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as child:
        yield child, put(tmp_path, name=child.stdout.readline().split(".")[1])
        child.kill()


def test_a_process_of_this_machine_may_stand_still(tmp_path, quick, child):
    process, file = child
    # Warnings of a thread that is started here are noted here.
    with pytest.warns(UserWarning, match="has ended"):
        waits, thread = times_out(lambda: _take_and_give_back(LockFile(str(tmp_path), NODE)), 2)
        assert waits and file.exists()
        process.kill()
        thread.join()
    assert os.listdir(tmp_path) == []


def test_the_child_of_a_fork_is_another_process(tmp_path):
    """It does not keep the name of its parent, and has a name of its own."""
    end = lock_file._end_of_ids()
    asked, asking = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(asking, lock_file._end_of_ids().encode())
        os._exit(0)
    os.waitpid(pid, 0)
    other = os.read(asked, 1000).decode()
    os.close(asked)
    os.close(asking)
    assert other != end and other.rpartition(".")[2] == end.rpartition(".")[2]
    assert lock_file._is_running("0" * 32 + end, SAID) and lock_file._is_running("0" * 32 + other, SAID) is False


@each("end", ["", ".", "..", "...", ".x", f".{'f' * 32}.", f".{'f' * 32}.elsewhere", ".\udcff.x"])
def test_processes_of_which_nothing_is_known(end):
    assert lock_file._is_running("0" * 32 + end, SAID) is None


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_file_that_could_not_be_removed_keeps_nobody_waiting_for_ever(tmp_path, quick, monkeypatch, elsewhere):
    """Neither this process, which would wait for itself, nor others of this machine."""
    unlink = os.unlink

    def fails(path, **keywords):
        if path.startswith(NODE + "/"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        unlink(path, **keywords)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", fails)
        _take_and_give_back(LockFile(str(tmp_path), NODE))
    assert os.listdir(tmp_path) == [NODE]
    if elsewhere:
        monkeypatch.setattr(lock_file, "_left", set())
    with pytest.warns(UserWarning, match="gave no sign of life") if elsewhere else contextlib.nullcontext():
        _take_and_give_back(LockFile(str(tmp_path), NODE))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("said", [SAID, "", "x" * 9999], ids=range(3))
@pytest.mark.parametrize("when", [0, 2**31 - 1])      # a past and a future that every system can store
def test_a_process_that_does_not_renew_its_file(tmp_path, quick, said, when):
    """Whatever its clock says: the time between the looks counts."""
    os.utime(put(tmp_path, said, machine="elsewhere"), (when, when))
    start = time.monotonic()
    with pytest.warns(UserWarning, match="gave no sign of life for 1 seconds"), LockFile(str(tmp_path), NODE).hold():
        pass
    assert time.monotonic() - start >= 0.6
    assert os.listdir(tmp_path) == []


def test_a_process_that_renews_its_file(tmp_path, quick):
    file = put(tmp_path, machine="elsewhere")
    waits, thread = times_out(lambda: _take_and_give_back(LockFile(str(tmp_path), NODE)), 0)
    for i in range(20):
        time.sleep(0.1)
        os.utime(file, (i, i))
    assert thread.is_alive() and file.exists()
    file.unlink()
    thread.join()


def test_a_long_break_between_two_looks_does_not_count(tmp_path):
    file, other = put(tmp_path, machine="elsewhere"), LockFile(str(tmp_path), NODE)
    other._open = Descriptor(tmp_path, os.O_RDONLY)
    now = 0.0
    for seconds, n_looks in ((1000.0, 30), (1.0, 30)):     # at first the file system stood still
        for _ in range(n_looks):
            assert other._look(now) == SAID and file.exists()
            now += seconds
    with pytest.warns(UserWarning, match="gave no sign of life"):
        other._look(now)
    assert not file.exists()


def test_this_process_renews_its_files(tmp_path, quick):
    with LockFile(str(tmp_path), NODE).hold():
        [name] = os.listdir(tmp_path / NODE)
        file = tmp_path / NODE / name
        os.utime(file, (5, 5))
        deadline = time.monotonic() + 30
        while file.stat().st_mtime == 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert file.stat().st_mtime > 5


def test_many_find_a_stale_lock(tmp_path):
    """However many take it over at once: one holds it at a time."""
    inside, most = [0], [0]

    def work():
        file = LockFile(str(tmp_path), NODE)
        for _ in range(10):
            with file.hold():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0005)
                inside[0] -= 1

    put(tmp_path)
    threads = [threading.Thread(target=work) for _ in range(8)]
    with pytest.warns(UserWarning, match="taken over"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1] and os.listdir(tmp_path) == []


def test_the_lock_of_one_that_stood_still_is_taken_over(tmp_path, quick):
    """It finds out before it replaces a document, and at the end of a write."""
    array = zcore.create_array(tmp_path / "a", shape=4, dtype="i4", lock="file")
    with pytest.raises(LockError, match="was taken over by another process"), array._binding.exclusive() as exclusive:
        held = tmp_path / "a" / NODE
        for name in os.listdir(held):
            (held / name).unlink()
        exclusive.replace_metadata(exclusive.metadata.resized((9,)))
    assert array.refresh().shape == (4,)
    array[...] = 1
    assert sorted(os.listdir(tmp_path / "a")) == ["c", "zarr.json"]


def test_an_empty_directory_is_free(tmp_path):
    (tmp_path / NODE).mkdir()
    _take_and_give_back(LockFile(str(tmp_path), NODE))
    assert os.listdir(tmp_path) == []


def test_file_systems_that_do_not_rename_over_an_empty_directory(tmp_path, monkeypatch):
    rename = os.rename

    def strict(source, destination, **where):
        with contextlib.suppress(FileNotFoundError):
            os.stat(destination, dir_fd=where["dst_dir_fd"])
            raise FileExistsError(errno.EEXIST, "exists")
        rename(source, destination, **where)

    monkeypatch.setattr(os, "rename", strict)
    (tmp_path / NODE).mkdir()
    _take_and_give_back(LockFile(str(tmp_path), NODE))
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_removed_is_named(tmp_path, quick):
    (tmp_path / NODE / "folder").mkdir(parents=True)
    with pytest.raises(LockError, match="cannot be locked by a file: .*lock/folder"):
        _take_and_give_back(LockFile(str(tmp_path), NODE))


def test_a_name_with_control_characters(tmp_path):
    """The file of another program, or of one that means harm, is shown on a terminal."""
    put(tmp_path, "\x1b[2J\n\x07")
    with pytest.warns(UserWarning, match="is taken over") as warned, LockFile(str(tmp_path), NODE).hold():
        pass
    assert str(warned[0].message).isprintable()


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_a_link_in_place_of_a_lock(tmp_path, target):
    """It would be followed here, but not by the look for stale locks: they would be waited for for ever."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / NODE).symlink_to(tmp_path / target)
    with pytest.raises(LockError, match=f"Not a directory: '{NODE}'") as caught, \
            LockFile(str(tmp_path / "node"), NODE).hold():
        pass
    assert caught.value.errno == errno.ENOTDIR
    assert os.listdir(tmp_path / "elsewhere") == [] and os.listdir(tmp_path / "node") == [NODE]
    assert not lock_file.remove_left_over(str(tmp_path / "node" / NODE))


def test_verify_goes_on_where_a_stale_lock_cannot_be_removed(tmp_path):
    zcore.create_array(tmp_path / "a", shape=4, dtype="i4")[:] = 1
    file = put(tmp_path / "a")
    file.unlink()
    file.mkdir()
    report = zcore.verify(tmp_path / "a", repair=True)
    assert not report.ok and file.is_dir()
    np.testing.assert_array_equal(zcore.open(tmp_path / "a")[:], 1)


def test_where_no_file_can_be_made(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / NODE).symlink_to("other")
    for _ in range(2):
        with pytest.raises(LockError, match=f"Not a directory: '{NODE}'; lock=None"):
            _take_and_give_back(LockFile(str(tmp_path), NODE))
        (tmp_path / NODE).unlink()
        (tmp_path / NODE).write_bytes(b"")
    with pytest.raises(FileNotFoundError):
        _take_and_give_back(LockFile(str(tmp_path / "none"), NODE))
    with pytest.raises(LockError):
        _take_and_give_back(LockFile(str(tmp_path / NODE), NODE))
    file = LockFile(str(tmp_path), NODE)
    (tmp_path / NODE).unlink()
    _take_and_give_back(file)
    assert file._open is None and os.listdir(tmp_path) == ["other"]


def test_a_child_holds_nothing_of_its_parent(tmp_path):
    file = LockFile(str(tmp_path), NODE)
    with file.hold():
        pid = os.fork()
        if pid == 0:
            waits, _ = times_out(lambda: _take_and_give_back(file))
            os._exit(0 if waits and os.listdir(tmp_path / NODE) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        file.check()
    with pytest.warns(UserWarning, match="has ended") if os.path.exists(tmp_path / NODE) else contextlib.nullcontext():
        _take_and_give_back(file)
    assert not os.path.exists(tmp_path / NODE)


def test_arrays_that_lock_by_files(tmp_path, monkeypatch):
    """All verbs that write, where the file system has no other locks."""
    import fcntl

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(zcore.config, "_lock", "file")
    group = zcore.create_group(tmp_path / "g")
    array = group.create_array("a", shape=(6, 6), chunks=(2, 3), shards=(4, 6), dtype="i4", data=None)
    array[...] = np.arange(36).reshape(6, 6)
    array[1, 2] = 100
    array.append(np.zeros((2, 6), "i4"))
    array.resize((7, 6))
    array.attrs["x"] = 1
    zcore.copy(group, tmp_path / "copy")
    group.move("a", "b")
    expected = np.vstack([np.arange(36).reshape(6, 6), np.zeros((1, 6))])
    expected[1, 2] = 100
    for found in (group["b"], zcore.open(tmp_path / "copy", path="a")):
        np.testing.assert_array_equal(found[...], expected)
    assert zcore.verify(tmp_path / "copy").ok and zcore.verify(group).ok
    del group["b"]
    assert list(group) == [] and not [name for _, names, _ in os.walk(tmp_path) for name in names if "__zc" in name]


def test_verify_names_what_is_left(tmp_path):
    array = zcore.create_array(tmp_path, shape=4, dtype="i4")
    array[...] = 1
    file = put(tmp_path)
    report = zcore.verify(tmp_path)
    assert "a lock file of process" in str(report.problems[0]) and file.exists()
    assert zcore.verify(tmp_path, repair=True).problems and not (tmp_path / NODE).exists()
    file = put(tmp_path, machine="elsewhere")
    assert zcore.verify(tmp_path, repair=True).ok and file.exists()
    assert list(array.store.list()) == ["c/0", "zarr.json"] and not list(zcore.open_group(tmp_path / "x", "a"))


def test_a_process_that_waits_long_is_told_for_whom(tmp_path, quick, monkeypatch):
    monkeypatch.setattr(lock_file, "WARNED_SECONDS", 0.2)
    put(tmp_path, machine="elsewhere")
    with pytest.warns(UserWarning, match="gave no sign"), \
            pytest.warns(UserWarning, match="waiting for the lock of .* held by process 7 of the host elsewhere"):
        _take_and_give_back(LockFile(str(tmp_path), NODE))


def test_a_handler_that_comes_while_it_is_taken(tmp_path):
    """It would wait for the call that it has interrupted."""
    file = LockFile(str(tmp_path), NODE)
    share = file.hold()
    file._busy = share
    with pytest.raises(LockError, match="in a call that has not ended") as caught, file.hold():
        pass
    assert caught.value.errno == errno.EDEADLK


def test_a_handler_that_comes_while_it_is_given_back(tmp_path):
    """It would wait for the file that the call it has interrupted still holds."""
    found = []

    class Shares(set):
        def discard(self, share):
            super().discard(share)
            if not found:
                found.append(None)
                with pytest.raises(LockError, match="in a call that has not ended") as caught, file.hold():
                    pass
                found[0] = caught.value.errno

    file = LockFile(str(tmp_path), NODE)
    file._shares = Shares()
    with file.hold():
        pass
    assert found == [errno.EDEADLK] and os.listdir(tmp_path) == []
