"""`zcore bench`: what is measured, and that nothing is left. No time is tested."""
import functools
import json
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import zcore
from zcore import codecs
from zcore.cli.show import printed
from zcore.cli.show.facts import stored_sizes
from zcore.cli.show.printed import ProgressLine
from zcore.cli.verbs import bench
from zcore.cli.verbs.bench import region_of


@pytest.fixture
def array():
    """Return an array of which the first rows of chunks are absent."""
    made = zcore.create_array("a.zarr", shape=(100, 60), chunks=(10, 20), dtype="<f4")
    made[40:] = np.random.default_rng(0).random((60, 60))
    return made


class Quiet(SimpleHTTPRequestHandler):
    """A server of the working directory that writes no log."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    """As many may knock at once as the client asks for."""

    request_queue_size = 64

    def handle_error(self, request, client_address):
        """Say nothing of a client that leaves: the standard error is looked at."""


@pytest.fixture
def web():
    """Return the address of a web server of the working directory."""
    with Server(("127.0.0.1", 0), functools.partial(Quiet, directory=os.getcwd())) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,)).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def forms_of(array):
    """Return what comes of the forms of an array, measured here."""
    return bench.measure_forms(array, array[...], ".", ProgressLine("measuring"))


@pytest.mark.parametrize(("nbytes", "region"), [
    (1, (slice(40, 50), slice(0, 20))), (2400, (slice(40, 50), slice(0, 60))), (10**6, (slice(0, 100), slice(0, 60))),
])
def test_a_sample_is_of_whole_objects_that_are_stored(array, nbytes, region):
    assert region_of(array.metadata, stored_sizes(array), nbytes) == region


@pytest.mark.parametrize("keywords", [
    {}, {"zarr_format": 2}, {"zarr_format": "zmeta"}, {"shards": (40, 60)}, {"order": "F"},
    {"chunks": [[30, 70], 20]}, {"compressors": None}, {"shards": [[40, 60], 60]},
], ids=["v3", "v2", "zmeta", "shards", "F", "rectilinear", "stored", "rectilinear shards"])
def test_every_form_is_written_and_read(run, keywords):
    data = np.arange(6000, dtype="<i4").reshape(100, 60)
    zcore.create_array("b.zarr", data=data, **{"chunks": (10, 20), **keywords})
    before = sorted(os.listdir("."))
    code, out, err = run("bench", "b.zarr", "--json", "--threads", "1,3", "--sample", "1 MB")
    assert (code, err) == (0, "") and sorted(os.listdir(".")) == before
    found = json.loads(out)
    assert [row["threads"] for row in found["read"]] == [1, 3]
    unequal = any(isinstance(lengths, list) for lengths in keywords.values())
    own, *others = found["forms"]
    assert own["name"] == "as it is" and len(others) >= (2 if unequal else 3)


def test_for_people(run, array):
    code, out, err = run("bench", "a.zarr", "--threads", "1")
    assert (code, err) == (0, "") and out.startswith("sample: 24.0 kB, ")
    assert "\nread, 1 thread " in out and "\nas it is " in out and "--compressor" in out


def test_a_server_without_a_listing(run, array, web, monkeypatch):
    monkeypatch.setattr(printed, "N_REPEATS", 1)
    code, out, err = run("bench", f"{web}/a.zarr", "--no-write", "--json")
    assert (code, err) == (0, "") and json.loads(out)["nbytes"] == 24000


def test_reading_alone(run, array):
    before = sorted(os.listdir("."))
    assert json.loads(run("bench", "a.zarr", "--no-write", "--json")[1])["forms"] == []
    assert sorted(os.listdir(".")) == before


def test_an_archive_is_measured_elsewhere(run, array):
    assert run("cp", "a.zarr", "a.zip")[0] == 0
    code, _, err = run("bench", "a.zip")
    assert code == 1 and "--folder" in err
    os.mkdir("scratch")
    assert len(json.loads(run("bench", "a.zip", "--folder", "scratch", "--json")[1])["forms"]) >= 4
    assert os.listdir("scratch") == []


def test_a_file_is_measured_with_its_own_codec(run):
    h5py = pytest.importorskip("h5py")
    with h5py.File("a.h5", "w") as file:
        file.create_dataset("g/x", data=np.zeros((40, 50)), chunks=(20, 50), compression="gzip")
    found = json.loads(run("bench", "a.h5/g/x", "--sample", "1 kB", "--folder", ".", "--json")[1])
    assert found["forms"][0]["name"] == "as it is" and found["forms"][0]["nbytes_stored"] < 200 < found["nbytes"]


def test_nothing_is_left_when_it_is_stopped(run, array, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "measure_forms", interrupted)
    assert run("bench", "a.zarr")[0] == 130
    assert os.listdir(".") == ["a.zarr"]


@pytest.mark.parametrize(("arguments", "words"), [
    (["--sample", "much"], "--threads: expected a size"), (["--threads", "0"], "--threads: expected"),
    (["--threads", "a"], "--threads: expected"), (["--folder", "none"], "no such file"),
])
def test_what_cannot_be_measured(run, array, arguments, words):
    code, out, err = run("bench", "a.zarr", *arguments)
    assert (code, out) == (1, "") and words in err


@pytest.mark.parametrize("keywords", [{"dtype": "f4"}, {"dtype": str, "data": np.array(["a"])}])
def test_arrays_of_which_there_is_no_sample(run, keywords):
    zcore.create_array("b.zarr", **({"shape": 3} if "data" not in keywords else {}), **keywords)
    assert run("bench", "b.zarr")[0] == 1


@pytest.mark.parametrize("keywords", [
    {"zarr_format": 2, "order": "F"}, {"zarr_format": 2, "filters": [{"id": "delta", "dtype": "<i4"}]},
    {"zarr_format": 3, "filters": [codecs.TransposeCodec(order=(1, 0))]}, {"zarr_format": 3, "shards": (80, 40)},
    {"zarr_format": "zmeta"},
])
def test_a_form_as_it_is_keeps_filters_and_order(keywords):
    values = (np.arange(6400, dtype="i4") ** 2 % 1001).reshape(80, 80)
    array = zcore.create_array("kept.zarr", data=values, chunks=(40, 20), **keywords)
    first, *others = forms_of(array)
    stored = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk("kept.zarr")
                 for name in names if name[-1:].isdecimal() or name.endswith(".blosc"))
    assert first["nbytes_stored"] == stored and len(others) >= 3


def test_a_form_is_what_its_command_makes(run):
    """`zcore convert` keeps shards that the chunks divide."""
    array = zcore.create_array("b.zarr", data=np.arange(6000).reshape(100, 60), chunks=(10, 20), shards=(40, 60))
    _, *others = forms_of(array)
    for row in others:
        assert run("convert", "b.zarr", "new.zarr", "--overwrite", *row["option"].split()) == (0, "", "")
        sizes = stored_sizes(zcore.open("new.zarr"))
        assert (row["objects"], row["nbytes_stored"]) == (len(sizes), sum(sizes.values())), row
    assert {row["objects"] for row in others} == {3, 10}
