"""HDF5 files as sources and destinations: what is damaged, what is left out, what HDF5 cannot hold."""
import struct
import time
import warnings

import numpy as np
import pytest

import zcore
from zcore.cli.location import opened
from zcore.cli.verbs.elements.differences import differences
from zcore.errors import IncompleteCopyWarning
from zcore.tools.files.hdf5 import Hdf5Source
from zcore.tools.hdf5.dataset import has_wrong_places

h5py = pytest.importorskip("h5py")
VALUES = np.arange(60).reshape(6, 10)


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/d", data=VALUES, chunks=(3, 5), compression="gzip", fletcher32=True)
        file["g"].attrs["unit"] = "m"
        file["text"] = np.array(["a", "bc"], object)
        file["time"] = np.arange(6)
        file["time"].make_scale("time")
        file["g/d"].dims[0].attach_scale(file["time"])
    return tmp_path / "a.h5"


# damage

@pytest.mark.parametrize("call", [zcore.copy, lambda path, _: zcore.references_from_hdf5(path)])
def test_files_that_are_cut_off(path, call):
    data = path.read_bytes()
    for n in range(0, len(data), 97):
        path.write_bytes(data[:n])
        with pytest.raises(zcore.StoreError, match=r"a\.h5"):
            call(path, zcore.MemoryStore())


@pytest.mark.thinned(2, "place", "raised")
@pytest.mark.parametrize("raised", [RuntimeError("x"), KeyError("x"), ValueError("x"), TypeError("x"), OSError(5, "x"),
                                    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), MemoryError(), OverflowError("x")])
@pytest.mark.parametrize("place", ["Dataset.__getitem__", "Dataset.shape", "Dataset.fillvalue", "Group.__iter__",
                                   "Group.__getitem__"])
def test_whatever_h5py_raises_is_an_error_of_the_store(path, raised, place, monkeypatch):
    kind, name = place.split(".")

    def fail(*_, **__):
        raise raised

    fault = fail if callable(getattr(getattr(h5py, kind), name)) else property(fail)
    monkeypatch.setattr(getattr(h5py, kind), name, fault)
    with pytest.raises(zcore.StoreError, match=r"a\.h5") as told:
        zcore.copy(path, zcore.MemoryStore(), path="g" if place == "Dataset.__getitem__" else "")
    assert told.value.errno == getattr(raised, "errno", None) and told.value.__cause__ is raised


def test_an_object_that_is_damaged_is_not_left_out(path):
    with h5py.File(path) as file:
        address = h5py.h5o.get_info(file["g/d"].id).addr
    data = bytearray(path.read_bytes())
    data[address] ^= 0xff
    path.write_bytes(data)
    for name in ("", "g/d"):
        with pytest.raises(zcore.StoreError, match=r"a\.h5"):
            zcore.copy(path, zcore.MemoryStore(), path=name)


def test_a_chunk_that_is_damaged(path):
    with h5py.File(path) as file:
        place = file["g/d"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[place.byte_offset + 5] ^= 0xff
    path.write_bytes(data)
    with pytest.raises(zcore.StoreError, match=r"a\.h5"):
        zcore.copy(path, zcore.MemoryStore())


@pytest.mark.parametrize("fill", [None, "fill ü"])
@pytest.mark.parametrize("call", [
    lambda path: zcore.copy(path, zcore.MemoryStore()),
    lambda path: zcore.copy(path, zcore.MemoryStore(), zarr_format=2),
    lambda path: zcore.open(zcore.references_from_hdf5(path)),
])
def test_texts_that_were_never_written_are_the_fill_value(fill, call, tmp_path):
    """HDF5 2.0 does not read the chunks of them that are not stored."""
    expected = np.full((7, 5), fill or "", object)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, part in {"some": np.s_[1:4, :3], "none": np.s_[:0], "all": np.s_[:], "last": np.s_[6, 4]}.items():
            dataset = file.create_dataset(name, (7, 5), h5py.string_dtype(), chunks=(2, 2), fillvalue=fill)
            if name != "none":
                dataset[part] = "x"
        file.create_dataset("latin", (4,), h5py.string_dtype("ascii"), chunks=(2,), compression="gzip")[0] = "a"
    group = call(tmp_path / "a.h5")
    for name, part in {"some": np.s_[1:4, :3], "none": np.s_[:0], "all": np.s_[:], "last": np.s_[6, 4]}.items():
        wanted = expected.copy()
        wanted[part] = "x"
        assert group[name][...].tolist() == wanted.tolist(), name
    assert group["latin"][...].tolist() == ["a", "", "", ""]


def test_a_selection_of_texts_that_were_never_written(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (20, 9), h5py.string_dtype(), chunks=(3, 2), fillvalue="f")
        dataset[4:11:3, 1:8] = "x"
        dataset[13, 5] = b"\xff"
    expected = np.full((20, 9), "f", object)
    expected[4:11:3, 1:8] = "x"
    expected[13, 5] = "ÿ"
    for selection in (np.s_[::5, 1::3], np.s_[2:17:4], np.s_[7, ::4], np.s_[5:5], np.s_[19:, 8], np.s_[:12, :4]):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x", selection=selection)
        assert new[...].tolist() == expected[selection].tolist(), selection
    with pytest.warns(UserWarning, match="Latin-1"):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x")
    assert new[...].tolist() == expected.tolist()


# what is left out

def test_what_no_array_can_show_is_left_out_by_name(path):
    with h5py.File(path, "a") as file:
        file["empty"] = h5py.Empty("f4")
        file.create_dataset("g/refs", (2,), h5py.ref_dtype)
        file["g/nowhere"] = h5py.SoftLink("/no/such")
        file["g/far"] = h5py.ExternalLink("no.h5", "/x")
        file.id.links.create_hard(b"..", file.id, b"text")
        file["named"] = np.dtype("i4")
    with pytest.warns() as told:
        new = zcore.copy(path, zcore.MemoryStore())
    assert sorted(name for name, _ in new.members(None)) == ["g", "g/d", "text", "time"]
    texts = sorted(str(warning.message) for warning in told if warning.category is IncompleteCopyWarning)
    assert len(texts) == 4 and len(told) == 5
    for part in ("null dataspaces: empty", "sequences of HDF5: g/refs", "lead nowhere: g/far, g/nowhere",
                 "names that no node can have: '..'"):
        assert any(part in text for text in texts), texts
    for name in ("empty", "g/refs"):
        with pytest.raises(zcore.UnsupportedError):
            zcore.copy(path, zcore.MemoryStore(), path=name)
    with pytest.raises(zcore.NodeNotFoundError):
        zcore.copy(path, zcore.MemoryStore(), path="g/nowhere")


def make_loops(file):
    """Make links in circles and names that are not UTF-8. Return the warnings' texts about them."""
    file["good"] = VALUES
    file["self"], file["a"], file["b"] = (h5py.SoftLink(f"/{name}") for name in ("self", "b", "a"))
    file["_nc4_non_coord_self"] = VALUES
    h5py.h5g.create(file.id, b"gr\xfcn")
    file.id.links.create_soft(b"link\xff", b"/good")
    return "lead nowhere: a, b, self", r"names that no node can have: 'gr\udcfcn', 'link\udcff'"


def test_links_in_circles_and_names_that_are_not_utf_8(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        expected = make_loops(file)
    with pytest.warns(IncompleteCopyWarning) as told:
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert sorted(new) == ["_nc4_non_coord_self", "good"]
    texts = [str(warning.message) for warning in told]
    assert len(texts) == 2 and all(any(part in text for text in texts) for part in expected), texts
    for name, error in (("self", zcore.NodeNotFoundError), ("nix", zcore.NodeNotFoundError)):
        with pytest.raises(error):
            zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path=name)


def test_types_that_hdf5_cannot_convert(tmp_path):
    h5t = h5py.h5t
    tagged = h5t.create(h5t.OPAQUE, 7)
    tagged.set_tag(b"of another program")
    exponent = h5t.IEEE_F64LE.copy()
    exponent.set_fields(60, 40, 20, 0, 40)
    integer = h5t.STD_I32LE.copy()
    integer.set_size(3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = VALUES
        for name, kind in ((b"tagged", tagged), (b"exponent", exponent), (b"integer", integer)):
            h5py.h5d.create(file.id, name, kind, h5py.h5s.create_simple((3,)))
    with pytest.warns(IncompleteCopyWarning, match="that NumPy does not have: exponent, integer, tagged"):
        assert sorted(zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())) == ["good"]


def test_virtual_datasets_of_files_that_do_not_exist(tmp_path):
    """HDF5 reads fill values there, which the copy would have for good."""
    layout = h5py.VirtualLayout((2, 3), "i4")
    for i in range(2):
        layout[i] = h5py.VirtualSource(f"{i}.h5", "x", (3,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    for i in range(2):
        with pytest.warns(UserWarning, match=f"'/v' is made of other files.*such as '{i}.h5'"):
            new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
        with h5py.File(tmp_path / f"{i}.h5", "w") as file:
            file["x"] = np.arange(3)
    assert new["v"][...].tolist() == [[0, 1, 2], [-1, -1, -1]]
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())["v"][...].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_only_stored_chunks_are_copied(tmp_path):
    """Of 320 GB here."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        x = file.create_dataset("x", (200_000, 200_000), "i4", chunks=(100, 100), fillvalue=2)
        x[150, 950], x[-1, -1] = 7, 8
        file.create_dataset("never", (1 << 40, 1 << 10), "f8")
        file.create_dataset("empty", (0, 3), "f8", chunks=(1, 3), maxshape=(None, 3))
        x[:1000:3, 900:1000:7] = expected = np.arange(334 * 15).reshape(334, 15)
    new = zcore.copy(tmp_path / "a.h5", tmp_path / "new")
    assert (new["x"][:1000:3, 900:1000:7] == expected).all() and new["x"][-1, -2:].tolist() == [2, 8]
    assert new["never"][-1, -1] == 0 and new["empty"].shape == (0, 3)
    part = zcore.copy(tmp_path / "a.h5", tmp_path / "part", path="x", selection=np.s_[:100_000:3, 900:], chunks=500)
    assert (part[:334, :100:7] == expected).all() and part[334:400, :200].min() == 2 and part.nbytes > 1e10


def test_places_of_chunks_that_hdf5_says_wrongly(tmp_path):
    """HDF5 2.0 does for an extensible array along another dimension than the first: (0, 1) for (1, 0)."""
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file.create_dataset("x", data=VALUES, chunks=(2, 5), maxshape=(6, None))
    assert (opened(str(tmp_path / "a.h5/x"))[...] == VALUES).all()
    new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x", chunks=1)
    assert (new[...] == VALUES).all()
    with h5py.File(tmp_path / "a.h5") as file:
        is_wrong = has_wrong_places(file["x"])
    if is_wrong:
        with pytest.raises(zcore.UnsupportedError, match="does not say where its chunks lie"):
            zcore.references_from_hdf5(tmp_path / "a.h5")
    else:
        assert (zcore.open(zcore.references_from_hdf5(tmp_path / "a.h5"))["x"][...] == VALUES).all()


def test_a_virtual_dataset_has_elements_although_nothing_is_stored(tmp_path, monkeypatch):
    monkeypatch.setattr("zcore.tools.stored.MAX_UNLISTED", 0)
    monkeypatch.setattr("zcore.cli.verbs.elements.differences.SLAB_NBYTES", 80)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(1 << 19)
        layout = h5py.VirtualLayout((1 << 19,), "i8")
        layout[:] = h5py.VirtualSource(".", "x", (1 << 19,))
        file.create_virtual_dataset("v", layout)
    array = opened(str(tmp_path / "a.h5/v"))
    found = list(differences(array, zcore.zeros(1 << 19, chunks=1 << 15, dtype="i8")))
    assert found[0]["count"] == (1 << 19) - 1
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), chunks=1 << 14)["v"][-1] == (1 << 19) - 1


def test_virtual_datasets_that_are_made_of_themselves(tmp_path):
    """HDF5 would end the process."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = np.arange(3)
        for name, source, other in (("v", ".", "v"), ("w", "a.h5", "x"), ("x", "a.h5", "w"), ("y", "a.h5", "good")):
            layout = h5py.VirtualLayout((3,), "i8")
            layout[:] = h5py.VirtualSource(source, other, (3,))
            file.create_virtual_dataset(name, layout)
    with pytest.warns(IncompleteCopyWarning, match="virtual datasets made of themselves: v, w, x$"):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert sorted(new) == ["good", "y"] and new["y"][...].tolist() == [0, 1, 2]


def test_virtual_datasets_that_are_made_of_each_other_in_several_files(tmp_path):
    """Also by another name of the same file, and by too many in a row."""
    (tmp_path / "c.h5").symlink_to("a.h5")
    for at, name, source, other in (("a.h5", "v", "b.h5", "v"), ("b.h5", "v", "a.h5", "v"), ("a.h5", "w", "c.h5", "w"),
                                    ("b.h5", "x0", ".", "good"),
                                    *[("b.h5", f"x{i}", ".", f"x{i - 1}") for i in range(1, 60)],
                                    ("a.h5", "x60", "b.h5", "x59"),
                                    *[("a.h5", f"x{i}", ".", f"x{i - 1}") for i in range(61, 70)]):
        with h5py.File(tmp_path / at, "a") as file:
            layout = h5py.VirtualLayout((3,), "i8")
            layout[:] = h5py.VirtualSource(source, other, (3,))
            file.create_virtual_dataset(name, layout)
    with h5py.File(tmp_path / "b.h5", "a") as file:
        file["good"] = np.arange(3)
    with pytest.warns(IncompleteCopyWarning, match="virtual datasets made of themselves: v, w, x63, x64"):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert list(new) == ["x60", "x61", "x62"] and new["x62"][...].tolist() == [0, 1, 2]


@pytest.mark.parametrize("label", ["DIMENSION_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_Netcdf4Dimid",
                                   "_Netcdf4Coordinates"])
def test_attributes_of_dimensions_in_other_forms(label, tmp_path):
    """HDF5's functions for dimension scales would end the process for some."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = VALUES
        for i, value in enumerate((3, "text", "n" * 5000, b"bytes", np.arange(5.0) + 1e300, np.full(2, 2**63, "u8"),
                                   np.array(["a"] * 5, object), h5py.Empty("f4"), np.array([file["good"].ref] * 2))):
            made = file.create_dataset(f"x{i}", data=np.ones((2, 3)))
            made.attrs.create(label, value, dtype=h5py.ref_dtype if i == 8 else None)
            if label.startswith("_N"):
                made.attrs["CLASS"] = np.bytes_("DIMENSION_SCALE")
        file.create_dataset("fixed", data=np.ones((2, 3))).attrs["DIMENSION_LABELS"] = np.array([b"y", b"x"])
        h5py.h5a.create(file["good"].id, label.encode(), h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((2,)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
        made = zcore.references_from_hdf5(tmp_path / "a.h5", unsupported="skip")
    assert len(list(new)) == len(list(zcore.open(made))) == 11 and new["fixed"].dimension_names == ("y", "x")


def test_an_attribute_that_no_document_has_room_for(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        file["x"] = VALUES
        file["x"].attrs.update({"large": np.zeros(1 << 19), "units": "m"})
    with pytest.warns(UserWarning, match="'large' of '/x' is left out: it has 4194304 bytes"):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert dict(new["x"].attrs) == {"units": "m"}


def test_what_the_destination_cannot_hold_is_left_out_by_name(tmp_path):
    """One dataset does not cost the whole file; by its name, it is an error that names it."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = VALUES
        file["g/long"] = np.zeros(3, np.longdouble)
        file["g/fields"] = np.zeros(3, [("a", "i4", (2,)), ("b", "f8")])
        file.create_dataset("g/arrays", (3,), np.dtype(("i4", (2,))))
        file["__DATA_TYPES__/Enum"] = h5py.enum_dtype({"no": 0, "yes": 1})
        file["__DATA_TYPES__/deep/x"] = VALUES
        h5py.h5d.create(file["g"].id, b"time", h5py.h5t.UNIX_D32LE, h5py.h5s.create_simple((3,)))
    done = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        new = zcore.copy(tmp_path / "a.h5", tmp_path / "new", progress=lambda *step: done.append(step))
        zcore.copy(tmp_path / "a.h5", tmp_path / "new.zip")
    for group in (new, zcore.open(tmp_path / "new.zip")):
        assert sorted(name for name, _ in group.members(None)) == ["g", "good"]
    assert len(set(done[-1])) == 1
    texts = " ".join(str(warning.message) for warning in caught if warning.category is IncompleteCopyWarning)
    for name in ("g/long", "g/fields", "g/arrays", "'__DATA_TYPES__'", "g/time"):
        assert texts.count(name) == 2
        if name[0] == "g":
            with pytest.raises(zcore.UnsupportedError, match=name):
                zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path=name)


@pytest.mark.parametrize("link", ["hard", "soft"])
def test_groups_with_two_names(link, tmp_path):
    """As in files of NeXus and NWB; only a group that holds itself ends the walk."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a/b/x"] = VALUES
        for name, target in (("again", "/a"), ("a/other", "/a/b"), ("a/b/up", "/a")):
            file[name] = file[target] if link == "hard" else h5py.SoftLink(target)
    new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert sorted(name for name, _ in new.members(None)) == [
        "a", "a/b", "a/b/x", "a/other", "a/other/x", "again", "again/b", "again/b/x", "again/other", "again/other/x"]
    assert (new["again/other/x"][...] == VALUES).all()


def test_links_that_multiply_groups(tmp_path, monkeypatch):
    monkeypatch.setattr("zcore.tools.hdf5.walk.MAX_NAMES", 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(40):
            file.create_group(f"g{i}")
        for i in range(39):
            file[f"g{i}/left"], file[f"g{i}/right"] = file[f"g{i + 1}"], h5py.SoftLink(f"/g{i + 1}")
    with pytest.warns(IncompleteCopyWarning, match="groups that have 10 other names"):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="g0")
    assert len(list(new.members(None))) < 400


@pytest.mark.parametrize(("charset", "raw", "text"), [
    ("ascii", "µm".encode(), "µm"), ("utf-8", "µm".encode("latin-1"), "µm"), ("ascii", b"\xe9", "é")])
@pytest.mark.parametrize("shape", [(), (2, 2)])
def test_texts_of_another_charset_than_they_say(charset, raw, text, shape, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("y", shape, h5py.string_dtype(charset))[...] = np.full(shape, raw, object)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())
    assert np.asarray(new["y"][...], object).ravel().tolist() == [text] * max(1, 2 * len(shape))
    told = [str(warning.message) for warning in caught]
    assert len(told) == (0 if raw == text.encode() else 1) and all("'/y' are not UTF-8" in one for one in told)


# filters

def make_filtered(path, code, options, stored):
    """Make a dataset of a filter that h5py may not have, of two chunks whose bytes are given.

    A plugin that has it would refuse the options, so another number is written first.
    """
    with h5py.File(path, "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk((50,))
        properties.set_filter(32999, h5py.h5z.FLAG_OPTIONAL, options)
        made = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((100,)), properties)
        for i, chunk in enumerate(stored):
            made.write_direct_chunk((50 * i,), chunk)
        file["good"] = VALUES
    data = path.read_bytes()
    assert data.count(struct.pack("<H", 32999)) == 1
    path.write_bytes(data.replace(struct.pack("<H", 32999), struct.pack("<H", code)))


@pytest.mark.parametrize(("code", "options", "codec"), [
    (32001, (2, 2, 4, 400, 5, 1, 1), {"id": "blosc", "cname": "lz4"}), (32015, (3,), {"id": "zstd", "level": 3})])
def test_filters_that_zcore_has(code, options, codec, tmp_path, monkeypatch):
    values = np.arange(100, dtype="i4")
    made = zcore.create_array(zcore.MemoryStore(), data=values, chunks=50, zarr_format=2, compressors=codec)
    make_filtered(tmp_path / "a.h5", code, options, [made.store.get("0"), made.store.get("1")])
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: code < 32000)
    for path, selection in (("", None), ("x", slice(None)), ("x", slice(3, 90, 4))):
        new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path=path, selection=selection)
        assert ((new["x"] if path == "" else new)[:] == values[selection or slice(None)]).all()
    assert new.compressors[0].name == codec["id"]


def test_filters_that_nobody_has_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(h5py.h5z, "filter_avail", lambda code: code < 32000)
    make_filtered(tmp_path / "a.h5", 32008, (0, 0), [b"abc"])
    with pytest.warns(IncompleteCopyWarning, match="the filter bitshuffle of HDF5: x"):
        assert list(zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())) == ["good"]
    with pytest.raises(zcore.UnsupportedError, match="/x has a filter .*'bitshuffle'.* hdf5plugin"):
        zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x")


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize(("options", "names"), [
    ({"compression": "gzip", "shuffle": True}, ["numcodecs.shuffle", "numcodecs.zlib"]),
    ({"compression": 9}, ["numcodecs.zlib"]), ({"compression": "gzip", "fletcher32": True, "shuffle": True}, [
        "numcodecs.shuffle", "numcodecs.zlib", "numcodecs.fletcher32"]),
    ({"compression": "lzf"}, ["blosc"]), ({}, ["blosc"])])
def test_codecs_are_the_filters(format, options, names, tmp_path):
    """Else a copy may be larger than the file."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(4000.0).reshape(40, 100), chunks=(20, 30), **options)
    array = zcore.copy(tmp_path / "a.h5", tmp_path / "new", zarr_format=format)["x"]
    found = [codec.name for codec in array.metadata.codecs if codec.name not in ("bytes", "crc32c")]
    assert found == names and (array[...] == np.arange(4000.0).reshape(40, 100)).all()
    if options:
        with h5py.File(tmp_path / "a.h5") as file:
            stored = file["x"].id.get_storage_size()
        assert names == ["blosc"] or array.nbytes_stored() <= stored + 1200     # with the document
    array = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x", zarr_format=format, compressors="auto")
    assert "blosc" in [codec.name for codec in array.metadata.codecs]
    for dtype in (None, "f4", "i1"):
        zstd = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), path="x", zarr_format=format, dtype=dtype,
                          compressors={"id": "zstd", "level": 9})
        shuffles = [codec.configuration["elementsize"] for codec in zstd.metadata.codecs if "shuffle" in codec.name]
        assert shuffles == ([np.dtype(dtype or "f8").itemsize] if options.get("shuffle") and dtype != "i1" else [])
        assert "zstd" in [codec.name for codec in zstd.metadata.codecs]


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_command_fails_where_something_is_left_out(path, is_whole, tmp_path, capsys):
    from zcore.__main__ import main

    if not is_whole:
        with h5py.File(path, "a") as file:
            file["empty"] = h5py.Empty("f4")
    assert main(["cp", str(path), str(tmp_path / "new")]) == (0 if is_whole else 1)
    assert ("null dataspaces: empty" in capsys.readouterr().err) == (not is_whole)
    assert sorted(zcore.open(tmp_path / "new")) == ["g", "text", "time"]


# NetCDF-4

def make_netcdf(path):
    """Make what netcdf-c writes for dimensions n, x, len, siglay and node, of which only siglay has a variable."""
    with h5py.File(path, "w") as file:
        for i, (name, length) in enumerate((("n", 4), ("x", 2), ("len", 3), ("node", 5), ("huge", 4_500_000_000))):
            scale = file.create_dataset(name, (length,), ">f4", chunks=(min(length, 1 << 20),))
            scale.make_scale(f"This is a netCDF dimension but not a netCDF variable.{length:10}")
            scale.attrs["_Netcdf4Dimid"] = np.int32(i)
        siglay = file.create_dataset("siglay", data=np.arange(15.0).reshape(3, 5))
        siglay.make_scale("siglay")
        siglay.attrs.update({"_Netcdf4Dimid": np.int32(7), "_Netcdf4Coordinates": np.array([7, 3], "i4")})
        file["chars"] = np.array([[b"a", b"b", b"c", b"d"], [b"e", b"f", b"", b""]])
        file["_nc4_non_coord_len"] = np.array([5, 6])
        file.create_dataset("t", data=np.array([1.5, np.nan], "f4"), fillvalue=np.nan)
        file["t"].attrs["_FillValue"] = np.array([np.nan], "f4")
        for name, dimensions in (("chars", "xn"), ("_nc4_non_coord_len", "x"), ("t", "x")):
            for d, dimension in enumerate(dimensions):
                file[name].dims[d].attach_scale(file[dimension])
    return path


def test_dimensions_and_names_of_netcdf(tmp_path):
    path = make_netcdf(tmp_path / "a.nc")
    new = zcore.copy(path, zcore.MemoryStore())
    assert sorted(new) == ["chars", "len", "siglay", "t"]
    assert {name: array.dimension_names for name, array in new.members()} == {
        "chars": ("x", "n"), "len": ("x",), "siglay": ("siglay", "node"), "t": ("x",)}
    assert zcore.copy(path, zcore.MemoryStore(), path="len")[:].tolist() == [5, 6]
    with pytest.raises(zcore.UnsupportedError, match="/n is a dimension of NetCDF without a variable"):
        zcore.copy(path, zcore.MemoryStore(), path="n")
    references = zcore.open(zcore.references_from_hdf5(path))
    assert sorted(references) == sorted(new)
    for name, array in references.members():
        assert array.attrs["_ARRAY_DIMENSIONS"] == list(new[name].dimension_names)


def test_missing_values_of_netcdf(tmp_path):
    """As xarray stores them: the fill value of Zarr v2, Base64 in attributes of Zarr v3."""
    path = make_netcdf(tmp_path / "a.nc")
    v3 = zcore.copy(path, zcore.MemoryStore())
    assert v3["t"].attrs["_FillValue"] == "AAAAAAAA+H8=" and np.isnan(v3["t"].fill_value)
    v2 = zcore.copy(path, zcore.MemoryStore(), zarr_format=2)
    assert "_FillValue" not in v2["t"].attrs and np.isnan(v2["t"].fill_value)
    zcore.copy(v3, tmp_path / "b.nc")
    with h5py.File(tmp_path / "b.nc") as file:
        assert np.isnan(file["t"].attrs["_FillValue"]).all() and file["t"].attrs["_FillValue"].dtype == "f4"
    set_ = zcore.copy(zcore.open(zcore.references_from_hdf5(path)), zcore.MemoryStore(), zarr_format=3)
    assert np.isnan(set_["t"].fill_value)
    for group in (v3, v2):
        pytest.importorskip("zcore.xarray", reason="xarray is absent")
        import xarray

        dataset = xarray.open_dataset(group.store, engine="zcore")
        assert dataset["chars"].values.tolist() == [b"abcd", b"ef"]
        assert set(dataset["siglay"].dims) == {"siglay", "node"}
        assert dataset["t"].isnull().values.tolist() == [False, True]


@pytest.mark.parametrize(("dtype", "value", "text"), [
    ("f8", -9999.0, "AAAAAICHw8A="), ("i2", -1, -1), ("S2", b"ab", "YWI="), ("f4", np.inf, "AAAAAAAA8H8=")])
def test_missing_values_in_attributes(dtype, value, text, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.array([value, value], dtype)
        file["x"].attrs["_FillValue"] = np.array([value], dtype)
    array = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())["x"]
    assert array.attrs["_FillValue"] == text
    assert zcore.copy(array, zcore.MemoryStore()).attrs["_FillValue"] == text
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), zarr_format=2)["x"].fill_value == np.array(value, dtype)


def test_fill_value_of_zarr_v2_hides_no_element(tmp_path):
    """Readers mask the elements that are it, and NetCDF-4 sets it for every variable."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in ("whole", "contiguous", "partly", "missing"):
            chunks = None if name == "contiguous" else (2,)
            file.create_dataset(name, (4,), "i1", chunks=chunks, fillvalue=-127)[:2] = [-127, 1]
            if name != "partly":
                file[name][2:] = 0
        file["missing"].attrs["_FillValue"] = np.int8(-127)
    new = zcore.copy(tmp_path / "a.h5", zcore.MemoryStore(), zarr_format=2)
    assert {name: array.fill_value for name, array in new.members()} == {
        "whole": None, "contiguous": None, "partly": -127, "missing": -127}
    for name, array in new.members():
        assert array[:].tolist() == [-127, 1, *[-127 if name == "partly" else 0] * 2]
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())["whole"].fill_value == -127


def make_dimensions(store):
    """Make arrays with dimensions: of coordinates, of none, of others in groups, and some that have no scale."""
    group = zcore.create_group(store)
    for name, shape, names in (("x", 3, "x"), ("t", (3, 2), "xy"), ("y", 2, "n"), ("g/v", (3, 2, 3), "xyx"),
                               ("g/k/x", 5, "x"), ("g/k/w", 5, "x"), ("g/k/far", 3, "x"), ("some", (3, 2), ("x", None)),
                               ("slash", (3, 2), ("x", "a/b")), ("up", 1, ("..",))):
        group.create_array(name, shape=shape, dtype="i4", dimension_names=tuple(names))
    return group


def scales_of(dataset):
    return [[scale.name for scale in dimension.values()] for dimension in dataset.dims]


def test_dimensions_become_scales(tmp_path):
    """HDF5 Dimension Scale Specification; netcdf-c reads no file in which a dataset has scales of some dimensions."""
    group = make_dimensions(zcore.MemoryStore())
    zcore.copy(group, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["x"].is_scale and file["g/k/x"].is_scale and not file["y"].is_scale
        assert file["x"].attrs["NAME"] == b"x" and scales_of(file["g/k/w"]) == [["/g/k/x"]]
        assert scales_of(file["t"]) == [[], []] and [dimension.label for dimension in file["t"].dims] == ["x", "y"]
        assert "DIMENSION_LABELS" not in file["g/k/w"].attrs and file["g/k/far"].dims[0].label == "x"
    with pytest.warns(UserWarning, match="as dimensions of NetCDF, only as labels: slash, some, up, g/k/far$"):
        zcore.copy(group, tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert scales_of(file["t"]) == [["/x"], ["/y"]] and scales_of(file["g/v"]) == [["/x"], ["/y"], ["/x"]]
        assert file["y"].attrs["NAME"] == b"This is a netCDF dimension but not a netCDF variable.         2"
        assert file["y"].id.get_storage_size() == 0 and "_nc4_non_coord_y" in file
        assert scales_of(file["some"]) == scales_of(file["slash"]) == [[], []]
    for name in ("a.h5", "a.nc"):
        new = zcore.copy(tmp_path / name, zcore.MemoryStore())
        assert {path: node.dimension_names for path, node in new.members(None) if isinstance(node, zcore.Array)} == {
            path: node.dimension_names for path, node in group.members(None) if isinstance(node, zcore.Array)}


@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_xarray_finds_the_dimensions_of_a_copy(engine, tmp_path):
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    xarray = pytest.importorskip("xarray")
    wanted = xarray.Dataset({"t": (("x", "n"), np.ones((2, 3))), "s": ("x", ["a", "bc"])}, {"x": [1.5, 2.5]})
    wanted.to_netcdf(tmp_path / "a.nc", engine=engine)
    zcore.copy(tmp_path / "a.nc", tmp_path / "b.zarr")
    for source in ("a.nc", "b.zarr"):
        zcore.copy(tmp_path / source, tmp_path / "c.nc", overwrite=True)
        with xarray.open_dataset(tmp_path / "c.nc", engine=engine) as found:
            xarray.testing.assert_identical(found.load(), wanted)
            assert not any(variable.attrs for variable in found.variables.values())


def test_attributes_of_scales_come_once(tmp_path):
    """HDF5's functions for dimension scales would end the process for some that the source has."""
    group = make_dimensions(zcore.MemoryStore())
    group["g/k/w"].attrs.update({"CLASS": "DIMENSION_SCALE", "NAME": "w", "DIMENSION_LIST": [1], "units": "m"})
    with pytest.warns(UserWarning) as told:
        zcore.copy(group, tmp_path / "a.h5")
    assert [str(warning.message).split("'")[1] for warning in told] == ["CLASS", "NAME", "DIMENSION_LIST"]
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(file["g/k/w"].attrs) == {"units", "DIMENSION_LIST"} and scales_of(file["g/k/w"]) == [["/g/k/x"]]


def test_a_scale_that_is_not_in_the_file_has_no_name(tmp_path):
    """h5copy of one variable of a file of NetCDF leaves such references."""
    with h5py.File(tmp_path / "a.h5", "w") as file, h5py.File(tmp_path / "b.h5", "w") as other:
        file["t"] = [1, 2]
        file["far"] = np.zeros(100_000)
        file["x"] = [3, 4]
        file["t"].dims[0].attach_scale(file["x"])
        file.copy("t", other)
    with pytest.warns(UserWarning, match="a dimension scale of '/t' is left out: Unable to open"):
        copy = zcore.copy(tmp_path / "b.h5", zcore.MemoryStore())
    assert copy["t"][:].tolist() == [1, 2] and copy["t"].dimension_names is None
    with pytest.warns(UserWarning, match="a dimension scale of '/t' is left out"):
        assert zcore.open(zcore.references_from_hdf5(tmp_path / "b.h5"))["t"][:].tolist() == [1, 2]


def test_a_scale_that_cannot_be_attached_leaves_labels(tmp_path, monkeypatch):
    """As where HDF5 has no room for the list of its datasets."""
    proxy = pytest.importorskip("h5py._hl.dims").DimensionProxy     # h5py imports it when it is first needed
    attach, calls = proxy.attach_scale, []

    def fail_later(self, scale):
        calls.append(scale)
        if len(calls) == 2:
            raise RuntimeError("no room")
        attach(self, scale)

    monkeypatch.setattr(proxy, "attach_scale", fail_later)
    group = make_dimensions(zcore.MemoryStore())
    with pytest.warns(UserWarning, match="only as labels: slash, some, t, up, g/k/far$"):
        zcore.copy(group, tmp_path / "a.nc")
    with h5py.File(tmp_path / "a.nc") as file:
        assert scales_of(file["t"]) == [[], []] and [dimension.label for dimension in file["t"].dims] == ["x", "y"]


@pytest.mark.parametrize("ending", ["h5", "nc"])
def test_a_copy_that_fails_at_its_scales_leaves_the_old_file(ending, tmp_path, monkeypatch):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(h5py.Dataset, "make_scale", stop)
    with pytest.raises(KeyboardInterrupt):
        zcore.copy(make_dimensions(zcore.MemoryStore()), path, overwrite=True)
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


# what HDF5 cannot hold

def test_texts_of_a_fixed_length_become_those_of_any(tmp_path):
    group = zcore.create_group(zcore.MemoryStore())
    group["u"], group["n"] = np.array([["a", "größe"], ["", "日本"]]), VALUES
    with pytest.warns(UserWarning, match="does not keep the fixed length of texts.*: u$"):
        zcore.copy(group, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert h5py.check_string_dtype(file["u"].dtype) == ("utf-8", None)
        assert file["u"].asstr()[...].tolist() == group["u"][...].tolist() and (file["n"][...] == VALUES).all()


@pytest.mark.parametrize("text", ["a\0b", "\0", "end\0"])
def test_a_text_with_nul_is_refused_by_name(text, tmp_path):
    group = zcore.create_group(zcore.MemoryStore())
    group["fine"] = np.array(["a"], np.dtypes.StringDType())
    group["wrong"] = np.array(["a", text], np.dtypes.StringDType())
    with pytest.raises(zcore.UnsupportedError, match="wrong.* NUL"):
        zcore.copy(group, tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []
    group["bytes"] = np.array([b"a\0b", b"\0\0c"])
    del group["wrong"]
    zcore.copy(group, tmp_path / "a.h5")
    assert zcore.copy(tmp_path / "a.h5", zcore.MemoryStore())["bytes"][...].tolist() == [b"a\0b", b"\0\0c"]


# the cost of many

def make_variables(path, n, n_scales):
    with h5py.File(path, "w") as file:
        for i in range(n_scales):
            file[f"s{i}"] = np.arange(4)
            file[f"s{i}"].make_scale(f"s{i}")
        for i in range(n):
            file[f"v{i}"] = np.zeros((4, 4), "i1")
            file[f"v{i}"].dims[0].attach_scale(file[f"s{i % n_scales}"])
            file[f"v{i}"].dims[1].attach_scale(file[f"s{-i % n_scales}"])
    return path


@pytest.mark.slow
@pytest.mark.parametrize("are_shared", [True, False])
def test_many_variables_with_dimension_scales(are_shared, tmp_path):
    """HDF5 looks for the name of an object in all of the file: once for each variable was quadratic."""
    def seconds(call):
        start = time.process_time()
        call()
        return time.process_time() - start

    durations = {}
    for n in (400, 1600):
        path = make_variables(tmp_path / f"{n}.h5", n, 3 if are_shared else n)
        durations[n] = (min(seconds(lambda: zcore.references_from_hdf5(path)) for _ in range(2)),
                        min(seconds(lambda: Hdf5Source(str(path), "", None).close()) for _ in range(2)))
    for few, many in zip(durations[400], durations[1600], strict=True):
        assert many < 9 * few, durations


def test_names_of_dimension_scales(tmp_path):
    path = make_variables(tmp_path / "a.h5", 5, 3)
    with h5py.File(path, "a") as file:
        file.create_group("deep")
        file["deep/s"] = np.arange(4)
        file["deep/s"].make_scale("another name")
        file["deep/v"] = np.zeros((4, 4))
        file["deep/v"].dims[0].attach_scale(file["deep/s"])
        file["deep/v"].dims[1].attach_scale(file["s1"])
    new = zcore.copy(path, zcore.MemoryStore())
    assert new["v1"].dimension_names == ("s1", "s2") and new["deep/v"].dimension_names == ("s", "s1")
    assert zcore.copy(path, zcore.MemoryStore(), path="deep")["v"].dimension_names == ("s", "s1")
    assert zcore.open(zcore.references_from_hdf5(path))["deep/v"].attrs["_ARRAY_DIMENSIONS"] == ["s", "s1"]
    with h5py.File(path, "a") as file:
        del file["s1"]      # lives on as a scale without a name
    assert zcore.copy(path, zcore.MemoryStore())["v1"].dimension_names == (None, "s2")


@pytest.mark.parametrize("dtype", ["<M8[s]", ">M8[ns]", "<m8[D]", "<M8[25us]"])
def test_dates_are_those_that_h5py_writes(dtype, tmp_path):
    values = np.array([1, 2, "NaT", 3], dtype)
    source = zcore.create_array({}, shape=6, dtype=dtype, chunks=2, fill_value=values[3], zarr_format=2)
    source[:3] = values[:3]
    zcore.copy(source, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["data"].dtype == dtype and file["data"][:].tobytes() == source[:].tobytes()
    assert zcore.copy(tmp_path / "a.h5", {})["data"][:].tobytes() == source[:].tobytes()
