"""What a call without a keyword does, and that a wrong one leaves an array alone."""
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import zcore
from tests.each import each


@each("dtype", ["i4", "f8", "S3", "U4", "bool", "M8[s]", [("a", "i4"), ("b", "U3")]])
def test_elements_never_written_are_zero_or_empty(dtype):
    array = zcore.create_array(zcore.MemoryStore(), shape=3, dtype=dtype, zarr_format="zmeta")
    assert array[:].tolist() == np.zeros(3, dtype).tolist()


def test_text_needs_a_length():
    with pytest.raises(ValueError, match="such as 'U10'"):
        zcore.create_array(zcore.MemoryStore(), shape=3, dtype=str, zarr_format="zmeta")


@pytest.mark.parametrize("attributes", [[1], [], "ab", 0, {1: 2}, {"a": object()}])
def test_attributes_that_are_none_leave_the_old_array(tmp_path, attributes):
    old = zcore.open(tmp_path, mode="w", shape=4, dtype="i4", cname="lz4")
    old[:] = 1
    with pytest.raises(TypeError):
        zcore.open(tmp_path, mode="w", shape=4, dtype="i4", cname="lz4", attributes=attributes)
    assert zcore.open(tmp_path)[:].tolist() == [1, 1, 1, 1]


def test_attributes_take_scalars_of_numpy(tmp_path):
    array = zcore.open(tmp_path, mode="w", shape=4, dtype="i4", cname="lz4", attributes={"scale": np.float32(1.5)})
    array.attrs.update(n=np.int64(3), ok=np.bool_(True))
    assert dict(zcore.open(tmp_path).attrs) == {"n": 3, "ok": True, "scale": 1.5}


def test_advice_of_modes_is_right_where_a_call_has_no_mode(tmp_path):
    copied = zcore.copy(zcore.array([1, 2]), tmp_path / "a")
    with pytest.raises(zcore.ReadOnlyError, match=r"zcore\.open with mode='r\+' opens it"):
        copied[0] = 3
    zcore.open(tmp_path / "a", mode="r+")[0] = 3
    for call in (zcore.tree, zcore.consolidate_metadata):
        with pytest.raises(zcore.NodeNotFoundError, match="zcore.open_group with mode='a' creates it"):
            call(tmp_path / "g")
    zcore.open_group(tmp_path / "g", mode="a")
    assert zcore.tree(tmp_path / "g") == "/" and zcore.consolidate_metadata(tmp_path / "g").path == ""


def test_messages_say_what_to_do(tmp_path):
    with pytest.raises(zcore.NodeNotFoundError, match="holds no node"):
        zcore.open(tmp_path)
    for call in (zcore.load, zcore.verify, partial(zcore.copy, destination={})):
        with pytest.raises(zcore.NodeNotFoundError, match="typo does not exist$"):      # to create it is no way to read
            call(tmp_path / "typo")
    for call in (zcore.open, zcore.open_array, zcore.open_group, zcore.tree, zcore.open_consolidated,
                 partial(zcore.open, mode="r+"), partial(zcore.open_array, mode="a")):
        with pytest.raises(zcore.NodeNotFoundError, match="typo does not exist; zcore.open.* with mode='a'.* creates "):
            call(tmp_path / "typo")
        with pytest.raises(zcore.NodeNotFoundError, match=r"typo\.h5 does not exist$"):     # of no name for a directory
            call(tmp_path / "typo.h5")
        with pytest.raises(zcore.NodeNotFoundError, match=r"~/typo does not exist; .* os\.path\.expanduser\(path\) "):
            call(tmp_path / "~" / "typo")
    zcore.group(tmp_path / "folder" / "below")
    with pytest.raises(zcore.NodeNotFoundError, match="folder holds no node; path='below' is a node$"):
        zcore.open(tmp_path / "folder")
    with pytest.raises(zcore.UnsupportedError, match=r"^'memories://a': .*'memories'.* MemoryStore\(\)"):
        zcore.open("memories://a")
    zcore.open(tmp_path / "a", mode="w", shape=3, dtype="i4", cname="lz4")
    with pytest.raises(zcore.NodeNotFoundError, match="is a __zmeta__ array, zarr_format=3 was asked for"):
        zcore.open(tmp_path / "a", zarr_format=3)


@pytest.mark.parametrize("compressors", [None, [], {"name": "crc32c"}])
def test_compressors_that_this_format_cannot_do_without(tmp_path, compressors):
    with pytest.raises(ValueError, match="always compresses by blosc; clevel=0 stores the bytes as they are"):
        zcore.create_array(tmp_path, shape=3, dtype="i4", zarr_format="zmeta", compressors=compressors)


@pytest.mark.parametrize("compressors", [{"id": "zlib", "level": 1}, [{"id": "shuffle", "elementsize": 4},
                                                                      {"id": "zlib", "level": 1}]])
def test_compressors_of_zarr_v2_by_their_own_names(tmp_path, compressors):
    array = zcore.create_array(tmp_path, shape=4, dtype="i4", zarr_format=2, compressors=compressors)
    array[...] = 7
    assert '"zlib"' in (tmp_path / ".zarray").read_text()
    assert zcore.open(tmp_path)[...].tolist() == [7] * 4


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_text_of_any_length(tmp_path, shards):
    """NumPy keeps text of more than 15 bytes apart from the items; it must not be looked for in the wrong place."""
    text = np.array([["", "a" * 15, "b" * 16, "ä" * 300]] * 4)
    for store in (tmp_path, zcore.MemoryStore()):
        array = zcore.create_array(store, shape=(4, 4), chunks=(2, 2), shards=shards, dtype=str)
        array[...] = text
        array[1:3, 1:3] = "c" * 1000
        expected = text.astype(object)
        expected[1:3, 1:3] = "c" * 1000
        assert zcore.open(store)[...].tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [str, "str", "string", np.dtype(str), np.dtypes.StringDType()])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_names_of_text_of_any_length(dtype, zarr_format):
    array = zcore.create_array(zcore.MemoryStore(), shape=2, dtype=dtype, zarr_format=zarr_format)
    array[...] = ["a", "b" * 99]
    assert array.dtype == np.dtypes.StringDType() and array[...].tolist() == ["a", "b" * 99]


def test_completion_shows_public_names_alone():
    assert dir(zcore) == sorted(zcore.__all__)
    for module in (zcore.asdf, zcore.blosc, zcore.codecs, zcore.mpi, zcore.storage, zcore.typing):
        assert dir(module) == sorted(module.__all__) and all(hasattr(module, name) for name in dir(module))
    assert {"StoreError", "IncompleteCopyWarning"} < set(dir(zcore.errors)) and "sys" not in dir(zcore.errors)
    assert {"Int8", "parse_dtype"} < set(dir(zcore.dtype)) and "np" not in dir(zcore.dtype)
    assert {"threads", "cache"} < set(dir(zcore.config)) and "os" not in dir(zcore.config)
    assert all(hasattr(zcore.config, name) for name in dir(zcore.config))
    assert all(hasattr(zcore, name) for name in dir(zcore))


def test_reading_and_writing_by_index_have_help():
    assert "SelectionError" in zcore.Array.__getitem__.__doc__ and "broadcast" in zcore.Array.__setitem__.__doc__


def test_import_of_sources_that_are_not_built(tmp_path):
    shutil.copytree(Path(zcore.__file__).parent, tmp_path / "zcore",
                    ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    found = subprocess.run([sys.executable, "-c", "import zcore"], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
                           capture_output=True, text=True)
    assert "which are not built" in found.stderr.splitlines()[-1]
