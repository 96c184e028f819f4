"""Copy an array or a group to another format, compressor, type or order.

The ending of the destination names its kind, such as .zip, .npy, .npz, .h5 or .asdf. If only the format changes, the
chunks are copied as they are stored. A warning names the properties that the destination cannot keep.

Examples:
  zcore convert old.zmeta new.zarr --zarr-format 3
  zcore convert data.zarr small.zarr --compressor blosc:zstd:9 --dtype f4
  zcore convert data.zarr/2016/t2m t2m.npy
"""
# The three verbs differ in their names and examples alone.
from zcore.cli.verbs.copying.options import configure as configure
from zcore.cli.verbs.copying.options import run as run
