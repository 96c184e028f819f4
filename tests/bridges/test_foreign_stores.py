"""Stores of zarr-python: objects are asked for whole, and no range ends behind an object."""
import warnings

import numpy as np
import pytest

import zcore

zarr = pytest.importorskip("zarr")

import zcore.zarr  # noqa: E402
from tests.strict_store import Sized, Strict  # noqa: E402
from zcore.stores.base import _walk  # noqa: E402
from zcore.stores.zarr_python import ZarrPythonStore  # noqa: E402

PIPELINE = "zcore.zarr.ZcoreCodecPipeline"
VALUES = np.arange(24, dtype="i4").reshape(4, 6)
TEXTS = np.array(["", "é", "a" * 3000, "z"] * 6, dtype=object)


def by_zcore(store, path):
    return zcore.open(store, "r" if store.read_only else "r+")[path]


def by_zarr(store, path):
    with zarr.config.set({"codec_pipeline.path": PIPELINE}):
        return zarr.open_array(store, path=path, mode="r" if store.read_only else "r+")


def memory(tmp_path):
    return zarr.storage.MemoryStore()


def strict(tmp_path):
    return Strict(zarr.storage.MemoryStore())


def sized(tmp_path):
    return Sized(zarr.storage.MemoryStore())


def fsspec_memory(tmp_path):
    pytest.importorskip("fsspec")
    return zarr.storage.FsspecStore.from_url(f"memory:/{tmp_path}")


def fsspec_local(tmp_path):
    pytest.importorskip("fsspec")
    return zarr.storage.FsspecStore.from_url(f"file://{tmp_path}", storage_options={"auto_mkdir": True})


def obstore_memory(tmp_path):
    return zarr.storage.ObjectStore(pytest.importorskip("obstore").store.MemoryStore())


def obstore_local(tmp_path):
    return zarr.storage.ObjectStore(pytest.importorskip("obstore").store.LocalStore(tmp_path))


def icechunk(tmp_path):
    module = pytest.importorskip("icechunk")
    return module.Repository.create(module.in_memory_storage()).writable_session("main").store


OPENED = pytest.mark.parametrize("opened", [by_zarr, by_zcore])
STORES = pytest.mark.parametrize("make", [memory, strict, sized, fsspec_memory, fsspec_local, obstore_memory,
                                          obstore_local, icechunk])


@pytest.mark.thinned(2, "zarr_format", "make", "opened")
@OPENED
@STORES
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_numbers_and_texts_are_read_and_written_in_parts(tmp_path, make, opened, zarr_format):
    store = make(tmp_path)
    if zarr_format == 2 and make is icechunk:
        pytest.skip("Icechunk has no Zarr v2")
    keywords = {"zarr_format": zarr_format, "chunk_key_encoding": {"name": "v2" if zarr_format == 2 else "default"}}
    zarr.create_array(store, name="n", shape=(4, 6), chunks=(3, 4), dtype="i4", **keywords)[:3] = VALUES[:3]
    zarr.create_array(store, name="t", shape=(24,), chunks=(5,), dtype=str, **keywords)[...] = TEXTS
    numbers, texts = opened(store, "n"), opened(store, "t")
    numbers[2:, 1:5] = VALUES[2:, 1:5]
    numbers[3, [0, 5]] = VALUES[3, [0, 5]]
    np.testing.assert_array_equal(numbers[...], VALUES)
    assert numbers[1, 2] == VALUES[1, 2] and numbers[1:3, ::2].tolist() == VALUES[1:3, ::2].tolist()
    texts[4:7] = TEXTS[5:8]
    assert texts[...].tolist() == [*TEXTS[:4], *TEXTS[5:8], *TEXTS[7:]] and texts[3] == "z"


@STORES
def test_names_are_keys_or_prefixes(tmp_path, make):
    """fsspec says of directories, too, that they exist."""
    store = make(tmp_path)
    zarr.create_group(store).create_array("g/n", data=VALUES, chunks=(3, 4))
    opened = ZarrPythonStore(store)
    listed = {prefix: tuple(opened.list_dir(prefix)[:2]) for prefix in ("", "g/", "g/n/", "g/n/c/1/", "h/")}
    assert listed == {"": (["zarr.json"], ["g/"]), "g/": (["g/zarr.json"], ["g/n/"]),
                      "g/n/": (["g/n/zarr.json"], ["g/n/c/"]), "g/n/c/1/": (["g/n/c/1/0", "g/n/c/1/1"], []),
                      "h/": ([], [])}
    assert opened.list_dir("g/zarr.json/")[:2] == ([], [])
    group = zcore.open(store)
    assert list(group) == ["g"] and list(group["g"]) == ["n"]


class Calls(zarr.storage.WrapperStore):
    """Counts what it is asked."""

    n_exists = n_listed = 0

    async def exists(self, key):
        self.n_exists += 1
        return await super().exists(key)

    def list_prefix(self, prefix):
        self.n_listed += 1
        return super().list_prefix(prefix)


@pytest.mark.parametrize("make", [memory, sized, obstore_memory, icechunk])
def test_all_keys_below_a_prefix_are_listed_by_one_call(tmp_path, make):
    store = make(tmp_path)
    array = zarr.create_group(store).create_array("g/n", shape=(40, 3), chunks=(1, 1), dtype="i4")
    array[5:] = 1
    zarr.create_group(store, path="g/na")
    walked = list(_walk(ZarrPythonStore(store), "g/n/"))
    calls = Calls(store)
    opened = ZarrPythonStore(calls)
    opened.is_transaction = make is icechunk
    assert list(opened.list_prefix("g/n/")) == walked == sorted(walked) and len(walked) == 35 * 3 + 1
    assert list(opened.list_prefix("g/n/c/5/")) == [f"g/n/c/5/{i}" for i in range(3)]
    assert (calls.n_exists, calls.n_listed) == (0, 2) and not list(opened.list_prefix("g/no/c/"))
    assert zcore.open(store)["g/n"].nchunks_initialized == 35 * 3


def test_an_archive_that_nobody_has_opened(tmp_path):
    store = zarr.storage.ZipStore(tmp_path / "a.zip", mode="w")
    zcore.create_array(store, name="a", data=VALUES)
    store.close()
    np.testing.assert_array_equal(zcore.open(zarr.storage.ZipStore(tmp_path / "a.zip", mode="r"))["a"][...], VALUES)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_no_keys_are_not_listed(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_group(store)
        for name in ("g/", "g/a", "g/a", "g//b", "g/../c", "g/.__zc_tmp.1"):
            store._zf.writestr(name, b"1")
        opened = ZarrPythonStore(store)
        assert list(opened.list()) == ["g/a", "zarr.json"] and list(opened.list_prefix("g/")) == ["g/a"]
        assert opened.list_dir("g/")[:2] == (["g/a"], [])


def test_keys_behind_a_link_are_listed(tmp_path):
    """`LocalStore.list_prefix` leaves them out."""
    zarr.create_array(tmp_path / "there", name="n", data=VALUES, chunks=(3, 4))
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "g").symlink_to(tmp_path / "there")
    opened = ZarrPythonStore(Calls(zarr.storage.LocalStore(tmp_path / "here")))
    assert "g/n/c/1/1" in list(opened.list())


def test_an_archive_of_zarr_python_is_read(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store, warnings.catch_warnings(action="ignore"):
        zarr.create_array(store, name="n", data=VALUES, chunks=(3, 4))
        zarr.create_array(store, name="t", shape=(24,), chunks=(5,), dtype=str)[...] = TEXTS
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="r") as store:
        for opened in (by_zarr, by_zcore):
            np.testing.assert_array_equal(opened(store, "n")[1:, 2:], VALUES[1:, 2:])
            assert opened(store, "t")[...].tolist() == TEXTS.tolist()


@OPENED
def test_a_whole_object_is_asked_for_without_a_range_and_once(opened):
    store = strict(None)
    zarr.create_array(store, name="n", data=VALUES, chunks=(3, 4))
    array = opened(store, "n")
    store.asked.clear()
    np.testing.assert_array_equal(array[...], VALUES)
    assert sorted((key, part) for key, part, _ in store.chunks) == [(f"n/c/{i}/{j}", None) for i in "01" for j in "01"]


RANGES = [(0, 0), (0, 3), (0, 10), (0, 99), (3, 4), (3, 99), (10, 1), (99, 1), (4, 0), (0, None), (4, None),
          (10, None), (99, None), (None, 0), (None, 4), (None, 10), (None, 99), (0, 2**70), (2**70, 2**70)]


@pytest.mark.thinned(4, "make", "byte_range")
@STORES
@pytest.mark.parametrize("byte_range", RANGES, ids=str)
def test_a_range_is_cut_at_the_end_of_the_value(tmp_path, make, byte_range):
    store = make(tmp_path)
    zarr.create_array(store, name="n", shape=(10,), chunks=(10,), dtype="u1", compressors=None)[...] = range(10)
    opened = ZarrPythonStore(store)
    start, length = byte_range
    start, stop = (max(0, 10 - length), 10) if start is None else (start, 10 if length is None else start + length)
    assert opened.get("n/c/0", byte_range) == bytes(range(10))[start:stop]
    assert opened.get("n/c/1", byte_range) is None


@pytest.mark.parametrize("byte_range", [(-1, 2), (0, -1), (None, -1), (None, None)], ids=str)
def test_a_negative_range_is_an_error(byte_range):
    with pytest.raises(ValueError, match="byte range"):
        ZarrPythonStore(memory(None)).get("a", byte_range)


def test_a_range_of_a_store_that_knows_sizes_fetches_no_more():
    store = sized(None)
    zarr.create_array(store, name="n", shape=(1000,), chunks=(1000,), dtype="u1", fill_value=1)[:5] = 0
    size = len(ZarrPythonStore(store).get("n/c/0"))
    store.asked.clear()
    assert len(ZarrPythonStore(store).get("n/c/0", (3, 5))) == 5 and len(ZarrPythonStore(store).get("n/c/0", (4, None)))
    assert [n for _, _, n in store.asked] == [5, size - 4]


@OPENED
def test_an_object_that_is_too_long_is_found_out(opened):
    """The store cannot be kept from sending it."""
    store = strict(None)
    array = zarr.create_array(store, name="n", shape=(4,), chunks=(4,), dtype="u1", compressors=None)
    array[...] = 1
    ZarrPythonStore(store).set("n/c/0", bytes(100_000))
    with pytest.raises((zcore.ChunkError, zcore.StoreError), match="c/0"):
        opened(store, "n")[...]


def test_a_document_that_is_too_long_is_found_out():
    store = strict(None)
    ZarrPythonStore(store).set("n/zarr.json", b" " * ((1 << 27) + 1))
    with pytest.raises(zcore.MetadataError, match="at most 134217728 bytes"):
        zcore.open_array(store, path="n")


def test_a_session_of_another_kind_makes_no_transaction():
    store = zarr.storage.MemoryStore()
    store.session = object()     # as a store of HTTP may have one
    assert not ZarrPythonStore(store).is_transaction


def test_a_store_without_ranges_or_sizes_or_exists_is_read():
    class Poor(Strict):
        async def get(self, key, prototype, byte_range=None):
            if byte_range is not None:
                raise NotImplementedError(f"{byte_range} not supported")
            return await super().get(key, prototype)

        async def exists(self, key):
            raise NotImplementedError

        async def getsize(self, key):
            raise NotImplementedError

    store = Poor(zarr.storage.MemoryStore())
    zarr.create_array(store._store, name="g/n", data=VALUES, chunks=(3, 4))
    zarr.create_array(store._store, name="g/s", data=VALUES, chunks=(1, 2), shards=(2, 6))
    for opened in (by_zarr, by_zcore):
        np.testing.assert_array_equal(opened(store, "g/n")[1:, 2:], VALUES[1:, 2:])
        assert opened(store, "g/s")[1, 2] == VALUES[1, 2]
    assert sorted(name for name, _ in zcore.open(store)["g"].members()) == ["n", "s"]
    assert ZarrPythonStore(store).get("g/n/zarr.json", (1, 4)) == ZarrPythonStore(store).get("g/n/zarr.json")[1:5]
    assert ZarrPythonStore(store).existing("g/n/", ["zarr.json", "no"]) == ["zarr.json"]


def test_a_tiff_file_is_opened(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    values = np.arange(60000, dtype="u2").reshape(200, 300)
    tifffile.imwrite(tmp_path / "a.tif", values, tile=(64, 64), compression="zlib")
    with tifffile.imread(tmp_path / "a.tif", aszarr=True) as store:
        np.testing.assert_array_equal(zcore.open(store)[...], values)
        np.testing.assert_array_equal(by_zarr(store, "")[3:190, 70:], values[3:190, 70:])
        np.testing.assert_array_equal(zcore.copy(store, zcore.MemoryStore())[...], values)
    np.testing.assert_array_equal(zcore.open(tmp_path / "a.tif")[...], values)
    (tmp_path / "b.tif").write_bytes((tmp_path / "a.tif").read_bytes()[:100])
    (tmp_path / "c.tif").write_bytes(b"II*\0\0\0\0\0")
    for name in ("b.tif", "c.tif"):
        with pytest.raises(zcore.StoreError, match="cannot read the TIFF file"):
            zcore.open(tmp_path / name)


def test_a_copy_of_a_tiff_file_is_like_one_of_any_file(tmp_path):
    """The format and the codecs of the store of tifffile are not those of the file."""
    tifffile = pytest.importorskip("tifffile")
    values = np.arange(60000, dtype="u2").reshape(200, 300)
    tifffile.imwrite(tmp_path / "a.tif", values, tile=(64, 64), compression="zlib", metadata={"axes": "YX"})
    made = zcore.copy(tmp_path / "a.tif", tmp_path / "a.zarr")
    expected = zcore.array(values, chunks=(64, 64), dimension_names=["Y", "X"])
    assert made.metadata.replace(attributes=None) == expected.metadata.replace(attributes=None)
    np.testing.assert_array_equal(made[...], values)
    assert zcore.copy(tmp_path / "a.tif", tmp_path / "b.zarr", zarr_format=2, compressors=()).zarr_format == 2
    with pytest.raises(zcore.UnsupportedError, match=r"a\.tif, read-only\): tifffile decodes.*tiff2fsspec"):
        zcore.references(tmp_path / "a.tif")


def test_a_pyramid_in_a_tiff_file_is_a_group(tmp_path):
    tifffile = pytest.importorskip("tifffile")
    values = np.arange(256 * 256, dtype="u2").reshape(256, 256)
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        file.write(values, tile=(64, 64), subifds=1)
        file.write(values[::2, ::2], tile=(64, 64), subfiletype=1)
    made = zcore.copy(tmp_path / "a.ome.tif", tmp_path / "a.zarr")
    assert sorted(made) == ["0", "1"] and made.zarr_format == 3
    assert "multiscales" in made.attrs.get("ome", made.attrs)     # as tifffile of this version has it
    for level in (0, 1):
        np.testing.assert_array_equal(made[f"{level}"][...], values[::1 + level, ::1 + level])
    with tifffile.TiffFile(tmp_path / "a.ome.tif") as file:
        place = file.pages[0].tags["Compression"].valueoffset
    with open(tmp_path / "a.ome.tif", "r+b") as file:
        file.seek(place)
        file.write(b"\x95\x87")     # a compression that nobody has: its chunks are not the fill value
    with pytest.raises(zcore.StoreError, match="a.ome.tif"):
        zcore.open(tmp_path / "a.ome.tif")["0"][...]


def test_manifests_of_virtualizarr_are_opened(tmp_path):
    pytest.importorskip("virtualizarr")
    obstore = pytest.importorskip("obstore")
    from obspec_utils.registry import ObjectStoreRegistry
    from virtualizarr.manifests import ChunkManifest, ManifestArray, ManifestGroup, ManifestStore
    from virtualizarr.manifests.utils import create_v3_array_metadata

    (tmp_path / "x.bin").write_bytes(VALUES.tobytes())
    url = f"file://{tmp_path}/x.bin"
    metadata = create_v3_array_metadata(
        shape=(24,), data_type=VALUES.dtype, chunk_shape=(12,), fill_value=0, dimension_names=None,
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}}])
    manifest = ChunkManifest({str(i): {"path": url, "offset": 48 * i, "length": 48} for i in range(2)})
    array = ManifestArray(metadata=metadata, chunkmanifest=manifest)
    store = ManifestStore(ManifestGroup(arrays={"a": array}, groups={"g": ManifestGroup(arrays={"b": array})}),
                          registry=ObjectStoreRegistry({"file://": obstore.store.LocalStore()}))
    group = zcore.open(store)
    assert [name for name, _ in group.members()] == ["a", "g"]
    for opened in (by_zarr, by_zcore):
        np.testing.assert_array_equal(opened(store, "a")[...], VALUES.ravel())
        np.testing.assert_array_equal(opened(store, "g/b")[11:13], [11, 12])


@pytest.mark.parametrize("make", [fsspec_local, fsspec_memory])
def test_a_bound_that_no_object_reaches_takes_no_memory(tmp_path, make):
    """Also in a filesystem of fsspec that is opened without zarr-python."""
    filesystem = make(tmp_path).fs
    store = zcore.storage.FsspecStore(getattr(filesystem, "sync_fs", filesystem).get_mapper(str(tmp_path)))
    zcore.create_array(store, name="t", data=np.array(["a", "b", "c"], dtype=object), chunks=(2,), dtype="T")
    assert zcore.open(store)["t"][...].tolist() == ["a", "b", "c"]
    zcore.create_array(store, name="n", shape=(1 << 45,), chunks=(1 << 45,), dtype="u1", compressors=None)
    store.set("n/c/0", b"damaged")
    with pytest.raises(zcore.ChunkError):
        zcore.open(store)["n"][3]


@pytest.mark.parametrize("value", ["no", np.arange(2)], ids=["text", "array"])
def test_whether_a_store_is_read_only_is_true_or_false(value):
    with pytest.raises(TypeError, match="^read_only is .*, expected True or False"):
        zcore.zarr.Store(zcore.MemoryStore(), read_only=value)
