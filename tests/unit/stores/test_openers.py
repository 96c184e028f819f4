"""The table of file kinds, and that all who open, copy or make files go by it."""
import json
import os

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.__main__ import main
from zcore.errors import NotADirectoryStoreError
from zcore.stores import Store, openers
from zcore.tools.copy.destinations import SINKS, file_kind
from zcore.tools.copy.sources import SOURCES

ELEMENTS = np.arange(6, dtype="<i4").reshape(2, 3)
FILE_KINDS = [kind for kind in openers.KINDS if kind.endings and kind not in (openers.PARQUET, openers.FOREIGN)]
ENDINGS = [(kind, ending) for kind in FILE_KINDS for ending in kind.endings]
# One kind and one name of a file of it: each ending in small and capital letters, and no ending where bytes tell.
NAMED = [(kind, spelled) for kind, ending in ENDINGS for spelled in ("x" + ending, "X" + ending.upper())]
NAMED += [(kind, name) for kind in FILE_KINDS if kind.magics for name in ("x", "x.dat")]


def named(pairs):
    return pytest.mark.parametrize(("kind", "name"), pairs, ids=[f"{kind.name}-{name}" for kind, name in pairs])


def make(kind, path):
    """Make a file of a kind, which holds `ELEMENTS` as ``a``; or as all there is."""
    if kind is openers.NPY:
        with open(path, "wb") as file:
            np.save(file, ELEMENTS)
    elif kind is openers.NPZ:
        with open(path, "wb") as file:
            np.savez(file, a=ELEMENTS)
    elif kind is openers.HDF5:
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["a"] = ELEMENTS
    elif kind is openers.TIFF:
        pytest.importorskip("tifffile").imwrite(path, ELEMENTS, metadata=None)
    elif kind is openers.ASDF:
        zcore.asdf.write(path, {"a": ELEMENTS})
    else:
        items = zcore.MemoryStore()
        # RFC-9 of NGFF: an .ozx has a zarr.json at its root.
        group = zcore.create_group(items, zarr_format=3 if str(path).lower().endswith(".ozx") else 2)
        group.create_array("a", data=ELEMENTS)
        if kind is openers.ZIP:
            with zcore.ZipStore(path, mode="w") as store:
                for key in items.list():
                    store.set(key, items.get(key))
        else:
            zcore.references(items).save(path)
    return str(path)


def elements_of(node):
    return (node["a"] if isinstance(node, zcore.Group) else node)[:].tolist()


@named(NAMED)
def test_every_file_is_known(kind, name, tmp_path):
    path = make(kind, tmp_path / name)
    assert openers.kind_of(path) is openers.kind_of(tmp_path / name) is kind


@named(NAMED)
def test_every_file_is_opened_or_the_error_says_by_what(kind, name, tmp_path):
    path = make(kind, tmp_path / name)
    if kind.opener is None:
        for attempt in (lambda: zcore.open(path), lambda: zcore.open_group(path), lambda: zcore.DirectoryStore(path),
                        lambda: zcore.verify(path), lambda: zcore.references(path)):
            with pytest.raises(NotADirectoryStoreError) as caught:
                attempt()
            assert kind.advice in str(caught.value)
        return
    assert elements_of(zcore.open(path)) == ELEMENTS.tolist()
    if kind is not openers.TIFF:     # which holds one array
        assert elements_of(zcore.open_group(path)) == ELEMENTS.tolist()
    assert zcore.verify(path).ok
    with pytest.raises(NotADirectoryStoreError) as caught:
        zcore.open(path, mode="a", shape=1, dtype="u1")
    assert kind.advice in str(caught.value)


@named(NAMED)
def test_every_file_is_the_source_of_a_copy(kind, name, tmp_path):
    path = make(kind, tmp_path / name)
    assert elements_of(zcore.copy(path, zcore.MemoryStore())) == ELEMENTS.tolist()
    assert (kind.opener is None) == (kind in SOURCES)


@named([(kind, name) for kind, name in NAMED if kind in (*SINKS, openers.ZIP) and os.path.splitext(name)[1] != ".dat"])
def test_a_copy_makes_the_kind_of_file_that_its_name_says(kind, name, tmp_path):
    path = str(tmp_path / name)
    source = zcore.array(ELEMENTS)
    if "." not in name:
        # Nothing is there whose bytes could tell.
        assert file_kind(path) is None and zcore.copy(source, path).store.path == path
        return
    zcore.copy(source, path, destination_path="" if kind is openers.NPY else "a")
    assert os.path.isfile(path) and openers.kind_of(path) is file_kind(path) is kind
    assert elements_of(zcore.copy(path, zcore.MemoryStore())) == ELEMENTS.tolist()


@named(NAMED)
def test_every_verb_knows_the_file(kind, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make(kind, tmp_path / name)
    for verb in ("ls", "info", "tree"):
        assert main([verb, name]) == 0
    assert main(["verify", name]) == (1 if kind.opener is None else 0)
    capsys.readouterr()
    assert main(["cp", name, "copy.zarr"]) == 0
    assert elements_of(zcore.open("copy.zarr")) == ELEMENTS.tolist()
    is_made = kind.opener is not None and kind is not openers.TIFF or kind is openers.HDF5
    assert main(["refs", "make", name, "--out", "set.json"]) == (0 if is_made else 1)
    if is_made:
        assert elements_of(zcore.open("set.json")) == ELEMENTS.tolist()


@pytest.mark.parametrize("name", [spelled for kind in openers.KINDS if kind is not openers.ZIP
                                  for ending in kind.endings for spelled in ("x" + ending, "X" + ending.upper())])
def test_no_directory_gets_the_ending_of_a_file(name, tmp_path):
    path, source = str(tmp_path / name), zcore.array(ELEMENTS)
    attempts = [lambda: zcore.save(path, ELEMENTS), lambda: zcore.save(path, ELEMENTS, b=ELEMENTS),
                lambda: zcore.create_array(path, shape=1, dtype="u1"), lambda: zcore.create_group(path),
                lambda: zcore.open(path, "a", shape=1, dtype="u1"), lambda: zcore.open_group(path, "w-")]
    if file_kind(path) is None:
        attempts.append(lambda: zcore.copy(source, path))
    for attempt in attempts:
        with pytest.raises(zcore.UnsupportedError) as caught:
            attempt()
        assert os.path.splitext(name)[1] in str(caught.value) and not os.path.lexists(path)
    # One that is there already stays usable.
    zcore.save(zcore.DirectoryStore(path), ELEMENTS)
    zcore.save(path, ELEMENTS + 1, overwrite=True)
    assert zcore.load(path).tolist() == (ELEMENTS + 1).tolist()


def test_a_file_of_a_foreign_ending_is_known_by_its_bytes(tmp_path):
    assert openers.kind_of(make(openers.HDF5, tmp_path / "x.hdf")) is openers.HDF5
    (tmp_path / "x.csv").write_text("1,2\n")
    assert openers.kind_of(tmp_path / "x.csv") is openers.FOREIGN
    with pytest.raises(NotADirectoryStoreError, match="does not read"):
        zcore.open(tmp_path / "x.csv")


def test_cat_writes_the_kind_that_a_name_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(openers.ZIP, "x.zip")
    assert main(["cat", "x.zip/a", "--out", "X.NPY"]) == 0
    assert np.load("X.NPY").tolist() == ELEMENTS.tolist()
    for arguments in (["--out", "x.h5"], ["--out", "x.json"], ["--out", "y.npy", "--format", "raw"]):
        assert main(["cat", "x.zip/a", *arguments]) == 1 and not os.path.exists(arguments[1])
    assert main(["cat", "x.zip/a", "--out", "x.json", "--json"]) == main(["cat", "x.zip/a", "--out", "x.txt"]) == 0


@pytest.mark.parametrize(("arguments", "advice"), [
    (["cat", "a.zarr", "--out", "x.csv"], "x.csv: zcore would write text; name it .txt"),
    (["cat", "a.zarr", "--out", "x.zarr"], "name it .txt"),
    (["cat", "a.zarr", "--out", "x.h5"], "name it .txt; zcore cp writes such files"),
    (["cat", "a.zarr", "--out", "x.npz", "--format", "npy"], "name it .npy"),
    (["plot", "a.zarr", "--html", "x.png"], "name it .html"),
    (["plot", "a.zarr", "--out", "x.npy"], ".png"),
    (["plot", "a.zarr", "--out", "q"], ".png"),
    (["refs", "make", "a.zarr", "--out", "x.csv"], "name it .json"),
    (["refs", "make", "a.zarr", "--out", "q"], "name it .json"),
    (["refs", "expand", "a.json", "--out", "x.parq"], "name it .json\n"),
    (["asdf", "extract", "a.asdf", "x", "x.h5"], "name it .npy"),
    (["asdf", "explode", "a.asdf", "x.yaml.gz"], "name it .asdf"),
    (["demo", "--no-picture", "--out", "x.csv"], "cannot end with .csv"),
], ids=lambda one: " ".join(one) if isinstance(one, list) else "")
def test_no_verb_writes_what_an_ending_does_not_say(arguments, advice, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    zcore.save("a.zarr", ELEMENTS)
    zcore.references("a.zarr").save("a.json")
    zcore.asdf.write("a.asdf", {"x": ELEMENTS})
    before = sorted(os.listdir())
    assert main(arguments) == 1 and advice in capsys.readouterr().err and sorted(os.listdir()) == before


@pytest.mark.parametrize("ending", [spelled for ending in openers.PARQUET.endings for spelled in (ending,
                                                                                                 ending.upper())])
def test_a_directory_is_a_set_in_parquet_by_its_name_and_its_document(ending, tmp_path):
    folder = tmp_path / f"x{ending}"
    folder.mkdir()
    assert openers.kind_of(str(folder)) is openers.DIRECTORY
    (folder / ".zmetadata").write_text(json.dumps({"record_size": 10, "metadata": {".zgroup": {"zarr_format": 2}}}))
    assert openers.kind_of(str(folder)) is openers.kind_of(f"{folder}/") is openers.PARQUET
    assert type(zcore.open(str(folder)).store) is type(zcore.open_group(f"{folder}/").store) is zcore.ReferenceStore
    with pytest.raises(ValueError, match="name it .json"):
        zcore.ReferenceStore({}).save(tmp_path / f"new{ending}")


class Client:
    """What `RemoteStore` takes for the client of a service."""

    def get(self, name):
        raise FileNotFoundError

    get_range = get


@each(("place", "kind"), [
    ("s3://bucket/a.zarr", openers.REMOTE),
    ("https://host/a.zip", openers.REMOTE),
    ("https://host/A.JSON?version=1", openers.REFERENCES),
    ("s3://bucket/a.PARQ/", openers.PARQUET),
    ({}, openers.MAPPING),
    ({"zarr.json": b"{}"}, openers.MAPPING),
    ({"zarr.json": "{}"}, openers.REFERENCES),
    ("memory://x", openers.MEMORY),
    (zcore.MemoryStore(), openers.STORE),
    (Client(), openers.REMOTE),
    (5, None),
    (None, None),
    (b"a.zip", None),
    ("nothing/here.zip", None),
    ("a\0b", None),
])
def test_what_is_no_local_file(place, kind):
    assert openers.kind_of(place) is kind


def test_a_directory_counts_whatever_its_name(tmp_path):
    for kind, ending in ENDINGS:
        place = tmp_path / f"x{ending}"
        place.mkdir()
        assert openers.kind_of(place) is openers.DIRECTORY and file_kind(place) is None, kind
        zcore.create_group(place)
        assert type(zcore.open(place).store) is zcore.DirectoryStore


def test_what_is_neither_file_nor_directory_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    assert openers.kind_of(tmp_path / "x.npy") is None


def test_the_ending_decides_where_there_is_one(tmp_path):
    """An archive and the arrays of `numpy.savez` begin alike."""
    assert openers.kind_of(make(openers.NPZ, tmp_path / "x")) is openers.ZIP
    assert openers.kind_of(make(openers.ZIP, tmp_path / "x.npz")) is openers.NPZ


def test_every_row_of_the_table_can_be_loaded():
    for kind in openers.KINDS:
        if kind.opener is not None:
            opener = openers.loaded(kind.opener)
            assert callable(opener) and (not isinstance(opener, type) or issubclass(opener, Store)), kind
    for name in (*SOURCES.values(), *SINKS.values()):
        assert callable(openers.loaded(name))
    assert all(ending == ending.lower() and ending[0] == "." for _, ending in ENDINGS)


def test_a_store_that_other_libraries_take_for_a_path_keeps_its_options(tmp_path):
    zcore.save(tmp_path / "a", np.arange(3))
    store = zcore.DirectoryStore(tmp_path / "a")
    assert os.fspath(store) == os.fspath(zcore.open(store)) == str(tmp_path / "a")
    store = zcore.DirectoryStore(tmp_path / "a", read_only=True)
    assert openers.kind_of(store) is openers.STORE and openers.store_of(store, False) is store
    for change in (lambda: zcore.copy(tmp_path / "a", store, overwrite=True), lambda: zcore.zeros(3, store=store),
                   lambda: zcore.verify(store, repair=True), lambda: zcore.open(store, mode="a", path="b")):
        with pytest.raises(zcore.ReadOnlyError):
            change()
    with pytest.raises(TypeError, match="found Array"):
        zcore.open(zcore.open(store))
    assert openers.as_path(tmp_path / "a") == str(tmp_path / "a") and openers.as_path(store) is None
