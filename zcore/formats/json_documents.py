"""Untrusted JSON documents: a strict parser, checked access to members, and a printer.

`Document` reads only RFC 8259 JSON in UTF-8: no byte order mark, no member twice, no number beyond float64, no text
after the object. Size and depth are checked before parsing. The bare tokens ``NaN``, ``Infinity`` and ``-Infinity``,
which Python's json has always written, are accepted where a format allows them.

An invalid document raises a `MetadataError` with path, document, member, and the expected and the found value.
"""
from __future__ import annotations

import json
import re
from contextvars import ContextVar, copy_context
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import MetadataError, UnsupportedError, warn
from zcore.model.fill_value import fill_scalar, real_from_json
from zcore.text.object_memory import MAX_OBJECTS_NBYTES, UNCOUNTED_NBYTES, excess_of_json, outside_strings, room_for
from zcore.text.strict_json import STRICT, WITH_CONSTANTS, RepeatedMember, TooManyDigitsError, beginning, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Mapping
    from typing import Any, Self, TypeVar

    _Result = TypeVar("_Result")

MAX_NBYTES = 2**27  # of a document: consolidated metadata of 100,000 arrays, as zarr-python indents them
_PLAIN = frozenset((str, int, float, bool, type(None)))  # without parts
MAX_DEPTH = 64  # nested lists and objects; zarr-python's limit
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
_STEPS = bytes.maketrans(b"[{]}", b"\1\1\xff\xff")    # signed bytes: an opening one is 1, a closing one -1
_LARGE_NBYTES = 1 << 10    # of a list or an object that is not walked twice
_TOO_DEEP = f"more than {MAX_DEPTH} nested lists and objects"


def _nesting(raw):
    """Return the deepest nesting of brackets outside strings, and how many are open at the end."""
    depth = deepest = 0
    for window in outside_strings(raw):
        depths = list(accumulate(memoryview(window.translate(_STEPS, _NOT_BRACKETS)).cast("b"), initial=depth))
        depth, deepest = depths[-1], max(deepest, max(depths))
    return deepest, depth


class Document:
    """One JSON object from a store, with checked access to its members.

    Parameters
    ----------
    raw : bytes
        The document.
    path, name : str
        Of the node that it describes, and of the document itself. Each message has both.
    bare_constants : bool or tuple of str
        Accept the tokens NaN, Infinity and -Infinity: everywhere, or in these members.
    max_nbytes : int
        The size above which a document is refused without parsing.

    Attributes
    ----------
    members : dict
        All members, as JSON's Python equivalents.
    inside : str
        The position of this document inside another one, as a prefix of its members' names; else empty.
    has_constants : bool
        Whether the document may have bare constants.
    """

    __slots__ = ("path", "name", "members", "inside", "has_constants")
    path: str
    name: str
    members: dict[str, Any]
    inside: str
    has_constants: bool

    def __init__(self, raw: bytes, path: str, name: str, bare_constants: bool | tuple[str, ...] = False,
                 max_nbytes: int = MAX_NBYTES) -> None:
        self.path = path
        self.name = name
        self.inside = ""
        if len(raw) > max_nbytes:
            raise self.error(None, f"expected at most {max_nbytes} bytes, found more")
        if raw.startswith(b"\xef\xbb\xbf"):
            raise self.error(None, "expected JSON, found a byte order mark")
        if reason := excess_of_json(raw):
            raise self.error(None, reason)
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and _nesting(raw)[0] > MAX_DEPTH:
            raise self.error(None, f"expected at most {MAX_DEPTH} nested lists and objects, found more")
        try:
            members = (WITH_CONSTANTS if bare_constants else STRICT).decode(raw.decode("utf-8"))
        except RepeatedMember as exc:
            raise self.error(exc.args[0], "expected once, found twice") from exc
        except UnicodeDecodeError as exc:
            raise self.error(None, f"expected JSON in UTF-8, found {exc.reason} at byte {exc.start}") from exc
        except TooManyDigitsError as exc:
            raise self.error(None, str(exc)) from exc
        except ValueError as exc:
            if not raw.strip() or _nesting(raw)[1] > 0:
                raise self.error(None, f"the document is incomplete: it ends at byte {len(raw)}") from exc
            raise self.error(None, f"expected JSON, found a mistake: {exc}") from exc
        if type(members) is not dict:
            raise self.error(None, f"expected an object, found {shown(members)}")
        self.members = members
        self.has_constants = bool(bare_constants) and (b"NaN" in raw or b"Infinity" in raw)
        if self.has_constants and bare_constants is not True:
            self.refuse_constants(bare_constants)

    @classmethod
    def within(cls, outer: Document, members: dict[str, Any], inside: str) -> Self:
        """Return the document for the object `members` inside the document `outer`."""
        self = object.__new__(cls)
        self.path, self.name, self.has_constants = outer.path, outer.name, outer.has_constants
        self.members, self.inside = members, inside
        return self

    def refuse_constants(self, allowed: Container[str]) -> None:
        """Raise MetadataError for NaN, Infinity and -Infinity in all but the `allowed` members."""
        for member, value in self.members.items():
            if member not in allowed and not _is_finite(value):
                raise self.error(member, "NaN, Infinity and -Infinity without quotes are not JSON")

    def where(self) -> str:
        """Return the path of the document, which begins each message."""
        return f"{self.path.rstrip('/')}/{self.name}" if self.path.rstrip("/") else self.name

    def warn(self, remark: str) -> None:
        """Warn about a mistake in the document that does not prevent reading."""
        warn(f"{self.where()}{self.inside and ' ' + self.inside}: {remark}")

    def error(self, member: str | None, reason: str) -> MetadataError:
        """Return the MetadataError about a member, or about the document if `member` is None."""
        if self.inside:
            member = self.inside if member is None else f"{self.inside}.{member}"
        return self._refusal(member, reason if member is None else f"member {member!r}: {reason}")

    def _refusal(self, member, sentence):
        return MetadataError(f"{self.where()}: {sentence}", path=self.path, document=self.name, member=member)

    def unexpected(self, member: str, expected: str) -> MetadataError:
        """Return the MetadataError with the expected and the found value of a member."""
        return self.error(member, f"expected {expected}, found {shown(self.members[member])}")

    def required(self, member: str) -> Any:
        """Return the value of a mandatory member."""
        try:
            return self.members[member]
        except KeyError:
            raise self._refusal(member, f"member {member!r} is missing") from None

    def integers(self, member: str, minimum: int) -> tuple[int, ...]:
        """Return a mandatory list of integers, each >= `minimum`, as a tuple; 10.0 and true are no integers."""
        values = self.required(member)
        if type(values) is list:
            for value in values:
                if type(value) is not int or value < minimum:
                    break
            else:
                return tuple(values)
        raise self.unexpected(member, f"a list of integers >= {minimum}")

    def lengths(self, member: str) -> tuple[int, ...]:
        """Return a mandatory list of lengths. For one dimension, some programs write the length alone."""
        if type(self.members.get(member)) is int and self.members[member] >= 0:
            self.warn(f"member {member!r} is a number; read as a list of one")
            return (self.members[member],)
        return self.integers(member, 0)

    def integer(self, member: str, minimum: int, maximum: int) -> int:
        """Return a mandatory integer from `minimum` to `maximum`."""
        value = self.required(member)
        if type(value) is not int or not minimum <= value <= maximum:
            several = f"an integer from {minimum} to {maximum}"
            raise self.unexpected(member, several if minimum < maximum else str(minimum))
        return value

    def choice(self, member: str, choices: Collection[str]) -> str:
        """Return a mandatory string that is one of `choices`."""
        value = self.required(member)
        if type(value) is not str or value not in choices:
            raise self.unexpected(member, f"one of {', '.join(choices)}")
        return value

    def checked(self, member: str, function: Callable[..., _Result], *arguments: object) -> _Result:
        """Return `function(*arguments)`. Its ValueError or UnsupportedError becomes one about this member."""
        try:
            return function(*arguments)
        except UnsupportedError as exc:
            full_name = f"{self.inside}.{member}" if self.inside else member
            raise UnsupportedError(f"{self.where()}: member {full_name!r}: {exc.message}", feature=exc.feature) from exc
        except ValueError as exc:
            raise self.error(member, str(exc)) from exc


def shown(value: object) -> str:
    """Return a JSON value for messages: its text, cut if it is long."""
    text = beginning(value, 81)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_finite(value):
    if type(value) is float:
        return value - value == 0.0
    if type(value) is dict:
        value = value.values()
    elif type(value) is not list:
        return True
    return all([_is_finite(part) for part in value])


def whole(value: object) -> object:
    """Return the integer that other writers wrote as ``0.0`` or ``1e3``; anything else as it is.

    >>> whole(1e3), whole(0.5), whole("7")
    (1000, 0.5, '7')
    """
    return int(value) if type(value) is float and abs(value) <= 2**53 and value.is_integer() else value


def scalar_from_json(dtype: np.dtype[Any], value: object) -> object:
    """Return the scalar for a JSON value; a complex number is a list of its two parts.

    Raises : ValueError, if it is another list, or an object.
    """
    if dtype.kind == "c" and type(value) is list and len(value) == 2:
        return complex(real_from_json(value[0]), real_from_json(value[1]))
    if isinstance(value, (list, dict)):
        raise ValueError(f"expected a scalar, found {'a list' if type(value) is list else 'an object'}")
    return value


def scalar_to_json(dtype: np.dtype[Any], raw: bytes, real: Callable[[Any], float | str]) -> Any:
    """Return the JSON value for a number, date or text of bytes `raw`; ``real(scalar)`` writes a float."""
    kind, scalar = dtype.kind, fill_scalar(dtype, raw)
    if kind == "f":
        return real(scalar)
    if kind == "c":
        return [real(scalar.real), real(scalar.imag)]
    return int(scalar.view("i8")) if kind in "mM" else scalar.item()


def render_json(members: Mapping[str, Any]) -> bytes:
    """Return an object as bytes: members sorted, indented by 4, ASCII, no final newline (as Zarr has always written).

    Numbers that JSON does not have are written as the tokens NaN, Infinity and -Infinity.

    Raises : TypeError, if a name is not a string or a value not JSON's; ValueError, if it is too deep or too long to be
    read again, or its values are too many.
    """
    _check_writable(members)
    return _readable(checked(_encode_indented, members))


def around_shape(members: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the bytes of `render_json` before and after the lengths in the member "shape", for `render_shape`."""
    # A line break in a value is escaped, and the members of other objects are indented further.
    before, line, after = render_json({**members, "shape": [0]}).partition(b'\n    "shape": [\n')
    return before + line, after.removeprefix(b"        0")


def render_shape(around: tuple[bytes, bytes], shape: tuple[int, ...]) -> bytes:
    """Return what `render_json` returns for the members `around` a shape of at least one dimension.

    Every append changes the shape alone. JSON that is indented is made in Python, and takes longest in an append.

    Raises : ValueError, if it is too long to be read again.
    """
    before, after = around
    return _short(before + ",\n".join([f"        {n}" for n in shape]).encode() + after)


def render_json_lines(members: Mapping[str, Any], bare_constants: Container[str] = ()) -> bytes:
    """Return an object as bytes: strict JSON, a line for each member, in their sequence, ASCII, no final newline.

    This is easier to read than a line for each number, and several times faster, because json indents in Python. In the
    members in `bare_constants`, numbers that JSON does not have are written as by `render_json`.

    Raises : as `render_json`; ValueError too if another member holds a NaN or an infinity.

    >>> print(render_json_lines({"shape": [3, 4], "attributes": {}}).decode())
    {
      "shape": [3, 4],
      "attributes": {}
    }
    """
    return join_lines(render_lines(members, bare_constants))


def render_lines(members: Mapping[str, Any], bare_constants: Container[str] = ()) -> str:
    """Return lines of `render_json_lines`, as one text for `join_lines`, for documents with parts that repeat."""
    if not all(map(is_flat, members.values())):
        _check_writable(members)
    return ",\n".join([
        f"  {_quote(member)}: {_encoded_loosely(value) if member in bare_constants else _encoded_strictly(value)}"
        for member, value in members.items()])


def join_lines(*lines: str) -> bytes:
    """Return the object that has the lines of several calls of `render_lines`, as bytes."""
    return _readable("{\n" + ",\n".join(lines) + "\n}")


_constants_are_taken = ContextVar("_constants_are_taken", default=False)


def taking_constants(function: Callable[..., _Result], *args: Any, **keywords: Any) -> _Result:
    """Call a function, in which `check_attributes` takes NaN and infinities in all formats. The caller warns of them.

    It has a context of its own, so that nothing of this is left, whenever it is interrupted.
    """
    def call():
        _constants_are_taken.set(True)
        return function(*args, **keywords)

    return copy_context().run(call)


def has_constants(value: Any) -> bool:
    """Return whether a value has NaN or an infinity, which JSON does not have."""
    try:
        _encode(value)
    except ValueError:
        return True
    except (TypeError, RecursionError):
        pass     # no value of an attribute at all
    return False


def check_attributes(attributes: Mapping[str, Any], old: Mapping[str, Any], bare_constants: bool = False) -> None:
    """Raise an error for new `attributes` of a node that are not JSON in UTF-8; `old` are its present ones.

    NaN and infinities are not JSON, but a format may have them as `bare_constants`. UTF-8 cannot encode half of a
    surrogate pair. An attribute that does not change may have both. So a caller can change another attribute, or the
    shape of an array, and loses nothing.

    Raises : ValueError; TypeError for a value that is no JSON at all. Both name the attribute.
    """
    encoded = _encoded_loosely if bare_constants or _constants_are_taken.get() else _encoded_strictly
    for name, value in attributes.items():
        if name in old and value is old[name]:
            continue
        try:
            _check_writable({name: value})
        except (TypeError, ValueError) as exc:
            raise type(exc)(f"attribute {name!r:.60}: {exc}") from None
        try:
            check_whole_characters(encoded({name: value}))
        except (TypeError, ValueError) as exc:
            # NaN does not equal itself, but its text does.
            if isinstance(exc, TooManyDigitsError) or name not in old or repr(value) != repr(old[name]):
                kind = TypeError if isinstance(exc, TypeError) else ValueError
                raise kind(f"attribute {name!r:.60}: {exc}") from None


def check_whole_characters(text: str) -> None:
    r"""Raise ValueError if JSON text, as json writes it in ASCII, has half a surrogate pair, which no UTF-8 can encode.

    Python has such text for bytes that are not UTF-8: ``os.fsdecode(b"caf\xe9")`` is ``"caf\udce9"``.
    """
    if "\\ud" in text:
        for escape in _ESCAPES(text):
            if escape[1]:
                raise ValueError(f"text with half a surrogate pair, {escape[0]}, cannot be stored: UTF-8 does not "
                                 "have it")


def _encoded_strictly(value):
    try:
        return checked(_encode, value)
    except TooManyDigitsError:
        raise
    except ValueError:
        raise ValueError("NaN and infinities are not JSON; as text, such as 'NaN', they can be stored") from None


def _readable(text):
    raw = text.encode("ascii")
    if len(raw) > UNCOUNTED_NBYTES and (reason := excess_of_json(_short(raw))):
        raise ValueError(reason)
    return raw


def _short(raw):
    if len(raw) > MAX_NBYTES:
        raise ValueError(f"a document of {len(raw)} bytes, at most {MAX_NBYTES} are read")
    return raw


def _scalar(value):
    """Return the Python value of a NumPy scalar or array, which JSON's encoder does not know; dates as text."""
    if isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "biufUM" and (
            value.dtype.char != np.dtype("g").char and not np.ma.is_masked(value)):     # Python has no such float
        return (value.astype(str) if value.dtype.kind == "M" else value).tolist()
    raise TypeError(f"{value!r:.60} of type {type(value).__name__} is no JSON value")


# Each match is an escape; the group is half of a pair.
_ESCAPES = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)").finditer
_quote = json.encoder.encode_basestring_ascii  # as `_encode` writes text
_encode = json.JSONEncoder(default=_scalar, allow_nan=False, check_circular=False).encode
_encode_indented = json.JSONEncoder(default=_scalar, indent=4, sort_keys=True).encode
_encoded_loosely = partial(checked, json.JSONEncoder(default=_scalar, check_circular=False).encode)


def is_flat(value: object) -> bool:
    """Return whether a value is an object of values without parts: its text says the same, and takes little more."""
    return type(value) is dict and {str}.issuperset(map(type, value)) and _PLAIN.issuperset(map(type, value.values()))


def _check_writable(value, depth=1, known=None):
    """Raise an error if a name is not a string (json would convert it), or if there are too many values or levels.

    Return about how many bytes the values take as objects, at least how many as text, and the levels.

    Lists and objects may share parts, so there may be far more values than there are objects of Python: 2**40 in 40
    lists. `known` maps the identity of a large part to the result, so it is walked once.
    """
    known = {} if known is None else known
    if (found := known.get(id(value))) is not None:
        if depth + found[2] - 1 > MAX_DEPTH:
            raise ValueError(_TOO_DEEP)
        return found
    n_commas = max(len(value) - 1, 0)
    parts, n_objects, n_text, n_levels = value, 72 + 40 * n_commas, 2 + n_commas, 1
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"names of a JSON object are strings, not {name!r}")
            n_text += len(name) + 3
        parts, n_objects = value.values(), 200 + 40 * n_commas + 156 * len(value)
    if depth > MAX_DEPTH:
        raise ValueError(_TOO_DEEP)
    for part in parts:
        # Most parts are plain; a call for each would take longer than json.
        kind = type(part)
        if kind is str:
            n_objects += 56
            n_text += len(part)
        elif kind is int:
            n_text += part.bit_length() // 4     # digits
        elif kind not in _PLAIN and isinstance(part, (dict, list, tuple)):
            n, n_characters, below, _ = _check_writable(part, depth + 1, known)
            n_objects += n
            n_text += n_characters
            n_levels = max(n_levels, below + 1)
        if n_objects > MAX_OBJECTS_NBYTES and n_objects > (room := room_for(n_text)):
            raise ValueError(f"expected values that take at most {room} bytes of memory, found more")
        if n_text > MAX_NBYTES:
            raise ValueError(f"a document of more than {MAX_NBYTES} bytes, at most so many are read")
    found = n_objects, n_text, n_levels, value     # which must live as long as its identity is known
    if n_objects > _LARGE_NBYTES or n_text > _LARGE_NBYTES:
        known[id(value)] = found
    return found
