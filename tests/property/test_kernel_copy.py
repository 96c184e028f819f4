"""Strided copy against NumPy for any shape, strides, item size and byte order."""
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from zcore.kernel.strided import copy


@st.composite
def views(draw, shape, itemsize, random, broadcast=False):
    """A view of `shape` into fresh memory: dimensions in any order, any steps, an odd address now and then."""
    ndim = len(shape)
    order = draw(st.permutations(range(ndim)))
    steps = [draw(st.sampled_from([1, 1, 1, -1, 2, -3])) for _ in shape]
    repeated = [broadcast and draw(st.integers(0, 4)) == 0 for _ in shape]
    stored = [1 if r else n * abs(s) for n, s, r in zip(shape, steps, repeated, strict=True)]
    offset = draw(st.integers(0, 3))
    room = random.integers(0, 256, int(np.prod(stored)) * itemsize + offset, dtype="u1")
    base = np.empty(0, f"V{itemsize}")
    if room.size > offset:
        base = np.frombuffer(room.data, f"V{itemsize}", offset=offset)
    whole = base.reshape([stored[d] for d in order]).transpose(np.argsort(order)) if ndim else base.reshape(())
    view = whole[tuple(slice(None) if r else slice(None, None, s) for s, r in zip(steps, repeated, strict=True))]
    return room, np.broadcast_to(view, shape) if broadcast else view[...]


@given(st.data(), st.lists(st.integers(0, 9) | st.integers(0, 40), max_size=4),
       st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 20]), st.integers(0, 2**32))
def test_copy_is_numpy_assignment(data, shape, itemsize, seed):
    shape = tuple(shape) if np.prod(shape) <= 20_000 else (*shape[:-1], 1)[-3:]
    random = np.random.default_rng(seed)
    _, src = data.draw(views(shape, itemsize, random, broadcast=True))
    room, dst = data.draw(views(shape, itemsize, random))
    swap = data.draw(st.sampled_from([0] + [unit for unit in (2, 4, 8) if itemsize % unit == 0]))
    before = room.tobytes()
    copy.copy_strided(src, dst, swap)
    after = room.tobytes()
    room[:] = np.frombuffer(before, "u1")
    packed = np.ascontiguousarray(src).reshape(-1).view("u1")
    if swap:
        packed = packed.reshape(-1, swap)[:, ::-1]
    dst[...] = np.frombuffer(packed.tobytes(), f"V{itemsize}").reshape(shape)
    assert after == room.tobytes()
