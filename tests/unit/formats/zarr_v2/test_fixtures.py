"""What zarr 2.18 wrote, in `fixtures/zarr_v2_218`: read by zcore, and by numcodecs along the chains of documents."""
import base64
import json
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.both_ways import WAYS, directory
from tests.each import each
from zcore.errors import UnsupportedError
from zcore.formats import NODE_DOCUMENTS, format_of
from zcore.model.metadata import has_varying_items

zarr_v2 = format_of(2)

FIXTURES = Path(__file__).parents[3] / "fixtures" / "zarr_v2_218"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def decode(array, data):
    """Return the chunk that an object holds."""
    numcodecs = pytest.importorskip("numcodecs")
    shape = array.chunk_shape
    permutation = None
    for codec in reversed(array.codecs):
        configuration = dict(codec.configuration)
        if codec.name == "transpose":
            permutation = configuration["order"]
        elif codec.name == "bytes":
            order = {"big": ">", "little": "<", None: "|"}[configuration.get("endian")]
            data = np.frombuffer(data, "u1")
            before = array.codecs[array.codecs.index(codec) - 1] if codec is not array.codecs[0] else None
            if before is None or before.name in ("transpose", "bitround"):
                assert order == "|" or array.dtype.str[0] == order
                data = data.view(array.dtype)
        else:
            id = codec.name.removeprefix("numcodecs.")
            if id == "blosc":
                configuration["shuffle"] = SHUFFLES[configuration["shuffle"]]
                del configuration["typesize"]
            if id == "msgpack2":
                pytest.importorskip("msgpack")
            data = numcodecs.get_codec({"id": id, **configuration}).decode(data)
    chunk = np.asarray(data)
    if permutation is None:
        return chunk.reshape(shape)
    return chunk.reshape([shape[d] for d in permutation]).transpose(np.argsort(permutation))


def read(directory, array):
    """Read an array with nothing of zcore but its metadata."""
    if has_varying_items(array.dtype):
        out = np.full(array.shape, None, object)
        out.fill(array.fill_value)
    else:
        out = np.ndarray(array.shape, array.dtype, array.fill_bytes * max(array.size, 1)).copy()
    for coords in np.ndindex(array.grid_shape):
        path = directory / array.chunk_keys.encode(coords)
        if path.exists():
            box = tuple(slice(c * n, (c + 1) * n) for c, n in zip(coords, array.chunk_shape, strict=True))
            part = out[(*box, ...)]
            part[...] = decode(array, path.read_bytes())[tuple(slice(n) for n in part.shape)]
    return out


def plain(value):
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.decode("latin-1") if isinstance(value, bytes) else value


def assert_expected(name, array, found):
    if has_varying_items(array.dtype):
        empty = {"vlen-utf8": "", "numcodecs.vlen-array": []}.get(array.codecs[0].name, 0)
        assert [plain(value) or empty for value in found.tolist()] == [value or empty for value in EXPECTED[name]]
    else:
        assert found.tobytes() == base64.b64decode(EXPECTED[name])


@each("name", sorted(EXPECTED))
def test_array_has_its_elements_along_the_chain(name):
    """V2-CHK-03, V2-CHK-04: the chain says in which order codecs are undone."""
    directory = FIXTURES / name
    array = zarr_v2.parse_array((directory / ".zarray").read_bytes(), name)
    assert_expected(name, array, read(directory, array))


@pytest.mark.thinned(2, "name", "way")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_array_is_read(name, way):
    """V2-CHK-01 to V2-CHK-07, V2-DT-01 to V2-DT-06, V2-ST-02, V2-ST-04, V2-FV-01 to V2-FV-10, V2-OBJ-04 to V2-OBJ-06,
    V2-COD-01 to V2-COD-13: whole, and every other element from the end.
    """
    pytest.importorskip("numcodecs")
    if name.endswith("msgpack2"):
        pytest.importorskip("msgpack")
    array = zcore.open(directory(FIXTURES / name, way))
    whole = array[...]
    assert_expected(name, array, whole)
    if array.ndim:
        # As text, in which NaN and arrays are equal to themselves.
        assert str(array[::-2].tolist()) == str(whole[::-2].tolist())


ARRAYS = sorted(path.parent for path in FIXTURES.rglob(".zarray"))


@each("directory", ARRAYS, ids=lambda directory: directory.name)
def test_document_is_rewritten_byte_for_byte(directory):
    """V2-ARR-10; a fill value of 0 on text and bytes of any length becomes the empty one that it means (V2-FV-10)."""
    raw = (directory / ".zarray").read_bytes()
    if directory.name == "pickle":
        with pytest.raises(UnsupportedError, match="pickle"):  # V2-OBJ-02
            zarr_v2.parse_array(raw, "a")
        return
    array = zarr_v2.parse_array(raw, "a")
    if directory.name in ("vlen_utf8", "vlen_bytes"):
        raw = raw.replace(b'"fill_value": 0', b'"fill_value": ""')
    assert zarr_v2.render_array(array) == raw
    # without the members' old spelling the document still means the same
    again = zarr_v2.parse_array(zarr_v2.render_array(array.replace(extra={})), "a")
    assert again == array.replace(extra=again.extra)


@each("path", sorted(path for path in FIXTURES.rglob(".zgroup")), ids=lambda path: path.parent.name)
def test_group_is_rewritten_byte_for_byte(path):
    """V2-GRP-01"""
    assert zarr_v2.render_group(zarr_v2.parse_node(".zgroup", path.read_bytes(), "g")) == path.read_bytes()


def test_consolidated_metadata_are_those_of_the_documents():
    """V2-CON-01, V2-CON-03"""
    root = FIXTURES / "consolidated.zarr"
    raw = (root / ".zmetadata").read_bytes()
    group = zarr_v2.parse_consolidated(raw, "")
    assert sorted(group.consolidated) == ["a", "a/b", "a/b/c", "a/b/s"]
    for path, node in [("", group), *group.consolidated.items()]:
        document = next(name for name in NODE_DOCUMENTS[2] if (root / path / name).exists())
        own = zarr_v2.parse_node(document, (root / path / document).read_bytes(), path)
        attributes = root / path / ".zattrs"
        raw_attributes = attributes.read_bytes() if attributes.exists() else None
        assert str(node.attributes) == str(zarr_v2.parse_attributes(raw_attributes, path))
        changes = {} if document == ".zarray" else {"consolidated": None}
        assert node.replace(attributes=None, **changes) == own
    assert zarr_v2.render_consolidated(group) == raw
    assert zarr_v2.render_consolidated(group.replace(consolidated=dict(group.consolidated))) == raw


def test_all_kinds_are_among_the_fixtures():
    assert len(ARRAYS) == len(EXPECTED) + 1 == 78
