"""README and docs: sessions run, examples compile, links and names lead somewhere."""
import doctest
import errno
import inspect
import os
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from Cython.Build import cythonize

import zcore
from tests.each import each

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
MADE = ROOT / "docs" / "conformance.md"       # not in the tree: docs/conformance/make_page.py makes it
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted(set((ROOT / "docs").rglob("*.md")) - {MADE})]
INSTALL_AND_SEE = 'python -m pip install -e ".[demo]" && zcore demo'
INSTALL_AND_TEST = 'python -m pip install -e ".[test]" && python -m pytest'

def name_of(page):
    return page.relative_to(ROOT).as_posix()


pages = each("page", PAGES, ids=name_of)


def blocks(page, language):
    """Return the fenced blocks of a language as (line number, text)."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(1)) + 1, found[1])
            for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]


def test_the_two_commands_stand_as_they_are_run():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert INSTALL_AND_SEE in lines and INSTALL_AND_TEST in lines
    assert lines.index(INSTALL_AND_TEST) < 25
    assert len(lines) <= 130
    assert any(line.startswith("![") for line in lines[:10])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_sessions(page, tmp_path, monkeypatch, capsys):
    """All sessions of a page are one, in an empty folder; what they print is compared, ``...`` being any text.

    Sessions of a terminal are run by `unit/cli/test_docs.py`, but for those that go on with the files of a page.
    """
    monkeypatch.chdir(tmp_path)
    names = {}
    n_examples = 0
    for line, text in blocks(page, "python"):
        test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line - 1)
        names = test.globs
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        complaints = []
        runner.run(test, out=complaints.append, clear_globs=False)
        assert not runner.failures, "".join(complaints)
        n_examples += len(test.examples)
    assert n_examples >= 10 or page != README
    for _, text in blocks(page, "console") if page.name == "start.md" else ():
        check_typed(text, capsys)


def check_typed(session, capsys):
    """Run the commands of a session of a terminal, and compare what they print; ``...`` is any text."""
    from zcore.__main__ import main

    for line, expected in re.findall(r"^\$ zcore (.*)\n((?:(?!\$ ).*\n)*)", session, re.MULTILINE):
        main(shlex.split(line))
        printed = "".join(capsys.readouterr())
        assert doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS), printed


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "cython")], ids=name_of)
def test_cython_examples_compile(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for line, text in blocks(page, "cython"):
        if "cimport" in text:
            source = Path(f"example_{line}.pyx")
            source.write_text(text)
            cythonize(str(source), include_path=[str(Path(zcore.__file__).parents[1])], quiet=True)
            assert source.with_suffix(".c").exists()


@pages
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        linked = page if not name else page.parent / name
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
            assert anchor in anchors, target


@pages
def test_paths_that_are_named_exist(page):
    named = set(re.findall(r"(?<![\w/.-])(?:zcore|tests|benchmarks|docs)/[\w/-]+(?:\.[a-z]\w*)?",
                           page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named - made_on(page)) if not (ROOT / name).exists()] == []


def made_on(page):
    """Return the files that a page writes from nothing; one is the title of a block."""
    return set(re.findall(r"^`([\w/.]+)`:\n\n```", page.read_text(encoding="utf-8"), re.MULTILINE))


@cache
def text_of(module):
    """Return the source of a module or package by its dotted name, None where there is none."""
    base = ROOT.joinpath(*module.split("."))
    files = (base / "__init__.py", *[base.parent / f"{base.name}{suffix}" for suffix in (".py", ".pyx", ".pxd")])
    return next((file.read_text(encoding="utf-8") for file in files if file.exists()), None)


def is_defined(name):
    """Whether a dotted name is a module, or stands in the source of one: of its parts the longest that is a module."""
    parts = name.split(".")
    n = next(n for n in range(len(parts), 0, -1) if text_of(".".join(parts[:n])) is not None)
    return all(re.search(rf"\b{part}\b", text_of(".".join(parts[:n]))) for part in parts[n:])


@pages
def test_names_of_the_package_exist(page):
    named = set(re.findall(r"\bzcore(?:\.[a-z_]\w*)+(?:\.[A-Z]\w*)?", page.read_text(encoding="utf-8")))
    named -= {"zcore.fish", "zcore.h"}       # files
    named -= {file.removesuffix(".py").replace("/", ".") for file in made_on(page)}
    assert [name for name in sorted(named) if not is_defined(name)] == []


def test_a_name_that_is_missing_is_seen():
    assert is_defined("zcore.engine.array_binding.ArrayBinding") and is_defined("zcore.open")
    assert not is_defined("zcore.engine.nothing") and not is_defined("zcore.nothing_at_all")


def items_of(cell):
    """Return the identifiers that the first cell of a row stands for."""
    items = []
    for part in cell.split(", "):
        area, first, last = re.fullmatch(r"([A-Z]+-[A-Z0-9]+)?-(\d+)(?: to -(\d+))?", part).groups(default="")
        area = area or items[-1].rpartition("-")[0]
        items += [f"{area}-{number:02}" for number in range(int(first), int(last or first) + 1)]
    return items


def item_rows(page):
    """Yield (identifiers, letters of the tests that show them) of each row of the tables of a page."""
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)]
        if len(cells) == 5 and re.match(r"[A-Z]+-[A-Z0-9]+-\d", cells[1]):
            yield items_of(cells[1]), cells[3].split(", ")


def test_ranges_of_items():
    assert items_of("FS-K2P-08 to -10, FS-P2K-01, -03") == ["FS-K2P-08", "FS-K2P-09", "FS-K2P-10", "FS-P2K-01",
                                                            "FS-P2K-03"]


@pages
def test_items_are_shown_by_the_tests_that_are_named(page):
    """Each item is named in one of the test files of its row, and each of these names one of the items."""
    text = page.read_text(encoding="utf-8")
    sources = {letter: (ROOT / file).read_text(encoding="utf-8")
               for letter, file in re.findall(r"\*\*([A-Z])\*\*\s+`(tests/[\w/]+\.py)`", text)}
    rows = list(item_rows(page))
    assert bool(rows) == ("| shown by |" in text)
    for items, letters in rows:
        for item in items:
            assert any(item in sources[letter] for letter in letters), f"{item} is in none of {letters}"
        for letter in letters:
            assert any(item in sources[letter] for item in items), f"{items} are not in {letter}"
    assert set(sources) == {letter for _, letters in rows for letter in letters}


def test_keywords_are_those_of_open():
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    described = dict(re.findall(r"^- `(\w+)=([^`]+)`", text, re.MULTILINE))
    parameters = inspect.signature(zcore.open).parameters
    assert len(described) >= 6
    assert described == {name: repr(parameters[name].default).replace("'", '"') for name in described}


def test_every_module_of_the_kernel_is_on_its_page():
    text = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
    table = text.partition("| folder |")[2].partition("\n\n")[0]
    cells = [row.split("|")[2] for row in table.splitlines()[2:]]
    kernel = ROOT / "zcore" / "kernel"
    modules = {path.with_suffix("") for path in kernel.rglob("*.p[yx][xd]") if path.stem != "__init__"}
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted([path.name for path in modules])


def test_messages_of_troubleshooting_are_in_the_code():
    """In the first column of its tables; those of the system are known by their names."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = {part for row in re.findall(r"^\| (`[^|]*`) \|", page, re.MULTILINE)
                for message in re.findall(r"`([^`]+)`", row) for part in message.split("…")}
    system = {os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT)} | {"could not broadcast"}
    files = [ROOT / "setup.py", *(ROOT / "zcore").rglob("*.py"), *(ROOT / "zcore").rglob("*.pyx")]
    # Literals that follow each other are one.
    code = re.sub(r'"\s*\n\s*(?:[rf]*")', "", "\n".join([path.read_text(encoding="utf-8") for path in files]))
    missing = [message for message in messages - system if message.strip(" :") not in code]
    assert len(messages) > 20 and missing == []
