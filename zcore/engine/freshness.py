"""Tells whether a path held one array from one moment to another, so that all elements of a read are from one array.

The rule: the document is the same before the read and after it. If it has changed, the array is read again, at most
`MAX_STALE` times, and then under its lock.

An array is replaced in an order that a reader cannot miss. Its directory gets another one's place in one step; where
that is impossible, the old document is erased, then the old objects; new objects are written, then the new document.

A document is recognised by its identity. If that is so young that another document may get it, the bytes are compared,
too, and the file is held open meanwhile: then no other file gets its inode.

A resize and a change of attributes replace the document, too, and keep the objects. So once the document was seen to
change, some objects become *witnesses*. One that is still the same proves that the array was not replaced.
"""
from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from zcore.engine.stamps import follows
from zcore.engine.views import is_trusted
from zcore.errors import StoreError
from zcore.kernel.io.documents import Descriptor
from zcore.model.chunk_grid import coords_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zcore.engine.array_binding import ArrayBinding, Selected
    from zcore.engine.views import ArrayView
    from zcore.kernel.plan.read import ReadPlan
    from zcore.stores.base import Identity

# A read or write whose document was replaced this many times excludes other writers; otherwise it might never end.
MAX_STALE = 8
# A stream of changes cannot hit each of so many looks at a document and at some objects.
_MAX_LOOKS = 100
# Number of objects to look at for witnesses, spread over the grid.
N_WITNESSES = 8
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class LastLook(NamedTuple):
    """The document that a handle has found last, and trusted identities of objects by their keys.

    The identities are None as long as the document was not seen to change.
    """

    document: ArrayView
    witnesses: Mapping[str, Identity] | None


class Freshness:
    """Tells whether the path of an array held one array between `begins` and `ends`.

    Files that it holds open are closed when it is freed, or when `files` is set to an empty list.

    Parameters
    ----------
    binding : ArrayBinding
    box : Box, Product or Boxes
        The selection that is read.

    Attributes
    ----------
    view : View
        The document that was found last, with which the array is read.

    Raises
    ------
    NodeNotFoundError, StoreError, SelectionError
        Raised here and by all methods, if the array was deleted, replaced by one with other objects, or shrunk.
    """

    files: list[Descriptor] | None = None     # that are held open; None until the first look
    _is_held = False     # the document is held open
    _is_old = False
    _witnesses = None

    def __init__(self, binding: ArrayBinding, box: Selected) -> None:
        self.view: ArrayView = binding.view
        self._binding = binding
        self._box = box
        found = binding.found
        if found is not None and found.document.ticket >= self.view.ticket:
            self.view, self._witnesses = found
            if (self._witnesses == {} and not self.view.trusted) or not box.fits(self.view.metadata.shape):
                self.look()
        elif self.view.identity is None and binding.locks().directory is not None:
            # The document was read from consolidated metadata. It has no identity, so a replacement would go unnoticed.
            self.view = binding.look_again(self.view, box)
            self._note()

    def look(self) -> None:
        """Read the document again, and look for witnesses."""
        self.files = []
        self.view = self._binding.look_again(self.view, self._box)
        self._witnesses = None if self._compares() else dict(self._find_witnesses())

    def _compares(self):
        """Return whether documents of equal bytes are one to the store: an ETag may be computed from the bytes."""
        return self.view.identity is None or self._binding.store.swaps

    def _find_witnesses(self):
        """Iterate over the keys and identities of some objects, whose files are held open."""
        store, prefix, metadata = self._binding.store, self._binding.prefix, self.view.metadata
        n = min(metadata.n_chunks, N_WITNESSES)
        for i in range(n):
            name = metadata.chunk_keys.encode(coords_at(i * metadata.n_chunks // n, metadata.grid_shape))
            is_file = self._hold(name)
            try:
                identity = store.identity(prefix + name)
            except StoreError:
                continue     # the read itself raises the error
            if identity is not None and (not is_file or is_trusted(identity) or self._holds(identity)):
                yield prefix + name, identity

    def _hold(self, name):
        """Hold a file of the array open if it can be opened, the last of `files`; return False without files."""
        # No name refers to the file, as a traceback would keep it open.
        self.files = self.files or []
        directory = self._binding.locks().directory
        if directory is not None:
            with suppress(OSError):
                self.files.append(Descriptor(os.path.join(directory, name), _READING))
        return directory is not None

    def _holds(self, identity):
        """Return whether the file that was opened last has the device and inode of an identity."""
        with suppress(OSError, IndexError):
            found = os.fstat(self.files[-1].fd)
            return (found.st_dev, found.st_ino) == identity[:2]
        return False

    def begins(self, plan: ReadPlan | None = None) -> bool:
        """Return whether the document is that of the view now. If another one may get its identity, it is held open.

        `plan`: the plan of the read, which looks at files faster than Python does.
        """
        binding, view = self._binding, self.view
        is_first = self.files is None
        if is_first and view.trusted:
            return True
        # Witnesses that were just found are of this document only if it is still there. Older ones tell at the end
        # that the array is the same, whatever its document is now.
        if plan is not None and plan.has_directory and view.identity is not None:
            self._is_held = plan.hold_document()
            self._is_old = plan.is_old
            return self._is_held or (is_first and bool(self._witnesses))
        if self._compares() or (is_first and self._witnesses):
            return True
        # Asked before the content is compared: a later write in place might already be old enough afterwards.
        self._is_old = is_trusted(view.identity)
        is_file = self._hold(binding.document_name)
        self._is_held = ((not is_file or self._holds(view.identity))
                         and self._is_there(binding.document, view.identity) and binding.is_current(view))
        return self._is_held

    def begin(self) -> None:
        """Begin without a plan, with witnesses."""
        for _ in range(_MAX_LOOKS):
            self.look()
            if self.begins():
                return
        raise self._binding.replaced_often(_MAX_LOOKS)

    def ends(self, plan: ReadPlan | None = None, saw_current: Callable[[], bool] | None = None) -> bool:
        """Return whether the array was the same since `begins`. If that is unknown, it must be read again.

        ``saw_current()`` tells whether a look was made during the read, late enough; see `PlanReader`.
        """
        binding, view = self._binding, self.view
        if plan is not None and plan.has_directory:
            is_same = plan.is_current
        else:
            is_same = view.identity is not None and (
                saw_current is not None and saw_current() or self._is_there(binding.document, view.identity))
        if is_same and (view.trusted or self._is_held or self._compares()):
            if self._is_old and not view.trusted:
                # Its content was compared when it was old enough, so it is trusted from now on.
                self.view = binding.view_of(view.raw, view.identity)
        else:
            compares = self._compares()
            if not compares and not self._witnesses:
                return False
            # First the document, then the witnesses: what erases an array erases its document first.
            self.view = binding.look_again(view, self._box)
            if not (follows(self.view.raw, view.raw) if compares else
                    any(self._is_there(*one) for one in self._witnesses.items())):
                return False
        if self.view is not view or self.files is not None:
            self._note()
        return True

    def _is_there(self, key, identity):
        try:
            return self._binding.store.identity(key) == identity
        except StoreError:
            return False

    def _note(self):
        """Note the document and the witnesses for the next read."""
        binding, view = self._binding, self.view
        if view.metadata.shape == binding.view.metadata.shape:
            # Other changes, such as attributes, are read anew anyway.
            binding.adopt(view)
        if self._witnesses is not None and self.files is not None:
            self._witnesses = {key: identity for key, identity in self._witnesses.items() if is_trusted(identity)}
        binding.found = LastLook(view, self._witnesses)
