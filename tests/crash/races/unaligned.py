"""Elements that share chunks, each with one writer: none is lost, whichever processes and threads write the others.

Each worker owns every n-th element of an array, so each chunk has elements of all workers. It writes one element after
the other, whose value is a number that only grows, and looks at its elements before it writes them again.
"""
import contextlib
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from random import Random

import numpy as np

import zcore
from tests.crash.command import main
from tests.crash.races import verbs

N_PROCESSES, N_THREADS = 2, 2
N_WORKERS = N_PROCESSES * N_THREADS
LENGTH = 64


def write(path, me, n_writes, deadline, seed, last):
    """Write elements one by one; `last` gets the last value of each. Returns how often one was found lost."""
    array, rng, n_lost = zcore.open_array(path, "r+", path="x"), Random(seed), 0
    for i in range(1, n_writes + 1):
        at = me + N_WORKERS * rng.randrange(LENGTH // N_WORKERS)
        if i % 16 == 0:
            n_lost += array[at].item() != last[at]
        array[at] = last[at] = i
        if i % 64 == 0 and time.monotonic() > deadline:
            break
    return i, n_lost


def work(path, first, n_writes, deadline, seed, end):
    """Run the threads of one process, and send what they found."""
    last, results = [0] * LENGTH, []
    threads = [threading.Thread(target=lambda me: results.append(write(path, me, n_writes, deadline, seed + me, last)),
                                args=(first + N_PROCESSES * i,)) for i in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    end.send((last, results))


def run(format, n_writes, seconds=float("inf"), seed=0):
    """Write that many elements, or as many as there is time for; return (written, lost).

    Parameters
    ----------
    format : str
        One of `verbs.FORMATS`.
    n_writes : int
        Of all workers.
    seconds : float
    seed : int
    """
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None, prefix="zcore-races-")
    context, ends, processes = multiprocessing.get_context("spawn"), [], []
    try:
        zcore.create_array(folder, name="x", shape=LENGTH, dtype="i4", fill_value=0, **verbs.keywords(format))
        for first in range(N_PROCESSES):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(
                folder, first, n_writes // N_WORKERS, time.monotonic() + seconds, seed, there))
            process.start()
            there.close()
            ends.append(here)
            processes.append(process)
        expected, n_written, n_lost = np.zeros(LENGTH, "i4"), 0, 0
        for end in ends:
            last, results = end.recv()
            assert len(results) == N_THREADS, "a thread has failed"
            expected = np.maximum(expected, last)
            n_written += sum(n for n, _ in results)
            n_lost += sum(n for _, n in results)
        found = zcore.open_array(folder, path="x")[...]
        return n_written, n_lost + int((found != expected).sum())
    finally:
        for process in processes:
            process.join()
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(folder)


def rounds(deadline, seed):
    """Yield (written, lost) until there is no more time."""
    while time.monotonic() < deadline:
        for format in verbs.FORMATS:
            left = deadline - time.monotonic()
            if left > 0:
                seed += N_WORKERS
                yield run(format, 100_000, min(left, 30), seed)


if __name__ == "__main__":
    main("races, unaligned writers", "rounds", rounds)
