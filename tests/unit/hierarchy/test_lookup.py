"""What stands at a place: an array that is another one than was asked for, and places where none can be."""
import itertools
import os
import socket
import stat
from functools import partial

import numpy as np
import pytest

import zcore
from zcore.hierarchy import creation_lock, lookup


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return zcore.DirectoryStore(tmp_path / "s") if request.param == "directory" else zcore.MemoryStore()


def make(store, mode="w", **keywords):
    return zcore.open(store, mode, **{"shape": (6, 4), "chunks": (4, 3), "dtype": "<i4", "cname": "lz4", **keywords})


# An array that exists has what is asked for


@pytest.mark.parametrize(("name", "asked", "found"), [
    ("shape", (6, 5), (6, 4)), ("shape", (4, 6), (6, 4)), ("shape", 6, (6, 4)), ("shape", (6, 4, 1), (6, 4)),
    ("shape", (), (6, 4)), ("chunks", (4, 4), (4, 3)), ("chunks", 4, (4, 3)),
    ("chunks", (-1, 3), (4, 3)), ("chunks", [4, None], (4, 3)), ("dtype", ">i4", "<i4"), ("dtype", "<i8", "<i4"),
    ("dtype", float, "<i4"), ("dtype", [("a", "<i4")], "<i4"), ("fill_value", 1, 0), ("fill_value", None, 0),
])
def test_what_contradicts_an_array_is_an_error(store, name, asked, found):
    array = make(store)
    array[...] = 5
    for mode in ("a", "r", "r+"):
        with pytest.raises(zcore.ArrayMismatchError) as caught:
            zcore.open(store, mode, **{name: asked})
        error = caught.value
        assert isinstance(error, TypeError) and isinstance(error, ValueError)
        assert error.asked.keys() == error.found.keys() == {name} and error.found[name] == found and error.path == ""
    assert make(store, "a")[...].tolist() == [[5] * 4] * 6


def test_the_message_names_all_that_differs(store):
    make(store, path="p", dtype="S3", fill_value=b"x")
    with pytest.raises(zcore.ArrayMismatchError) as caught:
        make(store, "a", path="p", shape=(5, 4), dtype=">f8", fill_value=1.5)
    assert str(caught.value) == (f"{store.describe('p')} holds another array: shape (5, 4) was asked for, (6, 4) is "
                                 "there; dtype >f8 was asked for, |S3 is there; without these keywords it is "
                                 "opened as it is")
    with pytest.raises(zcore.ArrayMismatchError, match=r"fill_value b'' was asked for, b'x' is there; without"):
        zcore.open(store, "a", path="p", fill_value=b"")


@pytest.mark.parametrize("keywords", [
    {}, {"shape": (6, 4)}, {"shape": [np.int64(6), 4]}, {"chunks": (4, 3)}, {"chunks": (4, np.int8(3))},
    {"chunks": None}, {"chunks": "auto"}, {"chunks": "1 MB"}, {"dtype": "<i4"}, {"dtype": np.dtype("int32")},
    {"fill_value": 0}, {"fill_value": 0.0}, {"fill_value": False}, {"cname": "zstd"}, {"clevel": 9}, {"shuffle": 2},
    {"compressors": zcore.codecs.BloscCodec(cname="zlib")}, {"attributes": {"a": 2}},
    {"shape": (6, 4), "chunks": (4, 3), "dtype": "i4", "fill_value": 0, "cname": "lz4", "attributes": {"a": 2}},
])
def test_what_is_equal_or_left_out_passes(store, keywords):
    make(store, attributes={"a": 1}, clevel=3)
    before = store.get("__zmeta__")
    for mode in ("a", "r", "r+"):
        array = zcore.open(store, mode, **keywords)
        assert array.shape == (6, 4) and array.attrs == {"a": 1} and array.codecs[0].clevel == 3
    assert store.get("__zmeta__") == before


@pytest.mark.parametrize(("dtype", "fill_value"), [
    ("f8", float("nan")), ("f4", np.frombuffer(b"\1\0\xc0\xff", "<f4")[0]), ("c8", complex("nan+1j")), ("S3", 0),
    ("U4", "é"), ("M8[D]", "NaT"), ("M8[s]", "2020-02-03"), ("m8[us]", 7), (">u2", 65535), ("?", True), ("V3", b"ab"),
    (np.dtype([("a", "i1"), ("b", "f8")], align=True), None), ([("a", "i4"), ("b", "S3")], 0), ("f8", -0.0),
    (np.dtype((np.record, [("a", "<i4")])), ...), (np.dtype("i4", metadata={"unit": "m"}), 3),
])
def test_the_call_that_created_an_array_opens_it(store, dtype, fill_value):
    for _ in range(2):
        make(store, "a", dtype=dtype, fill_value=fill_value)[0, 0] = np.ones((), dtype)[()]
    with pytest.raises(zcore.ArrayMismatchError):
        make(store, "a", dtype=dtype, fill_value=None if fill_value not in (None, ...) else 5)


def test_whole_dimensions_are_those_of_the_array(store):
    make(store, chunks=(3, -1))
    for chunks in ((3, None), (3, -1), (3, 4)):
        assert make(store, "a", chunks=chunks).chunks == (3, 4)
    zcore.open(store, mode="r+").resize(6, 9)
    assert make(store, "a", shape=(6, 9), chunks=(3, 4)).shape == (6, 9)


@pytest.mark.parametrize(("keywords", "exception"), [
    ({"shape": -1}, ValueError), ({"shape": 4.0}, TypeError), ({"chunks": (0, 1)}, ValueError),
    ({"chunks": (4, 3, 1)}, ValueError), ({"chunks": (4,)}, ValueError),
    ({"dtype": "x4"}, TypeError), ({"fill_value": "x"}, ValueError),
])
def test_what_no_array_can_have_is_said_so(store, keywords, exception):
    make(store)
    with pytest.raises(exception):
        zcore.open(store, "a", **keywords)


def test_an_array_without_dimensions_is_compared(store):
    store.set("__zmeta__", b'{"shape": [], "chunks": [], "dtype": "<i4", "fill_value": 7, "cname": "lz4", '
                           b'"clevel": 5, "shuffle": 1}')
    array = zcore.open(store, "a", shape=(), chunks=(), dtype="i4", fill_value=7)
    assert array[()] == 7
    with pytest.raises(zcore.ArrayMismatchError, match=r"shape \(1,\) was asked for, \(\) is there"):
        zcore.open(store, "a", shape=1, dtype="i4")


def test_who_creates_at_the_same_time_is_compared_too(store, monkeypatch):
    """Mode "a" that found nothing, and then that another one was faster."""
    make(store)
    find, calls = lookup.find, []

    def find_nothing_first(*arguments):
        calls.append(arguments)
        return None if len(calls) == 1 else find(*arguments)

    monkeypatch.setattr(lookup, "find", find_nothing_first)
    with pytest.raises(zcore.ArrayMismatchError, match="shape"):
        make(store, "a", shape=(7, 4))
    assert len(calls) == 2


@pytest.mark.parametrize(("zarr_format", "title"), [(3, "Zarr v3"), (2, "Zarr v2"), ("zmeta", "__zmeta__")])
def test_what_is_there_instead_is_said(store, zarr_format, title):
    zcore.create_array(store, name="a", shape=3, dtype="i4", zarr_format=zarr_format)
    other = 2 if zarr_format == 3 else 3
    with pytest.raises(zcore.NodeNotFoundError) as caught:
        zcore.open(store, path="a", zarr_format=other)
    assert str(caught.value) == f"{store.describe('a')} is a {title} array, zarr_format={other} was asked for"
    if zarr_format != "zmeta":
        zcore.create_group(store, path="g", zarr_format=zarr_format)
        for open_it in (zcore.open, zcore.open_group):
            with pytest.raises(zcore.NodeNotFoundError, match=f"g.* is a {title} group, zarr_format={other} was asked"):
                open_it(store, path="g", zarr_format=other)


# Places


ODD_PLACES = {
    "too long a name": "n" * 300,
    "too long a path": "/".join(["n" * 200] * 30),
    "a file": "file",
    "below a file": "file/x/y",
    "a link to itself": "loop",
    "below a link to itself": "loop/x",
    "a device": "/dev/null",
    "NUL": "a\0b",
    "NUL behind a parent": "../a\0b",
    "a lone surrogate": "a\ud800b",
    "a lone surrogate behind a parent": "../a\ud800b",
    "nothing": "",
}
if os.path.exists("/proc/self/stat"):
    ODD_PLACES.update({"a file of the system": "/proc/self/stat", "below one": "/proc/self/stat/x"})


def one_sentence(error):
    """The error is the house's own or a plain ValueError, and its message one line without a full stop."""
    assert isinstance(error, zcore.ZcoreError) or type(error) is ValueError
    message = str(error)
    assert "\n" not in message and message[-1] != "." and (message[0].islower() or message[0] in "/'")


@pytest.mark.parametrize("place", ODD_PLACES.values(), ids=ODD_PLACES)
@pytest.mark.parametrize("lock", [True, None])
def test_places_where_no_array_can_be(tmp_path, monkeypatch, place, lock):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    os.symlink("loop", tmp_path / "loop")
    for mode in ("r", "r+", "a", "w", "w-"):
        with pytest.raises((zcore.StoreError, ValueError)) as caught:
            make(place, mode, lock=lock)
        one_sentence(caught.value)
        assert repr(place)[1:-1].removeprefix("../") in str(caught.value)
    assert sorted(os.listdir()) == ["file", "loop"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a file system that takes no directories")
@pytest.mark.parametrize("lock", [True, None])
@pytest.mark.parametrize("place", ["/proc/self", "/proc/self/nothing", "/proc/self/nothing/below"])
def test_a_file_system_that_takes_nothing(place, lock):
    """There the parent of what is made is said to be missing, as where another process removes that in between."""
    with pytest.raises(zcore.NodeNotFoundError, match=place):
        zcore.open(place)
    for mode in ("a", "w", "w-"):
        with pytest.raises(zcore.StoreError, match=place) as caught:
            make(place, mode, lock=lock)
        one_sentence(caught.value)


@pytest.mark.parametrize("path", ["n" * 300, "a/" + "n" * 300, "/".join(["n" * 200] * 30), "file", "file/x", "broken",
                                  "broken/x", "loop", "data"])
@pytest.mark.parametrize("lock", [True, None])
def test_paths_in_a_store_where_no_array_can_be(tmp_path, path, lock):
    (tmp_path / "file").touch()
    os.symlink("loop", tmp_path / "loop")
    os.symlink("nowhere", tmp_path / "broken")
    os.mkdir(tmp_path / "data")
    (tmp_path / "data" / "__zdata__").touch()
    for mode in ("a", "w-", "w"):
        if mode == "w" and path in ("broken", "loop"):
            continue     # a link is replaced
        with pytest.raises(zcore.StoreError) as caught:
            make(tmp_path, mode, path=path, lock=lock)
        one_sentence(caught.value)
        assert path.partition("/")[0] in str(caught.value)
    with pytest.raises((zcore.NodeNotFoundError, zcore.StoreError), match=path):
        zcore.open(tmp_path, path=path)


def make_special(path, kind):
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.symlink("/dev/null", path)
    else:
        here = os.getcwd()
        os.chdir(path.parent)     # the path of a socket is limited to about 100 bytes
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(path.name)
        os.chdir(here)


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zgroup", "__zmeta__"])
def test_what_is_no_file_is_not_replaced_by_a_node(tmp_path, kind, name):
    make_special(tmp_path / name, kind)
    stores = tmp_path, zcore.DirectoryStore(tmp_path), zcore.DirectoryStore(tmp_path, confined=kind != "device")
    calls = [partial(zcore.open, stores[0]), partial(zcore.open, stores[0], "w", shape=3, dtype="i4")]
    for store, zarr_format, lock, overwrite in itertools.product(stores, (3, 2, "zmeta"), (True, None), (True, False)):
        keywords = {"zarr_format": zarr_format, "overwrite": overwrite, "lock": lock}
        calls.append(partial(zcore.create_array, store, shape=3, dtype="i4", **keywords))
        if zarr_format != "zmeta":
            calls.append(partial(zcore.create_group, store, **keywords))
            calls.append(partial(zcore.create_array, store, name="a/b", shape=3, dtype="i4", **keywords))
    for call in calls:
        with pytest.raises(zcore.StoreError, match=f"{name}.* is neither a file nor a directory"):
            call()
    assert os.listdir(tmp_path) == [name] and not stat.S_ISREG(os.stat(tmp_path / name).st_mode)
    assert os.path.islink(tmp_path / name) == (kind == "device")


def test_a_node_beside_what_is_no_file_is_not_lost(tmp_path):
    """Nothing is deleted before all that is in the way of the new node has been looked at."""
    a = zcore.create_array(tmp_path, data=[1, 2, 3], attributes={"x": 1}, zarr_format=2)
    for name, zarr_format in (("zarr.json", 3), (".zattrs", 2)):
        kept = (tmp_path / name).read_bytes() if name == ".zattrs" else None
        (tmp_path / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / name)
        with pytest.raises(zcore.StoreError, match=name):
            zcore.create_array(tmp_path, shape=3, dtype="i4", zarr_format=zarr_format, overwrite=True,
                               attributes={"x": 2})
        assert stat.S_ISFIFO(os.stat(tmp_path / name).st_mode)
        (tmp_path / name).unlink()
        if kept:
            (tmp_path / name).write_bytes(kept)
    assert a.refresh()[...].tolist() == [1, 2, 3] and dict(a.attrs) == {"x": 1}


def test_a_node_beside_an_unreachable_document_of_another_one(tmp_path):
    """Advice keeps nobody from the node."""
    zcore.create_array(tmp_path, data=[1, 2, 3])
    os.symlink("nowhere", tmp_path / ".zarray")
    with pytest.warns(UserWarning, match="what may be a document of another node: .*leads nowhere"):
        assert zcore.open(tmp_path)[...].tolist() == [1, 2, 3]
    report = zcore.verify(tmp_path)
    assert [problem[:2] for problem in report.problems] == [("unreachable", ".zarray")] and report.n_objects == 1


def test_a_directory_that_is_pruned_each_time_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(creation_lock, "MAX_TRIES", 3)
    made = []
    monkeypatch.setattr(zcore.DirectoryStore, "make_directory", lambda self, prefix: made.append(prefix))
    with pytest.raises(zcore.StoreError, match="it, or a file in it, is gone as soon as it is made"):
        make(tmp_path / "a")
    assert made == [""] * 3


def test_the_current_directory_is_gone(tmp_path, monkeypatch):
    make(tmp_path / "a")[...] = 5
    (tmp_path / "b").mkdir()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(zcore.StoreError, match="'a' is relative to the current directory, which is gone"):
        make("a")
    for path in (tmp_path / "a", f"{tmp_path}/b/../a"):
        assert zcore.open(path)[0, 0] == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="this user may write everywhere")
def test_a_directory_that_may_not_be_written(tmp_path):
    os.chmod(tmp_path, stat.S_IRUSR | stat.S_IXUSR)
    for lock in (True, None):
        with pytest.raises(zcore.StoreError, match="Permission denied"):
            make(tmp_path / "a", lock=lock)
