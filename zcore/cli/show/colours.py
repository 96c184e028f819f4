"""Colours for a terminal. Imports almost nothing."""
import os
import sys

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def is_terminal(stream):
    """Return whether a stream is a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream):
    """Return whether a stream gets colours: a terminal does, unless NO_COLOR is set.

    Notes : no-color.org, "when present and not an empty string (regardless of its value)".
    """
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(text, colour):
    """Return text for the standard output in a colour of `COLOURS`; unchanged if it gets no colours."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if text and has_colours(sys.stdout) else text
