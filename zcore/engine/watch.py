"""Checks that a path held one array from one moment to another, so that all elements of a read are from one array.

Another array is created in an order that a reader cannot miss: the old document is erased, then the old chunks; new
chunks are written, then the new document. So everything read while a document keeps its name is from one array.

A resize and a change of attributes replace the document, too, and keep the chunks. So an object of the array that is
unchanged is a witness: the array was not erased, whatever happened to the document. A document without a witness may
belong to another array, even if its bytes are the same, and the read is done again.

The identity tells whether a name still leads to the same object. If it is too young to be trusted, the file is held
open meanwhile: then no other file gets its inode.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from zcore.engine.views import is_trusted
from zcore.errors import StoreError
from zcore.kernel.io.documents import OpenFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from zcore.engine.binding import ArrayBinding, Selected
    from zcore.engine.views import ArrayView
    from zcore.stores.base import Identity

# Number of objects to look at for witnesses, spread over the grid.
N_WITNESSES = 8
# A document that is replaced while it is opened is opened again. A stream of changes cannot hit every attempt.
_MAX_TRIES = 100


class Known(NamedTuple):
    """Knowledge about the array of a view: its document as it was read last, with the same chunks as in the view.

    And trusted identities of objects by their keys, or None as long as the document was not seen to change.
    """

    view: ArrayView | None
    document: ArrayView | None
    witnesses: Mapping[str, Identity] | None


class Watch:
    """Context manager that checks an array's document before and after a read.

    Parameters
    ----------
    binding : ArrayBinding
    view : View
        View with which the array is read.
    box : Box or Product
        The selection that is read.
    with_witnesses : bool
        Look for witnesses, too.

    Attributes
    ----------
    view : View

    Raises
    ------
    NodeNotFoundError, StoreError, SelectionError
        Raised by the first or the second check, if the array was deleted, replaced by one with other chunks, or shrunk.
    """

    __slots__ = ("view", "_binding", "_box", "_with_witnesses", "_path", "_held", "_document", "_witnesses")

    def __init__(self, binding: ArrayBinding, view: ArrayView, box: Selected, with_witnesses: bool) -> None:
        self.view: ArrayView = view
        self._binding = binding
        self._box = box
        self._with_witnesses = with_witnesses
        self._path = binding.document_path
        self._held = None
        self._document = None
        self._witnesses = ()

    def __enter__(self) -> Self:
        if not self._binding.knows_documents(self.view):
            return self
        try:
            for _ in range(_MAX_TRIES):
                if self._has_document():
                    if not self._with_witnesses:
                        break
                    self._witnesses = _witnesses(self._binding, self.view.metadata, self._path)
                    if self._is_document():
                        break
                    # They may belong to another array, which is being created; or attributes have changed.
                    self._drop_witnesses()
                    if self._binding.store.identity(self._binding.document) is None:
                        break     # the check at the end says so
                self.close()
            else:
                raise self._binding.replaced_often(_MAX_TRIES)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        # Ctrl-C may come before the first line. Then the files are closed when the last reference to this is gone.
        self.close()
        self._drop_witnesses()

    def close(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _drop_witnesses(self):
        for witness in self._witnesses:
            witness.close()
        self._witnesses = ()

    def _has_document(self):
        """Read the document, and hold it open if its identity is not trusted; return whether it was one document."""
        if self._path is not None:
            self._held = OpenFile(self._path)
        self._document = document = self._binding.look_alike(self.view, self._box)
        if document.trusted or self._path is None:
            self.close()
            return True
        return self._held.is_of(document.identity)

    def _is_document(self):
        """Return whether the document is that of the first check."""
        if self._held is None:
            return self._binding.store.identity(self._binding.document) == self._document.identity
        return _has_inode(self._path, self._document.identity)

    def stands(self, plan: object = None) -> bool:
        """Return whether the array is still that of the first check.

        If it is, the binding remembers the document for the next read.
        """
        binding, document = self._binding, self._document
        if document is None:
            # Only the content of the document can be compared.
            binding.look_alike(self.view, self._box)
            return True
        if not self._is_document():
            document = binding.look_alike(self.view, self._box)
            if not any([witness.stands() for witness in self._witnesses]):
                return False
        witnesses = {witness.key: witness.identity for witness in self._witnesses if witness.is_trusted}
        binding.note_known(self.view, document, witnesses if self._with_witnesses else None)
        return True


class _Witness:
    """An object of an array with its key, held open if its identity is not trusted."""

    __slots__ = ("key", "identity", "is_trusted", "_store", "_path", "_held")

    def __init__(self, store, key, path):
        self.key = key
        self.identity = None
        self.is_trusted = False
        self._store = store
        self._path = path
        self._held = None if path is None else OpenFile(path)

    def is_there(self):
        """Look for the object; return whether its identity is trusted or the object is now held open."""
        try:
            self.identity = self._store.identity(self.key)
        except StoreError:
            return False     # the read itself raises the error
        if self.identity is None:
            return False
        self.is_trusted = self._path is None or is_trusted(self.identity)
        return self.is_trusted or self._held.is_of(self.identity)

    def stands(self):
        """Return whether the key still leads to the same object."""
        if not self.is_trusted:
            return _has_inode(self._path, self.identity)
        try:
            return self._store.identity(self.key) == self.identity
        except StoreError:
            return False

    def close(self):
        if self._held is not None:
            self._held.close()


def _witnesses(binding, metadata, document_path):
    """Return existing objects of an array, a list of `_Witness`."""
    found = []
    n = min(metadata.n_chunks, N_WITNESSES)
    for i in range(n):
        coords, number = [], i * metadata.n_chunks // n
        for length in reversed(metadata.grid_shape):
            coords.append(number % length)
            number //= length
        name = metadata.chunk_keys.encode(coords[::-1])
        path = None if document_path is None else os.path.join(os.path.dirname(document_path), name)
        witness = _Witness(binding.store, binding.prefix + name, path)
        if witness.is_there():
            found.append(witness)
        else:
            witness.close()
    return found


def _has_inode(path, identity):
    """Return whether a path leads to this identity's inode; False if that is unknown."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity[:2]
