"""Lock files among processes: nothing is lost, whoever is killed or stands still, on this machine or on another one."""
import os
import signal
import time

import numpy as np
import pytest

import zcore
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.stores.directory.lock_file import NODE

# The process takes part as one of another machine, whose processes nobody here can look up. `given` is its number.
ELSEWHERE = """
from zcore.stores.directory import lock_file
lock_file.STALE_SECONDS, lock_file.RENEWED_SECONDS, lock_file.LOOK_SECONDS = 2.0, 0.2, 0.05
lock_file._own = -1, f".{os.urandom(16).hex()}.{given}"
"""
HOLDER = ELSEWHERE + """
array = zcore.open(path, mode="r+", lock="file")
try:
    with array._binding.exclusive() as exclusive:
        ready("held")
        exclusive.replace_metadata(exclusive.metadata.resized((9,)))
    print(json.dumps("done"))
except zcore.LockError as exc:
    print(json.dumps(str(exc)))
"""
WRITER = ELSEWHERE + """
array = zcore.open(path, mode="r+", lock="file")
ready()
for i in range(1, 101):
    array[given::4] = i
    if i % 10 == 0:
        array.attrs[f"{given}.{i}"] = i
        array.append([-1])
print(json.dumps(int(array.shape[0])))
"""


def create(place, **options):
    return zcore.create_array(place, shape=40, chunks=30, dtype="i4", lock="file", **options)


def names_in(place):
    return {name for _, folders, names in os.walk(place) for name in (*folders, *names)}


def test_hosts_that_write_parts_of_the_same_chunks(place, crew):
    """Rows, attributes and appended rows of four hosts."""
    create(place)[...] = 0
    processes = [crew.start(place, WRITER, n) for n in range(4)]
    crew.go(processes)
    assert max(crew.results(processes)) == 80
    array = zcore.open(place)
    assert array.shape == (80,) and (array[:40] == 100).all()
    assert len(array.attrs) == 40
    assert names_in(place) == {"zarr.json", "c", "0", "1", "2"}


def test_a_host_that_is_gone(place, crew):
    """Its lock is taken over once it gave no sign of life for long enough, and not before."""
    create(place)
    process = crew.start(place, HOLDER, 1)
    assert crew.line(process) == "held"
    waiting = crew.start(place, ELSEWHERE + """
ready()
start = time.monotonic()
zcore.open(path, mode="r+", lock="file")[...] = 7
print(json.dumps(time.monotonic() - start))
""", 2, python_options=("-W", "ignore"))
    crew.go([waiting])
    time.sleep(3)
    assert waiting.poll() is None and (zcore.open(place)[...] == 0).all()     # it is alive, and renews its file
    process.kill()
    [seconds] = crew.results([waiting])
    assert seconds >= 4.5
    assert (zcore.open(place)[...] == 7).all() and names_in(place) == {"zarr.json", "c", "0", "1"}


def test_a_host_that_stood_still(place, crew):
    """Another one has taken over its lock. It finds out before it replaces the document."""
    array = create(place)
    process = crew.start(place, HOLDER, 1)
    assert crew.line(process) == "held"
    process.send_signal(signal.SIGSTOP)
    waiting = crew.start(place, ELSEWHERE + """
ready()
zcore.open(path, mode="r+", lock="file").resize(5)
print("0")
""", 2, python_options=("-W", "ignore"))
    crew.go([waiting])
    crew.results([waiting])
    crew.tell(process)
    process.send_signal(signal.SIGCONT)
    [said] = crew.results([process])
    assert "was taken over by another process" in said
    assert array.refresh().shape == (5,)


@pytest.mark.filterwarnings("ignore:the lock of")
@pytest.mark.parametrize("n_rounds", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_writers_that_are_killed(place, n_rounds):
    """Each of the elements is what one writer wrote, and the next writer goes on at once."""
    array = create(place)
    array[...] = 0
    rng = np.random.default_rng(0)
    n_left = 0
    for i in range(1, n_rounds + 1):
        started, starting = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(starting, b".")
                while True:
                    array[::2] = i
                    array[::2] = -i
            finally:
                os._exit(1)
        os.read(started, 1)     # on a busy machine, it would be killed before it has begun
        os.close(started)
        os.close(starting)
        time.sleep(rng.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        n_left += os.path.exists(os.path.join(place, NODE))
        values = array[...]
        assert set(np.abs(values[::2])) <= {i, i - 1} and (values[1::2] == 0).all()
        for part in (values[:30:2], values[30::2]):
            assert len(set(part)) == 1
        start = time.monotonic()
        array[::2] = i
        assert time.monotonic() - start < 20
    assert n_left
    array[::2] = 1
    # Chunks that were not finished, and locks that were not got.
    left = names_in(place) - {"zarr.json", "c", "0", "1"}
    assert NODE not in left and all([name.startswith(TEMP_PREFIX) or f"{NODE}.{name}" in left for name in left])
