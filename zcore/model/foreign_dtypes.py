"""Numbers that NumPy does not have itself: bfloat16, the small floats, integers of 2 and 4 bits, and complex of these.

The package `ml_dtypes` gives NumPy such types; it is imported when the first of them is met. An item has one byte, of
which fewer than 8 bits may mean something, or the bytes of its components.
"""
import numpy as np

from zcore.errors import UnsupportedError, not_installed

# Name in documents (zarr-extensions, "data-types") -> name in ml_dtypes.
_NAMES = {
    name: name for name in (
        "bfloat16", "int2", "int4", "uint2", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4",
        "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
        "float8_e8m0fnu",
    )
} | {"complex_bfloat16": "bcomplex32", "complex_float16": "complex32"}
_DOCUMENT_NAMES = {theirs: name for name, theirs in _NAMES.items()}


def is_foreign_name(name):
    """Return whether `name` is one of these types, as documents spell it."""
    return name in _NAMES


def is_foreign(dtype):
    """Return whether `dtype` is one of these types (NumPy says of most that they are void)."""
    return dtype.isbuiltin == 2


def foreign_name(dtype):
    """Return the name of one of these types, as documents spell it.

    Raises : UnsupportedError, if documents have no name for it.
    """
    name = _DOCUMENT_NAMES.get(dtype.type.__name__)
    if name is None:
        raise UnsupportedError(f"zcore does not know the data type {dtype.name}", feature=f"data type {dtype.name}")
    return name


def foreign_dtype(name, order="<"):
    """Return the type of a name, of which `is_foreign_name` is true, with its items in byte order `order`.

    Raises
    ------
    UnsupportedError
        If `ml_dtypes` is not installed or does not have it, or for complex items in big-endian order: it swaps the
        components with the bytes.
    """
    try:
        import ml_dtypes
    except ImportError as exc:
        raise not_installed(f"the data type {name!r} needs", "ml_dtypes", "ml", "ml_dtypes") from exc
    scalar = getattr(ml_dtypes, _NAMES[name], None)
    if scalar is None:
        raise UnsupportedError(
            f"the data type {name!r} needs a newer ml_dtypes than {ml_dtypes.__version__}", feature="ml_dtypes"
        )
    dtype = np.dtype(scalar)
    if order == ">" and dtype.itemsize > 1:
        if name.startswith("complex"):
            raise UnsupportedError(f"{name!r} in big-endian order", feature=f"big-endian {name}")
        return dtype.newbyteorder(">")
    return dtype


def component(dtype):
    """Return the type of the real part of one of the complex types, None if `dtype` is no complex type."""
    if dtype.kind != "W":
        return None
    return np.dtype("<f2") if foreign_name(dtype) == "complex_float16" else foreign_dtype("bfloat16")


def foreign_bytes(dtype, number):
    """Return the bytes of an int or float as an item of `dtype`, which is no complex type.

    Raises : ValueError, if the type does not hold it: out of range, a fraction in an integer, NaN where there is none.
    """
    name = foreign_name(dtype)
    with np.errstate(all="ignore"):
        item = np.array(float(number)).astype(dtype)
    held = float(item)
    if name.startswith(("int", "uint")):
        fits = held == number
    elif number - number == 0:
        import ml_dtypes

        fits = held - held == 0 and abs(number) <= float(ml_dtypes.finfo(dtype.newbyteorder("=")).max)
    else:
        fits = held == number or (held != held and number != number)
    if not fits:
        raise ValueError(f"data type {name} cannot hold {number}")
    return item.tobytes()
