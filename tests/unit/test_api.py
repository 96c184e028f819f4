"""Open and create: the session of the format's own document, modes, places, and wrong arguments."""

import datetime
import os
import pathlib
import sys

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore import replacing
from zcore.codecs import BloscCodec, Crc32cCodec

GOLDEN = """{
    "chunks": [
        10000,
        100
    ],
    "clevel": 3,
    "cname": "lz4",
    "dtype": "<i4",
    "fill_value": 42,
    "shape": [
        1000000,
        1000
    ],
    "shuffle": 1
}"""


def make(store, mode="w", **keywords):
    return zcore.open(store, mode=mode, **{"shape": (6,), "chunks": (4,), "dtype": "<i4", "cname": "lz4", **keywords})


def files(path):
    return sorted(str(file.relative_to(path)) for file in pathlib.Path(path).rglob("*") if file.is_file())


# The session of "Persistence" (2016), line for line; its arrays are opened once.


@pytest.mark.skipif(sys.maxsize < 2**32, reason="NumPy has no shape of so many bytes there")
def test_session_of_the_document(tmp_path, monkeypatch, capsys):
    """ZM-META-15, ZM-ATTR-03; ZM-CHK-04: a new array has a directory of chunks, and none in it."""
    monkeypatch.chdir(tmp_path)
    import zcore as zarr

    z = zarr.open(
        "example.zarr",
        mode="w",
        shape=(1000000, 1000),
        chunks=(10000, 100),
        dtype="i4",
        fill_value=42,
        cname="lz4",
        clevel=3,
        shuffle=1,
    )
    with open("example.zarr/__zmeta__") as file:
        print(file.read())
    assert capsys.readouterr().out == GOLDEN + "\n"
    z.attrs["foo"] = 42
    z.attrs["bar"] = 4.2
    z.attrs["baz"] = "quux"
    with open("example.zarr/__zattr__") as file:
        print(file.read())
    assert capsys.readouterr().out == '{\n    "bar": 4.2,\n    "baz": "quux",\n    "foo": 42\n}\n'

    assert os.listdir("example.zarr/__zdata__") == []
    z[:] = 0
    assert sorted(os.listdir("example.zarr/__zdata__"))[:5] == [
        "0.0.blosc",
        "0.1.blosc",
        "0.2.blosc",
        "0.3.blosc",
        "0.4.blosc",
    ]
    assert z.nchunks_initialized == z.nchunks == 1000
    assert files("example.zarr")[:2] == ["__zattr__", "__zdata__/0.0.blosc"] and len(files("example.zarr")) == 1002


def test_the_chunk_of_the_document(tmp_path):
    """ZM-CHK-02: 4.2.blosc is z[40:50, 20:30]."""
    z = make(str(tmp_path), shape=(100, 100), chunks=(10, 10))
    z[40:50, 20:30] = np.arange(100).reshape(10, 10)
    assert files(tmp_path) == ["__zdata__/4.2.blosc", "__zmeta__"]
    raw = zcore.blosc.decompress((tmp_path / "__zdata__/4.2.blosc").read_bytes())
    assert np.frombuffer(raw, "<i4").tolist() == list(range(100))


# Formats


@pytest.mark.parametrize("keywords", [{"cname": "lz4"}, {"clevel": 0}, {"shuffle": 0}, {"zarr_format": "zmeta"}])
def test_what_asks_for_this_format(tmp_path, keywords):
    a = zcore.open(str(tmp_path), mode="w", shape=4, dtype="i1", **keywords)
    assert a.metadata.zarr_format == "zmeta" and (tmp_path / "__zmeta__").exists()


def test_nodes_of_other_formats_are_known_and_left_alone(tmp_path):
    """V3-VER-01, V1-03"""
    document = "meta"
    (tmp_path / document).write_bytes(b"{}")
    for mode in ("r", "r+", "a"):
        with pytest.raises(zcore.UnsupportedError, match="Zarr v"):
            zcore.open(str(tmp_path), mode=mode)
    for mode in ("w", "w-"):
        with pytest.raises(zcore.NodeExistsError, match=document):
            make(str(tmp_path), mode)
    assert files(tmp_path) == [document]


def test_detection(tmp_path):
    """ZM-LAY-02, ZM-LAY-03"""
    with pytest.raises(zcore.NodeNotFoundError) as caught:
        zcore.open(str(tmp_path / "none"))
    assert caught.value.path == "" and not (tmp_path / "none").exists()
    (tmp_path / "__zmeta__").mkdir()
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open(str(tmp_path))
    (tmp_path / "__zmeta__").rmdir()
    (tmp_path / "__zmeta__").write_bytes(b'{"shape": [1], "fill_value": ')
    with pytest.raises(zcore.MetadataError, match="incomplete") as caught:
        zcore.open(str(tmp_path))
    assert caught.value.document == "__zmeta__"
    (tmp_path / "__zmeta__").write_bytes(b"\x80\x02}q\x01(U\x05shapeq")
    with pytest.raises(zcore.UnsupportedError, match="pickle"):
        zcore.open(str(tmp_path))


@pytest.mark.parametrize("zarr_format", [1, 7, "v3", b"zmeta", "", 0, False, [3]], ids=repr)
def test_what_is_no_format(tmp_path, zarr_format):
    make(str(tmp_path / "there"))
    for call in (
        lambda: zcore.open(tmp_path / "there", zarr_format=zarr_format),
        lambda: zcore.open(tmp_path / "a", mode="w", shape=4, dtype="i1", zarr_format=zarr_format),
        lambda: zcore.create_array(tmp_path / "a", shape=4, dtype="i1", zarr_format=zarr_format),
    ):
        with pytest.raises(ValueError, match=r"^zarr_format is .*, expected one of 3, 2, 'zmeta'$"):
            call()
    assert not (tmp_path / "a").exists()


# Modes


@pytest.fixture(params=["directory", "memory"])
def store(request, tmp_path):
    return str(tmp_path / "s") if request.param == "directory" else zcore.MemoryStore()


def test_modes(store):
    for mode in ("r", "r+"):
        with pytest.raises(zcore.NodeNotFoundError):
            make(store, mode)
    a = make(store, "a")
    a[:] = 1
    assert make(store, "a", clevel=9)[:].tolist() == [1] * 6, "what exists is opened, not changed"
    for mode in ("w-", "x"):
        with pytest.raises(zcore.NodeExistsError):
            make(store, mode)
        assert make(store, mode, path=f"new {mode}").shape == (6,)
    reader = zcore.open(store)
    assert reader.read_only and reader[:].tolist() == [1] * 6
    for change in (
        lambda: reader.__setitem__(0, 1),
        lambda: reader.resize(3),
        lambda: reader.append([1]),
        lambda: setattr(reader, "shape", (3,)),
        lambda: reader.attrs.update(x=1),
    ):
        with pytest.raises(zcore.ReadOnlyError):
            change()
    writer = zcore.open(store, mode="r+")
    assert not writer.read_only
    writer[0] = 2
    assert reader[0] == 2
    fresh = make(store, "w", dtype="<f8", shape=(2, 2), chunks=(1, 2))
    assert fresh[:].tolist() == [[0, 0], [0, 0]] and fresh.nchunks_initialized == 0
    assert zcore.open(store).dtype == "f8"


def test_create_where_nothing_is(store):
    a = make(store, "w-")
    assert a.shape == (6,) and not a.read_only


@pytest.mark.parametrize("mode", ["", "R", "rw", "x+", "w+", None, 1, np.zeros(3)])
def test_wrong_modes(store, mode):
    with pytest.raises(ValueError, match="mode is .*, expected one of r, "):
        make(store, mode)


def test_overwrite(store):
    options = {"shape": 4, "dtype": "i4", "zarr_format": "zmeta"}
    zcore.create_array(store, **options)[:] = 5
    with pytest.raises(zcore.NodeExistsError):
        zcore.create_array(store, **options)
    assert zcore.open(store)[:].tolist() == [5] * 4
    assert zcore.create_array(store, overwrite=True, **options)[:].tolist() == [0] * 4


def test_a_failed_create_leaves_what_was_there(store):
    make(store)[:] = 5
    for wrong in (
        {"dtype": "O"},
        {"clevel": 10},
        {"shape": -1},
        {"fill_value": "x"},
        {"chunks": 0},
        {"cname": "none"},
        {"attributes": {1: 2}},
        {"dtype": None},
        {"shape": ()},
        {"chunks": (1, 2)},
    ):
        with pytest.raises((ValueError, TypeError, zcore.UnsupportedError)):
            make(store, "w", **wrong)
        assert zcore.open(store)[:].tolist() == [5] * 6


def test_read_only_stores(tmp_path):
    make(str(tmp_path / "a"))[:] = 5
    for read_only in (
        zcore.DirectoryStore(str(tmp_path / "a"), read_only=True),
        zcore.MemoryStore(
            {name: (tmp_path / "a" / name).read_bytes() for name in files(tmp_path / "a")}, read_only=True
        ),
    ):
        for mode in ("r", "r+", "a"):
            a = zcore.open(read_only, mode=mode)
            assert a.read_only and a[:].tolist() == [5] * 6
            # Another mode is advised only where it may help: a directory can be opened for writing.
            is_advised = mode == "r" and isinstance(read_only, zcore.DirectoryStore)
            with pytest.raises(zcore.ReadOnlyError,
                               match=r"zcore.open with mode='r\+' opens" if is_advised else "in a store for reading"):
                a[0] = 1
        for mode in ("w", "w-"):
            with pytest.raises((zcore.ReadOnlyError, zcore.NodeExistsError)):
                make(read_only, mode)
    with pytest.raises(zcore.ReadOnlyError):
        make(zcore.DirectoryStore(str(tmp_path / "new"), read_only=True))
    assert files(tmp_path) == ["a/__zdata__/0.blosc", "a/__zdata__/1.blosc", "a/__zmeta__"]


# Places


def test_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("x y é.zarr")[:] = 3
    base = tmp_path / "x y é.zarr"
    uri = zcore.DirectoryStore(str(base)).uri
    assert uri.startswith("file:///") and "%20" in uri
    for place in (
        "x y é.zarr",
        str(base),
        base,
        uri,
        "file://localhost" + uri[7:],
        zcore.DirectoryStore(base),
        "./x y é.zarr/",
    ):
        assert zcore.open(place)[:].tolist() == [3] * 6


@pytest.mark.parametrize("place", ["ftp://example.org/a", "memories://a"])
def test_uris_of_other_kinds(place):
    with pytest.raises(zcore.UnsupportedError):
        zcore.open(place)


@pytest.mark.parametrize("place", [5, 1.5, [], object(), b"bytes"])
def test_what_is_no_place(place):
    with pytest.raises(TypeError):
        zcore.open(place)
    with pytest.raises(TypeError):
        zcore.create_array(place, shape=1, dtype="i1", zarr_format="zmeta")


def test_empty_place():
    with pytest.raises(ValueError, match="empty"):
        zcore.open("")


@pytest.mark.parametrize("path", ["", "a", "a/b", "a/b/c.d", "é", "/a/b"])
def test_arrays_below_a_path(store, path):
    """V3-NAME-04, D3-CON-03, D3-CON-04"""
    a = make(store, path=path)
    a[1:5] = [1, 2, 3, 4]
    a.attrs["k"] = path
    clean = path.lstrip("/")
    assert (a.path, a.name, a.basename) == (clean, "/" + clean, clean.rpartition("/")[2])
    b = zcore.open(store, path=clean)
    assert b[:].tolist() == [0, 1, 2, 3, 4, 0] and b.attrs["k"] == path and b.nchunks_initialized == 2
    assert sorted(a.store.list_prefix(clean + "/" if clean else "")) == [
        f"{clean}/{name}".lstrip("/") for name in ("__zattr__", "__zdata__/0.blosc", "__zdata__/1.blosc", "__zmeta__")
    ]
    make(store, path="other")[:] = 9
    a.resize(2)
    assert zcore.open(store, path="other")[:].tolist() == [9] * 6
    make(store, "w", path=clean)
    assert zcore.open(store, path=clean)[:].tolist() == [0] * 6
    if path:
        assert zcore.open(store, path="other")[:].tolist() == [9] * 6


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../b", "/", "a/.", ".", "a\0b", "\ud800", ".__zc_tmp.1", "a/.__zc_tmp.x"],
)
def test_paths_that_are_no_keys(tmp_path, store, path):
    """V3-NAME-04, V3-NAME-05"""
    calls = [
        lambda: make(store, path=path),
        lambda: make(store, "a", path=path),
        lambda: zcore.create_array(store, name=path, shape=4, dtype="i4", zarr_format="zmeta", overwrite=True),
    ]
    if path == "/":
        make(store)
        assert zcore.open(store, path="/").path == "", "the root has this name"
        return
    for call in (*calls, lambda: zcore.open(store, path=path)):
        with pytest.raises(zcore.InvalidKeyError) as caught:
            call()
        assert str(caught.value).startswith(f"{path!r} is not a path in a store: ") and caught.value.key == path
    assert files(tmp_path) == []


@pytest.mark.parametrize("path", [5, b"a", ["a"], 0, False])
def test_paths_of_a_wrong_type(store, path):
    with pytest.raises(TypeError):
        make(store, path=path)
    with pytest.raises(TypeError):
        zcore.create_array(store, name=path, shape=4, dtype="i4", zarr_format="zmeta")


@pytest.mark.parametrize("place", [5, b"a", ["a"], np.zeros(3)], ids=repr)
def test_places_of_a_wrong_type(place):
    for call in (lambda: zcore.open(place), lambda: make(place)):
        with pytest.raises(TypeError, match=rf"expected a path, .*, or a reference set, found {type(place).__name__}$"):
            call()


# Arguments


@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_chunks_that_are_true_are_chosen(store, zarr_format):
    """As h5py has it; False is one chunk, as in zarr-python."""
    chosen = make(store, "w", shape=(3000, 1000), zarr_format=zarr_format, chunks="auto", cname=None).chunks
    assert chosen != (3000, 1000)
    assert make(store, "w", shape=(3000, 1000), zarr_format=zarr_format, chunks=True, cname=None).chunks == chosen
    assert make(store, "w", shape=(30, 10), zarr_format=zarr_format, chunks=False, cname=None).chunks == (30, 10)


def test_misuse(store):
    for call in (
        lambda: zcore.open(),
        lambda: zcore.open(store, "w", (4,)),
        lambda: zcore.open(store, mode="w", shape=4),
        lambda: zcore.open(store, mode="w", dtype="i4"),
        lambda: make(store, fill=3),
        lambda: make(store, dtype="x4"),
        lambda: zcore.create_array(store, (4,)),
        lambda: zcore.create_array(store, shape=4),
        lambda: zcore.create_array(store, shape=4, dtype="i4", cname="lz4"),
        lambda: make(store, shape=4.0),
        lambda: make(store, shape="ab"),
        lambda: make(store, shape=(4, None), chunks=(2, 2)),
        lambda: make(store, shape=True),
        lambda: make(store, chunks=2.0),
        lambda: make(store, chunks=(True,)),
        lambda: make(store, cname=None, compressors=5, zarr_format="zmeta"),
    ):
        with pytest.raises(TypeError):
            call()
    for keywords in (
        {"missing": "error"},
        {"missing": None},
        {"threads": 0},
        {"threads": -1},
        {"threads": True},
        {"threads": "2"},
        {"shape": -1},
        {"shape": (2**62, 2**62), "chunks": (1, 1)},
        {"chunks": 0},
        {"chunks": (-2,)},
        {"cname": "lzma"},
        {"clevel": 10},
        {"clevel": "5"},
        {"shuffle": 3},
        {"fill_value": 2**31},
        {"fill_value": [1]},
        {"fill_value": "x"},
        {"dtype": "M8"},
        {"shape": ()},
        {"compressors": BloscCodec()},
        {"shape": 2**31, "chunks": 2**31, "dtype": "i1"},
    ):
        with pytest.raises(ValueError):
            make(store, **keywords)
    for dtype in ("O", "g", object, "T", [("a", "O")]):
        with pytest.raises(zcore.UnsupportedError):
            make(store, dtype=dtype)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.open(store)


@each(("keywords", "error", "words"), [
    ({"chunks": [[4.0, 2], 3]}, TypeError, "chunks: lengths of dimension 0: 'float'"),
    ({"chunks": [3, []]}, ValueError, "chunks: lengths of dimension 1: expected at least one"),
    ({"shape": {4, 3}}, TypeError, "no order"), ({"chunks": {4, 3}}, TypeError, "no order"),
    ({"shards": frozenset((4, 3))}, TypeError, "no order"), ({"dimension_names": {"x", "y"}}, TypeError, "no order"),
    ({"shape": 2**63 - 1, "chunks": 5}, ValueError, "along a dimension of length 9223372036854775807"),
    ({"dtype": {"name": "x"}, "zarr_format": 2}, ValueError, "dtype is {'name': 'x'}"),
    ({"dtype": "i3"}, TypeError, "dtype is 'i3'"), ({"dtype": 3}, TypeError, "dtype is 3"),
    ({"dtype": str, "fill_value": np.int64(7)}, ValueError, "expected text .*, found np.int64"),
    ({"dtype": np.dtypes.StringDType(), "order": "F"}, ValueError, "order: expected 'C' for StringDType"),
])
def test_what_is_wrong_is_named(keywords, error, words):
    with pytest.raises(error, match=words):
        zcore.create_array({}, **{"shape": (6, 6), "dtype": "i4", **keywords})


@pytest.mark.parametrize(
    ("compressors", "cname", "clevel", "shuffle"),
    [
        (BloscCodec(cname="zstd", clevel=9, shuffle=2), "zstd", 9, 2),
        (BloscCodec(shuffle="noshuffle"), "zstd", 5, 0),
        ({"name": "blosc", "configuration": {"cname": "zlib"}}, "zlib", 5, 1),
        ([BloscCodec(cname="lz4hc")], "lz4hc", 5, 1),
        ("auto", "lz4", 5, 1),
    ],
)
def test_compressors(store, compressors, cname, clevel, shuffle):
    a = zcore.create_array(store, shape=4, dtype="i4", zarr_format="zmeta", compressors=compressors)
    document = a.store.get("__zmeta__").decode()
    assert (
        f'"cname": "{cname}"' in document and f'"clevel": {clevel}' in document and f'"shuffle": {shuffle}' in document
    )
    assert a.codecs[0].cname == cname and a.codecs[0].typesize == 4


@pytest.mark.parametrize(
    "compressors",
    [
        None,
        [],
        Crc32cCodec(),
        [BloscCodec(), Crc32cCodec()],
        BloscCodec(typesize=2),
        BloscCodec(blocksize=128),
        {"name": "gzip"},
    ],
)
def test_compressors_that_the_format_cannot_express(store, compressors):
    with pytest.raises((ValueError, zcore.UnknownCodecError)):
        zcore.create_array(store, shape=4, dtype="i4", zarr_format="zmeta", compressors=compressors)
    with pytest.raises((ValueError, zcore.UnknownCodecError)):
        make(store, cname=None, compressors=compressors, zarr_format="zmeta")


@pytest.mark.parametrize("name", ["gunzip", "Blosc", ""])
def test_a_codec_that_is_not_there_is_told_from_those_that_are(store, name):
    for compressors in ({"name": name}, [BloscCodec(), {"name": name, "configuration": {"level": 1}}]):
        with pytest.raises(zcore.UnknownCodecError, match="there are bitround, blosc, .*, zstd, and") as caught:
            zcore.create_array(store, shape=4, dtype="i4", zarr_format="zmeta", compressors=compressors)
        assert caught.value.codec == name and repr(name) in str(caught.value)
    with pytest.raises(ValueError, match="expected one of blosclz, lz4, lz4hc, snappy, zlib, zstd, found 'gzip'"):
        make(store, cname="gzip")


@pytest.mark.parametrize(
    ("dtype", "fill_value", "element"),
    [
        ("<i4", -7, -7),
        (">u2", 65535, 65535),
        ("|b1", True, True),
        ("<f8", float("nan"), float("nan")),
        ("<f4", -0.0, -0.0),
        (">f2", float("-inf"), float("-inf")),
        ("<c8", 1 - 2j, 1 - 2j),
        ("<c16", complex("nan+1j"), complex("nan+1j")),
        ("|S5", b"ab", b"ab"),
        ("|S5", 0, b"0"),
        ("<U3", "é", "é"),
        ("<U3", 0, "0"),
        ("<M8[D]", "2020-02-03", np.datetime64("2020-02-03")),
        (">M8[ns]", "NaT", np.datetime64("NaT", "ns")),
        ("<m8[s]", 5, np.timedelta64(5, "s")),
        ("|V3", b"abc", np.void(b"abc")),
        ("<i4", None, 0),
        ("|S3", None, b""),
        ("<U2", None, ""),
        ("<M8[D]", None, np.datetime64(0, "D")),
        ([("a", "<i4"), ("b", "|S2")], 0, (0, b"0")),
        ([("a", "<i4"), ("b", "|S2")], None, (0, b"")),
    ],
)
def test_fill_values(store, dtype, fill_value, element):
    """ZM-META-07 to ZM-META-10: what is read, what the handle says, and what a reopened one says."""
    a = make(store, dtype=dtype, fill_value=fill_value)
    expected = np.zeros((), a.dtype)
    expected[()] = element
    for array in (a, zcore.open(store)):
        assert array[3].tobytes() == expected[()].tobytes()
        assert array[...].tobytes() == expected.tobytes() * 6
        if fill_value is None:
            assert array.fill_value is None
        else:
            assert array.fill_value.tobytes() == expected[()].tobytes() and type(array.fill_value) is a.dtype.type
    assert a.nchunks_initialized == 0
    a[:] = expected
    n_stored = a.nchunks if fill_value is None else 0
    assert a.nchunks_initialized == n_stored, "what is all fill value is not stored, and nothing is an undefined one"
    assert a[...].tobytes() == expected.tobytes() * 6


def test_options_are_properties(store):
    a = make(store, lock=None, missing="raise", threads=3, strict=False, write_empty_chunks=True)
    assert (a.lock, a.missing, a.threads, a.strict) == (False, "raise", 3, False)
    a = zcore.open(store)
    assert (a.lock, a.missing, a.threads, a.strict) == (True, "fill", None, True)


@pytest.mark.parametrize("chunks", [None, "auto", "1 KB", 4, (4,), (10**6,), [np.int64(4)]])
def test_chunks(store, chunks):
    a = make(store, chunks=chunks, shape=(1000,))
    assert len(a.chunks) == 1 and type(a.chunks[0]) is int
    a[5:900] = np.arange(895)
    assert zcore.open(store)[5:900].tolist() == list(range(895))


def test_fsync(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(replacing, "barrier", lambda fd, real=replacing.barrier: synced.append(fd) or real(fd))
    make(str(tmp_path / "a"), fsync=True)
    assert synced
    a = zcore.open(str(tmp_path / "a"), mode="r+", fsync=True)
    a[:] = 1
    assert a.store.fsync and a[:].tolist() == [1] * 6


MOST = 2**31 - 17      # bytes that blosc takes
WIDER, NARROWER = [[{"name": "numcodecs.astype", "configuration": {"encode_dtype": one, "decode_dtype": other}}]
                   for one, other in (("<i4", "|i1"), ("|i1", "<i4"))]


@pytest.mark.parametrize("settings", [
    {"chunks": MOST + 1, "compressors": "blosc"}, {"chunks": MOST + 1},
    {"chunks": MOST + 1, "codecs": ["bytes", "blosc"]},
    {"chunks": MOST, "codecs": ["bytes", "crc32c", "blosc"]}, {"chunks": MOST + 1, "zarr_format": 2},
    {"chunks": MOST + 1, "zarr_format": "zmeta"}, {"chunks": 2**31, "shards": 2**32, "compressors": "blosc"},
    {"chunks": [[10, 2**32, 2**32 - 10]], "compressors": "blosc"}, {"chunks": 2**29, "dtype": "c8"},
    {"chunks": 2**30, "dtype": "i1", "filters": WIDER, "compressors": "blosc"},
    {"chunks": 2**30, "dtype": "i1", "filters": [{"id": "astype", "encode_dtype": "<i4", "decode_dtype": "|i1"}],
     "zarr_format": 2},
    {"chunks": 0x7E000001, "compressors": "numcodecs.lz4"},
    {"chunks": 0x7E000001, "compressors": "lz4", "zarr_format": 2},
], ids=str)
def test_chunks_that_their_codec_cannot_encode_are_refused(tmp_path, settings):
    """When the array is created, and not by the first write."""
    settings = {"dtype": "u1", "shape": 2**33, **settings}
    with pytest.raises(ValueError, match="at most 2|exceed the 2"):
        zcore.create_array(tmp_path / "a", **settings)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("settings", [
    {"chunks": MOST, "compressors": "blosc"}, {"chunks": 2**20, "shards": 2**33, "compressors": "blosc"},
    {"chunks": [[10, MOST, 2**33 - MOST - 10]], "compressors": "zstd"}, {"chunks": 2**32, "compressors": "gzip"},
    {"chunks": 2**30, "dtype": "i4", "filters": NARROWER, "compressors": "blosc"},
    {"chunks": 2**32, "codecs": ["bytes", {"name": "zstd", "configuration": {"level": 1, "checksum": False}}, "blosc"]},
    {"chunks": 0x7E000000, "compressors": "numcodecs.lz4"}], ids=str)
def test_chunks_that_their_codec_may_encode(tmp_path, settings):
    a = zcore.create_array(tmp_path, **{"dtype": "u1", "shape": 2**33, **settings})
    assert a[5] == 0


@pytest.mark.skipif(sys.maxsize < 2**32, reason="NumPy has no shape of so many elements there")
def test_an_array_of_chunks_that_cannot_be_encoded_is_read(tmp_path):
    a = zcore.create_array(tmp_path, shape=2**33, chunks=MOST, dtype="u1", compressors="blosc")
    text = (tmp_path / "zarr.json").read_text()
    (tmp_path / "zarr.json").write_text(text.replace(str(MOST), str(2**32)))
    a = zcore.open(tmp_path, "r+")
    assert a[5] == 0
    a[:] = 0
    assert a.chunks == (2**32,) and a.nchunks_initialized == 0


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f8", ">f8", "<c8", ">c16"])
@pytest.mark.parametrize("zarr_format", [3, 2, "zmeta"])
def test_a_fill_value_that_is_an_unusual_nan_is_kept_or_refused(dtype, zarr_format):
    """JSON has one NaN, and Zarr v3 the bits of the others. In `__zmeta__` all mean the usual one."""
    n = np.dtype(dtype).itemsize >> (dtype[1] == "c")
    bits = {2: 0x7E00, 4: 0x7FC00000, 8: 0x7FF8000000000000}[n]
    usual, *changed = [(bits ^ flipped).to_bytes(n, "big" if dtype[0] == ">" else "little")
                       for flipped in (0, 1, 1 << (8 * n - 1))]     # a payload, a sign
    if dtype[1] == "c":
        usual, *changed = 2 * usual, *[one + usual for one in changed], *[usual + one for one in changed]
    usual, *changed = [np.frombuffer(raw, dtype) for raw in (usual, *changed)]
    settings = {"shape": 3, "dtype": dtype, "zarr_format": zarr_format}
    a = zcore.create_array(zcore.MemoryStore(), **settings, fill_value=usual[0])
    assert a[:1].tobytes() == usual.tobytes()
    for fill in changed:
        assert fill.tobytes() != usual.tobytes() and np.isnan(fill).all()
        for make in (lambda: zcore.create_array(store, **settings, fill_value=fill[0]),
                     lambda: zcore.full(3, fill[0], store=store, dtype=dtype, zarr_format=zarr_format),
                     lambda: zcore.open(store, "w", **settings, fill_value=fill[0])):
            store = zcore.MemoryStore()
            if zarr_format == "zmeta":
                assert make()[:1].tobytes() == usual.tobytes()      # ZM-META-08
            elif zarr_format == 3:
                assert make()[:1].tobytes() == zcore.open(store)[:1].tobytes() == fill.tobytes()
            else:
                with pytest.raises(ValueError, match="has one NaN, .* cannot record the fill value 0x"):
                    make()
                assert not list(store.list_prefix(""))


@pytest.mark.parametrize("value", [np.arange(2), np.array(["C", "F"]), ["C"], {}], ids=repr)
@each("name", ["missing", "zarr_format", "order", "threads", "cache", "lock"])
def test_an_argument_that_is_no_single_value_is_named(name, value):
    """An array has no truth value, a list no hash."""
    with pytest.raises((TypeError, ValueError), match=f"^{name}"):
        zcore.create_array({}, shape=3, dtype="i4", **{name: value})


@pytest.mark.parametrize("value", [np.arange(2), ["C"]], ids=["array", "list"])
@each("name", ["mode", "cname", "clevel", "shuffle", "dimension_separator", "use_consolidated", "max_depth"])
def test_the_same_of_other_functions(name, value):
    store = {}
    zcore.create_group(store)
    others = {"use_consolidated": zcore.open_group, "max_depth": zcore.tree, "mode": zcore.open_array}
    call = others.get(name, zcore.open)
    keywords = {"shape": 3, "dtype": "i4", "path": "a", "mode": "a"} if call is zcore.open else {}
    with pytest.raises((TypeError, ValueError), match=rf"(^|: ){name}\b"):
        call(store, **keywords | {name: value})


def test_integers_of_numpy_are_integers():
    store = {}
    array = zcore.open(store, "a", shape=3, dtype="i4", clevel=np.int64(3), shuffle=np.int8(2), threads=np.int32(1))
    assert array.metadata.codecs == zcore.open(store).metadata.codecs
    assert array.metadata.codecs[1].configuration == {"typesize": 4, "cname": "lz4", "clevel": 3,
                                                      "shuffle": "bitshuffle", "blocksize": 0}


@each("data, error", [
    ((i for i in range(3)), r"data is a generator, expected values; list\(data\)"),
    ([2**70], r"such as 1180591620717411303424, and objects are no data type; dtype='f8'"),
    (np.array(["a"], object), "such as 'a', .*dtype=str"), ({"a": 1}, r"save\(store, \*\*arrays\)"),
    ([1, None], "such as 1, .*dtype=str is for text, dtype=bytes for bytes"),
    ([datetime.date(2026, 1, 1)], r"dtype='M8\[D\]' is for dates"),
])
def test_data_that_numpy_takes_for_objects(data, error):
    for call in (lambda: zcore.save({}, data), lambda: zcore.create_array({}, data=data),
                 lambda: zcore.create_group({}).create_array("x", data=data), lambda: zcore.array(data)):
        with pytest.raises(ValueError, match=error):
            call()


@pytest.mark.parametrize("dtype", [None, "string"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_column_of_pandas_that_is_text(zarr_format, dtype):
    pandas = pytest.importorskip("pandas")
    column = pandas.Series(["é", "", "a" * 300], dtype=dtype)
    if str(column.dtype) == "object":
        pytest.skip("text of pandas 2 is objects")
    for make in (zcore.create_array, zcore.from_array):
        array = make({}, data=column, zarr_format=zarr_format)
        assert array.dtype == np.dtypes.StringDType() and array[...].tolist() == column.tolist()
    with pytest.raises(ValueError, match="are missing .*; give texts for them, such as ''"):
        zcore.create_array({}, data=pandas.Series(["é", None], dtype=column.dtype), zarr_format=zarr_format)
