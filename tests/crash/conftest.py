"""What the crash tests share: a fast directory, and processes that start together and end for certain."""
import os
import shutil
import tempfile

import pytest

import zcore.config

from .crew import Crew


@pytest.fixture
def place(tmp_path):
    """Path for a store, in memory where the system has such a file system: these tests are about order, not disks.

    With `ZCORE_TEST_DIRECTORY` it is there, on the file system that is to be tried (`tests/campaign`).
    """
    if given := os.environ.get("ZCORE_TEST_DIRECTORY"):
        yield tempfile.mkdtemp(dir=given) + "/array"
        return
    if not os.path.isdir("/dev/shm") or not os.access("/dev/shm", os.W_OK):
        yield str(tmp_path / "array")
        return
    base = tempfile.mkdtemp(dir="/dev/shm", prefix="zcore-crash-")
    os.chmod(base, 0o755)
    yield os.path.join(base, "array")
    shutil.rmtree(base)


@pytest.fixture(params=["on", "file"])
def lock_kind(request, monkeypatch):
    """How this process and those that it starts lock."""
    monkeypatch.setattr(zcore.config, "_lock", None)
    monkeypatch.setenv("ZCORE_LOCK", request.param)
    return request.param


@pytest.fixture
def crew():
    """Processes of this test; none of them outlives it."""
    crew = Crew()
    yield crew
    crew.kill()
