"""One reference set, used by many at a time: threads, processes, readers and a writer, interrupts."""
import json
import os
import pickle
import resource
import signal
import sys
import threading

import numpy as np
import pytest

import zcore
import zcore.stores.base
from tests.at_once import at_once
from zcore.stores import OBJECTS, FileParts
from zcore.stores.reference.store import ReferenceStore


@pytest.fixture
def place(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.bin").write_bytes(b"inside")
    return tmp_path


def zarray(n, n_chunk, dtype="|u1"):
    return {"zarr_format": 2, "shape": [n], "chunks": [n_chunk], "dtype": dtype, "compressor": None, "filters": None,
            "fill_value": 0, "order": "C"}


def test_data_that_were_replaced_are_given_back():
    """A chunk that is written again and again takes the memory of one."""
    store = ReferenceStore({"kept": "data"}, read_only=False)
    for i in range(200):
        store.set("chunk", bytes([i]) * 100_000)
        store.set(f"small/{i % 7}", bytes([i]))
        if i % 3 == 0:
            store.erase("chunk")
    assert store.get("kept") == b"data" and store.get("chunk") == bytes([199]) * 100_000
    for i in range(7):
        assert store.get(f"small/{i}") == bytes([max(n for n in range(200) if n % 7 == i)])
    assert store._table.nbytes < 4_000_000


def test_read_only_stays_so(place):
    """The compiled code reads a table that nobody changes."""
    store = ReferenceStore({"a": "b"})
    with pytest.raises(AttributeError):
        store.read_only = False
    assert store.read_only and type(store.locate("")) is FileParts
    assert ReferenceStore({"a": "b"}, read_only=False).locate("") == OBJECTS


def test_readers_while_one_writes(place):
    """The compiled code is not used where the set may change; what is read is one value or the other."""
    store = ReferenceStore({".zarray": zarray(64, 8)}, base=place / "data", read_only=False)
    zcore.open(store, mode="r+")[...] = 1
    stop, wrong = threading.Event(), []

    def reading():
        array = zcore.open(store)
        while not stop.is_set():
            chunks = np.asarray(array[...]).reshape(8, 8)
            if not ((chunks == chunks[:, :1]).all() and np.isin(chunks, (1, 2)).all()):
                wrong.append(chunks)
            store.list_dir("")

    threads = [threading.Thread(target=reading) for _ in range(8)]
    for thread in threads:
        thread.start()
    array = zcore.open(store, mode="r+")
    for i in range(60):
        array[...] = 1 + i % 2
        store.set(f"other/{i}", b"x" * 10_000)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and (array[...] == 2).all()


def test_eight_threads_read_what_others_open(place):
    """One store, read by the compiled code, while the same document is opened and pickled."""
    data = np.arange(4096, dtype="<u2")
    (place / "data" / "all.bin").write_bytes(data.tobytes())
    for i in range(200):
        (place / "data" / f"{i}.bin").write_bytes(data[i * 16:i * 16 + 16].tobytes())
    refs = {str(i): [f"{i}.bin"] if i < 200 else ["all.bin", 32 * i, 32] for i in range(256)}
    refs[".zarray"] = zarray(4096, 16, "<u2")
    (place / "data" / "refs.json").write_text(json.dumps(refs))
    store = ReferenceStore(place / "data" / "refs.json")
    wrong = []

    def reading(threads):
        array = zcore.open(store, threads=threads)
        for start in range(10):
            try:
                if not (array[start::3] == data[start::3]).all():
                    wrong.append(start)
            except Exception as exc:
                wrong.append(exc)

    threads = [threading.Thread(target=reading, args=(1 + i % 3,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        other = pickle.loads(pickle.dumps(ReferenceStore(place / "data" / "refs.json")))
        assert (zcore.open(other)[...] == data).all() and len(list(other.list())) == 257
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
@pytest.mark.parametrize("n_more", [200, 60])
def test_many_readers_hold_few_targets_open(place, n_more):
    """Eight at a time, of 300 files each, with so many descriptors for all of them."""
    for i in range(300):
        (place / "data" / str(i)).write_bytes(bytes([i % 256]))
    refs = {".zarray": zarray(300, 1), **{str(i): [str(i)] for i in range(300)}}
    store, wrong = ReferenceStore(refs, base=place / "data"), []

    def reading():
        for _ in range(5):
            try:
                if (zcore.open(store, threads=2)[...] != np.arange(300) % 256).any():
                    wrong.append("values")
            except Exception as exc:
                wrong.append(exc)

    n_open = max(map(int, os.listdir("/proc/self/fd")))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + n_more, hard))
    try:
        at_once(threading.Thread(target=reading) for _ in range(8))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert wrong == []


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_reads_the_set_of_its_parent(place):
    """A store is a table and a path: a fork takes both."""
    data = np.arange(96, dtype="|u1")
    (place / "data" / "all.bin").write_bytes(data.tobytes())
    refs = {".zarray": zarray(96, 8), **{str(i): ["all.bin", 8 * i, 8] for i in range(12)}}
    store = ReferenceStore(refs, base=place / "data")
    array = zcore.open(store, threads=1)
    assert (array[...] == data).all()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)      # ends a child that waits for what its parent held
            status = 0 if (array[...] == data).all() and store.list_dir("")[0][0] == ".zarray" else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 and (array[::2] == data[::2]).all()


def test_an_interrupt_while_a_target_is_opened_is_not_lost(place):
    """What a signal handler raises there comes out, though no chunk is wrong."""
    store = ReferenceStore({".zarray": zarray(6, 6), "0": ["a.bin"]}, base=place / "data")
    array, opened = zcore.open(store, threads=1), store.targets.open

    def interrupted(url, key=None):
        store.targets.open = opened
        raise KeyboardInterrupt

    store.targets.open = interrupted
    with pytest.raises(KeyboardInterrupt):
        array[...]
    assert bytes(array[...]) == b"inside"


def test_an_array_whose_path_is_too_long_for_the_kernel(place):
    """Python reads it: a key of a set may have more bytes than a path of the system."""
    for n in (4090, 4398, 4400, 4401, 4500, 20_000):
        path = "a" * n
        store = ReferenceStore({f"{path}/.zarray": zarray(6, 6), f"{path}/0": ["a.bin"]}, base=place / "data")
        assert bytes(zcore.open(store, path=path)[...]) == b"inside"


def test_listing_is_that_of_a_walk():
    """RF-STO-01: sorted, whatever comes and goes meanwhile; a key of many levels costs no more than its bytes."""
    rng = np.random.default_rng(3)
    refs = {"/".join(map(str, rng.integers(0, 15, rng.integers(1, 5)))): "" for _ in range(3000)}
    refs |= {"1.a": "", "1/é": "", "é/1": "", "1-/x": "", "a/" * 30_000 + "b": ""}
    store = ReferenceStore(refs, read_only=False)
    for key in sorted(refs)[::7]:
        store.erase(key)
        del refs[key]
    for prefix in ("", "1/", "1/2/", "é/", "nothing/", "a/"):
        expected = sorted(key for key in refs if key.startswith(prefix))
        assert list(store.list_prefix(prefix)) == expected
        if prefix not in ("", "a/"):
            assert list(zcore.stores.base.Store.list_prefix(store, prefix)) == expected
    found = []
    for i, key in enumerate(store.list()):
        found.append(key)
        store.erase(key)
        store.set(f"0new/{i}", b"")
    assert found == sorted(found) and set(refs) <= set(found)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_target_that_cannot_be_opened_is_asked_for_once_in_a_read(place, threads):
    """By the compiled code; Python, which then says what it is, asks for each key."""
    refs = {".zarray": zarray(120, 6), **{str(i): ["gone.bin", 6 * i, 6] for i in range(20)}}
    store = ReferenceStore(refs, base=place / "data")
    asked, opened = [], store.targets.open

    def opening(url, key=None):
        asked.append(key)
        return opened(url, key)

    store.targets.open = opening
    with pytest.raises(zcore.errors.ReferenceTargetError):
        zcore.open(store, threads=threads)[...]
    assert 1 <= asked.count(None) <= threads and 1 <= len(asked) - asked.count(None) <= threads
