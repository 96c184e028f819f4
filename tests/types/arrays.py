"""Opens, creates, reads and writes arrays."""
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import zcore
from zcore.typing import Lock, Mode, Selection, StrPath


def mean(array: zcore.Array, selection: Selection = ...) -> float:
    return float(array.read(selection).mean())


def opened(place: StrPath, mode: Mode = "r", lock: Lock = True) -> zcore.Array:
    node = zcore.open(place, mode, lock=lock)
    assert_type(node, zcore.Array | zcore.Group)
    if isinstance(node, zcore.Group):
        raise TypeError(f"{place} is a group")
    return node


def main(folder: Path) -> None:
    z = zcore.open(folder / "a.zarr", "w", shape=(100, 80), chunks=(10, 10), dtype="f4", fill_value=np.nan)
    assert_type(z, zcore.Array)
    z[:] = 1.5
    z[::2, 3] = np.arange(50)
    z[[1, 3], 0] = [7, 8]
    assert_type(z[:10], npt.NDArray[Any])
    assert_type(z[...], npt.NDArray[Any])
    assert_type(z[:10, 0], npt.NDArray[Any])
    assert_type(z[[1, 3]], npt.NDArray[Any])
    assert_type(z[np.arange(100) < 5], npt.NDArray[Any])
    assert float(z[1, 0]) == 7
    assert_type(z.shape, tuple[int, ...])
    assert_type(z.chunks, tuple[int, ...])
    assert_type(z.shards, tuple[int, ...] | None)
    assert_type(z.dtype, np.dtype[Any])
    assert mean(opened(folder / "a.zarr"), np.s_[10:20, 5:]) == 1.5

    out = np.empty((10, 80), "f4")
    assert z.read(np.s_[:10], out=out) is out
    assert_type(z.read(), npt.NDArray[Any])
    assert_type(z.read_many([np.s_[0, :2], np.s_[4, 1:3]]), npt.NDArray[Any])
    z.resize(120, 80)
    z.resize((100, 80))
    assert_type(z.append(np.zeros((1, 80))), tuple[int, ...])
    assert_type(z.oindex[[1, 3], :5], Any)
    part = np.asarray(z.lazy[5:10][::2])
    assert part.shape == (3, 80)
    assert np.asarray(z.astype("f8")).dtype == np.float64

    typed = zcore.create_array(zcore.MemoryStore(), data=[1, 2], dtype=None)
    assert zcore.group().create_array("a", data=[1, 2], dtype=None).dtype == typed.dtype
    assert zcore.open_array(typed.store, dtype=None).dtype == zcore.array([1], dtype=None).dtype
    assert zcore.copy(typed, zcore.MemoryStore(), dtype=None) is not None
    assert_type(zcore.open_group({".zgroup": '{"zarr_format": 2}'}), zcore.Group)
    assert_type(zcore.show_config("dicts"), dict[str, dict[str, Any]])
    assert "zcore" in zcore.show_config(mode="dicts")

    s = zcore.create_array(folder / "s.zarr", shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype=np.uint16,
                           compressors=[zcore.codecs.ZstdCodec(level=3)], dimension_names=("y", "x"), cache="1 MB",
                           attributes={"unit": "K"}, threads=1, missing="fill")
    assert_type(s, zcore.Array)
    s.vindex[[1, 2], [3, 4]] = 9
    s.blocks[0, 0] = 1
    assert s.nchunks == 64 and s.order == "C" and s.attrs["unit"] == "K"
    for region in s.iter_chunks():
        assert_type(region, tuple[slice, ...])
    memory = zcore.MemoryStore()
    copy = zcore.create_array(memory, data=s)
    assert_type(copy, zcore.Array)
    assert_type(zcore.zeros((3, 4), chunks=(2, 2), dtype="i4"), zcore.Array)
    assert_type(zcore.full_like(s, 3, shape=64, chunks=16), zcore.Array)
    assert_type(zcore.open_array(folder / "s.zarr"), zcore.Array)
    zcore.save(folder / "b.zarr", np.arange(3), y=np.ones(2))
    assert_type(zcore.load(folder / "b.zarr"), npt.NDArray[Any] | dict[str, npt.NDArray[Any]])
