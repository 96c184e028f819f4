"""Sixteen threads share a handle, a store, a group and a cache, on any interpreter, with or without a GIL.

Each check knows what every call may give and what is left at the end: nothing lost, torn or invented, and no exception
but those that are right.
"""
import os
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from zcore.errors import NodeExistsError, NodeNotFoundError
from zcore.kernel.io.documents import Tickets
from zcore.kernel.plan.cache import ChunkCache
from zcore.kernel.plan.small_read import SmallReads

N_THREADS, N_ROWS = 16, 4


@pytest.fixture(autouse=True)
def often_switched():
    """Let threads take turns as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def run_together(work):
    """Call ``work(i)`` in `N_THREADS` threads that start at once; raise the first exception."""
    start, errors = threading.Barrier(N_THREADS), []

    def run(i):
        try:
            start.wait(60)
            work(i)
        except BaseException as exc:
            errors.append(exc)

    at_once(threading.Thread(target=run, args=(i,)) for i in range(N_THREADS))
    if errors:
        raise errors[0]


def check_tickets(n_rounds):
    tickets, holder, taken = Tickets(), SimpleNamespace(view=None), [[] for _ in range(N_THREADS)]

    def work(i):
        for _ in range(n_rounds):
            ticket = tickets.next()
            taken[i].append(ticket)
            tickets.adopt(holder, SimpleNamespace(ticket=ticket))
            assert holder.view.ticket >= ticket

    run_together(work)
    assert sorted(sum(taken, [])) == list(range(1, N_THREADS * n_rounds + 1))
    assert all([of_one == sorted(of_one) for of_one in taken])
    assert holder.view.ticket == N_THREADS * n_rounds


def check_array(store, n_rounds):
    """Each thread writes its own rows, reads all, sets its own attribute, appends to one array and resizes another."""
    n = N_THREADS * N_ROWS
    # Large enough for helpers, which take objects of the same plan.
    shared = zcore.create_array(store, name="shared", shape=(n, 512), chunks=(N_ROWS, 512), dtype="i4", cache="1 MB",
                                threads=3)
    grown = zcore.create_array(store, name="grown", shape=(0, 2), chunks=(3, 2), dtype="i4")
    resized = zcore.create_array(store, name="resized", shape=(n, 8), chunks=(N_ROWS, 8), dtype="i4")

    def work(i):
        mine = slice(i * N_ROWS, (i + 1) * N_ROWS)
        last = np.zeros(N_THREADS, "i4")
        for r in range(1, n_rounds + 1):
            shared[mine] = r
            rows = shared[...].reshape(N_THREADS, -1)
            # An object is replaced as a whole, and nobody goes back to an earlier one.
            assert (rows == rows[:, :1]).all() and (rows[:, 0] >= last).all() and rows[i, 0] == r
            last = rows[:, 0]
            assert [int(shared[i * N_ROWS, d]) for d in range(3)] == [r] * 3
            assert all((row == row[0]).all() for row in shared)
            shared.attrs[f"of {i}"] = r
            assert shared.attrs[f"of {i}"] == r
            grown.append(np.array([[i, r]], "i4"))
            resized.resize((n + i, 8))
            resized[mine] = r
            assert (resized[mine] == r).all() and n <= resized.shape[0] < n + N_THREADS

    run_together(work)
    assert (shared[...] == n_rounds).all()
    assert dict(shared.attrs) == {f"of {i}": n_rounds for i in range(N_THREADS)}
    assert sorted(map(tuple, grown[...].tolist())) == [(i, r) for i in range(N_THREADS) for r in range(1, n_rounds + 1)]
    assert (resized[:n] == n_rounds).all()
    for handle in (shared, grown, resized):
        # The handle has the last document that any thread has written.
        assert handle.shape == zcore.open_array(store, path=handle.path).shape


def check_group(store, n_rounds):
    """Each thread has a member of its own; all of them create and delete the same one; the group is listed meanwhile.

    Each creation of the common member has one winner, and so has each deletion.
    """
    group = zcore.create_group(store, path="group")
    standing = {group.create_array(f"standing-{k}", data=np.full(3, k)).name.rpartition("/")[2] for k in range(3)}
    known = standing | {"common"} | {f"of-{i}" for i in range(N_THREADS)}
    n_made, n_gone = [0] * N_THREADS, [0] * N_THREADS

    def work(i):
        own = f"of-{i}"
        for r in range(n_rounds):
            group.create_array(own, data=np.full(3, r))
            try:
                group.create_group("common")
                n_made[i] += 1
            except NodeExistsError:
                pass
            names = list(group)
            assert len(set(names)) == len(names) and standing | {own} <= set(names) <= known
            assert (group[own][...] == r).all() and (group["standing-2"][...] == 2).all()
            try:
                del group["common"]
                n_gone[i] += 1
            except NodeNotFoundError:
                pass
            del group[own]
            assert own not in group

    run_together(work)
    assert sum(n_made) - sum(n_gone) == ("common" in group) and sum(n_gone) > 0
    assert set(group) - {"common"} == standing


def check_reads(path, n_rounds, **layout):
    """Elements at rest are read, by plans that are kept and through a cache, while both and the document change."""
    values = np.arange(64 * 12, dtype="i4").reshape(64, 12)
    zcore.create_array(path, data=values, chunks=(4, 6), **layout)
    a = zcore.open_array(path, mode="r+", cache="1 MB")
    cache = a._binding.options._chunks = ChunkCache(20_000, 0)
    n_set, kept = [0] * N_THREADS, []

    def work(i):
        for r in range(n_rounds):
            for k in range(i, i + 48, 3):
                assert a[k % 64, k % 12] == values[k % 64, k % 12]
                assert (a[k % 64, k % 9:] == values[k % 64, k % 9:]).all()
            # A new document drops the plans: those that are kept when all threads are done tell nothing.
            kept.append(a._binding.small is not None)
            assert (a[...] == values).all() and (a[[63, i, 2 * i], ::5] == values[[63, i, 2 * i], ::5]).all()
            if i % 8 == 0:
                cache.resize((0, 3000, 20_000)[r % 3])
                assert cache.info()["nbytes"] <= 20_000
                cache.clear()
            elif i % 8 == 1:
                a.attrs[f"of {i}"] = n_set[i] = r + 1

    run_together(work)
    assert dict(a.attrs) == {f"of {i}": n for i, n in enumerate(n_set) if n}
    # Both were in use.
    assert any(kept) and cache.info()["hits"] > 0


def stores(tmp_path):
    return zcore.DirectoryStore(tmp_path / "a"), zcore.MemoryStore()


@pytest.fixture
def old_documents(monkeypatch):
    """Let the documents of new arrays be old enough for plans that are kept."""
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)


IMPORTS = """
import importlib, pathlib, sys, warnings
warnings.simplefilter("error")
import zcore
package = pathlib.Path(zcore.__file__).parent
names = [".".join(("zcore", *path.relative_to(package).with_suffix("").parts)) for path in package.rglob("*.pyx")]
for name in [*names, "zcore.kernel.cython_shared"]:
    importlib.import_module(name)
assert len(names) > 30 and not sys._is_gil_enabled(), names
"""


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL")
def test_no_module_brings_the_gil_back():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    environment["PYTHONPATH"] = str(Path(zcore.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr


def test_threads_share_an_array_a_store_and_a_cache(tmp_path):
    check_tickets(50)
    for store in stores(tmp_path):
        check_array(store, 2)


def test_threads_share_a_group(tmp_path):
    for store in stores(tmp_path):
        check_group(store, 2)


LAYOUTS = [{}, {"shards": (16, 12)}]


def test_threads_share_kept_plans_and_a_cache(tmp_path, old_documents):
    for k, layout in enumerate(LAYOUTS):
        check_reads(tmp_path / str(k), 3, **layout)


@pytest.mark.slow
def test_threads_share_everything_for_long(tmp_path):
    check_tickets(20_000)
    for store in stores(tmp_path):
        check_array(store, 100)
        check_group(store, 100)


@pytest.mark.slow
def test_threads_share_kept_plans_and_a_cache_for_long(tmp_path, old_documents):
    for k, layout in enumerate(LAYOUTS):
        check_reads(tmp_path / str(k), 200, **layout)


def test_small_reads_of_a_view_that_another_thread_has_replaced_are_prepared_again(tmp_path, monkeypatch):
    """Reads that were prepared for a former view would be left to the engine for ever."""
    a = zcore.create_array(tmp_path / "a", data=np.arange(12), chunks=(4,))
    binding = a._binding
    binding.adopt(binding.view._replace(trusted=True))
    former = binding.view
    prepared = []

    def prepare(*arguments):
        # Meanwhile another thread adopts the document of another writer, and reads.
        if not prepared:
            binding.adopt(former._replace(ticket=former.ticket + 1))
            binding._expect_small(binding.view)
        prepared.append(SmallReads(*arguments))
        return prepared[-1]

    monkeypatch.setattr("zcore.engine.array_binding.SmallReads", prepare)
    for _ in range(2):
        binding._expect_small(former)
    assert binding.small is prepared[0]
    for _ in range(2):
        binding._expect_small(binding.view)
    assert len(prepared) == 2 and binding.small is prepared[1]

