"""How much memory the values of a text take as objects of Python, counted before they are made.

``[],`` of three bytes is an object of 80 bytes and a pointer. So a text of a hostile document can take fifty times its
length. A document whose values may take more than `room_for` its length is refused. The counts are upper bounds: they
include temporary objects of Python's parsers, and unused room in dicts and lists.
"""
from __future__ import annotations

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterator

# Bytes that the values of a document may take as objects. A list of a million numbers takes 48 MB.
MAX_OBJECTS_NBYTES = 3 << 27
# Or so many for each byte of a longer text. Documents of arrays are counted with 15 to 37, `[],` with 66.
OBJECTS_NBYTES_EACH = 40
# A shorter text of JSON never takes that.
UNCOUNTED_NBYTES = 1 << 20
# Upper bounds of what CPython takes for each sign of JSON: a list with an item; an object with up to five members; a
# pointer and the number behind a comma; a member in an object that has just grown, in the list of pairs and in the
# parser's table of names; half a string.
_NBYTES_OF = {b"[": 144, b"{": 200, b",": 48, b":": 300, b'"': 32}
_OUTSIDE = (b"[", b"{", b",", b":")     # signs that have no meaning in strings
WINDOW = 1 << 16


def room_for(n_text: int, limit: int | None = None) -> int:
    """Return how many bytes the values of a document of `n_text` bytes may take as objects."""
    return max(MAX_OBJECTS_NBYTES if limit is None else limit, OBJECTS_NBYTES_EACH * n_text)


def outside_strings(raw: bytes) -> Iterator[bytes]:
    """Iterate over the parts of a JSON text that are not in strings, without quotes."""
    is_inside = False  # a string
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")  # without the escapes that matter here
    for start in range(0, len(unescaped), WINDOW):  # the parts of a text need far more memory than the text
        parts = unescaped[start : start + WINDOW].split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0


def excess_of_json(raw: bytes, limit: int | None = None) -> str | None:
    """Return the reason why the values of a JSON text may take more than `limit` bytes as objects, or None.

    The limit is `room_for` the text by default. The text itself, as a str, is counted too.

    >>> excess_of_json(b"[1,2]"), excess_of_json(b"[%s1]" % (b"[]," * 5_000_000))
    (None, 'expected values that take at most 600000120 bytes of memory, found some 990000150, in a text of 15000003 \
bytes')
    """
    if limit is None:
        limit = room_for(len(raw))
    if len(raw) <= min(UNCOUNTED_NBYTES, limit // 128):
        return None
    n_text = len(raw) * _width_of(raw) + len(raw) * max(_width_of(raw), _width_of_escapes(raw))
    n_bytes = n_text + sum([raw.count(sign) * each for sign, each in _NBYTES_OF.items()])
    if n_bytes > limit:
        # Most of these signs may be in strings.
        n_bytes = n_text + raw.count(b'"') * _NBYTES_OF[b'"']
        for window in outside_strings(raw):
            n_bytes += sum([window.count(sign) * _NBYTES_OF[sign] for sign in _OUTSIDE])
    if n_bytes <= limit:
        return None
    return (f"expected values that take at most {limit} bytes of memory, found some {n_bytes}, in a text of {len(raw)} "
            "bytes")


def _width_of(raw):
    """Return how many bytes Python takes for each character of a text in UTF-8. The largest one decides for all."""
    if raw.isascii():
        return 1
    return 4 if any([bytes([first]) in raw for first in range(0xF0, 0xF8)]) else 2


def _width_of_escapes(raw):
    if b"\\u" not in raw:
        return 1
    return 4 if b"\\ud" in raw or b"\\uD" in raw else 2
