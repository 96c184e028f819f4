"""Which client a caller means, by a URL or by an object that has one."""
from __future__ import annotations

from zcore.errors import UnsupportedError
from zcore.stores.remote.client import Client
from zcore.stores.remote.urls import SCHEMES, is_remote, split_url


def is_client(place) -> bool:
    """Return whether an object is something that `client_of` makes a client of."""
    return (isinstance(place, Client) or _is_of("obstore", place) or _is_of("fsspec", place) or
            _has(place, "get", "get_range"))


def is_store_of_zarr(place) -> bool:
    """Return whether an object is a store of zarr-python, which `zcore.stores.zarr_python` asks."""
    return _is_of("zarr", place)


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
        from zcore.stores.remote.obstore import ObstoreClient

        root, name = split_url(source)
        return ObstoreClient.of_url(root, options), name
    if options:
        raise TypeError(f"{', '.join(options)}: options are for a URL; a {type(source).__name__} has its own")
    if isinstance(source, Client):
        return source, ""
    if _is_of("obstore", source):
        from zcore.stores.remote.obstore import ObstoreClient

        return ObstoreClient(source), ""
    if _is_of("fsspec", source):
        from zcore.stores.remote.fsspec import FsspecClient, parts_of

        filesystem, name = parts_of(source)
        return FsspecClient(filesystem), name
    if _has(source, "get", "get_range"):
        from zcore.stores.remote.object import ObjectClient

        return ObjectClient(source), ""
    raise TypeError(f"expected a URL, a store of obstore, a filesystem of fsspec, or an object with get and get_range, "
                    f"found {type(source).__name__}")


def _is_of(package, place):
    """Whether the type of an object, or one that it derives from, is the package's: which is imported then."""
    names = {"obstore": ("ObjectStoreMethods",), "fsspec": ("AbstractFileSystem", "FSMap"), "zarr": ("Store",)}[package]
    return any([kind.__name__ in names and kind.__module__.partition(".")[0] == package
                for kind in type(place).__mro__])


def _has(place, *names):
    return all([callable(getattr(place, name, None)) for name in names])
