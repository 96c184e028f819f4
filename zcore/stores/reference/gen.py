"""The member `gen` of a reference set: references by the million, out of four texts and the ranges of some variables.

The variables of an item make a cartesian product, the first one slowest, and its texts are rendered for each element
("References specification", version 1, "gen"). How many that are is computed from the ranges and compared with a limit
before anything is made. Then columns are made, batch by batch (`reference_columns`), so that a million references are
never a million objects at once.
"""
from __future__ import annotations

from collections import namedtuple

import numpy as np

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.columns import Column
from zcore.stores.reference.expressions import is_name, shown
from zcore.stores.reference.sandbox import MAX_INTEGER, MIN_INTEGER

MAX_REFERENCES = 1 << 24
MAX_CHARACTERS = 1 << 30   # of keys and URLs in all; or `CHARACTERS_EACH` for each reference that the caller allows
CHARACTERS_EACH = 64
BATCH = 1 << 15
WHOLE = -1                 # the length of a reference without one: all of the target

_REQUIRED = {"key", "url", "dimensions"}
_EXTENT = {"offset", "length"}

Batch = namedtuple("Batch", ("keys", "urls", "url_index", "offsets", "lengths"))
Batch.__doc__ = """Generated references as columns, in the order of the document.

Attributes
----------
keys : list of str
urls : list of str
    Each URL of the batch once.
url_index : ndarray of intp
    For each key, the number of its URL in `urls`.
offsets, lengths : ndarray of int64
    Bytes; 0 and `WHOLE` where the item has neither.
"""


class Generation:
    """The references that the member `gen` of a document stands for.

    Parameters
    ----------
    gen : list
        The member.
    templates : Templates
        Those of the document.
    limit : int
        How many references it may stand for.

    Attributes
    ----------
    count : int
        How many it stands for, known before any is made. Keys may repeat: later ones win over earlier ones, and all of
        them over `refs`.

    Raises
    ------
    ReferenceFormatError
        It breaks the rules of the format, or goes beyond the limit.
    UnsupportedError
        A text takes more than what `Templates` evaluates.

    Examples
    --------
    >>> from zcore.stores.reference.templates import Templates
    >>> item = {"key": "k{{i}}", "url": "u", "offset": "{{ i * 10 }}", "length": 10, "dimensions": {"i": {"stop": 2}}}
    >>> [batch] = Generation([item], Templates({})).batches()
    >>> batch.keys, batch.urls, batch.offsets.tolist()
    (['k0', 'k1'], ['u'], [0, 10])
    """

    def __init__(self, gen, templates, limit=MAX_REFERENCES):
        if not isinstance(gen, list):
            raise _wrong("gen", f"expected a list of objects, found {shown(gen)}")
        products, self.count = [], 0
        self._max_characters = max(MAX_CHARACTERS, CHARACTERS_EACH * limit)
        for i, item in enumerate(gen):
            _check_members(item, f"gen[{i}]")
            product = Product(item["dimensions"], f"gen[{i}].dimensions", limit)
            self.count += product.size
            if self.count > limit:
                raise _wrong(f"gen[{i}].dimensions", f"expected {limit} references in all at the most, "
                             "found dimensions of more")
            products.append(product)
        self._items = [_Item(item, product, templates, f"gen[{i}]")
                       for i, (item, product) in enumerate(zip(gen, products, strict=True))]

    def batches(self, size=BATCH):
        """Yield a `Batch` for every `size` references of an item, or fewer.

        Raises : ReferenceFormatError, if a text cannot be rendered for some values of the variables, or if an offset
        or a length is not an integer of 63 bits.
        """
        n_characters = 0
        for item in self._items:
            for start in range(0, item.product.size, size):
                batch = item.batch(np.arange(start, min(start + size, item.product.size)))
                n_characters += sum(map(len, batch.keys)) + sum(map(len, batch.urls))
                if n_characters > self._max_characters:
                    raise _wrong("gen", f"expected {self._max_characters} characters of keys and URLs in all at the "
                                 "most, found more")
                yield batch


class Product:
    """The cartesian product of the variables of an item; its elements are numbered in C order, none is made.

    Attributes
    ----------
    size : int
        How many elements it has.
    names : list of str
        The variables, slowest first.
    ranges : dict
        Name to the least and the greatest value; empty when the product is.
    """

    def __init__(self, dimensions, member, limit):
        if not isinstance(dimensions, dict) or not dimensions:
            raise _wrong(member, f"expected an object with a variable at least, found {shown(dimensions)}")
        self.names = list(dimensions)
        self._values = {name: _values_of(name, given, f"{member}.{name!s:.60}")
                        for name, given in dimensions.items()}
        self.size = 0 if any(values.size == 0 for values in self._values.values()) else 1
        self.ranges = {}
        self._strides = {}
        for name in reversed(self.names if self.size else ()):
            values = self._values[name]
            self.ranges[name] = values.range()
            self._strides[name] = self.size
            self.size *= values.size
            if self.size > limit:
                raise _wrong(member, f"expected {limit} references in all at the most, found dimensions of more")

    def distinct(self, elements, names):
        """Return some of the `elements`, an array of different numbers, that show each combination of `names` once.

        Also returns, for each element, which of them shows its combination; None when all of them do, in order.
        """
        if not names:
            return elements[:1], np.zeros(len(elements), np.intp)
        combination, n_combinations = np.zeros(len(elements), np.int64), 1
        for name in self.names:
            if name in names:
                combination = combination * self._values[name].size + self._places(name, elements)
                n_combinations *= self._values[name].size
        if n_combinations == self.size:
            return elements, None
        _, first, inverse = np.unique(combination, return_index=True, return_inverse=True)
        return elements[first], inverse

    def values(self, name, elements):
        """Return the value of one variable in each of the `elements`, as int64."""
        return self._values[name].at(self._places(name, elements))

    def variables(self, element, names):
        """Return the values of `names` in one element, a dict of Python integers."""
        return {name: int(self.values(name, np.array([element]))[0]) for name in names}

    def _places(self, name, elements):
        return elements // self._strides[name] % self._values[name].size


class _Steps(namedtuple("_Steps", ("start", "step", "size"))):
    """The values of a variable given by start, stop and step."""

    __slots__ = ()

    def range(self):
        last = self.start + (self.size - 1) * self.step
        return min(self.start, last), max(self.start, last)

    def at(self, places):
        # A product beyond 64 bits wraps around, and so does the sum, back to where it belongs.
        return places * np.array(self.step) + np.array(self.start)


class _Values(namedtuple("_Values", ("values", "size"))):
    """The values of a variable that are listed."""

    __slots__ = ()

    def range(self):
        return int(self.values.min()), int(self.values.max())

    def at(self, places):
        return self.values[places]


class _Item:
    """One object of the list, its texts compiled."""

    def __init__(self, item, product, templates, member):
        self.product = product
        self._member = member

        def column(name):
            text = item[name] if isinstance(item[name], str) else str(item[name])
            return Column(templates.compile(text, product.names, f"{member}.{name}"), product)

        self._key, self._url = column("key"), column("url")
        self._extent = (column("offset"), column("length")) if "offset" in item else None

    def batch(self, elements):
        """Return the `Batch` of some elements of the product."""
        chosen, inverse = self.product.distinct(elements, self._url.names)
        numbers = {}
        index = np.array([numbers.setdefault(url, len(numbers)) for url in self._url.texts(chosen)], np.intp)
        index = index if inverse is None else index[inverse]
        if self._extent is None:
            offsets = np.zeros(len(elements), np.int64)
            lengths = np.full(len(elements), WHOLE, np.int64)
        else:
            offsets, lengths = (self._gathered(column, elements) for column in self._extent)
            beyond = offsets > MAX_INTEGER - lengths
            if beyond.any():
                i = int(beyond.argmax())
                raise _wrong(f"{self._member}.length", "expected an end of 63 bits, found the offset "
                             f"{offsets[i]} and the length {lengths[i]}")
        return Batch(self._key.texts(elements), list(numbers), index, offsets, lengths)

    def _gathered(self, column, elements):
        chosen, inverse = self.product.distinct(elements, column.names)
        numbers = column.integers(chosen)
        return numbers if inverse is None else numbers[inverse]


# Checks

def _wrong(member, message):
    return ReferenceFormatError(f"{member}: {message}", member=member)


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


def _values_of(name, given, member):
    """Return the values of a variable, as the document gives them."""
    if not is_name(name):
        raise _wrong(member, f"expected an identifier as the name of a variable, found {shown(name)}")
    if isinstance(given, list):
        for value in given:
            if not _is_integer(value):
                raise _wrong(member, f"expected integers of 64 bits, found {shown(value)}")
        return _Values(np.array(given, np.int64), len(given))
    if not isinstance(given, dict) or "stop" not in given or given.keys() - {"start", "stop", "step"}:
        raise _wrong(member, "expected a list of integers, or an object of start, stop and step with a stop at least, "
                     f"found {shown(given)}")
    start, stop, step = given.get("start", 0), given["stop"], given.get("step", 1)
    for number in (start, stop, step):
        if not _is_integer(number):
            raise _wrong(member, f"expected integers of 64 bits, found {shown(number)}")
    if step == 0:
        raise _wrong(member, "expected a step other than 0")
    # The length of a Python range; `len` fails where it does not fit a machine word.
    return _Steps(start, step, max(0, (stop - start + step - (1 if step > 0 else -1)) // step))
