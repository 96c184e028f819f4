"""The command ``zcore VERB …``, also ``python -m zcore VERB …``.

A verb is a module of `zcore.cli` and one line in `VERBS`. The module's name is the verb, its docstring the help;
``configure(parser)`` adds the arguments, and ``run(arguments)`` does the work and returns the exit code. Whatever it
raises becomes one sentence on the standard error and exit code 1; ``--debug`` shows where it came from instead.
"""
import argparse
import os
import sys

from zcore.cli import demo
from zcore.config import __version__

VERBS = (
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
    arguments = _parser().parse_args(argv)
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read our output has left; the interpreter must not complain about it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print(f"zcore {arguments.verb}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if arguments.debug:
            raise
        print(f"zcore {arguments.verb}: {_sentence(error)}", file=sys.stderr)
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


def _sentence(error):
    """Return what to say of an exception: its message on one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
