"""Options of a handle for reading and writing: the keywords that `zcore.open` and `zcore.create_array` share."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from zcore import config as settings
from zcore.errors import warn
from zcore.kernel.plan.cache import CHUNKS, ChunkCache
from zcore.model.value import check_kind
from zcore.text.arguments import as_bool, integer_of, room_of

if TYPE_CHECKING:
    from typing import Any, Literal

    from zcore.kernel.io.locks import ObjectLocks
    from zcore.stores.base import Store
    from zcore.typing import CacheSize, Lock, Missing

# Limit whatever the caller asks for: each thread takes a stack, and with more threads most would only wait.
MAX_THREADS = 1024
_LOCKS = "True, False, None, 'on', 'off' or 'file'"


class Options:
    """Options of a handle for reading and writing; each is a keyword of `zcore.open`.

    Attributes
    ----------
    lock : {"on", "file"} or None
        How objects are locked while they are replaced; None: not at all. The keyword has other values: True means the
        current `zcore.config.lock`; ``"on"``, ``"off"`` and ``"file"`` set it for one handle; None and False mean
        ``"off"``.
    missing : {"fill", "raise"}
        An absent object reads as the fill value, or is an error. With "raise", objects that hold only the fill value
        are stored as well.
    threads : int or None
        Threads of a read or write; None for `zcore.config.threads`.
    strict : bool
        Refuse chunks that are cut off at the border of the array, and blosc chunks of another item size. The formats
        forbid them, but real files have them.
    write_empty_chunks : bool
        Store objects that hold only the fill value. If the fill value is undefined, all objects are stored.
    read_only : bool
        Refuse every change.
    dimension_separator : {"/", "."} or None
        Separator of the chunk keys of a Zarr v2 array whose document names none. Only `zcore.open` has this keyword.
    cache : int or None
        Bytes of memory for decoded chunks of the handles with these options. 0 caches none. None uses the memory of
        `zcore.config.cache`.

    The keyword `config` is zarr-python's: a mapping with ``write_empty_chunks``, ``read_missing_chunks`` and ``order``.
    """

    SHARED = ("lock", "missing", "threads", "strict", "write_empty_chunks", "read_only", "cache")
    KEYWORDS = (*SHARED, "dimension_separator")
    MEANT = (*SHARED, "config")     # all that a caller says
    __slots__ = (*KEYWORDS, "_chunks")

    def __init__(self, lock: Lock = True, missing: Missing = "fill", threads: int | None = None, strict: bool = True,
                 write_empty_chunks: bool | None = None, read_only: bool = False,
                 dimension_separator: Literal["/", "."] | None = None, cache: CacheSize | None = None,
                 config: Mapping[str, Any] | None = None) -> None:
        if config is not None:
            check_kind(config, "config", (Mapping,), "a mapping")
            for name, value in config.items():
                if name == "write_empty_chunks":
                    write_empty_chunks = value
                elif name == "read_missing_chunks":
                    missing = "fill" if as_bool(value, name) else "raise"
                elif (name, value) != ("order", "C"):
                    warn(f"config={{{name!r}: {value!r:.60}}} of zarr-python changes nothing in zcore")
        if not isinstance(missing, str) or missing not in ("fill", "raise"):
            raise ValueError(f"missing is {missing!r:.60}, expected 'fill' or 'raise'")
        if threads is not None and (integer_of(threads) or 0) < 1:
            raise ValueError(f"threads is {threads!r:.60}, expected an integer of at least 1")
        if dimension_separator is not None and not (
                isinstance(dimension_separator, str) and dimension_separator in ("/", ".")):
            raise ValueError(f"dimension_separator is {dimension_separator!r:.60}, expected '/' or '.'")
        self.lock: Literal["on", "file"] | None = _kind_of(lock)
        self.missing: Missing = missing
        self.threads: int | None = None if threads is None else integer_of(threads)
        self.strict: bool = as_bool(strict, "strict")
        self.write_empty_chunks: bool = (settings.write_empty_chunks if write_empty_chunks is None else
                                         as_bool(write_empty_chunks, "write_empty_chunks"))
        self.read_only: bool = as_bool(read_only, "read_only")
        self.dimension_separator: Literal["/", "."] | None = dimension_separator
        self.cache: int | None = None if cache is None else room_of(cache, "cache")
        self._chunks = ChunkCache(self.cache) if self.cache else None

    @property
    def chunks(self) -> ChunkCache | None:
        """The `ChunkCache` for reads, or None."""
        if self.cache is None:
            return CHUNKS if settings.cache else None
        return self._chunks

    @property
    def chunks_to_come(self) -> ChunkCache | None:
        """The `ChunkCache` for reads, now or after a change of `zcore.config.cache`; None if there will be none."""
        return CHUNKS if self.cache is None else self._chunks

    def n_threads(self) -> int:
        """Return the number of threads of a read or write."""
        return min(self.threads or settings.threads, MAX_THREADS)

    def locks_of(self, store: Store, path: str, document: str) -> ObjectLocks:
        """Return the `ObjectLocks` of a node: the same for all handles of this process with the same kind of locks."""
        return store.locks(path, document, self.lock == "file")

    def as_keywords(self) -> dict[str, Any]:
        """Return the options as a dict of keywords."""
        return {name: getattr(self, name) for name in self.KEYWORDS}

    def changed(self, keywords: Mapping[str, Any]) -> Options:
        """Return these options with the changes in `keywords`."""
        return Options(**{**self.as_keywords(), **keywords}) if keywords else self


def _kind_of(lock: Lock) -> Literal["on", "file"] | None:
    """Return the kind of locks that the keyword `lock` means, None for no locks."""
    if isinstance(lock, str):
        if lock not in settings.LOCKS:
            raise ValueError(f"lock is {lock!r:.60}, expected {_LOCKS}")
    else:
        lock = settings.lock if lock is True or (lock is not None and as_bool(lock, "lock", _LOCKS)) else "off"
    return None if lock == "off" else lock
