"""Ranks that share arrays: threads in the place of ranks, and real ones."""
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import zcore
import zcore.mpi
from tests.each import each

ROOT = Path(__file__).resolve().parents[2]


class Rank:
    """A communicator whose ranks are threads; what they send is pickled, as by MPI."""

    def __init__(self, rank, shared):
        self._rank, self._shared = rank, shared

    def Get_rank(self):
        return self._rank

    def Get_size(self):
        return len(self._shared["values"])

    def allgather(self, value):
        self._shared["values"][self._rank] = pickle.dumps(value)
        self._shared["barrier"].wait(20)
        found = [pickle.loads(value) for value in self._shared["values"]]
        self._shared["barrier"].wait(20)
        return found

    def alltoall(self, values):
        return [sent[self._rank] for sent in self.allgather(values)]

    def bcast(self, value, root=0):
        return self.allgather(value if self._rank == root else None)[root]


def ranks(n, work):
    """Run ``work(comm)`` on so many ranks; return what each returned, or its exception."""
    shared = {"values": [None] * n, "barrier": threading.Barrier(n)}
    found = [None] * n

    def run(rank):
        try:
            found[rank] = work(Rank(rank, shared))
        except BaseException as exc:
            found[rank] = exc

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    return found


@each(("length", "chunk", "size"), [(100, 10, 4), (101, 10, 3), (5, 2, 8), (0, 3, 2), (7, 100, 3),
                                                       (64, 1, 5)])
def test_aligned_boxes_cover_the_array_and_cut_no_object(length, chunk, size):
    z = zcore.zeros((3, length), chunks=(3, chunk))
    covered = []
    for rank in range(size):
        box = zcore.mpi.box_of(rank, size, z, axis=-1)
        assert box[0] == slice(None)
        assert box[1].start % chunk == 0 or box[1].start == length
        covered += range(box[1].start, box[1].stop)
    assert covered == list(range(length))
    if length >= size * chunk:
        lengths = [box.stop - box.start for box in (zcore.mpi.box_of(r, size, z, 1)[1] for r in range(size))]
        assert max(lengths) - min(lengths) <= 2 * chunk


def test_boxes_of_shards_and_of_chunks_that_differ():
    z = zcore.zeros((100,), chunks=(5,), shards=(20,))
    assert [zcore.mpi.box_of(r, 3, z)[0] for r in range(3)] == [slice(0, 40), slice(40, 60), slice(60, 100)]
    z = zcore.create_array(zcore.MemoryStore(), shape=(10,), chunks=[[1, 2, 3, 4]], dtype="i4")
    assert [zcore.mpi.box_of(r, 2, z)[0] for r in range(2)] == [slice(0, 6), slice(6, 10)]
    with pytest.raises(ValueError, match=r"axis is 1, the array has the shape \(10,\)"):
        zcore.mpi.box_of(0, 1, z, 1)
    with pytest.raises(ValueError, match="rank is 2"):
        zcore.mpi.box_of(2, 2, z)


@pytest.mark.parametrize("keywords", [{}, {"shards": (20, 6)}, {"zarr_format": 2}])
def test_create_write_and_append(tmp_path, keywords):
    def work(comm):
        z = zcore.mpi.create(comm, tmp_path / "a", shape=(40, 6), chunks=(10, 3), dtype="i4", **keywords)
        z[zcore.mpi.aligned_box(comm, z)] = comm.Get_rank()
        comm.allgather(None)
        for row in range(comm.Get_rank(), 40, comm.Get_size()):
            z[row] = row
        comm.allgather(None)
        shape = zcore.mpi.append(comm, z, np.full((comm.Get_rank(), 6), 100 + comm.Get_rank()))
        zcore.mpi.flush(comm, z)
        again = zcore.mpi.open(comm, tmp_path / "a")
        return shape, z[...].tolist(), again[...].tolist()

    expected = [[row] * 6 for row in range(40)] + [[100 + r] * 6 for r in range(4) for _ in range(r)]
    assert ranks(4, work) == [((46, 6), expected, expected)] * 4


def test_only_one_rank_asks_for_the_document(tmp_path, monkeypatch):
    zcore.create_array(tmp_path / "a", shape=(4,), dtype="i4")[...] = 7
    from zcore.engine.array_binding import ArrayBinding
    from zcore.stores.directory.store import DirectoryStore

    asked = []
    for cls, name in ((DirectoryStore, "get_first"), (DirectoryStore, "get"), (ArrayBinding, "look")):
        before = getattr(cls, name)

        def counted(*arguments, before=before, name=name):
            asked.append((threading.current_thread().name, name))
            return before(*arguments)

        monkeypatch.setattr(cls, name, counted)
    found = ranks(4, lambda comm: zcore.mpi.open(comm, tmp_path / "a").shape)
    assert found == [(4,)] * 4
    assert len({thread for thread, _ in asked}) == 1


def test_all_ranks_have_the_new_shape(tmp_path):
    def work(comm):
        z = zcore.mpi.create(comm, tmp_path / "a", shape=(4, 2), chunks=(2, 2), dtype="i4")
        zcore.mpi.resize(comm, z, (9, 2))
        z[zcore.mpi.aligned_box(comm, z)] = 5
        comm.allgather(None)
        return z.shape, int(z[...].sum())

    assert ranks(3, work) == [((9, 2), 90)] * 3


def test_two_hundred_appends(tmp_path):
    def work(comm):
        z = zcore.mpi.create(comm, tmp_path / "a", shape=(0,), chunks=(7,), dtype="i4")
        for k in range(50):
            zcore.mpi.append(comm, z, [comm.Get_rank() + 4 * k])
        return z.shape

    assert ranks(4, work) == [(200,)] * 4
    assert zcore.open(tmp_path / "a")[...].tolist() == list(range(200))


class TestErrors:
    def test_of_the_first_rank(self, tmp_path):
        found = ranks(3, lambda comm: zcore.mpi.open(comm, tmp_path / "nothing"))
        assert [type(error) for error in found] == [zcore.NodeNotFoundError] * 3
        assert [getattr(error, "__notes__", None) for error in found] == [None, *[["raised on rank 0"]] * 2]
        zcore.create_array(tmp_path / "a", shape=(3,), dtype="i4")
        found = ranks(3, lambda comm: zcore.mpi.create(comm, tmp_path / "a", shape=(3,), dtype="i4"))
        assert [type(error) for error in found] == [zcore.NodeExistsError] * 3

    def test_of_another_rank(self, tmp_path):
        def work(comm):
            z = zcore.mpi.create(comm, tmp_path / "a", shape=(4, 2), dtype="i4")
            return zcore.mpi.append(comm, z, np.zeros((1, 3 if comm.Get_rank() == 2 else 2)))

        found = ranks(3, work)
        assert [type(error) for error in found] == [ValueError] * 3
        assert found[0].__notes__ == ["raised on rank 2"] and "(1, 3)" in str(found[0])
        assert zcore.open(tmp_path / "a").shape == (4, 2)

    def test_of_a_rank_that_cannot_write(self, tmp_path, monkeypatch):
        def work(comm):
            z = zcore.mpi.create(comm, tmp_path / "a", shape=(4, 2), chunks=(1, 2), dtype="i4")
            return zcore.mpi.append(comm, z, np.full((1, 2), comm.Get_rank()))

        from zcore.engine.array_binding import ArrayBinding
        write = ArrayBinding.write

        def fails(self, box, values, field=None):
            if (values == 1).all():
                raise zcore.StoreError("disk full", errno=28)
            write(self, box, values, field)

        monkeypatch.setattr(ArrayBinding, "write", fails)

        found = ranks(3, work)
        assert [(type(error), error.errno) for error in found] == [(zcore.StoreError, 28)] * 3
        assert zcore.open(tmp_path / "a").shape == (4, 2)

    def test_that_no_pickle_holds(self, tmp_path):
        class Odd(Exception):
            def __init__(self, a, b):
                super().__init__("odd")

        def work(comm):
            zcore.mpi._agree(comm, Odd(1, 2) if comm.Get_rank() == 1 else None)

        found = ranks(2, work)
        assert type(found[0]) is zcore.StoreError and "odd" in str(found[0]) and type(found[1]) is Odd

    def test_of_reading(self, tmp_path):
        zcore.create_array(tmp_path / "a", shape=(4,), dtype="i4")
        found = ranks(2, lambda comm: zcore.mpi.resize(comm, zcore.mpi.open(comm, tmp_path / "a"), (5,)))
        assert [type(error) for error in found] == [zcore.ReadOnlyError] * 2


@pytest.mark.thinned(3, "nbytes", "keywords")
@pytest.mark.parametrize("keywords", [{}, {"shards": (6, 10)}, {"chunks": ((3, 5, 9), (12,))}])
@pytest.mark.parametrize("nbytes", [1, 300, 1 << 26])
def test_boxes_that_share_objects(tmp_path, monkeypatch, keywords, nbytes):
    """Whatever boxes the ranks have: the array is what NumPy makes of them, rank after rank; no lock is taken."""
    monkeypatch.setattr(zcore.mpi.exchange, "ROUND_NBYTES", nbytes)
    rng = np.random.default_rng(0)
    for n in range(6):
        place, size = tmp_path / str(n), 1 + n
        z = zcore.create_array(place, shape=(17, 12), dtype="i4", fill_value=-1, **{"chunks": (3, 5), **keywords})
        with z._binding.exclusive():     # a lock that is taken would wait for ever
            expected = z[...]
            for _ in range(4):
                boxes = [tuple([slice(*sorted(rng.integers(0, length + 1, 2))) for length in z.shape])
                         for _ in range(size)]
                boxes = [box if rng.random() < 0.8 else None for box in boxes]
                values = [None if box is None else rng.integers(0, 999, expected[box].shape) for box in boxes]
                found = ranks(size, lambda comm, place=place, boxes=boxes, values=values: zcore.mpi.write(
                    comm, zcore.open(place, "r+"), boxes[comm.Get_rank()], values[comm.Get_rank()]))
                assert found == [None] * size
                for box, value in zip(boxes, values, strict=True):
                    if box is not None:
                        expected[box] = value
                np.testing.assert_array_equal(z[...], expected)


@pytest.mark.parametrize(("box", "values", "error"), [
    ((slice(0, 4, 2),), 1, ValueError), ((3,), 1, ValueError), ((slice(0, 4),) * 3, 1, ValueError),
    ((slice(0, 4),), np.zeros(9), ValueError), ((slice(0, 4),), "x", ValueError)])
def test_a_box_of_one_rank_that_is_wrong(tmp_path, box, values, error):
    zcore.create_array(tmp_path / "a", shape=(8, 8), chunks=(4, 4), dtype="i4")

    def work(comm):
        array = zcore.open(tmp_path / "a", "r+")
        zcore.mpi.write(comm, array, *((box, values) if comm.Get_rank() == 1 else (slice(4, 8), 5)))

    assert [type(found) for found in ranks(3, work)] == [error] * 3
    assert (zcore.open(tmp_path / "a")[...] == 0).all()


def test_a_rank_that_cannot_write_its_objects(tmp_path):
    """The others go on, and all have its error."""
    z = zcore.create_array(tmp_path / "a", shape=(8, 4), chunks=(4, 4), dtype="i4")
    (tmp_path / "a" / "c" / "0" / "0").mkdir(parents=True)      # where the object should be
    found = ranks(2, lambda comm: zcore.mpi.write(comm, zcore.open(tmp_path / "a", "r+"),
                                                  slice(4 * comm.Get_rank(), 4 * comm.Get_rank() + 4), 7))
    assert all([isinstance(error, zcore.StoreError) for error in found])
    assert (z[4:] == 7).all()


def has_mpi():
    try:
        import mpi4py  # noqa: F401
    except ImportError:
        return False
    return shutil.which("mpirun") is not None


def mpirun(n, *command, **keywords):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PYTHONPATH": str(Path(zcore.__file__).parents[1])}
    return subprocess.run(["mpirun", "--oversubscribe", "-n", str(n), sys.executable, *map(str, command)], text=True,
                          capture_output=True, timeout=200, env=environment, **keywords)


@pytest.mark.skipif(not has_mpi(), reason="needs mpi4py and mpirun")
class TestRealRanks:
    def test_the_example(self, tmp_path):
        ended = mpirun(4, ROOT / "examples/mpi/write_together.py", tmp_path / "a")
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout == "4 ranks wrote (110, 64)\n"

    @pytest.mark.parametrize("rounds", [6, pytest.param(1000, marks=pytest.mark.slow)])
    def test_misaligned_ranks_lose_nothing(self, tmp_path, rounds):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent("""
            import sys
            import numpy as np
            from mpi4py import MPI
            import zcore.mpi
            comm = MPI.COMM_WORLD
            rank, size = comm.Get_rank(), comm.Get_size()
            for lock in ("on", "file"):
                z = zcore.mpi.create(comm, sys.argv[1] + lock, shape=(130, 7), chunks=(10, 7), dtype="i4", lock=lock)
                for k in range(int(sys.argv[2])):
                    for row in range(rank, 130, size):
                        z[row] = row * 10000 + k
                    comm.Barrier()
                    wrong = int((z[...] != np.arange(130)[:, None] * 10000 + k).sum())
                    assert wrong == 0, (lock, k, wrong)
                    comm.Barrier()
            """))
        ended = mpirun(4, program, tmp_path / "a", rounds)
        assert ended.returncode == 0, ended.stderr[-2000:]

    @pytest.mark.parametrize("rounds", [5, pytest.param(1000, marks=pytest.mark.slow)])
    def test_ranks_that_exchange_lose_nothing_without_locks(self, tmp_path, rounds):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent("""
            import sys
            import numpy as np
            from mpi4py import MPI
            import zcore.mpi
            comm = MPI.COMM_WORLD
            rank, size = comm.Get_rank(), comm.Get_size()
            z = zcore.mpi.create(comm, sys.argv[1], shape=(130, 70), chunks=(20, 70), dtype="i4", lock=None)
            start, stop = 130 * rank // size, 130 * (rank + 1) // size
            for k in range(int(sys.argv[2])):
                zcore.mpi.write(comm, z, slice(start, stop), np.arange(start, stop)[:, None] * 10000 + k)
                wrong = int((z[...] != np.arange(130)[:, None] * 10000 + k).sum())
                assert wrong == 0, (k, wrong)
                comm.Barrier()
            """))
        ended = mpirun(4, program, tmp_path / "a", rounds)
        assert ended.returncode == 0, ended.stderr[-2000:]

    def test_a_rank_that_is_killed_leaves_an_array_that_is_whole(self, tmp_path):
        program = tmp_path / "program.py"
        program.write_text(textwrap.dedent("""
            import os, signal, sys, threading
            import numpy as np
            from mpi4py import MPI
            import zcore.mpi
            comm = MPI.COMM_WORLD
            z = zcore.mpi.create(comm, sys.argv[1], shape=(400, 500), chunks=(10, 500), dtype="i4")
            if comm.Get_rank() == 1:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            k = 0
            while True:
                k += 1
                z[comm.Get_rank()::4] = k
            """))
        ended = mpirun(4, program, tmp_path / "a")
        assert ended.returncode != 0
        z = zcore.open(tmp_path / "a", "r+")
        z[3] = 5
        assert (z[3] == 5).all()
        assert all(len(set(row.tolist())) == 1 for row in z[...])
        # Of the killed rank a temporary file may be left, which is too young to be removed.
        assert {problem.kind for problem in zcore.verify(tmp_path / "a").problems} <= {"left-over"}
