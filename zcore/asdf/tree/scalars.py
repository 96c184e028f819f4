"""Plain scalars of YAML 1.1: which text is a number, a truth value, a date or nothing, and which is just text.

The rules are those of YAML's "Language-Independent Types for YAML Version 1.1" as PyYAML has them, which is what
writers of ASDF files use: ``1e5`` without a dot is text, ``010`` is eight, ``1:30`` is ninety, ``yes`` is true.
"""
import datetime
import math
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from zcore.asdf.tree.tagged import YAML
from zcore.errors import AsdfFormatError

MAX_DIGITS = 4300  # of an integer; Python's own bound, beyond which the work grows faster than the text
SCALARS = (bool, int, float, complex, str, bytes, datetime.date, type(None))
MIN_INTEGER, MAX_INTEGER = -2**63 + 2, 2**63 - 1  # YAML subset, "Numeric literals": what a tree may hold as a number

_BOOLEAN = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
_is_boolean = re.compile("yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF").fullmatch
_is_null = re.compile("~|null|Null|NULL|").fullmatch
_is_integer = re.compile(
    "[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)").fullmatch
_is_real = re.compile(
    r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)").fullmatch
_timestamp = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)"
    r"(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(?:\.(\d*))?(?:[ \t]*(Z|([-+])(\d\d?)(?::(\d\d))?))?)?",
    re.ASCII).fullmatch
_is_date = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII).fullmatch

# No two repetitions may share characters: text that does not match would be tried in all ways to divide it.
_number = r"(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf(?:inity)?|nan)"
_complex = re.compile(
    rf"(?:(?P<real>[+-]?{_number})(?=[+-]|\Z))?(?:(?P<imaginary>[+-]?{_number}?)[ij])?",
    re.ASCII | re.IGNORECASE).fullmatch

# The characters that a plain scalar which is no text can begin with.
_STARTS = frozenset("-+.~0123456789yYnNtTfFoO<=")


def plain_value(text):
    """Return what a plain scalar without a tag stands for.

    Raises
    ------
    AsdfFormatError
        It is a number of too many digits, or a date that is none.

    >>> [plain_value(text) for text in ("12", "010", "1:30", "1.5", "1e5", "yes", "~", "2020-02-03", "a b")]
    [12, 8, 90, 1.5, '1e5', True, None, datetime.date(2020, 2, 3), 'a b']
    """
    if text and text[0] not in _STARTS:
        return text
    if _is_integer(text):
        return integer(text)
    if _is_real(text):
        return real(text)
    if _is_boolean(text):
        return _BOOLEAN[text.lower()]
    if _is_null(text):
        return None
    if _timestamp(text) and (_is_date(text) or len(text) > 10):
        return timestamp(text)
    return text


def is_plain_text(text):
    """Return whether a text without quotes is still a text.

    >>> [is_plain_text(text) for text in ("a b", "1e5", "12", "no", "", "<<")]
    [True, True, False, False, False, False]
    """
    return text not in ("", "<<", "=") and plain_value(text) is text


def integer(text):
    """Return the integer that a scalar says."""
    digits = text.replace("_", "")
    sign = -1 if digits[:1] == "-" else 1
    digits = digits.lstrip("+-") if digits[:1] in ("+", "-") else digits
    # Hexadecimal digits are 1.2 decimal ones each.
    if len(digits) * (5 if digits[:2] == "0x" else 4) > MAX_DIGITS * 4:
        raise AsdfFormatError(f"an integer of {len(digits)} digits, at most {MAX_DIGITS} are read")
    try:
        if ":" in digits:
            value = 0
            for part in digits.split(":"):
                value = 60 * value + int(part)
        elif digits[:2] in ("0b", "0x"):
            value = int(digits, 0)
        else:
            value = int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10)
    except (IndexError, ValueError) as exc:
        raise AsdfFormatError(f"{text!r:.100} is no integer") from exc
    return sign * value


def real(text):
    """Return the floating point number that a scalar says."""
    digits = text.replace("_", "").lower()
    sign = -1.0 if digits[:1] == "-" else 1.0
    digits = digits[1:] if digits[:1] in ("+", "-") else digits
    try:
        if digits in (".inf", ".nan"):
            return sign * float(digits[1:])
        if ":" in digits:
            value = 0.0
            for part in digits.split(":"):
                value = 60 * value + float(part)
            return sign * value
        return sign * float(digits)
    except ValueError as exc:
        raise AsdfFormatError(f"{text!r:.100} is no number") from exc


def timestamp(text):
    """Return the date, or the date and time, that a scalar says; with a time zone where it names one."""
    found = _timestamp(text)
    if found is None:
        raise AsdfFormatError(f"{text!r:.100} is no date")
    year, month, day, hour, minute, second, fraction, zone, sign, zone_hour, zone_minute = found.groups()
    try:
        if hour is None:
            return datetime.date(int(year), int(month), int(day))
        tzinfo = None
        if zone is not None:
            offset = datetime.timedelta(hours=int(zone_hour or 0), minutes=int(zone_minute or 0))
            tzinfo = datetime.timezone(-offset if sign == "-" else offset) if sign else datetime.UTC
        microsecond = int((fraction or "")[:6].ljust(6, "0"))
        return datetime.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), microsecond,
                                 tzinfo)
    except ValueError as exc:
        raise AsdfFormatError(f"{text!r:.100} is no date: {exc}") from exc


def boolean(text):
    """Return the truth value that a scalar says."""
    if not _is_boolean(text):
        raise AsdfFormatError(f"{text!r:.100} is no truth value")
    return _BOOLEAN[text.lower()]


def null(text):
    """Return None: whatever is tagged so is nothing."""
    return None


def binary(text):
    """Return the bytes that base64 text says."""
    try:
        return b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, Base64Error, ValueError) as exc:
        raise AsdfFormatError("a scalar tagged binary is no base64") from exc


def complex_number(text):
    """Return what the text of a ``core/complex`` says.

    >>> complex_number("1-1j"), complex_number("(2.5I)"), complex_number("inf+nani"), complex_number("3")
    ((1-1j), 2.5j, (inf+nanj), (3+0j))
    """
    inside = text.removeprefix("(").removesuffix(")") if text[:1] == "(" and text[-1:] == ")" else text
    found = _complex(inside.strip())
    if found is None or found["real"] is found["imaginary"] is None:
        raise AsdfFormatError(f"{text!r:.100} is no complex number")
    real, imaginary = found["real"], found["imaginary"]
    if imaginary in ("", "+", "-"):
        imaginary = (imaginary or "") + "1"
    return complex(float(real or 0), float(imaginary or 0))


# What a scalar with one of YAML's own tags stands for.
OF_TAG = {
    YAML + "str": str, YAML + "int": integer, YAML + "float": real, YAML + "bool": boolean, YAML + "null": null,
    YAML + "timestamp": timestamp, YAML + "binary": binary,
}


def written(value):
    """Return (text, tag) of a scalar that is no text; the tag is None where the text alone says what it is.

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


def complex_text(value):
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
    # YAML 1.1 takes no number for one that has an exponent and no dot.
    return text.replace("e", ".0e", 1) if "." not in text and "e" in text else text
