"""Packed bits of zarr-extensions, "packbits", by vectors of its text."""
import itertools

import numpy as np
import pytest

from tests.each import each
from zcore.codecs.chain import CodecChain
from zcore.errors import CodecError, MetadataError
from zcore.model.metadata import CodecSpec


def chain_of(dtype, shape, **configuration):
    return CodecChain((CodecSpec("packbits", configuration),), np.dtype(dtype), shape)


@pytest.mark.parametrize(("padding", "expected"), [
    ("none", "81 01"), ("first_byte", "07 81 01"), ("last_byte", "81 01 07"),
])
def test_nine_booleans(padding, expected):
    """V3-XC-04: least significant bit first, unlike `numcodecs.packbits` (V2-COD-10)."""
    chunk = np.array([1, 0, 0, 0, 0, 0, 0, 1, 1], bool)
    chain = chain_of("?", (9,), padding_encoding=padding)
    encoded = bytes.fromhex(expected)
    assert chain.encode(chunk) == encoded and chain.max_encoded == len(encoded)
    decoded = chain.decode(encoded)
    assert decoded.dtype == bool and decoded.tolist() == chunk.tolist()


@each(("dtype", "first", "last", "items", "expected"), [
    ("u1", 0, 2, [1, 2, 7, 5], "d1 0b"),
    ("i1", None, 2, [1, 2, -1, -3], "d1 0b"),
    ("u1", 4, 7, [0x10, 0xF0], "f1"),
    ("<u2", 4, 11, [0x0120, 0x0FF0], "12 ff"),
    (">u2", 4, 11, [0x0120, 0x0FF0], "12 ff"),
    ("<i2", None, 3, [-8, 7, -1], "78 0f"),
    ("<u4", None, None, [1, 2**31], "01000000 00000080"),
    (">i8", None, None, [-2], "feffffffffffffff"),
    ("<f4", None, None, [1.0, -2.0], "0000803f 000000c0"),
])
def test_some_bits_of_each_item(dtype, first, last, items, expected):
    chunk = np.array(items, dtype)
    chain = chain_of(dtype, chunk.shape, first_bit=first, last_bit=last)
    assert chain.encode(chunk) == bytes.fromhex(expected)
    decoded = chain.decode(bytes.fromhex(expected))
    assert decoded.dtype == chunk.dtype and decoded.tolist() == items


@pytest.mark.parametrize("first", [0, 16])
def test_complex_numbers_by_component(first):
    chunk = np.array([1.5 - 2j, 3j], "c8")
    chain = chain_of("c8", (2,), first_bit=first, padding_encoding="last_byte")
    encoded = chain.encode(chunk)
    assert len(encoded) == 4 * (32 - first) // 8 + 1 and encoded[-1] == 0
    assert chain.decode(encoded).tolist() == chunk.tolist()


@each("name", ["bcomplex32", "complex32"])
def test_components_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    chunk = np.array([1.5 - 2j, 3j]).astype(getattr(ml_dtypes, name))
    chain = chain_of(chunk.dtype, (2,), first_bit=4)
    encoded = chain.encode(chunk)
    assert len(encoded) == 4 * 12 // 8 and chain.decode(encoded).tolist() == [1.5 - 2j, 3j]
    with pytest.raises(ValueError, match="outside of an item of 16 bits"):
        chain_of(chunk.dtype, (2,), last_bit=16)


@pytest.mark.parametrize(("name", "items", "expected"), [
    ("int4", [-8, 7, -1], "78 0f"), ("uint4", [15, 0, 9], "0f 09"), ("int2", [-2, 1, 0, -1], "c6"),
    ("uint2", [2, 1, 0, 3], "c6"), ("float4_e2m1fn", [0.5, -6.0], "f1"),
])
def test_types_of_a_few_bits(name, items, expected):
    """V3-XDT-08"""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    chunk = np.array(items).astype(getattr(ml_dtypes, name))
    chain = chain_of(chunk.dtype, chunk.shape)
    assert chain.encode(chunk) == bytes.fromhex(expected)
    assert chain.decode(bytes.fromhex(expected)).astype("f4").tolist() == items


@each("shape", [(), (1,), (3, 5), (2, 1, 7)])
@each("dtype", ["?", "i1", "<u2", "<c8"])
@each("padding", ["none", "first_byte", "last_byte"])
def test_round_trip(shape, dtype, padding):
    chunk = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    chain = chain_of(dtype, shape, padding_encoding=padding)
    encoded = chain.encode(chunk)
    assert len(encoded) == chain.max_encoded
    assert np.array_equal(chain.decode(encoded), chunk)
    for damaged in (encoded[:-1], encoded + b"\0", b""):
        with pytest.raises(CodecError) as caught:
            chain.decode(damaged)
        assert (caught.value.codec, caught.value.found) == ("packbits", len(damaged))


@pytest.mark.parametrize(("padding", "raw"), [("first_byte", "06 81 01"), ("last_byte", "81 01 00")])
def test_another_padding_than_there_is(padding, raw):
    """V3-XC-04"""
    with pytest.raises(CodecError, match="expected 7") as caught:
        chain_of("?", (9,), padding_encoding=padding).decode(bytes.fromhex(raw))
    assert caught.value.expected == 7


@each(("dtype", "configuration"), [
    ("u1", {"first_bit": 3, "last_bit": 2}), ("u1", {"last_bit": 8}), ("?", {"first_bit": 1}),
    ("u1", {"first_bit": -1}), ("u1", {"padding_encoding": "middle"}), ("u1", {"first_bit": 1.0}),
    ("S3", {}), ("U3", {}),
    ([("a", "i4")], {}), ("V3", {}), ("u1", {"bits": 3}),
])
def test_what_it_does_not_take(dtype, configuration):
    with pytest.raises(MetadataError):
        chain_of(dtype, (4,), **configuration)


def test_what_documents_record():
    spec = CodecSpec("packbits", {"padding_encoding": "none", "first_bit": 1})
    assert chain_of("u1", (4,), first_bit=1, last_bit=None).codecs[0].spec() == spec


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("n_items", [0, 1, 2, 3, 4, 7, 8, 9, 33])
def test_all_parts_of_a_byte(dtype, n_items):
    """V3-XC-04: those of which a byte holds a whole number are moved together; bit by bit it is the same."""
    items = np.random.default_rng(n_items).integers(0, 256, n_items).astype("u1")
    for first, last in itertools.combinations_with_replacement(range(8), 2):
        n_bits = last - first + 1
        chain = chain_of(dtype, (n_items,), first_bit=first, last_bit=last)
        number = sum((int(item) >> first & 2**n_bits - 1) << i * n_bits for i, item in enumerate(items))
        encoded = number.to_bytes(-(-n_items * n_bits // 8), "little")
        assert chain.encode(items.view(dtype)) == encoded
        kept = items >> first & 2**n_bits - 1
        if dtype == "i1":
            kept |= np.where(kept >> (n_bits - 1) & 1, 0x100 - 2**n_bits, 0).astype("u1")
        assert chain.decode(encoded).view("u1").tolist() == (kept << first).tolist()
