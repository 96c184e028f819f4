"""Values of a tree whose tag zcore does not interpret: plain data, and the tag beside it.

A tag names a type of the program that wrote the file. The value behaves as the dict, list or text that it is, and is
written again with its tag.
"""
from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

STANDARD_VERSION = "1.6.0"  # of the standard whose tags are written
STSCI = "tag:stsci.edu:asdf/"
YAML = "tag:yaml.org,2002:"
MAX_DEPTH = 1000  # of lists and mappings in a tree, read or written

_MAX_SHOWN = 8  # items of a list or mapping in a message


def shown(value: object) -> str:
    """Return a value of a tree as messages show it: in short, and lists and mappings one level deep.

    A list that is shared may stand for 2**60 items in a text of a few lines, so `repr` may have no end.

    >>> shown([1, [2, 3]]), shown({"a": {}})
    ('[1, [...]]', "{'a': {...}}")
    """
    if isinstance(value, dict):
        members = [f"{_shown_item(name)}: {_shown_item(value[name])}" for name in islice(value, _MAX_SHOWN)]
        return f"{{{', '.join(members)}{', ...' if len(value) > _MAX_SHOWN else ''}}}"
    if isinstance(value, list | tuple):
        items = map(_shown_item, value[:_MAX_SHOWN])
        return f"[{', '.join(items)}{', ...' if len(value) > _MAX_SHOWN else ''}]"
    return _shown_item(value)


def _shown_item(value):
    """Return a scalar as messages show it, and a sign for any other value."""
    if isinstance(value, dict):
        return "{...}"
    if isinstance(value, list | tuple):
        return "[...]"
    if isinstance(value, str | bytes):
        return repr(value[:100])
    return f"{value!r:.100}"


class TaggedMapping(dict[str, Any]):
    """A dict with a `tag`; it equals a dict of the same members.

    `standard` is the version of the ASDF standard that its tags are of, None if it does not come from a file.

    >>> TaggedMapping("tag:example.org:point-1.0.0", {"x": 1}) == {"x": 1}
    True
    """

    __slots__ = ("tag", "standard")

    def __init__(self, tag: str | None, members: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
                 standard: str | None = None) -> None:
        super().__init__(members)
        self.tag: str | None = tag  # None for a `Reference`
        self.standard: str | None = standard

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tag!r}, {dict.__repr__(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag, (), self.standard), None, None, iter(self.items())

    def copy(self) -> Self:
        """Return a shallow copy with the same tag."""
        return type(self)(self.tag, self, self.standard)


class TaggedSequence(list[Any]):
    """A list with a `tag`; it equals a list of the same items."""

    __slots__ = ("tag",)

    def __init__(self, tag: str, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.tag: str = tag

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tag!r}, {list.__repr__(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag,), None, iter(self)

    def copy(self) -> Self:
        """Return a shallow copy with the same tag."""
        return type(self)(self.tag, self)


class TaggedScalar(str):
    """A text with a `tag`: the scalar as in the tree, whatever type the tag means."""

    __slots__ = ("tag",)

    def __new__(cls, tag: str, text: str) -> Self:
        self = super().__new__(cls, text)
        self.tag: str = tag
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tag!r}, {str.__repr__(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tag, str(self))


class IntegerNode(TaggedMapping):
    """A ``core/integer``: an integer of any size, as words of 32 bits in an array, the lowest ones first.

    `int` of it reads the words.

    >>> int(IntegerNode.of(-2**80)) == -2**80
    True
    """

    __slots__ = ()

    @classmethod
    def of(cls, value: int) -> Self:
        """Return the node of an integer, which a tree holds as a number only within 64 bits."""
        import numpy as np

        n_words = max(1, -(-abs(value).bit_length() // 32))
        words = np.frombuffer(abs(value).to_bytes(4 * n_words, "little"), "<u4")
        return cls(STSCI + "core/integer-1.1.0", {"sign": "-" if value < 0 else "+", "words": words})

    def __int__(self) -> int:
        import numpy as np

        from zcore.errors import AsdfFormatError

        words = self.get("words")
        words = None if words is None else np.asarray(words)
        if words is None or words.ndim != 1 or words.dtype.kind != "u" or words.itemsize != 4 or (
                self.get("sign") not in ("+", "-")):
            raise AsdfFormatError("core/integer: expected a sign, + or -, and words, an array of uint32",
                                  member="words")
        value = int.from_bytes(words.astype("<u4").tobytes(), "little")
        return -value if self["sign"] == "-" else value

    __index__ = __int__
