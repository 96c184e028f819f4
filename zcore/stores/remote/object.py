"""Objects by any Python object that has `get` and `get_range`."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.stores.base import resolve_range, right_below
from zcore.stores.remote.client import Answer, Client, Head, answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from zcore.stores.base import ByteRange
    from zcore.typing import Buffer


class ObjectClient(Client):
    """A client over an object of the caller.

    ==================================  ================================================================================
    ``get(name)``                       all bytes of an object: bytes-like, or an object with a method ``bytes()``
    ``get_range(name, start=, length=)``  these bytes, fewer where the object ends before
    ``head(name)``                      optional: a mapping with ``"size"``; else objects are read to know their size
    ``put(name, data)``                 optional: replaces an object
    ``delete(name)``                    optional, but required for writing
    ``list(prefix)``                    optional: the names below a prefix, which is empty or ends with ``/``
    ==================================  ================================================================================

    `get`, `get_range` and `head` return None for a missing object, or raise KeyError or FileNotFoundError.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.lists: bool = hasattr(inner, "list")
        self.writes: bool = hasattr(inner, "put") and hasattr(inner, "delete")
        self.url: str = f"{type(inner).__name__}:/"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectClient, (self._inner,)

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        if byte_range is None:
            data = self._asked(self._inner.get, name)
            data = None if data is None else _bytes(data)
            return None if data is None else Answer(data, len(data), None)
        head = self.head(name)
        if head is None:
            return None
        start, stop = resolve_range(byte_range, head.size)
        if start == stop:
            return Answer(b"", head.size, None)
        data = self._asked(self._inner.get_range, name, start=start, length=stop - start)
        return None if data is None else answer_of(_bytes(data), start, stop, head.size)

    def head(self, name: str) -> Head | None:
        if not hasattr(self._inner, "head"):
            return super().head(name)
        found = self._asked(self._inner.head, name)
        return None if found is None else Head(found["size"], None)

    def put(self, name: str, data: Buffer, condition: Any = None) -> None:
        self._inner.put(name, bytes(data))

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._asked(self._inner.delete, name)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        return right_below(prefix, self._inner.list(prefix))[:2]

    def list_all(self, prefix: str) -> Iterator[list[tuple[str, int | None]]]:
        yield [(name, None) for name in self._inner.list(prefix)]

    @staticmethod
    def _asked(method, *args, **keywords):
        try:
            return method(*args, **keywords)
        except (KeyError, FileNotFoundError):
            return None


def _bytes(data):
    return bytes(data.bytes() if hasattr(data, "bytes") else data)
