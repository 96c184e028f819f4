"""A call that looks again as long as two looks differ ends by an error, where they differ for good.

In each case one answer of the system, or what is made of it, is replaced by one that never agrees. A file of two
identities is in `test_odd_calls.py`.
"""
from contextlib import nullcontext
from itertools import cycle

import pytest

import zcore
from zcore.engine import freshness, node_binding, requests
from zcore.engine.freshness import Freshness
from zcore.hierarchy import creation, exchange, moving, new_nodes
from zcore.kernel.select.box import whole
from zcore.nodes import appending, group_writer
from zcore.stores.directory import atomic, lock_file, staged
from zcore.stores.directory.staged import StagedDirectory
from zcore.stores.zip import writer as zip_writer
from zcore.tools import stored
from zcore.tools.copy import sources, transfer
from zcore.tools.verify import verify

N = 3      # tries in these tests
OPTIONS = {"shape": 2, "dtype": "i4", "chunks": 1}


@pytest.fixture
def group(tmp_path):
    """A group with two arrays of one dimension."""
    group = zcore.create_group(tmp_path / "g")
    for name in "ab":
        group.create_array(name, **OPTIONS, dimension_names=("time",))[...] = 1
    return group


@pytest.fixture
def never(monkeypatch):
    """``never(holder, name, answer, limit)`` replaces a function, and lowers a limit; it returns its calls."""
    def replace(holder, name, answer, *limits):
        asked = []

        def answered(*arguments, **keywords):
            asked.append(arguments)
            found = answer(*arguments) if callable(answer) else answer
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(holder, name, answered)
        for module, limit in limits:
            monkeypatch.setattr(module, limit, N)
        return asked

    return replace


@pytest.mark.parametrize("overwrite", [False, True])
def test_creation_below_a_group_that_is_never_there(group, never, overwrite):
    looks = never(creation, "has_lost_groups", True, (creation, "MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="a group above it is gone as soon as it is found or made"):
        group.create_array("c", data=[1, 2], overwrite=overwrite)
    assert len(looks) == N and "c" not in group


def test_creation_of_groups_that_are_never_there(group, never):
    never(creation, "missing_above", ["x"])
    never(creation.lookup, "documents_at", [])
    with pytest.raises(zcore.StoreError, match="a group above it is gone as soon as it is found or made"):
        creation.create_ancestors(group.store, "x/y", group._binding.format, group._binding.options, N)


def test_a_move_below_a_group_that_is_never_there(group, never):
    looks = never(creation, "has_lost_groups", True, (moving, "MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="a group above it is gone as soon as it is found or made"):
        group.move("a", "c")
    assert len(looks) == N and sorted(group) == ["a", "b"]


def test_a_node_that_is_not_found_and_is_in_the_way(group, monkeypatch):
    monkeypatch.setattr(new_nodes, "_MAX_TRIES", N)
    looks = []
    with pytest.raises(zcore.NodeExistsError):
        new_nodes.found_or_made(lambda: looks.append(1), lambda: group.create_array("a", **OPTIONS), "a")
    assert len(looks) == N


def test_an_exchange_of_a_node_that_is_replaced_each_time(group, never):
    tries = never(exchange, "_replace", zcore.NodeNotFoundError("it is gone"), (exchange, "_MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="is replaced as soon as it is looked at"):
        group.create_array("a", data=[3, 4], overwrite=True)
    assert len(tries) == N and group["a"][...].tolist() == [1, 1]


def test_a_document_that_others_replace_each_time(never):
    pauses = never(requests, "pause", None, (requests, "MAX_SWAPS"))

    def change():
        raise node_binding.LostRaceError("another writer was faster")

    with pytest.raises(zcore.LockError, match="another writer was faster"):
        node_binding.until_won(change)
    assert len(pauses) == N - 1


def test_a_read_of_an_array_that_is_replaced_each_time(group, never):
    looks = never(Freshness, "begins", False, (freshness, "_MAX_LOOKS"))
    array = group["a"]
    with pytest.raises(zcore.StoreError, match=f"the document was replaced during each of {N} reads"):
        Freshness(array._binding, whole(array.shape)).begin()
    assert len(looks) == N


def test_the_record_of_an_append_that_never_is_its_own(group, never):
    looks = never(type(group.store), "get", b"another record", (appending, "_MAX_TRIES"))
    with pytest.raises(zcore.LockError, match="the record of an append is gone as soon as it is made"):
        with appending.appending(group["a"], "time", 2):
            pytest.fail("nothing is recorded")
    assert len(looks) == N


def test_lengths_that_another_append_changes_each_time(group, never):
    group["a"].resize(3)
    never(group_writer, "length_before", 2, (group_writer, "_MAX_TRIES"))
    with pytest.raises(zcore.LockError, match=f"others have appended during each of {N} looks at the arrays"):
        group.writer("time")


def test_rows_before_which_others_append_each_time(group, never, monkeypatch):
    writer = group.writer("time")
    lengths = cycle([(2,), (3,)])
    monkeypatch.setattr(writer, "_shape_now", lambda name: next(lengths))
    tries = never(group_writer, "appending", lambda *_: nullcontext(), (group_writer, "_MAX_TRIES"))
    monkeypatch.setattr(writer, "_n_ready", lambda length: 1)
    with pytest.raises(zcore.LockError, match=f"others were faster in each of {N} attempts to append"):
        writer._store_some()
    assert len(tries) == N
    writer.close()


def test_a_container_that_goes_each_time(tmp_path, never):
    looks = never(StagedDirectory, "is_here", False, (staged, "_MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="its container goes as soon as it is made"):
        with StagedDirectory(str(tmp_path / "a")):
            pytest.fail("it is not made")
    assert len(looks) == N


def test_a_directory_that_goes_each_time(tmp_path, never):
    made = never(atomic, "make_directories", None, (atomic, "_MAX_TRIES"))
    with pytest.raises(FileNotFoundError):
        atomic.write_file(str(tmp_path / "b/a"), memoryview(b"1"))
    assert len(made) == N - 1


def test_a_lock_file_in_a_directory_that_is_another_one(tmp_path, never):
    looks = never(lock_file.LockFile, "is_at", False, (lock_file, "_MAX_TRIES"))
    with pytest.raises(zcore.LockError, match="it is gone as soon as it is made"):
        with lock_file.LockFile(str(tmp_path), "node").hold():
            pytest.fail("it is not held")
    assert len(looks) == N and not list(tmp_path.iterdir())


def test_a_zip_archive_whose_new_file_is_gone(group, tmp_path, never):
    looks = never(zip_writer, "_is_locked", False, (zip_writer, "_MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="its temporary file is gone as soon as it is made"):
        zcore.copy(group, tmp_path / "a.zip")
    assert len(looks) == N and not list(tmp_path.glob("*.zip*"))


@pytest.mark.parametrize("module", [sources, transfer])
def test_a_copy_of_what_is_moved_all_the_time(group, tmp_path, never, monkeypatch, module):
    looks = never(stored.DirectoriesAbove, "are_same", False, (stored, "MAX_LOOKS"))
    never(stored.DirectoriesAbove, "check", zcore.StoreError("it was moved"))
    if module is transfer:      # whose look is the second one
        monkeypatch.setattr(sources, "until_unmoved", lambda store, path, work: work())
    with pytest.raises(zcore.StoreError, match="it was moved"):
        zcore.copy(group["a"], tmp_path / "copy")
    assert len(looks) == N


def test_a_verification_of_what_changes_each_time(group, never):
    looks = never(verify._Verification, "_check_unchanged", verify.Changed(), (verify, "_MAX_TRIES"))
    with pytest.raises(zcore.StoreError, match="changes faster than it can be verified"):
        zcore.verify(group, path="a")
    assert len(looks) == N
