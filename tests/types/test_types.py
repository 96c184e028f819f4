"""Programs of users, which `.ci/check_types.py` gives to mypy and pyright: they are run here, so that they are true.

And what type checkers are told twice: keywords that functions pass on, and names of compiled modules.
"""
import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import zcore
from tests.each import each
from zcore.nodes import keywords

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "zcore"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_"))
STUBS = sorted(path for path in PACKAGE.rglob("*.pyi") if path.stem != "__init__")


@pytest.mark.parametrize("program", PROGRAMS)
def test_program_does_what_it_says(program, tmp_path):
    if program == "bridges":
        for package in ("dask", "xarray", "zarr"):
            pytest.importorskip(package)
    if program == "asdf_files":
        pytest.importorskip("yaml")
    importlib.import_module(f"tests.types.{program}").main(tmp_path)


def annotations_of(function):
    """Return the annotations of a function's keywords, as they are written."""
    return {name: parameter.annotation for name, parameter in inspect.signature(function).parameters.items()}


def members_of(kind):
    """Return the annotations of a TypedDict, as they are written; those that it inherits are among them."""
    return {name: annotation.__forward_arg__ for name, annotation in kind.__annotations__.items()}


@pytest.mark.parametrize(("kind", "function", "others"), [
    (keywords.CreateKeywords, zcore.create_array, {"store"}),
    (keywords.OpenArrayKeywords, zcore.open, {"store", "mode"}),
    (keywords.OpenGroupKeywords, zcore.open_group, {"store", "mode"}),
    (keywords.GroupKeywords, zcore.create_group, {"store", "path", "fsync", "storage_options"}),
])
def test_keywords_that_are_passed_on_are_those_of_the_function(kind, function, others):
    expected = {name: annotation for name, annotation in annotations_of(function).items() if name not in others}
    assert members_of(kind) == expected


def names_in(body):
    """Return the public names that statements define, each with what defines it."""
    found = {}
    for statement in body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.AnnAssign):
            found[statement.target.id] = statement
    return {name: statement for name, statement in found.items() if not name.startswith("_")}


def public_of(holder, module):
    """Return the public names that a compiled module or class has of its own."""
    has_fields = isinstance(holder, type) and issubclass(holder, tuple)     # theirs is `collections`, by Python 3.13
    return {name for name in vars(holder) if not name.startswith("_") and not inspect.ismodule(getattr(holder, name))
            and (has_fields or getattr(getattr(holder, name), "__module__", module) in (module, None))}


def parameters_in_source(holder, name):
    """Return the parameters of a function of a compiled module or class, as its source has them."""
    is_class = isinstance(holder, type)
    path = PACKAGE.parent / ((holder.__module__ if is_class else holder.__name__).replace(".", "/") + ".pyx")
    source = path.read_text(encoding="utf-8")
    if is_class:
        source = re.search(rf"^cdef class {holder.__name__}\b.*?^(?=\S|\Z)", source, re.M | re.S)[0]
    listed = re.search(rf"^ *def {name}\((.*?)\):", source, re.M | re.S)[1]
    names = [re.split(r" not None|=", each)[0].split()[-1] for each in listed.split(",") if each]
    return [name for name in names if name not in ("*", "/", "cls")]


def wrong_parameters(holder, found):
    """Return the functions of a compiled module or class whose parameters the stub has otherwise, with both."""
    wrong = {}
    for name, statement in found.items():
        if isinstance(statement, ast.FunctionDef) and callable(getattr(holder, name)):
            given = statement.args
            told = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if any([ast.unparse(decorator) == "classmethod" for decorator in statement.decorator_list]):
                told = told[1:]
            has = parameters_in_source(holder, name)
            if told != has:
                wrong[name] = told, has
    return wrong


@each("path", STUBS, ids=lambda path: path.stem)
def test_stub_names_what_the_compiled_module_has(path):
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    module = importlib.import_module(name)
    found = names_in(ast.parse(path.read_text(encoding="utf-8")).body)
    assert set(found) == public_of(module, name)
    assert wrong_parameters(module, found) == {}
    for kind, statement in found.items():
        if isinstance(statement, ast.ClassDef) and not issubclass(getattr(module, kind), BaseException):
            members = names_in(statement.body)
            assert set(members) == public_of(getattr(module, kind), name)
            assert wrong_parameters(getattr(module, kind), members) == {}
            assert [{"NamedTuple": "tuple"}.get(base.id, base.id) for base in statement.bases] == [
                base.__name__ for base in getattr(module, kind).__bases__ if base is not object]


def test_wrong_parameters_are_seen():
    table = importlib.import_module("zcore.kernel.refs.table").ReferenceTable
    stub = ast.parse("def target(self, j): ...\ndef remove(self, key): ...")
    assert wrong_parameters(table, names_in(stub.body)) == {"target": (["self", "j"], ["self", "i"])}
