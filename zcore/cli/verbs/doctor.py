"""List the installed extras, try a folder's file system, and name the extra that a file needs.

Of a folder each ability is tried in a folder that is removed afterwards: atomic replacement, locks, fsync. With --meet
the same command is run on two hosts at once, and says whether locks hold between them. Of a file, or a hierarchy, the
arrays that cannot be opened are listed, each with the extra that it needs. The exit code is 1 if anything is missing.

Examples:
  zcore doctor
  zcore doctor /scratch
  zcore doctor --meet /shared/scratch
  zcore doctor model.zarr
"""
from __future__ import annotations

import argparse
import os
import sys

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.cli.words import translated
from zcore.errors import Needing, PackageError, install_of
from zcore.text.printable import plural, printable

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from typing import Any

COLOURS = {"ok": "green", "absent": "yellow", "slower": "yellow", "unsafe": "yellow", "missing": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("path", nargs="?", metavar=location.METAVAR, help="folder to try, or array, group or file")
    parser.add_argument("--meet", action="store_true",
                        help="try locks between two hosts: the other one runs the same command for the same folder")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N",
                        help="how long to wait for the other host (default: 60)")


def run(arguments: argparse.Namespace) -> int:
    """Examine; returns 1 if something is missing."""
    found: dict[str, Any] = {"installed": _installed()}
    if arguments.meet and arguments.path is None:
        raise ValueError("--meet needs a folder that both hosts see")
    if arguments.path is not None:
        if os.path.isdir(arguments.path) and not _is_node(arguments.path):
            found.update(_examined(arguments))
        else:
            found["nodes"] = _nodes(arguments.path)
    is_whole = all(state != "missing" for rows in found.values() if isinstance(rows, list) for _, state, _ in rows)
    if arguments.json:
        machine.show({part: rows if isinstance(rows, str) else
                      [dict(zip(("name", "state", "what"), row, strict=True)) for row in rows]
                      for part, rows in found.items()})
    else:
        for part, rows in found.items():
            if isinstance(rows, str):
                print(f"{part}: {printable(rows)}")
                continue
            print(f"{part}:")
            for name, state, what in rows:
                print(f"  {painted(state, COLOURS[state])}{' ' * (8 - len(state))}{printable(name)}: {printable(what)}")
        if any(state == "absent" for _, state, _ in found["installed"]):
            print("An extra that is absent is no fault: you need it only for what its line says.")
    return 0 if is_whole else 1


def _installed():
    config = zcore.show_config(mode="dicts")
    settings = config["settings"]
    rows = [("zcore", "ok", f"{config['zcore']['version']}, Python {config['python']['version']}, NumPy "
                            f"{config['numpy']['version']}, {config['python']['platform']}"),
            ("settings", "ok", ", ".join(f"{name} {value}" for name, value in settings.items()))]
    for extra, (modules, brings) in EXTRAS.items():
        missing = [module for module in modules if not _is_there(module)]
        broken = [fault for module in modules if module not in missing and (fault := _fault(module))]
        if broken:
            rows.append((f"extra {extra}", "missing", f"{'; '.join(broken)}; for {brings}"))
        else:
            absent = f"{', '.join(missing)} not installed; for {brings} ({install_of(extra)})"
            rows.append((f"extra {extra}", "absent" if missing else "ok", absent if missing else brings))
    return rows + _other_copies()


def _other_copies():
    """Return a row for each further zcore that Python would find: which one it takes depends on the folder."""
    own, found = os.path.realpath(os.path.dirname(zcore.__file__)), {}
    for folder in sys.path:
        package = os.path.join(folder or os.getcwd(), "zcore")
        if os.path.isfile(os.path.join(package, "__init__.py")) and os.path.realpath(package) != own:
            found[os.path.realpath(package)] = folder or "this folder"
    return [("two copies", "unsafe", f"{own} is used, and {package} lies in {folder}, too: uninstall one of them, or "
                                     f"take {folder} off PYTHONPATH") for package, folder in found.items()]


# What can be imported if an extra is installed, and what it is for.
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "remote": (("obstore",), "URLs: s3://, gs://, az://, https://"),
    "references": (("jinja2",), "expressions in the templates of reference sets"),
    "parquet": (("pyarrow",), "reference sets in Parquet"),
    "hdf5": (("h5py",), "HDF5 and NetCDF-4 files"),
    "asdf": (("yaml",), "ASDF files"),
    "zarr": (("zarr",), "zcore inside zarr-python"),
    "xarray": (("xarray",), "the engine for xarray"),
    "dask": (("dask",), "arrays of dask"),
    "mpi": (("mpi4py",), "ranks that share arrays"),
    "numcodecs": (("numcodecs",), "codecs that zcore lacks"),
    "zfp": (("zfpy",), "the codec zfp"),
    "gzip": (("isal", "zlib_ng"), "faster gzip and zlib; if libdeflate is linked, for level 1 and in ASDF files"),
    "ml": (("ml_dtypes",), "bfloat16 and its kin"),
    "snappy": (("cramjam",), "chunks of 2016 that are compressed by snappy"),
    "plot": (("matplotlib",), "pictures in files"),
}

# The package of a module, where it has another name.
PACKAGES = {"dask": "'dask[array]'", "yaml": "PyYAML", "zlib_ng": "zlib-ng"}


def _is_there(module):
    from importlib.util import find_spec

    return find_spec(module) is not None


def _fault(module):
    """Return why an installed module cannot be imported, None if it can."""
    from importlib import import_module

    try:
        with Needing("", module, "", "", PACKAGES.get(module)):
            import_module(module)
    except PackageError as exc:
        return exc.message.lstrip()
    return None


def _is_node(path):
    try:
        location.opened(path)
    except zcore.NodeNotFoundError:
        return False
    except zcore.ZcoreError:
        pass
    return True


def _examined(arguments):
    from zcore.tools import folder

    if not arguments.meet:
        return {f"folder {arguments.path}": folder.examine(arguments.path)}
    print(f"waiting {arguments.seconds:.0f} seconds for the same command on another host", file=sys.stderr, flush=True)
    other, rows = folder.meet(arguments.path, arguments.seconds)
    return {"met": other, f"folder {arguments.path}, between hosts": rows}


def _nodes(path):
    from zcore.cli.verbs.nodes.ls import listed

    rows, n_nodes = [], 0
    try:
        for name, node in listed(path, None):
            n_nodes += 1
            if isinstance(node, Exception):
                rows.append((name, "missing", translated(str(node))))
    except zcore.ZcoreError as error:
        rows.append((path, "missing", translated(str(error))))
    return rows or [(path, "ok", f"{plural(n_nodes, 'node')} can be opened")]
