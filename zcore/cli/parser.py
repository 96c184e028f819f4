"""The arguments of the command line, and the verbs.

A verb is a module of `zcore.cli.verbs` and one line in `VERBS`. The module's name is the verb, its docstring the help;
``configure(parser)`` adds the arguments, and ``run(arguments)`` does the work and returns the exit code. ``FAILURE``,
where a module has it, is the exit code of what is raised. Of all verbs only the one that is called is imported, and
what it works with by its ``run``.
"""
import argparse

from zcore.cli.helptext import Formatter
from zcore.config import __version__

# Each with the first sentence of its module, as the list of all verbs has it.
VERBS = {
    "ls": "list the arrays and groups at a place",
    "tree": "show a hierarchy as a tree",
    "info": "describe an array or a group, and what of it is stored",
    "cat": "print elements of an array, or write them out",
    "attrs": "show attributes, set them, or delete them",
    "create": "create an array or a group",
    "diff": "compare two arrays, or two hierarchies",
    "cp": "copy an array, or a group with all below it",
    "convert": "copy an array or a group to another format, compressor, type or order",
    "rechunk": "copy an array or a group to other chunks or shards",
    "refs": "work with reference sets, which say where in other files the bytes of a store lie",
    "asdf": "look into ASDF files, take arrays out of them, explode and implode them",
    "verify": "read all that a store holds, and report what is wrong with it",
    "rm": "delete arrays and groups",
    "bench": "measure how fast an array is read and written here, what a chunk costs, and what would be faster",
    "plot": "draw a slice of an array, or the grid of its chunks with their sizes and ratios",
    "completion": "print what a shell needs to complete command lines of zcore",
    "demo": "write real data in every format zcore has, read them back, check every bit, and draw them",
}


def verb_of(argv):
    """Return the verb that a command line calls: what comes first and is no option. None without one."""
    return next((argument for argument in argv if not argument.startswith("-")), None)


def parser_of(*called):
    """Return the parser of the command line, complete for the verbs that are `called`.

    The others have their line in the list of verbs, and no arguments.
    """
    parser = argparse.ArgumentParser(prog="zcore", description="Chunked N-dimensional arrays, from the command line.",
                                     epilog="`zcore VERB --help` says more of each.", formatter_class=Formatter)
    parser.add_argument("--version", action="version", version=f"zcore {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, summary in VERBS.items():
        if name not in called:
            verbs.add_parser(name, help=summary)
            continue
        module = _module_of(name)
        sentence, _, rest = module.__doc__.partition("\n")
        verb = verbs.add_parser(name, help=summary, description=sentence, epilog=rest.strip("\n"),
                                formatter_class=Formatter)
        module.configure(verb)
        for one in _with_actions(verb):
            # Only where it is given: what an action leaves out does not undo what its verb was told.
            one.add_argument("--debug", action="store_true", default=argparse.SUPPRESS,
                             help="show the traceback of an error")
        verb.set_defaults(debug=False, run=module.run, failure=getattr(module, "FAILURE", 1))
    return parser


def _with_actions(parser):
    """Yield a parser, and those of the actions that it has."""
    yield parser
    for action in parser._actions:
        if isinstance(action.choices, dict):
            yield from action.choices.values()


def _module_of(verb):
    from importlib import import_module

    return import_module(f"zcore.cli.verbs.{verb}")
