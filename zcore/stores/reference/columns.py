"""Texts of a reference set for many elements of a product at once, as columns of texts or of integers.

An expression is rendered once for each combination of the variables that it names. NumPy evaluates integer arithmetic
whose operands prove that no step leaves 64 bits. All other values are rendered alone, and that decides about errors.
"""
from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.expressions import MAX_INTEGER, MIN_INTEGER, OPERATORS, rendered, shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from zcore.stores.reference.gen import Ranges
    from zcore.stores.reference.templates import Text

MAX_GENERATED_TEXT = 4096  # characters of a key or URL: a limit of references limits memory only together with this
MAX_EXPRESSIONS = 64       # in such a text; each of them is a column for a while

_DECIMAL = re.compile(r"0*([0-9]{1,19})")
# Around a number. Python's `str.strip` takes four more for blanks, which `int` refuses.
_BLANKS = " \t\n\v\f\r"


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
            raise self._wrong(f"expected {MAX_EXPRESSIONS} expressions at the most, found {len(self._expressions)}")

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
            raise self._wrong(f"expected texts of {MAX_GENERATED_TEXT} characters at the most, found {length}")

    def _no_integer(self, text, element):
        variables = ", ".join(f"{name} = {value}" for name, value in
                              self._product.variables(element, sorted(self.names)).items())
        hint = "; / gives fractions, // does not" if "/" in self._text.source else ""
        return self._wrong(f"expected an integer of 0 to 2**63 - 1, found {shown(text)} for "
                      f"{variables[:80] or 'all variables'}{hint}")

    def _wrong(self, message):
        return ReferenceFormatError(f"{self._text.member}: {message}", member=self._text.member)


def _evaluated(tree, columns):
    """Return the value of a tree for columns of int64; None unless each step is an integer of 64 bits."""
    operation, *operands = tree
    if operation == "value":
        return np.array([operands[0]]) if type(operands[0]) is int else None
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
