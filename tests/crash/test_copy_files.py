"""Copies to files, on a disk that gets full, killed, and interrupted: there is the old file or the new one."""
import json

import pytest

from tests.full_disk import run_on_tmpfs

ENDINGS = (".npy", ".npz", ".asdf", ".h5", ".zip")
EXTRAS = {".asdf": "yaml", ".h5": "h5py"}

FULL = """
import errno, json, os, sys
import numpy as np
import zcore

name, step = "a" + sys.argv[1], int(sys.argv[2])
values = np.random.default_rng(3).integers(0, 2**60, (60, 1000))
source = zcore.create_array(zcore.MemoryStore(), data=values, chunks=(7, 100))
if name != "a.npy":
    group = zcore.group(zcore.MemoryStore())
    for i in range(3):
        group[f"g/{i}"] = values[20 * i:20 * i + 20]
    source = group
with open(name, "wb") as file:
    file.write(b"old")
done = {"full": 0, "copied": 0}
for n_bytes in range(0, 2 << 20, step):
    leave_free(n_bytes)
    try:
        zcore.copy(source, name, overwrite=True, chunks=(5, 200))
    except zcore.StoreError as exc:
        assert exc.errno == errno.ENOSPC, repr(exc)
        assert open(name, "rb").read() == b"old"
        done["full"] += 1
    else:
        path = {".npy": "", ".asdf": "g/1", ".npz": "g/1", ".h5": "g/1", ".zip": "g/1"}[sys.argv[1]]
        back = zcore.copy(name, zcore.MemoryStore(), path=path)
        assert np.array_equal(back[...], values if path == "" else values[20:40])
        done["copied"] += 1
        break
    assert set(os.listdir(".")) <= {".filler", name}, os.listdir(".")
print(json.dumps(done))
"""


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_leaves_the_old_file(ending):
    """Nothing crashes either, as HDF5 does when it cannot write all of a file that it closes."""
    check_full(ending, 150_000)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_disk_that_is_full_at_any_page_leaves_the_old_file(ending):
    check_full(ending, 4096)


def check_full(ending, step):
    pytest.importorskip(EXTRAS.get(ending, "numpy"))
    done = run_on_tmpfs(FULL, ending, step, kilobytes=4096, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["copied"] == 1 and found["full"] >= 480_000 // step, found
