"""Selections: NumPy's indexing and zarr-python's, fields, and the values that are assigned.

A basic index, of integers and slices alone, is a box: `basic` in `zcore/kernel/select/box.pyx`.
"""
