"""What a forked child must not take over: a lock that another thread of its parent held would never be let go there."""
import os
from weakref import WeakSet

_owners = WeakSet()


def renew_in_children(owner):
    """Have `owner._renew_locks()` called in each process that is forked from now on, as long as the owner lives."""
    _owners.add(owner)


def _renew():
    for owner in list(_owners):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
