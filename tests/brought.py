"""A switch for tests: objects in files are brought to the kernel, as those of memory and of services are.

The kernel would open them itself. What it does with the bytes is the same, and so must elements and errors be.
"""
import os

from zcore.engine.binding import ArrayBinding
from zcore.stores.base import OBJECTS

# Processes that a test starts are told by their environment.
everywhere = os.environ.get("BROUGHT") == "1"

_locate = ArrayBinding._locate


def _located(self):
    found = _locate(self)
    return OBJECTS if everywhere else found


ArrayBinding._locate = _located
