"""Targets that are opened again and again: whatever became of a path since, it is judged as if for the first time."""
import os
import shutil

import pytest

import zcore
from tests.descriptors import descriptors
from zcore.errors import ReferenceTargetError
from zcore.kernel.io.documents import open_again
from zcore.stores.reference.store import ReferenceStore
from zcore.stores.reference.targets import Targets

ZARRAY = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "|u1", "compressor": None, "filters": None,
          "fill_value": 0, "order": "C"}


@pytest.fixture
def place(tmp_path):
    """A directory "data" with targets, and besides it what no set may show."""
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "other").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "data" / "sub" / "a").write_bytes(b"inside")
    (tmp_path / "data" / "other" / "a").write_bytes(b"second")
    (tmp_path / "outside" / "a").write_bytes(b"secret")
    (tmp_path / "data" / "file").symlink_to("sub/a")
    (tmp_path / "data" / "folder").symlink_to("sub")
    return tmp_path


@pytest.fixture(params=["sub/a", "file", "folder/a", "sub/../folder/./a"])
def reader(request, place):
    """What reads a target by one of the ways to it, which it has read before."""
    store = ReferenceStore({".zarray": ZARRAY, "0": [request.param]}, base=place / "data")
    array = zcore.open(store)

    def read():
        found = {store.get("0"), bytes(array[...]), bytes(array[2:4].tobytes().center(6, b"."))}
        assert len(found) == 2
        assert store.getsize("0") == 6
        return store.get("0")

    assert read() == read() == b"inside"
    return read


def refused(reader):
    for _ in range(2):
        with pytest.raises(ReferenceTargetError) as caught:
            reader()
    return str(caught.value)


def swap(path, target):
    """Put a link in the place of a file or directory."""
    path.rename(path.with_name("was"))
    path.symlink_to(target)


def test_a_target_that_was_replaced(place, reader):
    """RF-STO-04: by another file, or in place."""
    (place / "data" / "new").write_bytes(b"newest")
    (place / "data" / "new").rename(place / "data" / "sub" / "a")
    assert reader() == b"newest"
    (place / "data" / "sub" / "a").write_bytes(b"edited")
    assert reader() == b"edited"


def test_a_target_that_is_gone(place, reader):
    """RF-STO-04"""
    (place / "data" / "sub" / "a").unlink()
    assert "No such file" in refused(reader)
    (place / "data" / "sub" / "a").write_bytes(b"return")
    assert reader() == b"return"


@pytest.mark.parametrize("name", ["sub/a", "sub"])
def test_a_link_that_came_later(place, reader, name):
    """RF-URL-08: one that stays inside is followed, one that leads out is refused, wherever in the path it is."""
    inside, outside = place / "data" / "other", place / "outside"
    swap(place / "data" / name, inside / "a" if name == "sub/a" else inside)
    assert reader() == b"second"
    (place / "data" / name).unlink()
    (place / "data" / name).symlink_to(outside / "a" if name == "sub/a" else outside)
    assert "would permit it" in refused(reader)


def test_a_directory_that_was_moved_out_and_linked_to(place, reader):
    """RF-URL-08: the same file, which lies outside now."""
    shutil.move(place / "data" / "sub", place / "outside" / "sub")
    (place / "data" / "sub").symlink_to(place / "outside" / "sub")
    assert "would permit it" in refused(reader)


def test_what_is_no_file_any_more(place, reader):
    """RF-URL-08: it is refused, and a FIFO is not waited for."""
    target = place / "data" / "sub" / "a"
    target.unlink()
    os.mkfifo(target)
    assert "no file" in refused(reader)
    target.unlink()
    target.mkdir()
    assert refused(reader)


def test_links_of_the_set_that_lead_elsewhere(place):
    """RF-URL-08: not where they have led to counts, but where they lead."""
    store = ReferenceStore({"x": ["file"]}, base=place / "data")
    for target, expected in (("sub/a", b"inside"), ("other/a", b"second"), ("sub/a", b"inside")):
        (place / "data" / "file").unlink()
        (place / "data" / "file").symlink_to(target)
        assert store.get("x") == store.get("x") == expected
    (place / "data" / "file").unlink()
    (place / "data" / "file").symlink_to("../outside/a")
    for _ in range(2):
        with pytest.raises(ReferenceTargetError, match="would permit it"):
            store.get("x")


def test_places_that_are_kept_have_a_bound(place, monkeypatch):
    """However many targets a set has; each is found anew then."""
    monkeypatch.setattr("zcore.stores.reference.targets.MAX_PATHS", 5)
    targets = Targets(place / "data")
    for i in range(20):
        (place / "data" / str(i)).write_text(str(i))
    for i in (*range(20), *range(20)):
        assert targets.get_part("x", str(i), 0, None, None)[0] == str(i).encode()
        assert len(targets._paths) <= 5


def test_opening_again(place):
    """None, and no descriptor left, where the path has to be followed anew."""
    file, link, other = (os.fsencode(place / name) for name in ("data/sub/a", "data/file", "outside/a"))
    n_open = descriptors()
    found = open_again(file, file)
    if found is None:
        pytest.skip("the system has no openat2")
    os.close(found)
    for path, at, is_found in ((file, file, True), (link, file, True), (other, file, False), (file, link, False),
                               (file + b"x", file, False), (file, file + b"x", False), (b"", b"", False),
                               (file, os.fsencode(place / "data/sub"), False), (b"x" * 9000, file, False),
                               (file, b"/" + b"x" * 9000, False), (file, os.fsencode(place / "data/folder/a"), False)):
        found = open_again(path, at)
        assert (found is not None) == is_found
        if found is not None:
            assert os.get_inheritable(found) is False and os.pread(found, 10, 0) == b"inside"
            os.close(found)
    assert descriptors() <= n_open
