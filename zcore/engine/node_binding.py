"""An open node: its metadata, bound to the store that holds its document.

`NodeBinding` is the common base of arrays and groups. An `Exclusive` holds the document while it is changed.
"""
from __future__ import annotations

import errno
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from zcore.engine.options import Options
from zcore.engine.stamps import put_stamped, stamped
from zcore.engine.views import UNSEEN, is_reshaped, renewed, stored_attributes, view_of
from zcore.errors import LockError, NodeNotFoundError, ReadOnlyError, StoreError, ZcoreError, warn_of
from zcore.formats import format_of
from zcore.formats.json_documents import MAX_NBYTES
from zcore.kernel.io.documents import Tickets
from zcore.kernel.io.locks import Held, has_name
from zcore.model.metadata import ArrayMetadata, GroupMetadata
from zcore.stores.keys import prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self, TypeVar

    from zcore.engine.views import View
    from zcore.formats.base import Format
    from zcore.kernel.io.locks import ObjectLocks
    from zcore.stores.base import Identity, Store

    _Result = TypeVar("_Result")


class NodeBinding:
    """One node in one store.

    Parameters
    ----------
    store : Store
    path : str
        Path of the node in the store, ``""`` for the root.
    format : Format
    options : Options
    view : View, optional
        View of the metadata document, if the caller has just read it.

    Attributes
    ----------
    view : View
        The document as it was read last.
    document : str
        Key of the metadata document.
    document_name : str
        Last part of this key. In some formats it says whether the node is an array.
    kind : type
        Class of the metadata.

    Raises
    ------
    NodeNotFoundError
        There is no such document, or it describes a node of another kind.
    MetadataError, UnsupportedError
        The document is damaged, or needs what zcore does not have.
    """

    __slots__ = ("store", "path", "prefix", "format", "options", "document_name", "document", "view", "_tickets")

    kind: type[ArrayMetadata | GroupMetadata]
    what: str

    def __init__(self, store: Store, path: str, format: Format, options: Options, view: View | None = None) -> None:
        self.store: Store = store
        self.path: str = path
        self.prefix: str = prefix_of(path)
        self.format: Format = format
        self.options: Options = options
        self.document_name: str = format.document_of(self.kind)
        self.document: str = self.prefix + self.document_name
        self.view: View = view  # type: ignore[assignment]  # None only until it is read below
        self._tickets = Tickets()
        if view is None:
            self.reload()

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_elsewhere, (type(self), self.store, self.path, self.format.name, self.options.as_keywords(),
                                 self.view.raw, self.view.identity)

    @property
    def metadata(self) -> ArrayMetadata | GroupMetadata:
        """The metadata in the document when it was read last."""
        return self.view.metadata

    def look(self) -> View:
        """Read the document again and return its `View`; the binding does not change."""
        ticket = self._tickets.next()
        # One byte more than a document may have. So the format refuses a larger file, and no more of it is read.
        try:
            found = self.store.get_first(self.prefix, (self.document_name,), MAX_NBYTES + 1)
        except ZcoreError as error:
            error.locate(self.describe())
            raise
        if found is None:
            raise self.not_found(f"{self.document} does not exist")
        return self.view_of(*found[1:], ticket)

    def view_of(self, raw: bytes, identity: Identity | None, ticket: int | None = None) -> View:
        """Return the view of the document `raw`, the content of the object `identity`, which was just read."""
        ticket = self._tickets.next() if ticket is None else ticket
        known = self.view
        if known is not None and known.raw == raw:
            return renewed(known, raw, identity, ticket)
        try:
            view = view_of(self.format, self.document_name, raw, identity, self.path, self.options, ticket,
                           attributes=partial(stored_attributes, self.format, self.store, self.path))
        except ZcoreError as error:
            error.locate(self.describe())
            raise
        if view.notes and (self.view is None or self.view.notes != view.notes):
            warn_of(self.describe(), view.notes)
        if type(view.metadata) is not self.kind:
            raise self.not_found(f"{self.document} describes another kind of node")
        return view

    def not_found(self, reason: str) -> NodeNotFoundError:
        """Return the error for a node that does not exist."""
        return NodeNotFoundError(f"no {self.what} at {self.describe()}: {reason}", path=self.path,
                                 format=self.format.name)

    def adopt(self, view: View) -> None:
        """Make a view the binding's own, unless that has a later one from another thread."""
        self._tickets.adopt(self, view)

    def reload(self) -> View:
        """Read the document again, adopt its view, and return it."""
        view = self.look()
        self.adopt(view)
        return view

    def see(self) -> None:
        """Read the document if only another process has read it so far; an error if the node does not exist."""
        if self.view.ticket == UNSEEN:
            self.reload()

    def describe(self) -> str:
        """Return where the node is, for messages."""
        return self.store.describe(self.path)

    def check_writable(self) -> None:
        """Raise ReadOnlyError if this handle or its store is for reading."""
        if self.store.read_only and (not self.options.read_only or self.store.uri is None):
            # Another mode would not help: the caller has made or unpickled this store for reading, or this kind of
            # store cannot be written.
            place, store = self.describe(), repr(self.store)
            raise ReadOnlyError(f"{place} lies in a store for reading{'' if store in place else f', {store}'}",
                                key=self.document)
        if self.options.read_only:
            raise ReadOnlyError(f"{self.describe()} is open for reading; zcore.open with mode='r+' opens it for "
                                "writing", key=self.document)

    def locks(self) -> ObjectLocks:
        """Return the `ObjectLocks` of the node."""
        return self.options.locks_of(self.store, self.path, self.document_name)

    def exclusive(self) -> Exclusive:
        """Return a context manager that excludes all other writers of this node; it reads the metadata anew."""
        return Exclusive(self)


def _from_elsewhere(kind, store, path, format_name, keywords, raw, identity):
    format, options = format_of(format_name), Options(**keywords)
    view = view_of(format, format.document_of(kind.kind), raw, identity, path, options, UNSEEN,
                   attributes=partial(stored_attributes, format, store, path))
    return kind(store, path, format, options, view)


class GroupBinding(NodeBinding):
    """One group in one store; see `NodeBinding`."""

    __slots__ = ()

    kind: type[GroupMetadata] = GroupMetadata
    what = "group"

    if TYPE_CHECKING:
        @property
        def metadata(self) -> GroupMetadata: ...


class LostRaceError(LockError):
    """Another process has replaced the document since it was read. Nothing was changed."""


def until_won(change: Callable[[], _Result]) -> _Result:
    """Return ``change()``, which is called again as long as another process replaces the document meanwhile.

    Raises : LockError, if others were faster `MAX_SWAPS` times.
    """
    from zcore.engine.requests import MAX_SWAPS, pause

    for i in range(MAX_SWAPS - 1):
        with suppress(LostRaceError):
            return change()
        pause(i)
    return change()


class Exclusive(Held):
    """Context manager that holds the whole range of a binding's document; see `NodeBinding.exclusive`.

    Attributes
    ----------
    view : View
        The document that is held. Another thread with the same handle may change the binding's view, but not this one.
    """

    def __init__(self, binding: NodeBinding) -> None:
        self._binding = binding
        self._hold = None
        self.view: View = None  # type: ignore[assignment]  # until it is taken

    @property
    def metadata(self) -> ArrayMetadata | GroupMetadata:
        """The metadata in the document that is held."""
        return self.view.metadata

    @property
    def dir_fd(self) -> int:
        """Descriptor of the directory of the document that is held, or -1. A move of a group above takes it along."""
        return -1 if self._hold is None else self._hold.dir_fd

    def is_gone(self) -> bool:
        """Return whether the file of the document that is held has been removed from its directory."""
        try:
            return self.dir_fd >= 0 and not os.stat(self._binding.document_name, dir_fd=self.dir_fd)
        except FileNotFoundError:
            return True

    def acquire(self) -> Self:
        binding = self._binding
        try:
            if binding.options.lock:
                # Noted before it is held, as Ctrl-C may come between the two.
                self._hold = binding.locks().whole()
                self._hold.__enter__()
            self.view = self._unchanged() or binding.reload()
        except FileNotFoundError as exc:
            raise binding.not_found("its document is gone") from exc
        return self

    def _unchanged(self):
        """Return the view of the document that is held, if it is the binding's last one, without opening it again."""
        binding, known = self._binding, self._binding.view
        if self._hold is None or known is None:
            return None
        identity = self._hold.identity_if(known.raw)
        if identity is None:
            return None
        # Nobody can replace the document now, so its view may be numbered after the read.
        view = binding.view_of(known.raw, identity)
        binding.adopt(view)
        return view

    def release(self, exception: BaseException | None) -> None:
        if isinstance(exception, ZcoreError):
            exception.locate(self._binding.describe())
        if self._hold is not None:
            self._hold.__exit__(None, None, None)
            self._hold = None

    def lost(self) -> LostRaceError:
        """Return the error for a document that another process has replaced."""
        document = self._binding.document
        return LostRaceError(f"{document}: another process has replaced the document meanwhile, and it stays as that "
                             "has left it", key=document)

    def check(self) -> None:
        """Raise LostRaceError if another process has replaced the document. Locks keep out this process alone."""
        if not self._binding.is_current(self.view):
            raise self.lost()

    def check_place(self, state: str = "") -> None:
        """Raise StoreError if the path of the held directory leads elsewhere: a group above was moved or replaced.

        `state`: text that is added to the message.
        """
        binding = self._binding
        if self.dir_fd >= 0 and not has_name(self.dir_fd, binding.locks().directory):
            raise StoreError(f"a group above {binding.describe()} was moved or replaced in the middle of a call; the "
                             f"node went with it{state}", key=binding.document, errno=errno.ESTALE)

    def set_beside(self, name: str, raw: bytes) -> None:
        """Set the value of another name in the directory of the document that is held."""
        store = self._binding.store
        if self.dir_fd < 0:
            store.set(self._binding.prefix + name, raw)
        else:
            self._hold.replace_beside(os.fsencode(name), raw, token=int.from_bytes(os.urandom(8)), fsync=store.fsync)

    def replace_metadata(self, metadata: ArrayMetadata | GroupMetadata) -> None:
        """Write a new document and continue to hold the array, now with the new document."""
        binding = self._binding
        raw = binding.format.render(metadata)
        if self._hold is not None and self._hold.dir_fd >= 0:
            try:
                identity = self._hold.replace(raw, token=int.from_bytes(os.urandom(8)), fsync=binding.store.fsync)
            except ZcoreError:
                # It may have its name, although it is not on the disk.
                if (identity := self._hold.identity_if(raw)) is not None:
                    self.view = binding.view_of(raw, identity)
                    binding.adopt(self.view)
                raise
        elif self._hold is not None and binding.store.swaps:
            raw = stamped(raw, self.view.raw, cuts=isinstance(metadata, ArrayMetadata) and any(
                map(int.__lt__, metadata.shape, self.metadata.shape)))
            identity = put_stamped(binding.store, binding.document, raw, self.view.identity)
            if identity is None:
                raise self.lost()
        else:
            binding.store.set(binding.document, raw)
            identity = binding.store.identity(binding.document)
        if is_reshaped(metadata, self.metadata):
            self.view = renewed(self.view, raw, identity, binding._tickets.next(), metadata)
        else:
            self.view = binding.view_of(raw, identity)
        binding.adopt(self.view)
