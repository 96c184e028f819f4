"""Keys: which strings are keys, and the translation to paths of the file system.

A key is one or more non-empty parts joined by ``/``; a prefix is ``""`` or a key with a ``/`` behind it. The rules
are the same for all stores, so that any store can be copied into any other. The Windows flavour is stricter, because
that system does not allow every file name. All functions are pure and take the flavour as an argument, so the rules of
one system are tested on the other.

Zarr v3 core, "Abstract store interface"; file system store v1.0, "Key translation". Stricter than the latter:
keys that would leave the base directory or share a file with another key are refused.
"""
import re

from zcore.errors import InvalidKeyError
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.trust.base_path import LONG, LONG_UNC, NATIVE, POSIX, WINDOWS

# Names of temporary files begin so. They are never keys.
TEMPORARY: str = TEMP_PREFIX

MAX_PARTS = 1 << 16  # of a key; far more than a path of any system has
# Most keys match this and need no other check: ASCII parts that begin with a letter, a digit, "_" or "-", and documents
# of Zarr v2. With repetitions that are not possessive the matcher would take memory for each part.
_is_ordinary = re.compile(rf"(?:[\w-][\w.-]*+/){{0,{MAX_PARTS - 1}}}+"
                          r"(?:[\w-][\w.-]*|\.z(?:array|attrs|group|metadata))", re.ASCII).fullmatch

_WINDOWS_MAX_PATH = 259  # characters; longer absolute paths need the \\?\ form


def check_key(key: str, flavour: str = POSIX) -> str:
    """Return `key` if it is valid.

    Raises : InvalidKeyError with the reason; TypeError when `key` is not a string.
    Notes : Zarr v3 core, "Abstract store interface": the final character of a key is never ``/``.
    >>> check_key("foo/c/1/23")
    'foo/c/1/23'
    """
    if not isinstance(key, str):
        raise TypeError(f"a key is a str, not {type(key).__name__}")
    if flavour == POSIX and _is_ordinary(key):
        return key
    reason = _fault(key, flavour)
    if reason:
        raise InvalidKeyError(f"{key!r} is not a key: {reason}", key=key)
    return key


def is_key(name: str) -> bool:
    """Return whether the name of an object is a key. Services have other names, such as markers of directories."""
    try:
        check_key(name)
    except InvalidKeyError:
        return False
    return True


def check_prefix(prefix: str, flavour: str = POSIX) -> str:
    """Return `prefix` if it is valid: ``""``, or a key with a ``/`` behind it.

    Raises : InvalidKeyError with the reason; TypeError when `prefix` is not a string.
    Notes : the core text does not define a prefix without the final ``/``; ``foo`` must not match ``foobar``.
    >>> check_prefix("foo/c/")
    'foo/c/'
    """
    if not isinstance(prefix, str):
        raise TypeError(f"a prefix is a str, not {type(prefix).__name__}")
    if prefix == "" or (flavour == POSIX and prefix[-1] == "/" and _is_ordinary(prefix, 0, len(prefix) - 1)):
        return prefix
    reason = _fault(prefix[:-1], flavour) if prefix[-1] == "/" else "it does not end with '/'"
    if reason:
        raise InvalidKeyError(f"{prefix!r} is not a prefix: {reason}", key=prefix)
    return prefix


def check_path(path: str, flavour: str = POSIX) -> str:
    """Return the path of a node, ``""`` or a key; a ``/`` at its ends or behind another one means nothing.

    Raises : InvalidKeyError with the reason, and the path as it was given.
    Notes : as in h5py and zarr-python; the core text gives a path no other spelling.
    >>> check_path("/foo//bar/"), check_path("/")
    ('foo/bar', '')
    """
    if not path or flavour == POSIX and _is_ordinary(path):
        return path
    inner = re.sub("//+", "/", path).strip("/")
    reason = _fault(inner, flavour) if inner else None
    if reason:
        raise InvalidKeyError(f"{path!r} is not a path in a store: {reason}", key=path)
    return inner


def prefix_of(path: str) -> str:
    """Return the prefix of all keys of the node at `path`, which is ``""`` for the root.

    >>> prefix_of("foo/bar"), prefix_of("")
    ('foo/bar/', '')
    """
    return path + "/" if path else ""


def above(path: str) -> list[str]:
    """Return the paths above a path, the deepest first, down to the root.

    >>> above("a/b/c"), above("a"), above("")
    (['a/b', 'a', ''], [''], [])
    """
    return [path[:i] for i in range(len(path) - 1, -1, -1) if path[i] == "/" or i == 0]


def between(prefix: str, key: str) -> list[str]:
    """Return the paths of the directories between a prefix and a key below it, the topmost first.

    >>> between("a/", "a/b/c/d"), between("a/", "a/b/"), between("", "a")
    (['a/b', 'a/b/c'], ['a/b'], [])
    """
    return [key[:i] for i in range(len(prefix), len(key)) if key[i] == "/"]


def _fault(key, flavour):
    """Return why `key` is not a key, or None."""
    if key == "":
        return "it is empty"
    if key.count("/") >= MAX_PARTS:
        return f"it has {key.count('/') + 1} parts, at most {MAX_PARTS} are allowed"
    if "\0" in key:
        return "it holds a NUL character"
    if not key.isascii():
        try:
            key.encode()
        except UnicodeEncodeError as exc:
            return f"character {exc.start} is a lone surrogate, which UTF-8 cannot encode"
    for part in key.split("/"):
        if part == "":
            return "it begins or ends with '/', or has an empty part"
        if part in (".", ".."):
            return f"the part {part!r} stands for a directory"
        if part.startswith(TEMPORARY):
            return f"names that begin with {TEMPORARY!r} are those of temporary files"
        if flavour == WINDOWS:
            reason = _windows_fault(part)
            if reason:
                return reason
    return None


def _windows_fault(part):
    """Return why Windows does not allow the file name `part`, or None.

    Notes : Windows, "Naming Files, Paths, and Namespaces".
    """
    found = re.search(r'[\x00-\x1f\\:*?"<>|]', part)
    if found:
        return f"Windows does not allow {found[0]!r} in a name"
    if part[-1] in ". ":
        return f"Windows drops the final {part[-1]!r} of {part!r}"
    if re.match(r"(CON|PRN|AUX|NUL|(COM|LPT)[1-9\xb9\xb2\xb3]) *(\.|$)", part, re.IGNORECASE):
        return f"{part!r} is the name of a device on Windows"
    return None


def is_temporary(name: str) -> bool:
    """Return whether this is the name (without directory) of a temporary file.

    >>> is_temporary(".__zc_tmp.0f3a"), is_temporary("zarr.json")
    (True, False)
    """
    return name.startswith(TEMPORARY)


def key_to_path(base: str, key: str, flavour: str = NATIVE) -> str:
    """Return the path of the file that holds `key`; `base` comes from `absolute_base`.

    Parts are not percent-encoded, case-folded or normalised: one key, one name.

    Raises : InvalidKeyError. The path of a valid key lies below the base, whatever the key is.
    Notes : file system store v1.0, "Key translation".
    >>> key_to_path("/data", "foo/bar", POSIX), key_to_path("C:\\\\data", "foo/bar", WINDOWS)
    ('/data/foo/bar', 'C:\\\\data\\\\foo\\\\bar')
    """
    check_key(key, flavour)
    if flavour == POSIX:
        return f"{base}/{key}" if base != "/" else f"/{key}"
    path = (base if base[-1] == "\\" else base + "\\") + key.replace("/", "\\")
    if len(path) <= _WINDOWS_MAX_PATH:
        return path
    return LONG_UNC + path[2:] if path.startswith("\\\\") else LONG + path
