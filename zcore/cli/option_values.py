"""Texts of options as values: lengths, chunk grids and compressors as `zcore.create_array` takes them."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from zcore.codecs.base import Codec

_between = re.compile(r" *[,xX×] *| +")
# The parameter of each codec for the level behind its name.
LEVELS = {"blosc": "clevel", "gzip": "level", "lz4": "acceleration", "zlib": "level", "zstd": "level"}


def lengths_of(text: str, least: int = 0) -> tuple[int, ...]:
    """Return a shape that is given as text: lengths with commas, x or blanks between them, none for no dimensions.

    >>> lengths_of("48,90"), lengths_of("48×90"), lengths_of("(48, 90)"), lengths_of("")
    ((48, 90), (48, 90), (48, 90), ())
    """
    try:
        found = tuple(int(length) for length in _between.split(text.strip("()[] ")) if text)
        if min(found, default=least) < least:
            raise ValueError
        return found
    except ValueError:
        raise ValueError(f"expected lengths such as 48,90,180, found {text!r}") from None


def grid_of(text: str, option: str) -> str | tuple[int, ...]:
    """Return the text of an option as `chunks` or `shards` of `zcore.create_array`.

    Raises : ValueError, which names the `option`.
    """
    from zcore.text.arguments import parse_nbytes

    try:
        if text == "auto":
            return text
        if text[-1:].isalpha():
            # A size has its unit here: a bare number is a length.
            parse_nbytes(text)
            return text
        if 0 in (lengths := lengths_of(text, -1)):
            raise ValueError
        return lengths
    except ValueError:
        raise ValueError(f"{option}: expected lengths of at least 1 such as 100,100, a size such as '4 MB', or auto, "
                         f"found {text!r}") from None


def compressor_of(text: str) -> Codec | str | dict[str, Any] | list[Any] | None:
    """Return the text of an option as `compressors` of `zcore.create_array`.

    >>> compressor_of("zstd:3"), compressor_of("none")
    (ZstdCodec(level=3, checksum=False), None)
    >>> compressor_of("blosc:lz4:9")
    BloscCodec(typesize=None, cname='lz4', clevel=9, shuffle=None, blocksize=0)
    """
    import json

    from zcore import codecs

    if text in ("auto", "none"):
        return None if text == "none" else text
    if text[:1] in ("{", "["):
        return json.loads(text)
    name, *numbers = text.split(":")
    own = {"zstd": codecs.ZstdCodec, "gzip": codecs.GzipCodec, "blosc": codecs.BloscCodec}
    if name not in LEVELS:
        raise ValueError(f"--compressor: expected none, auto, JSON or one of {', '.join(LEVELS)}, found {text!r}")
    try:
        parameters: dict[str, Any] = {"cname": numbers.pop(0)} if name == "blosc" and numbers else {}
        if numbers:
            (level,) = numbers
            parameters[LEVELS[name]] = int(level)
        return own[name](**parameters) if name in own else {"name": f"numcodecs.{name}", "configuration": parameters}
    except ValueError as exc:
        raise ValueError(f"--compressor {text}: {exc}") from exc
