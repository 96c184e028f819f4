"""The base of the frozen values: equal when their fields are, hashable, printable, picklable, never changed.

A standard frozen dataclass says the same, but importing `dataclasses` costs more than importing the whole of zcore's
model, and its generated constructor is slower than these few lines.
"""

import numpy as np

TEXT = (str, bytes, bytearray)  # sequences to Python, and yet never a list of lengths


def text_of(value, form=repr):
    """Return ``form(value)``; of a structure that NumPy cannot print its bytes.

    Printing one, NumPy makes arrays of its fields. Of arrays in arrays these may have more than 64 dimensions together,
    which no array of NumPy has, although the type is one.
    """
    try:
        return form(value)
    except ValueError:
        raw = value.tobytes().hex()
        return f"bytes {raw if len(raw) <= 80 else raw[:77] + '...'}"


def as_bool(value, keyword, allowed="True or False"):
    """Return a keyword's value when it is True or False; `allowed` is what messages name.

    Raises : TypeError, for anything else: of ``lock="no"`` Python makes True.
    """
    if value is True or value is False:
        return value
    if not isinstance(value, np.bool_):
        raise TypeError(f"{keyword} is {value!r:.60}, expected {allowed}")
    return bool(value)


class Value:
    """A value with the fields named in `_fields`, which are also the constructor's parameters, in that order."""

    __slots__ = ()
    _fields = ()

    def __setattr__(self, name, value):
        raise AttributeError(f"{type(self).__name__} is frozen; replace({name}=...) makes a changed copy")

    def __delattr__(self, name):
        raise AttributeError(f"{type(self).__name__} is frozen")

    def _identity(self):
        """Return the hashable parts that two equal values share."""
        return tuple(getattr(self, name) for name in self._fields)

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __hash__(self):
        return hash((type(self), self._identity()))

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={text_of(getattr(self, name))}' for name in self._fields)})"

    def __reduce__(self):
        return type(self), tuple(getattr(self, name) for name in self._fields)

    def replace(self, **changes):
        """Return a copy in which the named fields have other values; the constructor checks them."""
        unknown = changes.keys() - set(self._fields)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return type(self)(**{name: changes.get(name, getattr(self, name)) for name in self._fields})
