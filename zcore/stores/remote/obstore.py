"""Objects by obstore: S3, Google Cloud Storage, Azure, and plain HTTP servers.
"""
from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit
from weakref import WeakSet

from zcore.errors import Needing, StoreError
from zcore.stores.base import resolve_range
from zcore.stores.remote.client import ABSENT, MAX_WHOLE_NBYTES, Answer, Client, ConditionError, Head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Self

    from zcore.stores.base import ByteRange
    from zcore.typing import Buffer

MAX_OFFSET = 2**63 - 1     # of a request
_PART_NBYTES = 10 << 20    # of an answer, in memory at a time
# How errors begin of a range that begins behind the end.
_BEYOND = "Generic InMemory error: Invalid range: ", "Generic LocalFileSystem error: Requested range was invalid"
PAGE = 1000                # names of a listing that are in memory at a time
_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}     # of services, by obstore's classes
MAX_STORES = 16            # that are kept, for others with the same options

_stores = {}               # by how they were made
_clients: WeakSet[ObstoreClient] = WeakSet()
# The process for which obstore's threads run: the first that has made a request. None until then.
_process = None


class ObstoreClient(Client):
    """A client over a store of obstore, which has its own timeouts, retries and credentials.

    obstore's threads do not run in a child that is forked after the first request, so each request there is an error.

    Parameters
    ----------
    store : obstore.store.ObjectStore
    url : str, optional
        Precedes names in messages.
    """

    def __init__(self, store: Any, url: str | None = None) -> None:
        import obstore

        self._obstore = obstore
        self._store = store
        self.lists: bool = not isinstance(store, obstore.store.HTTPStore)
        self.writes: bool = self.lists
        self.swaps: bool = self.lists
        self.copies: bool = self.lists
        self.dates: bool = type(store).__name__ in _SCHEMES
        self._has_ranges = True
        self._redirects = None     # finds them out; made for the first object that is absent
        _clients.add(self)
        self.url: str = (_url_of(store) if url is None else url).rstrip("/") + "/"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObstoreClient, (self._store, self.url)

    @classmethod
    def of_url(cls, url: str, options: Mapping[str, Any]) -> Self:
        """Return the client of a URL: ``s3://bucket``, ``https://host/path``.

        `options` are the keywords of `obstore.store.from_url`.

        Raises
        ------
        ValueError
            obstore does not know an option, or cannot make a store with the options.
        UnsupportedError
            obstore is not installed.
        """
        with Needing(f"{url!r:.200} needs", "obstore", "remote", "remote stores"):
            from obstore.exceptions import BaseError
            from obstore.store import HTTPStore, from_url
        scheme = url.partition(":")[0].lower()
        if scheme == "http":
            # The caller has written the scheme.
            options = {**options, "client_options": {"allow_http": True, **(options.get("client_options") or {})}}
        is_plain = scheme in ("http", "https")
        url = url.rstrip("/") if is_plain else url
        if is_plain and ("?" in url or "#" in url):
            raise ValueError(f"{url!r:.200} has a query or a fragment, so no name can be appended")
        try:
            return cls(_shared(HTTPStore if is_plain else from_url, url, options), url)
        except (BaseError, ValueError) as exc:
            said = str(exc).partition("\n")[0]
            raise ValueError(f"{url!r:.200}: {said:.400} (options are those of obstore.store.from_url)") from exc

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        start, length = (0, None) if byte_range is None else byte_range
        if length == 0 or start is not None and start > MAX_OFFSET:
            return self._empty(name, byte_range)
        has_ranges = self._has_ranges     # another thread may find out now that it has none
        try:
            return self._get(name, byte_range, start, length, has_ranges)
        except FileNotFoundError:
            return self._absent(name)
        except self._obstore.exceptions.NotSupportedError:
            if not has_ranges:
                raise
            if start is None:
                return self._last(name, length)
            self._has_ranges = False     # the server sends objects only as a whole
            return self.get(name, byte_range)
        except self._obstore.exceptions.GenericError as exc:
            # No range names an empty part, so the size decides.
            if byte_range is None or not _is_beyond(exc):
                raise
            return self._empty(name, byte_range, exc)

    def _get(self, name, byte_range, start, length, has_ranges):
        part = None
        if start is None:
            part = {"suffix": length}
        elif length is not None:
            part = start, min(start + length, MAX_OFFSET + 1)
        elif start > 0:
            part = {"offset": start}
        found = self._call("get", name, options={} if part is None or not has_ranges else {"range": part})
        meta, came = found.meta, found.range
        start, stop = resolve_range(byte_range, meta["size"])
        if has_ranges and came != (start, stop):
            raise StoreError(f"bytes {came[0]} to {came[1]} of {meta['size']} came")
        return _received(found, meta, came, start, stop, length is None)

    def _empty(self, name, byte_range, error=None):
        """Return the answer for an empty part; raises `error` if the part is not empty."""
        head = self.head(name)
        if head is None:
            return None
        start, stop = resolve_range(byte_range, head.size)
        if error is not None and start != stop:
            raise error
        return Answer(b"", *head)

    def _last(self, name, length):
        """Return the last bytes by their offset, for a service that has no other ranges."""
        head = self.head(name)
        if head is None:
            return None
        answer = self.get(name, (max(0, head.size - length), length))
        if answer is not None and answer[1:] != head:
            raise StoreError("the object was replaced while it was read")
        return answer

    def head(self, name: str) -> Head | None:
        try:
            found = self._call("head", name)
        except FileNotFoundError:
            return self._absent(name)
        return Head(found["size"], _tag_of(found), found["last_modified"])

    def _absent(self, name):
        """Return None; raises if an HTTP server had redirected to where nothing is, which obstore does not tell."""
        if not isinstance(self._store, self._obstore.store.HTTPStore):
            return None
        if self._redirects is None:
            self._redirects = _Redirects(self.url, self._store.client_options or {})
        self._redirects.check(name)
        return None

    def put(self, name: str, data: Buffer, condition: Any = None) -> object:
        mode = "overwrite" if condition is None else "create"
        if condition is not None and condition is not ABSENT:
            mode = {name: value for name, value in zip(("e_tag", "version"), condition, strict=True)
                    if value is not None}
        try:
            # In one request, because the parts of a multipart upload have no condition. Copied, because obstore's
            # memory store keeps the buffer.
            return _tag_of(self._call("put", name, bytes(data), mode=mode, use_multipart=False))
        except (self._obstore.exceptions.AlreadyExistsError, self._obstore.exceptions.PreconditionError) as exc:
            raise ConditionError(str(exc)) from exc

    def copy(self, name: str, new: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call("copy", name, new)

    def delete(self, names: Sequence[str]) -> None:
        for name in names if len(names) == 1 else ():
            with contextlib.suppress(FileNotFoundError):
                self._call("delete", name)
        if len(names) > 1:
            self._call("delete", names)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        found = self._call("list_with_delimiter", prefix.rstrip("/"))
        return ([item["path"] for item in found["objects"]], [name + "/" for name in found["common_prefixes"]])

    def list_all(self, prefix: str) -> Iterator[list[tuple[str, int | None]]]:
        for page in self._call("list", prefix.rstrip("/"), chunk_size=PAGE):
            yield [(item["path"], item["size"]) for item in page]

    def _call(self, function, *args, **keywords):
        global _process
        if _process != (process := os.getpid()):
            if _process is not None:
                raise StoreError("this process was forked after a request to a service, and the threads of obstore do "
                                 "not run in it: start processes by 'spawn' or 'forkserver' "
                                 "(multiprocessing.set_start_method)")
            _process = process
        return getattr(self._obstore, function)(self._store, *args, **keywords)


class _Redirects:
    """Asks an HTTP server whether what obstore did not find is elsewhere."""

    def __init__(self, url, options):
        from urllib.request import getproxies, proxy_bypass

        from zcore.stores.remote.http import HttpClient, Permit

        headers = {name: value if isinstance(value, str) else value.decode("latin-1")
                   for name, value in options.get("default_headers", {}).items()}
        self._url = url
        # They are for this server, not for the one that it names.
        self._client = HttpClient(lambda asked: Permit(headers if asked.startswith(url) else {}))
        host = urlsplit(url).hostname
        # What obstore alone can reach is not asked again.
        self._asks = options.keys().isdisjoint(("proxy_url", "allow_invalid_certificates")) and (
            urlsplit(url).scheme not in getproxies() or proxy_bypass(host))

    def check(self, name):
        if self._asks:
            self._client.check_absence(self._url + quote(name))


def _shared(make, url, options):
    """Return ``make(url, **options)``, a store. A second one takes milliseconds, and has connections of its own.

    So there is one for all callers with the same options, if these are texts, numbers and the like. obstore takes
    options from the environment as well.
    """
    try:
        key = make, url, json.dumps(options, sort_keys=True), tuple(os.environ.items())
    except (TypeError, ValueError):
        return make(url, **options)
    store = _stores.get(key)
    if store is None:
        store = make(url, **options)
        if len(_stores) >= MAX_STORES:
            _stores.clear()
        _stores[key] = store
    return store


def _received(found, meta, came, start, stop, is_to_the_end):
    """Return the `Answer` with the bytes from `start` to `stop` of a result of `obstore.get`.

    `meta` and `came` are its `meta` and `range`, which obstore makes anew at each access.
    """
    if is_to_the_end and stop - start > MAX_WHOLE_NBYTES:
        raise StoreError(f"it has {stop - start} bytes, and at most {MAX_WHOLE_NBYTES} are read to the end of an "
                         "object")
    first, last = came
    # Not `found.bytes()`: it allocates the size that the server claims, and ends the process if memory is short.
    parts, n = [], first
    for part in found.stream(_PART_NBYTES):
        part = memoryview(part)
        # Without a copy: the memory is obstore's, and stays as long as the view.
        parts.append(part[max(0, start - n):max(0, stop - n)])
        n += len(part)
        # Only the last part is shorter than that.
        if len(part) < _PART_NBYTES or n > last or stop <= n and stop < last:
            break
    if n < stop or n > last:
        raise StoreError(f"{n - first} bytes came{' or more' if n > last else ''}, for bytes {first} to {last} of "
                         f"{meta['size']}")
    return Answer(parts[0] if len(parts) == 1 else b"".join(parts), meta["size"], _tag_of(meta), meta["last_modified"])


def _is_beyond(error):
    """Return whether an obstore error says that a range begins behind the end: by the status, or of memory and files.

    Its text names the object, whose name may have any of these words, and ends with what the service has sent.
    """
    before, _, status = str(error).partition(" - Server returned non-2xx status code: ")
    return status.startswith("416") or not status and before.startswith(_BEYOND)


def _tag_of(found):
    """Return a value that changes with the content of an object: a pair, of which a service uses one; or None.

    A weak ETag (RFC 9110, "Validation") may stay the same when bytes change, so it does not count.
    """
    tag = found["e_tag"]
    if tag is not None and tag.startswith("W/"):
        tag = None
    return None if tag is found["version"] is None else (tag, found["version"])


def _url_of(store):
    """Return the URL that precedes the names of a store, as far as the store tells it."""
    if hasattr(store, "url"):
        return store.url
    config = getattr(store, "config", None) or {}
    prefix = getattr(store, "prefix", None)
    bucket = config.get("bucket") or config.get("container_name")
    scheme = _SCHEMES.get(type(store).__name__)
    if scheme is None or not bucket:
        return f"{type(store).__name__}:" + (f"/{prefix}" if prefix else "")
    return f"{scheme}://{bucket}" + (f"/{str(prefix).strip('/')}" if prefix else "")


def _after_fork_in_child():
    """Never free stores of the parent: a store that is freed takes locks that a thread of the parent may hold."""
    if _clients or _stores:
        import ctypes

        for store in [*(client._store for client in _clients), *_stores.values()]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(store))


os.register_at_fork(after_in_child=_after_fork_in_child)
