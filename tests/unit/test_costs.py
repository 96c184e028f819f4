"""Calls cost no more for many arrays, chunks or references than `VERBS` says: constant, or in proportion to them.

No test looks at a time. Counted are calls of Python functions and built-in ones, files that Python opens and lists, and
calls of a store in memory. These counts do not see what compiled code does with files.
"""
import gc
import itertools
import sys
import threading

import pytest

import zcore
from zcore.engine import known_documents, views

pytest.importorskip("blosc")

from benchmarks.comparisons import growth

SMALL, MANY = 70, 140     # more than the 64 documents that zcore remembers
# What is linear may cost so many times as much for each object of many: documents of less than 64 KiB are remembered.
MARGIN = 1.3
FILES = {"open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir", "os.rmdir"}
CASES = [(kind, verb) for kind, verbs in growth.VERBS.items() for verb in verbs]
counts = []


@sys.addaudithook
def note_file(event, arguments):
    if counts and event in FILES:
        counts[-1] += 1


def note_call(frame, event, argument):
    if event in ("call", "c_call"):
        counts[-1] += 1


class Counted(zcore.MemoryStore):
    """Counts the calls of all its methods."""

    def __getattribute__(self, name):
        if counts:
            counts[-1] += 1
        return super().__getattribute__(name)


def count(call):
    before = sys.getprofile()
    gc.collect()     # what is freed calls functions, too
    gc.disable()
    counts.append(0)
    threading.setprofile(note_call)
    sys.setprofile(note_call)
    try:
        call()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        gc.enable()
        found = counts.pop()
    return found


def forget():
    """Let all documents be read as if for the first time: which are remembered depends on what ran before."""
    views._parse.cache_clear()
    views._resolve.cache_clear()
    known_documents._kept.clear()


def measure(top, kind, n, in_memory):
    """Return {verb: count} for `n` objects."""
    growth.write(top / "made", kind, n)
    numbers, place = itertools.count(), str(top / "made")
    if in_memory:
        place = Counted({path.relative_to(place).as_posix(): path.read_bytes()
                         for path in (top / "made").rglob("*") if path.is_file()})
    calls = growth.calls_of_zcore(kind, place, n, lambda: (
        zcore.MemoryStore() if in_memory else top / f"copy-{next(numbers)}"))
    found = {}
    for verb in growth.VERBS[kind]:
        if verb != "delete":
            calls[verb]()     # a first call makes what the others find
        forget()
        found[verb] = count(calls[verb])
    return found


def fits(growing, small, many, times):
    """Return whether a count of few objects, and one of so many times as many, are those of a cost."""
    return many <= (1.05 * small + 20 if growing == growth.CONSTANT else MARGIN * small * times)


@pytest.fixture(scope="module", params=["directory", "memory"])
def counted(request, tmp_path_factory):
    """Return a function of a kind and of numbers of objects to their counts, which are made once."""
    found = {}

    def of(kind, *sizes):
        if (kind, sizes) not in found:
            found[kind, sizes] = [measure(tmp_path_factory.mktemp(kind), kind, n, request.param == "memory")
                                  for n in sizes]
        return found[kind, sizes]

    if sys.gettrace() is not None:
        pytest.skip("calls are traced")
    gc.collect()
    gc.freeze()      # before each count garbage is collected, which need not look at what other tests have left
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zcore.config, "threads", 1)
        patch.setattr("zcore.engine.views.TRUSTED_AGE_NS", -(1 << 62))
        yield of, request.param


def check(counted, kind, verb, *sizes):
    of, place = counted
    if kind == "references" and place == "memory":
        pytest.skip("a reference set is a file")
    small, many = of(kind, *sizes)
    assert small[verb] > 0
    assert fits(growth.VERBS[kind][verb], small[verb], many[verb], sizes[1] / sizes[0]), (small[verb], many[verb])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "verb"), CASES)
def test_costs_grow_as_they_should(counted, kind, verb):
    check(counted, kind, verb, SMALL, MANY)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "verb"), CASES)
def test_costs_grow_as_they_should_with_thousands(counted, kind, verb):
    check(counted, kind, verb, 1000, 5000)


def test_counts_that_grow_faster_are_found():
    assert fits(growth.CONSTANT, 100, 100, 10) and not fits(growth.CONSTANT, 100, 200, 10)
    assert fits(growth.LINEAR, 100, 1000, 10) and not fits(growth.LINEAR, 100, 1500, 10)
    items = list(range(50))
    assert not fits(growth.LINEAR, *[count(lambda n=n: [abs(i) for i in items[:n] for _ in items[:n]])
                                     for n in (5, 50)], 10)
