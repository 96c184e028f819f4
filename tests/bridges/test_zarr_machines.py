"""zarr-python's state machines and random arrays, over zcore's store and through its codec pipeline."""
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import zcore

zarr = pytest.importorskip("zarr")

from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine  # noqa: E402
from zarr.testing.strategies import arrays, basic_indices, numpy_arrays, orthogonal_indices  # noqa: E402

import zcore.zarr  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PIPELINE = {"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}
LONG = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
# zarr-python's own strategies need most of the time of an example.
MACHINE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def stores():
    return {"zcore": zcore.zarr.Store(zcore.MemoryStore(), read_only=False), "zarr": zarr.storage.MemoryStore()}


@pytest.mark.parametrize("name", ["zcore", "zarr"])
def test_a_hierarchy(name):
    with zarr.config.set(PIPELINE):
        run_state_machine_as_test(lambda: ZarrHierarchyStateMachine(stores()[name]), settings=MACHINE)


def test_a_store():
    run_state_machine_as_test(lambda: ZarrStoreStateMachine(stores()["zcore"]), settings=MACHINE)


def array_of(data, nparray):
    return data.draw(arrays(arrays=st.just(nparray), stores=st.builds(zarr.storage.MemoryStore)))


@LONG
@given(st.data())
def test_all_of_an_array(data):
    nparray = data.draw(numpy_arrays(shapes=st.tuples(*[st.integers(0, 8)] * 2)))
    with zarr.config.set(PIPELINE):
        np.testing.assert_array_equal(nparray, array_of(data, nparray)[...])


@LONG
@given(st.data())
def test_basic_selections(data):
    with zarr.config.set(PIPELINE):
        array = data.draw(arrays())
        nparray = np.array(array[...])
        indexer = data.draw(basic_indices(shape=nparray.shape))
        np.testing.assert_array_equal(nparray[indexer], array[indexer])
        new = data.draw(numpy_arrays(shapes=st.just(np.shape(nparray[indexer])), dtype=nparray.dtype))
        array[indexer] = new
        nparray[indexer] = new
        np.testing.assert_array_equal(nparray, array[...])


@LONG
@given(st.data())
def test_orthogonal_selections(data):
    with zarr.config.set(PIPELINE):
        array = data.draw(arrays(shapes=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))))
        nparray = np.array(array[...])
        zindexer, npindexer = data.draw(orthogonal_indices(shape=nparray.shape))
        np.testing.assert_array_equal(nparray[npindexer], array.oindex[zindexer])
