"""Settings of every test: repeatable examples, no deadlines.

Warnings are errors and `slow` is left out by default; both are said in pyproject.toml.
"""
import hypothesis

# Derandomized: a run is a fact about the tree, not about the day. Without deadline: no test measures time.
hypothesis.settings.register_profile("zcore", derandomize=True, deadline=None, database=None, print_blob=True)
hypothesis.settings.load_profile("zcore")


def pytest_ignore_collect(collection_path):
    """Leave helpers and scripts unread: pyproject.toml asks for the doctests of modules, those of zcore are meant."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None
