"""What is deleted or overwritten does not come back, whenever the process is killed and whoever comes in between."""
import os
import resource
from pathlib import Path

import pytest

import zcore
from tests.campaign import counted, round_number
from tests.full_disk import run_on_tmpfs

from . import deletion_rounds
from .deletion_rounds import CALLS

SCRIPT = Path(deletion_rounds.__file__).read_text() + """
given = json.loads(sys.argv[2])
ready()
print(json.dumps(rounds(path, **given)))
"""


@pytest.mark.thinned(2, "call", "zarr_format")
@pytest.mark.parametrize("n_rounds", [3, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("call", CALLS)
def test_a_kill_of_what_deletes_a_group(crew, place, call, zarr_format, n_rounds):
    """The same call again ends what was begun."""
    given = {"call": call, "zarr_format": zarr_format, "n_rounds": n_rounds, "seed": 1 + round_number()}
    process = crew.start(place, SCRIPT, given)
    crew.go([process])
    [hits] = crew.results([process])
    counted(n_rounds)
    assert sum(hits.values()) == n_rounds
    assert call == "del" or not hits["nothing"]
    assert n_rounds < 200 or hits["old"] > 3 < n_rounds - hits["old"]


OPENERS = """
ready()
for n in range(given["n"]):
    group = zcore.open_group(f"{path}/{n}", "a", zarr_format=given["zarr_format"])
    group.require_group("g/h")
    zcore.group(f"{path}/{n}/{n}", zarr_format=given["zarr_format"])
    group.require_array("a", shape=4, dtype="i4")
    group.create_array(f"g/h/{os.getpid()}", shape=4, dtype="i4")
print(0)
"""


@pytest.mark.parametrize("n", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("zarr_format", [3, 2])
def test_processes_that_open_or_create_the_same_groups(crew, place, zarr_format, n):
    processes = [crew.start(place, OPENERS, {"zarr_format": zarr_format, "n": n}) for _ in range(4)]
    crew.go(processes)
    assert crew.results(processes) == [0] * 4
    assert zcore.open_group(f"{place}/0")["g/h"].nmembers() == 4


COMING_AND_GOING = """
ready()
n_made = 0
for n in range(given["n"]):
    try:
        if given["what"] == "deletes":
            zcore.open_group(path, "r+", zarr_format=2).__delitem__("g")
        else:
            zcore.create_array(path, name="g/a", shape=4, chunks=2, dtype="i4", attributes={"x": 1}, zarr_format=2)
            n_made += 1
    except (zcore.NodeNotFoundError, zcore.NodeExistsError):
        pass
    except zcore.StoreError as error:
        # Left by nobody who was killed: it is an array that was just being written, or deleted.
        assert False, error
print(n_made)
"""


@pytest.mark.parametrize("n", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_who_creates_where_another_deletes_never_finds_what_is_left(crew, place, n):
    """The steps of both are taken under one lock, so neither sees a half of the other."""
    zcore.create_group(place, zarr_format=2)
    processes = [crew.start(place, COMING_AND_GOING, {"what": what, "n": n})
                 for what in ("creates", "deletes", "creates")]
    crew.go(processes)
    crew.results(processes)


FULL = """
import zcore
import numpy as np

zcore.create_group("s").create_array("g/a", data=np.arange(20_000), chunks=1000, compressors=None)
for path in ("", "g"):
    zcore.consolidate_metadata("s", path=path)
for n_bytes in range(0, 40_000, 4096):
    leave_free(n_bytes)
    for call in (lambda: zcore.open_group("s", "w", path="g", attributes={"long": "x" * 30_000}),
                 lambda: zcore.open_group("s", "r+").__delitem__("g")):
        try:
            call()
        except zcore.StoreError as error:
            assert error.errno == 28, error
            top = zcore.open_group("s")
            if "g" in top:
                assert top["g"].attrs == {} and (top["g/a"][...] == np.arange(20_000)).all() or not list(top["g"])
        else:
            group = zcore.open_group("s")
            assert "g" not in group or list(group["g"]) == []
        leave_free(10**9)
        assert not [key for key in zcore.DirectoryStore("s").list() if key.startswith("g/a/") and "g/a" not in
                    zcore.open_group("s")]
        zcore.create_array("s", name="g/a", data=np.arange(20_000), chunks=1000, compressors=None, overwrite=True)
        leave_free(n_bytes)
print("done")
"""


def test_a_full_disk():
    done = run_on_tmpfs(FULL, kilobytes=1024)
    assert done.stdout == "done\n", done.stderr


def test_a_group_on_a_full_disk_can_be_deleted():
    done = run_on_tmpfs("""
import zcore
import numpy as np

zcore.create_group("s").create_array("g/a", data=np.arange(20_000), chunks=1000, compressors=None)
leave_free(0)
group = zcore.open_group("s", "r+")
del group["g"]
print(list(zcore.DirectoryStore("s").list()))
""", kilobytes=1024)
    assert done.stdout == "['zarr.json']\n", done.stderr


@pytest.mark.parametrize("verb", ["copy", "overwrite", "delete"])
def test_a_group_of_more_members_than_files_may_be_open(tmp_path, verb):
    group = zcore.create_group(tmp_path / "h")
    members = {f"a{i}": zcore.array([1, 2, 3]).metadata for i in range(150)}
    list(zcore.create_hierarchy(store=tmp_path / "h" / "g", nodes=members))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(fd) for fd in os.listdir("/dev/fd")) + 60, hard))
    try:
        if verb == "copy":
            zcore.copy(zcore.array([4, 5]), tmp_path / "h", destination_path="g", overwrite=True)
        elif verb == "overwrite":
            group.create_array("g", data=[4, 5], overwrite=True)
        else:
            del group["g"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert list(group) == ([] if verb == "delete" else ["g"])
    assert verb == "delete" or group["g"][...].tolist() == [4, 5]
