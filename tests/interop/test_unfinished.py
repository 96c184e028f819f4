"""A document that holds the place of an array during its creation: other libraries find a node, and cannot open it."""
import numpy as np
import pytest

import zcore
from zcore.formats import NODE_DOCUMENTS
from zcore.hierarchy.unfinished import unfinished

zarr = pytest.importorskip("zarr", minversion="3")


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_zarr_python(tmp_path, zarr_format):
    zcore.create_array(tmp_path, data=np.arange(4), chunks=2, zarr_format=zarr_format)
    document = tmp_path / NODE_DOCUMENTS[zarr_format][0]
    document.write_bytes(unfinished(document.read_bytes()))
    for opened in (zarr.open_array, zarr.open):
        with pytest.raises(ValueError, match="zarr_format"):
            opened(tmp_path, mode="r")
    with pytest.raises(zarr.errors.ContainsArrayError):
        zarr.create_array(tmp_path, shape=4, dtype="i4", zarr_format=zarr_format)
    with pytest.raises(zarr.errors.ContainsArrayError):
        zarr.create_group(tmp_path, zarr_format=zarr_format)
