"""Finds the node at a path of a store, or reports what exists there instead."""
from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from functools import partial
from itertools import islice
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.engine.array_binding import ArrayBinding
from zcore.engine.node_binding import GroupBinding
from zcore.engine.options import Options
from zcore.engine.views import metadata_of, stored_attributes, view_of
from zcore.errors import (
    ArrayMismatchError,
    InvalidKeyError,
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    StoreError,
    UnsupportedError,
    ZcoreError,
    warn,
    warn_of,
)
from zcore.formats import DOCUMENTS, FORMAT_OF, NODE_DOCUMENTS, format_of
from zcore.formats.json_documents import MAX_NBYTES
from zcore.hierarchy.unfinished import finished
from zcore.model.auto_chunks import normalize_grid
from zcore.model.dtypes import plain_dtype
from zcore.model.metadata import ArrayMetadata, shape_of
from zcore.model.value import text_of
from zcore.stores import openers
from zcore.stores.base import AtMost, directory_at, n_at_once, outcomes
from zcore.stores.directory.store import DirectoryStore
from zcore.stores.keys import check_path, prefix_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from zcore.formats.base import Format
    from zcore.model.metadata import GroupMetadata
    from zcore.stores.base import Identity, Store
    from zcore.typing import Chunks, DTypeLike, Shape
    from zcore.typing import Format as FormatName

    _Looked = tuple[str, bytes, Identity | None, int | None]

# The document of a format that zcore does not read.
_OTHER, _OTHER_NAME = "meta", "Zarr v1"
_ANY = (*DOCUMENTS, _OTHER)
# Documents that are looked for, by format; None: in any format.
_LOOKED_FOR = {None: _ANY, **{name: (*documents, _OTHER) for name, documents in NODE_DOCUMENTS.items()}}
# Errors of the system that concern one node: circular or broken links, special files, missing permission.
_OF_ONE_NODE = frozenset((errno.ELOOP, errno.ENOENT, errno.ESPIPE, errno.ENXIO, errno.EACCES, errno.EPERM))
MAX_SHORT = 1 << 16    # bytes of a document that is read ahead; a longer one is read alone
# Documents that make a different node of the place, for a reader of only their format.
_CONTRADICTING = {document: DOCUMENTS[i + 1:] for i, document in enumerate(DOCUMENTS)}


def store_and_path(place: Any, path: str | None) -> tuple[Any, str]:
    """Return the store and the path that a caller means, who names a node by its handle, also one of zarr-python."""
    path = path_of(path)
    if not hasattr(place, "store_path"):
        return place, path
    return place.store, "/".join([part for part in (place.path, path) if part])


def path_of(path: str | None, zarr_format: FormatName | None = None) -> str:
    """Return a path as the store has it, see `check_path`; None is the root.

    Parameters
    ----------
    path : str or None
    zarr_format : {3, 2, "zmeta"}, optional
        Format of the node, if it is known. A format may have other spellings of a path, and reserved names.

    Raises
    ------
    InvalidKeyError
        No node can have this path. It is a ValueError.
    TypeError
        It is not a string.
    """
    if path is None:
        return ""
    if not isinstance(path, str):
        raise TypeError(f"the path of a node is a str, not {type(path).__name__}")
    if zarr_format is None:
        return check_path(path)
    format = format_of(zarr_format)
    if not path:
        return path
    path = check_path(format.names.spelled(path))
    check_names(path, format)
    return path


def check_names(path: str, format: Format) -> None:
    """Raise InvalidKeyError if the format allows no node of this path."""
    if path and format.names.is_suspect(path) and (reason := _fault(path, format)):
        raise InvalidKeyError(f"{path!r} is not the path of a node: {reason}", key=path)


def _fault(path, format):
    """Return why the format allows no node of this path, or None."""
    return next(filter(None, map(format.names.fault, path.split("/") if path else ())), None)


def check_new_names(path: str, format: Format) -> None:
    """Do the same for a new node, and warn if its name is not portable."""
    check_names(path, format)
    for name in path.split("/") if path else ():
        if advice := format.names.advice(name):
            warn(f"the name {name!r:.60} is not portable: {advice}")


def nearest(store: Store, path: str) -> str:
    """Return the deepest of `path` and the paths above it at which there is anything; in a directory store only.

    A look at a missing document goes up to what is there, so many looks at missing groups would cost the square of the
    depth. What is unreachable counts as there.
    """
    base = directory_at(store)
    while base is not None and path:
        try:
            os.lstat(os.path.join(base, path))
        except FileNotFoundError:
            path = path.rpartition("/")[0]
            continue
        except OSError:
            pass
        break
    return path


def find_or_read_set(store: Store, path: str, zarr_format: FormatName | None,
                     options: Options) -> ArrayBinding | GroupBinding | None:
    """Return the result of `find`. If there is a Parquet reference set in the directory instead of a node, search it.

    This is done for reading only.
    """
    found = find(store, path, zarr_format, options)
    if found is None and options.read_only and (references := set_in(store)) is not None:
        return find(references, path, zarr_format, options)
    return found


def set_in(store: Store) -> Store | None:
    """Return the `ReferenceStore` of the Parquet reference set in the directory of a store, or None."""
    if isinstance(store, DirectoryStore) and holds_set(store, ""):
        return openers.loaded(openers.PARQUET.opener)(store.path)
    return None


def holds_set(store: Store, path: str, *, beside_group: bool = False) -> bool:
    """Return whether a Parquet reference set is at `path`.

    `beside_group`: there is a group, to whose consolidated metadata another program may have given a member of sets.
    """
    if not store.exists(prefix_of(path) + openers.PARQUET_DOCUMENT):
        return False
    from zcore.stores.reference.parquet import is_parquet_set

    return is_parquet_set(store, prefix_of(path), beside_group=beside_group)


def check_no_set(store: Store, path: str) -> None:
    """Raise StoreError if a Parquet reference set is at `path`: a node there would hide it."""
    try:
        is_set = holds_set(store, path)
    except StoreError as error:
        pass_over_damage(error)
        return
    if is_set:
        raise StoreError(f"{store.describe(path)} holds a reference set in Parquet, which a node would hide: take "
                         "another place for the node, or move the set away",
                         key=prefix_of(path) + openers.PARQUET_DOCUMENT, errno=errno.EEXIST)


def find(store: Store, path: str, zarr_format: FormatName | None, options: Options, *,
         only_finished: bool = False) -> ArrayBinding | GroupBinding | None:
    """Return the `ArrayBinding` or `GroupBinding` of the node at `path`, or None.

    With `only_finished`, a placeholder is no node (`zcore.hierarchy.unfinished`). Without it, it is a MetadataError.

    Raises
    ------
    MetadataError
        Its document is damaged.
    UnsupportedError
        It has a format, or needs a feature, that zcore does not have.
    InvalidKeyError
        A name in its path is reserved by its format.
    """
    try:
        looked = _look(store, zarr_format, path)
        if looked is not None and zarr_format is None and not store.n_requests:
            # In a service each would be a request; in a listing of directories, most of the time.
            _warn_of_others(store, path, looked[0])
        return bound(store, path, zarr_format, options, looked, only_finished)
    except ZcoreError as error:
        error.locate(store.describe(path))
        raise


def find_each(store: Store, paths: Sequence[str], zarr_format: FormatName | None, options: Options, *,
              only_finished: bool = False,
              looks: Iterable[Any] | None = None) -> Iterator[ArrayBinding | GroupBinding | ZcoreError | None]:
    """Iterate over the results of `find` for several paths; where it raises a ZcoreError, over that.

    Where answers take long, many nodes are looked for at the same time, or before: `looks` are then what `look_at_each`
    has found.
    """
    if looks is None:
        looks = look_at_each(store, paths, zarr_format)
    for path, looked in zip(paths, looks, strict=True):
        try:
            if isinstance(looked, ZcoreError):
                raise looked
            found = bound(store, path, zarr_format, options, looked, only_finished)
        except ZcoreError as error:
            error.locate(store.describe(path))
            found = error
        yield found


def look_at_each(store: Store, paths: Sequence[str], zarr_format: FormatName | None) -> Iterator[Any]:
    """Iterate over what `find_each` has to know of each of `paths`. It does not warn: any thread may call it."""
    look = partial(_look, store, zarr_format)
    if not n_at_once(store):
        yield from outcomes(store, look, paths)
        return
    short = outcomes(store, partial(look, limit=MAX_SHORT), paths, ahead=True)
    for path, looked in zip(paths, short, strict=True):
        is_long = type(looked) is tuple and len(looked[1]) > MAX_SHORT
        yield from outcomes(store, look, (path,)) if is_long else (looked,)


def _look(store, zarr_format, path, limit=MAX_NBYTES):
    """Return all that `find` needs to know from the store about the node at `path`, or None if there is no node.

    It is a tuple: the name of the document, its bytes and identity, and the time before it was read.
    """
    now = time_ns()
    documents = _LOOKED_FOR[zarr_format]
    # One byte more than a document may have: the format refuses it, whatever the size of the file.
    found = store.get_first(prefix_of(path), documents, limit + 1)
    if found is None:
        return None
    i, raw, identity = found
    return documents[i], raw, identity, now


def bound(store: Store, path: str, zarr_format: FormatName | None, options: Options, looked: _Looked | None,
          only_finished: bool = False) -> ArrayBinding | GroupBinding | None:
    """Return the binding of the node at `path`, of which `_look` has returned `looked`; see `find`."""
    if looked is None:
        return None
    document, raw, identity, now = looked
    if only_finished and finished(raw) is not None:
        return None
    if document is _OTHER:
        raise UnsupportedError(f"{store.describe(path)} is a {_OTHER_NAME} node, which this version does not read",
                               feature=_OTHER_NAME)
    format = format_of(FORMAT_OF[document])
    if zarr_format is None:
        check_names(path, format)
    view = view_of(format, document, raw, identity, path, options, 0, now,
                   partial(stored_attributes, format, store, path))
    if view.notes:
        warn_of(store.describe(path), view.notes)
    bind = ArrayBinding if type(view.metadata) is ArrayMetadata else GroupBinding
    return bind(store, path, format, options, view)


def _warn_of_others(store, path, document):
    """Warn of documents that make a different node of the place, for a reader of only their format."""
    try:
        others = store.existing(prefix_of(path), _CONTRADICTING.get(document, ()))
    except StoreError as error:
        pass_over_damage(error)     # the node can still be opened
        warn(f"{store.describe(path)} holds {document}, and what may be a document of another node: {error}")
        return
    name = FORMAT_OF.get(document)
    for other in others:
        is_what = f"what {document} says" if other in NODE_DOCUMENTS[name] else f"of format {name!r}"
        warn(f"{store.describe(path)} holds {document} and {other}: the node is {is_what}, the other document is "
             "ignored")


class FoundDocument(NamedTuple):
    """One document that makes `path` a node, of any format."""

    store: Store
    path: str
    format: Format
    document: str

    def parse(self) -> ArrayMetadata | GroupMetadata | None:
        """Return the metadata in the document; None if it is damaged, or needs a feature that zcore does not have.

        For an array whose creation has not ended, return its future metadata.
        """
        raw = self.store.get(prefix_of(self.path) + self.document, AtMost(MAX_NBYTES + 1))
        if raw is None:
            return None
        try:
            return metadata_of(self.format, self.document, finished(raw) or raw, self.path)
        except (MetadataError, UnsupportedError):
            return None


def documents_at(store: Store, path: str, failed: Callable[[StoreError], object] | None = None) -> list[FoundDocument]:
    """Return a list of all documents that make `path` a node.

    Parameters
    ----------
    store : Store
    path : str
    failed : callable, optional
        Called as ``failed(error)`` for each unreachable document, which is left out unless `failed` raises.

    Raises
    ------
    StoreError
        A document is unreachable and there is no `failed`, or the directory of all of them is unreachable.
    """
    prefix = prefix_of(path)
    found, is_told = [], False
    try:
        found = store.existing(prefix, DOCUMENTS)
    except StoreError:
        if failed is None:
            raise
        for document in DOCUMENTS:
            try:
                found += store.existing(prefix, (document,))
            except StoreError as error:
                failed(error)
                is_told = True
    if not found and not is_told:
        store.folders.check_reachable(prefix)
    return [FoundDocument(store, path, format_of(FORMAT_OF[document]), document) for document in found]


def documents_among(store: Store, path: str, names: Iterable[str], top: str = "") -> list[FoundDocument]:
    """Return the documents among some names at a path, as `documents_at` does, without requests.

    Those of a format that has no node of this path, relative to `top`, are left out: it has a reserved name.
    """
    found = [FoundDocument(store, path, format_of(FORMAT_OF[name]), name) for name in names if name in FORMAT_OF]
    return [node for node in found if not _fault(path[len(prefix_of(top)):], node.format)]


def node_exists(store: Store, path: str) -> bool:
    """Return whether a node is at `path`, or an unreachable link that could be one.

    Raises : StoreError, if something else there is unreachable.
    """
    try:
        return bool(documents_at(store, path))
    except StoreError:
        if not store.folders.is_link(prefix_of(path)):
            raise
        return True


def has_nodes(store: Store, path: str) -> bool:
    """Return whether nodes are at `path` or below, at any depth, also behind a link there."""
    return bool(documents_at(store, path)) or any(
        key.rpartition("/")[2] in FORMAT_OF for key in store.list_prefix(prefix_of(path)))


def fault_of(look: Callable[[str], object], name: str) -> StoreError | None:
    """Return the error of ``look(name)``, why something is unreachable; None without one."""
    try:
        look(name)
    except StoreError as error:
        return error
    return None


def check_free(store: Store, path: str) -> None:
    """Raise StoreError if a document that makes `path` a node exists but is unreachable.

    Then the chunks beside it belong to that node.
    """
    store.get_first(prefix_of(path), DOCUMENTS, 0)


def check_no_special(store: Store, path: str, format: Format) -> None:
    """Raise StoreError if a special file has the name of a node's document at `path`.

    `find` raises the same error, as there is no node. The special file belongs to no node, so creating one does not
    remove it, even with `overwrite`.
    """
    names = _ANY if format.has_inline_attributes else (*_ANY, format.attributes_document)
    store.folders.check_no_special(prefix_of(path), names)


def members(store: Store, path: str, others: Callable[[str], object] | None = None) -> Iterator[str]:
    """Iterate over the paths of the nodes right below `path`, sorted; see `_members_among`."""
    return _members_among(store, may_be_nodes(store, path, others), others)


def below(store: Store, path: str, format: Format | None, options: Options, *,
          only_finished: bool = False,
          others: Callable[[str], object] | None = None) -> Iterator[tuple[str, ArrayBinding | GroupBinding]]:
    """Iterate over (path, node) of all nodes below `path`, level by level; see `find_each` and `members`.

    With a `format`, nodes of other formats come too, unless a document of this one is beside theirs, but nothing that
    is below them.

    Raises : ZcoreError, for the first node that cannot be opened.
    """
    zarr_format = None if format is None else format.name
    level = [path]
    while level:
        prefixes = []
        for found in outcomes(store, lambda group: may_be_nodes(store, group, others), level):
            if isinstance(found, ZcoreError):
                raise found
            prefixes += found
        paths, level = list(_members_among(store, prefixes, others)), []
        found = find_each(store, paths, zarr_format, options, only_finished=only_finished)
        for child, node in zip(paths, found, strict=True):
            if node is None and format is not None:
                node = find(store, child, None, options, only_finished=only_finished)
            if isinstance(node, ZcoreError):
                try:
                    raise node
                finally:
                    node = found = None     # its traceback leads here, and would keep the store open
            if node is None:
                continue     # deleted since it was listed
            yield child, node
            if isinstance(node, GroupBinding) and (format is None or node.format is format):
                level.append(child)


def _members_among(store, prefixes, others):
    """Iterate over the paths of the nodes at some prefixes, without reserved names and links to a directory above.

    Unreachable nodes, and nodes with unreachable documents, are included. Opening them is an error with the reason.
    `others` is called with each prefix without a node, and by `may_be_nodes` with each key beside them.
    """
    looks = outcomes(store, lambda prefix: store.get_first(prefix, _ANY, 0), prefixes, ahead=True)
    for prefix, found in zip(prefixes, looks, strict=True):
        name, document = prefix[:-1].rpartition("/")[2], _OTHER
        if isinstance(found, ZcoreError):
            pass_over_damage(found)
        elif found is not None:
            document = _ANY[found[0]]
        else:
            if others is not None:
                others(prefix)
            continue
        if (document is _OTHER or format_of(FORMAT_OF[document]).names.fault(name) is None) and (
                not store.folders.leads_up(prefix)):
            yield prefix[:-1]


def may_be_nodes(store: Store, path: str, others: Callable[[str], object] | None = None) -> list[str]:
    """Return the prefixes right below `path` that may be nodes, sorted: directories, and unreachable links.

    A FIFO, a socket or a device is never a node.
    """
    found = store.list_dir(prefix_of(path))
    for key in found.keys if others is not None else ():
        others(key)
    return sorted([*found.prefixes, *[f"{name}/" for name in found.unreachable if store.folders.is_link(f"{name}/")]])


def is_damage(error: BaseException) -> bool:
    """Return whether an error concerns only one node, so that others can be used.

    Errors that may affect all nodes, such as no descriptors left or a failing disk, do not count.
    """
    return isinstance(error, (MetadataError, UnsupportedError)) or (
        isinstance(error, StoreError) and error.errno in _OF_ONE_NODE)


def pass_over_damage(error: Exception) -> None:
    """Raise an error unless it concerns only one node; see `is_damage`."""
    if not is_damage(error):
        raise error


def check_replaceable(store: Store, path: str) -> None:
    """Raise NodeExistsError if the node at `path` has a format that this version does not replace."""
    try:
        is_other = store.exists(prefix_of(path) + _OTHER)
    except StoreError:
        check_free(store, path)     # if a document of today is unreachable, too, the error names that
        raise
    if is_other:
        raise NodeExistsError(f"{store.describe(path)} holds a {_OTHER_NAME} node ({_OTHER}), which this version does "
                              "not replace", path=path)


# Advice for a path where nothing is, for `open_array`, `open_group` and `open`.
_MAX_ENTRIES = 1000    # of a directory, among which a file is looked for
_MAX_LOOKS = 64     # directories below, which are looked through for a node
_ICECHUNK = "snapshots", "transactions"    # directories of a repository
_MADE = {"group": "; zcore.open_group with mode='a' creates it",
         "node": "; zcore.open with mode='a', a shape and a dtype creates an array there"}


def not_found(store: Store, path: str, zarr_format: FormatName | None, options: Options,
              what: str = "array", *, is_wanted: bool = False) -> NodeNotFoundError:
    """Return the error for a node that does not exist. Its message describes the content of the place.

    `is_wanted`: the message may advise a mode that creates the node.
    """
    place = store.describe(path)
    directory = directory_at(store, prefix_of(path))
    if directory is not None and not os.path.lexists(directory):
        reason = f"{place} does not exist"
        if "/~" in directory:
            reason += "; ~ is a name here, os.path.expanduser(path) expands it"
        # No mode of `open` but "a" creates beside what is there. In zarr-python that is the default.
        elif is_wanted and openers.named_kind(directory) in (None, openers.ZIP):
            reason += _MADE[what]
    elif zarr_format is not None and (other := find(store, path, None, Options(strict=options.strict))) is not None:
        reason = f"{place} is a {other.format.title} {other.what}, zarr_format={zarr_format!r} was asked for"
    else:
        reason = f"{place} holds no {what}"
        if not store.n_requests and (nodes := nodes_below(store, path, _MAX_LOOKS)[0]):
            reason += f"; path={nodes[0]!r} is a node" + (f", one of {len(nodes)}" if len(nodes) > 1 else "")
        elif directory is not None and all([os.path.isdir(os.path.join(directory, name)) for name in _ICECHUNK]):
            reason += ("; it is a repository of Icechunk: zcore.open takes the store of a session, as "
                       "repo.readonly_session('main').store")
        elif directory is not None and (name := _a_file_in(directory)) is not None:
            files = os.path.join(directory, f"*{os.path.splitext(name)[1]}")
            reason += f"; its files, such as {name!r}, are opened by their own names, in a shell as {files}"
    return NodeNotFoundError(reason, path=path, format=zarr_format)


def _a_file_in(directory):
    """Return the name of a file in a directory that can be opened or copied, or None."""
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        return min((entry.name for entry in islice(entries, _MAX_ENTRIES)
                    if openers.named_kind(entry.name) is not None and entry.is_file()), default=None)
    return None


def nodes_below(store: Store, path: str, most: int) -> tuple[list[str], int | None]:
    """Return the paths of nodes below `path`, near ones first, and the number of directories if not all were listed.

    At most so many directories are listed. No links are entered, and no nodes.
    """
    found, pending, n_looks = [], deque([path]), 0
    while pending and n_looks < most:
        place = pending.popleft()
        n_looks += 1
        prefix = prefix_of(place)
        with contextlib.suppress(ZcoreError):     # others may be found
            listing = store.list_dir(prefix)
            names = [key[len(prefix):] for key in (*listing.keys, *listing.unreachable)]
            if place != path and documents_among(store, place, names, path):
                found.append(place)
            elif place == path or not store.folders.is_link(prefix):
                pending += [below[:-1] for below in listing.prefixes]
    return sorted(found, key=lambda name: (name.count("/"), name)), n_looks if pending else None


def check_is_asked_for(binding: ArrayBinding, shape: Shape | None, chunks: Chunks, dtype: DTypeLike | None,
                       fill_value: Any, advice: str = "") -> None:
    """Raise ArrayMismatchError if an array is not the one that a call describes.

    Parameters
    ----------
    binding : ArrayBinding
        Binding of the array that was found.
    shape, chunks, dtype, fill_value
        As for `zcore.open`. None (for the fill value ``...``) is not compared, and neither are chunks that zcore
        chooses.
    advice : str
        The end of the message.
    """
    if shape is chunks is dtype is None and fill_value is ...:
        return
    metadata = binding.metadata
    found = {"shape": metadata.shape, "chunks": metadata.chunk_shape, "dtype": metadata.dtype}
    if metadata.edges is not None:
        found["chunks"] = metadata.chunk_shape, metadata.edges
    asked = {}
    if shape is not None:
        asked["shape"] = shape_of(shape)
    if chunks is not None and not isinstance(chunks, str):
        asked["chunks"], edges = normalize_grid(chunks, asked.get("shape", metadata.shape), metadata.itemsize)
        if edges is not None:
            asked["chunks"] = asked["chunks"], edges
    if dtype is not None:
        asked["dtype"] = binding.format.as_dtype(plain_dtype(dtype))
    asked = {name: value for name, value in asked.items() if value != found[name]}
    if fill_value is not ... and "dtype" not in asked:
        # The format's form of a fill value, from an array of one element.
        one = binding.format.new_array((1,), metadata.dtype, (1,), fill_value)
        # Compared by its bytes, as NaN does not equal itself.
        if (one.fill_value is None, one.fill_bytes) != (metadata.fill_value is None, metadata.fill_bytes):
            asked["fill_value"], found["fill_value"] = one.fill_value, metadata.fill_value
    if asked:
        differences = [f"{name} {_shown(value)} was asked for, {_shown(found[name])} is there"
                       for name, value in asked.items()]
        raise ArrayMismatchError(f"{binding.describe()} holds another array: {'; '.join(differences)}{advice}",
                                 path=binding.path, asked=asked, found={name: found[name] for name in asked})


def _shown(value):
    if isinstance(value, np.dtype):
        return str(value)
    return text_of(value, lambda value: repr(value.item() if isinstance(value, np.generic) else value))
