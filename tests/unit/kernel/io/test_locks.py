"""Locks of one node: who excludes whom, who gets through, and what is left when somebody gives up."""
import contextlib
import errno
import gc
import os
import subprocess
import sys
import threading
import time

import pytest

import zcore.kernel.io.locks
from tests.at_once import at_once
from tests.descriptors import descriptors, needs_a_list
from zcore.errors import LockError, StoreError
from zcore.kernel.io.files import TEMP_PREFIX
from zcore.kernel.io.locks import ObjectLocks, Stopped, locks_of

DOCUMENT = "document"


@pytest.fixture(params=["threads", "descriptors"])
def pair(request, tmp_path):
    """Two sides that have to exclude each other: by the table of one `ObjectLocks`, or by the locks of the file.

    Two `ObjectLocks` of one document do not know of each other, as in two processes.
    """
    (tmp_path / DOCUMENT).write_bytes(b"first")
    one = ObjectLocks(str(tmp_path), DOCUMENT)
    return (one, one) if request.param == "threads" else (one, ObjectLocks(str(tmp_path), DOCUMENT))


def free(make_hold, seconds=30):
    """Return whether a thread gets a hold within `seconds`; it is told to stop after them."""
    class Plan:
        stopped = False

    plan, got = Plan(), []

    def take():
        with contextlib.suppress(Stopped), make_hold(plan):
            got.append(True)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(seconds)
    plan.stopped = True
    thread.join()
    return bool(got)


def taken(make_hold):
    """Return whether a hold cannot be had: a tenth of a second is enough for one that can, on most machines."""
    return not free(make_hold, 0.1)


def test_an_object_excludes_itself_and_no_other(pair):
    one, two = pair
    with one.object("a"):
        assert taken(lambda plan: two.object("a", plan))
        assert free(lambda plan: two.object("b", plan))
    assert free(lambda plan: two.object("a", plan))


def test_the_whole_excludes_every_object(pair):
    one, two = pair
    with one.whole():
        assert taken(lambda plan: two.object("a", plan))
        assert taken(lambda plan: two.object("b", plan))
    assert free(lambda plan: two.object("a", plan))


def test_objects_exclude_the_whole(pair):
    one, two = pair
    entered = threading.Event()

    def take():
        with two.whole():
            entered.set()

    thread = threading.Thread(target=take)
    with one.object("a"):
        thread.start()
        # A waiter for the whole keeps new holders of objects out, or it might wait for ever. The thread needs a moment
        # to become that waiter, and is none while it asks whether it should stop: one refusal is what counts.
        deadline = time.monotonic() + 30
        while not (refused := taken(lambda plan: two.object("b", plan))) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert refused
        assert not entered.is_set()
    thread.join()
    assert entered.is_set()


def test_locks_without_files():
    one = ObjectLocks()
    with one.object("a"):
        assert taken(lambda plan: one.object("a", plan))
        assert free(lambda plan: one.object("b", plan))
    with one.whole() as hold:
        assert hold.dir_fd == -1
        assert taken(lambda plan: one.object("a", plan))


def test_many_holders_of_everything(pair):
    """A number that is read and written back is lost if two are in at once."""
    numbers = dict.fromkeys("abc", 0)
    total = [0]

    def work(locks, name):
        for i in range(60):
            with locks.object(name):
                number = numbers[name]
                time.sleep(0)
                numbers[name] = number + 1
            if i % 6 == 0:
                with locks.whole():
                    before = sum(numbers.values()), total[0]
                    time.sleep(0)
                    assert sum(numbers.values()) == before[0]
                    total[0] = before[1] + 1

    at_once(threading.Thread(target=work, args=(pair[i % 2], "abc"[i % 3])) for i in range(9))
    assert list(numbers.values()) == [180] * 3 and total == [90]


def hammer(make_hold, n_threads):
    """Take, hold for a while and take again at once, in several threads; returns a function that ends it."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with make_hold():
                time.sleep(0.0002)

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    for thread in threads:
        thread.start()

    def end():
        stop.set()
        for thread in threads:
            thread.join()
    return end


def test_holders_of_the_whole_do_not_starve_an_object(pair):
    end = hammer(pair[0].whole, 3)
    for _ in range(30):
        with pair[1].object("a"):
            pass
    end()


def test_holders_of_objects_do_not_starve_the_whole(pair):
    end = hammer(lambda: pair[0].object("a"), 3)
    for _ in range(30):
        with pair[1].whole():
            pass
    end()


def test_replace_goes_on_holding(tmp_path, pair):
    one, two = pair
    path = tmp_path / DOCUMENT
    with one.whole() as hold:
        for content in (b"second", b"3"):
            identity = hold.replace(content, token=7)
            status = os.stat(path)
            assert identity == (status.st_dev, status.st_ino, len(content), status.st_mtime_ns, status.st_ctime_ns)
            assert path.read_bytes() == content
            assert taken(lambda plan: two.object("a", plan))
    assert os.listdir(tmp_path) == [DOCUMENT]
    assert free(lambda plan: two.object("a", plan))


def test_identity_of_the_held_document(tmp_path, pair):
    path = tmp_path / DOCUMENT
    content = path.read_bytes()
    with pair[0].whole() as hold:
        status = os.stat(path)
        identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        assert hold.identity_if(content) == identity
        for other in (content + b"x", content[:-1] + bytes([content[-1] ^ 1]), content[:-1], b""):
            assert hold.identity_if(other) is None
        hold.replace(b"new", token=1)
        assert hold.identity_if(content) is None and hold.identity_if(b"new")[2] == 3
    assert hold.identity_if(b"new") is None


def test_who_waited_holds_the_new_document(tmp_path, pair):
    """The lock he waited for is on an inode that has lost its name when he gets it."""
    one, two = pair
    waiting, entered, leave = threading.Event(), threading.Event(), threading.Event()

    def take():
        waiting.set()
        with two.object("a"):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=take)
    with one.whole() as hold:
        thread.start()
        waiting.wait()
        time.sleep(0.01)
        hold.replace(b"second", token=7)
    entered.wait()
    try:
        assert taken(lambda plan: one.object("a", plan))
        assert taken(lambda plan: ObjectLocks(str(tmp_path), DOCUMENT).object("a", plan))
    finally:
        leave.set()
        thread.join()


def test_replace_that_fails_leaves_document_and_lock(tmp_path, pair):
    one, two = pair
    with one.whole() as hold:
        os.rename(tmp_path / DOCUMENT, tmp_path / "kept")
        os.mkdir(tmp_path / DOCUMENT)
        with pytest.raises(StoreError, match="rename"):
            hold.replace(b"second", token=7)
        os.rmdir(tmp_path / DOCUMENT)
        os.rename(tmp_path / "kept", tmp_path / DOCUMENT)
        assert taken(lambda plan: two.object("a", plan))
    assert (tmp_path / DOCUMENT).read_bytes() == b"first"
    assert os.listdir(tmp_path) == [DOCUMENT]


@pytest.mark.parametrize("n_rounds", [250, pytest.param(2000, marks=pytest.mark.slow)])
def test_replace_whose_file_is_taken_away_leaves_document_and_lock(tmp_path, n_rounds):
    """Whoever clears up may take the file of a living writer for one that a killed one left."""
    locks = ObjectLocks(str(tmp_path), DOCUMENT)
    (tmp_path / DOCUMENT).write_bytes(b"0")
    temporary = tmp_path / f"{TEMP_PREFIX}{7:016x}{0:08x}"
    stop = threading.Event()

    def clear_up():
        while not stop.is_set():
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    thread = threading.Thread(target=clear_up)
    thread.start()
    try:
        with locks.whole() as hold:
            for i in range(n_rounds):
                before = (tmp_path / DOCUMENT).read_bytes()
                try:
                    hold.replace(b"%d" % i, token=7)
                except StoreError as error:
                    assert error.errno == errno.ENOENT and (tmp_path / DOCUMENT).read_bytes() == before
                else:
                    assert (tmp_path / DOCUMENT).read_bytes() == b"%d" % i
    finally:
        stop.set()
        thread.join()
    assert free(lambda plan: locks.object("a", plan)) and os.listdir(tmp_path) == [DOCUMENT]


@pytest.mark.parametrize("what", ["document", "directory", "parent"])
def test_a_missing_document(tmp_path, what):
    directory = {"document": tmp_path, "directory": tmp_path / "no", "parent": tmp_path / "file" / "below"}[what]
    (tmp_path / "file").touch()
    locks = ObjectLocks(str(directory), DOCUMENT)
    for hold in (locks.whole(), locks.object("a")):
        with pytest.raises(FileNotFoundError):
            hold.__enter__()
    if what == "document":
        (tmp_path / DOCUMENT).touch()
        with locks.whole(), contextlib.suppress(KeyError):
            pass
        assert free(lambda plan: locks.object("a", plan))


def test_a_document_deleted_meanwhile(tmp_path, pair):
    one, two = pair
    found = []

    def take():
        try:
            with two.object("a"):
                found.append("held")
        except FileNotFoundError:
            found.append("gone")

    thread = threading.Thread(target=take)
    with one.whole():
        thread.start()
        time.sleep(0.01)
        os.unlink(tmp_path / DOCUMENT)
    thread.join()
    assert found == ["gone"]


def test_a_document_that_is_a_directory(tmp_path):
    os.mkdir(tmp_path / DOCUMENT)
    with pytest.raises(StoreError) as caught:
        ObjectLocks(str(tmp_path), DOCUMENT).whole().__enter__()
    assert caught.value.errno == errno.EISDIR and not isinstance(caught.value, LockError)


def test_a_document_changed_in_place(tmp_path, pair):
    """Whoever touches it makes it another one; those who lock it from then on agree about that."""
    one, two = pair
    with one.object("a"):
        os.utime(tmp_path / DOCUMENT, ns=(1, 1))
        assert taken(lambda plan: two.object("a", plan))
    assert free(lambda plan: two.object("a", plan))


def test_a_hold_is_given_back_once(pair):
    one, two = pair
    first = one.object("a")
    first.__exit__(None, None, None)         # was never entered
    first.__enter__()
    first.__exit__(None, None, None)
    with two.object("a"):
        first.__exit__(None, None, None)
        assert taken(lambda plan: one.object("a", plan))
    second = one.whole()
    second.__enter__()
    second.__exit__(None, None, None)
    assert free(lambda plan: two.object("a", plan))


def test_a_hold_that_is_forgotten_is_given_back(pair):
    one, two = pair
    for make in (one.whole, lambda: one.object("a")):
        hold = make()
        hold.__enter__()
        assert taken(lambda plan: two.object("a", plan))
        del hold
        gc.collect()
        assert free(lambda plan: two.object("a", plan))


@contextlib.contextmanager
def held_elsewhere(hold):
    """Enter a hold in another thread for as long as the block runs."""
    entered, left = threading.Event(), threading.Event()

    def keep():
        with hold:
            entered.set()
            left.wait()

    thread = threading.Thread(target=keep)
    thread.start()
    entered.wait()
    try:
        yield
    finally:
        left.set()
        thread.join()


def test_a_stopped_plan_waits_no_longer_and_leaves_nothing(pair):
    one, two = pair

    class Plan:
        stopped = True

    with held_elsewhere(one.whole()), pytest.raises(Stopped):
        two.object("a", Plan).__enter__()
    with held_elsewhere(one.object("a")):
        with pytest.raises(Stopped):
            two.object("a", Plan).__enter__()
        assert free(lambda plan: two.object("b", plan))
    # Nobody is asked who does not have to wait.
    with two.object("a", Plan):
        pass
    assert free(lambda plan: one.object("a", plan))


@pytest.fixture(params=["memory", "file"])
def locks(request, tmp_path):
    """Locks of a node whose document is no file, or one."""
    (tmp_path / DOCUMENT).write_bytes(b"first")
    return ObjectLocks() if request.param == "memory" else ObjectLocks(str(tmp_path), DOCUMENT)


def refused(hold):
    with pytest.raises(LockError, match="this thread holds the lock already") as caught:
        hold.__enter__()
    assert caught.value.errno == errno.EDEADLK
    return True


def test_a_thread_does_not_wait_for_itself(locks):
    with locks.whole():
        assert refused(locks.whole())
        assert refused(locks.object("a"))
    with locks.object("a"):
        assert refused(locks.whole())
        assert refused(locks.object("a"))
        with locks.object("b"):
            assert refused(locks.object("b"))
    with locks.whole():
        pass


def test_a_key_that_shares_the_stripe_of_one_that_the_thread_holds_is_refused(locks):
    with locks.object("a"):
        n_refused = 0
        for i in range(2000):
            try:
                with locks.object(f"b/{i}"):
                    pass
            except LockError:
                n_refused += 1
        assert 0 < n_refused < 50


def test_who_holds_an_object_passes_those_who_wait_for_it(locks):
    """A second object is had although another thread wants the whole: that waits for this thread."""
    with locks.object("a"):
        thread = threading.Thread(target=lambda: locks.whole().__enter__())
        thread.start()
        while not taken(lambda plan: locks.object("c", plan)):
            pass
        with locks.object("b"):
            pass
    thread.join()


@needs_a_list
def test_no_descriptor_is_left(tmp_path, pair):
    before = descriptors()
    for locks in pair:
        with locks.whole() as hold:
            hold.replace(b"next", token=7)
        with locks.object("a"):
            pass
        with pytest.raises(FileNotFoundError):
            ObjectLocks(str(tmp_path), "no").whole().__enter__()
    assert descriptors() <= before


def test_one_lock_for_one_key():
    """Threads that ask at once, when there is none yet, get the same."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for i in range(150):
            start, found = threading.Barrier(4), []

            def ask(i=i, start=start, found=found):
                start.wait()
                found.append(locks_of(("key", i)))

            at_once(threading.Thread(target=ask) for _ in range(4))
            assert len({id(locks) for locks in found}) == 1
    finally:
        sys.setswitchinterval(interval)


def test_a_handler_may_wait_for_a_thread_that_takes_locks():
    """At any event of Python at which a signal may come while locks are made."""
    waited = []

    def wait_for_another_thread(*_):
        thread = threading.Thread(target=locks_of, args=[("another", len(waited))], daemon=True)
        thread.start()
        thread.join(10)
        waited.append(not thread.is_alive())

    sys.setprofile(wait_for_another_thread)
    try:
        locks = locks_of(("one", "key"))
    finally:
        sys.setprofile(None)
    assert locks is locks_of(("one", "key")) and waited and all(waited)


def test_locks_go_with_their_last_user():
    locks = locks_of(("key", "gone"))
    number = id(locks)
    assert id(locks_of(("key", "gone"))) == number
    del locks
    gc.collect()
    assert ("key", "gone") not in zcore.kernel.io.locks._shared
    with locks_of(("key", "gone")).whole():
        pass


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ranges of one file are locked apart on Linux")
def test_the_bytes_that_are_locked(tmp_path):
    """Other versions have to agree: one byte at 2**62 + hash mod 2**61, FNV-1a with its high bits mixed in."""
    (tmp_path / DOCUMENT).touch()
    locks = ObjectLocks(str(tmp_path), DOCUMENT)
    h = 14695981039346656037
    for byte in b"__zdata__/0.0.blosc":
        h = (h ^ byte) * 1099511628211 % 2**64
    h ^= h >> 32
    code = f"""
import fcntl, struct, sys
file = open({str(tmp_path / DOCUMENT)!r}, "r+b")
for start in map(int, sys.argv[1:]):
    # struct flock of 64 bits: type, whence, start, length, pid
    request = struct.pack("hhqqi", fcntl.F_WRLCK, 0, start, 1, 0)
    kind, _, first, length, _ = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, request))
    print(kind == fcntl.F_UNLCK, end=" ")
"""
    start = 2**62 + h % 2**61

    def probe(*starts):
        done = subprocess.run([sys.executable, "-c", code, *map(str, starts)], capture_output=True, text=True,
                              check=True)
        return [word == "True" for word in done.stdout.split()]

    with locks.object("__zdata__/0.0.blosc"):
        assert probe(start - 1, start, start + 1) == [True, False, True]
    with locks.whole():
        assert probe(0, 2**62 - 2, 2**62 - 1, 2**62, start, 2**63 - 2) == [True, True, False, False, False, False]
    assert probe(2**62 - 1, start) == [True, True]
