"""xarray, dask, zarr-python and MPI."""
# dask and zarr-python have parts without types, which is not zcore's doing.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false
from pathlib import Path
from typing import Any, assert_type

import dask.array
import numpy as np
import xarray
import zarr

import zcore
import zcore.dask
import zcore.mpi
import zcore.xarray
import zcore.zarr
from zcore.stores.base import Store


class One:
    """The communicator of a program of one rank."""

    def Get_rank(self) -> int:
        return 0

    def Get_size(self) -> int:
        return 1

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value

    def allgather(self, value: Any) -> list[Any]:
        return [value]


def main(folder: Path) -> None:
    z = zcore.create_array(folder / "a.zarr", data=np.arange(24).reshape(4, 6), chunks=(2, 3),
                           dimension_names=("y", "x"))
    chunked = zcore.dask.from_zcore(folder / "a.zarr", missing="raise")
    assert_type(chunked, dask.array.Array)
    for chunks in ("auto", 2, (2, 3), ((1, 3), -1), {0: 2}, None):
        assert zcore.dask.from_zcore(z, chunks=chunks).shape == (4, 6)
    target = zcore.zeros((4, 6), chunks=(3, 3), dtype="i8")
    zcore.dask.store(zcore.dask.from_zcore(z), target, region=np.s_[:4])
    assert (target[...] == z[...]).all()

    dataset = xarray.Dataset({"t": (("y", "x"), z[...])})
    zcore.xarray.to_zarr(dataset, folder / "d.zarr", mode="w")
    backend = zcore.xarray.ZcoreBackend()
    assert_type(backend.open_dataset(folder / "d.zarr"), xarray.Dataset)
    assert int(xarray.open_dataset(folder / "d.zarr", engine="zcore")["t"].sum()) == 276

    store = zcore.zarr.Store(folder / "a.zarr")
    assert_type(store.zcore_store, Store)
    assert int(np.asarray(zarr.open_array(store, mode="r")[1, 2])) == 8

    array = zcore.mpi.create(One(), folder / "m.zarr", shape=(10, 4), chunks=(2, 4), dtype="f4")
    assert_type(array, zcore.Array)
    assert_type(zcore.mpi.aligned_box(One(), array), tuple[slice, ...])
    assert zcore.mpi.append(One(), array, [[1, 2, 3, 4]]) == (11, 4)
