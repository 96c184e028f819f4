"""Datasets of xarray by `engine="zcore"`, by its own engine "zarr" and by kerchunk's: the same calls, the same files.

The engines take turns in a random order in each round. Every result is compared with the data. `lost` counts what is
lost when chunks of dask share chunks of the store.
"""
import json
import os
import random
import statistics
import tempfile
import time
import warnings
from base64 import b64encode
from collections import namedtuple

import numpy as np

# `times`: {engine: [seconds]}
Row = namedtuple("Row", ("workload", "times"))


def _made(top, quick):
    """Write the datasets, and return their values."""
    import h5py
    import xarray

    import zcore

    rng = np.random.default_rng(0)
    small = {f"v{i}": (("time", "y", "x"), rng.random((10, 20, 30), "f4"), {"units": "K"}) for i in range(17)}
    small = xarray.Dataset(small, {"time": np.arange(10), "y": np.arange(20.0), "x": np.arange(30.0)})
    for zarr_format in (2, 3):
        for consolidated in (True, False):
            small.to_zarr(f"{top}/{zarr_format}{consolidated}", zarr_format=zarr_format, consolidated=consolidated)
    n_times = 50 if quick else 2000
    values = rng.integers(0, 1000, (n_times, 128, 128), "i4")
    # Of whole numbers, without a fill value: so that no engine has to mask.
    series = zcore.open_group(f"{top}/series", "w", zarr_format=2)
    series.create_array("v", data=values, chunks=(1, 64, 64), fill_value=None,
                        attributes={"_ARRAY_DIMENSIONS": ["time", "y", "x"]})
    with h5py.File(f"{top}/series.nc", "w") as file:
        made = file.create_dataset("v", data=values, chunks=(1, 64, 64), compression="gzip", compression_opts=1)
        for name, scale in (("time", n_times), ("y", 128), ("x", 128)):
            file[name] = np.arange(scale)
            file[name].make_scale(name)
            made.dims[("time", "y", "x").index(name)].attach_scale(file[name])
    references = zcore.references_from_hdf5(f"{top}/series.nc")
    references.save(f"{top}/zcore.json")
    # fsspec takes relative URLs for those of the current directory.
    with open(f"{top}/kerchunk.json", "w", encoding="utf-8") as file:
        json.dump(references.to_v0(absolute=True), file)
    for n in _sizes(quick):
        _make_sets(top, n)
    return small, values


def _sizes(quick):
    """How many chunks the reference sets have that are only opened."""
    return (1000,) if quick else (1000, 10_000, 100_000)


def _make_sets(top, n):
    """Write the same references as JSON of version 1, with a template in each URL, and in Parquet."""
    from kerchunk.df import refs_to_dataframe

    def document(shape, chunks):
        return json.dumps({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": "<i4", "compressor": None,
                           "filters": None, "fill_value": None, "order": "C"})

    def dimensions(*names):
        return json.dumps({"_ARRAY_DIMENSIONS": names})

    def references(place):
        return {".zgroup": '{"zarr_format":2}', "v/.zarray": document([n, 64, 64], [1, 64, 64]),
                "v/.zattrs": dimensions("time", "y", "x"), "time/.zarray": document([n], [n]),
                "time/.zattrs": dimensions("time"), "time/0": "base64:" + b64encode(np.arange(n, dtype="<i4")).decode(),
                **{f"v/{i}.0.0": [f"{place}/data.bin", 16384 * i, 16384] for i in range(n)}}

    for name, document_of in (("json", {"version": 1, "refs": references(top)}),
                              ("template", {"version": 1, "templates": {"u": top}, "refs": references("{{u}}")})):
        with open(f"{top}/{name}{n}.json", "w", encoding="utf-8") as file:
            json.dump(document_of, file)
    os.mkdir(f"{top}/{n}.parq")
    refs_to_dataframe(references(top), f"{top}/{n}.parq")


def _engines(names):
    """Return functions that open a place, by the names of the engines."""
    import xarray

    # Without the protocol, fsspec looks for it in any reference, and fails if that one has its data in itself.
    kerchunk = {"open_dataset_options": {"chunks": None}, "storage_options": {"remote_protocol": "file"}}
    keywords = {"zarr": {"consolidated": False}, "kerchunk": kerchunk, "zcore": {}}
    return {name: lambda place, name=name, **more: xarray.open_dataset(
        place, engine=name, **{**keywords[name], **more}) for name in names}


def _workloads(top, sizes, small, values):
    """Yield (workload, {engine: function}, expected values)."""
    both = _engines(("zcore", "zarr"))
    for zarr_format in (3, 2):
        for consolidated in (True, False):
            place = f"{top}/{zarr_format}{consolidated}"
            yield (f"open 20 variables, v{zarr_format}{', consolidated' if consolidated else ''}",
                   {engine: lambda opened=opened, place=place, consolidated=consolidated: opened(
                       place, consolidated=consolidated)["x"].values for engine, opened in both.items()},
                   small["x"].values)
    opened = {engine: opened(f"{top}/3False", cache=False) for engine, opened in both.items()}
    yield ("read 17 small variables",
           {engine: lambda ds=ds: [ds[name].values for name in small.data_vars] for engine, ds in opened.items()},
           [small[name].values for name in small.data_vars])
    point = {"y": 70, "x": 5}
    yield ("time series through chunks of 16 KB",
           {engine: lambda opened=opened: opened(f"{top}/series", cache=False)["v"].isel(point).values
            for engine, opened in both.items()}, values[:, 70, 5])
    by_references = _engines(("zcore", "kerchunk"))
    for n in sizes:
        for what, place in (("JSON", f"{top}/json{n}.json"), ("JSON, templates", f"{top}/template{n}.json"),
                            ("Parquet", f"{top}/{n}.parq")):
            yield (f"open {n} references, {what}",
                   {engine: lambda opened=opened, place=place: opened(place)["time"].values
                    for engine, opened in by_references.items()}, np.arange(n))
    yield (f"open a reference set of {4 * len(values)} chunks",
           {engine: lambda opened=opened, engine=engine: opened(f"{top}/{engine}.json")["v"].shape
            for engine, opened in by_references.items()}, values.shape)
    yield ("open a reference set and read a time series",
           {engine: lambda opened=opened, engine=engine: opened(f"{top}/{engine}.json")["v"].isel(point).values
            for engine, opened in by_references.items()}, values[:, 70, 5])


def measure(repeats=9, quick=False):
    """Return a list of `Row`.

    Raises : ValueError, if an engine returns other values than were written.
    """
    rows = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as top, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for workload, works, expected in _workloads(top, _sizes(quick), *_made(top, quick)):
            times = {name: [] for name in works}
            for _ in range(repeats):
                for name in random.sample(list(works), len(works)):
                    start = time.perf_counter()
                    result = works[name]()
                    times[name].append(time.perf_counter() - start)
                    if not np.array_equal(result, expected):
                        raise ValueError(f"{workload}: {name} returned other values")
            rows.append(Row(workload, times))
    return rows


def lost(n=1_000_000, chunk=7001, piece=1000, n_threads=8):
    """Return how many of `n` elements `zcore.xarray.to_zarr` and `Dataset.to_zarr` lose as dask shares chunks."""
    import dask
    import xarray

    from zcore.xarray import to_zarr

    ds = xarray.Dataset({"v": ("x", np.arange(n) + 1)}).chunk(x=piece)
    encoding = {"v": {"chunks": (chunk,)}}
    found = {}
    with (tempfile.TemporaryDirectory(dir="/dev/shm") as top, warnings.catch_warnings(),
            dask.config.set(scheduler="threads", num_workers=n_threads)):
        warnings.simplefilter("ignore")
        to_zarr(ds, f"{top}/zcore", encoding=encoding)
        ds.to_zarr(f"{top}/zarr", encoding=encoding, safe_chunks=False)
        for name in ("zcore", "zarr"):
            values = xarray.open_dataset(f"{top}/{name}", engine="zcore")["v"].values
            found[name] = int((values != np.arange(n) + 1).sum())
    return found


def render(rows, losses):
    """Return the rows as Markdown: minimum and median of each engine, and how many times zcore's they are."""
    lines = ["| minimum, median, ms | zcore | peer | | peer / zcore |", "|---|---|---|---|---|"]
    for row in rows:
        cells, found = [], []
        for name in sorted(row.times, key="zcore".__ne__):
            found.append((min(row.times[name]), statistics.median(row.times[name])))
            cells.append(f"{found[-1][0] * 1e3:.2f}, {found[-1][1] * 1e3:.2f}")
        ratios = ", ".join([f"{peer / own:.1f}" for own, peer in zip(*found, strict=True)])
        lines.append(f"| {row.workload} | {cells[0]} | {cells[1]} | {max(set(row.times) - {'zcore'})} | {ratios} |")
    lines.append(f"| elements lost of 10^6, 8 threads of dask | {losses['zcore']} | {losses['zarr']} | zarr | |")
    return "\n".join(lines)
