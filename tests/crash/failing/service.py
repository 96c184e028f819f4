"""A service of which the n-th request fails, under every verb that writes: `python -m tests.crash.failing.service`.

A request is not carried out, or it is and its answer is lost. Afterwards the same is looked at as after a failing call
of the system (`rounds.py`). The last line is that of a part of the campaign.
"""
import argparse
import gc
import itertools
import json
import os
import random
import re
import sys
import threading
import time

import zcore
from tests.crash.failing.rounds import Rounds
from tests.crash.failing.state import TEMPORARY, store_state
from tests.crash.failing.verbs import SAFE, VALUES, Verb
from zcore.stores.base import resolve_range
from zcore.stores.remote.client import ABSENT, Answer, Client, ConditionError

BEFORE, AFTER = "BEFORE", "AFTER"


class Service(Client):
    """A service in memory."""

    url, lists, writes, swaps, copies = "failing://", True, True, True, True

    def __init__(self):
        self.values = {}
        self.failed = None
        self._tags = itertools.count()
        self._lock = threading.Lock()
        self._left = self._kind = None
        self._n = 0

    def run(self, function, kind, n, number):
        """Call a function while the n-th request fails; return its result, its error, and how many came."""
        result = error = self.failed = None
        self._n, self._left, self._kind = 0, n, kind
        try:
            result = function()
        except Exception as exc:
            error = exc
        self._left = None
        return result, error, self._n

    def _request(self, what, carry_out):
        with self._lock:
            if self._left is None:
                return carry_out()
            fails = self._n == self._left
            self._n += 1
            if not fails:
                return carry_out()
            self.failed = what
            if self._kind == AFTER:
                carry_out()
            raise ConnectionResetError(104, "the connection was reset")

    def get(self, name, byte_range):
        def carry_out():
            if name not in self.values:
                return None
            value, tag = self.values[name]
            start, stop = resolve_range(byte_range, len(value))
            return Answer(value[start:stop], len(value), tag)

        return self._request("get", carry_out)

    def put(self, name, data, condition=None):
        def carry_out():
            now = self.values.get(name, (None, ABSENT))[1]
            if condition is not None and condition != now:
                raise ConditionError
            self.values[name] = bytes(data), next(self._tags)
            return self.values[name][1]

        return self._request("put", carry_out)

    def copy(self, name, new):
        def carry_out():
            if name in self.values:
                self.values[new] = self.values[name][0], next(self._tags)

        return self._request("copy", carry_out)

    def delete(self, names):
        def carry_out():
            for name in names:
                self.values.pop(name, None)

        return self._request("delete", carry_out)

    def list_dir(self, prefix):
        def carry_out():
            below = [name[len(prefix):] for name in self.values if name.startswith(prefix)]
            return ([prefix + name for name in below if "/" not in name],
                    sorted({prefix + name.partition("/")[0] + "/" for name in below if "/" in name}))

        return self._request("list", carry_out)

    def list_all(self, prefix):
        yield self._request("list", lambda: [(name, len(value)) for name, (value, _) in sorted(self.values.items())
                                             if name.startswith(prefix)])


def _verbs():
    verbs = {}

    def add(name, make, call, *, is_whole=True, twice=(), changes=False, may_vanish=False):
        verbs[name] = Verb(make, call, is_whole, twice, changes, SAFE, may_vanish)

    for kind, options in (("v3", {}), ("v2", {"zarr_format": 2}), ("shards", {"shards": (8, 8)})):
        def new(store, name, options=options, **given):
            given = {"attributes": {"old": 1}, **given, **options}
            return zcore.create_array(store, name=name, data=VALUES, chunks=(4, 8), **given)

        def make(store, new=new):
            new(store, "x")

        def on(change):
            def call(store, kept):
                if "x" not in kept:
                    kept["x"] = zcore.open(store, path="x", mode="r+")
                return change(kept["x"])
            return call

        def create(store, kept, new=new):
            # What a creation has left that was cut off, needs it (docs/robustness.md, "Cut off").
            kept["again"] = "again" in kept
            new(store, "y", overwrite=kept["again"])

        add(f"{kind}: read", make, on(lambda a: a[...]))
        add(f"{kind}: write", make, on(lambda a: a.__setitem__(..., 500 + VALUES)), is_whole=False)
        add(f"{kind}: merge", make, on(lambda a: a.__setitem__((slice(2, 7), 1), 600)), is_whole=False)
        add(f"{kind}: erase", make, on(lambda a: a.__setitem__(..., 0)), is_whole=False)
        add(f"{kind}: shrink", make, on(lambda a: a.resize((5, 3))))
        add(f"{kind}: grow", make, on(lambda a: a.resize((20, 9))))
        add(f"{kind}: append", make, on(lambda a: a.append(VALUES[:3])), changes=True)
        add(f"{kind}: attributes", make, on(lambda a: a.attrs.__setitem__("new", 2)))
        add(f"{kind}: create", make, create, twice=zcore.NodeExistsError)
        add(f"{kind}: overwrite", make,
            lambda store, kept, new=new: new(store, "x", attributes={"new": 1}, overwrite=True),
            is_whole=False, may_vanish=True)

    def make_group(store):
        group = zcore.create_group(store, path="g", attributes={"old": 1})
        for name in ("a", "b/c"):
            group.create_array(name, data=VALUES, chunks=(4, 8), attributes={"old": 1})
        zcore.consolidate_metadata(store, path="g")

    def of_group(change):
        return lambda store, kept: change(zcore.open_group(store, "r+", path="g"))

    def move(store, kept):
        group = zcore.open_group(store, "r+", path="g")
        if "m/n" in group and "a" in group:
            del group["a"]      # which the move could not delete
        else:
            group.move("a", "m/n")

    add("group: attributes", make_group, of_group(lambda g: g.attrs.__setitem__("new", 2)))
    add("group: delete", make_group, of_group(lambda g: g.__delitem__("a")), twice=zcore.NodeNotFoundError)
    add("group: move", make_group, move, is_whole=False, twice=zcore.NodeNotFoundError)
    add("group: require", make_group, of_group(lambda g: g.require_group("n/m")), is_whole=False)
    add("group: consolidate", make_group, lambda store, kept: zcore.consolidate_metadata(store, path="g"))
    add("copy: from it", make_group, lambda store, kept: zcore.copy(
        store, kept.setdefault("store", zcore.MemoryStore()), path="g"), twice=zcore.NodeExistsError)
    add("copy: to it", make_group, lambda store, kept: zcore.copy(
        store, store, path="g", destination_path="z", chunks=(8, 4)), twice=zcore.NodeExistsError)
    add("verify", make_group, lambda store, kept: zcore.verify(store) and None)
    return verbs


VERBS = _verbs()


class ServiceRounds(Rounds):
    """The rounds of one verb. A client is what takes the place of a folder."""

    def __init__(self, name, kind):
        self.name, self.kind, self.verb, self.number = name, kind, VERBS[name], 0
        self.found = []
        self.library = self.place = Service()
        self.verb.make(self.place)
        self.before = dict(self.place.values)
        self.old = self.look({})
        self.kept = {}
        self.expected = self.call()
        self.new = self.look(self.kept)
        self.kept.clear()
        gc.collect()
        self.n_threads = len(os.listdir("/proc/self/task")) + 32     # of the pool for requests

    def restore(self):
        self.place.values = dict(self.before)

    def look(self, kept):
        nodes = {}
        temporary = {name for name in self.place.values if TEMPORARY in name}
        names = self.place.values.keys() - temporary
        for name in sorted({name.partition("/")[0] for name in names}):
            try:
                nodes.update({f"{name}/{place}": node for place, node in store_state(self.place, name).items()})
            except zcore.MetadataError as error:
                # Of a node that is being created.
                assert "creat" in str(error), error
        if "store" in kept:
            nodes.update(store_state(kept["store"]))
        return nodes, names, temporary

    def is_right(self, error):
        return isinstance(error, zcore.ZcoreError) and "failing://" in str(error)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.crash.failing.service",
                                     description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--verbs", default="", help="a regular expression")
    given = parser.parse_args()
    start = time.monotonic()
    result = {"part": "failing requests", "tried": 0, "unit": "failures", "found": 0, "seconds": 0}
    todo = [(name, kind) for kind in (BEFORE, AFTER) for name in VERBS if re.search(given.verbs, name)]
    random.shuffle(todo)
    for i, (name, kind) in enumerate(todo):
        if i and time.monotonic() - start > given.seconds:
            result["skipped"] = f"{len(todo) - i} of {len(todo)} pairs of verb and failure: no time was left"
            break
        n, found = ServiceRounds(name, kind).run()
        print(f"{name}, {kind}: {n} failures", *found, sep="\n  ", flush=True)
        result["tried"] += n
        result["found"] += len(found)
    result["seconds"] = round(time.monotonic() - start, 1)
    print(json.dumps(result))
    return int(result["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
