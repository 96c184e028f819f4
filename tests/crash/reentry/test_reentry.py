"""Every call in every context: right, or an error that says why, and no wait for oneself."""
import pytest

from tests.crash.reentry.contexts import CONTEXTS
from tests.crash.reentry.table import CALLS_OF, KINDS, outers_of, run, stores_of

CALLS = CALLS_OF["v3"]
QUICK = ("write", "append", "attributes", "overwrite", "copy to", "delete", "read")


@pytest.mark.parametrize("context", CONTEXTS)
def test_some_calls_within_an_overwriting(context):
    n_tried, found = run("child", context, "directory", "v3", 1, 1, "overwrite", *QUICK)
    assert found == [] and n_tried == len(QUICK)


@pytest.mark.parametrize("kind", ["atexit", "finalizer"])
def test_calls_at_exit(kind):
    assert run("at_exit", kind, "v3", *CALLS) == (len(CALLS), [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_calls_at_exit(kind):
    assert run("at_exit", kind, "v3", *CALLS) == (len(CALLS), [])


@pytest.mark.slow
@pytest.mark.parametrize(("context", "store", "outer"), [
    (context, store, outer) for context in CONTEXTS for store in stores_of(context)
    for outer in outers_of(context, "v3")])
def test_all_calls_within_all_calls(context, store, outer):
    """At 20 random events each."""
    n_times = 20 if context != "task" else 2
    assert run("child", context, store, "v3", 1, n_times, outer, *CALLS) == (n_times * len(CALLS), [])
