"""Plugin of pytest for `suites.py`: selects the tests of one suite, counts what zcore did, and notes what failed.

The environment says how: ``ZCORE_SUITE`` is the name of the suite, ``ZCORE_SUITE_ONLY`` a file with the ids of the only
tests to run, ``ZCORE_SUITE_RESULTS`` a directory for what was found.
"""
import json
import os
import pathlib
import re

import hypothesis

HERE = pathlib.Path(__file__).parent
RESULTS = pathlib.Path(os.environ["ZCORE_SUITE_RESULTS"])
MAX_EXAMPLES = 60

outcomes = {}
n_calls = 0


def deselections(suite):
    """Return the regular expressions of a suite's tests that are not run; each has a reason in the file."""
    found = []
    for line in (HERE / "deselected.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, pattern, reason = re.split(r"\s{2,}", line.strip(), maxsplit=2)
            if not reason:
                raise ValueError(f"deselected.txt: no reason for {pattern}")
            if name == suite:
                found.append(re.compile(pattern))
    return found


def pytest_configure(config):
    """Count the chunks that zcore's pipeline is asked for; another pipeline leaves the count at 0."""
    import zcore.zarr

    def counted(function):
        def call(*args, **keywords):
            global n_calls
            n_calls += 1
            return function(*args, **keywords)

        return call

    pipeline = zcore.zarr.ZcoreCodecPipeline
    pipeline.read = counted(pipeline.read)
    pipeline.write = counted(pipeline.write)


def pytest_collection_modifyitems(config, items):
    for test in {getattr(item.obj, "__func__", item.obj) for item in items if hasattr(item, "obj")}:
        if getattr(test, "is_hypothesis_test", False):
            # Suites ask for up to 300, which would take longer than all their other tests.
            test._hypothesis_internal_use_settings = hypothesis.settings(
                getattr(test, "_hypothesis_internal_use_settings", None), max_examples=MAX_EXAMPLES)
    only = os.environ.get("ZCORE_SUITE_ONLY")
    only = only and set(json.loads(pathlib.Path(only).read_text()))
    patterns = deselections(os.environ["ZCORE_SUITE"])
    left_out = [item for item in items if (item.nodeid not in only if only else
                                           any(pattern.search(item.nodeid) for pattern in patterns))]
    config.hook.pytest_deselected(items=left_out)
    # Each worker collects all tests.
    (RESULTS / f"left-out-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}").write_text(str(len(left_out)))
    chosen = set(map(id, items)) - set(map(id, left_out))
    items[:] = [item for item in items if id(item) in chosen]


def pytest_runtest_logreport(report):
    if report.failed:
        outcomes[report.nodeid] = "failed"
    elif report.when == "call" and report.passed:
        outcomes.setdefault(report.nodeid, "passed")


def pytest_sessionfinish(session):
    # Each worker counts its own calls; the outcomes of all come together in the controller.
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    (RESULTS / f"calls-{worker or 'main'}").write_text(str(n_calls))
    if worker is None:
        (RESULTS / "outcomes.json").write_text(json.dumps(outcomes))
