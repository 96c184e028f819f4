"""What is asked of two libraries: arrays of many types, codecs and layouts, and elements for them."""
import functools
import itertools
import random
from typing import NamedTuple

import numpy as np

# Name -> what `create_array` takes, a fill value that is not zero, and one that is special to its kind.
DTYPES = {
    "bool": ("bool", True, True),
    "int8": ("int8", -7, -128),
    "int16": (">i2", -300, 2**15 - 1),
    "int32": ("int32", 42, -2**31),
    "int64": ("int64", -2**40, 2**63 - 1),
    "uint8": ("uint8", 7, 255),
    "uint16": ("uint16", 300, 2**16 - 1),
    "uint32": (">u4", 42, 2**32 - 1),
    "uint64": ("uint64", 2**40, 2**64 - 1),
    "float16": ("float16", 1.5, np.nan),
    "float32": ("float32", 0.1, np.nan),
    "float64": (">f8", -0.1, -np.inf),
    "complex64": ("complex64", 1.5 - 2j, complex(np.nan, np.inf)),
    "complex128": (">c16", 0.1 + 2j, complex(-0.0, np.nan)),
    "bytes5": ("S5", b"abc", b"\xff\x00\xfe"),
    "text3": ("<U3", "äb", "\U0001f600"),
    "raw7": ("V7", np.void(b"1234567"), np.void(b"\xff\0\0\0\0\0\x01")),
    "datetime": ("<M8[ns]", np.datetime64(10**18, "ns"), np.datetime64("NaT", "ns")),
    "timedelta": ("<m8[10s]", np.timedelta64(7, "10s"), np.timedelta64("NaT", "10s")),
    "struct": ([("a", "<i2"), ("b", "<f8")], (3, 0.1), (-1, np.nan)),
    "string": (str, "äb", "\U0001f600"),
}
INTEGERS = frozenset(name for name in DTYPES if "int" in name)
TEXT = frozenset(("string",))  # items without a size

_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}
_CRC32C = {"name": "crc32c"}
_ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
_ZLIB = {"id": "zlib", "level": 1}
CHAINS = {
    3: {
        "auto": {},
        "none": {"compressors": None},
        "blosc": {"compressors": [{"name": "blosc", "configuration": _BLOSC}]},
        "blosc bits": {"compressors": [{"name": "blosc", "configuration": _BLOSC | {
            "cname": "zstd", "clevel": 1, "shuffle": "bitshuffle"}}]},
        "gzip": {"compressors": [{"name": "gzip", "configuration": {"level": 1}}]},
        "zstd": {"compressors": [_ZSTD]},
        "crc32c": {"compressors": [_CRC32C]},
        "crc32c zstd crc32c": {"compressors": [_CRC32C, _ZSTD, _CRC32C]},
    },
    2: {
        "auto": {},
        "none": {"compressors": None},
        "blosc bits": {"compressors": {"id": "blosc", "cname": "zlib", "clevel": 1, "shuffle": 2, "blocksize": 0}},
        "zlib": {"compressors": _ZLIB},
        "gzip": {"compressors": {"id": "gzip", "level": 1}},
        "bz2": {"compressors": {"id": "bz2", "level": 1}},
        "zstd": {"compressors": {"id": "zstd", "level": 1, "checksum": False}},
        "lz4": {"compressors": {"id": "lz4", "acceleration": 1}},
        "shuffle zlib": {"filters": "shuffle", "compressors": _ZLIB},
        "delta zlib": {"filters": "delta", "compressors": _ZLIB},
    },
}
SHAPES = {  # shape, chunks, shards, shape after a resize
    "0-d": ((), (), (), ()),
    "1-d": ((11,), (2,), (4,), (5,)),
    "2-d": ((7, 10), (2, 4), (4, 8), (9, 5)),
    "3-d": ((3, 4, 5), (2, 2, 2), (4, 2, 6), (2, 5, 5)),
}
FILLS = ("default", "set", "special", "undefined")


class Case(NamedTuple):
    """One array to be made; every member is a key of the tables above."""

    format: int
    dtype: str
    chain: str
    shards: str
    order: str
    separator: str
    fill: str
    shape: str

    def __str__(self):
        return f"v{self.format}-" + "-".join(self[1:])

    def is_possible(self):
        """Return whether the format can express it, and it is not another one under a second name."""
        if self.format == 2 and self.chain == "delta zlib":
            return self.dtype in INTEGERS
        if self.shape == "0-d" and (self.shards != "none" or self.order != "C" or self.separator != "/"):
            return False
        if self.dtype in TEXT and (self.chain == "shuffle zlib" or self.order == "F"):
            return False
        if self.format == 3:
            return self.fill != "undefined"
        return True

    def keywords(self):
        """Return what `zcore.create_array` makes the array of."""
        dtype, *values = DTYPES[self.dtype]
        shape, chunks, shards, _ = SHAPES[self.shape]
        chain = dict(CHAINS[self.format][self.chain])
        if chain.get("filters") == "delta":
            chain["filters"] = [{"id": "delta", "dtype": np.dtype(dtype).str}]
        elif chain.get("filters") == "shuffle":
            chain["filters"] = [{"id": "shuffle", "elementsize": np.dtype(dtype).itemsize}]
        keywords = {
            "shape": shape, "chunks": chunks, "dtype": dtype, "order": self.order, "zarr_format": self.format,
            "chunk_key_encoding": {"name": "default" if self.format == 3 else "v2",
                                   "configuration": {"separator": self.separator}},
            "checksum": self.chain == "auto", "attributes": {"title": "peers", "n": [1, None, {"ä": 2.5}]}, **chain,
        }
        if self.shards != "none":
            keywords["shards"] = {"shape": shards, "index_location": self.shards}
        if self.format == 3 and self.shape != "0-d":
            keywords["dimension_names"] = [*"xyz"[:len(shape) - 1], None]
        if self.fill != "default":
            keywords["fill_value"] = {"set": values[0], "special": values[1], "undefined": None}[self.fill]
        return keywords


def axes(format):
    """Return the values of every member of a `Case` but the first."""
    return (tuple(DTYPES), tuple(CHAINS[format]), ("none", "end", "start") if format == 3 else ("none",),
            ("C", "F"), ("/", "."), FILLS, tuple(SHAPES))


@functools.cache
def product(format):
    """Return all cases of two dimensions."""
    cases = itertools.starmap(Case, itertools.product((format,), *axes(format)[:-1], ("2-d",)))
    return tuple([case for case in cases if case.is_possible()])


def sample(format, count, seed):
    """Return `count` cases that together show many pairs of values: each is the best of some random ones."""
    random_ = random.Random(seed)
    seen, cases = set(), []
    for _ in range(count):
        some = []
        while len(some) < 20:
            case = Case(format, *map(random_.choice, axes(format)))
            if case.is_possible():
                some.append(case)
        case = max(some, key=lambda case: len(pairs(case) - seen))
        seen |= pairs(case)
        cases.append(case)
    return cases


def pairs(case):
    """Return all pairs of its values, each with its place."""
    return set(itertools.combinations(enumerate(case), 2))


def elements(dtype, shape, seed):
    """Return elements of any kind, every pattern of bits among them."""
    rng = np.random.default_rng(seed)
    if dtype.kind in "TO":
        words = ["", "a", "äöü", "\U0001f600", "long " * 9]
        return np.array([words[i] for i in rng.integers(0, len(words), shape).flat], dtype).reshape(shape)
    if dtype.kind == "U":
        return rng.integers(0, 0x24F, (*shape, dtype.itemsize // 4), np.uint32).astype(
            dtype.str[0] + "u4").view(dtype)[..., 0]
    raw = rng.integers(0, 2 if dtype.kind == "b" else 256, (*shape, dtype.itemsize), np.uint8)
    return raw.view(dtype)[..., 0]


def same(found, expected):
    """Return whether two arrays hold the same elements, bit by bit and in whatever byte order."""
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind == "T" or found.dtype.kind in "TO":
        return found.tolist() == expected.tolist()
    native = expected.dtype.newbyteorder("=")
    return found.dtype.newbyteorder("=") == native and found.astype(native).tobytes() == \
        expected.astype(native).tobytes()
