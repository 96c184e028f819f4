"""New locks in forked children: no thread of a child would release a lock that another thread of its parent held."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from typing import Protocol

    class Owner(Protocol):
        """An object with locks."""

        def _renew_locks(self) -> None: ...

_owners: WeakSet[Owner] = WeakSet()


def renew_in_children(owner: Owner) -> None:
    """Have `owner._renew_locks()` called in each child that is forked while the owner lives."""
    _owners.add(owner)


def _renew():
    for owner in list(_owners):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
