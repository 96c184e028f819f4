"""Read all of a store, and report damage.

Documents are checked against the rules of their formats, consolidated metadata against the documents, and every object
is read and decoded, in parallel. Each problem is a line with its kind, the key, and what was expected and found.
Nothing is changed without --repair. The exit code is 1 if a problem remains. Of several paths, one that cannot be
opened is reported, and the others are verified.

Examples:
  zcore verify data.zarr
  zcore verify --repair data.zarr
  zcore verify --repair-kind left-over --repair-kind "stale copy" data.zarr
  zcore verify --json archive.zip
  zcore verify night*.asdf
"""
from __future__ import annotations

import argparse

import zcore
from zcore.cli import location
from zcore.cli.show import machine
from zcore.cli.show.colours import painted
from zcore.cli.show.printed import ProgressLine, nbytes_text
from zcore.cli.words import translated
from zcore.text.printable import plural, printable

KINDS = ("left-over", "foreign", "stale copy", "damaged", "truncated")
SERIOUS = ("wrong document", "damaged", "truncated", "unreachable", "unreadable")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the verb."""
    parser.add_argument("paths", nargs="+", metavar=location.METAVAR, help=location.HELP)
    parser.add_argument("--repair", action="store_true", help="remove left-overs: temporary files of writers that were "
                                                              "killed, and objects outside the grid")
    parser.add_argument("--repair-kind", action="append", default=[], choices=KINDS, metavar="KIND",
                        help=f"remove problems of a kind, one of {', '.join(KINDS)}; may be given several times")
    parser.add_argument("--threads", type=int, metavar="N", help="threads that read (default: one for each CPU)")


def run(arguments: argparse.Namespace) -> int:
    """Verify; returns 0, or 1 when a problem is left."""
    repair: tuple[str, ...] = tuple(dict.fromkeys([*(["left-over"] if arguments.repair else []),
                                                   *arguments.repair_kind]))
    found: list[dict[str, object]] = []
    for place in arguments.paths:
        try:
            store, path = location.located(place)
            with ProgressLine(f"verifying {place}") as progress:
                report = zcore.verify(store, path=path, repair=repair or False, threads=arguments.threads,
                                      progress=progress.to)
        except (zcore.ZcoreError, OSError, ValueError) as error:
            if len(arguments.paths) == 1:
                raise
            message = translated(str(error))
            found.append({"place": place, "ok": False, "error": type(error).__name__, "message": message})
            if not arguments.json:
                print(f"{printable(place)}: {painted('not verified', 'red')}: {printable(message)}")
            continue
        found.append(report.as_dict() | {"place": translated(report.place)})
        if not arguments.json:
            _show(place, report)
    if arguments.json:
        machine.show(found if len(found) > 1 else found[0])
    return 0 if all([one["ok"] for one in found]) else 1


def _show(place, report):
    for problem in report.problems:
        kind = painted(problem.kind, "red" if problem.kind in SERIOUS else "yellow")
        print(f"{kind}: {printable(problem.key or '/')}: {printable(translated(problem.what))}")
    found = ", ".join(f"{n} {kind}" for kind, n in report.by_kind.items())
    removed = f", {report.n_removed} removed" if report.n_removed else ""
    verdict = painted("ok", "green") if report.ok else painted(plural(len(report.problems), "problem"), "red")
    print(f"{printable(place)}: {verdict}{f' ({found}{removed})' if found else ''}; "
          f"{plural(report.n_groups, 'group')}, {plural(report.n_arrays, 'array')}, "
          f"{plural(report.n_objects, 'object')}, {nbytes_text(report.n_bytes)} decoded")
