"""Arrays and groups for a notebook, as HTML: a table, attributes, a drawing of the chunks, a tree of the members.

Names and attributes come from files: everything is escaped and limited in size. Only the style below is used: no
script, and nothing is loaded from elsewhere. Light and dark follow the theme of the notebook, or of the MkDocs page
that shows it, if that sets one; otherwise the reader's system.
"""
from __future__ import annotations

import math
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from zcore.errors import ZcoreError
from zcore.model.chunk_grid import chunk_sizes
from zcore.model.metadata import ArrayMetadata
from zcore.model.value import text_of
from zcore.nodes.info import type_name
from zcore.text.printable import printable
from zcore.text.strict_json import beginning

if TYPE_CHECKING:
    from zcore.nodes.array import Array
    from zcore.nodes.group import Group

MAX_NODES = 200                # nodes in a tree
MAX_ATTRIBUTES = 100
MAX_LETTERS = 300              # characters of one attribute
N_OPEN = 1                     # levels of a tree that are open at first

_LIGHT = ("--zc-back:#fff;--zc-ink:#1b1f24;--zc-dim:#5b6570;--zc-line:#d5dbe1;--zc-front:#dcebf5;--zc-top:#eef5fa;"
          "--zc-side:#c6dcea;--zc-edge:#1d5f86;--zc-bad:#b3261e;color-scheme:light")
_DARK = ("--zc-back:#16191d;--zc-ink:#e6e9ec;--zc-dim:#9aa5b1;--zc-line:#3a424b;--zc-front:#21465e;--zc-top:#2b5873;"
         "--zc-side:#19374a;--zc-edge:#9fd0ee;--zc-bad:#ff8a80;color-scheme:dark")
STYLE = f"""<style>
.zcore{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.zcore{{{_DARK}}}}}
[data-jp-theme-light="true"] .zcore,.vscode-light .zcore{{{_LIGHT}}}
[data-jp-theme-light="false"] .zcore,.vscode-dark .zcore{{{_DARK}}}
[data-md-color-scheme="default"] .zcore{{{_LIGHT}}}
[data-md-color-scheme="slate"] .zcore{{{_DARK}}}
.zcore{{background:var(--zc-back);color:var(--zc-ink);font:13px/1.5 system-ui,sans-serif;padding:8px 10px;
width:fit-content;max-width:100%;box-sizing:border-box;overflow-x:auto}}
.zcore .zc-body{{display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start}}
.zcore .zc-name{{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}}
.zcore table.zc-rows{{border-collapse:collapse;margin:0;font-size:inherit;background:none;color:inherit;border:0}}
.zcore table.zc-rows th,.zcore table.zc-rows td{{text-align:left;vertical-align:top;padding:1px 14px 1px 0;border:0;
background:none;overflow-wrap:anywhere;max-width:48em}}
.zcore table.zc-rows th{{font-weight:400;color:var(--zc-dim);white-space:nowrap}}
.zcore ul{{list-style:none;margin:0;padding:0 0 0 18px;border-left:1px solid var(--zc-line)}}
.zcore li{{margin:0;padding:0}}
.zcore li .zc-body,.zcore li details>details,.zcore li details>ul{{margin-left:18px}}
.zcore summary{{cursor:pointer}}
.zcore .zc-type,.zcore .zc-more{{color:var(--zc-dim)}}
.zcore .zc-error{{color:var(--zc-bad)}}
.zcore svg text{{fill:var(--zc-ink);font:12px system-ui,sans-serif}}
.zcore .zc-front{{fill:var(--zc-front)}}
.zcore .zc-top{{fill:var(--zc-top)}}
.zcore .zc-side{{fill:var(--zc-side)}}
.zcore .zc-front,.zcore .zc-top,.zcore .zc-side{{stroke:var(--zc-edge);stroke-width:1.6}}
.zcore .zc-object{{fill:none;stroke:var(--zc-edge);stroke-width:1.1}}
.zcore .zc-chunk{{fill:none;stroke:var(--zc-edge);stroke-width:.4}}
</style>"""


def array_html(array: Array) -> str:
    """Return an array as HTML, without reading elements or listing objects."""
    return f'{STYLE}<div class="zcore">{_name(array)}{_array_body(array)}{_attributes(array)}</div>'


def group_html(group: Group) -> str:
    """Return a group as HTML, with up to `MAX_NODES` of the nodes below it."""
    pairs = list(islice(group.walk(), MAX_NODES + 1))
    left_out = len(pairs) > MAX_NODES
    children = {}
    for path, node in pairs[:MAX_NODES]:
        above, _, name = path.rpartition("/")
        children.setdefault(above, []).append((name, path, node))
    more = f'<div class="zc-more">only the first {MAX_NODES} nodes are shown</div>' if left_out else ""
    empty = "" if pairs else '<div class="zc-more">no members</div>'
    return (f'{STYLE}<div class="zcore">{_name(group)}{_attributes(group)}'
            f'{_branches(children, "", 0)}{empty}{more}</div>')


def _branches(children, above, level):
    """Return a list of the nodes right below a node. Its depth is bounded by the depth of a path."""
    if above not in children:
        return ""
    return "<ul>" + "".join([_branch(children, name, path, node, level) for name, path, node in children[above]]) + (
        "</ul>")


def _branch(children, name, path, node, level):
    if isinstance(node, ZcoreError):
        return (f'<li><span class="zc-error" title="{_escaped(node)}">{_escaped(name)} '
                f'({type(node).__name__})</span></li>')
    if isinstance(node._binding.metadata, ArrayMetadata):
        shown = f"{node.shape} {type_name(node.dtype)}"
        return (f'<li><details><summary>{_escaped(name)} <span class="zc-type">{_escaped(shown)}</span></summary>'
                f'{_array_body(node)}{_attributes(node)}</details></li>')
    is_open = " open" if level < N_OPEN else ""
    return (f'<li><details{is_open}><summary>{_escaped(name)}/</summary>{_attributes(node)}'
            f'{_branches(children, path, level + 1)}</details></li>')


def _name(node):
    place = f"{node.store.label}/{node.path}".rstrip("/") or "/"
    return (f'<div class="zc-name">{_escaped(place)} <span class="zc-type">{type(node).__name__}, '
            f'format {node.zarr_format}{", read-only" if node.read_only else ""}</span></div>')


def _array_body(array):
    """Return the table and the drawing of an array."""
    info = array.info
    shown = {name: info[name] for name in ("shape", "type", "fill value", "chunks", "objects", "codecs", "bytes")
             if name in info}
    if array.dimension_names is not None:
        shown["dimensions"] = ", ".join([name or "-" for name in array.dimension_names])
    rows = "".join([f"<tr><th>{_escaped(name)}</th><td>{_escaped(value)}</td></tr>" for name, value in shown.items()])
    return f'<div class="zc-body"><table class="zc-rows">{rows}</table>{chunks_svg(array) or ""}</div>'


def _attributes(node):
    """Return the attributes, collapsed; for a node that was deleted meanwhile, the error."""
    try:
        attributes = node.attrs.asdict()
    except ZcoreError as error:
        return f'<div class="zc-error">{_escaped(error)}</div>'
    if not attributes:
        return ""
    rows = "".join([f"<tr><th>{_escaped(name)}</th><td>{_escaped(beginning(value, MAX_LETTERS + 1, False))}</td></tr>"
                    for name, value in islice(attributes.items(), MAX_ATTRIBUTES)])
    more = len(attributes) - MAX_ATTRIBUTES
    return (f'<details><summary>{len(attributes)} attribute{"s" * (len(attributes) != 1)}</summary>'
            f'<table class="zc-rows">{rows}</table>'
            f'{f"<div class=zc-more>and {more} more</div>" if more > 0 else ""}</details>')


def _escaped(value):
    """Return a value as escaped text of limited length."""
    text = text_of(value, str)
    return escape(printable(text if len(text) <= MAX_LETTERS else text[:MAX_LETTERS - 1] + "…"))


SIDE = 140                     # length of the longest dimension, in pixels
SHORTEST = 0.12                # minimum length of other dimensions, relative to it
DEPTH = (0.42, -0.42)          # direction of depth in the drawing, per pixel: to the right, and upwards
MAX_LINES = 64                 # in one direction: more would look like a solid surface
NARROWEST = 2.2                # minimum pixels between two lines
ROOM = 26                      # pixels for the text at an edge


def chunks_svg(array: Array) -> str | None:
    """Return a drawing of an array's chunks; None for an array without dimensions or elements.

    >>> import zcore
    >>> svg = chunks_svg(zcore.zeros((4, 6), chunks=(2, 3)))
    >>> svg.startswith("<svg"), svg.count("<path")
    (True, 2)
    """
    metadata, chain = array._binding.view.metadata, array._binding.view.chain
    shape = metadata.shape
    if not shape or 0 in shape:
        return None
    drawn = range(max(0, len(shape) - 3), len(shape))
    objects = [_cuts(shape[d], metadata.chunk_shape[d], metadata.edges and metadata.edges[d], metadata.grid_shape[d])
               for d in drawn]
    chunks = [()] * len(drawn)
    if chain.shards is not None:
        chunks = [_cuts(shape[d], chain.inner_shape[d], None, -(-shape[d] // chain.inner_shape[d])) for d in drawn]
    longest = max(shape[d] for d in drawn)
    lengths = [SIDE * max(SHORTEST, shape[d] / longest) for d in drawn]
    names = metadata.dimension_names or (None,) * len(shape)
    labels = [f"{names[d]} {shape[d]}" if names[d] else str(shape[d]) for d in drawn]
    if len(drawn) == 1:
        # A vector is drawn as a grid of one row; the row's length has no label.
        lengths, labels = [SIDE * 2 * SHORTEST, lengths[0] * 2], ["", labels[0]]
        objects, chunks = [(), objects[0]], [(), chunks[0]]
    seen = [length * (0.6 if len(lengths) == 3 and i == 0 else 1) for i, length in enumerate(lengths)]
    objects, chunks = ([cuts if room / (len(cuts) + 1) >= NARROWEST else ()
                        for cuts, room in zip(lines, seen, strict=True)] for lines in (objects, chunks))
    return _svg(lengths, labels, objects, chunks, math.prod(shape[:-3]))


def _cuts(length, chunk, edges, n_chunks):
    """Return the cuts of a dimension, as fractions of its length; empty if there would be too many lines."""
    if n_chunks > MAX_LINES:
        return ()
    sizes = chunk_sizes((length,), (chunk,), None if edges is None else (edges,))[0]
    cuts, place = [], 0
    for size in sizes[:-1]:
        place += size
        if place < length:
            cuts.append(place / length)
    return tuple(cuts)


def _svg(lengths, labels, objects, chunks, n_drawings):
    from html import escape

    from zcore.text.printable import printable

    *depth, height, width = lengths
    aside, up = (DEPTH[0] * depth[0], DEPTH[1] * depth[0]) if depth else (0.0, 0.0)
    left, top = 4.0, 4.0 + (ROOM if depth else 0) - up
    origin, right, down, back = (left, top), (width, 0.0), (0.0, height), (aside, up)
    faces = [(origin, down, right, -2, -1, "zc-front")]
    if depth:
        faces += [(origin, back, right, -3, -1, "zc-top"), ((left + width, top), back, down, -3, -2, "zc-side")]
    parts = []
    for corner, first, second, d_first, d_second, name in faces:
        parts.append(f'<path class="{name}" d="{_outline(corner, first, second)}"/>')
        for cuts, kind in ((chunks, "zc-chunk"), (objects, "zc-object")):
            lines = _lines(corner, first, second, cuts[d_first]) + _lines(corner, second, first, cuts[d_second])
            if lines:
                parts.append(f'<path class="{kind}" d="{lines}"/>')
    labels = [escape(printable(label if len(label) <= 24 else label[:23] + "…")) for label in labels]
    parts.append(_text(left, top + height + 16, labels[-1]))
    parts.append(_text(left + width + aside + 6, top + up / 2 + height / 2 + 4, labels[-2]))
    if depth:
        parts.append(_text(left + aside / 2, top + up - 6, labels[0]))
    if n_drawings > 1:
        parts.append(_text(left, top + height + 32, f"one of {n_drawings}"))
    longest = max(map(len, labels))
    total = (left + width + aside + 12 + 8 * longest, top + height + ROOM + 16 * (n_drawings > 1))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" class="zc-chunks" width="{total[0]:.0f}" height="{total[1]:.0f}" '
            f'role="img" aria-label="chunks">{"".join(parts)}</svg>')


def _text(x, y, text):
    return f'<text x="{x:.0f}" y="{y:.0f}">{text}</text>' if text else ""


def _outline(corner, first, second):
    (x, y), (a, b), (c, d) = corner, first, second
    return f"M{x:.1f} {y:.1f}l{a:.1f} {b:.1f}l{c:.1f} {d:.1f}l{-a:.1f} {-b:.1f}z"


def _lines(corner, along, across, cuts):
    """Return a path of lines that run `across` a face and cut its side `along`."""
    return "".join(f"M{corner[0] + along[0] * cut:.1f} {corner[1] + along[1] * cut:.1f}l{across[0]:.1f} {across[1]:.1f}"
                   for cut in cuts)
