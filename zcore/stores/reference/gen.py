"""The member `gen` of a reference set: millions of references from four texts and the ranges of some variables.

The variables of an item make a cartesian product, the first one slowest. The texts are rendered for each element
("References specification", version 1, "gen"). Their number is computed from the ranges and compared with a limit
before anything is made. Then columns of texts and integers are made in batches, so that a million references are never
a million objects at once.
"""
from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.templates import MAX_INTEGER, MIN_INTEGER, OPERATORS, is_name, rendered, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    import numpy.typing as npt

    from zcore.stores.reference.templates import Templates, Text

MAX_REFERENCES = 1 << 24
NBYTES_EACH = 384          # of memory, for each reference that the caller allows
BATCH = 1 << 12            # a batch of the longest texts of four bytes a character takes 128 MB
WHOLE = -1                 # the length of a reference without one: all of the target

MAX_GENERATED_TEXT = 4096  # characters of a key or URL: a limit of references limits memory only together with this
MAX_EXPRESSIONS = 64       # in such a text; each of them is a column for a while

_DECIMAL = re.compile(r"0*([0-9]{1,19})")
# Around a number. Python's `str.strip` takes four more for blanks, which `int` refuses.
_BLANKS = " \t\n\v\f\r"

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
                yield item.batch(np.arange(start, min(start + size, item.product.size), dtype=np.int64))


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
        return {name: int(self.values(name, np.array([element], np.int64))[0]) for name in names}

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


# Texts for many elements of a product at once. An expression is rendered once for each combination of the variables
# that it names. NumPy evaluates integer arithmetic whose operands prove that no step leaves 64 bits. All other values
# are rendered alone, and that decides about errors.

class Column:
    """A compiled text, for many elements of a product.

    Parameters
    ----------
    text : Text
    product : Ranges
    """

    def __init__(self, text: Text, product: Ranges) -> None:
        self.names: frozenset[str] = text.names
        self._text, self._product = text, product
        self._literal = "".join(part for part in text.parts if type(part) is str)
        self._expressions = [part for part in text.parts if type(part) is not str]
        # With `%` between them, literals are the pattern of each row.
        self._pattern = "".join(part.replace("%", "%%") if type(part) is str else "%s" for part in text.parts)
        self._check_length(len(self._literal))
        if len(self._expressions) > MAX_EXPRESSIONS:
            raise _wrong(text.member, f"expected {MAX_EXPRESSIONS} expressions at the most, found "
                         f"{len(self._expressions)}")

    def texts(self, elements: npt.NDArray[np.int64]) -> list[str]:
        """Return the text of each element, a list.

        Raises : ReferenceFormatError, if one cannot be rendered, or has, or might have, too many characters.
        """
        columns, longest = [], len(self._literal)
        for expression in self._expressions:
            numbers = self._computed(expression, elements)
            if numbers is not None:
                columns.append(numbers.tolist())
                longest += max(len(str(end)) for end in _ends(numbers))
            else:
                columns.append(self._rendered(expression, elements))
                longest += max(map(len, columns[-1]))
            self._check_length(longest)
        if not columns:
            return [self._literal] * len(elements)
        return list(map(self._pattern.__mod__, zip(*columns, strict=True)))

    def integers(self, elements: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the integer of 63 bits that each element's text says, as int64."""
        if len(self._expressions) == 1 and not self._literal.strip(_BLANKS):
            numbers = self._computed(self._expressions[0], elements)
            if numbers is not None:
                if numbers.min() < 0:
                    i = int(numbers.argmin())
                    raise self._no_integer(str(numbers[i]), elements[i])
                return numbers
        texts = self.texts(elements)
        numbers = np.empty(len(texts), np.int64)
        for i, text in enumerate(texts):
            found = _DECIMAL.fullmatch(text.strip(_BLANKS))
            if found is None or int(found[1]) > MAX_INTEGER:
                raise self._no_integer(text, elements[i])
            numbers[i] = int(found[1])
        return numbers

    def _computed(self, expression, elements):
        """Return the value of an expression in each element, as int64; None if it may be anything else."""
        return _evaluated(expression.tree, {name: self._product.values(name, elements) for name in expression.names})

    def _rendered(self, expression, elements):
        """Return the value of any expression in each element, a list of texts."""
        names = sorted(expression.names)
        chosen, inverse = self._product.distinct(elements, expression.names)
        columns = [self._product.values(name, chosen).tolist() for name in names]
        texts = []
        for row in zip(*columns, strict=True):
            text = rendered(expression, dict(zip(names, row, strict=True)), self._text.source, self._text.member)
            self._check_length(len(text))
            texts.append(text)
        return texts if inverse is None else list(map(texts.__getitem__, inverse.tolist()))

    def _check_length(self, length):
        if length > MAX_GENERATED_TEXT:
            raise _wrong(self._text.member, f"expected texts of {MAX_GENERATED_TEXT} characters at the most, found "
                         f"{length}")

    def _no_integer(self, text, element):
        variables = ", ".join(f"{name} = {value}" for name, value in
                              self._product.variables(element, sorted(self.names)).items())
        hint = "; / gives fractions, // does not" if "/" in self._text.source else ""
        return _wrong(self._text.member, f"expected an integer of 0 to 2**63 - 1, found {shown(text)} for "
                      f"{variables[:80] or 'all variables'}{hint}")


def _evaluated(tree, columns):
    """Return the value of a tree for columns of int64; None unless each step is an integer of 64 bits."""
    operation, *operands = tree
    if operation == "value":
        return np.array([operands[0]], np.int64) if type(operands[0]) is int else None
    if operation == "name":
        return columns[operands[0]]
    if operation not in OPERATORS or operation == "/":
        return None
    operands = [_evaluated(operand, columns) for operand in operands]
    if any([operand is None for operand in operands]) or not _fits(operation, list(map(_ends, operands))):
        return None
    return OPERATORS[operation](*operands)


def _fits(operation, ranges):
    """Return whether all results of an operation on integers in some ranges are integers of 64 bits."""
    low, high = ranges[-1]
    if operation in ("//", "%") and low <= 0 <= high:
        return False
    if operation == "**" and not 0 <= low == high <= 64:
        return False
    # Each operation is monotonic in each operand on one side of zero, so the extreme results are those of the ends.
    results = [OPERATORS[operation](*ends) for ends in itertools.product(*ranges)]
    return MIN_INTEGER <= min(results) and max(results) <= MAX_INTEGER


def _ends(numbers):
    return int(numbers.min()), int(numbers.max())


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
