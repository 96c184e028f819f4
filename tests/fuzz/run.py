"""Coverage-guided fuzzing: `python -m tests.fuzz.run blosc --seconds 600`.

libFuzzer changes inputs at random, and goes on from those that reach new code. It begins with the corpus of the tree
(`tests/fuzz/corpus`). Targets that call the kernel need clang with its runtime library, and are built with the address
and the undefined behaviour sanitizers; the others need atheris (``pip install atheris``), and Python's coverage guides
them. A missing tool is said, and nothing is tried.

A finding is an exception that is not zcore's, an answer that differs from that of the judge, a report of a sanitizer, a
crash, more than 1 s of the processor for one input, one allocation of more than 512 MB, or 2 GB in all. Its input is
left in the folder that the last lines name.

``--keep FOLDER`` collects the inputs in a folder, from which the next run goes on. ``--minimise`` then replaces the
corpus of the tree by the shortest of them that reach the same code, up to a size.
"""
import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.guided import builds, corpus

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ("blosc", "stream", "long_blosc", "long_stream", "shard_index", "reference_set")
IN_PYTHON = ("document", "strict_json", "reference_model", "expression", "generated", "asdf_layout", "asdf_tree",
             "zip_archive", "parquet", "http_answer")
MAX_LENGTH = {"parquet": 16384}          # of an input, in bytes
LENGTH = 4096
OPTIONS = ("-print_final_stats=1", "-timeout=60", "-report_slow_units=1000", "-rss_limit_mb=2048",
           "-malloc_limit_mb=512", "-reload=0", "-entropic=0")
SHOWN = re.compile(r"#\d+\s+(INITED|pulse|DONE)|==\d+==|SUMMARY|expectation failed|Test unit|artifact")


def command_of(target):
    """Return the command of a target's fuzzer and its environment; or the reason why there is none."""
    if target in IN_PYTHON:
        if importlib.util.find_spec("atheris") is None:
            return "atheris is not installed (pip install atheris)"
        return [sys.executable, "-m", "tests.fuzz.guided.python_driver", target], dict(os.environ)
    compiler = builds.clang()
    if compiler is None:
        return "no clang with libFuzzer was found (Debian: apt-get install clang libclang-rt-14-dev)"
    program, folders = builds.built_for_libfuzzer(compiler, ROOT / "build/fuzz")
    path = [*map(str, folders), str(ROOT), *filter(None, sys.path)]
    return [str(program)], {
        **os.environ, "ZCORE_FUZZ_TARGET": target, "PYTHONPATH": os.pathsep.join(path), "PYTHONHOME": sys.base_prefix,
        # With malloc, each object of Python has its own memory, and the address sanitizer sees where it ends.
        "PYTHONMALLOC": "malloc" if target == "reference_set" else "pymalloc",
        # The interpreter itself leaves memory behind. The others make it faster.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:malloc_context_size=0:quarantine_size_mb=4",
        "UBSAN_OPTIONS": "print_stacktrace=1"}


class Fuzzer:
    """The fuzzer of one target."""

    def __init__(self, target, command, environment, folder):
        self.command, self.environment, self.folder = command, environment, Path(folder)
        length = MAX_LENGTH.get(target, LENGTH)
        self.options = (*OPTIONS, f"-max_len={length}", f"-artifact_prefix={self.folder}/found-")
        self.seconds = 0.0

    def run(self, *arguments, show=False):
        """Run it, and return all that it says."""
        began = time.monotonic()
        said = []
        with subprocess.Popen([*self.command, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment, cwd=ROOT, text=True, errors="replace") as process:
            for line in process.stdout:
                said.append(line)
                if show and SHOWN.search(line):
                    print(line, end="", flush=True)
        self.status = process.returncode
        self.seconds = time.monotonic() - began
        return "".join(said)


def fuzzed(target, seconds, keep, minimise):
    """Run the fuzzer of a target, and return the facts about it."""
    facts = {"part": f"fuzz {target}", "tried": 0, "unit": "executions", "found": 0, "seconds": 0}
    command = command_of(target)
    if isinstance(command, str):
        return {**facts, "skipped": command}
    folder = Path(tempfile.mkdtemp(prefix="zcore-fuzz-"))
    inputs = Path(keep or folder / "inputs")
    seeds = folder / "seeds"
    for needed in (inputs, seeds):
        needed.mkdir(parents=True, exist_ok=True)
    for name, data in corpus.inputs_of(target).items():
        (seeds / name).write_bytes(data)
    fuzzer = Fuzzer(target, *command, folder)
    if minimise:
        least = folder / "least"
        least.mkdir()
        print(fuzzer.run(*fuzzer.options, "-merge=1", least, seeds, inputs)[-600:])
        corpus.keep(target, [file.read_bytes() for file in least.iterdir()])
        return {**facts, "seconds": round(fuzzer.seconds, 1), "kept": len(corpus.inputs_of(target))}
    said = fuzzer.run(*fuzzer.options, f"-max_total_time={max(1, int(seconds))}", inputs, seeds, show=True)
    taken = fuzzer.seconds
    stated = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    edges = [int(n) for n in re.findall(r"^#\d+\s+\S+\s+cov: (\d+)", said, re.MULTILINE)]
    found = sorted(folder.glob("found-*"))
    if stated is None or (fuzzer.status and not found):
        raise SystemExit(f"the fuzzer ended with {fuzzer.status}:\n{said[-4000:]}")
    for file in found:
        print(f"found: {file}")
    if fuzzer.status:
        print(said[-6000:])
    n = int(stated[1])
    # Without the time in which the fuzzer starts.
    speed = re.search(r"stat::average_exec_per_sec:\s*(\d+)", said)
    return {**facts, "tried": n, "found": len(found), "seconds": round(taken, 1), "per_second": int(speed[1]),
            "edges": edges[:1] + edges[-1:]}


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=(*NATIVE, *IN_PYTHON))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--minimise", action="store_true")
    given = parser.parse_args()
    facts = fuzzed(given.target, given.seconds, given.keep, given.minimise)
    if "skipped" in facts:
        print(f"{given.target} was not fuzzed: {facts['skipped']}")
    print(json.dumps(facts))
    return 1 if facts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
