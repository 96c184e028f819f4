"""Writers of frames that are killed, at one array at the same time, or for long: nothing that was flushed is lost."""
import mmap
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import zcore

FORMATS = {"chunks": {"chunks": (7, 3)}, "shards": {"chunks": (2, 3), "shards": (6, 6)},
           "v2": {"chunks": (7, 3), "zarr_format": 2}, "zmeta": {"chunks": (7, 3), "zarr_format": "zmeta"}}


def frames(first, n):
    return np.arange(first * 5, (first + n) * 5, dtype="i4").reshape(n, 5)


def child(path, seed, counts):
    """Append frames until somebody kills the process, and count those that were flushed."""
    try:
        rng = random.Random(seed)
        array = zcore.open(path, "r+", threads=2)
        w = array.writer(queue=rng.choice((100, 1000, None)))
        n = array.shape[0]
        counts[1] = 1
        while True:
            k = rng.randrange(1, 12)
            w.append(frames(n, k))
            n += k
            if rng.random() < 0.2:
                w.flush()
                counts[0] = n
    finally:
        os._exit(1)


def kill_rounds(path, n_rounds, seed):
    rng = random.Random(seed)
    counts = memoryview(mmap.mmap(-1, 16)).cast("q")
    for i in range(n_rounds):
        counts[1] = 0
        pid = os.fork()
        if pid == 0:
            child(path, seed + i, counts)
        while not counts[1]:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.03)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        found = zcore.open(path)
        assert found.shape[0] >= counts[0], "flushed frames are gone"
        assert np.array_equal(found[...], frames(0, found.shape[0]))
        if found.shape[0] > 3000:
            zcore.open(path, "r+").resize(5, 5)
            counts[0] = 5
    assert set(zcore.verify(path, repair=True).by_kind) <= {"left-over"}


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kills(layout, tmp_path):
    zcore.create_array(tmp_path / "a", shape=(0, 5), dtype="i4", **FORMATS[layout])
    kill_rounds(tmp_path / "a", 6, 1)


@pytest.mark.slow
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_many_kills(layout, tmp_path):
    zcore.create_array(tmp_path / "a", shape=(0, 5), dtype="i4", **FORMATS[layout])
    kill_rounds(tmp_path / "a", 200, random.randrange(10**9))


@pytest.mark.parametrize("lock", ["on", "file"])
def test_processes_at_one_array(tmp_path, lock):
    zcore.create_array(tmp_path / "a", shape=(0, 5), dtype="i4", chunks=(7, 3))
    code = textwrap.dedent("""
        import sys, numpy as np, zcore
        me = int(sys.argv[2])
        rng = np.random.default_rng(me)
        with zcore.open(sys.argv[1], "r+", threads=2).writer(queue=2000) as w:
            for i in range(300):
                w.append(np.full(5, me * 1000 + i, "i4"))
                if rng.random() < 0.05:
                    w.flush()
    """)
    running = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "a", str(me)],
                                env={**os.environ, "ZCORE_LOCK": lock}) for me in range(3)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    found = zcore.open(tmp_path / "a")[...]
    assert (found == found[:, :1]).all()
    for me in range(3):
        assert [value % 1000 for value in found[:, 0].tolist() if value // 1000 == me] == list(range(300))


@pytest.mark.slow
@pytest.mark.parametrize("layout", FORMATS)
def test_a_million_frames(layout, tmp_path):
    settings = {**FORMATS[layout], "chunks": (600, 3), **({"shards": (6000, 6)} if layout == "shards" else {})}
    array = zcore.create_array(tmp_path / "a", shape=(0, 5), dtype="i4", **settings)
    rng = random.Random(layout)
    n = 0
    with array.writer(queue=rng.choice((100_000, 1_000_000))) as w:
        while n < 1_000_000:
            k = rng.choice((1, 1, 2, rng.randrange(1, 2000)))
            w.append(frames(n, k))
            n += k
            if rng.random() < 0.01:
                w.flush()
                assert array.shape == (n, 5)
    assert np.array_equal(array[...], frames(0, n))
