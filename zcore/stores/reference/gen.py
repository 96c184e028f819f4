"""The member `gen` of a reference set: millions of references from four texts and the ranges of some variables.

The variables of an item make a cartesian product, the first one slowest. The texts are rendered for each element
("References specification", version 1, "gen"). Their number is computed from the ranges and compared with a limit
before anything is made, and they are made one by one.
"""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.templates import MAX_INTEGER, MIN_INTEGER, is_name, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from zcore.stores.reference.templates import Templates, Text

MAX_REFERENCES = 1 << 24
NBYTES_EACH = 384          # of memory, for each reference that the caller allows

MAX_GENERATED_TEXT = 4096  # characters of a key or URL: a limit of references limits memory only together with this
MAX_EXPRESSIONS = 64       # in such a text

_DECIMAL = re.compile(r"0*([0-9]{1,19})")
# Around a number. Python's `str.strip` takes four more for blanks, which `int` refuses.
_BLANKS = " \t\n\v\f\r"

_REQUIRED = {"key", "url", "dimensions"}
_EXTENT = {"offset", "length"}


class Generation:
    """The references that the member `gen` of a document generates.

    Parameters
    ----------
    gen : list
        The member.
    templates : Templates
        Those of the document.
    limit : int
        Maximum number of references.

    Attributes
    ----------
    count : int
        Number of references, known before any is made. Keys may repeat: later ones replace earlier ones, and all of
        them replace `refs`.

    Raises
    ------
    ReferenceFormatError
        It breaks the rules of the format, or exceeds the limit.
    UnsupportedError
        A text needs more than `Templates` evaluates.

    Examples
    --------
    >>> from zcore.stores.reference.templates import Templates
    >>> item = {"key": "k{{i}}", "url": "u", "offset": "{{ i * 10 }}", "length": 10, "dimensions": {"i": {"stop": 2}}}
    >>> list(Generation([item], Templates({})).references())
    [('k0', 'u', 0, 10), ('k1', 'u', 10, 10)]
    """

    def __init__(self, gen: object, templates: Templates, limit: int = MAX_REFERENCES) -> None:
        if not isinstance(gen, list):
            raise _wrong("gen", f"expected a list of objects, found {shown(gen)}")
        self.count: int = 0
        products = []
        for i, item in enumerate(gen):
            _check_members(item, f"gen[{i}]")
            products.append(_product(item["dimensions"], f"gen[{i}].dimensions", limit))
            self.count += products[-1][1]
            if self.count > limit:
                raise _too_many(f"gen[{i}].dimensions", limit)
        # Of each item its size, and its texts by their members.
        self._items = [(size, {
            name: _Column(templates.compile(str(item[name]), variables, f"gen[{i}].{name}"), variables)
            for name in ("key", "url", "offset", "length") if name in item
        }) for i, (item, (variables, size)) in enumerate(zip(gen, products, strict=True))]

    def references(self) -> Iterator[tuple[str, str, int, int | None]]:
        """Iterate over (key, URL, offset, length), in the document's order; a length of None is the whole target.

        Raises : ReferenceFormatError, if a text cannot be rendered for some values of the variables, or if an offset
        or a length is not an integer of 63 bits.
        """
        for size, columns in self._items:
            for i in range(size):
                offset, length = 0, None
                if "offset" in columns:
                    offset, length = columns["offset"].integer(i), columns["length"].integer(i)
                    if offset > MAX_INTEGER - length:
                        raise _wrong(columns["length"].member, "expected an end of 63 bits, found the offset "
                                     f"{offset} and the length {length}")
                yield columns["key"].text(i), columns["url"].text(i), offset, length


class _Variable(NamedTuple):
    """`stride` elements of the product in turn have the same value; there are none of them in an empty product."""

    values: Sequence[int]
    size: int
    stride: int


class _Column:
    """A compiled text, for each element of a product."""

    def __init__(self, text: Text, variables: Mapping[str, _Variable]) -> None:
        self._text = text
        self.member = text.member
        self._variables = {name: variables[name] for name in sorted(text.names)}
        if (n := sum(type(part) is not str for part in text.parts)) > MAX_EXPRESSIONS:
            raise _wrong(text.member, f"expected {MAX_EXPRESSIONS} expressions at the most, found {n}")

    def _values(self, i):
        return {name: values[i // stride % n] for name, (values, n, stride) in self._variables.items()}

    def text(self, i):
        """Return the text of an element."""
        text = self._text.render(self._values(i))
        if len(text) > MAX_GENERATED_TEXT:
            raise _wrong(self.member, f"expected texts of {MAX_GENERATED_TEXT} characters at the most, found "
                         f"{len(text)}")
        return text

    def integer(self, i):
        """Return the integer of 63 bits that the text of an element says."""
        text = self.text(i)
        found = _DECIMAL.fullmatch(text.strip(_BLANKS))
        if found is None or int(found[1]) > MAX_INTEGER:
            given = ", ".join(f"{name} = {value}" for name, value in self._values(i).items())
            hint = "; / gives fractions, // does not" if "/" in self._text.source else ""
            raise _wrong(self.member, f"expected an integer of 0 to 2**63 - 1, found {shown(text)} for "
                         f"{given[:80] or 'all variables'}{hint}")
        return int(found[1])


# Checks

def _wrong(member, message):
    return ReferenceFormatError(f"{member}: {message}", member=member)


def _too_many(member, limit):
    return _wrong(member, f"expected {limit} references in all at the most, found dimensions of more; max_generated= "
                  "allows more")


def _is_integer(value):
    return type(value) is int and MIN_INTEGER <= value <= MAX_INTEGER


def _check_members(item, member):
    """Raise unless `item` is an object of the members that the format names, with values of their types."""
    if not isinstance(item, dict):
        raise _wrong(member, f"expected an object, found {shown(item)}")
    missing, more = _REQUIRED - item.keys(), item.keys() - _REQUIRED - _EXTENT
    if missing or more:
        found = f"found no {min(missing)}" if missing else f"found {shown(min(map(str, more)))}"
        raise _wrong(member, f"expected the members key, url, dimensions, and offset and length or neither, {found}")
    if len(_EXTENT & item.keys()) == 1:
        raise _wrong(member, f"expected offset and length, or neither, found {min(_EXTENT & item.keys())} alone")
    for name in sorted(item.keys() - {"dimensions"}):
        value = item[name]
        if not isinstance(value, str) and (name not in _EXTENT or not _is_integer(value) or value < 0):
            what = "a text or an integer of 0 to 2**63 - 1" if name in _EXTENT else "a text"
            raise _wrong(f"{member}.{name}", f"expected {what}, found {shown(value)}")


def _product(dimensions, member, limit):
    """Return the variables of an item by their names, and the size of their product, of which no element is made."""
    if not isinstance(dimensions, dict) or not dimensions:
        raise _wrong(member, f"expected an object with a variable at least, found {shown(dimensions)}")
    found = {name: _values(name, given, f"{member}.{name!s:.60}") for name, given in dimensions.items()}
    size, variables = int(all([n for _, n in found.values()])), {}
    for name in reversed(found if size else ()):
        values, n = found[name]
        variables[name] = _Variable(values, n, size)
        size *= n
        if size > limit:
            raise _too_many(member, limit)
    return variables or dict.fromkeys(found, _Variable((), 0, 0)), size


def _values(name, given, member):
    """Return the values of a variable, and their number, which may be too large for `len`."""
    if not is_name(name):
        raise _wrong(member, f"expected an identifier as the name of a variable, found {shown(name)}")
    if isinstance(given, list):
        for value in given:
            if not _is_integer(value):
                raise _wrong(member, f"expected integers of 64 bits, found {shown(value)}")
        return given, len(given)
    if not isinstance(given, dict) or "stop" not in given or given.keys() - {"start", "stop", "step"}:
        raise _wrong(member, "expected a list of integers, or an object of start, stop and step with a stop at least, "
                     f"found {shown(given)}")
    start, stop, step = given.get("start", 0), given["stop"], given.get("step", 1)
    for number in (start, stop, step):
        if not _is_integer(number):
            raise _wrong(member, f"expected integers of 64 bits, found {shown(number)}")
    if step == 0:
        raise _wrong(member, "expected a step other than 0")
    return range(start, stop, step), max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
