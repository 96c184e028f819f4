"""Objects by anything that has `get` and `get_range`."""
from __future__ import annotations

from zcore.errors import StoreError
from zcore.stores.remote.client import Answer, Client, Standing


class ObjectClient(Client):
    """A client over an object of the caller's, by the methods that it has.

    ==================================  ================================================================================
    ``get(name)``                       all bytes of an object: bytes-like, or with a method ``bytes()`` that gives them
    ``get_range(name, start=, length=)``  these bytes, fewer where the object ends before
    ``head(name)``                      optional: a mapping with ``"size"``; else objects are read to know their size
    ``put(name, data)``                 optional: objects are replaced as a whole
    ``delete(name)``                    to write, this has to be there as well
    ``list(prefix)``                    optional: the names below a prefix, which is empty or ends with ``/``
    ==================================  ================================================================================

    `get`, `get_range` and `head` give None for a missing object, or raise KeyError or FileNotFoundError.
    """

    def __init__(self, source):
        self._source = source
        self.lists = hasattr(source, "list")
        self.writes = hasattr(source, "put") and hasattr(source, "delete")
        self.url = f"{type(source).__name__}:/"

    def __reduce__(self):
        return ObjectClient, (self._source,)

    def get(self, name, byte_range):
        start, length = (0, None) if byte_range is None else byte_range
        if byte_range is None:
            data = self._asked(self._source.get, name)
            return None if data is None else Answer(_bytes(data), 0, len(_bytes(data)), None)
        standing = self.standing(name)
        if standing is None:
            return None
        size = standing.size
        start = max(0, size - length) if start is None else min(start, size)
        stop = size if length is None else min(start + length, size)
        if start == stop:
            return Answer(b"", start, size, None)
        data = self._asked(self._source.get_range, name, start=start, length=stop - start)
        if data is None:
            return None
        data = _bytes(data)
        if len(data) != stop - start:
            raise StoreError(f"{len(data)} bytes came, for bytes {start} to {stop} of {size}")
        return Answer(data, start, size, None)

    def standing(self, name):
        if not hasattr(self._source, "head"):
            data = self._asked(self._source.get, name)
            return None if data is None else Standing(len(_bytes(data)), None)
        found = self._asked(self._source.head, name)
        return None if found is None else Standing(found["size"], None)

    def put(self, name, data, condition=None):
        self._source.put(name, bytes(data))

    def delete(self, names):
        for name in names:
            self._asked(self._source.delete, name)

    def list_dir(self, prefix):
        names, prefixes = [], set()
        for name in self._source.list(prefix):
            below, slash, _ = name[len(prefix):].partition("/")
            if slash:
                prefixes.add(f"{prefix}{below}/")
            else:
                names.append(name)
        return names, list(prefixes)

    def list_all(self, prefix):
        yield [(name, None) for name in self._source.list(prefix)]

    def _asked(self, method, *args, **keywords):
        try:
            return method(*args, **keywords)
        except (KeyError, FileNotFoundError):
            return None


def _bytes(data):
    return bytes(data.bytes() if hasattr(data, "bytes") else data)
