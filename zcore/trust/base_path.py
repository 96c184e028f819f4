"""The canonical path of a base directory."""
import posixpath


def absolute_base(path: str, cwd: str) -> str:
    """Return the canonical path of a base directory: absolute, without ``.``, ``..`` or a trailing ``/``.

    ``..`` is resolved as text.

    Raises : ValueError, if `path` is empty, or has NUL or a surrogate that encodes no byte.
    >>> absolute_base("x/../data/", "/home")
    '/home/data'
    """
    if path == "":
        raise ValueError("the base directory of a store is an empty string; '.' is the current directory")
    if "\0" in path:
        raise ValueError(f"the base directory of a store holds a NUL character: {path!r}")
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as exc:
        raise ValueError(f"the base directory of a store holds a lone surrogate: {path!r}") from exc
    base = posixpath.normpath(posixpath.join(cwd, path))
    # `normpath` keeps two leading slashes, which mean one on Linux and macOS.
    return base[1:] if base.startswith("//") else base
