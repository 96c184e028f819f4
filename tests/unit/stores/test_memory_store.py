import copy
import os
import pickle
import threading

import pytest

import zcore
from tests.at_once import at_once
from zcore.errors import InvalidKeyError, KeyConflictError, ReadOnlyError
from zcore.stores import OBJECTS
from zcore.stores.memory import MemoryStore

from .conformance import StoreConformance


class TestMemoryStore(StoreConformance):
    def make(self, tmp_path, items=(), read_only=False):
        return MemoryStore(dict(items), read_only)


def test_items_are_checked_and_copied():
    value = bytearray(b"abc")
    store = MemoryStore({"a/b": value})
    value[0] = 0
    assert store.get("a/b") == b"abc"
    with pytest.raises(InvalidKeyError):
        MemoryStore({"../x": b""})
    with pytest.raises(KeyConflictError):
        MemoryStore({"a": b"", "a/b": b""})
    with pytest.raises(TypeError, match=r"items is \[1\], expected a mapping of keys to bytes"):
        MemoryStore([1])


def test_a_pickled_store_is_a_read_only_copy():
    store = MemoryStore({"a": b"1"})
    other = pickle.loads(pickle.dumps(store))
    store.set("a", b"2")
    assert other.get("a") == b"1"
    assert other.read_only
    assert other != store
    array = zcore.zeros(3)
    other = pickle.loads(pickle.dumps(array))
    with pytest.raises(ReadOnlyError, match=r"^<MemoryStore at 0x\w+, read-only as it was pickled> lies in a store for "
                                            r"reading$"):
        other[0] = 1


def test_a_copied_store_is_one_of_its_own():
    for read_only in (False, True):
        store = MemoryStore({"a/b": b"1"}, read_only)
        for other in (copy.copy(store), copy.deepcopy(store)):
            assert other.get("a/b") == b"1" and other.read_only is read_only and other != store
    store = MemoryStore({"a": b"1"})
    other = copy.copy(store)
    other.set("a", b"2")
    assert store.get("a") == b"1"


def test_it_has_no_address_and_no_files():
    assert MemoryStore().uri is None and MemoryStore().locate("") == OBJECTS


def test_partial_values_of_threads_are_not_lost():
    store = MemoryStore()
    n_threads, n_bytes = 4, 200

    def work(i):
        for j in range(i, n_bytes, n_threads):
            store.set_partial_values([("k", j, b"x")])

    at_once(threading.Thread(target=work, args=(i,)) for i in range(n_threads))
    assert store.get("k") == b"x" * n_bytes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_lock_held_at_a_fork_does_not_hang_the_child():
    store = MemoryStore({"a": b"1"})
    held, done = threading.Event(), threading.Event()

    def hold():
        with store._locks.whole():
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        store.set("a", b"2")
        os._exit(42 if store.get("a") == b"2" else 1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 42
    assert store.get("a") == b"1"
