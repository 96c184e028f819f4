"""What is measured, as data: one `Workload` a row, with the targets that zcore has to meet on it."""
from dataclasses import dataclass, replace

ZCORE = "zcore"
BARE_LOOP = "bare_loop"
FASTEST = "fastest peer"
RESULT = "result"
NUMPY = "numpy"

MIB = 2**20


@dataclass(frozen=True)
class Target:
    """A bound on a ratio of medians.

    Attributes
    ----------
    against : str
        A library, or `FASTEST`: the peer with the least median (the bare loop is a limit, not a peer). For an import
        `NUMPY`, for memory `RESULT`.
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
    kind : {"read", "write", "open", "import", "memory"}
    shape, chunks : tuple of int
        Of the float32 array; empty for an import. The chunks divide the shape.
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
    place: str = "disk"
    blocked: bool = False
    samples_per_repeat: int = 1
    max_repeats: int | None = None
    targets: tuple = ()


_FULL_READ = (Target(FASTEST, at_least=1.1), Target(BARE_LOOP, at_most=1.15))
_OPEN = (Target("tensorstore", at_least=4), Target("zarr", at_least=25))

WORKLOADS = (
    Workload("read_frames", "read 256 MB, 4 MB chunks, each contiguous in the result", "read",
             (64, 1024, 1024), (1, 1024, 1024), targets=_FULL_READ),
    Workload("read_tiles", "read 256 MB, 4 MB square chunks", "read",
             (8192, 8192), (1024, 1024), targets=_FULL_READ),
    Workload("read_small_tiles", "read 4096 square chunks of 16 KB", "read",
             (4096, 4096), (64, 64), samples_per_repeat=2, targets=(Target(FASTEST, at_least=2),)),
    Workload("read_small_rows", "read 4096 chunks of 16 KB of one dimension", "read",
             (4096 * 4096,), (4096,), samples_per_repeat=2, targets=(Target(FASTEST, at_least=2),)),
    Workload("write_disk", "write 256 MB, 4 MB chunks, on disk", "write",
             (8192, 8192), (1024, 1024), targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_tmpfs", "write 256 MB, 4 MB chunks, on tmpfs", "write",
             (8192, 8192), (1024, 1024), place="tmpfs", targets=(Target(FASTEST, at_least=1.1),)),
    Workload("write_small_tmpfs", "write 4096 square chunks of 16 KB, on tmpfs", "write",
             (4096, 4096), (64, 64), place="tmpfs", targets=(Target(FASTEST, at_least=1.3),)),
    Workload("open_interleaved", "open and read 10 elements, libraries interleaved (cold CPU caches)", "open",
             (4096 * 64,), (4096,), samples_per_repeat=10, targets=_OPEN),
    Workload("open_blocked", "open and read 10 elements, 20 times in a row", "open",
             (4096 * 64,), (4096,), blocked=True, samples_per_repeat=10, targets=_OPEN),
    Workload("import_cost", "import, above numpy", "import",
             samples_per_repeat=2, targets=(Target(NUMPY, at_most=0.25),)),
    Workload("peak_memory", "peak memory of a full read of 256 MB", "memory",
             (8192, 8192), (1024, 1024), max_repeats=3, targets=(Target(RESULT, at_most=1.05, chunks_per_thread=2),)),
)

_QUICK = {
    (64, 1024, 1024): ((4, 64, 64), (1, 64, 64)),
    (8192, 8192): ((256, 256), (64, 64)),
    (4096, 4096): ((64, 64), (16, 16)),
    (4096 * 4096,): ((4096,), (256,)),
    (4096 * 64,): ((4096,), (256,)),
    (): ((), ()),
}


def quick(workload):
    """Return the same workload at a size for checks of the harness itself; its times mean nothing."""
    shape, chunks = _QUICK[workload.shape]
    return replace(workload, shape=shape, chunks=chunks, samples_per_repeat=1, max_repeats=1)


def select(names=None):
    """Return the workloads of these names in the table's order, all by default.

    Raises : ValueError, for a name that is not in the table.
    """
    known = [workload.name for workload in WORKLOADS]
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise ValueError(f"no workload {', '.join(unknown)}; there are {', '.join(known)}")
    return [workload for workload in WORKLOADS if not names or workload.name in names]
