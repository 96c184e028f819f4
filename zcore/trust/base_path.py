"""Paths as callers give them, and the canonical path of a base directory, on POSIX and on Windows.

Pure functions with the flavour as an argument, so the rules of one system are tested on the other.
"""
import os
import posixpath

POSIX = "posix"
WINDOWS = "windows"
NATIVE = WINDOWS if os.name == "nt" else POSIX
MAX_WINDOWS_PATH = 32_767  # characters; the limit of all calls of Windows

LONG = "\\\\?\\"
LONG_UNC = "\\\\?\\UNC\\"


def file_path(path: object, name: str = "path") -> str:
    """Return a caller's path, a str or path-like, as a str.

    Raises : TypeError for anything else, with `name` in the message.
    """
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise TypeError(f"{name} is {path!r:.60}, expected a str or os.PathLike")
    return text


def absolute_base(path: str, cwd: str, flavour: str = NATIVE) -> str:
    """Return the canonical path of a base directory: absolute, without ``.``, ``..`` or a trailing separator.

    Only a root (``/``, ``C:\\``, ``\\\\server\\share\\``) keeps its final separator. ``..`` is resolved as text.

    Raises : ValueError, if `path` is empty, has NUL or a surrogate that encodes no byte, or does not name a directory
        of a drive or share.
    >>> absolute_base("x/../data/", "/home", POSIX), absolute_base("c:/my data", "C:\\\\", WINDOWS)
    ('/home/data', 'c:\\\\my data')
    """
    if path == "":
        raise ValueError("the base directory of a store is an empty string; '.' is the current directory")
    if "\0" in path:
        raise ValueError(f"the base directory of a store holds a NUL character: {path!r}")
    if flavour == POSIX:
        try:
            path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as exc:
            raise ValueError(f"the base directory of a store holds a lone surrogate: {path!r}") from exc
        base = posixpath.normpath(posixpath.join(cwd, path))
        # `normpath` keeps two leading slashes, which mean one on Linux and macOS.
        return base[1:] if base.startswith("//") else base
    if len(path) > MAX_WINDOWS_PATH:
        raise ValueError(f"the base directory of a store has a path of {len(path)} characters, Windows takes "
                         f"{MAX_WINDOWS_PATH}")
    import ntpath
    base = ntpath.normpath(ntpath.join(cwd, without_long_form(path)))
    drive, rest = ntpath.splitdrive(base)
    is_share = drive.startswith("\\\\") and drive[2:3] not in ".?" and all(drive[2:].partition("\\"))
    if not (is_share or drive[1:] == ":") or rest[:1] not in ("", "\\"):
        raise ValueError(f"{path!r} does not name a directory of a drive or a network share")
    return drive + (rest or "\\")


def without_long_form(path: str) -> str:
    """Return a Windows path without the prefix that lifts the limit of its length."""
    if path.upper().startswith(LONG_UNC):
        return "\\\\" + path[len(LONG_UNC):]
    return path[len(LONG):] if path.startswith(LONG) else path
