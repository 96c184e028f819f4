"""What is measured, as data: one `Workload` a row, with the targets that zcore has to meet on it."""
from dataclasses import dataclass, replace

from benchmarks.inputs.fixtures import Layout

ZCORE = "zcore"
BARE_LOOP = "bare_loop"
FASTEST = "fastest peer"
RESULT = "result"
NUMPY = "numpy"
STAT = "os.stat"
MEGABYTE = "MB"

MIB = 2**20


@dataclass(frozen=True)
class Target:
    """A bound on a ratio of medians.

    Attributes
    ----------
    against : str
        A library, or `FASTEST`: the peer with the least median (the bare loop is a limit, not a peer). For an import
        `NUMPY`, for memory `RESULT` or `MEGABYTE`, for elements of a kept chunk `STAT`.
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
    kind : {"read", "absent", "parts", "parts_at_once", "pieces", "box", "points", "mask", "product", "strided", \
"elements", "kept_elements", "write", "write_box", "append", "open", "create", "list", "member", "import", \
"import_open", "memory", "write_memory", "set", "set_memory", "remote"}
        ``absent`` reads an array without chunks;
        ``parts`` reads `count` chunks, each before the next one is asked for, ``pieces`` as many runs of
        10 elements anywhere; ``box`` reads what `taken` says;
        ``points`` reads `count` random elements at once, ``mask`` a random half of all, ``product`` `count` random rows
        in as many random columns, ``strided`` slices with the steps that are `taken`; ``write_box`` changes what
        `taken` says in an array that is there; ``append`` adds to an array without elements one row of chunks after
        the other;
        ``elements`` reads `count` single elements of one chunk one after the other, ``kept_elements`` the same through
        a cache of chunks, by the libraries that have one; ``create`` and ``list`` make and list `count` arrays in a
        group, ``member`` opens the last of them through the group; ``set`` opens a reference set of `count`
        references; ``remote`` reads all from a server.
    shape, chunks : tuple of int
        Of the float32 array; empty for an import. The chunks divide the shape.
    shards : tuple of int or None
        Elements of a stored object of many chunks.
    encoding : str
        Of `encodings.ENCODINGS`.
    count : int
    taken : tuple of (int or slice or None)
        Of each dimension the element that is read, or those; None for all.
    spelling : {"plain", "templates", "gen"}
        How a reference set says what it says, see `reference_sets.write_set`.
    server : {"moto", "files"} or None
        Which one has the objects, see `object_server`.
    place : {"disk", "tmpfs"}
        Where the files lie: below the directory for temporary files, or in memory.
    blocked : bool
        Whether all samples of a library are taken in a row; else the libraries are interleaved.
    samples_per_repeat : int
        Short operations are repeated more often.
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
    encoding: str = "lz4"
    count: int = 0
    taken: tuple = ()
    spelling: str = "plain"
    server: str | None = None
    place: str = "disk"
    blocked: bool = False
    samples_per_repeat: int = 1
    max_repeats: int | None = None
    targets: tuple = ()

    @property
    def layout(self):
        """The array as `fixtures` makes it."""
        return Layout(self.shape, self.chunks, self.shards, self.encoding)


_FULL_READ = (Target(FASTEST, at_least=1.1), Target(BARE_LOOP, at_most=1.15))
_OPEN = (Target("tensorstore", at_least=4), Target("zarr", at_least=25))
_AHEAD = (Target(FASTEST, at_least=1.0),)
_TWICE = (Target(FASTEST, at_least=2),)
_SMALL_PARTS = (Target("fsspec", at_least=20), Target(FASTEST, at_least=1))
_MANY_ARRAYS = (Target("zarr", at_least=5),)


def _both_ways(name, title, encoding, max_writes=None):
    """Return a workload that reads 64 MB of 1 MB chunks, and one that writes them to memory."""
    sizes = {"shape": (4096, 4096), "chunks": (512, 512), "encoding": encoding, "targets": _AHEAD}
    return (Workload(f"read_{name}", f"read 64 MB, 1 MB square chunks, {title}", "read", **sizes),
            Workload(f"write_{name}", f"write 64 MB, 1 MB square chunks, {title}, on tmpfs", "write", place="tmpfs",
                     max_repeats=max_writes, **sizes))


WORKLOADS = (
    Workload("read_frames", "read 256 MB, 4 MB chunks, each contiguous in the result", "read",
             (64, 1024, 1024), (1, 1024, 1024), targets=_FULL_READ),
    Workload("read_tiles", "read 256 MB, 4 MB square chunks", "read",
             (8192, 8192), (1024, 1024), targets=_FULL_READ),
    Workload("read_small_tiles", "read 4096 square chunks of 16 KB", "read",
             (4096, 4096), (64, 64), targets=(Target(FASTEST, at_least=2),)),
    Workload("read_small_rows", "read 4096 chunks of 16 KB of one dimension", "read",
             (4096 * 4096,), (4096,), targets=(Target(FASTEST, at_least=2),)),
    Workload("write_disk", "write 256 MB, 4 MB chunks, on disk", "write",
             (8192, 8192), (1024, 1024), max_repeats=5, targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_tmpfs", "write 256 MB, 4 MB chunks, on tmpfs", "write",
             (8192, 8192), (1024, 1024), place="tmpfs", targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_small_tmpfs", "write 4096 square chunks of 16 KB, on tmpfs", "write",
             (4096, 4096), (64, 64), place="tmpfs", max_repeats=5, targets=(Target(FASTEST, at_least=1.3),)),
    *_both_ways("v2", "Zarr v2", "v2"),
    *_both_ways("v2_order_f", "Zarr v2 in order F", "v2_order_f"),
    *_both_ways("v3", "Zarr v3", "v3"),
    *_both_ways("transpose", "Zarr v3, transposed", "transpose"),
    *_both_ways("raw", "uncompressed", "raw"),
    Workload("read_raw_tiles", "read 512 MB, 4 MB square chunks, uncompressed", "read",
             (8192, 16384), (1024, 1024), encoding="raw", targets=(Target(FASTEST, at_least=1.2),)),
    Workload("read_raw_frames", "read 512 MB, 4 MB chunks, each contiguous in the result, uncompressed", "read",
             (128, 1024, 1024), (1, 1024, 1024), encoding="raw", targets=_AHEAD),
    Workload("read_raw_row", "read one row, through 16 square chunks of 4 MB, uncompressed", "box",
             (8192, 16384), (1024, 1024), encoding="raw", taken=(517, None), samples_per_repeat=3, targets=_AHEAD),
    *_both_ways("zstd", "zstd", "zstd", max_writes=5),
    *_both_ways("blosc_zstd", "blosc-zstd", "blosc_zstd", max_writes=5),
    *_both_ways("gzip", "gzip", "gzip", max_writes=3),
    Workload("read_shards", "read 256 MB, shards of 16 MB, their chunks of 256 KB", "read",
             (8192, 8192), (256, 256), (2048, 2048), "v3", targets=_AHEAD),
    Workload("read_one_shard", "read a shard of 64 MB, its chunks of 16 KB", "read",
             (4096, 4096), (64, 64), (4096, 4096), "v3", targets=_AHEAD),
    Workload("read_shard_parts", "read 1000 random chunks of a shard of 4096 chunks, one after the other", "parts",
             (4096, 4096), (64, 64), (4096, 4096), "v3", count=1000, max_repeats=5,
             targets=(Target(FASTEST, at_least=3),)),
    Workload("read_shard_parts_at_once", "the same, all asked for before the first is needed", "parts_at_once",
             (4096, 4096), (64, 64), (4096, 4096), "v3", count=1000, targets=_AHEAD),
    Workload("write_shards", "write 256 MB, shards of 16 MB, their chunks of 256 KB, on tmpfs", "write",
             (8192, 8192), (256, 256), (2048, 2048), "v3", place="tmpfs", max_repeats=5, targets=_AHEAD),
    Workload("write_one_shard", "write a shard of 64 MB, its chunks of 64 KB, on tmpfs", "write",
             (4096, 4096), (128, 128), (4096, 4096), "v3", place="tmpfs", max_repeats=5, targets=_AHEAD),
    Workload("read_absent", "read 256 MB, none of the 64 chunks of 4 MB is stored, fill value 0", "absent",
             (8192, 8192), (1024, 1024), encoding="v3", targets=(Target(FASTEST, at_least=20),)),
    Workload("read_row", "read one row, through 8 square chunks of 4 MB", "box",
             (8192, 8192), (1024, 1024), taken=(517, None), samples_per_repeat=3, targets=_TWICE),
    Workload("read_column", "read one column, through 8 square chunks of 4 MB", "box",
             (8192, 8192), (1024, 1024), taken=(None, 517), samples_per_repeat=3, targets=_AHEAD),
    Workload("read_plane", "read a[:, :, k], through 64 chunks of 4 MB", "box",
             (64, 1024, 1024), (1, 1024, 1024), taken=(None, None, 517), targets=_AHEAD),
    Workload("read_row_v3", "read one row, through 4 chunks of 1 MB with a checksum, Zarr v3", "box",
             (4096, 4096), (512, 512), encoding="v3", taken=(517, None), samples_per_repeat=3, targets=_TWICE),
    Workload("read_points", "read 10 000 random elements of 64 chunks of 1 MB at once", "points",
             (4096, 4096), (512, 512), count=10_000, targets=_TWICE),
    Workload("read_points_small", "read 10 000 random elements of 4096 chunks of 16 KB at once", "points",
             (4096, 4096), (64, 64), count=10_000, targets=_TWICE),
    Workload("read_points_shards", "read 10 000 random elements of 16 shards of 64 chunks of 64 KB at once", "points",
             (4096, 4096), (128, 128), (1024, 1024), "v3", count=10_000, targets=_TWICE),
    Workload("read_mask", "read a random half of all elements, by a mask, of 64 chunks of 1 MB", "mask",
             (4096, 4096), (512, 512), max_repeats=5, targets=_TWICE),
    Workload("read_product", "read 1000 random rows in 1000 random columns of 64 chunks of 1 MB", "product",
             (4096, 4096), (512, 512), count=1000, targets=_TWICE),
    Workload("read_product_small", "read 1000 random rows in 1000 random columns of 4096 chunks of 16 KB", "product",
             (4096, 4096), (64, 64), count=1000, targets=_TWICE),
    Workload("read_strided", "read a[::7, ::-3] of 64 chunks of 1 MB", "strided",
             (4096, 4096), (512, 512), taken=(7, -3), targets=_TWICE),
    Workload("append_frames", "append 200 frames of 1 MB, chunks by themselves, one after the other, on tmpfs",
             "append", (200, 512, 512), (1, 512, 512), place="tmpfs", targets=_TWICE),
    Workload("append_small_frames", "append 200 frames of 64 KB, chunks by themselves, one after the other, on tmpfs",
             "append", (200, 128, 128), (1, 128, 128), place="tmpfs", targets=_TWICE),
    Workload("read_pieces", "read 1000 random a[i, j:j+10] of 4096 chunks of 16 KB, one after the other", "pieces",
             (4096, 4096), (64, 64), count=1000, max_repeats=5, targets=(Target(FASTEST, at_least=4.2),)),
    Workload("write_columns", "write a[:, 3:5], in 8 chunks of 4 MB, on tmpfs", "write_box",
             (8192, 1024), (1024, 1024), taken=(None, slice(3, 5)), place="tmpfs", targets=_TWICE),
    Workload("read_elements", "read 20 single elements of a chunk of 4 MB", "elements",
             (8192, 8192), (1024, 1024), count=20, targets=_TWICE),
    Workload("read_kept_elements", "read 10 000 single elements of a chunk of 4 MB through a cache", "kept_elements",
             (8192, 8192), (1024, 1024), count=10_000,
             targets=(Target("tensorstore_cache", at_least=2), Target("h5py", at_least=1.0), Target(STAT, at_most=4))),
    Workload("create_arrays", "create 1000 arrays in a group, on tmpfs", "create",
             (1000, 1000), (100, 100), encoding="v3", count=1000, place="tmpfs", max_repeats=5, targets=_MANY_ARRAYS),
    Workload("list_arrays", "list name, shape and type of 1000 arrays that differ in shape and attributes", "list",
             (1000, 1000), (100, 100), encoding="v3", count=1000, max_repeats=5, targets=_MANY_ARRAYS),
    Workload("open_interleaved", "open and read 10 elements, libraries interleaved (cold CPU caches)", "open",
             (4096 * 64,), (4096,), samples_per_repeat=10, targets=_OPEN),
    Workload("open_blocked", "open and read 10 elements, 20 times in a row", "open",
             (4096 * 64,), (4096,), blocked=True, samples_per_repeat=10, targets=_OPEN),
    Workload("references_open", "open a reference set of 50 000", "set", encoding="references", count=50_000,
             samples_per_repeat=2, targets=_TWICE),
    Workload("references_open_templates", "open a reference set of 50 000, a template in the URL of each", "set",
             encoding="references", count=50_000, spelling="templates", targets=_TWICE),
    # fsspec takes 1.7 ms for each.
    Workload("references_open_gen", "open a reference set that generates 5 000", "set", encoding="references",
             count=5_000, spelling="gen", max_repeats=3, targets=(Target("fsspec", at_least=100),)),
    Workload("references_open_many", "open a reference set of 1 000 000", "set", encoding="references",
             count=1_000_000, max_repeats=3, targets=_TWICE),
    Workload("references_memory", "peak memory of opening a reference set of 1 000 000", "set_memory",
             encoding="references", count=1_000_000, max_repeats=3, targets=(Target(MEGABYTE, at_most=300),)),
    Workload("references_small", "read 256 MB, 4096 parts of 64 KB of one file, by references", "read",
             (8192, 8192), (128, 128), encoding="references", max_repeats=5, targets=_SMALL_PARTS),
    Workload("references_large", "read 256 MB, 256 parts of 1 MB of one file, by references", "read",
             (8192, 8192), (512, 512), encoding="references", max_repeats=5, targets=(Target(FASTEST, at_least=1.5),)),
    Workload("references_parts", "read 1000 random parts of 64 KB of one file by references, one after the other",
             "parts", (8192, 8192), (128, 128), encoding="references", count=1000, max_repeats=5,
             targets=_SMALL_PARTS),
    *[Workload(f"s3_{size}_{server}", f"read 64 MB, {n} chunks of {chunk}, of S3 on loopback, {title}", "remote",
               (4096, 4096), chunks, encoding="raw", server=server, max_repeats=5,
               targets=(Target("zarr", at_least=1.5),))
      for server, title in (("moto", "moto's server"), ("files", "a server of files"))
      for size, n, chunk, chunks in (("small", 1024, "64 KB", (128, 128)), ("large", 64, "1 MB", (512, 512)))],
    Workload("import_cost", "import, above numpy", "import",
             samples_per_repeat=2, max_repeats=5, targets=(Target(NUMPY, at_most=0.25),)),
    Workload("import_open", "import with the function that opens an array, above numpy", "import_open",
             samples_per_repeat=2, max_repeats=5, targets=(Target(FASTEST, at_least=1.0),)),
    Workload("peak_memory", "peak memory of a full read of 256 MB", "memory",
             (8192, 8192), (1024, 1024), max_repeats=3, targets=(Target(RESULT, at_most=1.05, chunks_per_thread=2),)),
    Workload("peak_memory_write", "peak memory of writing a shard of 64 MB, beside the source", "write_memory",
             (4096, 4096), (128, 128), (4096, 4096), "v3", place="tmpfs", max_repeats=3,
             targets=(Target(RESULT, at_most=1.0),)),
)

_QUICK = {
    (64, 1024, 1024): 16,
    (8192, 8192): 32,
    (8192, 16384): 32,
    (128, 1024, 1024): 16,
    (4096, 4096): 16,
    (4096 * 4096,): 16,
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
    # Sets are made of whole rows.
    count = min(workload.count, 1000 if workload.kind.startswith("set") else 5)
    return replace(workload, shape=shape, chunks=chunks, shards=shards, count=count,
                   samples_per_repeat=1, max_repeats=1,
                   taken=tuple(min(i, n - 1) if isinstance(i, int) else i
                               for i, n in zip(workload.taken, shape, strict=False)))


def select(names=None, table=WORKLOADS):
    """Return the workloads of these names in the table's order, all by default.

    Raises : ValueError, for a name that is not in the table.
    """
    known = [workload.name for workload in table]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    return [workload for workload in table if not names or workload.name in names]
