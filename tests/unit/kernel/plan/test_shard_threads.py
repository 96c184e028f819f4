"""Threads that share the encoding of one shard: what they write is what one thread writes."""
import numpy as np
import pytest

import zcore

SHAPE, CHUNK = (96, 80), (8, 8)  # 120 chunks, enough of them for every thread to get some


def make(path, shards, **keywords):
    return zcore.create_array(path, shape=SHAPE, chunks=CHUNK, shards=shards, dtype="f8", fill_value=1.5,
                              **{"compressors": {"name": "zstd", "configuration": {"level": 3}}, **keywords})


def values(seed):
    found = np.random.default_rng(seed).integers(0, 50, SHAPE).astype("f8")
    found[16:40, 8:24] = 1.5  # chunks that are left out
    return found


def content(path):
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture(autouse=True)
def small_writes_are_shared(monkeypatch):
    monkeypatch.setattr("zcore.engine.array_binding.MIN_SHARED_NBYTES", 0)


@pytest.mark.thinned(2, "shards", "compressors")
@pytest.mark.parametrize("compressors", [None, {"name": "zstd", "configuration": {"level": 3}}])
@pytest.mark.parametrize("shards", [(96, 80), (96, 40), (48, 40), (16, 8)])
def test_bytes_do_not_depend_on_the_number_of_threads(tmp_path, shards, compressors):
    boxes = [np.s_[:], np.s_[3:90, 5:77:2], np.s_[50:51, :], np.s_[::-1, 10:70]]
    for seed, box in enumerate(boxes * 3):
        new = values(seed)
        for threads in (1, 2, 5):
            path = tmp_path / f"{seed % len(boxes)}-{threads}"
            if not path.exists():
                make(path, shards, compressors=compressors)
            array = zcore.open(path, mode="r+", threads=threads)
            array[box] = new[box]
            assert content(path) == content(tmp_path / f"{seed % len(boxes)}-1")
        assert (array[box] == new[box]).all()


def test_a_resize_is_shared_as_well(tmp_path):
    for threads in (1, 4):
        array = make(tmp_path / str(threads), SHAPE, threads=threads)
        array[...] = values(0)
        array.resize((75, 61))
        array.resize(SHAPE)
    assert content(tmp_path / "1") == content(tmp_path / "4")
    assert (array[75:] == 1.5).all() and (array[:75, :61] == values(0)[:75, :61]).all()


def test_damage_that_any_of_them_meets_is_the_callers_error(tmp_path):
    array = make(tmp_path / "a", SHAPE)
    array[...] = values(0)
    shard = tmp_path / "a" / "c" / "0" / "0"
    good = shard.read_bytes()
    shard.write_bytes(bytes(1000) + good[1000:])
    before = content(tmp_path)
    for threads in (1, 2, 5):
        with pytest.raises(zcore.ChunkError) as caught:
            zcore.open(tmp_path / "a", mode="r+", threads=threads)[1:95, 1:79:2] = 3
        assert caught.value.inner_coords is not None
        assert content(tmp_path) == before
    shard.write_bytes(good)
    zcore.open(tmp_path / "a", mode="r+", threads=5)[1:95, 1:79:2] = 3
    assert (zcore.open(tmp_path / "a")[1:95, 1:79:2] == 3).all()
