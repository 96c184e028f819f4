"""Laws of the chunk grid for sizes of any magnitude."""
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks import parts_of

LARGE = 2**63 - 1


@st.composite
def boxes(draw):
    """A box of one dimension with few touched chunks: (length, chunk, start, step, count)."""
    length = draw(st.integers(1, LARGE) | st.integers(1, 50))
    chunk = draw(st.integers(1, LARGE) | st.integers(1, 50))
    start = draw(st.integers(0, length - 1))
    step = draw(st.integers(1, LARGE) | st.integers(1, 60)) * draw(st.sampled_from([1, -1]))
    room = (length - 1 - start if step > 0 else start) // abs(step)
    count = draw(st.integers(1, min(room + 1, 200)))
    return length, chunk, start, step, count


@given(boxes())
def test_parts_hold_every_selected_element_once_and_in_order(box):
    """D3-GRID-10"""
    length, chunk, start, step, count = box
    chosen = range(start, start + step * (count - 1) + (1 if step > 0 else -1), step)
    found = {}
    for (coord,), (selected,), (out,) in parts_of((length,), (chunk,), (start,), (step,), (count,)):
        positions = range(selected.start, selected.stop, selected.step)
        places = range(out.start, -1 if out.stop is None else out.stop, out.step)
        assert len(positions) == len(places) > 0
        assert 0 <= positions[0] and positions[-1] < chunk
        for position, place in zip(positions, places, strict=True):
            assert place not in found
            found[place] = coord * chunk + position
    assert [found[place] for place in range(count)] == list(chosen)
