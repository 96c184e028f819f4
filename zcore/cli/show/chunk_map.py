"""The grid of the stored objects of an array, drawn with letters."""
from __future__ import annotations

import math
import shutil
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zcore.cli.show.facts import Sizes

BARS = "▁▂▃▄▅▆▇█"
ABSENT = "·"
MAX_PLANES = 8


def chunk_map(grid: tuple[int, ...], sizes: Sizes, width: int | None = None) -> list[str]:
    """Return the lines of a map: one sign for each object; planes of the last two dimensions are one below the other.

    `grid` has the number of objects per dimension, `sizes` is a dict of the bytes of those that exist, by their
    coordinates. Lines have at most `width` signs, by default as many as the terminal.

    >>> print("\\n".join(chunk_map((2, 3), {(0, 0): 10, (0, 1): 5, (1, 2): 1}, width=80)))
    █▄·
    ··▁
    · absent, ▁ from 1 byte, █ up to 10 bytes
    """
    from zcore.cli.show.printed import lengths, nbytes_text, plural

    if math.prod(grid) == 0:
        return ["no chunks"]
    width = width or shutil.get_terminal_size().columns
    *lead, n_rows, n_columns = (1, 1, *grid)[-max(2, len(grid)):]
    step = max(1, -(-n_columns // width), -(-n_rows // width))
    largest, smallest = max(sizes.values(), default=0), min(sizes.values(), default=0)
    planes = {}
    for coords, nbytes in sizes.items():
        *plane, row, column = (0, 0, *coords)[-max(2, len(coords)):]
        cell = planes.setdefault(tuple(plane), {})
        square = row // step, column // step
        n, total = cell.get(square, (0, 0))
        cell[square] = n + 1, total + nbytes
    lines = []
    for i, plane in enumerate(product(*map(range, lead))):
        if i == MAX_PLANES:
            lines.append(f"… and {plural(math.prod(lead) - MAX_PLANES, 'plane')} more")
            break
        if lead:
            lines.append(f"[{', '.join(map(str, plane))}]")
        cell = planes.get(plane, {})
        for row in range(-(-n_rows // step)):
            lines.append("".join(_sign(cell.get((row, column)), largest) for column in range(-(-n_columns // step))))
    lines.append(f"{ABSENT} absent" + (f", {_sign((1, smallest), largest)} from {nbytes_text(smallest)}, "
                                       f"{BARS[-1]} up to {nbytes_text(largest)}" if largest else ""))
    if step > 1:
        lines[-1] += f"; each sign stands for {lengths((step, step))} objects, and shows the mean of those present"
    return lines


def _sign(cell, largest):
    if cell is None:
        return ABSENT
    n, total = cell
    return BARS[max(0, math.ceil(total / n / max(1, largest) * len(BARS)) - 1)]
