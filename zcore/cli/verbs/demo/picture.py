"""A picture of an array: its relief in the light of the upper left, and the grid of its chunks.

Only the elements that the picture shows are read, in steps where the array has more elements than the picture has dots.
"""
from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from zcore.cli.show.drawing import aspect_of, borders_of, integer_ticks, save, shown_text
from zcore.cli.show.levels import numbers_of
from zcore.cli.show.printed import lengths, plural
from zcore.errors import Needing

if TYPE_CHECKING:
    from typing import Any

    import zcore
    from zcore.cli.verbs.demo.source import DemoData

with Needing("the picture (--no-picture goes without) needs", "matplotlib", "demo", "pictures"):
    from matplotlib import colormaps, patheffects
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LightSource, ListedColormap, Normalize
    from matplotlib.figure import Figure
    from mpl_toolkits.axes_grid1 import make_axes_locatable

MAX_DOTS = 1600                # of the data in one direction
MAX_POINTS = 4 * MAX_DOTS      # of a line
MAX_MARKED_POINTS = 200        # of a line, each of which is marked
MAX_NAMED_CHUNKS = 100
MIN_SHADED = 16                # rows and columns: fewer are fields, not slopes
NAME_SIZES = (10, 8, 6)        # of the chunk coordinates, in points
INK = "#1b1b1b"


def draw(array: zcore.Array, source: DemoData) -> bytes:
    """Return a picture of an array as the bytes of a PNG file.

    Parameters
    ----------
    array : zcore.Array
        For which `zcore.cli.show.levels.obstacle` returns None.
    source : DemoData
        Has the names of the data.
    """
    figure = Figure(figsize=(9, 7.6), dpi=130, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.tick_params(labelsize=10)
    axes.xaxis.set_major_locator(integer_ticks())
    where = _draw_line(axes, array, source) if array.ndim < 2 else _draw_plane(axes, array, source)
    axes.set_title(f"{shown_text(source.title)}\n", fontsize=14, color=INK, fontweight="bold", parse_math=False)
    described = (f"{lengths(array.shape, '×')} {array.dtype}{where} in {plural(array.nchunks, 'chunk')} of "
                 f"{lengths(array.chunks, '×')}, read back by zcore")
    axes.text(0.5, 1.012, described, transform=axes.transAxes, ha="center", va="bottom", fontsize=11, color=INK)
    png = io.BytesIO()
    save(figure, png, "png", pad_inches=0.2)
    return png.getvalue()


def _draw_line(axes, array, source):
    (length,), (chunk,) = array.shape, array.chunks
    step = -(-length // MAX_POINTS)
    values, quantity = numbers_of(array[::step], source.quantity)
    if array.dtype.kind in "biu":
        axes.yaxis.set_major_locator(integer_ticks())
    axes.plot(np.arange(0, length, step), values, color="#2a6f97", linewidth=1,
              marker="o" if length <= MAX_MARKED_POINTS else None, markersize=3)
    borders = borders_of(chunk, 0, length - 1)
    for border in borders:
        axes.axvline(border - 0.5, color="0.6", linewidth=0.8)
    axes.set_xlabel(f"element{legend_of(borders and 'grey: chunk borders')}", fontsize=11)
    axes.set_ylabel(shown_text(quantity), fontsize=11, parse_math=False)
    return ""


def _draw_plane(axes, array, source):
    """Draw two dimensions; returns the name of the plane, for the title."""
    first = 0 if source.is_image else array.ndim - 2
    lead = tuple(length // 2 for length in array.shape[:first])
    shape, chunk_shape = array.shape[first:first + 2], array.chunks[first:first + 2]
    n_rows, n_columns = shape
    found = array[(*lead, *(slice(None, None, -(-length // MAX_DOTS)) for length in shape))]
    form = {"extent": (-0.5, n_columns - 0.5, n_rows - 0.5, -0.5), "aspect": aspect_of(*shape)}
    is_complete = True
    if found.ndim == 3 and found.shape[2] in (3, 4):
        axes.imshow(found, **form)
    else:
        is_complete = _draw_values(axes, found[..., 0] if found.ndim == 3 else found, form, source)
    borders = [borders_of(chunk, 0, length - 1) for chunk, length in zip(chunk_shape, shape, strict=True)]
    # Dark below light is seen on anything.
    outline = [patheffects.withStroke(linewidth=2, foreground=INK, alpha=0.35)]
    for draw_line, places in zip((axes.axhline, axes.axvline), borders, strict=True):
        for border in places:
            draw_line(border - 0.5, color="white", linewidth=1.1, alpha=0.9, path_effects=outline)
    axes.set_xlabel("column" + legend_of(any(borders) and "white lines: chunk borders",
                                       not is_complete and "black: not finite"), fontsize=11)
    axes.set_ylabel("row", fontsize=11)
    axes.yaxis.set_major_locator(integer_ticks())
    _name_chunks(axes, array, first)
    return f", plane {', '.join(map(str, lead))}" if lead else ""


def _draw_values(axes, values, form, source):
    """Draw a plane of numbers with a bar of their colours; returns whether all of them are finite."""
    is_slope = values.dtype.kind not in "b" and not source.is_image and min(values.shape) >= MIN_SHADED
    is_integer = values.dtype.kind in "biu"
    values, quantity = numbers_of(values, source.quantity)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    # A constant has the colour in the middle of the bar, and its value there.
    margin = 0 if low < high else max(0.5, abs(low) / 1000)
    norm, cmap = Normalize(low - margin, high + margin), _colours(source).with_extremes(bad="black")
    colours = cmap(norm(np.ma.masked_invalid(values)))[..., :3]
    if is_slope and low < high:
        # The relief of mountains: in any unit the range of values is as high as a ninth of the longer side.
        heights = np.where(np.isfinite(values), (values - low) / (high - low), 0.0) * max(values.shape) / 9
        colours = LightSource(azdeg=315, altdeg=45).shade_rgb(colours, heights, blend_mode="soft", fraction=1.1)
    axes.imshow(colours, interpolation="nearest", **form)
    if finite.size:
        place = make_axes_locatable(axes).append_axes("right", size=0.22, pad=0.12)
        bar = axes.figure.colorbar(ScalarMappable(norm, cmap), cax=place)
        bar.set_label(shown_text(quantity), fontsize=11, parse_math=False)
        bar.ax.tick_params(labelsize=10)
        if margin:
            bar.set_ticks([low])
        elif is_integer:
            bar.locator = integer_ticks()
    return finite.size == values.size


def _colours(source):
    if source.is_image:
        return colormaps["gray"]
    if source.quantity.startswith("elevation"):
        # The colours of the earth without those of the sea.
        return ListedColormap(colormaps["gist_earth"](np.linspace(0.33, 0.99, 256)))
    return colormaps["viridis"]


def _name_chunks(axes, array, first):
    """Write the coordinates of each chunk into it, as far as there is room; rows are dimension `first`."""
    (n_rows, n_columns), (row_chunk, column_chunk) = array.shape[first:first + 2], array.chunks[first:first + 2]
    n_below, n_right = -(-n_rows // row_chunk), -(-n_columns // column_chunk)
    if n_below * n_right > MAX_NAMED_CHUNKS:
        return
    before = [length // 2 // chunk for length, chunk in zip(array.shape[:first], array.chunks, strict=False)]
    after = [0] * (array.ndim - first - 2)
    longest = len(".".join(map(str, (*before, n_below - 1, n_right - 1, *after))))
    axes.figure.draw_without_rendering()
    corners = axes.transData.transform([(0, 0), (min(column_chunk, n_columns), min(row_chunk, n_rows))])
    width, height = abs(corners[1] - corners[0]) * 72 / axes.figure.dpi
    size = next((size for size in NAME_SIZES if longest * 0.85 * size < width and 1.3 * size < height), None)
    if size is None:
        return
    outline = [patheffects.withStroke(linewidth=2.4, foreground=INK, alpha=0.85)]
    for i, row in enumerate(range(0, n_rows, row_chunk)):
        for j, column in enumerate(range(0, n_columns, column_chunk)):
            axes.text((column + min(column + column_chunk, n_columns)) / 2 - 0.5,
                      (row + min(row + row_chunk, n_rows)) / 2 - 0.5, ".".join(map(str, (*before, i, j, *after))),
                      color="white", fontsize=size, ha="center", va="center", path_effects=outline)


def legend_of(*parts: Any) -> str:
    """Return the parts that are not empty, in parentheses."""
    legend = "; ".join([part for part in parts if part])
    return f" ({legend})" if legend else ""
