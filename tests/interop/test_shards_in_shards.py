"""Shards in shards, and shards with codecs around them: zcore, zarr-python, zarrs and tensorstore read each other's.

No peer takes all of them. What one refuses by an error is no case of it; what it takes has to come back right.
"""
import json

import numpy as np
import pytest

import zcore

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def shards(chunk_shape, codecs, location="end"):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": chunk_shape, "codecs": codecs, "index_codecs": [LITTLE, CRC], "index_location": location}}


CASES = {
    "two levels": [shards([8, 6], [shards([4, 3], [LITTLE, CRC])])],
    "three levels": [shards([8, 6], [shards([4, 6], [shards([2, 3], [LITTLE, ZSTD])], "start")])],
    "compressed": [shards([8, 6], [LITTLE, ZSTD]), ZSTD, CRC],
    "transposed": [TRANSPOSE, shards([6, 8], [LITTLE, CRC])],
    "compressed within": [shards([8, 6], [shards([4, 3], [LITTLE]), ZSTD])],
    "transposed within": [shards([8, 6], [TRANSPOSE, shards([3, 4], [TRANSPOSE, LITTLE])])],
}
# Who takes what: zarr-python compares an inner chunk with the shard without regard to a transpose before it, and
# tensorstore has nothing behind a shard.
TAKEN = {
    "zarr": CASES.keys() - {"transposed"},
    "zarrs": CASES.keys() - {"transposed"},
    "tensorstore": CASES.keys() - {"compressed", "compressed within"},
}


class Peer:
    """An array as a peer has it: `read` and `write` of a part."""

    def __init__(self, name, path):
        self.is_tensorstore = name == "tensorstore"
        if self.is_tensorstore:
            tensorstore = pytest.importorskip("tensorstore")
            place = {"driver": "file", "path": str(path)}
            self.array = tensorstore.open({"driver": "zarr3", "kvstore": place}).result()
            return
        zarr = pytest.importorskip("zarr", minversion="3")
        pipeline = "zarr.core.codec_pipeline.BatchedCodecPipeline"
        if name == "zarrs":
            pytest.importorskip("zarrs")
            pipeline = "zarrs.ZarrsCodecPipeline"
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            self.array = zarr.open_array(path, mode="r+")

    def read(self):
        return self.array.read().result() if self.is_tensorstore else self.array[...]

    def write(self, part, values):
        if self.is_tensorstore:
            self.array[part].write(values).result()
        else:
            self.array[part] = values


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", TAKEN)
def test_each_reads_what_the_other_writes(tmp_path, name, case):
    """V3-SHARD-03, V3-SHARD-13"""
    if case not in TAKEN[name]:
        pytest.skip(f"{name} does not take shards that are {case}")
    (tmp_path / "zarr.json").write_text(json.dumps({
        "zarr_format": 3, "node_type": "array", "shape": [40, 30], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [16, 12]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 7,
        "codecs": CASES[case], "attributes": {}}))
    ours, peer = zcore.open(tmp_path, mode="r+"), Peer(name, tmp_path)
    model = np.arange(1200, dtype="<i4").reshape(40, 30)
    model[8:16, 6:12] = 7
    for factor, write in enumerate((ours.__setitem__, peer.write), 1):
        write(np.s_[0:40, 0:30], model)
        model[3:21, 5:17] = factor * np.arange(18)[:, None]
        write(np.s_[3:21, 5:17], model[3:21, 5:17])
        np.testing.assert_array_equal(ours[...], model)
        np.testing.assert_array_equal(peer.read(), model)
        np.testing.assert_array_equal(ours[2:30:3, ::-2], model[2:30:3, ::-2])
