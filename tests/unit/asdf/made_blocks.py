"""Blocks in memory, for tests of trees: what a tree asks of the blocks of a file."""
from zcore.errors import AsdfFormatError


class MadeBlock:
    """A block of bytes at hand; it notes what is read of it."""

    def __init__(self, data, is_compressed=False, is_streamed=False):
        self.data = bytes(data)
        self.data_size = len(self.data)
        self.is_compressed = is_compressed
        self.is_streamed = is_streamed
        self.ranges = []

    def read(self):
        self.ranges.append((0, self.data_size))
        return bytearray(self.data)

    def read_range(self, offset, length):
        if not 0 <= offset <= offset + length <= self.data_size:
            raise AsdfFormatError("a range outside of the block")
        self.ranges.append((offset, length))
        return bytearray(self.data[offset:offset + length])

    def extent(self):
        return None


class MadeFile:
    """The blocks that `dump` gives to a file."""

    def __init__(self):
        self.blocks = []

    def add_block(self, memory, *, streamed=False):
        self.blocks.append(MadeBlock(memory.data if isinstance(memory, MadeBlock) else memory, is_streamed=streamed))
        return len(self.blocks) - 1
