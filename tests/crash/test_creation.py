"""`kill -9` of a call that creates an array: nothing stands there, or all of it, and it goes on. And races."""
import pytest

import zcore

pytestmark = pytest.mark.usefixtures("lock_kind")

SCRIPT = """
import os, random, signal, time
import numpy as np

zarr_format, n_rounds = json.loads(sys.argv[2])
values = np.random.default_rng(0).integers(0, 99, (400, 100))
rng = random.Random(1)


def create(n):
    zcore.create_array(path, name=f"g/{n}", data=values, chunks=(5, 50), zarr_format=zarr_format, attributes={"x": 1})


ready()
zcore.create_group(path, path="g", zarr_format=zarr_format)
start = time.monotonic()
create("warm")
longest = time.monotonic() - start
hits = {"nothing": 0, "partly": 0, "all": 0}
n = 0
# How long a creation takes depends on the load: rounds go on until one was cut off half way.
while n < n_rounds or (not hits["partly"] and n < 20 * n_rounds):
    n += 1
    pid = os.fork()
    if pid == 0:
        try:
            create(n)
        finally:
            os._exit(1)
    time.sleep(rng.uniform(0, 1.5 * longest))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if str(n) in zcore.open_group(path, path="g"):
        hits["all"] += 1
        zcore.verify(path, repair=True)     # what was not removed yet
    else:
        n_rests = sum(name.startswith(".__zc_tmp") for name in os.listdir(path + "/g"))
        hits["partly" if n_rests > hits["partly"] else "nothing"] += 1
        create(n)
    assert (zcore.load(path, f"g/{n}") == values).all() and zcore.open(path, path=f"g/{n}").attrs == {"x": 1}
    del zcore.open_group(path, "r+", path="g")[str(n)]      # else each verify looks at all arrays so far
print(json.dumps(hits))
"""


@pytest.mark.thinned(2, "lock_kind", "zarr_format")
@pytest.mark.parametrize("n_rounds", [8, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_kill_of_what_creates_an_array_with_its_elements(crew, place, zarr_format, n_rounds):
    process = crew.start(place, SCRIPT, [zarr_format, n_rounds])
    crew.go([process])
    [hits] = crew.results([process])
    print(hits)
    assert sum(hits.values()) >= n_rounds and hits["partly"] > 0


EMPTY = """
import os, random, signal, time

zarr_format, n_rounds = json.loads(sys.argv[2])
rng = random.Random(1)


def create(name):
    return group.create_array(name, shape=6, chunks=4, dtype="i4", attributes={"x": name})


ready()
group = zcore.create_group(path, path="g", zarr_format=zarr_format)
for n in range(n_rounds):
    pid = os.fork()
    if pid == 0:
        try:
            for i in range(10**6):
                create(f"{n}-{i}")
        finally:
            os._exit(1)
    # Two are whole, however little time a busy machine gives to the child.
    while not os.path.exists(f"{path}/g/{n}-2"):
        time.sleep(0)
    time.sleep(rng.uniform(0, 0.01))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
found = dict(group.arrays())
hits = {"nodes": len(found), "rests": 0}
for name in os.listdir(f"{path}/g"):
    if "-" in name and name not in found:
        hits["rests"] += 1
        found[name] = create(name)
for name, array in found.items():
    assert array.shape == (6,) and array.attrs == {"x": name}
    if name.endswith("-0"):
        array[1:] = 5
        assert array[...].tolist() == [0, 5, 5, 5, 5, 5]
print(json.dumps(hits))
"""


@pytest.mark.thinned(2, "lock_kind", "zarr_format")
@pytest.mark.parametrize("n_rounds", [8, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_kill_of_what_creates_arrays_without_elements(crew, place, zarr_format, n_rounds):
    process = crew.start(place, EMPTY, [zarr_format, n_rounds])
    crew.go([process])
    [hits] = crew.results([process])
    print(hits)
    assert hits["nodes"] > n_rounds


RACE = """
group = zcore.open_group(path, "r+", zarr_format=3)
mine = []
ready()
for i in range(given["n"]):
    try:
        if given["way"] == "data":
            group.create_array(str(i), data=np.full(4, given["me"], "i4"), chunks=2, attributes={"by": given["me"]})
        else:
            group.create_array(str(i), shape=4, dtype="i4", chunks=2, fill_value=given["me"],
                               attributes={"by": given["me"]})
        mine.append(i)
    except zcore.NodeExistsError:
        pass
print(json.dumps(mine))
"""


@pytest.mark.parametrize("n", [50, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ways", [pytest.param(("empty", "empty", "empty"), marks=pytest.mark.slow),
                                  ("empty", "data", "empty")])
def test_of_processes_that_create_the_same_arrays_one_succeeds(crew, place, ways, n):
    """Whether it writes elements or not; and its array has all of its attributes and elements, none of another one."""
    group = zcore.create_group(place)
    processes = [crew.start(place, RACE, {"n": n, "me": me, "way": way}) for me, way in enumerate(ways, 1)]
    crew.go(processes)
    made = crew.results(processes)
    assert sorted(sum(made, [])) == list(range(n))
    for me, mine in enumerate(made, 1):
        for i in mine:
            array = group[str(i)]
            assert array.attrs == {"by": me} and array[...].tolist() == [me] * 4
    assert zcore.verify(place).problems == []
