"""Rounds of `kill -9` at a random moment, each judged by a model of what the killed process was doing.

A child is forked, changes the array by operations that follow from a seed, and counts them in memory it shares with
its parent: one number goes up when an operation begins, one when it has ended. The parent kills it, repeats the
operations on a NumPy array, and so knows what the array was before the one that the kill has interrupted, and what
it would have become. Everything else is an error.
"""
import mmap
import os
import random
import re
import signal
import time

import numpy as np

import zcore

CHUNKS = (8, 16)
BEGUN, ENDED = 0, 1                  # of the counts: operations that have begun, that have ended
KEYS = re.compile(r"__zmeta__|__zattr__|__zdata__/\d+\.\d+\.blosc")
KINDS = ("write", "resize", "append", "overwrite", "attributes")


class State:
    """What an array is: an ndarray, the fill value and the attributes."""

    def __init__(self, values, fill, attributes):
        self.values = values
        self.fill = fill
        self.attributes = attributes


def operation(rng, kinds, state, number):
    """Return the next operation on an array in `state`, a tuple that begins with its kind."""
    kind = rng.choice(kinds)
    rows, columns = state.values.shape
    if kind == "write":
        start, step = rng.randrange(max(1, rows // 2)), rng.choice((1, 1, 1, 3))
        erases = rng.random() < 0.2
        return "write", (slice(start, None, step), slice(rng.choice((0, 0, 5)), None)), None if erases else number
    if kind == "resize":
        return "resize", rng.randrange(1, 50), rng.randrange(20, 50)
    if kind == "append":
        if rows > 100:
            return "resize", 9, columns
        return "append", rng.randrange(1, 20), number
    if kind == "overwrite":
        return "overwrite", rng.randrange(5, 40), rng.randrange(20, 50), -number, rng.choice("if")
    return "attributes", str(rng.randrange(5)), number


def after(state, op):
    """Return the state that an operation leads to."""
    kind = op[0]
    values, fill, attributes = state.values.copy(), state.fill, dict(state.attributes)
    if kind == "write":
        values[op[1]] = written(values[op[1]].shape, op[2], fill)
    elif kind == "resize":
        values = np.full(op[1:3], fill, values.dtype)
        kept = tuple(slice(min(a, b)) for a, b in zip(values.shape, state.values.shape, strict=True))
        values[kept] = state.values[kept]
    elif kind == "append":
        values = np.concatenate([values, written((op[1], values.shape[1]), op[2], fill).astype(values.dtype)])
    elif kind == "overwrite":
        values, fill, attributes = np.full(op[1:3], op[3], op[4] + "4"), op[3], {"made by": -op[3]}
    else:
        attributes[op[1]] = op[2]
    return State(values, fill, attributes)


def written(shape, number, fill):
    """Return the values of one write: all different, or the fill value."""
    if number is None:
        return np.full(shape, fill)
    return number * 10_000 + np.arange(shape[0] * shape[1]).reshape(shape)


def perform(store, array, op, fill):
    """Carry an operation out and return the handle to go on with."""
    kind = op[0]
    if kind == "write":
        array[op[1]] = written(array[op[1]].shape, op[2], fill)
    elif kind == "resize":
        array.resize(op[1:3])
    elif kind == "append":
        array.append(written((op[1], array.shape[1]), op[2], fill).astype(array.dtype))
    elif kind == "overwrite":
        return create(store, op[1:3], op[4] + "4", op[3], {"made by": -op[3]})
    else:
        array.attrs[op[1]] = op[2]
    return array


def create(store, shape, dtype, fill, attributes):
    return zcore.open(store, mode="w", shape=shape, chunks=CHUNKS, dtype=dtype, fill_value=fill, attributes=attributes,
                      cname="lz4", threads=2)


def child(store, kinds, state, seed, counts):
    """Change the array until somebody kills the process."""
    try:
        rng = random.Random(seed)
        array = zcore.open(store, mode="r+", threads=2)
        for n in range(1_000_000):
            op = operation(rng, kinds, state, n + 1)
            counts[BEGUN] = n + 1
            array = perform(store, array, op, state.fill)
            counts[ENDED] = n + 1
            state = after(state, op)
    finally:
        os._exit(1)


def check(store, before, op):
    """Judge what a kill has left, and return it as a `State`; None when there is no array."""
    strange = [key for key in store.list() if not KEYS.fullmatch(key)]
    assert not strange, strange
    possible = [before] if op is None else [before, after(before, op)]
    try:
        array = zcore.open(store, mode="r+")
    except zcore.errors.NodeNotFoundError:
        assert op is not None and op[0] == "overwrite", op
        return None
    values, attributes = array[...], array.attrs.asdict()
    fitting = [state for state in possible if state.values.shape == values.shape and state.fill == array.fill_value
               and state.values.dtype == values.dtype]
    assert fitting, (op, values.shape, array.fill_value)
    if op is not None and op[0] == "write":
        for i in range(0, values.shape[0], CHUNKS[0]):
            for j in range(0, values.shape[1], CHUNKS[1]):
                chunk = (slice(i, i + CHUNKS[0]), slice(j, j + CHUNKS[1]))
                assert any(np.array_equal(values[chunk], state.values[chunk]) for state in fitting), (op, i, j)
    else:
        assert any(np.array_equal(values, state.values) for state in fitting), op
    assert any(attributes == state.attributes for state in fitting), (op, attributes)
    # Nothing that is cut off, or was never reached, lies in wait; and the locks have died with their holder.
    array.resize([length + 20 for length in values.shape])
    grown = array[...]
    assert np.array_equal(grown[:values.shape[0], :values.shape[1]], values), op
    grown[:values.shape[0], :values.shape[1]] = array.fill_value
    assert (grown == array.fill_value).all(), (op, np.unique(grown))
    array.resize(values.shape)
    array[-1, -1] = values[-1, -1] = 5
    assert np.array_equal(array[...], values), op
    return State(values, array.fill_value, attributes)


def rounds(store, kinds, n_rounds, seed):
    """Return how often a kill fell into an operation of each kind, and how often it left no array."""
    rng = random.Random(seed)
    # Each number is stored at once: a kill must not fall between its bytes.
    counts = memoryview(mmap.mmap(-1, 16)).cast("q")
    hits = dict.fromkeys([*KINDS, "none", "between"], 0)
    state = None
    for n in range(n_rounds):
        if state is None:
            array = create(store, (30, 40), "i4", 0, {"made by": 0})
            state = State(array[...], 0, array.attrs.asdict())
        counts[BEGUN] = counts[ENDED] = 0
        pid = os.fork()
        if pid == 0:
            child(store, kinds, state, n, counts)
        try:
            while counts[BEGUN] == 0 and os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.0005)
            time.sleep(rng.uniform(0.001, 0.030))
        finally:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the child failed by itself"
        replay = random.Random(n)
        op = None
        for i in range(counts[BEGUN]):
            op = operation(replay, kinds, state, i + 1)
            if i < counts[ENDED]:
                state, op = after(state, op), None
        hits["between" if op is None else op[0]] += 1
        state = check(store, state, op)
        hits["none"] += state is None
    return hits
