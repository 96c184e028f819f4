"""Turns to decode: how many threads have one, who waits, and how a wait ends. No test looks at a time."""
import os
import signal
import threading
import time

import numpy as np
import pytest

import zcore
from zcore.config import available_cpus
from zcore.kernel.plan.plan import PlanOptions, free_turn, hold_turn, turns
from zcore.kernel.plan.read import ReadPlan

LARGE, SMALL = (1 << 20,), (1 << 17,)      # float64: 8 MB, which take a turn, and 1 MB


@pytest.fixture(params=["chunk", "shard"])
def array(request, tmp_path):
    return made(tmp_path, LARGE, request.param == "shard")


@pytest.fixture
def all_taken():
    """Take all turns; the test may give some back itself."""
    n = available_cpus()
    assert all([hold_turn(n) for _ in range(n)]) and turns() == (n, 0)
    yield n
    while turns()[0]:
        free_turn()


def made(tmp_path, shape, is_sharded=False):
    chunks = {"chunks": (shape[0] // 8,), "shards": shape} if is_sharded else {"chunks": shape}
    array = zcore.create_array(str(tmp_path / f"{shape}"), shape=shape, dtype="f8", **chunks)
    array[...] = np.arange(shape[0])
    return zcore.open(str(tmp_path / f"{shape}"), threads=1)


def is_right(found):
    return np.array_equal(found, np.arange(len(found)))


def until(condition):
    latest = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < latest
        time.sleep(0.001)


def started(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def test_no_more_threads_decode_than_there_are_cores(array):
    seen, is_over = [], threading.Event()

    def read():
        while not is_over.is_set():
            if not is_right(array[...]):
                return False
        return True

    threads = [started(read) for _ in range(4 * available_cpus())]

    def has_waiting():
        seen.append(turns())
        return seen[-1][1] > 0

    until(has_waiting)
    is_over.set()
    for thread, found in threads:
        thread.join()
        assert found == [True]
    assert max([taken for taken, _ in seen]) <= available_cpus()
    assert turns() == (0, 0)


def test_a_read_waits_for_its_turn(array, all_taken):
    thread, found = started(lambda: array[...])
    until(lambda: turns()[1])
    assert found == []
    free_turn()
    thread.join()
    assert is_right(found[0]) and turns() == (all_taken - 1, 0)


def test_a_call_of_more_threads_has_more_turns(array, all_taken):
    assert is_right(zcore.open(array.store, threads=all_taken + 1)[...])


def test_what_needs_no_turn(tmp_path, all_taken):
    """Small reads, writes, and elements without a codec. A wait would last for seconds, so it would be seen."""
    array = made(tmp_path, LARGE)
    plain = zcore.create_array(str(tmp_path / "plain"), shape=LARGE, dtype="f8", chunks=LARGE, compressors=None,
                               zarr_format=2)
    plain[...] = np.arange(LARGE[0])
    small = made(tmp_path, SMALL)
    thread, _ = started(lambda: [small[...], array[5], array[:1000], plain[...]])
    while thread.is_alive():
        assert turns() == (all_taken, 0)
        time.sleep(0.001)


def test_a_plan_that_is_cancelled_leaves_the_queue(array, all_taken):
    binding = array._binding
    selection = zcore.kernel.select.box.whole(LARGE)
    plan = ReadPlan(binding.opened(binding.view), selection, np.empty(LARGE), PlanOptions())
    thread, _ = started(lambda: plan.run(False))
    until(lambda: turns()[1])
    plan.cancel()
    thread.join()
    assert turns() == (all_taken, 0)


def test_ctrl_c_ends_a_wait(array, all_taken, ctrl_c):
    def interrupt():
        until(lambda: turns()[1])
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread, _ = started(interrupt)
    with pytest.raises(KeyboardInterrupt):
        array[...]
    thread.join()
    assert turns() == (all_taken, 0)


def test_a_signal_handler_reads_during_a_wait(array, all_taken):
    """The wait holds nothing that the handler needs."""
    found = []

    def handler(*_):
        free_turn()
        found.append(is_right(array[...]))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        thread, _ = started(lambda: (until(lambda: turns()[1]),
                                     signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)))
        assert is_right(array[...])
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert found == [True] and turns() == (all_taken - 1, 0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_begins_with_all_turns(array, all_taken):
    thread, found = started(lambda: array[...])
    until(lambda: turns()[1])
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if turns() == (0, 0) and is_right(array[...]) and turns() == (0, 0):
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    free_turn()
    thread.join()
    assert is_right(found[0])
