"""The Zarr v2 format."""
