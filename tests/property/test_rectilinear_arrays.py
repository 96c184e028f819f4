"""Arrays whose chunks, or shards, differ in length behave as NumPy's, and every kind of store gets the same bytes."""
import contextlib
import tempfile

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import WAYS, directory
from tests.examples import examples
from tests.judge import ask_the_oracle

PLACES = (*WAYS, "memory")


@contextlib.contextmanager
def stores():
    """One empty store for each way of the same work."""
    with tempfile.TemporaryDirectory() as native, tempfile.TemporaryDirectory() as confined:
        yield {"native": directory(native, "native"), "confined": directory(confined, "confined"),
               "memory": zcore.MemoryStore()}


@st.composite
def grids(draw):
    """Return (shape, keywords of the grid): lengths of chunks, or of shards of them, that end with the array."""
    shape, objects, chunks = [], [], []
    sharded = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        chunk = draw(st.integers(1, 3)) if sharded else 1
        edges = [n * chunk for n in draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))]
        regular = draw(st.integers(0, 3)) == 0
        shape.append(sum(edges) if not regular else draw(st.integers(0, 9)))
        objects.append(edges[0] if regular else edges)
        chunks.append(chunk)
    return tuple(shape), {"chunks": chunks, "shards": objects} if sharded else {"chunks": objects}


def boxes(shape):
    parts = []
    for n in shape:
        edge = st.none() | st.integers(-n - 1, n + 1)
        parts.append(st.builds(slice, edge, edge, st.none() | st.integers(-4, 4).filter(bool)))
    return st.tuples(*parts)


@st.composite
def steps(draw, shape):
    """What is done to an array one after the other, each as (verb, argument)."""
    done = []
    for verb in draw(st.lists(st.sampled_from(["write", "write", "resize", "append", "reopen"]), max_size=5)):
        argument = None
        if verb == "write":
            argument = draw(boxes(shape))
        elif verb == "resize":
            argument = shape = tuple([draw(st.integers(0, n + 6)) for n in shape])
        elif verb == "append":
            argument = draw(st.integers(0, len(shape) - 1)), draw(st.integers(0, 7))
            shape = tuple([n + argument[1] * (d == argument[0]) for d, n in enumerate(shape)])
        done.append((verb, argument))
    return done, draw(boxes(shape))


@given(data=st.data(), grid=grids(), dtype=st.sampled_from(["<i2", ">f4", "|u1", "<c16", "|S3"]),
       order=st.sampled_from("CF"), compressors=st.sampled_from(["auto", None]),
       threads=st.sampled_from([1, 3]), seed=st.integers(0, 2**32 - 1))
@examples(60)
def test_arrays_of_unequal_chunks(data, grid, dtype, order, compressors, threads, seed):
    """V3-RGRID-02, V3-RGRID-03, V3-RGRID-04, V3-RGRID-05"""
    shape, keywords = grid
    done, box = data.draw(steps(shape))
    contents = []
    with stores() as by_place:
        for place in PLACES:
            rng = np.random.default_rng(seed)
            store = by_place[place]
            array = zcore.create_array(store, shape=shape, dtype=dtype, order=order, compressors=compressors,
                                       threads=threads, **keywords)
            model = np.zeros(shape, dtype)
            for verb, argument in done:
                if verb == "write":
                    values = rng.integers(0, 9, model[argument].shape).astype(dtype)
                    array[argument] = model[argument] = values
                elif verb == "resize":
                    array.resize(argument)
                    kept = tuple([slice(min(a, b)) for a, b in zip(model.shape, argument, strict=True)])
                    old, model = model, np.zeros(argument, dtype)
                    model[kept] = old[kept]
                elif verb == "append":
                    axis, n = argument
                    more = rng.integers(0, 9, [n if d == axis else m for d, m in enumerate(model.shape)])
                    array.append(more.astype(dtype), axis=axis)
                    model = np.concatenate([model, more], axis=axis, dtype=dtype, casting="unsafe")
                else:
                    array = zcore.open(store, mode="r+", threads=threads)
                assert array.shape == model.shape and array[...].tobytes() == model.tobytes()
            assert array[box].tobytes() == model[box].tobytes()
            for sizes in (array.read_chunk_sizes, array.write_chunk_sizes):
                assert tuple(map(sum, sizes)) == array.shape
            assert array.cdata_shape == tuple(map(len, array.read_chunk_sizes))
            contents.append({key: bytes(store.get(key)) for key in store.list()})
            ask_the_oracle(contents[-1], model, threads=threads)
    assert contents[0] == contents[1] == contents[2]
