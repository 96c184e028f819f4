"""Files and directories that are replaced keep their mode and owner; a link that leads to one stays a link."""
import os
import resource
import stat

import numpy as np
import pytest

import zcore
from zcore.replacing import NewFile, replacing

EXTRAS = {".asdf": "yaml", ".h5": "h5py"}
ENDINGS = (".zip", ".ozx", ".npy", ".npz", ".h5", ".asdf")
WRITERS = {
    **{f"copy to {ending}": (f"a{ending}", lambda place: zcore.copy(source(), place, overwrite=True))
       for ending in ENDINGS},
    "copy to a directory": ("a.zarr", lambda place: zcore.copy(source(), place, overwrite=True)),
    "copy to a directory, elements": ("a.zarr", lambda place: zcore.copy(source(), place, overwrite=True, chunks=3)),
    "save to a directory": ("a.zarr", lambda place: zcore.save(place, [1], overwrite=True)),
    "mode w of a directory": ("a.zarr", lambda place: zcore.open_group(place, "w")),
    "mode w of an archive": ("a.zip", lambda place: zcore.open_group(place, "w").store.close()),
    "save to an archive": ("a.zip", lambda place: zcore.save(place, [1], overwrite=True)),
    "references": ("a.json", lambda place: zcore.ReferenceStore.of({"x": b"y"}).save(place)),
    "ASDF": ("a.asdf", lambda place: zcore.asdf.write(place, {"a": np.arange(3)})),
}


def source():
    return zcore.create_array(zcore.MemoryStore(), data=np.arange(8), chunks=4)


def old(path):
    """Make what is replaced."""
    if path.suffix == ".zarr":
        zcore.save(path, [7, 7])
    else:
        path.write_bytes(b"old")
    return path


@pytest.fixture(params=WRITERS)
def writer(request):
    name, write = WRITERS[request.param]
    pytest.importorskip(EXTRAS.get(os.path.splitext(name)[1], "numpy"))
    return name, write


@pytest.mark.thinned(3, "writer", "mode")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604])
def test_what_is_replaced_keeps_its_mode(tmp_path, writer, mode):
    """A private file became readable for all: 0600 became 0644, and a directory 0755."""
    name, write = writer
    place = old(tmp_path / name)
    mode |= 0o100 if place.is_dir() else 0
    place.chmod(mode)
    write(place)
    assert stat.S_IMODE(place.stat().st_mode) == mode
    assert os.listdir(tmp_path) == [name] and (place.is_dir() or place.read_bytes() != b"old")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_what_is_replaced_keeps_its_owner(tmp_path, writer):
    name, write = writer
    place = old(tmp_path / name)
    os.chown(place, 12345, 54321)
    write(place)
    assert (place.stat().st_uid, place.stat().st_gid) == (12345, 54321)


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path, writer):
    """As with an editor. The temporary file is where the target is: it may be on another disk."""
    name, write = writer
    (tmp_path / "disk").mkdir()
    target = old(tmp_path / "disk" / name)
    target.chmod(0o700)
    written = target / "zarr.json" if target.is_dir() else target
    before = written.read_bytes()
    (tmp_path / name).symlink_to(f"disk/{name}")
    write(tmp_path / name)
    assert os.readlink(tmp_path / name) == f"disk/{name}"
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    assert os.listdir(tmp_path / "disk") == [name] and written.read_bytes() != before


def test_a_member_that_is_a_link_is_replaced_by_a_copy(tmp_path):
    """Its target belongs to another hierarchy."""
    other = zcore.create_array(tmp_path / "other", data=[1, 2])
    zcore.create_group(tmp_path / "s")
    (tmp_path / "s/a").symlink_to(tmp_path / "other")
    zcore.copy(source(), tmp_path / "s", destination_path="a", overwrite=True)
    assert not (tmp_path / "s/a").is_symlink() and other[...].tolist() == [1, 2]


def test_nobody_sees_more_of_a_new_file_than_of_the_old_one(tmp_path):
    path = old(tmp_path / "a")
    path.chmod(0o600)
    umask = os.umask(0)
    try:
        with replacing(path) as new:
            assert stat.S_IMODE(os.stat(new.temporary).st_mode) == 0o600
            os.write(new.fd, b"new")
        zcore.save(tmp_path / "d", [1])
        (tmp_path / "d").chmod(0o700)
        seen = []
        zcore.copy(source(), tmp_path / "d", overwrite=True, chunks=3, progress=lambda n, of: seen.extend(
            stat.S_IMODE(os.stat(found).st_mode) for found in tmp_path.glob(".__zc_tmp.copy.*")))
    finally:
        os.umask(umask)
    assert path.read_bytes() == b"new" and seen and set(seen) == {0o700}


def test_another_group_gets_no_more_than_all_others(tmp_path, monkeypatch):
    """The system may refuse to give the file to the group of the old one."""
    path = old(tmp_path / "a")
    path.chmod(0o664)
    status = os.stat(path)

    def refused(*arguments, **keywords):
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "chown", refused)
    with replacing(path) as new:
        new._old = os.stat_result((*status[:4], status.st_uid + 1, status.st_gid + 1, *status[6:]))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644


def test_what_is_not_put_in_place_leaves_nothing(tmp_path):
    path = old(tmp_path / "a")
    with pytest.raises(ZeroDivisionError), replacing(path) as new:
        os.write(new.fd, b"new")
        raise ZeroDivisionError
    lost = NewFile(path)
    assert len(os.listdir(tmp_path)) == 2
    del lost
    new = NewFile(path)
    with pytest.raises(FileExistsError):
        new.commit(exclusive=True)
    new.discard()
    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError):
        NewFile(tmp_path / "d")
    assert sorted(os.listdir(tmp_path)) == ["a", "d"] and path.read_bytes() == b"old"


def test_a_link_to_nowhere_makes_the_file_that_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to("new")
    with replacing(tmp_path / "link") as new:
        os.write(new.fd, b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "new").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
@pytest.mark.parametrize("is_link", [False, True])
def test_what_is_no_file_is_not_replaced(tmp_path, writer, is_link):
    """Root could replace a device such as /dev/null, also behind a link."""
    name, write = writer
    (tmp_path / "disk").mkdir()
    fifo = tmp_path / ("disk" if is_link else ".") / name
    os.mkfifo(fifo)
    if is_link:
        (tmp_path / name).symlink_to(f"disk/{name}")
    with pytest.raises(zcore.StoreError):
        write(tmp_path / name)
    assert stat.S_ISFIFO(os.lstat(fifo).st_mode) and sorted(os.listdir(tmp_path)) == sorted({name, "disk"})
    assert os.listdir(tmp_path / "disk") == [name] * is_link


def test_an_error_names_what_was_to_be_replaced(tmp_path, writer):
    """Not only the temporary file beside it. No file may have more than four bytes."""
    name, write = writer
    old(tmp_path / name)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4, limits[1]))
        with pytest.raises(zcore.StoreError) as caught:
            write(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    text = str(caught.value)
    assert str(tmp_path / name) in text or text.startswith(f"cannot write {name!r} of DirectoryStore({str(tmp_path)!r}")
