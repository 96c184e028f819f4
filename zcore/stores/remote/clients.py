"""The client for a URL, or for an object of a library."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import UnsupportedError
from zcore.stores.openers import library_of
from zcore.stores.remote.client import Client
from zcore.trust.urls import SCHEMES, is_remote, split_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


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
