"""Names of zarr-python that zcore has beside its own."""
import importlib
import sys

import numpy as np
import pytest

import zcore


@pytest.fixture
def group():
    group = zcore.create_group(zcore.MemoryStore(), attributes={"kept": 1})
    group.create_array("sub/a", data=np.arange(4))
    return group


def test_errors_are_caught_by_the_names_of_zarr_python(group):
    errors = zcore.errors
    for name in ("ArrayNotFoundError", "GroupNotFoundError", "NodeNotFoundError", "PathNotFoundError"):
        with pytest.raises(getattr(errors, name)):
            group["none"]
    for name in ("ContainsArrayError", "ContainsGroupError", "ContainsArrayAndGroupError"):
        with pytest.raises(getattr(errors, name)):
            group.create_array("sub/a", shape=3, dtype="i4")
    for name in ("BoundsCheckError", "ArrayIndexError"):
        with pytest.raises(getattr(errors, name)):
            group["sub/a"][7]
    with pytest.raises(errors.MetadataValidationError):
        zcore.open({"zarr.json": b"{}"})
    with pytest.raises(errors.BaseZarrError):
        group["none"]
    for name in ("ZarrUserWarning", "ZarrDeprecationWarning", "UnstableSpecificationWarning"):
        assert issubclass(getattr(errors, name), Warning)


def test_errors_have_the_built_in_bases_of_zarr_python():
    theirs = vars(pytest.importorskip("zarr.errors", exc_type=ImportError))
    common = {name: kind for name, kind in theirs.items() if name in vars(zcore.errors) and isinstance(kind, type)}
    assert len(common) > 10
    for name, kind in common.items():
        bases = [base for base in kind.__mro__ if base.__module__ == "builtins"]
        assert name == "BaseZarrError" or all([issubclass(getattr(zcore.errors, name), base) for base in bases]), name


def test_members_of_one_kind(group):
    assert group.get_array("sub/a").path == "sub/a" and group.get_group("sub").path == "sub"
    for call, path, text in ((group.get_array, "sub", "no array"), (group.get_group, "sub/a", "no group"),
                             (group.get_array, "none", "no member"), (group.get_group, "none", "no member")):
        with pytest.raises(zcore.NodeNotFoundError, match=text):
            call(path)


def test_clear(group):
    group.clear()
    assert list(group) == [] and group.attrs == {"kept": 1}
    group.create_group("again")
    with pytest.raises(zcore.ReadOnlyError):
        zcore.open_group(group.store).clear()


def test_datasets(group):
    with pytest.warns(DeprecationWarning, match="create_array"):
        assert group.create_dataset("b", data=np.array([1, 2], "i8"))[1] == 2
    with pytest.warns(DeprecationWarning, match="create_array"):
        assert group.create_dataset("c", (3, 4), "i4").shape == (3, 4)
    with pytest.warns(DeprecationWarning, match="require_array"):
        assert group.require_dataset("b", shape=2, dtype="i8")[1] == 2


def test_one_dimension_is_resized():
    array = zcore.ones((3, 4))
    array.resize(5, axis=0)
    array.resize(2, axis=-1)
    assert array.shape == (5, 2) and array[:].sum() == 10
    for shape, axis, error, words in (
            ((2, 2), 0, TypeError, "found \\(2, 2\\)"), (2, 2, IndexError, "axis is 2, the array has the shape"),
            (2, -3, ValueError, "axis is -3"), (-1, 0, ValueError, "found -1"), (2, "0", TypeError, "axis is '0'"),
            (2, True, TypeError, "axis is True")):
        with pytest.raises(error, match=words):
            array.resize(shape, axis=axis)
    with pytest.raises(TypeError, match="one length with axis=, found 2"):
        array.resize(2, 2, axis=0)
    assert array.shape == (5, 2)


@pytest.mark.parametrize("axis", [0, 1])
def test_the_axis_of_h5py_is_no_length(axis):
    """It would remove what nobody has named."""
    array = zcore.array(np.ones((2, 3), "i4"))
    with pytest.raises(TypeError, match=rf"means an axis in h5py: write resize\(5, axis={axis}\)"):
        array.resize(5, axis)
    assert array[...].sum() == 6
    array.resize((5, axis))
    array.resize(5, 1)
    assert array.shape == (5, 1)


def test_names_that_are_told_are_not_shown(group):
    for node, names in ((group["sub/a"], {"mean", "dims"}), (group, {"visit"}), (group.attrs, {"create"})):
        assert not names & set(dir(node)) and {"__eq__", "__len__"} <= set(dir(node))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_compressors_have_no_checksum_at_their_end(zarr_format):
    array = zcore.create_array({}, data=np.arange(9), compressors="zstd", zarr_format=zarr_format)
    assert [codec.name for codec in array.compressors] == ["zstd"] and array.compressor.name == "zstd"
    like = zcore.create_array({}, data=np.arange(9), compressors=array.compressors, zarr_format=zarr_format)
    assert like.codecs == array.codecs
    plain = zcore.create_array({}, data=np.arange(9), compressors=None, zarr_format=zarr_format)
    assert plain.compressors == () and plain.compressor is None


@pytest.mark.parametrize(("attempt", "words"), [
    ("zcore.File", "zcore.open_group"), ("zcore.create_dataset", "zcore.create_array"),
    ("group['sub/a'].mean()", "dask"),
    ("zcore.create_array({}, shape=1, dtype='u1', maxshape=(None,))", "can be resized"),
    ("zcore.zeros(3, compressor=None)", "compressors="),
    ("group.create_array('x', shape=3, dtype='u1', compression='gzip')", "compressors="),
    ("zcore.open({}, 'w', shape=3, dtype='u1', compression='gzip')", "compressors="),
    ("zcore.copy_store(group, {})", "zcore.copy"), ("zcore.string_dtype()", "dtype=str"),
    ("group['sub/a'].dims", "dimension_names"), ("group['sub/a'].parent", "zcore.open_group(node.store)"),
    ("zcore.zeros(3, dimension_separator='/')", "chunk_key_encoding="), ("zcore.N5Store", "no N5"),
    ("zcore.open({}, chunk_store={})", "leave it out"), ("zcore.core.Array", "zcore.Array"),
    ("zcore.storage.FSStore", "from_url(url)"), ("zcore.storage.LRUStoreCache", "cache="),
    ("zcore.storage.xyzzy", "'xyzzy'"), ("group.tree(level=1)", "max_depth"),
    ("zcore.tree(group, level=1)", "max_depth"), ("group.groups(recurse=True)", "members("),
    ("group.mode", "read_only"), ("group['sub/a'].mode", "read_only"), ("group.ref", "links"),
    ("group.create_dataset_like", "empty_like"), ("group.zeros_like", "zcore.zeros_like"),
    ("group.full_like", "zcore.full_like"), ("group.require_groups", "require_group"),
    ("group.synchronizer", "leave it out"),
    ("zcore.create_array({}, path='a', shape=3, dtype='u1')", "it is name"),
    ("zcore.zeros(3, name='a')", "zeros() got an unexpected keyword argument 'name'; it is path"),
    ("zcore.create_group({}, name='a')", "it is path"), ("zcore.open({}, name='a')", "it is path"),
    ("group['sub/a'].metadata.dimension_separator", "chunk_keys.separator"),
    ("group['sub/a'].asstr()", "str"), ("group.visit(print)", "visititems"), ("group.copy('a', 'b')", "zcore.copy"),
    ("group.array('x', [1])", "g.create_array(name, data=data)"),
    ("zcore.zeros(3, compressor_s='gzip')", "did you mean compressors=?"), ("zcore.zeros(3, chunk=2)", "mean chunks=?"),
    ("group.create_array('x', shape=3, dtype='u1', dimension_name='x')", "did you mean dimension_names=?"),
    ("zcore.open_group({}, zarr_version=2)", "zarr_format"), ("zcore.copy({}, {}, chunk=3)", "did you mean chunks=?"),
    ("group.create_array('x', (3, 3), 'u1')", "all others are named, such as shape=, dtype="),
    ("zcore.zeros(3, 'u1')", "others are named, such as shape=, dtype="),
    ("zcore.open({}, 'r', 'a')", "others are named, such as path=, shape=, chunks="),
    ("group.create_array('x', shape=3, dtpe='u1')", "did you mean dtype=?"),
    ("zcore.zeros(3, dims=['x'])", "dimension_names="),
    ("zcore.open({}, 'w', shape=3, dtype='u1', zarr_format=3, clevel=3)", "BloscCodec(cname='zstd', clevel=5)"),
    ("group.create_array('x', shape=3, dtype='u1', shuffle=1)", "shuffle= is of __zmeta__ arrays, and this one is of"),
    ("zcore.zeros(3, foo=1)", "zeros() got an unexpected keyword argument 'foo'"),
    ("zcore.empty_like([1], foo=1)", "empty_like() got"), ("zcore.save_array({}, [1], foo=1)", "save_array() got"),
    ("group.require_group('x', foo=1)", "Group.require_group() got an unexpected keyword argument 'foo'"),
    ("zcore.create_hierarchy(store={}, nodes={}, foo=1)", "create_hierarchy() got an unexpected keyword argument"),
    ("zcore.create_hierarchy(store={}, nodes={}, storage_options={'a': 1})", "storage_options are for a URL"),
    ("group['sub/a'].resize(new_shape=4)", "has no name"), ("group.move(source='sub', dest='b')", "it is destination"),
    ("group.update_attributes(new_attributes={})", "it is attributes"),
    ("zcore.create_array({}, data=[1], write_data=False)", "zcore.from_array"),
    ("group.update({'x': [1]})", "g[name] = values"), ("group.pop('sub')", "del g[name]"),
    ("zcore.opn", "did you mean zcore.open?"), ("zcore.codecs.Zstdcodec", "did you mean zcore.codecs.ZstdCodec?"),
    ("zcore.dtype.Int33", "did you mean zcore.dtype.Int32?"), ("zcore.codecs.xyzzy", "'xyzzy'"),
    ("group.attrs.create('n', 1)", "attrs[name] = value"), ("group.attrs.xyzzy", "'xyzzy'"), ("group.xyzzy", "'xyzzy'"),
    ("zcore.xyzzy", "'xyzzy'"), ("group['sub/a'].xyzzy", "'xyzzy'"), ("zcore.zeros(3, xyzzy=1)", "'xyzzy'"),
    ("zcore.__open__", "'__open__'"),
])
def test_names_that_people_try_first_are_told_what_to_write(attempt, words, group):
    with pytest.raises((AttributeError, TypeError)) as caught:
        eval(attempt)
    assert words in str(caught.value)
    if "xyzzy" in attempt or "__" in attempt:
        assert str(caught.value).endswith(words)


def test_settings_of_zarr_python(capsys):
    config = zcore.config
    with config.set({"array.write_empty_chunks": True, "threading.max_workers": 3, "array.order": "C"}):
        assert (config.write_empty_chunks, config.threads) == (True, 3)
        array = zcore.create_array({}, shape=4, dtype="i4")
        array[...] = 0
        assert array.nchunks_initialized == 1 and config.get("array.write_empty_chunks") is True
        with config.set(array__write_empty_chunks=False):
            assert zcore.create_array({}, shape=4, dtype="i4").config.write_empty_chunks is False
        assert config.write_empty_chunks
    assert not config.write_empty_chunks and config.threads == config.get("threading.max_workers")
    with config.set({"array": {"write-empty-chunks": True}}, threading={"max_workers": 3}):
        assert config.get("array") == {"order": "C", "rectilinear_chunks": True, "read_missing_chunks": True,
                                       "write_empty_chunks": True}
        assert config["array"] == config.get("array") and config.get("array.write-empty-chunks") and config.threads == 3
    config.set({"array.write_empty_chunks": True})
    config.reset()
    assert not config.write_empty_chunks
    config.pprint(width=60)
    assert "'array.write_empty_chunks': False" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="not have these settings, .*: array.order, async.concurrency$") as found:
        config.set({"array.order": "F", "async.concurrency": 3, "array.rectilinear_chunks": True})
    assert len(found) == 1 and config.get("array.order") == "C" and config.get("async.concurrency", default=7) == 7
    with pytest.raises(KeyError, match="async"):
        config.get("async.concurrency")
    with pytest.raises(TypeError, match="write_empty_chunks must be a bool"):
        config.set({"array.write_empty_chunks": 1})


def test_config_of_an_array():
    array = zcore.create_array({}, shape=4, dtype="i4", config={"write_empty_chunks": True, "order": "C"})
    assert array.config == ("C", True, True)
    other = array.with_config({"read_missing_chunks": False})
    assert other == array and other.missing == "raise" and other.config == ("C", True, False)
    with pytest.raises(zcore.ChunkError):
        other[0]
    assert array[0] == 0
    group = zcore.group()
    group.create_array("a", shape=4, dtype="i4", config={"write_empty_chunks": True})[...] = 0
    assert group["a"].nchunks_initialized == 1
    with pytest.warns(UserWarning, match="order.* changes nothing"):
        zcore.open({}, "w", shape=4, dtype="i4", config={"order": "F"})


def test_options_of_a_url(tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    url, options = (tmp_path / "a").as_uri().replace("file:", "local:"), {"auto_mkdir": True}
    zcore.create_array(url, data=[1, 2], storage_options=options)
    assert list(zcore.open(url, storage_options=options)) == [1, 2]
    assert list(zcore.load(tmp_path / "a")) == [1, 2]
    store = zcore.storage.FsspecStore.from_url(url, storage_options=options, read_only=True)
    assert list(zcore.open(store)) == [1, 2] and store.read_only
    with pytest.raises(TypeError, match="expected a URL, found None"):
        zcore.storage.FsspecStore.from_url(None)
    with pytest.raises(zcore.UnsupportedError, match=r"'s3://b/a' by fsspec: .*zcore-array\[remote\]"):
        monkeypatch.setitem(sys.modules, "s3fs", None)
        zcore.open("s3://b/a", storage_options={"anon": True})
    with pytest.raises(TypeError, match="storage_options are for a URL"):
        zcore.open_group(tmp_path, storage_options=options)


def test_stores_are_closed_at_the_end_of_a_block(tmp_path):
    for store in (zcore.storage.LocalStore(tmp_path), zcore.storage.MemoryStore()):
        with store as entered:
            zcore.create_array(entered, data=[1, 2])
        store.close()
        assert zcore.open(store)[1] == 2


def test_stores_of_services():
    obstore = pytest.importorskip("obstore")
    for url in ("http://", "gs://", "s3://a b", "https://a b"):
        with pytest.raises(ValueError, match=url[:5]):
            zcore.open(url)
    theirs = obstore.store.MemoryStore()
    zcore.create_array(zcore.storage.ObjectStore(store=theirs), data=[1, 2])
    assert list(zcore.open(zcore.storage.ObjectStore(store=theirs, read_only=True))) == [1, 2]


def test_array_from_another():
    source = zcore.create_array({}, data=np.arange(24).reshape(4, 6), chunks=(2, 3), shards=(4, 3), attributes={"n": 1})
    like = zcore.from_array({}, data=source, chunks="keep", shards="keep", compressors="keep")
    assert like.metadata == source.metadata and np.array_equal(like, source)
    other = zcore.from_array({}, data=source, name="x", chunks=(4, 1), shards=None, write_data=False, attributes={})
    assert (other.path, other.chunks, other.shards, other.attrs) == ("x", (4, 1), None, {})
    assert other.nchunks_initialized == 0
    assert zcore.from_array({}, data=[1, 2], chunks=1)[1] == 2
    assert zcore.from_array({}, data=np.ones(2), write_data=False)[1] == 0


def test_place_and_metadata(group):
    array = group["sub/a"]
    assert array.store_path == (group.store, "sub/a") and str(array.store_path).endswith("/sub/a")
    assert str(type(array.store_path)(zcore.DirectoryStore("/a b"), "x")) == "file:///a%20b/x"
    assert array.metadata.chunk_grid.chunk_shape == array.chunks
    assert array.metadata.to_dict()["shape"] == [4] and group.metadata.to_dict()["attributes"] == {"kept": 1}
    assert group.metadata.consolidated_metadata is None
    copy = zcore.consolidate_metadata(group.store).metadata.consolidated_metadata
    assert copy.metadata["sub/a"].shape == (4,)
    old = zcore.zeros((2, 3), zarr_format=2, order="F")
    assert old.metadata.to_dict()["order"] == "F" and old.metadata.filters is None
    delta = {"id": "delta", "dtype": "<f8", "astype": "<f8"}
    old = zcore.zeros(4, zarr_format=2, filters=[delta], compressors={"id": "zlib", "level": 2})
    assert old.metadata.filters == [delta]
    assert old.metadata.compressor == {"id": "zlib", "level": 2}
    with pytest.raises(AttributeError, match="metadata.codecs is the chain"):
        array.metadata.filters     # noqa: B018


def test_modules_of_codecs():
    names = vars(pytest.importorskip("zarr.codecs"))
    modules = [name for name, value in names.items()
               if name[0] != "_" and getattr(value, "__name__", "") == f"zarr.codecs.{name}"]
    assert len(modules) > 6
    for name in modules:
        ours = importlib.import_module(f"zcore.codecs.{name}")
        assert getattr(zcore.codecs, name) is ours
        assert not [member for member in vars(names[name]) if member in names["__all__"] and not hasattr(ours, member)
                    and getattr(names[name], member).__module__ == f"zarr.codecs.{name}"]
    assert sorted(set(names["__all__"]) - set(zcore.codecs.__all__)) == []
    array = zcore.create_array({}, data=["a"], dtype=str, serializer=zcore.codecs.vlen_utf8.VLenUTF8Codec())
    assert array[0] == "a" and zcore.codecs.BytesCodec(endian=zcore.codecs.Endian.big).endian == "big"
    filters = [zcore.codecs.ScaleOffset(scale=10), zcore.codecs.cast_value.CastValue(data_type="int16")]
    array = zcore.create_array({}, data=[1.5, -2.0], filters=filters)
    assert array[...].tolist() == [1.5, -2.0] and list(map(repr, array.filters)) == list(map(repr, filters))
    with pytest.raises(AttributeError, match="Nothing"):
        zcore.codecs.Nothing     # noqa: B018


def test_the_order_in_a_shard_is_a_wish():
    with pytest.warns(UserWarning, match="'morton' of zarr-python changes nothing"):
        codec = zcore.codecs.ShardingCodec(chunk_shape=(2,), subchunk_write_order="morton")
    assert codec.spec() == zcore.codecs.ShardingCodec(chunk_shape=(2,), subchunk_write_order="unordered").spec()
    with pytest.raises(ValueError, match="expected one of morton, unordered"):
        zcore.codecs.ShardingCodec(chunk_shape=(2,), subchunk_write_order="random")


def test_a_missing_chunk_is_an_error_of_zarr_python():
    array = zcore.create_array({}, shape=4, chunks=2, dtype="i4", config={"read_missing_chunks": False})
    array[:2] = 1
    for kind in (zcore.errors.ChunkNotFoundError, zcore.ChunkError, ValueError):
        with pytest.raises(kind, match="c/1: object is absent") as caught:
            array[...]
        assert type(caught.value) is zcore.ChunkNotFoundError and caught.value.chunk_coords == (1,)


def test_codecs_by_name():
    codecs = zcore.codecs
    blosc = codecs.BloscCodec(cname=codecs.BloscCname.zstd, shuffle=codecs.blosc.BloscShuffle.bitshuffle)
    array = zcore.create_array({}, data=np.arange(9, dtype="i8"), filters=[codecs.numcodecs.Delta(dtype="<i8")],
                               compressors=blosc)
    assert [codec.name for codec in (*array.filters, *array.compressors)] == ["numcodecs.delta", "blosc"]
    assert array[8] == 8 and array.compressor.shuffle == "bitshuffle"
    with pytest.raises(AttributeError):
        codecs.numcodecs.Pickle     # noqa: B018


def test_names_of_data_types():
    types = zcore.dtype
    for given, expected in (
        (types.Int16(endianness="big"), ">i2"), (types.Bool(), "?"),
        (types.DateTime64(unit="s", scale_factor=10), "M8[10s]"),
        (types.TimeDelta64(), "m8"), (types.FixedLengthUTF32(length=3), "<U3"), (types.RawBytes(length=3), "V3"),
        (types.Struct(fields=[("x", "<i4")]), [("x", "<i4")]), (types.parse_dtype("float32"), "f4"),
    ):
        assert given == types.ZDType(expected) and given == given.to_native_dtype() == np.dtype(expected)
        assert zcore.zeros(2, dtype=given).dtype == zcore.zeros(2, dtype=expected).dtype
        assert zcore.zeros(2, dtype=given)[0] == zcore.zeros(2, dtype=expected)[0]
    assert zcore.create_array({}, shape=2, dtype=types.VariableLengthUTF8())[0] == ""
    assert zcore.create_array({}, shape=2, dtype=types.VariableLengthBytes())[0] == b""
    with pytest.raises(AttributeError):
        types.Int7     # noqa: B018
    assert {types.Int8(), types.Int8.from_native_dtype("i1")} == {types.ZDType("i1")}
    assert repr(types.Int8()) == "ZDType(dtype('int8'))" and types.Int8() != "int8"


@pytest.mark.filterwarnings("ignore:The data type")      # of types that Zarr v3 does not specify
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(("name", "parameters"), [
    ("Int8", {}), ("Float32", {"endianness": "big"}), ("Bool", {}), ("DateTime64", {"unit": "s", "scale_factor": 10}),
    ("TimeDelta64", {"unit": "D"}), ("FixedLengthUTF32", {"length": 3}), ("NullTerminatedBytes", {"length": 3}),
    ("RawBytes", {"length": 4}), ("VariableLengthUTF8", {}), ("VariableLengthBytes", {})])
def test_data_types_are_those_of_zarr_python(name, parameters, zarr_format):
    theirs = getattr(pytest.importorskip("zarr.dtype"), name)(**parameters)
    ours = getattr(zcore.dtype, name)(**parameters)
    if (name, zarr_format) == ("VariableLengthBytes", 3):
        assert ours.to_json(zarr_format=3) == "bytes"     # of zarr-extensions, whose older alias zarr-python writes
    else:
        assert ours.to_json(zarr_format=zarr_format) == theirs.to_json(zarr_format=zarr_format)
    value = ours.default_scalar()
    stored = theirs.to_json_scalar(value, zarr_format=zarr_format)
    assert ours.to_json_scalar(value, zarr_format=zarr_format) == stored
    assert str(ours.from_json_scalar(stored, zarr_format=zarr_format)) == str(value)
    assert (zcore.zeros(2, dtype=theirs, zarr_format=zarr_format).metadata
            == zcore.zeros(2, dtype=ours, zarr_format=zarr_format).metadata)
    assert zcore.open({}, mode="a", shape=2, dtype=ours, zarr_format=zarr_format).shape == (2,)
