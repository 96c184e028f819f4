"""Items of varying length: the bytes that numcodecs makes of them, and damage of every kind."""
import json
import tracemalloc

import numcodecs
import numpy as np
import pytest

from tests.each import each
from zcore.codecs.chain import CodecChain, codec_of
from zcore.errors import ChunkError, CodecError, MetadataError, UnsupportedError
from zcore.kernel.codec.varying import move_text
from zcore.model.metadata import CodecSpec

OBJECT = np.dtype(object)
STRING = np.dtypes.StringDType()
TEXT = ["a", "bé", "", "𝄞 clef", "x" * 300, "\0"]


def objects(items, shape=None):
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = item
    return array if shape is None else array.reshape(shape)


def chain_of(name, dtype, shape, configuration=None, others=()):
    return CodecChain((CodecSpec(name, configuration or {}), *others), dtype, shape)


def test_the_bytes_of_text():
    """V2-OBJ-04, V3-XC-01"""
    chain = chain_of("vlen-utf8", STRING, (2,))
    expected = bytes.fromhex("02000000 01000000 61 03000000 62c3a9")
    assert chain.encode(np.array(["a", "bé"], STRING)) == expected
    decoded = chain.decode(expected)
    assert decoded.dtype == STRING and decoded.tolist() == ["a", "bé"]
    assert chain.max_encoded is None and not chain.program.is_native


@pytest.mark.parametrize("name", ["vlen-utf8", "numcodecs.vlen-utf8"])
@pytest.mark.parametrize("dtype", [STRING, OBJECT])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6, 1)])
def test_text_is_that_of_numcodecs(name, dtype, shape):
    chunk = objects(TEXT, shape).astype(dtype) if dtype == STRING else objects(TEXT, shape)
    chain = chain_of(name, dtype, shape)
    encoded = chain.encode(chunk)
    assert encoded == numcodecs.VLenUTF8().encode(objects(TEXT))
    decoded = chain.decode(encoded)
    assert (decoded.dtype, decoded.shape) == (dtype, shape) and decoded.reshape(-1).tolist() == TEXT


@pytest.mark.parametrize("items", [[b"", b"abc", b"\0" * 1000], [b"x"], [bytearray(b"ab"), np.bytes_(b"c")]])
def test_bytes_are_those_of_numcodecs(items):
    """V2-OBJ-05, V3-XC-02"""
    chain = chain_of("vlen-bytes", OBJECT, (len(items),))
    encoded = chain.encode(objects(items))
    assert encoded == numcodecs.VLenBytes().encode(objects([bytes(item) for item in items]))
    assert chain.decode(encoded).tolist() == [bytes(item) for item in items]


@pytest.mark.parametrize("dtype", ["<i4", ">u2", "<f8"])
def test_arrays_are_those_of_numcodecs(dtype):
    """V2-OBJ-05"""
    items = objects([np.arange(n).astype(dtype) for n in (0, 1, 5)])
    chain = chain_of("numcodecs.vlen-array", OBJECT, (3,), {"dtype": dtype})
    encoded = chain.encode(items)
    assert encoded == numcodecs.VLenArray(dtype).encode(items)
    for ours, theirs in zip(chain.decode(encoded), items, strict=True):
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    with pytest.raises(CodecError, match="item is damaged"):
        chain.decode(encoded[:4] + b"\1\0\0\0x" + encoded[8:])
    with pytest.raises(CodecError, match="2 dimensions"):
        chain.encode(objects([np.zeros((2, 2))] * 3))


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4), ()])
def test_json_is_that_of_numcodecs(shape):
    """V2-OBJ-06"""
    items = [["a", 1, None], {"b": [True, 2.5], "a": "é"}, "", 0] if shape else [{"a": 1}]
    chunk = objects(items, shape)
    chain = chain_of("numcodecs.json2", OBJECT, shape)
    encoded = chain.encode(chunk)
    assert encoded == numcodecs.JSON().encode(chunk)
    assert chain.decode(encoded).reshape(-1).tolist() == items
    config = numcodecs.JSON().get_config()
    del config["id"]
    assert chain_of("numcodecs.json2", OBJECT, shape, config).encode(chunk) == encoded
    assert json.loads(encoded)[-2:] == ["|O", list(shape)]


def test_the_text_of_the_specification_is_read():
    """V2-OBJ-06"""
    chain = chain_of("numcodecs.json2", OBJECT, (2,))
    assert chain.decode(rb'["a","b\u00e9","|O",[2]]').tolist() == ["a", "bé"]


def test_none_is_an_empty_item():
    """V2-OBJ-04"""
    assert chain_of("vlen-utf8", OBJECT, (2,)).encode(objects([None, "a"])) == numcodecs.VLenUTF8().encode(
        objects(["", "a"]))
    assert chain_of("vlen-bytes", OBJECT, (1,)).decode(chain_of("vlen-bytes", OBJECT, (1,)).encode(
        objects([None]))).tolist() == [b""]


@each("others", [
    (), (CodecSpec("zstd"),), (CodecSpec("gzip", {"level": 5}), CodecSpec("crc32c")),
    (CodecSpec("numcodecs.lz4"), CodecSpec("blosc", {"cname": "lz4"})), (CodecSpec("numcodecs.bz2"),),
    (CodecSpec("numcodecs.crc32"), CodecSpec("numcodecs.shuffle", {"elementsize": 1})),
])
def test_compressed_text(others):
    """Nothing says how many bytes the text has; much of it is decoded all the same."""
    for text in (["a", ""], ["word " * 3000, "b"], ["x" * 3_000_000, "y" * 70_000]):
        chain = chain_of("vlen-utf8", STRING, (2,), others=others)
        assert chain.decode(chain.encode(np.array(text, STRING))).tolist() == text


def test_an_endless_text_is_not_decoded(monkeypatch):
    """V3-COD-07: where the content has no bound of its own, there is one of zcore."""
    monkeypatch.setattr("zcore.codecs.chain.MAX_VARYING_NBYTES", 1 << 20)
    bomb = codec_of("zstd", {}).encode(bytes(1 << 21))
    chain = chain_of("vlen-utf8", STRING, (2,), others=(CodecSpec("zstd"),))
    with pytest.raises(CodecError) as caught:
        chain.decode(bomb)
    assert caught.value.expected == 1 << 20


BOMBS = {"zstd": {}, "gzip": {"level": 9}, "numcodecs.zlib": {"level": 9}, "numcodecs.bz2": {}, "numcodecs.lzma": {},
         "numcodecs.lz4": {}}


@pytest.mark.parametrize("name", BOMBS)
def test_what_little_may_become_is_bounded(monkeypatch, name):
    """By the bytes of the object and the items of the chunk, however many codecs there are."""
    monkeypatch.setattr("zcore.codecs.chain.VARYING_NBYTES_FREE", 1 << 20)
    codec = codec_of(name, BOMBS[name])
    bomb = codec.encode(bytes(1 << 23))
    inner = bomb
    for others in ((CodecSpec(name, BOMBS[name]),), (CodecSpec(name, BOMBS[name]),) * 2):
        expected = (1 << 20) + 64 * (2 + len(inner))
        if expected < 1 << 23:
            with pytest.raises(CodecError) as caught:
                chain_of("vlen-utf8", STRING, (2,), others=others).decode(inner)
            assert caught.value.expected <= expected
        inner = codec.encode(inner)


@pytest.mark.slow
def test_a_long_text_is_decoded_from_little():
    text = np.array(["x" * 100_000_000, ""], STRING)
    chain = chain_of("vlen-utf8", STRING, (2,), others=(CodecSpec("zstd"),))
    raw = chain.encode(text)
    assert len(raw) < 100_000 and chain.decode(raw)[0] == text[0]


def test_json_of_too_many_values_is_not_parsed(monkeypatch):
    """A list of two bytes takes 56."""
    monkeypatch.setattr("zcore.codecs.array_bytes.varying.MAX_VALUES", 1000)
    chain = chain_of("numcodecs.json2", OBJECT, (2,))
    assert chain.decode(chain.encode(objects([[[]] * 450, [1, 2]]))).tolist() == [[[]] * 450, [1, 2]]
    with pytest.raises(CodecError, match="commas and brackets"):
        chain.decode(chain.encode(objects([[[]] * 600, [1, 2]])))


@pytest.mark.parametrize("name", ["numcodecs.bz2", "numcodecs.lzma"])
def test_many_streams_are_one_content(name):
    codec = codec_of(name, {})
    raw = codec.encode(b"") * 3 + codec.encode(b"ab" * 50_000) + codec.encode(b"c") * 3000
    assert codec.decode(raw, 103_000) == b"ab" * 50_000 + b"c" * 3000


ENCODED = bytes.fromhex("02000000 01000000 61 03000000 62c3a9")


@each("damaged", [
    *[ENCODED[:n] for n in range(len(ENCODED))],
    ENCODED + b"\0",
    b"\3" + ENCODED[1:],
    b"\1" + ENCODED[1:],
    b"\xff\xff\xff\xff" + ENCODED[4:],
    ENCODED[:4] + b"\xff\xff\xff\xff" + ENCODED[8:],
    ENCODED[:4] + b"\2" + ENCODED[5:],
    ENCODED[:-1] + b"\xff",
    ENCODED[:8] + b"\xc3" + ENCODED[9:],
], ids=lambda raw: raw.hex() or "empty")
@each("dtype", [STRING, OBJECT])
def test_damaged_text(damaged, dtype):
    """V3-XC-01, V2-OBJ-07: count, sizes, trailing bytes and the encoding itself."""
    with pytest.raises(CodecError) as caught:
        chain_of("vlen-utf8", dtype, (2,)).decode(damaged)
    assert caught.value.codec == "vlen-utf8" and caught.value.offset is not None


@each("name", ["vlen-bytes", "numcodecs.vlen-array"])
@each("damaged", [
    *[ENCODED[:n] for n in range(len(ENCODED))], ENCODED + b"\0", b"\3" + ENCODED[1:], b"\1" + ENCODED[1:],
    ENCODED[:4] + b"\xff\xff\xff\xff" + ENCODED[8:], ENCODED[:4] + b"\2" + ENCODED[5:],
], ids=lambda raw: raw.hex() or "empty")
def test_damaged_bytes_and_arrays(name, damaged):
    """V3-XC-02, V2-OBJ-05, V2-OBJ-07: the same, but that any bytes are an item."""
    chain = chain_of(name, OBJECT, (2,), {"dtype": "|u1"} if name == "numcodecs.vlen-array" else None)
    assert [bytes(item) for item in chain.decode(ENCODED[:-1] + b"\xff")] == [b"a", b"b\xc3\xff"]
    with pytest.raises(CodecError) as caught:
        chain.decode(damaged)
    assert caught.value.codec == name and caught.value.offset is not None


@each(("name", "dtype"), [("vlen-utf8", STRING), ("vlen-utf8", OBJECT), ("vlen-bytes", OBJECT)])
@each(("raw", "offset", "expected", "found"), [
    ("02000000 01000000 61 03000000 6262", 9, 15, 16),
    ("02000000 01000000 61 ffffffff 6262", 9, 15, 2**32 - 1 + 13),
    ("02000000 ffffffff 61 03000000 6262", 4, 15, 2**32 - 1 + 8),
    ("02000000 04000000 61626364 0000", 12, 14, 15),
    ("02000000 01000000 61 00000000 62", 13, 13, 14),
    ("03000000 01000000 61 03000000 626262", 0, 2, 3),
    ("02000000 00000000", 8, 12, 8),
])
def test_what_a_row_says_of_itself_is_compared_with_what_is_there(name, dtype, raw, offset, expected, found):
    """V3-XC-01, V3-XC-02: the error says where, and both numbers; nothing is as large as a size that is none."""
    tracemalloc.start()
    try:
        with pytest.raises(CodecError) as caught:
            chain_of(name, dtype, (2,)).decode(bytes.fromhex(raw))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (caught.value.offset, caught.value.expected, caught.value.found) == (offset, expected, found)
    assert peak < 1 << 20


def all_lead_bytes():
    """Every first byte with continuations at the ends of their ranges, cut off anywhere."""
    ends = (0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff)
    for first in range(0x80, 0x100):
        yield bytes([first])
        # Between 0x80 and 0xc0 none begins a character: the ends of that range have continuations, too.
        for second in ends if first in (0x80, 0xbf) or first >= 0xc0 else ():
            yield bytes([first, second])
            for third in (0x7f, 0x80, 0xbf, 0xc0):
                yield bytes([first, second, third])
                yield bytes([first, second, third, 0x80])
                yield bytes([first, second, third, 0xc0])


@pytest.mark.parametrize("ahead", [b"", b"abcdefgh", b"abc"])
def test_text_is_utf8_as_python_has_it(ahead):
    """V3-XC-01: both ways to read it agree on every beginning of a character that is more than a byte."""
    n_good, chains = 0, [chain_of("vlen-utf8", dtype, (1,)) for dtype in (STRING, OBJECT)]
    for character in all_lead_bytes():
        text = ahead + character + ahead
        raw = (1).to_bytes(4, "little") + len(text).to_bytes(4, "little") + text
        for chain in chains:
            try:
                expected = str(text, "utf-8")
            except UnicodeDecodeError as error:
                with pytest.raises(CodecError) as caught:
                    chain.decode(raw)
                assert caught.value.message.endswith(str(error)) and caught.value.offset == 8
                continue
            n_good += 1
            decoded = chain.decode(raw)
            assert decoded.tolist() == [expected] and chain.encode(decoded) == raw
    assert n_good > 100


def test_text_of_numpy_never_becomes_an_object(monkeypatch):
    """Neither way of `StringDType` calls anything in Python for an item; missing text has no object to be stored."""
    chain = chain_of("vlen-utf8", STRING, (len(TEXT),))
    monkeypatch.setattr("zcore.codecs.array_bytes.varying.pack_items", None)
    monkeypatch.setattr("zcore.codecs.array_bytes.varying.unpack_items", None)
    assert chain.decode(chain.encode(np.array(TEXT, STRING))).tolist() == TEXT


def test_text_of_which_some_may_be_missing():
    dtype = np.dtypes.StringDType(na_object=None)
    raw = chain_of("vlen-utf8", dtype, (2,)).encode(np.array(["a", None], dtype))
    assert raw.hex() == "02000000" "01000000" "61" "00000000"
    assert chain_of("vlen-utf8", dtype, (2,)).decode(raw).tolist() == ["a", ""]


def test_texts_that_are_no_str_alone():
    class Name(str):
        pass

    raw = chain_of("vlen-utf8", OBJECT, (3,)).encode(objects([Name("é"), "é", Name("a")]))
    assert raw.hex() == "03000000" "02000000c3a9" "02000000c3a9" "0100000061"
    parts = objects([bytearray(b"ab"), memoryview(b"abcd")[::2], np.array([1, 2], "<u2")])
    assert chain_of("vlen-bytes", OBJECT, (3,)).encode(parts).hex() == (
        "03000000" "020000006162" "020000006163" "0400000001000200")


def test_a_huge_chunk_of_nothing():
    """As many items as metadata want, and none there: no memory is taken for them."""
    chain = chain_of("vlen-bytes", OBJECT, (2**32 - 1,))
    with pytest.raises(CodecError, match="do not fit into 4 bytes"):
        chain.decode(b"\xff\xff\xff\xff")


@each("raw", [
    b"", b"{}", b"[]", b'["a","|O"]', b'["a","b","|O",[3]]', b'["a","b","c","|O",[2]]', b'["a","|O",[2]]',
    b'["a","b","|O",2]', b'[["a"],["b"],"|O",[2,2]]', b'["a","b","|O",[2,2]]', b'[["a","b"],"|O",[2,2]]', b"\xff",
    b"[" * 100_000, b'["a","b","|O",[2]',
])
@each("shape", [(2,), (2, 2)])
def test_damaged_json(raw, shape):
    """V2-OBJ-07"""
    with pytest.raises(CodecError):
        chain_of("numcodecs.json2", OBJECT, shape).decode(raw)


@each(("name", "items"), [
    ("vlen-utf8", ["a", 1]), ("vlen-utf8", [b"a", "b"]), ("vlen-bytes", ["a", b""]), ("vlen-bytes", [1, b""]),
    ("numcodecs.json2", [1, object()]), ("numcodecs.json2", [b"", 1]), ("vlen-utf8", ["\ud800", ""]),
    ("vlen-bytes", [np.array("a", object), b""]),
])
def test_items_of_another_type(name, items):
    with pytest.raises(ChunkError) as caught:
        chain_of(name, OBJECT, (2,)).encode(objects(items))
    assert (caught.value.codec, caught.value.direction) == (name, "encode")


@each(("name", "dtype"), [
    ("vlen-utf8", "U3"), ("vlen-bytes", "S3"), ("vlen-bytes", STRING), ("vlen-utf8", "i4"),
    ("numcodecs.json2", "f8"), ("bytes", OBJECT), ("bytes", STRING), ("packbits", OBJECT),
])
def test_types_that_do_not_fit(name, dtype):
    """V3-XDT-01, V2-OBJ-01"""
    with pytest.raises(MetadataError, match=name):
        chain_of(name, np.dtype(dtype) if isinstance(dtype, str) else dtype, (4,))


def test_order_of_dimensions():
    """Items follow it, as those of numcodecs follow the order of the memory; a shape inside would contradict it."""
    chunk = objects(["a", "b", "c", "d", "e", "f"], (2, 3))
    transpose = CodecSpec("transpose", {"order": [1, 0]})
    chain = CodecChain((transpose, CodecSpec("vlen-utf8")), OBJECT, (2, 3))
    assert chain.encode(chunk) == numcodecs.VLenUTF8().encode(np.asfortranarray(chunk))
    assert chain.decode(chain.encode(chunk)).tolist() == chunk.tolist()
    with pytest.raises(UnsupportedError, match="json2"):
        CodecChain((transpose, CodecSpec("numcodecs.json2")), OBJECT, (2, 3))


def test_text_moves_between_arrays_with_memory_of_their_own():
    source = np.array(TEXT, STRING)[::-2]
    items = np.full(4, "kept", STRING)
    n = source.itemsize      # 16 bytes, or 8 on a system of 32 bits
    move_text(items, np.array([3 * n, 0, n, 0], "i8"), source, np.array([0, -2 * n, -4 * n, -4 * n], "i8"))
    assert items.tolist() == ["bé", "bé", "kept", "\0"]
    two = np.zeros(2, "i8")
    for wrong in ((items, two, items[1:], two), (items, two, source, two[:1]), (items, two, np.zeros(2, "S16"), two),
                  (np.zeros(2, object), two, source, two)):
        with pytest.raises(TypeError, match="expected two arrays of StringDType"):
            move_text(*wrong)
