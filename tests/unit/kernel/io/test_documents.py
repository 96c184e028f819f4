"""A look at a document tells whether another one has come in its place, however alike they are."""
import os

import pytest

from tests.descriptors import descriptors, needs_a_list
from tests.each import each
from zcore.kernel.io.documents import Look, cut


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "a").write_bytes(b"first")
    return tmp_path


def look(directory, name=b"a", others=(b"b",), beside=(), limit=100):
    return Look(os.fsencode(directory), name, others, beside, limit)


def test_what_it_finds(directory):
    found = look(directory)
    assert found.raw == b"first" and found.is_plain and found.is_same()
    assert look(directory, limit=3).raw == b"fir"
    absent = look(directory, b"c")
    assert absent.raw is None and absent.is_plain and absent.is_same()


@pytest.mark.parametrize("what", [os.mkfifo, lambda path: os.symlink("nowhere", path), lambda path: path.touch()])
def test_something_else_is_there(directory, what):
    what(directory / "b")
    assert not look(directory).is_plain
    assert not look(directory, others=(), beside=(b"b",)).is_plain
    assert look(directory, others=()).is_plain


def test_a_document_that_cannot_be_read(directory):
    os.mkfifo(directory / "c")
    found = look(directory, b"c")
    assert found.raw is None and not found.is_plain


CHANGES = {
    "replaced by its like": lambda directory: (
        (directory / "new").write_bytes(b"first"), os.utime(directory / "new", ns=(0, 0)),
        os.utime(directory / "a", ns=(0, 0)), os.replace(directory / "new", directory / "a")),
    "erased": lambda directory: (directory / "a").unlink(),
    "written in place": lambda directory: (directory / "a").write_bytes(b"longer one"),
    "another one has come": lambda directory: (directory / "b").touch(),
    "moved": lambda directory: (os.rename(directory, f"{directory}2"), os.mkdir(directory)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes(directory, change):
    found = look(directory)
    CHANGES[change](directory)
    assert not found.is_same()


def test_a_document_that_comes_where_none_was(directory):
    found = look(directory, b"c")
    (directory / "c").touch()
    assert not found.is_same()


def test_what_may_come_beside(directory):
    found = look(directory, beside=(b"c",))
    (directory / "c").touch()
    assert found.is_plain and found.is_same()


@needs_a_list
def test_no_descriptor_stays(directory):
    n_open = descriptors()
    looks = [look(directory), look(directory, b"c"), look(directory, b"b")]
    assert len(descriptors() - n_open) == 1
    del looks
    assert descriptors() <= n_open


@each("raw, texts, values", [
    (b'{"shape" : [1, 20], "attributes":{"a": "}\\\\", "b": [{}]}}', [b'{"shape" : ', b', "attributes":', b"}"],
     {"shape": (1, 20), "attributes": {"a": "}\\", "b": [{}]}}),
    (b'{"a": "\\"shape\\":", "shape":\n[ ]}', [b'{"a": "\\"shape\\":", "shape":\n', b"}"], {"shape": ()}),
    (b'{"chunks":[3],"shape":[999999999999999999],"chunks":[4]}',
     [b'{"chunks":', b',"shape":', b',"chunks":[4]}'], {"chunks": (3,), "shape": (10**18 - 1,)}),
    (b'{"attributes": {"shape": [1]}, "shape": [2]}', [b'{"attributes": ', b', "shape": ', b"}"],
     {"attributes": {"shape": [1]}, "shape": (2,)}),
])
def test_the_texts_around_what_may_differ(raw, texts, values):
    assert cut(raw, 4) == (tuple(texts), values)


@each("raw", [b"", b"{}", b'{"shape', b'"shape"', b'{"shape":', b'{"shape":[', b'{"shape":[1', b'{"shape":[1,]}',
              b'{"shape":[01]}', b'{"shape":[-1]}', b'{"shape":[1.0]}', b'{"shape":[1e3]}', b'{"shape":[1 2]}',
              b'{"shape":[1000000000000000000]}', b'{"shape":null}', b'{"shape":[1],"shape":[1]}', b'{"chunks":[1]}',
              *[b'{"shape":[1],"attributes":' + value for value in (
                  b"", b"[]}", b"1}", b'{"a', b'{"a"', b'{"a":"\\', b'{"a":1,"a":2}}', b"{]}",
                  b'{"a":"\xff"}}', b'{"a":"\n"}}', b'{"a":[[[1]]]}}', b'{"a":1e999}}', b'{"a":NaN}}')]])
def test_what_is_not_clear_is_left_to_the_parser(raw):
    assert cut(raw, 4) is None
