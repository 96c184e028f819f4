"""What notebooks do with zarr-python, as `import zcore as zarr` does it: tutorials of zarr-python, OME-Zarr, Pangeo,
sgkit and anndata, each in a few lines of our own.

A snippet returns plain values, and zarr-python must return the same ones.
"""
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zcore

SNIPPETS = {}
# Those of zarr-python 2 that do not run: the error, and words of it. Objects of any kind are not stored; a compressor
# is one of `compressors=`; `zarr.copy` copies all below a group; writers lock by themselves; `zarr.open` has `cache=`.
DO_NOT_RUN = {
    "object_codec": (TypeError, "object_codec"),
    "compressor_of_numcodecs": (TypeError, "compressors="),
    "copy_store": (AttributeError, "copy_store"),
    "synchronizer": (AttributeError, "ThreadSynchronizer"),
    "lru_cache": (AttributeError, "LRUStoreCache"),
}


def snippet(function):
    SNIPPETS[function.__name__] = function
    return function


def cube(zarr, store="a.zarr", **keywords):
    return zarr.create_array(store, data=np.arange(60).reshape(5, 4, 3), chunks=(2, 2, 3), **keywords)


# zarr-python: first steps

@snippet
def first_array(zarr):
    z = zarr.create_array(store="a.zarr", shape=(100, 100), chunks=(10, 10), dtype="f4", overwrite=True)
    z[:, 0] = np.arange(100)
    return z[3, 0] == 3, zarr.open("a.zarr", mode="r")[:].sum(), z.shape, z.chunks


@snippet
def blosc_with_bits_shuffled(zarr):
    codec = zarr.codecs.BloscCodec(cname="zstd", clevel=3, shuffle=zarr.codecs.BloscShuffle.bitshuffle)
    return zarr.create_array({}, data=np.arange(1000), chunks=(100,), compressors=codec)[500:503]


@snippet
def open_with_mode_w(zarr):
    z = zarr.open("b.zarr", mode="w", shape=(6, 6), chunks=(3, 3), dtype="i4")
    z[:] = 42
    z[2:4] = np.arange(12).reshape(2, 6)
    return zarr.open("b.zarr", mode="r")[1:3]


@snippet
def hierarchy(zarr):
    root = zarr.group(store="g.zarr")
    image = root.create_group("raw").create_array("image", shape=(8, 8), chunks=(4, 4), dtype="u1")
    image[2:4] = 1
    return root["raw/image"][:].sum(), "raw" in root, "none" in root, sorted(root["raw"].array_keys())


@snippet
def archive(zarr):
    store = zarr.storage.ZipStore("a.zip", mode="w")
    zarr.create_array(store=store, data=np.arange(9).reshape(3, 3), chunks=(2, 2))
    store.close()
    return zarr.open_array(zarr.storage.ZipStore("a.zip", read_only=True), mode="r")[1]


@snippet
def attributes(zarr):
    z = cube(zarr)
    z.attrs["units"] = "kelvin"
    z.attrs.update({"scale": 0.5, "levels": [1, 2]})
    del z.attrs["scale"]
    return sorted(zarr.open_array("a.zarr", mode="r").attrs.items()), "units" in z.attrs, len(z.attrs)


@snippet
def resize_and_append(zarr):
    z = zarr.zeros((4, 4), chunks=(2, 2), dtype="i4")
    z.resize((6, 4))
    z.append(np.ones((2, 4), "i4"))
    return z.shape, z[5:, 0]


@snippet
def kinds_of_selection(zarr):
    z = cube(zarr)
    return (z.oindex[[0, 3], :, [1]], z.vindex[[0, 3], [1, 2], [0, 0]], z.blocks[1, 0],
            z.get_mask_selection(z[:] % 7 == 0), z.get_orthogonal_selection(([1], slice(None), 0)))


@snippet
def kinds_of_assignment(zarr):
    z = cube(zarr)
    z.oindex[[0, 3], 0] = -1
    z.vindex[[1, 2], [1, 1], [2, 0]] = [-5, -6]
    z.set_mask_selection(z[:] > 50, 0)
    return z[:]


@snippet
def structures(zarr):
    table = np.array([(1, 2.5), (3, 4.5)], dtype=[("id", "<i4"), ("value", "<f8")])
    z = zarr.create_array({}, data=table, chunks=(1,))
    return z[:]["id"], z[:]["value"].max()


@snippet
def text(zarr):
    z = zarr.create_array({}, shape=(3,), chunks=(2,), dtype=str)
    z[:] = np.array(["a", "Hello, 世界", ""])
    return [str(word) for word in z[:]]


@snippet
def dates(zarr):
    z = zarr.create_array({}, data=np.array(["2007-07-13", "2006-01-13"], dtype="M8[D]"), chunks=(1,))
    return z[:].max() == np.datetime64("2007-07-13"), str(z.dtype)


@snippet
def shards(zarr):
    z = zarr.create_array("s.zarr", shape=(40, 40), shards=(20, 20), chunks=(5, 5), dtype="u2")
    z[:] = 7
    return z.shards, z.chunks, z[19:21, 0]


@snippet
def consolidated(zarr):
    root = zarr.create_group("c.zarr")
    root.create_array("x/y", shape=(4,), dtype="i4")
    zarr.consolidate_metadata("c.zarr")
    found = zarr.open_consolidated("c.zarr")
    return "x" in found.metadata.consolidated_metadata.metadata, found["x/y"].shape


@snippet
def saved(zarr):
    zarr.save("one.zarr", np.arange(4))
    zarr.save_group("two.zarr", x=np.arange(3), y=np.ones(2))
    return zarr.load("one.zarr"), zarr.load("two.zarr", path="x")


@snippet
def dict_as_store(zarr):
    store = {}
    zarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4", compressors=None)[:2] = 1
    return sorted(store)


@snippet
def printed(zarr):
    g = zarr.open_group("g.zarr", mode="w")
    g.create_array("x", shape=(3,), dtype="f8")
    return "float64" in str(g.tree()), len(str(g["x"].info)) > 50, len(str(g.info_complete())) > 20


@snippet
def empty_chunks(zarr):
    with zarr.config.set({"array.write_empty_chunks": True}):
        kept = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4")
    left_out = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="i4", config={"write_empty_chunks": False})
    kept[:] = left_out[:] = 0
    return kept.nchunks_initialized, left_out.nchunks_initialized


@snippet
def threads_for_all(zarr):
    with zarr.config.set({"threading.max_workers": 2}):
        return cube(zarr)[:].sum()


@snippet
def missing_values(zarr):
    z = zarr.create_array({}, shape=(4,), chunks=(2,), dtype="f8", fill_value=np.nan)
    z[0] = 1
    return np.isnan(z[:]).sum(), np.nanmean(z[:])


@snippet
def walk_over_chunks(zarr):
    z = cube(zarr)
    return [z.blocks[i].sum() for i in range(z.cdata_shape[0])], z.nchunks, z.nchunks_initialized


@snippet
def walk_over_members(zarr):
    g = zarr.group()
    g.create_array("a/b", shape=(2,), dtype="i4")
    g.create_array("c", shape=(3,), dtype="i4")
    return ([name for name, _ in g.groups()], [name for name, z in g.arrays() if z.shape == (3,)],
            sorted(path for path, _ in g.members(max_depth=None)), g.nmembers())


@snippet
def delete_and_replace(zarr):
    g = zarr.open_group("g.zarr", mode="a")
    g["x"] = np.arange(3)
    g.create_array("x", data=np.ones(2), overwrite=True)
    g.create_group("y")
    del g["y"]
    return g["x"][:], list(g)


@snippet
def errors(zarr):
    found = []
    cube(zarr)
    for call, error in ((lambda: cube(zarr), zarr.errors.ContainsArrayError),
                        (lambda: zarr.open_group("none.zarr", mode="r"), FileNotFoundError),
                        (lambda: zarr.open_array("none.zarr", mode="r"), FileNotFoundError),
                        (lambda: zarr.open_array("a.zarr", mode="r")[9], IndexError),
                        (lambda: zarr.group()["none"], KeyError)):
        try:
            call()
        except error:
            found.append(True)
    return found


@snippet
def writers_in_threads(zarr):
    z = zarr.create_array("p.zarr", shape=(8, 4), chunks=(2, 4), dtype="i4")

    def fill(i):
        z[2 * i:2 * i + 2] = i

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(4)))
    return z[:, 0]


@snippet
def like_others(zarr):
    z = cube(zarr)
    return (zarr.zeros_like(z)[0], zarr.full_like(z, fill_value=3).chunks, zarr.ones((2, 2), dtype="i4")[:],
            zarr.from_array({}, data=z, chunks=(5, 4, 3))[4])


@snippet
def numcodecs_filters(zarr):
    from zarr.codecs import numcodecs as theirs

    numcodecs = theirs if zarr.__name__ == "zarr" else zarr.codecs.numcodecs
    z = zarr.create_array({}, data=np.arange(50, dtype="<i4"), chunks=(10,), filters=[numcodecs.Delta(dtype="<i4")])
    return z[40:45]


@snippet
def format_2(zarr):
    z = zarr.create_array("v2.zarr", shape=(4, 4), chunks=(2, 2), dtype="<i4", zarr_format=2, fill_value=7,
                          order="F", compressors=None, chunk_key_encoding={"name": "v2", "separator": "/"})
    z[0] = 1
    return z[:, 0], z.metadata.to_dict()["order"], z.fill_value


# OME-Zarr

@snippet
def ome_pyramid(zarr):
    root = zarr.open_group("image.ome.zarr", mode="w")
    level = np.arange(64, dtype="u2").reshape(1, 8, 8)
    for i in range(3):
        root.create_array(str(i), data=level, chunks=(1, 4, 4), dimension_names=["c", "y", "x"])
        level = level[:, ::2, ::2]
    root.attrs["ome"] = {"version": "0.5", "multiscales": [{"datasets": [{"path": str(i)} for i in range(3)]}]}
    found = zarr.open_group("image.ome.zarr", mode="r")
    paths = [entry["path"] for entry in found.attrs["ome"]["multiscales"][0]["datasets"]]
    return [found[path].shape for path in paths], found["2"][0], found["0"].metadata.dimension_names


@snippet
def ome_plate(zarr):
    plate = zarr.open_group("plate.zarr", mode="w", zarr_format=2)
    for row in "AB":
        well = plate.require_group(f"{row}/1")
        well.attrs["well"] = {"images": [{"path": "0"}]}
        well.create_array("0/0", shape=(4, 4), chunks=(2, 2), dtype="u1", fill_value=0)[:] = ord(row)
    return {row: int(plate[f"{row}/1/0/0"][:].max()) for row in plate.group_keys()}


@snippet
def ome_labels(zarr):
    labels = zarr.open_group("image.zarr", mode="a").require_group("labels")
    z = labels.create_array("cells", shape=(6, 6), chunks=(3, 3), dtype="i4",
                            attributes={"image-label": {"version": "0.5"}})
    z[1:3, 1:3] = 1
    z[4:, 4:] = 2
    return np.unique(z[:], return_counts=True)[1], dict(z.attrs)["image-label"]["version"]


@snippet
def projection_by_dask(zarr):
    da = pytest.importorskip("dask.array")
    return da.from_array(cube(zarr), chunks=(2, 4, 3)).max(axis=0).compute(scheduler="threads")


# Pangeo

@snippet
def look_into_a_dataset(zarr):
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    dataset = xr.Dataset({"t2m": (("time", "x"), np.arange(6.0).reshape(3, 2))})
    dataset.to_zarr("ds.zarr", zarr_format=2, consolidated=True)
    g = zarr.open_consolidated("ds.zarr", mode="r")
    return g["t2m"].attrs["_ARRAY_DIMENSIONS"], g["t2m"][1:], sorted(g.array_keys())


@snippet
def filesystem_of_fsspec(zarr):
    fsspec = pytest.importorskip("fsspec")
    fs = fsspec.filesystem("memory", skip_instance_cache=True)
    files = fsspec.implementations.memory.MemoryFileSystem
    files.store.clear()
    store = (zarr.storage.FsspecStore(fs, path="/bucket/x") if zarr is zcore
             else zarr.storage.FsspecStore.from_url("memory://bucket/x"))
    zarr.create_array(store, data=np.arange(4), chunks=(2,))
    return zarr.open_array(store, mode="r")[1:]


@snippet
def options_of_a_url(zarr):
    pytest.importorskip("fsspec")
    url, options = f"local://{os.getcwd()}/y", {"auto_mkdir": True}
    zarr.create_array(url, data=np.arange(4), storage_options=options)
    return zarr.open(url, mode="r", storage_options=options)[:]


@snippet
def append_in_time(zarr):
    g = zarr.open_group("t.zarr", mode="w")
    z = g.create_array("t2m", shape=(0, 3), chunks=(2, 3), dtype="f4", dimension_names=["time", "x"])
    for day in range(3):
        z.resize((day + 1, 3))
        z[day] = day
    return zarr.open_group("t.zarr", mode="r")["t2m"][:]


# sgkit

@snippet
def allele_counts(zarr):
    calls = zarr.create_array("vcf.zarr", name="call_genotype", shape=(6, 3, 2), chunks=(2, 3, 2), dtype="i1",
                              fill_value=-1)
    calls[:4] = np.arange(24).reshape(4, 3, 2) % 3 - 1
    return np.concatenate([[(calls.blocks[i] == 1).sum(axis=(1, 2))] for i in range(calls.cdata_shape[0])], axis=1)


@snippet
def chosen_variants(zarr):
    g = zarr.group()
    position = g.create_array("variant_position", data=np.array([5, 90, 200, 310]), chunks=(2,))
    alleles = g.create_array("variant_allele", data=np.array([["A", "T"]] * 3 + [["G", "C"]]), chunks=(2, 2))
    chosen = np.flatnonzero(position[:] > 100)
    return [str(allele) for allele in alleles.oindex[chosen, 0]], int(position[-1])


# anndata

@snippet
def sparse_rows(zarr):
    x = zarr.open_group("x.zarr", mode="w", attributes={"encoding-type": "csr_matrix", "shape": [3, 4]})
    for name, values in (("data", [1.0, 2.0, 3.0]), ("indices", [0, 2, 1]), ("indptr", [0, 2, 2, 3])):
        x.create_array(name, data=np.array(values), chunks=(2,))
    start, stop = x["indptr"][0:2]
    return x["indices"][start:stop], x["data"][start:stop], x.attrs["shape"]


@snippet
def categories(zarr):
    obs = zarr.group().create_group("obs", attributes={"_index": "cell", "column-order": ["kind"]})
    kind = obs.create_group("kind")
    kind.create_array("codes", data=np.array([1, 0, 1], "i1"))
    kind.create_array("categories", shape=(2,), dtype=str)[:] = np.array(["B", "T"])
    return [str(kind["categories"][:][code]) for code in kind["codes"][:]], obs.attrs["column-order"]


# Programs for zarr-python 2

@snippet
def object_codec(zarr):
    numcodecs = pytest.importorskip("numcodecs")
    return zarr.create_array({}, shape=(2,), dtype=object, object_codec=numcodecs.JSON())


@snippet
def compressor_of_numcodecs(zarr):
    numcodecs = pytest.importorskip("numcodecs")
    return zarr.create_array({}, data=np.arange(4), zarr_format=2, compressor=numcodecs.Blosc())


@snippet
def copy_store(zarr):
    return zarr.copy_store({}, {})


@snippet
def synchronizer(zarr):
    return zarr.ThreadSynchronizer()


@snippet
def lru_cache(zarr):
    return zarr.LRUStoreCache({}, max_size=2**20)


def plain(value):
    """Return a value with arrays as lists, so that two can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize("name", [name for name in SNIPPETS if name not in DO_NOT_RUN])
@pytest.mark.filterwarnings("ignore")
def test_snippet_does_what_it_does_with_zarr_python(name, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    mine = plain(SNIPPETS[name](zcore))
    zarr = pytest.importorskip("zarr", minversion="3.1")
    (tmp_path / "theirs").mkdir()
    monkeypatch.chdir(tmp_path / "theirs")
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        assert mine == plain(SNIPPETS[name](zarr))


@pytest.mark.parametrize("name", DO_NOT_RUN)
def test_snippet_says_why_it_does_not_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error, words = DO_NOT_RUN[name]
    with pytest.raises(error, match=words):
        SNIPPETS[name](zcore)


def test_most_snippets_run():
    assert len(SNIPPETS) >= 41 and len(SNIPPETS) - len(DO_NOT_RUN) >= 36 / 41 * len(SNIPPETS)
