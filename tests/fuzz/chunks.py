"""Blosc chunks made, judged and damaged by hand, from the description of the format alone.

README_CHUNK_FORMAT.rst of c-blosc, with what real chunks show: `bstarts` count from byte 0, a block whose items are no
multiple of 8 is not bit-shuffled, only full blocks are split.
"""
import struct

import numpy as np

SHUFFLE, MEMCPY, BITSHUFFLE, RESERVED, NOT_SPLIT = 0x01, 0x02, 0x04, 0x08, 0x10
SNAPPY, ZLIB = 2, 3


def shuffled(block, typesize, flags):
    """A block as its shuffle leaves it."""
    n = len(block) // typesize
    items = np.frombuffer(block, np.uint8, n * typesize).reshape(n, typesize)
    rest = block[n * typesize:]
    if flags & SHUFFLE and typesize > 1:
        return items.T.tobytes() + rest
    if flags & BITSHUFFLE and n and n % 8 == 0:
        bits = np.unpackbits(items, axis=1, bitorder="little")
        return np.packbits(bits.T, axis=1, bitorder="little").tobytes() + rest
    return block


def container(data, compress, fmt, typesize, blocksize, flags, order=None):
    """Return `data` as a chunk whose streams are made by `compress`.

    `order` names the order in which the blocks are stored: threads finish them in any.
    """
    blocks = [data[i:i + blocksize] for i in range(0, len(data), blocksize)]
    stored = []
    for block in blocks:
        is_split = (not flags & NOT_SPLIT and typesize <= 16 and blocksize // typesize >= 128
                    and len(block) == blocksize)
        n = len(block) // (typesize if is_split else 1)
        block = shuffled(block, typesize, flags)
        body = b""
        for i in range(0, len(block), n):
            stream = compress(block[i:i + n])
            stream = stream if len(stream) < n else block[i:i + n]
            body += struct.pack("<i", len(stream)) + stream
        stored.append(body)
    starts, end = [0] * len(blocks), 16 + 4 * len(blocks)
    bodies = b""
    for k in order or range(len(blocks)):
        starts[k] = end + len(bodies)
        bodies += stored[k]
    table = struct.pack(f"<{len(starts)}i", *starts)
    total = 16 + len(table) + len(bodies)
    if total > len(data) + 16:
        # As every writer does.
        return struct.pack("<BBBBIII", 2, 1, flags | MEMCPY | fmt << 5, typesize, len(data), blocksize,
                           len(data) + 16) + data
    return struct.pack("<BBBBIII", 2, 1, flags | fmt << 5, typesize, len(data), blocksize, total) + table + bodies


def snappy_chunk(data, typesize, blocksize, flags=0, order=None):
    """Return `data` as a chunk of snappy streams, as c-blosc builds with snappy make them."""
    from cramjam import snappy

    return container(data, lambda stream: bytes(snappy.compress_raw(stream)), SNAPPY, typesize, blocksize, flags, order)


def contradiction(raw, n_bytes, itemsize):
    """Return what in header, block table or stream sizes cannot be true of a chunk of `n_bytes`, or None.

    `itemsize` is that of the array, or 1 where blosc cannot store it.
    """
    if len(raw) < 16:
        return "shorter than a header"
    version, versionlz, flags, typesize, nbytes, blocksize, cbytes = struct.unpack_from("<BBBBIII", raw)
    fmt = flags >> 5
    for reason, holds in (
        ("version", version == 2), ("inner version", versionlz == 1), ("reserved flag", not flags & RESERVED),
        ("two shuffles", not (flags & SHUFFLE and flags & BITSHUFFLE)), ("stored size", cbytes == len(raw)),
        ("decoded size", nbytes == n_bytes), ("item size", typesize in (1, itemsize)),
        ("block size", 1 <= blocksize <= min(nbytes, 715827542)), ("compressor", fmt <= 4),
        ("size as is", not flags & MEMCPY or cbytes == nbytes + 16),
    ):
        if not holds:
            return reason
    if flags & MEMCPY:
        return None
    n_blocks = -(-nbytes // blocksize)
    table_end = 16 + 4 * n_blocks
    if table_end > cbytes:
        return "block table"
    for k, start in enumerate(struct.unpack_from(f"<{n_blocks}i", raw, 16)):
        is_full = (k + 1) * blocksize <= nbytes
        is_split = not flags & NOT_SPLIT and typesize <= 16 and blocksize // typesize >= 128 and is_full
        if not table_end <= start <= cbytes - 4:
            return "block start"
        n_streams = typesize if is_split else 1
        share = min(blocksize, nbytes - k * blocksize) // n_streams
        for _ in range(n_streams):
            if start > cbytes - 4:
                return "stream"
            size, = struct.unpack_from("<i", raw, start)
            start += 4 + size
            if size < 1 or start > cbytes or size > share + share // 6 + 32:
                return "stream"
    return None


def replace_content(file, content):
    """Give a file that exists another content, in place: ext4 writes to the disk what is truncated to nothing first."""
    with open(file, "r+b") as target:
        target.write(content)
        target.truncate()


EXTREMES = (0, 1, 2, 15, 16, 17, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 17, 2**31 - 16, 2**31 - 1, 2**31, 2**32 - 1)


def mutated(rng, raw, others):
    """Return a chunk with one or a few kinds of damage."""
    raw = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.randrange(9)
        place = rng.randrange(len(raw)) if raw else 0
        if kind == 0 and raw:
            raw[place] ^= 1 << rng.randrange(8)
        elif kind == 1 and raw:
            raw[place] = rng.randrange(256)
        elif kind == 2:
            raw = raw[:place]
        elif kind == 3:
            raw += rng.randbytes(rng.choice((1, 4, 15, 16, 200)))
        elif kind == 4 and len(raw) >= 16:
            struct.pack_into("<I", raw, rng.choice((4, 8, 12)), rng.choice(EXTREMES))
        elif kind == 5 and len(raw) >= 20:
            # The block table, or the size of a stream.
            struct.pack_into("<I", raw, rng.randrange(16, min(len(raw) - 3, 80)), rng.choice((*EXTREMES, place)))
        elif kind == 6:
            other = rng.choice(others)
            raw[place:] = other[place:]
        elif kind == 7 and raw:
            raw[place:place + rng.randrange(1, 20)] = b"" if rng.random() < 0.5 else rng.randbytes(rng.randrange(20))
        elif raw:
            raw[rng.randrange(min(4, len(raw)))] = rng.choice((0, 1, 2, 3, 4, 5, 0x11, 0x21, 0x35, 0x41, 0x83, 0xFF))
    if len(raw) >= 16 and rng.random() < 0.5:
        # The cheapest check would find most of it otherwise.
        struct.pack_into("<I", raw, 12, len(raw))
    return bytes(raw)
