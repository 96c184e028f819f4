"""Selections in variables, fields of structures, and a reference set that is read."""
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import zcore
from zcore.typing import BasicSelection, Fields, Index, Selection


def parts(array: zcore.Array, selections: list[Selection]) -> list[npt.NDArray[Any]]:
    return [array.read(selection) for selection in selections]


def corner(array: zcore.Array, region: BasicSelection, rows: Index) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return np.shape(array[region]), np.shape(array[rows])


def named(array: zcore.Array, fields: Fields) -> Any:
    return array.get_basic_selection(..., fields=fields)


def main(folder: Path) -> None:
    z = zcore.create_array(folder / "a.zarr", data=np.arange(24).reshape(4, 6), chunks=(2, 3))
    mask = np.array([True, False, True, False])
    chosen = parts(z, [..., 1, slice(2), np.s_[:, None, ::2], [0, 3], mask, (2, [1, 0])])
    assert [part.shape for part in chosen] == [(4, 6), (6,), (2, 6), (4, 1, 3), (2, 6), (2, 6), (2,)]
    assert corner(z, np.s_[1:3, ::-1], [3, 0, 3]) == ((2, 6), (3, 6))

    s = zcore.create_array(folder / "s.zarr", data=np.array([(1, 2.5)], [("n", "i2"), ("x", "f4")]))
    assert named(s, "x").tolist() == [2.5] and named(s, ["n"]).dtype.names == ("n",)

    references = zcore.references(folder / "a.zarr")
    references.save(folder / "set.json")
    store = zcore.ReferenceStore(folder / "set.json", allowed=[folder])
    assert_type(store, zcore.ReferenceStore)
    node = zcore.open(store)
    assert isinstance(node, zcore.Array) and (node[...] == z[...]).all()
