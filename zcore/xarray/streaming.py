"""Datasets that come one by one, such as the steps of a model: appended in the background, whole chunks at a time."""
from __future__ import annotations

from typing import TYPE_CHECKING

import zcore
from zcore.nodes.group_writer import GroupWriter
from zcore.xarray.backend import place_of
from zcore.xarray.writing import encoder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from xarray import Dataset

    from zcore.storage import StoreLike
    from zcore.typing import CacheSize


class DatasetWriter(GroupWriter):
    """Appends datasets along a dimension; made by `zcore.xarray.writer`. See `zcore.GroupWriter`.

    Metadata that were consolidated are so again after `flush` and `close`.
    """

    def __init__(self, group: zcore.Group, dim: str, queue: CacheSize | None) -> None:
        self._is_consolidated = group.metadata.consolidated is not None
        group.refresh()
        self._encoded = encoder(group, dim)
        super().__init__(group, dim, queue)

    def append(self, ds: Dataset) -> None:  # type: ignore[override]
        """Take a dataset with one or several steps of the dimension. It is encoded as the stored variables are.

        Parameters
        ----------
        ds : xarray.Dataset
            All stored variables with the dimension. Others are left out; coordinates must be those that are stored.

        Raises
        ------
        ValueError, TypeError, KeyError
            As `to_zarr` with ``append_dim``.
        WriterError
            See `zcore.GroupWriter.append`.
        """
        super().append(self._encoded(ds))

    def _refresh(self):
        super()._refresh()
        if self._is_consolidated and self.group.refresh().metadata.consolidated is None:
            zcore.consolidate_metadata(self.group.store, path=self.group.path)


def writer(store: StoreLike, dim: str, *, group: str | None = None, queue: CacheSize | None = None,
           storage_options: Mapping[str, Any] | None = None) -> DatasetWriter:
    """Return a `DatasetWriter`, which appends to the variables of a dataset that is there.

    Parameters
    ----------
    store : object
        What `zcore.open` takes for writing.
    dim : str
        Datasets follow each other along this dimension.
    group : str, optional
        Path of the group, the root by default.
    queue : int or str, optional
        See `zcore.Array.writer`; for all variables together.
    storage_options : dict, optional
        Options of `zcore.RemoteStore`.

    Raises
    ------
    NodeNotFoundError
        There is no such group, or no variable with the dimension.

    Examples
    --------
    >>> import numpy as np, xarray, zcore.xarray
    >>> def step(i):
    ...     return xarray.Dataset({"t2m": (("time", "x"), np.full((1, 3), i, "f4"))}, {"time": [i]})
    >>> store = zcore.MemoryStore()
    >>> _ = zcore.xarray.to_zarr(step(0), store, encoding={"t2m": {"chunks": (10, 3)}, "time": {"chunks": (100,)}})
    >>> with zcore.xarray.writer(store, "time") as w:
    ...     for i in range(1, 25):
    ...         w.append(step(i))
    >>> xarray.open_dataset(store, engine="zcore").sizes["time"]
    25
    """
    place = place_of(store, storage_options, read_only=False)
    return DatasetWriter(zcore.open_group(place, "r+", path=(group or "").strip("/")), dim, queue)
