"""What the system must not do, and does: a file that has two identities. And what two threads must not do to a file."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BEGIN = """
import ctypes, json, os, sys
import numpy as np
import zcore
library, place = sys.argv[1:]
odd = ctypes.CDLL(library)
value = lambda name: ctypes.c_long.in_dll(odd, name)
"""
# Each verb ends, by an error or without one.
TWO_IDENTITIES = BEGIN + """
group = zcore.create_group(place + "/g")
array = group.create_array("a", shape=8, chunks=2, dtype="i4")
array[...] = 7
other = zcore.open(place + "/g/a", mode="r+", lock=None)
verbs = {
    "read": lambda: array[...].sum(),
    "cover": lambda: array.__setitem__(slice(0, 2), 5),
    "merge": lambda: array.__setitem__(3, 5),
    "without locks": lambda: other.__setitem__(5, 5),
    "append": lambda: array.append([1]),
    "resize": lambda: array.resize(10),
    "attribute": lambda: array.attrs.__setitem__("b", 5),
    "open": lambda: zcore.open(place + "/g/a")[0],
    "create": lambda: group.create_array("b", shape=4, chunks=2, dtype="i4"),
    "replace": lambda: group.create_array("b", shape=4, chunks=2, dtype="i4", overwrite=True),
    "consolidate": lambda: zcore.consolidate_metadata(place + "/g"),
    "move": lambda: group.move("b", "c"),
    "copy": lambda: zcore.copy(place + "/g", place + "/copy"),
    "zip": lambda: zcore.copy(place + "/g", place + "/copy.zip"),
    "delete": lambda: group.__delitem__("a"),
}
value("moved").value = 1
told = {}
for name, verb in verbs.items():
    try:
        verb()
        told[name] = ""
    except zcore.ZcoreError as error:
        told[name] = f"{type(error).__name__}: {error}"
value("moved").value = 0
print(json.dumps(told))
"""
TWO_CLOSERS = BEGIN + """
import threading
from zcore import workers
array = zcore.create_array(place, shape=(1024, 1024), chunks=(64, 64), shards=(1024, 1024), dtype="i4",
                           compressors={"name": "zstd", "configuration": {"level": 1, "checksum": True}})
array[...] = np.arange(1 << 20).reshape(1024, 1024)
shard = place + "/c/0/0"
content = bytearray(open(shard, "rb").read())
content[: len(content) // 2] = bytes(len(content) // 2)
open(shard, "wb").write(content)
def run(work, n_threads, cancel):
    # The first one meets the damage and leaves the shard to be closed by the last one that leaves the plan.
    first = threading.Thread(target=work, args=(False,))
    value("watched").value = 1
    first.start()
    while value("n_closed").value == 0:
        pass
    work(True)
    first.join()
    value("watched").value = 0
workers.run = run
try:
    zcore.open(place, threads=2)[...]
except zcore.ChunkError:
    print(json.dumps([value("n_closed").value, value("n_bad").value]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Path of the library that is preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler")
    path = tmp_path_factory.mktemp("odd") / "odd_calls.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, HERE / "odd_calls.c", "-ldl"], check=True)
    return path


def told(library, place, code):
    """Return what a process with the library prints."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, library, place], capture_output=True, text=True,
                          timeout=120, env={**os.environ, "LD_PRELOAD": str(library)})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_each_verb_ends_where_a_file_has_two_identities(library, place):
    found = told(library, place, TWO_IDENTITIES)
    for verb in ("cover", "merge", "append", "resize", "attribute"):
        assert found[verb].startswith("LockError: ") and "different identities" in found[verb]
    assert not found["without locks"] and not found["create"]


def test_two_threads_that_leave_a_plan_close_no_file_twice(library, place):
    assert told(library, place, TWO_CLOSERS) == [1, 0]
