"""Integers, truth values and sizes in bytes as callers give them. A leaf: every module may import it."""
from __future__ import annotations

import re
from operator import index

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from typing import Any, SupportsIndex

_NBYTES = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([kKMGT]?)(i?)B?", re.ASCII)
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_nbytes(text: str, name: str | None = None) -> int:
    """Return the number of bytes of a size such as ``"4 MB"`` (10**6 bytes each), ``"512 KiB"`` or ``"65536"``.

    Raises : ValueError, if `text` is no size or less than a byte; with `name` in the message, if there is one.

    >>> parse_nbytes("1.5 MiB")
    1572864
    """
    match, where = _NBYTES.fullmatch(text.strip()), "" if name is None else f"{name}: "
    if match is None or (match[3] and not match[2]):
        raise ValueError(f"{where}expected a size such as '4 MB' or '512 KiB', found {text!r:.60}")
    nbytes = int(float(match[1]) * (1024 if match[3] else 1000) ** _POWERS[match[2]])
    if nbytes < 1:
        raise ValueError(f"{where}expected a size of at least one byte, found {text!r}")
    return nbytes


def integer_of(value: Any) -> int | None:
    """Return an integer, also one of NumPy, as an int; None for anything else, and for True and False.

    >>> integer_of(3), integer_of(3.0), integer_of(True)
    (3, None, None)
    """
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def as_bool(value: object, keyword: str, allowed: str = "True or False") -> bool:
    """Return a keyword's value if it is True or False; `allowed` is the text for messages.

    Raises : TypeError, for anything else, because Python would take ``lock="no"`` as true.
    """
    if value is True or value is False:
        return value
    from numpy import bool_  # the command's help does not need it

    if not isinstance(value, bool_):
        raise TypeError(f"{keyword} is {value!r:.60}, expected {allowed}")
    return bool(value)


def as_optional_bool(value: object, keyword: str) -> bool | None:
    """Return a keyword's value if it is True, False or None. Raises : TypeError, for anything else."""
    return None if value is None else as_bool(value, keyword, "True, False or None")


def room_of(value: SupportsIndex | str, name: str) -> int:
    """Return a number of bytes, 0 or more, from an integer or a size as for `parse_nbytes`.

    Raises : TypeError or ValueError, with `name` in the message.

    >>> room_of("64 MB", "cache"), room_of(0, "cache")
    (64000000, 0)
    """
    if isinstance(value, str):
        nbytes = 0 if value.strip() == "0" else parse_nbytes(value, name)
    elif (nbytes := integer_of(value)) is None:
        raise TypeError(f"{name} is {value!r:.60}, expected a number of bytes or a size such as '64 MB'")
    if not 0 <= nbytes < 2**62:
        raise ValueError(f"{name} is {value!r:.60}, expected a number of bytes, 0 or more and less than 2**62")
    return nbytes
