"""Stores that are one file, whose values are ranges of it: a local file, one at a service, or any `ByteSource`."""
from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from zcore.descriptors import duplicate
from zcore.errors import StoreError
from zcore.ranges import ByteSource
from zcore.stores.base import BlockStore, Store
from zcore.trust.base_path import file_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zcore.stores.base import ByteRange

# The targets in a table of ranges: the file itself, and one for the values that Python decodes.
HERE, IN_PYTHON = "here", "other"


class FileStore(BlockStore):
    """A store that is one file. A subclass calls `_open`."""

    path: str
    _source: Any = None
    _made_of: Any
    _options: dict[str, Any] = {}     # keywords, to open it again

    def _open(self, source: Any, first: ByteRange, local: Callable[[str], ByteSource]) -> ByteSource:
        """Open and return a source: a path, by ``local(path)``; a `RemoteStore` of the file's URL; or a `ByteSource`.

        `first` is the range that is read at once at a service.
        """
        self._made_of = source
        if isinstance(source, Store):
            self._source = source.file(first)
            self.n_requests: int = source.n_requests
            self.uri: str | None = self._source.path if source.uri else None
        else:
            is_open = isinstance(source, ByteSource)
            self._source = source if is_open else local(os.path.abspath(file_path(source)))
            self._made_of = source if is_open else self._source.path
        self.path = self._source.path
        return self._source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"

    _token = property(__repr__)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), **self._options), (self._made_of,)

    def close(self) -> None:
        """Close the file; no thread may be using the store."""
        self._source.close()

    @property
    def label(self) -> str:
        """The name of the file."""
        return os.path.basename(self.path)

    def _open_target(self, target):
        if target != HERE:
            raise StoreError(f"{self!r}: these values are decoded in Python")
        return duplicate(self._source.fd)
