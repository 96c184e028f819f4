"""The command ``zcore VERB …``, also ``python -m zcore VERB …``.

A verb is a module of `zcore.cli` and one line in `VERBS`. The module's name is the verb, its docstring the help;
``configure(parser)`` adds the arguments, and ``run(arguments)`` does the work and returns the exit code. Whatever it
raises becomes one sentence on the standard error and exit code 1, a note of the exception its beginning; ``--debug``
shows where it came from instead.
"""
import argparse
import contextlib
import os
import sys

from zcore.cli import asdf, demo
from zcore.config import __version__

VERBS = (
    asdf,
    demo,
)


def main(argv=None):
    """Run the command line and return its exit code: 0, 1 for a failure, 130 for Ctrl-C.

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
    command, debug = "zcore", False
    try:
        try:
            arguments = _parser().parse_args(argv)
            command, debug = f"zcore {arguments.verb}", arguments.debug
            return arguments.run(arguments)
        finally:
            _flush(sys.stdout)
    except BrokenPipeError:
        # Whoever read our output has left, and need not be told.
        return 1
    except KeyboardInterrupt:
        _complain(f"{command}: interrupted")
        return 130
    except Exception as error:
        if debug:
            raise
        _complain(f"{command}: {_sentence(error)}")
        return 1


def _parser():
    parser = argparse.ArgumentParser(prog="zcore", description="Chunked N-dimensional arrays, from the command line.")
    parser.add_argument("--version", action="version", version=f"zcore {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in VERBS:
        name = module.__name__.rpartition(".")[2]
        summary, _, rest = module.__doc__.partition("\n")
        verb = verbs.add_parser(name, help=summary[0].lower() + summary[1:].rstrip("."), description=summary,
                                epilog=rest.strip())
        module.configure(verb)
        verb.add_argument("--debug", action="store_true", help="show the traceback of an error")
        verb.set_defaults(run=module.run)
    return parser


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
            print(text, file=sys.stderr)
        finally:
            _flush(sys.stderr)


def _sentence(error):
    """Return what to say of an exception, on one line: its notes, and its message, or its type where it has none."""
    where = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        # The system's words, without its number.
        message = error.strerror[:1].lower() + error.strerror[1:]
        return where + (message if error.filename is None else f"{message}: {error.filename!r}")
    return where + (" ".join(str(error).split()) or type(error).__name__)


if __name__ == "__main__":
    sys.exit(main())
