"""Sixteen threads share a handle, a store and a cache, on any interpreter, with or without a GIL."""
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import zcore
from zcore.kernel.io.documents import Tickets
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

    threads = [threading.Thread(target=run, args=(i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
    shared = zcore.create_array(store, name="shared", shape=(n, 8), chunks=(N_ROWS, 8), dtype="i4", cache="1 MB")
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


def stores(tmp_path):
    return zcore.DirectoryStore(tmp_path / "a"), zcore.MemoryStore()


def test_threads_share_an_array_a_store_and_a_cache(tmp_path):
    check_tickets(50)
    for store in stores(tmp_path):
        check_array(store, 2)


@pytest.mark.slow
def test_threads_share_an_array_a_store_and_a_cache_for_long(tmp_path):
    check_tickets(20_000)
    for store in stores(tmp_path):
        check_array(store, 100)


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

    monkeypatch.setattr("zcore.engine.binding.SmallReads", prepare)
    for _ in range(2):
        binding._expect_small(former)
    assert binding.small is prepared[0]
    for _ in range(2):
        binding._expect_small(binding.view)
    assert len(prepared) == 2 and binding.small is prepared[1]

