"""Imports go down only: the table of layers below is the rule, and the sources are read to prove it."""
import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import zcore
from tests.each import each

PACKAGE = Path(__file__).resolve().parents[2] / "zcore"

# From top to bottom. A unit is a module or a subpackage right under zcore; units of one row never import each other.
LAYERS = (
    ("cli", "__main__", "embed", "mpi", "xarray", "dask", "zarr"),   # the command, and the bridges to other libraries
    ("tools",),
    ("__init__", "api", "dtype", "storage"),    # the public names
    ("nodes",),
    ("hierarchy",),
    ("engine",),
    ("formats", "codecs", "stores", "indexing"),
    ("model", "asdf", "blosc"),
    ("replacing", "ranges"),
    ("kernel", "config", "trust"),
    ("errors", "buffers", "capi", "deflate", "typing", "workers", "text", "descriptors"),
)
ROW = {unit: row for row, units in enumerate(LAYERS) for unit in units}
# Allowed all the same: (importer, unit), and why.
EXCEPTIONS = {
    ("__main__", "cli"),       # the command hands over to its verbs
}
# Allowed inside a function only: it costs nothing until it is called.
LAZY_EXCEPTIONS = {
    ("config", "kernel"),      # show_config asks the kernel for the versions of its libraries
    ("workers", "errors"),     # only a child that was forked in the middle of a call has this error
}
# The kernel and the model know no documents and no files' names.
FORBIDDEN_MODULES = {
    "kernel": {"json", "pathlib", "urllib", "yaml"},
    # What a document may point at is judged without asking anyone.
    "trust": {"http", "socket", "urllib"},
    "model": {"json", "io", "os", "pathlib", "shutil", "tempfile", "urllib", "yaml"},
}
# What makes an import slow and is needed by some calls only, unless NumPy has imported it already.
HEAVY = {
    "argparse", "asyncio", "concurrent", "concurrent.futures", "dataclasses", "decimal", "email", "fractions", "http",
    "importlib.metadata", "logging", "matplotlib", "multiprocessing", "numcodecs", "pathlib", "socket", "sqlite3",
    "ssl", "subprocess", "tempfile", "unittest", "urllib", "urllib.parse", "urllib.request", "xml", "zipfile",
}

CYTHON_IMPORT = re.compile(
    r"""^(?P<indent>[ \t]*)
        (?:from[ \t]+(?P<source>\.*[\w.]*)[ \t]+c?import[ \t]*(?:\((?P<many>[^)]*)\)|(?P<few>[^\n(]+))
          |c?import[ \t]+(?P<modules>[^\n]+))""",
    re.MULTILINE | re.VERBOSE,
)
CYTHON_NOISE = re.compile(r'"""(?:\\.|[^\\])*?"""' + r"|'''(?:\\.|[^\\])*?'''" + r"|\#[^\n]*", re.DOTALL)


def dotted_name(path):
    """Return the module name of a source file below the folder that holds the package."""
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def absolute(module, is_package, level, source):
    """Return the absolute name of what `from <level dots><source> import` names inside `module`."""
    if level == 0:
        return source
    parts = module.split(".")
    parts = parts[:len(parts) - level + is_package]
    return ".".join([*parts, source] if source else parts)


def names_of(text):
    """Return the names of an import list, without their aliases."""
    return [part.split()[0] for part in text.replace("\\\n", " ").split(",") if part.split()]


def python_imports(text, module, is_package):
    """Yield (name of an imported module, or of a name in it, whether a function body holds the import)."""
    def walk(node, lazy):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from ((alias.name, lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                source = absolute(module, is_package, child.level, child.module or "")
                yield from ((f"{source}.{alias.name}", lazy) for alias in child.names)
            else:
                yield from walk(child, lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from walk(ast.parse(text), False)


def cython_imports(text, module, is_package):
    """Yield the same of a `.pyx` or `.pxd`, where `cimport` counts as an import."""
    for found in CYTHON_IMPORT.finditer(CYTHON_NOISE.sub("", text)):
        lazy = bool(found["indent"])
        if found["modules"] is not None:
            yield from ((name, lazy) for name in names_of(found["modules"]))
        else:
            source = found["source"].lstrip(".")
            source = absolute(module, is_package, len(found["source"]) - len(source), source)
            yield from ((f"{source}.{name}", lazy) for name in names_of(found["many"] or found["few"]))


def unit_of(module):
    """Return the unit that a dotted name under zcore belongs to; a bare name of the package is `__init__`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROW else "__init__"


def violations(module, imports):
    """Return a sentence for each import that the rule forbids to `module`; `imports` as yielded above."""
    own = module.split(".")[1] if "." in module else "__init__"
    if own not in ROW:
        return [f"{module}: {own} has no place in LAYERS"]
    found = []
    for name, lazy in imports:
        root = name.split(".")[0]
        if root != "zcore":
            if root in FORBIDDEN_MODULES.get(own, ()):
                found.append(f"{module} imports {root}, which {own} must not know")
            continue
        unit = unit_of(name)
        downwards = ROW[unit] > ROW[own] or unit == own or unit == "config"
        excepted = (own, unit) in EXCEPTIONS or (lazy and (own, unit) in LAZY_EXCEPTIONS)
        if not (downwards or excepted):
            found.append(f"{module} imports {name}: {own} stands below or beside {unit}")
    return found


@functools.cache
def imports_of(path):
    """Return what one source file imports."""
    read = python_imports if path.suffix == ".py" else cython_imports
    return list(read(path.read_text(encoding="utf-8"), dotted_name(path), path.stem == "__init__"))


def sources():
    """Return every source file of the package."""
    return sorted(path for suffix in (".py", ".pyx", ".pxd") for path in PACKAGE.rglob(f"*{suffix}"))


def test_imports_go_down_only():
    assert [sentence for path in sources() for sentence in violations(dotted_name(path), imports_of(path))] == []


def folder_of(module, modules):
    """Return the folder of a module below the package; of a package's own name, that package."""
    while module not in modules:
        module = module.rpartition(".")[0]
    return module if modules[module].stem == "__init__" else module.rpartition(".")[0]


def cyclic(imports):
    """Return the keys that lead back to themselves in a dict of sets."""
    def reached(start):
        seen, pending = set(), [start]
        while pending:
            new = imports.get(pending.pop(), set()) - seen
            seen |= new
            pending += new
        return seen

    return [name for name in imports if name in reached(name)]


def test_folders_do_not_import_each_other_in_cycles():
    modules, imports = {dotted_name(path): path for path in sources()}, {}
    for module, path in modules.items():
        found = {folder_of(name, modules) for name, _ in imports_of(path) if name.split(".")[0] == "zcore"}
        folder = folder_of(module, modules)
        imports.setdefault(folder, set()).update(found - {folder, "zcore"})
    del imports["zcore"]
    assert cyclic(imports) == []
    assert cyclic({"stores": {"stores.remote"}, "stores.remote": {"stores"}, "model": {"kernel"}}) == [
        "stores", "stores.remote"]


def test_sources_and_their_imports_are_found():
    read = {dotted_name(path): {name for name, _ in imports_of(path)} for path in sources()}
    assert "zcore.errors" in read
    assert "zcore.kernel.status.Status" in read["zcore.kernel.codec.blosc_header"]
    assert "zcore.kernel.build_info.build_info" in read["zcore.config"]


@each(("module", "text", "culprit"), [
    ("zcore.formats.zmeta", "from zcore.stores.memory import MemoryStore", "zcore.stores.memory.MemoryStore"),
    ("zcore.formats.zmeta", "from zcore import codecs", "zcore.codecs"),
    ("zcore.stores.base", "import zcore.formats", "zcore.formats"),
    ("zcore.codecs.chain", "from ..stores import memory", "zcore.stores.memory"),
    ("zcore.codecs.chain", "def f():\n    import zcore.engine.array_binding", "zcore.engine.array_binding"),
    ("zcore.model.metadata", "from zcore.formats import zmeta", "zcore.formats.zmeta"),
    ("zcore.model.metadata", "import json", "json"),
    ("zcore.errors", "import zcore", "zcore"),
    ("zcore.errors", "from . import kernel", "zcore.kernel"),
    ("zcore.config", "from zcore.kernel.codec import compress", "zcore.kernel.codec.compress"),
    ("zcore.engine.array_binding", "from zcore.nodes.group import Group", "zcore.nodes.group.Group"),
    ("zcore.tools.copy.copy", "import numpy, zcore.cli", "zcore.cli"),
])
def test_python_violation_is_seen(module, text, culprit):
    found = violations(module, python_imports(text, module, False))
    assert len(found) == 1 and f"{module} imports {culprit}" in found[0]


@each(("text", "culprit"), [
    ("from zcore.model cimport chunk_keys", "zcore.model.chunk_keys"),
    ("from zcore.engine.array_binding import (\n    Plan,  # a reason\n)", "zcore.engine.array_binding.Plan"),
    ("cimport zcore.codecs.chain as c", "zcore.codecs.chain"),
    ("from ...stores cimport base", "zcore.stores.base"),
    ("def f():\n    import json\n", "json"),
    ("from libc.stdint cimport int64_t\nimport zcore\n", "zcore"),
])
def test_cython_violation_is_seen(text, culprit):
    found = violations("zcore.kernel.plan.plan", cython_imports(text, "zcore.kernel.plan.plan", False))
    assert len(found) == 1 and f"zcore.kernel.plan.plan imports {culprit}" in found[0]


def test_what_the_rule_allows_is_no_violation():
    python = "import os\nfrom zcore import config, errors\nfrom zcore.model.dtypes import parse\nfrom . import layout\n"
    assert violations("zcore.codecs.chain", python_imports(python, "zcore.codecs.chain", False)) == []
    lazy = "def show():\n    from zcore.kernel import compress\n"
    assert violations("zcore.config", python_imports(lazy, "zcore.config", False)) == []
    cython = '"""\nimport json\n"""\n# import json\nfrom zcore.kernel.status cimport Status\nfrom . cimport grid\n'
    assert violations("zcore.kernel.plan.plan", cython_imports(cython, "zcore.kernel.plan.plan", False)) == []


def test_unit_without_a_place_is_seen():
    assert violations("zcore.utils", []) == ["zcore.utils: utils has no place in LAYERS"]


def heavy_modules_of(statement):
    """Return the modules of `HEAVY` that `statement` brings into a process that has imported NumPy."""
    code = f"import numpy, sys; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return HEAVY.intersection(done.stdout.split())


def test_import_of_zcore_brings_nothing_heavy():
    # With what the first array that is opened brings in.
    assert heavy_modules_of("import zcore; zcore.open, zcore.create_array, zcore.Group, zcore.ZcoreError") == set()


def test_import_of_zcore_alone_brings_next_to_nothing():
    code = "import sys, zcore; print(*[name for name in sys.modules if name.startswith(('zcore', 'numpy', 'json'))])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        "zcore", "zcore.kernel", "zcore.kernel.build_info", "zcore.kernel.cython_shared"}


def names_in_stub(path):
    """Return the names that a stub imports, each with its module."""
    statements = ast.parse(path.read_text(encoding="utf-8")).body
    return {alias.asname or alias.name: statement.module for statement in statements
            if isinstance(statement, ast.ImportFrom) for alias in statement.names}


def test_public_names_of_asdf_are_the_same_for_type_checkers():
    modules = {name: f"zcore.asdf.{module}" for name, module in zcore.asdf._MODULE_OF.items()}
    assert names_in_stub(PACKAGE / "asdf" / "__init__.pyi") == {**modules, "file_layout": "zcore.asdf"}
    assert zcore.asdf.layout is zcore.asdf.file_layout


def test_public_names_are_the_same_for_type_checkers():
    found = names_in_stub(PACKAGE / "__init__.pyi")
    assert found == {**zcore._MODULE_OF, **dict.fromkeys(zcore._MODULES, "zcore")}
    assert zcore.__all__ == sorted(found)
    assert [name for name, module in zcore._MODULE_OF.items()
            if name != "__version__" and getattr(zcore, name).__module__ != module] == []


def test_heavy_import_is_seen():
    assert {"asyncio", "urllib.request"} <= heavy_modules_of("import asyncio, urllib.request")


def test_import_of_asdf_waits_for_its_first_use():
    code = ("import sys, zcore.asdf; assert 'numpy' not in sys.modules and 'yaml' not in sys.modules; zcore.asdf.open;"
            "assert 'yaml' not in sys.modules; [getattr(zcore.asdf, name) for name in zcore.asdf.__all__]")
    subprocess.run([sys.executable, "-c", code], check=True)
    assert heavy_modules_of("import zcore.asdf; zcore.asdf.open") == set()


def test_no_class_has_the_name_of_another():
    """But `zcore.zarr.Store`, which is a store of zarr-python."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in (".py", ".pyx"):
            for name in re.findall(r"^(?:cdef )?class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
                found.setdefault(name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {
        "Store": ["stores/base.py", "zarr/store.py"]}
