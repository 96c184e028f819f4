"""A fork while threads read and write: the child is as good as new, and keeps none of its parent's locks."""
import os
import signal
import sys

import numpy as np
import pytest

import zcore

SHAPE, CHUNKS = (64, 1024), (8, 1024)       # large enough for several threads

CHILD = """
def in_child(work):
    # Run `work` in a forked child and return how it ended: 0 when all went well.
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        signal.alarm(60)      # ends it; the watchdog of the parent does not work here
        work()
        os._exit(0)
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(1)
"""


def create(store):
    array = zcore.open(store, mode="w", shape=SHAPE, chunks=CHUNKS, dtype="i4", cname="lz4")
    array[...] = 1
    return array


@pytest.mark.parametrize("environment", [{}, {"CONFINED": "1"}, {"IN_MEMORY": "1"}],
                         ids=["native", "confined", "memory"])
def test_fork_while_another_thread_writes(place, crew, environment):
    """The handle is inherited; pool, locks and descriptors are the child's own."""
    create(place)
    process = crew.start(place, CHILD + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)     # Python 3.12 warns of every fork with threads
zcore.config.threads = 4
array = zcore.open(store, mode="r+")
if "IN_MEMORY" in os.environ:
    array = zcore.open(zcore.MemoryStore(), mode="w", shape=array.shape, chunks=array.chunks, dtype="i4", cname="lz4")
    array[...] = 1
stop = []
def write():
    while not stop:
        array[:, ::2] = 1
        array.attrs["written"] = True
threads = [threading.Thread(target=write) for _ in range(2)]
for thread in threads: thread.start()
ready()
def work():
    array.resize(64, 1024)
    for i in range(3):
        array[:, 1::2] = 7 + i
        assert (array[:, 1::2] == 7 + i).all() and (array[:, ::2] == 1).all()
    while not any(thread.name == "zcore" for thread in threading.enumerate()):
        time.sleep(0.01)      # it has been started, and says its name itself
codes = [in_child(work) for _ in range(10)]
stop.append(True)
for thread in threads: thread.join()
array[:, 1::2] = 3
print(json.dumps([codes, int((array[...] == np.tile([1, 3], 512)).sum())]))
""", environment=environment)
    crew.go([process])
    assert crew.results([process]) == [[[0] * 10, SHAPE[0] * SHAPE[1]]]


HELD = """
from zcore.engine.options import Options
from zcore.hierarchy.creation_lock import Place
array = zcore.open(path, mode="r+")
binding = array._binding
held = {"whole": lambda: binding.exclusive(),
        "object": lambda: binding.locks().object("__zdata__/0.0.blosc"),
        "place": lambda: Place(binding.store, "", "__zmeta__", Options())}[given]()
"""
TAKE = {"whole": "array.attrs['taken'] = 1", "object": "array[...] = 5",
        "place": "zcore.open(path, mode='w', shape=3, dtype='i4', cname='lz4')"}


@pytest.mark.parametrize("what", TAKE)
def test_the_lock_of_a_killed_parent_does_not_live_on_in_its_child(place, crew, what):
    create(place)
    parent = crew.start(place, HELD + """
held.__enter__()
if os.fork() == 0:
    os.fork()
    os.write(1, b"%d\\n" % os.getpid())     # at once: two processes write here
time.sleep(100)
""", what)
    children = [int(crew.line(parent)) for _ in range(2)]
    try:
        parent.kill()
        parent.wait()
        taker = crew.start(place, f"array = zcore.open(path, mode='r+')\n{TAKE[what]}\nprint('[]')")
        assert crew.results([taker]) == [[]]
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("what", TAKE)
def test_child_waits_for_its_parent_and_then_goes_on(place, crew, what):
    """What another thread held at the fork: the child sees it as a lock of another process, not as one of its own."""
    create(place)
    process = crew.start(place, HELD + f"""
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
inside, leave = threading.Event(), threading.Event()
def hold():
    with held:
        inside.set()
        leave.wait()
thread = threading.Thread(target=hold)
thread.start()
inside.wait()
reader, writer = os.pipe()
pid = os.fork()
if pid == 0:
    signal.alarm(60)      # ends it; the watchdog of the parent does not work here
    os.write(writer, b"t")
    {TAKE[what]}
    os.write(writer, b"d")
    os._exit(0)
assert os.read(reader, 1) == b"t"
import select
assert not select.select([reader], [], [], 0.1)[0], "the child did not wait"
leave.set()
thread.join()
print(json.dumps([os.read(reader, 1).decode(), os.waitpid(pid, 0)[1]]))
""", what)
    assert crew.results([process]) == [["d", 0]]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc lists the descriptors")
def test_child_has_no_descriptor_of_the_document(place, crew):
    create(place)
    process = crew.start(place, HELD + CHILD + """
def work():
    names = {os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
             if os.path.exists(f"/proc/self/fd/{fd}")}
    assert not any(name.endswith("__zmeta__") for name in names), names
with held:
    print(in_child(work))
""", "whole")
    assert crew.results([process]) == [0]


def test_a_fork_leaves_the_parents_descriptors_alone(place, crew):
    """Two forks in turn: the second child must not close what has the number of a descriptor closed before."""
    create(place)
    process = crew.start(place, HELD + CHILD + """
codes = []
for _ in range(3):
    with held:
        pass
    with open(path + "/free", "w") as file:
        codes.append(in_child(lambda: file.write("x") and file.flush()))
    array[...] = 2
    held = binding.exclusive()
print(codes)
""", "whole")
    assert crew.results([process]) == [[0, 0, 0]]
    assert np.all(zcore.open(place)[...] == 2)


@pytest.mark.thinned(2, "what", "threads")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("what", ["chunks", "shards", "parts of shards"])
def test_a_fork_in_the_middle_of_a_write(place, crew, what, threads):
    """The child leaves the files and locks of its parent alone, and does not wait for threads that it lacks."""
    pytest.importorskip("numcodecs")
    process = crew.start(place, """
import tempfile, warnings
import numcodecs
warnings.simplefilter("ignore", DeprecationWarning)     # Python 3.12 warns of every fork with threads
what, threads = given
pids, inside, over = [], threading.Event(), threading.Event()
class Forking(numcodecs.abc.Codec):
    codec_id = "zcore_test_forking"
    def encode(self, buf):
        if not is_armed or pids:
            pass
        elif threading.current_thread() is not threading.main_thread():
            inside.set()
            over.wait()
        elif threads == 1 or inside.wait(60):
            pids.append(os.fork())
            if pids[0] == 0:
                signal.alarm(60)      # ends it; the watchdog of the parent does not work here
                files.append(open(tempfile.mkstemp()[1], "r+"))
            else:
                over.set()
        return bytes(buf)
    def decode(self, buf, out=None):
        return buf
numcodecs.registry.codec_registry["zcore_test_forking"] = Forking
zcore.config.threads = threads
is_armed, files = False, []
values = np.arange(1 << 20, dtype="i4").reshape(1 << 6, 1 << 14)
array = zcore.create_array(path, data=values, chunks=(8, 1 << 14), shards=(32, 1 << 14) if "shards" in what else None,
                           compressors=[{"name": "numcodecs.zcore_test_forking", "configuration": {}}])
new = -values[:, :1 << (14 if what == "shards" else 13)]
is_armed = True
try:
    array[:, :new.shape[1]] = new
    failed = False
except zcore.StoreError as exc:
    failed = "forked" in str(exc)
if pids[0] == 0:
    files[0].write("still open")
    files[0].close()
    os.unlink(files[0].name)
    array[:, :new.shape[1]] = new
    os._exit(0 if failed and (array[:, :new.shape[1]] == new).all() else 1)
code = os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1])
left = [name for _, _, names in os.walk(path) for name in names if name.startswith(".__zc_tmp")]
print(json.dumps([code, failed, bool((array[:, :new.shape[1]] == new).all()), left]))
""", [what, threads])
    assert crew.results([process]) == [[0, False, True, []]]
