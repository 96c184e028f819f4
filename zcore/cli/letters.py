"""What a terminal is sent: names as they can be shown, and colours where they are wanted. Imports next to nothing."""
import os
import sys

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def printable(text):
    r"""Return text that does nothing to a terminal: other letters, and line ends, are escaped as Python does.

    Names and attributes are whatever a file says they are.

    >>> printable("t2m\x1b[2J\n")
    't2m\\x1b[2J\\n'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def is_terminal(stream):
    """Return whether a stream is a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream):
    """Return whether a stream is to be coloured: a terminal, unless NO_COLOR says no.

    Notes : no-color.org, "when present and not an empty string (regardless of its value)".
    """
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(text, colour):
    """Return text of the standard output in a colour of `COLOURS`, or as it is where none are wanted."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if text and has_colours(sys.stdout) else text
