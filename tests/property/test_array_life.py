"""A hierarchy lives: whatever is done to its nodes, and by whichever handle, it holds what a dict of ndarrays holds.

Each life is led three times, through the kernel, through the Python path over the same kind of files, and in memory:
the answers are the same, and so are all keys and all bytes that are stored. The oracle reads these as well.
"""
import collections
import contextlib
import copy
import itertools
import json
import os
import pickle
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zcore
from tests import judge, oracle
from tests.both_ways import WAYS, directory
from zcore.stores.keys import TEMPORARY

PLACES = (*WAYS, "memory")
# Some below others, some where a group must be; the root is taken rarely, as little else is left then.
PATHS = st.sampled_from(["a", "a", "b", "b", "g/a", "g/a", "g/h/c", "g", "g/h", "x/y", ""])
# Each case that a life with groups must meet: the verb, the kind of node, what is at the destination, and the error.
MET = {
    *[f"delete {kind}" for kind in ("array", "group", "none: NodeNotFoundError")],
    *[f"{verb} {where}"
      for verb in ("create_array", "create_group", "move array", "move group", "copy array", "copy group")
      for where in ("in a group", "without a group", "over array: NodeExistsError", "over group: NodeExistsError",
                    "below an array: NodeExistsError")],
    *[f"{verb} over {kind}" for verb in ("create_array", "create_group", "copy array", "copy group")
      for kind in ("array", "group")],
    *[f"{verb} none: NodeNotFoundError" for verb in ("move", "copy")],
    *[f"copy {what}" for what in ("array over itself", "group over itself", "array over its group",
                                  "group over its group", "group over its member", "group into itself")],
    "move group into itself: NodeExistsError",
}
PLACED = ["a", "b", "g", "g/a", "g/h", "g/h/c", "x/y"]
STRUCTURE = np.dtype([("p", "|i1"), ("q", ">f4"), ("r", "|S2")])
# A few values of each type, so that the fill value, one of them, is met often.
VALUES = {
    "|b1": [False, True],
    "|i1": [0, -1, 7],
    ">i4": [0, 1, -(2**31)],
    "<u8": [0, 2**64 - 1, 5],
    "<f8": [0.0, -0.0, float("nan"), float("inf"), 1.5],
    ">c8": [0, 1 - 2j],
    "|S3": [b"", b"ab", b"xyz"],
    "<U2": ["", "é", "zz"],
    "<M8[s]": [np.datetime64(0, "s"), np.datetime64("NaT", "s"), np.datetime64(10**9, "s")],
    STRUCTURE: [(0, 0.0, b""), (1, -2.5, b"ab")],
    "string": ["", "é", "long" * 9],
}
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["units", "n", "ünïcode", "nested"]),
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3) | st.lists(st.integers(0, 2), max_size=2) | st.just({"a": [{}, None]}),
    max_size=3)
DOCUMENTS = {3: ("zarr.json", "zarr.json", None), 2: (".zarray", ".zgroup", ".zattrs"),
             "zmeta": ("__zmeta__", None, "__zattr__")}


def as_bytes(array):
    """What tells one value from another: NaN from NaN, too, and -0 from 0."""
    array = np.asarray(array)
    return array.dtype, array.shape, array.tolist() if array.dtype.kind == "T" else array.tobytes()


def positions(selection, shape):
    """The positions that a selection takes in each dimension, and the shape of what it gives."""
    selection = selection if isinstance(selection, tuple) else (selection,)
    taken = [np.atleast_1d(np.arange(n)[part]) for part, n in zip(selection, shape, strict=True)]
    return taken, np.empty(shape, "i1")[selection].shape


class Hierarchy(RuleBasedStateMachine):
    """Each step is made in all places and in the model, and then they are compared."""

    zarr_format = None
    is_sharded = False
    types = tuple([key for key in VALUES if key != "string"])

    def __init__(self):
        super().__init__()
        self.met = collections.Counter()
        self.stack = contextlib.ExitStack()
        self.folders = {place: self.stack.enter_context(tempfile.TemporaryDirectory()) for place in WAYS}
        self.stores = {place: directory(folder, place) for place, folder in self.folders.items()}
        self.stores["memory"] = zcore.MemoryStore()
        self.nodes = {}

    def teardown(self):
        self.stack.close()

    # the model

    @property
    def has_groups(self):
        return self.zarr_format != "zmeta"

    def has_members(self):
        return "" in self.nodes and not self.nodes[""].is_array

    def below(self, path):
        """The paths of a node and of all that lies below it."""
        prefix = path + "/" if path else ""
        return [other for other in self.nodes if other == path or other.startswith(prefix)]

    def why_not(self, path, overwrite):
        """The exception of a creation, or None; groups above are made then."""
        if not self.has_groups:
            # What is no node is not replaced, if nodes lie below.
            stands = not overwrite if path in self.nodes else overwrite and self.below(path)
            return zcore.NodeExistsError if stands else None
        above = path
        while above:
            above = above.rpartition("/")[0]
            if above in self.nodes:
                if self.nodes[above].is_array:
                    return zcore.NodeExistsError
                break
        return zcore.NodeExistsError if path in self.nodes and not overwrite else None

    def outcome(self, verb, source=None, destination=None, overwrite=False):
        """Return what a verb meets, as in `MET`, and the exception that it ends in, or None."""
        def is_below(path, other):
            return source is not None and path != other and path.startswith(other + "/" if other else "")

        node, there = self.nodes.get(source), self.nodes.get(destination)
        kind = "" if source is None else " none" if node is None else " array" if node.is_array else " group"
        if kind == " none":
            return f"{verb} none: NodeNotFoundError", zcore.NodeNotFoundError
        if destination is None:
            return verb + kind, None
        expected = self.why_not(destination, overwrite)
        if verb == "move" and (source == destination or is_below(destination, source)):
            expected = zcore.NodeExistsError
        if there is not None:
            where = f"over {'array' if there.is_array else 'group'}"
            if expected is None and source is not None:
                where = ("over itself" if source == destination else "over its group" if is_below(source, destination)
                         else "over its member" if is_below(destination, source) else where)
        elif is_below(destination, source) and not node.is_array:
            where = "into itself"
        elif expected:
            where = "below an array"
        else:
            where = "in a group" if destination.rpartition("/")[0] in self.nodes else "without a group"
        return f"{verb}{kind} {where}{expected and f': {expected.__name__}' or ''}", expected

    def meet(self, *what):
        """Return the exception that a verb ends in, and note what it meets."""
        label, expected = self.outcome(*what)
        self.met[label] += 1
        return expected

    def add(self, path, node, overwrite):
        for other in self.below(path) if overwrite else ():
            del self.nodes[other]
        self.nodes[path] = node
        self.add_ancestors(path)

    def add_ancestors(self, path):
        while path and self.has_groups:
            path = path.rpartition("/")[0]
            self.nodes.setdefault(path, SimpleNamespace(is_array=False, attributes={}))

    @staticmethod
    def fill_of(handle):
        """The fill value as an array without dimensions."""
        fill = np.zeros((), handle.dtype)
        if handle.fill_value is not None:
            fill[()] = handle.fill_value
        elif handle.zarr_format == 2 and handle.dtype.kind == "M":
            fill[()] = "NaT"    # what zarr-python 3 reads there, too; of all else it reads zeros
        return fill

    # all places

    def everywhere(self, operation, expected=None):
        """Do it at each place; `expected` is the exception that it must end in. Returns the results by place."""
        results = {}
        for place in PLACES:
            if expected is None:
                results[place] = operation(place)
            else:
                with pytest.raises(expected):
                    operation(place)
        return results

    # nodes come, move and go

    @initialize()
    def root(self):
        if self.has_groups:
            self.everywhere(lambda place: zcore.create_group(self.stores[place], zarr_format=self.zarr_format))
            self.nodes[""] = SimpleNamespace(is_array=False, attributes={})

    @staticmethod
    def fills(key):
        """Values of a type that may be the fill value."""
        return VALUES[key]

    def draw_values(self, data, dtype, shape):
        values = VALUES["string" if dtype.kind == "T" else STRUCTURE if dtype == STRUCTURE else dtype.str]
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        out = np.zeros(shape, dtype)
        flat = out.reshape(-1)
        for i, choice in enumerate(rng.integers(0, len(values), out.size).tolist()):
            flat[i] = values[choice]
        return out

    def create_array(self, data, path, overwrite, attributes):
        key = data.draw(st.sampled_from(self.types))
        dtype = np.dtypes.StringDType() if key == "string" else np.dtype(key)
        ndim = data.draw(st.sampled_from([1, 1, 2, 2, 3, 0 if self.has_groups else 1]))
        # The simplest life of all has elements.
        shape = tuple(data.draw(st.lists(st.sampled_from([5, *range(8)]), min_size=ndim, max_size=ndim)))
        chunks = tuple(data.draw(st.lists(st.integers(1, 4), min_size=ndim, max_size=ndim)))
        shards = None
        keywords = {}
        if self.is_sharded:
            shards = tuple([chunk * data.draw(st.integers(1, 2)) for chunk in chunks])
            keywords["shards"] = shards
        fill = data.draw(st.sampled_from([..., None, *self.fills(key)]))
        expected = self.meet("create_array", None, path, overwrite)
        created = self.everywhere(lambda place: zcore.create_array(
            self.stores[place], name=path, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill,
            attributes=attributes, overwrite=overwrite, zarr_format=self.zarr_format, **keywords), expected)
        if expected is None:
            # Which one a type has by default is not the matter here.
            fill = self.fill_of(created["native"]) if fill in (..., None) else np.array(fill, dtype)
            value = np.empty(shape, dtype)
            value[...] = fill
            self.add(path, SimpleNamespace(
                is_array=True, attributes=dict(attributes), value=value, dtype=dtype, chunks=chunks, shards=shards,
                fill=fill, keeps=created["native"].fill_value is None), overwrite)
        return self.held(path, created)

    @staticmethod
    def held(path, by_place, read_only=False):
        """A handle for each place, or nothing."""
        return SimpleNamespace(path=path, by_place=by_place, read_only=read_only) if by_place else multiple()

    def create_group(self, path, overwrite, attributes):
        overwrite = overwrite and path != ""
        expected = self.meet("create_group", None, path, overwrite)
        self.everywhere(lambda place: zcore.open_group(
            self.stores[place], "w" if overwrite else "w-", path=path, attributes=attributes,
            zarr_format=self.zarr_format), expected)
        if expected is None:
            self.add(path, SimpleNamespace(is_array=False, attributes=dict(attributes)), overwrite)

    def root_group(self, place):
        return zcore.open_group(self.stores[place], "r+")

    def delete(self, path):
        expected = self.meet("delete", path)
        self.everywhere(lambda place: self.root_group(place).__delitem__(path), expected)
        for other in self.below(path) if expected is None else ():
            del self.nodes[other]

    def move(self, source, destination):
        expected = self.meet("move", source, destination)
        self.everywhere(lambda place: self.root_group(place).move(source, destination), expected)
        if expected is None:
            for path in self.below(source):
                self.nodes[destination + path[len(source):]] = self.nodes.pop(path)
            self.add_ancestors(destination)

    def copy(self, source, destination, overwrite):
        """Also to itself, into itself, and over what it is in: what it was at the beginning is copied."""
        expected = self.meet("copy", source, destination, overwrite)
        self.everywhere(lambda place: zcore.copy(
            self.stores[place], self.stores[place], path=source, destination_path=destination, overwrite=overwrite),
            expected and (zcore.NodeNotFoundError, zcore.NodeExistsError))
        if expected is None:
            copied = {path[len(source):].strip("/"): copy.deepcopy(self.nodes[path]) for path in self.below(source)}
            self.add(destination, copied.pop(""), overwrite)
            for path, node in copied.items():
                self.nodes[f"{destination}/{path}".strip("/")] = node

    # what holds after each step

    @invariant()
    def nodes_are_as_the_model(self):
        for place in PLACES:
            for path, node in self.nodes.items():
                found = zcore.open(self.stores[place], path=path)
                assert found.attrs.asdict() == node.attributes
                if node.is_array:
                    assert isinstance(found, zcore.Array)
                    assert (found.shape, found.chunks, found.shards) == (node.value.shape, node.chunks, node.shards)
                    assert as_bytes(self.fill_of(found)) == as_bytes(node.fill)
                    assert as_bytes(found[...]) == as_bytes(node.value)
                else:
                    prefix = path + "/" if path else ""
                    below = {other[len(prefix):] for other in self.below(path)} - {""} if path == "" else {
                        other[len(prefix):] for other in self.below(path) if other != path}
                    assert list(found) == sorted({other for other in below if "/" not in other})

    @invariant()
    def stored_is_what_the_model_needs(self):
        """Objects lie in the grid and hold something, whatever else there is are documents; all places are alike."""
        array_document, group_document, attributes_document = DOCUMENTS[self.zarr_format]
        contents = {place: {key: store.get(key) for key in store.list()} for place, store in self.stores.items()}
        assert contents["native"] == contents["confined"] == contents["memory"]
        needed, may_be = set(), set()
        for path, node in self.nodes.items():
            prefix = path + "/" if path else ""
            needed.add(prefix + (array_document if node.is_array else group_document))
            if attributes_document is not None:
                (needed if node.attributes else may_be).add(prefix + attributes_document)
            if node.is_array:
                metadata = zcore.open(self.stores["memory"], path=path).metadata
                for coords in np.ndindex(metadata.grid_shape):
                    part = node.value[(*[slice(i * c, (i + 1) * c) for i, c
                                         in zip(coords, metadata.chunk_shape, strict=True)], ...)]
                    is_fill = as_bytes(part) == as_bytes(np.full(part.shape, node.fill, node.dtype))
                    key = prefix + metadata.chunk_keys.encode(coords)
                    (may_be if is_fill and node.keeps else set() if is_fill else needed).add(key)
            elif self.zarr_format == 2:
                may_be.add(prefix + ".zmetadata")
        assert needed <= contents["memory"].keys() <= needed | may_be
        for path, node in self.nodes.items():
            # All places hold the same bytes.
            if node.is_array:
                judge.assert_same(oracle.read(contents["memory"], path), node.value)

    @invariant()
    def copies_are_true(self):
        """Consolidated metadata, where there are any, tell of all nodes below what these say themselves."""
        store = self.stores["memory"]
        for path, node in self.nodes.items():
            if node.is_array or not self.has_groups:
                continue
            prefix = path + "/" if path else ""
            raw = store.get(prefix + ("zarr.json" if self.zarr_format == 3 else ".zmetadata"))
            copy = json.loads(raw or b"{}")
            if self.zarr_format == 3:
                copy = copy.get("consolidated_metadata")
                if copy is not None:
                    found = {below: (members.get("shape"), members["attributes"])
                             for below, members in copy["metadata"].items()}
            else:
                copy = copy.get("metadata")
                if copy is not None:
                    found = {key.rpartition("/")[0]: (members.get("shape"), copy.get(
                        key.rpartition("/")[0] + "/.zattrs", {}))
                        for key, members in copy.items() if key.endswith(("/.zarray", "/.zgroup"))}
            if copy is not None:
                assert found == {
                    other[len(prefix):]: (list(below.value.shape) if below.is_array else None, below.attributes)
                    for other, below in self.nodes.items() if other != path and other.startswith(prefix)}

    @invariant()
    def nothing_temporary_is_left(self):
        for folder in self.folders.values():
            for _, _, files in os.walk(folder):
                assert not [name for name in files if name.startswith(TEMPORARY)]


class Life(Hierarchy):
    """All steps with arrays and groups, also by handles of nodes that were deleted."""

    handles = Bundle("handles")

    create_array = rule(target=handles, data=st.data(), path=PATHS, overwrite=st.booleans(), attributes=ATTRIBUTES)(
        Hierarchy.create_array)
    create_group = precondition(lambda self: self.has_groups)(
        rule(path=PATHS, overwrite=st.booleans(), attributes=ATTRIBUTES)(Hierarchy.create_group))
    delete = precondition(Hierarchy.has_members)(rule(path=PATHS.filter(bool))(Hierarchy.delete))
    move = precondition(Hierarchy.has_members)(
        rule(source=PATHS.filter(bool), destination=PATHS.filter(bool))(Hierarchy.move))
    copy = precondition(lambda self: self.has_groups)(
        rule(source=PATHS, destination=PATHS, overwrite=st.booleans())(Hierarchy.copy))

    @precondition(lambda self: self.has_groups)
    @rule(path=PATHS)
    def consolidate(self, path):
        node = self.nodes.get(path)
        self.everywhere(
            lambda place: zcore.consolidate_metadata(self.stores[place], path=path),
            zcore.NodeNotFoundError if node is None or node.is_array else None)

    # handles

    @rule(target=handles, path=PATHS, mode=st.sampled_from(["r", "r+", "a"]), lock=st.sampled_from([True, None]),
          threads=st.sampled_from([None, 1, 2]), write_empty_chunks=st.sampled_from([False, False, True]))
    def open_array(self, path, mode, lock, threads, write_empty_chunks):
        node = self.nodes.get(path)
        expected = zcore.NodeNotFoundError if node is None or not node.is_array else None
        handles = self.everywhere(lambda place: zcore.open_array(
            self.stores[place], "r+" if mode == "a" and expected else mode, path=path, lock=lock, threads=threads,
            write_empty_chunks=write_empty_chunks), expected)
        return self.held(path, handles, mode == "r")

    @rule(target=handles, held=consumes(handles))
    def pickle(self, held):
        """A copy leads to the same place, or, of a store in memory, to what was there."""
        node = self.nodes.get(held.path)
        expected = zcore.NodeNotFoundError if node is None or not node.is_array else None
        copies = self.everywhere(lambda place: pickle.loads(pickle.dumps(held.by_place[place])).refresh(), expected)
        if expected is None:
            assert copies["memory"].store is not held.by_place["memory"].store
            assert as_bytes(copies["memory"][...]) == as_bytes(node.value)
            copies["memory"] = held.by_place["memory"].refresh()
            return self.held(held.path, copies, held.read_only)
        return held

    @rule(held=handles)
    def refresh(self, held):
        node = self.nodes.get(held.path)
        expected = zcore.NodeNotFoundError if node is None or not node.is_array else None
        self.everywhere(lambda place: held.by_place[place].refresh(), expected)
        if expected is None:
            for handle in held.by_place.values():
                assert (handle.shape, handle.dtype) == (node.value.shape, node.dtype)

    # what arrays hold

    def same_chunks(self, node, handle):
        return (node is not None and node.is_array and node.chunks == handle.chunks and node.dtype == handle.dtype
                and node.shards == handle.shards
                and as_bytes(node.fill) == as_bytes(self.fill_of(handle)))

    def draw_selection(self, data, handle):
        parts = []
        for n, chunk in zip(handle.shape, handle.shards or handle.chunks, strict=True):
            kind = data.draw(st.sampled_from(["whole", "chunk", "slice", "integer" if n else "whole"]))
            if kind == "chunk":
                i = data.draw(st.integers(0, n // chunk))
                parts.append(slice(i * chunk, (i + 1) * chunk))
            elif kind == "slice":
                bounds = st.none() | st.integers(-n - 1, n + 1)
                parts.append(slice(data.draw(bounds), data.draw(bounds),
                                   data.draw(st.sampled_from([None, 1, 2, 3, -1, -2]))))
            else:
                parts.append(slice(None) if kind == "whole" else data.draw(st.integers(-n, n - 1)))
        return tuple(parts)

    def fate_of(self, held, taken, is_write):
        """What becomes of an access by a handle, which may know an array that is no more: an exception, or None."""
        handle, node = held.by_place["native"], self.nodes.get(held.path)
        if node is None or not node.is_array:
            return zcore.NodeNotFoundError
        replaced = (node.dtype != handle.dtype or node.value.ndim != handle.ndim if is_write
                    else not self.same_chunks(node, handle))
        if replaced:
            return zcore.StoreError
        if any(len(part) and part.max() >= n for part, n in zip(taken, node.value.shape, strict=True)):
            return zcore.SelectionError
        return None

    @rule(data=st.data(), held=handles, into=st.booleans())
    def read(self, data, held, into):
        handle = held.by_place["native"]
        selection = self.draw_selection(data, handle)
        taken, shape = positions(selection, handle.shape)
        expected = self.fate_of(held, taken, is_write=False)

        def read(place):
            handle = held.by_place[place]
            return handle.read(selection, out=np.empty(shape, handle.dtype)) if into else handle[selection]

        results = self.everywhere(read, expected)
        for result in results.values():
            if shape or into:
                assert result.dtype == handle.dtype
            else:
                result = np.array(result, handle.dtype)    # NumPy's scalars know neither byte order nor StringDType
            assert as_bytes(result) == as_bytes(self.nodes[held.path].value[(*np.ix_(*taken), ...)].reshape(shape))

    @rule(data=st.data(), held=handles, kind=st.sampled_from(["values", "values", "one", "fill"]))
    def write(self, data, held, kind):
        handle = held.by_place["native"]
        selection = self.draw_selection(data, handle)
        taken, shape = positions(selection, handle.shape)
        is_empty = not all(map(len, taken))
        # No element is touched, so no code looks whether the array is still there.
        expected = zcore.ReadOnlyError if held.read_only else None if is_empty else self.fate_of(
            held, taken, is_write=True)
        if kind == "fill":
            values = self.fill_of(handle)
        else:
            values = self.draw_values(data, handle.dtype, shape if kind == "values" else ())
        self.everywhere(lambda place: held.by_place[place].__setitem__(selection, values), expected)
        assert len({known.shape for known in held.by_place.values()}) == 1
        if expected is None and not is_empty:
            node = self.nodes[held.path]
            node.keeps |= handle._binding.options.write_empty_chunks
            node.value[np.ix_(*taken)] = np.broadcast_to(values, shape).reshape([len(part) for part in taken])

    def resized(self, node, shape):
        value = np.full(shape, node.fill, node.dtype)
        kept = tuple([slice(min(a, b)) for a, b in zip(shape, node.value.shape, strict=True)])
        value[kept] = node.value[kept]
        return value

    @rule(data=st.data(), held=handles)
    def resize(self, data, held):
        node = self.nodes.get(held.path)
        ndim = held.by_place["native"].ndim
        shape = tuple(data.draw(st.lists(st.integers(0, 7), min_size=ndim, max_size=ndim)))
        expected = None
        if held.read_only:
            expected = zcore.ReadOnlyError
        elif node is None or not node.is_array:
            expected = zcore.NodeNotFoundError
        elif node.value.ndim != ndim:
            expected = ValueError
        self.everywhere(lambda place: held.by_place[place].resize(shape), expected)
        if expected is None:
            node.value = self.resized(node, shape)
            assert {handle.shape for handle in held.by_place.values()} == {shape}

    @rule(data=st.data(), held=handles, n=st.integers(0, 5))
    def append(self, data, held, n):
        handle = held.by_place["native"]
        if not handle.ndim:
            return
        node = self.nodes.get(held.path)
        axis = data.draw(st.integers(-handle.ndim, handle.ndim - 1))
        like = node.value.shape if node is not None and node.is_array and node.value.ndim == handle.ndim else \
            handle.shape
        shape = tuple([n if d == axis % handle.ndim else length for d, length in enumerate(like)])
        values = self.draw_values(data, handle.dtype, shape)
        expected = None
        if held.read_only:
            expected = zcore.ReadOnlyError
        elif node is None or not node.is_array:
            expected = zcore.NodeNotFoundError
        elif node.dtype != handle.dtype or axis % handle.ndim >= node.value.ndim:
            expected = zcore.StoreError
        elif node.value.ndim != handle.ndim:
            expected = ValueError
        results = self.everywhere(lambda place: held.by_place[place].append(values, axis), expected)
        if expected is None:
            node.keeps |= handle._binding.options.write_empty_chunks
            node.value = np.concatenate([node.value, values], axis, dtype=node.dtype)
            assert set(results.values()) == {node.value.shape}

    # attributes

    @rule(path=PATHS, new=ATTRIBUTES, kind=st.sampled_from(["update", "put", "clear", "pop", "setdefault"]))
    def change_attributes(self, path, new, kind):
        node = self.nodes.get(path)
        if node is None:
            return
        name = min(new, default="units")
        model = node.attributes
        calls = {"update": (new,), "put": (new,), "clear": (), "pop": (name, "none"), "setdefault": (name, 1)}
        results = self.everywhere(
            lambda place: getattr(zcore.open(self.stores[place], "r+", path=path).attrs, kind)(*calls[kind]))
        if kind == "put":
            model.clear()
            model.update(new)
            told = None
        else:
            told = getattr(model, kind)(*calls[kind])
        assert list(results.values()) == [told] * len(PLACES)

    @rule(held=handles, new=ATTRIBUTES)
    def attributes_by_a_handle(self, held, new):
        node = self.nodes.get(held.path)
        gone = node is None or not node.is_array
        expected = zcore.ReadOnlyError if held.read_only else zcore.NodeNotFoundError if gone else None
        self.everywhere(lambda place: held.by_place[place].attrs.update(new), expected)
        if expected is None:
            node.attributes.update(new)
        if not gone:
            found = self.everywhere(lambda place: held.by_place[place].attrs.asdict())
            assert list(found.values()) == [node.attributes] * len(PLACES)


class ZarrV3(Life):
    zarr_format = 3
    types = tuple(VALUES)


class Sharded(ZarrV3):
    is_sharded = True


class ZarrV2(Life):
    zarr_format = 2


class Zmeta(Life):
    zarr_format = "zmeta"

    @staticmethod
    def fills(key):
        # Its documents have no others.
        return [] if key == STRUCTURE else [value for value in VALUES[key] if value != "é"]


LIVES = [ZarrV3, Sharded, ZarrV2, Zmeta]


class Outcomes(Hierarchy):
    """Meets each outcome of each verb, one after the other."""

    @rule(data=st.data(), attributes=ATTRIBUTES)
    def meet_what_is_new(self, data, attributes):
        """Do what this life has done least often."""
        ways = {}
        for verb, sources, destinations in (
                ("create_array", [None], PLACED), ("create_group", [None], PLACED), ("delete", PLACED, [None]),
                ("move", PLACED, PLACED), ("copy", ["", *PLACED], ["", *PLACED])):
            for what in itertools.product([verb], sources, destinations, [False, True]):
                label, expected = self.outcome(*what)
                if expected or what[2] != "" or not self.nodes[what[1]].is_array:   # which would be the last one
                    ways.setdefault(label, []).append(what)
        verb, source, destination, overwrite = data.draw(st.sampled_from(
            ways[min(sorted(ways.keys() & MET), key=self.met.__getitem__)]))
        if verb == "create_array":
            created = self.create_array(data, destination, overwrite, attributes)
            if created != multiple():
                node = self.nodes[destination]
                node.value = self.draw_values(data, node.dtype, node.value.shape)
                self.everywhere(lambda place: created.by_place[place].__setitem__(..., node.value))
        elif verb == "create_group":
            self.create_group(destination, overwrite, attributes)
        elif verb == "delete":
            self.delete(source)
        elif verb == "move":
            self.move(source, destination)
        else:
            self.copy(source, destination, overwrite)

    def teardown(self):
        super().teardown()
        self.all_met.update(self.met)


def lead(machine, n_lives, n_steps, number=0):
    # Not shrunk: that takes minutes, and a life that ended badly is told step by step as it is.
    run_state_machine_as_test(seed(number)(machine), settings=settings(
        max_examples=n_lives, stateful_step_count=n_steps, phases=[Phase.generate], report_multiple_bugs=False,
        derandomize=False, suppress_health_check=list(HealthCheck)))


@pytest.mark.parametrize("machine", LIVES, ids=lambda machine: machine.__name__)
def test_a_life(machine):
    """Create, write, read, resize, append, attributes, delete, move, consolidate, reopen, pickle, stale handles."""
    lead(machine, 5, 30)


@pytest.mark.parametrize("n_lives", [1, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("life", [ZarrV3, *[pytest.param(life, marks=pytest.mark.slow) for life in (Sharded, ZarrV2)]],
                         ids=lambda life: life.__name__)
def test_every_outcome_of_the_verbs_of_a_hierarchy(life, n_lives):
    """Create, overwrite, delete, move and copy: of arrays and groups, wherever they end, and whatever stands there.

    V3-OP-01, V3-OP-02, V3-OP-04, V2-GRP-02, D3-CON-01, D3-CON-02, D3-GRP-01
    """
    machine = type("Outcomes", (Outcomes,), {name: getattr(life, name) for name in (
        "zarr_format", "is_sharded", "types")} | {"all_met": set()})
    lead(machine, n_lives, 90)
    assert MET == machine.all_met


@pytest.mark.slow
@pytest.mark.parametrize("machine", LIVES, ids=lambda machine: machine.__name__)
def test_many_lives(machine):
    lead(machine, 300, 60)
