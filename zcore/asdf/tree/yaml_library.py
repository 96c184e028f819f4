"""PyYAML, which is needed for trees alone, and imported when there is one."""
from __future__ import annotations

from typing import TYPE_CHECKING

from zcore.errors import Needing

if TYPE_CHECKING:
    from typing import Any


def import_yaml() -> Any:
    """Return the package `yaml`.

    Raises : UnsupportedError, if it is not installed; it names the extra.
    """
    with Needing("the trees of ASDF files need", "yaml", "asdf", "the trees of ASDF files", "PyYAML"):
        import yaml
    return yaml


def parser_of(yaml: Any, text: bytes) -> Any:
    """Return the parser of a text: that of libyaml where PyYAML was built with it."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)


def emitter_of(yaml: Any) -> type:
    """Return the class that makes text of events, libyaml's as well."""
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)
