"""Files of references in Parquet with bytes changed: columns or an error of zcore, in bounded memory, never a crash."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import zcore

pytest.importorskip("pyarrow.parquet")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zcore.__file__).parents[1])}

# The file is changed in a process of its own, as pyarrow is not zcore's to answer for.
PROGRAM = """
import random, sys
import zcore
from zcore.kernel.refs.table import ReferenceTable
from zcore.stores.reference.parquet import read_records

seed, n, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
chance = random.Random(seed)
whole = open(path, "rb").read()
read = wrong = 0
for _ in range(n):
    raw = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        kind, at = chance.randrange(4), chance.randrange(len(raw))
        if chance.random() < 0.5:
            at = len(raw) - 1 - chance.randrange(min(len(raw), 900))     # the footer, which everything hangs on
        if kind == 0:
            raw[at] = chance.randrange(256)
        elif kind == 1:
            raw[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            raw[at:at + 4] = chance.choice([b"\\xff" * 4, bytes(4), b"\\xff\\xff\\xff\\x7f"])
        else:
            del raw[at:at + chance.randint(1, 20)]
    store = zcore.MemoryStore({"x/refs.0.parq": bytes(raw)})
    try:
        records = read_records(store, "x/refs.0.parq", 100, 60, ReferenceTable().numbers_of)
        assert len(records) <= 60
        read += 1
    except zcore.ZcoreError as error:
        assert "refs.0.parq" in str(error)
        wrong += 1
print(read, wrong)
"""


def write(path, **options):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({
        "path": ["some/file.bin", None, "other.bin"] * 20, "offset": list(range(0, 6000, 100)), "size": [100] * 60,
        "raw": [None, b"raw bytes", None] * 20})
    pyarrow.parquet.write_table(table, path, **options)


def changed(tmp_path, seed, n, **options):
    write(tmp_path / "refs.0.parq", **options)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(seed), str(n), str(tmp_path / "refs.0.parq")],
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return map(int, done.stdout.split())


@pytest.mark.parametrize("options", [
    {"compression": "zstd", "write_page_checksum": True},
    {"compression": "none", "row_group_size": 25, "store_schema": False},
])
def test_changed_bytes(tmp_path, options):
    """RF-PQ-01, RF-PQ-04, RF-PQ-09"""
    read, wrong = changed(tmp_path, 1, 150, **options)
    assert wrong > 50 and read + wrong == 150


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes_often(tmp_path, seed):
    """RF-PQ-01, RF-PQ-04, RF-PQ-09"""
    for options in ({"compression": "zstd", "use_dictionary": False}, {"compression": "none"},
                    {"compression": "snappy"}):
        read, wrong = changed(tmp_path, seed, 3000, **options)
        assert wrong > 500


def test_record_sizes_that_want_time_or_memory(tmp_path):
    """RF-PQ-03, RF-PQ-08: of a file for each of 10**12 chunks none is looked for unless it is asked for."""
    write(tmp_path / "refs.0.parq")
    refs = tmp_path / "refs.parq"
    (refs / "x").mkdir(parents=True)
    (tmp_path / "refs.0.parq").rename(refs / "x/refs.0.parq")
    for size in (100, 2**62, 2**63 - 1):
        (refs / ".zmetadata").write_text(json.dumps({"record_size": size, "metadata": {"x/.zarray": {
            "zarr_format": 2, "shape": [2**62], "chunks": [1], "dtype": "|u1", "compressor": None, "filters": None,
            "fill_value": 7, "order": "C"}}}))
        store = zcore.ReferenceStore(refs)
        array = zcore.open(store, path="x")
        assert array[10**12] == array[2**62 - 1] == 7 and store.get(f"x/{2**62 - 1}") is None
        assert sum(key.startswith("x/") for key in store.list()) == 61 and store.get("x/1") == b"raw bytes"
