"""Where code may run that calls zcore: inside another call, in a child that was forked meanwhile, at the end.

Each context runs an outer call, and an inner one at its k-th event: a call of a Python or C function, or a return. It
returns the outcomes of both, or None where the outer call has fewer events.
"""
import asyncio
import os
import pickle
import signal
import sys
import threading
import time

import numpy as np

import zcore
from tests.crash.races import verbs
from tests.crash.races.model import Call

MAX_SECONDS = 30
# Calls that take values of the user.
ASSIGNING = ("write", "append", "create", "overwrite")


def timed(store, task):
    """Perform (format, verb, argument, me) and return a `Call`."""
    format, verb, argument, me = task
    start = time.monotonic_ns()
    outcome = verbs.perform(store, format, verb, argument, me)
    return Call(verb, argument, start, time.monotonic_ns(), outcome, False)


class _At:
    """A profile function that calls `action` once, at the k-th event."""

    def __init__(self, k, action):
        self.left = k
        self.action = action

    def __call__(self, frame, event, argument):
        if self.left == 0:
            self.left = -1
            sys.setprofile(None)
            self.action()
        elif self.left > 0:
            self.left -= 1


def _inside(store, outer, k, action):
    at = _At(k, action)
    # Without `perform` itself, whose events are no part of the call.
    sys.setprofile(at)
    try:
        call = timed(store, outer)
    finally:
        sys.setprofile(None)
    return call if at.left < 0 else None


def in_a_handler(store, outer, inner, k):
    """A signal handler."""
    found = []
    signal.signal(signal.SIGUSR1, lambda *_: found.append(timed(store, inner)))
    call = _inside(store, outer, k, lambda: signal.raise_signal(signal.SIGUSR1))
    return [call, *found] if call else None


def in_a_finalizer(store, outer, inner, k):
    """The end of an object's life."""
    found = []

    class Ending:
        def __del__(self):
            found.append(timed(store, inner))

    call = _inside(store, outer, k, Ending)
    return [call, *found] if call else None


def in_array_of_a_value(store, outer, inner, k):
    """`__array__` of what is written."""
    found = []
    format, verb, argument, me = outer
    if k or verb not in ASSIGNING:
        return None

    class Value:
        def __init__(self, values):
            self.values = np.array(values, "i4")

        def __array__(self, dtype=None, copy=None):
            if not found:
                found.append(timed(store, inner))
            return self.values

    start, outcome = time.monotonic_ns(), ("ok",)
    try:
        if verb == "write":
            argument = {i: 1000 * me + i for i in range(10)}
            zcore.open(store, "r+", path="x")[:10] = Value(list(argument.values()))
        elif verb == "append":
            outcome = ("ok", *zcore.open(store, "r+", path="x").append(Value(argument)))
        else:
            values, fill, chunk = argument
            argument = ([1000 * me + i for i in range(len(values))], fill, chunk)
            zcore.create_array(store, name="x", data=Value(argument[0]), fill_value=fill, attributes={"by": me},
                               overwrite=verb == "overwrite", **verbs.keywords(format, chunk))
    except zcore.LockError as error:
        outcome = ("LockError", error.errno)
    except zcore.ZcoreError as error:
        outcome = (type(error).__name__,)
    except ValueError as error:
        # The inner call has made the array shorter than the selection was.
        outcome = ("SelectionError",) if "broadcast" in str(error) else ("unexpected", repr(error))
    return [Call(verb, argument, start, time.monotonic_ns(), outcome, False), *found]


def in_a_task(store, outer, inner, k):
    """A coroutine, while another one waits for a read; the outer call comes in a third one."""
    if k:
        return None

    async def call(task):
        if task[1] == "async read":
            start = time.monotonic_ns()
            try:
                outcome = ("ok", *(await zcore.open(store, path="x").async_read()).tolist())
            except zcore.ZcoreError as error:
                outcome = (type(error).__name__,)
            return Call(task[1], None, start, time.monotonic_ns(), outcome, False)
        return timed(store, task)

    async def main():
        tasks = [asyncio.ensure_future(call(task)) for task in ((outer[0], "async read", None, 3), outer, inner)]
        awaited, *others = await asyncio.gather(*tasks)
        return [*others, awaited]

    return asyncio.run(main())


def in_a_forked_child(store, outer, inner, k):
    """A child that is forked while another thread is within the outer call."""
    inside, forked, found = threading.Event(), threading.Event(), []

    def wait():
        inside.set()
        forked.wait(MAX_SECONDS)

    def work():
        found.append(_inside(store, outer, k, wait))
        inside.set()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait(MAX_SECONDS)
    reader, writer = os.pipe()
    # Not where the call has ended, whose thread may still be alive.
    pid = None if found else os.fork()
    if pid == 0:
        signal.alarm(MAX_SECONDS)
        try:
            os.write(writer, pickle.dumps(timed(store, inner)))
        finally:
            os._exit(0)
    os.close(writer)
    forked.set()
    thread.join()
    with open(reader, "rb") as file:
        sent = file.read()
    if pid:
        os.waitpid(pid, 0)
        assert sent, "the child has hung"
    return [found[0], pickle.loads(sent)] if found[0] and sent else None


CONTEXTS = {"handler": in_a_handler, "finalizer": in_a_finalizer, "__array__": in_array_of_a_value,
            "task": in_a_task, "fork": in_a_forked_child}
# In these the inner call is inside the outer one, which cannot end before it.
REFUSABLE = ("handler", "finalizer", "__array__")
