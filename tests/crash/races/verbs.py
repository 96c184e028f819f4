"""What the workers do: each verb as a call of zcore, and what an array is afterwards, as the model has it."""


import asyncio
import errno
import traceback

import numpy as np

import zcore
from tests.crash.races.model import BUSY, PROGRAMS, REFUSED, Node

# The unit of a write is the stored object: a chunk, or a shard.
CHUNK, OBJECT = 4, {"v3": 4, "sharded": 8, "v2": 4, "zmeta": 4}
LENGTH, FILL = {"v3": 10, "sharded": 20, "v2": 10, "zmeta": 10}, -1
ZARR_FORMAT = {"v3": 3, "sharded": 3, "v2": 2, "zmeta": "zmeta"}
FORMATS = tuple(ZARR_FORMAT)
# Where moved nodes and copies may be.
PLACES = ("x", "z", "z1", "z2", "z3", "y1", "y2", "y3")
OF_GROUPS = ("delete", "move", "consolidate", "list")
# They touch no node, and are for calls within calls.
OF_ASDF = ("asdf read", "asdf write")
READS = ("read", "read many", "async read")
BY_HANDLE = ("write", "append", "shrink", "grow", "attributes", *READS)


def verbs(format):
    """Return the verbs that a format has: the one of 2016 has no groups."""
    return [verb for verb in PROGRAMS if verb not in OF_ASDF and (format != "zmeta" or verb not in OF_GROUPS)]


def keywords(format, chunk=None):
    """Return how an array of a format is created."""
    chunk = OBJECT[format] if chunk is None else chunk
    given = {"chunks": chunk, "zarr_format": ZARR_FORMAT[format]}
    return given | ({"chunks": CHUNK // 2, "shards": chunk} if format == "sharded" else {})


def draw(verb, format, me, rng):
    """Return an argument for a verb, by whose numbers its elements are known."""
    n, size = LENGTH[format], OBJECT[format]

    def numbers(n):
        return [1000 * me + i for i in range(n)]

    if verb == "write":
        start, step = rng.randrange(n - 1), rng.choice((1, 1, 2, 3))
        if rng.random() < 0.4:
            start, step = 0, 1
        stop = rng.randrange(start + 1, n + 1) if rng.random() < 0.5 else n
        positions = range(start, stop, step)
        return dict(zip(positions, numbers(n) if rng.random() < 0.8 else [FILL] * n, strict=False))
    if verb == "append":
        return numbers(rng.randrange(1, 2 * size))
    if verb == "shrink":
        return rng.randrange(0, n)
    if verb == "grow":
        return rng.randrange(n + 1, n + 2 * size)
    if verb == "attributes":
        return rng.choice(("a", f"b{me}")), me
    if verb in ("overwrite", "create", "copy to"):
        length = rng.choice((n, n, n + 3, size))
        chunk = size if rng.random() < 0.8 else 2 * size
        return numbers(length) if verb == "copy to" or rng.random() < 0.7 else [-10 * me] * length, -10 * me, chunk
    if verb == "move":
        return rng.choice(("z", f"z{me}"))
    if verb == "copy from":
        return f"y{me}"
    return None


def begin(store, format, has_array):
    """Make the store of one round and return what it holds."""
    n = LENGTH[format]
    if format != "zmeta":
        zcore.create_group(store, zarr_format=ZARR_FORMAT[format])
    if not has_array:
        return frozenset()
    zcore.create_array(store, name="x", data=np.arange(1, n + 1, dtype="i4"), fill_value=FILL, attributes={"by": 0},
                       **keywords(format))
    return frozenset({("x", Node(tuple(range(1, n + 1)), frozenset({("by", 0)}), FILL, OBJECT[format], 0))})


def found(store):
    """Return what a store holds, as the model has it."""
    nodes = {}
    for path in PLACES:
        try:
            array = zcore.open_array(store, path=path)
        except zcore.NodeNotFoundError:
            continue
        nodes[path] = Node(tuple(array[...].tolist()), frozenset(array.attrs.asdict().items()),
                           array.fill_value.item(), (array.shards or array.chunks)[0], 0)
    return frozenset(nodes.items())


def prepare(store, verb, is_early):
    """Return what a call needs beforehand: a handle that may be out of date when it is used, or None."""
    if not is_early or verb not in BY_HANDLE:
        return None
    try:
        return zcore.open_array(store, "r" if verb in READS else "r+", path="x")
    except zcore.NodeNotFoundError:
        return None


def perform(store, format, verb, argument, me, handle=None):
    """Call a verb and return its outcome."""
    try:
        returned = _performed(store, format, verb, argument, me, handle)
    except zcore.ZcoreError as error:
        name = type(error).__name__
        if isinstance(error, zcore.LockError):
            return name, error.errno
        if error.__class__ is zcore.StoreError and error.errno == errno.EWOULDBLOCK:
            return BUSY
        # The general class stands for "replaced by another array"; every other use of it has a number of the system.
        is_plain = name != "StoreError" or error.errno is None or "the array was replaced by another" in str(error)
        return (name,) if is_plain else (name, error.errno, str(error))
    except Exception as error:
        if verb == "async read" and "cannot be called from a running event loop" in str(error):
            return REFUSED      # by asyncio
        return "unexpected", traceback.format_exc()
    return ("ok",) if returned is None else ("ok", *returned)


def _performed(store, format, verb, argument, me, array):
    if verb in BY_HANDLE and array is None:
        array = zcore.open_array(store, "r" if verb in READS else "r+", path="x")
    if verb == "write":
        positions = list(argument)
        if array.shape[0] <= positions[-1]:
            # A slice would be cut off.
            raise zcore.SelectionError("the array is too short")
        step = positions[1] - positions[0] if len(positions) > 1 else 1
        array[positions[0]:positions[-1] + 1:step] = np.array(list(argument.values()), "i4")
    elif verb == "append":
        return array.append(np.array(argument, "i4"))
    elif verb in ("shrink", "grow"):
        array.resize(argument)
    elif verb == "attributes":
        array.attrs[argument[0]] = argument[1]
    elif verb == "read":
        return array[...].tolist()
    elif verb == "read many":
        # One by one, as all parts have the same shape.
        parts = [slice(i, i + 1) for i in range(array.shape[0])]
        return [part.item() for part in array.read_many(parts)] if parts else []
    elif verb == "async read":
        return asyncio.run(array.async_read()).tolist()
    elif verb == "open":
        zcore.open(store, path="x").attrs.asdict()
    elif verb == "asdf read":
        with zcore.asdf.open(argument) as file:
            assert file.tree["n"].read().tolist() in ([1, 2, 3], [4, 5, 6])
    elif verb == "asdf write":
        zcore.asdf.write(argument, {"n": np.array([4, 5, 6])})
    elif verb == "delete":
        del zcore.open_group(store, "r+")["x"]
    elif verb in ("overwrite", "create"):
        values, fill, chunk = argument
        values = np.array(values, "i4")
        # Without elements where they are all fill values: that is another way through the code.
        content = {"shape": len(values), "dtype": "i4"} if (values == fill).all() else {"data": values}
        zcore.create_array(store, name="x", fill_value=fill, attributes={"by": me}, overwrite=verb == "overwrite",
                           **content, **keywords(format, chunk))
    elif verb == "copy to":
        values, fill, chunk = argument
        source = zcore.create_array(zcore.MemoryStore(), data=np.array(values, "i4"), fill_value=fill,
                                    attributes={"by": me}, **keywords(format, chunk))
        zcore.copy(source, store, destination_path="x", overwrite=True)
    elif verb == "move":
        zcore.open_group(store, "r+").move("x", argument)
    elif verb == "copy from":
        zcore.copy(store, store, path="x", destination_path=argument)
    elif verb == "verify":
        report = zcore.verify(store, path="x")
        # A temporary file of a living writer is one of a killed one to it, until it is older.
        return [str(problem) for problem in report.problems if problem.kind != "left-over"] or None
    elif verb == "consolidate":
        zcore.consolidate_metadata(store)
    elif verb == "list":
        group = zcore.open_group(store)
        for _, node in group.walk():
            if isinstance(node, zcore.ZcoreError):
                raise node
    return None


def remains(store, format):
    """Raise AssertionError if something of a dead array shows: beyond the shape, or where an array was."""
    report = zcore.verify(store) if format != "zmeta" or found(store) else None
    assert report is None or not report.problems, report
    if at_x := dict(found(store)).get("x"):
        array = zcore.open_array(store, "r+", path="x")
        n = len(at_x.values)
        array.resize(n + 3 * at_x.chunk)
        values = array[...].tolist()
        assert values[:n] == list(at_x.values) and set(values[n:]) == {at_x.fill}, (at_x, values)
        array[:1] = 5
        assert array[:1].tolist() == [5]
    else:
        array = zcore.create_array(store, name="x", shape=40, dtype="i4", fill_value=-77, **keywords(format))
        assert set(array[...].tolist()) == {-77} and not array.attrs.asdict(), array[...]


