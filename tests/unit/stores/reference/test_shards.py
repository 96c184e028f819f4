"""Shards that are parts of other files: of each the index is read and what is selected, no more."""
import os
import sys
import time

import numpy as np
import pytest

import zcore
from tests.both_ways import brought
from zcore.errors import ChecksumError, ReferenceTargetError, ShardIndexError
from zcore.kernel.plan.shard_index import INDICES
from zcore.stores.reference.store import ReferenceStore

SHARD, CHUNK = 512, 32       # elements along each dimension of two
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")


@pytest.fixture(params=[ReferenceStore, brought(ReferenceStore)], ids=["located", "brought"])
def store_class(request):
    return request.param


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(5).integers(0, 2**16, (2 * SHARD, 2 * SHARD), dtype="<u2")


@pytest.fixture(scope="module")
def archive(tmp_path_factory, values):
    """Four shards in one file, among other bytes, and what says where they lie; old enough for identities to count."""
    folder = tmp_path_factory.mktemp("shards")
    made = zcore.create_array(str(folder / "made"), shape=values.shape, dtype="<u2", shards=(SHARD, SHARD),
                              chunks=(CHUNK, CHUNK), compressors=None, fill_value=7)
    made[...] = values
    body, refs = b"head" * 11, {"zarr.json": (folder / "made" / "zarr.json").read_text()}
    for i in range(2):
        for j in range(2):
            shard = (folder / "made" / "c" / str(i) / str(j)).read_bytes()
            refs[f"c/{i}/{j}"] = ["all.bin", len(body), len(shard)]
            body += shard + b"between" * (3 * i + j)
    (folder / "all.bin").write_bytes(body)
    (folder / "single.bin").write_bytes(shard)
    return folder, refs


@pytest.fixture(scope="module")
def old(archive):
    """The time at which the files of the archive count as old."""
    folder, _ = archive
    time.sleep(max(0, os.stat(folder / "single.bin").st_ctime + 2.1 - time.time()))
    return archive


def n_bytes_read():
    with open("/proc/self/io") as file:
        return int(next(line for line in file if line.startswith("rchar")).split()[1])


@linux
@pytest.mark.parametrize("threads", [1, 3])
def test_a_chunk_costs_its_bytes_and_the_index(old, values, store_class, threads):
    """RF-STO-03: of shards of half a megabyte."""
    folder, refs = old
    array = zcore.open(store_class(refs, base=folder), threads=threads)
    index = (SHARD // CHUNK) ** 2 * 16 + 4
    chunk = CHUNK * CHUNK * 2
    for row, column in ((0, 0), (700, 40), (3, 1000), (701, 41)):
        box = (slice(row // CHUNK * CHUNK, row // CHUNK * CHUNK + CHUNK),
               slice(column // CHUNK * CHUNK, column // CHUNK * CHUNK + CHUNK))
        before = n_bytes_read()
        found = array[box]
        n = n_bytes_read() - before
        assert (found == values[box]).all()
        assert chunk <= n <= chunk + 4 + index + 2000, n     # a little is what asking costs


def test_shards_in_one_file_are_told_apart(old, values, store_class):
    """RF-STO-03: an index that is kept belongs to its place in the file, too."""
    folder, refs = old
    array = zcore.open(store_class(refs, base=folder))
    rng = np.random.default_rng(2)
    for _ in range(30):
        rows, columns = (np.sort(rng.integers(0, 2 * SHARD, 5)) for _ in range(2))
        assert (array.oindex[rows, columns] == values[np.ix_(rows, columns)]).all()
        start = tuple(rng.integers(0, 2 * SHARD, 2))
        assert (array[start[0]:, start[1]::3] == values[start[0]:, start[1]::3]).all()
    assert (array[...] == values).all()


def test_indices_are_kept_between_reads(old, values):
    """RF-STO-03"""
    folder, refs = old
    array = zcore.open(ReferenceStore(refs, base=folder))
    array[600, 600]
    before = INDICES.info()["hits"]
    assert array[601, 700] == values[601, 700] and INDICES.info()["hits"] == before + 1


def test_wherever_a_shard_lies(archive, values, store_class):
    """RF-V0-02, RF-V0-03, RF-URL-07: as a whole file, in the set itself, nowhere, or behind the end of its target."""
    from base64 import b64encode

    folder, refs = archive
    shard = (folder / "single.bin").read_bytes()
    for reference in (["single.bin"], "base64:" + b64encode(shard).decode(), ["single.bin", 0, len(shard)]):
        array = zcore.open(store_class({**refs, "c/1/1": reference}, base=folder))
        assert (array[SHARD - 3:, SHARD + 5:] == values[SHARD - 3:, SHARD + 5:]).all()
    without = {key: value for key, value in refs.items() if key != "c/1/1"}
    array = zcore.open(store_class(without, base=folder))
    assert (array[SHARD:, SHARD:] == 7).all() and (array[:, :SHARD] == values[:, :SHARD]).all()
    for reference in (["single.bin", 1, len(shard)], ["single.bin", 2**62, 10], ["gone.bin", 0, 5], ["/etc/passwd"]):
        array = zcore.open(store_class({**refs, "c/1/1": reference}, base=folder))
        assert array[0, 0] == values[0, 0]
        with pytest.raises(ReferenceTargetError) as caught:
            array[SHARD:, 0:]
        assert caught.value.key == "c/1/1"
    for reference in ("", ["gone.bin", 3, 0], ["single.bin", 0, 20], "base64:AAAA"):
        array = zcore.open(store_class({**refs, "c/1/1": reference}, base=folder))
        with pytest.raises(ShardIndexError):
            array[-1, -1]


def test_damage_is_told_as_in_a_directory(archive):
    """The place of an error counts from the first byte of the shard, wherever that lies."""
    folder, refs = archive
    shard = bytearray((folder / "single.bin").read_bytes())
    shard[100] ^= 1              # a chunk
    (folder / "chunk.bin").write_bytes(b"x" * 1000 + shard)
    shard[-50] ^= 1              # the index
    (folder / "index.bin").write_bytes(b"x" * 1000 + shard)
    for name in ("chunk.bin", "index.bin"):
        told = []
        for cls in (ReferenceStore, brought(ReferenceStore)):
            array = zcore.open(cls({**refs, "c/1/1": [name, 1000, len(shard)]}, base=folder))
            with pytest.raises(ChecksumError) as caught:
                array[SHARD:, SHARD:]
            told.append((str(caught.value), caught.value.key, caught.value.offset, caught.value.inner_coords))
        assert told[0] == told[1] and told[0][1] == "c/1/1" and told[0][2] < len(shard)


def test_a_target_that_is_replaced(tmp_path, old, values, store_class):
    """RF-STO-04: its index is not the one that was kept."""
    folder, refs = old
    zcore.create_array(str(tmp_path / "other"), shape=values.shape, dtype="<u2", shards=(SHARD, SHARD),
                               chunks=(CHUNK, CHUNK), compressors=None, fill_value=7)[:, ::40] = values[:, ::40]
    (tmp_path / "x.bin").symlink_to(folder / "single.bin")
    store = store_class({**refs, "c/1/1": ["x.bin"]}, base=tmp_path, allowed=[folder])
    array = zcore.open(store)
    assert (array[600:, 600:] == values[600:, 600:]).all()
    (tmp_path / "x.bin").unlink()
    (tmp_path / "other" / "c" / "1" / "1").rename(tmp_path / "x.bin")
    expected = np.full((SHARD, SHARD), 7)
    columns = np.arange(SHARD, 2 * SHARD) % 40 == 0
    expected[:, columns] = values[SHARD:, SHARD:][:, columns]
    assert (array[SHARD:, SHARD:] == expected).all()


def test_identities(tmp_path):
    """RF-STO-04: of parts of one file, of data in the set, of what may change."""
    (tmp_path / "a.bin").write_bytes(bytes(range(100)))
    refs = {"a": ["a.bin", 0, 10], "b": ["a.bin", 10, 10], "c": ["a.bin", 0, 10], "d": ["a.bin"], "e": ["a.bin", 0, 0],
            "f": "text", "g": "text", "h": "texts", "i": ["s3://bucket/x", 0, 10], "j": ["gone.bin"]}
    store = ReferenceStore(refs, base=tmp_path)
    found = {key: store.identity(key) for key in refs if key != "j"}
    assert found["a"] == found["c"] and found["f"] == found["g"] and found["i"] is store.identity("other") is None
    assert len({found[key] for key in "abdefh"}) == 6
    assert [found[key][2] for key in "abdefh"] == [10, 10, 100, 0, 4, 5]
    for key in "abdefgh":
        assert store.get_with_identity(key) == (store.get(key), found[key])
        for byte_range in ((1, 2), (None, 3), (7, None), (200, 5)):
            assert store.get_with_identity(key, byte_range) == (store.get(key, byte_range), found[key])
    assert store.get_with_identity("other") is None
    for call in (store.identity, store.get_with_identity):
        with pytest.raises(ReferenceTargetError):
            call("j")
    (tmp_path / "a.bin").write_bytes(bytes(range(1, 101)))
    assert store.identity("a") != found["a"] and store.identity("f") == found["f"]
    changing = ReferenceStore(refs, base=tmp_path, read_only=False)
    assert changing.identity("a") is changing.identity("f") is None
    assert changing.get_with_identity("f") == (b"text", None)
