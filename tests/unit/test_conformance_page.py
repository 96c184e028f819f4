"""The lists of rules: each rule has a test or a sentence, and the page that shows them can be made."""
import doctest
import functools
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs" / "conformance" / "make_page.py"

LIST = """
title = "A format"
source = "Its text."
[sections."First part"]
V3-ONE-01 = "a rule"
V3-ONE-02 = { rule = "another | rule", untested = "because" }
V3-ONE-03 = { rule = "a third one", note = "though" }
"""
TESTS = '''
def test_a():
    """V3-ONE-01: text."""

class TestMany:
    def test_b(self):
        """V3-ONE-01, V3-ONE-03"""

def helper():
    """V3-ONE-02"""
'''


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.read_tests = functools.cache(module.read_tests)     # of all tests, once
    return module


@pytest.fixture
def small(script, tmp_path):
    """Return a function that gives lists, tests and all complaints for other texts than those above."""
    def read(rules=LIST, tests=TESTS):
        (tmp_path / "rules.toml").write_text(rules)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests/test_x.py").write_text(tests)
        families = script.read_lists(tmp_path, ["rules"])
        shown, complaints = script.read_tests(tmp_path / "tests")
        return families, shown, complaints + script.complaints_about(families, shown)

    return read


def test_each_rule_has_a_test_or_a_sentence(script):
    families = script.read_lists()
    shown, complaints = script.read_tests()
    assert complaints + script.complaints_about(families, shown) == []


def test_the_page_is_made(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "PAGE", tmp_path / "conformance.md")
    assert script.main() == 0
    text = script.PAGE.read_text(encoding="utf-8")
    assert all(f"\n## {family.title}\n" in text for family in script.read_lists())


def test_every_list_is_linked():
    text = (SCRIPT.parent / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in SCRIPT.parent.glob("*.toml") if f"({file.name})" not in text] == []


def test_docstrings_hold(script):
    assert doctest.testmod(script).failed == 0


def test_all_lists_are_read(script):
    assert {file.stem for file in SCRIPT.parent.glob("*.toml")} == set(script.LISTS)


def test_rows_and_counts(script, small):
    families, shown, complaints = small()
    assert complaints == []
    assert shown == {"V3-ONE-01": ["test_x.py::test_a", "test_x.py::TestMany::test_b"],
                     "V3-ONE-03": ["test_x.py::TestMany::test_b"]}
    lines = script.render(families, shown).splitlines()
    assert "| [A format](#a-format) | 3 | 2 | 1 |" in lines and "| all | 3 | 2 | 1 |" in lines
    assert lines[-3:] == [
        "| `V3-ONE-01` | a rule | `test_x.py::test_a`<br>`::TestMany::test_b` |",
        "| `V3-ONE-02` | another \\| rule | *because* |",
        "| `V3-ONE-03` | a third one | `test_x.py::TestMany::test_b`<br>*though* |",
    ]


@pytest.mark.parametrize(("tests", "complaint"), [
    (TESTS.replace("V3-ONE-03", "V3-ONE-02"), "V3-ONE-03 has neither a test nor a sentence"),
    (TESTS.replace("V3-ONE-01:", "V3-ONE-01, V3-ONE-02:"), "V3-ONE-02 is said to have no test: test_x.py::test_a"),
    (TESTS.replace("V3-ONE-01:", "V3-ONE-01, V3-OEN-01:"), "V3-OEN-01 is in no list: test_x.py::test_a"),
    (TESTS.replace("V3-ONE-01:", "V3-ONE-01 to V3-ONE-04:"), "V3-ONE-04 is in no list: test_x.py::test_a"),
    (TESTS.replace("V3-ONE-01:", "V3-ONE-01, -03:"),
     "test_x.py::test_a: 'V3-ONE-01, -03': give each item its whole name"),
])
def test_what_is_wrong_is_said(small, tests, complaint):
    assert complaint in small(tests=tests)[2]


@pytest.mark.parametrize("rules", [
    LIST + 'V3-ONE-04 = { rule = "x", why = "y" }', LIST + 'V3-ONE = "x"',
    LIST + '[sections."Second part"]\nV3-ONE-01 = "the same again"',
])
def test_lists_that_are_wrong(small, rules):
    with pytest.raises(ValueError, match="in the lists twice, or no item"):
        small(rules)
