"""Copy an array, or a group with all its members.

Objects that do not change are copied as they are stored, without decoding. The destination appears only when it is
complete. If a copy to a directory is interrupted, run the same line again: it continues. A copy to a file begins anew.

A destination .zip or .ozx packs a hierarchy into one archive, and a source .zip or .ozx unpacks it. An .ozx is
OME-Zarr in a zip file by RFC-9 of NGFF: members are stored without compression, and metadata come first.

The same options change the form of the copy as in `convert` and `rechunk`.

Several sources of one shape and type become one array with --stack. With --along, arrays are joined along a dimension
of that name; those without it must be equal in all sources.

Examples:
  zcore cp data.zarr backup.zarr
  zcore cp data.zarr/2016 year.zip
  zcore cp image.zarr image.ozx
  zcore cp frame-*.npy frames.zarr --stack
  zcore cp 2016-*.nc year.zarr --along time
  zcore cp data.zarr/2016/t2m january.zarr --selection "0:31, ..."
"""
# The three verbs differ in their names and examples alone.
from zcore.cli.verbs.copying.options import configure as configure
from zcore.cli.verbs.copying.options import run as run
