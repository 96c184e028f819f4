"""Copy an array or a group to other chunks or shards.

Every object is read and written once if the memory allows, else in the fewest passes.

Examples:
  zcore rechunk data.zarr/t2m columns.zarr --chunks 365,1,1 --memory "256 MB"
  zcore rechunk data.zarr/t2m sharded.zarr --chunks 4,30,60 --shards 48,90,180
"""
# The three verbs differ in their names and examples, and this one needs an option.
from zcore.cli.verbs.copying.options import configure as configure
from zcore.cli.verbs.copying.options import run as run
