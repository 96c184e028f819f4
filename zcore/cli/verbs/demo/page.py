"""A page of the demo: its table, the relief, and for each format the grid of stored objects with sizes and ratios.

It is complete by itself: no script, and nothing from elsewhere.
"""
from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING

import numpy as np

import zcore
from zcore.cli.show.facts import shown_objects, stored_sizes, stored_words
from zcore.cli.show.printed import nbytes_text
from zcore.nodes.html import STYLE, array_html
from zcore.text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zcore.cli.show.facts import Sizes
    from zcore.cli.verbs.demo.round_trip import RoundTrip
    from zcore.cli.verbs.demo.source import DemoData

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


def page(source: DemoData, described: str, header: Sequence[str], rows: Sequence[Sequence[str]],
         trips: Sequence[RoundTrip], png: bytes | None) -> str:
    """Return the page as text.

    `described` describes the data. `rows` of the table are lists of cells, a row of two being a name and a sentence.
    `png` is the picture, or None.
    """
    title = _escaped(f"zcore demo: {source.title}")
    picture = ""
    if png is not None:
        picture = (f'<h2>Relief</h2><img alt="{_escaped(source.title)}, read back" '
                   f'src="data:image/png;base64,{base64.b64encode(png).decode()}">')
    formats = "".join([f"<h2>{_escaped(trip.label)}</h2>{array_html(trip.array).removeprefix(STYLE)}"
                       f"{objects_svg(trip.array, stored_sizes(trip.array))}" for trip in trips])
    table = _row("th", header, 0) + "".join([_row("td", row, len(header) - len(row)) for row in rows])
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width"><title>{title}</title>{STYLE}{_OWN_STYLE}</head><body>'
            f'<div class="zcore zc-page"><h1>{title}</h1><p>{_escaped(described)}; zcore {zcore.__version__}</p>'
            f'<div class="zc-wide"><table class="zc-results">{table}</table></div>{picture}{formats}</div></body>'
            '</html>\n')


def _row(tag, cells, n_missing):
    """Return a row of the table; its last cell runs across the missing ones."""
    span = f' colspan="{n_missing + 1}"' if n_missing else ""
    *first, last = map(_escaped, cells)
    return f"<tr>{''.join([f'<{tag}>{cell}</{tag}>' for cell in first])}<{tag}{span}>{last}</{tag}></tr>"


def objects_svg(array: zcore.Array, sizes: Sizes) -> str:
    """Return the grid of stored objects as SVG, each with its bytes and ratio; a sentence where it is too large.

    Of more than two dimensions the last two are drawn, at the first index of the others with a stored object.
    """
    (n_rows, n_columns), lead, objects = shown_objects(array, sizes)
    said = ": ".join(stored_words(array, sizes, "×"))
    if not 0 < n_rows * n_columns <= MAX_CELLS:
        return f"<p>{_escaped(said)}</p>"
    if any(lead):
        said += f"; drawn at [{', '.join(map(str, lead))}]"
    width, height = (min(size, MAX_SIDE // n) for size, n in zip(CELL, (n_columns, n_rows), strict=True))
    largest = max(sizes.values(), default=1) or 1
    parts = []
    for row, column in np.ndindex(n_rows, n_columns):
        left, top = column * width, row * height
        box = f'x="{left + 1}" y="{top + 1}" width="{width}" height="{height}"'
        if (row, column) not in objects:
            parts.append(f'<rect class="zc-absent" {box}/>')
            continue
        coords, nbytes, ratio = objects[row, column]
        parts.append(f'<rect class="zc-cell" fill-opacity="{0.08 + 0.32 * nbytes / largest:.2f}" {box}>'
                     f'<title>{".".join(map(str, coords))}: {nbytes_text(nbytes)}, ratio {ratio:.2f}</title></rect>')
        if (width, height) == CELL:
            x, y = left + width // 2, top + height // 2
            parts.append(f'<text class="zc-number" x="{x}" y="{y - 2}">{nbytes_text(nbytes)}</text>'
                         f'<text class="zc-number" x="{x}" y="{y + 11}">{ratio:.2f}</text>')
    return (f'<p>{_escaped(said)}</p><div class="zc-wide"><svg xmlns="http://www.w3.org/2000/svg" '
            f'width="{n_columns * width + 2}" height="{n_rows * height + 2}" role="img" '
            f'aria-label="stored objects">{"".join(parts)}</svg></div>')


def _escaped(text):
    return escape(printable(text))
