"""Threads that help with a plan.

The thread that wants a plan done always works on it itself; threads of the pool only help. So a busy pool, a nested
read or a plan made while the interpreter shuts down costs speed, never progress. Threads start with the first plan
that can use them, not at import, and a forked child starts without any.

What a thread waits for somewhere else, an answer to a request, it does `aside`: a plan that has been stopped does not
wait for it.
"""
import os
from _queue import SimpleQueue
from _thread import RLock, _local, allocate_lock, get_ident

_thread = _local()   # `job`: that which this thread helps with

# Reentrant: a signal handler may read while the main thread is starting threads for another read.
_lock = RLock()
_jobs = SimpleQueue()
_n_threads = 0
_idle = []           # where threads wait that make a call for the main thread


class _Job:
    """One piece of work and who is in it.

    Without a lock: a signal handler may run in the middle of `close`, and wait there for what a thread inside has to
    come back to let go. Who comes in is counted first and looks then whether it is closed; who closes does so first
    and looks then for those inside.
    """

    __slots__ = ("work", "cancel", "inside", "aside", "closed", "abandoned", "left", "exception")

    def __init__(self, work, cancel):
        self.work = work
        self.cancel = cancel
        # As long as there are threads there; adding and taking away is one step each.
        self.inside, self.aside = [], []
        self.closed = self.abandoned = False
        self.left = SimpleQueue()      # something for each who may have been the last one
        self.exception = None

    def help(self):
        """Work on it from a thread of the pool, unless it is over."""
        self.inside.append(None)
        if self.closed:
            self._leave()
            return
        _thread.job = self
        try:
            self.work(False)
        except _AbandonedError:
            return
        except BaseException as exception:
            self.exception = exception
            self.abandoned = True
            self.cancel()
        finally:
            _thread.job = None
        self._leave()

    def _leave(self):
        self.inside.pop()
        if self.closed:
            self.left.put(None)

    def step_aside(self):
        """Leave, to come back; until then nothing of the caller's is touched."""
        self.aside.append(None)
        self._leave()

    def step_back(self):
        """Come back; raises _AbandonedError if there is nothing to come back to."""
        self.inside.append(None)
        if self.abandoned:
            self._leave()
            raise _AbandonedError
        self.aside.pop()

    def close(self, abandon):
        """Let nobody else in and wait for those inside: they write into the caller's memory.

        With `abandon` not for those who are aside, nor if a signal handler raises meanwhile.
        """
        interrupted = None
        while True:
            try:
                self.closed = True
                if abandon:
                    self.abandoned = True
                while self.inside or (self.aside and not self.abandoned):
                    self.left.get()
                break
            except BaseException as exception:
                # A signal handler raised. The work stops at its next task, and only then may we leave.
                interrupted = exception
                abandon = True
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
    failed = True
    outer, _thread.job = getattr(_thread, "job", None), None
    try:
        for _ in range(_start(n_threads - 1)):
            _jobs.put(job)
        work(True)
        failed = False
    except BaseException:
        cancel()
        raise
    finally:
        _thread.job = outer
        job.close(failed)
    if job.exception is not None:
        try:
            raise job.exception
        finally:
            # Its traceback leads here: without the reference back it goes as soon as it was dealt with.
            job.exception = None


class _AbandonedError(BaseException):
    """The job that a thread comes back to is over; not an Exception, so that nobody on its way takes it for a fault."""


def aside(function, *args):
    """Return ``function(*args)``, which waits for something elsewhere and touches nothing of the caller of a plan.

    A plan that is stopped does not wait for it. In the main thread signal handlers get their turn at once: the call is
    made by another thread, and left to itself if one raises.
    """
    job = getattr(_thread, "job", None)
    if job is None:
        import threading

        return _apart(function, args) if get_ident() == threading.main_thread().ident else function(*args)
    job.step_aside()
    _thread.job = None
    try:
        return function(*args)
    finally:
        _thread.job = job
        job.step_back()


class _Call:
    """A call that another thread makes."""

    __slots__ = ("function", "args", "done", "value", "exception")

    def __init__(self, function, args):
        self.function = function
        self.args = args
        self.done = allocate_lock()
        self.done.acquire()
        self.value = self.exception = None

    def make(self):
        try:
            self.value = self.function(*self.args)
        except BaseException as exception:
            self.exception = exception
        self.done.release()


def _apart(function, args):
    import threading

    call = _Call(function, args)
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        try:
            threading.Thread(target=_answer, args=(inbox,), name="zcore", daemon=True).start()
        except RuntimeError:
            # No more threads, or the interpreter is shutting down.
            return function(*args)
    inbox.put(call)
    call.done.acquire()
    if call.exception is not None:
        try:
            raise call.exception
        finally:
            del call
    return call.value


def _answer(inbox):
    while True:
        inbox.get().make()
        _idle.append(inbox)


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
    global _lock, _jobs, _n_threads, _idle
    _idle = []
    _lock = RLock()
    _jobs = SimpleQueue()
    _n_threads = 0


os.register_at_fork(after_in_child=_after_fork_in_child)
