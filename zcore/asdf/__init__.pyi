"""The public names for type checkers, as `_MODULE_OF` has them."""
from zcore.asdf import file_layout
from zcore.asdf.blocks import Block as Block
from zcore.asdf.blocks import BlockList as BlockList
from zcore.asdf.exploding import defragment as defragment
from zcore.asdf.exploding import explode as explode
from zcore.asdf.exploding import implode as implode
from zcore.asdf.file import AsdfFile as AsdfFile
from zcore.asdf.file import open as open
from zcore.asdf.streaming import RowWriter as RowWriter
from zcore.asdf.streaming import stream as stream
from zcore.asdf.tree.dump import Inline as Inline
from zcore.asdf.tree.dump import Stream as Stream
from zcore.asdf.tree.ndarray import NDArrayNode as NDArrayNode
from zcore.asdf.tree.origin import Reference as Reference
from zcore.asdf.tree.tagged import IntegerNode as IntegerNode
from zcore.asdf.tree.tagged import TaggedMapping as TaggedMapping
from zcore.asdf.tree.tagged import TaggedScalar as TaggedScalar
from zcore.asdf.tree.tagged import TaggedSequence as TaggedSequence
from zcore.asdf.writing import write as write

layout = file_layout
