"""By which slabs an array is rechunked: how often objects are read and written, and how much memory that takes."""
import json
import math
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import zcore
from zcore.tools.rechunk import MAX_READS, n_reads, passes, slabs

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
        for starts, counts in slabs(shape, slab):
            count[tuple(slice(start, start + n) for start, n in zip(starts, counts, strict=True))] += 1
    assert (count == len({plan.read, plan.write})).all()


@given(shapes, st.data())
def test_the_number_of_reads_is_that_of_touched_objects(parts, data):
    shape, source, slab = parts
    n = 0
    for starts, counts in slabs(shape, slab):
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
