"""The directory of a new node: made where nothing is, or not at all."""
import fcntl
import os
import threading

import pytest

from tests.at_once import at_once
from tests.descriptors import descriptors, needs_a_list
from zcore.kernel.io.documents import read_first
from zcore.kernel.io.new_directory import new_directory


def make(path, names=(b"x", b"y"), values=(b"1", b"22"), is_locked=True, above=None):
    return new_directory(os.fsencode(path), names, values, is_locked, above)


@pytest.mark.parametrize("is_locked", [True, False])
def test_all_files_are_there(tmp_path, is_locked):
    made = make(tmp_path / "a", is_locked=is_locked)
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == {"x": b"1", "y": b"22"}
    assert read_first(os.fsencode(tmp_path / "a"), (b"y",), 10) == (0, b"22", made)


def test_modes_are_those_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        make(tmp_path / "a")
    finally:
        os.umask(before)
    assert os.stat(tmp_path / "a").st_mode & 0o777 == 0o750
    assert os.stat(tmp_path / "a/x").st_mode & 0o777 == 0o640


def test_the_file_above_has_to_be_there(tmp_path):
    assert make(tmp_path / "a", above=b"z") is None
    assert os.listdir(tmp_path / "a") == []
    (tmp_path / "z").write_bytes(b"")
    assert make(tmp_path / "b", above=b"z") is not None


@pytest.mark.parametrize("what", [os.mkdir, lambda path: path.touch(), os.mkfifo,
                                  lambda path: os.symlink("nowhere", path),
                                  lambda path: os.symlink(path.parent, path)])
def test_nothing_is_done_where_something_is(tmp_path, what):
    what(tmp_path / "a")
    before = os.lstat(tmp_path / "a"), sorted(os.listdir(tmp_path))
    assert make(tmp_path / "a") is None
    assert (os.lstat(tmp_path / "a"), sorted(os.listdir(tmp_path))) == before


@pytest.mark.parametrize("path", ["b/a", "x" * 300, "x/" * 3000 + "a"])
def test_nothing_is_done_where_no_directory_can_be(tmp_path, path):
    assert make(tmp_path / path) is None and os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_made(tmp_path):
    """What was made stays, as after a kill."""
    assert make(tmp_path / "a", (b"x", b"y" * 300)) is None and os.listdir(tmp_path / "a") == ["x"]


def test_no_more_than_two_files(tmp_path):
    assert make(tmp_path / "a", (b"x",) * 3, (b"1",) * 3) is None and make(tmp_path / "a", (), ()) is None
    assert os.listdir(tmp_path) == []


@needs_a_list
def test_it_is_not_locked_in_the_end(tmp_path):
    n_open = descriptors()
    make(tmp_path / "a")
    fd = os.open(tmp_path / "a", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)
    assert descriptors() <= n_open


def test_of_several_threads_one_succeeds(tmp_path):
    made = []
    for n in range(50):
        barrier = threading.Barrier(4)

        def run(n=n, barrier=barrier):
            barrier.wait()
            made.append(make(tmp_path / str(n)))

        at_once(threading.Thread(target=run) for _ in range(4))
    assert len(made) == 200 and sum(one is not None for one in made) == 50
    assert all(sorted(os.listdir(tmp_path / str(n))) == ["x", "y"] for n in range(50))
