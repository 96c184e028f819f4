"""Copies into stores that cannot rename; `zcore.hierarchy.exchange` has those that can.

Documents come last, as a node exists from its document on.

If there is no node at the destination, objects get their keys at once, and documents are kept back until all is there.
In a service, a placeholder for the first document takes the place at once: locks exclude only this process there.
A node that is to be replaced stays until the new one is whole, which is made at a place of its own::

    __zc_copy/<hash of the path>/<random>/
        begun       the path; it is removed first when the copy is given up
        node/...    the objects, each behind this prefix
        journal     the path, and all documents, of the old node and the new one; there when the copy is whole
        free        the old node was deleted

Then the old node is deleted, objects are moved to their keys, documents follow, and the journal is erased. There is no
document below `__zc_copy/`, so no node. After an error, `recover_one` removes a copy for which nothing was deleted yet,
and one in whose place there is something newer. Any other copy is finished. After a kill, the next caller calls it.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
from typing import TYPE_CHECKING

from zcore.engine.options import Options
from zcore.engine.requests import N_UNSEEN
from zcore.engine.stamps import first, put_stamped, stamped
from zcore.engine.views import metadata_of
from zcore.errors import LockError, MetadataError, NodeExistsError, StoreError, UnsupportedError
from zcore.formats import FORMAT_OF, format_of
from zcore.formats.json_documents import MAX_NBYTES
from zcore.hierarchy import consolidated, deletion, lookup
from zcore.hierarchy.creation_lock import Place, hold_tree
from zcore.hierarchy.unfinished import unfinished
from zcore.kernel.io.documents import Tickets
from zcore.stores.base import AtMost, Listing, Store, run_together, together
from zcore.stores.keys import prefix_of
from zcore.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from zcore.stores.base import ByteRange
    from zcore.typing import Buffer

STAGING = "__zc_copy/"
_BEGUN, _JOURNAL, _FREE, _NODE = "begun", "journal", "free", "node/"
_NOTHING = b'{"zarr_format": 3, "shape": []}'     # of which a placeholder is made before the node's document is known


def is_document(key: str) -> bool:
    """Return whether a key is that of a node's document."""
    return key.rpartition("/")[2] in FORMAT_OF


class DocumentsLast(Store):
    """A part of another store that keeps back the documents of nodes until `finish`.

    Parameters
    ----------
    inner : Store
        All other objects are written to it at once.
    prefix : str
    root : str, optional
        Where locks exclude only this process (`Store.swaps`), the name of the first node's document. A placeholder for
        it (`zcore.hierarchy.unfinished`) takes the place at once, so that no other process creates a node there.
    """

    read_only = False

    def __init__(self, inner: Store, prefix: str, root: str | None = None) -> None:
        self._root = root if inner.swaps else None     # the name of the placeholder
        self._identity = None               # of the placeholder
        self._tried = []                    # may be there by this copy, even if a put has failed: its answer was lost
        self._inner = inner
        self._prefix = prefix
        self._documents = MemoryStore()
        self._written, self._filled = set(), set()     # keys of objects, and all prefixes above them
        self._was_empty = self._is_shared = False     # before; other processes write there as well
        self._is_whole = False              # all documents are there
        self._numbers = Tickets()
        self.key_flavour: str = inner.key_flavour
        self.n_requests: int = inner.n_requests

    def begin(self) -> None:
        """Take the place. Raises : NodeExistsError, if there is a node by now."""
        if self._root is not None:
            try:
                self._put_root(unfinished(_NOTHING))
            except LockError:
                self._root = None       # the service has no conditions
        found = self._inner.list_dir(self._prefix)
        self._was_empty = all([name == self._prefix + (self._root or "") for names in found for name in names])

    def __getstate__(self) -> dict[str, Any]:
        self._is_shared = True
        return {**self.__dict__, "_numbers": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _numbers=Tickets())

    @property
    def _is_known(self):
        """Whether no request is needed to know what is there."""
        return self._was_empty and not self._is_shared

    def _put_root(self, value):
        """Put the placeholder, or replace it by a document if it is still that of this copy."""
        self._tried.append(stamped(bytes(value), self._tried[-1] if self._tried else None))
        before = self._identity
        self._identity = put_stamped(self._inner, self._prefix + self._root, self._tried[-1], before)
        if self._identity is None:
            raise self._exists() if before is None else self._replaced()

    def _exists(self):
        return NodeExistsError(f"a node was created at {self.describe('')} meanwhile", path=self._prefix[:-1])

    def _replaced(self):
        self._tried.clear()         # all that was written may be the other node's by now
        return StoreError(f"another process has replaced the node at {self.describe('')} while it was copied",
                          key=self._prefix + self._root)

    def __repr__(self) -> str:
        return repr(self._inner)

    def describe(self, path: str) -> str:
        return self._inner.describe((self._prefix + path).rstrip("/"))

    def get(self, key: str, byte_range: ByteRange | None = None) -> bytes | None:
        found = self._documents.get(key, byte_range) if is_document(key) else None
        if found is not None or key == self._root or (self._is_known and key not in self._written):
            return found
        return self._inner.get(self._prefix + key, byte_range)

    def existing(self, prefix: str, names: Sequence[str]) -> list[str]:
        asked = [name for name in names if prefix + name != self._root and (
            not self._is_known or prefix + name in self._written)]
        found = {*self._documents.existing(prefix, names), *self._inner.existing(self._prefix + prefix, asked)}
        return [name for name in names if name in found]

    def list_dir(self, prefix: str) -> Listing:
        ours = self._documents.list_dir(prefix)
        if self._is_known and prefix not in self._filled:
            return ours
        n, theirs = len(self._prefix), self._inner.list_dir(self._prefix + prefix)
        return Listing(*[sorted({*own, *[name[n:] for name in inner if name[n:] != self._root]})
                         for own, inner in zip(ours, theirs, strict=True)])

    def set(self, key: str, value: Buffer) -> None:
        if is_document(key):
            self._documents.set(key, value)
            if key == self._root:
                # With the layout of the chunks, so that a deletion finds them.
                self._put_root(unfinished(bytes(value)))
            if self._inner.is_transaction:
                self._inner.set(self._prefix + key, value)
        else:
            if self._root is not None and (self._numbers.next() - 1) % N_UNSEEN == 0 and (
                    self._inner.identity(self._prefix + self._root) != self._identity):
                raise self._replaced()
            self._written.add(key)
            above = prefix_of(key.rpartition("/")[0])
            while above not in self._filled:
                self._filled.add(above)
                above = prefix_of(above[:-1].rpartition("/")[0])
            self._inner.set(self._prefix + key, value)

    def set_if_not_exists(self, key: str, value: Buffer) -> bool:
        if self.get(key) is not None:
            return False
        self.set(key, value)
        return True

    def erase(self, key: str) -> None:
        self._documents.erase(key)
        self._inner.erase(self._prefix + key)

    def documents(self) -> dict[str, bytes]:
        """Return the documents by their keys."""
        return {key: value for key in self._documents.list() if (value := self._documents.get(key)) is not None}

    def finish(self) -> None:
        """Write the documents.

        Raises : NodeExistsError, if a node was created here meanwhile.
        """
        path = self._prefix[:-1]
        with consolidated.dropped(self._inner, path):
            for level in _upwards(self.documents()):
                run_together(self._finish_one, level, self._inner.n_requests)
            self._is_whole = True

    def _finish_one(self, item):
        key, value = item
        if key == self._root:
            self._put_root(value)
            self._root = None
        elif "/" in key or self._inner.is_transaction:
            self._inner.set(self._prefix + key, first(self._inner, value))
        elif not self._inner.set_if_not_exists(self._prefix + key, first(self._inner, value)):
            raise self._exists()

    def discard(self) -> None:
        """Erase all that was written, unless another process has taken the place: then it may be the other node's.

        A node that is whole stays: others may have written to it.
        """
        if self._is_whole:
            return
        first, written, last = [], self._written, []
        if self._root is not None:
            found = self._inner.get(self._prefix + self._root)
            if found not in self._tried:
                return
            can_be_opened = found.rstrip(b" \t\n") == self._documents.get(self._root)
            (first if can_be_opened else last).append(self._root)
        if self._was_empty and self._is_shared:
            n = len(self._prefix)
            names = [key[n:] for key in self._inner.list_prefix(self._prefix)]
            if self._root is not None or not any(map(is_document, names)):     # else there may be the other node's
                written = [name for name in names if not is_document(name)]
        documents = [key for key in self._documents.list() if key != self._root]
        for keys in (first, documents, written, last):
            self._inner.erase_values([self._prefix + key for key in keys])


class Staged(DocumentsLast):
    """A node that is made at a place of its own, to replace the one at `path`; see `DocumentsLast`."""

    def __init__(self, inner: Store, path: str) -> None:
        self._staging = f"{_staging_of(path)}{os.urandom(4).hex()}/"
        self._path = path
        super().__init__(inner, self._staging + _NODE)

    def begin(self) -> None:
        self._inner.set(self._staging + _BEGUN, json.dumps({"path": self._path}).encode())
        self._was_empty = True      # a place with this name was never there

    def describe(self, path: str) -> str:
        return self._inner.describe(prefix_of(self._path) + path)

    def finish(self) -> None:
        """Put the node in the place of the one that is there.

        Raises : StoreError, also if the copy was removed meanwhile. After an error `discard` does the rest.
        """
        with _held(self._inner, self._path):
            if not self._inner.exists(self._staging + _BEGUN):
                raise StoreError(f"the copy to {self.describe('')} was removed meanwhile, by another copy to it or by "
                                 "a repair", key=self._path)
            old = _documents_at(self._inner, self._path)
            with_copies = [key for key, raw in old.items()
                           if format_of(FORMAT_OF[key.rpartition("/")[2]]).may_have_copy(raw)]
            for key in with_copies:
                # The deletion would, one by one. What it has left must be known as the old node after an error.
                consolidated.drop_copies(self._inner, (prefix_of(self._path) + key).rpartition("/")[0])
            if with_copies:
                old = _documents_at(self._inner, self._path)
            new = {key: first(self._inner, raw) for key, raw in self.documents().items()}
            said = {"path": self._path, "old": _texts(old), "documents": _texts(new)}
            self._inner.set(self._staging + _JOURNAL, json.dumps(said).encode())
            _move_to_place(self._inner, self._staging, said)

    def discard(self) -> None:
        """Remove the copy; but if the old node is being deleted, it is finished, or neither of them would be there."""
        recover_one(self._inner, self._staging)


def _staging_of(path):
    return f"{STAGING}{hashlib.sha256(path.encode()).hexdigest()[:16]}/"


def _texts(documents):
    return {key: value.decode(errors="replace") for key, value in documents.items()}


def _documents_at(store, path):
    """Return the documents at and below a path, by their keys relative to it."""
    prefix = prefix_of(path)
    keys = [key for key in store.list_prefix(prefix) if is_document(key) and not key.startswith(STAGING)]
    found = together(store, lambda key: store.get(key, AtMost(MAX_NBYTES)) or b"", keys)
    return {key[len(prefix):]: document for key, document in zip(keys, found, strict=True)}


def _upwards(documents):
    """Return lists of pairs of key and document, the deepest first; those of one list are equally deep."""
    levels = {}
    for key, document in sorted(documents.items(), key=lambda item: -item[0].count("/")):
        levels.setdefault(key.count("/"), []).append((key, document))
    return levels.values()


def staged(store: Store) -> list[tuple[str, str | None]]:
    """Return the left-overs of copies that were cut off: pairs of a prefix and of the path of the destination.

    A copy that is going on looks like one of them.
    """
    found = []
    for of_path in store.list_dir(STAGING)[1]:
        for staging in store.list_dir(of_path)[1]:
            raw = store.get(staging + _JOURNAL) or store.get(staging + _BEGUN)
            if raw or any(store.list_prefix(staging)):     # some services list empty directories
                found.append((staging, _read(raw, staging)["path"] if raw else None))
    return found


def recover(store: Store, path: str) -> None:
    """Finish or remove copies to `path` that were cut off."""
    if store.lists:
        for staging in store.list_dir(_staging_of(path))[1]:
            recover_one(store, staging)


def recover_one(store: Store, staging: str) -> None:
    """Finish or remove an interrupted copy, by its prefix as `staged` returned it."""
    begun = store.get(staging + _JOURNAL) or store.get(staging + _BEGUN)
    with contextlib.nullcontext() if begun is None else _held(store, _read(begun, staging)["path"]):
        raw = store.get(staging + _JOURNAL)
        if raw is None or _is_void(store, staging, said := _read(raw, staging)):
            _remove(store, staging)
        else:
            _move_to_place(store, staging, said)


@contextlib.contextmanager
def _held(store, path):
    """Hold a place: other threads create nothing there, and neither finish a copy to it nor remove one."""
    with hold_tree(store, path, Options()), Place(store, path, "", Options()):
        yield


def _remove(store, staging):
    for name in (_BEGUN, _JOURNAL):     # first, so that neither its maker nor a finder goes on
        store.erase(staging + name)
    store.erase_prefix(staging)


def _read(raw, staging):
    try:
        said = json.loads(raw)
        if staging.startswith(_staging_of(said["path"])) and all([
                type(text) is str and is_document(key)
                for name in ("old", "documents") for key, text in said.setdefault(name, {}).items()]):
            return said
    except (ValueError, LookupError, TypeError, AttributeError):
        pass
    raise StoreError(f"{staging}: not what zcore writes there", key=staging)


def _make_way(store, path, documents):
    """Delete the node at `path`, the left-overs of a deletion that was cut off, and those in the place of new nodes.

    `documents`: of old and new nodes, pairs of a key and of text. The caller holds the place and the tree.
    """
    deletion.delete_held(store, path, Options())
    left = [key for key in store.list_prefix(prefix_of(path)) if not key.startswith(STAGING)]
    for key in filter(is_document, left):
        deletion.delete_held(store, key.rpartition("/")[0], Options())
    for key, text in documents if left else ():
        above, _, name = (prefix_of(path) + key).rpartition("/")
        format = format_of(FORMAT_OF[name])
        with contextlib.suppress(MetadataError, UnsupportedError):     # it was damaged
            deletion.clear_left_over(store, prefix_of(above), format, metadata_of(format, name, text.encode(), above))


def _is_void(store, staging, said):
    """Return whether a copy is not needed: the old node is unchanged, or there is something newer than both."""
    is_free = store.exists(staging + _FREE)
    known = said["documents" if is_free else "old"]
    found = _texts(_documents_at(store, said["path"])) if lookup.documents_at(store, said["path"]) else {}
    # Of a node its document is deleted first.
    return (found == known and not is_free) or any([known.get(key) != text for key, text in found.items()])


def _move_to_place(store, staging, said):
    """Put a whole copy in the place of the old node, which is held. Every step may have been done before."""
    path = said["path"]
    prefix, source = prefix_of(path), staging + _NODE
    with consolidated.dropped(store, path):
        if not store.exists(staging + _FREE):
            _make_way(store, path, (*said["old"].items(), *said["documents"].items()))
            store.set(staging + _FREE, b"")
        if not lookup.documents_at(store, path):     # else it has its documents, or another node came
            store.duplicate((key, prefix + key[len(source):]) for key in store.list_prefix(source))
            for level in _upwards(said["documents"]):
                run_together(lambda item: store.set(prefix + item[0], item[1].encode()), level, store.n_requests)
    store.erase(staging + _JOURNAL)
    _remove(store, staging)


@contextlib.contextmanager
def made_in(store: Store, path: str, replace: bool, overwrite: bool, root: str | None) -> Iterator[Store]:
    """Return a context manager that gives a store, in which a node is made that will be at `path`.

    If it ends without an error, the node is there. After an error all is unchanged; or the node is there, if the error
    came while the old one was deleted.

    Parameters
    ----------
    store : Store
    path : str
    replace : bool
        There is a node.
    overwrite : bool
        What lost nodes have left there may be erased. Else it is a StoreError. In a service, so may a node that was
        created meanwhile.
    root : str or None
        The name of the document of the node at `path`, if it gets one.
    """
    if replace and store.is_transaction:
        raise UnsupportedError(f"{store.describe(path)} holds a node, and this store has no room for a copy beside it: "
                               "delete the node first, as nobody sees that before the commit",
                               feature="nodes replaced by a copy in a session of Icechunk")
    with contextlib.ExitStack() as held:
        if not replace:
            # Chunks get their keys at once. Another thread must not create anything there meanwhile, nor move or delete
            # a group above: it would wait for this place, while groups are created above this one.
            held.enter_context(_held(store, path))
        made = Staged(store, path) if replace else DocumentsLast(store, prefix_of(path), root)
        try:
            try:
                made.begin()
            except NodeExistsError:
                if not overwrite:
                    raise
                held.close()
                made = Staged(store, path)
                made.begin()
            yield made
            made.finish()
        except BaseException:
            with contextlib.suppress(StoreError):     # the first error is the one to tell
                made.discard()
            raise
