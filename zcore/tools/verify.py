"""A store looked through: every document against the rules of its format, every object decoded.

First the hierarchy is walked: documents are read, the copies of consolidated metadata compared with them, and what no
node accounts for is noted. Then the objects of each array are listed and read.
"""
import os
import re
from array import array
from time import time

import numpy as np

from zcore import consolidated, nodes
from zcore.binding import GroupBinding
from zcore.engine import Binding
from zcore.errors import (
    AsdfFormatError,
    ChunkError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    TruncatedError,
    UnsupportedError,
    ZcoreError,
    noted,
)
from zcore.formats import MAX_NBYTES, NODE_DOCUMENTS
from zcore.handles import Handle
from zcore.lifecycle import read_attributes
from zcore.model.metadata import ArrayMetadata
from zcore.options import Options
from zcore.stores import tree
from zcore.stores.base import Store
from zcore.stores.keys import prefix_of
from zcore.tools.building import is_alive
from zcore.tools.decoded import Changed, read_objects
from zcore.tools.report import Report
from zcore.views import view_of

REPAIRED = ("left-over", "foreign", "stale copy", "damaged", "truncated")
_BY_DEFAULT = ("left-over",)
# Of a file that is younger the writer may be alive.
_YOUNG = 60.0
# Temporary files of others: zarr-python, tensorstore, and programs that are built on the crate object_store.
_TEMPORARY = re.compile(r"(.+)(?:\.(?:[0-9a-f]{32}|[0-9a-z_]{8})\.partial|\.__lock|#[0-9]+)", re.ASCII)
_NODE_DOCUMENTS = frozenset(document for documents in NODE_DOCUMENTS.values() for document in documents)
_MAX_TRIES = 5


def verify(store, *, path="", repair=False, threads=None, progress=None):
    """Read all that a store holds, and report what is wrong with it.

    Documents are checked against the rules of their formats, consolidated metadata against the documents, and every
    object is read and decoded, in parallel. Nothing is changed unless `repair` says so.

    Parameters
    ----------
    store : str, os.PathLike, Store, Array or Group
        A directory, a zip file, a reference set, a URL, a store, or a node of one.
    path : str, optional
        Of the node with which to begin; by default the root.
    repair : bool, str or sequence of str
        True removes left-overs, as ``"left-over"`` does; other kinds are removed only if they are named:
        ``"foreign"``, ``"damaged"`` and ``"truncated"`` objects (their elements become the fill value), and of a
        ``"stale copy"`` the copy. Temporary files that were written to in the last minute stay, as their writers may
        be alive.
    threads : int, optional
        By default `zcore.config.threads`.
    progress : callable, optional
        ``progress(done, total)`` is called now and then, in bytes of decoded elements.

    Returns
    -------
    Report

    Raises
    ------
    NodeNotFoundError
        There is no node at all.
    ReadOnlyError
        Something is to be removed from a store that is read-only.
    ValueError
        `repair` names a kind that cannot be repaired.
    """
    kinds = _kinds_of(repair)
    if isinstance(store, Handle):
        path = "/".join(part for part in (store.path, nodes.path_of(path)) if part)
        store = store.store
    is_file = not isinstance(store, Store) and isinstance(store, (str, os.PathLike)) and os.path.isfile(store)
    store = nodes.store_of(store, not kinds or is_file, False)
    path = nodes.path_of(path)
    if kinds and store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: nothing in it can be removed")
    with noted():    # documents that are worth a warning are no problem
        found = _Verification(store, Options(threads=threads, read_only=not kinds, cache=0), progress)
        found.walk(path)
        found.read()
        found.remove(kinds)
    return found.report


def _kinds_of(repair):
    if repair is True or repair is False:
        return _BY_DEFAULT if repair else ()
    kinds = (repair,) if isinstance(repair, str) else tuple(repair)
    for kind in kinds:
        if kind not in REPAIRED:
            raise ValueError(f"repair: expected True, False or some of {', '.join(map(repr, REPAIRED))}, found "
                             f"{kind!r:.60}")
    return kinds


def _ends_before_its_content(binding, key):
    """Whether a damaged object is empty, or a blosc chunk that ends before the bytes of which its header tells.

    A checksum behind it only says that something is wrong.
    """
    start = binding.store.get(key, (0, 16)) or b""
    names = [codec.name for codec in binding.metadata.codecs]
    if not start or names[-2:] != ["blosc", "crc32c"]:
        return not start
    # c-blosc, "The header": bytes 12 to 15 are the size of the chunk, header and all.
    size = binding.store.getsize(key) or 0
    return len(start) < 16 or int.from_bytes(start[12:16], "little") + 4 > size


def _kind_of(error):
    """Return which kind of problem an error makes."""
    if isinstance(error, TruncatedError):
        return "truncated"
    return "damaged" if isinstance(error, (ChunkError, AsdfFormatError)) else "unreadable"


def _entries(path):
    """Return the paths of what is in a directory; of a file nothing."""
    return [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else []


class _Verification:
    """One run of `verify`; what is found goes to its `report`."""

    def __init__(self, store, options, progress):
        self.store = store
        self.options = options
        self.report = Report(store.describe(""))
        self._progress = progress
        self._path = ""
        self._arrays = {}       # path -> bindings of what stands there; more than one where formats share a place
        self._copies = []       # (binding of a group, its copy, paths that were found)
        self._removals = []     # (problem, what removes it)

    # the hierarchy

    def walk(self, path):
        """Read the documents of all nodes, and note what belongs to none."""
        self._path = path
        if not nodes.standing(self.store, path):
            nodes.check_free(self.store, path)
            if not self._has_nodes(prefix_of(path)):
                raise nodes.not_found(self.store, path, None, self.options, "node")
        pending = [path]
        while pending:
            pending += reversed(self._visit(pending.pop()))
        for binding, copy, found in self._copies:
            for name in copy:
                if name not in found:
                    self._note_stale(binding, f"the copy has {name!r}, which is not there")
        self._note_unlisted(path)

    def _visit(self, path):
        """Look at what stands at a path; returns the paths below that are to be visited."""
        standing = nodes.standing(self.store, path)
        bindings = [self._binding(node) for node in standing]
        if any([isinstance(binding, Binding) for binding in bindings]):
            self.report.n_arrays += 1
            self._arrays[path] = [binding for binding in bindings if isinstance(binding, Binding)]
            return []
        self.report.n_groups += any([binding is not None for binding in bindings])
        prefix = prefix_of(path)
        known = self._documents(standing)
        is_told = None not in bindings    # else nobody knows what the damaged document would say of the rest
        try:
            keys, prefixes = self.store.list_dir(prefix)
        except (MetadataError, UnsupportedError):
            if is_told:
                raise
            return []      # keys follow from the document in an ASDF file
        for key in keys:
            if is_told and key[len(prefix):] not in known:
                self._note_key(key, path, known.__contains__)
        below = []
        for inner in prefixes:
            if self.store.leads_up(inner):
                continue
            if self._has_nodes(inner):
                below.append(inner[:-1])
            elif is_told:
                self._note_directory(inner, path)
        return below

    def _has_nodes(self, prefix):
        """Whether a node stands below a prefix, at any depth."""
        if self.store.existing(prefix, tuple(_NODE_DOCUMENTS)):
            return True
        return any(key.rpartition("/")[2] in _NODE_DOCUMENTS for key in self.store.list_prefix(prefix))

    def _documents(self, standing):
        """Return the names of the documents that nodes at one place may have."""
        known = set()
        for node in standing:
            format = node.format
            known.update((node.document, format.attributes_document))
            if node.document == format.group_document:
                known.add(format.consolidated_document)
        return known

    def _binding(self, node):
        """Return what a document makes of a place, its other documents read as well; None of one that is of no use."""
        store, path, format = self.store, node.path, node.format
        document = prefix_of(path) + node.document
        try:
            raw, identity = store.get_with_identity(document, (0, MAX_NBYTES + 1)) or (None, None)
            if raw is None:
                return None      # deleted since it was found
            view = view_of(format, node.document, raw, identity, path, self.options, 0)
            kind = Binding if isinstance(view.metadata, ArrayMetadata) else GroupBinding
            binding = kind(store, path, format, self.options, view)
        except (MetadataError, UnsupportedError, StoreError) as error:
            self._note_document(document, path, error)
            self._note_found(path, format, None)
            return None
        metadata = binding.metadata
        if format.attributes_document is not None:
            try:
                metadata = consolidated.complete(binding, read_attributes)
            except (MetadataError, StoreError) as error:
                self._note_document(binding.prefix + format.attributes_document, path, error)
                metadata = None
        self._note_found(path, format, metadata)
        if kind is GroupBinding:
            self._note_copy(binding, metadata)
        return binding

    # copies

    def _note_copy(self, binding, metadata):
        try:
            copy = consolidated.copied(binding)
        except (MetadataError, UnsupportedError, StoreError) as error:
            self._note_document(binding.prefix + binding.format.consolidated_document, binding.path, error)
            return
        if copy is not None:
            self._copies.append((binding, copy.consolidated, set()))
            if metadata is not None and not consolidated.is_same(copy, metadata):
                self._note_stale(binding, "the copy has other attributes of the group itself")

    def _note_found(self, path, format, metadata):
        """Compare a node with what the copies above say of it; None when its documents cannot be read."""
        for binding, copy, found in self._copies:
            if format is not binding.format or not path.startswith(binding.prefix):
                continue
            name = path[len(binding.prefix):]
            if not name:
                continue
            found.add(name)
            if name not in copy:
                self._note_stale(binding, f"the copy lacks {name!r}")
            elif metadata is not None and not self._is_copied(copy, name, metadata):
                self._note_stale(binding, f"the copy of {name!r} differs from its documents")

    def _is_copied(self, copy, name, metadata):
        try:
            return consolidated.is_same(copy[name], metadata)
        except (MetadataError, UnsupportedError):
            return False

    def _note_stale(self, binding, what):
        document = binding.format.consolidated_document or binding.document_name
        problem = self.report.add("stale copy", binding.prefix + document, binding.path, what)
        self._removals.append((problem, lambda: consolidated.drop_copy(self.store, binding.path)))

    # what belongs to no node

    def _note_document(self, key, path, error):
        self.report.add("wrong document" if isinstance(error, MetadataError) else "unreadable", key, path, error)

    def _note_key(self, key, path, is_known):
        """Note an object of no node; `is_known` tells of names relative to it which ones it may have."""
        found = _TEMPORARY.fullmatch(key[len(prefix_of(path)):])
        if found and is_known(found[1]):
            problem = self.report.add("left-over", key, path, "a temporary file of another program")
        else:
            problem = self.report.add("foreign", key, path, "it belongs to no node")
        self._removals.append((problem, lambda: self.store.erase(key)))

    def _note_directory(self, prefix, path):
        n_keys = n_bytes = 0
        for key in self.store.list_prefix(prefix):
            n_keys += 1
            n_bytes += self.store.getsize(key) or 0
        if n_keys:
            problem = self.report.add("foreign", prefix, path,
                                      f"{n_keys} objects of {n_bytes} bytes belong to no node")
            self._removals.append((problem, lambda: self.store.erase_prefix(prefix)))

    def _note_unlisted(self, path):
        """Note what stands in the directories of a store and is no key, which its listings leave out."""
        base = self.store.native_path
        if base is None:
            return
        try:
            found = list(tree.unlisted(os.path.join(base, path) if path else base))
        except OSError as exc:
            raise StoreError(f"cannot list {exc.filename}: {exc.strerror}", key=path, errno=exc.errno) from exc
        for file, is_temporary in found:
            key = os.path.relpath(file, base).replace(os.sep, "/")
            if not is_temporary:
                problem = self.report.add("foreign", key, path, "it is no file that could be read")
                self._removals.append((problem, lambda file=file: tree.remove(file)))
                continue
            try:
                age = time() - max(os.lstat(one).st_mtime for one in (file, *_entries(file)))
            except OSError:
                continue     # gone: its writer is alive
            if is_alive(file):
                continue
            what = "a directory of an interrupted copy" if os.path.isdir(file) else "a temporary file"
            problem = self.report.add("left-over", key, path, f"{what}, written to {max(0, age):.0f} s ago")
            if age >= _YOUNG:
                self._removals.append((problem, lambda file=file: tree.remove(file)))

    # objects

    def read(self):
        """List the objects of all arrays, and read them."""
        blocks = list(self.store.blocks(self._path))
        total = sum(binding.metadata.nbytes for bindings in self._arrays.values() for binding in bindings)
        total += sum(nbytes for _, _, nbytes, _ in blocks)
        done = 0
        for name, path, nbytes, check in blocks:
            try:
                check()
            except ZcoreError as error:
                self.report.add(_kind_of(error), name, path, error)
            done += nbytes
            self._tell(done, total)
        for path, bindings in self._arrays.items():
            report = self.report
            for _ in range(_MAX_TRIES):
                n_problems, n_removals, counts = len(report.problems), len(self._removals), self._counts()
                try:
                    self._read_array(path, bindings, done, total)
                except NodeNotFoundError:
                    pass     # deleted meanwhile: what was found of it is gone
                except Changed:
                    del report.problems[n_problems:], self._removals[n_removals:]
                    report.n_objects, report.n_bytes = counts
                    for binding in bindings:
                        binding.reload()
                    continue
                break
            else:
                raise StoreError(f"{self.store.describe(path)} changes faster than it can be verified", key=path)
            done += sum(binding.metadata.nbytes for binding in bindings)
        self._tell(total, total)

    def _counts(self):
        return self.report.n_objects, self.report.n_bytes

    def _tell(self, done, total):
        if self._progress is not None:
            self._progress(min(done, total), total)

    def _read_array(self, path, bindings, done, total):
        try:
            is_read = self.store.is_in_blocks(path)
        except ZcoreError as error:
            self.report.add(_kind_of(error), bindings[0].document, path, error)
            return
        for binding, tasks in zip(bindings, self._list_objects(path, bindings), strict=True):
            metadata = binding.metadata
            before, seen = done, 0

            def failed(coords, error, binding=binding):
                self._note_object(binding, coords, error)

            def advance(n_bytes, before=before, nbytes=metadata.nbytes):
                nonlocal seen
                seen += n_bytes
                self._tell(before + min(seen, nbytes), total)

            if is_read:
                advance(metadata.nbytes)
            else:
                read_objects(binding, tasks, failed, advance)
            self.report.n_objects += len(tasks)
            self.report.n_bytes += len(tasks) * metadata.chunk_nbytes
            done += metadata.nbytes

    def _list_objects(self, path, bindings):
        """Return for each binding the numbers of its objects in the grid, and note what else stands below the path."""
        prefix = prefix_of(path)
        known = self._documents(nodes.standing(self.store, path))
        found = [array("q") for _ in bindings]
        kinds = [(binding, binding.metadata.chunk_keys, binding.metadata.grid_shape, numbers)
                 for binding, numbers in zip(bindings, found, strict=True)]
        for key in self.store.list_prefix(prefix):
            name = key[len(prefix):]
            if name in known:
                continue
            for binding, keys, grid, numbers in kinds:
                coords = keys.decode(name, len(grid))
                if coords is not None:
                    number = 0
                    for i, n in zip(coords, grid, strict=True):
                        number = number * n + i if i < n and number >= 0 else -1
                    if number >= 0:
                        numbers.append(number)
                    else:
                        self._note_outside(binding, key, coords)
                    break
            else:
                self._note_key(key, path, lambda name: name in known or any(
                    keys.decode(name, len(grid)) is not None for _, keys, grid, _ in kinds))
        return [np.frombuffer(numbers, np.int64) if numbers else np.empty(0, np.int64) for numbers in found]

    def _note_outside(self, binding, key, coords):
        problem = self.report.add("left-over", key, binding.path,
                                  f"chunk {coords} lies outside the grid of {binding.metadata.grid_shape}")

        def remove():
            # Held, so that nobody lets the array grow to where it lies.
            with binding.exclusive() as exclusive:
                if any([i >= n for i, n in zip(coords, exclusive.metadata.grid_shape, strict=True)]):
                    self.store.erase(key)

        self._removals.append((problem, remove))

    def _note_object(self, binding, coords, error):
        key = binding.prefix + binding.metadata.chunk_keys.encode(coords)
        kind = _kind_of(error)
        if isinstance(error, ChunkError) and kind == "damaged" and _ends_before_its_content(binding, key):
            kind = "truncated"
        problem = self.report.add(kind, key, binding.path, error)
        if kind != "unreadable":
            self._removals.append((problem, lambda: self.store.erase(key)))

    # repair

    def remove(self, kinds):
        """Remove what has a problem of these kinds."""
        for problem, remove in self._removals:
            if problem.kind in kinds:
                remove()
                self.report.n_removed += 1
