"""Strided copy and fill: shapes and strides that special cases are made of."""
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


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16, 6])
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


def test_swap_of_sixteen_bytes():
    src = items((7, 9), 16)
    expected = b"".join(item.tobytes()[::-1] for item in src.ravel())
    assert copied(src, np.zeros_like(src), 16).tobytes() == expected
    assert copied(src, np.zeros((9, 7), "V16").T, 16).tobytes() == expected


def test_64_dimensions():
    shape = (1,) * 30 + (2, 1, 3, 1, 2) + (1,) * 29
    src = items(shape, 4).transpose(range(63, -1, -1))
    assert copied(src, np.zeros(src.shape, src.dtype)).tobytes() == src.tobytes()
    assert copied(src, np.zeros(src.shape, src.dtype), 2).tobytes() == \
        src.ravel().view("u1").reshape(-1, 2)[:, ::-1].tobytes()


@pytest.mark.parametrize(("src", "dst", "swap", "message"), [
    (np.zeros(3, "u4"), np.zeros(4, "u4"), 0, "dimension 0 has length 3 in the source, 4 in the target"),
    (np.zeros(3, "u4"), np.zeros((3, 1), "u4"), 0, "1 dimensions"),
    (np.zeros(3, "u4"), np.zeros(3, "u2"), 0, "4-byte items"),
    (np.zeros(3, "u4"), np.zeros(3, "u4"), 8, "no units of 8 bytes"),
    (np.zeros(3, "u4"), np.zeros(3, "u4"), 3, "no units of 3 bytes"),
    (np.zeros(3, "u4"), np.zeros(3, "u4"), -2, "no units of -2 bytes"),
])
def test_unfit_buffers_are_refused(src, dst, swap, message):
    with pytest.raises(ValueError, match=message):
        copy.copy_strided(src, dst, swap)


def test_overlapping_and_read_only_buffers_are_refused():
    data = np.arange(10)
    for src, dst in [(data, data[::-1]), (data[:6], data[4:]), (data[5::-1], data[4:])]:
        with pytest.raises(ValueError, match="overlap"):
            copy.copy_strided(src, dst)
    copy.copy_strided(data[:5], data[5:])
    assert data.tolist() == [0, 1, 2, 3, 4] * 2
    with pytest.raises((BufferError, ValueError)):
        copy.copy_strided(data, b"x" * 80)
    with pytest.raises((BufferError, ValueError)):
        copy.fill(b"x", b"y")


@each("itemsize", ITEM_SIZES)
@each("index", [
    np.s_[...], np.s_[::-1], np.s_[::2], np.s_[:, ::-2], np.s_[3:9, 5:7], np.s_[:, 4], np.s_[2, 3:4], np.s_[:0],
    np.s_[1, 2],
])
def test_fill_sets_the_selection_and_nothing_else(index, itemsize):
    value = items((), itemsize, 5)
    target, expected = items((12, 11), itemsize), items((12, 11), itemsize)
    copy.fill(target[index] if target[index].ndim else target[1:2, 2:3], value.tobytes())
    expected[index] = value
    assert target.tobytes() == expected.tobytes()


@each("n_items", [0, 1, 2, 3, 100, 8191, 8192, 8193, 50_000])
@each("itemsize", [1, 3, 4, 16, 300, 9000])
def test_contiguous_fill_and_its_test(itemsize, n_items):
    n_items = min(n_items, 2_000_000 // itemsize)
    for value in (items((), itemsize).tobytes(), b"\xff" * itemsize):
        data = bytearray(n_items * itemsize)
        view = np.frombuffer(data, f"V{itemsize}")
        copy.fill(view, value)
        assert data == value * n_items
        assert copy.is_filled(data, value)
        for place in {0, len(data) // 2, len(data) - 1} if data else ():
            data[place] ^= 1
            assert not copy.is_filled(data, value)
            data[place] ^= 1


def test_fill_of_unfit_values_is_refused():
    with pytest.raises(ValueError, match="3 bytes are not one element of 4 bytes"):
        copy.fill(np.zeros(3, "u4"), b"abc")
    with pytest.raises(ValueError, match="no whole number"):
        copy.is_filled(b"abc", b"ab")
    with pytest.raises(ValueError, match="no whole number"):
        copy.is_filled(b"abc", b"")


def test_fill_compares_bytes_not_values():
    assert copy.is_filled(np.full(5, np.nan), np.float64(np.nan).tobytes())
    assert not copy.is_filled(np.full(5, -0.0), np.float64(0).tobytes())


@each("itemsize", [1, 2, 3, 4, 8, 12, 16, 32, 33])
@each("shape", [(127, 130), (128, 128), (256, 64), (300, 5), (4, 131), (3, 200, 33)])
def test_transposing_planes_of_whole_and_broken_tiles(shape, itemsize):
    src = items(shape, itemsize)
    swaps = [0] + [unit for unit in (2, 4, 8, 16) if itemsize % unit == 0]
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
