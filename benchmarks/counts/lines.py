"""Lines of code by room of ``zcore/``: without blank lines, comments and docstrings.

A line counts where a part of a statement stands in it. A statement that is nothing but a text is a docstring, and none
of its lines counts.
"""
import argparse
import io
import json
import re
import tokenize
from collections import namedtuple
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "zcore"
TOP = "(top)"          # the room of modules that stand right below the package

_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
# Cython has operators that Python's tokenizer refuses, such as the ? of `except? -1`; texts and comments are the same.
_CYTHON = re.compile(r"""
    (?P<comment>\#[^\n]*)
  | (?P<text>[A-Za-z]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
  | (?P<newline>\n)
  | (?P<space>[ \t\f\r]+|\\\r?\n)
  | (?P<word>\w+)
  | (?P<sign>.)
""", re.DOTALL | re.VERBOSE)
# C that is written into the generated file as it stands, where a docstring would be.
_VERBATIM_C = re.compile(r"""(?<=:)\s*\n\s*(\"\"\"|''')(?P<c>.*?)\1""", re.DOTALL)
_EXTERN = re.compile(r"^[ \t]*cdef extern from [^\n#]*:", re.MULTILINE)
_C = re.compile(r"""
    (?P<comment>/\*.*?\*/|//(?:\\\r?\n|[^\n])*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<space>\s+)
  | (?P<sign>.)
""", re.DOTALL | re.VERBOSE)

# Of a room: how many files it has, and how many lines of code.
Room = namedtuple("Room", ("files", "lines"))


def lines_of_python(source):
    """Return how many lines of Python are code.

    >>> lines_of_python('x = 1\\n\\n# why\\ndef f():\\n    "Return."\\n    return (1,\\n            2)\\n')
    4
    """
    kinds = {tokenize.STRING: "text", tokenize.NEWLINE: "end"}
    tokens = [(kinds.get(token.type, "code"), token.start[0], token.end[0])
              for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in _NO_CODE]
    return _lines_of(tokens)


def lines_of_cython(source):
    """Return how many lines of a ``.pyx`` or ``.pxd`` are code, those of C in an ``extern`` block among them.

    >>> lines_of_cython('cdef int f() except? -1:  # why\\n    \"\"\"Return.\\n\\n    Now.\"\"\"\\n    return 1\\n')
    2
    """
    n_lines_of_c = 0
    for extern in reversed([*_EXTERN.finditer(source)]):
        verbatim = _VERBATIM_C.match(source, extern.end())
        if verbatim:
            n_lines_of_c += lines_of_c(verbatim["c"])
            source = source[:extern.end()] + source[verbatim.end():]

    def tokens():
        line, depth = 1, 0
        for found in _CYTHON.finditer(source):
            kind, text = found.lastgroup, found[0]
            last = line + text.count("\n")
            if kind == "text":
                yield "text", line, last
            elif kind == "newline" and depth == 0:
                yield "end", line, line
            elif kind in ("word", "sign"):
                depth += (text in "([{") - (text in ")]}")
                # As for Python, a `;` ends no logical line.
                yield "code", line, last
            line = last

    return n_lines_of_c + _lines_of([*tokens(), ("end", 0, 0)])


def lines_of_c(source):
    """Return how many lines of C are code.

    >>> lines_of_c('/* why\\n   so */\\nint x = 1; // one\\n\\nchar *s = "/*";\\n')
    2
    """
    lines, line = set(), 1
    for found in _C.finditer(source):
        if found.lastgroup in ("text", "sign"):
            lines.update(range(line, line + found[0].count("\n") + 1))
        line += found[0].count("\n")
    return len(lines)


def _lines_of(tokens):
    """Return how many lines are covered by logical lines that are more than texts; tokens are (kind, first, last)."""
    lines, own, is_code = set(), set(), False
    for kind, first, last in tokens:
        if kind == "end":
            if is_code:
                lines |= own
            own, is_code = set(), False
        else:
            own.update(range(first, last + 1))
            is_code = is_code or kind == "code"
    return len(lines)


COUNTERS = {".py": lines_of_python, ".pyx": lines_of_cython, ".pxd": lines_of_cython, ".h": lines_of_c}


def measure(package=PACKAGE):
    """Return the `Room` of each folder right below a package, by its name and sorted by that."""
    rooms = {}
    for path in sorted(package.rglob("*")):
        if path.suffix in COUNTERS and path.is_file():
            name = path.relative_to(package).parts[0] if path.parent != package else TOP
            files, lines = rooms.get(name, (0, 0))
            rooms[name] = Room(files + 1, lines + COUNTERS[path.suffix](path.read_text(encoding="utf-8")))
    return dict(sorted(rooms.items()))


def total_of(rooms):
    """Return the sum of all rooms, a `Room`."""
    return Room(sum([room.files for room in rooms.values()]), sum([room.lines for room in rooms.values()]))


def render(rooms):
    """Return the rooms as a table of text, the total last."""
    rows = [*rooms.items(), ("total", total_of(rooms))]
    width = max([len(name) for name, _ in rows])
    return "".join([f"{name:{width}}  {room.files:4} files  {room.lines:6} lines\n" for name, room in rows])


def plain_of(rooms):
    """Return the same as JSON has it."""
    return {"rooms": {name: room._asdict() for name, room in rooms.items()}, "total": total_of(rooms)._asdict()}


def main(argv):
    """Print the rooms, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks lines",
                                     description="Count the lines of code of zcore by room, without docs and comments.")
    parser.add_argument("--json", action="store_true")
    rooms = measure()
    print(json.dumps(plain_of(rooms), indent=1) + "\n" if parser.parse_args(argv).json else render(rooms), end="")
    return 0
