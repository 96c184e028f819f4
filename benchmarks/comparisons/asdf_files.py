"""ASDF files read and written by zcore and by the asdf package, and what the machine could do at best.

`CASES` is the table: what is done, how much faster zcore is to be, and how each library does it. Both read the same
file, which asdf has written; asdf reads into memory of its own, as zcore does, and neither compares checksums unless
the case says so. Libraries take turns, the first round is not counted, and a wrong answer has no time.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import zcore
from benchmarks.harness import children
from benchmarks.harness.timing import timed

SIZE = 8192                    # of the image, each way: 256 MiB of float32
PACKED_SIZE = 3072             # of the images that are compressed
N_BLOCKS = 1000
_MEMORY = """
import sys
import numpy as np
from benchmarks.harness.memory import peak_of
from benchmarks.comparisons.asdf_files import LIBRARIES
library, path = LIBRARIES[sys.argv[1]], sys.argv[2]
library.read_all(path)  # what is imported by the first call is no memory of the second
nbytes, result = peak_of(lambda: library.read_all(path))
print(nbytes - result.nbytes)
"""


def _middle(image):
    start = image.shape[0] // 2
    return slice(start, start + 100), slice(start, start + 100)


class Zcore:
    """zcore's way."""

    @staticmethod
    def open(path):
        """Open, and close again."""
        zcore.asdf.open(path).close()

    @staticmethod
    def tree(path):
        """Open, and have the tree."""
        with zcore.asdf.open(path) as file:
            return len(file.tree)

    @staticmethod
    def elements(path):
        """Read the 100 elements of one array."""
        with zcore.asdf.open(path) as file:
            return file.tree["array 0"].read()

    @staticmethod
    def read_all(path, verify=False):
        """Read the only array."""
        with zcore.asdf.open(path, verify=verify) as file:
            return file.tree["image"].read()

    @staticmethod
    def verify_all(path):
        """Read the only array, and compare its checksum."""
        return Zcore.read_all(path, verify=True)

    @staticmethod
    def window(path):
        """Read 100 x 100 elements."""
        image = zcore.open(path)["image"]
        return image[_middle(image)]

    @staticmethod
    def write(path, image, compression):
        """Write one array."""
        zcore.asdf.write(path, {"image": image}, compression=compression)


class Peer:
    """The asdf package's way."""

    @staticmethod
    def open(path):
        """Open, and close again."""
        import asdf

        asdf.open(path).close()

    @staticmethod
    def tree(path):
        """Open, and have the tree."""
        import asdf

        with asdf.open(path) as file:
            return len(file.tree)

    @staticmethod
    def elements(path):
        """Read the 100 elements of one array."""
        import asdf

        with asdf.open(path, memmap=False) as file:
            return np.array(file["array 0"])

    @staticmethod
    def read_all(path, verify=False):
        """Read the only array."""
        import asdf

        with asdf.open(path, memmap=False, validate_checksums=verify) as file:
            return np.asarray(file["image"])

    @staticmethod
    def verify_all(path):
        """Read the only array, and compare its checksum."""
        return Peer.read_all(path, verify=True)

    @staticmethod
    def window(path):
        """Read 100 x 100 elements."""
        import asdf

        with asdf.open(path, memmap=False) as file:
            return np.array(file["image"][_middle(file["image"])])

    @staticmethod
    def write(path, image, compression):
        """Write one array."""
        import asdf

        asdf.AsdfFile({"image": image}).write_to(path, all_array_compression=compression)


LIBRARIES = {"zcore": Zcore, "asdf": Peer}


@dataclass(frozen=True)
class Case:
    """What is done, with which file, and how many times as fast as asdf it is to be."""

    name: str
    act: str
    file: str
    goal: float


CASES = (
    Case("open, 1 block", "open", "one", 20), Case("open, 1000 blocks", "open", "many", 20),
    Case("tree, 1 block", "tree", "one", 6), Case("tree, 1000 blocks", "tree", "many", 6),
    Case("100 elements, 1 block", "elements", "one", 6), Case("100 elements, 1000 blocks", "elements", "many", 6),
    Case("read, raw", "read_all", "raw", 1.4), Case("read and verify, raw", "verify_all", "raw", 1),
    Case("100 x 100 window, raw", "window", "raw", 20),
    Case("read, zlib", "read_all", "zlib", 1.6), Case("read, lz4", "read_all", "lz4", 1.6),
    Case("write, raw", "write", "raw", 1), Case("write, zlib", "write", "zlib", 1),
    Case("write, lz4", "write", "lz4", 1),
)


@dataclass
class Timing:
    """Seconds of each round by library, or why there are none."""

    case: Case
    seconds: dict = field(default_factory=dict)
    failed: dict = field(default_factory=dict)


def measure(repeats=7, quick=False):
    """Return (list of `Timing`, dict of (library, file) to bytes beyond the result, dict of module to import seconds).

    Parameters
    ----------
    repeats : int
    quick : bool
        Small files and one repeat, for checks of the harness; times mean nothing, and memory is not looked at.
    """
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="zcore-benchmarks-", dir=memory) as top:
        images = _write_files(top, quick)
        timings = [_measure_case(top, case, images, 1 if quick else repeats) for case in CASES]
        if quick:
            return timings, {}, {}
        timings.append(_best_read(top, repeats))
        beyond = {(library, name): _memory_of(library, os.path.join(top, f"{name}.asdf"))
                  for name in ("raw", "zlib", "lz4") for library in LIBRARIES}
    imports = {name: min(children.import_cost(name)[1] for _ in range(repeats)) for name in ("zcore.asdf", "asdf")}
    return timings, beyond, imports


def _write_files(top, quick):
    import asdf

    rng = np.random.default_rng(0)
    images = dict.fromkeys(("one", "many"), np.zeros(100, int))
    for name, size in (("raw", SIZE), ("zlib", PACKED_SIZE), ("lz4", PACKED_SIZE)):
        size = 300 if quick else size
        line = np.sin(np.arange(size) / 50)
        images[name] = np.round(100 * (line[:, None] + line) + rng.normal(0, 1, (size, size)), 1).astype("<f4")
        Peer.write(os.path.join(top, f"{name}.asdf"), images[name], None if name == "raw" else name)
    for name, count in (("one", 1), ("many", 10 if quick else N_BLOCKS)):
        tree = {f"array {i}": np.full(100, i) for i in range(count)}
        asdf.AsdfFile(tree).write_to(os.path.join(top, f"{name}.asdf"), all_array_storage="internal")
    return images


def _measure_case(top, case, images, repeats):
    timing = Timing(case, {name: [] for name in LIBRARIES})
    path = os.path.join(top, f"{case.file}.asdf")
    image = images.get(case.file)
    order = list(LIBRARIES)
    for i in range(-1, repeats):
        for k in range(len(order)):
            name = order[(i + k) % len(order)]
            if name in timing.failed:
                continue
            try:
                seconds = _round(LIBRARIES[name], case, path, image, os.path.join(top, f"new-{name}.asdf"))
            except Exception as exc:  # noqa: BLE001 (whatever a library raises is its result)
                timing.failed[name] = f"{type(exc).__name__}: {exc}".strip()[:200]
                continue
            if i >= 0:
                timing.seconds[name].append(seconds)
    return timing


def _round(library, case, path, image, new):
    act = getattr(library, case.act)
    if case.act == "write":
        seconds, _ = timed(act, new, image, None if case.file == "raw" else case.file)
        right = np.array_equal(Zcore.read_all(new), image)
        os.unlink(new)
    else:
        # An open takes microseconds.
        count = 20 if case.act in ("open", "tree", "elements") else 1
        seconds, result = timed(lambda: [act(path) for _ in range(count)][-1])
        seconds /= count
        right = case.act in ("open", "tree") or np.array_equal(
            result, image[_middle(image)] if case.act == "window" else image)
    if not right:
        raise ValueError("the array differs from the one written")
    return seconds


def _best_read(top, repeats):
    """Return how long two threads take that fill an array by `preadv`, beside zcore's full read."""
    path = os.path.join(top, "raw.asdf")
    with zcore.asdf.open(path) as file:
        offset, n_bytes = file.blocks[0].data_offset, file.blocks[0].data_size

    def fill():
        out = np.empty(n_bytes, "u1")
        fd = os.open(path, os.O_RDONLY)
        halves = [(0, n_bytes // 2), (n_bytes // 2, n_bytes)]
        threads = [threading.Thread(target=_fill, args=(fd, memoryview(out), offset, *half)) for half in halves]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.close(fd)
        return out

    case = Case("read, raw, and two threads with preadv", "read_all", "raw", 1 / 1.1)
    timing = Timing(case, {"zcore": [], "asdf": []})
    for _ in range(repeats):
        timing.seconds["zcore"].append(timed(Zcore.read_all, path)[0])
        timing.seconds["asdf"].append(timed(fill)[0])
    return timing


def _fill(fd, view, offset, start, stop):
    while start < stop:
        start += os.preadv(fd, [view[start:stop]], offset + start)


def _memory_of(library, path):
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
    done = subprocess.run([sys.executable, "-c", _MEMORY, library, path], capture_output=True, text=True, check=True,
                          env=environment)
    return int(done.stdout)


def render(measured):
    """Return the Markdown of what `measure` returned: minima and medians, and what zcore is to reach."""
    timings, beyond, imports = measured
    lines = ["| case | zcore, ms | asdf / zcore | goal |", "|---|---:|---:|---:|"]
    for timing in timings:
        zcore_seconds, others = timing.seconds["zcore"], timing.seconds["asdf"]
        if timing.failed or not zcore_seconds:
            lines.append(f"| {timing.case.name} | {timing.failed} | | |")
            continue
        ratio = (f"{min(others) / min(zcore_seconds):.2f} / "
                 f"{statistics.median(others) / statistics.median(zcore_seconds):.2f}")
        lines.append(f"| {timing.case.name} | {1e3 * min(zcore_seconds):.3f} / "
                     f"{1e3 * statistics.median(zcore_seconds):.3f} | {ratio} | {timing.case.goal:.2f} |")
    if not beyond:
        return "\n".join(lines) + "\n"
    ratio = imports["asdf"] / imports["zcore.asdf"]
    lines.append(f"| import, behind that of NumPy | {1e3 * imports['zcore.asdf']:.3f} | {ratio:.1f} | 10 |")
    lines.append("\n| memory beyond the result, KiB | zcore | asdf |\n|---|---:|---:|")
    for name in ("raw", "zlib", "lz4"):
        lines.append(f"| {name} | {beyond['zcore', name] / 1024:,.0f} | {beyond['asdf', name] / 1024:,.0f} |")
    return "\n".join(lines) + "\n\nMinima / medians.\n"
