"""The codec `zfp` of Zarr's registry: chunks of numbers that may lose precision, by the package zfpy (extra `zfp`).

zarr-extensions, "zfp": a stream of the zfp library without its header. The stream says neither its size nor its shape,
so most damage cannot be noticed. Only a stream of a fixed rate has a known size.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from zcore.codecs.base import Codec
from zcore.errors import Needing, UnsupportedError

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from zcore.typing import Buffer

# The parameter of each mode, and its types. The modes of zfpy are those with one, and none for `reversible`.
_MODES: dict[str, tuple[str, tuple[type, ...]] | None] = {
    "reversible": None, "fixed_rate": ("rate", (int, float)), "fixed_precision": ("precision", (int,)),
    "fixed_accuracy": ("tolerance", (int, float)),
}
_MOST = {"precision": 64, "rate": 4096}
_TYPES = ("i4", "i8", "f4", "f8")
_MAX_NDIM = 4
_BLOCK_LENGTH = 4          # of the blocks of zfp, in each dimension
_MAX_BLOCK_BITS = 16658    # of any block: zfp.h, ZFP_MAX_BITS
# Fewest bits of a block of a fixed rate: the exponent of its numbers and a bit. zfp reads no fewer. zfpy writes fewer,
# and then writes outside its memory.
_MIN_BLOCK_BITS = {"f4": 9, "f8": 12}
_WORD_NBYTES = 8           # a stream ends with a whole word, unless zfp was built with shorter ones


class ZfpCodec(Codec):
    """Numbers compressed by zfp.

    Parameters
    ----------
    mode : {"reversible", "fixed_rate", "fixed_precision", "fixed_accuracy"}
    rate, tolerance : number
        For ``"fixed_rate"`` the bits of a number, for ``"fixed_accuracy"`` the largest error.
    precision : int
        For ``"fixed_precision"`` the bits of a number that are kept at most.

    Raises
    ------
    UnsupportedError
        The mode is ``"expert"``, which zfpy does not have, or zfpy is not installed.
    """

    name = "zfp"
    kind = "array_bytes"

    def __init__(self, *, mode: str, **parameters: Any) -> None:
        if mode == "expert":
            raise UnsupportedError("the mode 'expert' of 'zfp', which zfpy does not have",
                                   feature="zfp in expert mode")
        if mode not in _MODES:
            raise ValueError(f"mode of 'zfp' is {mode!r:.60}, expected one of {', '.join(_MODES)}")
        parameter = _MODES[mode]
        if parameters.keys() != ({parameter[0]} if parameter else set()):
            found = ", ".join(map(str, parameters)) or "none"
            raise ValueError(f"the mode {mode!r} of 'zfp' has the parameters {found:.60}, expected "
                             f"{parameter[0] if parameter else 'none'}")
        for name, value in parameters.items():
            least, most = int(name == "precision"), _MOST.get(name, 2**31)
            if type(value) not in parameter[1] or not least <= value <= most:
                raise ValueError(f"{name} of 'zfp' is {value!r:.60}, expected a number from {least} to {most}")
        self.mode = mode
        self._parameters_given = parameters
        with Needing("the codec 'zfp' needs", "zfpy", "zfp", "zfp"):
            import zfpy
        self._zfpy = zfpy

    def configuration(self) -> dict[str, Any]:
        """Return the configuration for documents, a dict."""
        return {"mode": self.mode, **self._parameters_given}

    def encoded_nbytes(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Return None: the size depends on the numbers.

        Raises : ValueError, if zfp does not take the type, or so many dimensions.
        """
        if dtype.str[1:] not in _TYPES:
            raise ValueError(f"'zfp' takes numbers of type int32, int64, float32 or float64, not {dtype}")
        if len(shape) > _MAX_NDIM:
            raise ValueError(f"'zfp' takes at most {_MAX_NDIM} dimensions, the chunk has {len(shape)}")
        if self.mode == "fixed_rate" and not self._block_bits(dtype, shape):
            raise ValueError(f"rate of 'zfp' is {self._parameters_given['rate']!r}, which leaves no bit of a block")

    def _block_bits(self, dtype, shape):
        """Return the bits of a block of a fixed rate, as zfp has it."""
        bits = math.floor(_BLOCK_LENGTH ** max(len(shape), 1) * self._parameters_given["rate"] + 0.5)
        return max(bits, _MIN_BLOCK_BITS.get(dtype.str[1:], 0))

    def _parameters_for(self, dtype, shape):
        """Return the parameters for zfpy."""
        if self.mode != "fixed_rate":
            return self._parameters_given
        return {"rate": self._block_bits(dtype, shape) / _BLOCK_LENGTH ** max(len(shape), 1)}

    def encode(self, chunk: npt.NDArray[Any]) -> bytes:
        """Return the stream of a chunk."""
        numbers = np.ascontiguousarray(chunk, chunk.dtype.newbyteorder("="))
        return self._call("zfpy", "encode", self._zfpy.compress_numpy, numbers.reshape(chunk.shape or (1,)),
                          write_header=False, **self._parameters_for(chunk.dtype, chunk.shape))

    def decode(self, data: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the chunk of a stream.

        Raises : ChunkError, if the stream is shorter or longer than any of such a chunk.
        """
        native, data = dtype.newbyteorder("="), bytes(data)
        n_blocks = math.prod([-(-length // _BLOCK_LENGTH) for length in shape])
        n_values = _BLOCK_LENGTH ** max(len(shape), 1)
        if self.mode == "fixed_rate":
            least = most = self._block_bits(dtype, shape)
        else:
            least, most = 1, min(n_values * (8 * dtype.itemsize + 1) + 64, _MAX_BLOCK_BITS)
        n_least, n_most = [-(-n_blocks * bits // 8) for bits in (least, most)]
        n_most = -(-n_most // _WORD_NBYTES) * _WORD_NBYTES
        if not n_least <= len(data) <= n_most:
            raise self.damage(f"the stream of 'zfp' has {len(data)} bytes, expected {n_least} to {n_most}", 0, n_least,
                              len(data))
        # zfp does not look for the end of the stream. No stream is longer than this.
        decoded = self._call("zfpy", "decode", self._zfpy._decompress, data.ljust(n_most + _WORD_NBYTES, b"\0"),
                             self._zfpy.dtype_to_ztype(native), shape or (1,), **self._parameters_for(dtype, shape))
        return np.asarray(decoded, dtype).reshape(shape)


CODECS: dict[str, type[Codec]] = {"zfp": ZfpCodec}
