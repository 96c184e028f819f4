"""Figures of matplotlib: a plane of values, and the grid of stored objects.

A figure is of the class, not of pyplot: no window opens, and nothing is kept.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show import drawing
from zcore.cli.show.drawing import aspect_of, borders_of, integer_ticks, shown_text
from zcore.cli.show.facts import shards_of, shown_objects, stored_words
from zcore.cli.show.printed import nbytes_text
from zcore.errors import Needing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from zcore.cli.show.facts import Sizes
    from zcore.nodes.array import Array

with Needing("a picture in a file (without --out it is drawn in the terminal) needs", "matplotlib", "plot",
             "pictures in files"):
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

MAX_DOTS = (1600, 1600)        # rows and columns of values
MAX_NAMED = 100                # objects whose size and ratio are written
MAX_CELLS = 10**6              # of a grid that is drawn


def save(figure: Figure, path: str) -> None:
    """Write a figure to a file, of the kind that its ending names."""
    drawing.save(figure, path, os.path.splitext(path)[1][1:].lower() or "png")


def plane(array: Array, values: npt.NDArray[np.float64], box: Sequence[int | range], low: float, high: float,
          quantity: str, title: str) -> Figure:
    """Return the figure of values, and of the borders of the chunks that they lie in."""
    figure, axes = _figure()
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
                    interpolation="nearest", aspect=aspect_of(*values.shape))
        finite = values[np.isfinite(values)]
        extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[
            bool((finite < low).any()), bool((finite > high).any())]
        figure.colorbar(ScalarMappable(norm, cmap), ax=axes, extend=extend, label=quantity)
        axes.set_ylabel(shown_text(names[kept[0]] or f"dimension {kept[0]}"), parse_math=False)
    axes.set_xlabel(shown_text(names[kept[-1]] or f"dimension {kept[-1]}"), parse_math=False)
    axes.set_title(shown_text(f"{title} [{selected}]"), parse_math=False)
    is_regular = array.metadata.edges is None or shards_of(array) is not None
    for axis, i, draw in ((axes.xaxis, -1, axes.axvline), (axes.yaxis, 0, axes.axhline))[:len(kept)]:
        axis.set_major_locator(integer_ticks())
        first, last = sorted((ranges[i][0], ranges[i][-1]))
        for border in borders_of(array.chunks[kept[i]], first, last) if is_regular else ():
            draw(border - 0.5, color="white" if len(kept) == 2 else "0.6", linewidth=0.8, alpha=0.8)
    return figure


def _edges(one):
    """Return where a row of elements begins and ends, an element being of length 1 around its index."""
    half = one.step / 2
    return one[0] - half, one[-1] + half


def chunk_grid(array: Array, sizes: Sizes, title: str) -> Figure:
    """Return the figure of the stored objects: colours and numbers are their sizes and compression ratios.

    Of more than two dimensions the last two are shown, at the first index of the others with a stored object.

    Raises : ValueError, if there are more objects than can be drawn.
    """
    (n_rows, n_columns), lead, objects = shown_objects(array, sizes)
    if not 0 < n_rows * n_columns <= MAX_CELLS:
        raise ValueError(f"a grid of {n_rows} x {n_columns} objects cannot be drawn, {MAX_CELLS} are the most")
    cells = np.full((n_rows, n_columns), np.nan)
    for cell, (_, nbytes, _) in objects.items():
        cells[cell] = nbytes
    figure, axes = _figure()
    norm = Normalize(0, max((nbytes for _, nbytes, _ in objects.values()), default=1))
    cmap = colormaps["viridis"].with_extremes(bad="0.85")
    axes.imshow(cells, norm=norm, cmap=cmap, interpolation="nearest", aspect=aspect_of(n_rows, n_columns))
    figure.colorbar(ScalarMappable(norm, cmap), ax=axes, label="bytes stored (grey: absent)")
    if n_rows * n_columns <= MAX_NAMED:
        for (row, column), (_, nbytes, ratio) in objects.items():
            ink = "white" if norm(nbytes) < 0.6 else "black"
            axes.text(column, row, f"{nbytes_text(nbytes)}\n{ratio:.2f}", color=ink, ha="center",
                      va="center", fontsize=6 if n_columns > 5 else 8)
    where = f", at [{', '.join(map(str, lead))}]" if lead else ""
    said, total = stored_words(array, sizes)
    axes.set_title(shown_text(f"{title}: {said}{where}"), fontsize=10, parse_math=False)
    axes.set_xlabel(f"{total}; in each: bytes, ratio")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(integer_ticks())
    return figure


def _figure():
    figure = Figure(figsize=(8, 6.4), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()
