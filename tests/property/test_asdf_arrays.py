"""Arrays of ASDF files and the trees around them: what is selected is NumPy's choice, what is written comes back."""
import datetime
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

pytest.importorskip("yaml")

from tests.unit.asdf.made_blocks import MadeFile  # noqa: E402
from zcore.asdf.tree.load import dump, load  # noqa: E402
from zcore.engine.array_binding import ArrayBinding  # noqa: E402
from zcore.engine.options import Options  # noqa: E402
from zcore.formats import format_of  # noqa: E402
from zcore.kernel.plan.read import parts_of  # noqa: E402
from zcore.nodes.array import Array  # noqa: E402
from zcore.stores.base import Strided  # noqa: E402
from zcore.stores.memory import MemoryStore  # noqa: E402

zarr_v2 = format_of(2)

DTYPES = ("u1", "<i2", ">i4", "<f8", ">c16", "S3", "<U2", [("a", "u1"), ("b", ">i4")])


class LaidOut(MemoryStore):
    """A store with one array, whose elements lie in a file, or in memory, with strides."""

    def __init__(self, array, path=None):
        super().__init__()
        base = np.frombuffer(array.base if array.base is not None else array, "u1")
        start = base.__array_interface__["data"][0]
        self._place = array.__array_interface__["data"][0] - start, array.strides
        self._base = base
        self._path = path
        if path is not None:
            path.write_bytes(base.tobytes())
        document = zarr_v2.new_array(array.shape, array.dtype, tuple(max(1, n) for n in array.shape), 0, None)
        self.set(".zarray", zarr_v2.render_array(document))

    def locate(self, prefix):
        return Strided(lambda: self._base if self._path is None else os.open(self._path, os.O_RDONLY), *self._place)


@st.composite
def laid_out(draw):
    """An array of any strides inside a contiguous one of bytes."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, max_side=7))
    base = np.arange(math.prod(shape) * dtype.itemsize, dtype="u4") % (3 if dtype.kind == "U" else 251)
    memory = bytearray(base.astype("u1").tobytes())
    if dtype.kind == "U":
        memory = bytearray(np.resize(np.array(["ab", "c"], dtype), math.prod(shape)).tobytes())
    array = np.frombuffer(memory, dtype).reshape(shape)
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    steps = [slice(None, None, draw(st.sampled_from((1, -1, 2, -3)))) for _ in range(array.ndim)]
    view = array[tuple(steps)] if array.ndim else array
    return memory, view


class Described:
    """What `LaidOut` asks of an array, of a view whose memory is known."""

    def __init__(self, memory, view):
        self.base = memory
        self.view = view

    def __getattr__(self, name):
        return getattr(self.view, name)


@pytest.mark.parametrize("in_file", [False, True])
@given(st.data())
def test_selections_are_those_of_numpy(tmp_path_factory, in_file, data):
    memory, view = data.draw(laid_out())
    path = tmp_path_factory.getbasetemp() / "laid_out" if in_file else None
    store = LaidOut(Described(memory, view), path)
    array = Array(ArrayBinding(store, "", zarr_v2, Options()))
    selection = data.draw(hnp.basic_indices(view.shape, allow_newaxis=True)) if view.ndim else ()
    found, expected = array[selection], view[selection]
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
    if view.ndim and view.size:
        lists = [data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4)) for n in view.shape]
        assert array.oindex[tuple(lists)].tobytes() == view[np.ix_(*lists)].tobytes()
        n = min(map(len, lists))
        points = tuple([items[:n] for items in lists])
        assert array.vindex[points].tobytes() == view[points].tobytes()
        if view.dtype.names:
            assert array["b"].tobytes() == view["b"].tobytes()


@pytest.mark.parametrize("selection", [np.s_[...], np.s_[:, 1:-1], np.s_[::3, ::2], np.s_[::-1, ::-1], np.s_[:, 7],
                                       np.s_[2:5, 100:2000]])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_in_parts(tmp_path, selection, order):
    """Runs that are long and short, gaps of more and of less than a page, more than one part, several threads."""
    memory = bytearray(np.arange(1500 * 1024, dtype="<u4").tobytes())
    view = np.frombuffer(memory, "<u4").reshape((1500, 1024), order=order)
    for path in (None, tmp_path / "x"):
        store = LaidOut(Described(memory, view), path)
        for threads in (1, 2):
            array = Array(ArrayBinding(store, "", zarr_v2, Options(threads=threads)))
            assert np.array_equal(array[selection], view[selection])


@given(hnp.array_shapes(min_dims=0, max_dims=5, max_side=20), st.integers(1, 300), st.data())
def test_parts_reach_no_more_than_they_should(shape, n_bytes, data):
    strides = data.draw(st.tuples(*[st.integers(-2000, 2000)] * len(shape)))
    parts = parts_of(shape, strides, n_bytes)
    assert all(1 <= part <= n for part, n in zip(parts, shape, strict=True))
    long = [abs(stride) * part for part, stride in zip(parts, strides, strict=True) if part > 1]
    assert all(reach <= n_bytes for reach in long)


SCALARS = st.none() | st.booleans() | st.integers(-2**63 + 2, 2**63 - 1) | st.floats(allow_nan=False) | (
    st.complex_numbers(allow_nan=False) | st.text() | st.binary() | st.dates()
    | st.datetimes(timezones=st.sampled_from([None, datetime.UTC])).map(lambda time: time.replace(fold=0)))
KEYS = st.text() | st.integers(-5, 5).filter(lambda key: key not in (0, 1)) | st.booleans()
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
                     max_leaves=15)


@given(st.dictionaries(st.text(), TREES, max_size=4))
def test_trees_come_back(tree):
    """AS-TREE-04 to AS-TREE-11, AS-ND-20"""
    tree.pop("asdf_library", None)
    found = load(dump(tree, None))
    del found["asdf_library"]
    assert dict(found) == tree and repr(dict(found)) == repr(tree)


ARRAYS = hnp.arrays(st.sampled_from([np.dtype(dtype) for dtype in ("?", "u1", "<i2", ">i4", "<f4", ">f8", "<c8")]),
                    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
                    elements={"allow_nan": False})


@given(ARRAYS, st.data())
def test_arrays_and_their_views_come_back(base, data):
    """AS-ND-07 to AS-ND-15, AS-ND-22"""
    views = [base]
    for _ in range(data.draw(st.integers(0, 3))):
        view = data.draw(st.sampled_from(views))
        index = data.draw(hnp.basic_indices(view.shape, allow_ellipsis=False)) if view.ndim else ...
        view = np.asarray(view[index])
        views.append(view.T if data.draw(st.booleans()) else view)
    file = MadeFile()
    found = load(dump({"views": views}, file.add_block), file.blocks)
    for node, view in zip(found["views"], views, strict=True):
        assert node.dtype == view.dtype and node.shape == view.shape
        assert np.array_equal(node.read(), view)
    shared = [node for node, view in zip(found["views"], views, strict=True) if np.shares_memory(view, base)]
    assert len({node.source for node in shared}) <= 1
