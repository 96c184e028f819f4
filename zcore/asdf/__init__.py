"""ASDF files: the whole low-level layout, read and written.

>>> import pathlib, tempfile, zcore
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder, "a.asdf")
...     _ = path.write_text("#ASDF 1.0.0\\n#ASDF_STANDARD 1.6.0\\n%YAML 1.1\\n---\\na: 1\\n...\\n")
...     with zcore.asdf.open(path) as file:
...         file.standard, len(file.blocks)
('1.6.0', 0)
"""
from zcore.asdf import layout
from zcore.asdf.blocks import Block, BlockList
from zcore.asdf.exploding import defragment, explode, implode
from zcore.asdf.file import AsdfFile, open
from zcore.asdf.streaming import RowWriter, stream
from zcore.asdf.writing import write

__all__ = ["AsdfFile", "Block", "BlockList", "RowWriter", "defragment", "explode", "implode", "layout",
           "open", "stream", "write"]


def __dir__():
    """Return the public names, for completion at a prompt."""
    return __all__
