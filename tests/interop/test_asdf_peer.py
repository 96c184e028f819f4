"""ASDF files read and written by the asdf package, and by zcore, in both directions, its validation on."""
import importlib.util
import os

import numpy as np
import pytest

import zcore

asdf = pytest.importorskip("asdf")

DTYPES = ["bool", "<i1", "<i2", ">i4", "<i8", ">u2", "<u8", "<f2", ">f4", "<f8", "<c8", ">c16", "S5", "<U4", ">U3",
          [("a", "<i2"), ("b", ">f8", (2,)), ("c", "S3")]]
COMPRESSIONS = [None, "zlib", "bzp2",
                pytest.param("lz4", marks=pytest.mark.skipif(importlib.util.find_spec("lz4") is None,
                                                             reason="the package lz4 is not installed"))]


def array_of(dtype, shape=(6, 7)):
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(0).integers(0, 100, (*shape, dtype.itemsize), "u1")
    if dtype.kind in "biu":
        return (raw[..., 0] % 2 if dtype.kind == "b" else raw[..., 0]).astype(dtype)
    if dtype.kind in "fc":
        return raw[..., 0].astype(dtype) / 8
    if dtype.kind in "SU":
        return raw[..., 0].astype("U3").astype(dtype)
    made = np.zeros(shape, dtype)
    for name in dtype.names:
        made[name] = array_of(dtype[name].base, shape + dtype[name].shape)
    return made


def same(found, expected):
    return found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.asdf")


def opened(path, **keywords):
    return asdf.open(path, validate_checksums=True, memmap=False, lazy_load=False, **keywords)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_zcore_writes_asdf_reads(path, compression):
    """AS-HDR-01, AS-BLK-01, AS-CMP-01, AS-CMP-02, AS-CHK-02, AS-IDX-01, AS-ND-07 to AS-ND-10: with validation on."""
    tree = {str(i): array_of(dtype) for i, dtype in enumerate(DTYPES)}
    for form in ({}, {"pad": 100, "block_align": 512}, {"index": False, "checksum": False}):
        zcore.asdf.write(path, tree, compression=compression, **form)
        with opened(path) as file:
            file.validate()
            for name, value in tree.items():
                assert same(np.asarray(file[name]), value), (name, form)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_asdf_writes_zcore_reads(path, compression):
    """AS-BLK-01, AS-CMP-01, AS-CMP-02, AS-CHK-02, AS-IDX-01, AS-ND-07 to AS-ND-10."""
    tree = {str(i): array_of(dtype) for i, dtype in enumerate(DTYPES)}
    for form in ({}, {"pad_blocks": True}, {"include_block_index": False}):
        asdf.AsdfFile(tree).write_to(path, all_array_compression=compression, **form)
        with zcore.asdf.open(path) as file:
            assert file.verify() == len(file.blocks) == len(tree)
            assert file.blocks.found.is_indexed is form.get("include_block_index", True)
            assert {block.compression for block in file.blocks} == {compression}
            for name, value in tree.items():
                assert same(file.tree[name].read(), value), (name, form)


def test_large_arrays_in_both_directions(path):
    """AS-CMP-02: records of LZ4, and streams in many pieces."""
    for compression in ["zlib", "bzp2", *(["lz4"] if importlib.util.find_spec("lz4") else [])]:
        data = np.random.default_rng(1).integers(0, 20, (1 if compression == "bzp2" else 5) << 20, "u1")
        zcore.asdf.write(path, {"a": data}, compression=compression)
        with opened(path) as file:
            assert np.array_equal(file["a"], data)
        asdf.AsdfFile({"a": data}).write_to(path, all_array_compression=compression)
        with zcore.asdf.open(path) as file:
            assert np.array_equal(file.tree["a"].read(), data)


def test_views_in_both_directions(path):
    """AS-ND-12, AS-ND-14, AS-ND-22: one block, several arrays."""
    base = np.arange(600.0).reshape(20, 30)
    tree = {"all": base, "tile": base[3:9, 4:20:3], "turned": base.T, "backwards": base[::-1, ::-2]}
    zcore.asdf.write(path, tree)
    with opened(path) as file:
        assert all(np.array_equal(file[name], value) for name, value in tree.items())
    asdf.AsdfFile(tree).write_to(path)
    with zcore.asdf.open(path) as file:
        assert all(np.array_equal(file.tree[name].read(), value) for name, value in tree.items())


def test_streams_in_both_directions(path):
    """AS-STR-01, AS-STR-04, AS-STR-05: rows that one appends to the file of the other."""
    with zcore.asdf.stream(path, {"rows": zcore.asdf.Stream((3,), ">f4")}) as rows:
        rows.append(np.arange(6).reshape(2, 3))
    with asdf.open(path) as file:
        assert np.array_equal(file["rows"], np.arange(6).reshape(2, 3))
    stream = asdf.tags.core.Stream([3], np.dtype(">f4")) if hasattr(asdf.tags.core, "Stream") else None
    if stream is None:
        pytest.skip("this asdf has no Stream")
    with open(path, "wb") as file:
        asdf.AsdfFile({"rows": stream}).write_to(file)
        file.write(np.arange(3, dtype=">f4").tobytes())
    with zcore.asdf.stream(path) as rows:
        assert rows.n_rows == 1
        rows.append([3, 4, 5])
    with asdf.open(path) as file:
        assert np.array_equal(file["rows"], np.arange(6).reshape(2, 3))


def test_changes_of_a_file_of_the_other(path):
    """AS-UPD-01 to AS-UPD-03, AS-UPD-07, AS-COM-04: updated, in place and not, and appended to."""
    a, b = np.arange(100), np.arange(50.0)
    asdf.AsdfFile({"a": a, "b": b, "note": "x" * 200, "history": {"entries": []}}).write_to(path, pad_blocks=True)
    with zcore.asdf.open(path, "rw") as file:
        file.tree["a"] = a * 2
        file.tree["note"] = "short"
        file.tree["c"] = a[:7]
        assert file.update(in_place=True) is True
    with opened(path) as file:
        assert np.array_equal(file["a"], a * 2) and np.array_equal(file["b"], b) and np.array_equal(file["c"], a[:7])
    with zcore.asdf.open(path, "rw") as file:
        file.tree["d"] = a + 1
        assert file.update(compression="zlib") is False
    with opened(path) as file:
        assert np.array_equal(file["d"], a + 1) and np.array_equal(file["b"], b) and file["note"] == "short"
    with asdf.open(path, mode="rw") as file:
        file["e"] = b * 3
        file.update()
    with zcore.asdf.open(path) as file:
        assert np.array_equal(file.tree["e"], b * 3) and np.array_equal(file.tree["a"], a * 2)
        assert file.verify() == len(file.blocks)


def test_exploded_files_of_the_other(path):
    """AS-EXP-01, AS-EXP-02, AS-ND-05: external blocks of either one."""
    a = np.arange(100)
    asdf.AsdfFile({"a": a, "b": a * 2.5}).write_to(path, all_array_storage="external")
    with zcore.asdf.open(path) as file:
        assert np.array_equal(file.tree["a"].read(), a) and np.array_equal(file.tree["b"].read(), a * 2.5)
    with opened(zcore.asdf.implode(path)) as file:
        assert np.array_equal(file["a"], a) and np.array_equal(file["b"], a * 2.5)
    zcore.asdf.write(path, {"a": a, "part": a[10:20]})
    with opened(zcore.asdf.explode(path)[0]) as file:
        assert np.array_equal(file["a"], a) and np.array_equal(file["part"], a[10:20])
    assert len(os.listdir(os.path.dirname(path))) == 6


def test_index_that_lies_in_the_middle_is_not_believed(path):
    """AS-IDX-06, AS-IDX-09: asdf believes first and last entry when it reads lazily; skipping along is right."""
    zcore.asdf.write(path, {str(i): np.full(100, i) for i in range(4)})
    with zcore.asdf.open(path) as file:
        offsets = list(file.blocks.found.offsets)
    with open(path, "r+b") as file:
        data = file.read()
        file.seek(data.index(b"#ASDF BLOCK INDEX"))
        wrong = [offsets[0], offsets[1] + 60, offsets[2] + 60, offsets[3]]
        file.write(zcore.asdf.file_layout.render_block_index(wrong))
        file.truncate()
    with zcore.asdf.open(path) as file:
        assert [file.tree[str(i)].read().max() for i in range(4)] == [0, 1, 2, 3]
        assert not file.blocks.found.is_indexed


@pytest.mark.parametrize("version", ["1.0.0", "1.4.0", "1.5.0", "1.6.0"])
def test_asdf_reads_what_zcore_writes_of_its_files(tmp_path, version):
    """AS-COM-02, AS-ND-01: arrays of each version of the standard, old and new ones, stay arrays."""
    path, copy = tmp_path / "a.asdf", tmp_path / "b.asdf"
    asdf.AsdfFile({"a": np.arange(3.0), "m": {"b": np.arange(4)}, "filler": "x" * 500}, version=version).write_to(path)

    def check(path, *names):
        with asdf.open(path) as file:
            assert file.version_string == version
            assert all([np.asarray(file[name]).shape == (9,) for name in names])
            assert np.array_equal(file["a"], np.arange(3.0)) and np.array_equal(file["m"]["b"], np.arange(4))

    with zcore.asdf.open(path, "rw") as file:
        zcore.asdf.write(copy, file.tree)
        check(copy)
        zcore.asdf.write(copy, {**file.tree, "new": np.ones(9)})
        check(copy, "new")
        file.tree["filler"], file.tree["new"] = "", np.ones(9, "f2")
        assert file.update(in_place=True)
        check(path, "new")
        file.tree["newer"] = np.ones(9)
        assert not file.update()
        check(path, "new", "newer")
    zcore.asdf.defragment(path)
    check(path, "new", "newer")


def test_blosc_of_its_extensions(path):
    """AS-CMP-05: the same four characters for two contents, which zcore tells from one another."""
    import struct

    blosc = pytest.importorskip("blosc")
    array = np.random.default_rng(0).integers(0, 100, 1_500_000).astype("<i4")

    class Compressor(asdf.extension.Compressor):
        label = b"blsc"
        in_records = True

        def compress(self, data, **_):
            if not self.in_records:
                yield blosc.compress(bytes(data), typesize=4, cname="lz4")
                return
            for start in range(0, len(data), 1 << 22):
                part = blosc.compress(bytes(data[start:start + (1 << 22)]), typesize=4, clevel=1, cname="zstd")
                yield struct.pack("!I", len(part)) + part

        def decompress(self, data, out, **_):
            raise NotImplementedError

    class Extension(asdf.extension.Extension):
        extension_uri = "asdf://example.org/extensions/blosc-1.0.0"
        compressors = (Compressor(),)

    for Compressor.in_records in (True, False):
        with asdf.config_context() as settings:
            settings.add_extension(Extension())
            asdf.AsdfFile({"a": array, "b": array[:100]}).write_to(path, all_array_compression="blsc")
        with zcore.asdf.open(path) as file:
            assert file.blocks[0].compression == "blsc"
            assert same(np.asarray(file.tree["a"]), array)
            zcore.asdf.write(path + ".zlib", file.tree, compression="zlib")
        assert zcore.verify(path).ok and same(zcore.open(path)["a"][...], array)
        assert zcore.verify(path + ".zlib").ok
