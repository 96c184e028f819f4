"""Reference sets of HDF5 files: the values are h5py's own, and what cannot be had is refused by name."""
import ctypes
import gc
import json
import os
import re
import sys
import warnings
import zlib

import numpy as np
import pytest

import zcore
from zcore.errors import IncompleteCopyWarning, UnsupportedError
from zcore.tools.hdf5 import dataset
from zcore.tools.references.hdf5 import references_from_hdf5

h5py = pytest.importorskip("h5py")
RNG = np.random.default_rng(7)


def same(found, dataset):
    """Whether an array has the elements of a dataset."""
    expected = dataset.asstr()[()] if dataset.dtype.kind == "O" else dataset[()]
    found = np.asarray(found[...], object) if dataset.dtype.kind == "O" else found[...]
    return np.array_equal(found, expected) if dataset.dtype.kind in "OSV" else (
        found.dtype == expected.dtype and np.asarray(found).tobytes() == np.asarray(expected).tobytes())


def check(path, **options):
    """Open a set of a file, compare all there is, and return the group; also of the set that was saved."""
    made = references_from_hdf5(path, **options)
    made.save(path.with_suffix(".json"))
    group = zcore.open(path.with_suffix(".json"))
    with h5py.File(path) as file:
        def compare(name, node):
            if isinstance(node, h5py.Dataset) and node.shape is not None:
                assert same(group[name], node), name
                assert same(zcore.open(made)[name], node), name

        file.visititems(compare)
    return group


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.h5"


KINDS = ["i1", "<u2", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8", "?", "<c8", ">c16", "S1", "S7",
         [("a", "<i4"), ("b", ">f8"), ("c", "S3")], [("z", "<c8"), ("in", [("x", "u1"), ("y", ">i2")])]]


@pytest.mark.thinned(3, "dtype", "options")
@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("options", [
    {}, {"chunks": (3, 4)}, {"chunks": (3, 4), "compression": "gzip", "shuffle": True},
    {"chunks": (3, 4), "compression": 1, "fletcher32": True, "shuffle": True}, {"chunks": (3, 4), "fletcher32": True},
    {"chunks": (9, 9), "shuffle": True, "maxshape": (None, 20)}], ids=str)
def test_types_and_filters(path, dtype, options):
    """RF-STO-03, RF-V1-03"""
    dtype = np.dtype(dtype)
    values = RNG.integers(1, 100, (8, 9, dtype.itemsize)).astype("u1")
    values = values % 2 == 1 if dtype.kind == "b" else values.view(dtype)
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values[..., 0], **options)
    for threshold in (0, 10**6):
        array = check(path, inline_threshold=threshold)["x"]
        assert all(isinstance(value, str) for value in array.store.to_v0().values()) == (threshold > 0)


def test_small_chunks_are_read_through_one_descriptor(path, monkeypatch):
    """RF-V1-03"""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(20), chunks=(1,), shuffle=True)
    opened = []
    monkeypatch.setattr(dataset, "open", lambda *given: opened.append(given) or open(*given), raising=False)
    assert len(references_from_hdf5(path).to_v0()) == 23     # 20 chunks and 3 documents
    assert len(opened) == 1


@pytest.mark.parametrize("options", [{}, {"userblock_size": 1024}, {"libver": "latest"}, {"libver": "earliest"}])
def test_layouts(path, options):
    """RF-STO-03, RF-V1-03: contiguous, chunked, compact; written, in part, and not at all."""
    with h5py.File(path, "w", **options) as file:
        file.create_dataset("chunked", data=RNG.random((30, 40)), chunks=(7, 9), compression="gzip")
        file["contiguous"] = RNG.random((30, 40))
        file.create_dataset("sparse", (20, 30), ">i2", chunks=(7, 8), fillvalue=-1)[:7, :8] = 3
        file.create_dataset("chunked_unwritten", (5, 6), "f4", chunks=(2, 2), fillvalue=np.nan)
        file.create_dataset("unwritten", (5,), "f4", fillvalue=7)
        file["scalar"], file["text"], file["none"] = 2.5, b"abc", np.zeros((0, 3))
        file.create_dataset("nothing", (0, 3), "i4", chunks=(2, 2), maxshape=(None, 3))
        shrunk = file.create_dataset("shrunk", data=np.arange(40), chunks=(7,), maxshape=(None,))
        shrunk.resize((10,))
        space, properties = h5py.h5s.create_simple((5,)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        compact = h5py.h5d.create(file.id, b"compact", h5py.h5t.NATIVE_INT32, space, properties)
        compact.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(5, dtype="i4"))
    group = check(path, inline_threshold=0)
    written = group.store.to_v0()
    assert written["contiguous/0.0"] == ["a.h5", written["contiguous/0.0"][1], 9600]
    assert isinstance(written["compact/0"], str) and [key for key in written if "unwritten/0" in key] == []
    assert group["sparse"].nchunks_initialized == 1 and group["shrunk"].nchunks_initialized == 2


def test_a_contiguous_dataset_is_cut(path, monkeypatch):
    """RF-V1-03: into parts that divide it; one that has none stays whole."""
    monkeypatch.setattr("zcore.tools.hdf5.dataset.PART_NBYTES", 100)
    with h5py.File(path, "w") as file:
        for name, shape in (("cut", (10, 9, 4)), ("prime", (101,)), ("rows", (3, 100)), ("deep", (2, 3, 50))):
            file[name] = RNG.integers(0, 255, shape).astype("u1")
    group = check(path, inline_threshold=0)
    chunks = [group[name].chunks for name in ("cut", "prime", "rows", "deep")]
    assert chunks == [(2, 9, 4), (101,), (1, 100), (1, 1, 50)]


def test_chunks_that_were_stored_without_filters(path):
    """RF-V1-03: random bytes that gzip makes no smaller, and chunks that were written so."""
    with h5py.File(path, "w") as file:
        some = file.create_dataset("some", (4, 100), "i4", chunks=(1, 100), compression="gzip", shuffle=True)
        some[...] = np.arange(400).reshape(4, 100)
        every = file.create_dataset("every", (4, 100), "i4", chunks=(1, 100), compression="gzip", shuffle=True)
        for i, mask in enumerate((0, 3, 1, 0)):
            if mask:
                row = np.arange(100, dtype="i4") * i
                raw = row.tobytes() if mask == 3 else zlib.compress(row.tobytes())
                some.id.write_direct_chunk((i, 0), raw, filter_mask=mask)
            every.id.write_direct_chunk((i, 0), np.full(100, i, "i4").tobytes(), filter_mask=3)
        other = file.create_dataset("other", (2, 100), "i4", chunks=(1, 100), scaleoffset=0)
        for i in range(2):
            other.id.write_direct_chunk((i, 0), np.full(100, i, "i4").tobytes(), filter_mask=1)
    group = check(path, inline_threshold=0)
    written = group.store.to_v0()
    assert [isinstance(written[f"some/{i}.0"], str) for i in range(4)] == [False, True, True, False]
    assert group["every"].compressors == () and written["every/1.0"][2] == 400
    with pytest.raises(UnsupportedError, match="max_inlined"):
        references_from_hdf5(path, max_inlined=500)


def add_filter(properties, letter):
    """Add shuffle, gzip or fletcher32."""
    {"s": properties.set_shuffle, "z": lambda: properties.set_deflate(4), "f": properties.set_fletcher32}[letter]()


def function(name, *types):
    """Return a function of HDF5 that h5py does not have."""
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("the library is found by the list of the system")
    with open("/proc/self/maps") as maps:
        names = re.findall(r"/\S*/libhdf5[-.]\S*", maps.read())
    # netCDF4 brings an HDF5 of its own.
    found = getattr(ctypes.CDLL(max(names, key=lambda name: "h5py" in name)), name)
    found.argtypes = types
    return found


def with_precision(kind, precision):
    assert function("H5Tset_precision", ctypes.c_int64, ctypes.c_size_t)(kind.id, precision) >= 0
    return kind


@pytest.mark.parametrize("filters", ["s", "z", "sz", "f", "fsz", "szf"])
@pytest.mark.parametrize("grows", [False, True])
def test_chunks_at_the_border_that_no_filter_was_applied_to(path, filters, grows):
    """RF-V1-03: their mask says that all were applied."""
    values = (np.arange(130, dtype="i4") * 0x01020304).reshape(10, 13) + 134744072
    with h5py.File(path, "w", libver="latest") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((4, 4))
        for letter in filters:
            add_filter(properties, letter)
        # DONT_FILTER_PARTIAL_CHUNKS
        assert function("H5Pset_chunk_opts", ctypes.c_int64, ctypes.c_uint)(properties.id, 2) >= 0
        space = h5py.h5s.create_simple((10, 13), (h5py.h5s.UNLIMITED, 13) if grows else (10, 13))
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, space, properties)
        file["x"][...] = values
        file.create_dataset("flat", data=np.zeros((10, 13), "i4"), chunks=(4, 4), shuffle=True)
    written = check(path, inline_threshold=0).store.to_v0()
    assert [key for key in sorted(written) if key[0] == "x" and isinstance(written[key], list)] == [
        f"x/{i}.{j}" for i in range(2) for j in range(3)]
    assert all(isinstance(written[f"flat/2.{j}"], list) for j in range(4))
    with pytest.raises(UnsupportedError, match="max_inlined"):
        references_from_hdf5(path, max_inlined=100)


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f4", "<f8", "S3"])
def test_a_checksum_before_the_shuffle(path, dtype):
    """RF-STO-03: the order of NetCDF-4. HDF5 leaves the part of an item at the end as it is."""
    values = np.arange(300).reshape(20, 15).astype(dtype)
    with h5py.File(path, "w") as file:
        for name in ("fsz", "fs", "ssf"):
            properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            properties.set_chunk((7, 4))
            for letter in name:
                add_filter(properties, letter)
            space = h5py.h5s.create_simple(values.shape)
            kind = h5py.h5t.py_create(np.dtype(dtype))
            h5py.h5d.create(file.id, name.encode(), kind, space, properties)
            file[name][...] = values
    group = check(path)
    filters = [{"id": "fletcher32"}, {"id": "shuffle", "elementsize": values.itemsize}]
    new = zcore.create_array(zcore.MemoryStore(), data=values, chunks=(7, 4), zarr_format=2, filters=filters,
                             compressors={"id": "zlib", "level": 4})
    # Compressors may differ.
    assert (new[...] == values).all()
    assert zlib.decompress(new.store.get("1.2")) == zlib.decompress(group.store.get("fsz/1.2"))


@pytest.mark.parametrize(("number", "values", "codec"), [
    (32001, (2, 2, 4, 400, 5, 1, 1), "blosc"), (32015, (3,), "zstd")])
def test_filters_that_h5py_lacks(path, number, values, codec):
    """RF-STO-03: chunks are where they are, whoever can decode them."""
    array = zcore.create_array(zcore.MemoryStore(), shape=100, chunks=50, dtype="i4", zarr_format=2, compressors={
        "blosc": {"id": "blosc", "cname": "lz4"}, "zstd": {"id": "zstd", "level": 3}}[codec])
    array[:] = np.arange(100)
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((50,))
        properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
        try:
            made = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((100,)), properties)
        except (ValueError, OSError) as exc:
            pytest.skip(f"HDF5 makes no such dataset: {exc}")
        for i in range(2):
            made.write_direct_chunk((50 * i,), array.store.get(str(i)))
    opened = zcore.open(references_from_hdf5(path))["x"]
    assert (opened[:] == np.arange(100)).all() and opened.metadata.codecs[-1].name.endswith(codec)


def test_texts_of_varying_length(path):
    """RF-V1-07: they are copied, within bounds."""
    with h5py.File(path, "w") as file:
        file["some"] = ["abc", "äöü", "", "日本" * 50]
        file["one"] = "a text"
        file["empty"] = np.array([], dtype=h5py.string_dtype())
        file.create_dataset("chunked", (5, 3), dtype=h5py.string_dtype("ascii"), chunks=(2, 2))[:3, :] = "x"
    group = check(path)
    assert group["some"].dtype.kind == "T" and group["some"][:3].tolist() == ["abc", "äöü", ""]
    with pytest.raises(UnsupportedError, match="'some'.*max_inlined"):
        references_from_hdf5(path, max_inlined=150)


def test_texts_that_stand_in_many_elements(path, monkeypatch):
    """RF-V1-07: they are read one by one until there are too many."""
    monkeypatch.setattr("zcore.tools.hdf5.dataset.MAX_TEXTS_NBYTES", 1000)
    with h5py.File(path, "w") as file:
        file["texts"] = np.array([["a", "bb"], ["ccc", "ä"]], object)
    check(path)
    with h5py.File(path, "w") as file:
        file["texts"] = ["x" * 500] * 100
    with pytest.raises(UnsupportedError, match="max_inlined"):
        references_from_hdf5(path, max_inlined=2000)
    with h5py.File(path, "w") as file:
        file.create_dataset("texts", (1,), h5py.string_dtype("utf-8"))[0] = b"\xff"
    with pytest.raises(UnsupportedError, match="UTF-8"):
        references_from_hdf5(path)


def test_texts_of_a_filter_that_is_absent(path, monkeypatch):
    """One dataset does not cost the whole file."""
    with h5py.File(path, "w") as file:
        file.create_dataset("texts", (4,), h5py.string_dtype(), chunks=(2,), compression="gzip")[:] = "x"
        file["good"] = np.arange(5)
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: False)
    with pytest.warns(IncompleteCopyWarning, match="'texts' .* does not have the filter 1; hdf5plugin"):
        group = zcore.open(references_from_hdf5(path, unsupported="skip"))
    assert list(group.array_keys()) == ["good"]
    with pytest.raises(UnsupportedError, match="filter 1"):
        references_from_hdf5(path)


def make_unsupported(file, what):
    """Make a dataset that has no counterpart; returns its name."""
    if what == "szip":
        if not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            pytest.skip("this HDF5 has no szip")
        file.create_dataset("x", data=np.arange(100), chunks=(10,), compression="szip")
    elif what == "lzf":
        file.create_dataset("x", data=np.arange(100), chunks=(10,), compression="lzf")
    elif what == "scaleoffset":
        file.create_dataset("x", data=np.arange(100), chunks=(10,), scaleoffset=0)
    elif what == "external":
        file.create_dataset("x", (10,), "i4", external=[("/etc/passwd", 0, 40)])
    elif what == "virtual":
        layout = h5py.VirtualLayout((10,), "i4")
        layout[:] = h5py.VirtualSource("/etc/passwd", "y", shape=(10,))
        file.create_virtual_dataset("x", layout)
    elif what == "reference":
        file.create_dataset("x", (3,), h5py.ref_dtype)
    elif what == "lists":
        file.create_dataset("x", (3,), h5py.vlen_dtype("i4"))
    elif what == "opaque":
        file["x"] = np.zeros(3, "V5")
    elif what == "padded":
        file["x"] = np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")], align=True))
    elif what == "order":
        kind = h5py.h5t.create(h5py.h5t.COMPOUND, 8)
        kind.insert(b"b", 4, h5py.h5t.STD_I32LE)
        kind.insert(b"a", 0, h5py.h5t.STD_I32LE)
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
    elif what == "blanks":
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(5)
        kind.set_strpad(h5py.h5t.STR_SPACEPAD)
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
    elif what == "float":
        kind = h5py.h5t.IEEE_F32LE.copy()
        kind.set_ebias(100)
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
    elif what == "24 bits":
        kind = h5py.h5t.STD_B32LE.copy()
        h5py.h5d.create(file.id, b"x", with_precision(kind, 24), h5py.h5s.create_simple((3,)))
    elif what == "time":
        h5py.h5d.create(file.id, b"x", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((3,)))
    elif what == "float128":
        file["x"] = np.zeros(3, np.longdouble)
    elif what == "name":
        file[".zarray"] = 1
    elif what == "list of numbers":
        file.create_dataset("x", (3,), np.dtype(("i4", (2,))))


@pytest.mark.parametrize(("what", "named"), [
    ("szip", "szip"), ("lzf", "lzf"), ("scaleoffset", "scaleoffset"), ("external", "other files"),
    ("virtual", "other datasets"), ("reference", "type"), ("lists", "type"), ("opaque", "type"), ("padded", "type"),
    ("order", "type"),
    ("blanks", "type"), ("float", "type"), ("name", "name"), ("list of numbers", "arrays"), ("time", "TypeTimeID"),
    ("float128", "data type"), ("24 bits", "type"),
])
def test_what_has_no_counterpart(path, what, named):
    """RF-STO-03: it is refused by name, or left out with a warning, and nothing of another file is read."""
    with h5py.File(path, "w") as file:
        file["good"] = np.arange(3)
        make_unsupported(file, what)
    name = ".zarray" if what == "name" else "x"
    with pytest.raises(UnsupportedError, match=f"'{name}'.*{named}.*unsupported='skip'"):
        references_from_hdf5(path)
    with pytest.warns(IncompleteCopyWarning, match="left out"):
        made = references_from_hdf5(path, unsupported="skip")
    assert set(zcore.open(made)) == {"good"}


@pytest.mark.parametrize("kind", ["STD_B8LE", "STD_B16BE", "STD_B32LE", "STD_B64BE"])
def test_bit_fields_are_numbers(path, kind):
    """RF-STO-03"""
    with h5py.File(path, "w") as file:
        kind = getattr(h5py.h5t, kind)
        h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((3,)))
        file["x"][...] = np.array([1, 2, 200], kind.dtype)
    assert check(path)["x"][:].tolist() == [1, 2, 200]
    assert zcore.copy(path, zcore.MemoryStore())["x"][:].tolist() == [1, 2, 200]


def test_a_fill_value_that_is_undefined(path):
    """RF-STO-03"""
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((2,))
        function("H5Pset_fill_value", ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
            properties.id, h5py.h5t.STD_I32LE.id, None)
        h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((4,)), properties)
        file["x"][:] = 1
        file.create_dataset("g/y", data=[1, 2])
    assert zcore.open(references_from_hdf5(path))["x"][:].tolist() == [1] * 4
    for format in (2, 3):
        assert zcore.copy(path, zcore.MemoryStore(), zarr_format=format)["x"][:].tolist() == [1] * 4


def test_enums_lose_their_names_with_a_warning(path):
    """RF-STO-03"""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.array([0, 1], "u1"), dtype=h5py.enum_dtype({"clear": 0, "rain": 1}, "u1"))
        file["g/y"] = file["x"]
        file["truth"] = np.array([True, False])
    with pytest.warns(UserWarning, match="numbers of enums: g/y, x$") as warned:
        assert check(path)["x"][:].tolist() == [0, 1]
    assert len(warned) == 1
    with pytest.warns(UserWarning, match="numbers of enums: g/y$"):
        zcore.copy(path, zcore.MemoryStore(), path="g/y")


def test_links(path):
    """RF-STO-03: hard ones are followed, but not in circles; others are left out with a warning."""
    with h5py.File(path, "w") as file:
        file["a/b/x"] = np.arange(3)
        file["hard"], file["a/b/up"] = file["a/b/x"], file["a"]
        file["soft"], file["external"] = h5py.SoftLink("/a/b/x"), h5py.ExternalLink("/etc/passwd", "/x")
        file["circle"] = h5py.SoftLink("/circle")
        h5py.h5g.create(file.id, b"gr\xfcn")
        file["null"] = h5py.Empty("f4")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group = zcore.open(references_from_hdf5(path))
    assert sorted(path for path, _ in group.members(None)) == ["a", "a/b", "a/b/x", "hard"]
    assert group["hard"][:].tolist() == [0, 1, 2]
    assert sorted(str(warning.message).split("'")[1] for warning in caught) == [
        "circle", "external", r"gr\udcfcn", "null", "soft"]


def test_hard_links_that_multiply_groups(path, monkeypatch):
    """RF-STO-03: each group has a limited number of names."""
    monkeypatch.setattr("zcore.tools.hdf5.walk.MAX_NAMES", 10)
    with h5py.File(path, "w") as file:
        for i in range(40):
            file.create_group(f"g{i}")
        for i in range(39):
            file[f"g{i}/left"] = file[f"g{i}/right"] = file[f"g{i + 1}"]
    with pytest.warns(IncompleteCopyWarning, match="groups that have 10 other names"):
        made = references_from_hdf5(path, unsupported="skip")
    assert len(made.to_v0()) < 800


def test_attributes(path):
    """RF-STO-03: as JSON has them, and NaN as Python's json does."""
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        file.attrs.update({
            "text": "ä", "bytes": b"abc", "number": np.int16(3), "one": [1.5], "list": np.arange(3), "nan": np.nan,
            "texts": ["a", "b"], "fixed": np.array([b"a", b"b"]), "truth": np.bool_(True), "empty": h5py.Empty("S1"),
            "null": h5py.Empty("f4"), "matrix": np.eye(2, dtype=int), "large": np.uint64(2**64 - 1)})
        file["x"].attrs["complex"] = 1j
        file["x"].attrs["reference"] = file.ref
        for name, raw in (("fixed latin", np.bytes_("µm".encode("latin-1"))), ("latin", "°".encode("latin-1"))):
            file["x"].attrs.create(name, raw, dtype=None if name[0] == "f" else h5py.string_dtype("utf-8"))
        file["x"].attrs["latins"] = np.array(["é".encode("latin-1"), b"a"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        group = zcore.open(references_from_hdf5(path))
    assert sum("is left out" in str(warning.message) for warning in caught) == 2
    assert sum("'/x' is not UTF-8; it is read as Latin-1" in str(warning.message) for warning in caught) == 3
    attributes = dict(group.attrs)
    assert np.isnan(attributes.pop("nan"))
    assert attributes == {
        "text": "ä", "bytes": "abc", "number": 3, "one": 1.5, "list": [0, 1, 2], "texts": ["a", "b"],
        "fixed": ["a", "b"], "truth": True, "empty": "", "null": None, "matrix": [[1, 0], [0, 1]], "large": 2**64 - 1}
    assert dict(group["x"].attrs) == {"_ARRAY_DIMENSIONS": ["phony_dim_0"], "latin": "°", "latins": ["é", "a"],
                                      "fixed latin": "µm"}


def test_dimensions(path):
    """RF-STO-03: of scales, labels, or none; a dimension of NetCDF that is no variable is no array."""
    with h5py.File(path, "w") as file:
        group = file.create_group("g")
        for name, n in (("x", 3), ("y", 4)):
            group[name] = np.arange(n)
            group[name].make_scale(name)
        group["only"] = np.zeros(5)
        group["only"].make_scale("This is a netCDF dimension but not a netCDF variable.         5")
        group["values"] = np.zeros((3, 4, 5, 6, 7))
        for d, name in ((0, "x"), (1, "y"), (2, "only")):
            group["values"].dims[d].attach_scale(group[name])
        group["values"].dims[3].label = "label"
    group = zcore.open(references_from_hdf5(path))["g"]
    assert set(group) == {"x", "y", "values"} and group["x"].attrs["_ARRAY_DIMENSIONS"] == ["x"]
    assert group["values"].attrs["_ARRAY_DIMENSIONS"] == ["x", "y", "only", "label", "phony_dim_4"]
    assert set(group["values"].attrs) == {"_ARRAY_DIMENSIONS"}


def test_dimensions_without_names_are_numbered_by_length(path):
    """RF-STO-03: as in netCDF, so that each name has one length in all of the file."""
    with h5py.File(path, "w") as file:
        file["a"], file["b"], file["c/d"] = np.zeros((4, 5)), np.zeros((5, 4)), np.zeros((6, 4))
        file["square"], file["phony_dim_3"] = np.zeros((4, 4, 7)), np.zeros(8)
    group = zcore.open(references_from_hdf5(path))
    names = {name: group[name].attrs["_ARRAY_DIMENSIONS"] for name in ("a", "b", "c/d", "square", "phony_dim_3")}
    assert names == {"a": ["phony_dim_0", "phony_dim_1"], "b": ["phony_dim_1", "phony_dim_0"],
                     "c/d": ["phony_dim_2", "phony_dim_0"], "phony_dim_3": ["phony_dim_4"],
                     "square": ["phony_dim_0", "phony_dim_5", "phony_dim_6"]}


def test_fill_values(path):
    """RF-STO-03: HDF5's where chunks are missing; else what readers take for missing, or none."""
    with h5py.File(path, "w") as file:
        for name, fill, said, is_whole in (("a", -1, None, False), ("b", -1, -1, False), ("c", -1, 5, False),
                                           ("d", -1, 5, True), ("e", -1, None, True)):
            dataset = file.create_dataset(name, (4,), "i2", chunks=(2,), fillvalue=fill)
            dataset[:4 if is_whole else 2] = 3
            if said is not None:
                dataset.attrs["_FillValue"] = np.array([said], "i2")
    group = check(path)
    assert [group[name].fill_value for name in "abcde"] == [-1, -1, -1, 5, None]
    assert [group[name].attrs.get("_FillValue") for name in "abcde"] == [None, -1, 5, 5, None]


@pytest.mark.parametrize("missing", [None, 0, 5])
@pytest.mark.parametrize("dtype", ["i2", "f4", "S3", "?"])
def test_zero_hides_nothing(path, dtype, missing):
    """RF-STO-03: HDF5's default is what was never written; xarray takes the fill value of Zarr v2 for missing data."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", (6,), dtype, chunks=(2,))
        dataset[:3] = np.array([0, 1, 0]).astype(dtype)
        if missing is not None:
            dataset.attrs["_FillValue"] = np.array([missing]).astype(dtype) if missing else np.zeros(1, dtype)
    array = check(path)["x"]
    copied = zcore.copy(path, zcore.MemoryStore(), zarr_format=2)["x"]
    if missing is None:
        assert array.fill_value is None and copied.fill_value is None
    elif missing == 0:
        assert array.fill_value == copied.fill_value == np.zeros((), dtype)
    assert (copied[:] == array[:]).all() and "_FillValue" not in copied.attrs


def test_empty_texts_are_not_missing(path):
    """RF-STO-03"""
    with h5py.File(path, "w") as file:
        file["x"] = np.array(["a", "", "b"], object)
    set_, copied = references_from_hdf5(path), zcore.copy(path, zcore.MemoryStore(), zarr_format=2)
    for group in (zcore.open(set_), copied):
        assert group["x"].fill_value is None and group["x"][:].tolist() == ["a", "", "b"]


def test_sets_are_those_of_kerchunk(path):
    """RF-STO-03: of the same file, key by key."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        translate = pytest.importorskip("kerchunk.hdf").SingleHdf5ToZarr
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "a title"
        file.create_dataset("g/deflated", data=RNG.random((20, 30)), chunks=(7, 8), compression="gzip", shuffle=True)
        file.create_dataset("sparse", (20, 30), ">i2", chunks=(7, 8), fillvalue=-1)[:7, :8] = 3
        file["contiguous"] = RNG.integers(0, 9, (10, 30))
        file["contiguous"].attrs["units"] = "m"
        file["x"] = np.arange(30.0)
        file["x"].make_scale("x")
        file["contiguous"].dims[1].attach_scale(file["x"])
    gc.collect()     # kerchunk holds h5py's lock while a thread of zarr works, which must not meet old objects of h5py
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = translate(str(path), inline_threshold=0).translate()
    made = references_from_hdf5(path, inline_threshold=0)
    mine, theirs = made.to_v0(), zcore.ReferenceStore(theirs, allowed=[path.parent]).to_v0()
    assert set(mine) - set(theirs) <= {"g/.zattrs"} and set(theirs) - set(mine) <= {".zattrs", "g/.zattrs"}
    for key in set(mine) & set(theirs):
        name = key.rpartition("/")[2]
        if name == ".zarray":
            ours, other = json.loads(mine[key]), json.loads(theirs[key])
            for member in ("shape", "chunks", "dtype", "order", "zarr_format"):
                assert ours[member] == other[member], key
        elif name == ".zattrs":
            ours, other = json.loads(mine[key]), json.loads(theirs[key])
            # kerchunk numbers dimensions without a name by their position alone.
            assert len(ours.pop("_ARRAY_DIMENSIONS", ())) == len(other.pop("_ARRAY_DIMENSIONS", ()))
            assert ours == other, key
        elif isinstance(mine[key], list):
            assert mine[key][1:] == theirs[key][1:]
            assert os.path.basename(theirs[key][0]) == mine[key][0]


def test_damage_that_a_checksum_finds(path):
    """RF-STO-03: fletcher32 is a codec of the array."""
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(1000), chunks=(500,), fletcher32=True)
    made = references_from_hdf5(path)
    with open(path, "r+b") as file:
        file.seek(made.to_v0()["x/1"][1] + 17)
        file.write(b"\xff")
    assert zcore.open(made)["x"][:500].sum() == 124750
    with pytest.raises(zcore.ChecksumError):
        zcore.open(made)["x"][500:]


def test_files_that_are_none(tmp_path, monkeypatch):
    """RF-STO-03"""
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    for name in ("a.h5", "nothing.h5"):
        with pytest.raises(zcore.StoreError, match=name) as caught:
            references_from_hdf5(tmp_path / name)
        assert isinstance(caught.value, FileNotFoundError) == (name == "nothing.h5")
    with pytest.raises(ValueError, match="unsupported="):
        references_from_hdf5(tmp_path / "a.h5", unsupported="warn")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(UnsupportedError, match='"zcore-array.hdf5."'):
        references_from_hdf5(tmp_path / "a.h5")


@pytest.mark.parametrize(("magic", "kind"), [
    (b"CDF\1", "NetCDF-3, "), (b"CDF\2", "NetCDF-3 .64-bit offset."), (b"CDF\5", "NetCDF-3 .64-bit data."),
    (b"\x0e\x03\x13\x01", "HDF4, ")])
@pytest.mark.parametrize("call", [references_from_hdf5, lambda path: zcore.copy(path, zcore.MemoryStore())])
def test_older_formats_are_named(tmp_path, magic, kind, call):
    (tmp_path / "a.nc").write_bytes(magic + bytes(100))
    with pytest.raises(UnsupportedError, match=f"a.nc is a file of {kind}"):
        call(tmp_path / "a.nc")


def test_a_name_that_looks_like_a_url(tmp_path):
    """RF-URL-01"""
    with h5py.File(tmp_path / "file:a.h5", "w") as file:
        file["x"] = np.arange(1000)
    assert (check(tmp_path / "file:a.h5")["x"][:] == np.arange(1000)).all()


def test_files_of_services_are_refused_by_name():
    with pytest.raises(zcore.UnsupportedError, match="^'s3://bucket/x.nc': .* that lie here$"):
        zcore.references_from_hdf5("s3://bucket/x.nc")
