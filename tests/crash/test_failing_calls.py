"""Each of the system's calls fails once: what comes is an error of zcore that says where, and nothing stays open."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import zcore

HERE = Path(__file__).parent
VERBS = ["read", "read_raw", "write", "merge", "fill", "fsync", "read_shards", "write_shards", "shrink", "grow",
         "append", "attributes", "create", "create_beside", "overwrite", "delete", "move", "members", "consolidate",
         "verify", "copy", "read_zip", "write_zip", "read_asdf", "write_asdf"]
QUICK = ["read_raw", "merge", "fsync", "create_beside", "read_zip", "read_asdf"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Path of the library that is preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler")
    path = tmp_path_factory.mktemp("failing") / "failing.so"
    done = subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, HERE / "failing.c", "-ldl"],
                          capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the C compiler does not make the library: {done.stderr[-200:]}")
    return path


def run(library, place, kind, names, timeout=600, lock="on"):
    """Return what `failing.py` prints."""
    root = os.path.dirname(os.path.dirname(zcore.__file__))
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": root, "ZCORE_LOCK": lock}
    done = subprocess.run([sys.executable, "-W", "ignore", HERE / "failing.py", library, place, kind, *names],
                          capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("lock", ["on", "file"])
def test_a_call_that_fails_is_told_with_its_place(library, place, lock):
    found, n = run(library, place, "EIO", QUICK, lock=lock)
    assert found == [] and n > 5


@pytest.mark.slow
@pytest.mark.parametrize("lock", ["on", "file"])
@pytest.mark.parametrize("kind", ["EIO", "EACCES", "ESTALE", "EINTR", "ENOSPC"])
def test_each_call_of_each_verb_may_fail(library, place, kind, lock):
    found, n = run(library, place, kind, VERBS, lock=lock)
    assert found == [] and n > 5


@pytest.mark.parametrize("lock", ["on", "file"])
def test_a_call_that_a_signal_has_ended_is_made_again(library, place, lock):
    found, n = run(library, place, "again", ["fsync", "merge"], lock=lock)
    assert found == [] and n > 5


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "lz4hc", "zlib", "zstd", "gzip", "only zstd"])
def test_memory_that_is_not_there(library, place, cname):
    """The libraries of the kernel are kept from using what they did not get, and say of it that it is missing."""
    shuffles = ["shuffle", "bitshuffle", "noshuffle"] if cname[-1] != "p" and " " not in cname else ["noshuffle"]
    found, n = run(library, place, "memory", [
        f"{verb},{cname},{shuffle},{threads}"
        for verb in ("read", "write") for shuffle in shuffles for threads in (1, 4)])
    assert found == [] and n > 0


def test_reads_and_writes_that_move_a_byte_at_a_time(library, place):
    found, n = run(library, place, "short", VERBS)
    assert found == [] and n > 0
