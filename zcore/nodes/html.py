"""Arrays and groups for a notebook, as HTML: a table, attributes, a tree of the members.

Names and attributes come from files: everything is escaped and limited in size. Only the style below is used: no
script, and nothing is loaded from elsewhere. Light and dark follow the theme of the notebook, or of the MkDocs page
that shows it, if that sets one; otherwise the reader's system.
"""
from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from zcore.errors import ZcoreError
from zcore.model.metadata import ArrayMetadata
from zcore.model.value import text_of
from zcore.nodes.info import by_group, type_name
from zcore.stores.base import together
from zcore.text.printable import plural, printable
from zcore.text.strict_json import beginning

if TYPE_CHECKING:
    from zcore.nodes.array import Array
    from zcore.nodes.group import Group

MAX_NODES = 200                # nodes in a tree
MAX_ATTRIBUTES = 100
MAX_LETTERS = 300              # characters of one attribute

_LIGHT = "--zc-back:#fff;--zc-ink:#1b1f24;--zc-dim:#5b6570;--zc-line:#d5dbe1;--zc-bad:#b3261e;color-scheme:light"
_DARK = "--zc-back:#16191d;--zc-ink:#e6e9ec;--zc-dim:#9aa5b1;--zc-line:#3a424b;--zc-bad:#ff8a80;color-scheme:dark"
STYLE = f"""<style>
.zcore{{{_LIGHT}}}
@media (prefers-color-scheme:dark){{.zcore{{{_DARK}}}}}
[data-jp-theme-light="true"] .zcore,.vscode-light .zcore{{{_LIGHT}}}
[data-jp-theme-light="false"] .zcore,.vscode-dark .zcore{{{_DARK}}}
[data-md-color-scheme="default"] .zcore{{{_LIGHT}}}
[data-md-color-scheme="slate"] .zcore{{{_DARK}}}
.zcore{{background:var(--zc-back);color:var(--zc-ink);font:13px/1.5 system-ui,sans-serif;padding:8px 10px;
width:fit-content;max-width:100%;box-sizing:border-box;overflow-x:auto}}
.zcore .zc-name{{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}}
.zcore table.zc-rows{{border-collapse:collapse;margin:0;font-size:inherit;background:none;color:inherit;border:0}}
.zcore table.zc-rows th,.zcore table.zc-rows td{{text-align:left;vertical-align:top;padding:1px 14px 1px 0;border:0;
background:none;overflow-wrap:anywhere;max-width:48em}}
.zcore table.zc-rows th{{font-weight:400;color:var(--zc-dim);white-space:nowrap}}
.zcore ul{{list-style:none;margin:0;padding:0 0 0 18px;border-left:1px solid var(--zc-line)}}
.zcore li{{margin:0;padding:0}}
.zcore li details>table,.zcore li details>details,.zcore li details>ul{{margin-left:18px}}
.zcore summary{{cursor:pointer}}
.zcore .zc-type,.zcore .zc-more{{color:var(--zc-dim)}}
.zcore .zc-error{{color:var(--zc-bad)}}
</style>"""


def array_html(array: Array) -> str:
    """Return an array as HTML, without reading elements or listing objects."""
    return f'{STYLE}<div class="zcore">{_name(array)}{_array_body(array)}{_attributes(array)}</div>'


def group_html(group: Group) -> str:
    """Return a group as HTML, with up to `MAX_NODES` of the nodes below it."""
    pairs = list(islice(group.walk(), MAX_NODES + 1))
    left_out = len(pairs) > MAX_NODES
    nodes = [node for _, node in pairs[:MAX_NODES] if not isinstance(node, ZcoreError)]
    attributes = dict(zip(map(id, nodes), together(group.store, _attributes, nodes), strict=True))
    more = f'<div class="zc-more">only the first {MAX_NODES} nodes are shown</div>' if left_out else ""
    empty = "" if pairs else '<div class="zc-more">no members</div>'
    return (f'{STYLE}<div class="zcore">{_name(group)}{_attributes(group)}'
            f'{_branches(by_group(pairs[:MAX_NODES]), "", attributes)}{empty}{more}</div>')


def _branches(children, above, attributes):
    """Return the list (``<ul>``) of the members of a group. Its depth is bounded by the depth of a path.

    `attributes` are those of all nodes, as HTML, by their `id`.
    """
    if above not in children:
        return ""
    return "<ul>" + "".join([_branch(children, name, path, node, attributes)
                             for path, name, node in children[above]]) + "</ul>"


def _branch(children, name, path, node, attributes):
    if isinstance(node, ZcoreError):
        return (f'<li><span class="zc-error" title="{_escaped(node)}">{_escaped(name)} '
                f'({type(node).__name__})</span></li>')
    if isinstance(node._binding.metadata, ArrayMetadata):
        shown = f"{node.shape} {type_name(node.dtype)}"
        return (f'<li><details><summary>{_escaped(name)} <span class="zc-type">{_escaped(shown)}</span></summary>'
                f'{_array_body(node)}{attributes[id(node)]}</details></li>')
    is_open = "" if "/" in path else " open"     # only the first level, at first
    return (f'<li><details{is_open}><summary>{_escaped(name)}/</summary>{attributes[id(node)]}'
            f'{_branches(children, path, attributes)}</details></li>')


def _name(node):
    place = f"{node.store.label}/{node.path}".rstrip("/") or "/"
    return (f'<div class="zc-name">{_escaped(place)} <span class="zc-type">{type(node).__name__}, '
            f'format {node.zarr_format}{", read-only" if node.read_only else ""}</span></div>')


def _array_body(array):
    """Return the table of an array."""
    info = array.info
    shown = {name: info[name] for name in ("shape", "type", "fill value", "chunks", "objects", "codecs", "bytes")
             if name in info}
    if array.dimension_names is not None:
        shown["dimensions"] = ", ".join([name or "-" for name in array.dimension_names])
    rows = "".join([f"<tr><th>{_escaped(name)}</th><td>{_escaped(value)}</td></tr>" for name, value in shown.items()])
    return f'<table class="zc-rows">{rows}</table>'


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
    return (f'<details><summary>{plural(len(attributes), "attribute")}</summary>'
            f'<table class="zc-rows">{rows}</table>'
            f'{f"<div class=zc-more>and {more} more</div>" if more > 0 else ""}</details>')


def _escaped(value):
    """Return a value as escaped text of limited length."""
    text = text_of(value, str)
    return escape(printable(text if len(text) <= MAX_LETTERS else text[:MAX_LETTERS - 1] + "…"))
