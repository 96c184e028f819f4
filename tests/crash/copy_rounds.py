"""Copies that are killed at random moments, again and again, until they have come to an end: judged after each kill.

A child is forked and copies; the parent kills it within about the time that a whole copy takes. The destination is
absent then, or whole: what was there before or what is to be there. Whoever copies the next time goes on. Where
something is overwritten, it or the new one stands there; where the system cannot exchange two names, or the store knows
no renames, it does as soon as somebody has repaired what a kill has left.
"""
import errno
import itertools
import os
import random
import shutil
import signal
import time

import numpy as np

import zcore
from zcore.stores import OBJECTS
from zcore.stores.directory import staged

VALUES = np.random.default_rng(8).integers(0, 1000, (150, 130)).astype("i4")
VALUES[40:60, 20:70] = 0     # some objects are absent
SETTINGS = {
    "objects": {"zarr_format": 2},
    "slabs": {"chunks": (7, 130)},
    "passes": {"chunks": (150, 2), "memory": 12000},
    "hierarchy": {"chunks": (50, 9)},
    "overwrite": {"chunks": (10, 130), "overwrite": True},
    "renames": {"chunks": (10, 130), "overwrite": True},
    "staged": {"chunks": (10, 130), "overwrite": True},
}
REPLACED = ("overwrite", "renames", "staged")


class NoRenames(zcore.DirectoryStore):
    """A store like one of a service: values are set, got and erased."""

    def locate(self, prefix):
        return OBJECTS


def no_exchange(*_):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def destination_of(place, kind):
    return NoRenames(place) if kind == "staged" else place


def make_sources(path):
    zcore.create_array(path + "/array", data=VALUES, chunks=(10, 13), attributes={"x": 1})
    zcore.create_array(path + "/rows", data=VALUES, chunks=(1, 130), attributes={"x": 1})
    group = zcore.create_group(path + "/hierarchy", attributes={"x": 1})
    for name in ("a", "b/c", "b/d"):
        group.create_array(name, data=VALUES, chunks=(10, 13), attributes={"x": 1})
    zcore.consolidate_metadata(path + "/hierarchy")


def source_of(path, kind):
    return f"{path}/{ {'hierarchy': 'hierarchy', 'passes': 'rows'}.get(kind, 'array')}"


def is_whole(place, kind):
    """Whether the destination is what it is to be; it may also be what it was before it is overwritten."""
    node = zcore.open(place)
    if kind in REPLACED and node.shape == (1,):
        assert node[0] == 7
        return False
    assert node.attrs["x"] == 1, kind
    if kind == "hierarchy":
        assert sorted(zcore.open_consolidated(place)._copy) == ["a", "b", "b/c", "b/d"]
        arrays = [node[name] for name in ("a", "b/c", "b/d")]
    else:
        arrays = [node]
    assert all(np.array_equal(array[...], VALUES) for array in arrays), kind
    report = zcore.verify(place)
    assert report.ok or (kind == "staged" and report.by_kind.keys() == {"left-over"}), report
    return True


def rounds(path, kinds, n_kills, seed):
    """Return how many kills have hit a copy of each kind, and how many copies came to an end."""
    rng = random.Random(seed)
    make_sources(path)
    hits = dict.fromkeys(kinds, 0)
    n_ended = 0
    while sum(hits.values()) < n_kills:
        kind = kinds[n_ended % len(kinds)]
        place = f"{path}/new"

        def copy(kind=kind, place=place):
            zcore.copy(source_of(path, kind), destination_of(place, kind), **SETTINGS[kind])

        start = time.perf_counter()
        copy()
        duration = time.perf_counter() - start
        if kind in REPLACED:
            zcore.create_array(place, data=np.full(1, 7), overwrite=True)
        else:
            shutil.rmtree(place)
        for n in itertools.count():
            pid = os.fork()
            if pid == 0:
                if kind == "renames":
                    staged.exchange = no_exchange
                copy()
                os._exit(0)
            # Longer and longer: a child may need more time than the parent did, and would never come to the end.
            time.sleep(rng.uniform(0, (1.2 + 0.05 * n) * duration))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if kind in ("renames", "staged") and rng.random() < 0.5:
                zcore.verify(destination_of(place, kind), repair=True)
            elif kind in ("renames", "staged") and os.WIFSIGNALED(status):
                hits[kind] += 1
                continue     # the next copy goes on from wherever it was
            if kind in REPLACED or os.path.exists(place):
                if is_whole(place, kind):
                    break
            assert os.WIFSIGNALED(status), f"{kind}: the copy ended without a destination"
            hits[kind] += 1
        n_ended += 1
        # What a kill right after the end leaves behind is taken away by the next one.
        left = set(os.listdir(path)) - {"array", "rows", "hierarchy", "new"}
        assert left <= {".__zc_tmp.copy.new"}, left
        shutil.rmtree(place)
    return {**hits, "ended": n_ended}
