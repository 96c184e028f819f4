"""The Zarr v3 format."""
