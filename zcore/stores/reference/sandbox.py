"""What runs the expressions of reference sets: jinja2's sandbox, with operators that look before they compute.

The sandbox keeps expressions from the program around them, not from its memory and time: it renders ``'a' * 10**9``. So
every operator, the filter ``format`` and ``~`` bound their operands and results first, integers to 64 bits and texts to
64 KiB. What they refuse is a ValueError or TypeError, that the caller tells together with the text.
"""
from __future__ import annotations

import operator
import re
from functools import lru_cache

MAX_TEXT = 1 << 16  # characters: of a text with expressions in it, of any value, and of what is rendered
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1

_CONVERSION = re.compile(r"%(%|[-+ #0]*+(\d{0,3})(?:\.(\d{0,3}))?[hlL]?[diouxXeEfFgGcs])?")
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
              "//": operator.floordiv, "%": operator.mod, "**": operator.pow}


@lru_cache(maxsize=1)
def sandbox():
    """Return the environment that parses and runs: no globals, two filters, and operators that are bounded."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Not optimized: that would evaluate constants while it compiles.
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, optimized=False, cache_size=0,
                                                keep_trailing_newline=True, finalize=as_text)
    environment.globals = {}
    environment.tests = {}
    environment.filters = {"format": lambda text, *values: _formatted(as_text(text), values), "~": _joined}
    environment.intercepted_binops = frozenset(_OPERATORS)
    environment.intercepted_unops = frozenset("+-")
    environment.call_binop = _binary
    environment.call_unop = lambda context, sign, value: bounded(-value if sign == "-" else +value)
    return environment


def template_of(node):
    """Return the template of jinja2 that renders one checked node alone."""
    from jinja2.nodes import Output, Template
    environment = sandbox()
    return environment.from_string(Template([Output([node], lineno=1)], lineno=1).set_environment(environment))


def bounded(value):
    """Return `value`, if it is one that an expression may have.

    Raises : ValueError, if it is too large; TypeError, if it is no number or text.
    """
    if type(value) is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise ValueError("an integer has more than 64 bits")
    elif type(value) is str:
        if len(value) > MAX_TEXT:
            raise ValueError(f"a text has more than {MAX_TEXT} characters")
    elif type(value) is not float:
        raise TypeError(f"a value is a {type(value).__name__}, no number or text")
    return value


def as_text(value):
    """Return a value of an expression as text. Raises: ValueError, TypeError, as `bounded`."""
    return str(bounded(value))


def _binary(context, sign, left, right):
    """Return ``left sign right``, whose operands and result are bounded before it is computed."""
    if sign == "%" and type(left) is str:
        return _formatted(bounded(left), right if type(right) is tuple else (right,))
    kinds = type(bounded(left)), type(bounded(right))
    if sign == "*" and str in kinds and int in kinds:
        text, times = (left, right) if kinds[0] is str else (right, left)
        _check_size(len(text) * times)
    elif sign == "+" and kinds == (str, str):
        _check_size(len(left) + len(right))
    elif sign == "**" and kinds == (int, int) and abs(left) > 1 and right > 64:
        raise ValueError("an integer has more than 64 bits")
    return bounded(_OPERATORS[sign](left, right))


def _joined(*values):
    """Return the values as one text, for the operator ``~``."""
    texts = [as_text(value) for value in values]
    _check_size(sum(map(len, texts)))
    return "".join(texts)


def _formatted(pattern, values):
    """Return ``pattern % values``, each width and precision of which has at most three digits."""
    size = len(pattern)
    for found in _CONVERSION.finditer(pattern):
        if found[1] is None:
            raise ValueError(f"expected conversions as %03d, %.3f and %s, with three digits at most, found "
                             f"{pattern[found.start():found.start() + 12]!r}")
        size += int(found[2] or 0) + int(found[3] or 0)
    # A number that is written out, 1e308 as %f above all, has 310 characters and its precision.
    size += sum(len(value) if type(bounded(value)) is str else 320 for value in values)
    _check_size(size)
    return bounded(pattern % tuple(values))


def _check_size(size):
    if size > MAX_TEXT:
        raise ValueError(f"a text has more than {MAX_TEXT} characters")
