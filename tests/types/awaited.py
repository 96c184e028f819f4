"""Reads that a coroutine awaits."""
import asyncio
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import zcore


async def both(a: zcore.Array, b: zcore.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rows = await a.async_read(np.s_[:2])
    assert_type(rows, npt.NDArray[Any])
    out = bytearray(b.nbytes)
    assert_type(await b.async_read(..., out=memoryview(out).cast("B", b.shape)), memoryview)
    first, second = await asyncio.gather(a.async_read(), b.async_read())
    return first, second


def main(folder: Path) -> None:
    a = zcore.create_array(folder / "a.zarr", data=np.arange(12).reshape(4, 3))
    b = zcore.array(np.arange(6, dtype="u1").reshape(2, 3))
    first, second = asyncio.run(both(a, b))
    assert first.sum() == 66 and second.sum() == 15
