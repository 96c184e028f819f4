"""Errors that are caught, and their fields; settings."""
from pathlib import Path
from typing import Any, assert_type

import zcore
from zcore.errors import ShardIndexError


def place_of(error: zcore.ChunkError) -> tuple[str | None, tuple[int, ...] | None]:
    assert_type(error.inner_coords, tuple[int, ...] | None)
    assert_type(error.offset, int | None)
    return error.key, error.chunk_coords


def reason(error: zcore.ZcoreError) -> str:
    match error:
        case zcore.NodeNotFoundError():
            return f"no {error.path}"
        case zcore.ArrayMismatchError():
            assert_type(error.asked, dict[str, Any] | None)
            return f"asked for {error.asked}"
        case zcore.AsdfFormatError():
            assert_type(error.block, int | str | None)
            return f"{error.path}: {error.member}"
        case zcore.UnknownCodecError():
            return f"codec {error.codec}, {error.feature}"
        case zcore.SelectionError():
            assert_type(error.dimension, int | None)
            return f"dimension {error.dimension}"
        case zcore.ReferenceTargetError():
            return f"{error.key} at {error.url}, {error.range}"
        case zcore.StoreError():
            return f"{error.key}: {error.errno}"
        case ShardIndexError() | zcore.ChecksumError():
            return f"{place_of(error)} {error.direction}: {error.expected}, not {error.found}"
        case zcore.OutOfMemoryError():
            return f"{error.nbytes} bytes"
        case _:
            assert_type(error.place, str | None)
            return error.message


def main(folder: Path) -> None:
    z = zcore.create_array(folder / "a.zarr", shape=(4, 6), chunks=(2, 3), dtype="i4")
    z[:] = 1
    try:
        z[:, 6]
    except zcore.SelectionError as error:
        assert reason(error) == "dimension 1"
    try:
        zcore.open(folder / "a.zarr", shape=(4, 7))
    except zcore.ArrayMismatchError as error:
        assert reason(error) == "asked for {'shape': (4, 7)}"
    (folder / "a.zarr" / "c" / "0" / "1").write_bytes(b"damaged")
    try:
        z.read()
    except zcore.ChunkError as error:
        assert place_of(error) == ("c/0/1", (0, 1))
    try:
        zcore.open(folder / "b.zarr")
    except FileNotFoundError as error:
        assert isinstance(error, zcore.NodeNotFoundError) and reason(error) == "no "

    threads = zcore.config.threads
    assert_type(threads, int)
    zcore.config.threads = threads
    zcore.config.cache = "1 MB"
    zcore.config.cache = 0
    zcore.config.lock = "on"
    assert zcore.get_include().endswith("include")
    version: str = zcore.__version__
    assert version
