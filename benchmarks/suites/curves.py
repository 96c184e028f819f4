"""Workloads whose size grows: what a chunk, a shard and an element cost by the size of chunks and shards."""
from benchmarks.suites.workloads import Workload

CHUNK_NBYTES = tuple(2**exponent for exponent in range(10, 27, 2))
SHARD_LENGTHS = (1, 16, 256, 4096)  # chunks of 16 KB in an object; 1: no shards
ELEMENT_CHUNK_NBYTES = (2**14, 2**18, 2**22)
_MOST_CHUNKS, _FEWEST_CHUNKS, _NBYTES = 4096, 4, 2**26


def _of_chunks(kind, nbytes):
    n_chunks = max(_FEWEST_CHUNKS, min(_MOST_CHUNKS, _NBYTES // nbytes))
    size = f"{nbytes // 1024} KB" if nbytes < 2**20 else f"{nbytes // 2**20} MB"
    return Workload(f"{kind}_chunks_{nbytes}", f"{kind} {n_chunks} chunks of {size}", kind,
                    (n_chunks * nbytes // 4,), (nbytes // 4,), place="disk" if kind == "read" else "tmpfs",
                    max_repeats=5)


def _of_shards(kind, what, length, count=0):
    return Workload(f"{kind}_shards_{length}", f"{what}, {length} in an object", kind, (4096 * 4096,), (4096,),
                    None if length == 1 else (4096 * length,), count=count, max_repeats=5,
                    place="tmpfs" if kind == "write" else "disk")


def _of_elements(kind, what, nbytes, count):
    return Workload(f"{kind}_{nbytes}", f"read {count} single elements of a chunk of {nbytes // 1024} KB{what}", kind,
                    (4 * nbytes // 4,), (nbytes // 4,), count=count)


WORKLOADS = (
    *(_of_chunks(kind, nbytes) for kind in ("read", "write") for nbytes in CHUNK_NBYTES),
    *(_of_shards("read", "read 4096 chunks of 16 KB", length) for length in SHARD_LENGTHS),
    *(_of_shards("write", "write 4096 chunks of 16 KB", length) for length in SHARD_LENGTHS),
    *(_of_shards("parts", "read 500 of 4096 chunks of 16 KB one by one", length, 500) for length in SHARD_LENGTHS),
    *(_of_elements("elements", "", nbytes, 20) for nbytes in ELEMENT_CHUNK_NBYTES),
    *(_of_elements("kept_elements", " through a cache", nbytes, 1000) for nbytes in ELEMENT_CHUNK_NBYTES),
)
