"""What is measured, as data: one `Workload` a row, with the targets that zcore has to meet on it."""
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.inputs.encodings import ENCODINGS
from benchmarks.inputs.fixtures import Layout

ZCORE = "zcore"
BARE_LOOP = "bare_loop"
FASTEST = "fastest peer"
RESULT = "result"
STAT = "os.stat"
MEGABYTE = "MB"

MIB = 2**20


@dataclass(frozen=True)
class Target:
    """A bound on a ratio of medians.

    Attributes
    ----------
    against : str
        A library, or `FASTEST`: the peer with the least median (the bare loop is a limit, not a peer). For
        memory `RESULT` or `MEGABYTE`, for elements of a kept chunk `STAT`.
    at_least : float or None
        Bound on time of the other / time of zcore.
    at_most : float or None
        Bound on zcore / the other.
    chunks_per_thread : int
        Only for memory: decoded chunks a thread that are allowed beside ``at_most * result``.
    """

    against: str
    at_least: float | None = None
    at_most: float | None = None
    chunks_per_thread: int = 0


@dataclass(frozen=True)
class Workload:
    """One thing to measure.

    Attributes
    ----------
    name : str
    title : str
        What is measured, for the report.
    kind : {"read", "sparse", "parts", "parts_at_once", "pieces", "crops", "box", "points", "mask", "product", \
"strided", "elements", "kept_elements", "write", "write_box", "append", "stream", "open", "create", "list", "member", \
"first_read", "memory", "write_memory", "set", "set_memory", "remote", "remote_list"}
        ``sparse`` reads an array half of whose chunks are not stored;
        ``parts`` reads `count` chunks, each before the next one is asked for, ``pieces`` as many runs of
        10 elements anywhere, ``crops`` as many boxes of the lengths that are `taken`, all at once; ``box`` reads what
        `taken` says; ``points`` reads `count` random elements at once, ``mask`` a random half of all, ``product``
        `count` random rows in as many random columns, ``strided`` slices with the steps that are `taken`;
        ``write_box`` changes what `taken` says in an array that is there; ``append`` adds to an array without elements
        one row of chunks after the other, ``stream`` the same, and readers see it at the end;
        ``elements`` reads `count` single elements of one chunk one after the other, ``kept_elements`` the same through
        a cache of chunks, by the libraries that have one; ``create`` and ``list`` make and list `count` arrays in a
        group, each of which differs from the others in all, or if they are `alike` in length and attributes,
        ``member`` opens one of them through the group, ``open`` one of
        them at a time by its path; ``first_read`` imports the library in a new process and reads 10 elements; ``set``
        opens a reference set of `count` references; ``remote`` reads all, or what is `taken`, from a server,
        ``remote_list`` lists as ``list`` does.
    shape, chunks : tuple of int
        Of the array. The chunks divide the shape.
    shards : tuple of int or None
        Elements of a stored object of many chunks.
    encoding : str
        Of `encodings.ENCODINGS`.
    count : int
    alike : bool
    taken : tuple of (int or slice or None)
        Of each dimension the element that is read, or those; None for all.
    latency : float
        Seconds that each answer of a server waits.
    place : {"disk", "tmpfs"}
        Where the files lie: below the directory for temporary files, or in memory.
    blocked : bool
        Whether all samples of a library are taken in a row; else the libraries are interleaved.
    samples_per_repeat : int
        Short operations are repeated more often.
    note : str
        Which library does less than the others here, or more.
    max_repeats : int or None
        Upper limit of the repeats, for what does not vary.
    targets : tuple of Target
    """

    name: str
    title: str
    kind: str
    shape: tuple = ()
    chunks: tuple = ()
    shards: tuple | None = None
    encoding: str = "v3"
    count: int = 0
    alike: bool = False
    taken: tuple = ()
    latency: float = 0.0
    place: str = "disk"
    blocked: bool = False
    samples_per_repeat: int = 1
    max_repeats: int | None = None
    note: str = ""
    targets: tuple = ()

    @property
    def layout(self):
        """The array as `fixtures` makes it."""
        return Layout(self.shape, self.chunks, self.shards, self.encoding)

    @property
    def dtype(self):
        """The type of the elements."""
        return ENCODINGS[self.encoding].dtype


_FULL_READ = (Target(FASTEST, at_least=1.1), Target(BARE_LOOP, at_most=1.15))
_OPEN = (Target("tensorstore", at_least=4), Target("zarr", at_least=25))
_AHEAD = (Target(FASTEST, at_least=1.0),)
_TWICE = (Target(FASTEST, at_least=2),)
_REMOTE = (Target("zarr", at_least=1.2), Target("tensorstore", at_least=1.0))
_NO_LOCKS = "zarr-python and zarrs take no locks"
_NO_GROUP = "tensorstore has no groups and makes the arrays alone; zarr-python takes no locks"
_LISTS = "tensorstore has no groups: it lists the store"
_BY_PATH = "tensorstore has no groups: it opens the array by its path"
_NO_LOOK = "h5py does not look whether the file has changed, zcore and tensorstore do"
_VISIBLE = "readers see each frame when its call returns; zarr-python and zarrs take no locks"
_AT_END = ("zcore's writer and tensorstore store frames in the background, the others one by one; zcore copies them, "
           "tensorstore refers to the caller's memory")
_MANY_ARRAYS = (Target("zarr", at_least=5),)


def _both_ways(name, title, encoding, max_writes=None):
    """Return a workload that reads 64 MB of 1 MB chunks, and one that writes them to memory."""
    times = 4 // np.dtype(ENCODINGS[encoding].dtype).itemsize
    sizes = {"shape": (4096, 4096 * times), "chunks": (512, 512 * times), "encoding": encoding, "targets": _AHEAD}
    return (Workload(f"read_{name}", f"read 64 MB, 1 MB square chunks, {title}", "read", **sizes),
            Workload(f"write_{name}", f"write 64 MB, 1 MB square chunks, {title}, on tmpfs", "write", place="tmpfs",
                     max_repeats=max_writes, **sizes))


WORKLOADS = (
    Workload("read_frames", "read 256 MB, 4 MB chunks, each contiguous in the result", "read",
             (64, 1024, 1024), (1, 1024, 1024), targets=_FULL_READ),
    Workload("read_tiles", "read 256 MB, 4 MB square chunks", "read",
             (8192, 8192), (1024, 1024), targets=_FULL_READ),
    Workload("read_small_tiles", "read 4096 square chunks of 16 KB", "read",
             (4096, 4096), (64, 64), targets=_TWICE),
    Workload("write_disk", "write 256 MB, 4 MB chunks, on disk", "write",
             (8192, 8192), (1024, 1024), max_repeats=5, targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_tmpfs", "write 256 MB, 4 MB chunks, on tmpfs", "write",
             (8192, 8192), (1024, 1024), place="tmpfs", targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_small_tmpfs", "write 4096 square chunks of 16 KB, on tmpfs", "write",
             (4096, 4096), (64, 64), place="tmpfs", max_repeats=5, targets=(Target(FASTEST, at_least=1.3),)),
    *_both_ways("v2", "Zarr v2", "v2"),
    *_both_ways("v3", "Zarr v3", "v3"),
    *_both_ways("int16", "int16", "int16"),
    *_both_ways("crc32c", "with checksums", "crc32c"),
    *_both_ways("transpose", "transposed", "transpose"),
    *_both_ways("raw", "uncompressed", "raw"),
    *_both_ways("zstd", "zstd", "zstd", max_writes=5),
    *_both_ways("blosc_zstd", "blosc-zstd", "blosc_zstd", max_writes=5),
    *_both_ways("gzip", "gzip", "gzip", max_writes=3),
    Workload("read_raw_tiles", "read 512 MB, 4 MB square chunks, uncompressed", "read",
             (8192, 16384), (1024, 1024), encoding="raw", targets=(Target(FASTEST, at_least=1.2),)),
    Workload("read_raw_row", "read one row, through 16 square chunks of 4 MB, uncompressed", "box",
             (8192, 16384), (1024, 1024), encoding="raw", taken=(517, None), samples_per_repeat=3, targets=_AHEAD),
    Workload("read_shards", "read 256 MB, shards of 16 MB, their chunks of 256 KB", "read",
             (8192, 8192), (256, 256), (2048, 2048), targets=_AHEAD),
    Workload("read_one_shard", "read a shard of 64 MB, its chunks of 16 KB", "read",
             (4096, 4096), (64, 64), (4096, 4096), targets=_AHEAD),
    Workload("read_shard_parts", "read 1000 random chunks of a shard of 4096 chunks, one after the other", "parts",
             (4096, 4096), (64, 64), (4096, 4096), count=1000, max_repeats=5,
             targets=(Target(FASTEST, at_least=3),)),
    Workload("read_shard_parts_at_once", "the same, all asked for before the first is needed", "parts_at_once",
             (4096, 4096), (64, 64), (4096, 4096), count=1000, targets=_AHEAD),
    Workload("write_shards", "write 256 MB, shards of 16 MB, their chunks of 256 KB, on tmpfs", "write",
             (8192, 8192), (256, 256), (2048, 2048), place="tmpfs", max_repeats=5, targets=_AHEAD),
    Workload("write_one_shard", "write a shard of 64 MB, its chunks of 64 KB, on tmpfs", "write",
             (4096, 4096), (128, 128), (4096, 4096), place="tmpfs", max_repeats=5, targets=_AHEAD),
    Workload("read_sparse", "read 256 MB, half of the 256 chunks of 1 MB are not stored, and touch each page", "sparse",
             (8192, 8192), (512, 512), targets=_AHEAD),
    Workload("read_row", "read one row, through 8 square chunks of 4 MB", "box",
             (8192, 8192), (1024, 1024), taken=(517, None), samples_per_repeat=3, targets=_TWICE),
    Workload("read_column", "read one column, through 8 square chunks of 4 MB", "box",
             (8192, 8192), (1024, 1024), taken=(None, 517), samples_per_repeat=3, targets=_AHEAD),
    Workload("read_plane", "read a[:, :, k], through 64 chunks of 4 MB", "box",
             (64, 1024, 1024), (1, 1024, 1024), taken=(None, None, 517), targets=_AHEAD),
    Workload("read_row_crc32c", "read one row, through 8 chunks of 1 MB with a checksum each", "box",
             (4096, 4096), (512, 512), encoding="crc32c", taken=(517, None), samples_per_repeat=3, targets=_AHEAD),
    Workload("read_points", "read 10 000 random elements of 64 chunks of 1 MB at once", "points",
             (4096, 4096), (512, 512), count=10_000, targets=_TWICE),
    Workload("read_points_small", "read 10 000 random elements of 4096 chunks of 16 KB at once", "points",
             (4096, 4096), (64, 64), count=10_000, targets=_TWICE),
    Workload("read_points_shards", "read 10 000 random elements of 16 shards of 64 chunks of 64 KB at once", "points",
             (4096, 4096), (128, 128), (1024, 1024), count=10_000, targets=_TWICE),
    Workload("read_many_points", "read 3 000 000 random elements of 256 chunks of 1 MB at once", "points",
             (8192, 8192), (512, 512), count=3_000_000, max_repeats=3, targets=(Target(FASTEST, at_least=1.3),)),
    Workload("read_mask", "read a random half of all elements, by a mask, of 64 chunks of 1 MB", "mask",
             (4096, 4096), (512, 512), max_repeats=5, targets=_TWICE),
    Workload("read_product", "read 1000 random rows in 1000 random columns of 64 chunks of 1 MB", "product",
             (4096, 4096), (512, 512), count=1000, targets=_TWICE),
    Workload("read_strided", "read a[::7, ::-3] of 64 chunks of 1 MB", "strided",
             (4096, 4096), (512, 512), taken=(7, -3), targets=_AHEAD),
    Workload("read_crops", "read 10 000 random boxes of 16 x 16 of 1024 chunks of 64 KB at once", "crops",
             (4096, 4096), (128, 128), count=10_000, taken=(16, 16), max_repeats=3, targets=_TWICE),
    Workload("read_pieces", "read 1000 random a[i, j:j+10] of 4096 chunks of 16 KB, one after the other", "pieces",
             (4096, 4096), (64, 64), count=1000, max_repeats=5, targets=(Target(FASTEST, at_least=4.2),)),
    Workload("append_frames", "append 200 frames of 1 MB, chunks by themselves, one after the other, on tmpfs",
             "append", (200, 512, 512), (1, 512, 512), place="tmpfs", note=_VISIBLE, targets=_AHEAD),
    Workload("append_small_frames", "append 200 frames of 64 KB, chunks by themselves, one after the other, on tmpfs",
             "append", (200, 128, 128), (1, 128, 128), place="tmpfs", note=_VISIBLE, targets=_AHEAD),
    Workload("stream_frames", "store 200 frames of 1 MB that come one by one, readers see them at the end, on tmpfs",
             "stream", (200, 512, 512), (1, 512, 512), place="tmpfs", note=_AT_END, targets=_AHEAD),
    Workload("stream_small_frames", "store 200 such frames of 64 KB, on tmpfs",
             "stream", (200, 128, 128), (1, 128, 128), place="tmpfs", note=_AT_END, targets=_AHEAD),
    Workload("write_columns", "write a[:, 3:5], in 8 chunks of 4 MB, on tmpfs", "write_box",
             (8192, 1024), (1024, 1024), taken=(None, slice(3, 5)), place="tmpfs", note=_NO_LOCKS, targets=_TWICE),
    Workload("read_elements", "read 20 single elements of a chunk of 4 MB", "elements",
             (8192, 8192), (1024, 1024), count=20, targets=_TWICE),
    Workload("read_kept_elements", "read 10 000 single elements of a chunk of 4 MB through a cache", "kept_elements",
             (8192, 8192), (1024, 1024), count=10_000,
             note=_NO_LOOK,
             targets=(Target("tensorstore_cache", at_least=2), Target("h5py", at_least=1.0), Target(STAT, at_most=4))),
    Workload("create_arrays", "create 1000 arrays in a group, all different, on tmpfs", "create",
             (1000, 1000), (100, 100), count=1000, place="tmpfs", max_repeats=5, note=_NO_GROUP, targets=_MANY_ARRAYS),
    Workload("list_arrays", "list name, shape and type of 1000 arrays, all different", "list",
             (1000, 1000), (100, 100), count=1000, max_repeats=5, note=_LISTS, targets=_MANY_ARRAYS),
    Workload("list_alike", "the same of 1000 arrays that differ in length and attributes alone", "list",
             (1000, 1000), (100, 100), count=1000, alike=True, max_repeats=5, note=_LISTS, targets=_MANY_ARRAYS),
    Workload("open_member", "open a group of 1000 arrays, all different, and get one array", "member",
             (1000, 1000), (100, 100), count=1000, samples_per_repeat=10, note=_BY_PATH, targets=_TWICE),
    Workload("open_interleaved", "open an array and read 10 elements, libraries interleaved (cold CPU caches)", "open",
             (4096 * 64,), (4096,), count=200, samples_per_repeat=10, targets=_TWICE),
    Workload("open_blocked", "open an array and read 10 elements, 20 times in a row", "open",
             (4096 * 64,), (4096,), count=200, blocked=True, samples_per_repeat=10, targets=_OPEN),
    Workload("first_read", "import the library in a new process, open an array and read 10 elements", "first_read",
             (4096 * 64,), (4096,), samples_per_repeat=2, max_repeats=5, targets=_AHEAD),
    Workload("references_open", "open a reference set of 50 000", "set", encoding="references", count=50_000,
             samples_per_repeat=2, targets=_TWICE),
    Workload("references_open_many", "open a reference set of 1 000 000", "set", encoding="references",
             count=1_000_000, max_repeats=3, targets=_TWICE),
    Workload("references_memory", "peak memory of opening a reference set of 1 000 000", "set_memory",
             encoding="references", count=1_000_000, max_repeats=3, targets=(Target(MEGABYTE, at_most=300),)),
    Workload("references_small", "read 256 MB, 4096 parts of 64 KB of one file, deflate, by references", "read",
             (8192, 8192), (128, 128), encoding="references", max_repeats=3, targets=_TWICE),
    Workload("references_large", "read 256 MB, 256 parts of 1 MB of one file, deflate, by references", "read",
             (8192, 8192), (512, 512), encoding="references", max_repeats=3, targets=_AHEAD),
    Workload("references_parts", "read 1000 random parts of 64 KB, deflate, by references, one after the other",
             "parts", (8192, 8192), (128, 128), encoding="references", count=1000, max_repeats=3, targets=_TWICE),
    Workload("s3_small", "read 64 MB, 1024 chunks of 64 KB, of S3 over TLS on loopback", "remote",
             (4096, 4096), (128, 128), max_repeats=5, targets=_REMOTE),
    Workload("s3_large", "read 64 MB, 64 chunks of 1 MB, of S3 over TLS on loopback", "remote",
             (4096, 4096), (512, 512), max_repeats=5, targets=_REMOTE),
    Workload("s3_shards", "read 32 of 256 chunks of 64 KB in each of 2 shards at once, of S3 with 10 ms of latency",
             "remote", (4096, 4096), (128, 128), (2048, 2048), taken=(None, slice(512, 768)), latency=0.01,
             max_repeats=5, targets=_REMOTE),
    Workload("s3_chunk", "read one chunk of 64 KB, of S3 with 10 ms of latency", "remote", (4096, 4096), (128, 128),
             taken=(slice(0, 128), slice(0, 128)), latency=0.01, max_repeats=5, targets=_REMOTE,
             note="the objects are older than an hour"),
    Workload("s3_list", "list name, shape and type of 1000 arrays, all different, of S3 with 10 ms of latency",
             "remote_list", (1000, 1000), (100, 100), count=1000, latency=0.01, max_repeats=3, note=_LISTS,
             targets=_REMOTE),
    Workload("peak_memory", "peak memory of a full read of 256 MB", "memory",
             (8192, 8192), (1024, 1024), max_repeats=3, targets=(Target(RESULT, at_most=1.05, chunks_per_thread=2),)),
    Workload("peak_memory_write", "peak memory of writing a shard of 64 MB, beside the source", "write_memory",
             (4096, 4096), (128, 128), (4096, 4096), place="tmpfs", max_repeats=3,
             targets=(Target(RESULT, at_most=1.0),)),
)

_QUICK = {
    (64, 1024, 1024): 16,
    (8192, 8192): 32,
    (8192, 16384): 32,
    (4096, 4096): 16,
    (4096, 8192): 16,
    (4096 * 64,): 16,
    (1000, 1000): 10,
    (8192, 1024): 16,
    (200, 512, 512): 8,
    (200, 128, 128): 8,
}


def quick(workload):
    """Return the same workload at a size for checks of the harness itself; its times mean nothing."""
    divisor = _QUICK.get(workload.shape, 1)

    def small(lengths):
        return lengths and tuple(max(1, n // divisor) for n in lengths)

    shape, chunks, shards = small(workload.shape), small(workload.chunks), small(workload.shards)
    if len(shape) == 1 and divisor == 1:
        # Of a curve, whose chunks have any size.
        shape, chunks, shards = (128,), (16,), shards and (32,)

    def taken_of(i, n):
        if isinstance(i, slice):
            return slice(i.start // divisor, i.stop // divisor + 1)
        return min(i, n - 1) if isinstance(i, int) else i

    # Sets are made of whole rows.
    count = min(workload.count, 1000 if workload.kind.startswith("set") else 5)
    return replace(workload, shape=shape, chunks=chunks, shards=shards, count=count,
                   samples_per_repeat=1, max_repeats=1,
                   taken=tuple(map(taken_of, workload.taken, shape)))


def select(names=None, table=WORKLOADS):
    """Return the workloads of these names in the table's order, all by default.

    Raises : ValueError, for a name that is not in the table.
    """
    known = [workload.name for workload in table]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    return [workload for workload in table if not names or workload.name in names]
