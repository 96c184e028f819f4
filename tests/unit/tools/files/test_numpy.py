"""Files of NumPy as sources and destinations: in which order they are read, what is unpacked, which names there are."""
import os
import tempfile
import zipfile

import numpy as np
import pytest

import zcore

RNG = np.random.default_rng(2)
VALUES = RNG.integers(0, 50, (90, 80)).astype(">i2")
SAVED = {"npy": lambda path, values: np.save(path, values), "npz": lambda path, values: np.savez(path, a=values),
         "deflated": lambda path, values: np.savez_compressed(path, a=values)}


def saved(folder, kind, values):
    """Return the path of a file, and that of the array in it."""
    path = folder / f"{kind}.{kind[:2]}{'y' if kind == 'npy' else 'z'}" if kind != "deflated" else folder / "d.npz"
    SAVED[kind](path, values)
    return path, "" if kind == "npy" else "a"


@pytest.fixture
def unpacked(monkeypatch):
    """The temporary files that are made."""
    made = []

    def make(*args, _make=tempfile.TemporaryFile, **keywords):
        made.append(_make(*args, **keywords))
        return made[-1]

    monkeypatch.setattr("tempfile.TemporaryFile", make)
    return made


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", SAVED)
def test_a_deflated_member_is_unpacked_once(kind, order, unpacked, tmp_path):
    path, name = saved(tmp_path, kind, np.asarray(VALUES, order=order))
    new = zcore.copy(path, zcore.MemoryStore(), path=name, chunks=(90, 1), memory=8000)
    assert np.array_equal(new[...], VALUES) and len(unpacked) == (kind == "deflated")
    assert all(file.closed for file in unpacked)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", SAVED)
def test_selections(kind, order, tmp_path):
    path, name = saved(tmp_path, kind, np.asarray(VALUES, order=order))
    for selection in (np.s_[...], np.s_[3:20], np.s_[::-7, 5:70:3], np.s_[4], np.s_[:, -1], np.s_[4, 5], np.s_[7:7]):
        new = zcore.copy(path, zcore.MemoryStore(), path=name, selection=selection)
        assert np.array_equal(new[...], VALUES[selection])


@pytest.mark.parametrize("kind", ["npz", "deflated"])
@pytest.mark.parametrize("selection", [None, np.s_[:2]])
def test_a_checksum_counts_whatever_is_read(kind, selection, tmp_path):
    path, name = saved(tmp_path, kind, VALUES)
    with zipfile.ZipFile(path) as archive:
        crc = archive.getinfo("a.npy").CRC.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(crc, b"oops"))
    with pytest.raises(zcore.StoreError, match=r"a\.npy' has CRC"):
        zcore.copy(path, tmp_path / "new", path=name, selection=selection, chunks=(7, 9))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["npz", "deflated"])
def test_a_copy_that_goes_on_reads_what_is_left(kind, tmp_path, monkeypatch):
    path, name = saved(tmp_path, kind, VALUES)
    progress = []

    def stop(done, total):
        progress.append(done)
        if len(progress) == 4:
            raise KeyboardInterrupt

    wanted = {"path": name, "chunks": (7, 80), "memory": 8000}
    with pytest.raises(KeyboardInterrupt):
        zcore.copy(path, tmp_path / "new", progress=stop, **wanted)
    assert np.array_equal(zcore.copy(path, tmp_path / "new", **wanted)[...], VALUES)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("n_bytes, error", [(-1, zcore.errors.TruncatedError), (1, zcore.errors.CodecError),
                                            (10**6, zcore.errors.CodecError)])
def test_a_member_has_what_its_header_says(n_bytes, error, method, unpacked, tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    data = (tmp_path / "a.npy").read_bytes()
    data = data[:n_bytes] if n_bytes < 0 else data + bytes(n_bytes)
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
        archive.writestr("x.npy", data)
    for path in (tmp_path / "a.npy", tmp_path / "a.npz"):
        with pytest.raises(error, match=f"expected .* {128 + VALUES.nbytes} bytes, found {len(data)}") as raised:
            zcore.copy(path, tmp_path / "new")
        assert raised.value.found == len(data) and raised.value.expected == 128 + VALUES.nbytes
    assert unpacked == []


def test_methods_that_are_not_had(tmp_path):
    for method, feature in ((zipfile.ZIP_BZIP2, "bzip2"), (zipfile.ZIP_LZMA, "lzma")):
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
            archive.writestr("x.npy", b"anything")
        with pytest.raises(zcore.UnsupportedError, match=feature):
            zcore.copy(tmp_path / "a.npz", tmp_path / "new")
    np.savez(tmp_path / "a.npz", x=VALUES)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(zcore.UnsupportedError, match="encryption"):
        zcore.copy(tmp_path / "a.npz", tmp_path / "new")


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path):
    """A mapped file would end the process."""
    for kind in ("npy", "npz"):
        path, name = saved(tmp_path, kind, RNG.integers(0, 2**62, (1000, 100)))
        with pytest.raises(zcore.ZcoreError, match=path.name):
            zcore.copy(path, tmp_path / "new", path=name, chunks=(10, 100), memory=100_000,
                       progress=lambda done, total, path=path: os.truncate(path, 20_000))


# names

@pytest.mark.parametrize("member", ["../evil.npy", "/evil.npy", "a/../../evil.npy", "..\\evil.npy", ".npy", "g/.npy",
                                    "a//b.npy", "./a.npy"])
def test_an_archive_with_names_that_lead_elsewhere_is_refused(member, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        for name in ("good.npy", member):
            with archive.open(name, "w") as file:
                np.save(file, VALUES)
    with pytest.raises(zcore.errors.InvalidKeyError, match=r"a\.npz"):
        zcore.copy(tmp_path / "a.npz", tmp_path / "new")


def test_an_array_is_no_group(tmp_path):
    np.savez(tmp_path / "a.npz", **{"a": VALUES, "a/b": VALUES})
    with pytest.raises(zcore.errors.KeyConflictError, match=r"'a' is an array"):
        zcore.copy(tmp_path / "a.npz", tmp_path / "new")


def test_other_files_of_an_archive_are_told(tmp_path):
    np.savez(tmp_path / "a.npz", a=VALUES)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("README", b"text")
    with pytest.warns(UserWarning, match="files that are not arrays: README"):
        assert sorted(zcore.copy(tmp_path / "a.npz", tmp_path / "new")) == ["a"]


@pytest.mark.parametrize("path", ["../../evil", "a/../b", "..\\evil", "a\\b", "a\0b", "a.npy", "./a"])
def test_such_names_are_given_to_no_member(path, tmp_path):
    with pytest.raises(zcore.errors.InvalidKeyError):
        zcore.copy(zcore.array(VALUES), tmp_path / "a.npz", destination_path=path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", [".asdf", ".h5", ".zip"])
def test_paths_in_files_are_paths_of_nodes(ending, tmp_path):
    for path in ("../../evil", "a\0b", "a/./b"):
        with pytest.raises(zcore.errors.InvalidKeyError):
            zcore.copy(zcore.array(VALUES), tmp_path / f"a{ending}", destination_path=path)
    assert os.listdir(tmp_path) == []


# written

@pytest.mark.thinned(2, "ending", "shape", "order")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape, chunks", [((90, 80), (7, 9)), ((5, 6, 7), (2, 6, 3)), ((400_000,), (1000,)),
                                           ((3, 1, 40_000), (1, 1, 40_000)), ((), ()), ((0, 3), (1, 1))])
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_slabs_have_their_places(ending, shape, chunks, order, tmp_path):
    values = RNG.integers(0, 2**40, shape)
    source = zcore.create_array(zcore.MemoryStore(), data=values, chunks=chunks)
    zcore.copy(source, tmp_path / f"a{ending}", order=order, memory=20_000)
    found = np.load(tmp_path / f"a{ending}")
    found = found["arr_0"] if ending == ".npz" else found
    assert np.array_equal(found, values) and found.dtype == values.dtype and found.shape == values.shape
    assert values.ndim < 2 or found.flags.f_contiguous == (order == "F") or 0 in shape or 1 in shape


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (2, 3)])
@pytest.mark.parametrize("dtype", ["<i4", ">i4", ">c8", ">M8[s]"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_elements_keep_their_byte_order(tmp_path, shape, dtype, order):
    values = np.arange(1, 1 + int(np.prod(shape, dtype=int))).astype(dtype).reshape(shape)
    zcore.copy(zcore.array(values), tmp_path / "a.npy", order=order)
    found = np.load(tmp_path / "a.npy")
    assert found.dtype == values.dtype and found.tobytes() == values.tobytes()
