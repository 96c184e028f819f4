"""Byte ranges of one object, merged where one request costs less than several."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Bytes that are read for nothing to save a request: about as many arrive during the latency of one.
MAX_GAP = 1 << 18
# Bytes of a merged range. A single range may be longer.
MAX_BLOCK = 1 << 23


def merged(ranges: Iterable[tuple[int, int]], max_gap: int = MAX_GAP,
           max_block: int = MAX_BLOCK) -> list[tuple[int, int]]:
    """Return a list of (start, stop), sorted, such that each range lies in one of them.

    Parameters
    ----------
    ranges : iterable of (start, stop)
        In any order; they may overlap.
    max_gap : int
        Most bytes between two ranges of one block.
    max_block : int
        Most bytes of a block that is merged.

    Notes
    -----
    References checklist, RF-URL-09.

    Examples
    --------
    >>> merged([(90, 100), (0, 10), (12, 20), (15, 16)], max_gap=5)
    [(0, 20), (90, 100)]
    """
    blocks = []
    for start, stop in sorted(ranges):
        if blocks:
            first, last = blocks[-1]
            # A range inside the block does not make it longer.
            if stop <= last or start <= last + max_gap and stop - first <= max_block:
                blocks[-1] = first, max(last, stop)
                continue
        blocks.append((start, stop))
    return blocks
