"""The form of a codec chain in C: a program, and how the elements lie in what it decodes.

A chain has one when each of its codecs has: transposes, which become an order of dimensions; the byte order; filters,
compressors and checksums, which become the steps of a `Program`; and shards, in shards as well, with transposes before
and codecs behind them, which become a `ShardProgram`.
"""
from typing import NamedTuple

from zcore.codecs.layout import BytesCodec
from zcore.kernel.program import Program

MAX_STEPS = 8


class Lowered(NamedTuple):
    """A chain in C.

    Attributes
    ----------
    program : Program or ShardProgram
    order : tuple of int or None
        Dimensions of the array in the order in which the decoded bytes have them, the slowest first; None is C order.
    swap : int
        Unit in bytes whose order in the decoded bytes differs from that of the chain's type, 0 for none.
    step_names : tuple of str
        Names of the program's steps.
    """

    program: object
    order: tuple | None
    swap: int
    step_names: tuple


def lowered(chain):
    """Return the `Lowered` of a `CodecChain`, or None when it has no form in C."""
    return _lowered(chain, tuple(range(len(chain.chunk_shape))))


def leading_transposes(codecs, axes):
    """Return the codecs behind those transposes that come first, and `axes` as these arrange them."""
    n = 0
    while n < len(codecs) and codecs[n].name == "transpose":
        axes = tuple([axes[d] for d in codecs[n].order])
        n += 1
    return codecs[n:], axes


def _lowered(chain, axes):
    """The same of a part of a chain, whose dimensions are those `axes` of the array."""
    if axes == tuple(range(len(axes))) and hasattr(chain, "lowered"):
        return chain.lowered
    filters, axes = leading_transposes(chain.array_codecs, axes)
    order = None if axes == tuple(range(len(axes))) else axes
    if chain.shards is not None:
        return None if filters else _lowered_shards(chain, axes, order)
    if not isinstance(chain.serializer, BytesCodec):
        return None
    types = chain.array_types
    steps, names = [], []
    for codec, (dtype, _) in zip(filters, types[len(chain.array_codecs) - len(filters):], strict=False):
        # Another shape of the same elements in the same order is the same bytes.
        if codec.name != "reshape":
            steps.append(codec.step(dtype))
            names.append(codec.name)
    stored = chain.serializer.stored_dtype(types[-1][0])
    if names and not (chain.dtype.isnative and stored.isnative):
        return None
    swap = _swapped_unit(chain.dtype) if not names and stored != chain.dtype else 0
    steps += [codec.step() for codec in chain.compressors]
    names += [codec.name for codec in chain.compressors]
    program = _program(steps, chain.header_itemsize)
    return None if program is None else Lowered(program, order, swap, tuple(names))


def _lowered_shards(chain, axes, order):
    # Arrays without shards do not need it.
    from zcore.kernel.shard import MAX_LEVELS, ShardProgram

    shards, index = chain.shards, chain.shards.index_chain
    chunk = _lowered(shards.chain, axes)
    after = _program([codec.step() for codec in chain.compressors], chain.header_itemsize)
    index_steps = [codec.step() for codec in index.compressors]
    if chunk is None or after is None or None in index_steps or index.array_codecs or not isinstance(
            index.serializer, BytesCodec):
        return None
    if isinstance(chunk.program, ShardProgram) and chunk.program.n_levels == MAX_LEVELS:
        return None
    turned = index.serializer.stored_dtype(index.dtype) != index.dtype
    program = ShardProgram(in_array(shards.shard_shape, axes), in_array(shards.chunk_shape, axes), chunk.program,
                           index_steps, turned=turned, at_start=shards.at_start, max_nbytes=shards.max_encoded,
                           chunk_room=shards.chunk_room, order=order, after=after)
    return chunk._replace(program=program,
                          step_names=chunk.step_names + tuple([codec.name for codec in chain.compressors]))


def _program(steps, itemsize):
    return None if None in steps or len(steps) > MAX_STEPS else Program(steps, itemsize)


def in_array(shape, axes):
    """Return a shape with its dimensions in the order of the array's."""
    lengths = dict(zip(axes, shape, strict=True))
    return tuple([lengths[d] for d in range(len(axes))])


def _swapped_unit(dtype):
    """Return the bytes of a unit whose order is that of the machine, or the other one."""
    return 4 if dtype.kind == "U" else dtype.itemsize // (2 if dtype.kind == "c" else 1)
