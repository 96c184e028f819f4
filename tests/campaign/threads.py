"""The thread sanitizer as a part: `python -m tests.campaign.threads --seconds 600`.

A copy of the sources is built with it, which takes minutes, and tests of locks, plans, caches, shards and readers that
share are run with that: by `nodes.py`, which says what is counted. Each report is a finding, too. What the sanitizer
cannot see is named in `tests/thread_sanitizer.txt`.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ("tests/unit/kernel/io", "tests/unit/kernel/plan", "tests/unit/kernel/codec/test_own_shuffles.py",
         "tests/unit/engine/test_many_threads.py", "tests/unit/embed/test_table.py", "tests/unit/test_workers.py",
         "tests/unit/test_blosc.py", "tests/unit/codecs/test_segments.py", "tests/unit/stores/test_memory_store.py",
         "tests/unit/stores/directory", "tests/unit/nodes/test_writer.py", "tests/unit/nodes/test_group_writer.py",
         "tests/unit/nodes/test_async_read.py", "tests/crash/races/test_orders.py", "tests/crash/test_lost_updates.py",
         "tests/crash/test_mixed_writers.py", "tests/crash/test_own_locks.py")
# A child of a fork may have threads of its own; requests for huge memory fail, as they do elsewhere.
OPTIONS = "die_after_fork=0:allocator_may_return_null=1:history_size=7:exitcode=0"


def missing():
    """Return the path of the sanitizer's library, and why the part cannot run here, or None."""
    if not sys.platform.startswith("linux"):
        return None, "needs Linux"
    try:
        library = subprocess.run([os.environ.get("CC", "gcc"), "-print-file-name=libtsan.so"], capture_output=True,
                                 text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None, "needs gcc"
    return library, None if os.path.isabs(library) else "gcc has no libtsan"


def run(library, folder, seconds):
    """Return what `nodes.py` says of the tests in a new build, and the number of reports."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    packed = subprocess.run(["tar", "-c", "--null", "-T", "-", "-f", "-"], cwd=ROOT, input=names, capture_output=True,
                            check=True).stdout
    sources = folder / "sources"
    sources.mkdir()
    subprocess.run(["tar", "-x", "-f", "-"], cwd=sources, input=packed, check=True)
    environment = {**os.environ, "PYTHONPATH": str(sources), "ZCORE_SANITIZE": "thread"}
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=sources, env=environment,
                   stdout=sys.stderr, check=True)
    environment["LD_PRELOAD"] = library
    environment["TSAN_OPTIONS"] = (f"suppressions={ROOT}/tests/thread_sanitizer.txt:log_path={folder}/report:{OPTIONS}")
    # The sanitizer of older compilers does not start where the kernel chooses addresses as freely as newer ones do.
    done = subprocess.run(["setarch", "-R", sys.executable, "-m", "tests.campaign.nodes", "--seconds", str(seconds),
                           *TESTS], cwd=sources, env=environment, stdout=subprocess.PIPE, text=True)
    reports = [path.read_text() for path in folder.glob("report*")]
    print(done.stdout, *reports, file=sys.stderr, sep="\n")
    return json.loads(done.stdout.splitlines()[-1]), sum(report.count("WARNING: ThreadSanitizer") for report in reports)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.threads", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    given = parser.parse_args()
    start = time.monotonic()
    library, why = missing()
    told = {"part": "threads", "tried": 0, "unit": "tests", "found": 0, "skipped": why}
    if why is None:
        with tempfile.TemporaryDirectory() as folder:
            told, n_reports = run(library, Path(folder), given.seconds)
        told["found"] += n_reports
    print(json.dumps({**told, "part": "threads", "seconds": time.monotonic() - start}))
    return int(told["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
