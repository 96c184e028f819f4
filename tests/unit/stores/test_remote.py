"""Remote stores: the interface of a store over each kind of client, and what services do that memory does not."""
import itertools
import multiprocessing
import pickle
import threading
from datetime import timedelta

import numpy as np
import pytest

import zcore
from zcore.errors import LockError, NodeNotFoundError, ReadOnlyError, StoreError, UnsupportedError
from zcore.stores.remote import RemoteStore
from zcore.stores.remote_clients import Client, is_remote, split_url

from .conformance import CORE_EXAMPLE, UNUSUAL_KEYS, StoreConformance, run_threads

obstore = pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (test extra)")

numbers = itertools.count()
NO_RETRY = {"client_options": {"timeout": "5s"}, "retry_config": {"max_retries": 0}}


class RemoteConformance(StoreConformance):
    """What all stores do, but for directories, of which services have none."""

    test_key_below_a_prefix_conflicts = None
    test_key_with_a_key_as_parent_conflicts = None
    # All pages are read before the first key is given, sorted.
    test_list_goes_on_while_keys_vanish = None
    test_list_reads_one_prefix_at_a_time = None

    def source(self):
        raise NotImplementedError

    def make(self, tmp_path, items=(), read_only=False):
        source = self.source()
        store = RemoteStore(source, path="of tests/x")
        for key, value in dict(items).items():
            store.set(key, value)
        return RemoteStore(source, path="of tests/x", read_only=True) if read_only else store

    def test_a_key_may_be_a_prefix(self, example):
        example.set("a/d", b"v")
        assert example.get("a/d") == b"v" and example.get("a/d/e") == b"a/d/e"
        assert example.list_dir("a/") == (["a/b", "a/c", "a/d"], ["a/d/", "a/f/"])
        example.erase("a/d")
        assert list(example.list()) == list(CORE_EXAMPLE)


class TestObstore(RemoteConformance):
    # Names with control characters are refused by obstore.
    test_unusual_keys = None
    # Its store in memory cannot be pickled.
    test_pickle_reads_the_same = None

    def source(self):
        return obstore.store.MemoryStore()

    @pytest.mark.parametrize("key", [key for key in UNUSUAL_KEYS if key.isprintable()], ids=lambda key: ascii(key)[:20])
    def test_printable_keys(self, store, key):
        StoreConformance.test_unusual_keys(self, store, key)

    def test_keys_that_the_service_does_not_take(self, store):
        with pytest.raises(StoreError, match="cannot write MemoryStore:/of tests/x/"):
            store.set("a\nb", b"v")


class FsspecConformance(RemoteConformance):
    # Its directories are things of their own.
    test_a_key_may_be_a_prefix = None
    test_no_prefix_stays_without_keys = None
    test_writers_and_pruning_erasers_do_not_fail = None
    test_erase_of_the_empty_prefix_empties_the_store = None


class TestFsspec(FsspecConformance):

    def source(self):
        # All filesystems in memory are one.
        return fsspec.filesystem("dir", path=f"/{next(numbers)}", fs=fsspec.filesystem("memory"))


class TestMapper(FsspecConformance):
    # It writes in place.
    test_threads_write_and_read_whole_values = None

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = tmp_path

    def source(self):
        return fsspec.filesystem("file").get_mapper(str(self.path / str(next(numbers))), create=True)


class Held:
    """An object with the methods that `ObjectClient` looks for."""

    def __init__(self):
        self.values = {}

    def get(self, name):
        return self.values[name]

    def get_range(self, name, *, start, length):
        return memoryview(self.values[name])[start:start + length]

    def put(self, name, data):
        self.values[name] = data

    def delete(self, name):
        del self.values[name]

    def list(self, prefix):
        return [name for name in list(self.values) if name.startswith(prefix)]


class TestObject(RemoteConformance):
    def source(self):
        return Held()
