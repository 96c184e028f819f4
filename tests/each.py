"""Many cases in one test: for those that take microseconds, of which pytest and xdist would make milliseconds."""
import functools
import inspect

import pytest


def each(names, cases, ids=None):
    """Run a test for each case, as `pytest.mark.parametrize` does, but as one test with one set of fixtures.

    Every case is run, and every failure names its case. Where a case is skipped and none has failed, the test counts as
    skipped. For tests that leave nothing in their fixtures.

    Parameters
    ----------
    names : str or sequence of str
    cases : iterable
        Of values, or where there are several names of tuples of them; none of `pytest.param`.
    ids : sequence of str or callable, optional
        How a failure names a case; by default what the case is.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(cases)
    assert cases and not any([hasattr(case, "marks") for case in cases])

    ids = list(ids) if ids is not None and not callable(ids) else ids

    def named(i):
        if ids is None:
            return repr(cases[i])
        if not callable(ids):
            return ids[i]
        return "-".join([str(ids(value)) for value in (cases[i] if len(names) > 1 else [cases[i]])])

    def decorate(function):
        @functools.wraps(function)
        def test(*args, **kwargs):
            failures, skipped = [], None
            for i, case in enumerate(cases):
                given = dict(zip(names, case if len(names) > 1 else [case], strict=True))
                try:
                    function(*args, **kwargs, **given)
                except pytest.skip.Exception as exc:
                    skipped = exc
                except (Exception, pytest.fail.Exception) as exc:
                    exc.add_note(f"case {i} of {len(cases)}: {named(i)}")
                    failures.append(exc)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(cases)} cases", failures)
            if skipped is not None:
                raise skipped

        signature = inspect.signature(function)
        assert signature.parameters.keys() >= set(names)
        test.__signature__ = signature.replace(
            parameters=[value for name, value in signature.parameters.items() if name not in names])
        return test

    return decorate
