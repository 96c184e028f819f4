"""Damage chunks at random and read them, in a process of its own that may crash: `mutate_chunks.py directory seed n`.

Only a ZcoreError may come out, from every path the same; what header, table or sizes contradict must be one. Prints
how often what happened, as JSON.
"""

import collections
import json
import random
import resource
import sys
import zlib
from pathlib import Path

import chunks as by_hand
import numpy as np

import zcore
from tests.both_ways import handles
from zcore import blosc, config

LIMIT_NBYTES = 1 << 30
SHUFFLES = {0: 0, 1: by_hand.SHUFFLE, 2: by_hand.BITSHUFFLE}
TYPESIZES = (1, 2, 3, 4, 7, 8, 12, 16, 17, 40, 255, 256)


def content(rng, n_bytes):
    """Bytes that compress somewhat."""
    numbers = np.arange(n_bytes) // 37 + np.frombuffer(rng.randbytes(n_bytes), np.uint8) % 3
    return numbers.astype(np.uint8).tobytes()


def valid_chunks(rng, typesize, data):
    """Every kind of chunk of these data: all compressors and shuffles, several blocks, split or not, stored."""
    itemsize = typesize if typesize < 256 else 1
    block = max(itemsize, 600 // itemsize * itemsize)
    for shuffle, flags in SHUFFLES.items():
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
            for clevel, blocksize in ((0, 0), (5, 0), (9, block)):
                yield blosc.compress(
                    data, cname=cname, clevel=clevel, shuffle=shuffle, typesize=typesize, blocksize=blocksize
                )
        yield by_hand.container(data, zlib.compress, by_hand.ZLIB, itemsize, block, flags)
        yield by_hand.container(data, zlib.compress, by_hand.ZLIB, itemsize, block, flags | by_hand.NOT_SPLIT)
        yield by_hand.snappy_chunk(data, itemsize, block, flags)


def outcome(read):
    try:
        return read()
    except zcore.ZcoreError as error:
        return type(error), error.message, tuple(repr(getattr(error, name)) for name in error.fields)


def main(directory, seed, n):
    rng = random.Random(seed)
    config.threads = 2
    arrays = []
    for typesize in TYPESIZES:
        n_items = 4096 // typesize // 8 * 8 or 8
        data = content(rng, n_items * typesize)
        path = Path(directory, str(typesize))
        array = zcore.open(
            str(path),
            mode="w",
            shape=(n_items // 4, 4),
            chunks=(n_items // 4, 4),
            dtype=f"V{typesize}",
            cname="lz4",
            lock=None,
        )
        Path(path, "__zdata__/0.0.blosc").touch()
        valid = list(valid_chunks(rng, typesize, data))
        file = path / "__zdata__/0.0.blosc"
        arrays.append((array, handles(path, lock=None), file, data, valid, typesize if typesize < 256 else 1))
    counts = collections.Counter()
    # What the process that started this one had in memory does not count.
    Path("/proc/self/clear_refs").write_text("5")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    if zcore.show_config("dicts")["build"]["variant"] != "sanitize":
        # The sanitizers keep their notes all over the address space.
        resource.setrlimit(resource.RLIMIT_AS, (used + LIMIT_NBYTES,) * 2)
    for i in range(n):
        array, both, file, data, valid, itemsize = rng.choice(arrays)
        raw = by_hand.mutated(rng, rng.choice(valid), valid)
        by_hand.replace_content(file, raw)
        try:
            found = []
            wide = np.full((array.shape[0], 6), b"\xee" * array.itemsize, array.dtype)
            for handle in both:
                found.append(outcome(lambda: handle[...].tobytes()))
            found.append(outcome(lambda: array.read(out=wide[:, 1:5]).tobytes()))
            assert wide[:, ::5].tobytes() == b"\xee" * (2 * len(wide) * array.itemsize), "wrote beside out"
            part = outcome(lambda: array[1::2, 1].tobytes())
            assert found[0] == found[1] == found[2], found
            reason = by_hand.contradiction(raw, len(data), itemsize)
            if isinstance(found[0], bytes):
                assert reason is None, reason
                assert len(found[0]) == len(data)
                expected = np.frombuffer(found[0], array.dtype).reshape(array.shape)[1::2, 1].tobytes()
                assert part == expected
                counts["right" if found[0] == data else "undetectable"] += 1
            else:
                # The blocks in which the part lies may be whole.
                assert part == found[0] or ("payload" in found[0][1] and isinstance(part, bytes)), (part, found[0])
                counts[found[0][0].__name__] += 1
                counts["contradicted"] += reason is not None
            if i % 8 == 0:
                # A merge reads the damaged chunk too, and leaves it when it cannot. Blocks that do not change may be
                # damaged: they stay so, and are found by the next read.
                writer = both[i % 16 == 0]
                merged = outcome(lambda: writer.__setitem__((0, 0), bytes(array.itemsize)))
                if merged is not None:
                    assert not isinstance(found[0], bytes) and file.read_bytes() == raw, (merged, found[0])
                elif not isinstance(found[0], bytes):
                    assert "payload" in found[0][1] and array[0, 0].tobytes() == bytes(array.itemsize), found[0]
                    assert not isinstance(outcome(lambda: array[...].tobytes()), bytes), found[0]
        except BaseException:
            print(f"case {i} of {directory}, items of {array.itemsize}: {raw.hex()}", file=sys.stderr)
            raise
    status = Path("/proc/self/status").read_text()
    counts["peak_mb"] = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
