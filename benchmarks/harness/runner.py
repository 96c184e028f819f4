"""Runs workloads: sets up files, takes times with the libraries interleaved, checks every result.

A sample is one call of one library. In each round every library has its turn, in a random order: in a fixed one each
would inherit the caches and the freed memory of the same other one. The first round warms caches and pools and is not
counted: it shows the memory that each takes. The process is kept to as many cores as each library has threads. Garbage
collection rests while the clock runs. A library that raises, or answers wrongly even once, is taken out and has no time
on that workload.
"""
import contextlib
import dataclasses
import functools
import gc
import itertools
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np

from benchmarks import adapters
from benchmarks.harness import children, machine, timing
from benchmarks.harness.timing import timed, watched
from benchmarks.inputs import data, fixtures, object_server, reference_sets
from benchmarks.inputs.encodings import V3
from benchmarks.suites import workloads

_FIRST = 10  # elements read by the workloads of kind "open", and in each of kind "pieces"
_YOUNG = 2.1  # seconds, after which a file's identity is trusted
_OPENS_IN_A_ROW = 20  # of a sample, where one library follows the other


class WrongResult(Exception):
    """A library returned, or left on disk, something else than the source data."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What one run is asked for; `directory` None is the system's place for temporary files."""

    repeats: int = 7
    threads: int = 2
    quick: bool = False
    kind: str = "smooth"
    seed: int = 0
    directory: str | None = None


class Bench:
    """The directories, arrays and fixtures of one run; everything on disk goes when the context is left."""

    def __init__(self, options, report=None):
        self.options = options
        self.say = report or (lambda line: print(line, file=sys.stderr, flush=True))
        self._stack = contextlib.ExitStack()
        self._fixtures = {}
        self.array = functools.lru_cache(maxsize=1)(
            lambda shape, dtype="float32": data.make(self.options.kind, shape, self.options.seed, dtype))

    def __enter__(self):
        memory = "/dev/shm" if self.options.directory is None and os.access("/dev/shm", os.W_OK) else None
        self.places = {}
        for place, parent in (("disk", self.options.directory), ("tmpfs", memory or self.options.directory)):
            self.places[place] = self._stack.enter_context(
                tempfile.TemporaryDirectory(prefix="zcore-benchmarks-", dir=parent))
        return self

    def __exit__(self, *exc_info):
        self.array.cache_clear()
        return self._stack.__exit__(*exc_info)

    def source(self, workload):
        """Return the elements of a workload."""
        return self.array(workload.shape, workload.dtype)

    def fixture(self, workload):
        """Return the files of a workload, written at first use."""
        layout = workload.layout
        if layout not in self._fixtures:
            self.say(f"{workload.name}: writing {len(self._fixtures) + 1}. fixture")
            root = os.path.join(self.places["disk"], f"fixture-{len(self._fixtures)}")
            self._fixtures[layout] = fixtures.write(root, self.source(workload), layout)
        return self._fixtures[layout]

    def wait(self):
        """Wait until files that were just written are trusted."""
        time.sleep(0 if self.options.quick else _YOUNG)

    def folder(self, workload):
        """Return a new folder for a workload, which `measure` removes."""
        path = os.path.join(self.places[workload.place], workload.name)
        os.makedirs(path)
        return path


def run(selected, names, options, report=None):
    """Measure and return one run, ready for JSON.

    Parameters
    ----------
    selected : list of Workload
    names : list of str
        Libraries, of `adapters.names`.
    options : Options
    report : callable or None
        Takes lines about progress; standard error by default.
    """
    with session(names, options, report) as (bench, libraries, facts):
        for workload in selected:
            workload = workloads.quick(workload) if options.quick else workload
            able = {name: library for name, library in libraries.items() if library.takes_part(workload)}
            facts["workloads"].append(measure(bench, workload, able) | {"cannot": {
                name: library.cannot[workload.kind] for name, library in libraries.items()
                if workload.kind in library.cannot}})
        return facts


@contextlib.contextmanager
def session(names, options, report=None):
    """Give the block a `Bench`, the libraries by name, and the facts of a run, whose workloads it fills in."""
    # Before anything is loaded, as libraries look at the cores when they make their pools.
    with machine.kept_to_cores(options.threads) as cores, Bench(options, report) as bench:
        libraries, skipped = adapters.load_all(names, options.threads)
        for name, reason in skipped.items():
            bench.say(f"{name}: skipped, {reason}")
        yield bench, libraries, {
            "threads": options.threads,
            "cores": cores,
            "versions": {name: library.versions() for name, library in libraries.items()},
            "skipped": skipped,
            "file_systems": {place: machine.file_system(path) for place, path in bench.places.items()},
            "workloads": [],
        }


@dataclasses.dataclass
class Taken:
    """What was measured on one workload.

    Attributes
    ----------
    samples : dict of str to list of float
        By library.
    failed : dict of str to str
        The reasons, by library.
    peaks : dict of str to tuple of int
        By library, of one call that is not in the samples: the most memory that it took, and of that its result.
    """

    samples: dict
    failed: dict
    peaks: dict = dataclasses.field(default_factory=dict)

    def facts(self):
        """Return it ready for JSON, with minima and medians."""
        summary = {name: {"min": min(taken), "median": statistics.median(taken)}
                   for name, taken in self.samples.items() if taken}
        return {"samples": self.samples, "summary": summary, "peaks": self.peaks, "failed": self.failed}


def measure(bench, workload, libraries):
    """Return everything measured on one workload, as a dictionary."""
    try:
        taken = _KINDS[workload.kind](bench, workload, libraries)
    except ImportError as exc:
        # Of a server, for example. The other workloads are still measured.
        taken = Taken({}, dict.fromkeys(libraries, str(exc)))
    finally:
        shutil.rmtree(os.path.join(bench.places[workload.place], workload.name), ignore_errors=True)
    out = {field.name: getattr(workload, field.name) for field in dataclasses.fields(workload)}
    out["taken"] = [[i.start, i.stop] if isinstance(i, slice) else i for i in workload.taken]
    out["targets"] = [dataclasses.asdict(target) for target in workload.targets]
    out["unit"] = "bytes" if workload.kind in ("memory", "write_memory", "set_memory") else "seconds"
    if workload.shape:
        itemsize = np.dtype(workload.dtype).itemsize
        out |= {"nbytes": math.prod(workload.shape) * itemsize, "chunk_nbytes": math.prod(workload.chunks) * itemsize}
    if workload.kind in ("read", "parts", "parts_at_once", "pieces", "crops", "box", "points", "mask", "product",
                         "strided", "elements", "kept_elements", "write_box", "memory", "remote"):
        out["stored_nbytes"] = bench.fixture(workload).stored_nbytes
    out["load"] = round(os.getloadavg()[0], 2)
    return out | taken.facts()


def take(bench, workload, libraries, operation):
    """Call `operation(name, library, i)` → sample over all rounds; return `Taken`."""
    limit = workload.max_repeats or bench.options.repeats
    rounds = min(bench.options.repeats, limit) * workload.samples_per_repeat
    taken = Taken({name: [] for name in libraries}, {})
    names = list(libraries)
    if workload.blocked:
        turns = [(i, name) for name in names for i in range(-1, rounds)]
    else:
        # Round -1 warms up, and shows the memory.
        turns = [(i, name) for i in range(-1, rounds) for name in random.sample(names, len(names))]
    started = last_said = time.monotonic()
    for done, (i, name) in enumerate(turns):
        if name in taken.failed:
            continue
        if time.monotonic() - last_said > 5:
            last_said = time.monotonic()
            bench.say(f"{workload.name}: {done} of {len(turns)} samples")
        try:
            with watched() if i < 0 else contextlib.nullcontext() as peaks:
                sample = operation(name, libraries[name], i)
        except Exception as exc:  # noqa: BLE001 (whatever a library raises is its result)
            taken.failed[name] = f"{type(exc).__name__}: {exc}".strip()
            del taken.samples[name]
            bench.say(f"{workload.name}: {name} is out, {taken.failed[name]}")
            continue
        if i >= 0:
            taken.samples[name].append(sample)
        elif peaks:
            taken.peaks[name] = max(peaks)
    bench.say(f"{workload.name}: {len(turns)} samples in {time.monotonic() - started:.1f} s")
    return taken


def _handle(library, fixture):
    library.activate()
    return library.open(fixture.path, fixture.layout.view)


def _read(bench, workload, libraries):
    return _read_at_once(bench, workload, libraries)


def _sparse(bench, workload, libraries):
    """Half of the chunks are not stored. A page that nobody has touched takes no time, so each is touched."""
    expected = bench.source(workload).copy()
    fixture = fixtures.write(os.path.join(bench.folder(workload), "made"), expected, workload.layout)
    for coords in fixtures.grid_coords(workload.shape, workload.chunks):
        if sum(coords) % 2:
            os.unlink(fixtures.chunk_path(fixture.path, V3, coords))
            expected[fixtures.box(coords, workload.chunks)] = 0

    def read(library, handle):
        result = library.read(handle)
        result.reshape(-1)[::1024].sum()
        return result

    def operation(name, library, i):
        elapsed, result = timed(read, library, _handle(library, fixture))
        if not data.same(result, expected):
            raise WrongResult("what was read differs, or an absent element is not the fill value")
        return elapsed

    return take(bench, workload, libraries, operation)


def _remote(bench, workload, libraries):
    path = bench.fixture(workload).path
    method, box = ("read_box", _box_of(workload)) if workload.taken else ("read", ())
    with object_server.serving(os.path.dirname(path), workload.latency) as place:

        def handle_of(library, fixture):
            library.activate()
            return library.open_remote(place, os.path.basename(path))

        return _read_at_once(bench, workload, libraries, method, (box,) if workload.taken else (), box, handle_of)


def _remote_list(bench, workload, libraries):
    with object_server.serving(bench.folder(workload), workload.latency) as place:
        return _listed(bench, workload, libraries, lambda library, path: library.list_remote(
            place, os.path.basename(path)))


def _parts(bench, workload, libraries):
    return _read_boxes(bench, workload, libraries, "read_parts", _chunks_of(bench, workload))


def _parts_at_once(bench, workload, libraries):
    return _read_boxes(bench, workload, libraries, "read_parts_at_once", _chunks_of(bench, workload))


def _pieces(bench, workload, libraries):
    chosen = random.Random(bench.options.seed)
    rows, columns = workload.shape
    starts = [(chosen.randrange(rows), chosen.randrange(columns - _FIRST)) for _ in range(workload.count)]
    return _read_boxes(bench, workload, libraries, "read_parts", [(i, slice(j, j + _FIRST)) for i, j in starts])


def _crops(bench, workload, libraries):
    chosen = np.random.default_rng(bench.options.seed)
    starts = np.stack([chosen.integers(0, n - taken + 1, workload.count)
                       for n, taken in zip(workload.shape, workload.taken, strict=True)], axis=1).tolist()
    boxes = [fixtures.box_at(start, workload.taken) for start in starts]
    source, fixture = bench.source(workload), bench.fixture(workload)
    expected = np.stack([source[box] for box in boxes])

    def operation(name, library, i):
        elapsed, result = timed(library.read_crops, _handle(library, fixture), boxes)
        if not data.same(result, expected):
            raise WrongResult("a part read differs from the one written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _chunks_of(bench, workload):
    """Return the boxes of `count` random chunks."""
    coords = list(fixtures.grid_coords(workload.shape, workload.chunks))
    chosen = random.Random(bench.options.seed).sample(coords, workload.count)
    return [fixtures.box(at, workload.chunks) for at in chosen]


def _read_boxes(bench, workload, libraries, method, boxes):
    source, fixture = bench.source(workload), bench.fixture(workload)

    def operation(name, library, i):
        handle = _handle(library, fixture)
        elapsed, results = timed(getattr(library, method), handle, boxes)
        if not all(data.same(result, source[box]) for result, box in zip(results, boxes, strict=True)):
            raise WrongResult("a part read differs from the one written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _box(bench, workload, libraries):
    box = _box_of(workload)
    return _read_at_once(bench, workload, libraries, "read_box", (box,), box)


def _box_of(workload):
    return tuple(i if isinstance(i, slice) else slice(None) if i is None else slice(i, i + 1) for i in workload.taken)


def _points(bench, workload, libraries):
    lists = _random_lists(bench, workload)
    return _read_at_once(bench, workload, libraries, "read_points", lists, lists)


def _mask(bench, workload, libraries):
    mask = np.random.default_rng(bench.options.seed).random(workload.shape) < 0.5
    return _read_at_once(bench, workload, libraries, "read_mask", (mask,), mask)


def _product(bench, workload, libraries):
    lists = _random_lists(bench, workload)
    return _read_at_once(bench, workload, libraries, "read_product", lists, np.ix_(*lists))


def _strided(bench, workload, libraries):
    return _read_at_once(bench, workload, libraries, "read_strided", workload.taken,
                         tuple(slice(None, None, step) for step in workload.taken))


def _random_lists(bench, workload):
    chosen = np.random.default_rng(bench.options.seed)
    return tuple(chosen.integers(0, length, workload.count) for length in workload.shape)


def _read_at_once(bench, workload, libraries, method="read", arguments=(), selection=(), handle_of=_handle):
    """Measure one call; `selection` is what NumPy is asked for the same elements."""
    expected, fixture = bench.source(workload)[selection], bench.fixture(workload)

    def operation(name, library, i):
        handle = handle_of(library, fixture)
        elapsed, result = timed(getattr(library, method), handle, *arguments)
        if not data.same(result, expected):
            raise WrongResult("what was read differs from what was written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _elements(bench, workload, libraries):
    return _read_elements(bench, workload, libraries, _handle)


def _kept_elements(bench, workload, libraries):
    of_stat = []
    chunk = functools.partial(fixtures.chunk_path, coords=(0,) * len(workload.shape))

    def handle_of(library, fixture):
        library.activate()
        view = fixture.layout.view
        path = chunk(fixture.path, view)
        # Chunks younger than two seconds are not kept by all.
        time.sleep(max(0, os.stat(path).st_ctime + _YOUNG - time.time()))
        handle = library.open_keeping(fixture.path, view)
        library.read_elements(handle, [(0,) * len(workload.shape)] * 2)
        start = timing.clock()
        for _ in range(workload.count):
            os.stat(path)
        of_stat.append(timing.clock() - start)
        return handle

    taken = _read_elements(bench, workload, libraries, handle_of)
    taken.samples[workloads.STAT] = of_stat
    return taken


def _read_elements(bench, workload, libraries, handle_of):
    source, fixture = bench.source(workload), bench.fixture(workload)
    chosen = random.Random(bench.options.seed)
    places = [tuple(map(chosen.randrange, workload.chunks)) for _ in range(workload.count)]
    expected = np.array([source[place] for place in places])

    def operation(name, library, i):
        handle = handle_of(library, fixture)
        elapsed, results = timed(library.read_elements, handle, places)
        if not data.same(np.array(results), expected):
            raise WrongResult("an element read differs from the one written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _open(bench, workload, libraries):
    """Each open is of another array: a library that remembers documents has not met this one for long."""
    source = bench.source(workload)
    arrays = fixtures.members(workload.count, workload.shape, workload.chunks)
    top = os.path.join(bench.folder(workload), "made")
    fixtures.write_group(top, arrays, source)
    bench.wait()
    n_opens = _OPENS_IN_A_ROW if workload.blocked else 1
    next_ones = {name: itertools.cycle(arrays) for name in libraries}

    def operation(name, library, i):
        library.activate()
        chosen = [(one, os.path.join(top, one.name)) for one in itertools.islice(next_ones[name], n_opens)]
        # No collection before each sample, as elsewhere: it would empty the CPU's caches of what an open runs.
        gc.disable()
        try:
            start = timing.clock()
            results = [library.read_first(library.open(path, V3), _FIRST) for _, path in chosen]
            elapsed = (timing.clock() - start) / n_opens
        finally:
            gc.enable()
        for (one, _), result in zip(chosen, results, strict=True):
            if not data.same(result, fixtures.first_chunk(source, one)[:_FIRST]):
                raise WrongResult("the elements read differ from those written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _write(bench, workload, libraries):
    source = bench.source(workload)
    on_disk = workload.place == "disk"
    top = bench.folder(workload)

    def operation(name, library, i):
        # Always a new directory. On disk it stays until the end of the workload: many file systems write slower for
        # a while after files have been deleted.
        path = os.path.join(top, f"{name}-{i}")
        library.activate()
        fixtures.create(path, workload.layout)
        handle = library.open_to_write(path, workload.layout.view)
        if on_disk:
            os.sync()  # so that nobody pays for the dirty pages of another
        elapsed, _ = timed(library.write, handle, source)
        if not fixtures.written_correctly(path, source, workload.layout):
            raise WrongResult("the chunk files do not hold the array written")
        if not on_disk:
            shutil.rmtree(path)
        return elapsed

    return take(bench, workload, libraries, operation)


def _write_box(bench, workload, libraries):
    box, fixture = _box_of(workload), bench.fixture(workload)
    changed = bench.source(workload).copy()
    changed[box] *= -1
    values = changed[box].copy()
    top = bench.folder(workload)

    def operation(name, library, i):
        path = os.path.join(top, name)
        library.activate()
        shutil.copytree(fixture.path, path)
        handle = library.open_to_write(path, workload.layout.view)
        elapsed, _ = timed(library.write_box, handle, box, values)
        if not fixtures.written_correctly(path, changed, workload.layout):
            raise WrongResult("the chunk files do not hold the array as it was changed")
        shutil.rmtree(path)
        return elapsed

    return take(bench, workload, libraries, operation)


def _append(bench, workload, libraries, method="append"):
    source = bench.source(workload)
    length = workload.chunks[0]
    parts = [source[at:at + length] for at in range(0, workload.shape[0], length)]
    top = bench.folder(workload)
    empty = dataclasses.replace(workload.layout, shape=(0, *workload.shape[1:]))

    def operation(name, library, i):
        path = os.path.join(top, name)
        library.activate()
        fixtures.create(path, empty)
        handle = library.open_to_write(path, empty.view)
        elapsed, _ = timed(getattr(library, method), handle, parts)
        if (fixtures.shape_of(path, empty) != workload.shape
                or not fixtures.written_correctly(path, source, workload.layout)):
            raise WrongResult("document and chunk files do not hold what was appended")
        shutil.rmtree(path)
        return elapsed

    return take(bench, workload, libraries, operation)


def _stream(bench, workload, libraries):
    return _append(bench, workload, libraries, "stream")


def _create(bench, workload, libraries):
    arrays = fixtures.members(workload.count, workload.shape, workload.chunks)
    top = bench.folder(workload)

    def operation(name, library, i):
        path = os.path.join(top, f"{name}-{i}")
        library.activate()
        elapsed, _ = timed(library.create_group, path, arrays)
        if not fixtures.group_holds(path, arrays):
            raise WrongResult("the documents are not those of the arrays asked for")
        shutil.rmtree(path)
        return elapsed

    return take(bench, workload, libraries, operation)


def _list(bench, workload, libraries):
    bench.folder(workload)
    return _listed(bench, workload, libraries, lambda library, path: library.list_group(path))


def _listed(bench, workload, libraries, listed):
    """Each round has a group of its own, which no library has listed before."""
    arrays = fixtures.members(workload.count, workload.shape, workload.chunks, workload.alike)
    expected = [(one.name, one.shape, one.dtype) for one in arrays]

    @functools.cache
    def made(i):
        path = os.path.join(bench.places[workload.place], workload.name, f"made{i}")
        fixtures.write_group(path, arrays)
        bench.wait()
        return path

    def operation(name, library, i):
        path = made(i)
        library.activate()
        elapsed, found = timed(listed, library, path)
        if sorted(found) != expected:
            raise WrongResult("the arrays listed are not those of the group")
        return elapsed

    return take(bench, workload, libraries, operation)


def _member(bench, workload, libraries):
    path = os.path.join(bench.folder(workload), "made")
    arrays = fixtures.members(workload.count, workload.shape, workload.chunks)
    fixtures.write_group(path, arrays)
    bench.wait()
    next_ones = {name: itertools.cycle(arrays) for name in libraries}

    def operation(name, library, i):
        library.activate()
        one = next(next_ones[name])
        elapsed, array = timed(library.open_member, path, one.name)
        if tuple(array.shape) != one.shape:
            raise WrongResult(f"the array that was opened has the shape {array.shape}")
        return elapsed

    return take(bench, workload, libraries, operation)


def _first_read(bench, workload, libraries):
    fixture = bench.fixture(workload)
    expected = bench.source(workload)[:_FIRST].tolist()

    def operation(name, library, i):
        elapsed, found = children.first_read(library.first_read, fixture.path, _FIRST)
        if found != expected:
            raise WrongResult("the elements read differ from those written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _memory(bench, workload, libraries):
    fixture = bench.fixture(workload)
    expected = children.digest(bench.source(workload))

    def operation(name, library, i):
        if i < 0:
            return None  # a new process each time: nothing to warm but the page cache, which the fixture's writing did
        peak, found = children.peak_of_read(name, library.threads, fixture.path, fixture.layout.view)
        if found != expected:
            raise WrongResult("the array read differs from the one written")
        return peak

    return take(bench, workload, libraries, operation)


def _write_memory(bench, workload, libraries):
    source = bench.source(workload)
    top = bench.folder(workload)
    np.save(os.path.join(top, "source.npy"), source)

    def operation(name, library, i):
        if i < 0:
            return None
        path, view = os.path.join(top, name), workload.layout.view
        fixtures.create(path, workload.layout)
        peak = children.peak_of_write(name, library.threads, path, view, os.path.join(top, "source.npy"))
        if not fixtures.written_correctly(path, source, workload.layout):
            raise WrongResult("the chunk files do not hold the array written")
        shutil.rmtree(path)
        return peak

    return take(bench, workload, libraries, operation)


def _set(bench, workload, libraries):
    path = _set_of(bench, workload)
    expected = reference_sets.expected(workload.count)

    def operation(name, library, i):
        library.activate()
        elapsed, handle = timed(library.open_set, path)
        if not library.set_says(handle, expected):
            raise WrongResult("the set says something else than was written")
        return elapsed

    return take(bench, workload, libraries, operation)


def _set_memory(bench, workload, libraries):
    path = _set_of(bench, workload)

    def operation(name, library, i):
        if i < 0:
            return None
        peak, n_found = children.peak_of_set(name, library.threads, path)
        if n_found != workload.count + 1:
            raise WrongResult(f"the set has {n_found} references")
        return peak

    return take(bench, workload, libraries, operation)


def _set_of(bench, workload):
    path = os.path.join(bench.folder(workload), "set.json")
    reference_sets.write_set(path, workload.count)
    return path


_KINDS = {"read": _read, "sparse": _sparse, "parts": _parts, "parts_at_once": _parts_at_once, "pieces": _pieces,
          "crops": _crops, "box": _box, "points": _points, "mask": _mask, "product": _product, "strided": _strided,
          "write_box": _write_box, "append": _append, "stream": _stream, "elements": _elements,
          "kept_elements": _kept_elements, "open": _open, "write": _write,
          "create": _create, "list": _list, "member": _member, "first_read": _first_read,
          "memory": _memory, "write_memory": _write_memory, "set": _set, "set_memory": _set_memory, "remote": _remote,
          "remote_list": _remote_list}
