"""Make `docs/conformance.md`: each rule of the formats that zcore follows, and the tests that show it.

::

    python docs/conformance/make_page.py

The rules are in the lists beside this script, one TOML file a format: an item's name and the rule in one clause, or a
table of three::

    V3-DOC-01 = "the document of a node is `zarr.json` below its path"
    V3-DOC-08 = { rule = "directories of hierarchies are named `*.zarr`", untested = "advice to users" }
    V3-XC-01  = { rule = "…", note = "where zcore differs, or what the tests cannot show" }

A test shows an item when its docstring names it, ``V3-DOC-01``, or a run of them, ``V3-DOC-01 to V3-DOC-03``. The page
is built with the docs and is not in the tree. `tests/unit/test_conformance_page.py` checks the lists: it fails when an
item has neither a test nor a sentence, when it has a test though a sentence says that there is none, and when a test
names an item that is in no list. Nothing here imports zcore.
"""
import ast
import re
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PAGE = FOLDER.parent / "conformance.md"
TESTS = FOLDER.parents[1] / "tests"
LISTS = ("zarr_v3", "zarr_v2", "zarr_v3_draft", "zmeta", "blosc_chunks", "filesystem_store", "references", "asdf")

INTRODUCTION = """\
# Conformance, rule by rule

<!-- Made by docs/conformance/make_page.py from the lists beside it and the docstrings of the tests: do not edit. -->

Every rule of the formats that zcore follows, and the tests that show it: what is read, what is written, and what
happens to documents and chunks that break the rule. Where no test shows a rule, a sentence says why. A note says where
zcore differs. Tests are named by their files below `tests/`. `docs/conformance/make_page.py` makes this page from the
lists of rules beside it and the docstrings of the tests.
"""

Family = namedtuple("Family", ("title", "source", "sections"))
Item = namedtuple("Item", ("name", "rule", "untested", "note"))

_NAME = r"(?:V1|V2|V3|D3|ZM|BL|FS|RF|AS)(?:-[A-Z0-9]+)?-\d+"
_RUN = re.compile(rf"(?<![\w-])({_NAME})(?: to ({_NAME}))?(?![\w-])")
# "V3-DOC-01, -02" or "V3-DOC-01 to 03": a search for an item would not find it.
_SHORTHAND = re.compile(rf"(?<![\w-]){_NAME}(?:,| and| to) -?\d+\b")


def read_lists(folder=FOLDER, names=LISTS):
    """Return a list of the `Family` of each list; its sections are a dict of title to list of `Item`.

    Raises : ValueError, when an item is in the lists twice or has other members.
    """
    families, seen = [], set()
    for name in names:
        content = tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8"))
        sections = {title: [_item(*entry, seen) for entry in entries.items()]
                    for title, entries in content["sections"].items()}
        families.append(Family(content["title"], content["source"], sections))
    return families


def _item(name, entry, seen):
    entry = {"rule": entry} if isinstance(entry, str) else entry
    if name in seen or not re.fullmatch(_NAME, name) or entry.keys() - {"rule", "untested", "note"}:
        raise ValueError(f"{name}: in the lists twice, or no item")
    seen.add(name)
    return Item(name, entry["rule"], entry.get("untested"), entry.get("note"))


def items_in(text):
    """Return a list of the items that a docstring names.

    >>> items_in("V3-DOC-01 to V3-DOC-03, V1-01: of all kinds")
    ['V3-DOC-01', 'V3-DOC-02', 'V3-DOC-03', 'V1-01']
    """
    items = []
    for first, last in _RUN.findall(text):
        area, _, number = first.rpartition("-")
        until = int((last or first).rpartition("-")[2])
        items += [f"{area}-{i:0{len(number)}}" for i in range(int(number), until + 1)]
    return items


def read_tests(folder=TESTS):
    """Return (dict of item to the names of its tests, list of complaints about the docstrings)."""
    shown, complaints = {}, []
    for file in sorted(folder.rglob("*.py")):
        name, text = file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")
        # Most files name no item; to parse all takes seconds.
        for test, docstring in _tests_of(ast.parse(text if _RUN.search(text) else ""), name):
            complaints += [f"{test}: {found[0]!r}: give each item its whole name"
                           for found in _SHORTHAND.finditer(docstring)]
            for item in dict.fromkeys(items_in(docstring)):
                shown.setdefault(item, []).append(test)
    return shown, complaints


def _tests_of(node, name):
    """Yield (name for pytest, docstring) of the tests in a module or class."""
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _tests_of(child, f"{name}::{child.name}")
        elif isinstance(child, ast.FunctionDef) and child.name.startswith("test_"):
            yield f"{name}::{child.name}", ast.get_docstring(child) or ""


def complaints_about(families, shown):
    """Return a list of what is wrong between lists and tests."""
    items = {item.name: item for family in families for section in family.sections.values() for item in section}
    complaints = [f"{name} is in no list: {', '.join(tests)}" for name, tests in sorted(shown.items())
                  if name not in items]
    for item in items.values():
        if item.name not in shown and item.untested is None:
            complaints.append(f"{item.name} has neither a test nor a sentence")
        if item.name in shown and item.untested is not None:
            complaints.append(f"{item.name} is said to have no test: {', '.join(shown[item.name])}")
    return complaints


def render(families, shown):
    """Return the text of the page."""
    parts = [INTRODUCTION, "| rules of | items | tested | explained |\n|---|---|---|---|"]
    for family in families:
        title = f"[{family.title}](#{family.title.lower().replace(' ', '-')})"
        parts.append(f"| {title} | {' | '.join(map(str, _counts(family, shown)))} |")
    parts.append("| all | " + " | ".join([str(sum(column)) for column in zip(
        *[_counts(family, shown) for family in families], strict=True)]) + " |")
    for family in families:
        n_items, n_tested, n_explained = _counts(family, shown)
        count = f"{n_items} items: {n_tested} tested, {n_explained} explained."
        parts.append(f"\n## {family.title}\n\n{family.source} {count}")
        for title, items in family.sections.items():
            parts.append(f"\n### {title}\n\n| item | rule | tests |\n|---|---|---|")
            parts += [f"| `{item.name}` | {_cell(item.rule)} | {_cell(_shown_by(item, shown))} |" for item in items]
    return "\n".join(parts) + "\n"


def _counts(family, shown):
    items = [item.name for section in family.sections.values() for item in section]
    tested = sum([name in shown for name in items])
    return len(items), tested, len(items) - tested


def _cell(text):
    return text.replace("|", "\\|")


def _shown_by(item, shown):
    """Return the tests of an item, the file of each run of them named once, and what is said of it."""
    lines, last = [], None
    for test in shown.get(item.name, ()):
        file, _, name = test.partition("::")
        lines.append(f"`::{name}`" if file == last else f"`{test}`")
        last = file
    return "<br>".join([*lines, *[f"*{text}*" for text in (item.untested, item.note) if text]])


def main():
    """Write the page; returns 1 when something is wrong between lists and tests."""
    families = read_lists()
    shown, complaints = read_tests()
    complaints = complaints + complaints_about(families, shown)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    PAGE.write_text(render(families, shown), encoding="utf-8")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
