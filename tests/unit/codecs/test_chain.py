"""Chains of codecs: Zarr v3 core, "Chunk encoding", in Python and lowered to C."""

import json

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs import BytesCodec
from zcore.codecs.chain import CodecChain
from zcore.errors import CodecError, MetadataError, UnknownCodecError
from zcore.model.metadata import CodecSpec

BYTES = CodecSpec("bytes", {"endian": "little"})
BLOSC = CodecSpec("blosc", {"cname": "zlib", "clevel": 4, "shuffle": "shuffle", "typesize": 2, "blocksize": 0})
CRC = CodecSpec("crc32c")


@each("specs", [(BYTES,), (BYTES, BLOSC), (BYTES, CRC), (BYTES, BLOSC, CRC), (BYTES, CRC, CRC)])
@each("shape", [(), (1,), (7,), (3, 5), (1, 2, 3, 4)])
def test_kernel_and_python_agree(specs, shape):
    """V3-BYTES-02, D3-CON-12, D3-COD-04"""
    chunk = (np.arange(np.prod(shape, dtype=int)) // 3).astype("<i2").reshape(shape)
    chain = CodecChain(specs, chunk.dtype, shape)
    by_python, by_kernel = bytes(chain.encode(chunk)), chain.program.encode_bytes(chunk.tobytes())
    assert by_python == by_kernel
    assert len(by_kernel) <= chain.max_encoded
    out = bytearray(chunk.nbytes)
    chain.program.decode_bytes(by_python, out)
    decoded = chain.decode(by_kernel)
    assert out == chunk.tobytes() == decoded.tobytes()
    assert (decoded.shape, decoded.dtype) == (chunk.shape, chunk.dtype)


@each("specs", [(BYTES,), (BYTES, BLOSC, CRC), (CodecSpec("transpose", {"order": [1, 0]}), BYTES),
                (BYTES, CodecSpec("numcodecs.bz2", {"level": 1}))])
@pytest.mark.parametrize("is_listed", [False, True])
def test_chunks_of_another_shape_have_the_chain_that_is_made_for_them(specs, is_listed):
    chain = CodecChain(specs, np.dtype("<i2"), (3, 5))
    for shape in (2, 9), (4, 4):
        made, chain = CodecChain(specs, np.dtype("<i2"), shape), chain.for_chunks(
            shape, is_listed=is_listed)
        # The second chain is made from the first one, not from the original.
        for name in ("max_encoded", "sizes", "array_types", "chunk_shape", "dtype", "order", "swap", "step_names",
                     "header_itemsize", "shards", "inner_shape", "is_partial"):
            assert getattr(chain, name) == getattr(made, name), name
        chunk = np.arange(shape[0] * shape[1], dtype="<i2").reshape(shape)
        assert bytes(chain.encode(chunk)) == bytes(made.encode(chunk))
        np.testing.assert_array_equal(chain.decode(made.encode(chunk)), chunk)
    with pytest.raises(AttributeError, match="'CodecChain' object has no attribute 'size'"):
        chain.size  # noqa: B018


@pytest.mark.parametrize(
    "layout", [np.asfortranarray, lambda a: a[::-1, ::-1].copy()[::-1, ::-1], lambda a: np.repeat(a, 2, 1)[:, ::2]]
)
def test_chunks_of_any_layout_are_encoded_in_c_order(layout):
    """V3-BYTES-02, D3-COD-03"""
    chunk = np.arange(12, dtype="<i2").reshape(3, 4)
    chain = CodecChain((BYTES,), chunk.dtype, chunk.shape)
    assert chain.encode(layout(chunk)) == chunk.tobytes()


def test_big_endian_stays_big_endian():
    """ZM-CHK-10"""
    chain = CodecChain((CodecSpec("bytes", {"endian": "big"}),), np.dtype(">i2"), (2,))
    assert chain.encode(np.array([1, 258], ">i2")) == b"\0\1\1\2"
    assert chain.decode(b"\0\1\1\2").tolist() == [1, 258]


@pytest.mark.parametrize("n", [0, 1, 11, 13, 1000])
def test_a_chunk_of_another_size(n):
    """V3-COD-03, V3-COD-04"""
    chain = CodecChain((BYTES,), np.dtype("<i2"), (2, 3))
    with pytest.raises(CodecError) as caught:
        chain.decode(bytes(n))
    assert (caught.value.expected, caught.value.found, caught.value.codec) == (12, n, None)
    with pytest.raises(CodecError) as kernel:
        chain.program.decode_bytes(bytes(n), bytearray(12))
    assert kernel.value.message == caught.value.message


def test_another_shape():
    """Of a chunk that was cut off at the border."""
    chain = CodecChain((BYTES, BLOSC), np.dtype("<i2"), (4, 4))
    cut = CodecChain((BYTES, BLOSC), np.dtype("<i2"), (2, 3))
    chunk = np.arange(6, dtype="<i2").reshape(2, 3)
    assert chain.decode(cut.encode(chunk), (2, 3)).tolist() == chunk.tolist()


def test_unknown_codec():
    with pytest.raises(UnknownCodecError, match="'lzw'") as caught:
        CodecChain((BYTES, CodecSpec("lzw")), np.dtype("i1"), (1,))
    assert caught.value.codec == "lzw"


@each("names", [
    (), ("zstd",), ("bytes", "bytes"), ("bytes", "vlen-utf8"), ("zstd", "bytes"), ("bytes", "transpose"),
    ("bytes", "zstd", "bytes"), ("crc32c", "bytes"), ("transpose",),
])
def test_kinds_that_do_not_follow_each_other(names):
    """D3-COD-02, V3-COD-01"""
    specs = [CodecSpec(name, {"order": [0]} if name == "transpose" else {}) for name in names]
    with pytest.raises(MetadataError, match="expected codecs from array to array, one from array to bytes") as caught:
        CodecChain(specs, np.dtype("i2"), (3,))
    assert caught.value.member == "codecs" and all(name in str(caught.value) for name in names)


@each(("orders", "expected"), [
    ([[0, 1, 2]], None),
    ([[2, 1, 0]], (2, 1, 0)),
    ([[2, 0, 1]], (2, 0, 1)),
    ([[2, 0, 1], [1, 2, 0]], None),
    ([[2, 0, 1], [2, 0, 1]], (1, 2, 0)),
    ([[1, 0, 2], [0, 2, 1]], (1, 2, 0)),
])
def test_transposes_are_one_order(orders, expected):
    """V3-TRANS-02: shape (2, 3, 4) by [2, 0, 1] is (4, 2, 3)."""
    specs = [CodecSpec("transpose", {"order": order}) for order in orders]
    chain = CodecChain((*specs, BYTES), np.dtype("<i2"), (2, 3, 4))
    assert chain.order == expected and chain.swap == 0 and chain.step_names == ()
    chunk = np.arange(24, dtype="<i2").reshape(2, 3, 4)
    moved = chunk
    for order in orders:
        moved = moved.transpose(order)
    assert chain.encode(chunk) == moved.tobytes()
    assert chain.decode(moved.tobytes()).tolist() == chunk.tolist()


@each("order", ["C", "F", [0], [0, 0], [1, 2], [0, 1, 2], [-1, 0], [0.0, 1], [True, False], None])
def test_orders_that_are_none(order):
    """V3-TRANS-01"""
    with pytest.raises(MetadataError, match="order|transpose"):
        CodecChain((CodecSpec("transpose", {"order": order}), BYTES), np.dtype("<i2"), (2, 3))


def test_no_dimensions_have_one_order():
    """V3-TRANS-03, D3-MEM-06"""
    chain = CodecChain((CodecSpec("transpose", {"order": []}), BYTES), np.dtype("<i2"), ())
    assert chain.order is None and chain.decode(b"\1\0") == 1


@each(("name", "configuration"), [
    ("zstd", {"level": 23}), ("zstd", {"level": 1.0}), ("zstd", {"checksum": 1}), ("zstd", {"levels": 1}),
    ("gzip", {"level": 10}), ("gzip", {"level": "1"}), ("gzip", {"mtime": 1}), ("crc32c", {"location": "start"}),
    ("blosc", {"cname": "lz5"}), ("numcodecs.lz4", {"acceleration": 2**31}), ("numcodecs.bz2", {"level": 0}),
    ("numcodecs.lzma", {"format": 4}), ("numcodecs.lzma", {"format": 3}), ("numcodecs.lzma", {"filters": [1]}),
    ("numcodecs.crc32", {"location": "middle"}), ("numcodecs.shuffle", {"elementsize": -1}),
])
def test_configurations_that_are_wrong(name, configuration):
    """V3-GZIP-01, V3-ZSTD-01, V3-BLOSC-01: when the chain is made."""
    with pytest.raises(MetadataError, match="codecs: ") as caught:
        CodecChain((BYTES, CodecSpec(name, configuration)), np.dtype("<i2"), (3,))
    assert caught.value.member == "codecs"


def test_chains_of_more_steps_than_a_program_has_run_in_python():
    chunk = np.arange(5, dtype="<i2")
    for n, has_program in ((8, True), (9, False)):
        chain = CodecChain((BYTES, *[CRC] * n), chunk.dtype, (5,))
        assert chain.program.is_native == has_program
        assert chain.max_encoded == 10 + 4 * n == len(chain.encode(chunk))
        assert chain.decode(chain.encode(chunk)).tolist() == chunk.tolist()


@pytest.mark.parametrize("strict", [True, False])
def test_item_sizes_of_several_blosc_codecs(strict):
    """What is said of one cannot be asked of all."""
    specs = [CodecSpec("blosc", {"cname": "lz4", "shuffle": "noshuffle", "typesize": n}) for n in (2, 3)]
    chain = CodecChain((BYTES, *specs), np.dtype("<i2"), (40,), strict)
    chunk = np.arange(40, dtype="<i2")
    out = np.empty(40, "<i2")
    chain.program.decode_bytes(chain.encode(chunk), out.view("u1"))
    assert chain.program.itemsize == 0 and np.array_equal(out, chunk)


def test_blosc_of_what_has_no_items_of_one_size():
    """V3-BLOSC-03: items of bytes."""
    chain = CodecChain((CodecSpec("vlen-bytes"), CodecSpec("blosc")), np.dtype(object), (1,))
    assert chain.codecs[1].typesize == 1
    specs = (CodecSpec("numcodecs.delta", {"dtype": "i8", "astype": "i2"}), BYTES, CodecSpec("blosc"))
    assert CodecChain(specs, np.dtype("i8"), (1,)).codecs[1].typesize == 2


@pytest.mark.parametrize("endian", ["little", "big", None])
def test_bytes_codec(endian):
    codec = BytesCodec(endian=endian)
    assert BytesCodec.from_configuration(codec.spec().configuration).endian == endian
    assert repr(codec) == f"BytesCodec(endian={endian!r})"


@pytest.mark.parametrize("endian", ["native", "<", 1])
def test_no_byte_order(endian):
    with pytest.raises(ValueError, match="endian"):
        BytesCodec(endian=endian)


@pytest.mark.parametrize(("codec", "sentence"), [
    ({"name": "nosuch"}, "zarr.json: no codec is named 'nosuch'"),
    ({"name": "gzip", "configuration": {"level": 99}}, "zarr.json: codecs: level is 99"),
])
def test_an_error_of_a_codec_names_the_document(tmp_path, codec, sentence):
    zcore.create_array(tmp_path / "a", shape=4, dtype="i4")
    document = json.loads((tmp_path / "a/zarr.json").read_text())
    document["codecs"] = [{"name": "bytes", "configuration": {"endian": "little"}}, codec]
    (tmp_path / "a/zarr.json").write_text(json.dumps(document))
    with pytest.raises(zcore.ZcoreError, match=sentence):
        zcore.open(tmp_path / "a")
