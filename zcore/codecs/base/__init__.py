"""The interface of a codec.

Zarr v3 core, "Codecs": three kinds, distinguished by `kind`. Each class has a `name`. `from_configuration` makes a
codec from a document, and `spec` returns its entry for a document. A codec does not know the array; it gets everything
as arguments::

    kind           encode(…)       decode(…)                     and
    array_array    chunk           chunk, dtype, shape           encoded_type(dtype, shape), step(dtype), is_move
    array_bytes    chunk           data, dtype, shape            encoded_nbytes(dtype, shape)
    bytes_bytes    data            data, n_bytes, at_most        max_encoded(n_bytes), is_fixed, step()

- Chunks are ndarrays of any strides, data are bytes-like. `dtype` and `shape` are those of the decoded chunk.
- `n_bytes` is the exact size of the content; with `at_most` it is the maximum size.
- `step` is the codec as a step of a `Program`, None if it has no C form.
- `max_encoded` and `encoded_nbytes` return None if the size is unknown.
- If a codec does not accept a chunk, `encoded_type` or `encoded_nbytes` raises ValueError, before anything is read.
- `is_move`: the codec only moves elements, so a fill value stays the same. For other codecs, `encode_fill` encodes the
  value of elements that were never written; with `checks_fill` it may refuse a fill value.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from zcore.errors import CodecError, warn
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec

if TYPE_CHECKING:
    from typing import Any, Self

    import numpy.typing as npt

    from zcore.typing import Buffer


class Codec:
    """One codec. Subclasses define `name`, `kind`, and `_parameters`, the names of their parameters."""

    name: str
    kind: str
    is_move: bool = False
    checks_fill: bool = False
    is_sized: bool = False      # the step depends on the size of the content
    max_content: int | None = None      # bytes of content; None: any number
    _parameters: tuple[str, ...] = ()
    _left_out: tuple[str, ...] = ()     # parameters that documents do not record where they are None

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the codec of a document's configuration.

        Raises
        ------
        ValueError, TypeError
            A parameter is unknown, missing or out of its range.
        """
        try:
            return cls(**configuration)
        except TypeError:
            from inspect import signature

            if not isinstance(configuration, Mapping):
                raise TypeError(f"expected the configuration of {cls.name!r} as a dict, found "
                                f"{configuration!r:.60}") from None
            known = signature(cls).parameters
            unknown = [name for name in configuration if name not in known]
            missing = [name for name, one in known.items() if one.default is one.empty and name not in configuration]
            if missing:
                raise TypeError(f"codec {cls.name!r} needs the parameter {missing[0]!r}") from None
            if unknown:
                raise TypeError(f"codec {cls.name!r} has no parameter {unknown[0]!r}; it has "
                                f"{', '.join(known) or 'none'}") from None
            raise

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        found = {name: getattr(self, name) for name in self._parameters}
        return {name: value for name, value in found.items() if value is not None or name not in self._left_out}

    def step(self, dtype: np.dtype[Any] | None = None) -> tuple[Any, ...] | None:
        """Return the step of a `Program`, None without a C form; `dtype` is for codecs from array to array."""
        return None

    def step_for(self, n_bytes: int | None) -> tuple[Any, ...] | None:
        """Return the step of a codec from bytes to bytes for content of at most `n_bytes` bytes, None: of any size.

        None, if the codec has no C form.
        """
        return self.step()

    def resolve(self, itemsize: int) -> Codec:
        """Return the codec for items of `itemsize` bytes, with all parameters set."""
        return self

    def spec(self) -> CodecSpec:
        """Return the `CodecSpec` for documents."""
        return CodecSpec(self.name, self.configuration())

    def encode_fill(self, fill: npt.NDArray[Any]) -> Any:
        """Return the encoded fill value, a chunk of one element.

        Raises : ValueError, if the codec cannot store this fill value.
        """
        try:
            return self.encode(fill)
        except CodecError as exc:
            raise ValueError(f"the fill value cannot be stored by {self.name!r}: {exc.message}") from exc

    def damage(self, sentence: str, offset: int = 0, expected: int | None = None,
               found: int | None = None) -> CodecError:
        """Return the error of encoded data that are damaged."""
        return CodecError(sentence, codec=self.name, direction="decode", offset=offset, expected=expected, found=found)

    def _call(self, package, direction, function, *arguments, **keywords):
        """Call a function of another package, whose errors may be any."""
        try:
            return function(*arguments, **keywords)
        except MemoryError:
            raise
        except Exception as exc:
            raise CodecError(f"{package} cannot {direction}: {exc}", codec=self.name, direction=direction,
                             offset=0) from exc

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([f'{n}={v!r}' for n, v in self.configuration().items()])})"


class StepCodec(Codec):
    """A codec from bytes to bytes that runs as a step of the kernel, also when it is called from Python."""

    kind = "bytes_bytes"
    is_fixed: bool = False  # whether the encoded size depends only on the size of the content

    def _program(self, n_bytes=None):
        return Program((self.step_for(n_bytes),))

    def max_encoded(self, n_bytes: int) -> int | None:
        """Return the maximum encoded size of `n_bytes` bytes of content."""
        return self._program().encoded_bound(n_bytes)

    def encode(self, data: Buffer) -> Buffer:
        """Return `data` encoded.

        Raises
        ------
        CodecError
            The codec cannot encode it: it is too long, or no whole number of items.
        """
        return self._program(memoryview(data).nbytes).encode_bytes(data, (self.name,))

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> Buffer:
        """Return the content of `data`: exactly `n_bytes` bytes, or at most that with `at_most`. Never decodes more.

        Raises
        ------
        CodecError
            `data` is damaged, or its content has another size.
        """
        return self._program(n_bytes).decode_new(data, n_bytes, at_most, (self.name,))


class Lenient(Codec):
    """A codec of numcodecs. Unknown members of its configuration are ignored with a warning."""

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Any:
        """Return the codec of a document's configuration."""
        unknown = configuration.keys() - set(cls._parameters)
        if unknown:
            warn(f"codec {cls.name!r} has no parameter {', '.join(sorted(map(str, unknown)))}; ignored")
        return super().from_configuration({name: value for name, value in configuration.items()
                                           if name not in unknown})


def check_size(codec: str, found: int, n_bytes: int, at_most: bool = False) -> None:
    """Raise CodecError unless content of `found` bytes has the size that `Codec.decode` expects."""
    if found > n_bytes or (found < n_bytes and not at_most):
        raise CodecError(f"content has {found} bytes, expected {n_bytes}", codec=codec, direction="decode", offset=0,
                         expected=n_bytes, found=found)


def check_integer(name: str, value: Any, minimum: int, maximum: int) -> int:
    """Return the integer `value`, of Python or NumPy; raises ValueError unless it is from `minimum` to `maximum`."""
    number = int(value) if isinstance(value, np.integer) else value
    if type(number) is not int or not minimum <= number <= maximum:
        raise ValueError(f"{name} is {value!r:.60}, expected an integer from {minimum} to {maximum}")
    return number
