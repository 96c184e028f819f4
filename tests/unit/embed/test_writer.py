"""`zcore_writer_…`: frames that are given in C are stored once, in order; misuse is an error with a code."""
import errno
import json
import os
import re
import shutil
import signal
import threading

import numpy as np
import pytest

import zcore
import zcore.embed
from tests.at_once import at_once
from tests.unit.embed.header import CallError, Error, Handle, WriterHandle, asked, call, numbers


class Failing(zcore.MemoryStore):
    """Fails as long as `fails`."""

    fails = False

    def set(self, key, value):
        if self.fails and not key.endswith("json"):
            raise zcore.StoreError("no room", key=key, errno=errno.ENOSPC)
        super().set(key, value)


def frames(n, first=0):
    return np.arange(first * 12, (first + n) * 12, dtype="i4").reshape(n, 3, 4)


@pytest.fixture
def stack(tmp_path):
    return zcore.create_array(tmp_path / "a", shape=(0, 3, 4), chunks=(5, 3, 2), dtype="i4")


@pytest.fixture
def handle(tmp_path, stack):
    with Handle(tmp_path / "a") as opened:
        yield opened


def refused(code, sentence, function, *arguments):
    with pytest.raises(CallError, match=sentence) as caught:
        function(*arguments)
    assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize("queue", [b"null", b"1", b"100", b'"1 GiB"'])
def test_frames_one_by_one_and_several(stack, handle, queue):
    writer = WriterHandle(handle, options=b'{"queue": %s}' % queue)
    given = 0
    for n in (1, 1, 0, 7, 1, 30, 2):
        memory = frames(n, given)
        writer.append(memory, n)
        memory[...] = -1         # the caller's again
        given += n
        assert writer.n_given == given
    writer.flush()
    assert handle.lengths("shape") == (42, 3, 4)
    writer.append(frames(1, 42), 1)
    writer.close()
    assert handle.lengths("shape") == (43, 3, 4)
    assert np.array_equal(handle.read((0, 0, 0), (43, 3, 4), "i4"), frames(43))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_axes_and_strides(tmp_path, axis):
    expected = np.arange(6 * 6 * 6, dtype="f8").reshape(6, 6, 6)
    shape = [6, 6, 6]
    shape[axis] = 0
    zcore.create_array(tmp_path / "a", shape=shape, chunks=(4, 4, 4), dtype="f8")
    with Handle(tmp_path / "a") as handle:
        writer = WriterHandle(handle, axis)
        parts = np.split(expected, 3, axis)
        writer.append(np.ascontiguousarray(parts[0]), 2)
        writer.append(parts[1], 2, parts[1].strides)
        turned = parts[2][::-1, :, ::-1].copy()[::-1, :, ::-1]
        writer.append(turned, 2, turned.strides)
        writer.close()
    assert np.array_equal(zcore.open(tmp_path / "a")[...], expected)


def test_boxes(stack, handle):
    writer = WriterHandle(handle)
    writer.append(frames(8), 8)
    writer.write((7, 1, 0), np.full((1, 2, 4), -1, "i4"))       # of a frame that may still wait
    part = np.full((6, 6), -2, "i4")[::2, ::3]
    writer.write((0, 0, 1), part[None], (0, *part.strides))
    refused(9, "do not lie in an array of shape", writer.write, (8, 0, 0), np.zeros((1, 3, 4), "i4"))
    refused(9, "do not lie in an array of shape", writer.write, (-1, 0, 0), np.zeros((1, 3, 4), "i4"))
    refused(9, "the count is 5", writer.write, (0, 0, 0), np.zeros((1, 3, 5), "i4"))
    writer.close()
    expected = frames(8)
    expected[7, 1:] = -1
    expected[0, :, 1:3] = -2
    assert np.array_equal(stack.refresh()[...], expected)


@pytest.mark.parametrize("dtype", ["?", ">i2", "c8", "M8[s]", "S5", "U3", [("a", "i4"), ("b", "?")]])
def test_types(tmp_path, dtype):
    z = zcore.create_array(tmp_path / "a", shape=(0, 5), chunks=(2, 3), dtype=dtype, zarr_format=2)
    elements = np.zeros((7, 5), z.dtype)
    elements[1::2] = 1
    with Handle(tmp_path / "a") as handle:
        writer = WriterHandle(handle)
        writer.append(elements, 7)
        writer.close()
    assert z.refresh()[...].tobytes() == elements.tobytes()


def test_text_that_is_none_is_not_taken(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(0,), chunks=(4,), dtype="<U1")
    with Handle(tmp_path / "a") as handle:
        writer = WriterHandle(handle)
        none = np.full(4, 0x110000, "<u4")
        refused(40, "text has the code point", writer.append, none, 4)
        assert writer.n_given == 0
        writer.append(np.zeros(4, "<u4"), 4)
        refused(40, "text has the code point", writer.write, (0,), none)
        writer.close()


def test_frames_without_elements(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(0, 0, 3), chunks=(4, 1, 3), dtype="f4")
    with Handle(tmp_path / "a") as handle:
        writer = WriterHandle(handle)
        asked("writer_append", writer.number, None, 5, None)
        writer.close()
        assert handle.lengths("shape") == (5, 0, 3)


# misuse

def test_wrong_arguments(stack, handle):
    for arguments, code, sentence in [
        ((3, None), 40, "axis is 3"), ((-4, None), 40, "axis is -4"), ((0, b"[]"), 40, "object"),
        ((0, b'{"queue": -1}'), 40, "queue"), ((0, b'{"fist": 1}'), 40, "fist"), ((0, b"\xff"), 40, "utf-8"),
    ]:
        refused(code, sentence, WriterHandle, handle, *arguments)
    writer = WriterHandle(handle)
    append, write = (lambda *a: asked("writer_append", writer.number, *a), lambda *a: asked(
        "writer_write", writer.number, *a))
    memory = frames(1)
    refused(40, "data is NULL", append, None, 1, None)
    refused(40, "the count is -1", append, memory.ctypes.data, -1, None)
    refused(40, "more bytes than", append, memory.ctypes.data, 2**62, None)
    refused(40, "start or count is NULL", write, None, numbers((1, 1, 1)), memory.ctypes.data, None)
    refused(40, "start or count is NULL", write, numbers((0, 0, 0)), None, memory.ctypes.data, None)
    assert call["writer_append"](writer.number, None, 1, None, None) == -1      # nobody has to want the error
    writer.close()
    assert stack.refresh().shape == (0, 3, 4)


def test_an_array_without_dimensions(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(), dtype="i8")
    with Handle(tmp_path / "a") as handle:
        refused(40, "axis is 0, the array has the shape ()", WriterHandle, handle)


def test_handles_that_are_no_writers(stack, handle):
    writer = WriterHandle(handle)
    closed = WriterHandle(handle)
    closed.close()
    memory = frames(1)
    for number, code in [(None, 40), (closed.number, 41), (12345, 41), (2**63 - 1, 41), (2**64 - 5, 41),
                         (handle.number, 41)]:
        refused(code, "writer", asked, "writer_append", number, memory.ctypes.data, 1, None)
        refused(code, "writer", asked, "writer_write", number, numbers((0, 0, 0)), numbers((1, 1, 1)),
                memory.ctypes.data, None)
        refused(code, "writer", asked, "writer_flush", number)
        assert call["writer_n_given"](number) == -1
        for name in ("writer_close", "writer_abort"):
            asked(name, number)
            assert call[name](number, None) == 0
    # A writer is no array, and is not closed as one.
    assert call["ndim"](writer.number) == -1
    refused(41, "array", asked, "refresh", writer.number)
    refused(41, "array", asked, "writer_open", writer.number, 0, None)
    call["close"](writer.number)
    writer.append(memory, 1)
    writer.close()
    assert np.array_equal(handle.read((0, 0, 0), (1, 3, 4), "i4"), memory)


def test_a_writer_outlives_the_handle_of_its_array(tmp_path, stack):
    handle = Handle(tmp_path / "a")
    writer = WriterHandle(handle)
    handle.close()
    refused(41, "the array was closed", WriterHandle, handle)
    writer.append(frames(7), 7)
    writer.flush()
    writer.append(frames(1, 7), 1)
    writer.close()
    assert np.array_equal(stack.refresh()[...], frames(8))


def test_read_only(tmp_path, stack):
    with Handle(tmp_path / "a", "r") as handle:
        refused(14, "r\\+", WriterHandle, handle)


def test_an_array_of_another_shape_or_type_than_the_handle_has_seen(tmp_path, stack, handle):
    stack.resize((0, 3, 5))
    refused(9, "zcore_refresh", WriterHandle, handle)
    asked("refresh", handle.number)
    writer = WriterHandle(handle)
    writer.append(np.zeros((1, 3, 5), "i4"), 1)
    writer.close()
    zcore.create_array(tmp_path / "a", shape=(0, 3, 5), dtype="f4", overwrite=True)
    refused(9, "type float32; the handle", WriterHandle, handle)


def test_an_array_that_is_replaced_meanwhile(tmp_path, stack, handle):
    writer = WriterHandle(handle)
    writer.append(frames(1), 1)
    os.rename(tmp_path / "a", tmp_path / "b")
    zcore.create_array(tmp_path / "a", shape=(0, 3, 4), chunks=(5, 3, 4), dtype="f8")
    refused(26, "frames 0 to 0 are not stored.*replaced", writer.close)
    assert zcore.open(tmp_path / "a").shape == (0, 3, 4)
    shutil.rmtree(tmp_path / "a")
    os.rename(tmp_path / "b", tmp_path / "a")
    writer.close()
    assert np.array_equal(stack.refresh()[...], frames(1))


# errors of the background

def test_what_is_not_stored_waits(tmp_path):
    store = Failing()
    array = zcore.create_array(store, shape=(0, 3, 4), chunks=(5, 3, 4), dtype="i4")
    with Handle.of(asked("from_object", array)) as handle:
        writer = WriterHandle(handle, options=b'{"queue": 480}')
        writer.append(frames(5), 5)
        writer.flush()
        store.fails = True
        writer.append(frames(2, 5), 2)
        for function in (writer.flush, writer.close):
            error = refused(26, "frames 5 to 6 are not stored, and wait in the writer; the next call tries again: "
                                ".*no room", function)
            assert error.sys_errno == errno.ENOSPC
        # More than there is room for: some of these are taken.
        refused(26, "are not stored", writer.append, frames(20, 7), 20)
        taken = writer.n_given
        assert 7 < taken <= 15
        store.fails = False
        writer.append(frames(27 - taken, taken), 27 - taken)
        writer.close()
    assert np.array_equal(array[...], frames(27))


def test_an_abort_drops_what_waits(tmp_path):
    store = Failing()
    array = zcore.create_array(store, shape=(0, 3, 4), chunks=(5, 3, 4), dtype="i4")
    with Handle.of(asked("from_object", array)) as handle:
        for n in (3, 8):
            writer = WriterHandle(handle)
            store.fails = n == 8
            writer.append(frames(n), n)
            if store.fails:
                refused(26, "are not stored", writer.close)
            writer.abort()
            refused(41, "the writer was closed", writer.flush)
    assert array.refresh().shape == (0, 3, 4)


def test_every_class_of_error_has_a_code(monkeypatch, tmp_path):
    header = {}
    with open(os.path.join(zcore.get_include(), "zcore.h")) as file:
        for line in file:
            found = re.match(r" +(ZCORE_\w+) = (\d+)", line)
            if found:
                header[found[1]] = int(found[2])
    assert len(set(header.values())) == len(header)
    codes = {}
    for name, cls in vars(zcore.errors).items():
        # Some have more names, those of zarr-python.
        if isinstance(cls, type) and issubclass(cls, zcore.ZcoreError) and cls.__name__ == name and (
                # What Python imports, or opens by a class of its own; in C it is the class above.
                not issubclass(cls, (ImportError, zcore.errors.NoFileError, zcore.ChunkNotFoundError))):
            def fail(*_, cls=cls):
                raise cls("no")
            monkeypatch.setattr(zcore.embed.calls, "open", fail)
            codes[name] = refused_code(tmp_path)
    assert len(set(codes.values())) == len(codes), codes
    assert set(codes.values()) <= set(header.values())
    assert codes["WriterError"] == header["ZCORE_WRITER"] == 26


def refused_code(place):
    with pytest.raises(CallError) as caught:
        Handle(place)
    return caught.value.code


# threads, forks, signals

def test_threads_share_a_writer(tmp_path):
    z = zcore.create_array(tmp_path / "a", shape=(0, 1000), chunks=(7, 1000), dtype="i4")
    with Handle(tmp_path / "a") as handle:
        writer = WriterHandle(handle, options=json.dumps({"queue": 60_000}).encode())

        def give(me):
            for k in range(50):
                writer.append(np.full((1, 1000), me * 50 + k, "i4"), 1)

        at_once(threading.Thread(target=give, args=(me,)) for me in range(6))
        assert writer.n_given == 300
        writer.close()
    found = z.refresh()[...]
    assert (found == found[:, :1]).all()
    for me in range(6):
        mine = found[found[:, 0] // 50 == me, 0]
        assert mine.tolist() == list(range(me * 50, me * 50 + 50))


def test_closing_while_others_give(stack, handle):
    """Each call says truly whether the writer has the frame; all that close come back with all stored."""
    writer = WriterHandle(handle, options=b'{"queue": 500}')
    taken, codes, closed = [0] * 4, [], []

    def give(me):
        error = Error()
        memory = frames(1)
        while call["writer_append"](writer.number, memory.ctypes.data, 1, None, error) == 0:
            taken[me] += 1
        codes.append(error.code)

    def close():
        while sum(taken) < 100:
            pass
        closed.append((call["writer_close"](writer.number, None), len(zcore.open(stack.store)) == sum(taken)))

    threads = [threading.Thread(target=give, args=(me,)) for me in range(4)]
    threads += [threading.Thread(target=close) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [41] * 4
    assert [code for code, _ in closed] == [0, 0]
    assert len(stack.refresh()) == sum(taken)


def test_a_child_has_nothing_of_a_writer(stack, handle):
    writer = WriterHandle(handle)
    writer.append(frames(3), 3)
    child = os.fork()
    if child == 0:
        signal.alarm(20)        # ends it, if it hangs
        try:
            error = Error()
            good = call["writer_append"](writer.number, frames(1).ctypes.data, 1, None, error) == -1
            good &= error.code == 11 and call["writer_flush"](writer.number, error) == -1
            good &= call["writer_close"](writer.number, error) == 0
            good &= call["writer_flush"](writer.number, error) == -1 and error.code == 41
            own = WriterHandle(handle)
            own.append(frames(1), 1)
            own.close()
            os._exit(0 if good else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.append(frames(1, 3), 1)
    writer.close()
    assert np.array_equal(stack.refresh()[...], np.concatenate([frames(1), frames(4)]))


def test_a_signal_handler_in_the_middle_of_a_call(stack, handle, monkeypatch):
    """It can neither give nor close there; all else is as if it had not tried."""
    writer = WriterHandle(handle)
    codes = []

    def act(*_):
        error = Error()
        call["writer_append"](writer.number, frames(1).ctypes.data, 1, None, error)
        codes.append(error.code)
        call["writer_close"](writer.number, error)
        codes.append(error.code)

    before = signal.signal(signal.SIGUSR1, act)
    put = zcore.nodes.streams.Ring.put
    monkeypatch.setattr(zcore.nodes.streams.Ring, "put",
                        lambda *arguments: [signal.raise_signal(signal.SIGUSR1), put(*arguments)][1])
    try:
        writer.append(frames(2), 2)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert codes == [16, 16]
    monkeypatch.undo()
    writer.close()
    assert np.array_equal(stack.refresh()[...], frames(2))
