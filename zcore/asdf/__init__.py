"""ASDF files: the low-level layout, and the tree."""
