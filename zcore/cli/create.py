"""Create an array or a group.

With a --shape or with data it is an array, else a group; groups above it that are missing are created as well.
A compressor is none, auto, zstd, gzip, zlib or lz4, with a level behind it as in zstd:3, one of blosc's, as in
blosc:lz4:5, or JSON as in a document of Zarr v3.

Examples:
  zcore create data.zarr
  zcore create data.zarr/t2m --shape 48,90,180 --dtype f4 --chunks 4,30,60 --shards 24,90,180 --compressor zstd:3
  zcore create data.zarr/dem --data elevation.npy --attribute units m
"""
from zcore.cli import machine, place

# What codecs call the level that stands behind their name.
LEVELS = {"blosc": "clevel", "gzip": "level", "lz4": "acceleration", "zlib": "level", "zstd": "level"}


def configure(parser):
    """Add the arguments of the verb."""
    parser.add_argument("path", metavar=place.METAVAR, help="where to: a directory that is new, or in a group")
    parser.add_argument("--shape", metavar="LENGTHS", help="elements per dimension, such as 48,90,180")
    parser.add_argument("--dtype", metavar="TYPE", help="as NumPy names it, such as f4 or '>i2'")
    parser.add_argument("--data", metavar="FILE", help="a .npy file with what the array is to hold")
    parser.add_argument("--chunks", default="auto", metavar="LENGTHS",
                        help="elements of a chunk per dimension, a size such as '4 MB', or auto (default: %(default)s)")
    parser.add_argument("--shards", metavar="LENGTHS", help="the same of shards, which are stored objects of many "
                                                            "chunks (default: none)")
    parser.add_argument("--compressor", default="auto", metavar="CODEC", help="(default: %(default)s)")
    parser.add_argument("--fill-value", metavar="VALUE", help="of elements never written (default: zero)")
    parser.add_argument("--zarr-format", choices=("3", "2", "zmeta"), default="3",
                        help="Zarr v3, Zarr v2, or __zmeta__ of 2016 (default: %(default)s)")
    parser.add_argument("--dimension-names", metavar="NAMES", help="such as time,lat,lon")
    parser.add_argument("--attribute", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="an attribute; may be given several times")
    parser.add_argument("--overwrite", action="store_true", help="replace what stands there, with all below it")
    machine.add_option(parser)


def run(arguments):
    """Create the node."""
    import numpy as np

    import zcore
    from zcore.cli import facts
    from zcore.cli.attrs import parsed

    store, path = place.located(arguments.path)
    zarr_format = arguments.zarr_format if arguments.zarr_format == "zmeta" else int(arguments.zarr_format)
    attributes = dict(parsed(pair) for pair in arguments.attribute) or None
    common = {"zarr_format": zarr_format, "attributes": attributes, "overwrite": arguments.overwrite}
    if arguments.shape is None and arguments.data is None:
        if arguments.dtype is not None:
            raise ValueError("--dtype is of an array, which has a --shape or --data as well")
        node = zcore.create_group(store, path=path, **common)
    else:
        data = None if arguments.data is None else np.load(arguments.data, mmap_mode="r", allow_pickle=False)
        if data is None and arguments.dtype is None:
            raise ValueError("an array of a --shape needs a --dtype")
        node = zcore.create_array(
            store, name=path, data=data, shape=None if arguments.shape is None else lengths_of(arguments.shape),
            dtype=arguments.dtype, chunks=grid_of(arguments.chunks, "--chunks"),
            shards=None if arguments.shards is None else grid_of(arguments.shards, "--shards"),
            compressors=compressor_of(arguments.compressor),
            fill_value=... if arguments.fill_value is None else parsed(("", arguments.fill_value))[1],
            dimension_names=arguments.dimension_names and arguments.dimension_names.split(","), **common)
    if arguments.json:
        machine.show(facts.full(node))
    else:
        print(repr(node))
    return 0


def lengths_of(text):
    """Return a shape that is given as text: lengths with commas between them, none for an array of no dimensions.

    >>> lengths_of("48,90"), lengths_of("")
    ((48, 90), ())
    """
    try:
        return tuple(int(length) for length in text.split(",") if text)
    except ValueError:
        raise ValueError(f"expected lengths such as 48,90,180, found {text!r}") from None


def grid_of(text, option):
    """Return the `chunks` or `shards` of `zcore.create_array` that a text means.

    Raises : ValueError, which names the `option`.
    """
    from zcore.nbytes import parse_nbytes

    try:
        if text == "auto":
            return text
        if text[-1:].isalpha():
            # A size has its unit here: a bare number is a length.
            parse_nbytes(text)
            return text
        return lengths_of(text)
    except ValueError:
        raise ValueError(f"{option}: expected lengths such as 100,100, a size such as '4 MB', or auto, "
                         f"found {text!r}") from None


def compressor_of(text):
    """Return the `compressors` of `zcore.create_array` that a text means.

    >>> compressor_of("zstd:3"), compressor_of("none")
    (ZstdCodec(level=3, checksum=False), None)
    >>> compressor_of("blosc:lz4:9")
    BloscCodec(typesize=None, cname='lz4', clevel=9, shuffle=None, blocksize=0)
    """
    import json

    from zcore import codecs

    if text in ("auto", "none"):
        return None if text == "none" else text
    if text[:1] in ("{", "["):
        return json.loads(text)
    name, *numbers = text.split(":")
    own = {"zstd": codecs.ZstdCodec, "gzip": codecs.GzipCodec, "blosc": codecs.BloscCodec}
    if name not in LEVELS:
        raise ValueError(f"--compressor: expected none, auto, JSON or one of {', '.join(LEVELS)}, found {text!r}")
    try:
        parameters = {"cname": numbers.pop(0)} if name == "blosc" and numbers else {}
        if numbers:
            (level,) = numbers
            parameters[LEVELS[name]] = int(level)
        return own[name](**parameters) if name in own else {"name": f"numcodecs.{name}", "configuration": parameters}
    except ValueError as exc:
        raise ValueError(f"--compressor {text}: {exc}") from exc
