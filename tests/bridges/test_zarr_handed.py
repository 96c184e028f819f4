"""`zcore.zarr.array` and `group`: objects of zarr-python of the same place, with zcore's pipeline and locks."""
import threading

import numpy as np
import pytest

import zcore
from tests.at_once import at_once

zarr = pytest.importorskip("zarr", minversion="3.1")
import zcore.zarr  # noqa: E402


@pytest.fixture(params=["directory", "memory", "mapping"])
def place(request, tmp_path):
    return {"directory": tmp_path / "s", "memory": zcore.MemoryStore(), "mapping": {}}[request.param]


@pytest.fixture(autouse=True)
def no_pipeline_of_ours():
    with zarr.config.set({"codec_pipeline.path": zarr.config.get("codec_pipeline.path")}):
        yield


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_array(place, zarr_format):
    values = np.arange(24.0).reshape(4, 6)
    z = zcore.create_array(place, name="g/a", data=values, chunks=(2, 3), zarr_format=zarr_format,
                           attributes={"units": "K"})
    theirs = zcore.zarr.array(z)
    assert type(theirs) is zarr.Array and theirs.path == "g/a" and dict(theirs.attrs) == {"units": "K"}
    assert np.array_equal(theirs[...], values)
    assert type(theirs._async_array.codec_pipeline) is zcore.zarr.ZcoreCodecPipeline
    theirs[0, 0] = 7
    assert z[0, 0] == 7
    with pytest.raises(ValueError, match="read.only"):
        zcore.zarr.array(zcore.open(place, path="g/a"))[0, 0] = 1


def test_a_group(place):
    g = zcore.create_group(place, path="top", attributes={"title": "t"})
    g.create_array("sub/a", data=np.arange(5))
    theirs = zcore.zarr.group(g)
    assert type(theirs) is zarr.Group and theirs.attrs["title"] == "t"
    assert theirs["sub/a"][3] == 3
    assert type(theirs["sub/a"]._async_array.codec_pipeline) is zcore.zarr.ZcoreCodecPipeline
    theirs.create_array("b", data=np.arange(3))
    assert g["b"][2] == 2


@pytest.mark.parametrize("kind", ["array", "group"])
def test_what_is_gone_makes_nothing(tmp_path, kind):
    node = zcore.ones(3, store=tmp_path / "s") if kind == "array" else zcore.create_group(tmp_path / "s")
    (tmp_path / "s").rename(tmp_path / "t")
    with pytest.raises(zcore.NodeNotFoundError, match="s"):
        getattr(zcore.zarr, kind)(node)
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_nodes_of_zarr_python_are_copied_and_verified(place):
    theirs = zarr.open_group(place if isinstance(place, dict) else str(place) if hasattr(place, "parts")
                             else zcore.zarr.Store(place, read_only=False), mode="w")
    theirs.create_array("g/a", shape=5, dtype="i4", chunks=2)[:] = np.arange(5)
    for source, path, name in ((theirs, "", "g/a"), (theirs["g"], "", "a"), (theirs["g/a"], "", ""),
                               (theirs, "g", "a")):
        made = zcore.copy(source, {}, path=path)
        assert np.array_equal(made[name] if name else made, np.arange(5))
        assert zcore.verify(source, path=path).n_arrays == 1
    assert zcore.copy([theirs["g/a"], zcore.ones(5, dtype="i4")], {}).shape == (2, 5)
    with pytest.raises(TypeError, match=r"found Array; pass its \.store, and path= its \.path"):
        zcore.open(theirs["g/a"])


def test_an_array_of_zcore_is_told_to_be_read(place):
    """Newer versions of zarr-python read it themselves."""
    z, theirs = zcore.ones(3, store=place), zarr.create_array({}, shape=3, chunks=3, dtype="f8")
    theirs[:] = z[:]
    try:
        theirs[:] = zcore.full(3, 7.0)
    except AttributeError as error:
        assert "z[...] reads" in str(error) and theirs[:].tolist() == [1] * 3
    else:
        assert theirs[:].tolist() == [7] * 3


def test_names_of_zarr_python_are_those_of_zcore():
    with pytest.raises(AttributeError, match=r"did you mean zcore\.open\?$"):
        zcore.zarr.open     # noqa: B018


def test_writes_of_both_lose_nothing(place):
    z = zcore.create_array(place, shape=200, chunks=200, dtype="i4")
    theirs = zcore.zarr.array(z)

    def write(array, n):
        for i in range(n, 200, 4):
            array[i] = i

    at_once(threading.Thread(target=write, args=(array, n)) for n, array in enumerate([z, theirs, z, theirs]))
    assert np.array_equal(z[...], np.arange(200))


def test_what_is_read(tmp_path):
    zcore.create_array(tmp_path / "old", data=np.arange(6), chunks=2, zarr_format="zmeta")
    assert zcore.zarr.array(zcore.open(tmp_path / "old", mode="r+"))[4] == 4
    zcore.asdf.write(tmp_path / "a.asdf", {"x": np.arange(3)})
    assert zcore.zarr.group(zcore.open(tmp_path / "a.asdf"))["x"][2] == 2


def test_what_is_no_open_node_of_zcore():
    g = zcore.create_group(zcore.MemoryStore())
    z = g.create_array("a", shape=2, dtype="i4")
    for call, given in ((zcore.zarr.array, np.arange(3)), (zcore.zarr.array, [1]), (zcore.zarr.array, g),
                        (zcore.zarr.group, z), (zcore.zarr.group, None)):
        with pytest.raises(TypeError, match=f"expected an open zcore.{call.__name__.title()}, found"):
            call(given)
