"""The contract of formats: each one keeps it, and nobody else asks which format a node has."""
import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.each import each
from tests.unit.extending import module_of
from zcore import formats
from zcore.formats import FORMATS, NAMES, NODE_DOCUMENTS, format_of
from zcore.formats.base import Format

from . import hostile_zmeta
from .conformance import FormatConformance
from .zarr_v2 import test_hostile as zarr_v2_hostile
from .zarr_v3 import test_hostile as zarr_v3_hostile

PACKAGE = Path(zcore.__file__).parent
ROOT = PACKAGE.parent

# Where a format is named outside of `zcore/formats` -> why.
ALLOWED = {
    "api.py: 'zmeta'": "zcore.open makes an array with cname=, clevel= or shuffle= of the format that has these",
    "cli/verbs/demo.py: 'zmeta'": "the demo compares files of all formats",
    "embed/calls.py: zcore.formats.zarr_v3.dtypes": "zcore.h names types as Zarr v3 does, whatever the array's format",
    "stores/reference/parquet.py: members.get('zarr_format') != 2": "a member of a document, checked by a store, which "
                                                                   "stands beside formats and cannot import them",
    **dict.fromkeys((f"{name}.py: 'zmeta'" for name in ("errors", "model/metadata", "nodes/node", "typing")),
                    "the type of the name of a format, for type checkers"),
    "tools/copy/transfer.py: format_of(3)": "the array that a rechunking writes on its way",
    "tools/copy/translate.py: zcore.formats.zarr_v3.chain": "the codecs in `sharding_indexed` are written as in v3",
    "tools/references/hdf5.py: format_of(2)": "reference sets of HDF5 files are hierarchies of Zarr v2",
    "tools/hdf5/dataset.py: format_of(2)": "as above",
    "tools/hdf5/dataset.py: zcore.formats.zarr_v2.fill": "as above",
    "tools/references/references.py: format_of(2)": "what is no standard format is described as Zarr v2",
    "zarr/handed.py: node.zarr_format not in (2, 3)": "these two zarr-python has",
}
FORMAT_WORDS = re.compile(r"zarr_format|\bformat\.name\b|\bformat_name\b")

SAME = {"lengths": ("shape", "{}"), "chunk lengths": ("chunks", "{}"), "type": ("dtype", "{}"),
        "type of NumPy": ("dtype", "{}")}


class TestZarrV3(FormatConformance):
    name = 3
    rich = (("zarr.json", zarr_v3_hostile.ARRAY), ("zarr.json", zarr_v3_hostile.GROUP))
    members = {"lengths": ("shape", "{}"), "length": ("shape", "[{}, 1]"),
               "chunk lengths": ("chunk_grid", '{"name": "regular", "configuration": {"chunk_shape": {}}}'),
               "separator": ("chunk_key_encoding", '{"name": "v2", "configuration": {"separator": {}}}'),
               "type": ("data_type", "{}"), "version": ("zarr_format", "{}")}
    mandatory = (("zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value"),
                 ("zarr_format", "node_type"))
    wrong = zarr_v3_hostile.WRONG


class TestZarrV2(FormatConformance):
    name = 2
    rich = ((".zarray", zarr_v2_hostile.VALID),)
    members = {**SAME, "length": ("shape", "[{}, 1]"), "version": ("zarr_format", "{}"),
               "separator": ("dimension_separator", "{}")}
    mandatory = (("zarr_format", "shape", "chunks", "dtype", "order"), ("zarr_format",))
    wrong = zarr_v2_hostile.WRONG
    unknown = zarr_v2_hostile.UNKNOWN


class TestZmeta(FormatConformance):
    name = "zmeta"
    rich = (("__zmeta__", hostile_zmeta.VALID),)
    members = {**SAME, "length": ("shape", "[{}, 1]")}
    mandatory = (tuple(hostile_zmeta.VALID),)
    wrong = hostile_zmeta.WRONG
    unknown = [("dtype", '"|O"')]


class TestToy(FormatConformance):
    """The format of docs/extending.md, with the fewest methods; it is not in the table."""

    members = SAME
    mandatory = (("kind", "shape", "chunks", "dtype", "fill", "attributes"), ("kind", "attributes"))

    @pytest.fixture
    def format(self):
        return module_of("zcore/formats/toy.py").Toy("toy", "toy.json", "toy.json", None)

    test_the_table_has_its_line = None


# The table

def test_documents_are_of_one_format_each():
    documents = [document for of_one in NODE_DOCUMENTS.values() for document in of_one]
    assert len(set(documents)) == len(documents) and formats.DOCUMENTS == tuple(documents)
    assert NODE_DOCUMENTS == {3: ("zarr.json",), 2: (".zarray", ".zgroup"), "zmeta": ("__zmeta__",)}
    assert {formats.FORMAT_OF[document] for document in documents} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_name_from_a_text(name):
    assert formats.name_from(str(name)) == name


def test_a_name_that_is_none():
    with pytest.raises(ValueError, match="zarr_format is 4, expected one of 3, 2, 'zmeta'"):
        format_of(4)


def test_the_contract_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Format("x", "x.json", None, None)


@pytest.mark.parametrize("name", NAMES)
def test_a_process_imports_only_the_formats_that_it_meets(name):
    code = ("import sys, zcore; from zcore import formats; assert not any(line.module in sys.modules for line in "
            "formats.FORMATS.values()); a = zcore.create_array(zcore.MemoryStore(), data=[1], chunks=(1,), zarr_format="
            f"{name!r}); zcore.open(a.store)[...];"
            "print(*[name for name, line in formats.FORMATS.items() if line.module in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(name)]


# Capabilities that only show in a store

@pytest.mark.parametrize("name", NAMES)
def test_strict_attributes(name):
    attributes = {"x": float("nan")}
    if format_of(name).strict_attributes:
        with pytest.raises(ValueError, match="'x'"):
            zcore.create_array(zcore.MemoryStore(), data=[1], zarr_format=name, attributes=attributes)
    else:
        array = zcore.create_array(zcore.MemoryStore(), data=[1], zarr_format=name, attributes=attributes)
        assert np.isnan(array.attrs["x"])


@pytest.mark.parametrize("name", NAMES)
def test_dimension_separator(name):
    array = zcore.create_array(zcore.MemoryStore(), data=[[1]], zarr_format=name)
    if format_of(name).has_dimension_separator:
        assert zcore.open(array.store, dimension_separator="/").metadata.chunk_keys.separator == "/"
        return
    with pytest.raises(zcore.ArrayMismatchError):
        zcore.open(array.store, dimension_separator="/")
    with pytest.raises(ValueError, match="dimension_separator is of Zarr v2"):
        zcore.open(array.store, dimension_separator="/", zarr_format=name)


@pytest.mark.parametrize("name", NAMES)
def test_item_size_in_blosc_chunks(name):
    """Only where it is implied, another one in a chunk is damage."""
    array = zcore.create_array(zcore.MemoryStore(), shape=(64,), dtype="<i4", chunks=(64,), zarr_format=name,
                               **{} if format_of(name).only_compressor else {"compressors": zcore.codecs.BloscCodec(),
                                                                             "checksum": False})
    array[:] = np.arange(64)
    (key, _), = array._binding.stored_chunks()
    array.store.set(key, bytes(zcore.blosc.compress(np.arange(64, dtype="<i4").tobytes(), typesize=2)))
    if format_of(name).implies_typesize:
        with pytest.raises(zcore.ChunkError):
            zcore.open(array.store)[:]
    else:
        assert zcore.open(array.store)[:].tolist() == list(range(64))


@pytest.mark.parametrize("name", NAMES)
def test_reference_sets_have_standard_formats(name):
    array = zcore.create_array(zcore.MemoryStore(), data=[1], zarr_format=name)
    found = zcore.references(array)
    assert zcore.open(found).zarr_format == (name if format_of(name).is_standard else 2)


SPELLED = {2: {"dimension_separator": "."}, 3: {"fill_value": "AAAAAAAAAAA=", "data_type": {
    "name": "structured", "configuration": {"fields": [["a", "int64"]]}}}}


@pytest.mark.parametrize("name", NAMES)
def test_spellings_are_kept_and_are_no_loss(name, tmp_path):
    format = format_of(name)
    zcore.create_array(tmp_path / "a", data=[1], zarr_format=name)
    document = tmp_path / "a" / format.array_document
    document.write_text(json.dumps({**json.loads(document.read_text()), **SPELLED.get(name, {})}))
    extra = zcore.open(tmp_path / "a").metadata.extra
    assert set(extra) <= set(format.spellings) and bool(extra) == bool(format.spellings)


# Nobody else asks which format it is

def named_formats(text):
    """Yield what names a format in a Python source: comparisons, names of formats, and modules of one format."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and FORMAT_WORDS.search(ast.unparse(node)):
            others = [ast.unparse(part) for part in node.comparators]
            if others != ["None"]:
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and node.value in FORMATS and type(node.value) is str:
            yield repr(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("format_of"):
            if isinstance(node.args[0], ast.Constant):
                yield ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            of = [f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
                  for alias in node.names]
            for name in of:
                if re.match(r"zcore\.formats\.(zarr_v|zmeta)", name):
                    yield name.rpartition(".")[0] if isinstance(node, ast.ImportFrom) else name


def test_nobody_else_asks_which_format_it_is():
    found = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        # xarray has rules of its own for each format, for fill values and encodings; the bridge to it follows them.
        if not place.startswith(("formats/", "xarray/")):
            found |= {f"{place}: {name}" for name in named_formats(path.read_text(encoding="utf-8"))}
    assert found == set(ALLOWED)


def test_compiled_code_knows_no_formats():
    for suffix in (".pyx", ".pxd"):
        for path in PACKAGE.rglob(f"*{suffix}"):
            assert not FORMAT_WORDS.search(path.read_text(encoding="utf-8")), path


@each("text, found", [
    ("if format.name == 2: pass", ["format.name == 2"]),
    ("x = self.format.name != 3", ["self.format.name != 3"]),
    ("if a.zarr_format in (2, 3): pass", ["a.zarr_format in (2, 3)"]),
    ("if 3 == array.zarr_format: pass", ["3 == array.zarr_format"]),
    ("x = f('zmeta')", ["'zmeta'"]),
    ("x = format_of(2).name", ["format_of(2)"]),
    ("from zcore.formats.zarr_v2 import format", ["zcore.formats.zarr_v2"]),
    ("from zcore.formats import zmeta", ["zcore.formats"]),
    ("if zarr_format is None: pass", []),
    ("if codec.name == 'blosc': pass", []),
    ("x = format_of(name).has_shards", []),
    ('"""Of zmeta."""', []),
])
def test_a_question_is_seen(text, found):
    assert list(named_formats(text)) == found


# A new format is a file, a line, and its tests

USE_OF_TOY = '''
import pathlib, sys
import zcore.formats as formats

source = pathlib.Path(formats.__file__).read_text()
line = '    "toy": Line("zcore.formats.toy", "Toy", "toy.json", "toy.json"),\\n'
start = "FORMATS: dict[FormatName, Line] = {\\n"
assert start in source
exec(source.replace(start, start + line), formats.__dict__)

from tests.unit.extending import module_of
module_of("zcore/formats/toy.py")

import numpy as np
import zcore

folder = pathlib.Path(sys.argv[1])
values = np.arange(35, dtype="i4").reshape(7, 5)
group = zcore.create_group(folder / "a", zarr_format="toy", attributes={"x": 1})
array = group.create_array("g/values", data=values, chunks=(3, 5), attributes={"unit": "m"})
assert sorted(path.name for path in (folder / "a/g/values/parts").iterdir()) == ["0.0", "1.0", "2.0"]
opened = zcore.open(folder / "a", "r+")
assert opened.zarr_format == opened["g/values"].zarr_format == "toy" and dict(opened.attrs) == {"x": 1}
assert np.array_equal(opened["g/values"][...], values)
opened["g/values"][0, 0] = 100
opened["g/values"].resize((9, 5))
opened["g/values"].attrs["unit"] = "km"
values[0, 0] = 100
assert zcore.verify(folder / "a").ok

for zarr_format in (3, 2, "toy"):
    copy = zcore.copy(folder / "a", folder / f"b{zarr_format}", zarr_format=zarr_format, compressors="auto")
    assert copy["g/values"].zarr_format == zarr_format and dict(copy["g/values"].attrs) == {"unit": "km"}
    assert np.array_equal(copy["g/values"][:7], values)
    again = zcore.copy(folder / f"b{zarr_format}", folder / f"c{zarr_format}", zarr_format="toy")
    assert np.array_equal(again["g/values"][:7], values)
references = zcore.references(array)
assert zcore.open(references).zarr_format == 2 and np.array_equal(zcore.open(references)[:7], values)
del opened["g"]
assert list(opened) == [] and not (folder / "a/g").exists()

from zcore.__main__ import main
main(["create", str(folder / "d"), "--shape", "3", "--dtype", "i4", "--zarr-format", "toy"])
assert zcore.open(folder / "d").zarr_format == "toy"
main(["info", str(folder / "d")])
'''


def test_a_new_format_is_a_file_and_a_line(tmp_path):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", USE_OF_TOY, tmp_path], capture_output=True, text=True,
                          cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "Toy array" in done.stdout
