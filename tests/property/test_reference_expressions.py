"""Expressions and texts of reference sets: what Python and jinja2 make of them, alone and in columns."""
import operator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zcore.errors import ReferenceFormatError, UnsupportedError
from zcore.stores.reference.gen import Generation
from zcore.stores.reference.templates import Templates

jinja2 = pytest.importorskip("jinja2")

LIMIT = 2**63
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
             "/": operator.truediv, "**": operator.pow}
LEAVES = st.one_of(st.sampled_from("ij"), st.sampled_from("ij"), st.integers(0, 20),
                   st.sampled_from([2**31, 2**32 + 1, 2**62, LIMIT - 1, LIMIT, 10**18]))


def trees(signs):
    """Return trees of integers, the names i and j, and operations (sign, left, right) or (sign, operand)."""
    return st.recursive(LEAVES, lambda inner: st.one_of(
        st.tuples(st.sampled_from(signs), inner, inner),
        st.tuples(st.just("**"), inner, st.integers(0, 5)),
        st.tuples(st.sampled_from("+-"), inner),
    ), max_leaves=8)


VALUES = st.lists(st.one_of(st.integers(-5, 30), st.integers(-LIMIT, LIMIT - 1)), min_size=1, max_size=4)
RANGES = st.builds(lambda start, step, size: {"start": start, "stop": start + step * size, "step": step},
                   st.integers(-LIMIT // 2, LIMIT // 2) | st.integers(-9, 9), st.integers(1, 9) | st.integers(-9, -1),
                   st.integers(1, 5))
PIECES = st.one_of(
    st.text(st.sampled_from("ab{}%# \r\n/é"), max_size=6),
    st.sampled_from(["{{u}}", "{{ u }}", "{{i}}", "{{\ti\n}}", "{# c #}", "{{ i + 1 }}", "{{ f(c=i) }}", "{{-i-}}",
                     "{{ u ~ i }}", "{{ '%02d'|format(i) }}", "\r\n", "{", "}", "{{", "}}", "{#", "#}", "{{ '}}' }}"]))
TOKENS = st.sampled_from([*"ifuxc(){}[]+-*/%~|.,=<>:;!'\"\\ \n019_é", "{{", "}}", "{%", "%}", "{#", "#}", "**", "//",
                          " if ", " else ", " not ", " in ", " is ", "format", "'%d'", "'%s'", "none", "self",
                          "f(c=", "1.5"])
DOCUMENT = {"u": "server/path", "f": "<{{c}}>"}


def text_of(tree):
    """Return a tree as an expression, in brackets: `**` groups to the left in jinja2, to the right in Python."""
    if not isinstance(tree, tuple):
        return str(tree)
    sign, *operands = map(text_of, (tree[0], *tree[1:]))
    return f"({operands[0]} {sign} {operands[1]})" if len(operands) == 2 else f"({sign}{operands[0]})"


def value_of(tree, variables):
    """Return what Python computes; OverflowError, if an integer has more than 64 bits on the way."""
    if isinstance(tree, str):
        return variables[tree]
    value = tree
    if isinstance(tree, tuple):
        operands = [value_of(operand, variables) for operand in tree[1:]]
        if len(operands) == 1:
            value = -operands[0] if tree[0] == "-" else operands[0]
        elif tree[0] == "**" and all(type(x) is int for x in operands) and abs(operands[0]) > 1 and operands[1] > 64:
            raise OverflowError
        else:
            value = OPERATORS[tree[0]](*operands)
    if type(value) is int and not -LIMIT <= value < LIMIT:
        raise OverflowError
    if type(value) is complex:
        raise TypeError
    return value


def computed(tree, variables):
    """Return the text of what Python computes, or None if there is no such value."""
    try:
        return str(value_of(tree, variables))
    except (ArithmeticError, TypeError):
        return None


@given(tree=trees(list(OPERATORS)), i=st.integers(-9, 30), j=st.integers(-LIMIT, LIMIT - 1))
@example(tree=("**", ("-", 8), ("/", 1, 2)), i=0, j=0)
@example(tree=("-", ("-", ("-", ("-", 2**62), 2**62))), i=0, j=0)
@example(tree=("**", 10, ("**", 10, 10)), i=0, j=0)
def test_expressions_are_those_of_python(tree, i, j):
    """RF-TPL-08, RF-TPL-09."""
    variables, text = {"i": i, "j": j}, f"{{{{ {text_of(tree)} }}}}"
    expected = computed(tree, variables)
    if expected is None:
        with pytest.raises(ReferenceFormatError):
            Templates({}).render(text, variables)
    else:
        assert Templates({}).render(text, variables) == expected


@given(tree=trees(["+", "-", "*", "//", "%"]), i=VALUES | RANGES, j=VALUES | RANGES)
@example(tree=("//", "i", ("-", 1)), i=[-LIMIT, 5], j=[1])
@example(tree=("%", "i", "j"), i=[-LIMIT, 5], j=[-1, 1])
@example(tree=("**", "i", 2), i=[-3, 2], j=[1])
@example(tree=("*", "i", "j"), i=[2**31, 3], j=[2**31, 2**33])
def test_references_are_the_texts_of_each_element(tree, i, j):
    """RF-GEN-05, RF-GEN-06, RF-GEN-10: the same numbers, or an error."""
    text = f"{{{{ {text_of(tree)} }}}}"
    values = [range(given["start"], given["stop"], given["step"]) if isinstance(given, dict) else given
              for given in (i, j)]
    expected = [computed(tree, {"i": a, "j": b}) for a in values[0] for b in values[1]]
    item = {"key": text, "url": "u", "dimensions": {"i": i, "j": j}}
    try:
        found = [key for key, *_ in Generation([item], Templates({})).references()]
    except ReferenceFormatError:
        assert None in expected
        return
    assert found == expected
    item.update(offset=text, length=0)
    try:
        offsets = [offset for _, _, offset, _ in Generation([item], Templates({})).references()]
    except ReferenceFormatError:
        assert any(not text.isdecimal() for text in expected)
        return
    assert offsets == [int(text) for text in expected]


@given(pieces=st.lists(PIECES, max_size=6), i=st.integers(-9, 9))
@example(pieces=["{", "{{u}}"], i=0)
@example(pieces=["{{u}}", "}", "\n", "\n"], i=0)
@example(pieces=["{{ u }}", "\r\n"], i=0)
def test_texts_are_those_of_jinja2(pieces, i):
    """RF-TPL-02, RF-TPL-06, RF-TPL-07: with the fast path or without."""
    text = "".join(pieces)
    try:
        expected = jinja2.Template(text, undefined=jinja2.StrictUndefined).render(
            u=DOCUMENT["u"], i=i, f=lambda c: f"<{c}>")
    except Exception:
        expected = None
    # A variable, or a template of this value.
    for templates, variables in ((Templates(DOCUMENT), {"i": i}), (Templates(DOCUMENT, {"i": str(i)}), None)):
        try:
            assert templates.render(text, variables) == expected
        except ReferenceFormatError:
            assert expected is None or variables is None and ("i + 1" in text or "|format(i)" in text)
        except UnsupportedError:
            assert "{%" in text


@pytest.mark.filterwarnings("ignore:invalid escape sequence")
@given(tokens=st.lists(TOKENS, max_size=30))
def test_any_text_is_rendered_or_refused(tokens):
    """RF-TPL-08, RF-TPL-09: by an error of zcore, and nothing else comes out."""
    for text in ("".join(tokens), "{{ " + "".join(tokens) + " }}"):
        try:
            assert isinstance(Templates(DOCUMENT).render(text, {"i": 3}, member="m"), str)
        except (ReferenceFormatError, UnsupportedError) as exc:
            assert str(exc).startswith("m: ") or str(exc).startswith("templates.f: ")
