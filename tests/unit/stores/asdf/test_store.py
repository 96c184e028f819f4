"""An ASDF file as a store, and as what `zcore.open` shows of it."""
import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("yaml")

import zcore  # noqa: E402
from tests.both_ways import brought
from zcore.asdf.blocks import Block  # noqa: E402
from zcore.asdf.tree.dump import Inline  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping  # noqa: E402
from zcore.errors import (  # noqa: E402
    AsdfFormatError,
    ChecksumError,
    NodeNotFoundError,
    ReadOnlyError,
    ReferenceTargetError,
    StoreError,
    TruncatedError,
    UnsupportedError,
)
from zcore.kernel.plan.cache import ChunkCache  # noqa: E402
from zcore.stores import OBJECTS, FileParts  # noqa: E402
from zcore.stores.asdf import nodes
from zcore.stores.asdf.store import AsdfStore  # noqa: E402

BASE = np.arange(48, dtype=">f8").reshape(6, 8)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.asdf"


def opened(path, tree, **options):
    zcore.asdf.write(path, tree, **options)
    return zcore.open(path)


def raw_file(path, body, *blocks):
    """Write a file whose tree is a text; blocks are raw."""
    text = f"#ASDF 1.0.0\n%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n---\n{body}\n...\n".encode()
    for block in blocks:
        n = len(block)
        text += zcore.asdf.file_layout.render_block_header(48, 0, b"", n, n, n, bytes(16)) + block
    path.write_bytes(text)
    return path


def test_the_group_mirrors_the_tree(path):
    group = opened(path, {"a": BASE, "g": {"list": [1, {"x": np.arange(3)}], "k": 5, "n": None}, "attributes": {"b": 1},
                          "z": 1j, "view": BASE[1:5, ::2]})
    assert sorted(group) == ["a", "g", "view"] and sorted(group["g"]) == ["list"] and list(group["g/list"]) == ["1"]
    assert group["g/list/1/x"][1:].tolist() == [1, 2]
    assert group.attrs["attributes"] == {"b": 1} and group.attrs["z"] == "0.0+1.0i"
    assert group["g"].attrs.asdict() == {"k": 5, "n": None} and group["g/list"].attrs.asdict() == {"0": 1}
    assert group["a"].dtype == ">f8" and group["a"].shape == group["a"].chunks == (6, 8)
    assert np.array_equal(group["view"][...], BASE[1:5, ::2]) and group.attrs["asdf_library"]["name"] == "zcore"
    assert group.read_only
    with pytest.raises(ReadOnlyError, match=r"^a in AsdfStore\('.*'\) lies in a store for reading$"):
        group["a"][0] = 1
    with pytest.raises(ReadOnlyError):
        group.attrs["x"] = 1
    with pytest.raises(NodeNotFoundError):
        zcore.open(path, path="nothing")
    assert zcore.open(path, path="g/list/1/x").shape == (3,)


def test_how_a_file_is_recognised(path, tmp_path):
    opened(path, {"a": BASE})
    other = tmp_path / "without_a_suffix"
    other.write_bytes(path.read_bytes())
    assert zcore.open(other)["a"].shape == zcore.open(str(path))["a"].shape == (6, 8)
    (tmp_path / "wrong.asdf").write_bytes(b"#ASDG 1.0.0\n")
    with pytest.raises(AsdfFormatError):
        zcore.open(tmp_path / "wrong.asdf")
    (tmp_path / "folder.asdf").mkdir()
    with pytest.raises(NodeNotFoundError):
        zcore.open(tmp_path / "folder.asdf")
    zcore.open(tmp_path / "folder.asdf", mode="w", shape=(2,), dtype="i4")
    assert zcore.open(tmp_path / "folder.asdf").shape == (2,)


def test_values_and_keys(path):
    zcore.asdf.write(path, {"a": BASE, "f": np.asfortranarray(BASE), "v": BASE[::2, ::3], "s": np.array(1.5),
                            "i": Inline(np.array([1, 2], "i8")), "e": np.zeros((0, 3)), "g": {"x": BASE[1]}})
    with AsdfStore(path) as store:
        assert store.list_dir("")[:2] == ([".zattrs", ".zgroup"], ["a/", "e/", "f/", "g/", "i/", "s/", "v/"])
        assert store.list_dir("g/x/")[:2] == (["g/x/.zarray", "g/x/.zattrs", "g/x/0"], [])
        assert store.list_dir("nothing/")[:2] == store.list_dir("a/b/")[:2] == ([], [])
        assert json.loads(store.get("a/.zarray")) == {
            "zarr_format": 2, "shape": [6, 8], "chunks": [6, 8], "dtype": ">f8", "compressor": None, "fill_value": None,
            "order": "C", "filters": None}
        assert json.loads(store.get("f/.zarray"))["order"] == "F"
        assert json.loads(store.get("e/.zarray"))["chunks"] == [1, 3]
        values = {"a/0.0": BASE.tobytes(), "f/0.0": BASE.tobytes("F"), "v/0.0": BASE[::2, ::3].tobytes(),
                  "s/0": struct.pack("<d", 1.5), "i/0": struct.pack("<qq", 1, 2), "g/x/0": BASE[1].tobytes()}
        for key, value in values.items():
            assert store.get(key) == value and store.getsize(key) == len(value) and store.exists(key)
            assert store.get(key, (3, 6)) == value[3:9] and store.get(key, (None, 5)) == value[-5:]
            assert store.get_with_identity(key) == (value, store.identity(key))
        for key in ("a", "a/0", "a/0.1", "a/.zgroup", ".zarray", "x", "a/x/0", "g/0", "a/0.0/x", "g/x/0/0"):
            assert store.get(key) is store.getsize(key) is store.identity(key) is None and not store.exists(key)
        assert sorted(store.list()) == sorted(key for key in store.list() if store.exists(key))
        extents = {key: store.extent(key) for key in store.list() if store.extent(key) is not None}
        assert store.extent("nothing") is None and sorted(extents) == ["a/0.0", "f/0.0", "g/x/0", "s/0"]
        for key, (file, offset, length) in extents.items():
            with open(file, "rb") as raw:
                raw.seek(offset)
                assert raw.read(length) == values[key]
        with pytest.raises(ReadOnlyError):
            store.set("a/0.0", b"")
        again = pickle.loads(pickle.dumps(store))
        assert again.get("s/0") == values["s/0"] and repr(again) == repr(store) and store.label == "x.asdf"


@pytest.mark.parametrize("compression", [None, "zlib", "lz4", "bzp2"])
@pytest.mark.parametrize("cls", [AsdfStore, brought(AsdfStore)], ids=["located", "brought"])
def test_selections(path, compression, cls):
    record = np.array([(1, 2.5), (3, 4.5)], [("a", ">i2"), ("b", "<f8")])
    zcore.asdf.write(path, {"a": BASE, "v": BASE[::-1, ::3], "f": BASE.T, "r": record, "i": Inline([[1, 2], [3, 4]]),
                            "t": np.array(["ab", "ü"])}, compression=compression)
    group = zcore.open(cls(path))
    for selection in (np.s_[...], np.s_[2], np.s_[1:4], np.s_[::-2, 1], np.s_[..., ::2], np.s_[3, 1]):
        for name, array in (("a", BASE), ("v", BASE[::-1, ::3]), ("f", BASE.T)):
            assert np.array_equal(group[name][selection], array[selection])
            assert group[name][selection].dtype == array[selection].dtype
    assert np.array_equal(group["a"].oindex[[5, 0], [1, 1, 7]], BASE[np.ix_([5, 0], [1, 1, 7])])
    assert np.array_equal(group["f"].vindex[[5, 0, 5], [1, 1, 5]], BASE.T[[5, 0, 5], [1, 1, 5]])
    assert group["r"][...].tolist() == record.tolist() and group["r"]["b"].tolist() == [2.5, 4.5]
    assert group["i"][1:, 0].tolist() == [3] and group["t"][...].tolist() == ["ab", "ü"]
    out = np.empty((6, 8), ">f8")
    group["a"].read(np.s_[...], out=out)
    assert np.array_equal(out, BASE)


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not say how many bytes were read")
def test_a_window_reads_the_bytes_of_its_rows(path):
    image = np.arange(2000 * 2000, dtype="<f8").reshape(2000, 2000)
    array = opened(path, {"image": image})["image"]

    def n_read(selection):
        def count():
            with open("/proc/self/io") as file:
                return int(file.readline().split()[1])

        assert np.array_equal(array[selection], image[selection])
        idle = count() - count()
        before = count()
        array[selection]
        return count() - before + idle

    assert n_read(np.s_[500:600, 700:800]) == 100 * 800
    assert n_read(np.s_[:, 5]) == 2000 * 8
    assert n_read(np.s_[7:9]) == 2 * 16_000
    # A gap of less than a page is read along.
    assert n_read(np.s_[5, ::2]) == 1999 * 8


def test_masks_stand_beside_their_arrays(path):
    """AS-ND-16"""
    group = opened(path, {"m": np.ma.array([1, 2, 3], mask=[0, 1, 0])})
    assert group["m"][...].tolist() == [1, 2, 3] and group["m.mask"][...].tolist() == [False, True, False]
    members = "{source: 0, datatype: int8, shape: [2], mask: 3, unit: m}"
    group = zcore.open(raw_file(path, f"a: !core/ndarray-1.0.0 {members}", b"\3\4"))
    assert group["a"].attrs.asdict() == {"mask": 3, "unit": "m"} and group["a"][...].tolist() == [3, 4]


def test_names_that_no_node_has(path):
    group = opened(path, {"a/b": BASE, ".zarray": BASE, "": BASE, 2: BASE, "2": BASE, True: BASE, "..": BASE,
                          "x\\y": BASE, "100%": BASE})
    assert sorted(group) == ["%", "%2E.", "%2Ezarray", "100%25", "2", "2%", "a%2Fb", "true",
                             "x%5Cy"]
    assert all([np.array_equal(array[...], BASE) for _, array in group.arrays()])


def test_what_is_shared_is_a_group_once(path):
    shared = {"x": BASE}
    tree = {"a": {"s": shared}, "b": shared, "again": BASE}
    tree["self"] = tree
    bomb = {"x": BASE}
    for _ in range(40):
        bomb = {"l": bomb, "r": bomb}
    group = opened(path, {**tree, "bomb": bomb})
    (where,) = [found for found in ("a/s", "b") if found in group]
    assert group[f"{where}/x"].shape == (6, 8) and group["again"].shape == (6, 8)
    assert {"$ref": f"#/{where}"} in (group.attrs.get("b"), group["a"].attrs.get("s"))
    assert len(list(AsdfStore(path).list())) < 200


def test_attributes_that_are_too_many(path, monkeypatch):
    monkeypatch.setattr(nodes, "MAX_VALUES", 1000)
    shared = [1, 2]
    for _ in range(40):
        shared = [shared, shared]
    loop = []
    loop.append(loop)
    group = opened(path, {"a": BASE, "g": {"x": BASE, "bomb": shared}, "h": {"x": BASE, "loop": loop},
                          "big": IntegerNode.of(2**70), "raw": b"abc"})
    assert group["a"].shape == (6, 8) and group.attrs["big"] == 2**70 and group.attrs["raw"] == "YWJj"
    for name in "gh":
        assert group[f"{name}/x"].shape == (6, 8)
        with pytest.raises(AsdfFormatError, match="attributes of more"):
            group[name].attrs.asdict()


def test_a_damaged_array_leaves_the_others(path):
    rest = "datatype: int8, byteorder: big, shape: [2]}"
    group = zcore.open(raw_file(path, f"good: !core/ndarray-1.0.0 {{source: 0, {rest}\n"
                                f"none: !core/ndarray-1.0.0 {{source: 7, {rest}\n"
                                f"far: !core/ndarray-1.0.0 {{source: 0, offset: 9, {rest}\n"
                                "odd: !core/ndarray-1.0.0 {source: 0, datatype: float128, byteorder: big, shape: [2]}",
                                b"\1\2"))
    assert sorted(group) == ["far", "good", "none", "odd"] and group["good"][...].tolist() == [1, 2]
    for name in ("none", "far"):
        with pytest.raises(AsdfFormatError):
            group[name][...]
    with pytest.raises(UnsupportedError, match="float128"):
        group["odd"]


def test_an_array_alone_is_the_root(path):
    raw_file(path, "", b"\1\2")
    path.write_bytes(path.read_bytes().replace(
        b"---\n\n", b"--- !core/ndarray-1.0.0 {source: 0, datatype: int8, shape: [2]}\n"))
    assert zcore.open(path)[...].tolist() == [1, 2]


def test_a_file_that_is_shortened_while_it_is_open(path):
    array = opened(path, {"a": np.arange(10_000)}, index=False)["a"]
    os.truncate(path, 5000)
    with pytest.raises(TruncatedError, match="ended at byte 5000") as caught:
        array[...]
    assert caught.value.key == "a/0"
    assert array[:10].tolist() == list(range(10))


def test_checksums_of_compressed_blocks(path):
    """AS-CHK-04"""
    zcore.asdf.write(path, {"a": BASE}, compression="zlib")
    raw = bytearray(path.read_bytes())
    at = raw.index(b"\xd3BLK") + 38
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ChecksumError):
        zcore.open(path)["a"][...]
    with AsdfStore(path, verify=False) as store:
        assert np.array_equal(zcore.open(store)["a"][...], BASE)


def test_decoded_blocks_are_kept_where_there_is_a_cache(path, monkeypatch):
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)
    zcore.asdf.write(path, {"a": BASE}, compression="zlib")
    decoded = []
    read = Block.read
    monkeypatch.setattr(Block, "read", lambda self, *args, **options: decoded.append(1) or read(self, *args, **options))
    for cache, n_decoded in ((None, 3), ("1 MB", 1)):
        array = zcore.open(path, cache=cache)["a"]
        if cache is not None:
            array._binding.options._chunks = ChunkCache(1 << 20, 0)
        decoded.clear()
        for i in range(3):
            assert np.array_equal(array[i], BASE[i])
        assert len(decoded) == n_decoded


def test_no_array_is_taken_for_another_one(path, tmp_path, monkeypatch):
    """All values of a file have its identity, and what is kept is found by identities."""
    monkeypatch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -1)
    zcore.asdf.write(tmp_path / "other.asdf", {"a": BASE})
    tree = {f"a{i}": (BASE + i).astype(">f8") for i in range(3)}
    zcore.asdf.write(path, {**tree, "v": BASE[::-1]}, compression="zlib")
    store_class = brought(AsdfStore)
    group = zcore.open(store_class(path), cache="1 MB")
    group._binding.options._chunks = ChunkCache(1 << 20, 0)
    for _ in range(2):
        assert [group[f"a{i}"][0, 0] for i in range(3)] == [0, 1, 2] and group["v"][0, 0] == BASE[-1, 0]
    values = np.arange(8, dtype="<i2")
    chunked(path, [1, 2, 3, 4], *[values[i:i + 2].tobytes() for i in (0, 2, 4, 6)], shape=(8,), chunks=(2,))
    group = zcore.open(store_class(path), cache="1 MB")
    group._binding.options._chunks = ChunkCache(1 << 20, 0)
    for _ in range(2):
        assert group["z"][...].tolist() == list(range(8))
    store = group.store
    assert len({store.identity(f"z/{i}") for i in range(4)} | {store.identity("z/.zarray")}) == 5
    raw_file(path, "a: !core/ndarray-1.0.0 {source: other.asdf, datatype: float64, byteorder: big, shape: [6, 8]}")
    assert AsdfStore(path).identity("a/0.0") is None


def test_arrays_of_other_files(path, tmp_path):
    """AS-ND-05, AS-EXP-01, AS-EXP-03, AS-EXP-04, AS-TREE-09"""
    folder = tmp_path / "x" / "in ner"
    folder.mkdir(parents=True)
    outside = tmp_path / "outside.asdf"
    zcore.asdf.write(outside, {"a": BASE})
    zcore.asdf.write(folder / "b.asdf", {"a": {"b": BASE}, "back": {"$ref": "../main.asdf#/refs/back"}})
    (folder / "empty.asdf").write_bytes(b"#ASDF 1.0.0\n")
    rest = "datatype: float64, byteorder: big, shape: [6, 8]}"
    sources = {"plain": "in%20ner/b.asdf", "uri": (folder / "b.asdf").as_uri(),
               "nested": "./in%20ner/../in%20ner/b.asdf", "own": "'#'", "empty": "in%20ner/empty.asdf",
               "outside": "../outside.asdf",
               "remote": "http://x.org/a.asdf", "missing": "in%20ner/c.asdf", "absolute": "/etc/passwd"}
    body = "\n".join(f"{name}: !core/ndarray-1.0.0 {{source: {uri!s}, {rest}" for name, uri in sources.items())
    body += ("\nrefs: {tree: {$ref: 'in%20ner/b.asdf#/a'}, back: {$ref: 'in%20ner/b.asdf#/back'}, "
             "out: {$ref: '../outside.asdf#/a'}}")
    main = raw_file(tmp_path / "x" / "main.asdf", body, BASE.tobytes())
    group = zcore.open(main)
    for name in ("plain", "uri", "nested", "own"):
        assert np.array_equal(group[name][1:, ::2], BASE[1:, ::2]), name
        assert group[name].store.get(f"{name}/0.0") == BASE.tobytes()
    with pytest.raises(AsdfFormatError, match="no block"):
        group["empty"][...]
    for name in ("outside", "missing", "absolute"):
        with pytest.raises(ReferenceTargetError):
            group[name][...]
    with pytest.raises(UnsupportedError, match="remote"):
        group["remote"][...]
    with zcore.asdf.open(main) as file:
        refs = file.tree["refs"]
        assert np.array_equal(refs["tree"].resolve()["b"].read(), BASE)
        # The file that is named lies deeper, and may not name what lies above it.
        for name in ("back", "out"):
            with pytest.raises(ReferenceTargetError, match="allowed="):
                refs[name].resolve()
    with zcore.asdf.open(main, allowed=[tmp_path]) as file:
        assert np.array_equal(file.tree["refs"]["out"].resolve().read(), BASE)
        with pytest.raises(AsdfFormatError, match="leads to itself"):
            file.tree["refs"]["back"].resolve()
        assert np.array_equal(file.tree["outside"].read(), BASE)
    with zcore.asdf.open(main, allowed=[]) as file, pytest.raises(ReferenceTargetError):
        file.tree["plain"].read()
    with AsdfStore(main, allowed=[tmp_path]) as store:
        assert np.array_equal(zcore.open(store)["outside"][...], BASE)


def test_a_reference_set_of_a_file(path, tmp_path):
    group = opened(path, {"a": BASE, "f": np.asfortranarray(BASE), "v": BASE[::2, ::3], "g": {"s": np.array(1.5)}})
    refs = zcore.references(path)
    assert refs.to_v0()["a/0.0"] == ["x.asdf", *group.store.extent("a/0.0")[1:]]
    refs.save(tmp_path / "refs.json")
    read = zcore.open(tmp_path / "refs.json")
    assert sorted(read) == ["a", "f", "g", "v"] and read["g/s"][()] == 1.5
    for name in "afv":
        assert np.array_equal(read[name][1:, ::2], group[name][1:, ::2])


# arrays in chunks

def chunked(path, numbers, *blocks, shape=(3, 4), chunks=(2, 2), tag="zarr-1.0.0", dtype="<i2", **members):
    document = {"zarr_format": 2, "shape": list(shape), "chunks": list(chunks), "dtype": dtype, "compressor": None,
                "fill_value": 7, "order": "C", "filters": None, **members}
    return raw_file(path, f"z: !<asdf://asdf-format.org/zarr/tags/{tag}>\n  .zarray: {json.dumps(document)}\n"
                    f"  chunk_block_map: 0\n  unit: m", np.array(numbers, "<i4").tobytes(), *blocks)


@pytest.mark.parametrize("cls", [AsdfStore, brought(AsdfStore)], ids=["located", "brought"])
def test_an_array_in_chunks(path, cls):
    """AS-ND-23"""
    values = np.arange(16, dtype="<i2").reshape(4, 4)
    tiles = [values[i:i + 2, j:j + 2].tobytes() for i in (0, 2) for j in (0, 2)]
    for separator in (".", "/"):
        group = zcore.open(cls(chunked(path, [2, -1, 1, 3], tiles[2], tiles[0], tiles[3],
                                       dimension_separator=separator)))
        array = group["z"]
        expected = values[:3].copy()
        expected[:2, 2:] = 7
        assert array.shape == (3, 4) and array.chunks == (2, 2) and np.array_equal(array[...], expected)
        assert array[2, 1:3].tolist() == [9, 10] and array.attrs.asdict() == {"unit": "m"}
        assert array.nchunks_initialized == 3
        store = array.store
        assert store.get(f"z/0{separator}1") is None and store.get(f"z/0{separator}0") == tiles[0]
        names = [f"z/0{separator}0", f"z/1{separator}0", f"z/1{separator}1"]
        assert [key for key in sorted(store.list()) if store.extent(key) is not None] == names
        assert store.getsize(f"z/1{separator}1") == 8 and store.get(f"z/1{separator}1", (2, 2)) == tiles[3][2:4]
        assert sorted(key for key in store.list() if key.startswith("z/")) == sorted(
            ["z/.zarray", "z/.zattrs", *names])


def test_an_array_of_asdf_zarr():
    """AS-ND-23"""
    group = zcore.open(Path(__file__).parents[3] / "fixtures" / "asdf_zarr_chunks.asdf")
    expected = np.full((6, 7), -1)
    expected[:4] = np.arange(28).reshape(4, 7)
    assert np.array_equal(group["z"][...], expected) and group["z"].nchunks_initialized == 6
    assert group["z"][3:5, 2:].tolist() == expected[3:5, 2:].tolist() and group["raw"][...].tolist() == [0, 1, 2]


def test_chunks_of_codecs(path):
    """AS-ND-23"""
    values = np.arange(4, dtype="<i2")
    encoded = zcore.blosc.compress(values.tobytes(), typesize=2)
    group = zcore.open(chunked(path, [1], encoded, shape=(4,), chunks=(4,), compressor={
        "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}))
    assert group["z"][1:].tolist() == [1, 2, 3]


@pytest.mark.parametrize("cls", [AsdfStore, brought(AsdfStore)], ids=["located", "brought"])
def test_chunks_of_which_some_are_compressed_by_asdf(path, cls):
    """AS-ND-23: they are decoded in Python, and none is taken for absent."""
    values = np.arange(8, dtype="<i2")
    chunked(path, [1, 2, -1, 3], *[values[i:i + 2].tobytes() for i in (0, 2)], shape=(8,), chunks=(2,))
    packed = zlib.compress(values[6:].tobytes())
    with open(path, "ab") as file:
        file.write(zcore.asdf.file_layout.render_block_header(48, 0, b"zlib", len(packed), len(packed), 4, bytes(16)))
        file.write(packed)
    array = zcore.open(cls(path))["z"]
    assert array[...].tolist() == [0, 1, 2, 3, 7, 7, 6, 7] and array[6] == 6
    store = AsdfStore(path)
    located = store.locate("z/")
    assert type(located) is FileParts and store.locate("") == OBJECTS
    with pytest.raises(StoreError, match="in Python"):
        located.open("other")
    assert zcore.verify(path).ok


@pytest.mark.parametrize(("numbers", "changes"), [
    ([1, 2, 3], {}), ([9, -1, -1, -1], {}), ([-2, -1, -1, -1], {}), ([1], {"shape": "x"}), ([1], {"chunks": [0]}),
    ([1], {"shape": [2], "chunks": [2, 2]}), ([1], {"shape": [2**62], "chunks": [1]}),
])
def test_chunk_maps_that_break_a_rule(path, numbers, changes):
    """AS-ND-23"""
    with pytest.raises(AsdfFormatError):
        zcore.open(chunked(path, numbers, b"12345678", **changes)).store.list_dir("z/")


def test_what_json_does_not_have(path):
    """AS-ND-23"""
    body = ('z: !<asdf://asdf-format.org/zarr/tags/zarr-1.0.0> {chunk_block_map: 0, .zarray: &d {shape: [1], '
            'chunks: [1], x: 2020-01-02, y: !core/ndarray-1.0.0 [1], z: *d}}\n'
            'a: !core/ndarray-1.0.0 {data: [1], extra: !core/ndarray-1.0.0 [1], date: 2020-01-02, me: &m [*m]}\n'
            'b: !core/ndarray-1.0.0 {data: [1], extra: !core/ndarray-1.0.0 [1], date: 2020-01-02}')
    group = zcore.open(raw_file(path, body, bytes(4)))
    assert group["b"].attrs.asdict() == {"extra": "an array", "date": "2020-01-02"}
    with pytest.raises(AsdfFormatError, match="attributes of more"):
        group["a"].attrs.asdict()
    with pytest.raises(AsdfFormatError):
        group["z"]


def test_integers_of_more_digits_than_python_writes(path):
    """They are shown as hexadecimal text, as JSON has decimal digits."""
    attributes = opened(path, {"x": np.zeros(1), "n": IntegerNode.of(2**20000), "m": IntegerNode.of(-2**100)}).attrs
    assert attributes["n"] == hex(2**20000) and attributes["m"] == -2**100
    with pytest.raises(AsdfFormatError, match="digits"):
        zcore.open(raw_file(path, f"n: 0x{'f' * 4000}"))
    assert zcore.open(raw_file(path, f"n: 0x{'f' * 3000}")).attrs["n"] == int("f" * 3000, 16)


def test_threads_share_the_files_that_are_named(path, tmp_path):
    """AS-ND-05"""
    for i in range(40):
        zcore.asdf.write(tmp_path / f"n{i}.asdf", {"a": (BASE + i).astype(">f8")})
    rest = "datatype: float64, byteorder: big, shape: [6, 8]}"
    group = zcore.open(raw_file(path, "\n".join(
        f"a{i}: !core/ndarray-1.0.0 {{source: n{i}.asdf, {rest}" for i in range(40))))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: group[f"a{i % 40}"][0, 0], range(160)))
    assert found == [i % 40 for i in range(160)]


def test_trees_are_imported_by_those_who_have_them(path):
    code = ("import sys, zcore; zcore.MemoryStore(); "
            "assert not {'yaml', 'zcore.asdf', 'zcore.stores.asdf.store'} & set(sys.modules); "
            "import zcore.asdf; assert 'yaml' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_only_looks_like_an_array_in_chunks(path):
    """AS-ND-21"""
    group = opened(path, {"z": TaggedMapping("asdf://asdf-format.org/zarr/tags/zarr-1.0.0", {".zarray": {}}),
                          "y": {".zarray": {}, "chunk_block_map": 0}, "a": BASE})
    assert list(group) == ["a"] and group.attrs["y"] == {".zarray": {}, "chunk_block_map": 0}
