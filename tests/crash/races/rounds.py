"""Rounds of calls that meet on one array: each begins with a new store, and is judged when all calls have ended."""
import itertools
import os
import shutil
import tempfile
from random import Random

import zcore
from tests.crash.races import team, verbs
from tests.crash.races.model import Call, explains, programs_in
from zcore.stores.keys import TEMPORARY

# So many nanoseconds later a call may begin than the others, so that each of them meets every part of them.
MAX_DELAYS = (0, 100_000, 1_000_000, 4_000_000)


class Arena:
    """Rounds in one directory in memory, or in stores in memory.

    Parameters
    ----------
    workers : {"processes", "threads"}
    where : {"directory", "confined", "memory"}
        The stores; "memory" is for threads.
    n_workers : int

    Attributes
    ----------
    n_rounds, n_overlaps : int
        Rounds, and those in which calls overlapped.
    """

    def __init__(self, workers="processes", where="directory", n_workers=2):
        self.where = where
        self.team = team.TEAMS[workers](n_workers)
        in_memory = os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK)
        self.folder = tempfile.mkdtemp(dir="/dev/shm" if in_memory else None, prefix="zcore-races-")
        self.n_rounds = self.n_overlaps = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.team.close()
        shutil.rmtree(self.folder)

    def store(self):
        if self.where == "memory":
            return zcore.MemoryStore()
        path = os.path.join(self.folder, str(self.n_rounds))
        return zcore.DirectoryStore(path, confined=True) if self.where == "confined" else path

    def round(self, format, chosen, seed):
        """Let calls of the chosen verbs meet, and judge them; AssertionError says what is wrong."""
        rng = Random(seed)
        store = self.store()
        before = verbs.begin(store, format, "create" not in chosen or rng.random() < 0.5)
        tasks = [(verb, verbs.draw(verb, format, me, rng), me, rng.random() < 0.7)
                 for me, verb in enumerate(chosen, 1)]
        largest = rng.choice(MAX_DELAYS)
        delays = [0] + [rng.randrange(largest + 1) if rng.random() < 0.7 else 0 for _ in tasks]
        results = self.team.run(store, format, tasks, delays)
        calls = [Call(task[0], task[1], *result, task[3]) for task, result in zip(tasks, results, strict=True)]
        self.n_rounds += 1
        self.n_overlaps += max(call.start for call in calls) < min(call.end for call in calls)
        try:
            after = verbs.found(store)
            assert explains(before, calls, after, (), programs_in(self.where)), f"no order explains {sorted(after)}"
            if isinstance(store, str):
                left = [name for _, folders, files in os.walk(store) for name in (*folders, *files)
                        if name.startswith(TEMPORARY)]
                assert not left, left
            verbs.remains(store, format)
        except Exception as error:
            shown = "\n".join(map(str, calls))
            raise AssertionError(f"{format}, {' and '.join(chosen)}, seed {seed}: {error!r:.3000}\nbefore "
                                 f"{sorted(before)}\n{shown}") from error
        if isinstance(store, str):
            shutil.rmtree(store)


def pairs(format):
    """Return all pairs of verbs of a format, also of each with itself."""
    return list(itertools.combinations_with_replacement(verbs.verbs(format), 2))
