"""Names as they can be shown. A leaf: every module may import it."""


def printable(text):
    r"""Return text that does nothing to a terminal: other letters, and line ends, are escaped as Python does.

    Names and attributes are whatever a file says they are.

    >>> printable("t2m\x1b[2J\n")
    't2m\\x1b[2J\\n'
    """
    text = str(text)
    if text.isprintable():
        return text
    return "".join([letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text])
