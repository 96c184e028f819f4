"""Reference sets made of what zcore reads, and of HDF5 files."""
