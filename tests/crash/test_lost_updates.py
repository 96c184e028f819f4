"""Eight workers that each own an eighth of every chunk and lose none of it."""
import multiprocessing
import threading

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory

pytestmark = pytest.mark.usefixtures("lock_kind")

N_WORKERS = 8
N_ROUNDS = 20
SHAPE, CHUNKS = (16, 40), (8, 16)     # 2 x 3 chunks, the last ones cut off by the border

# What each worker does, as text: threads, forked, spawned and started processes all run the same. `array` is what it
# writes to, `me` its number. It looks at its own elements now and then, which nobody else writes.
WORK = f"""
for i in range(1, {N_ROUNDS} + 1):
    array[:, me::{N_WORKERS}] = 1000 * me + i
    if i % 10 == 0:
        found = array[:, me::{N_WORKERS}]
        assert (found == 1000 * me + i).all(), (me, i, found)
"""


def create(store):
    return zcore.open(store, mode="w", shape=SHAPE, chunks=CHUNKS, dtype="i4", cname="lz4", shuffle=0)


def check(store):
    array = zcore.open(store)
    expected = 1000 * (np.arange(SHAPE[1]) % N_WORKERS) + N_ROUNDS
    np.testing.assert_array_equal(array[...], np.broadcast_to(expected, SHAPE))


def run_threads(arrays):
    """Run a worker in a thread for each array; an exception of any of them is raised."""
    failures = []

    def work(me, array):
        try:
            exec(WORK, {"array": array, "me": me})
        except BaseException as exception:
            failures.append(exception)

    threads = [threading.Thread(target=work, args=item) for item in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("way", WAYS)
def test_threads_with_one_handle(place, way):
    array = create(directory(place, way))
    run_threads([array] * N_WORKERS)
    check(place)


def test_threads_with_a_handle_each(place):
    create(place)
    run_threads([zcore.open(place, mode="r+", threads=1 + me % 3) for me in range(N_WORKERS)])
    check(place)


def test_threads_on_a_memory_store():
    store = zcore.MemoryStore()
    create(store)
    run_threads([zcore.open(store, mode="r+") for _ in range(N_WORKERS)])
    check(store)


def test_threads_on_a_confined_store(place):
    """Such a store has no native path: the locks are those of the file all the same."""
    store = zcore.DirectoryStore(place, confined=True)
    create(store)
    run_threads([zcore.open(zcore.DirectoryStore(place, confined=me % 2 == 0), mode="r+") for me in range(N_WORKERS)])
    check(place)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing(place, method):
    """The handle travels: inherited by a fork, pickled by a spawn. The target is a builtin, which both can find."""
    array = create(place)
    context = multiprocessing.get_context(method)
    with_warnings = "import warnings; warnings.simplefilter('error')\n"
    processes = [context.Process(target=exec, args=(with_warnings + WORK, {"array": array, "me": me}))
                 for me in range(N_WORKERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * N_WORKERS
    check(place)


def test_native_and_confined_processes_share_their_locks(place, crew):
    """The byte of an object's lock depends on its key alone, not on the code that takes it."""
    create(place)
    body = "array, me = zcore.open(store, mode='r+'), given\nready()\n" + WORK
    processes = [crew.start(place, body, me, environment={"CONFINED": "1"} if me % 2 else {})
                 for me in range(N_WORKERS)]
    crew.go(processes)
    crew.results(processes)
    check(place)


def test_processes_of_several_threads(place, crew):
    """Two processes of four threads each: the locks in the process and those of the file nest."""
    create(place)
    body = f"""
work = {WORK!r}
failures = []
def run(me):
    try:
        exec(work, {{"array": array, "me": me}})
    except BaseException as exception:
        failures.append(repr(exception))
array = zcore.open(path, mode="r+")
threads = [threading.Thread(target=run, args=(me,)) for me in given]
ready()
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(failures))
"""
    processes = [crew.start(place, body, list(range(first, N_WORKERS, 2))) for first in range(2)]
    crew.go(processes)
    assert crew.results(processes) == [[], []]
    check(place)
