"""The codec `zfp`, judged by zfpy."""
import builtins
import json

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.codecs.chain import codec_of
from zcore.errors import ChunkError, CodecError, MetadataError, UnsupportedError

MODES = [{"mode": "reversible"}, {"mode": "fixed_rate", "rate": 16}, {"mode": "fixed_rate", "rate": 10.5},
         {"mode": "fixed_precision", "precision": 19}, {"mode": "fixed_accuracy", "tolerance": 0.05}]
SMOOTH = np.sin(np.arange(8 * 9 * 10) / 50).reshape(8, 9, 10)


def judged(numbers, mode):
    zfpy = pytest.importorskip("zfpy")
    own = {name: value for name, value in mode.items() if name != "mode"}
    stored = zfpy.compress_numpy(np.ascontiguousarray(numbers), write_header=False, **own)
    return stored, zfpy._decompress(stored, zfpy.dtype_to_ztype(numbers.dtype), numbers.shape, **own)


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_streams_are_those_of_zfpy(mode, dtype):
    """V3-XC-09"""
    if dtype.startswith("int") and mode["mode"] == "fixed_accuracy":
        pytest.skip("zfp has no accuracy of integers")
    numbers = (SMOOTH * 1000 if dtype.startswith("int") else SMOOTH).astype(dtype)
    stored, expected = judged(numbers, mode)
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=numbers.shape, chunks=numbers.shape, dtype=dtype, checksum=False,
                               serializer={"name": "zfp", "configuration": mode}, compressors=None)
    array[...] = numbers
    assert store.get("c/0/0/0") == stored
    np.testing.assert_array_equal(array[...], expected)
    np.testing.assert_array_equal(array[2, 3:, ::2], expected[2, 3:, ::2])
    assert json.loads(store.get("zarr.json"))["codecs"] == [{"name": "zfp", "configuration": mode}]
    if mode["mode"] == "reversible":
        np.testing.assert_array_equal(array[...], numbers)


@pytest.mark.parametrize("shape, order", [((), None), ((7,), None), ((3, 5), (1, 0)), ((8, 9, 10), (2, 0, 1)),
                                          ((2, 3, 4, 5), None)], ids=str)
def test_shapes_and_transposes(shape, order):
    """V3-XC-09: a chunk without dimensions is one of length 1."""
    numbers = np.arange(np.prod(shape, dtype=int), dtype="f8").reshape(shape) / 7 + 1
    turned = numbers.transpose(order) if order else numbers
    stored, _ = judged(turned.reshape(turned.shape or (1,)), {"mode": "reversible"})
    store = zcore.MemoryStore()
    filters = None if order is None else {"name": "transpose", "configuration": {"order": list(order)}}
    array = zcore.create_array(store, shape=shape, chunks=shape, dtype=">f8" if order else "<f8", checksum=False,
                               filters=filters, serializer={"name": "zfp", "configuration": {"mode": "reversible"}},
                               compressors=None)
    array[...] = numbers
    assert store.get("/".join(["c"] + ["0"] * len(shape))) == stored
    np.testing.assert_array_equal(array[...], numbers)


def test_inside_shards_and_ahead_of_a_checksum():
    """V3-XC-09"""
    pytest.importorskip("zfpy")
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=(30, 30), shards=(20, 20), chunks=(5, 10), dtype="f4", checksum=True,
                               serializer={"name": "zfp", "configuration": {"mode": "reversible"}}, compressors=None)
    array[3:22, 4:] = expected = np.random.default_rng(0).standard_normal((19, 26)).astype("f4")
    np.testing.assert_array_equal(zcore.open(store)[3:22, 4:], expected)
    assert not array[22:].any()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_streams_that_end_too_early_touch_no_other_memory(mode):
    """zfp does not look for the end of its stream, and cannot know it, unless the rate is fixed."""
    stored, _ = judged(SMOOTH, mode)
    codec = codec_of("zfp", mode)
    for cut in (stored[:8], stored[:len(stored) // 2], b"\xff" * 100):
        if mode["mode"] == "fixed_rate":
            with pytest.raises(CodecError, match=f"of 'zfp' has {len(cut)} bytes, expected {len(stored)}"):
                codec.decode(cut, SMOOTH.dtype, SMOOTH.shape)
        else:
            assert codec.decode(cut, SMOOTH.dtype, SMOOTH.shape).shape == SMOOTH.shape
    for size in (0, 1, 100 * SMOOTH.nbytes):
        with pytest.raises(CodecError, match=f"the stream of 'zfp' has {size} bytes"):
            codec.decode(bytes(size), SMOOTH.dtype, SMOOTH.shape)


@pytest.mark.parametrize("shape", [(64,), (9, 30), (5, 6, 7), (4, 5, 6, 7)], ids=str)
@pytest.mark.parametrize("dtype, fewest", [("f4", 9), ("f8", 12)])
@pytest.mark.parametrize("rate", [0, 1e-9, 1, 2.2])
def test_blocks_of_a_small_rate_hold_their_exponent(shape, dtype, fewest, rate):
    """zfpy itself writes such a block outside its memory."""
    pytest.importorskip("zfpy")
    codec = codec_of("zfp", {"mode": "fixed_rate", "rate": rate})
    bits = max(fewest, int(4 ** len(shape) * rate + 0.5))
    n_blocks = np.prod([-(-length // 4) for length in shape])
    numbers = np.full(shape, 0.75, dtype)
    for _ in range(20):
        stored = codec.encode(numbers)
        assert len(stored) == -(-n_blocks * bits // 64) * 8
        assert np.abs(codec.decode(stored, numbers.dtype, shape) - numbers).max() <= 1
    with pytest.raises(ValueError, match="leaves no bit"):
        codec_of("zfp", {"mode": "fixed_rate", "rate": 1e-9}).encoded_nbytes(np.dtype("i4"), shape)


@each("configuration", [
    {}, {"mode": "lossless"}, {"mode": "fixed_rate"}, {"mode": "fixed_rate", "rate": "16"},
    {"mode": "reversible", "rate": 1}, {"mode": "fixed_rate", "rate": -1}, {"mode": "fixed_accuracy", "rate": 1},
    {"mode": "fixed_precision", "precision": 1.5}, {"mode": "fixed_precision", "precision": 0},
    {"mode": "reversible", "write_header": True},
    {"mode": "fixed_rate", "rate": True}], ids=str)
def test_other_parameters_are_refused(configuration):
    """V3-XC-09"""
    with pytest.raises((ValueError, TypeError)):
        codec_of("zfp", configuration)


def test_the_expert_mode_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="the mode 'expert' of 'zfp'") as caught:
        codec_of("zfp", {"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19, "minexp": -2})
    assert caught.value.feature == "zfp in expert mode"


@pytest.mark.parametrize("dtype, shape", [("i2", (4,)), ("u4", (4,)), ("f2", (4,)), ("c8", (4,)), ("f8", (2,) * 5)])
def test_what_zfp_does_not_take(dtype, shape):
    """V3-XC-09"""
    pytest.importorskip("zfpy")
    with pytest.raises((MetadataError, ValueError), match="'zfp' takes"):
        zcore.create_array(zcore.MemoryStore(), shape=shape, dtype=dtype, compressors=None,
                           serializer={"name": "zfp", "configuration": {"mode": "reversible"}})


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    original = builtins.__import__

    def without(name, *arguments):
        if name == "zfpy":
            raise ModuleNotFoundError("No module named 'zfpy'", name="zfpy")
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedError, match=r"the codec 'zfp' needs zfpy, which is not installed: .*zcore.*\[zfp\]"):
        codec_of("zfp", {"mode": "reversible"})


def test_a_damaged_object_is_named():
    pytest.importorskip("zfpy")
    store = zcore.MemoryStore()
    array = zcore.create_array(store, shape=4, dtype="f4", compressors=None, checksum=False,
                               serializer={"name": "zfp", "configuration": {"mode": "reversible"}})
    store.set("c/0", b"")
    with pytest.raises(ChunkError, match="c/0"):
        array[...]
