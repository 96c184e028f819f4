"""`tests/each.py`: every case is run, and every failure is told."""
import pytest

from tests.each import each


def run(test, **fixtures):
    """Return how a test ended, an exception or None."""
    try:
        test(**fixtures)
    except BaseException as exc:
        return exc


def test_every_case_is_run_and_every_failure_named():
    seen = []

    @each("a", [1, 2, 3])
    @each(("b", "c"), [(1, 2), (3, 4)], ids=["low", "high"])
    def test(given, a, b, c):
        seen.append((given, a, b, c))
        assert (a, b) != (3, 3)

    found = run(test, given=0)
    assert seen == [(0, a, *rest) for a in (1, 2, 3) for rest in ((1, 2), (3, 4))]
    assert isinstance(found, AssertionError) and found.__notes__ == ["case 1 of 2: high", "case 2 of 3: 3"]
    several = run(each("a", range(4))(lambda a: pytest.fail("odd") if a % 2 else None))
    assert isinstance(several, BaseExceptionGroup) and [exc.__notes__ for exc in several.exceptions] == [
        ["case 1 of 4: 1"], ["case 3 of 4: 3"]]


def test_a_skipped_case_hides_no_failure():
    def test(a):
        if a < 2:
            pytest.skip(f"no {a}")
        assert a != 3

    assert isinstance(run(each("a", [1, 2])(test)), pytest.skip.Exception)
    assert isinstance(run(each("a", [3, 1])(test)), AssertionError) and run(each("a", [2])(test)) is None
