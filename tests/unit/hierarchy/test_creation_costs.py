"""What creating an array in a group costs: system calls, counted by strace."""
import itertools
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
# The group's documents: 6 before, and 2 after, of which one closes. The new directory: 14.
IN_ROOT = 22


DEEP = f"""
import os, sys
import zcore

os.path.lexists("{MARK}")
zcore.create_array(sys.argv[1], zarr_format=int(sys.argv[2]), name=sys.argv[3] + "/a", shape=(9, 9), dtype="f4")
os.path.lexists("{MARK}")
zcore.create_array(sys.argv[1], zarr_format=int(sys.argv[2]), name=sys.argv[3] + "/b", shape=(9, 9), dtype="f4")
os.path.lexists("{MARK}")
"""


@pytest.fixture
def parts(tmp_path):
    """Return a function that returns the lines of strace between the marks of a script."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("needs strace")
    log = tmp_path / "log"

    def count(script, zarr_format, path):
        base = tmp_path / "top" / "base"
        done = subprocess.run(
            [strace, "-o", log, sys.executable, "-W", "ignore", "-c", script, base, str(zarr_format), path], text=True,
            capture_output=True, env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(zcore.__file__))})
        if done.returncode and "ptrace" in done.stderr:
            pytest.skip(f"strace is not permitted: {done.stderr[-200:]}")
        assert done.returncode == 0, done.stderr[-2000:]
        lines = log.read_text().splitlines()
        shutil.rmtree(base)
        marks = [i for i, line in enumerate(lines) if MARK in line]
        # Python's memory and threads are not those of the creation.
        return [[line for line in lines[first + 1:last] if not re.match(r"(mmap|munmap|brk|madvise|futex)\(", line)]
                for first, last in itertools.pairwise(marks)]

    return count


@pytest.mark.parametrize(("zarr_format", "path", "ceiling"), [
    (3, "", IN_ROOT),
    (3, "g/h", IN_ROOT + 2 * 6),     # 6 for each further group
    # The attributes are a document of their own, the copy of metadata too.
    (2, "", IN_ROOT + 7),
])
def test_an_array_in_a_group_costs_so_many_system_calls(parts, zarr_format, path, ceiling):
    [calls] = parts(SCRIPT, zarr_format, path)
    assert 10 < len(calls) <= ceiling, "\n".join(calls)
    assert not [line for line in calls if line.startswith(("unlink", "rmdir"))], "on some disks, these are slow"


@pytest.mark.parametrize("zarr_format", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_the_cost_of_a_path_grows_as_its_depth(parts, zarr_format):
    """Each missing group was looked for from below, and each look went up to what is there: the square of the depth."""
    depths = 20, 40, 80
    made, beside = zip(*[map(len, parts(DEEP, zarr_format, "/".join("g" * depth))) for depth in depths], strict=True)
    for n_calls, each in ((made, 70), (beside, 32)):
        first, second, third = n_calls
        assert abs((third - second) - 2 * (second - first)) <= 0.05 * third, n_calls
        assert third - second <= each * 40, n_calls
