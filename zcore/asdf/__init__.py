"""ASDF files: the whole low-level layout, and the tree, read and written.

>>> import tempfile, numpy as np, zcore
>>> with tempfile.TemporaryDirectory() as folder:
...     zcore.asdf.write(f"{folder}/a.asdf", {"title": "squares", "x": np.arange(5) ** 2}, compression="zlib")
...     with zcore.asdf.open(f"{folder}/a.asdf") as file:
...         file.tree["title"], file.tree["x"].read().tolist(), file.blocks[0].compression
('squares', [0, 1, 4, 9, 16], 'zlib')
"""
_MODULE_OF = {
    **dict.fromkeys(("AsdfFile", "open"), "file"),
    **dict.fromkeys(("Block", "BlockList"), "blocks"),
    **dict.fromkeys(("Inline", "Stream"), "tree.dump"),
    **dict.fromkeys(("IntegerNode", "TaggedMapping", "TaggedScalar", "TaggedSequence"), "tree.tagged"),
    **dict.fromkeys(("RowWriter", "stream"), "streaming"),
    **dict.fromkeys(("defragment", "explode", "implode"), "exploding"),
    "NDArrayNode": "tree.ndarray",
    "Reference": "tree.origin",
    "write": "writing",
}

__all__ = sorted([*_MODULE_OF, "layout"])


def __dir__() -> list[str]:
    return list(__all__)     # for completion at a prompt


def __getattr__(name: str) -> object:
    """Import a public name at its first use."""
    from importlib import import_module

    if name == "layout":
        return import_module("zcore.asdf.file_layout")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"zcore.asdf.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
