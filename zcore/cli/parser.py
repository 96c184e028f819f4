"""The arguments of the command line, and the table of verbs.

A verb is a module and one line in `VERBS`. The module's docstring is the help; ``configure(parser)`` adds the
arguments, and ``run(arguments)`` does the work and returns the exit code. If a module has ``FAILURE``, that is the exit
code of an exception. Only the verb that is called is imported, and its heavier imports only by its ``run``.
"""
from __future__ import annotations

import argparse
import textwrap
from importlib import import_module

from zcore.config import __version__

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

# Of each verb the module in `zcore.cli.verbs`, and the first sentence of its docstring for the list of all verbs.
VERBS = {
    "ls": ("nodes.ls", "list the arrays and groups at a path"),
    "tree": ("nodes.tree", "show a hierarchy as a tree"),
    "info": ("nodes.info", "describe an array or a group, and how much of it is stored"),
    "cat": ("elements.cat", "print elements of an array, or write them to a file"),
    "attrs": ("nodes.attrs", "show attributes, set them, or delete them"),
    "create": ("nodes.create", "create an array or a group"),
    "diff": ("elements.diff", "compare two arrays, or two hierarchies"),
    "cp": ("copying.cp", "copy an array, or a group with all its members"),
    "convert": ("copying.convert", "copy an array or a group to another format, compressor, type or order"),
    "rechunk": ("copying.rechunk", "copy an array or a group to other chunks or shards"),
    "refs": ("stores.refs", "make, check and expand reference sets, which point to bytes in other files"),
    "asdf": ("stores.asdf", "list the parts of ASDF files, extract arrays, explode and implode them"),
    "verify": ("stores.verify", "read all of a store, and report damage"),
    "rm": ("nodes.rm", "delete arrays and groups"),
    "bench": ("bench", "measure how fast an array is read and written here, and how fast it would be in other forms"),
    "plot": ("elements.plot", "draw a slice of an array"),
    "doctor": ("doctor", "list the installed extras, try a folder's file system, and name the extra that a file needs"),
    "completion": ("completion", "print the completion of a shell for zcore"),
    "demo": ("demo", "write real data in every format zcore has, read them back, check every bit, and draw them"),
}

# Options of every verb, and the verbs without the first one.
OPTIONS = {"--json": "print JSON, for programs", "--debug": "show the traceback of an error"}
WITHOUT_JSON = ("completion", "demo")

# Words of other programs, and those of this one.
WORDS_OF_OTHERS = {
    **dict.fromkeys(("list", "dir"), "ls"), **dict.fromkeys(("dump", "print", "head"), "cat"),
    **dict.fromkeys(("copy", "mv", "move"), "cp"),
    **dict.fromkeys(("show", "stat", "open"), "info"), **dict.fromkeys(("delete", "remove"), "rm"), "compare": "diff",
    **dict.fromkeys(("check", "fsck", "repair"), "verify"),
    **dict.fromkeys(("--compression", "--codec"), "--compressor"),
    "--format": "--zarr-format", "--force": "--overwrite", "--output": "--out", "-o": "--out", "--type": "--dtype",
    "-R": "--recursive", "-L": "--depth", "--level": "--depth",
}

EPILOG = """`zcore VERB --help` says more of each.

To begin:
  zcore doctor                 what is installed
  zcore tree data.zarr         what a store holds
  zcore info data.zarr/t2m     what one array is
  zcore cat data.zarr/t2m      its elements"""


class Formatter(argparse.HelpFormatter):
    """A formatter of help: paragraphs are filled, and indented examples stay as they are."""

    def _fill_text(self, text, width, indent):
        # The one hook that argparse's own formatters override for this, such as RawDescriptionHelpFormatter.
        return "\n\n".join(
            textwrap.indent(paragraph, indent) if paragraph.startswith(" ") or "\n " in paragraph
            else textwrap.fill(" ".join(paragraph.split()), width, initial_indent=indent, subsequent_indent=indent)
            for paragraph in text.split("\n\n"))


def verb_of(argv: Iterable[str]) -> str | None:
    """Return the verb of a command line: the first argument that is no option; None without one."""
    return next((argument for argument in argv if not argument.startswith("-")), None)


def meant(word: str, words: Iterable[str]) -> str:
    """Return the question whether one of `words` was meant by a word that is none; empty if none is like it.

    >>> meant("copy", ["ls", "cp"]), meant("tee", ["ls", "tree"]), meant("x", ["ls"])
    ('; did you mean cp?', '; did you mean tree?', '')
    """
    from difflib import get_close_matches

    words = list(words)
    found = WORDS_OF_OTHERS.get(word)
    if found not in words:
        found = next(iter(get_close_matches(word, words, 1, 0.7)), None)
    return "" if found is None else f"; did you mean {found}?"


def refuse(verb: argparse.ArgumentParser, unknown: list[str]) -> NoReturn:
    """End the program: show the usage of the verb, the unknown option, and the option that was perhaps meant."""
    option, advice = unknown[0].partition("=")[0], ""
    if option[1:2].isdigit():
        advice = "; a selection that begins with a minus comes behind --"
    elif option.startswith("-"):
        known = [name for one in _with_actions(verb) for name in one._option_string_actions]
        advice = ("; a copy has all members" if option in ("-r", "-R", "-a", "--recursive") and "--stack" in known
                  else meant(option, known))
    verb.error(f"unrecognized arguments: {' '.join(unknown)}{advice}")


def parser_of(*called: str | None) -> argparse.ArgumentParser:
    """Return the parser of the command line, complete for the verbs that are `called`.

    The others have their line in the list of verbs, and no arguments.
    """
    parser = argparse.ArgumentParser(prog="zcore", description="Chunked N-dimensional arrays, from the command line.",
                                     epilog=EPILOG, formatter_class=Formatter)
    parser.add_argument("--version", action="version", version=f"zcore {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (place, summary) in VERBS.items():
        if name not in called:
            verbs.add_parser(name, help=summary)
            continue
        module = import_module(f"zcore.cli.verbs.{place}")
        sentence, _, rest = module.__doc__.partition("\n")
        verb = verbs.add_parser(name, help=summary, description=sentence, epilog=rest.strip("\n"),
                                formatter_class=Formatter)
        module.configure(verb)
        for one in _with_actions(verb):
            for option, text in list(OPTIONS.items())[name in WITHOUT_JSON:]:
                # Suppressed: the default of an action would undo an option before it.
                one.add_argument(option, action="store_true", default=argparse.SUPPRESS, help=text)
        verb.set_defaults(debug=False, json=False, parser=verb, run=module.run, failure=getattr(module, "FAILURE", 1))
    return parser


def _with_actions(parser):
    """Yield a parser, and those of the actions that it has."""
    yield parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            yield from action.choices.values()
