"""Remote targets of references: which URLs are allowed, and which client reads them.

A local document may point to any service. A document from a service may point to services, too, but not to local files,
and not to addresses of this machine and its link: its author could read what is served only here. For HTTP servers,
each redirect is judged like the URL itself, and so are the addresses of a name. URLs in `allowed` are named by the
caller, so their addresses are not judged.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore import workers
from zcore.errors import ReferenceTargetError, StoreError, UnsupportedError
from zcore.stores.openers import library_of
from zcore.stores.remote.client import client_of
from zcore.stores.remote.http import HttpClient, Permit, RefusedError
from zcore.stores.remote.store import N_REQUESTS, RemoteStore, message_of
from zcore.trust.urls import is_below, split_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# With these schemes of obstore, only the caller's options name a server. A server that an untrusted document names is
# only requested over HTTP, where its address is judged.
SCHEMES = frozenset(("s3", "gs", "az", "http", "https"))
_OPTIONS_OF_HTTP = frozenset(("headers", "timeout", "retries"))


class RemoteTargets:
    """The remote targets of one reference set.

    Parameters
    ----------
    is_allowed : callable
        ``is_allowed(url)``: True if `allowed` names the URL, None without `allowed`, else False.
    is_remote : bool
        The document came from a service.
    services : mapping of str to object, or None
        Beginnings of URLs, and for each the options of a client, or a client: see `RemoteStore`. Options for ``http``
        and ``https`` are ``headers``, ``timeout`` in seconds and ``retries``.
    """

    def __init__(self, is_allowed: Callable[[str], bool | None], is_remote: bool,
                 services: Mapping[str, object] | None = None) -> None:
        self._is_allowed = is_allowed
        self._is_remote = is_remote
        self._services = dict(services or {})
        for beginning, service in self._services.items():
            if not isinstance(beginning, str) or "://" not in beginning:
                raise ValueError(f"services: expected beginnings of URLs, such as 's3://', found {beginning!r:.100}")
            if not isinstance(service, dict) and library_of(service) in (None, "zarr"):
                raise TypeError(f"services: expected options, or a client, for {beginning!r:.100}, found "
                                f"{type(service).__name__}")
            if isinstance(service, dict) and beginning.lower().startswith("http") and service.keys() - _OPTIONS_OF_HTTP:
                raise TypeError(f"services: options for {beginning!r:.100} are headers, timeout and retries")
        self._clients = {}
        self.n_requests: int = N_REQUESTS

    def get(self, url: str, start: int, length: int | None, key: str | None = None) -> bytes:
        """Return `length` bytes of a target from `start` on, fewer where it ends; all with a `length` of None.

        Raises
        ------
        ReferenceTargetError
            It is missing, cannot be read, or is not allowed.
        UnsupportedError
            There is no client for such URLs.
        """
        part = None if start == 0 and length is None else (start, length)
        answer = self._ask(url, key, "get", part, part=part)
        return bytes(answer.data)

    def getsize(self, url: str, key: str | None = None) -> int:
        """Return the size of a target in bytes."""
        return self._ask(url, key, "head").size

    def _ask(self, url, key, method, *args, part=None):
        what = f"the target of {key!r} is {url!r:.300}"
        if part is not None:
            what += f", bytes {part[0]} to {'its end' if part[1] is None else part[0] + part[1]}"
        try:
            client, name = self._client_of(url)
            found = workers.aside(getattr(client, method), name, *args)
        except UnsupportedError as exc:
            raise UnsupportedError(f"key {key!r}: {exc.message}", feature=exc.feature) from exc
        except RefusedError as exc:
            raise ReferenceTargetError(f"{what}: {_refusal(exc)}", key=key, url=url, range=part) from exc
        except Exception as exc:
            raise ReferenceTargetError(f"{what}: cannot read it: {message_of(exc)}", key=key, url=url,
                                       range=part) from exc
        if found is None:
            raise ReferenceTargetError(f"{what}: it is missing", key=key, url=url, range=part)
        return found

    # Clients

    def _client_of(self, url):
        """Return the client for an allowed URL, and the name of the object there."""
        beginning, service = service_of(url, self._services)
        scheme = url.partition("://")[0].lower()
        if not isinstance(service, dict):
            return self._client(beginning, lambda: client_of(service, {})), url[len(beginning):].lstrip("/")
        if scheme not in SCHEMES:
            raise UnsupportedError(f"the target {url!r:.200}: there is no client for the scheme {scheme!r}; services= "
                                   "takes one", feature=f"references to {scheme} URLs")
        if scheme in ("http", "https"):
            options = {name: value for name, value in service.items() if name != "headers"}
            return self._client(f"http {beginning}", lambda: (HttpClient(self._permit, **options), "")), url
        root, name = split_url(url)
        return self._client(root, lambda: client_of(root, service)), name

    def _client(self, root, make):
        # Without a lock: a signal handler may wait here for another thread that reads.
        client = self._clients.get(root)
        return self._clients.setdefault(root, make()[0]) if client is None else client

    def _permit(self, url):
        """Return the `Permit` for the URL of an HTTP server, which may come from a redirect."""
        is_allowed = self._is_allowed(url)
        if is_allowed is False:
            raise RefusedError(f"it leads to {url!r:.200}, which is not allowed", url=url)
        service = service_of(url, self._services)[1]
        headers = service.get("headers", {}) if isinstance(service, dict) else {}
        return Permit(headers, is_allowed is True or not self._is_remote)


def service_of(url: str, services: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the longest beginning of a URL in `services`, and its service; else ``""`` and no options."""
    longest = max([beginning for beginning in services if is_below(url, beginning)], key=len, default="")
    return longest, services.get(longest, {})


def read_remote(url: str, services: Mapping[str, object] | None, limit: int) -> bytes:
    """Return up to `limit` bytes of the document at a URL of the caller."""
    try:
        return RemoteTargets(lambda url: True, False, services).get(url, 0, limit)
    except ReferenceTargetError as exc:
        reason = "it is missing" if exc.__cause__ is None else message_of(exc.__cause__)
        raise StoreError(f"cannot read the reference set {url!r:.300}: {reason}", key=url) from exc


def store_at(url: str, services: Mapping[str, object] | None) -> RemoteStore:
    """Return the store at the caller's URL of a set in Parquet."""
    beginning, service = service_of(url, services or {})
    if not isinstance(service, dict):
        return RemoteStore(service, path=url[len(beginning):], read_only=True)
    if url.lower().startswith("http"):
        service = _options_of_obstore(**service)
    return RemoteStore(url, read_only=True, **service)


def _options_of_obstore(headers=None, timeout=None, retries=None):
    options = {}
    if headers:
        options["default_headers"] = headers
    if timeout is not None:
        options["timeout"] = f"{timeout} s"
    return {**({"client_options": options} if options else {}),
            **({} if retries is None else {"retry_config": {"max_retries": retries}})}


def _refusal(error):
    if error.url is None:
        return error.message       # `allowed` would not help
    root = error.url.partition("?")[0].rpartition("/")[0] + "/"
    return f"{error.message}; allowed={[root]!r} would permit it"
