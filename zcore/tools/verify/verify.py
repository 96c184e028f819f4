"""Check a store: every document against the rules of its format, and every object by decoding it.

What is wrong is noted with a function that removes its cause, if there is one: `zcore.tools.verify.repair`.
First the hierarchy is walked: documents are read, copies of consolidated metadata are compared with them, and keys that
belong to no node are noted. Then the objects of each array are listed and read.
"""
from __future__ import annotations

import contextlib
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import time
from typing import TYPE_CHECKING

import numpy as np

from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.errors import (
    ChunkError,
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreError,
    UnsupportedError,
    ZcoreError,
    noted,
)
from zcore.formats import DOCUMENTS
from zcore.formats.json_documents import MAX_NBYTES
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.attributes import read_attributes
from zcore.hierarchy.creation_lock import is_held
from zcore.hierarchy.ownership import chunk_role
from zcore.hierarchy.unfinished import finished
from zcore.model.value import check_kind
from zcore.stores.base import SMALL_NBYTES, AtMost, BlockStore, n_at_once, outcomes, together
from zcore.stores.directory import cleanup, lock_file, staged
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import above, between, prefix_of
from zcore.stores.openers import PARQUET_DOCUMENT, as_path, store_of
from zcore.text.printable import plural
from zcore.tools.copy import document_last
from zcore.tools.copy.destinations import recover
from zcore.tools.copy.transfer import Progress
from zcore.tools.spread import check_client, check_shared
from zcore.tools.verify import repair as repairs
from zcore.tools.verify.decoded import Changed, read_objects
from zcore.tools.verify.report import Problem, Report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from zcore.nodes.array import Array
    from zcore.nodes.group import Group
    from zcore.stores.base import StoreLike

# Temporary files of other programs: zarr-python, tensorstore, and programs that use the crate object_store.
_TEMPORARY = re.compile(r"(.+)(?:\.(?:[0-9a-f]{32}|[0-9a-z_]{8})\.partial|\.__lock|#[0-9]+)", re.ASCII)
_MAX_TRIES = 5


def verify(store: StoreLike | Array | Group, *, path: str = "", repair: bool | str | Sequence[str] = False,
           threads: int | None = None, client: Any = None,
           progress: Callable[[int, int], object] | None = None) -> Report:
    """Read all that a store holds, and report what is wrong with it.

    Documents are checked against the rules of their formats, consolidated metadata against the documents, and every
    object is read and decoded, in parallel. Nothing is changed unless `repair` says so.

    Parameters
    ----------
    store : str, os.PathLike, Store, Array or Group
        A directory, a zip file, a reference set, a URL, a store, or a node of one.
    path : str, optional
        Of the node to begin with; by default the root.
    repair : bool, str or sequence of str
        True removes left-overs, as ``"left-over"`` does; other kinds are removed only if they are named:
        ``"foreign"``, ``"damaged"`` and ``"truncated"`` objects (their elements become the fill value), and of a
        ``"stale copy"`` the copy. Temporary files that were written to in the last minute stay, as their writers may
        be alive.
    threads : int, optional
        By default `zcore.config.threads`.
    client : distributed.Client, optional
        Read the objects on the workers of this client, which see the same files or services. Whatever has ``submit`` as
        the executors of `concurrent.futures` will do. Repairs are done here.
    progress : callable, optional
        ``progress(done, total)`` is called now and then, in bytes of decoded elements.

    Returns
    -------
    Report

    Raises
    ------
    NodeNotFoundError
        There is no node at all.
    UnsupportedError
        The node is of Zarr v1.
    ReadOnlyError
        Something is to be removed from a store that is read-only.
    ValueError
        `repair` names a kind that cannot be repaired.
    """
    kinds = repairs.kinds_of(repair)
    check_kind(progress, "progress", (Callable,), "a function of two integers")
    if client is not None:
        check_client(client)
        check_shared(store, "source")
    store, path = lookup.store_and_path(store, path)
    is_file = os.path.isfile(as_path(store) or "")
    store = store_of(store, not kinds or is_file)
    with contextlib.suppress(StoreError):      # it is reported later
        if isinstance(store, DirectoryStore) and not lookup.documents_at(store, ""):
            store = lookup.set_in(store) or store     # as `zcore.open` does it
    if kinds and store.read_only:
        raise ReadOnlyError(f"{store!r} is read-only: nothing in it can be removed")
    with noted():    # a warning about a document is not a problem
        found = _Verification(store, Options(threads=threads, read_only=not kinds, cache=0), progress, client)
        if "left-over" in kinds:
            recover(store, path)     # an interrupted copy may have left nothing else of this node
        found.walk(path)
        found.read()
        found.look_again()
        repairs.remove(store, found.problems, kinds, found.report)
    return found.report


def _ends_before_its_content(binding, key):
    """Return whether a damaged object is empty, or a blosc chunk that is shorter than its header says.

    The checksum behind such a chunk only shows that it is damaged.
    """
    start = binding.store.get(key, (0, 16)) or b""
    names = [codec.name for codec in binding.metadata.codecs]
    if not start or names[-2:] != ["blosc", "crc32c"]:
        return not start
    # c-blosc, "The header": bytes 12 to 15 are the size of the chunk, header and all.
    size = binding.store.getsize(key) or 0
    return len(start) < 16 or int.from_bytes(start[12:16], "little") + 4 > size


def _entries(path):
    """Return the paths of the entries of a directory; none for a file."""
    return [os.path.join(path, name) for name in os.listdir(path)] if os.path.isdir(path) else []


class _Verification:
    """One run of `verify`, with its `report`."""

    def __init__(self, store, options, progress, client):
        self.store = store
        self.options = options
        self.report = Report(store.describe(""))
        self._tell = progress
        self._client = client
        self._path = ""
        # path -> (bindings, names of documents); more than one binding where formats share a path
        self._arrays = {}
        self._hidden = set()    # paths whose content is unknown
        self._hidden_below = set()      # those where so is all below
        self._copies = []       # (binding of a group, its copy)
        self._found = {}        # below copies: (path, format) -> metadata; None if the documents cannot be read
        self._raw_copies = {}   # key -> the document that has the copy
        self._nodes = set()     # paths with documents; what lies in no node's directory is not removed
        self._sets = {}         # prefixes, and whether a reference set in Parquet is there, whose files are not removed
        self.problems = {}     # problem -> the function that removes its cause, or None
        # Names of blocks that are reported. If they are keys, their objects are not reported again.
        self._in_damaged_blocks = set()

    # the hierarchy

    def walk(self, path):
        """Read the documents of all nodes, and note keys that belong to none."""
        self._path = path
        failures = []
        if not (lookup.documents_at(self.store, path, failures.append) or failures or self._has_nodes(prefix_of(path))):
            lookup.find(self.store, path, None, Options())      # an error that names a format that is not read
            raise lookup.not_found(self.store, path, None, Options(), "node")
        self._walk_below(path)
        for binding, copy in sorted(self._copies, key=lambda one: one[0].path):     # whoever was looked at first
            self._compare(binding, copy)
        self._note_unlisted(path)
        if not path:
            self._note_staged()

    def _walk_below(self, path):
        level = [path]
        while level:
            level = [below for found in self._each(_Verification._visit, level) for below in found]

    def _each(self, work, paths):
        """Iterate over ``work(part, path)``, where `part` notes for this run; see `outcomes`."""
        def run(path):
            part = object.__new__(_Verification)
            part.__dict__.update(self.__dict__, problems={}, report=Report(self.report.place))
            return part, work(part, path)

        for found in outcomes(self.store, run, paths):
            if isinstance(found, ZcoreError):
                raise found
            part, result = found
            self.problems.update(part.problems)
            self.report.add(part.report)
            yield result

    def _walk_again(self, path):
        """Look at what is now where an array was that another process has changed, and return the paths of arrays."""
        del self._arrays[path]
        self.report.n_arrays -= 1
        others = set(self._arrays)
        if self._has_nodes(prefix_of(path)):
            self._walk_below(path)
        elif path != self._path:
            self._note_directory(prefix_of(path), path.rpartition("/")[0])
        return [one for one in self._arrays if one not in others]

    def _visit(self, path):
        """Read the documents at a path; returns the paths below that are to be visited."""
        prefix = prefix_of(path)
        failures = []
        documents = lookup.documents_at(self.store, path, failures.append)
        if len(failures) == len(DOCUMENTS):
            # Not a document, but the directory that they would lie in.
            self._note_unreachable(prefix, path, failures[0])
        else:
            for error in failures:
                self._note_unreachable(error.key or prefix, path, error)
                self._hidden.add(path)
        if documents or failures:
            self._nodes.add(path)
        bindings = [self._binding(node) for node in documents]
        known = repairs.documents_of(documents)
        if any([isinstance(binding, ArrayBinding) for binding in bindings]):
            self.report.n_arrays += 1
            self._arrays[path] = [binding for binding in bindings if isinstance(binding, ArrayBinding)], known
            return []
        self.report.n_groups += any([binding is not None for binding in bindings])
        # Without the document it is unknown which other keys belong to the node.
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
            if key[len(prefix):] not in known and (error := lookup.fault_of(self.store.exists, key)) is not None:
                if self.store.folders.is_link(f"{key}/"):
                    # It could be a node.
                    self._note_unreachable(key, path, error)
                else:
                    self._note_key(key, path, known.__contains__, error)
        below = []
        inside = [inner for inner in found.prefixes
                  if not self.store.folders.leads_up(inner) and inner != document_last.STAGING]
        for inner, has_nodes in zip(inside, together(self.store, self._has_nodes, inside), strict=True):
            if has_nodes:
                below.append(inner[:-1])
            elif is_told:
                self._note_directory(inner, path)
        return below

    def _has_nodes(self, prefix):
        """Whether there is a node below a prefix, at any depth, or may be one where something is unreachable."""
        try:
            return lookup.has_nodes(self.store, prefix.removesuffix("/"))
        except StoreError:
            return True

    def _binding(self, node):
        """Return the binding of a node, whose other documents are read as well; None if its document is of no use."""
        store, path, format = self.store, node.path, node.format
        document, raw = prefix_of(path) + node.document, None
        try:
            raw, identity = store.get_with_identity(document, AtMost(MAX_NBYTES + 1)) or (None, None)
            if raw is None:
                return None      # deleted since it was found
            binding = lookup.bound(store, path, format.name, self.options, (node.document, raw, identity, None))
        except (MetadataError, UnsupportedError, StoreError) as error:
            self._note_document(document, path, error)
            if raw is None or finished(raw) is None:      # no copy has an array that is being created
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
        if isinstance(binding, GroupBinding):
            self._note_copy(binding, metadata)
        return binding

    # copies

    def _note_copy(self, binding, metadata):
        key = self._key_of_copy(binding)
        try:
            if consolidated.hides_set(binding):
                self._sets[binding.prefix] = True
                self._note("wrong document", key, binding.path, "it is that of a reference set in Parquet, which "
                                f"the group's {binding.document_name} hides: move one of the two away")
                return
            self._raw_copies[key] = self.store.get(key, AtMost(MAX_NBYTES))
            copy = consolidated.copied(binding)
        except MetadataError as error:
            self._note_stale(binding, error)
            return
        except StoreError as error:
            self._note_document(key, binding.path, error)
            return
        if copy is not None:
            self._copies.append((binding, copy.consolidated))
            if metadata is not None and not consolidated.is_same(copy, metadata):
                self._note_stale(binding, "the copy has other attributes of the group itself")
        elif binding.format.has_copy(binding.view.raw):
            self._note_stale(binding, "; ".join(binding.view.notes))

    def _note_found(self, path, format, metadata):
        if self._copies:     # a group comes before its members
            self._found[path, format] = metadata

    def _compare(self, binding, copy):
        """Compare the copy of a group with the nodes below it."""
        found = {path[len(binding.prefix):]: metadata for (path, format), metadata in self._found.items()
                 if format is binding.format and path != binding.path and path.startswith(binding.prefix)}
        for name, metadata in found.items():
            if name not in copy:
                self._note_stale(binding, f"the copy lacks {name!r}")
            elif metadata is not None and not self._is_copied(copy, name, metadata):
                self._note_stale(binding, f"the copy of {name!r} differs from its documents")
        for name in copy:
            if name not in found and not self._is_hidden(binding.prefix + name):
                self._note_stale(binding, f"the copy has {name!r}, which does not exist")

    def _is_copied(self, copy, name, metadata):
        try:
            return consolidated.is_same(copy[name], metadata)
        except (MetadataError, UnsupportedError):
            return False

    def _key_of_copy(self, binding):
        return binding.prefix + (binding.format.consolidated_document or binding.document_name)

    def _note_stale(self, binding, what):
        key = self._key_of_copy(binding)
        self._note("stale copy", key, binding.path, what,
                   lambda: consolidated.drop_if_same(binding, self._raw_copies[key]), behind_links=True)

    # keys of no node

    def _note(self, kind, key, path, what, remove=None, *, behind_links=False):
        """Note a problem and how to remove it. Nothing is removed behind a link, unless `behind_links`."""
        if remove is not None and not behind_links and repairs.is_behind_link(self.store, key):
            remove = None
        if kind == "foreign":
            paths = above(key.removesuffix("/"))
            if self._nodes.isdisjoint(paths) or any([self._is_set(prefix_of(one)) for one in paths]):
                remove = None
        what = str(what)
        for place in (self.store.describe(path), key, key.removeprefix(prefix_of(path))):
            what = what.removeprefix(f"{place}: ")     # a line has the key, before the sentence
        self.problems[Problem(kind, key, path, what)] = remove

    def _is_set(self, prefix):
        """Whether a reference set in Parquet is at a prefix: it holds data, also if a node beside it hides it."""
        if prefix not in self._sets:
            try:
                self._sets[prefix] = lookup.holds_set(self.store, prefix.rstrip("/"))
            except StoreError:
                return True     # it may be one
        return self._sets[prefix]

    def _note_document(self, key, path, error):
        kind = "wrong document" if isinstance(error, MetadataError) else repairs.problem_kind(error)
        self._note(kind, key, path, error)

    def _note_unreachable(self, key, path, error):
        """Note a key, a prefix, or a name that may be either."""
        self._note("unreachable", key, path, error)
        self._hidden_below.add(key.removesuffix("/"))

    def _is_hidden(self, path):
        return path in self._hidden or not self._hidden_below.isdisjoint((path, *above(path)))

    def _note_key(self, key, path, is_known, error=None):
        """Note an object of no node.

        Parameters
        ----------
        key, path : str
            Of the object, and of the node that it lies below.
        is_known : callable
            Whether the node at `path` may have an object of a name.
        error : StoreError, optional
            Of a key that is neither a file nor a link to one.
        """
        found = _TEMPORARY.fullmatch(key[len(prefix_of(path)):])
        kind, what = "foreign", "it belongs to no node"
        if found and is_known(found[1]):
            kind, what = "left-over", "a temporary file of another program"
        elif error is not None:
            what = "it belongs to no node, and is not a file that can be read"
        # `erase` removes files only.
        erase = self.store.erase if error is None else self.store.delete
        self._note(kind, key, path, what, partial(repairs.erase_foreign, self.store, self.options, key, path, erase))

    def _note_directory(self, prefix, path):
        n_keys = n_bytes = n_unreachable = 0
        holds_set = False
        for key in self.store.list_prefix(prefix):
            above, _, name = key.rpartition("/")
            holds_set = holds_set or name == PARQUET_DOCUMENT and self._is_set(prefix_of(above))
            try:
                n_bytes += self.store.getsize(key) or 0
            except StoreError as error:
                if self.store.folders.is_link(f"{key}/"):
                    n_unreachable += 1
                    self._note_unreachable(key, path, error)
                    continue
            n_keys += 1
        if n_keys:
            remove = None if n_unreachable or holds_set else partial(
                repairs.erase_foreign_directory, self.store, self.options, prefix, path)
            self._note("foreign", prefix, path, f"{plural(n_keys, 'object')} of {plural(n_bytes, 'byte')} belong"
                       f"{'s' if n_keys == 1 else ''} to no node", remove)

    def _note_unlisted(self, path):
        """Note files in the directories of a store that are never listed."""
        if not isinstance(self.store, DirectoryStore):
            return
        base = self.store.path
        for file, is_temporary in cleanup.unlisted(os.path.join(base, path) if path else base):
            key = os.path.relpath(file, base).replace(os.sep, "/")
            if not is_temporary:
                self._note("foreign", key, path, "its name is not text", partial(cleanup.remove, file),
                           behind_links=True)
                continue
            try:
                age = time() - max(os.lstat(one).st_mtime for one in (file, *_entries(file)))
            except OSError:
                continue     # gone: its writer is alive
            if os.path.basename(file).startswith(lock_file.NAMES):
                if (what := lock_file.left_over(file)) is not None:
                    self._note("left-over", key, path, what, partial(lock_file.remove_left_over, file),
                               behind_links=True)
                continue
            if staged.is_alive(file):
                continue
            is_copy = os.path.isdir(file)
            what = "a directory of an interrupted copy" if is_copy else "a temporary file"
            stays = "" if age >= repairs.YOUNG else f"; a repair removes it {repairs.YOUNG:.0f} s after the last write"
            self._note("left-over", key, path, f"{what}, written to {max(0, age):.0f} s ago{stays}",
                       partial(repairs.recover_copy, self.store, file, key, age) if is_copy else
                       partial(cleanup.remove, file) if age >= repairs.YOUNG else None, behind_links=True)

    def _note_staged(self):
        """Note the rest of interrupted copies in a store without renaming."""
        for prefix, path in document_last.staged(self.store) if not self._is_hidden("") else ():
            self._note("left-over", prefix, path or "", "an interrupted copy, or one that is being made",
                       partial(document_last.recover_one, self.store, prefix), behind_links=True)

    # objects

    def read(self):
        """List the objects of all arrays, and read them."""
        blocks = list(self.store.blocks(self._path)) if isinstance(self.store, BlockStore) else []
        in_blocks = sum(nbytes for _, _, nbytes, _ in blocks)
        self._progress = Progress(self._tell, in_blocks + sum(map(self._nbytes, self._arrays)))
        self._progress.begin(in_blocks)
        for name, path, nbytes, check in blocks:
            try:
                check()
            except ZcoreError as error:
                if path is None:
                    if any([problem.key == name for problem in self.problems]):
                        continue     # a document, which was read before
                    path = self._array_of(name)
                self._in_damaged_blocks.add(name)
                self._note(repairs.problem_kind(error), name, path, error)
            self._progress.advance(nbytes)
        pending, tries = sorted(self._arrays), Counter()
        while pending:
            shares = [[]]      # small arrays together, where answers take long, and each other one alone
            for path in pending:
                if self._is_small(path):
                    shares[0].append(path)
                else:
                    shares.append([path])
            pending = []
            for share in shares:
                self._progress.begin(sum(map(self._nbytes, share)))
                for path, is_read in zip(share, self._each(_Verification._read_arrays, share), strict=True):
                    if is_read:
                        continue
                    tries[path] += 1
                    if tries[path] == _MAX_TRIES:
                        raise StoreError(f"{self.store.describe(path)} changes faster than it can be verified",
                                         key=path)
                    pending += self._walk_again(path)
        self._progress.begin(0)

    def _nbytes(self, path):
        return sum(binding.metadata.nbytes for binding in self._arrays[path][0])

    def _is_small(self, path):
        """Return whether the arrays at a path are read at the same time as others: each holds up little memory."""
        return self._client is None and bool(n_at_once(self.store)) and max([
            max(one.metadata.nbytes, one.metadata.chunk_nbytes) for one in self._arrays[path][0]]) <= SMALL_NBYTES

    def _read_arrays(self, path):
        """Read the arrays at a path; return False, with nothing noted, if another process has changed them."""
        bindings, known = self._arrays[path]
        try:
            self._read_array(path, bindings, known)
            self._check_unchanged(bindings)
        except (Changed, NodeNotFoundError):
            self.problems, self.report = {}, Report(self.report.place)
            return False
        return True

    def _check_unchanged(self, bindings):
        """Raise Changed if another process has replaced a document, by which all objects below it were judged."""
        for binding in bindings:
            if self.store.get(binding.document, AtMost(MAX_NBYTES + 1)) != binding.view.raw:
                raise Changed

    def _array_of(self, key):
        """Return the path of the array that a key lies below, or that of the node where this run began."""
        return next((path for path in (key, *above(key)) if path in self._arrays), self._path)

    def _read_array(self, path, bindings, known):
        try:
            is_read = isinstance(self.store, BlockStore) and self.store.is_in_blocks(path)
        except ZcoreError as error:
            self._note(repairs.problem_kind(error), bindings[0].document, path, error)
            return
        for binding, tasks in zip(bindings, self._list_objects(path, bindings, known), strict=True):
            if not is_read:
                read_objects(binding, tasks, partial(self._note_object, binding), self._progress.advance, self._client)
            self.report.n_objects += len(tasks)
            self.report.n_bytes += len(tasks) * binding.metadata.chunk_nbytes

    def _list_objects(self, path, bindings, known):
        """Return for each binding the numbers of its objects in the grid, and note all other keys below the path."""
        prefix = prefix_of(path)
        found = [array("q") for _ in bindings]
        for key in self._keys_below(prefix, path):
            name = key[len(prefix):]
            if name in known or name in DOCUMENTS or key.startswith(document_last.STAGING):
                continue
            for binding, numbers in zip(bindings, found, strict=True):
                coords, number = repairs.chunk_at(name, "", binding.metadata)
                if number is not None:
                    numbers.append(number)
                elif coords is not None:
                    self._note_outside(binding, key, coords)
                if coords is not None:
                    break
            else:
                error = lookup.fault_of(self.store.exists, key)
                if error is not None and any([chunk_role(name, one.metadata) == "directory" for one in bindings]):
                    self._note_unreachable(key, path, error)
                    continue
                self._note_key(key, path, lambda name: name in known or any(
                    chunk_role(name, one.metadata) == "chunk" for one in bindings), error)
        return [np.frombuffer(numbers, np.int64) if numbers else np.empty(0, np.int64) for numbers in found]

    def _keys_below(self, prefix, path):
        """Iterate over the keys below a prefix, up to a directory that cannot be listed, which is noted."""
        try:
            yield from self.store.list_prefix(prefix)
        except MetadataError as error:
            # A Parquet file of references, which says what keys there are.
            self._note_document(error.document or prefix, path, error)
        except StoreError as error:
            if not self.store.lists:
                raise
            self._note_unreachable(error.key or prefix, path, error)

    def _note_outside(self, binding, key, coords):
        error = lookup.fault_of(self.store.exists, key)
        if error is not None:
            self._note_unreachable(key, binding.path, error)
            return

        self._note("left-over", key, binding.path,
                   f"chunk {coords} lies outside the grid of {binding.metadata.grid_shape}",
                   partial(repairs.erase_outside, binding, key))

    def _note_object(self, binding, coords, error):
        key = binding.prefix + binding.metadata.chunk_keys.encode(coords)
        if key in self._in_damaged_blocks:
            return
        kind = repairs.problem_kind(error)
        if isinstance(error, ChunkError) and kind == "damaged" and _ends_before_its_content(binding, key):
            kind = "truncated"
        self._note(kind, key, binding.path, error, partial(repairs.erase_damaged, binding, key)
                   if kind in repairs.REPAIRED else None)

    def look_again(self):
        """Report what was noted, but not what another process was at work on, and what it has done explains."""
        self.problems = {problem: remove for problem, remove in self.problems.items() if not self._is_over(problem)}
        self.report.problems = list(self.problems)

    def _is_over(self, problem):
        """Return whether an object of no node is gone or belongs to one now, or a stale copy was dropped or replaced.
        """
        kind, key, path, _ = problem
        try:
            if kind == "stale copy":
                return self.store.get(key, AtMost(MAX_NBYTES)) != self._raw_copies[key]
            if kind != "foreign":
                return False
            if not key.endswith("/"):
                return not self.store.exists(key) or repairs.belongs(self.store, key, path) or self._is_busy(key, path)
            keys = list(self.store.list_prefix(key))
            return not keys or self._has_nodes(key) or repairs.belongs(self.store, key, path) or any(
                [self._is_busy(one, path) for one in keys])
        except StoreError:
            return False

    def _is_busy(self, key, path):
        """Return whether a node is being created or deleted above a key. Its chunks come before its document."""
        return any([is_held(self.store, one) for one in (*between(prefix_of(path), key), path)])
