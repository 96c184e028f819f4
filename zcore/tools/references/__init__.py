"""Reference sets made of hierarchies and of HDF5 files."""
