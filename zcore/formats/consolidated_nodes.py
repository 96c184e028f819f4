"""The nodes in consolidated metadata, as a mapping. It is the same for all formats."""
from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zcore.model.metadata import ArrayMetadata, GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class ConsolidatedNodes(Mapping[str, ArrayMetadata | GroupMetadata]):
    """The nodes below a group: `ArrayMetadata` and `GroupMetadata` by their path relative to it.

    The `consolidated` of a group in it are the nodes below that group. A lookup raises MetadataError or
    UnsupportedError as opening the node would.

    Parameters
    ----------
    documents : dict
        The copied documents of each node, by its path relative to the outermost group.
    parse : callable
        ``parse(path)`` returns their metadata.
    document_of : callable
        ``document_of(path)`` returns the name of the node's document, its bytes, and the attributes if they have a
        document of their own, else None.
    paths : list of str, optional
        The sorted keys of `documents`, if they are known.
    prefix : str
        Of this group, relative to the outermost one.
    """

    __slots__ = ("_documents", "_parse", "_document_of", "_paths", "_prefix", "_start", "_stop")

    def __init__(self, documents: Mapping[str, Any], parse: Callable[[str], ArrayMetadata | GroupMetadata],
                 document_of: Callable[[str], tuple[str, bytes, dict[str, Any] | None]], paths: list[str] | None = None,
                 prefix: str = "") -> None:
        # Sorted, so the nodes below a group are a range.
        paths = sorted(documents) if paths is None else paths
        self._documents = documents
        self._parse = parse
        self._document_of = document_of
        self._paths = paths
        self._prefix = prefix
        # The group itself, whose path is empty, is not below it.
        self._start = bisect_left(paths, prefix or "\0")
        self._stop = bisect_left(paths, prefix[:-1] + "0") if prefix else len(paths)  # "0" comes right after "/"

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[str]:
        skipped = len(self._prefix)
        return (path[skipped:] for path in self._paths[self._start:self._stop])

    def __contains__(self, path: object) -> bool:
        return type(path) is str and path != "" and self._prefix + path in self._documents

    def __getitem__(self, path: str) -> ArrayMetadata | GroupMetadata:
        if path not in self:
            raise KeyError(path)
        node = self._parse(self._prefix + path)
        return node.replace(consolidated=self.below(path)) if type(node) is GroupMetadata else node

    @property
    def metadata(self) -> ConsolidatedNodes:
        """Itself: in zarr-python the mapping is an attribute."""
        return self

    def below(self, path: str) -> ConsolidatedNodes:
        """Return the nodes below a group, a `ConsolidatedNodes`."""
        return ConsolidatedNodes(self._documents, self._parse, self._document_of, self._paths,
                                 f"{self._prefix}{path}/")

    def document_of(self, path: str) -> tuple[str, bytes, dict[str, Any] | None]:
        """Return (name of the document, its bytes, attributes or None) of a node, as opening the node would read them.

        Raises : MetadataError, if the attributes are damaged.
        """
        return self._document_of(self._prefix + path)

    def documents(self, path: str) -> dict[str, Any]:
        """Return the copied documents of a node, unparsed."""
        return self._documents[self._prefix + path]

    def __repr__(self) -> str:
        return f"ConsolidatedNodes({list(self)!r:.200})"
