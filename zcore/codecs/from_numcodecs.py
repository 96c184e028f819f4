"""Codecs that only the numcodecs package has.

These are `numcodecs.quantize`, `numcodecs.base64`, and all others that are registered there.

The package is imported when one of them is first used (extra `numcodecs`). Its decoders have no size limit, so an
object with too much content is refused only after decoding. Codecs that run code from the data are always refused.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec, check_size
from zcore.errors import CodecError, Needing, UnknownCodecError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import numpy.typing as npt

    from zcore.typing import Buffer

# Decoding runs code from the data.
REFUSED = frozenset(("pickle", "cloudpickle", "dill", "joblib"))
# Codecs that are not from bytes to bytes.
_KINDS = {
    **dict.fromkeys(("quantize", "astype", "packbits", "categorize"), "array_array"),
    **dict.fromkeys(("pcodec", "zfpy", "msgpack2"), "array_bytes"),
}
# Members of the configuration with the types of the encoded and the decoded numbers.
_TYPES = {
    "quantize": ("astype", "dtype"), "categorize": ("astype", "dtype"), "astype": ("encode_dtype", "decode_dtype"),
}


def fallback_codec(name: str, configuration: Mapping[str, Any]) -> Codec:
    """Return the codec ``numcodecs.<id>`` of the package.

    Raises
    ------
    UnsupportedError
        Decoding runs code from the data, or the package is not installed.
    UnknownCodecError
        The package has no such codec.
    ValueError
        The codec does not accept the configuration.
    """
    id = name.removeprefix("numcodecs.")
    if id in REFUSED:
        raise UnsupportedError(f"the codec {id!r} is never run: its decoder runs code from the data",
                               feature=f"codec {id}")
    with Needing(f"the codec {id!r} needs", "numcodecs", "numcodecs", "numcodecs"):
        from numcodecs import get_codec, registry
    if id not in registry.codec_registry and id not in registry.entries:
        raise UnknownCodecError(f"no codec is named {name!r}, and numcodecs has none named {id!r}", feature="codec",
                                codec=name)
    try:
        theirs = get_codec({**configuration, "id": id})
    except Exception as exc:
        raise ValueError(f"numcodecs cannot make {id!r} of {configuration!r:.100}: {exc}") from exc
    return _CLASSES[_KINDS.get(id, "bytes_bytes")](name, configuration, theirs)


class _Fallback(Codec):
    """One codec of numcodecs. `theirs` is numcodecs' object."""

    def __init__(self, name: str, given: Any, theirs: Any) -> None:
        self.name: str = name
        self.id: str = name.removeprefix("numcodecs.")
        self.given = given
        self.theirs = theirs

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        return self.given

    def _run(self, direction, data):
        with np.errstate(all="ignore"):
            return self._call("numcodecs", direction, getattr(self.theirs, direction), data)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join([f'{name}={value!r}' for name, value in self.given.items()])})"


class FallbackBytes(_Fallback):
    """A codec of numcodecs from bytes to bytes."""

    kind = "bytes_bytes"
    is_fixed = False

    def max_encoded(self, n_bytes: int) -> None:
        """Return None: the size is unknown."""
        return None

    def encode(self, data: Buffer) -> bytes:
        """Return `data` encoded."""
        return _bytes_of(self._run("encode", bytes(data)))

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> bytes:
        """Return the content: exactly `n_bytes` bytes, or at most that with `at_most`.

        Raises
        ------
        CodecError
            `data` is damaged, or its content has another size.
        """
        content = _bytes_of(self._run("decode", bytes(data)))
        check_size(self.name, len(content), n_bytes, at_most)
        return content


class FallbackArray(_Fallback):
    """A codec of numcodecs from array to array."""

    kind = "array_array"

    def encoded_type(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[np.dtype[Any], tuple[int, ...]]:
        """Return type and shape of the encoded chunk."""
        if self.id == "packbits":
            n_items = int(np.prod(shape, dtype=np.int64))
            if dtype.itemsize != 1 or dtype.kind not in "biu":
                raise ValueError(f"{self.name!r} takes booleans, not {dtype}")
            return np.dtype("u1"), (1 + -(-n_items // 8),)
        encoded, expected = self._types(dtype)
        if expected.itemsize != dtype.itemsize or expected.kind != dtype.kind:
            raise ValueError(f"{self.name!r} takes items of type {expected}, not {dtype}")
        return encoded, shape

    def _types(self, dtype):
        """Return the types, with byte order, in which numcodecs sees the encoded and the decoded numbers."""
        config = self.theirs.get_config()
        return [np.dtype(config.get(member, dtype)) for member in _TYPES.get(self.id, (None, None))]

    def encode(self, chunk: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the encoded chunk."""
        if self.id == "packbits" and chunk.dtype.kind != "b" and ((chunk < 0) | (chunk > 1)).any():
            raise CodecError(f"{self.name!r} keeps one bit of each item, 0 or 1; the chunk has other numbers",
                             codec=self.name, direction="encode")
        _, given = self._types(chunk.dtype)
        dtype, shape = self.encoded_type(chunk.dtype, chunk.shape)
        encoded = np.asarray(self._run("encode", np.ascontiguousarray(chunk, given)))
        return encoded.reshape(-1).view(dtype).reshape(shape)

    def decode(self, chunk: npt.NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the decoded chunk.

        Raises
        ------
        CodecError
            The chunk has another size.
        """
        given, _ = self._types(chunk.dtype)
        decoded = np.asarray(self._run("decode", np.ascontiguousarray(chunk, given))).reshape(-1)
        n_items = int(np.prod(shape, dtype=np.int64))
        if decoded.size != n_items:
            raise self.damage(f"chunk decodes to {decoded.size} items, expected {n_items}", 0, n_items, decoded.size)
        return decoded.astype(dtype).reshape(shape)


class FallbackSerializer(_Fallback):
    """A codec of numcodecs from array to bytes."""

    kind = "array_bytes"

    @property
    def is_bound_to_order(self) -> bool:
        """Whether the encoded chunk contains the shape, or depends on the order of dimensions."""
        return self.id != "pcodec"

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Return None: the size depends on the items."""
        return None

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the bytes of a chunk."""
        return _bytes_of(self._run("encode", np.ascontiguousarray(chunk)))

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk.

        Raises
        ------
        CodecError
            The chunk has another size.
        """
        decoded = np.asarray(self._run("decode", bytes(data)))
        if decoded.shape != tuple(shape) and not (decoded.ndim == 1 and decoded.size == np.prod(shape)):
            raise self.damage(f"chunk decodes to the shape {decoded.shape}, expected {tuple(shape)}")
        if decoded.dtype.kind != dtype.kind:
            decoded = decoded.astype(dtype)
        return decoded.reshape(shape)


_CLASSES = {cls.kind: cls for cls in (FallbackBytes, FallbackArray, FallbackSerializer)}


def _bytes_of(encoded):
    """Return the output of numcodecs, an ndarray or bytes-like, as bytes."""
    return np.ascontiguousarray(encoded).tobytes() if isinstance(encoded, np.ndarray) else bytes(encoded)
