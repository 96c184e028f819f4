"""The functions of `zcore.h`: what they read and write, and what they say to bad input."""
import ctypes as c
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import zcore
from tests.at_once import at_once
from tests.descriptors import descriptors
from tests.each import each
from tests.unit.embed.header import CallError, DType, Error, Handle, asked, call, numbers
from zcore.kernel.build_info import build_info

KINDS = {
    "v3": {"zarr_format": 3, "chunks": (10, 20)},
    "v2": {"zarr_format": 2, "chunks": (10, 20)},
    "zmeta": {"zarr_format": "zmeta", "chunks": (10, 20)},
    "raw": {"zarr_format": 3, "chunks": (10, 20), "compressors": None},
    "shards": {"zarr_format": 3, "chunks": (10, 20), "shards": (40, 60)},
    "python codec": {"zarr_format": 2, "chunks": (10, 20), "compressors": [{"id": "lzma"}]},
}


@pytest.fixture(params=KINDS)
def array(request, tmp_path):
    if request.param == "python codec":
        pytest.importorskip("numcodecs")
    z = zcore.create_array(tmp_path / "a", shape=(100, 120), dtype="f4", **KINDS[request.param])
    z[...] = np.arange(12000, dtype="f4").reshape(100, 120)
    return z


@pytest.fixture
def simple(tmp_path):
    z = zcore.create_array(tmp_path / "a", shape=(100, 120), chunks=(10, 20), dtype="f4", attributes={"a": 1})
    z[...] = np.arange(12000, dtype="f4").reshape(100, 120)
    return z


def place_of(z):
    return z._binding.locks().directory


@pytest.mark.thinned(2, "array", "is_young")
@pytest.mark.parametrize("n_boxes", [30, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("is_young", [True, False])
def test_random_boxes_are_read_and_written(array, is_young, n_boxes):
    if not is_young:
        old = time.time() - 60
        os.utime(os.path.join(place_of(array), array._binding.document_name), (old, old))
        time.sleep(2.1)     # the time of the change cannot be set
    expected = array[...]
    rng = np.random.default_rng(1)
    with Handle(place_of(array)) as handle:
        for k in range(n_boxes):
            start = rng.integers(0, array.shape)
            count = [int(rng.integers(0, n - s + 1)) for s, n in zip(start, array.shape, strict=True)]
            box = tuple(slice(s, s + n) for s, n in zip(start, count, strict=True))
            threads = int(rng.integers(0, 4))
            assert np.array_equal(handle.read(start, count, threads=threads), expected[box])
            if k % 3 == 0:
                expected[box] = rng.random(count, "f4")
                handle.write(start, expected[box], threads=threads)
        assert np.array_equal(handle.read((0, 0), array.shape), expected)
    assert np.array_equal(array[...], expected)


def test_steps_and_strides(array):
    expected = array[...]
    with Handle(place_of(array)) as handle:
        assert np.array_equal(handle.read((99, 119), (50, 30), step=(-2, -4)), expected[99::-2, 119::-4])
        assert np.array_equal(handle.read((3, 1), (10, 5), step=(7, 20)), expected[3:73:7, 1:101:20])
        memory = np.zeros((40, 30), "f4", order="F")
        handle.move("read", (5, 6), (40, 30), memory, strides=memory.strides)
        assert np.array_equal(memory, expected[5:45, 6:36])
        memory = np.zeros((80, 60), "f4")
        part = memory[::2, ::-2]
        handle.move("read", (5, 6), (40, 30), part, strides=part.strides)
        assert np.array_equal(part, expected[5:45, 6:36])
        assert not memory[1::2].any()
        # The same element is written many times.
        one = np.full(1, 5, "f4")
        handle.move("write", (1, 2), (30, 40), one, strides=(0, 0))
        expected[1:31, 2:42] = 5
        handle.move("write", (99, 0), (10, 120), expected, step=(-1, 1), strides=expected.strides)
        expected[99:89:-1] = expected[:10]
        assert np.array_equal(array[...], expected)


@pytest.mark.parametrize("dtype", ["?", "i1", "u8", ">i4", "f2", "c16", "M8[s]", "S5", [("a", "i4"), ("b", "?")]])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_types(tmp_path, dtype, zarr_format):
    z = zcore.create_array(tmp_path / "a", shape=(7, 5), chunks=(2, 3), dtype=dtype, zarr_format=zarr_format)
    elements = np.frombuffer(np.random.default_rng(2).bytes(35 * z.dtype.itemsize), z.dtype)
    if z.dtype.kind == "b":
        elements = elements.view("u1") % 2 == 1
    if z.dtype.names:
        elements = elements.copy()
        elements["b"] = elements["b"].view("u1") % 2
    elements = elements.reshape(7, 5)
    with Handle(tmp_path / "a") as handle:
        handle.write((0, 0), elements)
        assert handle.read((0, 0), (7, 5), z.dtype).tobytes() == elements.tobytes()
        found = DType()
        call["get_dtype"](handle.number, found)
    assert (found.kind.decode(), found.itemsize) == (z.dtype.kind, z.dtype.itemsize)
    assert found.byte_order.decode() == z.dtype.str[0]
    if isinstance(dtype, str) and dtype in ("?", "i1", "u8", "c16"):
        assert found.name.decode() == {"?": "bool", "c16": "complex128"}.get(dtype, z.dtype.name)
    assert z[...].tobytes() == elements.tobytes()


def test_bytes_that_are_no_booleans_read_as_true(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(4, 2), chunks=(2, 2), dtype="?", compressors=None, checksum=False)
    (tmp_path / "a" / "c" / "0").mkdir(parents=True)
    (tmp_path / "a" / "c" / "0" / "0").write_bytes(bytes([0, 1, 2, 255]))
    with Handle(tmp_path / "a") as handle:
        assert handle.read((0, 0), (4, 2), "u1").tolist() == [[0, 1], [1, 1], [0, 0], [0, 0]]


def test_bytes_that_are_no_booleans_read_as_true_in_structures(tmp_path):
    dtype = np.dtype([("a", "u1"), ("b", "?"), ("c", [("d", "u1"), ("e", "?", (2,))])])
    zcore.create_array(tmp_path / "a", shape=(3,), chunks=(2,), dtype=dtype, compressors=None, zarr_format=2)
    (tmp_path / "a" / "0").write_bytes(bytes([7, 2, 7, 255, 0, 9, 1, 9, 0, 8]))
    with Handle(tmp_path / "a") as handle:
        found = handle.read((0,), (3,), dtype)
    assert list(found.tobytes()) == [7, 1, 7, 1, 0, 9, 1, 9, 0, 1, 0, 0, 0, 0, 0]
    assert zcore.open(tmp_path / "a")[...].tobytes() == found.tobytes()


def test_shapes(array):
    with Handle(place_of(array)) as handle:
        assert handle.lengths("shape") == array.shape
        assert handle.lengths("chunk_shape") == array.chunks == (10, 20)
        assert handle.lengths("object_shape") == (array.shards or array.chunks)


def test_no_dimensions(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(), dtype="i8")[()] = 7
    with Handle(tmp_path / "a") as handle:
        assert handle.read(None, (), "i8") == 7
        handle.move("write", None, None, np.array(9, "i8"))
    assert zcore.open(tmp_path / "a")[()] == 9


def test_create(tmp_path):
    place = str(tmp_path / "a").encode()
    number = asked("create", place, 2, numbers((100, 50)), numbers((10, 10)), b"float32",
                   json.dumps({"shards": [50, 50], "attributes": {"x": 1}, "fill_value": 3}).encode())
    with Handle.of(number) as handle:
        assert handle.lengths("object_shape") == (50, 50)
        assert (handle.read((0, 0), (3, 3)) == 3).all()
    z = zcore.open(tmp_path / "a")
    assert (z.shape, z.chunks, z.shards, z.dtype, dict(z.attrs)) == ((100, 50), (10, 10), (50, 50), "f4", {"x": 1})
    with pytest.raises(CallError, match="holds an array already") as caught:
        asked("create", place, 2, numbers((100, 50)), None, b"<f4", None)
    assert caught.value.code == 3


def test_text_that_is_none(tmp_path):
    """It is neither read nor written, whether the array was written by zcore or not."""
    none = np.full(4, 0x110000, "<u4")
    z = zcore.create_array(tmp_path, shape=4, dtype="<U1", compressors=None, checksum=False)
    with Handle(tmp_path) as handle:
        handle.write((0,), np.full(4, "ä", "<U1"))
        assert (handle.read((0,), (4,), "<U1") == "ä").all()
        with pytest.raises(CallError, match="text has the code point"):
            handle.write((0,), none.view("U1"))
        z.store.set("c/0", none.tobytes())
        with pytest.raises(CallError, match="text has the code point"):
            handle.read((0,), (4,), "<U1")


def test_from_object(simple):
    number = asked("from_object", simple)
    with Handle.of(number) as handle:
        assert np.array_equal(handle.read((0, 0), (100, 120)), simple[...])
    with pytest.raises(CallError, match="is no array") as caught:
        asked("from_object", [1])
    assert caught.value.code == 4


@pytest.mark.parametrize("store", ["memory", "asdf", "zip", "reference"])
def test_other_stores(tmp_path, store):
    elements = np.arange(600, dtype="f4").reshape(20, 30)
    if store == "asdf":
        pytest.importorskip("yaml")
        zcore.asdf.write(tmp_path / "a.asdf", {"data": elements})
        z = zcore.open(tmp_path / "a.asdf")["data"]
    else:
        memory = zcore.create_array(zcore.MemoryStore(), shape=(20, 30), chunks=(7, 7), dtype="f4")
        memory[...] = elements
        z = memory
        if store == "zip":
            zcore.copy(memory, tmp_path / "d")
            import zipfile
            with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
                for file in sorted((tmp_path / "d").rglob("*")):
                    if file.is_file():
                        archive.write(file, file.relative_to(tmp_path / "d"))
            z = zcore.open(tmp_path / "a.zip")
        elif store == "reference":
            zcore.copy(memory, tmp_path / "d")
            z = zcore.open(zcore.references(tmp_path / "d"))
    with Handle.of(asked("from_object", z)) as handle:
        assert np.array_equal(handle.read((3, 4), (10, 20), threads=1), elements[3:13, 4:24])
        if store == "memory":
            handle.write((3, 4), np.zeros((10, 20), "f4"))
            assert not z[3:13, 4:24].any()


def test_attributes(simple):
    with Handle(place_of(simple)) as handle:
        assert asked("get_attrs", handle.number, None, 0) == len('{"a": 1}')
        text = c.create_string_buffer(5)
        assert asked("get_attrs", handle.number, text, 5) == 8
        assert text.value == b'{"a"'
        asked("set_attr", handle.number, b"b", '{"ä": [1, null]}'.encode())
        asked("set_attr", handle.number, b"a", None)
        text = c.create_string_buffer(100)
        asked("get_attrs", handle.number, text, 100)
        assert json.loads(text.value) == {"b": {"ä": [1, None]}}
        # The document is another one now.
        assert np.array_equal(handle.read((0, 0), (100, 120)), simple[...])
        handle.write((0, 0), np.zeros((5, 5), "f4"))
    simple.refresh()
    assert dict(simple.attrs) == {"b": {"ä": [1, None]}}
    assert not simple[:5, :5].any()


def test_attributes_with_half_a_surrogate_pair_are_refused(simple):
    """What other programs have stored of them comes out as the escape that it is."""
    with Handle(place_of(simple)) as handle:
        for name, value in ((b"b", rb'"caf\udce9.tif"'), (b"b", rb'[{"\ud83d": 1}]')):
            with pytest.raises(CallError, match="attribute 'b': text with half a surrogate pair"):
                asked("set_attr", handle.number, name, value)
        with pytest.raises(CallError):
            asked("set_attr", handle.number, b"caf\xe9.tif", b"1")
    document = os.path.join(place_of(simple), "zarr.json")
    with open(document) as file:
        text = file.read()
    with open(document, "w") as file:
        file.write(text.replace('"a": 1', r'"a": "\u00e4\udce9"'))
    with Handle(place_of(simple)) as handle:
        text = c.create_string_buffer(100)
        asked("get_attrs", handle.number, text, 100)
        assert text.value == r'{"a": "ä\udce9"}'.encode()
    with pytest.raises(CallError, match="half a surrogate pair"):
        asked("create", f"{place_of(simple)}-new".encode(), 1, numbers((2,)), None, b"<f4",
              rb'{"attributes": {"a": "\udce9"}}')


def test_attributes_that_another_handle_sets_make_nothing_stale(simple):
    with Handle(place_of(simple)) as handle:
        for k in range(20):
            simple.attrs["k"] = k
            handle.write((k, 0), np.full((1, 120), k, "f4"))
            assert (handle.read((k, 0), (1, 120)) == k).all()
    assert (simple[:20] == np.arange(20)[:, None]).all()


def test_resize_and_refresh(simple):
    with Handle(place_of(simple)) as handle, Handle(place_of(simple)) as other:
        asked("resize", handle.number, numbers((110, 120)))
        assert handle.lengths("shape") == (110, 120)
        handle.write((100, 0), np.full((10, 120), 8, "f4"))
        with pytest.raises(CallError, match="zcore_refresh") as caught:
            other.read((100, 0), (10, 120))
        assert caught.value.code == 9
        asked("refresh", other.number)
        assert (other.read((100, 0), (10, 120)) == 8).all()


def test_an_array_that_was_replaced(simple, tmp_path):
    with Handle(place_of(simple)) as handle:
        zcore.create_array(tmp_path / "a", shape=(5, 5), dtype="i8", overwrite=True)
        with pytest.raises(CallError, match="replaced by another one"):
            handle.read((0, 0), (5, 5))
        with pytest.raises(CallError, match="replaced by another one"):
            handle.write((0, 0), np.zeros((5, 5), "f4"))
        zcore.open(tmp_path).__delitem__("a") if (tmp_path / "zarr.json").exists() else os.rename(
            tmp_path / "a", tmp_path / "b")
        with pytest.raises(CallError) as caught:
            handle.read((0, 0), (5, 5))
        assert caught.value.code == 2


def test_damage_has_its_code_and_place(simple):
    (file,) = [path for path in os.scandir(os.path.join(place_of(simple), "c", "3")) if path.name == "2"]
    with open(file.path, "r+b") as opened:
        opened.truncate(10)
    with Handle(place_of(simple)) as handle:
        with pytest.raises(CallError, match="c/3/2") as caught:
            handle.read((30, 40), (1, 1))
        assert caught.value.code == 23
        assert (handle.read((0, 0), (10, 20)) == simple[:10, :20]).all()


def test_read_only(simple):
    with Handle(place_of(simple), "r") as handle:
        with pytest.raises(CallError, match="r\\+") as caught:
            handle.write((0, 0), np.zeros((1, 1), "f4"))
        assert caught.value.code == 14
        with pytest.raises(CallError) as caught:
            asked("resize", handle.number, numbers((1, 1)))
        assert caught.value.code == 14


def test_a_full_disk_has_its_errno(simple):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    os.makedirs(os.path.join(place_of(simple), "c", "0"), exist_ok=True)
    os.chmod(os.path.join(place_of(simple), "c", "0"), 0o500)
    try:
        if os.access(os.path.join(place_of(simple), "c", "0"), os.W_OK):
            pytest.skip("this user may write everywhere")
        with Handle(place_of(simple)) as handle, pytest.raises(CallError) as caught:
            handle.write((0, 0), np.zeros((10, 20), "f4"))
        assert (caught.value.code, caught.value.sys_errno) == (11, 13)
    finally:
        os.chmod(os.path.join(place_of(simple), "c", "0"), 0o700)


BAD = {
    "start": ({"start": None}, 40, "start or count is NULL"),
    "count": ({"count": None}, 40, "start or count is NULL"),
    "data": ({"data": None}, 40, "data is NULL"),
    "negative count": ({"count": (-1, 5)}, 40, "dimension 0: the count is -1"),
    "step 0": ({"step": (1, 0)}, 40, "dimension 1: the step is 0"),
    "threads": ({"threads": -1}, 40, "n_threads is negative"),
    "past the end": ({"start": (99, 0)}, 9, "shape"),
    "before the start": ({"start": (-1, 0)}, 9, "shape"),
    "long count": ({"count": (101, 1)}, 9, "the count is 101, the array has 100"),
    "huge count": ({"count": (2**62, 2**62)}, 9, "the array has"),
    "huge start": ({"start": (2**63 - 1, 0)}, 9, "shape"),
    "huge step": ({"step": (2**62, 1), "count": (2, 1)}, 9, "shape"),
    "lowest step": ({"step": (-2**63, 1), "count": (2, 1)}, 9, "shape"),
    "overlap": ({"strides": (4, 4)}, 40, "overlap"),
    "stride 0": ({"strides": (0, 4)}, 40, "overlap"),
    "short stride": ({"strides": (20, 3)}, 40, "overlap"),
    "huge stride": ({"strides": (2**62, 4)}, 40, "overlap"),
    "lowest stride": ({"strides": (4, -2**63)}, 40, "overlap"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments(simple, case):
    change, code, sentence = BAD[case]
    memory = np.full((5, 5), 3, "f4")
    arguments = {"start": (0, 0), "count": (5, 5), "data": memory, **change}
    with Handle(place_of(simple)) as handle:
        for name in ("read", "write"):
            if name == "write" and "strides" in change:
                continue
            with pytest.raises(CallError, match=sentence) as caught:
                handle.move(name, **arguments)
            assert caught.value.code == code
            # Nobody has to want the error.
            assert call[name](handle.number, numbers(arguments["start"]), numbers(arguments["count"]),
                              numbers(arguments.get("step")),
                              None if arguments["data"] is None else memory.ctypes.data,
                              numbers(arguments.get("strides")), arguments.get("threads", 0), None) == -1
    assert (memory == 3).all()
    assert np.array_equal(simple[...], np.arange(12000, dtype="f4").reshape(100, 120))


@each(("arguments", "code", "sentence"), [
    ((None, b"r", None), 40, "place is NULL"), ((b"/nowhere/at/all", b"r", None), 2, "does not exist"),
    ((b"/nowhere", b"rw", None), 40, "mode"), ((b"\xff", b"r", None), 40, "utf-8"),
    ((b"/nowhere", b"r", b"[1]"), 40, "object"),
    ((b"/nowhere", b"r", b"{"), 40, "expected a JSON object"), ((b"/nowhere", b"r", b'{"fist": 1}'), 40, "fist"),
])
def test_bad_opens(arguments, code, sentence):
    with pytest.raises(CallError, match=sentence) as caught:
        asked("open", *arguments)
    assert caught.value.code == code
    assert call["open"](*arguments, None) is None


def test_groups_and_text_are_refused(tmp_path):
    zcore.create_group(tmp_path / "g")
    with pytest.raises(CallError, match="holds a group, not an array"):
        Handle(tmp_path / "g")
    zcore.create_array(tmp_path / "t", shape=(3,), dtype="T" if hasattr(np.dtypes, "StringDType") else str)
    with pytest.raises(CallError, match="varying length") as caught:
        Handle(tmp_path / "t")
    assert caught.value.code == 7


def test_closed_handles_are_told_from_open_ones(simple):
    handle = Handle(place_of(simple))
    handle.close()
    handle.close()
    assert call["ndim"](handle.number) == -1
    again = Handle(place_of(simple))
    assert again.number != handle.number
    for number, code in [(handle.number, 41), (None, 40), (12345, 41), (2**63 - 1, 41), (2**64 - 5, 41)]:
        with pytest.raises(CallError) as caught:
            asked("read", number, numbers((0, 0)), numbers((1, 1)), None, np.zeros(1, "f4").ctypes.data, None, 0)
        assert caught.value.code == code
        for name in ("refresh", "sync"):
            with pytest.raises(CallError):
                asked(name, number)
        call["close"](number)
    assert again.read((0, 0), (1, 1)) == 0
    again.close()


def test_ten_thousand_handles_leave_nothing_behind(simple):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def use(n):
        for _ in range(n):
            with Handle(place_of(simple)) as handle:
                handle.read((0, 0), (1, 1))

    use(500)
    before = descriptors(), resident()
    use(3000)
    assert descriptors() <= before[0]
    # The address sanitizer keeps freed memory for a while.
    assert build_info()["variant"] == "sanitize" or resident() - before[1] < 4 << 20


def test_threads_share_a_handle(simple):
    expected = simple[...]
    wrong = []
    with Handle(place_of(simple)) as handle:
        def read(seed):
            rng = np.random.default_rng(seed)
            for _ in range(300):
                start = rng.integers(0, (90, 100))
                found = handle.read(start, (10, 20), threads=1)
                if not np.array_equal(found, expected[start[0]:start[0] + 10, start[1]:start[1] + 20]):
                    wrong.append(start)

        at_once(threading.Thread(target=read, args=(seed,)) for seed in range(16))
    assert wrong == []


@pytest.mark.parametrize("store", ["directory", "memory"])
def test_threads_share_a_handle_of_an_array_that_changes(simple, store):
    """Each thread takes over the new document, while others still read by the old one."""
    z = simple if store == "directory" else zcore.create_array(zcore.MemoryStore(), data=simple[...], chunks=(10, 20))
    expected, n_threads, errors = simple[...], 4, []
    with Handle.of(asked("from_object", z)) as handle:
        start = threading.Barrier(n_threads)

        def use(i):
            try:
                start.wait(60)
                for k in range(10):
                    asked("set_attr", handle.number, b"of %d" % i, b"%d" % k)
                    assert np.array_equal(handle.read((i, 0), (20, 120), threads=1), expected[i:i + 20])
            except BaseException as exc:
                errors.append(exc)

        at_once(threading.Thread(target=use, args=(i,)) for i in range(n_threads))
        assert errors == []
        assert dict(z.attrs) == {**({"a": 1} if store == "directory" else {}), **{f"of {i}": 9 for i in range(4)}}


@pytest.mark.parametrize("lock", ["on", "file"])
def test_misaligned_writers_lose_nothing(simple, lock):
    with Handle(place_of(simple), options=json.dumps({"lock": lock}).encode()) as handle:
        def write(part):
            for k in range(30):
                handle.write((7 * part, k), np.full((7, 3), part * 100 + k, "f4"), threads=1)

        at_once(threading.Thread(target=write, args=(part,)) for part in range(12))
    expected = np.repeat(np.arange(12) * 100, 7)[:, None] + np.arange(30)
    assert np.array_equal(simple[:84, :30], expected)


def test_closing_waits_for_calls(simple):
    handle = Handle(place_of(simple))
    codes = []

    def read():
        error = Error()
        memory = np.zeros((100, 120), "f4")
        while call["read"](handle.number, numbers((0, 0)), numbers((100, 120)), None, memory.ctypes.data, None, 1,
                           error) == 0:
            pass
        codes.append(error.code)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    handle.close()
    for thread in threads:
        thread.join(10)
    assert codes == [41] * 4


def test_a_forked_child_reads_and_writes(simple):
    with Handle(place_of(simple)) as handle:
        expected = handle.read((0, 0), (100, 120))
        child = os.fork()
        if child == 0:
            try:
                good = np.array_equal(handle.read((0, 0), (100, 120)), expected)
                handle.write((0, 0), np.full((3, 3), -1, "f4"))
                os._exit(0 if good else 3)
            finally:
                os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        expected[:3, :3] = -1
        assert np.array_equal(handle.read((0, 0), (100, 120)), expected)


@pytest.mark.parametrize("n_forks", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_a_child_that_is_forked_in_the_middle_can_close(simple, n_forks):
    handle = Handle(place_of(simple))
    stop = threading.Event()

    def read():
        while not stop.is_set():
            handle.read((0, 0), (100, 120))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(n_forks):
            child = os.fork()
            if child == 0:
                signal.alarm(20)        # ends it, if it hangs
                handle.read((0, 0), (100, 120))
                handle.close()
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    handle.close()


def test_a_handle_keeps_its_type_and_number_of_dimensions(simple, tmp_path):
    with Handle(place_of(simple)) as handle:
        zcore.create_array(tmp_path / "a", shape=(2, 2, 2), dtype="f4", overwrite=True)
        with pytest.raises(CallError, match="replaced"):
            asked("refresh", handle.number)
        assert call["ndim"](handle.number) == 2
        with pytest.raises(CallError):
            handle.read((0, 0), (2, 2))


def test_a_box_of_more_bytes_than_memory_is_no_empty_one(tmp_path):
    zcore.create_array(tmp_path / "a", shape=(2**31, 2**31), chunks=(1, 1), dtype="i4")
    memory = np.zeros(1, "i4")
    with Handle(tmp_path / "a") as handle:
        for count in [(2**31, 2**31), (2**31, 2**30)]:
            for name in ("read", "write"):
                with pytest.raises(CallError, match="more bytes than") as caught:
                    handle.move(name, (0, 0), count, memory)
                assert caught.value.code == 40


def test_any_number_of_threads_may_be_asked_for(array):
    with Handle(place_of(array)) as handle:
        assert np.array_equal(handle.read((0, 0), (100, 120), threads=2**31 - 1), array[...])
        handle.write((0, 0), np.zeros((100, 120), "f4"), threads=2**31 - 1)
    assert not array[...].any()


def test_signals_in_the_middle_harm_nothing(simple):
    """SIGALRM with a handler that does not restart calls, as fast as the system gives it."""
    caught = []
    before = signal.signal(signal.SIGALRM, lambda *_: caught.append(1))
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        with Handle(place_of(simple)) as handle:
            for k in range(80):
                handle.write((0, 0), np.full((100, 120), k, "f4"))
                assert (handle.read((0, 0), (100, 120)) == k).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught


def test_flags():
    def asked_for(*options):
        return subprocess.run([sys.executable, "-m", "zcore.embed", *options], check=True, capture_output=True,
                              text=True).stdout

    assert f"-I{zcore.get_include()}" in asked_for("--cflags")
    assert "-lzcore_start" in asked_for("--libs")
    assert asked_for("--version") == f"{zcore.__version__}\n"
    assert os.path.isfile(asked_for("--fortran").split()[-1])
    assert subprocess.run([sys.executable, "-m", "zcore.embed"], capture_output=True).returncode == 2
