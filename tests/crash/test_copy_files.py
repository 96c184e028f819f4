"""Copies to files, on a disk that gets full, killed, and interrupted: there is the old file or the new one."""
import json
import subprocess
import sys

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
        zcore.copy(source, name, overwrite=True, chunks=(5, 200) if name in ("a.h5", "a.zip") else None)
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


KILLED = """
import os, random, signal, sys, time
import numpy as np
import zcore

ending, name, n_kills = sys.argv[1], "a" + sys.argv[1], int(sys.argv[3])
number = signal.SIGKILL if sys.argv[2] == "kill" else signal.SIGINT
os.chdir(sys.argv[4])
rng = random.Random(5)
source = zcore.create_array(zcore.MemoryStore(), data=np.random.default_rng(3).integers(0, 2**60, (300, 1000)),
                            chunks=(7, 100))
wanted = {"overwrite": True, "memory": "4 MB", "destination_path": ""}
PATH = {".npz": "arr_0", ".h5": "data", ".asdf": "data"}.get(ending, "")

def copied(values):
    zcore.copy(values, name, **wanted)

def found():
    return zcore.copy(name, zcore.MemoryStore(), path=PATH)[...]

copied(source)      # imports what a copy needs
start = time.perf_counter()
copied(source)
duration = time.perf_counter() - start
hits = n_old = 0
deadline = time.monotonic() + 200
while hits < n_kills or not n_old:
    assert time.monotonic() < deadline, f"{hits} copies ended early, {n_old} of them before they had replaced the file"
    copied(zcore.array(np.arange(3)))
    assert os.listdir(".") == [name], "the next copy has not removed what a killed one has left"
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    pid = os.fork()
    if pid == 0:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            copied(source)
            os._exit(0)
        except KeyboardInterrupt:
            os._exit(5)
    time.sleep(rng.uniform(0, 1.1 * duration))
    os.kill(pid, number)
    status = os.waitpid(pid, 0)[1]
    code = os.waitstatus_to_exitcode(status)
    assert code in ((0, -9) if number == signal.SIGKILL else (0, 5)), code
    hits += code != 0
    values = found()
    is_old = values.shape == (3,)
    assert code or not is_old, "a copy has ended, and the old file is there"
    n_old += is_old
    assert is_old or np.array_equal(values, source[...])
    left = set(os.listdir(".")) - {name}
    assert all(other.startswith(".__zc_tmp.") for other in left), left
"""


def check_kills(ending, how, n_kills, folder):
    pytest.importorskip(EXTRAS.get(ending, "numpy"))
    done = subprocess.run([sys.executable, "-c", KILLED, ending, how, str(n_kills), str(folder)], capture_output=True,
                          text=True, timeout=500)
    assert done.returncode == 0, done.stderr


@pytest.mark.thinned(2, "ending", "how")
@pytest.mark.parametrize("how", ["kill", "ctrl-c"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_copy_that_ends_early_leaves_the_old_file_or_the_new_one(ending, how, tmp_path):
    """Besides it there are temporary files at most, which begin with .__zc_tmp."""
    check_kills(ending, how, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "ctrl-c"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_sixty_copies_that_end_early(ending, how, tmp_path):
    check_kills(ending, how, 60, tmp_path)
