"""Arrays of reference sets: the compiled code and Python read the same values, or fail with the same error."""
import base64
import json
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.both_ways import brought
from tests.examples import examples


def sharded(chunks, *codecs, location="end", inner=None):
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunks, "codecs": [inner or little, *codecs], "index_codecs": [little, {"name": "crc32c"}],
        "index_location": location}}


GZIP = {"name": "gzip", "configuration": {"level": 1}}
CODECS = {
    2: [{"compressor": None}, {"compressor": {"id": "zlib", "level": 1}}, {"compressor": {"id": "zstd", "level": 1}},
        {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}},
        {"compressor": {"id": "gzip", "level": 1}}, {"compressor": None, "filters": [{"id": "crc32"}]}],
    3: [[], [{"name": "zstd", "configuration": {"level": 1, "checksum": True}}], [{"name": "crc32c"}],
        [{"name": "gzip", "configuration": {"level": 1}}],
        [{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 3, "shuffle": "bitshuffle", "typesize": 2,
                                             "blocksize": 0}}, {"name": "crc32c"}],
        [sharded([2, 3])], [sharded([2, 1], {"name": "crc32c"}, location="start")], [sharded([1, 3], GZIP), GZIP],
        [sharded([2, 3], inner=sharded([1, 1]))], [sharded([4, 1], inner=sharded([2, 1], location="start")), GZIP]]}


def metadata_of(version, codecs, order, dtype):
    if version == 2:
        return ".zarray", {"zarr_format": 2, "shape": [11, 7], "chunks": [4, 3], "dtype": f"{order}{dtype}",
                           "fill_value": 3, "order": "C", "filters": None, **codecs}
    endian = {"name": "bytes", "configuration": {"endian": {"<": "little", ">": "big"}[order]}}
    is_sharded = codecs != [] and codecs[0]["name"] == "sharding_indexed"
    return "zarr.json", {
        "zarr_format": 3, "node_type": "array", "shape": [11, 7], "data_type": {"u2": "uint16", "f4": "float32"}[dtype],
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}}, "fill_value": 3,
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}}, "codecs": [
            *([] if is_sharded else [endian]), *codecs]}


rows = st.slices(11) | st.integers(0, 10) | st.lists(st.integers(0, 10), min_size=1, max_size=5)
selections = st.just(...) | st.tuples(rows, st.slices(7))
# What becomes of a chunk: where it lies, and what is wrong with it.
sound = st.sampled_from(["inline", "whole", "part", "missing"])
faulty = st.sampled_from(["object", "empty", "short target", "no target", "outside", "cut", "longer", "changed",
                          "garbage", "far", "huge", "folder"])


@examples(250)
@given(data=st.data())
def test_compiled_and_python_read_the_same(data):
    """RF-STO-03, RF-URL-05, RF-URL-06, RF-URL-07"""
    version = data.draw(st.sampled_from([2, 3]))
    codecs = data.draw(st.sampled_from(CODECS[version]))
    name, metadata = metadata_of(version, codecs, *data.draw(st.tuples(st.sampled_from("<>"),
                                                                       st.sampled_from(["u2", "f4"]))))
    values = np.random.default_rng(1).integers(0, 9, (11, 7))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        memory = zcore.MemoryStore()
        memory.set(name, json.dumps(metadata).encode())
        zcore.open(memory, mode="r+")[...] = values
        refs = {name: metadata}
        body = b"head"
        faults = data.draw(st.just(set()) | st.integers(0, 8).map(lambda i: {i}) | st.sets(st.integers(0, 8)))
        for i, key in enumerate(f"{i}.{j}" for i in range(3) for j in range(3)):
            chunk = memory.get(key)
            kind = data.draw(faulty if i in faults else sound)
            at, n = len(body), len(chunk)
            if kind in ("changed", "garbage"):
                place = data.draw(st.integers(0, n - 1))
                chunk = (chunk[:place] + bytes([chunk[place] ^ 1 << data.draw(st.integers(0, 7))]) + chunk[place + 1:]
                         if kind == "changed" else data.draw(st.binary(max_size=2 * n)))
                n = len(chunk)
            body += chunk
            (folder / f"{i}.bin").write_bytes(chunk)
            reference = {
                "inline": "base64:" + base64.b64encode(chunk).decode(), "whole": [f"{i}.bin"], "empty": data.draw(
                    st.sampled_from(["", ["all.bin", at, 0], ["gone.bin", 0, 0]])), "object": {"a": 1},
                "short target": [f"{i}.bin", 1, n], "no target": ["gone.bin", at, n], "outside": ["/etc/passwd", 0, n],
                "cut": ["all.bin", at, data.draw(st.integers(0, n))], "longer": ["all.bin", at, n + 1],
                "far": ["all.bin", 2**62, n], "huge": ["all.bin", at, 2**62], "folder": [".", 0, n],
            }.get(kind, ["all.bin", at, n])
            if kind != "missing":
                refs[key] = reference
        (folder / "all.bin").write_bytes(body)
        (folder / "refs.json").write_text(json.dumps(refs))
        selection = data.draw(selections)
        options = {"threads": data.draw(st.sampled_from([1, 3])), "strict": data.draw(st.booleans()),
                   "missing": data.draw(st.sampled_from(["fill", "fill", "raise"]))}
        found = []
        for cls in (zcore.ReferenceStore, brought(zcore.ReferenceStore)):
            array = zcore.open(cls(str(folder / "refs.json")), **options)
            try:
                found.append(array[selection])
            except zcore.ZcoreError as exc:
                found.append((type(exc), str(exc)))
        native, other = found
        if isinstance(native, tuple) or isinstance(other, tuple):
            # Of several damaged chunks another one may be the first to be told of: those that are left to Python are
            # read last.
            assert type(native) is type(other), found
            assert len(faults) + (options["missing"] == "raise") > 1 or native == other
        else:
            np.testing.assert_array_equal(native, other)
            if not faults and options["missing"] == "fill":
                expected = values.copy()
                for i in range(3):
                    for j in range(3):
                        if f"{i}.{j}" not in refs:
                            expected[4 * i:4 * i + 4, 3 * j:3 * j + 3] = 3
                np.testing.assert_array_equal(native, expected[selection])
