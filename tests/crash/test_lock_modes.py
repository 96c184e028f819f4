"""With locks, without them, and where they cannot be had."""
import os

import pytest

import zcore
from tests.both_ways import WAYS, directory
from zcore.engine.node_binding import Exclusive
from zcore.errors import LockError, ReadOnlyError, StoreError

HOLDER = """
import contextlib
with contextlib.ExitStack() as held:
    for name in given:
        held.enter_context(zcore.open(path + name, mode="r+")._binding.exclusive())
    ready("held")
print("[]")
"""
CHANGES = {
    "part": "array[1] = 5",
    "cover": "array[...] = 5",
    "erase": "array[...] = 0",
    "attributes": "array.attrs['a'] = 5",
    "resize": "array.resize(10)",
    "append": "array.append([5])",
}


# Root may do everything. What is imported late is imported before: the interpreter may lie where nobody can read.
NOBODY = """
import errno, encodings.ascii, tempfile
def become_nobody():
    with tempfile.TemporaryDirectory() as folder:
        tried = zcore.DirectoryStore(folder, confined=store.confined)
        tried = zcore.open(tried, mode="w", shape=4, chunks=2, dtype="i4", cname="lz4")
        tried[1:] = 1
        tried.append([2])
        tried.attrs["a"] = 1
        zcore.open(folder, mode="r+", lock=None).resize(1)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
"""


def create(store, **options):
    array = zcore.open(store, mode="w", shape=64, chunks=2, dtype="i4", cname="lz4", **options)
    array[...] = 1
    return array


@pytest.mark.parametrize("way", WAYS)
def test_without_locks_nobody_is_waited_for(place, crew, way):
    for change in CHANGES:
        create(place + change)
    holder = crew.start(place, HOLDER, list(CHANGES))
    assert crew.line(holder) == "held"
    for change, code in CHANGES.items():
        array = zcore.open(directory(place + change, way), mode="r+", lock=None)
        assert array.lock is False
        exec(code, {"array": array})
        assert array.refresh().shape == {"resize": (10,), "append": (65,)}.get(change, (64,)), change
        assert array[1] == {"part": 5, "cover": 5, "erase": 0}.get(change, 1), change
    crew.tell(holder)
    crew.results([holder])


def test_overwrite_without_locks_waits_for_nobody(place, crew):
    create(place)
    holder = crew.start(place, HOLDER, [""])
    assert crew.line(holder) == "held"
    array = zcore.open(place, mode="w", shape=3, dtype="i4", cname="lz4", lock=None)
    assert array[...].tolist() == [0, 0, 0]
    crew.tell(holder)
    crew.results([holder])


def test_readers_wait_for_nobody(place, crew):
    create(place)
    holder = crew.start(place, HOLDER, [""])
    assert crew.line(holder) == "held"
    array = zcore.open(place)
    assert (array[...] == 1).all() and array.attrs.asdict() == {} and array.refresh().nchunks_initialized == 32
    crew.tell(holder)
    crew.results([holder])


@pytest.mark.parametrize("way", WAYS)
def test_a_document_that_may_not_be_written_cannot_be_locked(place, crew, way):
    for change in CHANGES:
        create(place + change)
        for folder, _, names in os.walk(place + change):
            os.chmod(folder, 0o777)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o666)
        os.chmod(os.path.join(place + change, "__zmeta__"), 0o444)
    process = crew.start(place, NOBODY + """
become_nobody()
found = {}
for change, code in given.items():
    store = zcore.DirectoryStore(path + change, confined="CONFINED" in os.environ)
    array = zcore.open(store, mode="r+")
    try:
        exec(code)
    except zcore.errors.LockError as exc:
        found[change] = [str(exc), exc.errno]
    array = zcore.open(store, mode="r+", lock=None)
    exec(code)
print(json.dumps(found))
""", CHANGES, environment={"CONFINED": "1"} if way == "confined" else {})
    [found] = crew.results([process])
    assert found.keys() == CHANGES.keys()
    for change, (message, number) in found.items():
        assert "lock=None" in message and number == 13, change
        assert zcore.open(place + change)[1] == {"part": 5, "cover": 5, "erase": 0}.get(change, 1), change


@pytest.mark.parametrize("way", WAYS)
def test_no_descriptor_left_is_not_a_lock_that_is_refused(place, crew, way):
    """EMFILE ends in an error that says so, not in a search for a document that is there."""
    create(place)
    process = crew.start(place, """
import resource
array = zcore.open(store, mode="r+", threads=1)
array[0] = 2
n_open = len(os.listdir("/dev/fd")) - 1
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
found = []
for n_free in range(5):
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + n_free, limit[1]))
    try:
        array[0] = 3 + n_free
        found.append(None)
    except zcore.errors.ZcoreError as exc:
        assert not isinstance(exc, zcore.errors.LockError), exc
        found.append(exc.errno)
resource.setrlimit(resource.RLIMIT_NOFILE, limit)
print(json.dumps([found, array[:3].tolist()]))
""", environment={"CONFINED": "1"} if way == "confined" else {})
    [[found, values]] = crew.results([process])
    assert found[0] == 24 and found[-1] is None and set(found) == {24, None}
    assert values == [7, 1, 1]


@pytest.mark.parametrize("change", CHANGES)
def test_handles_for_reading_refuse(place, change):
    create(place)
    for array in (zcore.open(place), zcore.Array(zcore.open(zcore.DirectoryStore(place, read_only=True))._binding)):
        assert array.read_only
        with pytest.raises(ReadOnlyError, match="reading"):
            exec(CHANGES[change], {"array": array})
    array = zcore.open(place)
    assert array.shape == (64,) and (array[...] == 1).all() and array.attrs.asdict() == {}


@pytest.mark.parametrize("name", ["ENOLCK", "EOPNOTSUPP", "ENOSYS", "EACCES", "EBADF"])
def test_a_file_system_without_locks_of_directories(place, monkeypatch, name):
    import errno
    import fcntl

    def refuse(fd, operation):
        raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

    monkeypatch.setattr(fcntl, "flock", refuse)
    os.mkdir(place)     # else it is made beside its place
    with pytest.raises(LockError, match="lock=None") as caught:
        create(place)
    assert caught.value.errno == getattr(errno, name)
    assert not os.path.exists(os.path.join(place, "__zmeta__"))
    assert create(place, lock=None)[5] == 1


def test_a_directory_that_may_not_be_written(place, crew):
    """The document can be locked, but nothing can be put beside the chunks."""
    create(place)
    os.chmod(os.path.join(place, "__zmeta__"), 0o666)
    process = crew.start(place, NOBODY + """
become_nobody()
array = zcore.open(store, mode="r+")
found = []
for change in (lambda: array.__setitem__(1, 5), lambda: array.__setitem__(slice(None), 0), lambda: array.resize(3),
               lambda: array.append([1]), lambda: array.attrs.update(a=1)):
    try:
        change()
    except zcore.errors.StoreError as exc:
        found.append(exc.errno)
print(json.dumps([found, array[...].tolist(), array.refresh().shape]))
""")
    if os.geteuid() != 0:
        os.chmod(os.path.join(place, "__zdata__"), 0o555)
        os.chmod(place, 0o555)
    [[found, values, shape]] = crew.results([process])
    os.chmod(place, 0o755)
    os.chmod(os.path.join(place, "__zdata__"), 0o755)
    assert found == [13] * 5 and values == [1] * 64 and shape == [64]


def test_a_place_that_cannot_be_opened(place, crew):
    """A directory that may be entered but not read: an error of the store, not one of Python."""
    create(place)
    os.chmod(place, 0o711)
    process = crew.start(place, NOBODY + """
become_nobody()
array = zcore.open(store, mode="r+")
found = []
for change in (lambda: array.__setitem__(1, 5), lambda: array.attrs.update(a=1), lambda: array[1]):
    try:
        change()
    except zcore.errors.StoreError as exc:
        found.append(exc.errno)
print(json.dumps(found))
""")
    results = crew.results([process])
    os.chmod(place, 0o755)
    if os.geteuid() == 0:
        assert results == [[13, 13, 13]]


def test_another_error_is_not_hidden_by_the_lock(place, monkeypatch):
    """An exception inside is the one that comes out, and the lock is free again."""
    array = create(place)
    with pytest.raises(TypeError):
        array.attrs["a"] = object()
    array.attrs["a"] = 1
    monkeypatch.setattr(Exclusive, "set_beside", lambda *_: (_ for _ in ()).throw(StoreError("full", errno=28)))
    with pytest.raises(StoreError, match="full"):
        array.attrs["a"] = 2
    monkeypatch.undo()
    array.attrs["a"] = 3
    assert array.attrs["a"] == 3
