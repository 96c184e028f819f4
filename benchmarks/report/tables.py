"""What a result file says, as Markdown: times, ratios, memory, targets; losses and failures like everything else."""
import math
import statistics
from dataclasses import dataclass

from benchmarks.suites.workloads import BARE_LOOP, FASTEST, MEGABYTE, RESULT, STAT, ZCORE

_NOT_PEERS = (ZCORE, BARE_LOOP, STAT)


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the first column is to the left, ``**`` surrounds what is to be seen first."""

    header: list
    rows: list

    def markdown(self):
        lines = [self.header, ["---"] + ["---:"] * (len(self.header) - 1), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def render(result, base=None):
    """Return the report of one result as Markdown text.

    Parameters
    ----------
    result : dict
        What ``python -m benchmarks run`` has written.
    base : str or None
        The library that the others are compared with; by default zcore, or the bare loop where zcore was not measured.
    """
    return "\n\n".join(part.markdown() if isinstance(part, Table) else part for part in parts(result, base)) + "\n"


def parts(result, base=None):
    """Return the same as a list of `Table` and of texts, in Markdown."""
    found = [_heading(result)]
    for run in result["runs"]:
        cores = f", on {run['cores']} cores" if "cores" in run else ""     # results of former versions do not say
        found.append(f"## {run['threads']} threads{cores}")
        found += _times(run)
        chosen = base or (ZCORE if any(ZCORE in w["summary"] for w in run["workloads"]) else BARE_LOOP)
        found += _ratios(run, chosen)
        if not result["quick"]:
            found.append(summary({"runs": [run]}))
            # Of times that mean nothing, a target missed or met would mean something to somebody.
            found += _targets(run)
        found.append(_remarks(run))
    return found


def peers(workload):
    """Return the libraries with a time on this workload that zcore competes with."""
    return [name for name in workload["summary"] if name not in _NOT_PEERS]


def fastest_peer(workload, statistic="median"):
    """Return the name of the peer with the least median (or minimum), None without peers."""
    return min(peers(workload), key=lambda name: workload["summary"][name][statistic], default=None)


def ratios_of(result):
    """Return {name: fastest peer's median / zcore's} of the last run of a result, of times only."""
    found = {}
    for workload in result["runs"][-1]["workloads"]:
        peer = fastest_peer(workload)
        if peer and ZCORE in workload["summary"] and workload["unit"] == "seconds":
            found[workload["name"]] = _median(workload, peer) / _median(workload, ZCORE)
    return found


def geometric_mean(found):
    """Return the geometric mean of ratios."""
    return math.exp(statistics.fmean(map(math.log, found)))


def summary(result):
    """Return how zcore compares over all rows of a result, as a sentence or two."""
    found = ratios_of(result)
    if not found:
        return "No row has a time of zcore and of a peer."
    behind = sorted((ratio, name) for name, ratio in found.items() if ratio < 1)
    text = (f"Of {len(found)} rows with a peer, zcore is ahead of the fastest in {len(found) - len(behind)}; the "
            f"geometric mean of the ratios is {geometric_mean(found.values()):.2f}.")
    if behind:
        text += " Behind: " + ", ".join(f"{name} {ratio:.2f}" for ratio, name in behind) + "."
    return text


def conditions(result):
    """Return when a result was measured, and how, as a sentence."""
    loads = [workload["load"] for workload in result["runs"][-1]["workloads"] if "load" in workload]
    what = "CPU time of all threads, without waits" if result.get("clock") == "cpu" else "Time"
    return (f"{what}, {result['repeats']} rounds, commit {result['commit']}, {result['time'][:10]}, at a "
            f"load of {min(loads):.0f} to {max(loads):.0f}.")


def rows(result):
    """Return the `Table` of all rows of a result: fastest peer and bare loop over zcore, of medians and (minima)."""
    found = []
    for workload in result["runs"][-1]["workloads"]:
        peer = fastest_peer(workload)
        if ZCORE not in workload["summary"] or workload["unit"] != "seconds" or not peer:
            continue
        note = workload.get("note")
        loop = _times_as_long(workload, BARE_LOOP) if BARE_LOOP in workload["summary"] else ""
        found.append([workload["title"] + (f". *{note}*" if note else ""), f"{_times_as_long(workload, peer)}, {peer}",
                      loop])
    return Table(["", "fastest peer", "bare C loop"], found)


def _times_as_long(workload, name):
    other, own = workload["summary"][name], workload["summary"][ZCORE]
    found = [other[statistic] / own[statistic] for statistic in ("median", "min")]
    text = "{} ({})".format(*(f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}" for ratio in found))
    return f"**{text}**" if found[0] < 1 and name != BARE_LOOP else text


def _median(workload, name):
    return workload["summary"][name]["median"]


def evaluate(target, workload, threads):
    """Return how a target was met.

    Returns
    -------
    dict or None
        ``against`` (the library it came to), ``ratio``, ``bound`` (text), ``met``; None where a side was not measured.
    """
    own = workload["summary"].get(ZCORE)
    against = fastest_peer(workload) if target["against"] == FASTEST else target["against"]
    if own is None:
        return None
    if against == RESULT:
        other = workload["nbytes"]
        limit = target["at_most"] * other + target["chunks_per_thread"] * threads * workload["chunk_nbytes"]
        bound = f"≤ {target['at_most']} + {target['chunks_per_thread']} chunks a thread = {limit / other:.3f}"
        return {"against": against, "ratio": own["median"] / other, "bound": bound, "met": own["median"] <= limit}
    if against == MEGABYTE:
        ratio, limit = own["median"] / 1e6, target["at_most"]
        return {"against": against, "ratio": ratio, "bound": f"≤ {limit}", "met": ratio <= limit}
    if against not in workload["summary"]:
        return None
    other = workload["summary"][against]["median"]
    if target["at_least"] is not None:
        ratio = other / own["median"]
        return {"against": against, "ratio": ratio, "bound": f"≥ {target['at_least']}",
                "met": ratio >= target["at_least"]}
    ratio = own["median"] / other
    return {"against": against, "ratio": ratio, "bound": f"≤ {target['at_most']}", "met": ratio <= target["at_most"]}


def _heading(result):
    machine = result["machine"]
    facts = [
        f"commit {result['commit'] or 'unknown'}, {result['time']}",
        f"{machine['cpu']}, {machine['cores']} cores, load {machine['load'][0]}",
        f"two spinning threads do {machine['parallel_speed_of_2_threads']} times the work of one",
        f"{machine['system']}, Python {machine['python']}, NumPy {machine['numpy']}",
        f"{result['data']}, {result['repeats']} repeats, {result.get('clock', 'wall')} time",
    ]
    if result["quick"]:
        facts.append("**quick run: tiny sizes, the times mean nothing**")
    return "# Benchmarks\n\n" + "\n".join(f"- {fact}" for fact in facts)


def _cannot(workload):
    return workload.get("cannot", {})  # results of former versions do not say


def _columns(run):
    found = [name for workload in run["workloads"] for name in (*workload["summary"], *_cannot(workload))]
    known = list(dict.fromkeys([ZCORE, *run["versions"], *found]))
    return [name for name in known if name in found]


def _quantity(value, unit):
    if unit == "bytes":
        return f"{value / 1e6:.1f} MB"
    for scale, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * scale >= 1 or name == "µs":
            return f"{value * scale:.3g} {name}"
    raise AssertionError("the last unit takes every value")


def _times(run):
    names = _columns(run)
    rows = []
    for workload in run["workloads"]:
        cells = []
        for name in names:
            summary = workload["summary"].get(name)
            text = "wrong or failed" if name in workload["failed"] else "cannot" if name in _cannot(workload) else "–"
            if summary:
                low, middle = (_quantity(summary[key], workload["unit"]) for key in ("min", "median"))
                text = f"{middle} ({low})"
            cells.append(text)
        rows.append([f"{workload['name']}: {workload['title']}", *cells])
    return "Median (minimum).", Table(["workload", *names], rows)


def _ratios(run, base):
    names = [name for name in _columns(run) if name not in (base, STAT)]
    rows = []
    for workload in run["workloads"]:
        own = workload["summary"].get(base)
        if own is None:
            continue
        cells = []
        for name in names:
            other = workload["summary"].get(name)
            cells.append(_ratio(other, own, mark=base == ZCORE and name != BARE_LOOP) if other else "–")
        least = {key: workload["summary"][fastest_peer(workload, key)][key] if peers(workload) else None
                 for key in ("median", "min")}
        cells.append(_ratio(least, own, mark=base == ZCORE) if peers(workload) else "–")
        peaks = workload.get("peaks", {})  # results of former versions do not say
        least_peak = min((peaks[name] for name in peers(workload) if name in peaks), default=None)
        rows.append([workload["name"], *cells, _memory(peaks.get(base)), _memory(least_peak)])
    if not rows:
        return ()
    explain = f"Other / {base}, of the medians and (of the minima): above 1, {base} is faster or smaller."
    if base == ZCORE:
        explain += " **Bold: zcore loses.**"
    explain += (" Memory is the peak of a call above what was there before it: times the size of its result, if that is"
                " 1 MB or more.")
    return explain, Table(["workload", *names, FASTEST, f"memory, {base}", "memory, least peer"], rows)


def _memory(peak):
    if peak is None:
        return "–"
    n_bytes, of_result = peak
    return f"{n_bytes / of_result:.2f} ×" if of_result >= 10**6 else f"{n_bytes / 1e6:.1f} MB"


def _ratio(other, own, mark):
    ratio = other["median"] / own["median"]
    text = f"{ratio:.2f} ({other['min'] / own['min']:.2f})"
    return f"**{text}**" if mark and ratio < 1 else text


def _targets(run):
    rows = []
    for workload in run["workloads"]:
        for target in workload["targets"]:
            found = evaluate(target, workload, run["threads"])
            if found is None:
                rows.append([workload["name"], target["against"], "–", "–", "not measured"])
                continue
            against = target["against"]
            if found["against"] != against:
                against += f" ({found['against']})"
            rows.append([workload["name"], against, found["bound"], f"{found['ratio']:.3f}",
                         "met" if found["met"] else "**missed**"])
    if not rows:
        return ()
    return ("Targets, of medians: ≥ is other / zcore, ≤ is zcore / other.",
            Table(["workload", "against", "target", "measured", ""], rows))


def _remarks(run):
    lines = []
    for name, versions in run["versions"].items():
        lines.append(f"- {name}: " + ", ".join(f"{package} {version}" for package, version in versions.items()))
    lines += [f"- {name}: skipped, {reason}" for name, reason in run["skipped"].items()]
    for workload in run["workloads"]:
        lines += [f"- {workload['name']}: {name} has no time, {reason}"
                  for name, reason in (workload["failed"] | _cannot(workload)).items()]
        if "stored_nbytes" in workload:
            lines.append(f"- {workload['name']}: {workload['nbytes'] / 1e6:.1f} MB stored in "
                         f"{workload['stored_nbytes'] / 1e6:.1f} MB")
    places = ", ".join(f"{place} is {kind}" for place, kind in run["file_systems"].items() if kind)
    return "\n".join(lines + ([f"- {places}"] if places else []))
