"""ASDF files in exploded form, as other programs write them: the tree alone, and a file for each block."""
import os
import re

import zcore
from zcore.asdf.writing import Form, NewBlocks, write_new


def exploded(path, stem=None):
    """Write a file in exploded form, and return the paths, that of the tree first."""
    stem = f"{os.path.splitext(path)[0]}_exploded" if stem is None else str(stem)
    written = [f"{stem}.asdf"]
    with zcore.asdf.open(path) as file:
        text = file.tree_text
        for i, block in enumerate(file.blocks):
            blocks = NewBlocks()
            blocks.add(block)
            written.append(f"{stem}{i:04}.asdf")
            write_new(written[-1], [], b"", blocks, Form())
            name = os.path.basename(written[-1]).replace("%", "%25").replace("#", "%23").encode()
            text = re.sub(rb"source: %d\b" % i, b"source: " + name, text)
        write_new(written[0], file.comments, text, NewBlocks(), Form())
    return written
