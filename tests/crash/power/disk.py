"""A disk whose power is cut: everything that reached it before the cut is there afterwards, and nothing else.

`recorded` runs a deed on a file system whose device writes a log (`block_log`). `images` makes of the log what a power
cut at each write leaves. A disk writes down what it has been given in any order, until the system asks it to flush:
so writes since the last flush are left out at random as well.
"""
from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tests.crash.power import block_log
from tests.crash.power.block_log import WRITE, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Of each file system: how it is made, its smallest size, and how it is mounted: names reach the disk once a second.
_SYSTEMS = {
    "ext4": (["mkfs.ext4", "-q", "-b", "4096"], 48 << 20, "commit=1"),
    "xfs": (["mkfs.xfs", "-q"], 300 << 20, "nouuid"),
    "btrfs": (["mkfs.btrfs", "-q", "--mixed", "-m", "single"], 128 << 20, "commit=1"),
}
SYSTEMS = tuple(_SYSTEMS)


@cache
def missing(system: str) -> str | None:
    """Return what this machine lacks to try a file system, or None. It is tried once."""
    make, size, _ = _SYSTEMS[system]
    make = make[0]
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "only root on Linux mounts file systems"
    for program in (make, "losetup", "mount", "umount"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    if not os.access("/dev/fuse", os.W_OK) or not os.access("/dev/loop-control", os.W_OK):
        return "there is no /dev/fuse, or no /dev/loop-control"
    with open("/proc/filesystems") as names:
        if system not in names.read().split():
            return f"the kernel has no {system}"
    try:
        with tempfile.TemporaryDirectory(dir=_memory()) as work:
            image = os.path.join(work, "image")
            with open(image, "wb") as file:
                file.truncate(size)
            subprocess.run(_SYSTEMS[system][0] + [image], check=True, capture_output=True)
            with _logging(image, os.path.join(work, "log")) as disk, mounted(system, disk):
                pass
    except (OSError, subprocess.SubprocessError, AssertionError) as exc:
        return f"this process cannot mount {system} from a loop device: {exc}"
    return None


class Record(NamedTuple):
    """What a disk was before a deed (`image`, a path), what was written since, and when the deed began and was done."""

    system: str
    image: str
    events: list[Event]
    begun: float
    done: float


@contextlib.contextmanager
def _names_soon():
    """Return a context manager in which XFS writes down its journal each second, as the others are told to."""
    path = "/proc/sys/fs/xfs/xfssyncd_centisecs"
    if not os.path.exists(path):
        yield
        return
    with open(path) as file:
        before = file.read()
    try:
        with open(path, "w") as file:
            file.write("100")
        yield
    finally:
        with open(path, "w") as file:
            file.write(before)


@contextlib.contextmanager
def recorded(system: str, before: Callable[[str], None], deed: Callable[[str], None],
             seconds: float, data_too: bool = False) -> Iterator[Record]:
    """Return a context manager of the `Record` of a deed.

    Parameters
    ----------
    system : str
        "ext4", "xfs" or "btrfs".
    before, deed : callable
        Called with a folder on the disk, each in a process of its own. What `before` leaves is on the disk whole.
    seconds : float
        How long the disk is left alone after the deed.
    data_too : bool
        Let data reach the disk then that nobody asked for, and leave it alone for as long again. The system would do
        that after half a minute.
    """
    make, size, _ = _SYSTEMS[system]
    with tempfile.TemporaryDirectory(dir=_memory()) as work:
        image, log, old = (os.path.join(work, name) for name in ("image", "log", "old"))
        with open(image, "wb") as file:
            file.truncate(size)
        subprocess.run([*make, image], check=True)
        # XFS writes down a journal of 64 MB of zeros, which each image of a cut would have.
        subprocess.run(["fallocate", "--dig-holes", image], check=True)
        with mounted(system, image) as folder:
            in_child(before, folder)
        _copy(image, old)
        with _names_soon(), _logging(image, log) as disk, mounted(system, disk) as folder:
            begun = time.time()
            in_child(deed, folder)
            done = time.time()
            time.sleep(seconds)
            if data_too:
                in_child(_write_back, folder)
                time.sleep(seconds)
        yield Record(system, old, block_log.events_of(log), begun, done)


def images(record: Record, seed: int, n_reordered: int, step: int = 1) -> Iterator[tuple[str, bool, str]]:
    """Return an iterator of what cuts leave: an image, whether the deed was done before the cut, and which cut it is.

    The first is before the deed, the last one when all is written.

    Parameters
    ----------
    n_reordered : int
        How many cuts to make between each two flushes in which some of the writes between them are missing.
    step : int
        A cut follows each `step`-th write only.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=_memory()) as work:
        flushed, cut = os.path.join(work, "flushed"), os.path.join(work, "cut")
        _copy(record.image, flushed)
        pending: list[Event] = []

        def left(kept):
            _copy(flushed, cut)
            _apply(cut, kept)
            return cut

        yield left([]), False, "before the deed"
        for i, event in enumerate(record.events):
            is_after, is_done = event.seconds >= record.begun, event.seconds > record.done
            if event.what == WRITE:
                pending.append(event)
                if is_after and i % step == 0:
                    yield left(pending), is_done, f"after write {i}"
            elif pending:
                for n in range(n_reordered if is_after and len(pending) > 1 else 0):
                    share = chance.random()
                    kept = [write for write in pending if chance.random() < share]
                    yield left(kept), is_done, f"before flush {i}, choice {n}"
                _apply(flushed, pending)
                pending = []
        yield left(pending), True, "at the end"


@contextlib.contextmanager
def mounted(system: str, image: str) -> Iterator[str]:
    """Return a context manager of the folder where the file system of an image is."""
    options = _SYSTEMS[system][2]
    folder = tempfile.mkdtemp(dir=_memory())
    device = subprocess.run(["losetup", "--direct-io=on", "--find", "--show", image], check=True, capture_output=True,
                            text=True).stdout.strip()
    try:
        subprocess.run(["mount", "-t", system, "-o", options, device, folder], check=True)
        try:
            yield folder
        finally:
            _unmount(folder)
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        os.rmdir(folder)


@contextlib.contextmanager
def _logging(image, log):
    """Return a context manager of the path of a file that has the bytes of an image, and whose writes go to a log."""
    folder = tempfile.mkdtemp(dir=_memory())
    server = subprocess.Popen([sys.executable, block_log.__file__, image, log, folder], stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"mounted\n"
        try:
            yield os.path.join(folder, "disk")
        finally:
            _unmount(folder)
    finally:
        server.wait(60)
        server.stdout.close()
        os.rmdir(folder)


def in_child(function: Callable[[str], object], folder: str, *meanwhile: Callable[[], object]) -> None:
    """Call a function in a child process, so that nothing of it stays open.

    `meanwhile` is called here. Raises : AssertionError, if the function fails.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function(folder)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    for do in meanwhile:
        do()
    assert os.waitpid(child, 0)[1] == 0, "the child failed"


def _write_back(folder):
    """Have the data of all files written, without their names and with no flush, as the system does after a time."""
    for inner, _, names in os.walk(folder):
        for name in names:
            fd = os.open(os.path.join(inner, name), os.O_RDONLY | os.O_NOFOLLOW)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def _unmount(folder):
    for _ in range(100):
        if subprocess.run(["umount", folder], capture_output=True).returncode == 0:
            return
        time.sleep(0.05)     # a process that has just ended may keep it for a moment
    subprocess.run(["umount", folder], check=True)


def _apply(image, events):
    with open(image, "r+b") as file:
        for event in events:
            file.seek(event.offset)
            file.write(event.data)


def _copy(image, new):
    """Copy an image without its holes."""
    with open(image, "rb") as source, open(new, "wb") as target:
        size = os.fstat(source.fileno()).st_size
        target.truncate(size)
        offset = 0
        while offset < size:
            try:
                offset = os.lseek(source.fileno(), offset, os.SEEK_DATA)
            except OSError:
                return
            end = os.lseek(source.fileno(), offset, os.SEEK_HOLE)
            while offset < end:
                offset += os.copy_file_range(source.fileno(), target.fileno(), end - offset, offset, offset)


def _memory():
    """Return a folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
