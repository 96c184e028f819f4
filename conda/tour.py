"""Write and read arrays in every format with every linked library, by the zcore that conda has installed."""
import os
import sys
import tempfile

import numpy as np

import zcore

assert zcore.__file__.startswith(sys.prefix + os.sep), f"another zcore is tested: {zcore.__file__}"
others = [folder for folder in sys.path if not folder.startswith(sys.prefix + os.sep)
          and os.path.exists(os.path.join(folder, "zcore", "__init__.py"))]
assert others == [], f"another zcore is seen: {others}"
found = zcore.show_config("dicts")
assert found["libraries"]["from"] == "system" and found["libraries"]["deflate"].startswith("libdeflate"), found
assert found["build"]["variant"] == "release", found

data = np.arange(600 * 400, dtype="<f4").reshape(600, 400)
blosc = [{"name": "blosc", "configuration": {"cname": name, "clevel": 5, "shuffle": "shuffle", "typesize": 4,
                                             "blocksize": 0}} for name in ("lz4", "zstd", "zlib", "blosclz")]
chains = [*blosc, {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
          {"name": "gzip", "configuration": {"level": 6}}]
with tempfile.TemporaryDirectory() as folder:
    for i, codec in enumerate(chains):
        a = zcore.create_array(f"{folder}/v3-{i}", data=data, chunks=(128, 128), compressors=[codec])
        assert np.array_equal(zcore.open(f"{folder}/v3-{i}")[5:599:7, ::-3], data[5:599:7, ::-3]), codec
        assert a.nbytes_stored() < data.nbytes, codec
    for zarr_format in (2, "zmeta"):
        zcore.create_array(f"{folder}/v{zarr_format}", data=data, chunks=(100, 50), zarr_format=zarr_format)
        assert np.array_equal(zcore.open(f"{folder}/v{zarr_format}")[...], data), zarr_format
    zcore.save(f"{folder}/a.zip", data)
    assert np.array_equal(zcore.load(f"{folder}/a.zip"), data)
print(f"zcore {zcore.__version__}: {len(chains)} chains of codecs, 4 formats, {found['libraries']}")
