"""Extension objects of Zarr v3 documents: a name, and a configuration where it needs one.

Zarr v3 core, "Extensions": ``"N"`` and ``{"name": "N"}`` mean the same; other members than `name`, `configuration` and
`must_understand` are mistakes. The short form is read everywhere, and written for data types alone: other readers
refuse it elsewhere.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import UnsupportedError
from zcore.formats.json_documents import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_MEMBERS = frozenset(("name", "configuration", "must_understand"))


def parse_extension(value: Any) -> tuple[str, dict[str, Any]]:
    """Return `(name, configuration)` of an extension object; a configuration that is absent is empty.

    Raises : ValueError, if it is no such object; UnsupportedError, for the form in drafts before 2023.
    """
    if type(value) is str:
        return value, {}
    if type(value) is not dict:
        raise ValueError(f"expected a name, or an object with the member 'name', found {shown(value)}")
    if "fallback" in value or "extension" in value:
        raise UnsupportedError("an extension in the form of a draft of Zarr v3", feature="drafts of Zarr v3")
    if type(value.get("name")) is not str:
        raise ValueError(f"expected a member 'name' that is a string, found {shown(value)}")
    if not value.keys() <= _MEMBERS:
        raise ValueError(f"{value['name']!r:.60}: unknown member {min(value.keys() - _MEMBERS)!r:.60}")
    if type(value.get("must_understand", True)) is not bool:
        raise ValueError(f"{value['name']!r:.60}: expected true or false as 'must_understand', found "
                         f"{shown(value['must_understand'])}")
    configuration = value.get("configuration", {})
    if type(configuration) is not dict:
        raise ValueError(f"{value['name']!r:.60}: expected an object as 'configuration', found {shown(configuration)}")
    return value["name"], configuration


def render_extension(name: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object for an extension.

    An empty configuration is left out, except for codecs of numcodecs, where zarr-python expects it.
    """
    if configuration or name.startswith("numcodecs."):
        return {"name": name, "configuration": configuration}
    return {"name": name}


def check_members(name: str, configuration: Mapping[str, Any], required: Iterable[str],
                  optional: Iterable[str] = ()) -> None:
    """Check that a configuration has all `required` members, and besides only `optional` ones.

    An unknown member may change the meaning of the others, so it is an error.
    """
    for member in required:
        if member not in configuration:
            raise ValueError(f"{name!r} needs the member {member!r} in its configuration")
    unknown = configuration.keys() - set(required) - set(optional)
    if unknown:
        raise ValueError(f"{name!r} has an unknown member {min(unknown)!r:.60} in its configuration")


def is_optional(value: object) -> bool:
    """Return whether readers may ignore an unknown part of a document."""
    return type(value) is dict and value.get("must_understand") is False
