"""Arrays and groups for a notebook, as HTML: a table, attributes that open, chunks drawn, a tree that opens.

Names and attributes are whatever a file says they are: everything is escaped, and bounded. Nothing but the style below
is needed, no script and nothing from elsewhere. Light and dark follow the notebook's theme where it tells one, else the
reader's system.
"""
import json
from html import escape
from itertools import islice

from zcore.drawing import chunks_svg
from zcore.errors import ZcoreError
from zcore.info import type_name
from zcore.letters import printable
from zcore.model.metadata import ArrayMetadata
from zcore.model.value import text_of

MAX_NODES = 200                # of a tree
MAX_ATTRIBUTES = 100
MAX_LETTERS = 300              # of one attribute
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


def array_html(array):
    """Return an array as HTML; its elements are not read, and its objects not listed."""
    return f'{STYLE}<div class="zcore">{_name(array)}{_array_body(array)}{_attributes(array)}</div>'


def group_html(group):
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
    """Return a list of the nodes right below one; of a tree that is no deeper than a path can be."""
    if above not in children:
        return ""
    return "<ul>" + "".join([_branch(children, name, path, node, level) for name, path, node in children[above]]) + (
        "</ul>")


def _branch(children, name, path, node, level):
    if isinstance(node, ZcoreError):
        return (f'<li><span class="zc-error" title="{_escaped(node)}">{_escaped(name)} '
                f'({type(node).__name__})</span></li>')
    if isinstance(node.metadata, ArrayMetadata):
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
    """Return the attributes, folded up; of a node that is gone meanwhile, why there are none."""
    try:
        attributes = node.attrs.asdict()
    except ZcoreError as error:
        return f'<div class="zc-error">{_escaped(error)}</div>'
    if not attributes:
        return ""
    rows = "".join([f"<tr><th>{_escaped(name)}</th><td>{_escaped(json.dumps(value, ensure_ascii=False))}</td></tr>"
                    for name, value in islice(attributes.items(), MAX_ATTRIBUTES)])
    more = len(attributes) - MAX_ATTRIBUTES
    return (f'<details><summary>{len(attributes)} attribute{"s" * (len(attributes) != 1)}</summary>'
            f'<table class="zc-rows">{rows}</table>'
            f'{f"<div class=zc-more>and {more} more</div>" if more > 0 else ""}</details>')


def _escaped(value):
    """Return a value as text that HTML takes for nothing else."""
    text = text_of(value, str)
    return escape(printable(text if len(text) <= MAX_LETTERS else text[:MAX_LETTERS - 1] + "…"))
