"""A picture of an array: its relief in the light of the upper left, and the grid of its chunks.

Only what the picture shows is read, with steps where the array has more elements than the picture has dots.
"""
import numpy as np

from zcore.cli.source import matplotlib_needed

matplotlib_needed("the picture (--no-picture goes without)")

from matplotlib import colormaps, patheffects  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.cm import ScalarMappable  # noqa: E402
from matplotlib.colors import LightSource, ListedColormap, Normalize  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import MaxNLocator  # noqa: E402

MAX_DOTS = 1600                # of the data in one direction
MAX_NAMED_CHUNKS = 100
MAX_GRID_LINES = 100           # in one direction: more would hide the data
INK = "#1b1b1b"


def draw(path, array, source):
    """Draw an array to a PNG file.

    Parameters
    ----------
    path : str
    array : zcore.Array
    source : Source
        What the data are called.

    Returns
    -------
    str or None
        Why there is no picture: the data are empty, or not numbers.
    """
    if array.size == 0:
        return "the array has no elements"
    if array.dtype.kind not in "biufc":
        return f"elements of type {array.dtype} are not numbers"
    figure = Figure(figsize=(9, 7.6), dpi=130, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    if array.ndim < 2:
        _draw_line(axes, array, source)
        where = ""
    else:
        where = _draw_plane(figure, axes, array, source)
    shape, chunks = (" × ".join(map(str, lengths)) for lengths in (array.shape, array.chunks))
    axes.set_title(f"{source.title}\n", fontsize=14, color=INK, fontweight="bold")
    axes.text(0.5, 1.012, f"{shape} {array.dtype}{where} in {array.nchunks} "
              f"{'chunk' if array.nchunks == 1 else 'chunks'} of {chunks}, read back by zcore",
              transform=axes.transAxes, ha="center", va="bottom", fontsize=11, color=INK)
    figure.savefig(path, bbox_inches="tight", pad_inches=0.2)
    return None


def _draw_line(axes, array, source):
    length = array.shape[0] if array.ndim else 1
    step = -(-length // (4 * MAX_DOTS))
    values = np.atleast_1d(_real(array[::step] if array.ndim else array[...]))
    axes.plot(np.arange(0, length, step), values, color="#2a6f97", linewidth=1)
    for border in _borders(length, array.chunks[0] if array.ndim else 1):
        axes.axvline(border - 0.5, color="0.6", linewidth=0.8)
    axes.set_xlabel("element (grey: chunk borders)", fontsize=11)
    axes.set_ylabel(source.quantity, fontsize=11)


def _draw_plane(figure, axes, array, source):
    """Draw two dimensions; returns how the plane is called, for the title."""
    is_colour = source.is_image and array.ndim == 3 and array.shape[2] in (3, 4)
    lead = () if is_colour else tuple(length // 2 for length in array.shape[:-2])
    n_rows, n_columns = array.shape[:2] if is_colour else array.shape[-2:]
    row_chunk, column_chunk = array.chunks[:2] if is_colour else array.chunks[-2:]
    row_step, column_step = -(-n_rows // MAX_DOTS), -(-n_columns // MAX_DOTS)
    found = array[(*lead, slice(None, None, row_step), slice(None, None, column_step))]
    extent = (-0.5, n_columns - 0.5, n_rows - 0.5, -0.5)
    # Very long, narrow arrays are stretched, or nothing would be seen of them.
    aspect = "equal" if 0.2 < n_rows / n_columns < 5 else "auto"
    if is_colour:
        axes.imshow(found, extent=extent, aspect=aspect)
    else:
        _draw_relief(figure, axes, _real(found), extent, aspect, source)
    for length, chunk, line in ((n_rows, row_chunk, axes.axhline), (n_columns, column_chunk, axes.axvline)):
        for border in _borders(length, chunk):
            line(border - 0.5, color="white", linewidth=1.1, alpha=0.9)
    _name_chunks(axes, array, lead, (n_rows, row_chunk), (n_columns, column_chunk), is_colour)
    axes.set_xlabel("column (white lines: chunk borders)", fontsize=11)
    axes.set_ylabel("row", fontsize=11)
    axes.tick_params(labelsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return f", plane {', '.join(map(str, lead))}" if lead else ""


def _draw_relief(figure, axes, values, extent, aspect, source):
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if low == high:
        high = low + 1
    cmap = _land() if source.quantity.startswith("elevation") else colormaps["viridis"]
    norm = Normalize(low, high)
    # Slopes as those of mountains, whatever the unit: the range of values stands for a ninth of the longer side.
    heights = np.where(np.isfinite(values), (values - low) / (high - low), 0.0) * max(values.shape) / 9
    colours = cmap(norm(np.ma.masked_invalid(values)))[..., :3]
    if min(values.shape) >= 2:
        colours = LightSource(azdeg=315, altdeg=45).shade_rgb(colours, heights, blend_mode="soft", fraction=1.1)
    axes.imshow(colours, extent=extent, aspect=aspect, interpolation="nearest")
    bar = figure.colorbar(ScalarMappable(norm, cmap), ax=axes, shrink=0.82, pad=0.02)
    bar.set_label(source.quantity, fontsize=11)
    bar.ax.tick_params(labelsize=10)


def _land():
    """Return the colours of the earth without those of the sea."""
    return ListedColormap(colormaps["gist_earth"](np.linspace(0.33, 0.99, 256)))


def _name_chunks(axes, array, lead, rows, columns, is_colour):
    """Write the chunk coordinates into each chunk, unless there are too many."""
    (n_rows, row_chunk), (n_columns, column_chunk) = rows, columns
    if -(-n_rows // row_chunk) * -(-n_columns // column_chunk) > MAX_NAMED_CHUNKS:
        return
    before = [index // chunk for index, chunk in zip(lead, array.chunks, strict=False)]
    outline = [patheffects.withStroke(linewidth=2.2, foreground=INK, alpha=0.75)]
    for i, row in enumerate(range(0, n_rows, row_chunk)):
        for j, column in enumerate(range(0, n_columns, column_chunk)):
            coords = (*before, i, j, *([0] if is_colour else []))
            axes.text((column + min(column + column_chunk, n_columns)) / 2 - 0.5,
                      (row + min(row + row_chunk, n_rows)) / 2 - 0.5, ".".join(map(str, coords)), color="white",
                      fontsize=10, ha="center", va="center", path_effects=outline)


def _borders(length, chunk):
    """Return the first elements of the chunks, but for the very first; none when there are too many to be seen."""
    n_chunks = -(-length // chunk)
    return range(chunk, length, chunk) if n_chunks <= MAX_GRID_LINES else ()


def _real(values):
    """Return values as floating point numbers whose differences are finite; of complex ones the magnitude."""
    values = np.abs(values) if values.dtype.kind == "c" else values
    values = values.astype(np.float64)
    return np.where(np.isfinite(values), np.clip(values, -1e300, 1e300), np.nan)
