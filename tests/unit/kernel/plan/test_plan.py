"""Plans: which tasks there are, who takes them, what is left of a plan that stopped, and what its failure keeps."""
import gc
import os
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.descriptors import descriptors
from tests.each import each
from zcore.errors import ChunkError, NodeNotFoundError, SelectionError, StoreError
from zcore.indexing.numpy import indexed
from zcore.kernel.codec.program import Program
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.shard_index import ShardProgram
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select.box import Box, basic, whole
from zcore.kernel.select.open_array import OpenArray
from zcore.kernel.select.points import Boxes

TEMPLATE = (b"data/", b".", b".x")


def listed(shape, chunks, starts=None, steps=None, counts=None, template=TEMPLATE, directory=None, **options):
    """Return a plan without files and elements: its tasks can only be listed."""
    ndim = len(shape)
    array = OpenArray(shape, chunks, program=None, fill=bytes(4), template=template, directory=directory)
    box = Box(starts or (0,) * ndim, steps or (1,) * ndim, counts or shape)
    return WritePlan(array, box, None, PlanOptions(token=1, **options))


def drain(plan):
    taken = []
    while (task := plan.begin_task()) >= 0:
        taken.append(task)
    return taken


def test_tasks_are_the_chunks_of_the_box_in_order():
    plan = listed((10, 9), (4, 3), (3, 4), (1, 1), (4, 4))
    assert plan.n_tasks == plan.n_left == 4
    assert drain(plan) == [0, 1, 2, 3] and plan.n_left == 0 and plan.begin_task() == -1
    assert [plan.task(i)[:2] for i in range(4)] == [
        ("data/0.1.x", (0, 1)), ("data/0.2.x", (0, 2)), ("data/1.1.x", (1, 1)), ("data/1.2.x", (1, 2))]
    assert plan.task(0)[2:] == ((slice(3, 4, 1), slice(1, 3, 1)), (slice(0, 1, 1), slice(0, 2, 1)), False)


def test_elements_that_lie_further_apart_than_32_bits_count():
    shape, far = (4, 2**34), np.s_[7:2**33:2**32]
    array = OpenArray(shape, (1, 2**34), program=None, fill=bytes(4), template=TEMPLATE)
    for selection in (indexed(([3, 0, 2], far), shape), Boxes([basic((3, far), shape)])):
        inside = WritePlan(array, selection, None, PlanOptions(token=1)).task(0)[2]
        assert inside[1].ravel().tolist() == [7, 7 + 2**32]


@each(("start", "step", "count", "expected"), [
    (0, 1, 10, [True, True, True]),
    (8, 1, 2, [True]),            # the last chunk, cut off by the border
    (1, 1, 9, [False, True, True]),
    (0, 2, 5, [False, False, False]),
    (9, -1, 10, [True, True, True]),
    (8, 4, 1, [False]),
])
def test_covered_chunks(start, step, count, expected):
    plan = listed((10,), (4,), (start,), (step,), (count,))
    assert sorted(plan.task(i)[4] for i in range(plan.n_tasks)) == sorted(expected)


def test_a_plan_of_nothing():
    for plan in (listed((0,), (4,)), listed((10, 10), (4, 4), counts=(10, 0))):
        assert plan.n_tasks == plan.n_left == 0 and plan.begin_task() == -1


def test_a_plan_without_dimensions():
    plan = listed((), ())
    assert drain(plan) == [0]
    assert plan.task(0) == ("data/.x", (), (), (), True)


def test_selected_tasks():
    plan = listed((10, 10), (4, 4), tasks=[7, 0, 5])
    assert plan.n_left == 3 and drain(plan) == [7, 0, 5] and plan.n_left == 0
    assert drain(listed((10, 10), (4, 4), tasks=[])) == []


@given(n_tasks=st.integers(0, 12), steps=st.lists(st.lists(st.booleans(), max_size=6), max_size=6), data=st.data())
def test_plans_that_resume_each_other_do_every_task_once(n_tasks, steps, data):
    """Each round takes some tasks, gives some of them back undone, and leaves the rest to the next."""
    tasks = None if data.draw(st.booleans()) else data.draw(st.permutations(range(n_tasks)))
    plan = listed((n_tasks,), (1,), tasks=tasks)
    plan.spread(data.draw(st.integers(0, 5)))
    done = []
    for round_ in steps:
        taken = []
        for is_done in round_:
            task = plan.begin_task()
            if task < 0:
                break
            taken.append((task, is_done))
        for task, is_done in taken:
            if is_done:
                done.append(task)
            else:
                plan.leave_stale(task)
        assert plan.stale == any(not is_done for _, is_done in taken)
        plan = listed((n_tasks,), (1,), tasks=plan.undone())
        plan.spread(data.draw(st.integers(0, 5)))
        assert plan.n_left == n_tasks - len(done) and not plan.stale
    assert sorted(done + drain(plan)) == list(range(n_tasks))


@pytest.mark.parametrize(("n_threads", "expected"), [
    (0, [0, 1, 2, 3, 4, 5, 6]), (1, [0, 1, 2, 3, 4, 5, 6]), (2, [0, 4, 1, 5, 2, 6, 3]), (3, [0, 3, 5, 1, 4, 6, 2]),
    (100, [0, 1, 2, 3, 4, 5, 6]),
])
def test_threads_of_a_spread_plan_begin_in_different_parts_of_the_selection(n_threads, expected):
    plan = listed((7,), (1,))
    plan.spread(n_threads)
    assert drain(plan) == expected


def test_threads_that_read_files_begin_in_different_parts_of_the_selection(tmp_path):
    array = OpenArray((6, 4), (2, 2), program=None, fill=bytes(4), template=TEMPLATE, directory=os.fsencode(tmp_path))
    box = whole((6, 4))
    assert drain(ReadPlan(array, box, None, PlanOptions(n_threads=2))) == [0, 3, 1, 4, 2, 5]
    assert drain(ReadPlan(array, box, None, PlanOptions(n_threads=1))) == list(range(6))
    assert drain(ReadPlan(array, box, None, PlanOptions(n_threads=2, opens_files=False))) == list(range(6))


def test_a_stopped_plan_gives_no_task():
    plan = listed((4,), (1,))
    assert not plan.stopped and plan.begin_task() == 0
    plan.cancel()
    assert plan.stopped and plan.begin_task() == -1 and plan.n_left == 3 and not plan.stale
    plan.raise_failure(())
    plan = listed((4,), (1,))
    plan.leave_stale(plan.begin_task())
    assert plan.stopped and plan.stale
    plan.raise_failure(())


def test_no_task_is_lost_between_plans(tmp_path):
    """The document changes again and again while several threads take the last tasks of a write."""
    shape, chunks = (8, 4096), (1, 4096)
    array = zcore.open(tmp_path, mode="w", shape=shape, chunks=chunks, dtype="i4", cname="lz4", threads=8)
    stop = threading.Event()
    left = 0      # a call that meets a change in each of its tries is an error in the end

    def touch():
        nonlocal left
        n = 0
        while not stop.wait(0.0002):
            if left > 0:
                left -= 1
                n += 1
                os.utime(tmp_path / "__zmeta__", ns=(n, n))

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        for i in range(1, 61):
            left = 4
            array[:, 1:] = i
            left = 4
            assert (array[:, 1:] == i).all()
    finally:
        stop.set()
        thread.join()


@each("options", [
    {"starts": (11,)}, {"counts": (11,)}, {"starts": (-1,)}, {"steps": (0,)}, {"starts": (0,), "steps": (-1,)},
    {"starts": (5,), "steps": (2**62,), "counts": (3,)},
])
def test_a_box_outside(options):
    with pytest.raises(SelectionError, match="does not fit dimension 0"):
        listed((10,), (4,), **options)


def test_limits():
    with pytest.raises(ValueError, match="65 dimensions"):
        listed((1,) * 65, (1,) * 65)
    with pytest.raises(ValueError, match="too long"):
        listed((10,), (4,), template=(b"d" * 4400, b".", b""))
    assert listed((1,) * 64, (1,) * 64).task(0)[0] == "data/" + ".".join("0" * 64) + ".x"


def test_the_document_of_a_plan(tmp_path):
    array = zcore.open(tmp_path / "a", mode="w", shape=4, chunks=2, dtype="i4", cname="lz4")
    plan = read_plan(array, np.empty(4, "i4"))
    assert plan.is_current and plan.hold_document() and not plan.is_old
    os.rename(tmp_path / "a", tmp_path / "b")
    assert not plan.is_current
    os.rename(tmp_path / "b", tmp_path / "a")
    assert plan.is_current
    document = tmp_path / "a" / "__zmeta__"
    raw = document.read_bytes()
    document.unlink()
    document.write_bytes(raw)
    # The same bytes in another file, whatever its times are.
    assert not plan.is_current
    assert not read_plan(array, np.empty(4, "i4")).hold_document()


def test_other_bytes_in_the_same_document_are_seen(tmp_path):
    array = zcore.open(tmp_path / "a", mode="w", shape=4, chunks=2, dtype="i4", cname="lz4")
    document = tmp_path / "a" / "__zmeta__"
    binding = array._binding
    raw = document.read_bytes()
    document.write_bytes(raw.replace(b'"lz4"', b'"lz5"'))
    # As if the file system had not noticed.
    view = binding.view._replace(identity=array.store.identity("__zmeta__"), trusted=False)
    plan = ReadPlan(binding._open(view, view.metadata), whole((4,)), np.empty(4, "i4"))
    assert plan.is_current and not plan.hold_document()


def read_plan(array, out):
    return ReadPlan(array._binding.opened(array._binding.view), whole(array.shape), out)


@pytest.mark.parametrize(("name", "error"), [("missing", NodeNotFoundError), ("file", NodeNotFoundError),
                                             ("x" * 300, StoreError)])
def test_a_directory_that_cannot_be_opened(tmp_path, name, error):
    (tmp_path / "file").touch()
    with pytest.raises(error):
        listed((4,), (1,), directory=os.fsencode(tmp_path / name))


def test_run_by_many_threads(tmp_path):
    """Each element is written by exactly one of them; `out` begins as something else."""
    values = np.arange(6000, dtype="i4")
    array = zcore.open(tmp_path, mode="w", shape=6000, chunks=7, dtype="i4", cname="lz4")
    array[...] = values
    out = np.full(6000, -1, "i4")
    plan = read_plan(array, out)
    threads = [threading.Thread(target=plan.run, args=(False,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    plan.run()
    for thread in threads:
        thread.join()
    plan.raise_failure(())
    assert plan.n_left == 0 and np.array_equal(out, values)


def test_the_first_failure_stops_the_plan(tmp_path):
    array = zcore.open(tmp_path, mode="w", shape=6000, chunks=7, dtype="i4", cname="lz4")
    array[...] = 1
    for i in (20, 400):
        (tmp_path / "__zdata__" / f"{i}.blosc").write_bytes(b"damaged")
    plan = read_plan(array, np.empty(6000, "i4"))
    plan.run()
    assert plan.stopped and plan.n_left == 857 + 1 - 21
    with pytest.raises(ChunkError) as caught:
        plan.raise_failure(("blosc",))
    assert caught.value.key == "__zdata__/20.blosc" and caught.value.chunk_coords == (20,)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 4])
def test_a_failed_plan_goes_with_its_exception(tmp_path, way, threads):
    """Array, buffers and descriptors of it are not left to the collector of cycles."""
    array = zcore.open(directory(tmp_path, way), mode="w", shape=(64, 4096), chunks=(8, 1024), dtype="i4", cname="lz4",
                       threads=threads)
    array[...] = 1
    (tmp_path / "__zdata__" / "3.0.blosc").write_bytes(b"damaged")
    out, values = np.empty((64, 4096), "i4"), np.ones((64, 4095), "i4")
    kept = [weakref.ref(out), weakref.ref(values)]
    gc.collect()
    n_open = descriptors()
    gc.disable()
    try:
        with pytest.raises(ChunkError) as caught:
            array.read(out=out)
        del out, caught
        with pytest.raises(ChunkError) as caught:
            array[:, 1:] = values
        del values, caught
        # Helpers let go of a job some moments after it is over.
        for _ in range(1000):
            if not any(ref() is not None for ref in kept):
                break
            threading.Event().wait(0.005)
        assert [ref() for ref in kept] == [None, None]
        assert descriptors() <= n_open
    finally:
        gc.enable()


def test_a_covered_shard_that_is_given_up_stays_to_be_done(tmp_path):
    """Its chunks are encoded when another thread stops the plan; the next plan has to write all of it."""
    class Stopper:
        def encode(self, data, shape):
            plan.cancel()
            return data

    program = Program([("python", Stopper(), 8, 8, True)])
    array = OpenArray((8,), (8,), program=ShardProgram((8,), (2,), program), fill=bytes(4), template=TEMPLATE,
                      directory=os.fsencode(tmp_path))
    elements = np.arange(8, dtype="i4")
    plan = WritePlan(array, whole((8,)), elements, PlanOptions(token=1))
    plan.run()
    assert plan.deferred == [0] and not any(path.is_file() for path in tmp_path.rglob("*"))
    Stopper.encode = lambda self, data, shape: data
    rest = WritePlan(array, whole((8,)), elements, PlanOptions(token=2, tasks=plan.undone()))
    rest.run()
    rest.raise_failure(())
    assert rest.deferred == [] and (tmp_path / "data" / "0.x").is_file()
