"""Every exception zcore raises, with its facts as attributes.

The message says what was expected, what was found and where; everything in it is an attribute too, so that callers
branch on fields and never parse text. A class also derives from the built-in that callers of dictionaries, files and
NumPy arrays would expect. Wrong types passed by a programmer stay `TypeError`. What is worth a warning, `warn` tells.
"""
from __future__ import annotations

import sys
import warnings
from _thread import _local  # of threading, without its import time
from _weakref import ref

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any, Literal

_thread = _local()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the line of the program by which zcore was called, not of one in here: how deep that lies may change.

    While the thread is in `noted`, the message is kept instead.
    """
    while (entered := getattr(_thread, "noted", None)) is not None:
        keeper, outer = entered[0](), entered[1]
        if keeper is not None and keeper.is_entered():
            keeper.notes.append(message)
            return
        _thread.noted = outer
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "zcore":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class noted:  # noqa: N801 (used like a function; a generator would cost more than what is read here)
    """A context manager that gives a list, and keeps in it what `warn` is told meanwhile.

    The reader of a document does not know where it lies, and its content may be kept for others that are equal. The
    caller that knows the place tells it with the messages by `warn_of`, as errors are given theirs by `locate`.
    """

    __slots__ = ("__weakref__", "notes", "_frame", "_outer")

    def __enter__(self) -> list[str]:
        self._outer = getattr(_thread, "noted", None)
        self.notes: list[str] = []
        self._frame = sys._getframe(1)
        # The thread refers to this weakly: else, after Ctrl-C on the way out, the frame would keep a file open.
        _thread.noted = ref(self), self._outer
        return self.notes

    def __exit__(self, *_: object) -> None:
        _thread.noted = self._outer
        self._frame = None

    def is_entered(self) -> bool:
        """Whether the block is being executed. Ctrl-C on the way in or out may have left the thread noted here."""
        frame = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None


def warn_of(place: str, notes: Iterable[str]) -> None:
    """Warn of each message, which was kept by `noted`, and name the place that it is about."""
    for message in notes:
        warn(message if place in message else f"{place}: {message}")


class IncompleteCopyWarning(UserWarning):
    """A copy leaves nodes or files of its source out, as no destination can hold them; the message names them."""


class ZcoreError(Exception):
    """Base of all errors of zcore.

    Parameters
    ----------
    message : str
        One sentence, lower case, without a full stop.
    place : str, optional
        Of the array, as its store describes it. The text begins with it, unless the message names it already.
    **fields
        Values of the class's `fields`; a field that is not given is None.

    Attributes
    ----------
    fields : tuple of str
        Names of the facts: those that the class and its bases annotate.
    """

    fields: tuple[str, ...] = ()
    message: str
    place: str | None

    def __init_subclass__(cls, **keywords: object) -> None:
        super().__init_subclass__(**keywords)
        cls.fields = (*cls.fields, *[name for name in cls.__annotations__ if name not in cls.fields])

    def __init__(self, message: str, *, place: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        for name in self.fields:
            setattr(self, name, fields.pop(name, None))
        if fields:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(fields))}")

    def locate(self, place: str) -> None:
        """Note the place of the array where this happened, unless one is known: the innermost caller knows best."""
        if self.place is None:
            self.place = place

    def __str__(self) -> str:
        # A KeyError base would quote the message, an OSError base would rebuild it from errno.
        return self.message if self.place is None or self.place in self.message else f"{self.place}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {name: getattr(self, name) for name in ("place", *self.fields)}
        return _rebuild, (type(self), self.message, fields)


def _rebuild(cls, message, fields):
    return cls(message, **fields)


class NodeNotFoundError(ZcoreError, KeyError, FileNotFoundError, ValueError):
    """There is no array or group at `path`, or not in the format that was asked for."""

    path: str | None
    format: Literal[3, 2, "zmeta"] | None


class NodeExistsError(ZcoreError, FileExistsError, ValueError):
    """There is an array or group at `path` already, and the mode forbids to replace it."""

    path: str | None


class ArrayMismatchError(ZcoreError, TypeError, ValueError):
    """The array at `path` is not of the kind that was asked for; `asked` and `found` are dicts of what differs."""

    path: str | None
    asked: dict[str, Any] | None
    found: dict[str, Any] | None


class OutOfMemoryError(ZcoreError, MemoryError):
    """What was selected does not fit into memory: `nbytes` were asked for."""

    nbytes: int | None


class MetadataError(ZcoreError, ValueError):
    """A metadata document breaks a rule of its format; `member` names the offending part."""

    path: str | None
    document: str | None
    member: str | None


class UnsupportedError(ZcoreError, NotImplementedError):
    """The data are valid, but need a `feature` that zcore, or this build or installation of it, does not have."""

    feature: str | None


class PackageError(UnsupportedError, ImportError):
    """The `feature` needs an optional package, which is not installed or cannot be imported."""


def install_of(extra: str) -> str:
    """Return the command that installs an extra, for all advice: of this distribution, "zcore" is another project's.

    >>> install_of("remote")
    'python -m pip install "zcore-array[remote]"'
    """
    return f'python -m pip install "zcore-array[{extra}]"'


class Needing:
    """Context manager of the import of an optional package, for a call that cannot do without.

    Parameters
    ----------
    needing : str
        What needs the package, and the verb: the beginning of the message.
    module, package : str
        The name by which it is imported, and by which it is installed.
    extra : str
    feature : str

    Raises
    ------
    PackageError
        The package is not installed, or cannot be imported; the message says what helps.
    """

    def __init__(self, needing: str, module: str, extra: str, feature: str, package: str | None = None) -> None:
        self._needing, self._module, self._extra = needing, module, extra
        self._feature, self._package = feature, package or module

    def __enter__(self) -> Needing:
        return self

    def __exit__(self, kind: type[BaseException] | None, exception: BaseException | None,
                 traceback: TracebackType | None) -> None:
        if not isinstance(exception, Exception) or isinstance(exception, MemoryError):
            return
        if type(exception) is ModuleNotFoundError and (exception.name or "").partition(".")[0] == self._module:
            sentence = f"which is not installed: {install_of(self._extra)}"
        else:
            sentence = (f"which is installed but cannot be imported ({type(exception).__name__}: {exception!s:.200}); "
                        f"install it again: python -m pip install --force-reinstall {self._package}")
        raise PackageError(f"{self._needing} {self._package}, {sentence}", feature=self._feature) from exception


class UnknownCodecError(UnsupportedError, ValueError):
    """A codec chain names a `codec` that nothing installed provides."""

    codec: str | None


class SelectionError(ZcoreError, IndexError):
    """An index does not fit the array: out of bounds in `dimension`, too many indices, or of a wrong kind."""

    dimension: int | None


class HugeIndexError(SelectionError, OverflowError):
    """An integer index of 2⁶³ or more, which no array has; NumPy calls it an OverflowError if it has 64 bits."""


FORKED = ("this process was forked by a signal handler in the middle of the call, and the threads and locks that had "
          "part of the work are not in the child: call it again")


class StoreError(ZcoreError, OSError):
    """A store could not carry out an operation on `key`; `errno` is the system's number where it gave one."""

    key: str | None
    errno: int | None


class InvalidKeyError(StoreError, ValueError):
    """A key is not one: empty, absolute, with `..`, an empty part, NUL, or unfit for the file system."""


class KeyConflictError(StoreError):
    """A key cannot be stored beside another: one would have to be a file and a directory at once, or they alias."""


class ReadOnlyError(StoreError, ValueError):
    """A change was asked of a store or a node that was opened for reading."""


class NotADirectoryStoreError(StoreError, NotADirectoryError):
    """The base of a directory store is a file, or lies below one."""


class NoFileError(StoreError, FileNotFoundError):
    """The file of a store, or one that is to be read, does not exist."""


def cannot(action: str, path: str, exc: Exception) -> StoreError:
    """Return the error for a file that cannot be opened or read."""
    kind = NoFileError if isinstance(exc, FileNotFoundError) else StoreError
    return kind(f"cannot {action} {path}: {getattr(exc, 'strerror', None) or exc}", key=path,
                errno=getattr(exc, "errno", None))


class LockError(StoreError):
    """A lock could not be had.

    The file system or the permissions do not allow it; `lock=None` writes without locks. Or the thread holds the lock
    already, in a call that has not ended; then `errno` is EDEADLK.
    """


class WriterError(StoreError):
    """What a `Writer` was given could not be stored; it waits there. `frames` are the numbers of those of `append`."""

    frames: range | None


class ReferenceTargetError(StoreError):
    """The target of a reference is missing, too short, or not allowed."""

    url: str | None
    range: tuple[int, int | None] | None


class ReferenceFormatError(MetadataError):
    """A reference set breaks a rule of its format."""


class AsdfFormatError(MetadataError):
    """An ASDF file breaks a rule of the file layout."""

    offset: int | None
    block: int | str | None


class ChunkError(ZcoreError):
    """A stored object could not be turned into elements, or elements into a stored object.

    `key` names the object, `chunk_coords` the chunk, `inner_coords` the chunk in its shard, `offset` the byte where
    it shows, of the object or of what the codec was given, `codec` the step and `direction` is ``"decode"`` or
    ``"encode"``.
    """

    key: str | None
    chunk_coords: tuple[int, ...] | None
    offset: int | None
    codec: str | None
    direction: Literal["decode", "encode"] | None
    expected: float | str | None
    found: float | str | None
    inner_coords: tuple[int, ...] | None


class ChunkNotFoundError(ChunkError, ValueError):
    """The object of a chunk is absent, and the array was opened with ``missing="raise"``."""


class ChunkMemoryError(ChunkError, MemoryError):
    """There is no memory to decode or encode a chunk; `expected` is what it needs in bytes, where that is known."""


class CodecError(ChunkError):
    """The encoded bytes of a chunk contradict their own header, their codec or the metadata."""


class ChecksumError(ChunkError):
    """A stored checksum differs from that of the bytes it covers."""


class ShardIndexError(CodecError):
    """The index of a shard is damaged or points outside its object."""


class TruncatedError(ChunkError):
    """A stored object ends before the bytes it promises."""


# As zarr-python calls them, for ``except``: `zarr.errors`, and PathNotFoundError of zarr-python 2.
BaseZarrError = ZcoreError
ArrayNotFoundError = GroupNotFoundError = PathNotFoundError = NodeNotFoundError
ContainsArrayError = ContainsGroupError = ContainsArrayAndGroupError = NodeExistsError
MetadataValidationError = NodeTypeValidationError = DataTypeValidationError = MetadataError
ArrayIndexError = BoundsCheckError = NegativeStepError = VindexInvalidSelectionError = SelectionError


class ZarrUserWarning(UserWarning):
    """For filters of warnings that were written for zarr-python; zcore gives none of this kind and the next two."""


class ZarrDeprecationWarning(DeprecationWarning):
    """See `ZarrUserWarning`."""


class UnstableSpecificationWarning(FutureWarning):
    """See `ZarrUserWarning`."""


def __dir__() -> list[str]:
    """Return the names of errors and warnings, for completion at a prompt."""
    return [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Exception)]
