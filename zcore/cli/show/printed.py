"""Output for people: tables, quantities, and progress."""
from __future__ import annotations

import sys
import textwrap
import time

from zcore.cli.show.colours import has_colours, is_terminal
from zcore.text.printable import plural, printable

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from zcore.cli.show.facts import Lengths

MAX_WIDTH = 120                # characters of a line
BAR_LENGTH = 24
N_REPEATS = 3                  # of a measurement
SECONDS_PER_LINE = 10          # of progress, where no bar can be shown


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows of text as lines, the first and last column to the left and the others to the right.

    A row of two cells is a name and a sentence, which runs across the other columns.

    >>> print(table(("format", "files", "equal"), [("a", "12", "all"), ("bc", "has no dates")]))
    format  files  equal
    a          12  all
    bc      has no dates
    """
    rows = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*(row for row in rows if len(row) > 2), strict=True)]
    widths[0] = max(len(row[0]) for row in rows)
    return "\n".join(_line(row, widths) for row in rows)


def _line(row, widths):
    if len(row) == 2:
        name, sentence = row
        return textwrap.fill(sentence, MAX_WIDTH, initial_indent=f"{name.ljust(widths[0])}  ",
                             subsequent_indent=" " * (widths[0] + 2), break_on_hyphens=False)
    return "  ".join(cell.ljust(width) if i in (0, len(row) - 1) else cell.rjust(width)
                     for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()


def best_of(work: Callable[..., object], *arguments: object, **keywords: object) -> float:
    """Return the seconds of the fastest of `N_REPEATS` calls."""
    times = []
    for _ in range(N_REPEATS):
        start = time.perf_counter()
        work(*arguments, **keywords)
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)


def duration(seconds: float) -> str:
    """Return a duration with its unit.

    >>> duration(1.5), duration(0.0123), duration(0.0000123)
    ('1.50 s', '12.30 ms', '12.3 µs')
    """
    if seconds < 1e-4:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def megabytes_per_second(nbytes: float, seconds: float) -> str:
    """Return a speed in units of 10**6 bytes a second.

    >>> megabytes_per_second(3_000_000_000, 2)
    '1,500'
    """
    return f"{nbytes / max(seconds, 1e-9) / 1e6:,.0f}"


def nbytes_text(nbytes: float) -> str:
    """Return a number of bytes in a unit that leaves three digits or so.

    >>> nbytes_text(1), nbytes_text(999), nbytes_text(277_264), nbytes_text(5_000_000_000)
    ('1 byte', '999 bytes', '277 kB', '5.00 GB')
    """
    if nbytes < 1000:
        return plural(nbytes, "byte")
    units = iter(("kB", "MB", "GB", "TB", "PB", "EB"))
    nbytes, unit = nbytes / 1000, next(units)
    while nbytes >= 999.5 and unit != "EB":
        nbytes, unit = nbytes / 1000, next(units)
    return f"{nbytes:.{0 if nbytes >= 99.95 else 1 if nbytes >= 9.995 else 2}f} {unit}"


def lengths(shape: Iterable[Lengths]) -> str:
    """Return a shape for people; where the lengths of chunks differ, some runs of equal ones.

    >>> lengths((344, 403))
    '344 x 403'
    >>> lengths(())
    '()'
    >>> lengths(([[2, 3], 5], 4))
    '[3×2, 5] x 4'
    """
    return " x ".join(map(_runs, shape)) or "()"


def _runs(length):
    from zcore.model.chunk_grid import MAX_SHOWN_RUNS

    if not isinstance(length, list):
        return str(length)
    runs = [f"{run[1]}×{run[0]}" if isinstance(run, list) else str(run) for run in length[:MAX_SHOWN_RUNS]]
    return f"[{', '.join(runs)}{', …' if len(length) > MAX_SHOWN_RUNS else ''}]"


class ProgressLine:
    """The progress of long work: a bar on a terminal, elsewhere a line now and then.

    Parameters
    ----------
    label : str
        The name of the work.
    """

    def __init__(self, label: str) -> None:
        self._label = printable(label)
        self._length = self._percent = 0
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def to(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps are done; `zcore.copy` and `zcore.verify` take this for ``progress=``."""
        if not 0 < done < total:
            return
        percent = 100 * done // total
        if is_terminal(sys.stderr):
            shown = f"{self._label} {percent} % "
            if percent != self._percent:
                self._length, self._percent = len(shown) + BAR_LENGTH, percent
                print(f"\r{shown}{_bar(percent, sys.stderr)}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - self._said > SECONDS_PER_LINE:
            self._said = time.monotonic()
            print(f"{self._label} {percent} %", file=sys.stderr, flush=True)

    def __exit__(self, *exc_info: object) -> None:
        # After an error, too: its sentence needs an empty line.
        if self._length:
            print(f"\r{' ' * self._length}\r", end="", file=sys.stderr, flush=True)


def _bar(percent, stream):
    full, empty = "█░" if (stream.encoding or "").lower().startswith("utf") else "#-"
    n = BAR_LENGTH * percent // 100
    bar = full * n + empty * (BAR_LENGTH - n)
    return f"\x1b[32m{bar}\x1b[0m" if has_colours(stream) else bar
