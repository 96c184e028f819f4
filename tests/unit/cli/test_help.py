"""What every verb says of itself, as files: a change of a help text is seen in them.

They are written anew by ``python tests/unit/cli/test_help.py``.
"""
import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import zcore.cli
from tests.each import each
from zcore.cli import parser as command

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "help"
NAMES = ("zcore", *command.VERBS)


def help_of(name):
    """Return the help of a verb with that of its actions, or of the command, as a terminal of 80 columns has it."""
    if name == "zcore":
        return command.parser_of().format_help()
    parser = command.parser_of(name)
    (verbs,) = [action for action in parser._actions if action.dest == "verb"]
    return "\n".join(one.format_help() for one in command._with_actions(verbs.choices[name]))


@pytest.fixture(autouse=True)
def a_plain_terminal(monkeypatch):
    """Let help be as wide as the files have it; from Python 3.14 on argparse colours it."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


@each("name", NAMES)
def test_help_is_as_it_was(name):
    # The versions of argparse differ in where lines end, and in which column the help of an option begins.
    assert help_of(name).split() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split()


def test_there_is_no_other_help():
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(NAMES)


@each("name", command.VERBS)
def test_every_verb_has_its_summary_an_example_and_two_options(name):
    module = import_module(f"zcore.cli.verbs.{command.VERBS[name][0]}")
    summary = module.__doc__.partition("\n")[0].rstrip(".")
    assert command.VERBS[name][1] == summary[0].lower() + summary[1:]
    text = help_of(name)
    assert f"\nExamples:\n  zcore {name}" in text and "--debug" in text
    assert "--json" in text or name in ("completion", "demo")
    # Also of each action, where a verb has some.
    assert all("--json" in usage for usage in re.findall(r"^usage: zcore \w+ \w+ .*$", text, re.MULTILINE))
    assert max(map(len, text.partition("\n\n")[2].splitlines())) <= 120


def test_every_example_is_a_command_line_that_parses(weather):
    import shlex

    for name in command.VERBS:
        for line in re.findall(r"^  (zcore .*)$", help_of(name), re.MULTILINE):
            words = shlex.split(re.split(r"[|&>]|<\(", line)[0])
            arguments = command.parser_of(name).parse_args(words[1:])
            assert arguments.verb == name, line


def test_every_module_of_a_verb_is_called():
    verbs = {path.stem for path in (Path(zcore.cli.__file__).parent / "verbs").rglob("*.py")
             if re.search(r"^(def run\(arguments\b|from .* import run as run$)", path.read_text(encoding="utf-8"),
                          re.MULTILINE)}
    assert verbs - {"options"} == set(command.VERBS)     # those of the three verbs that copy


def test_help_imports_neither_numpy_nor_the_verbs():
    code = "import sys; from zcore.cli import parser; parser.parser_of(*{}); print(*sys.modules)"
    for called, modules in (([], {"zcore.cli.verbs.nodes.ls", "numpy"}),
                            ([n for n in command.VERBS if n != "demo"], {"numpy"})):
        done = subprocess.run([sys.executable, "-c", code.format(called)], capture_output=True, text=True, check=True)
        assert modules.intersection(done.stdout.split()) == set()


@each("name", command.VERBS)
def test_a_verb_imports_what_it_works_with_when_it_runs(name):
    if name == "demo":
        pytest.skip("the demo works with all of it")
    source = Path(import_module(f"zcore.cli.verbs.{command.VERBS[name][0]}").__file__).read_text(encoding="utf-8")
    modules = {node.module for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "typing", "zcore.cli", "zcore.cli.show", "zcore.cli.show.colours",
                       "zcore.cli.show.printed", "zcore.cli.verbs.copying", "zcore.cli.verbs.copying.options",
                       "zcore.cli.words", "zcore.errors", "zcore.text.printable", "zcore"}, modules


if __name__ == "__main__":
    os.environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
    FOLDER.mkdir(exist_ok=True)
    for each in NAMES:
        (FOLDER / f"{each}.txt").write_text(help_of(each), encoding="utf-8")
