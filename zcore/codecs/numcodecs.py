"""The codecs of numcodecs for Zarr v3, under the names that zarr-python has for them: ``Delta(dtype="<i4")``.

Each is the `CodecSpec` that a document records, such as ``numcodecs.delta`` with a configuration.

>>> from zcore.codecs.numcodecs import Delta
>>> Delta(dtype="<i4")
CodecSpec(name='numcodecs.delta', configuration={'dtype': '<i4'})
"""
from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from zcore.model.metadata import CodecSpec
from zcore.text.tried_names import no_attribute

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NAMES = {name: name.lower() for name in (
    "Adler32", "AsType", "BZ2", "BitRound", "Blosc", "CRC32", "CRC32C", "Delta", "FixedScaleOffset", "Fletcher32",
    "GZip", "LZ4", "LZMA", "PCodec", "PackBits", "Quantize", "Shuffle", "ZFPY", "Zlib", "Zstd")}
_NAMES["JenkinsLookup3"] = "jenkins_lookup3"


def __getattr__(name: str) -> Callable[..., CodecSpec]:
    if name not in _NAMES:
        raise no_attribute(__name__, name, _NAMES)
    return partial(_spec, _NAMES[name])


def _spec(name: str, /, **configuration: Any) -> CodecSpec:
    return CodecSpec(f"numcodecs.{name}", configuration)
