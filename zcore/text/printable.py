"""Printable names. A leaf: every module may import it."""


def printable(text: object) -> str:
    r"""Return text without control characters for a terminal: they, and line ends, are escaped as Python does.

    Names and attributes come from files, and may be anything.

    >>> printable("t2m\x1b[2J\n")
    't2m\\x1b[2J\\n'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join([letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text])
