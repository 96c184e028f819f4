"""The kernel's form of a codec chain: a program, and the layout of the elements in its decoded bytes.

Leading transposes become an order of dimensions, and a byte order is undone when elements are moved. Filters,
compressors and checksums become the steps of a `Program`; those without a C form become segments in Python. Shards,
also nested ones, with transposes before them, become a `ShardProgram`. Shards with other codecs around them cannot be
read in parts; they are segments.

A segment is a run of codecs without a C form. The program takes the GIL there and passes its bytes; it continues in C
with the bytes that the segment returns. So one chain may mix both.
"""
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zcore.buffers import flat_view
from zcore.codecs.array_bytes.bytes_codec import BytesCodec
from zcore.codecs.bytes_bytes.compressors import Unlinked
from zcore.kernel.codec.program import Program
from zcore.model.metadata import has_varying_items

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    import numpy.typing as npt

    from zcore.codecs.chain import CodecChain
    from zcore.kernel.plan.shard_index import ShardProgram
    from zcore.typing import Buffer

MAX_STEPS = 8
_MAX_NBYTES = 2**63 - 1


class Lowered(NamedTuple):
    """A chain in C.

    Attributes
    ----------
    program : Program or ShardProgram
    order : tuple of int or None
        Dimensions of the array in the order of the decoded bytes, the slowest first; None is C order.
    swap : int
        Unit in bytes whose order in the decoded bytes differs from the chain's type, 0 for none.
    step_names : tuple of str
        Names of the program's steps.
    """

    program: Program | ShardProgram
    order: tuple[int, ...] | None
    swap: int
    step_names: tuple[str, ...]


def lowered(chain: CodecChain) -> Lowered:
    """Return the `Lowered` of a `CodecChain`."""
    return _lowered(chain, tuple(range(len(chain.chunk_shape))))


def leading_transposes(codecs: Sequence[Any], axes: tuple[int, ...]) -> tuple[Sequence[Any], tuple[int, ...]]:
    """Return the codecs after the leading transposes, and `axes` in the order of these transposes."""
    n = 0
    while n < len(codecs) and codecs[n].name == "transpose":
        axes = tuple([axes[d] for d in codecs[n].order])
        n += 1
    return codecs[n:], axes


def _lowered(chain, axes):
    """Return the form of a part of a chain, whose dimensions are the array's dimensions `axes`."""
    if axes == tuple(range(len(axes))) and hasattr(chain, "lowered"):
        return chain.lowered
    outer = axes
    filters, axes = leading_transposes(chain.array_codecs, axes)
    if chain.is_partial:
        return _lowered_shards(chain, axes)
    if has_varying_items(chain.dtype):
        # Such items have no bytes that the kernel could move; nothing asks the segment.
        return Lowered(Program((("python", object(), 0, None, False),)), _order(outer), 0, ("",))
    steps, names, swap = _array_steps(chain, filters)
    if steps is None or len(steps) >= MAX_STEPS:
        return _lowered_in_python(chain, axes, len(chain.array_codecs) - len(filters))
    for i, codec in enumerate(chain.compressors):
        _add(steps, names, chain, i, codec)
    return Lowered(_program(chain, steps), _order(axes), swap, tuple(names))


def _lowered_in_python(chain, axes, n_moves):
    """Return the form of a chain whose elements Python encodes, after the first `n_moves` codecs."""
    dtype, shape = chain.array_types[n_moves]
    n_in = dtype.itemsize * prod(shape)
    n_out, is_fixed = chain.sizes[0]
    steps = [("python", (0, 0, n_moves), n_in, n_out, is_fixed)]
    names = [chain.serializer.name]
    for i, codec in enumerate(chain.compressors):
        _add(steps, names, chain, i, codec)
    return Lowered(_program(chain, steps), _order(axes), 0, tuple(names))


def _array_steps(chain, filters):
    """Return (steps, names, swap) for the codecs up to array to bytes; None instead of steps without a C form."""
    steps, names = [], []
    if not isinstance(chain.serializer, BytesCodec):
        return None, names, 0
    types = chain.array_types
    for codec, (dtype, _) in zip(filters, types[len(chain.array_codecs) - len(filters):], strict=False):
        # Reshaping keeps the bytes.
        if codec.name != "reshape":
            steps.append(codec.step(dtype))
            names.append(codec.name)
    stored = chain.serializer.stored_dtype(types[-1][0])
    # Filters compute in the machine's byte order, and may see dates as integers.
    if None in steps or (names and not stored.isnative):
        return None, names, 0
    is_swapped = not chain.dtype.isnative if names else stored != chain.dtype
    return steps, names, _swapped_unit(chain.dtype) if is_swapped else 0


def _add(steps, names, chain, i, codec):
    """Add the i-th codec from bytes to bytes: as a step in C, or to a segment in Python."""
    n_bytes, _ = chain.sizes[i]
    n_out, is_fixed = chain.sizes[i + 1][0], codec.is_fixed
    # The maximum size of a shard says little about its size.
    step = codec.step_for(n_bytes if chain.shards is None else None)
    is_behind = bool(steps) and steps[-1][0] == "python"
    # After content of unknown size, all sizes are unknown, so Python does the rest.
    if step is not None and n_bytes is not None and len(steps) < MAX_STEPS:
        steps.append(step)
        names.append(codec.name)
    elif is_behind or len(steps) == MAX_STEPS:
        last = steps[-1]
        if not is_behind:
            # One step too many: the last step in C moves to Python as well.
            last = ("python", (i - 1, i, None), chain.sizes[i - 1][0], n_bytes, chain.compressors[i - 1].is_fixed)
        _, (start, _, n_moves), n_in, _, was_fixed = last
        steps[-1] = ("python", (start, i + 1, n_moves), n_in, n_out, was_fixed and is_fixed)
    else:
        steps.append(("python", (i, i + 1, None), n_bytes, n_out, is_fixed))
        names.append(codec.name)


def _program(chain, steps):
    steps = [("python", Segment(chain, *step[1]), *step[2:]) if step[0] == "python" else step for step in steps]
    return Program(steps, chain.header_itemsize, Unlinked())


def _lowered_shards(chain, axes):
    # Arrays without shards do not need it.
    from zcore.kernel.plan.shard_index import MAX_LEVELS, ShardProgram

    shards, index = chain.shards, chain.shards.index_chain
    chunk = _lowered(shards.chain, axes)
    if isinstance(chunk.program, ShardProgram) and chunk.program.n_levels == MAX_LEVELS:
        # Deeper shards are encoded by Python like other chunks.
        chunk = _lowered_in_python(shards.chain, axes, 0)
    index_form = _lowered_in_python(index, (), 0) if index.array_codecs else lowered(index)
    program = ShardProgram(
        in_array(shards.shard_shape, axes), in_array(shards.chunk_shape, axes), chunk.program, index_form.program,
        turned=index_form.swap != 0, at_start=shards.at_start,
        max_nbytes=_MAX_NBYTES if shards.max_encoded is None else shards.max_encoded,
        chunk_room=shards.chunk_room or 0, order=_order(axes))
    return chunk._replace(program=program)


def _order(axes):
    return None if axes == tuple(range(len(axes))) else axes


def in_array(shape: Iterable[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return a shape with its dimensions in the array's order."""
    lengths = dict(zip(axes, shape, strict=True))
    return tuple([lengths[d] for d in range(len(axes))])


def _swapped_unit(dtype):
    """Return the size in bytes of the unit in which byte order is reversed."""
    return 4 if dtype.kind == "U" else dtype.itemsize // (2 if dtype.kind == "c" else 1)


class Segment:
    """A run of the codecs of a `CodecChain`.

    Parameters
    ----------
    chain : CodecChain
    start, stop : int
        The range of its codecs from bytes to bytes.
    n_moves : int or None
        If the segment includes the codecs from array to array and to bytes: the number of leading transposes, which the
        kernel has undone. None if it does not.
    """

    def __init__(self, chain: CodecChain, start: int, stop: int, n_moves: int | None = None) -> None:
        self._chain = chain
        self._compressors = chain.compressors[start:stop]
        self._sizes = slice(start, stop)
        self._n_moves = n_moves

    def encode(self, data: bytearray, shape: tuple[int, ...] | None) -> memoryview:
        """Return the output of the codecs for `data`, bytes-like.

        Parameters
        ----------
        data : bytearray
            The bytes of a chunk's elements, or the output of the codecs before this segment.
        shape : tuple of int or None
            Shape of the chunk, if it is not the chain's.
        """
        if self._n_moves is not None:
            types, _ = self._chain.stages_of(self._chain.chunk_shape if shape is None else shape)
            dtype, shape = types[self._n_moves]
            data = self._chain.bytes_of(np.frombuffer(data, dtype).reshape(shape), self._n_moves)
        for codec in self._compressors:
            data = codec.encode(data)
        return flat_view(data)

    def decode(self, data: Buffer, n_bytes: int, at_most: bool,
               shape: tuple[int, ...] | None) -> memoryview | npt.NDArray[np.uint8]:
        """Return the decoded `data`: exactly `n_bytes` bytes, or at most that with `at_most`.

        Raises
        ------
        ChunkError
            `data` is damaged.
        """
        shape = self._chain.chunk_shape if shape is None else shape
        types, sizes = self._chain.stages_of(shape)
        data = self._chain.unwrap(data, self._compressors, sizes[self._sizes], prod(shape))
        if self._n_moves is None:
            return flat_view(data)
        chunk = self._chain.elements_of(data, types, self._n_moves)
        # As bytes: copying a structure would drop the bytes between its fields.
        chunk = np.asarray(chunk, types[self._n_moves][0])
        return np.ascontiguousarray(chunk.view(f"V{chunk.dtype.itemsize}")).reshape(-1).view(np.uint8)
