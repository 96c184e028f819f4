"""`zcore.copy`: every family to every other and back, what is passed on, what is lost, what stands in the way."""
import errno
import json
import math
import os
import time
import warnings

import numpy as np
import pytest

import zcore
from tests.unit.stores.servers import http_server
from zcore.engine.array_binding import ArrayBinding
from zcore.errors import UnsupportedError
from zcore.stores.directory import staged
from zcore.tools.copy import copy as copy_module
from zcore.tools.copy import destinations, transfer
from zcore.tools.copy.destinations import Building

RNG = np.random.default_rng(5)
VALUES = RNG.integers(-1000, 1000, (23, 19)).astype("<i4")
VALUES[10:20, 10:20] = 0      # a chunk that is absent
ATTRIBUTES = {"unit": "m", "n": 3, "scale": 0.5, "on": True, "names": ["a", "b"], "levels": [1, 2, 3]}
NAMES = ("y", "x")

# What a place is called, and how an array comes there.
FAMILIES = {
    "v3": ("a", {"zarr_format": 3}), "sharded": ("s", {"zarr_format": 3, "shards": (20, 20)}),
    "v2": ("b", {"zarr_format": 2}), "zmeta": ("z", {"zarr_format": "zmeta"}), "zip": ("a.zip", {}),
    "npy": ("a.npy", {}), "npz": ("a.npz", {}), "hdf5": ("a.h5", {}), "asdf": ("a.asdf", {}), "memory": (None, {}),
}
BARE = ("npy", "npz", "asdf")     # which hold elements and nothing else
INSIDE = {"npz": "arr_0", "hdf5": "data", "asdf": "data"}     # where in a file the array is


def copied(source, destination, path="", lost=(), **keywords):
    """Copy, and check that exactly these losses are told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        node = zcore.copy(source, destination, path=path, **keywords)
    texts = [str(warning.message) for warning in told]
    assert len(texts) == len(lost) and all(any(what in text for text in texts) for what in lost), texts
    return node


def place_of(family, folder):
    name, settings = FAMILIES[family]
    return zcore.MemoryStore() if name is None else folder / name, settings


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return zcore.create_array(tmp_path_factory.mktemp("copies") / "a", data=VALUES, chunks=(10, 10),
                              attributes=ATTRIBUTES, dimension_names=NAMES, fill_value=0)


@pytest.mark.thinned(2, "first", "there")
@pytest.mark.parametrize("there", FAMILIES)
@pytest.mark.parametrize("first", FAMILIES)
def test_every_family_to_every_other_and_back(first, there, original, tmp_path):
    """V2-ATT-02: names of dimensions among them."""
    bare = ("attributes", "names of dimensions")
    (tmp_path / "1").mkdir()
    (tmp_path / "2").mkdir()
    (tmp_path / "3").mkdir()
    one, settings = place_of(first, tmp_path / "1")
    copied(original, one, lost=bare if first in BARE else (), **settings)
    two, settings = place_of(there, tmp_path / "2")
    copied(one, two, INSIDE.get(first, ""), lost=bare if there in BARE and first not in BARE else (), **settings)
    back = copied(two, tmp_path / "3" / "a", INSIDE.get(there, ""), zarr_format=3)
    assert back.dtype == VALUES.dtype and np.array_equal(back[...], VALUES)
    if first not in BARE and there not in BARE:
        assert dict(back.attrs) == ATTRIBUTES and back.dimension_names == NAMES
        assert back.chunks == (10, 10)
    assert sorted(os.listdir(tmp_path / "1")) == ([] if first == "memory" else [FAMILIES[first][0]])
    assert sorted(os.listdir(tmp_path / "2")) == ([] if there == "memory" else [FAMILIES[there][0]])
    assert os.listdir(tmp_path / "3") == ["a"]


TYPES = ["?", "u1", ">i2", "<u8", "<f2", ">f8", "<c16", "<M8[s]", "<m8[D]", "S5", "<U3", "V4",
         [("a", "<i2"), ("b", "<f4")]]


@pytest.mark.thinned(3, "dtype", "there")
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("there", ["v3", "sharded", "v2", "zmeta", "zip", "npy", "npz", "hdf5", "asdf"])
def test_every_type(dtype, there, tmp_path):
    dtype = np.dtype(dtype)
    values = np.frombuffer(RNG.integers(1, 2, 30 * dtype.itemsize).astype("u1").tobytes(), dtype).reshape(5, 6).copy()
    if dtype.kind == "U":
        values[...] = "xyz"
    source = zcore.create_array(tmp_path / "source", data=values, chunks=(2, 3), fill_value=...)
    place, settings = place_of(there, tmp_path)
    if there == "asdf" and (dtype.kind in "mM" or dtype == "V4"):
        with pytest.raises(zcore.UnsupportedError):
            zcore.copy(source, place)
        assert os.listdir(tmp_path) == ["source"]
        return
    if there == "sharded":
        settings = {"shards": (4, 6)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zcore.copy(source, place, **settings)
        back = zcore.copy(place, tmp_path / "back", path=INSIDE.get(there, ""), zarr_format=3)
    if there == "hdf5" and dtype.kind == "U":   # HDF5 has texts of any length
        assert back[...].tolist() == values.tolist()
    else:
        assert back.dtype == source.dtype and back[...].tobytes() == source[...].tobytes()


# what is passed on

@pytest.mark.parametrize("wanted", [
    {}, {"chunks": (4, 1)}, {"compressors": "zstd"}, {"zarr_format": 3, "chunks": (2, 2), "shards": (4, 4)},
    {"zarr_format": 3, "checksum": True}, {"selection": np.s_[:, ::-1]},
])
@pytest.mark.parametrize(("there", "here"), [(2, 2), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("filters", [None, [zcore.codecs.TransposeCodec(order=(1, 0))]])
def test_bytes_of_any_length(there, here, filters, wanted, tmp_path):
    a = zcore.create_array(tmp_path / "a", shape=(8, 2), chunks=(4, 2), dtype=bytes, fill_value=b"f\xff",
                           zarr_format=there, **({"filters": filters} if there == 3 else {"order": "F"}))
    a[0] = b"q"
    b = copied(a, tmp_path / "b", **{"zarr_format": here, **wanted})
    expected = a[...][wanted.get("selection", ...)]
    assert b[...].tolist() == expected.tolist() and b.fill_value == b"f\xff"


@pytest.fixture
def no_decode(monkeypatch):
    def read(*args, **keywords):
        raise AssertionError("something was read")

    def forbid():
        monkeypatch.setattr(ArrayBinding, "read", read)
        return monkeypatch.undo

    return forbid


@pytest.mark.parametrize("first, there", [
    ("zmeta", 2), ("zmeta", 3), (2, 3), (3, 2), (2, "zmeta"), (3, "zmeta"), (3, 3), (2, 2),
    ("zmeta", "zmeta")], ids=str)
def test_objects_are_passed_on_as_they_are(first, there, no_decode, tmp_path):
    """ZM-CNV-01, ZM-CNV-02."""
    checksum = {"checksum": False} if first == 3 and there == "zmeta" else {}
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10), zarr_format=first, **checksum)
    undo = no_decode()
    new = zcore.copy(source, tmp_path / "b", zarr_format=there)
    undo()
    assert np.array_equal(new[...], VALUES) and zcore.verify(tmp_path / "b").ok
    objects = {coords: source.store.get(key) for key, coords in source._binding.stored_chunks()}
    assert objects == {coords: new.store.get(key) for key, coords in new._binding.stored_chunks()}
    assert len(objects) == 5


@pytest.mark.parametrize("settings", [
    {"shards": (20, 20)}, {"order": "F"}, {"dtype": str, "data": np.array(["ab", "c"] * 20)},
    {"chunks": [[10, 13], 10]}])
def test_these_are_passed_on_as_well(settings, no_decode, tmp_path):
    source = zcore.create_array(tmp_path / "a", **{"data": VALUES, "chunks": 10, **settings})
    undo = no_decode()
    new = zcore.copy(source, tmp_path / "b")
    undo()
    assert np.array_equal(new[...], source[...])
    assert (tmp_path / "a" / "zarr.json").read_bytes() == (tmp_path / "b" / "zarr.json").read_bytes()


def test_large_objects_go_from_file_to_file(tmp_path):
    values = RNG.integers(0, 9, (600, 600))
    source = zcore.create_array(tmp_path / "a", data=values, chunks=(500, 500))
    new = zcore.copy(source, tmp_path / "b")
    assert np.array_equal(new[...], values) and zcore.verify(tmp_path).problems == []


def test_absent_objects_are_stored_where_the_fill_value_becomes_undefined():
    """`__zmeta__` has no fill value of different fields; what is absent in the source is zero there."""
    source, copy = zcore.MemoryStore(), zcore.MemoryStore()
    a = zcore.create_array(source, shape=4, chunks=2, dtype=[("x", "<i4"), ("y", "S2")], zarr_format=2,
                           fill_value=(0, b""), compressors=zcore.codecs.BloscCodec(cname="lz4", shuffle="shuffle"))
    a[3] = 1, b"z"
    b = copied(source, copy, zarr_format="zmeta")
    assert (a.metadata.codecs, a.nchunks_initialized) == (b.metadata.codecs, 1)
    assert (b.fill_value, b.nchunks_initialized) == (None, 2) and (a[...] == b[...]).all()


def test_objects_outside_the_grid_stay_where_they_are(tmp_path):
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10))
    (tmp_path / "a" / "c" / "9").mkdir()
    (tmp_path / "a" / "c" / "9" / "0").write_bytes(b"left")
    zcore.copy(source, tmp_path / "b")
    assert zcore.verify(tmp_path / "b").ok and not zcore.verify(tmp_path / "a").ok


# what is asked for

def test_lengths_of_chunks_are_for_arrays_with_as_many_dimensions(tmp_path):
    group = zcore.group()
    for name, data in {"x": np.arange(8.0), "t": np.arange(48.0).reshape(6, 8), "n": np.int8(1)}.items():
        group.create_array(name, data=data, chunks=3 if data.ndim else (), shards=6 if name == "x" else None)
    for end in ("zarr", "h5"):
        zcore.copy(group, tmp_path / f"a.{end}")
        made = zcore.copy(tmp_path / f"a.{end}", tmp_path / f"b.{end}.zarr", chunks=(1, 2), shards=[2, 4])
        assert (made["t"].chunks, made["t"].shards) == ((1, 2), (2, 4)) and made["x"][:].tolist() == list(range(8))
        assert (made["x"].chunks, made["x"].shards) == ((3,), (6,) if end == "zarr" else None)
        zcore.copy(made, tmp_path / f"b.{end}.h5", chunks=(3, 8))
        assert zcore.copy(tmp_path / f"b.{end}.h5", zcore.MemoryStore())["t"].chunks == (3, 8)


@pytest.mark.thinned(2, "sharded", "wanted", "memory")
@pytest.mark.parametrize("memory", [900, "1 GB"])
@pytest.mark.parametrize("wanted", [
    {"chunks": (23, 1)}, {"chunks": (1, 19)}, {"chunks": (7, 9)}, {"shards": (20, 40), "chunks": (5, 5)},
    {"chunks": [[10, 13], [12, 7]]}, {"chunks": (23, 1), "zarr_format": 2, "compressors": {"id": "zlib", "level": 1}},
    {"dtype": "f8"}, {"dtype": ">i2", "chunks": (23, 2)}, {"order": "F"}, {"compressors": ()},
    {"compressors": zcore.codecs.ZstdCodec(level=1), "chunks": (40, 3)},
    {"codecs": [zcore.codecs.BytesCodec()]}], ids=str)
@pytest.mark.parametrize("sharded", [False, True])
def test_other_chunks_codecs_and_types(wanted, memory, sharded, tmp_path):
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(1, 19), shards=(9, 19) if sharded else None,
                                fill_value=7)
    wanted = {"zarr_format": 3, **wanted}
    new = zcore.copy(source, zcore.MemoryStore(), memory=memory, **wanted)
    assert np.array_equal(new[...], VALUES) and zcore.verify(new.store).ok
    if "dtype" in wanted:
        assert new.dtype == wanted["dtype"] and new.fill_value == 7
    if isinstance(wanted.get("chunks"), tuple):
        assert new.chunks == wanted["chunks"]
    if wanted["zarr_format"] == 3 and not isinstance(wanted.get("chunks"), list):
        keeps_shards = sharded and wanted.get("chunks", (1, 19)) == (1, 19) and "codecs" not in wanted
        assert new.shards == wanted.get("shards", (9, 19) if keeps_shards else None)


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_compressors_of_each_format(zarr_format, original):
    for compressors in ("auto", zcore.codecs.BloscCodec(cname="zstd", clevel=1)):
        new = zcore.copy(original, zcore.MemoryStore(), zarr_format=zarr_format, compressors=compressors)
        assert np.array_equal(new[...], VALUES)
        assert new.compressors[0].spec().configuration["cname"] == ("lz4" if compressors == "auto" else "zstd")


@pytest.mark.parametrize(("chunks", "kept"), [((5, 1), True), ((10, 5), False), (None, True)])
def test_unequal_shards_are_kept_if_the_chunks_divide_each(tmp_path, chunks, kept):
    values = np.arange(3000).reshape(75, 40)
    source = zcore.create_array(tmp_path / "a", data=values, chunks=(5, 5), shards=[[5, 10, 60], 40])
    new = zcore.copy(source, tmp_path / "b", chunks=chunks)
    assert new.chunks == (chunks or (5, 5)) and np.array_equal(new[...], values)
    assert new.write_chunk_sizes == (source if kept else new).write_chunk_sizes
    assert (new.write_chunk_sizes == new.read_chunk_sizes) == (not kept)


def test_shards_are_cut_up_on_request_and_in_formats_without(tmp_path):
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(5, 5), shards=(20, 20))
    for wanted in ({"shards": False}, {"zarr_format": 2}, {"zarr_format": "zmeta"}):
        new = zcore.copy(source, tmp_path / "b", overwrite=True, **wanted)
        assert new.shards is None and new.chunks == (5, 5) and np.array_equal(new[...], VALUES)


@pytest.mark.parametrize("selection", [
    np.s_[5:30, ::2], np.s_[::-3, ::-1], np.s_[7], np.s_[..., 3], np.s_[4, 5], np.s_[10:10], np.s_[-1:, -8:-2:5]],
    ids=str)
@pytest.mark.parametrize("family", ["v3", "sharded", "zmeta", "npy", "npz"])
def test_selections(selection, family, original, tmp_path):
    place, settings = place_of(family, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zcore.copy(original, place, **settings)
    new = zcore.copy(place, tmp_path / "new", path=INSIDE.get(family, ""), selection=selection, zarr_format=3)
    assert np.array_equal(new[...], VALUES[selection]) and new.shape == np.shape(VALUES[selection])


def test_what_is_no_selection_of_a_copy(original, tmp_path):
    for selection in ([1, 2], np.s_[None, :], np.ones((23, 19), bool), np.s_[1, 2, 3]):
        with pytest.raises(zcore.SelectionError):
            zcore.copy(original, tmp_path / "b", selection=selection)
    with pytest.raises(zcore.SelectionError):
        zcore.copy(zcore.group(), tmp_path / "b", selection=1)
    assert os.listdir(tmp_path) == []


def test_dimensions_and_elements_that_are_none(tmp_path):
    for i, (shape, family) in enumerate((shape, family) for shape in ((), (0, 3), (1,)) for family in FAMILIES):
        if shape == () and family in ("zmeta", "sharded"):
            continue
        source = zcore.create_array(zcore.MemoryStore(), data=np.full(shape, 5), chunks=(1,) * len(shape))
        (tmp_path / str(i)).mkdir()
        place, settings = place_of(family, tmp_path / str(i))
        settings = {name: value for name, value in settings.items() if name != "shards"}
        zcore.copy(source, place, **settings)
        back = zcore.copy(place, zcore.MemoryStore(), path=INSIDE.get(family, ""))
        assert back.shape == shape and np.array_equal(back[...], source[...]), family


# hierarchies

@pytest.fixture(params=[3, 2])
def hierarchy(request, tmp_path):
    group = zcore.create_group(tmp_path / "h", attributes={"title": "t"}, zarr_format=request.param)
    group.create_array("a", data=VALUES, chunks=(10, 10), attributes={"unit": "m"})
    group.create_group("deep/empty", attributes={"x": 1})
    group.create_array("deep/b", data=VALUES.astype("f4"), chunks=(23, 5))
    zcore.consolidate_metadata(tmp_path / "h")
    return zcore.open_group(tmp_path / "h")


def check_hierarchy(group, consolidated=True):
    assert group.attrs["title"] == "t" and group["a"].attrs["unit"] == "m" and group["deep/empty"].attrs["x"] == 1
    assert np.array_equal(group["a"][...], VALUES) and np.array_equal(group["deep/b"][...], VALUES.astype("f4"))
    assert sorted(path for path, _ in group.members(None)) == ["a", "deep", "deep/b", "deep/empty"]
    assert zcore.verify(group.store).ok
    if consolidated:
        assert sorted(zcore.open_consolidated(group.store)._copy) == ["a", "deep", "deep/b", "deep/empty"]


@pytest.mark.parametrize("zarr_format", [3, 2, None])
def test_hierarchies(hierarchy, zarr_format, tmp_path):
    check_hierarchy(zcore.copy(hierarchy, tmp_path / "n", zarr_format=zarr_format))
    check_hierarchy(zcore.copy(hierarchy, tmp_path / "n.zip", zarr_format=zarr_format))
    check_hierarchy(zcore.copy(tmp_path / "n.zip", zcore.MemoryStore(), zarr_format=zarr_format))
    references = {key: [str(tmp_path / "n" / key)] for key in zcore.DirectoryStore(tmp_path / "n").list()}
    store = zcore.ReferenceStore(references, allowed=[str(tmp_path)])
    check_hierarchy(zcore.copy(store, tmp_path / "m", zarr_format=zarr_format))
    writable = zcore.ReferenceStore({}, read_only=False)
    check_hierarchy(zcore.copy(store, writable, zarr_format=zarr_format))


def test_remote_stores(hierarchy, tmp_path):
    obstore = pytest.importorskip("obstore")
    store = zcore.RemoteStore(obstore.store.MemoryStore())
    check_hierarchy(zcore.copy(hierarchy, store))
    check_hierarchy(zcore.copy(store, tmp_path / "n"))
    new = zcore.copy(store, store, path="a", destination_path="x/a", chunks=(23, 1), zarr_format=3)
    assert np.array_equal(new[...], VALUES) and zcore.verify(store).ok


def test_hierarchies_in_files(hierarchy, tmp_path):
    zcore.copy(hierarchy, tmp_path / "n.h5")
    check_hierarchy(zcore.copy(tmp_path / "n.h5", tmp_path / "back"), consolidated=False)
    copied(hierarchy, tmp_path / "n.npz", lost=("attributes (title)", "attributes (unit)", "attributes (x)"))
    assert sorted(np.load(tmp_path / "n.npz")) == ["a", "deep/b"]
    back = zcore.copy(tmp_path / "n.npz", tmp_path / "back2")
    assert sorted(path for path, _ in back.members(None)) == ["a", "deep", "deep/b"]
    copied(hierarchy, tmp_path / "n.asdf", lost=("attributes (unit)", "groups without arrays: deep/empty"))
    back = zcore.copy(tmp_path / "n.asdf", tmp_path / "back3", zarr_format=3)
    assert sorted(path for path, _ in back.members(None)) == ["a", "deep", "deep/b"]
    assert back.attrs["title"] == "t" and np.array_equal(back["a"][...], VALUES)
    dates = zcore.create_array(tmp_path / "dates", data=VALUES.astype("M8[s]"))
    with pytest.raises(zcore.UnsupportedError):
        zcore.copy(dates, tmp_path / "dates.asdf")
    with pytest.raises(zcore.UnsupportedError):
        zcore.copy(hierarchy, tmp_path / "n.npy")
    assert not (tmp_path / "n.npy").exists() and not [name for name in os.listdir(tmp_path) if name[0] == "."]


def test_groups_are_lost_where_there_are_none(hierarchy, tmp_path):
    node = copied(hierarchy, tmp_path / "z", zarr_format="zmeta",
                  lost=("attributes (title)", "attributes (none): deep", "attributes (x): deep/empty"))
    assert node is None and sorted(os.listdir(tmp_path / "z")) == ["a", "deep"]
    assert np.array_equal(zcore.open(tmp_path / "z" / "a")[...], VALUES)
    assert dict(zcore.open(tmp_path / "z" / "a").attrs) == {"unit": "m"}


@pytest.mark.parametrize("name", ["b", "b.zip", None])
def test_groups_alone_where_there_are_none(name, tmp_path):
    with pytest.raises(UnsupportedError, match="__zmeta__ has no groups, and there is no array to copy"):
        zcore.copy(zcore.group(), zcore.MemoryStore() if name is None else tmp_path / name, zarr_format="zmeta")
    assert os.listdir(tmp_path) == []


def test_parts_and_places(hierarchy, tmp_path):
    new = zcore.copy(hierarchy, tmp_path / "n", path="deep", destination_path="x/y")
    assert sorted(new) == ["b", "empty"] and sorted(zcore.open(tmp_path / "n")) == ["x"]
    assert zcore.verify(tmp_path / "n").ok
    zcore.copy(hierarchy["a"], tmp_path / "n", destination_path="x/a")
    assert sorted(zcore.open(tmp_path / "n")["x"]) == ["a", "y"]
    memory = zcore.MemoryStore()
    zcore.copy(hierarchy, memory, path="deep", destination_path="x/y")
    zcore.copy(hierarchy["a"], memory, destination_path="x/a", zarr_format=3)
    assert zcore.verify(memory).ok
    with pytest.raises(zcore.NodeExistsError):
        zcore.copy(hierarchy["a"], tmp_path / "n", destination_path="x/a/below")


# losses

def test_what_is_lost_is_told(tmp_path):
    source = zcore.create_array(tmp_path / "a", data=VALUES, dimension_names=("y", None))
    assert copied(source, tmp_path / "b", lost=("names of dimensions",), zarr_format=2).attrs == {}
    old = zcore.create_array(tmp_path / "c", data=VALUES, zarr_format=2, attributes={"x": float("nan"), "y": 1})
    assert dict(copied(old, tmp_path / "d", lost=("'x'",), zarr_format=3).attrs) == {"y": 1}
    odd = zcore.create_array(tmp_path / "e", data=VALUES, attributes={"map": {"a": 1}, "one": [1], "y": 1})
    copied(odd, tmp_path / "e.h5", lost=("'map'", "'one' is a list"))
    assert dict(copied(tmp_path / "e.h5", tmp_path / "f", "data").attrs) == {"one": 1, "y": 1}


def test_attributes_that_are_no_json_stay_in_copies_to_the_same_format(tmp_path):
    """zarr-python writes bare NaN and Infinity."""
    attributes = {"missing_value": math.nan, "range": [0, math.inf], "units": "m"}
    zcore.create_group(tmp_path / "a").create_array("x", data=VALUES)
    for document in (tmp_path / "a/zarr.json", tmp_path / "a/x/zarr.json"):
        document.write_text(json.dumps(json.loads(document.read_text()) | {"attributes": attributes}))
    for _ in range(2):
        with pytest.warns(UserWarning, match="a keeps NaN or infinity in the attribute '.*: the root, x") as told:
            zcore.copy(tmp_path / "a", tmp_path / "a", chunks=(1, 1), overwrite=True)
        assert len(told) == 2
        for node in ("a", "a/x"):
            assert repr(zcore.open(tmp_path / node).attrs.asdict()) == repr(attributes)


@pytest.mark.parametrize("member, lost", [({}, ()), ({"dimension_separator": "."}, ()),
                                          ({"mine": 1}, ("does not define (mine): the root",))])
def test_members_that_zarr_v2_spells_and_does_not_define(tmp_path, member, lost):
    """zarr-python writes a "dimension_separator" into every document: no copy loses anything with it."""
    zcore.create_array(tmp_path / "a", data=VALUES, zarr_format=2)
    document = tmp_path / "a/.zarray"
    document.write_text(json.dumps(json.loads(document.read_text()) | member))
    assert copied(tmp_path / "a", tmp_path / "b", lost=lost, zarr_format=3, shards="1 MB").shards == VALUES.shape


def test_files_of_hdf5_by_others(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["g/a"] = VALUES
        file["g/text"] = np.array(["a", "bcd"], object)
        file["g/a"].attrs["unit"] = np.bytes_(b"m")
        file["g/a"].attrs["range"] = np.array([1.5, 2.5])
        file["g/a"].attrs["empty"] = h5py.Empty("f4")
        file["g/loop"] = file["g"]
        file["g/time"] = np.arange(23)
        file["g/time"].make_scale("time")
        file["g/a"].dims[0].attach_scale(file["g/time"])
    new = copied(tmp_path / "x.h5", tmp_path / "new")
    assert sorted(path for path, _ in new.members(None)) == ["g", "g/a", "g/text", "g/time"]
    assert np.array_equal(new["g/a"][...], VALUES) and new["g/text"][...].tolist() == ["a", "bcd"]
    assert dict(new["g/a"].attrs) == {"unit": "m", "range": [1.5, 2.5], "empty": None}
    assert new["g/a"].dimension_names == ("time", None)


def test_what_numpy_pickles_is_neither_read_nor_written(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.array([{}], object))
    for name in ("a.npy", "a.npz"):
        with pytest.raises(zcore.UnsupportedError, match="pickle"):
            zcore.copy(tmp_path / name, tmp_path / "b")
    text = zcore.create_array(tmp_path / "t", data=np.array(["a"], np.dtypes.StringDType()))
    for name in ("t.npy", "t.npz", "t.asdf"):
        with pytest.raises(zcore.UnsupportedError, match="pickles are never written.*dtype='U20'"):
            zcore.copy(text, tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "a.npz", "t"]
    for name in ("t.npy", "t.npz", "t.asdf"):
        zcore.copy(text, tmp_path / name, dtype="U20")
    assert np.load(tmp_path / "t.npy").tolist() == ["a"]


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5", "a.zip"])
def test_files_that_are_something_else(name, tmp_path):
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(zcore.ZcoreError, match=name):
        zcore.copy(tmp_path / name, tmp_path / "b")
    assert os.listdir(tmp_path) == [name]


# what stands in the way

@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_replaced_unless_that_is_asked_for(family, original, tmp_path):
    place, settings = place_of(family, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zcore.copy(original, place, **settings)
        with pytest.raises(zcore.NodeExistsError):
            zcore.copy(original, place, **settings)
        zcore.copy(original, place, selection=np.s_[:7], overwrite=True, **settings)
        back = zcore.copy(place, zcore.MemoryStore(), path=INSIDE.get(family, ""))
    assert np.array_equal(back[...], VALUES[:7])
    assert len(os.listdir(tmp_path)) == (family != "memory")


def test_a_directory_that_is_no_node_is_not_replaced(original, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(zcore.NodeExistsError, match="no node.*copy to a new name in it"):
            zcore.copy(original, tmp_path / "b", overwrite=overwrite)
    (tmp_path / "c").mkdir()
    assert np.array_equal(zcore.copy(original, tmp_path / "c")[...], VALUES)
    (tmp_path / "d").symlink_to(tmp_path / "c")
    zcore.copy(original, tmp_path / "d", overwrite=True)
    assert (tmp_path / "d").is_symlink() and np.array_equal(zcore.open(tmp_path / "c")[...], VALUES)


def test_an_array_is_rechunked_in_its_own_place(tmp_path):
    zcore.create_array(tmp_path / "a", data=VALUES, chunks=(1, 19))
    new = zcore.copy(tmp_path / "a", tmp_path / "a", chunks=(23, 1), overwrite=True)
    assert new.chunks == (23, 1) and np.array_equal(new[...], VALUES) and os.listdir(tmp_path) == ["a"]


def test_nothing_to_copy(tmp_path):
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(tmp_path / "none", tmp_path / "b")
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(zcore.group(), tmp_path / "b", path="none")
    np.savez(tmp_path / "a.npz", x=VALUES)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(tmp_path / "a.npz", tmp_path / "b", path="y")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_what_a_format_cannot_express(original, tmp_path):
    text = zcore.create_array(tmp_path / "t", data=np.array(["a"], np.dtypes.StringDType()))
    with pytest.raises((ValueError, TypeError, zcore.UnsupportedError)):
        zcore.copy(text, tmp_path / "b", zarr_format="zmeta")
    with pytest.raises(ValueError, match="shards"):
        zcore.copy(original, tmp_path / "b", zarr_format=2, shards=(20, 20))
    with pytest.raises(ValueError, match="zarr_format"):
        zcore.copy(original, tmp_path / "b.npy", zarr_format=2)
    assert os.listdir(tmp_path) == ["t"]
    group = zcore.create_group(tmp_path / "g")
    group.create_array("sub/line", data=np.arange(3))
    with pytest.raises(ValueError, match="^sub/line: shards: expected one length for"):
        zcore.copy(group, tmp_path / "b", shards=(2, 2))
    group.create_array("sub/text", data=["1", "b"], fill_value="1")
    with pytest.raises(ValueError, match="^sub/text: could not convert string to float"):
        zcore.copy(group, tmp_path / "b", dtype="f4")


def test_a_failure_takes_back_what_is_in_other_stores(original, monkeypatch):
    memory = zcore.MemoryStore({"kept": b"x"})

    def run(self):
        raise zcore.StoreError("no more")

    source = zcore.create_array(zcore.MemoryStore(), data=VALUES, chunks=(10, 10))
    key = "c/2/1"
    source.store.set(key, source.store.get(key)[:-4])
    with pytest.raises(zcore.ChunkError):
        zcore.copy(source, memory, chunks=(5, 5), memory=500)
    assert list(memory.list()) == ["kept"]


# going on

@pytest.mark.parametrize("fill_value", [0, -1])
@pytest.mark.parametrize("stop_at", [1, 4, 9, 14])
def test_a_copy_goes_on_from_where_it_was(tmp_path, monkeypatch, stop_at, fill_value):
    """Only what holds nothing but the fill value is looked at again."""
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(1, 19), fill_value=fill_value)
    wanted = {"chunks": (23, 1), "memory": 900}
    calls, move = [], transfer.move_slab

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        move(*arguments)

    monkeypatch.setattr(transfer, "move_slab", counted)
    zcore.copy(source, zcore.MemoryStore(), **{**wanted, "chunks": (1, 19), "memory": "1 MB"})
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        zcore.copy(source, tmp_path / "b", **wanted)
    assert not (tmp_path / "b").exists() and zcore.verify(tmp_path, path="a").ok
    new = zcore.copy(source, tmp_path / "b", **wanted)
    assert np.array_equal(new[...], VALUES)
    n_calls = len(calls) - 1
    calls[:] = [None] * stop_at
    zcore.copy(source, tmp_path / "c", **wanted)
    assert 0 <= n_calls - (len(calls) - stop_at) <= (6 if fill_value == 0 else 0)
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


@pytest.mark.parametrize("why", ["interrupted", "denied"])
def test_a_copy_from_a_service_goes_on_with_another_store_of_its_url(tmp_path, monkeypatch, why):
    """Another process has another one. A service that answers no more does not say that the array is gone."""
    pytest.importorskip("obstore", reason="obstore is not installed (extra remote)")
    calls, move = [], transfer.move_slab

    def counted(*arguments):
        calls.append(arguments)
        if len(calls) == 4:
            if why == "interrupted":
                raise KeyboardInterrupt
            site.files, site.missing = {}, 403
        move(*arguments)

    monkeypatch.setattr(transfer, "move_slab", counted)
    store = zcore.MemoryStore()
    zcore.create_array(store, name="a", data=VALUES, chunks=(1, 19))
    wanted = {"chunks": (4, 19), "memory": 900}
    with http_server() as (url, site):
        site.files = held = {key: store.get(key) for key in store.list()}
        with pytest.raises(KeyboardInterrupt if why == "interrupted" else zcore.StoreError):
            zcore.copy(url, tmp_path / "b", path="a", threads=1, **wanted)
        site.files, site.missing = held, 404
        assert np.array_equal(zcore.copy(url, tmp_path / "b", path="a", threads=1, **wanted)[...], VALUES)
    n_calls, calls[:] = len(calls), [None] * 4
    zcore.copy(store, tmp_path / "c", path="a", threads=1, **wanted)
    assert n_calls == len(calls) - 3


def test_elements_between_passes_are_those_of_one_array(tmp_path, monkeypatch):
    """A kill right before the array between is removed: the next array of this shape and type does not take it over."""
    for name, factor in (("x", 1), ("y", 2)):
        zcore.create_array(tmp_path / "a", name=name, data=VALUES * factor, chunks=(1, 19))
    wanted = {"chunks": (23, 1), "memory": 900}
    with monkeypatch.context() as patch:
        patch.setattr(Building, "drop_between", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(tmp_path / "a", tmp_path / "b", **wanted)
    new = zcore.copy(tmp_path / "a", tmp_path / "b", **wanted)
    assert np.array_equal(new["x"][...], VALUES) and np.array_equal(new["y"][...], VALUES * 2)


def test_another_copy_begins_anew(tmp_path, monkeypatch):
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10))
    put = Building.commit
    monkeypatch.setattr(Building, "commit", lambda self, replace: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        zcore.copy(source, tmp_path / "b", chunks=(9, 9))
    monkeypatch.setattr(Building, "commit", put)
    source[0, 0] += 1
    source.attrs["changed"] = True
    new = zcore.copy(source, tmp_path / "b", chunks=(9, 9))
    assert np.array_equal(new[...], source[...]) and new.attrs["changed"]


@pytest.mark.parametrize("fsync", [False, True])
def test_a_copy_begins_anew_after_a_power_cut(tmp_path, monkeypatch, fsync):
    """Its files may have lost their data."""
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10), compressors=None)
    with monkeypatch.context() as patch:
        patch.setattr(Building, "commit", lambda self, replace: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(source, tmp_path / "b", fsync=fsync)
    for chunk in tmp_path.glob(".*/node.*/c/*/*"):
        chunk.write_bytes(b"")
    monkeypatch.setattr(destinations, "_boot", lambda: "another")
    assert np.array_equal(zcore.copy(source, tmp_path / "b", fsync=fsync)[...], VALUES)


def test_marks_tell_nothing_once_the_copy_has_its_name(tmp_path, monkeypatch):
    """A kill while the rest is removed: the next copy, which replaces the first one, makes all of it anew."""
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(1, 19))
    with monkeypatch.context() as patch:
        patch.setattr(Building, "discard", lambda self, state: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(source, tmp_path / "b", chunks=(23, 1))
    assert np.array_equal(zcore.copy(source, tmp_path / "b", chunks=(23, 1), overwrite=True)[...], VALUES)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@pytest.mark.parametrize("has_exchange", [True, False])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_what_a_copy_has_replaced_is_not_gone_on_with(kind, has_exchange, tmp_path, monkeypatch):
    if not has_exchange:
        monkeypatch.setattr(staged, "exchange", lambda *_: (_ for _ in ()).throw(OSError(errno.EINVAL, "")))
    for name, factor in (("a", 1), ("b", 2)):
        if kind == "group":
            zcore.create_group(tmp_path / name)
        zcore.create_array(tmp_path / name, name="x" if kind == "group" else "", data=VALUES * factor, chunks=(2, 19))
    with monkeypatch.context() as patch:
        patch.setattr(Building, "discard", lambda self, state: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(tmp_path / "a", tmp_path / "b", overwrite=True)
    new = zcore.copy(tmp_path / "a", tmp_path / "b", overwrite=True)
    assert np.array_equal((new["x"] if kind == "group" else new)[...], VALUES)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_copy_that_does_not_get_its_name_is_gone_on_with(tmp_path, monkeypatch):
    source, put = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(2, 19)), staged.StagedDirectory.commit
    failure = zcore.StoreError("x", errno=errno.EIO)
    monkeypatch.setattr(staged.StagedDirectory, "commit", lambda *_: (_ for _ in ()).throw(failure))
    with pytest.raises(zcore.StoreError):
        zcore.copy(source, tmp_path / "b")
    monkeypatch.setattr(staged.StagedDirectory, "commit", put)
    monkeypatch.setattr(transfer, "move_slab", lambda *_: (_ for _ in ()).throw(AssertionError))
    assert np.array_equal(zcore.copy(source, tmp_path / "b")[...], VALUES)


@pytest.mark.parametrize("cut", ["another copy", "the end"])
def test_what_is_removed_in_part_is_not_gone_on_with(cut, tmp_path, monkeypatch):
    source = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(1, 19))

    def remove(*arguments):
        n_removed.append(unlink(*arguments))
        if len(n_removed) == 3:
            raise KeyboardInterrupt

    n_removed, unlink = [], os.unlink

    with monkeypatch.context() as patch:
        patch.setattr(Building, "commit", lambda self, replace: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(source, tmp_path / "b", chunks=(2, 2))
    with monkeypatch.context() as patch:
        patch.setattr("os.unlink", remove)
        patch.setattr(Building, "commit", lambda self, replace: self.discard())
        with pytest.raises(KeyboardInterrupt):
            zcore.copy(source, tmp_path / "b", chunks=(2, 2) if cut == "the end" else (3, 3))
    assert np.array_equal(zcore.copy(source, tmp_path / "b", chunks=(2, 2))[...], VALUES)


def test_a_full_disk_is_an_error_of_the_store(tmp_path, monkeypatch):
    source = zcore.create_array(tmp_path / "a", data=np.ones((2, 1 << 19), "f4"), chunks=(1, 1 << 19),
                                compressors=None)

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", fail)
        with pytest.raises(zcore.StoreError, match="No space left"):
            zcore.copy(source, tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", fail)
        with pytest.raises(zcore.StoreError, match="No space left"):
            Building(os.path.join(tmp_path, "c"), {})
    assert np.array_equal(zcore.copy(source, tmp_path / "b")[...], source[...])


def test_a_header_of_more_elements_than_there_is_memory_for(tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (2**58,)})
        file.write(bytes(80))
    with pytest.raises(zcore.ZcoreError, match="a.npy"):
        zcore.copy(tmp_path / "a.npy", tmp_path / "b")


def test_two_at_a_time_do_not_build_the_same(original, tmp_path):
    building = Building(os.path.join(tmp_path, "b"), {})
    with pytest.raises(zcore.StoreError, match="another"):
        zcore.copy(original, tmp_path / "b")
    zcore.create_group(tmp_path)
    assert zcore.verify(tmp_path, repair=True).ok       # it is being built, and so no left-over
    building.leave()
    report = zcore.verify(tmp_path)
    assert [problem[:2] for problem in report.problems] == [("left-over", ".__zc_tmp.copy.b")]
    assert np.array_equal(zcore.copy(original, tmp_path / "b")[...], VALUES) and zcore.verify(tmp_path).ok


def test_a_request_that_was_not_written_to_its_end_counts_for_nothing(tmp_path):
    def build(request):
        building = Building(os.path.join(tmp_path, "b"), request)
        os.makedirs(building.node, exist_ok=True)
        building.leave()
        return building

    assert not build({"x": 1}).is_begun and build({"x": 1}).is_begun
    request = tmp_path / ".__zc_tmp.copy.b/request"
    request.write_bytes(request.read_bytes()[:-5])
    assert not build({"x": 1}).is_begun and not build({"x": 2}).is_begun


def _other_elements(place):
    zcore.open_array(place, mode="r+")[0] = 5


def _fill_values(place):
    zcore.open_array(place, mode="r+")[:] = 0


def _equal_document(place):
    zcore.copy(zcore.full_like(zcore.open_array(place), 7), place, overwrite=True)


def _older_files(place):
    """An older array comes back: all its times but those of the change of inodes are old."""
    aside = f"{place}.old"
    zcore.copy(place, aside)
    _other_elements(aside)
    for path in (aside, *[os.path.join(above, name) for above, _, names in os.walk(aside) for name in names]):
        os.utime(path, (1, 1))
    os.rename(place, f"{place}.aside")
    os.rename(aside, place)


@pytest.mark.parametrize("wanted", [{}, {"chunks": 8, "memory": 300}, {"chunks": 3, "dtype": "f8", "memory": 300}])
@pytest.mark.parametrize("change", [None, _other_elements, _fill_values, _equal_document, _older_files])
def test_a_copy_goes_on_only_if_the_source_is_still_the_same(tmp_path, monkeypatch, change, wanted):
    place = str(tmp_path / "x")
    zcore.create_array(place, data=np.arange(1, 41), chunks=5)
    time.sleep(0.02)     # as coarse as times of a file system are
    n_done = 0

    def until_full(write):
        def limited(self, where, values):
            nonlocal n_done
            n_done += type(where) is tuple or "c/" in where
            if n_done == 4:
                raise zcore.StoreError("the disk is full", key=place, errno=errno.ENOSPC)
            write(self, where, values)

        return limited

    with monkeypatch.context() as patch:
        for owner, name in ((zcore.DirectoryStore, "set"), (transfer.StoredTarget, "write")):
            patch.setattr(owner, name, until_full(getattr(owner, name)))
        with pytest.raises(zcore.StoreError, match="full"):
            zcore.copy(place, tmp_path / "copy", threads=1, **wanted)
    if change is not None:
        change(place)
    begun, begin_anew = [], Building.begin_anew
    monkeypatch.setattr(Building, "begin_anew", lambda self: (begun.append(self), begin_anew(self)))
    new = zcore.copy(place, tmp_path / "copy", threads=1, **wanted)
    assert np.array_equal(new[...], zcore.open_array(place)[...]) and len(begun) == (change is not None)


@pytest.mark.parametrize("wanted", [{}, {"chunks": (23, 1), "memory": 900}, {"dtype": "f8"}])
def test_progress(wanted, original, tmp_path):
    told = []
    new = zcore.copy(original, tmp_path / "b", progress=lambda done, total: told.append((done, total)), **wanted)
    assert told == sorted(told) and told[-1] == (new.nbytes, new.nbytes)


def test_the_module_is_not_in_the_way_of_its_function():
    assert zcore.copy is copy_module.copy


@pytest.mark.parametrize("ending", [".zip", ".npz", ".asdf"])
def test_a_file_is_not_replaced_for_one_node(tmp_path, ending):
    """What else lies in it would be lost."""
    place = tmp_path / f"a{ending}"
    zcore.copy(zcore.array(VALUES), place, destination_path="first")
    before = place.read_bytes()
    with pytest.raises(zcore.UnsupportedError, match="would be lost"):
        zcore.copy(zcore.array(VALUES), place, destination_path="second", overwrite=True)
    assert place.read_bytes() == before


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(zcore.NodeNotFoundError) as raised:
        zcore.copy(tmp_path / "nowhere", tmp_path / "b")
    assert "does not exist" in str(raised.value) and "created" not in str(raised.value)
    assert not (tmp_path / "b").exists()


def chain_of(a):
    """Return the names of the codecs of a chunk, of the innermost ones."""
    codecs = a.metadata.codecs
    names = [codec.name for codec in codecs]
    if names[-1] != "sharding_indexed":
        return names
    return [codec["name"] for codec in codecs[-1].configuration["codecs"]]


@pytest.mark.parametrize("settings", [
    {"zarr_format": 3, "checksum": False}, {"zarr_format": 3, "checksum": False, "compressors": None},
    {"zarr_format": 2, "compressors": {"id": "zlib", "level": 1}, "order": "F"}, {"zarr_format": "zmeta"},
    {"zarr_format": 3, "checksum": False, "shards": (4, 6)},
    {"zarr_format": 3, "codecs": [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}]},
], ids=["blosc", "raw", "v2", "zmeta", "shards", "transpose"])
def test_a_checksum_is_added_for_those_who_ask(settings, tmp_path):
    values = np.arange(48, dtype="i4").reshape(8, 6)
    if settings.get("codecs"):
        settings = {**settings, "dtype": "u1"}
    a = zcore.create_array(tmp_path / "a", data=values.astype(settings.get("dtype", "i4")), chunks=(2, 3),
                           **{name: value for name, value in settings.items() if name != "dtype"})
    plain = zcore.copy(a, tmp_path / "plain", zarr_format=3)
    assert "crc32c" not in chain_of(plain)
    b = zcore.copy(a, tmp_path / "b", zarr_format=3, checksum=True)
    assert chain_of(b) == [*chain_of(plain), "crc32c"] and b[...].tolist() == values.tolist()
    assert (b.chunks, b.shards) == (plain.chunks, plain.shards) and zcore.verify(tmp_path / "b").ok
    assert chain_of(zcore.copy(b, tmp_path / "c", checksum=True)) == chain_of(b)


def test_a_checksum_with_other_requests(tmp_path):
    a = zcore.create_array(zcore.MemoryStore(), data=np.arange(48).reshape(8, 6), checksum=False)
    codecs = [zcore.codecs.BytesCodec(), zcore.codecs.ZstdCodec(level=1)]
    for request in ({"codecs": codecs}, {"chunks": (2, 3), "shards": (4, 6)}, {"dtype": "f4"},
                    {"compressors": "auto", "order": "F"}, {"compressors": None}, {"chunks": (3, 3)},
                    {"codecs": [*codecs, zcore.codecs.Crc32cCodec()]},
                    {"codecs": [zcore.codecs.ShardingCodec(chunk_shape=(4, 3), codecs=codecs)], "chunks": (8, 6)}):
        b = zcore.copy(a, zcore.MemoryStore(), checksum=True, **request)
        assert chain_of(b).count("crc32c") == 1 and chain_of(b)[-1] == "crc32c", request
        assert b[...].tolist() == a[...].tolist()


def test_formats_without_checksums_refuse_one(tmp_path):
    a = zcore.create_array(zcore.MemoryStore(), data=np.arange(4), zarr_format=2)
    with pytest.raises(UnsupportedError, match="zarr_format=3"):
        zcore.copy(a, tmp_path / "b", checksum=True)
    assert os.listdir(tmp_path) == []


def test_the_command_adds_a_checksum(tmp_path):
    from zcore.__main__ import main

    zcore.create_array(tmp_path / "a", data=np.arange(4), checksum=False)
    assert main(["cp", str(tmp_path / "a"), str(tmp_path / "b"), "--checksum"]) == 0
    assert chain_of(zcore.open(tmp_path / "b"))[-1] == "crc32c"


def test_a_time_without_a_unit_cannot_go_to_zarr_v2(tmp_path):
    zcore.create_array(tmp_path / "a", shape=4, dtype="M8")
    with pytest.raises(zcore.MetadataError, match=r"has no unit.*name one, such as dtype='<M8\[s\]'"):
        zcore.copy(tmp_path / "a", tmp_path / "b", zarr_format=2)
    assert not (tmp_path / "b").exists()


def test_a_destination_that_is_removed_meanwhile_is_free(tmp_path, monkeypatch):
    from zcore.stores.directory import reading

    def removed(directory):
        monkeypatch.undo()
        os.rmdir(directory)
        return reading.is_empty(directory)

    zcore.create_array(tmp_path / "a", data=[1, 2])
    os.mkdir(tmp_path / "b")
    monkeypatch.setattr(reading, "is_empty", removed)
    zcore.copy(tmp_path / "a", tmp_path / "b")
    assert zcore.open_array(tmp_path / "b", mode="r")[...].tolist() == [1, 2]


@pytest.mark.parametrize(("name", "wishes", "refused"), [
    ("a.npy", {"compressors": "zstd"}, "compressors"), ("a.npz", {"chunks": 2, "shards": 4}, "chunks, shards"),
    ("a.asdf", {"codecs": ["bytes"]}, "codecs"), ("a.h5", {"order": "F"}, "order"),
    ("a.h5", {"checksum": True}, "checksum"),
    ("a.h5", {"compressors": "zstd"}, "compressors is 'zstd'"),
])
def test_a_file_does_not_ignore_what_was_asked_for(name, wishes, refused, tmp_path):
    source = zcore.array(np.arange(8).reshape(2, 4))
    with pytest.raises(ValueError, match=refused):
        zcore.copy(source, tmp_path / name, **wishes)
    assert os.listdir(tmp_path) == []
    zcore.copy(source, tmp_path / name, dtype="f4", shards=False, compressors=())


@pytest.mark.parametrize(("chunks", "expected"), [("80 B", (2, 3)), (4, (4, 4)), ((2, -1), (2, 10)), (99, (8, 10))])
def test_chunks_of_hdf5_are_those_that_were_asked_for(chunks, expected, tmp_path):
    h5py = pytest.importorskip("h5py")
    source = zcore.array(np.arange(80).reshape(8, 10))
    zcore.copy(source, tmp_path / "a.h5", chunks=chunks)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["data"].chunks == expected
    with pytest.raises(ValueError, match="for each dimension"):
        zcore.copy(source, tmp_path / "b.h5", chunks=(2,))


@pytest.mark.parametrize(("compressors", "expected"), [
    ((), None), ("auto", 4), ("gzip", 4), (zcore.codecs.GzipCodec(level=9), 9), (None, 4)])
def test_compression_of_hdf5(compressors, expected, tmp_path):
    h5py = pytest.importorskip("h5py")
    zcore.copy(zcore.array(np.arange(80).reshape(8, 10)), tmp_path / "a.h5", compressors=compressors)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["data"].compression_opts == expected


def test_objects_that_are_passed_on_keep_to_the_memory():
    held, most = [], []

    class Source(zcore.MemoryStore):
        def get(self, key, byte_range=None):
            if key.startswith("c/"):
                held.append(key)
                most.append(len(held))
                time.sleep(0.005)
            return super().get(key, byte_range)

    class Target(zcore.MemoryStore):
        def set(self, key, value):
            super().set(key, value)
            if "c/" in key:
                held.pop()

    source = zcore.create_array(Source(), data=np.arange(2000, dtype="i4"), chunks=10, shards=100)
    for memory, n in ((850, 2), (1, 1)):
        most.clear()
        copied = zcore.copy(source, Target(), memory=memory, threads=8)
        assert max(most) <= n and len(most) == 20
        np.testing.assert_array_equal(copied[...], np.arange(2000))


@pytest.mark.parametrize("kind", ["directory", "zip", "memory"])
def test_files_of_groups_that_belong_to_no_node_are_left_out_with_a_warning(tmp_path, kind):
    """SpatialData has its tables in Parquet there, and bioformats2raw has XML."""
    source = zcore.open_group(tmp_path / "a", mode="w", zarr_format=2)
    source.create_array("g/x", data=VALUES)
    for key in ("README", "g/points.parquet/part.0.parquet", "g/.hidden", ".git/x", "g/zarr.json.1f3a.partial",
                "g/x/y"):
        (tmp_path / "a" / key).parent.mkdir(exist_ok=True)
        (tmp_path / "a" / key).write_bytes(b"mine")
    (tmp_path / "a/empty").mkdir()
    place = {"directory": str(tmp_path / "b"), "zip": str(tmp_path / "b.zip"), "memory": zcore.MemoryStore()}[kind]
    expected = f"{place} is not complete without files that belong to no node: README, g/points.parquet"
    node = copied(tmp_path / "a", place, lost=[expected])
    assert np.array_equal(node["g/x"][...], VALUES)
    # Where it is replaced by its copy, they stay.
    copied(tmp_path / "a", tmp_path / "a", overwrite=True, chunks=(5, 5))
    assert (tmp_path / "a/g/points.parquet/part.0.parquet").exists() and (tmp_path / "a/README").exists()
    assert zcore.open(tmp_path / "a/g/x").chunks == (5, 5)


def test_the_error_names_the_member_whose_type_the_destination_lacks():
    source = zcore.create_group(zcore.MemoryStore(), zarr_format=2)
    source.create_array("g/x", data=np.zeros(3, [("p", "f4", 2)]))
    with pytest.raises(UnsupportedError, match="g/x: Zarr v3 has no fields that are arrays; .*zarr_format=2"):
        zcore.copy(source, zcore.MemoryStore(), zarr_format=3)
