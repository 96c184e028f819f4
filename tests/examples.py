"""How many examples a test of hypothesis has: a fifth of them by default, all of them where slow tests run.

`tests/conftest.py` chooses the profile. Examples are derandomized: on the same tree, each run has the same ones.
"""
from hypothesis import settings


def examples(n):
    """Return the settings of a test that has `n` examples where slow tests run; the profile says how many of 100."""
    return settings(max_examples=-(-n * settings().max_examples // 100))
