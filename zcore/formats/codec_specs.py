"""Codecs as several formats take them from a caller, and `bytes` and `blosc` as all write them: defaults and limits."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

from zcore.model.dtypes import byte_order
from zcore.model.metadata import CodecSpec
from zcore.model.named_codecs import named_codec
from zcore.text.arguments import integer_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy as np

BLOSC_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")  # the position is the number in Zarr v2 and `__zmeta__`
BLOSC_DEFAULTS: dict[str, Any] = {"cname": "lz4", "clevel": 5}  # see docs/design/decisions.md
MAX_BLOSC_NBYTES = 2**31 - 1 - 16  # of a chunk: c-blosc, BLOSC_MAX_BUFFERSIZE


def given_specs(codecs: object) -> list[CodecSpec]:
    """Return one codec of a caller, or several, as a list; see `named_codec`."""
    return [named_codec(codec) for codec in (codecs if isinstance(codecs, (list, tuple)) else (codecs,))]


def bytes_spec(dtype: np.dtype[Any]) -> CodecSpec:
    """Return the codec `bytes` for items of fixed size, in the byte order that they have."""
    endian = byte_order(dtype)
    return CodecSpec("bytes", {} if endian is None else {"endian": endian})


def blosc_spec(given: Mapping[str, Any], itemsize: int, shuffle: str | None = None) -> CodecSpec:
    """Return the codec `blosc` with the parameters in `given`, and defaults for items of `itemsize` bytes.

    The shuffle may be a number in `given`. `shuffle` is its default: by bits for items of one byte, else by bytes.
    """
    parameters = {
        "typesize": blosc_typesize(itemsize),
        **BLOSC_DEFAULTS,
        "shuffle": shuffle or ("bitshuffle" if itemsize == 1 else "shuffle"),
        "blocksize": 0,
        **given,
    }
    number = integer_of(parameters["shuffle"])
    if number is not None and 0 <= number < len(BLOSC_SHUFFLES):
        parameters["shuffle"] = BLOSC_SHUFFLES[number]
    return CodecSpec("blosc", parameters)


def check_blosc_nbytes(chunk_shape: tuple[int, ...], itemsize: int) -> None:
    """Raise ValueError if chunks are too long for blosc."""
    n_bytes = itemsize * math.prod(chunk_shape)
    if n_bytes > MAX_BLOSC_NBYTES:
        raise ValueError(f"expected chunks of at most {MAX_BLOSC_NBYTES} bytes, the limit of blosc, found {n_bytes}")


def blosc_typesize(itemsize: int) -> int:
    """Return the item size that c-blosc records; it records larger ones as 1."""
    return itemsize if itemsize <= 255 else 1
