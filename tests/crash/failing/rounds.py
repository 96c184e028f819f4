"""Run in a process of its own with `failing.c` preloaded: a call, again and again, each time with another failure.

`rounds.py library folder [[verb, kind, error], …]` prints a line of JSON for each of them: how many failures there
were, and what came that should not have. After each failure this is looked at:

- The error is one of zcore, and names a path or a key. Or there is none, and the call has done all of its work.
- Another process sees the old state or the new one; where a call changes several objects, each of them is old or new.
- No file has a name that only the middle of the call knows, and no temporary file is left, unless its removal failed.
- No descriptor is open, and there are no more threads.
- The same call by the same handle succeeds, and leads to the new state.
"""
import ctypes
import errno
import gc
import json
import os
import shutil
import sys
import time

import numpy as np

import zcore
from tests.crash.failing.faulty import FAULTY
from tests.crash.failing.state import Observer, same, store_state
from tests.crash.failing.verbs import MENDED, UNSAFE, VERBS
from tests.descriptors import descriptors
from zcore.stores.directory import lock_file
from zcore.tools import stored

# As in failing.c. AGAIN and SIGNAL are calls that a signal has ended.
KINDS = {"CALLS": 0, "MEMORY": 1, "SHORT": 2, "GONE": 3, "FULL": 4, "HALF": 5, "AGAIN": 0, "SIGNAL": 0}
# No error comes of these.
QUIET = ("SHORT", "HALF", "AGAIN")
# Calls that a signal may end on any file system, by POSIX. They are made again. Others end in an error where Python
# makes them, and are made again where the kernel does (AGAIN).
MADE_AGAIN = ("open", "read", "write", "sync", "lock", "truncate", "allocate", "copy")


class Library:
    """The library that is preloaded."""

    def __init__(self, path):
        self._library = ctypes.CDLL(path)
        self._library.arm.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_int]
        self._library.disarm.restype = ctypes.c_long
        self.classes = ctypes.c_char_p.in_dll(self._library, "classes").value.decode().split()
        self._counts = (ctypes.c_long * len(self.classes)).in_dll(self._library, "counts")

    def run(self, function, kind, n, number=0):
        """Call a function while the n-th call of the system fails; return its result, its error, and how many came."""
        result = error = None
        self._library.arm(KINDS[kind], n, number)
        try:
            result = function()
        except Exception as exc:
            error = exc
        return result, error, self._library.disarm()

    @property
    def failed(self):
        """The class of the call that has failed, or None."""
        i = self._library.failed_class()
        return self.classes[i] if i >= 0 else None

    @property
    def counts(self):
        return dict(zip(self.classes, self._counts, strict=True))


class Clock:
    """A clock that moves only when a copy pauses. So the copy of a new file need not wait.

    Without it each copy waits, and looks twice or once at its source, as the machine is idle or busy.
    """

    def __init__(self):
        stored.time_ns, stored.sleep = lambda: self.now, self.sleep
        self.start()

    def start(self):
        self.now = time.time_ns()

    def sleep(self, seconds):
        self.now += int(seconds * 1e9)


class Rounds:
    """The rounds of one verb with one kind of failure."""

    def __init__(self, library, observer, base, name, kind, error, verb):
        self.library, self.observer, self.place, self.pristine = library, observer, base + "/place", base + "/pristine"
        self.name, self.kind, self.verb, self.number = name, kind, verb, getattr(errno, error, 0)
        self.found = []
        self.clock = Clock()
        for folder in (self.place, self.pristine):
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(self.place)
        if zcore.config.lock == "file":
            with lock_file.LockFile(self.place, lock_file.NODE).hold():
                pass     # its thread and its socket are those of the process, and stay
        self.verb.make(self.place)
        shutil.copytree(self.place, self.pristine, symlinks=True)
        self.old = self.look({})
        self.kept = {}
        self.expected = self.call()
        self.new = self.look(self.kept)
        self.kept.clear()
        gc.collect()
        # Of several threads, one more may start with a later call.
        self.n_threads = len(os.listdir("/proc/self/task")) + 2 * (zcore.config.threads - 1)

    def call(self):
        return self.verb.call(self.place, self.kept)

    def look(self, kept):
        nodes, names, temporary = self.observer.state_of(self.place)
        if "store" in kept:
            nodes = {**nodes, **store_state(kept["store"])}
        return nodes, names, temporary

    def run(self):
        """Let each call of the system fail; return how many failed, and what was found."""
        n = 0
        if self.kind == "SHORT":
            # All of them, in one call of the verb.
            return int(self.round(1 << 40) > 0), self.found
        while self.round(n) > n:
            n += 1
        return n, self.found

    def restore(self):
        shutil.rmtree(self.place)
        shutil.copytree(self.pristine, self.place, symlinks=True)
        self.clock.start()

    def round(self, n):
        self.restore()
        before = descriptors()
        result, error, n_calls = self.library.run(self.call, self.kind, n, self.number)
        failed = self.library.failed
        self.where = f"{self.name}, {self.kind} {errno.errorcode.get(self.number, '')} {n} ({failed})"
        self.judge(result, error, failed)
        del result, error
        self.kept.clear()
        gc.collect()
        # A thread of the pool that has had nothing to do lets go of a read only after the call has returned.
        until = time.monotonic() + 2
        while (left := descriptors() - before) and time.monotonic() < until:
            time.sleep(0.01)
        if left:
            self.tell(f"a descriptor is left open: {left}")
        if len(os.listdir("/proc/self/task")) > self.n_threads:
            self.tell("there are more threads")
        return n_calls

    def tell(self, what):
        self.found.append(f"{self.where}: {what}")

    def judge(self, result, error, failed):
        if error is None:
            if isinstance(self.expected, np.ndarray) and not np.array_equal(result, self.expected):
                self.tell("another result")
        elif self.is_quiet(failed) or not self.is_right(error):
            self.tell(f"{error!r}")
        elif failed is None:
            self.tell(f"an error, and nothing has failed: {error!r}")
        if error is not None and self.verb.safety >= (MENDED if self.kind == "GONE" else UNSAFE):
            return
        try:
            state = self.look(self.kept)
        except AssertionError as exc:
            self.tell(f"another process cannot read it after {error!r}: {exc}")
            return
        self.judge_names(state, failed)
        if error is None:
            if not self.is_new(state):
                self.tell(f"no error, and another state: {self.difference(state, self.new)}")
            return
        self.judge_state(state)
        is_new = self.is_new(state)
        try:
            self.call()
        except self.verb.twice as exc:
            if not is_new and not self.is_new(self.look(self.kept)):
                self.tell(f"the second call fails, and the first has not done its work: {exc!r}")
            return
        except Exception as exc:
            self.tell(f"the second call fails: {exc!r}, after {error!r}")
            return
        try:
            state = self.look(self.kept)
        except AssertionError as exc:
            self.tell(f"another process cannot read what the second call has left: {exc}")
            return
        if not self.is_new(state) and not (self.verb.changes and is_new):
            self.tell(f"another state after the second call: {self.difference(state, self.new)}")

    def is_quiet(self, failed):
        # HDF5 makes no call again.
        return self.kind in QUIET or (self.kind == "SIGNAL" and failed in MADE_AGAIN and "h5" not in self.name)

    def is_right(self, error):
        if self.kind == "MEMORY":
            # Of the document, which a store reads, it is an error of the store.
            return isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM
        return is_named(error, self.place)

    def is_new(self, state):
        return not self.difference(state, self.new)

    def judge_state(self, state):
        nodes = state[0]
        if self.verb.is_whole:
            if not self.is_new(state) and self.difference(state, self.old):
                self.tell(f"neither old nor new: {self.difference(state, self.new)}")
        else:
            for place in nodes.keys() | self.old[0].keys() | self.new[0].keys():
                value, old, new = nodes.get(place), self.old[0].get(place), self.new[0].get(place)
                if value is None and self.verb.may_vanish:
                    continue
                if not (same(value, old) or same(value, new) or is_mixed(value, old, new) or value is False):
                    self.tell(f"{place} is neither old nor new: {value}")

    def judge_names(self, state, failed):
        _, names, temporary = state
        if strange := names - self.old[1] - self.new[1]:
            self.tell(f"these are left: {strange}")
        # What could not be removed may be left, and the state of a copy that goes on.
        left = {name for name in temporary - self.old[2] if ".__zc_tmp.copy." not in name}
        if left and self.kind not in ("GONE",) and failed not in ("unlink", "rmdir", "delete"):
            self.tell(f"temporary files are left: {left}")

    def difference(self, state, wanted):
        """Return the places where two states differ. A copy of metadata is gone before something is changed."""
        return [place for place in {**state[0], **wanted[0]} if not same(state[0].get(place), wanted[0].get(place))
                and (state[0].get(place) or not place.endswith(": consolidated"))]


def is_named(error, base):
    """Whether an error is one of zcore's, and names a path, a key or an object."""
    return isinstance(error, zcore.ZcoreError) and (base in str(error) or any(
        word in str(error) for word in ("zarr.json", ".zarray", ".zgroup", ".zattrs", "__zmeta__", "__zattr__", "c/")))


def is_mixed(value, old, new):
    """Whether each object of an array is the old or the new one."""
    if not all(isinstance(state, tuple) and len(state) == 6 for state in (value, old, new)):
        return False
    if value[:5] != old[:5] or value[:5] != new[:5]:
        return False
    rows, columns = value[3]
    for i in range(0, value[0][0], rows):
        for j in range(0, value[0][1], columns):
            chunk = (slice(i, i + rows), slice(j, j + columns))
            if not any(np.array_equal(value[5][chunk], state[5][chunk]) for state in (old, new)):
                return False
    return True


def main():
    library, base, units = Library(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    observer = Observer()
    gc.freeze()
    for name, kind, error in units:
        verb = FAULTY[name][0] if name in FAULTY else VERBS[name]
        n, found = Rounds(library, observer, base, name, kind, error, verb).run()
        print(json.dumps([name, kind, error, n, found]), flush=True)
    observer.close()


if __name__ == "__main__":
    main()
