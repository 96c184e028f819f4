"""`Array.async_read`: what is read, several at once, and what is left of a read that is cancelled."""
import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import zcore
from tests.each import each
from tests.unit.stores.servers import http_server
from zcore import workers

VALUES = np.arange(1, 1 + 40 * 60, dtype="<i4").reshape(40, 60)
WAIT = 30


class Slow(zcore.MemoryStore):
    """Takes its time for each chunk, and counts the threads that wait."""

    def __init__(self, delay=0.0):
        super().__init__()
        self.delay = delay
        self.read, self.n_inside = [], 0
        self.lock = threading.Lock()
        self.entered = threading.Event()

    def get(self, key, *args):
        if "c/" not in key:
            return super().get(key, *args)
        with self.lock:
            self.read.append(key)
            self.n_inside += 1
        self.entered.set()
        time.sleep(self.delay)
        with self.lock:
            self.n_inside -= 1
        return super().get(key, *args)


def slow(delay, **options):
    """Return an array of 30 chunks in a slow store, and the store."""
    store = Slow()
    array = zcore.create_array(store, shape=(40, 60), chunks=(8, 10), dtype="<i4", **options)
    array[...] = VALUES
    store.read.clear()
    store.entered.clear()
    store.delay = delay
    return array, store


async def entered(store):
    while not store.entered.is_set():
        await asyncio.sleep(0.001)


@each("selection", [..., 3, np.s_[3, 4], np.s_[5:20, ::-3], np.s_[[4, 1], 2:9], VALUES % 7 == 0,
                                       None], ids=repr)
def test_it_returns_what_read_returns(selection):
    array = zcore.array(VALUES, chunks=(8, 10))
    result, expected = asyncio.run(array.async_read(selection)), array.read(selection)
    assert type(result) is type(expected) and result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_a_place_and_no_selection():
    array = zcore.array(VALUES, chunks=(8, 10))
    wide = np.zeros((40, 120), "<i4")
    out = wide[:, ::-2]
    assert asyncio.run(array.async_read(out=out)) is out
    np.testing.assert_array_equal(wide[:, ::-2], VALUES)
    with pytest.raises(ValueError, match="out has shape"):
        asyncio.run(array.async_read(np.s_[:3], out=out))


def test_an_error_is_that_of_a_read(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(8, 10))
    (tmp_path / "a" / "c" / "2" / "3").write_bytes(b"damage")
    with pytest.raises(zcore.ChunkError) as caught:
        asyncio.run(array.async_read())
    assert caught.value.chunk_coords == (2, 3) and str(tmp_path) in str(caught.value)
    with pytest.raises(zcore.SelectionError):
        asyncio.run(array.async_read(40))


def test_other_coroutines_run_meanwhile():
    array, _ = slow(0.01)
    ticks = []

    async def tick():
        while True:
            ticks.append(None)
            await asyncio.sleep(0.001)

    async def main():
        ticking = asyncio.create_task(tick())
        np.testing.assert_array_equal(await array.async_read(), VALUES)
        ticking.cancel()

    asyncio.run(main())
    assert len(ticks) > 20


def test_several_at_once_are_faster_than_in_a_row():
    pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
    store = zcore.MemoryStore()
    zcore.create_array(store, name="a", data=VALUES, chunks=(8, 10))
    with http_server() as (url, site):
        site.files.update({key: store.get(key) for key in store.list()})
        array = zcore.open(url + "a")
        parts = [np.s_[8 * i:8 * i + 8, :10] for i in range(5)] * 2
        site.delay = 0.05

        async def in_a_row():
            return [await array.async_read(part) for part in parts]

        async def at_once():
            return await asyncio.gather(*[array.async_read(part) for part in parts])

        took = []
        for read in (in_a_row, at_once):
            site.n_most = 0
            started = time.monotonic()
            results = asyncio.run(read())
            took.append(time.monotonic() - started)
            for part, result in zip(parts, results, strict=True):
                np.testing.assert_array_equal(result, VALUES[part])
        assert site.n_most > 4 and took[1] < took[0] / 2, took


def test_more_reads_than_threads():
    array, store = slow(0.001)
    before = threading.active_count()

    async def main():
        results = await asyncio.gather(*[array.async_read(np.s_[i % 40]) for i in range(200)])
        for i, result in enumerate(results):
            np.testing.assert_array_equal(result, VALUES[i % 40])

    asyncio.run(main())
    assert threading.active_count() <= before + workers.MAX_LATER + os.cpu_count() and store.n_inside == 0


# Cancelled

@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("has_out", [False, True])
def test_a_cancelled_read_stops_at_the_next_chunk(threads, has_out):
    array, store = slow(0.05, threads=threads)
    out = np.zeros_like(VALUES) if has_out else None

    async def main():
        task = asyncio.create_task(array.async_read(out=out))
        await entered(store)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled() and store.n_inside == 0
        left = None if out is None else out.copy()
        n_read = len(store.read)
        await asyncio.sleep(0.2)
        assert len(store.read) == n_read < 30
        if has_out:
            np.testing.assert_array_equal(out, left)

    asyncio.run(main())
    # The array, and the threads, are as good as before.
    store.delay = 0
    np.testing.assert_array_equal(asyncio.run(array.async_read()), VALUES)


def test_files_are_left_between_two_chunks(tmp_path):
    values = np.arange(1 << 21, dtype="<i4")
    array = zcore.create_array(tmp_path, data=values, chunks=(256,), threads=2)
    out = np.full(values.shape, -1, "<i4")

    async def main():
        for pause in (0, 0.0002, 0.001, 0.005, 0.02):
            out[...] = -1
            task = asyncio.create_task(array.async_read(out=out))
            await asyncio.sleep(pause)
            if not task.cancel():
                continue
            with pytest.raises(asyncio.CancelledError):
                await task
            left = out.copy()
            await asyncio.sleep(0.01)
            np.testing.assert_array_equal(out, left)
            assert ((left == values) | (left == -1)).all()
            if pause < 0.01:
                assert (left == -1).any()

    asyncio.run(main())
    np.testing.assert_array_equal(array[...], values)


def test_a_task_that_is_cancelled_again_waits_still():
    array, store = slow(0.3)
    out = np.zeros_like(VALUES)

    async def main():
        task = asyncio.create_task(array.async_read(out=out))
        await entered(store)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
        assert not task.done() and store.n_inside == 1
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.n_inside == 0

    asyncio.run(main())


def test_time_limits_and_groups():
    array, store = slow(0.05)

    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(array.async_read(), 0.1)
        assert store.n_inside == 0
        with pytest.raises(ExceptionGroup) as caught:
            async with asyncio.TaskGroup() as group:
                reads = [group.create_task(array.async_read()) for _ in range(4)]
                group.create_task(array.async_read("x"))
        assert caught.group_contains(zcore.SelectionError)
        assert all(read.cancelled() for read in reads) and store.n_inside == 0

    asyncio.run(main())


def test_a_request_that_hangs_is_left_to_itself():
    pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
    store = zcore.MemoryStore()
    zcore.create_array(store, name="a", data=VALUES, chunks=(8, 10))
    with http_server() as (url, site):
        site.files.update({key: store.get(key) for key in store.list()})
        array = zcore.open(url + "a")

        async def main(what):
            site.faults[what] = ["hang"]
            out = np.zeros_like(VALUES)
            task = asyncio.create_task(array.async_read(out=out))
            while site.faults[what]:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - started < 5

        for key in ("a/c/1/2", "a/zarr.json"):
            asyncio.run(main(key))
        site.over.set()
        np.testing.assert_array_equal(asyncio.run(array.async_read()), VALUES)


def test_a_read_that_waits_for_a_thread_is_never_made(monkeypatch):
    workers_before = len(workers._callers)
    monkeypatch.setattr(workers, "MAX_LATER", max(1, workers_before))
    array, store = slow(0.05)
    other, untouched = slow(0)

    async def main():
        busy = [asyncio.create_task(array.async_read(np.s_[:8, :40])) for _ in range(workers.MAX_LATER)]
        await entered(store)
        waiting = asyncio.create_task(other.async_read())
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.gather(*busy)

    asyncio.run(main())
    assert untouched.read == []


# Loops and processes that end

def ended(store):
    """Wait until no thread reads any more."""
    end = time.monotonic() + WAIT
    while store.n_inside or workers._pending:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_loop_that_is_closed_meanwhile(capfd):
    array, store = slow(0.02)
    loop = asyncio.new_event_loop()

    async def begin():
        task = asyncio.ensure_future(array.async_read())
        await entered(store)
        return task

    task = loop.run_until_complete(begin())
    loop.close()
    ended(store)
    task._log_destroy_pending = False
    del task
    gc.collect()
    np.testing.assert_array_equal(asyncio.run(array.async_read()), VALUES)
    assert capfd.readouterr().err == ""


def test_a_coroutine_that_is_closed():
    array, store = slow(0.05)

    async def main():
        reading = array.async_read()
        step = reading.send(None)
        await entered(store)
        reading.close()
        assert step is not None

    asyncio.run(main())
    ended(store)
    assert len(store.read) < 30


@pytest.mark.parametrize("ending", ["asyncio.run(main())", "asyncio.run(asyncio.wait_for(main(), 0.2))",
                                    "loop = asyncio.new_event_loop(); loop.create_task(main()); "
                                    "loop.run_until_complete(asyncio.sleep(0.2))"])
def test_a_process_that_ends_meanwhile(ending):
    script = f"""
        import asyncio, time
        import numpy as np, zcore

        class Slow(zcore.MemoryStore):
            delay = 0
            def get(self, key, *args):
                time.sleep(self.delay if "c/" in key else 0)
                return super().get(key, *args)

        store = Slow()
        array = zcore.create_array(store, data=np.ones((100, 10)), chunks=(1, 10))
        store.delay = 0.05

        async def main():
            reads = [asyncio.create_task(array.async_read()) for _ in range(3)]
            await asyncio.sleep(0.1)
            if {ending.startswith("asyncio.run(main")}:
                return
            await asyncio.gather(*reads)

        try:
            {ending}
        except TimeoutError:
            pass
    """
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Fatal" not in done.stderr, done.stderr
    assert time.monotonic() - started < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_threads_of_its_own():
    script = """
        import asyncio, os, signal, sys
        import numpy as np, zcore

        array = zcore.create_array(zcore.MemoryStore(), data=np.arange(1000), chunks=10)

        async def main():
            for part, result in enumerate(await asyncio.gather(*[array.async_read(i) for i in range(50)])):
                assert result == part

        asyncio.run(main())
        pid = os.fork()
        if pid == 0:
            signal.alarm(30)
            asyncio.run(main())
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)], capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_nothing_keeps_the_result_nor_the_error():
    array, _ = slow(0)

    async def main():
        held = [weakref.ref(await array.async_read())]
        try:
            await array.async_read("x")
        except zcore.SelectionError as error:
            held.append(weakref.ref(error))
        end = time.monotonic() + WAIT
        while any(ref() is not None for ref in held):
            # The thread may not have forgotten them yet.
            assert time.monotonic() < end
            await asyncio.sleep(0.001)

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
