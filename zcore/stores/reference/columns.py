"""Texts of a reference set for many elements of a product at once, as columns of texts or of integers.

What an expression says is made once for each combination of the variables that it names. Where it is integer arithmetic
that cannot leave 64 bits for any of their values, whatever is computed on the way, NumPy does it; else, and where it
cannot be known, each value is rendered alone, and that has the last word on what is an error.
"""
from __future__ import annotations

import re

import numpy as np

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.expressions import shown
from zcore.stores.reference.sandbox import MAX_INTEGER, MIN_INTEGER

MAX_GENERATED_TEXT = 4096  # characters of a key or URL: a count that is bounded bounds memory only if these are, too
MAX_EXPRESSIONS = 64       # in such a text; each of them is a column for a while

_DECIMAL = re.compile(r"0*([0-9]{1,19})")


class Column:
    """A compiled text, for many elements of a product.

    Parameters
    ----------
    text : Text
    product : Product
    """

    def __init__(self, text, product):
        self.names = text.names
        self._text, self._product = text, product
        self._literal = "".join(part for part in text.parts if type(part) is str)
        self._expressions = [part for part in text.parts if type(part) is not str]
        self._bounds = [_bounds(part.tree, product.ranges) if product.size else None for part in self._expressions]
        # With `%` between them, literals are what rows are formatted by.
        self._pattern = "".join(part.replace("%", "%%") if type(part) is str else "%s" for part in text.parts)
        self._check_length(len(self._literal))
        if len(self._expressions) > MAX_EXPRESSIONS:
            raise self._wrong(f"expected {MAX_EXPRESSIONS} expressions at the most, found {len(self._expressions)}")

    def texts(self, elements):
        """Return the text of each element, a list.

        Raises : ReferenceFormatError, if one cannot be rendered, or has, or might have, too many characters.
        """
        columns, longest = [], len(self._literal)
        for expression, bounds in zip(self._expressions, self._bounds, strict=True):
            if bounds is not None:
                columns.append(self._computed(expression, elements).tolist())
                longest += max(len(str(end)) for end in bounds)
            else:
                columns.append(self._rendered(expression, elements))
                longest += max(map(len, columns[-1]))
            self._check_length(longest)
        if not columns:
            return [self._literal] * len(elements)
        return list(map(self._pattern.__mod__, zip(*columns, strict=True)))

    def integers(self, elements):
        """Return the integer of 63 bits that each element's text says, as int64."""
        if len(self._expressions) == 1 and self._bounds[0] is not None and not self._literal.strip():
            numbers = self._computed(self._expressions[0], elements)
            if numbers.min() < 0:
                i = int(numbers.argmin())
                raise self._no_integer(str(numbers[i]), elements[i])
            return numbers
        texts = self.texts(elements)
        numbers = np.empty(len(texts), np.int64)
        for i, text in enumerate(texts):
            found = _DECIMAL.fullmatch(text.strip())
            if found is None or int(found[1]) > MAX_INTEGER:
                raise self._no_integer(text, elements[i])
            numbers[i] = int(found[1])
        return numbers

    def _computed(self, expression, elements):
        """Return what an expression of integers is in each element, as int64."""
        return _evaluated(expression.tree, {name: self._product.values(name, elements) for name in expression.names})

    def _rendered(self, expression, elements):
        """Return what any expression is in each element, a list of texts."""
        names = sorted(expression.names)
        chosen, inverse = self._product.distinct(elements, expression.names)
        columns = [self._product.values(name, chosen).tolist() for name in names]
        texts = []
        for row in zip(*columns, strict=True):
            text = expression.render(dict(zip(names, row, strict=True)))
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


# Integer arithmetic, by the trees of `Expression`

def _bounds(tree, ranges):
    """Return the least and the greatest value that a tree can have, or more; None if 64 bits might not do.

    Each value on the way is bounded, as it is where an expression is evaluated alone.
    """
    if tree is None or type(tree) is int:
        return tree if tree is None else (tree, tree)
    if type(tree) is str:
        return ranges[tree]
    sign, *operands = tree
    operands = [_bounds(operand, ranges) for operand in operands]
    if None in operands:
        return None
    corners = _corners(sign, *operands)
    if corners is None or min(corners) < MIN_INTEGER or max(corners) > MAX_INTEGER:
        return None
    return min(corners), max(corners)


def _corners(sign, left, right=None):
    """Return numbers between which the results lie of an operation on two ranges, or on one; None if unknown."""
    if right is None:
        return [-end for end in left] if sign == "-" else left
    pairs = [(a, b) for a in left for b in right]
    if sign == "+":
        return [a + b for a, b in pairs]
    if sign == "-":
        return [a - b for a, b in pairs]
    if sign == "*":
        return [a * b for a, b in pairs]
    if sign == "**":
        if right[0] != right[1] or not 0 <= right[0] <= 64:
            return None
        return [a ** b for a, b in pairs] + [0] * (left[0] < 0 < left[1] and right[0] > 0)
    if right[0] <= 0 <= right[1]:
        return None
    if sign == "//":
        return [a // b for a, b in pairs]
    return (0, right[1] - 1) if right[0] > 0 else (right[0] + 1, 0)


def _evaluated(tree, columns):
    """Return the value of a tree for columns of int64; its `_bounds` are known."""
    if type(tree) is int:
        return tree
    if type(tree) is str:
        return columns[tree]
    sign, *operands = tree
    left, *right = (_evaluated(operand, columns) for operand in operands)
    if not right:
        return -left if sign == "-" else left
    right = right[0]
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if sign == "**":
        return left ** right
    return left // right if sign == "//" else left % right
