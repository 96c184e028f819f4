"""A store lives: nodes come, change, are copied, moved and killed, and it holds what a dict of ndarrays holds.

After each step all nodes are read by handles that are opened anew, and by zarr-python where it knows the store. A child
process may be killed within a call, at any call of a Python function. Then the node is as before or as after that call,
of a write each stored object; the model goes on with what is found.
"""
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zcore

# values      ndarray, None for a group
# attributes  dict
# chunk       shape of a stored object
Node = namedtuple("Node", ("values", "attributes", "fill", "chunk"))

PATHS = st.sampled_from(["a", "a", "b", "g/a", "g/h/c", "g"])
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["units", "n"]), st.integers(-5, 5) | st.text("aé", max_size=2), max_size=2)
TYPES = st.sampled_from(["<i4", ">i4", "<f8"])
KILLABLE = ("write", "resize", "append", "attributes", "overwrite", "delete")


class Life(RuleBasedStateMachine):
    """What is done to one store, and to the model."""

    zarr_format = 3
    is_sharded = False
    kind = "directory"

    def __init__(self):
        super().__init__()
        self.stack = contextlib.ExitStack()
        in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="zcore-life-", dir=in_memory))
        self.path = self.folder + "/store"
        self.service = None
        if self.kind == "remote":
            import obstore

            self.service = obstore.store.MemoryStore()
        self.store = {"memory": zcore.MemoryStore, "zip": lambda: zcore.ZipStore(self.path, mode="w")}.get(
            self.kind, self.opened)()
        self.nodes = {}

    def teardown(self):
        if self.kind == "zip":
            self.store.close()
            self.store = zcore.ZipStore(self.path)
            self.nodes_are_as_the_model()
        self.stack.close()

    def opened(self):
        """Return a new store of the same place."""
        if self.kind in ("memory", "zip"):
            return self.store
        return zcore.RemoteStore(self.service) if self.kind == "remote" else zcore.DirectoryStore(self.path)

    # the model

    def below(self, path):
        return [other for other in self.nodes if other == path or other.startswith(path + "/")]

    def arrays(self):
        return sorted(path for path, node in self.nodes.items() if node.values is not None)

    def why_not(self, path, overwrite):
        """Return the exception of a creation, or None."""
        above = path
        while above := above.rpartition("/")[0]:
            if above in self.nodes and self.nodes[above].values is not None:
                return zcore.NodeExistsError
        return zcore.NodeExistsError if path in self.nodes and not overwrite else None

    def put(self, path, node):
        for other in self.below(path):
            del self.nodes[other]
        self.nodes[path] = node
        while path := path.rpartition("/")[0]:
            self.nodes.setdefault(path, Node(None, {}, None, None))

    def group(self):
        return zcore.open_group(self.store, "r+")

    def array(self, path):
        return zcore.open_array(self.store, "r+", path=path)

    @staticmethod
    def expect(expected, function, *args, **kwargs):
        """Call a function, which must end in the expected exception, or one of several, or in none."""
        if not expected:
            return function(*args, **kwargs)
        with pytest.raises(expected):
            function(*args, **kwargs)

    # nodes come and go

    @initialize()
    def root(self):
        zcore.create_group(self.store, zarr_format=self.zarr_format)

    def described(self, data):
        """Draw a new array: (values, fill, chunk, keywords)."""
        ndim = data.draw(st.integers(1, 2))
        shape = data.draw(st.lists(st.integers(0, 6), min_size=ndim, max_size=ndim))
        chunks = data.draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim))
        dtype, fill = np.dtype(data.draw(TYPES)), data.draw(st.sampled_from([0, -1, 7]))
        values = np.full(shape, fill, dtype)
        if data.draw(st.booleans()):
            values[...] = np.arange(values.size).reshape(shape) + data.draw(st.integers(0, 100))
        shards = [2 * n for n in chunks] if self.is_sharded else None
        return values, fill, tuple(shards or chunks), {
            "chunks": tuple(chunks), "zarr_format": self.zarr_format, "fill_value": fill,
            **({"shards": tuple(shards)} if shards else {})}

    @rule(data=st.data(), path=PATHS, attributes=ATTRIBUTES, overwrite=st.booleans(), is_lazy=st.booleans())
    def create_array(self, data, path, attributes, overwrite, is_lazy):
        values, fill, chunk, keywords = self.described(data)
        if is_lazy:
            values = np.full_like(values, fill)
            keywords.update(shape=values.shape, dtype=values.dtype)
        else:
            keywords.update(data=values)
        expected = self.why_not(path, overwrite)
        self.expect(expected, zcore.create_array, self.store, name=path, attributes=attributes, overwrite=overwrite,
                    **keywords)
        if expected is None:
            self.put(path, Node(values, dict(attributes), fill, chunk))

    @rule(path=PATHS, attributes=ATTRIBUTES, overwrite=st.booleans())
    def create_group(self, path, attributes, overwrite):
        expected = self.why_not(path, overwrite)
        self.expect(expected, zcore.create_group, self.store, path=path, attributes=attributes, overwrite=overwrite,
                    zarr_format=self.zarr_format)
        if expected is None:
            self.put(path, Node(None, dict(attributes), None, None))

    @rule(path=PATHS)
    def delete(self, path):
        self.expect(None if path in self.nodes else zcore.NodeNotFoundError, self.group().__delitem__, path)
        for other in self.below(path):
            del self.nodes[other]

    @rule(source=PATHS, destination=PATHS)
    def move(self, source, destination):
        expected = self.why_not(destination, False)
        if source not in self.nodes:
            expected = zcore.NodeNotFoundError
        elif destination == source or destination.startswith(source + "/"):
            expected = zcore.NodeExistsError
        self.expect(expected, self.group().move, source, destination)
        if expected is None:
            moved = {destination + other[len(source):]: self.nodes.pop(other) for other in self.below(source)}
            self.put(destination, moved.pop(destination))
            self.nodes.update(moved)

    @rule(source=PATHS, destination=PATHS, overwrite=st.booleans())
    def copy(self, source, destination, overwrite):
        """Also to itself, into itself, and over what it is in: what it was at the beginning is copied."""
        expected = tuple(filter(None, [None if source in self.nodes else zcore.NodeNotFoundError,
                                       self.why_not(destination, overwrite)]))
        self.expect(expected, zcore.copy, self.store, self.store, path=source, destination_path=destination,
                    overwrite=overwrite)
        if not expected:
            copied = {destination + other[len(source):]: self.nodes[other] for other in self.below(source)}
            self.put(destination, copied.pop(destination))
            self.nodes.update(copied)

    @rule()
    def consolidate(self):
        zcore.consolidate_metadata(self.store)

    @rule()
    def reopen(self):
        self.store = self.opened()

    @precondition(lambda self: self.kind == "directory")
    @rule()
    def rename_the_store(self):
        self.path += "x"
        os.rename(self.path[:-1], self.path)
        self.store = self.opened()

    # elements and attributes

    def changed(self, data, path, verb):
        """Draw a change of an array: return (call, the node afterwards)."""
        node = self.nodes[path]
        values, shape = node.values, node.values.shape
        if verb == "write":
            selection = tuple(data.draw(st.slices(n)) for n in shape)
            new = values.copy()
            written = np.arange(values[selection].size).reshape(values[selection].shape) + data.draw(st.integers(0, 99))
            if data.draw(st.integers(0, 3)) == 0:
                written = np.full_like(written, node.fill)
            new[selection] = written
            written = written.astype(values.dtype)
            return lambda: self.array(path).__setitem__(selection, written), node._replace(values=new)
        if verb == "resize":
            new_shape = tuple(data.draw(st.integers(0, 7)) for _ in shape)
            new = np.full(new_shape, node.fill, values.dtype)
            kept = tuple(slice(min(a, b)) for a, b in zip(shape, new_shape, strict=True))
            new[kept] = values[kept]
            return lambda: self.array(path).resize(new_shape), node._replace(values=new)
        if verb == "append":
            rows = np.full((data.draw(st.integers(0, 3)), *shape[1:]), data.draw(st.integers(0, 9)), values.dtype)
            return lambda: self.array(path).append(rows), node._replace(
                values=np.concatenate([values, rows], dtype=values.dtype))
        if verb == "attributes":
            new = data.draw(ATTRIBUTES)
            return lambda: self.array(path).attrs.update(new), node._replace(attributes={**node.attributes, **new})
        if verb == "delete":
            return lambda: self.group().__delitem__(path), None
        values, fill, chunk, keywords = self.described(data)
        return lambda: zcore.create_array(self.store, name=path, data=values, overwrite=True, **keywords), Node(
            values, {}, fill, chunk)

    @precondition(lambda self: self.arrays())
    @rule(data=st.data(), verb=st.sampled_from(["write", "write", "resize", "append", "attributes"]))
    def change(self, data, verb):
        path = data.draw(st.sampled_from(self.arrays()))
        call, node = self.changed(data, path, verb)
        call()
        self.nodes[path] = node

    @precondition(lambda self: self.kind == "directory" and self.arrays())
    @rule(data=st.data(), verb=st.sampled_from(KILLABLE), at=st.integers(0, 400))
    def kill(self, data, verb, at):
        path = data.draw(st.sampled_from(self.arrays()))
        call, after = self.changed(data, path, verb)
        pid = os.fork()
        if pid == 0:
            try:
                left = [at]

                def end_at(*_):
                    left[0] -= 1
                    if left[0] < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

                sys.setprofile(end_at)
                call()
                sys.setprofile(None)
            finally:
                os._exit(0)
        _, status = os.waitpid(pid, 0)
        is_killed = os.WIFSIGNALED(status)
        before = self.nodes.pop(path)
        found = read(self.store, path)
        possible = [after] if not is_killed else [before, after, *([None] if verb == "overwrite" else [])]
        assert any(same(found, node) for node in possible) or (
            is_killed and verb == "write" and is_mixed(found, before, after)), (
                verb, at, is_killed, found, before, after)
        if found is not None:
            self.nodes[path] = found
        # What a kill has left is told apart, and goes.
        self.store.clean_temporary(older_than=0)
        report = zcore.verify(self.store)
        assert {problem.kind for problem in report.problems} <= {"left-over", "foreign"}, report
        zcore.verify(self.store, repair=["left-over", "foreign"])
        if found is None and not any(other.startswith(path + "/") for other in self.nodes):
            shutil.rmtree(f"{self.path}/{path}", ignore_errors=True)

    # other stores of the same nodes

    @rule(kind=st.sampled_from(["zip", "memory", "references", "asdf"]))
    def copy_elsewhere(self, kind):
        if kind == "asdf" and not self.nodes:
            return
        if kind == "references":
            if self.kind == "remote":
                return
            zcore.references(self.store).save(self.folder + "/set.json")
            place = zcore.ReferenceStore(self.folder + "/set.json")
        elif kind == "memory":
            place = zcore.MemoryStore()
            zcore.copy(self.store, place)
        else:
            place = f"{self.folder}/copy.{kind}"
            zcore.copy(self.store, place, overwrite=True)
        for path, node in self.nodes.items():
            if kind == "asdf":
                if node.values is not None:
                    assert np.array_equal(zcore.open(place, path=path)[...], node.values)
            else:
                assert same(read(place, path), node), (kind, path)
        if kind == "references":
            for path in self.arrays():
                self.expect(zcore.ReadOnlyError, zcore.open_array(place, "r+", path=path).attrs.update, {"n": 1})

    # what holds after each step

    @invariant()
    def nodes_are_as_the_model(self):
        group = zcore.open_group(self.store, use_consolidated=False)
        assert {path for path, _ in group.members(None)} == set(self.nodes)
        for path, node in self.nodes.items():
            assert same(read(self.store, path), node), path

    @invariant()
    def zarr_python_reads_the_same(self):
        if self.kind != "directory":
            return
        import zarr

        # Whatever another test has chosen.
        with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
            group = zarr.open_group(self.path, mode="r", zarr_format=self.zarr_format, use_consolidated=False)
            for path, node in self.nodes.items():
                found = group[path]
                assert dict(found.attrs) == node.attributes, path
                if node.values is not None:
                    values = found[...]
                    assert values.shape == node.values.shape and np.array_equal(values, node.values), path


def read(store, path):
    """Return what is at a path, as the model has it, or None."""
    try:
        found = zcore.open(store, path=path)
    except zcore.NodeNotFoundError:
        return None
    attributes = found.attrs.asdict()
    if not isinstance(found, zcore.Array):
        return Node(None, attributes, None, None)
    return Node(found[...], attributes, found.fill_value.item(), found.shards or found.chunks)


def same(a, b):
    if a is None or b is None or a.values is None or b.values is None:
        return (a is None) == (b is None) and (a is None or (a.values is b.values and a.attributes == b.attributes))
    return (a.attributes == b.attributes and a.fill == b.fill and a.chunk == b.chunk
            and a.values.dtype.newbyteorder("=") == b.values.dtype.newbyteorder("=")
            and np.array_equal(a.values, b.values))


def is_mixed(found, before, after):
    """Return whether each stored object of an array is as before or as after."""
    if found is None or found.values.shape != before.values.shape or found.attributes != before.attributes:
        return False
    grid = [-(-n // c) for n, c in zip(found.values.shape, found.chunk, strict=True)]
    for coords in np.ndindex(*grid):
        part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(coords, found.chunk, strict=True))
        if not any(np.array_equal(found.values[part], node.values[part]) for node in (before, after)):
            return False
    return True


class V3(Life):
    pass


class Sharded(Life):
    is_sharded = True


class V2(Life):
    zarr_format = 2


class Memory(Life):
    kind = "memory"


class MemoryV2(Memory):
    zarr_format = 2


class Zip(Life):
    kind = "zip"


class Remote(Life):
    kind = "remote"


LIVES = {life.__name__: life for life in (V3, Sharded, V2, Memory, MemoryV2, Zip, Remote)}


def lead(name, n_lives, n_steps=12, number=0):
    """Lead that many lives; another number makes others."""
    # Not shrunk: that takes minutes, and a life that ended badly is told step by step as it is.
    machine = seed(number)(LIVES[name])
    run_state_machine_as_test(machine, settings=settings(
        max_examples=n_lives, stateful_step_count=n_steps, phases=[Phase.generate], report_multiple_bugs=False,
        derandomize=False, database=None, deadline=None, suppress_health_check=list(HealthCheck)))
