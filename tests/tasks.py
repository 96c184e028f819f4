"""The tasks of a box, listed by a plan that opens no files."""
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.select.box import Box
from zcore.kernel.select.open_array import OpenArray


def chunks_of(shape, chunk_shape, starts, steps, counts):
    """Return a plan of a box in an array of bytes; each of its tasks is a chunk."""
    array = OpenArray(shape, chunk_shape, program=None, fill=b"\0", template=(b"", b".", b""))
    return ReadPlan(array, Box(starts, steps, counts), None, PlanOptions(opens_files=False))


def parts_of(*box):
    """Return (chunk_coords, chunk_selection, array_selection) of each chunk that a box touches, see `Tasks.task`."""
    plan = chunks_of(*box)
    return [plan.task(i)[1:4] for i in range(plan.n_tasks)]
