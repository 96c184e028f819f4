"""`kill -9` of a call that creates an array with its elements: nothing stands there, or all of it, and it goes on."""
import pytest

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
    else:
        hits["partly" if any(zcore.DirectoryStore(path).list_prefix(f"g/{n}/")) else "nothing"] += 1
        create(n)
    assert (zcore.load(path, f"g/{n}") == values).all() and zcore.open(path, path=f"g/{n}").attrs == {"x": 1}
print(json.dumps(hits))
"""


@pytest.mark.parametrize("n_rounds", [20, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_a_kill_of_what_creates_an_array_with_its_elements(crew, place, zarr_format, n_rounds):
    process = crew.start(place, SCRIPT, [zarr_format, n_rounds])
    crew.go([process])
    [hits] = crew.results([process])
    print(hits)
    assert sum(hits.values()) >= n_rounds and hits["partly"] > 0
