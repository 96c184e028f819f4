"""Scalars of YAML 1.1: which text is a number, a truth value, a date or nothing, and which is text.

The rules are those of YAML's "Language-Independent Types for YAML Version 1.1" as PyYAML has them, and writers of ASDF
files use PyYAML: ``1e5`` without a dot is text, ``010`` is eight, ``1:30`` is ninety, ``yes`` is true. So PyYAML's own
table of plain scalars and its own constructors are asked.
"""
from __future__ import annotations

import datetime
import math
import re
from base64 import b64encode
from functools import cache
from typing import TYPE_CHECKING

from zcore.asdf.tree.tagged import YAML
from zcore.errors import AsdfFormatError, Needing

if TYPE_CHECKING:
    from typing import Any

MAX_DIGITS = 4300  # of an integer; Python's own bound, beyond which the work grows faster than the text
SCALARS = (bool, int, float, complex, str, bytes, datetime.date, type(None))
MIN_INTEGER, MAX_INTEGER = -2**63 + 2, 2**63 - 1  # YAML subset, "Numeric literals": the range of numbers in a tree
_NUMBERS = frozenset((YAML + "int", YAML + "float"))
OWN_TAGS = frozenset(YAML + name for name in ("int", "float", "bool", "null", "timestamp", "binary", "str"))

# No two repetitions may share characters: text that does not match would be tried in all ways to divide it.
_number = r"(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf(?:inity)?|nan)"
_complex = re.compile(
    rf"(?:(?P<real>[+-]?{_number})(?=[+-]|\Z))?(?:(?P<imaginary>[+-]?{_number}?)[ij])?",
    re.ASCII | re.IGNORECASE).fullmatch


def import_yaml() -> Any:
    """Return the package `yaml`, which is needed for trees alone, and imported when there is one.

    Raises : UnsupportedError, if it is not installed; it names the extra.
    """
    with Needing("the trees of ASDF files need", "yaml", "asdf", "the trees of ASDF files", "PyYAML"):
        import yaml
    return yaml


@cache
def _rules():
    """Return PyYAML's regular expressions of plain scalars by their first character, its constructor, and its node."""
    yaml = import_yaml()
    return yaml.resolver.Resolver.yaml_implicit_resolvers, yaml.constructor.SafeConstructor(), yaml.ScalarNode


def plain_value(text: str) -> Any:
    """Return the value of a plain scalar without a tag.

    Raises
    ------
    AsdfFormatError
        It is a number of too many digits, or a date that does not exist.

    >>> [plain_value(text) for text in ("12", "010", "1:30", "1.5", "1e5", "yes", "~", "2020-02-03", "a b")]
    [12, 8, 90, 1.5, '1e5', True, None, datetime.date(2020, 2, 3), 'a b']
    """
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) < 20:
        return int(text)       # the common case
    # To match one takes memory for each digit. With other characters, a text with a colon is no number.
    may_be_long = len(text) > MAX_DIGITS and ":" in text
    if may_be_long and not text.strip("+-.0123456789:_"):
        raise _too_long(text)
    for tag, regexp in _rules()[0].get(text[:1], ()):
        if may_be_long and tag in _NUMBERS:
            continue
        if regexp.match(text):
            return value_of(tag, text) if tag in OWN_TAGS else text
    return text


def _too_long(text: str) -> AsdfFormatError:
    return AsdfFormatError(f"a number in base 60 of {len(text)} digits and colons, at most {MAX_DIGITS} are read")


def is_plain_text(text: str) -> bool:
    """Return whether a text is still a text without quotes.

    >>> [is_plain_text(text) for text in ("a b", "1e5", "12", "no", "", "<<")]
    [True, True, False, False, False, False]
    """
    try:
        return text not in ("", "<<", "=") and plain_value(text) is text
    except AsdfFormatError:
        return False     # a number of too many digits


def value_of(tag: str, text: str) -> Any:
    """Return the value of a scalar with one of `OWN_TAGS`.

    Raises : AsdfFormatError, if the text has no such value.
    """
    if tag == YAML + "str":
        return text
    # Hexadecimal digits are 1.2 decimal ones each.
    if tag == YAML + "int" and len(text) * (5 if "x" in text else 4) > MAX_DIGITS * 4:
        raise AsdfFormatError(f"an integer of {len(text)} digits, at most {MAX_DIGITS} are read")
    if tag == YAML + "float" and ":" in text and len(text) > MAX_DIGITS:
        raise _too_long(text)
    _, constructor, node = _rules()
    try:
        return constructor.yaml_constructors[tag](constructor, node(tag, text))
    except (ValueError, LookupError, AttributeError, ArithmeticError, import_yaml().YAMLError) as exc:
        # PyYAML lets the errors of Python's own functions through.
        raise AsdfFormatError(f"{text!r:.100} is not a YAML {tag.removeprefix(YAML)}") from exc


def complex_number(text: str) -> complex:
    """Return the number of a ``core/complex``.

    >>> complex_number("1-1j"), complex_number("(2.5I)"), complex_number("inf+nani"), complex_number("3")
    ((1-1j), 2.5j, (inf+nanj), (3+0j))
    """
    inside = text.removeprefix("(").removesuffix(")") if text[:1] == "(" and text[-1:] == ")" else text
    found = _complex(inside.strip())
    if found is None or found["real"] is found["imaginary"] is None:
        raise AsdfFormatError(f"{text!r:.100} is not a complex number")
    real, imaginary = found["real"], found["imaginary"]
    if imaginary in ("", "+", "-"):
        imaginary = (imaginary or "") + "1"
    return complex(float(real or 0), float(imaginary or 0))


def written(value: bytes | float | datetime.date | None) -> tuple[str, str | None]:
    """Return (text, tag) of a scalar that is not a text; the tag is None where the text alone tells the type.

    Raises
    ------
    ValueError
        An integer that a tree cannot hold.
    """
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return "true" if value else "false", None
    if isinstance(value, int):
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise ValueError(f"{value}: a tree holds integers from {MIN_INTEGER} to {MAX_INTEGER}; "
                             "zcore.asdf.IntegerNode.of(value) is one of any size")
        return str(value), None
    if isinstance(value, float):
        return _real_text(value), None
    if isinstance(value, datetime.datetime):
        return value.isoformat(" "), None
    if isinstance(value, datetime.date):
        return value.isoformat(), None
    return b64encode(value).decode(), YAML + "binary"


def complex_text(value: complex) -> str:
    """Return the text of a complex number in a ``core/complex``.

    >>> complex_text(1-1j), complex_text(complex("nan+infj"))
    ('1.0-1.0i', 'nan+infi')
    """
    sign = "" if math.copysign(1, value.imag) < 0 and not math.isnan(value.imag) else "+"
    return f"{value.real!r}{sign}{value.imag!r}i"


def _real_text(value):
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    text = repr(value)
    # In YAML 1.1 a number with an exponent needs a dot.
    return text.replace("e", ".0e", 1) if "." not in text and "e" in text else text
