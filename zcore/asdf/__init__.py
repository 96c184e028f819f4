"""ASDF files: the whole low-level layout, and the tree, read and written.

>>> import tempfile, numpy as np, zcore
>>> with tempfile.TemporaryDirectory() as folder:
...     zcore.asdf.write(f"{folder}/a.asdf", {"title": "squares", "x": np.arange(5) ** 2}, compression="zlib")
...     with zcore.asdf.open(f"{folder}/a.asdf") as file:
...         file.tree["title"], file.tree["x"].read().tolist(), file.blocks[0].compression
('squares', [0, 1, 4, 9, 16], 'zlib')
"""
from zcore.asdf import layout
from zcore.asdf.blocks import Block, BlockList
from zcore.asdf.dump import Inline, Stream
from zcore.asdf.exploding import defragment, explode, implode
from zcore.asdf.file import AsdfFile, open
from zcore.asdf.ndarray import NDArrayNode
from zcore.asdf.origin import Reference
from zcore.asdf.streaming import RowWriter, stream
from zcore.asdf.tagged import IntegerNode, TaggedMapping, TaggedScalar, TaggedSequence
from zcore.asdf.writing import write

__all__ = ["AsdfFile", "Block", "BlockList", "Inline", "IntegerNode", "NDArrayNode", "Reference", "RowWriter", "Stream",
           "TaggedMapping", "TaggedScalar", "TaggedSequence", "defragment", "explode", "implode", "layout", "open",
           "stream", "write"]


def __dir__():
    """Return the public names, for completion at a prompt."""
    return __all__
