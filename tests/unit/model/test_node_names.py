"""Names and paths of nodes: what each format forbids, what it spells in several ways, and what brings a warning."""
import warnings

import pytest

import zcore
from tests.each import each

UNPORTABLE = r"the name .* is not portable"


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path) if request.param == "directory" else zcore.MemoryStore()


@pytest.mark.parametrize("path", ["__x", "a/__x", "__", "__x/a", "...", "a/....", "zarr.json", "a/zarr.json"])
def test_names_that_zarr_v3_reserves(store, path):
    """V3-NAME-01, D3-NAME-02: refused when a node is created, moved or opened, before anything is stored."""
    group = zcore.create_group(store)
    group.create_array("there", shape=1, dtype="i1")
    before = sorted(store.list())
    for call in (
        lambda: zcore.create_array(store, name=path, shape=1, dtype="i1"),
        lambda: zcore.create_group(store, path=path),
        lambda: zcore.open(store, "w", path=path, shape=1, dtype="i1"),
        lambda: zcore.open(store, "a", path=path),
        lambda: zcore.open(store, path=path, zarr_format=3),
        lambda: zcore.open_group(store, "w", path=path),
        lambda: group.create_array(path, shape=1, dtype="i1"),
        lambda: group.create_group(path),
        lambda: group.require_group(path),
        lambda: group.move("there", path),
        lambda: group[path],
        lambda: group.__delitem__(path),
    ):
        with pytest.raises(zcore.InvalidKeyError, match="is not the path of a node: ") as caught:
            call()
        assert isinstance(caught.value, ValueError) and caught.value.key == path
    assert sorted(store.list()) == before


def test_reserved_names_that_others_have_used(store):
    """V3-NAME-01, V3-OP-03: they are no members, and are not opened."""
    group = zcore.create_group(store)
    group.create_group("a")
    for name in ("__a", "...", "b__"):
        store.set(f"{name}/zarr.json", store.get("a/zarr.json"))
    assert list(group) == ["a", "b__"] and group.nmembers(None) == 2
    for name in ("__a", "..."):
        with pytest.raises(zcore.InvalidKeyError, match="reserved"):
            zcore.open(store, path=name)
    assert sorted(zcore.consolidate_metadata(store)) == ["a", "b__"]


@each("name", ["Höhe", "sea surface", "a:b", "x" * 256, "温度", "a\\b", "e\u0301", "\U0001f600"])
def test_names_outside_of_ascii_letters_and_digits(name):
    """V3-NAME-02, D3-NAME-01, D3-NAME-02, D3-NAME-03: names like any other, with a warning that can be an error."""
    store = zcore.MemoryStore()
    with pytest.warns(UserWarning, match=UNPORTABLE) as caught:
        group = zcore.create_group(store, path=f"a/{name}")
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match=UNPORTABLE):
        group.create_array("b", shape=2, dtype="i1")[...] = 1
    assert store.exists(f"a/{name}/zarr.json") and list(zcore.open(store, path="a")) == [name]
    assert zcore.open(store)["a"][name]["b"][...].tolist() == [1, 1]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", UNPORTABLE)
        with pytest.raises(UserWarning):
            zcore.create_group(store, path=f"{name}/c")
    assert not list(store.list_prefix(name + "/"))


@each("name", ["a", "A-z_0.9", "x" * 255, ".hidden", "a__b", "_a", "c", "0", "zarr.json.bak", ""])
def test_names_that_are_the_same_everywhere(name):
    """V3-NAME-02, D3-NAME-01: no warning, which would be an error here."""
    store = zcore.MemoryStore()
    assert zcore.create_group(store, path=name).path == name


def test_case_tells_names_apart(store):
    """V3-NAME-03: where the file system cannot, the second one is an error, never the first one's elements."""
    zcore.create_array(store, name="foo", shape=1, dtype="i1", fill_value=1)
    try:
        zcore.create_array(store, name="FOO", shape=1, dtype="i1", fill_value=2)
    except zcore.KeyConflictError:
        assert list(zcore.open(store)) == ["foo"] and "FOO" not in zcore.open(store)
    else:
        assert list(zcore.open(store)) == ["FOO", "foo"]
        assert (zcore.open(store)["foo"][0], zcore.open(store)["FOO"][0]) == (1, 2)


@pytest.mark.parametrize("path", ["a/b", "/a/b", "a//b", "a/b/", "//a///b//"])
def test_paths_of_v3_are_brought_to_one_spelling(store, path):
    """V3-NAME-04"""
    group = zcore.create_group(store)
    assert group.create_group(path).path == "a/b" and path in group and zcore.open(store, path="//") == group
    assert group["a/b"] == group[path] == zcore.open_group(store, "r+", path=path)
    del group[path]
    assert zcore.create_array(store, name=path, shape=2, dtype="i1").path == "a/b"


@pytest.mark.parametrize("path", ["foo/bar", "\\foo//bar/", "/foo/bar/", "foo\\bar", "//foo///bar//"])
def test_paths_of_v2_are_brought_to_one_spelling(store, path):
    """V2-KEY-02"""
    made = zcore.create_array(store, name=path, shape=2, dtype="i1", zarr_format=2)
    assert made.path == "foo/bar" and store.exists("foo/bar/.zarray")
    made[...] = 1
    group = zcore.open_group(store, zarr_format=2)
    assert group[path] == made == zcore.open(store, path=path, zarr_format=2) and path in group
    assert list(group.members(None))[-1][0] == "foo/bar"
    group = zcore.consolidate_metadata(store)
    assert group["foo\\"].nmembers() == 1, "the copy has the one spelling"
    del group[path]
    assert list(zcore.open(store)["foo"]) == []


@pytest.mark.parametrize("path", ["..", "a/../b", "a\\..\\b", ".", "./a", "a\\."])
def test_paths_of_v2_do_not_climb(store, path):
    """V2-KEY-03: also where `\\` stands for `/`."""
    group = zcore.create_group(store, zarr_format=2)
    for call in (lambda: zcore.create_group(store, path=path, zarr_format=2), lambda: group[path],
                 lambda: zcore.open(store, path=path, zarr_format=2)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("path", [".zgroup", ".zarray", "a/.zattrs", ".zmetadata", ".z", ".zip/a"])
def test_names_that_zarr_v2_reserves(store, path):
    """V2-KEY-06"""
    group = zcore.create_group(store, zarr_format=2)
    before = sorted(store.list())
    for call in (lambda: zcore.create_array(store, name=path, shape=1, dtype="i1", zarr_format=2),
                 lambda: zcore.open_group(store, "w", path=path, zarr_format=2), lambda: group.create_group(path)):
        with pytest.raises(ValueError, match="names that begin with '.z' are reserved"):
            call()
    assert sorted(store.list()) == before
    zcore.create_group(store, path="z/.a", zarr_format=2)
    zcore.create_group(zcore.MemoryStore(), path=".zip")


def test_names_of_v2_that_are_not_ascii(store):
    """V2-KEY-04: written and read as they are, without a warning."""
    zcore.create_array(store, name="Höhe/温 度", shape=2, dtype="i1", zarr_format=2)[...] = 3
    assert store.exists("Höhe/温 度/.zarray") and store.exists("Höhe/温 度/0")
    assert zcore.open(store)["Höhe"]["温 度"][...].tolist() == [3, 3]
