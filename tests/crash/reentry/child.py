"""Attempts in a process of their own, which ends where a call hangs.

``child CONTEXT STORE FORMAT SEED N OUTER INNER…``
"""
import faulthandler
import json
import os
import shutil
import sys
import tempfile
import warnings
from functools import cached_property
from random import Random

import numpy as np

import zcore
from tests.crash.races import verbs
from tests.crash.races.model import REFUSED, explains, programs_in
from tests.crash.reentry.contexts import CONTEXTS, MAX_SECONDS, REFUSABLE
from zcore.stores.keys import TEMPORARY

STORES = ("directory", "confined", "memory")


class Places:
    """Stores for one attempt each."""

    def __init__(self, kind, format, folder=None):
        self.kind = kind
        self.format = format
        if folder is not None:
            self.folder = folder
        self.n = 0
        self.keeps = False      # what earlier attempts have left

    @cached_property
    def folder(self):
        return tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None, prefix="zcore-reentry-")

    def next(self):
        if self.n and not self.keeps and self.kind != "memory":
            shutil.rmtree(f"{self.folder}/{self.n}", ignore_errors=True)
        self.n += 1
        path = f"{self.folder}/{self.n}"
        return (zcore.MemoryStore() if self.kind == "memory"
                else zcore.DirectoryStore(path, confined=self.kind == "confined"))

    def task(self, verb, me, rng):
        if verb in verbs.OF_ASDF:
            path = f"{self.folder}/{me}.asdf"
            zcore.asdf.write(path, {"n": [1, 2, 3]} if verb == "asdf write" else {"n": np.array([1, 2, 3])})
            return self.format, verb, path, me
        return self.format, verb, verbs.draw(verb, self.format, me, rng), me


def attempt(context, places, outer, inner, k, rng):
    """Return whether there was one; AssertionError if it was not right."""
    # The traceback of a hang goes to the standard error, and the process ends.
    faulthandler.dump_traceback_later(MAX_SECONDS + 10, exit=True)
    store = places.next()
    before = verbs.begin(store, places.format, "create" not in (outer, inner) or rng.random() < 0.5)
    calls = CONTEXTS[context](store, places.task(outer, 1, rng), places.task(inner, 2, rng), k)
    if calls is None:
        return False
    try:
        after = verbs.found(store)
        refusable = range(len(calls)) if context in REFUSABLE else ()
        assert explains(before, calls, after, refusable, programs_in(places.kind)), f"no order explains {sorted(after)}"
        if places.kind != "memory" and any(call.verb.startswith("copy") and call.outcome == REFUSED for call in calls):
            # A copy that ends in a StoreError keeps its state, so that the same copy goes on.
            for name in os.listdir(store.path):
                if name.startswith(TEMPORARY + "copy."):
                    shutil.rmtree(f"{store.path}/{name}")
        verbs.remains(store, places.format)
    except Exception as error:
        shown = "\n".join(map(str, calls))
        raise AssertionError(f"{context}, {places.kind}, {places.format}: {inner} at event {k} of {outer}: "
                             f"{error!r:.2000}\n{shown}") from error
    return True


def main(context, kind, format, seed, n, outer, *inners):
    """Make n attempts for each inner call, at random events; print how many were made, and what was wrong."""
    warnings.simplefilter("ignore", DeprecationWarning)      # Python 3.12 warns of every fork with threads
    rng, found, n_tried = Random(seed), [], 0
    places = Places(kind, format, os.environ.get("ZCORE_TEST_FOLDER"))
    try:
        # What is imported at the first use would be other events each time.
        for inner in inners:
            attempt(context, places, outer, inner, 1 << 30, rng)
        for inner in inners:
            most = 3000
            for _ in range(n):
                k = rng.randrange(most) if context not in ("__array__", "task") else 0
                try:
                    while not (is_tried := attempt(context, places, outer, inner, k, rng)) and k:
                        # The call has fewer events.
                        most, k = max(k, 1), rng.randrange(k)
                    n_tried += is_tried
                except AssertionError as error:
                    n_tried += 1
                    found.append(str(error))
    finally:
        shutil.rmtree(places.folder, ignore_errors=True)
    print(json.dumps([n_tried, found]))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]), *sys.argv[6:])
