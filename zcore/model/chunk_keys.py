"""Chunk coordinates to keys and back: the prefix, suffix and separator rule of the early Zarr v3 draft.

The kernel computes the same keys without Python (`Tasks.key_of` in `zcore/kernel/select/tasks.pyx`).

"The key for chunk with grid index (i, j, k, ...) is formed by joining together the path of the array in which the
chunk occurs, then a forward slash character, then a prefix, then the ASCII string representations of each index, then
a suffix. The prefix, chunk indices and suffix are joined using a separator." (core protocol v3.0 draft of 2019,
"Regular grids".) Every format of zcore is one setting of this rule:

=============  =============  ======  =========  ======  ======  =======================
format         directory      prefix  separator  suffix  scalar  chunk (1, 23, 45)
=============  =============  ======  =========  ======  ======  =======================
v3 `default`                  c       / or .                     c/1/23/45
v2, v3 `v2`                           . or /             0       1.23.45
`__zmeta__`    __zdata__              .          blosc   0       __zdata__/1.23.45.blosc
=============  =============  ======  =========  ======  ======  =======================

An empty prefix or suffix adds no part to the key. `scalar` replaces the indices if there are none, as for the only
chunk of a 0-d array.
"""
from __future__ import annotations

from operator import index as exact_index
from typing import TYPE_CHECKING

from zcore.errors import SelectionError
from zcore.model.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

MAX_INDEX_DIGITS = 19  # of 2**63 - 1, the largest chunk coordinate


def parse_index(text: str) -> int:
    """Return the chunk index of a text.

    Raises : ValueError, unless `text` is the canonical spelling: ASCII digits, no sign, blank or leading zero.
    """
    if not (text.isascii() and text.isdigit()) or (text[0] == "0" and text != "0") or len(text) > MAX_INDEX_DIGITS:
        raise ValueError(f"expected a chunk index in decimal digits without padding, found {text[:40]!r}")
    return int(text)


class ChunkKeyEncoding(Value):
    """How the chunks of an array are named, as a frozen value.

    Parameters
    ----------
    directory : str
        Directory of the chunks below the array's path; ``""`` is the path itself.
    prefix, suffix : str
        Parts before and after the indices; empty ones add nothing.
    separator : str
        Between the parts; not empty and without digits, so that no two chunks share a key.
    scalar : str, optional
        Part that replaces the indices if there are none; by default none if there is a prefix, else ``"0"``.

    Raises
    ------
    ValueError
        If a part is not printable ASCII, or would make a key with an empty, ``.`` or ``..`` segment.

    Examples
    --------
    >>> ChunkKeyEncoding(prefix="c", suffix="blosc").encode((1, 23, 45))
    'c.1.23.45.blosc'
    >>> ChunkKeyEncoding.zmeta().decode("__zdata__/4.2.blosc", ndim=2)
    (4, 2)
    """

    __slots__ = ("directory", "prefix", "separator", "suffix", "scalar", "_head", "_tail", "_scalar_key")
    _fields = ("directory", "prefix", "separator", "suffix", "scalar")
    directory: str
    prefix: str
    separator: str
    suffix: str
    scalar: str

    def __init__(self, directory: str = "", prefix: str = "", separator: str = ".", suffix: str = "",
                 scalar: str | None = None) -> None:
        if scalar is None:
            scalar = "" if prefix else "0"
        store = object.__setattr__
        for name, part in zip(self._fields, (directory, prefix, separator, suffix, scalar), strict=True):
            if type(part) is not str:
                raise TypeError(f"{name} of a chunk key: expected a str, found {type(part).__name__}")
            if not (part.isascii() and part.isprintable()):
                raise ValueError(f"{name} of a chunk key: expected printable ASCII, found {part!r}")
            store(self, name, part)
        if not separator or any(digit in separator for digit in "0123456789"):
            raise ValueError(f"separator of a chunk key: expected characters other than digits, found {separator!r}")
        base = directory + "/" if directory else ""
        store(self, "_head", base + prefix + separator if prefix else base)
        store(self, "_tail", separator + suffix if suffix else "")
        store(self, "_scalar_key", base + separator.join(part for part in (prefix, scalar, suffix) if part))
        for key in (self._scalar_key, self.encode((0,)), self.encode((0, 0))):
            if not {"", ".", ".."}.isdisjoint(key.split("/")):
                raise ValueError(f"chunk key {key!r}: the parts make a segment that is empty, '.' or '..'")

    @classmethod
    def v3(cls, separator: str = "/") -> Self:
        """Return the `default` encoding of Zarr v3; a 0-d array's only chunk is ``c``."""
        return cls(prefix="c", separator=separator)

    @classmethod
    def v2(cls, separator: str = ".") -> Self:
        """Return the encoding of Zarr v2, which v3 calls `v2`; a 0-d array's only chunk is ``0``."""
        return cls(separator=separator)

    @classmethod
    def zmeta(cls) -> Self:
        """Return the encoding of `__zmeta__` arrays (storage of 2016, "Array data")."""
        return cls(directory="__zdata__", suffix="blosc")

    def v3_name(self) -> tuple[str, str]:
        """Return the `(name, separator)` of this encoding in Zarr v3 documents.

        Raises : ValueError, if there is none: v3 has `default` and `v2`, each with ``/`` or ``.``.
        """
        if self.separator in ("/", "."):
            if self == ChunkKeyEncoding.v3(self.separator):
                return "default", self.separator
            if self == ChunkKeyEncoding.v2(self.separator):
                return "v2", self.separator
        raise ValueError(f"Zarr v3 cannot record the chunk keys {self!r}; it knows 'default' and 'v2' with '/' or '.'")

    def encode(self, chunk_coords: Sequence[int]) -> str:
        """Return the key of one chunk, relative to the array's path.

        Raises : SelectionError, on a negative coordinate.

        >>> ChunkKeyEncoding.v3("/").encode((1, 23))
        'c/1/23'
        """
        if not len(chunk_coords):
            return self._scalar_key
        indices = []
        for d, coord in enumerate(chunk_coords):
            coord = exact_index(coord)
            if coord < 0:
                raise SelectionError(f"chunk coordinate {coord} in dimension {d} is negative", dimension=d)
            indices.append(str(coord))
        return self._head + self.separator.join(indices) + self._tail

    def decode(self, key: str, ndim: int) -> tuple[int, ...] | None:
        """Return the chunk coordinates of `key` (relative to the array's path), or None.

        None means that `key` names no chunk of an array of `ndim` dimensions: another prefix or suffix, another number
        of indices, or an index that `parse_index` refuses.
        """
        if ndim == 0:
            return () if key == self._scalar_key else None
        head, tail = self._head, self._tail
        if not (key.startswith(head) and key.endswith(tail)) or len(key) < len(head) + len(tail):
            return None
        parts = key[len(head):len(key) - len(tail)].split(self.separator)
        if len(parts) != ndim:
            return None
        try:
            return tuple(parse_index(part) for part in parts)
        except ValueError:
            return None

    def folder(self, ndim: int) -> str:
        """Return the common prefix (``""``, or with a final ``/``) of the keys of all chunks.

        >>> ChunkKeyEncoding.v3().folder(2), ChunkKeyEncoding.zmeta().folder(2), ChunkKeyEncoding.v2().folder(2)
        ('c/', '__zdata__/', '')
        """
        head = self._head if ndim else self._scalar_key
        return head[:head.rfind("/") + 1]

    def leads_to_chunks(self, name: str, ndim: int) -> bool:
        """Return whether keys of chunks may lie below ``name/``; `name` is relative to the array.

        >>> [ChunkKeyEncoding.v3().leads_to_chunks(name, 2) for name in ("c", "c/4", "c/4/2", "d", "c/x")]
        [True, True, False, False, False]
        """
        if self.folder(ndim).startswith(f"{name}/"):
            return True
        head = self._head
        if self.separator != "/" or not name.startswith(head):
            return False
        parts = name[len(head):].split("/")
        # A suffix is a part of its own after the last index.
        return len(parts) < ndim + bool(self._tail) and self.decode(
            head + "/".join(parts) + self._tail, len(parts)) is not None

    def template(self, ndim: int) -> tuple[bytes, bytes, bytes]:
        """Return `(head, separator, tail)` as bytes: a key is head + separator.join(decimal indices) + tail.

        It is valid for every chunk of an array of `ndim` dimensions, also 0, and compiled code builds keys from it.
        """
        if ndim == 0:
            return self._scalar_key.encode("ascii"), b"", b""
        return self._head.encode("ascii"), self.separator.encode("ascii"), self._tail.encode("ascii")
