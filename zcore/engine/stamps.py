"""Documents at services, where the answer to a request may be lost.

A document is put on the condition that nobody else was faster. If the answer is lost, only the document can tell
whether that was done, and another writer may have replaced it since. So each document has stamps behind its text: lines
of 64 blanks and tabs, random bits in white space that every reader of JSON skips. The first one is a tab if the change
cuts off elements. The last line is the stamp of the last change, the lines above are those of changes before it.

A change whose answer is lost is made again on the same condition, until an answer comes. If the first request is
carried out later, its condition does not hold any more: as stamps differ, so do all tags, even those that a service
computes from the bytes.
"""
from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING

from zcore.errors import LockError, StoreError
from zcore.formats.json_documents import MAX_NBYTES
from zcore.stores.base import AtMost

if TYPE_CHECKING:
    from collections.abc import Callable

    from zcore.stores.base import Identity, Store

MAX_KEPT = 8          # stamps in a document
MAX_TRIES = 4         # requests for one change, if no answer comes
MAX_SECONDS = 30      # until the last of them
OVERTAKEN = 0, 0, 0, 0, 0     # the identity of a document that was put, and that another writer has replaced since
_LENGTH = 64
_BITS = bytes.maketrans(b"01", b" \t")


def _stamps(raw):
    return [line for line in raw[len(raw.rstrip(b" \t\n")):].split(b"\n") if len(line) == _LENGTH]


def stamped(raw: bytes, old: bytes | None = None, *, cuts: bool = False) -> bytes:
    """Return a document with a new stamp, and with the stamps of the document `old` that it replaces.

    `cuts`: the change cuts off elements.
    """
    new = f"{int(cuts)}{int.from_bytes(os.urandom(_LENGTH // 8)):0{_LENGTH}b}"[:_LENGTH].encode().translate(_BITS)
    return b"\n".join((raw, *_stamps(old or b"")[1 - MAX_KEPT:], new))


def moved(raw: bytes) -> bytes:
    """Return the document of a node that was moved: not even where the node has been before is it the same as then."""
    return stamped(raw.rstrip(b" \t\n"), raw, cuts=True)


def first(store: Store, raw: bytes) -> bytes:
    """Return the first document of a node as it is stored: no older document has the same bytes."""
    return stamped(raw) if store.swaps else raw


def follows(raw: bytes, old: bytes) -> bool:
    """Return whether a document may be that of the same node as `old`, changed since: it has the last stamp of `old`.

    No change since has cut off elements, which may have been read before they were erased, and may be there again. A
    document without stamps, by another program or in a store without conditions, tells only whether its text is another
    one.
    """
    known, found = _stamps(old), _stamps(raw)
    if not known:
        return raw == old
    return known[-1] in found and b"\t" not in [stamp[:1] for stamp in found[found.index(known[-1]) + 1:]]


def put_stamped(store: Store, key: str, value: bytes, identity: Identity | None,
                put: Callable[[], Identity | bool | None] | None = None) -> Identity | None:
    """Replace a document by `value`, which `stamped` has made, if it still has `identity`; see `Store.set_if_same`.

    `put` replaces the call of `Store.set_if_same`. The result may be `OVERTAKEN`.

    Raises : StoreError, if no answer came, or the document does not tell any more whether it was `value`.
    """
    if len(value) > MAX_NBYTES:
        return store.set_if_same(key, value.rstrip(b" \t\n"), identity)
    from zcore.engine.requests import pause

    *before, mine = _stamps(value)
    lost, end = None, monotonic() + MAX_SECONDS
    for i in range(MAX_TRIES):
        try:
            done = store.set_if_same(key, value, identity) if put is None else put()
            if done:
                return OVERTAKEN if done is True else done
            # Also a request that is made twice, by a library or a proxy, is refused although it was carried out.
            found, now = store.get_with_identity(key, AtMost(MAX_NBYTES + 1)) or (b"", None)
        except LockError:
            raise
        except StoreError as exc:
            lost = lost or exc
            if monotonic() > end:
                break
            pause(i)
            continue
        stamps = _stamps(found)
        if mine in stamps:
            return now if found == value and now is not None else OVERTAKEN
        if lost is not None and len(stamps) == MAX_KEPT and not (before and before[-1] in stamps):
            break     # there were more changes since than it has stamps
        return None
    raise lost


def put_new(store: Store, key: str, raw: bytes) -> bytes | None:
    """Put the first document of a node, and return it as it is stored; None if there is one already.

    See `Store.set_if_not_exists`.
    """
    value = first(store, raw)
    if not store.swaps:
        return raw if store.set_if_not_exists(key, raw) else None
    return None if put_stamped(store, key, value, None, lambda: store.set_if_not_exists(key, value)) is None else value
