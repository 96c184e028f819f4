"""Templates of reference sets, and the texts that use them: "References specification", version 1."""
import subprocess
import sys
from types import MappingProxyType

import pytest

from tests.each import each
from zcore.errors import ReferenceFormatError, UnsupportedError
from zcore.stores.reference import templates as texts
from zcore.stores.reference.templates import MAX_DEPTH, Templates

SEED = {"u": "server.domain/path", "f": "{{c}}"}
PLAIN = {"u": "server.domain/path", "v_2": "é {x} }} $", "empty": "", "é": "accent", "markup": "{% x %}{# #}\n"}


@pytest.fixture(scope="module")
def jinja2():
    return pytest.importorskip("jinja2")


@pytest.fixture
def without_jinja2(monkeypatch):
    """jinja2 as if it were not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "jinja2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    texts._environment.cache_clear()
    yield
    texts._environment.cache_clear()


@pytest.mark.parametrize("text, rendered", [
    ("http://target_url", "http://target_url"),
    ("http://{{u}}", "http://server.domain/path"),
    ("http://{{f(c='text')}}", "http://text"),
])
def test_urls_of_the_example(jinja2, text, rendered):
    """RF-TPL-02, RF-TPL-03: the `refs` of the specification's example."""
    assert Templates(SEED).render(text) == rendered


@each("definitions, member", [
    (None, "templates"), ([], "templates"), ("u", "templates"), (["u"], "templates"),
    ({"u": 1}, "templates.u"), ({"u": None}, "templates.u"), ({"u": ["x"]}, "templates.u"), ({"u": {}}, "templates.u"),
    ({"": "x"}, "templates."), ({"1a": "x"}, "templates.1a"), ({"a-b": "x"}, "templates.a-b"),
    ({"a b": "x"}, "templates.a b"), ({1: "x"}, "templates.1"),
    # Names that jinja2 takes for something else, and one that Python takes for another name.
    ({"self": "x"}, "templates.self"), ({"true": "x"}, "templates.true"), ({"None": "x"}, "templates.None"),
    ({"not": "x"}, "templates.not"), ({"if": "x"}, "templates.if"), ({"ﬁ": "x"}, "templates.ﬁ"),
])
def test_definitions_are_names_and_texts(definitions, member):
    """RF-TPL-01."""
    with pytest.raises(ReferenceFormatError) as caught:
        Templates(definitions)
    assert caught.value.member == member
    assert member in str(caught.value)


def test_overrides_replace_and_add():
    """RF-TPL-11."""
    templates = Templates({"u": "a", "w": "c"}, {"u": "b", "v": "x"})
    assert templates.render("{{u}}{{v}}{{w}}") == "bxc"
    assert set(templates.texts) == {"u", "v", "w"}
    assert Templates({"u": "a"}).render("{{u}}") == "a"


def test_overrides_are_any_mapping():
    assert Templates({"u": "a"}, MappingProxyType({"u": "b"})).render("{{u}}") == "b"


@pytest.mark.parametrize("overrides, error", [
    ([("u", "b")], TypeError), ({"u": 1}, TypeError), ({"a-b": "x"}, ReferenceFormatError)])
def test_overrides_are_names_and_texts(overrides, error):
    """RF-TPL-01, RF-TPL-11."""
    with pytest.raises(error, match="template.overrides"):
        Templates({}, overrides)


# Texts that are names and literals alone, for which jinja2 is not asked.

SIMPLE = [
    "", "x", "a{{u}}b", "{{u}}", "{{ u }}", "{{u}}{{u}}", "{{  u\t}}/{{\nv_2\n}}", "{{empty}}", "{{empty}}\n", "{{é}}",
    "{u}", "}{", "}}", "a}}b", "{{u}}}", "{ {{u}} }", "{{u}} {", "#} %}", "{{markup}}",
    "a\n", "a\n\n", "\n", "\r\n", "a\r\nb\rc\r", "{{u}}\r\n", "{{u}} \n", " {{u}} ", "{{u}}\n\n", "%s%d%%{{u}}",
]
MIXED = [
    "{{ 'a' }}{{u}}", "{# c #}{{u}}", "{{u}}{# c #}\n", "a{#- c -#} b", "  {{- u -}}  x", "{{ u ~ '' }}", "{{'{{u}}'}}",
    "{{(u)}}\r\n", "{{u }}{{ '%s'|format(u) }}", "{{u}}{#\n#}\n\n", "{{+ 1 }}", "{{- 1 -}} x", "{{ '}}' }}",
    "{#", "{{u}}{#",
]


@each("text", SIMPLE + MIXED)
def test_rendered_as_jinja2_renders_it(jinja2, text):
    """RF-TPL-06, RF-TPL-07: blanks are free, single braces stay, one line end and comments are dropped."""
    templates = Templates(PLAIN)
    assert templates.render(text) == templates.compile(text).render({}) == jinja2.Template(text).render(**PLAIN)
    assert templates.render(text) == templates.render(text, {"i": 1})


@each("text", SIMPLE)
def test_simple_texts_do_without_jinja2(without_jinja2, text):
    """RF-TPL-06."""
    assert isinstance(Templates(PLAIN).render(text), str)


@pytest.mark.parametrize("text", [
    "{{{u}}}", "{{u}", "{{u", "{{}}", "{{ }}", "{{{", "{{u u}}", "{{1u}}", "{# x", "{{u}}{# {{u}}", "{{u-}}x{{",
    "{{ 'a }}", "{{ u ~ }}", "{{ \\ }}", "{{ 1 2 }}", "{{ u) }}", "{{ [1) }}", "{{ f(c='x' }}",
])
def test_syntax_that_jinja2_refuses(jinja2, text):
    """RF-TPL-06, RF-TPL-08."""
    with pytest.raises(ReferenceFormatError, match="^refs.a: expected a text that can be rendered") as caught:
        Templates({"f": "{{c}}", **PLAIN}).render(text, member="refs.a")
    assert caught.value.member == "refs.a"


def test_without_jinja2_it_is_named(without_jinja2):
    """RF-TPL-08: what takes jinja2 names the extra."""
    templates = Templates(SEED)
    assert templates.render("{{u}}{{ u }}") == "server.domain/pathserver.domain/path"
    with pytest.raises(UnsupportedError, match='url: .* needs jinja2, .* "zcore-array.references."'):
        templates.render("{{ u ~ 'x' }}")


def test_import_of_zcore_brings_no_templates():
    """RF-TPL-08."""
    code = "import sys, zcore; print([name for name in sys.modules if 'jinja2' in name or 'reference_' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("text", ["{{x}}", "{{ x + 1 }}", "{{u}}{{x}}", "{{ u ~ x }}", "{{ f(c=x) }}"])
def test_undefined_name(jinja2, text):
    """RF-TPL-04: never an empty text."""
    with pytest.raises(ReferenceFormatError, match="no template or variable 'x'"):
        Templates(SEED).render(text)


@pytest.mark.parametrize("text", ["{{g(c='1')}}", "{{g(c='1', d=2)}}"])
def test_function_sees_its_arguments_alone(jinja2, text):
    """RF-TPL-04: a template that names another one names an argument that is missing."""
    templates = Templates({"u": "x", "g": "{{c}}{{u}}", "h": "{{f(c=1)}}", "f": "{{c}}", "d": "{{c}}/{{ c * 2 }}"})
    with pytest.raises(ReferenceFormatError, match="template g is called with keyword arguments, c, u"):
        templates.render(text)
    with pytest.raises(ReferenceFormatError, match="^templates.h: .*no template 'f'"):
        templates.render("{{h()}}")
    assert templates.render("{{g(c='1', u='2')}}{{ d(c=4, more=5) }}") == "124/8"


@pytest.mark.parametrize("text, reason", [
    ("{{f}}", "f takes arguments"), ("{{ f ~ 'x' }}", "f takes arguments"), ("{{ f(c=f) }}", "f takes arguments"),
    ("{{u()}}", "u takes no arguments"), ("{{u(c='x')}}", "u takes no arguments"),
    ("{{f()}}", "keyword arguments, c"), ("{{f('x')}}", "keyword arguments, c"), ("{{f('x', c=1)}}", "keyword arg"),
    ("{{f(c=1, c=2)}}", "repeated"), ("{{i()}}", "no template 'i'"), ("{{f(c=1)(c=2)}}", "calls of anything"),
])
def test_functions_are_called_and_others_are_not(jinja2, text, reason):
    """RF-TPL-03, RF-TPL-05."""
    with pytest.raises((ReferenceFormatError, UnsupportedError), match=reason):
        Templates(SEED).render(text, {"i": 1})


def test_variables_of_what_cannot_be_evaluated_are_named(jinja2):
    """RF-GEN-05."""
    with pytest.raises(ReferenceFormatError, match="cannot for i = 0, j = 'a': "):
        Templates({"f": "{{ j * 2 // i }}"}).render("{{ f(i=k, j='a') }}", {"k": 0})


def test_recursion_is_impossible(jinja2):
    """RF-TPL-04, RF-TPL-09."""
    templates = Templates({"f": "{{ f(c=c) }}", "g": "{{ h(c=c) }}", "h": "{{ g(c=c) }}", "a": "{{ a }}"})
    for text in ("{{ f(c=1) }}", "{{ g(c=1) }}", "{{ a(a=a) }}", "{{ a }}"):
        with pytest.raises(ReferenceFormatError):
            templates.render(text)
    assert templates.render("{{ a(a='x') }}") == "x"


def test_values_of_templates_are_not_rendered_again(jinja2):
    """RF-TPL-02: a value without `{{` stands for itself, whatever is in it."""
    templates = Templates({"a": "{# x #}{% y %}{z}\n", "f": "{{c}}"})
    for text in ("{{a}}", "{{ a ~ '' }}", "{{ f(c=a) }}"):
        assert templates.render(text) == "{# x #}{% y %}{z}\n"
    assert templates.render("{{ f(c='{{a}}') }}") == "{{a}}"


@each("text, rendered", [
    ("{{ i }}", "7"), ("{{ i + 1 }}", "8"), ("{{ i - 10 }}", "-3"), ("{{ i * j }}", "-21"), ("{{ i // 2 }}", "3"),
    ("{{ j // 2 }}", "-2"), ("{{ j % 2 }}", "1"), ("{{ -i }}", "-7"), ("{{ +i }}", "7"),
    ("{{ (i + 1) * 1000 }}", "8000"),
    ("{{ i ** 2 }}", "49"), ("{{ 2 ** -1 }}", "0.5"), ("{{ 0x1F + 1_0 }}", "41"), ("{{ 1.5 * 2 }}", "3.0"),
    ("{{ 2 ** 63 // 2 }}", None), ("{{ 2 ** 62 * 2 - 1 }}", None), ("{{ 2 ** 62 + (2 ** 62 - 1) }}", str(2**63 - 1)),
    ("{{ 9223372036854775807 }}", str(2**63 - 1)), ("{{ 9223372036854775808 }}", None),
    # As jinja2 groups it, not as Python does.
    ("{{ 2 ** 3 ** 2 }}", "64"), ("{{ -2 ** 2 }}", "4"),
    # RF-TPL-10
    ("{{ 4 / 2 }}", "2.0"), ("{{ i / 2 }}", "3.5"),
    ("{{ 'a' ~ i ~ 1.5 }}", "a71.5"), ("{{ 'a' + 'b' 'c' }}", "abc"), ("{{ 'ab' * 3 }}", "ababab"),
    ("{{ 2 * 'ab' }}", "abab"), ("{{ 'ab' * -1 }}", ""), ("{{ '\\x41\\n' }}", "A\n"),
    ("{{ '%03d' % i }}", "007"), ("{{ '%03d'|format(i) }}", "007"), ("{{ '%d-%02d' % (i, 3) }}", "7-03"),
    ("{{ '%d-%s'|format(i, 'x') }}", "7-x"), ("{{ '%5.2f%%' % 1.234 }}", " 1.23%"), ("{{ '%x' % (255,) }}", "ff"),
    ("{{ '%-4d|' % i }}", "7   |"), ("{{ '%s' % u }}", "server.domain/path"), ("{{ 'x' % () }}", "x"),
    ("{{ '{:999999999}'|format }}", "{:999999999}"), ("{{ i|format }}", "7"),
    ("{{ f(c='%02d' % i) ~ f(c=f(c=j)) }}", "07-3"), ("{{ f(c=i * 2) }}", "14"),
])
def test_expressions(jinja2, text, rendered):
    """RF-TPL-03, RF-TPL-08, RF-TPL-10."""
    templates, variables = Templates(SEED), {"i": 7, "j": -3}
    if rendered is None:
        with pytest.raises(ReferenceFormatError, match="more than 64 bits"):
            templates.render(text, variables)
    else:
        assert templates.render(text, variables) == rendered
        assert templates.compile(text, variables).render(variables) == rendered


@each("text, what", [
    ("{{ ''.__class__ }}", "attribute access"), ("{{ u.x }}", "attribute access"), ("{{ self.x }}", "attribute access"),
    ("{{ f(c='').__class__.__mro__ }}", "attribute access"), ("{{ ''['__class__'] }}", "subscripts"),
    ("{{ u[0] }}", "subscripts"), ("{{ u[0:1] }}", "subscripts"), ("{{ 1.__class__ }}", "attribute access"),
    ("{{ u|upper }}", "the filter upper"), ("{{ u|attr('x') }}", "the filter attr"), ("{{ u|~ }}", None),
    ("{{ '%(a)s'|format(a=1) }}", "named arguments"), ("{{ '%s'|format(*u) }}", "named arguments"),
    ("{{ u is defined }}", "tests"), ("{{ 1 if 1 else 2 }}", "conditions"), ("{{ 1 < 2 }}", "comparisons"),
    ("{{ 1 in u }}", "comparisons"), ("{{ u and u }}", "and"), ("{{ u or u }}", "or"), ("{{ not u }}", "not"),
    ("{{ [1] }}", "lists"), ("{{ {} }}", "dictionaries"), ("{{ (1, 2) }}", "tuples"), ("{{ 1, 2 }}", "tuples"),
    ("{{ '%s' % ((1, 2), ) }}", "tuples"), ("{{ (1, 2) % 'x' }}", "tuples"), ("{{ () * 9 }}", "tuples"),
    ("{{ true ~ '' }}", "the constant True"), ("{{ none ~ '' }}", "the constant None"),
    ("{{ f(*u) }}", r"\*\*"), ("{{ f(**u) }}", r"\*\*"), ("{{ (f)(c=1)(c=1) }}", "calls"), ("{{ ''() }}", "calls"),
    ("{% for i in u %}{% endfor %}", "statements"), ("{% set u = 1 %}", "statements"), ("{%", "statements"),
    ("{% raw %}{{ u }}{% endraw %}", "statements"), ("{% include '/etc/passwd' %}", "statements"),
    ("{% import 'os' as os %}", "statements"), ("{{ u }}{%- if 1 %}", "statements"),
])
def test_syntax_that_is_not_needed(jinja2, text, what):
    """RF-TPL-08, RF-TPL-09: the node that is refused is named."""
    error = UnsupportedError if what else ReferenceFormatError
    with pytest.raises(error, match=what or "expected") as caught:
        Templates(SEED).render(text)
    assert str(caught.value).startswith("url: ")


@each("name", [
    "range(10 ** 9)", "lipsum()", "cycler(1)", "joiner()", "namespace()", "dict()", "self", "self()", "loop",
    "caller()", "super()", "_('x')", "environment", "context", "undefined", "__class__", "__builtins__", "resolve",
    "l_0_u", "__import__('os')",
])
def test_there_are_no_globals(jinja2, name):
    """RF-TPL-09."""
    with pytest.raises(ReferenceFormatError, match="there is no template"):
        Templates(SEED).render(f"{{{{ {name} }}}}")
    with pytest.raises(ReferenceFormatError):
        Templates({"f": f"{{{{ {name} }}}}"}).render("{{ f() }}")


@each("expression", [
    "'a' * 10 ** 9", "10 ** 9 * 'a'", "'a' * 65537", "u * 40000", "'a' * 65536 ~ 'b'", "'a' * 65536 + 'b'",
    "'' ~ 'a' * 40000 ~ 'a' * 40000", "'%s%s' % ('a' * 40000, 'a' * 40000)", "('a' * 60000) * ('b' ~ 'c')",
    "10 ** 10 ** 10", "2 ** 63", "2 ** 64", "(-2) ** 10 ** 9", "10 ** 18 * 10", "2 ** 62 + 2 ** 62",
    "-(2 ** 62) - 2 ** 62 - 1", "9" * 30, "9" * 5000, "10.0 ** 1000", "'%f' * 300 % 1", "i ** i ** i",
    "'%999999999d' % 1", "'%1000d' % 1", "'%.1000f' % 1", "'%*d' % (999999999, 1)", "'%(a)s' % 1", "'%r' % 'a'",
    "'%' % 1", "'%99999999999999999999d'|format(1)", "'%.999999999f'|format(1.5)", "('%999d' * 80) % u",
    "('%s' * 90) % ('a' * 9000, 'a' * 60000)",
])
def test_what_would_take_much_memory_is_refused_before_it_does(jinja2, expression):
    """RF-TPL-09."""
    with pytest.raises(ReferenceFormatError):
        Templates(SEED).render(f"{{{{ {expression} }}}}", {"i": 10**6})


@each("expression", [
    "1 // 0", "1 / 0", "i % 0", "0 ** -1", "(-8) ** 0.5", "'a' + 1", "1 + 'a'", "'a' - 'b'", "-'a'", "+u", "'a' * 1.5",
    "'a' * 'b'", "'%d' % 'a'", "'%d' % ()", "'%d' % (1, 2)", "'x' % 1", "'%c' % 9999999", "1 % (1, 2)",
    "'%d' % (1e308 * 10)", "'\\N{nothing}'",
])
def test_what_cannot_be_evaluated(jinja2, expression):
    """RF-TPL-08, RF-TPL-09: one error, that names the text."""
    for text in (f"{{{{ {expression} }}}}", f"{{{{ i ~ ({expression}) }}}}"):
        with pytest.raises(ReferenceFormatError, match="^gen.url: expected a text that can be .*: .") as caught:
            Templates(SEED).render(text, {"i": 3}, member="gen.url")
        assert repr(text)[1:-1] in str(caught.value)


@each("text", [
    "{{ " + "(" * 10**5, "{{ " + "(" * 10**4 + "1" + ")" * 10**4 + " }}",
    "{{ " + "-" * 10**5 + "1 }}", "{{ " + "-" * 60000 + "1 }}", "{{ " + "-" * 200 + "1 }}",
    "{{ " + "a+" * 10**6 + "a }}", "{{ " + "1+" * 120 + "1 }}", "{{ 1" + "**1" * 20000 + " }}",
    "{{ " + "not " * 10**4 + "1 }}", "{{ " + "[" * 10**4, "{{ " + "f(c=" * 10**4,
    "{{ " + "1 if 1 else " * 5000 + "1 }}",
    "{{ u" + "|format" * 9000 + " }}", "{{ u" + ".a" * 30000, "{{ u" + "[0]" * 20000, "{{ u" + "~u" * 30000 + " }}",
    "{{ i }}{{ 1 }}" * 4000, "{% if 1 %}" * 6000, "{{ '" + "\\" * 60001 + " }}", "{#" * 30000, "{{" * 30000,
    "{{ " * 20000, "{" * 60000, "{{" + " " * 60000 + "u", "{{ " + "1_" * 30000 + " }}", "{{" + "a" * 65530,
    "{{ 1 " + "," * 60000, "{{u}}" * 12000,
], ids=lambda text: f"{text[:10]}... of {len(text)}")
def test_depth_and_length_are_bounded(jinja2, text):
    """RF-TPL-09: an error and no exhausted stack."""
    with pytest.raises((ReferenceFormatError, UnsupportedError)) as caught:
        Templates(SEED).render(text, {"i": 1})
    assert not isinstance(caught.value.__cause__, RecursionError)
    assert len(str(caught.value)) < 500


def test_depth_that_is_allowed(jinja2):
    """RF-TPL-09."""
    assert Templates({}).render("{{ " + "1+" * (MAX_DEPTH - 1) + "1 }}") == str(MAX_DEPTH)
    assert Templates({}).render("{{ " + "-" * (MAX_DEPTH - 1) + "1 }}") == "-1"
    assert Templates({}).render("{{ " + "(" * 16 + "1" + ")" * 16 + " }}") == "1"


def test_results_are_bounded(jinja2):
    """RF-TPL-09: what is substituted many times, too."""
    templates = Templates({"a": "x" * 60000, "b": "x" * 10**6, "f": "{{c}}{{c}}"})
    assert templates.render("{{a}}") == "x" * 60000
    assert templates.render("{{ f(c='ab') }}") == "abab"
    for text in ("{{a}}{{a}}", "{{b}}", "{{ b ~ '' }}", "{{ a ~ a }}", "{{ f(c=a) }}", "{{a}}{{ 'y' * 6000 }}",
                 "{{ f(c=f(c=f(c=f(c=f(c=f(c=f(c=f(c='x' * 1000)))))))) }}", "{{i}}" + "{{a}}{{ 'y' * 6000 }}"):
        with pytest.raises(ReferenceFormatError, match="more than 65536 characters"):
            templates.render(text, {"i": 1})
    # What stands in the document, and is no template, is as long as it is.
    assert templates.render("y" * 10**6) == "y" * 10**6


@each("text", [None, 1, 1.5, True, [], ["x"], {}, b"x"])
def test_texts_are_texts(text):
    """RF-TPL-02."""
    with pytest.raises(ReferenceFormatError, match=r"^refs.a\[0\]: expected a text, found ") as caught:
        Templates({}).render(text, member="refs.a[0]")
    assert caught.value.member == "refs.a[0]"


def test_variables_and_templates_have_different_names():
    """RF-GEN-05: neither shadows the other."""
    with pytest.raises(ReferenceFormatError, match="both of u"):
        Templates(SEED).render("x{{u}}", {"u": 1})


def test_compiled_text_says_what_it_depends_on(jinja2):
    """RF-TPL-02: what depends on templates alone is rendered once."""
    text = Templates(SEED).compile("http://{{u}}_{{ i + 1 }}{{ f(c='x') }}{{ f(c=j) }}", ["i", "j", "k"])
    assert text.names == {"i", "j"}
    assert "".join(part for part in text.parts if isinstance(part, str)) == "http://server.domain/path_x"
    assert [part.names for part in text.parts if not isinstance(part, str)] == [{"i"}, {"j"}]
    assert text.render({"i": 1, "j": 2, "k": 3}) == "http://server.domain/path_2x2"
    with pytest.raises(ReferenceFormatError, match="no template or variable 'j'"):
        text.render({"i": 1})
    with pytest.raises(ReferenceFormatError, match="no template or variable 'i'"):
        Templates({}).compile("{{i}}", ["i"]).render({})


@pytest.mark.parametrize("text", [
    "http://{{u}}/x", "{{ u }}{{u}}", "http://{{f(c='text')}}", "{{ f(c=u) }}.{{ 7 // 2 }}", "{{ '%03d' % 5 }}",
    "{{ '%s_%d'|format('a', 5) }}", "x{u}", "a{# b #}{{u}}\n",
])
def test_as_fsspec_renders_it(jinja2, text):
    """RF-TPL-02, RF-TPL-03, RF-TPL-07: what both accept is the same text."""
    fsspec = pytest.importorskip("fsspec")
    from fsspec.implementations.reference import ReferenceFileSystem
    document = {"version": 1, "templates": dict(SEED), "refs": {"a": [text, 0, 1]}}
    store = ReferenceFileSystem(document, simple_templates=False, fs=fsspec.filesystem("file"),
                                skip_instance_cache=True)
    assert store.references["a"][0] == Templates(SEED).render(text)
