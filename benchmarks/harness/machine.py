"""What a reader has to know of the machine before believing a time."""
import contextlib
import datetime
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

_SPIN_COUNT = 60_000_000  # steps of about a nanosecond


def _first_line(path, start=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return next((line.strip() for line in file if line.startswith(start)), None)
    except OSError:
        return None


def cpu_model():
    """Return the CPU's name as the system gives it."""
    line = _first_line("/proc/cpuinfo", "model name")
    if line:
        return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        return _output(["sysctl", "-n", "machdep.cpu.brand_string"])
    return platform.processor() or platform.machine()


def usable_cores():
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


@contextlib.contextmanager
def kept_to_cores(n):
    """Keep this process, and those that it starts, to `n` cores; the block gets how many it has.

    A limit of threads does not bound every library: zarrs, for one, takes a thread for each core that it sees.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield usable_cores()
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(cores)[:n])
    try:
        yield usable_cores()
    finally:
        os.sched_setaffinity(0, cores)


def parallel_speed(threads=2, count=_SPIN_COUNT):
    """Return how much faster `threads` spinning threads are than one: `threads` on idle cores, 1 on a shared one.

    None without a C compiler.
    """
    from benchmarks.harness import native

    try:
        spin = native.library().spin_threads
    except ImportError:
        return None
    times = {}
    for n in (1, threads, 1, threads):
        start = time.perf_counter()
        spin(n, count)
        times[n] = min(times.get(n, float("inf")), time.perf_counter() - start)
    return round(threads * times[1] / times[threads], 3)


def file_system(path):
    """Return the type of the file system that holds `path`, None where the system does not tell."""
    best, kind = "", None
    try:
        lines = Path("/proc/mounts").read_text("utf-8").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    for fields in map(str.split, lines):
        mount = fields[1]
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind


def describe(spin_count=_SPIN_COUNT):
    """Return the facts about machine and system, ready for JSON."""
    return {
        "cpu": cpu_model(),
        "machine": platform.machine(),
        "cores": usable_cores(),
        "parallel_speed_of_2_threads": parallel_speed(count=spin_count),
        "load": [round(value, 2) for value in os.getloadavg()],
        "memory_nbytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "transparent_hugepages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
    }


def commit():
    """Return the commit id of the checkout that holds the benchmarks, with ``+changes`` when it is not clean."""
    root = Path(__file__).resolve().parents[2]
    found = _output(["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"])
    if found and _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"]):
        found += "+changes"
    return found


def now():
    """Return the time of day in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _output(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
