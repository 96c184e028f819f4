"""Files of other writers, with all their options crossed, read by zcore and by the writer's own library.

    python -m tests.interop.other_writers [WRITER ...]

prints a table, and each refusal and each wrong value with its reason. The exit code is 1 if something that has a
counterpart in zcore was refused, or if a value was wrong. Writers that are not installed are named. A combination that
the writer itself refuses, or cannot read, is no case. zarrita.js is fetched by npm into a temporary directory. netCDF4
and GDAL run in a process of their own: their HDF5 and that of h5py, which reads, fail in one process by chance.
"""
from __future__ import annotations

import base64
import collections
import contextlib
import importlib.metadata
import itertools
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import zcore

SHAPE, CHUNKS = (20, 26), (8, 10)     # netcdf-c refuses chunks that its compressors make no smaller
NUMBERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
# What zcore refuses by name, as the documentation says: reasons, by the way of reading.
RIGHTLY = {
    "copy": "references and sequences of HDF5|elements that are arrays|data type .*(16|32|128|256)|"
            "fields that are arrays|NetCDF-3|null dataspaces|opaque",
    "references": "has no counterpart in Zarr v2|elements of the HDF5 type|its elements are arrays|"
                  "does not know the data type|NetCDF-3|without elements|max_inlined",
    "open": "no codec is named|'fill_value': expected .* found (null|None)|"
            "'codecs': expected a codec from array to bytes",
    "asdf": "no type of NumPy",
}


def values_of(dtype, shape=SHAPE):
    """Return some values of a type, none of them the fill value of all writers."""
    dtype = np.dtype(dtype)
    numbers = np.arange(1, int(np.prod(shape)) + 1).reshape(shape) // 9 + 1
    if dtype.kind == "b":
        return numbers % 3 == 0
    if dtype.kind in "SU":
        return np.char.mod("%d", numbers).astype(dtype)
    return (numbers % 120).astype(dtype)


def is_same(found, expected):
    """Return whether arrays have the same shape and values; types may differ in byte order and padding alone."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OTSU" or found.dtype.kind in "OT":
        plain = [[item.decode() if isinstance(item, bytes) else str(item) for item in values.ravel().tolist()]
                 for values in (found, expected)]
        return plain[0] == plain[1]
    if expected.dtype.names is not None:     # the padding of fields has no meaning
        return found.dtype.names == expected.dtype.names and all(
            [is_same(found[name], expected[name]) for name in expected.dtype.names])
    if found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return False
    return bool(np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc"))


def apart():
    """Return an executor of one new process. It ends with the writer, which no other library then disturbs."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))


# Writers: each yields (ways to read, path, what the library itself reads: values by their names).

def netcdf4(folder):
    """netCDF4: NetCDF-4, classic and NetCDF-3 files, and Zarr stores."""
    filters = [{}, {"contiguous": True}]
    for name in (None, "zlib", "szip", "zstd", "bzip2", "blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_zlib",
                 "blosc_zstd"):
        for shuffle, fletcher in itertools.product((False, True), repeat=2):
            filters.append({"compression": name, "shuffle": shuffle, "fletcher32": fletcher, "chunksizes": CHUNKS})
    forms = [("NETCDF4", filters), ("NETCDF4_CLASSIC", filters[:6]), ("zarr", filters),
             ("nczarr", filters[:6])]
    forms += [(f"NETCDF3_{kind}", [{}]) for kind in ("CLASSIC", "64BIT_OFFSET", "64BIT_DATA")]
    importlib.metadata.version("netCDF4")     # ImportError if it is absent
    cases = [(form, *case) for form, options in forms
             for case in itertools.product(options, [*NUMBERS, "S1", str], (False, True), (False, True))]
    with apart() as process:
        for n, (form, chosen, dtype, unlimited, partly) in enumerate(cases):
            is_zarr = "zarr" in form
            path = f"{folder}/{n}.{'zarr' if is_zarr else 'nc'}"
            place = f"file://{path}#mode={form},file" if is_zarr else path
            how = "NETCDF4" if is_zarr else form, dtype, unlimited, partly, chosen
            try:
                expected = process.submit(_made_by_netcdf4, place, *how).result()
            except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, OSError):
                continue
            yield ("open",) if is_zarr else ("copy", "references"), path, expected
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def _made_by_netcdf4(place, form, dtype, unlimited, partly, options):
    """Make a file with variables of one type, and return what netCDF4 reads of it."""
    import netCDF4

    fills = [b"q", b"="] if dtype == "S1" else ["q", "fill", "x y", "é"] if dtype is str else [77]
    if dtype == "S1" and "nczarr" in place:     # else netcdf-c 4.10 cannot read what it has written
        fills.append(b"0")
    values = values_of("S1" if dtype == "S1" else "U3" if dtype is str else dtype)
    endians = ("native",) if dtype in ("S1", str) or "NETCDF3" in form else ("little", "big")
    if partly and "zarr" in place:      # netcdf-c 4.10 writes the fill value in the byte order of the machine
        endians = endians[:1]
    with netCDF4.Dataset(place, "w", format=form) as file:
        for name, length in zip("yx", SHAPE, strict=True):
            file.createDimension(name, None if unlimited and name == "y" else length)
        for i, (endian, fill) in enumerate(itertools.product(
                endians, [None, *fills] if partly else [None, False, *fills])):     # False: undefined
            variable = file.createVariable(f"v{i}", dtype, ("y", "x"), endian=endian, **options, fill_value=fill)
            variable.set_auto_mask(False)
            part = np.s_[:10, :12] if partly else np.s_[:, :]
            variable[part] = values[part].astype(object) if dtype is str else values[part]
    with netCDF4.Dataset(place) as file:
        file.set_auto_mask(False)
        expected = {name: variable[:] for name, variable in file.variables.items()}
    # netcdf-c 4.10 does not read back characters that it has shuffled in a Zarr store.
    return {name: found for name, found in expected.items() if is_same(found[part], values[part])}


def h5py(folder):
    """h5py: types, layouts and filters, also those of hdf5plugin."""
    import h5py

    filters = [{}, {"chunks": CHUNKS}, {"chunks": CHUNKS, "maxshape": (None, None)}]
    for name, shuffle, fletcher in itertools.product(("gzip", "lzf", "szip"), (False, True), (False, True)):
        filters.append({"chunks": CHUNKS, "compression": name, "shuffle": shuffle, "fletcher32": fletcher})
    filters += [{"chunks": CHUNKS, "shuffle": True}, {"chunks": CHUNKS, "fletcher32": True},
                {"chunks": CHUNKS, "scaleoffset": 0}]
    with contextlib.suppress(ImportError):
        import hdf5plugin

        for name, shuffle in itertools.product(("blosclz", "lz4", "lz4hc", "zlib", "zstd"), (0, 1, 2)):
            filters.append({"chunks": CHUNKS, **hdf5plugin.Blosc(cname=name, shuffle=shuffle)})
        filters += [{"chunks": CHUNKS, **one} for one in (hdf5plugin.Zstd(), hdf5plugin.LZ4(), hdf5plugin.Bitshuffle(),
                                                          hdf5plugin.BZip2(), hdf5plugin.Blosc2())]
    types = {name: name for name in [order + kind for order in "<>" for kind in [*NUMBERS, "f2", "c8", "c16"]]}
    types |= {"truth": "?", "bytes": "S3", "long": np.longdouble, "text": h5py.string_dtype(),
              "enum": h5py.enum_dtype({"a": 0, "b": 1}, "u1"), "fields": [("a", "<i4"), ("b", ">f8")], "opaque": "V4",
              "aligned": np.dtype([("a", "u1"), ("b", "f8")], align=True), "nested": [("a", "<i4", (2,)), ("b", "<f8")],
              "arrays": (("<i4", (2,)),), "lists": h5py.vlen_dtype("i4"), "references": h5py.ref_dtype}
    for libver, partly in (("earliest", False), ("latest", True)):
        path = f"{folder}/{libver}{partly}.h5"
        with h5py.File(path, "w", libver=libver) as file:
            for (name, dtype), (i, options) in itertools.product(types.items(), enumerate(filters)):
                if name in ("text", "lists", "references") and isinstance(options.get("compression"), int):
                    continue     # the filter blosc divides by zero
                dtype = dtype[0] if isinstance(dtype, tuple) else dtype
                with contextlib.suppress(ValueError, TypeError, OSError, RuntimeError):
                    shown = f"{name}_{i}".replace("<", "l").replace(">", "b")
                    dataset = file.create_dataset(shown, SHAPE, dtype, **options)
                    part = np.s_[:10, :12] if partly else np.s_[:, :]
                    kind = dataset.dtype
                    if name == "text":
                        dataset[part] = values_of("U3")[part].astype(object)
                    elif kind.names is None and kind.subdtype is None and kind.kind not in "OV":
                        dataset[part] = (values_of("u1") % 2 if name == "enum" else values_of(kind))[part]
                    elif kind.names is not None:
                        values = np.zeros(SHAPE, kind)
                        values["b"] = values_of("f8")
                        dataset[part] = values[part]
        with h5py.File(path) as file:
            expected = {}
            for name, dataset in file.items():
                with contextlib.suppress(OSError):
                    expected[name] = dataset.asstr()[()] if name.startswith("text") else dataset[()]
        yield ("copy", "references"), path, expected


def gdal(folder):
    """GDAL, by rasterio: Zarr of both formats, and NetCDF."""
    importlib.metadata.version("rasterio")
    rasterio_types = {name: np.dtype(name).name for name in [*NUMBERS, "c8", "c16"]}
    compressors = [{}] + [{"COMPRESS": name} for name in ("ZLIB", "GZIP", "LZMA", "ZSTD", "LZ4")] + [
        {"COMPRESS": "BLOSC", "BLOSC_CNAME": name, "BLOSC_SHUFFLE": shuffle}
        for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd") for shuffle in ("NONE", "BYTE", "BIT")]
    common = {"BLOCKSIZE": "8,10", "ARRAY_NAME": "a"}
    options = [{"FORMAT": form, "CHUNK_MEMORY_LAYOUT": order, **common, **compressor, **more}
               for form in ("ZARR_V2", "ZARR_V3") for order in "CF" for compressor in compressors
               for more in ({}, {"FILTER": "DELTA"}, {"DIM_SEPARATOR": "/"})]
    cases = [("Zarr", "zarr", one) for one in options] + [
        ("netCDF", "nc", {"FORMAT": form, "COMPRESS": name})
        for form in ("NC4", "NC4C") for name in ("NONE", "DEFLATE")]
    height, width = SHAPE
    with apart() as process:
        for n, ((driver, ending, chosen), (short, dtype), nodata) in enumerate(itertools.product(
                cases, rasterio_types.items(), (None, 77))):
            path = f"{folder}/{n}.{ending}"
            how = {"width": width, "height": height, "count": 1, "dtype": dtype, "nodata": nodata, **chosen}
            try:
                expected = process.submit(_made_by_gdal, path, driver, short, how).result()
            except Exception:
                continue
            name = "Band1" if driver == "netCDF" else "a" if os.path.exists(f"{path}/a") else str(n)
            if driver == "netCDF":      # from the south on
                expected = expected[::-1]
            yield ("copy", "references") if driver == "netCDF" else ("open",), path, {name: expected}
            shutil.rmtree(path, ignore_errors=True)


def _made_by_gdal(path, driver, dtype, options):
    """Make a file of one band, and return what GDAL reads of it."""
    import rasterio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with rasterio.open(path, "w", driver=driver, **options) as file:
            file.write(values_of(dtype)[None])
        with rasterio.open(path) as file:
            return file.read(1)


def z5py(folder):
    """z5py: Zarr of both formats."""
    import z5py
    import z5py.dataset

    n = 0
    for form, separator in ((2, "."), (2, "/"), (3, "/")):
        known = z5py.dataset.COMPRESSORS_ZARR if form == 2 else z5py.dataset.COMPRESSORS_ZARR_V3
        for compression, dtype, fill, shards in itertools.product(known, NUMBERS, (0, 7), (None, (16, 20))):
            n += 1
            path = f"{folder}/{n}.zarr"
            try:
                file = z5py.File(path, "a", use_zarr_format=True, dimension_separator=separator, zarr_format=form)
                how = {"shape": SHAPE, "dtype": np.dtype(dtype).name, "chunks": CHUNKS, "fillvalue": fill}
                how |= {} if shards is None else {"shards": shards}
                dataset = file.create_dataset("x", compression=compression, **how)
                dataset[:16, :19] = values_of(dtype)[:16, :19]
                expected = z5py.File(path, "r")["x"][:]
            except Exception:
                continue
            yield ("open",), path, {"x": expected}


def asdf(folder):
    """asdf: internal, inline and external blocks, all compressions."""
    import asdf

    n = 0
    for storage, compression, version, order in itertools.product(
            ("internal", "inline", "external"), (None, "zlib", "bzp2", "lz4"), ("1.5.0", "1.6.0"), "<>"):
        trees = {kind: values_of(order + kind) for kind in [*NUMBERS, "f2", "c8", "c16", "S3", "U3"]}
        trees |= {"truth": values_of("?"), "scalar": np.array(3.5), "empty": np.zeros((0, 3)),
                  "part": values_of("i4")[1::2, ::-1], "turned": values_of("f8").T,
                  "fields": np.array([(1, 2.5)], [("a", order + "i2"), ("b", order + "f8")])}
        for values in trees.values():
            n += 1
            path = f"{folder}/{n}.asdf"
            try:
                file = asdf.AsdfFile({"x": values}, version=version)
                file.write_to(path, all_array_storage=storage, all_array_compression=compression)
                with asdf.open(path, memmap=False) as file:
                    expected = np.array(file["x"])
            except Exception:
                continue     # asdf has no such type in that version, or not inline
            yield ("asdf", "open"), path, {"x": expected}


def zarrita(folder):
    """zarrita.js: types and codecs that it writes."""
    if shutil.which("npm") is None:
        raise ImportError("npm")
    script = os.path.join(os.path.dirname(__file__), "other_writers.mjs")
    shutil.copy(script, folder)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "zarrita@0.7"], cwd=folder, check=True)
    told = subprocess.run(["node", "other_writers.mjs", folder], cwd=folder, check=True, capture_output=True, text=True)
    for path, (dtype, shape, data) in json.loads(told.stdout).items():
        dtype = {"bool": "?"}.get(dtype, dtype)
        yield ("open",), f"{folder}/{path}", {"": np.frombuffer(base64.b64decode(data), dtype).reshape(shape)}


WRITERS = {"netCDF4": netcdf4, "h5py": h5py, "rasterio": gdal, "z5py": z5py, "asdf": asdf, "zarrita": zarrita}


# Reading by zcore

def opened(way, path):
    """Return (a function that reads by name, reasons for what is not there) for a file."""
    with contextlib.suppress(ImportError):
        import hdf5plugin  # noqa: F401
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if way == "copy":
            group = zcore.copy(path, zcore.MemoryStore())
        elif way == "references":
            group = zcore.open(zcore.references_from_hdf5(path, unsupported="skip"))
        elif way == "asdf":
            tree = zcore.asdf.open(path).tree
            return lambda name: np.asarray(tree[name]), []
        else:
            group = zcore.open(path)
    reasons = [str(warning.message) for warning in caught]
    return lambda name: (group[name] if name else group)[...], reasons


def reason_of(name, reasons):
    """Return the warning that names a member that is not there."""
    pattern = re.compile(rf"(?<![\w/]){re.escape(name)}(?!\w)")
    return next((text for text in reasons if pattern.search(text)), "without a word")


def judged(way, path, expected):
    """Yield (name, verdict, reason) for each value that the writer's library reads."""
    try:
        read, reasons = opened(way, path)
        fault = None
    except zcore.ZcoreError as exc:
        fault = exc
    for name, values in expected.items():
        try:
            if fault is not None:
                raise fault
            found = read(name)
        except (zcore.ZcoreError, KeyError) as exc:
            is_absent = isinstance(exc, zcore.NodeNotFoundError) and fault is None
            reason = reason_of(name, reasons) if is_absent else str(exc)
            # A long list of names says nothing of the reason.
            head = reason.partition(": ")[0] if "not complete without" in reason else reason
            yield name, "refused rightly" if re.search(RIGHTLY[way], head) else "refused wrongly", head
            continue
        if is_same(found, values):
            yield name, "read same", ""
        else:
            yield name, "wrong", f"{found!r:.200} for {values!r:.200}"


def without_names(reason):
    """Return a reason without names, places and numbers, so that equal ones are counted together."""
    return re.sub(r"\d+", "#", re.sub(r"^'[^']*' |<MemoryStore[^>]*> |/\S+: ", "", reason))[:200]


VERDICTS = ("read same", "refused rightly", "refused wrongly", "wrong")


def main(names):
    """Print the table; return the exit code."""
    rows, is_fine = [], True
    for label in names or WRITERS:
        counts = collections.Counter()
        reasons = collections.Counter()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                for ways, path, expected in WRITERS[label](folder):
                    for way in ways:
                        for name, verdict, reason in judged(way, path, expected):
                            counts[way, verdict] += 1
                            if verdict == "read same":
                                continue
                            reasons[verdict, way, without_names(reason)] += 1
                            if verdict != "refused rightly":
                                is_fine = False
                                print(f"{label}, {way}: {verdict}: {path} {name}: {reason}", file=sys.stderr)
            except ImportError as exc:
                print(f"{label} is absent: {exc}", file=sys.stderr)
                continue
        version = importlib.metadata.version(label) if label != "zarrita" else "0.7"
        for (verdict, way, reason), n in sorted(reasons.items()):
            print(f"{label}, {way}: {verdict}, {n} times: {reason}", file=sys.stderr)
        for way in dict.fromkeys(way for way, _ in counts):
            rows.append([f"{label} {version}", way, *[str(counts[way, verdict]) for verdict in VERDICTS]])
    print("| writer | read by | " + " | ".join(VERDICTS) + " |\n|---|---|" + "---:|" * len(VERDICTS))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
