"""Figures of matplotlib: a plane of values.

A figure is of the class, not of pyplot: no window opens, and nothing is kept.
"""
from __future__ import annotations

import math
import os
import warnings
from base64 import b64encode
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show.facts import shards_of
from zcore.cli.show.plane import coordinate_of, selected
from zcore.errors import Needing
from zcore.text.printable import printable

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

ENDINGS = tuple(f".{name}" for name in FigureCanvasAgg.get_supported_filetypes())
MAX_DOTS = (1600, 1600)        # rows and columns of values
MAX_GRID_LINES = 100           # in one direction: more would hide the data
MAX_TICKS = 8                  # of an axis
LETTERS = 9                    # that a tick of the horizontal axis has room for, where there are MAX_TICKS
MAX_UNEVEN = 10                # of steps of coordinates, relative to the least one, so that round ones are shown
MAX_TITLE = 80                 # characters
NOTHING = "0.75"               # the grey of what is no finite value


def save(figure: Figure, path: str) -> None:
    """Write a figure to a file, of the kind that its ending names."""
    with warnings.catch_warnings():
        # The font may lack letters of a name; boxes stand for them.
        warnings.filterwarnings("ignore", "Glyph")
        figure.savefig(path, format=os.path.splitext(path)[1][1:].lower(), bbox_inches="tight")


def plane(array: Array, values: npt.NDArray[np.float64], box: Sequence[int | range], low: float, high: float,
          quantity: str, title: str) -> Figure:
    """Return the figure of values, and of the borders of the chunks that they lie in."""
    figure = Figure(figsize=(8, 6.4), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    kept = [d for d, one in enumerate(box) if isinstance(one, range)]
    ranges = [one for one in box if isinstance(one, range)]
    labels, coordinates = zip(*(coordinate_of(array, d, one) for d, one in zip(kept, ranges, strict=True)), strict=True)
    norm, cmap = Normalize(low, high if low < high else low + 1), colormaps["viridis"].with_extremes(bad=NOTHING)
    if len(kept) == 1:
        indices, is_there = np.asarray(ranges[0]), np.pad(np.isfinite(values[0]), 1)
        alone = is_there[1:-1] & ~is_there[:-2] & ~is_there[2:]     # no line reaches these
        axes.plot(indices, values[0], linewidth=1)
        axes.plot(indices[alone], values[0][alone], ".", color="C0")
        axes.set_ylabel(_shown(quantity), parse_math=False)
    else:
        rows, columns = ranges
        axes.imshow(values, extent=(*_edges(columns), *_edges(rows)[::-1]), norm=norm, cmap=cmap,
                    interpolation="nearest", aspect=_aspect(*values.shape))
        finite = values[np.isfinite(values)]
        extend = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[
            bool((finite < low).any()), bool((finite > high).any())]
        # In the axes, so that it is as high as the picture.
        n_rows, n_columns = values.shape
        width = 0.04 * (max(1, n_rows / n_columns) if _aspect(n_rows, n_columns) == "equal" else 1)
        bar = figure.colorbar(ScalarMappable(norm, cmap), extend=extend,
                              cax=axes.inset_axes((1 + width / 2, 0, width, 1)))
        bar.ax.set_ylabel(_shown(quantity), parse_math=False)
        axes.set_ylabel(_shown(labels[0]), parse_math=False)
    axes.set_xlabel(_shown(labels[-1]), parse_math=False)
    axes.set_title(_shown(f"{title} {selected(box)}"), parse_math=False)
    is_regular = array.metadata.edges is None or shards_of(array) is not None
    for axis, i, draw in ((axes.xaxis, -1, axes.axvline), (axes.yaxis, 0, axes.axhline))[:len(kept)]:
        room = _room(i, *values.shape) if len(kept) == 2 else MAX_TICKS
        axis.set_major_locator(MaxNLocator(room, integer=True, min_n_ticks=1))
        if coordinates[i] is not None:
            axis.set_ticks(*_ticks(ranges[i], coordinates[i], room, LETTERS if axis is axes.xaxis else math.inf))
            if axis is axes.yaxis and coordinates[i][0] < coordinates[i][-1]:
                axes.invert_yaxis()     # as in a map, north is above
        first, last = sorted((ranges[i][0], ranges[i][-1]))
        for border in _borders(array.chunks[kept[i]], first, last) if is_regular else ():
            draw(border - 0.5, color="white" if len(kept) == 2 else "0.6", linewidth=0.8, alpha=0.8)
    return figure


def _room(axis, n_rows, n_columns):
    """Return how many ticks an axis of a plane has room for."""
    share = n_columns / n_rows if _aspect(n_rows, n_columns) == "equal" else 1
    return max(2, round(MAX_TICKS * min(1, 1 / share if axis == 0 else share)))


def _ticks(indices, coordinates, n, n_letters):
    """Return where ticks are, in indices, and their texts: round coordinates, or those of some elements.

    Those whose texts, of `n_letters` where there are `n` ticks, would lie over others are left out.
    """
    places, texts = _candidates(indices, coordinates, n)
    least = (abs(indices[-1] - indices[0]) + 1) / n * max(0.5, (max(map(len, texts), default=0) + 2) / n_letters)
    kept = []
    for place, text in sorted(zip(places, texts, strict=True)):
        if not kept or place - kept[-1][0] >= least:
            kept.append((place, text))
    return zip(*kept, strict=True) if kept else ((), ())


def _candidates(indices, coordinates, n):
    if coordinates.dtype.kind in "iuf" and len(indices) > 1:
        values, places = coordinates.astype(float), np.asarray(indices, float)
        if values[0] > values[-1]:
            values, places = values[::-1], places[::-1]
        steps = np.diff(values)
        if 0 < steps.max() < MAX_UNEVEN * steps.min():
            ticks = MaxNLocator(n, integer=coordinates.dtype.kind != "f").tick_values(values[0], values[-1])
            ticks = ticks[(ticks >= values[0]) & (ticks <= values[-1])]
            return np.interp(ticks, values, places), [f"{tick:.10g}" for tick in ticks]
    some = slice(None, None, -(-len(indices) // n))
    if coordinates.dtype.kind == "M":
        # As many digits as these dates have need of.
        return indices[some], np.datetime_as_string(coordinates[some], unit="auto").tolist()
    return indices[some], [format(value, ".5g" if coordinates.dtype.kind == "f" else "") for value in coordinates[some]]


def page(array: Array, figure: Figure, title: str) -> str:
    """Return an HTML page of one file: the figure, and below it what a notebook shows of the array."""
    picture = BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    letters = b64encode(picture.getvalue()).decode()
    return (f'<!doctype html>\n<meta charset="utf-8"><title>{escape(printable(title))}</title>\n'
            f'<img style="max-width:100%" alt="" src="data:image/png;base64,{letters}">\n'
            f"{array._repr_html_()}\n")


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
