"""`numcodecs.shuffle`: moves bytes, which makes them easier to compress."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.codecs.base import Lenient, StepCodec, check_integer, check_size
from zcore.kernel.codec.shuffle import shuffle, unshuffle

if TYPE_CHECKING:
    from typing import Any, Self

    import numpy as np

    from zcore.typing import Buffer


class NumcodecsShuffle(Lenient, StepCodec):
    """Byte shuffle: all first bytes of the items, then all second bytes, and so on.

    Parameters
    ----------
    elementsize : int, optional
        Bytes of an item; the size must be a multiple of it. 1 changes nothing. By default the item size before the
        codec from array to bytes, as in zarr-python; 0 means the same, as netcdf-c writes it.

    Notes
    -----
    numcodecs takes 0 for no shuffle, so zcore never records it. Behind `numcodecs.fletcher32` there may be a part of an
    item at the end, which stays as it is: HDF5 puts the filters in this order on request, and NetCDF-4 by default.
    """

    name = "numcodecs.shuffle"
    is_fixed = True
    copies_rest: bool = False  # set by the chain
    _parameters = _left_out = ("elementsize",)

    def __init__(self, *, elementsize: int | None = None) -> None:
        self.elementsize: int | None = (None if elementsize is None
                                        else check_integer("elementsize", elementsize, 0, 2**31 - 1))

    def resolve(self, itemsize: int) -> Self:
        """Return the codec for items of `itemsize` bytes, with all parameters set."""
        return self if self.elementsize else type(self)(elementsize=itemsize)

    def step(self, dtype: np.dtype[Any] | None = None) -> tuple[Any, ...] | None:
        """Return the step of a `Program`; None if the data may end inside an item."""
        return None if self.copies_rest else ("shuffle", self.elementsize or 1)

    def max_encoded(self, n_bytes: int) -> int:
        """Return `n_bytes`."""
        return n_bytes

    def encode(self, data: Buffer) -> Buffer:
        """Return `data` shuffled."""
        return shuffle(data, self.elementsize) if self.copies_rest else super().encode(data)

    def decode(self, data: Buffer, n_bytes: int, at_most: bool = False) -> Buffer:
        """Return the items of `data`; see `StepCodec.decode`."""
        if not self.copies_rest:
            return super().decode(data, n_bytes, at_most)
        check_size(self.name, len(data), n_bytes, at_most)
        return unshuffle(data, self.elementsize)


CODECS: dict[str, type[NumcodecsShuffle]] = {"numcodecs.shuffle": NumcodecsShuffle}
