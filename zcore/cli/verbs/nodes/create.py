"""Create an array or a group.

With --shape or --data it is an array, else a group. Missing groups above it are created as well, below a group that is
there or a new folder named .zarr.
A compressor is none, auto, zstd, gzip, zlib or lz4, with a level behind it as in zstd:3, one of blosc's, as in
blosc:lz4:5, or JSON as in a document of Zarr v3.

Examples:
  zcore create data.zarr
  zcore create data.zarr/t2m --shape 48,90,180 --dtype f4 --chunks 4,30,60 --shards 24,90,180 --compressor zstd:3
  zcore create data.zarr/dem --data elevation.npy --attribute units m
"""
from __future__ import annotations

import argparse

import zcore
from zcore.cli import location
from zcore.cli.show import machine


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    from zcore.formats import NAMES

    parser.add_argument("path", metavar=location.METAVAR, help="a new directory, or one in a group")
    elements = parser.add_mutually_exclusive_group()
    elements.add_argument("--shape", metavar="LENGTHS", help="elements per dimension, such as 48,90,180")
    elements.add_argument("--data", metavar="PATH", help="another array with the elements, such as a .npy file")
    parser.add_argument("--dtype", metavar="TYPE", help="as NumPy names it, such as f4 or '>i2'")
    parser.add_argument("--chunks", default="auto", metavar="LENGTHS",
                        help="elements of a chunk per dimension, a size such as '4 MB', or auto (default: %(default)s)")
    parser.add_argument("--shards", metavar="LENGTHS", help="the same for shards, which are stored objects of many "
                                                            "chunks (default: none)")
    parser.add_argument("--compressor", default="auto", metavar="CODEC", help="(default: %(default)s)")
    parser.add_argument("--fill-value", metavar="VALUE", help="of elements never written (default: zero)")
    parser.add_argument("--zarr-format", choices=tuple(map(str, NAMES)), default="3",
                        help="Zarr v3, Zarr v2, or __zmeta__ of 2016 (default: %(default)s)")
    parser.add_argument("--dimension-names", metavar="NAMES", help="such as time,lat,lon")
    parser.add_argument("--attribute", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="an attribute; may be given several times")
    parser.add_argument("--overwrite", action="store_true", help="replace an old node with all its members")


def run(arguments: argparse.Namespace) -> int:
    """Create the node."""
    from zcore.cli.option_values import compressor_of, grid_of, lengths_of
    from zcore.cli.show import facts
    from zcore.cli.verbs.nodes.attrs import parsed
    from zcore.formats import name_from

    store, path = location.located(arguments.path)
    attributes = dict(parsed(pair) for pair in arguments.attribute) or None
    common = {"zarr_format": name_from(arguments.zarr_format), "attributes": attributes,
              "overwrite": arguments.overwrite}
    if arguments.shape is None and arguments.data is None:
        if arguments.dtype is not None:
            raise ValueError("--dtype needs --shape or --data, which make an array")
        node = zcore.create_group(store, path=path, **common)
    else:
        data = None if arguments.data is None else location.opened_array(arguments.data)
        if data is None and arguments.dtype is None:
            raise ValueError("--shape needs --dtype")
        node = zcore.create_array(
            store, name=path, data=data, shape=None if arguments.shape is None else lengths_of(arguments.shape),
            dtype=arguments.dtype, chunks=grid_of(arguments.chunks, "--chunks"),
            shards=None if arguments.shards is None else grid_of(arguments.shards, "--shards"),
            compressors=compressor_of(arguments.compressor),
            fill_value=... if arguments.fill_value is None else parsed(("", arguments.fill_value))[1],
            dimension_names=arguments.dimension_names and arguments.dimension_names.split(","), **common)
    with node:
        if arguments.json:
            machine.show(facts.full(node))
        else:
            print(repr(node))
    return 0
