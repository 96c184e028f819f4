"""An array in slabs: boxes of whole chunks that fit into a given memory."""
from itertools import product

SLAB_NBYTES = 2**26


def slabs_of(shape, chunk_shape, itemsize, nbytes=SLAB_NBYTES):
    """Yield selections that make up an array in C order: boxes of whole chunks, of at most about `nbytes`.

    A box grows along the last dimension first, as bytes in C order do. It is never less than a chunk.

    >>> list(slabs_of((5, 4), (2, 2), 1, 8))
    [(slice(0, 2, None), slice(0, 4, None)), (slice(2, 4, None), slice(0, 4, None)),
     (slice(4, 5, None), slice(0, 4, None))]
    """
    lengths = [max(1, min(length, chunk)) for length, chunk in zip(shape, chunk_shape, strict=True)]
    room = itemsize
    for length in lengths:
        room *= length
    for d in reversed(range(len(shape))):
        n = max(1, min(-(-shape[d] // lengths[d]), nbytes // max(1, room)))
        room *= n
        lengths[d] *= n
        if lengths[d] < shape[d]:
            break
    yield from product(*[[slice(start, min(start + step, length)) for start in range(0, length, step)]
                         for length, step in zip(shape, lengths, strict=True)])
