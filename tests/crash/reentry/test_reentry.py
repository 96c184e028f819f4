"""Every call in every context: right, or an error that says why, and no wait for oneself."""
import pytest

from tests.crash.reentry.child import STORES
from tests.crash.reentry.contexts import CONTEXTS
from tests.crash.reentry.table import CALLS, KINDS, run

QUICK = ("write", "append", "attributes", "overwrite", "delete", "read")


@pytest.mark.parametrize("context", CONTEXTS)
def test_some_calls_within_an_overwriting(context):
    n_tried, found = run("child", context, "directory", 1, 1, "overwrite", *QUICK)
    assert found == [] and n_tried == len(QUICK)


@pytest.mark.parametrize("kind", ["atexit", "finalizer"])
def test_calls_at_exit(kind):
    assert run("at_exit", kind, *CALLS) == (len(CALLS), [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_calls_at_exit(kind):
    assert run("at_exit", kind, *CALLS) == (len(CALLS), [])


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("context", CONTEXTS)
def test_all_calls_within_all_calls(context, store):
    """At 20 random events each."""
    if (context, store) == ("fork", "memory"):
        pytest.skip("the child has a copy of the store")
    n_all = 0
    for outer in CALLS:
        n_tried, found = run("child", context, store, 1, 20 if context != "task" else 2, outer, *CALLS)
        assert found == []
        n_all += n_tried
    assert n_all >= len(CALLS) * len(CALLS)
