"""The common base of arrays and groups: handles on a node of a store."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.engine.node_binding import NodeBinding
from zcore.model.metadata import unshared
from zcore.nodes.attributes import Attributes
from zcore.stores.base import StorePath
from zcore.text.tried_names import advising

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal, Self

    from zcore.model.metadata import ArrayMetadata, GroupMetadata
    from zcore.stores.base import Store


class Node:
    """A handle on one node.

    Two handles are equal if they lead to the same path of equal stores, whatever metadata each has read. Copies and
    pickles lead to the same node and keep the metadata that the handle has read. They do not look at the store before
    their first use. Only a `MemoryStore` is copied with a handle, by `copy.deepcopy` and by pickle.
    """

    __slots__ = ("_binding", "__weakref__")

    def __init__(self, binding: Any) -> None:
        if not isinstance(binding, NodeBinding):
            raise TypeError(f"zcore.open and zcore.create_array make a zcore.{type(self).__name__}; it is not made of "
                            f"a {type(binding).__name__}")
        self._binding = binding

    @property
    def metadata(self) -> ArrayMetadata | GroupMetadata:
        """The metadata in the node's document as of the last look, an `ArrayMetadata` or `GroupMetadata`: a copy."""
        return unshared(self._binding.metadata)

    @property
    def attrs(self) -> Attributes:
        """The user's attributes, a mutable mapping on the store: `zcore.nodes.attributes.Attributes`."""
        return Attributes(self._binding)

    @advising
    def update_attributes(self, attributes: Mapping[str, Any]) -> Self:
        """Set several attributes in one write; return the handle."""
        self.attrs.update(attributes)
        return self

    @property
    def store(self) -> Store:
        """The store that holds the node."""
        return self._binding.store

    @property
    def path(self) -> str:
        """Path in the store, ``""`` at its root."""
        return self._binding.path

    @property
    def store_path(self) -> StorePath:
        """`store` and `path` together, as zarr-python has them."""
        return StorePath(self.store, self.path)

    @property
    def name(self) -> str:
        """Path with a leading ``/``."""
        return "/" + self._binding.path

    @property
    def basename(self) -> str:
        """Last part of the path."""
        return self._binding.path.rpartition("/")[2]

    @property
    def zarr_format(self) -> Literal[3, 2, "zmeta"]:
        """Format of the node: 3, 2 or ``"zmeta"``."""
        return self._binding.format.name

    @property
    def read_only(self) -> bool:
        """Whether changes are refused."""
        return self._binding.options.read_only or self._binding.store.read_only

    def refresh(self) -> Self:
        """Read the node's document again, because another writer may have changed it. Return the handle.

        Raises : NodeNotFoundError, if the node is gone; MetadataError, if the document breaks a rule.
        """
        self._binding.reload()
        return self

    def close(self) -> None:
        """Finish the archive that `zcore.open` or `zcore.create_array` has made for this handle.

        Other handles have nothing to close: every call completes its own writes.

        Raises : StoreError, if the archive cannot be finished.
        """
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Close the handle. After an error no archive is made."""
        handle = getattr(self.store, "opened_for", None)
        if handle is not None and handle() is self:
            self.store.__exit__(*exc_info)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.path == other.path and self.store == other.store

    def __hash__(self) -> int:
        return hash((self.store, self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._binding,)

    def __copy__(self) -> Self:
        make, arguments = self._binding.__reduce__()
        return type(self)(make(*arguments))     # a resize of one is none of the other

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return dask's token, which equal arrays share: the place, and the document as it was read last."""
        binding = self._binding
        return "zcore", type(self).__name__, binding.store._token, binding.path, binding.view.raw, binding.view.identity

    def __repr__(self) -> str:
        place = f"{self.store.label}/{self.path}".rstrip("/") or "/"
        return (f"<zcore.{type(self).__name__} {place!r}{self._described()}, format {self.zarr_format}"
                f"{', read-only' if self.read_only else ''}>")

    def _described(self):
        """Return the text of a repr between the place and the format."""
        return ""
