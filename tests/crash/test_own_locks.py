"""What runs inside a call that holds a lock, such as a signal handler, gets an error where it would wait for itself."""
import pytest

# `outcomes()` tries what code inside a call may want of the array that the call is about, and of another one.
TRIED = """
from zcore.errors import LockError
def place(name):
    return zcore.DirectoryStore(path + "/" + name, confined=store.confined)

def create(name, **options):
    return zcore.open(place(name), mode="w", shape=64, chunks=2, dtype="i4", fill_value=-1, zarr_format=3, **options)

def outcome(function):
    try:
        function()
    except LockError as error:
        assert "this thread" in str(error) and path in str(error) and error.errno == 35, error
        return "refused"
    except Exception as error:
        return repr(error)
    return "done"

def again():
    return zcore.open(place("x"), mode="r+")

TRIED = {
    "read": lambda: again()[...],
    "part": lambda: again().__setitem__(0, 7),
    "cover": lambda: again().__setitem__(slice(0, 2), 7),
    "others": lambda: again().__setitem__(slice(8, 16), 7),
    "resize": lambda: again().resize(70),
    "append": lambda: again().append([1]),
    "attributes": lambda: again().attrs.__setitem__("a", 1),
    "delete": lambda: zcore.open_group(path, mode="r+").__delitem__("x"),
    "overwrite": lambda: create("x"),
    "another": lambda: create("y").__setitem__(slice(None), 3),
}

def outcomes(*args):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    found.append({name: outcome(function) for name, function in TRIED.items()})

found = []
zcore.create_group(path, zarr_format=3)
array = create("x")
array[...] = 5
signal.signal(signal.SIGUSR1, outcomes)

def inside(owner, name):
    # A handler runs at the end of the next call of that function.
    before = getattr(owner, name)
    def after(*args, **kwargs):
        result = before(*args, **kwargs)
        signal.raise_signal(signal.SIGUSR1)
        return result
    setattr(owner, name, after)
"""
OF_WHOLE = dict.fromkeys(
    ["part", "cover", "others", "resize", "append", "attributes", "delete", "overwrite"], "refused"
) | {"read": "done", "another": "done"}
OF_OBJECT = OF_WHOLE | {"others": "done"}


INSIDE = {
    "object": "import zcore.engine.requests; inside(zcore.engine.requests.PlanWriter, '_put'); array[0] = 6",
    "resize": "inside(type(array._binding.store), 'erase'); array.resize(20)",
    "append": ("from zcore.engine.node_binding import Exclusive; inside(Exclusive, 'replace_metadata'); "
               "array.append([1])"),
    "attributes": ("from zcore.engine.node_binding import Exclusive; inside(Exclusive, 'replace_metadata'); "
                   "array.attrs['b'] = 1"),
}


@pytest.mark.parametrize("call", INSIDE)
def test_a_handler_inside_a_call_that_holds_the_array(place, crew, call):
    environment = {"CONFINED": "1"} if call == "object" else {}
    process = crew.start(place, TRIED + INSIDE[call] + "\nprint(json.dumps(found))", 3, environment=environment)
    assert crew.results([process]) == [[OF_OBJECT if call == "object" else OF_WHOLE]]


@pytest.mark.parametrize("call", ["create", "overwrite", "delete"])
def test_a_handler_inside_a_call_that_holds_the_directory(place, crew, call):
    code = """
import zcore.hierarchy.creation
from functools import partial
calls = {
    "create": lambda: create("y"),
    "overwrite": lambda: create("y"),
    "delete": lambda: zcore.open_group(path, mode="r+").__delitem__("y"),
}
if given != "create":
    create("y")
owner = type(array._binding.store)
def of_that_place(*args):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    for call in ("create", "overwrite"):
        found.append(outcome(calls[call]))
    create("z")[...] = 3
    again()[0] = 8
    found.append([zcore.open(path + "/z")[0].item(), again()[0].item()])
signal.signal(signal.SIGUSR1, of_that_place)
name = "is_empty"
if given != "create":
    from zcore.stores.directory.staged import StagedDirectory
    owner, name = StagedDirectory, "commit"
before = getattr(owner, name)
def after(self, key):
    if given != "create" and key:     # it replaces: a commit to a free place holds nothing
        signal.raise_signal(signal.SIGUSR1)
    result = before(self, key)
    if given == "create" and (key.startswith("y/") or self.path.endswith("/y")):
        signal.raise_signal(signal.SIGUSR1)
    return result
setattr(owner, name, after)
calls[given]()
print(json.dumps(found))
"""
    process = crew.start(place, TRIED + code, call)
    assert crew.results([process]) == [["refused", "refused", [3, 8]]]


@pytest.mark.parametrize("n_threads", [1, 4])
def test_a_handler_while_the_call_waits_for_another_process(place, crew, n_threads):
    """It meets no lock that the interrupted call has only begun to take, but for the object it waits for."""
    code = """
again()[...] = 5
found.clear()
found_after = []
def handle(*args):
    signal.setitimer(signal.ITIMER_REAL, 0)
    found.append({name: outcome(TRIED[name]) for name in ("read", "others", "another")})
    ready("handled")
signal.signal(signal.SIGALRM, handle)
array = zcore.open(path + "/x", mode="r+", threads=given)
ready()
signal.setitimer(signal.ITIMER_REAL, 0.3)
array[0] = 6
found.append(again()[0:9:8].tolist())
print(json.dumps(found))
"""
    process = crew.start(place, TRIED + code, n_threads)
    assert crew.line(process) == "ready"
    holder = crew.start(place + "/x", """
array = zcore.open(path, mode="r+")
with array._binding.locks().object("c/0"):
    ready("held")
print("[]")
""")
    assert crew.line(holder) == "held"
    crew.tell(process)
    assert crew.line(process) == "handled"
    crew.tell(holder)
    crew.results([holder])
    crew.tell(process)
    assert crew.results([process]) == [[{"read": "done", "others": "done", "another": "done"}, [6, 7]]]


IN_MEMORY = """
from zcore.errors import LockError
store = zcore.MemoryStore() if given == "memory" else zcore.ZipStore(path, mode="w")
store.set("a", b"1")
found = []
class Content(bytearray):
    pass
def outcome(function, *args):
    try:
        function(*args)
        return "done"
    except LockError as error:
        return "this thread" in str(error)
def handle(*args):
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    found.extend([outcome(store.set, "b", b"2"), outcome(store.erase, "a"), outcome(store.get, "a"),
                  outcome(store.list_dir, ""), outcome(store.set_partial_values, [("a", 1, b"2")])])
signal.signal(signal.SIGUSR1, handle)
if given == "memory":
    before = type(store)._make_way
    def after(*args):
        before(*args)
        signal.raise_signal(signal.SIGUSR1)
    type(store)._make_way = after
else:
    from zcore.stores.zip import writer
    before = writer.ZipWriter._write
    def after(*args):
        before(*args)
        signal.raise_signal(signal.SIGUSR1)
    writer.ZipWriter._write = after
store.set("c", b"3")
store.set("d", b"4")
if given == "zip":
    store.close()
    store = zcore.ZipStore(path)
found.append(sorted(store.list()))
print(json.dumps(found))
"""


@pytest.mark.parametrize("kind", ["memory", "zip"])
def test_a_handler_inside_a_change_of_a_store(place, crew, kind):
    """It may read; the change that it interrupts comes to its end."""
    process = crew.start(place, IN_MEMORY, kind)
    assert crew.results([process]) == [[True, True, "done", "done", True, ["a", "c", "d"]]]


SHARDS = """
little = {"name": "bytes", "configuration": {"endian": "little"}}
def shard(n, codecs):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [n], "codecs": codecs, "index_codecs": [little, {"name": "crc32c"}], "index_location": "end"}}
chunks = [little, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}]
codecs = [shard(1 << 10, chunks)] if given[0] == "shards" else [shard(1 << 14, [shard(1 << 10, chunks)])]
os.makedirs(path)
with open(path + "/zarr.json", "w") as file:
    json.dump({"zarr_format": 3, "node_type": "array", "shape": [1 << 20], "data_type": "float64", "fill_value": 0,
               "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1 << 17]}},
               "chunk_key_encoding": {"name": "default"}, "codecs": codecs, "attributes": {}}, file)
array, inner = zcore.open(path, mode="r+", threads=given[1]), zcore.open(path, mode="r+", threads=1)
values = np.random.default_rng(0).normal(size=array.shape)
array[...] = values
n_handled = 0
def handle(*args):
    global n_handled
    n_handled += 1
    i = n_handled * 100003 % len(values)
    for change in (lambda: inner.__setitem__(i, values[i]), lambda: inner.resize(array.shape),
                   lambda: inner.attrs.__setitem__("a", n_handled)):
        try:
            change()
        except zcore.LockError as error:
            assert error.errno == 35
    signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.01)
while n_handled < 60:
    array[1:-1] = values[1:-1]
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps(bool((array[...] == values).all())))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shards", "shards in shards"])
@pytest.mark.parametrize("n_threads", [1, 4])
def test_handlers_write_to_the_array_while_threads_share_its_shards(place, crew, kind, n_threads):
    """None waits for a thread that waits for the interrupted one."""
    process = crew.start(place, SHARDS, [kind, n_threads])
    assert crew.results([process]) == [True]
