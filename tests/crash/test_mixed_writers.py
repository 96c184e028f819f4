"""Parts of chunks, whole chunks, fill values that erase, attributes, resizes and appends, all at once: 0 lost."""
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.both_ways import WAYS, directory

from .writers_log import NOTED, WritersLog

FILL = -7
CHUNKS = (8, 16)
COLUMNS = 40                  # 2 whole chunks and half of one
OWNED_ROWS = 20               # whose log is kept; the chunk of rows 16 to 23 is the resizer's or the appender's too
N_PARTS, N_WHOLE, N_ATTRIBUTES, N_CHANGERS = 3, 2, 2, 2
N_WORKERS = N_PARTS + N_WHOLE + N_ATTRIBUTES + N_CHANGERS

# `array`, `me` and `random` are given; each worker returns its log, and what its kind has to tell.
PARTS = """
# A part of every chunk, over what others write as wholes.
for i in range(n_rounds):
    first, step = random.randrange(16), random.choice((3, 5, 8))
    rows = [random.randrange(owned_rows - 1), owned_rows, random.choice((1, 2))]
    with noted(rows, [first, None, step], 1000 * me + i):
        array[slice(*rows), first::step] = 1000 * me + i
"""
WHOLE = """
# Whole chunks, now and then with the fill value, which erases them.
for i in range(n_rounds):
    row, column = 8 * random.randrange(2), 16 * random.randrange(3)
    value = fill if random.random() < 0.3 else 1000 * me + i
    with noted([row, row + 8], [column, column + 16], value):
        array[row:row + 8, column:column + 16] = value
"""
ATTRIBUTES = """
# A counter of its own, one that both workers raise by a set of names, and names that come and go.
for i in range(n_rounds):
    array.attrs[f"counter {me}"] = i + 1
    array.attrs.update({f"name {me} {i}": i, "both": me})
    if i % 3 == 0:
        assert array.attrs.pop(f"name {me} {i}") == i
    assert array.attrs[f"counter {me}"] == i + 1
told = [f"name {me} {i}" for i in range(n_rounds) if i % 3]
"""
# Grows and shrinks the array below the owned rows and looks whether what it has cut off stays away. Only one worker
# may: a shape is set as a whole.
RESIZER = """
shown = zcore.open(array.store, mode="r+", lock=array.lock)
for i in range(n_rounds):
    rows = random.randrange(owned_rows + 1, 60)
    array.resize(rows, columns)
    array[owned_rows:rows] = 1000 * me + i
    cut = random.randrange(owned_rows + 1, 60)
    array.resize(cut, columns)
    array.resize(60, columns)
    shown.refresh()
    kept = min(rows, cut)
    assert (shown[owned_rows:kept] == 1000 * me + i).all(), (i, rows, cut)
    assert (shown[kept:] == fill).all(), (i, rows, cut, np.unique(shown[kept:]))
"""
APPENDER = """
told = []
for i in range(n_rounds):
    n = random.randrange(1, 12)
    block = np.full((n, columns), 1000 * me + i, "i4")
    block[:, 0] = np.arange(n)
    rows = array.append(block)[0]
    told.append([rows - n, n, 1000 * me + i])
    if i % 4 == 0:
        array.refresh()
        assert (array[rows - n:rows] == block).all()
"""


def run(code, me, array, n_rounds, seed):
    """Run one worker and return (log, told)."""
    import random

    names = {"array": array, "me": me, "random": random.Random(1000 * seed + me), "n_rounds": n_rounds,
             "owned_rows": OWNED_ROWS, "columns": COLUMNS, "fill": FILL, "np": np, "zcore": zcore, "told": None}
    exec(NOTED + code, names)
    return names["log"], names["told"]


def run_threads(codes, array_of, n_rounds, seed):
    results, failures = [None] * len(codes), []

    def work(me):
        try:
            results[me] = run(codes[me], me, array_of(me), n_rounds, seed)
        except BaseException as exception:
            failures.append(exception)

    at_once(threading.Thread(target=work, args=(me,)) for me in range(len(codes)))
    if failures:
        raise failures[0]
    return results


def run_processes(codes, crew, path, n_rounds, seed, confined=()):
    body = f"""
import random as random_module
me, code, seed = given
names = {{"array": zcore.open(store, mode="r+"), "me": me, "random": random_module.Random(1000 * seed + me),
         "n_rounds": {n_rounds}, "owned_rows": {OWNED_ROWS}, "columns": {COLUMNS}, "fill": {FILL}, "np": np,
         "zcore": zcore, "told": None}}
ready()
exec(code, names)
print(json.dumps([names["log"], names["told"]]))
"""
    processes = [crew.start(path, body, [me, NOTED + code, seed],
                            environment={"CONFINED": "1"} if me in confined else {})
                 for me, code in enumerate(codes)]
    crew.go(processes)
    return crew.results(processes)


def codes_with(*changers):
    return [PARTS] * N_PARTS + [WHOLE] * N_WHOLE + [ATTRIBUTES] * N_ATTRIBUTES + list(changers)


def create(store, rows):
    return zcore.open(store, mode="w", shape=(rows, COLUMNS), chunks=CHUNKS, dtype="i4", fill_value=FILL, cname="lz4")


def check(store, results, n_rounds):
    """Judge the owned rows and the attributes."""
    array = zcore.open(store)
    log = WritersLog((OWNED_ROWS, COLUMNS), FILL)
    names = {"both"}
    attributes = array.attrs.asdict()
    for me, (entries, told) in enumerate(results):
        log.extend(entries)
        if N_PARTS + N_WHOLE <= me < N_PARTS + N_WHOLE + N_ATTRIBUTES:
            names.update(told, {f"counter {me}"})
            assert attributes[f"counter {me}"] == n_rounds
    assert set(attributes) == names
    log.check(array[:OWNED_ROWS])


def check_appended(store, results, n_rounds, first):
    """Every appended block is there once, whole and contiguous."""
    array = zcore.open(store)
    blocks = sorted(block for _, told in results[-N_CHANGERS:] for block in told)
    assert len(blocks) == N_CHANGERS * n_rounds
    row = first
    for start, n, value in blocks:
        assert start == row
        found = array[start:start + n]
        assert (found[:, 0] == np.arange(n)).all() and (found[:, 1:] == value).all()
        row += n
    assert array.shape == (row, COLUMNS)


@pytest.fixture(params=[15, pytest.param(200, marks=pytest.mark.slow)])
def n_rounds(request):
    return request.param


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, place):
    """A store for threads; the last two bring the kernel the bytes of their objects."""
    return zcore.MemoryStore() if request.param == "memory" else directory(place, request.param)


@pytest.mark.thinned(2, "store", "shares_handle")
@pytest.mark.parametrize("shares_handle", [True, False], ids=["one-handle", "handles"])
def test_threads_with_a_resizer(store, shares_handle, n_rounds):
    array = create(store, 60)
    codes = codes_with(RESIZER)
    results = run_threads(codes, lambda me: array if shares_handle else zcore.open(store, mode="r+"), n_rounds, 1)
    check(store, results, n_rounds)


@pytest.mark.thinned(2, "store", "shares_handle")
@pytest.mark.parametrize("shares_handle", [True, False], ids=["one-handle", "handles"])
def test_threads_with_appenders(store, shares_handle, n_rounds):
    array = create(store, OWNED_ROWS)
    codes = codes_with(*[APPENDER] * N_CHANGERS)
    results = run_threads(codes, lambda me: array if shares_handle else zcore.open(store, mode="r+"), n_rounds, 2)
    check(store, results, n_rounds)
    check_appended(store, results, n_rounds, OWNED_ROWS)


@pytest.mark.parametrize("confined", [pytest.param((), marks=pytest.mark.slow), (0, 3, 7)], ids=["native", "mixed"])
def test_processes_with_a_resizer(place, crew, confined, n_rounds):
    create(place, 60)
    check(place, run_processes(codes_with(RESIZER), crew, place, n_rounds, 3, confined), n_rounds)


@pytest.mark.parametrize("confined", [pytest.param((), marks=pytest.mark.slow), (1, 4, 8)], ids=["native", "mixed"])
def test_processes_with_appenders(place, crew, confined, n_rounds):
    create(place, OWNED_ROWS)
    results = run_processes(codes_with(*[APPENDER] * N_CHANGERS), crew, place, n_rounds, 4, confined)
    check(place, results, n_rounds)
    check_appended(place, results, n_rounds, OWNED_ROWS)


def test_the_judge_finds_a_lost_write():
    """A value that an earlier write left, where a later one began after its end."""
    log = WritersLog((2, 4), 0)
    log.extend([[10, 20, [0, 2], [0, 4], 1], [15, 30, [0, 1], [0, 2], 2], [40, 50, [0, 2], [3, 4], 3]])
    log.check(np.array([[2, 2, 1, 3], [1, 1, 1, 3]]))
    log.check(np.array([[1, 1, 1, 3], [1, 1, 1, 3]]))      # the first two overlapped
    with pytest.raises(AssertionError, match="1 elements lost"):
        log.check(np.array([[2, 2, 1, 3], [1, 1, 1, 1]]))
    with pytest.raises(AssertionError, match="1 elements lost"):
        log.check(np.array([[2, 2, 0, 3], [1, 1, 1, 3]]))
