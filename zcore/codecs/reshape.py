"""The elements of a chunk in another shape: `reshape`, zarr-extensions.

C order of the elements stays as it is, so a chain whose other codecs run in C runs there with it.
"""
import math

from zcore.codecs.base import Codec

MAX_NDIM = 64  # of numpy.ndarray


class ReshapeCodec(Codec):
    """The elements of a chunk, in C order, as a chunk of another shape.

    Parameters
    ----------
    shape : sequence of (int or sequence of int)
        A length; dimensions of the chunk, whose lengths are multiplied; or, once, -1 for what is left. Dimensions
        ascend through the whole of it.

    Raises
    ------
    ValueError
        A part of `shape` is none of these.

    Examples
    --------
    >>> import numpy as np
    >>> ReshapeCodec(shape=[[0, 1], 3, -1]).encoded_type(np.dtype("i4"), (2, 5, 12))
    (dtype('int32'), (10, 3, 4))
    """

    name = "reshape"
    kind = "array_array"
    is_move = True

    def __init__(self, *, shape):
        if not isinstance(shape, (list, tuple)) or len(shape) > MAX_NDIM:
            raise ValueError(f"shape is {shape!r:.60}, expected a list of at most {MAX_NDIM} parts")
        parts = [tuple(part) if isinstance(part, (list, tuple)) else part for part in shape]
        dimensions = []
        for part in parts:
            if isinstance(part, tuple):
                dimensions += part
            elif type(part) is not int or (part < 1 and part != -1):
                raise ValueError(f"shape has {part!r:.60}, expected an integer >= 1, -1, or a list of dimensions")
        if not all([type(d) is int and d >= 0 for d in dimensions]) or any(
                [a >= b for a, b in zip(dimensions, dimensions[1:], strict=False)]):
            raise ValueError(f"shape lists the dimensions {dimensions!r:.60}, expected ascending integers >= 0")
        if parts.count(-1) > 1:
            raise ValueError("shape has -1 more than once")
        self.shape = tuple(parts)

    def configuration(self):
        """Return what documents record, a dict."""
        return {"shape": [list(part) if isinstance(part, tuple) else part for part in self.shape]}

    def encoded_type(self, dtype, shape):
        """Return type and shape of what is encoded.

        Raises
        ------
        ValueError
            The chunk has another number of elements, or dimensions that do not come to lie where `shape` has them.
        """
        if max([part[-1] for part in self.shape if isinstance(part, tuple) and part], default=-1) >= len(shape):
            raise ValueError(f"'reshape' to {self.configuration()['shape']} needs more than {len(shape)} dimensions")
        lengths = [math.prod([shape[d] for d in part]) if isinstance(part, tuple) else part for part in self.shape]
        n_items = math.prod(shape)
        if -1 in lengths:
            i = lengths.index(-1)
            lengths[i] = n_items // math.prod(lengths[:i] + lengths[i + 1:])
        if math.prod(lengths) != n_items or 0 in lengths:
            raise ValueError(f"'reshape' to {self.configuration()['shape']} does not take chunks of shape {shape}")
        for i, part in enumerate(self.shape):
            if isinstance(part, tuple) and part and (
                    math.prod(lengths[:i]) != math.prod(shape[:part[0]])
                    or math.prod(lengths[i + 1:]) != math.prod(shape[part[-1] + 1:])):
                raise ValueError(f"'reshape' to {self.configuration()['shape']}: dimension {i} of it is not "
                                 f"{list(part)} of chunks of shape {shape}")
        return dtype, tuple(lengths)

    def step(self, dtype):
        """Return None: there is nothing to do."""
        return None

    def encode(self, chunk):
        """Return the chunk in the other shape."""
        return chunk.reshape(self.encoded_type(chunk.dtype, chunk.shape)[1])

    def decode(self, chunk, dtype, shape):
        """Return the encoded chunk in the shape it had."""
        return chunk.reshape(shape)


CODECS = {ReshapeCodec.name: ReshapeCodec}
