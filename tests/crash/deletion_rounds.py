"""Rounds of `kill -9` at a random moment of a call that deletes or overwrites a group, each judged, and called again.

What stands after the kill is the old group with all of its members, none of them altered, or nothing, or the new one.
When the same call has come to its end, nothing of the old one is left: no member, no element, no attribute, no file.
"""
import os
import random
import signal
import time

import zcore

N_MEMBERS = 12
CALLS = {
    "mode w": lambda path, zarr_format: zcore.open_group(path, "w", path="g", zarr_format=zarr_format),
    "create_group": lambda path, zarr_format: zcore.create_group(path, path="g", zarr_format=zarr_format,
                                                                 overwrite=True),
    "create_array": lambda path, zarr_format: zcore.create_array(path, name="g", shape=4, dtype="i4", overwrite=True,
                                                                 zarr_format=zarr_format),
    "del": lambda path, zarr_format: zcore.open_group(path, "r+").__delitem__("g"),
}


def fill(path, zarr_format):
    group = zcore.open_group(path, "a", zarr_format=zarr_format).create_group("g", attributes={"old": True})
    for i in range(N_MEMBERS):
        place = f"m{i}" if i % 3 else f"x/y{i}/z"
        group.create_array(place, shape=8, chunks=2, dtype="i4", attributes={"old": i})[...] = i + 1
    zcore.consolidate_metadata(path, path="g")
    zcore.create_array(path, name="kept", shape=8, chunks=2, dtype="i4", zarr_format=zarr_format,
                       overwrite=True)[...] = 99


def check(path):
    """Judge what a kill has left; return what it is."""
    top = zcore.open_group(path)
    assert (top["kept"][...] == 99).all()
    group = top.get("g")
    if group is None:
        return "nothing"
    if isinstance(group, zcore.Array):
        assert not group[...].any() and group.attrs == {}, "chunks of the old group"
        return "new"
    members = dict(group.members(None))
    assert sorted(members) == sorted(dict(zcore.open_group(path, path="g", use_consolidated=False).members(None)))
    if not group.attrs:
        assert not members, f"an old member under a new group: {sorted(members)}"
        return "new"
    assert group.attrs == {"old": True}
    for place, member in members.items():
        if isinstance(member, zcore.Array):
            i = member.attrs["old"]
            assert (member[...] == i + 1).all(), f"an altered member: {place}"
    assert len([member for member in members.values() if isinstance(member, zcore.Array)]) == N_MEMBERS
    return "old"


def check_again(path, call, zarr_format):
    """Judge what the same call has left that came to its end."""
    names = [name for folder, _, names in os.walk(os.path.join(path, "g")) for name in names]
    assert [name for name in names if not name.startswith((".__zc_tmp.", "zarr.json", ".zgroup", ".zarray"))] == []
    if call == "del":
        assert "g" not in zcore.open_group(path)
    else:
        found = zcore.open(path, path="g")
        assert found.attrs == {}
        assert isinstance(found, zcore.Array) or not list(found.members(None))


def round_of(path, call, zarr_format, seconds):
    """Kill a child after some seconds; return whether that was before it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            CALLS[call](path, zarr_format)
            os._exit(0)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return os.WIFSIGNALED(status)


def rounds(path, call, zarr_format, n_rounds, seed):
    """Return how often a kill left what."""
    rng = random.Random(seed)
    hits = dict.fromkeys(("old", "nothing", "new"), 0)
    # Once to warm up, once to see how long it takes.
    for warm in ("warm", "warmer"):
        fill(f"{path}-{warm}", zarr_format)
        start = time.monotonic()
        CALLS[call](f"{path}-{warm}", zarr_format)
        longest = time.monotonic() - start
    for n in range(n_rounds):
        place = f"{path}-{n + 1}"
        fill(place, zarr_format)
        was_killed = round_of(place, call, zarr_format, rng.uniform(0, 2 * longest))
        left = check(place)
        hits[left] += 1
        assert was_killed or left == ("nothing" if call == "del" else "new")
        if call != "del" or left == "old":
            CALLS[call](place, zarr_format)
        check_again(place, call, zarr_format)
    return hits
