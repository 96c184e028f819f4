"""xarray's own tests of its Zarr backend, with zcore's store, engine and writer in the place of xarray's.

With ``ZCORE_SUITE_PLAIN=1`` the same tests run on what they were written for: what fails there is not zcore's failure.
"""
import contextlib
import os

import xarray
import zarr
from xarray.tests.test_backends import ZarrBase, create_tmp_file, default_zarr_format  # noqa: F401, a fixture of it

import zcore.xarray
import zcore.zarr

PLAIN = os.environ.get("ZCORE_SUITE_PLAIN") == "1"


class TestStore(ZarrBase):
    """xarray writes to `zcore.zarr.Store` and reads from it."""

    @contextlib.contextmanager
    def create_zarr_target(self):
        with create_tmp_file(suffix=".zarr") as place:
            yield zarr.storage.LocalStore(place) if PLAIN else zcore.zarr.Store(place, read_only=False)


class TestEngine(ZarrBase):
    """xarray writes a directory, and ``engine="zcore"`` reads it."""

    @contextlib.contextmanager
    def create_zarr_target(self):
        with create_tmp_file(suffix=".zarr") as place:
            yield place

    @contextlib.contextmanager
    def open(self, path, **keywords):
        if PLAIN:
            with super().open(path, **keywords) as ds:
                yield ds
            return
        options = dict(keywords.pop("backend_kwargs", None) or {}, **self.version_kwargs)
        with xarray.open_dataset(path, engine="zcore", **keywords, **options) as ds:
            yield ds


class TestWriter(TestEngine):
    """`zcore.xarray.to_zarr` writes a directory, and ``engine="zcore"`` reads it."""

    def save(self, dataset, store_target, **keywords):
        if PLAIN:
            return super().save(dataset, store_target, **keywords)
        zarr_format = zarr.config.get("default_zarr_format")
        return zcore.xarray.to_zarr(dataset, store_target, zarr_format=zarr_format, **keywords)
