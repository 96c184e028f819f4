"""Colours for a terminal. Imports almost nothing."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False      # of typing, without its import time
if TYPE_CHECKING:
    from typing import TextIO

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def is_terminal(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that moves its cursor."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream gets colours: a terminal does, unless NO_COLOR is set.

    Notes : no-color.org, "when present and not an empty string (regardless of its value)".
    """
    return is_terminal(stream) and not os.environ.get("NO_COLOR")


def painted(text: str, colour: str) -> str:
    """Return text for the standard output in a colour of `COLOURS`; unchanged if it gets no colours."""
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if text and has_colours(sys.stdout) else text
