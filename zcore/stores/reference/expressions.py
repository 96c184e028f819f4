"""The expressions of reference sets, ``{{ (i + 1) * 1000 }}``: parsed by jinja2, checked, and run once they are safe.

jinja2's parser recurses and its language is large. Tokens and brackets are counted before it parses, and of its tree
nothing is compiled but names, numbers, texts, ``+ - * / // % **``, ``~``, signs, calls of templates with keyword
arguments, the filter ``format``, and a tuple behind ``%`` that is formatted.
"""
from __future__ import annotations

from zcore.errors import ReferenceFormatError, UnsupportedError, ZcoreError, not_installed
from zcore.stores.reference.sandbox import MAX_INTEGER, MAX_TEXT, MIN_INTEGER, as_text, sandbox, template_of

MAX_TOKENS = 256    # of all expressions of a text; the parser takes a stack frame for each sign
MAX_BRACKETS = 16   # one within the other; the parser takes 13 frames for each
MAX_DEPTH = 64      # of an expression as a tree; the compiler takes 3 frames for each level, Python's has 200 brackets

# Names that jinja2 takes for something else.
_RESERVED = frozenset("true false none True False None and or not in is if elif else self".split())
_CONSTANTS = (int, float, str)
_BINARY = frozenset(("Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"))
_REFUSED = {
    "Getattr": "attribute access", "Getitem": "subscripts", "Slice": "subscripts", "Test": "tests (is)",
    "CondExpr": "conditions (if)", "Compare": "comparisons", "And": "and", "Or": "or", "Not": "not",
    "List": "lists", "Dict": "dictionaries", "Tuple": "tuples that are not formatted",
}


def is_name(name):
    """Return whether `name` may name a template or a variable: an identifier that jinja2 takes for a name."""
    if not isinstance(name, str) or not name.isidentifier() or name in _RESERVED:
        return False
    if name.isascii():
        return True
    from unicodedata import normalize
    # jinja2 makes Python of it, where two spellings of one name are the same variable.
    return normalize("NFKC", name) == name


class Expression:
    """What stands between ``{{`` and ``}}``, checked.

    Attributes
    ----------
    names : frozenset of str
        The variables that it depends on.
    tree : tuple, str, int or None
        The expression when it is integer arithmetic: ``(operator, left, right)``, ``(sign, operand)``, the name of a
        variable, an integer. For a function template the variables need not be integers.
    """

    __slots__ = ("names", "tree", "source", "member", "_node", "_values", "_template")

    def __init__(self, names, tree, source, member, node=None, values=None):
        self.names = names
        self.tree = tree
        self.source = source
        self.member = member
        self._node = node
        self._values = values
        self._template = None

    def render(self, variables):
        """Return the value as text, for a dict of variables."""
        if not self.names <= variables.keys():
            raise undefined(min(self.names - variables.keys()), self.source, self.member)
        try:
            if self._node is None:
                return as_text(variables[self.tree])
            if self._template is None:
                self._template = template_of(self._node)
            return self._template.render({**self._values, **{name: variables[name] for name in self.names}})
        except ZcoreError:
            raise
        except Exception as exc:  # whatever jinja2, Python or an operator says of the text
            given = ", ".join(f"{name} = {shown(variables[name])}" for name in sorted(self.names))
            raise not_rendered(exc, self.source, self.member, f" for {given:.80}" if given else "") from exc


# Messages

def shown(value):
    """Return `value` as a message shows it: shortened, however long or deep it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if value is None or isinstance(value, float) or isinstance(value, int) and abs(value) < 10**20:
        return repr(value)
    return f"a value of type {type(value).__name__}"


def not_rendered(reason, source, member, case=""):
    """Return the error that says why a text cannot be rendered: the first line of a reason, or of an exception."""
    reason = (str(reason).splitlines() or [""])[0][:200] or type(reason).__name__
    return ReferenceFormatError(f"{member}: expected a text that can be rendered, but {shown(source)} cannot{case}: "
                                f"{reason}", member=member)


def too_long(source, member):
    """Return the error that says that a text is too long, before or after it is rendered."""
    return not_rendered(f"it, or what comes out, has more than {MAX_TEXT} characters", source, member)


def undefined(name, source, member):
    """Return the error that says that a name in a text stands for nothing."""
    return not_rendered(f"there is no template or variable {shown(name)}", source, member)


def _unsupported(what, source, member):
    return UnsupportedError(f"{member}: {shown(source)} uses {what}; zcore evaluates names, numbers, texts, operators, "
                            "calls of templates and the filter format", feature=f"{what} in a template")


# From a text to its parts

def check_name(name, templates, names, source, member):
    """Raise unless `name` stands for a value: that of a template or of a variable; see `parsed`.

    `templates` are a `Templates`. `names` are the variables; None in the value of a function, where all names are.
    """
    if names is None:
        if not is_name(name):
            raise undefined(name, source, member)
    elif name not in names:
        if name not in templates.names:
            raise undefined(name, source, member)
        if templates.is_function(name):
            raise not_rendered(f"the template {name} takes arguments", source, member)


def parsed(text, templates, names, member):
    """Yield the parts of a text that takes jinja2, str and `Expression`.

    Raises : ReferenceFormatError, UnsupportedError, as `Templates.render`.
    """
    environment = _environment(text, member)
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
        check = _Check(templates, names, text, member)
        node = check.value(node, 0)
        expression = Expression(frozenset(check.used), _integer_tree(node, check.used), text, member, node,
                                check.values)
        # What depends on no variable is rendered here, once; so a function's arguments are looked at, too.
        yield expression if expression.names else expression.render({})


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
            raise not_rendered(f"more than {MAX_BRACKETS} brackets stand in each other", source, member)


class _Check:
    """The check of one expression; it collects the variables that are used, and the values of templates."""

    def __init__(self, templates, names, source, member):
        self._templates, self._names, self._source, self._member = templates, names, source, member
        self.used = set()
        self.values = {}

    def value(self, node, depth):
        """Return the node to evaluate in place of `node`, whose parts were replaced in the same way."""
        kind = type(node).__name__
        depth += 1
        if depth > MAX_DEPTH:
            raise self._wrong(f"an expression is deeper than {MAX_DEPTH} operations")
        if kind == "Const" and type(node.value) in _CONSTANTS:
            if type(node.value) is int and not MIN_INTEGER <= node.value <= MAX_INTEGER:
                raise self._wrong("an integer has more than 64 bits")
        elif kind == "Name":
            self._name(node.name)
        elif kind in ("Neg", "Pos"):
            node.node = self.value(node.node, depth)
        elif kind in _BINARY:
            node.left = self.value(node.left, depth)
            if kind == "Mod" and type(node.right).__name__ == "Tuple":
                node.right.items = [self.value(item, depth + 1) for item in node.right.items]
            else:
                node.right = self.value(node.right, depth)
        elif kind == "Concat":
            return self._filter("~", [self.value(part, depth) for part in node.nodes])
        elif kind == "Filter" and node.name == "format" and node.node is not None:
            if node.kwargs or node.dyn_args is not None or node.dyn_kwargs is not None:
                raise self._unsupported("the filter format with named arguments")
            return self._filter("format", [self.value(part, depth) for part in (node.node, *node.args)])
        elif kind == "Call":
            self._call(node, depth)
        elif kind == "Filter":
            raise self._unsupported(f"the filter {node.name:.40}")
        else:
            what = f"the constant {node.value}" if kind == "Const" else _REFUSED.get(kind, kind)
            raise self._unsupported(what)
        return node

    def _name(self, name):
        check_name(name, self._templates, self._names, self._source, self._member)
        if self._names is None or name in self._names:
            self.used.add(name)
        else:
            self.values[name] = self._templates.value(name)

    def _call(self, node, depth):
        name = node.node.name if type(node.node).__name__ == "Name" else None
        if name is None:
            raise self._unsupported("calls of what is no template")
        if name not in self._templates.names:
            raise self._wrong(f"there is no template {shown(name)} to be called")
        if not self._templates.is_function(name):
            raise self._wrong(f"the template {name} takes no arguments")
        if node.dyn_args is not None or node.dyn_kwargs is not None:
            raise self._unsupported("arguments by * and **")
        function = self._templates.function(name)
        missing = sorted(function.names - {keyword.key for keyword in node.kwargs})
        if node.args or missing:
            raise self._wrong(f"the template {name} is called with keyword arguments, "
                              f"{', '.join(sorted(function.names)):.80}")
        for keyword in node.kwargs:
            keyword.value = self.value(keyword.value, depth)
        self.values[name] = function

    @staticmethod
    def _filter(name, parts):
        from jinja2.nodes import Filter
        return Filter(parts[0], name, parts[1:], [], None, None, lineno=1)

    def _wrong(self, reason):
        return not_rendered(reason, self._source, self._member)

    def _unsupported(self, what):
        return _unsupported(what, self._source, self._member)


def _integer_tree(node, used):
    """Return the `tree` of an `Expression`, or None if there is more to it than integers."""
    kind = type(node).__name__
    if kind == "Const":
        return node.value if type(node.value) is int else None
    if kind == "Name":
        return node.name if node.name in used else None
    if kind in ("Neg", "Pos"):
        operands = (_integer_tree(node.node, used),)
    elif kind in _BINARY and kind != "Div":
        operands = _integer_tree(node.left, used), _integer_tree(node.right, used)
    else:
        return None
    return None if None in operands else (node.operator, *operands)


def _environment(source, member):
    try:
        return sandbox()
    except ImportError as exc:
        raise not_installed(f"{member}: to evaluate {shown(source)} needs", "jinja2", "references",
                            "templates by jinja2") from exc
