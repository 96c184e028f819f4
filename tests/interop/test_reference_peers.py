"""Reference sets by zcore and by fsspec, read by zcore and by zarr-python: the same values, but for what is named here.

Each deviation has a test of its own, that shows both sides: so it is known when fsspec comes to do the same.
"""
import json
import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zcore
from tests.examples import examples
from zcore.codecs import BloscCodec, GzipCodec, ZstdCodec
from zcore.errors import ReferenceFormatError, ReferenceTargetError
from zcore.stores.reference.store import ReferenceStore

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ReferenceFileSystem = pytest.importorskip("fsspec.implementations.reference").ReferenceFileSystem
    pytest.importorskip("jinja2")


def peer(document, **options):
    """fsspec's file system of a document, which it changes while it reads it."""
    return ReferenceFileSystem(json.loads(json.dumps(document)), simple_templates=False, skip_instance_cache=True,
                               **options)


def values_of(file_system):
    return {key: file_system.cat(key) for key in file_system.references}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("targets")
    for i in range(3):
        (folder / f"t{i}.bin").write_bytes(bytes(range(100 * i % 256, 100 * i % 256 + 50)) * 4)
    return folder


# Documents that both accept

texts = st.text(st.characters(codec="ascii"), max_size=8).filter(lambda text: not text.startswith("base64:"))
names = st.sampled_from(["a", "b", "a/b", "x/0.0", "x/0.1", "x/.zarray", ".zgroup", "some name"])
data = texts | st.sampled_from(["base64:AAEC", "base64:", "ä", "{{u}}", "{% if %}"]) | st.dictionaries(
    texts, st.integers() | texts | st.none(), max_size=3)
numbers = st.integers(0, 60)
ranges = st.lists(st.integers(0, 5), max_size=3, unique=True) | st.builds(
    lambda start, n, step: {"start": start, "stop": start + n * step, "step": step}, st.integers(0, 3),
    st.integers(0, 3), st.sampled_from([1, 2]))
GENERATED_URLS = ["{{u}}/t{{ (i + j) % 3 }}.bin", "{{f(c='t1')}}", "{{u}}/{{w}}{{ i % 2 }}.bin"]


def extents(urls):
    return st.tuples(urls).map(list) | st.tuples(urls, numbers, st.integers(1, 60)).map(list)


@st.composite
def documents(draw, folder):
    plain = st.sampled_from([f"{folder}/t{i}.bin" for i in range(3)])
    if draw(st.booleans()):
        return draw(st.dictionaries(names, data | extents(plain), max_size=5))
    templated = st.sampled_from([
        "{{u}}/t0.bin", "{{ u }}/t1.bin", "{{f(c='t2')}}", "{{u}}/{{w}}{{ 1 + 1 }}.bin",
        "{{ u ~ '/t' }}{{ 5 // 3 }}.bin", "{{f( c = 't%d' % 1 )}}", "{{u}}/t{{ '%d'|format(2) }}.bin"])
    document = {"version": 1, "templates": {"u": str(folder), "f": str(folder) + "/{{c}}.bin", "w": "t"},
                "refs": draw(st.dictionaries(names, data | extents(plain | templated), max_size=5))}
    gen = []
    for i in range(draw(st.integers(0, 2))):
        item = {"key": draw(st.sampled_from(["g%d/{{i}}.{{j}}", "g%d_{{ '%%03d' %% i }}_{{ j * 2 - 1 }}"])) % i,
                "url": draw(st.sampled_from(GENERATED_URLS)),
                "dimensions": {name: draw(ranges) for name in "ij"}}
        if draw(st.booleans()):
            item["offset"] = draw(st.sampled_from(["{{ i * 5 + j }}", "7", "{{ (i + 1) * (j + 1) }}", "{{ 2 ** i }} "]))
            item["length"] = draw(st.sampled_from(["10", "{{ i + 1 }}", "{{ 9 - j }}"]))
        gen.append(item)
    if gen:
        document["gen"] = gen
    return document


@examples(150)
@given(data=st.data())
def test_every_key_has_the_same_value(folder, data):
    """RF-V0-01, RF-V1-02, RF-V1-03, RF-TPL-02, RF-TPL-03, RF-TPL-06, RF-TPL-08, RF-GEN-02 to RF-GEN-05, RF-GEN-08"""
    document = data.draw(documents(folder))
    theirs = values_of(peer(document))
    store = ReferenceStore(document, allowed=[folder])
    assert set(store.list()) == set(theirs)
    for key, value in theirs.items():
        mine = store.get(key)
        # An object is written with blanks by fsspec.
        assert mine == value or json.loads(mine) == json.loads(value), key
    if all(not isinstance(value, dict) for value in (document.get("refs") or document).values()):
        assert values_of(peer(store.to_v0())) == values_of(peer({"version": 1, "refs": store.to_v0()})) == theirs


def test_a_document_that_zcore_saves(folder, tmp_path):
    """RF-STO-02: fsspec reads it."""
    store = ReferenceStore({"a": "base64:AAEC", "b": [f"{folder}/t1.bin", 3, 4], "c": "text", "d": {"a": 1}},
                           allowed=[folder], read_only=False)
    store.set("e", b"base64:AAEC")
    store.set("f/g", b"\xff\n")
    store.save(tmp_path / "refs.json")
    theirs = values_of(ReferenceFileSystem(str(tmp_path / "refs.json"), skip_instance_cache=True))
    assert theirs == {key: store.get(key) for key in store.list()}


def test_a_set_without_a_place(tmp_path, monkeypatch):
    """RF-GEN-11: fsspec reads absolute URLs wherever the process is."""
    (tmp_path / "t.bin").write_bytes(b"0123456789")
    store = ReferenceStore({"a": ["t.bin", 2, 3]}, base=str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert values_of(peer(store.to_v0(absolute=True))) == {"a": b"234"} == {"a": store.get("a")}


# Deviations

def test_generated_references_are_there(folder):
    """RF-GEN-09: fsspec leaves `gen` out by default."""
    document = {"version": 1, "refs": {"a": "b"}, "templates": {"u": str(folder)}, "gen": [
        {"key": "k{{i}}", "url": "{{u}}/t0.bin", "dimensions": {"i": {"stop": 2}}}]}
    theirs = ReferenceFileSystem(json.loads(json.dumps(document)), skip_instance_cache=True)
    assert set(theirs.references) == {"a"} and set(ReferenceStore(document).list()) == {"a", "k0", "k1"}


def test_short_data_are_an_error(folder):
    """RF-URL-05: fsspec returns what there is."""
    document = {"a": [f"{folder}/t0.bin", 190, 50]}
    assert len(peer(document).cat("a")) == 10
    with pytest.raises(ReferenceTargetError, match="has 200"):
        ReferenceStore(document, allowed=[folder]).get("a")


@pytest.mark.parametrize("extent", [[-5, 3], [0, -3], ["1", 3], [True, 3], [1.0, 3], [1]])
def test_offsets_are_integers_from_0_on(folder, extent):
    """RF-V1-02, RF-V1-04: fsspec takes them when it opens the set, and fails late or reads from the end."""
    document = {"a": [f"{folder}/t0.bin", *extent]}
    try:
        peer(document)
    except Exception as exc:        # whatever it says of two members
        assert len(extent) == 1, exc
    with pytest.raises(ReferenceFormatError):
        ReferenceStore(document, allowed=[folder])


def test_relative_urls_are_relative_to_the_document(folder, tmp_path, monkeypatch):
    """RF-URL-02: fsspec takes the process's directory."""
    (tmp_path / "t0.bin").write_bytes(b"the process's")
    (folder / "relative.json").write_text(json.dumps({"a": ["t0.bin"]}))
    monkeypatch.chdir(tmp_path)
    assert ReferenceFileSystem(str(folder / "relative.json"), skip_instance_cache=True).cat("a") == b"the process's"
    assert ReferenceStore(folder / "relative.json").get("a") == (folder / "t0.bin").read_bytes()


def test_targets_below_the_set_alone(folder, tmp_path):
    """RF-URL-08: fsspec reads whatever the set names."""
    (tmp_path / "refs.json").write_text(json.dumps({"a": [f"{folder}/t0.bin"]}))
    assert len(ReferenceFileSystem(str(tmp_path / "refs.json"), skip_instance_cache=True).cat("a")) == 200
    with pytest.raises(ReferenceTargetError, match="would permit"):
        ReferenceStore(tmp_path / "refs.json").get("a")


def test_a_name_that_stands_for_nothing_is_an_error(folder):
    """RF-TPL-04: fsspec's engine puts nothing in its place."""
    document = {"version": 1, "templates": {"u": str(folder)}, "refs": {"a": ["{{u}}/{{nothing}}t0.bin"]}}
    assert len(peer(document).cat("a")) == 200
    with pytest.raises(ReferenceFormatError, match="nothing"):
        ReferenceStore(document, allowed=[folder])


def test_templates_compute_no_more_than_they_need(folder):
    """RF-TPL-08, RF-TPL-09: fsspec renders whatever the engine can."""
    for url in ("{{ u.upper().lower() }}/t0.bin", "{{ u|lower }}/t0.bin", "{% if true %}{{u}}/t0.bin{% endif %}"):
        document = {"version": 1, "templates": {"u": str(folder)}, "refs": {"a": [url]}}
        peer(document)
        with pytest.raises(zcore.UnsupportedError):
            ReferenceStore(document, allowed=[folder])


def test_keys_that_are_there_twice(tmp_path):
    """RF-V1-10: of fsspec's the last one wins."""
    (tmp_path / "refs.json").write_text('{"a": "one", "a": "two"}')
    assert ReferenceFileSystem(str(tmp_path / "refs.json"), skip_instance_cache=True).cat("a") == b"two"
    with pytest.raises(ReferenceFormatError, match="twice"):
        ReferenceStore(tmp_path / "refs.json")


def test_what_is_no_base64():
    """RF-V1-06: fsspec skips what does not belong there."""
    assert peer({"a": "base64:A*A==="}).cat("a") == b"\0"
    with pytest.raises(ReferenceFormatError, match="base64"):
        ReferenceStore({"a": "base64:A*A==="})


def test_missing_targets_are_no_missing_chunks(folder):
    """RF-URL-07"""
    document = {".zarray": {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|u1", "compressor": None,
                            "filters": None, "fill_value": 7, "order": "C"}, "0": [f"{folder}/gone.bin", 0, 2]}
    with pytest.raises(ReferenceTargetError, match="No such file"):
        zcore.open(ReferenceStore(document, allowed=[folder]))[...]
    with pytest.raises(Exception, match="failed to fetch"):
        peer(document).cat("0")


# Arrays

def read_by_zarr(file_system, path, zarr_format=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr = pytest.importorskip("zarr")
        FsspecStore = pytest.importorskip("zarr.storage").FsspecStore
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

        if not file_system.async_impl or not file_system.asynchronous:
            file_system = AsyncFileSystemWrapper(file_system, asynchronous=True)
        store = FsspecStore(file_system, path="", read_only=True)
        return np.asarray(zarr.open_array(store, path=path, mode="r", zarr_format=zarr_format)[...])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("codec", [None, GzipCodec, ZstdCodec, BloscCodec])
def test_arrays_are_the_same(tmp_path, zarr_format, codec):
    """RF-STO-03"""
    values = np.random.default_rng(1).integers(0, 50, (20, 30)).astype("<u2")
    zcore.create_array(tmp_path / "made", shape=(20, 30), dtype="<u2", chunks=(7, 8), fill_value=3,
                       zarr_format=zarr_format, compressors=codec and codec())[...] = values
    refs, body = {}, b"head"
    for i, file in enumerate(sorted(path for path in (tmp_path / "made").rglob("*") if path.is_file())):
        key = "x/" + file.relative_to(tmp_path / "made").as_posix()
        chunk = file.read_bytes()
        refs[key] = chunk.decode() if file.suffix == ".json" or file.name.startswith(".z") else (
            [f"{tmp_path}/all.bin", len(body), len(chunk)] if i % 2 else [str(file)])
        body += chunk
    (tmp_path / "all.bin").write_bytes(body)
    mine = zcore.open(ReferenceStore(refs, allowed=[tmp_path]), path="x")[...]
    np.testing.assert_array_equal(mine, values)
    np.testing.assert_array_equal(read_by_zarr(peer(refs), "x"), mine)


def test_sets_that_kerchunk_makes_of_hdf5(tmp_path):
    """RF-V1-03, RF-STO-03: from chunked, compressed, contiguous, scalar and sparse datasets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        h5py = pytest.importorskip("h5py")
        translate = pytest.importorskip("kerchunk.hdf").SingleHdf5ToZarr
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.attrs["title"] = "a title"
        file["contiguous"] = rng.integers(0, 9, (10, 30)).astype("i4")
        made = file.create_dataset("group/deflated", (20, 30), "f8", chunks=(7, 8), compression="gzip", shuffle=True)
        made[...] = rng.random((20, 30))
        made.attrs["units"] = "m"
        file.create_dataset("sparse", (20, 30), ">i2", chunks=(7, 8), fillvalue=-1)[:7, :8] = 3
        file.create_dataset("inline", (3,), "u1")[...] = [1, 2, 3]
        file["scalar"] = 2.5
    with h5py.File(tmp_path / "a.h5") as file:
        for threshold in (0, 100, 10**6):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                document = translate(str(tmp_path / "a.h5"), inline_threshold=threshold).translate()
            (tmp_path / "refs.json").write_text(json.dumps(document))
            group, store = zcore.open(tmp_path / "refs.json"), ReferenceStore(tmp_path / "refs.json")
            assert group.attrs["title"] == "a title" and group["group/deflated"].attrs["units"] == "m"
            assert {key: store.get(key) for key in store.list()} == values_of(peer(document))
            for name in ("contiguous", "group/deflated", "sparse", "inline", "scalar"):
                expected = file[name][()]
                np.testing.assert_array_equal(group[name][...], expected)
                np.testing.assert_array_equal(read_by_zarr(peer(document), name), expected)


# Parquet

def lazy_set(root, engine, record_size):
    """An empty set in Parquet that fsspec writes, through pandas."""
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("kerchunk.df")
    if engine == "fastparquet":
        pytest.importorskip("fastparquet")
    from fsspec.implementations.reference import LazyReferenceMapper

    return LazyReferenceMapper.create(str(root), record_size=record_size, engine=engine)


def lazy_peer(root):
    from fsspec.implementations.reference import LazyReferenceMapper

    made = ReferenceFileSystem(str(root), skip_instance_cache=True, lazy=True, remote_protocol="file")
    made.references = LazyReferenceMapper(str(root), engine="pyarrow")
    return made


@pytest.mark.filterwarnings("ignore:The 'fastparquet' engine")
@pytest.mark.parametrize("engine", ["pyarrow", "fastparquet"])
@pytest.mark.parametrize("record_size", [1, 7, 100])
@pytest.mark.parametrize("has_holes", [False, True])
def test_sets_in_parquet_that_fsspec_writes(folder, tmp_path, engine, record_size, has_holes):
    """RF-DOC-04, RF-PQ-01 to RF-PQ-09: parts, whole files, data, and chunks that are missing."""
    rng = np.random.default_rng(record_size)
    values = rng.integers(0, 99, (4, 6)).astype("<u2")
    body, document = b"head", {"shape": [4, 6], "chunks": [1, 2], "dtype": "<u2", "compressor": None, "filters": None,
                               "fill_value": 7, "order": "C", "zarr_format": 2}
    made = lazy_set(tmp_path / "refs.parq", engine, record_size)
    made[".zgroup"], made["deep/x/.zarray"] = '{"zarr_format": 2}', json.dumps(document)
    made["deep/.zgroup"], made["deep/x/.zattrs"] = '{"zarr_format": 2}', '{"units": "m"}'
    made["s/.zarray"] = json.dumps({**document, "shape": [], "chunks": []})
    made["s/0"] = b"\5\0"
    for i in range(4):
        for j in range(3):
            chunk, kind = values[i, 2 * j:2 * j + 2].tobytes(), rng.integers(1 - has_holes, 4)
            if kind == 0:
                values[i, 2 * j:2 * j + 2] = 7
            elif kind == 1:
                made[f"deep/x/{i}.{j}"] = chunk
            elif kind == 2:
                (tmp_path / f"whole{i}{j}.bin").write_bytes(chunk)
                made[f"deep/x/{i}.{j}"] = [f"{tmp_path}/whole{i}{j}.bin"]
            else:
                made[f"deep/x/{i}.{j}"] = [f"{tmp_path}/all.bin", len(body), len(chunk)]
                body += chunk
    made.flush()
    (tmp_path / "all.bin").write_bytes(body)
    group, store = zcore.open(tmp_path / "refs.parq"), ReferenceStore(tmp_path / "refs.parq")
    np.testing.assert_array_equal(group["deep/x"][...], values)
    assert group["s"][()] == 5 and group["deep/x"].attrs["units"] == "m"
    theirs = lazy_peer(tmp_path / "refs.parq")
    # Asked for zarr.json, as for any other key that is no chunk's, fsspec's reader of such sets fails; and for missing
    # chunks, with a pandas that makes NaN of them.
    if not has_holes:
        np.testing.assert_array_equal(read_by_zarr(theirs, "deep/x", 2), values)
    for key in store.list():
        mine, other = store.get(key), theirs.cat(key)
        assert mine == other or json.loads(mine) == json.loads(other), key
    # What zcore makes of it in JSON, fsspec reads as well.
    store.save(tmp_path / "saved.json")
    saved = ReferenceFileSystem(str(tmp_path / "saved.json"), skip_instance_cache=True)
    np.testing.assert_array_equal(read_by_zarr(saved, "deep/x"), values)


@pytest.mark.parametrize("categorical", [1, 10**9])
def test_sets_in_parquet_that_kerchunk_writes(tmp_path, categorical):
    """RF-PQ-03, RF-PQ-04, RF-PQ-08: a set of an HDF5 file in JSON, and the same in Parquet."""
    h5py = pytest.importorskip("h5py")
    df = pytest.importorskip("kerchunk.df")
    pytest.importorskip("fastparquet")
    translate = pytest.importorskip("kerchunk.hdf").SingleHdf5ToZarr
    values = np.random.default_rng(1).random((20, 30))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("group/x", data=values, chunks=(3, 4), compression="gzip")
        file["small"] = np.arange(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        df.refs_to_dataframe(translate(str(tmp_path / "a.h5"), inline_threshold=100).translate(),
                             str(tmp_path / "refs.parq"), record_size=13, categorical_threshold=categorical)
    group = zcore.open(tmp_path / "refs.parq")
    np.testing.assert_array_equal(group["group/x"][...], values)
    assert group["small"][...].tolist() == [0, 1, 2] and group["group/x"].nchunks_initialized == 56
    np.testing.assert_array_equal(read_by_zarr(lazy_peer(tmp_path / "refs.parq"), "group/x", 2), values)


def test_slashes_in_keys_of_parquet(folder, tmp_path):
    """RF-PQ-07: fsspec knows keys with dots alone."""
    made = lazy_set(tmp_path / "refs.parq", "pyarrow", 10)
    made["x/.zarray"] = json.dumps({
        "shape": [2, 2], "chunks": [1, 1], "dtype": "|u1", "compressor": None, "filters": None, "fill_value": 7,
        "order": "C", "zarr_format": 2, "dimension_separator": "/"})
    made["x/1.0"] = [f"{folder}/t0.bin", 5, 1]
    made.flush()
    store = ReferenceStore(tmp_path / "refs.parq", allowed=[folder])
    assert zcore.open(store, path="x")[...].tolist() == [[7, 7], [5, 7]] and store.exists("x/1/0")
    with pytest.raises(Exception, match="x/1"):
        lazy_peer(tmp_path / "refs.parq").cat("x/1/0")


# Sets that zcore makes

@pytest.mark.parametrize("zarr_format", [2, 3, "zmeta", "zip"])
def test_sets_of_what_zcore_stores(tmp_path, monkeypatch, zarr_format):
    """RF-STO-02, RF-STO-03: read by zarr-python; the set lies beside its files, and the process is there."""
    values = np.random.default_rng(1).integers(0, 50, (20, 30)).astype(">i4")
    options = {"shape": (20, 30), "dtype": ">i4", "chunks": (7, 8), "zarr_format": zarr_format}
    if zarr_format == "zip":
        source = tmp_path / "made.zip"
        with zcore.ZipStore(source, mode="w") as store:
            zcore.create_array(store, **{**options, "zarr_format": 3})[...] = values
    else:
        source = tmp_path / "made"
        zcore.create_array(source, **options)[...] = values
    zcore.references(source).save(tmp_path / "refs.json")
    monkeypatch.chdir(tmp_path)
    theirs = ReferenceFileSystem(str(tmp_path / "refs.json"), skip_instance_cache=True)
    np.testing.assert_array_equal(read_by_zarr(theirs, ""), values)
    np.testing.assert_array_equal(zcore.open(tmp_path / "refs.json")[...], values)


def test_sets_of_hdf5_that_zcore_makes(tmp_path, monkeypatch):
    """RF-STO-02, RF-STO-03: zarr-python reads them, checksums, texts and filled chunks included."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/x", data=rng.random((20, 30)), chunks=(7, 8), compression="gzip", shuffle=True)
        file.create_dataset("checked", data=rng.random((21,)), chunks=(7,), compression="gzip", fletcher32=True)
        file.create_dataset("sparse", (20, 30), ">i2", chunks=(7, 8), fillvalue=-1)[:7, :8] = 3
        file["contiguous"] = rng.integers(0, 9, (10, 300))
        file["texts"] = ["a", "äö", ""]
    zcore.references_from_hdf5(tmp_path / "a.h5", inline_threshold=100).save(tmp_path / "refs.json")
    monkeypatch.chdir(tmp_path)
    theirs = ReferenceFileSystem(str(tmp_path / "refs.json"), skip_instance_cache=True)
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("g/x", "checked", "sparse", "contiguous"):
            np.testing.assert_array_equal(read_by_zarr(theirs, name), file[name][...])
    assert read_by_zarr(theirs, "texts").tolist() == ["a", "äö", ""]


def test_the_document_may_be_in_a_directory_of_its_own(folder, tmp_path):
    """RF-URL-08: what `allowed=` has to be is in the message, and permits what fsspec reads."""
    document = {"a": [f"{folder}/t0.bin"], "b": [f"{folder}/t1.bin", 1, 2]}
    (tmp_path / "refs.json").write_text(json.dumps(document))
    with pytest.raises(ReferenceTargetError) as caught:
        ReferenceStore(tmp_path / "refs.json").get("a")
    allowed = [str(caught.value).partition("allowed=['")[2].partition("']")[0]]
    assert allowed == [os.path.realpath(folder) + "/"]
    store = ReferenceStore(tmp_path / "refs.json", allowed=allowed)
    assert {key: store.get(key) for key in store.list()} == values_of(peer(document))
