"""Arrays of shards against NumPy: any shape, cut, chain and number of threads, on both paths."""
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.both_ways import WAYS, directory, handles
from tests.examples import examples
from tests.judge import ask_the_oracle
from zcore.errors import ZcoreError

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
BLOSC = {"name": "blosc",
         "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}}


@st.composite
def slices(draw, length):
    if draw(st.booleans()):
        return slice(None, None, draw(st.sampled_from([None, -1, 2])))
    bounds = st.none() | st.integers(-length - 1, length + 1)
    return slice(draw(bounds), draw(bounds), draw(st.sampled_from([None, 1, 2, 3, 7, -1, -2])))


@st.composite
def selections(draw, shape):
    """A slice for each dimension, or for some of them lists that go together, as NumPy takes them."""
    n = draw(st.sampled_from([0, 0, 1, 2, 7])) if 0 not in shape else 0
    return tuple([draw(slices(length) if not n or draw(st.booleans()) else
                       st.lists(st.integers(-length, length - 1), min_size=n, max_size=n)) for length in shape])


@examples(150)
@given(data=st.data())
def test_like_numpy(sharded, data):
    """V3-COD-06"""
    ndim = data.draw(st.integers(0, 3))
    shape = tuple(data.draw(st.lists(st.integers(0, 13), min_size=ndim, max_size=ndim)))
    chunks = tuple(data.draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
    shards = tuple(data.draw(st.integers(1, 4)) * chunk for chunk in chunks)
    fill = data.draw(st.sampled_from([0, 7]))
    model = np.full(shape, fill, "<u2")
    with tempfile.TemporaryDirectory() as folder:
        index_codecs = st.sampled_from([[LITTLE], [BIG], [LITTLE, CRC], [BIG, CRC]])
        location = st.sampled_from(["start", "end"])
        levels = [chunks]
        for _ in range(data.draw(st.sampled_from([0, 0, 1, 2]))):
            levels.append(tuple(data.draw(st.sampled_from([c for c in range(1, n + 1) if n % c == 0])) for n
                                in levels[-1]))
        around, axes, stored = [], list(range(ndim)), []
        for level in range(len(levels) + 1):
            order = data.draw(st.permutations(range(ndim))) if data.draw(st.sampled_from([False, False, True])) else []
            axes = [axes[d] for d in order] or axes
            stored.append([levels[level][d] for d in axes] if level < len(levels) else None)
            around.append(([{"name": "transpose", "configuration": {"order": list(order)}}] if order else [],
                           data.draw(st.sampled_from([[], [], [], [CRC], [ZSTD], [ZSTD, CRC]]))))
        codecs = around[-1][0] + data.draw(st.sampled_from([[LITTLE], [LITTLE, CRC], [LITTLE, BLOSC],
                                                            [LITTLE, BLOSC, CRC]]))
        for level in range(len(levels) - 1, 0, -1):
            before, after = around[level]
            codecs = [*before, {"name": "sharding_indexed", "configuration": {
                "chunk_shape": stored[level], "codecs": codecs, "index_codecs": data.draw(index_codecs),
                "index_location": data.draw(location)}}, *after]
        threads, keeps_filled = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.booleans())
        array = sharded.create(
            folder, shape, "<u2", shards, stored[0], fill_value=fill, threads=threads,
            codecs=codecs, index_codecs=data.draw(index_codecs), index_location=data.draw(location),
            before=around[0][0], after=around[0][1], write_empty_chunks=keeps_filled)
        assert array.shards == shards and array.chunks == chunks
        native = next((level for level, (_, after) in enumerate(around[:len(levels)]) if after), len(levels))
        assert getattr(array._binding.chain.program, "n_levels", 0) == native
        both = handles(folder, threads=threads, write_empty_chunks=keeps_filled)
        for _ in range(data.draw(st.integers(1, 5))):
            array = data.draw(st.sampled_from(both)).refresh()
            step = data.draw(st.sampled_from(["write", "write", "fill", "resize"] if ndim else ["write", "fill"]))
            if step == "resize":
                new = tuple(data.draw(st.lists(st.integers(0, 13), min_size=ndim, max_size=ndim)))
                array.resize(new)
                kept = tuple(slice(min(a, b)) for a, b in zip(model.shape, new, strict=True))
                model, old = np.full(new, fill, "<u2"), model
                model[kept] = old[kept]
            else:
                part = data.draw(selections(model.shape))
                values = fill if step == "fill" else np.arange(model[part].size).reshape(model[part].shape) % 19
                array[part] = values
                model[part] = values
            array = data.draw(st.sampled_from(both)).refresh()
            np.testing.assert_array_equal(array[...], model)
            part = data.draw(selections(model.shape))
            np.testing.assert_array_equal(array[part], model[part])
        ask_the_oracle(folder, model)


@examples(150)
@given(data=st.data())
def test_both_paths_store_the_same_for_lists(sharded, data):
    """Chunks that lists leave alone are carried over, and the others follow in one order, on both paths."""
    ndim = data.draw(st.integers(1, 3))
    chunks = (2, 4, 2)[:ndim]
    shape = tuple(data.draw(st.integers(1, 4 * chunk)) for chunk in chunks)
    order = data.draw(st.permutations(range(ndim)))
    after = data.draw(st.sampled_from([[], [ZSTD]]))
    inner = data.draw(st.sampled_from([None, (1, 2, 1)[:ndim]]))
    codecs = [LITTLE, CRC]
    if inner:
        codecs = [{"name": "transpose", "configuration": {"order": list(order)}},
                  {"name": "sharding_indexed", "configuration": {
                      "chunk_shape": [inner[d] for d in order], "codecs": codecs, "index_codecs": [LITTLE],
                      "index_location": "end"}}, *after]
    writes = []
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(selections(shape))
        shown = np.empty(shape, "V1")[part]
        writes.append((part, data.draw(st.sampled_from([0, 1])) * np.arange(1, shown.size + 1).reshape(shown.shape)))
    stored = []
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            array = sharded.create(directory(folder, way), shape, "<u2", tuple(2 * chunk for chunk in chunks), chunks,
                                   codecs=codecs, threads=2)
            model = np.zeros(shape, "<u2")
            for part, values in writes:
                array[part] = model[part] = values
            ask_the_oracle(folder, model)
            stored.append({path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("c/**/*")
                           if path.is_file()})
    assert stored[0] == stored[1]


@examples(150)
@given(data=st.data())
def test_shards_that_were_tampered_with(sharded, data):
    """Without checksums anything may be read, but nothing else than a ZcoreError may come out; both paths agree."""
    with tempfile.TemporaryDirectory() as folder:
        at_start = data.draw(st.booleans())
        array = sharded.create(folder, (8, 6), "<u2", (8, 6), (2, 3), index_codecs=[LITTLE],
                               codecs=data.draw(st.sampled_from([[LITTLE], [LITTLE, BLOSC]])),
                               index_location="start" if at_start else "end", threads=2)
        array[...] = np.arange(1, 49).reshape(8, 6)
        shard = Path(folder, "c/0/0")
        raw = bytearray(shard.read_bytes())
        index = 0 if at_start else len(raw) - 128
        for _ in range(data.draw(st.integers(1, 3))):
            word = st.sampled_from([0, 1, 12, 28, 128, len(raw) - 128, len(raw), 2**31, 2**63, 2**64 - 1, 2**64 - 12])
            at = index + 8 * data.draw(st.integers(0, 15))
            raw[at:at + 8] = data.draw(word | st.integers(0, 2**64 - 1)).to_bytes(8, "little")
        raw = raw[:data.draw(st.just(len(raw)) | st.integers(0, len(raw)))]
        part = tuple(data.draw(slices(length)) for length in (8, 6))
        found = []
        for array in handles(folder, threads=2):
            shard.write_bytes(raw)
            try:
                outcome = array[part].tolist()
            except ZcoreError:
                outcome = "refused"
            try:
                array[1:5, 2:4] = 7
                assert (array[1:5, 2:4] == 7).all()
                outcome = outcome, shard.read_bytes()
            except ZcoreError:
                outcome = outcome, "refused"
            found.append(outcome)
        assert found[0] == found[1]
