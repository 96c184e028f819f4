"""Damaged shards end in an error, or in what the undamaged chunks hold, however their bytes reach the kernel.

The same class, message and fields. All entries of the selected chunks are checked first, in C order, then chunks are
decoded as they follow each other in the shard; so one thread meets the same mistake first both ways.
"""
import collections
import itertools
import os
import random
import struct

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory, handles
from zcore.errors import ChecksumError, ChunkMemoryError, CodecError, ShardIndexError
from zcore.kernel.codec.checksums import crc32c

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC = {"name": "crc32c"}
BLOSC = {"name": "blosc",
         "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
CHAINS = [[LITTLE, *codecs] for codecs in ([], [CRC], [BLOSC], [BLOSC, CRC], [GZIP], [ZSTD], [ZSTD, CRC])]
INDEX_CHAINS = [[LITTLE], [BIG], [LITTLE, CRC], [BIG, CRC]]
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
# Before and behind the shards of a level.
AROUND = [((), ()), ([TRANSPOSE], ()), ((), [CRC]), ((), [ZSTD]), ([TRANSPOSE], [BLOSC, CRC])]
N_INDEX = 16 * 8
EXTREMES = (0, 1, 15, 16, 17, 255, 256, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 17, 2**64 - 2, 2**64 - 1)
SELECTIONS = [np.s_[:, :], np.s_[0:4, 0:2], np.s_[4:8, 3:4], np.s_[::3, ::5], np.s_[::-1, 7]]


class Damaged:
    """An array of one shard of 2 x 4 chunks, one of them empty, and what the shard is before it is damaged.

    With more than one level these chunks are shards of 2 x 2 chunks themselves, and so on. `around` gives codecs before
    and behind the shards of each level.
    """

    def __init__(self, sharded, path, codecs, index_codecs, location, levels=1, around=((), ())):
        before, after = around
        for level in range(levels, 1, -1):
            codecs = [*(before if level % 2 else ()), {"name": "sharding_indexed", "configuration": {
                "chunk_shape": [2, 1] if level == 2 and not before else [1, 2] if level == 2 else [1, 1],
                "codecs": codecs, "index_codecs": index_codecs, "index_location": location}}, *after]
        self.array = sharded.create(path, (8, 8), "<u2", (8, 8), (2, 4) if before else (4, 2), codecs=codecs,
                                    index_codecs=index_codecs, index_location=location, fill_value=9, threads=1,
                                    before=before, after=after if levels == 1 else ())
        self.both, self.after = handles(path, threads=1), after
        values = np.arange(64).reshape(8, 8) % 11
        values[0:4, 2:4] = 9
        self.array[...] = values
        self.file = path / "c/0/0"
        self.raw = self.file.read_bytes()
        self.word = ">Q" if BIG in index_codecs else "<Q"
        self.has_sum = CRC in index_codecs
        self.at_start = location == "start"
        self.inner_indices = []
        if levels > 1 and not after:
            words = struct.unpack_from(f"{self.word[0]}16Q", self.raw, self.index_in(self.raw))
            n_inner = 16 * 4 + 4 * self.has_sum
            self.inner_indices = [offset if self.at_start else offset + n_bytes - n_inner for offset, n_bytes
                                  in zip(words[::2], words[1::2], strict=True) if offset < 2**63]
            assert len(self.inner_indices) == 7

    def index_in(self, raw):
        """Where the index of a shard begins; None in one that is too short."""
        n_bytes = N_INDEX + 4 * self.has_sum
        return None if len(raw) < n_bytes else 0 if self.at_start else len(raw) - n_bytes

    def damaged(self, rng):
        """The shard with one to three kinds of damage, of which its sum mostly knows nothing."""
        raw = bytearray(self.raw)
        for _ in range(rng.choice((1, 1, 2, 3))):
            kind = rng.choice(("bit", "byte", "cut", "longer", "gap", "entry", "entry", "entry"))
            place = rng.randrange(len(raw)) if raw else 0
            start = self.index_in(raw)
            if kind == "bit" and raw:
                raw[place] ^= 1 << rng.randrange(8)
            elif kind == "byte" and start is not None and not start <= place < start + N_INDEX:
                raw[place] = rng.randrange(256)
            elif kind == "cut":
                raw = raw[:place]
            elif kind == "longer":
                raw += rng.randbytes(rng.choice((1, 4, 16, 200)))
            elif kind == "gap":
                # Longer than what is asked for at once.
                raw[place:place] = rng.randbytes(70_000 if rng.random() < 0.1 else 3)
            elif kind == "entry" and start is not None:
                place = start + 8 * rng.randrange(16)
                if self.inner_indices and rng.random() < 0.6:
                    place = min(rng.choice(self.inner_indices) + 8 * rng.randrange(8), len(raw) - 8)
                old, = struct.unpack_from(self.word, raw, place)
                new = rng.choice((*EXTREMES, len(raw), len(raw) - N_INDEX, rng.randrange(600), old + 1, old - 1))
                struct.pack_into(self.word, raw, place, new % 2**64)
        start = self.index_in(raw)
        indices = [(inner, 16 * 4) for inner in self.inner_indices] + [(start, N_INDEX)] * (start is not None)
        for start, n_bytes in indices:
            if self.has_sum and start + n_bytes + 4 <= len(raw) and rng.random() < 0.9:
                struct.pack_into("<I", raw, start + n_bytes, crc32c(bytes(raw[start:start + n_bytes])))
        return bytes(raw)


def outcome(function):
    """What a call returns, or all that its error says."""
    try:
        return function()
    except zcore.ZcoreError as error:
        return type(error), error.message, tuple([(name, repr(getattr(error, name))) for name in error.fields])


def by_both(arrays, function):
    return [outcome(lambda: function(array)) for array in arrays]


@pytest.mark.parametrize("n", [700, pytest.param(60_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_random_damage(sharded, tmp_path, n, levels):
    """V3-SHARD-07, V3-SHARD-08, V3-SHARD-11, V3-SHARD-15"""
    rng = random.Random(n + levels)
    arrays = [Damaged(sharded, tmp_path / str(i), *case, levels, AROUND[i % 3 and i % len(AROUND)]) for i, case
              in enumerate(itertools.product(CHAINS, INDEX_CHAINS, ("start", "end")))]
    # Python decodes shards with codecs behind them.
    assert all(getattr(it.array._binding.chain.program, "n_levels", 0) == (min(levels - 1, 1) if it.after else levels)
               for it in arrays)
    counts = collections.Counter()
    for i in range(n):
        it = rng.choice(arrays)
        raw = it.damaged(rng)
        it.file.write_bytes(raw)
        selection = rng.choice(SELECTIONS)
        native, confined = by_both(it.both, lambda array: array[selection].tobytes())
        assert native == confined, (i, raw.hex())
        counts[native[0] if isinstance(native, tuple) else "read"] += 1
        if i % 3 == 0:
            column = rng.randrange(8)

            def merge(array):
                it.file.write_bytes(raw)
                array[1:3, column:] = 5
                return it.file.read_bytes()

            native, confined = by_both(it.both, merge)
            assert native == confined, (i, raw.hex())
            assert not isinstance(native, tuple) or it.file.read_bytes() == raw
    print(counts)
    assert counts.keys() >= {"read", ShardIndexError, ChecksumError, CodecError}


@pytest.mark.parametrize("index_location", ["start", "end"])
@pytest.mark.parametrize("way", WAYS)
def test_bytes_that_no_entry_names(sharded, tmp_path, index_location, way):
    """V3-SHARD-10: a gap of any size is read past, costs no memory, and goes with the next write."""
    array = sharded.create(directory(tmp_path, way), (4, 4), "<u2", (4, 4), (2, 2), index_location=index_location)
    array[...] = model = np.arange(16).reshape(4, 4)
    file = tmp_path / "c/0/0"
    raw = file.read_bytes()
    if index_location == "start":
        os.truncate(file, 2**34)     # sparse
    else:
        with open(file, "r+b") as shard:
            shard.seek(2**34)
            shard.write(raw[-68:])
    assert (array[...] == model).all() and array[3, 3] == 15
    array[0, 0] = model[0, 0] = 7
    assert file.stat().st_size == len(raw)
    assert (array[...] == model).all()


def test_a_long_shard_that_is_replaced_while_it_is_read(sharded, monkeypatch):
    """Index and chunks are of one object, also where they are read one by one."""
    class Replacing(zcore.MemoryStore):
        def get_with_identity(self, key, byte_range=None):
            found = super().get_with_identity(key, byte_range)
            if key == "c/0" and self.others:
                self.set(key, self.others.pop())
            return found

    store = Replacing()
    store.others = []
    array = sharded.create(store, (4,), "<u2", (4,), (2,), index_location="start")
    shards = []
    for value in (3, 2, 1):
        array[...] = value
        shards.append(store.get("c/0") + bytes(100_000))
    for use in (lambda: array[...].tolist(), lambda: [array.__setitem__(0, 5), *array[1:].tolist()]):
        store.set("c/0", shards[2])
        store.others = shards[:2]
        assert use() in ([3] * 4, [None, 3, 3, 3])
        assert not store.others


def test_a_shard_that_a_codec_behind_it_does_not_take(sharded, tmp_path):
    """It could not be encoded, and says so."""
    shuffle = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}}
    sharded.create(tmp_path, (4,), "<u2", (4,), (2,), after=[shuffle])
    native, confined = by_both(handles(tmp_path), lambda array: array.__setitem__(slice(None), 1))
    assert native == confined and ("direction", "'encode'") in native[2]


@pytest.mark.parametrize("way", WAYS)
def test_shards_that_no_memory_holds(sharded, tmp_path, way):
    """Their chunks may encode to more bytes than a 64-bit number counts: no mistake, until one is to be decoded."""
    inner = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2**30], "codecs": [LITTLE, ZSTD, ZSTD, ZSTD, ZSTD], "index_codecs": [LITTLE],
        "index_location": "end"}}
    array = sharded.create(directory(tmp_path, way), (2**60,), "u1", (2**60,), (2**40,), codecs=[inner], after=[ZSTD])
    assert array[3] == 0
    file = tmp_path / "c/0"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"damaged")
    for use in (lambda: array[3], lambda: array.__setitem__(3, 1)):
        with pytest.raises(ChunkMemoryError, match="c/0: no memory for (the chunk|[0-9]+ bytes)$"):
            use()
