"""Remove the causes of problems that `zcore.verify` has found.

Other processes may be at work. So each function locks what it is about, and looks at it once more. It returns False if
there is nothing to remove any more.
"""
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import AsdfFormatError, ChunkError, StoreError, TruncatedError, ZcoreError
from zcore.hierarchy import consolidated, lookup
from zcore.hierarchy.creation_lock import Place
from zcore.hierarchy.ownership import documents_beside, role_of
from zcore.model.chunk_grid import number_of
from zcore.model.metadata import ArrayMetadata
from zcore.stores.directory import staged
from zcore.stores.keys import between, prefix_of
from zcore.tools.verify.decoded import Changed, read_objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from zcore.engine.array_binding import ArrayBinding
    from zcore.engine.options import Options
    from zcore.hierarchy.lookup import FoundDocument
    from zcore.stores.base import Store
    from zcore.tools.verify.report import Problem, Report

REPAIRED = ("left-over", "foreign", "stale copy", "damaged", "truncated")
YOUNG = 60.0     # seconds: the writer of a younger file may be alive


def kinds_of(repair: bool | str | Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of problems that the argument `repair` of `zcore.verify` names."""
    if repair is True or repair is False:
        return ("left-over",) if repair else ()
    expected = f"expected True, False or some of {', '.join(map(repr, REPAIRED))}"
    if not isinstance(repair, Iterable):
        raise TypeError(f"repair is {repair!r:.60}, {expected}")
    kinds = []     # one by one: the first wrong one ends it, however many there are
    for kind in (repair,) if isinstance(repair, str) else repair:
        if kind not in REPAIRED:
            raise ValueError(f"repair: {expected}, found {kind!r:.60}")
        kinds.append(kind)
    return tuple(kinds)


def remove(store: Store, found: Mapping[Problem, Callable[[], object] | None], kinds: Sequence[str],
           report: Report) -> None:
    """Remove the causes of the problems of these kinds. `found` has the function that does it, None if it must stay."""
    for problem, removal in found.items():
        if removal is None or problem.kind not in kinds:
            continue
        try:
            report.n_removed += removal() is not False
        except (FileNotFoundError, Changed):
            pass     # another process has replaced or deleted the array, or the writer of the file is alive
        except OSError as exc:
            if isinstance(exc, ZcoreError):
                raise
            raise StoreError(f"cannot remove {problem.key!r} of {store!r}: {exc.strerror}", key=problem.key,
                             errno=exc.errno) from exc


def erase_foreign(store: Store, options: Options, key: str, path: str, erase: Callable[[str], object],
                  below: Sequence[str] = ()) -> bool:
    """Erase an object of no node below `path`; return False if it belongs to a node by now.

    An array that is being created has chunks before it has its document. Its creator holds the creation lock of its
    path, which is `path` or one of the directories between it and the object: each of them is locked here. The
    creators at `below` are waited for as well.
    """
    directories = between(prefix_of(path), key)
    for one in below:
        with Place(store, one, "", options):
            if lookup.documents_at(store, one, lookup.pass_over_damage):
                return False
    with contextlib.ExitStack() as held:
        for one in (path, *directories):
            held.enter_context(Place(store, one, "", options))
        if belongs(store, key, path):
            return False
        erase(key)
    if directories:
        store.folders.prune(f"{directories[-1]}/")     # the locks had kept it
    return True


def erase_foreign_directory(store: Store, options: Options, prefix: str, path: str) -> bool:
    """Erase the keys below `prefix` as `erase_foreign` does."""
    below = {one for key in store.list_prefix(prefix) if not is_behind_link(store, key) for one in between(prefix, key)}
    return erase_foreign(store, options, prefix, path, store.erase_prefix, sorted(below, reverse=True))


def erase_outside(binding: ArrayBinding, key: str) -> bool:
    """Erase a chunk outside the grid. It is locked, so that the array cannot grow up to the chunk."""
    with binding.exclusive() as exclusive:
        coords, number = chunk_at(key, binding.prefix, exclusive.metadata)
        if coords is None or number is not None:
            return False
        binding.store.erase(key)
        return True


def erase_damaged(binding: ArrayBinding, key: str) -> bool:
    """Erase an object, unless another process has replaced it, or its array, by one that can be read.

    Raises : StoreError, if it cannot be read now. Then it stays.
    """
    failures: list[ZcoreError] = []
    with binding.exclusive() as exclusive:
        _, number = chunk_at(key, binding.prefix, exclusive.metadata)
        if number is not None and binding.store.exists(key):
            read_objects(binding, np.array([number]), lambda coords, error: failures.append(error),
                         lambda n_bytes: None)
        if failures and problem_kind(failures[0]) == "unreachable":
            raise failures[0]
        if not failures or problem_kind(failures[0]) not in REPAIRED:
            return False
        binding.store.erase(key)
        return True


def recover_copy(store: Store, container: str, key: str, age: float) -> bool:
    """Finish or remove the rest of an interrupted copy; return whether it is gone."""
    finished = staged.recover(container, removes=age >= YOUNG)
    if finished is not None:
        consolidated.drop(store, "/".join((*key.split("/")[:-1], os.path.basename(finished))))
    return not os.path.exists(container)


# What belongs to what

def problem_kind(error: ZcoreError) -> str:
    """Return the kind of the problem that an error means."""
    if isinstance(error, TruncatedError):
        return "truncated"
    if isinstance(error, (ChunkError, AsdfFormatError)):
        return "damaged"
    return "unreachable" if isinstance(error, StoreError) else "unreadable"


def chunk_at(key: str, prefix: str, metadata: ArrayMetadata) -> tuple[tuple[int, ...] | None, int | None]:
    """Return the coordinates of the chunk of a key, None if it is not a chunk's; and its number in C order of the grid,
    None if it lies outside.
    """
    coords = metadata.chunk_keys.decode(key[len(prefix):], metadata.ndim)
    return coords, None if coords is None else number_of(coords, metadata.grid_shape)


def documents_of(standing: Sequence[FoundDocument]) -> set[str]:
    """Return the names of the documents that nodes at one path may have."""
    return {name for node in standing for name in (node.document, *documents_beside(node.format))
            if name != node.format.consolidated_document or node.document == node.format.group_document}


def belongs(store: Store, key: str, path: str) -> bool:
    """Return whether a key, or one that may lie below a prefix, belongs to a node at `path` or between, as of now."""
    if any([lookup.documents_at(store, one, lookup.pass_over_damage) for one in between(prefix_of(path), key)]):
        return True
    name = key[len(prefix_of(path)):]
    for node in lookup.documents_at(store, path, lookup.pass_over_damage):
        metadata = node.parse()
        role = role_of(name.removesuffix("/"), node.document, node.format, metadata)
        if metadata is None or role in (("directory",) if name.endswith("/") else ("document", "chunk")):
            return True
    return False


def is_behind_link(store: Store, name: str) -> bool:
    """Return whether a key or prefix lies in a directory that is a link: it may belong to another hierarchy."""
    return any([store.folders.is_link(f"{one}/") for one in between("", name.removesuffix("/"))])
