"""What is there and cannot be reached is never taken for absent, nor removed as foreign, by any call that lists."""
import functools
import os
import shutil
import stat
import sys
import traceback

import numpy as np
import pytest

import zcore
from zcore.cli.verbs.nodes import ls
from zcore.engine.options import Options
from zcore.hierarchy import deletion, lookup
from zcore.tools.copy import transfer

VALUES = np.arange(1, 25, dtype="i4").reshape(4, 6)
FORMATS = {
    3: {"zarr_format": 3},
    "points": {"zarr_format": 3, "chunk_key_encoding": {"name": "default", "separator": "."}},
    2: {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "sharded": {"zarr_format": 3, "shards": (2, 6)},
}
CHUNK = {3: "c/1/1", "points": "c.1.1", 2: "1/1", "sharded": "c/1/0"}
FOLDERS = {3: ("c", "c/1"), "points": (), 2: ("1",), "sharded": ("c", "c/1")}
DOCUMENT = {3: "zarr.json", "points": "zarr.json", 2: ".zarray", "sharded": "zarr.json"}


@pytest.fixture(params=FORMATS)
def form(request):
    return request.param


@pytest.fixture(params=["plain", "confined"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path / "h", confined=request.param == "confined")


@pytest.fixture
def group(store, form):
    """A group with the array "a" and another member."""
    keywords = FORMATS[form]
    group = zcore.create_group(store, zarr_format=keywords["zarr_format"])
    group.create_array("a", data=VALUES, chunks=(2, 3), fill_value=0, **keywords)
    group.create_array("z/b", data=VALUES, chunks=(2, 3), **keywords)
    return group


def away(store, key, target="nowhere"):
    """Put what a key names out of reach: it is moved away, and a link to nowhere stands in its place."""
    path = os.path.join(store.path, key)
    if target == "fifo":
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        os.mkfifo(path)
        return path
    os.rename(path, os.path.join(store.path, "..", "away"))
    # In a confined store a link out of it is as unreachable, wherever it leads.
    os.symlink(os.path.join(store.path, "..", "away") if store.confined else target, path)
    return path


def back(store, path):
    os.unlink(path)
    os.rename(os.path.join(store.path, "..", "away"), path)


def refuses(match, *calls):
    for call in calls:
        with pytest.raises(zcore.StoreError, match=match) as caught:
            call()
        assert caught.value.key and "\n" not in str(caught.value)


def problems(store, **keywords):
    report = zcore.verify(store, **keywords)
    return {problem[:2] for problem in report.problems}, report


def tools(store, target):
    """Return what takes all of a group over to another place, and what takes the array "a"."""
    def slabs():
        return zcore.copy(store, zcore.MemoryStore(), path="a", chunks=(4, 6), zarr_format=3)

    return (lambda: zcore.copy(store, zcore.MemoryStore()), lambda: zcore.copy(store, target / "copy"),
            lambda: zcore.copy(store, zcore.MemoryStore(), path="a"), slabs,
            lambda: zcore.references(store), lambda: zcore.references(store, path="a"))


@pytest.mark.thinned(2, "store", "form", "kind")
@pytest.mark.parametrize("kind", ["nowhere", "fifo", "/dev/null"])
def test_a_chunk(group, form, kind, tmp_path):
    """It is listed, counted, and an error to whoever wants its bytes; no repair takes it away."""
    store, key = group.store, f"a/{CHUNK[form]}"
    path = away(store, key, kind)
    array = group["a"]
    assert array.nchunks_initialized == 4 and key in store.list_prefix("a/")
    refuses(CHUNK[form], lambda: array[...], array.nbytes_stored, *tools(store, tmp_path))
    assert not os.path.exists(tmp_path / "copy")
    assert problems(store, repair=("left-over", "foreign", "damaged", "truncated"))[0] == {("unreachable", key)}
    assert os.path.lexists(path)
    assert list(group) == ["a", "z"]
    assert list(zcore.consolidate_metadata(store).members(None))     # has no chunks
    if kind == "nowhere":
        del group["a"]
        assert not os.path.lexists(path) and list(group) == ["z"]


def files_below(base):
    """Return all names below a directory, with the bytes of files."""
    return {path: path.read_bytes() if path.is_file() else path.lstat().st_mode for path in base.rglob("*")}


@pytest.mark.thinned(2, "store", "form", "what")
@pytest.mark.parametrize("what", ["chunk", "directory", "attributes"])
def test_a_fifo_is_refused_before_anything_is_deleted(group, form, what, tmp_path):
    store = group.store
    keys = {"chunk": CHUNK[form], "directory": (*FOLDERS[form], None)[0],
            "attributes": ".zattrs" if form == 2 else None}
    if keys[what] is None:
        pytest.skip("the format has none")
    if what == "attributes":
        store.set("a/.zattrs", b"{}")
    group.create_array("0", data=VALUES)     # deleted before "a"
    away(store, f"a/{keys[what]}", "fifo")
    before = files_below(tmp_path / "h")
    create = functools.partial(zcore.create_array, store, shape=(4, 6), chunks=(2, 3), dtype="i4", overwrite=True,
                               **FORMATS[form])
    refuses(keys[what], lambda: group.__delitem__("a"), lambda: create(name="a"), lambda: create(name=""),
            lambda: zcore.create_group(store, overwrite=True, zarr_format=group.zarr_format),
            *[lambda: group["a"].resize(1, 6), lambda: group["a"].resize(3, 6)] * (what == "chunk"))
    assert files_below(tmp_path / "h") == before


@pytest.mark.parametrize("key", ["__zdata__", "__zdata__/1.1.blosc", "__zattr__"])
def test_a_fifo_in_the_oldest_format_is_refused_before_anything_is_deleted(store, key, tmp_path):
    zcore.create_array(store, name="a", data=VALUES, chunks=(2, 3), zarr_format="zmeta", attributes={"x": 1})
    away(store, f"a/{key}", "fifo")
    before = files_below(tmp_path / "h")
    refuses(key, lambda: zcore.create_array(store, name="a", data=VALUES, zarr_format="zmeta", overwrite=True),
            lambda: deletion.delete(store, "a", Options()))
    assert files_below(tmp_path / "h") == before


@pytest.mark.parametrize("key", ["c/1/1", "c/1"])
def test_a_fifo_that_a_lost_node_has_left_is_refused_before_nodes_are_deleted(store, key, tmp_path):
    """An array replaces a group, in whose directory a FIFO has the name of a chunk."""
    group = zcore.create_group(store)
    group.create_array("b", data=VALUES)
    os.makedirs(os.path.dirname(os.path.join(store.path, key)), exist_ok=True)
    os.mkfifo(os.path.join(store.path, key))
    before = files_below(tmp_path / "h")
    refuses(key, lambda: zcore.create_array(store, data=VALUES, chunks=(2, 3), overwrite=True))
    assert files_below(tmp_path / "h") == before
    zcore.create_array(store, data=VALUES.ravel(), chunks=3, chunk_key_encoding={"name": "default", "separator": "."},
                       overwrite=True)
    assert (zcore.open(store)[...] == VALUES.ravel()).all() and os.path.exists(os.path.join(store.path, key))


def test_a_fifo_behind_a_link_is_in_no_ones_way(tmp_path):
    """A link to a directory of chunks is removed, and what it leads to stays."""
    group = zcore.create_group(tmp_path / "h")
    group.create_array("a", data=VALUES, chunks=(2, 3))
    os.rename(tmp_path / "h/a/c", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", tmp_path / "h/a/c")
    os.unlink(tmp_path / "elsewhere/1/1")
    os.mkfifo(tmp_path / "elsewhere/1/1")
    del group["a"]
    assert list(group) == [] and (tmp_path / "elsewhere/1/1").is_fifo()


@pytest.mark.thinned(2, "store", "form", "kind")
@pytest.mark.parametrize("kind", ["nowhere", "fifo"])
def test_a_directory_of_chunks(group, form, kind, tmp_path):
    """Nobody can tell which chunks there are: to list them is an error."""
    store = group.store
    for folder in FOLDERS[form]:
        path = away(store, f"a/{folder}", kind)
        array = group["a"]
        refuses(folder, lambda: array[...], lambda: array.nchunks_initialized, *tools(store, tmp_path))
        found, report = problems(store, repair=("left-over", "foreign"))
        assert found == {("unreachable", f"a/{folder}")} and report.n_removed == 0 and not report.ok
        if kind == "fifo":
            assert stat.S_ISFIFO(os.stat(path).st_mode)
            return
        back(store, path)
        assert (array[...] == VALUES).all() and zcore.verify(store).ok
    for folder in FOLDERS[form][:1]:
        path = away(store, f"a/{folder}")
        del group["a"]
        assert list(group) == ["z"] and not os.path.lexists(path)
        assert len(list((tmp_path / "away").iterdir())) == (2 if folder == "c" or form != 3 else 1), "is not followed"


@pytest.mark.parametrize("key", ["__zdata__", "__zdata__/1.1.blosc", "__zmeta__", "__zattr__"])
def test_the_oldest_format(store, key, tmp_path):
    array = zcore.create_array(store, name="a", data=VALUES, chunks=(2, 3), fill_value=0, zarr_format="zmeta",
                               attributes={"x": 1})
    path = away(store, f"a/{key}")
    if key in ("__zdata__", "__zdata__/1.1.blosc"):
        refuses("__zdata__", lambda: array[...])
    refuses(key, lambda: zcore.copy(store, tmp_path / "copy", path="a"), lambda: zcore.references(store, path="a"))
    found, report = problems(store, repair=("left-over", "foreign"))
    assert found == {("unreachable", f"a/{key}")} and report.n_removed == 0 and os.path.islink(path)
    zcore.create_array(store, name="a", data=-VALUES, chunks=(2, 3), zarr_format="zmeta", overwrite=True)
    assert (zcore.open(store, path="a")[...] == -VALUES).all() and not os.path.islink(path)
    assert zcore.verify(store).ok and os.path.lexists(tmp_path / "away"), "is not followed"


def test_a_document(group, form, tmp_path):
    """The member is shown with its error, as one that is damaged; whatever takes members over refuses."""
    store, key = group.store, f"a/{DOCUMENT[form]}"
    path = away(store, key)
    assert list(group) == ["a", "z"] and [type(node).__name__ for _, node in group.walk()] == [
        "StoreError", "Group", "Array"]
    with pytest.warns(UserWarning, match="left out of the members"):
        assert [name for name, _ in group.members()] == ["z"]
    assert "a (StoreError)" in group.tree()
    refuses(DOCUMENT[form], lambda: group["a"], lambda: zcore.consolidate_metadata(store), *tools(store, tmp_path),
            lambda: deletion.delete(store, "a", Options()), lambda: group.create_array("a", shape=3, dtype="i4"))
    found, report = problems(store, repair=("left-over", "foreign"))
    assert found == {("unreachable", key)} and report.n_removed == 0 and report.n_arrays == 1
    assert os.path.lexists(path)
    group.create_array("a", data=-VALUES, chunks=(2, 3), overwrite=True, **FORMATS[form])
    assert (group["a"][...] == -VALUES).all() and os.path.isfile(path) and not os.path.islink(path)
    assert (tmp_path / "away").stat().st_size > 100, "it is not followed"


def test_attributes_in_a_document_of_their_own(tmp_path):
    group = zcore.create_group(tmp_path / "h", zarr_format=2, attributes={"x": 1})
    group.create_array("a", data=VALUES, attributes={"y": 1})
    away(group.store, "a/.zattrs")
    assert group["a"][...].tolist() == VALUES.tolist()
    refuses("zattrs", lambda: dict(group["a"].attrs), lambda: zcore.copy(group, zcore.MemoryStore()),
            lambda: zcore.references(group), lambda: zcore.consolidate_metadata(group.store))
    assert problems(tmp_path / "h", repair=("foreign", "left-over"))[0] == {("unreachable", "a/.zattrs")}


@pytest.mark.thinned(2, "store", "form", "target")
@pytest.mark.parametrize("target", ["nowhere", "m"], ids=["nowhere", "circle"])
def test_a_member(group, form, tmp_path, target):
    """A link that leads nowhere may be a node."""
    store = group.store
    os.rename(tmp_path / "h" / "a", tmp_path / "away")
    link = tmp_path / "h" / "m"
    link.symlink_to(target if not store.confined else tmp_path / "away")
    assert list(group) == ["m", "z"] and len(group) == 2
    assert [(name, type(node).__name__) for name, node in group.walk(0)] == [("m", "StoreError"), ("z", "Group")]
    assert "m (StoreError)" in group.tree()
    shown = [(name, type(node).__name__) for name, node in ls.listed(str(tmp_path / "h"), None)]
    assert shown[0] == ("m", "StoreError" if not store.confined else "Array")
    refuses("'m", lambda: group["m"], lambda: zcore.consolidate_metadata(store),
            lambda: zcore.copy(store, zcore.MemoryStore()), lambda: zcore.references(store))
    found, report = problems(store, repair=("left-over", "foreign", "stale copy"))
    assert found == {("unreachable", "m")} and report.n_removed == 0 and link.is_symlink()
    zcore.copy(store, tmp_path / "part", path="z")
    del group["m"]
    assert not link.is_symlink() and list(group) == ["z"] and (tmp_path / "away" / DOCUMENT[form]).exists()
    assert zcore.verify(store).ok


def test_a_group_goes_with_its_unreachable_members(group, tmp_path):
    link = tmp_path / "h" / "z" / "m"
    link.symlink_to("nowhere")
    assert next(lookup.members(group.store, "z")) == "z/b"
    del group["z"]
    assert not os.path.lexists(tmp_path / "h" / "z")


def test_a_copy_of_metadata_that_names_what_is_unreachable_is_not_stale(tmp_path):
    """It was made when the disk was there, and will be right again."""
    for zarr_format, document in ((3, "zarr.json"), (2, ".zarray")):
        place = tmp_path / str(zarr_format)
        group = zcore.create_group(place, zarr_format=zarr_format)
        group.create_array("g/a", shape=3, dtype="i4")
        group.create_array("g/b", shape=3, dtype="i4")
        zcore.consolidate_metadata(place)
        for name in ("g", f"g/a/{document}"):
            os.rename(place / name, tmp_path / "kept")
            (place / name).symlink_to("nowhere")
            found, report = problems(place, repair=("stale copy", "foreign", "left-over"))
            assert found == {("unreachable", name)} and report.n_removed == 0
            assert len(list(zcore.open_group(place, use_consolidated=True))) == 1
            with pytest.raises(zcore.StoreError):
                zcore.consolidate_metadata(place)
            assert zcore.open_group(place, use_consolidated=True).metadata.consolidated is not None or zarr_format == 2
            (place / name).unlink()
            os.rename(tmp_path / "kept", place / name)
            assert zcore.verify(place).ok


def test_a_stale_copy_beside_what_is_unreachable(tmp_path):
    """It is still found."""
    group = zcore.create_group(tmp_path, zarr_format=2, attributes={"x": 1})
    group.create_array("g/a", shape=3, dtype="i4")
    zcore.consolidate_metadata(tmp_path)
    (tmp_path / "g" / ".zgroup").unlink()
    (tmp_path / "g" / ".zgroup").symlink_to("nowhere")
    shutil.rmtree(tmp_path / "g" / "a")
    assert problems(tmp_path)[0] == {("unreachable", "g/.zgroup"), ("stale copy", ".zmetadata")}


def test_what_no_chunk_and_no_node_can_be_is_foreign(group, form, tmp_path):
    """A FIFO is no directory; of an array's directory the names of chunks are known."""
    base = tmp_path / "h"
    os.mkfifo(base / "fifo")
    os.mkfifo(base / "a" / "fifo")
    (base / "a" / "notes").symlink_to("nowhere")
    (base / "a" / "README").write_text("text")
    (base / "stuff").mkdir()
    os.mkfifo(base / "stuff" / "fifo")
    (base / "stuff" / "file").write_text("text")
    assert list(group) == ["a", "z"]
    zcore.consolidate_metadata(group.store)
    with pytest.warns(zcore.errors.IncompleteCopyWarning, match="no node: stuff$"):
        copy = zcore.copy(group, zcore.MemoryStore())
    for copied in (copy, zcore.open(zcore.references(group.store))):
        assert (copied["a"][...] == VALUES).all()
    expected = {("foreign", key) for key in ("fifo", "a/fifo", "a/notes", "a/README", "stuff/")}
    assert problems(group.store)[0] == expected
    assert problems(group.store, repair=True)[0] == expected and os.path.lexists(base / "fifo")
    found, report = problems(group.store, repair="foreign")
    assert found == expected and report.ok and zcore.verify(group.store).ok
    assert {"fifo", "stuff"}.isdisjoint(os.listdir(base)) and {"fifo", "notes"}.isdisjoint(os.listdir(base / "a"))


def test_a_repair_removes_nothing_with_what_is_unreachable_in_it(group, tmp_path):
    """A directory of no node in which a link leads nowhere, or cannot be listed, may hold one."""
    (tmp_path / "h" / "stuff" / "deep").mkdir(parents=True)
    (tmp_path / "h" / "stuff" / "file").write_text("text")
    (tmp_path / "h" / "stuff" / "deep" / "m").symlink_to("nowhere")
    found, report = problems(group.store, repair="foreign")
    assert found == {("foreign", "stuff/"), ("unreachable", "stuff/deep/m")} and report.n_removed == 0
    assert (tmp_path / "h" / "stuff" / "file").exists() and (tmp_path / "h" / "stuff" / "deep" / "m").is_symlink()


def test_a_repair_does_not_follow_links(tmp_path):
    """What lies behind them may belong to somebody else."""
    group = zcore.create_group(tmp_path / "h")
    group.create_array("a", data=VALUES, chunks=(2, 3))
    theirs = tmp_path / "theirs"
    (theirs / "sub").mkdir(parents=True)
    for name in ("file", "sub/file", "0.partial", f"zarr.json.{'a' * 32}.partial"):
        (theirs / name).write_text("text")
    (tmp_path / "h" / "stuff").symlink_to(theirs)
    (tmp_path / "h" / "a" / "notes").symlink_to(theirs)
    (tmp_path / "h" / "a" / "file").symlink_to(theirs / "file")
    before = sorted(os.listdir(theirs))
    report = zcore.verify(tmp_path / "h", repair=("left-over", "foreign"))
    assert {problem.kind for problem in report.problems} <= {"foreign", "left-over"} and not report.ok
    assert sorted(os.listdir(theirs)) == before and (theirs / "sub" / "file").exists()
    assert not os.path.lexists(tmp_path / "h" / "stuff"), "the link itself is in the store"
    assert not os.path.lexists(tmp_path / "h" / "a" / "file")


def test_an_object_outside_the_grid(tmp_path):
    """One that is unreachable is no left-over for a repair, but goes when the array gets another shape."""
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(2, 3))
    link = tmp_path / "a" / "c" / "9" / "9"
    link.parent.mkdir()
    link.symlink_to("nowhere")
    found, report = problems(array.store, repair=True)
    assert found == {("unreachable", "c/9/9")} and report.n_removed == 0 and link.is_symlink()
    copied = zcore.copy(array, tmp_path / "b")
    assert (copied[...] == VALUES).all()
    array.resize(40, 60)
    assert not os.path.lexists(link)


def test_large_objects_are_copied_by_the_system(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "_LARGE", 8)
    array = zcore.create_array(tmp_path / "a", data=VALUES, chunks=(2, 3))
    away(array.store, "c/1/1")
    refuses("c/1/1|away", lambda: zcore.copy(array, tmp_path / "b"))
    assert not os.path.exists(tmp_path / "b")


def test_sizes_that_cannot_be_told(tmp_path, capsys):
    from zcore.__main__ import main

    array = zcore.create_array(tmp_path / "g" / "a", data=VALUES, chunks=(2, 3))
    away(array.store, "c/1/1")
    assert main(["ls", "-l", str(tmp_path / "g")]) == 0
    assert "?" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "g" / "a")]) == 0
    assert "not known" in capsys.readouterr().out
    assert main(["info", "--chunks", str(tmp_path / "g" / "a")]) == 1
    assert "c/1/1" in capsys.readouterr().err


def test_new_groups_are_not_made_over_one_that_is_unreachable(tmp_path):
    group = zcore.create_group(tmp_path / "h")
    group.create_group("g")
    (tmp_path / "h" / "g" / "zarr.json").unlink()
    (tmp_path / "h" / "g" / "zarr.json").symlink_to("nowhere")
    refuses("g/zarr.json", lambda: group.create_array("g/a", shape=3, dtype="i4"))
    assert os.listdir(tmp_path / "h" / "g") == ["zarr.json"]


def test_left_overs_of_a_node_that_is_gone(tmp_path):
    """They would be errors of the new array."""
    for folder, key in (("c/1", "c/1/1"), ("", "c")):
        place = tmp_path / f"of {key.replace('/', '-')}"
        (place / folder).mkdir(parents=True)
        (place / key).symlink_to(tmp_path / "elsewhere")
        create = functools.partial(zcore.create_array, place, shape=(4, 6), chunks=(2, 3), dtype="i4", fill_value=7)
        refuses(key, create)
        assert (place / key).is_symlink()
        array = create(overwrite=True)
        assert (array[...] == 7).all() and not (place / key).is_symlink()


def as_nobody(call):
    """Run a function in a child that may not read everything, and return whether it returned."""
    if os.getuid():
        call()
        return
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            call()
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.fixture
def open_tmp_path(tmp_path):
    """A directory that others may walk to."""
    for path in (tmp_path, *tmp_path.parents):
        if not os.stat(path).st_mode & stat.S_IXOTH:
            if str(path).count("/") < 2:
                pytest.skip("others may not go there")
            os.chmod(path, 0o755)
    return tmp_path


@pytest.mark.parametrize("name", ["a/c/1/1", "a/c/1", "a/zarr.json", "a"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_without_permission(open_tmp_path, name):
    """EACCES is an answer of its own, too: of a file, of a directory of chunks, of a document, of a member."""
    base = open_tmp_path / "h"
    group = zcore.create_group(base)
    group.create_array("a", data=VALUES, chunks=(2, 3))
    group.create_array("b", data=VALUES)
    os.chmod(base / name, 0)

    def look():
        for place in (zcore.DirectoryStore(base, read_only=True),
                      zcore.DirectoryStore(base, read_only=True, confined=True)):
            group = zcore.open(place)
            assert list(group) == ["a", "b"]
            refuses("ermission", lambda: group["a"][...], lambda: zcore.copy(place, zcore.MemoryStore()))
            if name != "a/c/1/1":     # whose extent is known
                refuses("ermission", lambda: zcore.references(place))
            found, report = problems(place)
            assert {kind for kind, _ in found} == {"unreachable"} and report.n_arrays == 1 + ("c" in name)
            assert [key.rstrip("/") for _, key in found] == [name]

    try:
        as_nobody(look)
    finally:
        os.chmod(base / name, 0o700)
