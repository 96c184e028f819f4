"""Sources of bytes by range."""
import io
import os
import zipfile

import numpy as np
import pytest

import zcore
from zcore.errors import StoreError
from zcore.ranges import Ahead, ByteSource, LocalFile, merged
from zcore.stores.asdf.store import AsdfStore


class Memory(ByteSource):
    """A source with no more than a source needs."""

    path = "memory"

    def __init__(self, data):
        self._data = data
        self.size = len(data)
        self.reads = []

    def read_at(self, offset, n_bytes):
        self.reads.append((offset, n_bytes))
        return self._data[offset:offset + n_bytes]


class Far(Memory):
    """The same, as if each read were a request."""

    is_far = True


@pytest.mark.parametrize("source", [Memory, Far])
def test_an_archive_in_any_source(source):
    with zipfile.ZipFile(made := io.BytesIO(), "w") as file:
        file.writestr("a", b"stored")
        file.writestr("b/c", b"deflated" * 99, zipfile.ZIP_DEFLATED)
    store = zcore.ZipStore(source(made.getvalue()))
    assert store.get("a", (2, 4)) == b"ored" and store.get("b/c") == b"deflated" * 99 and store.get("c") is None
    assert store.list_dir("") == (["a"], ["b/"], ()) and store.identity("a") is None and store.label == "memory"
    assert [verify() for *_, verify in store.blocks("")] == [None, None]


@pytest.mark.parametrize("source", [Memory, Far])
def test_an_asdf_file_in_any_source(tmp_path, source):
    pytest.importorskip("yaml")
    values = np.arange(24, dtype="<i4").reshape(4, 6)
    zcore.asdf.write(tmp_path / "x.asdf", {"a": values, "b": values[::2]}, compression=None)
    store = AsdfStore(source((tmp_path / "x.asdf").read_bytes()))
    assert store.get("a/0.0") == values.tobytes() and store.get("a/0.0", (4, 8)) == values.tobytes()[4:12]
    assert store.get("b/0.0") == values[::2].tobytes() and store.get("a/0.1") is None


def test_a_part_that_was_read_in_advance_costs_no_read():
    source = Memory(bytes(range(100)))
    ahead = Ahead(source, 10, 20)
    assert ahead.read_at(12, 5) == bytes(range(12, 17)) and source.reads == [(10, 20)]
    assert ahead.read_at(25, 10) == bytes(range(25, 35)) and ahead.size == 100


def test_a_local_file(tmp_path):
    (tmp_path / "x").write_bytes(bytes(range(100)))
    file = LocalFile(str(tmp_path / "x"))
    assert file.read_at(90, 20) == bytes(range(90, 100)) and file.read_at(100, 1) == b""
    file.piece_nbytes = 2
    assert list(file.pieces(10, 5)) == [b"\x0a\x0b", b"\x0c\x0d", b"\x0e"]
    file.read_into(1, memoryview(view := bytearray(3)))
    assert view == b"\1\2\3" and file.identity("a", 3) == file.identity("a", 3) != file.identity("b", 3)
    os.truncate(tmp_path / "x", 50)
    assert file.read_at(40, 20) == bytes(range(40, 50))
    for read in (lambda: file.read_at(60, 1), lambda: list(file.pieces(40, 20)),
                 lambda: file.read_into(40, memoryview(bytearray(20)))):
        with pytest.raises(StoreError, match="was cut off at byte"):
            read()
    file.close()
    with pytest.raises(StoreError, match="is closed"):
        file.read_at(0, 1)
    with pytest.raises(StoreError, match="not a regular file"):
        LocalFile(str(tmp_path))


def test_ranges_are_merged_where_they_lie_close():
    assert merged([]) == []
    assert merged([(20, 30), (0, 10), (31, 40)], max_gap=1) == [(0, 10, [1]), (20, 40, [0, 2])]
    assert merged([(0, 100), (10, 20), (20, 200)], max_block=150) == [(0, 100, [0, 1]), (20, 200, [2])]
    assert merged([(0, 10), (5, 50)], max_gap=0, max_block=40) == [(0, 10, [0]), (5, 50, [1])]
