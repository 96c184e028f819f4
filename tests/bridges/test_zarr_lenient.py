"""No array that zarr-python reads is lost by the pipeline: zcore reads it with the same elements, or zarr-python does.

The documents are as other writers write them; some break a rule, and zcore refuses some of them.
"""
import copy
import gzip
import json
import struct
import warnings

import numpy as np
import pytest

import zcore

zarr = pytest.importorskip("zarr")

from zarr.core.buffer import default_buffer_prototype  # noqa: E402
from zarr.storage import MemoryStore  # noqa: E402

import zcore.zarr  # noqa: E402

OURS = "zcore.zarr.ZcoreCodecPipeline"
THEIRS = "zarr.core.codec_pipeline.BatchedCodecPipeline"
NUMBERS = np.arange(6, dtype="<i4")
V2 = {"zarr_format": 2, "shape": [6], "chunks": [4], "dtype": "<i4", "compressor": None, "fill_value": 0, "order": "C",
      "filters": None}
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
V3 = {"zarr_format": 3, "node_type": "array", "shape": [6], "data_type": "int32",
      "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
      "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "codecs": [LITTLE], "attributes": {}}
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}


def chain(*codecs):
    return {"codecs": [LITTLE, *[{"name": name, "configuration": configuration} for name, configuration in codecs]]}


def without(members, *names):
    return {name: value for name, value in members.items() if name not in names}


DOCUMENTS = {
    "v2 fill value as text": {**V2, "fill_value": "7"},
    "v2 fill value as text, float": {**V2, "dtype": "<f4", "fill_value": "1.5"},
    "v2 fill value as text, bool": {**V2, "dtype": "|b1", "fill_value": "1"},
    "v2 no compressor": without(V2, "compressor"), "v2 no filters": without(V2, "filters"),
    "v2 shape is a number": {**V2, "shape": 6}, "v2 chunks are a number": {**V2, "chunks": 4},
    "v2 both are numbers": {**V2, "shape": 6, "chunks": 4},
    "v2 empty filters": {**V2, "filters": []}, "v2 other members": {**V2, "x": 1},
    "v2 codec with other parameters": {**V2, "compressor": {"id": "zlib", "level": 1, "x": 2}},
    "v2 blosc without parameters": {**V2, "compressor": {"id": "blosc"}},
    "v2 shuffle of 0 bytes": {**V2, "filters": [{"id": "shuffle", "elementsize": 0}]},
    "v3 bool fill 0": {**V3, "data_type": "bool", "fill_value": 0},
    "v3 bool fill 1": {**V3, "data_type": "bool", "fill_value": 1},
    "v3 bare NaN": {**V3, "data_type": "float32", "fill_value": float("nan")},
    "v3 bare infinity": {**V3, "data_type": "float64", "fill_value": float("-inf")},
    "v3 integer fill 0.0": {**V3, "fill_value": 0.0}, "v3 integer fill 1e3": {**V3, "fill_value": 1e3},
    "v3 integer fill 1e18": {**V3, "data_type": "int64", "fill_value": 1e18},
    "v3 integer fill as text": {**V3, "fill_value": "3"},
    "v3 attributes null": {**V3, "attributes": None}, "v3 no attributes": without(V3, "attributes"),
    "v3 storage transformers null": {**V3, "storage_transformers": None},
    "v3 dimension names null": {**V3, "dimension_names": None},
    "v3 blosc without typesize": {**V3, **chain(("blosc", without(BLOSC, "typesize")))},
    "v3 blosc without blocksize": {**V3, **chain(("blosc", without(BLOSC, "blocksize")))},
    "v3 blosc with nthreads": {**V3, **chain(("blosc", {**BLOSC, "nthreads": 1}))},
    "v3 blosc of a name": {**V3, **chain(("blosc", {"cname": "zstd"}))},
    "v3 blosc of nothing": {**V3, **chain(("blosc", {}))},
    "v3 gzip without level": {**V3, **chain(("gzip", {}))}, "v3 zstd without level": {**V3, **chain(("zstd", {}))},
    "v3 zstd without checksum": {**V3, **chain(("zstd", {"level": 3}))},
    "v3 bytes of one byte": {**V3, "data_type": "int8", "codecs": [{"name": "bytes"}]},
    "v3 bytes without byte order": {**V3, "codecs": [{"name": "bytes"}]},
    "v3 bytes with a byte order of null": {**V3, "codecs": [{"name": "bytes", "configuration": {"endian": None}}]},
    "v3 codec in short form": {**V3, "codecs": [LITTLE, "crc32c"]},
    "v3 unknown member": {**V3, "x": 1}, "v3 optional member": {**V3, "x": {"must_understand": False}},
    "v3 chunk keys without separator": {**V3, "chunk_key_encoding": {"name": "v2"}},
    "v3 attribute NaN": {**V3, "attributes": {"x": float("nan")}},
    "v3 numcodecs": {**V3, **chain(("numcodecs.zlib", {"level": 2, "x": 3}))},
}


def store_of(document):
    key = ".zarray" if document["zarr_format"] == 2 else "zarr.json"
    return MemoryStore({key: default_buffer_prototype().buffer.from_bytes(json.dumps(document).encode())})


def found(store, pipeline):
    """What zarr-python finds by a pipeline, before and after a write."""
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        array = zarr.open_array(store, mode="r+")
        results = [array[...]]
        array[1:6] = NUMBERS[1:6].astype(array.dtype)
        array[4] = array[4]
        return [*results, array[...], zarr.open_array(store, mode="r")[::2]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_zarr_reads_is_read_by_the_pipeline(name):
    document = DOCUMENTS[name]
    try:
        expected = found(store_of(copy.deepcopy(document)), THEIRS)
    except Exception as error:
        expected = error
    try:
        # Not even where warnings are errors.
        with warnings.catch_warnings():
            warnings.filterwarnings("error", module="zcore")
            results = found(store_of(copy.deepcopy(document)), OURS)
    except Exception:
        assert isinstance(expected, Exception)
        return
    if not isinstance(expected, Exception):
        for result, other in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, other)


@pytest.mark.parametrize("name", ["v2 fill value as text", "v2 no compressor", "v2 both are numbers", "v3 bool fill 1",
                                  "v3 bare NaN", "v3 integer fill 1e3", "v3 attributes null",
                                  "v3 storage transformers null", "v3 blosc without typesize"])
@pytest.mark.filterwarnings("ignore")
def test_and_by_zcore_itself(name):
    store = store_of(DOCUMENTS[name])
    theirs = found(store, THEIRS)
    for strict in (True, False):
        array = zcore.open(store, "r+", strict=strict)
        np.testing.assert_array_equal(array[...], theirs[1])
        array[2] = array[2]
        array.attrs["x"] = 1
        np.testing.assert_array_equal(zarr.open_array(store, mode="r")[...], theirs[1])


ZEROS = bytes(12)
CHUNKS = {
    "gzip with zeros behind it": ({**V2, "chunks": [6], "compressor": {"id": "gzip", "level": 1}},
                                  lambda numbers: gzip.compress(numbers.tobytes(), mtime=0) + ZEROS),
    "text with bytes behind it": ({**V2, "chunks": [6], "dtype": "|O", "fill_value": "",
                                   "filters": [{"id": "vlen-utf8"}]},
                                  lambda _: struct.pack("<I", 6) + 6 * (struct.pack("<I", 1) + b"x") + ZEROS),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHUNKS)
def test_chunks_that_zcore_does_not_decode_and_zarr_does(name):
    document, stored = CHUNKS[name]
    expected = []
    for pipeline in (THEIRS, OURS):
        store = store_of(document)
        store._store_dict["0"] = default_buffer_prototype().buffer.from_bytes(stored(NUMBERS))
        with pytest.raises(zcore.ChunkError):
            zcore.open(store)[...]
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            array = zarr.open_array(store, mode="r+")
            found = [array[...].tolist(), array[1:3].tolist()]
            array[2] = array[3]
            expected.append([*found, array[...].tolist()])
    assert expected[0] == expected[1]


@pytest.mark.parametrize("codec", [{"id": "gzip", "level": 1}, {"id": "zstd", "level": 1}, {"id": "blosc"}],
                         ids=lambda codec: codec["id"])
def test_chunks_that_neither_decodes_are_errors_of_zcore(codec):
    store = store_of({**V2, "chunks": [6], "compressor": codec})
    store._store_dict["0"] = default_buffer_prototype().buffer.from_bytes(b"damage")
    with zarr.config.set({"codec_pipeline.path": OURS}):
        array = zarr.open_array(store, mode="r+")
        for use in (lambda: array[1], lambda: array.__setitem__(1, 5)):
            with pytest.raises(zcore.CodecError, match="0: "):
                use()
    assert store._store_dict["0"].to_bytes() == b"damage"


def test_chunks_of_blosc_are_not_tried_by_zarr(monkeypatch):
    """Its library crashes at some of them, such as this one."""
    n = 9_000_000
    stream = b"\x1f" + bytes(range(32)) + b"\xe0" + b"\xff" * 8_421_506 + b"\0\0\0\x42"
    chunk = struct.pack("<4B5I", 2, 1, 0x10, 1, n, n, 24 + len(stream), 20, len(stream)) + stream
    store = store_of({**V2, "shape": [n], "chunks": [n], "dtype": "|u1", "compressor": {"id": "blosc"}})
    store._store_dict["0"] = default_buffer_prototype().buffer.from_bytes(chunk)
    monkeypatch.setattr(zcore.zarr.BatchedCodecPipeline, "read", None)
    with zarr.config.set({"codec_pipeline.path": OURS}), pytest.raises(zcore.CodecError, match="damaged"):
        zarr.open_array(store, mode="r")[5]


def test_a_structure_that_zarr_wrote_is_its_own_after_changes(tmp_path):
    """zarr-python 3.1 reads no type `struct`, not even in a list of members."""
    values = np.array([(1, 2.5), (3, 4.5), (5, 6.5)], [("a", "<i4"), ("b", "<f8")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # zarr-python's of the type, zcore's of the byte order
        zarr.create_group(tmp_path / "z").create_array("x", data=values[:2], chunks=(2,))
        before = json.loads((tmp_path / "z/x/zarr.json").read_text())
        array = zcore.open(tmp_path / "z/x", "r+")
        array.attrs["u"] = 1
        array.append(values[2:])
        array.resize(4)
        zcore.consolidate_metadata(tmp_path / "z")
        (_, found), = zarr.open_group(tmp_path / "z").members()
        assert found[...].tolist() == [*values.tolist(), (0, 0.0)] and found.attrs.asdict() == {"u": 1}
    assert json.loads((tmp_path / "z/x/zarr.json").read_text()) == {**before, "shape": [4], "attributes": {"u": 1}}
