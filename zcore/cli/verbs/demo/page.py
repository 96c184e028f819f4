"""A page of the demo: its table, the relief, and for each format the grid of stored objects with sizes and ratios.

It stands for itself: no script, and nothing from elsewhere.
"""
import base64
from html import escape

import zcore
from zcore.cli.show.facts import stored_sizes
from zcore.cli.show.printed import lengths, nbytes_text
from zcore.nodes.display import STYLE, array_html
from zcore.text.printable import printable

MAX_CELLS = 1024               # of a grid that is drawn
CELL = (64, 40)                # pixels, where all of them fit
MAX_SIDE = 720                 # pixels

_OWN_STYLE = """<style>
body{margin:0;background:#fff;color-scheme:light dark}
@media (prefers-color-scheme:dark){body{background:#16191d}}
.zcore.zc-page{margin:0 auto;max-width:76em;width:auto;padding:24px}
.zc-page h1{font-size:22px;margin:0 0 4px}
.zc-page h2{font-size:16px;margin:28px 0 6px}
.zc-page p{margin:4px 0 12px;color:var(--zc-dim)}
.zc-page img{max-width:100%;height:auto;border-radius:6px}
.zc-page .zc-wide{overflow-x:auto}
.zc-page .zc-results{border-collapse:collapse}
.zc-page .zc-results th,.zc-page .zc-results td{padding:4px 14px 4px 0;text-align:right;
border-bottom:1px solid var(--zc-line);white-space:nowrap}
.zc-page .zc-results th:first-child,.zc-page .zc-results td:first-child,.zc-page .zc-results td:last-child,
.zc-page .zc-results th:last-child{text-align:left}
.zc-page .zc-cell{fill:var(--zc-edge);stroke:var(--zc-back);stroke-width:1}
.zc-page .zc-absent{fill:none;stroke:var(--zc-line)}
.zc-page svg .zc-number{font-size:10px;text-anchor:middle}
</style>"""


def page(source, described, header, rows, trips, png):
    """Return the page as text.

    `described` says in words what the data are; `rows` of the table are lists of cells, a row of two being a name and a
    sentence; `png` is the picture, or None.
    """
    title = _escaped(f"zcore demo: {source.title}")
    picture = ""
    if png is not None:
        picture = (f'<h2>Relief</h2><img alt="{_escaped(source.title)}, read back" '
                   f'src="data:image/png;base64,{base64.b64encode(png).decode()}">')
    formats = "".join([f"<h2>{_escaped(trip.label)}</h2>{array_html(trip.array).removeprefix(STYLE)}"
                       f"{objects_svg(trip.array, stored_sizes(trip.array))}" for trip in trips])
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width"><title>{title}</title>{STYLE}{_OWN_STYLE}</head><body>'
            f'<div class="zcore zc-page"><h1>{title}</h1><p>{_escaped(described)}; zcore {zcore.__version__}</p>'
            f'<div class="zc-wide">{_table(header, rows)}</div>{picture}{formats}</div></body></html>\n')


def _table(header, rows):
    lines = ["<tr>" + "".join([f"<th>{_escaped(cell)}</th>" for cell in header]) + "</tr>"]
    for row in rows:
        if len(row) == 2:
            lines.append(f'<tr><td>{_escaped(row[0])}</td><td colspan="{len(header) - 1}">{_escaped(row[1])}</td></tr>')
        else:
            lines.append("<tr>" + "".join([f"<td>{_escaped(cell)}</td>" for cell in row]) + "</tr>")
    return f'<table class="zc-results">{"".join(lines)}</table>'


def objects_svg(array, sizes):
    """Return the grid of stored objects as SVG, each with its bytes and ratio; a sentence where it is too large.

    Of more than two dimensions the last two are drawn, at the first place of the others where something is stored.
    """
    metadata = array.metadata
    grid = (1, 1, *metadata.grid_shape)
    n_rows, n_columns = grid[-2:]
    what = "shards" if array.shards is not None else "chunks"
    stored = sum(sizes.values())
    ratio = f", ratio {metadata.nbytes / stored:.2f}" if stored else ""
    said = (f"{len(sizes)} of {metadata.n_chunks} {what} of {lengths(metadata.chunk_shape, '×')} stored: "
            f"{nbytes_text(stored)} of {nbytes_text(metadata.nbytes)}{ratio}")
    if not 0 < n_rows * n_columns <= MAX_CELLS:
        return f"<p>{_escaped(said)}</p>"
    lead = min((coords[:-2] for coords in sizes), default=())
    if any(lead):
        said += f"; drawn at [{', '.join(map(str, lead))}]"
    width, height = (min(size, MAX_SIDE // n) for size, n in zip(CELL, (n_columns, n_rows), strict=True))
    shown = {(0, 0, *coords)[-2:]: (nbytes, coords) for coords, nbytes in sizes.items() if coords[:-2] == lead}
    largest = max(sizes.values(), default=1) or 1
    parts = []
    for row in range(n_rows):
        for column in range(n_columns):
            box = f'x="{column * width + 1}" y="{row * height + 1}" width="{width}" height="{height}"'
            if (row, column) not in shown:
                parts.append(f'<rect class="zc-absent" {box}/>')
                continue
            nbytes, coords = shown[row, column]
            decoded = metadata.itemsize
            for length in metadata.place_of(coords)[1]:
                decoded *= length
            label = f"{decoded / nbytes:.2f}" if nbytes else "-"
            parts.append(f'<rect class="zc-cell" fill-opacity="{0.08 + 0.32 * nbytes / largest:.2f}" {box}>'
                         f'<title>{".".join(map(str, coords))}: {nbytes_text(nbytes)}, ratio {label}</title></rect>')
            if (width, height) == CELL:
                x, y = column * width + width // 2, row * height + height // 2
                parts.append(f'<text class="zc-number" x="{x}" y="{y - 2}">{nbytes_text(nbytes)}</text>'
                             f'<text class="zc-number" x="{x}" y="{y + 11}">{label}</text>')
    return (f'<p>{_escaped(said)}</p><div class="zc-wide"><svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{n_columns * width + 2}" height="{n_rows * height + 2}" role="img" aria-label="stored {what}">'
            f'{"".join(parts)}</svg></div>')


def _escaped(text):
    return escape(printable(text))
