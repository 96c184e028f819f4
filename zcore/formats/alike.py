"""Arrays of a group are often alike: their documents differ in shape and attributes alone. The rest is parsed once."""
from __future__ import annotations

import marshal
from contextlib import suppress
from typing import TYPE_CHECKING

from zcore.errors import noted, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from zcore.model.metadata import ArrayMetadata

_MAX_KEPT = 64
_MAX_NBYTES = 1 << 16     # of what is kept of one document

_kept: dict[bytes, ArrayMetadata] = {}


def alike(members: Mapping[str, Any], attributes: Mapping[str, Any] | None,
          parse: Callable[[], ArrayMetadata]) -> ArrayMetadata:
    """Return ``parse()``, the metadata of an array from the `members` of its document.

    If another array had the same members except for "shape" and "attributes", its metadata are taken with this shape
    and these attributes. They share all their parts, so what is made of these is found again, too.
    """
    shape = members.get("shape")
    if type(shape) is not list:
        return parse()
    # Unlike a comparison it tells 1 from True and 0.0 from -0.0.
    key = marshal.dumps([len(shape), attributes is None, {name: value for name, value in members.items()
                                                         if name not in ("shape", "attributes")}], 2)
    known = _kept.get(key)
    if known is not None:
        with suppress(TypeError, ValueError):     # the parser says more
            return known.resized(shape, attributes)
    with noted() as notes:
        metadata = parse()
    for note in notes:
        warn(note)
    # A dimension of no length may change the meaning of other members.
    if not notes and metadata.edges is None and 0 not in shape and len(key) <= _MAX_NBYTES:
        if len(_kept) >= _MAX_KEPT:
            _kept.clear()
        _kept[key] = metadata.resized(metadata.shape, attributes and {})
    return metadata
