"""Objects by obstore: S3, Google Cloud Storage, Azure, and plain HTTP servers."""
from __future__ import annotations

import os

from zcore.errors import StoreError, not_installed
from zcore.stores.remote.client import ABSENT, MAX_WHOLE_NBYTES, Answer, Client, ConditionError, Standing

MAX_OFFSET = 2**63 - 1     # of what is asked for
PAGE = 1000                # names of a listing that are held at a time

_is_forked = _is_used = False


class ObstoreClient(Client):
    """A client over a store of obstore; time-outs, retries and credentials are its own.

    Parameters
    ----------
    store : obstore.store.ObjectStore
    url : str, optional
        What its names are appended to, for messages.
    """

    def __init__(self, store, url=None):
        import obstore
        from obstore.store import HTTPStore

        self._obstore = obstore
        self._store = store
        self.lists = self.writes = not isinstance(store, HTTPStore)
        self.swaps = self.writes
        self._has_ranges = True
        self.url = (_url_of(store) if url is None else url).rstrip("/") + "/"

    def __reduce__(self):
        return ObstoreClient, (self._store, self.url)

    @classmethod
    def of_url(cls, url, options):
        """Return the client of a URL: ``s3://bucket``, ``https://host/path``.

        `options` are the keywords of `obstore.store.from_url`.

        Raises
        ------
        ValueError
            obstore does not know an option, or cannot make a store of them.
        UnsupportedError
            It is not installed.
        """
        try:
            from obstore.exceptions import BaseError
            from obstore.store import HTTPStore, from_url
        except ImportError as exc:
            raise not_installed(f"{url!r:.200} needs", "obstore", "remote", "remote stores") from exc
        scheme = url.partition(":")[0].lower()
        if scheme == "http":
            # Who writes the scheme has asked for it.
            options = {**options, "client_options": {"allow_http": True, **(options.get("client_options") or {})}}
        is_plain = scheme in ("http", "https")
        url = url.rstrip("/") if is_plain else url
        if is_plain and ("?" in url or "#" in url):
            raise ValueError(f"{url!r:.200} has a query or a fragment, behind which nothing can be appended")
        try:
            return cls(HTTPStore(url, **options) if is_plain else from_url(url, **options), url)
        except BaseError as exc:
            said = str(exc).partition("\n")[0]
            raise ValueError(f"{url!r:.200}: {said:.400} (options are those of obstore.store.from_url)") from exc

    def get(self, name, byte_range):
        start, length = (0, None) if byte_range is None else byte_range
        if length == 0 or start is not None and start > MAX_OFFSET:
            return self._nothing_of(name, start)
        if not self._has_ranges and byte_range is not None:
            return self._part_of_whole(name, start, length)
        try:
            return self._get(name, start, length)
        except FileNotFoundError:
            return None
        except self._obstore.exceptions.NotSupportedError:
            if start is None:
                return self._last(name, length)
            self._has_ranges = False
            return self._part_of_whole(name, start, length)
        except self._obstore.exceptions.BaseError as exc:
            # An empty part has no bytes that a range could name, and the services say so each in its way. The size
            # tells if it is that.
            if byte_range is None or not any([sign in str(exc) for sign in ("416", "range", "Range")]):
                raise
            return self._nothing_of(name, start, exc)

    def _get(self, name, start, length):
        options = {}
        if start is None:
            options["range"] = {"suffix": length}
        elif length is not None:
            options["range"] = start, min(start + length, MAX_OFFSET + 1)
        elif start > 0:
            options["range"] = {"offset": start}
        found = self._call(self._obstore.get, name, options=options)
        first, stop = found.range
        size = found.meta["size"]
        if start is None:
            is_all = first == max(0, size - length) and stop == size
        else:
            is_all = first == start and stop == (size if length is None else min(start + length, size))
        if not is_all:
            raise StoreError(f"bytes {first} to {stop} of {size} came")
        _check_whole(length, stop - first)
        # Not `bytes()`, which takes memory by the server's word, and ends the process where there is none.
        parts, n = [], 0
        for part in found.stream():
            parts.append(bytes(part))
            n += len(parts[-1])
            if n > stop - first:
                break
        if n != stop - first:
            raise StoreError(f"{n} bytes came{' or more' if n > stop - first else ''}, for bytes {first} to {stop} of "
                             f"{size}")
        return Answer(parts[0] if len(parts) == 1 else b"".join(parts), first, size, _tag_of(found.meta))

    def _nothing_of(self, name, start, error=None):
        """Return the answer of an empty part; raises `error` if it is not empty."""
        standing = self.standing(name)
        if standing is None:
            return None
        if error is not None and (standing.size > start if start is not None else standing.size):
            raise error
        return Answer(b"", standing.size if start is None else start, standing.size, standing.tag)

    def _last(self, name, length):
        """Return the last bytes by their place, where a service knows no other ranges."""
        standing = self.standing(name)
        if standing is None:
            return None
        answer = self.get(name, (max(0, standing.size - length), length))
        if answer is not None and (answer.size, answer.tag) != standing:
            raise StoreError("the object was replaced while it was read")
        return answer

    def _part_of_whole(self, name, start, length):
        """Return a part of an object that the server only gives from its beginning on."""
        try:
            found = self._call(self._obstore.get, name)
        except FileNotFoundError:
            return None
        size = found.meta["size"]
        if start is None:
            start = max(0, size - length)
        stop = size if length is None else min(start + length, size)
        _check_whole(length, stop - start)
        parts, n = [], 0
        for part in found.stream():
            part = memoryview(part)
            parts.append(bytes(part[max(0, start - n):max(0, stop - n)]))
            n += len(part)
            if n >= stop:
                break
        if n < stop:
            raise StoreError(f"{n} bytes came, of {size}")
        return Answer(b"".join(parts), start, size, _tag_of(found.meta))

    def standing(self, name):
        try:
            found = self._call(self._obstore.head, name)
        except FileNotFoundError:
            return None
        return Standing(found["size"], _tag_of(found))

    def put(self, name, data, condition=None):
        mode = "overwrite" if condition is None else "create"
        if condition is not None and condition is not ABSENT:
            mode = {name: value for name, value in zip(("e_tag", "version"), condition, strict=True)
                    if value is not None}
        try:
            # In one request: the parts of a large object that was sent in several have no condition.
            # A copy, as its memory store would keep what is the caller's.
            return _tag_of(self._call(self._obstore.put, name, bytes(data), mode=mode, use_multipart=False))
        except (self._obstore.exceptions.AlreadyExistsError, self._obstore.exceptions.PreconditionError) as exc:
            raise ConditionError(str(exc)) from exc

    def delete(self, names):
        for name in names if len(names) == 1 else ():
            try:
                self._call(self._obstore.delete, name)
            except FileNotFoundError:
                pass
        if len(names) > 1:
            self._call(self._obstore.delete, names)

    def list_dir(self, prefix):
        found = self._call(self._obstore.list_with_delimiter, prefix.rstrip("/"))
        return ([item["path"] for item in found["objects"]], [name + "/" for name in found["common_prefixes"]])

    def list_all(self, prefix):
        for page in self._call(self._obstore.list, prefix.rstrip("/"), chunk_size=PAGE):
            yield [(item["path"], item["size"]) for item in page]

    def _call(self, function, *args, **keywords):
        global _is_used
        if _is_forked:
            raise StoreError("obstore was used before this process was forked, and cannot be used in the child: start "
                             "processes by 'spawn' or 'forkserver'")
        _is_used = True
        return function(self._store, *args, **keywords)


def _check_whole(length, n_bytes):
    if length is None and n_bytes > MAX_WHOLE_NBYTES:
        raise StoreError(f"it has {n_bytes} bytes, and at most {MAX_WHOLE_NBYTES} are read to the end of an object")


def _tag_of(found):
    """Return what changes with the content of an object: a pair, of which services use one or the other; or None.

    A weak ETag (RFC 9110, "Validation") may stay as it is when bytes change.
    """
    tag = found["e_tag"]
    if tag is not None and tag.startswith("W/"):
        tag = None
    return None if tag is found["version"] is None else (tag, found["version"])


def _url_of(store):
    """Return what the names of a store are appended to, as far as it tells."""
    if hasattr(store, "url"):
        return store.url
    config = getattr(store, "config", None) or {}
    prefix = getattr(store, "prefix", None)
    bucket = config.get("bucket") or config.get("container_name")
    scheme = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "az"}.get(type(store).__name__)
    if scheme is None or not bucket:
        return f"{type(store).__name__}:" + (f"/{prefix}" if prefix else "")
    return f"{scheme}://{bucket}" + (f"/{str(prefix).strip('/')}" if prefix else "")


def _after_fork_in_child():
    """Its threads are not there any more, and what they share with the parent must not be touched."""
    global _is_forked
    _is_forked = _is_used


os.register_at_fork(after_in_child=_after_fork_in_child)
