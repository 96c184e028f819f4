"""The command ``zcore VERB …``, also ``python -m zcore VERB …``.

An exception of a verb (`zcore.cli.parser`) becomes one sentence on the standard error, with the notes of the exception
at its beginning, and the exit code is 1 unless the verb has another one. ``--debug`` shows the traceback instead. A
warning becomes one sentence, too.
"""
from __future__ import annotations

import contextlib
import os
import sys
import warnings

from zcore.cli import words
from zcore.cli.parser import VERBS, meant, parser_of, refuse, verb_of
from zcore.text.printable import printable

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from collections.abc import Iterable

BROKEN_PIPE = 141      # as of a program that SIGPIPE has ended


def main(argv: Iterable[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 1 for a failure, where `diff` has codes of its own.

    It is 130 for Ctrl-C, and 141 where the reader of the output has left.

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
            words.spoken[:] = argv
            if not argv:
                parser_of().print_help(sys.stderr)
                raise SystemExit(2)
            verb = verb_of(argv)
            if verb is not None and verb not in VERBS:
                parser_of().error(f"there is no verb {verb!r}, `zcore --help` lists all{meant(verb, VERBS)}")
            arguments, unknown = parser_of(verb).parse_known_args(argv)
            if unknown:
                refuse(arguments.parser, unknown)
            command, debug, failure = f"zcore {arguments.verb}", arguments.debug, arguments.failure
            with warnings.catch_warnings():
                if not sys.warnoptions:
                    warnings.simplefilter("always", UserWarning)
                    warnings.showwarning = lambda message, *_: _complain(f"{command}: warning: {_on_one_line(message)}")
                return arguments.run(arguments)
        finally:
            _flush(sys.stdout)
    except BrokenPipeError:
        # The reader of the output has left, and needs no message.
        return BROKEN_PIPE
    except KeyboardInterrupt as interrupt:
        _complain("; ".join((f"{command}: interrupted", *getattr(interrupt, "__notes__", ()))))
        return 130
    except Exception as error:
        if debug:
            raise
        _complain(f"{command}: {_sentence(error)}")
        return failure


def _make_streams_usable():
    """Make printing always work: to a stream that was closed at the start, and of names that are not text."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Else `print` would take the other stream, and the next file opened would get the stream's number.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
    if sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def _flush(stream):
    """Flush a stream. If that fails, discard its data: the interpreter would try again at its end.

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
    """Return the sentence for an exception, on one line: its notes, and its message, or else its type."""
    where = "".join(f"{note}: " for note in getattr(error, "__notes__", ()))
    if isinstance(error, OSError) and error.strerror:
        # The system's words, without its number.
        message = error.strerror[:1].lower() + error.strerror[1:]
        return where + (message if error.filename is None else f"{message}: {error.filename!r}")
    return where + (_on_one_line(error) or type(error).__name__)


def _on_one_line(message):
    return words.translated(" ".join(str(message).split()))


if __name__ == "__main__":
    sys.exit(main())
