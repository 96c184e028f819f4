"""Copies and checks that are spread over the workers of a client: of distributed, and of concurrent.futures."""
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np
import pytest

import zcore
from zcore.tools import spread
from zcore.tools.copy import copy as copy_module
from zcore.tools.copy import destinations, transfer


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as executor:
        yield executor


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    import dask

    with dask.config.set({"distributed.worker.daemon": True}), distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    import distributed

    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def tree(tmp_path):
    rng = np.random.default_rng(0)
    group = zcore.create_group(tmp_path / "source", attributes={"a": 1})
    group.create_array("v3", shape=(300, 200), chunks=(20, 30), dtype="f4")[...] = rng.random((300, 200), "f4")
    group.create_array("shards", shape=(300, 200), chunks=(20, 25), shards=(100, 100),
                       dtype="i4")[50:, 20:90] = rng.integers(0, 99, (250, 70))
    group.create_array("below/text", shape=(7,), chunks=(2,), dtype=str)[...] = list("abcdefg")
    group.create_array("empty", shape=(1000, 1000), chunks=(10, 10), dtype="u1", fill_value=3)
    return group


def arrays_of(node):
    return {path: found for path, found in node.members(max_depth=None) if isinstance(found, zcore.Array)}


def assert_same(found, expected):
    assert arrays_of(found).keys() == arrays_of(expected).keys()
    for path, array in arrays_of(expected).items():
        assert np.array_equal(arrays_of(found)[path][...], array[...]), path
    assert dict(found.attrs) == dict(expected.attrs)


WAYS = {"as stored": {}, "v2": {"zarr_format": 2, "shards": False}, "rechunked": {"chunks": (50, 40), "shards": False},
        "little memory": {"chunks": (300, 2), "shards": False, "memory": 40_000}, "f8": {"dtype": "f8"}}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_the_same_as_without_workers(tree, tmp_path, pool, way):
    if way in ("rechunked", "little memory", "f8"):
        keywords = [(tree[name], name) for name in ("v3", "shards")]
    else:
        keywords = [(tree, "all")]
    for source, name in keywords:
        here = zcore.copy(source, tmp_path / "here" / name, **WAYS[way])
        told = []
        there = zcore.copy(source, tmp_path / "there" / name, client=pool, progress=lambda *n: told.append(n),
                           **WAYS[way])
        if isinstance(source, zcore.Group):
            assert_same(there, here)
        else:
            assert there.metadata == here.metadata
            assert np.array_equal(there[...], source[...])
        assert told[-1][0] == told[-1][1]
        assert zcore.verify(tmp_path / "there" / name).ok
        files = [sorted(path.relative_to(tmp_path / top).as_posix() for path in (tmp_path / top).rglob("*"))
                 for top in ("here", "there")]
        assert files[0] == files[1]


def test_distributed(tree, tmp_path, client):
    assert_same(zcore.copy(tree, tmp_path / "a", client=client), tree)
    found = zcore.copy(tree["v3"], tmp_path / "b", chunks=(70, 70), client=client)
    assert np.array_equal(found[...], tree["v3"][...])
    report = zcore.verify(tmp_path / "a", client=client)
    assert report.ok and report.n_objects == zcore.verify(tmp_path / "a").n_objects


@pytest.mark.parametrize("way", ["rechunked", "little memory", "f8"])
def test_workers_that_are_threads_of_one_process_share_no_memory(tree, tmp_path, way):
    """Executors of threads pass the work as it is, and distributed unpickles it once for all threads of a worker."""
    with ThreadPoolExecutor(8) as threads:
        for i in range(3):
            copied = zcore.copy(tree["v3"], tmp_path / str(i), client=threads, **WAYS[way])
            assert np.array_equal(copied[...], tree["v3"][...])


def test_verify_of_an_array_without_elements(tmp_path, pool):
    zcore.create_array(tmp_path / "a", shape=(3, 0, 2), dtype="f4")
    report = zcore.verify(tmp_path / "a", client=pool)
    assert report.ok and report.n_arrays == 1


def test_selections(tree, tmp_path, pool):
    found = zcore.copy(tree["v3"], tmp_path / "a", selection=np.s_[::-2, 7], client=pool, chunks=(11,))
    assert np.array_equal(found[...], tree["v3"][::-2, 7])


def test_verify_finds_the_same_in_the_same_order(tree, tmp_path, pool):
    objects = sorted((tmp_path / "source" / "v3" / "c").rglob("*"))
    for n, path in enumerate(path for path in objects if path.is_file()):
        if n % 7 == 0:
            path.write_bytes(path.read_bytes()[:20])
        elif n % 7 == 3:
            path.write_bytes(path.read_bytes()[:-1] + b"\0")
    here, there = zcore.verify(tmp_path / "source"), zcore.verify(tmp_path / "source", client=pool)
    assert len(here.problems) > 20
    assert sorted(map(str, there.problems)) == sorted(map(str, here.problems))
    assert (there.n_objects, there.n_bytes) == (here.n_objects, here.n_bytes)
    zcore.verify(tmp_path / "source", client=pool, repair=("damaged", "truncated"))
    assert zcore.verify(tmp_path / "source").ok


@pytest.mark.parametrize(("source", "destination", "sentence"), [
    ("memory", "a", "cannot open the source"), ("source", "memory", "cannot open the destination"),
    ("source", "a.zip", "one file"), ("source", "a.npz", "one file"),
])
def test_places_that_workers_cannot_open_are_refused(tree, tmp_path, pool, source, destination, sentence):
    memory = zcore.MemoryStore()
    zcore.create_array(memory, shape=(3,), dtype="i4")
    places = [memory if place == "memory" else tmp_path / place for place in (source, destination)]
    with pytest.raises(ValueError, match=sentence):
        zcore.copy(*places, client=pool)
    assert {path.name for path in tmp_path.iterdir()} == {"source"}
    if source == "memory":
        with pytest.raises(ValueError, match="cannot open"):
            zcore.verify(memory, client=pool)


def test_workers_that_do_not_see_the_array_between_two_passes(tree, tmp_path, monkeypatch):
    """As on another host, in a copy to a service."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(copy_module, "Slabs", lambda *args: transfer.Slabs(*args[:4], destinations.Work(), *args[5:]))

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, *work):
            (tmp_path / "tmp").rename(tmp_path / "hidden")
            future = super().submit(*pickle.loads(pickle.dumps(work)))
            future.exception()
            (tmp_path / "hidden").rename(tmp_path / "tmp")
            return future

    with Elsewhere(1) as client, pytest.raises(zcore.StoreError, match="; workers on other hosts .* TMPDIR "):
        zcore.copy(tree["v3"], tmp_path / "copy", client=client, **WAYS["little memory"])
    assert os.listdir(tmp_path / "tmp") == []


def test_what_is_no_client_is_refused(tree, tmp_path):
    with pytest.raises(TypeError, match="distributed.Client"):
        zcore.copy(tree, tmp_path / "a", client="tcp://scheduler")
    with pytest.raises(TypeError, match="distributed.Client"):
        zcore.verify(tree, client=3)


def test_a_damaged_chunk_ends_the_copy_with_its_error(tree, tmp_path, pool):
    path = next(path for path in (tmp_path / "source" / "v3" / "c").rglob("*") if path.is_file())
    raw = path.read_bytes()
    path.write_bytes(raw[:30])
    with pytest.raises(zcore.ChunkError) as caught:
        zcore.copy(tree["v3"], tmp_path / "a", chunks=(7, 7), client=pool)
    assert caught.value.key.endswith("/".join(path.parts[-3:]))
    assert not (tmp_path / "a").exists()
    path.write_bytes(raw)
    assert np.array_equal(zcore.copy(tree["v3"], tmp_path / "a", chunks=(7, 7), client=pool)[...], tree["v3"][...])


class _Repeating:
    """A client that does each piece twice, as a scheduler may, and some of them late."""

    def __init__(self, pool):
        self._pool = pool

    def submit(self, function, *arguments):
        self._pool.submit(function, *arguments)
        return self._pool.submit(function, *arguments)


def test_pieces_that_are_done_twice_change_nothing(tree, tmp_path, pool):
    found = zcore.copy(tree["v3"], tmp_path / "a", chunks=(7, 9), client=_Repeating(pool))
    pool.submit(int).result()
    assert np.array_equal(found[...], tree["v3"][...])


@pytest.mark.parametrize("attributes", [None, {"new": True}])
def test_a_late_piece_does_not_write_to_another_copy(tree, tmp_path, attributes):
    """A worker that goes on after its copy has ended finds another array where it was, maybe with an equal document."""
    from zcore.tools.copy.transfer import StoredTarget, _pass_on_worker, move_slab

    source = tree["v3"]
    first = zcore.create_array(tmp_path / "t", shape=(300, 200), chunks=(50, 50), dtype="f4")
    import functools
    import pickle

    from zcore.tools.copy.sources import open_source
    with open_source(source, "", None, None) as opened:
        target = StoredTarget(first._binding)
        moves = pickle.dumps(functools.partial(move_slab, opened.nodes[0][1], target, (50, 50), None))
    pickle.loads(moves)(0)
    assert np.array_equal(first[:50, :50], source[:50, :50])
    late, objects = pickle.loads(moves), pickle.dumps((first, first, 1 << 20, False, [("c/0/0", "c/0/0")]))
    _pass_on_worker(*pickle.loads(objects))
    zcore.create_array(tmp_path / "t", shape=(300, 200), chunks=(50, 50), dtype="f4", overwrite=True,
                       attributes=attributes)
    for piece in (late, pickle.loads(moves)):
        with pytest.raises(zcore.ZcoreError):
            piece(0)
    with pytest.raises(zcore.ZcoreError, match="another copy has taken this place"):
        _pass_on_worker(*pickle.loads(objects))
    assert not zcore.open(tmp_path / "t")[...].any()


_KILLED_DRIVER = """
    import os, sys, signal
    from concurrent.futures import ThreadPoolExecutor
    import zcore

    class Client:
        n = 0
        def __init__(self): self.pool = ThreadPoolExecutor(2)
        def submit(self, *call):
            Client.n += 1
            if Client.n == int(sys.argv[3]):
                os.kill(os.getpid(), signal.SIGKILL)
            return self.pool.submit(*call)

    zcore.copy(sys.argv[1], sys.argv[2], chunks=(7, 200), memory=40_000, client=Client())
"""


@pytest.mark.parametrize("after", [1, 5, 20])
def test_a_killed_driver_is_followed_by_one_that_goes_on(tree, tmp_path, pool, after):
    source = tmp_path / "source" / "v3"
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(_KILLED_DRIVER))
    killed = subprocess.run([sys.executable, script, source, tmp_path / "a", str(after)], env={
        **os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(zcore.__file__))})
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "a").exists()
    found = zcore.copy(source, tmp_path / "a", chunks=(7, 200), memory=40_000, client=pool)
    assert np.array_equal(found[...], tree["v3"][...])


def test_a_broken_pool_is_an_error_and_the_copy_goes_on_later(tree, tmp_path, pool):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as mortal:
        mortal.submit(int).result()
        (worker,) = mortal._processes
        threading.Timer(0.2, os.kill, (worker, signal.SIGKILL)).start()

        class Slow:
            def submit(self, *call):
                time.sleep(0.02)
                return mortal.submit(*call)

        with pytest.raises(BrokenProcessPool):
            zcore.copy(tree["v3"], tmp_path / "a", chunks=(3, 200), client=Slow(), memory=40_000)
            pytest.skip("the copy was faster than the kill")
    assert not (tmp_path / "a").exists()
    found = zcore.copy(tree["v3"], tmp_path / "a", chunks=(3, 200), client=pool, memory=40_000)
    assert np.array_equal(found[...], tree["v3"][...])


def test_a_worker_of_distributed_that_is_killed_is_replaced(tree, tmp_path, cluster, client):
    done = []

    def told(n, total):
        if not done:
            done.append(n)
            os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

    found = zcore.copy(tree["v3"], tmp_path / "a", chunks=(3, 9), client=client, progress=told)
    assert np.array_equal(found[...], tree["v3"][...])
    assert zcore.verify(tmp_path / "a").ok


def test_nothing_is_begun_behind_a_failure():
    class Client:
        def submit(self, function, *arguments):
            submitted.append(arguments)
            future = Future()
            waiting.append((future, function, arguments))
            return future

    from concurrent.futures import Future

    submitted, waiting = [], []

    def fail(piece):
        raise ValueError(piece)

    found = spread.spread(Client(), fail, range(10))
    thread = threading.Timer(0.1, lambda: waiting[3][0].set_exception(ValueError("three")))
    thread.start()
    with pytest.raises(ValueError, match="three"):
        list(found)
    assert len(submitted) == 10
    assert sum(future.cancelled() for future, _, _ in waiting) == 9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(10))
def test_two_hundred_killed_workers_lose_nothing(tmp_path, part):
    """Misaligned regions of dask, written by a cluster whose workers are killed at random, twenty in each part.

    distributed sometimes does not replace a worker that was killed early, and waits for it. Such a cluster is given up
    if no worker is in a call of zcore. Another cluster writes the same elements again.
    """
    distributed = pytest.importorskip("distributed")
    import dask.array
    import dask.config

    import zcore.dask

    n, n_killed, n_written, n_given_up = 1200, 0, 0, 0
    rng = np.random.default_rng(part)
    expected = np.arange(n * n, dtype="f8").reshape(n, n)
    target = zcore.create_array(tmp_path / "a", shape=(n, n), chunks=(100, 100), dtype="f8")
    source = dask.array.fromfunction(lambda i, j: i * n + j, shape=(n, n), chunks=(77, 130), dtype="f8")
    begun = time.monotonic()
    while n_killed < 20 and time.monotonic() - begun < 200:
        target[...] = 0
        with dask.config.set({"distributed.scheduler.allowed-failures": 10_000}), distributed.LocalCluster(
                n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster, \
                distributed.Client(cluster) as client:
            writing = client.compute(zcore.dask.store(source, target, compute=False))
            for _ in range(4):
                time.sleep(rng.random() * 0.3)
                alive = [worker.pid for worker in list(cluster.scheduler.workers.values())]
                # A worker that the scheduler still counts may have been killed before.
                with contextlib.suppress(ProcessLookupError):
                    if alive:
                        os.kill(int(rng.choice(alive)), signal.SIGKILL)
                        n_killed += 1
            try:
                writing.result(timeout=20)
            except TimeoutError:
                assert "zcore" not in str(client.call_stack())
                n_given_up += 1
                continue
        assert np.array_equal(target[...], expected)
        n_written += 1
    assert n_killed >= 20 and n_written > n_given_up
    zcore.dask.store(source, target)
    assert np.array_equal(target[...], expected)
    # Of killed writers temporary files may be left, too young to be removed.
    assert {problem.kind for problem in zcore.verify(tmp_path / "a").problems} <= {"left-over"}
