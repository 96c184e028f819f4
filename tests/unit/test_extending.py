"""docs/extending.md: its codec, store and verb pass the conformance classes and work.

Its format is tested in `formats/test_base.py`.
"""
import doctest
import re

import numpy as np
import pytest

import zcore
from tests.unit.codecs.test_conformance import CodecConformance
from tests.unit.extending import PAGE, module_of
from tests.unit.stores.conformance import StoreConformance
from zcore.__main__ import main
from zcore.cli import parser
from zcore.codecs import chain
from zcore.model import foreign_dtypes


def subclass(name, base, **names):
    """Return the subclass of a conformance class that stands in the page, indented by three."""
    source = re.search(rf"^   ```python\n(   class {name}\(.*?)^   ```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    names |= {base.__name__: base, "__name__": __name__}
    exec(re.sub("^   ", "", source, flags=re.MULTILINE), names)
    return names[name]


RleCodec = module_of("zcore/codecs/rle.py").RleCodec
XorCodec = module_of("zcore/codecs/xor.py").XorCodec
SqliteStore = module_of("zcore/stores/sqlite.py").SqliteStore
count = module_of("zcore/cli/verbs/elements/count.py")


@pytest.fixture(autouse=True)
def in_the_tables(monkeypatch, tmp_path):
    """Add to each table the line that the page tells of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(chain.CODECS, "rle", RleCodec)
    monkeypatch.setitem(chain.CODECS, "xor", XorCodec)
    for table in (foreign_dtypes._NAMES, foreign_dtypes._DOCUMENT_NAMES):
        monkeypatch.setitem(table, "uint1", "uint1")
    monkeypatch.setitem(parser.VERBS, "count", eval(re.search(r'^   "count": (.*),$', PAGE, re.MULTILINE)[1]))


class TestRle(subclass("TestRle", CodecConformance, RleCodec=RleCodec)):
    pass


class TestXor(subclass("TestXor", CodecConformance, XorCodec=XorCodec)):
    pass


class TestSqliteStore(subclass("TestSqliteStore", StoreConformance, SqliteStore=SqliteStore)):
    pass


@pytest.mark.parametrize("session", re.findall(r"^```pycon\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_session(session):
    names = {"zcore": zcore, "np": np, "SqliteStore": SqliteStore}
    complaints = []
    test = doctest.DocTestParser().get_doctest(session, names, "extending.md", None, 0)
    doctest.DocTestRunner(verbose=False).run(test, out=complaints.append)
    assert complaints == []


def test_codec_in_an_array():
    data = np.repeat(np.arange(5, dtype="u1"), 700).reshape(50, 70)
    array = zcore.create_array("runs.zarr", data=data, chunks=(20, 30), compressors={"name": "rle"})
    array[3:30:2, 5] = 9
    data[3:30:2, 5] = 9
    assert np.array_equal(zcore.open("runs.zarr")[...], data)
    assert zcore.verify("runs.zarr").ok


def test_store_with_arrays_in_it():
    store = SqliteStore("x.sqlite")
    group = zcore.create_group(store)
    array = group.create_array("a/b", shape=(7, 9), chunks=(4, 4), dtype="i4")
    array[2:5, ::2] = 3
    array.resize(9, 9)
    found = zcore.open_group(SqliteStore("x.sqlite", read_only=True))["a/b"]
    assert np.array_equal(found[...], array[...]) and found[...].sum() == 45


def test_verb(capsys):
    zcore.create_array("a.zarr", shape=(4, 6), chunks=(2, 3), dtype="i4")[1] = 7
    assert main(["count", "a.zarr"]) == 0
    printed = capsys.readouterr().out
    assert f"```console\n$ zcore count a.zarr\n{printed}```" in PAGE
    assert main(["count", "--json", "a.zarr"]) == 0
    assert main(["count", "b.zarr"]) == 1 and "b.zarr does not exist" in capsys.readouterr().err
