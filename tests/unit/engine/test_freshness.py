"""A read is of one array, whatever replaces it meanwhile; what others change of the same array does not stop it."""
import itertools
import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.descriptors import descriptors
from zcore.engine import array_binding as engine
from zcore.engine import views
from zcore.engine.freshness import Freshness
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.select.box import whole

FORMATS = [3, 2, "zmeta"]


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path / "a", request.param)


@pytest.fixture(params=["young", "old"])
def age(request, monkeypatch):
    monkeypatch.setattr(views, "TRUSTED_AGE_NS", 1 << 62 if request.param == "young" else -(1 << 62))
    return request.param


def make(store, value, zarr_format=3, n=8, **options):
    return zcore.create_array(store, data=np.full(n, value, "i4"), chunks=2, fill_value=-1, zarr_format=zarr_format,
                              overwrite=True, **options)


def content(store):
    return {key: store.get(key) for key in store.list()}


class Rounds:
    """Calls ``before()`` and ``after()`` around each run of a plan of one array, and counts them."""

    def __init__(self, monkeypatch, array, before=None, after=None):
        self.n = 0
        run = engine.ArrayBinding._run

        def counted(binding, *arguments):
            if binding is not array._binding:
                return run(binding, *arguments)
            self.n += 1
            if before is not None:
                before()
            run(binding, *arguments)
            if after is not None:
                after()

        monkeypatch.setattr(engine.ArrayBinding, "_run", counted)

    def of(self, call):
        """Return what a call returns, and how many plans it took."""
        n, result = self.n, call()
        return result, self.n - n


@pytest.mark.thinned(3, "store", "age", "replaced_by", "zarr_format")
@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("replaced_by", ["the same document", "other attributes", "a longer one"])
def test_a_read_during_a_replacement_by_equal_chunks_is_of_one_array(store, age, monkeypatch, zarr_format, replaced_by):
    """The read meets half of the new chunks, and at its end a document that it has to take for its own."""
    other = zcore.MemoryStore()
    make(other, 2, zarr_format, n=12 if replaced_by == "a longer one" else 8,
         attributes={"a": 1} if replaced_by == "other attributes" else None)
    make(store, 1, zarr_format)
    array = zcore.open(store)
    document = array._binding.document
    new = content(other)
    chunks = sorted(key for key in new if key != document)
    steps = iter([1])

    def begin():
        """What creating another array does, up to half of its chunks."""
        if next(steps, None):
            store.erase(document)
            for key in [key for key in content(store) if not key.startswith(".")]:
                store.erase(key)
            for key in chunks[:2]:
                store.set(key, new[key])
            begun.append(True)

    def end():
        if begun:
            for key in chunks[2:]:
                store.set(key, new[key])
            store.set(document, new[document])
            begun.clear()

    begun = []
    rounds = Rounds(monkeypatch, array, begin, end)
    found, n = rounds.of(lambda: array[...])
    assert found.tolist() == [2] * 8 and n == 2
    assert rounds.of(lambda: array[1:3].tolist()) == ([2, 2], 1)


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_old_chunks_before_the_replacement_are_not_mixed_with_new_ones(store, age, monkeypatch, zarr_format):
    """The whole replacement happens in the middle of the read, which has taken one chunk of the old array."""
    make(store, 1, zarr_format)
    array = zcore.open(store)
    out = np.zeros(8, "i4")
    steps = iter([1])

    def replace():
        if next(steps, None):
            make(store, 2, zarr_format)
            out[:2] = 1

    rounds = Rounds(monkeypatch, array, None, replace)
    array.read(out=out)
    assert out.tolist() == [2] * 8 and rounds.n == 2


def change_of(store):
    """Return a function that changes something of an array, each time something else, and keeps its elements."""
    changer, numbers = zcore.open(store, "r+"), itertools.count(1)

    def change():
        i = next(numbers)
        if i % 3 == 0:
            changer.resize(8 + i)
        elif i % 3 == 1:
            changer.attrs["i"] = i
        else:
            changer.append([5])

    return change


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_changes_of_the_same_array_during_each_read(store, age, monkeypatch, zarr_format):
    """The first one costs another read; from then on chunks that stay are witnesses."""
    make(store, 1, zarr_format)
    array = zcore.open(store)
    rounds = Rounds(monkeypatch, array, None, change_of(store))
    costs = []
    for _ in range(10):
        found, n = rounds.of(lambda: array[...])
        assert found.tolist() == [1] * 8
        costs.append(n)
    # In Zarr v2 attributes are in another document.
    assert max(costs) == 2 and max(costs[2:]) == 1


def test_a_change_before_the_read_costs_one_more_read_and_is_known_then(store, age, monkeypatch):
    make(store, 1)
    array = zcore.open(store)
    zcore.open(store, "r+").resize(20)
    rounds = Rounds(monkeypatch, array)
    for n in (1 if age == "young" else 2, 1, 1):
        assert rounds.of(lambda: array[...].tolist()) == ([1] * 8, n)
    assert array.shape == (8,)


TABLE = re.findall(r"^\| (old|young) \| (same|changed) \| (.+?) \| .+? \| (\d) \|$",
                   (Path(__file__).parents[3] / "docs/design/reading.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("bytes_now", ["same", "changed"])
@pytest.mark.parametrize("identity_now", ["same", "changed"])
def test_how_often_a_read_is_made_is_in_the_table_of_the_docs(store, age, monkeypatch, identity_now, bytes_now):
    """Where only the bytes change, the document is written in place within one step of the file system's clock.

    In memory each change has another identity; here there are as few of them as with a clock that stands still.
    """
    (n,) = [int(n) for row in TABLE if row[:2] == (age, identity_now) and bytes_now in row[2] for n in row[3]] or [0]
    if n == 0:
        return     # cannot be
    if identity_now == "same":
        monkeypatch.setattr(zcore.MemoryStore, "_identity_of", lambda store, found: (1, 1, len(found[0]), 1, 1))
    for _ in range(20):
        make(store, 1, attributes={"n": 1})
        array, raw = zcore.open(store), store.get("zarr.json")
        identity, new = store.identity("zarr.json"), raw if bytes_now == "same" else raw.replace(b'"n": 1', b'"n": 2')
        if identity_now == "changed":
            store.set("zarr.json", new)
        elif bytes_now == "changed":
            if isinstance(store, zcore.MemoryStore):
                store.set("zarr.json", new)
            else:
                with open(os.path.join(store.path, "zarr.json"), "r+b") as file:
                    file.write(new)
        if (store.identity("zarr.json") == identity) == (identity_now == "same"):
            break
    else:
        pytest.skip("the file system's clock has fine steps")
    rounds = Rounds(monkeypatch, array)
    assert rounds.of(lambda: array[...].tolist()) == ([1] * 8, n)
    assert array._binding.view.raw == new


def test_an_array_without_witnesses_is_held_in_the_end(store, age, monkeypatch):
    """It has no chunks, and its document changes during each read."""
    zcore.create_array(store, shape=8, chunks=2, dtype="i4", fill_value=-1)
    array, numbers = zcore.open(store), itertools.count()
    changer = zcore.open(store, "r+")
    refused = []

    def change():
        try:
            changer.attrs["i"] = next(numbers)
        except zcore.LockError:
            refused.append(True)

    rounds = Rounds(monkeypatch, array, None, change)
    assert array[...].tolist() == [-1] * 8
    assert refused == [True] and rounds.n >= engine.MAX_STALE
    array = zcore.open(store, lock=None)
    Rounds(monkeypatch, array, None, change)
    with pytest.raises(zcore.StoreError, match="the document was replaced during each of 8 reads"):
        array[...]


def test_a_witness_that_was_erased_proves_nothing(store, age, monkeypatch):
    """The array is replaced by its like during a read that knows witnesses of the old one."""
    make(store, 1)
    array = zcore.open(store)
    values, change = iter([2, 3]), change_of(store)
    steps = iter([change, change, lambda: make(store, next(values)), lambda: make(store, next(values))])
    Rounds(monkeypatch, array, None, lambda: next(steps, lambda: None)())
    assert array[...].tolist() == [1] * 8
    assert array[...].tolist() == [3] * 8


def after_witnesses(monkeypatch, call):
    """Let `call` be called when witnesses were looked for."""
    find = Freshness._find_witnesses

    def late(freshness):
        yield from list(find(freshness))
        call()

    monkeypatch.setattr(Freshness, "_find_witnesses", late)


def test_chunks_of_an_array_that_is_being_created_are_no_witnesses(store, age, monkeypatch):
    """It has begun after the document was read, and before the chunks are looked at."""
    make(store, 1)
    array = zcore.open(store)
    freshness = Freshness(array._binding, whole((8,)))
    after_witnesses(monkeypatch, lambda: array.store.erase("zarr.json"))
    freshness.look()
    assert freshness._witnesses and not freshness.begins()


def test_witnesses_are_of_the_document_that_was_there_with_them(store, age, monkeypatch):
    """If the document is replaced before they are found, both are looked for again."""
    make(store, 1)
    replaced = []
    freshness = Freshness(zcore.open(store)._binding, whole((8,)))
    after_witnesses(monkeypatch, lambda: replaced or replaced.append(make(store, 2)))
    freshness.begin()
    assert replaced and freshness.ends()


def test_a_chunk_that_is_a_fifo_is_no_witness_and_hangs_nothing(tmp_path, monkeypatch):
    make(tmp_path / "a", 1)
    for i in range(3):
        os.unlink(tmp_path / f"a/c/{i}")
        os.mkfifo(tmp_path / f"a/c/{i}")
    array = zcore.open(tmp_path / "a")
    Rounds(monkeypatch, array, None, change_of(tmp_path / "a"))
    assert array[6:].tolist() == [1, 1]


def test_no_descriptor_stays_open(tmp_path, age, monkeypatch):
    make(tmp_path / "a", 1)
    array = zcore.open(tmp_path / "a")
    array[...]
    Rounds(monkeypatch, array, None, change_of(tmp_path / "a"))
    n_open = descriptors()
    for _ in range(3):
        array[...]
    assert descriptors() <= n_open


def test_a_document_that_has_grown_old_is_held_no_more(tmp_path, monkeypatch):
    make(tmp_path / "a", 1)
    array = zcore.open(tmp_path / "a")
    held = []
    read = ReadPlan.hold_document
    monkeypatch.setattr(engine, "ReadPlan", type("Counted", (ReadPlan,), {
        "hold_document": lambda plan: held.append(1) or read(plan)}))
    for _ in range(3):
        assert array[...].tolist() == [1] * 8
    assert len(held) == 3 and not array._binding.view.trusted
    time.sleep(2.1)
    for _ in range(3):
        assert array[...].tolist() == [1] * 8
    assert len(held) == 4 and array._binding.view.trusted


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_read_by_a_copy_of_the_document_is_of_one_array(tmp_path, age, monkeypatch, zarr_format):
    """The old directory, in which the read has begun, is emptied; the document in its place is equal to the copy."""
    def make(value):
        zcore.create_array(tmp_path, name="x", data=[value] * 4, chunks=2, zarr_format=zarr_format, overwrite=True)

    def replaces(run, *arguments):
        if values:
            make(values.pop())
        return run(*arguments)

    make(1)
    zcore.consolidate_metadata(tmp_path, zarr_format=zarr_format)
    array, values = zcore.open_group(tmp_path)["x"], [2]
    assert array._binding.view.identity is None
    monkeypatch.setattr(engine.ArrayBinding, "_run", lambda *arguments, run=engine.ArrayBinding._run: (
        run(*arguments) if arguments[0] is not array._binding else replaces(run, *arguments)))
    assert array[...].tolist() == [2, 2, 2, 2] and not values


def test_a_member_of_a_consolidated_group_has_its_document_read_once(tmp_path, monkeypatch):
    """At the first read, which gives it an identity. Later ones only look whether it is still the same."""
    zcore.create_array(tmp_path, name="x", data=np.arange(4), chunks=2)
    zcore.consolidate_metadata(tmp_path)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1e9, 1e9))
    array, looks = zcore.open_group(tmp_path)["x"], []
    look = engine.NodeBinding.look
    monkeypatch.setattr(engine.NodeBinding, "look", lambda binding: looks.append(1) or look(binding))
    for _ in range(5):
        assert array[...].tolist() == [0, 1, 2, 3]
    assert len(looks) == 1
