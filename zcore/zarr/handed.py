"""An array or a group of zcore as one of zarr-python, of the same place."""
from __future__ import annotations

from typing import TYPE_CHECKING

import zarr
from zarr.storage import LocalStore

from zcore.nodes.array import Array
from zcore.nodes.group import Group
from zcore.stores.directory.store import DirectoryStore
from zcore.zarr.store import Store

if TYPE_CHECKING:
    from typing import Any

    import zcore

PIPELINE = {"codec_pipeline.path": "zcore.zarr.ZcoreCodecPipeline"}


def array(array: zcore.Array) -> zarr.Array[Any]:
    """Return a `zarr.Array` of the same place, for libraries that take nothing else.

    It reads and writes by zcore's kernel, under the locks of zcore. An array in an ASDF file or an archive, or of the
    format ``__zmeta__``, is read-only.

    >>> import numpy as np, zcore, zcore.zarr
    >>> z = zcore.create_array(zcore.MemoryStore(), data=np.arange(6), chunks=2)
    >>> zcore.zarr.array(z)[4:]
    array([4, 5])
    """
    with zarr.config.set(PIPELINE):
        return zarr.open_array(**_place_of(array, Array))


def group(group: zcore.Group) -> zarr.Group:
    """Return a `zarr.Group` of the same place, for libraries that take nothing else.

    zarr-python chooses the pipeline of a member when it opens it. So this sets zcore's for the process, as
    ``zarr.config.set`` does.

    >>> import zcore, zcore.zarr
    >>> g = zcore.create_group(zcore.MemoryStore(), attributes={"title": "t"})
    >>> zcore.zarr.group(g).attrs["title"]
    't'
    """
    place = _place_of(group, Group)
    zarr.config.set(PIPELINE)
    return zarr.open_group(**place)


def _place_of(node: zcore.Array | zcore.Group, kind: type) -> dict[str, Any]:
    if not isinstance(node, kind):
        raise TypeError(f"expected an open zcore.{kind.__name__}, found {type(node).__name__}")
    node.refresh()      # of what is gone, zarr-python would make the directory of its store
    is_shown = node.zarr_format not in (2, 3)
    read_only = node.read_only or is_shown
    store = (LocalStore(node.store.path, read_only=read_only) if type(node.store) is DirectoryStore and not is_shown
             else Store(node.store, read_only=read_only))
    return {"store": store, "path": node.path, "mode": "r" if read_only else "r+",
            "zarr_format": None if is_shown else node.zarr_format}
