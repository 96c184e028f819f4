"""Whole hierarchies: opened or created as a group, made of metadata, shown."""
import numpy as np
import pytest

import zcore


def test_a_group_is_opened_or_created(tmp_path):
    assert isinstance(zcore.group().store, zcore.MemoryStore)
    g = zcore.group(tmp_path, attributes={"n": 1})
    g.zeros("a", 3)
    again = zcore.group(tmp_path)
    assert list(again) == ["a"] and again.attrs["n"] == 1 and not again.read_only
    assert zcore.group(tmp_path, path="x/y", zarr_format=3).name == "/x/y"
    assert list(zcore.group(tmp_path, overwrite=True)) == []
    zcore.zeros(3, store=tmp_path, path="a")
    with pytest.raises(zcore.NodeNotFoundError, match="holds an array"):
        zcore.group(tmp_path, path="a")


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_open_consolidated(tmp_path, zarr_format):
    g = zcore.group(tmp_path, zarr_format=zarr_format)
    g.zeros("a", 3)
    with pytest.raises(ValueError, match="no consolidated metadata"):
        zcore.open_consolidated(tmp_path)
    zcore.consolidate_metadata(tmp_path)
    found = zcore.open_consolidated(tmp_path)
    assert list(found) == ["a"] and found.read_only and found["a"].shape == (3,)


def sample(zarr_format):
    g = zcore.group(zarr_format=zarr_format, attributes={"title": "weather"})
    g.create_array("a/t", data=np.arange(6), chunks=2, attributes={"units": "K"})
    g.create_array("p", shape=(4, 4), dtype="f4", compressors=None)
    zcore.consolidate_metadata(g.store)
    return zcore.open_group(g.store)


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_hierarchy_made_of_metadata(tmp_path, zarr_format):
    g = sample(zarr_format)
    nodes = {"": g.metadata} | {path: node.metadata for path, node in g.members(None)}
    made = dict(zcore.create_hierarchy(store=tmp_path, nodes=nodes))
    assert list(made) == ["", "a", "p", "a/t"]
    for path, node in made.items():
        assert type(node) is type(g if not path else g[path])
        if isinstance(node, zcore.Array):
            assert node.metadata == g[path].metadata
    if zarr_format == 3:
        assert made[""].attrs == g.attrs and made["a/t"].attrs["units"] == "K"
    assert made["a/t"][...].tolist() == [0] * 6, "elements are not copied"
    with pytest.raises(ValueError, match="no consolidated metadata"):
        zcore.open_consolidated(tmp_path)
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_hierarchy(store=tmp_path, nodes=nodes)
    made["p"][...] = 1
    assert zcore.open(tmp_path)["p"][0, 0] == 1
    zcore.create_hierarchy(store=tmp_path, nodes=nodes, overwrite=True, lock=None)
    assert zcore.open(tmp_path)["p"][0, 0] == 0


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_metadata_that_a_caller_changes_between_two_hierarchies(zarr_format):
    """A document has the metadata as they are at the call. Documents that were made before do not change."""
    store = zcore.MemoryStore()
    metadata = zcore.create_array(zcore.MemoryStore(), shape=4, dtype="i4", zarr_format=zarr_format,
                                  **({"checksum": False} if zarr_format == 3 else {})).metadata
    for level in (1, 9, 5):
        metadata.codecs[-1].configuration["clevel"] = level
        zcore.create_hierarchy(store=store, nodes={f"x{level}": metadata})
    for level in (1, 9, 5):
        assert zcore.open(store, path=f"x{level}").metadata.codecs[-1].configuration["clevel"] == level


def test_a_hierarchy_below_a_group(tmp_path):
    g = zcore.group(tmp_path)
    below = g.create_group("copy")
    made = dict(below.create_hierarchy({"/x/y": g.metadata}))
    assert made["x/y"].name == "/copy/x/y" and isinstance(g["copy/x"], zcore.Group)
    with pytest.raises(zcore.NodeExistsError, match="cannot be below it"):
        below.create_hierarchy({"b": zcore.zeros(3).metadata, "b/c": g.metadata})
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open_group(tmp_path).create_hierarchy({"z": g.metadata})


def test_what_is_no_metadata():
    with pytest.raises(TypeError, match="'a/b': expected the metadata of an array or a group, found dict"):
        zcore.create_hierarchy(store=zcore.MemoryStore(), nodes={"a/b": {"zarr_format": 3}})
    with pytest.raises(TypeError, match="mapping"):
        zcore.create_hierarchy(store=zcore.MemoryStore(), nodes=["a"])
    with pytest.raises(zcore.InvalidKeyError):
        zcore.create_hierarchy(store=zcore.MemoryStore(), nodes={"a/../b": zcore.group().metadata})


def test_tree(tmp_path):
    g = zcore.group(tmp_path)
    g.create_array("a/b/c", shape=(2, 3), dtype="i2")
    text = "/\n└── a\n    └── b\n        └── c (2, 3) int16"
    assert zcore.tree(tmp_path) == zcore.tree(g) == g.tree() == text
    assert zcore.tree(tmp_path, path="a", max_depth=0) == "/a\n└── b"


def test_names_of_members_are_completed_at_a_prompt():
    g = sample(3)
    assert g._ipython_key_completions_() == ["a", "p"] == sorted(g)


def test_info_of_a_group():
    g = sample(3)
    assert dict(g.info).keys() == {"path", "store", "format", "read-only"} and "/" in str(g.info)
    assert g.info_complete()["members"] == "2 arrays, 1 group below"
    assert g["a"].info_complete()["members"].endswith(" 0 groups below")
    assert [node.name for node in g.array_values()] == ["/p"] and [node.name for node in g.group_values()] == ["/a"]


def test_several_attributes_in_one_write(tmp_path):
    g = zcore.group(tmp_path)
    a = g.zeros("a", 3)
    for node in (g, a):
        assert node.update_attributes({"x": 1, "y": [2]}) is node
        node.update_attributes({"x": 3})
        assert dict(node.attrs) == {"x": 3, "y": [2]}
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open(tmp_path).update_attributes({"x": 1})


def test_codecs_of_a_chunk():
    delta = {"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}
    for shards in (None, (4, 4)):
        a = zcore.create_array(zcore.MemoryStore(), shape=(4, 4), chunks=(2, 2), shards=shards, dtype="<i4", order="F",
                               filters=[delta], compressors=zcore.codecs.ZstdCodec(level=1))
        assert [codec.name for codec in a.filters] == ["transpose", "numcodecs.delta"]
        assert a.serializer.endian == "little"
        assert [codec.name for codec in a.compressors] == ["zstd"] and a.compressor.level == 1
        assert (len(a.codecs) == 1) == (shards is not None)
    text = zcore.zeros(3, dtype=str, chunks=2)
    assert text.serializer.name == "vlen-utf8" and text.filters == ()


@pytest.mark.parametrize("n", [1, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("zarr_format", "document"), [pytest.param(2, ".zmetadata", marks=pytest.mark.slow),
                                                       (3, "zarr.json")])
def test_long_consolidated_metadata_are_written_and_read(tmp_path, zarr_format, document, n):
    """zarr-python has no limit, and takes such a document from 15,000 arrays on."""
    store = zcore.MemoryStore()
    group = zcore.create_group(store, zarr_format=zarr_format, attributes={"long": "x" * (2**24 // n)})
    group.create_array("a", shape=(4, 4), chunks=(2, 2), dtype="i4", attributes={"units": "K" * 700})
    for key in list(store.list_prefix("a/")):
        for i in range(n):
            store.set(f"a{i}/{key[2:]}", store.get(key))
    zcore.consolidate_metadata(store)
    assert len(store.get(document)) > 2**24
    zcore.copy(store, tmp_path / "x.zip")
    for place, use in ((store, True), (tmp_path / "x.zip", False)):
        group = zcore.open_group(place, "r", use_consolidated=use)
        assert len(list(group)) == n + 1 and group["a0"].shape == (4, 4) and len(group.attrs["long"]) == 2**24 // n
