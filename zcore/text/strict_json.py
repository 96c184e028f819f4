"""Strict JSON (RFC 8259): also no member twice, and no number beyond float64."""
from __future__ import annotations

import json
import sys
from itertools import islice

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _Result = TypeVar("_Result")


class TooManyDigitsError(ValueError):
    """An integer has more digits than Python converts, because the time grows with their square."""

    def __str__(self) -> str:
        return f"an integer has more than {sys.get_int_max_str_digits()} digits, which Python neither reads nor writes"


def checked(function: Callable[..., _Result], *arguments: object) -> _Result:
    """Return ``function(*arguments)``, which reads or writes JSON.

    Raises : TooManyDigitsError, instead of Python's error, whose message is about its settings.
    """
    try:
        return function(*arguments)
    except ValueError as exc:
        if "set_int_max_str_digits" in str(exc):
            raise TooManyDigitsError from exc
        raise


def beginning(value: object, n_characters: int, ensure_ascii: bool = True) -> str:
    """Return the JSON text of a value, or so many of its first characters, or some more, without making all of it.

    >>> beginning([1] * 10**6, 4), beginning({"a": None}, 100)
    ('[1, 1, 1, 1', '{"a": null}')
    """
    if isinstance(value, str):
        value = value[:n_characters]
    return "".join(islice(json.JSONEncoder(ensure_ascii=ensure_ascii).iterencode(value), n_characters))


class RepeatedMember(ValueError):
    """An object has two members of one name, the argument."""

    def __str__(self) -> str:
        return f"member {self.args[0]!r:.60} is there twice"


def _members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        seen = set()
        raise RepeatedMember(next(name for name, _ in pairs if name in seen or seen.add(name)))
    return members


def _finite(text):
    value = float(text)
    if value - value != 0.0:
        raise ValueError(f"the number {text[:40]} is beyond the range of float64")
    return value


def _no_constant(text):
    raise ValueError(f"{text} is not JSON")


class _Decoder(json.JSONDecoder):
    def decode(self, text: str) -> Any:
        return checked(super().decode, text)


STRICT = _Decoder(object_pairs_hook=_members, parse_float=_finite, parse_constant=_no_constant)
# Accepts the bare tokens NaN, Infinity and -Infinity, which Python's json has always written.
WITH_CONSTANTS = _Decoder(object_pairs_hook=_members, parse_float=_finite)
