"""References to remote targets in batches: one request reads neighbours in one target.

References checklist, RF-URL-09. The result is the same as if each reference were read alone, errors included.
"""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from zcore.ranges import merged
from zcore.stores.base import Listing, Store, resolve_range

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from zcore.stores.base import ByteRange
    from zcore.stores.reference.store import ReferenceStore


class Batch(NamedTuple):
    """The indices of the keys that are read together. ``load()`` reads them, and returns a store with their values."""

    numbers: list[int]
    load: Callable[[], Store]


class _Loaded(Store):
    """The values of a batch."""

    def __init__(self, values):
        self._values = values

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        value = self._values[key]
        start, stop = resolve_range(byte_range, len(value))
        return bytes(value[start:stop])

    def list_dir(self, prefix: str) -> Listing:
        return Listing([], [])


def batches(store: ReferenceStore, keys: Sequence[str], limit: int | None) -> list[Batch]:
    """Return a list of `Batch`, in which each of the keys is once.

    Parameters
    ----------
    store : ReferenceStore
    keys : sequence of str
    limit : int or None
        Bytes of a value. Longer references are not batched, because the caller reads no more than that.
    """
    of_target, found = {}, []
    for number, key in enumerate(keys):
        part = store.remote_part(key)
        if part is None or not part[2] or limit is not None and part[2] > limit:
            found.append(Batch([number], lambda: store))
        else:
            url, offset, length = part
            of_target.setdefault(url, []).append((offset, length, number, key))
    for url, parts in of_target.items():
        for start, stop, chosen in merged([(offset, offset + length) for offset, length, _, _ in parts]):
            of_block = [parts[i] for i in chosen]
            found.append(Batch([number for _, _, number, _ in of_block],
                               partial(_load, store.targets, url, start, stop, of_block)))
    return found


def _load(targets, url, start, stop, parts):
    # An error names the first of the keys.
    data = memoryview(targets.get_some(parts[0][3], url, start, stop - start))
    return _Loaded({key: targets.check_length(key, url, offset, length, data[offset - start:offset - start + length])
                    for offset, length, _, key in parts})
