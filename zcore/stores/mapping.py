"""The keys and values of a mapping, such as a dict, as a store."""
from __future__ import annotations

import types
import weakref
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from zcore.buffers import flat_view
from zcore.stores.base import ByteRange, Listing, Store, as_bytes, right_below, sliced
from zcore.stores.keys import check_key, check_prefix
from zcore.text.printable import plural

if TYPE_CHECKING:
    from typing import Any

    from zcore.typing import Buffer

# By the identity of the mapping: there is one store, and with it one set of locks, for each.
_stores: weakref.WeakValueDictionary[int, MappingStore] = weakref.WeakValueDictionary()


class MappingStore(Store):
    """Keys and values of a mapping that the caller has: what is written is in the mapping.

    A listing looks at all keys. `MemoryStore` has no such cost, tells when a value was replaced, and refuses a key that
    is a prefix of others. A pickle is read-only, because changes in another process would not reach the mapping.
    """

    def __init__(self, mapping: Mapping[str, Buffer]) -> None:
        self.mapping: Mapping[str, Buffer] = mapping
        self.read_only: bool = not isinstance(mapping, MutableMapping)

    @classmethod
    def of(cls, mapping: Mapping[str, Buffer]) -> MappingStore:
        """Return the one store of a mapping.

        Raises : TypeError, for an open HDF5 file or a dataset of xarray, whose values are no bytes.
        """
        if type(mapping).__module__.startswith("h5py"):
            raise TypeError(f"{mapping!r:.80} is an open HDF5 file or group, no mapping of keys to bytes; zcore.copy "
                            "and `zcore refs make` take the path of the file")
        if type(mapping).__module__.startswith("xarray"):
            raise TypeError(f"a {type(mapping).__name__} of xarray is no mapping of keys to bytes; "
                            "zcore.xarray.to_zarr(dataset, store) writes one")
        return _stores.setdefault(id(mapping), cls(mapping))

    def __repr__(self) -> str:
        return f"<MappingStore of a {type(self.mapping).__name__} of {plural(len(self.mapping), 'key')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ({key: self.get(key) for key in self.list()},)

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        value = self.mapping.get(check_key(key))
        if value is None:
            return None
        return sliced(as_bytes(self, key, value), byte_range)

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        keys = list(self.mapping)
        return right_below(prefix, [key for key in keys if isinstance(key, str) and key.startswith(prefix)])

    def set(self, key: str, value: Buffer) -> None:
        self._check_writable("set", key)
        self.mapping[check_key(key)] = bytes(flat_view(value))

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        self.mapping.pop(check_key(key), None)


def _unpickled(items):
    return MappingStore.of(types.MappingProxyType(items))
