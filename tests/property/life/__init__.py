"""The life of a store: what is done to it, step by step, against a dict of ndarrays and against zarr-python."""
