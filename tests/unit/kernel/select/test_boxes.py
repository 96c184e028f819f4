"""Many boxes: the chunks that they touch, and plans of them."""
import numpy as np
import pytest

from zcore.errors import SelectionError
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.select.box import basic
from zcore.kernel.select.open_array import OpenArray
from zcore.kernel.select.points import Boxes

SHAPE = (10, 12)


def plan_of(selections, shape=SHAPE, chunks=(4, 5), elements=None, boxed=SHAPE):
    array = OpenArray(shape, chunks, program=None, fill=bytes(1), template=(b"c/", b"/", b""))
    boxes = Boxes([basic(selection, boxed) for selection in selections])
    return ReadPlan(array, boxes, elements, PlanOptions(opens_files=False))


def test_tasks_are_the_chunks_that_boxes_touch():
    plan = plan_of([np.s_[8:10, 0:2], np.s_[3:5, 1:3], np.s_[9:7:-1, 3:5]])
    assert [plan.task(i)[1] for i in range(plan.n_tasks)] == [(0, 0), (1, 0), (2, 0)]
    values = np.arange(120).reshape(SHAPE)
    out = np.full((3, 2, 2), -1)
    for i in range(plan.n_tasks):
        _, coords, inside, outside, _ = plan.task(i)
        chunk = values[coords[0] * 4:coords[0] * 4 + 4, coords[1] * 5:coords[1] * 5 + 5]
        out[outside] = chunk[inside]
    assert out.tolist() == [values[8:10, 0:2].tolist(), values[3:5, 1:3].tolist(), values[9:7:-1, 3:5].tolist()]


def test_elements_far_apart():
    """Chunks between two elements are not touched, and numbers of elements have 64 bits."""
    length = 2**62
    plan = plan_of([np.s_[::2**60], np.s_[2**61 + 3:2**60 + 3:-2**58]], (length,), (2**31,), boxed=(length,))
    assert plan.n_tasks == 7
    assert plan.task(6)[1] == (3 * 2**29,)


@pytest.mark.parametrize("shape", [(10, 11), (9, 12), (1, 1)])
def test_boxes_outside_of_an_array_that_was_shrunk(shape):
    boxes = Boxes([basic(selection, SHAPE) for selection in (np.s_[0:5, 1:9], np.s_[9:4:-1, 4:12])])
    assert boxes.fits(SHAPE) and not boxes.fits(shape)
    with pytest.raises(SelectionError, match="do not lie in an array"):
        plan_of([np.s_[0:5, 1:9], np.s_[9:4:-1, 4:12]], shape)


def test_a_place_of_another_shape():
    for shape in ((2, 5), (2, 5, 7), (3, 5, 8), (5, 8)):
        with pytest.raises(AssertionError):
            plan_of([np.s_[0:5, 1:9], np.s_[9:4:-1, 4:12]], elements=np.empty(shape, "i1"))
