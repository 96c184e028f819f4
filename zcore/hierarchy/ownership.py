"""Tells which objects are a node's own: others, such as a README, are never erased with it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from zcore.model.metadata import ArrayMetadata

if TYPE_CHECKING:
    from zcore.formats.base import Format
    from zcore.model.metadata import GroupMetadata

    Metadata: TypeAlias = ArrayMetadata | GroupMetadata | None


def chunk_role(name: str, metadata: Metadata) -> Literal["chunk", "directory"] | None:
    """Return whether a name, relative to a node, is that of a chunk, or of a directory with chunks; else None."""
    if isinstance(metadata, ArrayMetadata):
        if metadata.chunk_keys.decode(name, metadata.ndim) is not None:
            return "chunk"
        if metadata.chunk_keys.leads_to_chunks(name, metadata.ndim):
            return "directory"
    return None


def documents_beside(format: Format) -> list[str]:
    """Return the names of the documents that a node may have beside the one that describes it.

    One of them may be that of a reference set, see `consolidated.is_of_set`.
    """
    return [name for name in (format.attributes_document, format.consolidated_document) if name is not None]


def role_of(name: str, document: str, format: Format,
            metadata: Metadata) -> Literal["document", "chunk", "directory", "remains"] | None:
    """Return what an object or a directory is to a node; None if it does not belong to the node.

    Remains, which only go with the node, are a copy of metadata beside an array, and what is no chunk but lies in a
    directory that the format has for chunks.

    Parameters
    ----------
    name : str
        Relative to the node.
    document : str
        Name of the document that describes the node.
    format : Format
    metadata : ArrayMetadata, GroupMetadata or None
        None: they are damaged.
    """
    is_array, folder = isinstance(metadata, ArrayMetadata), format.chunk_directory
    if name == document or name == format.attributes_document:
        return "document"
    if name == format.consolidated_document:
        return "remains" if is_array else "document"
    return chunk_role(name, metadata) or (
        "remains" if is_array and folder is not None and f"{name}/".startswith(f"{folder}/") else None)
