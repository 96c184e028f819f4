"""Selections: NumPy's indexing and zarr-python's, fields, and the values that are assigned."""
