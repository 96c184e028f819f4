"""The benchmark harness: well-formed tables, fixtures that others agree with, wrong answers that get no time.

No test looks at a time. The libraries that are not installed are skipped.
"""
import dataclasses
import gc
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.each import each

pytest.importorskip("blosc")

from benchmarks import adapters, command
from benchmarks.comparisons import (
    asdf_files,
    checkpoint,
    codecs,
    datasets,
    embedding,
    growth,
    kernels,
    pipelines,
    streams,
)
from benchmarks.counts import instructions, lines
from benchmarks.harness import children, machine, runner
from benchmarks.harness import timing as clocks
from benchmarks.inputs import data, encodings, fixtures, object_server, reference_sets
from benchmarks.inputs.fixtures import Layout
from benchmarks.report import tables
from benchmarks.suites import workloads

SHAPES = [((64,), (16,)), ((12, 20), (4, 5)), ((4, 6, 8), (1, 6, 8)), ((4, 6, 8), (2, 3, 8)), ((8, 1, 4), (2, 1, 4))]

MEASURED = """
import sys
import numpy as np
from benchmarks.harness import runner
from benchmarks.harness.timing import timed
from benchmarks.suites import workloads

workload = workloads.select(["read_tiles"])[0]
with runner.Bench(runner.Options(repeats=2, directory=sys.argv[1]), report=lambda line: None) as bench:
    taken = runner.take(bench, workload, {"one": None}, lambda name, library, i: timed(np.ones, 2**22)[0])
print(*taken.peaks["one"], len(taken.samples["one"]))
"""


@pytest.fixture(scope="module", autouse=True)
def no_collections():
    """Each time is taken after a garbage collection, which takes longer than what is measured here."""
    without = SimpleNamespace(collect=lambda: 0, disable=gc.disable, enable=gc.enable)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("timing", "memory"):
            patch.setattr(f"benchmarks.harness.{name}.gc", without)
        yield


def adapter(name):
    try:
        return adapters.load(name, 2)
    except ImportError as exc:
        pytest.skip(f"{name}: {exc}")


@pytest.fixture(params=list(adapters.LIBRARIES))
def library(request):
    return adapter(request.param)


class Wrong(adapters.Base):
    """Opens, writes and creates nothing, and reads zeros."""

    def open(self, path, view):
        return path

    open_to_write = open_keeping = open

    def read(self, handle):
        return np.zeros((256, 256), np.float32)

    def read_parts(self, handle, boxes):
        return [np.zeros((4, 4), np.float32) for _ in boxes]

    def read_box(self, handle, box):
        return np.zeros((1, 256), np.float32)

    def read_points(self, handle, rows, columns):
        return np.zeros(len(rows), np.float32)

    def read_mask(self, handle, mask):
        return np.zeros(np.count_nonzero(mask), np.float32)

    def read_product(self, handle, rows, columns):
        return np.zeros((len(rows), len(columns)), np.float32)

    def read_strided(self, handle, *steps):
        return np.zeros((37, 86), np.float32)

    def read_crops(self, handle, boxes):
        return np.zeros((len(boxes), 16, 16), np.float32)

    def read_elements(self, handle, places):
        return [np.float32(0)] * len(places)

    def read_first(self, handle, count):
        return np.zeros(count, np.float32)

    def write(self, handle, data):
        pass

    def write_box(self, handle, box, values):
        pass

    def append(self, handle, parts):
        pass

    def create_group(self, path, arrays):
        os.mkdir(path)

    def open_member(self, path, name):
        return np.zeros(3)

    def list_remote(self, place, path):
        return []

    def list_group(self, path):
        return []


class TestWorkloads:
    def test_names_are_unique(self):
        names = [workload.name for workload in workloads.WORKLOADS]
        assert len(set(names)) == len(names)

    @each("workload", workloads.WORKLOADS, ids=lambda workload: workload.name)
    def test_chunks_divide_shape_and_targets_are_bounds(self, workload):
        for one in (workload, workloads.quick(workload)):
            assert len(one.shape) == len(one.chunks)
            objects = one.shards or one.chunks
            assert not any(n % c for n, c in zip(one.shape, objects, strict=True))
            assert not any(n % c for n, c in zip(objects, one.chunks, strict=True))
            assert one.encoding in encodings.ENCODINGS
            assert one.kind in runner._KINDS
            assert one.place in ("disk", "tmpfs")
            assert not one.latency or one.kind.startswith("remote")
        assert workload.targets
        known = {*adapters.LIBRARIES, workloads.FASTEST, workloads.MEGABYTE, workloads.RESULT, workloads.STAT}
        for target in workload.targets:
            assert (target.at_least is None) != (target.at_most is None)
            assert target.against in known

    @each(("name", "n_chunks", "chunk_nbytes"), [
        ("read_frames", 64, 2**22), ("read_tiles", 64, 2**22), ("read_small_tiles", 4096, 2**14),
        ("read_int16", 64, 2**20), ("s3_small", 1024, 2**16), ("write_disk", 64, 2**22),
        ("write_small_tmpfs", 4096, 2**14),
    ])
    def test_sizes_are_those_of_the_titles(self, name, n_chunks, chunk_nbytes):
        workload, = workloads.select([name])
        assert len(list(fixtures.grid_coords(workload.shape, workload.chunks))) == n_chunks
        assert np.dtype(workload.dtype).itemsize * np.prod(workload.chunks) == chunk_nbytes

    def test_unknown_name_is_refused(self):
        with pytest.raises(ValueError, match="no workload read_alll"):
            workloads.select(["read_tiles", "read_alll"])


class TestData:
    @pytest.mark.parametrize("kind", data.KINDS)
    def test_is_reproducible_float32(self, kind):
        first, second = data.make(kind, (30, 40), seed=7), data.make(kind, (30, 40), seed=7)
        assert first.dtype == np.float32
        assert first.shape == (30, 40)
        assert data.same(first, second)
        assert np.isfinite(first).all()
        assert first.any()

    @pytest.mark.parametrize("kind", data.KINDS)
    def test_integers_differ_as_the_floats_do(self, kind):
        array = data.make(kind, (30, 40), 7, "int16")
        assert array.dtype == np.int16 and array.max() > 90
        assert kind == "random" or data.same(array / np.float32(64), data.make(kind, (30, 40), 7))

    def test_seed_changes_the_noise(self):
        assert not data.same(data.make("smooth", (30, 40), seed=1), data.make("smooth", (30, 40), seed=2))

    @pytest.mark.parametrize("other", [
        np.zeros(4, np.float32), np.zeros((2, 2), np.float64), np.full((2, 2), -0.0, np.float32), [[0.0] * 2] * 2, None,
    ])
    def test_same_tells_shape_dtype_kind_and_sign_of_zero(self, other):
        assert not data.same(other, np.zeros((2, 2), np.float32))

    def test_nan_is_the_same_as_itself(self):
        array = np.array([np.nan, 1], np.float32)
        assert data.same(array.copy(), array)


class TestFixtures:
    def test_chunks_are_files_and_in_a_reference_set_parts_of_one(self, tmp_path):
        array = data.make("smooth", (12, 20))
        for view, names in (("v2", {f"{i}.{j}" for i in range(3) for j in range(4)}), ("v3", {"zarr.json", "c"})):
            fixture = fixtures.write(tmp_path / view, array, Layout((12, 20), (4, 5), None, view))
            assert {path.name for path in (tmp_path / view).iterdir()} >= names
            assert fixtures.written_correctly(fixture.path, array, fixture.layout)
        fixture = fixtures.write(tmp_path / "r", array, Layout((12, 20), (4, 5), None, "references"))
        assert fixture.stored_nbytes == (tmp_path / "r" / "chunks.bin").stat().st_size

    def test_a_wrong_missing_or_differently_coded_chunk_is_found(self, tmp_path):
        import blosc

        array, layout = data.make("smooth", (12, 20)), Layout((12, 20), (4, 5), None, "v2")
        path = fixtures.write(tmp_path / "f", array, layout).path
        chunk = tmp_path / "f" / "1.2"
        good = chunk.read_bytes()
        chunk.unlink()
        assert not fixtures.written_correctly(path, array, layout)
        chunk.write_bytes(blosc.compress(bytes(80), 4, 5, 1, "lz4"))
        assert not fixtures.written_correctly(path, array, layout)
        chunk.write_bytes(good)
        assert fixtures.written_correctly(path, array, layout)
        wide, layout = data.make("smooth", (64, 64)), Layout((64, 64), (64, 64), None, "v2")
        path = fixtures.write(tmp_path / "g", wide, layout).path
        (tmp_path / "g" / "0.0").write_bytes(blosc.compress(wide.tobytes(), 4, 5, 1, "zstd"))
        assert not fixtures.written_correctly(path, wide, layout)

    @pytest.mark.parametrize(("name", "other"), [("raw", "transpose"), ("zstd", "gzip"), ("gzip", "raw"),
                                                  ("crc32c", "v3")])
    def test_a_chunk_of_another_codec_or_order_is_found(self, tmp_path, name, other):
        array = data.make("smooth", (8, 8))
        layout = Layout((8, 8), (8, 8), None, name)
        path = fixtures.write(tmp_path / "f", array, layout).path
        assert fixtures.written_correctly(path, array, layout)
        (tmp_path / "f" / "c" / "0" / "0").write_bytes(encodings.encode(encodings.ENCODINGS[other], array))
        assert not fixtures.written_correctly(path, array, layout)

    def test_a_wrong_missing_or_damaged_part_of_a_shard_is_found(self, tmp_path):
        array, layout = data.make("smooth", (8, 8)), Layout((8, 8), (4, 4), (8, 8), "raw")
        path = fixtures.write(tmp_path / "f", array, layout).path
        assert fixtures.written_correctly(path, array, layout)
        shard = tmp_path / "f" / "c" / "0" / "0"
        good = shard.read_bytes()
        for at in (5, len(good) - 20, len(good) - 1):
            shard.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            assert not fixtures.written_correctly(path, array, layout)
        absent = [array[:4, :4].tobytes(), None, None, None]
        assert encodings.unpack_shard(encodings.pack_shard([b"ab", b""]), 2) == [b"ab", b""]
        index = np.array([0, 64, *[encodings.NO_CHUNK] * 6], "<u8").tobytes()
        shard.write_bytes(absent[0] + index + encodings.crc32c(index).to_bytes(4, "little"))
        assert encodings.unpack_shard(shard.read_bytes(), 4) == absent
        assert not fixtures.written_correctly(path, array, layout)
        array[4:] = array[:, 4:] = 0
        assert fixtures.written_correctly(path, array, layout)

    def test_crc32c_of_the_rfc(self):
        """RFC 3720, B.4: 32 bytes of zeros, of ones, and rising."""
        assert [encodings.crc32c(data) for data in (bytes(32), b"\xff" * 32, bytes(range(32)))] == [
            0x8A9136AA, 0x62A8AB43, 0x46DD794E]

    def test_an_absent_chunk_of_fill_values_is_right(self, tmp_path):
        assert fixtures.written_correctly(tmp_path, np.zeros((4, 4), np.float32), Layout((4, 4), (2, 2)))

    @pytest.mark.parametrize("layout", [Layout((10,), (4,)), Layout((10,), (3,), (5,), "v3")])
    def test_chunks_that_do_not_divide_are_refused(self, tmp_path, layout):
        with pytest.raises(ValueError, match="do not divide"):
            fixtures.write(tmp_path / "f", data.make("constant", (10,)), layout)

    def test_a_group_that_lacks_an_array_or_has_another_is_found(self, tmp_path):
        arrays = fixtures.members(4, (4, 4), (2, 2))
        fixtures.write_group(tmp_path / "g", arrays[:3], data.make("smooth", (4, 4)))
        assert fixtures.group_holds(tmp_path / "g", arrays[:3])
        assert not fixtures.group_holds(tmp_path / "g", arrays)
        (tmp_path / "g" / arrays[2].name).rename(tmp_path / "g" / arrays[3].name)
        assert not fixtures.group_holds(tmp_path / "g", arrays[:2] + arrays[3:])

    def test_members_of_a_group_differ_in_all(self):
        arrays = fixtures.members(200, (1000, 1000), (100, 100))
        for name in ("name", "shape", "chunks"):
            assert len({getattr(one, name) for one in arrays}) == 200
        assert len({one.attributes["long_name"] for one in arrays}) == 200 and len({one.dtype for one in arrays}) > 3


class TestAdapters:
    @pytest.mark.thinned(2, "library", "shape")
    @pytest.mark.parametrize(("shape", "chunks"), SHAPES)
    def test_library_reads_and_writes_what_the_fixture_says(self, library, tmp_path, shape, chunks):
        encoding = "v3" if library.knows("v3") else encodings.REFERENCES
        self.check(library, tmp_path, Layout(shape, chunks, None, encoding))

    @pytest.mark.thinned(4, "library", "encoding", "shards")
    @pytest.mark.parametrize("shards", [None, (8, 20)])
    @pytest.mark.parametrize("encoding", list(encodings.ENCODINGS))
    def test_library_knows_the_encodings_that_it_says(self, library, tmp_path, encoding, shards):
        layout = Layout((16, 20), (4, 5), shards, encoding)
        if not library.knows(encoding) or shards and library.distributions == ("blosc",):
            pytest.skip("not measured")
        if shards and layout.view != "v3":
            pytest.skip("Zarr v2 has no shards")
        self.check(library, tmp_path, layout)

    def test_library_opens_sets(self, library, tmp_path):
        if "set" not in library.kinds:
            pytest.skip("not measured")
        path, expected = str(tmp_path / "set.json"), reference_sets.expected(1000)
        reference_sets.write_set(path, 1000)
        library.activate()
        handle = library.open_set(path)
        assert library.length_of_set(handle) == 1001 and library.set_says(handle, expected)
        assert not library.set_says(handle, {**expected, "temperature/0.3": [reference_sets.URL, 1, 2]})

    def check(self, library, tmp_path, layout):
        array = data.make("smooth", layout.shape, dtype=encodings.ENCODINGS[layout.encoding].dtype)
        fixture, view = fixtures.write(tmp_path / "f", array, layout), layout.view
        library.activate()
        if "read" in library.kinds:
            assert data.same(library.read(library.open(fixture.path, view)), array)
        if "parts" in library.kinds:
            boxes = [fixtures.box(at, layout.chunks) for at in fixtures.grid_coords(layout.shape, layout.chunks)][::-1]
            for read in (library.read_parts, library.read_parts_at_once):
                parts = read(library.open(fixture.path, view), boxes)
                assert all(data.same(part, array[box]) for part, box in zip(parts, boxes, strict=True))
        self.check_selections(library, fixture, view, array)
        if "write" in library.kinds and view != encodings.REFERENCES:
            fixtures.create(tmp_path / "new", layout)
            library.write(library.open_to_write(str(tmp_path / "new"), view), array)
            assert fixtures.written_correctly(tmp_path / "new", array, layout)
        if "open" in library.kinds and len(layout.shape) == 1:
            assert data.same(library.read_first(library.open(fixture.path, view), 10), array[:10])
        assert all(library.versions().values())

    def check_selections(self, library, fixture, view, array):
        length = len(array)
        handle = library.open(fixture.path, view) if "read" in library.kinds else None
        steps = (3, -2, -1)[:array.ndim]
        if "strided" in library.kinds:
            assert data.same(library.read_strided(handle, *steps), array[tuple(slice(None, None, n) for n in steps)])
        if "mask" in library.kinds:
            mask = np.arange(array.size).reshape(array.shape) % 3 > 0
            assert data.same(library.read_mask(handle, mask), array[mask])
        if array.ndim != 2:
            return
        if "crops" in library.kinds:
            boxes = [np.s_[0:4, 16:20], np.s_[3:7, 2:6]]
            assert data.same(library.read_crops(handle, boxes), np.stack([array[box] for box in boxes]))
        rows, columns = np.array([5, 0, 5, length - 1, 2, 4, 1, 3]), np.array([3, 4, 3, 0, 19, 7, 1, 8])
        if "points" in library.kinds:
            assert data.same(library.read_points(handle, rows, columns), array[rows, columns])
        if "product" in library.kinds:
            assert data.same(library.read_product(handle, rows, columns), array[np.ix_(rows, columns)])

    @pytest.mark.parametrize("shards", [None, (8, 20)])
    def test_library_changes_parts_and_appends(self, library, tmp_path, shards):
        layout = Layout((16, 20), (4, 5), shards)
        if not library.knows(layout.encoding):
            pytest.skip("not measured")
        array, view = data.make("smooth", layout.shape), layout.view
        library.activate()
        if "write_box" in library.kinds:
            path = fixtures.write(tmp_path / "f", array, layout).path
            changed = array.copy()
            changed[:, 3:6] = 7
            library.write_box(library.open_to_write(path, view), np.s_[:, 3:6], changed[:, 3:6].copy())
            assert fixtures.written_correctly(path, changed, layout)
        for method in {"append", "stream"} & library.kinds:
            path = tmp_path / method
            fixtures.create(path, dataclasses.replace(layout, shape=(0, 20)))
            getattr(library, method)(library.open_to_write(str(path), view), [array[i:i + 1] for i in range(16)])
            assert fixtures.shape_of(path, layout) == array.shape
            assert fixtures.written_correctly(path, array, layout)

    def test_library_creates_and_lists_groups(self, library, tmp_path):
        arrays, path = fixtures.members(5, (4, 6), (2, 3)), str(tmp_path / "g")
        library.activate()
        if "create" in library.kinds:
            library.create_group(path, arrays)
        else:
            fixtures.write_group(path, arrays)
        assert fixtures.group_holds(path, arrays)
        expected = [(one.name, one.shape, one.dtype) for one in arrays]
        if "list" in library.kinds:
            assert sorted(library.list_group(path)) == expected
        if "member" in library.kinds:
            assert tuple(library.open_member(path, arrays[3].name).shape) == arrays[3].shape

    def test_library_reads_and_lists_a_bucket_over_tls(self, library, tmp_path):
        if "remote" not in library.kinds:
            pytest.skip("not measured")
        array, arrays = data.make("smooth", (16, 20)), fixtures.members(5, (4, 6), (2, 3))
        fixtures.write(tmp_path / "a", array, Layout((16, 20), (4, 5), (8, 20)))
        fixtures.write_group(tmp_path / "g", arrays)
        library.activate()
        with object_server.serving(str(tmp_path)) as place:
            assert data.same(library.read(library.open_remote(place, "a")), array)
            assert data.same(library.read_box(library.open_remote(place, "a"), np.s_[:, 3:6]), array[:, 3:6])
            if "remote_list" in library.kinds:
                assert sorted(library.list_remote(place, "g")) == [(one.name, one.shape, one.dtype) for one in arrays]

    def test_library_is_imported_and_reads(self, library, tmp_path):
        if "first_read" not in library.kinds:
            pytest.skip("not measured")
        array = data.make("smooth", (64,))
        path = fixtures.write(tmp_path / "f", array, Layout((64,), (16,))).path
        seconds, found = children.first_read(library.first_read, path, 10)
        assert seconds > 0 and found == array[:10].tolist()

    def test_bare_loop_reports_what_is_wrong(self, tmp_path):
        loop = adapter("bare_loop")
        array = data.make("smooth", (12, 20))
        path = fixtures.write(tmp_path / "f", array, Layout((12, 20), (4, 5))).path
        chunk = tmp_path / "f" / "c" / "1" / "2"
        good = chunk.read_bytes()
        chunk.write_bytes(good[:-1])
        with pytest.raises(OSError, match="a chunk header"):
            loop.read(loop.open(path, "v3"))
        chunk.unlink()
        with pytest.raises(OSError, match="open"):
            loop.read(loop.open(path, "v3"))

    def test_a_library_that_is_not_installed_is_skipped_with_the_reason(self, monkeypatch):
        monkeypatch.setitem(adapters.LIBRARIES, "absent", ("no_such_module", {}))
        found, skipped = adapters.load_all(["absent"], 1)
        assert found == {}
        assert "no_such_module" in skipped["absent"]

    def test_an_installed_distribution_brings_a_library(self, tmp_path, monkeypatch):
        (tmp_path / "another.py").write_text("from benchmarks.adapters import Base\n"
                                             "class Adapter(Base):\n    kinds = frozenset({'read'})\n", "utf-8")
        distribution = tmp_path / "another-1.0.dist-info"
        distribution.mkdir()
        (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1.0\n", "utf-8")
        (distribution / "entry_points.txt").write_text("[zcore_benchmarks]\nanother = another\n", "utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        assert adapters.names()[-1] == "another"
        found, skipped = adapters.load_all(["another"], 3)
        assert skipped == {} and found["another"].threads == 3 and found["another"].kinds == {"read"}


class TestRunner:
    @pytest.mark.parametrize("name", ["read_tiles", "open_blocked", "write_tmpfs", "read_shard_parts", "read_row",
                                      "read_elements", "create_arrays", "list_arrays", "open_member", "s3_list",
                                      "read_sparse", "read_crops", "stream_frames", "read_points", "read_mask",
                                      "read_product", "read_strided", "append_frames", "write_columns"])
    def test_a_wrong_answer_has_no_time(self, name, tmp_path):
        workload = workloads.quick(workloads.select([name])[0])
        options = runner.Options(repeats=2, quick=True, directory=str(tmp_path))
        with runner.Bench(options, report=lambda line: None) as bench:
            found = runner.measure(bench, workload, {"wrong": Wrong(1)})
        assert found["samples"] == {}
        assert found["summary"] == {}
        assert found["failed"]["wrong"].startswith("WrongResult")
        assert list(tmp_path.iterdir()) == []

    def test_the_memory_of_a_call_is_its_peak(self, tmp_path):
        """In a process of its own: what other tests have left, and what their threads give back, would count."""
        done = subprocess.run([sys.executable, "-c", MEASURED, tmp_path], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])})
        peak, of_result, n_samples = map(int, done.stdout.split())
        assert of_result == 8 * 2**22 and n_samples == 2
        assert sys.platform != "linux" or 0.95 < peak / of_result < 1.5

    def test_every_library_has_its_turn_in_a_random_order(self, tmp_path):
        class Recorder(Wrong):
            def __init__(self, name):
                super().__init__(1)
                self.name = name

            def read_first(self, handle, count):
                turns.append(self.name)
                one = members[handle.rpartition("/")[2]]
                return fixtures.first_chunk(source, one)[:count]

        workload = workloads.quick(workloads.select(["open_interleaved"])[0])
        members = {one.name: one for one in fixtures.members(5, workload.shape, workload.chunks)}
        turns, options = [], runner.Options(repeats=60, quick=True, directory=str(tmp_path))
        workload = workloads.replace(workload, max_repeats=None)
        with runner.Bench(options, report=lambda line: None) as bench:
            source = bench.array(workload.shape)
            found = runner.measure(bench, workload, {name: Recorder(name) for name in "ab"})
        assert {tuple(turns[i:i + 2]) for i in range(0, len(turns), 2)} == {("a", "b"), ("b", "a")}
        assert [len(samples) for samples in found["samples"].values()] == [60, 60]

    def test_a_server_that_is_not_installed_costs_only_its_own_workload(self, tmp_path, monkeypatch):
        def serving(*arguments):
            raise ImportError("no openssl")

        monkeypatch.setattr(runner.object_server, "serving", serving)
        workload = workloads.quick(workloads.select(["s3_small"])[0])
        with runner.Bench(runner.Options(quick=True, directory=str(tmp_path)), report=lambda line: None) as bench:
            found = runner.measure(bench, workload, {"a": None, "b": None})
        assert found["failed"] == {"a": "no openssl", "b": "no openssl"}
        assert found["summary"] == {}

    def test_the_clock_of_the_cpu_counts_no_waits(self, monkeypatch):
        monkeypatch.setattr(clocks, "clock", clocks.CLOCKS["cpu"])
        assert clocks.timed(time.sleep, 0.2)[0] < 0.1
        monkeypatch.setattr(clocks, "clock", clocks.CLOCKS["wall"])
        assert clocks.timed(time.sleep, 0.2)[0] >= 0.2

    def test_a_run_is_kept_to_its_cores_and_they_are_given_back(self):
        before = machine.usable_cores()
        with machine.kept_to_cores(1) as n:
            assert n == machine.usable_cores() == (1 if hasattr(os, "sched_setaffinity") else before)
        assert machine.usable_cores() == before


class TestReport:
    @staticmethod
    def workload(summary, targets, **members):
        return {"name": "w", "title": "t", "unit": "seconds", "summary": summary, "failed": {},
                "targets": [{"at_least": None, "at_most": None, "chunks_per_thread": 0, **one} for one in targets],
                **members}

    @staticmethod
    def both(value):
        return {"min": value, "median": value}

    @pytest.mark.parametrize(("target", "expected"), [
        ({"against": "fastest peer", "at_least": 1.5}, ("p", 2.0, True)),
        ({"against": "fastest peer", "at_least": 2.5}, ("p", 2.0, False)),
        ({"against": "q", "at_least": 3}, ("q", 3.0, True)),
        ({"against": "bare_loop", "at_most": 1.9}, ("bare_loop", 2.0, False)),
        ({"against": "bare_loop", "at_most": 2.1}, ("bare_loop", 2.0, True)),
    ])
    def test_target_of_times(self, target, expected):
        summary = {"zcore": self.both(2.0), "p": self.both(4.0), "q": self.both(6.0), "bare_loop": self.both(1.0)}
        found = self.workload(summary, [target])
        got = tables.evaluate(found["targets"][0], found, 2)
        assert (got["against"], got["ratio"], got["met"]) == expected

    @pytest.mark.parametrize(("peak", "met"), [(1090, True), (1091, False)])
    def test_target_of_memory_adds_chunks_for_each_thread(self, peak, met):
        target = {"against": "result", "at_most": 1.05, "chunks_per_thread": 2}
        found = self.workload({"zcore": self.both(peak)}, [target], nbytes=1000, chunk_nbytes=10)
        assert tables.evaluate(found["targets"][0], found, 2)["met"] is met

    @pytest.mark.parametrize(("peak", "met"), [(300e6, True), (301e6, False)])
    def test_target_of_memory_in_megabytes(self, peak, met):
        workload = self.workload({"zcore": self.both(peak)}, [{"against": "MB", "at_most": 300}])
        assert tables.evaluate(workload["targets"][0], workload, 2)["met"] is met

    def test_target_without_a_measurement_is_open(self):
        found = self.workload({"p": self.both(1.0)}, [{"against": "fastest peer", "at_least": 2}])
        assert tables.evaluate(found["targets"][0], found, 2) is None

    def test_losses_and_failures_stand_in_the_report(self):
        summary = {"zcore": self.both(2.0), "fast": self.both(1.0), "slow": self.both(8.0)}
        found = self.workload(summary, [{"against": "fastest peer", "at_least": 1.1}])
        found["failed"] = {"broken": "WrongResult: differs"}
        found["cannot"] = {"unable": "left to another"}
        text = tables.render({
            "commit": "abc", "time": "now", "data": "smooth", "repeats": 1, "quick": False,
            "machine": machine.describe(spin_count=1000),
            "runs": [{"threads": 2, "versions": {}, "skipped": {"gone": "not here"}, "file_systems": {},
                      "workloads": [found]}],
        })
        assert "**0.50 (0.50)**" in text
        assert "4.00 (4.00)" in text
        assert "| fastest peer (fast) | ≥ 1.1 | 0.500 | **missed** |" in text
        assert "broken has no time, WrongResult: differs" in text
        assert "unable has no time, left to another" in text
        assert "| cannot |" in text
        assert "gone: skipped, not here" in text

    def test_rows_and_their_mean_are_written_into_a_page(self, tmp_path):
        rows = [(2.0, "ahead", ""), (0.5, "behind", "p does less"), (16.0, "far", "")]
        workloads_ = [self.workload({"zcore": self.both(1.0), "p": self.both(ratio), "bare_loop": self.both(0.5)}, [])
                      | {"name": name, "title": f"row {name}", "note": note} for ratio, name, note in rows]
        result, page = tmp_path / "result.json", tmp_path / "page.md"
        workloads_[0]["load"], workloads_[1]["load"] = 0.4, 7
        result.write_text(json.dumps({"format": 1, "clock": "cpu", "repeats": 3, "commit": "abc", "time": "2026-11-30T",
                                      "runs": [{"workloads": workloads_}]}), "utf-8")
        page.write_text("before\n<!-- rows -->\nold\n<!-- end -->\nafter\n", "utf-8")
        for _ in range(2):
            assert command.main(["report", str(result), "--into", str(page)]) == 0
        text = page.read_text("utf-8")
        assert text.startswith("before\n<!-- rows -->\n") and text.endswith("\n<!-- end -->\nafter\n")
        assert "without waits, 3 rounds, commit abc, 2026-11-30, at a load of 0 to 7. Of 3 rows" in text
        assert "ahead of the fastest in 2; the geometric mean of the ratios is 2.52. Behind: behind 0.50." in text
        assert "| row behind. *p does less* | **0.50 (0.50)**, p | 0.50 (0.50) |" in text
        assert "| row far | 16 (16), p |" in text
        assert "old" not in text
        page.write_text("no place", "utf-8")
        with pytest.raises(SystemExit, match="has no lines"):
            command.main(["report", str(result), "--into", str(page)])

    def test_a_quick_run_has_no_targets(self):
        found = self.workload({"zcore": self.both(2.0), "p": self.both(1.0)}, [{"against": "p", "at_least": 1.1}])
        result = {
            "commit": "abc", "time": "now", "data": "smooth", "repeats": 1, "quick": True,
            "machine": machine.describe(spin_count=1000),
            "runs": [{"threads": 2, "versions": {}, "skipped": {}, "file_systems": {}, "workloads": [found]}],
        }
        assert "arget" not in tables.render(result) and "missed" not in tables.render(result)
        assert "missed" in tables.render({**result, "quick": False})


class TestCommand:
    def test_quick_run_writes_json_and_markdown(self, tmp_path, capsys):
        names = [name for name in ("bare_loop", "tensorstore") if name not in adapters.load_all([name], 1)[1]]
        if not names:
            pytest.skip("no C compiler")
        out, files = tmp_path / "result.json", tmp_path / "files"
        files.mkdir()
        chosen = ["read_frames", "read_tiles", "write_disk", "peak_memory", "peak_memory_write"]
        status = command.main(["run", "--quick", "--libraries", ",".join(names), "--out", str(out), "--directory",
                               str(files), "--workloads", ",".join(chosen)])
        assert status == 0
        result = json.loads(out.read_text("utf-8"))
        run, = result["runs"]
        assert [workload["name"] for workload in run["workloads"]] == chosen
        for workload in run["workloads"]:
            assert workload["failed"] == {}
            able = [name for name in names if adapters.load(name, 2).takes_part(
                workloads.select([workload["name"]])[0])]
            assert {name: len(taken) for name, taken in workload["samples"].items()} == dict.fromkeys(able, 1)
        assert result["machine"]["cores"] >= 1
        assert list(files.iterdir()) == []
        printed = capsys.readouterr().out
        assert command.main(["report", str(out)]) == 0
        assert capsys.readouterr().out == printed
        assert "read_tiles: read 256 MB" in printed

    def test_some_rows_are_no_result_of_all(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(command, "_RESULTS", tmp_path / "results")
        described = machine.describe(spin_count=1000)
        monkeypatch.setattr(machine, "describe", lambda: described)
        assert command.main(["run", "--libraries", "zcore", "--workloads", "references_open", "--repeats", "1"]) == 0
        assert "references_open" in capsys.readouterr().out and not (tmp_path / "results").exists()

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.slow
    @pytest.mark.parametrize("shown", [("rows", "heftie"), ("rows", "heftie", "curves", "zarr_benchmarks")],
                             ids=["two", "all"])
    def test_every_suite_is_measured_and_gets_a_page(self, tmp_path, shown):
        pytest.importorskip("matplotlib")
        pytest.importorskip("zarr")
        chosen = {"rows": "read_tiles,write_tmpfs,write_v2",
                  "curves": "read_chunks_1024,write_chunks_1024",
                  "heftie": "read blosc-lz4 3; shuffle,write blosc-lz4 3; shuffle,read zstd 1,write zstd 1",
                  "zarr_benchmarks": "read all; uncompressed,read objects by 2; uncompressed,"
                                     "round trip; compressed; shards"}
        results = {}
        for suite in shown:
            path, names = tmp_path / f"{suite}.json", chosen[suite]
            assert command.main(["run", "--quick", "--suite", suite, "--workloads", names, "--out", str(path),
                                 "--libraries", "zcore,zarr,bare_loop", "--directory", str(tmp_path)]) == 0
            result = json.loads(path.read_text("utf-8"))
            assert [found["name"] for found in result["runs"][0]["workloads"]] == names.split(",")
            for found in result["runs"][0]["workloads"]:
                assert not found["failed"] and set(found["peaks"]) >= {"zcore"}
            # Else there is no page of it: its times mean nothing.
            path.write_text(json.dumps(result | {"quick": False}), "utf-8")
            results[suite] = str(path)
        page = tmp_path / "page.html"
        assert command.main(["report", *[results[suite] for suite in shown], "--html", str(page),
                             "--before", results["rows"]]) == 0
        text = page.read_text("utf-8")
        n_plots = {"rows": 3, "curves": 4, "heftie": 1, "zarr_benchmarks": 1}
        assert text.count("<svg") == sum(n_plots[suite] for suite in shown) and text.count("<h2>") == len(shown)
        for suite in shown:
            assert f"<td>{chosen[suite].split(',')[-1]}" in text
        # Plots are those of the page, which take long to draw.
        assert command.main(["report", results["heftie"], "--plots", str(tmp_path)]) == 0
        assert len(list(tmp_path.glob("*.svg"))) == 1

    @each("option", [
        ["--libraries", "zarrr"], ["--workloads", "reed"], ["--workloads", ","], ["--threads", "0"],
        ["--threads", "2,b"], ["--directory", "no/such"], ["--out", "no/such/file"],
    ])
    def test_unknown_names_are_usage_errors(self, option):
        with pytest.raises(SystemExit) as caught:
            command.main(["run", *option])
        assert caught.value.code == 2

    @pytest.mark.parametrize(("text", "options", "words"), [
        ("[", [], "is no result of"), ("[]", [], "is no result of"), ('{"format": 2}', [], "is no result of"),
        (None, [], "No such file"), ("quick", ["--html", "page.html"], "quick runs"),
        ("quick", ["--html", "no/such"], "no folder"), ("quick", ["--base", "other"], "but of one, two"),
    ])
    def test_results_that_cannot_be_shown(self, tmp_path, monkeypatch, capsys, text, options, words):
        monkeypatch.chdir(tmp_path)
        if text == "quick":
            workload = {"name": "a", "summary": {"one": {}, "two": {}}}
            text = json.dumps({"format": 1, "quick": True, "runs": [{"workloads": [workload]}]})
        if text is not None:
            Path("result.json").write_text(text, "utf-8")
        with pytest.raises(SystemExit) as caught:
            command.main(["report", "result.json", *options])
        assert words in f"{caught.value.code} {capsys.readouterr().err}"


def test_the_bucket_answers_ranges_and_lists_in_pages(tmp_path):
    (tmp_path / "c" / "d").mkdir(parents=True)
    (tmp_path / "c" / "0").write_bytes(bytes(range(100)))
    for i in range(1500):
        (tmp_path / "c" / "d" / f"{i:04}").touch()
    with object_server.serving(str(tmp_path)) as place:
        trusting = ssl.create_default_context(cafile=place.certificate)

        def ask(name, headers=None):
            request = urllib.request.Request(f"{place.endpoint}/{object_server.BUCKET}{name}", headers=headers or {})
            try:
                with urllib.request.urlopen(request, timeout=30, context=trusting) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read()

        for name, headers, status, expected in (
                ("/c/0", {}, 200, range(100)), ("/c/0", {"Range": "bytes=3-5"}, 206, range(3, 6)),
                ("/c/0", {"Range": "bytes=90-200"}, 206, range(90, 100)),
                ("/c/0", {"Range": "bytes=-4"}, 206, range(96, 100)),
                ("/c/0", {"Range": "bytes=98-"}, 206, range(98, 100)), ("/c/1", {}, 404, []), ("/c", {}, 404, []),
                ("/../x", {}, 404, [])):
            assert ask(name, headers) == (status, bytes(expected))
        status, listed = ask("?list-type=2&prefix=c%2F&delimiter=%2F")
        assert re.findall("<Key>(.*?)<", listed.decode()) == ["c/0"] and b"<Prefix>c/d/</Prefix>" in listed
        found, query = [], "?list-type=2&prefix=c%2Fd"
        while query:
            page = ask(query)[1].decode()
            found += re.findall("<Key>(.*?)<", page)
            token = re.search("<NextContinuationToken>(.*?)<", page)
            query = token and f"?list-type=2&prefix=c%2Fd&continuation-token={urllib.parse.quote(token[1])}"
        assert found == [f"c/d/{i:04}" for i in range(1500)]
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE"):
            urllib.request.urlopen(f"{place.endpoint}/{object_server.BUCKET}/c/0", timeout=30)


@pytest.mark.slow
@pytest.mark.skipif("ZCORE_LIBS" in os.environ, reason="the ceilings are those of the wheel's libraries")
def test_no_call_takes_more_instructions_than_its_ceiling():
    allowed = instructions.ceilings()
    if not allowed:
        pytest.skip("there are no ceilings for this version of Python")
    try:
        found = instructions.measure()
    except ImportError as exc:
        pytest.skip(str(exc))
    assert set(found) == set(allowed)
    assert {name: count for name, count in found.items() if count > allowed[name]} == {}, allowed


def test_kernel_functions_agree_with_numpy():
    text = kernels.render(kernels.measure(quick=True))
    assert "| copy, transposed |" in text
    assert "| blosc header check |" in text


def test_codecs_of_other_types_are_read_and_written():
    timings = codecs.measure(["packbits", "scale_offset, int32", "vlen"], quick=True)
    assert {timing.case for timing in timings} == {"packbits, bool", "scale_offset, int32", "vlen-utf8", "vlen-bytes"}
    for timing in timings:
        assert timing.failed if not timing.read else len(timing.read) == len(timing.write) == 1
        assert timing.library != "zcore" or not timing.failed
    assert "| vlen-utf8 | read |" in codecs.render(timings)


def test_a_wrong_answer_of_a_codec_has_no_time(monkeypatch):
    monkeypatch.setattr(codecs, "_same", lambda found, expected: False)
    timings = codecs.measure(["packbits"], quick=True)
    assert timings and all(timing.failed and not timing.read for timing in timings)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_pipelines_of_zarr_are_compared():
    pytest.importorskip("zarr")
    pytest.importorskip("zarrs")
    text = pipelines.render(pipelines.measure(repeats=1, quick=True), pipelines.lost(n_threads=4, n=20_000))
    assert "| read all, shards |" in text and "elements lost" in text
    assert text.splitlines()[-1].split("|")[2].strip() == "0"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_reads_in_c_are_compared():
    for name in ("h5py", "tensorstore"):
        pytest.importorskip(name)
    text = embedding.render(embedding.measure(repeats=1, n=50, length=1 << 20), 50)
    assert "| the same, 2 threads | zcore.h |" in text and "| a chunk of 64 KB, deflate |" in text


@pytest.mark.slow
def test_checkpoints_are_compared():
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun")
    try:
        rows = checkpoint.measure((2,), repeats=1, n_fields=2, n_rows=64, n_columns=16, chunk_rows=16)
    except ImportError as exc:
        pytest.skip(str(exc))
    assert len(rows) == 4 and "| 2 | misaligned | replaced | none |" in checkpoint.render(rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_engines_of_xarray_are_compared():
    for name in ("xarray", "dask", "zarr", "kerchunk"):
        pytest.importorskip(name)
    text = datasets.render(datasets.measure(repeats=1, quick=True), datasets.lost(n=20_000, n_threads=4))
    assert "| open 20 variables, v3, consolidated |" in text
    assert text.splitlines()[-1].split("|")[2].strip() == "0"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_growth_is_measured_and_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert command.main(["growth", "--sizes", "2,4", "--repeats", "1", "--plot", str(tmp_path / "growth.svg")]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "| call | library | 2 | 4 |"
    for kind, verbs in growth.VERBS.items():
        for verb in verbs:
            assert f"| {kind}: {verb} | zcore | " in printed
            assert f"{kind}: {verb}" in (tmp_path / "growth.svg").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_streams_are_stored(monkeypatch):
    monkeypatch.setattr(streams, "ENCODINGS", {"raw": None, "zstd": "zstd"})
    monkeypatch.setattr(streams, "LAYOUTS", {"chunks of 32 frames": streams.LAYOUTS["chunks of 32 frames"]})
    text = streams.render(streams.measure(repeats=1, quick=True))
    assert "| frames | zcore, writer | zcore, append |" in text and "| zstd, chunks of 32 frames |" in text


@pytest.mark.slow
def test_asdf_files_are_read_and_written():
    pytest.importorskip("asdf")
    measured = asdf_files.measure(quick=True)
    for timing in measured[0]:
        # What the peer lacks it may say.
        assert "zcore" not in timing.failed and len(timing.seconds["zcore"]) == 1
    assert "| 100 x 100 window, raw |" in asdf_files.render(measured)


@each(("count", "source", "n_lines"), [
    (lines.lines_of_python, "", 0),
    (lines.lines_of_python, '"""Module.\n\nMore.\n"""\n\nimport os  # why\n\n# a comment\nx = """a\n\nb"""\n', 4),
    (lines.lines_of_python, 'class A:\n    "One."\n    x = 1\n    "Of x."\n    def f(self): "Doc."\n', 3),
    (lines.lines_of_python, 'f(\n    # why\n    "text",\n\n    1)\n', 3),
    (lines.lines_of_python, 'x = 1 + \\\n    2\n("in "\n "brackets")\n', 4),
    (lines.lines_of_cython, '"""No # comment."""\n# why\ncdef f() except? -1:\n    r"""Doc."""\n    return "#"', 2),
    (lines.lines_of_cython, "cdef extern from *:\n    '''\n    #include <x>\n    '''\n    int x\n", 3),
    (lines.lines_of_cython, 'f(\n    # why\n    "text",\n\n    <char *>p)\nx = b"\\""  # "\n', 4),
    (lines.lines_of_cython, "x = 1 + \\\n    2\ny = '''a\n\nb'''\n", 5),
    (lines.lines_of_c, "#define A \\\n  1\n\n// no \\\n no\nchar c = '\"'; /* a\nb */ int d;\n", 4),
    (lines.lines_of_c, 'char *s = "// no comment \\" /*"; // one\n/* " */\n', 1),
])
def test_lines_of_code(count, source, n_lines):
    assert count(source) == n_lines


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_both_ways_count_python_alike(step):
    """The stripping for Cython, over all of the package that Python's own tokenizer reads; by default over a fifth."""
    for path in sorted(lines.PACKAGE.rglob("*.py"))[::step]:
        source = path.read_text(encoding="utf-8")
        assert lines.lines_of_cython(source) == lines.lines_of_python(source), path


def test_lines_by_room(tmp_path):
    (tmp_path / "b" / "deep").mkdir(parents=True)
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b" / "b.pyx").write_text("cdef int x = 1\n\ny = 2\n")
    (tmp_path / "b" / "deep" / "c.h").write_text("int x;\n")
    (tmp_path / "b" / "notes.txt").write_text("no code\n")
    rooms = lines.measure(tmp_path)
    assert rooms == {lines.TOP: (1, 1), "b": (2, 3)} and lines.total_of(rooms) == (3, 4)
    assert lines.render(rooms).splitlines()[-1].split() == ["total", "3", "files", "4", "lines"]


def test_lines_are_counted_without_a_build(tmp_path):
    root = lines.PACKAGE.parent
    for name in ("__init__.py", "__main__.py", "command.py", "counts"):
        copy = shutil.copytree if name == "counts" else shutil.copy
        (tmp_path / "benchmarks").mkdir(exist_ok=True)
        copy(root / "benchmarks" / name, tmp_path / "benchmarks" / name)
    (tmp_path / "zcore").mkdir()
    (tmp_path / "zcore" / "__init__.py").write_text("raise ImportError\n")

    def counted(*options):
        return subprocess.run([sys.executable, "-m", "benchmarks", "lines", *options], check=True, text=True,
                              stdout=subprocess.PIPE, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ""}).stdout

    assert counted().splitlines()[-1].split() == ["total", "1", "files", "1", "lines"]
    assert json.loads(counted("--json"))["rooms"] == {lines.TOP: {"files": 1, "lines": 1}}
