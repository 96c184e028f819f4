"""References to remote targets, put together such that neighbours in one target are asked for at once.

References checklist, RF-URL-09. The result is the same as if each were read alone, errors included.
"""
from __future__ import annotations

from bisect import bisect_right

from zcore.stores.base import resolve_range
from zcore.stores.ranges import merged


class Batch:
    """Some keys of a reference set that are read together.

    Attributes
    ----------
    numbers : list of int
        Which of the keys they are.
    """

    __slots__ = ("numbers", "_store", "_block", "_parts")

    def __init__(self, store, numbers, block=None):
        self.numbers = numbers
        self._store = store
        self._block = block          # (url, start, stop) of the target
        self._parts = []             # (key, offset, length)

    def add(self, number, key, offset, length):
        self.numbers.append(number)
        self._parts.append((key, offset, length))

    def load(self):
        """Read them, and return what has the `get` of a store."""
        if self._block is None:
            return self._store
        if len(self._parts) == 1:
            key, offset, length = self._parts[0]
            return _Loaded(self._store, {key: self._store.targets.get(key, self._block[0], offset, length)})
        url, start, stop = self._block
        # By the first of its keys: whatever is wrong with the target, is wrong with that.
        block = memoryview(self._store.targets.get_some(self._parts[0][0], url, start, stop - start))
        values = {}
        for key, offset, length in self._parts:
            data = block[offset - start:offset - start + length]
            values[key] = self._store.targets.check_length(key, url, offset, length, data)
        return _Loaded(self._store, values)


class _Loaded:
    """A store of which some values have been read."""

    def __init__(self, store, values):
        self._store = store
        self._values = values

    def get(self, key, byte_range=None):
        value = self._values.get(key)
        if value is None:
            return self._store.get(key, byte_range)
        start, stop = resolve_range(byte_range, len(value))
        return bytes(value[start:stop])

    def get_with_identity(self, key, byte_range=None):
        value = self.get(key, byte_range)
        return None if value is None else (value, None)

    def identity(self, key):
        return None

    def getsize(self, key):
        value = self._values.get(key)
        return self._store.getsize(key) if value is None else len(value)


def batches(store, keys, limit):
    """Return a list of `Batch`, in which each of the keys is once.

    Parameters
    ----------
    store : ReferenceStore
    keys : sequence of str
    limit : int or None
        Bytes of a value: references to more are read by themselves, in part, as who needs no more than that asks for.
    """
    of_target, found = {}, []
    for number, key in enumerate(keys):
        place = store.place_of(key)
        if place is None or not place[2] or limit is not None and place[2] > limit:
            found.append(Batch(store, [number]))
        else:
            url, offset, length = place
            of_target.setdefault(url, []).append((offset, length, number, key))
    for url, parts in of_target.items():
        blocks = merged([(offset, offset + length) for offset, length, _, _ in parts])
        starts = [start for start, _ in blocks]
        made = [Batch(store, [], (url, start, stop)) for start, stop in blocks]
        for offset, length, number, key in sorted(parts):
            # The last block that begins there or before may end too early, where blocks overlap.
            i = bisect_right(starts, offset) - 1
            while blocks[i][1] < offset + length:
                i -= 1
            made[i].add(number, key, offset, length)
        found += made
    return found
