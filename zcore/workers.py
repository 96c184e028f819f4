"""Threads that help with a plan.

The thread that wants a plan done always works on it itself; threads of the pool only help. So a busy pool, a nested
read or a plan made while the interpreter shuts down costs speed, never progress. Threads start with the first plan
that can use them, not at import, and a forked child starts without any.

What a thread waits for somewhere else, an answer to a request, it does `aside`: a plan that has been stopped does not
wait for it.

A call that should not hold up its caller is made `later`, by a thread of another pool, and can be stopped from outside.

No lock is held where threads are started: a signal handler that interrupts that may wait for a thread that starts some.

A signal handler may fork while the main thread waits for others here. They are not in the child. So it makes the call
that it waits for again, or raises a StoreError if a plan lacks their part.
"""
from __future__ import annotations

import atexit
import os
import sys
from _queue import SimpleQueue
from _thread import _local, allocate_lock, get_ident, start_new_thread
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, Protocol, TypeVar

    _Result = TypeVar("_Result")

    class _Reached(Protocol):
        def interrupt(self) -> None: ...

MAX_LATER = 32       # threads that make calls later; further calls wait for one
END_SECONDS = 2      # that the end of the program waits for what threads are doing
# Without a GIL, what a thread has made is freed by that thread, or after its end: while it waits, nothing is.
FREED_BY_ITS_THREAD = "t" in getattr(sys, "abiflags", "")


class _Thread(_local):
    """What a thread is in: the job that it helps with, the `Stop` of the call that it makes."""

    job: _Job | None = None
    stop: Stop | None = None


_thread = _Thread()
# In these lists adding and taking away is one step each.
_jobs = SimpleQueue()
_helpers = []        # an entry per thread that helps
_idle = []           # where threads wait that make a call for another thread, which may leave it
_later = SimpleQueue()
_callers = []        # an entry per thread that makes these calls
_pending = []        # an entry per call that is not over
_n_forks = 0         # between the first process and this one
_pid = os.getpid()
_waited_at = []      # queues at which threads wait for others; in a child something comes at once
# (handle, queue) of each thread that may not have ended; None where nobody waits for their ends
_begun = [] if FREED_BY_ITS_THREAD else None


class _Job:
    """One piece of work and the threads in it.

    Without a lock: a signal handler may run in the middle of `close`, and wait there for what a thread inside has to
    come back to let go. A thread that comes in is counted first and looks then whether it is closed; the thread that
    closes does so first and looks then for those inside. It looks at one list only: with two, it would miss a thread
    that goes from one to the other meanwhile.
    """

    __slots__ = ("work", "cancel", "here", "inside", "closed", "abandoned", "left", "exception",
                 "n_forks", "lacks")

    def __init__(self, work, cancel):
        self.work = work
        self.cancel = cancel
        # One entry per thread; adding and taking away is one step each. Who is here but not inside is aside.
        self.here, self.inside = [], []
        self.closed = self.abandoned = False
        self.left = SimpleQueue()      # something for each thread that may have been the last one
        self.exception = None
        self.n_forks = _n_forks
        self.lacks = False             # whether this is a child without threads that were in it

    def help(self):
        """Work on it from a thread of the pool, unless it is over; return whether this one has failed."""
        self.here.append(None)
        self.inside.append(None)
        if self.closed:
            self._leave()
            return False
        failed = False
        _thread.job = self
        try:
            self.work(False)
        except _AbandonedError:
            return False
        except BaseException as exception:
            if self.exception is None:     # else another one has failed first, and has stopped this one
                self.exception = exception
            failed = self.abandoned = True
            self.cancel()
        finally:
            _thread.job = None
        self._leave()
        return failed

    def interrupt(self):
        """End it soon, from a thread that is not in it; what is aside is not waited for."""
        self.abandoned = True
        if (cancel := self.cancel) is not None:
            cancel()
        self.left.put(None)

    def _leave(self):
        self.inside.pop()
        self.here.pop()
        if self.closed:
            self.left.put(None)

    def step_aside(self):
        """Leave, to come back; until then nothing of the caller's is touched."""
        self.inside.pop()
        if self.closed:
            self.left.put(None)

    def step_back(self):
        """Come back; raises _AbandonedError if there is nothing to come back to."""
        self.inside.append(None)
        if self.abandoned:
            self._leave()
            raise _AbandonedError

    def close(self, abandon):
        """Let no other thread in and wait for those inside: they write into the caller's memory.

        With `abandon`, do not wait for the threads that are aside. If a signal handler raises, it is called again.
        """
        self.closed = True
        if abandon:
            self.abandoned = True
        while not self.lacks and (self.inside if self.abandoned else self.here):
            self.lacks = not _came(self.left, self.n_forks)
        # It may wait in the queue until a thread is free. What it worked on, files and the caller's memory, must not.
        self.work = self.cancel = None


def run(work: Callable[[bool], object], n_threads: int, cancel: Callable[[], object]) -> None:
    """Run `work` in the calling thread and in up to ``n_threads - 1`` others.

    Parameters
    ----------
    work : callable
        ``work(main)``, entered once by each thread; returns when there is nothing left to do. `main` is true for the
        calling thread.
    n_threads : int
        With the calling one.
    cancel : callable
        Makes every thread return from `work` soon.

    Raises
    ------
    BaseException
        Whatever `work` or a signal handler raised, or StoppedError; all threads have left `work` by then.
    """
    stop = _thread.stop
    if stop is not None:
        with stop.reaching(job := _Job(work, cancel)):
            _run(job, n_threads)
    elif n_threads <= 1:
        work(True)
    else:
        _run(_Job(work, cancel), n_threads)


def each(do: Callable[[Any], object], items: Sequence[Any], n_threads: int) -> None:
    """Call `do` with each of the items, in up to `n_threads` threads; the first failure ends it."""
    each_next(do, iter(items), min(len(items), n_threads))


def each_next(do: Callable[[Any], object], items: Iterator[Any], n_threads: int) -> None:
    """Do what `each` does with the items of an iterator. None is no item."""
    lock, n_forks = allocate_lock(), _n_forks
    cancelled = []

    def work(_):
        while True:
            while not lock.acquire(timeout=1):
                if n_forks != _n_forks:
                    return     # a child, and the thread that had it stayed behind
            try:
                item = None if cancelled else next(items, None)
            finally:
                lock.release()
            if item is None:
                return
            do(item)

    run(work, n_threads, lambda: cancelled.append(True))


def _run(job, n_threads):
    failed = True
    outer, _thread.job = _thread.job, None
    try:
        for _ in range(start(n_threads - 1)):
            _jobs.put(job)
        job.work(True)
        failed = False
    except BaseException as exception:
        job.cancel()
        if job.exception is None or not isinstance(exception, Exception):
            raise
        # Another thread has failed first, and has stopped this one.
    finally:
        _thread.job, interrupted = outer, None
        while job.work is not None:
            try:
                job.close(failed)
            except BaseException as exception:
                # A signal handler raised, perhaps at once. The work stops at its next task, and then we may leave.
                interrupted, failed = exception, True
                if (cancel := job.cancel) is not None:
                    cancel()
        if interrupted is not None:
            try:
                raise interrupted
            finally:
                del interrupted
    if job.exception is not None:
        try:
            raise job.exception
        finally:
            # Its traceback leads here: without the reference back it goes as soon as it was dealt with.
            job.exception = None
    if job.lacks:
        from zcore.errors import FORKED, StoreError

        raise StoreError(FORKED)


def _came(queue, n_forks):
    """Wait for what another thread puts into a queue; return False in a child without it, forked since `n_forks`."""
    _waited_at.append(queue)
    try:
        if n_forks == _n_forks:
            # Without a time limit: if that passes in a signal handler, some versions of Python wait for ever.
            queue.get()
    finally:
        _waited_at.remove(queue)
    return n_forks == _n_forks


class _AbandonedError(BaseException):
    """The job that a thread comes back to is over; not an Exception, so that no handler takes it for a fault."""


def aside(function: Callable[..., _Result], *args: Any) -> _Result:
    """Return ``function(*args)``, which waits for something elsewhere and touches nothing of the caller of a plan.

    A plan that is stopped does not wait for it. In the main thread signal handlers get their turn at once: the call is
    made by another thread, and left to itself if one raises. So it is in a thread that can be stopped.
    """
    job = _thread.job
    if job is None:
        import threading

        stop = _thread.stop
        if stop is None and get_ident() != threading.main_thread().ident:
            return function(*args)
        if stop is not None and stop.stopped:
            raise StoppedError
        return Call(function, args).wait()
    job.step_aside()
    _thread.job = None
    try:
        return function(*args)
    finally:
        _thread.job = job
        job.step_back()


@contextmanager
def to_the_end() -> Iterator[None]:
    """Return a context manager in which this thread never leaves the plan that it helps with, which waits for it."""
    job, _thread.job = _thread.job, None
    try:
        yield
    finally:
        _thread.job = job


class Call:
    """A call that another thread makes, from now on."""

    __slots__ = ("_function", "_args", "_done", "_value", "_exception", "_n_forks")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...] = ()) -> None:
        self._function = function
        self._args = args
        self._begin()

    def _begin(self):
        self._done = SimpleQueue()
        self._value = self._exception = None
        self._n_forks = _n_forks
        try:
            inbox = _idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            try:
                _begin(_answer, inbox)
            except RuntimeError:
                # No more threads, or the interpreter is shutting down.
                self.make()
                return
        inbox.put(self)

    def make(self) -> None:
        """Call the function, in the other thread."""
        try:
            self._value = self._function(*self._args)
        except BaseException as exception:
            self._exception = exception
        self._done.put(None)

    def wait(self) -> Any:
        """Return what the function returns, or raise what it raises; once. A thread can be stopped meanwhile."""
        stop = _thread.stop
        with nullcontext() if stop is None else stop.reaching(self):
            while not _came(self._done, self._n_forks):
                self._begin()     # in a child without the other thread
        if self._exception is not None:
            try:
                raise self._exception
            finally:
                self._exception = None     # its traceback leads here
        return self._value

    def interrupt(self) -> None:
        """Let the one that waits go."""
        self._done.put(None)


def _answer(inbox):
    while (call := inbox.get()) is not None:
        call.make()
        call = None
        _idle.append(inbox)


class StoppedError(BaseException):
    """A call that is made later was stopped; not an Exception, so that no handler takes it for a fault."""


class Stop:
    """Stops a call from outside of its thread: see `later`.

    Attributes
    ----------
    stopped : bool
    """

    __slots__ = ("stopped", "_reached")

    def __init__(self) -> None:
        self.stopped: bool = False
        self._reached = []     # what the thread waits for or works on, the innermost last

    def stop(self) -> None:
        """Have the call end soon; it raises StoppedError then."""
        # Set before what is reached is looked at; `reaching` looks in the other order.
        self.stopped = True
        for one in list(self._reached):
            one.interrupt()

    @contextmanager
    def reaching(self, one: _Reached) -> Iterator[None]:
        """Return a context manager in which `one.interrupt` is called by `stop`, or at once if that has been called.

        Raises : StoppedError at the end, if it was stopped.
        """
        self._reached.append(one)
        try:
            if self.stopped:
                raise StoppedError
            yield
        finally:
            self._reached.remove(one)
            if self.stopped:
                raise StoppedError


def later(function: Callable[[], _Result], done: Callable[[_Result | None, BaseException | None], object]) -> Stop:
    """Have another thread call ``function()``; returns the `Stop` of the call.

    ``done(value, exception)`` is called there when all of the call has ended, with what it has returned or
    raised: StoppedError if it was stopped.
    """
    if _pid != os.getpid():
        _after_fork_in_child()     # of a fork that Python was not told of
    stop = Stop()
    _pending.append(None)
    if len(_callers) < min(len(_pending), MAX_LATER):
        try:
            _begin_one(_callers, _call_later, _later)
        except RuntimeError:
            # No more threads, or the interpreter is shutting down.
            if not _callers:
                del _pending[:1]
                raise
    _later.put((function, stop, done))
    return stop


def _call_later(calls):
    while (call := calls.get()) is not None:
        function, stop, done = call
        call = value = exception = None
        _thread.stop = stop
        try:
            if stop.stopped:
                raise StoppedError
            value = function()
        except BaseException as raised:
            exception = raised
        _thread.stop = None
        del _pending[:1]     # a child of a fork in the call has none
        done(value, exception)
        # Nothing of the call is kept until the next one.
        function = stop = done = value = exception = None
        if FREED_BY_ITS_THREAD and calls.empty() and _succeeded(_call_later, calls):
            return


def start(n_helpers: int) -> int:
    """Have `n_helpers` threads, or as many as can be had; returns how many of these there are."""
    while len(_helpers) < n_helpers:
        try:
            _begin_one(_helpers, _serve, _jobs)
        except (RuntimeError, ImportError):
            # No more threads, or the interpreter is shutting down: the caller works with those there are.
            break
    return min(len(_helpers), n_helpers)


def _begin_one(threads, function, queue):
    """Start a thread that has an entry in the list `threads`."""
    try:
        # First: others that ask meanwhile count it.
        threads.append(None)
        _begin(function, queue)
    except BaseException:
        threads.pop()
        raise


def _begin(function, queue):
    """Start a thread that does what comes in `queue`, until that is None.

    `threading.Thread` would wait for it, in a child that is forked meanwhile without end.
    """
    # Costs more than the rest of this module, and a process that reads single chunks never needs it.
    import threading

    if _begun is None:
        start_new_thread(_named, (threading, function, queue))
        return
    from _thread import start_joinable_thread

    for one in [one for one in list(_begun) if one[0].is_done()]:
        with suppress(ValueError):     # another thread was faster
            _begun.remove(one)
    _begun.append((start_joinable_thread(lambda: _named(threading, function, queue)), queue))


def _named(threading, function, queue):
    threading.current_thread().name = "zcore"
    function(queue)


def _serve(jobs):
    while (job := jobs.get()) is not None:
        failed = job.help()
        job = None
        if failed and FREED_BY_ITS_THREAD and _succeeded(_serve, jobs):
            return


def _succeeded(function, queue):
    """Return whether another thread goes on in place of this one, which may end."""
    try:
        _begin(function, queue)
    except (RuntimeError, ImportError):
        # No more threads, or the interpreter is shutting down.
        return False
    return True


def _after_fork_in_child():
    global _jobs, _helpers, _idle, _later, _callers, _pending, _n_forks, _pid
    _pid = os.getpid()
    _n_forks += 1
    _jobs, _helpers, _idle = SimpleQueue(), [], []
    _later, _callers, _pending = SimpleQueue(), [], []
    if _begun:
        _begun.clear()
    for queue in list(_waited_at):
        queue.put(None)


def _end():
    """End the threads before Python does.

    Python stops a thread that still runs then wherever it is. Without a GIL that may be where it has just got the lock
    of an object, and Python would wait for that lock without end.
    """
    global _jobs, _helpers, _later, _callers
    from time import monotonic

    # Work that another function at the end of the program asks for gets new threads.
    _jobs, _later = SimpleQueue(), SimpleQueue()
    _helpers, _callers = [], []
    _idle.clear()
    for _, queue in list(_begun):
        queue.put(None)
    end = monotonic() + END_SECONDS
    while _begun:
        _begun.pop()[0].join(max(0, end - monotonic()))


os.register_at_fork(after_in_child=_after_fork_in_child)
if _begun is not None:
    atexit.register(_end)
