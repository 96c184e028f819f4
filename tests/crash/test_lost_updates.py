"""Eight workers that each own an eighth of every chunk and lose none of it."""
import multiprocessing
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.both_ways import WAYS, directory

pytestmark = pytest.mark.usefixtures("lock_kind")

N_WORKERS = 8
SHAPE, CHUNKS = (16, 40), (8, 16)     # 2 x 3 chunks, the last ones cut off by the border

# What each worker does, as text: threads, forked, spawned and started processes all run the same. `array` is what it
# writes to, `me` its number. It looks at its own elements now and then, which nobody else writes.
WORK = f"""
for i in range(1, n_rounds + 1):
    array[:, me::{N_WORKERS}] = 1000 * me + i
    if i % 5 == 0:
        found = array[:, me::{N_WORKERS}]
        assert (found == 1000 * me + i).all(), (me, i, found)
"""


@pytest.fixture(params=[10, pytest.param(100, marks=pytest.mark.slow)])
def n_rounds(request):
    return request.param


def create(store):
    return zcore.open(store, mode="w", shape=SHAPE, chunks=CHUNKS, dtype="i4", cname="lz4", shuffle=0)


def check(store, n_rounds):
    array = zcore.open(store)
    expected = 1000 * (np.arange(SHAPE[1]) % N_WORKERS) + n_rounds
    np.testing.assert_array_equal(array[...], np.broadcast_to(expected, SHAPE))


def run_threads(arrays, n_rounds):
    """Run a worker in a thread for each array; an exception of any of them is raised."""
    failures = []

    def work(me, array):
        try:
            exec(WORK, {"array": array, "me": me, "n_rounds": n_rounds})
        except BaseException as exception:
            failures.append(exception)

    at_once(threading.Thread(target=work, args=item) for item in enumerate(arrays))
    if failures:
        raise failures[0]


@pytest.mark.parametrize("way", WAYS)
def test_threads_with_one_handle(place, way, n_rounds):
    array = create(directory(place, way))
    run_threads([array] * N_WORKERS, n_rounds)
    check(place, n_rounds)


def test_threads_with_a_handle_each(place, n_rounds):
    create(place)
    run_threads([zcore.open(place, mode="r+", threads=1 + me % 3) for me in range(N_WORKERS)], n_rounds)
    check(place, n_rounds)


def test_threads_on_a_memory_store(n_rounds):
    store = zcore.MemoryStore()
    create(store)
    run_threads([zcore.open(store, mode="r+") for _ in range(N_WORKERS)], n_rounds)
    check(store, n_rounds)


def test_threads_on_a_confined_store(place, n_rounds):
    """Such a store has no native path: the locks are those of the file all the same."""
    store = zcore.DirectoryStore(place, confined=True)
    create(store)
    run_threads([zcore.open(zcore.DirectoryStore(place, confined=me % 2 == 0), mode="r+") for me in range(N_WORKERS)],
                n_rounds)
    check(place, n_rounds)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_processes_of_multiprocessing(place, n_rounds):
    """The handle travels: inherited by a fork, pickled by a spawn. The target is a builtin, which both can find."""
    array = create(place)
    with_warnings = "import warnings; warnings.simplefilter('error')\n"
    processes = [multiprocessing.get_context("spawn" if me < 2 else "fork").Process(
        target=exec, args=(with_warnings + WORK, {"array": array, "me": me, "n_rounds": n_rounds}))
        for me in range(N_WORKERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * N_WORKERS
    check(place, n_rounds)


def run_processes(crew, place, n_rounds, environments):
    """Run a process in each environment, with a thread for each of its share of the workers."""
    create(place)
    body = f"""
work = {WORK!r}
failures = []
def run(me):
    try:
        exec(work, {{"array": array, "me": me, "n_rounds": {n_rounds}}})
    except BaseException as exception:
        failures.append(repr(exception))
array = zcore.open(store, mode="r+")
threads = [threading.Thread(target=run, args=(me,)) for me in given]
ready()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(failures))
"""
    processes = [crew.start(place, body, list(range(first, N_WORKERS, len(environments))), environment=environment)
                 for first, environment in enumerate(environments)]
    crew.go(processes)
    assert crew.results(processes) == [[]] * len(environments)
    check(place, n_rounds)


def test_native_and_confined_processes_share_their_locks(place, crew, n_rounds):
    """The byte of an object's lock depends on its key alone, not on the code that takes it."""
    run_processes(crew, place, n_rounds, [{}, {"CONFINED": "1"}] * 2)


def test_processes_of_several_threads(place, crew, n_rounds):
    """Two processes of four threads each: the locks in the process and those of the file nest."""
    run_processes(crew, place, n_rounds, [{}] * 2)
