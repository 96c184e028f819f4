"""Handles of ASDF files that another handle or program has changed: nothing is lost, or an error says so."""
import errno
import json
import os
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from zcore.errors import LockError, StoreError

pytest.importorskip("yaml")

CHANGED = "was changed by another program since it was opened"
PAD = 2000
A, B = np.arange(300.0), np.arange(50)

# What other handles do, as text: this process and another one run the same.
FIRST = {
    "append_block": """
with zcore.asdf.open(path, "rw") as file:
    file.append_block(b"of the first")
""",
    "update": """
with zcore.asdf.open(path, "rw") as file:
    file.tree["first"] = np.arange(7)
    file.update(pad=2000)
""",
    "update in place": """
with zcore.asdf.open(path, "rw") as file:
    file.tree["a"] = -np.asarray(file.tree["a"])
    file.tree["name"] = "y"
    assert file.update(in_place=True)
""",
    "RowWriter.append": """
with zcore.asdf.stream(path) as rows:
    rows.append([[-1, -2, -3]])
""",
    "defragment": """
zcore.asdf.defragment(path, pad=1)
""",
    "write": """
zcore.asdf.write(path, {"other": np.arange(9)})
""",
    "asdf": """
import asdf
with asdf.open(path, mode="rw", memmap=False) as file:
    file["first"] = np.arange(7)
    file.update()
""",
}


def in_place(file):
    file.tree["a"] = A * 2
    file.update(in_place=True)


def update(file):
    file.tree["second"] = B
    file.update()


SECOND = {
    "append_block": lambda file: file.append_block(b"of the second"),
    "update": update,
    "update in place": in_place,
    "RowWriter.append": lambda rows: rows.append([[7, 8, 9]]),
}


def make(path, has_rows):
    """Write a file with a stream or without one."""
    tree = {"a": A, "name": "x", "filler": "x" * PAD}
    if has_rows:
        with zcore.asdf.stream(path, {**tree, "rows": zcore.asdf.Stream((3,), "<i4")}) as rows:
            rows.append([[1, 2, 3]])
    else:
        zcore.asdf.write(path, tree, pad=PAD)


def opened(path, name):
    return zcore.asdf.stream(path) if name == "RowWriter.append" else zcore.asdf.open(path, "rw")


@pytest.fixture
def other(tmp_path, crew):
    """Return a function that runs text in another process."""
    process = crew.start(str(tmp_path), """
ready()
for line in sys.stdin:
    path, text = json.loads(line)
    exec(text)
    print("done", flush=True)
""")
    crew.go([process])

    def run(path, text):
        process.stdin.write(json.dumps([str(path), text]) + "\n")
        process.stdin.flush()
        assert crew.line(process) == "done"

    return run


def here(path, text):
    exec(text, {"path": str(path), "np": np, "zcore": zcore})


@pytest.mark.parametrize("where", ["this process", "another process"])
def test_every_pair_of_changes(tmp_path, other, where):
    """The second one is through a handle that was opened before the first one."""
    run = here if where == "this process" else other
    n = 0
    for first, text in FIRST.items():
        if first == "asdf":
            pytest.importorskip("asdf")
        for second, change in SECOND.items():
            has_rows = "RowWriter.append" in (first, second)
            if first == "append_block" and has_rows:
                continue     # none can follow a streamed block
            path = tmp_path / f"{n}.asdf"
            make(path, has_rows)
            with opened(path, second) as old:
                _ = old.tree if hasattr(old, "tree") else old.n_rows
                run(path, text)
                whole = path.read_bytes()
                for _ in range(2):
                    with pytest.raises(StoreError, match=CHANGED):
                        change(old)
                assert path.read_bytes() == whole, (first, second)
            n += 1
            if has_rows and (second == "append_block" or first == "write"):
                continue
            with opened(path, second) as new:
                change(new)
    assert n > 20


def test_a_file_that_is_gone_or_moved(tmp_path):
    path = tmp_path / "a.asdf"
    for leave in (os.unlink, lambda path: os.rename(path, f"{path}.old")):
        make(path, False)
        with zcore.asdf.open(path, "rw") as file:
            leave(path)
            with pytest.raises(StoreError, match=CHANGED):
                file.append_block(b"x")
            with pytest.raises(StoreError, match=CHANGED):
                update(file)
        assert not path.exists()


def test_another_content_of_the_same_size_and_time(tmp_path):
    path = tmp_path / "a.asdf"
    make(path, False)
    with zcore.asdf.open(path, "rw") as file:
        status = path.stat()
        path.write_bytes(path.read_bytes().replace(b"name: x", b"name: z"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        with pytest.raises(StoreError, match=CHANGED):
            update(file)


@pytest.mark.parametrize("size", ["nothing", "a part of the tree", "the tree", "the first block"])
@pytest.mark.parametrize("is_read", [False, True])
def test_a_file_that_is_cut_off(tmp_path, size, is_read):
    """The error says so, whatever had been read before; it is not one of blocks or members that are missing."""
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"a": A, "b": B})
    with zcore.asdf.open(path) as file:
        end = file.front.tree_end
        sizes = {"nothing": 0, "a part of the tree": end - 30, "the tree": end,
                 "the first block": file.blocks[0].header.end}
    with zcore.asdf.open(path) as file:
        _ = is_read and file.tree
        os.truncate(path, sizes[size])
        for _ in range(2):
            with pytest.raises(zcore.AsdfFormatError, match="another program has made it shorter since it was opened"):
                file.tree["b"].read()


def test_own_changes_are_no_others(tmp_path):
    """One handle makes all of them, one after the other, also by way of a link."""
    path, link = tmp_path / "a.asdf", tmp_path / "link.asdf"
    make(path, False)
    link.symlink_to(path)
    with zcore.asdf.open(link, "rw") as file:
        for i in range(3):
            assert file.append_block(b"x") == len(file.blocks) - 1
            file.tree["name"] = f"{i}"
            assert file.update(in_place=True)
            file.tree["b"] = B + i
            file.update(pad=PAD)
    with zcore.asdf.open(path) as file:
        assert np.array_equal(file.tree["b"].read(), B + 2) and np.array_equal(file.tree["a"].read(), A)
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), "<i4")}) as rows:
        for i in range(5):
            rows.append([i, i, i])
    assert zcore.open(path)["rows"].shape == (5, 3)


def test_in_place_within_one_tick_of_the_clock(tmp_path, monkeypatch):
    """Size and time of change may stay the same; the handle gives the file another time."""
    path = tmp_path / "a.asdf"
    make(path, False)
    with zcore.asdf.open(path, "rw") as first, zcore.asdf.open(path, "rw") as second:
        _ = first.tree, second.tree
        status = path.stat()
        pwrite = os.pwrite

        def at_the_same_time(fd, data, offset):
            n = pwrite(fd, data, offset)
            os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))
            return n

        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", at_the_same_time)
            in_place(first)
        assert path.stat().st_size == status.st_size
        with pytest.raises(StoreError, match=CHANGED):
            in_place(second)


@pytest.mark.parametrize("tail", [b"foreign", b"\0\0foreign", b"\0" * 5000 + b"f", b"#ASDF BLOCK INDEX is none",
                                  b"\0\0\0\0\0\x30" + b"x" * 48])
@pytest.mark.parametrize("index", [False, True])
def test_foreign_bytes_behind_the_last_block_stay(tmp_path, tail, index):
    """Neither a new block nor a new file takes their place."""
    path = tmp_path / "a.asdf"
    zcore.asdf.write(path, {"a": A}, index=index, pad=PAD)
    with open(path, "ab") as file:
        file.write(tail)
    whole = path.read_bytes()
    is_left = tail.startswith(b"\0\0\0\0\0\x30") and not index
    with zcore.asdf.open(path, "rw") as file:
        if is_left:
            assert file.append_block(b"x") == 1
            return
        with pytest.raises(StoreError, match=r"would be lost; `zcore.asdf.defragment`"):
            file.append_block(b"x")
        with pytest.raises(StoreError, match="would be lost"):
            update(file)
        file.tree["b"] = B
        with pytest.raises(StoreError, match="would be lost"):
            file.update(in_place=True)
        assert path.read_bytes() == whole
        del file.tree["second"], file.tree["b"]
        assert file.update(in_place=True) and path.read_bytes().endswith(tail)
    zcore.asdf.defragment(path)
    with zcore.asdf.open(path, "rw") as file:
        assert file.append_block(b"x") == 1 and np.array_equal(file.tree["a"].read(), A)


def test_locks_follow_the_setting(tmp_path, monkeypatch):
    """Without locks the file is compared all the same; with `file` a file system without locks is no obstacle."""
    path = tmp_path / "a.asdf"
    make(path, False)

    def refuse(*_):
        raise LockError("no locks here", errno=errno.ENOLCK)

    monkeypatch.setattr("zcore.asdf.source.locks_of", refuse)
    for kind, is_refused in (("on", True), ("file", False), ("off", False)):
        monkeypatch.setattr(zcore.config, "lock", kind)
        with zcore.asdf.open(path, "rw") as first, zcore.asdf.open(path, "rw") as second:
            if is_refused:
                with pytest.raises(LockError):
                    first.append_block(b"x")
                continue
            first.append_block(b"x")
            with pytest.raises(StoreError, match=CHANGED):
                second.append_block(b"x")
    monkeypatch.setattr(zcore.config, "lock", "on")
    zcore.asdf.defragment(path)
    zcore.asdf.write(path, {})


def test_a_child_of_a_fork_has_a_handle_of_its_own(tmp_path):
    path = tmp_path / "a.asdf"
    make(path, False)
    with zcore.asdf.open(path, "rw") as file:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if file.append_block(b"of the child") == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        with pytest.raises(StoreError, match=CHANGED):
            file.append_block(b"x")
    with zcore.asdf.open(path) as file:
        assert bytes(file.blocks[1].read()) == b"of the child" and len(file.blocks) == 2


def test_threads_append_through_one_handle(tmp_path):
    path = tmp_path / "a.asdf"
    make(path, False)
    numbers = {}
    with zcore.asdf.open(path, "rw") as file:
        def work(me):
            for i in range(5):
                numbers[me, i] = file.append_block(f"{me} {i}".encode())

        at_once(threading.Thread(target=work, args=(me,)) for me in range(4))
        assert sorted(numbers.values()) == list(range(1, 21))
        for (me, i), number in numbers.items():
            assert bytes(file.blocks[number].read()) == f"{me} {i}".encode()


RACE = """
def until_it_is_done(change):
    n = 0
    while True:
        try:
            return change()
        except zcore.StoreError as error:
            assert "was changed by another program" in str(error), error
            n += 1

def append_block(i):
    with zcore.asdf.open(path, "rw") as file:
        file.append_block(f"block {me} {i}".encode(), compression=[None, "zlib"][i % 2])

def update(i):
    with zcore.asdf.open(path, "rw") as file:
        file.tree[f"update {me} {i}"] = np.full(20, 100 * me + i)
        file.update(pad=1000)

def in_place(i):
    with zcore.asdf.open(path, "rw") as file:
        file.tree[f"update {me} {i}"] = np.full(20, 100 * me + i)
        file.update(in_place=True, pad=1000)

def append_row(i):
    with zcore.asdf.stream(path) as rows:
        rows.append([[me, i, me * i]])

def defragment(i):
    zcore.asdf.defragment(path, pad=500)

path = os.path.join(path, "a.asdf")
me, verbs, n_rounds = given
ready()
for i in range(n_rounds):
    until_it_is_done(lambda: globals()[verbs[i % len(verbs)]](i))
print("done", flush=True)
"""


def race(crew, path, verbs, n_rounds, n_processes=3):
    processes = [crew.start(str(path.parent), RACE, [me, verbs, n_rounds]) for me in range(n_processes)]
    crew.go(processes)
    for process in processes:
        assert crew.line(process) == "done"
    return [(me, i, verbs[i % len(verbs)]) for me in range(n_processes) for i in range(n_rounds)]


@pytest.mark.parametrize("n_rounds", [8, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verbs", [
    *[pytest.param([verb], marks=pytest.mark.slow) for verb in ("append_block", "update", "in_place")],
    ["append_block", "update", "in_place", "defragment"]])
def test_processes_lose_nothing(tmp_path, crew, verbs, n_rounds):
    """Each change that was told as done is there at the end."""
    path = tmp_path / "a.asdf"
    make(path, False)
    made = race(crew, path, verbs, n_rounds)
    with zcore.asdf.open(path) as file:
        contents = {bytes(block.read()) for block in file.blocks}
        for me, i, verb in made:
            if verb == "append_block":
                assert f"block {me} {i}".encode() in contents
            elif verb != "defragment":
                assert np.asarray(file.tree[f"update {me} {i}"]).tolist() == [100 * me + i] * 20
        assert np.array_equal(file.tree["a"].read(), A)
        file.verify()


@pytest.mark.parametrize("n_rounds", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verbs", [["append_row"], ["append_row", "append_row", "defragment"]])
def test_processes_lose_no_rows(tmp_path, crew, verbs, n_rounds):
    path = tmp_path / "a.asdf"
    make(path, True)
    made = [[me, i, me * i] for me, i, verb in race(crew, path, verbs, n_rounds) if verb == "append_row"]
    found = zcore.open(path)["rows"][:].tolist()
    assert found[0] == [1, 2, 3] and sorted(found[1:]) == sorted(made)
