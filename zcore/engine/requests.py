"""Reads and writes the objects of stores without files, for the kernel.

Only the kernel decodes objects (`zcore.kernel.plan.feed`). This module decides which objects to request, and which of
them together. It replaces an object under its lock, as `zcore/kernel/plan/write.pyx` does with files. If the store
supports compare-and-swap, an object is replaced only if no other writer has replaced it meanwhile.
"""
from __future__ import annotations

import contextlib
from _thread import allocate_lock  # from threading, without its import time
from itertools import islice
from typing import TYPE_CHECKING

from zcore import workers
from zcore.engine.stamps import put_stamped, stamped
from zcore.engine.views import is_trusted
from zcore.errors import LockError, StoreError
from zcore.kernel.io.locks import Stopped
from zcore.kernel.plan.feed import UNCHANGED, UNKNOWN, Feed
from zcore.ranges import MAX_BLOCK, MAX_GAP, merged
from zcore.stores.base import AtMost, FileParts, Within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from zcore.engine.array_binding import ArrayBinding
    from zcore.engine.views import ArrayView
    from zcore.kernel.io.locks import ObjectLocks
    from zcore.kernel.plan.cache import ChunkCache
    from zcore.kernel.plan.read import ReadPlan
    from zcore.kernel.plan.write import WritePlan
    from zcore.stores.base import ByteRange, Identity, Store

# Decoded bytes of objects that one call passes to the kernel, if the store answers at once.
TOGETHER_NBYTES = 1 << 18
MAX_TOGETHER = 64
MAX_GATHERED = 1 << 16     # tasks that are examined at a time for objects that lie side by side
NO_LIMIT = 1 << 62     # bytes of an object whose size nothing tells, such as text
MAX_REPLACED = 8       # attempts to read a shard in parts while it is replaced, before it is read whole
MAX_SWAPS = 64         # attempts of a compare-and-swap
FEW_ERASED = 16        # objects that are erased without a look which of them exist
LISTED = 10            # objects of the array for each that is to be erased, at most, in such a look
# Objects written between two checks of the document, in stores whose locks exclude only this process, or whose objects
# have no identity.
N_UNSEEN = 32
MAX_PAUSE = 0.25       # seconds between two attempts


class _Replaced(Exception):
    """A shard was replaced between the reads of two of its parts."""


class PlanReader:
    """Passes the objects of a plan that reads to the kernel; one call is the work of one thread.

    Parameters
    ----------
    store : Store
    prefix : str
        Prefix of the array's keys.
    view : View
        View of the array.
    plan : ReadPlan
    chunks : ChunkCache or None
        The cache of the plan.
    tasks : list of int, optional
        Only these tasks, instead of the plan's next ones.
    """

    _look = _looked = _is_settled = None

    def __init__(self, store: Store, prefix: str, view: ArrayView, plan: ReadPlan, chunks: ChunkCache | None,
                 tasks: Iterable[int] | None = None) -> None:
        self._n_unseen = plan.n_left
        self._gate, self._is_void, self._lacks = allocate_lock(), False, False
        self._store = store
        self._prefix = prefix
        self._plan = plan
        self._chain = view.chain
        self._chunks = chunks
        left = None if tasks is None else iter(tasks)
        self._next = plan.begin_tasks if left is None else lambda n: [] if plan.stopped else list(islice(left, n))
        # Only references to remote targets have batches.
        located = store.locate(prefix) if store.n_requests else None
        self._batches = located.batches if type(located) is FileParts else None
        self._pending = []
        # One limit for all objects, if they have one shape.
        self._limit = view.chain.max_encoded if view.metadata.edges is None else None

    def __call__(self, main: bool) -> None:
        feed = Feed(self._plan, self._chain.step_names, main)
        if self._batches is not None:
            while batch := self._next_batch():
                self._fetch(feed, batch[0], batch[1]())
            return
        n = 1
        if not self._store.n_requests:
            n = max(1, min(MAX_TOGETHER, TOGETHER_NBYTES // max(1, self._plan.task_nbytes)))
        while tasks := self._next(n):
            self._fetch(feed, tasks, self._store)

    def _next_batch(self):
        """Return tasks whose objects the store reads together, and a function that fetches these; None after the last.

        A shard that is read in parts is read alone.
        """
        with self._gate:
            if not self._pending:
                tasks = self._next(MAX_GATHERED)
                few = [task for task in tasks if self._plan.is_few(task)]
                tasks = sorted(set(tasks).difference(few)) if few else tasks
                keys = [self._prefix + self._plan.task(task)[0] for task in tasks]
                # Reversed, since the last one is the next. The store returns them in the order of reading.
                self._pending = [([tasks[i] for i in batch.numbers], batch.load)
                                 for batch in reversed(self._batches(keys, self._chain.max_encoded))]
                self._pending += [([task], lambda: self._store) for task in reversed(few)]
            return self._pending.pop() if self._pending and not self._plan.stopped else None

    def _fetch(self, feed, tasks, source):
        plain, values = [], []
        for task in tasks:
            if self._plan.stopped:
                return
            key = self._prefix + feed.key(task)
            if self._chain.is_partial:
                self._fetch_shard(feed, source, key, task)
                continue
            limit = feed.limit(task) if self._limit is None else self._limit
            if self._chunks is None:
                value, identity = source.get_buffer(key, _whole(limit)), None
            else:
                identity = source.identity(key)
                if identity is not None and feed.find(task, identity):
                    continue
                value, identity = source.get_with_identity(key, _whole(limit)) or (None, None)
            if value is None:
                self._lacks = True
            is_long = value is not None and limit < NO_LIMIT and len(value) > limit
            if is_long or identity is not None:
                feed.read_one(task, value, source.getsize(key) if is_long else None, identity)
            else:
                plain.append(task)
                values.append(value)
        feed.read(plain, values)

    def _fetch_shard(self, feed, source, key, task):
        """Pass a shard as a whole, or its index and the selected chunks if they are few."""
        is_few = self._plan.is_few(task)
        for i in range(2 * MAX_REPLACED):
            try:
                # Some services change tags although the object is the same. A shard that is read whole needs no tag.
                if not (is_few and i < MAX_REPLACED and self._fetch_parts(feed, source, key, task)):
                    self._is_void = True
                    if not _fetch_whole(feed, source, key, task):
                        self._lacks = True
                return
            except _Replaced:
                self._is_void = True
        raise StoreError(f"{key}: it was replaced by another object during each of {2 * MAX_REPLACED} reads in parts",
                         key=key)

    def _fetch_parts(self, feed, source, key, task):
        """Pass the index of a shard and its selected chunks; return False if the shard must be read as a whole.

        Without identities, the shard may have been replaced between two requests. So whatever is wrong with the parts,
        nothing is an error before the shard was read by one request.
        """
        start, n_bytes = self._plan.index_part(task)
        found = source.get_with_identity(key, Within((start, n_bytes)))
        if found is None:
            self._lacks = True
            self._saw()
            feed.read([task], [None])
            return True
        index, identity = found
        if len(index) != n_bytes or identity is not None and not is_trusted(identity):
            return False
        if identity is not None:
            self._saw()
        size = UNKNOWN if identity is None else identity[2]
        blocks = _blocks(feed, source, key, task, identity, size, [(0 if start == 0 else size - n_bytes, index)])
        return blocks is not None and feed.read_blocks(task, *blocks)

    def look_at(self, look: Callable[[], bool]) -> None:
        """Have the document looked at while objects are on their way: ``look()`` tells whether it is that of the view.

        If no object was changed lately, the look may come before them: an object that is older than the look belongs to
        the document that the look finds. Otherwise it must come after the objects were seen. The parts of a shard that
        are fetched later are those of the same object, by its identity. So the look is made while they are on their
        way, if the index of each shard was read.
        """
        self._look, self._is_settled = look, self._store.settled()
        if self._is_settled is not None:
            self._looked = workers.Call(look)

    def _saw(self):
        """Note that one more object is known by its identity, or absent; after the last one, look at the document."""
        with self._gate:
            self._n_unseen -= 1
            if self._n_unseen or self._is_void or self._look is None or self._is_settled is not None:
                return
        self._looked = workers.Call(self._look)

    def saw_current(self) -> bool:
        """Return whether the look has shown that all objects that were read belong to the document of the view."""
        if self._looked is None or (self._is_void if self._is_settled is None
                                    else self._lacks or not self._is_settled()):
            return False
        with contextlib.suppress(StoreError):
            return self._looked.wait()
        return False


def _whole(limit):
    """Return the byte range of a whole object of at most `limit` bytes; None if its size has no limit."""
    # One byte more than the limit reveals a value that is too long, without reading more of it.
    return None if limit >= NO_LIMIT else AtMost(limit + 1)


def _fetch_whole(feed, source, key, task):
    """Pass a shard; return whether there is one."""
    limit = feed.limit(task)
    found = source.get_with_identity(key, _whole(limit))
    if found is None:
        feed.read([task], [None])
    elif len(found[0]) <= limit:
        feed.read([task], [found[0]])
    elif found[1] is None:
        feed.read([task], [source.get(key)])
    else:
        # Reads only bytes of chunks in the index, so gaps of any size cost no memory.
        feed.read_blocks(task, *_blocks(feed, source, key, task, found[1], found[1][2], []))
    return found is not None


def _blocks(feed, source, key, task, identity, size, blocks, max_block=MAX_BLOCK):
    """Return the size of a shard, and blocks with all needed parts of it; None if the parts do not fit together."""
    while wanted := feed.wanted(task, size, blocks):
        ranges = merged(wanted, MAX_GAP if source.n_requests else 0, max_block)
        found = source.get_parts_with_identity(key, [Within((start, stop - start)) for start, stop, _ in ranges])
        if any([one is None or one[1] != identity for one in found]):
            raise _Replaced
        for (start, stop, _), (block, _) in zip(ranges, found, strict=True):
            if len(block) != stop - start:
                if identity is None:
                    return None
                raise StoreError(f"{key}: the store gave {len(block)} bytes of {stop - start} that were asked for from "
                                 f"byte {start} on", key=key)
            blocks.append((start, block))
    return None if wanted is None else (size, blocks)


class PlanWriter:
    """Replaces the objects of a plan that writes; one call is the work of one thread.

    Parameters
    ----------
    binding : ArrayBinding
        Binding of the array.
    view : View
    plan : WritePlan
    locks : ObjectLocks or None
    check : callable, optional
        See `ArrayBinding.write_once`.
    is_reserved : bool
        The elements lie in rows that were reserved for them, where requests of an append that has failed may still be
        carried out.
    """

    def __init__(self, binding: ArrayBinding, view: ArrayView, plan: WritePlan, locks: ObjectLocks | None,
                 check: Callable[[], None] | None = None, is_reserved: bool = False) -> None:
        self._check = check
        self._is_reserved = is_reserved
        self._store = binding.store
        self._prefix = binding.prefix
        self._options = binding.options
        self._chain = view.chain
        self._plan = plan
        self._locks = locks
        self._binding, self._view = binding, view
        self._gate, self._n_asked, self._is_current = allocate_lock(), 0, True
        self._existing = None
        if plan.is_fill and self._store.n_requests and self._store.lists and plan.n_left > FEW_ERASED:
            # A listing names hundreds of objects in the time of one erasure. What others write from now on is later.
            keys = set(islice(self._store.list_prefix(self._prefix), LISTED * plan.n_left))
            self._existing = keys if len(keys) < LISTED * plan.n_left else None

    def __call__(self, main: bool) -> None:
        plan = self._plan
        feed = Feed(plan, self._chain.step_names, main)
        while (task := plan.begin_task()) >= 0:
            is_covered = feed.is_covered(task)
            if is_covered and self._existing is not None and self._prefix + feed.key(task) not in self._existing:
                continue     # all of it is the fill value
            # A covered object does not depend on the old one, so it is encoded before the lock is taken.
            encoded = feed.encode(task, self._plan.keep_filled) if is_covered else None
            if self._locks is None:
                self._put(feed, task, is_covered, encoded)
                continue
            try:
                with self._locks.object(feed.key(task), plan):
                    if self._has_its_document():
                        self._put(feed, task, is_covered, encoded)
                    else:
                        plan.leave_stale(task)
            except (FileNotFoundError, Stopped):
                plan.leave_stale(task)

    def _has_its_document(self):
        """Return whether the document is still that of the view, while an object is held."""
        binding, view = self._binding, self._view
        if not (self._store.swaps or view.identity is None):
            return binding.is_current(view)
        # Checking the document costs as much as an object: one check for many objects, before the first of them is
        # replaced. With `swaps` there is one at the end, too.
        with self._gate:
            if self._is_current and self._n_asked % N_UNSEEN == 0:
                self._is_current = binding.is_current(view)
            self._n_asked += 1
            return self._is_current

    def _put(self, feed, task, is_covered, encoded):
        """Replace an object by `encoded`; if it is not covered, by the old object with the new elements."""
        store, key = self._store, self._prefix + feed.key(task)
        if is_covered and self._is_reserved and store.swaps and self._options.lock:
            # On conditions, as a request without one, which is carried out later, would undo a later append.
            if encoded is None or not store.set_if_not_exists(key, encoded):
                swap(store, key, _whole(feed.limit(task)), lambda value, identity: (
                    encoded if encoded is not None else UNCHANGED if value is None else feed.encode(task, True)))
            return
        if not is_covered and store.swaps and self._options.lock:
            # Never erased: services have no conditional erase.
            swap(store, key, _whole(feed.limit(task)),
                 lambda value, identity: self._checked(value, self._merged(feed, task, key, value, identity, True)))
            return
        if not is_covered:
            encoded = self._changed(feed, task, key)
        if encoded is None:
            store.erase(key)
        elif encoded is not UNCHANGED:
            store.set(key, encoded)

    def _checked(self, old, new):
        if self._check is not None and new is not UNCHANGED:
            if old == new:
                return UNCHANGED
            self._check()
        return new

    def _changed(self, feed, task, key):
        """Return a held object with the new elements."""
        part, keeps_filled = _whole(feed.limit(task)), self._plan.keep_filled
        # Reads only bytes of chunks in the index, so gaps of any size cost no memory.
        if not self._chain.is_partial:
            return self._merged(feed, task, key, self._store.get(key, part), None, keeps_filled)
        for _ in range(MAX_REPLACED):
            found = self._store.get_with_identity(key, part) or (None, None)
            with contextlib.suppress(_Replaced):
                return self._merged(feed, task, key, *found, keeps_filled)
        raise StoreError(f"{key}: it was replaced by another object during each of {MAX_REPLACED} reads in parts",
                         key=key)

    def _merged(self, feed, task, key, old, identity, keeps_filled):
        """Return an object with the new elements. `old` may be cut off behind the maximum size of its chunks."""
        if old is None or len(old) <= feed.limit(task):
            return feed.merge(task, old, keeps_filled)
        if not self._chain.is_partial:
            return feed.merge(task, old, keeps_filled, self._store.getsize(key))
        if identity is None:
            return feed.merge(task, self._store.get(key), keeps_filled)
        # Adjacent chunks are read together.
        blocks = _blocks(feed, self._store, key, task, identity, identity[2], [], identity[2])
        return feed.merge_blocks(task, *blocks, keeps_filled)


def swap(store: Store, key: str, byte_range: ByteRange,
         changed: Callable[[bytes | None, Identity | None], Any], is_document: bool = False) -> None:
    """Replace a value by ``changed(value, identity)`` with compare-and-swap, until no other writer was faster.

    `value` is the part of the value in `byte_range`, or None if there is no value. `changed` may return UNCHANGED.
    `is_document`: it is JSON, and gets a stamp.

    Raises
    ------
    LockError
        Other writers were faster `MAX_SWAPS` times, or the service cannot compare.
    """
    for i in range(MAX_SWAPS):
        found, identity = store.get_with_identity(key, byte_range) or (None, None)
        try:
            value = changed(found, identity)
        except _Replaced:
            continue
        # The latter if an attempt was made twice on the way, and refused the second time.
        if value is UNCHANGED or value == found:
            return
        if found is not None and identity is None:
            raise LockError(f"{key} has no tag (ETag), so a change by another writer would go unnoticed; "
                            "lock=None writes anyway", key=key)
        done = (put_stamped(store, key, stamped(value, found), identity) if is_document else
                store.set_if_same(key, value, identity))
        if done is not None:
            return
        pause(i)
    raise LockError(f"{key}: other writers replaced it during each of {MAX_SWAPS} attempts to change it", key=key)


def pause(i: int) -> None:
    """Wait before attempt number `i`. Writers that lost at the same time try again at different times."""
    import random
    import time

    time.sleep(random.random() * min(MAX_PAUSE, 0.002 * 2**i))
