"""Copy an array or a group to other chunks or shards.

Every object is read and written once if the memory allows, else in the fewest passes.

Examples:
  zcore rechunk data.zarr/t2m columns.zarr --chunks 365,1,1 --memory "256 MB"
  zcore rechunk data.zarr/t2m sharded.zarr --chunks 4,30,60 --shards 48,90,180
"""
from __future__ import annotations

import argparse

from zcore.cli.verbs.copying import options
from zcore.cli.verbs.copying.options import configure as configure


def run(arguments: argparse.Namespace) -> int:
    """Rechunk.

    Raises : ValueError, if neither chunks nor shards are given.
    """
    if arguments.chunks is None and arguments.shards is None:
        raise ValueError("expected --chunks or --shards")
    return options.run(arguments)
