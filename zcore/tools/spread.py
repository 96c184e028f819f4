"""Work of a tool that is spread over the workers of a client, such as `distributed.Client`.

A client has ``submit(function, *arguments)``, and what that returns has ``add_done_callback``, ``result`` and
``cancel``; the executors of `concurrent.futures` have them, too. Workers get handles by pickle, and open the same files
or services. Pieces of work may be done twice, as a scheduler repeats what was lost with a worker: so each piece writes
whole objects, the same ones every time.
"""
from __future__ import annotations

import contextlib
import os
from _queue import SimpleQueue
from typing import TYPE_CHECKING

from zcore.errors import StoreError
from zcore.stores.base import Store
from zcore.stores.openers import as_path, named_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TypeVar

    _Piece = TypeVar("_Piece")
    _Result = TypeVar("_Result")

MAX_PENDING = 4096       # pieces that the client holds at once


def check_client(client: object) -> None:
    """Raise TypeError unless `client` can be given work."""
    if not callable(getattr(client, "submit", None)):
        raise TypeError(f"client is {client!r:.80}, expected a distributed.Client, or another object with submit")


def check_shared(place: object, what: str) -> None:
    """Raise ValueError if workers in other processes cannot open a place.

    Parameters
    ----------
    place : object
        What `zcore.open` takes, or a store.
    what : str
        "source" or "destination": for the message.
    """
    if (path := as_path(place)) is not None:
        if what == "destination" and "://" not in path and named_kind(path) is not None and not os.path.isdir(path):
            raise ValueError(f"client: the destination {path} is one file, which several workers cannot "
                             "write; copy to a directory or a service first")
        return
    store = place if isinstance(place, Store) else getattr(place, "store", None)
    if not isinstance(store, Store) or store.uri is None:
        raise ValueError(f"client: workers in other processes cannot open the {what} {place!r:.200}; expected a path, "
                         "a URL, or a store that has one")


def spread(client: Any, function: Callable[[_Piece], _Result],
           pieces: Iterable[_Piece]) -> Iterator[tuple[_Piece, _Result]]:
    """Call ``function(piece)`` on workers for each piece; yield (piece, result), in the order in which they end.

    The first failure is raised, and what has not begun is not done then; nor is it when the caller stops. What an
    executor has begun is waited for; a `distributed.Client` does not tell.

    Parameters
    ----------
    client : object
    function : callable
        It is pickled, as are the pieces, its results and its exceptions.
    pieces : iterable
    """
    ended = SimpleQueue()
    # Clients take equal calls for one.
    token = os.urandom(8)
    waiting = {}
    numbered = enumerate(pieces)
    try:
        while True:
            while len(waiting) < MAX_PENDING and (found := next(numbered, None)) is not None:
                number, piece = found
                future = client.submit(_call, function, piece, token, number)
                waiting[number] = piece, future
                future.add_done_callback(lambda future, number=number: ended.put(number))
            if not waiting:
                return
            number = ended.get()
            piece, future = waiting.pop(number)
            yield piece, future.result()
    finally:
        # An executor does not stop what has begun, and what that writes must not come after its caller has cleaned up.
        for future in [future for _, future in waiting.values() if future.cancel() is False]:
            with contextlib.suppress(Exception):
                future.result()


def _call(function, piece, token, number):
    return function(piece)


def another_copy(place: str) -> StoreError:
    """Return the error of a worker that finds another copy where its own was being built."""
    return StoreError(f"{place}: another copy has taken this place meanwhile", key=place)
