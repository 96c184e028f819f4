"""What a codec is.

Zarr v3 core, "Codecs": three kinds, told by `kind`. Each class has a `name`, is made by `from_configuration`, and says
by `spec` what documents record of it. A codec does not know the array; what it needs is handed to it::

    kind           encode(…)       decode(…)                     and
    array_array    chunk           chunk, dtype, shape           encoded_type(dtype, shape), step(dtype), is_move
    array_bytes    chunk           data, dtype, shape            encoded_nbytes(dtype, shape)
    bytes_bytes    data            data, n_bytes, at_most        max_encoded(n_bytes), is_fixed, step()

Chunks are ndarrays of any strides, data are bytes-like. `dtype` and `shape` are those of the decoded chunk. `n_bytes`
is the size of the content, which is compared; with `at_most` it is the most that there may be. `step` is the codec as a
step of a `Program`, None where it has no C form. What `max_encoded` and `encoded_nbytes` cannot tell is None. Chunks
that a codec does not take are a ValueError of `encoded_type` and `encoded_nbytes`, before anything is read. `is_move`:
elements stay what they are and change their places alone, so that a fill value stays what it is. Of others
`encode_fill` makes what elements become that were never written; with `checks_fill` not every fill value may stand.
"""

from zcore.errors import CodecError, warn
from zcore.kernel.codec.program import Program
from zcore.model.metadata import CodecSpec


class Codec:
    """One codec; subclasses give `name` and `kind`, and `_parameters`, the names of what they are configured by."""

    name = None
    kind = None
    is_move = False
    checks_fill = False
    _parameters = ()

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration.

        Raises
        ------
        ValueError, TypeError
            A parameter is unknown, missing or out of its range.
        """
        return cls(**configuration)

    def configuration(self):
        """Return what documents record, a dict."""
        return {name: getattr(self, name) for name in self._parameters}

    def is_faster_in_python(self, n_bytes):
        """Return whether a codec with a C form does content of at most `n_bytes` bytes faster in Python."""
        return False

    def resolve(self, itemsize):
        """Return the codec for items of `itemsize` bytes, nothing left to choose."""
        return self

    def spec(self):
        """Return the `CodecSpec` that documents record."""
        return CodecSpec(self.name, self.configuration())

    def encode_fill(self, fill):
        """Return what becomes of a fill value, a chunk of one element.

        Raises : ValueError, if it may not have this one.
        """
        try:
            return self.encode(fill)
        except CodecError as exc:
            raise ValueError(f"the fill value cannot be stored by {self.name!r}: {exc.message}") from exc

    def __repr__(self):
        return f"{type(self).__name__}({', '.join([f'{n}={v!r}' for n, v in self.configuration().items()])})"


class StepCodec(Codec):
    """A codec from bytes to bytes that is a step of the kernel in Python, too."""

    kind = "bytes_bytes"
    is_fixed = False  # whether the size of what is encoded follows from the size of the content

    def _program(self):
        return Program((self.step(),))

    def max_encoded(self, n_bytes):
        """Return the most bytes that `n_bytes` bytes of content take."""
        return self._program().encoded_bound(n_bytes)

    def encode(self, data):
        """Return `data` encoded.

        Raises
        ------
        CodecError
            The codec cannot encode it: too long, no whole number of items.
        """
        return self._program().encode_bytes(data, (self.name,))

    def decode(self, data, n_bytes, at_most=False):
        """Return the content of `data`, `n_bytes` bytes, or at most so many; more are never decoded.

        Raises
        ------
        CodecError
            `data` are damaged, or have another size of content.
        """
        return self._program().decode_new(data, n_bytes, at_most, (self.name,))


class Lenient:
    """A codec of numcodecs, whose documents may have members that it does not know: ignored, with a warning."""

    @classmethod
    def from_configuration(cls, configuration):
        """Return the codec of a document's configuration."""
        unknown = configuration.keys() - set(cls._parameters)
        if unknown:
            warn(f"codec {cls.name!r} has no parameter {', '.join(sorted(unknown))}; ignored")
        return cls(**{name: value for name, value in configuration.items() if name not in unknown})


def check_size(codec, found, n_bytes, at_most=False):
    """Raise CodecError unless content of `found` bytes has the size that `Codec.decode` is told."""
    if found > n_bytes or (found < n_bytes and not at_most):
        raise CodecError(f"content has {found} bytes, expected {n_bytes}", codec=codec, direction="decode", offset=0,
                         expected=n_bytes, found=found)


def check_integer(name, value, minimum, maximum):
    """Raise ValueError unless `value` is an integer from `minimum` to `maximum`."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise ValueError(f"{name} is {value!r}, expected an integer from {minimum} to {maximum}")
