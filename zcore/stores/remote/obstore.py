"""Objects by obstore: S3, Google Cloud Storage, Azure, and plain HTTP servers.

Over plain ``http://``, the requests of one read for many objects are made by `zcore.stores.remote.direct`, which takes
less CPU. That is done only for stores whose options all have a meaning there. obstore signs these requests, and repeats
those without an ordinary answer: what such an answer means is its decision alone.
"""
from __future__ import annotations

import json
import os
import re
import sys
from _thread import RLock  # of threading, without its import time
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from zcore.errors import Needing, StoreError
from zcore.stores.base import resolve_range
from zcore.stores.remote.client import ABSENT, MAX_WHOLE_NBYTES, Answer, Client, ConditionError, Head
from zcore.stores.remote.direct import Direct, UnusualError

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
MAX_STORES = 16            # that are kept, for others with the same options

# Of stores whose objects may be requested directly: options, those of their clients, and variables AWS_…, each of which
# obstore takes for an option.
_DIRECT_OPTIONS = frozenset(("bucket", "region", "default_region", "endpoint", "endpoint_url", "access_key_id",
                             "secret_access_key", "session_token", "token", "virtual_hosted_style_request",
                             "skip_signature"))
_DIRECT_CLIENT_OPTIONS = frozenset(("allow_http", "connect_timeout", "timeout"))
# Of credentials and of other programs. obstore has the credentials.
_DIRECT_VARIABLES = _DIRECT_OPTIONS - {"skip_signature"} | frozenset((
    "ca_bundle", "config_file", "container_authorization_token_file", "container_credentials_full_uri",
    "container_credentials_relative_uri", "default_output", "ec2_metadata_disabled", "execution_env", "max_attempts",
    "pager", "profile", "retry_mode", "role_arn", "role_session_name", "shared_credentials_file",
    "sts_regional_endpoints", "web_identity_token_file"))
_PROXIES = frozenset(("http_proxy", "all_proxy"))
_TIMEOUTS = {"connect_timeout": "5s", "timeout": "30s"}     # the defaults of obstore
_SECONDS = {"ms": 0.001, "s": 1, "m": 60}
_SIGNED_FOR = timedelta(minutes=5)

_plain_name = re.compile(r"[\w.~-]+(?:/[\w.~-]+)*", re.ASCII).fullmatch
_dots = re.compile(r"(?:^|/)\.\.?(?:/|$)").search
_plain_url = re.compile(r"http://(?P<authority>(?P<host>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?)"
                        r"(?P<path>/[!-~]*)?", re.ASCII).fullmatch
_duration = re.compile(r"(\d{1,6})(ms|s|m)").fullmatch

_stores = {}               # by how they were made
_clients: WeakSet[ObstoreClient] = WeakSet()
_library = None            # the obstore of this process
_is_forked = False         # another process has loaded the one in `sys.modules`
_lock = RLock()            # reentrant: a signal handler may read


class ObstoreClient(Client):
    """A client over a store of obstore, which has its own timeouts, retries and credentials.

    In a forked child it makes the store again, see `zcore.stores.remote.forked`.

    Parameters
    ----------
    store : obstore.store.ObjectStore
    url : str, optional
        Precedes names in messages.
    """

    def __init__(self, store: Any, url: str | None = None) -> None:
        from obstore.store import HTTPStore

        self._given = store
        self._made = None, None        # the obstore of the process that has made it, and the store
        self.lists: bool = not isinstance(store, HTTPStore)
        self.writes: bool = self.lists
        self.swaps: bool = self.lists
        self._has_ranges = True
        self._direct = None, None      # the obstore of the process that has made it, and the `Direct`
        _clients.add(self)
        self.url: str = (_url_of(store) if url is None else url).rstrip("/") + "/"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObstoreClient, (self._given, self.url)

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
        except BaseError as exc:
            said = str(exc).partition("\n")[0]
            raise ValueError(f"{url!r:.200}: {said:.400} (options are those of obstore.store.from_url)") from exc

    @property
    def _obstore(self):
        """The obstore of this process, for which there is a store from now on."""
        library = _library if _library is not None else _loaded()
        if self._made[0] is not library:
            self._made = library, _store_of(library, self._given)
        return library

    @property
    def direct(self) -> Direct | None:
        library = self._obstore
        if self._direct[0] is not library:
            self._direct = library, _direct_of(library, self._made[1])
        return self._direct[1]

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        start, length = (0, None) if byte_range is None else byte_range
        if length == 0 or start is not None and start > MAX_OFFSET:
            return self._empty(name, byte_range)
        if not self._has_ranges and byte_range is not None:
            return self._part_of_whole(name, byte_range)
        try:
            return self._get(name, byte_range, start, length)
        except FileNotFoundError:
            return None
        except self._obstore.exceptions.NotSupportedError:
            if start is None:
                return self._last(name, length)
            self._has_ranges = False
            return self._part_of_whole(name, byte_range)
        except self._obstore.exceptions.GenericError as exc:
            # No range names an empty part, so the size decides.
            if byte_range is None or not _is_beyond(exc):
                raise
            return self._empty(name, byte_range, exc)

    def _get(self, name, byte_range, start, length):
        options = {}
        if start is None:
            options["range"] = {"suffix": length}
        elif length is not None:
            options["range"] = start, min(start + length, MAX_OFFSET + 1)
        elif start > 0:
            options["range"] = {"offset": start}
        found = self._call(self._obstore.get, name, options=options)
        meta, came = found.meta, found.range
        start, stop = resolve_range(byte_range, meta["size"])
        if came != (start, stop):
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

    def _part_of_whole(self, name, byte_range):
        """Return a part of an object that the server sends only as a whole."""
        try:
            found = self._call(self._obstore.get, name)
        except FileNotFoundError:
            return None
        meta = found.meta
        return _received(found, meta, found.range, *resolve_range(byte_range, meta["size"]), byte_range[1] is None)

    def head(self, name: str) -> Head | None:
        try:
            found = self._call(self._obstore.head, name)
        except FileNotFoundError:
            return None
        return Head(found["size"], _tag_of(found), found["last_modified"])

    def put(self, name: str, data: Buffer, condition: Any = None) -> object:
        mode = "overwrite" if condition is None else "create"
        if condition is not None and condition is not ABSENT:
            mode = {name: value for name, value in zip(("e_tag", "version"), condition, strict=True)
                    if value is not None}
        try:
            # In one request, because the parts of a multipart upload have no condition. Copied, because obstore's
            # memory store keeps the buffer.
            return _tag_of(self._call(self._obstore.put, name, bytes(data), mode=mode, use_multipart=False))
        except (self._obstore.exceptions.AlreadyExistsError, self._obstore.exceptions.PreconditionError) as exc:
            raise ConditionError(str(exc)) from exc

    def delete(self, names: Sequence[str]) -> None:
        for name in names if len(names) == 1 else ():
            try:
                self._call(self._obstore.delete, name)
            except FileNotFoundError:
                pass
        if len(names) > 1:
            self._call(self._obstore.delete, names)

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        found = self._call(self._obstore.list_with_delimiter, prefix.rstrip("/"))
        return ([item["path"] for item in found["objects"]], [name + "/" for name in found["common_prefixes"]])

    def list_all(self, prefix: str) -> Iterator[list[tuple[str, int | None]]]:
        for page in self._call(self._obstore.list, prefix.rstrip("/"), chunk_size=PAGE):
            yield [(item["path"], item["size"]) for item in page]

    def _call(self, function, *args, **keywords):
        return function(self._made[1], *args, **keywords)


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


def _direct_of(library, store):
    """Return a `Direct` that requests what `store` would request, or None if that is not certain."""
    kind = type(store).__name__
    options = store.client_options or {} if kind in ("S3Store", "HTTPStore") else {}
    if options.get("allow_http") != "true" or not _DIRECT_CLIENT_OPTIONS.issuperset(options):
        return None
    # Those of subclasses may do anything, and a proxy may know other hosts.
    if type(store) is not getattr(library.store, kind) or any([name.lower() in _PROXIES for name in os.environ]):
        return None
    times = [_duration(options.get(name, default)) for name, default in _TIMEOUTS.items()]
    made = (_s3_targets if kind == "S3Store" else _http_targets)(library, store)
    if made is None or None in times:
        return None
    url, target_of = made
    return Direct(url["host"].strip("[]"), int(url["port"] or 80), url["authority"], target_of,
                  *[int(found[1]) * _SECONDS[found[2]] for found in times])


def _http_targets(library, store):
    """Return the match of a URL of the store's server, and the function that returns the target of a name."""
    url = _plain_url(store.url)
    if url is None or not _is_plain((url["path"] or "/").removesuffix("/").removeprefix("/") or "x"):
        return None
    return url, partial(_target_below, (url["path"] or "").removesuffix("/") + "/")


def _s3_targets(library, store):
    """Do the same for a bucket. Its URL is the one that obstore signs, whatever that is made of."""
    config = dict(store.config)
    variables = [name[4:].lower() for name in os.environ if name.lower().startswith("aws_")]
    if not (_DIRECT_OPTIONS.issuperset(config) and _DIRECT_VARIABLES.issuperset(variables)):
        return None
    is_public = config.pop("skip_signature", "false") != "false"
    if is_public:
        # obstore does not sign for such a store, and signs the same URL for one with keys.
        config |= {"access_key_id": "none", "secret_access_key": "none"}
        store = library.store.S3Store(prefix=store.prefix, config=config, client_options=store.client_options)
    try:
        url = _plain_url(library.sign(store, "GET", "x", _SIGNED_FOR))
    except library.exceptions.BaseError:
        return None
    if url is None:
        return None
    base, _, _ = url["path"].partition("?")
    return url, partial(_target_below, base.removesuffix("x")) if is_public else partial(_signed, library, store, url)


def _target_below(base, name):
    if not _is_plain(name):
        raise UnusualError
    return base + name


def _signed(library, store, expected, name):
    try:
        url = _plain_url(library.sign(store, "GET", name, _SIGNED_FOR)) if _is_plain(name) else None
    except library.exceptions.BaseError as exc:
        raise UnusualError from exc
    if url is None or url["authority"] != expected["authority"]:
        raise UnusualError
    return url["path"]


def _is_plain(name):
    """Return whether a name is spelled in the same way in a URL."""
    return _plain_name(name) is not None and _dots(name) is None


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
    scheme = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}.get(type(store).__name__)
    if scheme is None or not bucket:
        return f"{type(store).__name__}:" + (f"/{prefix}" if prefix else "")
    return f"{scheme}://{bucket}" + (f"/{str(prefix).strip('/')}" if prefix else "")


def _loaded():
    """Return the obstore of this process, which is loaded if need be."""
    global _library
    with _lock:
        if _library is None:
            if _is_forked:
                from zcore.stores.remote.forked import loaded_again

                _library = loaded_again()
            else:
                import obstore

                _library = obstore
        return _library


def _store_of(library, store):
    """Return a store of that obstore which is made as `store` was."""
    if not _is_forked:
        return store
    try:
        kind = next(kind.__name__ for kind in type(store).__mro__ if kind.__module__.partition(".")[0] == "obstore")
        _, (_, args, keywords), *_ = store.__reduce_ex__(4)
        return getattr(library.store, kind)(*args, **keywords)
    except (TypeError, ValueError, StopIteration, library.exceptions.BaseError) as exc:
        raise StoreError(f"{type(store).__name__} of obstore was made before this process was forked, and cannot be "
                         f"made again in the child: {exc}; start processes by 'spawn' or 'forkserver'") from exc


def _after_fork_in_child():
    """obstore's threads do not run in a child, and none releases the locks that they held.

    So stores of the parent are never freed: a store that is freed takes such locks, and holds the GIL meanwhile.
    """
    global _is_forked, _library, _lock
    _is_forked = _is_forked or "obstore._obstore" in sys.modules
    _library = None
    _lock = RLock()
    if _clients or _stores:
        import ctypes

        for store in [part for client in _clients for part in (client._given, client._made)] + [*_stores.values()]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(store))


os.register_at_fork(after_in_child=_after_fork_in_child)
