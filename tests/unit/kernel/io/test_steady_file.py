"""A file whose writes never fail: what is told of the failure, and what is read after it."""
import errno
import os
import subprocess
import sys

import pytest

from zcore.kernel.io.steady_file import SteadyFile


def read(file, offset, n_bytes):
    out = bytearray(n_bytes)
    file.seek(offset)
    assert file.readinto(out) == n_bytes
    return bytes(out)


def write(file, offset, data):
    assert file.seek(offset) == offset and file.write(data) == len(data)


def test_it_is_a_file(tmp_path):
    file = SteadyFile(str(tmp_path / "a"))
    write(file, 3, b"abc")
    write(file, 10, b"")
    assert file.seek(0, 2) == 10 and file.tell() == 10
    assert read(file, 2, 9) == b"\0abc" + bytes(5)
    assert file.truncate(5) == 5 and file.seek(-1, 2) == 4
    file.flush()
    file.check()
    file.close()
    file.close()
    assert (tmp_path / "a").read_bytes() == b"\0\0\0ab"
    with pytest.raises(FileExistsError):
        SteadyFile(str(tmp_path / "a"))
    with pytest.raises(FileNotFoundError):
        SteadyFile(str(tmp_path / "no" / "a"))


LIMITED = """
import resource, sys
sys.path.insert(0, {folder!r})
from test_steady_file import SteadyFile, read, write, errno
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
file = SteadyFile({path!r})
write(file, 0, b"a" * 90)
file.check()
write(file, 80, b"b" * 40)       # the first half of it has its place
write(file, 0, b"c")
write(file, 200, b"d" * 10)
write(file, 205, b"e" * 3)
assert read(file, 0, 212) == b"c" + b"a" * 79 + b"b" * 40 + bytes(80) + b"d" * 5 + b"e" * 3 + b"d" * 2 + bytes(2)
assert read(file, 206, 3) == b"eed"
assert file.seek(0, 2) == 210 and file.truncate(300) == 300
write(file, 0, bytes(1 << 27))   # too much to keep
for end in (file.check, file.close, file.close):
    try:
        end()
    except OSError as exc:
        assert exc.errno == errno.EFBIG and exc.filename == {path!r}
    else:
        raise AssertionError
"""


def test_what_could_not_be_written_is_read_all_the_same(tmp_path):
    script = LIMITED.format(folder=os.path.dirname(__file__), path=str(tmp_path / "a"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_disk_is_full_from_the_beginning():
    if not os.path.exists("/dev/full"):
        pytest.skip("the system has no device that is always full")
    done = subprocess.run([sys.executable, "-c", """
import os
from zcore.kernel.io.steady_file import SteadyFile
open_ = os.open
os.open = lambda path, flags, mode: open_("/dev/full", os.O_RDWR)
file = SteadyFile("a")
file.write(b"abc")
file.seek(1)
out = bytearray(2)
file.readinto(out)
assert out == b"bc"
try:
    file.close()
except OSError as exc:
    print(exc.errno)
"""], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == str(errno.ENOSPC), done.stderr
