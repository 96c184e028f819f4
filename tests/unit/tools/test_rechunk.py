"""By which slabs an array is rechunked: how often objects are read and written, and how much memory that takes."""
import json
import math
import os
import subprocess
import sys
import textwrap
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import zcore
from zcore.tools.rechunk import MAX_READS, n_reads, n_slabs, passes, slab_at

lengths = st.integers(1, 40)
shapes = st.integers(0, 3).flatmap(lambda n: st.tuples(*[st.tuples(*[side] * n) for side in (lengths,) * 3]))


@given(shapes, st.integers(1, 16), st.integers(1, 100_000))
@example(((39, 41), (1, 41), (39, 1)), 8, 3000)
@example(((0, 5), (1, 5), (2, 3)), 4, 100)
def test_slabs_tile_the_array_in_whole_objects_and_fit(parts, itemsize, room):
    shape, source, target = parts
    plan = passes(shape, source, target, itemsize, room)

    def are_whole(slab, unit):
        return all(length % side == 0 or length >= n for length, side, n in zip(slab, unit, shape, strict=True))

    def fits(slab, unit):
        least = math.prod(min(n, side) for n, side in zip(shape, unit, strict=True))
        return math.prod(slab) * itemsize <= max(room, least * itemsize)

    assert are_whole(plan.write, target) and fits(plan.write, target)
    if plan.between is None:
        assert plan.read == plan.write and n_reads(shape, source, plan.write) <= MAX_READS
    else:
        assert are_whole(plan.read, source) and fits(plan.read, source)
        # What is written between is written in whole chunks.
        assert are_whole(plan.read, plan.between)
    count = np.zeros(shape, int)
    for slab in {plan.read, plan.write}:
        for starts, counts in map(partial(slab_at, shape, slab), range(n_slabs(shape, slab))):
            count[tuple(slice(start, start + n) for start, n in zip(starts, counts, strict=True))] += 1
    assert (count == len({plan.read, plan.write})).all()


@given(shapes, st.data())
def test_the_number_of_reads_is_that_of_touched_objects(parts, data):
    shape, source, slab = parts
    n = 0
    for starts, counts in map(partial(slab_at, shape, slab), range(n_slabs(shape, slab))):
        n += math.prod((start + count - 1) // side - start // side + 1
                       for start, count, side in zip(starts, counts, source, strict=True))
    n_objects = math.prod(-(-length // side) for length, side in zip(shape, source, strict=True))
    assert math.isclose(n_reads(shape, source, slab), n / n_objects)


class Counting(zcore.MemoryStore):
    """Counts how often the objects of an array are read and written."""

    def __init__(self):
        super().__init__()
        self.reads, self.writes = Counter(), Counter()

    def get(self, key, byte_range=None):
        self.reads[key] += "/c/" in f"/{key}"
        return super().get(key, byte_range)

    def get_with_identity(self, key, byte_range=None):
        self.reads[key] += "/c/" in f"/{key}"
        return super().get_with_identity(key, byte_range)

    def set(self, key, value):
        self.writes[key] += "/c/" in f"/{key}"
        super().set(key, value)


@pytest.mark.parametrize("memory", ["1 GB", 12000])
@pytest.mark.parametrize("source, target", [
    ((1, 60), (60, 1)), ((60, 1), (1, 60)), ((10, 10), (15, 20)), ((7, 60), (20, 9)), ((60, 60), (1, 1))])
def test_every_object_is_read_and_written_once(source, target, memory):
    values = np.random.default_rng(2).integers(1, 99, (60, 60))
    stores = Counting(), Counting()
    zcore.create_array(stores[0], data=values, chunks=source)
    stores[0].reads.clear()
    new = zcore.copy(stores[0], stores[1], chunks=target, memory=memory, threads=1)
    assert np.array_equal(new[...], values)
    n_times = {count for key, count in stores[0].reads.items() if count}
    assert n_times == {1} if memory == "1 GB" or 1 in (*source, *target) else max(n_times) <= 3
    assert {count for count in stores[1].writes.values() if count} == {1}


SCRIPT = """
import json, sys
import numpy as np, zcore
def peak():
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
path, n, memory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
row = np.arange(n)
if not memory:
    a = zcore.create_array(path + "/a", shape=(n, n), chunks=(1, n), dtype="f8", lock=None)
    for i in range(0, n, 64):
        a[i:i + 64] = (np.arange(i, i + 64)[:, None] * 7 + row) % 1001
    sys.exit()
a = zcore.open(path + "/a")
zcore.copy     # imported
before = peak()
b = zcore.copy(a, path + "/b", chunks=(n, 1), memory=memory)
after = peak()
assert b.chunks == (n, 1)
for j in range(0, n, 64):
    assert (b[:, j:j + 64] == (row[:, None] * 7 + np.arange(j, j + 64)) % 1001).all()
print(json.dumps([before, after]))
"""


def peaks(path, n, memory):
    """Rechunk rows of n x n to columns; returns the most memory of the process before that, and with it."""
    variables = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(zcore.__file__)))
    # The array is made by another process: what that needs would count.
    for allowed in (0, memory):
        ended = subprocess.run([sys.executable, "-c", SCRIPT, str(path), str(n), str(allowed)], env=variables,
                               capture_output=True, text=True, check=True)
    print(ended.stdout)
    return json.loads(ended.stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell the peak of memory")
def test_memory_is_bounded(tmp_path):
    """18 MB with 4 MB allowed."""
    before, after = peaks(tmp_path, 1536, 4_000_000)
    assert after <= before + 8_000_000


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not tell the peak of memory")
def test_two_gigabytes_within_256_megabytes(tmp_path):
    _, after = peaks(tmp_path, 16384, 256_000_000)
    assert after <= 320_000_000


def limited(code, *arguments, seconds=30):
    """Run code in a process that has little time, and little memory."""
    program = "import resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2)\n" + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)], capture_output=True,
                          text=True, timeout=seconds)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_what_exists_bounds_a_copy_to_other_chunks(tmp_path):
    """An array of 2**60 elements of which two chunks are stored: no slab without them is looked at."""
    source = zcore.create_array(tmp_path / "a", shape=(2**30, 2**30), chunks=(64, 64), dtype="i4", fill_value=7)
    source[:64, :64], source[2**29:2**29 + 70, -3:] = 1, 2
    for wanted in ("chunks=(64, 32)", "chunks=(1, 4096), memory=100_000", "dtype='f8'",
                   "selection=(slice(None, None, -1), slice(0, None, 3))"):
        assert limited(f"""
            import sys, zcore
            told = []
            b = zcore.copy(sys.argv[1], zcore.MemoryStore(), {wanted}, progress=lambda *done: told.append(done))
            assert told[-1][0] == told[-1][1] == b.nbytes and len(told) < 1000
            print(b.fill_value, b.nchunks_initialized < 500)
            rows = b[2**29 - 70:2**29 + 70, -1]
            print(rows.tolist().count(2) + int(b[0, 0]))
            """, tmp_path / "a") in ("7 True\n71\n", "7.0 True\n71\n", "7 True\n77\n")


@pytest.mark.parametrize("fill_value", [0, 3])
@pytest.mark.parametrize("memory", [400, 4000, "1 GB"])
@pytest.mark.parametrize("selection", [None, np.s_[5:, ::-2], np.s_[::-3, 4], np.s_[7, 1:]])
def test_sparse_arrays_come_to_other_chunks(tmp_path, monkeypatch, fill_value, memory, selection):
    monkeypatch.setattr("zcore.tools.stored.MAX_UNLISTED", 0)
    source = zcore.create_array(tmp_path / "a", shape=(50, 40), chunks=(4, 3), dtype="i2", fill_value=fill_value)
    rng = np.random.default_rng(0)
    for _ in range(6):
        source[rng.integers(50), rng.integers(40)] = 9
    for wanted in ({"chunks": (3, 7)}, {"dtype": ">f4"}, {"chunks": (50, 1)}):
        wanted = {name: value[:1] if name == "chunks" and isinstance(selection, tuple) and not all(
            [isinstance(part, slice) for part in selection]) else value for name, value in wanted.items()}
        new = zcore.copy(source, zcore.MemoryStore(), selection=selection, memory=memory, **wanted)
        expected = source[...] if selection is None else source[selection]
        assert np.array_equal(new[...], expected) and new.fill_value == fill_value


def test_a_fill_value_that_differs_becomes_elements(tmp_path, monkeypatch):
    monkeypatch.setattr("zcore.tools.stored.MAX_UNLISTED", 0)
    source = zcore.create_array(tmp_path / "a", shape=(20,), chunks=(2,), dtype="f8", fill_value=np.nan)
    source[3] = 1
    new = zcore.copy(source, zcore.MemoryStore(), chunks=(5,))
    assert np.array_equal(new[...], source[...], equal_nan=True)
    text = zcore.create_array(tmp_path / "t", shape=(20,), chunks=(2,), dtype=str, fill_value="x")
    text[3] = "y"
    assert zcore.copy(text, zcore.MemoryStore(), chunks=(5,))[...].tolist() == text[...].tolist()


def test_chunks_out_of_reach_are_not_taken_for_absent_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("zcore.tools.stored.MAX_UNLISTED", 0)
    source = zcore.create_array(tmp_path / "a", data=np.arange(1, 41), chunks=(4,))
    os.remove(tmp_path / "a/c/3")
    os.symlink("/nowhere/x", tmp_path / "a/c/3")
    with pytest.raises(zcore.StoreError, match="c/3"):
        zcore.copy(source, zcore.MemoryStore(), chunks=(5,), memory=64)
