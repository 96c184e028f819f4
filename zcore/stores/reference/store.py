"""Byte ranges of existing files as a store: reference sets, of versions 0 and 1 or in Parquet.

A set lists a value for each key, or the file and the range of its bytes. So archives of other formats are read as Zarr
without a copy.
"""
from __future__ import annotations

import json
import os
from _thread import RLock  # of threading, without its import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from zcore.buffers import flat_view
from zcore.errors import MetadataError, ReferenceFormatError
from zcore.kernel.refs.table import ReferenceTable
from zcore.model.value import check_kind
from zcore.ranges import LocalFile, merged
from zcore.stores.base import (
    OBJECTS,
    FileParts,
    FoundStore,
    Identity,
    Listing,
    Objects,
    PutStore,
    Store,
    renew_in_children,
    sliced,
)
from zcore.stores.keys import check_key, check_prefix
from zcore.stores.mapping import MappingStore
from zcore.stores.openers import PARQUET, check_file, named_kind
from zcore.stores.reference.document import MAX_NBYTES, read_document
from zcore.stores.reference.targets import Targets
from zcore.text.arguments import as_bool, integer_of
from zcore.text.printable import plural
from zcore.trust.base_path import file_path
from zcore.trust.urls import is_remote

if TYPE_CHECKING:
    from typing import Any

    from zcore.typing import StrPath

MAX_WORD = 2**64 - 1
LISTED = 1024  # keys in memory while a store is listed


class Batch(NamedTuple):
    """The indices of the keys that are read together. ``load()`` reads them, and returns a store with their values."""

    numbers: list[int]
    load: Callable[[], Store]


class ReferenceStore(FoundStore, PutStore):
    """The store of a reference set.

    Parameters
    ----------
    source : str, os.PathLike or mapping
        A JSON document, by its path or URL, or its content; or a directory, or a name that ends with ``.parq``,
        ``.parquet`` or ``/``: a set in Parquet, whose references are read when they are needed.
    base : str, optional
        Directory or URL for relative URLs; by default that of the document, or of the set.
    allowed : sequence of str or os.PathLike, optional
        Other targets of the set, see `Targets`: by default only files below `base`, and remote URLs.
    services : mapping of str to object, optional
        How to read remote targets, and the document itself. The keys are beginnings of URLs (``"s3://"``,
        ``"s3://bucket/"``), the values options of `RemoteStore`, or clients. Options for ``http`` and ``https`` are
        ``headers``, ``timeout`` in seconds and ``retries``.
    target : str, optional
        The URL of references without one.
    template_overrides : mapping of str to str, optional
        Templates that replace those of the document, or are added.
    max_generated : int, optional
        Maximum number of references that the document generates.
    read_only : bool
        Refuse changes. Changes stay in memory until `save`. For changes, a set in Parquet is read as a whole.

    Attributes
    ----------
    targets : Targets
        The rules for targets, and access to them.

    Raises
    ------
    ReferenceFormatError
        The document is no reference set.
    StoreError
        It cannot be read.
    ValueError
        `base` or one of `allowed` is empty; or an option does not apply to a set in Parquet.

    Notes
    -----
    A target that is missing, too short, or not allowed is a `ReferenceTargetError`: never a missing key, which would
    read as fill value. A value in a store for writing, or at a service, has no identity.

    Examples
    --------
    >>> store = ReferenceStore({".zgroup": {"zarr_format": 2}, "x/0": ["data.nc", 100, 20], "note": "base64:AAEC"})
    >>> store.get(".zgroup"), store.get("note"), store.list_dir("").keys
    (b'{"zarr_format":2}', b'\\x00\\x01\\x02', ['.zgroup', 'note'])
    >>> store.to_v0()["x/0"]
    ['data.nc', 100, 20]
    """

    def __init__(self, source: StrPath | Mapping[str, Any], *, base: str | None = None,
                 allowed: Sequence[StrPath] | None = None, services: Mapping[str, object] | None = None,
                 target: str | None = None, template_overrides: Mapping[str, str] | None = None,
                 max_generated: int | None = None, read_only: bool = True) -> None:
        self._read_only = as_bool(read_only, "read_only")
        if isinstance(allowed, (str, bytes)):
            raise TypeError(f"allowed={allowed!r}: expected a list of str")
        check_kind(allowed, "allowed", (Iterable,), "a list of str")
        check_kind(base, "base", (str, os.PathLike), "a path or a URL")
        check_kind(services, "services", (Mapping,), "a mapping of beginnings of URLs")
        most = 0 if max_generated is None else integer_of(max_generated)
        if most is None or most < 0:
            raise ValueError(f"max_generated is {max_generated!r:.60}, expected an integer of 0 or more")
        check_kind(source, "source", (str, os.PathLike, Mapping), "a path, a URL or a mapping, as json.loads returns")
        self._renew_locks()
        renew_in_children(self)
        self.path: str | None = None if isinstance(source, Mapping) else _absolute(source)
        in_parquet = self.path is not None and names_parquet(file_path(source))
        if in_parquet and (target, template_overrides, max_generated) != (None, None, None):
            raise ValueError("target, template_overrides and max_generated are of JSON documents, and "
                             f"{self.path} is a reference set in Parquet")
        if base is None and self.path is not None:
            base = _directory_of(self.path)
        self._requests_of = 0, 0       # number of known targets, and `n_requests` for them
        self.targets: Targets = Targets(base, allowed, services)
        raw = None if in_parquet else _as_document(source) if self.path is None else _read(self.path, services)
        try:
            if in_parquet:
                self._table = _parquet_table(_store_at(self.path, services), self._read_only)
            else:
                self._table = read_document(raw, target=target, template_overrides=template_overrides,
                                            max_generated=max_generated)
        except MetadataError as error:
            error.locate(self.path or "reference set")
            raise
        self._in_parquet = in_parquet and self._read_only
        self._source = source if self.path is None else self.path
        options = {"base": self.targets.base, "allowed": self.targets.allowed, "services": services, "target": target,
                   "template_overrides": template_overrides, "max_generated": max_generated}
        self._options = {name: value for name, value in options.items() if value is not None}

    def _renew_locks(self):
        self._lock = RLock()

    made_of: str | None = None     # the file that a new set points to, for messages

    @classmethod
    def of(cls, references: Mapping[str, bytes | tuple[str | None, int, int | None]], *, base: str | None = None,
           allowed: Sequence[StrPath] | None = None) -> ReferenceStore:
        """Return a store for reading with the given references.

        Parameters
        ----------
        references : dict of str to bytes or tuple
            For each key its value, or ``(url, offset, length)``; a length of None is the whole target.
        base, allowed
            As for the class.

        Raises
        ------
        InvalidKeyError
            One of the keys is invalid.
        ReferenceFormatError
            An offset or a length is negative, or their sum is 2**63 or more.

        Examples
        --------
        >>> ReferenceStore.of({"x/0": ("data.nc", 100, 20), "note": b"text"}).to_v0()
        {'x/0': ['data.nc', 100, 20], 'note': 'text'}
        """
        self = cls({}, base=base, allowed=allowed)
        for key, value in references.items():
            name = check_key(key).encode()
            if isinstance(value, bytes):
                self._table.put_data(name, value)
                continue
            url, offset, length = value
            if not (0 <= offset and 0 <= (length or 0) and offset + (length or 0) < 1 << 63):
                raise ReferenceFormatError(f"key {key!r:.200}: expected an offset and a length from 0 on that end "
                                           f"before byte 2**63, found {offset} and {length}")
            self._table.put(name, url, offset, length)
        self._source = None
        return self

    def __repr__(self) -> str:
        what = "in Parquet" if self._in_parquet else plural(len(self._table), "reference")
        place = self.path or self.made_of
        return f"ReferenceStore({'' if place is None else repr(place) + ', '}{what})"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.read_only:
            raise TypeError(f"{self!r} may have unsaved changes; save it, and pickle a store of the saved document")
        source = {"version": 1, "refs": self.to_v0()} if self._source is None else self._source
        return partial(ReferenceStore, **self._options), (source,)

    @property
    def read_only(self) -> bool:
        """Whether changes are refused. It cannot be set, because the compiled code reads the table without a lock."""
        return self._read_only

    @property
    def base(self) -> str | None:
        """The directory or URL for relative URLs, or None."""
        return self.targets.base

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """Other allowed targets than files below `base`, as passed by the caller."""
        return self.targets.allowed

    def locate(self, prefix: str) -> FileParts | Objects:
        if not self._read_only:
            return OBJECTS
        table = self._table.table_of(prefix.encode()) if self._in_parquet else self._table
        return FileParts(table, self.targets.open, self._batches)

    @property
    def label(self) -> str:
        """The name of the document, or of the class."""
        return type(self).__name__ if self.path is None else os.path.basename(self.path.partition("?")[0])

    # Reading

    def _found(self, key, byte_range):
        found = self._find(key)
        if found is None:
            return None
        if isinstance(found, bytes):
            return sliced(found, byte_range), _identity_of_data(found) if self._read_only else None
        value, status = self.targets.get_part(key, *found, byte_range)
        return value, _identity_of_part(status, *found[1:]) if self._read_only and status is not None else None

    def identity(self, key: str) -> Identity | None:
        found = self._find(key)
        if found is None or not self._read_only:
            return None
        if isinstance(found, bytes):
            return _identity_of_data(found)
        url, offset, length = found
        is_local = self.targets.is_local(url)
        return _identity_of_part(self.targets.status_of(key, url), offset, length) if is_local else None

    @property
    def n_requests(self) -> int:
        """As for a `RemoteStore` if there is a remote target, else 0."""
        if not self._read_only:
            return 0
        n_known, n_requests = self._requests_of
        # The targets of a set in Parquet become known when its files are read.
        n_targets = self._table.n_targets
        if n_requests == 0 and (n_known < n_targets or self.targets.is_remote):
            is_remote = self.targets.is_remote or any(map(self.targets.is_url, self._table.targets[n_known:]))
            n_requests = self.targets.remote.n_requests if is_remote else 0
            self._requests_of = n_targets, n_requests
        return n_requests

    def _batches(self, keys, limit):
        """Return a list of `Batch`, in which each of the keys is once.

        One request reads neighbours in one target (references checklist, RF-URL-09). The result is the same as if each
        reference were read alone, errors included. Values of more than `limit` bytes are not batched, because the
        caller reads no more than that.
        """
        of_target, batches = {}, []
        for number, key in enumerate(keys):
            found = self._find(key)
            url, offset, length = found if isinstance(found, tuple) else (None, 0, None)
            if not length or not self.targets.is_url(url) or limit is not None and length > limit:
                batches.append(Batch([number], lambda: self))
            else:
                of_target.setdefault(url, []).append((offset, length, number, key))
        for url, parts in of_target.items():
            for start, stop, chosen in merged([(offset, offset + length) for offset, length, _, _ in parts]):
                of_block = [parts[i] for i in chosen]
                batches.append(Batch([number for _, _, number, _ in of_block],
                                   partial(self._loaded, url, start, stop, of_block)))
        return batches

    def _loaded(self, url, start, stop, parts):
        # An error names the first of the keys.
        targets, data = self.targets, memoryview(self.targets.get_some(parts[0][3], url, start, stop - start))
        return MappingStore({key: targets.check_length(key, url, offset, length, data[offset - start:][:length])
                             for offset, length, _, key in parts})

    def getsize(self, key: str) -> int | None:
        found = self._find(key)
        if found is None or isinstance(found, bytes):
            return None if found is None else len(found)
        url, _, length = found
        return self.targets.getsize(key, url) if length is None else length

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        # Without access to the targets.
        return [name for name in names if self._find(prefix + check_key(name)) is not None]

    def extent(self, key: str) -> tuple[str, int, int | None] | None:
        found = self._find(key)
        if found is None or isinstance(found, bytes):
            return None
        return self.targets.seen_from(None, found[0]), *found[1:]

    def list_dir(self, prefix: str) -> Listing:
        check_prefix(prefix)
        keys, prefixes = self._table.list_dir(prefix.encode())
        return Listing([key.decode() for key in keys], [prefix.decode() for prefix in prefixes])

    def list_sizes(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        # Not by a walk, which takes a step for each level: one key may have 30 000 levels.
        below = check_prefix(prefix).encode()
        return ((key, None) for key in (map(bytes.decode, self._table.keys(below)) if self._in_parquet
                                        else self._keys_below(below)))

    def _keys_below(self, prefix):
        start = prefix
        while True:
            keys = self._table.list_keys(prefix, start, LISTED)
            yield from [key.decode() for key in keys]
            if len(keys) < LISTED:
                return
            start = keys[-1] + b"\0"

    def _find(self, key):
        name = check_key(key).encode()
        # Without the lock: a signal handler may wait here for another thread that reads.
        found = self._table.find(name)
        # For an empty value the target is not read.
        return b"" if isinstance(found, tuple) and found[2] == 0 else found

    # Changes, in memory

    def _put(self, key, value, exclusive):
        with self._lock:
            if exclusive and self._find(key) is not None:
                return False
            self._table.put_data(check_key(key).encode(), bytes(flat_view(value)))
            return True

    def _set_parts(self, key, parts):
        with self._lock:
            super()._set_parts(key, parts)

    def erase(self, key: str) -> None:
        self._check_writable("erase", key)
        with self._lock:
            self._table.remove(check_key(key).encode())

    # As a document

    def to_v0(self, *, absolute: bool = False) -> dict[str, Any]:
        """Return the set in version 0: a dict of keys to str, ``[url]`` or ``[url, offset, length]``.

        Parameters
        ----------
        absolute : bool
            Make relative URLs absolute. For fsspec they are relative to the current directory, not to `base`.

        Notes
        -----
        Data that are not ASCII are written as base64. All readers take it, although version 0 does not define it.
        """
        absolute = as_bool(absolute, "absolute")
        with self._lock:
            return {key.decode(): _written(self._seen_from(None, value) if absolute else value)
                    for key, value in self._table.items()}

    def _seen_from(self, directory, value):
        """Return a reference with a URL for a document in another directory, or anywhere (None)."""
        return value if isinstance(value, bytes) else (self.targets.seen_from(directory, value[0]), *value[1:])

    def save(self, path: StrPath) -> None:
        """Write the set as a document of version 1, with all generated references; replaces the file in one step.

        A link is followed.

        If it is in another directory, relative URLs are changed such that they have the same targets.

        Raises
        ------
        ValueError
            The name has the ending of something else, such as a set in Parquet.
        """
        check_file(path := file_path(path), "a reference set as JSON", ".json")
        from zcore.stores.directory.store import DirectoryStore

        directory = os.path.dirname(os.path.abspath(path))
        lines = []
        with self._lock:
            for key, value in self._table.items():
                value = _written(self._seen_from(directory, value))
                lines.append(json.dumps(key.decode()).encode() + b": " + json.dumps(value).encode())
        folder, name = os.path.split(os.path.realpath(path))
        store = DirectoryStore(folder)
        store.exists(name)      # raises for a device, which is not replaced
        store.set(name, b'{"version": 1, "refs": {' + b",\n".join(lines) + b"}}")


def _identity_of_data(data):
    """Return the identity of data inside the set, which cannot be replaced: a hash of the data."""
    return hash(data) & MAX_WORD, 0, len(data), 0, 0


def _identity_of_part(status, offset, length):
    """Return the identity of a part of a file: the file's, with the part's offset and size."""
    length = max(0, status.st_size - offset) if length is None else length
    part_hash = hash((status.st_dev, status.st_ino, offset)) & MAX_WORD
    return part_hash, status.st_ino, length, status.st_mtime_ns, status.st_ctime_ns


def _written(value):
    if not isinstance(value, bytes):
        url, offset, length = value
        return [url] if length is None else [url, offset, length]
    text = value.decode("ascii", errors="ignore")
    if len(text) < len(value) or text.startswith("base64:"):
        return "base64:" + b64encode(value).decode()
    return text


def _absolute(source):
    return source if isinstance(source, str) and is_remote(source) else os.path.abspath(file_path(source, "source"))


def _directory_of(path):
    if is_remote(path):
        return path.partition("?")[0].rstrip("/").rpartition("/")[0] + "/"
    return os.path.dirname(path)


def _read(path, services):
    if is_remote(path):
        from zcore.stores.reference.remote_targets import read_remote

        return read_remote(path, services, MAX_NBYTES + 1)
    file = LocalFile(path)
    try:
        if file.size > MAX_NBYTES:
            raise ReferenceFormatError(f"expected a reference set of {MAX_NBYTES} bytes at the most, found more",
                                       document=path)
        return file.read_at(0, file.size)
    finally:
        file.close()


def _store_at(path, services):
    """Return the store of a set in Parquet."""
    if is_remote(path):
        from zcore.stores.reference.remote_targets import store_at

        return store_at(path, services)
    from zcore.stores.directory.store import DirectoryStore

    return DirectoryStore(path, read_only=True, confined=True)


def names_parquet(path: str) -> bool:
    """Return whether this is the name of a set in Parquet."""
    return path.endswith("/") or named_kind(path) is PARQUET or os.path.isdir(path)


def _parquet_table(store, read_only):
    from zcore.stores.reference.parquet import ParquetTable

    found = ParquetTable(store)
    if read_only:
        return found
    table = ReferenceTable()
    for key, value in found.items():
        if isinstance(value, bytes):
            table.put_data(key, value)
        else:
            table.put(key, *value)
    return table


def _as_document(source):
    try:
        return json.dumps(dict(source)).encode()
    except (RecursionError, ValueError) as exc:
        raise ReferenceFormatError(f"expected a reference set, found a mapping that is no JSON: {exc}") from exc
