"""Figures of matplotlib: a plane of values.

A figure is of the class, not of pyplot: no window opens, and nothing is kept.
"""
from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show.facts import shards_of
from zcore.errors import Needing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from zcore.nodes.array import Array

with Needing("a picture in a file (without --out it is drawn in the terminal) needs", "matplotlib", "plot",
             "pictures in files"):
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

MAX_DOTS = (1600, 1600)        # rows and columns of values
MAX_GRID_LINES = 100           # in one direction: more would hide the data
MAX_TITLE = 80                 # characters


def save(figure: Figure, path: str) -> None:
    """Write a figure to a file, of the kind that its ending names."""
    with warnings.catch_warnings():
        # The font may lack letters of a name; boxes stand for them.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(path, format=os.path.splitext(path)[1][1:].lower() or "png", bbox_inches="tight")


def plane(array: Array, values: npt.NDArray[np.float64], box: Sequence[int | range], low: float, high: float,
          quantity: str, title: str) -> Figure:
    """Return the figure of values, and of the borders of the chunks that they lie in."""
    figure = Figure(figsize=(8, 6.4), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    kept = [d for d, one in enumerate(box) if isinstance(one, range)]
    ranges = [one for one in box if isinstance(one, range)]
    selected = ", ".join(":" if isinstance(one, range) else str(one) for one in box)
    names = array.dimension_names or (None,) * array.ndim
    norm, cmap = Normalize(low, high if low < high else low + 1), colormaps["viridis"].with_extremes(bad="black")
    if len(kept) == 1:
        axes.plot(np.asarray(ranges[0]), values[0], linewidth=1)
        axes.set_ylabel(quantity)
    else:
        rows, columns = ranges
        axes.imshow(values, extent=(*_edges(columns), *_edges(rows)[::-1]), norm=norm, cmap=cmap,
                    interpolation="nearest", aspect=_aspect(*values.shape))
        finite = values[np.isfinite(values)]
        extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[
            bool((finite < low).any()), bool((finite > high).any())]
        figure.colorbar(ScalarMappable(norm, cmap), ax=axes, extend=extend, label=quantity)
        axes.set_ylabel(_shown(names[kept[0]] or f"dimension {kept[0]}"), parse_math=False)
    axes.set_xlabel(_shown(names[kept[-1]] or f"dimension {kept[-1]}"), parse_math=False)
    axes.set_title(_shown(f"{title} [{selected}]"), parse_math=False)
    is_regular = array.metadata.edges is None or shards_of(array) is not None
    for axis, i, draw in ((axes.xaxis, -1, axes.axvline), (axes.yaxis, 0, axes.axhline))[:len(kept)]:
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        first, last = sorted((ranges[i][0], ranges[i][-1]))
        for border in _borders(array.chunks[kept[i]], first, last) if is_regular else ():
            draw(border - 0.5, color="white" if len(kept) == 2 else "0.6", linewidth=0.8, alpha=0.8)
    return figure


def _edges(one):
    """Return where a row of elements begins and ends, an element being of length 1 around its index."""
    half = one.step / 2
    return one[0] - half, one[-1] + half


def _shown(text):
    """Return a name as a picture can show it: printable, on one line, and not too long."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= MAX_TITLE else text[:MAX_TITLE - 1] + "…"


def _aspect(n_rows, n_columns):
    """Return matplotlib's aspect of a plane: very long, narrow ones are stretched, or nothing would be seen of them."""
    return "equal" if 0.2 < n_rows / n_columns < 5 else "auto"


def _borders(chunk, first, last):
    """Return the first elements of the chunks between two elements; none when there are too many to be seen."""
    n = last // chunk - first // chunk
    return range((first // chunk + 1) * chunk, last + 1, chunk) if n <= MAX_GRID_LINES else ()
