"""One HTML page of result files: plots, tables, and what was before. It needs nothing else to be looked at."""
import html
import io
import re

from benchmarks.report import plots, tables
from benchmarks.report.tables import Table

_STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733 }
figure { margin: 1.5rem 0; overflow-x: auto } figure svg { max-width: 100%; height: auto }
figcaption { color: #52606d; font-size: .9rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .8rem }
td, th { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid #e4e7eb; white-space: nowrap }
td:first-child, th:first-child { text-align: left } td b { color: #c92a2a } summary { cursor: pointer }
"""
_TITLES = {"rows": "The project's rows", "curves": "What size costs", "heftie": "HEFTIE's volumes",
           "zarr_benchmarks": "The benchmarks of zarrs"}
_PLOTS = {
    "rows": ((plots.limits, "Rows with a limit: a bare loop in C does the same and nothing else."),
             (plots.peaks, "Memory: the peak of a full read over the size of its result.")),
    "curves": ((plots.chunk_costs, "What a chunk costs. The dotted line is where a chunk's bytes begin to cost zcore "
                                   "more than its being a chunk."),
               (plots.thread_gains, "What a second thread brings."),
               (plots.shard_costs, "Chunks of 16 KB as files of their own, and in shards."),
               (plots.element_costs, "Single elements of one chunk.")),
    "heftie": ((plots.heftie, "A volume of 16-bit integers by compressor and level."),),
    "zarr_benchmarks": ((plots.zarr_benchmarks, "All at once, object by object, and a round trip."),),
}


def render(results, before=None):
    """Return the page.

    Parameters
    ----------
    results : dict of str to dict
        The newest result of each suite.
    before : dict or None
        A former result of the suite ``rows``.
    """
    sections = []
    for suite, title in _TITLES.items():
        if suite not in results:
            continue
        result = results[suite]
        body = [f"<h2>{title}</h2>", _summary(result)]
        if suite == "rows":
            body.append(_drawn(plots.ratios(result, before), "Each row's fastest peer. Red: zcore loses."
                               + (" Points: before." if before else "")))
            if before:
                body.append(_changes(before, result))
        body += [_drawn(draw(result), caption) for draw, caption in _PLOTS[suite]]
        body.append("<details><summary>All times, ratios, memory and versions</summary>"
                    + "".join(_part(part) for part in tables.parts(result)[1:]) + "</details>")
        sections.append("\n".join(body))
    head = ('<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>zcore: benchmarks</title>'
            f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>')
    return head + "<h1>Benchmarks of zcore</h1>\n" + "\n".join(sections) + "</html>\n"


def write_plots(results, folder):
    """Write the plots of all results as SVG files, named by the functions that draw them."""
    folder.mkdir(parents=True, exist_ok=True)
    for suite, result in results.items():
        for draw, _ in _PLOTS[suite]:
            (folder / f"{draw.__name__}.svg").write_text(svg(draw(result)), "utf-8")


def _summary(result):
    return f"<p>{html.escape(tables.summary(result))}</p>" + _part(tables.parts(result)[0].partition("\n\n")[2])


def _changes(before, after):
    old, new = tables.ratios_of(before), tables.ratios_of(after)
    rows = [[name, f"{old[name]:.2f}", _marked(new[name]), f"{new[name] / old[name]:.2f}"]
            for name in new if name in old]
    shared = [row[0] for row in rows]
    means = [tables.geometric_mean([found[name] for name in shared]) for found in (old, new)]
    rows.append(["geometric mean", *(f"{mean:.2f}" for mean in means), f"{means[1] / means[0]:.2f}"])
    summary = f"Before ({before['commit']}) and after ({after['commit']}): fastest peer / zcore"
    table = Table(["row", "before", "after", "after / before"], rows)
    return f"<details><summary>{html.escape(summary)}</summary>{_part(table)}</details>"


def _marked(ratio):
    return f"**{ratio:.2f}**" if ratio < 1 else f"{ratio:.2f}"


def _drawn(figure, caption):
    drawn = svg(figure)
    return f"<figure>{drawn[drawn.index('<svg'):]}<figcaption>{html.escape(caption)}</figcaption></figure>"


def svg(figure):
    """Return a figure as the text of an SVG file."""
    from matplotlib import rc_context

    drawn = io.StringIO()
    # Without the date and the random names, the same result is the same page.
    with rc_context({"svg.hashsalt": "zcore", "svg.fonttype": "none"}):
        figure.savefig(drawn, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines()) + "\n"


def _part(part):
    if isinstance(part, Table):
        head = "".join(f"<th>{_inline(cell)}</th>" for cell in part.header)
        rows = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>\n" for row in part.rows)
        return f'<div class="wide"><table><tr>{head}</tr>\n{rows}</table></div>'
    if part.startswith("## "):
        return f"<h3>{_inline(part[3:])}</h3>"
    if part.startswith("- "):
        return "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in part.splitlines()) + "</ul>"
    return f"<p>{_inline(part)}</p>"


def _inline(text):
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text, quote=False))
