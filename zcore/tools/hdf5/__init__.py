"""Files of HDF5 and NetCDF-4 by h5py: the walk through one, and a dataset of it as references."""
