"""Strided copy: shapes and strides that special cases are made of."""
import doctest
import math

import numpy as np
import pytest

from tests.each import each
from zcore.kernel.strided import copy

ITEM_SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 32, 33, 40)


def items(shape, itemsize, seed=0):
    """Random elements of `itemsize` bytes, as an array of void."""
    data = np.random.default_rng(seed).integers(0, 256, math.prod(shape) * itemsize, dtype="u1")
    return data.view(f"V{itemsize}").reshape(shape)


def copied(src, dst, swap=0):
    copy.copy_strided(src, dst, swap)
    return dst


def test_docstrings_hold():
    assert doctest.testmod(copy).failed == 0


@each("itemsize", ITEM_SIZES)
@each("shape", [(), (0,), (1,), (37,), (3, 0, 2), (5, 1, 7), (2, 3, 4, 5), (40, 50), (130, 70)])
def test_contiguous(shape, itemsize):
    src = items(shape, itemsize)
    assert copied(src, np.zeros_like(src)).tobytes() == src.tobytes()


@each("itemsize", ITEM_SIZES)
@each("axes", [(0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@each("shape", [(2, 3, 4), (33, 17, 20), (5, 130, 7), (1, 40, 70)])
def test_transposed(shape, axes, itemsize):
    src = items(shape, itemsize).transpose(axes)
    dst = np.zeros(src.shape, src.dtype)
    assert copied(src, dst).tobytes() == src.tobytes()
    back = np.zeros(shape, src.dtype)
    assert copied(dst.transpose(np.argsort(axes)), back).tobytes() == items(shape, itemsize).tobytes()


@each("itemsize", ITEM_SIZES)
@each("index", [
    np.s_[::-1], np.s_[::2], np.s_[:, ::-1], np.s_[:, ::3], np.s_[::-1, ::-1], np.s_[::-2, ::2], np.s_[3:4],
    np.s_[:, 3:5],
])
def test_selections_on_either_side(index, itemsize):
    whole = items((36, 41), itemsize)
    part = whole[index]
    assert copied(part, np.zeros(part.shape, part.dtype)).tobytes() == part.tobytes()
    target, expected = items((36, 41), itemsize, 1), items((36, 41), itemsize, 1)
    copied(part, target[index])
    expected[index] = part
    assert target.tobytes() == expected.tobytes()
    # Source and target walk in opposite orders.
    turned = np.zeros(part.shape[::-1], part.dtype).T
    assert copied(part, turned).tobytes() == part.tobytes()
    assert copied(part[::-1], np.zeros(part.shape, part.dtype)[:, ::-1]).tobytes() == part[::-1].tobytes()


@each("itemsize", ITEM_SIZES)
@each("shape", [(20,), (20, 1), (1, 20), (6, 1, 9)])
def test_source_strides_of_zero(shape, itemsize):
    src = np.broadcast_to(items(shape, itemsize), (5, *shape[:-1], 20 if shape[-1] == 1 else shape[-1]))
    assert copied(src, np.zeros(src.shape, src.dtype)).tobytes() == src.tobytes()


@each("itemsize", [1, 2, 4, 8, 16, 6])
def test_unaligned_addresses(itemsize):
    n = 300
    raw = items((n * itemsize + 64,), 1).tobytes()
    for offset in range(1, 9):
        src = np.frombuffer(raw, f"V{itemsize}", n, offset)
        room = bytearray(n * itemsize + 64)
        copied(src, np.frombuffer(room, f"V{itemsize}", n, offset))
        assert room[offset:offset + n * itemsize] == src.tobytes()
        assert not any(room[:offset]) and not any(room[offset + n * itemsize:])
        dst = np.frombuffer(room, f"V{itemsize}", n, offset).reshape(20, 15).T
        copied(src.reshape(15, 20), dst)
        assert dst.tobytes() == src.tobytes()


@each("dtype", ["u2", "u4", "u8", "f2", "c8", "c16", "U1", "U5", "U7"])
@each("index", [np.s_[...], np.s_[::-1], np.s_[:, ::2], np.s_[2, 3], np.s_[:0], np.s_[:, :, 0]])
def test_swap_reverses_every_unit(dtype, index):
    dtype = np.dtype(dtype)
    unit = 4 if dtype.kind == "U" else dtype.itemsize // (2 if dtype.kind == "c" else 1)
    raw = np.random.default_rng(3).integers(0, 256, 19 * 18 * 5 * dtype.itemsize, dtype="u1")
    src = raw.view(f"V{dtype.itemsize}").reshape(19, 18, 5)[index]
    expected = np.ascontiguousarray(src).reshape(-1).view("u1").reshape(-1, unit)[:, ::-1].tobytes()
    assert copied(src, np.zeros(src.shape, src.dtype), unit).tobytes() == expected
    turned = np.zeros(src.shape[::-1], src.dtype).T
    assert copied(src, turned, unit).tobytes() == expected


def test_64_dimensions():
    shape = (1,) * 30 + (2, 1, 3, 1, 2) + (1,) * 29
    src = items(shape, 4).transpose(range(63, -1, -1))
    # `tobytes` of NumPy 2.0 takes 32 dimensions at most.
    assert copied(src, np.zeros(src.shape, src.dtype)).ravel().tobytes() == src.ravel().tobytes()
    assert copied(src, np.zeros(src.shape, src.dtype), 2).ravel().tobytes() == \
        src.ravel().view("u1").reshape(-1, 2)[:, ::-1].tobytes()


@each("itemsize", [1, 2, 3, 4, 8, 12, 16, 32, 33])
@each("shape", [(127, 130), (128, 128), (256, 64), (300, 5), (4, 131), (3, 200, 33)])
def test_transposing_planes_of_whole_and_broken_tiles(shape, itemsize):
    src = items(shape, itemsize)
    swaps = [0] + [unit for unit in (2, 4, 8) if itemsize % unit == 0]
    for index in (np.s_[...], np.s_[::-1], np.s_[..., ::-1], np.s_[::-1, ..., ::-1]):
        part = src[index].T
        for swap in swaps:
            expected = np.ascontiguousarray(part).reshape(-1).view("u1").reshape(-1, swap or 1)[:, ::-1].tobytes()
            dst = np.zeros(part.shape, part.dtype)
            assert copied(part, dst, swap).tobytes() == expected
            # The same with gaps between the rows, which must stay as they are.
            room = items((*part.shape[:-1], part.shape[-1] + 3), itemsize, 1)
            before = room[..., -3:].tobytes()
            assert copied(part, room[..., :-3], swap).tobytes() == expected
            assert room[..., -3:].tobytes() == before


@pytest.mark.thinned(3, "gap", "itemsize", "offset")
@pytest.mark.parametrize("offset", [0, 1, 4, 16, 48, 60])
@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16, 6])
@pytest.mark.parametrize("gap", [0, 4])
def test_transposed_into_rows_far_apart(itemsize, offset, gap):
    """Rows over more than 4 MB bypass the caches where cache lines can be written as a whole."""
    n_rows, n_columns, stride = 67, 150, 65536 + gap
    room = np.full(n_rows * stride + 64 + offset, 0xa5, "u1")
    begin = -room.ctypes.data % 64 + offset
    target = np.ndarray((n_rows, n_columns), f"V{itemsize}", room.data, begin, (stride, itemsize))
    source = items((n_columns, n_rows), itemsize).T
    expected = room.copy()
    for i in range(n_rows):
        row = np.frombuffer(source[i].tobytes(), "u1")
        expected[begin + i * stride:begin + i * stride + row.size] = row
    copy.copy_strided(source, target)
    assert np.array_equal(room, expected)
