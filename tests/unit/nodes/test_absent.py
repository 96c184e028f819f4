"""Results that hold zeros before they are read: absent files are left out, and nothing else is."""
import numpy as np
import pytest

import zcore
from zcore.engine.array_binding import ArrayBinding
from zcore.nodes import array as arrays


@pytest.fixture(autouse=True)
def _every_result_is_large(monkeypatch):
    monkeypatch.setattr(arrays, "_MIN_ZEROS", 1)


@pytest.fixture(params=["f4", ">i8", "?", "M8[s]", "S3", [("a", "f4"), ("b", "u1")]])
def dtype(request):
    return np.dtype(request.param)


@pytest.mark.parametrize("shards", [None, (8, 8)])
@pytest.mark.parametrize("fill", ["zero", "other"])
def test_absent_chunks_read_as_the_fill_value(tmp_path, dtype, shards, fill):
    numbers = (np.arange(400) % 100 + 1).reshape(20, 20)
    values = np.zeros((20, 20), dtype)
    for part in [values[name] for name in dtype.names] if dtype.names else [values]:
        part[...] = numbers
    value = np.zeros((), dtype) if fill == "zero" else np.array(values[3, 5], dtype)
    a = zcore.create_array(tmp_path / "a", shape=(20, 20), chunks=(4, 4), shards=shards, dtype=dtype,
                           fill_value=value[()])
    expected = np.full((20, 20), value, dtype)
    a[3:7, 2:11] = expected[3:7, 2:11] = values[3:7, 2:11]
    a[16:, 19] = expected[16:, 19] = values[16:, 19]
    mask = np.arange(20) % 3 == 0
    for selection in (..., np.s_[::-1, ::3], np.s_[5], np.s_[2:9, None, 4], np.s_[19, 19], np.s_[[7, 0, 7], 1:9],
                      np.s_[mask], np.s_[[3, 18], [2, 19]]):
        assert np.array_equal(a[selection], expected[selection])
    assert np.array_equal(a.oindex[[19, 3], [2, 19, 5]], expected[np.ix_([19, 3], [2, 19, 5])])
    if dtype.names:
        assert np.array_equal(a["b"], expected["b"])


def test_negative_zero_is_not_zero(tmp_path):
    a = zcore.create_array(tmp_path / "a", shape=(8,), chunks=(4,), dtype="f4", fill_value=-0.0)
    assert np.signbit(a[...]).all()


def test_only_the_first_attempt_finds_zeros(tmp_path, monkeypatch):
    a = zcore.create_array(tmp_path / "a", shape=(8,), chunks=(4,), dtype="i4", fill_value=0)
    a[...] = 7
    read_once, attempts = ArrayBinding.read_once, []

    def read_in_vain_once(self, *arguments, **keywords):
        attempts.append(keywords["holds_zeros"])
        is_valid = read_once(self, *arguments, **keywords)
        if len(attempts) > 1:
            return is_valid
        (tmp_path / "a" / "c" / "1").unlink()
        return False

    monkeypatch.setattr(ArrayBinding, "read_once", read_in_vain_once)
    assert zcore.open(tmp_path / "a")[...].tolist() == [7] * 4 + [0] * 4
    assert attempts == [True, False]


def test_memory_of_the_caller_is_filled(tmp_path):
    a = zcore.create_array(tmp_path / "a", shape=(8,), chunks=(4,), dtype="i4", fill_value=0)
    out = np.full(8, 9, "i4")
    a.read(out=out)
    assert not out.any()
