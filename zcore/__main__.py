"""The command ``zcore VERB …``, also ``python -m zcore VERB …``.

A verb is a module of `zcore.cli` and one line in `VERBS`. The module's name is the verb, its docstring the help;
``configure(parser)`` adds the arguments, and ``run(arguments)`` does the work and returns the exit code. Whatever it
raises becomes one sentence on the standard error and the exit code `FAILURE` of the module, or 1, a note of the
exception its beginning; ``--debug`` shows where it came from instead. A warning becomes one sentence, too.

Of all verbs only the one that is called is imported, and what it works with by its ``run``.
"""
import argparse
import contextlib
import os
import sys
import warnings

from zcore.cli.helptext import Formatter
from zcore.config import __version__
from zcore.letters import printable

# Each with the first sentence of its module, as the list of all verbs has it.
VERBS = {
    "ls": "list the arrays and groups at a place",
    "tree": "show a hierarchy as a tree",
    "info": "describe an array or a group, and what of it is stored",
    "cat": "print elements of an array, or write them out",
    "attrs": "show attributes, set them, or delete them",
    "create": "create an array or a group",
    "diff": "compare two arrays, or two hierarchies",
    "rm": "delete arrays and groups",
    "completion": "print what a shell needs to complete command lines of zcore",
    "demo": "write real data in every format zcore has, read them back, check every bit, and draw them",
}


def main(argv=None):
    """Run the command line and return its exit code: 0, 1 for a failure, 130 for Ctrl-C; `diff` has codes of its own.

    Parameters
    ----------
    argv : sequence of str, optional
        Without the program's name; ``sys.argv[1:]`` by default.

    Raises
    ------
    SystemExit
        With code 2 for a wrong usage, 0 for ``--help`` and ``--version``.
    """
    _make_streams_usable()
    command, debug, failure = "zcore", False, 1
    try:
        try:
            argv = sys.argv[1:] if argv is None else list(argv)
            arguments = parser_of(verb_of(argv)).parse_args(argv)
            command, debug, failure = f"zcore {arguments.verb}", arguments.debug, arguments.failure
            with warnings.catch_warnings():
                if not sys.warnoptions:
                    warnings.simplefilter("always", UserWarning)
                    warnings.showwarning = lambda message, *_: _complain(f"{command}: warning: {_on_one_line(message)}")
                return arguments.run(arguments)
        finally:
            _flush(sys.stdout)
    except BrokenPipeError:
        # Whoever read our output has left, and need not be told.
        return failure
    except KeyboardInterrupt:
        _complain(f"{command}: interrupted")
        return 130
    except Exception as error:
        if debug:
            raise
        _complain(f"{command}: {_sentence(error)}")
        return failure


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
        verb.add_argument("--debug", action="store_true", help="show the traceback of an error")
        verb.set_defaults(run=module.run, failure=getattr(module, "FAILURE", 1))
    return parser


def _module_of(verb):
    from importlib import import_module

    return import_module(f"zcore.cli.{verb}")


def _make_streams_usable():
    """Let printing always work: to a stream that was closed at the start, and of names that are no text."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Else `print` would take the other one, and the next file opened would get the stream's number.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    if sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _flush(stream):
    """Flush a stream; where that fails, let what it holds go nowhere, or the interpreter would try again at its end.

    Raises : OSError, if it fails.
    """
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        raise


def _complain(text):
    with contextlib.suppress(OSError):
        try:
            print(printable(text), file=sys.stderr)
        finally:
            _flush(sys.stderr)


def _sentence(error):
    """Return what to say of an exception, on one line: its notes, and its message, or its type where it has none."""
    where = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        # The system's words, without its number.
        message = error.strerror[:1].lower() + error.strerror[1:]
        return where + (message if error.filename is None else f"{message}: {error.filename!r}")
    return where + (_on_one_line(error) or type(error).__name__)


def _on_one_line(message):
    return " ".join(str(message).split())


if __name__ == "__main__":
    sys.exit(main())
