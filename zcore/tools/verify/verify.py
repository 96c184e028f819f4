"""A store looked through: every document against the rules of its format, every object decoded.

First the hierarchy is walked: documents are read, the copies of consolidated metadata compared with them, and what no
node accounts for is noted. Then the objects of each array are listed and read.
"""
import contextlib
import os
import re
from array import array
from functools import partial
from time import time

import numpy as np

from zcore.engine.binding import ArrayBinding, GroupBinding
from zcore.engine.options import Options
from zcore.engine.views import view_of
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
from zcore.formats import DOCUMENTS
from zcore.formats.json_documents import MAX_NBYTES
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.creation_lock import hold_place
from zcore.hierarchy.lifecycle import read_attributes
from zcore.model.metadata import ArrayMetadata
from zcore.nodes.node import Handle
from zcore.stores.base import BlockStore, Store
from zcore.stores.directory import cleanup
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import prefix_of
from zcore.stores.openers import store_of
from zcore.tools.copy import document_last, staging
from zcore.tools.copy.destinations import settle
from zcore.tools.verify.decoded import Changed, read_objects
from zcore.tools.verify.report import Report

REPAIRED = ("left-over", "foreign", "stale copy", "damaged", "truncated")
_BY_DEFAULT = ("left-over",)
# Of a file that is younger the writer may be alive.
_YOUNG = 60.0
# Temporary files of others: zarr-python, tensorstore, and programs that are built on the crate object_store.
_TEMPORARY = re.compile(r"(.+)(?:\.(?:[0-9a-f]{32}|[0-9a-z_]{8})\.partial|\.__lock|#[0-9]+)", re.ASCII)
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
        path = "/".join(part for part in (store.path, lookup.path_of(path)) if part)
        store = store.store
    is_file = not isinstance(store, Store) and isinstance(store, (str, os.PathLike)) and os.path.isfile(store)
    store = store_of(store, not kinds or is_file, False)
    path = lookup.path_of(path)
    if kinds and store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: nothing in it can be removed")
    with noted():    # documents that are worth a warning are no problem
        found = _Verification(store, Options(threads=threads, read_only=not kinds, cache=0), progress)
        if "left-over" in kinds:
            settle(store, path)     # of a copy to this very node it may be all there is
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
    if isinstance(error, (ChunkError, AsdfFormatError)):
        return "damaged"
    return "unreachable" if isinstance(error, StoreError) else "unreadable"


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
        # path -> (bindings, names of documents) of what stands there; more than one where formats share a place
        self._arrays = {}
        # Paths and prefixes of which nobody can tell what is there.
        self._hidden_paths = set()
        self._hidden_prefixes = []
        self._copies = []       # (binding of a group, its copy, paths that were found)
        self._removals = []     # (problem, what removes it)

    # the hierarchy

    def walk(self, path):
        """Read the documents of all nodes, and note what belongs to none."""
        self._path = path
        failures = []
        if not (lookup.standing(self.store, path, failures.append) or failures or self._has_nodes(prefix_of(path))):
            raise lookup.not_found(self.store, path, None, self.options, "node")
        pending = [path]
        while pending:
            pending += reversed(self._visit(pending.pop()))
        for binding, copy, found in self._copies:
            for name in copy:
                if name not in found and not self._is_hidden(binding.prefix + name):
                    self._note_stale(binding, f"the copy has {name!r}, which is not there")
        self._note_unlisted(path)
        if not path:
            self._note_staged()

    def _visit(self, path):
        """Look at what stands at a path; returns the paths below that are to be visited."""
        prefix = prefix_of(path)
        failures = []
        standing = lookup.standing(self.store, path, failures.append)
        if len(failures) == len(DOCUMENTS):
            # Not one of them, but the directory that they would lie in.
            self._note_unreachable(prefix, path, failures[0])
        else:
            for error in failures:
                self._note_unreachable(error.key or prefix, path, error)
                self._hidden_paths.add(path)
        bindings = [self._binding(node) for node in standing]
        known = self._documents(standing)
        if any([isinstance(binding, ArrayBinding) for binding in bindings]):
            self.report.n_arrays += 1
            self._arrays[path] = [binding for binding in bindings if isinstance(binding, ArrayBinding)], known
            return []
        self.report.n_groups += any([binding is not None for binding in bindings])
        # Else nobody knows what the document would say of the rest.
        is_told = not failures and None not in bindings
        try:
            found = self.store.list_dir(prefix)
        except (MetadataError, UnsupportedError):
            if is_told:
                raise
            return []      # keys follow from the document in an ASDF file
        except StoreError as error:
            if not self.store.lists:
                raise
            if not failures:
                self._note_unreachable(prefix, path, error)
            return []
        for key in found.keys if is_told else ():
            if key[len(prefix):] not in known:
                self._note_key(key, path, known.__contains__)
        for key in found.unreachable if is_told else ():
            if key[len(prefix):] not in known and (error := self._why_unreachable(key)) is not None:
                if self.store.is_link(f"{key}/"):
                    # It could be a node.
                    self._note_unreachable(key, path, error)
                else:
                    self._note_key(key, path, known.__contains__, error)
        below = []
        for inner in found.prefixes:
            if self.store.leads_up(inner) or inner == document_last.STAGING:
                continue
            if self._has_nodes(inner):
                below.append(inner[:-1])
            elif is_told:
                self._note_directory(inner, path)
        return below

    def _has_nodes(self, prefix):
        """Whether a node stands below a prefix, at any depth, or may stand where something is unreachable."""
        try:
            return bool(self.store.existing(prefix, DOCUMENTS)) or any(
                key.rpartition("/")[2] in DOCUMENTS for key in self.store.list_prefix(prefix))
        except StoreError:
            return True

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
            kind = ArrayBinding if isinstance(view.metadata, ArrayMetadata) else GroupBinding
            binding = kind(store, path, format, self.options, view)
        except (MetadataError, UnsupportedError, StoreError) as error:
            self._note_document(document, path, error)
            self._note_found(path, format, None)
            return None
        metadata = binding.metadata
        if not format.has_inline_attributes:
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
        self.report.add("wrong document" if isinstance(error, MetadataError) else _kind_of(error), key, path, error)

    def _note_unreachable(self, key, path, error):
        """Note a key, a prefix, or a name of which nobody can tell which of them it is."""
        self.report.add("unreachable", key, path, error)
        self._hidden_paths.add(key.removesuffix("/"))
        self._hidden_prefixes.append(prefix_of(key.removesuffix("/")))

    def _why_unreachable(self, key):
        """Return the error of a key that is unreachable, else None."""
        try:
            self.store.exists(key)
        except StoreError as error:
            return error
        return None

    def _is_hidden(self, path):
        return path in self._hidden_paths or path.startswith(tuple(self._hidden_prefixes))

    def _is_behind_link(self, name):
        """Whether a key or prefix lies in a directory that is a link: it may belong to somebody else."""
        return any([self.store.is_link(name[:i + 1]) for i, sign in enumerate(name[:-1]) if sign == "/"])

    def _note_key(self, key, path, is_known, error=None):
        """Note an object of no node; `is_known` tells of names relative to it which ones it may have.

        `error` is what asking for it ends in, of what is no file nor a link to one.
        """
        found = _TEMPORARY.fullmatch(key[len(prefix_of(path)):])
        if found and is_known(found[1]):
            problem = self.report.add("left-over", key, path, "a temporary file of another program")
        else:
            problem = self.report.add("foreign", key, path, "it belongs to no node" if error is None else
                                      "it belongs to no node, and is no file that could be read")
        if not self._is_behind_link(key):
            # By `erase` what is no file stays.
            erase = self.store.erase if error is None else self.store.delete
            self._removals.append((problem, partial(self._erase_foreign, key, path, erase)))

    def _erase_foreign(self, key, path, erase, below=()):
        """Erase an object of no node below `path`; return False if it belongs to one by now.

        An array that is being created has chunks before it has its document. Its creator holds its place, which is one
        of the directories above the object: each of them is held here, the deepest first as creators do. Those of
        `below` are waited for as well.
        """
        n = len(prefix_of(path))
        places = [key[:i] for i in range(len(key) - 1, n, -1) if key[i] == "/"]
        with contextlib.ExitStack() as held:
            for place in below:
                with hold_place(self.store, place, "", self.options):
                    if lookup.standing(self.store, place, lookup.pass_over_damage):
                        return False
            for place in places:
                held.enter_context(hold_place(self.store, place, "", self.options))
            if any([lookup.standing(self.store, place, lookup.pass_over_damage) for place in places]):
                return False
            erase(key)
        if places:
            self.store.prune(f"{places[0]}/")     # what holding them has kept

    def _erase_foreign_directory(self, prefix, path):
        """Erase what lies below `prefix` as `_erase_foreign` does."""
        below = {key[:i] for key in self.store.list_prefix(prefix) if not self._is_behind_link(key)
                 for i in range(len(prefix), len(key)) if key[i] == "/"}
        return self._erase_foreign(prefix, path, self.store.erase_prefix, sorted(below, reverse=True))

    def _note_directory(self, prefix, path):
        n_keys = n_bytes = n_unreachable = 0
        for key in self.store.list_prefix(prefix):
            try:
                n_bytes += self.store.getsize(key) or 0
            except StoreError as error:
                if self.store.is_link(f"{key}/"):
                    n_unreachable += 1
                    self._note_unreachable(key, path, error)
                    continue
            n_keys += 1
        if n_keys:
            problem = self.report.add("foreign", prefix, path,
                                      f"{n_keys} objects of {n_bytes} bytes belong to no node")
            if not n_unreachable and not self._is_behind_link(prefix):
                self._removals.append((problem, partial(self._erase_foreign_directory, prefix, path)))

    def _note_unlisted(self, path):
        """Note what stands in the directories of a store and is never listed."""
        if not isinstance(self.store, DirectoryStore):
            return
        base = self.store.path
        for file, is_temporary in cleanup.unlisted(os.path.join(base, path) if path else base):
            key = os.path.relpath(file, base).replace(os.sep, "/")
            if not is_temporary:
                problem = self.report.add("foreign", key, path, "its name is no text")
                self._removals.append((problem, lambda file=file: cleanup.remove(file)))
                continue
            try:
                age = time() - max(os.lstat(one).st_mtime for one in (file, *_entries(file)))
            except OSError:
                continue     # gone: its writer is alive
            if staging.is_alive(file):
                continue
            is_copy = os.path.isdir(file)
            what = "a directory of an interrupted copy" if is_copy else "a temporary file"
            problem = self.report.add("left-over", key, path, f"{what}, written to {max(0, age):.0f} s ago")
            if is_copy:
                self._removals.append((problem, lambda file=file, key=key, age=age: self._settle(file, key, age)))
            elif age >= _YOUNG:
                self._removals.append((problem, lambda file=file: cleanup.remove(file)))

    def _settle(self, container, key, age):
        """Bring to its end what an interrupted copy has left; return whether it is gone."""
        place = staging.settle(container, removes=age >= _YOUNG)
        if place is not None:
            consolidated.drop(self.store, "/".join((*key.split("/")[:-1], os.path.basename(place))))
        return not os.path.exists(container)

    def _note_staged(self):
        """Note what copies that were interrupted have left in a store in which nothing is renamed."""
        for prefix, path in document_last.staged(self.store):
            problem = self.report.add("left-over", prefix, path or "", "an interrupted copy, or one that is being made")
            self._removals.append((problem, lambda prefix=prefix: document_last.settle_one(self.store, prefix)))

    # objects

    def read(self):
        """List the objects of all arrays, and read them."""
        blocks = list(self.store.blocks(self._path)) if isinstance(self.store, BlockStore) else []
        total = sum(binding.metadata.nbytes for bindings, _ in self._arrays.values() for binding in bindings)
        total += sum(nbytes for _, _, nbytes, _ in blocks)
        done = 0
        for name, path, nbytes, check in blocks:
            try:
                check()
            except ZcoreError as error:
                self.report.add(_kind_of(error), name, path, error)
            done += nbytes
            self._tell(done, total)
        for path, (bindings, known) in self._arrays.items():
            report = self.report
            for _ in range(_MAX_TRIES):
                n_problems, n_removals, counts = len(report.problems), len(self._removals), self._counts()
                try:
                    self._read_array(path, bindings, known, done, total)
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

    def _read_array(self, path, bindings, known, done, total):
        try:
            is_read = isinstance(self.store, BlockStore) and self.store.is_in_blocks(path)
        except ZcoreError as error:
            self.report.add(_kind_of(error), bindings[0].document, path, error)
            return
        for binding, tasks in zip(bindings, self._list_objects(path, bindings, known), strict=True):
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

    def _list_objects(self, path, bindings, known):
        """Return for each binding the numbers of its objects in the grid, and note what else stands below the path."""
        prefix = prefix_of(path)
        found = [array("q") for _ in bindings]
        kinds = [(binding, binding.metadata.chunk_keys, binding.metadata.grid_shape, numbers)
                 for binding, numbers in zip(bindings, found, strict=True)]
        for key in self._keys_below(prefix, path):
            name = key[len(prefix):]
            if name in known or name in DOCUMENTS or key.startswith(document_last.STAGING):
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
                error = self._why_unreachable(key)
                if error is not None and any([keys.leads_to_chunks(name, len(grid)) for _, keys, grid, _ in kinds]):
                    self._note_unreachable(key, path, error)
                    continue
                self._note_key(key, path, lambda name: name in known or any(
                    keys.decode(name, len(grid)) is not None for _, keys, grid, _ in kinds), error)
        return [np.frombuffer(numbers, np.int64) if numbers else np.empty(0, np.int64) for numbers in found]

    def _keys_below(self, prefix, path):
        """Iterate over the keys below a prefix, up to a directory that cannot be listed, which is noted."""
        try:
            yield from self.store.list_prefix(prefix)
        except StoreError as error:
            if not self.store.lists:
                raise
            self._note_unreachable(error.key or prefix, path, error)

    def _note_outside(self, binding, key, coords):
        error = self._why_unreachable(key)
        if error is not None:
            self._note_unreachable(key, binding.path, error)
            return
        problem = self.report.add("left-over", key, binding.path,
                                  f"chunk {coords} lies outside the grid of {binding.metadata.grid_shape}")

        def remove():
            # Held, so that nobody lets the array grow to where it lies.
            with binding.exclusive() as exclusive:
                if any([i >= n for i, n in zip(coords, exclusive.metadata.grid_shape, strict=True)]):
                    self.store.erase(key)

        if not self._is_behind_link(key):
            self._removals.append((problem, remove))

    def _note_object(self, binding, coords, error):
        key = binding.prefix + binding.metadata.chunk_keys.encode(coords)
        kind = _kind_of(error)
        if isinstance(error, ChunkError) and kind == "damaged" and _ends_before_its_content(binding, key):
            kind = "truncated"
        problem = self.report.add(kind, key, binding.path, error)
        if kind in REPAIRED and not self._is_behind_link(key):
            self._removals.append((problem, lambda: self.store.erase(key)))

    # repair

    def remove(self, kinds):
        """Remove what has a problem of these kinds."""
        for problem, remove in self._removals:
            if problem.kind in kinds and remove() is not False:
                self.report.n_removed += 1
