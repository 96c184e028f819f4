"""A copy of all metadata that is made while others change what it copies is true or gone when all is done."""
import json

import pytest

import zcore
from zcore.formats import NAMES, format_of
from zcore.hierarchy import consolidated

pytestmark = pytest.mark.usefixtures("lock_kind")

WITH_GROUPS = [name for name in NAMES if format_of(name).group_document is not None]
N_ROUNDS = 10


def told(group):
    """What the nodes below a group say themselves."""
    return {path: (getattr(node, "shape", None), node.attrs.asdict()) for path, node
            in zcore.open_group(group.store, use_consolidated=False, path=group.path).members(None)}


def copied(group):
    """What the copy says that a group has, or None."""
    raw = group.store.get("zarr.json" if group.zarr_format == 3 else ".zmetadata")
    if raw is None:
        return None
    document = json.loads(raw)
    if group.zarr_format == 3:
        if "consolidated_metadata" not in document:
            return None
        nodes = document["consolidated_metadata"]["metadata"]
        return {path: (tuple(members["shape"]) if "shape" in members else None, members["attributes"])
                for path, members in nodes.items()}
    documents = document["metadata"]
    return {key.rpartition("/")[0]: (tuple(members["shape"]) if "shape" in members else None,
                                     documents.get(key.rpartition("/")[0] + "/.zattrs", {}))
            for key, members in documents.items() if key.endswith(("/.zarray", "/.zgroup"))}


CHANGES = {
    "array": lambda group: group.create_array("g/new", shape=3, dtype="i1", attributes={"n": 1}),
    "group": lambda group: group.create_group("new/one"),
    "overwrite": lambda group: group.create_array("g/a", shape=9, dtype="i1", overwrite=True),
    "resize": lambda group: group["g/a"].resize(7),
    "append": lambda group: group["g/a"].append([1, 2]),
    "attributes": lambda group: group["g/a"].attrs.update(x=1),
    "delete": lambda group: group.__delitem__("g/a"),
    "move": lambda group: group.move("g/a", "b"),
}


class Interleaved(zcore.MemoryStore):
    """A store in which something happens right before a value of one key is set, or erased, for the first time."""

    def __init__(self):
        super().__init__()
        self.key = self.happens = None

    def _meet(self, key):
        if self.key is not None and (key == self.key or self.key.endswith("/") and key.startswith(self.key)
                                     and not key.endswith(".zmetadata")):
            happens, self.key = self.happens, None
            happens()

    def set(self, key, value):
        self._meet(key)
        super().set(key, value)

    def erase(self, key):
        self._meet(key)
        super().erase(key)

    def set_if_not_exists(self, key, value):
        self._meet(key)
        return super().set_if_not_exists(key, value)

    def move(self, source, destination, *more):
        self._meet(source)
        super().move(source, destination, *more)


@pytest.fixture(params=WITH_GROUPS)
def group(request):
    group = zcore.create_group(Interleaved(), zarr_format=request.param)
    group.create_array("g/a", shape=4, chunks=2, dtype="i1", attributes={"old": True})[...] = 1
    return group


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_copy_that_is_made_in_the_middle_of_a_change(group, change):
    """The change has dropped the copies and not happened yet; then the copy of the old state is made."""
    store, happened = group.store, []

    def consolidate():
        zcore.consolidate_metadata(store)
        happened.append(copied(group))

    store.key, store.happens = ("new/one/" if change is CHANGES["group"] else "g/"), consolidate
    change(group)
    assert happened[0] is not None and copied(group) in (None, told(group))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_in_the_middle_of_a_copy(group, change):
    """All has been read for the copy and it is not written yet; then the change happens, from its begin to its end."""
    store = group.store
    before = told(group)
    store.key = "zarr.json" if group.zarr_format == 3 else ".zmetadata"
    store.happens = lambda: change(zcore.open_group(store, "r+", use_consolidated=False))
    zcore.consolidate_metadata(store)
    assert store.key is None and before != told(group) == copied(group)


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("at", ["", "g"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_copy_that_is_made_while_a_directory_gets_a_node(place, lock_kind, monkeypatch, zarr_format, at, moment):
    """The groups above had no copy when they were looked at."""
    if lock_kind == "file":
        pytest.skip("with lock files, it takes the steps of other stores")
    group = zcore.create_group(place, zarr_format=zarr_format)
    group.create_array("g/a", shape=4, chunks=2, dtype="i1")
    make_with, happened = zcore.DirectoryStore.make_directory_with, []

    def consolidate():
        zcore.consolidate_metadata(place, path=at)
        happened.append(copied(zcore.open_group(f"{place}/{at}")))

    def meet(*arguments):
        if moment == "before":
            consolidate()
        made = make_with(*arguments)
        assert made
        if moment == "after":
            consolidate()
        return made

    monkeypatch.setattr(zcore.DirectoryStore, "make_directory_with", meet)
    group.create_array("g/new", shape=3, dtype="i1")
    assert happened[0] is not None
    for path in ("", "g"):
        above = zcore.open_group(f"{place}/{path}")
        assert copied(above) in (None, told(above))


@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("at", ["", "g"])
@pytest.mark.parametrize("change", ["resize", "append", "attributes"])
def test_a_copy_that_is_made_while_a_node_in_a_directory_changes(place, monkeypatch, zarr_format, at, change):
    """The groups above had no copy when they were looked at."""
    group = zcore.create_group(place, zarr_format=zarr_format)
    group.create_array("g/a", shape=4, chunks=2, dtype="i1")
    look, looked = consolidated._looks_around, []

    def look_and_consolidate(*arguments):
        looks = look(*arguments)
        assert looks
        zcore.consolidate_metadata(place, path=at)
        looked.append(copied(zcore.open_group(f"{place}/{at}")))
        return looks

    monkeypatch.setattr(consolidated, "_looks_around", look_and_consolidate)
    CHANGES[change](group)
    assert looked[0] is not None
    for path in ("", "g"):
        group_above = zcore.open_group(f"{place}/{path}")
        assert copied(group_above) in (None, told(group_above))


def test_what_never_holds_still_has_no_copy(group):
    """Each time that the copy is written, an array grows."""
    store = group.store
    key = "zarr.json" if group.zarr_format == 3 else ".zmetadata"

    class Growing(Interleaved):
        def set(self, name, value):
            if name == key and b'"metadata"' in value:
                zcore.open(self, "r+", path="g/a").append([0])
            super().set(name, value)

    growing = Growing()
    for name in store.list():
        growing.set(name, store.get(name))
    with pytest.raises(zcore.StoreError, match="change faster"):
        zcore.consolidate_metadata(growing)
    assert copied(zcore.open_group(growing)) is None


CREATOR = """
ready()
root = zcore.open_group(path, mode="r+", use_consolidated=False)
for i in range(given["n"]):
    ready(f"round {i}")
    name = f"{given['me']}/{i % 4}"
    array = root.create_array(name, shape=2, dtype="i1", overwrite=True)
    if i % 3 == 0:
        array.attrs["n"] = i
    elif i % 3 == 1:
        array.resize(5)
    if i % 4 == 3:
        del root[name]
ready("end")
"""
CONSOLIDATOR = """
ready()
made = 0
for i in range(given["n"]):
    ready(f"round {i}")
    try:
        zcore.consolidate_metadata(path)
        made += 1
    except zcore.StoreError as error:
        assert "change faster" in str(error)
assert made
ready("end")
"""


@pytest.mark.thinned(2, "lock_kind", "zarr_format")
@pytest.mark.parametrize("zarr_format", WITH_GROUPS)
@pytest.mark.parametrize("n_rounds", [N_ROUNDS, pytest.param(1500, marks=pytest.mark.slow)])
def test_processes(place, crew, zarr_format, n_rounds):
    """In each round two processes change nodes while one makes a copy; then it is looked at."""
    group = zcore.create_group(place, zarr_format=zarr_format)
    processes = [crew.start(place, body, {"n": n_rounds, "me": me})
                 for me, body in enumerate((CREATOR, CREATOR, CONSOLIDATOR))]
    crew.go(processes)
    for i in range(n_rounds):
        for process in processes:
            assert crew.line(process) == f"round {i}"
        copy = copied(group)
        assert copy in (None, told(group)), i
        for process in processes:
            crew.tell(process)
    for process in processes:
        assert crew.line(process) == "end"
        crew.tell(process)
    crew.results(processes)


def test_a_node_that_is_deleted_while_its_attributes_are_read(group):
    """It was found, and is gone when its document of attributes is asked for; v3 has them in the node's own."""
    store = group.store

    class Deleting(Interleaved):
        def get(self, key, *byte_range):
            self._meet(key)
            return super().get(key, *byte_range)

    deleting = Deleting()
    for key in store.list():
        deleting.set(key, store.get(key))
    deleting.key = "g/a/.zattrs" if group.zarr_format == 2 else "zarr.json"
    deleting.happens = lambda: zcore.open_group(deleting, "r+", use_consolidated=False).__delitem__("g/a")
    zcore.consolidate_metadata(deleting)
    made = zcore.open_group(deleting)
    assert copied(made) == told(made) and "g/a" not in told(made)
