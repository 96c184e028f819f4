"""The templates of a reference set, and the texts that use them: ``http://{{ u }}/{{ f(c='a') }}_{{ (i + 1) * 10 }}``.

`gen.py` expands ``gen`` with them.

The specification says "jinja-str" ("References specification", version 1), and the document is not trusted. The
format needs little of jinja2's language, so only that is accepted:

1. jinja2 is not used for text of ``{{ name }}`` and literals alone, as nearly all text is.
2. Length, tokens and brackets are limited before jinja2 parses, because its parser recurses.
3. An expression has names, numbers, texts, ``+ - * / // % **``, ``~``, signs, calls of templates and the filter
   ``format``. Attributes, subscripts, statements, tests and globals are refused.
4. zcore evaluates it (`zcore.stores.reference.expressions`), and limits the operands and the result of each operation.

A template whose value contains ``{{`` is a function. It is called with keyword arguments and sees only these, no other
template, so there is no recursion. Any other value is literal text. As in jinja2, ``{# #}`` and one final line end are
dropped, other line ends become ``\\n``, and ``**`` groups from the left.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby
from typing import TYPE_CHECKING

from zcore.errors import ReferenceFormatError
from zcore.stores.reference.expressions import (
    MAX_TEXT,
    Expression,
    check_name,
    is_name,
    parsed,
    rendered,
    shown,
    too_long,
    undefined,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, KeysView

_SIMPLE = re.compile(r"\{\{\s*+([^\W\d]\w*+)\s*+\}\}")
_MARK = re.compile(r"\{[{%#]")


class Templates:
    """The templates of one document, which render its texts.

    Parameters
    ----------
    definitions : dict
        Name to text, the member `templates` of the document.
    overrides : mapping, optional
        Templates of the caller, which replace those of the document, or are added.

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
        self._values = {}
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
                self._values[name] = value
                self._members[name] = member

    @property
    def names(self) -> KeysView[str]:
        """The names of all templates, as a view that works as a set."""
        return self._values.keys()

    def is_function(self, name: str) -> bool:
        """Return whether the template of this name is a function; else it is a text."""
        return "{{" in self._values[name]

    def value(self, name: str) -> str:
        """Return the text of a template that is no function."""
        return self._values[name]

    def function(self, name: str) -> Text:
        """Return a function template as a `Text` of its arguments.

        Raises : ReferenceFormatError, UnsupportedError, if no arguments can render its value.
        """
        text = self._functions.get(name)
        if text is None:
            text = _compiled(self._values[name], _NO_TEMPLATES, None, self._members[name])
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
        if variables or not isinstance(text, str):
            return self.compile(text, variables or (), member).render(variables)
        rendered = self._substituted(text)
        return self.compile(text, (), member).render({}) if rendered is None else rendered

    def render_all(self, texts: Iterable[str], member: str = "url") -> Iterator[str]:
        """Iterate over `texts` rendered; see `render`.

        Most URLs differ only behind their last template, so the part before it is rendered once.
        """
        fronts = {}
        for text in texts:
            front, braces, rest = text.rpartition("}}")
            rendered = fronts.get(front) if braces else None
            if rendered is None and braces and len(fronts) < 1024:
                rendered = self._substituted(front + braces)
                if rendered is not None and len(front) + len(rendered) <= 4096:
                    fronts[front] = rendered
            if (rendered is None or "{" in rest or "\n" in rest or "\r" in rest or len(text) > MAX_TEXT
                    or len(rendered) + len(rest) > MAX_TEXT):
                yield self.render(text, member=member)
            else:
                yield rendered + rest

    def _substituted(self, text):
        """Return a text of one line rendered, if all its braces are names of templates; else None.

        There may be a URL for each chunk, and `compile` takes three times as long.
        """
        if "\n" in text or "\r" in text:
            return None
        if "{" not in text:
            return text
        pieces = _SIMPLE.split(text)
        if "{" in "".join(pieces[::2]):
            return None
        for i in range(1, len(pieces), 2):
            value = self._values.get(pieces[i])
            if value is None or "{{" in value:
                return None
            pieces[i] = value
        return "".join(pieces) if max(len(text), sum(map(len, pieces))) <= MAX_TEXT else None

    def compile(self, text: object, names: Iterable[str] = (), member: str = "url") -> Text:
        """Return `text` as a `Text`, which renders it for the variables in `names`.

        Raises : as `render`, and ReferenceFormatError if a variable has the name of a template.

        >>> Templates({}).compile("{{ i * 2 }}.{{ j }}", ["i", "j"]).render({"i": 3, "j": 4})
        '6.4'
        """
        if not isinstance(text, str):
            raise ReferenceFormatError(f"{member}: expected a text, found {shown(text)}", member=member)
        names = frozenset(names)
        if names and not names.isdisjoint(self._values):
            clash = ", ".join(sorted(names.intersection(self._values)))
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
    if not ("{" in text or "\n" in text or "\r" in text):
        return Text((text,), text, member)
    normal = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    if _MARK.search(normal) is None:
        return Text((normal,), text, member)
    if len(text) > MAX_TEXT:
        raise too_long(text, member)
    pieces = _simple_pieces(normal)
    if pieces is None:
        found = list(parsed(normal, templates, names, member))
    else:
        found = pieces
        for i in range(1, len(found), 2):
            check_name(found[i], templates, names, text, member)
            if names is None or found[i] in names:
                found[i] = Expression(("name", found[i]), frozenset((found[i],)))
            else:
                found[i] = templates.value(found[i])
    if sum(len(part) if type(part) is str else 1 for part in found) > MAX_TEXT:
        raise too_long(text, member)
    parts = []
    for literal, group in groupby(found, lambda part: type(part) is str):
        if literal:
            parts.append("".join(group))
        else:
            parts.extend(group)
    return Text([part for part in parts if part != ""] or [""], text, member)


def _simple_pieces(text):
    """Return literals and names in turn; None if the text has anything else."""
    pieces = _SIMPLE.split(text)
    for literal in pieces[::2]:
        if _MARK.search(literal) is not None:
            return None
    # Of three braces, the first two begin the expression.
    return None if any(literal.endswith("{") for literal in pieces[:-1:2]) else pieces
