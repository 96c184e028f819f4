"""The member `gen` of a reference set: millions of references from four texts and the ranges of some variables.

The variables of an item make a cartesian product, the first one slowest. The texts are rendered for each element
("References specification", version 1, "gen"). Their number is computed from the ranges and compared with a limit
before anything is made. Then columns are made in batches (`zcore.stores.reference.columns`), so that a million
references are never a million objects at once.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.columns import Column
from zcore.stores.reference.expressions import MAX_INTEGER, MIN_INTEGER, is_name, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import numpy.typing as npt

    from zcore.stores.reference.templates import Templates

MAX_REFERENCES = 1 << 24
NBYTES_EACH = 384          # of memory, for each reference that the caller allows
BATCH = 1 << 12            # a batch of the longest texts of four bytes a character takes 128 MB
WHOLE = -1                 # the length of a reference without one: all of the target

_REQUIRED = {"key", "url", "dimensions"}
_EXTENT = {"offset", "length"}


class GeneratedBatch(NamedTuple):
    """Generated references as columns, in the order of the document.

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

    keys: list[str]
    urls: list[str]
    url_index: npt.NDArray[np.intp]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


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
    >>> [batch] = Generation([item], Templates({})).batches()
    >>> batch.keys, batch.urls, batch.offsets.tolist()
    (['k0', 'k1'], ['u'], [0, 10])
    """

    def __init__(self, gen: object, templates: Templates, limit: int = MAX_REFERENCES) -> None:
        if not isinstance(gen, list):
            raise _wrong("gen", f"expected a list of objects, found {shown(gen)}")
        products: list[Ranges] = []
        self.count: int = 0
        for i, item in enumerate(gen):
            _check_members(item, f"gen[{i}]")
            product = Ranges(item["dimensions"], f"gen[{i}].dimensions", limit)
            self.count += product.size
            if self.count > limit:
                raise _too_many(f"gen[{i}].dimensions", limit)
            products.append(product)
        self._items = [_Item(item, product, templates, f"gen[{i}]")
                       for i, (item, product) in enumerate(zip(gen, products, strict=True))]

    def batches(self, size: int | None = None) -> Iterator[GeneratedBatch]:
        """Yield a `GeneratedBatch` for every `size` references of an item, or fewer; `BATCH` by default.

        Raises : ReferenceFormatError, if a text cannot be rendered for some values of the variables, or if an offset
        or a length is not an integer of 63 bits.
        """
        size = BATCH if size is None else size
        for item in self._items:
            for start in range(0, item.product.size, size):
                yield item.batch(np.arange(start, min(start + size, item.product.size)))


class Ranges:
    """The cartesian product of the variables of an item; its elements are numbered in C order, none is made.

    Attributes
    ----------
    size : int
        How many elements it has.
    names : list of str
        The variables, slowest first.
    """

    def __init__(self, dimensions: object, member: str, limit: int) -> None:
        if not isinstance(dimensions, dict) or not dimensions:
            raise _wrong(member, f"expected an object with a variable at least, found {shown(dimensions)}")
        self.names: list[str] = list(dimensions)
        self._variables = {name: _variable(name, given, f"{member}.{name!s:.60}")
                           for name, given in dimensions.items()}
        self.size: int = 0 if any(variable.size == 0 for variable in self._variables.values()) else 1
        self._strides = {}
        for name in reversed(self.names if self.size else ()):
            self._strides[name] = self.size
            self.size *= self._variables[name].size
            if self.size > limit:
                raise _too_many(member, limit)

    def distinct(self, elements: npt.NDArray[np.int64],
                 names: Collection[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.intp] | None]:
        """Return some of the `elements`, an array of different numbers, that show each combination of `names` once.

        Also returns, for each element, which of them shows its combination; None when all of them do, in order.
        """
        if not names:
            return elements[:1], np.zeros(len(elements), np.intp)
        combination, n_combinations = np.zeros(len(elements), np.int64), 1
        for name in self.names:
            if name in names:
                combination = combination * self._variables[name].size + self._indices(name, elements)
                n_combinations *= self._variables[name].size
        if n_combinations == self.size:
            return elements, None
        _, first, inverse = np.unique(combination, return_index=True, return_inverse=True)
        return elements[first], inverse

    def values(self, name: str, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the value of one variable in each of the `elements`, as int64."""
        return self._variables[name].at(self._indices(name, elements))

    def variables(self, element: int, names: Iterable[str]) -> dict[str, int]:
        """Return the values of `names` in one element, a dict of Python integers."""
        return {name: int(self.values(name, np.array([element]))[0]) for name in names}

    def _indices(self, name, elements):
        return elements // self._strides[name] % self._variables[name].size


class _Variable(NamedTuple):
    """How many values a variable has; ``at(indices)`` returns some of them."""

    size: int
    at: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]


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
        """Return the `GeneratedBatch` of some elements of the product."""
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
        return GeneratedBatch(self._key.texts(elements), list(numbers), index, offsets, lengths)

    def _gathered(self, column, elements):
        chosen, inverse = self.product.distinct(elements, column.names)
        numbers = column.integers(chosen)
        return numbers if inverse is None else numbers[inverse]


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


def _variable(name, given, member):
    """Return the `_Variable` that the document describes."""
    if not is_name(name):
        raise _wrong(member, f"expected an identifier as the name of a variable, found {shown(name)}")
    if isinstance(given, list):
        for value in given:
            if not _is_integer(value):
                raise _wrong(member, f"expected integers of 64 bits, found {shown(value)}")
        return _Variable(len(given), np.array(given, np.int64).__getitem__)
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
    size = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    # A product beyond 64 bits wraps around, and the sum wraps back.
    return _Variable(size, lambda indices: indices * np.array(step) + np.array(start))
