"""Make, check and expand reference sets, which point to bytes in other files.

make writes a set of an array or group, or of an HDF5 file (extra "hdf5"): its chunks stay where they are. expand prints
a set with its templates and generators expanded, or writes it to a file. check tests whether every file that a set
points to exists and is long enough; each problem is a line with the key, and the exit code is 1 then. check reads no
elements: verify does that.

Examples:
  zcore refs make data.zarr --out data.json
  zcore refs make forecast.nc --out forecast.json
  zcore refs make 2016-*.nc --along time --out year.json
  zcore refs check forecast.json
  zcore refs expand forecast.json --out plain.json
"""
from __future__ import annotations

import argparse
import os
import re

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.words import translated
from zcore.text.printable import plural, printable

ACTIONS = ("make", "check", "expand")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("action", choices=ACTIONS, metavar="ACTION", help=f"one of {', '.join(ACTIONS)}")
    parser.add_argument("set", metavar="SET", nargs="+", help="a reference set; for make, an array, group or HDF5 "
                                                              "file, or several with --along")
    parser.add_argument("--along", metavar="NAME", help="join the arrays of all sources along the dimension of "
                                                        "that name")
    parser.add_argument("--out", metavar="FILE", help="file to write (default of expand: the standard output)")
    parser.add_argument("--skip", action="store_true", help="make: leave out members of an HDF5 file that no set can "
                                                            "hold")
    parser.add_argument("--allow", action="append", default=[], metavar="PLACE",
                        help="a directory or URL that the set may point to beside its own directory; may be given "
                             "several times")


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says; returns 1 when a check finds something."""
    from zcore.stores import openers

    if arguments.out is not None:
        openers.check_file(arguments.out, "a reference set", ".json", needs_ending=True)
    if arguments.action == "make":
        return _make(arguments)
    if len(arguments.set) > 1:
        raise ValueError(f"{arguments.action} takes one set, found {len(arguments.set)}")
    arguments.set = arguments.set[0]
    allowed = [os.path.dirname(os.path.abspath(arguments.set)), *arguments.allow] if arguments.allow else None
    store = zcore.ReferenceStore(arguments.set, allowed=allowed)
    if arguments.action == "check":
        return _check(arguments, store)
    if arguments.out is not None:
        store.save(arguments.out)
    else:
        # A reference set is JSON, also without --json.
        machine.show({"version": 1, "refs": store.to_v0()})
    return 0


def _make(arguments):
    if arguments.out is None:
        raise ValueError("make needs the name of the set by --out: URLs are relative to where it lies")
    if arguments.along is not None:
        store = zcore.references([_nodes_of(source, arguments.skip) for source in arguments.set], along=arguments.along)
    elif len(arguments.set) > 1:
        raise ValueError(f"{len(arguments.set)} sources are joined by --along NAME")
    elif isinstance(store := _nodes_of(arguments.set[0], arguments.skip), zcore.Array | zcore.Group):
        store = zcore.references(store)
    store.save(arguments.out)
    if arguments.json:
        machine.show({"set": arguments.out, "references": len(store.to_v0())})
    return 0


def _nodes_of(source, skip):
    """Return a node, or the reference set of an HDF5 file."""
    from zcore.stores import openers

    store, path = location.located(source)
    if openers.kind_of(store) is not openers.HDF5:
        return location.opened(source, with_files=False)
    if path:
        raise ValueError(f"{source}: a set is made of the whole file, {store}")
    return zcore.references_from_hdf5(store, unsupported="skip" if skip else "raise")


def _check(arguments, store):
    references = store.to_v0()
    problems = list(_problems(store, references))
    targets = {found[0] for found in references.values() if isinstance(found, list)}
    if arguments.json:
        machine.show({"set": arguments.set, "ok": not problems, "references": len(references),
                      "targets": sorted(targets), "problems": problems})
    else:
        for problem in problems:
            print(f"{printable(problem['key'])}: {printable(problem['what'])}")
        print(f"{printable(arguments.set)}: {plural(len(references), 'reference')} to "
              f"{plural(len(targets), 'file')}, {plural(len(problems), 'problem') if problems else 'ok'}")
    return 1 if problems else 0


def _problems(store, references):
    """Iterate over references that cannot be read, a dict each; of every file the furthest byte is tried first."""
    keys = {}
    for key, found in references.items():
        if isinstance(found, list):
            keys.setdefault(found[0], []).append(key)
    for of_target in keys.values():
        try:
            store.get(max(of_target, key=lambda key: sum(references[key][1:])), (None, 1))
        except zcore.ZcoreError:
            for key in of_target:
                try:
                    store.get(key, (None, 1))
                except zcore.ZcoreError as error:
                    # The one verb that has such an option.
                    yield {"key": key, "what": translated(re.sub(
                        r"allowed=\['(.*)'\]", r"--allow \1", str(error)))}
