"""Copy an array or a group to another format, compressor, type or order.

An ending of the destination names its family, as .zip, .npy, .npz, .h5 or .asdf does. Where only the format changes the
chunks are passed on as they are stored. What the destination cannot keep is told by a warning.

Examples:
  zcore convert old.zmeta new.zarr --zarr-format 3
  zcore convert data.zarr small.zarr --compressor zstd:9 --dtype f4
  zcore convert data.zarr/2016/t2m t2m.npy
"""
from zcore.cli.verbs.copying import options


def configure(parser):
    """Add the arguments of the verb."""
    options.add_places(parser)
    options.add_form(parser)
    options.add_chunks(parser)


def run(arguments):
    """Convert."""
    return options.copied(arguments)
