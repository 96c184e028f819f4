"""What every store has to do; its tests subclass `StoreConformance` and say how the store is made."""
import pickle
import threading

import numpy as np
import pytest

from tests.at_once import at_once
from tests.each import each
from zcore.errors import InvalidKeyError, KeyConflictError, ReadOnlyError, StoreError, ZcoreError
from zcore.stores import OBJECTS, FileParts, Listing, Store
from zcore.stores.base import directory_at

# The tree of the Zarr v3 core specification, "Abstract store interface".
CORE_EXAMPLE = ("a/b", "a/c", "a/d/e", "a/f/g")

NOT_KEYS = {
    "": "FS-K2P-03",
    "/": "FS-K2P-04",
    "/etc/passwd": "FS-K2P-04",
    "a/": "FS-K2P-05",
    "a//b": "FS-K2P-06",
    ".": "FS-K2P-07",
    "..": "FS-K2P-07",
    "../x": "FS-K2P-07",
    "a/../b": "FS-K2P-07",
    "a/./b": "FS-K2P-07",
    "a/..": "FS-K2P-07",
    "a\0b": "FS-K2P-08",
    "a\ud800b": "FS-K2P-08",
    ".__zc_tmp.0123456789abcdef": "FS-LST-08",
    "a/.__zc_tmp.x": "FS-LST-08",
}

UNUSUAL_KEYS = (
    "zarr.json", ".zarray", "...", "..a", "a..", "-", "c/1/23", "0", "x.y/z w", "é/日本/😀", "e\u0301", "a\\b", "a:b",
    "CON", "a" * 200, "a\nb", "%2F", "~", "#?", ".__zc_tmp", "x.__zc_tmp.1", "__zdata__/4.2.blosc", "\x7f",
)


def without_slash(prefixes):
    """Return prefixes as the file system store v1.0 spells them (FS-LST-06); the core text has the slash."""
    return [prefix.removesuffix("/") for prefix in prefixes]


def calls_with_key(store):
    """Return all operations that take one key, as functions of it."""
    return {
        "get": store.get,
        "get part": lambda key: store.get(key, (0, 1)),
        "get_partial_values": lambda key: store.get_partial_values([(key, (0, None))]),
        "get_with_identity": store.get_with_identity,
        "get part with identity": lambda key: store.get_with_identity(key, (0, 1)),
        "get_first": lambda key: store.get_first("", [key], 1),
        "existing": lambda key: store.existing("", [key]),
        "identity": store.identity,
        "exists": store.exists,
        "getsize": store.getsize,
        "set": lambda key: store.set(key, b"v"),
        "set_if_not_exists": lambda key: store.set_if_not_exists(key, b"v"),
        "set_partial_values": lambda key: store.set_partial_values([(key, 0, b"v")]),
        "erase": store.erase,
        "erase_values": lambda key: store.erase_values(["good", key]),
        "delete": store.delete,
    }


def changes(store):
    """Return one call of every operation that changes the store."""
    return {
        "set": lambda: store.set("a", b"new"),
        "set_if_not_exists": lambda: store.set_if_not_exists("new", b"new"),
        "set_partial_values": lambda: store.set_partial_values([("a", 0, b"n")]),
        "erase": lambda: store.erase("a"),
        "erase_values": lambda: store.erase_values(["a"]),
        "erase_prefix": lambda: store.erase_prefix(""),
        "delete": lambda: store.delete("a"),
        "invalid key": lambda: store.set("", b""),
    }


class StoreConformance:
    unusual_keys = UNUSUAL_KEYS

    def make(self, tmp_path, items=(), read_only=False):
        """Return a store that holds `items`, a mapping of keys to values."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path):
        return self.make(tmp_path)

    @pytest.fixture
    def example(self, tmp_path):
        return self.make(tmp_path, {key: key.encode() for key in CORE_EXAMPLE})

    # The interface

    def test_interface(self, store):
        """D3-CON-14"""
        assert isinstance(store, Store)
        assert store.read_only is False
        assert store.uri is None or store.uri.count(":") >= 1
        assert store.locate("") == OBJECTS or type(store.locate("")) is FileParts or directory_at(store).startswith("/")
        assert type(store).__name__ in repr(store)
        assert isinstance(store.label, str) and len(store.label) <= len(repr(store))

    # Reading

    def test_get_returns_what_was_set(self, store):
        """FS-GET-01, FS-SET-01, FS-MOD-01."""
        store.set("foo/bar", b"\x00\x01value")
        assert store.get("foo/bar") == b"\x00\x01value"
        assert type(store.get("foo/bar")) is bytes

    def test_missing_key_is_none(self, example):
        """V3-STORE-01, FS-GET-01."""
        assert [example.get(key) for key in ("x", "a/x", "x/y/z")] == [None, None, None]
        assert example.get("x", (0, 1)) is None
        assert example.get_with_identity("x") is None
        assert example.get_first("", ["x", "a/x", "x/y/z"], 9) is None
        assert example.identity("x") is None
        assert example.getsize("x") is None
        assert example.exists("x") is False

    def test_prefix_and_child_of_a_key_are_missing(self, example):
        """FS-GET-02, FS-GET-08."""
        for key in ("a", "a/d", "a/b/c", "a/b/c/d"):
            assert example.get(key) is None
            assert example.get_with_identity(key) is None
            assert example.get_first("", [key], 9) is None
            assert example.getsize(key) is None
            assert example.exists(key) is False
        assert example.exists("a/b") is True

    def test_empty_value_is_not_missing(self, store):
        """FS-GET-04."""
        store.set("empty", b"")
        assert store.get("empty") == b""
        assert store.get("empty", (0, 5)) == b""
        assert store.exists("empty") is True
        assert store.getsize("empty") == 0

    @each("byte_range, expected", [
        (None, b"0123456789"), ((0, None), b"0123456789"), ((3, None), b"3456789"), ((3, 4), b"3456"),
        ((0, 0), b""), ((9, 1), b"9"), ((9, 5), b"9"), ((10, 1), b""), ((99, None), b""), ((99, 1), b""),
        ((3, 2**63), b"3456789"), ((2**64, 2**64), b""),
        ((None, 3), b"789"), ((None, 10), b"0123456789"), ((None, 11), b"0123456789"), ((None, 0), b""),
        ((np.int64(2), np.int64(2)), b"23"),
    ])
    def test_byte_ranges(self, store, byte_range, expected):
        """V3-STORE-06, FS-GET-05, FS-GET-06."""
        store.set("a/k", b"0123456789")
        assert store.get("a/k", byte_range) == expected
        assert type(store.get("a/k", byte_range)) is bytes

    @each("byte_range", [(-1, None), (-1, 1), (0, -1), (None, -1), (None, None)])
    def test_bad_byte_ranges(self, store, byte_range):
        """FS-GET-06."""
        store.set("k", b"0123456789")
        with pytest.raises(ValueError, match="byte range"):
            store.get("k", byte_range)
        with pytest.raises(ValueError, match="byte range"):
            store.get_partial_values([("k", (0, 1)), ("k", byte_range)])

    @each("byte_range", [(0.0, 1), (1, "2"), "ab", 5])
    def test_byte_range_of_no_integers_is_a_type_error(self, store, byte_range):
        store.set("k", b"0123456789")
        with pytest.raises(TypeError, match=r"byte range .*: expected \(start, length\)"):
            store.get("k", byte_range)

    def test_partial_values_keep_order_and_repeats(self, store):
        """V3-STORE-01, FS-GET-05."""
        store.set("a", b"01234")
        store.set("b/c", b"abcde")
        requests = [("b/c", (1, 2)), ("x", (0, None)), ("a", (0, None)), ("b/c", (1, 2)), ("a", (None, 1)),
                    ("b", (0, 1))]
        assert store.get_partial_values(iter(requests)) == [b"bc", None, b"01234", b"bc", b"4", None]
        assert store.get_partial_values([]) == []

    def test_getsize(self, example):
        """FS-LST-13."""
        assert example.getsize("a/d/e") == 5

    def test_getsize_prefix_ends_at_parts(self, tmp_path):
        """FS-LST-13: ``foo/`` is not ``foobar/``."""
        store = self.make(tmp_path, {"foo/a": b"123", "foo/b/c": b"4567", "foobar/a": b"x" * 100, "f": b"y" * 50})
        assert store.getsize_prefix("foo/") == 7
        assert store.getsize_prefix("foobar/") == 100
        assert store.getsize_prefix("") == 157
        assert store.getsize_prefix("none/") == 0

    def test_the_first_of_several(self, store):
        for key in ("d/k", "b", "c"):
            store.set(key, key.encode() * 3000)
        for keys, n in ((["a", "b", "c"], 1), (["c", "b"], 0), (("d", "d/k/x", "d/k"), 2), (["b", "b/c"], 0)):
            value, identity = store.get_with_identity(keys[n])
            assert store.get_first("", keys, 10**6) == (n, value, identity)
            assert store.get_first("", keys, 5) == (n, value[:5], identity)
            assert store.get_first("", keys, 0) == (n, b"", identity)
            assert store.existing("", keys)[0] == keys[n]
        assert store.get_first("", [], 5) is None
        assert store.existing("", []) == store.existing("", ["a", "b/c", "d"]) == []
        store.set("b", b"")
        assert store.get_first("", ["a", "b", "c"], 5)[:2] == (1, b"")
        assert store.get_first("d/", ["a", "k"], 5)[:2] == (1, b"d/kd/")
        assert store.existing("d/", ["b", "k"]) == ["k"] and store.existing("b/", ["k", "b"]) == []

    def test_which_of_several_exist(self, store):
        for key in ("k", "d/k", "d/e/f", "d/other"):
            store.set(key, b"v")
        for _ in range(2):
            assert store.existing("d/", ["l", "other", "e", "k"]) == ["other", "k"]
            assert store.existing("", ("k", "d", "l")) == ["k"]
            assert store.existing("d/e/", ["f"]) == ["f"]
            assert store.existing("k/", ["f"]) == store.existing("none/", ["f"]) == store.existing("d/", []) == []
        with pytest.raises(InvalidKeyError):
            store.existing("d/", [".."])

    def test_identity_changes_with_the_value(self, store):
        store.set("k", b"1")
        value, first = store.get_with_identity("k")
        assert value == b"1"
        assert store.identity("k") == first == store.get_with_identity("k")[1]
        store.set("k", b"2")
        assert store.get_with_identity("k", (0, 0)) == (b"", store.identity("k"))
        value, second = store.get_with_identity("k")
        assert value == b"2"
        assert store.identity("k") == second
        if first is not None:
            assert len(first) == 5 and first[2] == 1
            assert first != second

    # Writing

    def test_set_replaces(self, store):
        """V3-STORE-02, FS-SET-01."""
        store.set("k", b"a long value")
        store.set("k", b"short")
        assert store.get("k") == b"short"
        assert list(store.list()) == ["k"]

    @each("value", [
        b"abcd", bytearray(b"abcd"), memoryview(b"abcd"), memoryview(b"xxabcdxx")[2:6],
        np.frombuffer(b"abcd", "u1"), np.frombuffer(b"abcd", "<u2"), np.frombuffer(b"abcd", ">u2"),
        np.frombuffer(b"abcd", "u1").reshape(2, 2), np.frombuffer(b"abcd", "S2"), np.frombuffer(b"abcd", "u1,u1"),
        np.frombuffer(b"abcd", "?"), np.array(0x64636261, "<u4"),
    ], ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}")
    def test_set_takes_any_contiguous_buffer(self, store, value):
        """FS-SET-02."""
        store.set("k", value)
        assert store.get("k") == b"abcd"
        assert store.set_if_not_exists("k2", value) is True
        assert store.get("k2") == b"abcd"
        store.erase("k2")

    @each("shape", [(0,), (0, 3), (3, 0)])
    def test_set_takes_empty_arrays(self, store, shape):
        """FS-SET-02."""
        store.set("k", np.zeros(shape))
        assert store.get("k") == b""

    @each("value", [
        "text", 5, None, [1, 2], np.arange(8)[::2], np.zeros((2, 3)).T, np.zeros(2, "M8[s]"), memoryview(b"abcd")[::2],
    ], ids=lambda value: type(value).__name__)
    def test_set_refuses_other_types(self, store, value):
        """FS-SET-02."""
        store.set("k", b"old")
        for write in (store.set, store.set_if_not_exists):
            with pytest.raises(TypeError, match="a value is"):
                write("k", value)
        with pytest.raises(TypeError, match="a value is"):
            store.set_partial_values([("k", 0, value)])
        assert store.get("k") == b"old"

    def test_values_are_not_aliased(self, store):
        value = bytearray(b"abcd")
        store.set("k", value)
        store.set_if_not_exists("k2", value)
        store.set_partial_values([("k3", 0, value)])
        value[:] = b"wxyz"
        assert [store.get(key) for key in ("k", "k2", "k3")] == [b"abcd"] * 3

    def test_large_value(self, store):
        """FS-GET-07, FS-SET-01."""
        value = np.random.default_rng(0).bytes(3_000_001)
        store.set("large", value)
        assert store.get("large") == value
        assert store.get("large", (2_999_990, None)) == value[2_999_990:]

    def test_key_below_a_prefix_conflicts(self, example):
        """FS-SET-04: what is a prefix cannot be a key."""
        before = {key: example.get(key) for key in example.list()}
        for key in ("a", "a/d"):
            for write in (example.set, example.set_if_not_exists):
                with pytest.raises(KeyConflictError) as caught:
                    write(key, b"v")
                assert caught.value.key == key and repr(key) in str(caught.value)
        assert {key: example.get(key) for key in example.list()} == before

    def test_key_with_a_key_as_parent_conflicts(self, example):
        """FS-SET-05: what is a key cannot be a prefix."""
        before = {key: example.get(key) for key in example.list()}
        for key in ("a/b/x", "a/b/x/y"):
            for write in (example.set, example.set_if_not_exists):
                with pytest.raises(KeyConflictError) as caught:
                    write(key, b"v")
                assert caught.value.key == key and repr(key) in str(caught.value)
        assert {key: example.get(key) for key in example.list()} == before
        assert example.list_dir("a/")[:2] == (["a/b", "a/c"], ["a/d/", "a/f/"])

    def test_a_directory_that_is_made_holds_no_key(self, example):
        for prefix in ("", "x/y/", "a/", "a/d/", "x/"):
            for _ in range(2):
                example.folders.make_directory(prefix)
        assert list(example.list()) == list(CORE_EXAMPLE)
        example.set("x/y/z", b"v")
        assert example.get("x/y/z") == b"v" and example.get("x/y") is None

    def test_set_if_not_exists(self, store):
        """FS-SET-07."""
        assert store.set_if_not_exists("x/k", b"first") is True
        assert store.set_if_not_exists("x/k", b"second") is False
        assert store.get("x/k") == b"first"
        store.erase("x/k")
        assert store.set_if_not_exists("x/k", b"third") is True
        assert list(store.list()) == ["x/k"]

    def test_set_if_not_exists_has_one_winner_among_threads(self, store):
        """FS-SET-07."""
        barrier = threading.Barrier(4)
        winners = []

        def write(i):
            for k in range(25):
                barrier.wait()
                if store.set_if_not_exists(f"d/{k}", b"%d" % i):
                    winners.append((k, i))

        run_threads(4, write)
        assert sorted(k for k, _ in winners) == list(range(25))
        assert all(store.get(f"d/{k}") == b"%d" % i for k, i in winners)

    def test_partial_values_are_set(self, store):
        """V3-STORE-02, FS-SET-06."""
        store.set("a", b"0123456789")
        changes = [("a", 2, b"AB"), ("b/c", 0, b"new"), ("a", 8, b"CDEF"), ("a", 4, b"x"), ("a", 5, b"")]
        store.set_partial_values(iter(changes))
        assert store.get("a") == b"01ABx567CDEF"
        assert store.get("b/c") == b"new"

    def test_partial_value_behind_the_end_fills_with_zeros(self, store):
        """FS-SET-06: a missing key starts as empty."""
        store.set("a", b"01")
        store.set_partial_values([("a", 4, b"x"), ("b", 3, b"y"), ("c", 2, b"")])
        assert store.get("a") == b"01\0\0x"
        assert store.get("b") == b"\0\0\0y"
        assert store.get("c") == b"\0\0"

    @each("second", [(0, b"ab"), (3, b"ab"), (2, b"a"), (1, b"abcdef"), (2, b"ab")])
    def test_overlapping_partial_values_change_nothing(self, store, second):
        """V3-STORE-02, FS-SET-06."""
        store.set("k", b"0123456789")
        with pytest.raises(ValueError, match="overlap"):
            store.set_partial_values([("other", 0, b"x"), ("k", 1, b"xyz"), ("k", *second)])
        assert store.get("k") == b"0123456789"
        assert store.get("other") is None

    def test_adjacent_partial_values_and_other_keys_do_not_overlap(self, store):
        """FS-SET-06."""
        store.set_partial_values([("k", 2, b"cd"), ("k", 0, b"ab"), ("l", 0, b"ab")])
        assert (store.get("k"), store.get("l")) == (b"abcd", b"ab")

    def test_negative_start_of_a_partial_value(self, store):
        """FS-SET-06."""
        with pytest.raises(ValueError, match="starts at -1"):
            store.set_partial_values([("k", 0, b"x"), ("l", -1, b"x")])
        assert list(store.list()) == []

    def test_threads_write_and_read_whole_values(self, store):
        """FS-SET-03, FS-SET-08: a reader sees one writer's value, whole."""
        values = {bytes([65 + i]) * (1000 + 700 * i) for i in range(3)}
        store.set("d/k", sorted(values)[0])
        seen = set()

        def work(i):
            for _ in range(40):
                if i < 3:
                    store.set("d/k", sorted(values)[i])
                else:
                    seen.add(store.get("d/k"))

        run_threads(5, work)
        assert seen <= values
        assert store.get("d/k") in values
        assert list(store.list()) == ["d/k"]

    def test_writers_and_pruning_erasers_do_not_fail(self, store):
        """FS-SET-08, FS-DEL-07: a directory pruned under a writer is made again."""
        def work(i):
            for _ in range(60):
                store.set(f"p/q/{i}", b"value")
                assert store.get(f"p/q/{i}") == b"value"
                store.erase(f"p/q/{i}")

        run_threads(4, work)
        assert list(store.list()) == []
        assert store.list_dir("")[:2] == ([], [])

    # Removing

    def test_erase(self, example):
        """V3-STORE-02, FS-DEL-02."""
        example.erase("a/d/e")
        assert example.get("a/d/e") is None
        assert list(example.list()) == ["a/b", "a/c", "a/f/g"]

    def test_erase_of_missing_keys_and_prefixes_changes_nothing(self, example):
        """FS-DEL-03."""
        for key in ("x", "x/y", "a", "a/d", "a/b/c"):
            example.erase(key)
        example.erase_values(["x", "a"])
        example.delete("x/y")
        example.delete("a/b/c")
        for prefix in ("x/", "a/b/", "a/x/"):
            example.erase_prefix(prefix)
        assert list(example.list()) == list(CORE_EXAMPLE)

    def test_delete_removes_key_or_everything_below(self, example):
        """FS-DEL-01, FS-DEL-02: the file system store's delete takes files and directories."""
        example.delete("a/b")
        assert list(example.list()) == ["a/c", "a/d/e", "a/f/g"]
        example.delete("a")
        assert list(example.list()) == []

    def test_erase_prefix(self, tmp_path):
        """V3-STORE-02, FS-DEL-02, FS-DEL-05: ``a/`` is not ``ab/``."""
        store = self.make(tmp_path, {"a/b": b"1", "a/c/d": b"2", "ab/c": b"3", "b": b"4", "a.b": b"5"})
        store.erase_prefix("a/")
        assert list(store.list()) == ["a.b", "ab/c", "b"]

    def test_erase_of_the_empty_prefix_empties_the_store(self, example):
        """FS-DEL-04."""
        example.erase_prefix("")
        assert list(example.list()) == []
        example.set("a", b"again")
        assert list(example.list()) == ["a"]

    def test_no_prefix_stays_without_keys(self, tmp_path):
        """FS-DEL-07."""
        store = self.make(tmp_path, {"a/b/c/d": b"1", "a/x": b"2", "y/z": b"3", "p/q/r": b"4"})
        store.erase("a/b/c/d")
        assert store.list_dir("a/")[:2] == (["a/x"], [])
        store.erase("a/x")
        store.erase_prefix("p/q/")
        assert store.list_dir("")[:2] == ([], ["y/"])
        store.delete("y/z")
        assert store.list_dir("")[:2] == ([], [])

    def test_erase_values(self, example):
        """V3-STORE-02, FS-DEL-08."""
        example.erase_values(iter(["a/b", "x", "a/d/e", "a/b"]))
        assert list(example.list()) == ["a/c", "a/f/g"]

    def test_erase_values_with_an_invalid_key_erases_nothing(self, example):
        """FS-DEL-08."""
        with pytest.raises(InvalidKeyError):
            example.erase_values(["a/b", "../x"])
        assert list(example.list()) == list(CORE_EXAMPLE)

    # Listing

    def test_list(self, example, store):
        """V3-STORE-03, FS-LST-01."""
        assert list(example.list()) == list(CORE_EXAMPLE)

    def test_empty_store(self, store):
        """FS-LST-02, FS-MOD-03."""
        assert list(store.list()) == []
        assert list(store.list_prefix("a/")) == []
        assert store.list_dir("")[:2] == ([], [])
        assert store.get("a") is None
        assert store.getsize_prefix("") == 0

    def test_listing_is_sorted_by_key(self, tmp_path):
        """FS-LST-01."""
        keys = ["a", "a.b", "a-b/c", "ab/1", "ab/10", "ab/2/3", "ab/2.5", "z/é", "z/z", "B"]
        store = self.make(tmp_path, dict.fromkeys(keys, b""))
        assert list(store.list()) == sorted(keys)

    def test_list_prefix(self, example):
        """V3-STORE-03, FS-LST-03."""
        assert list(example.list_prefix("a/")) == list(CORE_EXAMPLE)
        assert list(example.list_prefix("a/d/")) == ["a/d/e"]
        for prefix in ("b/", "a/b/", "a/d/e/", "a/x/y/"):
            assert list(example.list_prefix(prefix)) == []

    def test_list_prefix_of_nothing_is_list(self, example):
        """FS-LST-04."""
        assert list(example.list_prefix("")) == list(example.list())

    @each("prefix", ["a", "/", "/a/", "a//", "../", "a/../", "./", "a\0/", ".__zc_tmp.1/"])
    def test_invalid_prefixes(self, example, prefix):
        """V3-STORE-04, FS-LST-04, FS-K2P-05, FS-DEL-05: refused at the call, before the iteration; nothing is
        erased.
        """
        for call in (example.list_prefix, example.list_dir, example.getsize_prefix, example.erase_prefix):
            with pytest.raises(InvalidKeyError) as caught:
                call(prefix)
            assert isinstance(caught.value, ValueError) and caught.value.key == prefix
        assert list(example.list()) == list(CORE_EXAMPLE)

    def test_prefix_does_not_match_part_of_a_name(self, tmp_path):
        """V3-STORE-04, FS-LST-04, FS-LST-13."""
        store = self.make(tmp_path, {"foo/a": b"", "foobar/b": b""})
        assert list(store.list_prefix("foo/")) == ["foo/a"]

    def test_list_dir(self, example):
        """V3-STORE-03, V3-STORE-05, FS-LST-05: the example of the core text."""
        assert example.list_dir("a/")[:2] == (["a/b", "a/c"], ["a/d/", "a/f/"])
        assert example.list_dir("")[:2] == ([], ["a/"])
        assert example.list_dir("b/")[:2] == ([], [])
        assert example.list_dir("a/b/")[:2] == ([], [])

    def test_a_listing_has_names(self, example):
        found = example.list_dir("a/")
        assert isinstance(found, Listing)
        assert (found.keys, found.prefixes) == (["a/b", "a/c"], ["a/d/", "a/f/"]) and not found.unreachable
        assert not any(example.list_dir("x/"))
        for prefix in ("", "a/", "a/b/", "x/"):
            example.folders.check_reachable(prefix)

    def test_list_dir_in_the_spelling_of_the_file_system_store(self, example):
        """FS-LST-06."""
        assert without_slash(example.list_dir("a/")[1]) == ["a/d", "a/f"]

    def test_foreign_names_are_keys(self, tmp_path):
        """FS-LST-09, FS-LST-08: exactly one form of names is reserved."""
        keys = sorted([".DS_Store", ".nfs0001", "a.partial", "Thumbs.db", ".__zc_tmp", "x.__zc_tmp.1",
                       "__zattr__.lock"])
        store = self.make(tmp_path, dict.fromkeys(keys, b""))
        assert list(store.list()) == keys == store.list_dir("")[0]

    def test_list_goes_on_while_keys_vanish(self, tmp_path):
        """FS-LST-11."""
        keys = [f"{d}/{i}" for d in "abc" for i in range(3)]
        store = self.make(tmp_path, dict.fromkeys(keys, b""))
        iterator = store.list()
        assert next(iterator) == "a/0"
        store.erase_prefix("b/")
        assert list(iterator) == ["a/1", "a/2", "c/0", "c/1", "c/2"]

    def test_list_reads_one_prefix_at_a_time(self, tmp_path, monkeypatch):
        """FS-LST-12."""
        store = self.make(tmp_path, {f"{a}/{b}/{c}": b"" for a in range(10) for b in range(10) for c in range(3)})
        calls = []
        list_dir = store.list_dir
        monkeypatch.setattr(store, "list_dir", lambda prefix: calls.append(prefix) or list_dir(prefix))
        iterator = store.list()
        assert calls == []
        assert next(iterator) == "0/0/0"
        assert calls == ["", "0/", "0/0/"]
        assert sum(1 for _ in iterator) == 299
        assert len(calls) == 111

    # Keys

    @each("key", NOT_KEYS, ids=lambda key: ascii(key))
    def test_what_is_not_a_key_is_refused_everywhere(self, store, key):
        """V3-STORE-04, V3-NAME-05, FS-K2P-03, FS-K2P-04, FS-K2P-05, FS-K2P-06, FS-K2P-07, FS-K2P-08, FS-LST-08,
        FS-DEL-04.
        """
        store.set("good", b"value")
        for name, call in calls_with_key(store).items():
            with pytest.raises(InvalidKeyError) as caught:
                call(key)
            assert caught.value.key == key, name
            assert isinstance(caught.value, (ValueError, StoreError)) and isinstance(caught.value, ZcoreError)
        assert list(store.list()) == ["good"]

    @each("key", [None, b"a", 1, ("a",)])
    def test_keys_are_strings(self, store, key):
        for call in calls_with_key(store).values():
            with pytest.raises(TypeError, match="a key is a str"):
                call(key)
        with pytest.raises(TypeError, match="a prefix is a str"):
            store.list_dir(key)

    def test_unusual_keys(self, store):
        """D3-STO-01, FS-K2P-10, FS-K2P-12."""
        for key in self.unusual_keys:
            store.set(key, b"value")
            assert store.get(key) == b"value", key
            assert list(store.list()) == [key]
            store.set(f"p/{key}/q", b"below")
            assert list(store.list_prefix(f"p/{key}/")) == [f"p/{key}/q"]
            store.erase_values([key, f"p/{key}/q"])
            assert store.exists(key) is False, key

    def test_case_and_normal_form_tell_keys_apart(self, store):
        """FS-K2P-12, FS-SET-09: no key gets the value of another, also where the file system ignores case."""
        kept = {}
        for key, value in (("foo", b"1"), ("FOO", b"2"), ("\xe9", b"3"), ("e\u0301", b"4")):
            try:
                store.set(key, value)
                kept[key] = value
            except KeyConflictError:
                assert directory_at(store) is not None
                assert store.get(key) is None
        assert {key: store.get(key) for key in store.list()} == kept
        assert len(kept) == 4 or directory_at(store) is not None

    # Read-only stores, copies

    def test_read_only_store_refuses_every_change(self, tmp_path):
        """FS-SET-11."""
        store = self.make(tmp_path, {"a": b"value"}, read_only=True)
        assert store.read_only is True
        for name, change in changes(store).items():
            with pytest.raises(ReadOnlyError, match="read-only"):
                change()
            assert {key: store.get(key) for key in store.list()} == {"a": b"value"}, name

    def test_pickle_reads_the_same(self, tmp_path):
        store = self.make(tmp_path, {"a/b": b"1", "c": b"2"})
        copy = pickle.loads(pickle.dumps(store))
        assert type(copy) is type(store)
        assert {key: copy.get(key) for key in copy.list()} == {"a/b": b"1", "c": b"2"}
        read_only = pickle.loads(pickle.dumps(self.make(tmp_path, {"a/b": b"1"}, read_only=True)))
        assert read_only.read_only is True

    def test_equal_and_hashable(self, store, tmp_path):
        assert store == store
        assert {store: 1}[store] == 1
        assert store != "store"


def run_threads(n_threads, work):
    """Run `work(i)` in threads; raise what any of them raised."""
    failures = []

    def guarded(i):
        try:
            work(i)
        except BaseException as exc:
            failures.append(exc)

    at_once(threading.Thread(target=guarded, args=(i,)) for i in range(n_threads))
    if failures:
        raise failures[0]
