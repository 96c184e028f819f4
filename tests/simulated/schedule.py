"""One schedule: what the writers call, what came of it, and whether docs/remote.md allows that.

Each element that is written is a number of its own: 1000 times the number of the call, plus its place among the
values of the call. So what is read tells who wrote it. A call has a begin and an end in the service's time; a call that
raised has no end, as its requests may still be carried out.
"""
import itertools
import math
import re
import traceback
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from unittest import mock

import numpy as np

import zcore
from tests.simulated.service import Connection, Faults, Simulation
from zcore.formats import FORMAT_OF
from zcore.hierarchy.unfinished import MARK
from zcore.stores.remote.store import RemoteStore

FOREVER = math.inf
# docs/remote.md, "Writers": requests without an answer that make an error, and changes of others.
MAX_TRIES, MAX_KEPT = 4, 8
N_COLUMNS = 2
FORMATS = (*[{"zarr_format": 3}] * 2, *[{"zarr_format": 2}] * 2, *[{"zarr_format": 3, "shards": (8, N_COLUMNS)}] * 2,
           {"zarr_format": "zmeta"})


@dataclass
class Call:
    number: int
    writer: int
    verb: str
    args: tuple
    begin: int
    end: float = FOREVER
    value: object = None
    error: BaseException | None = None
    faults: list = ()       # what was asked when its requests failed
    attributes: dict = field(default_factory=dict)

    def __str__(self):
        came = f"raised {type(self.error).__name__}: {self.error}" if self.error else f"returned {_short(self.value)}"
        return (f"{self.begin:5}-{self.end:<5} {self.number}: writer {self.writer} {self.verb}"
                f"{self.args} {came} ({len(self.faults)} faults)")

    @property
    def is_ok(self):
        return self.error is None

    @property
    def last(self):
        """When the last of its requests may have been carried out: one without a condition may come at any time."""
        return FOREVER if any([what[0] == "put" for what in self.faults]) else self.end


def _short(value):
    if isinstance(value, np.ndarray):
        return "".join(str(value[:, 0].tolist() if value.ndim == 2 else value.tolist()))
    return repr(value)


class Wrong(AssertionError):
    """The history breaks a promise."""


def check(is_right, *words):
    if not is_right:
        raise Wrong(" ".join(map(str, words)))


class Schedule:
    """The writers of one seed, their calls, and the judge of their history."""

    def __init__(self, seed):
        self.random = random = Random(seed)
        self.faults = Faults(random)
        self.simulation = Simulation(random, self.faults)
        self.calls = []
        self.numbers = itertools.count(1)
        self.n_writers = random.choice((1, 2, 2, 2, 3, 3, 4, 5, 8))
        self.format = random.choice(FORMATS)
        # Only one process may shrink, delete and overwrite, and only where listings are current.
        self.has_first = random.random() < 0.4 and not self.faults.stale
        self.stores = [self.store(i) for i in range(self.n_writers)]

    def store(self, number):
        store = RemoteStore(Connection(self.simulation, number), n_requests=1)
        # Else the trial is part of the schedule.
        store._honors_conditions = self.faults.tags and self.random.random() < 0.9
        return store

    def call(self, writer, verb, args, function, **more):
        """Call a function as a writer, and note it."""
        call = Call(next(self.numbers), writer, verb, args, self.simulation.clock, **more)
        self.calls.append(call)
        faults = self.simulation.faults_of.get(writer, [])
        n_before = len(faults)
        try:
            call.value = function(call.number)
            call.end = self.simulation.clock
        except zcore.ZcoreError as error:
            call.error = error
        except Exception as error:
            call.error = error
            traceback.print_exc()
            raise Wrong(f"{verb}{args}: {type(error).__name__}: {error}") from error
        finally:
            call.faults = faults[n_before:]
        return call

    def run(self):
        randbytes = Random(self.random.random()).randbytes
        # The service answers at once: a thread beside each request of the main thread would double the time.
        with (mock.patch("zcore.engine.requests.pause", lambda i: None), mock.patch("os.urandom", randbytes),
              mock.patch("zcore.workers.aside", lambda function, *args: function(*args)),
              mock.patch("zcore.workers.later", now), warnings.catch_warnings()):
            warnings.simplefilter("ignore")
            self.prepare()
            self.simulation.run([lambda i=i: self.work(i, Random(self.random.random()))
                                 for i in range(self.n_writers)])
            self.judge()

    def fresh(self):
        store = self.store("")
        store._honors_conditions = self.faults.tags
        return store

    def check_errors(self, allowed):
        """A call without a fault raises only what is allowed, a function of the call."""
        for call in self.calls:
            if call.error is not None and "simulated: " not in str(call.error):
                check(allowed(call), f"an error without a reason: {call}")
            elif call.error is not None and len(call.faults) < MAX_TRIES and all(
                    [is_change_of_document(what) for what in call.faults]):
                # Unless there were more changes meanwhile than a document has stamps.
                n_others = len([one for one in self.calls if one.writer != call.writer and one.end > call.begin])
                check(n_others >= MAX_KEPT // 2, f"a change was not made again: {call}: {call.faults}")


def now(function, done):
    """Call a function of the background at once."""
    value = exception = None
    try:
        value = function()
    except Exception as error:
        exception = error
    done(value, exception)


def is_change_of_document(what):
    """Whether a request puts a document on a condition."""
    return what[0].startswith("put ") and what[1].rpartition("/")[2] in (*FORMAT_OF, ".zattrs")


def write_by_writer(array, selection, values):
    w = array.writer()
    if w._shape()[0] < selection[0].stop:
        raise zcore.SelectionError("shrunk", dimension=0)     # the slice would be cut off, as in NumPy
    try:
        w.write(selection, values)
        w.close()
    finally:
        w.abort()


def values_of(number, n_rows):
    return 1000 * number + np.arange(n_rows * N_COLUMNS, dtype="i4").reshape(n_rows, N_COLUMNS)


class OneArray(Schedule):
    """Appends, writes, attributes, reads and copies of one array; the first writer may resize it."""

    def prepare(self):
        random = self.random
        self.n_old = random.randrange(12)
        self.chunk = random.choice((2, 3, 4)) if "shards" not in self.format else random.choice((2, 4))
        self.lock = True if self.faults.tags else None
        if self.lock is None:
            # Without conditions there is one writer, and nothing comes late.
            self.faults.kinds = ["lost", "refused", "twice"]
            self.has_first = False
        self.resizes = self.has_first and random.random() < 0.3
        chunks = (self.chunk, random.choice((1, N_COLUMNS)))
        settings = {**self.format, "chunks": chunks}
        if "shards" in settings:
            settings["chunks"] = (self.chunk, N_COLUMNS)
        store = self.fresh()
        has_groups = self.format["zarr_format"] != "zmeta"
        if has_groups:
            zcore.create_group(store, zarr_format=self.format["zarr_format"])
        number = next(self.numbers)
        zcore.create_array(store, name="x", data=values_of(number, self.n_old), fill_value=0, lock=self.lock,
                           threads=1, **settings)
        self.old = Call(number, -1, "write", (0, self.n_old, 0, N_COLUMNS), -1, 0)
        self.calls.append(self.old)
        if has_groups and self.faults.tags and random.random() < 0.2:
            zcore.consolidate_metadata(store)

    def work(self, me, random):
        opened = None
        store = self.stores[me]
        verbs = ["append"] * 2 + ["stream"] + ["write"] * 2 + ["tiles"] + ["read"] * 2 + [
            "attributes", "forget", "open", "copy", "consolidate", "copy to", "refresh"]
        if self.lock is None:
            verbs = verbs if me == 0 else ["read", "open"]
            verbs = [verb for verb in verbs if verb in ("append", "stream", "write", "tiles", "read", "open",
                                                        "refresh")]
        elif self.has_first and me == 0:
            verbs += ["resize"] * 4
        if self.resizes:
            # What a shrink that was cut off has left may show while rows are appended.
            verbs = (["resize"] * 6 + ["append", "refresh"] * 2 if me == 0
                     else ["append", "stream", "attributes", "copy", "copy"])
        if self.faults.stale:
            # A copy takes the chunks that are listed.
            verbs = [verb for verb in verbs if not verb.startswith("copy")]
        keys = []
        for _ in range(random.randrange(1, 15 if self.resizes and me == 0 else 6)):
            verb = random.choice(verbs) if opened is not None else "open"
            if verb == "open":
                def open_it(number):
                    return zcore.open(store, mode="r+", path="x", threads=1, lock=self.lock)
                call = self.call(me, "open", (), open_it)
                opened = call.value if call.is_ok else opened
                if call.is_ok:
                    call.value = opened.shape
                continue
            n = opened.shape[0]
            if verb == "append":
                k = random.randrange(1, 2 * self.chunk + 2)
                self.call(me, "append", (k,), lambda number, k=k: opened.append(values_of(number, k))[0] - k)
            elif verb == "stream":
                self.stream(me, opened, random)
            elif verb in ("write", "tiles"):
                limit = n
                if not limit:
                    continue
                a = random.randrange(limit)
                b = random.randrange(a, limit) + 1
                if random.random() < 0.4:
                    a, b = a - a % self.chunk, min(limit, a - a % self.chunk + self.chunk * random.randrange(1, 3))
                c, d = random.choice(((0, 2), (0, 2), (0, 1), (1, 2)))
                write = opened.__setitem__ if verb == "write" else lambda *args: write_by_writer(opened, *args)
                self.call(me, "write", (a, b, c, d), lambda number, a=a, b=b, c=c, d=d, write=write: write(
                    (slice(a, b), slice(c, d)), values_of(number, b - a)[:, c:d]))
            elif verb == "read":
                self.call(me, "read", (), lambda number: opened[...])
            elif verb == "refresh":
                self.call(me, "refresh", (), lambda number: opened.refresh().shape)
            elif verb == "attributes":
                keys.append(f"k{next(self.numbers)}")
                self.call(me, "attributes", (keys[-1],), lambda number: opened.attrs.__setitem__(keys[-1], number))
            elif verb == "forget" and keys:
                self.call(me, "forget", (keys[-1],), lambda number: opened.attrs.pop(keys.pop(), None) and None)
            elif verb == "resize":
                m = random.randrange(n + 5)
                self.call(me, "resize", (m,), lambda number, m=m: opened.resize((m, N_COLUMNS)))
            elif verb == "consolidate":
                self.call(me, "consolidate", (), lambda number: zcore.consolidate_metadata(store) and None)
            elif verb == "copy":
                self.call(me, "copy", (), lambda number: zcore.copy(
                    store, zcore.MemoryStore(), path="x", threads=1)[...])
            elif verb == "copy to":
                name = f"c{next(self.numbers)}"
                self.call(me, "copy to", (name,), lambda number, name=name: zcore.copy(
                    store, store, path="x", destination_path=name, threads=1) is None)

    def stream(self, me, opened, random):
        """Append frames by a writer. Each append in the background is a call of its own, with values of its own."""
        call = self.call(me, "writer", (), lambda number: opened.writer())
        if not call.is_ok:
            return
        w, call.value = call.value, None
        faults = self.simulation.faults_of.setdefault(me, [])
        part = None

        def rows(length):
            nonlocal part
            found = type(w)._rows(w, length)
            if part is not None and (found is None or part.args != (len(found),)):
                self.calls.remove(part)     # a race was lost, and with the new length no unit is full
                part = None
            if found is None:
                return None
            check((found == np.arange(w.n_stored, w.n_stored + len(found))[:, None]).all(),
                  f"{w} stores {found[:, 0]}")
            if part is None:
                part = Call(next(self.numbers), me, "append", (len(found),), self.simulation.clock)
                self.calls.append(part)
            part.value = length
            return values_of(part.number, len(found))

        def appended(n):
            nonlocal part
            part.end, part = self.simulation.clock, None
            type(w)._appended(w, n)

        def store_some():
            nonlocal part
            n_before = len(faults)
            try:
                type(w)._store_some(w)
            except zcore.ZcoreError as error:
                if part is not None:
                    part.error, part.faults, part = error, faults[n_before:], None
                raise

        w._rows, w._appended, w._store_some = rows, appended, store_some
        n_tries = random.randrange(1, 4)
        for i in range(random.randrange(1, 3 * self.unit)):
            is_last = random.random() < 0.1
            for _ in range(n_tries):
                with suppress(zcore.WriterError):
                    if w.n_given == i:
                        w.append(np.full((1, N_COLUMNS), i, "i4"))
                    if is_last or random.random() < 0.1:
                        w.flush()
                        check(w.n_stored == w.n_given == i + 1, f"{w} after a flush")
                    break
            if is_last or w.n_given == i:
                break
        with suppress(zcore.WriterError):
            w.close()
            check(w.n_stored == w.n_given, f"{w}")
        w.abort()

    @property
    def unit(self):
        """Rows of a stored object."""
        return self.format["shards"][0] if "shards" in self.format else self.chunk

    # the judge

    def judge(self):
        calls = self.calls
        resizes = [call for call in calls if call.verb == "resize"]

        def allowed(call):
            # An append that raised has given its rows back.
            is_shrunk = resizes or any([one.verb == "append" and not one.is_ok for one in calls])
            if is_shrunk and call.verb in ("write", "read", "copy", "copy to") and re.search(
                    "shrunk|replaced during|changed|outside|nothing of it stayed|do not lie in", str(call.error)):
                return True
            # A copy begins again while others append, but not for ever.
            n_appended = len([one for one in calls if one.verb == "append" and one.end > call.begin])
            if call.verb in ("copy", "copy to") and n_appended >= MAX_KEPT:
                return "nothing of it stayed" in str(call.error)
            return call.verb in ("consolidate",)

        self.check_errors(allowed)
        store = self.fresh()
        last = zcore.open(store, path="x", mode="r", threads=1)
        self.writes = [call for call in calls if call.verb in ("write", "append", "resize")]
        self.n_least = min([self.n_old, *[call.args[0] for call in resizes]])
        is_exact = self.lock is not None or "shards" not in self.format
        for call in calls:
            if call.verb in ("read", "copy") and call.is_ok:
                self.check_read(call.value, call.begin, call.end, call, is_exact)
            elif call.verb == "copy to":
                try:
                    copied = zcore.open(store, path=call.args[0], mode="r", threads=1)[...]
                except (zcore.NodeNotFoundError, zcore.MetadataError) as error:
                    check(not call.is_ok and (type(error) is zcore.NodeNotFoundError or MARK in str(error)),
                          call, error)
                else:
                    self.check_read(copied, call.begin, call.end, call, is_exact)
        n = last.shape[0]
        self.check_read(last[...], FOREVER, FOREVER, "the last read", is_exact)
        self.check_attributes(dict(last.attrs))
        if not resizes and self.lock is not None:
            self.check_rows(n, last[...])
        report = zcore.verify(store, path="x")
        is_left = self.n_writers > 1 or not all([call.is_ok for call in calls])
        check(set(report.by_kind) <= ({"left-over"} if is_left else set()), "verify finds", report)

    def covers(self, call, row, column):
        """Return whether a call that returned has set an element."""
        if call.verb == "write":
            a, b, c, d = call.args
            return a <= row < b and c <= column < d
        if call.verb == "append":
            return call.is_ok and call.value <= row < call.value + call.args[0]
        return row >= call.args[0]

    def is_beyond(self, call, row):
        """Return whether a call has found the array to be shorter: what was in the row before is gone."""
        if call.verb == "append":
            return call.is_ok and row >= call.value + call.args[0]
        return call.verb in ("open", "refresh") and call.is_ok and row >= call.value[0]

    def check_read(self, found, begin, end, who, is_exact):
        for (row, column), value in np.ndenumerate(found):
            value = int(value)
            over = [call for call in self.writes if self.covers(call, row, column)]
            beyond = [call for call in self.calls if self.is_beyond(call, row)]
            number, place = divmod(value, 1000)
            where = f"{who}: {value} in row {row}, column {column}"
            if value == 0:
                writers = [Call(0, -1, "nothing", (), -1, -1),
                           *[call for call in (*over, *beyond) if call.begin < end and (
                               call.verb == "resize" or call in beyond)]]
                # A write may have found a row that an append has given back since, as it has failed.
                over = [call for call in over if call.verb != "write" or row < self.n_least or not any(
                    one.verb == "append" and not one.is_ok and one.begin < call.end for one in self.writes)]
            else:
                writers = [call for call in self.writes if call.number == number and call.begin < end]
                check(writers, where, "was not written by anybody")
                writer = writers[0]
                check(place % N_COLUMNS == column, where, "is from another column")
                if not is_exact:
                    continue     # chunks of two versions of a shard without an ETag
                if writer.verb == "write" or writer.is_ok:
                    start = writer.value if writer.verb == "append" else writer.args[0]
                    check(writer in over and place // N_COLUMNS == row - start, where, "is from another place")
                else:
                    # An append that raised; whose rows are others' by now.
                    for call in over:
                        if call.verb == "append" and call.end < begin and not any(
                                one.verb == "resize" and one.end > min(call.begin, writer.begin)
                                for one in self.writes):
                            check(False, where, f"is of an append that raised, in the place of {call}")
            if is_exact:
                is_right = any([not any([call.end < begin and call.begin > writer.last for call in (*over, *beyond)])
                                for writer in writers])
                check(is_right, where, "was overwritten, or lost:", *over)

    def check_attributes(self, found):
        for call in self.calls:
            if call.verb != "attributes":
                continue
            key = call.args[0]
            forgotten = [one for one in self.calls if one.verb == "forget" and one.args[0] == key
                         and one.begin >= call.begin]
            if call.is_ok and not forgotten:
                check(found.get(key) == call.number, f"attribute {key} is lost: {call}")
            if call.is_ok and any(one.is_ok for one in forgotten):
                check(key not in found, f"attribute {key} is back: {call}")
            check(found.get(key, call.number) in [one.number for one in self.calls
                                                  if one.verb == "attributes" and one.args[0] == key],
                  f"attribute {key} is {found.get(key)}: {call}")

    def check_rows(self, n, found):
        """Appends that returned have their rows alone; others leave rows only where that is documented."""
        appends = [call for call in self.calls if call.verb == "append"]
        owned = set(range(self.n_old))
        for call in appends:
            if call.is_ok:
                rows = set(range(call.value, call.value + call.args[0]))
                check(not owned & rows, f"two appends have the same rows: {call}")
                owned |= rows
        check(max(owned, default=-1) < n, f"the shape {n} lacks rows of an append that returned")
        # They are given back only while the document is that of the append.
        changes = [call for call in self.calls if call.verb in ("append", "attributes", "forget")]
        excused = sum([call.args[0] for call in appends if not call.is_ok and (
            len(call.faults) >= MAX_TRIES or any([one.writer != call.writer and one.end > call.begin
                                               for one in changes]))])
        filled = [row for row in range(n) if row not in owned and not found[row].all()]
        check(len(filled) <= excused, f"rows {filled} have fill values, {excused} are excused")


class Nodes(Schedule):
    """Creations, and the first writer may also overwrite and delete. A shape is that of one creation, or of all."""

    PATHS = ("n", "g/m")

    def prepare(self):
        self.faults.tags = True
        self.n_alike = self.random.choice((None, 7)) if self.has_first else None
        for store in self.stores:
            store._client.swaps = True
        if self.format["zarr_format"] != "zmeta" and self.random.random() < 0.5:
            zcore.create_group(self.fresh(), zarr_format=self.format["zarr_format"])
        for path in self.PATHS:
            if self.random.random() < 0.4:
                self.call(-1, "create", (path, True), lambda number, path=path: self.create(
                    self.fresh(), path, number, True, False))

    def n_rows(self, number):
        """Return the length of the array that a call creates."""
        return self.n_alike or number

    def create(self, store, path, number, has_data, overwrite):
        rows = self.n_rows(number)
        settings = {**self.format, "chunks": (4, N_COLUMNS)}
        kind = {"data": values_of(number, rows)} if has_data else {"shape": (rows, N_COLUMNS), "dtype": "i4"}
        zcore.create_array(store, name=path, **kind, attributes={"number": number}, overwrite=overwrite, threads=1,
                           fill_value=0, **settings)

    def work(self, me, random):
        store = self.stores[me]
        is_first = self.has_first and me == 0
        verbs = ["create"] * 4 + ["read"] * 3 + ["attributes", "copy to", "consolidate"]
        if is_first:
            verbs += ["overwrite", "delete" if self.format["zarr_format"] != "zmeta" else "overwrite"] * 5
        elif self.has_first:
            # While one overwrites, no other one may create there.
            verbs = ["read"] * 5 + ["attributes", "consolidate"]
        if self.n_alike:
            # Only chunks tell one array from another: many reads during many overwrites.
            verbs = ["overwrite"] if is_first else ["read"]
        for _ in range(random.randrange(1, 13 if self.n_alike else 7)):
            verb, path = random.choice(verbs), random.choice(self.PATHS[:1 if self.n_alike else None])
            has_data = random.random() < (0.95 if self.n_alike else 0.6)
            if verb in ("create", "overwrite"):
                # A chunk that comes late would mix with the chunks of the node that replaces this one.
                self.simulation.keep_in_time(me, self.has_first)
                self.call(me, verb, (path, has_data), lambda number, path=path, has_data=has_data, verb=verb:
                          self.create(store, path, number, has_data, verb == "overwrite"))
            elif verb == "delete":
                self.simulation.keep_in_time(me, True)
                self.call(me, verb, (path,), lambda number, path=path: zcore.open_group(
                    store, "r+").__delitem__(path))
            elif verb == "read":
                self.call(me, verb, (path,), lambda number, path=path: zcore.open_array(
                    store, "r", path=path, threads=1)[...])
            elif verb == "attributes":
                self.call(me, verb, (path,), lambda number, path=path: zcore.open_array(
                    store, "r+", path=path, threads=1).attrs.__setitem__(f"k{number}", number))
            elif verb == "copy to":
                # One that fails leaves its place, and a late chunk would come into the node that is created there.
                self.simulation.keep_in_time(me, True)
                self.call(me, verb, (path,), lambda number, path=path: zcore.copy(
                    zcore.array(values_of(number, self.n_rows(number)), zarr_format=self.format["zarr_format"],
                                chunks=(4, 2)), store, destination_path=path, threads=1) is None)
            elif verb == "consolidate":
                self.call(me, verb, (), lambda number: zcore.consolidate_metadata(store) and None)
            self.simulation.keep_in_time(me, False)

    def judge(self):
        def allowed(call):
            text = str(call.error)
            if type(call.error) in (zcore.NodeNotFoundError, zcore.NodeExistsError):
                return True
            if MARK in text:
                return call.verb not in ("create", "overwrite", "delete")
            if call.verb in ("create", "copy to") and "no document says of which node" in text:
                return True
            return call.verb == "consolidate" or self.has_first and re.search("replaced|meanwhile|shrunk|no document",
                                                                              text)

        self.check_errors(allowed)
        for call in self.calls:
            if call.verb == "read" and call.is_ok:
                self.check_content(call.value, call)
        for path in self.PATHS:
            made = [call for call in self.calls if call.verb in ("create", "overwrite", "copy to")
                    and call.args[0] == path]
            removed = [call for call in self.calls if call.verb in ("delete", "overwrite") and call.args[0] == path]
            winners = [call for call in made if call.is_ok and call.verb != "overwrite"]
            check(len(winners) <= 1 + len(removed), "two creations have won:", *winners)
            try:
                opened = zcore.open_array(self.fresh(), "r", path=path, threads=1)
                found = opened[...]
            except (zcore.NodeNotFoundError, zcore.MetadataError) as error:
                check(type(error) is zcore.NodeNotFoundError or MARK in str(error), error)
                check(not winners or removed, f"{path} is gone: {error}", *winners)
                if not removed:
                    check(all([not call.is_ok for call in made]), error)
                continue
            self.check_content(found, f"the last read of {path}")
            check(any([len(found) == self.n_rows(call.number) for call in made]), f"{path} has a shape of its own")
            if winners and not removed:
                check(len(found) == self.n_rows(winners[0].number), f"{path} is not that of {winners[0]}")
            if not removed:
                for call in self.calls:
                    if call.verb == "attributes" and call.args[0] == path and call.is_ok:
                        check(opened.attrs.get(f"k{call.number}") == call.number, f"an attribute is lost: {call}")

    def check_content(self, found, who):
        """All elements are of one array; after a replacement, those of the new one in the shape of the old one."""
        n, made = len(found), []
        for call in self.calls:
            if call.verb in ("create", "overwrite", "copy to") and (
                    self.n_rows(call.number) == n or self.has_first and self.n_rows(call.number) > n):
                has_data = call.verb == "copy to" or call.args[1]
                made.append(values_of(call.number, n) if has_data else np.zeros((n, N_COLUMNS), "i4"))
        check(any([np.array_equal(found, one) for one in made]),
              f"{who}: not the elements of one array: {found.tolist()}")


def schedule_of(seed):
    return (OneArray if Random(seed).random() < 0.7 else Nodes)(seed)


def run(seed, log=None):
    """Run a schedule. Return None, or what is wrong, as text."""
    schedule = schedule_of(seed)
    schedule.simulation.log = log
    try:
        schedule.run()
    except Wrong as wrong:
        return (f"seed {seed}: {wrong}\n  " + "\n  ".join(map(str, schedule.calls)))
    except BaseException as error:
        return (f"seed {seed}: {''.join(traceback.format_exception(error))}\n  "
                + "\n  ".join(map(str, schedule.calls)))
    return None


