"""What lies where: the keys and documents of hierarchies in Zarr v3 and v2, and what is made of those of others."""
import json
import pickle
import struct

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore import blosc
from zcore.hierarchy import deletion

RAW = {3: {"compressors": None, "checksum": False}, 2: {"compressors": None}}
DOCUMENTS = {3: ("zarr.json", "zarr.json"), 2: (".zarray", ".zgroup")}


@pytest.fixture(params=[*WAYS, "memory"])
def store(request, tmp_path):
    return zcore.MemoryStore() if request.param == "memory" else directory(tmp_path, request.param)


@pytest.fixture(params=[3, 2])
def zarr_format(request):
    return request.param


def raw_array(store, zarr_format, shape, chunks, dtype="<i2", **keywords):
    """An array whose chunks are their bytes."""
    return zcore.create_array(store, shape=shape, chunks=chunks, dtype=dtype, zarr_format=zarr_format,
                              **RAW[zarr_format], **keywords)


def key_of(zarr_format, *coords):
    return "/".join(["c", *map(str, coords)]) if zarr_format == 3 else ".".join(map(str, coords))


def members_of(store, key):
    return json.loads(store.get(key))


# Nodes.

def test_every_node_and_all_groups_above_have_documents(store, zarr_format):
    """V3-OP-01, V3-DOC-01, V3-DOC-02, V2-GRP-02, V2-KEY-01, D3-GRP-01: the root is one of them."""
    array, group = DOCUMENTS[zarr_format]
    a = zcore.create_array(store, name="x/y/a", shape=4, chunks=2, dtype="i4", zarr_format=zarr_format)
    a[3] = 1
    assert sorted(store.list()) == sorted(
        [group, f"x/{group}", f"x/y/{group}", f"x/y/a/{array}", "x/y/a/" + key_of(zarr_format, 1)])
    assert isinstance(zcore.open(store, path="x/y"), zcore.Group) and zcore.open(store).nmembers(None) == 3


def test_what_has_no_document_is_no_node(store, zarr_format):
    """V3-OP-01, V3-OP-03, V2-GRP-03, V2-GRP-04, D3-GRP-01: whatever lies below."""
    array, group = DOCUMENTS[zarr_format]
    root = zcore.create_group(store, zarr_format=zarr_format)
    root.create_array("g/a", shape=1, dtype="i1")
    store.erase(f"g/{group}")
    store.set("files/readme.txt", b"text")
    store.set("file", b"text")
    assert list(root) == [] and "g" not in root and "files" not in root and "file" not in root
    for path in ("g", "files", "file", "none"):
        with pytest.raises(KeyError) as caught:
            zcore.open(store, path=path)
        assert isinstance(caught.value, zcore.NodeNotFoundError)
    assert root["g/a"].shape == (1,), "its own document makes it a node"
    # Who creates the next one below fills the gap.
    root.create_array("g/b", shape=1, dtype="i1")
    assert list(root) == ["g"] and list(root["g"]) == ["a", "b"]


def test_an_array_has_no_children(store, zarr_format):
    """V3-KEY-05, D3-CON-01: whatever directories its keys make, and whatever others put there."""
    keys = {"name": "v2", "separator": "/"} if zarr_format == 3 else "/"
    root = zcore.create_group(store, zarr_format=zarr_format)
    a = root.create_array("a", shape=(4, 4), chunks=(2, 2), dtype="i4", chunk_key_encoding=keys)
    a[...] = 1
    assert store.exists("a/1/1") and [path for path, _ in root.members(None)] == ["a"]
    assert not hasattr(a, "members") and "a/1" not in root
    one = raw_array(zcore.MemoryStore(), zarr_format, 5, 5, chunk_key_encoding=keys)
    one[...] = 1
    assert one.store.exists("0"), "one dimension has no directories"


def test_a_root_may_be_an_array(store, zarr_format):
    """D3-CON-03: a root without a name."""
    a = raw_array(store, zarr_format, 2, 2)
    a[...] = [1, 2]
    assert (a.name, a.path, a.basename) == ("/", "", "")
    assert sorted(store.list()) == sorted([DOCUMENTS[zarr_format][0], key_of(zarr_format, 0)])
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_group(store, path="below", zarr_format=zarr_format)


def test_who_deletes_a_node_takes_all_below(store, zarr_format):
    """V3-OP-04, D3-STO-02: and no node beside it, whose name begins alike."""
    root = zcore.create_group(store, zarr_format=zarr_format)
    for name in ("foo/a", "foo/g/b", "foobar/a"):
        root.create_array(name, shape=2, dtype="i1", attributes={"x": 1})[...] = 1
    assert "foo" in root and "foob" not in root
    del root["foo"]
    assert "foo" not in root and not list(store.list_prefix("foo/"))
    assert root["foobar/a"][...].tolist() == [1, 1]
    deletion.delete(store, "", root._binding.options)
    assert list(store.list()) == []


def test_a_document_is_the_last_thing_an_overwrite_writes(zarr_format):
    """V3-OP-06: when document and chunks of the old array are gone."""
    class Log(zcore.MemoryStore):
        def __init__(self):
            super().__init__()
            self.changes = []

        def set(self, key, value):
            self.changes.append(f"set {key}")
            super().set(key, value)

        def erase(self, key):
            if self.exists(key):
                self.changes.append(f"erase {key}")
            super().erase(key)

    store = Log()
    document = DOCUMENTS[zarr_format][0]
    raw_array(store, zarr_format, 4, 2, attributes={"x": 1})[...] = 1
    chunks = [key_of(zarr_format, i) for i in range(2)]
    store.changes.clear()
    raw_array(store, zarr_format, 4, 2, overwrite=True)
    first, *others, last = store.changes
    assert (first, last) == (f"erase {document}", f"set {document}")
    assert {f"erase {key}" for key in chunks} <= set(others)
    assert not any(change.startswith("set") for change in others)


def test_the_version_that_counts(store):
    """V3-VER-01: the one that is written last here would be the first without the order of versions."""
    make = {3: lambda: zcore.create_array(store, name="a", shape=3, dtype="i1"),
            2: lambda: zcore.create_array(store, name="a", shape=2, dtype="i1", zarr_format=2),
            "zmeta": lambda: zcore.create_array(store, name="a", shape=1, dtype="i1", zarr_format="zmeta")}
    documents = {}
    for version, create in make.items():
        create()
        name = {3: "zarr.json", 2: ".zarray", "zmeta": "__zmeta__"}[version]
        documents[name] = store.get(f"a/{name}")
        store.erase_prefix("a/")
    documents[".zgroup"] = b'{"zarr_format": 2}'
    documents["meta"] = b'{"zarr_format": 1}'
    for name in ("meta", "__zmeta__", ".zgroup", ".zarray", "zarr.json"):
        store.set(f"a/{name}", documents[name])
        if name == "meta":
            with pytest.raises(zcore.UnsupportedError, match="Zarr v1"):
                zcore.open(store, path="a")
        elif name == "__zmeta__":
            assert zcore.open(store, path="a").shape == (1,)
        else:
            with pytest.warns(UserWarning, match=rf"holds {name} and "):
                found = zcore.open(store, path="a")
            assert getattr(found, "shape", None) == {".zgroup": None, ".zarray": (2,), "zarr.json": (3,)}[name]


def test_of_two_documents_of_v2_the_array_counts(store):
    """V2-KEY-05"""
    zcore.create_array(store, name="a", shape=2, dtype="i1", zarr_format=2)
    store.set("a/.zgroup", b'{"zarr_format": 2}')
    with pytest.warns(UserWarning, match=r"holds .zarray and .zgroup: the node is what .zarray says"):
        assert zcore.open(store, path="a").shape == (2,)


def test_attributes_are_not_needed(store, zarr_format):
    """D3-CON-13, D3-ATTR-01, V3-META-20, V2-ATT-01: they lie in the document of v3, and beside that of v2."""
    a = raw_array(store, zarr_format, 2, 2, attributes={"x": [1]})
    a[...] = 5
    if zarr_format == 3:
        members = members_of(store, "zarr.json")
        assert members.pop("attributes") == {"x": [1]} and not store.exists(".zattrs")
        store.set("zarr.json", json.dumps(members).encode())
    else:
        assert members_of(store, ".zattrs") == {"x": [1]} and "attributes" not in members_of(store, ".zarray")
        store.erase(".zattrs")
    found = zcore.open(store)
    assert found.attrs.asdict() == {} and found[...].tolist() == [5, 5]


# Chunks.

def test_fill_value_stands_for_what_is_not_there(store, zarr_format):
    """V3-FV-10, V3-GRID-04, V3-COD-05, V2-CHK-01, V2-CHK-05, D3-CON-08, D3-GRID-06: absent chunks, and what lies beyond
    the border.
    """
    a = raw_array(store, zarr_format, 5, 3, fill_value=7)
    assert a[...].tolist() == [7] * 5
    a[4] = 1
    assert a[...].tolist() == [7, 7, 7, 7, 1] and a.nchunks_initialized == 1
    assert store.get(key_of(zarr_format, 1)) == struct.pack("<3h", 7, 1, 7)
    store.set(key_of(zarr_format, 1), struct.pack("<3h", 8, 9, 10))
    assert a[...].tolist() == [7, 7, 7, 8, 9], "what others have left beyond the array is not seen"


def test_chunks_that_are_left_out_of_a_shard(store):
    """V3-FV-10, V3-GRID-04, V3-PY-07, V3-SHARD-09, V3-SHARD-12"""
    a = zcore.create_array(store, shape=5, chunks=2, shards=8, dtype="<i2", fill_value=7, compressors=None,
                           checksum=False)
    a[4] = 1
    raw = store.get("c/0")
    empty = (2**64 - 1,) * 2
    assert raw[:4] == struct.pack("<2h", 1, 7)
    assert struct.unpack("<8Q", raw[-68:-4]) == (*empty, *empty, 0, 4, *empty)
    assert a[...].tolist() == [7, 7, 7, 7, 1]


def test_chunks_of_the_fill_value_are_not_stored(store, zarr_format):
    """V3-OP-07, V3-PY-07"""
    a = raw_array(store, zarr_format, 4, 2, fill_value=7)
    a[...] = 7
    assert a.nchunks_initialized == 0
    a[...] = 1
    a[:2] = 7
    assert not store.exists(key_of(zarr_format, 0)) and store.exists(key_of(zarr_format, 1))
    kept = zcore.open(store, "r+", write_empty_chunks=True)
    kept[...] = 7
    assert kept.nchunks_initialized == 2 and kept[...].tolist() == [7] * 4


@pytest.mark.parametrize("nothing", [b"", b"\0", b"\0\0\0", b"\0\0\0\0\0"])
def test_an_object_of_another_size_is_damage(store, zarr_format, nothing):
    """V3-COD-03, V3-COD-04, V2-CHK-05, V2-CHK-06: an empty one is not an absent one."""
    a = raw_array(store, zarr_format, 4, 2, fill_value=7)
    store.set(key_of(zarr_format, 1), nothing)
    assert a[:2].tolist() == [7, 7]
    with pytest.raises(zcore.CodecError) as caught:
        a[...]
    assert (caught.value.key, caught.value.expected, caught.value.found) == (key_of(zarr_format, 1), 4, len(nothing))


def test_objects_that_are_no_chunks_of_the_grid(store, zarr_format):
    """V3-GRID-05, V3-KEY-04: outside of it, or of other names; they are neither read nor counted."""
    a = raw_array(store, zarr_format, (4, 4), (2, 2))
    a[...] = 1
    for key in ((2, 0), (0, 2), (7, 7), ("01", "0"), ("9",), ("8", "0", "0"), ("-1", "0"), ("0", "+1"), ("0", "x")):
        store.set(key_of(zarr_format, *key), b"damaged")
    assert (a[...] == 1).all() and a.nchunks_initialized == 4


def test_a_resize_changes_the_shape_alone(store, zarr_format):
    """V3-OP-05: and what was cut off, or left by others, does not come back."""
    a = raw_array(store, zarr_format, (5, 4), (3, 4), fill_value=7, attributes={"x": 1})
    document = DOCUMENTS[zarr_format][0]
    a[...] = 1
    before = members_of(store, document)
    a.resize(4, 2)
    a.resize(8, 4)
    assert members_of(store, document) == before | {"shape": [8, 4]}
    expected = np.full((8, 4), 7)
    expected[:4, :2] = 1
    assert a[...].tolist() == expected.tolist()
    store.set(key_of(zarr_format, 3, 0), np.full(12, 99, "<i2").tobytes())
    a.resize(12, 4)
    assert (a[8:] == 7).all()


def test_blosc_chunks_are_decoded_by_their_headers(store, zarr_format):
    """V3-BLOSC-02, V2-CHK-07: item size, shuffle, compressor and block size of the document are those of a writer."""
    a = zcore.create_array(store, shape=1000, chunks=1000, dtype="<i4", zarr_format=zarr_format,
                           **({"checksum": False} if zarr_format == 3 else {}),
                           compressors=zcore.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=4))
    values = np.arange(1000, dtype="<i4")
    for cname, shuffle, typesize, blocksize in (("zlib", 2, 8, 0), ("blosclz", 0, 1, 512), ("zstd", 1, 2, 256)):
        chunk = blosc.compress(values.tobytes(), cname=cname, shuffle=shuffle, typesize=typesize, blocksize=blocksize)
        store.set(key_of(zarr_format, 0), chunk)
        assert a[...].tolist() == values.tolist() and a[::-7].tolist() == values[::-7].tolist()


def test_every_byte_but_zero_is_true(store, zarr_format):
    """V3-DT-01, V2-DT-07: what comes back is 1, in structures too, so that sums and comparisons are right."""
    a = raw_array(store, zarr_format, 6, 4, "?", fill_value=True)
    store.set(key_of(zarr_format, 0), b"\0\1\2\xff")
    assert a[...].view("u1").tolist() == [0, 1, 1, 1, 1, 1] and a[...].sum() == 5
    out = np.zeros((6, 2), "?")
    a.read(out=out[:, 1])
    assert out.view("u1").tolist() == [[0, 0], *[[0, 1]] * 5]
    assert a[3].view("u1") == 1 and a[::-2].view("u1").tolist() == [1, 1, 1]
    a[0] = True
    assert store.get(key_of(zarr_format, 0)) == b"\1\1\2\xff", "what is not written stays as it is"
    fields = [("a", "?"), ("b", "<i2"), ("c", [("d", "?")])]
    b = raw_array(zcore.MemoryStore(), zarr_format, 2, 2, fields)
    b.store.set(key_of(zarr_format, 0), b"\2\2\0\2" * 2)
    assert b[...].tobytes() == b"\1\2\0\1" * 2
    shards = zcore.create_array(zcore.MemoryStore(), shape=4, chunks=2, shards=4, dtype="?", compressors=None,
                                checksum=False)
    shards[...] = [True, False, True, True]
    raw = shards.store.get("c/0")
    shards.store.set("c/0", b"\7\0\7\7" + raw[4:])
    assert shards[...].view("u1").tolist() == [1, 0, 1, 1]
    blosc_chunk = zcore.create_array(zcore.MemoryStore(), shape=2, dtype="?", zarr_format="zmeta")
    blosc_chunk.store.set("__zdata__/0.blosc", blosc.compress(b"\3\0", typesize=1))
    assert blosc_chunk[...].view("u1").tolist() == [1, 0]


@pytest.mark.parametrize(("name", "raw", "values"), [
    ("int4", b"\xf8\x08\x18\x77", [-8, -8, -8, 7]), ("uint4", b"\xff\x0f\x10\x1f", [15, 15, 0, 15]),
    ("int2", b"\xfe\x02\x06\xff", [-2, -2, -2, -1]), ("uint2", b"\xff\x03\x04\x07", [3, 3, 0, 3]),
])
def test_upper_bits_of_small_integers_mean_nothing(store, name, raw, values):
    """V3-XDT-08: the sign is that of the bits that count."""
    pytest.importorskip("ml_dtypes", minversion="0.6")
    a = zcore.create_array(store, shape=4, dtype=name, **RAW[3])
    store.set("c/0", raw)
    assert a[...].astype("i4").tolist() == values and [int(a[i]) for i in range(4)] == values
    assert (a[...] == np.array(values).astype(a.dtype)).all()


# What the draft of 2019 calls by other names.

def test_no_codecs_are_the_bytes_of_the_elements(store):
    """D3-COD-03, V3-META-08, V3-BYTES-02: which documents call `bytes`; an empty chain is none."""
    a = raw_array(store, 3, (2, 3), (2, 3))
    a[...] = values = np.arange(6, dtype="<i2").reshape(2, 3)
    assert store.get("c/0/0") == values.tobytes()
    members = members_of(store, "zarr.json")
    assert members["codecs"] == [{"name": "bytes", "configuration": {"endian": "little"}}]
    with pytest.raises(ValueError):
        zcore.create_array(zcore.MemoryStore(), shape=1, dtype="i2", codecs=[])
    store.set("zarr.json", json.dumps(members | {"codecs": []}).encode())
    with pytest.raises(zcore.MetadataError, match="codecs"):
        zcore.open(store)


@pytest.mark.parametrize(("order", "position"), [("C", 6), ("F", 2)])
def test_place_of_an_element_in_a_chunk(store, zarr_format, order, position):
    """D3-MEM-01, D3-MEM-02, D3-MEM-04, V2-CHK-04"""
    a = raw_array(store, zarr_format, (2, 3), (2, 3), order=order)
    a[1, 0] = 0x0102
    raw = store.get(key_of(zarr_format, 0, 0))
    assert raw == bytes(position) + b"\2\1" + bytes(10 - position)


@each(("name", "data_type", "endian"), [
    ("bool", "bool", None), ("i1", "int8", None), ("u1", "uint8", None), ("<i2", "int16", "little"),
    (">i2", "int16", "big"), ("<u8", "uint64", "little"), ("<f2", "float16", "little"), (">f8", "float64", "big"),
])
def test_types_of_2019_are_types_and_byte_orders(name, data_type, endian):
    """D3-DT-01, D3-DT-02: as a caller may name them; documents that do are refused."""
    store = zcore.MemoryStore()
    a = zcore.create_array(store, shape=2, dtype=name)
    members = members_of(store, "zarr.json")
    assert members["data_type"] == data_type
    assert members["codecs"][0].get("configuration", {}).get("endian") == endian
    a[...] = [0, 1]
    found = zcore.open(store)
    assert found.dtype == np.dtype(name) and found[...].tolist() == [0, 1]
    if name != data_type:
        store.set("zarr.json", json.dumps(members | {"data_type": name}).encode())
        with pytest.raises(zcore.UnsupportedError, match=f"data type '{name}'"):
            zcore.open(store)


@pytest.mark.parametrize("changes", [
    {"chunk_memory_layout": "C"}, {"compressor": {"codec": "https://purl.org/zarr/spec/codec/gzip/1.0"}},
    {"extensions": []}, {"fill_value": None}, {"chunk_grid": {"type": "regular", "chunk_shape": [2]}},
])
def test_documents_of_2019_are_refused(store, changes):
    """D3-META-01, D3-META-02, V3-META-24: none of their members is taken for one of today."""
    raw_array(store, 3, 2, 2)
    store.set("zarr.json", json.dumps(members_of(store, "zarr.json") | changes).encode())
    with pytest.raises((zcore.MetadataError, zcore.UnsupportedError), match=next(iter(changes))):
        zcore.open(store)


@pytest.mark.parametrize(("dtype", "value"), [("<i4", 2**31), ("<i4", -2**31 - 1), ("|u1", -1), ("|u1", 256)])
def test_values_that_the_type_does_not_have(store, zarr_format, dtype, value):
    """D3-CON-09: nothing is written."""
    a = raw_array(store, zarr_format, 2, 2, dtype)
    with pytest.raises(OverflowError):
        a[0] = value
    with pytest.raises((OverflowError, ValueError)):
        zcore.create_array(zcore.MemoryStore(), shape=2, dtype=dtype, zarr_format=zarr_format, fill_value=value)
    assert a.nchunks_initialized == 0
    info = np.iinfo(dtype)
    a[...] = [info.min, info.max]
    assert a[...].tolist() == [info.min, info.max]
    assert store.get(key_of(zarr_format, 0)) == np.array([info.min, info.max], dtype).tobytes()


def test_text_that_was_fixed_in_memory_and_is_not_in_the_document(store):
    """V3-XDT-11, V3-XDT-01, V3-XDT-02: as zarr-python 3.0 wrote arrays of `<U5` and `|S5`."""
    for data_type, codec, values, chunk in (
        ("string", "vlen-utf8", ["a", "bé"], b"\2\0\0\0\1\0\0\0a\3\0\0\0b\xc3\xa9"),
        ("bytes", "vlen-bytes", [b"a", b"b\xff"], b"\2\0\0\0\1\0\0\0a\2\0\0\0b\xff"),
    ):
        store.set("zarr.json", json.dumps({
            "zarr_format": 3, "node_type": "array", "shape": [2], "data_type": data_type, "fill_value": "",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "attributes": {},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": codec, "configuration": {}}], "storage_transformers": [],
        }).encode())
        store.erase("c/0")
        assert zcore.open(store)[...].tolist() == [type(values[0])()] * 2
        store.set("c/0", chunk)
        assert zcore.open(store)[...].tolist() == values


def old_nested(store, path="0"):
    """An array of which only who has written it knows that `/` joins the indices of its chunks."""
    data = np.arange(12, dtype="<i2").reshape(3, 4)
    zcore.create_array(store, name=path, data=data, chunks=(2, 2), fill_value=9, zarr_format=2, chunk_key_encoding="/")
    members = json.loads(store.get(f"{path}/.zarray"))
    assert members.pop("dimension_separator") == "/"
    store.set(f"{path}/.zarray", json.dumps({**members, "comment": "kept"}).encode())
    return data


def test_a_separator_that_the_caller_says(store):
    """V2-ARR-08, V2-ARR-09"""
    data = old_nested(store)
    assert (zcore.open(store, path="0")[...] == 9).all()
    before = store.get("0/.zarray")
    for open_it in (zcore.open, zcore.open_array):
        a = open_it(store, "r+", path="0", dimension_separator="/", shape=(3, 4))
        assert a[...].tolist() == data.tolist() and a.nchunks_initialized == 4
    a[0, 3] = 50
    a.attrs["x"] = 1
    a = a.refresh()
    assert store.get("0/.zarray") == before and sorted(store.list_dir("0/")[1]) == ["0/0/", "0/1/"]
    assert a[0, 3] == 50 and "0/0.0" not in store.list()
    if not isinstance(store, zcore.MemoryStore):
        again = pickle.loads(pickle.dumps(a))
        assert again[0, 3] == 50
        again[1, 1] = 60
        assert a[1, 1] == 60
    a.append(np.full((1, 4), 7))
    members = json.loads(store.get("0/.zarray"))
    assert members["dimension_separator"] == "/" and members["comment"] == "kept" and members["shape"] == [4, 4]
    assert zcore.open(store, path="0")[3].tolist() == [7] * 4
    assert a.refresh()[0, 3] == 50
    a.resize(1, 4)
    assert sorted(store.list_prefix("0/0/")) == ["0/0/0", "0/0/1"] and list(store.list_prefix("0/1/")) == []


def test_a_separator_that_the_document_contradicts(store):
    """V2-ARR-08: it is an error, and nothing is probed."""
    for said in ("/", "."):
        zcore.create_array(store, name="a", shape=(3, 4), chunks=2, dtype="i2", zarr_format=2, overwrite=True)
        members = {**json.loads(store.get("a/.zarray")), "dimension_separator": said}
        store.set("a/.zarray", json.dumps(members).encode())
        for mode in ("r", "r+", "a"):
            assert zcore.open(store, mode, path="a", dimension_separator=said).shape == (3, 4)
            other = "." if said == "/" else "/"
            with pytest.raises(zcore.ArrayMismatchError, match=f"'{other}' was asked for, the document says") as caught:
                zcore.open(store, mode, path="a", dimension_separator=other)
            error = caught.value
            assert error.asked == {"dimension_separator": other} and error.found == {"dimension_separator": said}
            assert error.path == "a" and str(error).startswith(store.describe("a"))


def test_a_separator_of_what_has_none(store):
    """V2-ARR-08"""
    for zarr_format in (3, "zmeta"):
        zcore.create_array(store, name="a", shape=3, dtype="i2", zarr_format=zarr_format, overwrite=True)
        with pytest.raises(zcore.ArrayMismatchError, match="not of Zarr v2"):
            zcore.open(store, path="a", dimension_separator="/")
        with pytest.raises(zcore.NodeNotFoundError, match="zarr_format=2 was asked for"):
            zcore.open(store, path="a", dimension_separator="/", zarr_format=2)
        with pytest.raises(ValueError, match="dimension_separator is of Zarr v2"):
            zcore.open(store, path="a", dimension_separator="/", zarr_format=zarr_format)
    group = zcore.create_group(store, path="g", zarr_format=2)
    with pytest.raises(zcore.NodeNotFoundError, match="holds a group, not an array"):
        zcore.open(store, path="g", dimension_separator="/")
    for wrong in ("-", "", b"/", 1, True):
        with pytest.raises(ValueError, match="dimension_separator is .*, expected '/' or '.'"):
            zcore.open(store, path="a", dimension_separator=wrong)
    with pytest.raises(TypeError, match="dimension_separator"):
        group.create_array("x", shape=3, dtype="i2", dimension_separator="/")
    with pytest.raises(TypeError, match="dimension_separator"):
        list(zcore.create_hierarchy(store=zcore.MemoryStore(), nodes={"g": group.metadata}, dimension_separator="/"))


def test_a_separator_of_a_new_array(store):
    """V2-ARR-08: it is in the document from the beginning."""
    new = {"path": "a", "shape": (3, 4), "chunks": 2, "dtype": "i2"}
    for mode in ("a", "w"):
        for keywords in ({}, {"cname": "lz4"}):
            with pytest.raises(ValueError, match="needs zarr_format=2"):
                zcore.open(store, mode, dimension_separator="/", **new, **keywords)
        with pytest.raises(TypeError, match="needs shape= and dtype="):
            zcore.open(store, mode, dimension_separator="/", zarr_format=2, path="a")
    assert list(store.list()) == []
    for mode in ("a", "a", "w"):
        zcore.open(store, mode, dimension_separator="/", zarr_format=2, **new)[...] = 5
        assert json.loads(store.get("a/.zarray"))["dimension_separator"] == "/" and store.get("a/1/1") is not None
        assert (zcore.open(store, path="a")[...] == 5).all()
