"""Plots of result files, as figures of matplotlib: who is faster, by how much, and from which size on.

Each function takes results as ``python -m benchmarks run`` writes them and returns a figure.
"""
import math

from matplotlib.figure import Figure

from benchmarks.report import tables
from benchmarks.suites.published import CALLERS, LEVELS
from benchmarks.suites.workloads import BARE_LOOP, ZCORE

_COLORS = {ZCORE: "#c2255c", "zarr": "#9aa5b1", "zarr_fused": "#5c6f82", "zarrs": "#e8890c", "tensorstore": "#2b6cb0",
           BARE_LOOP: "#2f9e44"}
_LINES = (ZCORE, "zarrs", "tensorstore", "zarr_fused", "zarr", BARE_LOOP)


def ratios(result, before=None):
    """Draw the fastest peer's time over zcore's, a bar a row; `before` is a former result, whose ratios are points."""
    found = sorted(tables.ratios_of(result).items(), key=lambda item: item[1])
    former = tables.ratios_of(before) if before else {}
    figure = _figure(1, 1, 7.5, 0.19 * len(found) + 1)
    axes = figure.axes[0]
    axes.barh([name for name, _ in found], [ratio - 1 for _, ratio in found], left=1, height=0.7,
              color=["#2b8a3e" if ratio >= 1 else "#c92a2a" for _, ratio in found])
    known = [(former[name], i) for i, (name, _) in enumerate(found) if name in former]
    if known:
        axes.plot([x for x, _ in known], [i for _, i in known], "o", color="#222", markersize=3, label="before")
        axes.legend(frameon=False)
    _ratio_axis(axes, "fastest peer's time / zcore's (right of 1: zcore is faster)")
    return figure


def limits(result):
    """Draw the bare loop's time over zcore's, a bar a row: 1 is what the machine allows without a library."""
    found = sorted((workload["summary"][BARE_LOOP]["median"] / workload["summary"][ZCORE]["median"], workload["name"])
                   for workload in result["runs"][-1]["workloads"] if {ZCORE, BARE_LOOP} <= set(workload["summary"]))
    figure = _figure(1, 1, 7.5, 0.25 * len(found) + 1)
    axes = figure.axes[0]
    axes.barh([name for _, name in found], [ratio - 1 for ratio, _ in found], left=1, color="#2f9e44", height=0.7)
    _ratio_axis(axes, "bare loop's time / zcore's")
    return figure


def chunk_costs(curves):
    """Draw what a chunk costs against its size, reading above and writing below, a column for each count of threads.

    The dotted line is zcore's crossover: left of it a chunk costs most for being one, right of it for its bytes.
    """
    runs = curves["runs"]
    figure = _figure(2, len(runs), 4.6 * len(runs), 7)
    for row, kind in enumerate(("read", "write")):
        for column, run in enumerate(runs):
            axes = figure.axes[row * len(runs) + column]
            lines = costs(run, kind)
            for name in _LINES:
                if name in lines:
                    axes.plot(*zip(*lines[name], strict=True), "o-", color=_COLORS[name], label=name, markersize=3,
                              linewidth=2 if name == ZCORE else 1)
            axes.axvline(crossover(lines[ZCORE]), color=_COLORS[ZCORE], linestyle=":", linewidth=1)
            axes.set(xscale="log", yscale="log", title=f"{kind}, {run['threads']} threads", xlabel="bytes of a chunk",
                     ylabel="microseconds a chunk")
            _bytes_axis(axes)
    figure.axes[0].legend(frameon=False)
    return figure


def costs(run, kind):
    """Return {library: [(bytes of a chunk, microseconds a chunk), ...]} of a run of curves, without those of shards."""
    found = {}
    for workload in run["workloads"]:
        if workload["kind"] == kind and "_chunks_" in workload["name"]:
            n_chunks = workload["nbytes"] // workload["chunk_nbytes"]
            for name, summary in workload["summary"].items():
                found.setdefault(name, []).append((workload["chunk_nbytes"], summary["median"] / n_chunks * 1e6))
    return found


def crossover(line):
    """Return the bytes of a chunk at which its bytes cost as much as its being a chunk.

    Of the smallest chunk all cost is taken for being one, of the largest all for its bytes.
    """
    (_, least), (most_bytes, most) = min(line), max(line)
    return least / (most / most_bytes)


def thread_gains(curves):
    """Draw how many times as fast the most threads are as one, against the size of a chunk."""
    one, most = curves["runs"][0], curves["runs"][-1]
    figure = _figure(1, 2, 9, 3.6)
    for axes, kind in zip(figure.axes, ("read", "write"), strict=True):
        slow, fast = costs(one, kind), costs(most, kind)
        for name in _LINES:
            if name in slow and name in fast:
                line = [(nbytes, cost / dict(fast[name])[nbytes]) for nbytes, cost in slow[name]]
                axes.plot(*zip(*line, strict=True), "o-", color=_COLORS[name], label=name, markersize=3,
                          linewidth=2 if name == ZCORE else 1)
        axes.set(xscale="log", ylim=(0, None), xlabel="bytes of a chunk", title=kind,
                 ylabel=f"times as fast with {most['threads']} threads as with {one['threads']}")
        _bytes_axis(axes)
    figure.axes[0].legend(frameon=False)
    return figure


def shard_costs(curves):
    """Draw what a chunk of 16 KB costs against how many are in an object: read, written, and read one by one."""
    figure = _figure(1, 3, 11, 3.6)
    for axes, kind, title in zip(figure.axes, ("read", "write", "parts"), (
            "read all", "write all", "read one by one"), strict=True):
        _lines(axes, curves, f"{kind}_shards_", lambda workload: (
            math.prod(workload["shards"] or workload["chunks"]) // math.prod(workload["chunks"]),
            1e6 / (workload["count"] or math.prod(workload["shape"]) // math.prod(workload["chunks"]))))
        axes.set(xscale="log", yscale="log", title=title, xlabel="chunks in an object", ylabel="microseconds a chunk")
    figure.axes[0].legend(frameon=False)
    return figure


def element_costs(curves):
    """Draw what a single element costs against the size of its chunk, without and with a cache of chunks."""
    figure = _figure(1, 2, 9, 3.6)
    for axes, kind, title in zip(figure.axes, ("elements_", "kept_elements_"), (
            "no cache", "through a cache"), strict=True):
        _lines(axes, curves, kind, lambda workload: (workload["chunk_nbytes"], 1e6 / workload["count"]))
        axes.set(xscale="log", yscale="log", title=title, xlabel="bytes of a chunk", ylabel="microseconds an element")
        _bytes_axis(axes)
        axes.legend(frameon=False)
    return figure


def _lines(axes, curves, prefix, place):
    """Draw a line for each library; `place` of a workload is its x, and what its seconds are multiplied by."""
    lines = {}
    for workload in curves["runs"][-1]["workloads"]:
        if workload["name"].startswith(prefix):
            x, scale = place(workload)
            for name, summary in workload["summary"].items():
                lines.setdefault(name, []).append((x, summary["median"] * scale))
    for name, line in lines.items():
        if name in _COLORS or name == "tensorstore_cache":
            axes.plot(*zip(*line, strict=True), "o-", color=_COLORS.get(name, "#4dabf7"), label=name, markersize=3,
                      linewidth=2 if name == ZCORE else 1)


def heftie(result):
    """Draw read time, write time and ratio against the level, a column for each compressor."""
    workloads = {workload["name"]: workload for workload in result["runs"][-1]["workloads"]}
    names = list(dict.fromkeys(_without_level(name.removeprefix("read ")) for name in workloads
                               if name.startswith("read ")))
    figure = _figure(3, len(names), 2.6 * len(names), 7.5)
    for column, (codec, option) in enumerate(names):
        for row, kind in enumerate(("read", "write")):
            axes = figure.axes[row * len(names) + column]
            for name in _LINES:
                line = [(level, found["summary"][name]["median"]) for level in LEVELS
                        if (found := workloads.get(f"{kind} {codec} {level}{option}")) and name in found["summary"]]
                if line:
                    axes.plot(*zip(*line, strict=True), "o-", color=_COLORS[name], label=name, markersize=3,
                              linewidth=2 if name == ZCORE else 1)
            axes.set_ylim(bottom=0)
            if kind == "write":
                axes.set_yscale("log")
            if column == 0:
                axes.set_ylabel(f"{kind}, seconds")
            if row == 0:
                axes.set_title(f"{codec}{option}", fontsize=9)
        axes = figure.axes[2 * len(names) + column]
        line = [(level, found["nbytes"] / found["stored_nbytes"]) for level in LEVELS
                if (found := workloads.get(f"read {codec} {level}{option}"))]
        axes.plot(*zip(*line, strict=True), "o-", color="#222", markersize=3)
        axes.set(xlabel="level", ylim=(1, 2.4))
        if column == 0:
            axes.set_ylabel("compression ratio")
    figure.axes[0].legend(frameon=False, fontsize=7)
    return figure


def _without_level(name):
    codec, _, rest = name.partition(" ")
    _, mark, option = rest.partition(";")
    return codec, mark + option


def zarr_benchmarks(result):
    """Draw the times of reading all, of objects by 1 to 32 callers, and of the round trip, a column for each layout."""
    found = result["runs"][-1]["workloads"]
    layouts = list(dict.fromkeys(workload["name"].partition("; ")[2] for workload in found))
    labels = ["all", *map(str, CALLERS), "round trip"]
    figure = _figure(1, len(layouts), 4 * len(layouts), 3.8)
    for axes, layout in zip(figure.axes, layouts, strict=True):
        rows = [workload for workload in found if workload["name"].partition("; ")[2] == layout]
        for name in _LINES:
            line = [workload["summary"].get(name, {}).get("median", math.nan) for workload in rows]
            if not all(map(math.isnan, line)):
                axes.plot(labels[:len(line)], line, "o-" if name == ZCORE else "o:", color=_COLORS[name], label=name,
                          markersize=4)
        axes.set(yscale="log", title=layout, ylabel="seconds", xlabel="callers")
    figure.axes[0].legend(frameon=False)
    return figure


def peaks(result):
    """Draw the peak memory of full reads over the size of their results."""
    rows = [workload for workload in result["runs"][-1]["workloads"]
            if workload["kind"] == "read" and workload.get("peaks", {}).get(ZCORE, (0, 0))[1] >= 10**6]
    figure = _figure(1, 1, 7.5, 0.25 * len(rows) + 1)
    axes = figure.axes[0]
    for name in _LINES:
        points = [(workload["peaks"][name][0] / workload["peaks"][name][1], i) for i, workload in enumerate(rows)
                  if name in workload["peaks"]]
        if points:
            axes.plot(*zip(*points, strict=True), "o", color=_COLORS[name], label=name, markersize=4)
    axes.set_yticks(range(len(rows)), [workload["name"] for workload in rows])
    axes.set_xlabel("peak memory of a read / size of its result")
    axes.legend(frameon=False)
    return figure


def growth(lines):
    """Draw the time of each call against how many objects there are; `lines` are those of `comparisons.growth`."""
    kinds = list(dict.fromkeys(line.kind for line in lines))
    n_columns = 5
    rows = [[line for line in lines if line.kind == kind][at:at + n_columns] for kind in kinds
            for at in range(0, sum(line.kind == kind for line in lines), n_columns)]
    figure = _figure(len(rows), n_columns, 2.6 * n_columns, 2.4 * len(rows))
    for axes in figure.axes:
        axes.set_visible(False)
    for i, row in enumerate(rows):
        for axes, line in zip(figure.axes[i * n_columns:], row, strict=False):
            axes.set_visible(True)
            for name, times in line.times.items():
                axes.plot(*zip(*times, strict=True), "o-", color=_COLORS.get(name, "#9c36b5"), label=name,
                          markersize=3, linewidth=2 if name == ZCORE else 1)
            axes.set(xscale="log", yscale="log", title=f"{line.kind}: {line.verb}")
            axes.title.set_fontsize(9)
            axes.tick_params(which="minor", labelleft=False, labelbottom=False)
    known = {}
    for axes in figure.axes:
        known |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
    figure.legend(known.values(), known, loc="outside upper center", ncols=len(known), frameon=False)
    figure.supxlabel("objects", fontsize=9)
    figure.supylabel("seconds", fontsize=9)
    return figure


def _figure(n_rows, n_columns, width, height):
    figure = Figure((width, height), layout="constrained")
    for axes in figure.subplots(n_rows, n_columns, squeeze=False).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        axes.grid(axis="both", linewidth=0.3, alpha=0.6)
        axes.set_axisbelow(True)
    return figure


def _ratio_axis(axes, label):
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = [tick for tick in (0.1, 0.2, 0.5, 0.8, 1, 1.5, 2, 5, 10, 20, 50, 100, 1000) if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="#222", linewidth=0.8)
    axes.margins(y=0.01)
    axes.set_xlabel(label)


def _bytes_axis(axes):
    axes.set_xticks([2**10, 2**14, 2**18, 2**22, 2**26], ["1 KB", "16 KB", "256 KB", "4 MB", "64 MB"])
    axes.minorticks_off()
