"""What an open array is to the kernel: made once, held by plans."""
import gc
import sys

import numpy as np
import pytest

from zcore.kernel.codec.program import Program
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.shard_index import ShardProgram
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select.box import whole
from zcore.kernel.select.open_array import OpenArray

TEMPLATE = (b"c/", b"/", b"")


def opened(shape=(6, 4), chunk_shape=(2, 2), **options):
    return OpenArray(shape, chunk_shape, **{"program": Program(()), "fill": bytes(2), "template": TEMPLATE, **options})


def test_plans_hold_what_they_were_made_from():
    program = Program(())
    n = sys.getrefcount(program)
    array = opened(program=program)
    plans = [ReadPlan(array, whole((6, 4)), np.empty((6, 4), "u2")) for _ in range(3)]
    assert sys.getrefcount(program) > n
    del array
    gc.collect()
    assert [plan.task(5)[0] for plan in plans] == ["c/2/1"] * 3
    del plans
    gc.collect()
    assert sys.getrefcount(program) == n


def test_shards_are_read_off_the_program():
    inner = ShardProgram((4, 4), (2, 1), Program(()))
    array = opened((8, 8), (8, 4), program=ShardProgram((8, 4), (4, 4), inner))
    assert array.shape == (8, 8) and array.chunk_shape == (2, 1) and array.shard_shapes == ((8, 4), (4, 4))
    plan = WritePlan(array, whole((8, 8)))
    assert plan.n_tasks == 2 and plan.task(1)[:2] == ("c/0/1", (0, 1))


def test_what_does_not_go_together():
    with pytest.raises(AttributeError):
        opened(program=object())
    with pytest.raises(ValueError, match="selection has 1 dimensions, the array 2"):
        ReadPlan(opened(), whole((6,)))
    with pytest.raises(ValueError, match="too long"):
        opened(template=(b"d" * 4400, b"/", b""))
    with pytest.raises(ValueError, match="65 dimensions"):
        opened((1,) * 65, (1,) * 65)


def test_options_have_names():
    options = PlanOptions(n_threads=3, tasks=[1])
    assert (options.n_threads, options.tasks, options.extents, options.opens_files) == (3, [1], None, True)
