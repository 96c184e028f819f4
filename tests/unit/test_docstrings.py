"""What is public says what it is, and each list of parameters is that of the signature."""
import importlib
import inspect
import pkgutil
import re

import zcore
from tests.each import each
from zcore.codecs.base import Codec
from zcore.nodes.astype import Casted
from zcore.nodes.attributes import Attributes

LIST = re.compile(r"^(?:Other )?Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL)


def public_classes():
    found = [getattr(zcore, name) for name in zcore.__all__]
    found += [getattr(zcore.codecs, name) for name in zcore.codecs.__all__]
    return {cls for cls in [*found, Attributes, Casted] if inspect.isclass(cls)}


def public_members():
    """Yield (name, what it is) of all that zcore names, and of the methods and properties of its classes."""
    for name in zcore.__all__:
        if not name.startswith("__"):
            yield name, getattr(zcore, name)
    for cls in sorted(public_classes(), key=str):
        own = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "zcore"]
        for name in sorted({name for base in own for name in vars(base) if not name.startswith("_")}):
            member = inspect.getattr_static(cls, name)
            if isinstance(member, property) or callable(getattr(cls, name, None)):
                yield f"{cls.__name__}.{name}", member if isinstance(member, property) else getattr(cls, name)


def functions():
    """Yield (name, function or class) of all modules of the package that are Python and need no iohub."""
    for module in pkgutil.walk_packages(zcore.__path__, "zcore."):
        if ".kernel" in module.name or module.name.endswith("__main__") or module.name == "zcore.zarr.iohub":
            continue
        for name, member in vars(importlib.import_module(module.name)).items():
            if getattr(member, "__module__", None) != module.name:
                continue
            if inspect.isclass(member):
                yield f"{module.name}.{name}", member
                for below, method in vars(member).items():
                    if inspect.isfunction(method):
                        yield f"{module.name}.{name}.{below}", method
            elif inspect.isfunction(member):
                yield f"{module.name}.{name}", member


def listed(text):
    """Return the names of a section "Parameters" of numpydoc, without the stars of ``*args``; None without one."""
    found = LIST.search(inspect.cleandoc(text or ""))
    if found is None:
        return None
    heads = [line.partition(" : ")[0] for line in found[1].splitlines() if line[:1].strip()]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


PUBLIC = dict(public_members())


@each("name", PUBLIC)
def test_what_is_public_has_a_docstring(name):
    """Its first line is a sentence, or leads to what follows."""
    text = inspect.getdoc(PUBLIC[name])
    assert text and text.split("\n", 1)[0].endswith((".", ":"))


def test_a_list_of_parameters_is_that_of_the_signature():
    wrong = {}
    n_lists = 0
    for name, function in functions():
        names = listed(function.__doc__)
        if names is not None and not (inspect.isclass(function) and issubclass(function, (Exception, Codec))):
            n_lists += 1
            parameters = [parameter for parameter in inspect.signature(function).parameters
                          if parameter not in ("self", "cls")]
            if sorted(names) != sorted(parameters):
                wrong[name] = (names, parameters)
    assert n_lists > 50
    assert wrong == {}
