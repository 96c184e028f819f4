"""What `zcore.verify` finds: every kind of fault, placed one at a time, and nothing where nothing is wrong."""
import errno
import importlib
import json
import os
import shutil
import socket
import zipfile
import zlib

import numpy as np
import pytest

import zcore
from zcore.tools.verify import decoded, repair

KINDS = [
    {"zarr_format": 3},
    {"zarr_format": 3, "shards": (20, 20)},
    {"zarr_format": 2},
    {"zarr_format": 2, "compressors": {"id": "zlib", "level": 1}},
    {"zarr_format": "zmeta"},
]
NAMES = ["v3", "sharded", "v2", "zlib", "zmeta"]
VALUES = np.random.default_rng(3).integers(0, 1 << 20, (45, 37)).astype("<i4")


@pytest.fixture(params=KINDS, ids=NAMES)
def array(request, tmp_path):
    """An array with border chunks in both dimensions, by a handle that writes."""
    return zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10), attributes={"unit": "m"}, **request.param)


def an_object(array, i=0):
    """Return the key and the file of one of an array's objects."""
    key = sorted(key for key, _ in array._binding.stored_chunks())[i]
    return key, os.path.join(array.store.path, key)


def change(file, edit):
    with open(file, "rb") as opened:
        raw = bytearray(opened.read())
    edit(raw)
    with open(file, "wb") as opened:
        opened.write(raw)


def found(place, **keywords):
    """Return {(kind, key)} of a report, which is as all reports are."""
    report = zcore.verify(place, **keywords)
    assert json.loads(json.dumps(report.as_dict()))["by_kind"] == report.by_kind
    assert report.ok == (not report.problems)
    assert sum(report.by_kind.values()) == len(report.problems)
    assert all(problem.what and problem.kind in repr(report) for problem in report.problems)
    return {problem[:2] for problem in report.problems}


def test_nothing_is_found_where_nothing_is_wrong(array):
    report = zcore.verify(array.store.path)
    assert report.ok and report.problems == [] and (report.n_groups, report.n_arrays) == (0, 1)
    assert report.n_objects == array._n_objects() and "ok" in repr(report)


def test_every_store(tmp_path):
    group = zcore.create_group(tmp_path / "h")
    for name, kind in zip(NAMES[:2], KINDS[:2], strict=True):
        group.create_array(f"x/{name}", data=VALUES, chunks=(10, 10),
                           **{key: value for key, value in kind.items() if key != "zarr_format"})
    memory = zcore.MemoryStore()
    with zcore.ZipStore(tmp_path / "h.zip", mode="w") as zipped:
        for key in group.store.list():
            memory.set(key, group.store.get(key))
            zipped.set(key, group.store.get(key))
    references = {key: [f"h/{key}"] for key in group.store.list()}
    (tmp_path / "h.json").write_text(json.dumps(references))
    for place in (tmp_path / "h", memory, tmp_path / "h.zip", tmp_path / "h.json"):
        report = zcore.verify(place)
        assert report.ok and (report.n_groups, report.n_arrays, report.n_objects) == (2, 2, 26)
    key = "x/v3/c/1/1"
    memory.set(key, memory.get(key)[:-3])
    assert found(memory) == {("truncated", key)}
    references[key][0] = "h/none"
    (tmp_path / "h.json").write_text(json.dumps(references))
    assert found(tmp_path / "h.json") == {("unreachable", key)}


# faults of objects

@pytest.mark.parametrize("n_left", [0, 1, 15, 17, 60, -1])
def test_a_truncated_object(array, n_left):
    key, file = an_object(array, 1)
    change(file, lambda raw: raw.__delitem__(slice(n_left, None)))
    assert found(array.store.path) in ({("truncated", key)}, {("damaged", key)})


def test_a_truncated_blosc_chunk_is_called_so(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10))
    key, file = an_object(array)
    change(file, lambda raw: raw.pop())
    assert found(tmp_path / "a") == {("truncated", key)}
    change(file, lambda raw: raw.clear())
    assert found(tmp_path / "a") == {("truncated", key)}


@pytest.mark.parametrize("shards", [None, (20, 20)])
def test_any_flipped_bit_where_there_are_checksums(tmp_path, shards):
    array = zcore.create_array(tmp_path / "a", data=VALUES[:10, :10], chunks=(10, 10), shards=shards)
    key, file = an_object(array)
    size = os.path.getsize(file)
    for i in range(0, size, 29):
        change(file, lambda raw, i=i: raw.__setitem__(i, raw[i] ^ 16))
        assert {key for _, key in found(tmp_path / "a")} == {key}, i
        change(file, lambda raw, i=i: raw.__setitem__(i, raw[i] ^ 16))
    assert zcore.verify(tmp_path / "a").ok


def test_all_of_a_border_chunk_is_decoded(tmp_path):
    """Damage beyond the border of the array, where no checksum finds it, is found since the bytes are decoded."""
    array = zcore.create_array(tmp_path / "a", shape=(1,), chunks=(1 << 16,), dtype="i4", zarr_format="zmeta")
    array[0] = 1
    array.resize(1 << 16)
    array[...] = np.random.default_rng(1).integers(0, 9, 1 << 16)
    document = (tmp_path / "a" / "__zmeta__").read_bytes()
    (tmp_path / "a" / "__zmeta__").write_bytes(document.replace(b'"shape": [\n        65536', b'"shape": [\n        1'))
    assert zcore.open(tmp_path / "a").shape == (1,)
    key, file = an_object(array)
    change(file, lambda raw: raw.__setitem__(slice(-2000, None), b"\xff" * 2000))
    assert found(tmp_path / "a") == {("damaged", key)}


def test_every_damaged_object_of_a_slab_is_named(array):
    n = array._n_objects()
    damaged = {an_object(array, i)[0] for i in range(0, n, 2)}
    for i in range(0, n, 2):
        change(an_object(array, i)[1], lambda raw: raw.__delitem__(slice(20, None)))
    assert {key for _, key in found(array.store.path)} == damaged


def test_an_unreachable_object(array):
    key, file = an_object(array)
    os.unlink(file)
    os.symlink(file + ".elsewhere", file)
    assert found(array.store.path) == {("unreachable", key)}
    assert zcore.verify(array.store.path, repair=("left-over", "foreign", "damaged")).n_removed == 0
    assert os.path.islink(file)


def test_a_store_that_is_unreachable_as_a_whole(tmp_path):
    os.symlink("nowhere", tmp_path / "a")
    assert found(tmp_path / "a") == {("unreachable", "")}


def test_a_huge_and_nearly_empty_grid(tmp_path):
    array = zcore.create_array(tmp_path / "a", shape=(1 << 40, 1 << 20), chunks=(4, 4), dtype="i4")
    for i in range(5):
        array[i << 36, i << 10] = i + 1
    key, file = an_object(array, 2)
    change(file, lambda raw: raw.__setitem__(-5, raw[-5] ^ 1))
    report = zcore.verify(tmp_path / "a")
    assert [problem[:2] for problem in report.problems] == [("damaged", key)] and report.n_objects == 5


def test_shards_that_are_larger_than_a_slab(tmp_path, monkeypatch):
    monkeypatch.setattr(decoded, "SLAB_NBYTES", 900)
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(5, 5), shards=(20, 20))
    assert zcore.verify(tmp_path / "a").ok
    key, file = an_object(array, 1)
    change(file, lambda raw: raw.__setitem__(300, raw[300] ^ 1))
    assert found(tmp_path / "a") == {("damaged", key)}


def test_grids_of_all_kinds(tmp_path):
    group = zcore.create_group(tmp_path / "h")
    group.create_array("rectilinear", data=VALUES, chunks=[[20, 25], [30, 7]])
    group.create_array("scalar", data=np.int32(4))
    group.create_array("empty", shape=(0, 4), dtype="i4")
    group.create_array("text", data=np.array(["a", "bc"] * 30, np.dtypes.StringDType()), chunks=7)
    report = zcore.verify(tmp_path / "h")
    assert report.ok and (report.n_groups, report.n_arrays, report.n_objects) == (1, 4, 4 + 1 + 9)


# what is no object

def test_as_many_dimensions_as_there_may_be(tmp_path):
    data = np.arange(12).reshape(2, *[1] * 61, 2, 3)
    zcore.create_array(tmp_path / "a.zarr", data=data, chunks=1)
    damaged = tmp_path / "a.zarr" / "c" / "/".join(["1", *["0"] * 61, "1", "2"])
    report = zcore.verify(tmp_path / "a.zarr")
    assert report.ok and report.n_objects == 11      # the first one is all fill value
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert [problem.key for problem in zcore.verify(tmp_path / "a.zarr").problems] == [
        damaged.relative_to(tmp_path / "a.zarr").as_posix()]


def test_objects_outside_the_grid_are_left_over(array):
    key, file = an_object(array)
    array.resize(25, 37)
    assert zcore.verify(array.store.path).ok
    grid = array.metadata.grid_shape
    outside = array.metadata.chunk_keys.encode((grid[0], 0))
    os.makedirs(os.path.dirname(os.path.join(array.store.path, outside)), exist_ok=True)
    shutil.copy(file, os.path.join(array.store.path, outside))
    assert found(array.store.path) == {("left-over", outside)}
    report = zcore.verify(array.store.path, repair=True)
    assert report.n_removed == 1 and report.ok
    assert zcore.verify(array.store.path).ok and os.path.exists(file)


@pytest.mark.parametrize("name", [".__zc_tmp.0123", f"0.{'a' * 32}.partial", "0.x1_y2zz8.partial", "0.__lock", "0#1"])
def test_temporary_files(array, name):
    _, file = an_object(array)
    if not name.startswith("."):
        name = os.path.basename(file) + name[1:]
    left = os.path.join(os.path.dirname(file), name)
    with open(left, "wb") as opened:
        opened.write(b"part")
    assert {kind for kind, _ in found(array.store.path)} == {"left-over"}
    if name.startswith(".__zc"):
        report = zcore.verify(array.store.path, repair=True)
        assert not report.ok and os.path.exists(left)       # its writer may be alive
        os.utime(left, (1e9, 1e9))
    report = zcore.verify(array.store.path, repair="left-over")
    assert report.ok and report.n_removed == 1 and not os.path.exists(left)
    assert zcore.verify(array.store.path).ok


def test_foreign_files(array):
    base = array.store.path
    with open(os.path.join(base, "README"), "wb") as opened:
        opened.write(b"hello")
    _, file = an_object(array)
    for name in (file + "~", os.path.join(base, "notes#1")):
        with open(name, "wb") as opened:
            opened.write(b"hello")
    foreign = {("foreign", "README"), ("foreign", os.path.relpath(file, base) + "~"), ("foreign", "notes#1")}
    assert found(base) == foreign
    report = zcore.verify(base, repair=True)
    assert report.n_removed == 0 and os.path.exists(file + "~")
    assert zcore.verify(base, repair=("foreign", "left-over")).n_removed == 3
    assert zcore.verify(base).ok and np.array_equal(array[...], VALUES)


def test_a_folder_that_is_no_node_keeps_its_files(tmp_path):
    """They were removed, because stores lie below the folder."""
    zcore.create_group(tmp_path / "far/below/s").create_group("g")
    mine, foreign = ["photo.jpg", ".hidden", "photos/2016/1.jpg", "far/notes.txt"], ["notes.txt", "g/d/e"]
    for name in (*mine, *[f"far/below/s/{name}" for name in foreign]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    report = zcore.verify(tmp_path, repair="foreign")
    assert report.by_kind == {"foreign": 6} and report.n_removed == 2 and not report.ok
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()) == sorted(
        [*mine, "far/below/s/zarr.json", "far/below/s/g/zarr.json"])


def test_a_socket_is_foreign(tmp_path, monkeypatch):
    zcore.create_array(tmp_path / "a", data=VALUES)
    monkeypatch.chdir(tmp_path)      # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("a/s")
        assert found(tmp_path / "a") == {("foreign", "s")}


def test_a_directory_without_a_node_is_one_problem(tmp_path):
    group = zcore.create_group(tmp_path / "h")
    group.create_array("a", data=VALUES, chunks=(10, 10))
    group.create_group("deep")
    os.unlink(tmp_path / "h" / "a" / "zarr.json")
    (tmp_path / "h" / "between" / "b").mkdir(parents=True)
    zcore.create_array(tmp_path / "h" / "between" / "b", data=VALUES)
    report = zcore.verify(tmp_path / "h")
    assert [problem[:2] for problem in report.problems] == [("foreign", "a/")] and "20 objects" in repr(report)
    assert report.n_arrays == 1
    zcore.verify(tmp_path / "h", repair="foreign")
    assert not (tmp_path / "h" / "a").exists() and zcore.verify(tmp_path / "h").ok


# documents

def test_a_wrong_document(array):
    document = os.path.join(array.store.path, array._binding.document)
    change(document, lambda raw: raw.__setitem__(slice(None), raw.replace(b"37", b"-7")))
    assert found(array.store.path) == {("wrong document", array._binding.document)}
    zcore.verify(array.store.path, repair=("foreign", "left-over", "damaged"))
    change(document, lambda raw: raw.__setitem__(slice(None), raw.replace(b"-7", b"37")))
    assert np.array_equal(zcore.open(array.store.path)[...], VALUES)     # nothing of it was removed


def test_documents_that_are_no_json_and_attributes_that_are_none(tmp_path):
    group = zcore.create_group(tmp_path / "h", zarr_format=2)
    for name in "abc":
        group.create_array(name, data=VALUES, attributes={"x": 1})
    (tmp_path / "h" / "a" / ".zarray").write_bytes(b"{")
    (tmp_path / "h" / "b" / ".zattrs").write_bytes(b"[]")
    assert found(tmp_path / "h") == {("wrong document", "a/.zarray"), ("wrong document", "b/.zattrs")}


def test_a_codec_that_is_not_known(tmp_path):
    zcore.create_array(tmp_path / "a", data=VALUES)
    change(tmp_path / "a" / "zarr.json", lambda raw: raw.__setitem__(slice(None), raw.replace(b'"blosc"', b'"bloss"')))
    assert found(tmp_path / "a") == {("unreadable", "zarr.json")}


# copies

@pytest.fixture(params=[3, 2])
def hierarchy(request, tmp_path):
    group = zcore.create_group(tmp_path / "h", zarr_format=request.param, attributes={"x": float("nan")}
                               if request.param == 2 else {"x": 1})
    group.create_array("a", data=VALUES, attributes={"unit": "m"})
    group.create_array("deep/b", data=VALUES)
    zcore.consolidate_metadata(tmp_path / "h")
    assert zcore.verify(tmp_path / "h").ok
    return group, tmp_path / "h", "zarr.json" if request.param == 3 else ".zmetadata"


def test_stale_copies(hierarchy):
    group, base, document = hierarchy
    stale = {("stale copy", document)}
    # Programs that do not drop the copy.
    attributes = base / "a" / (".zattrs" if group.zarr_format == 2 else "zarr.json")
    kept = attributes.read_bytes()
    change(attributes, lambda raw: raw.__setitem__(slice(None), raw.replace(b'"m"', b'"k"')))
    assert found(base) == stale
    attributes.write_bytes(kept)
    assert zcore.verify(base).ok
    shutil.copytree(base / "a", base / "deep" / "new")
    assert found(base) == stale
    shutil.rmtree(base / "deep" / "new")
    shutil.rmtree(base / "deep" / "b")
    assert found(base) == stale
    report = zcore.verify(base, repair="stale copy")
    assert report.ok and zcore.verify(base).ok
    assert zcore.open_group(base)["a"].attrs["unit"] == "m"


def test_a_copy_of_other_attributes_of_the_group(tmp_path):
    zcore.create_group(tmp_path / "h", zarr_format=2, attributes={"x": 1})
    zcore.consolidate_metadata(tmp_path / "h")
    change(tmp_path / "h" / ".zattrs", lambda raw: raw.__setitem__(slice(None), raw.replace(b"1", b"2")))
    assert found(tmp_path / "h") == {("stale copy", ".zmetadata")}


@pytest.mark.parametrize("make_store", [
    zcore.DirectoryStore, lambda path: zcore.MemoryStore(),
    lambda path: zcore.RemoteStore(pytest.importorskip("obstore").store.MemoryStore()),
], ids=["directory", "memory", "service"])
def test_a_reference_set_beside_a_group_is_no_copy(tmp_path, make_store):
    """Its document has the name of a copy. Nothing that drops copies takes the references away."""
    text = ('{"metadata": {".zgroup": {"zarr_format": 2}, "a/.zarray": {"zarr_format": 2, "shape": [4], "chunks": [4], '
            '"dtype": "<i4", "fill_value": 0, "order": "C", "compressor": null, "filters": null}}, "record_size": 10}')
    store = make_store(tmp_path)
    store.set(".zmetadata", text.encode())
    store.set(".zgroup", b'{"zarr_format": 2}')
    store.set("a/refs.0.parq", b"PAR1")
    zcore.open_group(store, mode="r+", use_consolidated=False).create_array("b", data=VALUES)
    assert found(store) == {("wrong document", ".zmetadata"), ("foreign", "a/")}
    report = zcore.verify(store, repair=["foreign", "stale copy"])
    assert report.n_removed == 0 and not report.ok
    with pytest.raises(zcore.StoreError, match="Parquet"):
        zcore.consolidate_metadata(store)
    assert store.get(".zmetadata") == text.encode() and store.exists("a/refs.0.parq")


@pytest.mark.parametrize(("made", "kept"), [
    ("array", {("foreign", "n/.zmetadata"), ("foreign", "n/x/refs.0.parq")}),
    ("group", {("foreign", "n/.zmetadata"), ("foreign", "n/x/")}),
    (None, {("foreign", "n/")}),
], ids=["beside an array", "beside a group", "alone"])
@pytest.mark.parametrize("make_store", [zcore.DirectoryStore, lambda path: zcore.MemoryStore()],
                         ids=["directory", "memory"])
def test_a_reference_set_is_never_removed_as_foreign(tmp_path, make_store, made, kept):
    """It holds data. A file that belongs to nothing, elsewhere, is removed."""
    store = make_store(tmp_path)
    group = zcore.create_group(store)
    if made:
        (group.create_group("n") if made == "group" else group.create_array("n", shape=4, dtype="i4"))
    store.set("n/.zmetadata", b'{"metadata": {".zgroup": {"zarr_format": 2}}, "record_size": 10}')
    store.set("n/x/refs.0.parq", b"PAR1")
    store.set("README", b"text")
    assert zcore.verify(store, repair="foreign").n_removed == 1
    assert found(store) == kept and not store.exists("README") and store.exists("n/x/refs.0.parq")


def test_a_copy_with_a_member_of_reference_sets_is_dropped(tmp_path):
    group = zcore.create_group(tmp_path / "h", zarr_format=2)
    group.create_array("a", data=VALUES)
    zcore.consolidate_metadata(tmp_path / "h")
    change(tmp_path / "h" / ".zmetadata", lambda raw: raw.__setitem__(slice(0, 1), b'{"record_size": 10, '))
    group.create_array("b", data=VALUES)
    assert not (tmp_path / "h" / ".zmetadata").exists() and zcore.verify(tmp_path / "h").ok


BAD_MEMBERS = {
    3: [{"x": 5}, {"": {}}, {"../x": {}}, {"q/r": {"node_type": "group"}},
        {"z": {"zarr_format": 3, "node_type": "group"}}, {"a": {"zarr_format": 3, "node_type": "array"}}],
    2: [{"x/.zgroup": 5}, {"../.zgroup": {}}, {".zgroup": 5}, {"z/.zgroup": {"zarr_format": 2}}, {"a/.zarray": {}},
        {".zarray": {}}],
}


@pytest.mark.parametrize("zarr_format, member", [(key, one) for key, many in BAD_MEMBERS.items() for one in many])
def test_a_copy_with_wrong_members(tmp_path, zarr_format, member):
    """A copy whose paths are no hierarchy was no problem at all, one that cannot be read could not be repaired."""
    group = zcore.create_group(tmp_path / "h", zarr_format=zarr_format)
    group.create_group("x")
    group.create_array("a", data=VALUES)
    zcore.consolidate_metadata(tmp_path / "h")
    name = "zarr.json" if zarr_format == 3 else ".zmetadata"
    document = json.loads((tmp_path / "h" / name).read_text())
    copy = document["consolidated_metadata"] if zarr_format == 3 else document
    copy["metadata"].update(member)
    (tmp_path / "h" / name).write_text(json.dumps(document))
    assert found(tmp_path / "h") == {("stale copy", name)}
    (path,) = member
    path = path.rpartition("/")[0] if zarr_format == 2 else path
    assert all(repr(path)[1:-1] in problem.what for problem in zcore.verify(tmp_path / "h").problems)
    assert not zcore.verify(tmp_path / "h", repair=("left-over", "foreign")).ok
    assert zcore.verify(tmp_path / "h", repair="stale copy").ok
    assert found(tmp_path / "h") == set()
    if zarr_format == 3:
        del document["consolidated_metadata"]
        assert json.loads((tmp_path / "h" / name).read_text()) == document
    else:
        assert not (tmp_path / "h" / name).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"zarr_consolidated_format": 1, "metadata": 7}'])
def test_a_copy_that_cannot_be_read(tmp_path, text):
    zcore.create_group(tmp_path / "h", zarr_format=2).create_group("x")
    (tmp_path / "h" / ".zmetadata").write_text(text)
    assert found(tmp_path / "h") == {("stale copy", ".zmetadata")}
    assert zcore.verify(tmp_path / "h", repair="stale copy").ok
    assert found(tmp_path / "h") == set() and not (tmp_path / "h" / ".zmetadata").exists()


def test_a_copy_that_was_replaced_meanwhile_stays(hierarchy, at):
    """Here it was replaced after the last look."""
    _, base, document = hierarchy
    right = (base / document).read_bytes()
    wrong = json.loads(right)
    (wrong.get("consolidated_metadata") or wrong)["metadata"].popitem()
    (base / document).write_text(json.dumps(wrong))
    at("remove", lambda: (base / document).write_bytes(right))
    report = zcore.verify(base, repair="stale copy")
    assert report.by_kind.keys() == {"stale copy"} and report.n_removed == 0 and not report.ok
    assert (base / document).read_bytes() == right and zcore.verify(base).ok


# the call

def test_an_older_format_is_named():
    with pytest.raises(zcore.UnsupportedError, match="is a Zarr v1 node"):
        zcore.verify(zcore.MemoryStore({"meta": b'{"zarr_format": 1}', "attrs": b"{}"}))


def test_nothing_there(tmp_path):
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.verify(tmp_path / "none")
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.verify(zcore.MemoryStore())


def test_a_part_of_a_hierarchy(tmp_path):
    group = zcore.create_group(tmp_path / "h")
    a = group.create_array("x/a", data=VALUES, chunks=(10, 10))
    b = group.create_array("y/b", data=VALUES, chunks=(10, 10))
    for array in (a, b):
        change(an_object(array)[1], lambda raw: raw.clear())
    assert found(tmp_path / "h", path="y") == {("truncated", "y/b/c/0/0")}
    assert found(group["y"]) == found(group, path="y/b") == {("truncated", "y/b/c/0/0")}


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), FileNotFoundError(2, "No such file")])
def test_a_temporary_file_that_cannot_be_removed_is_told(tmp_path, monkeypatch, error):
    """It was an error of the system, without the name of the store. If the file is gone, its writer has removed it."""
    zcore.create_array(tmp_path / "x", data=[1, 2])
    left = tmp_path / "x" / f".__zc_tmp.{'0' * 24}"
    left.write_bytes(b"")
    os.utime(left, (1e9, 1e9))

    def unlink(path, **_):
        raise error

    monkeypatch.setattr(os, "unlink", unlink)
    if error.errno == 2:
        assert not zcore.verify(tmp_path / "x", repair=True).n_removed
        return
    with pytest.raises(zcore.StoreError, match=f"cannot remove '{left.name}' of .*/x.*Permission denied") as told:
        zcore.verify(tmp_path / "x", repair=True)
    assert told.value.errno == 13 and told.value.key == left.name


def test_repair_is_told_what(tmp_path):
    zcore.create_array(tmp_path / "a", data=VALUES)
    for wrong in ("wrong document", "all", ["left-over", "unreachable"]):
        with pytest.raises(ValueError, match="repair"):
            zcore.verify(tmp_path / "a", repair=wrong)
    with pytest.raises(zcore.ReadOnlyError):
        zcore.verify(zcore.DirectoryStore(tmp_path / "a", read_only=True), repair=True)


def test_damaged_objects_are_removed_only_when_they_are_named(array):
    key, file = an_object(array)
    change(file, lambda raw: raw.clear())
    assert not zcore.verify(array.store.path, repair=True).ok and os.path.exists(file)
    assert zcore.verify(array.store.path, repair=("damaged", "truncated")).ok and not os.path.exists(file)
    assert zcore.verify(array.store.path).ok


def test_progress(array):
    told = []
    zcore.verify(array.store.path, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (VALUES.nbytes, VALUES.nbytes) and told == sorted(told)


def test_an_array_that_changes_meanwhile_is_verified_again(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10))
    changes = iter([(30, 37), (50, 37)])

    def change_it(done, total):
        shape = next(changes, None)
        if shape is not None:
            array.resize(shape)

    report = zcore.verify(tmp_path / "a", progress=change_it)
    assert report.ok


def test_objects_that_are_read_by_another_document_do_not_count(tmp_path):
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(10, 10))
    zcore.open(tmp_path / "a", mode="r+").attrs["unit"] = "m"
    tasks = np.arange(np.prod(array._binding.metadata.grid_shape))
    with pytest.raises(decoded.Changed):
        decoded.read_objects(array._binding, tasks, pytest.fail, lambda n_bytes: None)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_crc_of_members_is_compared(tmp_path, method):
    """The codecs of this array have no checksum, so that its chunks are decoded whatever they hold."""
    with zcore.ZipStore(tmp_path / "x.zip", mode="w", compression=method) as store:
        group = zcore.create_group(store)
        group.create_array("a/b", data=np.arange(40, dtype="u1"), chunks=(10,), compressors=None, checksum=False)
        zcore.create_array(store, name="z", data=np.arange(4), compressors=None)     # with a checksum
    raw = bytearray((tmp_path / "x.zip").read_bytes())
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        for key in ("a/b/c/2", "z/c/0"):
            info = archive.getinfo(key)
            # In the directory; the header before the bytes has the same, which is compared when the archive is opened.
            for at in (info.header_offset + 14, _entry(raw, key) + 16):
                raw[at] ^= 1
    (tmp_path / "x.zip").write_bytes(raw)
    report = zcore.verify(tmp_path / "x.zip")
    found = {problem.key: problem for problem in report.problems}
    assert len(report.problems) == 2 and set(found) == {"a/b/c/2", "z/c/0"} and report.by_kind == {"damaged": 2}
    assert found["a/b/c/2"].path == "a/b" and found["z/c/0"].path == "z"
    expected = zlib.crc32(bytes(range(20, 30)))
    assert f"has CRC {expected:#010x}, the archive says {expected ^ 1:#010x}" in found["a/b/c/2"].what
    assert not zcore.verify(tmp_path / "x.zip", path="a").ok and len(zcore.verify(
        tmp_path / "x.zip", path="a").problems) == 1


def _entry(raw, key):
    """Return the offset of an entry in the directory of an archive."""
    return raw.index(key.encode(), raw.index(b"PK\x01\x02")) - 46


def test_a_damaged_document_of_an_archive_is_reported_once(tmp_path):
    with zcore.ZipStore(tmp_path / "x.zip", mode="w") as store:
        zcore.create_group(store).create_group("g")
    raw = bytearray((tmp_path / "x.zip").read_bytes())
    raw[raw.index(b"zarr_format", raw.index(b"g/zarr.json"))] ^= 1
    (tmp_path / "x.zip").write_bytes(raw)
    assert [problem.key for problem in zcore.verify(tmp_path / "x.zip").problems] == ["g/zarr.json"]


# another process at work

@pytest.fixture
def at(monkeypatch):
    """Return a function that has something done once, before a step of the verification."""
    def do(moment, change):
        verification = importlib.import_module("zcore.tools.verify.verify")._Verification
        owner = repair if hasattr(repair, moment) else verification
        done = getattr(owner, moment)
        monkeypatch.setattr(owner, moment, lambda *arguments: (
            monkeypatch.setattr(owner, moment, done), change(), done(*arguments))[-1])

    return do


# A key of each is foreign to the other.
FLAT, DEEP = {"data": np.arange(40), "chunks": 10}, {"data": VALUES, "chunks": (10, 10)}
OTHERS = [(FLAT, DEEP), (DEEP, FLAT), (DEEP, {**DEEP, "zarr_format": 2}), ({**DEEP, "zarr_format": 2}, FLAT),
          (DEEP, {**DEEP, "zarr_format": "zmeta"}), ({"shape": 40, "chunks": 10, "dtype": "i4"}, DEEP)]


@pytest.mark.thinned(2, "old", "moment", "path", "repair")
@pytest.mark.parametrize("path, repair", [("x", False), ("", ("foreign", "left-over", "damaged", "truncated"))])
@pytest.mark.parametrize("moment", ["_list_objects", "look_again", "remove"])
@pytest.mark.parametrize("old, new", OTHERS)
def test_an_array_that_is_overwritten_meanwhile(tmp_path, at, old, new, path, moment, repair):
    """The chunks of the new one are no foreign objects, and none is removed."""
    if new.get("zarr_format") != "zmeta":
        zcore.create_group(tmp_path)
    zcore.create_array(tmp_path, name="x", **old)
    at(moment, lambda: zcore.create_array(tmp_path, name="x", overwrite=True, **new))
    report = zcore.verify(tmp_path, path=path, repair=repair)
    assert report.ok and not report.problems and report.n_arrays == 1
    assert np.array_equal(zcore.open_array(tmp_path, path="x")[...], new["data"]) and zcore.verify(tmp_path).ok
    if moment == "_list_objects":
        assert report.n_objects == (4 if new is FLAT else 20)


def test_foreign_objects_that_belong_to_an_array_by_now_stay(tmp_path, at):
    """Here they were noted before it came, and it came after the last look."""
    zcore.create_group(tmp_path)
    zcore.create_array(tmp_path, name="x", **DEEP)
    (tmp_path / "y" / "c").mkdir(parents=True)
    (tmp_path / "y" / "c" / "0").write_bytes(b"1")
    (tmp_path / "x" / "c" / "0" / "0").unlink()
    (tmp_path / "x" / "c" / "0" / "0").mkdir()
    (tmp_path / "x" / "c" / "0" / "0" / "0").write_bytes(b"1")

    def create():
        zcore.create_array(tmp_path, name="x", data=np.ones((2, 2, 2)), overwrite=True)
        zcore.create_array(tmp_path, name="y", data=np.arange(4), overwrite=True)

    at("remove", create)
    report = zcore.verify(tmp_path, repair="foreign")
    assert report.by_kind == {"foreign": 2} and report.n_removed == 0
    assert (zcore.open(tmp_path)["x"][...] == 1).all()
    assert zcore.open(tmp_path)["y"][...].tolist() == [0, 1, 2, 3] and zcore.verify(tmp_path).ok


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_foreign_object_of_a_group_that_is_replaced_by_an_array(tmp_path, at, zarr_format):
    name = {3: "c/0", 2: "0"}[zarr_format]
    zcore.create_group(tmp_path, zarr_format=zarr_format)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"1")
    at("remove", lambda: zcore.create_array(tmp_path, data=[7], overwrite=True, zarr_format=zarr_format))
    report = zcore.verify(tmp_path, repair="foreign")
    assert report.by_kind == {"foreign": 1} and report.n_removed == 0 and zcore.open(tmp_path)[0] == 7


@pytest.mark.parametrize("change", ["write", "overwrite", "another type", "delete"])
def test_a_damaged_object_that_is_written_again_stays(tmp_path, at, change):
    array = zcore.create_array(tmp_path, **FLAT)
    _, file = an_object(array)
    damaged = b"damaged"
    with open(file, "wb") as opened:
        opened.write(damaged)

    def replace():
        if change == "write":
            array[:10] = 7
        elif change == "delete":
            shutil.rmtree(tmp_path)
        else:
            zcore.create_array(tmp_path, data=np.full(40, 7, "u1" if change == "another type" else "i8"), chunks=10,
                               overwrite=True)

    at("remove", replace)
    report = zcore.verify(tmp_path, repair=("damaged", "truncated"))
    assert len(report.problems) == 1 and report.n_removed == 0 and not report.ok
    if change != "delete":
        assert set(zcore.open(tmp_path)[:10].tolist()) == {7}


def test_objects_outside_the_grid_of_an_array_that_is_overwritten(tmp_path, at):
    array = zcore.create_array(tmp_path, **FLAT)
    shutil.copy(an_object(array)[1], tmp_path / "c" / "7")
    at("remove", lambda: zcore.create_array(tmp_path, data=np.arange(80), chunks=10, overwrite=True))
    report = zcore.verify(tmp_path, repair=True)
    assert report.by_kind == {"left-over": 1} and report.n_removed == 0
    assert zcore.open(tmp_path)[...].tolist() == list(range(80))


@pytest.mark.parametrize("where", ["the object", "the lock"])
def test_a_disk_that_fails_before_the_repair(tmp_path, at, monkeypatch, where):
    """A damaged object that could not be read again stayed, and nothing said so; a lock was an error of Python."""
    array = zcore.create_array(tmp_path, data=VALUES, chunks=(10, 10))
    _, file = an_object(array)
    for path in (file, tmp_path / "README"):
        with open(path, "wb") as opened:
            opened.write(b"damaged")
    if where == "the object":
        def fail():
            os.unlink(file)
            os.symlink(tmp_path / "nowhere", file)

        at("remove", fail)
    else:
        def fails(*args, **keywords):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr("zcore.hierarchy.creation_lock.open_descriptor", fails)
        assert found(tmp_path) == {("truncated", "c/0/0"), ("foreign", "README")}
    with pytest.raises(zcore.StoreError, match="nowhere" if where == "the object" else "cannot write in .*: Input"):
        zcore.verify(tmp_path, repair=("damaged", "truncated", "foreign"))
    assert os.path.lexists(file)


@pytest.mark.parametrize("lock", [True, "file"])
@pytest.mark.parametrize("path", ["", "x/y"])
def test_chunks_of_an_array_that_is_being_created_are_not_foreign(tmp_path, path, lock):
    """Its document comes last. Its creator holds its directory meanwhile."""
    zcore.create_group(tmp_path, path=path)
    name, reports = f"{path}/z".lstrip("/"), []

    class Watched(zcore.DirectoryStore):
        """A store that is verified before the document is written."""

        def set_at(self, directory, key, value):
            reports.append(zcore.verify(tmp_path))
            super().set_at(directory, key, value)

    os.mkdir(tmp_path / name)     # else the array is made beside its place
    zcore.create_array(Watched(tmp_path), name=name, data=np.arange(40), chunks=10, lock=lock)
    # A temporary file of a living writer is one of a killed one, until it is older.
    assert [{*report.by_kind} - {"left-over"} for report in reports] == [set()] and zcore.verify(tmp_path).ok


def test_a_copy_of_metadata_that_is_dropped_meanwhile_is_not_stale(tmp_path, at):
    """Writers drop it before they change what it describes."""
    group = zcore.create_group(tmp_path)
    group.create_array("x", **FLAT)
    zcore.consolidate_metadata(tmp_path)
    at("documents_of", lambda: at("_binding", lambda: group["x"].attrs.__setitem__("a", 1)))
    report = zcore.verify(tmp_path)
    assert report.ok and not report.problems and report.n_arrays == 1


def test_a_malformed_file_of_references_is_reported_and_the_others_are_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    document = {"zarr_format": 2, "shape": [10], "chunks": [5], "dtype": "<i4", "compressor": None, "fill_value": 0,
                "order": "C", "filters": None}
    (tmp_path / "f.bin").write_bytes(bytes(40))
    place = tmp_path / "p.parq"
    for name, offset in (("x", -1), ("y", 30)):
        os.makedirs(place / name)
        rows = {"path": ["f.bin"] * 2, "offset": [0, offset], "size": [20] * 2,
                "raw": pyarrow.array([None] * 2, pyarrow.binary())}
        parquet.write_table(pyarrow.table(rows), place / name / "refs.0.parq")
    (place / ".zmetadata").write_text(json.dumps({"record_size": 10, "metadata": {
        ".zgroup": {"zarr_format": 2}, "x/.zarray": document, "y/.zarray": document}}))
    # The paths in the set are relative to the folder that it lies in.
    report = zcore.verify(zcore.ReferenceStore(place, base=str(tmp_path)))
    assert [(problem.kind, problem.key) for problem in report.problems] == [
        ("wrong document", "x/refs.0.parq"), ("unreachable", "y/1")]
    assert "row 1: expected an offset from 0 on, found -1" in str(report)
    assert report.n_arrays == 2


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_line_has_the_key_once(tmp_path, zarr_format):
    group = zcore.create_group(tmp_path, zarr_format=zarr_format)
    for name in "pqr":
        group.create_array(f"g/{name}", data=np.arange(1, 9), chunks=4)
    document, chunk = {3: ("zarr.json", "c/1"), 2: (".zarray", "1")}[zarr_format]
    (tmp_path / "g/p" / document).write_text("{")
    (tmp_path / "g/q" / chunk).write_bytes(b"zz")
    raw = (tmp_path / "g/r" / document).read_text()
    (tmp_path / "g/r" / document).write_text(raw.replace("blosc", "blosk").replace("zstd", "zstk"))
    if zarr_format == 2:
        (tmp_path / "g/q/.zattrs").write_text("[]")
    found = {problem.key: problem.what for problem in zcore.verify(tmp_path).problems}
    assert set(found) >= {f"g/p/{document}", f"g/q/{chunk}", f"g/r/{document}"}
    for key, what in found.items():
        assert not what.startswith((str(tmp_path), key, f"{key.removeprefix('g/')[2:]}: ")), (key, what)
