"""Ctrl-C ends whatever waits or works, leaves the store intact, and does no harm to what comes after."""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import zcore

# An array of as many chunks as elements: a call takes minutes at least, and touches little memory until then.
ENDLESS = 10**8
BOTH_WAYS = pytest.mark.parametrize("environment", [{}, {"CONFINED": "1"}], ids=["native", "confined"])
INTERRUPTED = """
def interrupted(work):
    # Whether Ctrl-C ends `work`.
    try:
        ready()
        print("going", flush=True)
        work()
    except KeyboardInterrupt:
        return True
    return False
"""


def create_endless(store):
    return zcore.open(store, mode="w", shape=ENDLESS, chunks=1, dtype="i4", cname="lz4", fill_value=-1)


def interrupt(crew, process, is_underway=None):
    """Send the signal once the process is in the middle of what it should be interrupted in."""
    assert crew.line(process) == "ready"
    crew.tell(process)
    assert crew.line(process) == "going"
    is_underway = is_underway or is_active(process)
    while not is_underway():
        assert process.poll() is None, "it ended by itself"
    process.send_signal(signal.SIGINT)


def is_active(process):
    """Return a function that says whether a process has worked for a while, or slept again and again."""
    tasks = Path(f"/proc/{process.pid}/task")
    if not tasks.exists():
        deadline = time.monotonic() + 0.3
        return lambda: time.monotonic() > deadline

    def n_switches():
        lines = [line for path in tasks.glob("*/status") for line in path.read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)

    def n_ticks():
        # Behind the name, which may hold blanks: fields 14 and 15 of proc(5) are user and system time.
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    # On an idle machine who works is never switched off the CPU, and who sleeps uses none of its time.
    start_switches, start_ticks = n_switches(), n_ticks()
    return lambda: n_switches() > start_switches + 50 or n_ticks() > start_ticks + 10


@pytest.mark.thinned(2, "environment", "n_threads")
@BOTH_WAYS
@pytest.mark.parametrize("n_threads", [1, 4])
def test_during_a_read(place, crew, environment, n_threads):
    create_endless(place)[5:9] = 3
    process = crew.start(
        place,
        INTERRUPTED
        + """
array = zcore.open(store, threads=given)
out = np.empty(array.shape, "i4")
found = interrupted(lambda: array.read(out=out))
print(json.dumps([found, array[4:10].tolist(), len([t for t in threading.enumerate() if t.name == "zcore"])]))
""",
        n_threads,
        environment=environment,
    )
    interrupt(crew, process)
    assert crew.results([process]) == [[True, [-1, 3, 3, 3, 3, -1], n_threads - 1]]


@pytest.mark.thinned(2, "environment", "n_threads")
@BOTH_WAYS
@pytest.mark.parametrize("n_threads", [1, 4])
def test_during_a_write(place, crew, environment, n_threads):
    array = create_endless(place)
    process = crew.start(
        place,
        INTERRUPTED
        + """
array = zcore.open(store, mode="r+", threads=given)
found = interrupted(lambda: array.__setitem__(slice(None), 3))
array[:4] = 4
print(json.dumps([found, array[:4].tolist()]))
""",
        n_threads,
        environment=environment,
    )
    interrupt(crew, process, lambda: len(os.listdir(place + "/__zdata__")) > 50)
    assert crew.results([process]) == [[True, [4, 4, 4, 4]]]
    # The chunks were taken in order; all were written but those that the threads had in hand.
    stored = array.nchunks_initialized
    values = array[:stored]
    assert (values[4:] == -1).sum() <= n_threads and np.isin(values[4:], (-1, 3)).all()
    assert not [name for name in os.listdir(place + "/__zdata__") if name.startswith(".__zc_tmp.")]


WAITS = {
    "part": "array[1] = 5",
    "cover": "array[...] = 5",
    "attributes": "array.attrs['a'] = 5",
    "resize": "array.resize(3)",
    "append": "array.append([5])",
    "overwrite": "zcore.open(store, mode='w', shape=3, dtype='i4', cname='lz4')",
}


@pytest.mark.thinned(2, "wait", "environment")
@BOTH_WAYS
@pytest.mark.parametrize("wait", WAITS)
def test_while_another_process_holds_the_array(place, crew, environment, wait):
    """And once it is free, the same call works: nothing of the interrupted one is left behind."""
    array = zcore.open(place, mode="w", shape=64, chunks=2, dtype="i4", cname="lz4", attributes={"a": 0})
    array[...] = 1
    waiter = crew.start(
        place,
        INTERRUPTED
        + f"""
array = zcore.open(store, mode="r+", threads=4)
def work():
    {WAITS[wait]}
print(interrupted(work), flush=True)
ready("again")
work()
print(len(os.listdir(path)))
""",
        environment=environment,
    )
    with array._binding.locks().whole():
        interrupt(crew, waiter)
        assert crew.line(waiter) == "True"
        assert crew.line(waiter) == "again"
        array = zcore.open(place)
        assert array.shape == (64,) and (array[...] == 1).all() and array.attrs.asdict() == {"a": 0}
    crew.tell(waiter)
    assert crew.results([waiter]) == [2 if wait == "overwrite" else 3]


@BOTH_WAYS
def test_while_a_helper_waits_for_an_object(place, crew, environment):
    """The thread that is waited for may be one of the pool, which gets no signals: it sees that the plan stopped."""
    array = zcore.open(place, mode="w", shape=(64, 1024), chunks=(1, 1024), dtype="i4", cname="lz4")
    array[...] = 1
    waiter = crew.start(
        place,
        INTERRUPTED
        + """
array = zcore.open(store, mode="r+", threads=4)
def work():
    array[:, 1:] = 5
for _ in range(5):
    print(interrupted(work), flush=True)
ready("again")
work()
print("[]")
""",
        environment=environment,
    )
    with array._binding.locks().object("__zdata__/32.0.blosc"):
        for _ in range(5):
            interrupt(crew, waiter)
            assert crew.line(waiter) == "True"
        assert crew.line(waiter) == "again"
        values = array[...]
        assert (values[:, 0] == 1).all() and (values[32] == 1).all()
        assert all((row == row[0]).all() for row in values[:, 1:])
    crew.tell(waiter)
    crew.results([waiter])
    assert (array[:, 1:] == 5).all()


@BOTH_WAYS
def test_a_handler_that_does_not_raise_does_not_stop_anything(place, crew, environment):
    """Handlers run while a call works, may use zcore themselves, and the result is whole."""
    create_endless(place)
    process = crew.start(
        place,
        """
import signal
array = zcore.open(store, mode="r+", threads=3)
array[:3] = 7
calls = []
def handle(*_):
    calls.append(array[:4].tolist())
    # Again, but not within itself, however slow this machine is.
    signal.setitimer(signal.ITIMER_REAL, 0.001)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001)
n = 10_000
while len(calls) < 3:
    found = array[:n]
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(json.dumps([int((found == -1).sum()), n - 3, calls[0]]))
""",
        environment=environment,
    )
    [[n_found, n_expected, call]] = crew.results([process])
    assert n_found == n_expected and call == [7, 7, 7, -1]
