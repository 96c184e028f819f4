"""A plane of numbers drawn with letters: half blocks in colours, or signs from light to dark where there are none."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

# Nine colours of viridis; the colours between them are mixed.
COLOURS = np.array([(68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
                    (92, 200, 99), (170, 220, 50), (253, 231, 37)], float)
GREY = 128                     # of a value that is not finite
SIGNS = " .:-=+*#%@"
NOTHING = "?"                  # for a value that is not finite
UPPER_HALF = "▀"


def drawn(values: npt.NDArray[np.float64], low: float, high: float, *, in_colours: bool) -> list[str]:
    """Return the lines of a drawing, each of two rows of values where they are coloured, and else of one.

    `values` has two dimensions, NaN where a value is not finite; `low` and `high` get the first and the last colour.
    """
    if in_colours:
        return _coloured(values, low, high)
    fractions = _fractions(values, low, high)
    signs = np.minimum(len(SIGNS) - 1, np.nan_to_num(fractions) * len(SIGNS))
    signs = np.where(np.isnan(fractions), -1, signs).astype(int)
    return ["".join(NOTHING if i < 0 else SIGNS[i] for i in row) for row in signs.tolist()]


def scale(low: float, high: float, *, in_colours: bool, length: int = 24) -> str:
    """Return a line with the values of the colours or signs."""
    ramp = np.linspace(low, high, length)[None] if low < high else np.full((1, length), low)
    bar = _coloured(ramp, low, high)[0] if in_colours else SIGNS
    return f"{low:g} {bar} {high:g}"


def _fractions(values, low, high):
    """Return values as fractions between two levels, 0 to 1; a constant is 0.5."""
    if not low < high:
        return np.where(np.isnan(values), np.nan, 0.5)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.clip((values - low) / (high - low), 0, 1)


def _coloured(values, low, high):
    if len(values) % 2:
        values = np.concatenate([values, np.full((1, values.shape[1]), np.nan)]) if len(values) > 1 else np.concatenate(
            [values, values])
    fractions = _fractions(values, low, high)
    scaled = np.nan_to_num(fractions) * (len(COLOURS) - 1)
    below = np.minimum(scaled.astype(int), len(COLOURS) - 2)
    part = (scaled - below)[..., None]
    colours = np.where(np.isnan(fractions)[..., None], GREY, COLOURS[below] * (1 - part) + COLOURS[below + 1] * part)
    colours = colours.round().astype(int).tolist()
    lines = []
    for upper, lower in zip(colours[::2], colours[1::2], strict=True):
        line, before = [], None
        for one, other in zip(upper, lower, strict=True):
            if (one, other) != before:
                line.append("\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*one, *other))
                before = one, other
            line.append(UPPER_HALF)
        lines.append("".join(line) + "\x1b[0m")
    return lines
