"""Each of the system's calls fails once: what comes is an error of zcore that says where, and nothing is left broken.

`failing/rounds.py` says what is looked at after each failure, `failing/verbs.py` what is called.
"""
import collections
import gc
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.campaign import counted

from .failing import __main__ as failing
from .failing import service
from .failing.faulty import FAULTY
from .failing.verbs import VERBS

QUICK = ["raw: read", "v3: merge", "v3: write and sync", "v3: create with data", "group v2: move", "zip: write",
         "zip: read", "copy from a file: npy", "asdf: read", "asdf: append a block", "asdf: append rows after a kill",
         "store: set"]
NATIVE = ["v3: write and sync", "v3: merge"]     # by the kernel alone


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Path of the library that is preloaded."""
    try:
        return failing.build(tmp_path_factory.mktemp("failing"))
    except failing.NoLibrary as exc:
        pytest.skip(str(exc))


def check(library, place, kind, verbs, least=5):
    """Call verbs with one kind of failure: a name of `failing.KINDS`, or what it stands for."""
    what, error, lock = failing.KINDS.get(kind, kind)
    os.mkdir(place)
    results = list(failing.run(library, place, [(name, what, error) for name in verbs], lock))
    assert [text for _, _, found in results for text in found] == []
    assert min(n for _, n, _ in results) >= least
    counted(sum(n for _, n, _ in results))


@pytest.mark.parametrize("kind", ["EIO", "EIO with lock files"])
def test_a_call_that_fails_is_told_with_its_place(library, place, kind):
    check(library, place, kind, QUICK if kind == "EIO" else QUICK[:3])


def test_what_must_not_be_is_found(library, place):
    os.mkdir(place)
    results = list(failing.run(library, place, [(name, "CALLS", "EIO") for name in FAULTY]))
    assert [name for name, _, _ in results] == list(FAULTY)
    for name, _, found in results:
        assert any(FAULTY[name][1] in text for text in found), (name, found)


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted({name.partition(":")[0] for name in VERBS}))
@pytest.mark.parametrize("kind", failing.KINDS)
def test_each_call_of_each_verb_may_fail(library, place, kind, group):
    check(library, place, kind, [name for name in VERBS if name.partition(":")[0] == group], least=0)


@pytest.mark.parametrize("lock", ["on", "file"])
def test_a_call_that_a_signal_has_ended_is_made_again(library, place, lock):
    check(library, place, ("AGAIN", "EINTR", lock), NATIVE)


def test_reads_and_writes_that_move_a_byte_at_a_time(library, place):
    check(library, place, "all short", QUICK, least=1)


@pytest.mark.parametrize("kind", ["the disk is full", "the disk is gone", "one short"])
def test_the_disk_gets_full_or_goes_or_moves_less_than_it_was_asked_for(library, place, kind):
    check(library, place, kind, ["v3: merge", "store: set"], least=1)


@pytest.mark.parametrize("verb", ["merge", "append", pytest.param("", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_a_request_to_a_service_that_fails(verb, monkeypatch, capsys):
    gc.collect()
    gc.freeze()      # after each request garbage is collected, which need not look at what other tests have left
    monkeypatch.setattr(sys, "argv", ["service", "--verbs", verb])
    assert service.main() == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["tried"] > 70 and "skipped" not in told
    counted(told["tried"])


def test_memory_that_is_not_there(library, place):
    """The libraries of the kernel are kept from using what they did not get, and say of it that it is missing."""
    codecs = [*itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), ("shuffle", "bitshuffle", "noshuffle")),
              ("gzip", "noshuffle"), ("only zstd", "noshuffle")]
    done = script(library, place, "memory", *(
        f"{verb},{cname},{shuffle},{threads}"
        for verb in ("read", "write", "columns") for cname, shuffle in codecs for threads in (1, 4)))
    found, n = json.loads(done)
    assert found == [] and n > 0
    counted(n)


def script(library, place, name, *arguments, before=()):
    """Return the last line that a module of `failing` prints, with the library preloaded."""
    preload = f"LD_PRELOAD={library}"
    done = subprocess.run([*before, "env", preload, sys.executable, "-W", "ignore", "-m", f"tests.crash.failing.{name}",
                           library, place, *arguments], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


# What strace calls them, for the classes of failing.c that are made by one call of the system each.
CALLS = {
    "open": "open openat openat2 creat", "stat": "stat lstat fstat newfstatat statx stat64 lstat64 fstat64 fstatat64",
    "read": "read pread64 readv preadv preadv2", "write": "write pwrite64 writev pwritev pwritev2",
    "mkdir": "mkdir mkdirat", "rename": "rename renameat renameat2", "link": "link linkat",
    "symlink": "symlink symlinkat", "unlink": "unlink unlinkat rmdir", "mode": "chmod fchmod fchmodat fchmodat2",
    "truncate": "truncate ftruncate", "allocate": "fallocate", "sync": "fsync fdatasync syncfs msync sync_file_range",
    "copy": "copy_file_range sendfile sendfile64 splice", "access": "access faccessat faccessat2",
    "readlink": "readlink readlinkat", "close": "close", "room": "statfs fstatfs", "times": "utimensat utime",
    "seek": "lseek", "list": "getdents64 getdents", "map": "mmap", "lock": "flock",
    "control": "",     # fcntl, which also locks
}


def trace_counts(path):
    """Return how many calls of each class a trace has between the marks of `counted.py`, for each time it counts."""
    class_of = {call: name for name, calls in CALLS.items() for call in calls.split()}
    found, now = [], None
    for line in path.read_text(errors="replace").splitlines():
        match = re.match(r"(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)", line)
        if not match:
            continue     # a signal, or the end of a call that another thread came between
        name, rest = match.groups()
        if "/counted/begin" in rest:
            now = collections.Counter()
            found.append(now)
        elif "/counted/end" in rest:
            now = None
        elif now is not None:
            if name == "fcntl":
                now["lock" if "LK" in rest else "control"] += 1
            elif name in class_of and not (name == "mmap" and "MAP_ANONYMOUS" in rest):
                now[class_of[name]] += 1
    return found


@pytest.mark.parametrize("verbs", [QUICK, pytest.param(list(VERBS), marks=pytest.mark.slow)], ids=["some", "all"])
def test_no_call_of_the_system_escapes_the_library(library, place, tmp_path, verbs):
    """What strace sees is what the library has counted, verb by verb and class by class."""
    strace = shutil.which("strace")
    if strace is None or subprocess.run([strace, "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("needs strace, and the permission to use it")
    trace = tmp_path / "trace"
    counts = json.loads(script(library, place, "counted", *verbs, before=(strace, "-f", "-o", str(trace))))
    traced = trace_counts(trace)
    assert len(traced) == len(counts) == len(verbs)
    wrong = []
    for (name, by_library), by_strace in zip(counts.items(), traced, strict=True):
        by_library["unlink"] += by_library.pop("rmdir")
        by_library["access"] -= 2     # the marks
        for class_name in CALLS:
            seen, came = by_strace[class_name], by_library[class_name]
            # Names are read from a buffer, that one call fills with many.
            if seen > came or (seen < came and class_name != "list"):
                wrong.append(f"{name}: {class_name}: strace {seen}, library {came}")
    assert wrong == []
    counted(sum(sum(by_strace.values()) for by_strace in traced))
