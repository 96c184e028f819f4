"""Errors say which array they are about: once, at the front of the text, and wherever an error can come from."""

import contextlib
import copy
import gc
import json
import os
import pickle
import sys
import warnings
import weakref

import pytest

import zcore
from zcore.errors import ZcoreError, noted, warn


def make(store, **keywords):
    return zcore.create_array(store, shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format="zmeta", **keywords)


def error_of(function, *arguments):
    with pytest.raises(zcore.ZcoreError) as caught:
        function(*arguments)
    return caught.value


def test_the_text_begins_with_the_place():
    error = zcore.CodecError("__zdata__/3.blosc: cut off", key="__zdata__/3.blosc")
    assert (str(error), error.place) == ("__zdata__/3.blosc: cut off", None)
    error.locate("/data/dem.zarr")
    assert str(error) == "/data/dem.zarr: __zdata__/3.blosc: cut off"
    assert (error.message, error.key) == ("__zdata__/3.blosc: cut off", "__zdata__/3.blosc")


def test_the_innermost_place_stays():
    error = ZcoreError("no", place="/a")
    error.locate("/b")
    assert (error.place, str(error)) == ("/a", "/a: no")


def test_a_place_that_the_message_names_is_not_repeated():
    error = zcore.StoreError("cannot read 'k' of DirectoryStore('/a')", place="/a")
    assert str(error) == error.message and error.place == "/a"


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_keep_the_place(copied):
    error = copied(zcore.StoreError("no", key="k", errno=5, place="/a"))
    assert (str(error), error.place, error.key, error.errno, error.message) == ("/a: no", "/a", "k", 5, "no")


def test_what_is_for_reading_is_a_value_error_as_in_numpy(tmp_path):
    make(tmp_path / "a")
    a = zcore.open(tmp_path / "a")
    for call in (lambda: a.__setitem__(..., 1), lambda: a.resize(1, 1), lambda: a.attrs.__setitem__("n", 1)):
        with pytest.raises(ValueError, match="open for reading") as caught:
            call()
        assert isinstance(caught.value, zcore.ReadOnlyError) and isinstance(caught.value, zcore.StoreError)


@pytest.mark.parametrize("path", ["", "group/dem"])
def test_every_way_to_a_damaged_array(tmp_path, path):
    store = zcore.DirectoryStore(str(tmp_path))
    array = make(store, name=path, attributes={"units": "m"})
    array[...] = 1
    folder = tmp_path / path
    (folder / "__zdata__" / "0.1.blosc").write_bytes(b"")
    for call in (lambda: array[...], array.read, lambda: array.__setitem__((0, 4), 5), lambda: array.resize(1, 4)):
        error = error_of(call)
        assert isinstance(error, zcore.CodecError)
        assert str(error).startswith(f"{folder}: __zdata__/0.1.blosc: blosc chunk has 0 bytes")
        assert error.key == "__zdata__/0.1.blosc"
    (folder / "__zattr__").write_bytes(b"[]")
    for call in (lambda: dict(array.attrs), lambda: array.attrs.update(units="km")):
        error = error_of(call)
        assert isinstance(error, zcore.MetadataError) and error.path == path
        assert str(error).startswith(f"{folder}: ") and str(error).count(str(tmp_path)) == 1
    (folder / "__zmeta__").write_bytes(b"{")
    for call in (lambda: zcore.open(store, path=path), lambda: zcore.open(store, "a", path=path, shape=4, dtype="i4"),
                 array.refresh, lambda: array[...], lambda: array.__setitem__(0, 1), lambda: array.resize(9, 9),
                 lambda: pickle.loads(pickle.dumps(array)).refresh()):
        error = error_of(call)
        assert isinstance(error, zcore.MetadataError) and error.document == "__zmeta__"
        assert error.place == str(folder)
        assert str(error).startswith(f"{folder}: ") and str(error).count(str(tmp_path)) == 1


def test_an_array_in_memory():
    store = zcore.MemoryStore()
    array = make(store, name="dem", missing="raise")
    assert str(error_of(lambda: array[...])).startswith(f"dem in {store!r}: __zdata__/0.0.blosc: object is absent")
    store.set("dem/__zmeta__", b"")
    assert error_of(lambda: array[...]).place == f"dem in {store!r}"


def test_what_a_store_refuses(tmp_path, monkeypatch):
    """The store's own words name it already, and are left as they are."""
    array = make(str(tmp_path))
    refusal = zcore.StoreError(f"cannot read 'k' of {array.store!r}", key="k")

    def refuse(*arguments):
        raise refusal

    monkeypatch.setattr(zcore.DirectoryStore, "get_first", refuse)
    for call in (array.refresh, lambda: zcore.open(str(tmp_path))):
        assert error_of(call).place == str(tmp_path) and str(refusal) == refusal.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do anything")
def test_what_the_system_refuses(tmp_path):
    array = make(str(tmp_path))
    array[...] = 1
    (tmp_path / "__zdata__" / "1.1.blosc").chmod(0)
    error = error_of(lambda: array[...])
    assert str(error).startswith(f"{tmp_path}: __zdata__/1.1.blosc: cannot open: Permission denied")


def test_writing_what_another_array_holds_names_the_other_one(tmp_path):
    a, b = make(str(tmp_path / "a")), make(str(tmp_path / "b"), missing="raise")
    with pytest.raises(zcore.ChunkError) as caught:
        a[...] = b
    assert caught.value.place == str(tmp_path / "b")


def test_nothing_new_can_be_created(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    error = error_of(lambda: make(str(tmp_path), name="a/b"))
    assert error.place == str(tmp_path / "a/b")


def test_a_warning_is_of_the_line_that_called(tmp_path):
    store = zcore.DirectoryStore(tmp_path)
    store.set("deep/.zarray", b'{"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i2", "compressor": null,'
                              b' "fill_value": 7, "order": "C"}')
    with pytest.warns(UserWarning, match=r"\.zarray: member 'filters' is missing") as caught:
        line = sys._getframe().f_lineno + 1
        assert zcore.open_group(tmp_path, mode="a")["deep"].fill_value == 7
    assert [(warning.filename, warning.lineno) for warning in caught] == [(__file__, line)]


def test_ctrl_c_does_not_silence_later_warnings():
    """It came when the list of warnings had been noted for the thread, and its block had not begun."""
    def stop(frame, event, arg):
        if event == "return" and frame.f_code is noted.__enter__.__code__:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def interrupted():
        sys.setprofile(stop)
        with noted():
            pass

    with noted() as outer:
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupted()
        warn("told to the outer block")
    assert outer == ["told to the outer block"]
    with pytest.warns(UserWarning, match="told to all"):
        warn("told to all")
    assert caught.traceback


def test_ctrl_c_on_the_way_out_keeps_nothing_alive():
    """The thread kept the block's frame, and with it an open file, until the next warning."""
    class Opened:
        pass

    def stop(frame, event, arg):
        if event == "call" and frame.f_code is noted.__exit__.__code__:
            sys.setprofile(None)
            raise KeyboardInterrupt

    def interrupted():
        opened = Opened()
        seen.append(weakref.ref(opened))
        sys.setprofile(stop)
        with noted():
            pass

    seen = []
    with contextlib.suppress(KeyboardInterrupt):
        interrupted()
    gc.collect()
    assert seen[0]() is None
    with pytest.warns(UserWarning, match="told to all"):
        warn("told to all")


def array_v2(**members):
    return json.dumps({"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<i2", "compressor": None,
                       "fill_value": 7, "order": "C", "filters": None, **members}).encode()


def node_v3(**members):
    return json.dumps({"zarr_format": 3, "attributes": {}, **members}).encode()


GRID = {"name": "regular", "configuration": {"chunk_shape": [3]}}
STRUCTURE = {"name": "structured", "configuration": {"fields": [["a", "int16"]]}}
ORPHAN = {"kind": "inline", "must_understand": False, "metadata": {"a/b": {"node_type": "group", "zarr_format": 3}}}
NOTED = {
    ".zarray": (array_v2(filters=[]), "member 'filters' is an empty list"),
    ".zarray ": (array_v2(compressor={"id": "zlib", "level": 1, "threads": 4}), "'zlib' has no parameter threads"),
    ".zgroup": (b'{"zarr_format": 2, "title": "x"}', "members ['title'] are ignored"),
    "__zmeta__": (b'{"shape": [3], "chunks": [3], "dtype": "i2", "fill_value": 7, "cname": "lz4", "clevel": 5, '
                  b'"shuffle": 1}', "data type 'i2' does not say its byte order"),
    "zarr.json": (node_v3(node_type="group", consolidated_metadata=ORPHAN), "'a/b' has no group above it"),
    "zarr.json ": (node_v3(node_type="array", shape=[3], data_type=STRUCTURE, chunk_grid=GRID, fill_value="AAA=",
                           chunk_key_encoding={"name": "default"}, codecs=[{"name": "bytes"}]),
                   "the fields do not say their byte order"),
}


@pytest.mark.parametrize("document", NOTED)
@pytest.mark.parametrize("make_store", [lambda path: zcore.DirectoryStore(path), lambda path: zcore.MemoryStore()])
def test_a_warning_names_the_node(tmp_path, make_store, document):
    """Every node, though equal documents are parsed once; and once a handle, though it reads its document again."""
    raw, what = NOTED[document]
    store = make_store(tmp_path)
    for path in ("", "a", "a/b", "a"):
        store.set(f"{path}/{document}".strip(" /"), raw)
        with pytest.warns(UserWarning) as caught:
            node = zcore.open(store, "r+", path=path)
        assert [str(warning.message).partition(": ")[0] for warning in caught] == [store.describe(path)]
        assert what in str(caught[0].message) and caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            node.refresh().attrs.asdict()
            if isinstance(node, zcore.Array):
                assert len(node[...]) == 3
                node[...] = node[...]
                node.resize(2)
            node.attrs["x"] = 1
        store.erase_prefix("")


def in_memory():
    return zcore.create_group(zcore.MemoryStore())


SETTINGS = [
    ("dimension_names", lambda value: in_memory().create_array("a", shape=4, dtype="i4", dimension_names=value)),
    ("repair", lambda value: zcore.verify(in_memory(), repair=value)),
    ("progress", lambda value: zcore.verify(in_memory(), progress=value)),
    ("progress", lambda value: zcore.copy(in_memory(), zcore.MemoryStore(), progress=value)),
    *[(name, lambda value, name=name: zcore.ReferenceStore({"a": "b"}, **{name: value}))
      for name in ("max_generated", "base", "allowed", "services")],
]


@pytest.mark.parametrize(("name", "call"), SETTINGS)
@pytest.mark.parametrize("value", [-1, 1.5, object(), float("nan")])
def test_a_setting_of_a_wrong_type_is_named(name, call, value):
    with pytest.raises((TypeError, ValueError), match=f"^{name} is .*, expected "):
        call(value)


def test_no_truth_value_is_a_number_of_references():
    with pytest.raises(ValueError, match="max_generated is True, expected an integer of 0 or more"):
        zcore.ReferenceStore({"a": "b"}, max_generated=True)
    zcore.ReferenceStore({"a": "b"}, max_generated=0)
