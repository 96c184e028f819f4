"""Objects asked of a store for the kernel, and put there: for stores whose values are in no files.

Only the kernel knows what the bytes of an object mean (`zcore.kernel.plan.feed`). This module says which objects are
requested, and which of them together. It replaces an object under its lock, and where the store compares, on the
condition that no other writer has replaced it meanwhile.
"""
import contextlib
from _thread import allocate_lock  # of threading, without its import time
from itertools import islice

from zcore.engine.views import is_trusted
from zcore.errors import LockError, StoreError
from zcore.kernel.io.holds import Stopped
from zcore.kernel.plan.feed import UNCHANGED, Feed
from zcore.stores.base import Extents
from zcore.stores.ranges import MAX_BLOCK, MAX_GAP, merged

# Decoded bytes of objects that are brought to the kernel by one call, where the store answers at once.
TOGETHER_NBYTES = 1 << 18
MAX_TOGETHER = 64
MAX_REPLACED = 8       # times that parts of a shard turn out to be those of several before it is read otherwise
MAX_SWAPS = 64         # times that an object is read to be changed before others have replaced it
MAX_PAUSE = 0.25       # seconds between two of them


class _Replaced(Exception):
    """Of a shard that is read in parts, the next part is another object's."""


class Reader:
    """Brings the objects of a plan that reads; a call of it is what one thread does.

    Parameters
    ----------
    store : Store
    prefix : str
        Of the array's keys.
    view : View
        Of the array.
    plan : ReadPlan
    chunks : ChunkCache or None
        The one that the plan keeps chunks in.
    tasks : list of int, optional
        Only these, which nobody takes from the plan.
    """

    def __init__(self, store, prefix, view, plan, chunks, tasks=None):
        self._store = store
        self._prefix = prefix
        self._plan = plan
        self._chain = view.chain
        self._chunks = chunks
        self._take = plan.take_some if tasks is None else _taker(plan, iter(tasks))
        self._gathered = Gathered(store, prefix, plan, self._take, view.chain.max_encoded)
        # The same for all objects, where these are of one shape.
        self._limit = view.chain.max_encoded if view.metadata.edges is None else None

    def __call__(self, main):
        feed = Feed(self._plan, self._chain.step_names, main)
        if self._gathered.helps:
            while batch := self._gathered.take():
                self._bring(feed, batch[0], batch[1]())
            return
        n = 1
        if not self._store.n_requests:
            n = max(1, min(MAX_TOGETHER, TOGETHER_NBYTES // max(1, self._plan.task_nbytes)))
        while tasks := self._take(n):
            self._bring(feed, tasks, self._store)

    def _bring(self, feed, tasks, source):
        if _is_in_parts(self._chain):
            for task in tasks:
                if self._plan.stopped:
                    return
                _bring_shard(feed, source, self._prefix + feed.key(task), task)
        elif self._chunks is not None:
            for task in tasks:
                if self._plan.stopped:
                    return
                self._bring_kept(feed, task, source)
        else:
            values = []
            for task in tasks:
                key = self._prefix + feed.key(task)
                limit = feed.limit(task) if self._limit is None else self._limit
                # One byte more than there may be: a value of any size costs no more memory than that.
                value = source.get(key, (0, limit + 1))
                if value is not None and len(value) > limit:
                    feed.read_one(task, value, source.getsize(key))
                    return
                values.append(value)
            feed.read(tasks, values)

    def _bring_kept(self, feed, task, source):
        key = self._prefix + feed.key(task)
        identity = source.identity(key)
        if identity is not None and feed.find(task, identity):
            return
        limit = feed.limit(task) if self._limit is None else self._limit
        value, identity = source.get_with_identity(key, (0, limit + 1)) or (None, None)
        if value is None:
            feed.read([task], [None])
        else:
            feed.read_one(task, value, source.getsize(key) if len(value) > limit else None, identity)


def _taker(plan, tasks):
    """Return what `Plan.take_some` is, for tasks that were taken before."""
    return lambda n: [] if plan.stopped else list(islice(tasks, n))


def _is_in_parts(chain):
    """Whether objects are shards whose chunks can be found by an index."""
    return chain.is_partial and not chain.compressors


def _bring_shard(feed, source, key, task):
    """Bring a shard: as a whole, or its index and the chunks that are selected, where these are few."""
    is_few = feed.is_few(task)
    limit = feed.limit(task)
    for i in range(2 * MAX_REPLACED):
        try:
            # Some services have tags that differ without a change: what is read whole needs none.
            if is_few and i < MAX_REPLACED and (found := _index_of(feed, source, key, task)) is not None:
                feed.read_blocks(task, *_blocks(feed, source, key, task, *found))
                return
            found = source.get_with_identity(key, (0, limit + 1))
            if found is None:
                feed.read([task], [None])
            elif len(found[0]) <= limit:
                feed.read([task], [found[0]])
            elif found[1] is None:
                feed.read([task], [source.get(key)])
            else:
                # No entry names all of its bytes: gaps of any size cost no memory.
                feed.read_blocks(task, *_blocks(feed, source, key, task, found[1], []))
            return
        except _Replaced:
            continue
    raise StoreError(f"{key}: it was replaced by another object each of {2 * MAX_REPLACED} times that it was read in "
                     "parts", key=key)


def _index_of(feed, source, key, task):
    """Return the identity of a shard and its index, a list of blocks; None where it is to be read as a whole."""
    part = feed.index_part(task)
    found = source.get_with_identity(key, part)
    if found is None or found[1] is None or not is_trusted(found[1]):
        return None
    index, identity = found
    return identity, [(0 if part[0] == 0 else max(0, identity[2] - part[1]), index)]


def _blocks(feed, source, key, task, identity, blocks, max_block=MAX_BLOCK):
    """Return the size of a shard, and blocks in which all lies that is needed of it."""
    size = identity[2]
    while wanted := feed.wanted(task, size, blocks):
        ranges = merged(wanted, MAX_GAP if source.n_requests else 0, max_block)
        found = source.get_parts_with_identity(key, [(start, stop - start) for start, stop in ranges])
        if any([one is None or one[1] != identity for one in found]):
            raise _Replaced
        for (start, stop), (block, _) in zip(ranges, found, strict=True):
            if len(block) != stop - start:
                raise StoreError(f"{key}: the store gave {len(block)} bytes of {stop - start} that were asked for from "
                                 f"byte {start} on", key=key)
            blocks.append((start, block))
    return size, blocks


class Writer:
    """Replaces the objects of a plan that writes; a call of it is what one thread does.

    Parameters
    ----------
    binding : ArrayBinding
        Of the array.
    view : View
    plan : WritePlan
    locks : ObjectLocks or None
    stands : callable
        ``stands()`` looks whether the document is still that of the view; asked while an object is held.
    """

    def __init__(self, binding, view, plan, locks, stands):
        self._store = binding.store
        self._prefix = binding.prefix
        self._options = binding.options
        self._chain = view.chain
        # No entry of an index names all bytes of a shard: gaps of any size cost no memory.
        self._is_in_parts = _is_in_parts(view.chain)
        self._plan = plan
        self._locks = locks
        self._stands = stands

    def __call__(self, main):
        plan = self._plan
        feed = Feed(plan, self._chain.step_names, main)
        while (task := plan.take()) >= 0:
            is_covered = feed.is_covered(task)
            # What nobody else has a part in is made before anybody has to wait.
            encoded = feed.encode(task, self._plan.keep_filled) if is_covered else None
            if self._locks is None:
                self._put(feed, task, is_covered, encoded)
                continue
            try:
                with self._locks.object(feed.key(task), plan):
                    if self._stands():
                        self._put(feed, task, is_covered, encoded)
                    else:
                        plan.leave_stale(task)
            except (FileNotFoundError, Stopped):
                plan.leave_stale(task)

    def _put(self, feed, task, is_covered, encoded):
        """Replace an object by `encoded`, or where it is not covered by what a change makes of it."""
        store, key = self._store, self._prefix + feed.key(task)
        if not is_covered and store.swaps and self._options.lock:
            # Never erased: what another one writes meanwhile would go as well.
            swap(store, key, (0, feed.limit(task) + 1),
                 lambda value, identity: self._merged(feed, task, key, value, identity, True))
            return
        if not is_covered:
            encoded = self._changed(feed, task, key)
        if encoded is None:
            store.erase(key)
        elif encoded is not UNCHANGED:
            store.set(key, encoded)

    def _changed(self, feed, task, key):
        """Return what a change makes of an object that is held."""
        part, keeps_filled = (0, feed.limit(task) + 1), self._plan.keep_filled
        if not self._is_in_parts:
            return self._merged(feed, task, key, self._store.get(key, part), None, keeps_filled)
        for _ in range(MAX_REPLACED):
            found = self._store.get_with_identity(key, part) or (None, None)
            with contextlib.suppress(_Replaced):
                return self._merged(feed, task, key, *found, keeps_filled)
        raise StoreError(f"{key}: it was replaced by another object each of {MAX_REPLACED} times that it was read in "
                         "parts", key=key)

    def _merged(self, feed, task, key, old, identity, keeps_filled):
        """Return what a change makes of an object, `old` being no more of it than its chunks can have."""
        if old is None or len(old) <= feed.limit(task):
            return feed.merge(task, old, keeps_filled)
        if not self._is_in_parts:
            return feed.merge(task, old, keeps_filled, self._store.getsize(key))
        if identity is None:
            return feed.merge(task, self._store.get(key), keeps_filled)
        # Chunks that touch each other are carried over as a whole.
        blocks = _blocks(feed, self._store, key, task, identity, [], identity[2])
        return feed.merge_blocks(task, *blocks, keeps_filled)


def swap(store, key, byte_range, changed):
    """Replace a value by ``changed(value, identity)``, made of what there is, until nobody has replaced it in between.

    `value` is the part of it that `byte_range` says, or None; what is returned may be UNCHANGED.

    Raises
    ------
    LockError
        Others were faster `MAX_SWAPS` times, or the service has no means to compare.
    """
    for i in range(MAX_SWAPS):
        found, identity = store.get_with_identity(key, byte_range) or (None, None)
        try:
            value = changed(found, identity)
        except _Replaced:
            continue
        if value is UNCHANGED:
            return
        if found is not None and identity is None:
            raise LockError(f"{key} has no tag (ETag) by which a change in between would be seen; lock=None writes "
                            "nonetheless", key=key)
        if store.set_if_same(key, value, identity) is not None:
            return
        import random
        import time

        # Each at another time than those that were as late.
        time.sleep(random.random() * min(MAX_PAUSE, 0.002 * 2**i))
    raise LockError(f"{key}: others have replaced it each of {MAX_SWAPS} times that it was read to be changed", key=key)


# Tasks of which one looks whether their objects lie side by side.
MAX_GATHERED = 1 << 16


class Gathered:
    """Tasks whose objects are read together, where the store has any to put together."""

    def __init__(self, store, prefix, plan, take, limit):
        self._store = store
        self._prefix = prefix
        self._plan = plan
        self._take = take
        self._limit = limit
        self._lock = allocate_lock()
        self._pending = []
        # Only references to remote targets have them.
        located = store.locate(prefix) if store.n_requests else None
        self._batches = located.batches if type(located) is Extents else None
        self.helps = self._batches is not None

    def take(self):
        """Return tasks and what reads their objects, or None when none is left."""
        with self._lock:
            if not self._pending:
                tasks = self._take(MAX_GATHERED)
                keys = [self._prefix + self._plan.task(task)[0] for task in tasks]
                # Taken from the end: those that a store has put in front are read first.
                self._pending = [([tasks[i] for i in batch.numbers], batch.load)
                                 for batch in reversed(self._batches(keys, self._limit))]
            return self._pending.pop() if self._pending and not self._plan.stopped else None
