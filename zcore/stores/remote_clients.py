"""What speaks to a service that keeps objects: the interface of a client, and which client a caller means.

A client knows names and bytes, nothing of keys or arrays. There is one for each library that does the talking; who
writes another one defines `get`, and of the rest what its service can do.
"""
from __future__ import annotations

import re
from collections import namedtuple

from zcore.errors import UnsupportedError

# What was read: the bytes, where they begin in the object, its size, and its tag, a value that changes with the
# content; None where the service has none.
Answer = namedtuple("Answer", ("data", "start", "size", "tag"))
Standing = namedtuple("Standing", ("size", "tag"))

ABSENT = object()  # the condition of `put` that there is no object yet

SCHEMES = frozenset(("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "http", "https"))
# Those whose first part is a bucket, and the rest a name that is taken as it is.
_OF_BUCKETS = frozenset(("s3", "s3a", "gs", "az"))

_controls = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_scheme_of = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match


class ConditionError(Exception):
    """The object is not what a `put` demands, and was not replaced."""


class Client:
    """What speaks to a service.

    A method that fails raises whatever its library raises, with a message; who calls it adds the name and the range.

    Attributes
    ----------
    url : str
        What names are appended to, for messages.
    lists, writes : bool
        Whether the service can list, and whether objects can be changed.
    swaps : bool
        Whether `put` takes a tag as its condition, and `ABSENT`.
    """

    url = ""
    lists = True
    writes = False
    swaps = False

    def get(self, name, byte_range):
        """Return the `Answer` of an object, or of the part that a byte range means, or None when there is none.

        `byte_range` is one of `Store.get`, checked, or None. What is returned is all of the part that lies in the
        object.
        """
        raise NotImplementedError

    def standing(self, name):
        """Return the `Standing` of an object, or None when there is none."""
        answer = self.get(name, None)
        return None if answer is None else Standing(answer.size, answer.tag)

    def put(self, name, data, condition=None):
        """Replace an object and return its tag, or None where the service does not tell.

        `condition` is the tag that the object has to have, or `ABSENT`.

        Raises : ConditionError, if it is not so.
        """
        raise NotImplementedError

    def delete(self, names):
        """Remove objects; those that are not there are no error."""
        raise NotImplementedError

    def list_dir(self, prefix):
        """Return the names and the prefixes right below a prefix, which end with ``/``, unsorted."""
        raise NotImplementedError

    def list_all(self, prefix):
        """Return an iterator over lists of (name, size) of all objects below a prefix."""
        raise NotImplementedError


def is_remote(url: str) -> bool:
    """Return whether a text is the URL of a service that zcore speaks to.

    >>> is_remote("s3://bucket/a.zarr"), is_remote("file:///data"), is_remote("data/x")
    (True, False, False)
    """
    found = _scheme_of(url)
    return found is not None and found[1].lower() in SCHEMES


def has_controls(url: str) -> bool:
    """Return whether there are control characters in a URL, with which each reader of URLs does something else."""
    return _controls(url) is not None


def split_url(url: str) -> tuple[str, str]:
    """Return the part of a URL that a client is made of, and the name of what it means there.

    >>> split_url("s3://bucket/a/b.zarr/"), split_url("https://host:80/a%20b")
    (('s3://bucket', 'a/b.zarr'), ('https://host:80/a%20b', ''))
    """
    scheme, _, rest = url.partition("://")
    if scheme.lower() not in _OF_BUCKETS:
        return url, ""
    bucket, _, name = rest.partition("/")
    return f"{scheme.lower()}://{bucket}", name.strip("/")


def is_client(place) -> bool:
    """Return whether an object is something that `client_of` makes a client of."""
    return (isinstance(place, Client) or _is_of("obstore", place) or _is_of("fsspec", place) or
            _has(place, "get", "get_range"))


def client_of(source, options) -> tuple[Client, str]:
    """Return the client that a caller means, and the name below which his objects lie.

    Parameters
    ----------
    source : str, Client or object
        A URL, a store of obstore, a filesystem or mapper of fsspec, or an object with `get` and `get_range`.
    options : dict
        Those of obstore, for a URL.

    Raises
    ------
    TypeError
        It is none of these, or has options already.
    UnsupportedError
        The package that speaks to such a service is not installed.
    """
    if isinstance(source, str):
        if not is_remote(source):
            raise UnsupportedError(f"{source!r:.200} is no URL of a service; there are {', '.join(sorted(SCHEMES))}",
                                   feature="other remote stores")
        from zcore.stores.remote_obstore import ObstoreClient

        root, name = split_url(source)
        return ObstoreClient.of_url(root, options), name
    if options:
        raise TypeError(f"{', '.join(options)}: options are for a URL; a {type(source).__name__} has its own")
    if isinstance(source, Client):
        return source, ""
    if _is_of("obstore", source):
        from zcore.stores.remote_obstore import ObstoreClient

        return ObstoreClient(source), ""
    if _is_of("fsspec", source):
        from zcore.stores.remote_fsspec import FsspecClient, parts_of

        filesystem, name = parts_of(source)
        return FsspecClient(filesystem), name
    if _has(source, "get", "get_range"):
        from zcore.stores.remote_object import ObjectClient

        return ObjectClient(source), ""
    raise TypeError(f"expected a URL, a store of obstore, a filesystem of fsspec, or an object with get and get_range, "
                    f"found {type(source).__name__}")


def _is_of(package, place):
    """Whether the type of an object, or one that it derives from, is the package's: which is imported then."""
    names = {"obstore": ("ObjectStoreMethods",), "fsspec": ("AbstractFileSystem", "FSMap")}[package]
    return any([kind.__name__ in names and kind.__module__.partition(".")[0] == package
                for kind in type(place).__mro__])


def _has(place, *names):
    return all([callable(getattr(place, name, None)) for name in names])
