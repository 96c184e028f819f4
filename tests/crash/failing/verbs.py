"""What is called while calls of the system fail: every verb that writes, and some that read.

Each verb has a folder of its own. `make` fills it; then `call` is made with the folder and a dict, in which it keeps
the handles that it opens: they are used again after a failure.
"""
import os
from collections import namedtuple

import numpy as np

import zcore

# `is_whole`: there is the old state or the new one. Otherwise each object is old or new, or each node.
# `twice`: what a second call raises, if it may raise something; `changes`: a second call changes the state once more.
# `safety`: whether a failure may leave a file that cannot be read. `may_vanish`: what is replaced may be gone.
Verb = namedtuple("Verb", ("make", "call", "is_whole", "twice", "changes", "safety", "may_vanish"))
# SAFE: it never does. MENDED: it may, if the disk is gone and nothing can be cleaned up. UNSAFE: it may.
SAFE, MENDED, UNSAFE = range(3)
VERBS = {}
FORMATS = {"v3": {"zarr_format": 3}, "v2": {"zarr_format": 2}, "zmeta": {"zarr_format": "zmeta"},
           "shards": {"zarr_format": 3, "shards": (8, 8)}}
VALUES = np.arange(128.0).reshape(16, 8)


def verb(name, make, call, *, is_whole=True, twice=(), changes=False, safety=SAFE, may_vanish=False):
    assert name not in VERBS
    VERBS[name] = Verb(make, call, is_whole, twice, changes, safety, may_vanish)


def new(path, zarr_format=3, shards=None, **options):
    """Create an array of 16 by 8 elements in chunks of 4 by 8."""
    given = {"shape": (16, 8), "dtype": "f8", "fill_value": -1, "attributes": {"old": 1}, **options}
    if "data" in given:
        del given["shape"], given["dtype"]
    if shards is not None:
        given["shards"] = shards
    if zarr_format != "zmeta":
        given.setdefault("compressors", zcore.codecs.BloscCodec(cname="lz4", shuffle="shuffle"))
    return zcore.create_array(path, chunks=(4, 8), zarr_format=zarr_format, **given)


def opened(kept, path, **options):
    """Return a handle for writing, which was opened by an earlier call if there was one."""
    if path not in kept:
        kept[path] = zcore.open(path, mode="r+", **options)
    return kept[path]


def nothing(base):
    """Make no file."""


def _stream(array):
    writer = array.writer()
    try:
        for _ in range(3):
            writer.append(np.ones(8))
        writer.close()
    finally:
        writer.abort()


def _tiles(array):
    writer = array.writer()
    try:
        for i in range(0, 8, 2):
            writer.write(slice(i, i + 2), 700 + VALUES[i:i + 2])
        writer.close()
    finally:
        writer.abort()


def _array_verbs(kind, options):
    """Every change of an array, in one format."""
    def make(base):
        new(base + "/x", data=VALUES, **options)

    def on(change, **how):
        return lambda base, kept: change(opened(kept, base + "/x", **how))

    def add(name, call, make=make, **facts):
        verb(f"{kind}: {name}", make, call, **facts)

    add("read", on(lambda a: a[...]))
    add("write", on(lambda a: a.__setitem__(..., 500 + VALUES)), is_whole=False)
    add("write and sync", on(lambda a: a.__setitem__(..., 500 + VALUES), fsync=True), is_whole=False)
    add("merge", on(lambda a: a.__setitem__((slice(2, 7), 1), 600)), is_whole=False)
    add("erase", on(lambda a: a.__setitem__(..., -1)), is_whole=False)
    add("shrink", on(lambda a: a.resize((5, 3))))
    add("grow", on(lambda a: a.resize((20, 9))))
    add("append", on(lambda a: a.append(np.ones((3, 8)))), changes=True)
    add("append by a writer", on(_stream), changes=True)
    add("tiles by a writer", on(_tiles), is_whole=False)
    add("attributes", on(lambda a: a.attrs.__setitem__("new", 2)))
    add("create", lambda base, kept: new(base + "/y", **options), twice=zcore.NodeExistsError)
    add("create with data", lambda base, kept: new(base + "/y", data=VALUES, **options), twice=zcore.NodeExistsError)
    add("overwrite", lambda base, kept: new(base + "/x", data=2 * VALUES, attributes={"new": 2}, overwrite=True,
                                            **options))
    add("overwrite and sync", lambda base, kept: new(base + "/x", data=2 * VALUES, attributes={"new": 2}, fsync=True,
                                                     overwrite=True, **options))


def _group_verbs(kind, zarr_format):
    """Every change of a group."""
    def make(base):
        group = zcore.create_group(base + "/g", zarr_format=zarr_format, attributes={"old": 1})
        for name in ("a", "b/c", "b/d"):
            group.create_array(name, data=VALUES, chunks=(4, 8), attributes={"old": 1})

    def make_consolidated(base):
        make(base)
        zcore.consolidate_metadata(base + "/g")

    def group(base, kept):
        if "g" not in kept:
            kept["g"] = zcore.open_group(base + "/g", mode="r+", zarr_format=zarr_format)
        return kept["g"]

    def add(name, call, make=make, **facts):
        verb(f"{kind}: {name}", make, call, **facts)

    def on(change):
        return lambda base, kept: change(group(base, kept))

    add("members", on(lambda g: list(g.members(None))))
    add("new group", lambda base, kept: zcore.create_group(base + "/g", path="n/m", zarr_format=zarr_format),
        twice=zcore.NodeExistsError, is_whole=False)
    add("new member", on(lambda g: g.create_array("n/m", data=VALUES, chunks=(4, 8))), twice=zcore.NodeExistsError,
        is_whole=False)
    add("require", on(lambda g: (g.require_group("n"), g.require_array("b/e", shape=4, dtype="i4"))), is_whole=False)
    add("attributes", on(lambda g: g.attrs.__setitem__("new", 2)), make_consolidated)
    add("assign", on(lambda g: g.__setitem__("a", 2 * VALUES)))
    add("delete an array", on(lambda g: g.__delitem__("a")), make_consolidated, twice=zcore.NodeNotFoundError)
    add("delete a group", on(lambda g: g.__delitem__("b")), make_consolidated, twice=zcore.NodeNotFoundError)
    add("move", on(lambda g: g.move("b", "z")), make_consolidated,
        twice=(zcore.NodeNotFoundError, zcore.NodeExistsError))
    add("consolidate", lambda base, kept: zcore.consolidate_metadata(base + "/g"))
    add("overwrite", lambda base, kept: zcore.create_group(base + "/g", zarr_format=zarr_format, overwrite=True,
                                                           attributes={"new": 2}), make_consolidated)
    add("hierarchy", lambda base, kept: zcore.save_group(base + "/s", zarr_format=zarr_format, overwrite=True,
                                                          a=VALUES, b=2 * VALUES), is_whole=False)
    add("hierarchy over a group", lambda base, kept: zcore.save_group(base + "/g", zarr_format=zarr_format,
                                                                      overwrite=True, a=VALUES, b=2 * VALUES))


def damage(base):
    """Make a group with left-overs, files that belong to no node, and damaged objects."""
    group = zcore.create_group(base + "/g")
    group.create_array("a", data=VALUES, chunks=(4, 8))
    group.create_array("b", data=VALUES, chunks=(4, 8))
    zcore.consolidate_metadata(base + "/g")
    for place in (f"a/{'.__zc_tmp.' + '0' * 24}", "a/c/9/9", "b/README", "stray/file"):
        path = f"{base}/g/{place}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"left")
        os.utime(path, (1e9, 1e9))
    with open(base + "/g/b/c/1/0", "wb") as file:
        file.write(b"damaged")


def repair(base, kept):
    report = zcore.verify(base + "/g", repair=("left-over", "foreign", "damaged", "truncated", "stale copy"))
    # What cannot be looked at is told in the report.
    wrong = [problem for problem in report.problems if problem.kind == "unreachable"]
    if wrong:
        raise zcore.StoreError(str(wrong))


ENDINGS = ("zip", "npy", "npz", "h5", "asdf")


def _copy_verbs():
    """Copies to every kind of destination."""
    def make_array(base):
        new(base + "/x", data=VALUES)

    def make_group(base):
        group = zcore.create_group(base + "/g", attributes={"old": 1})
        group.create_array("a", data=VALUES, chunks=(4, 8), attributes={"old": 1})
        group.create_array("b/c", data=2 * VALUES, chunks=(4, 8))

    def add(name, make, source, destination, **options):
        def make_both(base):
            make(base)
            if options.get("overwrite"):
                zcore.copy(zcore.array(np.full(3, 7.0)), base + destination)

        verb(name, make_both, lambda base, kept: zcore.copy(base + source, base + destination, **options),
             twice=() if options.get("overwrite") else (zcore.NodeExistsError,))

    add("copy: objects", make_array, "/x", "/y")
    add("copy: elements", make_array, "/x", "/y", chunks=(16, 3))
    add("copy: in passes", make_array, "/x", "/y", chunks=(16, 1), memory=600)
    add("copy: to v2", make_array, "/x", "/y", zarr_format=2)
    add("copy: to shards", make_array, "/x", "/y", shards=(8, 8))
    add("copy: replacing", make_array, "/x", "/y", chunks=(5, 8), overwrite=True)
    add("copy: group", make_group, "/g", "/y", chunks=(3, 8))
    add("copy: group, replacing", make_group, "/g", "/y", overwrite=True)
    for ending in ENDINGS:
        add(f"copy to a file: array to {ending}", make_array, "/x", f"/y.{ending}")
        add(f"copy to a file: array to {ending}, replacing", make_array, "/x", f"/y.{ending}", overwrite=True)
        if ending != "npy":
            add(f"copy to a file: group to {ending}", make_group, "/g", f"/y.{ending}")

    def to_memory(base, kept):
        kept.setdefault("store", zcore.MemoryStore())
        return zcore.copy(base + "/g", kept["store"], chunks=(3, 8))

    verb("copy: group to memory", make_group, to_memory, twice=zcore.NodeExistsError)
    for ending in ENDINGS:
        def make_file(base, ending=ending):
            zcore.copy(zcore.array(VALUES), f"{base}/y.{ending}")

        verb(f"copy from a file: {ending}", make_file,
             lambda base, kept, ending=ending: zcore.copy(f"{base}/y.{ending}", base + "/z"),
             twice=zcore.NodeExistsError)


def _file_verbs():
    """Zip archives, reference sets, and a directory as a store of values."""
    def write_zip(base, kept):
        with zcore.ZipStore(base + "/y.zip", mode="w") as store:
            group = zcore.create_group(store)
            group.create_array("a", data=VALUES, chunks=(4, 8))

    def make_raw(base):
        # Rows of a chunk that are long enough to be read into place.
        zcore.create_array(base + "/x", data=np.arange(8 * 256.0).reshape(8, 256), chunks=(4, 128), compressors=None,
                           checksum=False)

    def make_old_zip(base):
        with zcore.ZipStore(base + "/y.zip", mode="w") as store:
            new(store, data=VALUES)

    def write_zip_once(base, kept):
        with zcore.ZipStore(base + "/y.zip", mode="x") as store:
            new(store, data=VALUES)

    verb("zip: write", nothing, write_zip)
    verb("zip: replace", make_old_zip, write_zip)
    verb("zip: write once", nothing, write_zip_once, twice=(zcore.NodeExistsError, zcore.StoreError))
    verb("raw: read", make_raw, lambda base, kept: opened(kept, base + "/x")[...])
    verb("zip: read", make_old_zip, lambda base, kept: zcore.open(base + "/y.zip")[...])

    def make_source(base):
        new(base + "/x", data=VALUES)

    verb("references: make", make_source, lambda base, kept: zcore.references(base + "/x").save(base + "/r.json"))

    def make_references(base):
        make_source(base)
        zcore.references(base + "/x").save(base + "/r.json")

    def change_references(base, kept):
        store = zcore.ReferenceStore(base + "/r.json", read_only=False)
        store.set("zarr.json", store.get("zarr.json").replace(b'"old"', b'"new"'))
        store.save(base + "/r.json")

    verb("references: change", make_references, change_references)
    verb("references: read", make_references,
         lambda base, kept: zcore.open(zcore.ReferenceStore(base + "/r.json"))[...])

    def make_values(base):
        store = zcore.DirectoryStore(base + "/s.values")
        store.set("a/b", b"old")
        store.set("a/c", b"kept")

    def on(change, **options):
        return lambda base, kept: change(
            kept.setdefault("s", zcore.DirectoryStore(base + "/s.values", **options)))

    verb("store: set", make_values, on(lambda s: s.set("a/b", b"new")))
    verb("store: set and sync", make_values, on(lambda s: s.set("n/m/o", b"new"), fsync=True))
    verb("store: set once", make_values, on(lambda s: s.set_if_not_exists("a/d", b"new")))
    verb("store: set parts", make_values, on(lambda s: s.set_partial_values([("a/b", 1, b"ew")])))
    verb("store: erase", make_values, on(lambda s: s.erase("a/b")))
    verb("store: erase and sync", make_values, on(lambda s: s.erase("a/b"), fsync=True))
    verb("store: erase all", make_values, on(lambda s: s.erase_prefix("a/")), is_whole=False)
    verb("store: move", make_values, on(lambda s: s.move("a/", "z/")), twice=zcore.ZcoreError)
    verb("store: confined set", make_values, on(lambda s: s.set("a/b", b"new"), confined=True))


def _asdf_verbs():
    tree = {"a": VALUES, "b": np.arange(5)}

    def make(base):
        zcore.asdf.write(base + "/y.asdf", {"a": VALUES, "b": np.arange(9)})

    def make_streamed(base):
        with zcore.asdf.stream(base + "/y.asdf", {"rows": zcore.asdf.Stream((3,), "<i2")}) as rows:
            rows.append([[1, 2, 3]])

    def make_exploded(base):
        make(base)
        zcore.asdf.explode(base + "/y.asdf")
        os.unlink(base + "/y.asdf")

    def update(base, kept, **options):
        with zcore.asdf.open(base + "/y.asdf", "rw") as file:
            file.tree["b"] = np.arange(5)
            file.update(**options)

    def append_block(base, kept):
        with zcore.asdf.open(base + "/y.asdf", "rw") as file:
            file.append_block(b"more")

    def append_rows(base, kept):
        with zcore.asdf.stream(base + "/y.asdf") as rows:
            rows.append([[4, 5, 6], [7, 8, 9]])
            rows.flush()

    def make_cut(base):
        make_streamed(base)
        with open(base + "/y.asdf", "ab") as file:
            file.write(b"a")     # a part of a row

    def new_stream(base, kept):
        zcore.asdf.stream(base + "/y.asdf", {"rows": zcore.asdf.Stream((3,), "<i2")}).close()

    def read(base, kept):
        with zcore.asdf.open(base + "/y.asdf") as file:
            file.blocks[1].memmap()
            return file.tree["a"].read()

    verb("asdf: read", make, read)
    verb("asdf: write", nothing, lambda base, kept: zcore.asdf.write(base + "/y.asdf", tree))
    verb("asdf: replace", make, lambda base, kept: zcore.asdf.write(base + "/y.asdf", tree, compression="zlib"))
    verb("asdf: replace and sync", make, lambda base, kept: zcore.asdf.write(base + "/y.asdf", tree, fsync=True))
    verb("asdf: update", make, update)
    verb("asdf: update in place", make, lambda base, kept: update(base, kept, in_place=True), safety=UNSAFE)
    verb("asdf: append a block", make, append_block, changes=True, safety=MENDED)
    verb("asdf: stream", nothing, new_stream)
    verb("asdf: replace by a stream", make, new_stream)
    verb("asdf: append rows", make_streamed, append_rows, changes=True)
    verb("asdf: append rows after a kill", make_cut, append_rows, changes=True)
    verb("asdf: explode", make, lambda base, kept: zcore.asdf.explode(base + "/y.asdf", overwrite=True), is_whole=False)
    verb("asdf: implode", make_exploded, lambda base, kept: zcore.asdf.implode(
        base + "/y_exploded.asdf", base + "/z.asdf", overwrite=True))
    verb("asdf: defragment", make, lambda base, kept: zcore.asdf.defragment(base + "/y.asdf"))


for _kind, _options in FORMATS.items():
    _array_verbs(_kind, _options)
_group_verbs("group", 3)
_group_verbs("group v2", 2)
verb("verify", lambda base: zcore.create_group(base + "/g").create_array("a", data=VALUES, chunks=(4, 8)),
     lambda base, kept: zcore.verify(base + "/g"))
verb("verify: repair", damage, repair, is_whole=False, safety=UNSAFE)
_copy_verbs()
_file_verbs()
_asdf_verbs()
