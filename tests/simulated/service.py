"""The service and its scheduler.

Each writer is a thread that makes one request at a time. Only one thread runs: the one whose request was just answered.
It runs until its next request, and then draws which of the waiting requests is answered next, and how. So a run depends
on its seed alone.
"""
import itertools
import threading
from _thread import allocate_lock

from zcore.stores.base import resolve_range
from zcore.stores.remote.client import ABSENT, Answer, Client, ConditionError

MAX_REQUESTS = 20_000     # of one schedule; a call that makes more does not end
MAX_OLD = 6               # earlier listings


class Faults:
    """How often each thing happens to a request; all are probabilities."""

    def __init__(self, random):
        self.fault = random.choice((0, 0, 0.01, 0.05, 0.1, 0.25))
        kinds = ("lost", "refused", "late", "twice")
        self.kinds = [kind for kind in kinds if random.random() < 0.6] or [random.choice(kinds)]
        self.sticky = random.choice((0, 0, 0.5, 0.8, 0.95))     # the same writer goes on
        self.deed = random.choice((0.02, 0.1, 0.5))             # a late deed is done now
        self.stale = random.random() < 0.15                     # listings are of an earlier moment
        self.tags = random.random() > 0.1


class _Request:
    def __init__(self, what, deed, changes):
        self.what, self.deed, self.changes = what, deed, changes
        self.value = self.error = None
        self.turn = allocate_lock()
        self.turn.acquire()


class Simulation:
    """A service in memory, and the order of the requests to it."""

    def __init__(self, random, faults):
        self.random, self.faults = random, faults
        self.values, self.clock = {}, 0
        self.tags = itertools.count(1)
        self.is_free = True           # requests are carried out at once
        self.log = None               # a list: what happened, to be shown
        self.faults_of = {}           # by writer: what was asked when its requests failed
        self._waiting, self._late, self._last, self._listings = {}, [], None, [()]
        self._over = allocate_lock()
        self._never_late = set()

    def run(self, works):
        """Run a function per writer; its errors are those of the test."""
        failed = []
        self.is_free = False
        self._over.acquire()
        for number, work in enumerate(works):
            request = self._waiting[number] = _Request("begin", None, False)
            self.faults_of[number] = []
            threading.Thread(target=self._thread, args=(work, request, failed), daemon=True).start()
        self._pass_on(None)
        self._over.acquire()
        self.is_free = True
        for deed in self._late:
            if self.random.random() < 0.8:
                deed()
        if failed:
            raise failed[0]

    def _thread(self, work, request, failed):
        request.turn.acquire()
        try:
            work()
        except BaseException as error:
            failed.append(error)
        if self._waiting:
            self._pass_on(None)
        else:
            self._over.release()

    def keep_in_time(self, number, is_kept):
        """Whether changes of a writer are not carried out after their answers are lost."""
        (self._never_late.add if is_kept else self._never_late.discard)(number)

    def request(self, number, what, deed, changes=False):
        """Return what `deed` returns, when its turn comes."""
        if self.is_free:
            return deed()
        request = self._waiting[number] = _Request(what, deed, changes)
        self._pass_on(number)
        if request.error is not None:
            raise request.error
        return request.value

    def _pass_on(self, number):
        """Let the next writer go on, and wait for this one's turn."""
        mine = self._waiting.get(number)
        chosen, request = self._answer()
        if chosen != number:
            request.turn.release()
            if mine is not None:
                mine.turn.acquire()

    def _answer(self):
        random, faults = self.random, self.faults
        while self._late and random.random() < faults.deed:
            self.clock += 1
            self._late.pop(random.randrange(len(self._late)))()
        number = self._last
        if number not in self._waiting or random.random() >= faults.sticky:
            number = random.choice(sorted(self._waiting))
        self._last = number
        request = self._waiting.pop(number)
        self.clock += 1
        if self.clock > MAX_REQUESTS:
            request.error = SystemExit("the calls do not end")
        elif request.deed is not None:
            kind = "done"
            if random.random() < faults.fault and self.clock < MAX_REQUESTS // 2:
                kind = random.choice(faults.kinds)
            try:
                self._carry_out(number, request, kind)
            except Exception as error:
                request.error = error
            if self.log is not None:
                self.log.append((self.clock, number, request.what, kind, request.error))
        return number, request

    def _carry_out(self, number, request, kind):
        if kind == "late" and number in self._never_late:
            kind = "lost"
        if kind == "twice" and request.changes:
            request.deed()
        if kind in ("done", "twice"):
            request.value = request.deed()
            return
        self.faults_of[number].append(request.what)
        if request.changes and kind != "refused":
            def deed():
                try:
                    request.deed()
                    outcome = "done late"
                except ConditionError:
                    outcome = "refused late"
                if self.log is not None:
                    self.log.append((self.clock, number, request.what, outcome, None))

            if kind == "late":
                self._late.append(deed)
            else:
                deed()
        raise ConnectionResetError(104, f"simulated: {kind}")

    # the service

    def put(self, name, data, condition):
        now = self.values.get(name, (None, ABSENT))[1]
        if condition is not None and condition != now:
            raise ConditionError
        is_new = name not in self.values
        self.values[name] = data, next(self.tags)
        if is_new:
            self._note()
        return self.values[name][1]

    def delete(self, names):
        for name in names:
            self.values.pop(name, None)
        self._note()

    def _note(self):
        if self.faults.stale:
            self._listings = [*self._listings[1 - MAX_OLD:], tuple((k, len(v)) for k, (v, _) in self.values.items())]

    def names(self, prefix):
        if self.faults.stale and not self.is_free:
            found = self.random.choice(self._listings)
        else:
            found = [(name, len(value)) for name, (value, _) in self.values.items()]
        return sorted([one for one in found if one[0].startswith(prefix)])


class Connection(Client):
    """The client of one writer, which is a process of its own to zcore: locks of one do not hold back another."""

    lists, writes = True, True

    def __init__(self, simulation, number):
        self.url = f"simulated{number}://"
        self.swaps = self.copies = simulation.faults.tags
        self._simulation, self._number = simulation, number

    def _request(self, what, deed, changes=False):
        return self._simulation.request(self._number, what, deed, changes)

    def get(self, name, byte_range):
        def deed():
            if name not in self._simulation.values:
                return None
            value, tag = self._simulation.values[name]
            start, stop = resolve_range(byte_range, len(value))
            return Answer(value[start:stop], len(value), tag if self.swaps else None)

        return self._request(("get", name, byte_range), deed)

    def put(self, name, data, condition=None):
        data = bytes(data)
        what = "put" if condition is None else "put new" if condition is ABSENT else f"put if {condition}"
        return self._request((what, name, len(data)), lambda: self._simulation.put(name, data, condition), True)

    def copy(self, name, new):
        def deed():
            if name in self._simulation.values:
                self._simulation.put(new, self._simulation.values[name][0], None)

        return self._request(("copy", name, new), deed, True)

    def delete(self, names):
        names = tuple(names)
        return self._request(("delete", names), lambda: self._simulation.delete(names), True)

    def list_dir(self, prefix):
        def deed():
            below = [name[len(prefix):] for name, _ in self._simulation.names(prefix)]
            return ([prefix + name for name in below if "/" not in name],
                    sorted({prefix + name.partition("/")[0] + "/" for name in below if "/" in name}))

        return self._request(("list", prefix), deed)

    def list_all(self, prefix):
        yield self._request(("list all", prefix), lambda: self._simulation.names(prefix))
