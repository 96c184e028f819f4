"""docs/design.md: the map is drawn from the table of layers and the folders, and the steps it names are there.

``python tests/unit/test_design_page.py`` draws the map again.
"""
import importlib.util
import re
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "zcore"
PAGE = ROOT / "docs" / "design.md"
MAP = re.compile(r"(?<=\n## The map\n).*?\n```\n(.*?)```\n", re.DOTALL)
SUFFIXES = (".py", ".pyx", ".pxd")


def layers():
    """Return the table of layers, which another test file proves."""
    spec = importlib.util.spec_from_file_location("layers", Path(__file__).with_name("test_layers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LAYERS


def drawn():
    """Return the map: from top to bottom a layer of packages, and in each package its files and folders."""
    floors = []
    for units in layers():
        modules = [unit for unit in units if not (PACKAGE / unit).is_dir()]
        lines = [] if not modules else [" ".join(modules)]
        for unit in units:
            if (PACKAGE / unit).is_dir():
                lines += _package(PACKAGE / unit)
        floors.append("\n".join(lines))
    return f"\n{'-' * 100}\n".join(floors) + "\n"


def _package(folder, depth=0):
    """Return the lines of a folder: its own files, then each folder in it."""
    files = sorted({path.stem for path in folder.iterdir() if path.suffix in SUFFIXES and path.stem != "__init__"})
    head = f"{'    ' * depth}{folder.name}/"
    lines = fill(" ".join(files), 100, initial_indent=f"{head + ' ':16}", subsequent_indent=" " * 16,
                 break_on_hyphens=False).splitlines() or [head]
    for below in sorted(folder.iterdir()):
        if (below / "__init__.py").exists():
            lines += _package(below, depth + 1)
    return lines


def test_map_is_the_one_of_the_sources():
    assert MAP.search(PAGE.read_text(encoding="utf-8"))[1] == drawn(), (
        "docs/design.md is out of date: python tests/unit/test_design_page.py")


def test_every_package_has_a_row():
    table = PAGE.read_text(encoding="utf-8").partition("| package |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| ([^|]*) \|", table, re.MULTILINE)
    packages = [package for cell in cells for package in re.findall(r"`(\w+)`", cell)]
    assert sorted(packages) == sorted(unit for units in layers() for unit in units)


def test_steps_of_the_read_and_the_write_are_where_they_are_said_to_be():
    steps = re.findall(r"^\| `(?:(\w+)\.)?(\w+)` \| `([\w/.]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(steps) > 20
    for owner, function, file in steps:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:    )?(?:def|cdef [^(\n=]*?) *\b{function}\(", source, re.MULTILINE), (function, file)
        assert not owner or re.search(rf"^(?:cdef )?class {owner}\b", source, re.MULTILINE), (owner, file)


def test_names_in_the_pages_of_the_design_exist():
    """Each name in backticks, also each part of a dotted one, and each path of a file."""
    sources = [path for folder in ("zcore", "tests", "benchmarks", ".ci") for path in (ROOT / folder).rglob("*")
               if path.suffix in (".py", ".pyx", ".pxd", ".pyi", ".h", ".c", ".F90") or path.name == "run"]
    known = {part for path in sources for part in path.relative_to(ROOT).parts}
    for path in (*sources, ROOT / "setup.py", ROOT / "pyproject.toml"):
        known.update(re.findall(r"[A-Za-z_]\w*", path.read_text(encoding="utf-8")))
    pages = [PAGE, ROOT / "docs" / "kernel.md", *sorted((ROOT / "docs" / "design").glob("*.md"))]
    missing, n_names = [], 0
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`([\w./-]+)(?:\(\))?`", text):
            n_names += 1
            if name not in known and not known.issuperset(re.findall(r"[A-Za-z_]\w*", name)):
                missing.append(f"{page.name}: {name}")
    assert not missing and n_names > 300


def main():
    """Draw the map into the page."""
    text = PAGE.read_text(encoding="utf-8")
    found = MAP.search(text)
    PAGE.write_text(text[:found.start(1)] + drawn() + text[found.end(1):], encoding="utf-8")


if __name__ == "__main__":
    main()
