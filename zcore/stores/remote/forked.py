"""obstore in a forked child, where the threads of its compiled module do not run.

They belong to the module, which starts them once in a process and waits for them forever in a child. So the child
loads the module again from a copy of its file: to the dynamic linker, and to obstore, this is another module, which
starts threads of its own. Modules that the program itself has imported stay as they are.
"""
from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from tempfile import NamedTemporaryFile
from types import ModuleType

from zcore.errors import StoreError

_COMPILED = "obstore._obstore"


def loaded_again() -> ModuleType:
    """Return another obstore than the one in `sys.modules`, with threads of its own.

    Raises
    ------
    StoreError
        The system does not load a copy.
    """
    source = sys.modules[_COMPILED].__file__
    problems = []
    for copied in (_in_memory, _in_file):
        try:
            with copied(source) as path:
                return _loaded_from(path)
        except (OSError, ImportError, AttributeError) as exc:
            problems.append(str(exc))
    raise StoreError(f"obstore was loaded before this process was forked, and no copy of it can be loaded in the child "
                     f"({'; '.join(problems):.400}): start processes by 'spawn' or 'forkserver'")


@contextlib.contextmanager
def _in_memory(source):
    """Give the path of a copy in memory, which needs no directory from which programs may be loaded."""
    fd = os.memfd_create("obstore")
    try:
        with open(source, "rb") as file, open(fd, "wb", closefd=False) as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
        # Not /proc/self: for the linker a path that it has loaded before is the same module, even that of a parent that
        # is a child itself.
        yield f"/proc/{os.getpid()}/fd/{fd}"
    finally:
        os.close(fd)


@contextlib.contextmanager
def _in_file(source):
    with open(source, "rb") as file, NamedTemporaryFile(suffix=".so") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield copy.name


def _loaded_from(path):
    """Import obstore with the compiled module at a path, and leave `sys.modules` as it was."""
    before = _taken_out()
    finder = _Finder(path)
    sys.meta_path.insert(0, finder)
    try:
        importlib.import_module("obstore.store")
        return sys.modules["obstore"]
    finally:
        sys.meta_path.remove(finder)
        _taken_out()
        sys.modules.update(before)


def _taken_out():
    """Remove all modules of obstore from `sys.modules`, and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "obstore"]
    return {name: sys.modules.pop(name) for name in names}


class _Finder:
    """Finds the compiled module at another path."""

    def __init__(self, path):
        self._path = path

    def find_spec(self, name, path=None, target=None) -> ModuleSpec | None:
        if name != _COMPILED:
            return None
        return spec_from_file_location(name, self._path, loader=ExtensionFileLoader(name, self._path))
