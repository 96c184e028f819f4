"""New locks in forked children: no thread of a child would release a lock that another thread of its parent held."""
import os
from weakref import WeakSet

_owners = WeakSet()


def renew_in_children(owner):
    """Have `owner._renew_locks()` called in each child that is forked while the owner lives."""
    _owners.add(owner)


def _renew():
    for owner in list(_owners):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
