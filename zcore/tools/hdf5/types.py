"""Types and filters of HDF5 that Zarr v2 has as well, with the same bytes; others are refused by name."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import UnsupportedError

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    import numpy as np

_BLOSC_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_NAMES = {4: "szip", 5: "nbit", 6: "scaleoffset", 32000: "lzf", 32004: "lz4", 32008: "bitshuffle", 32013: "zfp"}
DEFLATE, SHUFFLE, FLETCHER32, BLOSC, ZSTD = 1, 2, 3, 32001, 32015
_COMPRESSORS = ("zlib", "blosc", "zstd")


def is_text(h5py: ModuleType, kind: Any) -> bool:
    """Return whether a type is text of varying length."""
    return kind.get_class() == h5py.h5t.STRING and kind.is_variable_str()


def check_type(h5py: ModuleType, kind: Any, dtype: np.dtype[Any]) -> None:
    """Raise UnsupportedError unless elements of an HDF5 type are, byte for byte, those of a NumPy type."""
    h5t = h5py.h5t
    family = kind.get_class()
    if family == h5t.BITFIELD:     # h5py does not have its precision
        is_same = any([kind == getattr(h5t, f"STD_B{8 * kind.get_size()}{order}", None) for order in ("LE", "BE")])
    elif family == h5t.INTEGER:
        is_same = kind.get_precision() == 8 * kind.get_size() and kind.get_offset() == 0
    elif family == h5t.FLOAT:
        is_same = dtype.kind == "f" and h5t.py_create(dtype) == kind
    elif family == h5t.STRING:
        # HDF5 drops the blanks of texts that are padded with blanks; those padded with NUL end at the first NUL.
        is_same = not kind.is_variable_str() and kind.get_strpad() != h5t.STR_SPACEPAD
    elif family == h5t.ENUM:
        check_type(h5py, kind.get_super(), dtype)
        is_same = True
    elif family == h5t.ARRAY and dtype.subdtype is not None:
        check_type(h5py, kind.get_super(), dtype.subdtype[0])
        is_same = True
    elif family == h5t.COMPOUND:
        n_bytes, is_same = 0, True
        for i in range(kind.get_nmembers()):
            part = kind.get_member_type(i)
            check_type(h5py, part, _real(dtype) if dtype.names is None else dtype[i])
            is_same = is_same and kind.get_member_offset(i) == n_bytes
            n_bytes += part.get_size()
        is_same = is_same and n_bytes == kind.get_size()
    else:
        is_same = False
    if not is_same or kind.get_size() != dtype.itemsize:
        raise UnsupportedError(f"elements of the HDF5 type {type(kind).__name__}, which h5py reads as {dtype}, are not "
                               "stored as Zarr v2 stores those of any type", feature="types of HDF5")


def _real(dtype):
    """Return the type of the parts of complex numbers, which are compounds in HDF5."""
    if dtype.kind != "c":
        raise UnsupportedError(f"a compound type that h5py reads as {dtype}", feature="types of HDF5")
    return dtype.type(0).real.dtype.newbyteorder(dtype.byteorder)


def filters_of(properties: Any, mask: int) -> tuple[list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Return the filters and the compressor, as Zarr v2 documents have them, of chunks with a mask.

    Parameters
    ----------
    properties : h5py.h5p.PropDCID
        Of a chunked dataset.
    mask : int
        Its bits are set for filters that these chunks were stored without.
    """
    configs = []
    for i in range(properties.get_nfilters()):
        code, _, values, name = properties.get_filter(i)
        if mask >> i & 1:
            continue
        config = _config(code, values)
        if config is None or (code == SHUFFLE and {one["id"] for one in configs} - {"shuffle", "fletcher32"}):
            name = _NAMES.get(code) or name.decode(errors="replace") or f"number {code}"
            raise UnsupportedError(f"the filter {name!r:.60} of HDF5 has no counterpart in Zarr v2"
                                   + (" at its place" if config else ""), feature=f"the filter {name} of HDF5")
        configs.append(config)
    compressor = configs.pop() if configs and configs[-1]["id"] in _COMPRESSORS else None
    return configs or None, compressor


def _config(code, values):
    if code == DEFLATE:
        return {"id": "zlib", "level": values[0] if values else 1}
    if code == SHUFFLE and values:
        return {"id": "shuffle", "elementsize": values[0]}
    if code == FLETCHER32:
        return {"id": "fletcher32"}
    if code == ZSTD:
        return {"id": "zstd", "level": values[0] if values else 3}
    if code == BLOSC and len(values) >= 7 and values[6] < len(_BLOSC_COMPRESSORS):
        return {"id": "blosc", "cname": _BLOSC_COMPRESSORS[values[6]], "clevel": values[4], "shuffle": values[5],
                "blocksize": 0}
    return None
