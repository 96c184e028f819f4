"""A document that holds the place of an array while its elements are written, and that cannot be opened.

In a service, only the document excludes other processes, so one must exist before the first element is written. If it
could be opened, the array would read as fill values for elements that are not written yet. After an interrupted
creation it would do so forever. So members that every reader needs are put into mappings::

    {"zarr_format": {"being created, or cut off: overwrite=True replaces it": 3}, "shape": {"being created, …": [4]}, …}

Programs that create nodes find a document there. Programs that open it find an invalid document.
"""
import json

MARK = "being created, or cut off: overwrite=True replaces it"
# Documents of 2016 have no version, but a shape.
_MEMBERS = frozenset(("zarr_format", "shape"))


def unfinished(document: bytes) -> bytes:
    """Return a placeholder for a document, bytes of JSON."""
    said = json.loads(document)
    for name in _MEMBERS & said.keys():
        said[name] = {MARK: said[name]}
    return json.dumps(said, indent=2).encode()


def finished(raw: bytes) -> bytes | None:
    """Return the document for which `raw` is a placeholder, or None if it is none."""
    if MARK.encode() not in raw:
        return None
    try:
        said = json.loads(raw)
        marked = [name for name in _MEMBERS if isinstance(said.get(name), dict) and MARK in said[name]]
        for name in marked:
            said[name] = said[name][MARK]
        return json.dumps(said).encode() if marked else None
    except (ValueError, AttributeError, RecursionError):
        pass
    return None
