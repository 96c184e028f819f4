"""Threads that help: each piece of work is entered by its caller and by whoever is free, and left by all."""
import os
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore import workers
from zcore.stores.base import run_together


class Tasks:
    """Work of `n` tasks that any number of threads take from."""

    def __init__(self, n, do=lambda task, main: None):
        self.left = list(range(n))
        self.done = []
        self.entered = []
        self.do = do
        self.stopped = False

    def __call__(self, main):
        self.entered.append((threading.get_ident(), main))
        while not self.stopped:
            try:
                task = self.left.pop()
            except IndexError:
                return
            self.do(task, main)
            self.done.append(task)

    def cancel(self):
        self.stopped = True


@each("n_threads", [0, 1, 2, 3, 7, 40])
def test_every_task_is_done_once(n_threads):
    tasks = Tasks(1000)
    workers.run(tasks, n_threads, tasks.cancel)
    assert sorted(tasks.done) == list(range(1000))
    assert (threading.get_ident(), True) in tasks.entered
    assert sum(main for _, main in tasks.entered) == 1
    assert len(tasks.entered) <= max(1, n_threads)
    assert not tasks.stopped


def test_parts_of_several_objects_are_asked_for_at_the_same_time(monkeypatch):
    """Threads that wait for others need their own: both calls of `run_together` get as many as they have parts."""
    jobs = SimpleQueue()
    monkeypatch.setattr(workers, "_jobs", jobs)
    monkeypatch.setattr(workers, "_helpers", [])
    met = threading.Barrier(16)
    try:
        workers.run(lambda main: run_together(lambda part: met.wait(60), range(8), 16), 2, lambda: None)
    finally:
        for _ in workers._helpers:
            jobs.put(None)


def test_one_thread_needs_no_pool(monkeypatch):
    monkeypatch.setattr(workers, "start", None)
    tasks = Tasks(3)
    workers.run(tasks, 1, tasks.cancel)
    assert tasks.entered == [(threading.get_ident(), True)]


def test_helpers_help():
    """The caller cannot go on before two helpers have come."""
    helpers = threading.Barrier(3)
    tasks = Tasks(3, lambda task, main: helpers.wait(60))
    workers.run(tasks, 3, tasks.cancel)
    assert len({ident for ident, _ in tasks.entered}) == 3


def test_a_busy_pool_costs_no_progress():
    """All helpers are held up elsewhere; the caller does its work alone, and so do callers inside of that."""
    start, leave = threading.Barrier(5), threading.Event()
    busy = Tasks(5, lambda task, main: (start.wait(60), leave.wait(60)))
    holder = threading.Thread(target=workers.run, args=(busy, 5, busy.cancel))
    holder.start()
    while start.n_waiting:
        time.sleep(0)

    def nest(task, main):
        inner = Tasks(4)
        workers.run(inner, 4, inner.cancel)
        assert len(inner.done) == 4

    outer = Tasks(4, nest)
    workers.run(outer, 4, outer.cancel)
    assert len(outer.done) == 4
    leave.set()
    holder.join()
    assert len(busy.done) == 5


def test_an_exception_of_a_helper_comes_out():
    at = threading.Barrier(2)

    def fail(task, main):
        at.wait(60)
        if not main:
            raise KeyError(task)

    tasks = Tasks(100, fail)
    tasks.left = [0, 1]
    with pytest.raises(KeyError):
        workers.run(tasks, 2, tasks.cancel)
    assert tasks.stopped


def test_an_exception_of_the_caller_comes_out_after_the_helpers_have_left():
    at, gone = threading.Barrier(2), []

    def fail(task, main):
        at.wait(60)
        if main:
            raise KeyError(task)
        while not tasks.stopped:
            time.sleep(0)
        time.sleep(0.01)
        gone.append(task)

    tasks = Tasks(2, fail)
    with pytest.raises(KeyError):
        workers.run(tasks, 2, tasks.cancel)
    assert tasks.stopped and len(gone) == 1


@pytest.mark.parametrize("fails_first", [0, 1, 2])
def test_the_first_exception_comes_out(fails_first):
    """Those that it stops raise, too: that they were stopped."""
    at, numbers = threading.Barrier(3), iter([1, 2])

    def fail(task, main):
        number = 0 if main else next(numbers)
        at.wait(60)
        if number == fails_first:
            raise KeyError(task)
        while not tasks.stopped:
            time.sleep(0)
        raise ValueError("stopped")

    tasks = Tasks(3, fail)
    with pytest.raises(KeyError):
        workers.run(tasks, 3, tasks.cancel)


@pytest.mark.parametrize("ends", [False, True])
def test_the_pool_survives_an_exception(monkeypatch, ends):
    """Whether or not another thread goes on in place of the one that has failed."""
    monkeypatch.setattr(workers, "FREED_BY_ITS_THREAD", ends)
    for _ in range(5):
        with pytest.raises(ZeroDivisionError):
            workers.run(lambda main: 1 / 0, 4, lambda: None)
    helpers = threading.Barrier(4)
    tasks = Tasks(4, lambda task, main: helpers.wait(60))
    workers.run(tasks, 4, tasks.cancel)
    assert len(tasks.done) == 4


def test_close_waits_for_whoever_is_inside():
    inside, n_inside = threading.Event(), []

    def work(main):
        if main:
            inside.wait(60)
            return
        n_inside.append(1)
        inside.set()
        time.sleep(0.02)
        n_inside.pop()

    workers.run(work, 2, lambda: None)
    assert n_inside == []


def test_a_signal_handler_that_raises_before_the_others_are_waited_for(monkeypatch):
    """No thread is inside when the call has raised."""
    close, calls, inside, may_end = workers._Job.close, [], [], threading.Event()
    caller = threading.get_ident()

    def interrupted(job, abandon):
        calls.append(abandon)
        if len(calls) == 1:
            threading.Timer(0.1, may_end.set).start()
            raise KeyboardInterrupt
        close(job, abandon)

    def do(item):
        # Either thread may have the first item.
        if threading.get_ident() != caller:
            inside.append(item)
            may_end.wait(20)
            inside.remove(item)
        else:
            while not inside:
                time.sleep(0.001)

    monkeypatch.setattr(workers._Job, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.each(do, [0, 1], 2)
    assert not inside and calls == [False, True]


def test_threads_that_cannot_be_had(monkeypatch):
    """As at the end of the interpreter: the caller works alone, and nothing is queued that nobody will take."""
    def refuse(function, queue):
        raise RuntimeError("can't start new thread")

    workers._after_fork_in_child()      # a pool without threads
    monkeypatch.setattr(workers, "_begin", refuse)
    tasks = Tasks(10)
    workers.run(tasks, 4, tasks.cancel)
    assert len(tasks.done) == 10 and len(tasks.entered) == 1
    assert workers._jobs.empty()
    monkeypatch.undo()
    test_helpers_help()


def test_many_callers_at_once():
    def call(i):
        tasks = Tasks(50)
        workers.run(tasks, 1 + i % 5, tasks.cancel)
        return sorted(tasks.done) == list(range(50))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(400)))


@pytest.mark.parametrize("way", WAYS)
def test_reads_from_the_threads_of_a_scheduler(tmp_path, monkeypatch, way):
    """More readers than the pool has threads, each of which asks for help."""
    monkeypatch.setattr(zcore.config, "threads", 4)
    values = np.arange(64 * 4096, dtype="i4").reshape(64, 4096)
    array = zcore.open(directory(tmp_path, way), mode="w", shape=values.shape, chunks=(8, 1024), dtype="i4",
                       cname="lz4")
    array[...] = values

    def read(i):
        part = (slice(i % 8, None), slice(None, None, 1 + i % 3))
        return np.array_equal(array[part], values[part])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(60)))


@pytest.mark.parametrize("threads", [1, 2, 61])
def test_any_number_of_threads(tmp_path, threads):
    values = np.arange(64 * 4096, dtype="i4").reshape(64, 4096)
    array = zcore.open(tmp_path, mode="w", shape=values.shape, chunks=(8, 1024), dtype="i4", cname="lz4",
                       threads=threads)
    array[...] = values
    array[3:50, 5:4000] = values[3:50, 5:4000] + 1
    expected = values.copy()
    expected[3:50, 5:4000] += 1
    assert np.array_equal(array[...], expected)


def lines_at_the_end(code, tmp_path):
    """Return what a program prints that has the array `array`, and four threads for it."""
    start = f"""
import atexit, threading, time
import zcore
zcore.config.threads = 4
array = zcore.open({str(tmp_path)!r}, mode="w", shape=(64, 4096), chunks=(8, 1024), dtype="i4", cname="lz4")
"""
    environment = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(zcore.__file__)))
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True, timeout=120,
                          env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_use_while_the_interpreter_ends(tmp_path):
    """In a thread that the interpreter waits for, and in `atexit`."""
    code = """
def at_exit():
    array[...] = 2
    print("atexit", int(array[...].sum()))
atexit.register(at_exit)
def run():
    time.sleep(0.05)
    array[...] = 1
    print("thread", int(array[...].sum()))
threading.Thread(target=run).start()
"""
    assert lines_at_the_end(code, tmp_path) == [f"thread {64 * 4096}", f"atexit {2 * 64 * 4096}"]


@pytest.mark.skipif(not workers.FREED_BY_ITS_THREAD, reason="with a GIL, threads are left where they are")
def test_the_end_of_the_interpreter_waits_for_what_threads_are_doing(tmp_path):
    """The wait has an end, and calls that are made after it still run."""
    code = """
from zcore import workers
atexit.unregister(workers._end)
def ask():
    done = threading.Event()
    workers.later(lambda: array[...], lambda value, exception: done.set())
    array[...] = 2
    print("atexit", done.wait(60), int(array[...].sum()))
atexit.register(ask)
atexit.register(workers._end)
array[...] = 1
for seconds in (0.3, 1e6):
    workers.later(lambda: time.sleep(seconds) or 5, lambda value, exception: print("value", value))
    time.sleep(0.1)
"""
    assert lines_at_the_end(code, tmp_path) == ["value 5", f"atexit True {2 * 64 * 4096}"]


@pytest.mark.skipif(not workers.FREED_BY_ITS_THREAD, reason="with a GIL, no lock of an object is held for ever")
def test_the_interpreter_ends_while_threads_go_back_to_wait(tmp_path):
    """It stood still one time in four."""
    code = """
import asyncio
async def read():
    await asyncio.gather(*[array.async_read() for _ in range(8)])
threads = [threading.Thread(target=lambda: asyncio.run(read())) for _ in range(4)]
for thread in threads:
    thread.start()
"""
    for i in range(25):
        assert lines_at_the_end(code, tmp_path / str(i)) == []


@pytest.mark.skipif(sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info < (3, 14), reason="CPython 3.13t "
                    "never frees modules and functions once it has had two threads, and calls these finalizers last")
def test_use_in_a_finalizer_at_the_end_of_the_interpreter(tmp_path):
    """Its other threads are gone by then."""
    code = """
class Last:
    def __init__(self, array):
        self.array = array
    def __del__(self):
        self.array[:, 1] = 3
        print("finalizer", int(self.array[5, 1]))
last = Last(array)
array[...] = 2
"""
    assert lines_at_the_end(code, tmp_path) == ["finalizer 3"]


# What is waited for aside

def test_a_stopped_plan_does_not_wait_for_who_is_aside():
    """Nor does anybody who comes back go on with it."""
    gone, answer, came_back = threading.Event(), threading.Event(), []

    def work(main):
        if main:
            assert gone.wait(20)
            raise ValueError("stop")
        try:
            workers.aside(lambda: (gone.set(), answer.wait(20)))
            came_back.append("to go on")
        finally:
            came_back.append("at last")

    with pytest.raises(ValueError, match="stop"):
        workers.run(work, 2, lambda: None)
    assert came_back == []
    answer.set()
    while not came_back:
        time.sleep(0.001)
    assert came_back == ["at last"]


def test_a_fault_of_a_helper_is_not_held_up_by_who_is_aside():
    gone, answer, entered = threading.Event(), threading.Event(), threading.Event()
    roles = iter(["wait", "fail"])

    def work(main):
        if main:
            assert entered.wait(20)
        elif next(roles) == "wait":
            workers.aside(lambda: (gone.set(), answer.wait(20)))
        else:
            entered.set()
            assert gone.wait(20)
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        workers.run(work, 3, lambda: None)
    assert not answer.is_set()
    answer.set()


def test_what_is_aside_belongs_to_a_plan_that_goes_on():
    gone, done = threading.Event(), []

    def work(main):
        if main:
            assert gone.wait(20)
        else:
            done.append(workers.aside(lambda: (gone.set(), time.sleep(0.05), "value")[-1]))

    workers.run(work, 2, lambda: None)
    assert done == ["value"]


class ComesBackMeanwhile(list):
    """A list that is empty when it is asked; before the answer arrives, who is aside has come back."""

    asks = None

    def __bool__(self):
        found, asks = len(self) > 0, self.asks
        if not found and asks is not None:
            self.asks = None
            asks()
        return found


def test_who_comes_back_while_the_plan_is_closed_is_waited_for():
    """Two looks, at those inside and at those aside, would miss who goes from one to the other between them."""
    gone, answer, back, over = threading.Event(), threading.Event(), threading.Event(), []
    job = workers._Job(lambda main: None, lambda: None)
    job.inside = ComesBackMeanwhile()

    def helps(main):
        workers.aside(lambda: (gone.set(), answer.wait(0.3)))
        back.set()
        time.sleep(0.02)
        over.append(True)

    job.work = helps
    thread = threading.Thread(target=job.help)
    thread.start()
    assert gone.wait(20)
    job.inside.asks = lambda: (answer.set(), back.wait(20))
    job.close(False)
    assert over == [True]
    thread.join()


def test_aside_gives_and_raises_what_the_call_does():
    assert workers.aside(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        workers.aside(divmod, 7, 0)
    found = []
    thread = threading.Thread(target=lambda: found.append(workers.aside(threading.get_ident)))
    thread.start()
    thread.join()
    assert found == [thread.ident]


def test_plans_within_what_is_aside():
    totals = []

    def outer(main):
        def many():
            tasks = Tasks(50)
            workers.run(tasks, 3, tasks.cancel)
            return len(tasks.done)

        totals.append(workers.aside(many))

    workers.run(outer, 3, lambda: None)
    assert totals == [50] * len(totals)


INTERRUPTED = """
    import os, signal, threading, time
    from zcore import workers

    # Whoever runs the tests in the background has it ignored, and so have their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answer = threading.Event()

    def wait():
        # Right before the main thread waits, Python would see the signal only when there is an answer.
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        answer.wait(20)

    for call in (lambda: workers.aside(wait),
                 lambda: workers.run(lambda main: workers.aside(wait), 3, lambda: None)):
        try:
            call()
        except KeyboardInterrupt:
            assert not answer.is_set()
        else:
            raise SystemExit("not interrupted")
    answer.set()
"""


def test_the_main_thread_is_interrupted_while_it_waits():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(INTERRUPTED)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stderr


# Calls that are made later

def made(function):
    """Make a call later; return its Stop and a function that waits for (value, exception)."""
    outcome, over = [], threading.Event()

    def done(value, exception):
        outcome.append((value, exception))
        over.set()

    def result():
        assert over.wait(30)
        return outcome[0]

    return workers.later(function, done), result


def test_a_later_call_gives_and_raises_what_it_does():
    stop, result = made(lambda: threading.get_ident())
    value, exception = result()
    assert value not in (None, threading.get_ident()) and exception is None and not stop.stopped
    fault = KeyError("x")

    def fail():
        raise fault

    assert made(fail)[1]() == (None, fault)
    assert made(lambda: 5)[1]() == (5, None)


@pytest.mark.parametrize("ends", [False, True])
def test_a_thread_may_end_behind_a_call(monkeypatch, ends):
    """Without a GIL, nobody else can free what it has made. Another one goes on in its place."""
    begin, begun = workers._begin, []
    monkeypatch.setattr(workers, "_begin", lambda *args: begin(*args) or begun.append(args))
    monkeypatch.setattr(workers, "FREED_BY_ITS_THREAD", ends)
    monkeypatch.setattr(workers, "_later", type(workers._later)())
    monkeypatch.setattr(workers, "_callers", [])
    first = made(threading.current_thread)[1]()[0]
    end = time.monotonic() + 60
    while ends and len(begun) < 2 and time.monotonic() < end:
        time.sleep(0.001)
    second = made(threading.current_thread)[1]()[0]
    assert (first is second) == (not ends)
    assert len(workers._callers) == 1 and not workers._pending


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_later_call_that_is_stopped_leaves_its_plan(n_threads):
    entered = threading.Event()
    tasks = Tasks(1000, lambda task, main: entered.set() or time.sleep(0.01))
    stop, result = made(lambda: workers.run(tasks, n_threads, tasks.cancel))
    assert entered.wait(30)
    stop.stop()
    assert isinstance(result()[1], workers.StoppedError) and tasks.stopped and 0 < len(tasks.done) < 1000
    n_done = len(tasks.done)
    time.sleep(0.05)
    assert len(tasks.done) == n_done
    # What the thread does next is not stopped.
    assert made(lambda: workers.run(Tasks(3), 2, None))[1]() == (None, None)


def test_what_was_stopped_before_it_began_is_not_begun():
    stop = workers.Stop()
    stop.stop()
    tasks = Tasks(3)
    workers._thread.stop = stop
    try:
        for call in (lambda: workers.run(tasks, 2, tasks.cancel), lambda: workers.aside(tasks, True)):
            with pytest.raises(workers.StoppedError):
                call()
    finally:
        workers._thread.stop = None
    assert tasks.entered == []


@pytest.mark.parametrize("who", ["alone", "caller", "helper", "all"])
def test_a_later_call_that_is_stopped_does_not_wait_for_who_is_aside(who):
    """Neither the thread that makes the call, nor those that help it."""
    hang, entered, waiting = threading.Event(), threading.Event(), threading.Barrier(4 if who == "all" else 2)

    def wait():
        waiting.wait(30)
        hang.wait(30)

    def work(main):
        if who == "all" or main == (who == "caller"):
            entered.set()
            workers.aside(wait)
        else:
            entered.wait(30)

    helpers = {"caller": 1, "helper": 2, "all": 3}
    call = (lambda: workers.aside(wait)) if who == "alone" else (lambda: workers.run(work, helpers[who], lambda: None))
    stop, result = made(call)
    waiting.wait(30)
    time.sleep(0.02)
    started = time.monotonic()
    stop.stop()
    assert isinstance(result()[1], workers.StoppedError) and time.monotonic() - started < 5
    hang.set()


def test_a_stop_behind_the_end_does_nothing():
    tasks = Tasks(10)
    stop, result = made(lambda: workers.run(tasks, 2, tasks.cancel))
    assert result() == (None, None)
    stop.stop()
    assert not tasks.stopped and len(tasks.done) == 10


def test_threads_for_later_calls_that_cannot_be_had(monkeypatch):
    """Those that there are make the calls; without any the caller is told."""
    assert made(lambda: 1)[1]() == (1, None)
    monkeypatch.setattr(workers, "_begin", lambda *_: (_ for _ in ()).throw(RuntimeError("no more threads")))
    hang = threading.Event()
    calls = [made(hang.wait) for _ in range(len(workers._callers) + 1)]
    hang.set()
    assert all(result() == (True, None) for _, result in calls)
    monkeypatch.setattr(workers, "_callers", [])
    with pytest.raises(RuntimeError, match="no more threads"):
        made(lambda: 1)
    assert not workers._pending


FORKED = """
    import os, signal, threading, time
    import zcore
    from zcore import workers

    parent, pid, gate, inside = os.getpid(), None, threading.Event(), threading.Event()

    def fork(signum, frame):
        global pid
        pid = os.fork()
        if pid:
            status = os.waitpid(pid, 0)[1]
            gate.set()
            assert status == 0, status
        else:
            signal.alarm(20)
            time.sleep(0.3)      # longer than a wait with a time limit might take

    def work(main):
        if not main or KIND == "aside":
            inside.set()
            if os.getpid() == parent:
                gate.wait()
        else:
            inside.wait()
        return "done"

    class Items:
        def __iter__(self):
            return self

        def __next__(self):
            if threading.current_thread() is threading.main_thread() and not inside.is_set():
                return 1
            inside.set()
            gate.wait()
            raise StopIteration

    def do(item):
        inside.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.1)     # while the next item is waited for

    signal.signal(signal.SIGALRM, fork)
    signal.setitimer(signal.ITIMER_REAL, 0.1 if KIND != "each_next" else 0)
    if KIND == "aside":
        assert workers.aside(work, False) == "done"
    else:
        try:
            if KIND == "run":
                workers.run(work, 2, lambda: None)
            else:
                workers.each_next(do, Items(), 2)
            assert pid
        except zcore.errors.StoreError as error:
            assert not pid and "forked by a signal handler" in str(error)
    os._exit(0) if not pid else None
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kind", ["aside", "run", "each_next"])
def test_a_child_that_a_handler_forks_does_not_wait_for_threads_of_its_parent(kind):
    """It makes a call again, and is told of work that it lacks."""
    script = textwrap.dedent(FORKED).replace("KIND", repr(kind))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_a_handler_may_wait_for_a_later_call():
    """At any event of Python at which a signal may come while threads are started."""
    waited = []

    def wait_for_a_later_call(*_):
        over, tasks = threading.Event(), Tasks(3)
        workers.later(lambda: workers.run(tasks, len(workers._helpers) + 2, tasks.cancel), lambda *_: over.set())
        waited.append(over.wait(10))

    sys.setprofile(wait_for_a_later_call)
    try:
        workers.start(len(workers._helpers) + 1)
        workers.later(int, lambda *_: None)
    finally:
        sys.setprofile(None)
    assert len(waited) > 2 and all(waited)


def test_a_job_that_waits_in_the_queue_keeps_nothing_of_a_call_that_is_over():
    """A plan has files open and refers to the caller's memory."""
    class Work:
        def __call__(self, main):
            pass

    n, entered, go_on = max(1, len(workers._helpers)), threading.Semaphore(0), threading.Event()

    def wait(main):
        entered.release()
        go_on.wait(60)

    busy = threading.Thread(target=workers.run, args=(wait, n + 1, int))
    busy.start()
    try:
        for _ in range(n + 1):
            assert entered.acquire(timeout=60)
        work = Work()
        gone = weakref.ref(work)
        workers.run(work, 2, int)
        del work
        assert gone() is None
    finally:
        go_on.set()
        busy.join()


@pytest.mark.parametrize("n_threads", [1, 4])
def test_each_item_is_worked_on_once(n_threads):
    done = []
    workers.each(done.append, range(1000), n_threads)
    assert sorted(done) == [*range(1000)]


def test_the_first_failure_ends_the_work_on_items():
    done = []
    with pytest.raises(ZeroDivisionError):
        workers.each(lambda n: done.append(1 // (3 - n)), range(1000), 1)
    assert len(done) == 3


@pytest.mark.parametrize("n_threads", [1, 4])
def test_each_item_of_an_iterator_is_worked_on_once(n_threads):
    done = []
    workers.each_next(done.append, iter(range(1000)), n_threads)
    assert sorted(done) == [*range(1000)]
