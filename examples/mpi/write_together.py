"""Ranks that write one array: parts of whole chunks, then rows that share chunks, then appended frames.

    mpirun -n 4 python write_together.py PLACE
"""
import sys

import numpy as np
from mpi4py import MPI

import zcore.mpi


def main(place):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    array = zcore.mpi.create(comm, place, shape=(100, 64), chunks=(10, 64), dtype="f8", overwrite=True)

    # Whole chunks: no rank waits for another.
    box = zcore.mpi.aligned_box(comm, array)
    array[box] = np.arange(100)[box[0], None]
    comm.Barrier()
    assert (array[...] == np.arange(100)[:, None]).all()

    # Every rank has some rows of every chunk. Each chunk is locked while one of them changes it.
    comm.Barrier()
    for row in range(rank, 100, size):
        array[row] = -row
    comm.Barrier()
    assert (array[...] == -np.arange(100)[:, None]).all()

    # Frames of all ranks, in the order of ranks; each may have another number of them.
    shape = zcore.mpi.append(comm, array, np.full((rank + 1, 64), rank))
    zcore.mpi.flush(comm, array)
    assert shape == array.shape == (100 + size * (size + 1) // 2, 64)
    assert array[100:, 0].tolist() == [r for r in range(size) for _ in range(r + 1)]
    if rank == 0:
        print(f"{size} ranks wrote {shape}")


if __name__ == "__main__":
    main(sys.argv[1])
