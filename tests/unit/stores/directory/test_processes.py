"""A directory store under several processes at once, and under kill."""
import os
import random
import subprocess
import sys

import pytest

import zcore
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import is_temporary

PRELUDE = """
import sys
from zcore.stores.directory.store import DirectoryStore
store, me = DirectoryStore(sys.argv[1]), int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a process of `store` and `me`; it waits for a line before its body begins."""
    started = []

    def start_one(body, me):
        environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(zcore.__file__)))
        process = subprocess.Popen([sys.executable, "-c", PRELUDE + body, str(tmp_path), str(me)], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        started.append(process)
        return process

    yield start_one
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def go(processes):
    """Let the processes begin when all of them are ready."""
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def outputs(processes):
    """Return what the processes printed, when all have ended well."""
    found = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return found


def test_set_if_not_exists_has_one_winner_among_processes(tmp_path, start):
    """FS-SET-07."""
    processes = [start("""
for i in range(100):
    if store.set_if_not_exists(f"d{i % 7}/{i}", b"%d" % me * 1000):
        print(i)
""", me) for me in range(4)]
    go(processes)
    won = [(int(i), me) for me, text in enumerate(outputs(processes)) for i in text.split()]
    assert sorted(i for i, _ in won) == list(range(100))
    store = DirectoryStore(tmp_path)
    assert all(store.get(f"d{i % 7}/{i}") == b"%d" % me * 1000 for i, me in won)
    assert len(list(store.list())) == 100
    assert not any(is_temporary(name) for _, _, names in os.walk(tmp_path) for name in names)


def test_readers_see_whole_values_of_several_writers(tmp_path, start):
    """FS-SET-03, FS-SET-08."""
    values = {b"%d" % me * (5000 + 3000 * me) for me in range(3)}
    processes = [start("""
for _ in range(300):
    store.set("d/k", b"%d" % me * (5000 + 3000 * me))
""", me) for me in range(3)]
    go(processes)
    store = DirectoryStore(tmp_path)
    seen = set()
    while any(process.poll() is None for process in processes):
        seen.add(store.get("d/k"))
        assert set(store.list()) <= {"d/k"}
    outputs(processes)
    assert seen - {None} <= values
    assert store.get("d/k") in values
    assert os.listdir(tmp_path / "d") == ["k"]


def test_writers_and_pruning_erasers_of_several_processes(tmp_path, start):
    """FS-SET-08, FS-DEL-07: a directory pruned under a writer is made again."""
    processes = [start("""
for i in range(200):
    key = f"p/q/{me}"
    if i % 2:
        store.set(key, b"value")
    else:
        assert store.set_if_not_exists(key, b"value")
    assert store.get(key) == b"value", i
    (store.erase if i % 3 else store.delete)(key)
""", me) for me in range(4)]
    go(processes)
    outputs(processes)
    assert os.listdir(tmp_path) == []


def test_writers_under_erasers_of_the_whole_prefix(tmp_path, start):
    """FS-SET-08: temporary files and directories that an `erase_prefix` takes away do not make a write fail."""
    writers = [start("""
for i in range(150):
    store.set(f"p/q/{me}/{i}", b"value" * 100)
store.set(f"last/{me}", b"done")
""", me) for me in range(2)]
    eraser = start("""
while not (store.exists("last/0") and store.exists("last/1")):
    store.erase_prefix("p/")
store.erase_prefix("p/")
""", 2)
    go([*writers, eraser])
    outputs([*writers, eraser])
    assert list(DirectoryStore(tmp_path).list()) == ["last/0", "last/1"]
    assert os.listdir(tmp_path) == ["last"]


def test_a_killed_writer_leaves_the_old_value_or_the_new_one(tmp_path, start):
    """FS-SET-03, FS-LST-08: and nothing else that is a key."""
    values = [b"a" * 100_000, b"b" * 150_000]
    store = DirectoryStore(tmp_path)
    store.set("d/k", values[0])
    moment = random.Random(7)
    for me in range(8):
        process = start("""
while True:
    store.set("d/k", b"b" * 150_000)
    store.set("d/k", b"a" * 100_000)
    store.set_if_not_exists(f"d/{me}/new", b"c" * 50_000)
    store.delete(f"d/{me}")
""", me)
        go([process])
        for _ in range(moment.randrange(1, 400)):
            assert store.get("d/k") in values
        process.kill()
        process.wait()
        assert store.get("d/k") in values
        assert store.get(f"d/{me}/new") in (None, b"c" * 50_000)
        assert set(store.list()) <= {"d/k"} | {f"d/{i}/new" for i in range(me + 1)}
    n_left = sum(is_temporary(name) for _, _, names in os.walk(tmp_path) for name in names)
    assert store.clean_temporary(older_than=-60) == n_left
    assert not any(is_temporary(name) for _, _, names in os.walk(tmp_path) for name in names)
