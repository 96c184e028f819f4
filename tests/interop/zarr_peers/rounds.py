"""What two libraries do with one array in turns."""
import numpy as np

import zcore

from .cases import SHAPES, elements, same
from .documents import document_of

START = {0: (), 1: (3,), 2: (1, 3), 3: (1, 1, 2)}  # where a box begins that cuts chunks on all sides
BOX = {0: (), 1: (4,), 2: (4, 6), 3: (2, 2, 2)}


class Turns:
    """One array that zcore made and one that the peer made of the same members; both work on both.

    `model` is what has to be in them.
    """

    def __init__(self, case, peer, folder):
        self.case, self.peer = case, peer
        self.ours, self.theirs = folder / "ours", folder / "theirs"
        self.array = zcore.create_array(self.ours, **case.keywords())
        peer.create(str(self.theirs), document_of(self.ours, case.format))
        self.model = np.empty(self.array.shape, self.array.dtype)
        self.model[...] = self.filled(self.array.shape)

    def filled(self, shape):
        """Return an array of fill values, undefined ones being zero."""
        dtype = self.array.dtype
        if dtype.kind in "TO":
            return np.full(shape, self.array.fill_value or "", dtype)
        return np.full(shape, np.frombuffer(self.array.metadata.fill_bytes, dtype)[0], dtype)

    def both_read(self):
        """Assert that both read the model from both arrays, and zcore finds nothing to object to."""
        for place in (self.ours, self.theirs):
            assert same(zcore.open(place)[...], self.model), f"zcore reads {place.name}"
            found = self.peer.read(str(place), self.case.format)
            assert same(np.asarray(found), self.model), f"{self.peer.name} reads {place.name}"

    def write_all(self):
        """Each fills its own array with elements that leave the first and the last chunk as they are: empty."""
        value = elements(self.model.dtype, self.model.shape, 1)
        if self.model.ndim:
            chunks = self.array.chunks
            for some in (slice(0, chunks[0]), slice((len(value) - 1) // chunks[0] * chunks[0], None)):
                box = (some, *(slice(0, chunk) for chunk in chunks[1:]))
                value[box] = self.model[box]
        self.model = value
        zcore.open(self.ours, "r+")[...] = value
        self.peer.write(str(self.theirs), self.case.format, (0,) * value.ndim, value)

    def write_parts_of_the_others(self):
        ndim = self.model.ndim
        part = elements(self.model.dtype, BOX[ndim], 2)
        box = tuple(slice(start, start + n) for start, n in zip(START[ndim], BOX[ndim], strict=True))
        self.model[box] = part
        self.peer.write(str(self.ours), self.case.format, START[ndim], part)
        zcore.open(self.theirs, "r+")[box] = part

    def resize_the_others(self):
        """What a shrinking dimension loses is written over, so that neither counts on what the other left there."""
        shape = SHAPES[self.case.shape][3]
        model = self.filled(shape)
        common = tuple(slice(min(pair)) for pair in zip(shape, self.model.shape, strict=True))
        model[common] = self.model[common]
        self.model = model
        if shape:
            self.peer.resize(str(self.ours), self.case.format, shape)
            zcore.open(self.theirs, "r+").resize(shape)

    def rounds(self):
        self.both_read()
        self.write_all()
        self.both_read()
        self.write_parts_of_the_others()
        self.both_read()
        self.resize_the_others()
        self.both_read()
