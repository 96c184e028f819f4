"""What pictures drawn by matplotlib have in common, without importing it."""

MAX_GRID_LINES = 100           # in one direction: more would hide the data
MAX_TITLE = 80                 # characters


def missing_extra(what, package, extra="demo"):
    """Return the error that says how to get a package that `what` needs and that is not installed."""
    return ModuleNotFoundError(f"{what} needs {package}, which is not installed; zcore's extra \"{extra}\" brings it, "
                               f"and so does: python -m pip install {package}", name=package)


def integer_ticks():
    """Return what places ticks at integers, and be it a single one."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, min_n_ticks=1)


def shown_text(text):
    """Return a name as a picture can show it: printable, on one line, and not too long."""
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= MAX_TITLE else text[:MAX_TITLE - 1] + "…"
