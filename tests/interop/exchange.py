"""Arrays that one machine writes and another one reads, whatever the byte order and the size of the words of each.

    python -m tests.interop.exchange write FOLDER
    python -m tests.interop.exchange read FOLDER

Both make the same elements of the same seeds, so the folder holds what zcore has written, and nothing else.
`.ci/machines.py` runs one on this machine, and the other one on another.
"""
import itertools
import sys
from pathlib import Path

import numpy as np

import zcore
import zcore.asdf
from tests.interop.zarr_peers import cases

_SHAPE = (7, 10)
# One array of so many is verified, and read from an archive and a reference set, too: emulators are slow.
_SOME = 4
_TYPES = ("?", "i1", "<i2", ">i4", "<i8", "u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8", ">c8", "<c16", "S5", ">U3")
_NESTED = {"name": "sharding_indexed", "configuration": {
    "chunk_shape": [4, 4], "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, zcore.codecs.ZstdCodec()],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}


def _elements(dtype, shape, seed):
    """Return elements whose bytes are those of a little-endian machine, in the type itself."""
    if dtype is str:
        return cases.elements(np.dtypes.StringDType(), shape, seed)
    dtype = np.dtype(dtype)
    return cases.elements(dtype.newbyteorder("<"), shape, seed).astype(dtype)


def arrays():
    """Yield (name, keywords of `zcore.create_array`, elements)."""
    for form, count in ((3, 180), (2, 80)):
        for i, case in enumerate(cases.sample(form, count, seed=form)):
            keywords = case.keywords()
            yield f"v{form}-{i}", keywords, _elements(keywords["dtype"], keywords["shape"], i)
    for i, (dtype, cname, shuffle) in enumerate(itertools.product(_TYPES, ("lz4", "zlib"), (0, 1, 2))):
        codec = zcore.codecs.BloscCodec(cname=cname, clevel=5, shuffle=shuffle)
        yield (f"zmeta-{i}", {"shape": _SHAPE, "chunks": (2, 4), "dtype": dtype, "zarr_format": "zmeta",
                              "compressors": codec}, _elements(dtype, _SHAPE, i))
    for i, padding in enumerate(("none", "first_byte", "last_byte")):
        packed = {"name": "packbits", "configuration": {"padding_encoding": padding}}
        yield (f"packbits-{padding}", {"shape": _SHAPE, "chunks": (2, 4), "dtype": "?", "serializer": packed},
               _elements("?", _SHAPE, i))
    for i, dtype in enumerate(_TYPES):
        yield (f"nested-{i}", {"shape": (19, 17), "chunks": (16, 16), "dtype": dtype, "codecs": [{
            **_NESTED, "configuration": {**_NESTED["configuration"], "chunk_shape": [8, 8], "codecs": [_NESTED]}}]},
            _elements(dtype, (19, 17), i))
        # Large enough for blocks of blosc, for loops of vectors, and for several threads.
        yield (f"large-{i}", {"shape": (300, 1000), "chunks": (300, 1000), "dtype": dtype, "compressors":
               zcore.codecs.BloscCodec(cname="lz4", clevel=5, shuffle=1 + i % 2)}, _elements(dtype, (300, 1000), i))


def files():
    """Yield (name, keywords of `zcore.asdf.write`, a tree of arrays)."""
    for compression, checksum in itertools.product((None, "zlib", "bzp2", "lz4"), (False, True)):
        yield (f"{compression} {checksum}.asdf", {"compression": compression, "checksum": checksum},
               {f"a{i}": _elements(dtype, _SHAPE, i) for i, dtype in enumerate(_TYPES)})


def write(folder):
    """Make all of them in a folder, and what refers to some of them."""
    for i, (name, keywords, elements) in enumerate(arrays()):
        zcore.create_array(folder / ("others" if i % _SOME else "some"), name=name, **keywords)[...] = elements
    for name, keywords, tree in files():
        zcore.asdf.write(folder / name, tree, **keywords)
    with zcore.ZipStore(folder / "some.zip", mode="w") as store:
        zcore.copy(folder / "some", store)
    zcore.references(folder / "some").save(folder / "some.json")


def read(folder):
    """Return how many arrays there are, and the names of those that are not what was written."""
    n_read, wrong = 0, []

    def compare(name, found, elements):
        nonlocal n_read
        n_read += 1
        if not cases.same(np.asarray(found), elements):
            wrong.append(name)

    others = {"directory": zcore.DirectoryStore(folder / "others")}
    some = {"directory": zcore.DirectoryStore(folder / "some"), "zip": zcore.ZipStore(folder / "some.zip"),
            "references": zcore.ReferenceStore(folder / "some.json")}
    for i, (name, _, elements) in enumerate(arrays()):
        for kind, store in (others if i % _SOME else some).items():
            compare(f"{kind}: {name}", zcore.open(store, path=name)[...], elements)
    report = zcore.verify(folder / "some")
    if not report.ok:
        wrong.append(str(report))
    for name, _, tree in files():
        with zcore.asdf.open(folder / name, verify=True) as file:
            for member, elements in tree.items():
                compare(f"{name}/{member}", file.tree[member].read(), elements)
    return n_read, wrong


def main(what, folder):
    if what == "write":
        write(Path(folder))
        return 0
    n_read, wrong = read(Path(folder))
    print(f"{n_read} arrays, {len(wrong)} wrong", *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
