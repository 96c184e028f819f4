"""Trees of ASDF files that somebody has changed: only errors of zcore come out, or values."""
import random
import warnings

import numpy as np
import pytest

yaml = pytest.importorskip("yaml")

from tests.unit.asdf.made_blocks import MadeFile  # noqa: E402
from zcore.asdf.tree.dump import Inline, Stream  # noqa: E402
from zcore.asdf.tree.load import _Maker, dump, load  # noqa: E402
from zcore.asdf.tree.ndarray import NDArrayNode  # noqa: E402
from zcore.asdf.tree.origin import Origin, Reference  # noqa: E402
from zcore.asdf.tree.tagged import IntegerNode, TaggedMapping  # noqa: E402
from zcore.errors import ZcoreError  # noqa: E402
from zcore.stores.asdf.nodes import TreeGroup, attributes_of, root_of  # noqa: E402

BASE = np.arange(24, dtype=">f4").reshape(4, 6)
SHARED = [1, {"x": BASE}]
TREE = {
    "a": BASE, "view": BASE[1:3, ::2], "masked": np.ma.array([1, 2, 3], mask=[0, 1, 0]), "shared": [SHARED, SHARED],
    "inline": Inline([[1, 2], [3, 4]]), "texts": Inline(["a", "b"]), "z": 1 - 2j, "big": IntegerNode.of(2**70),
    "records": np.array([(1, b"ab")], [("n", "i2"), ("s", "S2")]), "link": Reference({"$ref": "#/shared/0"}, None),
    "tagged": TaggedMapping("asdf://example.org/tags/a-1.0.0", {"k": [1.5, None, True, "1e5", "x: y"]}),
    "stream": Stream((2,), "<i2"), "date": "2020-01-02",
}
FILE = MadeFile()
TEXT = dump(TREE, FILE.add_block)
# What makes more trouble than single bytes do.
WORDS = [b"*id001", b"&id001 ", b"source: 99", b"source: -1", b"shape: ['*', 3]", b"- ", b"[", b"]", b"{", b"}",
         b"...\n",
         b"---\n", b"!!python/object:os.system ", b"$ref: '#/'", b"18446744073709551616", b"-1", b".nan", b"1:30:30",
         b"strides: [8, -8]", b"offset: 9223372036854775807", b"datatype: [[[int8]]]", b"<<: *id001", b"\x00", b"\xff",
         b"!core/ndarray-1.0.0 ", b"~", b"? ", b": ", b"%TAG ! x:\n", b"mask: 1"]


def mutated(rng):
    text = bytearray(TEXT)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        kind = rng.randrange(5)
        if kind == 0:
            text[at] = rng.randrange(256)
        elif kind == 1:
            del text[at:min(at + rng.randint(1, 20), len(text) - 1)]
        elif kind == 2:
            text[at:at] = rng.choice(WORDS)
        elif kind == 3:
            start = rng.randrange(len(text))
            text[at:at + rng.randint(0, 20)] = text[start:start + rng.randint(1, 60)]
        else:
            text = text[:at + 1] if rng.random() < 0.2 else text
    return bytes(text) or TEXT


def use(text):
    """Do with a tree whatever a program does; returns whether it is one."""
    try:
        tree = load(text, FILE.blocks)
    except ZcoreError:
        return False
    pending = [root_of(tree)]
    while pending:
        node = pending.pop()
        try:
            attributes_of(node)
            if isinstance(node, TreeGroup):
                pending += node.members.values()
            elif hasattr(node, "read"):
                array = node.read()
                assert array.nbytes <= 10_000 or not array.flags.writeable
        except ZcoreError:
            pass
    if isinstance(tree, dict):
        try:
            dump(tree, MadeFile().add_block)
        except (ZcoreError, TypeError, ValueError):
            pass
    return True


@pytest.mark.parametrize("parser", ["libyaml", "python"])
@pytest.mark.parametrize("n", [pytest.param(1, id="some"), pytest.param(30, id="many", marks=pytest.mark.slow)])
def test_mutated_trees(parser, n, monkeypatch):
    """AS-TREE-08, AS-ND-13: nothing is made but plain data, and no view leads out of its block."""
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
        n_rounds = 150 * n
    else:
        n_rounds = 1500 * n
    rng = random.Random(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [use(mutated(rng)) for _ in range(n_rounds)]
    assert 0 < sum(found) < n_rounds


PROGRAMS = [TEXT, b"""%YAML 1.1
%TAG ! tag:stsci.edu:asdf/
--- !core/asdf-1.1.0
asdf_library: !core/software-1.0.0 {author: The ASDF Developers, homepage: 'http://github.com/asdf-format/asdf',
  name: asdf, version: 6.0.0}
wcs: !<tag:stsci.edu:gwcs/wcs-1.2.0>
  steps:
  - !<tag:stsci.edu:gwcs/step-1.1.0>
    unit: [!unit/unit-1.0.0 pixel, !unit/unit-1.0.0 'pixel']
    transform: &id001 !transform/compose-1.2.0
      bounding_box:
      - [-0.5, 1023.5]
      - - -0.5
        - x: 1
          y: [a, {b: c, d: [e,
            f]}]
      forward: *id001
      text: It is a long
        text on two lines
      quoted: 'it''s a long
        text  on
        two lines '
      "key": "a b"
  - {a: ~, b: yes, 1: 010, no: "1:30"}
  -
  - -
  -
    k: v
empty:
list:
- a: 1
  b:
  - x
  - w: 2020-01-02
- b c d
-7: -.5
array: !core/ndarray-1.1.0 {source: 0, datatype: int8, shape: [2], byteorder: little}
...
"""]
SIGNS = b" \n:-[]{},'\"#!&*ab01.?|>%@`~=<_/$(+"


def reshaped(rng):
    """A text in which lines and signs that have a meaning were changed."""
    text = bytearray(rng.choice(PROGRAMS))
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, kind = rng.randrange(40, len(text) - 3), rng.randrange(6)
        if kind < 2:
            text[at:at + rng.choice((0, 1))] = bytes([rng.choice(SIGNS)])
        elif kind == 2:
            del text[at:at + rng.randint(1, 4)]
        elif kind == 3:
            text[at:at] = rng.choice([*WORDS, b"\n  ", b"''", b"!x ", b"&a ", b"{a: b}", b"[a, b]", b"x: y\n", b", "])
        else:
            lines = bytes(text).split(b"\n")
            i = rng.randrange(3, len(lines) - 2)
            lines[i:i + 1] = rng.choice((
                [b" " * rng.randint(1, 3) + lines[i]], [lines[i][rng.randint(1, 3):]], [], [lines[i], lines[i - 1]],
                [lines[i], b" " * rng.randrange(9) + rng.choice((b"word", b"- w", b"k: v", b"]", b", a", b"'x'"))]))
            text = bytearray(b"\n".join(lines))
    return bytes(text)


def form_of(value, seen):
    """What a value of a tree is, with types, tags, the order of members, and what is one object."""
    if isinstance(value, NDArrayNode):
        return value.tag, value.is_list, form_of(value.members, seen)
    if not isinstance(value, dict | list):
        return type(value), repr(value), getattr(value, "tag", None)
    if id(value) in seen:
        return seen[id(value)]
    seen[id(value)] = len(seen)
    items = value.items() if isinstance(value, dict) else enumerate(value)
    members = [(type(name), repr(name), form_of(item, seen)) for name, item in items]
    return type(value), getattr(value, "tag", None), members


@pytest.mark.parametrize("parser", ["libyaml", "python"])
@pytest.mark.parametrize("n", [pytest.param(1, id="some"), pytest.param(30, id="many", marks=pytest.mark.slow)])
def test_what_is_read_at_once_is_what_pyyaml_makes_of_it(parser, n, monkeypatch):
    """AS-TREE-01: a text that is read without PyYAML is one that PyYAML reads, and has the same values."""
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    at_once = _Maker.read
    monkeypatch.setattr(_Maker, "read", lambda self, text: None)
    rng = random.Random(n)
    n_read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in [*PROGRAMS, *[reshaped(rng) for _ in range((200 if parser == "python" else 4000) * n)]]:
            tree = at_once(_Maker(yaml, Origin((), len(text))), text)
            if tree is not None:
                n_read += 1
                assert form_of(tree, {}) == form_of(load(text), {}), text
    assert n_read > 40 * n


def test_every_cut_of_a_tree():
    """AS-TREE-02, AS-TREE-03"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(1, len(TEXT)):
            use(TEXT[:n])


def test_origins_are_let_go():
    """A tree that is part of itself is garbage once nobody has it."""
    origin = Origin(FILE.blocks, len(TEXT))
    load(TEXT, origin=origin)
    assert origin.root["shared"][0] is origin.root["shared"][1] and len(origin.arrays) >= 9
