"""Copy an array, or a group with all below it.

What nothing changes about is passed on as it is stored, without a decode. The destination is not there before it is
complete. A copy to a directory that was interrupted goes on from where it was when the same line is run again.

Examples:
  zcore cp data.zarr backup.zarr
  zcore cp data.zarr/2016 year.zip
  zcore cp data.zarr/2016/t2m january.zarr --selection "0:31, ..."
"""
from zcore.cli.verbs.copying import options


def configure(parser):
    """Add the arguments of the verb."""
    options.add_places(parser)
    parser.add_argument("--selection", metavar="SELECTION", help="integers and slices, of an array (default: all)")


def run(arguments):
    """Copy."""
    from zcore.cli.selection import parse_selection

    selection = {} if arguments.selection is None else {"selection": parse_selection(arguments.selection)}
    return options.copied(arguments, **selection)
