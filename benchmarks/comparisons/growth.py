"""What calls cost by the number of objects that are there: arrays of a group, chunks of an array, references of a set.

`VERBS` says of each call whether its cost is constant or grows with the number. Tests count calls of Python and of the
store to prove it; this module measures times. The libraries get the same files in memory, and take turns.
"""
import itertools
import os
import random
import shutil
import tempfile
import time
from collections import namedtuple

import numpy as np

import zcore
from benchmarks.inputs import fixtures, reference_sets
from benchmarks.inputs.fixtures import Layout, Member

CONSTANT, LINEAR = "constant", "linear"
# What grows: {call: how its cost grows}, in the order in which they are called.
VERBS = {
    "arrays": {"open": CONSTANT, "list": LINEAR, "read one": CONSTANT, "append": CONSTANT, "resize": CONSTANT,
               "delete one": CONSTANT, "verify": LINEAR, "copy": LINEAR, "consolidate": LINEAR, "delete": LINEAR},
    # A resize that shrinks lists the chunks, and erases those outside.
    "chunks": {"open": CONSTANT, "read one": CONSTANT, "append": CONSTANT, "resize": LINEAR, "verify": LINEAR,
               "copy": LINEAR, "delete": LINEAR},
    "references": {"open": LINEAR, "read one": CONSTANT},
}
SIZES = {"arrays": (10**3, 10**4, 10**5), "chunks": (10**3, 10**4, 10**5), "references": (10**3, 10**4, 10**5, 10**6)}
LENGTH = 16     # of a chunk
NAME = "a"
_MAX_SECONDS = 100   # a library that is likely to take longer is not asked for more objects

# `times`: {library: [(objects, seconds), ...]}
Line = namedtuple("Line", ("kind", "verb", "times"))


def write(path, kind, n):
    """Write a group with `n` arrays, or with an array of `n` chunks, as node `NAME` of the new directory `path`.

    Or a reference set of `n` references. No library under test writes.
    """
    if kind == "arrays":
        arrays = [Member(_name(i), (LENGTH,), (LENGTH,), "float32", {"number": i}) for i in range(n)]
        fixtures.write_group(path, [])
        fixtures.write_group(os.path.join(path, NAME), arrays, np.arange(1, LENGTH + 1))
        return
    layout = Layout((n * LENGTH,), (LENGTH,), None, "references" if kind == "references" else "v3")
    if kind == "chunks":
        fixtures.write_group(path, [])
    fixtures.write(os.path.join(path, NAME), np.arange(1, n * LENGTH + 1, dtype="f4"), layout)


def _name(i):
    return f"array-{i:06}"


def calls_of_zcore(kind, place, n, new):
    """Return {verb: function} for what lies at `place`, a path or a store; ``new()`` returns a place for a copy.

    A function may be called some times, in the order of `VERBS`; "delete" once.
    """
    if kind == "references":
        path = os.path.join(place, NAME, reference_sets.NAME)
        return {"open": lambda: zcore.open(path)} | _reads(zcore.open(path), n)
    root = zcore.open_group(place, mode="r+")
    node = root[NAME]
    verbs = {"open": lambda: zcore.open(place, path=NAME), "verify": lambda: zcore.verify(place),
             "copy": lambda: zcore.copy(place, new()), "delete": lambda: root.__delitem__(NAME)}
    if kind == "chunks":
        return verbs | _reads(node, n) | _changes(node)
    return verbs | _members(node, n) | _changes(node[_name(n - 1)]) | {
        "list": lambda: [(name, array.shape) for name, array in zcore.open_group(place, path=NAME).arrays()],
        "consolidate": lambda: zcore.consolidate_metadata(place, path=NAME)}


def _reads(array, n):
    return {"read one": lambda: array[n * LENGTH // 2]}


def _changes(array):
    one = np.ones(LENGTH, array.dtype)
    return {"append": lambda: array.append(one), "resize": lambda: array.resize((array.shape[0] - LENGTH,))}


def _members(group, n):
    numbers = itertools.count()
    return {"read one": lambda: group[_name(n // 2)][...],
            "delete one": lambda: group.__delitem__(_name(next(numbers)))}


def _calls_of_zarr(kind, place, n, new):
    import zarr

    if kind == "references":
        return {}
    root = zarr.open_group(place, mode="r+", zarr_format=3)
    node = root[NAME]
    verbs = {"open": lambda: zarr.open(place, path=NAME, mode="r", zarr_format=3),
             "delete": lambda: root.__delitem__(NAME)}
    if kind == "chunks":
        return verbs | _reads(node, n) | _changes(node)
    return verbs | _members(node, n) | _changes(node[_name(n - 1)]) | {
        "list": lambda: [(name, array.shape) for name, array in zarr.open_group(place, path=NAME, mode="r").arrays()],
        "consolidate": lambda: zarr.consolidate_metadata(place, path=NAME, zarr_format=3)}


def _calls_of_tensorstore(kind, place, n, new):
    import tensorstore

    def spec(name=""):
        return {"driver": "zarr3", "kvstore": kvstore | {"path": kvstore["path"] + name}}

    def opened(name=""):
        return tensorstore.open(spec(name)).result()

    def append():
        nonlocal length
        length += LENGTH
        grown = array.resize(exclusive_max=[length], expand_only=True).result()
        grown[length - LENGTH:].write(np.ones(LENGTH, array.dtype.numpy_dtype)).result()

    def resize():
        nonlocal length
        length -= LENGTH
        array.resize(exclusive_max=[length], shrink_only=True).result()

    def delete(first="", last=""):
        store.delete_range(tensorstore.KvStore.KeyRange(first, last)).result()

    def delete_one():
        i = next(numbers)
        delete(_name(i) + "/", _name(i) + "0")     # the letter behind "/"

    def listed():
        names = [key.removesuffix(b"zarr.json").decode() for key in store.list().result()
                 if key.endswith(b"/zarr.json")]
        return [array.result().shape for array in [tensorstore.open(spec(name)) for name in names]]

    if kind == "references":
        return {}
    numbers = itertools.count()
    kvstore = {"driver": "file", "path": f"{place}/{NAME}/", "file_io_sync": False}
    store = tensorstore.KvStore.open(kvstore).result()
    array, length = (opened(_name(n - 1)), LENGTH) if kind == "arrays" else (opened(), n * LENGTH)
    verbs = {"append": append, "resize": resize, "delete": delete}
    if kind == "chunks":
        return verbs | {"open": opened, "read one": lambda: array[n * LENGTH // 2].read().result()}
    return verbs | {"list": listed, "delete one": delete_one,
                    "read one": lambda: opened(_name(n // 2)).read().result()}


def _calls_of_fsspec(kind, place, n, new):
    import zarr
    from fsspec.implementations.reference import ReferenceFileSystem

    if kind != "references":
        return {}

    def opened():
        files = ReferenceFileSystem(os.path.join(place, NAME, reference_sets.NAME), remote_protocol="file",
                                    asynchronous=True, skip_instance_cache=True)
        return zarr.open_array(zarr.storage.FsspecStore(files, read_only=True), mode="r", zarr_format=2)

    return {"open": opened} | _reads(opened(), n)


LIBRARIES = {"zcore": calls_of_zcore, "zarr": _calls_of_zarr, "tensorstore": _calls_of_tensorstore,
             "fsspec": _calls_of_fsspec}


def measure(sizes=None, repeats=5):
    """Return a list of `Line`; `sizes` are the numbers of objects of each kind."""
    lines = [Line(kind, verb, {}) for kind, verbs in VERBS.items() for verb in verbs]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as top:
        for kind, numbers in (sizes or SIZES).items():
            for n in numbers:
                for name in random.sample(list(LIBRARIES), len(LIBRARIES)):
                    _measure(lines, kind, n, name, top, repeats)
    return lines


def _measure(lines, kind, n, name, top, repeats):
    def new():
        return os.path.join(top, f"copy-{next(copies)}")

    copies, place = itertools.count(), os.path.join(top, "made")
    wanted = [line for line in lines if line.kind == kind
              and all(seconds < _MAX_SECONDS / 10 for _, seconds in line.times.get(name, ()))]
    write(place, kind, n)
    try:
        calls = LIBRARIES[name](kind, place, n, new)
    except ImportError:
        calls = {}
    for line in wanted:
        if line.verb in calls:
            fastest = _fastest(calls[line.verb], 1 if line.verb == "delete" else repeats)
            line.times.setdefault(name, []).append((n, fastest))
    for path in os.listdir(top):
        shutil.rmtree(os.path.join(top, path))


def _fastest(call, repeats):
    """Return the least seconds of a call, which is made less often if it takes long."""
    times = []
    while len(times) < repeats and sum(times) < 2:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def render(lines):
    """Return the times as a table of Markdown, in milliseconds."""
    sizes = sorted({n for line in lines for times in line.times.values() for n, _ in times})
    out = ["| call | library | " + " | ".join(f"{n:,}" for n in sizes) + " |", "|---|---|" + "---:|" * len(sizes)]
    for line in lines:
        for name, times in line.times.items():
            cells = [f"{dict(times)[n] * 1e3:.3g}" if n in dict(times) else "–" for n in sizes]
            out.append(f"| {line.kind}: {line.verb} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"
