"""Base class of the frozen values: equal if their fields are equal, hashable, printable, picklable, immutable.

A standard frozen dataclass does the same, but importing `dataclasses` costs more than importing the whole of zcore's
model.
"""
from __future__ import annotations

from functools import partial
from itertools import islice
from types import MethodType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Never, Self, TypeVar

    _Item = TypeVar("_Item")

TEXT = (str, bytes, bytearray)  # sequences in Python, but never a list of lengths


def text_of(value: Any, form: Callable[[Any], str] = repr) -> str:
    """Return ``form(value)``; for a structure that NumPy cannot print, its bytes; of a long integer its length.

    To print a structure, NumPy makes arrays of its fields. Nested array fields may have more than 64 dimensions
    together, which NumPy allows in a type but not in an array.
    """
    try:
        return form(value)
    except ValueError:
        if not hasattr(value, "tobytes"):
            return f"a {type(value).__name__} with an integer of more digits than Python prints"
        raw = value.tobytes().hex()
        return f"bytes {raw if len(raw) <= 80 else raw[:77] + '...'}"


def first_of(values: Iterable[_Item], n: int) -> tuple[_Item, ...]:
    """Return the values as a tuple. Of a range, which may not fit into memory, or a generator take only n + 1.

    Raises : TypeError, for a set, whose values are in any order.

    >>> first_of(range(10**9), 2)
    (0, 1, 2)
    """
    if type(values) is tuple:
        return values
    if isinstance(values, (set, frozenset)):
        raise TypeError(f"expected one value for each dimension in turn, found {values!r:.60}, which has no order")
    return tuple(islice(values, n + 1))


def copied(value: Any) -> Any:
    """Return a copy of a JSON value, without the notes on each list that `copy.deepcopy` takes."""
    if isinstance(value, dict):
        return {name: copied(part) for name, part in value.items()}
    if isinstance(value, list):
        return [copied(part) for part in value]
    return tuple(map(copied, value)) if isinstance(value, tuple) else value


def check_kind(value: object, keyword: str, kinds: tuple[type, ...], allowed: str) -> None:
    """Raise TypeError unless a keyword's value is None or of one of some kinds; `allowed` is the text for messages."""
    if value is not None and not isinstance(value, kinds):
        raise TypeError(f"{keyword} is {value!r:.60}, expected {allowed}")


def _itself(value):
    return value


# Returns a key of a cache that equals only the key of the same object; the key, when it is called, returns the object.
# Equal values may differ in text, as 1 and True. Methods are equal if they are bound to the same object.
IdentityKey: Callable[[Any], Callable[[], Any]] = partial(MethodType, _itself)


class Value:
    """A value with the fields named in `_fields`. The constructor has the same parameters in the same order."""

    __slots__: tuple[str, ...] = ()
    _fields: tuple[str, ...] = ()

    def __init__(self, *parts: Any) -> None:
        set_field = object.__setattr__
        for name, part in zip(self._fields, parts, strict=True):
            set_field(self, name, part)

    def __setattr__(self, name: str, value: Any) -> Never:
        raise AttributeError(f"{type(self).__name__} is frozen; replace({name}=...) makes a changed copy")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __hash__(self) -> int:
        return hash(self.__reduce__())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text_of(getattr(self, name))}' for name in self._fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self._fields)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values for the named fields; the constructor checks them."""
        unknown = changes.keys() - set(self._fields)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return type(self)(**{name: changes.get(name, getattr(self, name)) for name in self._fields})
