"""The templates of a reference set, and the texts that use them: ``http://{{ u }}/{{ f(c='a') }}_{{ (i + 1) * 10 }}``.

`gen.py` expands ``gen`` with them.

The specification says "jinja-str" ("References specification", version 1), and the document is not trusted. The
format needs little of jinja2's language, so only that is accepted:

1. jinja2 is not used for text of ``{{ name }}`` and literals alone, as nearly all text is.
2. Length, tokens and brackets are limited before jinja2 parses, because its parser recurses.
3. Of its tree only names, numbers, texts, ``+ - * / // % **``, ``~``, signs, calls of templates with keyword arguments,
   the filter ``format``, and a tuple behind ``%`` become an `Expression`. Attributes, subscripts, statements, tests and
   globals are refused. No code of jinja2 runs after that.
4. Each operation bounds its operands and its result before it computes: integers to 64 bits, texts to 64 KiB. So an
   expression such as ``'a' * 10**9`` costs neither memory nor time.

A template whose value contains ``{{`` is a function. It is called with keyword arguments and sees only these, no other
template, so there is no recursion. Any other value is literal text. As in jinja2, ``{# #}`` and one final line end are
dropped, other line ends become ``\\n``, and ``**`` groups from the left.
"""
from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from zcore.errors import Needing, ReferenceFormatError, UnsupportedError, ZcoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SIMPLE = re.compile(r"\{\{\s*+([^\W\d]\w*+)\s*+\}\}")
_MARK = re.compile(r"\{[{%#]")
MAX_TOKENS = 256    # of all expressions of a text; the parser takes a stack frame for each sign
MAX_BRACKETS = 16   # nested; the parser takes 13 stack frames for each
MAX_DEPTH = 64      # levels of an expression as a tree
MAX_TEXT = 1 << 16  # characters: of a text with expressions in it, of any value, and of the rendered text
MIN_INTEGER, MAX_INTEGER = -(1 << 63), (1 << 63) - 1

# Names that jinja2 takes for something else.
_RESERVED = frozenset("true false none True False None and or not in is if elif else self".split())
_CONSTANTS = (int, float, str)
_SIGNS = {"Neg": "neg", "Pos": "pos"}
_BINARY = frozenset(("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"))
_REFUSED = {
    "Getattr": "attribute access", "Getitem": "subscripts", "Slice": "subscripts", "Test": "tests (is)",
    "CondExpr": "conditions (if)", "Compare": "comparisons", "And": "and", "Or": "or", "Not": "not",
    "List": "lists", "Dict": "dictionaries", "Tuple": "tuples that are not formatted",
}
OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "neg": operator.neg, "pos": operator.pos}
_CONVERSION = re.compile(r"%(%|[-+ #0]*+(\d{0,3})(?:\.(\d{0,3}))?[hlL]?[diouxXeEfFgGcs])?")


def is_name(name: object) -> bool:
    """Return whether `name` may name a template or a variable: an identifier that jinja2 takes for a name."""
    if not isinstance(name, str) or not name.isidentifier() or name in _RESERVED:
        return False
    if name.isascii():
        return True
    from unicodedata import normalize
    # Python takes two spellings of one name for the same variable.
    return normalize("NFKC", name) == name


class Expression(NamedTuple):
    """An expression between ``{{`` and ``}}``, checked.

    Attributes
    ----------
    compute : callable
        Returns the value for a dict of variables.
    names : frozenset of str
        The variables that it depends on.
    """

    compute: Callable[[Mapping[str, object]], Any]
    names: frozenset[str]


def rendered(expression: Expression, variables: Mapping[str, object], source: str, member: str) -> str:
    """Return the value of an expression of a text as text, for a dict of variables."""
    try:
        return _as_text(expression.compute(variables))
    except ZcoreError:
        raise
    except Exception as exc:  # Python and the bounds raise several kinds
        given = ", ".join(f"{name} = {shown(variables[name])}" for name in sorted(expression.names))
        raise not_rendered(exc, source, member, f" for {given:.80}" if given else "") from exc


# Evaluation: an operand or a result that is refused is a ValueError or TypeError

def _applied(function, *operands):
    """Return a function of the variables that calls another one with the values of operands."""
    return lambda variables: function(*[operand(variables) for operand in operands])


def _joined(*values):
    texts = [_as_text(value) for value in values]
    _check_size(sum(map(len, texts)))
    return "".join(texts)


def _computed(operation, left, right=None):
    """Return the result of one of `OPERATORS`; a sign has no right operand."""
    if right is None:
        return _bounded(OPERATORS[operation](left))
    if operation == "%" and type(left) is str:
        return _formatted(_bounded(left), right if type(right) is tuple else (right,))
    kinds = type(_bounded(left)), type(_bounded(right))
    if operation == "*" and str in kinds and int in kinds:
        text, times = (left, right) if kinds[0] is str else (right, left)
        _check_size(len(text) * times)
    elif operation == "+" and kinds == (str, str):
        _check_size(len(left) + len(right))
    elif operation == "**" and kinds == (int, int) and abs(left) > 1 and right > 64:
        raise ValueError("an integer has more than 64 bits")
    return _bounded(OPERATORS[operation](left, right))


def _bounded(value):
    """Return `value` if an expression may have it.

    Raises : ValueError, if it is too large; TypeError, if it is no number or text.
    """
    if type(value) is int:
        if not MIN_INTEGER <= value <= MAX_INTEGER:
            raise ValueError("an integer has more than 64 bits")
    elif type(value) is str:
        _check_size(len(value))
    elif type(value) is not float:
        raise TypeError(f"a value is a {type(value).__name__}, no number or text")
    return value


def _as_text(value):
    return str(_bounded(value))


def _formatted(pattern, values):
    """Return ``pattern % values``; each width and each precision has at most three digits."""
    size = len(pattern)
    for found in _CONVERSION.finditer(pattern):
        if found[1] is None:
            raise ValueError(f"expected conversions as %03d, %.3f and %s, with three digits at most, found "
                             f"{pattern[found.start():found.start() + 12]!r}")
        size += int(found[2] or 0) + int(found[3] or 0)
    # The longest number is 1e308 as %f: 310 characters and its precision.
    size += sum(len(value) if type(_bounded(value)) is str else 320 for value in values)
    _check_size(size)
    return _bounded(pattern % values)


def _check_size(size):
    if size > MAX_TEXT:
        raise ValueError(f"a text has more than {MAX_TEXT} characters")


# Messages

def shown(value: object) -> str:
    """Return `value` as a message shows it: shortened, however long or deep it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if value is None or isinstance(value, float) or isinstance(value, int) and abs(value) < 10**20:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def not_rendered(reason: str | Exception, source: str, member: str, case: str = "") -> ReferenceFormatError:
    """Return the error that says why a text cannot be rendered: the first line of a reason, or of an exception."""
    reason = (str(reason).splitlines() or [""])[0][:200] or type(reason).__name__
    return ReferenceFormatError(f"{member}: expected a text that can be rendered, but {shown(source)} cannot{case}: "
                                f"{reason}", member=member)


def too_long(source: str, member: str) -> ReferenceFormatError:
    """Return the error for a text that is too long, before or after it is rendered."""
    return not_rendered(f"it, or its rendered form, has more than {MAX_TEXT} characters", source, member)


def undefined(name: str, source: str, member: str) -> ReferenceFormatError:
    """Return the error for a name that is neither a template nor a variable."""
    return not_rendered(f"there is no template or variable {shown(name)}", source, member)


def _unsupported(what, source, member):
    return UnsupportedError(f"{member}: {shown(source)} uses {what}; zcore evaluates names, numbers, texts, operators, "
                            "calls of templates and the filter format", feature=f"{what} in a template")


# From a text to its parts

def named(name: str, templates: Templates, names: frozenset[str] | None, source: str, member: str) -> Expression | str:
    """Return the expression of a variable, or the text of a template, by its name; see `parsed`.

    `templates` are a `Templates`. `names` are the variables; None in the value of a function, where all names are.

    Raises : ReferenceFormatError, if it is neither, or a function.
    """
    if is_name(name) if names is None else name in names:
        return Expression(itemgetter(name), frozenset((name,)))
    if name not in templates.texts:
        raise undefined(name, source, member)
    if templates.is_function(name):
        raise not_rendered(f"the template {name} takes arguments", source, member)
    return templates.texts[name]


def parsed(text: str, templates: Templates, names: frozenset[str] | None, member: str) -> Iterator[str | Expression]:
    """Yield the parts of a text that needs jinja2, str and `Expression`.

    Raises : ReferenceFormatError, UnsupportedError, as `Templates.render`.
    """
    with Needing(f"{member}: to evaluate {shown(text)} needs", "jinja2", "references", "templates by jinja2"):
        environment = _environment()
    try:
        _check_tokens(environment.lex(text), text, member)
        outputs = environment.parse(text).body
    except ZcoreError:
        raise
    except Exception as exc:
        raise not_rendered(exc, text, member) from exc
    for node in (node for output in outputs for node in output.nodes):
        if type(node).__name__ == "TemplateData":
            yield node.data
            continue
        builder = _Builder(templates, names, text, member)
        expression = Expression(builder.built(node, 0), frozenset(builder.used))
        # An expression without variables is rendered once, here. That checks the arguments of a function, too.
        yield expression if expression.names else rendered(expression, {}, text, member)


@lru_cache(maxsize=1)
def _environment():
    from jinja2 import Environment

    return Environment(cache_size=0, keep_trailing_newline=True)


def _check_tokens(tokens, source, member):
    """Raise when a text has statements, or expressions that are too much for a parser that recurses."""
    n_tokens = n_open = 0
    for _, kind, value in tokens:
        if kind in ("block_begin", "raw_begin"):
            raise _unsupported("statements ({% %})", source, member)
        n_tokens += kind not in ("data", "whitespace", "comment", "comment_begin", "comment_end")
        n_open += (value in ("(", "[", "{")) - (value in (")", "]", "}")) if kind == "operator" else 0
        if n_tokens > MAX_TOKENS:
            raise not_rendered(f"its expressions have more than {MAX_TOKENS} tokens", source, member)
        if n_open > MAX_BRACKETS:
            raise not_rendered(f"more than {MAX_BRACKETS} brackets are nested", source, member)


class _Builder:
    """Makes the function of one expression from jinja2's tree, and collects the variables that it uses."""

    def __init__(self, templates, names, source, member):
        self._templates, self._names, self._source, self._member = templates, names, source, member
        self.used = set()

    def built(self, node, depth):
        """Return a function of the variables that computes a node of the tree. Raises what `parsed` does."""
        kind = type(node).__name__
        depth += 1
        if depth > MAX_DEPTH:
            raise self._wrong(f"an expression is deeper than {MAX_DEPTH} operations")
        if kind == "Const" and type(node.value) in _CONSTANTS:
            if type(node.value) is int and not MIN_INTEGER <= node.value <= MAX_INTEGER:
                raise self._wrong("an integer has more than 64 bits")
            return lambda _: node.value
        if kind == "Name":
            return self._name(node.name)
        if kind in _SIGNS:
            return _applied(partial(_computed, _SIGNS[kind]), self.built(node.node, depth))
        if kind in _BINARY:
            left = self.built(node.left, depth)
            if kind == "Mod" and type(node.right).__name__ == "Tuple":
                items = [self.built(item, depth + 1) for item in node.right.items]
                return _applied(lambda pattern, *values: _computed("%", pattern, values), left, *items)
            return _applied(partial(_computed, node.operator), left, self.built(node.right, depth))
        if kind == "Concat":
            return _applied(_joined, *[self.built(part, depth) for part in node.nodes])
        if kind == "Filter" and node.name == "format" and node.node is not None:
            if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
                raise self._unsupported("the filter format with named arguments")
            return _applied(lambda pattern, *values: _formatted(_as_text(pattern), values),
                            *[self.built(part, depth) for part in (node.node, *node.args)])
        if kind == "Call":
            return self._call(node, depth)
        if kind == "Filter":
            raise self._unsupported(f"the filter {node.name:.40}")
        raise self._unsupported(f"the constant {node.value}" if kind == "Const" else _REFUSED.get(kind, kind))

    def _name(self, name):
        found = named(name, self._templates, self._names, self._source, self._member)
        if type(found) is str:
            return lambda _: found
        self.used.add(name)
        return found.compute

    def _call(self, node, depth):
        name = node.node.name if type(node.node).__name__ == "Name" else None
        if name is None:
            raise self._unsupported("calls of anything but a template")
        if name not in self._templates.texts:
            raise self._wrong(f"there is no template {shown(name)} to be called")
        if not self._templates.is_function(name):
            raise self._wrong(f"the template {name} takes no arguments")
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise self._unsupported("arguments by * and **")
        function = self._templates.function(name)
        arguments = {keyword.key: keyword.value for keyword in node.kwargs}
        if len(arguments) < len(node.kwargs):
            raise self._wrong(f"an argument of the template {name} is repeated")
        if node.args or not function.names <= arguments.keys():
            raise self._wrong(f"the template {name} is called with keyword arguments, "
                              f"{', '.join(sorted(function.names)):.80}")
        return _applied(lambda *values: function.render(dict(zip(arguments, values, strict=True))),
                        *[self.built(value, depth) for value in arguments.values()])

    def _wrong(self, reason):
        return not_rendered(reason, self._source, self._member)

    def _unsupported(self, what):
        return _unsupported(what, self._source, self._member)


# Templates, and texts that use them

class Templates:
    """The templates of one document, which render its texts.

    Parameters
    ----------
    definitions : dict
        Name to text, the member `templates` of the document.
    overrides : mapping, optional
        Templates of the caller, which replace those of the document, or are added.

    Attributes
    ----------
    texts : dict of str
        The values of all templates by their names.

    Raises
    ------
    ReferenceFormatError
        `definitions` has another type, a name is invalid, or a value is no text.
    TypeError
        `overrides` has another type, or a value is no text.

    Examples
    --------
    >>> templates = Templates({"u": "server.domain/path", "f": "{{c}}"})
    >>> templates.render("http://{{u}}_{{i}}", {"i": 3})
    'http://server.domain/path_3'
    """

    def __init__(self, definitions: object, overrides: Mapping[str, str] | None = None) -> None:
        if not isinstance(definitions, dict):
            raise ReferenceFormatError("templates: expected an object of names and texts, "
                                       f"found {shown(definitions)}", member="templates")
        if not isinstance(overrides, Mapping | None):
            raise TypeError(f"template overrides are a mapping of names and texts, not {type(overrides).__name__}")
        self.texts: dict[str, str] = {}
        self._members = {}
        self._functions = {}
        for group, given in (("templates", definitions), ("template_overrides", overrides or {})):
            for name, value in given.items():
                member = f"{group}.{name!s:.60}"
                if not is_name(name):
                    raise ReferenceFormatError(f"{member}: the name of a template is an identifier, not "
                                               f"{shown(name)}", member=member)
                if not isinstance(value, str):
                    message = f"{member}: a template is a text, not {shown(value)}"
                    raise ReferenceFormatError(message, member=member) if given is definitions else TypeError(message)
                self.texts[name] = value
                self._members[name] = member

    def is_function(self, name: str) -> bool:
        """Return whether the template of this name is a function; else it is a text."""
        return "{{" in self.texts[name]

    def function(self, name: str) -> Text:
        """Return a function template as a `Text` of its arguments.

        Raises : ReferenceFormatError, UnsupportedError, if no arguments can render its value.
        """
        text = self._functions.get(name)
        if text is None:
            text = _compiled(self.texts[name], _NO_TEMPLATES, None, self._members[name])
            self._functions[name] = text
        return text

    def render(self, text: object, variables: Mapping[str, int] | None = None, member: str = "url") -> str:
        """Return `text` rendered with these templates and variables.

        Parameters
        ----------
        text : str
        variables : dict, optional
            Name to int.
        member : str
            The member of the document, for messages.

        Raises
        ------
        ReferenceFormatError
            It is no text, breaks the syntax, uses an undefined name, is too long, or cannot be evaluated.
        UnsupportedError
            It uses a feature that the format does not need, or it needs jinja2, which is not installed.
        """
        return self.compile(text, variables or (), member).render(variables or {})

    def compile(self, text: object, names: Iterable[str] = (), member: str = "url") -> Text:
        """Return `text` as a `Text`, which renders it for the variables in `names`.

        Raises : as `render`, and ReferenceFormatError if a variable has the name of a template.

        >>> Templates({}).compile("{{ i * 2 }}.{{ j }}", ["i", "j"]).render({"i": 3, "j": 4})
        '6.4'
        """
        if not isinstance(text, str):
            raise ReferenceFormatError(f"{member}: expected a text, found {shown(text)}", member=member)
        names = frozenset(names)
        if names and not names.isdisjoint(self.texts):
            clash = ", ".join(sorted(names.intersection(self.texts)))
            raise ReferenceFormatError(f"{member}: expected variables of other names than those of templates, found "
                                       f"both of {clash:.80}", member=member)
        return _compiled(text, self, names, member)


_NO_TEMPLATES = Templates({})


class Text:
    """A compiled text.

    Attributes
    ----------
    parts : tuple
        Literals (str) and `Expression`\\ s, one after the other.
    names : frozenset of str
        The variables that it depends on.
    source, member : str
        The original text, and the member of the document.
    """

    __slots__ = ("parts", "names", "source", "member")

    def __init__(self, parts: Iterable[str | Expression], source: str, member: str) -> None:
        self.parts: tuple[str | Expression, ...] = tuple(parts)
        self.names: frozenset[str] = frozenset().union(*(part.names for part in self.parts if type(part) is not str))
        self.source: str = source
        self.member: str = member

    def render(self, variables: Mapping[str, object]) -> str:
        """Return the text for a dict of variables; extra ones are ignored. Raises: as `Templates.render`."""
        if not self.names <= variables.keys():
            raise undefined(min(self.names - variables.keys()), self.source, self.member)
        texts = [part if type(part) is str else rendered(part, variables, self.source, self.member)
                 for part in self.parts]
        if len(texts) == 1:
            return texts[0]
        if sum(map(len, texts)) > MAX_TEXT:
            raise too_long(self.source, self.member)
        return "".join(texts)


def _compiled(text, templates, names, member):
    """Return the `Text` of a string. `names` are the variables; None if every name is one."""
    normal = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if _MARK.search(normal) is None:
        return Text((normal,), text, member)
    if len(text) > MAX_TEXT:
        raise too_long(text, member)
    found = _SIMPLE.split(normal)     # literals and names in turn
    # Of three braces, the first two begin the expression.
    if any(map(_MARK.search, found[::2])) or any([literal.endswith("{") for literal in found[:-1:2]]):
        found = list(parsed(normal, templates, names, member))
    else:
        found[1::2] = [named(name, templates, names, text, member) for name in found[1::2]]
    if sum(len(part) if type(part) is str else 1 for part in found) > MAX_TEXT:
        raise too_long(text, member)
    return Text([part for part in found if part != ""] or [""], text, member)
