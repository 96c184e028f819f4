"""Tasks of a plan put together where a store is best asked for their objects together: see `Store.batches`."""
from _thread import allocate_lock  # of threading, without its import time

# Tasks of which one looks whether their objects lie side by side.
MAX_GATHERED = 1 << 16


class Gathered:
    """Tasks whose objects are read together, where the store has any to put together."""

    def __init__(self, store, prefix, plan, take, limit):
        self._store = store
        self._prefix = prefix
        self._plan = plan
        self._take = take
        self._limit = limit
        self._lock = allocate_lock()
        self._pending = []
        self.helps = store.n_requests > 0 and store.batches((), None) is not None

    def take(self):
        """Return tasks and what reads their objects, or None when none is left."""
        with self._lock:
            if not self._pending:
                tasks = self._take(MAX_GATHERED)
                keys = [self._prefix + self._plan.task(task)[0] for task in tasks]
                # Taken from the end: those that a store has put in front are read first.
                self._pending = [([tasks[i] for i in batch.numbers], batch.load)
                                 for batch in reversed(self._store.batches(keys, self._limit))]
            return self._pending.pop() if self._pending and not self._plan.stopped else None
