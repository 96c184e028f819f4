"""Chunks stored in another order of dimensions or bytes: the plan's `order` and `swap`, read and written."""
import itertools
import os

import numpy as np
import pytest

from zcore.codecs.chain import CodecChain
from zcore.kernel.plan.plan import PlanOptions
from zcore.kernel.plan.read import ReadPlan
from zcore.kernel.plan.write import WritePlan
from zcore.kernel.select.box import Box, whole
from zcore.kernel.select.open_array import OpenArray
from zcore.model.chunk_keys import ChunkKeyEncoding
from zcore.model.fill_value import fill_bytes
from zcore.model.metadata import CodecSpec

COMPRESSED = {
    "raw": (),
    "blosc": (CodecSpec("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "blocksize": 0}),),
    "zstd": (CodecSpec("zstd", {"level": 1}), CodecSpec("crc32c")),
}


class Objects:
    """An array's chunks in a directory, read and written by plans alone."""

    def __init__(self, path, shape, chunk_shape, dtype, order=None, endian="little", compressors=()):
        self.path = path
        self.shape = shape
        self.dtype = np.dtype(dtype)
        specs = () if order is None else (CodecSpec("transpose", {"order": order}),)
        specs += CodecSpec("bytes", {"endian": endian}), *compressors
        self.chain = CodecChain(specs, self.dtype, chunk_shape)
        self.keys = ChunkKeyEncoding.v2(".")
        self.array = OpenArray(
            shape, chunk_shape, program=self.chain.program, fill=fill_bytes(self.dtype, 7), swap=self.chain.swap,
            order=self.chain.order, template=self.keys.template(len(shape)), directory=os.fsencode(path))

    def run(self, plan):
        plan.run()
        plan.raise_failure(self.chain.step_names)

    def write(self, selection, values):
        self.run(WritePlan(self.array, box_of(self.shape, selection), values, PlanOptions(token=1)))

    def read(self, selection, out):
        self.run(ReadPlan(self.array, box_of(self.shape, selection), out))
        return out

    def chunk(self, coords):
        """Return the chunk of an object as Python decodes it."""
        return self.chain.decode((self.path / self.keys.encode(coords)).read_bytes())


def box_of(shape, selection):
    slices = [s.indices(n) for s, n in zip(selection, shape, strict=True)]
    return Box(tuple([s[0] for s in slices]), tuple([s[2] for s in slices]), tuple([len(range(*s)) for s in slices]))


def everything(shape):
    return (slice(None),) * len(shape)


@pytest.mark.thinned(3, "memory", "order", "endian", "compressors")
@pytest.mark.parametrize("compressors", COMPRESSED.values(), ids=COMPRESSED)
@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("order", [None, *itertools.permutations(range(3))])
@pytest.mark.parametrize("memory", ["C", "F", "strided"])
def test_any_order_of_dimensions_and_bytes(tmp_path, order, endian, memory, compressors):
    """V3-GRID-04, V3-TRANS-02, V3-BYTES-01, D3-MEM-05: whole chunks in place, runs, tiles and border chunks, read
    and written.
    """
    shape, chunk_shape = (5, 6, 7), (5, 3, 4)
    objects = Objects(tmp_path, shape, chunk_shape, "<i4", order, endian, compressors)
    values = (np.arange(210).reshape(shape) * 0x10203).astype("<i4")
    laid = np.array(values, order=memory if memory in "CF" else "C")
    if memory == "strided":
        laid = np.repeat(np.repeat(values, 2, 1), 3, 2)[:, ::2, ::3]
    objects.write(everything(shape), laid)
    padded = np.full((5, 6, 8), 7, "<i4")
    padded[:, :, :7] = values
    for i, j in itertools.product(range(2), range(2)):
        expected = padded[:, 3 * i:3 * i + 3, 4 * j:4 * j + 4]
        assert np.array_equal(objects.chunk((0, i, j)), expected)
    out = np.zeros_like(laid) if memory != "strided" else np.zeros((5, 12, 21), "<i4")[:, ::2, ::3]
    assert np.array_equal(objects.read(everything(shape), out), values)
    selection = (slice(4, None, -2), slice(1, 5), slice(0, 7, 3))
    part = np.zeros((3, 4, 3), "<i4")
    assert np.array_equal(objects.read(selection, part), values[selection])
    # A part is merged into chunks that are read first.
    objects.write(selection, np.full((3, 4, 3), -1, "<i4"))
    values[selection] = -1
    assert np.array_equal(objects.read(everything(shape), out), values)


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_whole_chunk_is_its_object(tmp_path, order):
    """D3-CON-11, V3-BYTES-02, D3-MEM-01, D3-MEM-02, V3-TRANS-03: what is stored are the bytes of the array in that
    order.
    """
    shape = (3, 4, 5)
    objects = Objects(tmp_path, shape, shape, "<u2", None if order == "C" else (2, 1, 0))
    values = np.arange(60, dtype="<u2").reshape(shape)
    for memory in "CF":
        objects.write(everything(shape), np.array(values, order=memory))
        assert (tmp_path / "0.0.0").read_bytes() == values.tobytes(order=order)
        out = np.zeros(shape, "<u2", order=memory)
        assert np.array_equal(objects.read(everything(shape), out), values)


@pytest.mark.parametrize(("dtype", "unit"), [("<i2", 2), ("<f8", 8), ("<c16", 8), ("<c8", 4), ("<U3", 4), ("<M8[s]", 8),
                                             ("|i1", 0), ("|S3", 0), (">i4", 4)])
def test_bytes_in_the_other_order(tmp_path, dtype, unit):
    """V3-DT-04: complex numbers by component, text by character; absent chunks are filled in the array's own order."""
    dtype = np.dtype(dtype)
    endian = "little" if dtype.str[0] == ">" else "big"
    chain = CodecChain((CodecSpec("bytes", {"endian": endian}),), dtype, (4,))
    assert chain.swap == unit
    values = np.frombuffer(bytes(range(1, 1 + 4 * dtype.itemsize)), dtype)
    if dtype.kind == "U":
        values = np.array(["abc", "é", "", "z"], dtype)
    fill = values[3:].tobytes()
    template = ChunkKeyEncoding.v2(".").template(1)
    array = OpenArray((6,), (4,), program=chain.program, fill=fill, swap=chain.swap, template=template,
                      directory=os.fsencode(tmp_path))
    plan = WritePlan(array, whole((4,)), values)
    plan.run()
    plan.raise_failure(())
    stored = (tmp_path / "0").read_bytes()
    assert stored == (values.tobytes() if unit == 0 else values.byteswap().tobytes()) == chain.encode(values)
    out = np.zeros(6, dtype)
    plan = ReadPlan(array, whole((6,)), out)
    plan.run()
    plan.raise_failure(())
    assert out.tobytes() == values.tobytes() + 2 * fill
    # Nothing but the fill value: the object goes.
    plan = WritePlan(array, whole((4,)), np.repeat(values[3:], 4))
    plan.run()
    plan.raise_failure(())
    assert not (tmp_path / "0").exists()
