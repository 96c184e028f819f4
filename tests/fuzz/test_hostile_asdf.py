"""ASDF files that are damaged at random: only zcore's errors come out, in bounded time and memory."""
import hashlib
import random
import struct
import warnings
import zlib

import pytest

from zcore.asdf import file_layout, scan
from zcore.asdf.blocks import BlockList
from zcore.errors import ZcoreError
from zcore.ranges import ByteSource

WORDS = [struct.pack(">Q", n) for n in (0, 1, 47, 48, 54, 2**16, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)]
PARTS = [file_layout.BLOCK_MAGIC, b"#ASDF BLOCK INDEX\n", b"\n...\n", b"--- [", b"%YAML 1.1\n", b"zlib",
         b"lz4\0", b"bzp2", b"\r\n", b"\0" * 16]


class Memory(ByteSource):
    """A source of bytes in memory."""

    path = "memory"

    def __init__(self, data):
        self.data = data
        self.size = len(data)
        self.n_read = 0

    def read_at(self, offset, n_bytes):
        part = self.data[offset:offset + max(0, n_bytes)]
        self.n_read += len(part)
        return part


def seeds(asdf_bytes):
    data = b"abc" * 20
    digest = hashlib.md5(data).digest()
    raw = asdf_bytes.block(data, checksum=digest)
    packed = zlib.compress(data)
    zipped = asdf_bytes.block(packed, compression=b"zlib", data_size=60, checksum=hashlib.md5(packed).digest())
    records = b"\0\0\0\x08\x03\0\0\0\x30abc" * 2
    made = asdf_bytes.block(records, compression=b"lz4", data_size=6)
    roomy = asdf_bytes.block(data + bytes(30), used=60, allocated=90, header_size=70)
    streamed = asdf_bytes.block(data, flags=1, allocated=0, used=0)
    return [
        asdf_bytes.file(raw, zipped, made, index=True),
        asdf_bytes.file(roomy, raw, index=True, tree=b"", comments=b""),
        asdf_bytes.file(zipped, roomy, pad=b" " * 50),
        asdf_bytes.file(raw, streamed),
    ]


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        kind, at = rng.randrange(6), rng.randrange(len(data) + 1)
        if kind == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at:at + rng.choice((1, 4, 54, 200))]
        elif kind == 2:
            data[at:at + 8] = rng.choice(WORDS)
        elif kind == 3:
            data[at:at] = rng.choice(PARTS)
        elif kind == 4 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other:other + rng.choice((1, 8, 54, 120))]
        if not data:
            data = bytearray(b"#")
    return bytes(data)


def look_at(data):
    """Read all of a file; returns how many blocks, or the class of the error."""
    source = Memory(data)
    try:
        front = scan.read_front(source)
        blocks = BlockList(source, front)
        n_blocks = len(blocks.found.offsets)
        for number in range(n_blocks):
            try:
                block = blocks[number]
                assert block.data_offset + block.used <= source.size
                if block.data_size < 10**6:
                    assert len(block.read()) == block.data_size
            except ZcoreError as exc:
                assert str(exc)
        len(blocks)
    except ZcoreError as exc:
        assert str(exc)
        return type(exc)
    finally:
        # Each byte is looked at some times, not as often as there are blocks.
        assert source.n_read < 200 * len(data) + 200_000
    return n_blocks


def run(asdf_bytes, n, seed):
    rng = random.Random(seed)
    files = seeds(asdf_bytes)
    outcomes = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [look_at(data) for data in files] == [3, 2, 2, 2]
        for _ in range(n):
            outcome = look_at(mutate(rng, rng.choice(files)))
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def test_mutated_files(asdf_bytes):
    """AS-BLK-02 to AS-BLK-08, AS-CMP-03, AS-CMP-04, AS-IDX-07: an error of zcore, or blocks that lie in the file."""
    outcomes = run(asdf_bytes, 6_000, 0)
    # Damage of every kind is met, and so are files that are whole all the same.
    assert {0, 1, 2, 3} <= outcomes.keys() and len(outcomes) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_million_mutated_files(asdf_bytes, seed):
    """AS-BLK-02 to AS-BLK-08, AS-CMP-03, AS-CMP-04, AS-IDX-07: the same for long."""
    run(asdf_bytes, 260_000, seed + 1)
