"""Types that NumPy lacks: their names, and values that they hold or do not hold."""
import subprocess
import sys
import types

import numpy as np
import pytest

import zcore
from tests.each import each
from zcore.errors import UnsupportedError
from zcore.formats.zarr_v3.fill import parse_fill, render_fill
from zcore.model.fill_value import fill_bytes, fill_scalar
from zcore.model.foreign_dtypes import foreign_dtype, foreign_name, is_foreign, is_foreign_name

pytest.importorskip("ml_dtypes", minversion="0.6")


@each(("name", "value", "raw"), [
    ("bfloat16", 1.5, b"\xc0\x3f"), ("bfloat16", "NaN", b"\xc0\x7f"), ("bfloat16", "-Infinity", b"\x80\xff"),
    ("bfloat16", 3, b"\x40\x40"), ("bfloat16", True, b"\x80\x3f"), ("bfloat16", -0.0, b"\x00\x80"),
    ("bfloat16", np.float32(1.5), b"\xc0\x3f"), ("bfloat16", None, b"\0\0"),
    ("int4", -8, b"\x08"), ("int4", 7, b"\x07"), ("uint2", 3, b"\x03"), ("int2", -2, b"\x02"),
    ("float8_e4m3", "NaN", b"\x7c"), ("float8_e3m4", "NaN", b"\x78"), ("float8_e5m2", "NaN", b"\x7e"),
    ("float8_e4m3fnuz", "NaN", b"\x80"), ("float8_e8m0fnu", "NaN", b"\xff"), ("float8_e8m0fnu", 1, b"\x7f"),
    ("float4_e2m1fn", 6, b"\x07"), ("complex_bfloat16", 1 - 2j, b"\x80\x3f\x00\xc0"),
    ("complex_float16", 1 - 2j, b"\x00\x3c\x00\xc0"),
])
def test_value_is_stored(name, value, raw):
    """V3-XDT-08, V3-XDT-09, V3-XDT-10"""
    dtype = foreign_dtype(name)
    assert is_foreign(dtype) and foreign_name(dtype) == name
    assert fill_bytes(dtype, value) == raw
    assert fill_bytes(dtype, fill_scalar(dtype, raw)) == raw


def test_big_endian_order():
    dtype = foreign_dtype("bfloat16", ">")
    assert fill_bytes(dtype, 1.5) == b"\x3f\xc0" and float(fill_scalar(dtype, b"\x3f\xc0")) == 1.5
    assert foreign_dtype("int4", ">") == foreign_dtype("int4")
    with pytest.raises(UnsupportedError, match="big-endian"):
        foreign_dtype("complex_bfloat16", ">")


@each(("name", "value"), [
    ("int4", 8), ("int4", -9), ("int4", 0.5), ("uint2", 4), ("uint2", -1), ("int2", "NaN"), ("bfloat16", 1e39),
    ("bfloat16", 2**2000), ("bfloat16", b"x"), ("bfloat16", "1.5"), ("bfloat16", 1j), ("float4_e2m1fn", 7),
    ("float4_e2m1fn", "NaN"), ("float4_e2m1fn", "Infinity"), ("float8_e8m0fnu", 0), ("float8_e8m0fnu", -1),
    ("complex_bfloat16", 1e39), ("complex_float16", 65520), ("float8_e5m2", []),
])
def test_value_that_the_type_does_not_hold(name, value):
    """V3-XDT-08, V3-XDT-10, V3-FV-03"""
    with pytest.raises(ValueError):
        fill_bytes(foreign_dtype(name), value)


@each(("name", "value", "raw", "written"), [
    ("bfloat16", "0x7fc0", b"\xc0\x7f", "NaN"), ("bfloat16", "0xffc1", b"\xc1\xff", "0xffc1"),
    ("bfloat16", 0.1, b"\xcd\x3d", 0.10009765625), ("int4", -1, b"\x0f", -1), ("uint4", 15, b"\x0f", 15),
    ("float8_e5m2", "0x7f", b"\x7f", "0x7f"), ("float8_e5m2", "Infinity", b"\x7c", "Infinity"),
    ("complex_bfloat16", [1.0, "0x7fc1"], b"\x80\x3f\xc1\x7f", [1.0, "0x7fc1"]),
])
def test_value_in_a_document(name, value, raw, written):
    """V3-XDT-08, V3-XDT-09, V3-XDT-10"""
    dtype = foreign_dtype(name)
    assert parse_fill(dtype, value)[1] == raw
    shown = render_fill(dtype, None, raw, name)
    assert shown == pytest.approx(written, rel=1e-3) if type(written) is float else shown == written
    assert parse_fill(dtype, shown)[1] == raw


@each(("name", "value"), [
    ("int4", 1.5), ("int4", True), ("int4", "0x1"), ("bfloat16", "0x7fc00000"), ("float4_e2m1fn", "NaN"),
    ("complex_bfloat16", 1.0),
])
def test_value_that_documents_cannot_have(name, value):
    with pytest.raises(ValueError):
        parse_fill(foreign_dtype(name), value)


def test_older_package(monkeypatch):
    old = types.ModuleType("ml_dtypes")
    old.__version__ = "0.1"
    monkeypatch.setitem(sys.modules, "ml_dtypes", old)
    assert is_foreign_name("int2") and not is_foreign_name("int3")
    with pytest.raises(UnsupportedError, match="newer ml_dtypes than 0.1"):
        foreign_dtype("int2")


def test_types_without_a_name_in_documents():
    import ml_dtypes

    with pytest.raises(UnsupportedError, match="int1"):
        foreign_name(np.dtype(ml_dtypes.int1))


@pytest.mark.parametrize("zarr_format", [2, "zmeta"])
def test_only_zarr_v3_has_these_types(tmp_path, zarr_format):
    """Other formats would store them as bytes, which read as another type."""
    dtype = foreign_dtype("bfloat16")
    for keywords in ({"shape": 2, "dtype": dtype}, {"data": np.ones(2, dtype)}):
        with pytest.raises(UnsupportedError, match="only Zarr v3 has the data type bfloat16"):
            zcore.create_array(tmp_path / "a", zarr_format=zarr_format, **keywords)
    assert not (tmp_path / "a").exists()


def test_a_name_means_the_same_before_its_first_use():
    """NumPy knows the names once `ml_dtypes` is imported; so the first call of a process was another error."""
    done = subprocess.run([sys.executable, "-c", """
import zcore
for zarr_format in (2, "zmeta"):
    try:
        zcore.create_array(zcore.MemoryStore(), shape=2, dtype="bfloat16", zarr_format=zarr_format)
    except zcore.UnsupportedError as error:
        print(error)
"""], capture_output=True, text=True, check=True)
    assert done.stdout == "only Zarr v3 has the data type bfloat16\n" * 2
    code = "import zcore; print(zcore.ones(2, dtype='f4').astype('bfloat16')[:])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[1 1]\n"
