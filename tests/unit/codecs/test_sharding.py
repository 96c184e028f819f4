"""`sharding_indexed`: its configuration, shards in Python, and chains of more than a shard. V3-SHARD-01 to -04."""
import numpy as np
import pytest

from tests.both_ways import WAYS, directory
from tests.each import each
from zcore import MemoryStore
from zcore.codecs.chain import CodecChain
from zcore.codecs.sharding import ShardingCodec
from zcore.errors import ChecksumError, MetadataError, ShardIndexError, UnknownCodecError, UnsupportedError
from zcore.kernel.plan.shard_index import ShardProgram
from zcore.model.metadata import CodecSpec

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
BLOSC = {"name": "blosc",
         "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def document(chunk_shape, codecs=(LITTLE,), index_codecs=(LITTLE, CRC), location="end"):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": list(chunk_shape), "codecs": list(codecs), "index_codecs": list(index_codecs),
        "index_location": location}}


def chain_of(shape, *documents, fill=0, dtype="<u2"):
    specs = [CodecSpec(codec["name"], codec.get("configuration")) for codec in documents]
    return CodecChain(specs, np.dtype(dtype), shape, True, np.array([fill], dtype))


def test_configuration():
    """V3-SHARD-01: what is left out of `index_location` is the end; the codec writes every member."""
    codec = ShardingCodec(chunk_shape=(2, np.int64(3)))
    assert codec.spec().configuration == {
        "chunk_shape": [2, 3], "codecs": [LITTLE], "index_codecs": [LITTLE, CRC], "index_location": "end"}
    again = ShardingCodec.from_configuration(codec.spec().configuration)
    assert again.spec() == codec.spec() and again.chunk_shape == (2, 3)
    configuration = document((2,), [LITTLE, BLOSC], location="start")["configuration"]
    assert ShardingCodec.from_configuration(configuration).spec().configuration == configuration
    del configuration["index_location"]
    assert ShardingCodec.from_configuration(configuration).index_location == "end"
    assert "chunk_shape=[2, 3]" in repr(codec)
    assert ShardingCodec(chunk_shape=[2], codecs=[codec]).codecs == (codec.spec(),)


@each(("change", "member"), [
    ({"chunk_shape": None}, "chunk_shape"), ({"codecs": None}, "codecs"), ({"index_codecs": None}, "index_codecs"),
    ({"index_location": "middle"}, "codecs"), ({"index_location": 0}, "codecs"), ({"order": "C"}, "order"),
    ({"chunk_shape": 2}, "chunk_shape"), ({"chunk_shape": [2.0]}, "chunk_shape"),
    ({"chunk_shape": [True]}, "chunk_shape"), ({"chunk_shape": [0]}, "codecs"), ({"codecs": []}, "codecs"),
    ({"codecs": "bytes"}, "codecs"), ({"codecs": [5]}, "codecs"), ({"codecs": [{"name": 5}]}, "codecs"),
    ({"codecs": [{"name": "bytes", "configuration": 5}]}, "codecs"), ({"index_codecs": []}, "codecs"),
])
def test_configurations_that_break_a_rule(change, member):
    """V3-SHARD-01: MetadataError."""
    configuration = document((2,))["configuration"]
    for name, value in change.items():
        if value is None:
            del configuration[name]
        else:
            configuration[name] = value
    with pytest.raises(MetadataError) as caught:
        ShardingCodec.from_configuration(configuration)
    assert caught.value.member == member


@pytest.mark.parametrize("codec", [BLOSC, {"name": "gzip", "configuration": {"level": 1}}, document((1,))])
def test_an_index_of_no_fixed_size(codec):
    """V3-SHARD-04."""
    with pytest.raises(MetadataError, match="expected codecs whose output has a fixed size"):
        ShardingCodec.from_configuration(document((2,), index_codecs=[LITTLE, codec])["configuration"])


@pytest.mark.parametrize("chunk_shape", [(3, 4), (8, 8), (4,), (2, 2, 1)])
def test_chunks_that_do_not_divide_the_shard(chunk_shape):
    """V3-SHARD-02."""
    with pytest.raises(MetadataError, match="does not divide the shard's shape"):
        chain_of((4, 4), document(chunk_shape))


def test_more_chunks_than_an_index_may_list():
    with pytest.raises(UnsupportedError, match="shards of 134217728 chunks"):
        chain_of((2**27,), document((1,)))


def test_an_unknown_codec_in_a_shard():
    with pytest.raises(UnknownCodecError):
        chain_of((4,), document((2,), [LITTLE, {"name": "zzz"}]))


def test_what_has_a_c_form():
    chain = chain_of((4, 4), document((2, 2), [LITTLE, BLOSC, CRC]))
    assert type(chain.program) is ShardProgram and chain.step_names == ("blosc", "crc32c") and chain.is_partial
    assert chain.program.is_native
    turned = chain_of((4, 6), TRANSPOSE, document((2, 1), [LITTLE, CRC]))
    assert type(turned.program) is ShardProgram and turned.program.is_native and turned.is_partial
    assert turned.inner_shape == (1, 2) and turned.program.shard_shape == (4, 6)
    assert turned.order == (1, 0) and turned.step_names == ("crc32c",)
    around = chain_of((4, 6), TRANSPOSE, document((2, 1)), ZSTD, CRC)
    assert not around.program.is_native and not around.is_partial
    assert around.inner_shape == (1, 2) and around.step_names == ("sharding_indexed", "zstd", "crc32c")
    filtered = chain_of((4, 4), {"name": "numcodecs.delta", "configuration": {"dtype": "<u2"}}, document((2, 2)))
    assert not filtered.program.is_native and not filtered.is_partial


def test_shards_in_shards_have_a_c_form():
    """V3-SHARD-03: three levels of them, with transposes before each."""
    codecs = [LITTLE, BLOSC]
    for level, side in enumerate((2, 4, 8, 16), 1):
        codecs = [document((side // 2,) * 2, codecs)]
        chain = chain_of((side, side), *codecs)
        assert chain.is_partial and chain.program.is_native == (level <= 3)
        # The chunks of the fourth are made of elements as those of any other codec are.
        assert (chain.program.n_levels, chain.step_names) == (
            (level, ("blosc",)) if level <= 3 else (1, ("sharding_indexed",)))
        chunk = np.arange(side * side, dtype="<u2").reshape(side, side)
        np.testing.assert_array_equal(chain.decode(chain.encode(chunk)), chunk)
    chain = chain_of((4, 4), document((2, 2), [TRANSPOSE, document((2, 1))]))
    assert chain.program.n_levels == 2 and chain.program.is_native and chain.is_partial
    chain = chain_of((4, 4), document((2, 2), [document((1, 2)), CRC]))
    assert chain.program.n_levels == 1 and not chain.program.is_native and chain.is_partial


def test_a_shard_decodes_to_what_was_encoded():
    chunk = np.arange(24, dtype="<u2").reshape(4, 6)
    chunk[:2, :3] = 7
    nested = document((2, 3), [document((1, 3), [LITTLE, BLOSC])])
    for documents in ([document((2, 3))], [document((2, 3), location="start")],
                      [document((2, 3), [LITTLE, BLOSC, CRC])], [nested], [document((2, 3)), CRC]):
        chain = chain_of((4, 6), *documents, fill=7)
        raw = chain.encode(chunk)
        assert len(raw) <= chain.max_encoded
        np.testing.assert_array_equal(chain.decode(raw), chunk)


def test_a_shard_of_nothing_but_the_fill_value_is_its_index(sharded):
    """V3-SHARD-12, in a chain that goes on behind the shard."""
    chain = chain_of((4,), document((2,)), fill=5)
    raw = chain.encode(np.full(4, 5, "<u2"))
    assert raw[:32] == b"\xff" * 32 and len(raw) == 36 and chain.decode(raw).tolist() == [5] * 4


def test_a_checksum_behind_a_shard_is_verified():
    """V3-SHARD-13: codecs behind the shard are undone before anything in it is looked at."""
    chain = chain_of((4,), document((2,)), CRC)
    raw = bytearray(chain.encode(np.arange(4, dtype="<u2")))
    raw[0] ^= 1
    with pytest.raises(ChecksumError):
        chain.decode(raw)


@pytest.mark.parametrize("codecs", [[LITTLE, CRC], [document((1, 2), [LITTLE, CRC], location="start")]])
def test_shards_in_shards(sharded, tmp_path, codecs):
    """V3-SHARD-03."""
    for store in (tmp_path, MemoryStore()):
        array = sharded.create(store, (9, 10), "<u2", (4, 8), (2, 4), codecs=codecs, fill_value=3)
        model = np.full((9, 10), 3, "<u2")
        for i, part in enumerate((np.s_[1:7, 2:9], np.s_[::3, ::-2], np.s_[8], np.s_[:4, :8])):
            array[part] = i
            model[part] = i
            np.testing.assert_array_equal(array[...], model)
            np.testing.assert_array_equal(array[part], model[part])
        array.resize((11, 3))
        np.testing.assert_array_equal(array[...], np.concatenate([model[:, :3], np.full((2, 3), 3, "<u2")]))


def test_an_error_in_a_shard_in_a_shard(sharded, tmp_path):
    """The chunk that is named is one of the array's grid."""
    array = sharded.create(tmp_path, (4, 2), "<u2", (4, 2), (2, 2), codecs=[document((1, 2), [LITTLE, CRC])])
    array[...] = 5
    raw = bytearray((tmp_path / "c/0/0").read_bytes())
    half = (len(raw) - 36) // 2
    raw[half + 8] ^= 1
    (tmp_path / "c/0/0").write_bytes(raw)
    with pytest.raises(ChecksumError, match=r"c/0/0: inner chunk \(1, 0\): inner chunk \(1, 0\): checksum") as caught:
        array[...]
    assert caught.value.inner_coords == (1, 0)
    raw[half * 2 - 1] ^= 1
    (tmp_path / "c/0/0").write_bytes(raw)
    with pytest.raises(ChecksumError, match=r"c/0/0: inner chunk \(1, 0\): shard index: checksum"):
        array[2]
    assert array[:2].tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize("codecs", [[BIG], [LITTLE, ZSTD], [LITTLE, GZIP, CRC], [TRANSPOSE, LITTLE],
                                    [TRANSPOSE, BIG, BLOSC, CRC]])
@pytest.mark.parametrize("index_codecs", [[LITTLE, CRC], [BIG, {"name": "numcodecs.adler32"}, CRC]])
def test_any_chain_of_the_chunks(sharded, tmp_path, codecs, index_codecs):
    """V3-SHARD-03, V3-SHARD-04: what has a C form alone has one in a shard."""
    array = sharded.create(tmp_path, (9, 12), ">u2" if BIG in codecs else "<u2", (4, 8), (2, 4), codecs=codecs,
                           index_codecs=index_codecs, fill_value=258)
    assert type(array._binding.chain.program) is ShardProgram
    check_writes(array)


@pytest.mark.parametrize(("before", "chunks", "after"), [
    ([TRANSPOSE], (4, 2), []), ([], (2, 4), [ZSTD]), ([], (2, 4), [GZIP, CRC]), ([TRANSPOSE], (4, 2), [BLOSC]),
])
def test_codecs_around_a_shard(sharded, tmp_path, before, chunks, after):
    """V3-SHARD-13: the selection is of the array, whatever is done to a shard before and behind."""
    for store in (tmp_path, MemoryStore()):
        array = sharded.create(store, (9, 12), "<u2", (4, 8), chunks, before=before, after=after, fill_value=258)
        assert array._binding.chain.program.is_native == (not after) and array.chunks == (2, 4)
        check_writes(array)


def check_writes(array):
    model = np.full((9, 12), 258, "<u2")
    for i, part in enumerate((np.s_[...], np.s_[1:7, 2:9], np.s_[::3, ::-2], np.s_[8], np.s_[:4, :8])):
        values = 258 if i == 4 else i + np.arange(model[part].size).reshape(model[part].shape)
        array[part] = values
        model[part] = values
        np.testing.assert_array_equal(array[...], model)
        np.testing.assert_array_equal(array[part], model[part])


def test_text_in_shards():
    """V3-SHARD-12 for elements without bytes of their own."""
    dtype = np.dtypes.StringDType()
    specs = [CodecSpec("sharding_indexed", document((2,), [{"name": "vlen-utf8"}])["configuration"])]
    chain = CodecChain(specs, dtype, (6,), True, np.array([""], dtype))
    shard = np.array(["a", "bcd", "", "", "\u00e9", ""], dtype)
    raw = chain.encode(shard)
    assert not chain.program.is_native and raw.count(b"\xff" * 16) == 1
    assert chain.decode(raw).tolist() == shard.tolist()


def test_a_shard_too_short_for_its_index_in_memory(sharded):
    store = MemoryStore()
    array = sharded.create(store, (4,), "<u2", (4,), (2,))
    store.set("c/0", b"short")
    with pytest.raises(ShardIndexError, match="c/0: shard index: shard has 5 bytes, its index alone needs 36"):
        array[0]


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, BLOSC], [LITTLE, BLOSC, CRC]])
def test_both_paths_leave_the_same_bytes(sharded, tmp_path, location, codecs):
    objects = []
    for way in WAYS:
        place = tmp_path / way
        array = sharded.create(directory(place, way), (19, 20), "<u2", (8, 12), (2, 3), codecs=codecs,
                               index_location=location)
        states = []
        for i, part in enumerate((np.s_[...], np.s_[3:5, 1:14], np.s_[::5, ::7], np.s_[2:4, 3:9], np.s_[17:])):
            array[part] = i % 4 * np.arange(array[part].size).reshape(array[part].shape)
            states.append({str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*")
                           if file.is_file()})
        array.resize((21, 7))
        array.append(np.ones((3, 7), "<u2"))
        states.append({str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()})
        objects.append(states)
    assert objects[0] == objects[1]
