"""Files of other libraries as sources and destinations of copies: HDF5, NumPy, ASDF."""
