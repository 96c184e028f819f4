"""The command ``python -m benchmarks``: run, list, report, growth, codecs, asdf, pipelines, datasets, streams,
embedding, checkpoint, kernels, instructions and lines."""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import adapters
from benchmarks.comparisons import (
    asdf_files,
    checkpoint,
    codecs,
    datasets,
    embedding,
    growth,
    kernels,
    pipelines,
    streams,
)
from benchmarks.counts import instructions
from benchmarks.harness import machine, runner, timing
from benchmarks.inputs import data
from benchmarks.report import tables
from benchmarks.suites import curves, published, workloads

_RESULTS = Path(__file__).with_name("results")
_SUITES = {"rows": workloads.WORKLOADS, "curves": curves.WORKLOADS, **published.SUITES}


def _names(text):
    names = [name for name in text.split(",") if name]
    if not names:
        raise argparse.ArgumentTypeError("expected names, separated by commas")
    return names


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("expected an integer of at least 1")
    return int(text)


def _new_file(text):
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {Path(text).parent} for it")
    return Path(text)


def _folder(text):
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return text


def _result(path):
    try:
        result = json.loads(Path(path).read_text("utf-8"))
        if result["format"] != 1:
            raise ValueError
    except OSError as exc:
        raise argparse.ArgumentTypeError(f"{path}: {exc.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise argparse.ArgumentTypeError(f"{path} is no result of `python -m benchmarks run`") from None
    return result


def _counts(text):
    return [_count(name) for name in _names(text)]


def _library_names(text):
    names = _names(text)
    unknown = sorted(set(names) - set(adapters.names()))
    if unknown:
        raise argparse.ArgumentTypeError(f"no library {', '.join(unknown)}; there are {', '.join(adapters.names())}")
    return names


def _parser():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure zcore and its peers.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure, write a JSON file and print the report")
    run.add_argument("--suite", choices=list(_SUITES), default="rows",
                     help="rows of the table (the default), curves by size, or what others have published")
    run.add_argument("--libraries", type=_library_names, default=adapters.names(),
                     help=f"of {','.join(adapters.names())}")
    run.add_argument("--workloads", type=_names, default=None, help="names of the suite's, see the command list")
    run.add_argument("--planes", type=_count, default=None, help="of a published volume; less than all takes less time")
    run.add_argument("--threads", type=_counts, default=[2], help="threads of each library; several: 1,2")
    run.add_argument("--repeats", type=_count, default=7)
    run.add_argument("--data", choices=data.KINDS, default="smooth")
    run.add_argument("--seed", type=int, default=0)
    run.add_argument("--directory", type=_folder, default=None,
                     help="where all files go (default: temporary files and /dev/shm)")
    run.add_argument("--clock", choices=list(timing.CLOCKS), default="wall",
                     help="CPU seconds of all threads say more on a busy machine, and nothing of waits")
    run.add_argument("--quick", action="store_true", help="tiny sizes, one repeat: checks the harness and the answers")
    run.add_argument("--out", type=_new_file, default=None,
                     help="result file (default: benchmarks/results/<time>-<commit>.json; none for a quick run, or "
                          "for some workloads)")
    listed = commands.add_parser("list", help="name the workloads and say what each measures")
    listed.add_argument("--suite", choices=list(_SUITES), default="rows")
    show = commands.add_parser("report", help="print the Markdown of a result file, or make one page of several")
    show.add_argument("file", type=_result, nargs="*", help="default: the newest of benchmarks/results, for a page "
                                                            "the newest of each suite")
    show.add_argument("--html", type=_new_file, default=None,
                      help="make this page, with plots (needs the extra \"plot\")")
    show.add_argument("--plots", type=Path, default=None, help="write its plots as SVG files to this folder")
    show.add_argument("--into", type=Path, default=None,
                      help="write the rows into this page of Markdown, between <!-- rows --> and <!-- end -->")
    show.add_argument("--before", type=_result, default=None, help="for a page: a former result of the suite rows")
    show.add_argument("--base", default=None, help="compare the others with this library of the result")
    show.add_argument("--out", type=_new_file, default=None)
    grown = commands.add_parser("growth", help="time calls by the number of arrays, chunks and references")
    grown.add_argument("--sizes", type=_counts, default=None, help="numbers of each (default: 1000 to 100000, of "
                                                                    "references to 1000000)")
    grown.add_argument("--repeats", type=_count, default=5)
    grown.add_argument("--plot", type=_new_file, default=None, help="draw them, an SVG file")
    others = commands.add_parser("codecs", help="read and write with codecs of other types: text, bits, casts")
    others.add_argument("--names", type=_names, default=None, help="beginnings of codecs, bz2,vlen; all by default")
    others.add_argument("--threads", type=int, default=2)
    others.add_argument("--repeats", type=_count, default=9)
    others.add_argument("--quick", action="store_true")
    for name, repeats, what in (("asdf", 7, "read and write ASDF files beside the asdf package"),
                                ("pipelines", 7, "read and write by zarr-python with each codec pipeline"),
                                ("datasets", 9, "open and read datasets of xarray with each engine"),
                                ("streams", 9, "store frames that come one by one"),
                                ("embedding", 9, "reads by zcore.h in C beside a bare loop and HDF5"),
                                ("checkpoint", 9, "checkpoints of MPI ranks by zcore.h and by parallel HDF5")):
        command = commands.add_parser(name, help=what)
        command.add_argument("--repeats", type=_count, default=repeats)
        command.add_argument("--quick", action="store_true")
    alone = commands.add_parser("kernels", help="time the kernel's leaf functions against memcpy")
    alone.add_argument("--quick", action="store_true")
    executed = commands.add_parser("instructions", help="count the instructions of some calls by callgrind")
    executed.add_argument("--write", action="store_true", help="and make the ceilings of them, for this Python")
    commands.add_parser("lines", help="count the lines of code of zcore by room, without docs and comments")
    return parser


def _run(arguments):
    selected = workloads.select(arguments.workloads, _SUITES[arguments.suite])
    timing.clock = timing.CLOCKS[arguments.clock]
    repeats = 1 if arguments.quick else arguments.repeats
    result = {
        "format": 1,
        "suite": arguments.suite,
        "time": machine.now(),
        "commit": machine.commit(),
        "machine": machine.describe(**({"spin_count": 10**6} if arguments.quick else {})),
        "data": "uint16" if arguments.suite in published.SUITES else f'float32 "{arguments.data}"',
        "seed": arguments.seed,
        "repeats": repeats,
        "clock": arguments.clock,
        "quick": arguments.quick,
        "runs": [],
    }
    for threads in arguments.threads:
        if len(arguments.threads) > 1:
            # Several libraries fix their pools at first use: each count gets a new process.
            result["runs"] += _run_in_child(arguments, threads)
            continue
        options = runner.Options(repeats=repeats, threads=threads, quick=arguments.quick, kind=arguments.data,
                                 seed=arguments.seed, directory=arguments.directory)
        if arguments.suite in published.SUITES:
            made = published.run(selected, arguments.libraries, options, arguments.planes)
        else:
            made = runner.run(selected, arguments.libraries, options)
        result["runs"].append(made)
    out = arguments.out
    if out is None and not arguments.quick and not arguments.workloads:
        _RESULTS.mkdir(exist_ok=True)
        suite = "" if arguments.suite == "rows" else f"-{arguments.suite}"
        out = _RESULTS / f"{result['time'].replace(':', '')}-{result['commit'] or 'unknown'}{suite}.json"
    if out is not None:
        out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        print(f"wrote {out}", file=sys.stderr)
    print(tables.render(result), end="")
    return int(any(workload["failed"] for run in result["runs"] for workload in run["workloads"]))


def _run_in_child(arguments, threads):
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "run.json")
        command = [sys.executable, "-m", "benchmarks", "run", "--suite", arguments.suite, "--out", str(out),
                   "--threads", str(threads),
                   "--libraries", ",".join(arguments.libraries), "--repeats", str(arguments.repeats),
                   "--data", arguments.data, "--seed", str(arguments.seed), "--clock", arguments.clock]
        if arguments.workloads:
            command += ["--workloads", ",".join(arguments.workloads)]
        if arguments.planes:
            command += ["--planes", str(arguments.planes)]
        if arguments.directory:
            command += ["--directory", arguments.directory]
        if arguments.quick:
            command.append("--quick")
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
        return json.loads(out.read_text("utf-8"))["runs"]


def _report(arguments):
    # Names begin with the time.
    results = arguments.file or [_result(path) for path in sorted(_RESULTS.glob("*.json"))]
    if not results:
        raise SystemExit(f"no result in {_RESULTS}: run `python -m benchmarks run` first")
    if arguments.html or arguments.plots:
        from benchmarks.report import page

        newest = {result.get("suite", "rows"): result for result in results if not result["quick"]}
        if not newest:
            raise SystemExit("there is no page of quick runs, as their times mean nothing")
        if arguments.html:
            arguments.html.write_text(page.render(newest, arguments.before), "utf-8")
        if arguments.plots:
            page.write_plots(newest, arguments.plots)
        return 0
    result = results[-1]
    if arguments.into:
        before, start, rest = arguments.into.read_text("utf-8").partition("<!-- rows -->")
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            raise SystemExit(f"{arguments.into} has no lines <!-- rows --> and <!-- end -->")
        text = f"{tables.conditions(result)} {tables.summary(result)}\n\n{tables.rows(result).markdown()}"
        arguments.into.write_text(f"{before}{start}\n{text}\n{end}{after}", "utf-8")
        return 0
    known = {name for run in result["runs"] for workload in run["workloads"] for name in workload["summary"]}
    if arguments.base is not None and arguments.base not in known:
        raise SystemExit(f"--base: the result has no times of {arguments.base}, but of {', '.join(sorted(known))}")
    text = tables.render(result, arguments.base)
    if arguments.out:
        arguments.out.write_text(text, "utf-8")
    else:
        print(text, end="")
    return 0


def main(argv=None):
    """Run one command and return the exit status: 1 when a library failed or gave a wrong answer."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command == "run":
        try:
            workloads.select(arguments.workloads, _SUITES[arguments.suite])
        except ValueError as exc:
            parser.error(str(exc))
        return _run(arguments)
    if arguments.command == "list":
        for workload in _SUITES[arguments.suite]:
            print(f"{workload.name}: {workload.title}")
        return 0
    if arguments.command == "report":
        return _report(arguments)
    if arguments.command == "growth":
        grown = growth.measure(arguments.sizes and dict.fromkeys(growth.VERBS, arguments.sizes), arguments.repeats)
        if arguments.plot:
            from benchmarks.report import page, plots

            arguments.plot.write_text(page.svg(plots.growth(grown)), "utf-8")
        print(growth.render(grown), end="")
        return 0
    if arguments.command == "codecs":
        timings = codecs.measure(arguments.names, arguments.repeats, arguments.threads, arguments.quick)
        print(codecs.render(timings), end="")
        return int(any(timing.failed for timing in timings if timing.library == "zcore"))
    if arguments.command == "asdf":
        measured = asdf_files.measure(arguments.repeats, arguments.quick)
        print(asdf_files.render(measured), end="")
        return int(any(timing.failed for timing in measured[0]))
    if arguments.command == "pipelines":
        print(pipelines.render(pipelines.measure(arguments.repeats, arguments.quick), pipelines.lost()))
        return 0
    if arguments.command == "streams":
        print(streams.render(streams.measure(arguments.repeats, arguments.quick)))
        return 0
    if arguments.command == "datasets":
        print(datasets.render(datasets.measure(arguments.repeats, arguments.quick), datasets.lost()))
        return 0
    if arguments.command == "embedding":
        n = 200 if arguments.quick else 2000
        print(embedding.render(embedding.measure(arguments.repeats, n), n))
        return 0
    if arguments.command == "checkpoint":
        small = {"ranks": (2,), "n_fields": 2, "n_rows": 128, "chunk_rows": 32} if arguments.quick else {}
        print(checkpoint.render(checkpoint.measure(repeats=arguments.repeats, **small)))
        return 0
    if arguments.command == "instructions":
        found = instructions.measure()
        if arguments.write:
            instructions.write(found)
        print(instructions.render(found))
        return 0
    print(kernels.render(kernels.measure(quick=arguments.quick)), end="")
    return 0
