"""Byte ranges of one object, merged where to ask for them together costs less than to ask for each."""

# What is read and thrown away to save a request: what comes in while the answer to one is waited for.
MAX_GAP = 1 << 18
# Of what is merged; a range that is longer by itself stays as it is.
MAX_BLOCK = 1 << 23


def merged(ranges, max_gap=MAX_GAP, max_block=MAX_BLOCK):
    """Return a list of (start, stop), sorted, such that each range lies in one of them.

    Parameters
    ----------
    ranges : iterable of (start, stop)
        In any order; they may overlap.
    max_gap : int
        Bytes between two ranges that are read for nothing at the most.
    max_block : int
        Bytes of what is merged.

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
            # What lies in the block anyway makes it no longer.
            if stop <= last or start <= last + max_gap and stop - first <= max_block:
                blocks[-1] = first, max(last, stop)
                continue
        blocks.append((start, stop))
    return blocks
