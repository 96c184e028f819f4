"""Run the pages of zarr-python's documentation with zcore, block by block.

    python .ci/pages.py [--work DIRECTORY] [--write]

The pages are in the source distributions, which come from the package index: that of the installed zarr-python, and
the last one of zarr-python 2 for its tutorial. What cannot be had is named and skipped. Each page runs in a process
and a folder of its own, and ``import zarr`` means zcore there. A block that fails is listed in `pages.txt` with its
reason; every other failure fails the stage. docs/from-zarr.md has a table of the numbers, which ``--write`` writes.
"""
import argparse
import ast
import contextlib
import doctest
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import suites

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "from-zarr.md"
MAX_SECONDS = 600
OLD = "2.18.7"
PAGES = ("quick-start", "arrays", "attributes", "groups", "data_types", "performance", "consolidated_metadata",
         "config", "storage")
HEAD = "| page | blocks | run | why the others do not |\n|---|---|---|---|\n"


class Renamed(ast.NodeTransformer):
    """Makes imports of zarr those of zcore."""

    def visit_Import(self, node):
        made = []
        for alias in node.names:
            if alias.name.partition(".")[0] == "zarr":
                mine = "zcore" + alias.name.removeprefix("zarr")
                made.append(ast.Import([ast.alias(mine, alias.asname or ("zarr" if mine == "zcore" else None))]))
                if "." in mine and not alias.asname:
                    made.append(ast.Import([ast.alias("zcore", "zarr")]))
            else:
                made.append(ast.Import([alias]))
        return made

    def visit_ImportFrom(self, node):
        if (node.module or "").partition(".")[0] == "zarr":
            node.module = "zcore" + node.module.removeprefix("zarr")
        return node


def blocks(path):
    """Return the blocks of a page: lists of (session, source, mode). Later ones of a list may need the earlier ones."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        found = re.findall(r"^```python([^\n]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        return [[(re.search('session="([^"]+)"', head)[1], source, "exec")] for head, source in found
                if 'exec="false"' not in head]
    lists = [[]]
    for part in doctest.DocTestParser().parse(text):
        if isinstance(part, doctest.Example):
            lists[-1].append(("", part.source, "single"))
        elif part.strip():
            lists.append([])
    return list(filter(None, lists))


def outcomes(path):
    """Run the blocks of a page here; return for each list of blocks a list of (source, error or None)."""
    sessions, found = {}, []
    for group in blocks(path):
        found.append([])
        for session, source, mode in group:
            names = sessions.setdefault(session, {"__name__": "__main__"})
            error = None
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    tree = ast.fix_missing_locations(Renamed().visit(ast.parse(source, mode=mode)))
                    exec(compile(tree, path.name, mode), names)
                except Exception as exc:
                    error = f"{type(exc).__name__}: {exc}"
            found[-1].append((source, error))
    return found


def listed():
    """Return (page, pattern, reason) of each line of `pages.txt`."""
    lines = (HERE / "pages.txt").read_text(encoding="utf-8").splitlines()
    return [re.split(r"\s{2,}", line.strip()) for line in lines if line.strip() and not line.startswith("#")]


def judged(name, found):
    """Return how many blocks there are and run, the reasons of others, and the failures without one."""
    rows = [(pattern, reason) for page, pattern, reason in listed() if page == name]
    n = n_run = 0
    reasons, strange = {}, []
    for group in found:
        last = None      # what follows a failure in a list of examples may fail for the same reason
        for source, error in group:
            n += 1
            if error is None:
                n_run += 1
                continue
            reason = next((reason for pattern, reason in rows if re.search(pattern, source)), last)
            if reason is None:
                strange.append(f"{name}: {source.strip()[:300]}\n    {error[:300]}")
            else:
                last = reason
                reasons[reason] = reasons.get(reason, 0) + 1
    return n, n_run, reasons, strange


def run(path, folder):
    """Run a page in a process and a folder of its own; return its outcomes."""
    done = subprocess.run([sys.executable, __file__, "--page", path], cwd=folder, capture_output=True, text=True,
                          timeout=MAX_SECONDS, env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"})
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="where sources are kept")
    parser.add_argument("--write", action="store_true", help="write the table of docs/from-zarr.md")
    parser.add_argument("--page", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.page:
        found = outcomes(options.page)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(prefix="zcore-pages.") as work:
        work = (options.work or pathlib.Path(work)).resolve()
        work.mkdir(exist_ok=True, parents=True)
        suites.install(["zarr", "obstore", "fsspec"])     # which some blocks import
        new, old = suites.unpacked("zarr", work), suites.unpacked("zarr", work, OLD)
        paths = []
        if new is not None:
            pages = [new / "docs" / f"{name}.md" for name in PAGES] + [
                new / "docs" / "user-guide" / f"{name}.md" for name in PAGES]
            paths += [path for path in pages if path.is_file()]
        if old is not None:
            paths.append(old / "docs" / "tutorial.rst")
        if not paths:
            print("SKIPPED: the sources of zarr-python are not in the index")
            return
        rows, failures = [], []
        for path in paths:
            with tempfile.TemporaryDirectory(prefix="page.", dir=work) as folder:
                n, n_run, reasons, strange = judged(path.stem, run(path, folder))
            title = f"tutorial of {OLD}" if path.suffix == ".rst" else path.stem.replace("_", " ")
            told = "; ".join([reason if count == 1 else f"{reason} ({count})" for reason, count in reasons.items()])
            rows.append(f"| {title} | {n} | {n_run} | {told} |\n")
            failures += strange
        print("".join(rows), *failures, sep="\n")
        text = DOCS.read_text(encoding="utf-8")
        start = text.index(HEAD) + len(HEAD)
        stop = text.index("\n\n", start - 1) + 1
        if options.write:
            DOCS.write_text(text[:start] + "".join(rows) + text[stop:], encoding="utf-8")
        elif text[start:stop] != "".join(rows):
            # A new release of zarr-python has other pages: that is no failure.
            print("docs/from-zarr.md has other numbers; python .ci/pages.py --write writes these")
        sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
