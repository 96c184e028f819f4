"""PyYAML, which is needed for trees alone, and imported when there is one."""
from zcore.errors import Needing


def import_yaml():
    """Return the package `yaml`.

    Raises : UnsupportedError, if it is not installed; it names the extra.
    """
    with Needing("the trees of ASDF files need", "yaml", "asdf", "the trees of ASDF files", "PyYAML"):
        import yaml
    return yaml


def parser_of(yaml, text):
    """Return the parser of a text: that of libyaml where PyYAML was built with it."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)


def emitter_of(yaml):
    """Return the class that makes text of events, libyaml's as well."""
    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)
