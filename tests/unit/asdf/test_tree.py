"""The tree of an ASDF file, from its text."""
import datetime
import math
import pickle
import sys

import pytest

yaml = pytest.importorskip("yaml")

from tests.each import each  # noqa: E402
from zcore.asdf.tree import load as tree_module  # noqa: E402
from zcore.asdf.tree.load import dump, load  # noqa: E402
from zcore.asdf.tree.ndarray import NDArrayNode  # noqa: E402
from zcore.asdf.tree.origin import Reference, parts_of  # noqa: E402
from zcore.asdf.tree.scalars import complex_number, complex_text, plain_value  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping, TaggedScalar, TaggedSequence  # noqa: E402
from zcore.errors import AsdfFormatError, UnsupportedError  # noqa: E402


def document(body, start="%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n", opening="---\n"):
    return (start + opening + body + "\n...\n").encode()


@pytest.fixture(params=["libyaml", "python"])
def parse(request, monkeypatch):
    """`load` by each of the parsers that PyYAML has."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    return lambda body, **options: load(document(body), **options)


def test_scalars(parse):
    """AS-TREE-10, AS-TREE-11"""
    tree = parse("a: [1, 010, 0x1F, 0b11, '10', \"1.5\", 1:30, 1_000, -3]\n"
                 "b: [1.5, 1e5, 1.0e+5, .5, -.inf, 190:20:30.5]\nc: [yes, No, on, OFF, True, y, n]\n"
                 "d: [~, null, 'null', ]\ne: 2020-01-02\nf: 2020-01-02T03:04:05.25Z\n//: a comment\n"
                 "g: !!str 12\nh: !!binary YWJj\ni: !!float 3\nj: ! 12\nk: !!int '7'\nl: !!bool 'no'\nm: !!null ''")
    assert tree["a"] == [1, 8, 31, 3, "10", "1.5", 90, 1000, -3]
    assert tree["b"] == [1.5, "1e5", 1e5, 0.5, -math.inf, 685230.5]
    assert tree["c"] == [True, False, True, False, True, "y", "n"]
    assert tree["d"] == [None, None, "null"]
    assert tree["e"] == datetime.date(2020, 1, 2)
    assert tree["f"] == datetime.datetime(2020, 1, 2, 3, 4, 5, 250000, datetime.UTC)
    assert tree["//"] == "a comment"
    assert (tree["g"], tree["h"], tree["i"], tree["j"]) == ("12", b"abc", 3.0, "12")
    assert (tree["k"], tree["l"], tree["m"]) == (7, False, None)


@each("text", [
    "1", "-12", "+3", "0", "00", "09", "017", "0o17", "0x1f", "0b10", "1_0", "1:30", "1:30.5", "1.", ".5", "-.5", "1e5",
    "1.e5", "1.e+5", "1.5e-3", ".inf", "-.Inf", "+.INF", ".nan", "yes", "NO", "oN", "y", "~", "", "null", "Null",
    "nULL", "2020-01-02", "2020-1-2", "2020-1-2 3:04:05", "2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.1 -5",
    "a", "=", "685_230.15", "-0", "-0.0", "12a", "1 2", "....",
])
def test_plain_scalars_are_what_pyyaml_makes_of_them(text):
    """AS-TREE-11"""
    expected = yaml.safe_load(text) if text != "=" else "="
    assert repr(plain_value(text)) == repr(expected)


def test_integers_of_any_size_are_read(parse):
    """AS-TREE-06"""
    assert parse("a: 123456789012345678901234567890")["a"] == 123456789012345678901234567890
    with pytest.raises(AsdfFormatError, match="digits"):
        parse("a: " + "9" * 5000)
    with pytest.raises(AsdfFormatError, match="digits"):
        parse("a: 1" + ":00" * 5000)
    for real in ("1" + ":00" * 5000 + ".5", "!!float 1" + ":00" * 5000):
        with pytest.raises(AsdfFormatError, match="digits"):
            parse("a: " + real)
    text = "1" + ":00" * 5000 + "x"
    assert parse("a: " + text)["a"] == text


@pytest.mark.parametrize("text", ["!!int a", "!!float b", "!!bool c", "!!timestamp d", "!!timestamp 2020-13-40",
                                  "2020-13-40", "!!binary 'é'", "0b_"])
def test_scalars_that_are_not_what_they_say(parse, text):
    """AS-TREE-11"""
    with pytest.raises(AsdfFormatError, match="line 5"):
        parse(f"a:\n  {text}")


def test_keys(parse):
    """AS-TREE-05"""
    assert parse("a: 1\n2: x\ntrue: y\n-1: z") == {"a": 1, 2: "x", True: "y", -1: "z"}
    for key in ("[1, 2]", "{a: 1}", "!core/ndarray-1.0.0 [1]", "!core/integer-1.0.0 {sign: +}"):
        with pytest.raises(AsdfFormatError, match="expected keys"):
            parse(f"? {key}\n: 1")


def test_any_scalar_is_a_key_as_before_version_1_6(parse):
    """AS-TREE-05"""
    assert parse("1.5: a\n~: b\n!!binary YQ==: c\n2020-01-02: d\n!core/complex-1.0.0 1j: e") == {
        1.5: "a", None: "b", b"a": "c", datetime.date(2020, 1, 2): "d", 1j: "e"}


def test_messages_do_not_repeat_what_is_shared(parse):
    """Lists of lists that are shared stand for 2**60 items."""
    body = "x0: &x0 [1, 1]\n" + "".join([f"x{i + 1}: &x{i + 1} [*x{i}, *x{i}]\n" for i in range(60)])
    for members in ("source: *x60, datatype: int8, shape: [1]", "source: 0, datatype: *x60, shape: [1]",
                    "source: 0, datatype: int8, shape: *x60", "source: 0, datatype: int8, shape: [1], strides: *x60",
                    "source: 0, datatype: int8, shape: [1], offset: *x60",
                    "source: 0, datatype: [[int8, *x60]], shape: [1]",
                    "source: 0, datatype: [{datatype: int8, name: *x60}], shape: [1]",
                    "source: 0, datatype: [{datatype: int8, shape: *x60}], shape: [1]",
                    "source: 0, datatype: int8, shape: [1], byteorder: *x60", "data: *x60, datatype: int8, shape: [1]",
                    "data: [1], mask: *x60"):
        node = parse(f"{body}a: !core/ndarray-1.0.0 {{byteorder: little, {members}}}")["a"] if (
            "byteorder" not in members) else parse(f"{body}a: !core/ndarray-1.0.0 {{{members}}}")["a"]
        with pytest.raises((AsdfFormatError, UnsupportedError)) as caught:
            node.read()
        assert len(str(caught.value)) < 400 and len(repr(node)) < 500
    with pytest.raises(AsdfFormatError, match=r"found \[\[\.\.\.\], \[\.\.\.\]\]"):
        parse(f"{body}? *x60\n: 1")


def test_a_key_that_is_there_twice(parse):
    with pytest.warns(UserWarning, match="'a' is there twice"):
        assert parse("a: 1\na: 2") == {"a": 2}


def test_merged_keys(parse):
    tree = parse("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [{x: 4}, *a], z: 5}\nd: {'<<': 1}")
    assert tree["b"] == {"x": 1, "y": 3}
    assert tree["c"] == {"x": 4, "y": 2, "z": 5}
    assert tree["d"] == {"<<": 1}
    with pytest.raises(AsdfFormatError, match="expected mappings"):
        parse("a: {<<: [1]}")


def test_a_key_that_merges_has_no_alias(parse):
    assert parse("a: {&m <<: {x: 1}}\nb: *m\nc: [*m]") == {"a": {"x": 1}, "b": "<<", "c": ["<<"]}


def test_merged_keys_do_not_multiply(parse, monkeypatch):
    monkeypatch.setattr(tree_module, "MAX_MERGED", 50)
    body = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(20)) + "}\n"
    assert len(parse(body + "b: {<<: [*a, *a]}")["b"]) == 20
    with pytest.raises(AsdfFormatError, match="copies more than 50"):
        parse(body + "b: {<<: [*a, *a, *a]}")


@pytest.mark.parametrize(("text", "error", "match"), [
    (b"---\na: 1\n...\n", AsdfFormatError, "%YAML"),
    (b"\xef\xbb\xbf%YAML 1.1\n---\na: 1\n...\n", AsdfFormatError, "%YAML"),
    (b"%YAML 1.3\n---\na: 1\n...\n", UnsupportedError, "YAML 1.3"),
    (b"%YAML 2.0\n---\na: 1\n...\n", UnsupportedError, "YAML 2.0"),
    (b"%YAML 1.1\n---\na: 1\n--- \nb: 1\n...\n", AsdfFormatError, "more than one document"),
    (b"%YAML 1.1\n---\na: [1\n...\n", AsdfFormatError, "line"),
    (b"%YAML 1.1\n---\na: \xff\n...\n", AsdfFormatError, "cannot be read"),
    (b"%YAML 1.1\n---\na: \x01\n...\n", AsdfFormatError, "cannot be read"),
    (b'%YAML 1.1\n---\na: "\\U00110000"\n...\n', AsdfFormatError, "cannot be read"),
    (b"%YAML 1.1\n---\na: *b\n...\n", AsdfFormatError, "alias|no anchor"),
    (b"%YAML 1.1\n", AsdfFormatError, "document|cannot be read"),
    (b"%YAML 1.1\n---\na: !x!y 1\n...\n", AsdfFormatError, "tag handle"),
])
@pytest.mark.parametrize("parser", ["libyaml", "python"])
def test_texts_that_are_no_trees(text, error, match, parser, monkeypatch):
    """AS-TREE-01, AS-TREE-02"""
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    with pytest.raises(error, match=match):
        load(text)


def test_texts_that_are_trees():
    """AS-TREE-01, AS-TREE-02, AS-HDR-04"""
    assert load(b"") == {}
    assert load(b"%YAML 1.1\r\n---\r\na: 1\r\n...\r\n") == {"a": 1}
    assert load(b"%YAML 1.1\n%TAG !e! tag:example.org:\n--- !e!root\na: 1\n...") == {"a": 1}
    with pytest.warns(UserWarning, match="YAML 1.2"):
        assert load(b"%YAML 1.2\n---\na: yes\n...\n") == {"a": True}


def test_where_a_text_is_damaged():
    with pytest.raises(AsdfFormatError, match="line 4") as caught:
        load("%YAML 1.1\n---\na: ü\nb: [1, }\n...\n".encode())
    assert caught.value.offset == len("%YAML 1.1\n---\na: ü\n".encode())


def test_tags_are_kept(parse):
    """AS-TREE-07, AS-TREE-08, AS-ND-21"""
    tree = load(document("m: !<asdf://x.org/tags/m-1.0.0> {a: 1}\ns: !core/s-1.0.0 [1]\nt: !<x> 12\n"
                         "e: !core/externalarray-1.0.0 {source: 0}\nc: !table/column-1.0.0 {name: a}",
                         opening="--- !core/asdf-1.1.0\n"))
    assert type(tree) is TaggedMapping and tree.tag == "tag:stsci.edu:asdf/core/asdf-1.1.0"
    assert type(tree["m"]) is TaggedMapping and tree["m"] == {"a": 1} and tree["m"].tag == "asdf://x.org/tags/m-1.0.0"
    assert type(tree["s"]) is TaggedSequence and tree["s"] == [1]
    assert type(tree["t"]) is TaggedScalar and tree["t"] == "12" and tree["t"].tag == "x"
    assert tree["e"] == {"source": 0} and tree["c"] == {"name": "a"}
    for value in (tree["m"], tree["s"], tree["t"]):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and type(again) is type(value) and again.tag == value.tag
        assert repr(value.tag) in repr(value)
    assert tree["m"].copy().tag == tree["m"].tag and tree["s"].copy().tag == tree["s"].tag


@pytest.mark.parametrize("text", [
    "!!python/object:os.system {a: 1}", "!!python/object/apply:os.system ['echo x']", "!!python/name:os.system ''",
    "!!python/module:os ''", "!!python/object/new:tuple [[1, 2]]", "!!set {a, b}", "!!omap [a: 1]", "!!pairs [a: 1]",
])
def test_no_tag_makes_an_object(parse, text):
    """AS-TREE-08"""
    value = parse(f"a: {text}")["a"]
    assert type(value) in (TaggedMapping, TaggedSequence, TaggedScalar)
    assert value.tag.startswith("tag:yaml.org,2002:")


@pytest.mark.parametrize("tag", ["ndarray-2.0.0", "complex-3.1.0", "integer-2.0.0"])
def test_unknown_version_of_a_known_tag(parse, tag):
    """AS-TREE-08"""
    with pytest.warns(UserWarning, match="version that is not known") as caught:
        tree = parse(f"a: !core/{tag} {{source: 0}}\nb: !core/{tag} {{}}")
    assert type(tree["a"]) is TaggedMapping and len(caught) == 1


def test_anchors_are_one_object(parse):
    """AS-TREE-09"""
    tree = parse("a: &a [1, 2]\nb: *a\nn: &n !core/ndarray-1.0.0 [1]\nm: *n\nself: &s {me: *s}\nloop: &l [*l]")
    assert tree["a"] is tree["b"] and tree["n"] is tree["m"]
    assert tree["self"]["me"] is tree["self"] and tree["loop"][0] is tree["loop"]


def test_an_alias_bomb_is_small(parse):
    body = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30))
    tree = parse(body)
    assert len(tree) == 30 and tree["a29"][0] is tree["a28"]


def test_depth_is_bounded(parse, monkeypatch):
    assert sys.getrecursionlimit() < 10_000
    monkeypatch.setattr(tree_module, "MAX_DEPTH", 100)
    value = parse("a: " + "[" * 99 + "]" * 99)["a"]
    for _ in range(98):
        value = value[0]
    assert value == []
    for text in ("[" * 10_000, "{a: " * 10_000, "- " * 5000):
        with pytest.raises(AsdfFormatError, match="levels|cannot be read"):
            parse(f"a:\n  {text}")


def test_complex_numbers(parse):
    """AS-ND-20"""
    tree = parse("a: !core/complex-1.0.0 1-1j\nb: !core/complex-1.0.0 (2.5I)\nc: !core/complex-1.1.0 inf+nani\n"
                 "d: !core/complex-1.0.0 '-3.5e2'\ne: !core/complex-1.0.0 -i")
    assert tree["a"] == 1 - 1j and tree["b"] == 2.5j and tree["d"] == -350 and tree["e"] == -1j
    assert math.isinf(tree["c"].real) and math.isnan(tree["c"].imag)
    for text in ("", "1 + 2i", "1i2", "(1", "1)", "()", "(", "1+", "abc", "nani nani", "1.5.5"):
        with pytest.raises(AsdfFormatError, match="complex"):
            complex_number(text)
    for value in (1 - 1j, complex("-inf-nanj"), complex(-0.0, -0.0), 1e300 + 1e-300j):
        assert repr(complex_number(complex_text(value))) == repr(value)
        assert complex_text(value).endswith("i")


def test_integers_as_words():
    for value in (0, 1, -1, 2**31, -2**64, 2**200 + 12345):
        assert int(IntegerNode.of(value)) == value
        assert range(3)[IntegerNode.of(1)] == 1
    words = "!core/ndarray-1.0.0 {data: [1, 2], datatype: uint32}"
    tree = load(document(f"a: !core/integer-1.0.0 {{sign: '-', words: {words}}}"))
    assert int(tree["a"]) == -(1 + 2 * 2**32)
    for members in ({"sign": "x", "words": IntegerNode.of(1)["words"]}, {"sign": "+"},
                    {"sign": "+", "words": IntegerNode.of(1)["words"].astype("i4")}):
        with pytest.raises(AsdfFormatError, match="integer"):
            int(IntegerNode("tag", members))


# references

def test_references_in_the_tree(parse):
    """AS-TREE-09"""
    tree = parse("a: {$ref: '#/b/1'}\nb: [x, {c/d: {~: 5}}]\ne: {$ref: '#/b/1/c~1d'}\nf: {$ref: '#/a'}\n"
                 "g: {$ref: '#/f/c~1d/~0'}\nw: {$ref: '#'}\nu: {$ref: '#/q%20r'}\nq r: 7\n1: one\ni: {$ref: '#/1'}\n"
                 "j: &j {$ref: '#/i'}\nk: *j".replace("~:", "'~':"))
    assert type(tree["a"]) is Reference and tree["a"] == {"$ref": "#/b/1"} and "#/b/1" in repr(tree["a"])
    assert tree["a"].resolve() is tree["b"][1] and tree["f"].resolve() is tree["b"][1]
    assert tree["e"].resolve() == {"~": 5} and tree["g"].resolve() == 5
    assert tree["w"].resolve() is tree and tree["u"].resolve() == 7 and tree["i"].resolve() == "one"
    assert tree["k"] is tree["j"] and tree["k"].resolve() == "one" and tree["k"].copy().resolve() == "one"
    assert pickle.loads(pickle.dumps(tree["a"])) == {"$ref": "#/b/1"}


@pytest.mark.parametrize("pointer", ["#/x", "#/b/5", "#/b/x", "#/b/-1", "#x/b", "#//b", "#/c/1", "#/b/01x"])
def test_references_that_lead_nowhere(parse, pointer):
    """AS-TREE-09"""
    tree = parse(f"a: {{$ref: '{pointer}'}}\nb: [1]\nc: 5")
    with pytest.raises(AsdfFormatError, match=r"\$ref"):
        tree["a"].resolve()


def test_references_in_circles(parse):
    """AS-TREE-09, AS-EXP-04"""
    tree = parse("a: {$ref: '#/b'}\nb: {$ref: '#/a'}\nc: {$ref: '#/c'}\nd: {$ref: '#/d/x'}\n"
                 + "".join(f"e{i}: {{$ref: '#/e{i + 1}'}}\n" for i in range(100)) + "e100: 1")
    for name in ("a", "b", "c", "d", "e0"):
        with pytest.raises(AsdfFormatError, match="leads to itself"):
            tree[name].resolve()
    assert tree["e90"].resolve() == 1


def test_parts_of_a_pointer():
    assert parts_of("") == [] and parts_of("/") == [""] and parts_of("/~01/a~1b") == ["~1", "a/b"]
    assert parts_of("a/b") == ["a", "b"]


def test_a_reference_without_a_file_and_a_remote_one(parse):
    """AS-ND-05, AS-TREE-09"""
    tree = parse("a: {$ref: 'http://example.org/a.asdf#/b'}\nb: {$ref: 'other.asdf#/x'}")
    with pytest.raises(UnsupportedError, match="remote"):
        tree["a"].resolve()
    with pytest.raises(OSError, match="relative"):
        tree["b"].resolve()


def test_without_pyyaml(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert load(b"") == {}
    for call in (lambda: load(document("a: 1")), lambda: dump({"a": 1}, None)):
        with pytest.raises(UnsupportedError, match='"zcore-array.asdf."') as caught:
            call()
        assert caught.value.feature == "the trees of ASDF files"


def test_a_node_is_made_of_each_ndarray(parse):
    """AS-ND-01"""
    tree = parse("a: !core/ndarray-1.0.0 [1]\nb: !core/ndarray-1.1.0 {data: [1]}\nc: !core/ndarray-1.2.0 [2]\n"
                 "d: !<tag:stsci.edu:asdf/core/ndarray-1.0.0> [3]")
    assert [type(value) for value in tree.values()] == [NDArrayNode] * 4
    assert [value.read().tolist() for value in tree.values()] == [[1], [1], [2], [3]]
