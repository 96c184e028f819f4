"""What creating an array in a group costs: system calls, counted by strace."""
import os
import re
import shutil
import subprocess
import sys

import pytest

import zcore

MARK = "/zcore-test-mark"
SCRIPT = f"""
import os, sys
import zcore

group = zcore.create_group(sys.argv[1], zarr_format=int(sys.argv[2]), path=sys.argv[3])
for i in range(3):
    group.create_array(str(i), shape=(9, 9), chunks=(3, 3), dtype="f4", attributes={{"i": i}})
os.path.lexists("{MARK}")
group.create_array("a", shape=(9, 9), chunks=(3, 3), dtype="f4", attributes={{"i": 1}})
os.path.lexists("{MARK}")
"""
# The group's documents: 6 before, and 3 after, of which one closes. The new directory: 12. The directory above: 4.
IN_ROOT = 25


@pytest.fixture
def n_calls(tmp_path):
    """Return a function that returns the lines of strace for the creation of an array in a group."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    log = tmp_path / "log"

    def count(zarr_format, path):
        base = tmp_path / "top" / "base"
        done = subprocess.run(
            [strace, "-o", log, sys.executable, "-W", "ignore", "-c", SCRIPT, base, str(zarr_format), path], text=True,
            capture_output=True, env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(zcore.__file__))})
        if done.returncode and "ptrace" in done.stderr:
            pytest.skip(f"strace is not permitted: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stderr[-2000:]
        lines = log.read_text().splitlines()
        first, last = [i for i, line in enumerate(lines) if MARK in line]
        # Python's memory and threads are not those of the creation.
        return [line for line in lines[first + 1:last] if not re.match(r"(mmap|munmap|brk|madvise|futex)\(", line)]

    return count


@pytest.mark.parametrize(("zarr_format", "path", "ceiling"), [
    (3, "", IN_ROOT),
    (3, "g/h", IN_ROOT + 2 * 7),     # 7 for each further group
    # The attributes are a document of their own, the copy of metadata too.
    (2, "", IN_ROOT + 8),
])
def test_an_array_in_a_group_costs_so_many_system_calls(n_calls, zarr_format, path, ceiling):
    calls = n_calls(zarr_format, path)
    assert 10 < len(calls) <= ceiling, "\n".join(calls)
    assert not [line for line in calls if line.startswith(("unlink", "rmdir"))], "on some disks, these are slow"
