"""The interface of a client, which speaks to a service for a `RemoteStore`; and which client a caller means.

A client knows names and bytes, but no keys and no arrays. There is one client for each library that speaks to services.
A new client defines `get`, and those of the other methods that its service supports.
"""
from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from zcore.errors import StoreError, UnsupportedError
from zcore.stores.openers import library_of
from zcore.trust.urls import SCHEMES, is_remote, split_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from zcore.stores.base import ByteRange, Identity
    from zcore.typing import Buffer

MAX_WHOLE_NBYTES = 2**31 - 1  # of an object that is read to its end, even if a server says that it is longer

CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*$").match     # of an answer of HTTP

_WORD = 2**60 - 1
ABSENT = object()  # the condition of `put` that there is no object yet


class Head(NamedTuple):
    """The size of an object and its tag: a value that changes with the content, or None where the service has none.

    And the time of its last change, or None where that is not told.
    """

    size: int
    tag: object
    modified: object = None


class Answer(NamedTuple):
    """The bytes that were read, and what `Head` has."""

    data: bytes | memoryview
    size: int
    tag: object
    modified: object = None


class ConditionError(Exception):
    """The object does not meet the condition of a `put`, and was not replaced."""


def answer_of(data: bytes | memoryview, start: int, stop: int, size: int) -> Answer:
    """Return the `Answer` with the bytes from `start` to `stop` of an object.

    Raises : StoreError, unless `data` has that length.
    """
    if len(data) != stop - start:
        raise StoreError(f"{len(data)} bytes came, for bytes {start} to {stop} of {size}")
    return Answer(data, size, None)


def hashed(what: tuple[object, ...], size: int) -> Identity:
    """Return an identity made of a tag and of all that tells it from others. Its numbers are no times."""
    digest = int.from_bytes(blake2b(repr(what).encode(), digest_size=24).digest())
    return 0, digest & _WORD, size, digest >> 64 & _WORD, digest >> 128 & _WORD


class ElsewhereError(StoreError):
    """A server redirects to a URL at which nothing is: the object is elsewhere, not absent."""


def check_absence(asked: str, url: str) -> None:
    """Raise an ElsewhereError if nothing is at `url`, to which a server has redirected the request for `asked`.

    A redirect to the same place by https is the server's address, and says nothing of an object.
    """
    if url not in (asked, asked.replace("http:", "https:", 1)):
        raise ElsewhereError(f"the server redirects {asked!r:.300} to {url!r:.300}, and nothing is there")


class Client:
    """A connection to a service.

    A method that fails raises any exception of its library. The caller adds the name and the range to the message.

    Attributes
    ----------
    url : str
        Precedes names in messages.
    lists, writes : bool
        Whether the service can list, and whether objects can be changed.
    swaps : bool
        Whether `put` takes conditions: a tag, or `ABSENT`.
    copies : bool
        Whether the service itself can copy an object.
    dates : bool
        `Head.modified` is the time by the service's own clock at which an object was put. A server of files may give
        a file that comes later an earlier time.
    root : str
        Begins absolute names: ``/`` or nothing.
    """

    url: str = ""
    root: str = ""
    lists: bool = True
    writes: bool = False
    swaps: bool = False
    copies: bool = False
    dates: bool = False

    def get(self, name: str, byte_range: ByteRange | None) -> Answer | None:
        """Return the `Answer` for an object, or for a part of it; None when there is no such object.

        `byte_range` is one of `Store.get`, already checked, or None. The answer has all bytes of the range that lie in
        the object.
        """
        raise NotImplementedError

    def head(self, name: str) -> Head | None:
        """Return the `Head` of an object, or None when there is no such object."""
        answer = self.get(name, None)
        return None if answer is None else Head(answer.size, answer.tag)

    def put(self, name: str, data: Buffer, condition: Any = None) -> object:
        """Replace an object and return its tag, or None where the service does not tell it.

        `condition` is the tag that the object must have, or `ABSENT`.

        Raises : ConditionError, if the condition is not met.
        """
        raise NotImplementedError

    def copy(self, name: str, new: str) -> None:
        """Give an object a second name, of which an older object is replaced; a missing object is no error."""
        raise NotImplementedError

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects; a missing object is no error."""
        raise NotImplementedError

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """Return the names and the prefixes right below a prefix, which end with ``/``, unsorted."""
        raise NotImplementedError

    def list_all(self, prefix: str) -> Iterator[list[tuple[str, int | None]]]:
        """Return an iterator over lists of (name, size) of all objects below a prefix."""
        raise NotImplementedError


def client_of(source: Any, options: Mapping[str, Any]) -> tuple[Client, str]:
    """Return the client for a source, and the name that precedes the names of its objects.

    Parameters
    ----------
    source : str, Client or object
        A URL, a store of obstore, a filesystem or mapper of fsspec, or an object with `get` and `get_range`.
    options : dict
        Those of obstore, for a URL.

    Raises
    ------
    TypeError
        The source is none of these, or not a URL although there are options.
    UnsupportedError
        The package that speaks to such a service is not installed.
    """
    if isinstance(source, str):
        if not is_remote(source):
            raise UnsupportedError(f"{source!r:.200} is no URL of a service; there are {', '.join(sorted(SCHEMES))}",
                                   feature="other remote stores")
        from zcore.stores.remote.obstore import ObstoreClient

        root, name = split_url(source)
        return ObstoreClient.of_url(root, options), name
    if options:
        raise TypeError(f"{', '.join(options)}: options are for a URL; a {type(source).__name__} has its own")
    library = library_of(source)
    if library == "zcore":
        return source, ""
    if library == "obstore":
        from zcore.stores.remote.obstore import ObstoreClient

        return ObstoreClient(source), ""
    if library == "fsspec":
        from zcore.stores.remote.fsspec import FsspecClient, parts_of

        filesystem, name = parts_of(source)
        return FsspecClient(filesystem), name
    if library == "object":
        from zcore.stores.remote.object import ObjectClient

        return ObjectClient(source), ""
    raise TypeError(f"expected a URL, a store of obstore, a filesystem of fsspec, or an object with get and get_range, "
                    f"found {type(source).__name__}")
