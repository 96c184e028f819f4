"""A store of one's own: values in a dict, and how often they were read."""
from __future__ import annotations

from pathlib import Path
from typing import assert_type

import zcore
from zcore.storage import ByteRange, Listing, Store, resolve_range
from zcore.typing import Buffer


class CountingStore(Store):
    """Keys and values in a dict."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.n_reads = 0
        self.read_only = False

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        self.n_reads += 1
        value = self.values.get(key)
        return None if value is None else value[slice(*resolve_range(byte_range, len(value)))]

    def list_dir(self, prefix: str) -> Listing:
        below = [key[len(prefix):].partition("/") for key in self.values if key.startswith(prefix)]
        return Listing(sorted(prefix + name for name, slash, _ in below if not slash),
                       sorted({f"{prefix}{name}/" for name, slash, _ in below if slash}))

    def set(self, key: str, value: Buffer) -> None:
        self.values[key] = bytes(value)

    def erase(self, key: str) -> None:
        self.values.pop(key, None)


def main(folder: Path) -> None:
    store = CountingStore()
    z = zcore.create_array(store, name="x/y", shape=(4, 6), chunks=(2, 3), dtype="i4", compressors=None)
    z[:2] = 1
    n_reads = store.n_reads
    assert z[0, :3].tolist() == [1, 1, 1]
    assert store.n_reads > n_reads
    assert_type(z.store, Store)
    assert_type(store.list_dir("x/y/").keys, list[str])
    assert sorted(store.list()) == ["x/y/c/0/0", "x/y/c/0/1", "x/y/zarr.json", "x/zarr.json", "zarr.json"]
    assert list(zcore.open_group(store)) == ["x"]
