"""Parts that pictures drawn by matplotlib share; nothing here imports it."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO, Literal

    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

MAX_GRID_LINES = 100           # in one direction: more would hide the data
MAX_TITLE = 80                 # characters


def integer_ticks() -> MaxNLocator:
    """Return a locator of ticks at integers, even a single one."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, min_n_ticks=1)


def shown_text(text: str) -> str:
    """Return a name as a picture can show it: printable, on one line, and not too long."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= MAX_TITLE else text[:MAX_TITLE - 1] + "…"


def aspect_of(n_rows: int, n_columns: int) -> Literal["equal", "auto"]:
    """Return matplotlib's aspect of a plane: very long, narrow ones are stretched, or nothing would be seen of them."""
    return "equal" if 0.2 < n_rows / n_columns < 5 else "auto"


def borders_of(chunk: int, first: int, last: int) -> Sequence[int]:
    """Return the first elements of the chunks between two elements; none when there are too many to be seen."""
    n = last // chunk - first // chunk
    return range((first // chunk + 1) * chunk, last + 1, chunk) if n <= MAX_GRID_LINES else ()


def save(figure: Figure, file: str | BinaryIO, form: str, **keywords: Any) -> None:
    """Write a figure of matplotlib to a file or stream."""
    import warnings

    with warnings.catch_warnings():
        # The font may lack letters of a name; boxes stand for them.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(file, format=form, bbox_inches="tight", **keywords)
