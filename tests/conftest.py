"""Settings of every test: repeatable examples, no deadlines, and which of them are slow.

Warnings are errors and `slow` is left out by default; both are said in pyproject.toml.
"""
import collections
import contextlib
import gc
import importlib
import os
import shutil
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest

# Else each of the hundreds of interpreters that tests start has threads for NumPy's linear algebra, which nobody needs.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Derandomized: a run is a fact about the tree, not about the day. Without deadline: no test measures time.
hypothesis.settings.register_profile("all", derandomize=True, deadline=None, database=None, print_blob=True,
                                     max_examples=100)
hypothesis.settings.register_profile("a fifth", hypothesis.settings.get_profile("all"), max_examples=20)


# Else each of these interpreters compiles all of zcore again, and each worker all tests, where the user's environment
# says that none shall write what it has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of tests lie in memory where there is room: a disk takes a third more time. This variable names another place.
if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Start one process more than there are CPUs: tests wait for other processes, clocks and the disk, too."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return 1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def runs_slow_tests(config):
    return "not slow" not in config.option.markexpr


def pytest_configure(config):
    # Before modules are imported that ask `tests.examples` how many there are.
    hypothesis.settings.load_profile("all" if runs_slow_tests(config) else "a fifth")


def pytest_collection(session):
    """Let each worker import another part of the tests first: it finds the assertions of the others rewritten."""
    gc.disable()     # nearly all that is made here stays
    if worker := getattr(session.config, "workerinput", None):
        files = sorted(path for place in session.config.args for path in Path(place).resolve().rglob("test_*.py"))
        for path in files[int(worker["workerid"][2:])::worker["workercount"]]:
            with contextlib.suppress(Exception, pytest.skip.Exception):     # collecting it says what is wrong
                importlib.import_module(".".join(path.relative_to(session.config.rootpath).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark most cases of thinned tests as slow, and where slow tests run those of hypothesis, with all examples."""
    numbers = collections.defaultdict(dict)      # of the values that a parameter of a test has, as they come
    for item in items:
        if thinned := item.get_closest_marker("thinned"):
            n, *names = thinned.args
            seen = {name: numbers[item.function, name] for name in names}
            if sum(seen[name].setdefault(id(item.callspec.params[name]), len(seen[name])) for name in names) % n:
                item.add_marker("slow")
        if runs_slow_tests(config) and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("slow")


def pytest_ignore_collect(collection_path):
    """Leave helpers and scripts unread: pyproject.toml asks for the doctests of modules, those of zcore are meant."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in zcore alone: no test has one, and to look for them takes each worker a second."""
    return [each for each in (yield) if type(each) is pytest.Module]


def pytest_collection_finish():
    """Leave the tests themselves out of all garbage collections, of which each would look at half a million objects."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise KeyboardInterrupt: whoever runs tests in the background ignores it, and so do their children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def sharded():
    """Arrays of shards with any codecs around and in them: `create` and `open`, which return an `Array`."""
    from zcore.engine.array_binding import ArrayBinding
    from zcore.engine.options import Options
    from zcore.formats import format_of
    from zcore.hierarchy import creation
    from zcore.model.chunk_keys import ChunkKeyEncoding
    from zcore.model.metadata import ArrayMetadata, CodecSpec
    from zcore.nodes.array import Array
    from zcore.stores.base import Store
    from zcore.stores.directory.store import DirectoryStore

    def store_of(place):
        return place if isinstance(place, Store) else DirectoryStore(str(place))

    def options_of(lock=True, missing="fill", threads=None, strict=True, write_empty_chunks=False):
        return Options(lock, missing, threads, strict, write_empty_chunks)

    def specs(codecs):
        return [CodecSpec(codec["name"], codec.get("configuration")) for codec in codecs]

    little = {"name": "bytes", "configuration": {"endian": "little"}}

    def create(place, shape, dtype, shards, chunks, *, codecs=(little,), index_codecs=(little, {"name": "crc32c"}),
               index_location="end", fill_value=0, before=(), after=(), **options):
        configuration = {"chunk_shape": list(chunks), "codecs": list(codecs), "index_codecs": list(index_codecs),
                         "index_location": index_location}
        metadata = ArrayMetadata(
            shape, dtype, shards, ChunkKeyEncoding.v3(),
            (*specs(before), CodecSpec("sharding_indexed", configuration), *specs(after)), fill_value, attributes={})
        return Array(creation.create(store_of(place), "", creation.NewNode(format_of(3), metadata),
                                     options_of(**options), overwrite=True))

    def open(place, **options):
        return Array(ArrayBinding(store_of(place), "", format_of(3), options_of(**options)))

    return SimpleNamespace(create=create, open=open)


@pytest.fixture(scope="session")
def asdf_bytes():
    """ASDF files made byte by byte: `block`, `file`, and `TREE`."""
    import struct

    tree = b"%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n--- !core/asdf-1.1.0\na: 1\n...\n"

    def block(stored=b"", *, compression=b"", header_size=48, flags=0, allocated=None, used=None, data_size=None,
              checksum=bytes(16)):
        used = len(stored) if used is None else used
        allocated = len(stored) if allocated is None else allocated
        head = struct.pack(">4sHI4sQQQ16s", b"\xd3BLK", header_size, flags, compression, allocated, used,
                           used if data_size is None else data_size, checksum)
        return head + bytes(max(0, header_size - 48)) + stored

    def file(*blocks, tree=tree, pad=b"", index=None, comments=b"#ASDF_STANDARD 1.6.0\n", tail=b""):
        """`index` is True for the right one, or a list of offsets; blocks as `block` makes them, or any bytes."""
        data = b"#ASDF 1.0.0\n" + comments + tree + pad
        offsets = []
        for part in blocks:
            if part[:4] == b"\xd3BLK":
                offsets.append(len(data))
            data += part
        if index is not None:
            listed = offsets if index is True else index
            data += b"#ASDF BLOCK INDEX\n%YAML 1.1\n---\n" + b"".join([b"- %d\n" % i for i in listed]) + b"...\n"
        return data + tail

    return SimpleNamespace(block=block, file=file, TREE=tree)
