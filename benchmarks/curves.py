"""Workloads whose size grows: what a chunk costs by its size, and a group by how many arrays it has."""
from benchmarks.workloads import Workload

CHUNK_NBYTES = tuple(2**exponent for exponent in range(10, 27, 2))
GROUP_LENGTHS = (1, 10, 100, 1000, 10_000)
_MOST_CHUNKS, _FEWEST_CHUNKS, _NBYTES = 4096, 4, 2**26


def _of_chunks(kind, nbytes):
    n_chunks = max(_FEWEST_CHUNKS, min(_MOST_CHUNKS, _NBYTES // nbytes))
    size = f"{nbytes // 1024} KB" if nbytes < 2**20 else f"{nbytes // 2**20} MB"
    return Workload(f"{kind}_chunks_{nbytes}", f"{kind} {n_chunks} chunks of {size}", kind,
                    (n_chunks * nbytes // 4,), (nbytes // 4,), place="disk" if kind == "read" else "tmpfs",
                    max_repeats=5)


def _of_group(kind, what, length):
    return Workload(f"{kind}_{length}", f"{what} a group of {length} arrays", kind, (1000, 1000), (100, 100),
                    encoding="v3", count=length, max_repeats=3 if length > 1000 else None)


WORKLOADS = (
    *(_of_chunks(kind, nbytes) for kind in ("read", "write") for nbytes in CHUNK_NBYTES),
    *(_of_group("list", "list", length) for length in GROUP_LENGTHS),
    *(_of_group("member", "open one of the arrays of", length) for length in GROUP_LENGTHS),
)
