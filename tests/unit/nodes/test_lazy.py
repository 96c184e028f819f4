"""Views of arrays that read nothing until their elements are asked for."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore

VALUES = np.arange(7 * 9 * 4, dtype="i8").reshape(7, 9, 4)


@pytest.fixture
def array():
    return zcore.array(VALUES, chunks=(3, 4, 2))


def test_a_view_reads_nothing_before_it_is_asked(tmp_path):
    array = zcore.create_array(tmp_path, data=VALUES, chunks=(3, 4, 2))
    for path in (tmp_path / "c").rglob("*"):
        if path.is_file():
            path.write_bytes(b"damage")
    view = array.lazy[2:6, ::3][..., 0]
    assert (view.shape, view.ndim, view.size, len(view), view.dtype) == ((4, 3), 2, 12, 4, VALUES.dtype)
    assert view.chunks == (3, 1) and view.nbytes == 96
    assert repr(view) == "<zcore.LazyView (4, 3) int64 of (7, 9, 4)>"
    with pytest.raises(zcore.ChunkError):
        np.asarray(view)


indices = st.one_of(
    st.integers(-3, 2), st.just(...),
    st.builds(slice, *[st.one_of(st.none(), st.integers(-8, 8))] * 2, st.sampled_from([None, 1, 2, 5, -1, -3])))


@given(st.lists(st.lists(indices, max_size=4).map(tuple), max_size=4))
def test_views_of_views_are_those_of_numpy(selections):
    view, expected = zcore.array(VALUES, chunks=(3, 4, 2)).lazy[...], VALUES
    for selection in selections:
        try:
            expected = expected[selection] if expected.shape or selection else expected
        except IndexError:
            with pytest.raises(IndexError):
                view[selection]
            return
        view = view[selection]
        assert view.shape == np.shape(expected)
    np.testing.assert_array_equal(np.asarray(view), expected)


def test_what_is_assigned_is_written(array):
    expected = VALUES.copy()
    array.lazy[1:, ::-2][2, 1:3] = -1
    expected[1:, ::-2][2, 1:3] = -1
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("by_another_handle", [False, True])
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1], np.s_[15:5:-5], np.s_[3::4], 19], ids=str)
def test_a_view_outside_of_a_shrunk_array_is_an_error(tmp_path, view, by_another_handle):
    """Slices would be cut, or begin elsewhere."""
    array = zcore.create_array(tmp_path, data=np.arange(20), chunks=5)
    found = array.lazy[view]
    of_view = found[...] if view == 19 else found[::2]
    inside = array.lazy[2:12:3]
    (zcore.open(tmp_path, "r+") if by_another_handle else array).resize(13)
    for _ in range(2):
        for one in (found, of_view):
            with pytest.raises(zcore.SelectionError):
                np.asarray(one)
            with pytest.raises(zcore.SelectionError):
                one[...] = -1
        array.refresh()
    np.testing.assert_array_equal(inside, np.arange(2, 12, 3))
    np.testing.assert_array_equal(array, np.arange(13))
    array.resize(25)
    assert np.asarray(found).shape == found.shape


def test_new_views_are_those_of_the_present_shape(array):
    lazy = array.lazy
    array.resize(2, 9, 4)
    assert lazy[...].shape == (2, 9, 4)
    assert np.asarray(array.lazy[2:]).shape == (0, 9, 4)


@pytest.mark.parametrize("selection", [
    [0, 1], np.array([True] * 7), True, None, "field", 1.0, (0, 0, 0, 0), (..., ...),
])
def test_other_selections_are_refused(array, selection):
    with pytest.raises(zcore.SelectionError):
        array.lazy[selection]


def test_numpy_is_told_that_a_view_is_read(array):
    with pytest.raises(ValueError, match="without a copy"):
        np.array(array.lazy[0], copy=False)
    assert np.asarray(array.lazy[0, 0], dtype="f4").dtype == np.float32


def test_a_view_of_an_array_without_dimensions():
    view = zcore.array(np.float32(3)).lazy[...]
    assert view.shape == () and np.asarray(view) == 3
    with pytest.raises(TypeError):
        len(view)


def test_matplotlib_draws_a_view(array):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    image = figure.subplots().imshow(array.lazy[:, :, 1])
    np.testing.assert_array_equal(image.get_array(), VALUES[:, :, 1])


def test_dask_reads_a_view(array):
    da = pytest.importorskip("dask.array")
    np.testing.assert_array_equal(da.from_array(array.lazy[1:, ::2], chunks=(2, 2, 4)).compute(), VALUES[1:, ::2])
