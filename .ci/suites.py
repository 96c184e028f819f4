"""Run the test suites of the libraries that zcore bridges to, with zcore beneath, as they are released.

    python .ci/suites.py [--work DIRECTORY] [--note FILE] [SUITE ...]

The libraries, and the sources of those whose wheels carry no tests, come from the package index; what cannot be
installed is named and skipped. A test that fails is run again with zarr-python's own pipeline. If it fails there as
well, it is not zcore's failure: the number of such tests is printed. All other failures fail the stage. So does a
suite in which nothing passed, or in which zcore's pipeline was never asked. The tests that are not run are in
`deselected.txt`, each with a reason.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import namedtuple

import versions

HERE = pathlib.Path(__file__).resolve().parent
ZCORE = "zcore.zarr.ZcoreCodecPipeline"
ZARR = "zarr.core.codec_pipeline.BatchedCodecPipeline"
MAX_SECONDS = 600
TOOLS = ["pytest", "pytest-asyncio", "pytest-xdist", "hypothesis"]

# `source`: the project whose source distribution has the tests, None if they are in the wheel. `tests`: patterns of
# files in the source, of which some releases lack some; else modules, or a file of this directory. `arguments` are
# pytest's.
Suite = namedtuple("Suite", ("name", "packages", "source", "tests", "arguments"))

SUITES = [
    Suite("zarr", ["zarr", "numcodecs", "tomlkit", "msgpack", "fsspec", "packaging", "pytest-benchmark"], "zarr", [
        "tests/test_indexing.py", "tests/test_array.py", "tests/test_group.py", "tests/test_v2.py", "tests/test_api.py",
        "tests/test_properties.py", "tests/test_codecs/test_*.py", "tests/test_*pipeline*.py",
        "tests/test_unified_chunk_grid.py"], []),
    Suite("xarray", ["xarray", "zarr", "dask[array]", "numcodecs", "fsspec"], None,
          ["xarray.tests.test_backends"], ["-k", "Zarr or zarr"]),
    Suite("xarray-zcore", ["xarray", "zarr", "dask[array]", "numcodecs"], None, [str(HERE / "xarray_suite.py")],
          ["-p", "xarray.tests.conftest"]),
    Suite("dask", ["dask[array]", "zarr"], None, ["dask.array.tests.test_array_core"], ["-k", "zarr"]),
    Suite("anndata", ["anndata", "zarr", "dask[array]", "joblib", "boltons", "awkward", "filelock", "pytest-mock"],
          "anndata", ["tests/test_io_elementwise.py", "tests/test_readwrite.py"],
          # Its plugin undoes what a test left in the global settings: without it, the outcome depends on the order.
          ["-k", "zarr", "-p", "testing.anndata._pytest"]),
    Suite("virtualizarr", ["virtualizarr", "zarr", "icechunk", "kerchunk", "dask[array]", "fastparquet", "scipy",
                           "h5py", "netCDF4", "h5netcdf", "arro3-core", "obstore", "fsspec", "pytest-mock"],
          "virtualizarr", ["virtualizarr/tests/**/test_*.py"], ["--import-mode=prepend"]),
    Suite("cubed", ["cubed", "zarr", "icechunk", "xarray"], None,
          ["cubed.tests.test_core", "cubed.tests.test_store", "cubed.tests.test_icechunk", "cubed.tests.test_indexing",
           "cubed.tests.test_rechunk", "cubed.tests.storage.test_zarr"], []),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=pathlib.Path, help="where sources and results are kept")
    parser.add_argument("--note", type=pathlib.Path, metavar="FILE", help="where `versions.py` looks for the results")
    parser.add_argument("--no-install", action="store_true", help="take what the environment has")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(suite.name for suite in SUITES)}")
    options = parser.parse_args()
    if unknown := set(options.suites) - {suite.name for suite in SUITES}:
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="zcore-suites.") as work:
        work = (options.work or pathlib.Path(work)).resolve()
        work.mkdir(exist_ok=True, parents=True)
        if not options.no_install and (refused := install(TOOLS)):
            sys.exit(refused)
        chosen = [suite for suite in SUITES if suite.name in options.suites or not options.suites]
        done = [run(suite, work, options.no_install, options.note) for suite in chosen]
    sys.exit(0 if all(done) else 1)


def install(packages):
    """Install packages, each with a name in the index; return None, or the sentence that names what cannot be had."""
    def failure(*packages):
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True)
        return done.stderr.strip().splitlines()[-1] if done.returncode else None

    # At once, and only if that fails one by one: pip takes seconds for each call.
    for package in packages if failure(*packages) else ():
        if said := failure(package):
            return f"{package} cannot be installed: {said}"
    return None


def version(package):
    """Return the installed version of a project."""
    from importlib.metadata import version

    return version(package)


def unpacked(project, work, number=None):
    """Return the directory of the source of a project, of the installed version or another, fetched from the index.

    None if it cannot be had.
    """
    number = number or version(project)
    name = f"{project}-{number}"
    if not (work / name).is_dir():
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", work,
                        f"{project}=={number}"], capture_output=True)
        archive = work / f"{name}.tar.gz"
        if not archive.is_file():
            return None
        with tarfile.open(archive) as found:
            found.extractall(work, filter="data")
    return work / name


def run(suite, work, is_installed, note):
    """Run a suite with zcore, and what fails without; print one line for it, and return whether it has passed."""
    start = time.monotonic()
    refused = None if is_installed else install(suite.packages)
    if refused:
        print(f"{suite.name}: SKIPPED, {refused}", flush=True)
        return True
    folder, tests = work, ["--pyargs", *suite.tests]
    if suite.source is not None:
        folder = unpacked(suite.source, work)
        if folder is None:
            print(f"{suite.name}: SKIPPED, the source of {suite.source} {version(suite.source)} is not in the index",
                  flush=True)
            return True
        tests = sorted({str(path.relative_to(folder)) for pattern in suite.tests for path in folder.glob(pattern)})
        if not tests:
            print(f"{suite.name}: FAILED, the source has none of {', '.join(suite.tests)}", flush=True)
            return False
    outcomes, n_calls, n_left_out, text = pytest(suite, folder, tests, ZCORE, work)
    failed = sorted(test for test, outcome in outcomes.items() if outcome == "failed")
    n_passed = len(outcomes) - len(failed)
    theirs = []
    if failed:
        only = work / f"{suite.name}.failed.json"
        only.write_text(json.dumps(failed))
        again, *_ = pytest(suite, folder, tests, ZARR, work, only)
        theirs = [test for test in failed if again.get(test) == "failed"]
    ours = [test for test in failed if test not in theirs]
    projects = {name: version(name) for name in (suite.packages[0].partition("[")[0], "zarr")}
    named = ", ".join(f"{name} {number}" for name, number in projects.items())
    passed = bool(n_passed and n_calls and not ours and text is not None)
    print(f"{suite.name}: {'passed' if passed else 'FAILED'} ({named}): {n_passed} tests passed, {len(theirs)} fail "
          f"without zcore as well, {len(ours)} fail with zcore alone; {n_calls} calls of zcore's pipeline; "
          f"{time.monotonic() - start:.0f} s", flush=True)
    if passed and note is not None:
        versions.note(note, suites={suite.name: {"title": suite.name, "versions": projects, "passed": n_passed,
                                                 "theirs": len(theirs), "left_out": n_left_out}})
        versions.note(note, packages=versions.installed())
    if not passed:
        print(f"it took longer than {MAX_SECONDS} s" if text is None else text, *ours, sep="\n", flush=True)
    return passed


def pytest(suite, folder, tests, pipeline, work, only=None):
    """Run tests; return their outcomes by id, how often zcore's pipeline was called, how many tests were left out, and
    the text, which is None if there was no end.
    """
    with tempfile.TemporaryDirectory(prefix="results.", dir=work) as results:
        results = pathlib.Path(results)
        ini = results / "pytest.ini"
        # The suite's own file would ask for plugins that nothing here needs.
        ini.write_text("[pytest]\nasyncio_mode = auto\n")
        environment = {**os.environ, "ZARR_CODEC_PIPELINE__PATH": pipeline, "ZCORE_SUITE": suite.name,
                       "ZCORE_SUITE_PLAIN": str(int(pipeline == ZARR)),
                       "ZCORE_SUITE_RESULTS": str(results),
                       # Tests that are made of a set must be the same ones in each worker.
                       "PYTHONHASHSEED": "0", "HYPOTHESIS_STORAGE_DIRECTORY": str(results / "examples"),
                       "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))}
        if only is not None:
            environment["ZCORE_SUITE_ONLY"] = str(only)
        command = [sys.executable, "-m", "pytest", "-c", str(ini), f"--rootdir={folder}", "-p", "suites_plugin", "-p",
                   "no:cacheprovider", "-q", "--tb=short", "-n", os.environ.get("ZCORE_SUITE_PROCESSES", "auto"),
                   "--benchmark-disable" if "pytest-benchmark" in suite.packages else "-q", *suite.arguments, *tests]
        try:
            text = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=MAX_SECONDS).stdout
        except subprocess.TimeoutExpired:
            text = None
        outcomes = results / "outcomes.json"
        outcomes = json.loads(outcomes.read_text()) if outcomes.is_file() else {}
        left_out = max([int(path.read_text()) for path in results.glob("left-out-*")], default=0)
        return outcomes, sum(int(path.read_text()) for path in results.glob("calls-*")), left_out, text


if __name__ == "__main__":
    main()
