"""The report of `zcore.verify`: problems, and how much was checked."""
from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from zcore.model.value import text_of
from zcore.text.printable import plural

# The worst first; the last ones only take up space.
KINDS = ("wrong document", "damaged", "truncated", "unreachable", "unreadable", "stale copy", "foreign", "left-over")
MAX_SHOWN = 20


class Problem(NamedTuple):
    """One thing that is wrong in a store.

    Attributes
    ----------
    kind : str
        "wrong document"
            It breaks a rule of its format.
        "damaged"
            An object's bytes contradict its checksum, its codecs or the metadata.
        "truncated"
            An object ends before the bytes it promises.
        "unreachable"
            A document, an object, or a possible node exists, but cannot be read or listed: a link leads nowhere,
            permission is missing, the disk fails. A repair never removes it.
        "unreadable"
            A document or an object needs a feature that zcore does not have.
        "stale copy"
            Consolidated metadata differ from the documents below, or cannot be used.
        "foreign"
            It belongs to no node, and no object or node can have its name.
        "left-over"
            A temporary file of a writer that was killed, or an object outside the array's grid.
    key : str
        Of the object, the document or the file, relative to the store; of a directory with a final ``/``.
    path : str
        Of the node that it belongs to, or lies in.
    what : str
        Expected and found, in one sentence.
    """

    kind: str
    key: str
    path: str
    what: str


class Report:
    """The report of `zcore.verify`.

    Attributes
    ----------
    place : str
        The name of the store, for people.
    problems : list of Problem
    n_groups, n_arrays : int
        Nodes whose documents were read.
    n_objects : int
        Objects that were read and decoded.
    n_bytes : int
        Of their elements.
    n_removed : int
        Problems that were repaired by removing their cause.
    ok : bool
        There are no problems except repaired ones.
    """

    _COUNTS = ("n_groups", "n_arrays", "n_objects", "n_bytes", "n_removed")
    __slots__ = ("place", "problems", *_COUNTS)
    place: str
    problems: list[Problem]
    n_groups: int
    n_arrays: int
    n_objects: int
    n_bytes: int
    n_removed: int

    def __init__(self, place: str) -> None:
        self.place = place
        self.problems = []
        for name in self._COUNTS:
            setattr(self, name, 0)

    def add(self, other: Report) -> None:
        """Add the counts of another report."""
        for name in self._COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def ok(self) -> bool:
        return len(self.problems) == self.n_removed

    @property
    def by_kind(self) -> dict[str, int]:
        """Number of problems by kind, a dict."""
        found = Counter(problem.kind for problem in self.problems)
        return {kind: found[kind] for kind in KINDS if found[kind]}

    def as_dict(self) -> dict[str, Any]:
        """Return the report as values of JSON."""
        return {"place": self.place, "ok": self.ok, **{name: getattr(self, name) for name in self._COUNTS},
                "by_kind": self.by_kind, "problems": [problem._asdict() for problem in self.problems]}

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.by_kind.items())
        lines = [f"<zcore verify {self.place}: {'ok' if self.ok else kinds}; "
                 f"{plural(self.n_groups, 'group')}, {plural(self.n_arrays, 'array')}, "
                 f"{plural(self.n_objects, 'object')}, {plural(self.n_bytes, 'byte')} decoded"
                 f"{f', {self.n_removed} removed' if self.n_removed else ''}>"]
        lines += [f"{problem.kind}: {text_of(problem.key, repr)}: {problem.what}"
                  for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            lines.append(f"… and {len(self.problems) - MAX_SHOWN} more")
        return "\n".join(lines)
