"""Printable names and numbers of things. A leaf: every module may import it."""


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


def plural(n: float, word: str) -> str:
    """Return a number of things.

    >>> plural(1, "chunk"), plural(2, "chunk")
    ('1 chunk', '2 chunks')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"
