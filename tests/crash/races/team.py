"""Workers that start at the same moment: forked processes, or threads of this process."""
import contextlib
import faulthandler
import mmap
import multiprocessing
import os
import tempfile
import threading
import time

from tests.crash.races import verbs

# A worker that takes longer hangs.
MAX_SECONDS = 60


def _run(store, format, task, wait):
    """Carry one task out once `wait` returns, and return (start, end, outcome)."""
    verb, argument, me, is_early = task
    handle = verbs.prepare(store, verb, is_early)
    wait(me)
    start = time.monotonic_ns()
    outcome = verbs.perform(store, format, verb, argument, me, handle)
    return start, time.monotonic_ns(), outcome


class Processes:
    """Workers that are started once and then take a task in each round."""

    def __init__(self, n_workers):
        # Not forked: the process that judges may have threads.
        context = multiprocessing.get_context("spawn")
        with tempfile.NamedTemporaryFile(delete=False) as file:
            file.write(bytes(8))
        self.shared = file.name
        self.go = go_of(self.shared)
        self.ends, self.workers = [], []
        for _ in range(n_workers):
            here, there = context.Pipe()
            worker = context.Process(target=work, args=(there, self.shared), daemon=True)
            worker.start()
            there.close()
            self.ends.append(here)
            self.workers.append(worker)

    def run(self, store, format, tasks, delays):
        """Return (start, end, outcome) of each task."""
        ends = self.ends[:len(tasks)]
        self.go[0] = 0
        for end, task in zip(ends, tasks, strict=True):
            end.send((store, format, task, delays))
        for end in ends:
            assert self._received(end) == "ready"
        self.go[0] = time.monotonic_ns()
        return [self._received(end) for end in ends]

    def _received(self, end):
        assert end.poll(MAX_SECONDS + 10), "a worker hangs"
        return end.recv()

    def close(self):
        for end in self.ends:
            end.close()
        for worker in self.workers:
            worker.join(5)
            worker.kill()
            worker.join()
        os.unlink(self.shared)


def go_of(path):
    """Return shared memory of one number: the moment at which all workers begin, or 0."""
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8)).cast("q")


def work(end, shared):
    """Take tasks until the judge has gone."""
    go, parent = go_of(shared), os.getppid()

    def wait(me):
        end.send("ready")
        while not go[0]:
            os.sched_yield()
            if os.getppid() != parent:
                os._exit(1)
        while time.monotonic_ns() < go[0] + delays[me]:
            pass

    with contextlib.suppress(EOFError, ConnectionResetError):
        while True:
            store, format, task, delays = end.recv()
            faulthandler.dump_traceback_later(MAX_SECONDS, exit=True)
            found = _run(store, format, task, wait)
            faulthandler.cancel_dump_traceback_later()
            end.send(found)


class Threads:
    """Workers in threads, with one store that they share."""

    def __init__(self, n_workers):
        pass

    def run(self, store, format, tasks, delays):
        results = [None] * len(tasks)
        barrier = threading.Barrier(len(tasks))

        def wait(me):
            barrier.wait(MAX_SECONDS)
            end = time.monotonic_ns() + delays[me]
            while time.monotonic_ns() < end:
                pass

        def work(i):
            try:
                results[i] = _run(store, format, tasks[i], wait)
            except BaseException as error:
                results[i] = error

        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(tasks))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(MAX_SECONDS)
            assert not thread.is_alive(), "a worker hangs"
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def close(self):
        pass


TEAMS = {"processes": Processes, "threads": Threads}
