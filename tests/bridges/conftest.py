"""What the tests of bridges share: processes that need not import again what takes them seconds."""
import multiprocessing

import pytest


@pytest.fixture(scope="session")
def forks():
    """A context of `multiprocessing` whose processes are forks of one that has imported the libraries, and no more.

    That one has the environment of when it was started.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["zcore.xarray", "zcore.dask", "zcore.zarr", "dask.multiprocessing"])
    return context
