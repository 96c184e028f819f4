"""What zcore is told by the environment and the machine, and what it tells about itself.

`threads`, `cache`, `lock`, `fsync` and `write_empty_chunks` are attributes of this module that can be set; a wrong
value is refused when it is set, a wrong environment variable when it is first looked at, never at import. `set` and
`get` take the names that zarr-python has for its settings. A leaf beside `errors`: every module may import it, and it
imports the kernel only when it is called: what that is made of, and whose memory `cache` bounds.

Environment
-----------
ZCORE_NUM_THREADS : threads of a read or write, at least 1; by default OMP_NUM_THREADS, which dask sets in its workers
    and schedulers set for their jobs, else the CPUs this process may use.
ZCORE_CACHE : memory for decoded chunks, such as ``64 MB``, that all arrays share which are opened without a `cache` of
    their own; 0, the default, for none.
ZCORE_LOCK : how handles lock whose `lock` is True, the default: ``on``, by locks of the metadata document; ``file``, by
    lock files, where the file system has no locks of ranges, or they do not hold among hosts; ``off``, not at all.
ZCORE_FSYNC : ``1``: what is changed in directories and files is on the disk when a call returns, unless it is given
    another `fsync`; by default ``0``.
"""
from __future__ import annotations

import os
import sys
from types import ModuleType

from zcore.errors import warn
from zcore.text.arguments import integer_of, room_of

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, Self, overload

__version__ = "0.1.0"

_SETTINGS = ("threads", "cache", "lock", "fsync", "write_empty_chunks")
# Names of zarr-python's settings: those that are a setting here, and those that have one value here.
_OF_ZARR = {"array.write_empty_chunks": "write_empty_chunks", "threading.max_workers": "threads"}
_NAMES = {**_OF_ZARR, **{name: name for name in ("threads", "write_empty_chunks")}}
_FIXED = {"array.order": "C", "array.rectilinear_chunks": True, "array.read_missing_chunks": True,
          "default_zarr_format": 3}
LOCKS: tuple[str, ...] = ("on", "off", "file")
_NO_DEFAULT = object()


class _Setting:
    """A setting as a property of this module.

    Parameters
    ----------
    checked : callable
        ``checked(value, name)`` returns the value as it is kept, and raises if it is wrong.
    found : callable
        Returns the value that holds as long as none is set.
    """

    def __init__(self, checked: Callable[[Any, str], Any], found: Callable[[], Any]) -> None:
        self._checked, self._found = checked, found

    def __set_name__(self, owner: type, name: str) -> None:
        self._name, self._place = name, f"_{name}"

    def __get__(self, module: Any, owner: type) -> Any:
        if module is None:
            return self
        value = getattr(module, self._place)
        if value is None:
            self.__set__(module, self._found())
            value = getattr(module, self._place)
        return value

    def __set__(self, module: Any, value: object) -> None:
        setattr(module, self._place, self._checked(value, self._name))


def _count_of(n, name):
    if (number := integer_of(n)) is None:
        raise TypeError(f"{name} must be an int, not {type(n).__name__}")
    if number < 1:
        raise ValueError(f"{name} must be at least 1, not {number}")
    return number


def _resized(nbytes, name):
    """Return the size of the cache of all arrays, which it has from now on."""
    nbytes = room_of(nbytes, name)
    if nbytes or _cache:
        # With a lower limit, the cache drops chunks at once.
        from zcore.kernel.plan.cache import CHUNKS
        CHUNKS.resize(nbytes)
    return nbytes


def _bool_of(value, name):
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return value


def _lock_of(kind, name):
    if not isinstance(kind, str):
        raise TypeError(f"{name} must be a str, not {type(kind).__name__}")
    if kind not in LOCKS:
        raise ValueError(f"{name} must be 'on', 'off' or 'file', not {kind!r:.60}")
    return kind


def _threads_of_environment():
    text = os.environ.get("ZCORE_NUM_THREADS", "").strip()
    if not text:
        # OpenMP 5, "OMP_NUM_THREADS": a list has a number for each level of nested regions. The variable is not
        # zcore's, so a text that is no such list is left to others.
        text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        cpus = available_cpus()
        return min(int(text), cpus) if _is_count(text) else cpus
    if not _is_count(text):
        raise ValueError(f"environment variable ZCORE_NUM_THREADS must be an integer of at least 1, not {text!r}")
    return int(text)


def _lock_of_environment():
    return _lock_of(os.environ.get("ZCORE_LOCK", "").strip() or "on", "environment variable ZCORE_LOCK")


def _fsync_of_environment():
    text = os.environ.get("ZCORE_FSYNC", "").strip() or "0"
    if text not in ("0", "1"):
        raise ValueError(f"environment variable ZCORE_FSYNC must be 0 or 1, not {text!r:.60}")
    return text == "1"


def _is_count(text):
    return text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= 1


def _cache_of_environment():
    text = os.environ.get("ZCORE_CACHE", "").strip()
    return room_of(text, "environment variable ZCORE_CACHE") if text else 0


class _Config(ModuleType):
    """The type of this module: its settings are properties, so that they are checked."""

    def __getitem__(self, name):
        return get(name)

    def __contains__(self, name):
        return get(name, None) is not None     # no setting is None

    def __setattr__(self, name, value):
        if not name.startswith("_") and name not in vars(self) and not hasattr(type(self), name):
            raise AttributeError(f"zcore.config has no setting {name!r}; it has {', '.join(_SETTINGS)}")
        super().__setattr__(name, value)

    threads = _Setting(_count_of, _threads_of_environment)     # of a read or write, an int of at least 1
    # Bytes of memory for decoded chunks that all arrays share; set as a number or a size such as "64 MB".
    cache = _Setting(_resized, _cache_of_environment)
    # How handles lock that are opened from now on with `lock` True, the default: one of `LOCKS`.
    lock = _Setting(_lock_of, _lock_of_environment)
    # Whether changes are on the disk when a call returns, for stores and files that are opened from now on.
    fsync = _Setting(_bool_of, _fsync_of_environment)
    # Whether handles that are opened from now on store chunks that hold only the fill value.
    write_empty_chunks = _Setting(_bool_of, lambda: False)


class set:  # noqa: A001, N801 (as zarr-python calls it)
    """Change settings by the names that zarr-python has for them; in a ``with`` block, for as long as it lasts.

    ``array.write_empty_chunks`` is `write_empty_chunks`, and ``threading.max_workers`` is `threads`. All others change
    nothing, as a warning says, unless the value is the one that holds here, such as ``{"array.order": "C"}``.

    Parameters
    ----------
    settings : mapping, optional
        Also nested, as in ``{"array": {"write_empty_chunks": True}}``.
    **keywords
        More of them, with two underscores for a point.

    Examples
    --------
    >>> import zcore
    >>> with zcore.config.set({"array.write_empty_chunks": True}):
    ...     zcore.config.write_empty_chunks, zcore.config.get("array.write_empty_chunks")
    (True, True)
    """

    def __init__(self, settings: Mapping[str, Any] | None = None, **keywords: Any) -> None:
        if settings is not None and not hasattr(settings, "keys"):
            raise TypeError(f"settings must be a mapping of names to values, not {type(settings).__name__}")
        module = sys.modules[__name__]
        settings = dict(_flat({**(settings or {}), **keywords}))
        ignored = [name for name, value in settings.items()
                   if name not in _NAMES and (name not in _FIXED or value != _FIXED[name])]
        if ignored:
            warn(f"zcore does not have these settings, so they change nothing: {', '.join(ignored)}")
        known = {_NAMES[name]: value for name, value in settings.items() if name in _NAMES}
        self._before = {f"_{name}": getattr(module, f"_{name}") for name in known}
        try:
            for name, value in known.items():
                setattr(module, f"_{name}" if value is None else name, value)
        except BaseException:
            self.__exit__()     # all are set, or none
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            setattr(sys.modules[__name__], name, value)


def _flat(settings, above=""):
    """Yield the full name and the value of each setting, also of nested mappings, in zarr-python's spelling."""
    for name, value in settings.items():
        name = above + _spelled(name).replace("__", ".")
        if isinstance(value, dict):
            yield from _flat(value, name + ".")
        else:
            yield name, value


def _spelled(name):
    if not isinstance(name, str):
        raise TypeError(f"the name of a setting must be a str, not {type(name).__name__}")
    return name.replace("-", "_")


def get(name: str, default: Any = _NO_DEFAULT) -> Any:
    """Return the value of a setting of zarr-python. For the first part of names, such as ``"array"``, return a dict.

    Raises : KeyError, for a name that means nothing here, without a `default`.
    """
    name = _spelled(name)
    if name in _NAMES:
        return getattr(sys.modules[__name__], _NAMES[name])
    if name in _FIXED:
        return _FIXED[name]
    below = {full.removeprefix(name + "."): get(full) for full in (*_FIXED, *_OF_ZARR) if full.startswith(name + ".")}
    if not below and default is _NO_DEFAULT:
        raise KeyError(f"{name!r} means nothing in zcore; get({name!r}, default) returns a default")
    return below or default


def reset() -> None:
    """Undo what `set` has changed."""
    set({"array.write_empty_chunks": False, "threading.max_workers": None})


def pprint(**keywords: Any) -> None:
    """Print the settings that `get` knows; the keywords are those of Python's `pprint.pprint`."""
    from pprint import pprint

    pprint({name: get(name) for name in (*_FIXED, *_OF_ZARR)}, **keywords)


_threads = None                # what was set, else what was found at the first look
_cache = None
_lock = None
_fsync = None
_write_empty_chunks = None
sys.modules[__name__].__class__ = _Config


# For type checkers, which do not see the type of this module.
threads: int
cache: int | str
lock: Literal["on", "off", "file"]
fsync: bool
write_empty_chunks: bool


def __dir__() -> list[str]:
    """Return the public names, for completion at a prompt: settings of a module's type are not found otherwise."""
    return ["available_cpus", "cache", "fsync", "get", "get_include", "lock", "pprint", "reset", "set", "show_config",
            "threads", "write_empty_chunks"]


def get_include() -> str:
    """Return the folder of `zcore.h`, for the `include_dirs` of a module or program that is built with it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


if TYPE_CHECKING:
    @overload
    def show_config(mode: Literal["stdout"] = "stdout") -> None: ...

    @overload
    def show_config(mode: Literal["dicts"]) -> dict[str, dict[str, Any]]: ...


def show_config(mode: Literal["stdout", "dicts"] = "stdout") -> dict[str, dict[str, Any]] | None:
    """Print versions, libraries, instruction sets and settings, or return them.

    Parameters
    ----------
    mode : {'stdout', 'dicts'}
        ``stdout`` prints and returns None; ``dicts`` returns a dict of dicts, as `numpy.show_config` does.

    Examples
    --------
    >>> import zcore.config
    >>> zcore.config.show_config(mode="dicts")["zcore"]["version"] == zcore.config.__version__
    True
    """
    if mode not in ("stdout", "dicts"):
        raise ValueError(f"mode must be 'stdout' or 'dicts', not {mode!r}")
    config = _collect()
    if mode == "dicts":
        return config
    for section, values in config.items():
        print(f"{section}:")
        for name, value in values.items():
            print(f"  {name}: {value}")


def _collect():
    import platform

    import numpy

    from zcore.kernel.build_info import build_info, cpu_features
    from zcore.kernel.codec.checksums import implementation
    from zcore.kernel.codec.compress import library_versions
    build = build_info()
    return {
        "zcore": {"version": __version__, "include": get_include()},
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation(),
                   "platform": platform.platform()},
        "numpy": {"version": numpy.__version__},
        "build": build,
        "libraries": {"from": build["libraries"], **library_versions()},
        "simd": {"crc32c": implementation(), **cpu_features()},
        "settings": {name: getattr(sys.modules[__name__], name) for name in _SETTINGS},
    }


def available_cpus() -> int:
    """Return how many CPUs this process may use: those of its affinity, at most its groups' quota, at least 1."""
    n = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_quota()
    return max(1, n if quota is None else min(n, quota))


def cgroup_quota(own: str = "/proc/self/cgroup", root: str = "/sys/fs/cgroup") -> int | None:
    """Return the CPU quota of this process's control groups in CPUs, rounded up, or None without one.

    Parameters
    ----------
    own : str
        The file with the groups of the process, one `hierarchy:controllers:path` a line (cgroups(7)).
    root : str
        Where the hierarchies are mounted: v2 itself, v1 one folder for each set of controllers.

    Notes
    -----
    A group is bound by the quota of each of its ancestors too, so all are read and the smallest holds. In a container
    the path may name a folder of the host that is not mounted; its ancestors are what is left.
    """
    lowest = None
    for line in _read(own).splitlines():
        hierarchy_id, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if (hierarchy_id, controllers) == ("0", ""):
            hierarchy, read_quota = root, _quota_v2
        elif "cpu" in controllers.split(","):
            hierarchy, read_quota = os.path.join(root, controllers), _quota_v1
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            quota = read_quota(os.path.join(hierarchy, *parts[:depth]))
            if quota is not None and (lowest is None or quota < lowest):
                lowest = quota
    return lowest


def _quota_v2(group):
    return _cpus(*(_read(os.path.join(group, "cpu.max")).split() + ["", ""])[:2])


def _quota_v1(group):
    return _cpus(*[_read(os.path.join(group, name)).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")])


def _cpus(quota, period):
    """Return quota / period rounded up, or None where there is no quota; both are microseconds as text."""
    # Without a quota, the text is "max" in v2 and "-1" in v1.
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0:
        return None
    return -(-int(quota) // int(period))


def _read(path):
    """Return the text of a small file of the system, empty where it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
