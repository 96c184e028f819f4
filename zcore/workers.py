"""Threads that help with a plan.

The thread that wants a plan done always works on it itself; threads of the pool only help. So a busy pool, a nested
read or a plan made while the interpreter shuts down costs speed, never progress. Threads start with the first plan
that can use them, not at import, and a forked child starts without any.
"""
import os
from _queue import SimpleQueue
from _thread import RLock, allocate_lock

# Reentrant: a signal handler may read while the main thread is starting threads for another read.
_lock = RLock()
_jobs = SimpleQueue()
_n_threads = 0


class _Job:
    """One piece of work and who is in it."""

    __slots__ = ("work", "cancel", "lock", "n_inside", "closed", "left", "exception")

    def __init__(self, work, cancel):
        self.work = work
        self.cancel = cancel
        self.lock = allocate_lock()
        self.n_inside = 0
        self.closed = False
        self.left = allocate_lock()
        self.left.acquire()
        self.exception = None

    def help(self):
        """Work on it from a thread of the pool, unless it is over."""
        with self.lock:
            if self.closed:
                return
            self.n_inside += 1
        try:
            self.work(False)
        except BaseException as exception:
            self.exception = exception
            self.cancel()
        with self.lock:
            self.n_inside -= 1
            if self.closed and self.n_inside == 0:
                self.left.release()

    def close(self):
        """Let nobody else in and wait for those inside: they write into the caller's memory."""
        interrupted = None
        while True:
            try:
                with self.lock:
                    self.closed = True
                    waiting = self.n_inside > 0
                if waiting:
                    self.left.acquire()
                break
            except BaseException as exception:
                # A signal handler raised. The work stops at its next task, and only then may we leave.
                interrupted = exception
                self.cancel()
        if interrupted is not None:
            try:
                raise interrupted
            finally:
                del interrupted


def run(work, n_threads, cancel):
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
        Whatever `work` or a signal handler raised; all threads have left `work` by then.
    """
    if n_threads <= 1:
        work(True)
        return
    job = _Job(work, cancel)
    try:
        for _ in range(_start(n_threads - 1)):
            _jobs.put(job)
        work(True)
    except BaseException:
        cancel()
        raise
    finally:
        job.close()
    if job.exception is not None:
        try:
            raise job.exception
        finally:
            # Its traceback leads here: without the reference back it goes as soon as it was dealt with.
            job.exception = None


def _start(n_helpers):
    """Have `n_helpers` threads, or as many as can be had; returns how many of these there are."""
    global _n_threads
    while _n_threads < n_helpers:
        with _lock:
            if _n_threads >= n_helpers:
                break
            try:
                # Costs more than the rest of this module, and a process that reads single chunks never needs it.
                import threading

                threading.Thread(target=_serve, args=(_jobs,), name="zcore", daemon=True).start()
            except (RuntimeError, ImportError):
                # No more threads, or the interpreter is shutting down: the caller works with those there are.
                break
            _n_threads += 1
    return min(_n_threads, n_helpers)


def _serve(jobs):
    while True:
        jobs.get().help()


def _after_fork_in_child():
    global _lock, _jobs, _n_threads
    _lock = RLock()
    _jobs = SimpleQueue()
    _n_threads = 0


os.register_at_fork(after_in_child=_after_fork_in_child)
